/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuConvolutionRows.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseHostKernelList.h"

namespace chunkwise
{

namespace
{

/** A task's tile of the output: rows along x, some of them side by side along y share the rows of their windows. */
constexpr std::int64_t TileRow = 1024;
constexpr std::int64_t TileRows = 16;

struct TileShape
{
  std::int64_t width;  ///< of the output
  std::int64_t height; ///< of the output
  std::int64_t rows;   ///< that are loaded
  std::int64_t pitch;  ///< of a loaded row

  TileShape(const ConvolutionKernel & kernel, const Box & output)
    : width(std::min(output.Extent(0), TileRow))
    , height(std::min(output.Extent(1), TileRows))
    , rows(height + kernel.GetExtent()[1] - 1)
    , pitch(width + kernel.GetExtent()[0] - 1)
  {
    for (int a = 2; a < MaxDimension; ++a)
    {
      rows *= kernel.GetExtent()[a];
    }
  }
  /** Numbers of a worker: loaded rows and a row of the output. */
  std::int64_t
  Scratch() const
  {
    return rows * pitch + width;
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

template <typename T>
class DirectConvolution
{
public:
  explicit DirectConvolution(const KernelCall & call)
    : m_Call(call)
    , m_Operation(static_cast<const ImageConvolutionOperation &>(*call.operation))
    , m_Extent(m_Operation.kernel->GetExtent())
    , m_Tile(*m_Operation.kernel, call.output.box)
    , m_Rows(call)
    , m_Weights(m_Operation.kernel->GetWeights().rbegin(), m_Operation.kernel->GetWeights().rend())
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
      RunTile(box, static_cast<T *>(m_Call.scratch) + worker * m_Tile.Scratch());
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
      at[0] -= m_Operation.Below(0);
      std::int64_t rest = layer;
      for (int a = 2; a < MaxDimension; ++a)
      {
        at[a] += rest % m_Extent[a] - m_Operation.Below(a);
        rest /= m_Extent[a];
      }
      for (std::int64_t line = 0; line < lines; ++line)
      {
        at[1] = box.lower[1] - m_Operation.Below(1) + line;
        m_Rows.Load(at, 0, width + m_Extent[0] - 1, memory + (layer * lines + line) * m_Tile.pitch);
      }
    }
    T * const              out = memory + m_Tile.rows * m_Tile.pitch;
    std::vector<const T *> taps(m_Weights.size());
    for (std::int64_t y = 0; y < box.Extent(1); ++y)
    {
      std::size_t tap = 0;
      for (std::int64_t layer = 0; layer < layers; ++layer)
      {
        for (std::int64_t line = y; line < y + m_Extent[1]; ++line)
        {
          for (std::int64_t x = 0; x < m_Extent[0]; ++x)
          {
            taps[tap++] = memory + (layer * lines + line) * m_Tile.pitch + x;
          }
        }
      }
      GetRows<T>().weigh(out, taps.data(), m_Weights.data(), static_cast<std::int64_t>(tap), width);
      Coordinates at = box.lower;
      at[1] += y;
      m_Rows.Store(at, 0, width, out);
    }
  }

  const KernelCall &                m_Call;
  const ImageConvolutionOperation & m_Operation;
  const Coordinates                 m_Extent;
  const TileShape                   m_Tile;
  const ScaledConvolutionRows<T>    m_Rows;
  /** From the lowest tap to the highest. */
  const std::vector<T> m_Weights;
};

void
RunDirectConvolution(const KernelCall & call)
{
  if (ConvolvesInDouble(call.inputs[0].kind))
  {
    DirectConvolution<double>(call).Run();
  }
  else
  {
    DirectConvolution<float>(call).Run();
  }
}

std::size_t
ScratchOfDirectConvolution(const Operation & operation, const ChunkShape & chunk)
{
  const TileShape    tile(*static_cast<const ImageConvolutionOperation &>(operation).kernel, chunk.outputBox);
  const std::int64_t bytes = ConvolvesInDouble(chunk.inputKinds[0]) ? 8 : 4;
  return static_cast<std::size_t>(tile.Scratch() * bytes * chunk.concurrency);
}

} // namespace

void
RegisterHostDirectConvolution(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunDirectConvolution;
  kernel.scratchBytes = ScratchOfDirectConvolution;
  registry.Register("convolution.direct", kernel);
}

} // namespace chunkwise
