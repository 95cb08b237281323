/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseCpuConvolutionRows.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseWindow.h"

// Windows times weights, tap by tap: ConvolutionOperation, and ImageConvolutionOperation where it is direct.
namespace chunkwise
{

namespace
{

/** A task's tile of the output: rows along x, some of them side by side along y share the rows of their windows. */
constexpr std::int64_t TileRow = 1024;
constexpr std::int64_t TileRows = 16;
/** Short rows of a tile are summed as one, with what lies between them: so many numbers, as far as there are rows. */
constexpr std::int64_t LongRow = 512;

struct TileShape
{
  std::int64_t width;  ///< of the output
  std::int64_t height; ///< of the output
  std::int64_t rows;   ///< that are loaded
  std::int64_t pitch;  ///< of a loaded row

  TileShape(const Coordinates & extent, const Box & output)
    : width(std::min(output.Extent(0), TileRow))
    , height(std::min(output.Extent(1), TileRows))
    , rows(height + extent[1] - 1)
    , pitch(width + extent[0] - 1)
  {
    for (int a = 2; a < MaxDimension; ++a)
    {
      rows *= extent[a];
    }
  }
  /** Rows of the output that are summed as one. */
  std::int64_t
  RowsTogether() const
  {
    return std::min(height, std::max<std::int64_t>(1, LongRow / pitch));
  }
  /** Numbers of a worker: loaded rows, rows of the output and of differences. */
  std::int64_t
  Scratch() const
  {
    return rows * pitch + 2 * std::max(pitch, LongRow);
  }
};

template <typename T>
const RowFunctions<T> &
GetRows()
{
  if constexpr (std::is_same<T, float>::value)
  {
    return GetCpuLevel().float32;
  }
  else
  {
    return GetCpuLevel().float64;
  }
}

/** The windows that are summed for each voxel. */
template <typename T>
struct Windows
{
  Coordinates    extent;
  Coordinates    below;
  std::vector<T> weights; ///< from the lowest tap to the highest, x fastest
  /** Weights are applied to the differences from the window's voxel, of taps that there are. */
  bool         zeroSum{ false };
  BoundaryMode mode;
};

template <typename T>
class DirectConvolution
{
public:
  /** `scratch`: for the tiles of all workers. */
  DirectConvolution(const KernelCall & call, const Windows<T> & windows, const ScaledConvolutionRows<T> & rows,
                    T * scratch)
    : m_Call(call)
    , m_Windows(windows)
    , m_Extent(windows.extent)
    , m_Tile(windows.extent, call.output.box)
    , m_Rows(rows)
    , m_Scratch(scratch)
  {}

