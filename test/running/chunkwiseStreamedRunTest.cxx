/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseStreamedRun.h"

#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseFakeDevices.h"
#include "chunkwiseFilters.h"
#ifdef CHUNKWISE_HAS_NETWORKS
#  include "chunkwiseNetworkOperation.h"
#endif
#include "chunkwiseOperations.h"
#include "chunkwiseRecordingMonitor.h"
#ifdef CHUNKWISE_HAS_NETWORKS
#  include "chunkwiseSmallNetwork.h"
#endif
#include "chunkwiseSummedAreaTableOperation.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

void
CopyBox(const Box & box, const BufferView & from, const BufferView & to)
{
  const std::size_t size = PixelSize(from.kind);
  Coordinates       index = box.lower;
  for (std::int64_t i = 0; i < box.NumberOfVoxels(); ++i)
  {
    std::memcpy(static_cast<char *>(to.data) + to.Offset(index) * static_cast<std::int64_t>(size),
                static_cast<const char *>(from.data) + from.Offset(index) * static_cast<std::int64_t>(size),
                size);
    for (int a = 0; a < MaxDimension && ++index[a] == box.upper[a]; ++a)
    {
      index[a] = box.lower[a];
    }
  }
}

/** An image in memory that behaves as a file: it counts, delays, fails, and may want its order kept. */
class TestImage
  : public ImageSource
  , public ImageSink
{
public:
  TestImage(const Coordinates & extent, PixelType kind)
    : voxels(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()) * PixelSize(kind))
    , m_Extent(extent)
    , m_Kind(kind)
  {}
  Coordinates
  GetExtent() const override
  {
    return m_Extent;
  }
  PixelType
  GetKind() const override
  {
    return m_Kind;
  }
  ImageAccess
  GetAccess() const override
  {
    return access;
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    Visit(box, view);
    CopyBox(box, GetView(), view);
  }
  void
  Write(const Box & box, const BufferView & view) override
  {
    Visit(box, view);
    CopyBox(box, view, GetView());
  }
  bool
  TakeRoom() override
  {
    roomTakenLate = roomTakenLate || visited > 0;
    if (++roomTaken > roomThereIs)
    {
      throw Error("there is no room");
    }
    return roomTaken < 5;
  }
  void
  Finish() override
  {}
  BufferView
  GetView()
  {
    return DenseView(voxels.data(), m_Kind, Box::FromExtent(m_Extent));
  }

  std::vector<unsigned char> voxels;
  ImageAccess                access;
  std::atomic<std::int64_t>  visited{ 0 };
  std::atomic<bool>          outOfOrder{ false };
  std::atomic<std::int64_t>  failsAfter{ std::numeric_limits<std::int64_t>::max() };
  std::atomic<bool>          hangs{ false };
  bool                       delays{ false };
  std::atomic<int>           roomTaken{ 0 };
  std::atomic<bool>          roomTakenLate{ false };
  int                        roomThereIs{ 5 };
  /** Called with the memory that Read is to fill, or that Write is given, and its bytes. */
  std::function<void(const void * memory, std::size_t bytes)> onMemory;
  /** The boxes of all calls, in their order. */
  std::vector<Box> boxes;

private:
  void
  Visit(const Box & box, const BufferView & view)
  {
    while (hangs)
    {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (delays)
    {
      std::this_thread::sleep_for(std::chrono::microseconds(std::hash<std::int64_t>()(visited * 31) % 97));
    }
    const std::lock_guard<std::mutex> lock(m_Mutex);
    if (onMemory)
    {
      onMemory(static_cast<const char *>(view.data) +
                 view.Offset(box.lower) * static_cast<std::int64_t>(PixelSize(view.kind)),
               static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(view.kind));
    }
    const std::int64_t first = GetView().Offset(box.lower);
    outOfOrder = outOfOrder || first < m_Next;
    m_Next = first + 1;
    visited += box.NumberOfVoxels();
    boxes.push_back(box);
    if (visited > failsAfter)
    {
      throw Error("the storage is gone");
    }
  }

  Coordinates  m_Extent;
  PixelType    m_Kind;
  std::mutex   m_Mutex;
  std::int64_t m_Next{ 0 };
};

/** A run of a filter over noise, and the result of the whole image in memory. */
struct Trial
{
  std::shared_ptr<TestImage> image;
  std::shared_ptr<TestImage> result;
  StreamedRequest            request;
  std::vector<unsigned char> expected;
  std::unique_ptr<Executor>  executor = MakeThreadExecutor(2);

  Trial(Manager & manager, const std::string & filter, const FilterParameters & parameters, const Coordinates & extent,
        PixelType stored, PixelType computed, std::mt19937 & random)
    : image(std::make_shared<TestImage>(extent, stored))
  {
    for (unsigned char & byte : image->voxels)
    {
      byte = static_cast<unsigned char>(random());
    }
    FilterImage description;
    description.dimension = 3;
    description.extent = extent;
    description.inputKind = stored;
    description.outputKind = computed;
    request.operation = MakeFilterOperation(filter, parameters, description);
    request.inputs.push_back({ image, stored });
    request.region = Box::FromExtent(extent);
    request.computedKind = request.writtenKind = computed;
    request.executor = executor.get();
    expected.resize(static_cast<std::size_t>(request.region.NumberOfVoxels()) * PixelSize(computed));
    ExecutionRequest whole;
    whole.operation = request.operation;
    whole.image = whole.region = request.region;
    whole.inputs.push_back(image->GetView());
    whole.output = DenseView(expected.data(), computed, request.region);
    whole.executor = executor.get();
    manager.Execute(whole);
    result = std::make_shared<TestImage>(extent, computed);
  }

  StreamedReport
  Run(Manager & manager, Monitor * monitor = nullptr)
  {
    request.sinkAccess = result->access;
    return ExecuteStreamed(manager, request, MakeStreamedPlan(manager, request), result, monitor);
  }
};

FilterParameters
Radius(std::int64_t radius)
{
  FilterParameters parameters;
  parameters.Set("Radius", std::vector<std::int64_t>(3, radius));
  return parameters;
}

/** Aborts when it is told to. */
class AbortingMonitor : public Monitor
{
public:
  void
  UpdateProgress(double) override
  {}
  bool
  ShouldAbort() override
  {
    return aborts;
  }
  std::atomic<bool> aborts{ false };
};

