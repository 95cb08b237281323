/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBoundedConvolution.h"
#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseConvolutionTiles.h"
#include "chunkwiseCudaConvolutionRows.h"
#include "chunkwiseCudaCufftConvolution.h"
#include "chunkwiseCudaFft.cuh"
#include "chunkwiseCudaFftLines.cuh"
#include "chunkwiseCudaFixedFft.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCudaTables.h"
#include "chunkwiseCufft.h"
#include "chunkwiseError.h"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

// A block's spectrum is [batch][plane][row][frequency]. Pairs of rows are transformed along x as one complex row, then
// columns along y in place; the last axis' columns are transformed, multiplied by the kernel's and transformed back in
// one kernel, which makes the kernel's part itself from its transform along the axes before, which is kept; then back
// along y and x. Each step reads only data that is not zero and writes only data that is kept. In float, where
// chunkwiseCudaFixedFft.h has a length that is not much longer, lines have that.
//
// Blocks are tiles of the image's grid, so that bits do not depend on chunks. The tiles along the last axis share a
// block, of two axes only if rows are not in pairs: their inputs overlap, and each column goes through them one after
// the other.
namespace chunkwise
{

namespace
{

/** Shared memory that a block takes if it need not take more, so that several share a multiprocessor. */
constexpr std::size_t UsualSharedBytes = 72 * 1024;

template <typename T>
using ComplexOf = typename Complex<T>::Type;

/** Rows of pixels to half spectra, times two. */
template <typename T, bool VNative>
__global__ void
__launch_bounds__(FftThreads) ForwardRowsKernel(FftPasses<T> passes, FftRows layout, RowSource source,
                                                Spectrum spectrum, PlaneRange range, ComplexOf<T> * __restrict__ out)
{
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<ComplexOf<T> *>(memory);
  __shared__ long long                          from[64];
  __shared__ long long                          to[64];
  if (threadIdx.x < 2 * layout.lines)
  {
    const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * 2 * layout.lines + threadIdx.x;
    const std::int64_t row = RowOfPair(r, source.count[1], source.lacking, range);
    FindSource(source, spectrum, range, row, from[threadIdx.x], to[threadIdx.x]);
  }
  __syncthreads();
  const T    constant = static_cast<T>(source.constant);
  const int  live = static_cast<int>(source.count[0]);
  const auto load = [&](int c, int i) {
    ComplexOf<T> z;
    z.x = z.y = T(0);
    if (i < live)
    {
      std::int64_t x = source.lower[0] + i;
      if (x < source.boxLower[0] || x >= source.boxUpper[0])
      {
        x = MapTap(x, source.boxLower[0], source.boxUpper[0], source.n[0], source.mode);
      }
      x = (x - source.boxLower[0]) * source.stride[0];
      if (from[2 * c] >= 0)
      {
        z.x = LoadAs<T, VNative>(source.data, source.kind, from[2 * c] + x) - constant;
      }
      if (from[2 * c + 1] >= 0)
      {
        z.y = LoadAs<T, VNative>(source.data, source.kind, from[2 * c + 1] + x) - constant;
      }
    }
    return z;
  };
  const auto keep = [&](int c, int i, ComplexOf<T> z) { shared[layout.Address(c, i)] = z; };
  if constexpr (VNative)
  {
    FftTransform<T, false, false, true>(passes, shared, layout, load, keep);
  }
  else
  {
    // A choice of the kind would be there for each point of each radix.
    FftCopy(passes.length, layout, load, keep);
    __syncthreads();
    FftTransform<T, false, true, true>(passes, shared, layout, load, keep);
  }
  // Twice the half spectra of both rows, and zeros up to the pitch.
  const int pitch = static_cast<int>(spectrum.pitch);
  const int half = static_cast<int>(spectrum.half);
  for (int n = threadIdx.x; n < pitch * layout.lines; n += FftThreads)
  {
    const int    c = n / pitch;
    const int    k = n - c * pitch;
    ComplexOf<T> a;
    ComplexOf<T> b;
    a.x = a.y = b.x = b.y = T(0);
    if (k < half)
    {
      const ComplexOf<T> z = shared[layout.Address(c, __ldg(passes.position + k))];
      const ComplexOf<T> w = shared[layout.Address(c, __ldg(passes.position + (k ? passes.length - k : 0)))];
      a.x = z.x + w.x;
      a.y = z.y - w.y;
      b.x = z.y + w.y;
      b.y = w.x - z.x;
    }
    if (to[2 * c] >= 0)
    {
      out[to[2 * c] + k] = a;
    }
    if (to[2 * c + 1] >= 0)
    {
      out[to[2 * c + 1] + k] = b;
    }
  }
}

/** Half spectra to rows of pixels. */
template <typename T, bool VNative>
__global__ void
__launch_bounds__(FftThreads)
  InverseRowsKernel(FftPasses<T> passes, FftRows layout, RowTarget target, Spectrum spectrum, PlaneRange range,
                    const ComplexOf<T> * __restrict__ in)
{
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<ComplexOf<T> *>(memory);
  __shared__ long long                          from[64];
  __shared__ long long                          to[64];
  __shared__ long long                          factorRow[64];
  if (threadIdx.x < 2 * layout.lines)
  {
    const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * 2 * layout.lines + threadIdx.x;
    const std::int64_t row = RowOfPair(r, target.count[1], 0, range);
    FindTarget(target, spectrum, range, row, from[threadIdx.x], to[threadIdx.x], factorRow[threadIdx.x]);
  }
  __syncthreads();
  const int half = static_cast<int>(spectrum.half);
  for (int n = threadIdx.x; n < half * layout.lines; n += FftThreads)
  {
    const int    c = n / half;
    const int    k = n - c * half;
    ComplexOf<T> a;
    ComplexOf<T> b;
    a.x = a.y = b.x = b.y = T(0);
    if (from[2 * c] >= 0)
    {
      a = in[from[2 * c] + k];
    }
    if (from[2 * c + 1] >= 0)
    {
      b = in[from[2 * c + 1] + k];
    }
    ComplexOf<T> z;
    z.x = a.x - b.y;
    z.y = a.y + b.x;
    shared[layout.Address(c, __ldg(passes.position + k))] = z;
    if (k > 0 && 2 * k != passes.length)
    {
      z.x = a.x + b.y;
      z.y = b.x - a.y;
      shared[layout.Address(c, __ldg(passes.position + passes.length - k))] = z;
    }
  }
  __syncthreads();
  const T    scale = static_cast<T>(target.scale);
  const T    constant = static_cast<T>(target.constant);
  const int  crop = static_cast<int>(target.crop);
  const int  kept = static_cast<int>(target.count[0]);
  const auto factors = static_cast<const T *>(target.factors);
  const auto store = [&](int c, int i, ComplexOf<T> z) {
    const int x = i - crop;
    if (x < 0 || x >= kept)
    {
      return;
    }
    const std::int64_t state =
      factors ? target.factorStride[0] *
                  ConvolutionFactors::State(target.lower[0] + x, target.n[0], target.kernel[0], target.below[0])
              : 0;
    const T values[2] = { z.x, z.y };
#pragma unroll
    for (int r = 0; r < 2; ++r)
    {
      if (to[2 * c + r] >= 0)
      {
        T value = fma(values[r], scale, constant);
        if (factors)
        {
          value *= __ldg(factors + factorRow[2 * c + r] + state);
        }
        StoreAs<T, VNative>(target.data, target.kind, to[2 * c + r] + x * target.stride[0], value);
      }
    }
  };
  const auto point = [&](int c, int i) { return shared[layout.Address(c, i)]; };
  if constexpr (VNative)
  {
    FftTransform<T, true, true, false>(passes, shared, layout, point, store);
  }
  else
  {
    FftTransform<T, true, true, true>(passes, shared, layout, point, store);
    FftCopy(passes.length, layout, point, store);
  }
}

/** Transforms columns in place. */
template <typename T, bool VInverse>
__global__ void
__launch_bounds__(FftThreads) ColumnsKernel(FftPasses<T> passes, FftColumns layout, ColumnSet set, ComplexOf<T> * data)
{
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<ComplexOf<T> *>(memory);
  std::int64_t                                  column = 0;
  ComplexOf<T> * const                          begin = data + ColumnBegin(set, layout.lines, column);
  const int                                     live = static_cast<int>(VInverse ? passes.length : set.live);
  const int                                     from = static_cast<int>(VInverse ? set.from : 0);
  const int                                     to = static_cast<int>(VInverse ? set.to : passes.length);
  FftTransform<T, VInverse, false, false>(
    passes,
    shared,
    layout,
    [&](int c, int i) {
      ComplexOf<T> z;
      z.x = z.y = T(0);
      if (i < live)
      {
        z = begin[i * set.pointStride + c];
      }
      return z;
    },
    [&](int c, int i, ComplexOf<T> z) {
      if (i >= from && i < to)
      {
        begin[(i - from) * set.pointStride + c] = z;
      }
    });
}

/** The last pass forward of image and kernel, their product, and the first pass back: all on the same points. */
template <typename T, int R>
__device__ __forceinline__ void
MiddlePass(const FftPasses<T> & passes, const FftColumns & layout, ComplexOf<T> * image, const ComplexOf<T> * kernel)
{
  const int perLine = passes.length / R;
  for (int butterfly = threadIdx.x; butterfly < perLine * layout.lines; butterfly += FftThreads)
  {
    int c = 0;
    int i = 0;
    layout.Split(butterfly, perLine, c, i);
    T re[R];
    T im[R];
    T kernelRe[R];
    T kernelIm[R];
#pragma unroll
    for (int j = 0; j < R; ++j)
    {
      const int at = layout.Address(c, i * R + j);
      re[j] = image[at].x;
      im[j] = image[at].y;
      kernelRe[j] = kernel[at].x;
      kernelIm[j] = kernel[at].y;
    }
    FftButterfly<T, R>(re, im);
    FftButterfly<T, R>(kernelRe, kernelIm);
#pragma unroll
    for (int j = 0; j < R; ++j)
    {
      const T x = fma(re[j], kernelRe[j], -im[j] * kernelIm[j]);
      im[j] = fma(re[j], kernelIm[j], im[j] * kernelRe[j]);
      re[j] = x;
    }
    FftButterfly<T, R>(im, re);
#pragma unroll
    for (int j = 0; j < R; ++j)
    {
      ComplexOf<T> z;
      z.x = re[j];
      z.y = im[j];
      image[layout.Address(c, i * R + j)] = z;
    }
  }
}

/** The last axis: there, times the kernel, and back, in place, tile by tile. The kernel's columns are those of its
 * transform along the axes before. */
template <typename T>
__global__ void
__launch_bounds__(FftThreads)
  ProductKernel(FftPasses<T> passes, FftColumns layout, ColumnSet set, ColumnTiles tiles, ComplexOf<T> * data,
                const ComplexOf<T> * __restrict__ kernel, int kernelLive)
{
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  image = reinterpret_cast<ComplexOf<T> *>(memory);
  auto * const                                  kernelLines = image + (passes.length << layout.shift);
  std::int64_t                                  column = 0;
  ComplexOf<T> * const                          begin = data + ColumnBegin(set, layout.lines, column);
  const ComplexOf<T> * const                    kernelBegin = kernel + column;
  const int                                     last = passes.count - 1;
  const auto keepImage = [&](int c, int i, ComplexOf<T> z) { image[layout.Address(c, i)] = z; };
  const auto keptImage = [&](int c, int i) { return image[layout.Address(c, i)]; };
#pragma unroll 1
  for (int tile = 0; tile < tiles.output; tile += tiles.tile)
  {
    const ColumnTiles::Part part = tiles.At(tile);
    // Image and kernel, by the same code; the kernel stays for all tiles.
    const auto forBoth = [&](auto && transform) {
#pragma unroll 1
      for (int which = 0; which < (tile == 0 ? 2 : 1); ++which)
      {
        ComplexOf<T> * const lines = which ? kernelLines : image;
        transform(
          which,
          [&](int c, int i) { return lines[layout.Address(c, i)]; },
          [&](int c, int i, ComplexOf<T> z) { lines[layout.Address(c, i)] = z; });
      }
      __syncthreads();
    };
    forBoth([&](int which, const auto &, const auto & keep) {
      const ComplexOf<T> * const from = which ? kernelBegin : begin + part.in * set.pointStride;
      const std::int64_t         stride = which ? set.columns : set.pointStride;
      const int                  live = which ? kernelLive : part.live;
      const auto                 load = [&](int c, int i) {
        ComplexOf<T> z;
        z.x = z.y = T(0);
        if (i < live)
        {
          z = from[i * stride + c];
        }
        return z;
      };
      if (last == 0)
      {
        FftCopy(passes.length, layout, load, keep);
      }
      else
      {
        FftDispatch<T, false>(passes, 0, layout, load, keep);
      }
    });
    for (int pass = 1; pass < last; ++pass)
    {
      forBoth(
        [&](int, const auto & kept, const auto & keep) { FftDispatch<T, false>(passes, pass, layout, kept, keep); });
    }
    switch (passes.radix[last])
    {
      case 2:
        MiddlePass<T, 2>(passes, layout, image, kernelLines);
        break;
      case 3:
        MiddlePass<T, 3>(passes, layout, image, kernelLines);
        break;
      case 4:
        MiddlePass<T, 4>(passes, layout, image, kernelLines);
        break;
      case 5:
        MiddlePass<T, 5>(passes, layout, image, kernelLines);
        break;
      case 7:
        MiddlePass<T, 7>(passes, layout, image, kernelLines);
        break;
      default:
        MiddlePass<T, 8>(passes, layout, image, kernelLines);
        break;
    }
    __syncthreads();
    for (int pass = last - 1; pass > 0; --pass)
    {
      FftDispatch<T, true>(passes, pass, layout, keptImage, keepImage);
      __syncthreads();
    }
    const auto store = [&](int c, int i, ComplexOf<T> z) {
      if (i >= part.from && i < part.to)
      {
        begin[(part.out + i - part.from) * set.pointStride + c] = z;
      }
    };
    if (last == 0)
    {
      FftCopy(passes.length, layout, keptImage, store);
    }
    else
    {
      FftDispatch<T, true>(passes, 0, layout, keptImage, store);
    }
    __syncthreads();
  }
}

/** The convolution if x alone is transformed: every row times the kernel's. */
template <typename T>
__global__ void
MultiplyRowsKernel(ComplexOf<T> * __restrict__ data, const ComplexOf<T> * __restrict__ kernel, std::int64_t pitch,
                   std::int64_t count)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; n < count; n += step)
  {
    const ComplexOf<T> a = data[n];
    const ComplexOf<T> b = __ldg(kernel + n % pitch);
    ComplexOf<T>       z;
    z.x = fma(a.x, b.x, -a.y * b.y);
    z.y = fma(a.x, b.y, a.y * b.x);
    data[n] = z;
  }
}

