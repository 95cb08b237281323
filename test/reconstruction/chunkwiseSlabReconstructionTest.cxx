/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFakeDevices.h"
#include "chunkwiseFloodTrial.h"
#include "chunkwisePassesOperation.h"
#include "chunkwiseRecordingMonitor.h"
#include "chunkwiseSlabContraction.h"
#include "chunkwiseSlabFlood.h"
#include "chunkwiseSlabPacking.h"
#include "chunkwiseSlabReconstruction.h"
#include "chunkwiseSpool.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <mutex>

#if defined(__unix__) || defined(__APPLE__)
#  include <sys/resource.h>
#endif

using namespace chunkwise;

namespace
{

template <typename T>
BufferView
ViewOf(std::vector<T> & image, const Box & box)
{
  return DenseView(image.data(), PixelTypeOf<T>(), box);
}

template <typename T>
void
CopyVoxels(const Box & box, const BufferView & from, const BufferView & to)
{
  ForEachIndex(box, [&](const Coordinates & index) { At<T>(to, index) = At<T>(from, index); });
}

std::int64_t
LastPosition(const Box & box, const Coordinates & extent)
{
  int axis = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    axis = extent[a] > 1 ? a : axis;
  }
  return box.lower[axis];
}

/** Shares an object that the test owns. */
template <typename T>
std::shared_ptr<T>
Share(T & object)
{
  return std::shared_ptr<T>(std::shared_ptr<void>(), &object);
}

template <typename T>
class MemorySource : public ImageSource
{
public:
  MemorySource(std::vector<T> & image, const Box & box)
    : m_View(ViewOf(image, box))
  {}
  Coordinates
  GetExtent() const override
  {
    return m_View.box.Extents();
  }
  PixelType
  GetKind() const override
  {
    return m_View.kind;
  }
  ImageAccess
  GetAccess() const override
  {
    return access;
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    EXPECT_TRUE(m_View.box.Contains(box) && view.box.Contains(box) && !box.IsEmpty());
    if (reads++ == failAt)
    {
      throw std::runtime_error("the source broke");
    }
    if (!access.anyOrder)
    {
      const std::int64_t at = LastPosition(box, GetExtent());
      EXPECT_GE(at, m_Next) << "read out of order";
      m_Next = at;
    }
    voxels += box.NumberOfVoxels();
    CopyVoxels<T>(box, m_View, view);
  }

  ImageAccess  access;
  int          failAt{ -1 };
  int          reads{ 0 };
  std::int64_t voxels{ 0 };

private:
  BufferView   m_View;
  std::int64_t m_Next{ 0 };
};

template <typename T>
class MemorySink : public ImageSink
{
public:
  explicit MemorySink(const Box & box)
    : image(static_cast<std::size_t>(box.NumberOfVoxels()), static_cast<T>(77))
    , m_Times(image.size(), 0)
    , m_View(ViewOf(image, box))
  {}
  Coordinates
  GetExtent() const override
  {
    return m_View.box.Extents();
  }
  PixelType
  GetKind() const override
  {
    return m_View.kind;
  }
  ImageAccess
  GetAccess() const override
  {
    return access;
  }
  void
  Write(const Box & box, const BufferView & view) override
  {
    EXPECT_TRUE(m_View.box.Contains(box) && view.box.Contains(box) && !box.IsEmpty());
    if (writes++ == failAt)
    {
      throw std::runtime_error("the sink broke");
    }
    const std::int64_t at = LastPosition(box, GetExtent());
    EXPECT_TRUE(access.anyOrder || at >= m_Next) << "written out of order";
    m_Next = at;
    CopyVoxels<T>(box, view, m_View);
    const BufferView times = ViewOf(m_Times, m_View.box);
    ForEachIndex(box, [&](const Coordinates & index) { ++At<std::uint8_t>(times, index); });
  }
  void
  Finish() override
  {}
  void
  ExpectWrittenOnce() const
  {
    for (const std::uint8_t times : m_Times)
    {
      ASSERT_EQ(times, 1);
    }
  }

  ImageAccess    access;
  int            failAt{ -1 };
  int            writes{ 0 };
  std::vector<T> image;

private:
  std::vector<std::uint8_t> m_Times;
  BufferView                m_View;
  std::int64_t              m_Next{ 0 };
};

/** A trial's images as sources, and its sink. */
template <typename T>
struct SlabTrial
{
  explicit SlabTrial(FloodTrial<T> & theTrial)
    : trial(theTrial)
    , sink(trial.box)
    , threads(MakeThreadExecutor(3))
  {
    const int count = trial.operation->GetNumberOfInputs();
    if (count > 1)
    {
      sources.push_back(std::make_unique<MemorySource<T>>(trial.marker, trial.box));
    }
    if (count > 2)
    {
      sources.push_back(std::make_unique<MemorySource<T>>(trial.second, trial.box));
    }
    sources.push_back(std::make_unique<MemorySource<T>>(trial.mask, trial.box));
    for (const auto & source : sources)
    {
      request.sources.push_back(Share(*source));
    }
    request.operation = trial.operation;
    request.sink = Share(sink);
    request.backend = BackendChoice::CPU;
    request.executor = threads.get();
    request.spoolFolder = testing::TempDir();
  }
  /** As little memory as there can be, and some more. */
  void
  GiveBytes(Manager & manager, std::uint64_t more)
  {
    request.hostBytes = GetLeastHostBytes(manager, request) + more;
  }
  void
  ExpectOracle() const
  {
    sink.ExpectWrittenOnce();
    trial.ExpectOracle(sink.image);
  }

  FloodTrial<T> &                               trial;
  std::vector<std::unique_ptr<MemorySource<T>>> sources;
  MemorySink<T>                                 sink;
  std::unique_ptr<Executor>                     threads;
  SlabRequest                                   request;
};

