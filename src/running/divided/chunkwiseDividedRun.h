/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDividedRun_h
#define chunkwiseDividedRun_h

#include "chunkwiseManagerState.h"

#include <cstddef>
#include <vector>

namespace chunkwise
{

// Several devices hold the images of a run together, and hand planes on to each other (DividedImages), so that what
// many steps reach is not loaded and computed twice where parts meet, and values go from part to part without the host.

/** Finds out whether devices `used` are to run a request of images of the host so: its operation can be run so
 * (Operation::AsSteps), they have the room, and it is expected to take less time than the plan, or is asked for. The
 * plan is then this one. */
bool
PlanDivided(Manager & manager, ManagerState & state, const ExecutionRequest & request,
            const std::vector<std::size_t> & used, Plan & plan);

/** Runs the request so. Returns false if a device failed, or values go too far, which a warning of the report says;
 * then only the output has changed. Throws Aborted. */
bool
ExecuteDivided(Manager & manager, ManagerState & state, const ExecutionRequest & request,
               const std::vector<std::size_t> & used, Monitor * monitor, ExecutionReport & report);

} // namespace chunkwise

#endif
