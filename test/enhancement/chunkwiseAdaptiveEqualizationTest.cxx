/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseAdaptiveEqualizationOperation.h"
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"

#include <map>

using namespace chunkwise;

namespace
{

class Equalizations : public KernelTest
{};

std::shared_ptr<AdaptiveEqualizationOperation>
RandomEqualization(std::mt19937 & random, double lower, double upper)
{
  const auto operation = std::make_shared<AdaptiveEqualizationOperation>();
  for (const int a : RandomAxes(random))
  {
    operation->tile[a] = 1 + static_cast<std::int64_t>(random() % 7);
  }
  operation->clip = random() % 4 == 0 ? 0 : 0.01 * static_cast<double>(1 + random() % 20);
  operation->bins = 2 + static_cast<int>(random() % (random() % 2 ? 20 : 300));
  operation->lower = lower;
  operation->upper = upper;
  return operation;
}

/** Clips bins as the definition says, in the plainest way. */
void
ClipBins(std::vector<std::int64_t> & counts, std::int64_t limit)
{
  const auto   bins = static_cast<std::int64_t>(counts.size());
  std::int64_t excess = 0;
  for (std::int64_t & count : counts)
  {
    excess += std::max<std::int64_t>(count - limit, 0);
    count = std::min(count, limit);
  }
  const std::int64_t share = excess / bins;
  for (std::int64_t & count : counts)
  {
    const std::int64_t before = count;
    count += count + share < limit ? share : 0;
    count = count + share < limit ? count : limit;
    excess -= count - before;
  }
  const auto countOpen = [&] {
    return std::count_if(counts.begin(), counts.end(), [&](std::int64_t count) { return count < limit; });
  };
  while (excess > 0 && countOpen() > 0)
  {
    for (std::int64_t first = 0; first < bins && excess > 0; ++first)
    {
      const std::int64_t step = std::max<std::int64_t>(1, countOpen() / excess);
      for (std::int64_t b = first; b < bins; b += step)
      {
        if (counts[static_cast<std::size_t>(b)] < limit)
        {
          ++counts[static_cast<std::size_t>(b)];
          --excess;
        }
      }
    }
  }
}

/** The definition, voxel by voxel. */
class EqualizationOracle
{
public:
  EqualizationOracle(const AdaptiveEqualizationOperation & operation, const BufferView & image)
    : m_Operation(operation)
    , m_Image(image)
  {}

  long double
  operator()(const Coordinates & at)
  {
    const int   bin = BinAt(at);
    long double level = 0;
    for (int corner = 0; corner < 1 << MaxDimension; ++corner)
    {
      Coordinates tile = at;
      long double weight = 1;
      for (int a = 0; a < MaxDimension; ++a)
      {
        const std::int64_t size = m_Operation.tile[a];
        const bool         isAfter = ((corner >> a) & 1) != 0;
        if (size == 0)
        {
          weight *= isAfter ? 0 : 1;
          continue;
        }
        const std::int64_t i = at[a] + size / 2;
        const long double  part = static_cast<long double>(i % size) / static_cast<long double>(size);
        weight *= isAfter ? part : 1 - part;
        const std::int64_t tiles = (m_Image.box.Extent(a) + size - 1) / size;
        tile[a] = std::min(std::max<std::int64_t>(i / size - (isAfter ? 0 : 1), 0), tiles - 1);
      }
      level += weight > 0 ? weight * MappingOf(tile)[static_cast<std::size_t>(bin)] : 0;
    }
    return m_Operation.lower + level / 16383 * (m_Operation.upper - m_Operation.lower);
  }

private:
  int
  BinAt(const Coordinates & at) const
  {
    const double value = (At<double>(m_Image, at) - m_Operation.lower) / (m_Operation.upper - m_Operation.lower);
    const double level = std::nearbyint(std::min(std::max(value, 0.0), 1.0) * 16383);
    return static_cast<int>(level) / (1 + 16384 / m_Operation.bins);
  }
  static std::int64_t
  Reflect(std::int64_t i, std::int64_t n)
  {
    while (n > 1 && (i < 0 || i >= n))
    {
      i = i < 0 ? -i : 2 * (n - 1) - i;
    }
    return n > 1 ? i : 0;
  }
  const std::vector<long double> &
  MappingOf(const Coordinates & tile)
  {
    std::vector<long double> & mapping = m_Mappings[ToString(tile)];
    if (mapping.empty())
    {
      Box box;
      for (int a = 0; a < MaxDimension; ++a)
      {
        const std::int64_t size = std::max<std::int64_t>(m_Operation.tile[a], 1);
        box.lower[a] = tile[a] * size;
        box.upper[a] = box.lower[a] + size;
      }
      std::vector<std::int64_t> counts(static_cast<std::size_t>(m_Operation.bins), 0);
      ForEachIndex(box, [&](Coordinates at) {
        for (int a = 0; a < MaxDimension; ++a)
        {
          at[a] = Reflect(at[a], m_Image.box.Extent(a));
        }
        ++counts[static_cast<std::size_t>(BinAt(at))];
      });
      const auto voxels = static_cast<double>(box.NumberOfVoxels());
      ClipBins(counts,
               m_Operation.clip > 0 ? static_cast<std::int64_t>(std::max(m_Operation.clip * voxels, 1.0))
                                    : box.NumberOfVoxels());
      double sum = 0;
      for (const std::int64_t count : counts)
      {
        sum += static_cast<double>(count);
        mapping.push_back(std::min(16383.0, std::floor(sum * (16383 / voxels))));
      }
    }
    return mapping;
  }