/** The radices of the passes here: few and large, and the last at most 8, odd if there is one, so that neighbouring
 * butterflies of the last pass are on different banks. */
std::vector<int>
DeviceRadices(std::int64_t n)
{
  std::vector<int> odd;
  for (const int radix : { 7, 5, 3 })
  {
    for (; n % radix == 0; n /= radix)
    {
      odd.push_back(radix);
    }
  }
  int bits = 0;
  for (; n % 2 == 0; n /= 2)
  {
    ++bits;
  }
  if (n != 1)
  {
    throw ParameterError("a transform's length must be a product of 2, 3, 5 and 7");
  }
  std::vector<int> radices;
  int              passes = (bits + (odd.empty() ? 1 : 0) + 3) / 4;
  for (; bits > 0; --passes)
  {
    const int share = (bits + passes - 1) / passes;
    radices.push_back(1 << share);
    bits -= share;
  }
  radices.insert(radices.end(), odd.begin(), odd.end());
  return radices;
}

template <typename T>
std::vector<ComplexOf<T>>
MakeTwiddles(const FftPasses<T> & passes)
{
  std::vector<ComplexOf<T>> twiddles;
  for (int pass = 0; pass < passes.count; ++pass)
  {
    const double points = static_cast<double>(passes.left[pass]) * passes.radix[pass];
    for (std::int64_t p = 0; p < passes.left[pass]; ++p)
    {
      for (int k = 1; k < passes.radix[pass]; ++k)
      {
        const double angle = 2 * 3.14159265358979323846 * static_cast<double>(p * k) / points;
        ComplexOf<T> w;
        w.x = static_cast<T>(std::cos(angle));
        w.y = static_cast<T>(-std::sin(angle));
        twiddles.push_back(w);
      }
    }
  }
  return twiddles;
}

