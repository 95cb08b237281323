/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaCufftConvolution.h"
#include "chunkwiseCudaConvolutionRows.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCufft.h"
#include "chunkwiseError.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <type_traits>

// A chunk is one block, a dense array [batch][plane][row][frequency] of half spectra, in whose place its rows of real
// numbers are before. Planes along x and y are transformed by one batch of cuFFT's, except planes that are all zero or
// cropped; columns along the third axis by another one. In between everything is multiplied by the kernel's
// spectrum.
namespace chunkwise
{

namespace
{

/** Work area for this much at a time is enough for cuFFT to fill a device. */
constexpr std::size_t MostWorkBytes = std::size_t{ 256 } << 20;
/** cuFFT asks for as many bytes as it transforms, where it asks for any, of lengths without large factors. */
constexpr std::size_t WorkOfOne = 3;
constexpr std::size_t LeastWorkBytes = std::size_t{ 1 } << 20;

/** Rows of pixels, each followed by zeros, and rows and planes of zeros behind. A block of threads for each row. */
template <typename T, bool VNative>
__global__ void
LoadRowsKernel(RowSource source, Spectrum spectrum, T * __restrict__ out)
{
  __shared__ long long from;
  const std::int64_t   row = blockIdx.x;
  if (threadIdx.x == 0)
  {
    const std::int64_t y = row % spectrum.rows;
    const std::int64_t z = row / spectrum.rows % spectrum.planes;
    const std::int64_t batch = row / spectrum.rows / spectrum.planes;
    from = -1;
    if (y < source.count[1] && z < source.count[2])
    {
      // The same row where planes hold no others.
      long long        to = 0;
      const PlaneRange plane{ batch * source.count[2] + z, 1 };
      FindSource(source, spectrum, plane, y, from, to);
    }
  }
  __syncthreads();
  const T            constant = static_cast<T>(source.constant);
  const std::int64_t begin = from;
  const std::int64_t live = begin < 0 ? 0 : source.count[0];
  T * const          to = out + 2 * row * spectrum.pitch;
  for (std::int64_t i = threadIdx.x; i < 2 * spectrum.pitch; i += blockDim.x)
  {
    T value = T(0);
    if (i < live)
    {
      std::int64_t x = source.lower[0] + i;
      if (x < source.boxLower[0] || x >= source.boxUpper[0])
      {
        x = MapTap(x, source.boxLower[0], source.boxUpper[0], source.n[0], source.mode);
      }
      value =
        LoadAs<T, VNative>(source.data, source.kind, begin + (x - source.boxLower[0]) * source.stride[0]) - constant;
    }
    to[i] = value;
  }
}

/** The rows that are kept to pixels. `shift`: from where a row would be that begins at 0 along the other axes, in
 * complex numbers. */
template <typename T, bool VNative>
__global__ void
StoreRowsKernel(RowTarget target, Spectrum spectrum, std::int64_t shift, const T * __restrict__ in)
{
  __shared__ long long from;
  __shared__ long long to;
  __shared__ long long factorRow;
  if (threadIdx.x == 0)
  {
    const std::int64_t row = blockIdx.x;
    const PlaneRange   plane{ row / target.count[1], 1 };
    FindTarget(target, spectrum, plane, row % target.count[1], from, to, factorRow);
  }
  __syncthreads();
  const T         scale = static_cast<T>(target.scale);
  const T         constant = static_cast<T>(target.constant);
  const auto      factors = static_cast<const T *>(target.factors);
  const T * const numbers = in + 2 * (from + shift) + target.crop;
  for (std::int64_t x = threadIdx.x; x < target.count[0]; x += blockDim.x)
  {
    T value = fma(numbers[x], scale, constant);
    if (factors)
    {
      const std::int64_t state =
        ConvolutionFactors::State(target.lower[0] + x, target.n[0], target.kernel[0], target.below[0]);
      value *= __ldg(factors + factorRow + target.factorStride[0] * state);
    }
    StoreAs<T, VNative>(target.data, target.kind, to + x * target.stride[0], value);
  }
}

/** Every one of `repeats` spectra times the kernel's, of `count` frequencies. */
template <typename TComplex>
__global__ void
ProductOfSpectraKernel(TComplex * __restrict__ data, const TComplex * __restrict__ kernel, std::int64_t count,
                       std::int64_t repeats)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
  {
    const TComplex b = kernel[i];
    for (std::int64_t repeat = blockIdx.y; repeat < repeats; repeat += gridDim.y)
    {
      TComplex &     z = data[repeat * count + i];
      const TComplex a = z;
      z.x = fma(a.x, b.x, -a.y * b.y);
      z.y = fma(a.x, b.y, a.y * b.x);
    }
  }
}

/** The device memory of a chunk's transforms. */
template <typename T>
struct CufftShape
{
  static constexpr std::size_t ComplexBytes = 2 * sizeof(T);

