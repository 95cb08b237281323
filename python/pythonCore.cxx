/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The engine for Python: its table of filters, operations made from it, and runs over arrays.
#include "pythonCore.h"

#include "chunkwiseBlockForest.h"
#include "chunkwiseBoundedGrid.h"
#include "chunkwiseLabelBlocks.h"
#include "chunkwiseFilters.h"
#include "chunkwiseHostMemory.h"
#include "chunkwiseNetworkModel.h"
#include "chunkwiseOutOfCoreRunner.h"
#include "chunkwiseReconstructionOperation.h"
#include "chunkwiseRegions.h"
#include "chunkwiseResampleOperation.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseStatistics.h"
#include "chunkwiseStatisticsOperation.h"
#include "chunkwiseSummedAreaTableCarry.h"

#include <chrono>
#include <map>
#include <thread>

namespace chunkwise::python
{

Executor *
GetExecutor(unsigned int threads)
{
  static auto & executors = *new std::map<unsigned int, std::unique_ptr<Executor>>;
  if (threads == 0)
  {
    return nullptr;
  }
  // Called with Python's lock, which is this map's, too.
  auto & executor = executors[threads];
  if (!executor)
  {
    executor = MakeThreadExecutor(threads);
  }
  return executor.get();
}

Executor &
GetExecutorFor(unsigned int threads)
{
  static const unsigned int processors = GetNumberOfProcessors();
  return *GetExecutor(threads ? threads : processors);
}

nb::dict
Describe(const ExecutionReport & report)
{
  nb::dict result;
  result["backend"] = report.backend;
  result["transforms"] = report.transforms;
  result["warnings"] = report.warnings;
  result["chunks"] = report.plan.chunks.size();
  result["devices"] = report.deviceNames;
  result["chunks_per_device"] = report.chunksPerDevice;
  result["chunks_on_host"] = report.chunksOnHost;
  result["peak_device"] = report.peakDevice;
  result["peak_pinned"] = report.peakPinned;
  result["peak_host"] = report.peakHost;
  result["bytes_to_device"] = report.bytesToDevice;
  result["bytes_to_host"] = report.bytesToHost;
  result["retries"] = report.retries;
  nb::list figures;
  for (const auto & figure : report.figures)
  {
    figures.append(nb::make_tuple(figure.first, figure.second));
  }
  result["figures"] = figures;
  return result;
}

} // namespace chunkwise::python

namespace
{

using namespace chunkwise;
using namespace chunkwise::python;
using namespace nb::literals;

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;
using WritableArray = nb::ndarray<nb::device::cpu>;

PixelType
KindOf(const nb::dlpack::dtype & type)
{
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  const int  sizes[] = { 8, 16, 32, 64 };
  for (int i = 0; i < 4 && type.lanes == 1; ++i)
  {
    if (type.bits == sizes[i] && code == nb::dlpack::dtype_code::UInt)
    {
      return static_cast<PixelType>(2 * i);
    }
    if (type.bits == sizes[i] && code == nb::dlpack::dtype_code::Int)
    {
      return static_cast<PixelType>(2 * i + 1);
    }
    if (i >= 2 && type.bits == sizes[i] && code == nb::dlpack::dtype_code::Float)
    {
      return i == 2 ? PixelType::Float32 : PixelType::Float64;
    }
  }
  throw ParameterError("an array's numbers are of a type that no image has");
}

/** The view of an array whose first voxel is at `lower`. */
template <typename TArray>
BufferView
ToView(const TArray & array, const Integers & lower)
{
  const std::size_t dimension = array.ndim();
  if (dimension > static_cast<std::size_t>(MaxDimension) || dimension != lower.size())
  {
    throw ParameterError("an array has " + std::to_string(dimension) + " dimensions, its place has " +
                         std::to_string(lower.size()));
  }
  BufferView view;
  view.data = const_cast<void *>(static_cast<const void *>(array.data()));
  view.kind = KindOf(array.dtype());
  view.box.lower = ToCoordinates(lower, 0);
  view.box.upper = Coordinates::Filled(1);
  view.stride = Coordinates::Filled(1);
  for (std::size_t a = 0; a < dimension; ++a)
  {
    const int         axis = static_cast<int>(a);
    const std::size_t from = dimension - 1 - a;
    const auto        extent = static_cast<std::int64_t>(array.shape(from));
    view.box.upper[axis] = view.box.lower[axis] + extent;
    // The step of an axis of one voxel means nothing.
    view.stride[axis] = extent > 1 ? array.stride(from) : 1;
  }
  return view;
}

} // namespace

BufferView
chunkwise::python::ToView(const DeviceArray & array, const Integers & lower)
{
  const std::size_t dimension = array.shape.size();
  if (dimension != array.strides.size() || dimension != lower.size())
  {
    throw ParameterError("an array has " + std::to_string(dimension) + " dimensions, " +
                         std::to_string(array.strides.size()) + " strides, and a place of " +
                         std::to_string(lower.size()));
  }
  BufferView view;
  view.data = reinterpret_cast<void *>(array.data);
  view.kind = PixelTypeFromName(array.kind);
  view.box.lower = ToCoordinates(lower, 0);
  view.box.upper = Coordinates::Filled(1);
  view.stride = Coordinates::Filled(1);
  for (std::size_t a = 0; a < dimension; ++a)
  {
    const int         axis = static_cast<int>(a);
    const std::size_t from = dimension - 1 - a;
    view.box.upper[axis] = view.box.lower[axis] + array.shape[from];
    view.stride[axis] = array.strides[from];
  }
  return view;
}