  void
  Run() const
  {
    const Box &  output = m_Call.output.box;
    Coordinates  count = output.Extents();
    std::int64_t tasks = 1;
    count[0] = (count[0] + m_Tile.width - 1) / m_Tile.width;
    count[1] = (count[1] + m_Tile.height - 1) / m_Tile.height;
    for (int a = 0; a < MaxDimension; ++a)
    {
      tasks *= count[a];
    }
    m_Call.executor->ParallelFor(tasks, [&](std::int64_t task, unsigned int worker) {
      if (m_Call.control && m_Call.control->ShouldStop())
      {
        return;
      }
      Box box{};
      for (int a = 0; a < MaxDimension; ++a)
      {
        const std::int64_t step = a == 0 ? m_Tile.width : (a == 1 ? m_Tile.height : 1);
        box.lower[a] = output.lower[a] + task % count[a] * step;
        box.upper[a] = std::min(box.lower[a] + step, output.upper[a]);
        task /= count[a];
      }
      RunTile(box, m_Scratch + worker * m_Tile.Scratch());
      if (m_Call.control)
      {
        m_Call.control->AddFinishedVoxels(box.NumberOfVoxels());
      }
    });
  }

private:
  void
  RunTile(const Box & box, T * memory) const
  {
    const std::int64_t width = box.Extent(0);
    const std::int64_t lines = box.Extent(1) + m_Extent[1] - 1;
    const std::int64_t layers = m_Tile.rows / (m_Tile.height + m_Extent[1] - 1);
    for (std::int64_t layer = 0; layer < layers; ++layer)
    {
      Coordinates at = box.lower;
      at[0] -= m_Windows.below[0];
      std::int64_t rest = layer;
      for (int a = 2; a < MaxDimension; ++a)
      {
        at[a] += rest % m_Extent[a] - m_Windows.below[a];
        rest /= m_Extent[a];
      }
      for (std::int64_t line = 0; line < lines; ++line)
      {
        at[1] = box.lower[1] - m_Windows.below[1] + line;
        m_Rows.Load(at, 0, width + m_Extent[0] - 1, memory + (layer * lines + line) * m_Tile.pitch);
      }
    }
    // In Renormalized mode rows have different taps.
    const bool             cuts = m_Windows.zeroSum && m_Windows.mode == BoundaryMode::Renormalized;
    const std::int64_t     together = cuts ? 1 : m_Tile.RowsTogether();
    T * const              out = memory + m_Tile.rows * m_Tile.pitch;
    std::vector<const T *> taps(m_Windows.weights.size());
    for (std::int64_t y = 0; y < box.Extent(1); y += together)
    {
      Coordinates        at = box.lower;
      const std::int64_t count = std::min(together, box.Extent(1) - y);
      const std::int64_t n = (count - 1) * m_Tile.pitch + width;
      at[1] += y;
      if (cuts)
      {
        WeighDifferences(at, width, memory, lines, y, out);
      }
      else
      {
        const T *   center = nullptr;
        std::size_t tap = 0;
        ForEachLine(lines, y, [&](std::int64_t line, Coordinates place) {
          for (place[0] = 0; place[0] < m_Extent[0]; ++place[0], ++tap)
          {
            taps[tap] = memory + line * m_Tile.pitch + place[0];
            center = place == m_Windows.below ? taps[tap] : center;
          }
        });
        const auto number = static_cast<std::int64_t>(taps.size());
        if (m_Windows.zeroSum)
        {
          GetRows<T>().weighDifferences(out, taps.data(), center, m_Windows.weights.data(), number, n);
        }
        else
        {
          GetRows<T>().weigh(out, taps.data(), m_Windows.weights.data(), number, n);
        }
      }
      for (std::int64_t row = 0; row < count; ++row, ++at[1])
      {
        m_Rows.Store(at, 0, width, out + row * m_Tile.pitch);
      }
    }
  }

  /** Calls body(loaded row, its place in the window) for the window of a row of the tile, in the order of the weights.
   */
  template <typename TBody>
  void
  ForEachLine(std::int64_t lines, std::int64_t y, TBody && body) const
  {
    const std::int64_t layers = m_Tile.rows / (m_Tile.height + m_Extent[1] - 1);
    for (std::int64_t layer = 0; layer < layers; ++layer)
    {
      Coordinates  place{};
      std::int64_t rest = layer;
      for (int a = 2; a < MaxDimension; ++a)
      {
        place[a] = rest % m_Extent[a];
        rest /= m_Extent[a];
      }
      for (; place[1] < m_Extent[1]; ++place[1])
      {
        body(layer * lines + y + place[1], place);
      }
    }
  }

  /** Weighs the differences of taps inside the image from the window's voxel, for a row. */
  void
  WeighDifferences(const Coordinates & at, std::int64_t width, const T * memory, std::int64_t lines, std::int64_t y,
                   T * out) const
  {
    const auto isThere = [&](const Coordinates & place) {
      bool there = true;
      for (int a = 1; a < MaxDimension; ++a)
      {
        const std::int64_t i = at[a] + place[a] - m_Windows.below[a];
        there = there && i >= 0 && i < m_Call.image.Extent(a);
      }
      return there;
    };
    const T * center = nullptr;
    ForEachLine(lines, y, [&](std::int64_t line, Coordinates place) {
      place[0] = m_Windows.below[0];
      center = place == m_Windows.below ? memory + line * m_Tile.pitch + m_Windows.below[0] : center;
    });
    T * const differences = out + width;
    const T * weight = m_Windows.weights.data();
    std::fill(out, out + width, T(0));
    ForEachLine(lines, y, [&](std::int64_t line, const Coordinates & place) {
      const T * const weights = weight;
      weight += m_Extent[0];
      if (!isThere(place))
      {
        return;
      }
      for (std::int64_t t = 0; t < m_Extent[0]; ++t)
      {
        const std::int64_t begin = at[0] + t - m_Windows.below[0];
        const std::int64_t first = std::max<std::int64_t>(0, -begin);
        const std::int64_t last = std::min(width, m_Call.image.Extent(0) - begin);
        const T * const    row = memory + line * m_Tile.pitch + t;
        for (std::int64_t x = first; x < last; ++x)
        {
          differences[x] = row[x] - center[x];
        }
        if (first < last)
        {
          GetRows<T>().multiplyAdd(out + first, differences + first, weights[t], last - first);
        }
      }
    });
  }