TEST(StreamedRun, AnyDivisionsGiveTheBitsOfTheWholeImage)
{
  std::mt19937 random(7);
  Manager      manager({});
  for (int trial = 0; trial < 60; ++trial)
  {
    const auto         below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
    const Coordinates  extent{ 1 + below(20), 1 + below(15), 1 + below(30), 1 + (below(3) == 0 ? below(3) : 0), 1 };
    const char * const names[] = { "mean", "median", "opening", "std", "sat" };
    const std::string  name = names[below(5)];
    Trial              run(manager,
              name,
              name == "sat" ? FilterParameters() : Radius(below(4)),
              extent,
              PixelType::UInt16,
              name == "sat" ? PixelType::Int64 : PixelType::UInt16,
              random);
    run.image->access.anyOrder = below(2) == 0;
    run.result->access.anyOrder = below(2) == 0;
    run.image->delays = run.result->delays = below(2) == 0;
    run.request.divisions = below(12);
    run.request.fileThreads = static_cast<unsigned int>(1 + below(3));
    RecordingMonitor monitor;
    run.Run(manager, &monitor);
    SCOPED_TRACE(name + ", divisions " + std::to_string(run.request.divisions));
    EXPECT_EQ(run.result->voxels, run.expected);
    EXPECT_EQ(run.image->visited, run.request.region.NumberOfVoxels()) << "each voxel is read once";
    EXPECT_FALSE(run.image->outOfOrder && !run.image->access.anyOrder);
    EXPECT_FALSE(run.result->outOfOrder && !run.result->access.anyOrder);
    ASSERT_FALSE(monitor.fractions.empty());
    EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
    EXPECT_EQ(monitor.fractions.back(), 1.0);
  }
}

TEST(StreamedRun, UnitsOfSourcesAndSinksAreTakenWhole)
{
  std::mt19937 random(31);
  Manager      manager({});
  int          readWhole = 0;
  int          divided = 0;
  for (int trial = 0; trial < 80; ++trial)
  {
    const auto         below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
    const Coordinates  extent{ 1 + below(20), 1 + below(15), 30 + below(40), 1, 1 };
    const bool         isTable = below(4) == 0;
    const PixelType    kind = isTable ? PixelType::Int64 : PixelType::UInt16;
    Trial              run(manager,
              isTable ? "sat" : "mean",
              isTable ? FilterParameters() : Radius(below(5)),
              extent,
              PixelType::UInt16,
              kind,
              random);
    const std::int64_t ofSource = 1 + below(12);
    const std::int64_t ofSink = 1 + below(12);
    run.image->access.unit[2] = ofSource;
    run.result->access.unit[2] = ofSink;
    run.image->access.wholeBoxes = run.result->access.wholeBoxes = true;
    run.request.divisions = below(3) == 0 ? 0 : 1 + below(12);
    // Mostly too little for what is read and written in units, and then for anything.
    run.request.memory =
      below(2) == 0 ? 0 : static_cast<std::uint64_t>(extent[0] * extent[1] * (60 + below(200))) + 4096;
    run.request.sinkAccess = run.result->access;
    StreamedPlan plan;
    try
    {
      plan = MakeStreamedPlan(manager, run.request);
    }
    catch (const DivisionsError & error)
    {
      EXPECT_GT(error.needed, run.request.memory);
      run.request.memory = error.needed;
      plan = MakeStreamedPlan(manager, run.request);
    }
    EXPECT_LE(plan.bytesAtOnce, run.request.memory ? run.request.memory : plan.bytesAtOnce);
    ExecuteStreamed(manager, run.request, plan, run.result);
    EXPECT_EQ(run.result->voxels, run.expected);
    EXPECT_EQ(run.image->visited, run.request.region.NumberOfVoxels()) << "each voxel is read once";
    const auto isEdge = [&](std::int64_t at, std::int64_t unit) { return at % unit == 0 || at == extent[2]; };
    EXPECT_EQ(run.result->boxes.size(), static_cast<std::size_t>(plan.divisions)) << "a call for each division";
    for (const Box & box : run.result->boxes)
    {
      EXPECT_TRUE(isEdge(box.lower[2], ofSink) && isEdge(box.upper[2], ofSink));
    }
    EXPECT_LE(run.image->boxes.size(), static_cast<std::size_t>(plan.divisions));
    for (const Box & box : run.image->boxes)
    {
      EXPECT_TRUE(!plan.readsWholeUnits || isEdge(box.upper[2], ofSource));
    }
    readWhole += plan.readsWholeUnits && plan.divisions > 1 ? 1 : 0;
    divided += plan.divisions > 1 ? 1 : 0;
  }
  EXPECT_GT(readWhole, 20);
  EXPECT_GT(divided, readWhole) << "some have no memory for whole units";
}

TEST(StreamedRun, UnitsOfSinksAreCutWhereTheyHaveNoRoomInMemory)
{
  std::mt19937 random(53);
  Manager      manager({});
  int          withRoom = 0;
  for (int trial = 0; trial < 40; ++trial)
  {
    const auto         below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
    const Coordinates  extent{ 40 + below(20), 40 + below(20), 30 + below(40), 1, 1 };
    Trial              run(manager, "mean", Radius(below(3)), extent, PixelType::UInt16, PixelType::UInt16, random);
    const std::int64_t unit = 10 + below(20);
    run.image->access.unit[2] = 1 + below(20);
    run.result->access.unit[2] = unit;
    run.image->access.wholeBoxes = run.result->access.wholeBoxes = true;
    const auto plan = [&](bool partsOfUnits) {
      run.result->access.partsOfUnits = partsOfUnits;
      run.request.sinkAccess = run.result->access;
      return MakeStreamedPlan(manager, run.request);
    };
    for (run.request.memory = static_cast<std::uint64_t>(extent[0] * extent[1] * 8 * unit);;
         run.request.memory -= run.request.memory / 8)
    {
      bool hasRoom = true;
      try
      {
        plan(false);
      }
      catch (const DivisionsError &)
      {
        hasRoom = false;
      }
      const StreamedPlan found = plan(true);
      EXPECT_EQ(found.step == unit, hasRoom) << found.step << " of " << unit;
      EXPECT_LE(found.bytesAtOnce, run.request.memory);
      std::fill(run.result->voxels.begin(), run.result->voxels.end(), static_cast<unsigned char>(0));
      ExecuteStreamed(manager, run.request, found, run.result);
      EXPECT_EQ(run.result->voxels, run.expected);
      if (!hasRoom)
      {
        break;
      }
      ++withRoom;
    }
  }
  EXPECT_GT(withRoom, 20);
}

TEST(StreamedRun, CopiesTakeNoMemoryForTheirOutput)
{
  std::mt19937 random(41);
  Manager      manager({});
  for (int trial = 0; trial < 40; ++trial)
  {
    const auto        below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
    const Coordinates extent{ 1 + below(20), 1 + below(15), 20 + below(40), 1, 1 };
    const PixelType   computed = below(4) == 0 ? PixelType::Float32 : PixelType::UInt16;
    Trial             run(manager, "identity", FilterParameters(), extent, PixelType::UInt16, computed, random);
    run.image->access.unit[2] = 1 + below(9);
    run.result->access.unit[2] = 1 + below(9);
    run.image->access.wholeBoxes = run.result->access.wholeBoxes = below(2) == 0;
    run.image->access.anyOrder = run.result->access.anyOrder = below(2) == 0;
    run.image->delays = run.result->delays = below(2) == 0;
    run.request.divisions = 1 + below(12);
    run.request.sinkAccess = run.result->access;
    const StreamedPlan computes = MakeStreamedPlan(manager, run.request);
    EXPECT_FALSE(computes.copies);
    run.request.copiesVoxels = true;
    const StreamedPlan plan = MakeStreamedPlan(manager, run.request);
    EXPECT_EQ(plan.copies, computed == PixelType::UInt16);
    EXPECT_EQ(plan.divisions, computes.divisions);
    const Box         division = GetDivision(run.request.region, plan, 0);
    const std::size_t output = static_cast<std::size_t>(division.NumberOfVoxels()) * PixelSize(computed);
    EXPECT_GE(computes.bytesAtOnce,
              plan.bytesAtOnce + (plan.copies ? static_cast<std::size_t>(plan.buffers) * output / 2 : 0));
    RecordingMonitor monitor;
    ExecuteStreamed(manager, run.request, plan, run.result, &monitor);
    EXPECT_EQ(run.result->voxels, run.expected);
    EXPECT_EQ(run.image->visited, run.request.region.NumberOfVoxels()) << "each voxel is read once";
    EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
    EXPECT_EQ(monitor.fractions.back(), 1.0);
  }
}

