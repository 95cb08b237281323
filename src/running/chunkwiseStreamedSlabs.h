/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseStreamedSlabs_h
#define chunkwiseStreamedSlabs_h

#include "chunkwiseSlabReconstruction.h"
#include "chunkwiseStreamedRun.h"

namespace chunkwise
{

/** The run in slabs of a streamed request, without its sink. */
SlabRequest
MakeSlabRequest(const StreamedRequest & request, const StreamedPlan & plan);

/** MakeStreamedPlan, whatever devices could hold. */
StreamedPlan
MakePlanWithoutHolding(Manager & manager, const StreamedRequest & request);

} // namespace chunkwise

#endif
