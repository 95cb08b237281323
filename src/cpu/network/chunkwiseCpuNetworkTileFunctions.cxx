/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set. As in chunkwiseCpuFftFunctions.cxx everything is in its namespace.
#include "chunkwiseCpuNetworkTiles.h"
#include "chunkwiseCpuSquare.h"
#include "chunkwiseFftPoints.h"

#if defined(__x86_64__)
#  include <immintrin.h>
#endif

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

/** Stores a vector where nobody looks for it soon: past the caches, which need not read the line first. */
template <typename TVector>
inline void
StorePast(float * to, const TVector & value)
{
#if defined(__AVX512F__)
  if constexpr (sizeof(TVector) == 64)
  {
    return _mm512_stream_ps(to, reinterpret_cast<const __m512 &>(value));
  }
#endif
#if defined(__AVX__)
  if constexpr (sizeof(TVector) == 32)
  {
    return _mm256_stream_ps(to, reinterpret_cast<const __m256 &>(value));
  }
#endif
#if defined(__x86_64__)
  if constexpr (sizeof(TVector) == 16)
  {
    return _mm_stream_ps(to, reinterpret_cast<const __m128 &>(value));
  }
#endif
  *reinterpret_cast<TVector *>(to) = value;
}
/** Other threads see what StorePast has stored. */
inline void
FinishStores()
{
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

template <int T>
class NetworkTile
{
  /** The bytes of lines that are transformed side by side: a tile is a multiple of them. */
  static constexpr int LineBytes = RegisterBytes <= 32 || T % 16 == 0 ? RegisterBytes : 32;
  using Lines = Square<float, LineBytes>;
  using V = typename Lines::Row;
  typedef float        Numbers __attribute__((vector_size(LineBytes), aligned(4), may_alias));
  static constexpr int L = Lines::Side;
  static constexpr int H = T / 2;
  static constexpr int Groups = T / L;
  static constexpr int Plane = static_cast<int>(GetTilePlane(T));
  static constexpr int WorkPlane = static_cast<int>(GetTileWorkPlane(T));

  static V
  Load(const float * from)
  {
    return *reinterpret_cast<const Numbers *>(from);
  }
  static void
  Store(float * to, const V & value)
  {
    *reinterpret_cast<Numbers *>(to) = value;
  }
  /** The place in its cell of what has this number, in L. */
  static std::int64_t
  OffsetOf(std::int64_t number, std::int64_t stride)
  {
    return number * L / NetworkLanes * stride + number * L % NetworkLanes;
  }

public:
  static void
  Transform(const float * voxels, std::int64_t width, std::int64_t height, float * work, float * out,
            std::int64_t stride, bool conjugates, bool streams)
  {
    const auto put = [streams](float * to, const V & value) { streams ? StorePast(to, value) : Store(to, value); };
    const std::int64_t columns = (width + L - 1) / L;
    for (std::int64_t y = 0; y < height; ++y)
    {
      for (std::int64_t c = 0; c < columns; ++c)
      {
        V                   re[H];
        V                   im[H];
        const float * const from = voxels + y * T + c * L;
        float * const       to = work + y * 2 * T + c * L;
        CHUNKWISE_FFT_UNROLL
        for (int n = 0; n < H; ++n)
        {
          re[n] = Load(from + n * Plane);
          im[n] = -Load(from + (n + H) * Plane);
        }
        TurnEach<2 * T>(re, im, std::make_integer_sequence<int, H>());
        FftPoints<H>(re, im);
        CHUNKWISE_FFT_UNROLL
        for (int k = 0; k < H; ++k)
        {
          Store(to + k * WorkPlane, re[k]);
          Store(to + k * WorkPlane + T, im[k]);
        }
      }
    }
    for (int k = 0; k < H; ++k)
    {
      float * const plane = work + k * WorkPlane;
      for (std::int64_t c = 0; c < columns; ++c)
      {
        V re[T];
        V im[T];
        for (int y = 0; y < T; ++y)
        {
          const float * const from = plane + y * 2 * T + c * L;
          re[y] = y < height ? Load(from) : V{};
          im[y] = y < height ? Load(from + T) : V{};
        }
        FftPoints<T>(re, im);
        CHUNKWISE_FFT_UNROLL
        for (int y = 0; y < T; ++y)
        {
          float * const to = plane + y * 2 * T + c * L;
          Store(to, re[y]);
          Store(to + T, im[y]);
        }
      }
      for (int g = 0; g < Groups; ++g)
      {
        V                   re[T];
        V                   im[T];
        const float * const rows = plane + g * L * 2 * T;
        for (int c = 0; c < Groups; ++c)
        {
          for (int l = 0; l < L; ++l)
          {
            re[c * L + l] = c < columns ? Load(rows + l * 2 * T + c * L) : V{};
            im[c * L + l] = c < columns ? Load(rows + l * 2 * T + c * L + T) : V{};
          }
          if (c < columns)
          {
            Lines::Transpose(re + c * L);
            Lines::Transpose(im + c * L);
          }
        }
        FftPoints<T>(re, im);
        const std::int64_t first = (static_cast<std::int64_t>(k) * Groups + g) * T;
        for (int x = 0; x < T; ++x)
        {
          float * const to = out + OffsetOf(first + x, stride);
          put(to, re[x]);
          put(to + NetworkLanes, conjugates ? -im[x] : im[x]);
        }
      }
    }
    if (streams)
    {
      FinishStores();
    }
  }

  /** The inverse is the transform with real and imaginary parts exchanged. */
  static void
  TransformBack(const float * in, std::int64_t stride, std::int64_t width, std::int64_t height, float * work,
                float * voxels)
  {
    const std::int64_t columns = (width + L - 1) / L;
    for (int k = 0; k < H; ++k)
    {
      float * const plane = work + k * WorkPlane;
      for (int g = 0; g < Groups; ++g)
      {
        V                  re[T];
        V                  im[T];
        const std::int64_t first = (static_cast<std::int64_t>(k) * Groups + g) * T;
        for (int x = 0; x < T; ++x)
        {
          const float * const from = in + OffsetOf(first + x, stride);
          re[x] = Load(from + NetworkLanes);
          im[x] = Load(from);
        }
        FftPoints<T>(re, im);
        float * const rows = plane + g * L * 2 * T;
        for (int c = 0; c < columns; ++c)
        {
          Lines::Transpose(re + c * L);
          Lines::Transpose(im + c * L);
          for (int l = 0; l < L; ++l)
          {
            Store(rows + l * 2 * T + c * L, re[c * L + l]);
            Store(rows + l * 2 * T + c * L + T, im[c * L + l]);
          }
        }
      }
      for (std::int64_t c = 0; c < columns; ++c)
      {
        V re[T];
        V im[T];
        CHUNKWISE_FFT_UNROLL
        for (int y = 0; y < T; ++y)
        {
          const float * const from = plane + y * 2 * T + c * L;
          re[y] = Load(from);
          im[y] = Load(from + T);
        }
        FftPoints<T>(re, im);
        for (int y = 0; y < height; ++y)
        {
          float * const to = plane + y * 2 * T + c * L;
          Store(to, re[y]);
          Store(to + T, im[y]);
        }
      }
    }
    for (std::int64_t y = 0; y < height; ++y)
    {
      for (std::int64_t c = 0; c < columns; ++c)
      {
        V                   re[H];
        V                   im[H];
        const float * const from = work + y * 2 * T + c * L;
        float * const       to = voxels + y * T + c * L;
        CHUNKWISE_FFT_UNROLL
        for (int k = 0; k < H; ++k)
        {
          re[k] = Load(from + k * WorkPlane);
          im[k] = Load(from + k * WorkPlane + T);
        }
        FftPoints<H>(re, im);
        TurnEach<2 * T>(re, im, std::make_integer_sequence<int, H>());
        CHUNKWISE_FFT_UNROLL
        for (int n = 0; n < H; ++n)
        {
          Store(to + n * Plane, im[n]);
          Store(to + (n + H) * Plane, -re[n]);
        }
      }
    }
  }
};

static void
TransformTile(int tile, const float * voxels, std::int64_t width, std::int64_t height, float * work, float * out,
              std::int64_t stride, bool conjugates, bool streams)
{
  switch (tile)
  {
    case 16:
      return NetworkTile<16>::Transform(voxels, width, height, work, out, stride, conjugates, streams);
    case 24:
      return NetworkTile<24>::Transform(voxels, width, height, work, out, stride, conjugates, streams);
    default:
      return NetworkTile<32>::Transform(voxels, width, height, work, out, stride, conjugates, streams);
  }
}

static void
TransformTileBack(int tile, const float * in, std::int64_t stride, std::int64_t width, std::int64_t height,
                  float * work, float * voxels)
{
  switch (tile)
  {
    case 16:
      return NetworkTile<16>::TransformBack(in, stride, width, height, work, voxels);
    case 24:
      return NetworkTile<24>::TransformBack(in, stride, width, height, work, voxels);
    default:
      return NetworkTile<32>::TransformBack(in, stride, width, height, work, voxels);
  }
}

/** Numbers of a cell that are multiplied at a time. */
typedef float ProductRow __attribute__((vector_size(RegisterBytes), aligned(RegisterBytes), may_alias));
constexpr int ProductWidth = RegisterBytes / 4;
/** Sums of this many tiles and outputs stay in registers: thirty-two, or sixteen. */
#if defined(__AVX512F__)
constexpr int ProductTiles = 4;
constexpr int ProductOutputs = 3;
#else
constexpr int ProductTiles = 2;
constexpr int ProductOutputs = 2;
#endif

/** Adds `inputs` products to the sums of VTiles tiles and VOutputs outputs, which lie `pitch` apart, or makes them
 * where isFirst. The last ones go to `out`. */
template <int VTiles, int VOutputs>
inline __attribute__((always_inline)) void
AddProducts(const float * in, std::int64_t inPitch, const float * kernels, std::int64_t kernelPitch, float * sums,
            std::int64_t pitch, float * out, std::int64_t outPitch, std::int64_t inputs, bool isFirst, bool isLast,
            bool streams)
{
  ProductRow re[VTiles][VOutputs];
  ProductRow im[VTiles][VOutputs];
#pragma GCC unroll 4
  for (int t = 0; t < VTiles; ++t)
  {
#pragma GCC unroll 4
    for (int o = 0; o < VOutputs; ++o)
    {
      const float * const sum = sums + t * pitch + o * NetworkCell;
      re[t][o] = isFirst ? ProductRow{} : *reinterpret_cast<const ProductRow *>(sum);
      im[t][o] = isFirst ? ProductRow{} : *reinterpret_cast<const ProductRow *>(sum + NetworkLanes);
    }
  }
  for (std::int64_t i = 0; i < inputs; ++i, in += NetworkCell, kernels += kernelPitch)
  {
    ProductRow kernelRe[VOutputs];
    ProductRow kernelIm[VOutputs];
#pragma GCC unroll 4
    for (int o = 0; o < VOutputs; ++o)
    {
      kernelRe[o] = *reinterpret_cast<const ProductRow *>(kernels + o * NetworkCell);
      kernelIm[o] = *reinterpret_cast<const ProductRow *>(kernels + o * NetworkCell + NetworkLanes);
    }
#pragma GCC unroll 4
    for (int t = 0; t < VTiles; ++t)
    {
      const ProductRow inRe = *reinterpret_cast<const ProductRow *>(in + t * inPitch);
      const ProductRow inIm = *reinterpret_cast<const ProductRow *>(in + t * inPitch + NetworkLanes);
#pragma GCC unroll 4
      for (int o = 0; o < VOutputs; ++o)
      {
        re[t][o] += inRe * kernelRe[o];
        im[t][o] += inRe * kernelIm[o];
        re[t][o] -= inIm * kernelIm[o];
        im[t][o] += inIm * kernelRe[o];
      }
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < VTiles; ++t)
  {
#pragma GCC unroll 4
    for (int o = 0; o < VOutputs; ++o)
    {
      float * const to = (isLast ? out + t * outPitch : sums + t * pitch) + o * NetworkCell;
      if (isLast && streams)
      {
        StorePast(to, re[t][o]);
        StorePast(to + NetworkLanes, im[t][o]);
      }
      else
      {
        *reinterpret_cast<ProductRow *>(to) = re[t][o];
        *reinterpret_cast<ProductRow *>(to + NetworkLanes) = im[t][o];
      }
    }
  }
}

/** Inputs whose cells stay in the first cache while all tiles meet them, and tiles whose inputs stay in the second. */
constexpr std::int64_t InputsAtOnce = 32;
constexpr std::int64_t TilesAtOnce = 64;

/** A block of VChannels outputs, of at most TilesAtOnce tiles. */
template <int VChannels>
inline void
MultiplyBlock(const float * in, const float * kernels, float * out, std::int64_t tiles, std::int64_t inputs,
              std::int64_t outputs, bool streams)
{
  alignas(64) float      sums[TilesAtOnce * VChannels * NetworkCell];
  constexpr std::int64_t pitch = VChannels * NetworkCell;
  const std::int64_t     inPitch = inputs * NetworkCell;
  const std::int64_t     outPitch = outputs * NetworkCell;
  for (std::int64_t begin = 0; begin < inputs; begin += InputsAtOnce)
  {
    const std::int64_t count = inputs - begin < InputsAtOnce ? inputs - begin : InputsAtOnce;
    const bool         isLast = begin + count == inputs;
    for (std::int64_t part = 0; part < NetworkLanes; part += ProductWidth)
    {
      const float * const k = kernels + begin * pitch + part;
      const float * const x = in + begin * NetworkCell + part;
      float * const       s = sums + part;
      float * const       y = out + part;
      const auto          add = [&](auto width, std::int64_t t) __attribute__((always_inline)) {
        constexpr int n = decltype(width)::value;
        constexpr int together = VChannels < ProductOutputs ? VChannels : ProductOutputs;
        const float * from = x + t * inPitch;
        float *       sum = s + t * pitch;
        float *       to = y + t * outPitch;
        AddProducts<n, together>(from, inPitch, k, pitch, sum, pitch, to, outPitch, count, !begin, isLast, streams);
        if constexpr (VChannels > together)
        {
          constexpr std::int64_t next = together * NetworkCell;
          AddProducts<n, VChannels - together>(
            from, inPitch, k + next, pitch, sum + next, pitch, to + next, outPitch, count, !begin, isLast, streams);
        }
      };
      std::int64_t t = 0;
      for (; t + ProductTiles <= tiles; t += ProductTiles)
      {
        add(std::integral_constant<int, ProductTiles>(), t);
      }
      for (; t < tiles; ++t)
      {
        add(std::integral_constant<int, 1>(), t);
      }
    }
  }
}

static void
MultiplyTiles(const float * in, const float * kernels, float * out, std::int64_t tiles, std::int64_t inputs,
              std::int64_t outputs, bool streams)
{
  for (std::int64_t done = 0; done < tiles; done += TilesAtOnce)
  {
    const std::int64_t  count = tiles - done < TilesAtOnce ? tiles - done : TilesAtOnce;
    const float * const x = in + done * inputs * NetworkCell;
    for (std::int64_t first = 0; first < outputs; first += NetworkProductChannels)
    {
      const float * const k = kernels + first * inputs * NetworkCell;
      float * const       y = out + (done * outputs + first) * NetworkCell;
      switch (outputs - first)
      {
        case 1:
          MultiplyBlock<1>(x, k, y, count, inputs, outputs, streams);
          break;
        case 2:
          MultiplyBlock<2>(x, k, y, count, inputs, outputs, streams);
          break;
        default:
          MultiplyBlock<3>(x, k, y, count, inputs, outputs, streams);
      }
    }
  }
  if (streams)
  {
    FinishStores();
  }
}

static void
MultiplyCells(const float * a, std::int64_t stride, const float * b, float * out, std::int64_t cells)
{
  for (std::int64_t i = 0; i < cells; ++i, a += stride, b += NetworkCell, out += NetworkCell)
  {
    for (std::int64_t l = 0; l < NetworkLanes; ++l)
    {
      const float re = a[l] * b[l] - a[l + NetworkLanes] * b[l + NetworkLanes];
      const float im = a[l] * b[l + NetworkLanes] + a[l + NetworkLanes] * b[l];
      out[l] = re;
      out[l + NetworkLanes] = im;
    }
  }
}

static void
TakeMaxima(float * to, const float * from, std::int64_t n)
{
  for (std::int64_t i = 0; i < n; ++i)
  {
    const float value = from[i];
    const float result = to[i];
    to[i] = value > result || value != value ? value : result;
  }
}

NetworkTileFunctions
MakeNetworkTileFunctions()
{
  return { TransformTile, TransformTileBack, MultiplyTiles, MultiplyCells, TakeMaxima };
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
