/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuTiles.h"
#include "chunkwiseDevice.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseWienerOperation.h"

#include <type_traits>

namespace chunkwise
{

namespace
{

void
RunWiener(const KernelCall & call)
{
  const WienerStatistics statistics = RunWienerStatistics(GetHostKernels(), call);
  const BufferView &     in = call.inputs[0];
  DispatchPixelKind(in.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    const auto noise = static_cast<Real>(static_cast<const WienerOperation &>(*call.operation).noise);
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      ForEachTile(call, Coordinates{}, [&](const Box & tile, unsigned int) {
        ForEachRow(tile, [&](const Coordinates & at) {
          const Pixel * const voxels = static_cast<const Pixel *>(in.data) + in.Offset(at);
          const Real * const  mean = static_cast<const Real *>(statistics.mean.data) + statistics.mean.Offset(at);
          const Real * const  variance =
            static_cast<const Real *>(statistics.variance.data) + statistics.variance.Offset(at);
          StoreRow<Out>(call.output, at, tile.Extent(0), [&](std::int64_t x) {
            return ConvertResult<Out>(
              WienerOf(static_cast<Real>(voxels[x * in.stride[0]]), mean[x], variance[x], noise));
          });
        });
      });
    });
  });
}

} // namespace

void
RegisterHostWiener(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunWiener;
  kernel.scratchBytes = [](const Operation & operation, const ChunkShape & shape) {
    return WienerScratchBytes(GetHostKernels(), operation, shape);
  };
  registry.Register("wiener", kernel);
}

} // namespace chunkwise
