/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDeviceImage.h"
#include "chunkwiseError.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseLabelSelection.h"
#include "chunkwiseMeasurements.h"
#include "chunkwiseStatistics.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <set>

using namespace chunkwise;

namespace
{

__extension__ using Wide = __int128;

using Index = std::array<std::int64_t, 3>;

/** One label by the definitions. */
template <typename TPixel>
struct Expected
{
  std::vector<Index>  voxels; ///< in raster order
  std::vector<TPixel> values;
  std::int64_t        euler{ 0 };
  std::int64_t        faces[3]{};
};

/** Labels and intensities of an image, and what the definitions say of them. */
template <typename TLabel, typename TPixel>
class Trial
{
public:
  /** `far`: some labels lie far from the others. Else there is only the image, without what the definitions say. */
  Trial(std::mt19937 & random, const Coordinates & shape, int axes, bool special, bool far = true)
    : extent(shape)
    , dimension(axes)
  {
    const auto voxels = static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels());
    // Few values, so that objects have neighbors; some far away, and of both signs.
    std::vector<TLabel> values{ 0, 1, 2, 3, 7 };
    values.push_back(far ? std::numeric_limits<TLabel>::max() : TLabel(40));
    values.push_back(far ? std::numeric_limits<TLabel>::lowest()
                         : static_cast<TLabel>(std::is_signed_v<TLabel> ? -9 : 90));
    const int stickiness = static_cast<int>(random() % 6);
    for (std::size_t i = 0; i < voxels; ++i)
    {
      labels.push_back(i > 0 && static_cast<int>(random() % 6) < stickiness ? labels.back()
                                                                            : values[random() % values.size()]);
      TPixel value = RandomPixel<TPixel>(random);
      if constexpr (!std::is_integral<TPixel>::value)
      {
        const TPixel all[] = { std::numeric_limits<TPixel>::infinity(),
                               -std::numeric_limits<TPixel>::infinity(),
                               std::numeric_limits<TPixel>::quiet_NaN(),
                               std::numeric_limits<TPixel>::denorm_min(),
                               std::numeric_limits<TPixel>::max(),
                               -std::numeric_limits<TPixel>::max(),
                               TPixel(0),
                               -TPixel(0) };
        value = special && random() % 40 == 0 ? all[random() % 8] : value;
      }
      intensities.push_back(value);
    }
    if (far)
    {
      this->Define();
    }
  }

  TLabel
  Label(std::int64_t x, std::int64_t y, std::int64_t z) const
  {
    const bool isInside = x >= 0 && y >= 0 && z >= 0 && x < extent[0] && y < extent[1] && z < extent[2];
    return isInside ? labels[static_cast<std::size_t>(x + extent[0] * (y + extent[1] * z))] : TLabel(0);
  }
  MeasurementSettings
  GetSettings() const
  {
    MeasurementSettings settings;
    settings.extent = extent;
    settings.dimension = dimension;
    settings.labelKind = PixelTypeOf<TLabel>();
    settings.hasIntensity = true;
    settings.intensityKind = PixelTypeOf<TPixel>();
    settings.contacts = true;
    return settings;
  }
  BufferView
  ViewOf(const void * data, PixelType kind, const Box & box) const
  {
    const BufferView whole = DenseView(const_cast<void *>(data), kind, Box::FromExtent(extent));
    BufferView       part = whole;
    part.data = static_cast<char *>(whole.data) + whole.Offset(box.lower) * static_cast<std::int64_t>(PixelSize(kind));
    part.box = box;
    return part;
  }

  Coordinates                                       extent;
  int                                               dimension;
  std::vector<TLabel>                               labels;
  std::vector<TPixel>                               intensities;
  std::map<TLabel, Expected<TPixel>>                expected;
  std::map<std::pair<TLabel, TLabel>, std::int64_t> contacts;

private:
  void
  Define()
  {
    // For each label the cells that its closed voxels have: corners at even coordinates, voxels at odd ones.
    std::map<TLabel, std::set<Index>> cells;
    const std::int64_t                from[3] = { -1, dimension > 1 ? -1 : 0, dimension > 2 ? -1 : 0 };
    for (std::int64_t z = 0; z < extent[2]; ++z)
    {
      for (std::int64_t y = 0; y < extent[1]; ++y)
      {
        for (std::int64_t x = 0; x < extent[0]; ++x)
        {
          const TLabel label = this->Label(x, y, z);
          if (label == 0)
          {
            continue;
          }
          Expected<TPixel> & object = expected[label];
          object.voxels.push_back({ x, y, z });
          object.values.push_back(intensities[static_cast<std::size_t>(x + extent[0] * (y + extent[1] * z))]);
          for (std::int64_t c = from[2]; c <= -from[2]; ++c)
          {
            for (std::int64_t b = from[1]; b <= -from[1]; ++b)
            {
              for (std::int64_t a = -1; a <= 1; ++a)
              {
                cells[label].insert({ 2 * x + 1 + a, 2 * y + 1 + b, 2 * z + 1 + c });
              }
            }
          }
          for (int axis = 0; axis < dimension; ++axis)
          {
            for (const int side : { -1, 1 })
            {
              const TLabel other =
                this->Label(x + (axis == 0 ? side : 0), y + (axis == 1 ? side : 0), z + (axis == 2 ? side : 0));
              object.faces[axis] += other != label ? 1 : 0;
              if (side == 1 && other != 0 && other != label)
              {
                ++contacts[std::minmax(label, other)];
              }
            }
          }
        }
      }
    }
    for (const auto & [label, set] : cells)
    {
      for (const Index & cell : set)
      {
        const int odd =
          static_cast<int>((cell[0] & 1) + (dimension > 1 ? cell[1] & 1 : 0) + (dimension > 2 ? cell[2] & 1 : 0));
        expected[label].euler += odd % 2 == 0 ? 1 : -1;
      }
    }
  }
};

