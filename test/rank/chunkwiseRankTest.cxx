/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBoxTrial.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseDefinitionTrial.h"
#include "chunkwiseRankOperation.h"

#include <cmath>
#include <functional>

#if defined(__unix__)
#  include <sys/mman.h>
#  include <unistd.h>
#endif

using namespace chunkwise;

namespace
{

class Rank : public KernelTest
{};

std::shared_ptr<RankOperation>
RandomRank(std::mt19937 & random, int largestRadius)
{
  const auto   operation = RandomBox<RankOperation>(random, largestRadius, true);
  const double fractions[] = { 0.5, 0.5, 0.5, 0.0, 1.0, static_cast<double>(random() % 1001) / 1000 };
  operation->fraction = fractions[random() % 6];
  return operation;
}

template <typename T>
T
PercentileOf(std::vector<T> values, double fraction)
{
  values.erase(std::remove_if(values.begin(), values.end(), [](T value) { return value != value; }), values.end());
  if (values.empty())
  {
    return std::numeric_limits<T>::quiet_NaN();
  }
  std::sort(values.begin(), values.end(), IsLess<T>);
  return values[static_cast<std::size_t>(std::floor(fraction * static_cast<double>(values.size() - 1)))];
}

/** In every second image special values, or many equal voxels and both ends of the range. */
template <typename T>
void
FillSome(std::mt19937 & random, int trial, std::vector<T> & pixels)
{
  if (trial % 2 == 0)
  {
    return;
  }
  if constexpr (std::is_floating_point<T>::value)
  {
    AddSpecials(random, pixels);
  }
  else
  {
    for (T & pixel : pixels)
    {
      pixel = random() % 3   ? static_cast<T>(pixel % 3)
              : random() % 2 ? std::numeric_limits<T>::max()
                             : std::numeric_limits<T>::lowest();
    }
  }
}

TEST_P(Rank, IsWhatItsDefinitionSays)
{
  std::mt19937 random(81);
  ForEachPairOfKinds([&](auto in, auto out) {
    using In = decltype(in);
    using Out = decltype(out);
    CompareWithDefinition<In, Out>(
      random,
      GetManager(),
      GetBackend(),
      12,
      [&](int trial) { return RandomRank(random, trial % 4 == 0 ? 7 : 3); },
      [&](int trial, std::vector<In> & pixels) { FillSome(random, trial, pixels); },
      [](const auto & t, const RankOperation & operation, const Coordinates & index) {
        return IsSame(t.Result(index),
                      static_cast<Out>(PercentileOf(WindowValues<In>(t.image, index, operation), operation.fraction)));
      });
  });
}

TEST_P(Rank, ChunksHaveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(82);
  const auto   compare = [&](auto in, auto out, int trials) {
    CompareBits<decltype(in), decltype(out)>(random, GetManager(), GetBackend(), trials, [&](int trial) {
      return RandomRank(random, trial % 5 == 0 ? 6 : 3);
    });
  };
  compare(float{}, float{}, 40);
  compare(double{}, double{}, 15);
  compare(std::uint8_t{}, std::uint8_t{}, 40);
  compare(std::uint16_t{}, std::uint16_t{}, 40);
  compare(std::int16_t{}, float{}, 20);
  compare(std::uint32_t{}, std::uint32_t{}, 15);
  compare(std::int64_t{}, std::int64_t{}, 15);
}

/** Every radius along every axis, in an image that is larger than the window. */
TEST_P(Rank, WindowsOfEveryShape)
{
  std::mt19937 random(83);
  for (std::int64_t x = 0; x < 5; ++x)
  {
    for (std::int64_t y = 0; y < 5; ++y)
    {
      for (std::int64_t z = 0; z < 5; ++z)
      {
        const auto operation = std::make_shared<RankOperation>();
        operation->radius = { { x, y, z, 0, 0 } };
        operation->boundary.mode = AllModes[random() % 6];
        Trial<std::uint16_t, std::uint16_t> t(random, operation, { { 37, 11, 12, 1, 1 } });
        t.request.backend = GetBackend();
        t.Prepare(t.request.image);
        GetManager().Execute(t.request);
        for (int sample = 0; sample < 200; ++sample)
        {
          const Coordinates index{ { static_cast<std::int64_t>(random() % 37),
                                     static_cast<std::int64_t>(random() % 11),
                                     static_cast<std::int64_t>(random() % 12),
                                     0,
                                     0 } };
          ASSERT_EQ(t.Result(index), PercentileOf(WindowValues<std::uint16_t>(t.image, index, *operation), 0.5))
            << operation->GetKey() << " at " << ToString(index);
        }
      }
    }
  }
}

/** Images of one value, of two, in ascending order, of noise. */
template <typename T>
void
MakePattern(std::mt19937 & random, std::vector<T> & pixels, int pattern)
{
  const auto n = static_cast<double>(pixels.size());
  const T    some[] = { static_cast<T>(3), static_cast<T>(pattern == 0 ? 3 : 100) };
  for (std::size_t i = 0; i < pixels.size(); ++i)
  {
    pixels[i] = pattern <= 1   ? some[random() % 2]
                : pattern == 2 ? static_cast<T>(static_cast<double>(i) / n * 120)
                               : pixels[i];
  }
  if constexpr (std::is_floating_point<T>::value)
  {
    if (pattern == 4)
    {
      AddSpecials(random, pixels);
    }
    // Windows of nothing but NaN.
    for (std::size_t i = 0; pattern == 5 && i < pixels.size() / 2; ++i)
    {
      pixels[i] = std::numeric_limits<T>::quiet_NaN();
    }
  }
}

/** Windows of images whose extents are chosen for them, and how often they are percentiles instead of medians. */
struct WindowsToTry
{
  std::vector<Coordinates>                                                      radii;
  std::vector<Coordinates>                                                      extents;
  std::function<std::size_t(const Coordinates & radius, std::mt19937 & random)> choose;
  int                                                                           percentilesOfThree;
};

template <typename T>
void
CompareWindows(std::mt19937 & random, Manager & manager, BackendChoice backend, const WindowsToTry & windows)
{
  for (const Coordinates & radius : windows.radii)
  {
    const int  pattern = static_cast<int>(random() % 6);
    const auto operation = std::make_shared<RankOperation>();
    operation->radius = radius;
    const bool isMedian = static_cast<int>(random() % 3) >= windows.percentilesOfThree;
    operation->fraction = isMedian ? 0.5 : static_cast<double>(random() % 101) / 100;
    operation->boundary.mode = random() % 2 ? BoundaryMode::Renormalized : AllModes[random() % 6];
    operation->boundary.constant = 7;
    Trial<T, T> t(random, operation, windows.extents[windows.choose(radius, random)]);
    MakePattern(random, t.pixels, pattern);
    t.request.backend = backend;
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    manager.Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    const Box & region = t.request.region;
    for (int sample = 0; sample < 60; ++sample)
    {
      // Also the corners of the region.
      Coordinates index{};
      for (int a = 0; a < MaxDimension; ++a)
      {
        const auto extent = static_cast<std::uint32_t>(region.Extent(a));
        index[a] = region.lower[a] +
                   static_cast<std::int64_t>(sample < 8 ? (sample >> a % 3 & 1) * (extent - 1) : random() % extent);
      }
      ASSERT_TRUE(
        IsSame(t.Result(index), PercentileOf(WindowValues<T>(t.image, index, *operation), operation->fraction)))
        << PixelTypeName(PixelTypeOf<T>()) << " pattern " << pattern << " " << operation->GetKey() << " "
        << ToString(t.request.image) << " region " << ToString(region) << " at " << ToString(index);
    }
  }
}

void
CompareWindowsOfAllKinds(std::mt19937 & random, Manager & manager, BackendChoice backend, const WindowsToTry & windows)
{
  for (int trial = 0; trial < 3; ++trial)
  {
    for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
    {
      DispatchPixelType(static_cast<PixelType>(kind),
                        [&](auto pixel) { CompareWindows<decltype(pixel)>(random, manager, backend, windows); });
    }
  }
}

TEST_P(Rank, LargeWindows)
{
  std::mt19937 random(84);
  WindowsToTry windows;
  windows.radii = {
    { { 4, 5, 6, 0, 0 } },   { { 3, 9, 4, 0, 0 } },  { { 12, 0, 7, 0, 0 } },
    { { 20, 20, 0, 0, 0 } }, { { 0, 0, 30, 0, 0 } }, { { 4, 0, 4, 4, 0 } },
    { { 60, 2, 1, 0, 0 } },  { { 56, 3, 4, 0, 0 } }, { { 57, 0, 0, 0, 0 } },
  };
  windows.extents = {
    { { 40, 22, 23, 1, 1 } }, { { 33, 35, 6, 2, 1 } }, { { 130, 17, 5, 1, 1 } }, { { 20, 3, 34, 9, 2 } }
  };
  windows.choose = [](const Coordinates & radius, std::mt19937 & some) -> std::size_t {
    return radius[0] >= 56 ? 2 : radius[3] > 0 ? 3 : some() % 3;
  };
  windows.percentilesOfThree = 1;
  CompareWindowsOfAllKinds(random, GetManager(), GetBackend(), windows);
}

/** Along one axis, of all lengths, in lines that are shorter and longer than a tile. */
TEST_P(Rank, WindowsAlongOneAxis)
{
  std::mt19937 random(88);
  WindowsToTry windows;
  windows.radii = {
    { { 1, 0, 0, 0, 0 } },  { { 2, 0, 0, 0, 0 } },  { { 0, 1, 0, 0, 0 } },   { { 0, 0, 2, 0, 0 } },
    { { 4, 0, 0, 0, 0 } },  { { 0, 7, 0, 0, 0 } },  { { 0, 0, 0, 12, 0 } },  { { 25, 0, 0, 0, 0 } },
    { { 0, 60, 0, 0, 0 } }, { { 90, 0, 0, 0, 0 } }, { { 0, 0, 200, 0, 0 } }, { { 300, 0, 0, 0, 0 } },
  };
  windows.extents = {
    { { 1300, 2, 1, 1, 1 } }, { { 19, 40, 5, 30, 1 } }, { { 3, 700, 2, 1, 1 } }, { { 18, 2, 900, 1, 1 } }
  };
  windows.choose = [](const Coordinates & radius, std::mt19937 &) -> std::size_t {
    return radius[0] > 0 ? 0 : radius[3] > 0 ? 1 : radius[1] > 0 ? 2 : 3;
  };
  windows.percentilesOfThree = 1;
  CompareWindowsOfAllKinds(random, GetManager(), GetBackend(), windows);
}

/** Cubes and squares, for which backends have separate ways to find medians, in images that hardly have one. */
TEST_P(Rank, MediansOfCubesAndSquares)
{
  std::mt19937 random(87);
  WindowsToTry windows;
  windows.radii = {
    { { 1, 1, 1, 0, 0 } }, { { 2, 2, 2, 0, 0 } }, { { 1, 1, 0, 0, 0 } }, { { 2, 2, 0, 0, 0 } }, { { 3, 3, 0, 0, 0 } },
    { { 2, 0, 2, 0, 0 } }, { { 0, 3, 3, 0, 0 } }, { { 0, 2, 0, 2, 0 } }, { { 3, 0, 0, 3, 0 } }, { { 2, 2, 0, 2, 0 } },
  };
  windows.extents = { { { 37, 11, 12, 1, 1 } },
                      { { 2, 7, 7, 2, 1 } },
                      { { 7, 6, 5, 8, 1 } },
                      { { 70, 9, 1, 1, 1 } },
                      { { 1, 9, 8, 7, 2 } } };
  windows.choose = [&windows](const Coordinates &, std::mt19937 & some) { return some() % windows.extents.size(); };
  windows.percentilesOfThree = 0;
  CompareWindowsOfAllKinds(random, GetManager(), GetBackend(), windows);
}

/** So many lines that a device cuts each into few segments, along which it keeps what windows share. */
TEST_P(Rank, MediansOfCubesAlongLongLines)
{
  std::mt19937 random(88);
  const auto   compare = [&](auto pixel) {
    const auto operation = std::make_shared<RankOperation>();
    operation->radius = { { 2, 2, 2, 0, 0 } };
    Manager                                 host({});
    Trial<decltype(pixel), decltype(pixel)> t(random, operation, { { 140, 130, 40, 1, 1 } });
    t.request.backend = BackendChoice::CPU;
    t.Prepare(t.request.image);
    host.Execute(t.request);
    const auto whole = t.output;
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    ASSERT_EQ(std::memcmp(whole.data(), t.output.data(), whole.size() * sizeof(pixel)), 0);
  };
  compare(std::uint8_t{});
  compare(std::uint16_t{});
  compare(float{});
}

/** Chunks of images that take several tiles along each axis. */
TEST_P(Rank, ChunksOfLargeWindowsHaveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(85);
  Manager      host({});
  const auto   compare = [&](auto pixel) {
    using Pixel = decltype(pixel);
    for (int trial = 0; trial < 3; ++trial)
    {
      const auto operation = RandomRank(random, 1);
      operation->radius = { { static_cast<std::int64_t>(4 + random() % 8),
                              static_cast<std::int64_t>(random() % 8),
                              static_cast<std::int64_t>(random() % 8),
                              0,
                              0 } };
      Trial<Pixel, Pixel> t(random, operation, { { 70, 41, 35, 1, 1 } });
      if (trial == 1)
      {
        MakePattern(random, t.pixels, 4);
      }
      t.request.backend = BackendChoice::CPU;
      t.Prepare(t.request.image);
      host.Execute(t.request);
      const std::vector<Pixel> whole = t.output;
      t.request.backend = GetBackend();
      t.request.budgets.device = 4000000 + random() % 4000000;
      t.Prepare(t.request.image);
      GetManager().Execute(t.request);
      ASSERT_EQ(std::memcmp(whole.data(), t.output.data(), whole.size() * sizeof(Pixel)), 0) << operation->GetKey();
    }
  };
  compare(std::uint8_t{});
  compare(std::uint16_t{});
  compare(std::int16_t{});
  compare(float{});
  compare(std::uint32_t{});
  compare(double{});
}

/** Every voxel of the median of an image whose rows take several tiles, or are as short as a window or shorter. */
template <typename T>
void
CompareSmallMedians(std::mt19937 & random, Manager & host, const Coordinates & radius, BoundaryMode mode)
{
  const bool isLong = random() % 2 == 0;
  const auto operation = std::make_shared<RankOperation>();
  operation->radius = radius;
  operation->boundary.mode = mode;
  operation->boundary.constant = static_cast<std::int64_t>(random() % 120);
  const auto  width = static_cast<std::int64_t>(isLong ? 384 / sizeof(T) + random() % 9 : 1 + random() % 9);
  Trial<T, T> t(
    random,
    operation,
    { { width, 1 + static_cast<std::int64_t>(random() % 6), 1 + static_cast<std::int64_t>(random() % 6), 1, 1 } });
  const int pattern = static_cast<int>(random() % 4);
  MakePattern(random, t.pixels, pattern == 3 && isLong ? 3 : pattern);
  // One NaN, which some of the tiles have.
  if (std::is_floating_point<T>::value && random() % 4 == 0)
  {
    t.pixels[random() % t.pixels.size()] = std::numeric_limits<T>::quiet_NaN();
  }
  t.request.backend = BackendChoice::CPU;
  t.Prepare(t.request.image);
  host.Execute(t.request);
  ForEachIndex(t.request.image, [&](const Coordinates & index) {
    ASSERT_TRUE(IsSame(t.Result(index), PercentileOf(WindowValues<T>(t.image, index, *operation), 0.5)))
      << GetCpuLevel().name << " " << PixelTypeName(PixelTypeOf<T>()) << " pattern " << pattern << " "
      << operation->GetKey() << " " << ToString(t.request.image) << " at " << ToString(index);
  });
}

TEST(RankMedians, OfSmallWindowsAreWhatTheirDefinitionSaysAtEveryLevel)
{
  const std::string before = GetCpuLevel().name;
  std::mt19937      random(86);
  Manager           host({});
  for (const char * const level : { "baseline", "avx2", "avx512" })
  {
    if (!SetCpuLevel(level))
    {
      continue;
    }
    for (int radii = 0; radii < 18; ++radii)
    {
      const Coordinates radius{ { 1 + radii % 2, radii / 2 % 3, radii / 6, 0, 0 } };
      for (const BoundaryMode mode : { BoundaryMode::Renormalized, AllModes[random() % 6] })
      {
        CompareSmallMedians<std::uint8_t>(random, host, radius, mode);
        CompareSmallMedians<std::int16_t>(random, host, radius, mode);
        CompareSmallMedians<float>(random, host, radius, mode);
        CompareSmallMedians<std::uint32_t>(random, host, radius, mode);
        CompareSmallMedians<double>(random, host, radius, mode);
      }
    }
  }
  ASSERT_TRUE(SetCpuLevel(before.c_str()));
}

#if defined(__unix__)
/** Memory that ends where nothing may be read, and begins so: a reader beyond it ends the test. */
class MemoryBetweenPages
{
public:
  MemoryBetweenPages(std::size_t bytes, bool atEnd)
    : m_Page(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)))
    , m_Bytes((bytes + m_Page - 1) / m_Page * m_Page + 2 * m_Page)
    , m_Memory(
        static_cast<char *>(::mmap(nullptr, m_Bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))
    , m_Data(atEnd ? m_Memory + m_Bytes - m_Page - bytes : m_Memory + m_Page)
  {
    ::mprotect(m_Memory, m_Page, PROT_NONE);
    ::mprotect(m_Memory + m_Bytes - m_Page, m_Page, PROT_NONE);
  }
  ~MemoryBetweenPages() { ::munmap(m_Memory, m_Bytes); }
  MemoryBetweenPages(const MemoryBetweenPages &) = delete;
  MemoryBetweenPages &
  operator=(const MemoryBetweenPages &) = delete;

  void *
  Get() const
  {
    return m_Data;
  }

private:
  std::size_t m_Page;
  std::size_t m_Bytes;
  char *      m_Memory;
  char *      m_Data;
};

