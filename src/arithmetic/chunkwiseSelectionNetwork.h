/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSelectionNetwork_h
#define chunkwiseSelectionNetwork_h

#include "chunkwiseTypes.h"

#include <utility>

// Networks of minima and maxima that sort, or that find some ranks: Batcher's odd-even merging (Knuth, The Art of
// Computer Programming 3, 5.3.4), without the comparators that the wanted ranks do not need. They are made when the
// program is compiled; a backend runs them on the keys that it has, a vector or a register of them on each wire.
namespace chunkwise
{

/** One of two wires gets the lesser key, the other the greater, as far as anything needs them. */
struct Comparator
{
  int  low{ 0 };
  int  high{ 0 };
  bool keepsLow{ true };
  bool keepsHigh{ true };
  /** Nothing has used the wire before. */
  bool beginsLow{ false };
  bool beginsHigh{ false };
};

/** Comparators of VWires wires, and the wires in ascending order of the keys that they have in the end. */
template <int VWires>
struct Network
{
  static constexpr int Most = VWires * 10;
  Comparator           comparators[Most]{};
  int                  count{ 0 };
  int                  order[VWires]{};

  constexpr void
  Compare(int low, int high)
  {
    comparators[count].low = low;
    comparators[count++].high = high;
  }

  /** Batcher's odd-even merge of two sorted lists: those at even places are merged, and those at odd places; then
   * neighbours are compared. */
  constexpr void
  Merge(const int * a, int m, const int * b, int n, int * to)
  {
    if (m == 0 || n == 0)
    {
      for (int i = 0; i < m + n; ++i)
      {
        to[i] = m == 0 ? b[i] : a[i];
      }
      return;
    }
    if (m == 1 && n == 1)
    {
      Compare(a[0], b[0]);
      to[0] = a[0];
      to[1] = b[0];
      return;
    }
    int       merged[2][VWires]{};
    const int sizes[2] = { (m + 1) / 2 + (n + 1) / 2, m / 2 + n / 2 };
    for (int odd = 0; odd < 2; ++odd)
    {
      int partsA[VWires]{};
      int partsB[VWires]{};
      for (int i = odd; i < m; i += 2)
      {
        partsA[i / 2] = a[i];
      }
      for (int i = odd; i < n; i += 2)
      {
        partsB[i / 2] = b[i];
      }
      Merge(partsA, (m + 1 - odd) / 2, partsB, (n + 1 - odd) / 2, merged[odd]);
    }
    to[0] = merged[0][0];
    int k = 1;
    for (int i = 0; i + 1 < sizes[0] || i < sizes[1]; ++i)
    {
      if (i + 1 < sizes[0] && i < sizes[1])
      {
        Compare(merged[1][i], merged[0][i + 1]);
      }
      if (i < sizes[1])
      {
        to[k++] = merged[1][i];
      }
      if (i + 1 < sizes[0])
      {
        to[k++] = merged[0][i + 1];
      }
    }
  }

  constexpr void
  Sort(int begin, int n, int * to)
  {
    if (n == 1)
    {
      to[0] = begin;
      return;
    }
    int lower[VWires]{};
    int upper[VWires]{};
    Sort(begin, n / 2, lower);
    Sort(begin + n / 2, n - n / 2, upper);
    Merge(lower, n / 2, upper, n - n / 2, to);
  }

  /** Leaves out what the keys of ranks first to last do not need. */
  constexpr void
  Prune(int first, int last)
  {
    bool needed[VWires]{};
    for (int i = first; i <= last; ++i)
    {
      needed[order[i]] = true;
    }
    bool takes[Most]{};
    for (int i = count - 1; i >= 0; --i)
    {
      Comparator & c = comparators[i];
      c.keepsLow = needed[c.low];
      c.keepsHigh = needed[c.high];
      takes[i] = c.keepsLow || c.keepsHigh;
      if (takes[i])
      {
        needed[c.low] = needed[c.high] = true;
      }
    }
    bool begun[VWires]{};
    int  kept = 0;
    for (int i = 0; i < count; ++i)
    {
      if (takes[i])
      {
        Comparator c = comparators[i];
        c.beginsLow = !begun[c.low];
        c.beginsHigh = !begun[c.high];
        begun[c.low] = begun[c.high] = true;
        comparators[kept++] = c;
      }
    }
    count = kept;
  }
};

/** Selects the ranks VFirst to VLast of VWires keys in any order. */
template <int VWires, int VFirst, int VLast>
struct SelectionNetwork
{
  static constexpr int Wires = VWires;

  static constexpr Network<VWires>
  Make()
  {
    Network<VWires> network;
    network.Sort(0, VWires, network.order);
    network.Prune(VFirst, VLast);
    return network;
  }
  static constexpr Network<VWires> Value = Make();
};

template <int VWires>
using SortingNetwork = SelectionNetwork<VWires, 0, VWires - 1>;

/** Merges two lists of VEach; of the result the ranks VFirst to VLast. */
template <int VEach, int VFirst, int VLast>
struct MergingNetwork
{
  static constexpr int Wires = 2 * VEach;

  static constexpr Network<Wires>
  Make()
  {
    Network<Wires> network;
    int            wires[Wires]{};
    for (int i = 0; i < Wires; ++i)
    {
      wires[i] = i;
    }
    network.Merge(wires, VEach, wires + VEach, VEach, network.order);
    network.Prune(VFirst, VLast);
    return network;
  }
  static constexpr Network<Wires> Value = Make();
};

/** The numbers of a network's comparators. */
template <typename TNetwork>
using ComparatorsOf = std::make_integer_sequence<int, TNetwork::Value.count>;

/** Runs a comparator of a network. load(wire) gives the key of a wire that nothing has used before. */
template <typename TNetwork, int VNumber, typename T, typename TLoad, typename TLesser, typename TGreater>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE void
RunComparator(T * keys, const TLoad & load, const TLesser & lesser, const TGreater & greater)
{
  constexpr Comparator c = TNetwork::Value.comparators[VNumber];
  if constexpr (c.beginsLow)
  {
    keys[c.low] = load(c.low);
  }
  if constexpr (c.beginsHigh)
  {
    keys[c.high] = load(c.high);
  }
  const T a = keys[c.low];
  const T b = keys[c.high];
  if constexpr (c.keepsLow)
  {
    keys[c.low] = lesser(a, b);
  }
  if constexpr (c.keepsHigh)
  {
    keys[c.high] = greater(a, b);
  }
}

/** Runs all of them, one after the other. */
template <typename TNetwork, typename T, typename TLoad, typename TLesser, typename TGreater, int... VNumbers>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE void
RunNetwork(T * keys, const TLoad & load, const TLesser & lesser, const TGreater & greater,
           std::integer_sequence<int, VNumbers...>)
{
  (RunComparator<TNetwork, VNumbers>(keys, load, lesser, greater), ...);
}

/** The wire that has the key of a rank. */
template <typename TNetwork, int VRank>
inline constexpr int WireOf = TNetwork::Value.order[VRank];

/** ranked[i] becomes the key of rank VFirst + i. */
template <typename TNetwork, int VFirst, typename T, int... VNumbers>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE void
TakeRanks(const T * keys, T * ranked, std::integer_sequence<int, VNumbers...>)
{
  ((ranked[VNumbers] = keys[std::integral_constant<int, WireOf<TNetwork, VFirst + VNumbers>>::value]), ...);
}

} // namespace chunkwise

#endif
