/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaBoxQuery_cuh
#define chunkwiseCudaBoxQuery_cuh

#include "chunkwiseCudaBoxStatistic.cuh"
#include "chunkwiseCudaWindow.cuh"

#include <cstdint>
#include <type_traits>

// What the two queries of box statistics share: axes, and what they store. Kernels are compiled for groups of kinds of
// the output, and choose one of the group at run time: within a group they take as many registers.
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

enum class BoxOutputs
{
  Reals,
  Integers8,
  Integers16,
  Integers32,
  Integers64,
  Any
};

/** The output, in bytes, and its kind. */
struct BoxOutput
{
  Voxels<char> bytes;
  PixelKind    kind;
  BoxStatistic statistic;
};

inline BoxOutput
BoxOutputOf(const KernelCall & call)
{
  BoxOutput output{ VoxelsOf<char>(call.output),
                    call.output.kind,
                    static_cast<const BoxStatisticOperation &>(*call.operation).statistic };
  for (int a = 0; a < MaxDimension; ++a)
  {
    output.bytes.stride[a] *= static_cast<std::int64_t>(PixelSize(output.kind));
  }
  return output;
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
    return sizeof(T) <= 4;
  }
  else if constexpr (std::is_same<TEntry, BoxWide>::value || std::is_same<TEntry, SumAndSquares<double, double>>::value)
  {
    return sizeof(T) == 8;
  }
  else if constexpr (std::is_same<TEntry, SumAndSquares<std::uint64_t, BoxWide>>::value)
  {
    return sizeof(T) == 4;
  }
  else
  {
    return sizeof(T) <= sizeof(decltype(TEntry::squares)) / 4;
  }
}

template <BoxOutputs VOutputs, typename T>
constexpr bool
IsAmong()
{
  constexpr bool isReal = std::is_floating_point<T>::value;
  return VOutputs == BoxOutputs::Any || (VOutputs == BoxOutputs::Reals && isReal) ||
         (VOutputs == BoxOutputs::Integers8 && !isReal && sizeof(T) == 1) ||
         (VOutputs == BoxOutputs::Integers16 && !isReal && sizeof(T) == 2) ||
         (VOutputs == BoxOutputs::Integers32 && !isReal && sizeof(T) == 4) ||
         (VOutputs == BoxOutputs::Integers64 && !isReal && sizeof(T) == 8);
}

/** Stores the result of a box, of which `entry` is the sum. */
template <BoxOutputs VOutputs, typename TEntry, typename TVoxels>
__device__ __forceinline__ void
StoreBox(char * to, const TEntry & entry, const TVoxels & voxels, const BoxOutput & out)
{
  const auto store = [&](auto pixel) {
    using T = decltype(pixel);
    if constexpr (MayStoreBox<TEntry, T>() && IsAmong<VOutputs, T>())
    {
      *reinterpret_cast<T *>(to) = FinishBox<T>(entry, voxels, out.statistic);
    }
  };
  switch (out.kind)
  {
    case PixelKind::UInt8:
      return store(std::uint8_t{});
    case PixelKind::Int8:
      return store(std::int8_t{});
    case PixelKind::UInt16:
      return store(std::uint16_t{});
    case PixelKind::Int16:
      return store(std::int16_t{});
    case PixelKind::UInt32:
      return store(std::uint32_t{});
    case PixelKind::Int32:
      return store(std::int32_t{});
    case PixelKind::UInt64:
      return store(std::uint64_t{});
    case PixelKind::Int64:
      return store(std::int64_t{});
    case PixelKind::Float32:
      return store(float{});
    default:
      return store(double{});
  }
}

/** Calls f(std::integral_constant<BoxOutputs, ...>) with the group that kernels of such entries are compiled for. */
template <typename TEntry, typename TFunctor>
void
DispatchBoxOutputs(PixelKind kind, TFunctor && f)
{
  DispatchPixelKind(kind, [&](auto pixel) {
    using T = decltype(pixel);
    if constexpr (!MayStoreBox<TEntry, T>())
    {
      throw std::logic_error("chunkwise: a box statistic of another kind");
    }
    else if constexpr (IsSumAndSquares<TEntry>::value)
    {
      // Variances are real numbers first.
      f(std::integral_constant<BoxOutputs, BoxOutputs::Any>());
    }
    else
    {
      f(std::integral_constant<BoxOutputs,
                               std::is_floating_point<T>::value ? BoxOutputs::Reals
                               : sizeof(T) == 1                 ? BoxOutputs::Integers8
                               : sizeof(T) == 2                 ? BoxOutputs::Integers16
                               : sizeof(T) == 4                 ? BoxOutputs::Integers32
                                                                : BoxOutputs::Integers64>());
    }
  });
}

} // namespace chunkwise

#endif
