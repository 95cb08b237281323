/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandStatistics_h
#define commandStatistics_h

#include "commandLine.h"

namespace command
{

/** Prints the statistics of an image, which is read in pieces, or the plan for that. */
void
PrintStatistics(const CommandLine & line);

} // namespace command

#endif
