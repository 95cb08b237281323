/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFilters.h"

#include "chunkwiseDifferenceOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseFilterRows.h"
#include "chunkwiseFramedOperation.h"
#include "chunkwiseGridRows.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <memory>
#include <mutex>
#include <set>

namespace chunkwise
{

namespace
{

void
AddVoxelFilters(std::vector<FilterDescription> & filters)
{
  FilterDescription identity;
  identity.name = "identity";
  identity.group = "Voxel by voxel";
  identity.title = "Copy an image";
  identity.isLinear = true;
  identity.make = [](const CheckedParameters &, const FilterImage &) -> std::shared_ptr<const Operation> {
    return std::make_shared<IdentityOperation>();
  };
  filters.push_back(identity);

  FilterDescription difference;
  difference.name = "difference";
  difference.group = identity.group;
  difference.title = "The image minus another one";
  difference.output = DefaultOutput::Real;
  difference.canBeStage = false;
  difference.isLinear = true;
  difference.givesIntegers = [](const FilterParameters &, const std::vector<std::string> &) { return true; };
  difference.additionalInputs = { { "Input2", "minus", "The image to subtract, of the same size" } };
  difference.make = [](const CheckedParameters &, const FilterImage &) -> std::shared_ptr<const Operation> {
    return std::make_shared<DifferenceOperation>();
  };
  filters.push_back(difference);
}

/** Throws ParameterError if two rows have one name. */
void
CheckNames(const std::vector<FilterDescription> & filters)
{
  std::set<std::string> names;
  for (const FilterDescription & filter : filters)
  {
    if (!names.insert(filter.name).second)
    {
      throw ParameterError("there is a filter '" + filter.name + "' already");
    }
  }
}

/** The table, and what is added to it. */
class FilterTable
{
public:
  static FilterTable &
  Get()
  {
    static FilterTable & table = *new FilterTable;
    return table;
  }
  const std::vector<FilterDescription> &
  GetRows()
  {
    if (!m_Rows.load())
    {
      const std::lock_guard<std::mutex> lock(m_Mutex);
      if (!m_Rows.load())
      {
        this->Make();
      }
    }
    return *m_Rows.load();
  }
  void
  Add(AddFiltersFunction add)
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    if (std::find(m_Families.begin(), m_Families.end(), add) != m_Families.end())
    {
      return;
    }
    m_Families.push_back(add);
    // Libraries add their rows while they are loaded, when there may be no rows of others yet.
    if (!m_Rows.load())
    {
      return;
    }
    try
    {
      this->Make();
    }
    catch (...)
    {
      m_Families.pop_back();
      throw;
    }
  }

private:
  /** Makes the table anew. The one before stays where it is, for those who have rows of it. */
  void
  Make()
  {
    auto rows = std::make_unique<std::vector<FilterDescription>>();
    for (const AddFiltersFunction add : m_Families)
    {
      add(*rows);
    }
    AddVoxelFilters(*rows);
    CheckNames(*rows);
    m_Rows = rows.get();
    m_Tables.push_back(std::move(rows));
  }

  std::mutex                      m_Mutex;
  std::vector<AddFiltersFunction> m_Families{ AddWindowFilters,     AddConvolutionFilters,   AddReconstructionFilters,
                                              AddAreaFilters,       AddTableFilters,         AddObjectFilters,
                                              AddDistanceFilters,   AddDeconvolutionFilters, AddThresholdFilters,
                                              AddWatershedFilters,  AddResampleFilters,      AddGridFilters,
                                              AddDerivativeFilters, AddEnhancementFilters };
  std::atomic<const std::vector<FilterDescription> *> m_Rows{ nullptr };
  /** The one in m_Rows, and those before it. */
  std::vector<std::unique_ptr<const std::vector<FilterDescription>>> m_Tables;
};

/** The number of letters to change, add or leave out, to come from one word to the other (V. Levenshtein, 1966). */
std::size_t
EditDistance(const std::string & a, const std::string & b)
{
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
  {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i)
  {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j)
    {
      const std::size_t above = row[j];
      row[j] = std::min({ above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1] ? 1 : 0) });
      diagonal = above;
    }
  }
  return row[b.size()];
}

} // namespace

