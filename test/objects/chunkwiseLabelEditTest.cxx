/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseLabelBoundaryOperation.h"
#include "chunkwiseLabelHoles.h"
#include "chunkwiseLabelTable.h"

#include <deque>
#include <map>
#include <set>

using namespace chunkwise;

namespace
{

std::int64_t
Below(std::mt19937 & random, std::uint32_t end)
{
  return static_cast<std::int64_t>(random() % end);
}

class LabelBoundaries : public KernelTest
{};

/** By the definition of a voxel. */
template <typename T>
bool
IsBoundary(const BufferView & labels, const LabelBoundaryOperation & operation, const Coordinates & at)
{
  const T own = At<T>(labels, at);
  bool    differs = false;
  bool    touches = false;
  Box     around{ at, at };
  for (int a = 0; a < MaxDimension; ++a)
  {
    const bool isSpatial = std::count(operation.axes.begin(), operation.axes.end(), a) > 0;
    around.lower[a] = std::max<std::int64_t>(0, at[a] - (isSpatial ? 1 : 0));
    around.upper[a] = std::min(labels.box.upper[a], at[a] + (isSpatial ? 2 : 1));
  }
  ForEachIndex(around, [&](const Coordinates & there) {
    int distance = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      distance += there[a] != at[a] ? 1 : 0;
    }
    const T other = At<T>(labels, there);
    if (distance > 0 && own != other)
    {
      differs = differs || distance <= operation.connectivity;
      touches = touches || (own != T(0) && other != T(0));
    }
  });
  switch (operation.mode)
  {
    case LabelBoundaryMode::Thick:
      return differs;
    case LabelBoundaryMode::Inner:
      return differs && own != T(0);
    default:
      return differs && (own == T(0) || touches);
  }
}

TEST_P(LabelBoundaries, AreThoseOfTheDefinitionHoweverTheImageIsCut)
{
  std::mt19937 random(51);
  for (int trial = 0; trial < 90; ++trial)
  {
    DispatchPixelType(static_cast<PixelType>(trial % NumberOfPixelTypes), [&](auto pixel) {
      using T = decltype(pixel);
      const auto operation = std::make_shared<LabelBoundaryOperation>();
      operation->mode = static_cast<LabelBoundaryMode>(trial % 3);
      operation->connectivity = 1 + trial / 3 % 3;
      operation->axes = RandomAxes(random);
      Trial<T, std::uint8_t> t(random, operation, RandomExtent(random, trial % 5 == 0 ? 40 : 12));
      const T values[] = { T(0), T(1), T(1), std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest() };
      for (std::size_t i = 0; i < t.pixels.size(); ++i)
      {
        t.pixels[i] = i > 0 && random() % 2 ? t.pixels[i - 1] : values[random() % 5];
      }
      int tried = 0;
      for (int part = 0; part < 3; ++part)
      {
        t.Prepare(part == 0 ? t.request.image : RandomRegion(random, t.request.image.Extents()));
        t.request.backend = GetBackend();
        t.request.budgets.device = 20000 + random() % 100000;
        try
        {
          GetManager().Execute(t.request);
        }
        catch (const BudgetError &)
        {
          continue; // the smallest chunk of this trial is larger
        }
        ++tried;
        ASSERT_TRUE(t.IsContained());
        ForEachIndex(t.request.region, [&](const Coordinates & at) {
          ASSERT_EQ(t.Result(at), IsBoundary<T>(t.image, *operation, at) ? 1 : 0)
            << operation->GetKey() << " " << ToString(at) << " of " << ToString(t.request.image);
        });
      }
      EXPECT_GT(tried, 0);
    });
  }
}

TEST(LabelBoundaryOperations, SayWhatIsWrong)
{
  LabelBoundaryOperation operation;
  operation.connectivity = 4;
  EXPECT_THROW(operation.Validate({}), ParameterError);
  operation.connectivity = 3;
  operation.axes = { 1, 1 };
  EXPECT_THROW(operation.Validate({}), ParameterError);
  operation.axes = {};
  EXPECT_THROW(operation.Validate({}), ParameterError);
  operation.axes = { 4, 0 };
  EXPECT_NO_THROW(operation.Validate({}));
}

INSTANTIATE_TEST_SUITE_P(Cpu, LabelBoundaries, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, LabelBoundaries, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, LabelBoundaries, testing::Values(Place::Cuda));

/** The parts of the background with numbers in raster order, and the labels after filling, by a search. */
template <typename TLabel>
struct FilledHoles
{
  std::vector<std::uint64_t> parts;
  std::vector<TLabel>        labels;
  std::uint64_t              count{ 0 };

