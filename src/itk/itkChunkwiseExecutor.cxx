/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseExecutor.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>

namespace itk
{

ChunkwiseExecutor::ChunkwiseExecutor(MultiThreaderBase * multiThreader, ThreadIdType numberOfWorkUnits)
  : m_MultiThreader(multiThreader)
  , m_Concurrency(std::max<ThreadIdType>(1, std::min(numberOfWorkUnits, multiThreader->GetMaximumNumberOfThreads())))
{}

ChunkwiseExecutor::~ChunkwiseExecutor() = default;

unsigned int
ChunkwiseExecutor::GetConcurrency() const
{
  return m_Concurrency;
}

void
ChunkwiseExecutor::ParallelFor(std::int64_t                                                         count,
                               const std::function<void(std::int64_t index, unsigned int worker)> & body)
{
  const auto workers = static_cast<unsigned int>(std::min<std::int64_t>(m_Concurrency, count));
  if (workers <= 1)
  {
    for (std::int64_t index = 0; index < count; ++index)
    {
      body(index, 0);
    }
    return;
  }

  std::atomic<std::int64_t> next{ 0 };
  std::mutex                failureMutex;
  std::exception_ptr        failure;
  const auto                work = [&](SizeValueType worker) {
    try
    {
      for (std::int64_t index = next++; index < count; index = next++)
      {
        body(index, static_cast<unsigned int>(worker));
      }
    }
    catch (...)
    {
      next = count;
      const std::lock_guard<std::mutex> lock(failureMutex);
      if (!failure)
      {
        failure = std::current_exception();
      }
    }
  };

  const LightObject::Pointer clone = m_MultiThreader->CreateAnother();
  auto *                     multiThreader = static_cast<MultiThreaderBase *>(clone.GetPointer());
  try
  {
    multiThreader->SetMaximumNumberOfThreads(m_Concurrency);
  }
  catch (const std::system_error &)
  {
    // ITK's pool has the threads that the system has started.
  }
  multiThreader->SetNumberOfWorkUnits(workers);
  multiThreader->ParallelizeArray(0, workers, work, nullptr);
  if (failure)
  {
    std::rethrow_exception(failure);
  }
}

} // namespace itk