const std::vector<FilterDescription> &
GetFilters()
{
  return FilterTable::Get().GetRows();
}

void
AddFilters(AddFiltersFunction add)
{
  FilterTable::Get().Add(add);
}

std::string
NearestWord(const std::string & word, const std::vector<std::string> & words)
{
  std::string nearest;
  std::size_t least = std::max<std::size_t>(2, word.size() / 2);
  for (const std::string & candidate : words)
  {
    const std::size_t distance = EditDistance(word, candidate);
    if (distance < least)
    {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

const FilterDescription &
GetFilter(const std::string & name)
{
  std::vector<std::string> names;
  for (const FilterDescription & filter : GetFilters())
  {
    if (filter.name == name)
    {
      return filter;
    }
    names.push_back(filter.name);
  }
  const std::string nearest = NearestWord(name, names);
  throw ParameterError("there is no filter '" + name + "'" +
                       (nearest.empty() ? std::string() : "; the nearest is '" + nearest + "'"));
}

const ParameterDescription *
FilterDescription::FindParameter(const std::string & parameterName) const
{
  const auto found = std::find_if(
    parameters.begin(), parameters.end(), [&](const ParameterDescription & row) { return row.name == parameterName; });
  return found == parameters.end() ? nullptr : &*found;
}

bool
ParameterDescription::HasEffectWith(const std::string & word) const
{
  const std::vector<std::string> words = SplitWords(word);
  return std::any_of(words.begin(), words.end(), [this](const std::string & each) {
    return ("|" + onlyWithValue + "|").find("|" + each + "|") != std::string::npos;
  });
}

const ParameterDescription *
FilterDescription::FindAutomatic(const FilterParameters & given) const
{
  const auto wordOf = [&](const ParameterDescription & parameter) {
    const auto found = given.GetValues().find(parameter.name);
    if (found == given.GetValues().end())
    {
      return parameter.defaultText;
    }
    const auto * const word = std::get_if<std::string>(&found->second);
    return word ? *word : std::string();
  };
  for (const ParameterDescription & parameter : parameters)
  {
    const ParameterDescription * const other = this->FindParameter(parameter.onlyWithName);
    if (parameter.estimate.take && wordOf(parameter) == "auto" && (!other || parameter.HasEffectWith(wordOf(*other))))
    {
      return &parameter;
    }
  }
  return nullptr;
}

namespace
{

std::shared_ptr<const Operation>
MakeFramedFilter(const FilterDescription & filter, const CheckedParameters & checked,
                 const std::shared_ptr<const Operation> & operation)
{
  BoundaryMode modes[MaxDimension];
  PixelValue   constant{ 0.0 };
  checked.GetBoundaryPerAxis(modes, constant);
  // Estimates of the whole image need the type of the operation.
  const bool estimates = std::any_of(filter.parameters.begin(), filter.parameters.end(), [](const auto & parameter) {
    return parameter.estimate.take != nullptr;
  });
  auto       framed = estimates ? nullptr : MakeFramed(operation, modes, constant);
  if (!framed)
  {
    ThrowParameterError("BoundaryCondition",
                        "'" + checked.Choice("BoundaryCondition") + "' differs from axis to axis; " + filter.name +
                          (operation->GetNumberOfInputs() > 1 ? " of several images" : "") + " has one for all axes");
  }
  return framed;
}

} // namespace

std::shared_ptr<const Operation>
MakeFilterOperation(const std::string & name, const FilterParameters & parameters, const FilterImage & image)
{
  const FilterDescription & filter = GetFilter(name);
  const CheckedParameters   checked(filter, parameters, image);
  auto                      operation = filter.make(checked, image);
  if (checked.HasBoundaryPerAxis())
  {
    operation = MakeFramedFilter(filter, checked, operation);
  }
  operation->Validate(image.extent);
  return operation;
}

FilterImage
GetFilterOutputImage(const std::string & name, const FilterParameters & parameters, const FilterImage & image)
{
  const FilterDescription & filter = GetFilter(name);
  return filter.outputImage ? filter.outputImage(CheckedParameters(filter, parameters, image), image) : image;
}

Box
GetFilterOutputBox(const std::string & name, const FilterParameters & parameters, const FilterImage & image)
{
  const FilterDescription & filter = GetFilter(name);
  if (filter.outputImage)
  {
    return Box::FromExtent(GetFilterOutputImage(name, parameters, image).extent);
  }
  return filter.outputBox ? filter.outputBox(CheckedParameters(filter, parameters, image), image)
                          : Box::FromExtent(image.extent);
}

std::int64_t
GetFilterOutputComponents(const std::string & name, const FilterParameters & parameters, const FilterImage & image)
{
  const FilterDescription & filter = GetFilter(name);
  return filter.outputComponents ? filter.outputComponents(CheckedParameters(filter, parameters, image), image) : 0;
}

PixelType
GetDefaultOutputKind(const FilterDescription & filter, PixelType input)
{
  const bool isSigned = !IsFloatingPoint(input) && (static_cast<int>(input) & 1) != 0;
  switch (filter.output)
  {
    case DefaultOutput::InputUnlessSigned:
      if (!isSigned)
      {
        return input;
      }
      [[fallthrough]];
    case DefaultOutput::Real:
      return PixelSize(input) <= 2 || input == PixelType::Float32 ? PixelType::Float32 : PixelType::Float64;
    case DefaultOutput::RealSum:
      return PixelSize(input) == 1 || input == PixelType::Float32 ? PixelType::Float32 : PixelType::Float64;
    case DefaultOutput::Label:
      return PixelType::UInt32;
    case DefaultOutput::Class:
      return PixelType::UInt8;
    case DefaultOutput::Sum:
      return IsFloatingPoint(input) ? PixelType::Float64 : isSigned ? PixelType::Int64 : PixelType::UInt64;
    default:
      return input;
  }
}

namespace
{

/** The end of the run of letters and digits that begins at `at`. */
std::size_t
EndOfWord(const std::string & text, std::size_t at)
{
  while (at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])))
  {
    ++at;
  }
  return at;
}

/** A word, not a part of a file's name or of a number. */
bool
StandsAlone(const std::string & text, std::size_t begin, std::size_t end)
{
  const bool begins = begin == 0 || std::string(" (").find(text[begin - 1]) != std::string::npos;
  const bool ends = end == text.size() || std::string(" ,:;=)").find(text[end]) != std::string::npos;
  return begins && ends;
}

/** The sizes "3 x 2", the first of which ends at `end`, as "(1, 2, 3)" for a third axis; empty if there is one number
 * alone. `end` is then behind them. */
std::string
ReverseSizes(const std::string & text, std::size_t begin, std::size_t & end, int dimension)
{
  std::vector<std::string> sizes{ text.substr(begin, end - begin) };
  std::size_t              at = end;
  while (text.compare(at, 3, " x ") == 0 && EndOfWord(text, at + 3) > at + 3)
  {
    const std::size_t next = EndOfWord(text, at + 3);
    sizes.push_back(text.substr(at + 3, next - at - 3));
    at = next;
  }
  if (sizes.size() == 1)
  {
    return "";
  }
  end = at;
  // Sizes of 1 at the end are not in the text.
  sizes.resize(std::max(sizes.size(), static_cast<std::size_t>(dimension)), "1");
  std::string reversed;
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size)
  {
    reversed += (reversed.empty() ? "(" : ", ") + *size;
  }
  return reversed + ")";
}

} // namespace

