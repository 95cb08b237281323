/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuDiffusion.h"

#include "chunkwiseCpuDiffusionRows.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuLevels.h"
#include "chunkwiseCpuMarchRows.h"
#include "chunkwiseCpuRowStore.h"
#include "chunkwiseDerivativeOperation.h"
#include "chunkwiseDiffusionOperation.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseRunControls.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(DiffusionLevel, MakeDiffusionLevel)

const DiffusionLevel &
GetDiffusionLevel()
{
  static FunctionsAtLevels<DiffusionLevel> levels{ CHUNKWISE_AT_LEVELS(MakeDiffusionLevel) };
  return levels.Get();
}

namespace
{

/** Images of a box in the scratch. Rows have room before and after their voxels, for the voxels beyond the image's edge
 * and for vectors. */
template <typename TAcc>
struct DiffusionImages
{
  static constexpr std::int64_t Width = MarchLine / static_cast<std::int64_t>(sizeof(TAcc));

  Box          box;
  std::int64_t row{ 0 };
  std::int64_t image{ 0 };
  TAcc *       memory{ nullptr };

  explicit DiffusionImages(const Box & theBox)
    : box(theBox)
    , row(RowLength(theBox.Extent(0)))
  {
    image = row;
    for (int a = 1; a < MaxDimension; ++a)
    {
      image *= box.Extent(a);
    }
  }
  static std::int64_t
  RowLength(std::int64_t n)
  {
    return (n + 1 + Width - 1) / Width * Width + 2 * Width;
  }
  /** The voxel `at` of image `number`. */
  TAcc *
  At(int number, const Coordinates & at) const
  {
    std::int64_t offset = 0;
    for (int a = MaxDimension - 1; a > 0; --a)
    {
      offset = offset * box.Extent(a) + at[a] - box.lower[a];
    }
    return memory + number * image + offset * row + Width + at[0] - box.lower[0];
  }
};

/** Numbers that a worker needs: fluxes to the voxels that come later, along each axis but x, and some rows. */
std::int64_t
CountWorkerRows(const DiffusionOperation & operation, const Box & box)
{
  std::int64_t rows = 4;
  std::int64_t plane = 1;
  for (int a = 1; a < MaxDimension; ++a)
  {
    rows += operation.scale[a] > 0 ? plane : 0;
    plane *= box.Extent(a);
  }
  return rows;
}

template <typename TAcc>
std::int64_t
CountNumbers(const DiffusionOperation & operation, const Box & box, std::int64_t workers)
{
  const DiffusionImages<TAcc> images(box);
  return operation.CountImages() * images.image + workers * CountWorkerRows(operation, box) * images.row;
}

template <typename TAcc>
class Diffusion
{
public:
  explicit Diffusion(const KernelCall & call)
    : m_Call(call)
    , m_Operation(static_cast<const DiffusionOperation &>(*call.operation))
    , m_Axes(m_Operation.GetAxes())
    , m_Images(m_Operation.GetSource(call.output.box, call.image, m_Operation.iterations))
    , m_Functions(FunctionsOf(GetDiffusionLevel()))
  {
    m_Images.memory = static_cast<TAcc *>(call.scratch);
    m_Workers = m_Images.memory + m_Operation.CountImages() * m_Images.image;
    double squares = 0;
    for (const int a : m_Axes)
    {
      squares += m_Operation.scale[a] * m_Operation.scale[a];
    }
    m_Step = static_cast<TAcc>(squares > 0 ? 0.5 / std::sqrt(squares) : 0.0);
    m_Blocks = this->FindBlocks();
  }

