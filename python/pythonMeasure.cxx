/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Measurements of labelled objects.
#include "pythonCore.h"

#include "chunkwiseFilters.h"
#include "chunkwiseLabelHoles.h"
#include "chunkwiseLabelSelection.h"
#include "chunkwiseLabelTable.h"
#include "chunkwiseMeasurements.h"

#include <nanobind/stl/optional.h>

#include <cstring>
#include <optional>

using namespace nanobind::literals;

namespace chunkwise::python
{

namespace
{

using Array = nb::ndarray<nb::ro, nb::device::cpu>;
using Reals = std::vector<double>;

/** An array whose axes lie as the image's, the last one x; its kind is known by name. */
BufferView
ToMeasuredView(const Array & array, const std::string & kind)
{
  if (array.ndim() > static_cast<std::size_t>(MaxSpatialAxes) || array.ndim() < 1)
  {
    throw ParameterError("an array has " + std::to_string(array.ndim()) + " dimensions; it must have 1 to 3");
  }
  BufferView view;
  view.data = const_cast<void *>(static_cast<const void *>(array.data()));
  view.kind = PixelTypeFromName(kind);
  view.box = Box::FromExtent(Coordinates::Filled(1));
  view.stride = Coordinates::Filled(1);
  for (std::size_t a = 0; a < array.ndim(); ++a)
  {
    const int         axis = static_cast<int>(a);
    const std::size_t from = array.ndim() - 1 - a;
    view.box.upper[axis] = static_cast<std::int64_t>(array.shape(from));
    // The step of an axis of one voxel means nothing.
    view.stride[axis] = array.shape(from) > 1 ? array.stride(from) : 1;
  }
  return view;
}

/** Calls visit(box) for slabs of some ten million voxels in ascending order; between them Python's signals are heard.
 */
template <typename TVisit>
void
ForEachSlab(const Box & image, Monitor & monitor, double begin, double end, TVisit && visit)
{
  constexpr std::int64_t voxels = std::int64_t{ 1 } << 25;
  int                    axis = MaxSpatialAxes - 1;
  while (axis > 0 && image.Extent(axis) == 1)
  {
    --axis;
  }
  const std::int64_t planes = image.Extent(axis);
  const std::int64_t step = std::max<std::int64_t>(1, voxels / (image.NumberOfVoxels() / planes));
  for (std::int64_t first = 0; first < planes; first += step)
  {
    monitor.ShouldAbort();
    Box slab = image;
    slab.lower[axis] = first;
    slab.upper[axis] = std::min(planes, first + step);
    visit(slab);
    monitor.UpdateProgress(begin + (end - begin) * static_cast<double>(slab.upper[axis]) / static_cast<double>(planes));
  }
}

template <typename T>
nb::object
ToNumbers(std::vector<T> numbers)
{
  auto * const      kept = new std::vector<T>(std::move(numbers));
  const nb::capsule owner(kept, [](void * p) noexcept { delete static_cast<std::vector<T> *>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), { kept->size() }, owner));
}

/** Arrays by the names of columns. */
void
AddColumns(MeasurementTable table, nb::dict & columns)
{
  for (MeasurementColumn & column : table)
  {
    if (IsFloatingPoint(column.kind))
    {
      columns[column.name.c_str()] = ToNumbers(std::move(column.reals));
    }
    else if (column.kind == PixelType::UInt64)
    {
      columns[column.name.c_str()] =
        ToNumbers(std::vector<std::uint64_t>(column.integers.begin(), column.integers.end()));
    }
    else if (column.kind == PixelType::UInt8)
    {
      columns[column.name.c_str()] =
        ToNumbers(std::vector<std::uint8_t>(column.integers.begin(), column.integers.end()));
    }
    else
    {
      columns[column.name.c_str()] = ToNumbers(std::move(column.integers));
    }
  }
}

MeasurementSpace
MakeSpace(int axes, const Reals & spacing, const Reals & origin, const Reals & direction)
{
  MeasurementSpace space;
  space.slowestFirst = true;
  const auto dimension = static_cast<std::size_t>(axes);
  for (std::size_t a = 0; a < dimension; ++a)
  {
    space.spacing[a] = spacing.empty() ? 1.0 : spacing.at(a);
    space.origin[a] = origin.empty() ? 0.0 : origin.at(a);
    for (std::size_t b = 0; b < dimension && !direction.empty(); ++b)
    {
      space.direction[a][b] = direction.at(a * dimension + b);
    }
  }
  return space;
}

/** One thread where there are few voxels. */
Executor &
FindExecutor(const RunOptions & options, const MeasurementSettings & settings)
{
  constexpr std::int64_t few = 32 * 1024;
  return GetExecutorFor(Box::FromExtent(settings.extent).NumberOfVoxels() < few ? 1 : options.threads);
}

/** Choices of a table that are no images. */
struct TableChoices
{
  std::vector<std::string> properties;
  Reals                    quantiles;
  bool                     contacts;
  Reals                    spacing;
  Reals                    origin;
  Reals                    direction;
};

/** Runs a measurement; if memory ends, reads everything once more to say how much is enough. forEach(visit) as of
 * MeasureSlabs. */
template <typename TRun, typename TForEach>
void
WithNeeds(const MeasurementSettings & settings, std::size_t quantiles, Executor & executor, TRun && run,
          TForEach && forEach)
{
  try
  {
    run();
    return;
  }
  catch (const BudgetError &)
  {}
  MeasurementNeeds needs(settings);
  forEach([&](const BufferView & labels, const BufferView * intensity, const Box & slab) {
    needs.Add(labels, intensity, slab, executor);
  });
  const std::uint64_t bytes = needs.GetBytes(executor.GetConcurrency(), quantiles);
  throw BudgetError("the tables of labels need " + std::to_string(bytes) + " bytes, the memory for them is " +
                      std::to_string(settings.memory),
                    bytes,
                    settings.memory);
}

/** (the table, the table of contacts or None). forEach(monitor, begin, end, visit) calls visit(labels, intensity or
 * nullptr, box) for slabs in ascending order. With `byDevices` that is the run that measures; slabs are for quantiles.
 */
template <typename TForEach>
nb::tuple
MeasureSlabs(MeasurementSettings settings, TableChoices choices, const RunOptions & options, TForEach && forEach,
             const ExecutionRequest * byDevices = nullptr)
{
  if (choices.properties.empty())
  {
    choices.properties = GetDefaultProperties(settings.hasIntensity);
  }
  SetPartsFor(choices.properties, settings);
  settings.contacts = choices.contacts;
  settings.memory = options.budgets.host;
  const MeasurementSpace space = MakeSpace(settings.dimension, choices.spacing, choices.origin, choices.direction);
  Executor &             executor = FindExecutor(options, settings);
  PythonMonitor          monitor(options.progress);
  MeasurementTable       table;
  MeasurementTable       more;
  MeasurementTable       touching;
  const auto             run = [&] {
    Measurements measurements(settings);
    const double first = choices.quantiles.empty() ? 1.0 : 0.5;
    if (byDevices)
    {
      measurements.Add(Manager::GetGlobal(), *byDevices, &monitor);
    }
    else
    {
      forEach(monitor, 0.0, first, [&](const BufferView & labels, const BufferView * intensity, const Box & slab) {
        measurements.Add(labels, intensity, slab, executor);
      });
    }
    if (!choices.quantiles.empty())
    {
      const std::uint64_t taken = measurements.GetBytes();
      LabelQuantiles      search(measurements,
                            choices.quantiles,
                            settings.memory == 0      ? 0
                                             : settings.memory > taken ? settings.memory - taken
                                                                       : 1);
      while (search.BeginPass())
      {
        forEach(monitor, first, 1.0, [&](const BufferView & labels, const BufferView * intensity, const Box & slab) {
          search.Add(labels, *intensity, slab, executor);
        });
        search.EndPass();
      }
      more = search.MakeTable();
    }
    table = measurements.MakeTable(space, choices.properties, 0, INT64_MAX, &executor);
    touching = choices.contacts ? measurements.MakeContacts(space) : MeasurementTable();
  };
  Unlocked([&] {
    if (byDevices)
    {
      run();
      return;
    }
    WithNeeds(
      settings, choices.quantiles.size(), executor, run, [&](auto && visit) { forEach(monitor, 0.0, 1.0, visit); });
  });
  nb::dict columns;
  nb::dict pairs;
  AddColumns(std::move(table), columns);
  AddColumns(std::move(more), columns);
  AddColumns(std::move(touching), pairs);
  return nb::make_tuple(columns, choices.contacts ? nb::object(pairs) : nb::none());
}

/** Measures arrays; spacing, origin and direction are x first. */
nb::tuple
Measure(const Array & labels, const std::string & labelKind, const std::optional<Array> & intensity,
        const std::string & intensityKind, const std::vector<std::string> & properties, const Reals & quantiles,
        bool contacts, const Reals & spacing, const Reals & origin, const Reals & direction, const RunOptions & options)
{
  const BufferView    view = ToMeasuredView(labels, labelKind);
  MeasurementSettings settings;
  settings.extent = view.box.upper;
  settings.dimension = static_cast<int>(labels.ndim());
  settings.labelKind = view.kind;
  BufferView values;
  if (intensity)
  {
    values = ToMeasuredView(*intensity, intensityKind);
    settings.hasIntensity = true;
    settings.intensityKind = values.kind;
  }
  ExecutionRequest request = MakeRequest(nullptr, {}, view.box, options);
  request.image = view.box;
  request.inputs = { view };
  if (intensity)
  {
    request.inputs.push_back(values);
  }
  // The way to a device and back takes as long as the CPU does: only who asks for it.
  const bool byDevices = options.backend == BackendChoice::CUDA || !options.devices.empty();
  const auto forEach = [&](Monitor & monitor, double begin, double end, auto && visit) {
    ForEachSlab(
      view.box, monitor, begin, end, [&](const Box & slab) { visit(view, intensity ? &values : nullptr, slab); });
  };
  return MeasureSlabs(settings,
                      { properties, quantiles, contacts, spacing, origin, direction },
                      options,
                      forEach,
                      byDevices ? &request : nullptr);
}

/** Measures arrays in a device's memory. */
nb::tuple
MeasureOnDevice(const DeviceArray & labels, const std::optional<DeviceArray> & intensity,
                const std::vector<std::string> & properties, const Reals & spacing, const RunOptions & options)
{
  const Integers   lower(labels.shape.size(), 0);
  const BufferView view = ToView(labels, lower);
  ExecutionRequest request = MakeRequest(nullptr, {}, view.box, options);
  request.image = view.box;
  request.inputs = { view };
  PlaceOn(request, labels);
  MeasurementSettings settings;
  settings.extent = view.box.upper;
  settings.dimension = static_cast<int>(labels.shape.size());
  settings.labelKind = view.kind;
  if (intensity)
  {
    request.inputs.push_back(ToView(*intensity, lower));
    PlaceOn(request, *intensity);
    settings.hasIntensity = true;
    settings.intensityKind = request.inputs.back().kind;
  }
  return MeasureSlabs(
    settings, { properties, {}, false, spacing, {}, {} }, options, [](Monitor &, double, double, auto &&) {}, &request);
}

/** Images that `read(first, end)` gives `planes` planes at a time, along the first of the shape's axes: (labels,
 * another image or None), dense arrays. */
class ReadSlabs
{
public:
  ReadSlabs(const nb::callable & read, const std::vector<std::int64_t> & shape, std::int64_t planes,
            std::string labelKind, std::string otherKind)
    : m_Read(read)
    , m_Kinds{ std::move(labelKind), std::move(otherKind) }
    , m_Planes(planes)
    , m_Axis(static_cast<int>(shape.size()) - 1)
  {
    Coordinates extent = Coordinates::Filled(1);
    for (int a = 0; a <= m_Axis; ++a)
    {
      extent[a] = shape[static_cast<std::size_t>(m_Axis - a)];
    }
    m_Image = Box::FromExtent(extent);
  }
  /** The settings of a measurement; another image has the intensities. */
  MeasurementSettings
  MakeSettings() const
  {
    MeasurementSettings settings;
    settings.dimension = m_Axis + 1;
    settings.extent = m_Image.upper;
    settings.labelKind = PixelTypeFromName(m_Kinds[0]);
    settings.hasIntensity = !m_Kinds[1].empty();
    settings.intensityKind = settings.hasIntensity ? PixelTypeFromName(m_Kinds[1]) : PixelType::UInt8;
    return settings;
  }
  /** Calls visit(labels, the other image or nullptr, box) without Python's lock for slabs in ascending order. */
  template <typename TVisit>
  void
  ForEach(Monitor & monitor, double begin, double end, TVisit && visit) const
  {
    for (std::int64_t first = 0; first < m_Image.upper[m_Axis]; first += m_Planes)
    {
      monitor.ShouldAbort();
      Box slab = m_Image;
      slab.lower[m_Axis] = first;
      slab.upper[m_Axis] = std::min(first + m_Planes, m_Image.upper[m_Axis]);
      const nb::gil_scoped_acquire locked;
      const nb::tuple              both = nb::cast<nb::tuple>(m_Read(slab.lower[m_Axis], slab.upper[m_Axis]));
      const auto                   viewOf = [&](std::size_t i) {
        BufferView view = ToMeasuredView(nb::cast<Array>(both[i]), m_Kinds[i]);
        view.box.lower[m_Axis] += first;
        view.box.upper[m_Axis] += first;
        if (!(view.box == slab))
        {
          throw ParameterError("the planes " + std::to_string(first) + " to " + std::to_string(slab.upper[m_Axis]) +
                               " were read as " + ToString(view.box.Extents()) + " voxels");
        }
        return view;
      };
      const bool       hasOther = !m_Kinds[1].empty();
      const BufferView labels = viewOf(0);
      const BufferView other = hasOther ? viewOf(1) : BufferView();
      {
        const nb::gil_scoped_release unlocked;
        visit(labels, hasOther ? &other : nullptr, slab);
      }
      monitor.UpdateProgress(begin + (end - begin) * static_cast<double>(slab.upper[m_Axis]) /
                                       static_cast<double>(m_Image.upper[m_Axis]));
    }
  }
  /** Calls write(first, end, array) with a slab of labels that is dense; the array ends with the call. */
  void
  Write(const nb::callable & write, const BufferView & labels) const
  {
    const nb::gil_scoped_acquire locked;
    std::vector<std::size_t>     shape;
    for (int a = m_Axis; a >= 0; --a)
    {
      shape.push_back(static_cast<std::size_t>(labels.box.Extent(a)));
    }
    DispatchPixelType(labels.kind, [&](auto pixel) {
      write(labels.box.lower[m_Axis],
            labels.box.upper[m_Axis],
            nb::ndarray<nb::numpy, decltype(pixel)>(labels.data, shape.size(), shape.data(), nb::none()));
    });
  }

private:
  const nb::callable & m_Read;
  const std::string    m_Kinds[2];
  const std::int64_t   m_Planes;
  const int            m_Axis;
  Box                  m_Image;
};

/** Measures images that `read` gives, see ReadSlabs. Quantiles read them again. */
nb::tuple
MeasureRead(const nb::callable & read, const std::vector<std::int64_t> & shape, std::int64_t planes,
            const std::string & labelKind, const std::string & intensityKind,
            const std::vector<std::string> & properties, const Reals & quantiles, bool contacts, const Reals & spacing,
            const RunOptions & options)
{
  const ReadSlabs slabs(read, shape, planes, labelKind, intensityKind);
  return MeasureSlabs(
    slabs.MakeSettings(),
    { properties, quantiles, contacts, spacing, {}, {} },
    options,
    [&](Monitor & monitor, double begin, double end, auto && visit) { slabs.ForEach(monitor, begin, end, visit); });
}

LabelSelection
MakeSelection(const std::vector<std::string> & conditions, std::int64_t keepLargest, bool relabel)
{
  LabelSelection selection;
  selection.keepLargest = keepLargest;
  selection.relabel = relabel;
  for (const std::string & text : conditions)
  {
    selection.conditions.push_back(LabelCondition::FromText(text));
  }
  return selection;
}

using TextPairs = std::vector<std::pair<std::string, std::string>>;

LabelTable
MakeLabelTable(PixelType kind, const TextPairs & replace)
{
  std::vector<LabelTable::Pair> pairs;
  for (const auto & pair : replace)
  {
    pairs.emplace_back(PixelValue::FromText(pair.first), PixelValue::FromText(pair.second));
  }
  return LabelTable(kind, pairs);
}

/** A dense slab that is made once more where it is too small. */
class SlabBuffer
{
public:
  BufferView
  Get(PixelType kind, const Box & box)
  {
    m_Bytes.resize(std::max(m_Bytes.size(), static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(kind)));
    return DenseView(m_Bytes.data(), kind, box);
  }

private:
  std::vector<char> m_Bytes;
};

/** Writes the labels that are kept of an image that is read twice, see ReadSlabs; their number. */
std::int64_t
FilterLabelsRead(const nb::callable & read, const nb::callable & write, const std::vector<std::int64_t> & shape,
                 std::int64_t planes, const std::string & kind, const std::vector<std::string> & conditions,
                 std::int64_t keepLargest, bool relabel, const TextPairs & replace, const Reals & spacing,
                 const RunOptions & options)
{
  const ReadSlabs     slabs(read, shape, planes, kind, "");
  MeasurementSettings settings = slabs.MakeSettings();
  settings.memory = options.budgets.host;
  const LabelSelection selection = MakeSelection(conditions, keepLargest, relabel);
  SetPartsFor(GetPropertiesOf(selection), settings);
  const LabelTable       table = MakeLabelTable(settings.labelKind, replace);
  const MeasurementSpace space = MakeSpace(settings.dimension, spacing, {}, {});
  Executor &             executor = FindExecutor(options, settings);
  PythonMonitor          monitor(options.progress);
  SlabBuffer             buffer;
  std::int64_t           kept = 0;
  const auto             forEach = [&](double begin, double end, auto && visit) {
    slabs.ForEach(monitor, begin, end, [&](const BufferView & labels, const BufferView *, const Box & slab) {
      if (table.GetSize() == 0)
      {
        visit(labels, nullptr, slab);
        return;
      }
      const BufferView replaced = buffer.Get(labels.kind, slab);
      table.Apply(labels, replaced, slab, executor);
      visit(replaced, nullptr, slab);
    });
  };
  const auto run = [&] {
    Measurements measurements(settings);
    forEach(0, 0.5, [&](const BufferView & labels, const BufferView *, const Box & slab) {
      measurements.Add(labels, nullptr, slab, executor);
    });
    const LabelMap map(measurements, space, selection);
    kept = map.GetCount();
    forEach(0.5, 1, [&](const BufferView & labels, const BufferView *, const Box & slab) {
      const BufferView output = buffer.Get(labels.kind, slab);
      map.Apply(labels, output, slab, executor);
      slabs.Write(write, output);
    });
  };
  Unlocked([&] { WithNeeds(settings, 0, executor, run, [&](auto && visit) { forEach(0, 1, visit); }); });
  return kept;
}

/** Writes labels without holes; `read` gives them with the parts of their background, twice. */
std::uint64_t
FillLabelHolesRead(const nb::callable & read, const nb::callable & write, const std::vector<std::int64_t> & shape,
                   std::int64_t planes, const std::string & kind, const std::string & partKind,
                   const RunOptions & options)
{
  const ReadSlabs slabs(read, shape, planes, kind, partKind);
  PythonMonitor   monitor(options.progress);
  std::uint64_t   count = 0;
  Unlocked([&] {
    const MeasurementSettings settings = slabs.MakeSettings();
    LabelHoles                holes(settings.labelKind, settings.intensityKind, settings.extent, options.budgets.host);
    slabs.ForEach(monitor, 0, 0.5, [&](const BufferView & labels, const BufferView * parts, const Box & slab) {
      holes.Add(labels, *parts, slab);
    });
    SlabBuffer buffer;
    slabs.ForEach(monitor, 0.5, 1, [&](const BufferView & labels, const BufferView * parts, const Box & slab) {
      const BufferView output = buffer.Get(labels.kind, slab);
      std::memcpy(output.data, labels.data, output.NumberOfBytes());
      holes.Fill(output, *parts, slab);
      slabs.Write(write, output);
    });
    count = holes.GetCount();
  });
  return count;
}

/** Fills `result` with the labels that are kept. */
void
FilterLabels(const Array & labels, const std::string & kind, const nb::ndarray<nb::device::cpu> & result,
             const std::vector<std::string> & conditions, std::int64_t keepLargest, bool relabel,
             const TextPairs & replace, const Reals & spacing, const Reals & origin, const Reals & direction,
             const RunOptions & options)
{
  const BufferView    view = ToMeasuredView(labels, kind);
  const BufferView    output = ToMeasuredView(Array(result), kind);
  MeasurementSettings settings;
  settings.extent = view.box.upper;
  settings.dimension = static_cast<int>(labels.ndim());
  settings.labelKind = view.kind;
  settings.memory = options.budgets.host;
  const LabelSelection selection = MakeSelection(conditions, keepLargest, relabel);
  SetPartsFor(GetPropertiesOf(selection), settings);
  const LabelTable       table = MakeLabelTable(view.kind, replace);
  const MeasurementSpace space = MakeSpace(settings.dimension, spacing, origin, direction);
  Executor &             executor = FindExecutor(options, settings);
  PythonMonitor          monitor(options.progress);
  const BufferView &     measured = table.GetSize() > 0 ? output : view;
  const auto             forEach = [&](auto && visit) {
    ForEachSlab(view.box, monitor, 0, 0.5, [&](const Box & slab) {
      if (table.GetSize() > 0)
      {
        table.Apply(view, output, slab, executor);
      }
      visit(measured, nullptr, slab);
    });
  };
  const auto run = [&] {
    Measurements measurements(settings);
    forEach([&](const BufferView & given, const BufferView *, const Box & slab) {
      measurements.Add(given, nullptr, slab, executor);
    });
    const LabelMap map(measurements, space, selection);
    ForEachSlab(view.box, monitor, 0.5, 1, [&](const Box & slab) { map.Apply(measured, output, slab, executor); });
  };
  Unlocked([&] { WithNeeds(settings, 0, executor, run, forEach); });
}

/** `labels` get those of the objects around the holes among the parts of the background. */
std::uint64_t
FillLabelHoles(const nb::ndarray<nb::device::cpu> & labels, const std::string & kind, const Array & parts,
               const std::string & partKind, std::uint64_t numberOfParts, const RunOptions & options)
{
  const BufferView view = ToMeasuredView(Array(labels), kind);
  const BufferView background = ToMeasuredView(parts, partKind);
  PythonMonitor    monitor(options.progress);
  std::uint64_t    count = 0;
  Unlocked([&] {
    LabelHoles holes(view.kind, background.kind, view.box.Extents(), options.budgets.host);
    holes.Reserve(numberOfParts);
    ForEachSlab(view.box, monitor, 0, 0.5, [&](const Box & slab) { holes.Add(view, background, slab); });
    ForEachSlab(view.box, monitor, 0.5, 1, [&](const Box & slab) { holes.Fill(view, background, slab); });
    count = holes.GetCount();
  });
  return count;
}

nb::list
ListProperties()
{
  nb::list rows;
  for (const MeasurementProperty & property : GetMeasurementProperties())
  {
    rows.append(nb::make_tuple(property.name, property.help, property.needsIntensity, property.isDefault));
  }
  return rows;
}

} // namespace

void
AddMeasurements(nb::module_ & module)
{
  module.def("measure",
             &Measure,
             "labels"_a,
             "label_kind"_a,
             "intensity"_a.none(),
             "intensity_kind"_a,
             "properties"_a,
             "quantiles"_a,
             "contacts"_a,
             "spacing"_a,
             "origin"_a,
             "direction"_a,
             "options"_a);
  module.def(
    "measure_on_device", &MeasureOnDevice, "labels"_a, "intensity"_a.none(), "properties"_a, "spacing"_a, "options"_a);
  module.def("measure_read", &MeasureRead);
  module.def("filter_labels", &FilterLabels);
  module.def("filter_labels_read", &FilterLabelsRead);
  module.def("fill_label_holes", &FillLabelHoles);
  module.def("fill_label_holes_read", &FillLabelHolesRead);
  module.def("measured_properties", &ListProperties);
}

} // namespace chunkwise::python
