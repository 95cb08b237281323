/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseOperation_h
#define chunkwiseOperation_h

#include "chunkwiseGeometry.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace chunkwise
{

/** How the chunks of an operation depend on each other. */
enum class Schedule
{
  Independent, ///< any order, disjoint outputs, no locks
  Sweep,       ///< ordered along one axis; each chunk hands a carry to the next
  TwoPass,     ///< every chunk is summarised, the summaries are solved together, every chunk is finished
  Fixpoint,    ///< each chunk comes to its own fixed point; then visits where chunks meet, until none changes
  Passes       ///< no chunks: several runs over the whole region, see PassesOperation
};

/** The bytes that a chunk hands on: a carry (Sweep), a summary or a solution (TwoPass). */
using ChunkState = std::vector<unsigned char>;

class Executor;
class KernelRegistry;
class Operation;
class OutOfCoreRunner;
class StagedOperation;

/** A stream block whose run has ended, see Operation::MakeForNextBlock. */
struct FinishedBlock
{
  /** The images that the run read, and the kind that it wrote; `box` is the region that it computed. */
  const BufferView * inputs{ nullptr };
  int                numberOfInputs{ 0 };
  PixelType          outputKind{ PixelType::UInt8 };
  Box                box{};
  Box                image{};
  /** The axis along which blocks follow each other. */
  int axis{ 0 };
  /** The host's threads and kernels. */
  Executor *             executor{ nullptr };
  const KernelRegistry * kernels{ nullptr };
};

/** The grid of an output that has other voxels than the image, see Operation::GetOutputGrid. */
class Chunkwise_EXPORT OutputGrid
{
public:
  virtual ~OutputGrid();

  /** The extent of the output for an image of this extent. */
  virtual Coordinates
  GetExtent(const Coordinates & image) const = 0;
  /** The box of the image that a box of the output depends on: at least one voxel, inside the image. It does not shrink
   * when the output's box grows, and moves in one direction along each axis when the output's box does. */
  virtual Box
  GetInputBox(const Box & output, const Coordinates & image) const = 0;
};

/** Says once what the engine must know about a computation; each backend registers kernels under its name.
 *
 * Objects are immutable while a run uses them and are shared between threads.
 * Kernels find their parameters by casting to the derived class. */
class Chunkwise_EXPORT Operation
{
public:
  virtual ~Operation();

  /** The registry's key: each backend registers a KernelSet under it. */
  virtual std::string
  GetName() const = 0;

  /** Identifies the parameters: equal keys compute equal results. Resources are cached under it. */
  virtual std::string
  GetKey() const = 0;

  virtual Schedule
  GetSchedule() const
  {
    return Schedule::Independent;
  }

  /** Voxels of the input that an output voxel depends on. `image` is the extent of the largest region. Entries may be
   * WholeAxis. */
  virtual Halo
  GetHalo(const Coordinates & image) const = 0;

  /** The extents of tiles, on a grid that begins at the image's origin, whose voxels are computed together, so that
   * bits do not depend on chunks: the input of a chunk is that of all tiles that it meets. 1 along axes whose voxels
   * are computed alone. `image` as in GetHalo. */
  virtual Coordinates
  GetTile(const Coordinates & image) const;

  /** Axes along which windows wrap around: their halo is loaded from the opposite side. */
  virtual bool
  WrapsAround() const
  {
    return false;
  }

  /** The output's grid if it is not the image's (Independent alone); it lives as long as the operation. Regions and
   * chunks are then boxes of the output, and the halo is not asked for. Devices compute those whose
   * grid is bounded (BoundedGrid). nullptr: the output has the image's voxels. */
  virtual const OutputGrid *
  GetOutputGrid() const;

  /** Inputs of the run, 1 to MaxInputs. */
  virtual int
  GetNumberOfInputs() const
  {
    return 1;
  }

  /** Throws ParameterError if these kinds cannot be processed; the message names them. */
  virtual void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const = 0;

  /** Throws ParameterError if the parameters make no sense for an image of this extent. Called before work starts. */
  virtual void
  Validate(const Coordinates & image) const;

  /** Rounds the extent of a chunk's output up to what suits the computation (FFT sizes, strides of a network). */
  virtual Coordinates
  RoundChunk(const Coordinates & extent) const
  {
    return extent;
  }

  // Sweep: chunks follow each other along one axis and hold every other axis whole. Kernel `advance` makes the carry
  // for the next chunk (input, carry in -> carry out) and is cheap; kernel `compute` makes the output (input, carry in
  // -> output). If a backend has no `advance`, its `compute` makes both, and one device takes all chunks.
  virtual int
  GetSweepAxis(const Coordinates & image) const;
  /** Bytes of each carry of a run whose output is `box`. */
  virtual std::size_t
  GetCarryBytes(const Box & box, const std::vector<PixelType> & inputs, PixelType output) const;
  /** The carry that the first chunk gets; empty: zeros. */
  virtual ChunkState
  GetInitialCarry(const Box & box, const std::vector<PixelType> & inputs, PixelType output) const;

  /** TwoPass: false if the operation has summaries alone (statistics). Its run is Manager::Summarise and ends after the
   * first pass. */
  virtual bool
  HasOutput() const
  {
    return true;
  }

  /** TwoPass: a region that is one chunk takes one pass, by the kernel `alone` (input -> output). */
  virtual bool
  RunsAlone(const Box & region, PixelType output) const;

  // TwoPass: kernels `summarize` (input -> summary) and `compute` (input, solution -> output).
  /** Bytes of a summary; if there is no output, the same for every box. */
  virtual std::size_t
  GetSummaryBytes(const Box & box, const std::vector<PixelType> & inputs, PixelType output) const;
  /** One solution per chunk from all summaries, in the plan's order. Runs once, on the host. */
  virtual std::vector<ChunkState>
  Solve(const std::vector<Box> & chunks, const std::vector<ChunkState> & summaries) const;
  /** Without an output, in place of Solve: adds a chunk's summary to the total, which begins as zeros. The order must
   * not matter: summaries come as chunks end, and none is kept. */
  virtual void
  MergeSummary(ChunkState & total, const ChunkState & summary) const;
  /** Without an output: whether the summary of a region that is one chunk is the total as it is. */
  virtual bool
  SummaryIsTotal() const
  {
    return !this->SummariesMerge();
  }
  /** Without an output: false if summaries do not add up, so that a region is one chunk (RoundChunk), which is never
   * cut. */
  virtual bool
  SummariesMerge() const
  {
    return true;
  }
  /** Memory that a summary which is the total takes the place of, so that repeated runs need not allocate it. */
  virtual ChunkState
  TakeSummaryMemory() const
  {
    return {};
  }

  // Fixpoint: the output image is a state that kernels change until nothing more changes.
  //
  // Kernel `begin` (inputs -> state) makes it, voxel by voxel, without halo or scratch.
  //
  // Kernel `compute` (inputs with halo, state with halo -> state) iterates its box to a fixed point and reports the
  // sides whose border layer changed. It runs on each chunk first, with no halo but the layers that the chunk before it
  // left on the same device. Then it visits boxes where chunks meet, as far into the chunks as changes go.
  //
  // Four more kernels may be missing. `finish` (inputs, state -> state) works as `begin` does, when nothing changes any
  // more. `isActive` of the host (inputs, state) says where visits are needed: it sets changedSides, to another value
  // than 0, if a voxel of `writable` could change because of its neighbors in output.box. `solveGlobally` of the host
  // (inputs, state -> state) gets the whole region where visits would go on for long, and brings the state to where few
  // of them are left. `finalizeRegion` of the host (inputs, state -> state) gets the whole region when all else is
  // done: for what only a look at all of it can tell.
  /** Visits go on until they have taken this many times as long as `solveGlobally` would; then that runs. */
  virtual double
  GetPatience() const;

  // The hooks below are all that the engine asks beside the above. An operation that needs none of them defines none.

  /** The stages, if the operation is made of others; else nullptr. Schedule::Passes requires them. */
  virtual const StagedOperation *
  AsStaged() const;

  /** For devices that hold an image together (DividedImages): operations that give the same bits one after the other,
   * each over the whole image. Independent: each has one input; the first goes from the input's kind to the output's,
   * the others from and to the output's. Fixpoint: the operation that each device runs on its part first, and the one
   * of visits. Empty: the operation is not run so. */
  virtual std::vector<std::shared_ptr<const Operation>>
  AsSteps(PixelType input, PixelType output) const;

  /** True if a stream block reads no voxels of other blocks but for its halo, because a state says all else that later
   * blocks need of earlier ones. */
  virtual bool
  HandsOnState() const;
  /** With HandsOnState, after each block but the last: the operation that computes the next block, with the state of
   * the finished one; nullptr: the same operation. */
  virtual std::shared_ptr<const Operation>
  MakeForNextBlock(const FinishedBlock & block) const;

  /** The runner of the operation from sources to a sink if neither the host nor a device has memory for the image, see
   * chunkwiseOutOfCoreRunner.h. It lives as long as the process. nullptr: the image must fit. */
  virtual const OutOfCoreRunner *
  GetOutOfCoreRunner() const;
  /** True if that runner runs the operation over images in the host's memory, too: then there are no kernels under its
   * name, and its region is the whole image. */
  virtual bool
  IsRunByRunner() const;

  /** Variants of the operation of which the host computes a part (its kernel `head`) while a device computes the rest
   * (its kernel `piped`). A single variant with the operation's own key is one that the user asked for. */
  virtual std::vector<std::shared_ptr<const Operation>>
  GetPipedVariants() const;

  /** Why no device can run the operation, as a sentence without a full stop; empty: devices that have its kernels can.
   */
  virtual std::string
  GetObjectionToDevices() const;
};

/** Lets long kernels stop early and report how far they are. Both are thread-safe. */
class Chunkwise_EXPORT RunControl
{
public:
  virtual ~RunControl();
  /** True once the caller asked for the run to stop: a kernel on the host returns soon, its output unfinished. */
  virtual bool
  ShouldStop() const = 0;
  /** A host kernel reports output voxels as it finishes them, or its work as a part of them; device kernels report
   * nothing. */
  virtual void
  AddFinishedVoxels(std::int64_t voxels) = 0;
};

/** Uploads small read-only tables once and keeps them (kernel weights, norms). */
class Chunkwise_EXPORT DeviceTables
{
public:
  virtual ~DeviceTables();
  /** A pointer, valid for the run on the device of this call, to a copy of `bytes` bytes at `data`. `key` names the
   * contents: the same key always has the same bytes. On the host this is `data` itself. */
  virtual const void *
  Get(const std::string & key, const void * data, std::size_t bytes) = 0;
  /** The same for a table that the device, or the host, makes itself: fill(memory) writes `bytes` bytes of its memory,
   * and has done so when it returns. If the budget has no room for them beside what the plan needs, fill is not called
   * and the result is nullptr: the caller then does without the table. On the host valid until the kernel returns. */
  virtual const void *
  GetMade(const std::string & key, std::size_t bytes, const std::function<void(void * memory)> & fill);
};

/** Everything a kernel gets. */
struct KernelCall
{
  const Operation * operation{ nullptr };
  BufferView        inputs[MaxInputs];
  int               numberOfInputs{ 0 };
  /** The kernel writes every voxel of output.box and nothing else. Kernels `advance` and `summarize` have no output,
   * only its kind. */
  BufferView output;
  /** The chunk. Fixpoint: the output also holds the chunk's halo, of which the kernel changes only this box. TwoPass:
   * what the first kernel summarises. */
  Box writable;
  /** The largest possible region: boundaries are here, at [0, image.upper). */
  Box image;
  /** As many bytes as the kernel's scratch function asked for; 256-byte aligned; unspecified contents. */
  void *      scratch{ nullptr };
  std::size_t scratchBytes{ 0 };
  /** Carry, solution (in); carry, summary (out); in memory of the device. */
  const void * sideIn{ nullptr };
  std::size_t  sideInBytes{ 0 };
  void *       sideOut{ nullptr };
  std::size_t  sideOutBytes{ 0 };
  /** Fixpoint: bit 2a for the lower, 2a + 1 for the upper side of axis a, set where the border layer changed; a word in
   * memory of the device. */
  std::uint32_t * changedSides{ nullptr };
  /** Host backends: where to find threads. */
  Executor * executor{ nullptr };
  /** Device backends: the native stream. */
  void *         stream{ nullptr };
  RunControl *   control{ nullptr };
  DeviceTables * tables{ nullptr };
  /** The backend's kernels, for a kernel that runs others. */
  const KernelRegistry * kernels{ nullptr };
  /** Receives the name of the algorithm that ran, from kernels that choose among several. nullptr: not asked for. */
  const char ** chosen{ nullptr };

  /** Keeps nothing of the output but its kind. */
  void
  OmitOutput()
  {
    const PixelType kind = output.kind;
    output = BufferView();
    output.kind = kind;
  }
};

/** The shapes and kinds of a chunk, for scratch and cost functions. */
struct ChunkShape
{
  Box       inputBox{};
  Box       outputBox{};
  Box       image{};
  PixelType inputKinds[MaxInputs]{};
  int       numberOfInputs{ 0 };
  PixelType outputKind{ PixelType::UInt8 };
  /** Threads of a host backend. */
  int concurrency{ 1 };
  /** The backend's kernels, for a kernel that runs others. */
  const KernelRegistry * kernels{ nullptr };
};

/** One of a kernel's algorithms, as it would compute a chunk. */
struct KernelChoice
{
  /** The algorithm's name, unique within its kernel. */
  const char * name{ nullptr };
  /** Kernel::run, scratchBytes and cost for the chunk. */
  void (*run)(const KernelCall & call){ nullptr };
  std::size_t scratchBytes{ 0 };
  double      cost{ 0 };
};

/** One kernel of one backend. */
struct Kernel
{
  /** Enqueues (devices) or does (host) the work. Throws chunkwise::Error. nullptr: there is no kernel. */
  void (*run)(const KernelCall & call){ nullptr };
  /** Scratch bytes for a chunk. Must not shrink when the chunk grows. nullptr: none. */
  std::size_t (*scratchBytes)(const Operation & operation, const ChunkShape & shape){ nullptr };
  /** The cost of the chunk, as the bytes of device memory traffic that take as long. nullptr: input + output. */
  double (*cost)(const Operation & operation, const ChunkShape & shape){ nullptr };
  /** The library whose transforms the kernel takes for the operation, for reports ("own", "cufft", "fftw"). Throws
   * ParameterError if the operation names a library that is not there; `whyNoDevice` says why no device computes, if
   * that is known. nullptr: the kernel takes no transforms. */
  const char * (*provider)(const Operation & operation, const std::string & whyNoDevice){ nullptr };
  /** Chooses among a kernel's algorithms, for a chunk of this shape. A pure function; run, scratchBytes
   * and cost ask it and nothing else (chunkwiseKernelChoice.h). nullptr: there is one algorithm. */
  KernelChoice (*choose)(const Operation & operation, const ChunkShape & shape){ nullptr };
};

/** All that a backend has for an operation: its kernels by their roles, each of which may be missing. The schedules say
 * what each role gets, see Operation. */
struct KernelSet
{
  /** The output of a chunk. */
  Kernel compute{};
  /** Sweep. */
  Kernel advance{};
  /** TwoPass. The scratch of `alone`, for the whole region, may be less than that of `compute` for a part. */
  Kernel summarize{};
  Kernel alone{};
  /** Fixpoint. */
  Kernel begin{};
  Kernel finish{};
  Kernel isActive{};
  Kernel solveGlobally{};
  Kernel finalizeRegion{};
  /** Devices, of independent operations: `compute` with a part of its scratch in the host's memory, so that chunks can
   * be larger. It gets that part, spilledBytes of it, as call.sideOut, in pinned memory. */
  Kernel spilled{};
  /** Devices, of independent operations: computes a part of the operation alone, for what the host's `head` computes
   * meanwhile of the rest (chunkwisePipedCall.h). call.sideOut, exchangedBytes of pinned memory, is where both meet. */
  Kernel piped{};
  Kernel head{};

  /** Memory of lookup tables that all chunks share; plans count it once. nullptr: none. */
  std::size_t (*tableBytes)(const Operation & operation, const ChunkShape & shape){ nullptr };
  /** Devices: whether `compute` reads and writes interleaved images of the chunk directly. nullptr: never. */
  bool (*supportsInterleaved)(const Operation & operation, const ChunkShape & shape){ nullptr };
  /** Whether `spilled` may run in place of `compute`, whatever the chunk. */
  bool (*supportsSpilling)(const Operation & operation){ nullptr };
  /** The host's memory that `spilled` needs for a chunk, and how often the time of a plan with it counts beside that of
   * a plan without: 0 means always better. */
  std::size_t (*spilledBytes)(const Operation & operation, const ChunkShape & shape){ nullptr };
  double (*spilledWeight)(const Operation & operation){ nullptr };
  /** The host's memory that `piped` needs for a chunk, and the number of parts of the chunk of which one waits for
   * another. */
  std::size_t (*exchangedBytes)(const Operation & operation, const ChunkShape & shape){ nullptr };
  double (*pipedParts)(const Operation & operation, const ChunkShape & shape){ nullptr };
};

/** The role of a kernel in its set: &KernelSet::compute, ... */
using KernelRole = Kernel KernelSet::*;

/** All roles, with their names for messages and tests: "compute", ... */
Chunkwise_EXPORT const std::vector<std::pair<KernelRole, std::string>> &
                       GetKernelRoles();

/** The kernels of one backend, by operation. Thread-safe; kernels that are in use must not be replaced. */
class Chunkwise_EXPORT KernelRegistry
{
public:
  KernelRegistry();
  ~KernelRegistry();
  KernelRegistry(const KernelRegistry &) = delete;
  KernelRegistry &
  operator=(const KernelRegistry &) = delete;

  /** Under the name of an operation, or of a voxel-wise stage of one. A later registration under the same name replaces
   * the former. */
  void
  Register(const std::string & name, const KernelSet & kernels);
  /** nullptr if there is none. */
  const KernelSet *
  FindSet(const std::string & name) const;
  /** nullptr if there is none. */
  const Kernel *
  Find(const std::string & name, KernelRole role = &KernelSet::compute) const;
  /** The kernel that another one needs: throws Error, which names both, if there is none. */
  const Kernel &
  Get(const std::string & name, const std::string & neededBy, KernelRole role = &KernelSet::compute) const;
  std::vector<std::string>
  GetNames() const;

  /** A kernel as messages name it: "mean", or "sat" (advance). */
  static std::string
  Describe(const std::string & name, KernelRole role);

private:
  struct Impl;
  std::unique_ptr<Impl> m_Impl;
};

} // namespace chunkwise

#endif
