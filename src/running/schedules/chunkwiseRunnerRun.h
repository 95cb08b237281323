/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRunnerRun_h
#define chunkwiseRunnerRun_h

#include "chunkwiseOutOfCoreRunner.h"

namespace chunkwise
{

/** The run of an operation that its own runner runs (Operation::IsRunByRunner), over images in the host's memory.
 * `limit`: bytes of the host's memory, 0: none. Throws what the runner throws. */
ExecutionReport
ExecuteByRunner(Manager & manager, const ExecutionRequest & request, std::size_t limit, Monitor * monitor);

/** Its plan: one chunk. Throws BudgetError with the bytes that are enough. */
Plan
MakePlanOfRunner(Manager & manager, const ExecutionRequest & request, std::size_t limit);

/** Throws ParameterError if there is no such device. */
void
CheckDevices(const Manager & manager, const std::vector<int> & devices);

/** Throws Error if devices alone may run an operation that no device can run (Operation::GetObjectionToDevices). */
void
CheckBackend(BackendChoice backend, const Operation & operation);

} // namespace chunkwise

#endif
