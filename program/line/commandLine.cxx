/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandLine.h"

#include "chunkwiseError.h"
#include "chunkwiseMeasurements.h"
#include "commandCompletion.h"
#include "commandDescription.h"
#include "commandInputs.h"
#include "commandKernels.h"
#include "commandRegion.h"
#include "commandTable.h"
#include "fileImage.h"
#include "fileMemory.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <set>
#include <sstream>

namespace command
{

namespace
{

using chunkwise::FilterDescription;
using chunkwise::ParameterDescription;
using chunkwise::ParameterType;

/** The texts that CLI11 fills in, before they become a CommandLine. */
struct Texts
{
  std::string                        input;
  std::string                        output;
  std::map<std::string, std::string> parameters; ///< by the table's name
  std::map<std::string, bool>        flags;
  std::map<std::string, std::string> inputs;
  std::vector<std::string>           steps;
  std::vector<std::string>           conditions;
  std::vector<std::string>           more; ///< images after the second
  bool                               isBatch{ false };
  std::map<std::string, std::string> common;   ///< by the option's name
  std::map<std::string, bool>        switches; ///< the same for flags
  std::set<std::string>              words;    ///< of the command line
  bool                               wantsAll{ false };

  /** Whether the options of a subcommand are needed: all together they take longer than a small image. */
  bool
  Wants(const std::string & subcommand) const
  {
    return wantsAll || words.count(subcommand) > 0;
  }
};

/** A word for what a parameter's numbers look like. */
std::string
ValueTypeName(const ParameterDescription & parameter)
{
  switch (parameter.type)
  {
    case ParameterType::Integer:
      return "N";
    case ParameterType::Real:
      return "X";
    case ParameterType::PixelValue:
      return "VALUE";
    case ParameterType::Kernel:
    case ParameterType::Network:
      return "FILE";
    case ParameterType::Choice:
    {
      std::string names;
      for (const std::string & choice : parameter.choices)
      {
        names += (names.empty() ? "" : "|") + choice;
      }
      return names;
    }
    default:
    {
      const std::string number = parameter.type == ParameterType::Integers ? "N" : "X";
      return parameter.count == chunkwise::ParameterCount::PerSpatialAxis ? number + "[," + number + "," + number + "]"
             : parameter.count == chunkwise::ParameterCount::Two          ? number + "," + number
                                                                          : number + ",...";
    }
  }
}

std::string
TypeName(const ParameterDescription & parameter)
{
  return ValueTypeName(parameter) + (parameter.provisionalText.empty() ? "" : std::string("|") + AutomaticWord);
}

/** The option without which a parameter has no effect, and its value. */
std::string
TextOfCondition(const FilterDescription & filter, const ParameterDescription & parameter)
{
  const ParameterDescription & other = *filter.FindParameter(parameter.onlyWithName);
  return "--" + other.option + (other.type == ParameterType::Flag ? "" : " " + TextOfValues(parameter));
}

void
AddParameters(CLI::App & app, const FilterDescription & filter, Texts & texts)
{
  for (const ParameterDescription & parameter : filter.parameters)
  {
    if (parameter.option.empty())
    {
      continue;
    }
    const std::string option = "--" + parameter.option;
    if (parameter.type == ParameterType::Flag)
    {
      app.add_flag(option, texts.flags[parameter.name], parameter.help);
      continue;
    }
    std::string help = parameter.help;
    if (!parameter.onlyWithName.empty())
    {
      help += "; only with " + TextOfCondition(filter, parameter);
    }
    if (!parameter.defaultText.empty())
    {
      help += " (" + parameter.defaultText + ")";
    }
    CLI::Option * const added = app.add_option(option, texts.parameters[parameter.name], help);
    added->type_name(TypeName(parameter))
      ->required(parameter.required)
      ->take_last()
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  }
  for (const chunkwise::InputDescription & input : filter.additionalInputs)
  {
    app.add_option("--" + input.option, texts.inputs[input.name], input.help)
      ->type_name("FILE")
      ->required(input.required);
  }
}

void
AddJsonFlag(CLI::App & app, Texts & texts)
{
  app.add_flag("--json", texts.switches["json"], "Print JSON");
}

/** The options of runs that write an image. */
void
AddCommonOptions(CLI::App & app, Texts & texts)
{
  app.add_option("IN", texts.input, "Image to read; see chunkwise formats")->required();
  app.add_option("OUT", texts.output, "Image to write; its ending says the format")->required(!texts.isBatch);
  app.add_option("MORE", texts.more, "With --out: IN, OUT and these are images to read, or patterns of their names");
  for (const CommonOption & option : GetCommonOptions())
  {
    if (option.type.empty())
    {
      app.add_flag("--" + option.name, texts.switches[option.name], option.help);
    }
    else
    {
      app.add_option("--" + option.name, texts.common[option.name], option.help)->type_name(option.type);
    }
  }
}

/** Measurements of labelled objects. */
void
AddMeasure(CLI::App & app, Texts & texts)
{
  CLI::App * const measure = app.add_subcommand("measure", "Measure the objects of an image of labels, as a table");
  measure->group("Without an output");
  measure->add_option("LABELS", texts.input, "Image of integers, 0 where no object is")->required();
  measure->add_option("INTENSITY", texts.common["intensity"], "Image of LABELS' size whose values are measured too");
  measure
    ->add_option(
      "--out", texts.common["table"], "Write the table to this file, .csv or .json, in place of standard output")
    ->type_name("FILE");
  std::string columns;
  for (const chunkwise::MeasurementProperty & property : chunkwise::GetMeasurementProperties())
  {
    columns += std::string(columns.empty() ? "" : ", ") + property.name;
  }
  measure->add_option("--columns", texts.common["columns"], "Only these columns: " + columns + ", intensity_median")
    ->type_name("NAME,...");
  measure
    ->add_option(
      "--quantiles", texts.common["quantiles"], "Quantiles of each object's intensity, exact; 0.5 is the median")
    ->type_name("F,...");
  measure
    ->add_option("--contacts",
                 texts.common["contacts"],
                 "Write another table: each two labels that touch, the faces of voxels between them and their area")
    ->type_name("FILE");
  measure->add_option("--raw", texts.common["raw"], "LABELS has no header: its type and sizes, as uint16,512,512,300")
    ->type_name("TYPE,X,Y,Z");
  measure->add_option("--memory", texts.common["memory"], "Host memory for the run, as 512M or 1.5G")
    ->type_name("SIZE");
  measure->add_option("--divisions", texts.common["divisions"], "Read in this many divisions")->type_name("N");
  measure->add_flag("--untrusted", texts.switches["untrusted"], "Read no format whose reader is not fuzzed");
  measure->add_option("--threads", texts.common["threads"], "Threads of the CPU (all)")->type_name("N");
  AddJsonFlag(*measure, texts);
}

/** The options of subcommands that read labels and write labels. */
void
AddOptionsOfLabels(CLI::App & app, Texts & texts)
{
  app.add_flag("--compress", texts.switches["compress"], "Compress OUT where its format can");
  app.add_option("--zarr", texts.common["zarr"], "How a store of OME-Zarr is written; see gaussian --help")
    ->type_name("PART,...");
  app.add_flag("--overwrite", texts.switches["overwrite"], "Replace OUT without a question");
  app.add_option("--raw", texts.common["raw"], "LABELS has no header: its type and sizes, as uint16,512,512,300")
    ->type_name("TYPE,X,Y,Z");
  app.add_option("--memory", texts.common["memory"], "Host memory for the run, as 512M or 1.5G")->type_name("SIZE");
  app.add_option("--divisions", texts.common["divisions"], "Read in this many divisions")->type_name("N");
  app.add_flag("--untrusted", texts.switches["untrusted"], "Read no format whose reader is not fuzzed");
  app.add_option("--threads", texts.common["threads"], "Threads of the CPU (all)")->type_name("N");
  AddJsonFlag(app, texts);
}

/** Labels that are kept by what is measured of them. */
void
AddFilterLabels(CLI::App & app, Texts & texts)
{
  CLI::App * const filter =
    app.add_subcommand("filter-labels", "Remove labels by what is measured of their objects, and number the others");
  filter->group("Objects");
  filter->add_option("LABELS", texts.input, "Image of integers, 0 where no object is")->required();
  filter->add_option("OUT", texts.output, "Image to write, of LABELS' type")->required();
  filter->add_option("--min-size", texts.common["min-size"], "Keep objects of this many voxels or more")
    ->type_name("VOXELS");
  filter->add_option("--max-size", texts.common["max-size"], "Keep objects of this many voxels or fewer")
    ->type_name("VOXELS");
  filter
    ->add_option(
      "--where", texts.conditions, "Keep objects that meet this, with a column of chunkwise measure; once for each")
    ->allow_extra_args(false)
    ->type_name("\"COLUMN > NUMBER\"");
  filter->add_flag("--remove-border", texts.switches["remove-border"], "Remove objects at the edge of the image");
  filter->add_option("--keep-largest", texts.common["keep-largest"], "Keep only the largest of these objects")
    ->type_name("N");
  filter->add_flag("--relabel", texts.switches["relabel"], "Number the objects that are kept 1, 2, ...");
  filter
    ->add_option("--replace",
                 texts.common["replace"],
                 "First let labels become others, as lines \"old,new\" of this file say; objects of one new label are "
                 "one")
    ->type_name("FILE");
  AddOptionsOfLabels(*filter, texts);
}

/** Holes of labelled objects. */
void
AddFillHoles(CLI::App & app, Texts & texts)
{
  CLI::App * const fill = app.add_subcommand(
    "fill-label-holes", "Fill the holes of labelled objects: background that one object alone encloses");
  fill->group("Objects");
  fill->add_option("LABELS", texts.input, "Image of integers, 0 where no object is")->required();
  fill->add_option("OUT", texts.output, "Image to write, of LABELS' type")->required();
  AddOptionsOfLabels(*fill, texts);
}

/** Objects that touch. */
void
AddSeparate(CLI::App & app, Texts & texts)
{
  CLI::App * const separate = app.add_subcommand(
    "separate", "Find objects by a threshold, separate touching objects where they are narrow, and label all of them");
  separate->group("Objects");
  separate->add_option("IN", texts.input, "Image to read; see chunkwise formats")->required();
  separate->add_option("OUT", texts.output, "Image of labels to write, 0 where no object is")->required();
  separate
    ->add_option("--method",
                 texts.common["method"],
                 "How the threshold follows from the histogram of the whole image, as in chunkwise threshold (otsu)")
    ->type_name("NAME");
  separate->add_option("--lower", texts.common["lower"], "In place of a method: the least value inside objects")
    ->type_name("VALUE");
  separate->add_option("--upper", texts.common["upper"], "In place of a method: the largest value inside objects")
    ->type_name("VALUE");
  separate
    ->add_option("--height",
                 texts.common["height"],
                 "By how much the distance to the background must fall between two objects, in the image's unit (1)")
    ->type_name("X");
  separate
    ->add_option("--area",
                 texts.common["area"],
                 "In place of a height: the least area, in 3-D the volume, of an object where it touches another one")
    ->type_name("X");
  separate
    ->add_option("--connectivity",
                 texts.common["connectivity"],
                 "Neighbors share a face (1), a face or an edge (2), or also a corner (3) (1)")
    ->type_name("N");
  separate->add_option("--table", texts.common["table"], "Measure the objects in IN into this file, .csv or .json")
    ->type_name("FILE");
  separate->add_option("--zarr", texts.common["zarr"], "How a store of OME-Zarr is written; see gaussian --help")
    ->type_name("PART,...");
  separate->add_option("--memory", texts.common["memory"], "Host memory for each step, as 512M or 1.5G")
    ->type_name("SIZE");
  separate->add_option("--threads", texts.common["threads"], "Threads of the CPU (all)")->type_name("N");
  separate->add_flag("--compress", texts.switches["compress"], "Compress OUT where its format can");
  separate->add_flag("--overwrite", texts.switches["overwrite"], "Replace OUT without a question");
  separate->add_flag("--quiet", texts.switches["quiet"], "No progress and no warnings");
  separate->add_flag("--untrusted", texts.switches["untrusted"], "Read no format whose reader is not fuzzed");
}

/** Levels for an image of OME-Zarr. */
void
AddPyramid(CLI::App & app, Texts & texts)
{
  CLI::App * const pyramid = app.add_subcommand(
    "pyramid", "Write the levels of an image of OME-Zarr, each of half as many voxels along an axis");
  pyramid->group("Other grids");
  pyramid->add_option("STORE", texts.input, "Store that has the image, and gets the levels")->required();
  pyramid
    ->add_option(
      "--method",
      texts.common["method"],
      "How voxels become one of the next level: mean (the default), mode for labels, min, max, median, gaussian")
    ->type_name("NAME");
  pyramid
    ->add_option(
      "--zarr", texts.common["zarr"], "How the levels are written: chunks, shards and codec; see gaussian --help")
    ->type_name("PART,...");
  pyramid->add_flag("--overwrite", texts.switches["overwrite"], "Replace the levels below the first one");
  pyramid->add_option("--memory", texts.common["memory"], "Host memory for the run, as 512M or 1.5G")
    ->type_name("SIZE");
  pyramid->add_option("--divisions", texts.common["divisions"], "Read in this many divisions")->type_name("N");
  pyramid->add_option("--threads", texts.common["threads"], "Threads of the CPU (all)")->type_name("N");
  pyramid->add_flag("--quiet", texts.switches["quiet"], "No progress and no warnings");
  pyramid->add_flag("--verbose", texts.switches["verbose"], "Tell the plan and the times");
  AddJsonFlag(*pyramid, texts);
}

/** Subcommands one after the other. */
void
AddChain(CLI::App & app, Texts & texts)
{
  CLI::App * const chain =
    app.add_subcommand("chain", "Several subcommands one after the other, each over the result of the one before");
  chain->group("Several at once");
  chain->add_option("IN", texts.input, "Image to read; see chunkwise formats")->required();
  chain->add_option("OUT", texts.output, "Image to write, or the table of a last step measure")->required();
  chain
    ->add_option("--step",
                 texts.steps,
                 "A subcommand with its options but IN and OUT, as \"label --connectivity 3\"; once for each")
    ->required()
    ->allow_extra_args(false)
    ->type_name("\"SUBCOMMAND OPTIONS\"");
  for (const CommonOption & option : GetCommonOptions())
  {
    for (const char * const name : { "backend", "devices", "memory", "device-memory", "threads", "zarr" })
    {
      if (option.name == name)
      {
        chain->add_option("--" + option.name, texts.common[name], option.help)->type_name(option.type);
      }
    }
    for (const char * const name : { "compress", "overwrite", "quiet", "untrusted" })
    {
      if (option.name == name)
      {
        chain->add_flag("--" + option.name, texts.switches[name], option.help);
      }
    }
  }
}

void
AddSubcommands(CLI::App & app, Texts & texts)
{
  for (const FilterDescription & filter : chunkwise::GetFilters())
  {
    CLI::App * const sub = app.add_subcommand(filter.name, filter.title);
    sub->group(filter.group);
    if (texts.Wants(filter.name))
    {
      AddCommonOptions(*sub, texts);
      AddParameters(*sub, filter, texts);
    }
  }
  CLI::App * const sequence = app.add_subcommand("sequence", "Several filters in one pass over the image");
  sequence->group("Several at once");
  AddCommonOptions(*sequence, texts);
  sequence->add_option("--step", texts.steps, "A filter with its options, as \"mean --radius 2\"; once for each")
    ->required()
    ->allow_extra_args(false)
    ->type_name("\"FILTER OPTIONS\"");
  CLI::App * const statistics =
    app.add_subcommand("statistics", "Print the sum, mean, minimum and maximum of an image");
  statistics->group("Without an output");
  statistics->add_option("IN", texts.input, "Image to read; see chunkwise formats")->required();
  statistics->add_option("--raw", texts.common["raw"], "IN has no header: its type and sizes, as uint16,512,512,300")
    ->type_name("TYPE,X,Y,Z");
  statistics
    ->add_option(
      "--mask", texts.common["mask"], "Only the voxels where this image, of integers and IN's size, is not 0")
    ->type_name("FILE");
  statistics
    ->add_option("--quantiles",
                 texts.common["quantiles"],
                 "Quantiles, exact: of n voxels in ascending order, counted from 0, number F (n - 1), and between two "
                 "voxels what is linear; as numpy.quantile")
    ->type_name("F,...");
  statistics
    ->add_option(
      "--histogram",
      texts.common["histogram"],
      "Count voxels in this many bins of one width, from the least finite voxel to the largest one, which is "
      "in the last bin")
    ->type_name("BINS");
  statistics->add_option("--memory", texts.common["memory"], "Host memory for the run, as 512M or 1.5G")
    ->type_name("SIZE");
  statistics->add_option("--divisions", texts.common["divisions"], "Read in this many divisions")->type_name("N");
  statistics->add_flag("--untrusted", texts.switches["untrusted"], "Read no format whose reader is not fuzzed");
  statistics->add_option("--threads", texts.common["threads"], "Threads of the CPU (all)")->type_name("N");
  AddJsonFlag(*statistics, texts);
  AddMeasure(app, texts);
  AddFilterLabels(app, texts);
  AddPyramid(app, texts);
}

[[noreturn]] void
Refuse(const std::string & option, const std::string & why)
{
  throw ArgumentError("--" + option + ": " + why);
}

std::int64_t
ParseWhole(const std::string & option, const std::string & text, std::int64_t least, std::int64_t most)
{
  const std::string wanted = "is not a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  try
  {
    const auto number = chunkwise::PixelValue::FromText(text);
    if (number.IsOf(chunkwise::PixelType::Int64) && number.As<std::int64_t>() >= least &&
        number.As<std::int64_t>() <= most)
    {
      return number.As<std::int64_t>();
    }
  }
  catch (const chunkwise::ParameterError &)
  {
    // The same words serve.
  }
  Refuse(option, "'" + text + "' " + wanted);
}

/** Bytes of "1536", "512M", "1.5G" or "2GiB". */
std::uint64_t
ParseSize(const std::string & option, const std::string & text)
{
  const std::size_t end = text.find_first_not_of("0123456789.");
  std::string       unit = end == std::string::npos ? std::string() : text.substr(end);
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::toupper(c); });
  const std::vector<std::string> units{ "", "K", "M", "G", "T" };
  for (std::size_t i = 0; i < units.size(); ++i)
  {
    const bool isUnit = unit == units[i] || (i == 0 ? unit == "B" : unit == units[i] + "B" || unit == units[i] + "IB");
    double     number = 0;
    char *     rest = nullptr;
    const std::string digits = text.substr(0, end);
    number = std::strtod(digits.c_str(), &rest);
    if (isUnit && !digits.empty() && *rest == '\0' && number > 0.0)
    {
      const double bytes = std::floor(std::ldexp(number, static_cast<int>(10 * i)));
      if (bytes >= 1.0 && bytes < 9e18)
      {
        return static_cast<std::uint64_t>(bytes);
      }
    }
  }
  Refuse(option, "'" + text + "' is not a size, as 512M or 1.5G");
}