/** Filters of all schedules that are streamed, each in some divisions. */
void
ExpectTheSameBits(Manager & manager)
{
  std::mt19937 random(8);
  for (const std::string name : { "mean", "median", "opening", "sat" })
  {
    for (const std::int64_t divisions : { 1, 2, 5, 40 })
    {
      const bool isTable = name == "sat";
      Manager    host({});
      Trial      run(host,
                name,
                isTable ? FilterParameters() : Radius(2),
                     { 33, 21, 40, 1, 1 },
                PixelType::UInt8,
                isTable ? PixelType::UInt32 : PixelType::UInt8,
                random);
      run.request.divisions = divisions;
      run.request.backend = BackendChoice::CUDA;
      EXPECT_EQ(run.Run(manager).execution.chunksOnHost, 0);
      EXPECT_EQ(run.result->voxels, run.expected) << name << ", " << divisions;
    }
  }
}

TEST(StreamedRun, DevicesGiveTheSameBits)
{
  FakeDevice::Options options;
  options.jitter = true;
  FakeDevices devices(2, options, GetHostKernels());
  const auto  manager = devices.MakeManager();
  ExpectTheSameBits(*manager);
  EXPECT_GT(devices.fakes.front()->CountCalls("AllocatePinned"), 0);
  // Pinned memory of divisions is no need.
  std::mt19937 random(3);
  Trial        run(*manager, "mean", Radius(1), { 20, 20, 20, 1, 1 }, PixelType::UInt8, PixelType::UInt8, random);
  run.request.divisions = 4;
  devices.fakes.front()->FailAt("AllocatePinned", 0, true, DeviceError::Kind::OutOfMemory);
  run.request.devices = { 1 };
  run.Run(*manager);
  EXPECT_EQ(run.result->voxels, run.expected);
}

TEST(StreamedRun, BytesOfAllDivisionsAreReported)
{
  std::mt19937 random(7);
  FakeDevices  devices(1, FakeDevice::Options(), GetHostKernels());
  const auto   manager = devices.MakeManager();
  Trial        run(*manager, "mean", Radius(1), { 20, 20, 20, 1, 1 }, PixelType::UInt8, PixelType::UInt8, random);
  run.request.divisions = 4;
  const StreamedReport report = run.Run(*manager);
  EXPECT_EQ(run.result->voxels, run.expected);
  EXPECT_GE(report.execution.bytesToDevice, static_cast<double>(run.request.region.NumberOfVoxels()));
}

TEST(StreamedRun, SourcesFillTheMemoryThatDevicesCopyFrom)
{
  std::mt19937 random(15);
  std::size_t  most = 0;
  int          ofPlanes = 0;
  for (int trial = 0; trial < 16; ++trial)
  {
    FakeDevice::Options options;
    options.jitter = trial % 3 == 0;
    options.linkRate = 1e9; // rows cost more than bytes, as they do on a fast link
    FakeDevices devices(1 + static_cast<std::size_t>(trial % 2), options, GetHostKernels());
    const auto  manager = devices.MakeManager();
    Manager     host({});
    Trial       run(host,
              trial % 4 == 3 ? "median" : "mean",
              Radius(trial % 4 == 3 ? 1 : trial % 4),
                    { 160, 110, 60, 1, 1 },
              PixelType::UInt16,
              PixelType::UInt16,
              random);
    run.image->delays = run.result->delays = trial % 2 == 0;
    run.request.divisions = 1 + trial / 2;
    run.request.backend = BackendChoice::CUDA;
    run.request.budgets.device = 1500000;
    std::mutex             mutex;
    std::set<const void *> ofFiles;   // blocks of pinned memory that source and sink were given; nullptr: other memory
    std::set<const void *> ofDevices; // that devices copied from and to
    const auto             noteIn = [&mutex](std::set<const void *> & blocks) {
      return [&mutex, &blocks](const void * memory, std::size_t bytes) {
        const std::lock_guard<std::mutex> lock(mutex);
        blocks.insert(FakeDevice::FindPinned(memory, bytes));
      };
    };
    run.image->onMemory = run.result->onMemory = noteIn(ofFiles);
    for (const auto & fake : devices.fakes)
    {
      fake->onHostMemory = noteIn(ofDevices);
    }
    const StreamedReport report = run.Run(*manager);
    EXPECT_EQ(run.result->voxels, run.expected);
    EXPECT_EQ(run.image->visited, run.request.region.NumberOfVoxels());
    EXPECT_EQ(ofFiles.count(nullptr), 0u);
    most = std::max(most, report.execution.plan.chunks.size());
    const Coordinates & chunk = report.execution.plan.chunkExtent;
    if (chunk[0] == run.request.region.Extent(0) && chunk[1] == run.request.region.Extent(1))
    {
      // No piece goes through memory between that of the files and the device's. Short rows of planes that are cut do.
      EXPECT_EQ(ofDevices, ofFiles) << run.request.divisions << " divisions, chunks of "
                                    << ToString(Box::FromExtent(chunk));
      ++ofPlanes;
    }
  }
  EXPECT_GT(most, 3u);
  EXPECT_GT(ofPlanes, 12);
}

TEST(StreamedRun, CudaGivesTheSameBits)
{
  if (Manager::GetGlobal().GetDevices().empty())
  {
    GTEST_SKIP() << Manager::GetGlobal().GetReasonForNoDevices();
  }
  ExpectTheSameBits(Manager::GetGlobal());
  // Rows of chunks that are long enough to be copied without staging.
  std::mt19937 random(16);
  Manager      host({});
  for (const std::int64_t divisions : { 1, 2, 7 })
  {
    Trial run(host, "mean", Radius(1), { 700, 400, 40, 1, 1 }, PixelType::UInt16, PixelType::UInt16, random);
    run.request.divisions = divisions;
    run.request.backend = BackendChoice::CUDA;
    run.request.budgets.device = 3000000;
    run.Run(Manager::GetGlobal());
    EXPECT_EQ(run.result->voxels, run.expected) << divisions;
  }
}