namespace
{

nb::object
ToPython(const PixelValue & value)
{
  if (!value.IsInteger())
  {
    return nb::cast(value.ToDouble());
  }
  return value.IsNegative() ? nb::cast(value.As<std::int64_t>()) : nb::cast(value.As<std::uint64_t>());
}

nb::bytes
ToBytes(const ChunkState & data)
{
  return nb::bytes(reinterpret_cast<const char *>(data.data()), data.size());
}

ChunkState
FromBytes(const nb::bytes & bytes)
{
  const auto * const begin = static_cast<const unsigned char *>(bytes.data());
  return ChunkState(begin, begin + bytes.size());
}

//
// The table
//

const char *
TypeName(ParameterType type)
{
  switch (type)
  {
    case ParameterType::Flag:
      return "flag";
    case ParameterType::Integer:
      return "integer";
    case ParameterType::Integers:
      return "integers";
    case ParameterType::Real:
      return "real";
    case ParameterType::Reals:
      return "reals";
    case ParameterType::PixelValue:
      return "value";
    case ParameterType::Choice:
      return "choice";
    case ParameterType::Kernel:
      return "kernel";
    default:
      return "network";
  }
}

const char *
CountName(const ParameterDescription & parameter)
{
  if (parameter.type != ParameterType::Integers && parameter.type != ParameterType::Reals)
  {
    return "one";
  }
  switch (parameter.count)
  {
    case ParameterCount::PerSpatialAxis:
      return "spatial";
    case ParameterCount::PerAxis:
      return "axes";
    case ParameterCount::Two:
      return "two";
    default:
      return "any";
  }
}

const char *
OutputName(DefaultOutput output)
{
  switch (output)
  {
    case DefaultOutput::Input:
      return "input";
    case DefaultOutput::Real:
      return "real";
    case DefaultOutput::RealSum:
      return "real-sum";
    case DefaultOutput::InputUnlessSigned:
      return "input-unless-signed";
    case DefaultOutput::Label:
      return "label";
    case DefaultOutput::Class:
      return "class";
    default:
      return "sum";
  }
}

/** A default as Python has it; None where there is none. */
nb::object
DefaultOf(const ParameterDescription & parameter)
{
  if (parameter.type == ParameterType::Flag)
  {
    return nb::cast(parameter.defaultText == "on");
  }
  if (parameter.defaultText.empty())
  {
    return nb::none();
  }
  if (!parameter.provisionalText.empty() && parameter.defaultText == "auto")
  {
    return nb::cast(parameter.defaultText);
  }
  const ParameterValue value = ParseParameter(parameter, parameter.defaultText);
  if (const auto * const integers = std::get_if<Integers>(&value))
  {
    return integers->size() == 1 ? nb::cast(integers->front()) : nb::object(nb::tuple(nb::cast(*integers)));
  }
  if (const auto * const reals = std::get_if<std::vector<double>>(&value))
  {
    return reals->size() == 1 ? nb::cast(reals->front()) : nb::object(nb::tuple(nb::cast(*reals)));
  }
  if (const auto * const number = std::get_if<PixelValue>(&value))
  {
    return ToPython(*number);
  }
  return nb::cast(std::get<std::string>(value));
}

const char *
MarkerName(MarkerRule marker)
{
  switch (marker)
  {
    case MarkerRule::Input:
      return "input";
    case MarkerRule::Shifted:
      return "shifted";
    case MarkerRule::Next:
      return "next";
    case MarkerRule::Border:
      return "border";
    case MarkerRule::Window:
      return "window";
    default:
      return "none";
  }
}

const char *
GivesName(ReconstructionGives gives)
{
  return gives == ReconstructionGives::Image ? "image" : gives == ReconstructionGives::Residue ? "residue" : "extrema";
}

nb::list
DescribeFilters()
{
  nb::list filters;
  for (const FilterDescription & filter : GetFilters())
  {
    nb::list parameters;
    for (const ParameterDescription & parameter : filter.parameters)
    {
      nb::dict row;
      row["name"] = parameter.name;
      row["option"] = parameter.option;
      row["type"] = TypeName(parameter.type);
      row["count"] = CountName(parameter);
      row["help"] = parameter.help;
      row["default"] = DefaultOf(parameter);
      row["example"] = parameter.exampleText;
      row["required"] = parameter.required;
      row["minimum"] = parameter.minimum;
      row["maximum"] = parameter.maximum;
      row["above_minimum"] = parameter.aboveMinimum;
      row["choices"] = nb::tuple(nb::cast(parameter.choices));
      row["choice_per_axis"] = parameter.choicePerAxis;
      row["can_be_auto"] = !parameter.provisionalText.empty();
      row["only_with"] = nb::make_tuple(parameter.onlyWithName, parameter.onlyWithValue);
      parameters.append(row);
    }
    nb::list inputs;
    for (const InputDescription & input : filter.additionalInputs)
    {
      nb::dict row;
      row["name"] = input.name;
      row["option"] = input.option;
      row["help"] = input.help;
      row["required"] = input.required;
      row["before"] = input.before;
      row["own_kind"] = input.ownKind;
      inputs.append(row);
    }
    nb::dict row;
    row["name"] = filter.name;
    row["group"] = filter.group;
    row["title"] = filter.title;
    row["output"] = OutputName(filter.output);
    row["can_be_stage"] = filter.canBeStage;
    row["has_grid"] = filter.outputImage != nullptr;
    row["promises_bits"] = filter.promisesBits;
    row["marker"] = MarkerName(filter.reconstruction.marker);
    row["erosion"] = filter.reconstruction.erosion;
    row["gives"] = GivesName(filter.reconstruction.gives);
    row["parameters"] = parameters;
    row["inputs"] = inputs;
    filters.append(row);
  }
  return filters;
}

/** A kernel, or several: their extent, an array with a row of voxels, x fastest, for each, and whether the rows are
 * taken in reverse. */
std::shared_ptr<const KernelStack>
ToKernels(const nb::handle & value)
{
  using Voxels = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  const auto pair = nb::cast<nb::tuple>(value);
  const auto extent = nb::cast<Integers>(pair[0]);
  const auto voxels = nb::cast<Voxels>(pair[1]);
  auto       stack = std::make_shared<KernelStack>();
  stack->extent = ToCoordinates(extent, 1);
  const auto reverses = nb::cast<bool>(pair[2]);
  for (std::size_t k = 0; k < voxels.shape(0); ++k)
  {
    const double * const begin = voxels.data() + (reverses ? voxels.shape(0) - 1 - k : k) * voxels.shape(1);
    stack->kernels.emplace_back(begin, begin + voxels.shape(1));
  }
  return stack;
}

PixelValue
ToPixelValue(const nb::handle & value)
{
  if (nb::isinstance<nb::float_>(value))
  {
    return PixelValue(nb::cast<double>(value));
  }
  // The text of any integer is one that the engine reads, or refuses with its own words.
  return PixelValue::FromText(nb::cast<std::string>(nb::str(value)));
}

ParameterValue
ToParameter(const ParameterDescription & parameter, const nb::handle & value)
{
  switch (parameter.type)
  {
    case ParameterType::Flag:
      return nb::cast<bool>(value);
    case ParameterType::Integer:
      return Integers{ nb::cast<std::int64_t>(value) };
    case ParameterType::Integers:
      return nb::cast<Integers>(value);
    case ParameterType::Real:
      return std::vector<double>{ nb::cast<double>(value) };
    case ParameterType::Reals:
      return nb::cast<std::vector<double>>(value);
    case ParameterType::PixelValue:
      return ToPixelValue(value);
    case ParameterType::Choice:
      return nb::cast<std::string>(value);
    case ParameterType::Kernel:
      return ToKernels(value);
#ifdef CHUNKWISE_HAS_NETWORKS
    case ParameterType::Network:
      return ReadNetworkModel(nb::cast<std::string>(value));
#endif
    default:
      throw ParameterError("a parameter of a type that this build has not");
  }
}

FilterParameters
ToParameters(const std::string & name, const nb::dict & given)
{
  const FilterDescription & filter = GetFilter(name);
  FilterParameters          parameters;
  for (const auto item : given)
  {
    const auto                         key = nb::cast<std::string>(item.first);
    const ParameterDescription * const parameter = filter.FindParameter(key);
    if (!parameter)
    {
      throw ParameterError(key + ": " + name + " has no parameter of this name");
    }
    try
    {
      parameters.Set(key, ToParameter(*parameter, item.second));
    }
    catch (const std::bad_cast &)
    {
      throw ParameterError(key + ": " + nb::cast<std::string>(nb::repr(item.second)) +
                           " is not a value that it can have");
    }
    catch (const ParameterError & error)
    {
      const std::string text = error.what();
      throw ParameterError(text.compare(0, key.size() + 1, key + ":") == 0 ? text : key + ": " + text);
    }
  }
  return parameters;
}

/** The description of an image: extent, kinds; spacing, origin and the names of further inputs may be empty. */
FilterImage
ToImage(const Integers & extent, const std::string & inputKind, const std::string & outputKind,
        const std::vector<double> & spacing, const std::vector<double> & origin,
        const std::vector<std::string> & further)
{
  FilterImage image;
  image.dimension = static_cast<int>(extent.size());
  image.extent = ToCoordinates(extent, 1);
  image.inputKind = PixelTypeFromName(inputKind);
  image.outputKind = PixelTypeFromName(outputKind);
  std::copy_n(spacing.begin(), std::min(spacing.size(), extent.size()), image.spacing);
  std::copy_n(origin.begin(), std::min(origin.size(), extent.size()), image.origin);
  image.additionalInputs = further;
  return image;
}

OperationHandle
MakeOperation(const std::string & name, const nb::dict & parameters, const Integers & extent,
              const std::string & inputKind, const std::string & outputKind, const std::vector<double> & spacing,
              const std::vector<double> & origin, const std::vector<std::string> & further)
{
  FilterImage            image = ToImage(extent, inputKind, outputKind, spacing, origin, further);
  const FilterParameters checked = ToParameters(name, parameters);
  const std::int64_t     components = GetFilterOutputComponents(name, checked, image);
  if (components > 0)
  {
    image.extent[MaxDimension - 1] = components;
  }
  return { MakeFilterOperation(name, checked, image), components };
}

OperationHandle
MakeSequence(const std::vector<OperationHandle> & stages, const Integers & extent)
{
  const auto sequence = std::make_shared<SequenceOperation>();
  for (const OperationHandle & stage : stages)
  {
    sequence->stages.push_back(stage.operation);
  }
  sequence->Validate(ToCoordinates(extent, 1));
  return { sequence };
}

const char *
ScheduleName(const Operation & operation)
{
  switch (operation.GetSchedule())
  {
    case Schedule::Independent:
      return "independent";
    case Schedule::Sweep:
      return "sweep";
    case Schedule::TwoPass:
      return "two-pass";
    case Schedule::Fixpoint:
      return "fixpoint";
    default:
      return "passes";
  }
}

//
// Runs
//

RunOptions
MakeOptions(const std::string & backend, const std::vector<int> & devices, std::size_t deviceMemory,
            std::size_t pinnedMemory, std::size_t hostMemory, unsigned int threads, nb::object progress)
{
  RunOptions options;
  if (backend != "auto" && backend != "cpu" && backend != "cuda")
  {
    throw ParameterError("backend: '" + backend + "' is none of auto, cpu, cuda");
  }
  options.backend = backend == "cpu"    ? BackendChoice::CPU
                    : backend == "cuda" ? BackendChoice::CUDA
                                        : BackendChoice::Auto;
  options.devices = devices;
  options.budgets = { deviceMemory, pinnedMemory, hostMemory };
  options.threads = threads;
  options.progress = std::move(progress);
  return options;
}

} // namespace

