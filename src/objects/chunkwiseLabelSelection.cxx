/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseLabelSelection.h"

#include "chunkwiseError.h"
#include "chunkwiseMeasureTable.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chunkwise
{

namespace
{

/** Labels whose columns are made at a time. */
constexpr std::int64_t LabelsAtOnce = 4096;

std::string
Trim(const std::string & text)
{
  const char * const blanks = " \t";
  const std::size_t  begin = text.find_first_not_of(blanks);
  return begin == std::string::npos ? std::string() : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

/** -1, 0 or 1. Neither is NaN. */
int
Compare(const PixelValue & a, const PixelValue & b)
{
  if (!a.IsInteger() || !b.IsInteger())
  {
    const double x = a.ToDouble();
    const double y = b.ToDouble();
    return x < y ? -1 : x > y ? 1 : 0;
  }
  if (a.IsNegative() != b.IsNegative())
  {
    return a.IsNegative() ? -1 : 1;
  }
  if (a.IsNegative())
  {
    const auto x = a.As<std::int64_t>();
    const auto y = b.As<std::int64_t>();
    return x < y ? -1 : x > y ? 1 : 0;
  }
  const auto x = a.As<std::uint64_t>();
  const auto y = b.As<std::uint64_t>();
  return x < y ? -1 : x > y ? 1 : 0;
}

} // namespace

LabelCondition
LabelCondition::FromText(const std::string & text)
{
  struct Sign
  {
    const char * text;
    Comparison   comparison;
  };
  // The longer ones first.
  constexpr Sign    signs[] = { { "<=", Comparison::LessOrEqual }, { ">=", Comparison::GreaterOrEqual },
                                { "==", Comparison::Equal },       { "!=", Comparison::NotEqual },
                                { "<", Comparison::Less },         { ">", Comparison::Greater } };
  const std::size_t where = text.find_first_of("<>=!");
  for (const Sign & sign : signs)
  {
    if (where == std::string::npos || text.compare(where, std::string(sign.text).size(), sign.text) != 0)
    {
      continue;
    }
    LabelCondition condition;
    condition.column = Trim(text.substr(0, where));
    condition.comparison = sign.comparison;
    try
    {
      condition.value = PixelValue::FromText(Trim(text.substr(where + std::string(sign.text).size())));
    }
    catch (const ParameterError &)
    {
      break;
    }
    if (std::isnan(condition.value.ToDouble()))
    {
      break;
    }
    condition.GetProperty();
    return condition;
  }
  throw ParameterError("Where", "'" + text + "'", "a column, one of < <= > >= == != and a number, as \"area > 100\"");
}

std::string
LabelCondition::GetProperty() const
{
  std::string all;
  for (const MeasurementProperty & property : GetMeasurementProperties())
  {
    const std::string name = property.name;
    // Columns of several axes have their numbers behind.
    if (column == name || (column.size() > name.size() + 1 && column.compare(0, name.size() + 1, name + "-") == 0 &&
                           column.find_first_not_of("0123456789-", name.size()) == std::string::npos))
    {
      return name;
    }
    all += (all.empty() ? "" : ", ") + name;
  }
  throw ParameterError("Where", "'" + column + "'", "a column of " + all);
}

bool
LabelCondition::IsMet(const PixelValue & measured) const
{
  if (std::isnan(measured.ToDouble()))
  {
    return comparison == Comparison::NotEqual;
  }
  const int order = Compare(measured, value);
  switch (comparison)
  {
    case Comparison::Less:
      return order < 0;
    case Comparison::LessOrEqual:
      return order <= 0;
    case Comparison::Greater:
      return order > 0;
    case Comparison::GreaterOrEqual:
      return order >= 0;
    case Comparison::Equal:
      return order == 0;
    case Comparison::NotEqual:
      return order != 0;
  }
  return false;
}

std::vector<std::string>
GetPropertiesOf(const LabelSelection & selection)
{
  std::vector<std::string> properties{ "label", "num_pixels" };
  for (const LabelCondition & condition : selection.conditions)
  {
    const std::string name = condition.GetProperty();
    if (std::find(properties.begin(), properties.end(), name) == properties.end())
    {
      properties.push_back(name);
    }
  }
  return properties;
}

struct LabelMap::State
{
  explicit State(const Measurements & given)
    : measurements(given)
  {}
  const Measurements &       measurements;
  const MeasureRows *        rows{ nullptr };
  std::vector<std::uint64_t> labels; ///< by the numbers of rows; 0: removed
  std::int64_t               count{ 0 };
};

LabelMap::LabelMap(const Measurements & measurements, const MeasurementSpace & space, const LabelSelection & selection)
  : m_State(std::make_unique<State>(measurements))
{
  const auto & measured = *measurements.m_State;
  m_State->rows = &measured.rows;
  const std::vector<std::string> properties = GetPropertiesOf(selection);
  const std::int64_t             labels = measurements.GetNumberOfLabels();
  measurements.m_State->meter.Take(static_cast<std::uint64_t>(labels) * 2 * sizeof(std::uint64_t));
  std::vector<std::uint32_t> kept;
  for (std::int64_t begin = 0; begin == 0 || begin < labels; begin += LabelsAtOnce)
  {
    const MeasurementTable table = measurements.MakeTable(space, properties, begin, begin + LabelsAtOnce);
    std::vector<const MeasurementColumn *> columns;
    for (const LabelCondition & condition : selection.conditions)
    {
      const auto found = std::find_if(
        table.begin(), table.end(), [&](const MeasurementColumn & column) { return column.name == condition.column; });
      if (found == table.end())
      {
        throw ParameterError("Where", "'" + condition.column + "'", "a column of " + condition.GetProperty() + " here");
      }
      columns.push_back(&*found);
    }
    for (std::size_t row = 0; row < table.front().GetSize(); ++row)
    {
      bool isKept = true;
      for (std::size_t c = 0; c < columns.size() && isKept; ++c)
      {
        isKept = selection.conditions[c].IsMet(columns[c]->GetValue(row));
      }
      if (isKept)
      {
        kept.push_back(measured.order[static_cast<std::size_t>(begin) + row]);
      }
    }
  }
  if (selection.keepLargest > 0 && static_cast<std::int64_t>(kept.size()) > selection.keepLargest)
  {
    // Places in `kept` are in the order of labels.
    std::vector<std::uint32_t> bySize(kept.size());
    for (std::uint32_t i = 0; i < bySize.size(); ++i)
    {
      bySize[i] = i;
    }
    std::stable_sort(bySize.begin(), bySize.end(), [&](std::uint32_t a, std::uint32_t b) {
      return measured.rows.GetRow(kept[a])[MeasureLayout::count] > measured.rows.GetRow(kept[b])[MeasureLayout::count];
    });
    bySize.resize(static_cast<std::size_t>(selection.keepLargest));
    std::sort(bySize.begin(), bySize.end());
    std::transform(bySize.begin(), bySize.end(), bySize.begin(), [&](std::uint32_t i) { return kept[i]; });
    kept = std::move(bySize);
  }
  m_State->count = static_cast<std::int64_t>(kept.size());
  const PixelType kind = measurements.GetSettings().labelKind;
  if (selection.relabel && !PixelValue(m_State->count).IsOf(kind))
  {
    throw Error(std::to_string(m_State->count) + " labels do not fit " + PixelTypeName(kind));
  }
  m_State->labels.assign(measured.rows.GetSize(), 0);
  std::uint64_t next = 0;
  for (const std::uint32_t slot : kept)
  {
    m_State->labels[slot] = selection.relabel ? ++next : measured.rows.GetLabels()[slot];
  }
}

LabelMap::~LabelMap() = default;

std::int64_t
LabelMap::GetCount() const
{
  return m_State->count;
}

void
LabelMap::Apply(const BufferView & labels, const BufferView & output, const Box & box, Executor & executor) const
{
  const PixelType kind = m_State->measurements.GetSettings().labelKind;
  ReplaceLabels(labels, output, kind, box, executor, [this](auto label) {
    const std::uint32_t slot = m_State->rows->GetSlots().Find(BitsOfLabel(label));
    if (slot == LabelSlots::None)
    {
      throw Error("the label " + PixelValue(label).ToText() + " was not measured");
    }
    return static_cast<decltype(label)>(m_State->labels[slot]);
  });
}

} // namespace chunkwise