  FilledHoles(const std::vector<TLabel> & given, const Box & box)
    : parts(given.size(), 0)
    , labels(given)
  {
    const BufferView view = DenseView(const_cast<TLabel *>(given.data()), PixelTypeOf<TLabel>(), box);
    std::uint64_t    number = 0;
    ForEachIndex(box, [&](const Coordinates & start) {
      if (given[static_cast<std::size_t>(view.Offset(start))] != 0 ||
          parts[static_cast<std::size_t>(view.Offset(start))] != 0)
      {
        return;
      }
      std::vector<std::size_t> voxels;
      std::set<TLabel>         touched;
      bool                     isActive = false;
      std::deque<Coordinates>  queue{ start };
      parts[static_cast<std::size_t>(view.Offset(start))] = ++number;
      while (!queue.empty())
      {
        const Coordinates at = queue.front();
        queue.pop_front();
        voxels.push_back(static_cast<std::size_t>(view.Offset(at)));
        for (int a = 0; a < MaxDimension; ++a)
        {
          for (const int step : { -1, 1 })
          {
            Coordinates there = at;
            there[a] += step;
            if (there[a] < 0 || there[a] >= box.upper[a])
            {
              isActive = isActive || box.upper[a] > 1;
              continue;
            }
            const auto i = static_cast<std::size_t>(view.Offset(there));
            if (given[i] != 0)
            {
              touched.insert(given[i]);
            }
            else if (parts[i] == 0)
            {
              parts[i] = number;
              queue.push_back(there);
            }
          }
        }
      }
      if (!isActive && touched.size() == 1)
      {
        ++count;
        for (const std::size_t i : voxels)
        {
          labels[i] = *touched.begin();
        }
      }
    });
  }
};

TEST(LabelHoles, AreFilledHoweverTheImageIsCut)
{
  std::mt19937  random(52);
  std::uint64_t all = 0;
  for (int trial = 0; trial < 120; ++trial)
  {
    DispatchPixelType(static_cast<PixelType>(trial % 8), [&](auto pixel) {
      using Label = decltype(pixel);
      if constexpr (std::is_integral<Label>::value)
      {
        Coordinates extent{ { 1 + Below(random, 20), 1, 1, 1, 1 } };
        extent[1] = trial % 4 > 0 ? 1 + Below(random, 15) : 1;
        extent[2] = trial % 4 > 1 ? 1 + Below(random, 10) : 1;
        const Box          box = Box::FromExtent(extent);
        std::vector<Label> given(static_cast<std::size_t>(box.NumberOfVoxels()));
        for (Label & label : given)
        {
          const Label values[] = { Label(0), Label(1), Label(1),
                                   Label(1), Label(1), std::numeric_limits<Label>::lowest() };
          label = values[random() % 6];
        }
        const FilledHoles<Label>   expected(given, box);
        std::vector<std::uint32_t> narrow(expected.parts.begin(), expected.parts.end());
        std::vector<std::uint64_t> wide = expected.parts;
        const bool                 isWide = trial / 8 % 2;
        const BufferView           parts =
          isWide ? DenseView(wide.data(), PixelType::UInt64, box) : DenseView(narrow.data(), PixelType::UInt32, box);
        std::vector<Label> labels = given;
        const BufferView   view = DenseView(labels.data(), PixelTypeOf<Label>(), box);
        LabelHoles         holes(view.kind, parts.kind, extent);
        std::vector<Box>   pieces;
        for (std::int64_t first = 0; first < extent[holes.GetAxis()];)
        {
          Box piece = box;
          piece.lower[holes.GetAxis()] = first;
          first = std::min(extent[holes.GetAxis()], first + 1 + Below(random, trial % 3 == 0 ? 50 : 3));
          piece.upper[holes.GetAxis()] = first;
          pieces.push_back(piece);
          holes.Add(view, parts, piece);
        }
        EXPECT_EQ(holes.GetCount(), expected.count);
        all += expected.count;
        for (const Box & piece : pieces)
        {
          holes.Fill(view, parts, piece);
        }
        ASSERT_EQ(labels, expected.labels) << ToString(extent);
      }
    });
  }
  EXPECT_GT(all, 100u);
}

