/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuTiles.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseRealOf.h"

namespace chunkwise
{

namespace
{

void
RunHighPassVoxels(const KernelCall & call)
{
  const BufferView & in = call.inputs[0];
  const BufferView & smoothed = call.inputs[1];
  DispatchPixelType(in.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      ForEachTile(call, Coordinates{}, [&](const Box & tile, unsigned int) {
        ForEachRow(tile, [&](const Coordinates & at) {
          const Pixel * const voxels = static_cast<const Pixel *>(in.data) + in.Offset(at);
          const Real * const  smooth = static_cast<const Real *>(smoothed.data) + smoothed.Offset(at);
          StoreRow<Out>(call.output, at, tile.Extent(0), [&](std::int64_t x) {
            return ConvertResult<Out>(static_cast<Real>(voxels[x * in.stride[0]]) - smooth[x]);
          });
        });
      });
    });
  });
}

} // namespace

void
RegisterHostHighPass(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunHighPassVoxels;
  registry.Register("highpass.voxels", { kernel });
}

} // namespace chunkwise
