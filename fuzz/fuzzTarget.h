/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fuzzTarget_h
#define fuzzTarget_h

#include <string>
#include <vector>

/** Targets of fuzzing: functions that any bytes may be given to. They return whether the bytes were accepted; a defect
 * ends the process. */
namespace chunkwise::fuzz
{

struct Target
{
  /** Also of the folder of its seeds and of its dictionary. */
  const char * name;
  bool (*run)(const Target & target, const std::string & bytes);
  /** Ending of the file that the bytes are put in; empty: they are no file. */
  const char * ending;
  /** Makes checksums right again after a mutation, so that it reaches what comes behind the checksum; may be null. */
  void (*mend)(std::string & bytes);
};

/** A folder of this process in memory, removed at its end. */
const std::string &
GetFolder();

void
WriteFile(const std::string & file, const std::string & bytes);

/** Says what is wrong and aborts unless `isRight`. */
void
Check(bool isRight, const std::string & what);

bool
RunImage(const Target & target, const std::string & bytes);
/** Files of a folder that is one image: for each a line with its path and length, then its bytes. */
bool
RunStore(const Target & target, const std::string & bytes);
bool
RunModel(const Target & target, const std::string & bytes);
/** Words of a command line, one in each line. */
bool
RunCommandLine(const Target & target, const std::string & bytes);
/** A number, list, region or layout of a file without a header. */
bool
RunValue(const Target & target, const std::string & bytes);
/** The record of a result that an earlier run has left. */
bool
RunRecord(const Target & target, const std::string & bytes);
/** The lines of the journal of a run that ended early, and of the note beside it. */
bool
RunJournal(const Target & target, const std::string & bytes);

/** The reply with a header from the process that reads HDF5 and DICOM: its libraries' crashes may make it anything. */
bool
RunReply(const Target & target, const std::string & bytes);

/** Sets the check sums of all chunks of a PNG file right. */
void
MendChecksumsOfPng(std::string & bytes);

const std::vector<Target> &
GetTargets();

/** Ends the process if there is no target of this name. */
const Target &
FindTarget(const std::string & name);

} // namespace chunkwise::fuzz

#endif