TEST(StreamedRun, ARegionIsThatPartOfTheWhole)
{
  std::mt19937      random(9);
  Manager           manager({});
  const Coordinates extent{ 23, 17, 29, 1, 1 };
  Trial             run(manager, "mean", Radius(2), extent, PixelType::UInt8, PixelType::UInt8, random);
  run.request.region.lower = { 3, 0, 5, 0, 0 };
  run.request.region.upper = { 20, 16, 28, 1, 1 };
  run.result = std::make_shared<TestImage>(run.request.region.Extents(), PixelType::UInt8);
  run.request.divisions = 4;
  run.Run(manager);
  TestImage part(run.request.region.Extents(), PixelType::UInt8);
  CopyBox(run.request.region,
          DenseView(run.expected.data(), PixelType::UInt8, Box::FromExtent(extent)),
          DenseView(part.voxels.data(), PixelType::UInt8, run.request.region));
  EXPECT_EQ(run.result->voxels, part.voxels);

  // The computed region may be larger than the written one.
  const Box written = run.request.region;
  run.request.region = Box::FromExtent(extent);
  run.request.written = written;
  for (const std::int64_t divisions : { 1, 3, 29 })
  {
    std::fill(run.result->voxels.begin(), run.result->voxels.end(), std::uint8_t{ 0 });
    run.request.divisions = divisions;
    run.Run(manager);
    EXPECT_EQ(run.result->voxels, part.voxels);
  }
}

TEST(StreamedRun, VoxelsAreConvertedAndWhatIsCutIsCounted)
{
  std::mt19937 random(10);
  Manager      manager({});
  Trial        run(manager, "mean", Radius(0), { 40, 30, 20, 1, 1 }, PixelType::Int16, PixelType::Int16, random);
  run.result = std::make_shared<TestImage>(run.image->GetExtent(), PixelType::UInt8);
  run.request.inputs.front().kind = PixelType::Float32;
  run.request.computedKind = PixelType::Float32;
  run.request.writtenKind = PixelType::UInt8;
  run.request.divisions = 3;
  const StreamedReport report = run.Run(manager);
  std::int64_t         cut = 0;
  const auto *         before = reinterpret_cast<const std::int16_t *>(run.image->voxels.data());
  for (std::size_t i = 0; i < run.result->voxels.size(); ++i)
  {
    cut += before[i] < 0 || before[i] > 255 ? 1 : 0;
    ASSERT_EQ(run.result->voxels[i], before[i] < 0 ? 0 : std::min<int>(before[i], 255));
  }
  EXPECT_EQ(report.cut, cut);
}

TEST(StreamedRun, DivisionsFitTheMemoryOrTheErrorSaysWhatWould)
{
  std::mt19937 random(11);
  Manager      manager({});
  Trial        run(manager, "mean", Radius(1), { 64, 64, 64, 1, 1 }, PixelType::UInt16, PixelType::UInt16, random);
  run.request.memory = 100;
  std::size_t enough = 0;
  try
  {
    MakeStreamedPlan(manager, run.request);
    FAIL() << "100 bytes are too few";
  }
  catch (const DivisionsError & error)
  {
    EXPECT_EQ(error.divisions, 64);
    enough = error.needed;
  }
  run.request.memory = enough;
  const StreamedPlan least = MakeStreamedPlan(manager, run.request);
  EXPECT_EQ(least.buffers, 1);
  EXPECT_LE(least.bytesAtOnce + least.budgets.host, enough);
  const StreamedReport report = run.Run(manager);
  EXPECT_EQ(run.result->voxels, run.expected);
  EXPECT_LE(least.bytesAtOnce + report.execution.peakHost, enough);

  run.request.memory = 16 * enough;
  EXPECT_EQ(MakeStreamedPlan(manager, run.request).buffers, 2);
}

TEST(StreamedRun, DivisionsAreThickerThanTheirHaloWhereOneFits)
{
  std::mt19937 random(14);
  Manager      manager({});
  Trial        run(manager, "mean", Radius(4), { 64, 64, 128, 1, 1 }, PixelType::UInt16, PixelType::UInt16, random);
  for (std::uint64_t memory = 600000; memory < (std::uint64_t{ 4 } << 20); memory += 100000)
  {
    run.request.memory = memory;
    const StreamedPlan plan = MakeStreamedPlan(manager, run.request);
    EXPECT_GT(128 / plan.divisions, 8) << memory;
    EXPECT_LE(plan.bytesAtOnce + plan.budgets.host, memory);
  }
  run.request.memory = 600000;
  run.Run(manager);
  EXPECT_EQ(run.result->voxels, run.expected);
}

TEST(StreamedRun, ErrorsOfTheStorageComeOutAndTheManagerGoesOn)
{
  std::mt19937 random(12);
  Manager      manager({});
  Trial        run(manager, "median", Radius(1), { 30, 30, 30, 1, 1 }, PixelType::UInt8, PixelType::UInt8, random);
  const std::int64_t all = run.request.region.NumberOfVoxels();
  for (const std::int64_t divisions : { 1, 2, 7, 30 })
  {
    run.request.divisions = divisions;
    for (const std::int64_t failsAfter : { std::int64_t{ 0 }, all / 2, all - 1 })
    {
      for (const auto & storage : { run.image, run.result })
      {
        run.image->visited = run.result->visited = 0;
        storage->failsAfter = failsAfter;
        try
        {
          run.Run(manager);
          ADD_FAILURE() << "a lost voxel was not noticed";
        }
        catch (const Error & error)
        {
          EXPECT_STREQ(error.what(), "the storage is gone");
        }
        storage->failsAfter = std::numeric_limits<std::int64_t>::max();
      }
    }
    run.Run(manager);
    EXPECT_EQ(run.result->voxels, run.expected);
  }
}

TEST(StreamedRun, AnAbortWorksWhileTheStorageHangs)
{
  std::mt19937 random(13);
  Manager      manager({});
  for (const bool ofSink : { false, true })
  {
    Trial      run(manager, "mean", Radius(1), { 30, 30, 30, 1, 1 }, PixelType::UInt8, PixelType::UInt8, random);
    const auto storage = ofSink ? run.result : run.image;
    storage->hangs = true;
    run.request.divisions = 5;
    AbortingMonitor monitor;
    std::thread     user([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      monitor.aborts = true;
    });
    EXPECT_THROW(run.Run(manager, &monitor), Aborted);
    user.join();
    // A call that hung may go on: nothing that it needs is gone.
    storage->hangs = false;
  }
}

/** A reconstruction whose images the host's memory is too small for. */
struct HeldTrial : Trial
{
  HeldTrial(const std::string & filter, const Coordinates & extent, PixelType stored, PixelType computed,
            std::mt19937 & random)
    : HeldTrial(Manager({}), filter, extent, stored, computed, random)
  {}

private:
  HeldTrial(Manager && host, const std::string & filter, const Coordinates & extent, PixelType stored,
            PixelType computed, std::mt19937 & random)
    : Trial(host, filter, MakeParameters(filter), extent, stored, computed, random)
  {
    // Less than both images take, enough for slabs.
    request.memory = static_cast<std::uint64_t>(request.region.NumberOfVoxels()) * PixelSize(computed) * 19 / 10;
    request.spoolFolder = testing::TempDir();
  }
  static FilterParameters
  MakeParameters(const std::string & filter)
  {
    FilterParameters parameters;
    if (filter == "h-maxima" || filter == "h-convex")
    {
      parameters.Set("Height", 40.0);
    }
    return parameters;
  }
};

