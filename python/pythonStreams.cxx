/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Runs whose images Python reads and writes: functions of a part of an image, and of the array that has its voxels.
#include "pythonCore.h"

#include "chunkwiseFilters.h"
#include "chunkwiseStatistics.h"
#include "chunkwiseStreamedRun.h"

#include <nanobind/stl/tuple.h>

#include <deque>
#include <mutex>
#include <tuple>

using namespace nanobind::literals;

namespace chunkwise::python
{

namespace
{

/** The extent, pixel type and units of an image that Python will read or write. */
struct ImageDescription
{
  Coordinates extent{};
  PixelType   kind{ PixelType::UInt8 };
  Coordinates unit{ Coordinates::Filled(1) };
};

/** Calls Python's function for parts of an image: one call at a time, and none after Close. */
class PythonImage
  : public ImageSource
  , public ImageSink
{
public:
  /** `lower` is added to where a part is. */
  PythonImage(const ImageDescription & description, std::size_t dimension, const Coordinates & lower = {})
    : m_Description(description)
    , m_Dimension(dimension)
    , m_Lower(lower)
  {}
  ~PythonImage() override = default;
  Coordinates
  GetExtent() const override
  {
    return m_Description.extent;
  }
  PixelType
  GetKind() const override
  {
    return m_Description.kind;
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.unit = m_Description.unit;
    access.wholeBoxes = true;
    return access;
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    this->Call<nb::ndarray<nb::numpy>>(box, view);
  }
  void
  Write(const Box & box, const BufferView & view) override
  {
    this->Call<nb::ndarray<nb::numpy, nb::ro>>(box, view);
  }
  void
  Finish() override
  {}

  /** Until Close, which comes before `function` goes. */
  void
  Open(const nb::object & function)
  {
    m_Function = &function;
  }
  /** Waits for the call that is running. Called without Python's lock. */
  void
  Close()
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    m_Function = nullptr;
  }

private:
  template <typename TArray>
  void
  Call(const Box & box, const BufferView & view)
  {
    // Python's lock comes second: who waits for the first one must not keep others from ending their call.
    const std::lock_guard<std::mutex> lock(m_Mutex);
    if (!m_Function)
    {
      throw Aborted();
    }
    const nb::gil_scoped_acquire python;
    (*m_Function)(this->ToSlices(box), this->ToArray<TArray>(box, view));
  }
  /** In NumPy's order, as the next one. */
  nb::tuple
  ToSlices(const Box & box) const
  {
    nb::list slices;
    for (int a = static_cast<int>(m_Dimension) - 1; a >= 0; --a)
    {
      const std::int64_t begin = box.lower[a] + m_Lower[a];
      const std::int64_t end = box.upper[a] + m_Lower[a];
      slices.append(nb::steal(PySlice_New(nb::cast(begin).ptr(), nb::cast(end).ptr(), nullptr)));
    }
    return nb::tuple(slices);
  }
  /** The voxels where they lie; valid during the call. */
  template <typename TArray>
  nb::object
  ToArray(const Box & box, const BufferView & view) const
  {
    std::vector<std::size_t>  shape;
    std::vector<std::int64_t> strides;
    for (int a = static_cast<int>(m_Dimension) - 1; a >= 0; --a)
    {
      shape.push_back(static_cast<std::size_t>(box.Extent(a)));
      strides.push_back(view.stride[a]);
    }
    auto * const place = static_cast<unsigned char *>(view.data) +
                         view.Offset(box.lower) * static_cast<std::int64_t>(PixelSize(view.kind));
    const TArray array(place, m_Dimension, shape.data(), nb::handle(), strides.data(), TypeOf(view.kind));
    return nb::cast(array, nb::rv_policy::reference);
  }
  static nb::dlpack::dtype
  TypeOf(PixelType kind)
  {
    // Integers are listed in pairs, with a sign and without.
    const auto code = IsFloatingPoint(kind)             ? nb::dlpack::dtype_code::Float
                      : static_cast<int>(kind) % 2 == 1 ? nb::dlpack::dtype_code::Int
                                                        : nb::dlpack::dtype_code::UInt;
    return { static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * PixelSize(kind)), 1 };
  }

  const ImageDescription m_Description;
  const std::size_t      m_Dimension;
  const Coordinates      m_Lower;
  std::mutex             m_Mutex;
  const nb::object *     m_Function{ nullptr };
};

