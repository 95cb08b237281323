/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseFailingThreads.h"
#include "chunkwiseFakeDevices.h"
#ifdef CHUNKWISE_HAS_NETWORKS
#  include "chunkwiseNetworkOperation.h"
#endif
#include "chunkwiseOperations.h"
#include "chunkwiseReconstructionImages.h"
#include "chunkwiseReconstructionOperation.h"
#include "chunkwiseRecordingMonitor.h"
#include "chunkwiseSequenceOperation.h"
#ifdef CHUNKWISE_HAS_NETWORKS
#  include "chunkwiseSmallNetwork.h"
#endif
#include "chunkwiseStatisticsOperation.h"
#include "chunkwiseThreads.h"
#include "chunkwiseVarianceOperation.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <random>
#include <string>

using namespace chunkwise;

namespace
{

/** A run of one of the schedules, in several chunks on a device, and what it gives. */
struct Work
{
  std::string               name;
  const KernelRegistry &    kernels;
  std::vector<std::int32_t> marker;
  std::vector<std::int32_t> image;
  std::vector<char>         output;
  std::vector<char>         expected;
  ExecutionRequest          request;

  Work(std::string theName, const KernelRegistry & theKernels, std::shared_ptr<const Operation> operation,
       const Coordinates & extent, PixelType outputKind, std::size_t deviceBudget)
    : name(std::move(theName))
    , kernels(theKernels)
  {
    request.operation = std::move(operation);
    request.image = request.region = Box::FromExtent(extent);
    std::mt19937 random(61);
    image.resize(static_cast<std::size_t>(request.image.NumberOfVoxels()));
    for (auto & value : image)
    {
      value = static_cast<std::int32_t>(random() % 1000) - 500;
    }
    request.output = DenseView(nullptr, outputKind, request.image);
    request.budgets.device = deviceBudget;
    request.stagingThreads = 2;
  }

  /** Computes the CPU's result, which other tests compare with definitions. */
  void
  Prepare()
  {
    for (auto * const pixels : { &marker, &image })
    {
      if (!pixels->empty())
      {
        request.inputs.push_back(DenseView(pixels->data(), PixelType::Int32, request.image));
      }
    }
    request.backend = BackendChoice::CPU;
    Reset();
    Run(*FakeDevices(0, FakeDevice::Options(), kernels).MakeManager());
    expected = output;
  }

  /** The result of an operation without an output takes its place. */
  ExecutionReport
  Run(Manager & manager, Monitor * monitor = nullptr)
  {
    if (request.operation->HasOutput())
    {
      return manager.Execute(request, monitor);
    }
    ExecutionReport  report;
    const ChunkState total = manager.Summarise(request, monitor, &report);
    output.assign(total.begin(), total.end());
    return report;
  }