Coordinates
RandomExtent(std::mt19937 & random, int dimension)
{
  Coordinates extent = Coordinates::Filled(1);
  for (int a = 0; a < dimension; ++a)
  {
    extent[a] = 1 + static_cast<std::int64_t>(random() % (dimension == 1 ? 300u : dimension == 2 ? 40u : 14u));
  }
  if (random() % 4 == 0)
  {
    // Longer than words of bits.
    extent[0] = 60 + static_cast<std::int64_t>(random() % 140);
  }
  return extent;
}

std::vector<std::string>
AllProperties()
{
  std::vector<std::string> names;
  for (const MeasurementProperty & property : GetMeasurementProperties())
  {
    names.emplace_back(property.name);
  }
  return names;
}

const MeasurementColumn &
Find(const MeasurementTable & table, const std::string & name)
{
  for (const MeasurementColumn & column : table)
  {
    if (column.name == name)
    {
      return column;
    }
  }
  throw Error("no column " + name);
}

MeasurementSpace
SomeSpace()
{
  MeasurementSpace space;
  const double     spacing[] = { 0.5, 1.25, 3 };
  const double     origin[] = { 10, -20, 0.25 };
  for (int a = 0; a < 3; ++a)
  {
    space.spacing[a] = spacing[a];
    space.origin[a] = origin[a];
  }
  return space;
}

/** Equal bits, NaN too. */
void
ExpectEqual(const MeasurementTable & a, const MeasurementTable & b)
{
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
  {
    ASSERT_EQ(a[i].name, b[i].name);
    ASSERT_EQ(a[i].kind, b[i].kind) << a[i].name;
    ASSERT_EQ(a[i].integers, b[i].integers) << a[i].name;
    ASSERT_EQ(a[i].reals.size(), b[i].reals.size());
    ASSERT_EQ(a[i].reals.empty() ? 0 : std::memcmp(a[i].reals.data(), b[i].reals.data(), 8 * a[i].reals.size()), 0)
      << a[i].name;
  }
}

void
ExpectNear(double value, long double right, const std::string & what)
{
  if (std::isnan(right))
  {
    EXPECT_TRUE(std::isnan(value)) << what;
    return;
  }
  EXPECT_NEAR(value, static_cast<double>(right), 1e-9 * (1 + std::fabs(static_cast<double>(right)))) << what;
}

