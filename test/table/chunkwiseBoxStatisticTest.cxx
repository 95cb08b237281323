/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBoxStatisticOperation.h"
#include "chunkwiseComputeSanitizer.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseSpecialValues.h"
#include "chunkwiseVarianceOperation.h"

using namespace chunkwise;

namespace
{

class BoxStatistics : public KernelTest
{};

constexpr BoxStatistic AllStatistics[] = { BoxStatistic::Sum,
                                           BoxStatistic::Mean,
                                           BoxStatistic::Variance,
                                           BoxStatistic::StandardDeviation };

/** Some axes are longer than blocks, so that boxes meet two. */
Coordinates
RandomBlocks(std::mt19937 & random)
{
  Coordinates extent = Coordinates::Filled(1);
  for (int a = 0; a < MaxDimension; ++a)
  {
    extent[a] = 1 + static_cast<std::int64_t>(random() % (a < 3 ? 6 : 2));
  }
  const auto axis = static_cast<int>(random() % 3);
  extent[axis] = 1 + static_cast<std::int64_t>(random() % (axis == 0 ? 600 : 110));
  return extent;
}

template <typename TIn>
std::shared_ptr<BoxStatisticOperation>
RandomBoxStatistic(std::mt19937 & random)
{
  const auto operation = std::make_shared<BoxStatisticOperation>();
  operation->statistic = AllStatistics[random() % 4];
  operation->variable = random() % 2;
  operation->anchored = random() % 4 == 0 || !SumsAreExact(PixelTypeOf<TIn>(), operation->TakesSquares());
  const std::uint32_t largest = random() % 4 == 0 ? 150 : random() % 2 ? 12 : 3;
  for (const int a : RandomAxes(random))
  {
    operation->radius[a] = static_cast<std::int64_t>(random() % (largest + 1));
  }
  return operation;
}

/** A trial with an image of radii, of which only those of the region are meant. */
template <typename TIn, typename TOut>
class BoxTrial : public Trial<TIn, TOut>
{
public:
  BoxTrial(std::mt19937 & random, const std::shared_ptr<const BoxStatisticOperation> & operation,
           const Coordinates & extent)
    : Trial<TIn, TOut>(random, operation, extent)
    , m_Random(random)
    , m_Operation(operation)
    , m_Radii(this->pixels.size())
    , m_Kind(static_cast<PixelType>(random() % 8))
  {
    DispatchPixelType(m_Kind, [&](auto kind) {
      using Radius = decltype(kind);
      for (std::int64_t & radius : m_Radii)
      {
        // Beyond the range of the kind at times, and below zero.
        radius = static_cast<std::int64_t>(random() % 30 == 0 ? RandomPixel<Radius>(random)
                                                              : static_cast<Radius>(random() % 20));
      }
    });
  }