/** The axis along which the volumes of a trial are cut. */
template <typename T>
int
SpatialAxis(const FloodTrial<T> & trial)
{
  int axis = 0;
  for (int a = 0; a < trial.operation->spatialDimension; ++a)
  {
    axis = trial.box.Extent(a) > 1 ? a : axis;
  }
  return axis;
}

/** 0 where the system does not tell. */
int
CountOpenFiles()
{
  std::error_code                           error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  return error ? 0 : static_cast<int>(std::distance(files, {}));
}

int
CountSpools(const std::string & folder)
{
  int count = 0;
  for (const auto & entry : std::filesystem::directory_iterator(folder))
  {
    count += entry.path().filename().string().rfind("chunkwise-spool", 0) == 0 ? 1 : 0;
  }
  return count;
}

template <typename TCompare>
void
ForAllKinds(TCompare && compare)
{
  for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
  {
    DispatchPixelType(static_cast<PixelType>(kind), compare);
  }
}

TEST(SlabReconstruction, GivesTheBitsOfItsDefinition)
{
  Manager      manager({}, "none was made");
  std::mt19937 random(101);
  std::int64_t inSlabs = 0;
  std::int64_t mostSlabs = 0;
  ForAllKinds([&](auto pixel) {
    using Pixel = decltype(pixel);
    for (int trial = 0; trial < 50 && !testing::Test::HasFatalFailure(); ++trial)
    {
      auto t = RandomTrial<Pixel>(random, trial % 10 == 0 ? 16 : 8);
      if (trial % 3 == 0)
      {
        // A few axes only, so that there are many planes.
        t.operation->spatialDimension = MaxSpatialAxes;
      }
      SlabTrial<Pixel> s(t);
      s.request.planesOfSlab = 1 + static_cast<std::int64_t>(random() % 4);
      s.request.planesAtOnce = static_cast<std::int64_t>(random() % 3);
      s.request.bandsOfSlab = static_cast<std::int64_t>(random() % 5);
      if (trial % 4 == 0)
      {
        s.GiveBytes(manager, random() % 20000);
      }
      const SlabReport report = ReconstructInSlabs(manager, s.request);
      s.ExpectOracle();
      if (s.request.hostBytes)
      {
        ASSERT_LE(report.peakHost, s.request.hostBytes);
      }
      inSlabs += report.passes == 2 ? 1 : 0;
      mostSlabs = std::max(mostSlabs, report.slabs);
      ASSERT_EQ(report.bytesWritten, t.mask.size() * sizeof(Pixel));
      ASSERT_EQ(s.sources.back()->voxels, report.passes * t.box.NumberOfVoxels()) << "not read once in a pass";
    }
  });
  EXPECT_GT(inSlabs, 150);
  EXPECT_GT(mostSlabs, 10);
}

/** Values that go to and fro through all slabs: corridors that lead along the axis that is cut, with what slows them
 * down, and a source at one end. */
TEST(SlabReconstruction, WaysThroughAllSlabsAreFollowed)
{
  Manager      manager({}, "none was made");
  std::mt19937 random(102);
  for (int trial = 0; trial < 60 && !HasFatalFailure(); ++trial)
  {
    FloodTrial<std::uint16_t> t;
    const std::int64_t        n = 9 + 2 * static_cast<std::int64_t>(random() % 8);
    t.box = Box::FromExtent(trial % 2 ? Coordinates{ { n, 4 * n, 1, 1, 1 } } : Coordinates{ { n, 3, 2 * n, 1, 1 } });
    t.operation->fullyConnected = trial % 3 == 0;
    t.operation->erosion = trial % 5 == 0;
    t.mask.assign(static_cast<std::size_t>(t.box.NumberOfVoxels()), 0);
    t.marker.assign(t.mask.size(), 0);
    const BufferView   mask = ViewOf(t.mask, t.box);
    const int          axis = trial % 2 ? 1 : 2;
    const std::int64_t planes = t.box.Extent(axis);
    // Columns of even x, joined at alternate ends: the way passes through each plane once for each column.
    ForEachIndex(t.box, [&](const Coordinates & index) {
      const std::int64_t x = index[0];
      const bool         joins = x % 4 == 1 ? index[axis] == planes - 1 : index[axis] == 0;
      if ((axis == 1 || index[1] == 1) && (x % 2 == 0 || joins))
      {
        At<std::uint16_t>(mask, index) = static_cast<std::uint16_t>(1000 + random() % (trial % 4 ? 50 : 1));
      }
    });
    const std::size_t source = trial % 7 == 0 ? t.mask.size() - 1 : 0;
    t.marker[axis == 1 ? source : static_cast<std::size_t>(n) + source % static_cast<std::size_t>(n)] = 2000;
    if (t.operation->erosion)
    {
      for (auto * image : { &t.mask, &t.marker })
      {
        for (auto & value : *image)
        {
          value = static_cast<std::uint16_t>(65535 - value);
        }
      }
    }
    SlabTrial<std::uint16_t> s(t);
    s.request.planesOfSlab = 1 + trial % 5;
    s.request.bandsOfSlab = trial % 6;
    const SlabReport report = ReconstructInSlabs(manager, s.request);
    EXPECT_EQ(report.passes, 2);
    s.ExpectOracle();
  }
}

