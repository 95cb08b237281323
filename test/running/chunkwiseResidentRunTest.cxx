/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Runs on images that lie in a device's memory: on a fake device, and on a GPU where there is one.
#include "chunkwiseArena.h"
#include "chunkwiseDeviceHandles.h"
#include "chunkwiseDeviceImage.h"
#include "chunkwiseFakeDevices.h"
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseReconstructionOperation.h"
#include "chunkwiseRecordingMonitor.h"
#include "chunkwiseRequiredParameters.h"
#include "chunkwiseResampleOperation.h"
#include "chunkwiseStatistics.h"
#include "chunkwiseSummedAreaTableOperation.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <numeric>
#include <thread>

using namespace chunkwise;

namespace
{

class Resident : public testing::TestWithParam<Place>
{
protected:
  void
  SetUp() override
  {
    std::string reason;
    if (GetParam() == Place::Cuda && !GetCudaBackend(&reason))
    {
      GTEST_SKIP() << "no CUDA device: " << reason;
    }
    if (GetParam() == Place::Fake)
    {
      FakeDevice::Options options;
      options.jitter = true;
      m_Fake = std::make_shared<FakeDevice>(options);
      m_Fake->onCopyToHost = [this](std::size_t bytes) {
        m_LargestToHost = std::max<std::size_t>(m_LargestToHost, bytes);
      };
      m_Manager = std::make_unique<Manager>(std::vector<std::shared_ptr<Device>>{ m_Fake });
    }
    m_Stream = DeviceStream(GetDevice());
  }
  void
  TearDown() override
  {
    m_Stream = DeviceStream();
    m_Manager.reset();
    if (m_Fake)
    {
      EXPECT_EQ(m_Fake->CountLive(), 0);
      EXPECT_EQ(m_Fake->CountViolations(), 0);
    }
  }
  Manager &
  GetManager()
  {
    return m_Manager ? *m_Manager : Manager::GetGlobal();
  }
  Device &
  GetDevice()
  {
    if (!m_Device)
    {
      m_Device = GetManager().GetDevices().front();
    }
    return *m_Device;
  }

  /** Runs the request on the device with images of these layouts, and compares with what the CPU gives. The request's
   * inputs and output have their kinds and boxes. */
  void
  Compare(std::mt19937 & random, ExecutionRequest request, const std::vector<ImageLayout> & layouts,
          double tolerance = 0)
  {
    std::vector<std::unique_ptr<DeviceImage>> images;
    ExecutionRequest                          onHost = request;
    std::vector<std::vector<char>>            dense;
    double                                    largest = 0;
    for (std::size_t i = 0; i < request.inputs.size(); ++i)
    {
      BufferView & view = request.inputs[i];
      images.push_back(std::make_unique<DeviceImage>(GetDevice(), view.kind, view.box, layouts[i]));
      dense.emplace_back(view.NumberOfBytes());
      onHost.inputs[i] = DenseView(dense.back().data(), view.kind, view.box);
      DispatchPixelType(view.kind, [&](auto pixel) {
        using T = decltype(pixel);
        ForEachIndex(view.box, [&](const Coordinates & index) {
          const T value = static_cast<T>(random() % 120);
          At<T>(onHost.inputs[i], index) = At<T>(images[i]->GetHostView(), index) = value;
          largest = std::max(largest, std::abs(static_cast<double>(value)));
        });
      });
      view = IsOnHost(i) ? images[i]->GetHostView() : images[i]->GetView();
      // Nobody waits for this but the run itself.
      images[i]->Upload(m_Stream.Get());
    }
    DeviceImage       output(GetDevice(), request.output.kind, request.output.box, layouts[request.inputs.size()]);
    std::vector<char> expected(request.output.NumberOfBytes());
    onHost.output = DenseView(expected.data(), request.output.kind, request.output.box);
    onHost.backend = BackendChoice::CPU;
    onHost.budgets = Budgets();
    const bool outputIsOnHost = IsOnHost(request.inputs.size());
    request.output = outputIsOnHost ? output.GetHostView() : output.GetView();
    request.copiesHostImages = m_IsOnHost != nullptr;
    output.Upload(m_Stream.Get());
    // Before the images go, whatever is thrown.
    struct Drained
    {
      Resident & test;
      ~Drained() { test.GetDevice().Synchronize(test.m_Stream.Get()); }
    } const drained{ *this };
    const std::vector<unsigned char> before = output.GetBytes();
    Manager({}).Execute(onHost);

    m_LargestToHost = 0;
    const ExecutionReport report = GetManager().ExecuteOnDevice(request, 0, m_Stream.Get());
    EXPECT_EQ(report.chunksOnHost, 0);
    EXPECT_LE(report.peakDevice, request.budgets.device ? request.budgets.device : SIZE_MAX);
    if (!m_IsOnHost)
    {
      EXPECT_EQ(report.peakPinned, 0u);
    }
    if (m_Fake && !m_IsOnHost)
    {
      // A word for each step of a Fixpoint, and no voxel.
      const Schedule schedule = request.operation->GetSchedule();
      EXPECT_LE(m_LargestToHost, schedule == Schedule::Fixpoint || schedule == Schedule::Passes ? 4u : 0u);
      EXPECT_EQ(m_Fake->CountCalls("AllocatePinned"), 0);
    }
    m_Chunks = static_cast<std::int64_t>(report.plan.chunks.size());
    m_Bytes = report.peakDevice;
    if (!outputIsOnHost)
    {
      output.Download(m_Stream.Get());
    }
    const BufferView got = output.GetHostView();
    DispatchPixelType(got.kind, [&](auto pixel) {
      using T = decltype(pixel);
      ForEachIndex(request.region, [&](const Coordinates & index) {
        const T a = At<T>(got, index);
        const T b = At<T>(onHost.output, index);
        if (std::memcmp(&a, &b, sizeof(T)) != 0)
        {
          const double difference = std::abs(static_cast<double>(a) - static_cast<double>(b));
          ASSERT_LE(difference, tolerance * largest) << ToString(index) << " of " << ToString(request.image) << ": "
                                                     << +a << " and " << +b << ", " << request.operation->GetKey();
        }
        std::memcpy(&At<T>(got, index),
                    before.data() +
                      (reinterpret_cast<const unsigned char *>(&At<T>(got, index)) - output.GetBytes().data()),
                    sizeof(T));
      });
    });
    EXPECT_EQ(output.GetBytes(), before) << "something outside of the region was written";
  }

