/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandRun_h
#define commandRun_h

#include "commandLine.h"

namespace command
{

/** Filters one image from file to file. */
RunReport
RunFile(const CommandLine & line);

/** Does what the command line asks for, or prints the plan for it. */
void
Run(const CommandLine & line);

} // namespace command

#endif
