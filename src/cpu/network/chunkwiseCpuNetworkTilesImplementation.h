/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Included once by each chunkwiseCpuNetworkTiles*.cxx, with CHUNKWISE_CPU_LEVEL the level's namespace. As in
// chunkwiseCpuFftImplementation.h everything is in that namespace.
#include "chunkwiseCpuNetworkTiles.h"
#include "chunkwiseCpuSquare.h"
#include "chunkwiseFftPoints.h"

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

/** Lines that are transformed side by side: tiles are multiples of 8. */
constexpr int LineBytes = RegisterBytes < 32 ? RegisterBytes : 32;

template <int T>
class NetworkTile
{
  using Lines = Square<float, LineBytes>;
  using V = typename Lines::Row;
  typedef float        Numbers __attribute__((vector_size(LineBytes), aligned(4), may_alias));
  static constexpr int L = Lines::Side;
  static constexpr int H = T / 2;
  static constexpr int Groups = T / L;

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
            std::int64_t stride, bool conjugates)
  {
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
          re[n] = Load(from + n * T * T);
          im[n] = -Load(from + (n + H) * T * T);
        }
        TurnEach<2 * T>(re, im, std::make_integer_sequence<int, H>());
        FftPoints<H>(re, im);
        CHUNKWISE_FFT_UNROLL
        for (int k = 0; k < H; ++k)
        {
          Store(to + k * 2 * T * T, re[k]);
          Store(to + k * 2 * T * T + T, im[k]);
        }
      }
    }
    for (int k = 0; k < H; ++k)
    {
      float * const plane = work + k * 2 * T * T;
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
          Store(to, re[x]);
          Store(to + NetworkLanes, conjugates ? -im[x] : im[x]);
        }
      }
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
      float * const plane = work + k * 2 * T * T;
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
          re[k] = Load(from + k * 2 * T * T);
          im[k] = Load(from + k * 2 * T * T + T);
        }
        FftPoints<H>(re, im);
        TurnEach<2 * T>(re, im, std::make_integer_sequence<int, H>());
        CHUNKWISE_FFT_UNROLL
        for (int n = 0; n < H; ++n)
        {
          Store(to + n * T * T, im[n]);
          Store(to + (n + H) * T * T, -re[n]);
        }
      }
    }
  }
};

static void
TransformTile(int tile, const float * voxels, std::int64_t width, std::int64_t height, float * work, float * out,
              std::int64_t stride, bool conjugates)
{
  switch (tile)
  {
    case 16:
      return NetworkTile<16>::Transform(voxels, width, height, work, out, stride, conjugates);
    case 24:
      return NetworkTile<24>::Transform(voxels, width, height, work, out, stride, conjugates);
    default:
      return NetworkTile<32>::Transform(voxels, width, height, work, out, stride, conjugates);
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

/** Adds `inputs` products to the sums of VTiles tiles and VOutputs outputs, or makes them. */
template <int VTiles, int VOutputs>
inline __attribute__((always_inline)) void
AddProducts(const float * in, std::int64_t inPitch, const float * kernels, std::int64_t kernelPitch, float * out,
            std::int64_t outPitch, std::int64_t inputs, bool isFirst)
{
  ProductRow re[VTiles][VOutputs];
  ProductRow im[VTiles][VOutputs];
#pragma GCC unroll 4
  for (int t = 0; t < VTiles; ++t)
  {
#pragma GCC unroll 4
    for (int o = 0; o < VOutputs; ++o)
    {
      const float * const sum = out + t * outPitch + o * NetworkCell;
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
      float * const sum = out + t * outPitch + o * NetworkCell;
      *reinterpret_cast<ProductRow *>(sum) = re[t][o];
      *reinterpret_cast<ProductRow *>(sum + NetworkLanes) = im[t][o];
    }
  }
}

/** Inputs whose cells stay in the first cache while all tiles meet them. */
constexpr std::int64_t InputsAtOnce = 32;

/** A block of VChannels outputs. */
template <int VChannels>
inline void
MultiplyBlock(const float * in, const float * kernels, float * out, std::int64_t tiles, std::int64_t inputs,
              std::int64_t outputs)
{
  const std::int64_t inPitch = inputs * NetworkCell;
  const std::int64_t outPitch = outputs * NetworkCell;
  const std::int64_t kernelPitch = VChannels * NetworkCell;
  for (std::int64_t begin = 0; begin < inputs; begin += InputsAtOnce)
  {
    const std::int64_t count = inputs - begin < InputsAtOnce ? inputs - begin : InputsAtOnce;
    for (std::int64_t part = 0; part < NetworkLanes; part += ProductWidth)
    {
      const float * const k = kernels + begin * kernelPitch + part;
      const float * const x = in + begin * NetworkCell + part;
      float * const       y = out + part;
      const auto          add = [&](auto width, std::int64_t t) __attribute__((always_inline)) {
        constexpr int n = decltype(width)::value;
        constexpr int together = VChannels < ProductOutputs ? VChannels : ProductOutputs;
        AddProducts<n, together>(x + t * inPitch, inPitch, k, kernelPitch, y + t * outPitch, outPitch, count, !begin);
        if constexpr (VChannels > together)
        {
          AddProducts<n, VChannels - together>(x + t * inPitch,
                                               inPitch,
                                               k + together * NetworkCell,
                                               kernelPitch,
                                               y + t * outPitch + together * NetworkCell,
                                               outPitch,
                                               count,
                                               !begin);
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
              std::int64_t outputs)
{
  for (std::int64_t first = 0; first < outputs; first += NetworkProductChannels)
  {
    const float * const k = kernels + first * inputs * NetworkCell;
    float * const       y = out + first * NetworkCell;
    switch (outputs - first)
    {
      case 1:
        MultiplyBlock<1>(in, k, y, tiles, inputs, outputs);
        break;
      case 2:
        MultiplyBlock<2>(in, k, y, tiles, inputs, outputs);
        break;
      default:
        MultiplyBlock<3>(in, k, y, tiles, inputs, outputs);
    }
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

static NetworkTileFunctions
MakeNetworkTileFunctions()
{
  return { TransformTile, TransformTileBack, MultiplyTiles, MultiplyCells };
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
