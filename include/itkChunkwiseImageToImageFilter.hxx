/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseImageToImageFilter_hxx
#define itkChunkwiseImageToImageFilter_hxx

#include "chunkwiseConvertVoxels.h"
#include "chunkwiseError.h"
#include "itkChunkwiseExecutor.h"
#include "itkChunkwiseGeometry.h"
#include "itkChunkwiseImageToImageFilter.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
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
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::SetOutputOnDevice(bool outputOnDevice)
{
  if (m_OutputOnDevice != outputOnDevice)
  {
    m_OutputOnDevice = outputOnDevice;
    m_DeviceOutput = nullptr;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
bool
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::IsOutputOnDevice() const
{
  // No other data object, nor other data, has this time. Who gave the image a buffer has data of his own.
  const auto * const output = this->GetOutput();
  return m_DeviceOutput && output && output->GetUpdateMTime() == m_DeviceOutputTime &&
         output->GetBufferedRegion().GetNumberOfPixels() == 0;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::Manager &
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GetManager() const
{
  return chunkwise::Manager::GetGlobal();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
std::string
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GetInputName(unsigned int i) const
{
  const std::string name = this->GetFilterName();
  if (!name.empty())
  {
    const auto & further = chunkwise::GetFilter(name).furtherInputs;
    if (!further.empty())
    {
      // One that comes before the first image takes its place.
      if (further.front().before)
      {
        return i == 0 ? further.front().name : "MaskImage";
      }
      return i > 0 && i <= further.size() ? further[i - 1].name : "Input";
    }
  }
  return i == 0 ? "Input" : "Input" + std::to_string(i + 1);
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
template <typename TImage>
chunkwise::BufferView
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::ViewOf(const TImage &      image,
                                                                            const std::string & name) const
{
  using Pixel = ChunkwiseImagePixel<TImage>;
  using ComponentType = typename Pixel::ComponentType;
  static_assert(Pixel::IsVectorImage ||
                  std::is_base_of<Image<typename TImage::InternalPixelType, ImageDimension>, TImage>::value,
                "inputs are itk::Image: itk::CastImageFilter makes one of an itk::ImageAdaptor");
  const std::int64_t  components = Pixel::CountComponents(image);
  const DeviceInput * onDevice = this->FindDeviceInput(&image);
  if (onDevice && !m_ViewsAreOfDevice)
  {
    this->FetchDeviceInput(&image);
    onDevice = nullptr;
  }
  const auto held = static_cast<SizeValueType>(image.GetPixelContainer()->Size()) /
                    static_cast<SizeValueType>(Pixel::IsVectorImage ? components : 1);
  const auto & buffered = onDevice ? onDevice->image->region : image.GetBufferedRegion();
  const auto & requested = image.GetRequestedRegion();
  if (requested.GetNumberOfPixels() > 0 &&
      (!buffered.IsInside(requested) || (!onDevice && held < buffered.GetNumberOfPixels())))
  {
    itkExceptionMacro(<< name << ": it has no voxels for the region at " << requested.GetIndex() << " of size "
                      << requested.GetSize() << "; its buffer has " << held << ", for the region at "
                      << buffered.GetIndex() << " of size " << buffered.GetSize());
  }
  // Voxels of one index belong together, wherever an image begins. The engine only reads its inputs; its views serve
  // both directions.
  chunkwise::Box        box = ChunkwiseBoxFromRegion(buffered, this->GetInput()->GetLargestPossibleRegion().GetIndex());
  chunkwise::BufferView view;
  if (onDevice)
  {
    box.upper[AxisOfComponents] = components > 1 ? components : box.upper[AxisOfComponents];
    view = chunkwise::DenseView(onDevice->image->memory->Get(), chunkwise::PixelKindOf<ComponentType>(), box);
  }
  else
  {
    view = ChunkwiseViewOfPixels(const_cast<typename TImage::InternalPixelType *>(image.GetBufferPointer()),
                                 chunkwise::PixelKindOf<ComponentType>(),
                                 box,
                                 AxisOfComponents,
                                 components);
  }
  const chunkwise::Box inside = chunkwise::Intersect(view.box, this->GetImageBox());
  if (!inside.IsEmpty())
  {
    view.data = static_cast<ComponentType *>(view.data) + view.Offset(inside.lower);
    view.box = inside;
  }
  return view;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::BufferView
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GetInputView(unsigned int i) const
{
  return this->ViewOf(*this->GetInput(i), this->GetInputName(i));
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
  return this->GetBox(this->GetInput()->GetLargestPossibleRegion());
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::Box
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GetBox(const OutputImageRegionType & region) const
{
  chunkwise::Box box = ChunkwiseBoxFromRegion(region, this->GetInput()->GetLargestPossibleRegion().GetIndex());
  if (this->GetNumberOfInputComponents() > 0)
  {
    box.upper[AxisOfComponents] = this->GetNumberOfInputComponents();
  }
  return box;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::BufferView
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GetOutputView() const
{
  auto * const     output = const_cast<OutputImageType *>(this->GetOutput());
  const Components components = this->GetComponents();
  const auto       origin = this->GetInput()->GetLargestPossibleRegion().GetIndex();
  return ChunkwiseViewOfPixels(output->GetBufferPointer(),
                               chunkwise::PixelKindOf<OutputPixelType>(),
                               ChunkwiseBoxFromRegion(output->GetBufferedRegion(), origin),
                               components.axis,
                               components.number);
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::CheckComplex() const
{
  const std::string name = this->GetFilterName();
  if (ChunkwiseImagePixel<InputImageType>::IsComplex && !name.empty() && !chunkwise::GetFilter(name).isLinear)
  {
    itkExceptionMacro(<< "pixels are complex numbers, and " << name << " is not linear: it has no meaning for them");
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::FilterImage
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::MakeFilterImage() const
{
  const InputImageType * const       input = this->GetInput();
  const auto &                       largest = input->GetLargestPossibleRegion();
  typename InputImageType::PointType first;
  input->TransformIndexToPhysicalPoint(largest.GetIndex(), first);
  chunkwise::FilterImage image;
  image.dimension = static_cast<int>(ImageDimension);
  image.extent = this->GetImageBox().Extents();
  image.inputKind = chunkwise::PixelKindOf<InputPixelType>();
  image.outputKind = this->GetOperationKind();
  for (unsigned int row = 0; row < ImageDimension; ++row)
  {
    image.spacing[row] = input->GetSpacing()[row];
    image.origin[row] = first[row];
    for (unsigned int column = 0; column < ImageDimension; ++column)
    {
      image.direction[row][column] = input->GetDirection()(row, column);
    }
  }
  image.furtherInputs = this->GetNamesOfInputs();
  return image;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
std::vector<std::string>
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GetNamesOfInputs() const
{
  std::vector<std::string> names;
  for (const auto & name : this->GetInputNames())
  {
    if (this->ProcessObject::GetInput(name))
    {
      names.push_back(name);
    }
  }
  return names;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::ExecutionRequest
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::MakeRequest(
  std::shared_ptr<const chunkwise::Operation> operation) const
{
  chunkwise::ExecutionRequest request;
  request.operation = std::move(operation);
  request.image = this->GetImageBox();
  request.backend = this->GetBackendChoice();
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

  this->CheckComplex();
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

  // Types say the rest.
  const std::int64_t components = this->GetNumberOfInputComponents();
  if (InputComponents == 0 && OutputComponents > 1 && components != OutputComponents)
  {
    itkExceptionMacro(<< this->GetInputName(0) << ": its pixels have " << components
                      << " components, those of the output " << OutputComponents);
  }
  for (unsigned int i = 1; InputComponents == 0 && i < this->GetNumberOfIndexedInputs(); ++i)
  {
    const auto * const input = dynamic_cast<const InputImageType *>(this->ProcessObject::GetInput(i));
    if (input && ChunkwiseImagePixel<InputImageType>::CountComponents(*input) != components)
    {
      itkExceptionMacro(<< this->GetInputName(i) << ": its pixels have " << input->GetNumberOfComponentsPerPixel()
                        << " components, those of " << this->GetInputName(0) << ' ' << components);
    }
  }
  if (InputComponents == 0 && components == 0)
  {
    itkExceptionMacro(<< this->GetInputName(0) << ": its pixels have no components");
  }
  if (OutputComponents == 0 && this->GetComponents().number == 0)
  {
    itkExceptionMacro("the output is an itk::VectorImage, and the filter gives one value a pixel");
  }

  // Images of one space, which the superclass has checked, may be different parts of it.
  const auto & first = this->GetInput()->GetLargestPossibleRegion();
  for (unsigned int i = 1; i < this->GetNumberOfIndexedInputs(); ++i)
  {
    const auto * const input = dynamic_cast<const ImageBase<ImageDimension> *>(this->ProcessObject::GetInput(i));
    if (input && first.GetNumberOfPixels() > 0 && !input->GetLargestPossibleRegion().IsInside(first))
    {
      const auto & other = input->GetLargestPossibleRegion();
      itkExceptionMacro(<< this->GetInputName(i) << ": its largest possible region begins at " << other.GetIndex()
                        << " with size " << other.GetSize() << ", which does not hold that of " << this->GetInputName(0)
                        << " at " << first.GetIndex() << " with size " << first.GetSize());
    }
  }
  this->VerifyOperation();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::VerifyOperation() const
{
  try
  {
    const auto image = this->MakeFilterImage();
    const auto operation = this->MakeOperation(image);
    if (*this->GetFilterName() == '\0')
    {
      operation->Validate(image.extent); // what the table makes is valid
    }
    std::vector<chunkwise::PixelKind> kinds;
    for (int i = 0; i < operation->GetNumberOfInputs(); ++i)
    {
      kinds.push_back(this->GetInputKind(i));
    }
    operation->CheckKinds(kinds, image.outputKind);
  }
  catch (const chunkwise::Error & error)
  {
    itkExceptionMacro(<< error.what());
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GenerateOutputInformation()
{
  Superclass::GenerateOutputInformation();
  if (OutputComponents == 0 && this->GetNumberOfInputComponents() > 0)
  {
    this->GetOutput()->SetNumberOfComponentsPerPixel(static_cast<unsigned int>(this->GetNumberOfInputComponents()));
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GenerateInputRequestedRegion()
{
  // Not the superclass' own: where it is an ITK filter that this class stands in for, that one pads by its own rule.
  ImageToImageFilter<InputImageType, OutputImageType>::GenerateInputRequestedRegion();

  const auto           operation = this->MakeOperation(this->MakeFilterImage());
  const chunkwise::Box image = this->GetImageBox();
  const auto           origin = this->GetInput()->GetLargestPossibleRegion().GetIndex();
  const chunkwise::Box output = this->GetBox(this->GetOutput()->GetRequestedRegion());
  for (unsigned int i = 0; i < this->GetNumberOfIndexedInputs(); ++i)
  {
    auto * input = dynamic_cast<ImageBase<ImageDimension> *>(this->ProcessObject::GetInput(i));
    if (!input)
    {
      continue;
    }
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
const typename ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::DeviceInput *
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::FindDeviceInput(const DataObject * input) const
{
  const auto found = std::find_if(
    m_DeviceInputs.begin(), m_DeviceInputs.end(), [input](const DeviceInput & each) { return each.input == input; });
  return found == m_DeviceInputs.end() ? nullptr : &*found;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::FetchDeviceInput(const DataObject * input) const
{
  const DeviceInput * const found = this->FindDeviceInput(input);
  if (!found)
  {
    return;
  }
  const DeviceInput fetched = *found;
  m_DeviceInputs.erase(m_DeviceInputs.begin() + (found - m_DeviceInputs.data()));
  fetched.source->SetOutputIsRead(false);
  fetched.input->UpdateOutputData();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
bool
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::FetchOutput()
{
  auto * const   output = this->GetOutput();
  chunkwise::Box whole = this->GetBox(output->GetLargestPossibleRegion());
  const auto     components = this->GetComponents();
  if (components.number > 0)
  {
    whole.upper[components.axis] = components.number;
  }
  chunkwise::Budgets budgets;
  budgets.pinned = m_PinnedMemoryBudget;
  try
  {
    output->SetBufferedRegion(m_DeviceOutput->region);
    output->Allocate();
    m_DeviceOutput->manager->CopyToHost(this->GetOutputView(), *m_DeviceOutput->memory, whole, budgets);
  }
  catch (const chunkwise::Error & error)
  {
    output->ReleaseData();
    m_WhyNotOnDevice = error.what();
    return false;
  }
  catch (...)
  {
    output->ReleaseData();
    throw;
  }
  m_DeviceOutput = nullptr;
  output->DataHasBeenGenerated();
  return true;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
std::shared_ptr<const typename ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::DeviceImage>
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::UpdateOutputOnDevice(DataObject * output)
{
  auto * const own = this->GetOutput();
  if (!m_OutputOnDevice || m_Backend == BackendEnum::CPU || output != own ||
      own->GetRequestedRegion().GetNumberOfPixels() == 0)
  {
    return nullptr;
  }
  const bool isCurrent = own->GetUpdateMTime() >= own->GetPipelineMTime();
  if (isCurrent && this->IsOutputOnDevice() && m_DeviceOutput->region.IsInside(own->GetRequestedRegion()))
  {
    return m_DeviceOutput;
  }
  if (isCurrent && !own->GetDataReleased() && !own->RequestedRegionIsOutsideOfTheBufferedRegion())
  {
    return nullptr;
  }
  m_LeavesOutput = true;
  try
  {
    this->UpdateOutputData(own);
  }
  catch (...)
  {
    m_LeavesOutput = false;
    m_DeviceOutput = nullptr;
    throw;
  }
  m_LeavesOutput = false;
  if (m_DeviceOutput)
  {
    own->ReleaseData();
    m_DeviceOutputTime = own->GetUpdateMTime();
  }
  return m_DeviceOutput;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::UpdateDeviceInputs()
{
  m_DeviceInputs.clear();
  const auto sourceOf = [](DataObject * input) {
    return input ? dynamic_cast<DeviceSource *>(input->GetSource().GetPointer()) : nullptr;
  };
  // Those that have an index are read through views alone.
  std::vector<DeviceInput> inputs;
  std::set<DataObject *>   others;
  for (const auto & name : this->GetInputNames())
  {
    if (DataObject * const input = this->IsIndexedInputName(name) ? nullptr : this->ProcessObject::GetInput(name))
    {
      others.insert(input);
    }
  }
  for (unsigned int i = 0; i < this->GetNumberOfIndexedInputs(); ++i)
  {
    auto * const         input = dynamic_cast<ImageBase<ImageDimension> *>(this->ProcessObject::GetInput(i));
    DeviceSource * const source = sourceOf(input);
    if (source && others.count(input) == 0)
    {
      inputs.push_back({ input, source, nullptr });
    }
    else if (DataObject * const other = this->ProcessObject::GetInput(i))
    {
      others.insert(other);
    }
  }
  if (inputs.empty() || m_Backend == BackendEnum::CPU ||
      this->GetOutput()->GetRequestedRegion().GetNumberOfPixels() == 0)
  {
    return;
  }
  // The other inputs come first: what they ask of an image that is an input, too, they get on the host.
  std::vector<ImageRegion<ImageDimension>> regions;
  for (const DeviceInput & each : inputs)
  {
    regions.push_back(static_cast<ImageBase<ImageDimension> *>(each.input)->GetRequestedRegion());
  }
  for (DataObject * const input : others)
  {
    input->PropagateRequestedRegion();
    input->UpdateOutputData();
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
  {
    DeviceInput & each = inputs[i];
    if (this->FindDeviceInput(each.input))
    {
      continue;
    }
    static_cast<ImageBase<ImageDimension> *>(each.input)->SetRequestedRegion(regions[i]);
    each.input->PropagateRequestedRegion();
    each.image = each.source->UpdateOutputOnDevice(each.input);
    if (each.image)
    {
      m_DeviceInputs.push_back(each);
    }
    else
    {
      each.input->UpdateOutputData();
    }
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::UpdateOutputData(DataObject * output)
{
  if (m_OutputIsRead || m_UpdatesDeviceInputs)
  {
    return;
  }
  m_WhyNotOnDevice.clear();
  const auto * const own = this->GetOutput();
  if (!m_LeavesOutput && output == own && this->IsOutputOnDevice() &&
      own->GetUpdateMTime() >= own->GetPipelineMTime() && own->GetRequestedRegion().GetNumberOfPixels() > 0 &&
      m_DeviceOutput->region.IsInside(own->GetRequestedRegion()) && this->FetchOutput())
  {
    return;
  }
  m_DeviceOutput = nullptr;

  // Lets the inputs go whatever is thrown.
  struct Inputs
  {
    Self & filter;
    ~Inputs()
    {
      filter.m_UpdatesDeviceInputs = false;
      for (const DeviceInput & each : filter.m_DeviceInputs)
      {
        each.source->SetOutputIsRead(false);
      }
      filter.m_DeviceInputs.clear();
    }
  } const inputs{ *this };
  m_UpdatesDeviceInputs = true;
  this->UpdateDeviceInputs();
  m_UpdatesDeviceInputs = false;
  for (const DeviceInput & each : m_DeviceInputs)
  {
    each.source->SetOutputIsRead(true);
  }
  Superclass::UpdateOutputData(output);
  for (const DeviceInput & each : m_DeviceInputs)
  {
    if (each.input->ShouldIReleaseData())
    {
      each.source->ReleaseOutputOnDevice();
    }
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GenerateData()
{
  m_LastReport = chunkwise::ExecutionReport();
  m_ClampedVoxels = 0;
  m_RoundedVoxels = 0;
  chunkwise::Box region = this->GetBox(this->GetOutput()->GetRequestedRegion());
  if (region.IsEmpty())
  {
    this->AllocateOutputs();
    return;
  }
  if (this->GetComponents().number > 0)
  {
    region.upper[this->GetComponents().axis] = this->GetComponents().number;
  }

  constexpr chunkwise::PixelKind kind = chunkwise::PixelKindOf<OutputPixelType>();
  std::string                    warning;
  try
  {
    const auto operation = this->MakeOperation(this->MakeFilterImage());
    if (this->GetOperationKind() == kind)
    {
      this->Run(operation, nullptr, region);
    }
    else
    {
      this->AllocateOutputs();
      this->RunAndConvert(operation, region);
    }
  }
  catch (const chunkwise::Error & error)
  {
    itkExceptionMacro(<< error.what());
  }

  if (m_ClampedVoxels > 0)
  {
    warning = std::to_string(m_ClampedVoxels) + " results are beyond what " + chunkwise::PixelKindName(kind) +
              " holds, and were clamped";
  }
  if (m_RoundedVoxels > 0)
  {
    warning += (warning.empty() ? "" : "\n") + std::to_string(m_RoundedVoxels) +
               " results are beyond 2^53, and were rounded to what a double holds";
  }
  if (!m_WhyNotOnDevice.empty())
  {
    m_LastReport.warnings.push_back("images go through the host: " + m_WhyNotOnDevice);
  }
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
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::Run(
  const std::shared_ptr<const chunkwise::Operation> & operation, const chunkwise::BufferView * output,
  const chunkwise::Box & region, double progressBefore, double progressAfter)
{
  ChunkwiseExecutor     executor(this->GetMultiThreader(), this->GetNumberOfWorkUnits());
  ChunkwiseMonitor      monitor(*this, progressBefore, progressAfter);
  chunkwise::BufferView view;
  if (!output)
  {
    if (m_LeavesOutput && this->RunOnDevice(operation, nullptr, region, monitor))
    {
      return;
    }
    this->AllocateOutputs();
    view = this->GetOutputView();
    output = &view;
  }
  if (!m_DeviceInputs.empty() && this->RunOnDevice(operation, output, region, monitor))
  {
    return;
  }
  chunkwise::ExecutionRequest request = this->MakeRequest(operation);
  for (int i = 0; i < operation->GetNumberOfInputs(); ++i)
  {
    request.inputs.push_back(this->GetInputView(i));
  }
  request.output = *output;
  request.region = region;
  request.executor = &executor;
  this->ExtendToComponents(request);
  try
  {
    m_LastReport = this->GetManager().Execute(request, &monitor);
  }
  catch (const chunkwise::Aborted &)
  {
    this->ThrowAborted(monitor);
  }
  monitor.RethrowObserverException();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
bool
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::RunOnDevice(
  const std::shared_ptr<const chunkwise::Operation> & operation, const chunkwise::BufferView * output,
  const chunkwise::Box & region, ChunkwiseMonitor & monitor)
{
  chunkwise::Manager & manager = this->GetManager();
  int                  device = m_Devices.empty() ? 0 : m_Devices.front();
  for (const DeviceInput & each : m_DeviceInputs)
  {
    const int other = each.image->memory->GetDevice();
    if (each.image->manager == &manager &&
        (m_Devices.empty() || std::find(m_Devices.begin(), m_Devices.end(), other) != m_Devices.end()))
    {
      device = other;
      break;
    }
  }
  if (m_Backend == BackendEnum::CPU || manager.GetDevices().empty())
  {
    return false;
  }
  // What is elsewhere comes through the host.
  for (std::size_t i = m_DeviceInputs.size(); i-- > 0;)
  {
    const DeviceInput & each = m_DeviceInputs[i];
    if (each.image->manager != &manager || each.image->memory->GetDevice() != device)
    {
      this->FetchDeviceInput(each.input);
    }
  }
  if (output && m_DeviceInputs.empty())
  {
    return false;
  }
  chunkwise::ExecutionRequest request = this->MakeRequest(operation);
  m_ViewsAreOfDevice = true;
  try
  {
    for (int i = 0; i < operation->GetNumberOfInputs(); ++i)
    {
      request.inputs.push_back(this->GetInputView(i));
    }
  }
  catch (...)
  {
    m_ViewsAreOfDevice = false;
    throw;
  }
  m_ViewsAreOfDevice = false;
  request.region = region;
  request.copiesHostImages = true;
  this->ExtendToComponents(request);
  const auto image = std::make_shared<DeviceImage>();
  try
  {
    if (output)
    {
      request.output = *output;
    }
    else
    {
      // The image before this one goes first.
      this->GetOutput()->ReleaseData();
      request.output = chunkwise::DenseView(nullptr, chunkwise::PixelKindOf<OutputPixelType>(), region);
      image->manager = &manager;
      image->region = this->GetOutput()->GetRequestedRegion();
      image->memory = manager.AllocateOnDevice(device, request.output.NumberOfBytes(), m_DeviceMemoryBudget, &monitor);
      request.output.data = image->memory->Get();
    }
    m_LastReport = manager.ExecuteOnDevice(request, device, nullptr, &monitor);
  }
  catch (const chunkwise::Aborted &)
  {
    this->ThrowAborted(monitor);
  }
  catch (const chunkwise::Error & error)
  {
    m_WhyNotOnDevice = error.what();
    return false;
  }
  monitor.RethrowObserverException();
  if (!output)
  {
    m_DeviceOutput = image;
  }
  return true;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
template <typename TCompute>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::ComputeFromWholeInput(TCompute && compute)
{
  // What has changed is newer than all that was there.
  std::array<ModifiedTimeType, 3> state{ { this->GetMTime(), 0, 0 } };
  for (unsigned int i = 0; i < this->GetNumberOfIndexedInputs(); ++i)
  {
    if (const DataObject * const input = this->ProcessObject::GetInput(i))
    {
      state[1] = std::max(state[1], input->GetMTime());
      state[2] = std::max(state[2], input->GetUpdateMTime());
    }
  }
  if (state == m_ComputedState)
  {
    return;
  }

  // The run that follows is the one whose progress is reported.
  class Silent : public ChunkwiseMonitor
  {
  public:
    using ChunkwiseMonitor::ChunkwiseMonitor;
    void
    UpdateProgress(double) override
    {}
  } monitor(*this);
  ChunkwiseExecutor executor(this->GetMultiThreader(), this->GetNumberOfWorkUnits());
  try
  {
    chunkwise::ExecutionRequest request = this->MakeRequest(this->MakeOperation(this->MakeFilterImage()));
    for (int i = 0; i < request.operation->GetNumberOfInputs(); ++i)
    {
      request.inputs.push_back(this->GetInputView(i));
    }
    request.region = request.image;
    request.executor = &executor;
    compute(this->GetManager(), request, monitor);
  }
  catch (const chunkwise::Aborted &)
  {
    this->ThrowAborted(monitor);
  }
  catch (const chunkwise::Error & error)
  {
    itkExceptionMacro(<< error.what());
  }
  monitor.RethrowObserverException();
  m_ComputedState = state;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::ThrowAborted(ChunkwiseMonitor & monitor) const
{
  monitor.RethrowObserverException();
  ProcessAborted aborted(__FILE__, __LINE__);
  aborted.SetLocation(ITK_LOCATION);
  aborted.SetDescription("AbortGenerateData was set");
  throw aborted;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::RunAndConvert(
  const std::shared_ptr<const chunkwise::Operation> & operation, const chunkwise::Box & region)
{
  // What needs the whole image is computed at once, the rest in slabs.
  constexpr std::int64_t                 slabBytes = std::int64_t{ 1 } << 26;
  const chunkwise::PixelKind             kind = this->GetOperationKind();
  const auto                             pixelBytes = static_cast<std::int64_t>(chunkwise::PixelSize(kind));
  constexpr int                          last = static_cast<int>(ImageDimension) - 1;
  const std::int64_t                     layers = region.Extent(last);
  const std::int64_t                     layerBytes = region.NumberOfVoxels() / layers * pixelBytes;
  const std::int64_t                     together = operation->GetSchedule() == chunkwise::Schedule::Independent
                                                      ? std::min(layers, std::max<std::int64_t>(slabBytes / layerBytes, 1))
                                                      : layers;
  const std::unique_ptr<unsigned char[]> buffer(new unsigned char[static_cast<std::size_t>(together * layerBytes)]);
  for (std::int64_t layer = 0; layer < layers; layer += together)
  {
    chunkwise::Box slab = region;
    slab.lower[last] = region.lower[last] + layer;
    slab.upper[last] = std::min(slab.lower[last] + together, region.upper[last]);
    const chunkwise::BufferView view = chunkwise::DenseView(buffer.get(), kind, slab);
    this->Run(operation,
              &view,
              slab,
              static_cast<double>(layer) / static_cast<double>(layers),
              static_cast<double>(layer + slab.Extent(last)) / static_cast<double>(layers));
    this->WriteOutput(view);
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::ExtendToComponents(
  chunkwise::ExecutionRequest & request) const
{
  const Components components = this->GetComponents();
  if (components.number > 0)
  {
    request.image.upper[components.axis] = components.number;
    request.region.upper[components.axis] = components.number;
    for (chunkwise::BufferView & input : request.inputs)
    {
      if (input.box.Extent(components.axis) == 1)
      {
        input.box.upper[components.axis] = components.number;
        input.stride[components.axis] = 0;
      }
    }
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
template <typename TResult, typename TConvertRow>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::ConvertToOutput(
  const chunkwise::BufferView & result, TConvertRow && convertRow)
{
  const chunkwise::BufferView output = this->GetOutputView();
  const auto *                results = static_cast<const TResult *>(result.data);
  const std::int64_t          length = result.box.Extent(0);
  const std::int64_t          rows = result.box.NumberOfVoxels() / length;
  constexpr std::int64_t      rowsTogether = 64;
  ChunkwiseExecutor           executor(this->GetMultiThreader(), this->GetNumberOfWorkUnits());
  executor.ParallelFor((rows + rowsTogether - 1) / rowsTogether, [&](std::int64_t part, unsigned int) {
    for (std::int64_t row = part * rowsTogether; row < std::min((part + 1) * rowsTogether, rows); ++row)
    {
      chunkwise::Coordinates index = result.box.lower;
      std::int64_t           rest = row;
      for (int a = 1; a < chunkwise::MaxDimension; ++a)
      {
        index[a] += rest % result.box.Extent(a);
        rest /= result.box.Extent(a);
      }
      convertRow(results + row * length,
                 static_cast<OutputPixelType *>(output.data) + output.Offset(index),
                 output.stride[0],
                 length);
    }
  });
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::WriteOutput(const chunkwise::BufferView & result)
{
  constexpr chunkwise::PixelKind kind = chunkwise::PixelKindOf<OutputPixelType>();
  std::atomic<SizeValueType>     clamped{ 0 };
  std::atomic<SizeValueType>     rounded{ 0 };
  const auto convertRow = [&](const auto * from, OutputPixelType * to, std::int64_t step, std::int64_t count) {
    clamped += static_cast<SizeValueType>(chunkwise::ConvertVoxels(from, result.kind, to, kind, count, step));
    // Sums of integers that a double may not have.
    constexpr double countable = 9007199254740992.0;
    if constexpr (std::is_integral<InputPixelType>::value && std::is_same<decltype(*from), const double &>::value)
    {
      rounded += static_cast<SizeValueType>(
        std::count_if(from, from + count, [](double value) { return std::fabs(value) > countable; }));
    }
  };
  if (result.kind == chunkwise::PixelKindOf<InputPixelType>())
  {
    this->template ConvertToOutput<InputPixelType>(result, convertRow);
  }
  else
  {
    itkAssertOrThrowMacro(result.kind == chunkwise::PixelKind::Float64, "results are of the input's kind or doubles");
    this->template ConvertToOutput<double>(result, convertRow);
  }
  m_ClampedVoxels += clamped;
  m_RoundedVoxels += rounded;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::Plan
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::MakePlan(const OutputImageRegionType & region)
{
  this->UpdateOutputInformation();

  ChunkwiseExecutor executor(this->GetMultiThreader(), this->GetNumberOfWorkUnits());
  const auto &      largest = this->GetOutput()->GetLargestPossibleRegion();
  if (region.GetNumberOfPixels() > 0 && !largest.IsInside(region))
  {
    itkExceptionMacro(<< "the region at " << region.GetIndex() << " of size " << region.GetSize()
                      << " is not inside the largest possible region, at " << largest.GetIndex() << " of size "
                      << largest.GetSize());
  }
  try
  {
    const auto                  image = this->MakeFilterImage();
    chunkwise::ExecutionRequest request = this->MakeRequest(this->MakeOperation(image));
    request.region = this->GetBox(region);
    if (request.region.IsEmpty())
    {
      return chunkwise::Plan();
    }
    const chunkwise::Box input = ChunkwiseInputBox(*request.operation, request.region, request.image);
    for (int i = 0; i < request.operation->GetNumberOfInputs(); ++i)
    {
      request.inputs.push_back(chunkwise::DenseView(nullptr, this->GetInputKind(i), input));
    }
    this->ExtendToComponents(request);
    request.output = chunkwise::DenseView(nullptr, image.outputKind, request.region);
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
  os << indent << "OutputOnDevice: " << (m_OutputOnDevice ? "On" : "Off") << std::endl;
  os << indent << "OutputIsOnDevice: " << (this->IsOutputOnDevice() ? "Yes" : "No") << std::endl;
  os << indent << "LastReport:" << std::endl;
  const Indent next = indent.GetNextIndent();
  os << next << "Backend: " << (m_LastReport.backend.empty() ? "(none)" : m_LastReport.backend) << std::endl;
  if (!m_LastReport.transforms.empty())
  {
    os << next << "Transforms: " << m_LastReport.transforms << std::endl;
  }
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
