/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSlidingWindowNetworkImageFilter_h
#define itkSlidingWindowNetworkImageFilter_h

#include "chunkwiseNetworkGraph.h"
#include "itkChunkwiseImageToImageFilter.h"
#include "itkSlidingWindowNetworkEnums.h"

namespace itk
{
/** \class SlidingWindowNetworkImageFilter
 * \brief A convolutional network over the whole image at once, without seams.
 *
 * The network comes from an ONNX file (SetModelFileName) or is built in C++ (SetGraph). Whatever the chunks, the result
 * is what the network gives for the whole image: layers that pad do so at the image's true edge alone, and grids of
 * strided layers begin at the image's first voxel. A classifier that was trained on windows, whose strides would leave
 * a coarser grid, gives each voxel what it gives for the window around that voxel.
 *
 * The first three axes are x, y and z of the network, a two-dimensional network's x and y; the others are independent.
 * A network of two or three input channels takes an image for each, SetInput(i, image).
 *
 * \par Boundary
 * A network whose layers do not pad sees beyond the edge, half of its field of view to either side, what
 * BoundaryCondition says: ZeroFluxNeumann (the default), Constant or Mirror. One that pads sees it at the upper end
 * alone, up to the next multiple of its total stride.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to any of these. The network computes in float. Values of channels are
 * rounded to integer types, ties to even, and clamped.
 *
 * \par Memory
 * A chunk needs its input, its output, and as floats the results of the layers that are needed at a time; on the CPU
 * some 256 KiB for each thread beside it, on a device up to some gigabytes for transforms where chunks are large enough
 * for them. The weights, and their spectra where there is room, stay on a device between runs.
 *
 * \par Streaming
 * Requests the output's requested region padded by the network's reach, and cut at the image.
 *
 * \par Determinism
 * Precision Reproducible: the same bits for every division into chunks and requested regions, number of threads and
 * device; the CPU and CUDA backends give the same bits too. Float32, the default: large convolutions go through
 * transforms of tiles of 16 to 32 voxels along each axis. Errors are some 1e-6 of the largest value, 1.2e-5 in the
 * worst case measured; what is faint beside something bright loses digits, a pixel that is not finite spoils its tile,
 * and results differ by as much with the chunks and backends. TensorFloat32 does so with errors of up to
 * some 5e-3 (docs/networks.md has what was measured) on devices with tensor cores, and Half with errors of up to some
 * 1e-2: it keeps the transforms in half precision, scaled so that none is too large, and adds in float32. On the CPU
 * both are Float32.
 *
 * \par Source
 * A. Zlateski, K. Lee, H. S. Seung, "ZNNi: maximizing the inference throughput of 3D convolutional networks on CPUs and
 * GPUs", SC16, 2016: the dense output of windowed networks, and the primitives.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = Image<float, TInputImage::ImageDimension>>
class ITK_TEMPLATE_EXPORT SlidingWindowNetworkImageFilter
  : public ChunkwiseImageToImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(SlidingWindowNetworkImageFilter);

  using Self = SlidingWindowNetworkImageFilter;
  using Superclass = ChunkwiseImageToImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(SlidingWindowNetworkImageFilter);

  using OutputModeEnum = SlidingWindowNetworkEnums::OutputMode;
  using PrecisionEnum = SlidingWindowNetworkEnums::Precision;
  using InferenceModeEnum = SlidingWindowNetworkEnums::InferenceMode;
  using PatchWeightingEnum = SlidingWindowNetworkEnums::PatchWeighting;
  using PatchSizeType = typename TInputImage::SizeType;
  using BoundaryConditionEnum = ChunkwiseEnums::BoundaryCondition;
  using GraphPointer = std::shared_ptr<const chunkwise::NetworkGraph>;

  using Components = typename Superclass::Components;

  /** Whether a pixel of the output has all channels. */
  static constexpr bool HasAllChannels =
    std::is_base_of<VectorImage<typename TOutputImage::InternalPixelType, TOutputImage::ImageDimension>,
                    TOutputImage>::value;
  static_assert(std::is_floating_point<typename TOutputImage::InternalPixelType>::value ||
                  std::is_integral<typename TOutputImage::InternalPixelType>::value,
                "the output's pixels are integers, float or double, or vectors of these");
  static_assert(Superclass::InputComponents == 1, "each channel of a network is an image of its own");
  static_assert(!HasAllChannels || TOutputImage::ImageDimension < chunkwise::MaxDimension,
                "an itk::VectorImage of all channels has at most four dimensions");

  const char *
  GetFilterName() const override
  {
    return "network";
  }

  /** The ONNX file that the network is read from, when it is first needed. Takes the place of a graph. */
  void
  SetModelFileName(const std::string & fileName);
  const std::string &
  GetModelFileName() const
  {
    return m_ModelFileName;
  }

