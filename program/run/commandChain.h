/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandChain_h
#define commandChain_h

#include "commandLine.h"

namespace command
{

/** Runs subcommands one after the other, each over the whole result of the one before. */
void
RunChain(const CommandLine & line);

} // namespace command

#endif
