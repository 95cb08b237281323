/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwisePassesRun_h
#define chunkwisePassesRun_h

#include "chunkwiseManagerState.h"
#include "chunkwiseStagedOperation.h"

#include <functional>

namespace chunkwise
{

/** The stages of an operation whose schedule is Passes as separate runs, and the images between them. */
class PassesRun
{
public:
  using ExecuteFunction = std::function<ExecutionReport(const ExecutionRequest & request, Monitor * monitor)>;

  /** Throws what a run of a stage would throw before its work starts, and BudgetError if the images between the stages
   * do not fit the budget. They are the host's, or of `device` if its memory has the images. */
  PassesRun(ManagerState & manager, const ExecutionRequest & request, const std::size_t * device = nullptr);

  /** execute(request, monitor) runs a stage. The report is the last one's, with the peaks and sums of all. */
  ExecutionReport
  Execute(const ExecuteFunction & execute, Monitor * monitor);

  /** The request of a stage; its images have no memory. */
  ExecutionRequest
  MakeRequest(std::size_t stage) const;
  std::size_t
  GetNumberOfStages() const
  {
    return m_Stages.size();
  }

private:
  bool
  IsLast(std::size_t stage) const
  {
    return stage + 1 == m_Stages.size();
  }
  /** Bytes that the image after a stage takes. */
  std::size_t
  GetBytes(std::size_t stage) const;
  /** Bytes of all images that are there while a stage runs. */
  std::size_t
  GetBytesDuring(std::size_t stage) const;
  /** Bytes of the host that are enough for each stage with the images that are there meanwhile, if `most` are for the
   * images of all. */
  std::size_t
  GetLeast(std::size_t most) const;
  /** Memory for the image after a stage; of the host once other runs leave room for it. */
  ArenaBlock
  Hold(std::size_t stage, Monitor * monitor);
  const char *
  GetMemoryName() const
  {
    return m_Device ? "device" : "host";
  }

  ManagerState &                 m_Manager;
  DeviceState *                  m_Device; ///< nullptr: the images are the host's
  const ExecutionRequest &       m_Request;
  const StagedOperation &        m_Operation;
  const std::vector<Stage>       m_Stages;
  const std::vector<std::size_t> m_LastReaders;
  std::vector<Box>               m_Boxes;
  std::vector<PixelType>         m_Kinds;
  std::size_t                    m_Limit; ///< 0: none
};

} // namespace chunkwise

#endif
