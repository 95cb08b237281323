/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaRank_cuh
#define chunkwiseCudaRank_cuh

#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseRankWindows.h"
#include "chunkwiseSidedBoxes.h"

#include <cstdint>

// The common code of the ways to find ranks on a CUDA device: how voxels are compared, and the geometry of a call.
namespace chunkwise
{

/** How voxels become keys: see RankKey, of which this is the part that is known when a kernel runs. */
enum class KeyForm : int
{
  Unsigned,
  Signed,
  Real
};

/** The geometry of a call: windows lie on a plane of two axes and along a third one, that of the lines. */
struct RankGeometry
{
  Box          in;
  Coordinates  inStride;
  Box          out; ///< what is computed
  Box          outBuffer;
  Coordinates  outStride;
  int          planeAxes[2];
  int          lineAxis;
  int          planeRadii[2]; ///< how far windows reach to the lower side
  int          lineRadius;
  int          planeUppers[2]; ///< and to the upper side
  int          lineUpper;
  std::int64_t lines;
  std::int64_t segment; ///< outputs of a thread
  double       fraction;
  KeyForm      form;
  PixelType    inputKind;
  PixelType    outputKind;
  /** How many voxels each window sees, float32 or float64; nullptr: all but NaN. */
  const void * counts;
  bool         countsAreDouble;
  Box          countBox;
  Coordinates  countStride;
};

/** The part that its cost depends on. */
RankGeometry
RankGeometryOf(const Box & output, const FootprintOperation::Sides & sides);
/** The same of windows that reach as far to both sides. */
inline RankGeometry
RankGeometryOf(const Box & output, const Coordinates & radius)
{
  return RankGeometryOf(output, FootprintOperation::Sides{ radius, radius });
}

template <typename TPixel>
constexpr KeyForm
FormOfKeys()
{
  return RankKey<TPixel>::IsReal                            ? KeyForm::Real
         : static_cast<TPixel>(-1) < static_cast<TPixel>(0) ? KeyForm::Signed
                                                            : KeyForm::Unsigned;
}

template <typename TKey>
inline constexpr TKey SignBit = static_cast<TKey>(TKey{ 1 } << (8 * sizeof(TKey) - 1));

/** The key of plus infinity; that of minus infinity has the opposite bits. NaN are beyond them. */
template <typename TKey>
inline constexpr TKey Infinity = static_cast<TKey>(~TKey{ 0 });
template <>
inline constexpr std::uint32_t Infinity<std::uint32_t> = 0xFF800000u;
template <>
inline constexpr std::uint64_t Infinity<std::uint64_t> = 0xFFF0000000000000u;

/** The key, but for NaN. */
template <typename TKey>
__device__ __forceinline__ TKey
ToOrdered(TKey raw, KeyForm form)
{
  if (form == KeyForm::Real)
  {
    using Signed = std::make_signed_t<TKey>;
    return raw ^
           static_cast<TKey>(static_cast<TKey>(static_cast<Signed>(raw) >> (8 * sizeof(TKey) - 1)) | SignBit<TKey>);
  }
  return form == KeyForm::Signed ? static_cast<TKey>(raw ^ SignBit<TKey>) : raw;
}

template <typename TKey>
__device__ __forceinline__ bool
IsNaN(TKey ordered)
{
  if constexpr (sizeof(TKey) >= 4)
  {
    return ordered > Infinity<TKey> || ordered < static_cast<TKey>(~Infinity<TKey>);
  }
  else
  {
    return false;
  }
}

template <typename TKey>
__device__ __forceinline__ TKey
ToKey(TKey raw, KeyForm form)
{
  const TKey ordered = ToOrdered(raw, form);
  return form == KeyForm::Real && IsNaN(ordered) ? TKey{ 0 } : ordered;
}

/** Stores the voxel of a key, once per voxel: the kinds are the same for all threads. */
template <typename TPixel, typename TKey>
__device__ __forceinline__ void
StoreAs(TKey key, PixelType outputKind, void * out, std::int64_t offset)
{
  if constexpr (sizeof(TPixel) == sizeof(TKey))
  {
    const TPixel pixel = RankKey<TPixel>::To(key);
    switch (outputKind)
    {
      case PixelType::Float32:
        static_cast<float *>(out)[offset] = static_cast<float>(pixel);
        return;
      case PixelType::Float64:
        static_cast<double *>(out)[offset] = static_cast<double>(pixel);
        return;
      default:
        static_cast<TPixel *>(out)[offset] = pixel;
    }
  }
}

template <typename TKey>
__device__ __forceinline__ void
StoreKey(TKey key, const RankGeometry & g, void * out, std::int64_t offset)
{
  if (g.inputKind == g.outputKind)
  {
    TKey raw = g.form == KeyForm::Unsigned ? key : static_cast<TKey>(key ^ SignBit<TKey>);
    if (g.form == KeyForm::Real)
    {
      // 0 becomes a NaN: all bits are set.
      raw = (key & SignBit<TKey>) != 0 ? raw : static_cast<TKey>(~key);
    }
    static_cast<TKey *>(out)[offset] = raw;
    return;
  }
  switch (g.inputKind)
  {
    case PixelType::UInt8:
      return StoreAs<std::uint8_t>(key, g.outputKind, out, offset);
    case PixelType::Int8:
      return StoreAs<std::int8_t>(key, g.outputKind, out, offset);
    case PixelType::UInt16:
      return StoreAs<std::uint16_t>(key, g.outputKind, out, offset);
    case PixelType::Int16:
      return StoreAs<std::int16_t>(key, g.outputKind, out, offset);
    case PixelType::UInt32:
      return StoreAs<std::uint32_t>(key, g.outputKind, out, offset);
    case PixelType::Int32:
      return StoreAs<std::int32_t>(key, g.outputKind, out, offset);
    case PixelType::UInt64:
      return StoreAs<std::uint64_t>(key, g.outputKind, out, offset);
    case PixelType::Int64:
      return StoreAs<std::int64_t>(key, g.outputKind, out, offset);
    case PixelType::Float32:
      return StoreAs<float>(key, g.outputKind, out, offset);
    default:
      return StoreAs<double>(key, g.outputKind, out, offset);
  }
}
/** Registers have 32 bits: smaller keys are sorted as such. */
template <typename TKey>
using SortedKey = std::conditional_t<(sizeof(TKey) < 4), std::uint32_t, TKey>;

/** The place of a thread: its line, and its outputs on the line. */
struct RankLine
{
  Coordinates  index;
  std::int64_t begin;
  std::int64_t end;

