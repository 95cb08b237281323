/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// What only a direct call of a host kernel shows: scratch, strides, stops, workers and instruction sets.
#include "chunkwiseCpuLevel.h"
#include "chunkwiseDescendingQueue.h"
#include "chunkwiseDevice.h"
#include "chunkwiseError.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseOracle.h"
#include "chunkwiseNonLocalMeansOperation.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseSummedAreaTableOperation.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <queue>
#include <random>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

const BoundaryMode AllModes[] = {
  BoundaryMode::Renormalized, BoundaryMode::ZeroFluxNeumann, BoundaryMode::Constant,
  BoundaryMode::Mirror,       BoundaryMode::Periodic,        BoundaryMode::MirrorCenter
};

/** Counts what a kernel reports and stops it at a poll. */
class CountingControl : public RunControl
{
public:
  bool
  ShouldStop() const override
  {
    return polls++ >= pollsBeforeStop;
  }
  void
  AddFinishedVoxels(std::int64_t n) override
  {
    voxels += n;
  }

  mutable std::atomic<std::int64_t> polls{ 0 };
  std::int64_t                      pollsBeforeStop{ std::numeric_limits<std::int64_t>::max() };
  std::atomic<std::int64_t>         voxels{ 0 };
};

/** Runs the operation's kernel. Its scratch has just the bytes it asked for, holds garbage, and lies between guards. */
void
RunKernel(const Operation & operation, const BufferView & input, const BufferView & output, const Box & image,
          unsigned int concurrency, RunControl * control = nullptr)
{
  constexpr std::size_t guardBytes = 4096;
  constexpr char        guard = 0x6B;
  const Kernel * const  kernel = GetHostKernels().Find(operation.GetName());
  ASSERT_NE(kernel, nullptr);
  const auto executor = MakeThreadExecutor(concurrency);
  ChunkShape shape;
  shape.inputBox = input.box;
  shape.outputBox = output.box;
  shape.image = image;
  shape.inputKinds[0] = input.kind;
  shape.numberOfInputs = 1;
  shape.outputKind = output.kind;
  shape.concurrency = static_cast<int>(concurrency);
  KernelCall call;
  call.operation = &operation;
  call.inputs[0] = input;
  call.numberOfInputs = 1;
  call.output = output;
  call.writable = output.box;
  call.image = image;
  call.scratchBytes = kernel->scratchBytes ? kernel->scratchBytes(operation, shape) : 0;
  std::vector<char> memory(call.scratchBytes + 2 * guardBytes + 256, guard);
  char * const      begin = memory.data() + guardBytes;
  char * const      scratch = begin + (256 - reinterpret_cast<std::uintptr_t>(begin) % 256) % 256;
  // All bits set is a NaN, and for integers a value that no sum may begin from.
  std::fill_n(scratch, call.scratchBytes, static_cast<char>(-1));
  call.scratch = scratch;
  call.executor = executor.get();
  call.control = control;
  kernel->run(call);
  const auto isGuard = [](char c) { return c == guard; };
  ASSERT_TRUE(std::all_of(memory.data(), scratch, isGuard)) << operation.GetKey();
  ASSERT_TRUE(std::all_of(scratch + call.scratchBytes, memory.data() + memory.size(), isGuard)) << operation.GetKey();
}

template <typename T>
std::vector<T>
RandomPixels(std::mt19937 & random, const Box & box)
{
  std::vector<T> pixels(static_cast<std::size_t>(box.NumberOfVoxels()));
  for (auto & pixel : pixels)
  {
    if constexpr (std::is_integral<T>::value)
    {
      pixel = static_cast<T>((std::uint64_t{ random() } << 32) | random());
    }
    else
    {
      pixel = static_cast<T>(static_cast<double>(random()) / 4294967296.0 * 200 - 60);
    }
  }
  return pixels;
}

std::shared_ptr<MeanOperation>
Mean(const Coordinates & radius, BoundaryMode mode)
{
  const auto operation = std::make_shared<MeanOperation>();
  operation->radius = radius;
  operation->boundary.mode = mode;
  operation->boundary.constant = 7;
  return operation;
}

