/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandReport_h
#define commandReport_h

#include "chunkwiseStreamedRun.h"

#include <ostream>

namespace command
{

void
PrintDivisions(std::ostream & os, const chunkwise::StreamedPlan & plan);

/** The chunks of a division; what a device holds and moves for them if devices run it. */
void
PrintPlan(std::ostream & os, const chunkwise::Plan & plan, int dimension, bool onDevices);

} // namespace command

#endif
