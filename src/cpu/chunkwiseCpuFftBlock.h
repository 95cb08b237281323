/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuFftBlock_h
#define chunkwiseCpuFftBlock_h

#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseCpuFft.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseResourceCache.h"

#include <algorithm>
#include <memory>
#include <new>
#include <string>

// A block is a plane array of cells, [batch][plane][row][frequencies]. Planes are transformed along x and y one at a
// time, rows that are all zero not at all; then each column across the planes is transformed, multiplied by the
// kernel's and transformed back without leaving the cache; then planes go back, along y and x, and of each step only
// what is kept is stored.
namespace chunkwise
{

/** Above this a chunk is convolved block by block: what a block takes for its spectrum. */
constexpr double LargestSpectrumBytes = 1024.0 * 1024 * 1024;

/** A worker alone. */
class InlineExecutor : public Executor
{
public:
  unsigned int
  GetConcurrency() const override
  {
    return 1;
  }
  void
  ParallelFor(std::int64_t count, const std::function<void(std::int64_t, unsigned int)> & body) override
  {
    for (std::int64_t i = 0; i < count; ++i)
    {
      body(i, 0);
    }
  }
};

/** The extents of a block's arrays, in cells. */
template <typename T>
struct CellShape
{
  std::int64_t rowCells;
  std::int64_t rows;   ///< of a plane of the spectrum
  std::int64_t planes; ///< that are stored
  std::int64_t batches;
  std::int64_t longest;   ///< transform
  std::int64_t planeRows; ///< before and after the transforms along y
  std::int64_t rowLength; ///< numbers of a row in space

  explicit CellShape(const ConvolutionBlock & block)
    : rowCells((block.HalfRow() + FftLanes<T> - 1) / FftLanes<T>)
    , rows(block.role[1].length)
    , planes(std::max(block.role[2].input, block.role[2].output))
    , batches(block.role[3].output * block.role[4].output)
    , longest(std::max({ block.role[0].length, block.role[1].length, block.role[2].length }))
    , planeRows(std::max(block.role[1].input, block.role[1].output))
    , rowLength((std::max(block.role[0].input, block.role[0].output) + 15) / 16 * 16)
  {}

  std::int64_t
  Spectrum() const
  {
    return batches * planes * rows * rowCells * FftCell<T>;
  }
  /** Numbers of a worker: two lines of cells, a transform's work, rows in space, and a plane. */
  std::int64_t
  Worker() const
  {
    return 4 * longest * FftCell<T> + 2 * FftLanes<T> * rowLength + planeRows * rowCells * FftCell<T>;
  }
};

/** What a worker has. */
template <typename T>
struct WorkSpace
{
  T * first;
  T * second;
  T * work;
  T * space;
  T * plane;

  WorkSpace(T * memory, const CellShape<T> & shape)
  {
    const std::int64_t line = shape.longest * FftCell<T>;
    first = memory;
    second = first + line;
    work = second + line;
    space = work + 2 * line;
    plane = space + 2 * FftLanes<T> * shape.rowLength;
  }
};

template <typename T>
class PlaneTransform
{
public:
  static constexpr std::int64_t Lanes = FftLanes<T>;
  static constexpr std::int64_t Cell = FftCell<T>;

  explicit PlaneTransform(const ConvolutionBlock & block)
    : m_Block(block)
    , m_Shape(block)
    , m_Functions(GetFftFunctions<T>())
    , m_PlanX(GetFftPlan<T>(block.role[0].length))
    , m_PlanY(GetFftPlan<T>(block.role[1].transformed ? block.role[1].length : 1))
  {}

  /** `rows` rows of `length` numbers, load(row, out), to a plane of the spectrum. */
  template <typename TLoad>
  void
  Forward(std::int64_t rows, std::int64_t length, T * spectrum, const WorkSpace<T> & space, TLoad && load) const
  {
    const bool         transformsY = m_Block.role[1].transformed;
    T * const          plane = transformsY ? space.plane : spectrum;
    const std::int64_t pitch = m_Shape.rowCells * Cell;
    // A kernel's rows may be longer than the block's.
    const std::int64_t rowLength = std::max(m_Shape.rowLength, (length + 15) / 16 * 16);
    for (std::int64_t first = 0; first < rows; first += 2 * Lanes)
    {
      const T * in[2 * Lanes];
      T *       out[2 * Lanes];
      for (std::int64_t l = 0; l < 2 * Lanes; ++l)
      {
        const bool exists = first + l < rows;
        in[l] = exists ? space.space + l * rowLength : nullptr;
        out[l] = exists ? plane + (first + l) * pitch : nullptr;
        if (exists)
        {
          load(first + l, space.space + l * rowLength);
        }
      }
      m_Functions.spread(space.first, 0, in, length);
      m_Functions.spread(space.first, 1, in + Lanes, length);
      m_Functions.transform(
        m_PlanX, { space.first, 1 }, length, { space.second, 1 }, 0, m_PlanX.length, false, space.work);
      m_Functions.separate(space.second, m_PlanX.length, out, out + Lanes);
    }
    for (std::int64_t c = 0; transformsY && c < m_Shape.rowCells; ++c)
    {
      m_Functions.transform(m_PlanY,
                            { plane + c * Cell, m_Shape.rowCells },
                            rows,
                            { spectrum + c * Cell, m_Shape.rowCells },
                            0,
                            m_PlanY.length,
                            false,
                            space.work);
    }
  }

