/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseOutOfCoreRunner_h
#define chunkwiseOutOfCoreRunner_h

#include "chunkwiseImageSource.h"
#include "chunkwiseManager.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace chunkwise
{

/** Keeps the state of a run that goes in steps, so that a later run of the same goes on behind the last step whose
 * state was kept. A state is a row of bytes. One thread at a time calls. */
class Chunkwise_EXPORT StateStore
{
public:
  virtual ~StateStore();

  /** Takes room for states of at most `bytes`. `run` has values, by names that users know, on which states depend.
   * Returns the steps of the state that an earlier run has left, 0 if there is none. Throws if that run was another
   * one, its state is not whole, or there is no room. The first call. */
  virtual std::int64_t
  Open(const std::map<std::string, std::string> & run, std::uint64_t bytes) = 0;
  /** The next bytes of the state that was left. Throws if they are not as they were written. */
  virtual void
  Read(void * data, std::size_t bytes) = 0;
  /** All bytes were read. Throws if there are more. */
  virtual void
  EndReading() = 0;
  /** Whether so much time has passed that a state is worth the time that it takes. */
  virtual bool
  IsDue() const = 0;
  /** The next bytes of a new state. Throws, as Keep does, if they cannot be written. */
  virtual void
  Write(const void * data, std::size_t bytes) = 0;
  /** The new state, after so many steps, is whole: it takes the place of the one before, which was there until now. */
  virtual void
  Keep(std::int64_t steps) = 0;
};

/** A run from sources to a sink over an image of any size. */
struct OutOfCoreRequest
{
  /** The operation whose GetOutOfCoreRunner has given the runner. */
  std::shared_ptr<const Operation> operation;
  /** In the operation's order; all of the sink's extent and kind. A source or sink that does not answer outlives a run
   * that was aborted. */
  std::vector<std::shared_ptr<ImageSource>> sources;
  /** Finish is the caller's. */
  std::shared_ptr<ImageSink> sink;
  /** All that the run may hold in host memory, what sources and sink hold themselves too; not pinned memory. 0: no
   * limit. */
  std::uint64_t hostBytes{ 0 };
  /** A temporary file in this folder holds the results between passes. It has no name, and is gone with the run. */
  std::string spoolFolder;

  BackendChoice    backend{ BackendChoice::Auto };
  std::vector<int> devices;
  /** Budgets of devices and their pinned memory. */
  Budgets budgets{};
  /** nullptr: a thread per core. */
  Executor * executor{ nullptr };
  /** Threads that read, and as many that write, where sources and sink take boxes in any order. */
  unsigned int fileThreads{ 1 };
  /** The states with which a runner that KeepsStates goes on, and which it keeps; nullptr: it begins, and keeps none.
   */
  std::shared_ptr<StateStore> states;
  /** Over images in memory (Operation::IsRunByRunner): the request whose views the sources and the sink are. */
  const ExecutionRequest * inMemory{ nullptr };
};

/** A report about an out-of-core run. */
struct OutOfCoreReport
{
  /** The report of all of the manager's runs together. */
  ExecutionReport execution;
  /** Bytes that the run wrote to its spool. */
  std::uint64_t spoolWritten{ 0 };
  /** Seconds in which the run waited for sources and sink, and seconds of reading and writing, which go on meanwhile.
   */
  double waiting{ 0 };
  double reading{ 0 };
  double writing{ 0 };
  /** The seconds of computing by step, with the step's name. */
  std::vector<std::pair<std::string, double>> steps;
};

/** Adds the report of an earlier part of a run to that of the last one: the most memory of all, sums of bytes and of
 * events, and warnings, of which equal ones are one. */
Chunkwise_EXPORT void
AddReport(ExecutionReport & last, const ExecutionReport & earlier);

/** Runs an operation, or a family of operations, over images that neither the host nor a device has memory for: with
 * the bits of a run in memory. Objects are immutable and shared between threads. */
class Chunkwise_EXPORT OutOfCoreRunner
{
public:
  virtual ~OutOfCoreRunner();

  /** How often a run reads its inputs at most, for plans. */
  virtual int
  GetNumberOfPasses() const = 0;
  /** Whether Run leaves something in a file between its passes. */
  virtual bool
  NeedsSpool() const
  {
    return true;
  }
  /** Whether Run uses OutOfCoreRequest::states. */
  virtual bool
  KeepsStates() const
  {
    return false;
  }
  /** The least bytes of host memory that Run takes for the request. Throws ParameterError. */
  virtual std::uint64_t
  GetLeastHostBytes(Manager & manager, const OutOfCoreRequest & request) const = 0;
  /** Bytes with which the same run over images in memory is worth it, beside the images: with fewer it would have less
   * room than a run from file to file. 0: any. */
  virtual std::uint64_t
  GetBytesInMemory(const OutOfCoreRequest &) const
  {
    return 0;
  }
  /** Throws ParameterError, and BudgetError with the bytes that are enough, before work starts; what a source or sink
   * throws; Error of the spool; Aborted. */
  virtual OutOfCoreReport
  Run(Manager & manager, const OutOfCoreRequest & request, Monitor * monitor) const = 0;
};

} // namespace chunkwise

#endif
