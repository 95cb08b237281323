/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Runs whose images several devices hold together: the bits of the CPU, which has them whole.
#include "chunkwiseDiffusionOperation.h"
#include "chunkwiseDividedImages.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFakeDevices.h"
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseReconstructionImages.h"
#include "chunkwiseReconstructionOperation.h"
#include "chunkwiseRecordingMonitor.h"
#include "chunkwiseSequenceOperation.h"

namespace chunkwise
{
namespace
{

std::shared_ptr<DiffusionOperation>
MakeDiffusion(DiffusionMethod method, std::int64_t iterations)
{
  auto diffusion = std::make_shared<DiffusionOperation>();
  diffusion->method = method;
  diffusion->iterations = iterations;
  diffusion->contrast = 20;
  for (int a = 0; a < 3; ++a)
  {
    diffusion->scale[a] = 1 - 0.1 * a;
  }
  return diffusion;
}

std::shared_ptr<SequenceOperation>
MakeSequence()
{
  auto mean = std::make_shared<MeanOperation>();
  mean->radius = { { 2, 1, 2, 0, 0 } };
  auto erosion = std::make_shared<ExtremumOperation>();
  erosion->minimum = true;
  erosion->radius = { { 1, 2, 3, 0, 0 } };
  auto median = std::make_shared<RankOperation>();
  median->radius = { { 1, 1, 1, 0, 0 } };
  auto sequence = std::make_shared<SequenceOperation>();
  sequence->stages = { mean, erosion, median, mean };
  return sequence;
}

/** An image, and the result of the CPU for it. */
template <typename TIn, typename TOut>
struct DividedTrial
{
  std::vector<TIn>  image;
  std::vector<TIn>  marker;
  std::vector<TOut> expected;
  std::vector<TOut> output;
  ExecutionRequest  request;

  DividedTrial(const std::shared_ptr<const Operation> & operation, std::vector<TIn> pixels, const Coordinates & extent,
               std::vector<TIn> first = {})
    : image(std::move(pixels))
    , marker(std::move(first))
    , expected(image.size())
    , output(image.size())
  {
    const Box whole = Box::FromExtent(extent);
    request.operation = operation;
    if (!marker.empty())
    {
      request.inputs.push_back(DenseView(marker.data(), PixelTypeOf<TIn>(), whole));
    }
    request.inputs.push_back(DenseView(image.data(), PixelTypeOf<TIn>(), whole));
    request.image = request.region = whole;
    request.output = DenseView(expected.data(), PixelTypeOf<TOut>(), whole);
    request.backend = BackendChoice::CPU;
    Manager({}).Execute(request);
    request.output.data = output.data();
    request.backend = BackendChoice::CUDA;
    request.division = ImageDivision::Always;
  }