template <typename T>
void
FindMediansBetweenPages(std::mt19937 & random, Manager & host, bool atEnd)
{
  const bool isFlat = random() % 2 == 0;
  // Rows of tiles have so many bytes; what is left beside one is less than a vector, or more.
  const std::size_t bytes[] = { 384, 1024, 1536, 4096 };
  const std::size_t width =
    random() % 4 == 0 ? 1 + random() % 700 : bytes[random() % 4] * (1 + random() % 2) / sizeof(T) + random() % 70;
  const Coordinates extent{ { static_cast<std::int64_t>(width),
                              static_cast<std::int64_t>(1 + random() % 20),
                              isFlat ? 1 : static_cast<std::int64_t>(1 + random() % 7),
                              1,
                              1 } };
  const auto        operation = std::make_shared<RankOperation>();
  const auto        radius = static_cast<std::int64_t>(1 + random() % 2);
  operation->radius = { { radius, radius, isFlat ? 0 : radius, 0, 0 } };
  operation->boundary.mode = AllModes[random() % 6];
  Trial<T, T> t(random, operation, extent);
  t.request.backend = BackendChoice::CPU;
  // Whole vectors are read of a row's end too, of which the image has some or all.
  Box region = t.request.image;
  region.upper[0] = std::max<std::int64_t>(region.upper[0] - static_cast<std::int64_t>(random() % 70), 1);
  t.Prepare(region);
  const MemoryBetweenPages memory(t.pixels.size() * sizeof(T), atEnd);
  std::copy(t.pixels.begin(), t.pixels.end(), static_cast<T *>(memory.Get()));
  host.Execute(t.request);
  const std::vector<T> expected = t.output;
  t.request.inputs = { DenseView(memory.Get(), PixelTypeOf<T>(), t.request.image) };
  host.Execute(t.request);
  EXPECT_EQ(t.output, expected) << GetCpuLevel().name << " " << operation->GetKey() << " " << ToString(extent);
}