  /** `width`: neighbouring lines of a thread; the last ones are of the end, so that all are inside if there are as
   * many.
   */
  __device__
  RankLine(const RankGeometry & g, std::int64_t number, int width = 1)
  {
    const std::int64_t segments = Quotient(g.out.Extent(g.lineAxis) + g.segment - 1, g.segment);
    std::int64_t       rest = number;
    index = g.out.lower;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const bool         isWide = a == g.planeAxes[0];
      const std::int64_t extent = a == g.lineAxis ? segments
                                  : isWide        ? (g.out.Extent(a) + width - 1) / width
                                                  : g.out.Extent(a);
      if (extent == 1)
      {
        continue;
      }
      const std::int64_t quotient = Quotient(rest, extent);
      const std::int64_t position = (rest - quotient * extent) * (a == g.lineAxis ? g.segment : isWide ? width : 1);
      index.axis[a] += isWide ? max(min(position, g.out.Extent(a) - width), std::int64_t{ 0 }) : position;
      rest = quotient;
    }
    begin = index.axis[g.lineAxis];
    end = begin + g.segment < g.out.upper.axis[g.lineAxis] ? begin + g.segment : g.out.upper.axis[g.lineAxis];
  }
  __device__ static std::int64_t
  Offset(const Coordinates & index, const Box & box, const Coordinates & stride)
  {
    std::int64_t offset = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      offset += (index.axis[a] - box.lower.axis[a]) * stride.axis[a];
    }
    return offset;
  }
};

/** Voxels of an output's window that are not seen, of n of which `lost` are NaN. */
__device__ __forceinline__ int
AbsentIn(const RankGeometry & g, const Coordinates & index, std::int64_t along, int n, int lost)
{
  if (!g.counts)
  {
    return lost;
  }
  Coordinates at = index;
  at.axis[g.lineAxis] = along;
  const std::int64_t offset = RankLine::Offset(at, g.countBox, g.countStride);
  return n - static_cast<int>(g.countsAreDouble ? static_cast<const double *>(g.counts)[offset]
                                                : static_cast<const float *>(g.counts)[offset]);
}

/** Positions of [i - radius, i + upper] that a box has along an axis. */
__device__ inline int
TapsIn(const Box & box, int axis, std::int64_t i, int radius, int upper)
{
  const std::int64_t first = i - radius > box.lower.axis[axis] ? i - radius : box.lower.axis[axis];
  const std::int64_t last = i + upper < box.upper.axis[axis] ? i + upper : box.upper.axis[axis] - 1;
  return static_cast<int>(last - first + 1);
}

/** Divides lines into the work of threads, of which each has `width` neighbouring ones: enough for a large device, but
 * a thread reads ahead before its first output. */
inline void
DivideLines(RankGeometry & g, int width = 1)
{
  const std::int64_t extent = g.out.Extent(g.lineAxis);
  const std::int64_t beside = g.out.Extent(g.planeAxes[0]);
  const std::int64_t lines = g.out.NumberOfVoxels() / extent / beside * ((beside + width - 1) / width);
  const std::int64_t wanted = std::max<std::int64_t>(1, 540000 / lines);
  // Slabs at the image's edge have so few lines that how long a thread takes is what counts.
  const int          shortest = lines < 8192 ? std::max(2, 2 * g.lineRadius) : std::max(8, 16 * g.lineRadius);
  const std::int64_t most = std::max<std::int64_t>(1, extent / shortest);
  const std::int64_t segments = std::min(wanted, most);
  g.segment = (extent + segments - 1) / segments;
  g.lines = lines * ((extent + g.segment - 1) / g.segment);
}

/** Medians of small windows of which there are all voxels. `isCounted`: windows see a part of theirs. */
bool
RankMediansTake(const RankGeometry & g, std::size_t keyBytes, bool isCounted);
template <typename TKey>
void
LaunchRankMedians(const RankGeometry & g, const void * in, void * out, cudaStream_t stream);

/** Sorted lists of small windows, for calls that RankListsTake accepts. */
inline bool
RankListsTake(const RankGeometry & g)
{
  const int largest = std::max({ g.planeRadii[0], g.planeRadii[1], g.lineRadius });
  return largest <= 2 || (largest == 3 && g.lineRadius == 0);
}
template <typename TKey>
void
LaunchRankLists(const RankGeometry & g, const void * in, void * out, cudaStream_t stream);

/** Sorted tiles: of windows that RankTilesTake. */
bool
RankTilesTake(const RankGeometry & g);
/** Bytes of scratch; they do not shrink when the output grows. */
template <typename TKey>
std::size_t
RankTilesBytes(const RankGeometry & g);
template <typename TKey>
void
LaunchRankTiles(RankGeometry g, const void * in, void * out, void * scratch, cudaStream_t stream);

/** Windows of any size, bit by bit. */
template <typename TKey>
void
LaunchRankBits(RankGeometry g, const void * in, void * out, cudaStream_t stream);

} // namespace chunkwise

#endif