/** All columns against the definitions. */
template <typename TLabel, typename TPixel>
void
ExpectDefinitions(const Trial<TLabel, TPixel> & trial, const MeasurementTable & table, const MeasurementSpace & space)
{
  ASSERT_EQ(table.front().GetSize(), trial.expected.size());
  std::size_t row = 0;
  const int   d = trial.dimension;
  for (const auto & [label, object] : trial.expected)
  {
    const auto integer = [&](const std::string & name) { return Find(table, name).integers[row]; };
    const auto real = [&](const std::string & name) { return Find(table, name).reals[row]; };
    const auto n = static_cast<std::int64_t>(object.voxels.size());
    EXPECT_EQ(static_cast<TLabel>(integer("label")), label);
    EXPECT_EQ(integer("num_pixels"), n);
    EXPECT_EQ(integer("euler_number"), object.euler);
    Index       lower = object.voxels.front();
    Index       upper = object.voxels.front();
    long double mean[3]{};
    for (const Index & voxel : object.voxels)
    {
      for (std::size_t a = 0; a < 3; ++a)
      {
        lower[a] = std::min(lower[a], voxel[a]);
        upper[a] = std::max(upper[a], voxel[a] + 1);
        mean[a] += static_cast<long double>(voxel[a]) / static_cast<long double>(n);
      }
    }
    double      area = 0;
    long double box = 1;
    double      voxelSize = 1;
    bool        touches = false;
    for (int a = 0; a < d; ++a)
    {
      const auto        axis = static_cast<std::size_t>(a);
      const std::string suffix = "-" + std::to_string(a);
      EXPECT_EQ(integer("bbox" + suffix), lower[axis]);
      EXPECT_EQ(integer("bbox-" + std::to_string(d + a)), upper[axis]);
      EXPECT_EQ(integer("first_voxel" + suffix), object.voxels.front()[axis]);
      ExpectNear(real("centroid" + suffix), mean[a], "centroid");
      ExpectNear(real("centroid_physical" + suffix), space.origin[a] + space.spacing[a] * mean[a], "point");
      double face = 1;
      for (int b = 0; b < d; ++b)
      {
        face *= b == a ? 1 : space.spacing[b];
      }
      area += static_cast<double>(object.faces[a]) * face;
      box *= static_cast<long double>(upper[axis] - lower[axis]);
      voxelSize *= space.spacing[a];
      touches = touches || (trial.extent[a] > 1 && (lower[axis] == 0 || upper[axis] == trial.extent[a]));
    }
    ExpectNear(real("surface_area"), area, "surface");
    ExpectNear(real("area"), static_cast<double>(n) * voxelSize, "area");
    ExpectNear(real("extent"), static_cast<long double>(n) / box, "extent");
    EXPECT_EQ(integer("touches_border"), touches ? 1 : 0);
    // The inertia tensor, and that eigenvalues and axes are its.
    long double tensor[3][3]{};
    for (const Index & voxel : object.voxels)
    {
      long double r[3]{};
      long double square = 0;
      for (int a = 0; a < d; ++a)
      {
        r[a] = (static_cast<long double>(voxel[static_cast<std::size_t>(a)]) - mean[a]) * space.spacing[a];
        square += r[a] * r[a];
      }
      for (int a = 0; a < d; ++a)
      {
        for (int b = 0; b < d; ++b)
        {
          tensor[a][b] += ((a == b ? square : 0) - r[a] * r[b]) / static_cast<long double>(n);
        }
      }
    }
    for (int i = 0; i < d; ++i)
    {
      const int    k = d - 1 - i;
      const double eigenvalue = real("inertia_tensor_eigvals-" + std::to_string(k));
      for (int a = 0; a < d; ++a)
      {
        long double product = 0;
        for (int b = 0; b < d; ++b)
        {
          ExpectNear(real("inertia_tensor-" + std::to_string(a) + "-" + std::to_string(b)), tensor[a][b], "inertia");
          product += tensor[a][b] * real("principal_axes-" + std::to_string(i) + "-" + std::to_string(b));
        }
        ExpectNear(eigenvalue * real("principal_axes-" + std::to_string(i) + "-" + std::to_string(a)), product, "axes");
      }
    }
    // Intensities: those of an image that has these voxels alone.
    StatisticsAccumulator accumulator(PixelTypeOf<TPixel>());
    Coordinates           line = Coordinates::Filled(1);
    line[0] = n;
    accumulator.Add(DenseView(const_cast<TPixel *>(object.values.data()), PixelTypeOf<TPixel>(), Box::FromExtent(line)),
                    Box::FromExtent(line));
    const ImageStatistics     statistics = accumulator.Get();
    const bool                hasNaN = statistics.GetNumberOfNaNs() > 0;
    const double              nan = std::numeric_limits<double>::quiet_NaN();
    const MeasurementColumn & sum = Find(table, "intensity_sum");
    const double              right = hasNaN ? nan : statistics.GetSum();
    EXPECT_TRUE(sum.GetValue(row).ToDouble() == right ||
                (std::isnan(right) && std::isnan(sum.GetValue(row).ToDouble())))
      << sum.GetValue(row).ToDouble() << " " << right;
    if constexpr (std::is_integral<TPixel>::value)
    {
      Wide total = 0;
      for (const TPixel value : object.values)
      {
        total += value;
      }
      if (!IsFloatingPoint(sum.kind))
      {
        EXPECT_TRUE(static_cast<TPixel>(-1) > 0
                      ? static_cast<Wide>(static_cast<std::uint64_t>(sum.integers[row])) == total
                      : static_cast<Wide>(sum.integers[row]) == total);
      }
    }
    const double variance = hasNaN ? nan : statistics.GetVariance();
    EXPECT_TRUE(real("intensity_variance") == variance ||
                (std::isnan(variance) && std::isnan(real("intensity_variance"))));
    const auto isNaN = [](TPixel v) { return v != v; };
    auto       least = std::min_element(object.values.begin(), object.values.end());
    auto       most = std::max_element(object.values.begin(), object.values.end());
    if (hasNaN)
    {
      least = most = std::find_if(object.values.begin(), object.values.end(), isNaN);
    }
    else if (*least == TPixel(0) || *most == TPixel(0))
    {
      // -0 is less than +0.
      const auto isLess = [](TPixel a, TPixel b) {
        return a < b || (a == b && std::signbit(double(a)) > std::signbit(double(b)));
      };
      least = std::min_element(object.values.begin(), object.values.end(), isLess);
      most = std::max_element(object.values.begin(), object.values.end(), isLess);
    }
    const auto expectValue = [&](const std::string & name, TPixel value) {
      const PixelValue found = Find(table, name).GetValue(row);
      EXPECT_TRUE(hasNaN ? std::isnan(found.ToDouble()) : found.As<TPixel>() == value) << name;
    };
    expectValue("intensity_min", *least);
    expectValue("intensity_max", *most);
    long double weights = 0;
    long double scale = 0;
    long double weighted[3]{};
    for (std::size_t i = 0; i < object.values.size(); ++i)
    {
      weights += static_cast<long double>(object.values[i]);
      for (std::size_t a = 0; a < 3; ++a)
      {
        weighted[a] += static_cast<long double>(object.values[i]) * static_cast<long double>(object.voxels[i][a]);
        scale = std::max(scale, std::fabs(static_cast<long double>(object.values[i]) * (1 + object.voxels[i][a])));
      }
    }
    for (int a = 0; a < d; ++a)
    {
      const auto        axis = static_cast<std::size_t>(a);
      const std::string suffix = "-" + std::to_string(a);
      EXPECT_EQ(integer("position_min" + suffix),
                object.voxels[static_cast<std::size_t>(least - object.values.begin())][axis]);
      EXPECT_EQ(integer("position_max" + suffix),
                object.voxels[static_cast<std::size_t>(most - object.values.begin())][axis]);
      if (std::isfinite(weights) && std::fabs(weights) > scale * 1e-4L && std::isfinite(static_cast<double>(weights)))
      {
        ExpectNear(real("centroid_weighted" + suffix), weighted[a] / weights, "weighted");
      }
      else if (!std::isfinite(weights))
      {
        EXPECT_TRUE(std::isnan(real("centroid_weighted" + suffix)));
      }
    }
    ++row;
  }
}