  void
  Run()
  {
    const bool isVariation = m_Operation.method == DiffusionMethod::TotalVariation;
    this->Load(isVariation);
    const std::int64_t voxels = m_Call.output.box.NumberOfVoxels();
    const std::int64_t iterations = m_Operation.iterations;
    for (std::int64_t i = 1; i <= iterations; ++i)
    {
      if (m_Call.control && m_Call.control->ShouldStop())
      {
        return;
      }
      m_From = static_cast<int>((i - 1) % 2);
      // Shares that sum up to all voxels.
      const auto share = [&](std::int64_t k) {
        return voxels / iterations * k + (k == iterations ? voxels % iterations : 0);
      };
      std::int64_t left = share(i) - share(i - 1);
      const Box    box = m_Operation.GetSource(m_Call.output.box, m_Call.image, iterations - i);
      if (isVariation)
      {
        const std::int64_t together = std::min(iterations - i + 1, m_Blocks.iterations);
        left = share(i + together - 1) - share(i - 1);
        this->IterateVariation(i, together);
        i += together - 1;
      }
      else
      {
        if (m_Operation.method == DiffusionMethod::Coherence)
        {
          // They take about two thirds of the time.
          const std::int64_t ofTensors = left / 3 * 2;
          this->MakeTensors(box, ofTensors);
          left -= ofTensors;
          if (m_Call.control && m_Call.control->ShouldStop())
          {
            return;
          }
        }
        this->ForEachPart(box, [&](const Box & part, TAcc * rows) { this->Step(part, rows); });
      }
      if (m_Call.control)
      {
        m_Call.control->AddFinishedVoxels(left);
      }
    }
    const int  result = isVariation ? 2 : static_cast<int>(iterations % 2);
    const auto store = RowStoreOf<TAcc>(m_Call.output.kind);
    this->ForEachPart(m_Call.output.box, [&](const Box & part, TAcc *) {
      ForEachRow(part,
                 [&](const Coordinates & at) { store(m_Call.output, at, part.Extent(0), m_Images.At(result, at)); });
    });
  }

private:
  static const DiffusionFunctions<TAcc> &
  FunctionsOf(const DiffusionLevel & level)
  {
    if constexpr (sizeof(TAcc) == 4)
    {
      return level.float32;
    }
    else
    {
      return level.float64;
    }
  }

  /** Calls body(part, a worker's rows) for parts of a box, cut along its slowest axis. */
  template <typename TBody>
  void
  ForEachPart(const Box & box, TBody && body)
  {
    int axis = 1;
    for (int a = 2; a < MaxDimension; ++a)
    {
      axis = box.Extent(a) > 1 ? a : axis;
    }
    const std::int64_t extent = box.Extent(axis);
    const std::int64_t parts = std::min<std::int64_t>(extent, 4 * m_Call.executor->GetConcurrency());
    const std::int64_t rows = CountWorkerRows(m_Operation, m_Images.box);
    m_Call.executor->ParallelFor(parts, [&](std::int64_t task, unsigned int worker) {
      Box part = box;
      part.lower[axis] = box.lower[axis] + extent * task / parts;
      part.upper[axis] = box.lower[axis] + extent * (task + 1) / parts;
      body(part, m_Workers + worker * rows * m_Images.row + m_Images.Width);
      GetCpuLevel().endStream();
    });
  }

  void
  Load(bool isVariation)
  {
    DispatchPixelType(m_Call.inputs[0].kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      this->ForEachPart(m_Images.box, [&](const Box & part, TAcc *) {
        ForEachRow(part, [&](const Coordinates & at) {
          Box row{ at, at };
          for (int a = 0; a < MaxDimension; ++a)
          {
            row.upper[a] = a == 0 ? part.upper[0] : at[a] + 1;
          }
          LoadTile<Pixel>(m_Call.inputs[0],
                          m_Call.image,
                          row,
                          BoundaryMode::ZeroFluxNeumann,
                          TAcc{},
                          m_Images.At(0, at),
                          [](Pixel voxel) { return static_cast<TAcc>(voxel); });
          this->FillEnds(0, at, part.Extent(0));
          for (int number = 1; isVariation && number < m_Operation.CountImages(); ++number)
          {
            TAcc * const to = m_Images.At(number, at);
            if (number < 3)
            {
              std::copy(m_Images.At(0, at) - 1, m_Images.At(0, at) + part.Extent(0) + 1, to - 1);
            }
            else
            {
              std::fill(to - 1, to + part.Extent(0) + 1, TAcc{});
            }
          }
        });
      });
    });
  }

  /** The voxels beyond both ends of a row: the nearest ones. They are read at the image's edge alone. */
  void
  FillEnds(int number, const Coordinates & at, std::int64_t n)
  {
    TAcc * const row = m_Images.At(number, at);
    row[-1] = row[0];
    row[n] = row[n - 1];
  }

