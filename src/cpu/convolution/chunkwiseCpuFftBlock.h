/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuFftBlock_h
#define chunkwiseCpuFftBlock_h

#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseCpuFft.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseExecutor.h"

#include <algorithm>
#include <string>

// A block is a plane array of cells, [batch][plane][row][frequencies]. Planes are transformed along x and y one at a
// time, rows that are all zero not at all; then each column across the planes is transformed, multiplied by the
// kernel's and transformed back without leaving the cache; then planes go back, along y and x, and of each step only
// what is kept is stored. If kernels extend along two axes, the columns are those of a plane: its rows are transformed
// some at a time, then each column there, times the kernel's, and back, then rows back.
namespace chunkwise
{

/** Above this a chunk is convolved block by block: what a block takes for its spectrum. */
constexpr double LargestSpectrumBytes = 1024.0 * 1024 * 1024;

/** The extents of a block's arrays, in cells. */
template <typename T>
struct CellShape
{
  bool         flat; ///< two axes are transformed
  std::int64_t rowCells;
  std::int64_t rows;   ///< of a plane of the spectrum
  std::int64_t planes; ///< that are stored
  std::int64_t batches;
  std::int64_t longest;   ///< transform
  std::int64_t planeRows; ///< before and after the transforms along y
  std::int64_t column;    ///< cells of a column that is convolved in tiles, or of its transform
  std::int64_t rowLength; ///< numbers of a row in space

  explicit CellShape(const ConvolutionBlock & block)
    : flat(block.role[1].transformed && !block.role[2].transformed)
    , rowCells((block.HalfRow() + FftLanes<T> - 1) / FftLanes<T>)
    , rows(flat ? std::max(block.role[1].input, block.role[1].output) : block.role[1].length)
    , planes(std::max(block.role[2].input, block.role[2].output))
    , batches(block.role[3].output * block.role[4].output)
    , longest(std::max({ block.role[0].length, block.role[1].length, block.role[2].length }))
    , planeRows(flat ? 0 : std::max({ block.role[1].input, block.role[1].output, block.role[1].kernel }))
    , column(block.LastRole() == 2 && block.lastTile > 0
               ? std::max(block.role[block.LastRole()].input, block.role[block.LastRole()].length)
               : 0)
    , rowLength((std::max({ block.role[0].input, block.role[0].output, block.role[0].kernel }) + 15) / 16 * 16)
  {}

  std::int64_t
  Plane() const
  {
    return rows * rowCells * FftCell<T>;
  }
  std::int64_t
  Spectrum() const
  {
    return batches * planes * Plane();
  }
  /** Numbers of a worker: two lines of cells, a transform's work, a column, rows in space, and a plane. */
  std::int64_t
  Worker() const
  {
    return (4 * longest + column + planeRows * rowCells) * FftCell<T> + 2 * FftLanes<T> * rowLength;
  }
};

/** The memory of a worker. */
template <typename T>
struct WorkSpace
{
  T * first;
  T * second;
  T * work;
  T * column;
  T * space;
  T * plane;