template <typename TLabel, typename TPixel>
void
TestDefinitions(std::uint32_t seed)
{
  std::mt19937 random(seed);
  for (int trial = 0; trial < 12; ++trial)
  {
    SCOPED_TRACE(testing::Message() << "trial " << trial);
    const int                   dimension = 1 + static_cast<int>(random() % 3);
    const Trial<TLabel, TPixel> image(random, RandomExtent(random, dimension), dimension, trial % 2 == 1);
    const Box                   whole = Box::FromExtent(image.extent);
    const MeasurementSpace      space = SomeSpace();
    const BufferView            labels = image.ViewOf(image.labels.data(), PixelTypeOf<TLabel>(), whole);
    const BufferView            values = image.ViewOf(image.intensities.data(), PixelTypeOf<TPixel>(), whole);
    const auto                  executor = MakeThreadExecutor(1);
    Measurements                measured(image.GetSettings());
    measured.Add(labels, &values, whole, *executor);
    const MeasurementTable table = measured.MakeTable(space, AllProperties());
    ExpectDefinitions(image, table, space);
    // The same table in two parts.
    MeasurementTable       halves = measured.MakeTable(space, AllProperties(), 0, 2);
    const MeasurementTable second = measured.MakeTable(space, AllProperties(), 2);
    for (std::size_t i = 0; i < table.size(); ++i)
    {
      halves[i].integers.insert(halves[i].integers.end(), second[i].integers.begin(), second[i].integers.end());
      halves[i].reals.insert(halves[i].reals.end(), second[i].reals.begin(), second[i].reals.end());
    }
    ExpectEqual(halves, table);
    const MeasurementTable contacts = measured.MakeContacts(space);
    std::size_t            row = 0;
    ASSERT_EQ(contacts[0].GetSize(), image.contacts.size());
    for (const auto & [pair, faces] : image.contacts)
    {
      EXPECT_EQ(static_cast<TLabel>(contacts[0].integers[row]), pair.first);
      EXPECT_EQ(static_cast<TLabel>(contacts[1].integers[row]), pair.second);
      EXPECT_EQ(contacts[2].integers[row], faces);
      ++row;
    }

    // Slabs in order, by several threads; boxes in any order, with what lies before them, added up from two tables.
    const auto   threads = MakeThreadExecutor(3);
    Measurements slabs(image.GetSettings());
    int          last = dimension - 1;
    while (last > 0 && image.extent[last] == 1)
    {
      --last;
    }
    for (std::int64_t begin = 0, end = 0; begin < image.extent[last]; begin = end)
    {
      end = std::min(image.extent[last], begin + 1 + static_cast<std::int64_t>(random() % 5));
      Box slab = whole;
      slab.lower[last] = begin;
      slab.upper[last] = end;
      // A copy, so that nothing else of the image is near.
      std::vector<TLabel> copy;
      ForEachIndex(slab, [&](const Coordinates & i) { copy.push_back(image.Label(i[0], i[1], i[2])); });
      const BufferView part = DenseView(copy.data(), PixelTypeOf<TLabel>(), slab);
      const BufferView partOfValues = image.ViewOf(image.intensities.data(), PixelTypeOf<TPixel>(), slab);
      slabs.Add(part, &partOfValues, slab, *threads);
    }
    ExpectEqual(slabs.MakeTable(space, AllProperties()), table);
    ExpectEqual(slabs.MakeContacts(space), contacts);

    std::vector<Box> boxes{ whole };
    for (int cut = 0; cut < 6; ++cut)
    {
      const std::size_t which = random() % boxes.size();
      const int         axis = static_cast<int>(random() % static_cast<unsigned>(dimension));
      Box               second = boxes[which];
      if (second.Extent(axis) > 1)
      {
        const std::int64_t at =
          second.lower[axis] + 1 +
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(second.Extent(axis) - 1));
        second.lower[axis] = boxes[which].upper[axis] = at;
        boxes.push_back(second);
      }
    }
    std::shuffle(boxes.begin(), boxes.end(), random);
    Measurements parts[2]{ Measurements(image.GetSettings()), Measurements(image.GetSettings()) };
    for (const Box & box : boxes)
    {
      Box held = box;
      for (int a = 0; a < dimension; ++a)
      {
        held.lower[a] = std::max<std::int64_t>(0, held.lower[a] - 1);
      }
      std::vector<TLabel> copy;
      ForEachIndex(held, [&](const Coordinates & i) { copy.push_back(image.Label(i[0], i[1], i[2])); });
      const BufferView part = DenseView(copy.data(), PixelTypeOf<TLabel>(), held);
      const BufferView partOfValues = image.ViewOf(image.intensities.data(), PixelTypeOf<TPixel>(), box);
      parts[random() % 2].Add(part, &partOfValues, box, *threads);
    }
    parts[0].Add(parts[1]);
    ExpectEqual(parts[0].MakeTable(space, AllProperties()), table);
    ExpectEqual(parts[0].MakeContacts(space), contacts);

    // Quantiles of sorted voxels, with much memory and with little.
    const std::vector<double> fractions{ 0, 0.1, 0.5, 0.9, 1 };
    MeasurementTable          quantiles[2];
    for (const bool isLittle : { false, true })
    {
      const std::uint64_t bytes = 20000 + 200 * image.labels.size();
      LabelQuantiles      search(measured, fractions, isLittle ? bytes : 0);
      while (search.BeginPass())
      {
        for (const Box & box : boxes)
        {
          search.Add(image.ViewOf(image.labels.data(), PixelTypeOf<TLabel>(), box),
                     image.ViewOf(image.intensities.data(), PixelTypeOf<TPixel>(), box),
                     box,
                     *threads);
        }
        search.EndPass();
      }
      quantiles[isLittle] = search.MakeTable();
    }
    ExpectEqual(quantiles[0], quantiles[1]);
    row = 0;
    for (const auto & [label, object] : image.expected)
    {
      std::vector<TPixel> sorted = object.values;
      const bool          hasNaN = std::any_of(sorted.begin(), sorted.end(), [](TPixel v) { return v != v; });
      if (!hasNaN)
      {
        std::sort(sorted.begin(), sorted.end());
      }
      for (std::size_t f = 0; f < fractions.size(); ++f)
      {
        const double position = fractions[f] * static_cast<double>(sorted.size() - 1);
        const auto   rank = static_cast<std::size_t>(position);
        const double a = static_cast<double>(sorted[rank]);
        const double b = static_cast<double>(sorted[std::min(rank + 1, sorted.size() - 1)]);
        const double found = quantiles[0][f].reals[row];
        if (hasNaN)
        {
          EXPECT_TRUE(std::isnan(found));
        }
        else if (position == std::floor(position) || a == b)
        {
          EXPECT_EQ(found, a);
        }
        else if (std::isfinite(b - a))
        {
          EXPECT_NEAR(found, a + (b - a) * (position - std::floor(position)), 1e-12 * (std::fabs(a) + std::fabs(b)));
        }
      }
      ++row;
    }
  }
}

