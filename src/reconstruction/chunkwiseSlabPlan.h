/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSlabPlan_h
#define chunkwiseSlabPlan_h

#include "chunkwiseReconstructionKey.h"
#include "chunkwiseReconstructionOperation.h"
#include "chunkwiseSlabForest.h"
#include "chunkwiseSlabReconstruction.h"

namespace chunkwise
{

/** How the image is cut, and what lies in memory. */
struct SlabPlan
{
  /** Volumes are cut, into slabs that share a plane; else each piece has whole volumes. */
  bool inSlabs{ false };
  /** The pieces' extent is whole along axes below this one, and one voxel along those above. */
  int          axis{ 0 };
  std::int64_t planes{ 1 };      ///< of a piece; in slabs beside the shared one
  std::int64_t planeVoxels{ 1 }; ///< along the axes below
  bool         ahead{ false };   ///< reads the next piece and writes the last one meanwhile
  bool         onDevices{ false };
  std::size_t  pixelBytes{ 1 };
  int          inputs{ 1 };

  std::size_t scratch{ 0 };
  std::size_t buffer{ 0 };
  std::size_t forest{ 0 };
  std::size_t children{ 0 };
  std::size_t plane{ 0 };
  std::size_t bytes{ 0 };

  std::int64_t
  GetPlanesOfPiece() const
  {
    return planes + (inSlabs ? 1 : 0);
  }
  /** Pieces in memory that are read, or written, at a time. */
  int
  GetSlots() const
  {
    return ahead ? 2 : 1;
  }
  int
  GetBuffers() const
  {
    return GetSlots() * (inputs + 1) + (onDevices && inSlabs ? 1 : 0);
  }
  /** The bytes that the run allocates at its begin: the scratch and buffers. */
  std::size_t
  GetBlockBytes() const
  {
    return scratch + static_cast<std::size_t>(GetBuffers()) * buffer + (inSlabs ? 2 * forest + children + plane : 0);
  }
};

/** The pieces of a plan's image. */
class SlabGeometry
{
public:
  SlabGeometry(const SlabPlan & plan, const Box & image, bool fullyConnected);

  /** Whole along the plan's axis and those below it. */
  std::vector<Box>
  GetVolumes() const;
  std::int64_t
  CountSlabs() const;
  Box
  GetSlab(const Box & volume, std::int64_t slab) const;
  /** The pieces of all volumes, if they are not cut. */
  std::vector<Box>
  GetPieces() const;
  SlabGrid
  GetGrid(std::int64_t planes) const;

private:
  const SlabPlan & m_Plan;
  const Box        m_Image;
  const bool       m_FullyConnected;
};

/** Decides what a request's slabs are. */
class SlabPlanner
{
public:
  SlabPlanner(const Manager & manager, const SlabRequest & request, const ReconstructionOperation & operation,
              int concurrency);

  /** Throws BudgetError. */
  SlabPlan
  MakePlan() const;
  /** Bytes that sources and sink hold for all threads that read and write. */
  std::uint64_t
  GetHeldBytes() const
  {
    return m_Held;
  }
  /** The operation that floods a piece on the CPU. */
  std::shared_ptr<ReconstructionOperation>
  MakeFlood(const Box & piece) const;
  /** Slabs are thin: parts of the flood are cut across the longer of the last two axes. */
  static bool
  IsThin(const Box & piece)
  {
    return piece.Extent(2) > 1 && piece.Extent(2) < piece.Extent(1);
  }

private:
  bool
  PlanPieces(SlabPlan & plan, int axis, std::uint64_t & least) const;
  bool
  PlanSlabs(SlabPlan & plan, int axis, std::uint64_t & least) const;
  std::int64_t
  GetMostPlanes(int axis) const;
  std::int64_t
  CountPlane(int axis) const;
  bool
  Fit(SlabPlan & plan, int axis, bool inSlabs, std::int64_t first, std::int64_t last, std::uint64_t & least) const;
  SlabPlan
  Make(int axis, bool inSlabs, std::int64_t planes, bool ahead) const;
  void
  AddForests(SlabPlan & plan) const;
  std::size_t
  GetFloodScratch(const Box & piece) const;

  const SlabRequest &             m_Request;
  const ReconstructionOperation & m_Operation;
  const Coordinates               m_Extent;
  const PixelType                 m_Kind;
  const int                       m_Concurrency;
  const bool                      m_OnDevices;
  int                             m_LastAxis{ 0 };
  std::uint64_t                   m_Held{ 0 };
  bool                            m_AnyOrder{ true }; ///< of sources and sink
  bool                            m_SourcesInAnyOrder{ true };
};

} // namespace chunkwise

#endif