  void
  Reset()
  {
    output.assign(image.size() * PixelSize(request.output.kind), 0x55);
    request.output.data = output.data();
  }
};

std::unique_ptr<Work>
MakeIndependent()
{
  const auto operation = std::make_shared<WindowSumOperation>();
  operation->radius = { { 1, 1, 1, 0, 0 } };
  return std::make_unique<Work>(
    "Independent", GetTestKernels(), operation, Coordinates{ { 9, 8, 20, 1, 1 } }, PixelType::Int64, 12000);
}

std::unique_ptr<Work>
MakeSequence()
{
  const auto smooth = std::make_shared<SeparableOperation>();
  smooth->weights[0] = smooth->weights[2] = { 0.25, 0.5, 0.25 };
  const auto mean = std::make_shared<MeanOperation>();
  mean->radius = { { 2, 1, 1, 0, 0 } };
  const auto operation = std::make_shared<SequenceOperation>();
  operation->stages = { smooth, mean };
  return std::make_unique<Work>(
    "Sequence", GetHostKernels(), operation, Coordinates{ { 9, 8, 30, 1, 1 } }, PixelType::Float32, 24000);
}

#ifdef CHUNKWISE_HAS_NETWORKS
/** In slabs, whose planes are kept in the host's memory. */
std::unique_ptr<Work>
MakeNetwork()
{
  const auto operation = std::make_shared<NetworkOperation>();
  operation->graph = MakeSmallNetwork();
  operation->precision = NetworkPrecision::Reproducible;
  operation->scale = 0.01;
  operation->slab = 2;
  operation->planes = NetworkPlanes::InHostMemory;
  return std::make_unique<Work>(
    "Network", GetHostKernels(), operation, Coordinates{ { 12, 10, 40, 1, 1 } }, PixelType::Float32, 45000);
}

/** The first layer is the host's. */
std::unique_ptr<Work>
MakePipedNetwork()
{
  const auto operation = std::make_shared<NetworkOperation>();
  operation->graph = MakeSmallNetwork();
  operation->method = NetworkMethod::Direct;
  operation->scale = 0.01;
  operation->slab = 2;
  operation->headLayers = 1;
  return std::make_unique<Work>(
    "PipedNetwork", GetHostKernels(), operation, Coordinates{ { 12, 10, 40, 1, 1 } }, PixelType::Float32, 45000);
}

#endif
std::unique_ptr<Work>
MakeSweep()
{
  return std::make_unique<Work>("Sweep",
                                GetTestKernels(),
                                std::make_shared<RunningSumOperation>(),
                                Coordinates{ { 7, 6, 20, 1, 1 } },
                                PixelType::Int64,
                                6000);
}

/** Without an output: of the variances of windows, so that chunks have a halo. */
std::unique_ptr<Work>
MakeStatistics()
{
  const auto variance = std::make_shared<VarianceOperation>();
  variance->radius = { { 1, 1, 1, 0, 0 } };
  const auto operation = std::make_shared<StatisticsOperation>();
  operation->stage = variance;
  return std::make_unique<Work>(
    "Statistics", GetHostKernels(), operation, Coordinates{ { 9, 8, 30, 1, 1 } }, PixelType::UInt8, 40000);
}

std::unique_ptr<Work>
MakeTwoPass()
{
  return std::make_unique<Work>("TwoPass",
                                GetTestKernels(),
                                std::make_shared<AboveMinimumOperation>(),
                                Coordinates{ { 9, 8, 12, 1, 1 } },
                                PixelType::Int64,
                                5000);
}

/** A corridor that winds through all chunks, along which the marker at its begin goes. */
std::unique_ptr<Work>
MakeWinding(const std::string & name, const KernelRegistry & kernels, std::shared_ptr<const Operation> operation,
            std::int64_t extent, std::size_t deviceBudget)
{
  auto work = std::make_unique<Work>(
    name, kernels, std::move(operation), Coordinates{ { extent, extent, 1, 1, 1 } }, PixelType::Int32, deviceBudget);
  work->image = Spiral<std::int32_t>(work->request.image);
  work->marker.assign(work->image.size(), 0);
  work->marker[0] = 200;
  return work;
}

std::unique_ptr<Work>
MakeFixpoint()
{
  return MakeWinding("Fixpoint", GetTestKernels(), std::make_shared<FloodOperation>(), 15, 3300);
}

/** With a way for the host to settle what goes far, or without patience for visits. */
std::unique_ptr<Work>
MakeReconstruction()
{
  const auto operation = std::make_shared<ReconstructionOperation>();
  operation->partVoxels = 50;
  operation->patience = 0.5;
  return MakeWinding("Reconstruction", GetHostKernels(), operation, 91, 190000);
}

class Faults : public testing::TestWithParam<std::unique_ptr<Work> (*)()>
{
protected:
  Faults()
    : m_Work(GetParam()())
  {
    m_Work->Prepare();
  }

  void
  ExpectRight(const std::string & when)
  {
    ASSERT_TRUE(m_Work->output == m_Work->expected) << m_Work->name << ", " << when;
  }