  void
  Prepare(const Box & region)
  {
    Trial<TIn, TOut>::Prepare(region);
    if (!m_Operation->variable)
    {
      return;
    }
    const BufferView all = DenseView(m_Radii.data(), PixelType::Int64, this->image.box);
    const Box        held = this->request.inputs[0].box;
    m_Held.resize(static_cast<std::size_t>(held.NumberOfVoxels()) * PixelSize(m_Kind));
    const BufferView view = DenseView(m_Held.data(), m_Kind, held);
    DispatchPixelType(m_Kind, [&](auto kind) {
      using Radius = decltype(kind);
      ForEachIndex(held, [&](const Coordinates & index) {
        const Box voxel{ index, { { index[0] + 1, index[1] + 1, index[2] + 1, index[3] + 1, index[4] + 1 } } };
        At<Radius>(view, index) =
          region.Contains(voxel) ? static_cast<Radius>(At<std::int64_t>(all, index)) : RandomPixel<Radius>(m_Random);
      });
    });
    this->request.inputs.push_back(view);
  }
  /** The radius along axis `a` of the box around a voxel. */
  std::int64_t
  RadiusAt(const Coordinates & index, int a) const
  {
    if (!m_Operation->variable)
    {
      return m_Operation->radius[a];
    }
    const BufferView all = DenseView(const_cast<std::int64_t *>(m_Radii.data()), PixelType::Int64, this->image.box);
    const auto       r = At<std::int64_t>(all, index);
    const bool       isHuge = m_Kind == PixelType::UInt64 && r < 0;
    return isHuge ? m_Operation->radius[a] : std::min(std::max<std::int64_t>(r, 0), m_Operation->radius[a]);
  }
  /** The part of the box around a voxel that is inside the image. */
  Box
  BoxAround(const Coordinates & index) const
  {
    Box box{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      box.lower[a] = index[a] - RadiusAt(index, a);
      box.upper[a] = index[a] + RadiusAt(index, a) + 1;
    }
    return Intersect(box, this->image.box);
  }

private:
  std::mt19937 &                               m_Random;
  std::shared_ptr<const BoxStatisticOperation> m_Operation;
  std::vector<std::int64_t>                    m_Radii;
  PixelType                                    m_Kind;
  std::vector<unsigned char>                   m_Held;
};

template <typename TIn, typename TOut>
std::string
Where(const BoxTrial<TIn, TOut> & t, const Coordinates & index)
{
  return t.request.operation->GetKey() + " " + PixelTypeName(PixelTypeOf<TIn>()) + " to " +
         PixelTypeName(PixelTypeOf<TOut>()) + " image " + ToString(t.request.image) + " region " +
         ToString(t.request.region) + " at " + ToString(index);
}

/** The exact sums of integers. */
struct WholeSums
{
  oracle::Wide sum{ 0 };
  oracle::Wide squares{ 0 };
  oracle::Wide count{ 0 };
};

template <typename TOut, typename TPixel>
TOut
ExpectedOfIntegers(const WholeSums & sums, BoxStatistic statistic)
{
  if (statistic == BoxStatistic::Sum || statistic == BoxStatistic::Mean)
  {
    const oracle::Wide count = statistic == BoxStatistic::Sum ? 1 : sums.count;
    if constexpr (std::is_integral<TOut>::value)
    {
      oracle::Wide rounded = oracle::RoundedQuotient(sums.sum, count);
      rounded = std::max<oracle::Wide>(rounded, std::numeric_limits<TOut>::lowest());
      return static_cast<TOut>(std::min<oracle::Wide>(rounded, std::numeric_limits<TOut>::max()));
    }
    else
    {
      return static_cast<TOut>(static_cast<double>(sums.sum) / static_cast<double>(count));
    }
  }
  const auto n = static_cast<double>(sums.count);
  double     result = static_cast<double>(sums.count * sums.squares - sums.sum * sums.sum) / (n * n);
  result = statistic == BoxStatistic::StandardDeviation ? std::sqrt(result) : result;
  if constexpr (std::is_integral<TOut>::value)
  {
    return static_cast<TOut>(std::min(std::nearbyint(result), static_cast<double>(std::numeric_limits<TOut>::max())));
  }
  else
  {
    return static_cast<TOut>(result);
  }
}

template <typename TIn, typename TOut>
void
CompareWithOracle(BoxTrial<TIn, TOut> & t, const BoxStatisticOperation & operation)
{
  // The error bound of tables in double: the magnitudes of the whole image bound those of its blocks.
  long double all = 0;
  for (const TIn pixel : t.pixels)
  {
    const auto value = static_cast<long double>(pixel);
    all += operation.TakesSquares() ? value * value : std::fabs(value);
  }
  const long double error = 200 * std::ldexp(1.0L, -53) * all;
  ForEachIndex(t.request.region, [&](const Coordinates & index) {
    WholeSums   whole;
    long double sum = 0;
    long double squares = 0;
    ForEachIndex(t.BoxAround(index), [&](const Coordinates & tap) {
      const TIn value = At<TIn>(t.image, tap);
      if constexpr (std::is_integral<TIn>::value)
      {
        whole.sum += value;
        whole.squares += sizeof(TIn) < 8 ? static_cast<oracle::Wide>(value) * value : 0;
      }
      ++whole.count;
      sum += static_cast<long double>(value);
      squares += static_cast<long double>(value) * static_cast<long double>(value);
    });
    const TOut result = t.Result(index);
    if (SumsAreExact(PixelTypeOf<TIn>(), operation.TakesSquares()))
    {
      const auto expected = ExpectedOfIntegers<TOut, TIn>(whole, operation.statistic);
      ASSERT_EQ(std::memcmp(&result, &expected, sizeof(result)), 0)
        << +result << ", not " << +expected << ": " << Where(t, index);
      return;
    }
    const auto  n = static_cast<long double>(whole.count);
    long double expected = operation.statistic == BoxStatistic::Sum ? sum : sum / n;
    long double bound = operation.statistic == BoxStatistic::Sum ? error : error / n;
    if (operation.TakesSquares())
    {
      const long double variance = std::max(0.0L, (squares - sum * (sum / n)) / n);
      bound = 3 * error / n;
      expected = variance;
      if (operation.statistic == BoxStatistic::StandardDeviation)
      {
        expected = std::sqrt(variance);
        bound = std::sqrt(variance + bound) - std::sqrt(std::max(0.0L, variance - bound));
      }
    }
    bound += std::fabs(expected) * std::ldexp(1.0L, std::is_same<TOut, float>::value ? -24 : -52);
    if (std::is_integral<TOut>::value)
    {
      bound += 0.5L;
      expected = std::min(expected, static_cast<long double>(std::numeric_limits<TOut>::max()));
    }
    ASSERT_TRUE(IsNear(static_cast<long double>(result), expected, bound))
      << +result << ", not " << expected << " within " << bound << ": " << Where(t, index);
  });
}

TEST_P(BoxStatistics, AreWhatTheirDefinitionSays)
{
  std::mt19937 random(701);
  const auto   compare = [&](auto in, auto out) {
    using In = decltype(in);
    using Out = decltype(out);
    for (int trial = 0; trial < 12; ++trial)
    {
      const auto        operation = RandomBoxStatistic<In>(random);
      BoxTrial<In, Out> t(random, operation, trial % 2 ? RandomExtent(random, 9) : RandomBlocks(random));
      t.request.backend = GetBackend();
      t.Prepare(RandomRegion(random, t.request.image.Extents()));
      GetManager().Execute(t.request);
      ASSERT_TRUE(t.IsContained());
      CompareWithOracle(t, *operation);
      if (testing::Test::HasFatalFailure())
      {
        return;
      }
    }
  };
  for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
  {
    DispatchPixelType(static_cast<PixelType>(kind), [&](auto pixel) {
      compare(pixel, pixel);
      compare(pixel, float{});
      compare(pixel, double{});
    });
  }
}

TEST_P(BoxStatistics, OfIntegersAreThoseOfTheNeighborhoodFamily)
{
  std::mt19937 random(702);
  Manager      host({});
  const auto   compare = [&](auto in, auto out) {
    using In = decltype(in);
    using Out = decltype(out);
    for (int trial = 0; trial < 10; ++trial)
    {
      const auto operation = RandomBoxStatistic<In>(random);
      operation->variable = false;
      BoxTrial<In, Out> t(random, operation, RandomBlocks(random));
      t.request.backend = GetBackend();
      t.Prepare(t.request.image);
      GetManager().Execute(t.request);
      const std::vector<Out> ours = t.output;
      if (operation->TakesSquares())
      {
        const auto variance = std::make_shared<VarianceOperation>();
        variance->radius = operation->radius;
        variance->takesRoot = operation->statistic == BoxStatistic::StandardDeviation;
        t.request.operation = variance;
      }
      else
      {
        const auto mean = std::make_shared<MeanOperation>();
        mean->radius = operation->radius;
        mean->sums = operation->statistic == BoxStatistic::Sum;
        t.request.operation = mean;
      }
      t.request.backend = BackendChoice::CPU;
      t.Prepare(t.request.image);
      host.Execute(t.request);
      ASSERT_EQ(std::memcmp(ours.data(), t.output.data(), ours.size() * sizeof(Out)), 0)
        << operation->GetKey() << " " << ToString(t.request.image);
    }
  };
  compare(std::uint8_t{}, std::uint8_t{});
  compare(std::int8_t{}, float{});
  compare(std::uint16_t{}, double{});
  compare(std::int16_t{}, std::int16_t{});
  compare(std::uint32_t{}, std::uint32_t{});
  compare(std::int32_t{}, double{});
}

TEST_P(BoxStatistics, OfChunksHaveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(703);
  Manager      host({});
  const auto   compare = [&](auto in, auto out, int trials) {
    using In = decltype(in);
    using Out = decltype(out);
    for (int trial = 0; trial < trials; ++trial)
    {
      const auto operation = RandomBoxStatistic<In>(random);
      // Now and then rows that no block of threads has whole.
      const Coordinates wide{ { 1500 + static_cast<std::int64_t>(random() % 900), 5, 1, 1, 1 } };
      BoxTrial<In, Out> t(random,
                          operation,
                          trial % 7 == 6 ? wide
                            : trial % 3    ? RandomBlocks(random)
                                           : RandomExtent(random, 40));
      if (trial % 5 == 0)
      {
        AddFewSpecials(random, t.pixels);
      }
      t.request.backend = BackendChoice::CPU;
      t.Prepare(t.request.image);
      host.Execute(t.request);
      const std::vector<Out> whole = t.output;
      const BufferView wholeView = DenseView(const_cast<Out *>(whole.data()), PixelTypeOf<Out>(), t.request.output.box);
      for (int part = 0; part < 3; ++part)
      {
        t.Prepare(RandomRegion(random, t.request.image.Extents()));
        t.request.backend = GetBackend();
        t.request.budgets.device = 20000 + random() % 600000;
        t.request.budgets.host = random() % 2 ? 0 : 40000 + random() % 300000;
        try
        {
          GetManager().Execute(t.request);
        }
        catch (const BudgetError &)
        {
          continue; // the smallest chunk of this trial is larger
        }
        ASSERT_TRUE(t.IsContained());
        ForEachIndex(t.request.region, [&](const Coordinates & index) {
          const Out  a = t.Result(index);
          const Out  b = At<Out>(wholeView, index);
          const bool bothNaN = a != a && b != b;
          ASSERT_TRUE(bothNaN || std::memcmp(&a, &b, sizeof(a)) == 0) << +a << " and " << +b << ": " << Where(t, index);
        });
      }
    }
  };
  compare(float{}, float{}, 60);
  compare(double{}, double{}, 25);
  compare(std::uint8_t{}, std::uint8_t{}, 25);
  compare(std::int16_t{}, float{}, 25);
  compare(std::uint32_t{}, std::uint32_t{}, 15);
  compare(std::int64_t{}, double{}, 25);
}

/** The prescribed sums of a whole image, by the words of BoxStatisticOperation. */
class PrescribedTable
{
public:
  PrescribedTable(const BufferView & image, const BoxStatisticOperation & operation)
    : m_Operation(operation)
    , m_Extent(image.box.Extents())
    , m_Entries(static_cast<std::size_t>(image.box.NumberOfVoxels()))
  {
    m_View = DenseView(m_Entries.data(), PixelType::Float64, image.box);
    ForEachIndex(image.box,
                 [&](const Coordinates & at) { Entry(at) = 0.0 + static_cast<double>(At<float>(image, at)); });
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (!TakesPart(a))
      {
        continue;
      }
      Box first = image.box;
      first.upper[a] = 1;
      ForEachIndex(first, [&](const Coordinates & line) {
        for (std::int64_t begin = 0; begin < m_Extent[a]; begin += Length(a))
        {
          const std::int64_t end = std::min(begin + Length(a), m_Extent[a]);
          if (a == 0)
          {
            ScanBlock(line, begin, end);
            continue;
          }
          for (std::int64_t i = begin + 1; i < end; ++i)
          {
            Coordinates at = line;
            at[a] = i;
            Coordinates before = at;
            --before[a];
            Entry(at) = Entry(before) + Entry(at);
          }
        }
      });
    }
  }
  double
  SumOf(const Box & box) const
  {
    return Sum(box, 0, box.lower);
  }

private:
  bool
  TakesPart(int a) const
  {
    return m_Operation.EffectiveRadius(a, m_Extent[a]) > 0;
  }
  std::int64_t
  Length(int a) const
  {
    return m_Operation.BlockLength(a, m_Extent);
  }
  double &
  Entry(const Coordinates & at) const
  {
    return At<double>(m_View, at);
  }
  void
  ScanBlock(Coordinates at, std::int64_t begin, std::int64_t end) const
  {
    double before = 0;
    for (; begin < end; begin += BoxStatisticOperation::SegmentColumns)
    {
      std::vector<double> values(BoxStatisticOperation::SegmentColumns, 0.0);
      for (std::size_t i = 0; i < values.size() && begin + static_cast<std::int64_t>(i) < end; ++i)
      {
        at[0] = begin + static_cast<std::int64_t>(i);
        values[i] = Entry(at);
      }
      std::vector<double> totals;
      for (std::size_t i = 0; i < values.size(); i += 2)
      {
        totals.push_back(values[i] + values[i + 1]);
      }
      for (std::size_t d = 1; d < totals.size(); d *= 2)
      {
        const std::vector<double> old = totals;
        for (std::size_t g = d; g < totals.size(); ++g)
        {
          totals[g] = old[g - d] + old[g];
        }
      }
      for (std::size_t i = 0; i < values.size() && begin + static_cast<std::int64_t>(i) < end; ++i)
      {
        at[0] = begin + static_cast<std::int64_t>(i);
        const double left = before + (i < 2 ? 0.0 : totals[i / 2 - 1]);
        Entry(at) = left + (i % 2 ? values[i - 1] + values[i] : values[i]);
      }
      before = before + totals.back();
    }
  }
  double
  Sum(const Box & box, int a, Coordinates at) const
  {
    if (a == MaxDimension)
    {
      return Entry(at);
    }
    if (!TakesPart(a))
    {
      return Sum(box, a + 1, at);
    }
    const auto with = [&](std::int64_t i) {
      Coordinates there = at;
      there[a] = i;
      return Sum(box, a + 1, there);
    };
    const std::int64_t first = box.lower[a];
    const std::int64_t last = box.upper[a] - 1;
    const double       e = first / Length(a) < last / Length(a) ? with(last / Length(a) * Length(a) - 1) : 0;
    const double       p = first % Length(a) > 0 ? with(first - 1) : 0;
    return (e - p) + with(last);
  }