  /** A plane of the spectrum to the rows that are kept, store(row, numbers). */
  template <typename TStore>
  void
  Inverse(T * spectrum, const WorkSpace<T> & space, TStore && store) const
  {
    const auto &       x = m_Block.role[0];
    const auto &       y = m_Block.role[1];
    T * const          plane = y.transformed ? space.plane : spectrum;
    const std::int64_t pitch = m_Shape.rowCells * Cell;
    for (std::int64_t c = 0; y.transformed && c < m_Shape.rowCells; ++c)
    {
      m_Functions.transform(m_PlanY,
                            { spectrum + c * Cell, m_Shape.rowCells },
                            m_PlanY.length,
                            { plane + c * Cell, m_Shape.rowCells },
                            y.crop,
                            y.crop + y.output,
                            true,
                            space.work);
    }
    for (std::int64_t first = 0; first < y.output; first += 2 * Lanes)
    {
      const T * in[2 * Lanes];
      T *       out[2 * Lanes];
      for (std::int64_t l = 0; l < 2 * Lanes; ++l)
      {
        const bool exists = first + l < y.output;
        in[l] = exists ? plane + (first + l) * pitch : nullptr;
        out[l] = exists ? space.space + l * m_Shape.rowLength : nullptr;
      }
      m_Functions.combine(space.first, m_PlanX.length, in, in + Lanes);
      m_Functions.transform(
        m_PlanX, { space.first, 1 }, m_PlanX.length, { space.second, 1 }, x.crop, x.crop + x.output, true, space.work);
      m_Functions.collect(space.second, 0, out, x.output);
      m_Functions.collect(space.second, 1, out + Lanes, x.output);
      for (std::int64_t l = 0; l < 2 * Lanes && first + l < y.output; ++l)
      {
        store(first + l, out[l]);
      }
    }
  }

private:
  const ConvolutionBlock & m_Block;
  const CellShape<T>       m_Shape;
  const FftFunctions<T> &  m_Functions;
  const FftPlan<T> &       m_PlanX;
  const FftPlan<T> &       m_PlanY;
};

/** The kernel's spectrum, [row][cell][plane], times what the transforms of both leave to be scaled. */
template <typename T>
std::shared_ptr<T>
MakeKernelSpectrum(const ConvolutionKernel & kernel, const ConvolutionBlock & block, Executor & executor)
{
  constexpr std::int64_t  Cell = FftCell<T>;
  const auto &            z = block.role[2];
  const CellShape<T>      shape(block);
  const PlaneTransform<T> planes(block);
  const FftFunctions<T> & functions = GetFftFunctions<T>();
  const FftPlan<T> &      planZ = GetFftPlan<T>(z.transformed ? z.length : 1);
  const std::int64_t      rows = block.role[1].transformed ? block.role[1].length : 1;
  double                  scale = 0.25;
  for (int r = 0; r < 3; ++r)
  {
    scale /= block.role[r].transformed ? static_cast<double>(block.role[r].length) : 1.0;
  }
  const auto allocate = [](std::int64_t numbers) {
    constexpr std::align_val_t alignment{ 64 };
    return std::shared_ptr<T>(
      static_cast<T *>(::operator new(static_cast<std::size_t>(numbers) * sizeof(T), alignment)),
      [alignment](T * memory) { ::operator delete(memory, alignment); });
  };
  // Before the transform across the planes: the kernel's own planes alone.
  const std::int64_t columns = rows * shape.rowCells;
  const auto         partial = allocate(z.kernel * columns * Cell);
  const auto         spectrum = allocate(columns * planZ.length * Cell);
  // A worker's space for the kernel's extents, which may exceed the block's.
  CellShape<T> kernelShape = shape;
  kernelShape.planeRows = std::max(shape.planeRows, block.role[1].kernel);
  kernelShape.rowLength = std::max(shape.rowLength, (block.role[0].kernel + 15) / 16 * 16);
  const auto        workers = static_cast<std::int64_t>(executor.GetConcurrency());
  const auto        memory = allocate(kernelShape.Worker() * workers);
  const Coordinates strides = DenseStrides(kernel.GetExtent());
  executor.ParallelFor(z.kernel, [&](std::int64_t plane, unsigned int worker) {
    const WorkSpace<T> space(memory.get() + worker * kernelShape.Worker(), kernelShape);
    planes.Forward(block.role[1].kernel,
                   block.role[0].kernel,
                   partial.get() + plane * columns * Cell,
                   space,
                   [&](std::int64_t row, T * out) {
                     const double * const weights =
                       kernel.GetWeights().data() + plane * strides[z.axis] + row * strides[block.role[1].axis];
                     for (std::int64_t i = 0; i < block.role[0].kernel; ++i)
                     {
                       out[i] = static_cast<T>(weights[i * strides[block.role[0].axis]] * scale);
                     }
                   });
  });
  executor.ParallelFor(columns, [&](std::int64_t column, unsigned int worker) {
    const WorkSpace<T> space(memory.get() + worker * kernelShape.Worker(), kernelShape);
    functions.transform(planZ,
                        { partial.get() + column * Cell, columns },
                        z.kernel,
                        { spectrum.get() + column * planZ.length * Cell, 1 },
                        0,
                        planZ.length,
                        false,
                        space.work);
  });
  return spectrum;
}

template <typename T>
std::shared_ptr<void>
GetKernelSpectrum(const ConvolutionKernel & kernel, const ConvolutionBlock & block, Executor & executor)
{
  // Never destroyed: runs may outlive static destruction in other threads.
  static auto & cache = *new ResourceCache;
  std::string key = std::string(sizeof(T) == 4 ? "float" : "double") + " " + GetCpuLevel().name + " " + kernel.GetKey();
  std::size_t numbers = static_cast<std::size_t>(FftCell<T>);
  for (int r = 0; r < 3; ++r)
  {
    const auto & role = block.role[r];
    if (role.transformed)
    {
      key += " " + std::to_string(role.length);
      numbers *= static_cast<std::size_t>(r == 0 ? CellShape<T>(block).rowCells : role.length);
    }
  }
  return cache.GetOrMake(
    key, [&] { return ResourceCache::Entry{ MakeKernelSpectrum<T>(kernel, block, executor), numbers * sizeof(T) }; });
}

/** The largest block of an image: so large that its spectrum is at most LargestSpectrumBytes, if it can be. */
template <typename T>
Coordinates
LargestBlock(const ImageConvolutionOperation & operation, const Coordinates & image)
{
  Coordinates extent = image;
  for (;;)
  {
    const auto block = ConvolutionBlock::Largest(operation, extent, image);
    if (static_cast<double>(CellShape<T>(block).Spectrum()) * sizeof(T) <= LargestSpectrumBytes)
    {
      return extent;
    }
    // The axis whose halving adds the least overlap.
    int    best = -1;
    double most = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const double ratio = static_cast<double>(extent[a]) / static_cast<double>(operation.kernel->GetExtent()[a]);
      if (extent[a] > 1 && extent[a] >= operation.kernel->GetExtent()[a] / 2 && ratio > most)
      {
        best = a;
        most = ratio;
      }
    }
    if (best < 0)
    {
      return extent;
    }
    extent[best] = (extent[best] + 1) / 2;
  }
}

