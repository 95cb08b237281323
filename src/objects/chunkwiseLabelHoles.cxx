/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseLabelHoles.h"

#include "chunkwiseError.h"
#include "chunkwiseFilters.h"
#include "chunkwiseMeasureTable.h"
#include "chunkwisePartMonitor.h"

#include <algorithm>
#include <cstring>

namespace chunkwise
{

namespace
{

template <typename TFunctor>
void
DispatchLabelAndPart(PixelType labels, PixelType parts, TFunctor && f)
{
  DispatchPixelType(labels, [&](auto pixel) {
    using Label = decltype(pixel);
    if constexpr (std::is_integral<Label>::value)
    {
      parts == PixelType::UInt32 ? f(Label{}, std::uint32_t{}) : f(Label{}, std::uint64_t{});
    }
  });
}

template <typename T>
const T *
RowAt(const BufferView & view, const Coordinates & at)
{
  return static_cast<const T *>(view.data) + view.Offset(at);
}

/** Calls f(at) for where each row of a box begins, in raster order. */
template <typename TFunctor>
void
ForEachRowOf(const Box & box, TFunctor && f)
{
  for (std::int64_t z = box.lower[2]; z < box.upper[2]; ++z)
  {
    for (std::int64_t y = box.lower[1]; y < box.upper[1]; ++y)
    {
      f(Coordinates{ { box.lower[0], y, z, 0, 0 } });
    }
  }
}

} // namespace

LabelHoles::LabelHoles(PixelType labels, PixelType parts, const Coordinates & extent, std::uint64_t memory)
  : m_LabelKind(labels)
  , m_PartKind(parts)
  , m_Extent(extent)
  , m_Memory(memory)
{
  if (IsFloatingPoint(labels) || (parts != PixelType::UInt32 && parts != PixelType::UInt64))
  {
    throw ParameterError(std::string("labels are integers, and their background has parts of uint32 or uint64, not ") +
                         PixelTypeName(labels) + " and " + PixelTypeName(parts));
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    m_Axis = extent[a] > 1 ? a : m_Axis;
  }
  if (m_Axis >= MaxSpatialAxes)
  {
    throw ParameterError("holes are filled along up to 3 axes; the image has " + ToString(extent) + " voxels");
  }
  Box plane = Box::FromExtent(extent);
  plane.upper[m_Axis] = std::min<std::int64_t>(1, plane.upper[m_Axis]);
  const auto voxels = static_cast<std::size_t>(plane.NumberOfVoxels());
  m_LastLabels.resize(voxels * PixelSize(labels));
  m_LastParts.resize(voxels * PixelSize(parts));
}

void
LabelHoles::Check(const BufferView & labels, const BufferView & parts, const Box & box) const
{
  CheckMeasuredView("labels", labels, m_LabelKind, box);
  CheckMeasuredView("parts of the background", parts, m_PartKind, box);
}

void
LabelHoles::Reserve(std::uint64_t part)
{
  if (part < m_States.size())
  {
    return;
  }
  // Numbers ascend in raster order: the table grows by half when it is full.
  const std::uint64_t count = std::max<std::uint64_t>(part + 1, m_States.size() + m_States.size() / 2 + 1024);
  const std::uint64_t bytes = (count + m_States.size()) * (sizeof(std::uint64_t) + sizeof(Touched));
  if (m_Memory > 0 && bytes > m_Memory)
  {
    throw BudgetError("the tables of " + std::to_string(part) + " parts of the background need " +
                        std::to_string(bytes) + " bytes, more than the budget of " + std::to_string(m_Memory),
                      bytes,
                      m_Memory);
  }
  m_States.resize(count, Touched::Nothing);
  m_Labels.resize(count, 0);
}

/** A row of the box with what lies before it along each axis. */
template <typename TLabel, typename TPart>
void
LabelHoles::AddRow(const BufferView & labels, const BufferView & parts, const Box & box, const Coordinates & at)
{
  const TLabel * const own = RowAt<TLabel>(labels, at);
  const TPart * const  ownParts = RowAt<TPart>(parts, at);
  const std::int64_t   n = box.Extent(0);
  bool                 isAtEdge = false;
  for (int a = 1; a < MaxSpatialAxes; ++a)
  {
    isAtEdge = isAtEdge || (m_Extent[a] > 1 && (at[a] == 0 || at[a] == m_Extent[a] - 1));
  }
  for (std::int64_t x = 0; x < n; ++x)
  {
    const TPart part = ownParts[x];
    if (part != 0)
    {
      Reserve(part);
      const std::int64_t i = at[0] + x;
      if (isAtEdge || (m_Extent[0] > 1 && (i == 0 || i == m_Extent[0] - 1)))
      {
        m_States[part] = Touched::Open;
      }
    }
    if (x > 0 && part != 0 && own[x - 1] != 0)
    {
      Touch(part, BitsOfLabel(own[x - 1]));
    }
    if (x > 0 && own[x] != 0 && ownParts[x - 1] != 0)
    {
      Touch(ownParts[x - 1], BitsOfLabel(own[x]));
    }
  }
  const auto join = [&](const TLabel * before, const TPart * partsBefore, std::int64_t count) {
    for (std::int64_t x = 0; x < count; ++x)
    {
      if (ownParts[x] != 0 && before[x] != 0)
      {
        Touch(ownParts[x], BitsOfLabel(before[x]));
      }
      if (own[x] != 0 && partsBefore[x] != 0)
      {
        Touch(partsBefore[x], BitsOfLabel(own[x]));
      }
    }
  };
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    Coordinates before = at;
    --before[a];
    if (a > 0 && at[a] > box.lower[a])
    {
      join(RowAt<TLabel>(labels, before), RowAt<TPart>(parts, before), n);
    }
    else if (a == m_Axis && at[a] > 0 && at[a] == box.lower[a])
    {
      // The plane before the box lies row after row.
      const std::int64_t row = a == 2 ? at[1] * m_Extent[0] : 0;
      join(reinterpret_cast<const TLabel *>(m_LastLabels.data()) + row,
           reinterpret_cast<const TPart *>(m_LastParts.data()) + row,
           a == 0 ? 1 : n);
    }
  }
}