  const BoxStatisticOperation & m_Operation;
  Coordinates                   m_Extent;
  mutable std::vector<double>   m_Entries;
  BufferView                    m_View;
};

TEST_P(BoxStatistics, OfFloatsAreAddedInThePrescribedOrder)
{
  std::mt19937 random(704);
  for (int trial = 0; trial < 30; ++trial)
  {
    const auto operation = RandomBoxStatistic<float>(random);
    operation->statistic = trial % 2 ? BoxStatistic::Mean : BoxStatistic::Sum;
    BoxTrial<float, double> t(random, operation, RandomBlocks(random));
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    const PrescribedTable table(t.image, *operation);
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const Box    box = t.BoxAround(index);
      const double divisor = trial % 2 ? static_cast<double>(box.NumberOfVoxels()) : 1.0;
      ASSERT_EQ(t.Result(index), table.SumOf(box) / divisor) << Where(t, index);
    });
  }
}

TEST_P(BoxStatistics, InASequenceHaveTheBitsOfTheStagesOneByOne)
{
  std::mt19937 random(706);
  Manager      host({});
  for (int trial = 0; trial < 12; ++trial)
  {
    const auto sequence = std::make_shared<SequenceOperation>();
    for (int stage = 0; stage < 2; ++stage)
    {
      const auto operation = RandomBoxStatistic<float>(random);
      operation->variable = false;
      sequence->stages.push_back(operation);
    }
    Trial<float, float> t(random, sequence, RandomBlocks(random));
    Trial<float, float> single(random, sequence->stages[0], t.request.image.Extents());
    single.pixels = t.pixels;
    single.image.data = single.pixels.data();
    single.request.backend = BackendChoice::CPU;
    for (const auto & stage : sequence->stages)
    {
      single.request.operation = stage;
      single.Prepare(single.request.image);
      host.Execute(single.request);
      ForEachIndex(single.request.image,
                   [&](const Coordinates & index) { At<float>(single.image, index) = single.Result(index); });
    }
    t.request.backend = GetBackend();
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    GetManager().Execute(t.request);
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const float a = t.Result(index);
      const float b = At<float>(single.image, index);
      ASSERT_EQ(std::memcmp(&a, &b, sizeof(a)), 0) << a << " and " << b << ": " << sequence->GetKey();
    });
  }
}