ExecutionRequest
chunkwise::python::MakeRequest(const OperationPointer & operation, const Integers & extent, const Box & region,
                               const RunOptions & options)
{
  ExecutionRequest request;
  request.operation = operation;
  request.image = Box::FromExtent(ToCoordinates(extent, 1));
  request.region = region;
  request.backend = options.backend;
  request.devices = options.devices;
  request.budgets = options.budgets;
  request.executor = GetExecutor(options.threads);
  return request;
}

namespace
{

nb::dict
DescribePlan(const Plan & plan, std::size_t dimension)
{
  nb::dict result;
  nb::list chunks;
  for (const Chunk & chunk : plan.chunks)
  {
    chunks.append(nb::make_tuple(ToTuple(chunk.outputBox, dimension), ToTuple(chunk.inputBox, dimension)));
  }
  result["chunks"] = chunks;
  result["chunk_extent"] = ToTuple(plan.chunkExtent, dimension);
  result["device_bytes"] = plan.deviceBytes;
  result["scratch_bytes"] = plan.scratchBytes;
  result["bytes_to_device"] = plan.bytesToDevice;
  result["bytes_to_host"] = plan.bytesToHost;
  result["seconds"] = plan.seconds;
  return result;
}

template <typename TArray>
void
PlaceOn(ExecutionRequest &, const TArray &)
{}

} // namespace

