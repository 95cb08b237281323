/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuTiles.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseHostKernelList.h"

#include <vector>

namespace chunkwise
{

namespace
{

/** A histogram that knows its entropy. */
class Histogram
{
public:
  Histogram(std::uint16_t * counts, const std::vector<std::int32_t> & steps)
    : m_Counts(counts)
    , m_Steps(steps.data())
  {}
  void
  Add(std::uint16_t bin)
  {
    m_Sum += m_Steps[m_Counts[bin]++];
    ++m_Voxels;
  }
  void
  Remove(std::uint16_t bin)
  {
    m_Sum -= m_Steps[--m_Counts[bin]];
    --m_Voxels;
  }
  std::int64_t
  GetSum() const
  {
    return m_Sum;
  }
  std::int64_t
  GetVoxels() const
  {
    return m_Voxels;
  }
  std::uint16_t
  GetCount(int bin) const
  {
    return m_Counts[bin];
  }

private:
  std::uint16_t *      m_Counts;
  const std::int32_t * m_Steps;
  std::int64_t         m_Sum{ 0 };
  std::int64_t         m_Voxels{ 0 };
};

/** The bin of voxels outside is split by lines: one counter that goes up and down for each of many voxels is waited
 * for.
 */
constexpr int OutsideBins = 4;

std::int64_t
BytesOf(const Box & output, const Coordinates & radius, int bins)
{
  return TileBytes(output, radius, [bins](const WindowBoxes & boxes) {
    return RoundToLine(2 * boxes.padded.NumberOfVoxels()) + RoundToLine(2 * (bins + OutsideBins - 1));
  });
}

void
SplitOutside(std::uint16_t * bins, const Box & box, std::uint16_t last)
{
  const std::int64_t width = box.Extent(0);
  int                line = 0;
  ForEachRow(box, [&](const Coordinates &) {
    const auto part = static_cast<std::uint16_t>(line++ % OutsideBins);
    for (std::int64_t x = 0; x < width; ++x)
    {
      bins[x] = static_cast<std::uint16_t>(bins[x] + (bins[x] == last ? part : 0));
    }
    bins += width;
  });
}

/** Which columns of the lines have a voxel inside: others leave an entropy as it is. */
void
FindSeen(const std::vector<std::uint16_t *> & lines, std::uint16_t last, std::vector<std::uint8_t> & seen)
{
  std::fill(seen.begin(), seen.end(), std::uint8_t{ 0 });
  const auto           width = static_cast<std::int64_t>(seen.size());
  std::uint8_t * const to = seen.data();
  for (const std::uint16_t * const line : lines)
  {
    for (std::int64_t x = 0; x < width; ++x)
    {
      to[x] = static_cast<std::uint8_t>(to[x] | (line[x] < last ? 1 : 0));
    }
  }
}

/** The bins of the voxels of a tile and its surroundings. */
template <typename TPixel>
void
LoadBins(const KernelCall & call, const EntropyOperation & operation, const Box & padded, std::uint16_t * bins)
{
  const double scale = operation.bins / (operation.upper - operation.lower);
  const auto   binOf = [&](TPixel pixel) { return BinOf(pixel, operation.lower, scale, operation.bins); };
  LoadTile<TPixel>(call.inputs[0],
                   call.image,
                   padded,
                   operation.boundary.mode,
                   binOf(ConstantPixel<TPixel>(operation.boundary.constant)),
                   bins,
                   binOf);
  if (operation.leavesOutLast)
  {
    SplitOutside(bins, padded, static_cast<std::uint16_t>(operation.bins - 1));
  }
}

template <typename TOut>
void
RunTile(const KernelCall & call, const EntropyOperation & operation, const WindowBoxes & boxes, std::uint16_t * bins,
        std::uint16_t * counts, const std::vector<std::int32_t> & steps, const std::vector<std::int64_t> & totals,
        const std::vector<double> & logarithms)
{
  const Box &                  padded = boxes.padded;
  const int                    last = operation.bins - 1;
  const bool                   leavesOut = operation.leavesOutLast;
  const std::int64_t           r = boxes.radius[0];
  const std::int64_t           lastTap = r - operation.shorter[0];
  const std::int64_t           width = padded.Extent(0);
  std::vector<std::uint16_t *> lines;
  std::vector<std::uint8_t>    seen(static_cast<std::size_t>(width), std::uint8_t{ 1 });
  const Box                    output = boxes.after[boxes.count - 1];
  ForEachRow(output, [&](const Coordinates & at) {
    // The rows of the window.
    Box window = Box{ at, at };
    for (int a = 1; a < MaxDimension; ++a)
    {
      window.lower[a] = std::max(at[a] - boxes.radius[a], padded.lower[a]);
      window.upper[a] = std::min(at[a] + boxes.radius[a] + 1 - operation.shorter[a], padded.upper[a]);
    }
    window.lower[0] = padded.lower[0];
    window.upper[0] = padded.lower[0] + 1;
    lines.clear();
    ForEachRow(window, [&](const Coordinates & line) { lines.push_back(bins + DenseOffset(padded, line)); });
    std::fill(counts, counts + operation.bins + OutsideBins - 1, std::uint16_t{ 0 });
    if (leavesOut)
    {
      FindSeen(lines, static_cast<std::uint16_t>(last), seen);
    }
    const auto isSeen = [&](std::int64_t x) { return x >= 0 && x < width && seen[static_cast<std::size_t>(x)] != 0; };
    Histogram  histogram(counts, steps);
    const std::int64_t first = at[0] - padded.lower[0];
    for (std::int64_t x = std::max<std::int64_t>(first - r, 0); x < std::min(first + lastTap, width); ++x)
    {
      for (std::size_t line = 0; isSeen(x) && line < lines.size(); ++line)
      {
        histogram.Add(lines[line][x]);
      }
    }
    StoreRow<TOut>(call.output, at, output.Extent(0), [&](std::int64_t i) {
      const std::int64_t x = first + i;
      if (isSeen(x + lastTap))
      {
        for (const std::uint16_t * line : lines)
        {
          histogram.Add(line[x + lastTap]);
        }
      }
      if (i > 0 && isSeen(x - r - 1))
      {
        for (const std::uint16_t * line : lines)
        {
          histogram.Remove(line[x - r - 1]);
        }
      }
      std::int64_t n = histogram.GetVoxels();
      std::int64_t sum = histogram.GetSum();
      for (int bin = last; leavesOut && bin < last + OutsideBins; ++bin)
      {
        n -= histogram.GetCount(bin);
        sum -= totals[histogram.GetCount(bin)];
      }
      return ConvertResult<TOut>(EntropyOf(sum, n, logarithms[static_cast<std::size_t>(n)]));
    });
  });
}

void
RunEntropy(const KernelCall & call)
{
  const auto &       operation = static_cast<const EntropyOperation &>(*call.operation);
  const Coordinates  radius = operation.EffectiveRadius(call.image.Extents());
  const std::int64_t taps = operation.GetTaps(call.image.Extents());
  // A window that slides holds one more column for a moment.
  const std::vector<std::int32_t> steps = EntropyOperation::GetSteps(2 * taps);
  const std::vector<double>       logarithms = EntropyOperation::GetLogarithms(taps);
  const std::vector<std::int64_t> totals = EntropyOperation::GetTotals(operation.leavesOutLast ? taps : 0);
  const std::int64_t              bytes = BytesOf(call.output.box, radius, operation.bins);
  // Either is compiled for ten kinds, not for each pair of them.
  const auto load = DispatchPixelType(call.inputs[0].kind, [](auto pixel) { return &LoadBins<decltype(pixel)>; });
  const auto run = DispatchPixelType(call.output.kind, [](auto out) { return &RunTile<decltype(out)>; });
  ForEachTile(call, radius, [&](const Box & tile, unsigned int worker) {
    const WindowBoxes boxes(tile, call.image, radius, operation.boundary.mode);
    char * const      memory = static_cast<char *>(call.scratch) + bytes * worker;
    auto * const      bins = reinterpret_cast<std::uint16_t *>(memory);
    auto * const counts = reinterpret_cast<std::uint16_t *>(memory + RoundToLine(2 * boxes.padded.NumberOfVoxels()));
    load(call, operation, boxes.padded, bins);
    run(call, operation, boxes, bins, counts, steps, totals, logarithms);
  });
}

std::size_t
ScratchOfEntropy(const Operation & operation, const ChunkShape & shape)
{
  const auto & entropy = static_cast<const EntropyOperation &>(operation);
  return static_cast<std::size_t>(
    BytesOf(shape.outputBox, entropy.EffectiveRadius(shape.image.Extents()), entropy.bins) * shape.concurrency);
}

} // namespace

void
RegisterHostEntropy(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunEntropy;
  kernel.scratchBytes = ScratchOfEntropy;
  registry.Register("entropy", { kernel });
}

} // namespace chunkwise
