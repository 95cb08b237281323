/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFilters.h"
#include "chunkwiseGridTrial.h"
#include "chunkwiseResampleField.h"
#include "chunkwiseResampleOperation.h"

#include <array>
#include <cmath>
#include <functional>
#include <limits>

using namespace chunkwise;

namespace
{

constexpr double Pi = 3.14159265358979323846;

/** Voxels, and those beyond the image, as doubles. */
using VoxelAt = std::function<double(const Coordinates & at)>;

/** The vector of a field at a voxel, as a sum over all of its grid. */
void
MoveByDefinition(const ResampleField & field, const double (&voxel)[3], double (&point)[3])
{
  double place[3];
  for (int i = 0; i < 3; ++i)
  {
    const double * const s = field.step[i];
    place[i] = s[0] * voxel[0] + (s[1] * voxel[1] + (s[2] * voxel[2] + field.start[i]));
    const auto last = static_cast<double>(field.extent[i] - 1);
    if (place[i] < -0.5 || place[i] > last + 0.5)
    {
      return;
    }
    place[i] = std::min(std::max(place[i], 0.0), last);
  }
  for (std::int64_t z = 0; z < field.extent[2]; ++z)
  {
    for (std::int64_t y = 0; y < field.extent[1]; ++y)
    {
      for (std::int64_t x = 0; x < field.extent[0]; ++x)
      {
        const auto weight = [&](int i, std::int64_t k) {
          return std::max(0.0, 1 - std::abs(place[i] - static_cast<double>(k)));
        };
        const auto at = static_cast<std::size_t>((z * field.extent[1] + y) * field.extent[0] + x);
        for (int i = 0; i < 3; ++i)
        {
          for (std::size_t k = 0; k < field.vectors->kernels.size(); ++k)
          {
            point[i] +=
              field.toImage[i][k] * weight(0, x) * weight(1, y) * weight(2, z) * field.vectors->kernels[k][at];
          }
        }
      }
    }
  }
}

/** The definition, slow and in double. Coefficients of splines solve the equations of interpolation along each axis.
 */
template <typename TIn>
class ResampledByDefinition
{
public:
  ResampledByDefinition(const ResampleOperation & operation, const std::vector<TIn> & voxels)
    : m_Operation(operation)
    , m_Stride(DenseStrides(operation.image))
    , m_Values(voxels.begin(), voxels.end())
  {
    for (int i = 0; i < ResampleOperation::Axes; ++i)
    {
      if (operation.GetAxis(i).isFiltered)
      {
        this->Solve(operation.axes[i]);
      }
    }
  }

  double
  At(const Coordinates & voxel) const
  {
    double point[3];
    for (int i = 0; i < 3; ++i)
    {
      const double * const m = m_Operation.matrix[i];
      const auto           at = [&](int o) { return static_cast<double>(voxel[m_Operation.axes[o]]); };
      point[i] = m[0] * at(0) + (m[1] * at(1) + (m[2] * at(2) + m_Operation.offset[i]));
    }
    if (m_Operation.field)
    {
      const auto at = [&](int o) { return static_cast<double>(voxel[m_Operation.axes[o]]); };
      MoveByDefinition(*m_Operation.field, { at(0), at(1), at(2) }, point);
    }
    for (int i = 0; i < 3 && m_Operation.points[0]; ++i)
    {
      point[i] = m_Operation.points[i][voxel[0]] + m_Operation.offset[i];
      if (!(std::abs(point[i]) < 1e6))
      {
        return m_Operation.value.ToDouble();
      }
    }
    for (int i = 0; i < 3; ++i)
    {
      const double last = static_cast<double>(m_Operation.image[m_Operation.axes[i]] - 1);
      const bool   isBeyond = m_Operation.outside == ResampleOutside::Value
                                ? point[i] < -0.5 || point[i] >= last + 0.5
                                : m_Operation.outside == ResampleOutside::Constant && (point[i] < 0 || point[i] > last);
      if (isBeyond)
      {
        return m_Operation.value.ToDouble();
      }
      if (m_Operation.outside <= ResampleOutside::Constant)
      {
        point[i] = std::min(std::max(point[i], -0.5), last + 0.5);
      }
    }
    return this->Along(2, point, voxel);
  }

private:
  double
  Along(int i, const double * point, Coordinates at) const
  {
    if (i < 0)
    {
      return m_Values[static_cast<std::size_t>(this->Offset(at))];
    }
    const int                     a = m_Operation.axes[i];
    const std::int64_t            n = m_Operation.image[a];
    const ResampleOperation::Axis axis = m_Operation.GetAxis(i);
    const bool                    isSpline = axis.kernel == TapKernel::Spline;
    const bool                    renormalizes = m_Operation.outside <= ResampleOutside::Constant && !isSpline;
    if (axis.kernel == TapKernel::None)
    {
      const auto nearest = static_cast<std::int64_t>(std::floor(point[i] + 0.5));
      return this->Voxel(i, renormalizes ? std::min(std::max<std::int64_t>(nearest, 0), n - 1) : nearest, point, at);
    }
    const auto reach = static_cast<std::int64_t>(std::ceil(4 * axis.scale)) + 1;
    double     sum = 0;
    double     all = 0;
    for (std::int64_t k = static_cast<std::int64_t>(std::floor(point[i])) - reach; k <= point[i] + double(reach); ++k)
    {
      const double weight = this->Weight(axis.kernel, std::abs(static_cast<double>(k) - point[i]) / axis.scale);
      if (weight != 0 && !(renormalizes && (k < 0 || k >= n)))
      {
        sum += weight * this->Voxel(i, k, point, at);
        all += weight;
      }
    }
    return sum / all;
  }

