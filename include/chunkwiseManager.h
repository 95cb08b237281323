/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseManager_h
#define chunkwiseManager_h

#include "chunkwiseDevice.h"
#include "chunkwiseDeviceMemory.h"
#include "chunkwiseExecutor.h"
#include "chunkwisePlanner.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace chunkwise
{

class DividedImages;

enum class BackendChoice
{
  Auto, ///< the devices; the CPU if there are none, or they fail
  CPU,
  CUDA ///< the devices; an error if there is none or they fail
};

/** Whether the images of a run over several devices are divided among them for as long as it lasts, where its operation
 * can be run so (Operation::AsSteps). The result is the same. */
enum class ImageDivision
{
  Auto,  ///< where that is expected to take less time
  Never, ///< each chunk is loaded and stored by itself; for tests and tuning
  Always ///< where devices have the room; for tests and tuning
};

/** Bytes of three memories.
 *
 * A manager's budgets are for all runs at a time and for what is kept between them; 0: Manager::SetBudgets says what. A
 * run's (ExecutionRequest::budgets, a filter's setters) are for that run alone, and the tighter of both counts: a run's
 * can ask for less than the manager's, never for more; 0: what the manager has. Each device has this much pinned memory
 * and this much device memory. The images themselves, and an operation's parameters, are in none of them. */
struct Budgets
{
  std::size_t device{ 0 };
  std::size_t pinned{ 0 };
  /** The memory that the CPU's kernels take for a chunk, that kernels have made and keep (spectra, factors), and that
   * the chunks of a sweep hand on. */
  std::size_t host{ 0 };
};

/** One run. Views are in the image's coordinates: the largest possible region begins at 0. */
struct ExecutionRequest
{
  std::shared_ptr<const Operation> operation;
  /** The part of each input that the host holds. It contains `region` grown by the halo and cut at the image; along an
   * axis where windows wrap around the image it is whole. */
  std::vector<BufferView> inputs;
  /** Must contain `region`, and not overlap the inputs' memory. Not used by Summarise. */
  BufferView output{};
  Box        image{};
  Box        region{};

  BackendChoice backend{ BackendChoice::Auto };
  /** Ordinals of the devices to use; empty: all. */
  std::vector<int> devices;
  /** The CPU takes chunks beside the devices. */
  bool          hostTakesChunks{ false };
  ImageDivision division{ ImageDivision::Auto };
  Budgets       budgets{};

  /** The device in whose memory the images lie, with any strides; -1: they are the host's. No voxel of them goes
   * through the host. The device reads inputs where they lie and writes the output, except where a chunk is not dense
   * there or begins at an address that is no multiple of 16: then it makes a copy, within the budget. Neither `backend`
   * nor `devices` counts then, and the CPU never takes over: what the device has no kernel for is an error. */
  int imageDevice{ -1 };
  /** With imageDevice: images that lie in the host's memory are no error; they are copied to the device, the output
   * from it, through pinned memory. The copies are within the budget, whole. */
  bool copiesHostImages{ false };
  /** A stream of that device, of CUDA a cudaStream_t (nullptr: the default one). Work that was enqueued there before
   * comes ahead of the run, and the output is complete when the run returns. */
  StreamHandle stream{ nullptr };

  /** Threads of the CPU backend; nullptr: a thread per core. */
  Executor * executor{ nullptr };
  /** The run takes less time than waking threads does: if the CPU computes, it is done by the caller's thread, alone
   * unless there is an executor, and the monitor is asked only before it. The result is the same. */
  bool isShort{ false };
  /** Host threads that copy to or from one device, per direction; 0: as its link and the host's rate of copies ask. */
  unsigned int stagingThreads{ 0 };
};

/** A report about a run. */
struct ExecutionReport
{
  std::string backend; ///< "cpu", "cuda", "cuda+cpu"
  /** The providers of convolutions' transforms: "own", "cufft", "fftw", or two with "+" between; empty without any. */
  std::string transforms{};
  Plan        plan;
  /** Chunks (of the plan) that each device finished, and the CPU. */
  std::vector<std::string>  deviceNames;
  std::vector<std::int64_t> chunksPerDevice;
  std::int64_t              chunksOnHost{ 0 };
  /** The most bytes that the run had at a time, of devices that of the fullest; what earlier runs left counts as far
   * as this one used it. */
  std::size_t peakDevice{ 0 };
  std::size_t peakPinned{ 0 };
  std::size_t peakHost{ 0 };
  double      bytesToDevice{ 0 };
  double      bytesToHost{ 0 };
  int         retries{ 0 }; ///< times a chunk was halved or run again
  /** Fixpoint: visits to boxes where chunks meet, and their voxels. */
  std::int64_t revisits{ 0 };
  std::int64_t revisitedVoxels{ 0 };
  bool         solvedGlobally{ false }; ///< the kernel `solveGlobally` ran, see Operation::GetPatience
  /** Figures that an operation reports about its run, by name and in order: the divergence after each iteration, for
   * example. */
  std::vector<std::pair<std::string, double>> figures;
  /** Messages for the user, one line each: devices dropped, fallback to the CPU, a budget that costs much time. */
  std::vector<std::string> warnings;
};

/** The cost of the tightest budget of a request. */
struct RequestCost
{
  BudgetCost  budget;
  std::string memory; ///< "device" or "host": which budget that is
};

/** The caller's side of a run. Both functions are called only from the thread that called Execute. */
class Chunkwise_EXPORT Monitor
{
public:
  virtual ~Monitor();
  /** `fraction` never falls; the last call has 1, and only a finished run makes it. */
  virtual void
  UpdateProgress(double fraction) = 0;
  virtual bool
  ShouldAbort() = 0;
};

/** Runs operations over images of any size on every device, for all filters of the process.
 *
 * Execute may be called from several threads at once: runs share the devices and their budgets, and a run waits for
 * memory that another holds. */
class Chunkwise_EXPORT Manager
{
public:
  /** The process' manager: the CUDA devices, if there are any. */
  static Manager &
  GetGlobal();

  /** A manager with a separate set of devices, for tests and embedding. `hostKernels` (nullptr: GetHostKernels()) must
   * outlive it. */
  explicit Manager(std::vector<std::shared_ptr<Device>> devices, std::string whyNone = std::string(),
                   const KernelRegistry * hostKernels = nullptr);
  ~Manager();
  Manager(const Manager &) = delete;
  Manager &
  operator=(const Manager &) = delete;

  std::vector<std::shared_ptr<Device>>
  GetDevices() const;
  /** Why there are no devices; empty if there are. */
  std::string
  GetReasonForNoDevices() const;

  /** Defaults: device 80% of the memory free at the first run; pinned 256 MiB a device; host no limit. Kept
   * memory beyond the new budgets is given back. */
  void
  SetBudgets(const Budgets & budgets);
  Budgets
  GetBudgets() const;
  /** The memory that is held now, for runs and between them; for devices, the memory of the fullest one. */
  Budgets
  GetHeldMemory() const;

  /** Computes request.region of request.output. Throws ParameterError and BudgetError before work starts, DeviceError
   * when a device failed and nothing may take over, Aborted. After any of them the manager can be used again. */
  ExecutionReport
  Execute(const ExecutionRequest & request, Monitor * monitor = nullptr);

  /** The result of an operation without an output (TwoPass) over request.region: the total of its chunks' summaries. As
   * Execute in everything else; `report`, if not nullptr, is what that would return. */
  ChunkState
  Summarise(const ExecutionRequest & request, Monitor * monitor = nullptr, ExecutionReport * report = nullptr);

  /** Execute for images that lie in the memory of one device: with request.imageDevice and request.stream set to
   * these. */
  ExecutionReport
  ExecuteOnDevice(ExecutionRequest request, int device, StreamHandle stream, Monitor * monitor = nullptr);

  /** Execute for images that several devices hold together: `inputs` and `output` are numbers of `images`, and have the
   * planes around parts, as many as the operation needs. With `keepsInputs` the inputs stay as they are. The planes
   * around parts of the output are not handed on. Throws as ExecuteOnDevice, ParameterError for an operation that is
   * not run so, and Error if a device has not the room. */
  ExecutionReport
  ExecuteOnDevices(DividedImages & images, const std::shared_ptr<const Operation> & operation,
                   const std::vector<std::size_t> & inputs, std::size_t output, bool keepsInputs = true,
                   Monitor * monitor = nullptr);

  /** Memory for an image that stays on a device between runs: the input or output of ExecuteOnDevice. As long as it is
   * held it counts in the device's budget, and in that of every run there. Waits until no run uses the device.
   * `budget`: a tighter one than the manager's, 0: none. Throws ParameterError if there is no such device, BudgetError
   * (naming the bytes), DeviceError, Aborted. */
  std::shared_ptr<DeviceMemory>
  AllocateOnDevice(int device, std::size_t bytes, std::size_t budget = 0, Monitor * monitor = nullptr);

  /** Bytes of a device's memory that a run with these budgets may take beside what runs and images hold there now.
   * Throws ParameterError if there is no such device, Error if it was lost. */
  std::size_t
  GetRoomOnDevice(int device, const Budgets & budgets = Budgets());

  /** Copies an image that lies dense at the begin of a device's memory to the host: `to` has its kind and box, and any
   * strides. `image` is the whole one; of `budgets` the pinned one counts. Throws ParameterError, BudgetError,
   * DeviceError, Aborted. */
  void
  CopyToHost(const BufferView & to, const DeviceMemory & from, const Box & image, const Budgets & budgets = Budgets(),
             Monitor * monitor = nullptr);
  /** The same for a box of `to` alone, which lies dense from byte `begin` of the device's memory on. */
  void
  CopyToHost(const BufferView & to, const DeviceMemory & from, std::size_t begin, const Box & box, const Box & image,
             const Budgets & budgets = Budgets(), Monitor * monitor = nullptr);
  /** The other way. */
  void
  CopyToDevice(const DeviceMemory & to, std::size_t begin, const BufferView & from, const Box & box, const Box & image,
               const Budgets & budgets = Budgets(), Monitor * monitor = nullptr);

  /** The plan that Execute, or Summarise, would follow. With request.imageDevice: that of images which are yet to be
   * put into the device's memory, dense; their views have no memory. */
  Plan
  MakePlanFor(const ExecutionRequest & request);

  /** The time that the request's budget costs, and how much memory would cost little. Runs nothing; it takes some
   * dozens of plans. */
  RequestCost
  GetCostOfBudget(const ExecutionRequest & request);

  /** Gives back all memory that is kept between runs. Tables for transforms stay, some kilobytes for each length. */
  void
  ReleaseMemory();

private:
  struct Impl;
  /** The common part of copies in both directions: body(transfer, the box's memory on the device). */
  template <typename TBody>
  void
  CopyImage(const DeviceMemory & memory, std::size_t begin, const BufferView & host, const Box & box, const Box & image,
            const Budgets & budgets, Monitor * monitor, TBody && body);

  std::unique_ptr<Impl> m_Impl;
};

} // namespace chunkwise

#endif