  /** The row of a voxel, or of the nearest one in the image. */
  TAcc *
  Neighbor(int number, Coordinates at, int axis, std::int64_t step) const
  {
    if (axis == 0)
    {
      return m_Images.At(number, at) + step;
    }
    at[axis] = std::min(std::max(at[axis] + step, m_Call.image.lower[axis]), m_Call.image.upper[axis] - 1);
    return m_Images.At(number, at);
  }

  NeighborStep<TAcc>
  MakeNeighbors(int number, const Coordinates & at, std::int64_t n) const
  {
    NeighborStep<TAcc> step;
    step.axes = static_cast<int>(m_Axes.size());
    step.here = m_Images.At(number, at);
    for (int k = 0; k < step.axes; ++k)
    {
      const int a = m_Axes[static_cast<std::size_t>(k)];
      step.after[k] = this->Neighbor(number, at, a, 1);
      step.before[k] = this->Neighbor(number, at, a, -1);
      step.scale[k] = static_cast<TAcc>(m_Operation.scale[a]);
    }
    step.skipsNan = m_Operation.skipsNan;
    step.n = n;
    return step;
  }

  /** Makes the tensors of the voxels of a box and of those beside it, from image number 2 on. They count as `share`
   * voxels of the output. */
  void
  MakeTensors(Box box, std::int64_t share)
  {
    constexpr int last = MaxDimension - 1;
    for (const int a : m_Axes)
    {
      box.lower[a] = std::max(box.lower[a] - 1, m_Call.image.lower[a]);
      box.upper[a] = std::min(box.upper[a] + 1, m_Call.image.upper[a]);
    }
    const int    results = m_Operation.tensor->GetNumberOfResults();
    ShareControl control(m_Call.control, results * box.NumberOfVoxels(), share);
    KernelCall   inner = m_Call;
    inner.operation = m_Operation.tensor.get();
    inner.control = &control;
    const std::int64_t used = CountNumbers<TAcc>(m_Operation, m_Images.box, m_Call.executor->GetConcurrency());
    inner.scratch = m_Images.memory + used;
    inner.scratchBytes = m_Call.scratchBytes - static_cast<std::size_t>(used) * sizeof(TAcc);
    for (std::int64_t i = box.lower[last]; i < box.upper[last]; ++i)
    {
      const auto view = [&](int number, const Box & part, std::int64_t components) {
        Coordinates at = part.lower;
        at[last] = i;
        BufferView of = m_Call.inputs[0];
        of.data = m_Images.At(number, at);
        of.kind = sizeof(TAcc) == 4 ? PixelType::Float32 : PixelType::Float64;
        of.box = part;
        of.box.lower[last] = 0;
        of.box.upper[last] = components;
        std::int64_t stride = m_Images.row;
        of.stride[0] = 1;
        for (int a = 1; a < last; ++a)
        {
          of.stride[a] = stride;
          stride *= m_Images.box.Extent(a);
        }
        of.stride[last] = m_Images.image;
        return of;
      };
      inner.image.lower[last] = 0;
      inner.image.upper[last] = 1;
      inner.inputs[0] = view(m_From, m_Images.box, 1);
      inner.output = view(2, box, results);
      inner.writable = inner.output.box;
      m_Call.kernels->Get("derivative", "diffusion").run(inner);
    }
    if (!control.ShouldStop())
    {
      control.Complete();
    }
  }

