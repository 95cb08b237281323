/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuGrid.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseRearrangeOperation.h"
#include "chunkwiseStridedVoxels.h"

#include <cstring>

namespace chunkwise
{

namespace
{

/** Copies rows of the output from where their voxels lie in the image. */
template <std::size_t VSize>
class RowArranger
{
public:
  RowArranger(const KernelCall & call, const RearrangeOperation & operation)
    : m_Input(call.inputs[0])
    , m_Output(call.output)
    , m_Operation(operation)
  {
    DispatchPixelType(m_Input.kind, [&](auto pixel) {
      pixel = operation.value.As<decltype(pixel)>();
      std::memcpy(m_Value, &pixel, sizeof(pixel));
    });
  }

  void
  RunRow(const Coordinates & at, std::int64_t n) const
  {
    constexpr auto     size = static_cast<std::int64_t>(VSize);
    char * const       to = static_cast<char *>(m_Output.data) + m_Output.Offset(at) * size;
    const std::int64_t step = m_Output.stride[0];
    const auto         fill = [&](std::int64_t i) { std::memcpy(to + i * step * size, m_Value, VSize); };
    std::int64_t       offset = 0;
    for (int a = 1; a < MaxDimension; ++a)
    {
      const int          s = m_Operation.source[a];
      const std::int64_t from = m_Operation.MapVoxel(a, at[a], m_Input.box);
      if (from < 0)
      {
        for (std::int64_t i = 0; i < n; ++i)
        {
          fill(i);
        }
        return;
      }
      offset += from * m_Input.stride[s];
    }
    const int          s = m_Operation.source[0];
    const std::int64_t stride = m_Input.stride[s];
    const auto         from = [&](std::int64_t place) {
      return static_cast<const char *>(m_Input.data) + (offset + place * stride) * size;
    };
    // The voxels of the row that the image has: those from `begin` to `end`.
    const bool         flips = m_Operation.flips[0];
    const std::int64_t first = m_Operation.offset[0] + (flips ? -at[0] : at[0]);
    const std::int64_t length = m_Operation.image[s];
    const std::int64_t begin = std::min(std::max<std::int64_t>(flips ? first - (length - 1) : -first, 0), n);
    const std::int64_t end = std::max(std::min(flips ? first + 1 : length - first, n), begin);
    const auto         copyBeyond = [&](std::int64_t i) {
      const std::int64_t place = m_Operation.MapVoxel(0, at[0] + i, m_Input.box);
      place < 0 ? fill(i) : static_cast<void>(std::memcpy(to + i * step * size, from(place), VSize));
    };
    for (std::int64_t i = 0; i < begin; ++i)
    {
      copyBeyond(i);
    }
    if (begin < end)
    {
      Copy(to + begin * step * size,
           step,
           from((flips ? first - begin : first + begin) - m_Input.box.lower[s]),
           flips ? -stride : stride,
           end - begin);
    }
    for (std::int64_t i = end; i < n; ++i)
    {
      copyBeyond(i);
    }
  }

private:
  static void
  Copy(char * to, std::int64_t toStep, const char * from, std::int64_t fromStep, std::int64_t n)
  {
    constexpr auto size = static_cast<std::int64_t>(VSize);
    if (toStep == 1 && fromStep == 1)
    {
      std::memcpy(to, from, static_cast<std::size_t>(n * size));
    }
    else if (toStep == 1 && fromStep == -1)
    {
      for (std::int64_t i = 0; i < n; ++i)
      {
        std::memcpy(to + i * size, from - i * size, VSize);
      }
    }
    else
    {
      CopyStrided<VSize>(to, toStep, from, fromStep, n);
    }
  }

  const BufferView &         m_Input;
  const BufferView &         m_Output;
  const RearrangeOperation & m_Operation;
  char                       m_Value[8];
};

void
RunRearrange(const KernelCall & call)
{
  const auto & operation = dynamic_cast<const RearrangeOperation &>(*call.operation);
  Coordinates  tile = { { 16384, 16, 4, 1, 1 } };
  // Rows across the image's share the cache lines of the rows beside them, along the axis that has the image's rows.
  for (int a = 1; a < MaxDimension && operation.source[0] != 0; ++a)
  {
    tile[0] = 64;
    tile[a] = operation.source[a] == 0 ? 64 : a == 1 ? 4 : 1;
  }
  const auto run = [&](auto size) {
    const RowArranger<decltype(size)::value> arranger(call, operation);
    ForEachTileOf(tile, call, [&](const Box & box, unsigned int) {
      ForEachRow(box, [&](const Coordinates & at) { arranger.RunRow(at, box.Extent(0)); });
    });
  };
  switch (PixelSize(call.output.kind))
  {
    case 1:
      return run(std::integral_constant<std::size_t, 1>{});
    case 2:
      return run(std::integral_constant<std::size_t, 2>{});
    case 4:
      return run(std::integral_constant<std::size_t, 4>{});
    default:
      return run(std::integral_constant<std::size_t, 8>{});
  }
}

} // namespace

void
RegisterHostRearrange(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunRearrange;
  registry.Register("rearrange", { kernel });
}

} // namespace chunkwise
