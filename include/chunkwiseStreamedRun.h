/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseStreamedRun_h
#define chunkwiseStreamedRun_h

#include "chunkwiseError.h"
#include "chunkwiseImageSource.h"
#include "chunkwiseManager.h"
#include "chunkwiseOutOfCoreRunner.h"

#include <functional>

// Runs from sources to a sink: the image is cut along its slowest axis into divisions, and while one is computed the
// next is read and the one before is written. Each voxel is read once: what two divisions share is kept.
namespace chunkwise
{

struct StreamedInput
{
  std::shared_ptr<ImageSource> source;
  /** The pixel type to which voxels are converted before the operation reads them (as ConvertVoxels does). */
  PixelType kind{ PixelType::UInt8 };
  /** Components of a voxel. If there are several, they lie along the source's first axis, before the image's axes; in
   * the engine they lie along the last axis. The sink gets as many as the input with the most, or
   * StreamedRequest::outputComponents. */
  std::int64_t components{ 1 };
};

/** All inputs have the same extent, beside components; the image begins at 0. */
struct StreamedRequest
{
  /** nullptr: the inputs are only read, see ReadStreamed. */
  std::shared_ptr<const Operation> operation;
  std::vector<StreamedInput>       inputs; ///< in the operation's order
  /** The operation's output is its input if both have one pixel type: nothing is computed then, and the output needs no
   * memory. */
  bool copiesVoxels{ false };
  /** Components of a voxel of the result, where it has more than those of the inputs have. */
  std::int64_t outputComponents{ 1 };
  /** The part of the image that is computed. */
  Box region{};
  /** The part of `region` that is written: the sink's image. Empty: all of it. */
  Box written{};
  /** The pixel type of the operation's result, the pixel type of the sink, and the sink's access. */
  PixelType   computedKind{ PixelType::UInt8 };
  PixelType   writtenKind{ PixelType::UInt8 };
  ImageAccess sinkAccess{};
  /** Counts voxels at the limits of computedKind (StreamedReport::atLimits). */
  bool countsLimits{ false };
  /** From the request of a division the one of a pass over the whole image before (see ReadStreamed), so that memory is
   * planned for it too; empty: there is none. */
  std::function<ExecutionRequest(ExecutionRequest)> firstPass;

  BackendChoice    backend{ BackendChoice::Auto };
  std::vector<int> devices;
  /** `host` is not used: it is what `memory` leaves. */
  Budgets    budgets{};
  Executor * executor{ nullptr };
  /** Host memory for all that the run holds: divisions, scratch and what is kept. 0: divisions take half of what is
   * free, scratch has no limit. */
  std::uint64_t memory{ 0 };
  /** 0: chosen, so that they fit `memory` and reading and writing overlap with computing. */
  std::int64_t divisions{ 0 };
  /** All inputs are read before anything is written, so that both have the same memory, one after the other. */
  bool readsBeforeWriting{ false };
  /** A division costs more beside its voxels than overlap saves: as few are chosen as fit. */
  bool fewestDivisions{ false };
  /** A temporary file in this folder holds the results between the passes of an operation's out-of-core runner: an
   * image that does not fit `memory` goes through it in slabs. It has no name there, and is gone with the run. Empty:
   * the image must fit, unless the runner needs no file. */
  std::string spoolFolder;
  /** Threads that read, and as many that write; 0: 8, or half the cores if that is less. */
  unsigned int fileThreads{ 0 };
  /** The whole image goes through the operation's out-of-core runner, however much memory there is, so that it can keep
   * its states in `states`, which plans do not need. */
  bool                        keepsStates{ false };
  std::shared_ptr<StateStore> states;
};

struct StreamedPlan
{
  int          axis{ 0 }; ///< that is divided: the last with more than one voxel
  std::int64_t divisions{ 1 };
  /** Divisions begin where a unit of the sink does, or a part of one if it has no room in memory
   * (ImageAccess::partsOfUnits): at multiples of so many planes of the region. */
  std::int64_t step{ 1 };
  /** Reads of each source end where one of its units does. False if memory has no room for whole units. */
  bool readsWholeUnits{ false };
  /** Divisions in memory at a time: 2 where reading, computing and writing overlap. */
  int buffers{ 1 };
  /** The operation copies voxels (StreamedRequest::copiesVoxels): the sink gets them from where the sources put them.
   */
  bool copies{ false };
  /** The image does not fit the memory and has no divisions: the operation's own runner cuts it, into slabs that hand
   * on to each other what is between its passes (chunkwiseOutOfCoreRunner.h). */
  bool inSlabs{ false };
  /** The device whose memory holds all images of such an operation, or of what has a wide halo, where one has the
   * room: what is divided then is reading and writing. -1: none. */
  int heldOnDevice{ -1 };
  /** If no device alone has the room: the others that hold the images with it (DividedImages). */
  std::vector<int> heldOnOthers;
  std::uint64_t    bytesAtOnce{ 0 }; ///< of divisions
  std::uint64_t    bytesRead{ 0 };   ///< of the first input, by all passes
  std::uint64_t    bytesWritten{ 0 };
  Budgets          budgets{}; ///< of a division's run