template <typename T>
std::vector<int>
MakePositions(const FftPasses<T> & passes)
{
  std::vector<int> positions;
  for (int k = 0; k < passes.length; ++k)
  {
    int digits = k;
    int at = 0;
    for (int pass = 0; pass < passes.count; ++pass)
    {
      at += digits % passes.radix[pass] * passes.left[pass];
      digits /= passes.radix[pass];
    }
    positions.push_back(at);
  }
  return positions;
}

template <typename T>
FftPasses<T>
MakePasses(const KernelCall & call, std::int64_t length)
{
  const std::vector<int> radices = DeviceRadices(length);
  FftPasses<T>           passes{};
  passes.count = static_cast<int>(radices.size());
  passes.length = static_cast<int>(length);
  if (passes.count > MostFftPasses)
  {
    throw DeviceError(DeviceError::Kind::Failed, "transform", "CUDA", 0, "a line has too many factors");
  }
  std::int64_t left = length;
  int          twiddle = 0;
  for (int pass = 0; pass < passes.count; ++pass)
  {
    const int          radix = radices[static_cast<std::size_t>(pass)];
    const std::int64_t m = left / radix;
    passes.radix[pass] = radix;
    passes.left[pass] = static_cast<int>(m);
    passes.magic[pass] = static_cast<unsigned int>(((std::uint64_t{ 1 } << 32) + static_cast<std::uint64_t>(m) - 1) /
                                                   static_cast<std::uint64_t>(m));
    passes.twiddle[pass] = twiddle;
    twiddle += static_cast<int>(m) * (radix - 1);
    left = m;
  }
  const std::string key = std::string("transform ") + (sizeof(T) == 4 ? "f32 " : "f64 ") + std::to_string(length);
  passes.twiddles = GetTable<ComplexOf<T>>(call, key + " twiddles", [&] { return MakeTwiddles(passes); });
  passes.position = GetTable<int>(call, key + " positions", [&] { return MakePositions(passes); });
  return passes;
}

