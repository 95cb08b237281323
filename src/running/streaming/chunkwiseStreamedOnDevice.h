/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseStreamedOnDevice_h
#define chunkwiseStreamedOnDevice_h

#include "chunkwiseDivisionMonitor.h"
#include "chunkwiseStreamedRun.h"

#include <functional>
#include <memory>
#include <string>

namespace chunkwise
{

// Images that the host's memory is too small for, but a device's is not: the image goes through the host in divisions,
// each voxel once, is computed on the device as a whole, and comes back in divisions. So reconstructions need no slabs,
// and divisions of what has a wide halo do not compute it again and again.

/** Whether a device has the memory for that, and computing is expected to take less time than `mostSeconds`. Fills the
 * plan if so. */
bool
PlanOnDevice(Manager & manager, const StreamedRequest & request, double mostSeconds, StreamedPlan & plan);

/** Its parts, for progress: loading, computing, storing. */
constexpr std::int64_t PartsOfHeldRun = 3;

/** The run. Empty, or why it has to go in slabs or divisions instead: the device failed, or has no room any more,
 * before anything was written, and the sources can be read again. Throws what ExecuteStreamed throws. */
std::string
ExecuteHeld(Manager & manager, const StreamedRequest & request, const StreamedPlan & plan,
            const std::shared_ptr<ImageSink> & sink, Monitor * monitor, StreamedReport & report);

/** Calls `fill` with the memory of each division's result in ascending order; the division before is written meanwhile.
 * Throws errors of the sink as they are, and Aborted. Fills the fields of the report that are about writing. */
StreamedReport
WriteStreamed(Manager & manager, const StreamedRequest & request, const StreamedPlan & plan,
              const std::shared_ptr<ImageSink> & sink, Monitor * monitor,
              const std::function<void(const BufferView & view)> & fill);

} // namespace chunkwise

#endif
