/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandLine_h
#define commandLine_h

#include "chunkwiseFilters.h"
#include "chunkwiseLabelSelection.h"
#include "chunkwiseLabelTable.h"
#include "chunkwiseManager.h"
#include "commandReport.h"

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace command
{

/** The command line is wrong: exit status 2. The message names the option. */
class ArgumentError : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

/** The work failed: exit status 1. */
class WorkError : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

/** A help or version text was asked for. */
struct TextRequested
{
  std::string text;
};

/** A filter and its parameters, as text: they become values once the image is known. */
struct Stage
{
  const chunkwise::FilterDescription * filter{ nullptr };
  /** By the parameter's name; "on" for a flag that was given. */
  std::map<std::string, std::string> texts;
};

/** The values of another option with which a parameter has an effect, for people. */
std::string
TextOfValues(const chunkwise::ParameterDescription & parameter);

/** The word for a value that is taken from the whole image. */
constexpr const char * AutomaticWord = "auto";

/** Whether a parameter was given as that word. */
bool
IsAutomatic(const chunkwise::ParameterDescription & parameter, const std::string & text);

/** An option of all subcommands that write an image. */
struct CommonOption
{
  std::string              name;
  std::string              type; ///< a word for the help; empty: a flag
  std::string              help;
  std::vector<std::string> choices{};        ///< the default first
  bool                     inForms{ false }; ///< hosts such as 3D Slicer ask for it
};

const std::vector<CommonOption> &
GetCommonOptions();

/** How a run tells how far it is. */
enum class ProgressStyle
{
  None,
  Bar, ///< on a terminal
  Xml  ///< on standard output, as hosts of command-line modules read it; warnings too
};

/** The work of a subcommand. */
enum class Task
{
  Filter,       ///< stages: one
  Sequence,     ///< stages: one and more
  Statistics,   ///< of IN, printed
  Measure,      ///< the labels of IN, in a table
  FilterLabels, ///< those of IN that are kept
  FillHoles,    ///< of the labels of IN
  Separate,     ///< objects of IN that touch
  Chain,        ///< several of these
  Devices       ///< listed
};

struct CommandLine;

/** A step of a chain: a command line without the images' names, which are at two of its places. */
struct ChainStep
{
  std::string                        text;
  Task                               task{ Task::Filter };
  std::vector<std::string>           words;
  std::size_t                        input{ 1 };
  std::size_t                        output{ 2 };
  std::shared_ptr<const CommandLine> line; ///< of the words, in which "IN" and "OUT" stand for files
};

/** The contents of the command line. */
struct CommandLine
{
  Task        task{ Task::Filter };
  std::string name; ///< of the subcommand
  bool        planOnly{ false };

  std::string input;
  std::string output;
  /** By the name of the table. */
  std::map<std::string, std::string> additionalInputs;
  std::vector<Stage>                 stages;

  chunkwise::BackendChoice backend{ chunkwise::BackendChoice::Auto };
  std::vector<int>         devices;           ///< empty: all
  std::uint64_t            memory{ 0 };       ///< bytes; 0: half of the available memory
  std::uint64_t            deviceMemory{ 0 }; ///< bytes; 0: the manager's budget
  std::int64_t             divisions{ 0 };    ///< 0: as many as the memory needs
  /** The part of the result to compute: where it begins along each axis, then its sizes; empty: all. */
  std::vector<std::int64_t> region;
  /** The description of IN, if it has no header: the value of --raw; empty: IN has a header. */
  std::string raw;
  /** How a store of Zarr is written: the value of --zarr; empty: nobody says. */
  std::string   zarr;
  std::string   levels;       ///< OUT is IN, a store that gets levels by this method; empty: OUT is an image
  unsigned int  threads{ 0 }; ///< 0: all
  std::string   outputType;   ///< empty: the filter's default
  ProgressStyle progress{ ProgressStyle::Bar };
  bool          compress{ false };
  bool          quiet{ false };
  bool          verbose{ false };
  bool          untrusted{ false };  ///< only formats whose readers are fuzzed
  bool          json{ false };       ///< plans, lists and reports as JSON on standard output
  std::string   returnParameterFile; ///< the report as lines "name = value"; empty: none

  /** For several images: the words that were given as IN, and where results go, with "{stem}"; empty: one image. */
  std::vector<std::string> inputs;
  std::string              outputPattern;
  bool                     redo{ false };      ///< results that are there already, too
  bool                     overwrite{ false }; ///< OUT without a question
  bool                     resume{ false };    ///< what an earlier run has left unfinished

  // For statistics.
  std::string         mask; ///< an image; empty: all voxels count
  std::vector<double> quantiles;
  int                 histogramBins{ 0 };

  // For measurements, whose table is `output`, or standard output.
  std::string              intensity; ///< an image; empty: none
  std::string              contacts;  ///< a second table; empty: none
  std::vector<std::string> columns;   ///< empty: the default ones
  /** Which labels filter-labels keeps. */
  chunkwise::LabelSelection selection;
  /** Labels that become others before all else, and the file that says so; empty: none. */
  std::string                              replace;
  std::vector<chunkwise::LabelTable::Pair> replacements;

  /** The steps of a chain, or those of separate, which find the objects and part them. */
  std::vector<ChainStep> steps;
  /** For separate: the table of its objects; empty: none. */
  std::string table;
};

/** Throws ArgumentError, or TextRequested for --help and --version. */
CommandLine
ParseCommandLine(int argc, char ** argv);

/** A message of the engine, which begins with a parameter's name, with the option that the user knows instead. */
std::string
WithOptionNames(const std::string & message, const CommandLine & line);

/** The message if the system gives no more memory. */
std::string
TextOfNoMemory(const CommandLine & line);

/** `text` on one line, for a terminal: control characters and bytes that are no UTF-8, as a file's name or its content
 * may have them, become "\x1b". */
std::string
JoinLines(const std::string & text);

} // namespace command

#endif