void
chunkwise::python::PlaceOn(ExecutionRequest & request, const DeviceArray & array)
{
  auto * const stream = reinterpret_cast<void *>(array.stream);
  if (request.imageDevice >= 0 && request.imageDevice != array.device)
  {
    throw ParameterError("the images lie on devices " + std::to_string(request.imageDevice) + " and " +
                         std::to_string(array.device) + "; a run needs them on one");
  }
  if (request.imageDevice < 0)
  {
    request.imageDevice = array.device;
    request.stream = stream;
  }
  else if (request.stream != stream)
  {
    Manager::GetGlobal().GetDevices().at(static_cast<std::size_t>(array.device))->Synchronize(stream);
  }
}

namespace
{

/** The engine's last axis is that of components; inputs have one value for all. */
void
MakeRoomForComponents(ExecutionRequest & request, std::int64_t components)
{
  constexpr int last = MaxDimension - 1;
  request.image.upper[last] = request.region.upper[last] = components;
  for (BufferView & input : request.inputs)
  {
    input.box.upper[last] = components;
    input.stride[last] = 0;
  }
}

/** A view whose first axis becomes the last one. */
BufferView
WithComponentsLast(const BufferView & view)
{
  BufferView turned = view;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const int to = (a + MaxDimension - 1) % MaxDimension;
    turned.box.lower[to] = view.box.lower[a];
    turned.box.upper[to] = view.box.upper[a];
    turned.stride[to] = view.stride[a];
  }
  return turned;
}