  /** The fluxes from the voxels of a row, `shift` voxels after `at`, to their next ones along an axis. */
  void
  MakeFlux(const Coordinates & at, std::int64_t shift, int axis, std::int64_t n, TAcc * flux) const
  {
    FluxStep<TAcc> step;
    Coordinates    next = at;
    const bool     isCoherence = m_Operation.method == DiffusionMethod::Coherence;
    if (axis > 0)
    {
      next[axis] = std::min(at[axis] + 1, m_Call.image.upper[axis] - 1);
      if (isCoherence && next[axis] == at[axis])
      {
        return this->Clear(flux, n);
      }
    }
    const std::int64_t nextShift = axis > 0 ? shift : shift + 1;
    step.here = m_Images.At(m_From, at) + shift;
    step.next = m_Images.At(m_From, next) + nextShift;
    step.scale = static_cast<TAcc>(m_Operation.scale[axis]);
    if (isCoherence)
    {
      step.hereTensor[0] = this->TensorRow(at, axis, axis) + shift;
      step.nextTensor[0] = this->TensorRow(next, axis, axis) + nextShift;
    }
    for (const int a : m_Axes)
    {
      if (a != axis)
      {
        if (isCoherence)
        {
          step.hereTensor[1 + step.others] = this->TensorRow(at, axis, a) + shift;
          step.nextTensor[1 + step.others] = this->TensorRow(next, axis, a) + nextShift;
        }
        step.hereAfter[step.others] = this->Neighbor(m_From, at, a, 1) + shift;
        step.hereBefore[step.others] = this->Neighbor(m_From, at, a, -1) + shift;
        step.nextAfter[step.others] = this->Neighbor(m_From, next, a, 1) + nextShift;
        step.nextBefore[step.others] = this->Neighbor(m_From, next, a, -1) + nextShift;
        step.half[step.others++] = static_cast<TAcc>(0.5 * m_Operation.scale[a]);
      }
    }
    // Finite, so that voxels without a gradient have no NaN.
    step.inverse = static_cast<TAcc>(std::min(0.5 / (m_Operation.contrast * m_Operation.contrast),
                                              static_cast<double>(std::numeric_limits<TAcc>::max())));
    step.isCurvature = m_Operation.method == DiffusionMethod::Curvature;
    step.skipsNan = m_Operation.skipsNan;
    step.n = n;
    step.flux = flux;
    if (!isCoherence)
    {
      m_Functions.flux(step);
      return;
    }
    m_Functions.coherence(step);
    if (axis == 0 && at[0] == m_Call.image.lower[0])
    {
      flux[0] = TAcc{};
    }
    if (axis == 0 && at[0] + n - 1 == m_Call.image.upper[0])
    {
      flux[n - 1] = TAcc{};
    }
  }

  /** The elements of the tensors that belong to two axes, from a voxel on. */
  const TAcc *
  TensorRow(const Coordinates & at, int a, int b) const
  {
    const auto number = [this](int axis) {
      return static_cast<int>(std::find(m_Axes.begin(), m_Axes.end(), axis) - m_Axes.begin());
    };
    const int row = number(std::min(a, b));
    const int size = static_cast<int>(m_Axes.size());
    return m_Images.At(2 + row * size - row * (row - 1) / 2 + number(std::max(a, b)) - row, at);
  }

  /** An iteration of gradient or curvature diffusion. Fluxes to the next voxel are kept until it comes. */
  void
  Step(const Box & part, TAcc * rows)
  {
    const std::int64_t n = part.Extent(0);
    const int          to = 1 - m_From;
    const bool         isFlux = m_Operation.method != DiffusionMethod::SquaredGradient;
    // Without a contrast there is no flux.
    const TAcc timeStep = static_cast<TAcc>(m_Operation.contrast > 0 ? m_Operation.timeStep : 0.0);
    ForEachRow(part, [&](const Coordinates & at) {
      NeighborStep<TAcc> step = this->MakeNeighbors(m_From, at, n);
      step.out = m_Images.At(to, at);
      if (!isFlux)
      {
        m_Functions.squares(step);
        return;
      }
      if (!(timeStep > 0) || m_Axes.empty())
      {
        std::copy(step.here, step.here + n, step.out);
        this->FillEnds(to, at, n);
        return;
      }
      TAcc *       slots = rows;
      TAcc * const sum = this->TakeRow(slots);
      TAcc * const flux = this->TakeRow(slots);
      bool         isFirst = true;
      std::int64_t plane = 1;
      std::int64_t slot = 0;
      for (int a = 0; a < MaxDimension; ++a)
      {
        if (m_Operation.scale[a] > 0)
        {
          if (a == 0)
          {
            this->MakeFlux(at, -1, 0, n + 1, flux);
            m_Functions.add(sum, flux + 1, flux, isFirst, false, n);
          }
          else
          {
            TAcc * const kept = slots + slot * m_Images.row;
            if (at[a] == part.lower[a])
            {
              Coordinates before = at;
              before[a] = std::max(at[a] - 1, m_Call.image.lower[a]);
              // At the image's edge the voxel before is the same: no flux.
              before[a] < at[a] ? this->MakeFlux(before, 0, a, n, kept) : this->Clear(kept, n);
            }
            this->MakeFlux(at, 0, a, n, flux);
            m_Functions.add(sum, flux, kept, isFirst, true, n);
          }
          isFirst = false;
        }
        if (a > 0)
        {
          slots += m_Operation.scale[a] > 0 ? plane * m_Images.row : 0;
          slot += (at[a] - part.lower[a]) * plane;
          plane *= m_Images.box.Extent(a);
        }
      }
      m_Operation.method == DiffusionMethod::Curvature ? m_Functions.updateCurvature(step, sum, timeStep)
                                                       : m_Functions.update(step, sum, timeStep);
      this->FillEnds(to, at, n);
    });
  }

