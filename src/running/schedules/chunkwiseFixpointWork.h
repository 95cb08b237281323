/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFixpointWork_h
#define chunkwiseFixpointWork_h

#include "chunkwisePlanner.h"

#include <functional>
#include <vector>

namespace chunkwise
{

/** The work that is left of a Fixpoint after each part of the region has come to a separate fixed point: visits to
 * where something may still change, at first the seams between the parts.
 *
 * The region is a grid of cells: the parts, cut across two axes, so that a visit to a seam need not be one to the
 * parts. A visit is to a box of cells. If it changes its border, the cells beyond become dirty, and the visit to them
 * reaches further that way: changes that stay near a seam cost little, and changes that go far take few visits. The
 * last dirty cells go first: the parts are made in order, so that most of what is left goes the other way. Visits whose
 * halos meet do not run at the same time, so that the state that one reads is whole. */
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

  /** Whether a voxel of `layer` may change by what `held` has around it. */
  using IsActiveFunction = std::function<bool(const Box & layer, const Box & held)>;

  /** `parts` make up the region; `halo` is what a voxel depends on; parts were made in order along `sweepAxis`. A visit
   * has at most `mostVoxels`, or one cell. */
  FixpointWork(const Box & region, const Halo & halo, const std::vector<Box> & parts, int sweepAxis,
               std::int64_t mostVoxels, IsActiveFunction isActive);

  /** The next visit; false if none may begin now. */
  bool
  Take(Visit & visit);
  void
  Finish(const Visit & visit);
  /** The visit was not made, or not to its end: then what it has changed is not known beyond. */
  void
  PutBack(const Visit & visit);
  /** Visits become smaller than this one from now on, because memory failed for it. */
  void
  Shrink(const Visit & visit);
  /** Whether the visit is to more than one cell. */
  static bool
  CanShrink(const Visit & visit);
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
    bool dirty{ false };
    /** Voxels that a visit to it is to reach further, down and up each axis. */
    Coordinates below{};
    Coordinates above{};
  };

  void
  MakeCells(const std::vector<Box> & parts);
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
  /** Calls body for the cells of a visit and for the cells that touch it. */
  template <typename TBody>
  void
  ForEachAround(const Visit & visit, TBody && body);
  bool
  IsAxis(int a) const
  {
    return m_Halo.lower[a] > 0 || m_Halo.upper[a] > 0;
  }
  /** A layer of cells more; false if it is not there, taken, more than a visit may have, or for the most part clean if
   * `onlyDirty`. */
  bool
  Grow(Visit & visit, int axis, bool up, bool onlyDirty);
  void
  Forget(const Visit & visit);

  const Box                 m_Region;
  const Halo                m_Halo;
  const int                 m_SweepAxis;
  const IsActiveFunction    m_IsActive;
  std::vector<std::int64_t> m_Cuts[MaxDimension]; ///< the cells' borders
  Coordinates               m_Count{};
  std::vector<Cell>         m_Cells;
  Coordinates               m_Longest{};  ///< a visit along each axis, voxels
  std::int64_t              m_MostVoxels; ///< of a visit
  std::vector<Box>          m_Running;
  std::int64_t              m_Dirty{ 0 };
  std::int64_t              m_Visits{ 0 };
  std::int64_t              m_VisitedVoxels{ 0 };
};

} // namespace chunkwise

#endif