std::shared_ptr<SeparableOperation>
Separable(std::mt19937 & random, const Coordinates & radius, BoundaryMode mode)
{
  const auto operation = std::make_shared<SeparableOperation>();
  operation->boundary.mode = mode;
  operation->boundary.constant = 7;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (radius[a] > 0)
    {
      auto & weights = operation->weights[a];
      weights.resize(static_cast<std::size_t>(2 * radius[a] + 1));
      std::generate(weights.begin(), weights.end(), [&] { return 0.05 + static_cast<double>(random() % 1000) / 1000; });
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (double & weight : weights)
      {
        weight /= sum;
      }
    }
  }
  return operation;
}

std::shared_ptr<RankOperation>
Rank(const Coordinates & radius, BoundaryMode mode)
{
  const auto operation = std::make_shared<RankOperation>();
  operation->radius = radius;
  operation->fraction = 0.7;
  operation->boundary.mode = mode;
  operation->boundary.constant = 7;
  return operation;
}

std::shared_ptr<NonLocalMeansOperation>
NonLocalMeans(const Coordinates & radius, BoundaryMode mode)
{
  const auto operation = std::make_shared<NonLocalMeansOperation>();
  for (int a = 0; a < MaxDimension; ++a)
  {
    operation->search[a] = std::min<std::int64_t>(radius[a], 1);
    operation->patch[a] = std::min<std::int64_t>(radius[a], 2);
  }
  operation->strength = 60;
  operation->noise = 100;
  operation->boundary.mode = mode;
  operation->boundary.constant = 7;
  return operation;
}

/** Extents and radii that reach every path: short and long windows, whole vectors and remainders of rows, windows
 * beyond the image, one to five axes, axes before and between those of the window. */
struct Shape
{
  Coordinates extent;
  Coordinates radius;
};
const Shape Shapes[] = {
  { { { 300, 9, 7, 1, 1 } }, { { 2, 2, 2, 0, 0 } } },  { { { 171, 40, 12, 1, 1 } }, { { 6, 5, 3, 0, 0 } } },
  { { { 37, 33, 40, 1, 1 } }, { { 0, 3, 8, 0, 0 } } }, { { { 1500, 3, 2, 1, 1 } }, { { 7, 1, 0, 0, 0 } } },
  { { { 5, 4, 3, 1, 1 } }, { { 9, 2, 20, 0, 0 } } },   { { { 19, 6, 5, 4, 3 } }, { { 0, 2, 0, 1, 6 } } },
  { { { 70, 3, 4, 2, 2 } }, { { 1, 0, 0, 0, 3 } } },   { { { 2100, 1, 1, 1, 1 } }, { { 40, 0, 0, 0, 0 } } },
  { { { 12, 11, 10, 1, 1 } }, { { 0, 0, 0, 0, 0 } } }, { { { 1, 1, 90, 1, 1 } }, { { 0, 0, 4, 0, 0 } } },
};

std::vector<std::shared_ptr<const Operation>>
OperationsOf(std::mt19937 & random, const Shape & shape, BoundaryMode mode)
{
  return { Mean(shape.radius, mode),
           Separable(random, shape.radius, mode),
           Rank(shape.radius, mode),
           NonLocalMeans(shape.radius, mode) };
}

/** Restores the level. */
class LevelGuard
{
public:
  ~LevelGuard() { SetCpuLevel(m_Before); }

private:
  const char * m_Before{ GetCpuLevel().name };
};

template <typename TIn, typename TOut>
void
CompareLevels(std::mt19937 & random, const char * name)
{
  for (const Shape & shape : Shapes)
  {
    for (const BoundaryMode mode : AllModes)
    {
      for (const auto & operation : OperationsOf(random, shape, mode))
      {
        const Box         image = Box::FromExtent(shape.extent);
        std::vector<TIn>  pixels = RandomPixels<TIn>(random, image);
        std::vector<TOut> expected(pixels.size());
        std::vector<TOut> output(pixels.size());
        const BufferView  input = DenseView(pixels.data(), PixelTypeOf<TIn>(), image);
        ASSERT_TRUE(SetCpuLevel("baseline"));
        RunKernel(*operation, input, DenseView(expected.data(), PixelTypeOf<TOut>(), image), image, 2);
        ASSERT_TRUE(SetCpuLevel(name));
        RunKernel(*operation, input, DenseView(output.data(), PixelTypeOf<TOut>(), image), image, 2);
        ASSERT_EQ(std::memcmp(expected.data(), output.data(), output.size() * sizeof(TOut)), 0)
          << name << " " << operation->GetKey() << " " << ToString(image);
      }
    }
  }
}