  const std::unique_ptr<Work> m_Work;
};

TEST_P(Faults, TheWorkIsCut)
{
  for (std::size_t count = 1; count < 3; ++count)
  {
    FakeDevices devices(count, FakeDevice::Options(), m_Work->kernels);
    m_Work->request.backend = BackendChoice::CUDA;
    m_Work->Reset();
    const ExecutionReport report = m_Work->Run(*devices.MakeManager());
    ExpectRight("without a fault");
    EXPECT_GT(report.plan.chunks.size(), 2u) << ToString(report.plan.chunkExtent);
  }
}

/** Every call of a device fails, once or from then on: the others, or else the CPU, do the work, or an error says what
 * failed; and then all is as before. */
TEST_P(Faults, AnyCallMayFailInAnyWay)
{
  std::vector<std::string> calls(std::begin(FakeDeviceCalls), std::end(FakeDeviceCalls));
  calls.push_back("SetToZero");
  FakeDevices alone(1, FakeDevice::Options(), m_Work->kernels);
  m_Work->request.backend = BackendChoice::CUDA;
  m_Work->Reset();
  m_Work->Run(*alone.MakeManager());
  for (const std::string & call : calls)
  {
    // A fault of a call that a device does not make even where it does all the work would change nothing.
    const int made = alone.fakes[0]->CountCalls(call);
    for (const auto kind : { DeviceError::Kind::Failed, DeviceError::Kind::OutOfMemory, DeviceError::Kind::Lost })
    {
      for (int variant = 0; variant < 8; ++variant)
      {
        const std::size_t count = 1 + variant % 2;
        const bool        persistent = variant / 2 % 2;
        const bool        mayFallBack = variant / 4;
        bool              reached = true;
        for (int at = variant % 3; reached && at < std::min(made, 40); at = 5 * at + 3)
        {
          const std::string when = call + " number " + std::to_string(at) + (persistent ? " and all" : "") +
                                   " failed with kind " + std::to_string(static_cast<int>(kind)) + " on one of " +
                                   std::to_string(count) + (mayFallBack ? " or the CPU" : "");
          FakeDevice::Options options;
          options.jitter = at % 3 == 1;
          FakeDevices  devices(count, options, m_Work->kernels);
          FakeDevice & fake = *devices.fakes[0];
          const auto   manager = devices.MakeManager();
          fake.FailAt(call, at, persistent, kind);
          m_Work->request.backend = mayFallBack ? BackendChoice::Auto : BackendChoice::CUDA;
          m_Work->Reset();
          RecordingMonitor monitor;
          // Tried again; how much memory there is, is asked once.
          const bool passes = kind == DeviceError::Kind::Failed && !persistent && call != "GetFreeMemory";
          bool       failed = false;
          try
          {
            const ExecutionReport report = m_Work->Run(*manager, &monitor);
            ExpectRight(when);
            EXPECT_EQ(monitor.fractions.back(), 1.0) << when;
            EXPECT_LE(report.peakDevice, m_Work->request.budgets.device) << when;
            // Work that another device can do is not left to the CPU.
            EXPECT_TRUE((count == 1 && mayFallBack && !passes) || report.chunksOnHost == 0) << when;
          }
          catch (const DeviceError & error)
          {
            failed = true;
            EXPECT_TRUE(count == 1 && !mayFallBack && !passes) << when << ": " << error.what();
            EXPECT_EQ(error.call, call) << when;
            EXPECT_NE(std::string(error.what()).find("fake device 0"), std::string::npos) << error.what();
            EXPECT_LT(monitor.fractions.empty() ? 0.0 : monitor.fractions.back(), 1.0) << when;
          }
          EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end())) << when;
          reached = fake.CountCalls(call) > at;
          EXPECT_TRUE(reached || !failed) << when;

          fake.ClearFaults();
          m_Work->Reset();
          // An allocation is tried again at once; the last synchronisation may come when nobody minds any more.
          const bool isGone = reached && kind == DeviceError::Kind::Lost && call != "Synchronize" &&
                              (persistent || call.find("Allocate") == std::string::npos);
          const int launches = fake.CountCalls("Launch");
          try
          {
            m_Work->Run(*manager);
            ExpectRight("the run after " + when);
            EXPECT_FALSE(isGone && fake.CountCalls("Launch") > launches) << when << ", but the device is used again";
          }
          catch (const Error & error)
          {
            EXPECT_TRUE(count == 1 && !mayFallBack && reached && kind == DeviceError::Kind::Lost)
              << when << ": " << error.what();
            EXPECT_NE(std::string(error.what()).find("was lost"), std::string::npos) << error.what();
          }
          if (HasFailure())
          {
            return;
          }
        }
      }
    }
  }
}

/** The system starts some threads, or none: the work is done by those there are, at last the caller's, or left to the
 * CPU, or an error says what was not started. */
