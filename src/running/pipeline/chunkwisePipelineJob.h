/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwisePipelineJob_h
#define chunkwisePipelineJob_h

#include "chunkwiseHostCopy.h"
#include "chunkwiseRunContext.h"

#include <memory>
#include <vector>

namespace chunkwise
{

class PieceCopies;

/** Bytes [begin, end) of a chunk's input, or of its output. */
struct Piece
{
  std::size_t input{ 0 };
  std::size_t begin{ 0 };
  std::size_t end{ 0 };
};

/** Voxels of an input that the previous job's buffer already holds. */
struct InputOverlap
{
  std::size_t bytes{ 0 }; ///< at the front of the input
  std::size_t from{ 0 };  ///< where they begin in the previous job's
  std::size_t block{ 0 }; ///< bytes of one component there
};

/** A chunk on its way through a pipeline: what is copied for it, and how far it has come. */
struct Job
{
  std::size_t                number{ 0 };
  Chunk                      chunk;
  std::vector<DenseSequence> inputs;
  std::vector<DenseSequence> output; ///< one
  /** Components that lie side by side in the sequence of an input, or of the output, and apart on the device. */
  std::vector<std::int64_t> inputComponents;
  std::int64_t              outputComponents{ 1 };
  std::vector<InputOverlap> overlap; ///< of each input
  bool                      overlaps{ false };
  Box                       inputBox{};
  /** Fixpoint: bytes of the previous job's state that this one goes on from, ahead of its state; and their place
   * there. */
  std::size_t        bytesBefore{ 0 };
  std::size_t        layersFrom{ 0 };
  std::vector<Piece> loads;
  std::vector<Piece> stores;

  // The members below change under the lock of the job's line.
  std::size_t           nextLoad{ 0 };
  std::size_t           loadsBegun{ 0 };
  bool                  isLoaded{ false };   ///< all its loads are enqueued, and its load event
  EventHandle           slotFree{ nullptr }; ///< must have come before this one is loaded
  bool                  issued{ false };
  std::size_t           nextStore{ 0 };
  std::size_t           stored{ 0 };
  bool                  finished{ false };
  std::shared_ptr<void> head; ///< what the host computes of it with
  // For a sweep:
  bool carryTaken{ false };    ///< it is known what enters
  bool advanced{ false };      ///< what makes the next carry is enqueued
  bool carryHandedOn{ false }; ///< the chain knows what leaves, or nobody will ask for it
};

/** Fixpoint: the box, extended backwards along the sweep axis by the halo. Other schedules: the box. */
Box
WithLayersBefore(const RunContext & context, const Plan & plan, const Box & box);

/** Makes the job of a chunk: what of its images must be copied, beside what the job before has on the device. */
class JobMaker
{
public:
  JobMaker(const RunContext & context, const Plan & plan, const PieceCopies & copies)
    : m_Context(context)
    , m_Plan(plan)
    , m_Copies(copies)
  {}

  /** `previous`: nullptr for the first one. */
  std::unique_ptr<Job>
  Make(const Chunk & chunk, const Job * previous) const;

private:
  /** The place of the common voxels of two inputs, if they are one block at the end of one and the begin of the next,
   * or one for each component. */
  void
  FindOverlap(const Job * previous, Job & job) const;
  /** A chunk that follows on the previous one goes on from the last layers of its state: values from there need no
   * separate visit. */
  void
  FindLayersBefore(const Job * previous, Job & job) const;
  DenseSequence
  SequenceOf(const BufferView & view, const Box & box, std::int64_t components) const;

  const RunContext &  m_Context;
  const Plan &        m_Plan;
  const PieceCopies & m_Copies;
};

} // namespace chunkwise

#endif
