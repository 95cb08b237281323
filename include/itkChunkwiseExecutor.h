/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseExecutor_h
#define itkChunkwiseExecutor_h

#include "ChunkwiseExport.h"
#include "chunkwiseExecutor.h"
#include "itkMultiThreaderBase.h"

namespace itk
{
/** \class ChunkwiseExecutor
 * \brief Runs the engine's host work on the threads of an itk::MultiThreaderBase.
 *
 * itk::MultiThreaderBase::ParallelizeArray hands each thread one fixed block; here threads take the next index as they
 * become free, so that uneven work balances. ParallelFor may be called from several threads at once: every call creates
 * a multi-threader of the given one's type.
 *
 * \ingroup Chunkwise
 */
class Chunkwise_EXPORT ChunkwiseExecutor : public chunkwise::Executor
{
public:
  /** As many workers as `numberOfWorkUnits`, but no more than the multi-threader has threads: work units beyond the
   * threads would only cost scratch memory. */
  ChunkwiseExecutor(MultiThreaderBase * multiThreader, ThreadIdType numberOfWorkUnits);
  ~ChunkwiseExecutor() override;

  unsigned int
  GetConcurrency() const override;

  void
  ParallelFor(std::int64_t count, const std::function<void(std::int64_t index, unsigned int worker)> & body) override;

private:
  MultiThreaderBase::Pointer m_MultiThreader;
  unsigned int               m_Concurrency;
};
} // namespace itk

#endif
