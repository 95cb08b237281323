/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseImageTransfer_h
#define chunkwiseImageTransfer_h

#include "chunkwiseManagerState.h"
#include "chunkwiseStagedTransfer.h"

#include <memory>
#include <vector>

namespace chunkwise
{

/** Copies whole images between the host and dense memory of a device, and looks now and then whether the caller wants
 * to stop. Who makes it has taken the device's turn. */
class ImageTransfer
{
public:
  /** Takes image, budgets and threads from the request. */
  ImageTransfer(ManagerState & manager, std::size_t device, const ExecutionRequest & request, Monitor * monitor);

  /** Throw DeviceError or Aborted; then no copy is pending any more. */
  void
  ToDevice(void * to, const BufferView & from, const Box & box);
  void
  ToHost(const BufferView & to, const void * from, const Box & box);

  /** Bytes of pinned memory. */
  std::size_t
  GetPeak() const
  {
    return m_State.pinned.GetPeak();
  }

private:
  template <typename TCopy>
  void
  InSlabs(const BufferView & view, const Box & box, TCopy && copy);

  const ExecutionRequest          m_Request;
  const PlannerRequest            m_PlannerRequest;
  DeviceState &                   m_State;
  Monitor * const                 m_Monitor;
  RunContext                      m_Context;
  std::unique_ptr<StagedTransfer> m_Transfer;
};

/** Those images of a request for a device that the host holds: inputs are copied to blocks of the device's memory, and
 * the output comes back from one. */
class StagedImages
{
public:
  /** Takes memory for what the host holds, and puts it in the images' place in the request. Throws BudgetError if it
   * does not fit. */
  StagedImages(ManagerState & manager, std::size_t device, ExecutionRequest & request, Monitor * monitor);

  /** Copies the inputs. */
  void
  Load();
  /** Copies the output, and adds what was copied to the report. */
  void
  Store(ExecutionReport & report);

private:
  struct Image
  {
    BufferView onHost;
    BufferView onDevice;
  };

  void
  Hold(BufferView & view, const Box & box, std::vector<Image> & images);
  ImageTransfer &
  GetTransfer();

  ManagerState &                 m_Manager;
  const std::size_t              m_Device;
  const ExecutionRequest &       m_Request;
  Monitor * const                m_Monitor;
  std::vector<Image>             m_Inputs;
  std::vector<Image>             m_Outputs; ///< one, or none
  std::vector<ArenaBlock>        m_Blocks;
  std::unique_ptr<ImageTransfer> m_Transfer; ///< goes before the blocks
  double                         m_BytesToDevice{ 0 };
};

} // namespace chunkwise

#endif