TEST(RankMedians, OfPixelsThatAreReadWhereTheyLieReadNothingBeyondThem)
{
  const std::string before = GetCpuLevel().name;
  std::mt19937      random(87);
  Manager           host({});
  for (const char * const level : { "baseline", "avx2", "avx512" })
  {
    for (int trial = 0; SetCpuLevel(level) && trial < 60; ++trial)
    {
      FindMediansBetweenPages<std::uint8_t>(random, host, trial % 2 == 0);
      FindMediansBetweenPages<std::uint16_t>(random, host, trial % 2 == 0);
      FindMediansBetweenPages<std::uint32_t>(random, host, trial % 2 == 0);
    }
  }
  ASSERT_TRUE(SetCpuLevel(before.c_str()));
}
#endif

TEST(RankOperation, BadParametersAreNamed)
{
  const auto message = [](const RankOperation & operation) {
    return ValidationMessage(operation, { { 10000, 10000, 10000, 10, 1 } });
  };
  RankOperation operation;
  operation.radius = { { 3, 3, 3, 0, 0 } };
  EXPECT_EQ(message(operation), "");
  operation.fraction = 1.5;
  EXPECT_NE(message(operation).find("its fraction is 1.5"), std::string::npos);
  operation.fraction = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(message(operation).find("its fraction is"), std::string::npos);
  operation.fraction = 0.5;
  operation.radius = { { 2000, 2000, 2000, 0, 0 } };
  EXPECT_NE(message(operation).find("Radius: 2000 x 2000 x 2000"), std::string::npos) << message(operation);
  operation.radius = { { 1, 1, 1, 1, 0 } };
  EXPECT_NE(message(operation).find("4 axes"), std::string::npos);
}