  void
  Clear()
  {
    output.assign(output.size(), TOut{ 77 });
  }
};

template <typename T>
std::vector<T>
RandomImage(std::mt19937 & random, const Coordinates & extent)
{
  std::vector<T> image(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  for (T & pixel : image)
  {
    pixel = RandomPixel<T>(random);
  }
  return image;
}

class DividedRuns : public KernelTest
{
protected:
  void
  SetUp() override
  {
    KernelTest::SetUp();
    if (!IsSkipped() && GetManager().GetDevices().size() < 2)
    {
      GTEST_SKIP() << "there is one device";
    }
  }

  template <typename TIn, typename TOut>
  ExecutionReport
  Compare(DividedTrial<TIn, TOut> & trial, const std::string & what)
  {
    ExecutionReport report;
    for (const ImageDivision division : { ImageDivision::Always, ImageDivision::Never, ImageDivision::Auto })
    {
      trial.Clear();
      trial.request.division = division;
      const ExecutionReport one = GetManager().Execute(trial.request);
      EXPECT_EQ(trial.output, trial.expected) << what << ", division " << static_cast<int>(division);
      EXPECT_EQ(one.warnings, std::vector<std::string>()) << what;
      report = division == ImageDivision::Always ? one : report;
    }
    EXPECT_EQ(report.backend, GetParam() == Place::Cuda ? "cuda" : "fake") << what;
    EXPECT_EQ(report.chunksPerDevice, std::vector<std::int64_t>(GetManager().GetDevices().size(), 1)) << what;
    return report;
  }
};

TEST_P(DividedRuns, OfManyIterationsHaveTheBitsOfTheWholeImage)
{
  std::mt19937 random(3);
  for (const DiffusionMethod method : { DiffusionMethod::Gradient, DiffusionMethod::Curvature })
  {
    for (const std::int64_t iterations : { 1, 8, 21 })
    {
      const Coordinates          extent = { { 19, 14, 37, 1, 1 } };
      const std::string          what = std::to_string(static_cast<int>(method)) + ", " + std::to_string(iterations);
      const auto                 operation = MakeDiffusion(method, iterations);
      DividedTrial<float, float> floats(operation, RandomImage<float>(random, extent), extent);
      const ExecutionReport      report = Compare(floats, what);
      // Each voxel is loaded once, and planes around parts: no more than one step reaches.
      const double row = 4.0 * 19 * 14;
      EXPECT_LE(report.bytesToDevice, row * (37 + 2.0 * 8 * static_cast<double>(report.chunksPerDevice.size() - 1)));
      EXPECT_EQ(report.bytesToHost, row * 37);
      EXPECT_GT(report.peakPinned, 0u);
      EXPECT_GT(report.peakDevice, 0u);
      DividedTrial<std::uint8_t, float> bytes(operation, RandomImage<std::uint8_t>(random, extent), extent);
      Compare(bytes, what + ", bytes");
    }
  }
}

TEST_P(DividedRuns, OfSequencesHaveTheBitsOfTheWholeImage)
{
  std::mt19937 random(4);
  for (const Coordinates & extent :
       { Coordinates{ { 21, 13, 30, 1, 1 } }, Coordinates{ { 33, 40, 1, 1, 1 } }, Coordinates{ { 9, 8, 7, 5, 1 } } })
  {
    DividedTrial<float, float> floats(MakeSequence(), RandomImage<float>(random, extent), extent);
    Compare(floats, "floats");
    DividedTrial<std::int16_t, float> mixed(MakeSequence(), RandomImage<std::int16_t>(random, extent), extent);
    Compare(mixed, "integers to floats");
    DividedTrial<std::uint16_t, std::uint16_t> integers(
      MakeSequence(), RandomImage<std::uint16_t>(random, extent), extent);
    Compare(integers, "integers");
  }
}

TEST_P(DividedRuns, OfReconstructionsHaveTheBitsOfTheWholeImage)
{
  std::mt19937 random(5);
  const auto   compare = [&](const Coordinates & extent, auto pixel, const std::string & name) {
    using T = decltype(pixel);
    const Box  whole = Box::FromExtent(extent);
    const bool isPlane = extent[2] == 1;
    for (const auto marker : { ReconstructionMarker::Shifted,
                               ReconstructionMarker::Border,
                               ReconstructionMarker::NextBelow,
                               ReconstructionMarker::Image })
    {
      for (const bool erosion : { false, true })
      {
        auto operation = std::make_shared<ReconstructionOperation>();
        operation->spatialDimension = isPlane ? 2 : 3;
        operation->marker = marker;
        operation->erosion = erosion;
        operation->fullyConnected = random() % 2;
        operation->height = PixelValue(T{ 9 });
        operation->result = random() % 2 ? ReconstructionResult::Residue : ReconstructionResult::Reconstruction;
        auto           image = Noise<T>(whole, 2, 100);
        std::vector<T> first;
        if (marker == ReconstructionMarker::Image)
        {
          // One voxel at the end of the image reaches all that it can.
          first.assign(image.size(), static_cast<T>(erosion ? 100 : 0));
          first.back() = image.back();
        }
        DividedTrial<T, T> trial(operation, image, extent, first);
        const std::string  what =
          name + ", marker " + std::to_string(static_cast<int>(marker)) + (erosion ? ", erosion" : ", dilation");
        const ExecutionReport report = Compare(trial, what);
        EXPECT_GT(report.revisits, 0) << what;
      }
    }
  };
  compare({ { 24, 17, 31, 1, 1 } }, std::uint8_t{}, "bytes");
  compare({ { 24, 17, 31, 1, 1 } }, float{}, "floats");
  compare({ { 50, 61, 1, 1, 1 } }, std::uint16_t{}, "a plane");
  compare({ { 12, 15, 18, 1, 1 } }, std::int64_t{}, "long integers");
}

TEST_P(DividedRuns, BringValuesFromPartToPartAsOftenAsTheyGo)
{
  const Coordinates extent = { { 64, 64, 1, 1, 1 } };
  auto              operation = std::make_shared<ReconstructionOperation>();
  operation->spatialDimension = 2;
  std::vector<std::uint8_t> image = Spiral<std::uint8_t>(Box::FromExtent(extent));
  std::vector<std::uint8_t> marker(image.size(), 0);
  marker.front() = 150;
  DividedTrial<std::uint8_t, std::uint8_t> trial(operation, image, extent, marker);
  ASSERT_GT(std::count(trial.expected.begin(), trial.expected.end(), std::uint8_t{ 150 }), 1900);
  const ExecutionReport report = Compare(trial, "a spiral");
  EXPECT_GT(report.revisits, 20);

  // On and on: then the image is cut into chunks.
  const Coordinates         large = { { 256, 256, 1, 1, 1 } };
  std::vector<std::uint8_t> seed(256 * 256, 0);
  seed.front() = 150;
  DividedTrial<std::uint8_t, std::uint8_t> longer(operation, Spiral<std::uint8_t>(Box::FromExtent(large)), large, seed);
  longer.Clear();
  const ExecutionReport cut = GetManager().Execute(longer.request);
  EXPECT_EQ(longer.output, longer.expected);
  ASSERT_EQ(cut.warnings.size(), 1u);
  EXPECT_NE(cut.warnings[0].find("from part to part"), std::string::npos) << cut.warnings[0];
}

TEST_P(DividedRuns, AlongStructuresHaveTheBitsOfTheWholeImage)
{
  std::mt19937 random(11);
  FilterImage  image;
  image.dimension = 3;
  image.extent = { { 17, 16, 33, 1, 1 } };
  image.inputKind = image.outputKind = PixelType::Float32;
  FilterParameters parameters;
  parameters.SetInteger("Iterations", 10);
  DividedTrial<float, float> trial(MakeFilterOperation("coherence-diffusion", parameters, image),
                                   RandomImage<float>(random, image.extent),
                                   image.extent);
  Compare(trial, "coherence");
}

TEST_P(DividedRuns, GoOnOverImagesThatStayOnDevices)
{
  std::mt19937               random(10);
  const Coordinates          extent = { { 18, 15, 28, 1, 1 } };
  const auto                 sequence = MakeSequence();
  DividedTrial<float, float> once(sequence, RandomImage<float>(random, extent), extent);
  DividedTrial<float, float> twice(sequence, once.expected, extent);
  DividedImages              images(GetManager(), Budgets(), Box::FromExtent(extent));
  std::vector<int>           devices;
  for (std::size_t i = 0; i < GetManager().GetDevices().size(); ++i)
  {
    devices.push_back(static_cast<int>(i));
  }
  ASSERT_TRUE(images.Divide(devices, FindSteps(sequence, PixelType::Float32, PixelType::Float32)));
  const auto in = images.Add(PixelType::Float32, true);
  const auto middle = images.Add(PixelType::Float32, true);
  const auto out = images.Add(PixelType::Float32, true);
  images.Load(in, once.request.inputs[0]);
  GetManager().ExecuteOnDevices(images, sequence, { in }, middle);
  images.HandOn(middle);
  GetManager().ExecuteOnDevices(images, sequence, { middle }, out);
  images.Store(once.request.output, middle);
  EXPECT_EQ(once.output, once.expected);
  images.Store(twice.request.output, out);
  EXPECT_EQ(twice.output, twice.expected);
  images.Store(once.request.output, in);
  EXPECT_EQ(once.output, once.image) << "the input stays as it is";

  const auto wide = std::make_shared<MeanOperation>();
  wide->radius = { { 1, 1, 9, 0, 0 } };
  EXPECT_THROW(GetManager().ExecuteOnDevices(images, wide, { in }, out), ParameterError) << "parts have not the planes";
  EXPECT_THROW(GetManager().ExecuteOnDevices(images, sequence, { in, middle }, out), ParameterError);
  EXPECT_THROW(GetManager().ExecuteOnDevices(images, nullptr, { in }, out), ParameterError);
}

INSTANTIATE_TEST_SUITE_P(Fake, DividedRuns, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, DividedRuns, testing::Values(Place::Cuda));

TEST(DividedRun, IsTakenWhereChunksWouldLoadTheirSurroundingsAgain)
{
  std::mt19937      random(6);
  const Coordinates extent = { { 16, 16, 96, 1, 1 } };
  // Faster from device to device than from the host.
  FakeDevice::Options options;
  options.peerRate = 1e8;
  FakeDevices devices(3, options, GetHostKernels());
  const auto  manager = devices.MakeManager();
  for (const auto & [iterations, isDivided] : { std::make_pair(64, true), std::make_pair(1, false) })
  {
    DividedTrial<float, float> trial(
      MakeDiffusion(DiffusionMethod::Gradient, iterations), RandomImage<float>(random, extent), extent);
    trial.request.division = ImageDivision::Auto;
    const ExecutionReport report = manager->Execute(trial.request);
    EXPECT_EQ(trial.output, trial.expected) << iterations;
    EXPECT_EQ(report.plan.divided, isDivided) << iterations;
    EXPECT_EQ(manager->MakePlanFor(trial.request).divided, isDivided) << iterations;
  }
}

TEST(DividedRun, LeavesTheImageToChunksWithoutRoomOrPlanesEnough)
{
  std::mt19937               random(7);
  const Coordinates          extent = { { 20, 20, 24, 1, 1 } };
  FakeDevices                devices(2, FakeDevice::Options(), GetHostKernels());
  const auto                 manager = devices.MakeManager();
  DividedTrial<float, float> trial(
    MakeDiffusion(DiffusionMethod::Gradient, 4), RandomImage<float>(random, extent), extent);
  // Half of the image, planes around it, the same again, and two images of scratch.
  trial.request.budgets.device = 60000;
  const ExecutionReport report = manager->Execute(trial.request);
  EXPECT_EQ(trial.output, trial.expected);
  EXPECT_GT(report.plan.chunks.size(), 2u);
  EXPECT_EQ(report.warnings, std::vector<std::string>());
  for (const auto & fake : devices.fakes)
  {
    EXPECT_LE(fake->GetPeak(), 60000u);
  }
  const Coordinates          row = { { 30, 1, 1, 1, 1 } };
  DividedTrial<float, float> line(MakeDiffusion(DiffusionMethod::Gradient, 4), RandomImage<float>(random, row), row);
  manager->Execute(line.request);
  EXPECT_EQ(line.output, line.expected);
  DividedTrial<float, float> voxel(MakeDiffusion(DiffusionMethod::Gradient, 4), { 3.5f }, { { 1, 1, 1, 1, 1 } });
  manager->Execute(voxel.request);
  EXPECT_EQ(voxel.output, voxel.expected);
}

TEST(DividedRun, GoesOnInChunksWhateverFails)
{
  std::mt19937               random(8);
  const Coordinates          extent = { { 12, 12, 20, 1, 1 } };
  auto                       reconstruction = std::make_shared<ReconstructionOperation>();
  DividedTrial<float, float> diffusion(
    MakeDiffusion(DiffusionMethod::Gradient, 12), RandomImage<float>(random, extent), extent);
  reconstruction->marker = ReconstructionMarker::Shifted;
  reconstruction->height = PixelValue(std::uint8_t{ 20 });
  DividedTrial<std::uint8_t, std::uint8_t> heights(
    reconstruction, Noise<std::uint8_t>(Box::FromExtent(extent), 2, 100), extent);
  int        failures = 0;
  const auto run = [&](auto & trial, const char * call, int at) {
    FakeDevices devices(2, FakeDevice::Options(), GetHostKernels());
    const auto  manager = devices.MakeManager();
    trial.Clear();
    devices.fakes[1]->FailAt(call, at, false);
    ExecutionReport report;
    try
    {
      report = manager->Execute(trial.request);
      EXPECT_EQ(trial.output, trial.expected) << call << " " << at;
    }
    catch (const DeviceError &)
    {
      // A failed call of a device that was asked for by name, before its work began.
    }
    failures += report.warnings.empty() ? 0 : 1;
  };
  for (const char * const call : FakeDeviceCalls)
  {
    for (const int at : { 0, 1, 3, 8 })
    {
      run(diffusion, call, at);
      run(heights, call, at);
    }
  }
  EXPECT_GT(failures, 20);
}

TEST(DividedRun, StopsAndReportsProgress)
{
  std::mt19937      random(9);
  const Coordinates extent = { { 16, 16, 32, 1, 1 } };
  FakeDevices       devices(2, FakeDevice::Options(), GetHostKernels());
  const auto        manager = devices.MakeManager();
  auto              heights = std::make_shared<ReconstructionOperation>();
  heights->marker = ReconstructionMarker::Shifted;
  heights->height = PixelValue(20.0f);
  for (const std::shared_ptr<const Operation> & operation :
       { std::shared_ptr<const Operation>(MakeDiffusion(DiffusionMethod::Gradient, 40)),
         std::shared_ptr<const Operation>(heights) })
  {
    DividedTrial<float, float> trial(operation, RandomImage<float>(random, extent), extent);
    RecordingMonitor           monitor;
    manager->Execute(trial.request, &monitor);
    EXPECT_EQ(trial.output, trial.expected);
    EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
    EXPECT_GE(monitor.fractions.size(), 3u);
    EXPECT_EQ(monitor.fractions.back(), 1.0);
    RecordingMonitor stopped;
    stopped.abortAt = 0.4;
    EXPECT_THROW(manager->Execute(trial.request, &stopped), Aborted);
    trial.Clear();
    manager->Execute(trial.request);
    EXPECT_EQ(trial.output, trial.expected);
  }
}

} // namespace
} // namespace chunkwise
