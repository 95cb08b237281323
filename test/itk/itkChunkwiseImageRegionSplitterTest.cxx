/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseImageRegionSplitter.h"
#include "itkImageRegion.h"

#include <gtest/gtest.h>

#include <set>

namespace ChunkwiseImageRegionSplitterTest
{

/** A plan for an image of 10 x 8 x 30: two columns along x, layers of 7 along z. */
chunkwise::Plan
MakePlan()
{
  chunkwise::Plan plan;
  plan.sweepAxis = 2;
  for (std::int64_t x = 0; x < 10; x += 5)
  {
    for (std::int64_t z = 0; z < 30; z += 7)
    {
      chunkwise::Chunk chunk;
      chunk.outputBox.lower = { { x, 0, z, 0, 0 } };
      chunk.outputBox.upper = { { x + 5, 8, std::min<std::int64_t>(z + 7, 30), 1, 1 } };
      chunk.inputBox = chunk.outputBox;
      plan.chunks.push_back(chunk);
    }
  }
  return plan;
}

TEST(ChunkwiseImageRegionSplitter, PiecesTileTheRegionAndCutNoLayer)
{
  const auto splitter = itk::ChunkwiseImageRegionSplitter::New();
  splitter->SetPlan(MakePlan(), { 100, -3, -20 });
  EXPECT_EQ(splitter->GetAxis(), 2u);
  const std::set<itk::IndexValueType> begins{ -20, -13, -6, 1, 8 };

  for (const auto & zRange :
       { std::pair<itk::IndexValueType, itk::IndexValueType>{ -20, 10 }, { -15, 9 }, { -12, -7 }, { 8, 10 } })
  {
    itk::ImageRegion<3> region;
    region.SetIndex({ { 102, -1, zRange.first } });
    region.SetSize({ { 4, 3, static_cast<itk::SizeValueType>(zRange.second - zRange.first) } });
    for (unsigned int requested = 1; requested < 9; ++requested)
    {
      const unsigned int pieces = splitter->GetNumberOfSplits(region, requested);
      EXPECT_GE(pieces, 1u);
      EXPECT_LE(pieces, requested);
      itk::IndexValueType next = zRange.first;
      for (unsigned int i = 0; i < pieces; ++i)
      {
        itk::ImageRegion<3> piece = region;
        EXPECT_EQ(splitter->GetSplit(i, pieces, piece), pieces);
        EXPECT_EQ(piece.GetIndex(0), 102);
        EXPECT_EQ(piece.GetSize(1), 3u);
        EXPECT_EQ(piece.GetIndex(2), next);
        EXPECT_GT(piece.GetSize(2), 0u);
        EXPECT_TRUE(i == 0 || begins.count(piece.GetIndex(2))) << piece.GetIndex(2);
        next = piece.GetIndex(2) + static_cast<itk::IndexValueType>(piece.GetSize(2));
      }
      EXPECT_EQ(next, zRange.second);
    }
  }

  itk::ImageRegion<3> whole;
  whole.SetIndex({ { 100, -3, -20 } });
  whole.SetSize({ { 10, 8, 30 } });
  EXPECT_EQ(splitter->GetNumberOfSplits(whole, 100), 5u);
}

TEST(ChunkwiseImageRegionSplitter, WithoutAPlanARegionIsOnePiece)
{
  const auto          splitter = itk::ChunkwiseImageRegionSplitter::New();
  itk::ImageRegion<2> region({ { 3, 4 } }, { { 50, 60 } });
  EXPECT_EQ(splitter->GetNumberOfSplits(region, 7), 1u);
  itk::ImageRegion<2> piece = region;
  EXPECT_EQ(splitter->GetSplit(0, 1, piece), 1u);
  EXPECT_EQ(piece, region);
}

} // namespace ChunkwiseImageRegionSplitterTest