  /** Without a budget, and under one that has less room than the whole takes; true if that cut the work. */
  bool
  CompareUnderBudgets(std::mt19937 & random, ExecutionRequest request, const std::vector<ImageLayout> & layouts)
  {
    Compare(random, request, layouts);
    request.budgets.device = std::max<std::size_t>(m_Bytes * (40 + random() % 50) / 100, 1);
    m_Chunks = 1;
    try
    {
      Compare(random, request, layouts);
    }
    catch (const BudgetError & error)
    {
      // The bytes of the error are enough, and no less.
      const std::size_t needed = error.needed;
      EXPECT_GT(needed, request.budgets.device) << error.what();
      request.budgets.device = needed;
      EXPECT_NO_THROW(Compare(random, request, layouts)) << error.what();
    }
    return m_Chunks > 1;
  }

  ExecutionRequest
  MakeRequest(std::shared_ptr<const Operation> operation, PixelType input, PixelType output, const Box & image)
  {
    ExecutionRequest request;
    request.image = request.region = image;
    for (int i = 0; i < operation->GetNumberOfInputs(); ++i)
    {
      request.inputs.push_back(DenseView(nullptr, input, image));
    }
    request.output = DenseView(nullptr, output, image);
    request.operation = std::move(operation);
    return request;
  }

  bool
  IsOnHost(std::size_t image) const
  {
    return m_IsOnHost && m_IsOnHost(image);
  }

  /** Which inputs, and the output after them, Compare leaves on the host. */
  std::function<bool(std::size_t)> m_IsOnHost;
  std::shared_ptr<FakeDevice>      m_Fake;
  std::unique_ptr<Manager>         m_Manager;
  std::shared_ptr<Device>          m_Device;
  DeviceStream                     m_Stream;
  std::atomic<std::size_t>         m_LargestToHost{ 0 };
  std::int64_t                     m_Chunks{ 0 };
  std::size_t                      m_Bytes{ 0 }; ///< that the run had of the device's memory
};

const ImageLayout Dense;

std::int64_t
Below(std::mt19937 & random, std::uint32_t end)
{
  return static_cast<std::int64_t>(random() % end);
}

std::vector<ImageLayout>
RandomLayouts(std::mt19937 & random)
{
  std::vector<ImageLayout> layouts(MaxInputs + 1);
  std::generate(layouts.begin(), layouts.end(), [&] { return random() % 3 ? ImageLayout::Random(random) : Dense; });
  return layouts;
}

/** A filter of the table with parameters that suit a small image. */
std::shared_ptr<const Operation>
MakeFilter(const FilterDescription & filter, const FilterImage & image)
{
  FilterParameters parameters = RequiredParameters(filter);
  if (filter.name == "entropy")
  {
    parameters.Set("Range", std::vector<double>{ 0, 120 });
  }
  if (const ParameterDescription * const automatic = filter.FindAutomatic(parameters))
  {
    parameters.Set(automatic->name, std::vector<double>{ 60 });
  }
  return MakeFilterOperation(filter.name, parameters, image);
}

} // namespace

TEST_P(Resident, EveryFilterGivesWhatItGivesOnTheHost)
{
  std::mt19937 random(7);
  for (const FilterDescription & filter : GetFilters())
  {
    FilterImage image;
    image.extent = { { 20, 15, 10, 1, 1 } };
    image.outputKind = PixelType::Float32;
    for (const InputDescription & input : filter.additionalInputs)
    {
      if (input.required)
      {
        image.additionalInputs.push_back(input.name);
      }
    }
    image.inputKind = PixelType::Float32;
    std::shared_ptr<const Operation> operation;
    try
    {
      operation = MakeFilter(filter, image);
    }
    catch (const ParameterError & error)
    {
      ADD_FAILURE() << filter.name << ": " << error.what();
      continue;
    }
    // ImagesOnAnotherGrid has results of other extents.
    const OutputGrid * const grid = operation->GetOutputGrid();
    if (!operation->GetObjectionToDevices().empty() || operation->IsRunByRunner() ||
        (grid && !(grid->GetExtent(image.extent) == image.extent)))
    {
      continue;
    }
    SCOPED_TRACE(filter.name);
    const bool isBounded = filter.name.find("convolve") == 0 || filter.name == "network";
    for (const bool plain : { true, false })
    {
      const auto layouts = plain ? std::vector<ImageLayout>(MaxInputs + 1) : RandomLayouts(random);
      Compare(random,
              MakeRequest(operation, PixelType::Float32, PixelType::Float32, Box::FromExtent(image.extent)),
              layouts,
              isBounded ? 1e-4 : 0);
      EXPECT_TRUE(!plain || operation->GetSchedule() == Schedule::Passes || m_Chunks == 1);
      if (HasFatalFailure())
      {
        return;
      }
    }
  }
}

