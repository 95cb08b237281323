/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCheckedParameters.h"
#include "chunkwiseError.h"
#include "chunkwiseFakeDevices.h"
#include "chunkwiseFilters.h"
#include "chunkwiseMemoryImage.h"
#include "chunkwiseOutOfCoreRunner.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseStreamedRun.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

// A family of operations that is defined here alone: its operations, kernels, rows of the table, the state that stream
// blocks hand on and its runs out of core. The engine has no line for it.

using namespace chunkwise;

namespace
{

constexpr int Axis = 2;

/** Calls f(index) for each voxel of a box, x fastest. */
template <typename TFunctor>
void
ForEachVoxel(const Box & box, TFunctor && f)
{
  Coordinates index = box.lower;
  for (std::int64_t i = 0; i < box.NumberOfVoxels(); ++i)
  {
    f(index);
    for (int a = 0; a < MaxDimension && ++index[a] == box.upper[a]; ++a)
    {
      index[a] = box.lower[a];
    }
  }
}

template <typename T>
T &
VoxelOf(const BufferView & view, const Coordinates & index)
{
  return static_cast<T *>(view.data)[view.Offset(index)];
}

void
Expect(PixelType is, PixelType wanted)
{
  if (is != wanted)
  {
    throw ParameterError(std::string("the test's family has ") + PixelTypeName(wanted) + ", not " + PixelTypeName(is));
  }
}

/** The running sum along the slowest axis, int32 to int64: a sweep whose carry is also the state that a stream block
 * leaves for the next one. */
class SumOperation : public Operation
{
public:
  std::int64_t begin{ 0 };
  ChunkState   carry;

  std::string
  GetName() const override
  {
    return "families.sum";
  }
  std::string
  GetKey() const override
  {
    return GetName() + " " + std::to_string(begin);
  }
  Schedule
  GetSchedule() const override
  {
    return Schedule::Sweep;
  }
  int
  GetSweepAxis(const Coordinates &) const override
  {
    return Axis;
  }
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override
  {
    Expect(inputs.at(0), PixelType::Int32);
    Expect(output, PixelType::Int64);
  }
  std::size_t
  GetCarryBytes(const Box & box, const std::vector<PixelType> &, PixelType) const override
  {
    return static_cast<std::size_t>(box.Extent(0) * box.Extent(1)) * sizeof(std::int64_t);
  }
  ChunkState
  GetInitialCarry(const Box & box, const std::vector<PixelType> &, PixelType) const override
  {
    if (box.lower[Axis] != begin)
    {
      throw ParameterError("a block begins at " + std::to_string(box.lower[Axis]) + ", but the sums end at " +
                           std::to_string(begin));
    }
    return carry;
  }
  bool
  HandsOnState() const override
  {
    return true;
  }
  std::shared_ptr<const Operation>
  MakeForNextBlock(const FinishedBlock & block) const override
  {
    EXPECT_EQ(block.axis, Axis);
    EXPECT_EQ(block.numberOfInputs, 1);
    EXPECT_EQ(block.outputKind, PixelType::Int64);
    EXPECT_NE(block.executor, nullptr);
    ChunkState before = carry;
    before.resize(GetCarryBytes(block.box, {}, block.outputKind), 0);
    const auto next = std::make_shared<SumOperation>();
    next->begin = block.box.upper[Axis];
    next->carry.resize(before.size());
    KernelCall call;
    call.operation = this;
    call.inputs[0] = block.inputs[0];
    call.numberOfInputs = 1;
    call.writable = block.box;
    call.image = block.image;
    call.sideIn = before.data();
    call.sideOut = next->carry.data();
    call.sideInBytes = call.sideOutBytes = before.size();
    block.kernels->Get(GetName(), GetName(), &KernelSet::advance).run(call);
    return next;
  }
};

/** Adds up the box, plane by plane, from the carry on; `each` gets each voxel's sum. */
template <typename TFunctor>
std::vector<std::int64_t>
AddUp(const KernelCall & call, const Box & box, TFunctor && each)
{
  std::vector<std::int64_t> sums(static_cast<std::size_t>(box.Extent(0) * box.Extent(1)));
  std::memcpy(sums.data(), call.sideIn, call.sideInBytes);
  ForEachVoxel(box, [&](const Coordinates & index) {
    std::int64_t & sum =
      sums[static_cast<std::size_t>((index[1] - box.lower[1]) * box.Extent(0) + index[0] - box.lower[0])];
    sum += VoxelOf<std::int32_t>(call.inputs[0], index);
    each(index, sum);
  });
  return sums;
}

class TurnOperation;

/** Turns an image from a source to a sink, a plane at a time. */
class TurnRunner : public OutOfCoreRunner
{
public:
  int
  GetNumberOfPasses() const override
  {
    return 1;
  }
  std::uint64_t
  GetLeastHostBytes(Manager &, const OutOfCoreRequest & request) const override
  {
    const Coordinates extent = request.sink->GetExtent();
    return static_cast<std::uint64_t>(extent[0] * extent[1]) * sizeof(std::int32_t);
  }
  OutOfCoreReport
  Run(Manager & manager, const OutOfCoreRequest & request, Monitor * monitor) const override
  {
    EXPECT_GE(request.hostBytes, GetLeastHostBytes(manager, request));
    const Coordinates         extent = request.sink->GetExtent();
    std::vector<std::int32_t> voxels(static_cast<std::size_t>(extent[0] * extent[1]));
    for (std::int64_t z = 0; z < extent[Axis]; ++z)
    {
      Box plane = Box::FromExtent(extent);
      plane.lower[Axis] = extent[Axis] - 1 - z;
      plane.upper[Axis] = plane.lower[Axis] + 1;
      request.sources.at(0)->Read(plane, DenseView(voxels.data(), PixelType::Int32, plane));
      plane.lower[Axis] = z;
      plane.upper[Axis] = z + 1;
      request.sink->Write(plane, DenseView(voxels.data(), PixelType::Int32, plane));
      if (monitor)
      {
        monitor->UpdateProgress(static_cast<double>(z + 1) / static_cast<double>(extent[Axis]));
      }
    }
    OutOfCoreReport report;
    report.execution.backend = "cpu";
    report.steps = { { "turning", 0.5 } };
    return report;
  }
};

/** The image with its planes in reverse order, int32: each voxel needs the whole of an axis. */
class TurnOperation : public Operation
{
public:
  bool onHostAlone{ false };