TEST(StreamedRun, ADeviceHoldsReconstructionsThatTheHostCannot)
{
  std::mt19937 random(21);
  int          trial = 0;
  for (const char * const filter : { "h-maxima", "fill-holes", "h-convex" })
  {
    for (const PixelType kind : { PixelType::UInt8, PixelType::UInt16 })
    {
      for (const bool anyOrder : { true, false })
      {
        SCOPED_TRACE(std::string(filter) + ", " + std::to_string(PixelSize(kind)) + (anyOrder ? ", any order" : ""));
        FakeDevice::Options options;
        options.jitter = ++trial % 2 == 0;
        FakeDevices devices(2, options, GetHostKernels());
        const auto  manager = devices.MakeManager();
        HeldTrial   run(filter, { 90, 80, 100, 1, 1 }, kind, kind, random);
        run.request.memory = run.request.memory / 2; // less than one image takes
        run.image->access.anyOrder = run.result->access.anyOrder = anyOrder;
        run.image->delays = run.result->delays = options.jitter;
        run.request.devices = { trial % 3 == 0 ? 1 : 0 };
        run.request.sinkAccess = run.result->access;
        const StreamedPlan plan = MakeStreamedPlan(*manager, run.request);
        EXPECT_EQ(plan.heldOnDevice, run.request.devices.front());
        EXPECT_GT(plan.divisions, 1);
        EXPECT_LE(plan.bytesAtOnce, run.request.memory);
        RecordingMonitor     monitor;
        const StreamedReport report = run.Run(*manager, &monitor);
        EXPECT_EQ(run.result->voxels, run.expected);
        EXPECT_EQ(run.image->visited, run.request.region.NumberOfVoxels()) << "each voxel is read once";
        EXPECT_EQ(run.result->visited, run.request.region.NumberOfVoxels());
        EXPECT_FALSE(!anyOrder && (run.image->outOfOrder || run.result->outOfOrder));
        EXPECT_EQ(report.spooled, 0u);
        EXPECT_GT(run.result->roomTaken, 0);
        EXPECT_LE(run.result->roomTaken, 5);
        EXPECT_FALSE(run.result->roomTakenLate) << "room is taken before anything is written";
        EXPECT_TRUE(report.execution.warnings.empty());
        EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
        EXPECT_EQ(monitor.fractions.back(), 1.0);
      }
    }
  }
}

/** Loading has no result in memory, and storing no image: units that fit alone are not cut. */
TEST(StreamedRun, HeldImagesAreLoadedAndStoredInWholeUnits)
{
  std::mt19937            random(23);
  constexpr std::int64_t  unit = 20;
  constexpr std::uint64_t layer = 90 * 80 * unit;
  for (const PixelType kind : { PixelType::UInt8, PixelType::UInt16 })
  {
    FakeDevices devices(1, FakeDevice::Options(), GetHostKernels());
    const auto  manager = devices.MakeManager();
    HeldTrial   run("h-maxima", { 90, 80, 100, 1, 1 }, kind, kind, random);
    run.image->access.unit[2] = run.result->access.unit[2] = unit;
    run.image->access.wholeBoxes = run.result->access.wholeBoxes = run.result->access.partsOfUnits = true;
    run.request.backend = BackendChoice::CUDA;
    run.request.memory = layer * PixelSize(kind) * 3 / 2;
    run.request.sinkAccess = run.result->access;
    const StreamedPlan plan = MakeStreamedPlan(*manager, run.request);
    EXPECT_EQ(plan.heldOnDevice, 0);
    EXPECT_EQ(plan.divisions, 5);
    EXPECT_EQ(plan.bytesAtOnce, layer * PixelSize(kind));
    ExecuteStreamed(*manager, run.request, plan, run.result);
    EXPECT_EQ(run.result->voxels, run.expected);
    for (const auto & storage : { run.image, run.result })
    {
      EXPECT_EQ(storage->visited, run.request.region.NumberOfVoxels());
      EXPECT_EQ(storage->boxes.size(), 5u) << "each unit is decoded, or encoded, once";
    }
  }
}

/** A result on a grid of the image's size, whose divisions would not have room for whole units. */
TEST(StreamedRun, ADeviceHoldsImagesThatGetAnotherGrid)
{
  std::mt19937 random(24);
  for (const char * const filter : { "flip", "resample" })
  {
    for (const std::uint64_t memory : { 150000, 1500000 })
    {
      SCOPED_TRACE(filter);
      FakeDevices      devices(1, FakeDevice::Options(), GetHostKernels());
      const auto       manager = devices.MakeManager();
      Manager          host({});
      FilterParameters parameters;
      if (std::string(filter) == "resample")
      {
        parameters.Set("Affine", std::vector<double>{ 1, 0, 0, 2.5, 0, 1, 0, -3, 0, 0, 1, 0.25 });
      }
      Trial run(host, filter, parameters, { 90, 80, 100, 1, 1 }, PixelType::UInt8, PixelType::UInt8, random);
      run.image->access.unit[2] = run.result->access.unit[2] = 20;
      run.image->access.wholeBoxes = run.result->access.wholeBoxes = run.result->access.partsOfUnits = true;
      run.request.backend = BackendChoice::CUDA;
      run.request.memory = memory;
      run.request.sinkAccess = run.result->access;
      const StreamedPlan plan = MakeStreamedPlan(*manager, run.request);
      const bool         isHeld = memory < 200000; // room for a unit, not for all units of a division
      EXPECT_EQ(plan.heldOnDevice, isHeld ? 0 : -1);
      ExecuteStreamed(*manager, run.request, plan, run.result);
      EXPECT_EQ(run.result->voxels, run.expected);
      EXPECT_TRUE(!isHeld || run.image->boxes.size() == 5u) << run.image->boxes.size() << " boxes are read";
    }
  }
}

/** In one chunk, whose summary nobody needs: the image is read once. */
TEST(StreamedRun, ADeviceHoldsImagesOfTwoPasses)
{
  std::mt19937 random(22);
  for (const char * const filter : { "watershed", "label", "distance" })
  {
    SCOPED_TRACE(filter);
    const bool      isDistance = std::string(filter) == "distance";
    const PixelType computed = isDistance ? PixelType::Float32 : PixelType::UInt32;
    for (const std::size_t room : { std::size_t{ 64 } << 20, std::size_t{ 5 } << 20 })
    {
      // The kernels of a device with little memory would cut the image, and need the host's memory for that.
      const bool isHeld = room > std::size_t{ 20 } << 20;
      if (!isHeld && std::string(filter) == "watershed")
      {
        continue; // blocks of few planes take more than the image
      }
      FakeDevice::Options options;
      options.memory = room;
      FakeDevices devices(1, options, GetHostKernels());
      const auto  manager = devices.MakeManager();
      HeldTrial   run(filter, { 90, 80, 100, 1, 1 }, PixelType::UInt8, computed, random);
      run.request.backend = BackendChoice::CUDA;
      run.request.memory = 3500000;
      const StreamedPlan plan = MakeStreamedPlan(*manager, run.request);
      EXPECT_EQ(plan.heldOnDevice, isHeld ? 0 : -1);
      run.Run(*manager);
      EXPECT_EQ(run.result->voxels, run.expected);
      EXPECT_EQ(run.image->visited, run.request.region.NumberOfVoxels() * (isHeld ? 1 : 2));
    }
  }
}