/** Sums near the most that tables are meant for. */
template <typename T>
void
CompareLargeSums(Manager & manager, BackendChoice backend, BoxStatistic statistic, std::int64_t extent)
{
  std::mt19937 random(705);
  const auto   operation = std::make_shared<BoxStatisticOperation>();
  operation->statistic = statistic;
  operation->anchored = false;
  operation->radius = { { extent, extent, 0, 0, 0 } };
  BoxTrial<T, double> t(random, operation, { { extent, extent, 1, 1, 1 } });
  for (T & pixel : t.pixels)
  {
    pixel = random() % 8 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
  }
  t.request.backend = backend;
  t.Prepare({ { { 7, 9, 0, 0, 0 } }, { { 8, 10, 1, 1, 1 } } });
  manager.Execute(t.request);
  CompareWithOracle(t, *operation);
}

TEST_P(BoxStatistics, SumsOfLargeBoxesDoNotOverflow)
{
  for (const std::int64_t extent : { 255, 256, 257 })
  {
    for (const BoxStatistic statistic : { BoxStatistic::Mean, BoxStatistic::Variance })
    {
      CompareLargeSums<std::uint8_t>(GetManager(), GetBackend(), statistic, extent);
      CompareLargeSums<std::int8_t>(GetManager(), GetBackend(), statistic, extent);
      CompareLargeSums<std::uint16_t>(GetManager(), GetBackend(), statistic, extent);
      CompareLargeSums<std::int16_t>(GetManager(), GetBackend(), statistic, extent);
      CompareLargeSums<std::uint32_t>(GetManager(), GetBackend(), statistic, extent);
      CompareLargeSums<std::int32_t>(GetManager(), GetBackend(), statistic, extent);
    }
  }
  if (!IsUnderComputeSanitizer())
  {
    CompareLargeSums<std::int8_t>(GetManager(), GetBackend(), BoxStatistic::Sum, 4095);
    CompareLargeSums<std::uint8_t>(GetManager(), GetBackend(), BoxStatistic::Sum, 4097);
  }
}