/** The value of a common option; empty if it is not given. */
std::string
Given(const Texts & texts, const std::string & name)
{
  const auto found = texts.common.find(name);
  return found == texts.common.end() ? std::string() : found->second;
}

void
ReadDevices(const Texts & texts, CommandLine & line)
{
  const std::string backend = Given(texts, "backend");
  if (backend == "cpu" || backend == "cuda")
  {
    line.backend = backend == "cpu" ? chunkwise::BackendChoice::CPU : chunkwise::BackendChoice::CUDA;
  }
  else if (!backend.empty() && backend != "auto")
  {
    Refuse("backend", "'" + backend + "' is none of auto, cpu, cuda");
  }
  std::istringstream devices(Given(texts, "devices"));
  for (std::string device; std::getline(devices, device, ',');)
  {
    const auto ordinal = static_cast<int>(ParseWhole("devices", device, 0, 1023));
    if (std::find(line.devices.begin(), line.devices.end(), ordinal) != line.devices.end())
    {
      Refuse("devices", device + " is given twice");
    }
    line.devices.push_back(ordinal);
  }
  if (line.backend == chunkwise::BackendChoice::CPU &&
      (!line.devices.empty() || !Given(texts, "device-memory").empty()))
  {
    Refuse(line.devices.empty() ? "device-memory" : "devices", "--backend cpu uses no device");
  }
}