TEST_P(Resident, ImagesOfTheHostAreCopied)
{
  std::mt19937 random(71);
  for (int trial = 0; trial < 40; ++trial)
  {
    std::shared_ptr<Operation> operation;
    const Coordinates          extent = RandomExtent(random, 16);
    const Box                  image = Box::FromExtent(extent);
    if (trial % 2)
    {
      const auto mean = std::make_shared<MeanOperation>();
      mean->boundary.mode = AllModes[trial % 6];
      mean->radius[trial % 3] = 3;
      operation = mean;
    }
    else
    {
      const auto reconstruction = std::make_shared<ReconstructionOperation>();
      reconstruction->marker = ReconstructionMarker::Image;
      operation = reconstruction;
    }
    ExecutionRequest request = MakeRequest(operation, PixelType::Int16, PixelType::Int16, image);
    request.region = trial % 2 ? RandomRegion(random, extent) : image;
    const unsigned int which = 1 + random() % 7;
    m_IsOnHost = [which](std::size_t i) { return (which >> i & 1u) != 0; };
    Compare(random, request, RandomLayouts(random));
    ASSERT_FALSE(HasFatalFailure()) << trial;
    request.budgets.device = std::max<std::size_t>(m_Bytes * (40 + random() % 80) / 100, 1);
    try
    {
      Compare(random, request, RandomLayouts(random));
    }
    catch (const BudgetError & error)
    {
      EXPECT_NE(std::string(error.what()).find("bytes"), std::string::npos);
    }
    ASSERT_FALSE(HasFatalFailure()) << trial;
  }
}

TEST_P(Resident, ImagesThatStayAreInTheBudgetOfEveryRun)
{
  std::mt19937 random(72);
  Manager &    manager = GetManager();
  const Box    box = Box::FromExtent({ { 20, 16, 12, 1, 1 } });
  const auto   operation = std::make_shared<MeanOperation>();
  operation->radius[1] = 2;
  ExecutionRequest   request = MakeRequest(operation, PixelType::Float32, PixelType::Float32, box);
  std::vector<float> voxels(static_cast<std::size_t>(box.NumberOfVoxels()));
  std::iota(voxels.begin(), voxels.end(), 1.0f);
  std::vector<float> expected(voxels.size());
  request.inputs[0].data = voxels.data();
  request.output.data = expected.data();
  request.backend = BackendChoice::CPU;
  manager.Execute(request);

  const std::size_t bytes = voxels.size() * sizeof(float);
  Budgets           budgets;
  budgets.device = 2 * bytes + 40000;
  manager.ReleaseMemory();
  manager.SetBudgets(budgets);
  auto staying = manager.AllocateOnDevice(0, bytes);
  EXPECT_GE(manager.GetHeldMemory().device, bytes);
  EXPECT_THROW(manager.AllocateOnDevice(0, 5 * bytes), BudgetError);
  EXPECT_THROW(manager.AllocateOnDevice(0, bytes, bytes), BudgetError);
  EXPECT_THROW(manager.AllocateOnDevice(99, bytes), ParameterError);

  std::vector<float> got(voxels.size());
  request.output.data = got.data();
  request.backend = BackendChoice::CUDA;
  const ExecutionReport beside = manager.Execute(request);
  EXPECT_EQ(got, expected);
  EXPECT_LE(beside.peakDevice, budgets.device);
  if (m_Fake)
  {
    EXPECT_LE(m_Fake->GetPeak(), budgets.device);
  }

  // Into the image that stays, and from there to the host.
  request.copiesHostImages = true;
  request.output.data = staying->Get();
  const ExecutionReport report = manager.ExecuteOnDevice(request, 0, m_Stream.Get());
  EXPECT_EQ(report.bytesToDevice, static_cast<double>(bytes));
  EXPECT_EQ(report.bytesToHost, 0);
  std::fill(got.begin(), got.end(), 0.0f);
  manager.CopyToHost(DenseView(got.data(), PixelType::Float32, box), *staying, box);
  EXPECT_EQ(got, expected);
  EXPECT_THROW(manager.CopyToHost(DenseView(got.data(), PixelType::UInt8, box), *staying, box), ParameterError);
  EXPECT_THROW(manager.CopyToHost(
                 DenseView(got.data(), PixelType::Float32, box), *staying, Box::FromExtent({ { 9, 9, 9, 1, 1 } })),
               ParameterError);

  // Who has no room beside it is told so.
  budgets.device = bytes + 2000;
  manager.SetBudgets(budgets);
  try
  {
    request.output.data = got.data();
    manager.ExecuteOnDevice(request, 0, m_Stream.Get());
    FAIL() << "no exception";
  }
  catch (const BudgetError & error)
  {
    EXPECT_NE(std::string(error.what()).find(std::to_string(Arena::SizeOfBlock(bytes)) + " in use"), std::string::npos)
      << error.what();
  }
  std::fill(got.begin(), got.end(), 0.0f);
  request.imageDevice = -1;
  request.backend = BackendChoice::Auto;
  manager.Execute(request);
  EXPECT_EQ(got, expected);
  manager.SetBudgets(Budgets());
  staying.reset();
  manager.ReleaseMemory();
  EXPECT_LE(manager.GetHeldMemory().device, m_Fake ? 0 : SIZE_MAX);
}

