/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDeconvolutionSteps.h"
#include "chunkwiseAdaptiveEqualizationOperation.h"
#include "chunkwiseBilateralOperation.h"
#include "chunkwiseBoxStatisticOperation.h"
#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseDerivativeOperation.h"
#include "chunkwiseDifferenceOperation.h"
#include "chunkwiseDiffusionOperation.h"
#include "chunkwiseDomainOperation.h"
#include "chunkwiseEnhancementOperations.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFakeDevices.h"
#include "chunkwiseFilters.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseFootprintOperation.h"
#include "chunkwiseFramedOperation.h"
#include "chunkwiseHighPassOperation.h"
#include "chunkwiseLaplacianOperation.h"
#ifdef CHUNKWISE_HAS_NETWORKS
#  include "chunkwiseNetworkOperation.h"
#endif
#include "chunkwiseMeasureScaleOperation.h"
#include "chunkwiseNonFlatExtremumOperation.h"
#include "chunkwiseNonLocalMeansOperation.h"
#include "chunkwiseOperations.h"
#include "chunkwiseRangeOperation.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseReconstructionOperation.h"
#ifdef CHUNKWISE_HAS_NETWORKS
#  include "chunkwiseSmallNetwork.h"
#endif
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseLabelBoundaryOperation.h"
#include "chunkwiseDistanceOperation.h"
#include "chunkwiseLabelOperation.h"
#include "chunkwiseLocalThresholdOperation.h"
#include "chunkwiseMaskedOperation.h"
#include "chunkwiseSpectralDeconvolutionOperation.h"
#include "chunkwiseSummedAreaTableOperation.h"
#include "chunkwiseThresholdOperation.h"
#include "chunkwiseWatershedOperation.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseVaryingConvolutionOperation.h"
#include "chunkwiseWienerOperation.h"

#include <algorithm>
#include <set>

