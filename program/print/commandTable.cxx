/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandTable.h"

#include "chunkwiseFilters.h"
#include "commandJson.h"

#include <algorithm>

namespace command
{

namespace
{

using chunkwise::FilterDescription;
using chunkwise::ParameterCount;
using chunkwise::ParameterDescription;
using chunkwise::ParameterType;

const char *
NameOf(ParameterType type)
{
  constexpr const char * names[] = { "flag",  "integer", "integers", "real",   "reals",
                                     "value", "choice",  "kernel",   "network" };
  return names[static_cast<int>(type)];
}

const char *
NameOf(chunkwise::DefaultOutput output)
{
  constexpr const char * names[] = { "input", "real", "real-sum", "input-unless-signed", "sum", "label", "class" };
  return names[static_cast<int>(output)];
}

const char *
NameOf(chunkwise::MarkerRule rule)
{
  constexpr const char * names[] = { "none", "input", "shifted", "next", "border", "window" };
  return names[static_cast<int>(rule)];
}

/** The count of numbers in a list. */
const char *
NameOf(ParameterCount count)
{
  constexpr const char * names[] = { "spatial", "axes", "two", "any" };
  return names[static_cast<int>(count)];
}

Json
Describe(const FilterDescription & filter, const ParameterDescription & parameter)
{
  const bool isList = parameter.type == ParameterType::Integers || parameter.type == ParameterType::Reals;
  Json       json = { { "name", parameter.name },
                      { "option", parameter.option },
                      { "type", NameOf(parameter.type) },
                      { "count", isList ? NameOf(parameter.count) : "one" },
                      { "help", parameter.help },
                      { "default", parameter.defaultText.empty() ? Json() : Json(parameter.defaultText) },
                      { "example", parameter.exampleText.empty() ? Json() : Json(parameter.exampleText) },
                      { "required", parameter.required },
                      { "minimum", ToJson(parameter.minimum) },
                      { "maximum", ToJson(parameter.maximum) },
                      { "aboveMinimum", parameter.aboveMinimum },
                      { "choices", parameter.choices },
                      { "canBeAuto", !parameter.provisionalText.empty() },
                      { "onlyWith", nullptr } };
  if (!parameter.onlyWithName.empty())
  {
    json["onlyWith"] = { { "option", filter.FindParameter(parameter.onlyWithName)->option },
                         { "value", parameter.onlyWithValue } };
  }
  return json;
}

Json
Describe(const FilterDescription & filter)
{
  Json parameters = Json::array();
  for (const ParameterDescription & parameter : filter.parameters)
  {
    parameters.push_back(Describe(filter, parameter));
  }
  Json inputs = Json::array();
  for (const chunkwise::InputDescription & input : filter.additionalInputs)
  {
    inputs.push_back({ { "name", input.name },
                       { "option", input.option },
                       { "help", input.help },
                       { "required", input.required },
                       { "ownType", input.ownKind } });
  }
  return { { "name", filter.name },
           { "group", filter.group },
           { "title", filter.title },
           { "output", NameOf(filter.output) },
           { "parameters", parameters },
           { "inputs", inputs },
           { "canBeStage", filter.canBeStage },
           { "isLinear", filter.isLinear },
           { "takesComponents", filter.takesComponents },
           { "promisesBits", filter.promisesBits },
           { "marker", NameOf(filter.reconstruction.marker) } };
}

} // namespace

std::string
DescribeTable(bool asJson)
{
  const auto & filters = chunkwise::GetFilters();
  if (asJson)
  {
    Json json = Json::array();
    for (const FilterDescription & filter : filters)
    {
      json.push_back(Describe(filter));
    }
    return ToText(json);
  }
  std::size_t width = 0;
  for (const FilterDescription & filter : filters)
  {
    width = std::max(width, filter.name.size());
  }
  std::string text;
  for (const FilterDescription & filter : filters)
  {
    text += filter.name + std::string(width + 2 - filter.name.size(), ' ') + filter.title + "\n";
  }
  return text;
}

} // namespace command
