/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileByteCount.h"

#include <gtest/gtest.h>

#include <random>

using namespace chunkwise;
using namespace chunkwise::files;

namespace
{

constexpr std::int64_t Most = ByteCount::Uncountable;

TEST(ByteCount, IsTheProductWhereThatCanBeCounted)
{
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 20000; ++trial)
  {
    Coordinates  extent;
    long double  product = 1;
    const auto   draw = [&] { return static_cast<std::int64_t>(random() >> (random() % 60 + 1) & 0x7fffffff); };
    const auto   components = 1 + draw() % 5;
    std::int64_t exact = components;
    product *= static_cast<long double>(components);
    for (int a = 0; a < MaxDimension; ++a)
    {
      extent[a] = 1 + (draw() >> random() % 25);
      product *= static_cast<long double>(extent[a]);
      exact = static_cast<std::int64_t>(static_cast<std::uint64_t>(exact) * static_cast<std::uint64_t>(extent[a]));
    }
    const ByteCount count = ByteCount::OfImage(extent, components, 4);
    if (product * 4 < 0x1p62L)
    {
      ASSERT_TRUE(count.IsCountable());
      ASSERT_EQ(count.Get(), exact * 4) << ToString(extent);
    }
    else if (product * 4 > 0x1p64L)
    {
      ASSERT_FALSE(count.IsCountable()) << ToString(extent);
    }
  }
}

TEST(ByteCount, SaturatesAtItsEnds)
{
  EXPECT_EQ((ByteCount(Most - 1) * 1).Get(), Most - 1);
  EXPECT_FALSE((ByteCount(Most - 1) * 2).IsCountable());
  EXPECT_FALSE((ByteCount(std::int64_t{ 1 } << 32) * (std::int64_t{ 1 } << 32)).IsCountable());
  EXPECT_FALSE((ByteCount(std::int64_t{ 1 } << 32) * (std::int64_t{ 1 } << 31)).IsCountable());
  EXPECT_TRUE((ByteCount(std::int64_t{ 1 } << 32) * ((std::int64_t{ 1 } << 31) - 1)).IsCountable());
  EXPECT_FALSE((ByteCount(Most - 1) + ByteCount(1)).IsCountable());
  EXPECT_EQ((ByteCount(Most - 2) + ByteCount(1)).Get(), Most - 1);
  EXPECT_FALSE(ByteCount::FromUnsigned(~std::uint64_t{ 0 }).IsCountable());
  EXPECT_FALSE((ByteCount(Most) * 1).IsCountable());
}

TEST(ByteCount, NegativeNumbersOfAHeaderAreNotCounted)
{
  EXPECT_FALSE(ByteCount(-1).IsCountable());
  EXPECT_FALSE((ByteCount(3) * -1).IsCountable());
  // Two of them do not make a product that looks right.
  EXPECT_FALSE(ByteCount::OfValues({ { -4, -4, 1, 1, 1 } }, 1).IsCountable());
  EXPECT_FALSE(ByteCount::OfValues({ { 4, 4, 1, 1, 1 } }, -1).IsCountable());
}

TEST(ByteCount, AHeaderMayNotAskForMoreThanItsFileCanHold)
{
  const auto fits = [](ByteCount needed, std::uint64_t available, std::int64_t ratio) {
    try
    {
      RequireInFile("a/name.mha", needed, available, ratio);
      return true;
    }
    catch (const FileError & error)
    {
      EXPECT_EQ(std::string(error.what()).find("a/name.mha: "), 0u) << error.what();
      return false;
    }
  };
  EXPECT_TRUE(fits(ByteCount(100), 100, RawRatio));
  EXPECT_FALSE(fits(ByteCount(101), 100, RawRatio));
  EXPECT_TRUE(fits(ByteCount(103200), 100, DeflateRatio));
  EXPECT_FALSE(fits(ByteCount(103201), 100, DeflateRatio));
  // A file of that size does not make it possible either.
  EXPECT_FALSE(fits(ByteCount(-1), ~std::uint64_t{ 0 }, RawRatio));
  EXPECT_FALSE(fits(ByteCount(-1), ~std::uint64_t{ 0 }, DeflateRatio));
}

} // namespace