/** Python's object that keeps the states of a run. */
class PythonStates : public StateStore
{
public:
  explicit PythonStates(const nb::object & states)
    : m_States(states)
  {}
  std::int64_t
  Open(const std::map<std::string, std::string> & run, std::uint64_t bytes) override
  {
    const nb::gil_scoped_acquire python;
    nb::dict                     values;
    for (const auto & each : run)
    {
      values[each.first.c_str()] = each.second;
    }
    return nb::cast<std::int64_t>(m_States.attr("open")(values, bytes));
  }
  void
  Read(void * data, std::size_t bytes) override
  {
    const nb::gil_scoped_acquire python;
    m_States.attr("read")(
      nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(data, { bytes }, nb::handle()), nb::rv_policy::reference));
  }
  void
  EndReading() override
  {
    const nb::gil_scoped_acquire python;
    m_States.attr("end_reading")();
  }
  bool
  IsDue() const override
  {
    const nb::gil_scoped_acquire python;
    return nb::cast<bool>(m_States.attr("is_due")());
  }
  void
  Write(const void * data, std::size_t bytes) override
  {
    const nb::gil_scoped_acquire python;
    m_States.attr("write")(
      nb::cast(nb::ndarray<nb::numpy, nb::ro, std::uint8_t>(data, { bytes }, nb::handle()), nb::rv_policy::reference));
  }
  void
  Keep(std::int64_t steps) override
  {
    const nb::gil_scoped_acquire python;
    m_States.attr("keep")(steps);
  }

private:
  const nb::object & m_States; ///< of the caller's, which waits
};

/** Lets an image call a function in a scope that is left without Python's lock. */
class OpenImage
{
public:
  OpenImage(std::shared_ptr<PythonImage> image, const nb::object & function)
    : m_Image(std::move(image))
  {
    m_Image->Open(function);
  }
  ~OpenImage() { m_Image->Close(); }
  OpenImage(const OpenImage &) = delete;
  OpenImage &
  operator=(const OpenImage &) = delete;

private:
  std::shared_ptr<PythonImage> m_Image;
};

/** A run over a region of an image, planned for a memory. */
class Stream
{
public:
  /** The kind of an image's voxels, the kind that the operation takes them as, and the image's unit. */
  using Input = std::tuple<std::string, std::string, Integers>;

  /** `unit`s and extents as the engine has them. `least` divisions at least, if the operation can be divided. `spool`:
   * the folder of StreamedRequest::spoolFolder. `estimated`: a filter and its parameter, for Estimate, or empty.
   * `keepsStates`: whether Run gets an object that keeps states. */
  Stream(const OperationHandle & handle, const std::vector<Input> & inputs, const std::string & outputKind,
         const Integers & extent, const Integers & lower, const Integers & upper, const Integers & outputUnit,
         std::uint64_t memory, std::int64_t least, const std::string & spool,
         const std::pair<std::string, std::string> & estimated, bool keepsStates, const RunOptions & options)
    : m_Dimension(extent.size())
  {
    for (const auto & [kind, taken, unit] : inputs)
    {
      m_Sources.push_back({ ToCoordinates(extent, 1), PixelTypeFromName(kind), ToCoordinates(unit, 1) });
      m_Request.inputs.push_back(
        { std::make_shared<PythonImage>(m_Sources.back(), m_Dimension), PixelTypeFromName(taken) });
    }
    m_Request.operation = handle.operation;
    m_Request.region = ToBox(lower, upper);
    m_Request.spoolFolder = spool;
    m_Sink.extent = m_Request.region.Extents();
    m_Sink.kind = PixelTypeFromName(outputKind);
    m_Sink.unit = ToCoordinates(outputUnit, 1);
    m_Request.computedKind = m_Request.writtenKind = m_Sink.kind;
    m_Request.sinkAccess = PythonImage(m_Sink, m_Dimension).GetAccess();
    m_Request.backend = options.backend;
    m_Request.devices = options.devices;
    m_Request.budgets = options.budgets;
    m_Request.executor = GetExecutor(options.threads);
    m_Request.memory = memory;
    // Python's functions have separate threads.
    m_Request.fileThreads = 1;
    m_Request.keepsStates = keepsStates;
    if (!estimated.first.empty())
    {
      m_Estimated = GetFilter(estimated.first).FindParameter(estimated.second);
      if (!m_Estimated || !m_Estimated->estimate.take)
      {
        throw ParameterError(estimated.second + ": it does not follow from an image");
      }
      if (const auto planned = m_Estimated->estimate.plan(*m_Request.operation, m_Request.inputs.front().kind))
      {
        m_Request.firstPass = [planned](ExecutionRequest division) {
          return MakeSummaryRequest(std::move(division), planned);
        };
      }
    }
    Unlocked([&] { this->MakePlan(least); });
  }
  /** Bytes that are enough, where the memory is not; else 0. */
  std::uint64_t
  GetNeeded() const
  {
    return m_Needed;
  }
  const StreamedPlan &
  GetPlan() const
  {
    return m_Plan;
  }
  /** Calls read(where, array) of each input, which fills the array with a part of it, and write(where, array) with each
   * block of the result, from other threads than the caller's. None of them runs when this returns. */
  nb::dict
  Run(const std::vector<nb::object> & reads, const nb::object & write, const nb::object & states,
      const nb::object & progress) const
  {
    this->CheckPlan();
    PythonMonitor        monitor(progress);
    const StreamedReport report = Unlocked([&] {
      StreamedRequest       request = m_Request;
      const auto            sink = std::make_shared<PythonImage>(m_Sink, m_Dimension, m_Request.region.lower);
      std::deque<OpenImage> open;
      this->Open(request, reads, open);
      open.emplace_back(sink, write);
      request.states = states.is_none() ? nullptr : std::make_shared<PythonStates>(states);
      return ExecuteStreamed(Manager::GetGlobal(), request, m_Plan, sink, &monitor);
    });
    return Describe(report.execution);
  }