void
ReadAmounts(const Texts & texts, CommandLine & line)
{
  line.memory = Given(texts, "memory").empty() ? 0 : ParseSize("memory", Given(texts, "memory"));
  if (line.memory > 0)
  {
    chunkwise::files::SetMemoryOfHeaders(line.memory);
  }
  line.deviceMemory =
    Given(texts, "device-memory").empty() ? 0 : ParseSize("device-memory", Given(texts, "device-memory"));
  line.divisions = Given(texts, "divisions").empty()
                     ? 0
                     : ParseWhole("divisions", Given(texts, "divisions"), 1, std::int64_t{ 1 } << 40);
  line.threads = Given(texts, "threads").empty()
                   ? 0
                   : static_cast<unsigned int>(ParseWhole("threads", Given(texts, "threads"), 1, 1 << 16));
  line.region = Given(texts, "region").empty() ? std::vector<std::int64_t>() : ParseRegion(Given(texts, "region"));
}

/** How output files are written. */
void
ReadOutputFormat(const Texts & texts, CommandLine & line)
{
  line.zarr = Given(texts, "zarr");
  if (line.name == "pyramid")
  {
    line.levels = Given(texts, "method").empty() ? "mean" : Given(texts, "method");
  }
  if (!line.zarr.empty() || !line.levels.empty())
  {
    try
    {
      line.levels.empty() ? chunkwise::files::ParseZarrOptions("--zarr", line.zarr)
                          : chunkwise::files::ParseLevelOptions("--zarr", line.zarr, line.levels, false);
    }
    catch (const chunkwise::files::FileError & error)
    {
      throw ArgumentError(error.what());
    }
  }
  line.outputType = Given(texts, "output-type");
  if (line.outputType == "auto")
  {
    line.outputType.clear();
  }
  if (!line.outputType.empty())
  {
    try
    {
      chunkwise::PixelTypeFromName(line.outputType);
    }
    catch (const chunkwise::ParameterError & error)
    {
      Refuse("output-type", error.what());
    }
  }
}

