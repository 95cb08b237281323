/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkPrunedFFTGaussianImageFilter_h
#define itkPrunedFFTGaussianImageFilter_h

#include "chunkwiseImageConvolutionOperation.h"
#include "itkChunkwiseConvolutionEnums.h"
#include "itkRenormalizedGaussianImageFilter.h"

#include <type_traits>

namespace itk
{
/** \class PrunedFFTGaussianImageFilter
 * \brief Convolution with a Gaussian of any width, in a time that hardly depends on it.
 *
 * Computes what RenormalizedGaussianImageFilter with the same parameters does, one spatial axis after the other, but
 * through Fourier transforms, as PrunedFFTConvolutionImageFilter. For sigmas of more than some twenty voxels: of
 * smaller ones RenormalizedGaussianImageFilter is faster.
 *
 * \par Boundary
 * The boundary conditions are those of RenormalizedGaussianImageFilter. Renormalized (the default): a constant image
 * stays constant up to its edge, but for rounding.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to float or double, which is also what is kept between the axes. Computed
 * in double where pixels are double or integers of more than 16 bits.
 *
 * \par Memory
 * A chunk needs its input, its output, two intermediate images and a half spectrum, all in the type of the output.
 *
 * \par Streaming
 * Requests the tiles of the image's grid that the output's requested region meets, padded by the kernel's radius, and
 * cut at the image.
 *
 * \par Determinism
 * The CPU gives the same bits for every division, requested region and number of threads. Devices give the same bits
 * for the same chunks; else results differ by rounding. The relative L2 difference from exact sums is below 1e-6 in
 * float, and 1e-14 where input and output are double. NaN and infinities spread over a tile, or a chunk.
 * RenormalizedGaussianImageFilter gives the same bits on devices, too, and its NaN and infinities spread less.
 *
 * \par Source
 * Pruned transforms: A. Zlateski, K. Lee, H. S. Seung, "ZNNi: maximizing the inference throughput of 3D convolutional
 * networks on CPUs and GPUs", SC16, section III.
 *
 * \sa RenormalizedGaussianImageFilter PrunedFFTConvolutionImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT PrunedFFTGaussianImageFilter
  : public RenormalizedGaussianImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(PrunedFFTGaussianImageFilter);

  using Self = PrunedFFTGaussianImageFilter;
  using Superclass = RenormalizedGaussianImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(PrunedFFTGaussianImageFilter);

  static_assert(std::is_floating_point<typename Superclass::OutputPixelType>::value,
                "the output's pixels are float or double");

  const char *
  GetFilterName() const override
  {
    return "gaussian";
  }

  using TransformProviderEnum = ChunkwiseConvolutionEnums::TransformProvider;

  /** Whose transforms: a library that is named must be there, or the filter throws before work starts.
   * GetLastReport().transforms says whose they were. Default: Auto. */
  itkSetEnumMacro(TransformProvider, TransformProviderEnum);
  itkGetEnumMacro(TransformProvider, TransformProviderEnum);

protected:
  PrunedFFTGaussianImageFilter() = default;
  ~PrunedFFTGaussianImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("Transforms", true);
    parameters.Set("TransformProvider",
                   chunkwise::TransformProviderName(ChunkwiseTransformProvider(m_TransformProvider)));
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "TransformProvider: " << m_TransformProvider << std::endl;
  }

private:
  TransformProviderEnum m_TransformProvider{ TransformProviderEnum::Auto };
};
} // namespace itk

#endif
