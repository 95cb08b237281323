/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandFilterLabels_h
#define commandFilterLabels_h

#include "commandLine.h"

namespace command
{

/** Writes an image of labels without the labels that its measurements exclude, or prints the plan for that. */
void
FilterLabels(const CommandLine & line);

} // namespace command

#endif
