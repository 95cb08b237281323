/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkDeconvolutionImageFilterBase_h
#define itkDeconvolutionImageFilterBase_h

#include "itkSpatialAxesImageFilterBase.h"
#include "itkDeconvolutionEnums.h"

#include <limits>

namespace itk
{
/** \class DeconvolutionImageFilterBase
 * \brief The setters that deconvolutions with one kernel, and with kernels that vary, have in common.
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage>
class ITK_TEMPLATE_EXPORT DeconvolutionImageFilterBase : public SpatialAxesImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(DeconvolutionImageFilterBase);

  using Self = DeconvolutionImageFilterBase;
  using Superclass = SpatialAxesImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(DeconvolutionImageFilterBase);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(std::is_floating_point<typename Superclass::OutputPixelType>::value ||
                  std::is_integral<typename Superclass::OutputPixelType>::value,
                "estimates are numbers");

  using AlgorithmEnum = DeconvolutionEnums::Algorithm;

  /** Weights of voxels, or a mask: where it is 0 the image is not known. Default: none, all weights are 1. */
  using WeightImageType = Image<float, ImageDimension>;
  itkSetInputMacro(WeightImage, WeightImageType);
  itkGetInputMacro(WeightImage, WeightImageType);

  /** The first estimate. Default: none, the image's mean. */
  using StartImageType = TInputImage;
  itkSetInputMacro(StartImage, StartImageType);
  itkGetInputMacro(StartImage, StartImageType);

  /** Default: RichardsonLucy. */
  itkSetEnumMacro(Algorithm, AlgorithmEnum);
  itkGetEnumMacro(Algorithm, AlgorithmEnum);

  /** Iterations at most, 1 or more. Default: 10. */
  itkSetMacro(NumberOfIterations, unsigned int);
  itkGetConstMacro(NumberOfIterations, unsigned int);

  /** Whether each kernel is divided by its sum. Default: on. */
  itkSetMacro(Normalize, bool);
  itkGetConstMacro(Normalize, bool);
  itkBooleanMacro(Normalize);

  /** The image's value without light, 0 or more. Default: 0. */
  itkSetMacro(Background, double);
  itkGetConstMacro(Background, double);

  /** RichardsonLucy: a voxel of which no more light is expected has no share in corrections, 0 or more. Default: 0. */
  itkSetMacro(LeastExpected, double);
  itkGetConstMacro(LeastExpected, double);

  /** RichardsonLucy: the weight of total variation, 0 or more. Default: 0. */
  itkSetMacro(TotalVariation, double);
  itkGetConstMacro(TotalVariation, double);

  /** Landweber and ProjectedLandweber: the part of each correction, above 0. Default: 1. */
  itkSetMacro(Relaxation, double);
  itkGetConstMacro(Relaxation, double);

  /** Whether estimates are extrapolated (Biggs and Andrews). Default: off. */
  itkSetMacro(Accelerate, bool);
  itkGetConstMacro(Accelerate, bool);
  itkBooleanMacro(Accelerate);

  /** The filter stops once an iteration changes no more than this part of the estimate's norm. Default: 0, never. */
  itkSetMacro(RelativeChange, double);
  itkGetConstMacro(RelativeChange, double);

  /** The filter stops once the mean squared residual, in units of the expected value with RichardsonLucy, is no more
   * than this. Default: 0, never. */
  itkSetMacro(Discrepancy, double);
  itkGetConstMacro(Discrepancy, double);

  /** Voxels of this value and more have the weight 0. Default: infinity. */
  itkSetMacro(Saturation, double);
  itkGetConstMacro(Saturation, double);

protected:
  DeconvolutionImageFilterBase()
  {
    this->AddOptionalInputName("WeightImage", 1);
    this->AddOptionalInputName("StartImage", 2);
  }
  ~DeconvolutionImageFilterBase() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    constexpr const char *      names[] = { "richardson-lucy", "landweber", "projected-landweber",
                                            "wiener",          "tikhonov",  "inverse" };
    parameters.Set("Algorithm", names[static_cast<int>(m_Algorithm)]);
    parameters.SetInteger("NumberOfIterations", m_NumberOfIterations);
    parameters.Set("Normalize", m_Normalize);
    parameters.SetReal("Background", m_Background);
    parameters.SetReal("LeastExpected", m_LeastExpected);
    parameters.SetReal("TotalVariation", m_TotalVariation);
    parameters.SetReal("Relaxation", m_Relaxation);
    parameters.Set("Accelerate", m_Accelerate);
    parameters.SetReal("RelativeChange", m_RelativeChange);
    parameters.SetReal("Discrepancy", m_Discrepancy);
    if (m_Saturation < std::numeric_limits<double>::infinity())
    {
      parameters.SetReal("Saturation", m_Saturation);
    }
    return parameters;
  }
  /** The operation gives the output's kind itself. */
  chunkwise::PixelType
  GetOperationKind() const override
  {
    return chunkwise::PixelTypeOf<typename Superclass::OutputPixelType>();
  }
  chunkwise::BufferView
  GetInputView(unsigned int i) const override
  {
    if (i == 1 && this->GetWeightImage())
    {
      return this->ViewOf(*this->GetWeightImage(), "WeightImage");
    }
    return i > 0 && this->GetStartImage() ? this->ViewOf(*this->GetStartImage(), "StartImage")
                                          : Superclass::GetInputView(i);
  }
  chunkwise::PixelType
  GetInputKind(unsigned int i) const override
  {
    return i == 1 && this->GetWeightImage() ? chunkwise::PixelType::Float32 : Superclass::GetInputKind(i);
  }
  bool
  GivesWholeOutput() const override
  {
    return true;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Algorithm: " << m_Algorithm << std::endl;
    os << indent << "NumberOfIterations: " << m_NumberOfIterations << std::endl;
    os << indent << "Normalize: " << (m_Normalize ? "On" : "Off") << std::endl;
    os << indent << "Background: " << m_Background << std::endl;
    os << indent << "LeastExpected: " << m_LeastExpected << std::endl;
    os << indent << "TotalVariation: " << m_TotalVariation << std::endl;
    os << indent << "Relaxation: " << m_Relaxation << std::endl;
    os << indent << "Accelerate: " << (m_Accelerate ? "On" : "Off") << std::endl;
    os << indent << "RelativeChange: " << m_RelativeChange << std::endl;
    os << indent << "Discrepancy: " << m_Discrepancy << std::endl;
    os << indent << "Saturation: " << m_Saturation << std::endl;
  }

private:
  AlgorithmEnum m_Algorithm{ AlgorithmEnum::RichardsonLucy };
  unsigned int  m_NumberOfIterations{ 10 };
  bool          m_Normalize{ true };
  double        m_Background{ 0.0 };
  double        m_LeastExpected{ 0.0 };
  double        m_TotalVariation{ 0.0 };
  double        m_Relaxation{ 1.0 };
  bool          m_Accelerate{ false };
  double        m_RelativeChange{ 0.0 };
  double        m_Discrepancy{ 0.0 };
  double        m_Saturation{ std::numeric_limits<double>::infinity() };
};
} // namespace itk

#endif