/** The room of the images, once, and of the scratch is enough. */
TEST(StreamedRun, ADeviceHoldsImagesInTheRoomOfOne)
{
  std::mt19937 random(31);
  for (const char * const filter : { "watershed", "label", "distance" })
  {
    SCOPED_TRACE(filter);
    const PixelType computed = std::string(filter) == "distance" ? PixelType::Float32 : PixelType::UInt32;
    FakeDevices     devices(1, FakeDevice::Options(), GetHostKernels());
    const auto      manager = devices.MakeManager();
    HeldTrial       run(filter, { 90, 80, 100, 1, 1 }, PixelType::UInt8, computed, random);
    run.request.backend = BackendChoice::CUDA;
    run.request.memory = 3500000;
    const Box         all = run.request.region;
    ChunkShape        shape;
    const KernelSet & kernels = *GetHostKernels().FindSet(run.request.operation->GetName());
    shape.image = shape.inputBox = shape.outputBox = all;
    shape.numberOfInputs = 1;
    shape.inputKinds[0] = PixelType::UInt8;
    shape.outputKind = computed;
    shape.concurrency = 1;
    shape.kernels = &GetHostKernels();
    const std::size_t images = static_cast<std::size_t>(all.NumberOfVoxels()) * (1 + PixelSize(computed));
    const std::size_t scratch = kernels.alone.scratchBytes(*run.request.operation, shape);
    run.request.budgets.device = images + scratch / 2;
    try
    {
      EXPECT_EQ(MakeStreamedPlan(*manager, run.request).heldOnDevice, -1);
    }
    catch (const BudgetError &)
    {
      // Blocks of a watershed take more of the host.
    }
    run.request.budgets.device = images + scratch + 8192;
    ASSERT_EQ(MakeStreamedPlan(*manager, run.request).heldOnDevice, 0);
    const StreamedReport report = run.Run(*manager);
    EXPECT_EQ(run.result->voxels, run.expected);
    EXPECT_EQ(run.image->visited, all.NumberOfVoxels());
    EXPECT_TRUE(report.execution.warnings.empty());
    EXPECT_LE(report.execution.peakDevice, run.request.budgets.device);
  }
}

/** The device counts them before anything is written. */
TEST(StreamedRun, HeldLabelsThatTheOutputCannotHoldAreRefused)
{
  std::mt19937 random(32);
  FakeDevices  devices(1, FakeDevice::Options(), GetHostKernels());
  const auto   manager = devices.MakeManager();
  HeldTrial    run("label", { 90, 80, 100, 1, 1 }, PixelType::UInt8, PixelType::UInt8, random);
  run.request.backend = BackendChoice::CUDA;
  ASSERT_EQ(MakeStreamedPlan(*manager, run.request).heldOnDevice, 0);
  run.result->roomThereIs = 1000;
  run.Run(*manager);
  EXPECT_EQ(run.result->voxels, run.expected);
  EXPECT_EQ(run.image->visited, run.request.region.NumberOfVoxels());
  std::fill(run.image->voxels.begin(), run.image->voxels.end(), static_cast<unsigned char>(0));
  for (std::size_t i = 0; i < 2000; ++i)
  {
    // None is a neighbor of another one.
    run.image->voxels[2 * (i % 45) + 90 * 2 * (i / 45 % 40) + 90 * 80 * 2 * (i / 1800)] = 1;
  }
  run.result->visited = 0;
  try
  {
    run.Run(*manager);
    ADD_FAILURE() << "2000 labels in a byte";
  }
  catch (const Error & error)
  {
    EXPECT_NE(std::string(error.what()).find("2000 components"), std::string::npos) << error.what();
  }
  EXPECT_EQ(run.result->visited, 0);
}

TEST(StreamedRun, WhatNoDeviceCanHoldGoesInSlabs)
{
  std::mt19937 random(22);
  HeldTrial    run("h-maxima", { 90, 80, 100, 1, 1 }, PixelType::UInt8, PixelType::UInt8, random);
  const auto   bytes = static_cast<std::size_t>(run.request.region.NumberOfVoxels());
  const auto   holds = [&run](Manager & manager) { return MakeStreamedPlan(manager, run.request).heldOnDevice >= 0; };
  FakeDevices  devices(1, FakeDevice::Options(), GetHostKernels());
  const auto   manager = devices.MakeManager();
  EXPECT_TRUE(holds(*manager));
  run.request.backend = BackendChoice::CPU;
  EXPECT_FALSE(holds(*manager));
  run.request.backend = BackendChoice::Auto;
  // Both images, but nothing to work with.
  run.request.budgets.device = 2 * bytes + 1000;
  EXPECT_FALSE(holds(*manager));
  EXPECT_TRUE(MakeStreamedPlan(*manager, run.request).inSlabs);
  run.Run(*manager);
  EXPECT_EQ(run.result->voxels, run.expected);
  // An image that stays there takes its part of the budget.
  run.request.budgets.device = 20 * bytes;
  EXPECT_TRUE(holds(*manager));
  const auto image = manager->AllocateOnDevice(0, 18 * bytes);
  EXPECT_FALSE(holds(*manager));
}

/** Not even moves to the device fit. */
TEST(StreamedRun, MemoryThatHoldsNothingIsRefusedBesideADeviceThatHoldsAll)
{
  std::mt19937 random(33);
  FakeDevices  devices(1, FakeDevice::Options(), GetHostKernels());
  const auto   manager = devices.MakeManager();
  for (const char * const filter : { "identity", "h-maxima", "watershed" })
  {
    SCOPED_TRACE(filter);
    const PixelType computed = std::string(filter) == "watershed" ? PixelType::UInt32 : PixelType::UInt8;
    HeldTrial       run(filter, { 90, 80, 100, 1, 1 }, PixelType::UInt8, computed, random);
    run.request.backend = BackendChoice::CUDA;
    run.request.memory = 1;
    EXPECT_THROW(MakeStreamedPlan(*manager, run.request), BudgetError);
  }
}