void
ExpectParameterError(const std::string & part, const std::function<void()> & call)
{
  try
  {
    call();
    ADD_FAILURE() << part;
  }
  catch (const ParameterError & error)
  {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(BoxStatisticOperation, BadParametersAreNamed)
{
  BoxStatisticOperation operation;
  const Coordinates     image{ { 50, 40, 30, 2, 2 } };
  operation.radius = { { 2, 2, 2, 0, 0 } };
  EXPECT_NO_THROW(operation.Validate(image));
  operation.boundary.mode = BoundaryMode::Mirror;
  ExpectParameterError(BoundaryModeName(BoundaryMode::Mirror), [&] { operation.Validate(image); });
  operation.boundary.mode = BoundaryMode::Renormalized;
  operation.radius[1] = -3;
  ExpectParameterError("-3", [&] { operation.Validate(image); });
  operation.radius = { { 1, 1, 1, 1, 0 } };
  ExpectParameterError("4 axes", [&] { operation.Validate(image); });

  operation.variable = true;
  ExpectParameterError("float32",
                       [&] { operation.CheckKinds({ PixelType::UInt8, PixelType::Float32 }, PixelType::UInt8); });
  ExpectParameterError("uint8",
                       [&] { operation.CheckKinds({ PixelType::UInt16, PixelType::Int8 }, PixelType::UInt8); });
  operation.anchored = false;
  EXPECT_NO_THROW(operation.CheckKinds({ PixelType::Int64, PixelType::Int8 }, PixelType::Float64));
  ExpectParameterError("anchored",
                       [&] { operation.CheckKinds({ PixelType::Float64, PixelType::Int8 }, PixelType::Float64); });
  operation.statistic = BoxStatistic::Variance;
  ExpectParameterError("anchored",
                       [&] { operation.CheckKinds({ PixelType::Int64, PixelType::Int8 }, PixelType::Float64); });
}

INSTANTIATE_TEST_SUITE_P(Cpu, BoxStatistics, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, BoxStatistics, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, BoxStatistics, testing::Values(Place::Cuda));

} // namespace