  /** The network, finished. Takes the place of a file. */
  void
  SetGraph(const GraphPointer & graph);
  /** The graph of SetGraph, or the network in the file, which is read now if it was not; a null pointer if neither is
   * set. Throws itk::ExceptionObject for a file that holds no such network. */
  GraphPointer
  GetGraph() const;

  /** The result of the network at an output voxel. Default: the value of one channel. An output that is an
   * itk::VectorImage has them all, and takes the default. */
  itkSetEnumMacro(OutputMode, OutputModeEnum);
  itkGetEnumMacro(OutputMode, OutputModeEnum);

  /** The channel of the modes Channel and Threshold, from 0 on. Default: 0. */
  itkSetMacro(Channel, int);
  itkGetConstMacro(Channel, int);

  /** The value that the channel must exceed in the mode Threshold. Default: 0.5. */
  itkSetMacro(Threshold, double);
  itkGetConstMacro(Threshold, double);

  /** The network is given voxel * InputScale + InputShift. Defaults: 1 and 0. */
  itkSetMacro(InputScale, double);
  itkGetConstMacro(InputScale, double);
  itkSetMacro(InputShift, double);
  itkGetConstMacro(InputShift, double);

  /** Float32 (the default): errors are some 1e-6 of the largest value. TensorFloat32: faster on devices with tensor
   * cores, with errors of up to some 5e-3; elsewhere as Float32. Half: as TensorFloat32, faster still, with errors of
   * up to some 1e-2. Reproducible: the same bits for any chunks and devices, slower. */
  itkSetEnumMacro(Precision, PrecisionEnum);
  itkGetEnumMacro(Precision, PrecisionEnum);

  /** Dense (the default): what the network gives on the whole image at once. Patches: the weighed means of what it
   * gives for windows, as networks need that normalize by the statistics of their windows. The windows, and so the
   * results, do not depend on chunks; they are those of MONAI's sliding_window_inference. */
  itkSetEnumMacro(InferenceMode, InferenceModeEnum);
  itkGetEnumMacro(InferenceMode, InferenceModeEnum);

  /** The extent of a window, in voxels; beyond the third axis it has no effect. Default: 96. */
  itkSetMacro(PatchSize, PatchSizeType);
  itkGetConstReferenceMacro(PatchSize, PatchSizeType);

  /** How much neighbouring windows overlap, as a part of their extent, from 0 on and below 1. Default: 0.25. */
  itkSetMacro(Overlap, double);
  itkGetConstMacro(Overlap, double);

  /** How windows are weighed where they overlap. Default: all alike. */
  itkSetEnumMacro(PatchWeighting, PatchWeightingEnum);
  itkGetEnumMacro(PatchWeighting, PatchWeightingEnum);

  /** The boundary condition at the image's edge: ZeroFluxNeumann (the default), Constant or Mirror. */
  itkSetEnumMacro(BoundaryCondition, BoundaryConditionEnum);
  itkGetEnumMacro(BoundaryCondition, BoundaryConditionEnum);

  /** The value beyond the edge in the boundary condition Constant, in units of the pixel; it must be a value of the
   * input's pixel type. Default: 0. */
  itkSetMacro(Constant, double);
  itkGetConstMacro(Constant, double);

protected:
  SlidingWindowNetworkImageFilter();
  ~SlidingWindowNetworkImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  /** The operation gives the output's kind itself. */
  chunkwise::PixelType
  GetOperationKind() const override
  {
    return chunkwise::PixelTypeOf<typename Superclass::OutputPixelType>();
  }
  std::shared_ptr<const chunkwise::Operation>
  MakeOperation(const chunkwise::FilterImage & image) const override;
  Components
  GetComponents() const override;
  void
  GenerateOutputInformation() override;
  void
  VerifyPreconditions() const override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  std::string           m_ModelFileName;
  mutable GraphPointer  m_Graph; ///< a file's once that was read
  OutputModeEnum        m_OutputMode{ OutputModeEnum::Channel };
  int                   m_Channel{ 0 };
  double                m_Threshold{ 0.5 };
  double                m_InputScale{ 1.0 };
  double                m_InputShift{ 0.0 };
  PrecisionEnum         m_Precision{ PrecisionEnum::Float32 };
  InferenceModeEnum     m_InferenceMode{ InferenceModeEnum::Dense };
  PatchSizeType         m_PatchSize{ PatchSizeType::Filled(96) };
  double                m_Overlap{ 0.25 };
  PatchWeightingEnum    m_PatchWeighting{ PatchWeightingEnum::Constant };
  BoundaryConditionEnum m_BoundaryCondition{ BoundaryConditionEnum::ZeroFluxNeumann };
  double                m_Constant{ 0.0 };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkSlidingWindowNetworkImageFilter.hxx"
#endif

#endif