TEST_P(Faults, AnyThreadMayBeMissing)
{
  failing_threads::isExempt = &FakeDevice::IsStartingStream;
  for (int variant = 0; variant < 12; ++variant)
  {
    const auto count = static_cast<std::size_t>(variant % 3);
    const bool isOne = variant / 3 % 2;
    const bool mayFallBack = variant / 6 || count == 0;
    bool       reached = true;
    for (int at = 0; reached && at < 40; ++at)
    {
      const std::string when = "thread number " + std::to_string(at) + (isOne ? "" : " and all behind it") +
                               " missing on " + std::to_string(count) + " devices" + (mayFallBack ? " or the CPU" : "");
      FakeDevices devices(count, FakeDevice::Options(), m_Work->kernels);
      const auto  manager = devices.MakeManager();
      m_Work->request.backend = count == 0    ? BackendChoice::CPU
                                : mayFallBack ? BackendChoice::Auto
                                              : BackendChoice::CUDA;
      m_Work->Reset();
      RecordingMonitor monitor;
      failing_threads::FailBetween(at, isOne ? at + 1 : INT_MAX);
      {
        const auto executor = MakeThreadExecutor(4);
        m_Work->request.executor = executor.get();
        try
        {
          m_Work->Run(*manager, &monitor);
          ExpectRight(when);
          EXPECT_EQ(monitor.fractions.back(), 1.0) << when;
        }
        catch (const DeviceError & error)
        {
          EXPECT_FALSE(mayFallBack) << when << ": " << error.what();
          EXPECT_NE(std::string(error.what()).find("starts no thread"), std::string::npos) << error.what();
        }
        m_Work->request.executor = nullptr;
      }
      EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end())) << when;
      EXPECT_GT(failing_threads::CountAsked(), 0);
      reached = failing_threads::CountAsked() > at;
      failing_threads::FailBetween(INT_MAX);
      if (HasFailure())
      {
        return;
      }
    }
  }
}

/** Without a thread of the run the monitor is still asked. */
TEST(Threads, ARunInTheCallersThreadCanBeAborted)
{
  const auto work = MakeSequence();
  work->Prepare();
  work->Reset();
  RecordingMonitor monitor;
  monitor.abortAt = 0;
  const auto manager = FakeDevices(0, FakeDevice::Options(), GetHostKernels()).MakeManager();
  failing_threads::FailBetween(0);
  EXPECT_THROW(manager->Execute(work->request, &monitor), Aborted);
  failing_threads::FailBetween(INT_MAX);
}

INSTANTIATE_TEST_SUITE_P(Schedules, Faults,
                         testing::Values(&MakeIndependent, &MakeSequence, &MakeSweep, &MakeTwoPass, &MakeStatistics,
                                         &MakeFixpoint, &MakeReconstruction),
                         [](const auto & info) { return info.param()->name; });
#ifdef CHUNKWISE_HAS_NETWORKS
INSTANTIATE_TEST_SUITE_P(Networks, Faults, testing::Values(&MakeNetwork, &MakePipedNetwork),
                         [](const auto & info) { return info.param()->name; });
#endif

/** Threads that are not started, and tasks that throw: each task runs, and the first error is thrown when all have
 * ended. */
TEST(Threads, TasksAtOnceThrowTheFirstError)
{
  constexpr std::size_t count = 6;
  for (int missing = 0; missing < 6; ++missing)
  {
    for (std::size_t firstBad = 0; firstBad <= count; ++firstBad)
    {
      SCOPED_TRACE(std::to_string(missing) + " threads missing, bad from " + std::to_string(firstBad));
      std::vector<std::atomic<int>> calls(count);
      failing_threads::FailBetween(0, missing);
      std::string message;
      try
      {
        RunTogether(count, [&](std::size_t task) {
          ++calls[task];
          if (task >= firstBad)
          {
            throw Error(std::to_string(task));
          }
        });
      }
      catch (const Error & error)
      {
        message = error.what();
      }
      failing_threads::FailBetween(INT_MAX);
      EXPECT_EQ(message, firstBad < count ? std::to_string(firstBad) : "");
      EXPECT_TRUE(std::all_of(calls.begin(), calls.end(), [](int n) { return n == 1; }));
    }
  }
}

/** Each has room for its largest chunk if the others hold nothing. */
TEST(HostBudget, RunsAtOnceWaitForEachOther)
{
  constexpr std::size_t    budget = 150000;
  const auto               manager = FakeDevices(0, FakeDevice::Options(), GetHostKernels()).MakeManager();
  std::vector<std::thread> threads;
  std::vector<int>         wrong(4, 0);
  Budgets                  budgets;
  budgets.host = budget;
  manager->SetBudgets(budgets);
  for (std::size_t t = 0; t < wrong.size(); ++t)
  {
    threads.emplace_back([&manager, &wrong, t] {
      const auto work = t % 2 ? MakeReconstruction() : MakeSequence();
      work->Prepare();
      for (int i = 0; i < 4; ++i)
      {
        work->Reset();
        try
        {
          const ExecutionReport report = manager->Execute(work->request);
          wrong[t] += work->output == work->expected && report.peakHost <= budget ? 0 : 1;
        }
        catch (const Error & error)
        {
          ADD_FAILURE() << error.what();
        }
      }
    });
  }
  for (auto & thread : threads)
  {
    thread.join();
  }
  EXPECT_EQ(wrong, std::vector<int>(wrong.size(), 0));
}

} // namespace
