/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseImageToImageFilter_h
#define itkChunkwiseImageToImageFilter_h

#include "chunkwiseManager.h"
#include "itkChunkwiseEnums.h"
#include "itkChunkwiseImageRegionSplitter.h"
#include "itkChunkwiseMacro.h"
#include "itkChunkwiseMonitor.h"
#include "itkImageToImageFilter.h"

#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace itk
{
/** \class ChunkwiseImageToImageFilter
 * \brief Base of the filters whose work the Chunkwise engine does.
 *
 * A subclass says what to compute (MakeOperation) and has the setters of its parameters; this class does the rest:
 * requested regions, the run on the chosen backend, progress, abort and errors. ChunkwiseIdentityImageFilter is the
 * smallest subclass.
 *
 * \par Boundary
 * The edge of an image is that of its largest possible region, never that of a requested region, a buffer or a chunk.
 * For an output region the filter requests that region padded by the operation's halo and cut at the largest possible
 * region (where windows wrap around and leave the image: the whole axis).
 *
 * \par Types
 * itk::Image of 8- to 64-bit integers, float or double, in two to five dimensions; input and output have the same
 * dimension. Which output types go with which input types is the subclass' choice; others throw when the filter is
 * updated.
 *
 * \par Memory
 * The engine cuts the requested region into chunks that fit a device, with transfers and computation overlapping.
 * DeviceMemoryBudget and PinnedMemoryBudget (bytes for each device) and HostMemoryBudget (bytes for the CPU backend)
 * are for this filter's runs alone. The process-wide chunkwise::Manager has budgets of its own, for all filters at a
 * time and for what is kept between runs; the tighter of both counts, and 0 leaves it to the manager's. A filter's
 * budget so never makes room that the manager's does not have. They are never exceeded: a budget
 * that is too small for the smallest chunk throws, naming the bytes needed.
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
class ITK_TEMPLATE_EXPORT ChunkwiseImageToImageFilter : public TSuperclass
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseImageToImageFilter);

  using Self = ChunkwiseImageToImageFilter;
  using Superclass = TSuperclass;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(ChunkwiseImageToImageFilter);

  using InputImageType = TInputImage;
  using OutputImageType = TOutputImage;
  using InputPixelType = typename InputImageType::PixelType;
  using OutputPixelType = typename OutputImageType::PixelType;
  using OutputImageRegionType = typename OutputImageType::RegionType;
  using BackendEnum = ChunkwiseEnums::Backend;

  static constexpr unsigned int ImageDimension = InputImageType::ImageDimension;

  static_assert(ImageDimension >= 2 && ImageDimension <= chunkwise::MaxDimension, "images of two to five dimensions");
  static_assert(ImageDimension == OutputImageType::ImageDimension, "input and output of one dimension");
  static_assert(std::is_arithmetic<InputPixelType>::value && !std::is_same<InputPixelType, bool>::value &&
                  std::is_arithmetic<OutputPixelType>::value && !std::is_same<OutputPixelType, bool>::value,
                "pixels are integers, float or double");
  static_assert(std::is_base_of<ImageToImageFilter<InputImageType, OutputImageType>, TSuperclass>::value,
                "the superclass is an image-to-image filter");

  /** Where to compute. Default: Auto. */
  itkSetEnumMacro(Backend, BackendEnum);
  itkGetEnumMacro(Backend, BackendEnum);

  /** The ordinals of the devices to use; empty, the default: all. */
  void
  SetDevices(const std::vector<int> & devices);
  const std::vector<int> &
  GetDevices() const
  {
    return m_Devices;
  }

  /** Bytes of memory on each device; 0, the default: the manager's budget. */
  itkSetMacro(DeviceMemoryBudget, SizeValueType);
  itkGetConstMacro(DeviceMemoryBudget, SizeValueType);

  /** Bytes of pinned host memory for each device; 0, the default: the manager's budget. */
  itkSetMacro(PinnedMemoryBudget, SizeValueType);
  itkGetConstMacro(PinnedMemoryBudget, SizeValueType);

  /** Bytes that the CPU backend takes beside the images: scratch, and what it keeps for the next run; 0, the default:
   * the manager's budget. */
  itkSetMacro(HostMemoryBudget, SizeValueType);
  itkGetConstMacro(HostMemoryBudget, SizeValueType);

  /** Whether the CPU takes chunks beside the devices. Default: off. */
  itkSetMacro(HostTakesChunks, bool);
  itkGetConstMacro(HostTakesChunks, bool);
  itkBooleanMacro(HostTakesChunks);

  /** What the last run used: "cpu", "cuda" or "cuda+cpu"; empty before the first. */
  const std::string &
  GetBackendUsed() const
  {
    return m_LastReport.backend;
  }

  /** What the last run did; of a streamed update, its last piece. */
  const chunkwise::ExecutionReport &
  GetLastReport() const
  {
    return m_LastReport;
  }

  /** The chunks that a run over `region` would have, in coordinates where the largest possible region begins at 0.
   * Updates the output's information. */
  chunkwise::Plan
  MakePlan(const OutputImageRegionType & region);

  /** What the filter computes on an image of this extent (axes that the image lacks: 1), after its parameters have been
   * checked as for an update: for what runs it as a part of something else. Throws if that depends on the input's
   * voxels. */
  virtual std::shared_ptr<const chunkwise::Operation>
  GetOperation(const chunkwise::Coordinates & imageExtent) const
  {
    this->VerifyPreconditions();
    return this->MakeOperation(imageExtent);
  }

  /** A splitter for StreamingImageFilter whose pieces cut no chunk of the plan for the largest possible region. */
  ChunkwiseImageRegionSplitter::Pointer
  MakeRegionSplitter();

protected:
  ChunkwiseImageToImageFilter() = default;
  ~ChunkwiseImageToImageFilter() override = default;

  /** What to compute on an image whose largest possible region has this extent (axes that the image lacks: 1). The
   * input's information is up to date. Throws itk::ExceptionObject or chunkwise::Error for parameters that cannot be
   * served. Equal parameters must give equal operations: it is called for regions and for data. */
  virtual std::shared_ptr<const chunkwise::Operation>
  MakeOperation(const chunkwise::Coordinates & imageExtent) const = 0;

  /** The pixels of input `i`, and of which kind they are. Override both where an input has a type of its own. */
  virtual chunkwise::BufferView
  GetInputView(unsigned int i) const;
  virtual chunkwise::PixelKind
  GetInputKind(unsigned int i) const;

  /** A dense view of an image's buffer. */
  template <typename TImage>
  static chunkwise::BufferView
  ViewOf(const TImage & image);

  /** The manager that runs the operation. */
  virtual chunkwise::Manager &
  GetManager() const;

  /** Throws itk::ExceptionObject if the operation cannot be run on the input. VerifyInputInformation calls it, once the
   * inputs are known to lie in one space; a filter whose inputs do not overrides that. */
  void
  VerifyOperation() const;

  /** For a parameter that the whole input gives: calls compute(manager, request, monitor) with a request of it in which
   * only the operation's parameters matter. The input must have been requested whole. The monitor obeys abort and
   * reports no progress. What it throws is thrown as by GenerateData. Nothing is called while neither the input nor the
   * filter has changed since the last time. */
  template <typename TCompute>
  void
  ComputeFromWholeInput(TCompute && compute);

  void
  VerifyPreconditions() const override;
  void
  VerifyInputInformation() const override;
  void
  GenerateInputRequestedRegion() override;
  void
  GenerateData() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  /** The largest possible region in the engine's coordinates. */
  chunkwise::Box
  GetImageBox() const;

  /** Everything of a run but the views and the region. */
  chunkwise::ExecutionRequest
  MakeRequest(std::shared_ptr<const chunkwise::Operation> operation) const;

  /** Calls run() and throws what it throws as ITK's exceptions. */
  template <typename TRun>
  void
  RunForItk(ChunkwiseMonitor & monitor, TRun && run);

  /** The state of an input and of this filter. */
  using StateType = std::array<ModifiedTimeType, 3>;

  BackendEnum                m_Backend{ BackendEnum::Auto };
  std::vector<int>           m_Devices;
  SizeValueType              m_DeviceMemoryBudget{ 0 };
  SizeValueType              m_PinnedMemoryBudget{ 0 };
  SizeValueType              m_HostMemoryBudget{ 0 };
  bool                       m_HostTakesChunks{ false };
  chunkwise::ExecutionReport m_LastReport;
  std::string                m_LastWarning;
  /** When ComputeFromWholeInput has computed. */
  StateType m_ComputedState{};
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkChunkwiseImageToImageFilter.hxx"
#endif

#endif
