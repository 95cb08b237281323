/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFixpointWork_h
#define chunkwiseFixpointWork_h

#include "chunkwisePlanner.h"

#include <vector>

namespace chunkwise
{

/** What is left to do of a Fixpoint after each part of the region has come to its own fixed point: visits to where
 * something may still change, at first the seams between the parts.
 *
 * The region is a grid of cells: the parts, cut into bands across one axis, so that a visit to a seam need not be one
 * to the parts. A visit covers bands beside each other. Where it changes its border the bands beyond become dirty, and
 * the visit to them reaches twice as far: what stays near a seam costs little, and what goes far takes few visits.
 * The last dirty band goes first: the parts are made in order, so that most of what is left goes the other way.
 * Visits whose halos meet are not under way at the same time, so that the state that one reads is whole. */
class FixpointWork
{
public:
  struct Visit
  {
    Box           box{};
    std::uint32_t sides{ 0 }; ///< as KernelCall::changedSides; the visitor fills it
    Coordinates   first{};    ///< cell
    Coordinates   last{};     ///< cell, not included
  };

  /** `parts` make up the region; `halo` is what a voxel depends on. */
  FixpointWork(const Box & region, const Box & image, const Halo & halo, const std::vector<Box> & parts, int bandAxis);

  /** The next visit; false if none may begin now. */
  bool
  Take(Visit & visit);
  void
  Finish(const Visit & visit);
  /** The visit was not made, or not to its end: then what it has changed is not known beyond. */
  void
  PutBack(const Visit & visit);
  /** Visits become shorter than this one from now on, because memory failed for it. */
  void
  Shorten(const Visit & visit);
  bool
  CanShorten(const Visit & visit) const
  {
    return visit.last[m_BandAxis] - visit.first[m_BandAxis] > 1;
  }
  /** Everything is to be visited. */
  void
  MarkAll();
  bool
  IsDone() const
  {
    return m_Dirty == 0 && m_Running.empty();
  }

  std::int64_t
  GetVisits() const
  {
    return m_Visits;
  }
  std::int64_t
  GetVisitedVoxels() const
  {
    return m_VisitedVoxels;
  }

private:
  struct Cell
  {
    bool         dirty{ false };
    std::int64_t below{ 0 }; ///< voxels that a visit to it is to reach further, down and up the bands
    std::int64_t above{ 0 };
  };

  Cell &
  At(const Coordinates & index);
  Box
  BoxOf(const Coordinates & first, const Coordinates & last) const;
  bool
  IsBlocked(const Box & box) const;
  void
  Mark(Cell & cell);
  template <typename TBody>
  static void
  ForEach(const Coordinates & first, const Coordinates & last, TBody && body);
  /** The cells of a visit and those that touch it. */
  template <typename TBody>
  void
  ForEachAround(const Visit & visit, TBody && body);
  void
  Forget(const Visit & visit);

  const Box                 m_Image;
  const Halo                m_Halo;
  const int                 m_BandAxis;
  std::vector<std::int64_t> m_Cuts[MaxDimension]; ///< the cells' borders
  Coordinates               m_Count{};
  std::vector<Cell>         m_Cells;
  std::int64_t              m_Longest{ 1 }; ///< visit across bands, voxels
  std::vector<Box>          m_Running;
  std::int64_t              m_Dirty{ 0 };
  std::int64_t              m_Visits{ 0 };
  std::int64_t              m_VisitedVoxels{ 0 };
};

} // namespace chunkwise

#endif
