/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseAxes_h
#define chunkwiseAxes_h

#include "chunkwiseGeometry.h"

#include <utility>

namespace chunkwise
{

/** The slowest axis along which there is more than one voxel, else 0. */
inline int
GetLastAxis(const Coordinates & extent)
{
  int axis = MaxDimension - 1;
  while (axis > 0 && extent[axis] <= 1)
  {
    --axis;
  }
  return axis;
}

inline Box
SwapAxes(Box box, int a, int b)
{
  std::swap(box.lower[a], box.lower[b]);
  std::swap(box.upper[a], box.upper[b]);
  return box;
}

inline BufferView
SwapAxes(BufferView view, int a, int b)
{
  view.box = SwapAxes(view.box, a, b);
  std::swap(view.stride[a], view.stride[b]);
  return view;
}

} // namespace chunkwise

#endif