/** A block with the lengths that the device transforms, which are at least the block's, and how it does. */
struct DeviceBlock : ConvolutionBlock
{
  const FixedRows *    rows{ nullptr };
  const FixedColumns * columns[MaxSpatialAxes]{}; ///< of the roles from 1 on

  /** Other lengths have transforms that are slower, but by no more than half of the points. */
  static bool
  IsClose(std::int64_t length, std::int64_t fixed)
  {
    return 2 * fixed <= 3 * length;
  }

  template <typename T>
  static DeviceBlock
  Make(const ConvolutionBlock & block)
  {
    DeviceBlock fixed{ block };
    for (int r = 0; r < MaxSpatialAxes && std::is_same<T, float>::value; ++r)
    {
      std::int64_t & length = fixed.role[r].length;
      if (!fixed.role[r].transformed)
      {
        continue;
      }
      if (r == 0)
      {
        const FixedRows * const found = FindFixedRows(length);
        fixed.rows = found && IsClose(length, found->length) ? found : nullptr;
        length = fixed.rows ? found->length : length;
      }
      else
      {
        const FixedColumns * const found = FindFixedColumns(length);
        fixed.columns[r] = found && IsClose(length, found->length) ? found : nullptr;
        length = fixed.columns[r] ? found->length : length;
      }
    }
    return fixed;
  }

private:
  explicit DeviceBlock(const ConvolutionBlock & block)
    : ConvolutionBlock(block)
  {}
};

/** The device memory of a block of an image. */
template <typename T>
struct DeviceShape
{
  Spectrum     spectrum;
  std::int64_t batches;
  std::size_t  spectrumBytes;
  std::size_t  kernelBytes;
  int          axes; ///< that are transformed

  explicit DeviceShape(const DeviceBlock & block)
  {
    axes = 0;
    while (axes < MaxSpatialAxes && block.role[axes].transformed)
    {
      ++axes;
    }
    spectrum.half = block.rows ? block.rows->length / 2 : block.HalfRow();
    spectrum.pitch = (spectrum.half + RowUnit - 1) / RowUnit * RowUnit;
    // The last axis' spectrum is nowhere as a whole.
    const auto extent = [&](int r) {
      const auto & role = block.role[r];
      return role.transformed && r + 1 < axes   ? role.length
             : r + 1 == axes && HasTiles(block) ? role.output + role.kernel - 1
                                                : std::max(role.input, role.output);
    };
    spectrum.rows = extent(1);
    spectrum.planes = extent(2);
    batches = block.role[3].output * block.role[4].output;
    const auto round = [](std::int64_t n) { return RoundUp(static_cast<std::size_t>(n) * sizeof(ComplexOf<T>)); };
    spectrumBytes = round(batches * spectrum.planes * spectrum.rows * spectrum.pitch);
    kernelBytes = round(KernelRows(block) * spectrum.pitch);
  }

  /** Whether the last axis has several tiles. */
  static bool
  HasTiles(const ConvolutionBlock & block)
  {
    return block.lastTile > 0 && block.lastTile < block.role[block.LastRole()].output;
  }

  /** Rows of the kernel before the last axis. */
  std::int64_t
  KernelRows(const DeviceBlock & block) const
  {
    return axes == 3 ? block.role[2].kernel * block.role[1].length : (axes == 2 ? block.role[1].kernel : 1);
  }
};

/** Shared memory and launches of one device. */
class Launcher
{
public:
  Launcher(const KernelCall & call)
    : m_Stream(static_cast<cudaStream_t>(call.stream))
  {
    int device = 0;
    int bytes = 0;
    (void)cudaGetDevice(&device);
    (void)cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    m_Most = static_cast<std::size_t>(bytes) - 2048;
  }

  /** As many lines as fit, `copies` of each; few enough for several blocks on a multiprocessor. */
  template <typename T>
  int
  ChooseLines(std::int64_t numbersPerLine, int most, std::size_t & bytes) const
  {
    const std::size_t line = static_cast<std::size_t>(numbersPerLine) * sizeof(ComplexOf<T>);
    int               lines = most;
    while (lines > 1 && line * static_cast<std::size_t>(lines) > UsualSharedBytes)
    {
      lines /= 2;
    }
    bytes = line * static_cast<std::size_t>(lines);
    if (bytes > m_Most)
    {
      throw DeviceError(DeviceError::Kind::Failed, "transform", "CUDA", bytes, "a line does not fit shared memory");
    }
    return lines;
  }

  template <typename... TParameters, typename... TArguments>
  void
  Launch(const char * name, void (*kernel)(TParameters...), std::int64_t blocks, std::size_t bytes,
         TArguments... arguments) const
  {
    if (blocks == 0)
    {
      return;
    }
    (void)cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(std::min<std::size_t>(bytes, m_Most)));
    kernel<<<static_cast<unsigned int>(blocks), FftThreads, bytes, m_Stream>>>(arguments...);
    CheckLaunch(name);
  }