TEST(CpuKernels, InstructionSetsGiveTheSameBits)
{
  const LevelGuard guard;
  std::mt19937     random(61);
  for (const char * const name : { "avx2", "avx512" })
  {
    if (!SetCpuLevel(name))
    {
      std::printf("this machine lacks %s\n", name);
      continue;
    }
    CompareLevels<float, float>(random, name);
    CompareLevels<float, double>(random, name);
    CompareLevels<double, double>(random, name);
    CompareLevels<std::uint8_t, std::uint8_t>(random, name);
    CompareLevels<std::int16_t, std::int16_t>(random, name);
    CompareLevels<std::uint16_t, float>(random, name);
    CompareLevels<std::int32_t, std::int32_t>(random, name);
    CompareLevels<std::uint32_t, double>(random, name);
    CompareLevels<std::int64_t, std::int64_t>(random, name);
    CompareLevels<std::uint64_t, float>(random, name);
  }
}

/** So large a table is stored past the caches, unless its voxels are not one after the other: compares both. */
template <typename TIn, typename TOut>
void
CompareLargeTables(std::mt19937 & random)
{
  constexpr std::int64_t   least = (100 << 20) / static_cast<std::int64_t>(sizeof(TOut));
  const std::int64_t       width = 3741 + static_cast<std::int64_t>(random() % 20);
  const Box                image = Box::FromExtent({ { width, least / width, 1, 1, 1 } });
  SummedAreaTableOperation operation;
  operation.image = image.upper;
  operation.modular = true;
  std::vector<TIn> pixels = RandomPixels<TIn>(random, image);
  const BufferView input = DenseView(pixels.data(), PixelTypeOf<TIn>(), image);
  Box              box = image;
  box.lower[0] = 3;
  box.upper[0] -= 2;
  const std::int64_t columns = box.Extent(0);
  const std::int64_t rows = box.Extent(1);
  const auto         voxels = static_cast<std::size_t>(columns * rows);
  std::vector<TOut>  apart(2 * voxels);
  BufferView         view = DenseView(apart.data(), PixelTypeOf<TOut>(), box);
  view.stride = { { 2, 2 * columns, 2 * columns * rows, 0, 0 } };
  ASSERT_TRUE(SetCpuLevel("baseline"));
  RunKernel(operation, input, view, image, 2);

  // Rows begin anywhere in a line of the caches, and between them is what must stay.
  constexpr std::int64_t gap = 5;
  constexpr TOut         untouched = 77;
  for (const char * const name : { "baseline", "avx2", "avx512" })
  {
    if (!SetCpuLevel(name))
    {
      continue;
    }
    std::vector<TOut> output(static_cast<std::size_t>((columns + gap) * rows), untouched);
    view = DenseView(output.data() + gap, PixelTypeOf<TOut>(), box);
    view.stride = { { 1, columns + gap, (columns + gap) * rows, 0, 0 } };
    RunKernel(operation, input, view, image, 3);
    for (std::int64_t y = 0; y < rows; ++y)
    {
      for (std::int64_t x = -gap; x < columns; ++x)
      {
        const TOut result = output[static_cast<std::size_t>(y * (columns + gap) + gap + x)];
        const TOut expected = x < 0 ? untouched : apart[static_cast<std::size_t>(2 * (y * columns + x))];
        ASSERT_EQ(std::memcmp(&result, &expected, sizeof(result)), 0) << name << " " << x << ", " << y;
      }
    }
  }
}

TEST(CpuKernels, LargeTablesHaveTheSameBits)
{
  const LevelGuard guard;
  std::mt19937     random(63);
  CompareLargeTables<float, double>(random);
  CompareLargeTables<std::uint8_t, std::uint32_t>(random);
}

