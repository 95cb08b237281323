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
 * there, as with any ITK filter. An exception from an observer ends the run and is thrown again by
 * RethrowObserverException.
 *
 * \ingroup Chunkwise
 */
class Chunkwise_EXPORT ChunkwiseMonitor : public chunkwise::Monitor
{
public:
  /** A filter that makes several runs reports each of them between two fractions of its progress. */
  explicit ChunkwiseMonitor(ProcessObject & filter, double progressBefore = 0.0, double progressAfter = 1.0);
  ~ChunkwiseMonitor() override;

  /** Less than it was, as where a run begins again in another way, is not reported. */
  void
  UpdateProgress(double fraction) override;
  bool
  ShouldAbort() override;

  /** To be called when a run ended. */
  void
  RethrowObserverException() const;

private:
  ProcessObject &    m_Filter;
  double             m_ProgressBefore;
  double             m_ProgressAfter;
  double             m_Last{ -1.0 };
  std::exception_ptr m_ObserverException;
};
} // namespace itk

#endif
