/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSlabForest_h
#define chunkwiseSlabForest_h

#include "chunkwiseInt128.h"
#include "chunkwiseReconstructionKey.h"

#include <algorithm>
#include <functional>
#include <vector>

// The parts of a reconstruction in slabs besides the flood of each slab.
//
// A slab's state is a fixed point: no voxel can be raised by its neighbors. A voxel is open if its state is below its
// mask. Two open neighbors have the same state, and no voxel beside an open one has a larger state. So what raises an
// open plateau from outside comes through voxels of it that lie on a border plane, and what leads through the slab from
// one border voxel to another, and matters, leads through one open plateau. Everything else is final.
namespace chunkwise
{

/** Division of 32-bit numbers by one that is known late: a product with 2^64 over it, rounded up, is exact (Lemire,
 * Kaser, Kurz, "Faster remainder by direct computation", Softw. Pract. Exper. 49(6), 2019). */
class FastDivisor
{
public:
  explicit FastDivisor(std::uint32_t divisor)
    : m_Factor(divisor > 1 ? UINT64_MAX / divisor + 1 : 0)
  {}
  std::uint32_t
  Divide(std::uint32_t number) const
  {
    return m_Factor ? static_cast<std::uint32_t>((static_cast<UInt128>(m_Factor) * number) >> 64) : number;
  }

private:
  std::uint64_t m_Factor; ///< 0: by one
};

/** Planes of voxels that follow each other in memory. Voxels are numbered in the order of memory. */
struct SlabGrid
{
  struct Step
  {
    int          x;
    int          y;
    int          plane;
    std::int64_t offset;
  };

  /** The place of a voxel. */
  struct Place
  {
    std::int64_t x;
    std::int64_t y;
    std::int64_t plane;
  };

  std::int64_t      width; ///< of a plane
  std::int64_t      height;
  std::int64_t      planes;
  std::int64_t      planeVoxels;
  std::vector<Step> steps; ///< those within a plane first
  std::size_t       stepsInPlane{ 0 };
  FastDivisor       byWidth;
  FastDivisor       byPlane;

  SlabGrid(std::int64_t theWidth, std::int64_t theHeight, std::int64_t thePlanes, bool fullyConnected)
    : width(theWidth)
    , height(theHeight)
    , planes(thePlanes)
    , planeVoxels(theWidth * theHeight)
    , byWidth(static_cast<std::uint32_t>(theWidth))
    , byPlane(static_cast<std::uint32_t>(theWidth * theHeight))
  {
    for (const int plane : { 0, -1, 1 })
    {
      for (int i = 0; i < 9; ++i)
      {
        const int x = i % 3 - 1;
        const int y = i / 3 - 1;
        const int moved = (x != 0) + (y != 0) + (plane != 0);
        if (moved == 1 || (moved > 1 && fullyConnected))
        {
          steps.push_back({ x, y, plane, x + y * width + plane * planeVoxels });
        }
      }
      stepsInPlane = plane == 0 ? steps.size() : stepsInPlane;
    }
  }

  std::int64_t
  GetVoxels() const
  {
    return planes * planeVoxels;
  }

  Place
  Locate(std::uint32_t voxel) const
  {
    const std::uint32_t row = byWidth.Divide(voxel);
    const std::uint32_t plane = byPlane.Divide(voxel);
    return { static_cast<std::int64_t>(voxel) - row * width, row - plane * height, plane };
  }

