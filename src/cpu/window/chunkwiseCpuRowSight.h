/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuRowSight_h
#define chunkwiseCpuRowSight_h

#include <algorithm>
#include <cstdint>

// The parts of a row in which windows see nothing of a mask, and the parts in which all voxels that they see are inside
// it: in real masks nearly everywhere, so that sums of weights are known without adding them up.
namespace chunkwise
{

/** The parts of a mask that the windows of a row see. */
struct RowSight
{
  /** Voxels of a part: a vector of any level. 64 parts are the longest row of a tile. */
  static constexpr std::int64_t Part = 16;

  /** Bits of the parts in which some window may see a voxel inside, and of those in which some may see one outside. */
  std::uint64_t some{ ~std::uint64_t{ 0 } };
  std::uint64_t lacks{ ~std::uint64_t{ 0 } };

  static RowSight
  Nothing()
  {
    return { 0, 0 };
  }
  void
  Join(const RowSight & other)
  {
    some |= other.some;
    lacks |= other.lacks;
  }
  std::uint64_t
  Whole() const
  {
    return some & ~lacks;
  }
  std::uint64_t
  Cut() const
  {
    return some & lacks;
  }
};

/** Calls f(begin, end) for runs of the parts whose bits are set, of a row of n voxels. */
template <typename TFunctor>
inline void
ForEachRun(std::uint64_t bits, std::int64_t n, TFunctor && f)
{
  const std::int64_t parts = (n + RowSight::Part - 1) / RowSight::Part;
  bits &= ~std::uint64_t{ 0 } >> (64 - parts);
  while (bits != 0)
  {
    const int           first = __builtin_ctzll(bits);
    const std::uint64_t others = ~(bits >> first);
    const int           last = first + (others != 0 ? __builtin_ctzll(others) : 64);
    f(first * RowSight::Part, std::min(last * RowSight::Part, n));
    bits &= last < 64 ? ~std::uint64_t{ 0 } << last : 0;
  }
}

/** The functions of a level that WindowSweep::Pair needs. */
template <typename TAcc>
struct PairFunctions
{
  /** values[i] = 0 where the mask is 0; weights[i] = 1 where it is not, else 0. */
  void (*split)(TAcc * values, TAcc * weights, const std::uint8_t * mask, std::int64_t n);
  /** Bits of `parts` parts of a mask in which some voxel is not 0, and of those in which some is 0. */
  RowSight (*look)(const std::uint8_t * mask, std::int64_t parts);
};

/** The sight of windows of 2 radius + 1 voxels in a row of a mask that begins `radius` voxels before the row. Memory of
 * the mask, and beyond it up to the next multiple of a part, is `width` voxels long. */
template <typename TAcc>
inline RowSight
SightOf(const PairFunctions<TAcc> & functions, const std::uint8_t * mask, std::int64_t width, std::int64_t radius)
{
  const std::int64_t parts = width / RowSight::Part;
  if (parts > 64)
  {
    return {};
  }
  const RowSight row = functions.look(mask, parts);
  RowSight       sight = row;
  for (std::int64_t part = 1; part <= (2 * radius + RowSight::Part - 1) / RowSight::Part; ++part)
  {
    sight.Join({ row.some >> part, row.lacks >> part });
  }
  return sight;
}

} // namespace chunkwise

#endif
