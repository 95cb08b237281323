/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedCurvatureImageFilter_h
#define itkRenormalizedCurvatureImageFilter_h

#include "itkDerivativeImageFilterBase.h"

namespace itk
{
/** \class RenormalizedCurvatureImageFilter
 * \brief The curvature of the isosurfaces of an image smoothed by a Gaussian; of an image with two spatial axes, of its
 * isocontours.
 *
 * With the gradient g, the Hessian H and n = g / |g|, at each voxel of the surface through it:
 *
 * - LevelSet: div n = (tr H - n H n) / |g|, the sum of both principal curvatures, or the curvature of the isocontour.
 * - Mean: LevelSet divided by the number of spatial axes minus 1.
 * - Gaussian: n adj(H) n / |g|^2, the product of the principal curvatures.
 * - Smallest, Largest: the principal curvatures, Mean - and + sqrt(Mean^2 - Gaussian).
 *
 * They are in 1 over the unit of the image's spacing, Gaussian in 1 over its square. A surface around darker voxels is
 * convex where LevelSet is positive: of a dark ball with the radius r it is 2 / r, of a bright one -2 / r. Curvatures
 * are 0 where the gradient vanishes, or is not longer than LeastGradient; near such voxels they may be very large. The
 * last three need three spatial axes.
 *
 * \par Boundary
 * Renormalized (the default): derivatives as those of RenormalizedDerivativeImageFilter. In every other boundary
 * condition the image is continued beyond its edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Derivatives are computed in float for
 * float and 8- and 16-bit integers, in double for the others, and curvatures in double.
 *
 * \par Memory
 * Beside input and output, planes of each thread that fit a core's cache.
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and instruction set.
 *
 * \par Source
 * R. Goldman, "Curvature formulas for implicit curves and surfaces", Computer Aided Geometric Design 22(7), 2005.
 *
 * \par Differences from ITK
 * itk::LevelSetFunction has the curvature of level sets by central differences, as a part of their evolution; ITK has
 * no filter of it.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedCurvatureImageFilter : public DerivativeImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedCurvatureImageFilter);

  using Self = RenormalizedCurvatureImageFilter;
  using Superclass = DerivativeImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedCurvatureImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  const char *
  GetFilterName() const override
  {
    return "curvature";
  }

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  using ResultEnum = RenormalizedDerivativeEnums::CurvatureResult;
  /** The curvature. Default: LevelSet. */
  itkSetEnumMacro(Result, ResultEnum);
  itkGetEnumMacro(Result, ResultEnum);

  /** The length of a gradient up to which curvature is 0, at least 0. Default: 0. */
  itkSetMacro(LeastGradient, double);
  itkGetConstMacro(LeastGradient, double);

protected:
  RenormalizedCurvatureImageFilter() = default;
  ~RenormalizedCurvatureImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("Result", ToWord(m_Result));
    parameters.SetReal("LeastGradient", m_LeastGradient);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Result: " << m_Result << std::endl;
    os << indent << "LeastGradient: " << m_LeastGradient << std::endl;
  }

private:
  ResultEnum m_Result{ ResultEnum::LevelSet };
  double     m_LeastGradient{ 0.0 };
};
} // namespace itk

#endif
