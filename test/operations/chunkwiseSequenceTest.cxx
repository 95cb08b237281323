/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFakeDevices.h"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseVarianceOperation.h"

#include <map>
#include <mutex>
#include <set>

using namespace chunkwise;

namespace
{

class Sequences : public KernelTest
{};

template <typename TOperation>
std::shared_ptr<const Operation>
RandomBox(std::mt19937 & random, BoundaryMode mode)
{
  const auto operation = std::make_shared<TOperation>();
  for (const int a : RandomAxes(random))
  {
    operation->radius[a] = static_cast<std::int64_t>(random() % 4);
  }
  operation->boundary.mode = mode;
  operation->boundary.constant = static_cast<double>(random() % 100);
  return operation;
}

std::shared_ptr<const Operation>
RandomStage(std::mt19937 & random)
{
  const BoundaryMode mode = AllModes[random() % 6];
  switch (random() % 4)
  {
    case 0:
      return std::make_shared<IdentityOperation>();
    case 1:
      return RandomBox<MeanOperation>(random, mode);
    case 2:
      return RandomBox<VarianceOperation>(random, mode);
    default:
    {
      const auto operation = std::make_shared<SeparableOperation>();
      operation->weights[random() % 2] = { 0.25, 0.5, 0.25 };
      operation->weights[2] = { 0.1, 0.2, 0.4, 0.2, 0.1 };
      operation->boundary.mode = mode;
      return operation;
    }
  }
}

std::shared_ptr<SequenceOperation>
RandomSequence(std::mt19937 & random)
{
  const auto sequence = std::make_shared<SequenceOperation>();
  sequence->stages.resize(1 + random() % 4);
  for (auto & stage : sequence->stages)
  {
    stage = RandomStage(random);
  }
  return sequence;
}

/** One stage over the whole image, on the CPU. */
template <typename TIn, typename TOut>
std::vector<TOut>
RunStage(const std::shared_ptr<const Operation> & stage, const Box & image, std::vector<TIn> & pixels)
{
  std::vector<TOut> result(pixels.size());
  ExecutionRequest  request;
  request.operation = stage;
  request.image = request.region = image;
  request.inputs.push_back(DenseView(pixels.data(), PixelTypeOf<TIn>(), image));
  request.output = DenseView(result.data(), PixelTypeOf<TOut>(), image);
  request.backend = BackendChoice::CPU;
  Manager({}).Execute(request);
  return result;
}

template <typename TIn, typename TOut>
void
CompareWithOneAfterTheOther(std::mt19937 & random, Manager & manager, BackendChoice backend, int trials)
{
  int finished = 0;
  for (int trial = 0; trial < trials; ++trial)
  {
    const auto        sequence = RandomSequence(random);
    Trial<TIn, TOut>  t(random, sequence, RandomExtent(random, 14));
    std::vector<TOut> expected = RunStage<TIn, TOut>(sequence->stages[0], t.request.image, t.pixels);
    for (std::size_t i = 1; i < sequence->stages.size(); ++i)
    {
      expected = RunStage<TOut, TOut>(sequence->stages[i], t.request.image, expected);
    }
    const BufferView expectedView = DenseView(expected.data(), PixelTypeOf<TOut>(), t.request.image);
    for (int part = 0; part < 3; ++part)
    {
      t.Prepare(part == 0 ? t.request.image : RandomRegion(random, t.request.image.Extents()));
      t.request.backend = backend;
      t.request.budgets.device = part == 0 ? 0 : 20000 + random() % 300000;
      t.request.budgets.host = part == 0 ? 0 : 40000 + random() % 100000;
      try
      {
        manager.Execute(t.request);
      }
      catch (const BudgetError &)
      {
        continue; // the smallest chunk of this trial is larger
      }
      ++finished;
      ASSERT_TRUE(t.IsContained());
      ForEachIndex(t.request.region, [&](const Coordinates & index) {
        const TOut a = t.Result(index);
        const TOut b = At<TOut>(expectedView, index);
        ASSERT_EQ(std::memcmp(&a, &b, sizeof(a)), 0)
          << sequence->GetKey() << " " << ToString(t.request.image) << " region " << ToString(t.request.region)
          << " at " << ToString(index) << ": " << +a << " and " << +b;
      });
    }
  }
  EXPECT_GT(finished, trials);
}

TEST_P(Sequences, HaveTheBitsOfTheirStagesOneAfterTheOther)
{
  std::mt19937 random(71);
  CompareWithOneAfterTheOther<float, float>(random, GetManager(), GetBackend(), 60);
  CompareWithOneAfterTheOther<std::uint16_t, std::uint16_t>(random, GetManager(), GetBackend(), 30);
  CompareWithOneAfterTheOther<std::uint8_t, float>(random, GetManager(), GetBackend(), 30);
  CompareWithOneAfterTheOther<std::int32_t, double>(random, GetManager(), GetBackend(), 20);
}

TEST_P(Sequences, AFusedImageIsUploadedOnce)
{
  if (GetParam() == Place::Cpu)
  {
    GTEST_SKIP() << "nothing is uploaded to the CPU";
  }
  std::mt19937 random(72);
  const auto   sequence = std::make_shared<SequenceOperation>();
  for (int i = 0; i < 3; ++i)
  {
    const auto mean = std::make_shared<MeanOperation>();
    mean->radius = { { 1, 1, 1, 0, 0 } };
    sequence->stages.push_back(mean);
  }
  Trial<float, float> t(random, sequence, { { 24, 20, 16, 1, 1 } });
  t.request.backend = GetBackend();
  t.Prepare(t.request.image);
  const ExecutionReport report = GetManager().Execute(t.request);
  const double          bytes = 4.0 * static_cast<double>(t.request.image.NumberOfVoxels());
  EXPECT_EQ(report.bytesToHost, bytes);
  EXPECT_LT(report.bytesToDevice, 3 * bytes);
}

TEST(SequenceOperation, SaysWhatCannotBeAStage)
{
  const Coordinates extent = { { 10, 10, 10, 1, 1 } };
  SequenceOperation sequence;
  EXPECT_THROW(sequence.Validate(extent), ParameterError);
  const auto mean = std::make_shared<MeanOperation>();
  mean->radius[0] = -2;
  sequence.stages = { std::make_shared<IdentityOperation>(), mean };
  try
  {
    sequence.Validate(extent);
    FAIL() << "no exception";
  }
  catch (const ParameterError & error)
  {
    EXPECT_NE(std::string(error.what()).find("-2"), std::string::npos);
  }
  mean->radius[0] = 2;
  sequence.Validate(extent);
  EXPECT_THROW(sequence.CheckKinds({ PixelType::UInt8 }, PixelType::Int16), ParameterError);
  const std::string key = sequence.GetKey();
  std::swap(sequence.stages[0], sequence.stages[1]);
  EXPECT_NE(sequence.GetKey(), key);
}

TEST(KernelRegistry, AMissingKernelIsNamedWithTheOneThatNeedsIt)
{
  KernelRegistry kernels;
  Kernel         kernel;
  kernel.run = [](const KernelCall &) {};
  kernels.Register("mean", { kernel });
  EXPECT_EQ(&kernels.Get("mean", "wiener"), kernels.Find("mean"));
  const auto messageOf = [&](const std::string & name, KernelRole role) -> std::string {
    try
    {
      kernels.Get(name, "wiener", role);
    }
    catch (const Error & error)
    {
      return error.what();
    }
    return "no exception";
  };
  EXPECT_NE(messageOf("variance", &KernelSet::compute).find("\"variance\", which \"wiener\" needs"), std::string::npos);
  EXPECT_NE(messageOf("mean", &KernelSet::advance).find("\"mean\" (advance), which"), std::string::npos);
}

TEST(KernelRegistry, ASetHasTheRolesThatItWasGivenAndALaterSetReplacesIt)
{
  KernelRegistry kernels;
  KernelSet      set;
  for (const auto & [role, name] : GetKernelRoles())
  {
    EXPECT_EQ(kernels.Find("sum", role), nullptr) << name;
    (set.*role).run = [](const KernelCall &) {};
  }
  kernels.Register("sum", set);
  const KernelSet * const found = kernels.FindSet("sum");
  ASSERT_NE(found, nullptr);
  std::set<std::string> names;
  for (const auto & [role, name] : GetKernelRoles())
  {
    EXPECT_EQ(kernels.Find("sum", role), &(found->*role)) << name;
    names.insert(name);
  }
  EXPECT_EQ(names.size(), GetKernelRoles().size());
  set = {};
  set.summarize.run = [](const KernelCall &) {};
  kernels.Register("sum", set);
  EXPECT_EQ(kernels.Find("sum"), nullptr);
  EXPECT_NE(kernels.Find("sum", &KernelSet::summarize), nullptr);
  EXPECT_EQ(kernels.GetNames(), std::vector<std::string>{ "sum" });
}

/** The algorithm that ran for each chunk, by its box. */
std::mutex                         notesMutex;
std::map<std::string, std::string> notes;

constexpr std::size_t ScratchOfSmall = 256;
constexpr std::size_t ScratchOfLarge = 4096;

template <bool VLarge>
void
CopyAndNote(const KernelCall & call)
{
  EXPECT_GE(call.scratchBytes, VLarge ? ScratchOfLarge : ScratchOfSmall);
  GetHostKernels().Get("identity", "the test").run(call);
  const std::lock_guard<std::mutex> lock(notesMutex);
  notes[ToString(call.output.box)] = VLarge ? "large" : "small";
}

KernelChoice
ChooseBySize(const Operation &, const ChunkShape & shape)
{
  const auto voxels = static_cast<double>(shape.outputBox.NumberOfVoxels());
  return voxels > 300 ? KernelChoice{ "large", CopyAndNote<true>, ScratchOfLarge, 2 * voxels }
                      : KernelChoice{ "small", CopyAndNote<false>, ScratchOfSmall, 20 * voxels };
}

TEST(KernelChoice, WhatIsPlannedForAChunkIsWhatRuns)
{
  KernelRegistry kernels;
  const Kernel   kernel = MakeChoosingKernel<ChooseBySize>(true);
  kernels.Register("identity", { kernel });
  const Box                 image = Box::FromExtent({ { 10, 10, 23, 1, 1 } });
  std::vector<std::uint8_t> in(static_cast<std::size_t>(image.NumberOfVoxels()), 5);
  std::vector<std::uint8_t> out(in.size());
  ExecutionRequest          request;
  const auto                operation = std::make_shared<IdentityOperation>();
  request.operation = operation;
  request.image = request.region = image;
  request.inputs.push_back(DenseView(in.data(), PixelType::UInt8, image));
  request.output = DenseView(out.data(), PixelType::UInt8, image);
  for (const std::size_t devices : { 0, 1 })
  {
    const FakeDevices fakes(devices, FakeDevice::Options(), kernels);
    notes.clear();
    request.budgets.device = 8192;
    const ExecutionReport report = fakes.MakeManager()->Execute(request);
    std::set<std::string> names;
    for (const Chunk & chunk : report.plan.chunks)
    {
      ChunkShape shape;
      shape.inputBox = chunk.inputBox;
      shape.outputBox = chunk.outputBox;
      shape.image = image;
      const KernelChoice planned = kernel.choose(*operation, shape);
      EXPECT_EQ(notes[ToString(chunk.outputBox)], planned.name);
      EXPECT_EQ(kernel.scratchBytes(*operation, shape), planned.scratchBytes);
      EXPECT_EQ(kernel.cost(*operation, shape), planned.cost);
      names.insert(planned.name);
    }
    EXPECT_EQ(notes.size(), report.plan.chunks.size());
    // The last chunk on the device is the rest.
    EXPECT_EQ(names.size(), devices == 0 ? 1U : 2U);
    EXPECT_EQ(out, in);
    std::fill(out.begin(), out.end(), std::uint8_t{ 0 });
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Sequences, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Sequences, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Sequences, testing::Values(Place::Cuda));

} // namespace
