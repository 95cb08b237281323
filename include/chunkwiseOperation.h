/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseOperation_h
#define chunkwiseOperation_h

#include "chunkwiseGeometry.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace chunkwise
{

/** How the chunks of an operation depend on each other. */
enum class Schedule
{
  Independent, ///< any order, disjoint outputs, no locks
  Sweep,       ///< ordered along one axis; each chunk hands a carry to the next
  TwoPass,     ///< every chunk is summarised, the summaries are solved together, every chunk is finished
  Fixpoint     ///< every chunk comes to a fixed point of its own; then visits to where they meet, until none changes
};

/** The bytes that a chunk hands on: a carry (Sweep), a summary or a solution (TwoPass). */
using SideData = std::vector<unsigned char>;

/** Says once what the engine must know about a computation; each backend registers kernels under its name.
 *
 * Objects are immutable while a run uses them and are shared between threads.
 * Kernels find their parameters by casting to the derived class. */
class Chunkwise_EXPORT Operation
{
public:
  virtual ~Operation();

  /** The registry's key: kernels are looked up as Name() (and Name() + ".advance", ".summarise", see Schedule). */
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

  /** Axes along which windows wrap around: their halo is loaded from the opposite side. */
  virtual bool
  WrapsAround() const
  {
    return false;
  }

  /** Inputs of the run, 1 to MaxInputs. */
  virtual int
  GetNumberOfInputs() const
  {
    return 1;
  }

  /** Throws ParameterError if these kinds cannot be processed; the message names them. */
  virtual void
  CheckKinds(const std::vector<PixelKind> & inputs, PixelKind output) const = 0;

  /** Throws ParameterError if the parameters make no sense for an image of this extent. Called before work starts. */
  virtual void
  Validate(const Coordinates & image) const;

  /** Rounds the extent of a chunk's output up to what suits the computation (FFT sizes, strides of a network). */
  virtual Coordinates
  RoundChunk(const Coordinates & extent) const
  {
    return extent;
  }

  // Sweep: kernels "name.advance" (input, carry in -> carry out, cheap) and "name" (input, carry in -> output). Where a
  // backend has no "name.advance", its "name" makes the carry out too, and one device takes all chunks.
  // Along GetSweepAxis; chunks hold every other axis whole.
  virtual int
  GetSweepAxis(const Coordinates & image) const;
  /** Bytes of each carry of a run whose output is `box`; its first chunk gets GetInitialCarry, zeros if that is empty.
   */
  virtual std::size_t
  GetCarryBytes(const Box & box, const std::vector<PixelKind> & inputs, PixelKind output) const;
  virtual SideData
  GetInitialCarry(const Box & box, const std::vector<PixelKind> & inputs, PixelKind output) const;

  // TwoPass: kernels "name.summarise" (input -> summary) and "name" (input, solution -> output).
  virtual std::size_t
  GetSummaryBytes(const Box & box, const std::vector<PixelKind> & inputs, PixelKind output) const;
  /** One solution per chunk from all summaries, in the plan's order. Runs once, on the host. */
  virtual std::vector<SideData>
  Solve(const std::vector<Box> & chunks, const std::vector<SideData> & summaries) const;

  // Fixpoint: kernel "name" (inputs with halo, state with halo -> state). It iterates its chunk to a local fixed point
  // and reports the sides whose border layer changed. The output image is the state. Kernel "name.begin" (inputs ->
  // state) makes it. Each chunk comes to a fixed point of its own first, at most with the halo that the chunk before it
  // has left on the same device; then the kernel visits boxes where chunks meet, as far into them as changes go. Kernel
  // "name.finish" (inputs, state -> state), if there is one, runs when nothing changes any more. The last two work
  // voxel by voxel, without halo or scratch. Kernel "name.settle" of the host (inputs, state -> state), if there is
  // one, gets the whole region once visits are out of patience, and brings the state to where few of them are left.
  // Kernel "name.isopen" of the host (inputs, state), if there is one, sets changedSides to not 0 if a voxel of
  // `writable` could change by its neighbours in output.box.
  /** How long visits may take before that, in the time that it takes. */
  virtual double
  GetPatience() const;
};

class Executor;

/** Lets long kernels stop early and report how far they are. Both are thread-safe. */
class Chunkwise_EXPORT RunControl
{
public:
  virtual ~RunControl();
  /** True once the caller asked for the run to stop: a kernel on the host returns soon, its output unfinished. */
  virtual bool
  ShouldStop() const = 0;
  /** A host kernel reports output voxels as it finishes them; device kernels report nothing. */
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
  /** The same for what the device, or host, makes itself: fill(memory) writes `bytes` bytes of its memory and has done
   * so when it returns. nullptr, and nothing is called, if the budget has no room for them beside what the run was
   * planned to take: the caller then does without. On the host valid until the kernel returns. */
  virtual const void *
  GetMade(const std::string & key, std::size_t bytes, const std::function<void(void * memory)> & fill);
};

/** Everything a kernel gets. */
struct KernelCall
{
  const Operation * operation{ nullptr };
  BufferView        inputs[MaxInputs];
  int               numberOfInputs{ 0 };
  /** The kernel writes every voxel of output.box and nothing else. Sweep's and TwoPass' first kernels have no output,
   * only its kind. */
  BufferView output;
  /** Fixpoint: the output also holds the chunk's halo, of which the kernel changes only this box. */
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

  /** Leaves no output but its kind. */
  void
  OmitOutput()
  {
    const PixelKind kind = output.kind;
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
  PixelKind inputKinds[MaxInputs]{};
  int       numberOfInputs{ 0 };
  PixelKind outputKind{ PixelKind::UInt8 };
  /** Threads of a host backend. */
  int concurrency{ 1 };
};

/** One kernel of one backend. */
struct Kernel
{
  /** Enqueues (devices) or does (host) the work. Throws chunkwise::Error. */
  void (*run)(const KernelCall & call){ nullptr };
  /** Scratch bytes for a chunk. Must not shrink when the chunk grows. nullptr: none. */
  std::size_t (*scratchBytes)(const Operation & operation, const ChunkShape & shape){ nullptr };
  /** Bytes of device memory traffic, or the equal of it in time, that the chunk costs. nullptr: input + output. */
  double (*cost)(const Operation & operation, const ChunkShape & shape){ nullptr };
};

/** The kernels of one backend, by name. Filled once, when the backend is made; const afterwards. */
class Chunkwise_EXPORT KernelRegistry
{
public:
  KernelRegistry();
  ~KernelRegistry();
  KernelRegistry(const KernelRegistry &) = delete;
  KernelRegistry &
  operator=(const KernelRegistry &) = delete;

  /** A later registration under the same name replaces the former. */
  void
  Register(const std::string & name, const Kernel & kernel);
  /** nullptr if there is none. */
  const Kernel *
  Find(const std::string & name) const;
  /** The kernel that another one needs: throws Error, which names both, if there is none. */
  const Kernel &
  Get(const std::string & name, const std::string & neededBy) const;
  std::vector<std::string>
  GetNames() const;

private:
  struct Impl;
  std::unique_ptr<Impl> m_Impl;
};

} // namespace chunkwise

#endif
