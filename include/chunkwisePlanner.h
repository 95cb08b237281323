/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwisePlanner_h
#define chunkwisePlanner_h

#include "chunkwiseOperation.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace chunkwise
{

/** One chunk: the box that it writes, and the box that it reads of each input. If windows wrap around the image, the
 * input box may reach beyond it. */
struct Chunk
{
  Box outputBox{};
  Box inputBox{};
};

/** The planner's description of one device that may take chunks. Rates in bytes per second. */
struct PlannerDevice
{
  std::size_t memory{ 0 }; ///< bytes it may use
  double      toDeviceRate{ 50e9 };
  double      toHostRate{ 50e9 };
  double      memoryRate{ 4e12 };
  double      launchSeconds{ 10e-6 };
};

struct PlannerRequest
{
  Box  image{};  ///< the largest region, from 0
  Box  region{}; ///< the output to compute
  Halo halo{};
  /** Extents of tiles that are computed whole, see Operation::GetTile. */
  Coordinates tile{ Coordinates::Filled(1) };
  bool        wraps{ false };
  /** The input box of an output box, if the output has a different grid; empty: the halo gives it. */
  std::function<Box(const Box & output)> inputBox;
  /** With inputBox: the extent that no input box of an output box of this extent exceeds. Empty: input boxes take no
   * memory (inPlace). */
  std::function<Coordinates(const Coordinates & output)> mostInput;
  PixelType                                              inputKinds[MaxInputs]{};
  int                                                    numberOfInputs{ 1 };
  PixelType                                              outputKind{ PixelType::UInt8 };
  /** False: chunks are read, and nothing is written. */
  bool hasOutput{ true };
  /** Scratch bytes of a chunk (empty: none), and its traffic of device memory (empty: input + output). */
  std::function<std::size_t(const ChunkShape &)>         scratchBytes;
  std::function<double(const ChunkShape &)>              cost;
  std::function<Coordinates(const Coordinates & extent)> roundChunk;
  /** Bytes beside scratch that a chunk needs once (tables, side data). */
  std::size_t                fixedBytes{ 0 };
  std::vector<PlannerDevice> devices;
  /** Chunks that follow each other along the sweep axis on one device keep their common input there. */
  bool carryHalo{ true };
  /** All inputs are interleaved: their components lie along the last axis. Chunks have all components if such chunks
   * fit, and chunks that follow each other along another axis keep their common input too. */
  bool keepsComponents{ false };
  /** Each chunk is loaded, run and stored before the next one (Fixpoint with few chunks, the host). So there is one
   * buffer of each kind, and no chunk is cut to let transfers and kernels overlap. */
  bool oneAtATime{ false };
  /** A region in one chunk needs half of the work (TwoPass that runs alone): it is not cut if it fits each device. */
  bool wholeIfItFits{ false };
  /** Chunks are used where they lie (the host): only scratch and fixed bytes take memory. */
  bool inPlace{ false };
  /** Threads of the host, for scratch. */
  int concurrency{ 1 };
  /** Seconds that the host needs for each contiguous piece it copies. */
  double pieceSeconds{ 30e-9 };
  /** Chunks must be ordered along this axis and hold the others whole (Sweep); -1: the planner's choice. */
  int sweepAxis{ -1 };
  /** Sweep: bytes that a chunk hands to the next, which may be another device's. */
  std::size_t carryBytes{ 0 };
  /** Fixpoint: seconds that each chunk costs in visits to where it meets others. */
  double visitSeconds{ 0 };
  /** The name of the devices' memory and of its budget in messages: "device" or "host". */
  std::string memoryName{ "device" };
};

struct Plan
{
  /** In the order to run: neighbors along sweepAxis follow each other. */
  std::vector<Chunk> chunks;
  Coordinates        chunkExtent{}; ///< of the largest output box
  int                sweepAxis{ 0 };
  int                inputSlots{ 1 }; ///< input buffers that the device memory holds
  int                outputSlots{ 1 };
  /** Bytes of the largest chunk. */
  std::size_t inputBytes{ 0 };
  std::size_t outputBytes{ 0 };
  std::size_t scratchBytes{ 0 };
  std::size_t deviceBytes{ 0 }; ///< all slots, scratch and fixed bytes of one device
  /** The cost model's estimate for the whole run. */
  double bytesToDevice{ 0 };
  double bytesToHost{ 0 };
  double seconds{ 0 };
  /** Scratch in the host's pinned memory beside each device: what kernels keep there, or where the CPU leaves what it
   * has computed of a chunk. */
  std::size_t spilledBytes{ 0 };
  /** Devices hold the image together: each chunk is the part of one of them (DividedImages). */
  bool divided{ false };
  /** The operation that runs instead if the CPU computes a part of each chunk; nullptr: it does not. */
  std::shared_ptr<const Operation> piped{};
};

/** Chooses chunks. A pure function: equal requests give equal plans.
 *
 * Minimises the expected time
 *   max(bytes in / link, bytes out / link, kernel traffic / device memory rate, carries from device to device)
 *   + first load + last store
 *   + pieces * pieceSeconds + chunks * launchSeconds
 * over chunk extents and buffer counts whose buffers fit the smallest device's memory. Chunks that follow each other
 * along the sweep axis reload no halo. Throws BudgetError, which names the bytes needed and the budget, if not even a
 * chunk of one voxel fits.
 */
Chunkwise_EXPORT Plan
MakePlan(const PlannerRequest & request);

/** The cost of a budget. */
struct BudgetCost
{
  /** Expected time of the plan under it, as a multiple of that without limit; infinite if there is no plan. */
  double factor{ 1 };
  /** About the smallest budget, in bytes, under which a run takes at most a quarter longer than without limit. Trials
   * find it to within a hundredth. */
  std::size_t sufficient{ 0 };
};

/** A pure function, like MakePlan, which it calls some dozens of times. */
Chunkwise_EXPORT BudgetCost
FindBudgetCost(const PlannerRequest & request);

/** MakePlan for a run: throws BudgetError too where memory makes it hopelessly long (more than a thousand times as long
 * as it would take without limit), and adds a warning where it costs much (more than eight times); unless what is lost
 * is a moment. The error's `needed` is the least memory that is accepted: with one byte less there is an error too. */
Chunkwise_EXPORT Plan
MakeReasonablePlan(const PlannerRequest & request, std::vector<std::string> & warnings);

/** Bytes that must cross the link to the device for chunks of this extent, halo included, without carrying. */
Chunkwise_EXPORT double
BytesWithoutCarry(const PlannerRequest & request, const Coordinates & chunkExtent);

/** Cuts a chunk in two along sweepAxis, or along its longest axis if that one has a single voxel. Returns nothing for a
 * chunk of one voxel. A sweep's chunk is cut along the sweep axis alone. */
Chunkwise_EXPORT std::vector<Chunk>
                 HalveChunk(const Chunk & chunk, int sweepAxis, const PlannerRequest & request);

/** Halves all chunks; chunks that cannot be halved stay as they are. */
Chunkwise_EXPORT std::vector<Chunk>
                 HalveChunks(const std::vector<Chunk> & chunks, int sweepAxis, const PlannerRequest & request);

/** The parts of a chunk after so many halvings. */
Chunkwise_EXPORT std::vector<Chunk>
                 SplitChunk(const Chunk & chunk, int splits, int sweepAxis, const PlannerRequest & request);

/** The input box of an output box. */
Chunkwise_EXPORT Box
InputBoxOf(const Box & outputBox, const PlannerRequest & request);

} // namespace chunkwise

#endif