TEST(Measure, EqualsItsDefinitionForEveryCutAndType)
{
  TestDefinitions<std::uint8_t, std::uint8_t>(1);
  TestDefinitions<std::int8_t, std::int8_t>(2);
  TestDefinitions<std::uint16_t, std::uint16_t>(3);
  TestDefinitions<std::int16_t, std::int16_t>(4);
  TestDefinitions<std::uint32_t, std::uint32_t>(5);
  TestDefinitions<std::int32_t, std::int32_t>(6);
  TestDefinitions<std::uint64_t, std::uint64_t>(7);
  TestDefinitions<std::int64_t, std::int64_t>(8);
  TestDefinitions<std::uint32_t, float>(9);
  TestDefinitions<std::int16_t, double>(10);
}

/** A row of voxels that is longer than a part's: its runs and its shape do not end at cuts. */
TEST(Measure, LongRows)
{
  constexpr std::int64_t     n = 200000;
  std::vector<std::uint16_t> labels(n, 0);
  std::vector<double>        values(n, 0.1);
  std::fill(labels.begin() + 10, labels.end() - 10, std::uint16_t{ 5 });
  MeasurementSettings settings;
  settings.extent = { { n, 1, 1, 1, 1 } };
  settings.dimension = 1;
  settings.labelKind = PixelType::UInt16;
  settings.hasIntensity = true;
  settings.intensityKind = PixelType::Float64;
  const Box        whole = Box::FromExtent(settings.extent);
  const BufferView view = DenseView(labels.data(), PixelType::UInt16, whole);
  const BufferView intensity = DenseView(values.data(), PixelType::Float64, whole);
  const auto       executor = MakeThreadExecutor(4);
  Measurements     measured(settings);
  measured.Add(view, &intensity, whole, *executor);
  const MeasurementTable table = measured.MakeTable(MeasurementSpace(), AllProperties());
  EXPECT_EQ(Find(table, "num_pixels").integers, std::vector<std::int64_t>{ n - 20 });
  EXPECT_EQ(Find(table, "euler_number").integers, std::vector<std::int64_t>{ 1 });
  EXPECT_EQ(Find(table, "surface_area").reals, std::vector<double>{ 2 });
  EXPECT_EQ(Find(table, "centroid-0").reals, std::vector<double>{ (n - 1) / 2.0 });
  // 0.1 is more than its decimals say: the sum is that of the doubles, rounded once.
  EXPECT_EQ(Find(table, "intensity_sum").reals,
            std::vector<double>{ static_cast<double>((n - 20) * 0.1L + (n - 20) * (0.1 - 0.1L)) });
  EXPECT_EQ(Find(table, "intensity_variance").reals, std::vector<double>{ 0 });
  EXPECT_EQ(Find(table, "centroid_weighted-0").reals, std::vector<double>{ (n - 1) / 2.0 });

  values[100001] = values[140000] = 7;
  values[150003] = values[160000] = -7;
  Measurements changed(settings);
  changed.Add(view, &intensity, whole, *executor);
  const MeasurementTable places = changed.MakeTable(MeasurementSpace(), { "position_min", "position_max" });
  EXPECT_EQ(Find(places, "position_min-0").integers, std::vector<std::int64_t>{ 150003 });
  EXPECT_EQ(Find(places, "position_max-0").integers, std::vector<std::int64_t>{ 100001 });
}

TEST(Measure, KeepsItsMemory)
{
  // Each voxel has a different label, far from the others.
  constexpr std::int64_t     n = 20000;
  std::vector<std::uint64_t> labels(n);
  std::mt19937_64            random(1);
  std::generate(labels.begin(), labels.end(), [&] { return random() | 1; });
  MeasurementSettings settings;
  settings.extent = { { 200, 100, 1, 1, 1 } };
  settings.dimension = 2;
  settings.labelKind = PixelType::UInt64;
  const Box        whole = Box::FromExtent(settings.extent);
  const BufferView view = DenseView(labels.data(), PixelType::UInt64, whole);
  const auto       executor = MakeThreadExecutor(2);
  Measurements     unlimited(settings);
  unlimited.Add(view, nullptr, whole, *executor);
  EXPECT_EQ(unlimited.GetNumberOfLabels(), n);
  const std::uint64_t bytes = unlimited.GetBytes();
  EXPECT_LT(bytes, std::uint64_t{ n } * 400);

  settings.memory = bytes + (2 << 20);
  Measurements enough(settings);
  enough.Add(view, nullptr, whole, *executor);
  ExpectEqual(enough.MakeTable(MeasurementSpace(), { "label", "num_pixels", "euler_number" }),
              unlimited.MakeTable(MeasurementSpace(), { "label", "num_pixels", "euler_number" }));
  settings.memory = bytes / 2;
  Measurements tooLittle(settings);
  EXPECT_THROW(tooLittle.Add(view, nullptr, whole, *executor), BudgetError);
}

