/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedStructureTensorImageFilter_h
#define itkRenormalizedStructureTensorImageFilter_h

#include "itkDerivativeComponentsImageFilterBase.h"

namespace itk
{
/** \class RenormalizedStructureTensorImageFilter
 * \brief Eigenvalues, orientation, coherence, cornerness or elements of the structure tensor of an image.
 *
 * The gradient of the image smoothed by a Gaussian (SetSigma, or another operator) is multiplied with itself; the
 * products are smoothed by a second Gaussian (SetOuterSigma). An output that is an itk::VectorImage has all
 * eigenvalues, elements or components of the orientation, any other one the one with a number.
 *
 * - Orientation: the unit vector of the smallest eigenvalue, along which the image changes least. Its component with
 *   the largest magnitude is positive; it is zero where another eigenvalue is equal, within 1e-6 of the largest one.
 * - Eigenvectors: the unit vectors of the ascending eigenvalues, one after the other, by the same rules.
 * - Coherence: (largest - smallest) / (largest + smallest) eigenvalue, 0 where both are 0.
 * - Cornerness: the determinant minus Harris times the trace to the power of the number of axes.
 *
 * Vectors are along the axes of the image, not of physical space.
 *
 * \par Boundary
 * Renormalized (the default): windows end at the image's edge; the gradient is exact for linear images there. In every
 * other boundary condition the image and its gradient are continued beyond the edge; beyond the edge of Constant the
 * gradient is 0.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Computed in float for float and 8- and
 * 16-bit integers, in double for the others, eigenvalues always in double; integer outputs are rounded to nearest, ties
 * to even, and clamped.
 *
 * \par Memory
 * The gradient of each chunk: a number of the type that computes for each axis and voxel.
 *
 * \par Streaming
 * Requests the output's requested region padded by both radii, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and instruction set.
 *
 * \par Source
 * W. Foerstner, E. Guelch, "A fast operator for detection and precise location of distinct points, corners and centres
 * of circular features", ISPRS 1987; J. Bigun, G. Granlund, "Optimal orientation detection of linear symmetry", ICCV
 * 1987; C. Harris, M. Stephens, "A combined corner and edge detector", Alvey Vision Conference 1988.
 *
 * \par Differences from ITK
 * ITK's own modules have no filter of structure tensors.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedStructureTensorImageFilter
  : public DerivativeComponentsImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedStructureTensorImageFilter);

  using Self = RenormalizedStructureTensorImageFilter;
  using Superclass = DerivativeComponentsImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedStructureTensorImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  const char *
  GetFilterName() const override
  {
    return "structure-tensor";
  }

  using SigmaArrayType = typename Superclass::SigmaArrayType;
  /** The standard deviation of the Gaussian that smooths products, per axis, in the unit of Sigma. 0: the axis is not
   * smoothed. Default: 2. */
  itkSetMacro(OuterSigmaArray, SigmaArrayType);
  itkGetConstReferenceMacro(OuterSigmaArray, SigmaArrayType);
  void
  SetOuterSigma(double sigma)
  {
    SigmaArrayType same;
    same.Fill(sigma);
    this->SetOuterSigmaArray(same);
  }
  /** The standard deviation along x. */
  double
  GetOuterSigma() const
  {
    return m_OuterSigmaArray[0];
  }

  using ResultEnum = RenormalizedDerivativeEnums::TensorResult;
  /** The result that is made of the structure tensor. Default: Eigenvalues. */
  itkSetEnumMacro(Result, ResultEnum);
  itkGetEnumMacro(Result, ResultEnum);

  /** The number of the result, from 0 on, if the output is no itk::VectorImage. Default: 0. */
  itkSetMacro(Number, unsigned int);
  itkGetConstMacro(Number, unsigned int);

  /** The factor of the trace in cornerness, at least 0. Default: 0.05. */
  itkSetMacro(Harris, double);
  itkGetConstMacro(Harris, double);

protected:
  RenormalizedStructureTensorImageFilter() { m_OuterSigmaArray.Fill(2.0); }
  ~RenormalizedStructureTensorImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("Result", ToWord(m_Result));
    parameters.SetInteger("Number", m_Number);
    parameters.Set("OuterSigma", this->OverSpatialAxes(m_OuterSigmaArray));
    parameters.SetReal("Harris", m_Harris);
    return parameters;
  }
  std::int64_t
  CountComponents() const override
  {
    const std::int64_t axes = Superclass::CountComponents();
    return m_Result == ResultEnum::Elements       ? axes * (axes + 1) / 2
           : m_Result == ResultEnum::Eigenvectors ? axes * axes
                                                  : axes;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "OuterSigmaArray: " << m_OuterSigmaArray << std::endl;
    os << indent << "Result: " << m_Result << std::endl;
    os << indent << "Number: " << m_Number << std::endl;
    os << indent << "Harris: " << m_Harris << std::endl;
  }

private:
  SigmaArrayType m_OuterSigmaArray;
  ResultEnum     m_Result{ ResultEnum::Eigenvalues };
  unsigned int   m_Number{ 0 };
  double         m_Harris{ 0.05 };
};
} // namespace itk

#endif
