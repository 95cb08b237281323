/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuConvolutionRows_h
#define chunkwiseCpuConvolutionRows_h

#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseStridedVoxels.h"

#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace chunkwise
{

/** Numbers of scratch for the factors of windows of `extent`, with which what follows them stays aligned. */
inline std::int64_t
NumbersOfFactors(const Coordinates & extent, const Coordinates & image)
{
  std::int64_t numbers = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    numbers *= std::min(extent[a], image[a]);
  }
  return (numbers + 63) / 64 * 64;
}
inline std::int64_t
NumbersOfFactors(const ImageConvolutionOperation & operation, const Coordinates & image)
{
  return operation.Renormalizes() ? NumbersOfFactors(operation.kernel->GetExtent(), image) : 0;
}

/** The factors of a renormalized convolution, for rows. */
template <typename T>
class ConvolutionFactorRows
{
public:
  /** For windows of `extent` with `below` taps below, of voxels in `box`. `makeTable` gives the factors by
   * ConvolutionFactors::State, of which T are kept under `key`, or made in `room` where there is no memory to keep
   * them; it is called only where some window is cut. */
  template <typename TKey, typename TMakeTable>
  ConvolutionFactorRows(const KernelCall & call, T * room, const Coordinates & extent, const Coordinates & below,
                        const Box & box, TKey && key, TMakeTable && makeTable)
    : m_Extent(extent)
    , m_Image(call.image.Extents())
    , m_Below(below)
  {
    bool cut = false;
    for (int a = 0; a < MaxDimension; ++a)
    {
      m_States[a] = std::min(extent[a], m_Image[a]);
      cut = cut || box.lower[a] < below[a] || box.upper[a] + extent[a] - 1 - below[a] > m_Image[a];
    }
    if (cut)
    {
      const auto fill = [&](void * memory) {
        const std::vector<double> exact = makeTable();
        std::copy(exact.begin(), exact.end(), static_cast<T *>(memory));
      };
      m_Factors = static_cast<const T *>(
        call.tables->GetMade(key() + " factors " + ToString(m_Image) + (sizeof(T) == 4 ? " f32" : " f64"),
                             static_cast<std::size_t>(NumbersOfFactors(extent, m_Image)) * sizeof(T),
                             fill));
      if (!m_Factors)
      {
        fill(room);
        m_Factors = room;
      }
    }
  }

  /** Without factors. */
  ConvolutionFactorRows() = default;

  /** The rows of the call's operation, or if `flipped` of that with the flipped kernel. */
  static ConvolutionFactorRows
  Of(const KernelCall & call, T * room, bool flipped, const Box & box)
  {
    const auto & operation = static_cast<const ImageConvolutionOperation &>(*call.operation);
    if (!operation.Renormalizes())
    {
      return {};
    }
    Coordinates below{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      below[a] = flipped ? operation.Above(a) : operation.Below(a);
    }
    return ConvolutionFactorRows(
      call,
      room,
      operation.kernel->GetExtent(),
      below,
      box,
      [&] { return operation.kernel->GetKey() + (flipped ? " flipped" : ""); },
      [&] {
        ImageConvolutionOperation cut = operation;
        cut.kernel = flipped ? operation.kernel->Flipped() : operation.kernel;
        return ConvolutionFactors(cut, call.image.Extents()).factors;
      });
  }

