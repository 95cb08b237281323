/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaDerivative.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaRealOutput.cuh"
#include "chunkwiseMeasureScaleOperation.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

/** The images of later scales are not read for the first one. */
template <typename TReal, typename TPixel>
__global__ void
ScaleStepKernel(Voxels<const TReal> measures, Voxels<const TReal> largest, Voxels<const TReal> scales, RealOutput out,
                TReal scale, bool givesScale, bool isFirst)
{
  const Box &        box = out.voxels.box;
  const std::int64_t width = box.Extent(0);
  const std::int64_t rows = box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < rows; row += RowStep())
  {
    Coordinates at = IndexIn(box, row * width);
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      at.axis[0] = box.lower.axis[0] + x;
      const TReal measure = measures[at];
      const TReal found = ScaleStep(
        measure, isFirst ? TReal(0) : largest[at], isFirst ? TReal(0) : scales[at], givesScale ? scale : measure);
      out.Store<TPixel>(out.voxels.Offset(at), found);
    }
  }
}

void
RunScaleStep(const KernelCall & call)
{
  const auto & operation = static_cast<const ScaleStepOperation &>(*call.operation);
  const auto   input = [&](int i) -> const BufferView & { return call.inputs[std::min(i, call.numberOfInputs - 1)]; };
  const auto   run = [&](auto real) {
    using Real = decltype(real);
    DispatchPixelType(call.output.kind, [&](auto pixel) {
      ScaleStepKernel<Real, decltype(pixel)><<<BlocksOfRows(call.output.box), ThreadsOfRows(), 0, StreamOf(call)>>>(
        VoxelsOf<const Real>(input(0)),
        VoxelsOf<const Real>(input(1)),
        VoxelsOf<const Real>(input(2)),
        RealOutput{ VoxelsOf<char>(call.output), call.output.kind },
        static_cast<Real>(operation.scale),
        operation.givesScale,
        operation.isFirst);
      CheckLaunch("ScaleStepKernel");
    });
  };
  call.inputs[0].kind == PixelType::Float32 ? run(float{}) : run(double{});
}

} // namespace

void
RegisterCudaScaleStep(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunScaleStep;
  registry.Register("scalestep.voxels", { kernel });
}

} // namespace chunkwise
