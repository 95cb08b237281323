/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChambollePockTotalVariationImageFilter_h
#define itkChambollePockTotalVariationImageFilter_h

#include "itkMaskedSmoothingImageFilterBase.h"

namespace itk
{
/** \class ChambollePockTotalVariationImageFilter
 * \brief The image that is nearest to this one and has little total variation: smooths, and keeps edges.
 *
 * A fixed number of iterations towards the minimum over u of half the squared distance from the image, plus Weight
 * times the sum of the lengths of the gradient of u (L. Rudin, S. Osher, E. Fatemi, Physica D 60, 1992).
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
 * Four to six images of the type that computes, of a chunk and as many voxels around it as there are iterations.
 *
 * \par Streaming
 * Requests the output's requested region padded by a voxel for each iteration, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and instruction set.
 *
 * \par Source
 * A. Chambolle, T. Pock, "A first-order primal-dual algorithm for convex problems with applications to imaging",
 * Journal of Mathematical Imaging and Vision 40, 2011: algorithm 1, with equal steps. docs/enhancement.md has the
 * formulas.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ChambollePockTotalVariationImageFilter
  : public MaskedSmoothingImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChambollePockTotalVariationImageFilter);

  using Self = ChambollePockTotalVariationImageFilter;
  using Superclass = MaskedSmoothingImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ChambollePockTotalVariationImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "total-variation";
  }

  /** The number of iterations, 1 to 10000. Default: 50. */
  itkSetMacro(NumberOfIterations, unsigned int);
  itkGetConstMacro(NumberOfIterations, unsigned int);

  /** The weight of the total variation, at least 0: larger ones smooth more. Default: 1. */
  itkSetMacro(Weight, double);
  itkGetConstMacro(Weight, double);

  /** Whether differences are divided by the image's spacing. Default: on. */
  itkSetMacro(UseImageSpacing, bool);
  itkGetConstMacro(UseImageSpacing, bool);
  itkBooleanMacro(UseImageSpacing);

protected:
  ChambollePockTotalVariationImageFilter() = default;
  ~ChambollePockTotalVariationImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.SetInteger("Iterations", m_NumberOfIterations);
    parameters.SetReal("Weight", m_Weight);
    parameters.Set("UseImageSpacing", m_UseImageSpacing);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "NumberOfIterations: " << m_NumberOfIterations << std::endl;
    os << indent << "Weight: " << m_Weight << std::endl;
    os << indent << "UseImageSpacing: " << (m_UseImageSpacing ? "On" : "Off") << std::endl;
  }

private:
  unsigned int m_NumberOfIterations{ 50 };
  double       m_Weight{ 1.0 };
  bool         m_UseImageSpacing{ true };
};
} // namespace itk

#endif
