/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeconvolutionSums_h
#define chunkwiseDeconvolutionSums_h

#include "chunkwiseDeconvolutionSteps.h"
#include "chunkwiseDeviceHandles.h"
#include "chunkwiseError.h"
#include "chunkwiseManager.h"

#include <memory>

namespace chunkwise
{

/** Memory of a device in which a step adds up its sums. */
class DeconvolutionSumsOnDevice
{
public:
  DeconvolutionSumsOnDevice(Manager & manager, int device, const Budgets & budgets)
    : m_Device(*manager.GetDevices()[static_cast<std::size_t>(device)])
    , m_Memory(manager.AllocateOnDevice(device, sizeof(DeconvolutionSums), budgets.device))
    , m_Stream(m_Device)
  {}

  DeconvolutionSums *
  Get() const
  {
    return static_cast<DeconvolutionSums *>(m_Memory->Get());
  }
  void
  Clear()
  {
    m_Device.SetToZero(m_Memory->Get(), sizeof(DeconvolutionSums), m_Stream.Get());
    m_Device.Synchronize(m_Stream.Get());
  }
  DeconvolutionSums
  Take()
  {
    DeconvolutionSums sums{};
    m_Device.CopyToHost(&sums, m_Memory->Get(), sizeof(sums), m_Stream.Get());
    m_Device.Synchronize(m_Stream.Get());
    return sums;
  }
  /** Throws DeviceError if steps of the run may have added twice. */
  static void
  Check(const ExecutionReport & report)
  {
    if (report.retries > 0)
    {
      throw DeviceError(
        DeviceError::Kind::Failed, "deconvolution.step", report.backend, 0, "its sums may have been added twice");
    }
  }

private:
  Device &                      m_Device; ///< the manager has it for as long as it lives
  std::shared_ptr<DeviceMemory> m_Memory;
  DeviceStream                  m_Stream;
};

} // namespace chunkwise

#endif
