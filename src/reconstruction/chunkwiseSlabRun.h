/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSlabRun_h
#define chunkwiseSlabRun_h

#include "chunkwiseSlabKernels.h"
#include "chunkwiseSlabStore.h"

namespace chunkwise
{

/** A run in slabs: the two passes over the image, or the one over pieces with whole volumes. All but Stop and
 * GetFraction is the business of one thread. */
class SlabRun
{
public:
  SlabRun(Manager & manager, const SlabRequest & request, const ReconstructionOperation & operation,
          const SlabPlanner & planner, const SlabPlan & plan, Executor & executor, SlabReport & report);
  ~SlabRun();

  /** Throws what ReconstructInSlabs throws. */
  void
  Go();
  void
  Stop()
  {
    m_Progress.Stop();
  }
  void
  SetPoll(std::function<void()> poll)
  {
    m_Progress.SetPoll(std::move(poll));
  }
  double
  GetFraction() const
  {
    return m_Progress.GetFraction();
  }

private:
  void
  CopySourcesInOrder();
  void
  StartThreads();
  std::vector<SlabToRead>
  ListReads() const;
  /** Returns the slot that holds the piece that comes next. */
  std::size_t
  WaitForPiece();
  void
  ReleasePiece();
  /** The state that the next piece is written from, once it may be changed. */
  char *
  WaitForState();
  void
  Write(const Box & box);
  std::vector<BufferView>
  GetInputs(std::size_t slot, const Box & box) const;
  void
  RunPieces();
  void
  RunVolume(const Box & volume);
  template <typename TKey>
  void
  Gather(const Box & volume, std::int64_t slabs);
  template <typename TKey>
  void
  GatherSlab(const Box & volume, const Box & box, SlabRecord & record, PlaneForest<TKey> & forest,
             PlaneForest<TKey> & next, ForestChildren & children);
  template <typename TKey>
  void
  Finish(const Box & volume, std::int64_t slabs);
  template <typename TKey>
  void
  RaisePlane(const SlabVoxels<TKey> & voxels, const SlabGrid & grid) const;
  template <typename TKey>
  SlabVoxels<TKey>
  VoxelsOf(char * mask, char * state) const;
  template <typename TKey>
  void
  Contract(const SlabVoxels<TKey> & voxels, std::int64_t planes, PlaneForest<TKey> & forest, PlaneForest<TKey> & next,
           ForestChildren & children);
  template <typename TKey>
  std::int64_t
  FindFirstPlane(std::int64_t last, int bands, std::size_t room) const;
  template <typename TKey>
  void
  LetIn(const SlabVoxels<TKey> & voxels, const SlabGrid & grid, const PlaneForest<TKey> & forest,
        ForestChildren & children, char * state, char * mask, const Box & box);
  bool
  IsFlat(const Box & volume, const char * mask, const Box & box);
  void
  Report();

  const SlabRequest &                       m_Request;
  const ReconstructionOperation &           m_Operation;
  const SlabPlanner &                       m_Planner;
  const SlabPlan &                          m_Plan;
  Executor &                                m_Executor;
  SlabReport &                              m_Report;
  const Box                                 m_Image;
  const PixelType                           m_Kind;
  const SlabGeometry                        m_Geometry;
  std::vector<std::shared_ptr<ImageSource>> m_Sources;
  std::shared_ptr<SlabMemory>               m_Memory;
  SlabProgress                              m_Progress;
  StopMonitor                               m_StopMonitor;
  SlabKernels                               m_Kernels;
  Spool                                     m_Spool;
  std::vector<SlabRecord>                   m_Records; ///< of the volume at hand
  unsigned char                             m_FirstVoxel[8]{};
  const bool                                m_ChecksFlat;
  bool                                      m_IsFlat{ false };
  std::int64_t                              m_Read{ 0 }; ///< pieces that were waited for, and put
  std::int64_t                              m_Put{ 0 };
  std::uint64_t                             m_BytesCopied{ 0 };
  std::shared_ptr<SlabReader>               m_Reader;
  std::shared_ptr<SlabWriter>               m_Writer;
  // The last members: their threads use the memory.
  std::unique_ptr<Running> m_Reading;
  std::unique_ptr<Running> m_Writing;
};

} // namespace chunkwise

#endif
