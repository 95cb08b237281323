/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseStagedTransfer_h
#define chunkwiseStagedTransfer_h

#include "chunkwiseHostCopy.h"
#include "chunkwiseStagingRing.h"

namespace chunkwise
{

/** Copies boxes of host images to and from dense device memory through a ring of pinned pieces, by several threads
 * whose copies on the host overlap with those over the link. Returns when all is there. Used by one thread at a time.
 */
class StagedTransfer
{
public:
  /** `sharers`: how many such transfers the pinned budget is for. Throws BudgetError if it has no room for the smallest
   * ring, DeviceError if the device fails. */
  StagedTransfer(DeviceState & state, const RunContext & context, std::size_t pinnedLimit, int sharers = 1);

  /** Throw DeviceError, or Aborted if the run is to stop; then no copy is pending any more. */
  void
  ToDevice(void * to, const DenseSequence & from);
  void
  ToHost(const DenseSequence & to, const void * from);

private:
  void
  Await(EventHandle event) const
  {
    AwaitEvent(m_Device, event, [this] { return m_Context.ShouldStop(); });
  }
  /** The address of bytes [begin, end) if they need no staging, else nullptr. */
  char *
  FindPinned(const DenseSequence & sequence, std::size_t begin, std::size_t end) const;
  /** Calls body(lane, lanes, pieces) in a thread for each lane. */
  template <typename TBody>
  void
  InLanes(std::size_t bytes, TBody && body);

  Device &                  m_Device;
  const RunContext &        m_Context;
  StagingRing               m_Ring;
  std::vector<DeviceStream> m_Streams; ///< of the lanes
};

} // namespace chunkwise

#endif
