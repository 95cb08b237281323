/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseImageToImageFilter_h
#define itkChunkwiseImageToImageFilter_h

#include "chunkwiseFilters.h"
#include "chunkwiseManager.h"
#include "itkChunkwiseEnums.h"
#include "itkChunkwiseFilterBase.h"
#include "itkChunkwiseImageRegionSplitter.h"
#include "itkChunkwiseMacro.h"
#include "itkChunkwisePixel.h"
#include "itkImage.h"
#include "itkImageToImageFilter.h"
#include "itkVectorImage.h"

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

// Python's wrapping refuses a class with a base that it does not wrap: it sees none but the superclass.
#ifdef ITK_WRAPPING_PARSER
#  define CHUNKWISE_BASE_OVERRIDE
#else
#  define CHUNKWISE_BASE_OVERRIDE override
#endif

namespace itk
{
/** \class ChunkwiseImageToImageFilter
 * \brief Base of the filters whose work the Chunkwise engine does.
 *
 * A subclass has the setters of its parameters, and says which row of the engine's table of filters makes its operation
 * (GetFilterName) of which parameters (MakeParameters); this class does the rest: requested regions, the run on the
 * chosen backend, progress, abort and errors. ChunkwiseIdentityImageFilter is the smallest subclass.
 *
 * \par Boundary
 * The edge of an image is that of its largest possible region, never that of a requested region, a buffer or a chunk.
 * For an output region the filter requests that region padded by the operation's halo and cut at the largest possible
 * region (where windows wrap around and leave the image: the whole axis).
 *
 * \par Types
 * itk::Image of 8- to 64-bit integers, float or double, in two to five dimensions; input and output have the same
 * dimension. Which output types go with which input types is the subclass' choice; others do not compile. An
 * itk::ImageAdaptor has no voxels: itk::CastImageFilter makes an image of it.
 *
 * \par Components
 * In two to four dimensions also itk::VectorImage, and itk::Image of pixels that are derived from itk::FixedArray
 * (Vector, CovariantVector, RGBPixel, RGBAPixel), to an output of as many components: each component gets the bits that
 * it would get as a separate image, ranks and morphology too, in one run without a copy of the image. Parameters,
 * masks, weights and radii hold for all components; so does what a filter estimates from its whole input, which is from
 * all components together. Pixels of std::complex go through the filters that are linear, part by part; the others
 * throw.
 *
 * \par Inputs
 * Several inputs must lie in one physical space, to ITK's coordinate tolerance, and a voxel of one belongs to the voxel
 * of the same index of the others.
 *
 * \par Memory
 * The engine cuts the requested region into chunks that fit a device, with transfers and computation overlapping.
 * DeviceMemoryBudget and PinnedMemoryBudget (bytes for each device) and HostMemoryBudget (bytes for the CPU backend)
 * are for this filter's runs alone. The process-wide chunkwise::Manager has separate budgets, for all filters at a time
 * and for the memory that is kept between runs; the tighter of both counts, and 0 leaves it to the manager's. A
 * filter's budget so never makes room that the manager's does not have. They are never exceeded: a budget
 * that is too small for the smallest chunk throws, naming the bytes needed. If the engine does not have the output's
 * type, a filter converts its result, slab by slab along the last axis: an intermediate image of up to 64 MiB, or a
 * slice, that no budget counts.
 *
 * \par Output on a device
 * With OutputOnDevice the filters after this one that are of this class take its output from the device, without a way
 * through the host: the output then has no buffer there, as one that was released (see DataObject::ReleaseData). It
 * comes to the host as soon as anything else asks for it by an update: an Update() of this filter, or one of any other
 * filter that has it as its input. Without an update it has no voxels to be read, and what is not there is an exception
 * or nullptr, never an older image. The whole requested region of inputs and output must fit the device beside each
 * other; what does not goes through the host, and a warning names the bytes. The memory is in the manager's budget, and
 * in that of every run on the device, until the output is computed anew, comes to the host, is released after use
 * (ReleaseDataFlag), or the filter is gone. If Devices names several, the first one computes. If the engine does not
 * have the output's type, and with Backend CPU, OutputOnDevice does nothing.
 *
 * \par Streaming
 * Any requested region, in any order, gives the bits that the whole image at once would have. An empty requested region
 * requests nothing and computes nothing.
 *
 * \par Determinism
 * Results do not depend on chunks, requested regions, threads, devices or budgets. See each filter for CPU against
 * CUDA.
 *
 * \par Errors
 * Bad parameters throw itk::ExceptionObject before upstream filters run, naming the parameter and its value; so do
 * budgets that are too small and, with Backend CUDA, a missing or failing device. With Backend Auto a failing device is
 * an itkWarning (given once while it stays the same) and the work goes on elsewhere. SetAbortGenerateData ends a run
 * within one chunk with itk::ProcessAborted. The filter can be used again after any of these.
 *
 * The superclass is a template parameter so that a filter can take the place of an ITK filter, by deriving from it.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage,
          typename TSuperclass = ImageToImageFilter<TInputImage, TOutputImage>>
class ITK_TEMPLATE_EXPORT ChunkwiseImageToImageFilter
  : public TSuperclass
#ifndef ITK_WRAPPING_PARSER
  , public ChunkwiseFilterBase<TInputImage::ImageDimension>
#endif
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseImageToImageFilter);

  using Self = ChunkwiseImageToImageFilter;
  using Superclass = TSuperclass;
  using FilterBase = ChunkwiseFilterBase<TInputImage::ImageDimension>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(ChunkwiseImageToImageFilter);

  using InputImageType = TInputImage;
  using OutputImageType = TOutputImage;
  /** The pixel, or a component of pixels that have several. */
  using InputPixelType = typename ChunkwiseImagePixel<InputImageType>::ComponentType;
  using OutputPixelType = typename ChunkwiseImagePixel<OutputImageType>::ComponentType;
  using OutputImageRegionType = typename OutputImageType::RegionType;
  using BackendEnum = ChunkwiseEnums::Backend;