void
ReadSwitches(const Texts & texts, CommandLine & line)
{
  const auto isOn = [&](const std::string & name) {
    const auto found = texts.switches.find(name);
    return found != texts.switches.end() && found->second;
  };
  line.compress = isOn("compress");
  line.quiet = isOn("quiet");
  line.verbose = isOn("verbose");
  line.untrusted = isOn("untrusted");
  line.json = isOn("json");
  line.redo = isOn("redo");
  line.overwrite = isOn("overwrite");
  line.resume = isOn("resume");
  if (line.quiet && line.verbose)
  {
    Refuse("quiet", "contradicts --verbose");
  }
}

void
ReadCommonOptions(const Texts & texts, CommandLine & line)
{
  ReadDevices(texts, line);
  ReadAmounts(texts, line);
  line.raw = Given(texts, "raw");
  if (!line.raw.empty())
  {
    ParseRaw(line.raw); // an error in it comes before all others
  }
  ReadOutputFormat(texts, line);
  ReadSwitches(texts, line);
  const std::string progress = Given(texts, "progress");
  if (!progress.empty() && progress != "bar" && progress != "xml")
  {
    Refuse("progress", "'" + progress + "' is none of bar, xml");
  }
  line.progress = progress == "xml" ? ProgressStyle::Xml : ProgressStyle::Bar;
  line.returnParameterFile = Given(texts, "returnparameterfile");
  line.outputPattern = Given(texts, "out");
  if (line.progress == ProgressStyle::Xml && line.json)
  {
    Refuse("json", "contradicts --progress xml: both are standard output");
  }
}

/** The value of --quantiles. */
void
ReadQuantiles(const Texts & texts, CommandLine & line)
{
  std::istringstream fractions(texts.common.at("quantiles"));
  for (std::string text; std::getline(fractions, text, ',');)
  {
    double fraction = -1;
    try
    {
      fraction = chunkwise::PixelValue::FromText(text).As<double>();
    }
    catch (const chunkwise::ParameterError &)
    {
      // The same words serve.
    }
    if (!(fraction >= 0 && fraction <= 1))
    {
      Refuse("quantiles", "'" + text + "' is not a number from 0 to 1");
    }
    line.quantiles.push_back(fraction);
  }
}

/** Options of statistics alone. */
void
ReadStatisticsOptions(const Texts & texts, CommandLine & line)
{
  line.mask = texts.common.at("mask");
  const std::string & bins = texts.common.at("histogram");
  line.histogramBins = bins.empty() ? 0 : static_cast<int>(ParseWhole("histogram", bins, 1, 65536));
  ReadQuantiles(texts, line);
}

/** Options of measurements alone. */
void
ReadMeasureOptions(const Texts & texts, CommandLine & line)
{
  line.intensity = texts.common.at("intensity");
  line.contacts = texts.common.at("contacts");
  line.output = texts.common.at("table");
  std::istringstream names(texts.common.at("columns"));
  for (std::string name; std::getline(names, name, ',');)
  {
    line.columns.push_back(name);
  }
  ReadQuantiles(texts, line);
}

/** A small file's content, if the memory for the run has room for it. Devices and pipes, which may have no end, are
 * refused. */
std::string
ReadTextFile(const std::string & option, const std::string & path, std::uint64_t memory)
{
  constexpr std::uintmax_t most = std::uintmax_t{ 1 } << 28;
  std::error_code          error;
  if (!std::filesystem::is_regular_file(path, error))
  {
    Refuse(option, path + " is not a file that can be read");
  }
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (bytes > most || error)
  {
    Refuse(option, path + " is larger than 256 MiB");
  }
  CheckRoom(path, option, static_cast<double>(bytes), memory, "text");
  std::ifstream file(path, std::ios::binary);
  std::string   text(bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(bytes));
  if (static_cast<std::uintmax_t>(file.gcount()) != bytes)
  {
    Refuse(option, path + " cannot be read");
  }
  return text;
}

