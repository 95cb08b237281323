/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseLabelBoundary.h"

namespace chunkwise
{

namespace
{

/** A warp computes a row: a thread finds for each voxel around those of the row whether it is there, and how far away
 * in memory, and then all threads use that. */
template <typename TLabel, typename TOut>
__global__ void
LabelBoundaryKernel(Voxels<const TLabel> labels, Box image, TOut * __restrict__ out, Box box, LabelBoundaryRule rule)
{
  __shared__ std::int64_t offsets[RowsOfBlock][LabelBoundaryRule::Most];
  const auto              width = static_cast<std::uint32_t>(box.Extent(0));
  const auto              count = box.NumberOfVoxels() / width;
  std::int64_t * const    ofRow = offsets[threadIdx.y];
  for (std::int64_t row = FirstRow(); row < count; row += RowStep())
  {
    const Coordinates first = IndexIn(box, row * width);
    const auto        lane = static_cast<int>(threadIdx.x);
    bool              isThere = lane < rule.count;
    if (isThere)
    {
      std::int64_t offset = 0;
      for (int a = 0; a < MaxDimension; ++a)
      {
        const std::int64_t at = first.axis[a] + rule.offset[lane][a];
        isThere = isThere && (a == 0 || (at >= image.lower.axis[a] && at < image.upper.axis[a]));
        offset += rule.offset[lane][a] * labels.stride.axis[a];
      }
      ofRow[lane] = offset;
    }
    const std::uint32_t around = __ballot_sync(0xFFFFFFFFu, isThere);
    __syncwarp();
    const TLabel * const from = &labels[first];
    for (std::uint32_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      const std::int64_t   place = first.axis[0] + x;
      const TLabel * const at = from + x * labels.stride.axis[0];
      const TLabel         own = *at;
      bool                 differs = false;
      bool                 touches = false;
      for (std::uint32_t rest = around; rest != 0; rest &= rest - 1)
      {
        const int          i = __ffs(static_cast<int>(rest)) - 1;
        const std::int64_t beside = place + rule.offset[i][0];
        if (beside >= image.lower.axis[0] && beside < image.upper.axis[0])
        {
          const TLabel other = at[ofRow[i]];
          const bool   isOther = own != other;
          differs = differs || (isOther && i < rule.neighbors);
          touches = touches || (isOther && own != TLabel(0) && other != TLabel(0));
        }
      }
      out[row * width + x] = static_cast<TOut>(rule(own != TLabel(0), differs, touches) ? 1 : 0);
    }
    __syncwarp();
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
