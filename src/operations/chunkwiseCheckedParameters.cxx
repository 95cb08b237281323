/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCheckedParameters.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

std::string
TextOf(double value)
{
  return PixelValue(value).ToText();
}

/** "from 0 to 100", "above 0", "of at least 0" */
std::string
RangeText(const ParameterDescription & parameter)
{
  const bool fromBelow = std::isfinite(parameter.minimum);
  const bool fromAbove = std::isfinite(parameter.maximum);
  if (fromBelow && fromAbove)
  {
    return (parameter.aboveMinimum ? "above " : "from ") + TextOf(parameter.minimum) + " to " +
           TextOf(parameter.maximum);
  }
  if (fromBelow)
  {
    return (parameter.aboveMinimum ? "above " : "of at least ") + TextOf(parameter.minimum);
  }
  return fromAbove ? "of at most " + TextOf(parameter.maximum) : std::string();
}

void
CheckRange(const ParameterDescription & parameter, double value, const std::string & text)
{
  const bool inside = std::isfinite(value) &&
                      (parameter.aboveMinimum ? value > parameter.minimum : value >= parameter.minimum) &&
                      value <= parameter.maximum;
  if (!inside)
  {
    const std::string range = RangeText(parameter);
    throw ParameterError(parameter.name, text, "a finite number" + (range.empty() ? "" : " " + range));
  }
}

bool
IsWhole(ParameterType type)
{
  return type == ParameterType::Integer || type == ParameterType::Integers;
}

/** The value that a caller set, as the type of the table. */
ParameterValue
Convert(const ParameterDescription & parameter, const ParameterValue & value)
{
  const std::string wrong = "a value of another type was given";
  switch (parameter.type)
  {
    case ParameterType::Flag:
      if (!std::holds_alternative<bool>(value))
      {
        ThrowParameterError(parameter.name, wrong);
      }
      return value;
    case ParameterType::Integer:
    case ParameterType::Integers:
      if (!std::holds_alternative<std::vector<std::int64_t>>(value))
      {
        ThrowParameterError(parameter.name, wrong);
      }
      return value;
    case ParameterType::Real:
    case ParameterType::Reals:
      if (const auto * const integers = std::get_if<std::vector<std::int64_t>>(&value))
      {
        return std::vector<double>(integers->begin(), integers->end());
      }
      if (!std::holds_alternative<std::vector<double>>(value))
      {
        ThrowParameterError(parameter.name, wrong);
      }
      return value;
    case ParameterType::PixelValue:
      if (const auto * const integers = std::get_if<std::vector<std::int64_t>>(&value);
          integers && integers->size() == 1)
      {
        return PixelValue(integers->front());
      }
      if (const auto * const reals = std::get_if<std::vector<double>>(&value); reals && reals->size() == 1)
      {
        return PixelValue(reals->front());
      }
      if (!std::holds_alternative<PixelValue>(value))
      {
        ThrowParameterError(parameter.name, wrong);
      }
      return value;
    case ParameterType::Choice:
    {
      const auto * const word = std::get_if<std::string>(&value);
      if (!word)
      {
        ThrowParameterError(parameter.name, wrong);
      }
      for (const std::string & each : parameter.choicePerAxis ? SplitWords(*word) : std::vector<std::string>{ *word })
      {
        if (std::find(parameter.choices.begin(), parameter.choices.end(), each) == parameter.choices.end())
        {
          std::string known;
          for (const std::string & choice : parameter.choices)
          {
            known += (known.empty() ? "" : ", ") + choice;
          }
          throw ParameterError(parameter.name, "'" + each + "'", known, " is none of ");
        }
      }
      return value;
    }
    case ParameterType::Kernel:
      if (!std::holds_alternative<std::shared_ptr<const KernelStack>>(value) ||
          !std::get<std::shared_ptr<const KernelStack>>(value))
      {
        ThrowParameterError(parameter.name, "none is set");
      }
      return value;
    case ParameterType::Network:
      if (!std::holds_alternative<std::shared_ptr<const NetworkGraph>>(value) ||
          !std::get<std::shared_ptr<const NetworkGraph>>(value))
      {
        ThrowParameterError(parameter.name, "none is set");
      }
      return value;
  }
  return value;
}

} // namespace

