/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuRowStore.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseLaplacianOperation.h"
#include "chunkwiseRealOf.h"

#include <vector>

namespace chunkwise
{

namespace
{

template <typename TAcc>
const RowFunctions<TAcc> &
RowsOf(const CpuLevel & level)
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

/** The parts of a worker's memory. */
template <typename TAcc>
struct LaplacianMemory
{
  TAcc * smooth[3]{}; ///< the tile with its surroundings, then what two passes leave
  TAcc * laplacian[3]{};
  TAcc * s{ nullptr };
  TAcc * l{ nullptr };

  std::int64_t
  LayOut(const WindowBoxes & boxes, char * memory)
  {
    std::int64_t bytes = 0;
    const auto   take = [&](TAcc *& part, std::int64_t n) {
      part = reinterpret_cast<TAcc *>(memory + bytes);
      bytes += RoundToLine(n * static_cast<std::int64_t>(sizeof(TAcc)));
    };
    take(smooth[0], boxes.padded.NumberOfVoxels());
    for (int i = 0; i < 2; ++i)
    {
      take(smooth[i + 1], boxes.Intermediate(i));
      take(laplacian[i + 1], boxes.Intermediate(i));
    }
    take(s, boxes.after[0].Extent(0));
    take(l, boxes.after[0].Extent(0));
    return bytes;
  }
};

template <typename TAcc>
struct AxisTables
{
  std::vector<TAcc> g;
  std::vector<TAcc> h;
  std::int64_t      rows{ 1 };
};

template <typename TAcc, typename TPixel>
void
Load(const KernelCall & call, const WindowBoundary & boundary, const Box & box, TAcc * to)
{
  LoadTile<TPixel>(call.inputs[0],
                   call.image,
                   box,
                   boundary.mode,
                   static_cast<TAcc>(ConstantPixel<TPixel>(boundary.constant)),
                   to,
                   [](TPixel pixel) { return static_cast<TAcc>(pixel); });
}

template <typename TAcc>
void
RunTile(const KernelCall & call, const AxisTables<TAcc> * tables, const WindowBoxes & boxes,
        const LaplacianMemory<TAcc> & memory)
{
  const RowFunctions<TAcc> & rows = RowsOf<TAcc>(GetCpuLevel());
  const RowStore<TAcc>       store = RowStoreOf<TAcc>(call.output.kind);
  for (int pass = 0; pass < boxes.count; ++pass)
  {
    const int                a = boxes.axes[pass];
    const Box &              before = boxes.Before(pass);
    const std::int64_t       n = boxes.after[pass].Extent(0);
    const std::int64_t       radius = boxes.radius[a];
    const std::int64_t       extent = call.image.Extent(a);
    const AxisTables<TAcc> & axis = tables[a];
    const TAcc * const       smooth = memory.smooth[pass];
    const TAcc * const       laplacian = pass == 0 ? nullptr : memory.laplacian[pass];
    const auto               rowOf = [&](std::int64_t i) { return WeightRow(i, extent, radius, axis.rows); };
    WalkPass(
      boxes,
      pass,
      [&](const Coordinates &) {
        std::fill(memory.s, memory.s + n, TAcc{ 0 });
        std::fill(memory.l, memory.l + n, TAcc{ 0 });
      },
      [&](std::int64_t t, const Coordinates & from, std::int64_t first, std::int64_t last) {
        Coordinates center = from;
        center[a] -= t - radius;
        const std::int64_t offset = DenseOffset(before, from);
        const std::int64_t middle = DenseOffset(before, center);
        // Along x the weights change from voxel to voxel near the edges.
        for (std::int64_t x = first; x < last;)
        {
          const std::int64_t i = a == 0 ? center[0] + x : center[a];
          const std::int64_t row = rowOf(i);
          std::int64_t       until = last;
          if (a == 0 && axis.rows > 1)
          {
            until = row == radius && axis.rows < extent ? std::min(last, extent - radius - center[0]) : x + 1;
          }
          const auto weight = static_cast<std::size_t>(row * (2 * radius + 1) + t);
          rows.addLaplacian(memory.s + x,
                            memory.l + x,
                            smooth + offset + x,
                            laplacian ? laplacian + offset + x : nullptr,
                            smooth + middle + x,
                            axis.g[weight],
                            axis.h[weight],
                            until - x);
          x = until;
        }
      },
      [&](const Coordinates & at) {
        if (pass + 1 == boxes.count)
        {
          store(call.output, at, n, memory.l);
          return;
        }
        const std::int64_t offset = DenseOffset(boxes.after[pass], at);
        std::copy(memory.s, memory.s + n, memory.smooth[pass + 1] + offset);
        std::copy(memory.l, memory.l + n, memory.laplacian[pass + 1] + offset);
      });
  }
}

template <typename TAcc>
std::int64_t
BytesOf(const Box & output, const Coordinates & radius)
{
  return TileBytes(
    output, radius, [](const WindowBoxes & boxes) { return LaplacianMemory<TAcc>().LayOut(boxes, nullptr); });
}

template <typename TAcc>
void
Run(const KernelCall & call,
    void (*load)(const KernelCall &, const WindowBoundary & boundary, const Box & box, TAcc * to))
{
  const auto &       operation = static_cast<const LaplacianOperation &>(*call.operation);
  const Coordinates  radius = operation.GetRadius();
  const std::int64_t bytes = BytesOf<TAcc>(call.output.box, radius);
  AxisTables<TAcc>   tables[MaxDimension];
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::vector<double> both = operation.GetTables(a, call.image.Extent(a));
    const auto                half = static_cast<std::ptrdiff_t>(both.size() / 2);
    tables[a].rows = operation.GetNumberOfRows(a, call.image.Extent(a));
    tables[a].g.assign(both.begin(), both.begin() + half);
    tables[a].h.assign(both.begin() + half, both.end());
  }
  ForEachTile(call, radius, [&](const Box & tile, unsigned int worker) {
    const WindowBoxes     boxes(tile, call.image, radius, operation.boundary.mode);
    LaplacianMemory<TAcc> memory;
    memory.LayOut(boxes, static_cast<char *>(call.scratch) + bytes * worker);
    load(call, operation.boundary, boxes.padded, memory.smooth[0]);
    RunTile<TAcc>(call, tables, boxes, memory);
  });
}

void
RunLaplacian(const KernelCall & call)
{
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    if constexpr (std::is_same<Pixel, float>::value || sizeof(Pixel) <= 2)
    {
      Run<float>(call, Load<float, Pixel>);
    }
    else
    {
      Run<double>(call, Load<double, Pixel>);
    }
  });
}

std::size_t
ScratchOfLaplacian(const Operation & operation, const ChunkShape & shape)
{
  const Coordinates  radius = static_cast<const LaplacianOperation &>(operation).GetRadius();
  const std::int64_t bytes = UsesDouble(shape.inputKinds[0]) ? BytesOf<double>(shape.outputBox, radius)
                                                             : BytesOf<float>(shape.outputBox, radius);
  return static_cast<std::size_t>(bytes * shape.concurrency);
}

} // namespace

void
RegisterHostLaplacian(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunLaplacian;
  kernel.scratchBytes = ScratchOfLaplacian;
  registry.Register("laplacian", kernel);
}

} // namespace chunkwise