  /** Multiplies numbers of the line by the factors of their voxels. */
  void
  Scale(const Coordinates & at, int axis, std::int64_t n, T * row) const
  {
    if (!m_Factors)
    {
      return;
    }
    const T *    line = m_Factors;
    std::int64_t axisStride = 1;
    std::int64_t stride = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (a == axis)
      {
        axisStride = stride;
      }
      else
      {
        line += stride * ConvolutionFactors::State(at[a], m_Image[a], m_Extent[a], m_Below[a]);
      }
      stride *= m_States[a];
    }
    // Most rows lie where nothing is cut along this axis.
    const std::int64_t extent = m_Image[axis];
    const std::int64_t k = m_Extent[axis];
    const std::int64_t below = m_Below[axis];
    const bool         hasMiddle = extent > k;
    const std::int64_t middle = hasMiddle ? std::min(std::max<std::int64_t>(below - at[axis], 0), n) : n;
    const std::int64_t end = hasMiddle ? std::min(std::max(extent - k + below + 1 - at[axis], middle), n) : n;
    const auto         scale = [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i)
      {
        row[i] *= line[axisStride * ConvolutionFactors::State(at[axis] + i, extent, k, below)];
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

private:
  Coordinates m_Extent{};
  Coordinates m_Image{};
  Coordinates m_Below{};
  Coordinates m_States{};
  const T *   m_Factors{ nullptr }; ///< nullptr: 1
};

/** How rows enter and leave a convolution, direct or not: boundary and conversion, factor and rounding. */
template <typename T>
class ConvolutionRows
{
public:
  /** `beyond`: what lies beyond the edge in Constant mode. */
  ConvolutionRows(const KernelCall & call, const WindowBoundary & boundary, T beyond)
    : m_Call(call)
    , m_Mode(boundary.mode)
    , m_Beyond(boundary.mode == BoundaryMode::Constant ? beyond : T(0))
    , m_Finish(
        GetCpuLevel()
          .finishWeighted[static_cast<int>(std::is_same<T, float>::value ? Accumulator::Float32 : Accumulator::Float64)]
                         [static_cast<int>(call.output.kind)])
  {}
  explicit ConvolutionRows(const KernelCall & call)
    : ConvolutionRows(call, BoundaryOf(call), static_cast<T>(BoundaryOf(call).constant))
  {}

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
          std::fill(row, row + n, m_Beyond);
          return;
        }
      }
    }
    const std::int64_t from = std::min(std::max(begin, input.box.lower[axis]), begin + n);
    const std::int64_t to = std::max(std::min(begin + n, input.box.upper[axis]), from);
    at[axis] = input.box.lower[axis];
    DispatchPixelType(input.kind, [&](auto pixel) {
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
        row[i - begin] = IsAbsent(mapped) ? m_Beyond : value(mapped);
      }
    });
  }

  /** Rounds and stores numbers as they are. */
  void
  Finish(const Coordinates & at, int axis, std::int64_t n, const T * row) const
  {
    const std::size_t size = PixelSize(m_Call.output.kind);
    MakeStrided(size,
                static_cast<char *>(m_Call.output.data) + m_Call.output.Offset(at) * static_cast<std::int64_t>(size),
                m_Call.output.stride[axis],
                n,
                [&](char * to, std::int64_t first, std::int64_t count) { m_Finish(to, row + first, count); });
  }

  /** The mapped position, or a number below 0. */
  std::int64_t
  Map(int a, std::int64_t i) const
  {
    const Box & box = m_Call.inputs[0].box;
    return MapTap(i, box.lower[a], box.upper[a], m_Call.image.Extent(a), m_Mode);
  }

private:
  /** Only these modes have taps without a voxel; elsewhere a negative index is a neighbour that was loaded. */
  bool
  IsAbsent(std::int64_t mapped) const
  {
    return mapped < 0 && (m_Mode == BoundaryMode::Renormalized || m_Mode == BoundaryMode::Constant);
  }

  static const WindowBoundary &
  BoundaryOf(const KernelCall & call)
  {
    return static_cast<const WindowedOperation &>(*call.operation).boundary;
  }

  using FinishFunction = void (*)(void *, const void *, std::int64_t);

  const KernelCall &   m_Call;
  const BoundaryMode   m_Mode;
  const T              m_Beyond;
  const FinishFunction m_Finish;
};

/** The rows of a convolution, its factors with them. */
template <typename T>
class ScaledConvolutionRows
{
public:
  /** `room`: for NumbersOfFactors. */
  ScaledConvolutionRows(const KernelCall & call, T * room)
    : ScaledConvolutionRows(ConvolutionRows<T>(call), ConvolutionFactorRows<T>::Of(call, room, false, call.output.box))
  {}
  ScaledConvolutionRows(const ConvolutionRows<T> & rows, const ConvolutionFactorRows<T> & factors)
    : m_Rows(rows)
    , m_Factors(factors)
  {}

  void
  Load(const Coordinates & at, int axis, std::int64_t n, T * row) const
  {
    m_Rows.Load(at, axis, n, row);
  }
  /** Finishes n sums along `axis`, the first for the voxel `at`. The sums are overwritten. */
  void
  Store(const Coordinates & at, int axis, std::int64_t n, T * row) const
  {
    m_Factors.Scale(at, axis, n, row);
    m_Rows.Finish(at, axis, n, row);
  }

private:
  const ConvolutionRows<T>       m_Rows;
  const ConvolutionFactorRows<T> m_Factors;
};

} // namespace chunkwise

#endif
