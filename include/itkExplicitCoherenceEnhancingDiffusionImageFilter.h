/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkExplicitCoherenceEnhancingDiffusionImageFilter_h
#define itkExplicitCoherenceEnhancingDiffusionImageFilter_h

#include "itkMaskedSmoothingImageFilterBase.h"

namespace itk
{
/** \class ExplicitCoherenceEnhancingDiffusionImageFilter
 * \brief Coherence-enhancing diffusion: smooths along structures such as lines, and closes their gaps.
 *
 * A fixed number of explicit steps of the diffusion equation. Before each, the structure tensor of the image (Gaussian
 * derivatives of Sigma, products smoothed with OuterSigma) gives each voxel a diffusion tensor with the same
 * eigenvectors: Alpha across structures, and Alpha + (1 - Alpha) exp(-Contrast^4 / k) along the direction in which the
 * image changes least, k being the sum of the squared differences of the structure tensor's eigenvalues.
 * docs/enhancement.md has the formulas.
 *
 * \par Boundary
 * No flux crosses the image's edge; windows of the structure tensor end there. With a MaskImage the same holds for the
 * edge of the mask: along each axis, a window ends at the first voxel outside. Voxels outside keep their value, or have
 * OutsideValue.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Computed in float for float and 8- and
 * 16-bit integers, in double for the others; integer outputs are rounded to nearest, ties to even, and clamped.
 *
 * \par Memory
 * Eight images of the type that computes, five in two dimensions, and what a structure tensor needs, of a chunk and
 * its surroundings.
 *
 * \par Streaming
 * Requests the output's requested region padded by one voxel and the radii of both Gaussians for each iteration, and
 * cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and instruction set.
 *
 * \par Source
 * J. Weickert, "Coherence-enhancing diffusion filtering", International Journal of Computer Vision 31, 1999.
 *
 * \sa FixedConductanceDiffusionImageFilter, RenormalizedStructureTensorImageFilter
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ExplicitCoherenceEnhancingDiffusionImageFilter
  : public MaskedSmoothingImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ExplicitCoherenceEnhancingDiffusionImageFilter);

  using Self = ExplicitCoherenceEnhancingDiffusionImageFilter;
  using Superclass = MaskedSmoothingImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ExplicitCoherenceEnhancingDiffusionImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "coherence-diffusion";
  }

  /** The number of iterations, 1 to 10000. Default: 10. */
  itkSetMacro(NumberOfIterations, unsigned int);
  itkGetConstMacro(NumberOfIterations, unsigned int);

  /** The standard deviation of the derivatives' Gaussian, above 0. Default: 1. */
  itkSetMacro(Sigma, double);
  itkGetConstMacro(Sigma, double);

  /** The standard deviation of the Gaussian that smooths the structure tensor, at least 0. Default: 3. */
  itkSetMacro(OuterSigma, double);
  itkGetConstMacro(OuterSigma, double);

  /** Diffusion across structures, above 0 and at most 1. Default: 0.001. */
  itkSetMacro(Alpha, double);
  itkGetConstMacro(Alpha, double);

  /** The length of a gradient, smoothed, from which on structures count as such; at least 0. Default: 1. */
  itkSetMacro(Contrast, double);
  itkGetConstMacro(Contrast, double);

  /** The time of an iteration. Default: 0, which takes half of the largest stable one. */
  itkSetMacro(TimeStep, double);
  itkGetConstMacro(TimeStep, double);

  /** The radius of the Gaussians, in sigmas; above 0. Default: 3. */
  itkSetMacro(Cutoff, double);
  itkGetConstMacro(Cutoff, double);

  /** Whether lengths are in units of the image's spacing, or in voxels. Default: on. */
  itkSetMacro(UseImageSpacing, bool);
  itkGetConstMacro(UseImageSpacing, bool);
  itkBooleanMacro(UseImageSpacing);

protected:
  ExplicitCoherenceEnhancingDiffusionImageFilter() = default;
  ~ExplicitCoherenceEnhancingDiffusionImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.SetInteger("Iterations", m_NumberOfIterations);
    parameters.Set("Sigma", std::vector<double>{ m_Sigma });
    parameters.Set("OuterSigma", std::vector<double>{ m_OuterSigma });
    parameters.SetReal("Alpha", m_Alpha);
    parameters.SetReal("Contrast", m_Contrast);
    if (m_TimeStep != 0)
    {
      parameters.SetReal("TimeStep", m_TimeStep);
    }
    parameters.SetReal("Cutoff", m_Cutoff);
    parameters.Set("UseImageSpacing", m_UseImageSpacing);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "NumberOfIterations: " << m_NumberOfIterations << std::endl;
    os << indent << "Sigma: " << m_Sigma << std::endl;
    os << indent << "OuterSigma: " << m_OuterSigma << std::endl;
    os << indent << "Alpha: " << m_Alpha << std::endl;
    os << indent << "Contrast: " << m_Contrast << std::endl;
    os << indent << "TimeStep: " << m_TimeStep << std::endl;
    os << indent << "Cutoff: " << m_Cutoff << std::endl;
    os << indent << "UseImageSpacing: " << (m_UseImageSpacing ? "On" : "Off") << std::endl;
  }

private:
  unsigned int m_NumberOfIterations{ 10 };
  double       m_Sigma{ 1.0 };
  double       m_OuterSigma{ 3.0 };
  double       m_Alpha{ 0.001 };
  double       m_Contrast{ 1.0 };
  double       m_TimeStep{ 0.0 };
  double       m_Cutoff{ 3.0 };
  bool         m_UseImageSpacing{ true };
};
} // namespace itk

#endif