  static constexpr unsigned int ImageDimension = InputImageType::ImageDimension;

  static_assert(ImageDimension >= 2 && ImageDimension <= chunkwise::MaxDimension, "images of two to five dimensions");
  static_assert(ImageDimension == OutputImageType::ImageDimension, "input and output of one dimension");
  static_assert(std::is_arithmetic<InputPixelType>::value && !std::is_same<InputPixelType, bool>::value &&
                  std::is_arithmetic<OutputPixelType>::value && !std::is_same<OutputPixelType, bool>::value,
                "pixels are integers, float or double");
  static_assert(
    (std::is_base_of<Image<typename InputImageType::InternalPixelType, ImageDimension>, InputImageType>::value ||
     ChunkwiseImagePixel<InputImageType>::IsVectorImage) &&
      (std::is_base_of<Image<typename OutputImageType::InternalPixelType, ImageDimension>, OutputImageType>::value ||
       ChunkwiseImagePixel<OutputImageType>::IsVectorImage),
    "input and output are itk::Image: itk::CastImageFilter makes one of an itk::ImageAdaptor");
  /** Components of a pixel, 0 where an itk::VectorImage says it. */
  static constexpr unsigned int InputComponents = ChunkwiseImagePixel<InputImageType>::NumberOfComponents;
  static constexpr unsigned int OutputComponents = ChunkwiseImagePixel<OutputImageType>::NumberOfComponents;
  static_assert(InputComponents == OutputComponents || OutputComponents == 0 ||
                  (InputComponents == 0 && OutputComponents > 1),
                "the pixels of input and output have as many components");
  static_assert(ChunkwiseImagePixel<InputImageType>::IsComplex == ChunkwiseImagePixel<OutputImageType>::IsComplex,
                "the pixels of input and output are both complex numbers, or none is");
  static_assert(InputComponents == 1 || ImageDimension < chunkwise::MaxDimension,
                "images of pixels with components have two to four dimensions");
  static_assert(std::is_base_of<ImageToImageFilter<InputImageType, OutputImageType>, TSuperclass>::value,
                "the superclass is an image-to-image filter");

  /** Pairs of pixel types, for subclasses to assert the one that they have. */
  static constexpr bool GivesSameType =
    chunkwise::PixelTypeOf<InputPixelType>() == chunkwise::PixelTypeOf<OutputPixelType>();
  static constexpr bool GivesSameTypeOrReal = GivesSameType || std::is_floating_point<OutputPixelType>::value;
  /** Any but 64-bit integers to any integers beside: sums of integers are computed as doubles and converted. */
  static constexpr bool GivesSameTypeOrRealOrInteger =
    GivesSameTypeOrReal || std::is_floating_point<InputPixelType>::value || sizeof(InputPixelType) <= 4;

  /** The backend. Default: Auto. */
  itkSetEnumMacro(Backend, BackendEnum);
  itkGetEnumMacro(Backend, BackendEnum);

  /** The ordinals of the devices to use; empty, the default: all. */
  void
  SetDevices(const std::vector<int> & devices);
  const std::vector<int> &
  GetDevices() const
  {
    return this->m_Devices;
  }

  /** Bytes of memory on each device; 0, the default: the manager's budget. */
  itkSetMacro(DeviceMemoryBudget, SizeValueType);
  itkGetConstMacro(DeviceMemoryBudget, SizeValueType);

