/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseGeometry.h"

#include <algorithm>

namespace chunkwise
{

const char *
PixelTypeName(PixelType kind)
{
  static const char * const names[NumberOfPixelTypes] = { "uint8", "int8",   "uint16", "int16",   "uint32",
                                                          "int32", "uint64", "int64",  "float32", "float64" };
  return names[static_cast<int>(kind)];
}

const char *
BoundaryModeName(BoundaryMode mode)
{
  static const char * const names[] = {
    "renormalized", "zero-flux", "constant", "mirror", "periodic", "mirror-center"
  };
  return names[static_cast<int>(mode)];
}

Box
Intersect(const Box & a, const Box & b)
{
  Box c{};
  for (int i = 0; i < MaxDimension; ++i)
  {
    c.lower[i] = std::max(a.lower[i], b.lower[i]);
    c.upper[i] = std::min(a.upper[i], b.upper[i]);
  }
  return c;
}

std::string
ToString(const Coordinates & extent)
{
  int last = MaxDimension - 1;
  while (last > 0 && extent[last] == 1)
  {
    --last;
  }
  std::string s = std::to_string(extent[0]);
  for (int a = 1; a <= last; ++a)
  {
    s += " x " + std::to_string(extent[a]);
  }
  return s;
}

std::string
ToString(const Box & box)
{
  // Axes that the image lacks have the one index 0.
  int last = MaxDimension - 1;
  while (last > 0 && box.lower[last] == 0 && box.upper[last] == 1)
  {
    --last;
  }
  std::string s;
  for (int a = 0; a <= last; ++a)
  {
    s += std::string(a ? " x " : "") + "[" + std::to_string(box.lower[a]) + ", " + std::to_string(box.upper[a]) + ")";
  }
  return s;
}

Box
AlignToTiles(const Box & box, const Coordinates & tile, const Box & image)
{
  Box aligned = box;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (tile[a] > 1)
    {
      const std::int64_t origin = image.lower[a];
      aligned.lower[a] = origin + (box.lower[a] - origin) / tile[a] * tile[a];
      aligned.upper[a] = std::min(origin + (box.upper[a] - origin + tile[a] - 1) / tile[a] * tile[a], image.upper[a]);
    }
  }
  return aligned;
}

Box
PadAndCrop(const Box & box, const Halo & halo, const Box & image)
{
  Box padded{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    padded.lower[a] = std::max(box.lower[a] - std::min(halo.lower[a], WholeAxis), image.lower[a]);
    padded.upper[a] = std::min(box.upper[a] + std::min(halo.upper[a], WholeAxis), image.upper[a]);
  }
  return padded;
}

Coordinates
DenseStrides(const Coordinates & extent)
{
  Coordinates  stride{};
  std::int64_t next = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    stride[a] = next;
    next *= extent[a];
  }
  return stride;
}

BufferView
DenseView(void * data, PixelType kind, const Box & box)
{
  return { data, kind, box, DenseStrides(box.Extents()) };
}

} // namespace chunkwise