TEST(Measure, LabelsAreKeptByConditions)
{
  // 3 has four voxels, 5 and 200 two, 7 one.
  std::vector<std::uint8_t> labels{ 3, 3, 0, 5, 5, 3, 3, 200, 200, 7, 0, 0 };
  MeasurementSettings       settings;
  settings.extent = { { 12, 1, 1, 1, 1 } };
  settings.dimension = 1;
  settings.labelKind = PixelType::UInt8;
  const Box        whole = Box::FromExtent(settings.extent);
  const BufferView view = DenseView(labels.data(), PixelType::UInt8, whole);
  const auto       executor = MakeThreadExecutor(2);
  Measurements     measured(settings);
  measured.Add(view, nullptr, whole, *executor);
  const auto expectKept = [&](const std::vector<std::string> &  conditions,
                              std::int64_t                      largest,
                              bool                              relabel,
                              const std::vector<std::uint8_t> & right) {
    LabelSelection selection;
    for (const std::string & text : conditions)
    {
      selection.conditions.push_back(LabelCondition::FromText(text));
    }
    selection.keepLargest = largest;
    selection.relabel = relabel;
    std::vector<std::uint8_t> found(labels.size(), 99);
    const LabelMap            map(measured, MeasurementSpace(), selection);
    map.Apply(view, DenseView(found.data(), PixelType::UInt8, whole), whole, *executor);
    EXPECT_EQ(found, right);
  };
  expectKept({ "num_pixels >= 2", "label<200" }, 0, false, { 3, 3, 0, 5, 5, 3, 3, 0, 0, 0, 0, 0 });
  expectKept({ "num_pixels > 1" }, 0, true, { 1, 1, 0, 2, 2, 1, 1, 3, 3, 0, 0, 0 });
  expectKept({ " bbox-0 != 0 " }, 2, false, { 0, 0, 0, 5, 5, 0, 0, 200, 200, 0, 0, 0 });
  expectKept({ "num_pixels <= 2" }, 1, false, { 0, 0, 0, 5, 5, 0, 0, 0, 0, 0, 0, 0 });
  expectKept({ "label == 4" }, 0, true, std::vector<std::uint8_t>(12, 0));
  for (const char * const text : { "", "area", "area >", "area > x", "area > nan", "> 3", "colour > 3", "area ! 3" })
  {
    EXPECT_THROW(LabelCondition::FromText(text), ParameterError) << text;
  }
  // 64 bits keep all their digits.
  EXPECT_FALSE(LabelCondition::FromText("label < 18446744073709551615").IsMet(~std::uint64_t{ 0 }));
  EXPECT_TRUE(LabelCondition::FromText("label >= 18446744073709551615").IsMet(~std::uint64_t{ 0 }));
  EXPECT_TRUE(LabelCondition::FromText("label > -9223372036854775808").IsMet(std::int64_t{ -9223372036854775807 }));
}

TEST(Measure, RefusesWhatItCannotMeasure)
{
  MeasurementSettings settings;
  settings.labelKind = PixelType::Float32;
  EXPECT_THROW(Measurements{ settings }, ParameterError);
  settings.labelKind = PixelType::UInt8;
  settings.dimension = 4;
  EXPECT_THROW(Measurements{ settings }, ParameterError);
  settings.dimension = 2;
  settings.extent = { { 4, 4, 1, 1, 1 } };
  std::vector<std::uint8_t> labels(16, 1);
  const auto                executor = MakeThreadExecutor(1);
  const Box                 whole = Box::FromExtent(settings.extent);
  Box                       second = whole;
  second.lower[1] = 2;
  Measurements measured(settings);
  // Voxels before the box are not there.
  EXPECT_THROW(measured.Add(DenseView(labels.data(), PixelType::UInt8, second), nullptr, second, *executor),
               ParameterError);
  EXPECT_THROW(measured.Add(DenseView(labels.data(), PixelType::Int8, whole), nullptr, whole, *executor),
               ParameterError);
  EXPECT_THROW(measured.MakeTable(MeasurementSpace(), { "intensity_mean" }), ParameterError);
  EXPECT_THROW(measured.MakeTable(MeasurementSpace(), { "colour" }), ParameterError);
  EXPECT_THROW(LabelQuantiles(measured, { 0.5 }), ParameterError);
}

/** Measurements by devices: a run of the manager, whose result is the CPU's. */
class MeasuredByDevices : public KernelTest
{
protected:
  ExecutionRequest
  MakeRequest(const MeasurementSettings & settings, const BufferView & labels, const BufferView & values) const
  {
    ExecutionRequest request;
    request.image = request.region = Box::FromExtent(settings.extent);
    request.inputs = { labels };
    if (settings.hasIntensity)
    {
      request.inputs.push_back(values);
    }
    request.backend = BackendChoice::CUDA;
    return request;
  }
  MeasurementTable
  MakeTable(const Measurements & measured) const
  {
    std::vector<std::string>    names;
    const MeasurementSettings & settings = measured.GetSettings();
    if (!settings.details && settings.hasIntensity)
    {
      return measured.MakeTable(SomeSpace(), { "label", "area", "intensity_sum", "intensity_mean" });
    }
    for (const MeasurementProperty & property : GetMeasurementProperties())
    {
      if ((settings.hasIntensity || !property.needsIntensity) && (settings.surfaces || !property.needsSurfaces) &&
          (settings.moments || !property.needsMoments) && (settings.weighted || !property.needsWeighted))
      {
        names.emplace_back(property.name);
      }
    }
    MeasurementTable table = measured.MakeTable(SomeSpace(), names);
    const auto       threads = MakeThreadExecutor(3);
    ExpectEqual(measured.MakeTable(SomeSpace(), names, 0, INT64_MAX, threads.get()), table);
    return table;
  }

