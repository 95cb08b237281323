/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseOverlap.h"
#include "chunkwiseTestOperations.h"

#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

std::vector<Coordinates>
VoxelsOf(const Box & box)
{
  std::vector<Coordinates> voxels;
  ForEachIndex(box, [&](const Coordinates & index) { voxels.push_back(index); });
  return voxels;
}

/** Mostly slabs of one image along an axis, which is what chunks are. */
Box
RandomBox(std::mt19937 & random, int axis)
{
  Box box = Box::FromExtent({ { 3, 2, 1, 1, 1 } });
  if (random() % 4 == 0)
  {
    box.upper[static_cast<int>(random() % MaxDimension)] = 2;
  }
  box.lower[axis] = static_cast<std::int64_t>(random() % 6);
  box.upper[axis] = box.lower[axis] + 1 + static_cast<std::int64_t>(random() % 5);
  return box;
}

TEST(Overlap, IsWhatTheBuffersHaveInCommon)
{
  std::mt19937 random(3);
  int          found = 0;
  for (int trial = 0; trial < 5000; ++trial)
  {
    const int     axis = static_cast<int>(random() % MaxDimension);
    const Box     first = RandomBox(random, axis);
    const Box     second = RandomBox(random, axis);
    const auto    a = VoxelsOf(first);
    const auto    b = VoxelsOf(second);
    const Overlap overlap = FindOverlap(first, second, axis);
    // By its definition: the end of one sequence of voxels is the begin of the next.
    const auto common = static_cast<std::size_t>(std::max<std::int64_t>(Intersect(first, second).NumberOfVoxels(), 0));
    const bool isBlock = !Intersect(first, second).IsEmpty() && common <= a.size() && common <= b.size() &&
                         std::equal(b.begin(),
                                    b.begin() + static_cast<std::ptrdiff_t>(common),
                                    a.end() - static_cast<std::ptrdiff_t>(common));
    if (overlap.goesOn)
    {
      ++found;
      ASSERT_TRUE(isBlock) << ToString(first) << " " << ToString(second) << " " << axis;
      EXPECT_EQ(overlap.voxels, static_cast<std::int64_t>(common));
      EXPECT_EQ(overlap.from, static_cast<std::int64_t>(a.size() - common));
    }
    else if (isBlock)
    {
      // None is missed among boxes that are as wide and have no slower axis.
      bool isSlab = true;
      for (int d = 0; d < MaxDimension; ++d)
      {
        isSlab = isSlab && (d == axis || (first.lower[d] == second.lower[d] && first.upper[d] == second.upper[d] &&
                                          (d < axis || first.Extent(d) == 1)));
      }
      EXPECT_FALSE(isSlab) << ToString(first) << " " << ToString(second) << " " << axis;
    }
  }
  EXPECT_GT(found, 200);
}

TEST(Overlap, ABoxContinuesAnother)
{
  const Box first{ { { 0, 0, 0, 0, 0 } }, { { 4, 5, 3, 1, 1 } } };
  Box       second{ { { 0, 0, 3, 0, 0 } }, { { 4, 5, 9, 1, 1 } } };
  EXPECT_TRUE(Continues(first, second, 2));
  EXPECT_FALSE(Continues(first, second, 1));
  EXPECT_FALSE(Continues(second, first, 2));
  second.upper[0] = 3;
  EXPECT_FALSE(Continues(first, second, 2));
  // Layers across y are not one block where z has several.
  const Box beside{ { { 0, 5, 0, 0, 0 } }, { { 4, 9, 3, 1, 1 } } };
  EXPECT_FALSE(Continues(first, beside, 1));
}

} // namespace