/** Runs, and lets the operation's handle know how long it took. */
ExecutionReport
RunTimed(OperationHandle & handle, ExecutionRequest & request, const RunOptions & options)
{
  using Clock = std::chrono::steady_clock;
  PythonMonitor monitor(options.progress);
  const auto    voxels = request.region.IsEmpty() ? 0 : request.region.NumberOfVoxels();
  const bool    isTimed = options.progress.is_none() && !request.executor && request.imageDevice < 0;
  request.isShort = isTimed && handle.times.AreShort(voxels);
  const auto      begin = Clock::now();
  ExecutionReport report = Unlocked([&] { return Manager::GetGlobal().Execute(request, &monitor); });
  if (isTimed && report.deviceNames.empty())
  {
    handle.times.Add(request.isShort, voxels, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return report;
}

template <typename TArray, typename TOutput>
nb::dict
Execute(OperationHandle & handle, const std::vector<TArray> & inputs, const Integers & inputLower,
        const TOutput & output, const Integers & outputLower, const Integers & extent, const Integers & lower,
        const Integers & upper, const RunOptions & options)
{
  ExecutionRequest request = MakeRequest(handle.operation, extent, ToBox(lower, upper), options);
  for (const TArray & array : inputs)
  {
    request.inputs.push_back(ToView(array, inputLower));
    PlaceOn(request, array);
  }
  if (handle.components == 0)
  {
    request.output = ToView(output, outputLower);
  }
  else
  {
    MakeRoomForComponents(request, handle.components);
    // The array has them along its last axis, the engine's first one.
    Integers lowerOfAll{ 0 };
    lowerOfAll.insert(lowerOfAll.end(), outputLower.begin(), outputLower.end());
    request.output = WithComponentsLast(ToView(output, lowerOfAll));
  }
  PlaceOn(request, output);
  return Describe(RunTimed(handle, request, options));
}

/** The preparation that all runs over arrays of one shape and kind share, so that small ones do not wait for it. */
class PreparedRun
{
public:
  PreparedRun(OperationHandle handle, const std::string & inputKind, const std::string & outputKind,
              const Integers & extent, const Integers & lower, const Integers & upper, RunOptions options)
    : m_Handle(std::move(handle))
    , m_Options(std::move(options))
    , m_Request(MakeRequest(m_Handle.operation, extent, ToBox(lower, upper), m_Options))
    , m_Dimension(extent.size())
  {
    m_Request.inputs.push_back(DenseView(nullptr, PixelTypeFromName(inputKind), m_Request.image));
    m_Request.output = DenseView(nullptr, PixelTypeFromName(outputKind), m_Request.region);
  }
  /** Both arrays are dense, of the kinds and shapes that were said; the caller knows. */
  std::vector<std::string>
  Run(const AnyArray & input, const WritableArray & output)
  {
    if (input.ndim() != m_Dimension || output.ndim() != m_Dimension || input.size() != CountOf(m_Request.inputs[0]) ||
        output.size() != CountOf(m_Request.output))
    {
      throw ParameterError("an array has another shape than those that the run was prepared for");
    }
    // Several threads may run it.
    ExecutionRequest request = m_Request;
    request.inputs[0].data = const_cast<void *>(static_cast<const void *>(input.data()));
    request.output.data = output.data();
    return RunTimed(m_Handle, request, m_Options).warnings;
  }

private:
  static std::size_t
  CountOf(const BufferView & view)
  {
    return static_cast<std::size_t>(view.box.NumberOfVoxels());
  }

  OperationHandle   m_Handle;
  const RunOptions  m_Options;
  ExecutionRequest  m_Request;
  const std::size_t m_Dimension;
};

/** Fills `output`, one voxel after the other, with the values of an image at points: an array of doubles for each of
 * its axes, x first, to which `shift` is added. */
std::vector<std::string>
SampleAtPoints(const AnyArray &                                                                image,
               const std::vector<nb::ndarray<double, nb::ro, nb::device::cpu, nb::c_contig>> & points, double shift,
               const std::string & interpolation, const std::string & outside, const nb::handle & value, bool prefilter,
               const WritableArray & output, const RunOptions & options)
{
  const auto numberOf = [](const std::string & parameter, const std::string & choice) {
    const auto & choices = GetFilter("resample").FindParameter(parameter)->choices;
    return std::find(choices.begin(), choices.end(), choice) - choices.begin();
  };
  const auto       operation = std::make_shared<ResampleOperation>();
  const BufferView view = ToView(image, Integers(image.ndim(), 0));
  operation->image = view.box.upper;
  operation->output = Coordinates::Filled(1);
  operation->output[0] = static_cast<std::int64_t>(output.size());
  operation->interpolation = static_cast<Interpolation>(numberOf("Interpolation", interpolation));
  operation->outside = static_cast<ResampleOutside>(numberOf("Outside", outside));
  operation->value = ToPixelValue(value);
  operation->antialias = false;
  operation->prefilter = prefilter;
  for (std::size_t i = 0; i < ResampleOperation::Axes; ++i)
  {
    operation->areThere[i] = i < points.size();
    operation->points[i] = i < points.size() ? points[i].data() : nullptr;
    operation->offset[i] = i < points.size() ? shift : 0;
    if (i < points.size() && points[i].size() != output.size())
    {
      throw ParameterError("an axis has another number of points than the output has voxels");
    }
  }
  ExecutionRequest request;
  request.operation = operation;
  request.image = Box::FromExtent(operation->image);
  request.region = Box::FromExtent(operation->output);
  request.inputs.push_back(view);
  request.output = DenseView(output.data(), ToView(output, Integers(output.ndim(), 0)).kind, request.region);
  request.backend = options.backend;
  request.budgets = options.budgets;
  request.executor = GetExecutor(options.threads);
  // So many points take less time than waking threads does.
  request.isShort = !request.executor && output.size() < 8192;
  operation->CheckKinds({ view.kind }, request.output.kind);
  operation->Validate(operation->image);
  PythonMonitor monitor(options.progress);
  return Unlocked([&] { return Manager::GetGlobal().Execute(request, &monitor); }).warnings;
}

/** Without voxels: what Execute would do. */
ExecutionRequest
MakeEmptyRequest(const OperationHandle & handle, const std::vector<std::string> & inputKinds,
                 const std::string & outputKind, const Integers & extent, const Box & region,
                 const RunOptions & options)
{
  ExecutionRequest request = MakeRequest(handle.operation, extent, region, options);
  const Box        needed = GetInputBox(*handle.operation, region, request.image);
  for (const std::string & kind : inputKinds)
  {
    request.inputs.push_back(DenseView(nullptr, PixelTypeFromName(kind), needed));
  }
  request.output = DenseView(nullptr, PixelTypeFromName(outputKind), region);
  return request;
}

nb::dict
MakeThePlan(const OperationHandle & handle, const std::vector<std::string> & inputKinds, const std::string & outputKind,
            const Integers & extent, const Integers & lower, const Integers & upper, const RunOptions & options)
{
  const ExecutionRequest request =
    MakeEmptyRequest(handle, inputKinds, outputKind, extent, ToBox(lower, upper), options);
  return DescribePlan(Manager::GetGlobal().MakePlanFor(request), extent.size());
}

/** The kinds that the operation takes; throws what says why they are none. */
void
CheckKinds(const OperationHandle & handle, const std::vector<std::string> & inputKinds, const std::string & outputKind)
{
  std::vector<PixelType> kinds;
  for (const std::string & kind : inputKinds)
  {
    kinds.push_back(PixelTypeFromName(kind));
  }
  if (static_cast<int>(kinds.size()) != handle.operation->GetNumberOfInputs())
  {
    throw ParameterError(handle.operation->GetName() + " takes " +
                         std::to_string(handle.operation->GetNumberOfInputs()) + " images, not " +
                         std::to_string(kinds.size()));
  }
  handle.operation->CheckKinds(kinds, PixelTypeFromName(outputKind));
}

template <typename TArray>
std::size_t
DimensionOf(const TArray & array)
{
  return array.ndim();
}

std::size_t
DimensionOf(const DeviceArray & array)
{
  return array.shape.size();
}

/** The numbers that stand for "auto" in a parameter of a filter, from the image itself. */
template <typename TArray>
std::vector<double>
Estimate(const std::string & filter, const std::string & parameter, const OperationHandle & handle,
         const std::vector<TArray> & inputs, const RunOptions & options)
{
  const std::size_t dimension = DimensionOf(inputs.at(0));
  const BufferView  view = ToView(inputs[0], Integers(dimension, 0));
  Integers          extent;
  for (std::size_t a = 0; a < dimension; ++a)
  {
    extent.push_back(view.box.upper[static_cast<int>(a)]);
  }
  ExecutionRequest request = MakeRequest(handle.operation, extent, view.box, options);
  for (const TArray & input : inputs)
  {
    request.inputs.push_back(ToView(input, Integers(dimension, 0)));
    PlaceOn(request, input);
  }
  PythonMonitor                      monitor(options.progress);
  const ParameterDescription * const found = GetFilter(filter).FindParameter(parameter);
  if (!found)
  {
    throw ParameterError(filter + " has no parameter " + parameter);
  }
  return Unlocked([&] { return EstimateParameter(Manager::GetGlobal(), request, *found, &monitor); });
}

//
// Parts of schedules
//

const SummedAreaTableOperation &
AsTable(const OperationHandle & handle)
{
  const auto * const table = dynamic_cast<const SummedAreaTableOperation *>(handle.operation.get());
  if (!table)
  {
    throw ParameterError(handle.operation->GetName() + " is not a summed-area table");
  }
  return *table;
}

/** The table that goes on at index `begin` of the swept axis. */
OperationHandle
WithCarry(const OperationHandle & handle, std::int64_t begin, const nb::bytes & carry)
{
  const auto next = std::make_shared<SummedAreaTableOperation>(AsTable(handle));
  next->begin = begin;
  next->carry = FromBytes(carry);
  return { next };
}

/** The carry of the voxels up to the end of the array; it begins where the operation's own carry stands. */
nb::bytes
Advance(const OperationHandle & handle, const AnyArray & input, const Integers & lower, const std::string & outputKind,
        unsigned int threads)
{
  const SummedAreaTableOperation & table = AsTable(handle);
  const BufferView                 view = ToView(input, lower);
  const PixelType                  kind = PixelTypeFromName(outputKind);
  Executor &                       executor = GetExecutorFor(threads);
  return ToBytes(Unlocked([&] { return AdvanceCarry(table, view, kind, view.box, executor); }));
}

const ReconstructionOperation &
AsReconstruction(const OperationHandle & handle)
{
  const auto * const operation = dynamic_cast<const ReconstructionOperation *>(handle.operation.get());
  if (!operation)
  {
    throw ParameterError(handle.operation->GetName() + " is not a reconstruction");
  }
  return *operation;
}

/** A block of a reconstruction, whose first voxel is at `lower` of an image, as others have to know it. */
nb::bytes
Contract(const OperationHandle & handle, const AnyArray & state, const AnyArray & mask, const Integers & lower,
         const Integers & extent)
{
  const ReconstructionOperation & operation = AsReconstruction(handle);
  const BufferView                views[] = { ToView(state, lower), ToView(mask, lower) };
  const Box                       image = Box::FromExtent(ToCoordinates(extent, 1));
  return ToBytes(Unlocked([&] { return ContractBlock(operation, views[0], views[1], image); }));
}

/** `cuts` are those of each axis; the result has what each block's border becomes, or nothing. */
nb::list
Join(const OperationHandle & handle, const std::string & kind, const std::vector<Integers> & cuts,
     const std::vector<nb::bytes> & contractions)
{
  const ReconstructionOperation & operation = AsReconstruction(handle);
  BlockCuts                       blocks;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const auto axis = static_cast<std::size_t>(a);
    blocks.cuts[a] = axis < cuts.size() ? cuts[axis] : Integers{ 0, 1 };
  }
  std::vector<ChunkState> parts;
  for (const nb::bytes & each : contractions)
  {
    parts.push_back(FromBytes(each));
  }
  const std::vector<ChunkState> borders =
    Unlocked([&] { return JoinBlocks(operation, PixelTypeFromName(kind), blocks, parts); });
  nb::list result;
  for (const ChunkState & border : borders)
  {
    result.append(ToBytes(border));
  }
  return result;
}

void
RaiseTheBorder(const OperationHandle & handle, const nb::bytes & border, const WritableArray & state,
               const Integers & lower, const Integers & extent)
{
  RaiseBorder(
    AsReconstruction(handle), FromBytes(border), ToView(state, lower), Box::FromExtent(ToCoordinates(extent, 1)));
}

/** A block of an image whose components are wanted, whose first voxel is at `lower`, as others have to know it. */
nb::bytes
SummariseTheLabels(const OperationHandle & handle, const AnyArray & block, const Integers & lower, unsigned int threads)
{
  const BufferView view = ToView(block, lower);
  Executor &       executor = GetExecutorFor(threads);
  return ToBytes(Unlocked([&] { return SummariseLabels(*handle.operation, view, executor); }));
}

/** The numberings of the labels of each block, and the number of components; `blocks` are where they begin and end. */
nb::tuple
JoinTheLabels(const OperationHandle & handle, const std::vector<std::pair<Integers, Integers>> & blocks,
              const std::vector<nb::bytes> & summaries)
{
  std::vector<Box>        boxes;
  std::vector<ChunkState> parts;
  for (const auto & [lower, upper] : blocks)
  {
    boxes.push_back(ToBox(lower, upper));
  }
  for (const nb::bytes & each : summaries)
  {
    parts.push_back(FromBytes(each));
  }
  std::uint64_t                 count = 0;
  const std::vector<ChunkState> solutions =
    Unlocked([&] { return JoinLabels(*handle.operation, boxes, parts, count); });
  nb::list result;
  for (const ChunkState & solution : solutions)
  {
    result.append(ToBytes(solution));
  }
  return nb::make_tuple(result, count);
}

void
WriteTheLabels(const OperationHandle & handle, const AnyArray & block, const nb::bytes & solution,
               const WritableArray & labels, const Integers & lower, unsigned int threads)
{
  const BufferView from = ToView(block, lower);
  const BufferView to = ToView(labels, lower);
  const ChunkState found = FromBytes(solution);
  Executor &       executor = GetExecutorFor(threads);
  Unlocked([&] { WriteLabels(*handle.operation, from, found, to, executor); });
}

/** The exact sums of an array, or of what an operation makes of it there, as bytes that add up in any order. */
template <typename TArray>
nb::bytes
Summarise(const TArray & input, const RunOptions & options)
{
  const BufferView view = ToView(input, Integers(DimensionOf(input), 0));
  ExecutionRequest request = MakeRequest(nullptr, Integers(), view.box, options);
  request.image = view.box;
  request.inputs = { view };
  PlaceOn(request, input);
  PythonMonitor monitor(options.progress);
  return ToBytes(Unlocked([&] { return Manager::GetGlobal().Summarise(MakeStatisticsRequest(request), &monitor); }));
}

nb::bytes
AddSummaries(const std::vector<nb::bytes> & summaries)
{
  const StatisticsOperation operation;
  ChunkState                total(operation.GetSummaryBytes(Box(), {}, PixelType::Float64));
  for (const nb::bytes & summary : summaries)
  {
    const ChunkState data = FromBytes(summary);
    if (data.size() != total.size())
    {
      throw ParameterError("a summary has " + std::to_string(data.size()) + " bytes, not " +
                           std::to_string(total.size()));
    }
    operation.MergeSummary(total, data);
  }
  return ToBytes(total);
}

nb::dict
DescribeStatistics(const std::string & kind, const nb::bytes & summary)
{
  const ImageStatistics statistics(PixelTypeFromName(kind), FromBytes(summary));
  nb::dict              result;
  result["count"] = statistics.GetCount();
  result["nans"] = statistics.GetNumberOfNaNs();
  result["infinities"] = statistics.GetNumberOfInfinities();
  result["sum"] = statistics.GetSum();
  if (statistics.GetCount() > 0)
  {
    result["mean"] = statistics.GetMean();
    result["variance"] = statistics.GetVariance();
    result["std"] = statistics.GetStandardDeviation();
    result["minimum"] = ToPython(statistics.GetMinimum());
    result["maximum"] = ToPython(statistics.GetMaximum());
  }
  return result;
}

//
// The manager
//

nb::list
DescribeDevices()
{
  nb::list devices;
  for (const auto & device : Manager::GetGlobal().GetDevices())
  {
    const DeviceDescription & description = device->GetDescription();
    nb::dict                  row;
    row["name"] = description.name;
    row["backend"] = description.backend;
    row["index"] = description.index;
    row["memory"] = description.totalMemory;
    devices.append(row);
  }
  return devices;
}

/** The device in whose memory so many bytes lie. */
int
DeviceOf(std::uintptr_t data, std::size_t bytes)
{
  const auto devices = Manager::GetGlobal().GetDevices();
  for (std::size_t i = 0; i < devices.size(); ++i)
  {
    if (devices[i]->Owns(reinterpret_cast<const void *>(data), bytes))
    {
      return static_cast<int>(i);
    }
  }
  throw ParameterError(devices.empty() ? "the array is in a device's memory, but no device can be used: " +
                                           Manager::GetGlobal().GetReasonForNoDevices()
                                       : "the array lies in the memory of none of the devices");
}

/** The description of the array in a DLPack capsule: address, shape, strides in voxels, kind. The capsule is used up;
 * the array lives as long as the fifth. */
nb::tuple
OpenCapsule(const nb::handle & capsule)
{
  const auto array = nb::cast<nb::ndarray<nb::ro>>(capsule);
  nb::list   shape;
  nb::list   strides;
  for (std::size_t a = 0; a < array.ndim(); ++a)
  {
    shape.append(array.shape(a));
    strides.append(array.stride(a));
  }
  const std::string kind = PixelTypeName(KindOf(array.dtype()));
  auto * const      kept = new nb::ndarray<nb::ro>(array);
  return nb::make_tuple(
    reinterpret_cast<std::uintptr_t>(array.data()),
    nb::tuple(shape),
    nb::tuple(strides),
    kind,
    nb::capsule(kept, [](void * owned) noexcept { delete static_cast<nb::ndarray<nb::ro> *>(owned); }));
}

nb::tuple
DescribeBudgets(const Budgets & budgets)
{
  return nb::make_tuple(budgets.device, budgets.pinned, budgets.host);
}

/** Python's exceptions that stand for the engine's, kept for the life of the process. */
struct Exceptions
{
  nb::object error;
  nb::object parameter;
  nb::object budget;
  nb::object device;
  nb::object aborted;
};

/** The argument of an option that every function takes. */
std::string
NameOfOption(const std::string & name)
{
  return name == "Devices" ? "devices" : name == "Backend" ? "backend" : "";
}

void
Translate(const std::exception_ptr & thrown, void * payload)
{
  const auto & types = *static_cast<Exceptions *>(payload);
  try
  {
    std::rethrow_exception(thrown);
  }
  catch (const ParameterError & error)
  {
    // Those of filters are worded where the filter is known (_filter.py).
    const auto text = [](const std::string & part) { return part.empty() ? nb::object(nb::none()) : nb::cast(part); };
    nb::object value = types.parameter(WordMessage(error.what(), { NameOfOption }));
    value.attr("parameter") = text(error.parameter);
    value.attr("value") = text(error.value);
    value.attr("allowed") = text(error.allowed);
    PyErr_SetObject(types.parameter.ptr(), value.ptr());
  }
  catch (const BudgetError & error)
  {
    nb::object value = types.budget(error.what());
    value.attr("needed") = error.needed;
    value.attr("budget") = error.budget;
    PyErr_SetObject(types.budget.ptr(), value.ptr());
  }
  catch (const DeviceError & error)
  {
    PyErr_SetString(types.device.ptr(), error.what());
  }
  catch (const Aborted & error)
  {
    PyErr_SetString(types.aborted.ptr(), error.what());
  }
  catch (const Error & error)
  {
    PyErr_SetString(types.error.ptr(), WordMessage(error.what(), { NameOfOption }).c_str());
  }
}

nb::object
NewException(nb::module_ & module, const char * name, const char * doc, const nb::object & bases)
{
  const std::string full = std::string("chunkwise.") + name;
  nb::object        type = nb::steal(PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr));
  if (!type.is_valid())
  {
    throw nb::python_error();
  }
  module.attr(name) = type;
  return type;
}

