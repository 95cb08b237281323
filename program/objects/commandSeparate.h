/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandSeparate_h
#define commandSeparate_h

#include "commandLine.h"

namespace command
{

/** Finds objects by a threshold, and parts them by a watershed of their distances to the contour. */
void
SeparateObjects(const CommandLine & line);

} // namespace command

#endif