  /** The value at `k` of an axis, of which the axes before it are interpolated. */
  double
  Voxel(int i, std::int64_t k, const double * point, Coordinates at) const
  {
    const int          a = m_Operation.axes[i];
    const std::int64_t n = m_Operation.image[a];
    const bool         mirrors =
      m_Operation.outside == ResampleOutside::Mirror || m_Operation.outside <= ResampleOutside::Constant;
    if (m_Operation.outside == ResampleOutside::GridConstant && (k < 0 || k >= n))
    {
      return m_Operation.value.ToDouble();
    }
    while (k < 0 || k >= n)
    {
      if (m_Operation.outside == ResampleOutside::Nearest)
      {
        k = k < 0 ? 0 : n - 1;
      }
      else if (m_Operation.outside == ResampleOutside::GridWrap)
      {
        k += k < 0 ? n : -n;
      }
      else if (n == 1)
      {
        k = 0;
      }
      else
      {
        k = k < 0 ? (mirrors ? -k : -k - 1) : (mirrors ? 2 * n - 2 - k : 2 * n - 1 - k);
      }
    }
    at[a] = k;
    return this->Along(i - 1, point, at);
  }

  double
  Weight(TapKernel kernel, double x) const
  {
    switch (kernel)
    {
      case TapKernel::Linear:
        return std::max(0.0, 1 - x);
      case TapKernel::Spline:
        return x < 1 ? (4 - 6 * x * x + 3 * x * x * x) / 6 : x < 2 ? (2 - x) * (2 - x) * (2 - x) / 6 : 0;
      case TapKernel::Keys:
        return x < 1 ? 1.5 * x * x * x - 2.5 * x * x + 1 : x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2 : 0;
      default:
        return x >= 3 ? 0 : x == 0 ? 1 : std::sin(Pi * x) / (Pi * x) * std::sin(Pi * x / 3) / (Pi * x / 3);
    }
  }

  std::int64_t
  Offset(const Coordinates & at) const
  {
    std::int64_t offset = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      offset += at[a] * m_Stride[a];
    }
    return offset;
  }

  /** c[k - 1] + 4 c[k] + c[k + 1] = 6 f[k], by Jacobi's iteration. */
  void
  Solve(int axis)
  {
    const std::int64_t n = m_Operation.image[axis];
    const auto         beside = [&](std::int64_t k) {
      if (n == 1)
      {
        return std::int64_t{ 0 };
      }
      switch (m_Operation.outside)
      {
        case ResampleOutside::GridWrap:
          return (k + n) % n;
        case ResampleOutside::Reflect:
          return k < 0 ? 0 : k >= n ? n - 1 : k;
        default:
          return k < 0 ? 1 : k >= n ? n - 2 : k;
      }
    };
    Box lines = Box::FromExtent(m_Operation.image);
    lines.upper[axis] = 1;
    std::vector<double> line(static_cast<std::size_t>(n));
    std::vector<double> next(line);
    ForEachIndex(lines, [&](const Coordinates & at) {
      const auto value = [&](std::int64_t k) -> double & {
        return m_Values[static_cast<std::size_t>(this->Offset(at) + k * m_Stride[axis])];
      };
      std::fill(line.begin(), line.end(), 0.0);
      for (int pass = 0; pass < 60; ++pass)
      {
        for (std::int64_t k = 0; k < n; ++k)
        {
          next[static_cast<std::size_t>(k)] = (6 * value(k) - line[static_cast<std::size_t>(beside(k - 1))] -
                                               line[static_cast<std::size_t>(beside(k + 1))]) /
                                              4;
        }
        line.swap(next);
      }
      for (std::int64_t k = 0; k < n; ++k)
      {
        value(k) = line[static_cast<std::size_t>(k)];
      }
    });
  }

  const ResampleOperation & m_Operation;
  const Coordinates         m_Stride;
  std::vector<double>       m_Values;
};

template <typename TIn, typename TOut>
using ResampleTrial = GridTrial<TIn, TOut, ResampleOperation>;

template <typename TIn>
std::vector<TIn>
NoiseOf(std::mt19937 & random, const Coordinates & extent)
{
  std::vector<TIn> voxels(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  for (TIn & voxel : voxels)
  {
    voxel = static_cast<TIn>(random() % 120);
  }
  return voxels;
}

double
Real(std::mt19937 & random, double low, double high)
{
  return low + (high - low) * static_cast<double>(random() % 100003) / 100003;
}

/** A grid of any kind over an image of a random size. */
std::shared_ptr<ResampleOperation>
RandomGrid(std::mt19937 & random, int largest)
{
  const auto operation = std::make_shared<ResampleOperation>();
  operation->image = RandomExtent(random, largest);
  operation->output = operation->image;
  const int rows = static_cast<int>(random() % 4);
  for (int i = 0; i < 3; ++i)
  {
    operation->output[i] = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(largest));
    const double step = Real(random, -2.5, 2.5);
    for (int o = 0; o < 3; ++o)
    {
      const bool isFree = rows == 0 || (rows == 1 && i < 2 && o < 2);
      operation->matrix[i][o] = i == o ? step : isFree ? Real(random, -1, 1) : 0;
    }
    operation->offset[i] = Real(random, -3, static_cast<double>(operation->image[i]));
    if (random() % 4 == 0)
    {
      operation->matrix[i][i] = std::nearbyint(operation->matrix[i][i]);
      operation->offset[i] = std::nearbyint(operation->offset[i]);
    }
  }
  operation->interpolation = static_cast<Interpolation>(random() % 4);
  operation->outside = static_cast<ResampleOutside>(random() % 8);
  const bool pads =
    operation->outside == ResampleOutside::GridConstant || operation->outside == ResampleOutside::Nearest;
  operation->prefilter = !pads && random() % 4;
  operation->antialias = random() % 2;
  operation->value = PixelValue(7);
  return operation;
}

