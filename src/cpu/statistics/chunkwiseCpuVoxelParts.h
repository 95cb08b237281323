/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuVoxelParts_h
#define chunkwiseCpuVoxelParts_h

#include "chunkwiseExecutor.h"
#include "chunkwiseOperation.h"

#include <algorithm>

namespace chunkwise
{

/** Calls body(worker, forEachRun) for parts of some ten thousand voxels of `box`, in parallel; forEachRun(visit) calls
 * visit(first, n) for runs of voxels along x. Stops between parts where the run is to stop. Reports the voxels if
 * `reports`. */
template <typename TPixel, typename TBody>
void
ForEachPart(const KernelCall & call, const BufferView & view, const Box & box, bool reports, TBody && body)
{
  constexpr std::int64_t voxels = 65536;
  if (box.IsEmpty())
  {
    return;
  }
  // Rows are cut where they are long.
  const std::int64_t width = std::min(box.Extent(0), voxels);
  const std::int64_t perRow = (box.Extent(0) + width - 1) / width;
  const std::int64_t runs = box.NumberOfVoxels() / box.Extent(0) * perRow;
  const std::int64_t perTask = voxels / width;
  call.executor->ParallelFor((runs + perTask - 1) / perTask, [&](std::int64_t task, unsigned int worker) {
    if (call.control && call.control->ShouldStop())
    {
      return;
    }
    std::int64_t done = 0;
    body(worker, [&](auto && visit) {
      for (std::int64_t run = task * perTask; run < std::min((task + 1) * perTask, runs); ++run)
      {
        Coordinates at = box.lower;
        at[0] += run % perRow * width;
        std::int64_t rest = run / perRow;
        for (int a = 1; a < MaxDimension; ++a)
        {
          at[a] += rest % box.Extent(a);
          rest /= box.Extent(a);
        }
        const std::int64_t   n = std::min(width, box.upper[0] - at[0]);
        const std::int64_t   stride = view.stride[0];
        const TPixel * const row = static_cast<const TPixel *>(view.data) + view.Offset(at);
        if (stride == 1)
        {
          visit(row, n);
        }
        else
        {
          // One component of several.
          TPixel dense[1024];
          for (std::int64_t first = 0; first < n; first += 1024)
          {
            const std::int64_t count = std::min<std::int64_t>(1024, n - first);
            for (std::int64_t i = 0; i < count; ++i)
            {
              dense[i] = row[(first + i) * stride];
            }
            visit(static_cast<const TPixel *>(dense), count);
          }
        }
        done += n;
      }
    });
    if (reports && call.control)
    {
      call.control->AddFinishedVoxels(done);
    }
  });
}

} // namespace chunkwise

#endif