  const AdaptiveEqualizationOperation &           m_Operation;
  const BufferView                                m_Image;
  std::map<std::string, std::vector<long double>> m_Mappings;
};

TEST_P(Equalizations, AreWhatTheirDefinitionSays)
{
  std::mt19937 random(331);
  for (int trial = 0; trial < 30; ++trial)
  {
    const auto            operation = RandomEqualization(random, -40, trial % 2 ? 60 : 400);
    Trial<double, double> t(random, operation, RandomExtent(random, 14));
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    EqualizationOracle expected(*operation, t.image);
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      ASSERT_NEAR(t.Result(at), static_cast<double>(expected(at)), 1e-3)
        << operation->GetKey() << " at " << ToString(at);
    });
  }
}

TEST_P(Equalizations, OfChunksHaveTheBitsOfTheWhole)
{
  std::mt19937 random(332);
  const auto   make = [&](int) { return RandomEqualization(random, 3, 200); };
  CompareBits<float, float>(random, GetManager(), GetBackend(), 24, make);
  CompareBits<std::uint8_t, std::uint8_t>(random, GetManager(), GetBackend(), 16, make);
  CompareBits<std::int32_t, double>(random, GetManager(), GetBackend(), 16, make);
}

TEST_P(Equalizations, OfImagesWithoutRangeAreItsValue)
{
  std::mt19937        random(333);
  const auto          operation = RandomEqualization(random, 7, 7);
  Trial<float, float> t(random, operation, { { 9, 8, 7, 1, 1 } });
  t.pixels[3] = std::numeric_limits<float>::quiet_NaN();
  t.pixels[5] = std::numeric_limits<float>::infinity();
  t.request.backend = GetBackend();
  t.Prepare(t.request.image);
  GetManager().Execute(t.request);
  ForEachIndex(t.request.image, [&](const Coordinates & at) { ASSERT_EQ(t.Result(at), 7) << ToString(at); });
}

TEST(EqualizationRows, RefuseWhatMakesNoSense)
{
  FilterImage image;
  image.extent = { { 40, 40, 9, 1, 1 } };
  image.dimension = 3;
  image.inputKind = image.outputKind = PixelType::Float32;
  const auto message = [&](const std::vector<double> & range, std::vector<std::int64_t> tile) {
    FilterParameters parameters;
    parameters.Set("Range", range);
    parameters.Set("TileSize", tile);
    try
    {
      MakeFilterOperation("clahe", parameters, image);
    }
    catch (const ParameterError & error)
    {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message({ 0, 1 }, { 8 }), "");
  EXPECT_NE(message({ 2, 1 }, { 8 }).find("Range: from 2 to 1"), std::string::npos);
  EXPECT_NE(message({ -1e308, 1e308 }, { 8 }).find("Range"), std::string::npos);
  EXPECT_NE(message({ 0, 1 }, { 0 }).find("TileSize"), std::string::npos);
  EXPECT_NE(message({ 0, 1 }, { 1 << 12, 1 << 12, 1 << 12 }).find("TileSize"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Equalizations, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Equalizations, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Equalizations, testing::Values(Place::Cuda));

} // namespace