std::string
WordMessage(const std::string & message, const UserWords & words)
{
  std::string worded;
  std::string before;
  const int   dimension = words.dimensionOfReversedAxes;
  for (std::size_t at = 0; at < message.size();)
  {
    std::size_t end = EndOfWord(message, at);
    if (end == at)
    {
      worded += message[at++];
      continue;
    }
    const std::string word = message.substr(at, end - at);
    std::string       other;
    if (StandsAlone(message, at, end))
    {
      const bool isNumber =
        dimension > 0 && word.size() < 10 && word.find_first_not_of("0123456789") == std::string::npos;
      if (std::isupper(static_cast<unsigned char>(word[0])))
      {
        other = words.name ? words.name(word) : std::string();
      }
      else if (isNumber && before == "axis" && std::stoi(word) < dimension)
      {
        other = std::to_string(dimension - 1 - std::stoi(word));
      }
      else if (isNumber)
      {
        other = ReverseSizes(message, at, end, dimension);
      }
    }
    worded += other.empty() ? word : other;
    before = word;
    at = end;
  }
  return worded;
}

bool
FilterDescription::CanExceed(PixelType kind) const
{
  const bool isSigned = !IsFloatingPoint(kind) && (static_cast<int>(kind) & 1) != 0;
  return isSigned && reconstruction.gives == ReconstructionGives::Residue;
}

