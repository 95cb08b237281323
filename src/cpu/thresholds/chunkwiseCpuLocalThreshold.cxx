/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuTiles.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseLocalThreshold.h"
#include "chunkwiseRealOf.h"

namespace chunkwise
{

namespace
{

/** Calls f(at, n) for each row of the output. */
template <typename TFunctor>
void
ForEachThresholdRow(const KernelCall & call, TFunctor && f)
{
  const Coordinates plane = { { 1 << 20, 16, 0, 0, 0 } };
  ForEachTile(call, plane, [&](const Box & tile, unsigned int) {
    ForEachRow(tile, [&](const Coordinates & at) { f(at, tile.Extent(0)); });
  });
}

/** The thresholds that the statistics of windows give. */
template <typename TReal>
void
RunLevels(const KernelCall & call)
{
  const LocalThresholdRule<TReal> rule(dynamic_cast<const LocalThresholdOperation &>(*call.operation));
  DispatchPixelKind(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    ForEachThresholdRow(call, [&](const Coordinates & at, std::int64_t n) {
      const StridedRow<const TReal> a(call.inputs[0], at);
      const StridedRow<const TReal> b(call.inputs[call.numberOfInputs - 1], at);
      StoreRow<Out>(call.output, at, n, [&](std::int64_t x) { return ConvertResult<Out>(rule(a[x], b[x])); });
    });
  });
}

void
RunLocalThresholdLevels(const KernelCall & call)
{
  call.inputs[0].kind == PixelKind::Float32 ? RunLevels<float>(call) : RunLevels<double>(call);
}

/** 0 where the mask is 0. */
template <typename TOut>
void
LeaveOutsideAt(const BufferView & mask, const BufferView & output, const Coordinates & at, std::int64_t n)
{
  DispatchEqual(mask.kind, [&](auto zero) {
    const StridedRow<const decltype(zero)> inside(mask, at);
    const StridedRow<TOut>                 row(output, at);
    for (std::int64_t x = 0; x < n; ++x)
    {
      row[x] = inside[x] != zero ? row[x] : TOut(0);
    }
  });
}

/** Which voxels are above their thresholds: 1, 0 for the others and outside the mask. */
void
RunLocalThresholdVoxels(const KernelCall & call)
{
  const auto & operation = dynamic_cast<const LocalThresholdOperation &>(*call.operation);
  DispatchEqual(call.output.kind, [&](auto zero) {
    using Out = decltype(zero);
    DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      using Real = RealOf<Pixel>;
      const LocalThresholdRule<Real> rule(operation);
      ForEachThresholdRow(call, [&](const Coordinates & at, std::int64_t n) {
        const StridedRow<const Pixel> voxels(call.inputs[0], at);
        const StridedRow<const Real>  thresholds(call.inputs[1], at);
        StoreRow<Out>(call.output, at, n, [&](std::int64_t x) {
          return static_cast<Out>(rule.IsAbove(static_cast<Real>(voxels[x]), thresholds[x]) ? 1 : 0);
        });
        if (operation.masked)
        {
          LeaveOutsideAt<Out>(call.inputs[2], call.output, at, n);
        }
      });
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
