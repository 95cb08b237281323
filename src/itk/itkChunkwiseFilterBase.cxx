/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseFilterBase.h"

#include "chunkwiseRegions.h"
#include "chunkwiseConvertVoxels.h"
#include "chunkwiseError.h"
#include "itkChunkwiseExecutor.h"
#include "itkChunkwiseGeometry.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

namespace itk
{

template <unsigned int VDimension>
ChunkwiseFilterBase<VDimension>::ChunkwiseFilterBase(ProcessObject & filter, const Types & types)
  : m_Filter(filter)
  , m_Types(types)
{}

template <unsigned int VDimension>
ChunkwiseFilterBase<VDimension>::~ChunkwiseFilterBase() = default;

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::Throw(const std::string & message) const
{
  std::ostringstream text;
  text << "ITK ERROR: " << m_Filter.GetNameOfClass() << '(' << &m_Filter << "): " << message;
  throw ExceptionObject(__FILE__, __LINE__, text.str(), ITK_LOCATION);
}

template <unsigned int VDimension>
auto
ChunkwiseFilterBase<VDimension>::GetFirst() const -> const ImageBaseType &
{
  return *static_cast<const ImageBaseType *>(this->FindInput(0U));
}

template <unsigned int VDimension>
chunkwise::BackendChoice
ChunkwiseFilterBase<VDimension>::ChooseBackend() const
{
  return m_Backend == BackendEnum::CPU    ? chunkwise::BackendChoice::CPU
         : m_Backend == BackendEnum::CUDA ? chunkwise::BackendChoice::CUDA
                                          : chunkwise::BackendChoice::Auto;
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::SetOutputIsRead(bool isRead)
{
  m_OutputIsRead = isRead;
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::ReleaseOutputOnDevice()
{
  m_DeviceOutput = nullptr;
}

template <unsigned int VDimension>
std::shared_ptr<const chunkwise::Operation>
ChunkwiseFilterBase<VDimension>::MakeUsualOperation(const chunkwise::FilterImage & image) const
{
  return chunkwise::MakeFilterOperation(this->GetFilterName(), this->MakeParameters(), image);
}

template <unsigned int VDimension>
std::shared_ptr<const chunkwise::Operation>
ChunkwiseFilterBase<VDimension>::MakeOperationFor(const chunkwise::FilterImage & image) const
{
  // Beside its own inputs it may have those of what it is a part of.
  chunkwise::FilterImage own = image;
  for (const std::string & name : this->GetNamesOfInputs())
  {
    own.additionalInputs.push_back(name);
  }
  this->CheckComplex();
  return this->MakeOperation(own);
}

template <unsigned int VDimension>
chunkwise::PixelType
ChunkwiseFilterBase<VDimension>::GetUsualOperationKind() const
{
  const std::string name = this->GetFilterName();
  if (m_Types.inputKind == m_Types.outputKind || chunkwise::IsFloatingPoint(m_Types.outputKind) || name.empty())
  {
    return m_Types.outputKind;
  }
  const chunkwise::FilterDescription & filter = chunkwise::GetFilter(name);
  return chunkwise::GetConvertedKind(filter,
                                     filter.givesIntegers ? this->MakeParameters() : chunkwise::FilterParameters(),
                                     this->GetNamesOfInputs(),
                                     m_Types.inputKind,
                                     m_Types.outputKind);
}

template <unsigned int VDimension>
std::int64_t
ChunkwiseFilterBase<VDimension>::GetNumberOfInputComponents() const
{
  if (m_Types.inputComponents == 1)
  {
    return 0;
  }
  const auto * const first = static_cast<const ImageBaseType *>(this->FindInput(0U));
  return !first                        ? 1
         : m_Types.inputComponents > 1 ? m_Types.inputComponents
                                       : static_cast<std::int64_t>(first->GetNumberOfComponentsPerPixel());
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::ChangeDevices(const std::vector<int> & devices)
{
  if (m_Devices != devices)
  {
    m_Devices = devices;
    m_Filter.Modified();
  }
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::ChangeOutputOnDevice(bool outputOnDevice)
{
  if (m_OutputOnDevice != outputOnDevice)
  {
    m_OutputOnDevice = outputOnDevice;
    m_DeviceOutput = nullptr;
    m_Filter.Modified();
  }
}

template <unsigned int VDimension>
bool
ChunkwiseFilterBase<VDimension>::HasOutputOnDevice() const
{
  // No other data object, nor other data, has this time. Who gave the image a buffer has data of his own.
  const auto * const output = this->FindOutput();
  return m_DeviceOutput && output && output->GetUpdateMTime() == m_DeviceOutputTime &&
         output->GetBufferedRegion().GetNumberOfPixels() == 0;
}

template <unsigned int VDimension>
std::string
ChunkwiseFilterBase<VDimension>::GetInputName(unsigned int i) const
{
  const std::string name = this->GetFilterName();
  if (!name.empty())
  {
    const auto & further = chunkwise::GetFilter(name).additionalInputs;
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

template <unsigned int VDimension>
chunkwise::BufferView
ChunkwiseFilterBase<VDimension>::ViewOfImage(const ImageBaseType & image, void * pixels, SizeValueType held,
                                             chunkwise::PixelType kind, std::int64_t components,
                                             const std::string & name) const
{
  const DeviceInput * onDevice = this->FindDeviceInput(&image);
  const auto &        buffered = onDevice ? onDevice->image->region : image.GetBufferedRegion();
  const auto &        requested = image.GetRequestedRegion();
  if (requested.GetNumberOfPixels() > 0 &&
      (!buffered.IsInside(requested) || (!onDevice && held < buffered.GetNumberOfPixels())))
  {
    std::ostringstream text;
    text << name << ": it has no voxels for the region at " << requested.GetIndex() << " of size "
         << requested.GetSize() << "; its buffer has " << held << ", for the region at " << buffered.GetIndex()
         << " of size " << buffered.GetSize();
    this->Throw(text.str());
  }
  // Voxels of one index belong together, wherever an image begins. The engine only reads its inputs; its views serve
  // both directions.
  chunkwise::Box        box = ChunkwiseBoxFromRegion(buffered, this->GetFirst().GetLargestPossibleRegion().GetIndex());
  chunkwise::BufferView view;
  if (onDevice)
  {
    box.upper[AxisOfComponents] = components > 1 ? components : box.upper[AxisOfComponents];
    view = chunkwise::DenseView(onDevice->image->memory->Get(), kind, box);
  }
  else
  {
    view = ChunkwiseViewOfPixels(pixels, kind, box, AxisOfComponents, components);
  }
  const chunkwise::Box inside = chunkwise::Intersect(view.box, this->GetImageBox());
  if (!inside.IsEmpty())
  {
    view.data = static_cast<unsigned char *>(view.data) +
                view.Offset(inside.lower) * static_cast<std::int64_t>(chunkwise::PixelSize(kind));
    view.box = inside;
  }
  return view;
}

template <unsigned int VDimension>
chunkwise::Box
ChunkwiseFilterBase<VDimension>::GetImageBox() const
{
  return this->GetBox(this->GetFirst().GetLargestPossibleRegion());
}

template <unsigned int VDimension>
chunkwise::Box
ChunkwiseFilterBase<VDimension>::GetBox(const RegionType & region) const
{
  chunkwise::Box box = ChunkwiseBoxFromRegion(region, this->GetFirst().GetLargestPossibleRegion().GetIndex());
  if (this->GetNumberOfInputComponents() > 0)
  {
    box.upper[AxisOfComponents] = this->GetNumberOfInputComponents();
  }
  return box;
}

template <unsigned int VDimension>
chunkwise::BufferView
ChunkwiseFilterBase<VDimension>::GetOutputView() const
{
  const Components components = this->GetComponents();
  const auto       origin = this->GetFirst().GetLargestPossibleRegion().GetIndex();
  return ChunkwiseViewOfPixels(this->GetOutputPixels(),
                               m_Types.outputKind,
                               ChunkwiseBoxFromRegion(this->FindOutput()->GetBufferedRegion(), origin),
                               components.axis,
                               components.number);
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::CheckComplex() const
{
  const std::string name = this->GetFilterName();
  if (m_Types.isComplex && !name.empty() && !chunkwise::GetFilter(name).isLinear)
  {
    this->Throw("pixels are complex numbers, and " + name + " is not linear: it has no meaning for them");
  }
}

template <unsigned int VDimension>
chunkwise::FilterImage
ChunkwiseFilterBase<VDimension>::DescribeImage() const
{
  const ImageBaseType &             input = this->GetFirst();
  typename ImageBaseType::PointType first;
  input.TransformIndexToPhysicalPoint(input.GetLargestPossibleRegion().GetIndex(), first);
  chunkwise::FilterImage image;
  image.dimension = static_cast<int>(VDimension);
  image.extent = this->GetImageBox().Extents();
  image.inputKind = m_Types.inputKind;
  image.outputKind = this->GetOperationKind();
  for (unsigned int row = 0; row < VDimension; ++row)
  {
    image.spacing[row] = input.GetSpacing()[row];
    image.origin[row] = first[row];
    for (unsigned int column = 0; column < VDimension; ++column)
    {
      image.direction[row][column] = input.GetDirection()(row, column);
    }
  }
  image.additionalInputs = this->GetNamesOfInputs();
  return image;
}

template <unsigned int VDimension>
std::vector<std::string>
ChunkwiseFilterBase<VDimension>::GetNamesOfInputs() const
{
  std::vector<std::string> names;
  for (const auto & name : m_Filter.GetInputNames())
  {
    if (this->FindInput(name))
    {
      names.push_back(name);
    }
  }
  return names;
}

template <unsigned int VDimension>
chunkwise::ExecutionRequest
ChunkwiseFilterBase<VDimension>::MakeRequest(std::shared_ptr<const chunkwise::Operation> operation) const
{
  chunkwise::ExecutionRequest request;
  request.operation = std::move(operation);
  request.image = this->GetImageBox();
  request.backend = this->ChooseBackend();
  request.devices = m_Devices;
  request.hostTakesChunks = m_HostTakesChunks;
  request.budgets.device = m_DeviceMemoryBudget;
  request.budgets.pinned = m_PinnedMemoryBudget;
  request.budgets.host = m_HostMemoryBudget;
  return request;
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::VerifyDevices() const
{
  this->CheckComplex();
  std::set<int> seen;
  for (const int device : m_Devices)
  {
    if (device < 0 || !seen.insert(device).second)
    {
      this->Throw("Devices: " + std::to_string(device) +
                  (device < 0 ? " is not a device's ordinal" : " is given twice"));
    }
  }
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::VerifyInputs() const
{
  // Types say the rest.
  const std::int64_t components = this->GetNumberOfInputComponents();
  const bool         areVectors = m_Types.inputComponents == 0;
  if (areVectors && m_Types.outputComponents > 1 && components != m_Types.outputComponents)
  {
    this->Throw(this->GetInputName(0) + ": its pixels have " + std::to_string(components) +
                " components, those of the output " + std::to_string(m_Types.outputComponents));
  }
  const auto inputs = static_cast<unsigned int>(m_Filter.GetNumberOfIndexedInputs());
  for (unsigned int i = 1; areVectors && i < inputs; ++i)
  {
    const DataObject * const input = this->FindInput(i);
    if (!this->IsOfInputType(input))
    {
      continue;
    }
    const unsigned int others = static_cast<const ImageBaseType *>(input)->GetNumberOfComponentsPerPixel();
    if (others != components)
    {
      this->Throw(this->GetInputName(i) + ": its pixels have " + std::to_string(others) + " components, those of " +
                  this->GetInputName(0) + ' ' + std::to_string(components));
    }
  }
  if (areVectors && components == 0)
  {
    this->Throw(this->GetInputName(0) + ": its pixels have no components");
  }
  if (m_Types.outputComponents == 0 && this->GetComponents().number == 0)
  {
    this->Throw("the output is an itk::VectorImage, and the filter gives one value a pixel");
  }

  // Images of one space, which the superclass has checked, may be different parts of it.
  const auto & first = this->GetFirst().GetLargestPossibleRegion();
  for (unsigned int i = 1; i < inputs; ++i)
  {
    const auto * const input = dynamic_cast<const ImageBaseType *>(this->FindInput(i));
    if (input && first.GetNumberOfPixels() > 0 && !input->GetLargestPossibleRegion().IsInside(first))
    {
      const auto &       other = input->GetLargestPossibleRegion();
      std::ostringstream text;
      text << this->GetInputName(i) << ": its largest possible region begins at " << other.GetIndex() << " with size "
           << other.GetSize() << ", which does not hold that of " << this->GetInputName(0) << " at " << first.GetIndex()
           << " with size " << first.GetSize();
      this->Throw(text.str());
    }
  }
  this->VerifyOperation();
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::VerifyOperation() const
{
  try
  {
    const auto image = this->DescribeImage();
    const auto operation = this->MakeOperation(image);
    if (*this->GetFilterName() == '\0')
    {
      operation->Validate(image.extent); // what the table makes is valid
    }
    std::vector<chunkwise::PixelType> kinds;
    for (int i = 0; i < operation->GetNumberOfInputs(); ++i)
    {
      kinds.push_back(this->GetInputKind(i));
    }
    operation->CheckKinds(kinds, image.outputKind);
  }
  catch (const chunkwise::Error & error)
  {
    this->Throw(error.what());
  }
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::RequestInputs()
{
  const auto           operation = this->MakeOperation(this->DescribeImage());
  const chunkwise::Box image = this->GetImageBox();
  const auto           origin = this->GetFirst().GetLargestPossibleRegion().GetIndex();
  const chunkwise::Box output = this->GetBox(this->FindOutput()->GetRequestedRegion());
  for (unsigned int i = 0; i < m_Filter.GetNumberOfIndexedInputs(); ++i)
  {
    auto * input = dynamic_cast<ImageBaseType *>(this->FindInput(i));
    if (!input)
    {
      continue;
    }
    if (!output.IsEmpty() && !chunkwise::GetOutputBox(*operation, image).Contains(output))
    {
      input->SetRequestedRegion(this->FindOutput()->GetRequestedRegion());
      InvalidRequestedRegionError error(__FILE__, __LINE__);
      error.SetLocation(ITK_LOCATION);
      error.SetDescription("Requested region is (at least partially) outside the largest possible region.");
      error.SetDataObject(input);
      throw error;
    }
    input->SetRequestedRegion(ChunkwiseRegionFromBox<VDimension>(ChunkwiseInputBox(*operation, output, image), origin));
  }
}

template <unsigned int VDimension>
auto
ChunkwiseFilterBase<VDimension>::FindDeviceInput(const DataObject * input) const -> const DeviceInput *
{
  const auto found = std::find_if(
    m_DeviceInputs.begin(), m_DeviceInputs.end(), [input](const DeviceInput & each) { return each.input == input; });
  return found == m_DeviceInputs.end() ? nullptr : &*found;
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::FetchDeviceInput(const DataObject * input) const
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

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::PrepareView(const DataObject * image) const
{
  if (!m_ViewsAreOfDevice)
  {
    this->FetchDeviceInput(image);
  }
}

template <unsigned int VDimension>
bool
ChunkwiseFilterBase<VDimension>::FetchOutput()
{
  auto * const   output = this->FindOutput();
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

template <unsigned int VDimension>
auto
ChunkwiseFilterBase<VDimension>::UpdateOutputOnDevice(DataObject * output) -> std::shared_ptr<const DeviceImage>
{
  auto * const own = this->FindOutput();
  if (!m_OutputOnDevice || m_Backend == BackendEnum::CPU || output != own ||
      own->GetRequestedRegion().GetNumberOfPixels() == 0)
  {
    return nullptr;
  }
  const bool isCurrent = own->GetUpdateMTime() >= own->GetPipelineMTime();
  if (isCurrent && this->HasOutputOnDevice() && m_DeviceOutput->region.IsInside(own->GetRequestedRegion()))
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
    m_Filter.UpdateOutputData(own);
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

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::UpdateDeviceInputs()
{
  m_DeviceInputs.clear();
  const auto sourceOf = [](DataObject * input) {
    return input ? dynamic_cast<DeviceSource *>(input->GetSource().GetPointer()) : nullptr;
  };
  // Inputs that have an index are read through views alone.
  std::vector<DeviceInput> inputs;
  std::set<DataObject *>   others;
  for (const auto & name : m_Filter.GetInputNames())
  {
    if (DataObject * const input = this->HasIndex(name) ? nullptr : this->FindInput(name))
    {
      others.insert(input);
    }
  }
  for (unsigned int i = 0; i < m_Filter.GetNumberOfIndexedInputs(); ++i)
  {
    auto * const         input = dynamic_cast<ImageBaseType *>(this->FindInput(i));
    DeviceSource * const source = sourceOf(input);
    if (source && others.count(input) == 0)
    {
      inputs.push_back({ input, source, nullptr });
    }
    else if (DataObject * const other = this->FindInput(i))
    {
      others.insert(other);
    }
  }
  if (inputs.empty() || m_Backend == BackendEnum::CPU ||
      this->FindOutput()->GetRequestedRegion().GetNumberOfPixels() == 0)
  {
    return;
  }
  // The other inputs come first: what they ask of an image that is an input, too, they get on the host.
  std::vector<ImageRegion<VDimension>> regions;
  for (const DeviceInput & each : inputs)
  {
    regions.push_back(static_cast<ImageBaseType *>(each.input)->GetRequestedRegion());
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
    static_cast<ImageBaseType *>(each.input)->SetRequestedRegion(regions[i]);
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

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::UpdateImages(DataObject * output)
{
  if (m_OutputIsRead || m_UpdatesDeviceInputs)
  {
    return;
  }
  m_WhyNotOnDevice.clear();
  const auto * const own = this->FindOutput();
  if (!m_LeavesOutput && output == own && this->HasOutputOnDevice() &&
      own->GetUpdateMTime() >= own->GetPipelineMTime() && own->GetRequestedRegion().GetNumberOfPixels() > 0 &&
      m_DeviceOutput->region.IsInside(own->GetRequestedRegion()) && this->FetchOutput())
  {
    return;
  }
  m_DeviceOutput = nullptr;

  // Lets the inputs go whatever is thrown.
  struct Inputs
  {
    ChunkwiseFilterBase & filter;
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
  this->UpdateInSuperclass(output);
  for (const DeviceInput & each : m_DeviceInputs)
  {
    if (each.input->ShouldIReleaseData())
    {
      each.source->ReleaseOutputOnDevice();
    }
  }
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::Generate()
{
  m_LastReport = chunkwise::ExecutionReport();
  m_ClampedVoxels = 0;
  chunkwise::Box region = this->GetBox(this->FindOutput()->GetRequestedRegion());
  if (region.IsEmpty())
  {
    this->AllocateImages();
    return;
  }
  if (this->GetComponents().number > 0)
  {
    region.upper[this->GetComponents().axis] = this->GetComponents().number;
  }

  try
  {
    const auto operation = this->MakeOperation(this->DescribeImage());
    if (this->GetOperationKind() == m_Types.outputKind)
    {
      this->Run(operation, nullptr, region);
    }
    else
    {
      this->AllocateImages();
      this->RunAndConvert(operation, region);
    }
  }
  catch (const chunkwise::Error & error)
  {
    this->Throw(error.what());
  }

  this->Warn();
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::Warn()
{
  std::string warning;
  if (m_ClampedVoxels > 0)
  {
    warning = std::to_string(m_ClampedVoxels) + " results are beyond what " +
              chunkwise::PixelTypeName(m_Types.outputKind) + " holds, and were clamped";
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
    if (!warning.empty() && Object::GetGlobalWarningDisplay())
    {
      std::ostringstream text;
      text << "WARNING: In " << __FILE__ << ", line " << __LINE__ << '\n'
           << m_Filter.GetNameOfClass() << " (" << &m_Filter << "): " << warning << "\n\n";
      OutputWindowDisplayWarningText(text.str().c_str());
    }
  }
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::Run(const std::shared_ptr<const chunkwise::Operation> & operation,
                                     const chunkwise::BufferView * output, const chunkwise::Box & region,
                                     double progressBefore, double progressAfter)
{
  ChunkwiseExecutor     executor(m_Filter.GetMultiThreader(), m_Filter.GetNumberOfWorkUnits());
  ChunkwiseMonitor      monitor(m_Filter, progressBefore, progressAfter);
  chunkwise::BufferView view;
  if (!output)
  {
    if (m_LeavesOutput && this->RunOnDevice(operation, nullptr, region, monitor))
    {
      return;
    }
    this->AllocateImages();
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

template <unsigned int VDimension>
bool
ChunkwiseFilterBase<VDimension>::RunOnDevice(const std::shared_ptr<const chunkwise::Operation> & operation,
                                             const chunkwise::BufferView * output, const chunkwise::Box & region,
                                             ChunkwiseMonitor & monitor)
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
  // Images elsewhere come through the host.
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
      this->FindOutput()->ReleaseData();
      request.output = chunkwise::DenseView(nullptr, m_Types.outputKind, region);
      image->manager = &manager;
      image->region = this->FindOutput()->GetRequestedRegion();
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

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::ComputeOnce(
  const std::function<void(chunkwise::Manager &, const chunkwise::ExecutionRequest &, ChunkwiseMonitor &)> & compute)
{
  // Any change makes an entry newer.
  std::array<ModifiedTimeType, 3> state{ { m_Filter.GetMTime(), 0, 0 } };
  for (unsigned int i = 0; i < m_Filter.GetNumberOfIndexedInputs(); ++i)
  {
    if (const DataObject * const input = this->FindInput(i))
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
  } monitor(m_Filter);
  ChunkwiseExecutor executor(m_Filter.GetMultiThreader(), m_Filter.GetNumberOfWorkUnits());
  try
  {
    chunkwise::ExecutionRequest request = this->MakeRequest(this->MakeOperation(this->DescribeImage()));
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
    this->Throw(error.what());
  }
  monitor.RethrowObserverException();
  m_ComputedState = state;
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::ThrowAborted(ChunkwiseMonitor & monitor) const
{
  monitor.RethrowObserverException();
  ProcessAborted aborted(__FILE__, __LINE__);
  aborted.SetLocation(ITK_LOCATION);
  aborted.SetDescription("AbortGenerateData was set");
  throw aborted;
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::RunAndConvert(const std::shared_ptr<const chunkwise::Operation> & operation,
                                               const chunkwise::Box &                              region)
{
  // An operation that needs the whole image is computed at once, the rest in slabs.
  constexpr std::int64_t                 slabBytes = std::int64_t{ 1 } << 26;
  const chunkwise::PixelType             kind = this->GetOperationKind();
  const auto                             pixelBytes = static_cast<std::int64_t>(chunkwise::PixelSize(kind));
  constexpr int                          last = static_cast<int>(VDimension) - 1;
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

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::ExtendToComponents(chunkwise::ExecutionRequest & request) const
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

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::ForRowsOf(
  const chunkwise::BufferView &                                                                    result,
  const std::function<void(const void * from, void * to, std::int64_t step, std::int64_t count)> & convertRow)
{
  const chunkwise::BufferView output = this->GetOutputView();
  const auto * const          results = static_cast<const unsigned char *>(result.data);
  auto * const                outputs = static_cast<unsigned char *>(output.data);
  const auto                  resultBytes = static_cast<std::int64_t>(chunkwise::PixelSize(result.kind));
  const auto                  outputBytes = static_cast<std::int64_t>(chunkwise::PixelSize(output.kind));
  const std::int64_t          length = result.box.Extent(0);
  const std::int64_t          rows = result.box.NumberOfVoxels() / length;
  constexpr std::int64_t      rowsTogether = 64;
  ChunkwiseExecutor           executor(m_Filter.GetMultiThreader(), m_Filter.GetNumberOfWorkUnits());
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
      convertRow(
        results + row * length * resultBytes, outputs + output.Offset(index) * outputBytes, output.stride[0], length);
    }
  });
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::ConvertOutput(const chunkwise::BufferView & result)
{
  std::atomic<SizeValueType> clamped{ 0 };
  this->ForRowsOf(result, [&](const void * from, void * to, std::int64_t step, std::int64_t count) {
    clamped +=
      static_cast<SizeValueType>(chunkwise::ConvertVoxels(from, result.kind, to, m_Types.outputKind, count, step));
  });
  m_ClampedVoxels += clamped;
}

template <unsigned int VDimension>
chunkwise::Plan
ChunkwiseFilterBase<VDimension>::PlanRegion(const RegionType & region)
{
  m_Filter.UpdateOutputInformation();

  ChunkwiseExecutor executor(m_Filter.GetMultiThreader(), m_Filter.GetNumberOfWorkUnits());
  const auto &      largest = this->FindOutput()->GetLargestPossibleRegion();
  if (region.GetNumberOfPixels() > 0 && !largest.IsInside(region))
  {
    std::ostringstream text;
    text << "the region at " << region.GetIndex() << " of size " << region.GetSize()
         << " is not inside the largest possible region, at " << largest.GetIndex() << " of size " << largest.GetSize();
    this->Throw(text.str());
  }
  try
  {
    const auto                  image = this->DescribeImage();
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
    this->Throw(error.what());
  }
}

template <unsigned int VDimension>
ChunkwiseImageRegionSplitter::Pointer
ChunkwiseFilterBase<VDimension>::SplitRegions()
{
  m_Filter.UpdateOutputInformation();
  const RegionType largest = this->FindOutput()->GetLargestPossibleRegion();
  const auto       origin = this->GetFirst().GetLargestPossibleRegion().GetIndex();
  const auto       splitter = ChunkwiseImageRegionSplitter::New();
  splitter->SetPlan(this->PlanRegion(largest), std::vector<IndexValueType>(origin.begin(), origin.end()));
  return splitter;
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::PrintBase(std::ostream & os, Indent indent) const
{
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
  os << indent << "OutputIsOnDevice: " << (this->HasOutputOnDevice() ? "Yes" : "No") << std::endl;
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

template <unsigned int VDimension>
unsigned int
ChunkwiseFilterBase<VDimension>::FindIndexOfInput(const char * name, unsigned int usual) const
{
  // Beside the images that the filter has anyhow.
  const auto & further = chunkwise::GetFilter(this->GetFilterName()).additionalInputs;
  const auto   place =
    std::find_if(further.begin(), further.end(), [&](const auto & input) { return input.name == name; });
  return place != further.end() ? 1 + static_cast<unsigned int>(place - further.begin()) : usual;
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::CheckDomain() const
{
  for (const std::string name : { "MaskImage", "WeightImage" })
  {
    // Subclasses of what has the setters may have none of it.
    if (this->FindInput(name) && this->FindIndexOfInput(name.c_str(), 0) == 0)
    {
      this->Throw(name + ": " + this->GetFilterName() + " has no such input");
    }
  }
}

template <unsigned int VDimension>
void
ChunkwiseFilterBase<VDimension>::VerifyDomainIn(double coordinateTolerance, double directionTolerance) const
{
  const ImageBaseType & input = this->GetFirst();
  for (const std::string name : { "MaskImage", "WeightImage" })
  {
    const auto * const image = dynamic_cast<const ImageBaseType *>(this->FindInput(name));
    if (!image)
    {
      continue;
    }
    const double tolerance = coordinateTolerance * input.GetSpacing()[0];
    bool         isThere = true;
    for (unsigned int a = 0; a < VDimension; ++a)
    {
      isThere = isThere && std::abs(image->GetOrigin()[a] - input.GetOrigin()[a]) <= tolerance &&
                std::abs(image->GetSpacing()[a] - input.GetSpacing()[a]) <= tolerance;
      for (unsigned int b = 0; b < VDimension; ++b)
      {
        isThere = isThere && std::abs(image->GetDirection()(a, b) - input.GetDirection()(a, b)) <= directionTolerance;
      }
    }
    if (!isThere)
    {
      this->Throw(name + ": it lies elsewhere than the input, by origin, spacing or direction");
    }
    const auto & region = input.GetLargestPossibleRegion();
    if (region.GetNumberOfPixels() > 0 && !image->GetLargestPossibleRegion().IsInside(region))
    {
      std::ostringstream text;
      text << name << ": its largest possible region begins at " << image->GetLargestPossibleRegion().GetIndex()
           << " with size " << image->GetLargestPossibleRegion().GetSize()
           << ", which does not hold that of the input at " << region.GetIndex() << " with size " << region.GetSize();
      this->Throw(text.str());
    }
  }
}

template <unsigned int VDimension>
std::vector<std::int64_t>
ChunkwiseFilterBase<VDimension>::SizesOver(const std::vector<unsigned int> & axes, const char * name,
                                           const Size<VDimension> & sizes) const
{
  constexpr std::int64_t    largest = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> numbers;
  for (const unsigned int axis : axes)
  {
    // The engine refuses an axis that the image has not.
    const SizeValueType size = axis < VDimension ? sizes[axis] : 0;
    if (size > static_cast<SizeValueType>(largest))
    {
      this->Throw(std::string(name) + ": " + std::to_string(size) + " along axis " + std::to_string(axis) +
                  " is larger than " + std::to_string(largest));
    }
    numbers.push_back(static_cast<std::int64_t>(size));
  }
  return numbers;
}

template class ChunkwiseFilterBase<2>;
template class ChunkwiseFilterBase<3>;
template class ChunkwiseFilterBase<4>;
template class ChunkwiseFilterBase<5>;

} // namespace itk
