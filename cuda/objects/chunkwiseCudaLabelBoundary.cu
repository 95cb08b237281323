/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseLabelBoundary.h"

namespace chunkwise
{

namespace
{

template <typename TLabel, typename TOut>
__global__ void
LabelBoundaryKernel(Voxels<const TLabel> labels, Box image, TOut * __restrict__ out, Box box, LabelBoundaryRule rule)
{
  const auto width = static_cast<std::uint32_t>(box.Extent(0));
  const auto count = box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < count; row += RowStep())
  {
    const Coordinates first = IndexIn(box, row * width);
    for (std::uint32_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      Coordinates at = first;
      at.axis[0] += x;
      const TLabel own = labels[at];
      bool         differs = false;
      bool         touches = false;
      for (int i = 0; i < rule.count; ++i)
      {
        Coordinates there = at;
        bool        isInside = true;
        for (int a = 0; a < MaxDimension; ++a)
        {
          there.axis[a] += rule.offset[i][a];
          isInside = isInside && there.axis[a] >= image.lower.axis[a] && there.axis[a] < image.upper.axis[a];
        }
        if (isInside)
        {
          const TLabel other = labels[there];
          const bool   isOther = own != other;
          differs = differs || (isOther && i < rule.neighbors);
          touches = touches || (isOther && own != TLabel(0) && other != TLabel(0));
        }
      }
      out[row * width + x] = static_cast<TOut>(rule(own != TLabel(0), differs, touches) ? 1 : 0);
    }
  }
}

void
RunLabelBoundary(const KernelCall & call)
{
  const LabelBoundaryRule rule(static_cast<const LabelBoundaryOperation &>(*call.operation));
  const Box &             box = call.output.box;
  DispatchEqual(call.inputs[0].kind, [&](auto label) {
    DispatchEqual(call.output.kind, [&](auto out) {
      LabelBoundaryKernel<<<BlocksOfRows(box), ThreadsOfRows(), 0, StreamOf(call)>>>(
        VoxelsOf<const decltype(label)>(call.inputs[0]),
        call.image,
        static_cast<decltype(out) *>(call.output.data),
        box,
        rule);
      CheckLaunch("LabelBoundaryKernel");
    });
  });
}

} // namespace

void
RegisterCudaLabelBoundary(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunLabelBoundary;
  registry.Register("labelboundary", { kernel });
}

} // namespace chunkwise
