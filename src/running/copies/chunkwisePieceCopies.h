/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwisePieceCopies_h
#define chunkwisePieceCopies_h

#include "chunkwiseInterleaved.h"
#include "chunkwisePipelineJob.h"
#include "chunkwiseStagingRing.h"

namespace chunkwise
{

/** Copies pieces of the images between the host and a device: straight where the host's memory is pinned, else through
 * a ring of pieces of pinned memory. Interleaved pixels are copied in that order, and the device de-interleaves and
 * interleaves them.
 *
 * `lane`: each thread that loads or stores has its own; `count`: how many pieces it has begun. */
class PieceCopies
{
public:
  /** `bytes`: of a chunk's images. `mayTakeApart`: the device may have memory for taking pixels apart; without it the
   * host does that, voxel by voxel. Throws BudgetError or DeviceError if memory fails. */
  PieceCopies(DeviceState & state, RunContext & context, std::size_t bytes, bool mayTakeApart, std::size_t memoryLimit,
              std::size_t pinnedLimit);

  const StagingThreads &
  GetThreads() const
  {
    return m_Staging->GetThreads();
  }
  std::size_t
  LoadLane(std::size_t thread) const
  {
    return thread;
  }
  std::size_t
  StoreLane(std::size_t thread) const
  {
    return m_Staging->GetThreads().loading + thread;
  }
  /** The processors of these threads; empty: any. */
  const std::vector<int> &
  GetProcessors() const
  {
    return m_Processors;
  }
  StreamHandle
  GetLoadStream() const
  {
    return m_LoadStream.Get();
  }
  StreamHandle
  GetStoreStream() const
  {
    return m_StoreStream.Get();
  }
  /** Comes when the piece has arrived: its place in the ring may be used again, or what it holds be copied on. */
  EventHandle
  Arrived(std::size_t lane, std::size_t count) const
  {
    return m_Staging->Event(lane, count);
  }

  /** Components that `box` of the view has side by side and that are copied so; 1 where they are taken apart here. */
  std::int64_t
  ComponentsToDevice(const BufferView & view, const Box & box) const
  {
    return m_PixelsToDevice.Get() ? this->ComponentsTogether(view, box) : 1;
  }
  std::int64_t
  ComponentsToHost(const BufferView & view, const Box & box) const
  {
    return m_PixelsToHost.Get() ? this->ComponentsTogether(view, box) : 1;
  }
  /** Bytes of the largest piece of whole pixels. */
  std::size_t
  PieceBytes(PixelType kind, std::int64_t components) const
  {
    const std::size_t pixel = PixelSize(kind) * static_cast<std::size_t>(components);
    return m_Staging->GetPieceBytes() / pixel * pixel;
  }

  /** Brings a piece of a job's input towards the device, where all of that input begins at `to`. */
  void
  Load(std::size_t lane, std::size_t count, const Job & job, const Piece & piece, char * to);
  /** Begins to bring a piece of a job's output, all of which begins at `from`, to the host. Returns whether it arrives
   * in the ring; else it arrives in the image. */
  bool
  BeginStore(std::size_t lane, std::size_t count, const Job & job, const Piece & piece, char * from);
  /** Copies a piece that has arrived in the ring to the image. */
  void
  EndStore(std::size_t lane, std::size_t count, const Job & job, const Piece & piece);

private:
  using Stretches = std::vector<DenseSequence::Stretch>;

  bool
  IsPinned(const BufferView & view) const;
  void
  MakeRoomForPixels(DeviceState & state, std::size_t memoryLimit);
  std::int64_t
  ComponentsTogether(const BufferView & view, const Box & box) const;
  /** The place of the piece in pinned memory, if the image is pinned there; otherwise nothing. */
  static Stretches
  FindPinned(bool isPinned, const DenseSequence & sequence, const Piece & piece);

  Device &                     m_Device;
  RunContext &                 m_Context;
  std::vector<int>             m_Processors;
  std::unique_ptr<StagingRing> m_Staging; ///< a lane for each loader, then one for each storer
  std::vector<bool>            m_InputIsPinned;
  bool                         m_OutputIsPinned{ false };
  DeviceStream                 m_LoadStream{ m_Device };
  DeviceStream                 m_StoreStream{ m_Device };
  std::mutex                   m_PixelsMutex; ///< of what uses these:
  ArenaBlock                   m_PixelsToDevice;
  ArenaBlock                   m_PixelsToHost;
};

} // namespace chunkwise

#endif