  /** The numbers that stand for "auto" in the estimated parameter of the filter whose operation this is, with a
   * provisional value. Reads the inputs, once or more. */
  std::vector<double>
  Estimate(const std::vector<nb::object> & reads, const nb::object & progress) const
  {
    this->CheckPlan();
    PythonMonitor monitor(progress);
    return Unlocked([&] {
      Manager &             manager = Manager::GetGlobal();
      StreamedRequest       request = m_Request;
      std::deque<OpenImage> open;
      this->Open(request, reads, open);
      const SummaryRun run = [&](const std::shared_ptr<const Operation> & summary, Monitor * ofRun) {
        ChunkState total;
        ReadStreamed(manager, request, m_Plan, ofRun, [&](const ExecutionRequest & division, Monitor * ofDivision) {
          const ChunkState part = manager.Summarise(MakeSummaryRequest(division, summary), ofDivision);
          if (total.empty())
          {
            total = part;
          }
          else
          {
            summary->MergeSummary(total, part);
          }
        });
        return total;
      };
      return m_Estimated->estimate.take(*m_Request.operation, request.inputs.front().kind, run, &monitor);
    });
  }

private:
  void
  CheckPlan() const
  {
    if (m_Needed > 0)
    {
      throw DivisionsError(m_Plan.divisions, m_Needed, m_Request.memory);
    }
  }

  /** Lets the inputs of a request call Python's functions. */
  void
  Open(StreamedRequest & request, const std::vector<nb::object> & reads, std::deque<OpenImage> & open) const
  {
    if (reads.size() != m_Sources.size())
    {
      throw ParameterError("reads: " + std::to_string(reads.size()) + " functions for " +
                           std::to_string(m_Sources.size()) + " images");
    }
    for (std::size_t i = 0; i < reads.size(); ++i)
    {
      const auto source = std::make_shared<PythonImage>(m_Sources[i], m_Dimension);
      request.inputs[i].source = source;
      open.emplace_back(source, reads[i]);
    }
  }

  void
  MakePlan(std::int64_t least)
  {
    try
    {
      m_Plan = MakeStreamedPlan(Manager::GetGlobal(), m_Request);
    }
    catch (const DivisionsError & error)
    {
      m_Plan.divisions = error.divisions;
      m_Needed = error.needed;
      return;
    }
    if (m_Plan.divisions < least && !m_Plan.inSlabs)
    {
      try
      {
        StreamedRequest finer = m_Request;
        finer.divisions = least;
        m_Plan = MakeStreamedPlan(Manager::GetGlobal(), finer);
      }
      catch (const DivisionsError &)
      {
        // As it is, then.
      }
    }
  }

  std::size_t                   m_Dimension;
  std::vector<ImageDescription> m_Sources;
  ImageDescription              m_Sink;
  StreamedRequest               m_Request;
  StreamedPlan                  m_Plan;
  std::uint64_t                 m_Needed{ 0 };
  const ParameterDescription *  m_Estimated{ nullptr };
};

} // namespace

void
AddStreams(nb::module_ & module)
{
  nb::class_<Stream>(module, "Stream")
    .def(nb::init<const OperationHandle &,
                  const std::vector<Stream::Input> &,
                  const std::string &,
                  const Integers &,
                  const Integers &,
                  const Integers &,
                  const Integers &,
                  std::uint64_t,
                  std::int64_t,
                  const std::string &,
                  const std::pair<std::string, std::string> &,
                  bool,
                  const RunOptions &>())
    .def_prop_ro("needed", &Stream::GetNeeded)
    .def_prop_ro("blocks", [](const Stream & stream) { return stream.GetPlan().divisions; })
    .def_prop_ro("overlaps",
                 [](const Stream & stream) { return stream.GetPlan().buffers > 1 || stream.GetPlan().divisions == 1; })
    .def("estimate", &Stream::Estimate, "reads"_a, "progress"_a.none())
    .def("run", &Stream::Run, "reads"_a, "write"_a, "states"_a.none(), "progress"_a.none());
}

} // namespace chunkwise::python
