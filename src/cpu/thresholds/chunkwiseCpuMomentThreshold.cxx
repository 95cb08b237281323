/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuClassRows.h"
#include "chunkwiseCpuWindow.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseLocalThreshold.h"
#include "chunkwiseRunControls.h"

namespace chunkwise
{

namespace
{

/** Squares of voxels in double, as the sweep reads them. */
template <typename TPixel>
void
SquareVoxels(void * out, const void * in, std::int64_t n)
{
  double * const       squares = static_cast<double *>(out);
  const TPixel * const voxels = static_cast<const TPixel *>(in);
  for (std::int64_t i = 0; i < n; ++i)
  {
    const auto voxel = static_cast<double>(voxels[i]);
    squares[i] = voxel * voxel;
  }
}

/** The sums of windows, in two sweeps: the first leaves the sums of squares in an image, which the second reads. */
class MomentSweeps
{
public:
  explicit MomentSweeps(const KernelCall & call)
    : m_Call(call)
    , m_Operation(dynamic_cast<const MomentThresholdOperation &>(*call.operation))
    , m_Rule(m_Operation)
    , m_Cuts(m_Operation.boundary.mode == BoundaryMode::Renormalized)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      m_Radius[a] = m_Windows[a].radius = m_Operation.EffectiveRadius(a, call.image.Extent(a));
      m_Whole *= m_Windows[a].Taps();
    }
  }

  void
  Run() const
  {
    const WindowTiling tiling(m_Call.output.box, m_Call.image, m_Radius, sizeof(double), false, 1);
    const std::int64_t workers = m_Call.executor->GetConcurrency();
    const BufferView   squares = DenseView(
      static_cast<double *>(m_Call.scratch) + tiling.scratch * workers, PixelType::Float64, m_Call.output.box);
    const std::int64_t voxels = m_Call.output.box.NumberOfVoxels();
    const auto         sweep = [&](auto convert, double constant, std::int64_t share, auto && finish) {
      KernelCall   part = m_Call;
      ShareControl control(m_Call.control, voxels, share);
      part.control = &control;
      WindowSweep<double>(part, GetCpuLevel().float64, convert, m_Operation.boundary.mode, constant, m_Windows, tiling)
        .Run(finish);
      if (!control.ShouldStop())
      {
        control.Complete();
      }
      return !control.ShouldStop();
    };
    DispatchPixelType(m_Call.inputs[0].kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      const auto     constant = static_cast<double>(ConstantPixel<Pixel>(m_Operation.boundary.constant));
      double * const sumsOfSquares = static_cast<double *>(squares.data);
      const auto     keep = [&](const double * row, const Coordinates & at, std::int64_t n) {
        std::copy(row, row + n, sumsOfSquares + squares.Offset(at));
      };
      if (!sweep(SquareVoxels<Pixel>, constant * constant, voxels / 2, keep))
      {
        return;
      }
      const auto convert =
        GetCpuLevel().convert[static_cast<int>(m_Call.inputs[0].kind)][static_cast<int>(Accumulator::Float64)];
      sweep(convert, constant, voxels - voxels / 2, [&](const double * row, const Coordinates & at, std::int64_t n) {
        this->Finish<Pixel>(row, sumsOfSquares + squares.Offset(at), at, n);
      });
    });
  }

private:
  std::int64_t
  CountTaps(int a, std::int64_t i) const
  {
    const std::int64_t r = m_Radius[a];
    return std::min(i + r, m_Call.image.Extent(a) - 1) - std::max<std::int64_t>(i - r, 0) + 1;
  }

  /** The results of a row. */
  template <typename TPixel>
  void
  Finish(const double * sums, const double * squares, const Coordinates & index, std::int64_t n) const
  {
    std::int64_t others = 1;
    for (int a = 1; a < MaxDimension; ++a)
    {
      others *= CountTaps(a, index[a]);
    }
    const auto inverseAt = [&](std::int64_t x) {
      return 1.0 / static_cast<double>(m_Cuts ? others * CountTaps(0, index[0] + x) : m_Whole);
    };
    const double                   inner = 1.0 / static_cast<double>(m_Cuts ? others * m_Windows[0].Taps() : m_Whole);
    const StridedRow<const TPixel> voxels(m_Call.inputs[0], index);
    float                          thresholds[ClassRow::Most];
    ClassRow                       row;
    row.at = index;
    for (std::int64_t begin = 0; begin < n; begin += row.n, row.at[0] += row.n)
    {
      row.n = std::min(n - begin, ClassRow::Most);
      // Windows from `whole` to `cut` do not meet the image's edge along x.
      const std::int64_t first = row.at[0];
      const std::int64_t whole = std::min(std::max<std::int64_t>(m_Radius[0] - first, 0), row.n);
      const std::int64_t cut = std::min(std::max(m_Call.image.Extent(0) - m_Radius[0] - first, whole), row.n);
      for (std::int64_t x = 0; x < row.n; ++x)
      {
        const double inverse = x >= whole && x < cut ? inner : inverseAt(begin + x);
        thresholds[x] = ThresholdOfSums(m_Rule, sums[begin + x], squares[begin + x], inverse);
      }
      if (m_Operation.givesThresholds)
      {
        this->StoreThresholds(row.at, row.n, thresholds);
        continue;
      }
      for (std::int64_t x = 0; x < row.n; ++x)
      {
        row.classes[x] = m_Rule.IsAbove(static_cast<float>(voxels[begin + x]), thresholds[x]) ? 1 : 0;
      }
      row.Store(m_Call.output);
    }
  }

  void
  StoreThresholds(const Coordinates & at, std::int64_t n, const float * thresholds) const
  {
    DispatchPixelType(m_Call.output.kind, [&](auto out) {
      using Out = decltype(out);
      StoreRow<Out>(m_Call.output, at, n, [&](std::int64_t x) { return ConvertResult<Out>(thresholds[x]); });
    });
  }

  const KernelCall &               m_Call;
  const MomentThresholdOperation & m_Operation;
  const LocalThresholdRule<float>  m_Rule;
  const bool                       m_Cuts; ///< windows end at the image's edge
  AxisWindow<double>               m_Windows[MaxDimension];
  std::int64_t                     m_Radius[MaxDimension]{};
  std::int64_t                     m_Whole{ 1 }; ///< taps of a whole window
};

void
RunMomentThreshold(const KernelCall & call)
{
  MomentSweeps(call).Run();
}

std::size_t
ScratchOfMomentThreshold(const Operation & operation, const ChunkShape & chunk)
{
  const auto & threshold = dynamic_cast<const MomentThresholdOperation &>(operation);
  std::int64_t radius[MaxDimension];
  for (int a = 0; a < MaxDimension; ++a)
  {
    radius[a] = threshold.EffectiveRadius(a, chunk.image.Extent(a));
  }
  const std::int64_t ofWorker = WindowTiling::GetScratch(chunk.outputBox, chunk.image, radius, sizeof(double), false);
  return static_cast<std::size_t>(ofWorker * chunk.concurrency + chunk.outputBox.NumberOfVoxels()) * sizeof(double);
}

} // namespace

void
RegisterHostMomentThreshold(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunMomentThreshold;
  kernel.scratchBytes = ScratchOfMomentThreshold;
  registry.Register("momentthreshold", { kernel });
}

} // namespace chunkwise
