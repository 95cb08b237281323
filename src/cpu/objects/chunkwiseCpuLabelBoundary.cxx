/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuTiles.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseLabelBoundary.h"

#include <algorithm>
#include <cstring>

namespace chunkwise
{

namespace
{

/** Voxels of a row whose neighbors are looked at together. */
constexpr std::int64_t VoxelsOfBoundaryRun = 512;

/** Marks voxels of a run that have another value than their neighbor by an offset, and that are of another object. */
template <typename TLabel>
void
CompareRun(const KernelCall & call, const Coordinates & at, std::int64_t n, const std::int8_t * offset,
           std::uint8_t * differs, std::uint8_t * touches)
{
  const Box & image = call.image;
  Coordinates there = at;
  for (int a = 1; a < MaxDimension; ++a)
  {
    there[a] += offset[a];
    if (there[a] < image.lower[a] || there[a] >= image.upper[a])
    {
      return;
    }
  }
  const StridedRow<const TLabel> own(call.inputs[0], at);
  const StridedRow<const TLabel> other(call.inputs[0], there);
  const std::int64_t             step = offset[0];
  const std::int64_t             begin = std::max<std::int64_t>(0, image.lower[0] - at[0] - step);
  const std::int64_t             end = std::min(n, image.upper[0] - at[0] - step);
  for (std::int64_t x = begin; x < end; ++x)
  {
    const TLabel a = own[x];
    const TLabel b = other[x + step];
    differs[x] |= a != b ? 1 : 0;
    touches[x] |= a != b && a != TLabel(0) && b != TLabel(0) ? 1 : 0;
  }
}

void
RunLabelBoundary(const KernelCall & call)
{
  const LabelBoundaryRule rule(dynamic_cast<const LabelBoundaryOperation &>(*call.operation));
  const Coordinates       plane = { { 1 << 20, 16, 0, 0, 0 } };
  DispatchEqual(call.inputs[0].kind, [&](auto label) {
    using Label = decltype(label);
    ForEachTile(call, plane, [&](const Box & tile, unsigned int) {
      ForEachRow(tile, [&](const Coordinates & row) {
        for (std::int64_t begin = 0; begin < tile.Extent(0); begin += VoxelsOfBoundaryRun)
        {
          const std::int64_t n = std::min(VoxelsOfBoundaryRun, tile.Extent(0) - begin);
          Coordinates        at = row;
          at[0] += begin;
          std::uint8_t differs[VoxelsOfBoundaryRun] = {};
          std::uint8_t touches[VoxelsOfBoundaryRun] = {};
          std::uint8_t ignored[VoxelsOfBoundaryRun] = {};
          for (int i = 0; i < rule.count; ++i)
          {
            CompareRun<Label>(call, at, n, rule.offset[i], i < rule.neighbors ? differs : ignored, touches);
          }
          const StridedRow<const Label> own(call.inputs[0], at);
          DispatchEqual(call.output.kind, [&](auto out) {
            using Out = decltype(out);
            StoreRow<Out>(call.output, at, n, [&](std::int64_t x) {
              return static_cast<Out>(rule(own[x] != Label(0), differs[x] != 0, touches[x] != 0) ? 1 : 0);
            });
          });
        }
      });
    });
  });
}

} // namespace

void
RegisterHostLabelBoundary(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunLabelBoundary;
  registry.Register("labelboundary", { kernel });
}

} // namespace chunkwise
