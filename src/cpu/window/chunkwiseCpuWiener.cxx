/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuTiles.h"
#include "chunkwiseDomainOperation.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseWienerOperation.h"

namespace chunkwise
{

namespace
{

void
RunWienerVoxels(const KernelCall & call)
{
  const BufferView & in = call.inputs[0];
  const BufferView & means = call.inputs[1];
  const BufferView & variances = call.inputs[2];
  DispatchPixelType(in.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    const auto noise = static_cast<Real>(FindWiener(*call.operation)->noise);
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      ForEachTile(call, Coordinates{}, [&](const Box & tile, unsigned int) {
        ForEachRow(tile, [&](const Coordinates & at) {
          const Pixel * const voxels = static_cast<const Pixel *>(in.data) + in.Offset(at);
          const Real * const  mean = static_cast<const Real *>(means.data) + means.Offset(at);
          const Real * const  variance = static_cast<const Real *>(variances.data) + variances.Offset(at);
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
  kernel.run = RunWienerVoxels;
  registry.Register("wiener.voxels", { kernel });
}

} // namespace chunkwise
