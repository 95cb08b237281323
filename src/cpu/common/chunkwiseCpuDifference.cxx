/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuTiles.h"
#include "chunkwiseDifferenceOperation.h"
#include "chunkwiseHostKernelList.h"

namespace chunkwise
{

namespace
{

void
RunDifference(const KernelCall & call)
{
  const std::int64_t components =
    std::min(ComponentsTogether(call.inputs[0], call.output), ComponentsTogether(call.inputs[1], call.output));
  KernelCall folded = call;
  folded.inputs[0] = FoldComponents(call.inputs[0], components);
  folded.inputs[1] = FoldComponents(call.inputs[1], components);
  folded.output = FoldComponents(call.output, components);
  const BufferView & first = folded.inputs[0];
  const BufferView & second = folded.inputs[1];
  DispatchPixelType(first.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    DispatchExactOutput<Pixel>(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      // Planes make tasks that are long enough.
      const Coordinates plane = { { 1 << 20, 16, 0, 0, 0 } };
      ForEachTile(folded, plane, [&](const Box & tile, unsigned int) {
        ForEachRow(tile, [&](const Coordinates & at) {
          const Pixel * const a = static_cast<const Pixel *>(first.data) + first.Offset(at);
          const Pixel * const b = static_cast<const Pixel *>(second.data) + second.Offset(at);
          StoreRow<Out>(folded.output, at, tile.Extent(0), [&](std::int64_t x) {
            return DifferenceOf<Out>(a[x * first.stride[0]], b[x * second.stride[0]]);
          });
        });
      });
    });
  });
}

} // namespace

void
RegisterHostDifference(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunDifference;
  registry.Register("difference", { kernel });
}

} // namespace chunkwise