/** Slabs with so little scratch that they are contracted some planes at a time. */
TEST(SlabReconstruction, SlabsAreContractedInParts)
{
  Manager      manager({}, "none was made");
  std::mt19937 random(110);
  for (int trial = 0; trial < 8 && !HasFatalFailure(); ++trial)
  {
    FloodTrial<std::uint8_t> t;
    t.box = Box::FromExtent({ { 41, 21, 20, 1, 1 } });
    t.operation->fullyConnected = trial % 2;
    t.operation->erosion = trial / 2 % 2;
    t.operation->partVoxels = 2000;
    t.mask.assign(static_cast<std::size_t>(t.box.NumberOfVoxels()), 0);
    t.marker = t.mask;
    const BufferView mask = ViewOf(t.mask, t.box);
    const BufferView marker = ViewOf(t.marker, t.box);
    // In each other layer of y a way up and down, from one end of x to the opposite end.
    ForEachIndex(t.box, [&](const Coordinates & index) {
      const std::int64_t x = index[0];
      const bool         joins = x % 4 == 1 ? index[2] == 19 : index[2] == 0;
      if (index[1] % 2 == 1 && (x % 2 == 0 || joins))
      {
        At<std::uint8_t>(mask, index) = static_cast<std::uint8_t>(100 + random() % 20);
        At<std::uint8_t>(marker, index) = x == 0 && index[2] == trial * 2 ? 120 : 0;
      }
    });
    if (t.operation->erosion)
    {
      for (auto * image : { &t.mask, &t.marker })
      {
        for (auto & value : *image)
        {
          value = static_cast<std::uint8_t>(255 - value);
        }
      }
    }
    SlabTrial<std::uint8_t> s(t);
    s.request.planesOfSlab = 9;
    s.request.planesAtOnce = 1 + trial % 3;
    s.request.bandsOfSlab = trial % 5;
    EXPECT_EQ(ReconstructInSlabs(manager, s.request).slabs, 3);
    s.ExpectOracle();
  }
}

/** Bands take memory beside what a plan has for two planes: they must not take it from the images. */
TEST(SlabReconstruction, ThinSlabsHaveRoomForTheirBands)
{
  Manager      manager({}, "none was made");
  std::mt19937 random(112);
  for (int trial = 0; trial < 16 && !HasFatalFailure(); ++trial)
  {
    FloodTrial<std::uint8_t> t;
    t.box = Box::FromExtent({ { 90, 160, 9, 1, 1 } });
    t.operation->fullyConnected = trial % 2;
    t.mask.resize(static_cast<std::size_t>(t.box.NumberOfVoxels()));
    t.marker = t.mask;
    for (std::size_t i = 0; i < t.mask.size(); ++i)
    {
      t.mask[i] = static_cast<std::uint8_t>(random() % 200 + 50);
      t.marker[i] = static_cast<std::uint8_t>(t.mask[i] - 20 - random() % 30);
    }
    SlabTrial<std::uint8_t> s(t);
    s.request.planesOfSlab = 1 + trial / 2 % 4;
    s.request.bandsOfSlab = trial < 8 ? 0 : 4;
    EXPECT_GT(ReconstructInSlabs(manager, s.request).slabs, 1);
    s.ExpectOracle();
  }
}

/** Whether a volume has one value is known when all its slabs were seen. */
TEST(SlabReconstruction, FlatVolumesAreWhatTheOperationSays)
{
  Manager manager({}, "none was made");
  for (int trial = 0; trial < 48 && !HasFatalFailure(); ++trial)
  {
    FloodTrial<std::int16_t> t;
    t.box = Box::FromExtent({ { 4, 3, 13, trial % 2 ? 2 : 1, 1 } });
    t.operation->marker = ReconstructionMarker::NextBelow;
    t.operation->result = ReconstructionResult::Extrema;
    t.operation->extremum = 5;
    t.operation->elsewhere = 3;
    t.operation->erosion = trial / 2 % 2;
    t.operation->flatIsExtremum = trial / 4 % 2;
    t.mask.assign(static_cast<std::size_t>(t.box.NumberOfVoxels()), trial % 3 ? 9 : INT16_MIN);
    // One voxel in the first, the last or a middle slab, or none.
    const std::size_t others[] = { 0, 4 * 3 * 13 - 1, 4 * 3 * 6 + 1 };
    if (trial / 8 % 4 < 3)
    {
      t.mask[others[trial / 8 % 4]] = trial % 5 ? 10 : 8;
    }
    t.marker = t.mask;
    SlabTrial<std::int16_t> s(t);
    s.request.planesOfSlab = 4;
    const SlabReport report = ReconstructInSlabs(manager, s.request);
    EXPECT_EQ(report.passes, 2);
    s.ExpectOracle();
  }
}

TEST(SlabReconstruction, DevicesGiveTheSame)
{
  FakeDevice::Options options;
  FakeDevices         devices(2, options, GetHostKernels());
  const auto          manager = devices.MakeManager();
  std::mt19937        random(103);
  const auto          compare = [&](auto pixel) {
    using Pixel = decltype(pixel);
    for (int trial = 0; trial < 25 && !testing::Test::HasFatalFailure(); ++trial)
    {
      auto             t = RandomTrial<Pixel>(random, 9);
      SlabTrial<Pixel> s(t);
      s.request.backend = trial % 2 ? BackendChoice::CUDA : BackendChoice::Auto;
      s.request.planesOfSlab = 1 + static_cast<std::int64_t>(random() % 4);
      if (trial % 3 == 0)
      {
        s.request.budgets.device = 600000;
      }
      const SlabReport report = ReconstructInSlabs(*manager, s.request);
      s.ExpectOracle();
      EXPECT_EQ(report.execution.backend, "fake");
    }
  };
  compare(std::uint8_t{});
  compare(std::int16_t{});
  compare(float{});
  compare(double{});
}