TEST(LabelHoles, SayWhatIsWrong)
{
  EXPECT_THROW(LabelHoles(PixelType::Float32, PixelType::UInt32, { { 2, 2, 1, 1, 1 } }), ParameterError);
  EXPECT_THROW(LabelHoles(PixelType::UInt8, PixelType::UInt16, { { 2, 2, 1, 1, 1 } }), ParameterError);
  EXPECT_THROW(LabelHoles(PixelType::UInt8, PixelType::UInt32, { { 2, 2, 1, 2, 1 } }), ParameterError);
  std::vector<std::uint8_t>  labels(5000, 0);
  std::vector<std::uint32_t> parts(5000);
  for (std::uint32_t i = 0; i < 5000; ++i)
  {
    parts[i] = i + 1;
  }
  const Box        box = Box::FromExtent({ { 5000, 1, 1, 1, 1 } });
  const BufferView view = DenseView(labels.data(), PixelType::UInt8, box);
  const BufferView ofParts = DenseView(parts.data(), PixelType::UInt32, box);
  LabelHoles       little(PixelType::UInt8, PixelType::UInt32, box.Extents(), 20000);
  EXPECT_THROW(little.Add(view, ofParts, box), BudgetError);
  LabelHoles ordered(PixelType::UInt8, PixelType::UInt32, box.Extents());
  Box        later = box;
  later.lower[0] = 10;
  EXPECT_THROW(ordered.Add(view, ofParts, later), ParameterError);
}

TEST(LabelTables, GiveLabelsOthers)
{
  std::mt19937 random(53);
  const auto   executor = MakeThreadExecutor(2);
  for (int kind = 0; kind < 8; ++kind)
  {
    DispatchPixelType(static_cast<PixelType>(kind), [&](auto pixel) {
      using Label = decltype(pixel);
      if constexpr (std::is_integral<Label>::value)
      {
        std::map<Label, Label>        expected;
        std::vector<LabelTable::Pair> pairs;
        std::vector<Label>            values = {
          0, 1, 2, 3, std::numeric_limits<Label>::max(), std::numeric_limits<Label>::lowest()
        };
        for (const Label old : values)
        {
          if (old != 0 && random() % 2)
          {
            expected[old] = values[random() % values.size()];
            pairs.emplace_back(PixelValue(old), PixelValue(expected[old]));
          }
        }
        const Box          box = Box::FromExtent({ { 13, 7, 5, 1, 1 } });
        std::vector<Label> labels(13 * 7 * 5);
        for (Label & label : labels)
        {
          label = values[random() % values.size()];
        }
        std::vector<Label> found(labels.size(), Label(77));
        const LabelTable   table(PixelTypeOf<Label>(), pairs);
        EXPECT_EQ(table.GetSize(), expected.size());
        table.Apply(DenseView(labels.data(), PixelTypeOf<Label>(), box),
                    DenseView(found.data(), PixelTypeOf<Label>(), box),
                    box,
                    *executor);
        for (std::size_t i = 0; i < labels.size(); ++i)
        {
          ASSERT_EQ(found[i], expected.count(labels[i]) ? expected[labels[i]] : labels[i]);
        }
      }
    });
  }
}

TEST(LabelTables, AreReadFromText)
{
  const auto pairs = LabelTable::ReadPairs("old,new\r\n 7, 3\n\n-1,18446744073709551615\n");
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].first.ToText() + " " + pairs[0].second.ToText(), "7 3");
  EXPECT_EQ(pairs[1].first.ToText() + " " + pairs[1].second.ToText(), "-1 18446744073709551615");
  EXPECT_EQ(LabelTable::ReadPairs("1,2").size(), 1u);
  EXPECT_EQ(LabelTable::ReadPairs("\xef\xbb\xbf"
                                  "1,2\n3,4")
              .size(),
            2u);
  EXPECT_TRUE(LabelTable::ReadPairs("").empty());
  for (const char * const wrong : { "1,2\n3", "1,2\n3,4,5", "1,2\na,b", "1,2\n3;4", "1;2\n", "1,2,3", "-1" })
  {
    EXPECT_THROW((void)LabelTable::ReadPairs(wrong), ParameterError) << wrong;
  }
  const auto refuses = [](PixelType kind, const std::vector<LabelTable::Pair> & wrong) {
    EXPECT_THROW(LabelTable(kind, wrong), ParameterError);
  };
  refuses(PixelType::UInt8, { { PixelValue(256), PixelValue(1) } });
  refuses(PixelType::UInt8, { { PixelValue(1), PixelValue(-1) } });
  refuses(PixelType::UInt8, { { PixelValue(1), PixelValue(1.5) } });
  refuses(PixelType::UInt8, { { PixelValue(0), PixelValue(1) } });
  refuses(PixelType::UInt8, { { PixelValue(1), PixelValue(2) }, { PixelValue(1), PixelValue(3) } });
  EXPECT_EQ(
    LabelTable(PixelType::UInt8, { { PixelValue(1), PixelValue(2) }, { PixelValue(1), PixelValue(2) } }).GetSize(), 1u);
}

} // namespace
