/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaMedianNetworks_cuh
#define chunkwiseCudaMedianNetworks_cuh

#include "chunkwiseCudaRank.cuh"
#include "chunkwiseSelectionNetwork.h"

// Keys that networks of minima and maxima sort, and the lists of planes that windows of 5 x 5 x 5 voxels share.
namespace chunkwise
{

/** Threads of a block at most. */
inline constexpr int MedianThreads = 128;

/** The keys of a thread's outputs, in one register. */
template <typename TKey>
struct MedianKeys
{
  using Key = TKey;
  using Word = std::conditional_t<sizeof(TKey) <= 4, std::uint32_t, std::uint64_t>;
  static constexpr int Lines = sizeof(TKey) <= 2 ? 2 : 1;
  Word                 bits;

  __device__ __forceinline__ static MedianKeys
  From(Word first, Word second)
  {
    if constexpr (Lines > 1)
    {
      return { __byte_perm(first, second, 0x5410) };
    }
    else
    {
      return { first };
    }
  }
  __device__ __forceinline__ TKey
  Get(int line) const
  {
    return static_cast<TKey>(line == 0 ? bits : bits >> 16);
  }
};

template <typename TKey>
__device__ __forceinline__ MedianKeys<TKey>
                           Least(MedianKeys<TKey> a, MedianKeys<TKey> b)
{
  if constexpr (sizeof(TKey) <= 2)
  {
    return { __vminu2(a.bits, b.bits) };
  }
  else
  {
    return { min(a.bits, b.bits) };
  }
}
template <typename TKey>
__device__ __forceinline__ MedianKeys<TKey>
                           Greatest(MedianKeys<TKey> a, MedianKeys<TKey> b)
{
  if constexpr (sizeof(TKey) <= 2)
  {
    return { __vmaxu2(a.bits, b.bits) };
  }
  else
  {
    return { max(a.bits, b.bits) };
  }
}

/** Numbers of 32 bits are compared as such: that they become keys would take a tenth of the time. */
struct RealKeys
{
  using Key = std::uint32_t;
  using Word = std::uint32_t;
  static constexpr int Lines = 1;
  Word                 bits;

  __device__ __forceinline__ static RealKeys
  From(Word first, Word)
  {
    return { first };
  }
  __device__ __forceinline__ Key
  Get(int) const
  {
    return ToOrdered(bits, KeyForm::Real);
  }
};

__device__ __forceinline__ RealKeys
Least(RealKeys a, RealKeys b)
{
  return { __float_as_uint(fminf(__uint_as_float(a.bits), __uint_as_float(b.bits))) };
}
__device__ __forceinline__ RealKeys
Greatest(RealKeys a, RealKeys b)
{
  return { __float_as_uint(fmaxf(__uint_as_float(a.bits), __uint_as_float(b.bits))) };
}
__device__ __forceinline__ RealKeys
ToOrdered(RealKeys raw, KeyForm)
{
  return raw;
}

/** As they are in memory to ordered ones, but for NaN. */
template <typename TKey>
__device__ __forceinline__ MedianKeys<TKey>
                           ToOrdered(MedianKeys<TKey> raw, KeyForm form)
{
  if constexpr (sizeof(TKey) <= 2)
  {
    constexpr std::uint32_t signs = std::uint32_t{ SignBit<TKey> } * 0x10001u;
    return { form == KeyForm::Signed ? raw.bits ^ signs : raw.bits };
  }
  else
  {
    return { ToOrdered(static_cast<TKey>(raw.bits), form) };
  }
}

/** The keys of VCount ranks from VFirst on, by a network; load(wire) gives what it gets. */
template <typename TNetwork, int VFirst, int VCount, typename TKeys, typename TLoad>
__device__ __forceinline__ void
FindKeys(TKeys (&ranked)[VCount], const TLoad & load)
{
  TKeys keys[TNetwork::Wires];
  RunNetwork<TNetwork>(
    keys,
    load,
    [](TKeys a, TKeys b) { return Least(a, b); },
    [](TKeys a, TKeys b) { return Greatest(a, b); },
    ComparatorsOf<TNetwork>{});
  TakeRanks<TNetwork, VFirst>(keys, ranked, std::make_integer_sequence<int, VCount>{});
}

/** The keys of a list that a thread keeps in shared memory, where a warp has its own. */
template <typename TKeys>
struct KeptList
{
  std::uint32_t * words;