void
AddExceptions(nb::module_ & module)
{
  const auto builtin = [](PyObject * type) { return nb::borrow(type); };
  auto &     types = *new Exceptions;
  types.error = NewException(module, "Error", "Any failure of the engine.", builtin(PyExc_RuntimeError));
  const auto both = [&](PyObject * type) { return nb::make_tuple(types.error, builtin(type)); };
  types.parameter =
    NewException(module,
                 "ParameterError",
                 "A value that no run can serve; nothing was done. `parameter` is its name, `value` and "
                 "what is `allowed` are texts, each None where the message alone says it.",
                 both(PyExc_ValueError));
  for (const char * const name : { "parameter", "value", "allowed" })
  {
    types.parameter.attr(name) = nb::none();
  }
  types.budget = NewException(module,
                              "BudgetError",
                              "The least part of the work needs more memory than its budget: `needed` and `budget`, "
                              "bytes.",
                              both(PyExc_MemoryError));
  types.device = NewException(module, "DeviceError", "A call of a device failed.", builtin(types.error.ptr()));
  types.aborted = NewException(module, "Aborted", "The run was stopped.", builtin(types.error.ptr()));
  nb::register_exception_translator(Translate, &types);
}

//
// The module, part by part
//

void
AddTable(nb::module_ & module)
{
  module.def("filters", &DescribeFilters);
  module.def("nearest_word", &NearestWord);
  module.def("word_message", [](const std::string & message, const nb::dict & names, int dimension) {
    UserWords words{ [&names](const std::string & name) {
                      const nb::str key(name.c_str());
                      return names.contains(key) ? nb::cast<std::string>(names[key]) : std::string();
                    },
                     dimension };
    return WordMessage(message, words);
  });
  module.def("default_output_kind", [](const std::string & name, const std::string & kind) {
    return std::string(PixelTypeName(GetDefaultOutputKind(GetFilter(name), PixelTypeFromName(kind))));
  });
  module.def("common_kind", [](const std::string & a, const std::string & b) {
    return std::string(PixelTypeName(GetCommonKind(PixelTypeFromName(a), PixelTypeFromName(b))));
  });
}