  /** Bytes of pinned host memory for each device; 0, the default: the manager's budget. */
  itkSetMacro(PinnedMemoryBudget, SizeValueType);
  itkGetConstMacro(PinnedMemoryBudget, SizeValueType);

  /** Bytes of scratch memory of the CPU backend; 0, the default: the manager's budget. */
  itkSetMacro(HostMemoryBudget, SizeValueType);
  itkGetConstMacro(HostMemoryBudget, SizeValueType);

  /** Whether the CPU takes chunks beside the devices. Default: off. */
  itkSetMacro(HostTakesChunks, bool);
  itkGetConstMacro(HostTakesChunks, bool);
  itkBooleanMacro(HostTakesChunks);

  /** Whether the output stays on the device for other filters of this class. Default: off. */
  virtual void
  SetOutputOnDevice(bool outputOnDevice);
  itkGetConstMacro(OutputOnDevice, bool);
  itkBooleanMacro(OutputOnDevice);

  /** Whether the output is on a device now, and not on the host. */
  bool
  IsOutputOnDevice() const
  {
    return this->HasOutputOnDevice();
  }

  /** The backend of the last run: "cpu", "cuda" or "cuda+cpu"; empty before the first. */
  const std::string &
  GetBackendUsed() const
  {
    return this->m_LastReport.backend;
  }

  /** The report of the last run; after a streamed update, of its last piece. */
  const chunkwise::ExecutionReport &
  GetLastReport() const
  {
    return this->m_LastReport;
  }

  /** The chunks that a run over `region` would have, in coordinates where the largest possible region begins at 0.
   * Updates the output's information. */
  chunkwise::Plan
  MakePlan(const OutputImageRegionType & region)
  {
    return this->PlanRegion(region);
  }

  /** The filter's row in chunkwise::GetFilters(), which also is the program's subcommand; empty where it has none. */
  virtual const char *
  GetFilterName() const CHUNKWISE_BASE_OVERRIDE
  {
    return "";
  }

  /** The parameters by the names of the filter's row, which are those of the setters. Whether their values make sense
   * the engine knows; an exception is thrown here only for what the row's types cannot hold. */
  virtual chunkwise::FilterParameters
  MakeParameters() const CHUNKWISE_BASE_OVERRIDE
  {
    return chunkwise::FilterParameters();
  }

  /** The engine's description of the filter's input, whose information must be up to date. */
  chunkwise::FilterImage
  MakeFilterImage() const
  {
    return this->DescribeImage();
  }

  /** The operation that the filter computes on an image that need not be its input: for code that runs the filter as a
   * part of something else. Throws itk::ExceptionObject or chunkwise::Error for parameters that make no sense. */
  virtual std::shared_ptr<const chunkwise::Operation>
  GetOperation(const chunkwise::FilterImage & image) const
  {
    return this->MakeOperationFor(image);
  }

  /** The kind of pixels that the operation gives. If this is not the output's type, WriteOutput converts them: integers
   * from the input's type if results have that by default, from 64-bit integers if results are exact, else from
   * doubles.
   */
  virtual chunkwise::PixelType
  GetOperationKind() const CHUNKWISE_BASE_OVERRIDE
  {
    return this->GetUsualOperationKind();
  }

  /** Backend in the engine's terms. */
  chunkwise::BackendChoice
  GetBackendChoice() const
  {
    return this->ChooseBackend();
  }

  /** A splitter for StreamingImageFilter whose pieces cut no chunk of the plan for the largest possible region. */
  ChunkwiseImageRegionSplitter::Pointer
  MakeRegionSplitter()
  {
    return this->SplitRegions();
  }

protected:
#ifdef ITK_WRAPPING_PARSER
  // Members of the setters and getters: the parser leaves out setters and getters that do not compile.
  ChunkwiseImageToImageFilter();
  BackendEnum                m_Backend;
  std::vector<int>           m_Devices;
  SizeValueType              m_DeviceMemoryBudget;
  SizeValueType              m_PinnedMemoryBudget;
  SizeValueType              m_HostMemoryBudget;
  bool                       m_HostTakesChunks;
  bool                       m_OutputOnDevice;
  chunkwise::ExecutionReport m_LastReport;
#else
  ChunkwiseImageToImageFilter()
    : FilterBase(*this, { chunkwise::PixelTypeOf<InputPixelType>(),
                          chunkwise::PixelTypeOf<OutputPixelType>(),
                          InputComponents,
                          OutputComponents,
                          ChunkwiseImagePixel<InputImageType>::IsComplex })
  {}
#endif
  ~ChunkwiseImageToImageFilter() override = default;

