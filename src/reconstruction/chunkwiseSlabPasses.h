/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSlabPasses_h
#define chunkwiseSlabPasses_h

#include "chunkwiseSlabReconstruction.h"

namespace chunkwise
{

/** ReconstructInSlabs of a PassesOperation. What a window gives is computed as it is read, from planes with its halo;
 * what a reconstruction gives to a later stage lies in a spool. `runs`: else it only throws what it would throw before
 * work. */
SlabReport
RunPassesInSlabs(Manager & manager, const SlabRequest & request, Monitor * monitor, bool runs = true);

} // namespace chunkwise

#endif