void
AddOperations(nb::module_ & module)
{
  nb::class_<OperationHandle>(module, "Operation")
    .def_prop_ro("key", [](const OperationHandle & handle) { return handle.operation->GetKey(); })
    .def_prop_ro("name", [](const OperationHandle & handle) { return handle.operation->GetName(); })
    .def_prop_ro("keeps_states",
                 [](const OperationHandle & handle) {
                   const OutOfCoreRunner * const runner = handle.operation->GetOutOfCoreRunner();
                   return runner && runner->KeepsStates();
                 })
    .def_prop_ro("finds_components", [](const OperationHandle & handle) { return FindsComponents(*handle.operation); })
    .def_prop_ro("schedule", [](const OperationHandle & handle) { return ScheduleName(*handle.operation); })
    .def_prop_ro("runs_on_devices",
                 [](const OperationHandle & handle) {
                   const Operation & operation = *handle.operation;
                   return !operation.IsRunByRunner() && operation.GetObjectionToDevices().empty() &&
                          (!operation.GetOutputGrid() || GetBoundedGrid(operation));
                 })
    .def_prop_ro("wraps", [](const OperationHandle & handle) { return handle.operation->WrapsAround(); })
    .def_prop_ro("components", [](const OperationHandle & handle) { return handle.components; })
    .def_prop_ro("inputs", [](const OperationHandle & handle) { return handle.operation->GetNumberOfInputs(); })
    .def("halo",
         [](const OperationHandle & handle, const Integers & extent) {
           Halo halo = handle.operation->GetHalo(ToCoordinates(extent, 1));
           for (int a = 0; handle.operation->GetSchedule() == Schedule::TwoPass && a < MaxDimension; ++a)
           {
             // All of the image is needed, although chunks take nothing of each other.
             if (NeedsWholeAxis(*handle.operation, a, Box::FromExtent(ToCoordinates(extent, 1))))
             {
               halo.lower[a] = halo.upper[a] = WholeAxis;
             }
           }
           return nb::make_tuple(ToTuple(halo.lower, extent.size()), ToTuple(halo.upper, extent.size()));
         })
    .def("input_box",
         [](const OperationHandle & handle, const Integers & lower, const Integers & upper, const Integers & extent) {
           const Box image = Box::FromExtent(ToCoordinates(extent, 1));
           return ToTuple(GetInputBox(*handle.operation, ToBox(lower, upper), image), extent.size());
         })
    .def("needs_whole_axis",
         [](const OperationHandle & handle, int axis, const Integers & extent) {
           return NeedsWholeAxis(*handle.operation, axis, Box::FromExtent(ToCoordinates(extent, 1)));
         })
    .def("sweep_axis", [](const OperationHandle & handle, const Integers & extent) {
      return handle.operation->GetSchedule() == Schedule::Sweep
               ? handle.operation->GetSweepAxis(ToCoordinates(extent, 1))
               : -1;
    });
  nb::class_<RunOptions>(module, "Options");
  module.def("make_options",
             &MakeOptions,
             "backend"_a,
             "devices"_a,
             "device_memory"_a,
             "pinned_memory"_a,
             "memory"_a,
             "threads"_a,
             "progress"_a.none());
  module.def("make_operation", &MakeOperation);
  module.def("make_sequence", &MakeSequence);
  module.def("output_box",
             [](const std::string & name,
                const nb::dict &    parameters,
                const Integers &    extent,
                const std::string & inputKind,
                const std::string & outputKind) {
               const FilterImage image = ToImage(extent, inputKind, outputKind, {}, {}, {});
               return ToTuple(GetFilterOutputBox(name, ToParameters(name, parameters), image), extent.size());
             });
  module.def("check_kinds", &CheckKinds);
}