TEST(CpuKernels, AnUnknownInstructionSetChangesNothing)
{
  const char * const before = GetCpuLevel().name;
  EXPECT_FALSE(SetCpuLevel("sse9"));
  EXPECT_STREQ(GetCpuLevel().name, before);
}

TEST(CpuKernels, AnyNumberOfWorkersGivesTheSameBits)
{
  std::mt19937 random(62);
  for (const Shape & shape : Shapes)
  {
    for (const BoundaryMode mode : AllModes)
    {
      for (const auto & operation : OperationsOf(random, shape, mode))
      {
        const Box          image = Box::FromExtent(shape.extent);
        std::vector<float> pixels = RandomPixels<float>(random, image);
        std::vector<float> expected(pixels.size());
        std::vector<float> output(pixels.size());
        const BufferView   input = DenseView(pixels.data(), PixelType::Float32, image);
        RunKernel(*operation, input, DenseView(expected.data(), PixelType::Float32, image), image, 1);
        for (const unsigned int workers : { 2u, 5u, 9u })
        {
          RunKernel(*operation, input, DenseView(output.data(), PixelType::Float32, image), image, workers);
          ASSERT_EQ(std::memcmp(expected.data(), output.data(), output.size() * sizeof(float)), 0)
            << workers << " workers, " << operation->GetKey() << " " << ToString(image);
        }
      }
    }
  }
}

/** A view in which axes have another order in memory and gaps lie between voxels and rows. */
template <typename T>
BufferView
ScatteredView(std::vector<T> & memory, const Box & box, T fill, std::int64_t gap)
{
  const int   order[MaxDimension] = { 2, 0, 4, 1, 3 };
  Coordinates stride{};
  // Room for the gap after every voxel and once more after every run of each axis.
  std::int64_t step = gap;
  for (const int a : order)
  {
    stride[a] = step;
    step = step * box.Extent(a) + gap;
  }
  memory.assign(static_cast<std::size_t>(step), fill);
  return { memory.data(), PixelTypeOf<T>(), box, stride };
}

TEST(CpuKernels, ViewsMayHaveAnyStrides)
{
  std::mt19937 random(63);
  for (const Shape & shape : Shapes)
  {
    for (const BoundaryMode mode : AllModes)
    {
      auto operations = OperationsOf(random, shape, mode);
      operations.push_back(std::make_shared<IdentityOperation>());
      for (const auto & operation : operations)
      {
        const Box                 image = Box::FromExtent(shape.extent);
        std::vector<std::int16_t> pixels = RandomPixels<std::int16_t>(random, image);
        std::vector<float>        expected(pixels.size());
        const BufferView          dense = DenseView(pixels.data(), PixelType::Int16, image);
        const BufferView          wanted = DenseView(expected.data(), PixelType::Float32, image);
        RunKernel(*operation, dense, wanted, image, 2);

        std::vector<std::int16_t> inputMemory;
        std::vector<float>        outputMemory;
        const BufferView          input = ScatteredView<std::int16_t>(inputMemory, image, std::int16_t{ -30000 }, 3);
        const BufferView          output = ScatteredView<float>(outputMemory, image, -1e30f, 2);
        ForEachIndex(image, [&](const Coordinates & i) { At<std::int16_t>(input, i) = At<std::int16_t>(dense, i); });
        RunKernel(*operation, input, output, image, 2);
        ForEachIndex(image, [&](const Coordinates & i) {
          ASSERT_EQ(At<float>(output, i), At<float>(wanted, i))
            << operation->GetKey() << " " << ToString(image) << " at " << ToString(i);
          At<float>(output, i) = -1e30f;
        });
        ASSERT_TRUE(std::all_of(outputMemory.begin(), outputMemory.end(), [](float v) { return v == -1e30f; }))
          << operation->GetKey() << " wrote between the output's voxels";
      }
    }
  }
}