PixelType
GetConvertedKind(const FilterDescription & filter, const FilterParameters & parameters,
                 const std::vector<std::string> & additionalInputs, PixelType input, PixelType output)
{
  if (GetDefaultOutputKind(filter, input) == input || filter.convertsDefaultOutput)
  {
    return GetDefaultOutputKind(filter, input);
  }
  const bool isExact = !IsFloatingPoint(input) && PixelSize(input) >= 4 && filter.givesIntegers &&
                       filter.givesIntegers(parameters, additionalInputs);
  // int64 has all results of 32-bit integers; those of 64-bit integers are cut where the output ends.
  const bool isUnsigned = PixelSize(input) == 8 && (static_cast<int>(output) & 1) == 0;
  return !isExact ? PixelType::Float64 : isUnsigned ? PixelType::UInt64 : PixelType::Int64;
}

PixelType
GetCommonKind(PixelType a, PixelType b)
{
  if (a == b)
  {
    return a;
  }
  const auto isSigned = [](PixelType kind) { return (static_cast<int>(kind) & 1) != 0; };
  const auto refuse = [&]() {
    throw ParameterError(std::string("no type of voxels has all values of ") + PixelTypeName(a) + " and " +
                         PixelTypeName(b));
  };
  if (IsFloatingPoint(a) || IsFloatingPoint(b))
  {
    const PixelType other = IsFloatingPoint(a) ? b : a;
    if (IsFloatingPoint(other) || PixelSize(other) == 4)
    {
      return PixelType::Float64;
    }
    if (PixelSize(other) == 8)
    {
      refuse();
    }
    return IsFloatingPoint(a) ? a : b;
  }
  const std::size_t bytes = std::max(PixelSize(a), PixelSize(b));
  if (isSigned(a) == isSigned(b))
  {
    return PixelSize(a) == bytes ? a : b;
  }
  const PixelType withSign = isSigned(a) ? a : b;
  const PixelType without = isSigned(a) ? b : a;
  if (PixelSize(withSign) > PixelSize(without))
  {
    return withSign;
  }
  switch (PixelSize(without))
  {
    case 1:
      return PixelType::Int16;
    case 2:
      return PixelType::Int32;
    case 4:
      return PixelType::Int64;
    default:
      refuse();
  }
  return a;
}

PixelType
PixelTypeFromName(const std::string & name)
{
  std::string known;
  for (int i = 0; i < NumberOfPixelTypes; ++i)
  {
    const auto kind = static_cast<PixelType>(i);
    if (name == PixelTypeName(kind))
    {
      return kind;
    }
    known += (i > 0 ? ", " : "") + std::string(PixelTypeName(kind));
  }
  if (name == "float" || name == "double")
  {
    return name == "float" ? PixelType::Float32 : PixelType::Float64;
  }
  throw ParameterError("'" + name + "' is none of " + known);
}

} // namespace chunkwise
