/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSlabPasses_h
#define chunkwiseSlabPasses_h

#include "chunkwiseSlabReconstruction.h"

namespace chunkwise
{

/** ReconstructInSlabs of a PassesOperation. Results of a window are computed as they are read, from planes with its
 * halo; results of a reconstruction that a later stage reads lie in a spool. `runs`: else it only throws what it would
 * throw before work. */
SlabReport
RunPassesInSlabs(Manager & manager, const SlabRequest & request, Monitor * monitor, bool runs = true);

} // namespace chunkwise

#endif