/** Options of filter-labels alone. */
void
ReadSelection(const Texts & texts, CommandLine & line)
{
  using chunkwise::LabelCondition;
  using Comparison = LabelCondition::Comparison;
  line.output = texts.output;
  const auto whole = [&](const std::string & option) {
    const std::string & text = texts.common.at(option);
    return text.empty() ? 0 : ParseWhole(option, text, 1, std::numeric_limits<std::int64_t>::max());
  };
  const auto add = [&](const std::string & column, Comparison comparison, std::int64_t value) {
    LabelCondition condition;
    condition.column = column;
    condition.comparison = comparison;
    condition.value = value;
    line.selection.conditions.push_back(condition);
  };
  if (const std::int64_t least = whole("min-size"))
  {
    add("num_pixels", Comparison::GreaterOrEqual, least);
  }
  if (const std::int64_t most = whole("max-size"))
  {
    add("num_pixels", Comparison::LessOrEqual, most);
  }
  if (texts.switches.at("remove-border"))
  {
    add("touches_border", Comparison::Equal, 0);
  }
  for (const std::string & text : texts.conditions)
  {
    try
    {
      line.selection.conditions.push_back(LabelCondition::FromText(text));
      for (const chunkwise::MeasurementProperty & property : chunkwise::GetMeasurementProperties())
      {
        if (property.needsIntensity && line.selection.conditions.back().GetProperty() == property.name)
        {
          Refuse("where", "'" + text + "': there is no image of intensities");
        }
      }
    }
    catch (const chunkwise::ParameterError & error)
    {
      Refuse("where", error.value + " is not " + error.allowed);
    }
  }
  line.selection.keepLargest = whole("keep-largest");
  line.selection.relabel = texts.switches.at("relabel");
  line.replace = texts.common.at("replace");
  if (!line.replace.empty())
  {
    const std::string text = ReadTextFile("replace", line.replace, line.memory);
    // The pairs beside the text, then beside the table that is made of them.
    constexpr std::size_t bytesOfPair = 2 * sizeof(chunkwise::LabelTable::Pair);
    CheckRoom(line.replace,
              "replace",
              static_cast<double>(bytesOfPair) * static_cast<double>(std::count(text.begin(), text.end(), ',')),
              line.memory,
              "pairs of labels");
    try
    {
      line.replacements = chunkwise::LabelTable::ReadPairs(text);
    }
    catch (const chunkwise::ParameterError & error)
    {
      Refuse("replace", line.replace + ": " + error.value + " is not " + error.allowed);
    }
  }
}

/** IN and OUT, or all images that are read if there is a pattern for what is written. */
void
ReadImages(const Texts & texts, const std::string & subcommand, CommandLine & line)
{
  line.input = texts.input;
  line.output = texts.output;
  if (line.outputPattern.empty())
  {
    if (!texts.more.empty())
    {
      throw ArgumentError(texts.more.front() + ": " + subcommand +
                          " takes one image; --out with a pattern for the results takes several");
    }
    if (line.redo)
    {
      Refuse("redo", "it has an effect only with --out");
    }
    return;
  }
  if (line.overwrite)
  {
    Refuse("overwrite", "it has no effect with --out, whose results are replaced where they are not up to date");
  }
  if (line.planOnly)
  {
    Refuse("out", "a plan is that of one image, with OUT");
  }
  if (!line.returnParameterFile.empty())
  {
    Refuse("returnparameterfile", "contradicts --out: it tells of one image; --json tells of all");
  }
  line.inputs = { line.input };
  if (!line.output.empty())
  {
    line.inputs.push_back(line.output);
  }
  line.inputs.insert(line.inputs.end(), texts.more.begin(), texts.more.end());
}

/** The parameters that were given, checked as far as they can be without an image. */
Stage
ReadStage(const FilterDescription & filter, const Texts & texts, const CLI::App & sub)
{
  Stage stage;
  stage.filter = &filter;
  for (const ParameterDescription & parameter : filter.parameters)
  {
    if (parameter.option.empty() || sub.count("--" + parameter.option) == 0)
    {
      continue;
    }
    if (parameter.type == ParameterType::Flag)
    {
      // A flag that is on by default is turned off by its option.
      stage.texts[parameter.name] = parameter.defaultText == "on" ? "off" : "on";
      continue;
    }
    const std::string & text = texts.parameters.at(parameter.name);
    const bool          isFile = parameter.type == ParameterType::Kernel || parameter.type == ParameterType::Network ||
                        parameter.file != chunkwise::ParameterFile::None;
    if (!isFile && !IsAutomatic(parameter, text))
    {
      chunkwise::ParseParameter(parameter, text);
    }
    stage.texts[parameter.name] = text;
  }
  for (const auto & given : stage.texts)
  {
    const ParameterDescription & parameter = *filter.FindParameter(given.first);
    if (parameter.onlyWithName.empty())
    {
      continue;
    }
    const ParameterDescription & other = *filter.FindParameter(parameter.onlyWithName);
    const auto                   chosen = stage.texts.find(other.name);
    if (!parameter.HasEffectWith(chosen == stage.texts.end() ? other.defaultText : chosen->second))
    {
      Refuse(parameter.option, "it has an effect only with " + TextOfCondition(filter, parameter));
    }
  }
  return stage;
}

std::vector<std::string>
LongOptionsOf(const CLI::App & app)
{
  std::vector<std::string> names;
  for (const CLI::Option * const option : app.get_options())
  {
    for (const std::string & name : option->get_lnames())
    {
      names.push_back("--" + name);
    }
  }
  return names;
}

/** All arguments that a subcommand needs and was not given. */
std::string
NamesOfMissing(const CLI::App & app)
{
  std::string names;
  for (const CLI::Option * const option : app.get_options())
  {
    if (option->get_required() && option->count() == 0)
    {
      names += (names.empty() ? "" : ", ") + option->get_name();
    }
  }
  return names;
}