  /** Calls visit(neighbor) for each neighbor of a voxel that lies in the rows [firstRow, lastRow) of its plane, by the
   * steps [first, last). */
  template <typename TVisit>
  CHUNKWISE_ALWAYS_INLINE void
  ForEachNeighbor(std::uint32_t voxel, const Place & at, std::int64_t firstRow, std::int64_t lastRow, std::size_t first,
                  std::size_t last, TVisit && visit) const
  {
    const bool inner =
      at.x > 0 && at.x + 1 < width && at.y > firstRow && at.y + 1 < lastRow && at.plane > 0 && at.plane + 1 < planes;
    for (std::size_t i = first; i < last; ++i)
    {
      const Step & step = steps[i];
      if (inner || (IsIn(at.x + step.x, 0, width) && IsIn(at.y + step.y, firstRow, lastRow) &&
                    IsIn(at.plane + step.plane, 0, planes)))
      {
        visit(static_cast<std::uint32_t>(voxel + step.offset));
      }
    }
  }
  template <typename TVisit>
  CHUNKWISE_ALWAYS_INLINE void
  ForEachNeighbor(std::uint32_t voxel, TVisit && visit) const
  {
    ForEachNeighbor(voxel, Locate(voxel), 0, height, 0, steps.size(), visit);
  }

private:
  static bool
  IsIn(std::int64_t i, std::int64_t first, std::int64_t last)
  {
    return i >= first && i < last;
  }
};

/** Mask and state of a slab, as their voxels' bits. */
template <typename TKey>
struct SlabVoxels
{
  const TKey *             mask;
  TKey *                   state;
  ReconstructionCode<TKey> code;

  TKey
  GetMask(std::uint32_t voxel) const
  {
    return code.FromBits(mask[voxel]);
  }
  TKey
  GetState(std::uint32_t voxel) const
  {
    return code.FromBits(state[voxel]);
  }
  bool
  IsOpen(std::uint32_t voxel) const
  {
    return GetState(voxel) < GetMask(voxel);
  }
  SlabVoxels
  From(std::int64_t voxel) const
  {
    return { mask + voxel, state + voxel, code };
  }
};

/** The voxels beyond a plane, contracted to the voxels of the plane: a forest of their numbers. An edge has the largest
 * key that gets from one end to its opposite end. Ways within the plane are not told. Memory is the owner's. */
template <typename TKey>
struct PlaneForest
{
  static constexpr std::uint32_t None = UINT32_MAX;

  std::uint32_t * parent{ nullptr };
  TKey *          capacity{ nullptr }; ///< of the edge to the parent
  std::int64_t    size{ 0 };

  static std::size_t
  GetBytes(std::int64_t planeVoxels)
  {
    return static_cast<std::size_t>(planeVoxels) * (sizeof(std::uint32_t) + sizeof(TKey));
  }
  /** `memory` has GetBytes(planeVoxels) and is aligned for a key. */
  PlaneForest(void * memory, std::int64_t planeVoxels)
    : parent(static_cast<std::uint32_t *>(memory))
    , size(planeVoxels)
  {
    // 64-bit keys come first, so that both are aligned.
    if (sizeof(TKey) > sizeof(std::uint32_t))
    {
      capacity = static_cast<TKey *>(memory);
      parent = reinterpret_cast<std::uint32_t *>(capacity + planeVoxels);
    }
    else
    {
      capacity = reinterpret_cast<TKey *>(parent + planeVoxels);
    }
  }
  void
  Clear()
  {
    std::fill_n(parent, size, None);
  }
};

/** The other direction of a forest's edges: from a voxel to those whose parent it is. */
class ForestChildren
{
public:
  static constexpr std::uint32_t None = UINT32_MAX;

  static std::size_t
  GetBytes(std::int64_t planeVoxels)
  {
    return static_cast<std::size_t>(planeVoxels) * 2 * sizeof(std::uint32_t);
  }
  explicit ForestChildren(void * memory)
    : m_First(static_cast<std::uint32_t *>(memory))
  {}
  template <typename TKey>
  void
  Find(const PlaneForest<TKey> & forest)
  {
    m_Next = m_First + forest.size;
    std::fill_n(m_First, forest.size, None);
    for (std::int64_t i = 0; i < forest.size; ++i)
    {
      if (forest.parent[i] != None)
      {
        m_Next[i] = m_First[forest.parent[i]];
        m_First[forest.parent[i]] = static_cast<std::uint32_t>(i);
      }
    }
  }
  template <typename TVisit>
  void
  ForEach(std::uint32_t number, TVisit && visit) const
  {
    for (std::uint32_t child = m_First[number]; child != None; child = m_Next[child])
    {
      visit(child);
    }
  }

private:
  std::uint32_t * m_First;
  std::uint32_t * m_Next{ nullptr };
};

/** Asked now and then whether to stop. */
using StopFunction = std::function<bool()>;

} // namespace chunkwise

#endif