  TAcc *
  TakeRow(TAcc *& rows) const
  {
    TAcc * const row = rows;
    rows += m_Images.row;
    return row;
  }
  static void
  Clear(TAcc * row, std::int64_t n)
  {
    std::fill(row, row + n, TAcc{});
  }

  /** How iterations of TotalVariation go together. The voxels of a block are cut along two axes; each iteration takes
   * them one voxel further down along both, so that it needs what earlier blocks have made, and nothing of later ones.
   * Within a block planes follow each other, and each of them is in all iterations at once, one plane apart. So the
   * planes of some iterations stay in a core's cache. */
  struct VariationBlocks
  {
    int          slow{ -1 }; ///< the axis of the planes; below 0: iterations go one by one
    int          band{ -1 };
    std::int64_t iterations{ 1 };
    std::int64_t rows{ 1 }; ///< of a block, along `band`
  };

  VariationBlocks
  FindBlocks() const
  {
    VariationBlocks blocks;
    std::int64_t    bytes = m_Operation.CountImages() * m_Images.row * static_cast<std::int64_t>(sizeof(TAcc));
    for (const int a : m_Axes)
    {
      if (a > 0 && m_Images.box.Extent(a) > 1)
      {
        bytes *= blocks.band >= 0 ? m_Images.box.Extent(blocks.band) : 1;
        blocks.band = blocks.slow;
        blocks.slow = a;
      }
    }
    if (m_Operation.method != DiffusionMethod::TotalVariation || blocks.band < 0)
    {
      return {};
    }
    constexpr std::int64_t cache = 640 * 1024;
    const auto             fitting = [bytes](std::int64_t iterations) { return cache / (bytes * (iterations + 2)); };
    blocks.iterations = fitting(8) >= 8 ? 8 : 4;
    blocks.rows = std::max<std::int64_t>(4, fitting(blocks.iterations));
    return blocks;
  }

  /** The voxels of p, and of u, that iteration `i` makes. */
  struct VariationBoxes
  {
    Box dual;
    Box primal;
  };
  VariationBoxes
  BoxesOf(std::int64_t i) const
  {
    const Box primal = m_Operation.GetSource(m_Call.output.box, m_Call.image, m_Operation.iterations - i);
    Box       dual = primal;
    for (const int a : m_Axes)
    {
      dual.lower[a] = std::max(dual.lower[a] - 1, m_Call.image.lower[a]);
    }
    return { dual, primal };
  }

