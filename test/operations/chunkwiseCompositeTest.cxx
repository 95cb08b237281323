/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDifferenceOperation.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFakeDevices.h"
#include "chunkwiseFilters.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseHighPassOperation.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseRangeOperation.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseSpyControl.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseWaitOperation.h"
#include "chunkwiseWienerOperation.h"

using namespace chunkwise;

namespace
{

const Box Image = Box::FromExtent({ { 90, 80, 100, 1, 1 } });

template <typename TOperation>
std::shared_ptr<TOperation>
OfRadius(std::int64_t radius, BoundaryMode mode = BoundaryMode::Renormalized)
{
  const auto operation = std::make_shared<TOperation>();
  operation->radius = { { radius, radius, radius, 0, 0 } };
  operation->boundary.mode = mode;
  return operation;
}

std::shared_ptr<SequenceOperation>
SequenceOf(std::vector<std::shared_ptr<const Operation>> stages)
{
  const auto sequence = std::make_shared<SequenceOperation>();
  sequence->stages = std::move(stages);
  return sequence;
}

std::shared_ptr<SeparableOperation>
Smoothing()
{
  const auto smoothing = std::make_shared<SeparableOperation>();
  for (int a = 0; a < 3; ++a)
  {
    smoothing->weights[a] = { 0.1, 0.2, 0.4, 0.2, 0.1 };
  }
  return smoothing;
}

/** One of each kind. */
std::vector<std::shared_ptr<const CompositeOperation>>
AllComposites()
{
  const auto wiener = OfRadius<WienerOperation>(3);
  wiener->noise = 20;
  const auto highPass = std::make_shared<HighPassOperation>();
  highPass->smoothing = Smoothing();
  const auto erosion = OfRadius<ExtremumOperation>(4);
  erosion->minimum = true;
  const auto flat = OfRadius<FlatExtremumOperation>(1);
  flat->element.assign(27, 1);
  flat->element[0] = 0;
  return { OfRadius<RangeOperation>(4),
           wiener,
           highPass,
           SequenceOf({ erosion, OfRadius<ExtremumOperation>(4) }),
           SequenceOf({ Smoothing(), flat, OfRadius<VarianceOperation>(2), OfRadius<MeanOperation>(1) }) };
}

/** A run of the CPU's kernel over the whole image, whose scratch has just the bytes that it asked for. */
struct WholeRun
{
  std::vector<float> input;
  std::vector<float> output;

  WholeRun()
    : input(static_cast<std::size_t>(Image.NumberOfVoxels()))
    , output(input.size(), -1e30f)
  {
    std::mt19937 random(11);
    for (float & voxel : input)
    {
      voxel = RandomPixel<float>(random);
    }
  }

  void
  Go(const Operation & operation, RunControl & control, unsigned int threads)
  {
    constexpr std::size_t guardBytes = 4096;
    constexpr char        guard = 0x6B;
    const auto            executor = MakeThreadExecutor(threads);
    const Kernel &        kernel = GetHostKernels().Get(operation.GetName(), "the test");
    ChunkShape            shape;
    shape.inputBox = shape.outputBox = shape.image = Image;
    shape.inputKinds[0] = shape.outputKind = PixelType::Float32;
    shape.numberOfInputs = 1;
    shape.concurrency = static_cast<int>(threads);
    shape.kernels = &GetHostKernels();
    const std::size_t bytes = kernel.scratchBytes(operation, shape);
    std::vector<char> memory(bytes + 2 * guardBytes + 256, guard);
    char * const      begin = memory.data() + guardBytes;
    char * const      scratch = begin + (256 - reinterpret_cast<std::uintptr_t>(begin) % 256) % 256;
    KernelCall        call;
    call.operation = &operation;
    call.inputs[0] = DenseView(input.data(), PixelType::Float32, Image);
    call.numberOfInputs = 1;
    call.output = DenseView(output.data(), PixelType::Float32, Image);
    call.writable = call.image = Image;
    call.scratch = scratch;
    call.scratchBytes = bytes;
    call.executor = executor.get();
    call.control = &control;
    call.kernels = &GetHostKernels();
    kernel.run(call);
    const auto isGuard = [](char c) { return c == guard; };
    EXPECT_TRUE(std::all_of(memory.data(), scratch, isGuard)) << operation.GetKey();
    EXPECT_TRUE(std::all_of(scratch + bytes, memory.data() + memory.size(), isGuard)) << operation.GetKey();
  }