TEST(CpuKernels, FinishedVoxelsAreReportedOnce)
{
  std::mt19937 random(64);
  for (const Shape & shape : Shapes)
  {
    auto operations = OperationsOf(random, shape, BoundaryMode::Renormalized);
    operations.push_back(std::make_shared<IdentityOperation>());
    for (const auto & operation : operations)
    {
      const Box          image = Box::FromExtent(shape.extent);
      std::vector<float> pixels = RandomPixels<float>(random, image);
      std::vector<float> output(pixels.size());
      CountingControl    control;
      RunKernel(*operation,
                DenseView(pixels.data(), PixelType::Float32, image),
                DenseView(output.data(), PixelType::Float32, image),
                image,
                3,
                &control);
      EXPECT_EQ(control.voxels, image.NumberOfVoxels()) << operation->GetKey() << " " << ToString(image);
    }
  }
}

TEST(CpuKernels, AStopIsSeenSoon)
{
  std::mt19937      random(65);
  const Coordinates extent = { { 40, 30, 60, 1, 1 } };
  for (const std::int64_t radius : { 2, 6 })
  {
    const Shape shape = { extent, { { radius, radius, radius, 0, 0 } } };
    auto        operations = OperationsOf(random, shape, BoundaryMode::Renormalized);
    for (const auto & operation : operations)
    {
      for (const std::int64_t polls : { 0, 3, 20 })
      {
        const Box          image = Box::FromExtent(extent);
        std::vector<float> pixels = RandomPixels<float>(random, image);
        std::vector<float> output(pixels.size(), -1e30f);
        CountingControl    control;
        control.pollsBeforeStop = polls;
        RunKernel(*operation,
                  DenseView(pixels.data(), PixelType::Float32, image),
                  DenseView(output.data(), PixelType::Float32, image),
                  image,
                  2,
                  &control);
        const std::int64_t written = image.NumberOfVoxels() - std::count(output.begin(), output.end(), -1e30f);
        EXPECT_EQ(written, control.voxels) << operation->GetKey();
        // A poll comes at least once per plane of a tile; tiles of ranks and non-local means are done as a whole.
        const std::string  name = operation->GetName();
        const std::int64_t step = name == "rank" || name == "nonlocalmeans"
                                    ? RankTileWidth * RankTileSide * RankTileSide
                                    : extent[0] * extent[1];
        EXPECT_LE(written, polls * step) << operation->GetKey();
      }
    }
  }
}

TEST(CpuKernels, AnIdentityThatIsToStopWritesNothing)
{
  const Box          image = Box::FromExtent({ { 30, 20, 10, 1, 1 } });
  std::vector<float> pixels(static_cast<std::size_t>(image.NumberOfVoxels()), 1.0f);
  std::vector<float> output(pixels.size(), 0.0f);
  CountingControl    control;
  control.pollsBeforeStop = 0;
  RunKernel(IdentityOperation(),
            DenseView(pixels.data(), PixelType::Float32, image),
            DenseView(output.data(), PixelType::Float32, image),
            image,
            2,
            &control);
  EXPECT_EQ(std::count(output.begin(), output.end(), 0.0f), image.NumberOfVoxels());
  EXPECT_EQ(control.voxels, 0);
}

/** Means over two voxels, at the ends of rows of two: all ties when the sum is odd. */
template <typename T>
void
CheckTies()
{
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = { Limits::lowest(),
                            static_cast<T>(Limits::lowest() + 1),
                            static_cast<T>(Limits::max() - 1),
                            Limits::max(),
                            T{ 0 },
                            T{ 1 },
                            T{ 2 },
                            T{ 3 } };
  if (Limits::is_signed)
  {
    values.push_back(static_cast<T>(-1));
    values.push_back(static_cast<T>(-2));
  }
  std::vector<T> pixels;
  for (const T a : values)
  {
    for (const T b : values)
    {
      pixels.push_back(a);
      pixels.push_back(b);
    }
  }
  const Box      image = Box::FromExtent({ { 2, static_cast<std::int64_t>(pixels.size() / 2), 1, 1, 1 } });
  std::vector<T> output(pixels.size());
  const auto     operation = Mean({ { 1, 0, 0, 0, 0 } }, BoundaryMode::Renormalized);
  RunKernel(*operation,
            DenseView(pixels.data(), PixelTypeOf<T>(), image),
            DenseView(output.data(), PixelTypeOf<T>(), image),
            image,
            1);
  for (std::size_t i = 0; i < pixels.size(); ++i)
  {
    const oracle::Wide sum = oracle::Wide{ pixels[i & ~std::size_t{ 1 }] } + pixels[i | 1];
    ASSERT_EQ(output[i], static_cast<T>(oracle::RoundedQuotient(sum, 2)))
      << PixelTypeName(PixelTypeOf<T>()) << " mean of " << +pixels[i & ~std::size_t{ 1 }] << " and " << +pixels[i | 1];
  }
}

