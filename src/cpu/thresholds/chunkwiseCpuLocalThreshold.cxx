/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuClassRows.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseLocalThreshold.h"
#include "chunkwiseRealOf.h"

namespace chunkwise
{

namespace
{

/** The thresholds that the statistics of windows give. */
template <typename TReal>
void
RunLevels(const KernelCall & call)
{
  const LocalThresholdRule<TReal> rule(dynamic_cast<const LocalThresholdOperation &>(*call.operation));
  DispatchPixelType(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    const Coordinates plane = { { 1 << 20, 16, 0, 0, 0 } };
    ForEachTile(call, plane, [&](const Box & tile, unsigned int) {
      ForEachRow(tile, [&](const Coordinates & at) {
        const StridedRow<const TReal> a(call.inputs[0], at);
        const StridedRow<const TReal> b(call.inputs[call.numberOfInputs - 1], at);
        StoreRow<Out>(
          call.output, at, tile.Extent(0), [&](std::int64_t x) { return ConvertResult<Out>(rule(a[x], b[x])); });
      });
    });
  });
}

void
RunLocalThresholdLevels(const KernelCall & call)
{
  call.inputs[0].kind == PixelType::Float32 ? RunLevels<float>(call) : RunLevels<double>(call);
}

/** Which voxels are above their thresholds: 1, 0 for the others and outside the mask. */
void
RunLocalThresholdVoxels(const KernelCall & call)
{
  const auto & operation = dynamic_cast<const LocalThresholdOperation &>(*call.operation);
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    const LocalThresholdRule<Real> rule(operation);
    ForEachClassRow(call, operation.masked ? &call.inputs[2] : nullptr, [&](ClassRow & row) {
      const StridedRow<const Pixel> voxels(call.inputs[0], row.at);
      const StridedRow<const Real>  thresholds(call.inputs[1], row.at);
      for (std::int64_t x = 0; x < row.n; ++x)
      {
        row.classes[x] = rule.IsAbove(static_cast<Real>(voxels[x]), thresholds[x]) ? 1 : 0;
      }
    });
  });
}

} // namespace

void
RegisterHostLocalThreshold(KernelRegistry & registry)
{
  Kernel levels;
  levels.run = RunLocalThresholdLevels;
  registry.Register("localthreshold.levels.voxels", { levels });
  Kernel voxels;
  voxels.run = RunLocalThresholdVoxels;
  registry.Register("localthreshold.voxels", { voxels });
}

} // namespace chunkwise