  /** The operation for an image, made from the filter's row and its parameters. Throws itk::ExceptionObject or
   * chunkwise::Error for parameters that cannot be served. Equal parameters must give equal operations: it is called
   * for regions and for data. */
  virtual std::shared_ptr<const chunkwise::Operation>
  MakeOperation(const chunkwise::FilterImage & image) const CHUNKWISE_BASE_OVERRIDE
  {
    return this->MakeUsualOperation(image);
  }

  /** Writes to the output what the operation gave for the box of `result`, if GetOperationKind is not the output's.
   * This one rounds to integers, to nearest with ties to even, clamps what the output's type does not hold, NaN to 0,
   * and counts what it had to clamp. */
  virtual void
  WriteOutput(const chunkwise::BufferView & result) CHUNKWISE_BASE_OVERRIDE;

  /** Calls convertRow(from, to, step, count) for the rows of a dense `result`, by several threads: from[i] is the
   * result for to[i * step], a voxel of the output or a component of one. TResult is the type of the result's kind. */
  template <typename TResult, typename TConvertRow>
  void
  ConvertToOutput(const chunkwise::BufferView & result, TConvertRow && convertRow);

  /** The axis of the engine's image along which an output's components lie, which the filter's images do not have, and
   * their number. */
  using Components = typename FilterBase::Components;
  /** By default those of the input. */
  virtual Components
  GetComponents() const CHUNKWISE_BASE_OVERRIDE
  {
    return { FilterBase::AxisOfComponents, this->GetNumberOfInputComponents() };
  }

  /** The pixels of input `i`, and of which kind they are. Override both if an input has a different type. */
  virtual chunkwise::BufferView
  GetInputView(unsigned int i) const CHUNKWISE_BASE_OVERRIDE;
  virtual chunkwise::PixelType
  GetInputKind(unsigned int i) const CHUNKWISE_BASE_OVERRIDE;

  /** A view of the part of an image's buffer that lies inside the first input; throws itk::ExceptionObject if there are
   * no voxels where some were requested. `name` is the image's for the message. */
  template <typename TImage>
  chunkwise::BufferView
  ViewOf(const TImage & image, const std::string & name) const;

  /** The manager that runs the operation. */
  virtual chunkwise::Manager &
  GetManager() const CHUNKWISE_BASE_OVERRIDE;

  /** Sets the report of a filter that is made of other filters. */
  void
  SetLastReport(const chunkwise::ExecutionReport & report)
  {
    this->m_LastReport = report;
  }

  /** For a parameter that the whole input gives: calls compute(manager, request, monitor) with a request of it in which
   * only the operation's parameters matter. The inputs must have been requested whole. The monitor obeys abort and
   * reports no progress. Exceptions of it are thrown as by GenerateData. Nothing is called while neither an input nor
   * the filter has changed since the last time. */
  template <typename TCompute>
  void
  ComputeFromWholeInput(TCompute && compute)
  {
    this->ComputeOnce(compute);
  }

  void
  VerifyPreconditions() const override;
  void
  VerifyInputInformation() const override;
  void
  GenerateOutputInformation() override;
  void
  GenerateInputRequestedRegion() override;
  void
  UpdateOutputData(DataObject * output) override;
  void
  GenerateData() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  // Functions that FilterBase calls.
  DataObject *
  FindInput(const std::string & name) const CHUNKWISE_BASE_OVERRIDE
  {
    return const_cast<DataObject *>(this->ProcessObject::GetInput(name));
  }
  DataObject *
  FindInput(unsigned int i) const CHUNKWISE_BASE_OVERRIDE
  {
    return const_cast<DataObject *>(this->ProcessObject::GetInput(i));
  }
  bool
  HasIndex(const std::string & nameOfInput) const CHUNKWISE_BASE_OVERRIDE
  {
    return this->IsIndexedInputName(nameOfInput);
  }
  bool
  IsOfInputType(const DataObject * object) const CHUNKWISE_BASE_OVERRIDE
  {
    return dynamic_cast<const InputImageType *>(object) != nullptr;
  }
  ImageBase<ImageDimension> *
  FindOutput() const CHUNKWISE_BASE_OVERRIDE
  {
    return const_cast<OutputImageType *>(this->GetOutput());
  }
  void *
  GetOutputPixels() const CHUNKWISE_BASE_OVERRIDE
  {
    return const_cast<OutputImageType *>(this->GetOutput())->GetBufferPointer();
  }
  void
  AllocateImages() CHUNKWISE_BASE_OVERRIDE
  {
    this->AllocateOutputs();
  }
  void
  UpdateInSuperclass(DataObject * output) CHUNKWISE_BASE_OVERRIDE
  {
    Superclass::UpdateOutputData(output);
  }
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkChunkwiseImageToImageFilter.hxx"
#endif

#endif