TEST(CpuKernels, IntegerMeansRoundTiesToEven)
{
  CheckTies<std::uint8_t>();
  CheckTies<std::int8_t>();
  CheckTies<std::uint16_t>();
  CheckTies<std::int16_t>();
  CheckTies<std::uint32_t>();
  CheckTies<std::int32_t>();
  CheckTies<std::uint64_t>();
  CheckTies<std::int64_t>();
}

/** Weights that sum to 3, on images of one value: the result is three times it, clamped. */
template <typename T>
void
CheckClamping()
{
  const Box          image = Box::FromExtent({ { 70, 3, 1, 1, 1 } });
  SeparableOperation operation;
  operation.boundary.mode = BoundaryMode::ZeroFluxNeumann;
  operation.weights[0] = { 1, 1, 1 };
  using Limits = std::numeric_limits<T>;
  for (const T value : { Limits::lowest(), Limits::max(), T{ 0 }, T{ 17 } })
  {
    std::vector<T> pixels(static_cast<std::size_t>(image.NumberOfVoxels()), value);
    std::vector<T> output(pixels.size());
    RunKernel(operation,
              DenseView(pixels.data(), PixelTypeOf<T>(), image),
              DenseView(output.data(), PixelTypeOf<T>(), image),
              image,
              1);
    const auto triple = std::clamp<oracle::Wide>(oracle::Wide{ value } * 3, Limits::lowest(), Limits::max());
    ASSERT_EQ(std::count(output.begin(), output.end(), static_cast<T>(triple)), image.NumberOfVoxels())
      << PixelTypeName(PixelTypeOf<T>()) << " " << +value << " gave " << +output[0];
  }
}

TEST(CpuKernels, IntegerResultsOfWeightsAreClamped)
{
  CheckClamping<std::uint8_t>();
  CheckClamping<std::int8_t>();
  CheckClamping<std::uint16_t>();
  CheckClamping<std::int16_t>();
  CheckClamping<std::uint32_t>();
  CheckClamping<std::int32_t>();
  CheckClamping<std::uint64_t>();
  CheckClamping<std::int64_t>();
}

/** The arithmetic that the operations' comments prescribe, line by line over the whole image, for bits rather than for
 * values. T is the accumulator. */
template <typename T>
class PrescribedArithmetic
{
public:
  PrescribedArithmetic(const std::vector<T> & pixels, const Coordinates & extent, const WindowBoundary & boundary)
    : m_Values(pixels)
    , m_Extent(extent)
    , m_Mode(boundary.mode)
    , m_Beyond(boundary.mode == BoundaryMode::Constant ? static_cast<T>(boundary.constant) : T{ 0 })
  {}