private:
  cudaStream_t m_Stream;
  std::size_t  m_Most{ 0 };
};

/** The part of a box of the result, which may reach beyond the image, that is read later. The rest is not stored. */
Box
AskedOf(const ImageConvolutionOperation & operation, const Box & box)
{
  const auto * const bounded = dynamic_cast<const BoundedConvolution *>(&operation);
  return bounded ? Intersect(box, bounded->asked) : box;
}

/** A block of a device's tiles. Along three axes a BoundedConvolution has no more input than is known, with lengths and
 * places of tiles as ever. */
ConvolutionBlock
MakeTiledBlock(const ImageConvolutionOperation & operation, const Box & box, const Coordinates & image,
               const Coordinates & tile)
{
  const ConvolutionBlock all(operation, box, image, tile);
  const auto * const     bounded = dynamic_cast<const BoundedConvolution *>(&operation);
  if (!bounded || !all.role[2].transformed)
  {
    return all;
  }
  ConvolutionBlock known(operation, box, image, &bounded->known);
  for (int r = 0; r < MaxSpatialAxes; ++r)
  {
    known.role[r].length = all.role[r].length;
  }
  known.lastTile = all.lastTile;
  const bool reachesAll = std::all_of(
    known.role, known.role + MaxSpatialAxes, [](const auto & role) { return role.crop >= 0 && role.input > 0; });
  return reachesAll ? known : all;
}

template <typename T>
class DeviceConvolution
{
public:
  /** Computes a block, and stores the part of it that is in the call's output. */
  DeviceConvolution(const KernelCall & call, const ConvolutionBlock & block, const Box & output)
    : m_Call(call)
    , m_Operation(static_cast<const ImageConvolutionOperation &>(*call.operation))
    , m_Block(DeviceBlock::Make<T>(block))
    , m_Output(output)
    , m_Kept(KeptOf(output))
    , m_Shape(m_Block)
    , m_Launcher(call)
    , m_Stream(static_cast<cudaStream_t>(call.stream))
    , m_Data(static_cast<ComplexOf<T> *>(call.scratch))
  {
    for (int r = 0; r < m_Shape.axes; ++r)
    {
      if (r == 0 ? !m_Block.rows : !m_Block.columns[r])
      {
        m_Passes[r] = MakePasses<T>(call, m_Block.role[r].length);
      }
    }
    m_Kernel = GetKernelSpectrum();
  }

  void
  Run() const
  {
    const auto &         y = m_Block.role[1];
    const auto &         z = m_Block.role[2];
    const Spectrum &     spectrum = m_Shape.spectrum;
    const ColumnTiles    tiles = GetTiles();
    ComplexOf<T> * const input = m_Data + tiles.pad * (m_Shape.axes == 3 ? spectrum.rows : 1) * spectrum.pitch;
    ForPlanes(z.input, [&](const PlaneRange & range) {
      RowSource source = MakeImageSource(m_Call, m_Operation, m_Block);
      // The first row of a tile that the image's edge does not cut is the first of a pair.
      source.lacking = m_Shape.axes == 2 ? static_cast<int>((y.lower - m_Operation.Below(y.axis)) & 1) : 0;
      ForwardRows(source, spectrum, range, input);
      if (m_Shape.axes == 3)
      {
        ForwardColumns(range, spectrum, y.input, z.input, input);
      }
    });
    Multiply(tiles);
    ForPlanes(m_Kept.Extent(z.axis), [&](const PlaneRange & range) {
      if (m_Shape.axes == 3)
      {
        InverseColumns(range);
      }
      InverseRows(range);
    });
  }

private:
  /** The part of the block that is computed for the call's output: rows are transformed back in pairs. */
  Box
  KeptOf(const Box & block) const
  {
    Box                kept = AskedOf(m_Operation, Intersect(block, m_Call.output.box));
    const int          y = m_Block.role[1].axis;
    const std::int64_t lower = block.lower[y];
    kept.lower[y] -= (kept.lower[y] - lower) % 2;
    kept.upper[y] = std::min(kept.upper[y] + (kept.upper[y] - lower) % 2, block.upper[y]);
    return kept;
  }

  ColumnTiles
  GetTiles() const
  {
    const auto &       role = m_Block.role[m_Block.LastRole()];
    const bool         hasTiles = DeviceShape<T>::HasTiles(m_Block);
    const std::int64_t above = m_Operation.Above(role.axis);
    const std::int64_t lower = m_Output.lower[role.axis];
    const auto         number = [](std::int64_t n) { return static_cast<int>(n); };
    return { number(hasTiles ? m_Block.lastTile : role.output),
             number(role.output),
             number(role.input),
             number(role.crop - above),
             number(m_Operation.Below(role.axis)),
             number(above),
             hasTiles ? number(role.kernel - 1 - role.crop) : 0,
             number(m_Kept.lower[role.axis] - lower),
             number(m_Kept.upper[role.axis] - lower) };
  }

  /** All planes at once, if batches have none that are not used. Fewer at a time, so that what lies between two steps
   * is found in the L2 cache, is slower: each launch would be a wave of blocks or two, and wait for its last. */
  template <typename TBody>
  void
  ForPlanes(std::int64_t planes, TBody && body) const
  {
    const std::int64_t together = planes == m_Shape.spectrum.planes ? m_Shape.batches : 1;
    for (std::int64_t batch = 0; batch < m_Shape.batches; batch += together)
    {
      body(PlaneRange{ batch * planes, together * planes });
    }
  }

