/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileTestBoxes_h
#define fileTestBoxes_h

#include "fileImage.h"

#include <algorithm>
#include <random>

namespace chunkwise::files::test
{

using Random = std::mt19937;

inline std::int64_t
Draw(Random & random, std::int64_t lower, std::int64_t upper)
{
  return std::uniform_int_distribution<std::int64_t>(lower, upper)(random);
}

/** Boxes that cover the image once. With `anyOrder` their order is random, else they ascend along the last axis. */
inline std::vector<Box>
CutInBoxes(const Coordinates & extent, bool anyOrder, Random & random)
{
  std::vector<Box> boxes{ Box::FromExtent(extent) };
  const auto       cuts = Draw(random, 0, 12);
  int              last = MaxDimension - 1;
  while (last > 0 && extent[last] == 1)
  {
    --last;
  }
  for (std::int64_t i = 0; i < cuts; ++i)
  {
    const auto which = static_cast<std::size_t>(Draw(random, 0, static_cast<std::int64_t>(boxes.size()) - 1));
    const int  axis = anyOrder ? static_cast<int>(Draw(random, 0, MaxDimension - 1)) : last;
    Box        box = boxes[which];
    if (box.Extent(axis) > 1)
    {
      const std::int64_t at = Draw(random, box.lower[axis] + 1, box.upper[axis] - 1);
      boxes[which].upper[axis] = at;
      box.lower[axis] = at;
      boxes.push_back(box);
    }
  }
  if (anyOrder)
  {
    std::shuffle(boxes.begin(), boxes.end(), random);
  }
  else
  {
    std::sort(boxes.begin(), boxes.end(), [&](const Box & a, const Box & b) { return a.lower[last] < b.lower[last]; });
  }
  return boxes;
}

/** Memory of a view that is larger than its box, by a random margin. */
struct PaddedBuffer
{
  PaddedBuffer(const Box & box, PixelType kind, Random & random)
  {
    Box outer = box;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const bool grows = Draw(random, 0, 3) == 0;
      outer.lower[a] -= grows ? Draw(random, 0, 2) : 0;
      outer.upper[a] += grows ? Draw(random, 0, 2) : 0;
    }
    memory.assign(static_cast<std::size_t>(outer.NumberOfVoxels()) * PixelSize(kind), static_cast<char>(0xa5));
    view = DenseView(memory.data(), kind, outer);
  }
  std::vector<char> memory;
  BufferView        view;
};

inline void
CopyInBoxes(ImageSource & source, ImageSink & sink, Random & random)
{
  const bool anyOrder = source.GetAccess().anyOrder && sink.GetAccess().anyOrder;
  for (const Box & box : CutInBoxes(source.GetExtent(), anyOrder, random))
  {
    PaddedBuffer buffer(box, source.GetKind(), random);
    source.Read(box, buffer.view);
    sink.Write(box, buffer.view);
  }
}

} // namespace chunkwise::files::test

#endif