  Spectrum     spectrum;
  std::int64_t batches;
  std::int64_t perKernel; ///< frequencies of the kernel's spectrum
  int          axes;      ///< that are transformed
  std::size_t  spectrumBytes;
  std::size_t  kernelBytes;
  std::size_t  workBytes;

  explicit CufftShape(const ConvolutionBlock & block)
  {
    axes = 0;
    while (axes < MaxSpatialAxes && block.role[axes].transformed)
    {
      ++axes;
    }
    const auto extent = [&](int r) {
      const auto & role = block.role[r];
      return role.transformed ? role.length : std::max(role.input, role.output);
    };
    spectrum.half = block.HalfRow();
    spectrum.pitch = spectrum.half;
    spectrum.rows = extent(1);
    spectrum.planes = extent(2);
    batches = block.role[3].output * block.role[4].output;
    perKernel = spectrum.pitch * (axes > 1 ? spectrum.rows : 1) * (axes > 2 ? spectrum.planes : 1);
    const auto bytes = [](std::int64_t numbers) { return static_cast<std::size_t>(numbers) * ComplexBytes; };
    spectrumBytes = RoundUp(bytes(batches * spectrum.planes * Plane()));
    kernelBytes = RoundUp(bytes(perKernel));
    const std::size_t one = bytes(std::max(axes > 1 ? Plane() : spectrum.pitch, axes > 2 ? spectrum.planes : 1));
    workBytes = RoundUp(std::max({ std::min(spectrumBytes, MostWorkBytes), WorkOfOne * one, LeastWorkBytes }));
  }

  std::int64_t
  Plane() const
  {
    return spectrum.rows * spectrum.pitch;
  }
  std::int64_t
  Volume() const
  {
    return spectrum.planes * Plane();
  }
};

template <typename T>
class CufftConvolution
{
public:
  using Complex = std::conditional_t<std::is_same<T, float>::value, float2, double2>;

  CufftConvolution(const KernelCall & call, const Box & output)
    : m_Call(call)
    , m_Operation(static_cast<const ImageConvolutionOperation &>(*call.operation))
    , m_Output(output)
    , m_Block(m_Operation, output, call.image.Extents())
    , m_Shape(m_Block)
    , m_Stream(static_cast<cudaStream_t>(call.stream))
    , m_Data(static_cast<T *>(call.scratch))
    , m_Work(static_cast<char *>(call.scratch) + m_Shape.spectrumBytes + m_Shape.kernelBytes)
  {
    if (m_Shape.spectrumBytes + m_Shape.kernelBytes + m_Shape.workBytes > call.scratchBytes)
    {
      throw DeviceError(DeviceError::Kind::OutOfMemory,
                        "transform",
                        "CUDA",
                        m_Shape.spectrumBytes + m_Shape.kernelBytes + m_Shape.workBytes,
                        "the scratch memory is " + std::to_string(call.scratchBytes) + " bytes");
    }
  }