  std::vector<T>
  Mean(const MeanOperation & operation)
  {
    std::vector<std::int64_t> counts(m_Values.size(), 1);
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t r = operation.EffectiveRadius(a, m_Extent[a]);
      const std::int64_t k = 2 * r + 1;
      if (r > 0)
      {
        Pass(a, r, [&](const std::vector<T> & line, std::int64_t i) { return SumOf(line, i, r); });
        T constant = 0;
        for (std::int64_t t = 0; t < k; ++t)
        {
          constant += m_Beyond;
        }
        m_Beyond = constant;
      }
      EachLine(a, [&](const std::vector<std::size_t> & line) {
        for (std::int64_t i = 0; i < m_Extent[a]; ++i)
        {
          const std::int64_t inside = std::min(i + r, m_Extent[a] - 1) - std::max<std::int64_t>(i - r, 0) + 1;
          counts[line[static_cast<std::size_t>(i)]] *= m_Mode == BoundaryMode::Renormalized ? inside : k;
        }
      });
    }
    for (std::size_t i = 0; i < m_Values.size(); ++i)
    {
      m_Values[i] /= static_cast<T>(counts[i]);
    }
    return m_Values;
  }

  std::vector<T>
  Separable(const SeparableOperation & operation)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t r = operation.Radius(a);
      if (r == 0)
      {
        continue;
      }
      const std::vector<double> & weights = operation.weights[a];
      Pass(a, r, [&](const std::vector<T> & line, std::int64_t i) {
        T      sum = 0;
        double inside = 0;
        for (std::int64_t t = 0; t <= 2 * r; ++t)
        {
          const double weight = weights[static_cast<std::size_t>(t)];
          sum = std::fma(static_cast<T>(weight), line[static_cast<std::size_t>(i + t)], sum);
          inside += i - r + t >= 0 && i - r + t < m_Extent[a] ? weight : 0;
        }
        const bool whole = i >= r && i + r < m_Extent[a];
        return m_Mode == BoundaryMode::Renormalized && !whole ? sum * static_cast<T>(1.0 / inside) : sum;
      });
      T constant = 0;
      for (const double weight : weights)
      {
        constant = std::fma(static_cast<T>(weight), m_Beyond, constant);
      }
      m_Beyond = constant;
    }
    return m_Values;
  }

private:
  /** line[j] is the tap at i - radius + (j - i): the window of output i is line[i] to line[i + 2 radius]. */
  static T
  SumOf(const std::vector<T> & line, std::int64_t i, std::int64_t radius)
  {
    const std::int64_t k = 2 * radius + 1;
    const auto         tap = [&](std::int64_t position) { return line[static_cast<std::size_t>(position + radius)]; };
    const std::int64_t first = i - radius;
    const std::int64_t last = i + radius;
    T                  sum = 0;
    if (k <= 9)
    {
      for (std::int64_t j = first; j <= last; ++j)
      {
        sum += tap(j);
      }
      return sum;
    }
    // Positions are at least -radius, so that adding one block makes them positive.
    const std::int64_t blockOfFirst = (first + k) / k * k - k;
    T                  prefix = 0;
    for (std::int64_t j = (last + k) / k * k - k; j <= last; ++j)
    {
      prefix += tap(j);
    }
    if (blockOfFirst == first)
    {
      return prefix;
    }
    T suffix = tap(blockOfFirst + k - 1);
    for (std::int64_t j = blockOfFirst + k - 2; j >= first; --j)
    {
      suffix = tap(j) + suffix;
    }
    return suffix + prefix;
  }

  /** The places of the voxels of each line along an axis. */
  template <typename TFunctor>
  void
  EachLine(int a, TFunctor && f) const
  {
    Box begins = Box::FromExtent(m_Extent);
    begins.upper[a] = 1;
    const Coordinates stride = DenseStrides(m_Extent);
    ForEachIndex(begins, [&](const Coordinates & begin) {
      std::vector<std::size_t> line;
      std::int64_t             place = 0;
      for (int b = 0; b < MaxDimension; ++b)
      {
        place += begin[b] * stride[b];
      }
      for (std::int64_t i = 0; i < m_Extent[a]; ++i)
      {
        line.push_back(static_cast<std::size_t>(place + i * stride[a]));
      }
      f(line);
    });
  }

  template <typename TWindow>
  void
  Pass(int a, std::int64_t radius, TWindow && window)
  {
    EachLine(a, [&](const std::vector<std::size_t> & places) {
      std::vector<T> line;
      for (std::int64_t i = -radius; i < m_Extent[a] + radius; ++i)
      {
        std::int64_t at = i;
        line.push_back(oracle::Look(at, m_Extent[a], m_Mode) ? m_Values[places[static_cast<std::size_t>(at)]]
                                                             : m_Beyond);
      }
      for (std::int64_t i = 0; i < m_Extent[a]; ++i)
      {
        m_Values[places[static_cast<std::size_t>(i)]] = window(line, i);
      }
    });
  }

  std::vector<T>     m_Values;
  const Coordinates  m_Extent;
  const BoundaryMode m_Mode;
  T                  m_Beyond;
};