  /** `count` iterations of TotalVariation from number `i` on. */
  void
  IterateVariation(std::int64_t i, std::int64_t count)
  {
    std::vector<VariationBoxes> boxes;
    for (std::int64_t k = 0; k < count; ++k)
    {
      boxes.push_back(this->BoxesOf(i + k));
    }
    if (m_Blocks.slow < 0)
    {
      this->ForEachPart(boxes.front().dual, [&](const Box & part, TAcc *) { this->StepDual(part); });
      this->ForEachPart(boxes.front().primal, [&](const Box & part, TAcc *) { this->StepPrimal(part); });
      return;
    }
    // Axes that take no part: their slices depend on nothing else.
    const Box &  whole = boxes.front().dual;
    Box          slices = whole;
    std::int64_t number = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const bool takesPart = a == 0 || m_Operation.scale[a] > 0;
      slices.upper[a] = takesPart ? slices.lower[a] + 1 : slices.upper[a];
      number *= slices.Extent(a);
    }
    const auto sliceNumber = [&](std::int64_t n) {
      Box slice = whole;
      for (int a = 1; a < MaxDimension; ++a)
      {
        if (!(m_Operation.scale[a] > 0))
        {
          slice.lower[a] = whole.lower[a] + n % whole.Extent(a);
          slice.upper[a] = slice.lower[a] + 1;
          n /= whole.Extent(a);
        }
      }
      return slice;
    };
    const std::int64_t bands = (whole.Extent(m_Blocks.band) + m_Blocks.rows - 1) / m_Blocks.rows;
    if (number > 1 || m_Call.executor->GetConcurrency() == 1)
    {
      m_Call.executor->ParallelFor(number, [&](std::int64_t task, unsigned int) {
        for (std::int64_t band = 0; band < bands; ++band)
        {
          this->IterateBlock(boxes, sliceNumber(task), whole.Extent(m_Blocks.slow), 0, band);
        }
      });
      return;
    }
    // Blocks whose numbers have one sum do not depend on each other.
    const std::int64_t shortest = 2 * count;
    const std::int64_t wanted = whole.Extent(m_Blocks.slow) / (4 * m_Call.executor->GetConcurrency());
    const std::int64_t planes = std::max(shortest, wanted);
    const std::int64_t stretches = (whole.Extent(m_Blocks.slow) + planes - 1) / planes;
    for (std::int64_t sum = 0; sum < bands + stretches - 1; ++sum)
    {
      const std::int64_t first = std::max<std::int64_t>(0, sum - bands + 1);
      const std::int64_t last = std::min(sum, stretches - 1);
      m_Call.executor->ParallelFor(last - first + 1, [&](std::int64_t task, unsigned int) {
        this->IterateBlock(boxes, whole, planes, first + task, sum - first - task);
      });
    }
  }

  /** A block: the planes of a stretch, and the rows of a band. */
  void
  IterateBlock(const std::vector<VariationBoxes> & boxes, const Box & whole, std::int64_t planes, std::int64_t stretch,
               std::int64_t band)
  {
    if (m_Call.control && m_Call.control->ShouldStop())
    {
      return;
    }
    const auto         count = static_cast<std::int64_t>(boxes.size());
    const int          slow = m_Blocks.slow;
    const std::int64_t rows = m_Blocks.rows;
    const std::int64_t begin = whole.lower[slow] + stretch * planes;
    // The last blocks hold what iterations have left above them.
    const std::int64_t end = begin + planes >= whole.upper[slow] ? whole.upper[slow] + count - 1 : begin + planes;
    Box                part = whole;
    for (std::int64_t plane = begin; plane < end; ++plane)
    {
      for (std::int64_t k = 0; k < count; ++k)
      {
        part.lower[slow] = plane - k;
        part.upper[slow] = plane - k + 1;
        const std::int64_t first = whole.lower[m_Blocks.band] + band * rows;
        part.lower[m_Blocks.band] = band == 0 ? first : first - k;
        part.upper[m_Blocks.band] =
          first + rows >= whole.upper[m_Blocks.band] ? whole.upper[m_Blocks.band] : first + rows - k;
        const VariationBoxes & of = boxes[static_cast<std::size_t>(k)];
        const Box              dual = Intersect(part, of.dual);
        const Box              primal = Intersect(part, of.primal);
        if (!dual.IsEmpty())
        {
          this->StepDual(dual);
        }
        if (!primal.IsEmpty())
        {
          this->StepPrimal(primal);
        }
      }
    }
  }

  VariationStep<TAcc>
  MakeVariation(const Coordinates & at, std::int64_t n) const
  {
    VariationStep<TAcc> step;
    static_cast<NeighborStep<TAcc> &>(step) = this->MakeNeighbors(1, at, n);
    for (int k = 0; k < step.axes; ++k)
    {
      step.dual[k] = m_Images.At(3 + k, at);
    }
    step.step = m_Step;
    step.weight = static_cast<TAcc>(m_Operation.weight);
    step.image = m_Images.At(0, at);
    step.state = m_Images.At(2, at);
    step.out = m_Images.At(1, at);
    return step;
  }
  void
  StepDual(const Box & part)
  {
    ForEachRow(part, [&](const Coordinates & at) {
      m_Functions.dual(this->MakeVariation(at, part.Extent(0)));
      if (m_Operation.scale[0] > 0 && part.lower[0] == m_Call.image.lower[0])
      {
        // No p is before the first voxel, and vectors have written past the last one.
        m_Images.At(3, at)[-1] = TAcc{};
      }
    });
  }
  void
  StepPrimal(const Box & part)
  {
    ForEachRow(part, [&](const Coordinates & at) {
      VariationStep<TAcc> step = this->MakeVariation(at, part.Extent(0));
      for (int k = 0; k < step.axes; ++k)
      {
        const int a = m_Axes[static_cast<std::size_t>(k)];
        step.before[k] = a > 0 && at[a] == m_Call.image.lower[a] ? nullptr : this->Neighbor(3 + k, at, a, -1);
      }
      m_Functions.primal(step);
      this->FillEnds(1, at, part.Extent(0));
    });
  }

  const KernelCall &               m_Call;
  const DiffusionOperation &       m_Operation;
  const std::vector<int>           m_Axes;
  DiffusionImages<TAcc>            m_Images;
  const DiffusionFunctions<TAcc> & m_Functions;
  TAcc *                           m_Workers{ nullptr };
  TAcc                             m_Step{ 0 };
  int                              m_From{ 0 };
  VariationBlocks                  m_Blocks;
};