  void
  Run() const
  {
    const Complex * const kernel = GetKernelSpectrum();
    Load(MakeImageSource(m_Call, m_Operation, m_Block), m_Shape.spectrum, m_Shape.batches, m_Data);
    Transform(false, m_Shape.batches, m_Block.role[2].input, 0, m_Data);
    const std::int64_t repeats = m_Shape.batches * m_Shape.Volume() / m_Shape.perKernel;
    const auto blocks = static_cast<unsigned int>(std::min<std::int64_t>((m_Shape.perKernel + 255) / 256, 1 << 20));
    ProductOfSpectraKernel<<<dim3(blocks, static_cast<unsigned int>(std::min<std::int64_t>(repeats, 65535))),
                             256,
                             0,
                             m_Stream>>>(reinterpret_cast<Complex *>(m_Data), kernel, m_Shape.perKernel, repeats);
    CheckLaunch("ProductOfSpectraKernel");
    Transform(true, m_Shape.batches, m_Block.role[2].output, m_Shape.axes > 2 ? m_Block.role[2].crop : 0, m_Data);
    Store();
  }

private:
  /** Kept if there is room, else made in scratch. */
  const Complex *
  GetKernelSpectrum() const
  {
    std::string key = m_Operation.kernel->GetKey() + (sizeof(T) == 4 ? " cufft spectrum f32" : " cufft spectrum f64");
    for (int r = 0; r < m_Shape.axes; ++r)
    {
      key += " " + std::to_string(m_Block.role[r].length);
    }
    const void * const kept = m_Call.tables->GetMade(key, m_Shape.kernelBytes, [this](void * memory) {
      MakeKernelSpectrum(static_cast<T *>(memory));
      CheckCuda(cudaStreamSynchronize(m_Stream), "cudaStreamSynchronize");
    });
    if (kept)
    {
      return static_cast<const Complex *>(kept);
    }
    auto * const made = reinterpret_cast<T *>(static_cast<char *>(m_Call.scratch) + m_Shape.spectrumBytes);
    MakeKernelSpectrum(made);
    return reinterpret_cast<const Complex *>(made);
  }

  void
  MakeKernelSpectrum(T * out) const
  {
    Spectrum spectrum = m_Shape.spectrum;
    spectrum.rows = m_Shape.axes > 1 ? spectrum.rows : 1;
    spectrum.planes = m_Shape.axes > 2 ? spectrum.planes : 1;
    Load(MakeKernelSource<T>(m_Call, *m_Operation.kernel, m_Block), spectrum, 1, out);
    TransformRows(false, spectrum, m_Shape.axes > 2 ? m_Block.role[2].kernel : 1, out);
    if (m_Shape.axes > 2)
    {
      TransformColumns(false, out);
    }
  }

  void
  Load(const RowSource & source, const Spectrum & spectrum, std::int64_t batches, T * out) const
  {
    const std::int64_t rows = batches * spectrum.planes * spectrum.rows;
    const auto         load = source.kind == PixelTypeOf<T>() ? LoadRowsKernel<T, true> : LoadRowsKernel<T, false>;
    load<<<CountOf(rows), ThreadsOf(2 * spectrum.pitch), 0, m_Stream>>>(source, spectrum, out);
    CheckLaunch("LoadRowsKernel");
  }

  void
  Store() const
  {
    const RowTarget    target = MakeTarget<T>(m_Call, m_Operation, m_Block, m_Output);
    const std::int64_t shift = (m_Shape.axes > 2 ? m_Block.role[2].crop * m_Shape.Plane() : 0) +
                               (m_Shape.axes > 1 ? m_Block.role[1].crop * m_Shape.spectrum.pitch : 0);
    const std::int64_t rows = m_Shape.batches * target.count[2] * target.count[1];
    const auto         store = target.kind == PixelTypeOf<T>() ? StoreRowsKernel<T, true> : StoreRowsKernel<T, false>;
    store<<<CountOf(rows), ThreadsOf(target.count[0]), 0, m_Stream>>>(
      target, m_Shape.spectrum, shift, static_cast<const T *>(m_Data));
    CheckLaunch("StoreRowsKernel");
  }

  static unsigned int
  CountOf(std::int64_t rows)
  {
    if (rows > 0x7fffffff)
    {
      throw DeviceError(DeviceError::Kind::OutOfMemory, "transform", "CUDA", 0, "a chunk has too many rows");
    }
    return static_cast<unsigned int>(rows);
  }
  static unsigned int
  ThreadsOf(std::int64_t numbers)
  {
    return numbers > 256 ? 256 : (numbers > 64 ? 128 : 32);
  }

  /** Planes [first, first + live) of each batch along x and y, and all columns across. */
  void
  Transform(bool inverse, std::int64_t batches, std::int64_t live, std::int64_t first, T * data) const
  {
    if (m_Shape.axes < 3)
    {
      TransformRows(inverse, m_Shape.spectrum, batches * m_Shape.spectrum.planes, data);
      return;
    }
    for (std::int64_t batch = 0; batch < batches; ++batch)
    {
      T * const volume = data + 2 * batch * m_Shape.Volume();
      if (inverse)
      {
        TransformColumns(true, volume);
      }
      TransformRows(inverse, m_Shape.spectrum, live, volume + 2 * first * m_Shape.Plane());
      if (!inverse)
      {
        TransformColumns(false, volume);
      }
    }
  }