  /** Whole images, small budgets, boxes in any order, and images that lie on the device give the CPU's table. */
  template <typename TLabel, typename TPixel>
  void
  Compare(std::mt19937 & random, const Trial<TLabel, TPixel> & image, MeasurementSettings settings,
          std::size_t budget = 0)
  {
    settings.contacts = false;
    const Box        whole = Box::FromExtent(image.extent);
    const BufferView labels = image.ViewOf(image.labels.data(), PixelTypeOf<TLabel>(), whole);
    const BufferView values = image.ViewOf(image.intensities.data(), PixelTypeOf<TPixel>(), whole);
    const auto       executor = MakeThreadExecutor(1);
    Measurements     right(settings);
    right.Add(labels, settings.hasIntensity ? &values : nullptr, whole, *executor);
    const MeasurementTable table = this->MakeTable(right);
    ExecutionRequest       request = this->MakeRequest(settings, labels, values);
    Manager &              manager = this->GetManager();
    {
      SCOPED_TRACE("whole");
      Measurements measured(settings);
      measured.Add(manager, request);
      ASSERT_NO_FATAL_FAILURE(ExpectEqual(this->MakeTable(measured), table));
    }
    {
      SCOPED_TRACE("chunks, then boxes");
      Measurements measured(settings);
      for (int a = 2; a >= 0; --a)
      {
        // The rest is cut off after a part along this axis.
        ExecutionRequest part = request;
        const auto       extent = static_cast<std::uint64_t>(request.region.Extent(a));
        part.region.lower[a] = request.region.upper[a] =
          request.region.lower[a] + static_cast<std::int64_t>(random() % extent);
        part.budgets.device = budget;
        measured.Add(manager, a == 0 ? request : part);
        request.region.lower[a] = a == 0 ? part.region.lower[a] : request.region.lower[a];
        request.region.upper[a] = a == 0 ? part.region.upper[a] : request.region.upper[a];
        if (a == 0)
        {
          measured.Add(manager, part);
        }
      }
      ASSERT_NO_FATAL_FAILURE(ExpectEqual(this->MakeTable(measured), table));
    }
    {
      SCOPED_TRACE("on the device");
      Device &                                  device = *manager.GetDevices()[0];
      const StreamHandle                        stream = device.CreateStream();
      std::vector<std::unique_ptr<DeviceImage>> there;
      request = this->MakeRequest(settings, labels, values);
      for (BufferView & input : request.inputs)
      {
        there.push_back(std::make_unique<DeviceImage>(device, input.kind, whole));
        std::memcpy(there.back()->GetHostView().data, input.data, input.NumberOfBytes());
        there.back()->Upload(stream);
        input = there.back()->GetView();
      }
      device.Synchronize(stream);
      device.DestroyStream(stream);
      request.imageDevice = 0;
      Measurements measured(settings);
      measured.Add(manager, request);
      ASSERT_NO_FATAL_FAILURE(ExpectEqual(this->MakeTable(measured), table));
    }
  }

  template <typename TLabel, typename TPixel>
  void
  CompareSome(std::uint32_t seed)
  {
    std::mt19937      random(seed);
    const Coordinates extents[] = { { { 70, 19, 67, 1, 1 } }, { { 5, 9, 2, 1, 1 } },   { { 33, 300, 1, 1, 1 } },
                                    { { 64, 8, 32, 1, 1 } },  { { 700, 1, 1, 1, 1 } }, { { 1, 40, 3, 1, 1 } } };
    for (const Coordinates & extent : extents)
    {
      SCOPED_TRACE(testing::Message() << PixelTypeName(PixelTypeOf<TLabel>()) << " "
                                      << PixelTypeName(PixelTypeOf<TPixel>()) << " " << ToString(extent));
      const int                   least = extent[2] > 1 ? 3 : extent[1] > 1 ? 2 : 1;
      const int                   dimension = least + static_cast<int>(random() % static_cast<unsigned>(4 - least));
      const Trial<TLabel, TPixel> image(random, extent, dimension, random() % 2 == 0, false);
      MeasurementSettings         settings = image.GetSettings();
      ASSERT_NO_FATAL_FAILURE(this->Compare(random, image, settings, 1 << 20));
      settings.moments = random() % 2 == 0;
      settings.surfaces = random() % 2 == 0;
      settings.weighted = random() % 2 == 0;
      settings.hasIntensity = random() % 4 != 0;
      ASSERT_NO_FATAL_FAILURE(this->Compare(random, image, settings, 1 << 20));
      settings = image.GetSettings();
      SetPartsFor({ "label", "area", "intensity_sum", "intensity_mean" }, settings);
      ASSERT_NO_FATAL_FAILURE(this->Compare(random, image, settings, 1 << 20));
    }
  }
};

