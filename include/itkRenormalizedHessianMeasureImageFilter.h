/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedHessianMeasureImageFilter_h
#define itkRenormalizedHessianMeasureImageFilter_h

#include "chunkwiseStatistics.h"
#include "itkChunkwiseWindowImageFilter.h"
#include "itkRenormalizedDerivativeEnums.h"

#include <vector>

namespace itk
{
/** \class RenormalizedHessianMeasureImageFilter
 * \brief A measure of tubes, blobs or sheets by the eigenvalues of the Hessian, the largest over several scales.
 *
 * The second derivatives are those of RenormalizedDerivativeImageFilter, times sigma squared. docs/derivatives.md has
 * the measures.
 *
 * \par Boundary
 * Renormalized (the default): second derivatives are exact for polynomials of degree 2, up to the image's edge. In
 * every other boundary condition the image is continued beyond its edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Computed in float for float and 8- and
 * 16-bit integers, in double for the others; eigenvalues and measures in double.
 *
 * \par Memory
 * Beside input and output, planes of each thread that fit a core's cache.
 *
 * \par Streaming
 * Requests the output's requested region padded by the largest radius, and cut at the image; the whole input where a
 * contrast follows from it.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and instruction set.
 *
 * \par Differences from ITK
 * itk::HessianToObjectnessMeasureImageFilter has the same measure of Hessians by recursion;
 * itk::MultiScaleHessianBasedMeasureImageFilter holds the Hessians of a scale in memory.
 *
 * \par Source
 * A. F. Frangi and others, "Multiscale vessel enhancement filtering", MICCAI 1998; L. Antiga, "Generalizing vesselness
 * with respect to dimensionality and shape", Insight Journal 2007; docs/derivatives.md names the others.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedHessianMeasureImageFilter
  : public ChunkwiseWindowImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedHessianMeasureImageFilter);

  using Self = RenormalizedHessianMeasureImageFilter;
  using Superclass = ChunkwiseWindowImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedHessianMeasureImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "vesselness";
  }

  using MeasureEnum = RenormalizedDerivativeEnums::Measure;
  using KernelEnum = RenormalizedDerivativeEnums::Kernel;
  using ScalesType = std::vector<double>;

  /** Standard deviations of the Gaussians, in units of the image's spacing if UseImageSpacing is on. Default: 1. */
  void
  SetScales(const ScalesType & scales)
  {
    if (m_Scales != scales)
    {
      m_Scales = scales;
      this->Modified();
    }
  }
  const ScalesType &
  GetScales() const
  {
    return m_Scales;
  }

  /** Default: Frangi. */
  itkSetEnumMacro(Measure, MeasureEnum);
  itkGetEnumMacro(Measure, MeasureEnum);

  /** How far tubes must differ from sheets, and blobs from tubes; above 0. Default: 0.5. */
  itkSetMacro(Alpha, double);
  itkGetConstMacro(Alpha, double);

  /** How much tubes may look like blobs, and sheets like tubes; above 0. Default: 0.5. */
  itkSetMacro(Beta, double);
  itkGetConstMacro(Beta, double);

  /** Jerman: the share of the largest eigenvalue above which all tubes count alike, 0 to 1. Default: 0.5. */
  itkSetMacro(Tau, double);
  itkGetConstMacro(Tau, double);

  /** The norm of the Hessian from which on objectness counts, or the largest value that Meijering's and Jerman's
   * measures are divided by: one number, or one for each scale; 0 leaves it out. Default: none, which takes half the
   * largest norm, or the largest value, of the whole input. */
  void
  SetContrast(const ScalesType & contrast)
  {
    if (m_Contrast != contrast)
    {
      m_Contrast = contrast;
      this->Modified();
    }
  }
  const ScalesType &
  GetContrast() const
  {
    return m_Contrast;
  }

  /** Whether structures are dark. Default: off. */
  itkSetMacro(Dark, bool);
  itkGetConstMacro(Dark, bool);
  itkBooleanMacro(Dark);

  /** Whether objectness is multiplied by the largest magnitude of an eigenvalue. Default: off. */
  itkSetMacro(ScaleByLargest, bool);
  itkGetConstMacro(ScaleByLargest, bool);
  itkBooleanMacro(ScaleByLargest);

  /** Whether the output is the scale that has the largest measure, the first of equal ones; 0 where no measure is above
   * 0. Default: off. */
  itkSetMacro(OutputScale, bool);
  itkGetConstMacro(OutputScale, bool);
  itkBooleanMacro(OutputScale);