TEST_P(Resident, WindowsUnderAnyBudgetBoundaryAndLayout)
{
  std::mt19937 random(8);
  int          several = 0;
  for (int trial = 0; trial < 60; ++trial)
  {
    const auto operation = std::make_shared<MeanOperation>();
    operation->boundary.mode = AllModes[trial % 6];
    operation->boundary.constant = PixelValue(7);
    const Coordinates extent = RandomExtent(random, 16);
    for (int a = 0; a < 3; ++a)
    {
      operation->radius[a] = static_cast<std::int64_t>(random() % 4);
    }
    ExecutionRequest request = MakeRequest(
      operation, PixelType::UInt16, trial % 2 ? PixelType::Float32 : PixelType::UInt16, Box::FromExtent(extent));
    request.region = RandomRegion(random, extent);
    several +=
      CompareUnderBudgets(random, request, trial % 4 ? RandomLayouts(random) : std::vector<ImageLayout>(MaxInputs + 1));
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(several, 5);
}

TEST_P(Resident, ImagesOnAnotherGrid)
{
  std::mt19937 random(9);
  int          several = 0;
  for (int trial = 0; trial < 40; ++trial)
  {
    const auto operation = std::make_shared<ResampleOperation>();
    operation->image = RandomExtent(random, 30);
    operation->output = operation->image;
    operation->interpolation = static_cast<Interpolation>(trial % 5);
    operation->outside = static_cast<ResampleOutside>(random() % 3);
    for (int i = 0; i < 3; ++i)
    {
      operation->output[i] = 1 + static_cast<std::int64_t>(random() % 30);
      operation->matrix[i][i] = 0.1 * static_cast<double>(random() % 30) - 1.5;
      operation->matrix[i][(i + 1) % 3] = trial % 2 ? 0.3 : 0;
      operation->offset[i] = 0.7 * static_cast<double>(random() % 20);
    }
    ExecutionRequest request =
      MakeRequest(operation, PixelType::Float32, PixelType::Float32, Box::FromExtent(operation->image));
    request.output.box = Box::FromExtent(operation->output);
    request.region = RandomRegion(random, operation->output);
    several +=
      CompareUnderBudgets(random, request, trial % 4 ? RandomLayouts(random) : std::vector<ImageLayout>(MaxInputs + 1));
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(several, 5);
}

TEST_P(Resident, PixelsOfSeveralComponentsInAnyLayout)
{
  std::mt19937 random(18);
  ImageLayout  together;
  std::rotate(together.order, together.order + MaxDimension - 1, together.order + MaxDimension);
  const PixelType kinds[] = {
    PixelType::UInt8, PixelType::UInt16, PixelType::Int16, PixelType::Float32, PixelType::Int32
  };
  for (int trial = 0; trial < 120; ++trial)
  {
    const PixelType  kind = kinds[random() % 5];
    const PixelType  output = random() % 3 ? kind : PixelType::Float32;
    FilterParameters parameters;
    const char *     filters[] = { "mean", "maximum", "opening", "gaussian", "range" };
    const char *     name = filters[trial % 5];
    if (name == std::string("gaussian"))
    {
      parameters.Set("Sigma", std::vector<double>(3, static_cast<double>(2 + Below(random, 7)) / 4));
      parameters.Set("Transforms", false);
    }
    else
    {
      parameters.Set("Radius", std::vector<std::int64_t>(3, 1 + Below(random, 4)));
    }
    const bool  isLarge = random() % 2;
    FilterImage image;
    image.extent = { { 1 + Below(random, isLarge ? 150 : 12),
                       1 + Below(random, isLarge ? 60 : 12),
                       1 + Below(random, 12),
                       1 + Below(random, 2),
                       1 + Below(random, 4) } };
    image.inputKind = kind;
    image.outputKind = output;
    const ExecutionRequest request =
      MakeRequest(MakeFilterOperation(name, parameters, image), kind, output, Box::FromExtent(image.extent));
    together.offset = Below(random, 5);
    Compare(random, request, { together, random() % 4 ? together : Dense });
    if (trial % 4 == 0)
    {
      CompareUnderBudgets(random, request, { together, together });
    }
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST_P(Resident, TablesHandTheirCarriesOn)
{
  std::mt19937 random(10);
  int          several = 0;
  for (int trial = 0; trial < 12; ++trial)
  {
    FilterImage image;
    image.extent = { { 1 + Below(random, 20), 1 + Below(random, 20), 10 + Below(random, 20), 1, 1 } };
    image.inputKind = trial % 2 ? PixelType::UInt8 : PixelType::Float32;
    image.outputKind = trial % 2 ? PixelType::UInt32 : PixelType::Float64;
    ExecutionRequest request = MakeRequest(MakeFilterOperation("sat", FilterParameters(), image),
                                           image.inputKind,
                                           image.outputKind,
                                           Box::FromExtent(image.extent));
    several +=
      CompareUnderBudgets(random, request, trial % 2 ? RandomLayouts(random) : std::vector<ImageLayout>(MaxInputs + 1));
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(several, 1);
}

TEST_P(Resident, ReconstructionsComeToTheirFixedPoint)
{
  std::mt19937 random(11);
  int          several = 0;
  for (int trial = 0; trial < 40; ++trial)
  {
    const auto operation = std::make_shared<ReconstructionOperation>();
    operation->erosion = random() % 2;
    operation->fullyConnected = random() % 2;
    operation->marker = static_cast<ReconstructionMarker>(trial % 4);
    operation->height = PixelValue(30);
    operation->result = operation->marker == ReconstructionMarker::NextBelow ? ReconstructionResult::Extrema
                                                                             : ReconstructionResult::Reconstruction;
    operation->flatIsExtremum = random() % 2;
    operation->patience = trial % 2 ? 0 : 1;
    Coordinates extent = RandomExtent(random, 24);
    // Flat volumes too.
    operation->spatialDimension = trial % 5 == 3 ? 1 : 3;
    extent[0] = trial % 5 == 3 ? 2 : extent[0];
    ExecutionRequest request = MakeRequest(operation, PixelType::UInt8, PixelType::UInt8, Box::FromExtent(extent));
    several +=
      CompareUnderBudgets(random, request, trial % 2 ? RandomLayouts(random) : std::vector<ImageLayout>(MaxInputs + 1));
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(several, 5);
}

TEST_P(Resident, ImagesBetweenPassesAreOnTheDevice)
{
  std::mt19937 random(13);
  for (int trial = 0; trial < 12; ++trial)
  {
    FilterImage image;
    image.extent = { { 1 + Below(random, 20), 1 + Below(random, 20), 1 + Below(random, 20), 1, 1 } };
    FilterParameters parameters;
    parameters.SetInteger("Radius", 1 + Below(random, 2));
    const ExecutionRequest request = MakeRequest(MakeFilterOperation("opening-by-reconstruction", parameters, image),
                                                 PixelType::UInt8,
                                                 PixelType::UInt8,
                                                 Box::FromExtent(image.extent));
    CompareUnderBudgets(random, request, trial % 2 ? RandomLayouts(random) : std::vector<ImageLayout>(MaxInputs + 1));
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST_P(Resident, StatisticsOfAnImageOnTheDevice)
{
  std::mt19937 random(12);
  for (const std::size_t budget : { 0, 150000 })
  {
    const Box          box = Box::FromExtent({ { 40, 30, 20, 1, 1 } });
    DeviceImage        image(GetDevice(), PixelType::Float32, box, budget ? ImageLayout::Random(random) : Dense);
    std::vector<float> pixels(static_cast<std::size_t>(box.NumberOfVoxels()));
    const BufferView   dense = DenseView(pixels.data(), PixelType::Float32, box);
    ForEachIndex(box, [&](const Coordinates & index) {
      At<float>(dense, index) = At<float>(image.GetHostView(), index) = static_cast<float>(random()) * 1e-6f;
    });
    image.Upload(m_Stream.Get());
    ExecutionRequest request;
    request.image = request.region = box;
    request.inputs = { dense };
    request.backend = BackendChoice::CPU;
    const ImageStatistics expected = ComputeStatistics(GetManager(), request);
    request.inputs = { image.GetView() };
    request.imageDevice = 0;
    request.stream = m_Stream.Get();
    request.budgets.device = budget;
    const ImageStatistics got = ComputeStatistics(GetManager(), request);
    EXPECT_EQ(got.GetCount(), expected.GetCount());
    EXPECT_EQ(got.GetSum(), expected.GetSum());
    EXPECT_EQ(got.GetVariance(), expected.GetVariance());
  }
}

TEST_P(Resident, BadRequestsAreRefusedBeforeWorkStarts)
{
  const Box  box = Box::FromExtent({ { 8, 7, 6, 1, 1 } });
  const auto operation = std::make_shared<MeanOperation>();
  operation->radius = { { 1, 1, 1, 0, 0 } };
  DeviceImage        input(GetDevice(), PixelType::Float32, box);
  DeviceImage        output(GetDevice(), PixelType::Float32, box);
  std::vector<float> host(static_cast<std::size_t>(box.NumberOfVoxels()));
  input.Upload(m_Stream.Get());
  ExecutionRequest request = MakeRequest(operation, PixelType::Float32, PixelType::Float32, box);
  request.inputs[0] = input.GetView();
  request.output = output.GetView();
  const auto message = [&](const ExecutionRequest & bad, int device = 0) -> std::string {
    try
    {
      GetManager().ExecuteOnDevice(bad, device, m_Stream.Get());
    }
    catch (const ParameterError & error)
    {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(request), "no error");
  const int launches = m_Fake ? m_Fake->CountCalls("Launch") : 0;

  ExecutionRequest bad = request;
  bad.inputs[0].data = host.data();
  EXPECT_NE(message(bad).find("input 0 of mean does not lie in the memory of"), std::string::npos) << message(bad);
  bad = request;
  bad.output.data = host.data();
  EXPECT_NE(message(bad).find("the output of mean does not lie"), std::string::npos) << message(bad);
  bad = request;
  bad.inputs[0].box.upper[2] += 1 << 20;
  EXPECT_NE(message(bad).find("does not lie in the memory"), std::string::npos) << message(bad);
  bad = request;
  bad.output = bad.inputs[0];
  EXPECT_NE(message(bad).find("the output lies in the memory of input 0"), std::string::npos) << message(bad);
  bad = request;
  bad.inputs[0].box.upper[0] -= 1;
  EXPECT_NE(message(bad).find("is needed"), std::string::npos) << message(bad);
  EXPECT_NE(message(request, 99).find("the images lie on device 99, but there are"), std::string::npos);
  EXPECT_NE(message(request, -1).find("the images lie on device -1"), std::string::npos);
  bad = request;
  // Cubes need no scratch on CUDA.
  bad.budgets.device = 300;
  operation->radius = { { 3, 3, 2, 0, 0 } };
  try
  {
    GetManager().ExecuteOnDevice(bad, 0, m_Stream.Get());
    ADD_FAILURE() << "no error";
  }
  catch (const BudgetError & error)
  {
    // The bytes of the error are enough.
    bad.budgets.device = error.needed;
    EXPECT_NO_THROW(GetManager().ExecuteOnDevice(bad, 0, m_Stream.Get())) << error.what();
  }
  bad = request;
  bad.region.upper[1] = bad.region.lower[1];
  EXPECT_EQ(message(bad), "no error") << "an empty region";
  RecordingMonitor monitor;
  monitor.abortAt = 0;
  EXPECT_THROW(GetManager().ExecuteOnDevice(request, 0, m_Stream.Get(), &monitor), Aborted);
  EXPECT_EQ(message(request), "no error");
  if (m_Fake)
  {
    EXPECT_GT(m_Fake->CountCalls("Launch"), launches);
  }
}

INSTANTIATE_TEST_SUITE_P(Fake, Resident, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Resident, testing::Values(Place::Cuda));

namespace
{

/** A run of each schedule in several chunks, and what it gives. */
struct ResidentWork
{
  std::shared_ptr<const Operation> operation;
  const KernelRegistry &           kernels;
  PixelType                        output;
  std::size_t                      budget;
};

std::vector<ResidentWork>
WorkOfEachSchedule()
{
  const auto window = std::make_shared<WindowSumOperation>();
  window->radius = { { 1, 1, 1, 0, 0 } };
  const auto wraps = std::make_shared<WindowSumOperation>(*window);
  wraps->wraps = true;
  return { { window, GetTestKernels(), PixelType::Int64, 0 },
           { wraps, GetTestKernels(), PixelType::Int64, 12000 },
           { std::make_shared<RunningSumOperation>(), GetTestKernels(), PixelType::Int64, 4000 },
           { std::make_shared<RunningSumOperation>(), GetKernelsWithoutAdvance(), PixelType::Int64, 4000 },
           { std::make_shared<AboveMinimumOperation>(), GetTestKernels(), PixelType::Int64, 6000 },
           { std::make_shared<FloodOperation>(), GetTestKernels(), PixelType::Int32, 6000 } };
}

} // namespace

/** Each call of the device fails once, and always: the result is right, or the error the first one. */
TEST(ResidentRun, FailuresAreRetriedOrReported)
{
  const Box box = Box::FromExtent({ { 7, 6, 12, 1, 1 } });
  int       recovered = 0;
  int       reported = 0;
  for (const ResidentWork & work : WorkOfEachSchedule())
  {
    std::vector<const char *> calls(std::begin(FakeDeviceCalls), std::end(FakeDeviceCalls));
    calls.push_back("CopyVoxels");
    for (const char * const call : calls)
    {
      for (const bool persistent : { false, true })
      {
        for (const auto kind : { DeviceError::Kind::Failed, DeviceError::Kind::OutOfMemory, DeviceError::Kind::Lost })
        {
          FakeDevices  devices(1, FakeDevice::Options(), work.kernels);
          FakeDevice & fake = *devices.fakes[0];
          {
            const auto         manager = devices.MakeManager();
            const DeviceStream stream(fake);
            ExecutionRequest   request;
            request.operation = work.operation;
            request.image = request.region = box;
            request.budgets.device = work.budget;
            std::mt19937                              random(5);
            std::vector<std::unique_ptr<DeviceImage>> images;
            ExecutionRequest                          onHost = request;
            for (int i = 0; i < work.operation->GetNumberOfInputs(); ++i)
            {
              images.push_back(std::make_unique<DeviceImage>(fake, PixelType::Int32, box));
              onHost.inputs.push_back(images.back()->GetHostView());
              ForEachIndex(box, [&](const Coordinates & index) {
                At<std::int32_t>(onHost.inputs.back(), index) = static_cast<std::int32_t>(random() % 1000);
              });
              images.back()->Upload(stream.Get());
              request.inputs.push_back(images.back()->GetView());
            }
            std::vector<char> expected(static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(work.output));
            onHost.output = DenseView(expected.data(), work.output, box);
            onHost.backend = BackendChoice::CPU;
            onHost.budgets = Budgets();
            manager->Execute(onHost);
            DeviceImage output(fake, work.output, box);
            request.output = output.GetView();

            fake.FailAt(call, static_cast<int>(random() % 3), persistent, kind);
            const std::string where = work.operation->GetName() + ": " + call + (persistent ? " always" : " once");
            bool              done = false;
            try
            {
              manager->ExecuteOnDevice(request, 0, stream.Get());
              done = true;
            }
            catch (const Error & error)
            {
              ++reported;
              EXPECT_NE(dynamic_cast<const DeviceError *>(&error) || dynamic_cast<const BudgetError *>(&error), false)
                << where << ": " << error.what();
            }
            fake.ClearFaults();
            // After an error copies to the images may still be on their way.
            fake.Synchronize(stream.Get());
            if (done)
            {
              ++recovered;
              output.Download(stream.Get());
              EXPECT_EQ(std::memcmp(output.GetHostView().data, expected.data(), expected.size()), 0) << where;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(recovered, 100);
  EXPECT_GT(reported, 50);
}

/** Scratch that cuts the work, and no copies: what the kernel gets is a part of the caller's memory. */
/** The memory of the first run is there for the second, bounded, and goes when it is asked to. */
TEST(ResidentRun, ASecondRunTakesNothingNew)
{
  const auto fake = std::make_shared<FakeDevice>(FakeDevice::Options());
  {
    Manager           manager({ fake });
    const Box         box = Box::FromExtent({ { 24, 20, 16, 1, 1 } });
    const std::string creations[] = { "Allocate", "AllocatePinned", "CreateStream", "CreateEvent", "GetFreeMemory" };
    const auto        count = [&] {
      std::vector<int> counts;
      for (const std::string & call : creations)
      {
        counts.push_back(fake->CountCalls(call));
      }
      return counts;
    };
    FilterImage image;
    image.extent = box.Extents();
    image.inputKind = image.outputKind = PixelType::Float32;
    DeviceStream stream(*fake);
    DeviceImage  input(*fake, PixelType::Float32, box);
    DeviceImage  output(*fake, PixelType::Float32, box);
    input.Upload(stream.Get());
    for (const char * const name : { "gaussian", "median", "opening", "wiener" })
    {
      ExecutionRequest request;
      request.operation = MakeFilter(GetFilter(name), image);
      request.image = request.region = box;
      request.inputs = { input.GetView() };
      request.output = output.GetView();
      manager.ExecuteOnDevice(request, 0, stream.Get());
      const std::vector<int> before = count();
      manager.ExecuteOnDevice(request, 0, stream.Get());
      manager.ExecuteOnDevice(request, 0, stream.Get());
      EXPECT_EQ(count(), before) << name;
    }
    const int live = fake->CountLive();
    manager.ReleaseMemory();
    EXPECT_LT(fake->CountLive(), live);
    EXPECT_EQ(manager.GetHeldMemory().device, 0u);
    // The test's own stream and images.
    EXPECT_EQ(fake->CountLive(), 3);
  }
  EXPECT_EQ(fake->CountLive(), 0);
}

/** Blocks that earlier runs left, each somewhat larger than its new use, are no reason to fail. */
TEST(ResidentRun, WhatABudgetErrorAsksForIsEnoughWhateverIsKept)
{
  const auto fake = std::make_shared<FakeDevice>(FakeDevice::Options());
  {
    Manager     manager({ fake });
    FilterImage image;
    image.extent = { { 19, 17, 24, 1, 1 } };
    image.inputKind = PixelType::Float32;
    image.outputKind = PixelType::Float64;
    const Box    box = Box::FromExtent(image.extent);
    DeviceStream stream(*fake);
    ImageLayout  layout;
    layout.gap = 1;
    DeviceImage      input(*fake, image.inputKind, box, layout);
    DeviceImage      output(*fake, image.outputKind, box, layout);
    ExecutionRequest request;
    request.operation = MakeFilterOperation("sat", FilterParameters(), image);
    request.image = request.region = box;
    request.inputs = { input.GetView() };
    request.output = output.GetView();
    request.budgets.device = 1;
    input.Upload(stream.Get());
    try
    {
      manager.ExecuteOnDevice(request, 0, stream.Get());
      ADD_FAILURE() << "no error";
    }
    catch (const BudgetError & error)
    {
      request.budgets.device = error.needed;
    }
    for (std::size_t bytes = 256; bytes <= 6144; bytes += 256)
    {
      manager.ReleaseMemory();
      {
        const auto first = manager.AllocateOnDevice(0, bytes);
        const auto second = manager.AllocateOnDevice(0, bytes);
      }
      EXPECT_NO_THROW(manager.ExecuteOnDevice(request, 0, stream.Get())) << bytes;
    }
    fake->Synchronize(stream.Get());
  }
}

/** The caller's thread drives a run on a device, and looks after the monitor meanwhile. */
TEST(ResidentRun, ReportsProgressAndStopsWhileTheDeviceWorks)
{
  const auto fake = std::make_shared<FakeDevice>(FakeDevice::Options());
  {
    fake->onKernel = [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(15)); };
    Manager      manager({ fake });
    const Box    box = Box::FromExtent({ { 12, 10, 40, 1, 1 } });
    DeviceStream stream(*fake);
    // Copies are needed, and the budget has room for little.
    ImageLayout layout;
    layout.gap = 1;
    DeviceImage input(*fake, PixelType::Float32, box, layout);
    DeviceImage output(*fake, PixelType::Float32, box, layout);
    input.Upload(stream.Get());
    ExecutionRequest request;
    request.operation = std::make_shared<MeanOperation>();
    request.image = request.region = box;
    request.inputs = { input.GetView() };
    request.output = output.GetView();
    request.budgets.device = 10000;
    class CountingMonitor : public Monitor
    {
    public:
      void
      UpdateProgress(double fraction) override
      {
        EXPECT_EQ(std::this_thread::get_id(), m_Thread);
        EXPECT_GT(fraction, last);
        last = fraction;
        ++reports;
        if (throwsAt == reports)
        {
          throw std::runtime_error("the caller's own");
        }
      }
      bool
      ShouldAbort() override
      {
        return abortAt > 0 && reports >= abortAt;
      }
      double last{ -1 };
      int    reports{ 0 };
      int    abortAt{ 0 };
      int    throwsAt{ 0 };

    private:
      const std::thread::id m_Thread{ std::this_thread::get_id() };
    } whole, aborting, throwing;
    const ExecutionReport report = manager.ExecuteOnDevice(request, 0, stream.Get(), &whole);
    EXPECT_GT(report.plan.chunks.size(), 2u);
    EXPECT_GT(whole.reports, 3);
    EXPECT_EQ(whole.last, 1.0);
    aborting.abortAt = 2;
    EXPECT_THROW(manager.ExecuteOnDevice(request, 0, stream.Get(), &aborting), Aborted);
    EXPECT_LT(aborting.last, 1.0);
    throwing.throwsAt = 2;
    EXPECT_THROW(manager.ExecuteOnDevice(request, 0, stream.Get(), &throwing), std::runtime_error);
    EXPECT_EQ(throwing.reports, 2);
    EXPECT_NO_THROW(manager.ExecuteOnDevice(request, 0, stream.Get()));
    fake->Synchronize(stream.Get());
  }
  EXPECT_EQ(fake->CountLive(), 0);
}

TEST(ResidentRun, SlabsOfADenseImageAreNotCopied)
{
  KernelRegistry kernels;
  Kernel         kernel = *GetTestKernels().Find("test.window-sum");
  kernel.scratchBytes = [](const Operation &, const ChunkShape & shape) {
    return static_cast<std::size_t>(shape.outputBox.NumberOfVoxels()) * 8;
  };
  kernels.Register("test.window-sum", { kernel });
  FakeDevices  devices(1, FakeDevice::Options(), kernels);
  const auto   manager = devices.MakeManager();
  FakeDevice & fake = *devices.fakes[0];
  const Box    box = Box::FromExtent({ { 16, 8, 40, 1, 1 } });
  for (const bool dense : { true, false })
  {
    ImageLayout layout;
    layout.gap = 1;
    layout.order[0] = 1;
    layout.order[1] = 0;
    const DeviceStream        stream(fake);
    DeviceImage               input(fake, PixelType::Int32, box, dense ? ImageLayout() : layout);
    DeviceImage               output(fake, PixelType::Int64, box);
    std::vector<std::int64_t> expected(static_cast<std::size_t>(box.NumberOfVoxels()));
    ForEachIndex(box, [&](const Coordinates & index) {
      At<std::int32_t>(input.GetHostView(), index) = static_cast<std::int32_t>(index[0] + index[1] * index[2]);
    });
    const auto operation = std::make_shared<WindowSumOperation>();
    operation->radius = { { 1, 1, 2, 0, 0 } };
    ExecutionRequest request;
    request.operation = operation;
    request.image = request.region = box;
    request.backend = BackendChoice::CPU;
    std::vector<std::int32_t> pixels(expected.size());
    const BufferView          plain = DenseView(pixels.data(), PixelType::Int32, box);
    ForEachIndex(box, [&](const Coordinates & index) {
      At<std::int32_t>(plain, index) = At<std::int32_t>(input.GetHostView(), index);
    });
    request.inputs = { plain };
    request.output = DenseView(expected.data(), PixelType::Int64, box);
    manager->Execute(request);
    input.Upload(stream.Get());
    request.inputs = { input.GetView() };
    request.output = output.GetView();
    request.budgets.device = dense ? 8 * 16 * 8 * 10 : 8 * 16 * 8 * 16;
    const int  copies = fake.CountCalls("CopyVoxels");
    const auto report = manager->ExecuteOnDevice(request, 0, stream.Get());
    EXPECT_GT(report.plan.chunks.size(), 3u);
    EXPECT_EQ(report.chunksPerDevice,
              std::vector<std::int64_t>{ static_cast<std::int64_t>(report.plan.chunks.size()) });
    EXPECT_EQ(fake.CountCalls("CopyVoxels") > copies, !dense);
    EXPECT_EQ(fake.CountCalls("CopyToHost"), dense ? 0 : 1);
    EXPECT_EQ(report.bytesToDevice, 0);
    EXPECT_EQ(report.bytesToHost, 0);
    output.Download(stream.Get());
    EXPECT_EQ(std::memcmp(output.GetHostView().data, expected.data(), expected.size() * sizeof(expected[0])), 0);
  }
}

TEST(ResidentRun, RunsAtOnceTakeTurns)
{
  FakeDevice::Options options;
  options.jitter = true;
  FakeDevices              devices(1, options);
  const auto               manager = devices.MakeManager();
  FakeDevice &             fake = *devices.fakes[0];
  std::vector<std::thread> threads;
  for (unsigned int t = 0; t < 4; ++t)
  {
    threads.emplace_back([&, t] {
      const Box          box = Box::FromExtent({ { 9, 8, 7, 1, 1 } });
      const DeviceStream stream(fake);
      const auto         operation = std::make_shared<WindowSumOperation>();
      operation->radius = Coordinates::Filled(0);
      operation->radius[0] = t % 3;
      for (int i = 0; i < 5; ++i)
      {
        DeviceImage               input(fake, PixelType::Int32, box);
        DeviceImage               output(fake, PixelType::Int64, box);
        std::vector<std::int64_t> expected(static_cast<std::size_t>(box.NumberOfVoxels()));
        ForEachIndex(box, [&](const Coordinates & index) {
          At<std::int32_t>(input.GetHostView(), index) = static_cast<std::int32_t>(index[0] * t + index[1] + i);
        });
        ExecutionRequest request;
        request.operation = operation;
        request.image = request.region = box;
        request.backend = BackendChoice::CPU;
        request.inputs = { input.GetHostView() };
        request.output = DenseView(expected.data(), PixelType::Int64, box);
        manager->Execute(request);
        input.Upload(stream.Get());
        request.inputs = { input.GetView() };
        request.output = output.GetView();
        request.budgets.device = t % 2 ? 0 : 8000;
        manager->ExecuteOnDevice(request, 0, stream.Get());
        output.Download(stream.Get());
        EXPECT_EQ(std::memcmp(output.GetHostView().data, expected.data(), expected.size() * sizeof(expected[0])), 0);
      }
    });
  }
  for (auto & thread : threads)
  {
    thread.join();
  }
}
