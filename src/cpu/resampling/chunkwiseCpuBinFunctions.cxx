/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set, see chunkwiseCpuLevelFunctions.cxx.
#include "chunkwiseCpuBinRows.h"

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

struct BinPlus
{
  template <typename T>
  static T
  Join(T a, T b)
  {
    return static_cast<T>(a + b);
  }
};

/** NaN stays, or is taken. */
template <bool VLargest>
struct BinExtreme
{
  template <typename T>
  static T
  Join(T a, T b)
  {
    const bool isBetter = VLargest ? b > a : b < a;
    return (isBetter | (b != b)) ? b : a;
  }
};

template <typename TIn, typename TAcc, typename TJoin>
void
JoinBinRow(void * columnMemory, const void * voxelMemory, std::int64_t n, bool begins)
{
  TAcc * __restrict const columns = static_cast<TAcc *>(columnMemory);
  const TIn * __restrict const voxels = static_cast<const TIn *>(voxelMemory);
  if (begins)
  {
    for (std::int64_t i = 0; i < n; ++i)
    {
      columns[i] = static_cast<TAcc>(voxels[i]);
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i)
  {
    columns[i] = TJoin::Join(columns[i], static_cast<TAcc>(voxels[i]));
  }
}

template <typename T, typename TJoin>
void
JoinBinGroups(void * resultMemory, const void * columnMemory, std::int64_t group, std::int64_t n, bool begins)
{
  T * __restrict const results = static_cast<T *>(resultMemory);
  const T * __restrict const columns = static_cast<const T *>(columnMemory);
  if (group == 2 && begins)
  {
    for (std::int64_t i = 0; i < n; ++i)
    {
      results[i] = TJoin::Join(columns[2 * i], columns[2 * i + 1]);
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i)
  {
    T result = begins ? columns[i * group] : results[i];
    for (std::int64_t k = begins ? 1 : 0; k < group; ++k)
    {
      result = TJoin::Join(result, columns[i * group + k]);
    }
    results[i] = result;
  }
}

template <typename TIn, typename TAcc>
void
WeighBinRow(void * columnMemory, const void * voxelMemory, std::int64_t n, std::int64_t factor, bool begins)
{
  TAcc * __restrict const columns = static_cast<TAcc *>(columnMemory);
  const TIn * __restrict const voxels = static_cast<const TIn *>(voxelMemory);
  const TAcc weight = static_cast<TAcc>(factor);
  if (begins)
  {
    for (std::int64_t i = 0; i < n; ++i)
    {
      columns[i] = TAcc{} + static_cast<TAcc>(voxels[i]) * weight;
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i)
  {
    columns[i] += static_cast<TAcc>(voxels[i]) * weight;
  }
}

template <typename T>
void
WeighBinGroups(void * resultMemory, const void * columnMemory, std::int64_t factor, const std::int64_t * weights,
               std::int64_t n)
{
  T * __restrict const results = static_cast<T *>(resultMemory);
  const T * __restrict const columns = static_cast<const T *>(columnMemory);
  if (factor == 2)
  {
    for (std::int64_t i = 0; i < n; ++i)
    {
      const T * const at = columns + 2 * i;
      results[i] = T{} + at[0] + at[1] * T{ 3 } + at[2] * T{ 3 } + at[3];
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i)
  {
    T result{};
    for (std::int64_t k = 0; k < 3 * factor - 2; ++k)
    {
      result += columns[i * factor + k] * static_cast<T>(weights[k]);
    }
    results[i] = result;
  }
}

template <typename T, typename TNarrow, typename TWide>
void
FillBinKind(BinLevel & level, int kind)
{
  if constexpr (static_cast<T>(0.5) > T{ 0 })
  {
    level.weigh[kind][static_cast<int>(Accumulator::Float64)] = WeighBinRow<T, double>;
  }
  else
  {
    level.weigh[kind][static_cast<int>(Accumulator::Int32)] = WeighBinRow<T, std::int32_t>;
    level.weigh[kind][static_cast<int>(Accumulator::Int64)] = WeighBinRow<T, std::int64_t>;
    level.weigh[kind][static_cast<int>(Accumulator::Int128)] = WeighBinRow<T, Int128>;
  }
  level.add[kind][0] = JoinBinRow<T, TNarrow, BinPlus>;
  level.add[kind][1] = JoinBinRow<T, TWide, BinPlus>;
  level.join[kind][0] = JoinBinRow<T, T, BinExtreme<false>>;
  level.join[kind][1] = JoinBinRow<T, T, BinExtreme<true>>;
  level.joinGroups[kind][0] = JoinBinGroups<T, BinExtreme<false>>;
  level.joinGroups[kind][1] = JoinBinGroups<T, BinExtreme<true>>;
}

BinLevel
MakeBinLevel()
{
  BinLevel level{};
  FillBinKind<std::uint8_t, std::int32_t, std::int64_t>(level, 0);
  FillBinKind<std::int8_t, std::int32_t, std::int64_t>(level, 1);
  FillBinKind<std::uint16_t, std::int32_t, std::int64_t>(level, 2);
  FillBinKind<std::int16_t, std::int32_t, std::int64_t>(level, 3);
  FillBinKind<std::uint32_t, std::int64_t, Int128>(level, 4);
  FillBinKind<std::int32_t, std::int64_t, Int128>(level, 5);
  FillBinKind<std::uint64_t, Int128, Int128>(level, 6);
  FillBinKind<std::int64_t, Int128, Int128>(level, 7);
  FillBinKind<float, double, double>(level, 8);
  FillBinKind<double, double, double>(level, 9);
  level.addGroups[static_cast<int>(Accumulator::Int32)] = JoinBinGroups<std::int32_t, BinPlus>;
  level.addGroups[static_cast<int>(Accumulator::Int64)] = JoinBinGroups<std::int64_t, BinPlus>;
  level.addGroups[static_cast<int>(Accumulator::Int128)] = JoinBinGroups<Int128, BinPlus>;
  level.addGroups[static_cast<int>(Accumulator::Float64)] = JoinBinGroups<double, BinPlus>;
  level.weighGroups[static_cast<int>(Accumulator::Int32)] = WeighBinGroups<std::int32_t>;
  level.weighGroups[static_cast<int>(Accumulator::Int64)] = WeighBinGroups<std::int64_t>;
  level.weighGroups[static_cast<int>(Accumulator::Int128)] = WeighBinGroups<Int128>;
  level.weighGroups[static_cast<int>(Accumulator::Float64)] = WeighBinGroups<double>;
  return level;
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
