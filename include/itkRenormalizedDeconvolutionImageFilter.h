/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedDeconvolutionImageFilter_h
#define itkRenormalizedDeconvolutionImageFilter_h

#include "itkChunkwiseKernelStack.h"
#include "itkDeconvolutionImageFilterBase.h"

namespace itk
{
/** \class RenormalizedDeconvolutionImageFilter
 * \brief Iterative deconvolution, by Richardson-Lucy or Landweber, with masks and weights, and without rings at the
 * edge.
 *
 * The estimate is on the image's grid, grown by the kernel to all sides: light from beyond the edge has a place there,
 * and the output is the part inside. Weights of 0 say where the image is not known. Each correction is divided by the
 * light that the known voxels receive of a voxel. The kernel's center is at half its size, rounded down. Kernel images
 * are not inputs of the pipeline: they are read as they are when the filter runs.
 *
 * \par Differences from ITK
 * itk::RichardsonLucyDeconvolutionImageFilter and itk::LandweberDeconvolutionImageFilter continue the image beyond its
 * edge by a boundary condition, begin with the image, and have no weights and no background.
 *
 * Wiener, Tikhonov and Inverse are one division of spectra, as itk::WienerDeconvolutionImageFilter,
 * itk::TikhonovDeconvolutionImageFilter and itk::InverseDeconvolutionImageFilter define it, with a kernel that
 * Normalize divides by its sum by default. The image goes on beyond its edge with its nearest voxels, up to products of
 * 2, 3 and 5; ITK's filters take other sizes with FFTW, and from ITK 5.3 on for kernels of odd size, and so have other
 * results. Only the members KernelImage, Normalize and those named there have an effect.
 *
 * \par Boundary
 * Nothing is known of the image beyond its edge: its weight is 0 there.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to any of them. Computed in float for float and 8- and 16-bit integers,
 * in double for the others; integer outputs are rounded to nearest, ties to even, and clamped.
 *
 * \par Memory
 * Four images of the grown size, in float or double; seven with Accelerate, five with TotalVariation; and the spectrum
 * of a convolution. Wiener, Tikhonov and Inverse: the spectrum of the grown image, in double.
 *
 * \par Streaming
 * A voxel depends on the whole image: the filter computes the largest possible region, whatever is requested.
 *
 * \par Determinism
 * The same bits for every division into chunks and every number of threads. Devices do not compute it.
 *
 * \par Source
 * W. H. Richardson, "Bayesian-based iterative method of image restoration", J. Opt. Soc. Am. 62(1), 1972; L. B. Lucy,
 * "An iterative technique for the rectification of observed distributions", Astron. J. 79, 1974; M. Bertero, P.
 * Boccacci, "A simple method for the reduction of boundary effects in the Richardson-Lucy approach", Astron. Astrophys.
 * 437, 2005.
 *
 * \sa RichardsonLucyDeconvolutionImageFilter LandweberDeconvolutionImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TKernelImage = TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedDeconvolutionImageFilter
  : public DeconvolutionImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedDeconvolutionImageFilter);

  using Self = RenormalizedDeconvolutionImageFilter;
  using Superclass = DeconvolutionImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedDeconvolutionImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(std::is_floating_point<typename Superclass::OutputPixelType>::value ||
                  std::is_integral<typename Superclass::OutputPixelType>::value,
                "estimates are numbers");

  const char *
  GetFilterName() const override
  {
    return "deconvolve";
  }

  using KernelImageType = TKernelImage;
  /** The kernel: all of its weights are 0 or more with RichardsonLucy. */
  itkSetConstObjectMacro(KernelImage, KernelImageType);
  itkGetConstObjectMacro(KernelImage, KernelImageType);

  /** The kernel with which corrections are convolved, of the kernel's size. Default: none, the kernel mirrored. */
  itkSetConstObjectMacro(BackProjector, KernelImageType);
  itkGetConstObjectMacro(BackProjector, KernelImageType);

  /** Wiener: the squared magnitude of the noise in the image's transform, 0 or more. The transform has no
   * factor, so white noise of variance v has the value v times the number of transformed voxels. Default: 0. */
  itkSetMacro(NoiseVariance, double);
  itkGetConstMacro(NoiseVariance, double);

  /** Tikhonov: what is added to the squared magnitudes of the kernel's transform, 0 or more. Default: 0. */
  itkSetMacro(RegularizationConstant, double);
  itkGetConstMacro(RegularizationConstant, double);

  /** Wiener, Tikhonov and Inverse: frequencies with divisors below this magnitude are 0. Default: 1e-4. */
  itkSetMacro(KernelZeroMagnitudeThreshold, double);
  itkGetConstMacro(KernelZeroMagnitudeThreshold, double);

  ModifiedTimeType
  GetMTime() const override
  {
    ModifiedTimeType time = Superclass::GetMTime();
    time = m_KernelImage ? std::max(time, m_KernelImage->GetMTime()) : time;
    return m_BackProjector ? std::max(time, m_BackProjector->GetMTime()) : time;
  }

protected:
  RenormalizedDeconvolutionImageFilter() = default;
  ~RenormalizedDeconvolutionImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    if (!m_KernelImage || !ChunkwiseHasAllVoxels(m_KernelImage.GetPointer()))
    {
      itkExceptionMacro("KernelImage: it was not set, or has no voxels; it must be up to date");
    }
    parameters.Set("KernelImage",
                   MakeChunkwiseKernelStack<ImageDimension>(m_KernelImage->GetLargestPossibleRegion().GetSize(),
                                                            ChunkwiseReadVoxels(m_KernelImage.GetPointer())));
    if (m_BackProjector)
    {
      if (!ChunkwiseHasAllVoxels(m_BackProjector.GetPointer()))
      {
        itkExceptionMacro("BackProjector: it has no voxels; it must be up to date");
      }
      parameters.Set("BackProjector",
                     MakeChunkwiseKernelStack<ImageDimension>(m_BackProjector->GetLargestPossibleRegion().GetSize(),
                                                              ChunkwiseReadVoxels(m_BackProjector.GetPointer())));
    }
    parameters.SetReal("NoiseVariance", m_NoiseVariance);
    parameters.SetReal("RegularizationConstant", m_RegularizationConstant);
    parameters.SetReal("KernelZeroMagnitudeThreshold", m_KernelZeroMagnitudeThreshold);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "NoiseVariance: " << m_NoiseVariance << std::endl;
    os << indent << "RegularizationConstant: " << m_RegularizationConstant << std::endl;
    os << indent << "KernelZeroMagnitudeThreshold: " << m_KernelZeroMagnitudeThreshold << std::endl;
    itkPrintSelfObjectMacro(KernelImage);
    itkPrintSelfObjectMacro(BackProjector);
  }

private:
  typename KernelImageType::ConstPointer m_KernelImage;
  typename KernelImageType::ConstPointer m_BackProjector;
  double                                 m_NoiseVariance{ 0.0 };
  double                                 m_RegularizationConstant{ 0.0 };
  double                                 m_KernelZeroMagnitudeThreshold{ 1e-4 };
};
} // namespace itk

#endif
