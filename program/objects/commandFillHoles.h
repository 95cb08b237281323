/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandFillHoles_h
#define commandFillHoles_h

#include "commandLine.h"

namespace command
{

/** Fills the holes of the objects of an image of labels: see LabelHoles. */
void
FillLabelHoles(const CommandLine & line);

} // namespace command

#endif