TEST(StreamedRun, WhereTheDeviceFailsTheImageGoesInSlabs)
{
  std::mt19937 random(23);
  int          inSlabs = 0;
  for (const bool anyOrder : { true, false })
  {
    for (const char * const call : { "Allocate", "CopyToDevice", "kernel", "CopyToHost" })
    {
      for (const int at : { 0, 5 })
      {
        SCOPED_TRACE(std::string(call) + " " + std::to_string(at) + (anyOrder ? ", any order" : ""));
        FakeDevices devices(1, FakeDevice::Options(), GetHostKernels());
        const auto  manager = devices.MakeManager();
        HeldTrial   run("h-maxima", { 90, 80, 100, 1, 1 }, PixelType::UInt8, PixelType::UInt8, random);
        run.image->access.anyOrder = anyOrder;
        run.request.sinkAccess = run.result->access;
        ASSERT_EQ(MakeStreamedPlan(*manager, run.request).heldOnDevice, 0);
        devices.fakes.front()->FailAt(call, at, true, DeviceError::Kind::Failed);
        RecordingMonitor monitor;
        try
        {
          const StreamedReport report = run.Run(*manager, &monitor);
          EXPECT_EQ(run.result->voxels, run.expected);
          const auto & warnings = report.execution.warnings;
          inSlabs += !warnings.empty() && warnings.front().find("goes in slabs") != std::string::npos ? 1 : 0;
          EXPECT_EQ(monitor.fractions.back(), 1.0);
        }
        catch (const DeviceError &)
        {
          // Data that cannot be read again, or was partly written, is lost, and the run says so.
          EXPECT_TRUE(!anyOrder || run.result->visited > 0);
          EXPECT_LT(monitor.fractions.empty() ? 0.0 : monitor.fractions.back(), 1.0);
        }
        EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
        devices.fakes.front()->ClearFaults();
      }
    }
  }
  EXPECT_GT(inSlabs, 3);
}

/** A mean of so many planes that divisions would mostly read those of others. */
struct WideTrial : Trial
{
  explicit WideTrial(std::mt19937 & random, std::int64_t radius = 15)
    : WideTrial(Manager({}), random, radius)
  {}

private:
  WideTrial(Manager && host, std::mt19937 & random, std::int64_t radius)
    : Trial(host, "mean", Radius(radius), { 40, 30, 120, 1, 1 }, PixelType::UInt8, PixelType::UInt8, random)
  {
    request.memory = static_cast<std::uint64_t>(request.region.NumberOfVoxels()) * 11 / 10;
    request.sinkAccess = result->access;
  }
};

TEST(StreamedRun, ADeviceHoldsImagesWhoseDivisionsWouldBeHalo)
{
  std::mt19937 random(26);
  FakeDevices  devices(1, FakeDevice::Options(), GetHostKernels());
  const auto   manager = devices.MakeManager();
  WideTrial    run(random);
  const auto   holds = [&manager](const WideTrial & trial) {
    return MakeStreamedPlan(*manager, trial.request).heldOnDevice >= 0;
  };
  ASSERT_TRUE(holds(run));
  run.Run(*manager);
  EXPECT_EQ(run.result->voxels, run.expected);
  EXPECT_EQ(run.image->visited, run.request.region.NumberOfVoxels()) << "each voxel is read once";
  // Even where no division fits.
  run.result->roomThereIs = 1000;
  run.request.memory = 40 * 30 * 20;
  ASSERT_TRUE(holds(run));
  EXPECT_LE(MakeStreamedPlan(*manager, run.request).bytesAtOnce, run.request.memory);
  run.Run(*manager);
  EXPECT_EQ(run.result->voxels, run.expected);

  EXPECT_FALSE(holds(WideTrial(random, 1))) << "divisions have little halo";
  WideTrial roomy(random);
  roomy.request.memory *= 10;
  EXPECT_FALSE(holds(roomy)) << "there is one division";
  WideTrial given(random);
  given.request.divisions = 6;
  EXPECT_FALSE(holds(given)) << "somebody wants divisions";
  WideTrial onCpu(random);
  onCpu.request.backend = BackendChoice::CPU;
  EXPECT_FALSE(holds(onCpu));
  WideTrial part(random);
  part.request.region.upper[2] -= 1;
  EXPECT_FALSE(holds(part));
  WideTrial crowded(random);
  crowded.request.budgets.device = static_cast<std::size_t>(crowded.request.region.NumberOfVoxels()) * 2;
  EXPECT_FALSE(holds(crowded)) << "both images, but nothing to work with";
  crowded.Run(*manager);
  EXPECT_EQ(crowded.result->voxels, crowded.expected);
}

/** Runs the filter with more and more memory of each device, from where all hold its images together to where one of
 * them does. Calls failOnce before one of the runs. */
void
ExpectToBeHeldTogether(const std::string & filter, std::size_t count,
                       const std::function<Manager &(std::size_t memory)> & makeManager,
                       const std::function<void()> &                        failOnce)
{
  SCOPED_TRACE(filter);
  std::mt19937 random(29);
  int          held = 0;
  std::size_t  memory = std::size_t{ 1 } << 17;
  for (; memory < std::size_t{ 64 } << 20; memory += memory / 8)
  {
    Manager &  manager = makeManager(memory);
    const auto run = filter == "mean"
                       ? std::unique_ptr<Trial>(std::make_unique<WideTrial>(random))
                       : std::make_unique<HeldTrial>(
                           filter, Coordinates{ { 90, 80, 100, 1, 1 } }, PixelType::UInt8, PixelType::UInt8, random);
    run->request.budgets.device = memory;
    run->request.backend = BackendChoice::CUDA;
    StreamedPlan plan;
    try
    {
      plan = MakeStreamedPlan(manager, run->request);
    }
    catch (const BudgetError &)
    {
      continue;
    }
    if (plan.heldOnDevice >= 0 && plan.heldOnOthers.empty())
    {
      break;
    }
    if (plan.heldOnDevice < 0)
    {
      continue;
    }
    ++held;
    EXPECT_EQ(plan.GetHoldingDevices().size(), count);
    EXPECT_LE(plan.bytesAtOnce, run->request.memory);
    RecordingMonitor     monitor;
    const StreamedReport report = run->Run(manager, &monitor);
    EXPECT_EQ(run->result->voxels, run->expected);
    EXPECT_EQ(run->image->visited, run->request.region.NumberOfVoxels()) << "each voxel is read once";
    EXPECT_EQ(report.execution.warnings, std::vector<std::string>());
    EXPECT_EQ(report.execution.chunksPerDevice, std::vector<std::int64_t>(count, 1));
    EXPECT_LE(report.execution.peakDevice, memory);
    EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
    EXPECT_EQ(monitor.fractions.back(), 1.0);
    if (held == 1)
    {
      // If one of them fails, the image goes the way that it would have gone without them.
      failOnce();
      run->result->voxels.assign(run->result->voxels.size(), 0);
      run->result->roomThereIs = 1000;
      run->request.backend = BackendChoice::Auto;
      (void)run->Run(manager);
      EXPECT_EQ(run->result->voxels, run->expected);
    }
  }
  EXPECT_GT(held, 1);
  EXPECT_LT(memory, std::size_t{ 64 } << 20);
}

TEST(StreamedRun, DevicesHoldTogetherWhatNoneOfThemCan)
{
  FakeDevice::Options options;
  options.jitter = true;
  FakeDevices devices(3, options, GetHostKernels());
  const auto  manager = devices.MakeManager();
  ExpectToBeHeldTogether(
    "mean",
    3,
    [&](std::size_t) -> Manager & { return *manager; },
    [&] { devices.fakes[2]->FailAt("Launch", 3, false); });
}