  std::string
  GetName() const override
  {
    return "families.turn";
  }
  std::string
  GetKey() const override
  {
    return GetName();
  }
  Halo
  GetHalo(const Coordinates &) const override
  {
    Halo halo = Halo::None();
    halo.lower[Axis] = halo.upper[Axis] = WholeAxis;
    return halo;
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override
  {
    Expect(inputs.at(0), PixelType::Int32);
    Expect(output, PixelType::Int32);
  }
  const OutOfCoreRunner *
  GetOutOfCoreRunner() const override
  {
    static const TurnRunner runner;
    return &runner;
  }
  std::string
  GetObjectionToDevices() const override
  {
    return onHostAlone ? "turning is asked of the host alone" : "";
  }
};

/** Every second voxel along x, y and z, the planes in reverse order if `reverses`: the output has its own grid. */
class ThinOperation
  : public Operation
  , private OutputGrid
{
public:
  bool reverses{ false };

  std::string
  GetName() const override
  {
    return "families.thin";
  }
  std::string
  GetKey() const override
  {
    return GetName() + (reverses ? " reversed" : "");
  }
  Halo
  GetHalo(const Coordinates &) const override
  {
    ADD_FAILURE() << "an operation with a grid of its own has no halo";
    return Halo::None();
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override
  {
    Expect(inputs.at(0), PixelType::Int32);
    Expect(output, PixelType::Int32);
  }
  const OutputGrid *
  GetOutputGrid() const override
  {
    return this;
  }
  Coordinates
  From(Coordinates voxel, const Coordinates & image) const
  {
    for (int a = 0; a < 3; ++a)
    {
      voxel[a] *= 2;
    }
    voxel[Axis] = reverses ? (image[Axis] - 1) / 2 * 2 - voxel[Axis] : voxel[Axis];
    return voxel;
  }

private:
  Coordinates
  GetExtent(const Coordinates & image) const override
  {
    Coordinates extent = image;
    for (int a = 0; a < 3; ++a)
    {
      extent[a] = (image[a] + 1) / 2;
    }
    return extent;
  }
  Box
  GetInputBox(const Box & output, const Coordinates & image) const override
  {
    Coordinates last = output.upper;
    for (int a = 0; a < MaxDimension; ++a)
    {
      --last[a];
    }
    Coordinates first = From(output.lower, image);
    last = From(last, image);
    std::swap(first[Axis], reverses ? last[Axis] : first[Axis]);
    for (int a = 0; a < MaxDimension; ++a)
    {
      ++last[a];
    }
    return { first, last };
  }
};

void
AddKernels(KernelRegistry & kernels)
{
  Kernel thin;
  thin.run = [](const KernelCall & call) {
    const auto & operation = dynamic_cast<const ThinOperation &>(*call.operation);
    ForEachVoxel(call.output.box, [&](const Coordinates & index) {
      VoxelOf<std::int32_t>(call.output, index) =
        VoxelOf<std::int32_t>(call.inputs[0], operation.From(index, call.image.Extents()));
    });
  };
  // Chunks are cut for it.
  thin.scratchBytes = [](const Operation &, const ChunkShape & shape) {
    return static_cast<std::size_t>(shape.inputBox.NumberOfVoxels());
  };
  kernels.Register("families.thin", { thin });
  KernelSet sum;
  sum.compute.run = [](const KernelCall & call) {
    AddUp(call, call.output.box, [&](const Coordinates & index, std::int64_t sum) {
      VoxelOf<std::int64_t>(call.output, index) = sum;
    });
  };
  sum.advance.run = [](const KernelCall & call) {
    const std::vector<std::int64_t> sums = AddUp(call, call.writable, [](const Coordinates &, std::int64_t) {});
    std::memcpy(call.sideOut, sums.data(), call.sideOutBytes);
  };
  kernels.Register("families.sum", sum);
  Kernel kernel;
  kernel.run = [](const KernelCall & call) {
    ForEachVoxel(call.output.box, [&](const Coordinates & index) {
      Coordinates from = index;
      from[Axis] = call.image.upper[Axis] - 1 - index[Axis];
      VoxelOf<std::int32_t>(call.output, index) = VoxelOf<std::int32_t>(call.inputs[0], from);
    });
  };
  kernel.provider = [](const Operation &, const std::string &) { return "by hand"; };
  kernels.Register("families.turn", { kernel });
}

void
AddRows(std::vector<FilterDescription> & filters)
{
  FilterDescription sum;
  sum.name = "families-sum";
  sum.group = "Families of the tests";
  sum.title = "Running sums along the slowest axis";
  sum.output = DefaultOutput::Sum;
  sum.make = [](const CheckedParameters &, const FilterImage &) -> std::shared_ptr<const Operation> {
    return std::make_shared<SumOperation>();
  };
  filters.push_back(sum);

  FilterDescription turn;
  turn.name = "families-turn";
  turn.group = sum.group;
  turn.title = "Planes in reverse order";
  ParameterDescription alone;
  alone.name = "OnHostAlone";
  alone.option = "on-host-alone";
  alone.help = "Use no device";
  alone.defaultText = "false";
  turn.parameters = { alone };
  turn.make = [](const CheckedParameters & parameters, const FilterImage &) -> std::shared_ptr<const Operation> {
    const auto operation = std::make_shared<TurnOperation>();
    operation->onHostAlone = parameters.Flag("OnHostAlone");
    return operation;
  };
  filters.push_back(turn);
}

void
AddRowsOfATakenName(std::vector<FilterDescription> & filters)
{
  FilterDescription row;
  row.name = "mean";
  filters.push_back(row);
}

/** A filter of the family over noise, made by the table, and what its definition gives. */
template <typename TOut>
struct FamilyTrial
{
  explicit FamilyTrial(const std::string & filter, const FilterParameters & parameters = FilterParameters())
    : input(static_cast<std::size_t>(box.NumberOfVoxels()))
    , output(input.size())
    , expected(input.size())
  {
    std::mt19937 random(3);
    for (std::int32_t & voxel : input)
    {
      voxel = static_cast<std::int32_t>(random());
    }
    AddHostKernels(AddKernels);
    AddFilters(AddRows);
    FilterImage image;
    image.extent = box.Extents();
    image.inputKind = PixelType::Int32;
    image.outputKind = PixelTypeOf<TOut>();
    operation = MakeFilterOperation(filter, parameters, image);
    const std::int64_t plane = box.Extent(0) * box.Extent(1);
    const std::int64_t last = box.Extent(Axis) - 1;
    for (std::int64_t i = 0; i < box.NumberOfVoxels(); ++i)
    {
      const auto at = static_cast<std::size_t>(i);
      if (filter == "families-sum")
      {
        expected[at] = static_cast<TOut>(input[at] + (i < plane ? 0 : expected[static_cast<std::size_t>(i - plane)]));
      }
      else
      {
        expected[at] = input[static_cast<std::size_t>((last - i / plane) * plane + i % plane)];
      }
    }
  }

  ExecutionRequest
  MakeRequest(BackendChoice backend)
  {
    std::fill(output.begin(), output.end(), TOut{ -1 });
    ExecutionRequest request;
    request.operation = operation;
    request.image = request.region = box;
    request.inputs = { DenseView(input.data(), PixelType::Int32, box) };
    request.output = DenseView(output.data(), PixelTypeOf<TOut>(), box);
    request.backend = backend;
    request.executor = executor.get();
    return request;
  }

  StreamedRequest
  MakeStreamedRequest(BackendChoice backend)
  {
    std::fill(output.begin(), output.end(), TOut{ -1 });
    StreamedRequest request;
    request.operation = operation;
    request.inputs = { { std::make_shared<MemoryImage>(DenseView(input.data(), PixelType::Int32, box)),
                         PixelType::Int32 } };
    request.region = box;
    request.computedKind = request.writtenKind = PixelTypeOf<TOut>();
    request.backend = backend;
    request.executor = executor.get();
    return request;
  }

  StreamedReport
  Stream(Manager & manager, const StreamedRequest & request, const StreamedPlan & plan)
  {
    return ExecuteStreamed(
      manager, request, plan, std::make_shared<MemoryImage>(DenseView(output.data(), PixelTypeOf<TOut>(), box)));
  }

  const Box                        box{ Box::FromExtent({ { 17, 11, 40, 1, 1 } }) };
  std::vector<std::int32_t>        input;
  std::vector<TOut>                output;
  std::vector<TOut>                expected;
  std::shared_ptr<const Operation> operation;
  std::unique_ptr<Executor>        executor = MakeThreadExecutor(2);
};

/** Whole, and in chunks where a budget asks for them. */
template <typename TOut>
void
RunInMemory(FamilyTrial<TOut> & trial, std::size_t deviceBytes)
{
  Manager          host({});
  ExecutionRequest request = trial.MakeRequest(BackendChoice::CPU);
  EXPECT_EQ(host.Execute(request).backend, "cpu");
  EXPECT_EQ(trial.output, trial.expected);

  FakeDevices           devices(2, FakeDevice::Options(), GetHostKernels());
  const auto            manager = devices.MakeManager();
  const ExecutionReport whole = manager->Execute(request = trial.MakeRequest(BackendChoice::CUDA));
  EXPECT_EQ(whole.backend, "fake");
  EXPECT_EQ(trial.output, trial.expected);

  request = trial.MakeRequest(BackendChoice::CUDA);
  request.budgets.device = deviceBytes;
  EXPECT_GT(manager->Execute(request).plan.chunks.size(), 1u);
  EXPECT_EQ(trial.output, trial.expected);
}

TEST(Families, AnOperationOfNoneOfTheEnginesFoldersRunsWholeAndInChunks)
{
  FamilyTrial<std::int64_t> sum("families-sum");
  RunInMemory(sum, 24000);
  FamilyTrial<std::int32_t> turn("families-turn");
  RunInMemory(turn, 24000);
}

/** An image that is read from its begin on alone, as compressed files are. */
class SequentialImage : public MemoryImage
{
public:
  using MemoryImage::MemoryImage;
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.anyOrder = false;
    return access;
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    EXPECT_GE(box.lower[Axis], m_Next);
    m_Next = box.upper[Axis];
    MemoryImage::Read(box, view);
  }

private:
  std::int64_t m_Next{ 0 };
};

TEST(Families, AnOutputCanHaveAGridOfItsOwn)
{
  FamilyTrial<std::int32_t> trial("families-turn");
  FakeDevices               devices(1, FakeDevice::Options(), GetHostKernels());
  const auto                manager = devices.MakeManager();
  for (const bool reverses : { false, true })
  {
    const auto operation = std::make_shared<ThinOperation>();
    operation->reverses = reverses;
    trial.operation = operation;
    const Box                 whole = Box::FromExtent({ { 9, 6, 20, 1, 1 } });
    std::vector<std::int32_t> expected;
    ForEachVoxel(whole, [&](const Coordinates & index) {
      expected.push_back(VoxelOf<std::int32_t>(DenseView(trial.input.data(), PixelType::Int32, trial.box),
                                               operation->From(index, trial.box.Extents())));
    });
    std::vector<std::int32_t> output(expected.size());
    ExecutionRequest          request = trial.MakeRequest(BackendChoice::Auto);
    request.region = whole;
    request.output = DenseView(output.data(), PixelType::Int32, whole);
    EXPECT_EQ(manager->Execute(request).backend, "cpu") << "devices do not compute such operations";
    EXPECT_EQ(output, expected);
    request.backend = BackendChoice::CUDA;
    EXPECT_THROW(manager->Execute(request), Error);
    request.backend = BackendChoice::CPU;
    std::fill(output.begin(), output.end(), -1);
    request.budgets.host = 2000;
    EXPECT_GT(manager->Execute(request).plan.chunks.size(), 1u);
    EXPECT_EQ(output, expected);
    request.region.upper[Axis] = 21;
    EXPECT_THROW(manager->Execute(request), ParameterError) << "beyond the output";

    for (const bool isSequential : { false, true })
    {
      for (const std::int64_t divisions : { 1, 3, 20 })
      {
        StreamedRequest  stream = trial.MakeStreamedRequest(BackendChoice::CPU);
        const BufferView view = DenseView(trial.input.data(), PixelType::Int32, trial.box);
        if (isSequential)
        {
          stream.inputs[0].source = std::make_shared<SequentialImage>(view);
        }
        stream.region = whole;
        stream.divisions = divisions;
        const StreamedPlan plan = MakeStreamedPlan(*manager, stream);
        EXPECT_EQ(plan.divisions, isSequential && reverses ? 1 : divisions);
        std::fill(output.begin(), output.end(), -1);
        ExecuteStreamed(
          *manager, stream, plan, std::make_shared<MemoryImage>(DenseView(output.data(), PixelType::Int32, whole)));
        EXPECT_EQ(output, expected) << divisions << " divisions";
      }
    }
  }
}

TEST(Families, StreamBlocksHandTheirStateOn)
{
  FamilyTrial<std::int64_t> trial("families-sum");
  FakeDevices               devices(1, FakeDevice::Options(), GetHostKernels());
  const auto                manager = devices.MakeManager();
  for (const BackendChoice backend : { BackendChoice::CPU, BackendChoice::CUDA })
  {
    for (const std::int64_t blocks : { 1, 2, 7, 40 })
    {
      StreamedRequest request = trial.MakeStreamedRequest(backend);
      request.divisions = blocks;
      const StreamedPlan plan = MakeStreamedPlan(*manager, request);
      EXPECT_EQ(plan.divisions, blocks);
      trial.Stream(*manager, request, plan);
      EXPECT_EQ(trial.output, trial.expected) << blocks << " blocks";
    }
  }
}

TEST(Families, WhatNoMemoryHoldsGoesThroughTheOperationsOwnRunner)
{
  FamilyTrial<std::int32_t> trial("families-turn");
  FakeDevices               devices(1, FakeDevice::Options(), GetHostKernels());
  const auto                manager = devices.MakeManager();
  StreamedRequest           request = trial.MakeStreamedRequest(BackendChoice::CPU);
  request.memory = 2 * 17 * 11 * sizeof(std::int32_t);
  EXPECT_THROW(MakeStreamedPlan(*manager, request), DivisionsError) << "there is no folder for what lies between";
  request.spoolFolder = testing::TempDir();
  const StreamedPlan plan = MakeStreamedPlan(*manager, request);
  EXPECT_TRUE(plan.inSlabs);
  EXPECT_EQ(plan.bytesRead, trial.input.size() * sizeof(std::int32_t)) << "the runner says that it reads once";
  const StreamedReport report = trial.Stream(*manager, request, plan);
  EXPECT_EQ(trial.output, trial.expected);
  ASSERT_EQ(report.steps.size(), 2u);
  EXPECT_EQ(report.steps[0].first, "turning");
  EXPECT_EQ(report.steps[0].second, 0.5);

  request.memory = 17 * 11 * sizeof(std::int32_t) - 1;
  EXPECT_THROW(MakeStreamedPlan(*manager, request), DivisionsError) << "less than the runner takes at least";

  // A device has the room.
  request = trial.MakeStreamedRequest(BackendChoice::CUDA);
  request.memory = 24 * 17 * 11 * sizeof(std::int32_t);
  request.spoolFolder = testing::TempDir();
  const StreamedPlan held = MakeStreamedPlan(*manager, request);
  EXPECT_EQ(held.heldOnDevice, 0);
  trial.Stream(*manager, request, held);
  EXPECT_EQ(trial.output, trial.expected);
}

TEST(Families, AnOperationSaysWhyNoDeviceCanRunIt)
{
  FilterParameters alone;
  alone.Set("OnHostAlone", true);
  FamilyTrial<std::int32_t> trial("families-turn", alone);
  FakeDevices               devices(1, FakeDevice::Options(), GetHostKernels());
  const auto                manager = devices.MakeManager();
  EXPECT_EQ(manager->Execute(trial.MakeRequest(BackendChoice::Auto)).backend, "cpu");
  EXPECT_EQ(trial.output, trial.expected);
  const auto expectObjection = [&](const ExecutionRequest & request) {
    try
    {
      manager->Execute(request);
      ADD_FAILURE() << "a device has run it";
    }
    catch (const Error & error)
    {
      EXPECT_NE(std::string(error.what()).find("turning is asked of the host alone"), std::string::npos)
        << error.what();
    }
  };
  expectObjection(trial.MakeRequest(BackendChoice::CUDA));
  // So does what is made of it.
  const auto sequence = std::make_shared<SequenceOperation>();
  sequence->stages = { trial.operation, trial.operation };
  trial.operation = sequence;
  expectObjection(trial.MakeRequest(BackendChoice::CUDA));
}

TEST(Families, KernelsSayWhoseTransformsTheyTake)
{
  FamilyTrial<std::int32_t> trial("families-turn");
  FakeDevices               devices(1, FakeDevice::Options(), GetHostKernels());
  const auto                manager = devices.MakeManager();
  const auto                sequence = std::make_shared<SequenceOperation>();
  sequence->stages = { trial.operation, trial.operation };
  for (const BackendChoice backend : { BackendChoice::CPU, BackendChoice::CUDA })
  {
    EXPECT_EQ(manager->Execute(trial.MakeRequest(backend)).transforms, "by hand");
    ExecutionRequest request = trial.MakeRequest(backend);
    request.operation = sequence;
    EXPECT_EQ(manager->Execute(request).transforms, "by hand");
    EXPECT_EQ(trial.output, trial.input) << "turned twice";
  }
  FamilyTrial<std::int64_t> other("families-sum");
  EXPECT_EQ(manager->Execute(other.MakeRequest(BackendChoice::CPU)).transforms, "");
}

TEST(Families, TheTableHasTheirRowsOnceAndBeforeThoseOfVoxels)
{
  const std::vector<FilterDescription> & before = GetFilters();
  const std::string                      first = before.front().name;
  AddFilters(AddRows);
  const std::size_t count = GetFilters().size();
  AddFilters(AddRows);
  EXPECT_EQ(GetFilters().size(), count);
  std::vector<std::string> names;
  for (const FilterDescription & filter : GetFilters())
  {
    names.push_back(filter.name);
  }
  const auto placeOf = [&](const char * name) { return std::find(names.begin(), names.end(), name) - names.begin(); };
  EXPECT_LT(placeOf("mean"), placeOf("families-sum"));
  EXPECT_LT(placeOf("families-turn"), placeOf("identity"));
  EXPECT_EQ(std::count(names.begin(), names.end(), "families-sum"), 1);
  EXPECT_EQ(before.front().name, first) << "rows that a caller has stay where they are";

  EXPECT_THROW(AddFilters(AddRowsOfATakenName), ParameterError);
  EXPECT_EQ(GetFilters().size(), count);
}

} // namespace
