/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkPrunedFFTConvolutionImageFilter_h
#define itkPrunedFFTConvolutionImageFilter_h

#include "chunkwiseImageConvolutionOperation.h"
#include "itkChunkwiseConvolutionEnums.h"
#include "itkChunkwiseWindowImageFilter.h"

namespace itk
{
/** \class PrunedFFTConvolutionImageFilter
 * \brief Convolution with a kernel image, through Fourier transforms that skip what is zero or not wanted.
 *
 * The setters are those of itk::FFTConvolutionImageFilter and mean the same; the kernel's center is at half its size,
 * rounded down. No line of zeros is transformed, and no line that is cropped away. The kernel's spectrum is made
 * once for each length of transform, and kept between chunks, calls and streamed regions. Small kernels are convolved
 * directly, see SetMethod.
 *
 * The kernel image has the image's dimension, with size 1 along axes that take no part, which axes that are not spatial
 * must have. Its origin, spacing and direction are not used. It is read whole.
 *
 * \par Boundary
 * Renormalized (the default): the result is multiplied by the sum of all weights over the sum of the weights inside the
 * image, exactly, from the kernel's integral image: a constant image stays constant up to its edge. A kernel whose
 * weights sum to zero, in whole or inside the image, as that of a derivative, cannot be renormalized: the filter throws
 * when it runs; use one of the other boundary conditions. With OutputRegionMode VALID no window reaches the edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double; kernels of any of these. Computed in
 * float for float and 8- and 16-bit integers, in double for the others; integer outputs are rounded to nearest, ties to
 * even, and clamped.
 *
 * \par Memory
 * A chunk needs its input, its output and a half spectrum of the same number of bytes in the computation's type; the
 * spectrum of the kernel is kept beside.
 *
 * \par Streaming
 * Requests the output's requested region, with method FFT the tiles of the image's grid that it meets, padded by the
 * kernel's extent to either side of its center, and cut at the image.
 *
 * \par Determinism
 * Method Direct: the same bits for every division into chunks and requested regions, number of threads and device.
 * Method FFT: the CPU gives the same bits for every division, requested region and number of threads, because it
 * computes in tiles of the image's own grid. Devices give the same bits for the same chunks; else results differ by
 * rounding. The relative L2 error against exact sums is below 1e-6 in float and 1e-14 in double for kernels of one
 * sign. NaN and infinities spread over a tile, or a chunk.
 *
 * \par Source
 * Pruned transforms: A. Zlateski, K. Lee, H. S. Seung, "ZNNi: maximizing the inference throughput of 3D convolutional
 * networks on CPUs and GPUs", SC16, section III. The renormalized boundary is H. Knutsson and C.-F. Westin's normalized
 * convolution with the image's extent as certainty.
 *
 * \sa FFTConvolutionImageFilter ConvolutionImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TKernelImage = TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT PrunedFFTConvolutionImageFilter : public ChunkwiseWindowImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(PrunedFFTConvolutionImageFilter);

  using Self = PrunedFFTConvolutionImageFilter;
  using Superclass = ChunkwiseWindowImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(PrunedFFTConvolutionImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "convolve-image";
  }

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(TKernelImage::ImageDimension == Superclass::ImageDimension, "image and kernel of one dimension");

  using KernelImageType = TKernelImage;
  using OutputImageRegionType = typename Superclass::OutputImageRegionType;
  using MethodEnum = ChunkwiseConvolutionEnums::Method;
  using TransformProviderEnum = ChunkwiseConvolutionEnums::TransformProvider;
  using OutputRegionModeEnum = ChunkwiseConvolutionEnums::OutputRegion;
  static constexpr OutputRegionModeEnum SAME = OutputRegionModeEnum::SAME;
  static constexpr OutputRegionModeEnum VALID = OutputRegionModeEnum::VALID;

  itkSetInputMacro(KernelImage, KernelImageType);
  itkGetInputMacro(KernelImage, KernelImageType);

  /** Whether the kernel is divided by its sum. Default: off. */
  itkSetMacro(Normalize, bool);
  itkGetConstMacro(Normalize, bool);
  itkBooleanMacro(Normalize);

  /** Whether the filter computes the correlation: the convolution with the kernel mirrored at its center. Default: off.
   */
  itkSetMacro(Correlate, bool);
  itkGetConstMacro(Correlate, bool);
  itkBooleanMacro(Correlate);

  /** SAME (the default): the output is as large as the input. VALID: only where the kernel is inside the image. */
  itkSetEnumMacro(OutputRegionMode, OutputRegionModeEnum);
  itkGetEnumMacro(OutputRegionMode, OutputRegionModeEnum);
  virtual void
  SetOutputRegionModeToSame()
  {
    this->SetOutputRegionMode(SAME);
  }
  virtual void
  SetOutputRegionModeToValid()
  {
    this->SetOutputRegionMode(VALID);
  }

  /** Auto (the default): Direct for kernels of up to 50 voxels, else FFT. */
  itkSetEnumMacro(Method, MethodEnum);
  itkGetEnumMacro(Method, MethodEnum);

  /** Whose transforms: a library that is named must be there, or the filter throws before work starts; kernels of any
   * size go through transforms then. GetLastReport().transforms says whose they were. Default: Auto. */
  itkSetEnumMacro(TransformProvider, TransformProviderEnum);
  itkGetEnumMacro(TransformProvider, TransformProviderEnum);

  std::shared_ptr<const chunkwise::Operation>
  GetOperation(const chunkwise::FilterImage & image) const override;

  /** Windows over a part of the image: SetMaskImage, SetWeightImage, SetIgnoreNaN, SetEmptyValue. */
  itkChunkwiseDomainMacro();
  itkSetMacro(EmptyValue, double);
  itkGetConstMacro(EmptyValue, double);

protected:
  PrunedFFTConvolutionImageFilter();
  ~PrunedFFTConvolutionImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  void
  VerifyInputInformation() const override;
  void
  GenerateOutputInformation() override;
  void
  GenerateInputRequestedRegion() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  bool                  m_Normalize{ false };
  bool                  m_Correlate{ false };
  OutputRegionModeEnum  m_OutputRegionMode{ OutputRegionModeEnum::SAME };
  MethodEnum            m_Method{ MethodEnum::Auto };
  TransformProviderEnum m_TransformProvider{ TransformProviderEnum::Auto };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkPrunedFFTConvolutionImageFilter.hxx"
#endif

#endif