/** Vectors of up to five voxels on a grid of any size, of which a part lies beside the output. */
std::shared_ptr<const ResampleField>
RandomField(std::mt19937 & random, const Coordinates & output)
{
  const auto  field = std::make_shared<ResampleField>();
  const auto  vectors = std::make_shared<KernelStack>();
  std::size_t voxels = 1;
  for (int i = 0; i < 3; ++i)
  {
    vectors->extent[i] = field->extent[i] = 1 + static_cast<std::int64_t>(random() % 12);
    voxels *= static_cast<std::size_t>(field->extent[i]);
    const double step = static_cast<double>(field->extent[i]) / static_cast<double>(output[i]);
    for (int o = 0; o < 3; ++o)
    {
      field->step[i][o] = i == o ? step * Real(random, 0.7, 1.1) : random() % 2 ? 0 : Real(random, -0.1, 0.1);
      field->toImage[i][o] = i == o ? Real(random, -2, 2) : random() % 2 ? 0 : Real(random, -1, 1);
    }
    field->start[i] = Real(random, -1, 1);
    field->output[i] = output[i];
  }
  if (random() % 3 == 0)
  {
    // The grid is the output's.
    voxels = static_cast<std::size_t>(output[0] * output[1] * output[2]);
    for (int i = 0; i < 3; ++i)
    {
      vectors->extent[i] = field->extent[i] = output[i];
      field->start[i] = 0;
      for (int o = 0; o < 3; ++o)
      {
        field->step[i][o] = i == o ? 1 : 0;
      }
    }
  }
  vectors->kernels.resize(1 + random() % 3);
  for (std::vector<double> & component : vectors->kernels)
  {
    component.resize(voxels);
    std::generate(component.begin(), component.end(), [&] { return Real(random, -5, 5); });
  }
  field->vectors = vectors;
  field->Prepare();
  return field;
}

/** Points inside the image and around it, some nowhere. */
using OwnPoints = std::array<std::vector<double>, 3>;

OwnPoints
RandomPoints(std::mt19937 & random, ResampleOperation & operation)
{
  operation.antialias = false;
  operation.image[3] = operation.image[4] = 1;
  operation.output = Coordinates::Filled(1);
  operation.output[0] = 1 + static_cast<std::int64_t>(random() % 300);
  OwnPoints points;
  for (int i = 0; i < 3; ++i)
  {
    std::fill_n(operation.matrix[i], 3, 0.0);
    const auto   last = static_cast<double>(operation.image[i] - 1);
    const double reach = random() % 2 ? 3 : 0;
    points[static_cast<std::size_t>(i)].resize(static_cast<std::size_t>(operation.output[0]));
    for (double & point : points[static_cast<std::size_t>(i)])
    {
      point = Real(random, -reach, last + reach) - operation.offset[i];
      point = random() % 200 == 0 ? std::numeric_limits<double>::quiet_NaN() : point;
    }
    operation.points[i] = points[static_cast<std::size_t>(i)].data();
  }
  return points;
}

/** The points of an operation's voxels. */
enum class PointKind
{
  Grid,
  Field,
  Own
};

template <typename TIn, typename TOut>
void
CompareWithDefinition(unsigned int seed, int trials, double bound, PointKind kind = PointKind::Grid)
{
  std::mt19937 random(seed);
  Manager      manager({});
  for (int trial = 0; trial < trials; ++trial)
  {
    const auto grid = RandomGrid(random, 12);
    OwnPoints  points;
    if (kind == PointKind::Field)
    {
      grid->field = RandomField(random, grid->output);
    }
    else if (kind == PointKind::Own)
    {
      points = RandomPoints(random, *grid);
    }
    ResampleTrial<TIn, TOut> t(grid, {});
    t.voxels = NoiseOf<TIn>(random, t.operation->image);
    if (!std::is_same<TIn, TOut>::value && t.operation->interpolation == Interpolation::Nearest)
    {
      continue;
    }
    t.request.inputs = { DenseView(t.voxels.data(), PixelTypeOf<TIn>(), t.request.image) };
    t.Run(manager);
    const ResampledByDefinition<TIn> definition(*t.operation, t.voxels);
    int                              wrong = 0;
    ForEachIndex(t.request.region, [&](const Coordinates & at) {
      double expected = definition.At(at);
      if (std::is_integral<TOut>::value)
      {
        expected = std::min(std::max(expected, double(std::numeric_limits<TOut>::min())),
                            double(std::numeric_limits<TOut>::max()));
      }
      const auto result = static_cast<double>(At<TOut>(t.request.output, at));
      // Integers may be rounded to either side.
      const double most = std::is_integral<TOut>::value ? 0.5 + bound : bound;
      if (!(std::abs(result - expected) <= most) && ++wrong == 1)
      {
        ADD_FAILURE() << "trial " << trial << ": " << t.operation->GetKey() << " at " << ToString(at) << ": " << result
                      << " and not " << expected;
      }
    });
    ASSERT_EQ(wrong, 0);
  }
}

