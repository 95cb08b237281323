/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaBoxQuery_cuh
#define chunkwiseCudaBoxQuery_cuh

#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCudaBoxStatistic.cuh"
#include "chunkwiseCudaWindow.cuh"

#include <cstdint>
#include <type_traits>

// The common code of the two queries of box statistics: axes, and the stored results. Kernels are compiled for each
// common kind of the output, and once for all rare ones: a choice at run time makes their innermost loops longer.
namespace chunkwise
{

/** BoxAxis as the queries of a chunk have it: positions count from where the table begins, so that none is below 0. */
template <typename TIndex>
struct QueryAxis
{
  int    axis;
  TIndex radius;
  TIndex length;
  TIndex end;    ///< the image's last position
  TIndex stride; ///< in the table
  TIndex first;  ///< the position of the output's first voxel

  __device__ BoxTerms<TIndex>
             TermsOf(TIndex position, TIndex r, TIndex & voxels) const
  {
    const TIndex           reach = min(r, radius);
    const TIndex           from = max(position - reach, TIndex(0));
    const TIndex           last = min(position + reach, end);
    const TIndex           begin = last & -length;
    const bool             meetsTwo = from < begin;
    const BoxTerms<TIndex> terms{
      last * stride, (from - 1) * stride, (begin - 1) * stride, from > (meetsTwo ? begin - length : begin), meetsTwo
    };
    voxels *= last - from + 1;
    return terms;
  }
};

template <typename TIndex>
QueryAxis<TIndex>
MakeQueryAxis(const BoxTable & table, const Box & output, int a)
{
  const BoxAxis<std::int64_t> & axis = table.axes[a];
  return { a,
           static_cast<TIndex>(axis.radius),
           static_cast<TIndex>(axis.length),
           static_cast<TIndex>(axis.extent - 1 - axis.lower),
           static_cast<TIndex>(axis.stride),
           static_cast<TIndex>(output.lower[a] - axis.lower) };
}

/** Every index of an array is a constant once loops are unrolled, so that none leaves the registers. */
template <typename TValue>
__device__ TValue
Pick(const Coordinates & coordinates, int axis)
{
  std::int64_t value = 0;
#pragma unroll
  for (int a = 0; a < MaxDimension; ++a)
  {
    value = a == axis ? coordinates.axis[a] : value;
  }
  return static_cast<TValue>(value);
}

/** In the place of the output's type: a kind that is known at run time. */
struct AnyBoxOutput
{};

/** The output, in bytes. */
inline Voxels<char>
BoxBytesOf(const BufferView & output)
{
  Voxels<char> bytes = VoxelsOf<char>(output);
  for (int a = 0; a < MaxDimension; ++a)
  {
    bytes.stride[a] *= static_cast<std::int64_t>(PixelSize(output.kind));
  }
  return bytes;
}

inline BoxStatistic
StatisticOf(const KernelCall & call)
{
  return static_cast<const BoxStatisticOperation &>(*call.operation).statistic;
}

/** Whether boxes of such entries may be stored as T, see DispatchBoxEntry. */
template <typename TEntry, typename T>
constexpr bool
MayStoreBox()
{
  if constexpr (std::is_floating_point<T>::value)
  {
    return true;
  }
  else if constexpr (std::is_same<TEntry, double>::value)
  {
    return false;
  }
  else if constexpr (std::is_same<TEntry, std::uint32_t>::value)
  {
    return sizeof(T) <= 2;
  }
  else if constexpr (std::is_same<TEntry, std::uint64_t>::value)
  {
    return sizeof(T) <= 4 || std::is_same<T, std::int64_t>::value;
  }
  else if constexpr (std::is_same<TEntry, BoxWide>::value || std::is_same<TEntry, SumAndSquares<double, double>>::value)
  {
    return sizeof(T) == 8;
  }
  else if constexpr (std::is_same<TEntry, SumAndSquares<std::uint64_t, BoxWide>>::value)
  {
    return sizeof(T) == 4 || std::is_same<T, std::int64_t>::value;
  }
  else
  {
    return sizeof(T) <= sizeof(decltype(TEntry::squares)) / 4;
  }
}

/** Whether queries of such entries are compiled for output of type T by itself: those of pixels of 8 and 16 bits and of
 * float, as what these are or as float. Few boxes are so large that means of 8 bits have entries of 64. */
template <typename TEntry, typename T>
constexpr bool
IsCommonBoxOutput()
{
  constexpr bool isShort = std::is_same<T, std::uint16_t>::value || std::is_same<T, std::int16_t>::value;
  if constexpr (sizeof(TEntry) > 16 || std::is_same<TEntry, BoxWide>::value || !MayStoreBox<TEntry, T>())
  {
    return false;
  }
  else if constexpr (std::is_same<TEntry, std::uint64_t>::value)
  {
    return isShort || std::is_same<T, float>::value;
  }
  else
  {
    return isShort || std::is_same<T, std::uint8_t>::value || std::is_same<T, float>::value;
  }
}

/** Stores the result of a box, of which `entry` is the sum. Kernels have kind and statistic as separate parameters: for
 * members of one parameter the compiler computes more anew in the innermost loop. */
template <typename TOut, typename TEntry, typename TVoxels>
__device__ __forceinline__ void
StoreBox(char * to, const TEntry & entry, const TVoxels & voxels, PixelType kind, BoxStatistic statistic)
{
  if constexpr (!std::is_same<TOut, AnyBoxOutput>::value)
  {
    *reinterpret_cast<TOut *>(to) = FinishBox<TOut>(entry, voxels, statistic);
  }
  else
  {
    const auto store = [&](auto pixel) {
      using T = decltype(pixel);
      if constexpr (MayStoreBox<TEntry, T>())
      {
        *reinterpret_cast<T *>(to) = FinishBox<T>(entry, voxels, statistic);
      }
    };
    DispatchKindOnDevice(kind, store);
  }
}

/** Calls f(TOut{}) with the type that kernels of such entries are compiled for. */
template <typename TEntry, typename TFunctor>
void
DispatchBoxOutput(PixelType kind, TFunctor && f)
{
  DispatchPixelType(kind, [&](auto pixel) {
    using T = decltype(pixel);
    if constexpr (!MayStoreBox<TEntry, T>())
    {
      throw std::logic_error("chunkwise: a box statistic of another kind");
    }
    else if constexpr (IsCommonBoxOutput<TEntry, T>())
    {
      f(T{});
    }
    else
    {
      f(AnyBoxOutput{});
    }
  });
}

} // namespace chunkwise

#endif
