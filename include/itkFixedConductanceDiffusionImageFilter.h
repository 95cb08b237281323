/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkFixedConductanceDiffusionImageFilter_h
#define itkFixedConductanceDiffusionImageFilter_h

#include "chunkwiseStatistics.h"
#include "itkMaskedSmoothingImageFilterBase.h"

namespace itk
{
/** \class FixedConductanceDiffusionImageFilter
 * \brief Anisotropic diffusion: smooths, and stops at edges. Gradient diffusion of Perona and Malik, or curvature
 * diffusion.
 *
 * Each iteration adds to a voxel the fluxes from its neighbors. A flux is the difference times exp(-g^2 / 2 c^2), with
 * g the length of the gradient between both voxels and c the product of Conductance and GradientMagnitude. Curvature
 * diffusion moves level sets instead, and keeps thin structures for longer. docs/enhancement.md has the formulas.
 *
 * \par Boundary
 * Beyond the image's edge the nearest voxel counts: no flux crosses the edge. With a MaskImage the same holds for the
 * edge of the mask; voxels outside keep their value, or have OutsideValue.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Computed in float for float and 8- and
 * 16-bit integers, in double for the others; integer outputs are rounded to nearest, ties to even, and clamped.
 *
 * \par Memory
 * Two images of the type that computes, of a chunk and as many voxels around it as there are iterations.
 *
 * \par Streaming
 * Requests the output's requested region padded by a voxel for each iteration, and cut at the image, or to the whole
 * input if GradientMagnitude is not set.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and instruction set.
 *
 * \par Source
 * P. Perona, J. Malik, "Scale-space and edge detection using anisotropic diffusion", IEEE Transactions on Pattern
 * Analysis and Machine Intelligence 12(7), 1990. R. T. Whitaker, X. Xue, "Variable-conductance, level-set curvature for
 * image denoising", ICIP 2001.
 *
 * \par Differences from ITK
 * itk::GradientAnisotropicDiffusionImageFilter and itk::CurvatureAnisotropicDiffusionImageFilter take the gradient
 * magnitude anew from the whole image before each iteration. Here it stays that of the input, as there with a
 * ConductanceScalingUpdateInterval of as many iterations. A time step that is not stable is an error, not a warning.
 *
 * \sa GradientAnisotropicDiffusionImageFilter, CurvatureAnisotropicDiffusionImageFilter
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT FixedConductanceDiffusionImageFilter
  : public MaskedSmoothingImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(FixedConductanceDiffusionImageFilter);

  using Self = FixedConductanceDiffusionImageFilter;
  using Superclass = MaskedSmoothingImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(FixedConductanceDiffusionImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "diffusion";
  }

  /** The number of iterations, 1 to 10000. Default: 5. */
  itkSetMacro(NumberOfIterations, unsigned int);
  itkGetConstMacro(NumberOfIterations, unsigned int);

  /** Whether curvature diffuses, not gradients. Default: off. */
  itkSetMacro(Curvature, bool);
  itkGetConstMacro(Curvature, bool);
  itkBooleanMacro(Curvature);

  /** Gradients that are so many times the gradient magnitude are edges; at least 0. Default: 1. */
  itkSetMacro(Conductance, double);
  itkGetConstMacro(Conductance, double);

  /** The length of a gradient that conductance is measured in. Default: below 0, which takes the root of the mean
   * squared gradient of the whole input, inside the mask. */
  itkSetMacro(GradientMagnitude, double);
  itkGetConstMacro(GradientMagnitude, double);

  /** The time of an iteration. Default: 0, which takes half of the smallest spacing over 2 to the power of the axes. */
  itkSetMacro(TimeStep, double);
  itkGetConstMacro(TimeStep, double);

  /** Whether differences are divided by the image's spacing. Default: on. */
  itkSetMacro(UseImageSpacing, bool);
  itkGetConstMacro(UseImageSpacing, bool);
  itkBooleanMacro(UseImageSpacing);

protected:
  FixedConductanceDiffusionImageFilter() = default;
  ~FixedConductanceDiffusionImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.SetInteger("Iterations", m_NumberOfIterations);
    parameters.Set("Method", m_Curvature ? "curvature" : "gradient");
    parameters.SetReal("Conductance", m_Conductance);
    parameters.SetReal("GradientMagnitude", m_GradientMagnitude < 0 ? m_Found : m_GradientMagnitude);
    if (m_TimeStep != 0)
    {
      parameters.SetReal("TimeStep", m_TimeStep);
    }
    parameters.Set("UseImageSpacing", m_UseImageSpacing);
    return parameters;
  }
  std::shared_ptr<const chunkwise::Operation>
  GetOperation(const chunkwise::FilterImage & image) const override
  {
    if (m_GradientMagnitude < 0)
    {
      itkExceptionMacro(
        "GradientMagnitude: not set, and as a part of something else the filter has no input to take it from");
    }
    return Superclass::GetOperation(image);
  }
  void
  GenerateInputRequestedRegion() override
  {
    Superclass::GenerateInputRequestedRegion();
    for (unsigned int i = 0; m_GradientMagnitude < 0 && i < this->GetNumberOfIndexedInputs(); ++i)
    {
      if (DataObject * const input = this->ProcessObject::GetInput(i))
      {
        input->SetRequestedRegionToLargestPossibleRegion();
      }
    }
  }
  void
  GenerateData() override
  {
    if (m_GradientMagnitude < 0 && this->GetOutput()->GetRequestedRegion().GetNumberOfPixels() > 0)
    {
      // Pieces after the first one keep what it found.
      this->ComputeFromWholeInput([this](auto & manager, const auto & request, auto & monitor) {
        m_Found = chunkwise::EstimateParameter(
                    manager, request, *chunkwise::GetFilter("diffusion").FindParameter("GradientMagnitude"), &monitor)
                    .at(0);
      });
    }
    Superclass::GenerateData();
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "NumberOfIterations: " << m_NumberOfIterations << std::endl;
    os << indent << "Curvature: " << (m_Curvature ? "On" : "Off") << std::endl;
    os << indent << "Conductance: " << m_Conductance << std::endl;
    os << indent << "GradientMagnitude: " << m_GradientMagnitude << std::endl;
    os << indent << "TimeStep: " << m_TimeStep << std::endl;
    os << indent << "UseImageSpacing: " << (m_UseImageSpacing ? "On" : "Off") << std::endl;
  }

private:
  unsigned int m_NumberOfIterations{ 5 };
  bool         m_Curvature{ false };
  double       m_Conductance{ 1.0 };
  double       m_GradientMagnitude{ -1.0 };
  double       m_Found{ 0.0 }; ///< the gradient magnitude of the input of the last run
  double       m_TimeStep{ 0.0 };
  bool         m_UseImageSpacing{ true };
};
} // namespace itk

#endif