  __device__ __forceinline__ TKeys
  operator[](int k) const
  {
    return { words[k * 32] };
  }
  __device__ __forceinline__ void
  Set(int k, TKeys keys) const
  {
    words[k * 32] = keys.bits;
  }
};

/** The median of two pairs of planes and of one plane: the least, over the ways to divide its rank, of the greatest of
 * both. pick(below, at) chooses between the key of one rank less and that of the median. */
template <typename TKeys, typename TRest, typename TPick>
__device__ __forceinline__ TKeys
MedianOf125(const KeptList<TKeys> & first, const KeptList<TKeys> & second, const TRest & rest, TPick && pick)
{
  TKeys keys[27];
  FindKeys<MergingNetwork<50, 36, 62>, 36>(keys, [&](int wire) { return wire < 50 ? first[wire] : second[wire - 50]; });
  TKeys median = pick(keys[25], keys[26]);
#pragma unroll
  for (int j = 1; j <= 25; ++j)
  {
    median = Least(median, Greatest(pick(keys[25 - j], keys[26 - j]), rest[j - 1]));
  }
  return median;
}

template <typename TKeys>
__device__ __forceinline__ void
MergePlanes(const TKeys (&a)[25], const TKeys (&b)[25], const KeptList<TKeys> & pair)
{
  TKeys keys[50];
  FindKeys<MergingNetwork<25, 0, 49>, 0>(keys, [&](int wire) { return wire < 25 ? a[wire] : b[wire - 25]; });
#pragma unroll
  for (int k = 0; k < 50; ++k)
  {
    pair.Set(k, keys[k]);
  }
}

template <typename TKeys>
__device__ __forceinline__ void
Keep(const TKeys (&keys)[25], const KeptList<TKeys> & list)
{
#pragma unroll
  for (int k = 0; k < 25; ++k)
  {
    list.Set(k, keys[k]);
  }
}

/** Lists of two pairs of planes and of two planes: what three blocks of 128 threads keep just fills a multiprocessor
 * that has 228 KB. */
inline constexpr int KeptKeys = 2 * 50 + 2 * 25;

inline constexpr std::size_t
KeptBytes(int threads)
{
  return std::size_t{ KeptKeys } * static_cast<std::size_t>(threads) * sizeof(std::uint32_t);
}

/** Threads of a block that keeps such lists. */
inline int
ThreadsOfKeptLists()
{
  return static_cast<std::int64_t>(KeptBytes(MedianThreads)) <= SharedMemoryOfDevice() ? MedianThreads : 64;
}

template <typename TKeys>
__device__ __forceinline__ bool
IsNaNOf(TKeys raw, KeyForm form)
{
  if constexpr (std::is_same_v<TKeys, RealKeys>)
  {
    return isnan(__uint_as_float(raw.bits));
  }
  else
  {
    return sizeof(typename TKeys::Key) == 8 && form == KeyForm::Real && IsNaN(ToOrdered(raw.bits, form));
  }
}

/** Whether keys as they are in memory may have a NaN among them. */
struct NaNWatch
{
  float zero{ 0 };
  bool  is{ false };

  template <typename TKeys>
  __device__ __forceinline__ void
  See(TKeys raw, KeyForm form)
  {
    if constexpr (std::is_same_v<TKeys, RealKeys>)
    {
      // Zero times a number is zero, unless it is infinite or none.
      zero = __fmaf_rn(__uint_as_float(raw.bits), 0.0F, zero);
    }
    else if constexpr (sizeof(typename TKeys::Key) == 8)
    {
      is |= IsNaNOf(raw, form);
    }
  }
  __device__ __forceinline__ bool
  MayBe() const
  {
    return is || !(zero == 0.0F);
  }
  /** Whether one of the taps that it saw is a NaN. */
  template <typename TKeys, int VTaps>
  __device__ __forceinline__ bool
  IsIn(const TKeys (&taps)[VTaps]) const
  {
    bool isIn = is;
    if constexpr (std::is_same_v<TKeys, RealKeys>)
    {
      if (!(zero == 0.0f))
      {
#pragma unroll
        for (int t = 0; t < VTaps; ++t)
        {
          isIn |= isnan(__uint_as_float(taps[t].bits));
        }
      }
    }
    return isIn;
  }
};

} // namespace chunkwise

#endif