TEST(Resample, GivesWhatTheDefinitionGives)
{
  CompareWithDefinition<float, float>(1, 120, 3e-3);
  CompareWithDefinition<std::uint8_t, std::uint8_t>(2, 60, 3e-3);
  CompareWithDefinition<std::int16_t, double>(3, 50, 1e-9);
  CompareWithDefinition<double, double>(4, 60, 1e-9);
}

TEST(Resample, MovesPointsByFields)
{
  CompareWithDefinition<float, float>(11, 60, 3e-3, PointKind::Field);
  CompareWithDefinition<std::uint8_t, std::uint8_t>(12, 30, 3e-3, PointKind::Field);
  CompareWithDefinition<double, double>(13, 40, 1e-9, PointKind::Field);
}

TEST(Resample, TakesPointsThatAreGiven)
{
  CompareWithDefinition<float, float>(21, 80, 3e-3, PointKind::Own);
  CompareWithDefinition<std::uint8_t, std::uint8_t>(22, 40, 3e-3, PointKind::Own);
  CompareWithDefinition<double, double>(23, 60, 1e-9, PointKind::Own);
}

/** In chunks, in streams, as a part, by one thread or several, with each instruction set. */
template <typename TPixel>
void
CompareCuts(unsigned int seed, int trials, bool moves = false)
{
  std::mt19937 random(seed);
  Manager      manager({});
  int          chunked = 0;
  for (int trial = 0; trial < trials; ++trial)
  {
    const auto operation = RandomGrid(random, trial % 3 ? 40 : 14);
    operation->interpolation = static_cast<Interpolation>(trial % 5);
    if (trial % 3 == 2)
    {
      // Longer than the boxes that coefficients need.
      operation->image = { { 9, 8, 700, 1, 1 } };
      operation->output = { { 9, 10, 600, 1, 1 } };
      operation->matrix[2][2] = trial % 2 ? 1.1 : -1.1;
      operation->offset[2] = trial % 2 ? 0.3 : 660;
      operation->interpolation = trial % 4 ? Interpolation::Cubic : operation->interpolation;
      operation->antialias = false;
      operation->outside = static_cast<ResampleOutside>(trial / 3 % 3);
      operation->prefilter = true;
    }
    operation->field = moves ? RandomField(random, operation->output) : nullptr;
    ResampleTrial<TPixel, TPixel> t(operation, NoiseOf<TPixel>(random, operation->image));
    chunked += CompareGridCuts(random, manager, t, "trial " + std::to_string(trial) + " " + t.operation->GetKey());
    if (testing::Test::HasFailure())
    {
      return;
    }
  }
  EXPECT_GT(chunked, trials / 10);
}

TEST(Resample, HasTheSameBitsHoweverItIsCut)
{
  CompareCuts<float>(5, 15);
  CompareCuts<std::uint8_t>(6, 12);
  CompareCuts<double>(7, 9);
}

TEST(Resample, WithFieldsHasTheSameBitsHoweverItIsCut)
{
  CompareCuts<float>(14, 4, true);
  CompareCuts<std::uint16_t>(15, 3, true);
  CompareCuts<double>(16, 3, true);
}

/** Turned a little, as images of registrations are: voxels of the output are about as large as the image's. */
void
TurnALittle(std::mt19937 & random, ResampleOperation & operation)
{
  for (int i = 0; i < 3; ++i)
  {
    for (int o = 0; o < 3; ++o)
    {
      operation.matrix[i][o] = i == o ? Real(random, 0.8, 1) : Real(random, -0.2, 0.2);
    }
    operation.offset[i] = Real(random, -2, 5);
  }
  if (random() % 3 == 0)
  {
    // In planes.
    operation.matrix[2][0] = operation.matrix[2][1] = operation.matrix[0][2] = operation.matrix[1][2] = 0;
    operation.matrix[2][2] = operation.offset[2] = 1;
  }
}

TEST(Resample, NeedsNoMoreInputThanItSaysBefore)
{
  std::mt19937 random(28);
  for (int trial = 0; trial < 200; ++trial)
  {
    const auto operation = RandomGrid(random, trial % 2 ? 14 : 60);
    operation->field = trial % 4 ? nullptr : RandomField(random, operation->output);
    for (int box = 0; box < 30; ++box)
    {
      const Box         output = RandomRegion(random, operation->output);
      const Coordinates most = operation->GetMostInput(output.Extents(), operation->image);
      const Box         input = GetInputBox(*operation, output, Box::FromExtent(operation->image));
      for (int a = 0; a < MaxDimension && !output.IsEmpty(); ++a)
      {
        ASSERT_LE(input.Extent(a), most[a]) << ToString(output) << " along " << a << ": " << operation->GetKey();
      }
    }
  }
}