TEST_P(MeasuredByDevices, HaveTheBitsOfTheCpu)
{
  this->CompareSome<std::uint8_t, std::uint8_t>(21);
  this->CompareSome<std::int8_t, std::int8_t>(22);
  this->CompareSome<std::uint16_t, std::uint16_t>(23);
  this->CompareSome<std::int16_t, std::int16_t>(24);
  this->CompareSome<std::uint32_t, std::uint32_t>(25);
  this->CompareSome<std::int32_t, std::int32_t>(26);
  this->CompareSome<std::uint64_t, float>(27);
  this->CompareSome<std::int64_t, float>(28);
}

/** More labels in a block than it has rows for, long runs, and numbers of all sizes. */
TEST_P(MeasuredByDevices, AreExactForManyLabelsAndAnyNumber)
{
  std::mt19937                random(31);
  Trial<std::int32_t, float>  image(random, { { 40, 10, 40, 1, 1 } }, 3, false, false);
  const MeasurementSettings   settings = image.GetSettings();
  const std::size_t           n = image.labels.size();
  const std::vector<float>    numbers = image.intensities;
  const std::function<void()> labels[] = {
    [&] {
      for (std::size_t i = 0; i < n; ++i)
      {
        image.labels[i] = static_cast<int>(i % 1999) - 1000;
      }
    },
    [&] { std::fill(image.labels.begin(), image.labels.end(), 77); },
    [&] { std::generate(image.labels.begin(), image.labels.end(), [&] { return static_cast<int>(random() % 1500); }); },
    // A large object, and many that have one voxel of each block row.
    [&] {
      for (std::size_t i = 0; i < n; ++i)
      {
        image.labels[i] = i % 3 == 0 ? 100 + static_cast<int>(i % 977) : 1;
      }
    }
  };
  for (const auto & set : labels)
  {
    set();
    image.intensities = numbers;
    ASSERT_NO_FATAL_FAILURE(this->Compare(random, image, settings));
    for (float & value : image.intensities)
    {
      value = std::ldexp(value, static_cast<int>(random() % 200) - 130);
    }
    ASSERT_NO_FATAL_FAILURE(this->Compare(random, image, settings));
  }
}

/** Any limit of the host's tables gives the table, by a device or by the CPU, or an error: no voxel counts twice. */
TEST_P(MeasuredByDevices, KeepTheMemoryOfTables)
{
  std::mt19937               random(43);
  Trial<std::int32_t, float> image(random, { { 40, 10, 20, 1, 1 } }, 3, false, false);
  for (std::int32_t & label : image.labels)
  {
    label = 1 + static_cast<std::int32_t>(random() % 900);
  }
  MeasurementSettings settings = image.GetSettings();
  settings.contacts = false;
  const Box        whole = Box::FromExtent(image.extent);
  const BufferView labels = image.ViewOf(image.labels.data(), settings.labelKind, whole);
  const BufferView values = image.ViewOf(image.intensities.data(), settings.intensityKind, whole);
  const auto       executor = MakeThreadExecutor(1);
  Measurements     right(settings);
  right.Add(labels, &values, whole, *executor);
  const MeasurementTable table = this->MakeTable(right);
  ExecutionRequest       request = this->MakeRequest(settings, labels, values);
  request.backend = BackendChoice::Auto;
  request.executor = executor.get();
  int made = 0;
  int refused = 0;
  for (std::uint64_t memory = 1 << 16; memory < 1 << 22; memory += memory / 16)
  {
    SCOPED_TRACE(memory);
    settings.memory = memory;
    Measurements measured(settings);
    try
    {
      measured.Add(this->GetManager(), request);
      ++made;
    }
    catch (const BudgetError &)
    {
      ++refused;
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(ExpectEqual(this->MakeTable(measured), table));
  }
  EXPECT_GT(made, 0);
  EXPECT_GT(refused, 0);
  request.devices = { 99 };
  Measurements measured(settings);
  EXPECT_THROW(measured.Add(this->GetManager(), request), ParameterError);
}

TEST_P(MeasuredByDevices, LeaveToTheCpuWhatTheyCannotMeasure)
{
  std::mt19937        random(41);
  Manager &           manager = this->GetManager();
  MeasurementSettings settings;
  const auto          expectRefusal = [&](const auto & image, bool isMemory) {
    const Box        whole = Box::FromExtent(image.extent);
    const BufferView labels = image.ViewOf(image.labels.data(), settings.labelKind, whole);
    const BufferView values = image.ViewOf(image.intensities.data(), settings.intensityKind, whole);
    ExecutionRequest request = this->MakeRequest(settings, labels, values);
    Measurements     refused(settings);
    if (isMemory)
    {
      EXPECT_THROW(refused.Add(manager, request), BudgetError);
    }
    else
    {
      EXPECT_THROW(refused.Add(manager, request), ParameterError);
    }
    request.backend = BackendChoice::Auto;
    Measurements measured(settings);
    Measurements right(settings);
    measured.Add(manager, request);
    right.Add(labels, &values, whole, *MakeThreadExecutor(1));
    ExpectEqual(this->MakeTable(measured), this->MakeTable(right));
    request.image.upper[0] += 1;
    EXPECT_THROW(measured.Add(manager, request), ParameterError);
  };
  const Coordinates                        extent{ { 20, 10, 10, 1, 1 } };
  const Trial<std::uint32_t, std::uint8_t> far(random, extent, 3, false);
  const Trial<std::uint32_t, double>       doubles(random, extent, 3, false, false);
  settings = far.GetSettings();
  expectRefusal(far, false); // contacts
  settings.contacts = false;
  expectRefusal(far, true);
  settings = doubles.GetSettings();
  settings.contacts = false;
  expectRefusal(doubles, false);
}

INSTANTIATE_TEST_SUITE_P(Fake, MeasuredByDevices, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, MeasuredByDevices, testing::Values(Place::Cuda));

} // namespace