void
AddRuns(nb::module_ & module)
{
  nb::class_<DeviceArray>(module, "DeviceArray")
    .def("__init__",
         [](DeviceArray *       self,
            std::uintptr_t      data,
            const Integers &    shape,
            const Integers &    strides,
            const std::string & kind,
            int                 device,
            std::uintptr_t      stream) { new (self) DeviceArray{ data, shape, strides, kind, device, stream }; });
  module.def("device_of", &DeviceOf);
  module.def("open_capsule", &OpenCapsule);
  module.def("execute", &Execute<AnyArray, WritableArray>);
  module.def("execute", &Execute<DeviceArray, DeviceArray>);
  nb::class_<PreparedRun>(module, "PreparedRun")
    .def(nb::init<OperationHandle,
                  const std::string &,
                  const std::string &,
                  const Integers &,
                  const Integers &,
                  const Integers &,
                  RunOptions>())
    .def("run", &PreparedRun::Run);
  module.def("sample_at_points", &SampleAtPoints);
  module.def("plan", &MakeThePlan);
  module.def("estimate", &Estimate<AnyArray>);
  module.def("estimate", &Estimate<DeviceArray>);
  module.def("with_carry", &WithCarry);
  module.def("advance", &Advance);
  module.def("contract", &Contract);
  module.def("join", &Join);
  module.def("raise_border", &RaiseTheBorder);
  module.def("summarise_labels", &SummariseTheLabels);
  module.def("join_labels", &JoinTheLabels);
  module.def("write_labels", &WriteTheLabels);
  module.def("summarise", &Summarise<AnyArray>);
  module.def("summarise", &Summarise<DeviceArray>);
  module.def("add_summaries", &AddSummaries);
  module.def("describe_statistics", &DescribeStatistics);
}

void
AddManager(nb::module_ & module)
{
  module.def("devices", &DescribeDevices);
  module.def("reason_for_no_devices", [] { return Manager::GetGlobal().GetReasonForNoDevices(); });
  module.def("set_budgets", [](std::size_t device, std::size_t pinned, std::size_t host) {
    Manager::GetGlobal().SetBudgets({ device, pinned, host });
  });
  module.def("budgets", [] { return DescribeBudgets(Manager::GetGlobal().GetBudgets()); });
  module.def("held_memory", [] { return DescribeBudgets(Manager::GetGlobal().GetHeldMemory()); });
  module.def("release_memory", [] { Unlocked([] { Manager::GetGlobal().ReleaseMemory(); }); });
}

} // namespace

NB_MODULE(_core, module)
{
  AddExceptions(module);
  // Filters and their signatures live as long as the process.
  nb::set_leak_warnings(false);

#ifdef CHUNKWISE_HAS_NETWORKS
  AddNetworks();
#endif
  AddTable(module);
  AddOperations(module);
  AddRuns(module);
  AddStreams(module);
  AddMeasurements(module);
  AddArrays(module);
  AddManager(module);
}