class ResampleOnDevices : public KernelTest
{
protected:
  /** The bits of the CPU, under any budget. */
  template <typename TIn, typename TOut>
  void
  Compare(unsigned int seed, int trials, bool moves = false)
  {
    std::mt19937 random(seed);
    Manager      cpu({});
    int          chunked = 0;
    for (int trial = 0; trial < trials; ++trial)
    {
      const auto operation = RandomGrid(random, trial % 3 ? 40 : 14);
      operation->interpolation = static_cast<Interpolation>(trial % 5);
      if (!std::is_same<TIn, TOut>::value &&
          (operation->interpolation == Interpolation::Nearest || operation->interpolation == Interpolation::Label))
      {
        operation->interpolation = Interpolation::Linear;
      }
      if (trial % 2)
      {
        TurnALittle(random, *operation);
      }
      if (trial % 5 == 4)
      {
        operation->axes[2] = 3;
        std::swap(operation->image[2], operation->image[3]);
        std::swap(operation->output[2], operation->output[3]);
      }
      if (moves)
      {
        Coordinates grid = operation->output;
        grid[2] = operation->output[operation->axes[2]];
        operation->field = RandomField(random, grid);
      }
      ResampleTrial<TIn, TOut> t(operation, NoiseOf<TIn>(random, operation->image));
      t.request.region = RandomRegion(random, operation->output);
      const std::vector<TOut> expected = t.Run(cpu);
      t.request.backend = BackendChoice::CUDA;
      const auto run = [&](std::size_t bytes) {
        t.request.budgets.device = bytes;
        const std::vector<TOut> found = t.Run(this->GetManager());
        EXPECT_EQ(t.report.chunksOnHost, 0);
        EXPECT_LE(t.report.peakDevice, bytes ? bytes : SIZE_MAX);
        chunked += t.report.plan.chunks.size() > 1 ? 1 : 0;
        for (std::size_t i = 0; i < found.size(); ++i)
        {
          ASSERT_EQ(std::memcmp(&found[i], &expected[i], sizeof(TOut)), 0)
            << +found[i] << " and not " << +expected[i] << " at " << i << ", " << bytes << " bytes, trial " << trial
            << " " << operation->GetKey();
        }
      };
      run(0);
      for (std::size_t bytes = 1 << 22; bytes > 10000 && !testing::Test::HasFailure(); bytes -= bytes / 3)
      {
        try
        {
          run(bytes);
        }
        catch (const BudgetError & error)
        {
          // The bytes that it names are enough.
          EXPECT_GT(error.needed, bytes);
          run(error.needed);
          break;
        }
      }
      if (testing::Test::HasFailure())
      {
        return;
      }
    }
    EXPECT_GT(chunked, trials / 10);
  }
};

TEST_P(ResampleOnDevices, GivesTheBitsOfTheCpu)
{
  this->Compare<float, float>(21, 30);
  this->Compare<double, double>(22, 20);
  this->Compare<std::uint8_t, std::uint8_t>(23, 20);
  this->Compare<std::int16_t, float>(24, 15);
  this->Compare<std::int32_t, std::int32_t>(25, 10);
  this->Compare<std::uint16_t, double>(26, 10);
}

TEST_P(ResampleOnDevices, GivesTheBitsOfTheCpuWithFields)
{
  this->Compare<float, float>(31, 12, true);
  this->Compare<double, double>(32, 6, true);
  this->Compare<std::uint8_t, std::uint8_t>(33, 10, true);
  this->Compare<std::int16_t, float>(34, 5, true);
}

/** Labels of many voxels each: a box has several. */
TEST_P(ResampleOnDevices, TakesTheMajorityOfManyVoxels)
{
  std::mt19937 random(27);
  Manager      cpu({});
  for (int trial = 0; trial < 6; ++trial)
  {
    const auto operation = RandomGrid(random, 30);
    operation->interpolation = Interpolation::Label;
    operation->antialias = true;
    operation->matrix[0][0] = 2.7;
    operation->matrix[1][1] = 1.9;
    ResampleTrial<std::uint16_t, std::uint16_t> t(operation, NoiseOf<std::uint16_t>(random, operation->image));
    for (std::uint16_t & label : t.voxels)
    {
      label /= 40;
    }
    const auto expected = t.Run(cpu);
    t.request.backend = BackendChoice::CUDA;
    EXPECT_EQ(t.Run(this->GetManager()), expected) << operation->GetKey();
  }
}

/** Coefficients of splines along lines that are longer than what a filter reaches. */
TEST_P(ResampleOnDevices, FiltersLongLines)
{
  std::mt19937 random(28);
  Manager      cpu({});
  for (int trial = 0; trial < 9; ++trial)
  {
    const auto operation = RandomGrid(random, 30);
    operation->interpolation = Interpolation::Cubic;
    operation->outside = static_cast<ResampleOutside>(trial % 3);
    operation->prefilter = true;
    operation->antialias = false;
    operation->image = operation->output = { { 5, 6, 7, 1, 1 } };
    operation->image[trial / 3] = operation->output[trial / 3] = 150;
    TurnALittle(random, *operation);
    ResampleTrial<float, float> t(operation, NoiseOf<float>(random, operation->image));
    const auto                  expected = t.Run(cpu);
    t.request.backend = BackendChoice::CUDA;
    const auto found = t.Run(this->GetManager());
    ASSERT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)), 0) << operation->GetKey();
  }
}

INSTANTIATE_TEST_SUITE_P(Fake, ResampleOnDevices, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, ResampleOnDevices, testing::Values(Place::Cuda));

