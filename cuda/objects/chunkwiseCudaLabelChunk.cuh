/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaLabelChunk_cuh
#define chunkwiseCudaLabelChunk_cuh

#include "chunkwiseLabelNeighbors.h"

#include <cstdint>

// Labels of a chunk by union-find over runs of voxels within words of 32 bits. A run's parent is the run itself or an
// earlier one; only roots are given to others, so that parents may be replaced by theirs at any time (J. Jaiganesh, M.
// Burtscher, "A high-performance connected components implementation for GPUs", HPDC 2018).
namespace chunkwise
{

namespace
{

constexpr int Threads = 256;
constexpr int WordBits = 32;
using Word = std::uint32_t;

template <typename TId>
struct AtomicOf
{
  using Type = unsigned int;
};
template <>
struct AtomicOf<std::uint64_t>
{
  using Type = unsigned long long;
};

/** A quotient of numbers that are not negative: in 32 bits where they allow it, which is far faster. */
__device__ std::int64_t
           Quotient(std::int64_t number, std::int64_t by)
{
  return ((number | by) >> 32) == 0 ? static_cast<std::uint32_t>(number) / static_cast<std::uint32_t>(by) : number / by;
}

/** The position of a row along axes 1 and up. */
struct RowPlace
{
  std::int64_t at[MaxDimension];
};

/** A chunk and its arrays in scratch, see the kernels below. */
template <typename TId>
struct LabelChunk
{
  /** Marks the entry of a root that holds a label in place of a parent. */
  static constexpr TId IsLabel = TId{ 1 } << (8 * sizeof(TId) - 1);

  std::int64_t   extent[MaxDimension];
  std::int64_t   words; ///< of a row
  std::int64_t   rows;
  bool           wraps[MaxDimension];
  LabelNeighbors neighbors;
  Word *         foreground;
  Word *         links; ///< voxels that are linked to the one before
  TId *          firstRuns;
  TId *          parents;
  TId *          rootsBefore; ///< of each word

  __device__ std::int64_t
             CountWords() const
  {
    return words * rows;
  }
  /** The first voxels of runs, which lie within a word. */
  __device__ Word
  StartsOf(std::int64_t at) const
  {
    return foreground[at] & ~(links[at] & ~Word{ 1 });
  }
  __device__ TId
  RunOf(std::int64_t at, int i) const
  {
    const Word upTo = ~Word{ 0 } >> (WordBits - 1 - i);
    return firstRuns[at] + static_cast<TId>(__popc(StartsOf(at) & upTo) - 1);
  }
  __device__ bool
  IsForeground(std::int64_t row, std::int64_t x) const
  {
    return (foreground[row * words + x / WordBits] >> (x % WordBits) & 1) != 0;
  }
  __device__ TId
  RunAt(std::int64_t row, std::int64_t x) const
  {
    return RunOf(row * words + x / WordBits, static_cast<int>(x % WordBits));
  }
  __device__ RowPlace
  PlaceOf(std::int64_t row) const
  {
    RowPlace place{};
    for (int a = 1; a < MaxDimension; ++a)
    {
      const std::int64_t rest = Quotient(row, extent[a]);
      place.at[a] = row - rest * extent[a];
      row = rest;
    }
    return place;
  }
  /** The number of a row beside another one; -1: there is none. */
  __device__ std::int64_t
             RowBeside(const RowPlace & place, const LabelRow & neighbor) const
  {
    std::int64_t other = 0;
    std::int64_t stride = 1;
    for (int a = 1; a < MaxDimension; ++a)
    {
      std::int64_t at = place.at[a] + neighbor.offset[a];
      if (at < 0 || at >= extent[a])
      {
        if (!wraps[a])
        {
          return -1;
        }
        at = at < 0 ? at + extent[a] : at - extent[a];
      }
      other += at * stride;
      stride *= extent[a];
    }
    return other;
  }

  /** The root of a run; runs on the way are brought nearer to it. Other threads join roots meanwhile. */
  __device__ TId
  Find(TId run) const
  {
    TId parent = __ldcg(parents + run);
    if (parent != run)
    {
      TId before = run;
      for (TId next = __ldcg(parents + parent); next < parent; next = __ldcg(parents + parent))
      {
        __stcg(parents + before, next);
        before = parent;
        parent = next;
      }
    }
    return parent;
  }
  /** The root of a run while no roots are joined. Only entries of non-roots may change meanwhile, and only to their
   * root. */
  __device__ TId
  FindRoot(TId run) const
  {
    TId root = run;
    for (TId next = __ldcg(parents + root); next != root; next = __ldcg(parents + root))
    {
      root = next;
    }
    return root;
  }
  __device__ void
  Join(TId a, TId b) const
  {
    using Atomic = typename AtomicOf<TId>::Type;
    a = Find(a);
    b = Find(b);
    while (a != b)
    {
      const TId large = a > b ? a : b;
      const TId small = a > b ? b : a;
      const TId found = static_cast<TId>(
        atomicCAS(reinterpret_cast<Atomic *>(parents + large), static_cast<Atomic>(large), static_cast<Atomic>(small)));
      if (found == large)
      {
        return;
      }
      a = Find(found);
      b = Find(small);
    }
  }
  /** The label of a run, when roots have theirs. */
  __device__ TId
  LabelOf(TId run) const
  {
    const TId parent = parents[run];
    return ((parent & IsLabel) != 0 ? parent : parents[parent]) & ~IsLabel;
  }
};

__device__ std::int64_t
           ThreadNumber()
{
  return static_cast<std::int64_t>(blockIdx.x) * Threads + threadIdx.x;
}

} // namespace

} // namespace chunkwise

#endif
