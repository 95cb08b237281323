/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseHostCopy.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

TEST(HostCopy, StretchesAreTheBytesThatAreGathered)
{
  std::mt19937 random(3);
  int          several = 0;
  for (int trial = 0; trial < 2000; ++trial)
  {
    Coordinates extent = Coordinates::Filled(1);
    for (int a = 0; a < 4; ++a)
    {
      extent[a] = 1 + static_cast<std::int64_t>(random() % 6);
    }
    const Box                 image = Box::FromExtent(extent);
    std::vector<std::uint8_t> voxels(2 * static_cast<std::size_t>(image.NumberOfVoxels()));
    for (std::uint8_t & byte : voxels)
    {
      byte = static_cast<std::uint8_t>(random());
    }
    const BufferView view = DenseView(voxels.data(), PixelType::UInt16, image);
    Box              box = image;
    for (int a = 0; a < 4; ++a)
    {
      const auto n = static_cast<std::uint32_t>(extent[a]);
      box.lower[a] = random() % 3 == 0 ? static_cast<std::int64_t>(random() % n) : 0;
      box.upper[a] = random() % 3 == 0 ? box.lower[a] + 1 : extent[a];
    }
    // Now and then beyond the image, into which it then wraps around.
    box.upper[trial % 4] += trial % 10 == 0 ? 1 : 0;
    const DenseSequence sequence(view, box, image);
    const std::size_t   bytes = sequence.GetNumberOfBytes();
    const std::size_t   begin = random() % bytes;
    const std::size_t   end = begin + 1 + random() % (bytes - begin);
    const std::size_t   least = random() % 40;

    std::vector<std::uint8_t> expected(end - begin);
    sequence.Gather(begin, end, expected.data());
    const auto stretches = sequence.FindStretches(begin, end, least);
    if (stretches.empty())
    {
      EXPECT_EQ(sequence.FindContiguous(begin, end), nullptr);
      continue;
    }
    std::vector<std::uint8_t> found;
    for (std::size_t i = 0; i < stretches.size(); ++i)
    {
      EXPECT_EQ(stretches[i].at, found.size());
      EXPECT_TRUE(stretches[i].bytes >= least || i == 0 || i + 1 == stretches.size());
      const auto * const from = reinterpret_cast<const std::uint8_t *>(stretches[i].address);
      ASSERT_TRUE(from >= voxels.data() && from + stretches[i].bytes <= voxels.data() + voxels.size());
      found.insert(found.end(), from, from + stretches[i].bytes);
    }
    EXPECT_EQ(found, expected);
    several += stretches.size() > 2 ? 1 : 0;
  }
  EXPECT_GT(several, 50);
}

} // namespace