TEST(Resample, OfAxesThatDependOnEachOtherIsThatOfAxesThatDoNot)
{
  std::mt19937 random(8);
  Manager      manager({});
  for (int trial = 0; trial < 60; ++trial)
  {
    ResampleTrial<float, float> t(RandomGrid(random, 20), {});
    t.operation->interpolation = static_cast<Interpolation>(1 + trial % 3);
    // Points that are voxels have another kernel.
    t.operation->offset[0] = 0.3;
    for (int i = 0; i < 3; ++i)
    {
      for (int o = 0; o < 3; ++o)
      {
        t.operation->matrix[i][o] = i == o ? t.operation->matrix[i][o] : 0;
      }
    }
    t.voxels = NoiseOf<float>(random, t.operation->image);
    t.request.inputs = { DenseView(t.voxels.data(), PixelType::Float32, t.request.image) };
    const std::vector<float> expected = t.Run(manager);
    // Too small to move a point, but not 0.
    t.operation->matrix[0][1] = 1e-300;
    EXPECT_TRUE(t.Run(manager) == expected) << t.operation->GetKey();
  }
}

TEST(Resample, KeepsTheBitsOfVoxelsWherePointsAreVoxels)
{
  std::mt19937 random(9);
  Manager      manager({});
  for (int kind = 0; kind < 5; ++kind)
  {
    const auto operation = std::make_shared<ResampleOperation>();
    operation->image = operation->output = { { 13, 9, 7, 2, 1 } };
    operation->interpolation = static_cast<Interpolation>(kind);
    std::vector<float> voxels = NoiseOf<float>(random, operation->image);
    voxels[5] = std::numeric_limits<float>::infinity();
    voxels[77] = -0.0f;
    std::uint32_t nan = 0xffc12345u;
    std::memcpy(&voxels[500], &nan, sizeof(nan));
    ResampleTrial<float, float> t(operation, voxels);
    t.Run(manager);
    EXPECT_EQ(std::memcmp(t.output.data(), voxels.data(), voxels.size() * sizeof(float)), 0) << kind;
    // Reversed, and shifted.
    operation->matrix[1][1] = -1;
    operation->offset[1] = 8;
    operation->offset[0] = 3;
    t.Run(manager);
    EXPECT_EQ(std::memcmp(&t.output[0], &voxels[8 * 13 + 3], 10 * sizeof(float)), 0);
  }
  const auto operation = std::make_shared<ResampleOperation>();
  operation->image = operation->output = { { 3, 1, 1, 1, 1 } };
  ResampleTrial<std::int64_t, std::int64_t> t(operation, { INT64_MAX, INT64_MIN, (1ll << 53) + 1 });
  EXPECT_EQ(t.Run(manager), t.voxels);
}

TEST(Resample, KeepsConstants)
{
  std::mt19937 random(10);
  Manager      manager({});
  for (int trial = 0; trial < 60; ++trial)
  {
    ResampleTrial<float, float> t(RandomGrid(random, 20), {});
    t.operation->prefilter = true;
    t.operation->outside = trial % 2 ? ResampleOutside::Renormalized : ResampleOutside::Mirror;
    t.voxels.assign(static_cast<std::size_t>(t.request.image.NumberOfVoxels()), 0.1f);
    t.request.inputs = { DenseView(t.voxels.data(), PixelType::Float32, t.request.image) };
    EXPECT_EQ(t.Run(manager), std::vector<float>(t.output.size(), 0.1f)) << t.operation->GetKey();
  }
}

TEST(Resample, OfLabelsTakesTheMajority)
{
  Manager    manager({});
  const auto operation = std::make_shared<ResampleOperation>();
  operation->image = { { 4, 1, 1, 1, 1 } };
  operation->output = { { 2, 1, 1, 1, 1 } };
  operation->matrix[0][0] = 2;
  operation->offset[0] = 0.5;
  operation->interpolation = Interpolation::Label;
  // Weights of the kernel, which is twice as wide: 1/4 and 3/4 to either side.
  ResampleTrial<std::int32_t, std::int32_t> t(operation, { -5, -5, 9, 9 });
  EXPECT_EQ(t.Run(manager), (std::vector<std::int32_t>{ -5, 9 }));
  t.voxels = { 3, 2, 2, 3 };
  EXPECT_EQ(t.Run(manager), (std::vector<std::int32_t>{ 2, 2 }));
  operation->antialias = false;
  EXPECT_EQ(t.Run(manager), (std::vector<std::int32_t>{ 2, 2 })) << "the lower of two with the same weight";
  operation->matrix[0][0] = 1;
  operation->offset[0] = 0.7;
  t.voxels = { 1, 2, 3, 4 };
  EXPECT_EQ(t.Run(manager), (std::vector<std::int32_t>{ 2, 3 }));
}

FilterImage
ImageOf(int dimension, const Coordinates & extent)
{
  FilterImage image;
  image.dimension = dimension;
  image.extent = extent;
  image.inputKind = image.outputKind = PixelType::Float32;
  return image;
}