// The promises of budgets, for every operation: the bytes that an error asks for are enough, and no more than that.
namespace chunkwise
{
namespace
{

const Coordinates Extent{ { 13, 11, 9, 1, 1 } };
const Coordinates Radius{ { 2, 1, 1, 0, 0 } };

template <typename TOperation>
std::shared_ptr<TOperation>
MakeBox()
{
  const auto operation = std::make_shared<TOperation>();
  operation->radius = Radius;
  return operation;
}

std::shared_ptr<const ConvolutionKernel>
MakeKernel(double first)
{
  std::vector<double> weights(5 * 4 * 3);
  for (double & weight : weights)
  {
    weight = first;
    first += 0.125;
  }
  return std::make_shared<ConvolutionKernel>(
    Coordinates{ { 5, 4, 3, 1, 1 } }, Coordinates{ { 2, 2, 1, 0, 0 } }, weights);
}

std::vector<std::shared_ptr<const Operation>>
MakeOperations()
{
  std::vector<std::shared_ptr<const Operation>> all;
  all.push_back(std::make_shared<IdentityOperation>());
  all.push_back(MakeBox<MeanOperation>());
  all.push_back(MakeBox<VarianceOperation>());
  all.push_back(MakeBox<ExtremumOperation>());
  all.push_back(MakeBox<RangeOperation>());
  all.push_back(MakeBox<RankOperation>());
  all.push_back(MakeBox<EntropyOperation>());
  all.push_back(MakeBox<BoxStatisticOperation>());
  const auto wiener = MakeBox<WienerOperation>();
  wiener->noise = 30;
  all.push_back(wiener);
  const auto flat = std::make_shared<FlatExtremumOperation>();
  flat->radius = Radius;
  flat->element.assign(5 * 3 * 3, 1);
  flat->element[0] = 0;
  all.push_back(flat);
  const auto footprint = std::make_shared<FootprintOperation>();
  footprint->radius = Radius;
  footprint->element = flat->element;
  all.push_back(footprint);
  const auto inner = MakeBox<MeanOperation>();
  inner->boundary.mode = BoundaryMode::ZeroFluxNeumann;
  const auto framed = std::make_shared<FramedOperation>();
  framed->inner = inner;
  std::fill(std::begin(framed->modes), std::end(framed->modes), BoundaryMode::MirrorCenter);
  all.push_back(framed);
  const auto means = std::make_shared<NonLocalMeansOperation>();
  means->search = means->patch = Radius;
  means->strength = 20;
  all.push_back(means);
#ifdef CHUNKWISE_HAS_NETWORKS
  const auto network = std::make_shared<NetworkOperation>();
  network->graph = MakeSmallNetwork();
  const auto spilling = std::make_shared<NetworkOperation>();
  spilling->graph = network->graph;
  spilling->slab = 2;
  spilling->planes = NetworkPlanes::InHostMemory;
  all.push_back(spilling);
  all.push_back(network);
#endif
  const auto separable = std::make_shared<SeparableOperation>();
  separable->weights[0] = separable->weights[2] = { 0.25, 0.5, 0.25 };
  all.push_back(separable);
  const auto highPass = std::make_shared<HighPassOperation>();
  highPass->smoothing = separable;
  all.push_back(highPass);
  const auto laplacian = std::make_shared<LaplacianOperation>();
  laplacian->weights[0] = laplacian->weights[1] = { 0.1, 0.2, 0.4, 0.2, 0.1 };
  all.push_back(laplacian);
  const auto convolution = std::make_shared<ConvolutionOperation>();
  convolution->radius = Radius;
  convolution->weights.assign(5 * 3 * 3, 0.5);
  all.push_back(convolution);
  for (const ConvolutionMethod method : { ConvolutionMethod::Direct, ConvolutionMethod::FFT })
  {
    const auto ofImage = std::make_shared<ImageConvolutionOperation>();
    ofImage->kernel = MakeKernel(0.5);
    ofImage->method = method;
    all.push_back(ofImage);
  }
  const auto spectral = std::make_shared<SpectralDeconvolutionOperation>();
  spectral->kernel = MakeKernel(0.5);
  all.push_back(spectral);
  const auto varying = std::make_shared<VaryingConvolutionOperation>();
  varying->nodes = { { 2, 1, 1, 1, 1 } };
  varying->first[0] = 3;
  varying->spacing[0] = 6;
  varying->kernels = { MakeKernel(0.5), MakeKernel(3) };
  all.push_back(varying);
  const auto sequence = std::make_shared<SequenceOperation>();
  sequence->stages = { separable, MakeBox<MeanOperation>() };
  all.push_back(sequence);
  all.push_back(std::make_shared<DifferenceOperation>());
  const auto domain = std::make_shared<DomainOperation>();
  domain->window = MakeBox<MeanOperation>();
  domain->domain = DomainKind::Weights;
  domain->imageKind = PixelType::Float32;
  all.push_back(domain);
  const auto median = std::make_shared<DomainOperation>();
  median->window = MakeBox<RankOperation>();
  median->domain = DomainKind::All;
  median->ignoresNan = true;
  median->imageKind = PixelType::Float32;
  all.push_back(median);
  const auto table = std::make_shared<SummedAreaTableOperation>();
  table->image = Extent;
  table->summedAxes = 3;
  all.push_back(table);
  const auto label = std::make_shared<LabelOperation>();
  label->image = Extent;
  label->inputKind = label->outputKind = PixelType::Float32;
  label->structure = LabelOperation::MakeStructure(1, 3);
  all.push_back(label);
  const auto distance = std::make_shared<DistanceOperation>();
  distance->image = Extent;
  distance->inputKind = PixelType::Float32;
  all.push_back(distance);
  const auto watershed = std::make_shared<WatershedOperation>();
  watershed->image = Extent;
  watershed->inputKind = watershed->outputKind = PixelType::Float32;
  all.push_back(watershed);
  const auto derivative = std::make_shared<DerivativeOperation>();
  derivative->scales.front().weights[0] = { 1, 2, 1 };
  derivative->scales.front().weights[1] = { 1, 2, 3, 2, 1 };
  derivative->components = { { { 1, 0, 0, 0, 0 } }, { { 0, 1, 0, 0, 0 } } };
  derivative->result = DerivativeResult::Magnitude;
  all.push_back(derivative);
  const auto tensor = std::make_shared<DerivativeOperation>();
  const auto gradient = std::make_shared<DerivativeOperation>(*derivative);
  gradient->result = DerivativeResult::Components;
  tensor->scales = derivative->scales;
  tensor->components.resize(3);
  tensor->gradient = gradient;
  tensor->result = DerivativeResult::Eigenvalues;
  all.push_back(tensor);
  const auto deconvolutionStep = std::make_shared<DeconvolutionStepOperation>();
  deconvolutionStep->step = DeconvolutionStep::Difference;
  all.push_back(deconvolutionStep);
  const auto topHat = std::make_shared<TopHatOperation>();
  const auto erosion = MakeBox<ExtremumOperation>();
  erosion->minimum = true;
  topHat->first = erosion;
  topHat->second = MakeBox<ExtremumOperation>();
  all.push_back(topHat);
  const auto diffusion = std::make_shared<DiffusionOperation>();
  diffusion->iterations = 3;
  diffusion->scale[0] = diffusion->scale[1] = diffusion->scale[2] = 1;
  diffusion->contrast = 30;
  all.push_back(diffusion);
  FilterImage about;
  about.extent = Extent;
  about.dimension = 3;
  FilterParameters parameters;
  parameters.SetInteger("Iterations", 2);
  parameters.Set("OuterSigma", std::vector<double>{ 0.5 });
  all.push_back(MakeFilterOperation("coherence-diffusion", parameters, about));
  const auto equalization = std::make_shared<AdaptiveEqualizationOperation>();
  equalization->tile[0] = equalization->tile[1] = 5;
  equalization->upper = 200;
  all.push_back(equalization);
  const auto rolling = std::make_shared<RollingBallOperation>();
  rolling->extremum.semiAxes[0] = rolling->extremum.semiAxes[1] = 2;
  rolling->subtracts = true;
  all.push_back(rolling);
  const auto nonFlat = std::make_shared<NonFlatExtremumOperation>();
  nonFlat->semiAxes[0] = nonFlat->semiAxes[2] = 1;
  all.push_back(nonFlat);
  const auto scale = std::make_shared<MeasureScaleOperation>();
  scale->measure.result = DerivativeResult::Measure;
  scale->measure.measure.measure = HessianMeasure::Sato;
  scale->measure.measure.objectDimension = 0;
  scale->measure.components = { { { 2 } } };
  scale->measure.scales.front().weights[0] = { 0.25, 0.5, 0.25 };
  scale->scales = { 1 };
  all.push_back(scale);
  const auto bilateral = std::make_shared<BilateralOperation>();
  bilateral->weights[0] = bilateral->weights[1] = { 0.5, 1, 0.5 };
  all.push_back(bilateral);
  const auto masked = std::make_shared<MaskedOperation>();
  masked->inside = bilateral;
  all.push_back(masked);
  const auto unsharp = std::make_shared<UnsharpOperation>();
  unsharp->smoothing = separable;
  all.push_back(unsharp);
  const auto normalization = MakeBox<LocalNormalizationOperation>();
  all.push_back(normalization);
  const auto threshold = std::make_shared<ThresholdOperation>();
  threshold->thresholds = { 30 };
  all.push_back(threshold);
  all.push_back(std::make_shared<LabelBoundaryOperation>());
  const auto local = MakeBox<LocalThresholdOperation>();
  local->method = LocalThresholdMethod::Sauvola;
  all.push_back(local);
  const auto moments = MakeBox<MomentThresholdOperation>();
  moments->method = LocalThresholdMethod::Niblack;
  all.push_back(moments);
  all.push_back(std::make_shared<ReconstructionOperation>());
  const auto maxima = std::make_shared<ReconstructionOperation>();
  maxima->marker = ReconstructionMarker::Shifted;
  maxima->height = 10;
  all.push_back(maxima);
  return all;
}

TEST(Budgets, EveryOperationOfTheHostIsTestedHere)
{
  std::set<std::string> tested;
  for (const auto & operation : MakeOperations())
  {
    tested.insert(operation->GetName());
  }
  for (const std::string & name : GetHostKernels().GetNames())
  {
    // Voxel-wise stages run in their composite alone; and summaries are no images.
    // The tests of operations whose output has another grid have their budgets.
    const bool hasGrid = name == "resample" || name == "bin" || name == "rearrange";
    const bool isPart = name.substr(name.rfind('.') + 1) == "voxels" || !GetHostKernels().Find(name) || hasGrid;
    EXPECT_TRUE(isPart || tested.count(name) == 1) << name;
  }
}

/** A run of an operation over a whole image. */
struct Job
{
  ExecutionRequest   request;
  std::vector<float> first;
  std::vector<float> second;
  std::vector<float> output;