TEST(SlabReconstruction, SourcesAndSinksInOrderAreServedInOrder)
{
  Manager      manager({}, "none was made");
  std::mt19937 random(104);
  std::int64_t copied = 0;
  for (int trial = 0; trial < 60 && !HasFatalFailure(); ++trial)
  {
    auto                     t = RandomTrial<std::uint16_t>(random, 12);
    SlabTrial<std::uint16_t> s(t);
    s.sink.access.anyOrder = trial % 2;
    for (const auto & source : s.sources)
    {
      source->access.anyOrder = trial % 3 == 0;
      source->access.heldBytes = 1000;
    }
    s.request.planesOfSlab = 1 + static_cast<std::int64_t>(random() % 3);
    const SlabReport report = ReconstructInSlabs(manager, s.request);
    s.ExpectOracle();
    if (report.passes == 2 && trial % 3)
    {
      ++copied;
      EXPECT_EQ(s.sources.back()->voxels, t.box.NumberOfVoxels()) << "read twice, and in order";
      EXPECT_GE(report.spoolWritten, t.mask.size() * sizeof(std::uint16_t));
    }
  }
  EXPECT_GT(copied, 5);
}

TEST(SlabReconstruction, TheBytesThatABudgetErrorNamesAreEnough)
{
  Manager      manager({}, "none was made");
  std::mt19937 random(105);
  for (int trial = 0; trial < 40 && !HasFatalFailure(); ++trial)
  {
    auto                     t = RandomTrial<std::uint32_t>(random, 12);
    SlabTrial<std::uint32_t> s(t);
    s.request.hostBytes = 10;
    std::size_t needed = 0;
    try
    {
      ReconstructInSlabs(manager, s.request);
      FAIL() << "10 bytes were enough";
    }
    catch (const BudgetError & error)
    {
      needed = error.needed;
      EXPECT_EQ(error.budget, 10u);
    }
    EXPECT_EQ(s.sources[0]->reads, 0) << "work had started";
    s.request.hostBytes = needed - 1;
    EXPECT_THROW(ReconstructInSlabs(manager, s.request), BudgetError);
    s.request.hostBytes = needed;
    const SlabReport report = ReconstructInSlabs(manager, s.request);
    EXPECT_LE(report.peakHost, needed);
    s.ExpectOracle();
  }
}

/** The memory of a source or sink counts too. */
TEST(SlabReconstruction, WhatSourcesHoldIsPartOfTheBudget)
{
  Manager                  manager({}, "none was made");
  FloodTrial<std::uint8_t> t;
  t.box = Box::FromExtent({ { 8, 8, 8, 1, 1 } });
  t.mask.assign(512, 3);
  t.marker.assign(512, 1);
  SlabTrial<std::uint8_t> s(t);
  const std::uint64_t     least = GetLeastHostBytes(manager, s.request);
  s.sources[0]->access.heldBytes = 12345;
  s.sink.access.heldBytes = 1000;
  EXPECT_EQ(GetLeastHostBytes(manager, s.request), least + 13345);
}

FloodTrial<std::uint8_t>
MakeTrial()
{
  std::mt19937             random(106);
  FloodTrial<std::uint8_t> t;
  t.box = Box::FromExtent({ { 12, 10, 40, 1, 1 } });
  t.operation->marker = ReconstructionMarker::Shifted;
  t.operation->height = 2;
  t.mask.resize(static_cast<std::size_t>(t.box.NumberOfVoxels()));
  t.marker = t.mask;
  FillRandomly(random, t.mask, 0);
  return t;
}

TEST(SlabReconstruction, AFailureOfASourceOrSinkIsTheRuns)
{
  Manager   manager({}, "none was made");
  auto      t = MakeTrial();
  const int files = CountOpenFiles();
  for (const bool inSink : { false, true })
  {
    for (int at = 0; at < 100; ++at)
    {
      SlabTrial<std::uint8_t> s(t);
      s.request.planesOfSlab = 4;
      (inSink ? s.sink.failAt : s.sources[0]->failAt) = at;
      try
      {
        ReconstructInSlabs(manager, s.request);
        EXPECT_GE(at, inSink ? 9 : 19) << "the failure was lost";
        s.ExpectOracle();
        break;
      }
      catch (const std::runtime_error & error)
      {
        EXPECT_STREQ(error.what(), inSink ? "the sink broke" : "the source broke");
      }
      ASSERT_LT(at, 99);
    }
  }
  EXPECT_EQ(CountOpenFiles(), files) << "files were left open";
  EXPECT_EQ(CountSpools(testing::TempDir()), 0);
}

/** The error of a run whose spool is in this folder; nothing may be written. */
std::string
RunWithSpoolIn(const std::string & folder)
{
  Manager                 manager({}, "none was made");
  auto                    t = MakeTrial();
  SlabTrial<std::uint8_t> s(t);
  s.request.planesOfSlab = 4;
  s.request.spoolFolder = folder;
  std::string message;
  try
  {
    ReconstructInSlabs(manager, s.request);
  }
  catch (const Error & error)
  {
    message = error.what();
  }
  EXPECT_EQ(s.sink.writes, 0);
  return message;
}

TEST(SlabReconstruction, ASpoolThatCannotBeMadeIsAnErrorThatNamesIt)
{
  const std::string message = RunWithSpoolIn(testing::TempDir() + "/there is no such folder");
  EXPECT_NE(message.find("there is no such folder"), std::string::npos) << message;
  EXPECT_NE(message.find("cannot be made"), std::string::npos) << message;
}

#if defined(__unix__) || defined(__APPLE__)
TEST(SlabReconstruction, ASpoolThatCannotBeWrittenIsAnErrorThatNamesIt)
{
  // Files may not grow: what a full disk is too.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit     small = before;
  small.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = RunWithSpoolIn(testing::TempDir());
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find("chunkwise-spool"), std::string::npos) << message;
  EXPECT_NE(message.find("cannot be written"), std::string::npos) << message;
}
#endif