  /** So many planes along x and y, or the rows of so many planes. */
  void
  TransformRows(bool inverse, const Spectrum & spectrum, std::int64_t planes, T * data) const
  {
    CufftLines lines;
    lines.sort = inverse ? CufftLines::Sort::ComplexToReal : CufftLines::Sort::RealToComplex;
    lines.rank = m_Shape.axes > 1 ? 2 : 1;
    const int x = lines.rank - 1;
    lines.length[x] = m_Block.role[0].length;
    lines.inExtent[x] = inverse ? spectrum.pitch : 2 * spectrum.pitch;
    lines.outExtent[x] = inverse ? 2 * spectrum.pitch : spectrum.pitch;
    if (lines.rank == 2)
    {
      lines.length[0] = m_Block.role[1].length;
      lines.inExtent[0] = lines.outExtent[0] = spectrum.rows;
    }
    lines.distance = (lines.rank == 2 ? spectrum.rows : 1) * spectrum.pitch;
    Execute(lines, lines.rank == 2 ? planes : planes * spectrum.rows, inverse, data);
  }

  void
  TransformColumns(bool inverse, T * volume) const
  {
    CufftLines lines;
    lines.length[0] = lines.inExtent[0] = lines.outExtent[0] = m_Block.role[2].length;
    lines.stride = m_Shape.Plane();
    Execute(lines, m_Shape.Plane(), inverse, volume);
  }

  void
  Execute(CufftLines lines, std::int64_t count, bool inverse, T * data) const
  {
    lines.isDouble = sizeof(T) == 8;
    CufftPlan::Get(lines, count, m_Shape.workBytes)->Run(m_Stream, data, inverse, m_Work);
  }

  const KernelCall &                m_Call;
  const ImageConvolutionOperation & m_Operation;
  const Box                         m_Output;
  const ConvolutionBlock            m_Block;
  const CufftShape<T>               m_Shape;
  const cudaStream_t                m_Stream;
  T * const                         m_Data;
  void * const                      m_Work;
};

template <typename T>
CufftShape<T>
LargestShape(const Operation & operation, const ChunkShape & chunk)
{
  const auto & convolution = static_cast<const ImageConvolutionOperation &>(operation);
  return CufftShape<T>(ConvolutionBlock::Largest(convolution, chunk.outputBox.Extents(), chunk.image.Extents()));
}

template <typename T>
std::size_t
ScratchOf(const Operation & operation, const ChunkShape & chunk)
{
  const CufftShape<T> shape = LargestShape<T>(operation, chunk);
  return shape.spectrumBytes + shape.kernelBytes + shape.workBytes;
}

} // namespace

void
RunCufftConvolution(const KernelCall & call)
{
  if (UsesDouble(call.inputs[0].kind))
  {
    CufftConvolution<double>(call, call.output.box).Run();
  }
  else
  {
    CufftConvolution<float>(call, call.output.box).Run();
  }
}

std::size_t
ScratchOfCufftConvolution(const Operation & operation, const ChunkShape & chunk)
{
  return UsesDouble(chunk.inputKinds[0]) ? ScratchOf<double>(operation, chunk) : ScratchOf<float>(operation, chunk);
}

/** How often the spectrum is read or written: by a load and a store, by each axis there and back (twice each), and by
 * the product, which reads the kernel's as well. */
double
CostOfCufftConvolution(const Operation & operation, const ChunkShape & chunk)
{
  const CufftShape<float> shape = LargestShape<float>(operation, chunk);
  const double            size = UsesDouble(chunk.inputKinds[0]) ? 2 : 1;
  return size * (1.2 * (5 + 4 * shape.axes) * static_cast<double>(shape.spectrumBytes)) +
         static_cast<double>(PixelSize(chunk.inputKinds[0])) * static_cast<double>(chunk.inputBox.NumberOfVoxels()) +
         static_cast<double>(PixelSize(chunk.outputKind)) * static_cast<double>(chunk.outputBox.NumberOfVoxels());
}

} // namespace chunkwise