  Job(std::shared_ptr<const Operation> operation, Executor & executor, const Coordinates & extent = Extent)
  {
    request.image = request.region = Box::FromExtent(extent);
    const auto voxels = static_cast<std::size_t>(request.image.NumberOfVoxels());
    for (std::size_t i = 0; i < voxels; ++i)
    {
      first.push_back(static_cast<float>(i * 7919 % 251));
      second.push_back(static_cast<float>(i * 104729 % 241));
    }
    output.assign(voxels, 0);
    for (int i = 0; i < operation->GetNumberOfInputs(); ++i)
    {
      // Masks are integers.
      const PixelType kind = i > 0 && operation->GetName() == "masked" ? PixelType::UInt32 : PixelType::Float32;
      request.inputs.push_back(DenseView(i == 0 ? first.data() : second.data(), kind, request.image));
    }
    request.output = DenseView(output.data(), PixelType::Float32, request.image);
    request.operation = std::move(operation);
    request.executor = &executor;
    request.stagingThreads = 1;
  }
};

class BudgetsOfPlaces : public testing::TestWithParam<bool>
{
protected:
  bool
  IsHost() const
  {
    return GetParam();
  }
  std::unique_ptr<Manager>
  MakeManager()
  {
    m_Devices = std::make_unique<FakeDevices>(1, FakeDevice::Options(), GetHostKernels());
    return m_Devices->MakeManager();
  }
  void
  Set(ExecutionRequest & request, std::size_t bytes) const
  {
    request.backend = IsHost() ? BackendChoice::CPU : BackendChoice::CUDA;
    (IsHost() ? request.budgets.host : request.budgets.device) = bytes;
  }
  std::size_t
  PeakOf(const ExecutionReport & report) const
  {
    return IsHost() ? report.peakHost : report.peakDevice;
  }