/** Throws where a subcommand or an option is none: CLI11 would first complain of others that are missing. */
void
CheckNames(const CLI::App & app, const std::vector<std::string> & words)
{
  const CLI::App * level = &app;
  for (const std::string & word : words)
  {
    if (!word.empty() && word[0] == '-')
    {
      break;
    }
    std::vector<std::string> names;
    const CLI::App *         next = nullptr;
    for (const CLI::App * const sub : level->get_subcommands([](const CLI::App *) { return true; }))
    {
      names.push_back(sub->get_name());
      next = sub->get_name() == word ? sub : next;
    }
    if (names.empty())
    {
      break;
    }
    if (!next)
    {
      const std::string nearest = chunkwise::NearestWord(word, names);
      throw ArgumentError("'" + word + "' is no subcommand" +
                          (nearest.empty() ? "; chunkwise --help lists them" : "; the nearest is '" + nearest + "'"));
    }
    level = next;
  }
  const std::vector<std::string> known = LongOptionsOf(*level);
  for (const std::string & word : words)
  {
    const std::string name = word.substr(0, word.find('='));
    if (name.size() < 3 || name.compare(0, 2, "--") != 0)
    {
      continue;
    }
    if (std::find(known.begin(), known.end(), name) != known.end())
    {
      // CLI11 takes "--squared=no" for "--squared".
      if (word.size() > name.size() && level->get_option(name)->get_items_expected_max() == 0)
      {
        throw ArgumentError(name + ": it takes no value, '" + word.substr(name.size() + 1) + "' is given");
      }
      continue;
    }
    std::string nearest = chunkwise::NearestWord(name, known);
    for (const std::string & option : known)
    {
      nearest = option.compare(0, name.size(), name) == 0 ? option : nearest;
    }
    throw ArgumentError(name + ": " + level->get_name() + " has no such option" +
                        (nearest.empty() ? "" : "; the nearest is " + nearest));
  }
  const bool asksForText = std::any_of(words.begin(), words.end(), [](const std::string & word) {
    return word == "--help" || word == "-h" || word == "--version";
  });
  if (!asksForText && !level->get_subcommands([](const CLI::App *) { return true; }).empty())
  {
    throw ArgumentError("a subcommand is missing; chunkwise --help lists them");
  }
}

/** A subcommand that prints, or writes into a folder, what is made from all others. */
struct TextWriter
{
  const char * name;
  const char * help;
  const char * argument;
  const char * type;
  const char * ofArgument;
  std::string (*write)(const std::string & argument, const CLI::App & app);
};

constexpr TextWriter TextWriters[] = {
  { "completion", "Print a shell's completion", "SHELL", "bash|zsh", "The shell", WriteCompletion },
  { "slicer-modules",
    "Write modules for 3D Slicer, one for each filter",
    "FOLDER",
    "FILE",
    "Folder to write to; add it to Slicer's additional module paths",
    [](const std::string & folder, const CLI::App &) { return WriteSlicerModules(folder); } },
  { "fiji-scripts",
    "Write scripts for Fiji, one for each filter",
    "FOLDER",
    "FILE",
    "Folder to write to, as scripts/Plugins/Chunkwise of Fiji's folder",
    [](const std::string & folder, const CLI::App &) { return WriteFijiScripts(folder); } },
};

CommandLine
Parse(const std::vector<std::string> & words);

/** The steps of a sequence, each parsed as a separate command line. */
void
ParseSteps(const Texts & texts, CommandLine & line)
{
  std::vector<std::string> common;
  for (const CommonOption & option : GetCommonOptions())
  {
    common.push_back("--" + option.name);
  }
  for (const std::string & text : texts.steps)
  {
    const std::string        where = "--step: \"" + text + "\": ";
    std::istringstream       stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;)
    {
      words.push_back(word);
      if (words.size() == 1)
      {
        words.push_back("IN");
        words.push_back("OUT");
      }
    }
    for (const std::string & word : words)
    {
      const std::string name = word.substr(0, word.find('='));
      if (std::find(common.begin(), common.end(), name) != common.end())
      {
        throw ArgumentError(where + name + " is for the whole sequence");
      }
    }
    CommandLine step;
    try
    {
      step = Parse(words);
    }
    catch (const ArgumentError & error)
    {
      throw ArgumentError(where + error.what());
    }
    if (step.task != Task::Filter || step.planOnly || !step.stages.front().filter->canBeStage ||
        !step.additionalInputs.empty())
    {
      throw ArgumentError(where + "it is not a filter that can be a step");
    }
    for (const auto & given : step.stages.front().texts)
    {
      const ParameterDescription & parameter = *step.stages.front().filter->FindParameter(given.first);
      if (IsAutomatic(parameter, given.second))
      {
        throw ArgumentError(where + "--" + parameter.option + " " + AutomaticWord +
                            " needs the whole image, which no step has");
      }
    }
    if (step.stages.front().texts.count("Valid"))
    {
      throw ArgumentError(where + "--valid changes the image's size, which no step can");
    }
    line.stages.push_back(step.stages.front());
  }
}

/** The words of a text; quotation marks hold a word with spaces together. */
std::vector<std::string>
SplitWords(const std::string & where, const std::string & text)
{
  std::vector<std::string> words;
  bool                     isWord = false;
  char                     quote = 0;
  for (const char letter : text)
  {
    const bool isBlank = letter == ' ' || letter == '\t' || letter == '\n';
    if (quote == 0 && isBlank)
    {
      isWord = false;
      continue;
    }
    if (!isWord)
    {
      words.emplace_back();
      isWord = true;
    }
    if (quote == 0 && (letter == '"' || letter == '\''))
    {
      quote = letter;
    }
    else if (letter == quote)
    {
      quote = 0;
    }
    else
    {
      words.back() += letter;
    }
  }
  if (quote != 0)
  {
    throw ArgumentError(where + "a quotation mark is missing");
  }
  return words;
}

/** Parses each step of a chain as a separate command line. */
void
ParseChain(const Texts & texts, CommandLine & line)
{
  line.output = texts.output;
  for (const std::string & text : texts.steps)
  {
    const std::string where = "--step: \"" + text + "\": ";
    const bool        isLast = &text == &texts.steps.back();
    ChainStep         step;
    step.text = text;
    step.words = SplitWords(where, text);
    const bool measures = !step.words.empty() && step.words.front() == "measure";
    if (!step.words.empty())
    {
      step.words.insert(step.words.begin() + 1, "IN");
      step.output = measures ? step.words.size() + 1 : 2;
      step.words.insert(step.words.begin() + 2, measures ? 0 : 1, "OUT");
    }
    if (measures)
    {
      step.words.emplace_back("--out");
      step.words.emplace_back("OUT");
    }
    CommandLine parsed;
    try
    {
      parsed = Parse(step.words);
    }
    catch (const ArgumentError & error)
    {
      throw ArgumentError(where + error.what());
    }
    step.task = parsed.task;
    const bool isImage = parsed.task == Task::Filter || parsed.task == Task::Sequence ||
                         parsed.task == Task::FilterLabels || parsed.task == Task::FillHoles ||
                         parsed.task == Task::Separate;
    if (parsed.planOnly || !parsed.outputPattern.empty() || !(isImage || (measures && isLast)))
    {
      throw ArgumentError(where + (measures ? "it writes a table, which only the last step can"
                                            : "it does not write one image, which a step does"));
    }
    step.line = std::make_shared<const CommandLine>(std::move(parsed));
    line.steps.push_back(step);
  }
}