  const KernelCall &             m_Call;
  const Windows<T> &             m_Windows;
  const Coordinates              m_Extent;
  const TileShape                m_Tile;
  const ScaledConvolutionRows<T> m_Rows;
  T * const                      m_Scratch;
};

Coordinates
ExtentOf(const ConvolutionOperation & operation)
{
  Coordinates extent{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    extent[a] = 2 * operation.radius[a] + 1;
  }
  return extent;
}

std::int64_t
NumbersOfFactors(const ConvolutionOperation & operation, const Coordinates & image)
{
  const bool renormalizes = operation.boundary.mode == BoundaryMode::Renormalized && !operation.IsZeroSum();
  return renormalizes ? NumbersOfFactors(ExtentOf(operation), image) : 0;
}

template <typename T>
void
RunOdd(const KernelCall & call)
{
  const auto & operation = static_cast<const ConvolutionOperation &>(*call.operation);
  Windows<T>   windows;
  windows.extent = ExtentOf(operation);
  windows.below = operation.radius;
  windows.weights.assign(operation.weights.begin(), operation.weights.end());
  windows.zeroSum = operation.IsZeroSum();
  windows.mode = operation.boundary.mode;
  ConvolutionFactorRows<T> factors;
  if (windows.mode == BoundaryMode::Renormalized && !windows.zeroSum)
  {
    factors = ConvolutionFactorRows<T>(
      call,
      static_cast<T *>(call.scratch),
      windows.extent,
      windows.below,
      call.output.box,
      [&] { return operation.GetKey(); },
      [&] { return operation.GetNorms(call.image.Extents()); });
  }
  const T beyond = DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    return static_cast<T>(ConstantPixel<decltype(pixel)>(operation.boundary.constant));
  });
  DirectConvolution<T>(call,
                       windows,
                       { ConvolutionRows<T>(call, operation.boundary, beyond), factors },
                       static_cast<T *>(call.scratch) + NumbersOfFactors(operation, call.image.Extents()))
    .Run();
}

void
RunConvolution(const KernelCall & call)
{
  UsesDouble(call.inputs[0].kind) ? RunOdd<double>(call) : RunOdd<float>(call);
}

template <typename T>
void
RunDirect(const KernelCall & call)
{
  const auto & operation = static_cast<const ImageConvolutionOperation &>(*call.operation);
  Windows<T>   windows;
  windows.extent = operation.kernel->GetExtent();
  for (int a = 0; a < MaxDimension; ++a)
  {
    windows.below[a] = operation.Below(a);
  }
  windows.weights.assign(operation.kernel->GetWeights().rbegin(), operation.kernel->GetWeights().rend());
  windows.mode = operation.boundary.mode;
  T * const scratch = static_cast<T *>(call.scratch);
  DirectConvolution<T>(
    call, windows, ScaledConvolutionRows<T>(call, scratch), scratch + NumbersOfFactors(operation, call.image.Extents()))
    .Run();
}

void
RunDirectConvolution(const KernelCall & call)
{
  UsesDouble(call.inputs[0].kind) ? RunDirect<double>(call) : RunDirect<float>(call);
}

std::size_t
ScratchOf(const Coordinates & extent, std::int64_t factors, const ChunkShape & chunk)
{
  const std::int64_t bytes = UsesDouble(chunk.inputKinds[0]) ? 8 : 4;
  const std::int64_t tiles = TileShape(extent, chunk.outputBox).Scratch() * chunk.concurrency;
  return static_cast<std::size_t>((factors + tiles) * bytes);
}

std::size_t
ScratchOfConvolution(const Operation & operation, const ChunkShape & chunk)
{
  const auto & convolution = static_cast<const ConvolutionOperation &>(operation);
  return ScratchOf(ExtentOf(convolution), NumbersOfFactors(convolution, chunk.image.Extents()), chunk);
}

std::size_t
ScratchOfDirectConvolution(const Operation & operation, const ChunkShape & chunk)
{
  const auto & convolution = static_cast<const ImageConvolutionOperation &>(operation);
  return ScratchOf(convolution.kernel->GetExtent(), NumbersOfFactors(convolution, chunk.image.Extents()), chunk);
}

} // namespace

void
RegisterHostConvolution(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunConvolution;
  kernel.scratchBytes = ScratchOfConvolution;
  registry.Register("convolution", { kernel });
}

void
RegisterHostDirectConvolution(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunDirectConvolution;
  kernel.scratchBytes = ScratchOfDirectConvolution;
  registry.Register("convolution.direct", { kernel });
}

} // namespace chunkwise
