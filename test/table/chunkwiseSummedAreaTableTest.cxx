/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseKernelTrial.h"
#include "chunkwiseSummedAreaTableCarry.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

using namespace chunkwise;

namespace
{

class SummedAreaTables : public KernelTest
{};

using Operations = std::shared_ptr<SummedAreaTableOperation>;

Operations
MakeTable(const Coordinates & extent, int axes, bool squares = false, bool modular = false)
{
  const auto operation = std::make_shared<SummedAreaTableOperation>();
  operation->image = extent;
  operation->summedAxes = axes;
  operation->squares = squares;
  operation->modular = modular;
  return operation;
}

/** Long enough for several blocks along each axis now and then. */
Coordinates
RandomTableExtent(std::mt19937 & random)
{
  Coordinates extent = RandomExtent(random, 12);
  switch (random() % 6)
  {
    case 0:
      extent[0] = 1 + static_cast<std::int64_t>(random() % 700);
      break;
    case 1:
      extent[1] = 1 + static_cast<std::int64_t>(random() % 700);
      break;
    case 2:
      extent = {
        { 1 + static_cast<std::int64_t>(random() % 400), 1 + static_cast<std::int64_t>(random() % 400), 1, 1, 1 }
      };
      break;
    case 3:
      extent = { { 1 + static_cast<std::int64_t>(random() % 30),
                   1 + static_cast<std::int64_t>(random() % 30),
                   1 + static_cast<std::int64_t>(random() % 200),
                   1,
                   1 } };
      break;
    case 4: // several blocks of rows in each of several slices
      extent = { { 1 + static_cast<std::int64_t>(random() % 300),
                   65 + static_cast<std::int64_t>(random() % 150),
                   2 + static_cast<std::int64_t>(random() % 14),
                   1 + static_cast<std::int64_t>(random() % 2),
                   1 } };
      break;
    default:
      break;
  }
  return extent;
}

/** The sum of the voxels that are not beyond `index`, one after the other: the definition. */
template <typename TWide, typename TIn>
TWide
SumUpTo(const BufferView & image, const Coordinates & index, int axes, bool squares)
{
  Box box{ index, index };
  for (int a = 0; a < MaxDimension; ++a)
  {
    box.lower[a] = a < axes ? 0 : index[a];
    ++box.upper[a];
  }
  // Sums of integers wrap around.
  using Sum = std::conditional_t<std::is_floating_point<TWide>::value, TWide, oracle::UnsignedWide>;
  Sum sum = 0;
  ForEachIndex(box, [&](const Coordinates & at) {
    const auto value = static_cast<TWide>(At<TIn>(image, at));
    sum += static_cast<Sum>(squares ? value * value : value);
  });
  return static_cast<TWide>(sum);
}

/** The sums along one axis, in the order that `order` gives a line of it. */
template <typename TOrder>
void
AlongAxis(std::vector<double> & values, const Coordinates & extent, int axis, TOrder && order)
{
  Box lines = Box::FromExtent(extent);
  lines.upper[axis] = 1;
  const BufferView view = DenseView(values.data(), PixelType::Float64, Box::FromExtent(extent));
  ForEachIndex(lines, [&](const Coordinates & line) {
    std::vector<double> f;
    Coordinates         at = line;
    for (at[axis] = 0; at[axis] < extent[axis]; ++at[axis])
    {
      f.push_back(At<double>(view, at));
    }
    for (at[axis] = 0; at[axis] < extent[axis]; ++at[axis])
    {
      At<double>(view, at) = order(f, static_cast<std::size_t>(at[axis]));
    }
  });
}

template <typename T>
T
InOrder(const std::vector<double> & f, std::size_t from, std::size_t to)
{
  T sum = 0;
  for (std::size_t i = from; i < to; ++i)
  {
    sum = sum + static_cast<T>(f[i]);
  }
  return sum;
}

/** S of the sections of rows [from, to). */
template <typename T>
T
Sections(const std::vector<double> & f, std::size_t from, std::size_t to)
{
  T sum = 0;
  for (std::size_t s = from; s < to; s += 8)
  {
    sum = sum + InOrder<T>(f, s, s + 8);
  }
  return sum;
}

/** C of row y. */
template <typename T>
double
BlocksBefore(const std::vector<double> & f, std::size_t y)
{
  double blocks = 0;
  for (std::size_t b = 0; b < y / 64 * 64; b += 64)
  {
    blocks = blocks + static_cast<double>(Sections<T>(f, b, b + 64));
  }
  return blocks;
}

/** S + l. */
template <typename T>
double
RowsWithin(const std::vector<double> & f, std::size_t y)
{
  return Sections<T>(f, y / 64 * 64, y / 8 * 8) + InOrder<T>(f, y / 8 * 8, y + 1);
}

/** The scan of a quarter's totals, by its recursion. */
template <typename T>
T
Scanned(const std::vector<T> & totals, int g, int d)
{
  return d == 0 ? totals[static_cast<std::size_t>(g)]
                : (g >= d ? Scanned(totals, g - d, d / 2) + Scanned(totals, g, d / 2) : Scanned(totals, g, d / 2));
}

/** X. */
template <typename T>
double
ColumnsWithin(const std::vector<double> & f, std::size_t x)
{
  const auto group = [&](std::size_t from, std::size_t to) {
    T sum = from < f.size() ? static_cast<T>(f[from]) : T(0);
    for (std::size_t i = from + 1; i < to; ++i)
    {
      sum = sum + (i < f.size() ? static_cast<T>(f[i]) : T(0));
    }
    return sum;
  };
  const auto quarter = [&](std::size_t from) {
    std::vector<T> totals;
    for (std::size_t g = from; g < from + 32; g += 4)
    {
      totals.push_back(group(g, g + 4));
    }
    return totals;
  };
  T quarters = 0;
  for (std::size_t q = x / 128 * 128; q < x / 32 * 32; q += 32)
  {
    quarters = quarters + Scanned(quarter(q), 7, 4);
  }
  const int g = static_cast<int>(x % 32 / 4);
  const T   left = g > 0 ? Scanned(quarter(x / 32 * 32), g - 1, 4) : T(0);
  return (quarters + left) + group(x / 4 * 4, x + 1);
}

double
WithColumnsBefore(const std::vector<double> & v, std::size_t x)
{
  double blocks = 0;
  for (std::size_t b = 128; b <= x; b += 128)
  {
    blocks = blocks + v[b - 1];
  }
  return blocks + v[x];
}

/** The operation's comment, step by step; T is L. */
template <typename T>
std::vector<double>
PrescribedTable(std::vector<double> f, const Coordinates & extent, int axes)
{
  if (axes == 3)
  {
    AlongAxis(f, extent, 2, [](const auto & line, std::size_t z) { return InOrder<double>(line, 0, z + 1); });
  }
  std::vector<double> before = f;
  AlongAxis(before, extent, 1, BlocksBefore<T>);
  AlongAxis(before, extent, 0, ColumnsWithin<double>);
  AlongAxis(f, extent, 1, RowsWithin<T>);
  AlongAxis(f, extent, 0, ColumnsWithin<T>);
  for (std::size_t i = 0; i < f.size(); ++i)
  {
    f[i] = before[i] + f[i];
  }
  AlongAxis(f, extent, 0, WithColumnsBefore);
  return f;
}

/** Runs over a region; what is before it along the swept axis enters as a carry. */
template <typename TIn, typename TOut>
bool
RunRegion(Manager & manager, Trial<TIn, TOut> & t, const SummedAreaTableOperation & whole, const Box & region)
{
  const auto operation = std::make_shared<SummedAreaTableOperation>(whole);
  const int  axis = whole.summedAxes - 1;
  if (whole.Sweeps() && region.lower[axis] > 0)
  {
    Box before = region;
    for (int a = 0; a < axis; ++a)
    {
      before.lower[a] = 0;
    }
    before.lower[axis] = 0;
    before.upper[axis] = region.lower[axis];
    const auto executor = MakeThreadExecutor(2);
    operation->carry = AdvanceCarry(whole, t.image, PixelTypeOf<TOut>(), before, *executor);
    operation->begin = region.lower[axis];
  }
  t.request.operation = operation;
  t.Prepare(region);
  try
  {
    manager.Execute(t.request);
    return true;
  }
  catch (const BudgetError &)
  {
    return false; // the smallest chunk of this trial is larger
  }
}

/** Exact: the definition with 128 bits, at random voxels, whole and in parts. */
template <typename TIn, typename TOut>
void
CompareWithDefinition(std::uint32_t seed, Manager & manager, BackendChoice backend, bool squares, bool modular)
{
  std::mt19937 random(seed);
  int          finished = 0;
  for (int trial = 0; trial < 24; ++trial)
  {
    const Coordinates extent = RandomTableExtent(random);
    const auto        operation = MakeTable(extent, 2 + static_cast<int>(random() % 2), squares, modular);
    operation->method = random() % 2 ? TableMethod::SinglePass : TableMethod::Blocks;
    Trial<TIn, TOut> t(random, operation, extent);
    t.request.backend = backend;
    t.request.budgets.device = trial % 2 ? 0 : 30000 + random() % 500000;
    for (int part = 0; part < 3; ++part)
    {
      const Box region = part == 0 ? Box::FromExtent(extent) : RandomRegion(random, extent);
      if (!RunRegion(manager, t, *operation, region))
      {
        continue;
      }
      ++finished;
      ASSERT_TRUE(t.IsContained());
      for (int probe = 0; probe < 60; ++probe)
      {
        Coordinates at = region.lower;
        for (int a = 0; a < MaxDimension; ++a)
        {
          at[a] += probe == 0 ? region.Extent(a) - 1 : static_cast<std::int64_t>(random() % region.Extent(a));
        }
        const auto expected = SumUpTo<oracle::Wide, TIn>(t.image, at, operation->summedAxes, squares);
        ASSERT_EQ(t.Result(at), static_cast<TOut>(expected))
          << operation->GetKey() << " region " << ToString(region) << " at " << ToString(at);
      }
    }
  }
  EXPECT_GT(finished, 24);
}

TEST_P(SummedAreaTables, OfIntegersAreExact)
{
  CompareWithDefinition<std::uint8_t, std::uint64_t>(1, GetManager(), GetBackend(), false, false);
  CompareWithDefinition<std::uint8_t, std::uint32_t>(2, GetManager(), GetBackend(), false, false);
  CompareWithDefinition<std::uint16_t, std::uint64_t>(3, GetManager(), GetBackend(), false, false);
  CompareWithDefinition<std::int16_t, std::int64_t>(4, GetManager(), GetBackend(), false, false);
  CompareWithDefinition<std::int8_t, std::int32_t>(5, GetManager(), GetBackend(), false, false);
  CompareWithDefinition<std::uint32_t, std::uint64_t>(6, GetManager(), GetBackend(), false, false);
  CompareWithDefinition<std::int32_t, double>(7, GetManager(), GetBackend(), false, false);
  CompareWithDefinition<std::uint16_t, float>(8, GetManager(), GetBackend(), false, false);
}

TEST_P(SummedAreaTables, OfSquaresAreExact)
{
  CompareWithDefinition<std::uint8_t, std::uint64_t>(11, GetManager(), GetBackend(), true, false);
  CompareWithDefinition<std::int16_t, std::uint64_t>(12, GetManager(), GetBackend(), true, false);
}

TEST_P(SummedAreaTables, MayWrapAround)
{
  CompareWithDefinition<std::int32_t, std::int32_t>(21, GetManager(), GetBackend(), false, true);
  CompareWithDefinition<std::uint64_t, std::uint32_t>(22, GetManager(), GetBackend(), false, true);
  CompareWithDefinition<std::int64_t, std::uint64_t>(23, GetManager(), GetBackend(), true, true);
}

/** Every bit as the operation's comment prescribes, and near the true sum. */
template <typename TIn, typename TOut>
void
CompareWithPrescription(std::uint32_t seed, Manager & manager, BackendChoice backend)
{
  std::mt19937 random(seed);
  int          finished = 0;
  for (int trial = 0; trial < 20; ++trial)
  {
    const Coordinates extent = RandomTableExtent(random);
    const bool        squares = random() % 4 == 0;
    const auto        operation = MakeTable(extent, 2 + static_cast<int>(random() % 2), squares);
    operation->method = random() % 2 ? TableMethod::SinglePass : TableMethod::Blocks;
    Trial<TIn, TOut>    t(random, operation, extent);
    std::vector<double> expected;
    for (const TIn pixel : t.pixels)
    {
      const auto value = static_cast<double>(pixel);
      expected.push_back(squares ? value * value : value);
    }
    using Local = std::conditional_t<sizeof(TIn) == 4 && sizeof(TOut) == 4, float, double>;
    expected = PrescribedTable<Local>(std::move(expected), extent, operation->summedAxes);
    const BufferView table = DenseView(expected.data(), PixelType::Float64, Box::FromExtent(extent));
    t.request.backend = backend;
    for (int part = 0; part < 4; ++part)
    {
      t.request.budgets.device = part == 0 ? 0 : 30000 + random() % 500000;
      const Box region = part == 0 ? Box::FromExtent(extent) : RandomRegion(random, extent);
      if (!RunRegion(manager, t, *operation, region))
      {
        continue;
      }
      ++finished;
      ASSERT_TRUE(t.IsContained());
      ForEachIndex(region, [&](const Coordinates & at) {
        const TOut a = t.Result(at);
        const auto b = static_cast<TOut>(At<double>(table, at));
        ASSERT_EQ(std::memcmp(&a, &b, sizeof(a)), 0) << operation->GetKey() << " region " << ToString(region) << " at "
                                                     << ToString(at) << ": " << a << " and " << b;
      });
      const Coordinates last{
        { region.upper[0] - 1, region.upper[1] - 1, region.upper[2] - 1, region.upper[3] - 1, region.upper[4] - 1 }
      };
      const auto  exact = SumUpTo<long double, TIn>(t.image, last, operation->summedAxes, squares);
      long double magnitude = 0;
      ForEachIndex(Box::FromExtent(extent), [&](const Coordinates & at) {
        const auto value = static_cast<long double>(At<TIn>(t.image, at));
        magnitude += squares ? value * value : std::fabs(value);
      });
      // Half units in the last place of each type: 32 in float is more than the longest path of additions in a block.
      const long double half = std::is_same<Local, float>::value ? 32 * 6e-8L : sizeof(TOut) == 4 ? 6e-8L : 1e-14L;
      ASSERT_NEAR(t.Result(last), exact, half * magnitude);
    }
  }
  EXPECT_GT(finished, 20);
}

TEST_P(SummedAreaTables, OfFloatsHaveThePrescribedBits)
{
  CompareWithPrescription<float, float>(31, GetManager(), GetBackend());
  CompareWithPrescription<float, double>(32, GetManager(), GetBackend());
  CompareWithPrescription<double, double>(33, GetManager(), GetBackend());
  CompareWithPrescription<double, float>(34, GetManager(), GetBackend());
}

/** A table's bytes, again and again the same. */
template <typename TOut>
void
CompareWithFirstRun(const Coordinates & extent, int runs, Manager & manager, BackendChoice backend)
{
  std::mt19937       random(41);
  const auto         operation = MakeTable(extent, extent[2] > 1 ? 3 : 2);
  Trial<float, TOut> t(random, operation, extent);
  const Box          box = Box::FromExtent(extent);
  t.request.backend = BackendChoice::CPU;
  ASSERT_TRUE(RunRegion(manager, t, *operation, box));
  std::vector<TOut> expected;
  ForEachIndex(box, [&](const Coordinates & at) { expected.push_back(t.Result(at)); });
  t.request.backend = backend;
  for (int run = 0; run < runs; ++run)
  {
    operation->method = run % 4 == 3 ? TableMethod::Blocks : TableMethod::SinglePass;
    ASSERT_TRUE(RunRegion(manager, t, *operation, box));
    std::size_t i = 0;
    std::size_t different = 0;
    ForEachIndex(box, [&](const Coordinates & at) {
      const TOut result = t.Result(at);
      different += std::memcmp(&result, &expected[i++], sizeof(result)) != 0 ? 1 : 0;
    });
    ASSERT_EQ(different, 0u) << "run " << run << " of " << ToString(extent);
  }
}

/** Many tiles at a time, which wait for each other in an order that differs from run to run. */
TEST_P(SummedAreaTables, RepeatTheirBits)
{
  const int runs = GetParam() == Place::Cuda ? 100 : 4;
  for (const Coordinates & extent : { Coordinates{ { 1203, 611, 1, 1, 1 } }, Coordinates{ { 260, 196, 20, 1, 1 } } })
  {
    CompareWithFirstRun<float>(extent, runs, GetManager(), GetBackend());
    CompareWithFirstRun<double>(extent, runs / 4, GetManager(), GetBackend());
  }
  // A device has fewer multiprocessors than this has tiles in a slice.
  CompareWithFirstRun<float>({ { 1500, 1100, 3, 1, 1 } }, 1 + runs / 20, GetManager(), GetBackend());
}

INSTANTIATE_TEST_SUITE_P(
  Places, SummedAreaTables, testing::Values(Place::Cpu, Place::Fake, Place::Cuda), [](const auto & info) {
    return std::string(info.param == Place::Cpu ? "Cpu" : info.param == Place::Fake ? "Fake" : "Cuda");
  });

/** Carries between devices where there may be only one: it counts as two. */
TEST(SummedAreaTable, CudaDevicesHandCarriesOn)
{
  std::string reason;
  const auto  backend = GetCudaBackend(&reason);
  if (!backend)
  {
    GTEST_SKIP() << "no CUDA device: " << reason;
  }
  const std::shared_ptr<Device> device = backend->GetDevices().front();
  Manager                       twice({ device, device });
  Manager                       host({});
  std::mt19937                  random(91);
  std::int64_t                  first = 0;
  std::int64_t                  second = 0;
  for (const Coordinates & extent : { Coordinates{ { 8192, 4096, 1, 1, 1 } }, Coordinates{ { 512, 512, 128, 1, 1 } } })
  {
    const Box          box = Box::FromExtent(extent);
    std::vector<float> image(static_cast<std::size_t>(box.NumberOfVoxels()));
    for (float & value : image)
    {
      value = static_cast<float>(random() % 1000000) * 1e-4F - 30;
    }
    std::vector<float> expected(image.size());
    ExecutionRequest   request;
    request.operation = MakeTable(extent, extent[2] > 1 ? 3 : 2);
    request.image = request.region = box;
    request.inputs.push_back(DenseView(image.data(), PixelType::Float32, box));
    request.output = DenseView(expected.data(), PixelType::Float32, box);
    request.backend = BackendChoice::CPU;
    host.Execute(request);
    request.backend = BackendChoice::CUDA;
    request.stagingThreads = 8;
    request.budgets.device = std::size_t{ 40 } << 20;
    // Carries in pinned memory, and not.
    for (const std::size_t pinned : { std::size_t{ 0 }, std::size_t{ 1 } << 20 })
    {
      std::vector<float> output(image.size(), -1.0F);
      request.output.data = output.data();
      request.budgets.pinned = pinned;
      const ExecutionReport report = twice.Execute(request);
      EXPECT_TRUE(output == expected) << ToString(extent) << ", pinned budget " << pinned;
      EXPECT_GT(report.plan.chunks.size(), 4u);
      first += report.chunksPerDevice[0];
      second += report.chunksPerDevice[1];
    }
  }
  // One that is served late may get none in a run.
  EXPECT_GT(first, 0);
  EXPECT_GT(second, 0);
}

/** Tiles wait for each other. An endless wait shows, if at all, in one of some thousand tables: the test makes as many
 * tables as time allows, and at least a few if a tool makes them slow. */
TEST(SummedAreaTable, CudaTablesEnd)
{
  using Clock = std::chrono::steady_clock;
  std::string reason;
  const auto  backend = GetCudaBackend(&reason);
  if (!backend)
  {
    GTEST_SKIP() << "no CUDA device: " << reason;
  }
  Device &           device = *backend->GetDevices().front();
  const Coordinates  extent{ { 8192, 8192, 1, 1, 1 } };
  const Box          box = Box::FromExtent(extent);
  const auto         operation = MakeTable(extent, 2);
  const Kernel &     kernel = *device.GetKernels().Find("sat");
  const auto         bytes = static_cast<std::size_t>(box.NumberOfVoxels()) * sizeof(float);
  std::vector<float> image(static_cast<std::size_t>(box.NumberOfVoxels()), 1.0F);
  ChunkShape         shape;
  shape.inputBox = shape.outputBox = shape.image = box;
  shape.inputKinds[0] = shape.outputKind = PixelType::Float32;
  shape.numberOfInputs = 1;
  const StreamHandle stream = device.CreateStream();
  const EventHandle  event = device.CreateEvent();
  KernelCall         call;
  call.operation = operation.get();
  call.inputs[0] = DenseView(device.Allocate(bytes), PixelType::Float32, box);
  call.numberOfInputs = 1;
  call.output = DenseView(device.Allocate(bytes), PixelType::Float32, box);
  call.writable = call.image = box;
  call.scratchBytes = kernel.scratchBytes(*operation, shape);
  call.scratch = device.Allocate(call.scratchBytes);
  device.CopyToDevice(call.inputs[0].data, image.data(), bytes, stream);
  device.Synchronize(stream);

  const auto    start = Clock::now();
  constexpr int AtATime = 8;
  for (int tables = 0; tables < 8000 && Clock::now() - start < std::chrono::seconds(4); tables += AtATime)
  {
    for (int i = 0; i < AtATime; ++i)
    {
      device.Launch(kernel, call, stream);
    }
    device.Record(event, stream);
    const auto launched = Clock::now();
    while (!device.Query(event))
    {
      if (Clock::now() - launched > std::chrono::minutes(2))
      {
        // The device does not let go of such a kernel before the process ends; all else here would wait for it.
        std::fprintf(stderr, "A table does not end, one of %d after the first %d\n", AtATime, tables);
        std::_Exit(EXIT_FAILURE);
      }
    }
  }

  device.CopyToHost(image.data(), call.output.data, bytes, stream);
  device.Synchronize(stream);
  std::size_t different = 0;
  std::size_t i = 0;
  ForEachIndex(box, [&](const Coordinates & at) {
    different += image[i++] != static_cast<float>((at[0] + 1) * (at[1] + 1)) ? 1 : 0;
  });
  EXPECT_EQ(different, 0u);
  for (void * const memory : { call.scratch, call.output.data, const_cast<void *>(call.inputs[0].data) })
  {
    device.Free(memory);
  }
  device.DestroyEvent(event);
  device.DestroyStream(stream);
}

/** Workers of which one is late now and then. */
class LateWorkers : public Executor
{
public:
  unsigned int
  GetConcurrency() const override
  {
    return m_Executor->GetConcurrency();
  }
  void
  ParallelFor(std::int64_t count, const std::function<void(std::int64_t, unsigned int)> & body) override
  {
    m_Executor->ParallelFor(count, [&](std::int64_t index, unsigned int worker) {
      if (index % 19 == 2)
      {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      body(index, worker);
    });
  }

private:
  std::shared_ptr<Executor> m_Executor{ MakeThreadExecutor(3) };
};

/** Stops once some voxels are finished. */
class StopAfter : public RunControl
{
public:
  explicit StopAfter(std::int64_t voxels)
    : m_Voxels(voxels)
  {}
  bool
  ShouldStop() const override
  {
    return m_Finished >= m_Voxels;
  }
  void
  AddFinishedVoxels(std::int64_t voxels) override
  {
    m_Finished += voxels;
  }
  std::int64_t
  GetFinished() const
  {
    return m_Finished;
  }

private:
  const std::int64_t        m_Voxels;
  std::atomic<std::int64_t> m_Finished{ 0 };
};

/** The table by the host's kernel. */
template <typename TOut, typename TIn>
std::vector<TOut>
RunOnHost(const SummedAreaTableOperation & operation, const std::vector<TIn> & image, Executor & executor,
          RunControl * control = nullptr)
{
  const Box      box = Box::FromExtent(operation.image);
  const Kernel & kernel = *GetHostKernels().Find("sat");
  ChunkShape     shape;
  shape.inputBox = shape.outputBox = shape.image = box;
  shape.inputKinds[0] = PixelTypeOf<TIn>();
  shape.numberOfInputs = 1;
  shape.outputKind = PixelTypeOf<TOut>();
  shape.concurrency = static_cast<int>(executor.GetConcurrency());
  struct alignas(64) Line
  {
    unsigned char bytes[64];
  };
  std::vector<Line> scratch(kernel.scratchBytes(operation, shape) / sizeof(Line) + 1);
  std::vector<TOut> table(image.size());
  KernelCall        call;
  call.operation = &operation;
  call.inputs[0] = DenseView(const_cast<TIn *>(image.data()), shape.inputKinds[0], box);
  call.numberOfInputs = 1;
  call.output = DenseView(table.data(), shape.outputKind, box);
  call.writable = call.image = box;
  call.scratch = scratch.data();
  call.scratchBytes = scratch.size() * sizeof(Line);
  call.executor = &executor;
  call.control = control;
  kernel.run(call);
  return table;
}

/** Bands of rows of the host's table follow each other, and slices take turns in memory. */
TEST(SummedAreaTable, WaitsForWorkersThatAreLate)
{
  std::mt19937 random(7);
  LateWorkers  late;
  const auto   one = MakeThreadExecutor(1);
  for (const Coordinates & extent : { Coordinates{ { 700, 150, 60, 1, 1 } }, Coordinates{ { 90, 500, 4, 1, 1 } } })
  {
    for (const int axes : { 2, 3 })
    {
      const auto                operation = MakeTable(extent, axes, false, true);
      std::vector<std::uint8_t> image(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
      std::generate(image.begin(), image.end(), [&] { return static_cast<std::uint8_t>(random()); });
      EXPECT_TRUE(RunOnHost<std::uint32_t>(*operation, image, late) ==
                  RunOnHost<std::uint32_t>(*operation, image, *one))
        << axes << " axes of " << extent[0] << " columns";
      StopAfter control(static_cast<std::int64_t>(image.size()) / 3);
      RunOnHost<std::uint32_t>(*operation, image, late, &control);
      EXPECT_TRUE(control.ShouldStop());
      EXPECT_LT(control.GetFinished(), static_cast<std::int64_t>(image.size()));
    }
  }
}

/** Chunks are chosen by it. */
TEST(SummedAreaTable, ScratchOfTheHostDoesNotShrinkWhereAChunkGrows)
{
  const Kernel & kernel = *GetHostKernels().Find("sat");
  const auto     scratchOf = [&](const Coordinates & extent, int axes) {
    ChunkShape shape;
    shape.inputBox = shape.outputBox = shape.image = Box::FromExtent(extent);
    shape.inputKinds[0] = shape.outputKind = PixelType::Float32;
    shape.numberOfInputs = 1;
    shape.concurrency = 16;
    return kernel.scratchBytes(*MakeTable(extent, axes), shape);
  };
  std::mt19937 random(23);
  for (int trial = 0; trial < 2000; ++trial)
  {
    Coordinates extent{ { 1 + static_cast<std::int64_t>(random() % 4000),
                          1 + static_cast<std::int64_t>(random() % 2000),
                          1 + static_cast<std::int64_t>(random() % 40),
                          1,
                          1 } };
    Coordinates larger = extent;
    larger[random() % 3] += static_cast<std::int64_t>(random() % 300);
    for (const int axes : { 2, 3 })
    {
      ASSERT_LE(scratchOf(extent, axes), scratchOf(larger, axes))
        << axes << " axes, " << ToString(Box::FromExtent(extent)) << " and " << ToString(Box::FromExtent(larger));
    }
  }
}

/** The table by a device whose scratch and output are full of NaN. */
template <typename TOut, typename TIn>
std::vector<TOut>
RunOnDevice(Device & device, const SummedAreaTableOperation & operation, const std::vector<TIn> & image)
{
  const Box      box = Box::FromExtent(operation.image);
  const Kernel & kernel = *device.GetKernels().Find("sat");
  ChunkShape     shape;
  shape.inputBox = shape.outputBox = shape.image = box;
  shape.inputKinds[0] = PixelTypeOf<TIn>();
  shape.numberOfInputs = 1;
  shape.outputKind = PixelTypeOf<TOut>();
  const StreamHandle stream = device.CreateStream();
  std::vector<TOut>  table(image.size());
  const std::size_t  bytes = table.size() * sizeof(TOut);
  KernelCall         call;
  call.operation = &operation;
  call.inputs[0] = DenseView(device.Allocate(image.size() * sizeof(TIn)), shape.inputKinds[0], box);
  call.numberOfInputs = 1;
  call.output = DenseView(device.Allocate(bytes), shape.outputKind, box);
  call.writable = call.image = box;
  call.scratchBytes = kernel.scratchBytes(operation, shape);
  call.scratch = device.Allocate(call.scratchBytes);
  const std::vector<unsigned char> poison(std::max(bytes, call.scratchBytes), 0xFF);
  device.CopyToDevice(call.scratch, poison.data(), call.scratchBytes, stream);
  device.CopyToDevice(call.output.data, poison.data(), bytes, stream);
  device.CopyToDevice(call.inputs[0].data, image.data(), image.size() * sizeof(TIn), stream);
  device.Launch(kernel, call, stream);
  device.CopyToHost(table.data(), call.output.data, bytes, stream);
  device.Synchronize(stream);
  for (void * const memory : { call.scratch, call.output.data, const_cast<void *>(call.inputs[0].data) })
  {
    device.Free(memory);
  }
  device.DestroyStream(stream);
  return table;
}

template <typename TIn, typename TOut>
void
CompareWithHost(Device & device)
{
  std::mt19937 random(17);
  const auto   executor = MakeThreadExecutor(2);
  for (const Coordinates & extent : { Coordinates{ { 1500, 1100, 1, 1, 1 } },
                                      Coordinates{ { 515, 66, 7, 1, 1 } },
                                      Coordinates{ { 90, 40, 3, 1, 1 } } })
  {
    std::vector<TIn> image(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
    std::generate(image.begin(), image.end(), [&] { return static_cast<TIn>(random() % 2048) / 16; });
    for (const int axes : { 2, 3 })
    {
      const auto operation = MakeTable(extent, axes, false, true);
      const auto expected = RunOnHost<TOut>(*operation, image, *executor);
      for (const TableMethod method : { TableMethod::SinglePass, TableMethod::Blocks })
      {
        operation->method = method;
        EXPECT_TRUE(RunOnDevice<TOut>(device, *operation, image) == expected)
          << operation->GetKey() << ", " << axes << " axes of " << extent[0] << " columns";
      }
    }
  }
}

/** A tool that looks for reads of unset memory names the block method's sums; what they are set to would show here. */
TEST(SummedAreaTable, CudaTablesDoNotReadWhatIsNotSet)
{
  std::string reason;
  const auto  backend = GetCudaBackend(&reason);
  if (!backend)
  {
    GTEST_SKIP() << "no CUDA device: " << reason;
  }
  Device & device = *backend->GetDevices().front();
  CompareWithHost<float, float>(device);
  CompareWithHost<float, double>(device);
  CompareWithHost<double, double>(device);
  CompareWithHost<double, float>(device);
  CompareWithHost<std::int32_t, std::int32_t>(device);
  CompareWithHost<std::uint32_t, std::uint32_t>(device);
  CompareWithHost<std::uint8_t, std::uint64_t>(device);
  CompareWithHost<std::uint16_t, double>(device);
}

template <typename TFunctor>
std::string
MessageOf(TFunctor && f)
{
  try
  {
    f();
  }
  catch (const ParameterError & error)
  {
    return error.what();
  }
  return std::string();
}

TEST(SummedAreaTable, NamesTheLargestSumThatDoesNotFit)
{
  const auto check = [](std::int64_t columns, PixelType in, PixelType out, bool squares) {
    const auto operation = MakeTable({ { columns, 1, 7, 1, 1 } }, 2, squares);
    return MessageOf([&] { operation->CheckKinds({ in }, out); });
  };
  const std::int64_t most = 16843009; // 255 times this is 2^32 - 1
  EXPECT_EQ(check(most, PixelType::UInt8, PixelType::UInt32, false), "");
  EXPECT_NE(check(most + 1, PixelType::UInt8, PixelType::UInt32, false).find("4294967550"), std::string::npos);
  EXPECT_EQ(check(65535, PixelType::Int16, PixelType::Int32, false), "");
  EXPECT_NE(check(65536, PixelType::Int16, PixelType::Int32, false).find("2147483648"), std::string::npos);
  EXPECT_NE(check(3, PixelType::Int16, PixelType::UInt64, false).find("negative"), std::string::npos);
  EXPECT_EQ(check(3, PixelType::Int16, PixelType::UInt64, true), "");
  EXPECT_NE(check(66052, PixelType::UInt8, PixelType::UInt32, true), "");
  EXPECT_NE(check(2, PixelType::UInt64, PixelType::UInt64, false), "");
  EXPECT_NE(check(2, PixelType::Float32, PixelType::Int64, false), "");
  EXPECT_NE(check(2, PixelType::UInt8, PixelType::UInt16, false), "");
}

TEST(SummedAreaTable, RefusesARequestWithoutWhatIsBeforeIt)
{
  const Coordinates    extent{ { 5, 6, 7, 1, 1 } };
  const auto           operation = MakeTable(extent, 3);
  std::mt19937         random(5);
  Trial<float, double> t(random, operation, extent);
  Box                  region = Box::FromExtent(extent);
  region.lower[2] = 3;
  t.Prepare(region);
  Manager manager({});
  EXPECT_NE(MessageOf([&] { manager.Execute(t.request); }).find("before it"), std::string::npos);
  const auto four = MakeTable(extent, 4);
  EXPECT_NE(MessageOf([&] { four->Validate(extent); }).find("SummedAxes is 4"), std::string::npos);
}

} // namespace
