/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFakeDevices.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwisePassesOperation.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseWaitOperation.h"

using namespace chunkwise;

namespace
{

class Passes : public KernelTest
{};

/** An image, and a run over it. */
template <typename T>
struct PassesTrial
{
  Box              box;
  std::vector<T>   image;
  std::vector<T>   output;
  ExecutionRequest request;

  PassesTrial(std::mt19937 & random, const Coordinates & extent, std::shared_ptr<const Operation> operation)
    : box(Box::FromExtent(extent))
    , image(static_cast<std::size_t>(box.NumberOfVoxels()))
    , output(image.size(), static_cast<T>(77))
  {
    for (T & voxel : image)
    {
      voxel = static_cast<T>(random() % 40);
    }
    request.operation = std::move(operation);
    request.image = request.region = box;
    request.inputs.push_back(View(image));
    request.output = View(output);
  }

  BufferView
  View(std::vector<T> & pixels) const
  {
    return DenseView(pixels.data(), PixelTypeOf<T>(), box);
  }

  /** One operation over all of it, by the CPU at once. */
  std::vector<T>
  Compute(std::shared_ptr<const Operation> operation, std::vector<std::vector<T>> inputs) const
  {
    std::vector<T>   result(image.size());
    ExecutionRequest alone;
    alone.operation = std::move(operation);
    alone.image = alone.region = box;
    for (auto & input : inputs)
    {
      alone.inputs.push_back(View(input));
    }
    alone.output = View(result);
    Manager({}).Execute(alone);
    return result;
  }
};

std::shared_ptr<const Operation>
RandomExtremum(std::mt19937 & random, bool minimum)
{
  Coordinates radius{};
  for (int a = 0; a < 3; ++a)
  {
    radius[a] = static_cast<std::int64_t>(random() % 4);
  }
  if (random() % 2)
  {
    const auto extremum = std::make_shared<ExtremumOperation>();
    extremum->radius = radius;
    extremum->minimum = minimum;
    return extremum;
  }
  const auto  flat = std::make_shared<FlatExtremumOperation>();
  std::size_t taps = 1;
  for (int a = 0; a < 3; ++a)
  {
    taps *= static_cast<std::size_t>(2 * radius[a] + 1);
  }
  flat->radius = radius;
  flat->minimum = minimum;
  for (std::size_t t = 0; t < taps; ++t)
  {
    flat->element.push_back(t == taps / 2 || random() % 3 ? 1 : 0);
  }
  return flat;
}

template <typename T>
void
CompareWithRunsOfTheirOwn(std::mt19937 & random, Manager & manager, BackendChoice backend, int trials)
{
  int chunked = 0;
  for (int trial = 0; trial < trials; ++trial)
  {
    ReconstructionOperation reconstruction;
    reconstruction.erosion = random() % 2;
    reconstruction.fullyConnected = random() % 2;
    reconstruction.spatialDimension = 1 + static_cast<int>(random() % 3);
    const bool     preserves = random() % 2;
    const auto     extremum = RandomExtremum(random, !reconstruction.erosion);
    const auto     operation = MakeReconstructionOfExtremum(extremum, reconstruction, preserves);
    PassesTrial<T> t(random, RandomExtent(random, 14), operation);
    t.request.backend = backend;
    t.request.budgets.device = trial % 2 ? 0 : 40000 + random() % 40000;

    const auto marked = t.Compute(extremum, { t.image });
    const auto once = std::make_shared<ReconstructionOperation>(reconstruction);
    auto       expected = t.Compute(once, { marked, t.image });
    if (preserves)
    {
      const auto again = std::make_shared<ReconstructionOperation>(reconstruction);
      again->marker = ReconstructionMarker::Agreeing;
      expected = t.Compute(again, { marked, expected, t.image });
    }
    try
    {
      chunked += manager.Execute(t.request).plan.chunks.size() > 1 ? 1 : 0;
    }
    catch (const BudgetError &)
    {
      continue; // the smallest chunk of this trial is larger
    }
    ASSERT_EQ(t.output, expected) << operation->GetKey() << " " << ToString(t.box);

    // A part that holds the spatial axes whole.
    Box region = t.box;
    for (int a = reconstruction.spatialDimension; a < MaxDimension; ++a)
    {
      region.lower[a] = static_cast<std::int64_t>(random()) % t.box.upper[a];
    }
    t.request.region = region;
    std::fill(t.output.begin(), t.output.end(), static_cast<T>(77));
    manager.Execute(t.request);
    const BufferView whole = t.View(expected);
    ForEachIndex(t.box, [&](const Coordinates & index) {
      const Box voxel{ index, { { index[0] + 1, index[1] + 1, index[2] + 1, index[3] + 1, index[4] + 1 } } };
      ASSERT_EQ(At<T>(t.request.output, index), region.Contains(voxel) ? At<T>(whole, index) : static_cast<T>(77))
        << operation->GetKey() << " " << ToString(region) << " of " << ToString(t.box) << " at " << ToString(index);
    });
  }
  EXPECT_TRUE(chunked > 0 || backend == BackendChoice::CPU) << "no image was cut";
}

TEST_P(Passes, HaveTheBitsOfRunsOfTheirOwn)
{
  std::mt19937 random(31);
  CompareWithRunsOfTheirOwn<std::uint8_t>(random, GetManager(), GetBackend(), 60);
  CompareWithRunsOfTheirOwn<std::int16_t>(random, GetManager(), GetBackend(), 40);
  CompareWithRunsOfTheirOwn<float>(random, GetManager(), GetBackend(), 40);
  CompareWithRunsOfTheirOwn<double>(random, GetManager(), GetBackend(), 20);
}

std::shared_ptr<PassesOperation>
Opening(bool preserves)
{
  const auto erosion = std::make_shared<ExtremumOperation>();
  erosion->radius = { { 2, 2, 2, 0, 0 } };
  erosion->minimum = true;
  return MakeReconstructionOfExtremum(erosion, ReconstructionOperation(), preserves);
}

TEST_P(Passes, ProgressHasAStepForEach)
{
  std::mt19937       random(32);
  PassesTrial<float> t(random, { { 40, 30, 30, 1, 1 } }, Opening(true));
  t.request.backend = GetBackend();
  RecordingMonitor monitor;
  GetManager().Execute(t.request, &monitor);
  ASSERT_GE(monitor.fractions.size(), 4u);
  EXPECT_EQ(monitor.fractions.front(), 0.0);
  EXPECT_EQ(monitor.fractions.back(), 1.0);
  for (std::size_t i = 1; i < monitor.fractions.size(); ++i)
  {
    EXPECT_LT(monitor.fractions[i - 1], monitor.fractions[i]);
  }
}

TEST_P(Passes, ImagesBetweenThemCountInTheHostsBudget)
{
  std::mt19937              random(33);
  PassesTrial<std::uint8_t> t(random, { { 12, 10, 14, 1, 1 } }, Opening(true));
  t.request.backend = GetBackend();
  const auto image = static_cast<std::size_t>(t.box.NumberOfVoxels());
  GetManager().ReleaseMemory();
  const ExecutionReport report = GetManager().Execute(t.request);
  EXPECT_GE(report.peakHost, 2 * image) << "the marker and the first reconstruction";
  const std::vector<std::uint8_t> expected = t.output;

  t.request.budgets.host = 1000;
  std::size_t needed = 0;
  // The bytes of an error are enough for the step that failed; a later one may need more.
  for (int tries = 0; tries < 4; ++tries)
  {
    GetManager().ReleaseMemory();
    std::fill(t.output.begin(), t.output.end(), std::uint8_t{ 77 });
    try
    {
      const ExecutionReport small = GetManager().Execute(t.request);
      EXPECT_LE(small.peakHost, t.request.budgets.host);
      break;
    }
    catch (const BudgetError & error)
    {
      EXPECT_EQ(error.budget, t.request.budgets.host) << error.what();
      EXPECT_GT(error.needed, error.budget) << error.what();
      EXPECT_NE(std::string(error.what()).find("opening by reconstruction needs " + std::to_string(error.needed)),
                std::string::npos)
        << error.what();
      needed = error.needed;
      t.request.budgets.host = error.needed;
    }
  }
  EXPECT_GE(needed, 2 * image);
  EXPECT_EQ(t.output, expected);

  // The same as the manager's own budget, with runs at once, which must not wait for each other for ever.
  Budgets budgets = GetManager().GetBudgets();
  budgets.host = t.request.budgets.host;
  t.request.budgets.host = 0;
  GetManager().SetBudgets(budgets);
  std::vector<std::thread>                                threads;
  std::vector<std::unique_ptr<PassesTrial<std::uint8_t>>> trials;
  for (int i = 0; i < 4; ++i)
  {
    trials.push_back(std::make_unique<PassesTrial<std::uint8_t>>(random, t.box.upper, t.request.operation));
    trials.back()->image = t.image;
    trials.back()->request.backend = GetBackend();
    trials.back()->request.inputs[0] = trials.back()->View(trials.back()->image);
    // Not by its place in the vector, which moves as it grows.
    threads.emplace_back([this, trial = trials.back().get()] { GetManager().Execute(trial->request); });
  }
  for (auto & thread : threads)
  {
    thread.join();
  }
  for (const auto & trial : trials)
  {
    EXPECT_EQ(trial->output, expected);
  }
  budgets.host = 0;
  GetManager().SetBudgets(budgets);
}

TEST_P(Passes, ThePlanIsThatOfTheLargest)
{
  std::mt19937       random(34);
  PassesTrial<float> t(random, { { 40, 30, 30, 1, 1 } }, Opening(false));
  t.request.backend = GetBackend();
  const Plan       plan = GetManager().MakePlanFor(t.request);
  ExecutionRequest second = t.request;
  second.operation = Opening(false)->stages[1].operation;
  second.inputs.push_back(second.inputs[0]);
  const Plan alone = GetManager().MakePlanFor(second);
  EXPECT_EQ(plan.deviceBytes, alone.deviceBytes);
  EXPECT_EQ(plan.chunks.size(), alone.chunks.size());
}

TEST_P(Passes, NothingIsNothing)
{
  std::mt19937       random(35);
  PassesTrial<float> t(random, { { 4, 3, 3, 2, 1 } }, Opening(true));
  t.request.backend = GetBackend();
  t.request.region.upper[3] = 0;
  RecordingMonitor monitor;
  GetManager().Execute(t.request, &monitor);
  EXPECT_EQ(monitor.fractions.back(), 1.0);
  EXPECT_TRUE(GetManager().MakePlanFor(t.request).chunks.empty());
  EXPECT_EQ(std::count(t.output.begin(), t.output.end(), 77.0f), static_cast<std::ptrdiff_t>(t.output.size()));
}

TEST(PassesOperation, AnAbortReachesEachOfThem)
{
  KernelRegistry kernels;
  WaitOperation::Register(kernels);
  const auto operation = std::make_shared<PassesOperation>();
  operation->stages = { { WaitOperation::New(0) }, { WaitOperation::New(1), { 0 } }, { WaitOperation::New(2), { 1 } } };
  std::mt19937              random(36);
  PassesTrial<std::uint8_t> t(random, { { 20, 10, 5, 1, 1 } }, operation);
  for (const std::size_t devices : { 0u, 1u })
  {
    const FakeDevices fakes(devices, FakeDevice::Options(), kernels);
    const auto        manager = fakes.MakeManager();
    t.request.backend = devices ? BackendChoice::CUDA : BackendChoice::CPU;
    for (int pass = 0; pass < 3; ++pass)
    {
      WaitOperation::Reset(pass);
      AbortOnceWaiting monitor;
      EXPECT_THROW(manager->Execute(t.request, &monitor), Aborted);
      for (int other = 0; other < 3; ++other)
      {
        EXPECT_EQ(WaitOperation::begun[other] > 0, other <= pass) << "pass " << other << ", stopped in " << pass;
      }
    }
    WaitOperation::Reset(-1);
    EXPECT_EQ(manager->Execute(t.request).peakHost, 2 * 1024u) << "an image is given back once it has been read";
    EXPECT_EQ(t.output, t.image);
    std::fill(t.output.begin(), t.output.end(), std::uint8_t{ 77 });
  }
}

TEST(PassesOperation, BadRequestsAreNamedBeforeWork)
{
  std::mt19937       random(37);
  PassesTrial<float> t(random, { { 12, 10, 8, 1, 1 } }, Opening(false));
  Manager            manager({});
  const auto         message = [&]() -> std::string {
    try
    {
      manager.Execute(t.request);
    }
    catch (const Error & error)
    {
      EXPECT_NE(dynamic_cast<const ParameterError *>(&error), nullptr) << error.what();
      return error.what();
    }
    return "";
  };
  t.request.region.upper[1] = 5;
  EXPECT_NE(message().find("whole of axis 1"), std::string::npos);
  t.request.region = t.box;
  t.request.inputs.push_back(t.request.inputs[0]);
  EXPECT_NE(message().find("takes 1 inputs, not 2"), std::string::npos);
  t.request.inputs.resize(1);
  std::vector<double> wide(t.image.size());
  const BufferView    output = t.request.output;
  t.request.output = DenseView(wide.data(), PixelType::Float64, t.box);
  EXPECT_NE(message().find("float64"), std::string::npos);
  t.request.output = output;
  const auto nested = std::make_shared<PassesOperation>();
  nested->stages = { { Opening(false) } };
  t.request.operation = nested;
  EXPECT_NE(message().find("is itself made of passes"), std::string::npos);
  nested->stages.clear();
  EXPECT_NE(message().find("has no stages"), std::string::npos);
  const auto sequence = std::make_shared<SequenceOperation>();
  sequence->stages = { Opening(false) };
  t.request.operation = sequence;
  EXPECT_NE(message().find("cannot be run chunk by chunk"), std::string::npos);
  EXPECT_EQ(std::count(t.output.begin(), t.output.end(), 77.0f), static_cast<std::ptrdiff_t>(t.output.size()));
}

INSTANTIATE_TEST_SUITE_P(Cpu, Passes, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Passes, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Passes, testing::Values(Place::Cuda));

} // namespace
