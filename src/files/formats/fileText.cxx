/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileText.h"

#include "fileOutput.h"

namespace chunkwise::files
{

namespace
{

Destination
DestinationOf(const std::string & file)
{
  Destination destination;
  destination.shown = file;
  destination.file = FollowLinks(file);
  return destination;
}

} // namespace

struct TextOutput::State
{
  explicit State(const Destination & destination)
    : folder(destination)
    , file(Descriptor::Create(folder.GetPath(destination.file), destination.shown))
  {}
  OutputFolder  folder;
  Descriptor    file;
  std::string   waiting;
  std::uint64_t written{ 0 };
  bool          isComplete{ false };
};

bool
TextOutput::AreOne(const std::string & a, const std::string & b)
{
  // Names of files that are not there yet become absolute first: they are told apart by their text.
  const auto nameOf = [](const std::string & file) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(FollowLinks(file)));
  };
  return nameOf(a) == nameOf(b);
}

void
TextOutput::Check(const std::string & file, const std::vector<std::filesystem::path> & inputFiles)
{
  const Destination destination = DestinationOf(file);
  OutputOptions     options;
  options.inputFiles = inputFiles;
  CheckDestination(destination, options);
  for (const std::filesystem::path & input : inputFiles)
  {
    std::error_code error;
    if (std::filesystem::equivalent(input, destination.file, error) && !error)
    {
      Fail(file, "would replace " + input.string() + ", which an input of this run uses");
    }
  }
}

TextOutput::TextOutput(const std::string & file, const std::vector<std::filesystem::path> & inputFiles)
{
  Check(file, inputFiles);
  m_State = std::make_unique<State>(DestinationOf(file));
}

TextOutput::~TextOutput() = default;

void
TextOutput::Write(const std::string & text)
{
  m_State->waiting += text;
  if (m_State->waiting.size() >= (std::size_t{ 1 } << 20))
  {
    this->Flush();
  }
}

void
TextOutput::Flush()
{
  m_State->file.WriteAt(m_State->waiting.data(), m_State->waiting.size(), m_State->written);
  m_State->written += m_State->waiting.size();
  m_State->waiting.clear();
}

void
TextOutput::Complete()
{
  if (!m_State->isComplete)
  {
    this->Flush();
    m_State->file.Sync();
    m_State->file.Close();
    m_State->isComplete = true;
  }
}

void
TextOutput::Finish()
{
  this->Complete();
  m_State->folder.Commit();
}

} // namespace chunkwise::files
