/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeconvolutionStepper_h
#define chunkwiseDeconvolutionStepper_h

#include "chunkwiseDeconvolutionSteps.h"
#include "chunkwiseDeviceHandles.h"
#include "chunkwiseError.h"
#include "chunkwiseManager.h"

#include <array>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace chunkwise
{

/** Runs steps of a deconvolution on a device, in a stream that convolutions wait for: so the host plans a convolution
 * while a step is running. Steps need no memory, so they take no turn. */
class DeconvolutionStepper
{
public:
  enum Total
  {
    None = -1,
    OfBlur,
    OfChange,
    NumberOfTotals
  };

  DeconvolutionStepper(Manager & manager, int device, const Budgets & budgets, const Box & grid)
    : m_Device(*manager.GetDevices()[static_cast<std::size_t>(device)])
    , m_Grid(grid)
    , m_Kernel(*m_Device.GetKernels().Find("deconvolution.step"))
    , m_Stream(m_Device)
    , m_CopyStream(m_Device)
  {
    for (auto & total : m_Totals)
    {
      total = manager.AllocateOnDevice(device, sizeof(DeconvolutionSums), budgets.device);
    }
  }
  ~DeconvolutionStepper()
  {
    try
    {
      this->Synchronize();
    }
    catch (const Error &)
    {
      // The device is lost: nothing is pending.
    }
  }
  DeconvolutionStepper(const DeconvolutionStepper &) = delete;
  DeconvolutionStepper &
  operator=(const DeconvolutionStepper &) = delete;

  /** Who uses the images of steps on the device waits for this stream. */
  StreamHandle
  GetStream() const
  {
    return m_Stream.Get();
  }
  void
  Synchronize()
  {
    m_Device.Synchronize(m_Stream.Get());
    m_Operations.clear();
  }

  /** The total is 0 for the steps that follow. */
  void
  Clear(Total total)
  {
    m_Device.SetToZero(m_Totals[total]->Get(), sizeof(DeconvolutionSums), m_Stream.Get());
  }
  /** Computes `region` of an image that may be one of the inputs, and adds its sums to a total. Inputs and output are
   * dense in memory of the device; with a total the region has whole rows. */
  void
  Run(DeconvolutionStep step, const DeconvolutionParameters & parameters, const std::vector<BufferView> & inputs,
      const BufferView & output, const Box & region, Total total = None)
  {
    const auto operation = std::make_shared<DeconvolutionStepOperation>();
    operation->step = step;
    operation->inputs = static_cast<int>(inputs.size());
    operation->parameters = parameters;
    KernelCall call;
    call.operation = operation.get();
    call.numberOfInputs = operation->inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i)
    {
      call.inputs[i] = PartOf(inputs[i], region);
    }
    call.output = PartOf(output, region);
    call.writable = region;
    call.image = m_Grid;
    if (total != None)
    {
      call.sideOut = m_Totals[total]->Get();
      call.sideOutBytes = sizeof(DeconvolutionSums);
    }
    // Kernels may begin later; convolutions between so many steps have waited for the first one.
    constexpr std::size_t pending = 16;
    m_Operations.push_back(operation);
    m_Device.Launch(m_Kernel, call, m_Stream.Get());
    if (m_Operations.size() > pending)
    {
      this->Synchronize();
    }
  }
  /** The total of steps that have ended: somebody has waited for them. */
  DeconvolutionSums
  Take(Total total)
  {
    DeconvolutionSums sums{};
    m_Device.CopyToHost(&sums, m_Totals[total]->Get(), sizeof(sums), m_CopyStream.Get());
    m_Device.Synchronize(m_CopyStream.Get());
    return sums;
  }

private:
  static BufferView
  PartOf(const BufferView & view, const Box & box)
  {
    char * const begin = static_cast<char *>(view.data);
    return DenseView(begin + view.Offset(box.lower) * static_cast<std::int64_t>(PixelSize(view.kind)), view.kind, box);
  }

  Device &                                                  m_Device; ///< the manager has it for as long as it lives
  const Box                                                 m_Grid;
  const Kernel &                                            m_Kernel;
  std::array<std::shared_ptr<DeviceMemory>, NumberOfTotals> m_Totals;
  std::deque<std::shared_ptr<const Operation>>              m_Operations;
  DeviceStream                                              m_Stream;
  DeviceStream                                              m_CopyStream;
};

} // namespace chunkwise

#endif
