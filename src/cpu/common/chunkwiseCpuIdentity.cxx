/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseExecutor.h"
#include "chunkwiseHostKernelList.h"

#include <algorithm>
#include <cstring>

namespace chunkwise
{

namespace
{

template <typename TIn, typename TOut>
void
CopyRow(const TIn * in, std::int64_t inStride, TOut * out, std::int64_t outStride, std::int64_t n)
{
  for (std::int64_t i = 0; i < n; ++i)
  {
    out[i * outStride] = static_cast<TOut>(in[i * inStride]);
  }
}

/** Rows of the output, in parallel. */
void
RunIdentity(const KernelCall & call)
{
  const BufferView & in = call.inputs[0];
  const BufferView & out = call.output;
  const std::int64_t n = out.box.Extent(0);
  const std::int64_t rows = out.box.NumberOfVoxels() / std::max<std::int64_t>(n, 1);
  const std::int64_t rowsPerTask = std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(n, 1));
  call.executor->ParallelFor((rows + rowsPerTask - 1) / rowsPerTask, [&](std::int64_t task, unsigned int) {
    if (call.control && call.control->ShouldStop())
    {
      return;
    }
    const std::int64_t end = std::min((task + 1) * rowsPerTask, rows);
    for (std::int64_t row = task * rowsPerTask; row < end; ++row)
    {
      Coordinates  index = out.box.lower;
      std::int64_t rest = row;
      for (int a = 1; a < MaxDimension; ++a)
      {
        index[a] += rest % out.box.Extent(a);
        rest /= out.box.Extent(a);
      }
      const std::int64_t from = in.Offset(index);
      const std::int64_t to = out.Offset(index);
      if (in.kind == out.kind && in.stride[0] == 1 && out.stride[0] == 1)
      {
        const auto pixel = static_cast<std::int64_t>(PixelSize(in.kind));
        std::memcpy(static_cast<char *>(out.data) + to * pixel,
                    static_cast<const char *>(in.data) + from * pixel,
                    static_cast<std::size_t>(n * pixel));
        continue;
      }
      DispatchPixelType(in.kind, [&](auto inPixel) {
        DispatchPixelType(out.kind, [&](auto outPixel) {
          CopyRow(static_cast<const decltype(inPixel) *>(in.data) + from,
                  in.stride[0],
                  static_cast<decltype(outPixel) *>(out.data) + to,
                  out.stride[0],
                  n);
        });
      });
    }
    if (call.control)
    {
      call.control->AddFinishedVoxels((end - task * rowsPerTask) * n);
    }
  });
}

} // namespace

void
RegisterHostIdentity(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunIdentity;
  registry.Register("identity", { kernel });
}

} // namespace chunkwise
