/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseInterleaved_h
#define chunkwiseInterleaved_h

#include "chunkwiseGeometry.h"

// Pixels whose components lie side by side, as rows of so many more numbers: what is copied without taking them apart.
namespace chunkwise
{

/** The axis of components. */
constexpr int ComponentAxis = MaxDimension - 1;

/** How many components `box` of the view has side by side; 1 where they lie otherwise, or are not all in the box. */
inline std::int64_t
CountInterleaved(const BufferView & view, const Box & box)
{
  const std::int64_t components = view.box.Extent(ComponentAxis);
  const bool         areAll =
    box.lower[ComponentAxis] == view.box.lower[ComponentAxis] && box.Extent(ComponentAxis) == components;
  return areAll && components > 1 && view.stride[0] == components && view.stride[ComponentAxis] == 1 ? components : 1;
}

/** The box in numbers along x instead of pixels, as it is for one component. */
inline Box
SideBySide(const Box & box, std::int64_t components)
{
  Box numbers = box;
  if (components > 1)
  {
    numbers.lower[0] *= components;
    numbers.upper[0] *= components;
    numbers.lower[ComponentAxis] = 0;
    numbers.upper[ComponentAxis] = 1;
  }
  return numbers;
}

inline BufferView
SideBySide(const BufferView & view, std::int64_t components)
{
  BufferView numbers = view;
  if (components > 1)
  {
    numbers.box = SideBySide(view.box, components);
    numbers.stride[0] = 1;
  }
  return numbers;
}

/** The same pixels with components side by side, and with each component's plane apart. */
struct PixelViews
{
  BufferView together;
  BufferView apart;
};

/** `pixels` of them from where both begin; planes have `planePixels`. */
inline PixelViews
ViewPixels(void * together, void * apart, PixelType kind, std::int64_t components, std::int64_t pixels,
           std::int64_t planePixels)
{
  const Box box = Box::FromExtent({ { pixels, 1, 1, 1, components } });
  return { { together, kind, box, { { components, 0, 0, 0, 1 } } },
           { apart, kind, box, { { 1, 0, 0, 0, planePixels } } } };
}

} // namespace chunkwise

#endif
