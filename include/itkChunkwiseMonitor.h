/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseMonitor_h
#define itkChunkwiseMonitor_h

#include "ChunkwiseExport.h"
#include "chunkwiseManager.h"
#include "itkProcessObject.h"

#include <exception>

namespace itk
{
/** \class ChunkwiseMonitor
 * \brief Reports a run's progress to a filter and asks the filter whether to abort.
 *
 * The engine calls it only from the thread that invoked the filter, so observers of the filter's ProgressEvent run
 * there, as with any ITK filter. What an observer throws ends the run and is thrown again by RethrowObserverException.
 *
 * \ingroup Chunkwise
 */
class Chunkwise_EXPORT ChunkwiseMonitor : public chunkwise::Monitor
{
public:
  explicit ChunkwiseMonitor(ProcessObject & filter);
  ~ChunkwiseMonitor() override;

  void
  UpdateProgress(double fraction) override;
  bool
  ShouldAbort() override;

  /** To be called when a run ended. */
  void
  RethrowObserverException() const;

private:
  ProcessObject &    m_Filter;
  std::exception_ptr m_ObserverException;
};
} // namespace itk

#endif
