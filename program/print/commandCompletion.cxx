/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandCompletion.h"

#include "commandLine.h"

#include <CLI/CLI.hpp>

#include <cctype>
#include <sstream>

namespace command
{

namespace
{

std::vector<const CLI::App *>
SubcommandsOf(const CLI::App & app)
{
  return app.get_subcommands([](const CLI::App *) { return true; });
}

std::vector<const CLI::Option *>
OptionsOf(const CLI::App & app, bool positional)
{
  return app.get_options([&](const CLI::Option * option) { return option->get_positional() == positional; });
}

bool
IsFlag(const CLI::Option & option)
{
  return option.get_type_size_max() == 0;
}

/** The words among the kinds of values that an option takes: "auto|cpu|cuda", and "auto" of "X|auto". */
std::vector<std::string>
WordsOf(const CLI::Option & option)
{
  std::vector<std::string> words;
  std::istringstream       stream(option.get_type_name());
  for (std::string word; option.get_type_name().find('|') != std::string::npos && std::getline(stream, word, '|');)
  {
    if (!word.empty() && std::islower(static_cast<unsigned char>(word[0])))
    {
      words.push_back(word);
    }
  }
  return words;
}

bool
TakesFile(const CLI::Option & option)
{
  return option.get_type_name() == "FILE" || (option.get_positional() && WordsOf(option).empty());
}

std::string
Join(const std::vector<std::string> & words)
{
  std::string text;
  for (const std::string & word : words)
  {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

std::vector<std::string>
NamesOf(const CLI::App & app)
{
  std::vector<std::string> names;
  for (const CLI::App * const sub : SubcommandsOf(app))
  {
    names.push_back(sub->get_name());
  }
  for (const CLI::Option * const option : OptionsOf(app, false))
  {
    for (const std::string & name : option->get_lnames())
    {
      names.push_back("--" + name);
    }
  }
  return names;
}

/** A line for each subcommand and each option that takes words or files; `path` is "", "mean" or "plan mean". */
void
WriteBashCases(std::ostream & os, const CLI::App & app, const std::string & path)
{
  std::vector<std::string> names = NamesOf(app);
  bool                     takesFiles = false;
  for (const CLI::Option * const option : OptionsOf(app, true))
  {
    const auto words = WordsOf(*option);
    names.insert(names.end(), words.begin(), words.end());
    takesFiles = takesFiles || TakesFile(*option);
  }
  os << "    '" << path << " :') words='" << Join(names) << "'" << (takesFiles ? " files=1" : "") << " ;;\n";
  for (const CLI::Option * const option : OptionsOf(app, false))
  {
    if (IsFlag(*option))
    {
      continue;
    }
    for (const std::string & name : option->get_lnames())
    {
      os << "    '" << path << " :--" << name << "') words='" << Join(WordsOf(*option)) << "'"
         << (TakesFile(*option) ? " files=1" : "") << " value=1 ;;\n";
    }
  }
  for (const CLI::App * const sub : SubcommandsOf(app))
  {
    WriteBashCases(os, *sub, path + (path.empty() ? "" : " ") + sub->get_name());
  }
}

/** bash breaks words at "=", so that "--boundary=mi" are three of them. */
std::string
WriteBash(const CLI::App & app)
{
  std::ostringstream os;
  os << "# bash completion of chunkwise " << CHUNKWISE_VERSION << ", made by: chunkwise completion bash\n"
     << "_chunkwise()\n{\n"
     << "  local current=${COMP_WORDS[COMP_CWORD]} previous= path= i words= files= value=\n"
     << "  if ((COMP_CWORD > 0)); then previous=${COMP_WORDS[COMP_CWORD-1]}; fi\n"
     << "  if [[ $current == '=' ]]; then current=\n"
     << "  elif [[ $previous == '=' ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
     << "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
     << "    case \" " << Join(NamesOf(app)) << " \" in\n"
     << "      *\" ${COMP_WORDS[i]} \"*) [[ ${COMP_WORDS[i]} == -* ]] && break ;;\n"
     << "      *) break ;;\n"
     << "    esac\n"
     << "    path+=${path:+ }${COMP_WORDS[i]}\n"
     << "    if [[ ${COMP_WORDS[i]} != plan ]]; then break; fi\n"
     << "  done\n"
     << "  [[ $previous == --* ]] || previous=\n"
     << "  _chunkwise_words \"$path\" \"$previous\"\n"
     << "  if [[ -z $value ]]; then _chunkwise_words \"$path\" ''; fi\n"
     << "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
     << "  if [[ -n $files && $current != -* ]]; then\n"
     << "    local IFS=$'\\n'\n"
     << "    compopt -o filenames 2>/dev/null\n"
     << "    COMPREPLY+=($(compgen -f -- \"$current\"))\n"
     << "  fi\n"
     << "}\n\n"
     << "_chunkwise_words()\n{\n"
     << "  case \"$1 :$2\" in\n";
  WriteBashCases(os, app, "");
  os << "    *) ;;\n  esac\n}\n\ncomplete -F _chunkwise chunkwise\n";
  return os.str();
}

/** For the inside of '...[help]:...'. */
std::string
EscapeZsh(const std::string & text)
{
  std::string escaped;
  for (const char c : text)
  {
    if (c == '[' || c == ']' || c == ':' || c == '\\')
    {
      escaped += '\\';
    }
    escaped += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return escaped;
}

void
WriteZshFunctions(std::ostream & os, const CLI::App & app, const std::string & function)
{
  const auto subs = SubcommandsOf(app);
  for (const CLI::App * const sub : subs)
  {
    WriteZshFunctions(os, *sub, function + "_" + sub->get_name());
  }
  os << function << "()\n{\n  _arguments -S";
  for (const CLI::Option * const option : OptionsOf(app, false))
  {
    for (const std::string & name : option->get_lnames())
    {
      os << " \\\n    '--" << name << "[" << EscapeZsh(option->get_description()) << "]";
      if (!IsFlag(*option))
      {
        const auto words = WordsOf(*option);
        os << ":" << EscapeZsh(option->get_type_name()) << ":"
           << (TakesFile(*option) ? "_files"
               : words.empty()    ? " "
                                  : "(" + Join(words) + ")");
      }
      os << "'";
    }
  }
  if (subs.empty())
  {
    for (const CLI::Option * const option : OptionsOf(app, true))
    {
      const bool isMore = option->get_items_expected_max() > 1;
      os << " \\\n    '" << (isMore ? "*" : "") << ":" << option->get_name() << ":"
         << (TakesFile(*option) ? "_files" : "(" + Join(WordsOf(*option)) + ")") << "'";
    }
    os << "\n}\n\n";
    return;
  }
  os << " \\\n    '1:subcommand:->subcommand' '*::argument:->argument'\n"
     << "  case $state in\n    subcommand)\n      local -a subcommands=(";
  for (const CLI::App * const sub : subs)
  {
    os << "\n        '" << sub->get_name() << ":" << EscapeZsh(sub->get_description()) << "'";
  }
  os << ")\n      _describe subcommand subcommands ;;\n    argument)\n      case $words[1] in\n";
  for (const CLI::App * const sub : subs)
  {
    os << "        " << sub->get_name() << ") " << function << "_" << sub->get_name() << " ;;\n";
  }
  os << "      esac ;;\n  esac\n}\n\n";
}

std::string
WriteZsh(const CLI::App & app)
{
  std::ostringstream os;
  os << "#compdef chunkwise\n# zsh completion of chunkwise " << CHUNKWISE_VERSION
     << ", made by: chunkwise completion zsh\n\n";
  std::ostringstream functions;
  WriteZshFunctions(functions, app, "_chunkwise");
  // The states that _arguments names are those of the caller.
  std::string       text = functions.str();
  const std::string top = "_chunkwise()\n{\n";
  const std::string nested = "_chunkwise_plan()\n{\n";
  for (const std::string & begin : { top, nested })
  {
    const std::size_t at = text.find(begin);
    text.insert(at + begin.size(), "  local context state state_descr line\n  typeset -A opt_args\n");
  }
  os << text
     << "if [ \"$funcstack[1]\" = _chunkwise ]; then\n  _chunkwise \"$@\"\nelse\n  compdef _chunkwise chunkwise\nfi\n";
  return os.str();
}

/** Text in which roff sees no commands; dashes are those of options. */
std::string
EscapeRoff(const std::string & text)
{
  std::string escaped;
  for (const char c : text)
  {
    if (c == '\\')
    {
      escaped += "\\e";
    }
    else if (c == '-')
    {
      escaped += "\\-";
    }
    else if ((c == '.' || c == '\'') && escaped.empty())
    {
      escaped += std::string("\\&") + c;
    }
    else
    {
      escaped += c;
    }
  }
  return escaped;
}

void
WriteManualOption(std::ostream & os, const CLI::Option & option)
{
  os << ".TP\n\\fB" << EscapeRoff(option.get_positional() ? option.get_name() : "--" + option.get_lnames().front())
     << "\\fR";
  if (!option.get_positional() && !IsFlag(option))
  {
    os << " \\fI" << EscapeRoff(option.get_type_name()) << "\\fR";
  }
  os << "\n" << EscapeRoff(option.get_description()) << (option.get_required() ? " (required)" : "") << "\n";
}

bool
IsCommon(const CLI::Option & option)
{
  for (const CommonOption & common : GetCommonOptions())
  {
    if (!option.get_lnames().empty() && option.get_lnames().front() == common.name)
    {
      return true;
    }
  }
  return option.get_positional() || (!option.get_lnames().empty() && option.get_lnames().front() == "help");
}

} // namespace

std::string
WriteCompletion(const std::string & shell, const CLI::App & app)
{
  if (shell != "bash" && shell != "zsh")
  {
    throw ArgumentError("SHELL: '" + shell + "' is none of bash, zsh");
  }
  return shell == "bash" ? WriteBash(app) : WriteZsh(app);
}

std::string
WriteManual(const CLI::App & app)
{
  std::ostringstream os;
  os << ".\\\" Made by: chunkwise man\n.TH CHUNKWISE 1 \"\" \"Chunkwise " << CHUNKWISE_VERSION << "\"\n"
     << ".SH NAME\nchunkwise \\- boundary\\-exact image filters for images of any size\n"
     << ".SH SYNOPSIS\n.B chunkwise\n.I FILTER IN OUT\n.RI [ OPTIONS ]\n.br\n.B chunkwise\n.I FILTER IN...\n.B "
        "\\-\\-out\n"
     << ".I PATTERN\n.RI [ OPTIONS ]\n.br\n.B chunkwise\n.I SUBCOMMAND\n.RI [ OPTIONS ]\n"
     << ".SH DESCRIPTION\nImages are streamed from file to file through all GPUs of the machine, or through the CPU "
        "where\n"
     << "there is none. A result does not depend on how the image was cut into pieces, nor on who computed them; only\n"
     << "transforms have a bound instead.\n"
     << ".SH OPTIONS OF ALL FILTERS\n";
  const CLI::App * const filter = SubcommandsOf(app).front();
  for (const CLI::Option * const option : filter->get_options([](const CLI::Option *) { return true; }))
  {
    if (IsCommon(*option))
    {
      WriteManualOption(os, *option);
    }
  }
  os << ".SH SUBCOMMANDS\n";
  std::string group;
  for (const CLI::App * const sub : SubcommandsOf(app))
  {
    if (sub->get_group() != group)
    {
      group = sub->get_group();
      os << ".SS " << EscapeRoff(group) << "\n";
    }
    os << ".TP\n\\fB" << EscapeRoff(sub->get_name()) << "\\fR\n" << EscapeRoff(sub->get_description()) << ".\n";
    bool isFilter = false;
    for (const CLI::Option * const option : OptionsOf(*sub, true))
    {
      isFilter = isFilter || option->get_name() == "OUT";
    }
    std::ostringstream options;
    for (const CLI::Option * const option : sub->get_options([](const CLI::Option *) { return true; }))
    {
      if (isFilter ? !IsCommon(*option) : option->get_lnames() != std::vector<std::string>{ "help" })
      {
        WriteManualOption(options, *option);
      }
    }
    if (!options.str().empty())
    {
      os << ".RS\n" << options.str() << ".RE\n";
    }
  }
  os << ".SH EXIT STATUS\n0 if all was done, 1 if the work failed, 2 if the command line is wrong. A signal ends the\n"
     << "program by that signal. A run that failed leaves no output under its name.\n"
     << ".SH FILES\nA run writes into a folder beside its output, which has the output's name with a dot before and "
        "six\n"
     << "letters after it, and is removed at the end; what a killed run has left the next one removes.\n"
     << "With \\fB\\-\\-out\\fR the folder \\fI.chunkwise\\-done\\fR beside results has a record of each.\n"
     << ".SH EXAMPLES\n.nf\nchunkwise gaussian in.nii.gz out.mha \\-\\-sigma 2 \\-\\-memory 4G\n"
     << "chunkwise median \\(aqin/*.mha\\(aq \\-\\-out \\(aqout/{stem}.mha\\(aq \\-\\-radius 2\n"
     << "chunkwise plan mean in.mha out.mha \\-\\-radius 5,5,2 \\-\\-json\nchunkwise slicer\\-modules "
        "~/chunkwise\\-modules\n.fi\n";
  return os.str();
}

} // namespace command
