/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSharedMemory.h"

#include <algorithm>
#include <cstdlib>

namespace chunkwise
{

namespace
{

/** Far more than views take that people make. */
constexpr int MostSteps = 1 << 20;

/** A part of a view: where its first voxel is, and what follows. */
struct Part
{
  std::intptr_t begin; ///< of the voxel at its lower corner
  std::intptr_t pixel;
  Coordinates   extent;
  Coordinates   bytes; ///< from one voxel to the next, along each axis

  std::intptr_t
  Reach(int a) const
  {
    return static_cast<std::intptr_t>((extent[a] - 1) * bytes[a]);
  }
  std::intptr_t
  First() const
  {
    std::intptr_t first = begin;
    for (int a = 0; a < MaxDimension; ++a)
    {
      first += std::min<std::intptr_t>(this->Reach(a), 0);
    }
    return first;
  }
  std::intptr_t
  End() const
  {
    std::intptr_t end = begin + pixel;
    for (int a = 0; a < MaxDimension; ++a)
    {
      end += std::max<std::intptr_t>(this->Reach(a), 0);
    }
    return end;
  }
  /** The axis, other than x, along which it reaches farthest; 0: it is one row. */
  int
  LongestAxis() const
  {
    int longest = 0;
    for (int a = 1; a < MaxDimension; ++a)
    {
      if (extent[a] > 1 && (longest == 0 || std::abs(this->Reach(a)) > std::abs(this->Reach(longest))))
      {
        longest = a;
      }
    }
    return longest;
  }
};

Part
PartOf(const BufferView & view)
{
  Part part{};
  part.begin = reinterpret_cast<std::intptr_t>(view.data);
  part.pixel = static_cast<std::intptr_t>(PixelSize(view.kind));
  part.extent = view.box.Extents();
  for (int a = 0; a < MaxDimension; ++a)
  {
    part.bytes[a] = view.stride[a] * static_cast<std::int64_t>(part.pixel);
    part.extent[a] = part.bytes[a] == 0 ? 1 : part.extent[a];
  }
  return part;
}

/** Halves the parts until they lie apart or are rows, whose bytes have no gaps. */
bool
Meet(const Part & a, const Part & b, int & steps)
{
  if (a.First() >= b.End() || b.First() >= a.End())
  {
    return false;
  }
  const int axisOfA = a.LongestAxis();
  const int axisOfB = b.LongestAxis();
  if ((axisOfA == 0 && axisOfB == 0) || ++steps > MostSteps)
  {
    return true;
  }
  if (axisOfB == 0 || (axisOfA != 0 && std::abs(a.Reach(axisOfA)) >= std::abs(b.Reach(axisOfB))))
  {
    Part               first = a;
    Part               second = a;
    const std::int64_t half = a.extent[axisOfA] / 2;
    first.extent[axisOfA] = half;
    second.extent[axisOfA] -= half;
    second.begin += static_cast<std::intptr_t>(half * a.bytes[axisOfA]);
    return Meet(first, b, steps) || Meet(second, b, steps);
  }
  return Meet(b, a, steps);
}

} // namespace

bool
ShareMemory(const BufferView & a, const BufferView & b)
{
  if (!a.data || !b.data || a.box.IsEmpty() || b.box.IsEmpty())
  {
    return false;
  }
  int steps = 0;
  return Meet(PartOf(a), PartOf(b), steps);
}

} // namespace chunkwise
