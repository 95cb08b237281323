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

} // namespace chunkwise

#endif
