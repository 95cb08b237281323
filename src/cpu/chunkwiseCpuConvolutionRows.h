/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuConvolutionRows_h
#define chunkwiseCpuConvolutionRows_h

#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseCpuConvolutionCache.h"
#include "chunkwiseCpuLevel.h"

#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace chunkwise
{

/** The factors of a renormalized convolution, for rows. */
template <typename T>
class ConvolutionFactorRows
{
public:
  /** For voxels in `box`. `flipped`: those of the convolution with the flipped kernel. */
  ConvolutionFactorRows(const ImageConvolutionOperation & operation, bool flipped, const Coordinates & image,
                        const Box & box)
    : m_Extent(operation.kernel->GetExtent())
    , m_Image(image)
  {
    bool cut = false;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t above = flipped ? operation.Below(a) : operation.Above(a);
      m_Below[a] = flipped ? operation.Above(a) : operation.Below(a);
      cut = cut || box.lower[a] < m_Below[a] || box.upper[a] + above > image[a];
    }
    if (cut && operation.Renormalizes())
    {
      m_States = ConvolutionFactors::States(operation, image);
      const std::string key = operation.kernel->GetKey() + (flipped ? " flipped" : "") + " factors " + ToString(image) +
                              (sizeof(T) == 4 ? " f32" : " f64");
      m_Held = GetConvolutionCache().GetOrMake(key, [&] {
        ImageConvolutionOperation cutOperation = operation;
        cutOperation.kernel = flipped ? operation.kernel->Flipped() : operation.kernel;
        const ConvolutionFactors exact(cutOperation, image);
        auto                     factors = std::make_shared<std::vector<T>>(exact.factors.begin(), exact.factors.end());
        return ResourceCache::Entry{ factors, factors->size() * sizeof(T) };
      });
      m_Factors = static_cast<const std::vector<T> *>(m_Held.get())->data();
    }
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
  const Coordinates     m_Extent;
  const Coordinates     m_Image;
  Coordinates           m_Below{};
  Coordinates           m_States{};
  std::shared_ptr<void> m_Held;
  const T *             m_Factors{ nullptr }; ///< nullptr: 1
};

/** How rows enter and leave a convolution, direct or not: boundary and conversion, factor and rounding. */
template <typename T>
class ConvolutionRows
{
public:
  explicit ConvolutionRows(const KernelCall & call)
    : m_Call(call)
    , m_Operation(static_cast<const ImageConvolutionOperation &>(*call.operation))
    , m_Finish(
        GetCpuLevel()
          .finishWeighted[static_cast<int>(std::is_same<T, float>::value ? Accumulator::Float32 : Accumulator::Float64)]
                         [static_cast<int>(call.output.kind)])
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
};

/** The rows of a convolution, its factors with them. */
template <typename T>
class ScaledConvolutionRows
{
public:
  explicit ScaledConvolutionRows(const KernelCall & call)
    : m_Rows(call)
    , m_Factors(static_cast<const ImageConvolutionOperation &>(*call.operation), false, call.image.Extents(),
                call.output.box)
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

/** float for float, 8- and 16-bit integers; double for the others. */
inline bool
ConvolvesInDouble(PixelKind kind)
{
  return kind != PixelKind::Float32 && PixelSize(kind) > 2;
}

} // namespace chunkwise

#endif
