/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuConvolutionRows_h
#define chunkwiseCpuConvolutionRows_h

#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseCpuLevel.h"

#include <algorithm>
#include <type_traits>
#include <vector>

namespace chunkwise
{

/** How rows enter and leave a convolution, direct or not: boundary and conversion, factor and rounding. */
template <typename T>
class ConvolutionRows
{
public:
  /** For outputs in `box`. */
  ConvolutionRows(const KernelCall & call, const Box & box)
    : m_Call(call)
    , m_Operation(static_cast<const ImageConvolutionOperation &>(*call.operation))
    , m_Finish(
        GetCpuLevel()
          .finishWeighted[static_cast<int>(std::is_same<T, float>::value ? Accumulator::Float32 : Accumulator::Float64)]
                         [static_cast<int>(call.output.kind)])
  {
    bool cut = false;
    for (int a = 0; a < MaxDimension; ++a)
    {
      cut = cut || box.lower[a] < m_Operation.Below(a) || box.upper[a] + m_Operation.Above(a) > call.image.upper[a];
    }
    if (cut && m_Operation.Renormalizes())
    {
      const ConvolutionFactors exact(m_Operation, call.image.Extents());
      m_States = exact.states;
      m_Factors.assign(exact.factors.begin(), exact.factors.end());
    }
  }

  /** Positions [at[axis], at[axis] + n) of the line along `axis` through `at`, which may lie beyond the edge. */
  void
  Load(Coordinates at, int axis, std::int64_t n, T * row) const
  {
    const BufferView & input = m_Call.inputs[0];
    const std::int64_t begin = at[axis];
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (a != axis)
      {
        at[a] = Map(a, at[a]);
        if (IsAbsent(at[a]))
        {
          std::fill(row, row + n, Beyond());
          return;
        }
      }
    }
    const std::int64_t from = std::min(std::max(begin, input.box.lower[axis]), begin + n);
    const std::int64_t to = std::max(std::min(begin + n, input.box.upper[axis]), from);
    at[axis] = input.box.lower[axis];
    DispatchPixelKind(input.kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      const Pixel * const line = static_cast<const Pixel *>(input.data) + input.Offset(at);
      const std::int64_t  stride = input.stride[axis];
      const auto value = [&](std::int64_t i) { return static_cast<T>(line[(i - input.box.lower[axis]) * stride]); };
      if (stride == 1)
      {
        const Pixel * const inside = line + (from - input.box.lower[axis]);
        for (std::int64_t i = 0; i < to - from; ++i)
        {
          row[from - begin + i] = static_cast<T>(inside[i]);
        }
      }
      else
      {
        for (std::int64_t i = from; i < to; ++i)
        {
          row[i - begin] = value(i);
        }
      }
      for (std::int64_t i = begin; i < begin + n; i = i + 1 == from ? to : i + 1)
      {
        if (i >= from && i < to)
        {
          i = to - 1;
          continue;
        }
        const std::int64_t mapped = Map(axis, i);
        row[i - begin] = IsAbsent(mapped) ? Beyond() : value(mapped);
      }
    });
  }

  /** Finishes n sums along `axis`, the first for the voxel `at`. The sums are overwritten. */
  void
  Store(const Coordinates & at, int axis, std::int64_t n, T * row) const
  {
    Scale(at, axis, n, row);
    Finish(at, axis, n, row);
  }

  /** Rounds and stores numbers as they are. */
  void
  Finish(const Coordinates & at, int axis, std::int64_t n, const T * row) const
  {
    const auto         pixel = static_cast<std::int64_t>(PixelSize(m_Call.output.kind));
    char * const       out = static_cast<char *>(m_Call.output.data) + m_Call.output.Offset(at) * pixel;
    const std::int64_t step = m_Call.output.stride[axis] * pixel;
    if (step == pixel)
    {
      m_Finish(out, row, n);
      return;
    }
    for (std::int64_t i = 0; i < n; ++i)
    {
      m_Finish(out + i * step, row + i, 1);
    }
  }

  /** Multiplies numbers of the line by the factors of their voxels. */
  void
  Scale(const Coordinates & at, int axis, std::int64_t n, T * row) const
  {
    if (m_Factors.empty())
    {
      return;
    }
    const Coordinates & k = m_Operation.kernel->GetExtent();
    const T *           line = m_Factors.data();
    std::int64_t        axisStride = 1;
    std::int64_t        stride = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (a == axis)
      {
        axisStride = stride;
      }
      else
      {
        line += stride * ConvolutionFactors::State(at[a], m_Call.image.Extent(a), k[a], m_Operation.Below(a));
      }
      stride *= m_States[a];
    }
    // Most rows lie where nothing is cut along this axis.
    const std::int64_t extent = m_Call.image.Extent(axis);
    const std::int64_t below = m_Operation.Below(axis);
    const bool         hasMiddle = extent > k[axis];
    const std::int64_t middle = hasMiddle ? std::min(std::max<std::int64_t>(below - at[axis], 0), n) : n;
    const std::int64_t end = hasMiddle ? std::min(std::max(extent - k[axis] + below + 1 - at[axis], middle), n) : n;
    const auto         scale = [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i)
      {
        row[i] *= line[axisStride * ConvolutionFactors::State(at[axis] + i, extent, k[axis], below)];
      }
    };
    scale(0, middle);
    const T factor = middle < end ? line[axisStride * below] : T(1);
    if (factor != T(1))
    {
      for (std::int64_t i = middle; i < end; ++i)
      {
        row[i] *= factor;
      }
    }
    scale(end, n);
  }

  /** Where the position is found, or below 0. */
  std::int64_t
  Map(int a, std::int64_t i) const
  {
    const Box & box = m_Call.inputs[0].box;
    return MapTap(i, box.lower[a], box.upper[a], m_Call.image.Extent(a), m_Operation.boundary.mode);
  }

private:
  /** Only these modes have taps without a voxel; elsewhere a negative index is a neighbour that was loaded. */
  bool
  IsAbsent(std::int64_t mapped) const
  {
    return mapped < 0 && (m_Operation.Renormalizes() || m_Operation.boundary.mode == BoundaryMode::Constant);
  }

  T
  Beyond() const
  {
    return m_Operation.Renormalizes() ? T(0) : static_cast<T>(m_Operation.boundary.constant);
  }

  using FinishFunction = void (*)(void *, const void *, std::int64_t);

  const KernelCall &                m_Call;
  const ImageConvolutionOperation & m_Operation;
  const FinishFunction              m_Finish;
  Coordinates                       m_States{};
  std::vector<T>                    m_Factors;
};

/** float for float, 8- and 16-bit integers; double for the others. */
inline bool
ConvolvesInDouble(PixelKind kind)
{
  return kind != PixelKind::Float32 && PixelSize(kind) > 2;
}

} // namespace chunkwise

#endif