void
LabelHoles::Add(const BufferView & labels, const BufferView & parts, const Box & box)
{
  if (box.IsEmpty())
  {
    return;
  }
  Check(labels, parts, box);
  Box whole = Box::FromExtent(m_Extent);
  whole.lower[m_Axis] = m_Next;
  whole.upper[m_Axis] = box.upper[m_Axis];
  if (!(box == whole))
  {
    throw ParameterError("a box of " + ToString(box) + " came where one of " + ToString(whole) + " follows");
  }
  DispatchLabelAndPart(m_LabelKind, m_PartKind, [&](auto label, auto part) {
    using Label = decltype(label);
    using Part = decltype(part);
    ForEachRowOf(box, [&](const Coordinates & at) { AddRow<Label, Part>(labels, parts, box, at); });
    Box last = box;
    last.lower[m_Axis] = box.upper[m_Axis] - 1;
    const std::int64_t n = last.Extent(0);
    std::int64_t       row = 0;
    ForEachRowOf(last, [&](const Coordinates & at) {
      std::memcpy(reinterpret_cast<Label *>(m_LastLabels.data()) + row * n,
                  RowAt<Label>(labels, at),
                  static_cast<std::size_t>(n) * sizeof(Label));
      std::memcpy(reinterpret_cast<Part *>(m_LastParts.data()) + row * n,
                  RowAt<Part>(parts, at),
                  static_cast<std::size_t>(n) * sizeof(Part));
      ++row;
    });
  });
  m_Next = box.upper[m_Axis];
}

std::uint64_t
LabelHoles::GetCount() const
{
  return static_cast<std::uint64_t>(std::count(m_States.begin(), m_States.end(), Touched::One));
}