void
RunDiffusion(const KernelCall & call)
{
  if (call.output.box.NumberOfVoxels() == 0)
  {
    return;
  }
  UsesDouble(call.inputs[0].kind) ? Diffusion<double>(call).Run() : Diffusion<float>(call).Run();
}

/** Bytes that the kernel of the tensors needs for a box of images. */
std::size_t
BytesOfTensors(const DiffusionOperation & operation, ChunkShape shape, const Box & box)
{
  constexpr int last = MaxDimension - 1;
  shape.outputBox = shape.inputBox = box;
  shape.outputBox.upper[last] = shape.outputBox.lower[last] + operation.tensor->GetNumberOfResults();
  shape.image.upper[last] = shape.image.lower[last] + 1;
  shape.inputKinds[0] = shape.outputKind = UsesDouble(shape.inputKinds[0]) ? PixelType::Float64 : PixelType::Float32;
  return shape.kernels->Get("derivative", "diffusion").scratchBytes(*operation.tensor, shape);
}

std::size_t
ScratchOfDiffusion(const Operation & operation, const ChunkShape & shape)
{
  const auto & diffusion = static_cast<const DiffusionOperation &>(operation);
  Coordinates  extent{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t reach = 2 * diffusion.iterations * diffusion.GetReach()[a];
    extent[a] = std::min(shape.outputBox.Extent(a) + reach, std::max<std::int64_t>(1, shape.image.Extent(a)));
  }
  const Box  box = Box::FromExtent(extent);
  const bool isDouble = UsesDouble(shape.inputKinds[0]);
  const auto bytes = static_cast<std::size_t>(isDouble ? CountNumbers<double>(diffusion, box, shape.concurrency) * 8
                                                       : CountNumbers<float>(diffusion, box, shape.concurrency) * 4);
  return bytes + (diffusion.method == DiffusionMethod::Coherence ? BytesOfTensors(diffusion, shape, box) : 0);
}

} // namespace

void
RegisterHostDiffusion(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunDiffusion;
  kernel.scratchBytes = ScratchOfDiffusion;
  kernel.cost = [](const Operation & operation, const ChunkShape & shape) {
    return static_cast<const DiffusionOperation &>(operation).GetTraffic(
      shape.outputBox, shape.image, shape.inputKinds[0]);
  };
  registry.Register("diffusion", { kernel });
}

} // namespace chunkwise
