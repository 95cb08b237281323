/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuEnhancement.h"

#include "chunkwiseCpuDiffusion.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseEnhancementOperations.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseRealOf.h"

namespace chunkwise
{

namespace
{

/** The output of rule(voxel, first, second) with voxels of the first input and real numbers of the others; without a
 * third input `second` is that of the second. */
template <typename TRule>
void
RunVoxelRule(const KernelCall & call, TRule && rule)
{
  const BufferView & in = call.inputs[0];
  const BufferView & firsts = call.inputs[1];
  const BufferView & seconds = call.inputs[call.numberOfInputs - 1];
  DispatchPixelType(in.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      ForEachTile(call, Coordinates{}, [&](const Box & tile, unsigned int) {
        ForEachRow(tile, [&](const Coordinates & at) {
          const Pixel * const voxels = static_cast<const Pixel *>(in.data) + in.Offset(at);
          const Real * const  first = static_cast<const Real *>(firsts.data) + firsts.Offset(at);
          const Real * const  second = static_cast<const Real *>(seconds.data) + seconds.Offset(at);
          StoreRow<Out>(call.output, at, tile.Extent(0), [&](std::int64_t x) {
            return ConvertResult<Out>(rule(static_cast<Real>(voxels[x * in.stride[0]]), first[x], second[x]));
          });
        });
      });
    });
  });
}

void
RunUnsharpVoxels(const KernelCall & call)
{
  const auto & operation = static_cast<const UnsharpOperation &>(*call.operation);
  RunVoxelRule(call, [&](auto voxel, auto smoothed, auto) {
    using Real = decltype(voxel);
    return UnsharpOf<Real>(
      voxel, smoothed, static_cast<Real>(operation.amount), static_cast<Real>(operation.threshold));
  });
}

void
RunLocalNormalizationVoxels(const KernelCall & call)
{
  const auto & operation = static_cast<const LocalNormalizationOperation &>(*call.operation);
  RunVoxelRule(call, [&](auto voxel, auto mean, auto deviation) {
    using Real = decltype(voxel);
    return LocallyNormalized<Real>(voxel, mean, deviation, static_cast<Real>(operation.least));
  });
}

void
RunRollingBallVoxels(const KernelCall & call)
{
  RunVoxelRule(call, [](auto voxel, auto background, auto) { return voxel - background; });
}

} // namespace

void
RegisterHostEnhancement(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunUnsharpVoxels;
  registry.Register("unsharp.voxels", { kernel });
  kernel.run = RunLocalNormalizationVoxels;
  registry.Register("localnormalization.voxels", { kernel });
  kernel.run = RunRollingBallVoxels;
  registry.Register("rollingball.voxels", { kernel });
  RegisterHostAdaptiveEqualization(registry);
  RegisterHostBilateral(registry);
  RegisterHostMaskedVoxels(registry);
  RegisterHostNonFlatExtremum(registry);
  RegisterHostDiffusion(registry);
}

} // namespace chunkwise