/** The steps of separate, each parsed as a separate command line. */
void
ParseSeparate(Texts & texts, CommandLine & line)
{
  line.output = texts.output;
  line.table = texts.common["table"];
  std::error_code ignored;
  if (std::filesystem::equivalent(line.input, line.output, ignored))
  {
    throw ArgumentError("OUT: " + line.output + " is IN");
  }
  const auto add = [&line](std::vector<std::string> words) {
    ChainStep step;
    step.words = std::move(words);
    step.task = Parse(step.words).task;
    line.steps.push_back(step);
  };
  std::vector<std::string> threshold{ "threshold", "IN", "OUT" };
  for (const char * const name : { "method", "lower", "upper" })
  {
    if (!texts.common[name].empty())
    {
      threshold.push_back(std::string("--") + name + "=" + texts.common[name]);
    }
  }
  const bool isRange = threshold.size() > 3 && texts.common["method"].empty();
  threshold.insert(threshold.end(), isRange ? 1 : 0, "--method=fixed");
  add(threshold);
  add({ "distance", "IN", "OUT", "--to=contour" });
  std::vector<std::string> watershed{ "watershed", "IN", "OUT", "--mask=IN" };
  const std::string        height = texts.common["height"];
  const std::string        area = texts.common["area"];
  const std::string        connectivity = texts.common["connectivity"];
  if (!area.empty() && !height.empty())
  {
    Refuse("area", "a height is given; the area is in place of it");
  }
  const std::string option = area.empty() ? "height" : "area";
  const std::string size = !area.empty() ? area : height.empty() ? "1" : height;
  watershed.push_back("--" + option + "=" + size);
  watershed.push_back("--connectivity=" +
                      std::to_string(ParseWhole("connectivity", connectivity.empty() ? "1" : connectivity, 1, 3)));
  add(watershed);
  if (!(chunkwise::PixelValue::FromText(size).ToDouble() >= 0))
  {
    Refuse(option, "'" + size + "' is not a number of 0 or more");
  }
  if (!line.table.empty())
  {
    add({ "measure", "OUT", "IN", "--out", line.table });
  }
}

/** The parameter of a filter that is a network; nullptr: it has none, or there is no such filter. */
const ParameterDescription *
FindNetworkParameter(const std::string & name)
{
  for (const FilterDescription & filter : chunkwise::GetFilters())
  {
    const auto found = std::find_if(filter.parameters.begin(), filter.parameters.end(), [](const auto & parameter) {
      return parameter.type == ParameterType::Network;
    });
    if (filter.name == name && found != filter.parameters.end())
    {
      return &*found;
    }
  }
  return nullptr;
}

/** A network may come before the images, without its option: "network MODEL IN OUT". */
std::vector<std::string>
WithModelOption(std::vector<std::string> words)
{
  const std::size_t at = words.empty() || words[0] != "plan" ? 0 : 1;
  if (at + 1 >= words.size() || words[at + 1].compare(0, 1, "-") == 0)
  {
    return words;
  }
  const ParameterDescription * const network = FindNetworkParameter(words[at]);
  if (network)
  {
    const std::string option = "--" + network->option;
    const bool        isGiven = std::any_of(words.begin(), words.end(), [&](const std::string & word) {
      return word == option || word.compare(0, option.size() + 1, option + "=") == 0;
    });
    words[at + 1] = isGiven ? words[at + 1] : option + "=" + words[at + 1];
  }
  return words;
}

/** The description that --xml asks for, of the filter that is named beside it. */
void
DescribeIfAsked(const std::vector<std::string> & words)
{
  if (std::find(words.begin(), words.end(), "--xml") != words.end())
  {
    const auto name = words.front() == "--xml" ? words.begin() + 1 : words.begin();
    if (name == words.end())
    {
      Refuse("xml", "the name of a filter is missing");
    }
    try
    {
      throw TextRequested{ DescribeModule(chunkwise::GetFilter(*name)) };
    }
    catch (const chunkwise::ParameterError & error)
    {
      Refuse("xml", error.what());
    }
  }
}

/** Hosts know no dashes in names: "--deviceMemory" is "--device-memory". */
std::vector<std::string>
WithDashes(std::vector<std::string> words, const CLI::App & app)
{
  const CLI::App * level = &app;
  for (std::string & word : words)
  {
    const auto subs = level->get_subcommands([&](const CLI::App * sub) { return sub->get_name() == word; });
    level = subs.empty() ? level : subs.front();
    for (const std::string & option : LongOptionsOf(*level))
    {
      const std::size_t end = std::min(word.find('='), word.size());
      if (option.find('-', 2) != std::string::npos && "--" + GetFlagName(option.substr(2)) == word.substr(0, end))
      {
        word.replace(0, end, option);
        break;
      }
    }
  }
  return words;
}

/** Subcommands that make no image. */
void
AddInformation(CLI::App & app, Texts & texts)
{
  CLI::App * const devices = app.add_subcommand("devices", "List the devices that can compute");
  devices->group("Without an output");
  AddJsonFlag(*devices, texts);
  app.add_subcommand("formats", "List the formats of images")->group("Without an output");
  CLI::App * const filters = app.add_subcommand("filters", "List the filters, as JSON with all that is known of them");
  filters->group("Without an output");
  AddJsonFlag(*filters, texts);
#ifdef CHUNKWISE_HAS_NETWORKS
  CLI::App * const info = app.add_subcommand("network-info", "Print the layers of a network and what it looks at");
  info->group("Without an output");
  info->add_option("MODEL", texts.parameters["Model"], "The network, an ONNX file")->required();
#endif
  for (const TextWriter & writer : TextWriters)
  {
    app.add_subcommand(writer.name, writer.help)
      ->group("For other programs")
      ->add_option(writer.argument, texts.input, writer.ofArgument)
      ->type_name(writer.type)
      ->required();
  }
}

const CLI::App &
LastSubcommand(const CLI::App & app)
{
  const CLI::App * last = &app;
  while (!last->get_subcommands().empty())
  {
    last = last->get_subcommands().front();
  }
  return *last;
}