/** Convolves one block of the output by call.operation, a ImageConvolutionOperation: rows.Load(at, axis, n, row) gives
 * n numbers of the input's line through `at`, and rows.Store(at, axis, n, row) takes those of the output's. `support`
 * as in ConvolutionBlock. */
template <typename T, typename TRows>
void
RunBlock(const KernelCall & call, const TRows & rows, const Box & output, const Box * support = nullptr)
{
  constexpr std::int64_t  Cell = FftCell<T>;
  const auto &            operation = static_cast<const ImageConvolutionOperation &>(*call.operation);
  const ConvolutionBlock  block(operation, output, call.image.Extents(), support);
  const CellShape<T>      shape(block);
  const PlaneTransform<T> planes(block);
  const FftFunctions<T> & functions = GetFftFunctions<T>();
  const auto &            z = block.role[2];
  const FftPlan<T> &      planZ = GetFftPlan<T>(z.transformed ? z.length : 1);
  const auto              held = GetKernelSpectrum<T>(*operation.kernel, block, *call.executor);
  const T * const         kernelSpectrum = static_cast<const T *>(held.get());
  T * const               spectrum = static_cast<T *>(call.scratch);
  const auto              spaceOf = [&](unsigned int worker) {
    return WorkSpace<T>(spectrum + shape.Spectrum() + worker * shape.Worker(), shape);
  };
  const auto stops = [&] { return call.control && call.control->ShouldStop(); };
  // In this mode what lies beyond is 0 once the constant is subtracted.
  const T constant =
    operation.boundary.mode == BoundaryMode::Constant ? static_cast<T>(operation.boundary.constant) : T(0);
  const T            constantSum = static_cast<T>(operation.boundary.constant * operation.kernel->GetSum());
  const std::int64_t planeNumbers = shape.rows * shape.rowCells * Cell;
  const auto         batchIndex = [&](std::int64_t batch, Coordinates & at) {
    const auto & third = block.role[3];
    const auto & fourth = block.role[4];
    at[third.axis] = third.lower + batch % third.output;
    at[fourth.axis] = fourth.lower + batch / third.output;
  };

  call.executor->ParallelFor(shape.batches * z.input, [&](std::int64_t task, unsigned int worker) {
    if (stops())
    {
      return;
    }
    const std::int64_t plane = task % z.input;
    const std::int64_t batch = task / z.input;
    Coordinates        at{};
    batchIndex(batch, at);
    at[z.axis] = z.lower + plane;
    planes.Forward(block.role[1].input,
                   block.role[0].input,
                   spectrum + (batch * shape.planes + plane) * planeNumbers,
                   spaceOf(worker),
                   [&](std::int64_t row, T * out) {
                     Coordinates line = at;
                     line[block.role[1].axis] = block.role[1].lower + row;
                     line[block.role[0].axis] = block.role[0].lower;
                     rows.Load(line, block.role[0].axis, block.role[0].input, out);
                     for (std::int64_t i = 0; constant != T(0) && i < block.role[0].input; ++i)
                     {
                       out[i] -= constant;
                     }
                   });
  });

  const std::int64_t columns = shape.rows * shape.rowCells;
  const bool         transformsY = block.role[1].transformed;
  call.executor->ParallelFor(shape.batches * shape.rows, [&](std::int64_t task, unsigned int worker) {
    if (stops())
    {
      return;
    }
    const std::int64_t row = task % shape.rows;
    const WorkSpace<T> space = spaceOf(worker);
    for (std::int64_t c = 0; c < shape.rowCells; ++c)
    {
      T * const column = spectrum + (task / shape.rows * shape.planes * columns + row * shape.rowCells + c) * Cell;
      const T * const factors = kernelSpectrum + ((transformsY ? row : 0) * shape.rowCells + c) * planZ.length * Cell;
      if (!z.transformed)
      {
        for (std::int64_t plane = 0; plane < z.output; ++plane)
        {
          functions.multiply(column + plane * columns * Cell, factors, 0, 1);
        }
        continue;
      }
      functions.transform(planZ, { column, columns }, z.input, { space.first, 1 }, 0, planZ.length, false, space.work);
      functions.multiply(space.first, factors, 1, planZ.length);
      functions.transform(
        planZ, { space.first, 1 }, planZ.length, { column, columns }, z.crop, z.crop + z.output, true, space.work);
    }
  });

  call.executor->ParallelFor(shape.batches * z.output, [&](std::int64_t task, unsigned int worker) {
    if (stops())
    {
      return;
    }
    const std::int64_t plane = task % z.output;
    const std::int64_t batch = task / z.output;
    Coordinates        at{};
    batchIndex(batch, at);
    at[z.axis] = output.lower[z.axis] + plane;
    planes.Inverse(
      spectrum + (batch * shape.planes + plane) * planeNumbers, spaceOf(worker), [&](std::int64_t row, T * sums) {
        Coordinates line = at;
        line[block.role[1].axis] = output.lower[block.role[1].axis] + row;
        line[block.role[0].axis] = output.lower[block.role[0].axis];
        for (std::int64_t i = 0; constant != T(0) && i < block.role[0].output; ++i)
        {
          sums[i] += constantSum;
        }
        rows.Store(line, block.role[0].axis, block.role[0].output, sums);
      });
    if (call.control)
    {
      call.control->AddFinishedVoxels(block.role[0].output * block.role[1].output);
    }
  });
}

} // namespace chunkwise

#endif