  std::vector<int>
  GetHoldingDevices() const
  {
    std::vector<int> devices = heldOnOthers;
    if (heldOnDevice >= 0)
    {
      devices.insert(devices.begin(), heldOnDevice);
    }
    return devices;
  }
};

/** Not even the smallest divisions fit StreamedRequest::memory. */
class Chunkwise_EXPORT DivisionsError : public BudgetError
{
public:
  DivisionsError(std::int64_t count, std::size_t neededBytes, std::size_t budgetBytes);
  std::int64_t divisions;
};

struct StreamedReport
{
  ExecutionReport execution; ///< of the last division, with the sums and warnings of all (AddReport)
  std::int64_t    cut{ 0 };  ///< voxels that did not fit into writtenKind and were cut to its range
  std::int64_t    atLimits{ 0 };
  /** Seconds that were spent reading, computing and writing: they overlap. */
  double reading{ 0 };
  double computing{ 0 };
  double writing{ 0 };
  /** Bytes that a run in slabs put into its spool. */
  std::uint64_t spooled{ 0 };
  /** A run in slabs: what its seconds of computing, and of waiting, were spent on. */
  std::vector<std::pair<std::string, double>> steps;
};

/** How many threads read, and how many write. */
Chunkwise_EXPORT unsigned int
GetFileThreads(const StreamedRequest & request);

/** The most that an input, or the result, has. */
Chunkwise_EXPORT std::int64_t
                 GetComponents(const StreamedRequest & request);

/** The whole image, in the engine's coordinates. */
Chunkwise_EXPORT Box
GetImageBox(const StreamedRequest & request);

/** The box of the operation's result: the whole image, but for operations with an OutputGrid. */
Chunkwise_EXPORT Box
GetOutputBox(const StreamedRequest & request);

/** StreamedRequest::written, or the region. */
Chunkwise_EXPORT Box
GetWrittenBox(const StreamedRequest & request);

/** The box of division `i`. */
Chunkwise_EXPORT Box
GetDivision(const Box & region, const StreamedPlan & plan, std::int64_t i);

/** The run of a division, its views without memory. */
Chunkwise_EXPORT ExecutionRequest
MakeDivisionRequest(const StreamedRequest & request, const StreamedPlan & plan, const Box & division);

/** Throws DivisionsError, or what Manager::MakePlanFor throws. */
Chunkwise_EXPORT StreamedPlan
MakeStreamedPlan(Manager & manager, const StreamedRequest & request);

/** Calls `compute` for each division in ascending order with a request whose inputs are in memory; the next division is
 * read meanwhile. Errors of sources come out as they are; Aborted when the monitor asks for it, also while a source
 * does not answer. Returns the seconds that reading took. */
Chunkwise_EXPORT double
ReadStreamed(Manager & manager, const StreamedRequest & request, const StreamedPlan & plan, Monitor * monitor,
             const std::function<void(const ExecutionRequest & division, Monitor * ofDivision)> & compute);

/** Fills a dense view from a source, whose voxels are converted to the view's kind. */
Chunkwise_EXPORT void
ReadConverted(ImageSource & source, const BufferView & view);

/** Computes request.region from the sources into the sink, which the caller finishes. Throws what Manager::Execute
 * and ReadStreamed throw, and errors of the sink as they are. The same bits as Execute over the whole image. */
Chunkwise_EXPORT StreamedReport
ExecuteStreamed(Manager & manager, const StreamedRequest & request, const StreamedPlan & plan,
                const std::shared_ptr<ImageSink> & sink, Monitor * monitor = nullptr);

} // namespace chunkwise

#endif
