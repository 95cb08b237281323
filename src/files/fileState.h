/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileState_h
#define fileState_h

#include "chunkwiseOutOfCoreRunner.h"
#include "fileJournal.h"
#include "fileOutput.h"

#include <array>
#include <chrono>
#include <optional>
#include <vector>

namespace chunkwise::files
{

/** The states of a run in two files beside its output: one is whole while the other is written, and the journal says
 * which. Each block of a file has a check sum. */
class StateFiles : public StateStore
{
public:
  /** `run`: see Journal::Run. Throws FileError if another run has the folder. */
  StateFiles(const std::string & output, Journal::Run run);
  /** Leaves the last state that was kept. */
  ~StateFiles() override;

  std::int64_t
  Open(const std::map<std::string, std::string> & run, std::uint64_t bytes) override;
  void
  Read(void * data, std::size_t bytes) override;
  void
  EndReading() override;
  bool
  IsDue() const override;
  void
  Write(const void * data, std::size_t bytes) override;
  void
  Keep(std::int64_t steps) override;
  /** The output has its name: no state is needed any more. */
  void
  Remove();
  /** Steps of the state that an earlier run has left. */
  std::int64_t
  GetStepsDone() const
  {
    return m_StepsDone;
  }

private:
  using Clock = std::chrono::steady_clock;

  /** Place `i` of the two, 1 or 2. */
  std::filesystem::path
  FileOf(std::int64_t i) const;
  void
  MakeFile(std::int64_t i);
  void
  ReadBlock();
  void
  WriteBlock();

  const std::string         m_Shown;
  OutputFolder              m_Folder;
  Journal::Run              m_Run;
  std::optional<Journal>    m_Journal;
  std::uint64_t             m_Room{ 0 };
  WrittenPart               m_Kept; ///< steps, the place of their file, its bytes
  std::int64_t              m_StepsDone{ 0 };
  std::array<Descriptor, 3> m_Files;    ///< by places
  std::array<bool, 3>       m_IsMade{}; ///< by this run
  std::vector<char>         m_Block;
  std::size_t               m_At{ 0 };     ///< in the block
  std::uint64_t             m_Offset{ 0 }; ///< of the next block in the file
  Clock::time_point         m_Next;
  Clock::time_point         m_Began;
};

} // namespace chunkwise::files

#endif
