/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseStreamedOutOfCore_h
#define chunkwiseStreamedOutOfCore_h

#include "chunkwiseOutOfCoreRunner.h"
#include "chunkwiseStreamedRun.h"

namespace chunkwise
{

/** The request for the operation's out-of-core runner, made from a streamed request, without a sink. */
OutOfCoreRequest
MakeOutOfCoreRequest(const StreamedRequest & request, const StreamedPlan & plan);

/** The box of an input that is read for a run that needs `box` of it, in the engine's coordinates. */
Box
GetReadBox(const StreamedRequest & request, const StreamedPlan & plan, const StreamedInput & input, Box box);

/** MakeStreamedPlan, whatever devices could hold. */
StreamedPlan
MakePlanWithoutHolding(Manager & manager, const StreamedRequest & request);

} // namespace chunkwise

#endif
