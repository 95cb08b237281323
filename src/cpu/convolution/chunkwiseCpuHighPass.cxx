/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuTiles.h"
#include "chunkwiseDevice.h"
#include "chunkwiseHighPassOperation.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseRealOf.h"

#include <type_traits>

namespace chunkwise
{

namespace
{

void
RunHighPass(const KernelCall & call)
{
  const BufferView   smoothed = SmoothForHighPass(GetHostKernels(), call);
  const BufferView & in = call.inputs[0];
  const Box &        box = call.output.box;
  DispatchPixelKind(in.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      const std::int64_t rows = box.NumberOfVoxels() / box.Extent(0);
      call.executor->ParallelFor(rows, [&](std::int64_t row, unsigned int) {
        Coordinates at = box.lower;
        for (int a = 1; a < MaxDimension; ++a)
        {
          at[a] += row % box.Extent(a);
          row /= box.Extent(a);
        }
        const Pixel * const voxels = static_cast<const Pixel *>(in.data) + in.Offset(at);
        const Real * const  smooth = static_cast<const Real *>(smoothed.data) + smoothed.Offset(at);
        StoreRow<Out>(call.output, at, box.Extent(0), [&](std::int64_t x) {
          return ConvertResult<Out>(static_cast<Real>(voxels[x * in.stride[0]]) - smooth[x]);
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
  kernel.run = RunHighPass;
  kernel.scratchBytes = [](const Operation & operation, const ChunkShape & shape) {
    return HighPassScratchBytes(GetHostKernels(), operation, shape);
  };
  registry.Register("highpass", kernel);
}

} // namespace chunkwise
