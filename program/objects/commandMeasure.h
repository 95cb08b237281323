/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandMeasure_h
#define commandMeasure_h

#include "commandLine.h"

namespace command
{

/** Writes the table of an image of labels, which is read in pieces, or prints the plan for that. */
void
Measure(const CommandLine & line);

} // namespace command

#endif