TEST(Resample, FindsTheGridThatIsAskedFor)
{
  FilterImage image = ImageOf(3, { { 100, 50, 20, 1, 1 } });
  image.spacing[0] = image.spacing[1] = 0.5;
  image.spacing[2] = 2;
  image.origin[2] = 10;
  FilterParameters spacing;
  spacing.Set("OutputSpacing", std::vector<double>{ 1 });
  FilterImage output = GetFilterOutputImage("resample", spacing, image);
  EXPECT_EQ(output.extent, (Coordinates{ { 50, 25, 40, 1, 1 } }));
  EXPECT_EQ(output.spacing[2], 1);
  EXPECT_EQ(output.origin[0], 0.25) << "the image begins at -0.25";
  EXPECT_EQ(output.origin[2], 9.5);
  EXPECT_EQ(GetFilterOutputBox("resample", spacing, image), Box::FromExtent(output.extent));

  FilterParameters size;
  size.Set("Size", std::vector<std::int64_t>{ 10, 10, 10 });
  output = GetFilterOutputImage("resample", size, image);
  EXPECT_EQ(output.extent, (Coordinates{ { 10, 10, 10, 1, 1 } }));
  EXPECT_EQ(output.spacing[0], 5);

  // A turned image: the same points, whichever way its grid is said.
  image.direction[0][0] = image.direction[1][1] = 0;
  image.direction[0][1] = -1;
  image.direction[1][0] = 1;
  output = GetFilterOutputImage("resample", spacing, image);
  FilterParameters reference;
  reference.Set(
    "Reference",
    std::vector<double>{
      50, 25, 40, 1, 1, 1, output.origin[0], output.origin[1], output.origin[2], 0, -1, 0, 1, 0, 0, 0, 0, 1 });
  const auto byEdges = MakeFilterOperation("resample", spacing, image);
  const auto bySpace = MakeFilterOperation("resample", reference, image);
  EXPECT_EQ(byEdges->GetKey(), bySpace->GetKey());

  // A quarter turn about the first voxel.
  FilterParameters affine;
  affine.Set("Affine", std::vector<double>{ 0, -1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0 });
  const auto turned = std::dynamic_pointer_cast<const ResampleOperation>(
    MakeFilterOperation("resample", affine, ImageOf(3, { { 9, 9, 9, 1, 1 } })));
  EXPECT_EQ(turned->matrix[0][1], -1);
  EXPECT_EQ(turned->matrix[1][0], 1);
  EXPECT_TRUE(turned->IsOnVoxels());
}

/** One vector for all voxels. */
std::shared_ptr<const KernelStack>
MakeVectors(const Coordinates & extent, std::vector<double> vector)
{
  const auto stack = std::make_shared<KernelStack>();
  stack->extent = extent;
  for (const double component : vector)
  {
    stack->kernels.emplace_back(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()), component);
  }
  return stack;
}

