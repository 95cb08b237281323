/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseImageToImageFilter_hxx
#define itkChunkwiseImageToImageFilter_hxx

#include "chunkwiseError.h"
#include "itkChunkwiseExecutor.h"
#include "itkChunkwiseGeometry.h"
#include "itkChunkwiseImageToImageFilter.h"

#include <set>

namespace itk
{

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::SetDevices(const std::vector<int> & devices)
{
  if (m_Devices != devices)
  {
    m_Devices = devices;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::Manager &
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GetManager() const
{
  return chunkwise::Manager::GetGlobal();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
template <typename TImage>
chunkwise::BufferView
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::ViewOf(const TImage & image)
{
  using PixelType = typename TImage::PixelType;
  // The engine only reads its inputs; its views serve both directions.
  return chunkwise::DenseView(
    const_cast<PixelType *>(image.GetBufferPointer()),
    chunkwise::PixelKindOf<PixelType>(),
    ChunkwiseBoxFromRegion(image.GetBufferedRegion(), image.GetLargestPossibleRegion().GetIndex()));
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::BufferView
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GetInputView(unsigned int i) const
{
  return ViewOf(*this->GetInput(i));
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::PixelKind
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GetInputKind(unsigned int) const
{
  return chunkwise::PixelKindOf<InputPixelType>();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::Box
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GetImageBox() const
{
  const auto & largest = this->GetInput()->GetLargestPossibleRegion();
  return ChunkwiseBoxFromRegion(largest, largest.GetIndex());
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::ExecutionRequest
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::MakeRequest(
  std::shared_ptr<const chunkwise::Operation> operation) const
{
  chunkwise::ExecutionRequest request;
  request.operation = std::move(operation);
  request.image = this->GetImageBox();
  switch (m_Backend)
  {
    case BackendEnum::Auto:
      request.backend = chunkwise::BackendChoice::Auto;
      break;
    case BackendEnum::CPU:
      request.backend = chunkwise::BackendChoice::CPU;
      break;
    case BackendEnum::CUDA:
      request.backend = chunkwise::BackendChoice::CUDA;
      break;
  }
  request.devices = m_Devices;
  request.hostTakesChunks = m_HostTakesChunks;
  request.budgets.device = m_DeviceMemoryBudget;
  request.budgets.pinned = m_PinnedMemoryBudget;
  request.budgets.host = m_HostMemoryBudget;
  return request;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  std::set<int> seen;
  for (const int device : m_Devices)
  {
    if (device < 0 || !seen.insert(device).second)
    {
      itkExceptionMacro("Devices: " << device << (device < 0 ? " is not a device's ordinal" : " is given twice"));
    }
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::VerifyInputInformation() const
{
  Superclass::VerifyInputInformation();

  this->VerifyOperation();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::VerifyOperation() const
{
  try
  {
    const auto extent = this->GetImageBox().Extents();
    const auto operation = this->MakeOperation(extent);
    operation->Validate(extent);
    std::vector<chunkwise::PixelKind> kinds;
    for (int i = 0; i < operation->GetNumberOfInputs(); ++i)
    {
      kinds.push_back(this->GetInputKind(i));
    }
    operation->CheckKinds(kinds, chunkwise::PixelKindOf<OutputPixelType>());
  }
  catch (const chunkwise::Error & error)
  {
    itkExceptionMacro(<< error.what());
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GenerateInputRequestedRegion()
{
  // Not the superclass' own: where it is an ITK filter that this class stands in for, that one pads by its own rule.
  ImageToImageFilter<InputImageType, OutputImageType>::GenerateInputRequestedRegion();

  const auto operation = this->MakeOperation(this->GetImageBox().Extents());
  for (int i = 0; i < operation->GetNumberOfInputs(); ++i)
  {
    auto * input = dynamic_cast<ImageBase<ImageDimension> *>(this->ProcessObject::GetInput(i));
    if (!input)
    {
      continue;
    }
    const auto &         largest = input->GetLargestPossibleRegion();
    const auto           origin = largest.GetIndex();
    const chunkwise::Box image = ChunkwiseBoxFromRegion(largest, origin);
    const chunkwise::Box output = ChunkwiseBoxFromRegion(this->GetOutput()->GetRequestedRegion(), origin);
    if (!output.IsEmpty() && !image.Contains(output))
    {
      input->SetRequestedRegion(this->GetOutput()->GetRequestedRegion());
      InvalidRequestedRegionError error(__FILE__, __LINE__);
      error.SetLocation(ITK_LOCATION);
      error.SetDescription("Requested region is (at least partially) outside the largest possible region.");
      error.SetDataObject(input);
      throw error;
    }
    input->SetRequestedRegion(
      ChunkwiseRegionFromBox<ImageDimension>(ChunkwiseInputBox(*operation, output, image), origin));
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
template <typename TRun>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::RunForItk(ChunkwiseMonitor & monitor, TRun && run)
{
  try
  {
    run();
  }
  catch (const chunkwise::Aborted &)
  {
    monitor.RethrowObserverException();
    ProcessAborted aborted(__FILE__, __LINE__);
    aborted.SetLocation(ITK_LOCATION);
    aborted.SetDescription("AbortGenerateData was set");
    throw aborted;
  }
  catch (const chunkwise::Error & error)
  {
    itkExceptionMacro(<< error.what());
  }
  monitor.RethrowObserverException();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
template <typename TCompute>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::ComputeFromWholeInput(TCompute && compute)
{
  const InputImageType * input = this->GetInput();
  const StateType        state{ { this->GetMTime(), input->GetMTime(), input->GetUpdateMTime() } };
  if (state == m_ComputedState)
  {
    return;
  }

  /** The run that follows is the one whose progress is reported. */
  class Silent : public ChunkwiseMonitor
  {
  public:
    using ChunkwiseMonitor::ChunkwiseMonitor;
    void
    UpdateProgress(double) override
    {}
  } monitor(*this);
  ChunkwiseExecutor executor(this->GetMultiThreader(), this->GetNumberOfWorkUnits());
  this->RunForItk(monitor, [&] {
    chunkwise::ExecutionRequest request = this->MakeRequest(this->MakeOperation(this->GetImageBox().Extents()));
    request.inputs.push_back(this->GetInputView(0));
    request.region = request.image;
    request.executor = &executor;
    compute(this->GetManager(), request, monitor);
  });
  m_ComputedState = state;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GenerateData()
{
  this->AllocateOutputs();

  OutputImageType * output = this->GetOutput();
  const auto        origin = this->GetInput()->GetLargestPossibleRegion().GetIndex();

  m_LastReport = chunkwise::ExecutionReport();
  const chunkwise::Box region = ChunkwiseBoxFromRegion(output->GetRequestedRegion(), origin);
  if (region.IsEmpty())
  {
    return;
  }

  ChunkwiseExecutor executor(this->GetMultiThreader(), this->GetNumberOfWorkUnits());
  ChunkwiseMonitor  monitor(*this);
  this->RunForItk(monitor, [&] {
    chunkwise::ExecutionRequest request = this->MakeRequest(this->MakeOperation(this->GetImageBox().Extents()));
    for (int i = 0; i < request.operation->GetNumberOfInputs(); ++i)
    {
      request.inputs.push_back(this->GetInputView(i));
    }
    request.output = chunkwise::DenseView(output->GetBufferPointer(),
                                          chunkwise::PixelKindOf<OutputPixelType>(),
                                          ChunkwiseBoxFromRegion(output->GetBufferedRegion(), origin));
    request.region = region;
    request.executor = &executor;
    m_LastReport = this->GetManager().Execute(request, &monitor);
  });

  std::string warning;
  for (const std::string & line : m_LastReport.warnings)
  {
    warning += (warning.empty() ? "" : "\n") + line;
  }
  if (warning != m_LastWarning)
  {
    m_LastWarning = warning;
    if (!warning.empty())
    {
      itkWarningMacro(<< warning);
    }
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::Plan
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::MakePlan(const OutputImageRegionType & region)
{
  this->UpdateOutputInformation();

  const auto        origin = this->GetInput()->GetLargestPossibleRegion().GetIndex();
  ChunkwiseExecutor executor(this->GetMultiThreader(), this->GetNumberOfWorkUnits());
  try
  {
    chunkwise::ExecutionRequest request = this->MakeRequest(this->MakeOperation(this->GetImageBox().Extents()));
    request.region = ChunkwiseBoxFromRegion(region, origin);
    if (request.region.IsEmpty())
    {
      return chunkwise::Plan();
    }
    const chunkwise::Box input = ChunkwiseInputBox(*request.operation, request.region, request.image);
    for (int i = 0; i < request.operation->GetNumberOfInputs(); ++i)
    {
      request.inputs.push_back(chunkwise::DenseView(nullptr, this->GetInputKind(i), input));
    }
    request.output = chunkwise::DenseView(nullptr, chunkwise::PixelKindOf<OutputPixelType>(), request.region);
    request.executor = &executor;
    return this->GetManager().MakePlanFor(request);
  }
  catch (const chunkwise::Error & error)
  {
    itkExceptionMacro(<< error.what());
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
ChunkwiseImageRegionSplitter::Pointer
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::MakeRegionSplitter()
{
  this->UpdateOutputInformation();
  const OutputImageRegionType largest = this->GetOutput()->GetLargestPossibleRegion();
  const auto                  origin = this->GetInput()->GetLargestPossibleRegion().GetIndex();
  const auto                  splitter = ChunkwiseImageRegionSplitter::New();
  splitter->SetPlan(this->MakePlan(largest), std::vector<IndexValueType>(origin.begin(), origin.end()));
  return splitter;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Backend: " << m_Backend << std::endl;
  os << indent << "Devices:";
  for (const int device : m_Devices)
  {
    os << ' ' << device;
  }
  os << (m_Devices.empty() ? " all" : "") << std::endl;
  os << indent << "DeviceMemoryBudget: " << m_DeviceMemoryBudget << std::endl;
  os << indent << "PinnedMemoryBudget: " << m_PinnedMemoryBudget << std::endl;
  os << indent << "HostMemoryBudget: " << m_HostMemoryBudget << std::endl;
  os << indent << "HostTakesChunks: " << (m_HostTakesChunks ? "On" : "Off") << std::endl;
  os << indent << "LastReport:" << std::endl;
  const Indent next = indent.GetNextIndent();
  os << next << "Backend: " << (m_LastReport.backend.empty() ? "(none)" : m_LastReport.backend) << std::endl;
  os << next << "Chunks: " << m_LastReport.plan.chunks.size() << std::endl;
  for (std::size_t i = 0; i < m_LastReport.deviceNames.size() && i < m_LastReport.chunksPerDevice.size(); ++i)
  {
    os << next << "ChunksOn " << m_LastReport.deviceNames[i] << ": " << m_LastReport.chunksPerDevice[i] << std::endl;
  }
  os << next << "ChunksOnHost: " << m_LastReport.chunksOnHost << std::endl;
  os << next << "PeakDevice: " << m_LastReport.peakDevice << std::endl;
  os << next << "PeakPinned: " << m_LastReport.peakPinned << std::endl;
  os << next << "PeakHost: " << m_LastReport.peakHost << std::endl;
  os << next << "BytesToDevice: " << m_LastReport.bytesToDevice << std::endl;
  os << next << "BytesToHost: " << m_LastReport.bytesToHost << std::endl;
  os << next << "Retries: " << m_LastReport.retries << std::endl;
  for (const std::string & warning : m_LastReport.warnings)
  {
    os << next << "Warning: " << warning << std::endl;
  }
}

} // namespace itk

#endif