template <typename T>
void
CompareWithRules(std::mt19937 & random)
{
  for (const Shape & shape : Shapes)
  {
    for (const BoundaryMode mode : AllModes)
    {
      const Box      image = Box::FromExtent(shape.extent);
      std::vector<T> pixels = RandomPixels<T>(random, image);
      std::vector<T> output(pixels.size());
      const auto     check = [&](const Operation & operation, const std::vector<T> & expected) {
        RunKernel(operation,
                  DenseView(pixels.data(), PixelTypeOf<T>(), image),
                  DenseView(output.data(), PixelTypeOf<T>(), image),
                  image,
                  2);
        const auto differing = std::mismatch(output.begin(), output.end(), expected.begin());
        ASSERT_EQ(std::memcmp(output.data(), expected.data(), output.size() * sizeof(T)), 0)
          << operation.GetKey() << " " << ToString(image) << ": " << differing.first - output.begin();
      };
      const auto mean = Mean(shape.radius, mode);
      mean->boundary.constant = 7.3;
      check(*mean, PrescribedArithmetic<T>(pixels, shape.extent, mean->boundary).Mean(*mean));
      const auto separable = Separable(random, shape.radius, mode);
      separable->boundary.constant = 7.3;
      check(*separable, PrescribedArithmetic<T>(pixels, shape.extent, separable->boundary).Separable(*separable));
    }
  }
}

TEST(CpuKernels, BitsAreThoseOfThePrescribedArithmetic)
{
  std::mt19937 random(66);
  CompareWithRules<float>(random);
  CompareWithRules<double>(random);
}

template <typename TKey>
void
ExpectDescendingOrder(std::mt19937 & random)
{
  constexpr std::uint32_t   count = 5000;
  std::vector<TKey>         keys(count);
  std::vector<char>         memory(DescendingQueue<TKey>::GetBytes(2 * count));
  DescendingQueue<TKey>     queue;
  std::priority_queue<TKey> expected;
  queue.Initialize(memory.data(), 2 * count);
  for (int round = 0; round < 3; ++round)
  {
    queue.Restart();
    std::uint32_t next = 0;
    const auto    push = [&](TKey key) {
      keys[next] = key;
      queue.Push(next++, key);
      expected.push(key);
    };
    const auto any = [&] { return static_cast<TKey>((std::uint64_t{ random() } << 32) | random()); };
    while (next < count / 2)
    {
      push(random() % 3 ? any() : static_cast<TKey>(any() % 5));
    }
    std::uint32_t number = 0;
    while (queue.Pop(number, [&keys](std::uint32_t n) { return keys[n]; }))
    {
      ASSERT_FALSE(expected.empty());
      ASSERT_EQ(queue.GetLevel(), expected.top());
      ASSERT_EQ(keys[number], expected.top());
      expected.pop();
      // No larger than what was popped, often just as large.
      for (int i = 0; i < 2 && next < count && random() % 3; ++i)
      {
        push(random() % 2 ? keys[number] : std::min(any(), keys[number]));
      }
    }
    ASSERT_TRUE(expected.empty());
  }
}

TEST(CpuKernels, ADescendingQueueGivesTheLargestKeysFirst)
{
  std::mt19937 random(95);
  ExpectDescendingOrder<std::uint8_t>(random);
  ExpectDescendingOrder<std::uint16_t>(random);
  ExpectDescendingOrder<std::uint32_t>(random);
  ExpectDescendingOrder<std::uint64_t>(random);
}

TEST(CpuKernels, ADescendingQueueKeepsItsMemory)
{
  using Queue = DescendingQueue<std::uint8_t>;
  std::vector<char> memory(Queue::GetBytes(100));
  Queue             queue;
  queue.Initialize(memory.data(), 100);
  EXPECT_THROW(
    {
      for (std::uint32_t i = 0; i < 30 * 1000; ++i)
      {
        queue.Push(i, 7);
      }
    },
    Error);
}

} // namespace
