/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuStridedRow_h
#define chunkwiseCpuStridedRow_h

#include "chunkwiseGeometry.h"

#include <type_traits>

namespace chunkwise
{

/** The voxels of a view from an index on, along x. Those of an image with components have others between them. */
template <typename TPixel>
class StridedRow
{
public:
  StridedRow(const BufferView & view, const Coordinates & index)
    : m_First(static_cast<std::remove_const_t<TPixel> *>(view.data) + view.Offset(index))
    , m_Stride(view.stride[0])
  {}
  TPixel &
  operator[](std::int64_t x) const
  {
    return m_First[x * m_Stride];
  }

private:
  TPixel *     m_First;
  std::int64_t m_Stride;
};

/** The axis along which work goes on first: the components of pixels are done one after the other while these are in
 * the caches. */
inline int
FastestAxis(const BufferView & view)
{
  constexpr int last = MaxDimension - 1;
  return view.box.Extent(last) > 1 && view.stride[last] > 0 && view.stride[last] < view.stride[0] ? last : 0;
}

/** Kernels that take components together take at most so many. */
constexpr std::int64_t MostComponentsTogether = 4;

/** How many components the pixels of both views have, if all of them lie side by side in both; else 1. Arithmetic on
 * every number of a row can then be done for all components at once: the row's length is that times its voxels, and
 * neighbors along x lie so many numbers apart. Results do not depend on it. */
inline std::int64_t
ComponentsTogether(const BufferView & input, const BufferView & output)
{
  constexpr int      last = MaxDimension - 1;
  const std::int64_t number = output.box.Extent(last);
  const auto         areTogether = [&](const BufferView & view) {
    return view.box.lower[last] == output.box.lower[last] && view.box.Extent(last) == number &&
           view.stride[last] == 1 && view.stride[0] == number;
  };
  return number > 1 && number <= MostComponentsTogether && areTogether(input) && areTogether(output) ? number : 1;
}

/** A view of such pixels in which components are numbers along x: for what is done to every number. */
inline BufferView
FoldComponents(BufferView view, std::int64_t components)
{
  if (components > 1)
  {
    constexpr int last = MaxDimension - 1;
    view.box.lower[0] *= components;
    view.box.upper[0] *= components;
    view.stride[0] = 1;
    view.box.upper[last] = view.box.lower[last] + 1;
  }
  return view;
}

/** Calls f(stride), for dense rows and those of three components as constants: each constant is a copy of the kernels.
 */
template <typename TFunctor>
inline void
WithStride(std::int64_t stride, TFunctor && f)
{
  switch (stride)
  {
    case 1:
      return f(std::integral_constant<std::int64_t, 1>{});
    case 3:
      return f(std::integral_constant<std::int64_t, 3>{});
    default:
      return f(stride);
  }
}

} // namespace chunkwise

#endif