TEST(Resample, FieldsAreInPhysicalUnits)
{
  FilterImage image = ImageOf(3, { { 12, 11, 10, 1, 1 } });
  image.spacing[0] = image.spacing[1] = 0.5;
  image.spacing[2] = 2;
  image.origin[1] = 7;
  // A quarter turn about z.
  image.direction[0][0] = image.direction[1][1] = 0;
  image.direction[0][1] = -1;
  image.direction[1][0] = 1;
  const std::vector<double> affine = { 0.9, 0.1, 0, 1, -0.2, 1, 0, 0, 0, 0, 1, 0.5 };
  const std::vector<double> vector = { 1.5, -0.75, 3 };
  // The same translation, before the transform.
  std::vector<double> moved = affine;
  for (std::size_t i = 0; i < 3; ++i)
  {
    for (std::size_t k = 0; k < 3; ++k)
    {
      moved[4 * i + 3] += affine[4 * i + k] * vector[k];
    }
  }
  const auto make = [&](const FilterParameters & parameters) {
    return std::const_pointer_cast<ResampleOperation>(
      std::dynamic_pointer_cast<const ResampleOperation>(MakeFilterOperation("resample", parameters, image)));
  };
  FilterParameters expected;
  expected.Set("Affine", moved);
  FilterParameters byField;
  byField.Set("Affine", affine);
  byField.Set("Displacements", MakeVectors(image.extent, vector));
  FilterParameters byOwnGrid = byField;
  byOwnGrid.Set("Displacements", MakeVectors({ { 3, 2, 4, 1, 1 } }, vector));
  byOwnGrid.Set("DisplacementGrid",
                std::vector<double>{ 3, 2, 4, 40, 40, 40, -40, -30, -60, 1, 0, 0, 0, 1, 0, 0, 0, 1 });
  std::mt19937                random(17);
  Manager                     manager({});
  ResampleTrial<float, float> t(make(expected), NoiseOf<float>(random, image.extent));
  const std::vector<float>    wanted = t.Run(manager);
  for (const FilterParameters & parameters : { byField, byOwnGrid })
  {
    t.request.operation = make(parameters);
    const std::vector<float> found = t.Run(manager);
    for (std::size_t i = 0; i < found.size(); ++i)
    {
      ASSERT_NEAR(found[i], wanted[i], 1e-3) << i;
    }
  }
  // Points beyond the field stay.
  byOwnGrid.Set("DisplacementGrid", std::vector<double>{ 3, 2, 4, 1, 1, 1, 900, 900, 900, 1, 0, 0, 0, 1, 0, 0, 0, 1 });
  FilterParameters none;
  none.Set("Affine", affine);
  t.request.operation = make(none);
  const std::vector<float> still = t.Run(manager);
  t.request.operation = make(byOwnGrid);
  EXPECT_EQ(t.Run(manager), still);

  const auto refuse = [&](const FilterParameters & parameters, const std::string & message) {
    try
    {
      make(parameters);
      ADD_FAILURE() << "taken; there should be " << message;
    }
    catch (const ParameterError & error)
    {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  };
  FilterParameters bad;
  bad.Set("Displacements", MakeVectors({ { 3, 2, 4, 1, 1 } }, vector));
  refuse(bad, "of the output, without");
  bad.Set("Displacements", MakeVectors(image.extent, { 1, 2 }));
  refuse(bad, "2 components a voxel");
  bad.Set("Displacements", MakeVectors(image.extent, { 1, 2, std::nan("") }));
  refuse(bad, "finite");
  FilterParameters alone;
  alone.Set("DisplacementGrid", std::vector<double>{ 1 });
  refuse(alone, "it must be given with Displacements");
}

/** As devices have it: a copy of the vectors that a box needs moves its voxels by the same bits. */
TEST(Resample, PartsOfFieldsMoveVoxelsAsTheWholeFieldDoes)
{
  std::mt19937 random(19);
  for (int trial = 0; trial < 300; ++trial)
  {
    const auto   operation = RandomGrid(random, 20);
    const auto   field = RandomField(random, operation->output);
    const Box    box = RandomRegion(random, operation->output);
    auto         moves = field->GetMoves();
    const auto   all = moves;
    Coordinates  part = Coordinates::Filled(1);
    std::int64_t last[3];
    field->GetPart(box.lower, box.upper, moves.lower, last);
    for (int i = 0; i < 3; ++i)
    {
      part[i] = last[i] - moves.lower[i] + 1;
      ASSERT_GE(part[i], 1);
      ASSERT_LE(part[i], field->CountMostOfPart(i, box.Extents()));
    }
    std::vector<double> copies[3];
    for (int k = 0; k < all.components; ++k)
    {
      for (std::int64_t z = 0; z < part[2]; ++z)
      {
        for (std::int64_t y = 0; y < part[1]; ++y)
        {
          const double * const row = all.vectors[k] + moves.lower[0] + (moves.lower[1] + y) * all.stride[1] +
                                     (moves.lower[2] + z) * all.stride[2];
          copies[k].insert(copies[k].end(), row, row + part[0]);
        }
      }
      moves.vectors[k] = copies[k].data();
    }
    moves.stride[1] = part[0];
    moves.stride[2] = part[0] * part[1];
    for (Coordinates at = box.lower; at[2] < box.upper[2]; ++at[2])
    {
      for (at[1] = box.lower[1]; at[1] < box.upper[1]; ++at[1])
      {
        for (at[0] = box.lower[0]; at[0] < box.upper[0]; ++at[0])
        {
          double found[3];
          double expected[3];
          moves.FindVector(at, found);
          all.FindVector(at, expected);
          ASSERT_EQ(std::memcmp(found, expected, sizeof(found)), 0) << ToString(at);
        }
      }
    }
  }
}

TEST(Resample, NeedsWhatVoxelsWithinAChunkAreMovedTo)
{
  // The corners of the chunk stay, one voxel within it is moved far.
  const auto extent = Coordinates{ { 40, 40, 1, 1, 1 } };
  const auto vectors = std::const_pointer_cast<KernelStack>(MakeVectors(extent, { 0, 0 }));
  vectors->kernels[0][20 * 40 + 20] = 15;
  FilterParameters parameters;
  parameters.Set("Displacements", std::shared_ptr<const KernelStack>(vectors));
  parameters.Set("Interpolation", "nearest");
  const FilterImage image = ImageOf(2, extent);
  const auto        operation = std::const_pointer_cast<ResampleOperation>(
    std::dynamic_pointer_cast<const ResampleOperation>(MakeFilterOperation("resample", parameters, image)));
  std::mt19937                random(18);
  Manager                     manager({});
  ResampleTrial<float, float> t(operation, NoiseOf<float>(random, extent));
  t.Run(manager);
  EXPECT_EQ(t.output[20 * 40 + 20], t.voxels[20 * 40 + 35]);
  EXPECT_EQ(t.output[20 * 40 + 21], t.voxels[20 * 40 + 21]);
  const Box chunk = { { { 16, 16, 0, 0, 0 } }, { { 24, 24, 1, 1, 1 } } };
  EXPECT_GE(GetInputBox(*operation, chunk, t.request.image).upper[0], 36);
}

TEST(Resample, RefusesWhatMakesNoGrid)
{
  const FilterImage image = ImageOf(3, { { 10, 10, 10, 1, 1 } });
  const auto        expect = [&](const std::string & name, ParameterValue value, const std::string & message) {
    FilterParameters parameters;
    parameters.Set(name, std::move(value));
    try
    {
      MakeFilterOperation("resample", parameters, image);
      ADD_FAILURE() << name << " is taken";
    }
    catch (const ParameterError & error)
    {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  };
  expect("OutputSpacing", std::vector<double>{ 0 }, "OutputSpacing: 0");
  expect("OutputSpacing", std::vector<double>{ 1, 2 }, "Spacing");
  expect("OutputSpacing", std::vector<double>{ 1e-300 }, "Spacing");
  expect("Size", std::vector<std::int64_t>{ 0 }, "Size: 0");
  expect("Size", std::vector<std::int64_t>{ 1 << 22 }, "2^63");
  expect("Scale", std::vector<double>{ 1e-6 }, "");
  expect("Affine", std::vector<double>{ 1, 2, 3 }, "Affine: 3 numbers");
  expect("Affine", std::vector<double>{ 1e18, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0 }, "2^52");
  expect("OutputDirection", std::vector<double>{ 1, 0 }, "OutputDirection: 2 numbers");
  expect("Interpolation", std::string("cubical"), "Interpolation");
}

} // namespace
