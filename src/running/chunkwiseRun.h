/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRun_h
#define chunkwiseRun_h

#include "chunkwiseManagerState.h"

namespace chunkwise
{

/** Starts the workers of one run on `devices` (indices of the manager's; none: the CPU), serves the monitor from the
 * calling thread until they end, and throws what ended the run early. Fills what the report says of workers. */
void
ExecutePlan(ManagerState & manager, RunContext & context, const Plan & plan, const std::vector<std::size_t> & devices,
            Monitor * monitor, ExecutionReport & report);

} // namespace chunkwise

#endif