void
LabelHoles::Fill(const BufferView & labels, const BufferView & parts, const Box & box) const
{
  if (box.IsEmpty())
  {
    return;
  }
  Check(labels, parts, box);
  DispatchLabelAndPart(m_LabelKind, m_PartKind, [&](auto label, auto part) {
    using Label = decltype(label);
    using Part = decltype(part);
    ForEachRowOf(box, [&](const Coordinates & at) {
      Label * const      own = static_cast<Label *>(labels.data) + labels.Offset(at);
      const Part * const ownParts = RowAt<Part>(parts, at);
      for (std::int64_t x = 0; x < box.Extent(0); ++x)
      {
        const Part number = ownParts[x];
        if (number != 0 && number < m_States.size() && m_States[number] == Touched::One)
        {
          own[x] = static_cast<Label>(m_Labels[number]);
        }
      }
    });
  });
}

namespace
{

/** 1 where there is no label. */
std::vector<std::uint8_t>
MarkBackground(const BufferView & labels)
{
  std::vector<std::uint8_t> marks(static_cast<std::size_t>(labels.box.NumberOfVoxels()));
  DispatchLabelAndPart(labels.kind, PixelType::UInt32, [&](auto label, auto) {
    using Label = decltype(label);
    std::uint8_t * mark = marks.data();
    ForEachRowOf(labels.box, [&](const Coordinates & at) {
      const Label * const row = RowAt<Label>(labels, at);
      for (std::int64_t x = 0; x < labels.box.Extent(0); ++x)
      {
        *mark++ = row[x] == 0 ? 1 : 0;
      }
    });
  });
  return marks;
}

} // namespace

std::uint64_t
FillLabelHoles(Manager & manager, const BufferView & labels, const ExecutionRequest & how, Monitor * monitor)
{
  constexpr std::int64_t few = std::int64_t{ 1 } << 32;
  const Box &            box = labels.box;
  const std::int64_t     voxels = box.NumberOfVoxels();
  const PixelType        kind = voxels < few ? PixelType::UInt32 : PixelType::UInt64;
  // Throws where the image is none of labels.
  LabelHoles            checked(labels.kind, kind, box.Extents());
  const std::size_t     bytes = static_cast<std::size_t>(voxels) * (1 + PixelSize(kind));
  const std::size_t     budget = how.budgets.host;
  constexpr std::size_t least = std::size_t{ 1 } << 16;
  if (voxels == 0)
  {
    return 0;
  }
  if (budget > 0 && bytes + least > budget)
  {
    throw BudgetError("the parts of the background need " + std::to_string(bytes + least) +
                        " bytes, more than the budget of " + std::to_string(budget),
                      bytes + least,
                      budget);
  }
  const std::size_t rest = budget > 0 ? budget - bytes : 0;
  try
  {
    std::vector<std::uint8_t> marks = MarkBackground(labels);
    std::vector<char>         memory(static_cast<std::size_t>(voxels) * PixelSize(kind));
    const BufferView          parts = DenseView(memory.data(), kind, box);
    FilterParameters          parameters;
    parameters.SetInteger("Connectivity", 1);
    FilterImage about;
    about.extent = box.Extents();
    about.inputKind = PixelType::UInt8;
    about.outputKind = kind;
    ExecutionRequest run = how;
    run.operation = MakeFilterOperation("label", parameters, about);
    run.image = run.region = box;
    run.inputs = { DenseView(marks.data(), PixelType::UInt8, box) };
    run.output = parts;
    run.budgets.host = rest;
    PartMonitor first(monitor, 0, 0.6);
    PartMonitor second(monitor, 0.6, 1);
    manager.Execute(run, &first);
    LabelHoles holes(labels.kind, kind, box.Extents(), rest);
    holes.Add(labels, parts, box);
    second.UpdateProgress(0.5);
    if (second.ShouldAbort())
    {
      throw Aborted();
    }
    holes.Fill(labels, parts, box);
    second.UpdateProgress(1);
    return holes.GetCount();
  }
  catch (const BudgetError & error)
  {
    throw BudgetError(std::string(error.what()) + "; with the parts of the background " +
                        std::to_string(error.needed + bytes) + " are enough",
                      error.needed + bytes,
                      budget);
  }
}

} // namespace chunkwise