  std::int64_t
  CountWritten() const
  {
    return Image.NumberOfVoxels() - std::count(output.begin(), output.end(), -1e30f);
  }
};

TEST(Composite, EveryStageReportsItsProgress)
{
  for (const auto & operation : AllComposites())
  {
    for (const unsigned int threads : { 1u, 3u })
    {
      WholeRun   run;
      SpyControl control;
      run.Go(*operation, control, threads);
      EXPECT_EQ(control.GetVoxels(), Image.NumberOfVoxels()) << operation->GetKey();
      EXPECT_EQ(run.CountWritten(), Image.NumberOfVoxels()) << operation->GetKey();
      EXPECT_GE(control.CountSteps(), 4 * operation->GetStages().size()) << operation->GetKey();
      EXPECT_GT(control.GetSmallestStep(), 0) << operation->GetKey();
      // A stage that reported nothing would count at once when it ends.
      EXPECT_LT(control.GetLargestStep(), Image.NumberOfVoxels() / 14) << operation->GetKey();
    }
  }
}

TEST(Composite, AStopIsSeenSoonInEveryStage)
{
  for (const auto & operation : AllComposites())
  {
    for (int tenth = 0; tenth < 10; ++tenth)
    {
      const std::int64_t stopAt = Image.NumberOfVoxels() * tenth / 10;
      WholeRun           run;
      SpyControl         control(stopAt);
      run.Go(*operation, control, 1);
      EXPECT_LT(control.GetVoxels(), stopAt + Image.NumberOfVoxels() / 14) << operation->GetKey();
      // Voxels that the last stage has written have been reported too, as a part of the whole.
      EXPECT_LT(run.CountWritten(), Image.NumberOfVoxels()) << operation->GetKey();
      if (tenth == 0)
      {
        EXPECT_EQ(run.CountWritten(), 0) << operation->GetKey();
      }
    }
  }
}

/** An iteration takes as long as all stages of a composite. */
TEST(Composite, IterationsOfCoherenceDiffusionReportAndStopOnTheirWay)
{
  FilterImage image;
  image.dimension = 3;
  image.extent = Image.Extents();
  FilterParameters parameters;
  parameters.SetInteger("Iterations", 2);
  parameters.Set("OuterSigma", std::vector<double>{ 1 });
  const auto operation = MakeFilterOperation("coherence-diffusion", parameters, image);
  WholeRun   run;
  SpyControl control;
  run.Go(*operation, control, 2);
  EXPECT_EQ(control.GetVoxels(), Image.NumberOfVoxels());
  EXPECT_GT(control.GetSmallestStep(), 0);
  // All but the tensors count at once when an iteration ends.
  EXPECT_LE(control.GetLargestStep(), Image.NumberOfVoxels() / 6 + 2);
  const std::int64_t stopAt = Image.NumberOfVoxels() / 10;
  WholeRun           stopped;
  SpyControl         stops(stopAt);
  stopped.Go(*operation, stops, 1);
  EXPECT_LT(stops.GetVoxels(), stopAt + Image.NumberOfVoxels() / 14);
  EXPECT_EQ(stopped.CountWritten(), 0);
}

TEST(Composite, AnAbortReachesEveryStage)
{
  KernelRegistry kernels;
  RegisterCompositeKernels(kernels);
  WaitOperation::Register(kernels);
  const auto sequence = SequenceOf({ WaitOperation::New(0), WaitOperation::New(1), WaitOperation::New(2) });
  const Box  image = Box::FromExtent({ { 20, 10, 5, 1, 1 } });
  std::vector<std::uint8_t> in(static_cast<std::size_t>(image.NumberOfVoxels()), 3);
  std::vector<std::uint8_t> out(in.size());
  ExecutionRequest          request;
  request.operation = sequence;
  request.image = request.region = image;
  request.inputs.push_back(DenseView(in.data(), PixelType::UInt8, image));
  request.output = DenseView(out.data(), PixelType::UInt8, image);
  for (const int devices : { 0, 1 })
  {
    const FakeDevices fakes(static_cast<std::size_t>(devices), FakeDevice::Options(), kernels);
    request.backend = devices ? BackendChoice::CUDA : BackendChoice::CPU;
    const auto manager = fakes.MakeManager();
    for (int stage = 0; stage < 3; ++stage)
    {
      WaitOperation::Reset(stage);
      AbortOnceWaiting monitor;
      EXPECT_THROW(manager->Execute(request, &monitor), Aborted);
      for (int other = 0; other < 3; ++other)
      {
        EXPECT_EQ(WaitOperation::begun[other] > 0, other <= stage) << "stage " << other << ", stopped in " << stage;
      }
    }
    WaitOperation::Reset(-1);
    manager->Execute(request);
    EXPECT_EQ(out, in);
    std::fill(out.begin(), out.end(), 0);
  }
}

/** A stage that reads two others, of which the second reads the first through a window. */
class Branches : public CompositeOperation
{
public:
  std::string
  GetName() const override
  {
    return "sequence";
  }
  std::vector<Stage>
  GetStages() const override
  {
    return { { Smoothing(), { Stage::Input() }, StageKind::Real },
             { OfRadius<ExtremumOperation>(3), { 0 }, StageKind::Real },
             { std::make_shared<DifferenceOperation>(), { 1, 0 }, StageKind::Output } };
  }
};

TEST(Composite, AStageMayReadSeveralOthers)
{
  const Branches operation;
  const Box      box{ { { 40, 0, 50, 0, 0 } }, { { 50, 10, 100, 1, 1 } } };
  const auto     boxes = operation.GetStageBoxes(box, Image);
  EXPECT_EQ(boxes[0], (Box{ { { 37, 0, 47, 0, 0 } }, { { 53, 13, 100, 1, 1 } } }));
  EXPECT_EQ(boxes[1], box);
  EXPECT_EQ(boxes[2], box);
  EXPECT_EQ(operation.GetHalo(Image.Extents()).upper, (Coordinates{ { 5, 5, 5, 0, 0 } }));

  WholeRun   run;
  SpyControl control;
  run.Go(operation, control, 2);
  WholeRun smooth;
  smooth.input = run.input;
  smooth.Go(*Smoothing(), control, 2);
  WholeRun largest;
  largest.input = smooth.output;
  largest.Go(*OfRadius<ExtremumOperation>(3), control, 2);
  for (std::size_t i = 0; i < run.output.size(); ++i)
  {
    ASSERT_EQ(run.output[i], largest.output[i] - smooth.output[i]) << i;
  }
  std::mt19937 random(12);
  Manager      manager({});
  CompareBits<float, float>(random, manager, BackendChoice::CPU, 10, [](int) { return std::make_shared<Branches>(); });
}

TEST(Composite, WindowsWrapAroundTheImageWhereOnlyItsInputIsRead)
{
  const auto periodic = OfRadius<MeanOperation>(2, BoundaryMode::Periodic);
  const auto cut = OfRadius<MeanOperation>(1);
  EXPECT_TRUE(OfRadius<RangeOperation>(2, BoundaryMode::Periodic)->WrapsAround());
  EXPECT_FALSE(OfRadius<RangeOperation>(2)->WrapsAround());
  // Voxels loaded beyond the edge would reach further than the windows that wrap around.
  EXPECT_FALSE(SequenceOf({ periodic, cut })->WrapsAround());
  EXPECT_EQ(SequenceOf({ periodic, cut })->GetHalo(Image.Extents()).lower[0], WholeAxis);
  EXPECT_FALSE(SequenceOf({ cut, periodic })->WrapsAround());
  EXPECT_EQ(SequenceOf({ cut, periodic })->GetHalo(Image.Extents()).lower[0], WholeAxis);
}

TEST(Composite, SaysWhichKernelIsMissing)
{
  KernelRegistry kernels;
  RegisterCompositeKernels(kernels);
  const auto range = OfRadius<RangeOperation>(1);
  ChunkShape shape;
  shape.inputBox = shape.outputBox = shape.image = Image;
  shape.numberOfInputs = 1;
  const auto message = [&]() -> std::string {
    try
    {
      kernels.Find("range")->scratchBytes(*range, shape);
    }
    catch (const Error & error)
    {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message().find("\"range\" is to be run without"), std::string::npos);
  shape.kernels = &kernels;
  EXPECT_NE(message().find("no kernel \"extremum\", which \"range\" needs"), std::string::npos);
}

} // namespace
