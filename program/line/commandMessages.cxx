/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// How messages reach the user.
#include "commandLine.h"

namespace command
{

std::string
WithOptionNames(const std::string & message, const CommandLine & line)
{
  chunkwise::UserWords words;
  words.name = [&line](const std::string & name) -> std::string {
    if (name == "Devices" || name == "Backend")
    {
      return name == "Devices" ? "--devices" : "--backend";
    }
    for (const Stage & stage : line.stages)
    {
      const chunkwise::ParameterDescription * const parameter = stage.filter->FindParameter(name);
      if (parameter && !parameter->option.empty())
      {
        return "--" + parameter->option;
      }
      for (const chunkwise::InputDescription & input : stage.filter->additionalInputs)
      {
        if (input.name == name)
        {
          return "--" + input.option;
        }
      }
    }
    return "";
  };
  // A message that does not begin with a parameter's name may be about files, whose names are not to be changed.
  return words.name(message.substr(0, message.find(':'))).empty() ? message : chunkwise::WordMessage(message, words);
}

namespace
{

/** The bytes of the character of UTF-8 that begins at `at`; 0 if there is none, or one that controls a terminal. */
std::size_t
LengthOfPrintable(const std::string & text, std::size_t at)
{
  const auto         byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned int first = byte(at);
  if (first < 0x80)
  {
    return first >= 0x20 && first != 0x7f ? 1 : 0;
  }
  const std::size_t  length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  const unsigned int least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0xa0;
  unsigned int       code = first & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i)
  {
    if ((byte(at + i) & 0xc0u) != 0x80u)
    {
      return 0;
    }
    code = code << 6 | (byte(at + i) & 0x3fu);
  }
  const bool isText =
    first >= 0xc2 && first < 0xf5 && code >= least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return isText ? length : 0;
}

} // namespace

std::string
TextOfNoMemory(const CommandLine & line)
{
  return line.memory ? "out of memory: the system gives less than --memory allows"
                     : "out of memory; --memory lets an image be streamed in as much as there is";
}

std::string
JoinLines(const std::string & text)
{
  constexpr char digits[] = "0123456789abcdef";
  std::string    line;
  for (std::size_t i = 0; i < text.size();)
  {
    const std::size_t length = LengthOfPrintable(text, i);
    if (length > 0)
    {
      line.append(text, i, length);
      i += length;
      continue;
    }
    const auto c = static_cast<unsigned char>(text[i++]);
    if (c != '\n' && c != '\r')
    {
      line += std::string("\\x") + digits[c >> 4] + digits[c & 15];
    }
    else if (!line.empty() && line.back() != ' ')
    {
      line += ' ';
    }
  }
  while (!line.empty() && line.back() == ' ')
  {
    line.pop_back();
  }
  return line;
}

} // namespace command