TEST(SlabReconstruction, AbortsInEveryStageAndCanRunAgain)
{
  Manager manager({}, "none was made");
  auto    t = MakeTrial();
  for (const double abortAt : { 0.0, 0.2, 0.5, 0.75, 0.9 })
  {
    SlabTrial<std::uint8_t> s(t);
    s.request.planesOfSlab = 1;
    RecordingMonitor monitor;
    monitor.abortAt = abortAt;
    // The monitor is asked now and then: sources wait for it.
    class SlowSource : public MemorySource<std::uint8_t>
    {
    public:
      using MemorySource::MemorySource;
      void
      Read(const Box & box, const BufferView & view) override
      {
        std::this_thread::sleep_for(std::chrono::milliseconds(15));
        MemorySource::Read(box, view);
      }
    } slow(t.mask, t.box);
    s.request.sources[0] = Share(slow);
    EXPECT_THROW(ReconstructInSlabs(manager, s.request, &monitor), Aborted) << abortAt;
    EXPECT_LT(monitor.fractions.back(), 1.0);
    EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
    EXPECT_LT(slow.reads, 80) << "it went on to the end";
  }
  SlabTrial<std::uint8_t> s(t);
  s.request.planesOfSlab = 3;
  RecordingMonitor monitor;
  ReconstructInSlabs(manager, s.request, &monitor);
  s.ExpectOracle();
  EXPECT_EQ(monitor.fractions.back(), 1.0);
  EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
  RecordingMonitor throwing;
  throwing.throws = true;
  SlabTrial<std::uint8_t> again(t);
  again.request.planesOfSlab = 1;
  try
  {
    ReconstructInSlabs(manager, again.request, &throwing);
  }
  catch (const std::runtime_error & error)
  {
    EXPECT_STREQ(error.what(), "the caller's own");
  }
}

/** If no device is there, or none can do it, that is said before anything is read. */
TEST(SlabReconstruction, ADeviceThatIsAskedForAndMissingIsAnErrorBeforeWork)
{
  Manager manager({}, "none was made");
  auto    t = MakeTrial();
  for (int trial = 0; trial < 4; ++trial)
  {
    SlabTrial<std::uint8_t> s(t);
    s.request.backend = BackendChoice::CUDA;
    s.request.planesOfSlab = trial % 2 ? 4 : 0;
    s.sources[0]->access.anyOrder = trial % 2 == 0;
    if (trial >= 2)
    {
      const auto extremum = std::make_shared<ExtremumOperation>();
      extremum->minimum = true;
      s.request.operation = MakeReconstructionOfExtremum(extremum, *t.operation, false);
    }
    try
    {
      ReconstructInSlabs(manager, s.request);
      FAIL() << "it ran";
    }
    catch (const Error & error)
    {
      EXPECT_NE(std::string(error.what()).find("none was made"), std::string::npos) << error.what();
    }
    EXPECT_EQ(s.sources[0]->reads, 0);
    s.request.devices = { 3 };
    EXPECT_THROW(ReconstructInSlabs(manager, s.request), ParameterError);
    EXPECT_EQ(s.sources[0]->reads, 0);
  }
}