void
ParseWords(const std::vector<std::string> & words, CLI::App & app)
{
  try
  {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  }
  catch (const CLI::CallForHelp &)
  {
    throw TextRequested{ LastSubcommand(app).help() };
  }
  catch (const CLI::CallForVersion & version)
  {
    throw TextRequested{ std::string(version.what()) + "\n" };
  }
  catch (const CLI::RequiredError & error)
  {
    const std::string missing = NamesOfMissing(LastSubcommand(app));
    throw ArgumentError(missing.empty() ? JoinLines(error.what())
                                        : "missing: " + missing + "; chunkwise " + LastSubcommand(app).get_name() +
                                            " --help tells of them");
  }
  catch (const CLI::ParseError & error)
  {
    throw ArgumentError(JoinLines(error.what()));
  }
}

/** Gives the text that some subcommands consist of. */
void
GiveTextIfAsked(const std::string & name, Texts & texts, const CLI::App & app)
{
  if (name == "formats")
  {
    throw TextRequested{ chunkwise::files::DescribeFormats() };
  }
#ifdef CHUNKWISE_HAS_NETWORKS
  if (name == "network-info")
  {
    throw TextRequested{ DescribeNetwork(texts.parameters["Model"]) };
  }
#endif
  for (const TextWriter & writer : TextWriters)
  {
    if (name == writer.name)
    {
      throw TextRequested{ writer.write(texts.input, app) };
    }
  }
  if (name == "man")
  {
    throw TextRequested{ WriteManual(app) };
  }
}

/** Reads a subcommand that is not in the table of filters; false: it is there, or makes a table of an image. */
bool
ReadOtherTask(Texts & texts, CommandLine & line)
{
  if (line.name == "filter-labels")
  {
    line.task = Task::FilterLabels;
    ReadSelection(texts, line);
    return true;
  }
  if (line.name == "fill-label-holes")
  {
    line.task = Task::FillHoles;
    line.output = texts.output;
    return true;
  }
  if (line.name == "separate")
  {
    line.task = Task::Separate;
    ParseSeparate(texts, line);
    return true;
  }
  if (line.name == "chain")
  {
    line.task = Task::Chain;
    ParseChain(texts, line);
    return true;
  }
  if (line.name == "pyramid")
  {
    line.output = line.input;
    line.backend = chunkwise::BackendChoice::CPU;
    line.stages.push_back({ &chunkwise::GetFilter("identity"), {} });
    return true;
  }
  return false;
}

void
ReadTableOptions(const Texts & texts, const CLI::App & sub, CommandLine & line)
{
  const bool measures = line.name == "measure";
  line.task = measures ? Task::Measure : Task::Statistics;
  (measures ? ReadMeasureOptions : ReadStatisticsOptions)(texts, line);
  if (sub.count("--quantiles") > 0 && line.quantiles.empty())
  {
    Refuse("quantiles", "no number is given; as 0.01,0.5,0.99");
  }
  if (measures && sub.count("--columns") > 0 && line.columns.empty())
  {
    Refuse("columns", "no name is given; as label,area,centroid");
  }
}

void
ReadFilter(Texts & texts, const CLI::App & sub, CommandLine & line)
{
  const FilterDescription & filter = chunkwise::GetFilter(line.name);
  try
  {
    line.stages.push_back(ReadStage(filter, texts, sub));
  }
  catch (const chunkwise::ParameterError & error)
  {
    line.stages = { Stage{ &filter, {} } };
    throw ArgumentError(WithOptionNames(error.what(), line));
  }
  for (const chunkwise::InputDescription & input : filter.additionalInputs)
  {
    if (!texts.inputs[input.name].empty())
    {
      line.additionalInputs[input.name] = texts.inputs[input.name];
    }
  }
}

CommandLine
Parse(const std::vector<std::string> & given)
{
  DescribeIfAsked(given);

  CommandLine line;
  Texts       texts;
  CLI::App    app("Boundary-exact image filters for images of any size.", "chunkwise");
  texts.isBatch = std::any_of(given.begin(), given.end(), [](const std::string & word) {
    return word == "--out" || word.compare(0, 6, "--out=") == 0;
  });
  texts.words.insert(given.begin(), given.end());
  texts.wantsAll = texts.words.count("man") > 0 ||
                   std::any_of(std::begin(TextWriters), std::end(TextWriters), [&](const TextWriter & writer) {
                     return texts.words.count(writer.name) > 0;
                   });
  app.set_version_flag("--version", std::string("chunkwise ") + CHUNKWISE_VERSION);
  app.require_subcommand(1);
  AddSubcommands(app, texts);
  AddInformation(app, texts);
  AddFillHoles(app, texts);
  AddSeparate(app, texts);
  AddChain(app, texts);
  app.add_subcommand("man", "Print the manual page")->group("For other programs");
  CLI::App * const plan = app.add_subcommand("plan", "Print what a subcommand would do, without doing it");
  plan->group("Without an output");
  plan->require_subcommand(1);
  if (texts.Wants("plan"))
  {
    AddSubcommands(*plan, texts);
  }

  const std::vector<std::string> words = WithDashes(WithModelOption(given), app);
  CheckNames(app, words);
  ParseWords(words, app);

  const CLI::App * sub = app.get_subcommands().front();
  line.planOnly = sub == plan;
  sub = line.planOnly ? plan->get_subcommands().front() : sub;
  line.name = sub->get_name();
  GiveTextIfAsked(line.name, texts, app);
  ReadCommonOptions(texts, line);
  if (line.name == "filters")
  {
    throw TextRequested{ DescribeTable(line.json) };
  }
  if (line.name == "devices")
  {
    line.task = Task::Devices;
    return line;
  }
  line.input = texts.input;
  if (ReadOtherTask(texts, line))
  {
    return line;
  }
  if (line.name == "statistics" || line.name == "measure")
  {
    ReadTableOptions(texts, *sub, line);
    return line;
  }
  ReadImages(texts, line.name, line);
  if (line.name == "sequence")
  {
    line.task = Task::Sequence;
    ParseSteps(texts, line);
  }
  else
  {
    ReadFilter(texts, *sub, line);
  }
  return line;
}

} // namespace

std::string
TextOfValues(const ParameterDescription & parameter)
{
  std::string text;
  for (const char letter : parameter.onlyWithValue)
  {
    // Lines break between them.
    text += letter == '|' ? ", " : std::string(1, letter);
  }
  return text;
}

bool
IsAutomatic(const ParameterDescription & parameter, const std::string & text)
{
  return !parameter.provisionalText.empty() && text == AutomaticWord;
}

CommandLine
ParseCommandLine(int argc, char ** argv)
{
  return Parse(std::vector<std::string>(argv + 1, argv + argc));
}

} // namespace command