TEST(RankOperation, TheHostChoosesOneOfFiveWays)
{
  const Kernel & kernel = GetHostKernels().Get("rank", "the test");
  ChunkShape     shape;
  shape.outputBox = shape.inputBox = shape.image = Box::FromExtent({ { 60, 50, 40, 1, 1 } });
  shape.numberOfInputs = 1;
  const auto nameOf = [&](std::int64_t radius, double fraction, PixelType kind) {
    RankOperation operation;
    operation.radius = { { radius, radius, radius, 0, 0 } };
    operation.fraction = fraction;
    shape.inputKinds[0] = shape.outputKind = kind;
    const KernelChoice choice = kernel.choose(operation, shape);
    EXPECT_EQ(kernel.scratchBytes(operation, shape), choice.scratchBytes);
    EXPECT_GT(choice.scratchBytes, 0U);
    return std::string(choice.name);
  };
  EXPECT_EQ(nameOf(1, 0.5, PixelType::UInt8), "medians and bits");
  EXPECT_EQ(nameOf(1, 0.5, PixelType::Float64), "medians and tiles");
  EXPECT_EQ(nameOf(1, 0.3, PixelType::UInt8), "bits");
  EXPECT_EQ(nameOf(5, 0.5, PixelType::UInt8), "tiles");
  RankOperation along;
  const auto    nameAlong = [&](std::int64_t radius, PixelType kind) {
    along.radius = { { 0, radius, 0, 0, 0 } };
    shape.inputKinds[0] = shape.outputKind = kind;
    return std::string(kernel.choose(along, shape).name);
  };
  EXPECT_EQ(nameAlong(1, PixelType::Float32), "lines");
  EXPECT_EQ(nameAlong(3, PixelType::Float32), "lines");
  EXPECT_EQ(nameAlong(20, PixelType::Float32), "lines");
  // A vector of bytes has more lanes than there are lines.
  EXPECT_EQ(nameAlong(20, PixelType::UInt8), "bits");
  // Networks do not take voxels that are counted.
  RankOperation counted;
  counted.radius = { { 1, 1, 1, 0, 0 } };
  counted.isCounted = true;
  EXPECT_EQ(std::string(kernel.choose(counted, shape).name), "bits");
}

INSTANTIATE_TEST_SUITE_P(Cpu, Rank, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Rank, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Rank, testing::Values(Place::Cuda));

} // namespace
