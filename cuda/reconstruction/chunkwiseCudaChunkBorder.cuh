/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaChunkBorder_cuh
#define chunkwiseCudaChunkBorder_cuh

#include "chunkwiseCudaWavefront.cuh"

// The border of a chunk for methods that look at one voxel at a time: the states beyond are sources, and the chunks
// there are told which values can enter them.
namespace chunkwise
{

/** From an own voxel of the volume at position 0 to the same of the volume at another. */
template <typename TKey, typename TIndex>
__device__ void
MoveToVolume(const WavefrontImage<TKey> & image, TIndex position, const TKey *& mask, TKey *& state)
{
  if (position == 0)
  {
    return;
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    const auto n = static_cast<TIndex>(image.positions[a]);
    mask += position % n * image.maskStep[a];
    state += position % n * image.stateStep[a];
    position /= n;
  }
}

/** Calls body(mask, state, sides) for each voxel that the chunk holds beyond its own and that is a neighbour of the own
 * voxel `at`; `sides`: the sides that the step leaves by. */
template <typename TKey, typename TBody>
__device__ void
ForEachBeyond(const WavefrontImage<TKey> & image, bool fullyConnected, const std::int64_t (&at)[3], const TKey * mask,
              TKey * state, TBody && body)
{
  bool atBorder = false;
  for (int a = 0; a < 3; ++a)
  {
    atBorder = atBorder || (at[a] == 0 && image.before[a]) || (at[a] + 1 == image.extent[a] && image.after[a]);
  }
  if (!atBorder)
  {
    return;
  }
  for (int step = 0; step < 27; ++step)
  {
    const int     d[3] = { step % 3 - 1, step / 3 % 3 - 1, step / 9 - 1 };
    std::uint32_t sides = 0;
    bool          held = fullyConnected || (d[0] != 0) + (d[1] != 0) + (d[2] != 0) == 1;
    for (int a = 0; a < 3; ++a)
    {
      if (d[a] < 0 && at[a] == 0)
      {
        sides |= 1u << (2 * a);
        held = held && image.before[a];
      }
      else if (d[a] > 0 && at[a] + 1 == image.extent[a])
      {
        sides |= 2u << (2 * a);
        held = held && image.after[a];
      }
    }
    if (held && sides)
    {
      body(mask + d[0] + d[1] * image.maskStride[1] + d[2] * image.maskStride[2],
           state + d[0] + d[1] * image.stateStride[1] + d[2] * image.stateStride[2],
           sides);
    }
  }
}

/** The state of an own voxel, raised by what the chunks beyond have brought to their borders. */
template <typename TKey>
__device__ TKey
StateFromBeyond(const WavefrontImage<TKey> & image, const ReconstructionCode<TKey> & code, bool fullyConnected,
                const std::int64_t (&at)[3], const TKey * mask, TKey * state)
{
  const TKey limit = code.FromBits(*mask);
  TKey       key = code.FromBits(*state);
  if (key < limit)
  {
    ForEachBeyond(image, fullyConnected, at, mask, state, [&](const TKey *, const TKey * beyond, std::uint32_t) {
      key = max(key, min(code.FromBits(*beyond), limit));
    });
  }
  return key;
}

/** Stores the result of an own voxel, and marks the sides where the chunk beyond can take it further. */
template <typename TKey>
__device__ void
StoreAndTell(const WavefrontImage<TKey> & image, const ReconstructionCode<TKey> & code, bool fullyConnected,
             const std::int64_t (&at)[3], const TKey * mask, TKey * state, TKey key)
{
  if (code.FromBits(*state) != key)
  {
    *state = code.ToBits(key);
  }
  ForEachBeyond(
    image, fullyConnected, at, mask, state, [&](const TKey * limit, const TKey * beyond, std::uint32_t sides) {
      if (min(key, code.FromBits(*limit)) > code.FromBits(*beyond))
      {
        atomicOr(image.changedSides, sides);
      }
    });
}

} // namespace chunkwise

#endif
