/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseFilterBase_h
#define itkChunkwiseFilterBase_h

#include "ChunkwiseExport.h"
#include "chunkwiseFilters.h"
#include "chunkwiseManager.h"
#include "itkChunkwiseDeviceSource.h"
#include "itkChunkwiseEnums.h"
#include "itkChunkwiseImageRegionSplitter.h"
#include "itkChunkwiseMonitor.h"
#include "itkImageBase.h"
#include "itkProcessObject.h"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace itk
{
/** \class ChunkwiseFilterBase
 * \brief The part of ChunkwiseImageToImageFilter that does not depend on pixel types.
 *
 * It is compiled once for each dimension, in the library, and sees images as ImageBase. It asks the filter for
 * everything that depends on the images' types. Filters derive from ChunkwiseImageToImageFilter, which has the
 * documentation.
 * \ingroup Chunkwise
 */
template <unsigned int VDimension>
class ChunkwiseFilterBase : public ChunkwiseDeviceSource<VDimension>
{
public:
  using ImageBaseType = ImageBase<VDimension>;
  using RegionType = ImageRegion<VDimension>;
  using DeviceSource = ChunkwiseDeviceSource<VDimension>;
  using DeviceImage = typename DeviceSource::Image;

  /** The axis of the engine's image along which an output's components lie, which the filter's images do not have, and
   * their number. */
  struct Components
  {
    int          axis;
    std::int64_t number; ///< 0: pixels are numbers
  };

  /** The pixel types of the images: see ChunkwisePixel. */
  struct Types
  {
    chunkwise::PixelType inputKind;
    chunkwise::PixelType outputKind;
    unsigned int         inputComponents;
    unsigned int         outputComponents;
    bool                 isComplex;
  };

  std::shared_ptr<const DeviceImage>
  UpdateOutputOnDevice(DataObject * output) override;
  void
  SetOutputIsRead(bool isRead) override;
  void
  ReleaseOutputOnDevice() override;

protected:
  /** The engine's axis with the components of the input's pixels. */
  static constexpr int AxisOfComponents = chunkwise::MaxDimension - 1;

  ChunkwiseFilterBase(ProcessObject & filter, const Types & types);
  ChunkwiseFilterBase(const ChunkwiseFilterBase &) = delete;
  ChunkwiseFilterBase &
  operator=(const ChunkwiseFilterBase &) = delete;
  ~ChunkwiseFilterBase() override;

  // Queries that only the filter's types, or its superclass, can answer.
  virtual const char *
  GetFilterName() const = 0;
  virtual chunkwise::FilterParameters
  MakeParameters() const = 0;
  virtual std::shared_ptr<const chunkwise::Operation>
  MakeOperation(const chunkwise::FilterImage & image) const = 0;
  virtual chunkwise::PixelType
  GetOperationKind() const = 0;
  virtual Components
  GetComponents() const = 0;
  virtual chunkwise::BufferView
  GetInputView(unsigned int i) const = 0;
  virtual chunkwise::PixelType
  GetInputKind(unsigned int i) const = 0;
  virtual void
  WriteOutput(const chunkwise::BufferView & result) = 0;
  virtual chunkwise::Manager &
  GetManager() const = 0;
  virtual DataObject *
  FindInput(const std::string & name) const = 0;
  virtual DataObject *
  FindInput(unsigned int i) const = 0;
  virtual bool
  HasIndex(const std::string & nameOfInput) const = 0;
  /** Whether an object has the type of the first input. */
  virtual bool
  IsOfInputType(const DataObject * object) const = 0;
  virtual ImageBaseType *
  FindOutput() const = 0;
  virtual void *
  GetOutputPixels() const = 0;
  virtual void
  AllocateImages() = 0;
  /** An update in the superclass' way. */
  virtual void
  UpdateInSuperclass(DataObject * output) = 0;

  // The filter's methods of these names.
  void
  ChangeDevices(const std::vector<int> & devices);
  void
  ChangeOutputOnDevice(bool outputOnDevice);
  bool
  HasOutputOnDevice() const;
  chunkwise::BackendChoice
  ChooseBackend() const;
  chunkwise::Plan
  PlanRegion(const RegionType & region);
  ChunkwiseImageRegionSplitter::Pointer
  SplitRegions();
  chunkwise::FilterImage
  DescribeImage() const;
  std::shared_ptr<const chunkwise::Operation>
  MakeUsualOperation(const chunkwise::FilterImage & image) const;
  std::shared_ptr<const chunkwise::Operation>
  MakeOperationFor(const chunkwise::FilterImage & image) const;
  chunkwise::PixelType
  GetUsualOperationKind() const;
  /** Components of the input's pixels; 0 where they are numbers. */
  std::int64_t
  GetNumberOfInputComponents() const;
  /** A region of the images in the engine's coordinates, with all components of the input. */
  chunkwise::Box
  GetBox(const RegionType & region) const;
  /** Throws itk::ExceptionObject if the filter is to compute with complex numbers and is not linear. */
  void
  CheckComplex() const;
  /** The name of input `i` for messages: that of its setter. */
  std::string
  GetInputName(unsigned int i) const;
  /** Throws itk::ExceptionObject if the operation cannot be run on the input. VerifyInputs calls it, once the inputs
   * are known to lie in one space; a filter whose inputs do not calls it alone. */
  void
  VerifyOperation() const;
  void
  VerifyDevices() const;
  void
  VerifyInputs() const;
  void
  RequestInputs();
  void
  UpdateImages(DataObject * output);
  void
  Generate();
  void
  ConvertOutput(const chunkwise::BufferView & result);
  void
  PrintBase(std::ostream & os, Indent indent) const;

  /** To be called before an image's pixels are asked for: brings them to the host, but where a device reads them. */
  void
  PrepareView(const DataObject * image) const;
  /** A view of the pixels of an image, of which its container holds so many. */
  chunkwise::BufferView
  ViewOfImage(const ImageBaseType & image, void * pixels, SizeValueType held, chunkwise::PixelType kind,
              std::int64_t components, const std::string & name) const;
  /** Calls convertRow(from, to, step, count) for the rows of a dense result, by several threads. */
  void
  ForRowsOf(
    const chunkwise::BufferView &                                                                    result,
    const std::function<void(const void * from, void * to, std::int64_t step, std::int64_t count)> & convertRow);
  void
  ComputeOnce(
    const std::function<void(chunkwise::Manager &, const chunkwise::ExecutionRequest &, ChunkwiseMonitor &)> & compute);

  // For filters whose windows may see a part of the image only.
  /** The index of a further input: that of the filter's row, or `usual` where the row has none. */
  unsigned int
  FindIndexOfInput(const char * name, unsigned int usual) const;
  /** Throws itk::ExceptionObject if the filter has a mask or weights that its row has not. */
  void
  CheckDomain() const;
  /** Throws itk::ExceptionObject if mask or weights do not lie where the input does. */
  void
  VerifyDomainIn(double coordinateTolerance, double directionTolerance) const;
  /** The numbers of `sizes` along some axes; throws itk::ExceptionObject for one that is beyond signed 64-bit integers.
   */
  std::vector<std::int64_t>
  SizesOver(const std::vector<unsigned int> & axes, const char * name, const Size<VDimension> & sizes) const;

  using BackendEnum = ChunkwiseEnums::Backend;
  BackendEnum                m_Backend{ BackendEnum::Auto };
  std::vector<int>           m_Devices;
  SizeValueType              m_DeviceMemoryBudget{ 0 };
  SizeValueType              m_PinnedMemoryBudget{ 0 };
  SizeValueType              m_HostMemoryBudget{ 0 };
  bool                       m_HostTakesChunks{ false };
  bool                       m_OutputOnDevice{ false };
  chunkwise::ExecutionReport m_LastReport;

private:
  /** An input that is on a device. */
  struct DeviceInput
  {
    DataObject *                       input;
    DeviceSource *                     source;
    std::shared_ptr<const DeviceImage> image;
  };

  /** The first input. */
  const ImageBaseType &
  GetFirst() const;

  /** Updates the inputs if some of them may stay on a device, which m_DeviceInputs then has. */
  void
  UpdateDeviceInputs();
  const DeviceInput *
  FindDeviceInput(const DataObject * input) const;
  /** Brings an input to the host. */
  void
  FetchDeviceInput(const DataObject * input) const;
  /** Brings the output to the host; false if the device fails, and it must be computed anew. */
  bool
  FetchOutput();

  /** Computes a region on a device, into `output` on the host or, if that is nullptr, into m_DeviceOutput. False if it
   * has to be done in another way; m_WhyNotOnDevice may say why. */
  bool
  RunOnDevice(const std::shared_ptr<const chunkwise::Operation> & operation, const chunkwise::BufferView * output,
              const chunkwise::Box & region, ChunkwiseMonitor & monitor);

  /** The first input's largest possible region in the engine's coordinates. */
  chunkwise::Box
  GetImageBox() const;

  /** The output's buffer. */
  chunkwise::BufferView
  GetOutputView() const;

  /** Computes a region into `output`, or if that is nullptr into the filter's output, while the filter's progress rises
   * from one fraction to another. */
  void
  Run(const std::shared_ptr<const chunkwise::Operation> & operation, const chunkwise::BufferView * output,
      const chunkwise::Box & region, double progressBefore = 0.0, double progressAfter = 1.0);

  /** Computes a region into intermediate images and converts these. */
  void
  RunAndConvert(const std::shared_ptr<const chunkwise::Operation> & operation, const chunkwise::Box & region);

  /** Gives all components room in the request's image and region, and in inputs that have one value for all. */
  void
  ExtendToComponents(chunkwise::ExecutionRequest & request) const;

  /** The names of the inputs that are set. */
  std::vector<std::string>
  GetNamesOfInputs() const;

  /** Warns of the last run's warnings, once while they stay the same. */
  void
  Warn();

  [[noreturn]] void
  ThrowAborted(ChunkwiseMonitor & monitor) const;
  /** Throws itk::ExceptionObject in the filter's name. */
  [[noreturn]] void
  Throw(const std::string & message) const;

  /** Everything of a run but the views and the region. */
  chunkwise::ExecutionRequest
  MakeRequest(std::shared_ptr<const chunkwise::Operation> operation) const;

  ProcessObject & m_Filter;
  const Types     m_Types;
  std::string     m_LastWarning;
  /** The state of the inputs and of this filter when ComputeOnce has computed. */
  std::array<ModifiedTimeType, 3> m_ComputedState{};
  /** The last run's voxels whose result the output's type does not have, and those whose sum a double rounds. */
  SizeValueType m_ClampedVoxels{ 0 };

  /** The output, if it is on a device, and the time of its update. */
  std::shared_ptr<const DeviceImage> m_DeviceOutput;
  ModifiedTimeType                   m_DeviceOutputTime{ 0 };
  bool                               m_OutputIsRead{ false };
  /** During an update: the output is to stay on the device. */
  bool                             m_LeavesOutput{ false };
  mutable std::vector<DeviceInput> m_DeviceInputs;
  /** Views of inputs on a device are those of the device, not of the host. */
  bool        m_ViewsAreOfDevice{ false };
  bool        m_UpdatesDeviceInputs{ false };
  std::string m_WhyNotOnDevice;
};

extern template class Chunkwise_EXPORT ChunkwiseFilterBase<2>;
extern template class Chunkwise_EXPORT ChunkwiseFilterBase<3>;
extern template class Chunkwise_EXPORT ChunkwiseFilterBase<4>;
extern template class Chunkwise_EXPORT ChunkwiseFilterBase<5>;
} // namespace itk

#endif