  /** Kept if there is room, else made in scratch. */
  const ComplexOf<T> *
  GetKernelSpectrum() const
  {
    std::string key = m_Operation.kernel->GetKey() + (sizeof(T) == 4 ? " spectrum f32" : " spectrum f64");
    for (int r = 0; r < m_Shape.axes; ++r)
    {
      const bool fixed = r == 0 ? m_Block.rows != nullptr : m_Block.columns[r] != nullptr;
      key += (fixed ? " fixed " : " ") + std::to_string(m_Block.role[r].length);
    }
    const void * const kept = m_Call.tables->GetMade(key, m_Shape.kernelBytes, [this](void * memory) {
      MakeKernelSpectrum(static_cast<ComplexOf<T> *>(memory));
      CheckCuda(cudaStreamSynchronize(m_Stream), "cudaStreamSynchronize");
    });
    if (kept)
    {
      return static_cast<const ComplexOf<T> *>(kept);
    }
    auto * const made = reinterpret_cast<ComplexOf<T> *>(static_cast<char *>(m_Call.scratch) + m_Shape.spectrumBytes);
    MakeKernelSpectrum(made);
    return made;
  }

  void
  MakeKernelSpectrum(ComplexOf<T> * out) const
  {
    const RowSource source = MakeKernelSource<T>(m_Call, *m_Operation.kernel, m_Block);
    Spectrum        spectrum = m_Shape.spectrum;
    spectrum.rows = m_Shape.axes == 3 ? m_Block.role[1].length : m_Block.role[1].kernel;
    spectrum.planes = m_Block.role[2].kernel;
    const PlaneRange all{ 0, spectrum.planes };
    ForwardRows(source, spectrum, all, out);
    if (m_Shape.axes == 3)
    {
      ForwardColumns(all, spectrum, m_Block.role[1].kernel, spectrum.planes, out);
    }
  }

  FftRows
  RowLayout(std::size_t & bytes) const
  {
    FftRows            layout{};
    const std::int64_t length = m_Block.role[0].length;
    layout.pitch = static_cast<int>(length + length / 16 + 1);
    layout.lines = m_Launcher.ChooseLines<T>(layout.pitch, length < 256 ? 32 : 8, bytes);
    return layout;
  }

  FftColumns
  ColumnLayout(int role, int copies, std::size_t & bytes) const
  {
    FftColumns layout{};
    layout.lines = m_Launcher.ChooseLines<T>(copies * m_Block.role[role].length, static_cast<int>(RowUnit), bytes);
    for (layout.shift = 0; 1 << layout.shift < layout.lines;)
    {
      ++layout.shift;
    }
    return layout;
  }

  void
  ForwardRows(const RowSource & source, const Spectrum & spectrum, const PlaneRange & range, ComplexOf<T> * out) const
  {
    if constexpr (std::is_same<T, float>::value)
    {
      if (m_Block.rows)
      {
        m_Block.rows->forward(m_Stream, source, spectrum, range, out, Twiddles(m_Block.rows->there));
        return;
      }
    }
    std::size_t   bytes = 0;
    const FftRows layout = RowLayout(bytes);
    m_Launcher.Launch("ForwardRowsKernel",
                      source.kind == PixelTypeOf<T>() ? ForwardRowsKernel<T, true> : ForwardRowsKernel<T, false>,
                      BlocksOfPairs(range, source.count[1] + source.lacking, layout.lines),
                      bytes,
                      m_Passes[0],
                      layout,
                      source,
                      spectrum,
                      range,
                      out);
  }

  std::int64_t
  BlocksOfPairs(const PlaneRange & range, std::int64_t rows, int lines) const
  {
    return (range.count * (rows + rows % 2) + 2 * lines - 1) / (2 * lines);
  }

  /** The place of the planes of a batch in the spectrum; `planes` of each batch are used. */
  static std::int64_t
  PlaneBegin(const PlaneRange & range, const Spectrum & spectrum, std::int64_t planes)
  {
    return (range.first / planes * spectrum.planes + range.first % planes) * spectrum.rows * spectrum.pitch;
  }

  void
  ForwardColumns(const PlaneRange & range, const Spectrum & spectrum, std::int64_t live, std::int64_t planes,
                 ComplexOf<T> * data) const
  {
    const ColumnSet set{ spectrum.pitch, spectrum.pitch, spectrum.rows * spectrum.pitch, live, 0, 0 };
    TransformColumns<false>(range.count, set, data + PlaneBegin(range, spectrum, planes));
  }

  void
  InverseColumns(const PlaneRange & range) const
  {
    const auto &       y = m_Block.role[1];
    const Spectrum &   spectrum = m_Shape.spectrum;
    const std::int64_t from = y.crop + m_Kept.lower[y.axis] - m_Output.lower[y.axis];
    const ColumnSet    set{
      spectrum.pitch, spectrum.pitch, spectrum.rows * spectrum.pitch, 0, from, from + m_Kept.Extent(y.axis)
    };
    TransformColumns<true>(range.count, set, m_Data + PlaneBegin(range, spectrum, m_Kept.Extent(m_Block.role[2].axis)));
  }

  /** Transforms the columns of so many planes, along role 1. */
  template <bool VInverse>
  void
  TransformColumns(std::int64_t planes, const ColumnSet & set, ComplexOf<T> * data) const
  {
    if constexpr (std::is_same<T, float>::value)
    {
      if (const FixedColumns * const fixed = m_Block.columns[1])
      {
        const auto transform = VInverse ? fixed->inverse : fixed->forward;
        transform(m_Stream, planes, set, data, Twiddles(VInverse ? fixed->back : fixed->there));
        return;
      }
    }
    std::size_t      bytes = 0;
    const FftColumns layout = ColumnLayout(1, 1, bytes);
    m_Launcher.Launch("ColumnsKernel",
                      ColumnsKernel<T, VInverse>,
                      planes * (set.columns / layout.lines),
                      bytes,
                      m_Passes[1],
                      layout,
                      set,
                      data);
  }