TEST(StreamedRun, DevicesHoldTogetherWhatNoneOfThemCanOnCuda)
{
  std::string reason;
  const auto  cuda = GetCudaBackend(&reason);
  if (!cuda || cuda->GetDevices().size() < 2)
  {
    GTEST_SKIP() << "there are not two CUDA devices: " << reason;
  }
  const std::size_t count = cuda->GetDevices().size();
  for (const char * const filter : { "h-maxima", "fill-holes" })
  {
    // Memory that a run has kept would count in the next one's budget.
    std::unique_ptr<Manager> manager;
    ExpectToBeHeldTogether(
      filter,
      count,
      [&](std::size_t) -> Manager & {
        manager = std::make_unique<Manager>(cuda->GetDevices());
        return *manager;
      },
      [] {});
  }
}

#ifdef CHUNKWISE_HAS_NETWORKS
/** A network whose divisions would mostly be halo, with memory for so many planes of image and result; the kind of the
 * result is another. */
void
ExpectNetworksToBeHeld(Manager & manager, const Coordinates & extent, std::uint64_t planes)
{
  std::mt19937 random(28);
  for (const PixelType kind : { PixelType::UInt8, PixelType::UInt16, PixelType::Float32 })
  {
    SCOPED_TRACE(PixelTypeName(kind));
    Manager host({});
    Trial   run(host, "mean", Radius(1), extent, kind, kind, random);
    for (std::size_t i = 0; kind == PixelType::Float32 && i < run.image->voxels.size() / sizeof(float); ++i)
    {
      // Noise of all bits has what is no number.
      reinterpret_cast<float *>(run.image->voxels.data())[i] = static_cast<float>(random() % 256);
    }
    const auto network = std::make_shared<NetworkOperation>();
    network->graph = MakeSmallNetwork();
    network->result = NetworkResult::ArgMax;
    network->precision = NetworkPrecision::Reproducible;
    run.request.operation = network;
    run.request.computedKind = run.request.writtenKind = PixelType::UInt8;
    run.result = std::make_shared<TestImage>(extent, PixelType::UInt8);
    run.request.backend = BackendChoice::CPU;
    run.Run(host);
    const auto whole = run.result->voxels;
    EXPECT_GT(std::set<unsigned char>(whole.begin(), whole.end()).size(), 1u) << "there are several classes";

    run.request.memory = planes * static_cast<std::uint64_t>(extent[0] * extent[1]) * (PixelSize(kind) + 1);
    run.request.backend = BackendChoice::Auto;
    run.result = std::make_shared<TestImage>(extent, PixelType::UInt8);
    const StreamedPlan plan = MakeStreamedPlan(manager, run.request);
    EXPECT_GE(plan.heldOnDevice, 0);
    EXPECT_LE(plan.bytesAtOnce, run.request.memory);
    run.Run(manager);
    EXPECT_EQ(run.result->voxels, whole);
  }
}

TEST(StreamedRun, ADeviceHoldsImagesOfNetworks)
{
  FakeDevices devices(1, FakeDevice::Options(), GetHostKernels());
  const auto  manager = devices.MakeManager();
  for (const std::uint64_t planes : { 30, 6 })
  {
    SCOPED_TRACE(planes);
    ExpectNetworksToBeHeld(*manager, { 24, 20, 90, 1, 1 }, planes);
  }
}

TEST(StreamedRun, CudaHoldsImagesOfNetworks)
{
  if (Manager::GetGlobal().GetDevices().empty())
  {
    GTEST_SKIP() << Manager::GetGlobal().GetReasonForNoDevices();
  }
  // A division would need 15.
  ExpectNetworksToBeHeld(Manager::GetGlobal(), { 70, 60, 90, 1, 1 }, 6);
}

#endif
TEST(StreamedRun, WhereTheDeviceThatHoldsFailsDivisionsGoOn)
{
  std::mt19937 random(27);
  int          inDivisions = 0;
  for (const char * const call : { "Allocate", "CopyToDevice", "kernel" })
  {
    for (const int at : { 0, 3 })
    {
      SCOPED_TRACE(std::string(call) + " " + std::to_string(at));
      FakeDevices devices(1, FakeDevice::Options(), GetHostKernels());
      const auto  manager = devices.MakeManager();
      WideTrial   run(random);
      ASSERT_EQ(MakeStreamedPlan(*manager, run.request).heldOnDevice, 0);
      devices.fakes.front()->FailAt(call, at, true, DeviceError::Kind::Failed);
      const StreamedReport report = run.Run(*manager);
      EXPECT_EQ(run.result->voxels, run.expected);
      const auto & warnings = report.execution.warnings;
      inDivisions += !warnings.empty() && warnings.front().find("goes in divisions") != std::string::npos ? 1 : 0;
      devices.fakes.front()->ClearFaults();
    }
  }
  EXPECT_GT(inDivisions, 2);
}

TEST(StreamedRun, HeldImagesMeetErrorsOfTheStorageAndAborts)
{
  std::mt19937 random(24);
  FakeDevices  devices(1, FakeDevice::Options(), GetHostKernels());
  const auto   manager = devices.MakeManager();
  HeldTrial    run("h-maxima", { 60, 50, 70, 1, 1 }, PixelType::UInt8, PixelType::UInt8, random);
  run.result->roomThereIs = 0;
  EXPECT_THROW(run.Run(*manager), Error);
  EXPECT_EQ(run.result->visited, 0);
  run.result->roomThereIs = 1000;
  for (const auto & storage : { run.image, run.result })
  {
    run.image->visited = run.result->visited = 0;
    storage->failsAfter = run.request.region.NumberOfVoxels() / 2;
    EXPECT_THROW(run.Run(*manager), Error);
    storage->failsAfter = std::numeric_limits<std::int64_t>::max();
    storage->hangs = true;
    AbortingMonitor monitor;
    std::thread     user([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      monitor.aborts = true;
    });
    EXPECT_THROW(run.Run(*manager, &monitor), Aborted);
    user.join();
    storage->hangs = false;
  }
  run.Run(*manager);
  EXPECT_EQ(run.result->voxels, run.expected);
}

TEST(StreamedRun, CudaHoldsReconstructionsThatTheHostCannot)
{
  Manager & manager = Manager::GetGlobal();
  if (manager.GetDevices().empty())
  {
    GTEST_SKIP() << manager.GetReasonForNoDevices();
  }
  std::mt19937 random(25);
  for (const char * const filter : { "h-maxima", "fill-holes", "h-convex" })
  {
    for (const PixelType kind : { PixelType::UInt8, PixelType::UInt16, PixelType::Float32 })
    {
      if (kind == PixelType::Float32 && std::string(filter) == "h-convex")
      {
        // Differences of infinities have no bits that backends share.
        continue;
      }
      HeldTrial run(filter, { 190, 180, 100, 1, 1 }, kind, kind, random);
      run.request.sinkAccess = run.result->access;
      EXPECT_GE(MakeStreamedPlan(manager, run.request).heldOnDevice, 0);
      run.Run(manager);
      EXPECT_EQ(run.result->voxels, run.expected) << filter;
      EXPECT_EQ(run.image->visited, run.request.region.NumberOfVoxels());
    }
  }
}

} // namespace