  /** Whether scales are in units of the image's spacing, or in voxels. Default: on. */
  itkSetMacro(UseImageSpacing, bool);
  itkGetConstMacro(UseImageSpacing, bool);
  itkBooleanMacro(UseImageSpacing);

  /** The weights of derivatives. Default: Exact. */
  itkSetEnumMacro(Kernel, KernelEnum);
  itkGetEnumMacro(Kernel, KernelEnum);

  /** The radius of Gaussians, in sigmas; above 0. Default: 4. */
  itkSetMacro(Cutoff, double);
  itkGetConstMacro(Cutoff, double);

protected:
  RenormalizedHessianMeasureImageFilter() = default;
  ~RenormalizedHessianMeasureImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("Scales", m_Scales);
    parameters.Set("Measure", ToWord(m_Measure));
    parameters.SetReal("Alpha", m_Alpha);
    parameters.SetReal("Beta", m_Beta);
    parameters.SetReal("Tau", m_Tau);
    parameters.Set("Contrast",
                   !m_Contrast.empty()                                             ? m_Contrast
                   : this->FollowsFromInput() && m_Found.size() == m_Scales.size() ? m_Found
                                                                                   : ScalesType{ 0.0 });
    parameters.Set("Dark", m_Dark);
    parameters.Set("ScaleByLargest", m_ScaleByLargest);
    parameters.Set("Result", m_OutputScale ? "scale" : "measure");
    parameters.Set("UseImageSpacing", m_UseImageSpacing);
    parameters.Set("Kernel", ToWord(m_Kernel));
    parameters.SetReal("Cutoff", m_Cutoff);
    return parameters;
  }
  std::shared_ptr<const chunkwise::Operation>
  GetOperation(const chunkwise::FilterImage & image) const override
  {
    if (this->FollowsFromInput())
    {
      itkExceptionMacro("Contrast: not set, and as a part of something else the filter has no input to take it from");
    }
    return Superclass::GetOperation(image);
  }
  void
  GenerateInputRequestedRegion() override
  {
    Superclass::GenerateInputRequestedRegion();
    auto * const input = const_cast<TInputImage *>(this->GetInput());
    if (this->FollowsFromInput() && input)
    {
      input->SetRequestedRegionToLargestPossibleRegion();
    }
  }
  void
  GenerateData() override
  {
    if (this->FollowsFromInput() && this->GetOutput()->GetRequestedRegion().GetNumberOfPixels() > 0)
    {
      // Pieces after the first one keep what it found.
      this->ComputeFromWholeInput([this](auto & manager, const auto & request, auto & monitor) {
        m_Found = chunkwise::EstimateParameter(
          manager, request, *chunkwise::GetFilter("vesselness").FindParameter("Contrast"), &monitor);
      });
    }
    Superclass::GenerateData();
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Scales:";
    for (const double scale : m_Scales)
    {
      os << " " << scale;
    }
    os << std::endl;
    os << indent << "Measure: " << m_Measure << std::endl;
    os << indent << "Alpha: " << m_Alpha << std::endl;
    os << indent << "Beta: " << m_Beta << std::endl;
    os << indent << "Tau: " << m_Tau << std::endl;
    os << indent << "Contrast:";
    for (const double contrast : m_Contrast)
    {
      os << " " << contrast;
    }
    os << std::endl;
    os << indent << "Dark: " << (m_Dark ? "On" : "Off") << std::endl;
    os << indent << "ScaleByLargest: " << (m_ScaleByLargest ? "On" : "Off") << std::endl;
    os << indent << "OutputScale: " << (m_OutputScale ? "On" : "Off") << std::endl;
    os << indent << "UseImageSpacing: " << (m_UseImageSpacing ? "On" : "Off") << std::endl;
    os << indent << "Kernel: " << m_Kernel << std::endl;
    os << indent << "Cutoff: " << m_Cutoff << std::endl;
  }

private:
  bool
  FollowsFromInput() const
  {
    return m_Contrast.empty() && m_Measure != MeasureEnum::Sato;
  }

  ScalesType  m_Scales{ 1.0 };
  MeasureEnum m_Measure{ MeasureEnum::Frangi };
  double      m_Alpha{ 0.5 };
  double      m_Beta{ 0.5 };
  double      m_Tau{ 0.5 };
  ScalesType  m_Contrast;
  ScalesType  m_Found; ///< contrasts of the input of the last run
  bool        m_Dark{ false };
  bool        m_ScaleByLargest{ false };
  bool        m_OutputScale{ false };
  bool        m_UseImageSpacing{ true };
  KernelEnum  m_Kernel{ KernelEnum::Exact };
  double      m_Cutoff{ 4.0 };
};
} // namespace itk

#endif