std::vector<std::string>
SplitWords(const std::string & text)
{
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();)
  {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

void
ThrowParameterError(const std::string & parameter, const std::string & text)
{
  throw ParameterError(parameter + ": " + text);
}

std::string
CheckedParameters::Along(int axis)
{
  return " along axis " + std::to_string(axis);
}

CheckedParameters::CheckedParameters(const FilterDescription & filter, const FilterParameters & parameters,
                                     const FilterImage & image)
{
  for (const auto & named : parameters.GetValues())
  {
    const ParameterDescription * const parameter = filter.FindParameter(named.first);
    if (!parameter)
    {
      ThrowParameterError(named.first, filter.name + " has no parameter of this name");
    }
    m_Values[named.first] = Convert(*parameter, named.second);
  }
  for (const ParameterDescription & parameter : filter.parameters)
  {
    if (!this->Has(parameter.name))
    {
      if (parameter.required)
      {
        ThrowParameterError(parameter.name, "it was not set, and has no default");
      }
      if (parameter.type == ParameterType::Flag)
      {
        m_Values[parameter.name] = parameter.defaultText == "on";
      }
      else if (!parameter.defaultText.empty() && !(parameter.estimate.take && parameter.defaultText == "auto"))
      {
        m_Values[parameter.name] = ParseParameter(parameter, parameter.defaultText);
      }
    }
  }
  this->CheckAxes(image);
  for (const ParameterDescription & parameter : filter.parameters)
  {
    if (!this->Has(parameter.name))
    {
      continue;
    }
    const ParameterValue & value = m_Values[parameter.name];
    std::size_t            count = 1;
    if (const auto * const integers = std::get_if<std::vector<std::int64_t>>(&value))
    {
      count = integers->size();
      for (const std::int64_t number : *integers)
      {
        CheckRange(parameter, static_cast<double>(number), std::to_string(number));
      }
    }
    else if (const auto * const reals = std::get_if<std::vector<double>>(&value))
    {
      count = reals->size();
      for (const double number : *reals)
      {
        CheckRange(parameter, number, TextOf(number));
      }
    }
    else
    {
      continue;
    }
    const bool        isList = parameter.type == ParameterType::Integers || parameter.type == ParameterType::Reals;
    const std::string numbers = std::to_string(count) + (count == 1 ? " number" : " numbers");
    if (!isList && count != 1)
    {
      ThrowParameterError(parameter.name, numbers + ", there should be 1");
    }
    if (isList && parameter.count == ParameterCount::PerSpatialAxis && count != 1 && count != m_Axes.size())
    {
      ThrowParameterError(parameter.name, numbers + " for " + std::to_string(m_Axes.size()) + " spatial axes");
    }
    if (isList && parameter.count == ParameterCount::PerAxis && count != static_cast<std::size_t>(image.dimension))
    {
      ThrowParameterError(parameter.name, numbers + " for a " + std::to_string(image.dimension) + "-D image");
    }
    if (isList && parameter.count == ParameterCount::Two && count != 2)
    {
      ThrowParameterError(parameter.name, numbers + ", there should be 2");
    }
  }
  this->CheckBoundary(image);
}

void
CheckedParameters::CheckAxes(const FilterImage & image)
{
  if (this->Has("SpatialAxes"))
  {
    const auto & given = this->Integers("SpatialAxes");
    if (given.empty() || given.size() > static_cast<std::size_t>(MaxSpatialAxes))
    {
      ThrowParameterError("SpatialAxes",
                          std::to_string(given.size()) + " axes; one to " + std::to_string(MaxSpatialAxes) +
                            " can be spatial");
    }
    for (const std::int64_t axis : given)
    {
      if (axis < 0 || axis >= image.dimension)
      {
        throw ParameterError(
          "SpatialAxes", std::to_string(axis), "an axis of a " + std::to_string(image.dimension) + "-D image");
      }
      if (this->IsSpatial(static_cast<int>(axis)))
      {
        ThrowParameterError("SpatialAxes", std::to_string(axis) + " is given twice");
      }
      m_Axes.push_back(static_cast<int>(axis));
    }
    return;
  }
  for (int axis = 0; axis < std::min(image.dimension, MaxSpatialAxes); ++axis)
  {
    m_Axes.push_back(axis);
  }
}

void
CheckedParameters::CheckBoundary(const FilterImage & image)
{
  if (!this->Has("BoundaryCondition"))
  {
    return;
  }
  const std::string              text = this->Choice("BoundaryCondition");
  const std::vector<std::string> words = SplitWords(text);
  const auto has = [&](const char * word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  if (words.size() > 1 && words.size() != m_Axes.size())
  {
    ThrowParameterError("BoundaryCondition",
                        std::to_string(words.size()) + " words for " + std::to_string(m_Axes.size()) + " spatial axes");
  }
  if (std::count(words.begin(), words.end(), words.front()) == static_cast<std::ptrdiff_t>(words.size()))
  {
    m_Values["BoundaryCondition"] = words.front();
  }
  else if (has("renormalized"))
  {
    ThrowParameterError("BoundaryCondition", "'" + text + "': renormalized is for all axes, not for some of them");
  }
  if (!has("constant") || !this->Has("Constant"))
  {
    return;
  }
  const PixelValue constant = this->Value("Constant");
  if ((!IsFloatingPoint(image.inputKind) || !constant.IsInteger()) && !constant.IsOf(image.inputKind))
  {
    throw ParameterError("Constant",
                         constant.ToText(),
                         std::string("a value of the input's pixel type, ") + PixelTypeName(image.inputKind));
  }
  if (IsFloatingPoint(image.inputKind) && !constant.IsOf(PixelType::Float64))
  {
    throw ParameterError("Constant", constant.ToText(), "a number that a double has");
  }
}

const ParameterValue &
CheckedParameters::Get(const std::string & name) const
{
  const auto found = m_Values.find(name);
  if (found == m_Values.end())
  {
    ThrowParameterError(name, "it was not set, and has no default");
  }
  return found->second;
}

bool
CheckedParameters::Flag(const std::string & name) const
{
  return std::get<bool>(this->Get(name));
}

std::int64_t
CheckedParameters::Integer(const std::string & name) const
{
  return this->Integers(name).front();
}

double
CheckedParameters::Real(const std::string & name) const
{
  return this->Reals(name).front();
}

PixelValue
CheckedParameters::Value(const std::string & name) const
{
  return std::get<PixelValue>(this->Get(name));
}

const std::string &
CheckedParameters::Choice(const std::string & name) const
{
  return std::get<std::string>(this->Get(name));
}

const std::vector<double> &
CheckedParameters::Reals(const std::string & name) const
{
  return std::get<std::vector<double>>(this->Get(name));
}

const std::vector<std::int64_t> &
CheckedParameters::Integers(const std::string & name) const
{
  return std::get<std::vector<std::int64_t>>(this->Get(name));
}

std::shared_ptr<const KernelStack>
CheckedParameters::SharedKernel(const std::string & name) const
{
  return std::get<std::shared_ptr<const KernelStack>>(this->Get(name));
}

const KernelStack &
CheckedParameters::Kernel(const std::string & name) const
{
  return *std::get<std::shared_ptr<const KernelStack>>(this->Get(name));
}

std::shared_ptr<const NetworkGraph>
CheckedParameters::Network(const std::string & name) const
{
  return std::get<std::shared_ptr<const NetworkGraph>>(this->Get(name));
}

Coordinates
CheckedParameters::OverAxes(const std::string & name, std::int64_t other) const
{
  const auto & numbers = this->Integers(name);
  Coordinates  spread = Coordinates::Filled(other);
  for (std::size_t i = 0; i < m_Axes.size(); ++i)
  {
    spread[m_Axes[i]] = numbers[numbers.size() == 1 ? 0 : i];
  }
  return spread;
}

std::vector<double>
CheckedParameters::RealsOverAxes(const std::string & name, double other) const
{
  const auto &        numbers = this->Reals(name);
  std::vector<double> spread(static_cast<std::size_t>(MaxDimension), other);
  for (std::size_t i = 0; i < m_Axes.size(); ++i)
  {
    spread[static_cast<std::size_t>(m_Axes[i])] = numbers[numbers.size() == 1 ? 0 : i];
  }
  return spread;
}

bool
CheckedParameters::IsSpatial(int axis) const
{
  return std::find(m_Axes.begin(), m_Axes.end(), axis) != m_Axes.end();
}

namespace
{

BoundaryMode
BoundaryModeOf(const std::string & word)
{
  for (const BoundaryMode mode : { BoundaryMode::ZeroFluxNeumann,
                                   BoundaryMode::Constant,
                                   BoundaryMode::Mirror,
                                   BoundaryMode::MirrorCenter,
                                   BoundaryMode::Periodic })
  {
    if (word == BoundaryModeName(mode))
    {
      return mode;
    }
  }
  return BoundaryMode::Renormalized;
}

} // namespace

WindowBoundary
CheckedParameters::Boundary() const
{
  WindowBoundary boundary;
  boundary.mode =
    this->HasBoundaryPerAxis() ? BoundaryMode::ZeroFluxNeumann : BoundaryModeOf(this->Choice("BoundaryCondition"));
  if (boundary.mode == BoundaryMode::Constant)
  {
    boundary.constant = this->Value("Constant");
  }
  return boundary;
}

bool
CheckedParameters::HasBoundaryPerAxis() const
{
  return this->Has("BoundaryCondition") && this->Choice("BoundaryCondition").find(',') != std::string::npos;
}

void
CheckedParameters::GetBoundaryPerAxis(BoundaryMode (&modes)[MaxDimension], PixelValue & constant) const
{
  const std::vector<std::string> words = SplitWords(this->Choice("BoundaryCondition"));
  std::fill(std::begin(modes), std::end(modes), BoundaryMode::ZeroFluxNeumann);
  for (std::size_t i = 0; i < m_Axes.size(); ++i)
  {
    modes[m_Axes[i]] = BoundaryModeOf(words.at(i));
    constant = modes[m_Axes[i]] == BoundaryMode::Constant ? this->Value("Constant") : constant;
  }
}

ParameterValue
ParseParameter(const ParameterDescription & parameter, const std::string & text)
{
  if (parameter.type == ParameterType::Flag)
  {
    if (text != "on" && text != "off")
    {
      throw ParameterError(parameter.name, "'" + text + "'", "on nor off", " is neither ");
    }
    return text == "on";
  }
  if (parameter.type == ParameterType::Choice || parameter.type == ParameterType::Kernel ||
      parameter.type == ParameterType::Network)
  {
    return Convert(parameter, text);
  }
  try
  {
    if (parameter.type == ParameterType::PixelValue)
    {
      return PixelValue::FromText(text);
    }
    std::vector<std::int64_t> integers;
    std::vector<double>       reals;
    for (std::size_t begin = 0; begin <= text.size();)
    {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      const PixelValue  number = PixelValue::FromText(text.substr(begin, end - begin));
      if (IsWhole(parameter.type) && !number.IsOf(PixelType::Int64))
      {
        throw ParameterError(number.ToText() + " is not a whole number");
      }
      integers.push_back(number.As<std::int64_t>());
      reals.push_back(number.ToDouble());
      begin = end + 1;
    }
    if (IsWhole(parameter.type))
    {
      return integers;
    }
    return reals;
  }
  catch (const ParameterError & error)
  {
    ThrowParameterError(parameter.name, error.what());
  }
}

ParameterDescription
MakeParameter(const std::string & name, const std::string & option, ParameterType type, const std::string & help,
              const std::string & defaultText)
{
  ParameterDescription parameter;
  parameter.name = name;
  parameter.option = option;
  parameter.type = type;
  parameter.help = help;
  parameter.defaultText = defaultText;
  return parameter;
}

ParameterDescription
MakeNonNegative(const std::string & name, const std::string & option, const std::string & help,
                const std::string & defaultText)
{
  ParameterDescription number = MakeParameter(name, option, ParameterType::Real, help, defaultText);
  number.minimum = 0;
  return number;
}

ParameterDescription
MakeChoice(const std::string & name, const std::string & option, const std::string & help,
           const std::vector<std::string> & choices, const std::string & defaultText)
{
  ParameterDescription choice =
    MakeParameter(name, option, ParameterType::Choice, help, defaultText.empty() ? choices.front() : defaultText);
  choice.choices = choices;
  return choice;
}

ParameterDescription
OnlyWith(ParameterDescription parameter, const std::string & name, const std::string & values)
{
  parameter.onlyWithName = name;
  parameter.onlyWithValue = values;
  return parameter;
}

} // namespace chunkwise