/** A source, or sink, that does not answer until it is told to. */
class HangingImage
  : public ImageSource
  , public ImageSink
{
public:
  explicit HangingImage(const Coordinates & extent)
    : m_Extent(extent)
  {}
  Coordinates
  GetExtent() const override
  {
    return m_Extent;
  }
  PixelType
  GetKind() const override
  {
    return PixelType::UInt8;
  }
  ImageAccess
  GetAccess() const override
  {
    return access;
  }
  void
  Read(const Box &, const BufferView &) override
  {
    Hang();
  }
  void
  Write(const Box &, const BufferView &) override
  {
    Hang();
  }
  void
  Finish() override
  {}

  ImageAccess       access;
  std::atomic<bool> hangs{ true };
  std::atomic<bool> went{ false };

private:
  void
  Hang()
  {
    while (hangs)
    {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    went = true;
  }

  const Coordinates m_Extent;
};

TEST(SlabReconstruction, AnAbortDoesNotWaitForASourceOrSinkThatHangs)
{
  Manager manager({}, "none was made");
  auto    t = MakeTrial();
  // A source, one that is copied to a spool first, a sink; a reconstruction, and passes.
  for (int trial = 0; trial < 6; ++trial)
  {
    SlabTrial<std::uint8_t> s(t);
    const auto              hanging = std::make_shared<HangingImage>(t.box.Extents());
    hanging->access.anyOrder = trial % 3 != 1;
    if (trial % 3 < 2)
    {
      s.request.sources[0] = hanging;
    }
    else
    {
      s.request.sink = hanging;
    }
    s.request.planesOfSlab = 4;
    if (trial >= 3)
    {
      const auto extremum = std::make_shared<ExtremumOperation>();
      extremum->minimum = true;
      extremum->radius[2] = 1;
      s.request.operation = MakeReconstructionOfExtremum(extremum, *t.operation, false);
    }
    class LateMonitor : public Monitor
    {
    public:
      void
      UpdateProgress(double) override
      {}
      bool
      ShouldAbort() override
      {
        return std::chrono::steady_clock::now() - m_Begin > std::chrono::milliseconds(200);
      }

    private:
      const std::chrono::steady_clock::time_point m_Begin{ std::chrono::steady_clock::now() };
    } monitor;
    EXPECT_THROW(ReconstructInSlabs(manager, s.request, &monitor), Aborted) << trial;
    EXPECT_FALSE(hanging->went);
    // A call that hung may go on: nothing that it needs is gone.
    hanging->hangs = false;
    while (hanging.use_count() > 2)
    {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(hanging->went);
  }
}

/** The reported peak is true: it grows with the slabs, and includes the memory of sources and of the records of
 * slabs. */
TEST(SlabReconstruction, ThePeakIsWhatTheRunHad)
{
  Manager    manager({}, "none was made");
  auto       t = MakeTrial();
  const auto peakOf = [&](std::int64_t planes, std::uint64_t held) {
    SlabTrial<std::uint8_t> s(t);
    s.request.planesOfSlab = planes;
    s.sources[0]->access.heldBytes = held;
    const SlabReport report = ReconstructInSlabs(manager, s.request);
    EXPECT_EQ(report.execution.peakHost, report.peakHost);
    return report.peakHost;
  };
  const std::uint64_t small = peakOf(4, 0);
  EXPECT_GT(small, 5u * 120u * 5u) << "not even the buffers";
  EXPECT_GT(peakOf(16, 0), small + 4u * 120u * 12u);
  EXPECT_EQ(peakOf(4, 1234), small + 1234);
}

TEST(SlabReconstruction, BadRequestsAreRefusedBeforeWork)
{
  Manager manager({}, "none was made");
  auto    t = MakeTrial();
  {
    SlabTrial<std::uint8_t> s(t);
    s.request.sources.clear();
    EXPECT_THROW(ReconstructInSlabs(manager, s.request), ParameterError);
  }
  {
    SlabTrial<std::uint8_t> s(t);
    s.request.operation = std::make_shared<IdentityOperation>();
    EXPECT_THROW(ReconstructInSlabs(manager, s.request), ParameterError);
  }
  {
    SlabTrial<std::uint8_t>    s(t);
    std::vector<std::uint8_t>  small(8);
    MemorySource<std::uint8_t> source(small, Box::FromExtent({ { 2, 2, 2, 1, 1 } }));
    s.request.sources[0] = Share(source);
    EXPECT_THROW(ReconstructInSlabs(manager, s.request), ParameterError);
    EXPECT_EQ(source.reads, 0);
  }
  {
    SlabTrial<std::uint8_t> s(t);
    std::vector<float>      other(t.mask.size());
    MemorySource<float>     source(other, t.box);
    s.request.sources[0] = Share(source);
    EXPECT_THROW(ReconstructInSlabs(manager, s.request), ParameterError);
  }
}

/** Opening and closing by reconstruction: the run in memory is tested elsewhere. */
TEST(SlabReconstruction, PassesAreThoseOfARunInMemory)
{
  Manager      manager({}, "none was made");
  std::mt19937 random(109);
  std::int64_t inSlabs = 0;
  std::int64_t refused = 0;
  for (int trial = 0; trial < 80 && !HasFatalFailure(); ++trial)
  {
    auto t = RandomTrial<std::uint16_t>(random, trial % 8 == 0 ? 20 : 10);
    t.operation->marker = ReconstructionMarker::Shifted;
    SlabTrial<std::uint16_t> s(t);
    const auto               extremum = std::make_shared<ExtremumOperation>();
    extremum->minimum = !t.operation->erosion;
    for (int a = 0; a < t.operation->spatialDimension; ++a)
    {
      extremum->radius[a] = static_cast<std::int64_t>(random() % 3);
    }
    const bool preserves = trial % 2;
    s.request.operation = MakeReconstructionOfExtremum(extremum, *t.operation, preserves);
    s.sources.resize(1);
    s.sources[0] = std::make_unique<MemorySource<std::uint16_t>>(t.mask, t.box);
    s.sources[0]->access.anyOrder = trial % 5 != 0;
    s.request.sources = { Share(*s.sources[0]) };
    s.request.planesOfSlab = trial % 4 == 0 ? 0 : 1 + static_cast<std::int64_t>(random() % 4);
    if (trial % 3 == 0)
    {
      s.request.hostBytes = 1;
      std::size_t needed = 0;
      try
      {
        ReconstructInSlabs(manager, s.request);
        FAIL() << "one byte was enough";
      }
      catch (const BudgetError & error)
      {
        needed = error.needed;
        ++refused;
      }
      EXPECT_EQ(s.sources[0]->reads, 0) << "work had started";
      EXPECT_EQ(GetLeastHostBytes(manager, s.request), needed);
      s.request.hostBytes = needed;
    }
    RecordingMonitor monitor;
    const SlabReport report = ReconstructInSlabs(manager, s.request, &monitor);
    EXPECT_EQ(monitor.fractions.back(), 1.0);
    EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
    if (s.request.hostBytes)
    {
      EXPECT_LE(report.peakHost, s.request.hostBytes);
      EXPECT_GE(report.peakHost, s.request.hostBytes / 3) << "what the extremum has does not count";
    }
    inSlabs += report.passes == 2 ? 1 : 0;
    s.sink.ExpectWrittenOnce();
    std::vector<std::uint16_t> expected(t.mask.size());
    ExecutionRequest           whole;
    whole.operation = s.request.operation;
    whole.image = whole.region = t.box;
    whole.inputs = { ViewOf(t.mask, t.box) };
    whole.output = ViewOf(expected, t.box);
    whole.backend = BackendChoice::CPU;
    manager.Execute(whole);
    ASSERT_EQ(s.sink.image, expected) << trial;
  }
  EXPECT_GT(inSlabs, 15);
  EXPECT_GT(refused, 15);
}

/** The largest keys that get from one node to another, along edges. */
class WidestWays
{
public:
  explicit WidestWays(std::size_t nodes)
    : m_Nodes(nodes)
    , m_Keys(nodes * nodes, 0)
  {}
  void
  Add(std::size_t a, std::size_t b, int key)
  {
    m_Keys[a * m_Nodes + b] = std::max(m_Keys[a * m_Nodes + b], key);
    m_Keys[b * m_Nodes + a] = std::max(m_Keys[b * m_Nodes + a], key);
  }
  void
  AddNeighbors(const SlabGrid & grid, const std::vector<std::uint8_t> & mask)
  {
    for (std::uint32_t voxel = 0; voxel < grid.GetVoxels(); ++voxel)
    {
      grid.ForEachNeighbor(voxel, [&](std::uint32_t other) { Add(voxel, other, std::min(mask[voxel], mask[other])); });
    }
  }
  void
  Solve()
  {
    for (std::size_t k = 0; k < m_Nodes; ++k)
    {
      for (std::size_t i = 0; i < m_Nodes; ++i)
      {
        for (std::size_t j = 0; j < m_Nodes; ++j)
        {
          int & key = m_Keys[i * m_Nodes + j];
          key = std::max(key, std::min(m_Keys[i * m_Nodes + k], m_Keys[k * m_Nodes + j]));
        }
      }
    }
  }
  int
  Get(std::size_t a, std::size_t b) const
  {
    return m_Keys[a * m_Nodes + b];
  }

private:
  const std::size_t m_Nodes;
  std::vector<int>  m_Keys;
};

/** With any number of bands the forest and the plane let through what all planes, and the forest beyond them, do. */
TEST(SlabContraction, KeepsTheWidestWaysBetweenVoxelsOfThePlane)
{
  std::mt19937 random(111);
  const auto   threads = MakeThreadExecutor(3);
  for (int trial = 0; trial < 200 && !HasFatalFailure(); ++trial)
  {
    const SlabGrid grid(1 + static_cast<std::int64_t>(random() % 4),
                        2 + static_cast<std::int64_t>(random() % 7),
                        2 + static_cast<std::int64_t>(random() % 3),
                        trial % 2);
    const SlabGrid plane(grid.width, grid.height, 1, trial % 2);
    const auto     voxels = static_cast<std::size_t>(grid.GetVoxels());
    const auto     planeVoxels = static_cast<std::size_t>(grid.planeVoxels);
    const auto     last = voxels - planeVoxels;
    // All that is not 0 is open, and few voxels leave few ways.
    std::vector<std::uint8_t> state(voxels, 0);
    std::vector<std::uint8_t> mask(voxels);
    const unsigned int        closed = 1 + random() % 4;
    for (auto & value : mask)
    {
      value = static_cast<std::uint8_t>(random() % 5 < closed ? 0 : 1 + random() % (trial % 3 ? 4 : 200));
    }
    const auto                memoryOfForest = [&] { return std::vector<std::uint64_t>(planeVoxels); };
    auto                      beyondMemory = memoryOfForest();
    auto                      childrenMemory = memoryOfForest();
    auto                      forestMemory = memoryOfForest();
    PlaneForest<std::uint8_t> beyond(beyondMemory.data(), grid.planeVoxels);
    PlaneForest<std::uint8_t> forest(forestMemory.data(), grid.planeVoxels);
    ForestChildren            children(childrenMemory.data());
    WidestWays                all(voxels);
    beyond.Clear();
    all.AddNeighbors(grid, mask);
    for (std::uint32_t i = 1; i < planeVoxels; ++i)
    {
      const auto         parent = static_cast<std::uint32_t>(random() % i);
      const std::uint8_t most = std::min(mask[last + i], mask[last + parent]);
      if (random() % 2 && most > 0)
      {
        beyond.parent[i] = parent;
        beyond.capacity[i] = static_cast<std::uint8_t>(1 + random() % most);
        all.Add(last + i, last + parent, beyond.capacity[i]);
      }
    }
    children.Find(beyond);
    all.Solve();
    int edgesOfOneBand = 0;
    for (int bands = 1; bands <= grid.height; ++bands)
    {
      std::vector<std::uint64_t>     memory(SlabContraction<std::uint8_t>::GetBytes(grid, bands) / 8 + 1);
      const SlabVoxels<std::uint8_t> view = { mask.data(),
                                              state.data(),
                                              ReconstructionCode<std::uint8_t>(false, false, 0) };
      SlabContraction<std::uint8_t>(grid, view, bands, memory.data(), [] {
        return false;
      }).Run(*threads, beyond, children, forest);
      int        edges = 0;
      WidestWays ofPlane(planeVoxels);
      ofPlane.AddNeighbors(plane, mask);
      for (std::uint32_t i = 0; i < planeVoxels; ++i)
      {
        if (forest.parent[i] != PlaneForest<std::uint8_t>::None)
        {
          ofPlane.Add(i, forest.parent[i], forest.capacity[i]);
          ++edges;
        }
      }
      edgesOfOneBand = bands == 1 ? edges : edgesOfOneBand;
      ASSERT_EQ(edges, edgesOfOneBand) << "with " << bands << " bands it tells what the plane tells";
      ofPlane.Solve();
      for (std::size_t a = 0; a < planeVoxels; ++a)
      {
        for (std::size_t b = 0; b < a; ++b)
        {
          ASSERT_EQ(ofPlane.Get(a, b), all.Get(a, b)) << bands << " bands, from " << a << " to " << b;
        }
      }
    }
  }
}

/** A way that leaves the planes twice, by a voxel of another band to which nothing else leads. */
TEST(SlabContraction, FollowsTheForestThroughOtherBands)
{
  const SlabGrid                         grid(1, 5, 2, false);
  const std::vector<std::uint8_t>        mask{ 9, 0, 0, 0, 9, 9, 0, 9, 0, 9 };
  std::vector<std::uint8_t>              state(mask.size(), 0);
  std::vector<std::uint64_t>             memories[3] = { std::vector<std::uint64_t>(5),
                                                         std::vector<std::uint64_t>(5),
                                                         std::vector<std::uint64_t>(5) };
  PlaneForest<std::uint8_t>              beyond(memories[0].data(), 5);
  PlaneForest<std::uint8_t>              forest(memories[1].data(), 5);
  ForestChildren                         children(memories[2].data());
  const ReconstructionCode<std::uint8_t> code(false, false, 0);
  const auto                             threads = MakeThreadExecutor(2);
  beyond.Clear();
  beyond.parent[2] = 0;
  beyond.capacity[2] = 7;
  beyond.parent[4] = 2;
  beyond.capacity[4] = 6;
  children.Find(beyond);
  for (int bands = 1; bands <= 5; ++bands)
  {
    std::vector<std::uint64_t> memory(SlabContraction<std::uint8_t>::GetBytes(grid, bands) / 8 + 1);
    SlabContraction<std::uint8_t>(grid, { mask.data(), state.data(), code }, bands, memory.data(), [] {
      return false;
    }).Run(*threads, beyond, children, forest);
    const std::uint32_t node = forest.parent[0] == 4 ? 0 : 4;
    ASSERT_EQ(forest.parent[node], 4 - node) << bands << " bands";
    ASSERT_EQ(forest.capacity[node], 6);
  }
}

/** Voxels that find no room in the queue are found again. */
TEST(SlabFlood, AQueueThatIsTooSmallLosesNothing)
{
  std::mt19937 random(107);
  for (int trial = 0; trial < 30; ++trial)
  {
    const SlabGrid             grid(17, 13, 9, trial % 2);
    const auto                 voxels = static_cast<std::size_t>(grid.GetVoxels());
    std::vector<std::uint16_t> mask(voxels);
    std::vector<std::uint16_t> states[2];
    for (auto & value : mask)
    {
      value = static_cast<std::uint16_t>(random() % 5 ? 50 + random() % 100 : 0);
    }
    std::vector<std::uint32_t> forestMemory(voxels);
    PlaneForest<std::uint16_t> forest(forestMemory.data(), grid.planeVoxels);
    forest.Clear();
    std::vector<std::uint32_t> childrenMemory(voxels);
    ForestChildren             children(childrenMemory.data());
    for (std::int64_t i = 1; i < grid.planeVoxels; i += 1 + static_cast<std::int64_t>(random() % 20))
    {
      forest.parent[i] = static_cast<std::uint32_t>(random() % static_cast<unsigned int>(i));
      const std::size_t base = voxels - static_cast<std::size_t>(grid.planeVoxels);
      forest.capacity[i] =
        std::min<std::uint16_t>({ mask[base + static_cast<std::size_t>(i)], mask[base + forest.parent[i]], 120 });
    }
    children.Find(forest);
    for (int small = 0; small < 2; ++small)
    {
      auto & state = states[small];
      state.assign(voxels, 0);
      const std::int64_t       entries = small ? 3 : 100000;
      std::vector<std::size_t> memory(DescendingQueue<std::uint16_t>::GetBytes(entries) / sizeof(std::size_t) + 1);
      SlabFlood<std::uint16_t> flood(grid,
                                     { mask.data(), state.data(), ReconstructionCode<std::uint16_t>(false, false, 0) },
                                     forest,
                                     children,
                                     memory.data(),
                                     entries,
                                     [] { return false; });
      for (const std::uint32_t seed : { 0u, 100u, 200u, 7u, 8u })
      {
        while (!flood.Offer(seed, 140))
        {
          flood.Drain();
        }
      }
      EXPECT_TRUE(flood.Finish());
    }
    EXPECT_EQ(states[0], states[1]);
    EXPECT_GT(std::count_if(states[0].begin(), states[0].end(), [](auto v) { return v > 0; }), 100);
  }
}

TEST(SlabPacking, GivesBackWhatItWasGiven)
{
  std::mt19937 random(108);
  const auto   compare = [&](auto pixel) {
    using Key = decltype(pixel);
    for (int trial = 0; trial < 300; ++trial)
    {
      const std::size_t voxels = 1 + random() % (trial % 10 ? 300 : 5000);
      std::vector<Key>  mask(voxels);
      for (Key & value : mask)
      {
        value = static_cast<Key>(random() % (trial % 2 ? 3 : 1000));
      }
      std::vector<Key>   state = mask;
      const unsigned int every = 1 + random() % 40;
      for (std::size_t i = 0; i < voxels && trial % 7; ++i)
      {
        if (random() % every == 0)
        {
          for (std::size_t k = 0; k < 1 + random() % 9 && i < voxels; ++k)
          {
            state[i++] = static_cast<Key>(7);
          }
        }
      }
      std::vector<unsigned char> packed(voxels * sizeof(Key) + 16, 0xEE);
      const std::size_t size = PackState(mask.data(), state.data(), static_cast<std::int64_t>(voxels), packed.data());
      ASSERT_LE(size, voxels * sizeof(Key));
      for (std::size_t i = voxels * sizeof(Key); i < packed.size(); ++i)
      {
        ASSERT_EQ(packed[i], 0xEE) << "written beyond the room";
      }
      ASSERT_EQ(size == 0, mask == state);
      std::vector<Key> back(voxels, static_cast<Key>(99));
      UnpackState(mask.data(), packed.data(), size, static_cast<std::int64_t>(voxels), back.data());
      ASSERT_EQ(back, state);
    }
  };
  compare(std::uint8_t{});
  compare(std::uint16_t{});
  compare(std::uint32_t{});
  compare(std::uint64_t{});
}

TEST(Spool, KeepsWhatItIsGivenAndHasNoName)
{
  const std::string folder = testing::TempDir();
  Spool             spool(folder);
  std::vector<int>  numbers(10000);
  for (std::size_t i = 0; i < numbers.size(); ++i)
  {
    numbers[i] = static_cast<int>(i);
  }
  spool.Append(numbers.data(), numbers.size() * sizeof(int));
  EXPECT_EQ(CountSpools(folder), 0);
  int number = 0;
  spool.Read(1234 * sizeof(int), &number, sizeof(number));
  EXPECT_EQ(number, 1234);
  try
  {
    spool.Read(numbers.size() * sizeof(int) - 2, &number, sizeof(number));
    FAIL() << "read beyond the end";
  }
  catch (const Error & error)
  {
    EXPECT_NE(std::string(error.what()).find("chunkwise-spool"), std::string::npos) << error.what();
  }
}

} // namespace
