/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSlabReconstruction_h
#define chunkwiseSlabReconstruction_h

#include "chunkwiseOutOfCoreRunner.h"

#include <cstdint>

namespace chunkwise
{

/** The operation is a ReconstructionOperation, or a PassesOperation of windows and reconstructions. */
struct SlabRequest : OutOfCoreRequest
{
  /** Planes of a slab beside the one that it shares with the next, 0: as many as there is memory for. For tests and
   * tuning; the result is the same. */
  std::int64_t planesOfSlab{ 0 };
  /** Planes of a slab that are contracted at a time, 0: as many as there is memory for. As above. */
  std::int64_t planesAtOnce{ 0 };
  /** Bands that they are cut into, 0: as suits the executor's threads. As above. */
  std::int64_t bandsOfSlab{ 0 };
};

/** A report about a run in slabs. */
struct SlabReport
{
  /** The report of all slabs together. */
  ExecutionReport execution;
  /** Planes of a slab beside the one that it shares with the next; slabs of all volumes. */
  std::int64_t planesOfSlab{ 0 };
  std::int64_t slabs{ 0 };
  /** Times that the mask was read, and further inputs. */
  int passes{ 1 };
  /** Bytes of voxels that sources gave and the sink took; of the spool. */
  std::uint64_t bytesRead{ 0 };
  std::uint64_t bytesWritten{ 0 };
  std::uint64_t spoolWritten{ 0 };
  std::uint64_t spoolRead{ 0 };
  /** Seconds of the run in which slabs were flooded, let in what comes from others, were contracted, packed and
   * finished, and in which it waited for the source and the sink. */
  double flooding{ 0 };
  double flowing{ 0 };
  double contracting{ 0 };
  double packing{ 0 };
  double finishing{ 0 };
  double waiting{ 0 };
  /** Seconds of reading and writing, which go on meanwhile. */
  double reading{ 0 };
  double writing{ 0 };
  /** The most bytes of host memory that the run had at a time: what it allocated, with what sources and sink say that
   * they hold, and what the manager had beside it. */
  std::uint64_t peakHost{ 0 };
};

/** Morphological reconstruction of images that are larger than memory, with the bits of a run in memory.
 *
 * The image is cut into slabs that share a plane with the next. From the last slab to the first, each is flooded
 * (Manager::Execute, or the CPU's kernel) with what the slabs after it bring to the shared plane, and all that lies
 * there is contracted to a forest on the plane (SlabContraction). State and forest go to a spool. From the first slab
 * to the last, what has come to the shared plane since is let into each slab, and the slab is written. So each voxel is
 * read twice and written once, however far values have to go. Images that fit, and volumes that are independent, are
 * read once.
 *
 * A source that is read in order alone is copied to the spool first.
 *
 * Throws ParameterError, and BudgetError with the bytes that are enough, before work starts; what a source or sink
 * throws; Error of the spool; Aborted. */
Chunkwise_EXPORT SlabReport
ReconstructInSlabs(Manager & manager, const SlabRequest & request, Monitor * monitor = nullptr);

/** The least bytes of host memory that ReconstructInSlabs takes for the request. Throws ParameterError. */
Chunkwise_EXPORT std::uint64_t
                 GetLeastHostBytes(Manager & manager, const SlabRequest & request);

} // namespace chunkwise

#endif
