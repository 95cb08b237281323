/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeconvolutionOnDevice_h
#define chunkwiseDeconvolutionOnDevice_h

#include "chunkwiseDeconvolutionOperation.h"
#include "chunkwiseDeconvolutionSteps.h"
#include "chunkwiseDevice.h"
#include "chunkwiseDeviceMemory.h"
#include "chunkwiseError.h"
#include "chunkwiseManager.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace chunkwise
{

/** A deconvolution whose images stay on one device between its iterations. All have the estimate's grid. */
class DeconvolutionOnDevice
{
public:
  enum Image
  {
    Point,
    Next,
    Norm,
    Ratio,
    Correction,
    Measured, ///< NaN where its weight is 0
    Weights,  ///< missing if they are 0 and 1
    Last,
    Step,
    NumberOfImages
  };
  using Sums = DeconvolutionSumsOperation::Summary;
  /** Adds the report of a run of the manager. */
  using Reporter = std::function<void(const ExecutionReport & report)>;

  /** nullptr if the device has not the room, or not all kernels. */
  static std::unique_ptr<DeconvolutionOnDevice>
  Make(Manager & manager, int device, const Budgets & budgets, const DeconvolutionOperation & operation, PixelKind kind,
       bool hasWeights, Reporter report);

  void
  Load(Image image, void * host);
  void
  Store(void * host, Image image);
  /** H y, and of it the ratio. Returns the divergence and the misfit. */
  Sums
  Blur(Monitor * monitor);
  /** H^T, and the next estimate. Returns what DeconvolutionSumsOperation says, if `sums`. */
  Sums
  Correct(bool isFirst, bool sums, Monitor * monitor);
  /** y = u + a (u - last u), and the last u becomes u. */
  void
  Extrapolate(double acceleration);

private:
  DeconvolutionOnDevice(Manager & manager, int device, const Budgets & budgets,
                        const DeconvolutionOperation & operation, PixelKind kind, Reporter report);
  BufferView
  ViewOf(Image image) const;
  void
  Run(std::shared_ptr<const Operation> operation, const std::vector<Image> & inputs, Image output, Monitor * monitor);
  void
  RunStep(DeconvolutionStep step, const std::vector<Image> & inputs, Image output);
  Sums
  SumUp(DeconvolutionStep step, const std::vector<Image> & inputs);

  Manager &                        m_Manager;
  const int                        m_Device;
  const Budgets                    m_Budgets;
  const bool                       m_Accelerates;
  const Box                        m_Grid;
  const PixelKind                  m_Kind;
  const Reporter                   m_Report;
  std::shared_ptr<const Operation> m_Forward;
  std::shared_ptr<const Operation> m_Backward;
  DeconvolutionParameters          m_Parameters;
  std::shared_ptr<DeviceMemory>    m_Images[NumberOfImages];
};

inline DeconvolutionOnDevice::DeconvolutionOnDevice(Manager & manager, int device, const Budgets & budgets,
                                                    const DeconvolutionOperation & operation, PixelKind kind,
                                                    Reporter report)
  : m_Manager(manager)
  , m_Device(device)
  , m_Budgets(budgets)
  , m_Accelerates(operation.accelerates)
  , m_Grid(Box::FromExtent(operation.GetEstimateExtent()))
  , m_Kind(kind)
  , m_Report(std::move(report))
  , m_Forward(operation.MakeForward())
  , m_Backward(operation.MakeBackward())
{
  m_Parameters.isRatio = operation.method == DeconvolutionMethod::RichardsonLucy;
  m_Parameters.isProjected = operation.method == DeconvolutionMethod::ProjectedLandweber;
  m_Parameters.mayBeNegative = operation.method == DeconvolutionMethod::Landweber;
  m_Parameters.background = operation.background;
  m_Parameters.least = operation.leastExpected;
  m_Parameters.leastSeen = operation.GetLeastSeen();
  m_Parameters.relaxation = operation.relaxation;
}

inline std::unique_ptr<DeconvolutionOnDevice>
DeconvolutionOnDevice::Make(Manager & manager, int device, const Budgets & budgets,
                            const DeconvolutionOperation & operation, PixelKind kind, bool hasWeights, Reporter report)
{
  std::unique_ptr<DeconvolutionOnDevice> made(
    new DeconvolutionOnDevice(manager, device, budgets, operation, kind, std::move(report)));
  const KernelRegistry & kernels = manager.GetDevices().at(static_cast<std::size_t>(device))->GetKernels();
  if (!kernels.Find("deconvolution.step") || !kernels.Find("deconvolution.sums", &KernelSet::summarize))
  {
    return nullptr;
  }
  const std::size_t bytes = DenseView(nullptr, kind, made->m_Grid).NumberOfBytes();
  ChunkShape        shape;
  shape.inputBox = shape.outputBox = shape.image = made->m_Grid;
  shape.inputKinds[0] = shape.outputKind = kind;
  shape.numberOfInputs = 1;
  shape.kernels = &kernels;
  std::size_t scratch = 0;
  for (const auto & convolution : { made->m_Forward, made->m_Backward })
  {
    const Kernel * const kernel = kernels.Find(convolution->GetName());
    scratch = std::max(scratch, kernel && kernel->scratchBytes ? kernel->scratchBytes(*convolution, shape) : 0);
  }
  // Beside the images a run has its scratch, or what is copied from the host; and tables.
  const std::size_t images = 6 + (hasWeights ? 1 : 0) + (operation.accelerates ? 2 : 0);
  const std::size_t needed = images * bytes + std::max(scratch, bytes);
  if (needed + needed / 16 > manager.GetRoomOnDevice(device, budgets))
  {
    return nullptr;
  }
  try
  {
    for (int image = 0; image < NumberOfImages; ++image)
    {
      if ((image != Weights || hasWeights) && (image < Last || operation.accelerates))
      {
        made->m_Images[image] = manager.AllocateOnDevice(device, bytes, budgets.device);
      }
    }
  }
  catch (const BudgetError &)
  {
    return nullptr;
  }
  return made;
}

inline BufferView
DeconvolutionOnDevice::ViewOf(Image image) const
{
  return DenseView(m_Images[image]->Get(), m_Kind, m_Grid);
}

inline void
DeconvolutionOnDevice::Load(Image image, void * host)
{
  ExecutionRequest request;
  request.operation = std::make_shared<IdentityOperation>();
  request.inputs = { DenseView(host, m_Kind, m_Grid) };
  request.output = this->ViewOf(image);
  request.image = request.region = m_Grid;
  request.budgets = m_Budgets;
  request.copiesHostImages = true;
  m_Report(m_Manager.ExecuteOnDevice(request, m_Device, nullptr));
}

inline void
DeconvolutionOnDevice::Store(void * host, Image image)
{
  m_Manager.CopyToHost(DenseView(host, m_Kind, m_Grid), *m_Images[image], m_Grid, m_Budgets);
}

inline void
DeconvolutionOnDevice::Run(std::shared_ptr<const Operation> operation, const std::vector<Image> & inputs, Image output,
                           Monitor * monitor)
{
  ExecutionRequest request;
  request.operation = std::move(operation);
  for (const Image input : inputs)
  {
    request.inputs.push_back(this->ViewOf(input));
  }
  request.output = this->ViewOf(output);
  request.image = request.region = m_Grid;
  request.budgets = m_Budgets;
  m_Report(m_Manager.ExecuteOnDevice(request, m_Device, nullptr, monitor));
}

inline void
DeconvolutionOnDevice::RunStep(DeconvolutionStep step, const std::vector<Image> & inputs, Image output)
{
  const auto operation = std::make_shared<DeconvolutionStepOperation>();
  operation->step = step;
  operation->inputs = static_cast<int>(inputs.size());
  operation->parameters = m_Parameters;
  this->Run(operation, inputs, output, nullptr);
}

inline DeconvolutionOnDevice::Sums
DeconvolutionOnDevice::SumUp(DeconvolutionStep step, const std::vector<Image> & inputs)
{
  const auto operation = std::make_shared<DeconvolutionSumsOperation>();
  operation->step = step;
  operation->inputs = static_cast<int>(inputs.size());
  operation->parameters = m_Parameters;
  ExecutionRequest request;
  for (const Image input : inputs)
  {
    request.inputs.push_back(this->ViewOf(input));
  }
  request.operation = operation;
  request.image = request.region = m_Grid;
  request.budgets = m_Budgets;
  request.imageDevice = m_Device;
  ExecutionReport report;
  const SideData  summary = m_Manager.Summarise(request, nullptr, &report);
  m_Report(report);
  Sums sums;
  std::memcpy(&sums, summary.data(), sizeof(sums));
  return sums;
}

inline DeconvolutionOnDevice::Sums
DeconvolutionOnDevice::Blur(Monitor * monitor)
{
  this->Run(m_Forward, { Point }, Correction, monitor);
  std::vector<Image> inputs = { Correction, Measured };
  if (m_Images[Weights])
  {
    inputs.push_back(Weights);
  }
  const Sums sums = this->SumUp(DeconvolutionStep::Ratio, inputs);
  this->RunStep(DeconvolutionStep::Ratio, inputs, Ratio);
  return sums;
}

inline DeconvolutionOnDevice::Sums
DeconvolutionOnDevice::Correct(bool isFirst, bool sums, Monitor * monitor)
{
  this->Run(m_Backward, { Ratio }, Correction, monitor);
  this->RunStep(DeconvolutionStep::Update, { Correction, Point, Norm }, Next);
  Sums       result{};
  const bool hasLastStep = m_Accelerates && !isFirst;
  if (sums || hasLastStep)
  {
    std::vector<Image> inputs = { Next, Point };
    if (hasLastStep)
    {
      inputs.push_back(Step);
    }
    result = this->SumUp(DeconvolutionStep::Difference, inputs);
  }
  if (m_Accelerates)
  {
    this->RunStep(DeconvolutionStep::Difference, { Next, Point }, Step);
  }
  std::swap(m_Images[Next], m_Images[Point]);
  return result;
}

inline void
DeconvolutionOnDevice::Extrapolate(double acceleration)
{
  m_Parameters.acceleration = acceleration;
  this->RunStep(DeconvolutionStep::Point, { Point, Last }, Next);
  std::swap(m_Images[Last], m_Images[Point]);
  std::swap(m_Images[Point], m_Images[Next]);
}

} // namespace chunkwise

#endif
