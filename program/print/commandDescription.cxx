/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandDescription.h"

#include "commandLine.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

namespace command
{

using chunkwise::FilterDescription;
using chunkwise::ParameterDescription;
using chunkwise::ParameterType;

namespace
{

std::string
Escape(const std::string & text)
{
  std::string escaped;
  for (const char c : text)
  {
    switch (c)
    {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

/** Each word with a capital, without dashes. */
std::string
Capitalized(const std::string & words)
{
  std::string name;
  bool        begins = true;
  for (const char c : words)
  {
    const bool isLetter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (isLetter)
    {
      name += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    }
    begins = !isLetter;
  }
  return name;
}

/** "Device memory" */
std::string
GetLabel(const std::string & option)
{
  static const std::map<std::string, std::string> labels{ { "fft", "Use FFT" },
                                                          { "full", "Diagonal neighbors" },
                                                          { "ignore-nan", "Ignore NaN" },
                                                          { "voxels", "Lengths in voxels" } };
  const auto                                      known = labels.find(option);
  if (known != labels.end())
  {
    return known->second;
  }
  std::string label = option;
  std::replace(label.begin(), label.end(), '-', ' ');
  label[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(label[0])));
  return label;
}

/** The unit of a parameter's numbers, behind its label: hosts give lengths in millimeters. Empty if it has none. */
std::string
GetUnit(const ParameterDescription & parameter)
{
  static const std::set<std::string> lengths{ "distance", "grid-origin", "grid-spacing", "maximum", "radius", "sigma" };
  static const std::set<std::string> counts{ "maximum-width", "patch", "patch-size", "radius" };
  const bool isReal = parameter.type == ParameterType::Real || parameter.type == ParameterType::Reals;
  const bool isWhole = parameter.type == ParameterType::Integer || parameter.type == ParameterType::Integers;
  if (parameter.option == "cutoff")
  {
    return " (sigmas)";
  }
  if (parameter.option == "percentile")
  {
    return " (%)";
  }
  return isReal && lengths.count(parameter.option) > 0   ? " (mm)"
         : isWhole && counts.count(parameter.option) > 0 ? " (voxels)"
                                                         : "";
}

/** The groups of a form, in their order. */
enum class FormGroup
{
  Main,
  Edge,
  Advanced
};

FormGroup
GetFormGroup(const ParameterDescription & parameter)
{
  static const std::set<std::string> edge{ "boundary", "constant", "ignore-nan" };
  static const std::set<std::string> advanced{ "axes",         "cutoff",        "empty-value",   "grid-origin",
                                               "grid-spacing", "maximum-error", "maximum-width", "modular",
                                               "output-mask",  "periodic",      "precision",     "structure",
                                               "transforms",   "weighting" };
  return parameter.required                     ? FormGroup::Main
         : edge.count(parameter.option) > 0     ? FormGroup::Edge
         : advanced.count(parameter.option) > 0 ? FormGroup::Advanced
                                                : FormGroup::Main;
}

/** Elements in the order of CTK's schema, which Slicer's reader takes too. */
class XmlWriter
{
public:
  void
  Open(const std::string & tag, const std::string & attributes = {})
  {
    m_Stream << std::string(2 * m_Tags.size(), ' ') << '<' << tag << attributes << ">\n";
    m_Tags.push_back(tag);
  }
  void
  Close()
  {
    const std::string tag = m_Tags.back();
    m_Tags.pop_back();
    m_Stream << std::string(2 * m_Tags.size(), ' ') << "</" << tag << ">\n";
  }
  void
  Element(const std::string & tag, const std::string & text)
  {
    m_Stream << std::string(2 * m_Tags.size(), ' ') << '<' << tag << '>' << Escape(text) << "</" << tag << ">\n";
  }
  /** The beginning of all parameters; `place` is "longflag" or "index". */
  void
  Parameter(const std::string & type, const std::string & attributes, const std::string & name,
            const std::string & place, const std::string & at, const std::string & help, const std::string & label)
  {
    this->Open(type, attributes);
    this->Element("name", name);
    this->Element(place, at);
    this->Element("description", help);
    this->Element("label", label);
  }
  void
  Group(const std::string & label, const std::string & help, const std::string & attributes = {})
  {
    this->Open("parameters", attributes);
    this->Element("label", label);
    this->Element("description", help);
  }
  std::string
  GetText() const
  {
    return m_Stream.str();
  }

private:
  std::ostringstream       m_Stream;
  std::vector<std::string> m_Tags;
};

constexpr const char * Volumes = " fileExtensions=\".mha\"";

std::string
NumberText(double number)
{
  return chunkwise::PixelValue(number).ToText();
}

void
WriteConstraints(XmlWriter & xml, const ParameterDescription & parameter, bool isWhole)
{
  const bool hasMinimum = std::isfinite(parameter.minimum);
  const bool hasMaximum = std::isfinite(parameter.maximum);
  if (!hasMinimum && !hasMaximum)
  {
    return;
  }
  constexpr double step = 0.1;
  xml.Open("constraints");
  if (hasMinimum)
  {
    // Hosts know no open ranges.
    xml.Element("minimum", NumberText(parameter.minimum + (parameter.aboveMinimum ? 1e-6 : 0.0)));
  }
  if (hasMaximum)
  {
    // Their whole numbers have 32 bits.
    xml.Element("maximum", NumberText(isWhole ? std::min(parameter.maximum, 2147483647.0) : parameter.maximum));
  }
  xml.Element("step", isWhole ? "1" : NumberText(step));
  xml.Close();
}

void
WriteParameter(XmlWriter & xml, const FilterDescription & filter, const ParameterDescription & parameter)
{
  const std::string name = GetFlagName(parameter.option);
  const std::string initial = GetFormText(parameter);
  const std::string help = GetFormHelp(filter, parameter);
  const auto        begin = [&](const std::string & type, const std::string & attributes = {}) {
    xml.Parameter(type, attributes, name, "longflag", name, help, GetLabel(parameter.option) + GetUnit(parameter));
  };
  // Hosts always give numbers and choices; what may be left out, and words among numbers, are strings.
  const bool mayBeLeftOut = initial.empty() || !parameter.provisionalText.empty();
  switch (parameter.type)
  {
    case ParameterType::Flag:
      begin("boolean");
      xml.Element("default", "false");
      break;
    case ParameterType::Choice:
      if (mayBeLeftOut)
      {
        begin("string");
        xml.Element("default", initial);
        break;
      }
      begin("string-enumeration");
      xml.Element("default", initial);
      for (const std::string & choice : parameter.choices)
      {
        xml.Element("element", choice);
      }
      break;
    case ParameterType::Kernel:
      // A stack of volumes is none that hosts could show.
      if (parameter.isStack)
      {
        begin("file", Volumes);
      }
      else
      {
        begin("image", Volumes);
      }
      xml.Element("channel", "input");
      break;
    case ParameterType::Network:
      begin("file", " fileExtensions=\".onnx\"");
      xml.Element("channel", "input");
      break;
    case ParameterType::Integer:
    case ParameterType::Real:
    case ParameterType::Integers:
    case ParameterType::Reals:
    {
      const bool        isWhole = parameter.type == ParameterType::Integer || parameter.type == ParameterType::Integers;
      const bool        isOne = parameter.type == ParameterType::Integer || parameter.type == ParameterType::Real;
      const std::string type = isWhole ? "integer" : "double";
      begin(mayBeLeftOut ? "string" : isOne ? type : type + "-vector");
      xml.Element("default", initial);
      if (!mayBeLeftOut)
      {
        WriteConstraints(xml, parameter, isWhole);
      }
      break;
    }
    default:
      // Values of voxels: a double has not all of them.
      begin("string");
      xml.Element("default", initial);
  }
  xml.Close();
}

/** Shown by hosts after a run: results without a flag and without a place on the command line. */
void
WriteReportGroup(XmlWriter & xml)
{
  xml.Group("Report", "Time and memory of the run");
  for (const ReportRow & row : GetReportRows())
  {
    xml.Open(row.isNumber ? "double" : "string");
    xml.Element("name", row.name);
    xml.Element("description", row.help);
    xml.Element("label", row.label);
    xml.Element("default", row.isNumber ? "0" : "");
    xml.Element("channel", "output");
    xml.Close();
  }
  xml.Close();
}

bool
HasLengthsAlongAxes(const FilterDescription & filter)
{
  return std::any_of(filter.parameters.begin(), filter.parameters.end(), [](const ParameterDescription & parameter) {
    return parameter.count == chunkwise::ParameterCount::PerSpatialAxis && !parameter.option.empty() &&
           (parameter.type == ParameterType::Integers || parameter.type == ParameterType::Reals);
  });
}

} // namespace

std::string
GetFormText(const ParameterDescription & parameter)
{
  return !parameter.onlyWithName.empty() ? std::string()
         : parameter.exampleText.empty() ? parameter.defaultText
                                         : parameter.exampleText;
}

std::string
GetFormHelp(const FilterDescription & filter, const ParameterDescription & parameter)
{
  std::string help = parameter.help;
  if (!parameter.onlyWithName.empty())
  {
    const ParameterDescription & other = *filter.FindParameter(parameter.onlyWithName);
    help += "; only with " + GetLabel(other.option) +
            (other.type == ParameterType::Flag ? "" : " " + TextOfValues(parameter)) +
            (parameter.defaultText.empty() ? "" : ", then " + parameter.defaultText);
  }
  return help;
}

std::string
GetModuleName(const FilterDescription & filter)
{
  return "Chunkwise" + Capitalized(filter.name);
}

std::string
GetFlagName(const std::string & option)
{
  std::string name = Capitalized(option);
  name[0] = option[0];
  return name;
}

std::string
DescribeModule(const FilterDescription & filter)
{
  XmlWriter xml;
  xml.Open("executable");
  xml.Element("category", "Filtering.Chunkwise." + filter.group);
  xml.Element("title", "Chunkwise " + filter.name);
  xml.Element("description",
              filter.title + ". Exact at the image's edge, and for images of any size." +
                (HasLengthsAlongAxes(filter)
                   ? " Numbers for axes are in the order of the voxels' indices, not of anatomical directions."
                   : ""));
  xml.Element("version", CHUNKWISE_VERSION);
  xml.Element("documentation-url",
              CHUNKWISE_HOMEPAGE "/blob/v" CHUNKWISE_VERSION "/docs/reference/formulas.md#" + filter.name);
  xml.Element("license", "Apache-2.0");
  xml.Element("contributor", "The Chunkwise Contributors");

  xml.Group("Images", "Input and output images");
  xml.Parameter("image", Volumes, "inputVolume", "index", "0", "Image to read", "Input volume");
  xml.Element("channel", "input");
  xml.Close();
  xml.Parameter("image",
                std::string(Volumes) + " reference=\"inputVolume\"",
                "outputVolume",
                "index",
                "1",
                "Image to write",
                "Output volume");
  xml.Element("channel", "output");
  xml.Close();
  for (const chunkwise::InputDescription & input : filter.additionalInputs)
  {
    const std::string name = GetFlagName(input.option);
    xml.Parameter("image", Volumes, name, "longflag", name, input.help, GetLabel(input.option));
    xml.Element("channel", "input");
    xml.Close();
  }
  xml.Close();

  const auto writeGroup =
    [&](FormGroup group, const std::string & label, const std::string & help, const std::string & attributes) {
      const auto isHere = [group](const ParameterDescription & parameter) {
        return !parameter.option.empty() && GetFormGroup(parameter) == group;
      };
      if (std::none_of(filter.parameters.begin(), filter.parameters.end(), isHere))
      {
        return;
      }
      xml.Group(label, help, attributes);
      for (const ParameterDescription & parameter : filter.parameters)
      {
        if (isHere(parameter))
        {
          WriteParameter(xml, filter, parameter);
        }
      }
      xml.Close();
    };
  writeGroup(FormGroup::Main, "Parameters", filter.title, "");
  writeGroup(FormGroup::Edge, "Edge and missing values", "Values beyond the edge of the image, and NaN", "");
  writeGroup(FormGroup::Advanced, "Advanced parameters", "Settings that are rarely changed", " advanced=\"true\"");

  xml.Group("Machine", "Devices and memory", " advanced=\"true\"");
  for (const CommonOption & option : GetCommonOptions())
  {
    if (!option.inForms)
    {
      continue;
    }
    const std::string name = GetFlagName(option.name);
    xml.Parameter(option.choices.empty() ? "string" : "string-enumeration",
                  "",
                  name,
                  "longflag",
                  name,
                  option.help,
                  GetLabel(option.name));
    xml.Element("default", option.choices.empty() ? "" : option.choices.front());
    for (const std::string & choice : option.choices)
    {
      xml.Element("element", choice);
    }
    xml.Close();
  }
  xml.Close();
  WriteReportGroup(xml);
  xml.Close();
  return "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n" + xml.GetText();
}

} // namespace command
