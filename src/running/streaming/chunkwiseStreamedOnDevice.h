/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseStreamedOnDevice_h
#define chunkwiseStreamedOnDevice_h

#include "chunkwiseDividedImages.h"
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

/** The devices of a request that have the kernels of its operation. */
std::vector<int>
FindHoldingDevices(Manager & manager, const StreamedRequest & request);

/** Whether a device has the memory for the images of request.region, which is a part of the image, and the host for
 * divisions of them. Fills the plan if so. */
bool
PlanPartOnDevice(Manager & manager, const StreamedRequest & request, int device, StreamedPlan & plan);

/** The least StreamedRequest::memory for such divisions. */
std::uint64_t
GetLeastBytesOfMoves(Manager & manager, StreamedRequest request);

/** The images of request.region in the memory of one device, or of several together. An operation without an output has
 * none there. */
class HeldImages
{
public:
  HeldImages(Manager & manager, const StreamedRequest & request, const StreamedPlan & plan, Monitor * monitor);

  /** Returns the seconds that reading took. */
  double
  Load();
  ExecutionReport
  Compute();
  /** Manager::Summarise, of one device. */
  ChunkState
  Summarise(ExecutionReport & report);
  StreamedReport
  Store(const std::shared_ptr<ImageSink> & sink);
  /** A part of the result is on the host, where it is written. */
  bool
  MayBeWritten() const
  {
    return m_MayBeWritten;
  }

private:
  ExecutionRequest
  MakeRequest() const;

  Manager &                         m_Manager;
  const StreamedRequest &           m_Request;
  const StreamedRequest             m_Moves;
  const StreamedPlan &              m_Plan;
  Monitor * const                   m_Monitor;
  DividedImages                     m_Images;
  std::vector<DividedImages::Image> m_Inputs;
  DividedImages::Image              m_Output{ 0 };
  bool                              m_MayBeWritten{ false };
};

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