  void
  Multiply(const ColumnTiles & tiles) const
  {
    const Spectrum & spectrum = m_Shape.spectrum;
    if (m_Shape.axes == 1)
    {
      const std::int64_t count = m_Shape.batches * spectrum.planes * spectrum.rows * spectrum.pitch;
      m_Launcher.Launch("MultiplyRowsKernel",
                        MultiplyRowsKernel<T>,
                        std::min<std::int64_t>((count + FftThreads - 1) / FftThreads, 1 << 20),
                        0,
                        m_Data,
                        m_Kernel,
                        spectrum.pitch,
                        count);
      return;
    }
    const int          last = m_Shape.axes - 1;
    const auto &       role = m_Block.role[last];
    const std::int64_t plane = spectrum.rows * spectrum.pitch;
    const ColumnSet    set{ last == 2 ? plane : spectrum.pitch,
                         last == 2 ? plane : spectrum.pitch,
                         last == 2 ? spectrum.planes * plane : plane,
                         0,
                         0,
                         0 };
    const std::int64_t sets = m_Shape.batches * (last == 2 ? 1 : spectrum.planes);
    if constexpr (std::is_same<T, float>::value)
    {
      if (const FixedColumns * const fixed = m_Block.columns[last])
      {
        fixed->product(m_Stream,
                       sets,
                       set,
                       tiles,
                       m_Data,
                       Twiddles(fixed->there),
                       Twiddles(fixed->back),
                       m_Kernel,
                       static_cast<int>(role.kernel));
        return;
      }
    }
    std::size_t      bytes = 0;
    const FftColumns layout = ColumnLayout(last, 2, bytes);
    m_Launcher.Launch("ProductKernel",
                      ProductKernel<T>,
                      sets * (set.columns / layout.lines),
                      bytes,
                      m_Passes[last],
                      layout,
                      set,
                      tiles,
                      m_Data,
                      m_Kernel,
                      static_cast<int>(role.kernel));
  }

  void
  InverseRows(const PlaneRange & range) const
  {
    RowTarget   target = MakeTarget<T>(m_Call, m_Operation, m_Block, m_Kept);
    const int   y = m_Block.role[1].axis;
    const Box & output = m_Call.output.box;
    target.crop += m_Kept.lower[m_Block.role[0].axis] - m_Output.lower[m_Block.role[0].axis];
    target.keptFrom = std::max<std::int64_t>(output.lower[y] - m_Kept.lower[y], 0);
    target.keptTo = std::min(output.upper[y], m_Kept.upper[y]) - m_Kept.lower[y];
    // The rows' transforms left a factor of two each, in image and kernel; or they are half as long.
    target.scale *= m_Block.rows ? 2.0 : 0.25;
    if constexpr (std::is_same<T, float>::value)
    {
      if (m_Block.rows)
      {
        m_Block.rows->inverse(m_Stream, target, m_Shape.spectrum, range, m_Data, Twiddles(m_Block.rows->back));
        return;
      }
    }
    std::size_t   bytes = 0;
    const FftRows layout = RowLayout(bytes);
    m_Launcher.Launch("InverseRowsKernel",
                      target.kind == PixelTypeOf<T>() ? InverseRowsKernel<T, true> : InverseRowsKernel<T, false>,
                      BlocksOfPairs(range, target.count[1], layout.lines),
                      bytes,
                      m_Passes[0],
                      layout,
                      target,
                      m_Shape.spectrum,
                      range,
                      static_cast<const ComplexOf<T> *>(m_Data));
  }

  const float2 *
  Twiddles(const FixedTwiddles & fixed) const
  {
    return GetTable<float2>(m_Call, fixed.GetKey(), [&fixed] { return fixed.Make(); });
  }

  const KernelCall &                m_Call;
  const ImageConvolutionOperation & m_Operation;
  const DeviceBlock                 m_Block;
  const Box                         m_Output; ///< of the block
  const Box                         m_Kept;
  const DeviceShape<T>              m_Shape;
  const Launcher                    m_Launcher;
  const cudaStream_t                m_Stream;
  ComplexOf<T> * const              m_Data;
  const ComplexOf<T> *              m_Kernel{ nullptr };
  FftPasses<T>                      m_Passes[MaxSpatialAxes]{};
};

/** Outputs of one block whose lines fit shared memory, where a kernel allows it; and have fast transforms, where it is
 * short. */
Coordinates
LargestOutput(const ImageConvolutionOperation & operation, const Coordinates & extent)
{
  Coordinates most = extent;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t k = operation.kernel->GetExtent()[a];
    if (k > 1)
    {
      const std::int64_t longest =
        k <= ConvolutionTiles::LongestFastLine / 2 ? ConvolutionTiles::LongestFastLine : ConvolutionTiles::LongestLine;
      most[a] = std::min(extent[a], longest - std::min(k - 1, longest / 2));
    }
  }
  return most;
}

/** Whether the image is cut into tiles. Operations that cut it themselves say so by tiles of single voxels: their
 * chunks are blocks, whose lengths follow from their extents. */
bool
HasTile(const ImageConvolutionOperation & operation, const Coordinates & image)
{
  return !(operation.GetTile(image) == Coordinates::Filled(1));
}

/** Tiles of planes share a block only where rows are transformed alone, or the inputs of tiles, of an even extent and
 * an odd kernel, are whole pairs: which rows are a pair must not depend on the block. */
template <typename T>
ConvolutionTiles
MakeTiles(const ImageConvolutionOperation & operation, const Coordinates & image)
{
  ConvolutionTiles    tiles(operation, image);
  const Coordinates & tile = tiles.GetDevice();
  const DeviceBlock   block = DeviceBlock::Make<T>(ConvolutionBlock::Largest(operation, tile, image, tile));
  tiles.SharePlanes(block.rows != nullptr || block.role[1].kernel % 2 == 1);
  return tiles;
}

