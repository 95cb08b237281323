/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuRowOutput_h
#define chunkwiseCpuRowOutput_h

#include "chunkwiseCpuLevel.h"
#include "chunkwiseOperation.h"
#include "chunkwiseStridedVoxels.h"

namespace chunkwise
{

/** The destination of a sweep's rows of results. Those of a large output go past the caches. */
class RowOutput
{
public:
  /** `components`: of pixels, where rows hold them side by side. */
  RowOutput(const BufferView & output, std::int64_t components)
    : m_Output(output)
    , m_Pixel(static_cast<std::int64_t>(PixelSize(output.kind)))
    , m_Stride(components > 1 ? 1 : output.stride[0])
    , m_Stream(m_Stride == 1 && output.box.NumberOfVoxels() * m_Pixel >= LeastStreamed ? GetCpuLevel().stream : nullptr)
  {}

  /** Calls make(to, first, count) for pieces of the row of `n` numbers that begins at voxel `index`. */
  template <typename TMake>
  void
  Make(const Coordinates & index, std::int64_t n, TMake && make) const
  {
    char * const row = static_cast<char *>(m_Output.data) + m_Output.Offset(index) * m_Pixel;
    if (m_Stream && n * m_Pixel >= LeastRow && n <= MostStaged)
    {
      alignas(LineBytes) char staged[MostStaged * 8];
      make(static_cast<char *>(staged), std::int64_t{ 0 }, n);
      m_Stream(row, staged, n * m_Pixel);
      return;
    }
    MakeStrided(static_cast<std::size_t>(m_Pixel), row, m_Stride, n, make);
  }

private:
  /** Shorter rows have too many incomplete lines. */
  static constexpr std::int64_t LeastRow = 4 * LineBytes;
  /** Numbers of a row: no sweep has longer ones. */
  static constexpr std::int64_t MostStaged = 1024;

  const BufferView &               m_Output;
  const std::int64_t               m_Pixel;
  const std::int64_t               m_Stride;
  decltype(CpuLevel::stream) const m_Stream;
};

} // namespace chunkwise

#endif