  WorkSpace(T * memory, const CellShape<T> & shape)
  {
    const std::int64_t line = shape.longest * FftCell<T>;
    first = memory;
    second = first + line;
    work = second + line;
    column = work + 2 * line;
    space = column + shape.column * FftCell<T>;
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
    , m_Functions(GetFftFunctions<T>(block.transforms))
    , m_PlanX(GetFftPlan<T>(block.role[0].length, block.transforms))
    , m_PlanY(GetFftPlan<T>(HasColumns() ? block.role[1].length : 1, block.transforms))
  {}

  /** Whether planes are transformed along y too; else rows are separate tasks, so many at a time. */
  bool
  HasColumns() const
  {
    return m_Block.role[1].transformed && !m_Shape.flat;
  }
  std::int64_t
  RowsOfTask(std::int64_t rows) const
  {
    return HasColumns() ? rows : std::min(rows, 2 * Lanes);
  }
  std::int64_t
  TasksOf(std::int64_t rows) const
  {
    return (rows + RowsOfTask(rows) - 1) / RowsOfTask(rows);
  }

  /** Task `task` of a plane's `rows` rows of `length` numbers, load(row, out), to a plane of the spectrum. */
  template <typename TLoad>
  void
  Forward(std::int64_t task, std::int64_t rows, std::int64_t length, T * spectrum, const WorkSpace<T> & space,
          TLoad && load) const
  {
    T * const          plane = HasColumns() ? space.plane : spectrum;
    const std::int64_t pitch = m_Shape.rowCells * Cell;
    const std::int64_t rowLength = m_Shape.rowLength;
    const std::int64_t perTask = RowsOfTask(rows);
    for (std::int64_t first = task * perTask; first < std::min(rows, (task + 1) * perTask); first += 2 * Lanes)
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
    for (std::int64_t c = 0; HasColumns() && c < m_Shape.rowCells; ++c)
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

  /** Transforms task `task` of a plane of the spectrum to the rows [from, to) of the kept rows, store(row, numbers). */
  template <typename TStore>
  void
  Inverse(std::int64_t task, std::int64_t from, std::int64_t to, T * spectrum, const WorkSpace<T> & space,
          TStore && store) const
  {
    const auto &       x = m_Block.role[0];
    const auto &       y = m_Block.role[1];
    T * const          plane = HasColumns() ? space.plane : spectrum;
    const std::int64_t pitch = m_Shape.rowCells * Cell;
    const std::int64_t perTask = RowsOfTask(y.output);
    for (std::int64_t c = 0; HasColumns() && c < m_Shape.rowCells; ++c)
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
    for (std::int64_t first = task * perTask; first < std::min(y.output, (task + 1) * perTask); first += 2 * Lanes)
    {
      if (first >= to || first + 2 * Lanes <= from)
      {
        continue;
      }
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
      for (std::int64_t l = std::max<std::int64_t>(0, from - first); l < 2 * Lanes && first + l < to; ++l)
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

/** The axis that is transformed last: across planes, or along the columns of each. */
template <typename T>
const ConvolutionBlock::Axis &
LastAxis(const ConvolutionBlock & block)
{
  return block.role[CellShape<T>(block).flat ? 1 : 2];
}

/** Numbers of a kernel's rows, and of its spectrum. */
template <typename T>
std::int64_t
NumbersOfKernelRows(const ConvolutionBlock & block)
{
  const CellShape<T> shape(block);
  const bool         hasColumns = block.role[1].transformed && !shape.flat;
  return LastAxis<T>(block).kernel * (hasColumns ? shape.rows : 1) * shape.rowCells * FftCell<T>;
}
template <typename T>
std::int64_t
NumbersOfKernelSpectrum(const ConvolutionBlock & block)
{
  const auto & last = LastAxis<T>(block);
  return NumbersOfKernelRows<T>(block) / last.kernel * (last.transformed ? last.length : 1);
}

/** The numbers that a block takes of the scratch, in this order. */
template <typename T>
struct BlockNumbers
{
  std::int64_t spectrum;
  std::int64_t kernelRows;
  std::int64_t space; ///< of a worker

  explicit BlockNumbers(const ConvolutionBlock & block)
    : spectrum(CellShape<T>(block).Spectrum())
    , kernelRows(NumbersOfKernelRows<T>(block))
    , space(CellShape<T>(block).Worker())
  {}
  std::int64_t
  Of(std::int64_t workers) const
  {
    return spectrum + kernelRows + workers * space;
  }
};

/** The kernel, times what the transforms of both leave to be scaled, transformed along all axes but the last:
 * [plane][row][cell], or [row][cell]. spaceOf(worker): a WorkSpace. */
template <typename T, typename TSpaceOf>
void
TransformKernelRows(const ConvolutionKernel & kernel, const ConvolutionBlock & block, Executor & executor,
                    TSpaceOf && spaceOf, T * out)
{
  const PlaneTransform<T> planes(block);
  const CellShape<T>      shape(block);
  const auto &            z = block.role[2];
  const std::int64_t      rows = block.role[1].kernel;
  const std::int64_t      plane = NumbersOfKernelRows<T>(block) / LastAxis<T>(block).kernel * (shape.flat ? rows : 1);
  const Coordinates       strides = DenseStrides(kernel.GetExtent());
  const std::int64_t      perPlane = planes.TasksOf(rows);
  double                  scale = 0.25;
  for (int r = 0; r < 3; ++r)
  {
    scale /= block.role[r].transformed ? static_cast<double>(block.role[r].length) : 1.0;
  }
  executor.ParallelFor(z.kernel * perPlane, [&](std::int64_t task, unsigned int worker) {
    const std::int64_t at = task / perPlane;
    planes.Forward(task % perPlane,
                   rows,
                   block.role[0].kernel,
                   out + at * plane,
                   spaceOf(worker),
                   [&](std::int64_t row, T * numbers) {
                     const double * const weights =
                       kernel.GetWeights().data() + at * strides[z.axis] + row * strides[block.role[1].axis];
                     for (std::int64_t i = 0; i < block.role[0].kernel; ++i)
                     {
                       numbers[i] = static_cast<T>(weights[i * strides[block.role[0].axis]] * scale);
                     }
                   });
  });
}

/** The kernel's spectrum, [row][cell][plane], or [cell][row], from its rows, for which there is room at `rows`. */
template <typename T, typename TSpaceOf>
void
MakeKernelSpectrum(const ConvolutionKernel & kernel, const ConvolutionBlock & block, Executor & executor,
                   TSpaceOf && spaceOf, T * rows, T * out)
{
  constexpr std::int64_t  Cell = FftCell<T>;
  const auto &            last = LastAxis<T>(block);
  const FftFunctions<T> & functions = GetFftFunctions<T>(block.transforms);
  const FftPlan<T> &      plan = GetFftPlan<T>(last.transformed ? last.length : 1, block.transforms);
  const std::int64_t      columns = NumbersOfKernelRows<T>(block) / last.kernel / Cell;
  TransformKernelRows(kernel, block, executor, spaceOf, rows);
  executor.ParallelFor(columns, [&](std::int64_t column, unsigned int worker) {
    functions.transform(plan,
                        { rows + column * Cell, columns },
                        last.kernel,
                        { out + column * plan.length * Cell, 1 },
                        0,
                        plan.length,
                        false,
                        spaceOf(worker).work);
  });
}

template <typename T>
std::string
KeyOfKernelSpectrum(const ConvolutionKernel & kernel, const ConvolutionBlock & block)
{
  std::string key = kernel.GetKey() + (sizeof(T) == 4 ? " spectrum f32 " : " spectrum f64 ") + GetCpuLevel().name;
  key += block.transforms == TransformProvider::FFTW ? " by fftw" : "";
  for (int r = 0; r < 3; ++r)
  {
    key += block.role[r].transformed ? " " + std::to_string(block.role[r].length) : std::string();
  }
  return key;
}

/** The largest block of an image, a number of tiles along the last axis and along axes that are not transformed: so
 * large that its spectrum is at most LargestSpectrumBytes, if it can be. */
template <typename T>
Coordinates
LargestBlock(const ImageConvolutionOperation & operation, const Coordinates & image, const Coordinates & tile)
{
  const auto  roles = ConvolutionBlock::Largest(operation, tile, image);
  Coordinates extent = image;
  // Lines along the first axis are transformed in pairs, which follow each other along the second one.
  for (int r = 0; r < 2 && roles.role[r].transformed; ++r)
  {
    extent[roles.role[r].axis] = tile[roles.role[r].axis];
  }
  for (;;)
  {
    const auto block = ConvolutionBlock::Largest(operation, extent, image, tile);
    if (static_cast<double>(CellShape<T>(block).Spectrum()) * sizeof(T) <= LargestSpectrumBytes)
    {
      return extent;
    }
    int longest = -1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (extent[a] > tile[a] && (longest < 0 || extent[a] / tile[a] > extent[longest] / tile[longest]))
      {
        longest = a;
      }
    }
    if (longest < 0)
    {
      return extent;
    }
    const std::int64_t tiles = (extent[longest] + tile[longest] - 1) / tile[longest];
    extent[longest] = (tiles + 1) / 2 * tile[longest];
  }
}

/** Scratch of a block, in numbers. */
template <typename T>
struct BlockMemory
{
  T *          spectrum;
  T *          spaces; ///< of the workers
  std::int64_t space;  ///< from one worker's to the next one's
  T *          kernelRows;
  /** Whether the kernel's spectrum is to be kept, if there is memory for it; else each column's is made where it is
   * needed. */
  bool keepsSpectrum{ true };
};

/** The steps of RunBlock. */
template <typename T, typename TRows, typename TMultiply>
class BlockRun
{
public:
  BlockRun(const KernelCall & call, const TRows & rows, const ConvolutionBlock & block, const Box & output,
           const Box & needed, const BlockMemory<T> & memory, const TMultiply & multiply)
    : m_Call(call)
    , m_Operation(static_cast<const ImageConvolutionOperation &>(*call.operation))
    , m_Rows(rows)
    , m_Block(block)
    , m_Output(output)
    , m_Needed(needed)
    , m_Memory(memory)
    , m_Multiply(multiply)
    , m_Shape(block)
    , m_Planes(block)
    , m_Functions(GetFftFunctions<T>(block.transforms))
    , m_Last(LastAxis<T>(block))
    , m_PlanLast(GetFftPlan<T>(m_Last.transformed ? m_Last.length : 1, block.transforms))
    , m_KernelColumns(NumbersOfKernelRows<T>(block) / m_Last.kernel / Cell)
  {
    const auto & boundary = m_Operation.boundary;
    // In this mode what lies beyond is 0 once the constant is subtracted.
    m_Constant = boundary.mode == BoundaryMode::Constant ? static_cast<T>(boundary.constant) : T(0);
    m_ConstantSum = static_cast<T>(boundary.constant.ToDouble() * m_Operation.kernel->GetSum());
  }

  /** Makes the kernel's spectrum, or finds the one that was made before. */
  void
  PrepareKernel()
  {
    const auto spaceOf = [this](unsigned int worker) { return this->SpaceOf(worker); };
    if (m_Memory.keepsSpectrum)
    {
      m_KernelSpectrum = static_cast<const T *>(m_Call.tables->GetMade(
        KeyOfKernelSpectrum<T>(*m_Operation.kernel, m_Block),
        static_cast<std::size_t>(NumbersOfKernelSpectrum<T>(m_Block)) * sizeof(T),
        [&](void * out) {
          MakeKernelSpectrum(
            *m_Operation.kernel, m_Block, *m_Call.executor, spaceOf, m_Memory.kernelRows, static_cast<T *>(out));
        }));
    }
    if (!m_KernelSpectrum)
    {
      TransformKernelRows(*m_Operation.kernel, m_Block, *m_Call.executor, spaceOf, m_Memory.kernelRows);
    }
  }

  /** Loads and transforms planes, along all axes but the last. */
  void
  TransformPlanes()
  {
    const auto &       x = m_Block.role[0];
    const auto &       y = m_Block.role[1];
    const auto &       z = m_Block.role[2];
    const std::int64_t tasks = m_Planes.TasksOf(y.input);
    m_Call.executor->ParallelFor(m_Shape.batches * z.input * tasks, [&](std::int64_t task, unsigned int worker) {
      if (this->Stops())
      {
        return;
      }
      const std::int64_t plane = task / tasks % z.input;
      const std::int64_t batch = task / tasks / z.input;
      Coordinates        at = this->BeginOfBatch(batch);
      at[z.axis] = z.lower + plane;
      m_Planes.Forward(task % tasks,
                       y.input,
                       x.input,
                       this->PlaneOf(batch, plane),
                       this->SpaceOf(worker),
                       [&](std::int64_t row, T * out) {
                         Coordinates line = at;
                         line[y.axis] = y.lower + row;
                         line[x.axis] = x.lower;
                         m_Rows.Load(line, x.axis, x.input, out);
                         for (std::int64_t i = 0; m_Constant != T(0) && i < x.input; ++i)
                         {
                           out[i] -= m_Constant;
                         }
                       });
    });
  }

  /** Transforms columns along the last axis, multiplies them with the kernel's, and transforms them back. */
  void
  ConvolveColumns()
  {
    const std::int64_t tasks = m_Shape.batches * (m_Shape.flat ? m_Shape.planes * m_Shape.rowCells : m_Shape.rows);
    m_Call.executor->ParallelFor(tasks, [&](std::int64_t task, unsigned int worker) {
      if (!this->Stops())
      {
        this->ConvolveColumnsOf(task, this->SpaceOf(worker));
      }
    });
  }

  /** Transforms planes back, and stores the voxels that are needed. */
  void
  StorePlanes()
  {
    const int          x = m_Block.role[0].axis;
    const auto &       y = m_Block.role[1];
    const auto &       z = m_Block.role[2];
    const std::int64_t tasks = m_Planes.TasksOf(y.output);
    m_Call.executor->ParallelFor(m_Shape.batches * z.output * tasks, [&](std::int64_t task, unsigned int worker) {
      if (this->Stops())
      {
        return;
      }
      const std::int64_t plane = task / tasks % z.output;
      const std::int64_t batch = task / tasks / z.output;
      Coordinates        at = this->BeginOfBatch(batch);
      at[z.axis] = m_Output.lower[z.axis] + plane;
      if (at[z.axis] < m_Needed.lower[z.axis] || at[z.axis] >= m_Needed.upper[z.axis])
      {
        return;
      }
      std::int64_t finished = 0;
      m_Planes.Inverse(task % tasks,
                       m_Needed.lower[y.axis] - m_Output.lower[y.axis],
                       m_Needed.upper[y.axis] - m_Output.lower[y.axis],
                       this->PlaneOf(batch, plane),
                       this->SpaceOf(worker),
                       [&](std::int64_t row, T * sums) {
                         Coordinates line = at;
                         line[y.axis] = m_Output.lower[y.axis] + row;
                         line[x] = m_Needed.lower[x];
                         T * const          first = sums + (m_Needed.lower[x] - m_Output.lower[x]);
                         const std::int64_t count = m_Needed.Extent(x);
                         for (std::int64_t i = 0; m_Constant != T(0) && i < count; ++i)
                         {
                           first[i] += m_ConstantSum;
                         }
                         m_Rows.Store(line, x, count, first);
                         finished += count;
                       });
      if (m_Call.control)
      {
        m_Call.control->AddFinishedVoxels(finished);
      }
    });
  }

private:
  static constexpr std::int64_t Cell = FftCell<T>;

  WorkSpace<T>
  SpaceOf(unsigned int worker) const
  {
    return WorkSpace<T>(m_Memory.spaces + worker * m_Memory.space, m_Shape);
  }
  bool
  Stops() const
  {
    return m_Call.control && m_Call.control->ShouldStop();
  }
  Coordinates
  BeginOfBatch(std::int64_t batch) const
  {
    const auto & third = m_Block.role[3];
    const auto & fourth = m_Block.role[4];
    Coordinates  at{};
    at[third.axis] = third.lower + batch % third.output;
    at[fourth.axis] = fourth.lower + batch / third.output;
    return at;
  }
  T *
  PlaneOf(std::int64_t batch, std::int64_t plane) const
  {
    return m_Memory.spectrum + (batch * m_Shape.planes + plane) * m_Shape.Plane();
  }
  /** A column of the kernel's spectrum; one that is made is in space.second. */
  const T *
  FindKernelColumn(std::int64_t index, const WorkSpace<T> & space) const
  {
    if (m_KernelSpectrum)
    {
      return m_KernelSpectrum + index * m_PlanLast.length * Cell;
    }
    m_Functions.transform(m_PlanLast,
                          { m_Memory.kernelRows + index * Cell, m_KernelColumns },
                          m_Last.kernel,
                          { space.second, 1 },
                          0,
                          m_PlanLast.length,
                          false,
                          space.work);
    return space.second;
  }
  /** The product of a line's transform and the kernel's. */
  void
  TransformAndMultiply(FftLine<T> in, std::int64_t live, const T * factors, T * line, const WorkSpace<T> & space) const
  {
    m_Functions.transform(m_PlanLast, in, live, { line, 1 }, 0, m_PlanLast.length, false, space.work);
    m_Multiply(line, factors, 1, m_PlanLast.length);
  }
  void
  TransformBack(T * line, FftLine<T> out, std::int64_t from, std::int64_t to, const WorkSpace<T> & space) const
  {
    m_Functions.transform(m_PlanLast, { line, 1 }, m_PlanLast.length, out, from, to, true, space.work);
  }
  void
  ConvolveColumn(T * column, std::int64_t stride, std::int64_t index, const WorkSpace<T> & space) const
  {
    const T * const factors = this->FindKernelColumn(index, space);
    if (m_Block.lastTile == 0 || m_Block.lastTile >= m_Last.output)
    {
      this->TransformAndMultiply({ column, stride }, m_Last.input, factors, space.first, space);
      this->TransformBack(space.first, { column, stride }, m_Last.crop, m_Last.crop + m_Last.output, space);
      return;
    }
    this->ConvolveTiles(column, stride, factors, space);
  }
  void
  ConvolveTiles(T * column, std::int64_t stride, const T * factors, const WorkSpace<T> & space) const
  {
    const std::int64_t above = m_Operation.Above(m_Last.axis);
    const std::int64_t below = m_Operation.Below(m_Last.axis);
    const std::int64_t before = m_Last.crop - above;
    // A tile's output overwrites input of the next one, which is transformed before; or else all input is copied.
    const bool copies = m_Block.lastTile < below - before;
    for (std::int64_t i = 0; copies && i < m_Last.input; ++i)
    {
      std::copy_n(column + i * stride * Cell, Cell, space.column + i * Cell);
    }
    std::int64_t waiting = -1;
    T *          line = space.first;
    const auto   finish = [&](std::int64_t tile, T * transformed) {
      const std::int64_t end = std::min(tile + m_Block.lastTile, m_Last.output);
      const std::int64_t crop = tile + before - std::max<std::int64_t>(tile + before - below, 0) + above;
      this->TransformBack(transformed, { column + tile * stride * Cell, stride }, crop, crop + end - tile, space);
    };
    for (std::int64_t tile = 0; tile < m_Last.output; tile += m_Block.lastTile)
    {
      const std::int64_t end = std::min(tile + m_Block.lastTile, m_Last.output);
      if (m_Output.lower[m_Last.axis] + end <= m_Needed.lower[m_Last.axis] ||
          m_Output.lower[m_Last.axis] + tile >= m_Needed.upper[m_Last.axis])
      {
        continue;
      }
      const std::int64_t from = std::max<std::int64_t>(tile + before - below, 0);
      const std::int64_t live = std::min(end + before + above, m_Last.input) - from;
      if (copies)
      {
        this->TransformAndMultiply({ space.column + from * Cell, 1 }, live, factors, line, space);
        finish(tile, line);
        continue;
      }
      T * const other = line == space.first ? space.column : space.first;
      this->TransformAndMultiply({ column + from * stride * Cell, stride }, live, factors, other, space);
      if (waiting >= 0)
      {
        finish(waiting, line);
      }
      waiting = tile;
      line = other;
    }
    if (waiting >= 0)
    {
      finish(waiting, line);
    }
  }
  /** The columns of a task: one, or those of a row. */
  void
  ConvolveColumnsOf(std::int64_t task, const WorkSpace<T> & space) const
  {
    const auto & z = m_Block.role[2];
    if (m_Shape.flat)
    {
      const std::int64_t c = task % m_Shape.rowCells;
      this->ConvolveColumn(
        m_Memory.spectrum + task / m_Shape.rowCells * m_Shape.Plane() + c * Cell, m_Shape.rowCells, c, space);
      return;
    }
    const std::int64_t columns = m_Shape.rows * m_Shape.rowCells;
    const std::int64_t row = task % m_Shape.rows;
    for (std::int64_t c = 0; c < m_Shape.rowCells; ++c)
    {
      T * const column =
        m_Memory.spectrum + (task / m_Shape.rows * m_Shape.planes * columns + row * m_Shape.rowCells + c) * Cell;
      if (z.transformed)
      {
        // The next column, whose points are far apart.
        for (std::int64_t plane = 0; c + 1 < m_Shape.rowCells && plane < m_Last.input; ++plane)
        {
          __builtin_prefetch(column + (plane * columns + 1) * Cell);
        }
        this->ConvolveColumn(column, columns, row * m_Shape.rowCells + c, space);
        continue;
      }
      const T * const factors = this->FindKernelColumn(c, space);
      for (std::int64_t plane = 0; plane < z.output; ++plane)
      {
        m_Multiply(column + plane * columns * Cell, factors, 0, 1);
      }
    }
  }

  const KernelCall &                m_Call;
  const ImageConvolutionOperation & m_Operation;
  const TRows &                     m_Rows;
  const ConvolutionBlock &          m_Block;
  const Box &                       m_Output;
  const Box &                       m_Needed;
  const BlockMemory<T> &            m_Memory;
  const TMultiply &                 m_Multiply;
  const CellShape<T>                m_Shape;
  const PlaneTransform<T>           m_Planes;
  const FftFunctions<T> &           m_Functions;
  const ConvolutionBlock::Axis &    m_Last;
  const FftPlan<T> &                m_PlanLast;
  const std::int64_t                m_KernelColumns;
  T                                 m_Constant;
  T                                 m_ConstantSum;
  const T *                         m_KernelSpectrum{ nullptr }; ///< nullptr: columns are made where they are needed
};

/** Convolves one block of the output, `block` of the voxels `output`, by call.operation, a ImageConvolutionOperation:
 * rows.Load(at, axis, n, row) gives n numbers of the input's line through `at`, and rows.Store(at, axis, n, row) takes
 * those of the output's that are `needed`. multiply(cells, factors, stride, n): the product of spectra, or what takes
 * its place. */
template <typename T, typename TRows, typename TMultiply>
void
RunBlock(const KernelCall & call, const TRows & rows, const ConvolutionBlock & block, const Box & output,
         const Box & needed, const BlockMemory<T> & memory, const TMultiply & multiply)
{
  BlockRun<T, TRows, TMultiply> run(call, rows, block, output, needed, memory, multiply);
  run.PrepareKernel();
  run.TransformPlanes();
  run.ConvolveColumns();
  run.StorePlanes();
}

template <typename T, typename TRows>
void
RunBlock(const KernelCall & call, const TRows & rows, const ConvolutionBlock & block, const Box & output,
         const Box & needed, const BlockMemory<T> & memory)
{
  RunBlock<T>(call, rows, block, output, needed, memory, GetFftFunctions<T>(block.transforms).multiply);
}

} // namespace chunkwise

#endif