template <typename T>
void
Run(const KernelCall & call)
{
  const auto &      operation = static_cast<const ImageConvolutionOperation &>(*call.operation);
  const Coordinates image = call.image.Extents();
  const Box &       output = call.output.box;
  if (!HasTile(operation, image))
  {
    for (const Box & box : CutIntoBlocks(output, LargestOutput(operation, output.Extents())))
    {
      DeviceConvolution<T>(call, ConvolutionBlock(operation, box, image), box).Run();
    }
    return;
  }
  const ConvolutionTiles tiles = MakeTiles<T>(operation, image);
  const Box              asked = AskedOf(operation, output);
  for (const Box & box : asked.IsEmpty() ? std::vector<Box>() : tiles.Cut(asked))
  {
    DeviceConvolution<T>(call, MakeTiledBlock(operation, box, image, tiles.GetDevice()), box).Run();
  }
}

/** The same for all chunks of a run. Throws if the provider that the operation names does not serve here. */
bool
TakesCufft(const Operation & operation)
{
  const auto & convolution = static_cast<const ImageConvolutionOperation &>(operation);
  switch (convolution.transforms)
  {
    case TransformProvider::Auto:
      return convolution.IsForCufft() && HasCufft();
    case TransformProvider::CuFFT:
    {
      std::string reason;
      if (!HasCufft(&reason))
      {
        throw ParameterError("TransformProvider is cufft, but libcufft cannot be used: " + reason);
      }
      return true;
    }
    case TransformProvider::FFTW:
      throw ParameterError("TransformProvider is fftw, which has no transforms on CUDA devices");
    default:
      return false;
  }
}

/** At least as large as each block of a chunk of this extent. */
template <typename T>
DeviceBlock
LargestBlock(const ImageConvolutionOperation & operation, const ChunkShape & chunk, Coordinates & most)
{
  const Coordinates image = chunk.image.Extents();
  if (!HasTile(operation, image))
  {
    most = LargestOutput(operation, chunk.outputBox.Extents());
    return DeviceBlock::Make<T>(ConvolutionBlock::Largest(operation, most, image));
  }
  const ConvolutionTiles tiles = MakeTiles<T>(operation, image);
  most = tiles.GetLargest(chunk.outputBox);
  return DeviceBlock::Make<T>(ConvolutionBlock::Largest(operation, most, image, tiles.GetDevice()));
}

template <typename T>
DeviceShape<T>
LargestShape(const Operation & operation, const ChunkShape & chunk, Coordinates & most)
{
  return DeviceShape<T>(LargestBlock<T>(static_cast<const ImageConvolutionOperation &>(operation), chunk, most));
}

template <typename T>
std::size_t
ScratchOf(const Operation & operation, const ChunkShape & chunk)
{
  Coordinates          most{};
  const DeviceShape<T> shape = LargestShape<T>(operation, chunk, most);
  return shape.spectrumBytes + shape.kernelBytes;
}

/** The spectrum is read and written about five times, at about two thirds of the memory's rate; the kernel's is read.
 */
double
CostOfConvolution(const Operation & operation, const ChunkShape & chunk)
{
  Coordinates              most{};
  const DeviceShape<float> shape = LargestShape<float>(operation, chunk, most);
  const double             size = UsesDouble(chunk.inputKinds[0]) ? 2 : 1;
  double                   blocks = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    blocks *= static_cast<double>((chunk.outputBox.Extent(a) + most[a] - 1) / most[a]);
  }
  return blocks * size * (11.5 * static_cast<double>(shape.spectrumBytes) + static_cast<double>(shape.kernelBytes)) +
         static_cast<double>(PixelSize(chunk.inputKinds[0])) * static_cast<double>(chunk.inputBox.NumberOfVoxels()) +
         static_cast<double>(PixelSize(chunk.outputKind)) * static_cast<double>(chunk.outputBox.NumberOfVoxels());
}

KernelChoice
ChooseConvolution(const Operation & operation, const ChunkShape & chunk)
{
  if (TakesCufft(operation))
  {
    return { "cufft",
             RunCufftConvolution,
             ScratchOfCufftConvolution(operation, chunk),
             CostOfCufftConvolution(operation, chunk) };
  }
  const bool isDouble = UsesDouble(chunk.inputKinds[0]);
  return { isDouble ? "own of double" : "own of float",
           isDouble ? Run<double> : Run<float>,
           isDouble ? ScratchOf<double>(operation, chunk) : ScratchOf<float>(operation, chunk),
           CostOfConvolution(operation, chunk) };
}

template <typename T>
std::size_t
BytesOfTables(const ImageConvolutionOperation & operation, const ChunkShape & chunk)
{
  const auto  bytes = [](std::int64_t numbers) { return RoundUp(static_cast<std::size_t>(numbers) * sizeof(T)); };
  Coordinates most{};
  const auto  block = LargestBlock<T>(operation, chunk, most); // whose lengths are those of any chunk
  const Box   states = Box::FromExtent(ConvolutionFactors::States(operation, chunk.image.Extents()));
  std::size_t sum = bytes(operation.kernel->GetNumberOfTaps());
  sum += operation.Renormalizes() ? bytes(states.NumberOfVoxels()) : 0;
  for (const auto & role : block.role)
  {
    // Twiddles there and back, or those of all passes, and positions.
    sum += role.transformed ? 2 * bytes(2 * role.length) + bytes(role.length) : 0;
  }
  return sum;
}

std::size_t
TableBytes(const Operation & operation, const ChunkShape & chunk)
{
  const auto & convolution = static_cast<const ImageConvolutionOperation &>(operation);
  return UsesDouble(chunk.inputKinds[0]) ? BytesOfTables<double>(convolution, chunk)
                                         : BytesOfTables<float>(convolution, chunk);
}

const char *
GetProvider(const Operation & operation, const std::string &)
{
  return TakesCufft(operation) ? "cufft" : "own";
}

} // namespace

void
RegisterCudaFftConvolution(KernelRegistry & registry)
{
  Kernel kernel = MakeChoosingKernel<ChooseConvolution>(true);
  kernel.provider = GetProvider;
  KernelSet kernels{ kernel };
  kernels.tableBytes = TableBytes;
  registry.Register("convolution.fft", kernels);
}

} // namespace chunkwise