  std::unique_ptr<FakeDevices> m_Devices;
};

TEST_P(BudgetsOfPlaces, WhatAnErrorAsksForIsEnoughAndNoMore)
{
  const auto executor = MakeThreadExecutor(2);
  for (const auto & operation : MakeOperations())
  {
    SCOPED_TRACE(operation->GetKey());
    if (!IsHost() && !operation->GetObjectionToDevices().empty())
    {
      continue;
    }
    const auto manager = MakeManager();
    Job        job(operation, *executor);
    Set(job.request, 0);
    manager->Execute(job.request);
    const std::vector<float> expected = job.output;

    Set(job.request, 1);
    std::size_t needed = 0;
    try
    {
      job.output.assign(job.output.size(), 0);
      manager->Execute(job.request);
      EXPECT_TRUE(IsHost()) << "nothing fits into one byte of a device";
      continue; // it takes no scratch
    }
    catch (const BudgetError & error)
    {
      needed = error.needed;
      const std::string text = error.what();
      EXPECT_NE(text.find(std::to_string(needed)), std::string::npos) << text;
      EXPECT_NE(text.find(IsHost() ? "host memory" : "device memory"), std::string::npos) << text;
      EXPECT_NE(text.find(IsHost() ? "host budget of 1 byte" : "device budget of 1 byte"), std::string::npos) << text;
    }
    Set(job.request, needed);
    try
    {
      const ExecutionReport report = manager->Execute(job.request);
      EXPECT_LE(PeakOf(report), needed);
      EXPECT_EQ(report.retries, 0);
    }
    catch (const Error & error)
    {
      ADD_FAILURE() << needed << " bytes were asked for, and then: " << error.what();
      continue;
    }
    const bool isBounded = operation->GetName() == "convolution.fft" || operation->GetName() == "convolution.varying";
    for (std::size_t i = 0; i < expected.size(); ++i)
    {
      ASSERT_NEAR(job.output[i], expected[i], isBounded ? 1e-4 * std::abs(expected[i]) + 1e-2 : 0) << i;
    }
    Set(job.request, needed - 1);
    EXPECT_THROW(manager->Execute(job.request), BudgetError);
  }
}

INSTANTIATE_TEST_SUITE_P(Places, BudgetsOfPlaces, testing::Bool(),
                         [](const auto & info) { return info.param ? "Host" : "Device"; });

TEST(Budgets, ThePeakIsThatOfTheRunAlone)
{
  const auto executor = MakeThreadExecutor(2);
  Manager    manager({});
  Job        large(MakeBox<RankOperation>(), *executor, { { 60, 50, 40, 1, 1 } });
  large.request.backend = BackendChoice::CPU;
  const std::size_t most = manager.Execute(large.request).peakHost;
  Job               small(MakeBox<RankOperation>(), *executor, { { 4, 3, 2, 1, 1 } });
  small.request.backend = BackendChoice::CPU;
  const std::size_t alone = Manager({}).Execute(small.request).peakHost;
  EXPECT_LT(alone, most);
  EXPECT_EQ(manager.Execute(small.request).peakHost, alone);
  EXPECT_EQ(manager.Execute(large.request).peakHost, most);

  FakeDevices device(1, FakeDevice::Options(), GetHostKernels());
  const auto  ofDevice = device.MakeManager();
  large.request.backend = small.request.backend = BackendChoice::CUDA;
  const std::size_t ofSmall = ofDevice->Execute(small.request).peakDevice;
  EXPECT_GT(ofDevice->Execute(large.request).peakDevice, ofSmall);
  EXPECT_EQ(ofDevice->Execute(small.request).peakDevice, ofSmall);
}

/** Calls of a kernel whose scratch has what the call before left there. */
int callsWithKeptScratch = 0;

// Each division of a file is a run: of new scratch the system fills every page with zeros.
TEST(Budgets, ScratchIsKeptFromRunToRunWhereTwoOfItDoNotFit)
{
  constexpr std::size_t  scratch = std::size_t{ 1 } << 24;
  constexpr std::int64_t mark = 7305541;
  callsWithKeptScratch = 0;
  KernelRegistry kernels;
  Kernel         kernel;
  kernel.scratchBytes = [](const Operation &, const ChunkShape &) { return scratch; };
  kernel.run = [](const KernelCall & call) {
    auto * const marks = static_cast<std::int64_t *>(call.scratch);
    callsWithKeptScratch += *marks == mark ? 1 : 0;
    *marks = mark;
  };
  kernels.Register("identity", { kernel });
  const auto executor = MakeThreadExecutor(2);
  Manager    manager({}, "", &kernels);
  Job        job(std::make_shared<IdentityOperation>(), *executor, { { 4, 3, 2, 1, 1 } });
  job.request.backend = BackendChoice::CPU;
  job.request.budgets.host = scratch + scratch / 2;
  for (int run = 0; run < 3; ++run)
  {
    EXPECT_EQ(manager.Execute(job.request).peakHost, scratch);
  }
  EXPECT_EQ(callsWithKeptScratch, 2);
}

std::shared_ptr<ImageConvolutionOperation>
MakeTransform()
{
  const auto operation = std::make_shared<ImageConvolutionOperation>();
  operation->kernel = MakeKernel(0.5);
  operation->method = ConvolutionMethod::FFT;
  return operation;
}

TEST(Budgets, WhatTheHostKeepsIsInItsBudgetAndCanBeCleared)
{
  const auto executor = MakeThreadExecutor(2);
  Manager    manager({});
  Job        job(MakeTransform(), *executor, { { 40, 30, 20, 1, 1 } });
  job.request.backend = BackendChoice::CPU;
  const std::size_t peak = manager.Execute(job.request).peakHost;
  const auto        first = job.output;
  const std::size_t held = manager.GetHeldMemory().host;
  EXPECT_GT(held, 0u);
  EXPECT_EQ(peak, held) << "scratch and spectrum are what the run had, and are kept";
  EXPECT_EQ(manager.Execute(job.request).peakHost, peak);
  EXPECT_EQ(manager.GetHeldMemory().host, held);

  // Another run needs the room.
  Job               other(MakeBox<RankOperation>(), *executor, { { 60, 50, 40, 1, 1 } });
  const std::size_t ofOther = Manager({}).Execute(other.request).peakHost;
  Budgets           budgets;
  budgets.host = std::max(ofOther, held);
  manager.SetBudgets(budgets);
  other.request.backend = BackendChoice::CPU;
  EXPECT_EQ(manager.Execute(other.request).plan.chunks.size(), 1u);
  EXPECT_LE(manager.GetHeldMemory().host, budgets.host);

  // Less than it kept: then without spectra, with the same bits where blocks are the same.
  budgets.host = 4096;
  manager.SetBudgets(budgets);
  EXPECT_LE(manager.GetHeldMemory().host, budgets.host);
  budgets.host = 0;
  manager.SetBudgets(budgets);
  manager.Execute(job.request);
  manager.ReleaseMemory();
  EXPECT_EQ(manager.GetHeldMemory().host, 0u);
  ChunkShape shape;
  shape.inputBox = shape.outputBox = shape.image = job.request.image;
  shape.inputKinds[0] = shape.outputKind = PixelType::Float32;
  shape.numberOfInputs = 1;
  shape.concurrency = 2;
  job.request.budgets.host =
    (GetHostKernels().Find("convolution.fft")->scratchBytes(*job.request.operation, shape) + 255) / 256 * 256;
  job.output.assign(job.output.size(), 0);
  EXPECT_EQ(manager.Execute(job.request).peakHost, job.request.budgets.host);
  EXPECT_EQ(job.output, first);
}

/** An error asks for no budget that cuts the image into voxels. */
TEST(Budgets, AHopelessOneIsRefusedAndACostlyOneIsToldOf)
{
  const auto executor = MakeThreadExecutor(2);
  Manager    manager({});
  const auto maxima = std::make_shared<ReconstructionOperation>();
  maxima->marker = ReconstructionMarker::Shifted;
  maxima->height = 10;
  Job job(maxima, *executor, { { 64, 50, 40, 1, 1 } });
  job.request.backend = BackendChoice::CPU;
  EXPECT_TRUE(manager.Execute(job.request).warnings.empty());
  const std::vector<float> expected = job.output;
  std::size_t &            budget = job.request.budgets.host;
  budget = 1;
  std::size_t needed = 0;
  try
  {
    manager.Execute(job.request);
  }
  catch (const BudgetError & error)
  {
    needed = error.needed;
  }
  ASSERT_GT(needed, 0u);
  budget = needed;
  const RequestCost cost = manager.GetCostOfBudget(job.request);
  EXPECT_EQ(cost.memory, "host");
  EXPECT_GT(cost.budget.factor, 8);
  EXPECT_LE(cost.budget.factor, 1000);
  EXPECT_GT(cost.budget.sufficient, needed);
  job.output.assign(job.output.size(), 0);
  const ExecutionReport report = manager.Execute(job.request);
  EXPECT_EQ(job.output, expected);
  EXPECT_LE(report.peakHost, needed);
  EXPECT_LT(report.plan.chunks.size(), 6000u);
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_NE(report.warnings[0].find(std::to_string(cost.budget.sufficient)), std::string::npos) << report.warnings[0];
  EXPECT_NE(report.warnings[0].find("host budget"), std::string::npos) << report.warnings[0];

  budget = cost.budget.sufficient;
  EXPECT_LE(manager.GetCostOfBudget(job.request).budget.factor, 1.25);
  EXPECT_TRUE(manager.Execute(job.request).warnings.empty());
  budget = cost.budget.sufficient * 9 / 10;
  EXPECT_GT(manager.GetCostOfBudget(job.request).budget.factor, 1.25);
}

} // namespace
} // namespace chunkwise
