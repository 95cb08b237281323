/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseReconstructionImages_h
#define chunkwiseReconstructionImages_h

#include "chunkwiseGeometry.h"

#include <algorithm>
#include <random>
#include <vector>

// Images of the benchmarks of reconstructions.
namespace chunkwise
{

/** Noise, smoothed `passes` times over three voxels along each axis; values up to `highest`. */
template <typename T>
std::vector<T>
Noise(const Box & box, int passes, double highest)
{
  std::mt19937       random(7);
  std::vector<float> noise(static_cast<std::size_t>(box.NumberOfVoxels()));
  for (float & value : noise)
  {
    value = static_cast<float>(random() >> 8) / 16777216.0f;
  }
  const Coordinates  stride = DenseStrides(box.Extents());
  std::vector<float> next(noise.size());
  for (int pass = 0; pass < passes; ++pass)
  {
    for (int a = 0; a < 3; ++a)
    {
      if (box.Extent(a) == 1)
      {
        continue;
      }
      const auto step = static_cast<std::size_t>(stride[a]);
      next = noise;
      for (std::size_t i = step; i + step < noise.size(); ++i)
      {
        next[i] = (noise[i - step] + noise[i] + noise[i + step]) / 3;
      }
      noise.swap(next);
    }
  }
  const auto     range = std::minmax_element(noise.begin(), noise.end());
  const float    low = *range.first;
  const float    scale = static_cast<float>(highest) / std::max(*range.second - low, 1e-9f);
  std::vector<T> image;
  for (const float value : noise)
  {
    image.push_back(static_cast<T>((value - low) * scale));
  }
  return image;
}

/** A corridor that winds to the middle, of the highest value, and walls of 0 on both sides. */
template <typename T>
std::vector<T>
Spiral(const Box & box)
{
  const std::int64_t n = box.Extent(0);
  std::vector<T>     image(static_cast<std::size_t>(box.NumberOfVoxels()), 0);
  std::int64_t       x = 0;
  std::int64_t       y = 0;
  const auto   at = [&](std::int64_t i, std::int64_t j) -> T & { return image[static_cast<std::size_t>(j * n + i)]; };
  std::int64_t length = n - 1;
  const int    steps[4][2] = { { 1, 0 }, { 0, 1 }, { -1, 0 }, { 0, -1 } };
  at(0, 0) = static_cast<T>(200);
  for (int side = 0; length > 1; ++side)
  {
    for (std::int64_t i = 0; i < length; ++i)
    {
      x += steps[side % 4][0];
      y += steps[side % 4][1];
      at(x, y) = static_cast<T>(200);
    }
    // Three sides of one length, then each second side is two shorter.
    length -= side >= 2 && side % 2 == 0 ? 2 : 0;
  }
  return image;
}

} // namespace chunkwise

#endif
