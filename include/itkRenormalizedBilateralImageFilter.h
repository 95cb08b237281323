/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedBilateralImageFilter_h
#define itkRenormalizedBilateralImageFilter_h

#include "itkChunkwiseGaussianImageFilterBase.h"

#include <cmath>

namespace itk
{
/** \class RenormalizedBilateralImageFilter
 * \brief The mean of the voxels around each voxel, weighted by how near they are in space and in value.
 *
 * Smooths, and keeps edges that are high beside RangeSigma. The Cutoff is 3 by default.
 *
 * \par Boundary
 * Renormalized (the default): windows end at the image's edge. Others continue the image beyond it. With a MaskImage
 * windows see only what is inside; voxels outside keep their value, or have OutsideValue.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Computed in float for float and 8- and
 * 16-bit integers, in double for the others; integer outputs are rounded to nearest, ties to even, and clamped.
 *
 * \par Memory
 * Tiles of the type that computes, one a thread.
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius of the Gaussian, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and instruction set.
 *
 * \par Source
 * C. Tomasi, R. Manduchi, "Bilateral filtering for gray and color images", ICCV 1998. Unlike BilateralImageFilter,
 * whose weights of values are those of the nearest of 100 samples, each voxel has its own weight.
 *
 * \sa BilateralImageFilter, RenormalizedNonLocalMeansImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedBilateralImageFilter
  : public ChunkwiseGaussianImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedBilateralImageFilter);

  using Self = RenormalizedBilateralImageFilter;
  using Superclass = ChunkwiseGaussianImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedBilateralImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "bilateral";
  }

  /** The standard deviation of the Gaussian that weighs differences of values, above 0. Default: 50. */
  itkSetMacro(RangeSigma, double);
  itkGetConstMacro(RangeSigma, double);

  /** Only voxels where this image is not 0 take part, as if the image ended there. Default: none. */
  using MaskImageType = typename Superclass::MaskImageType;
  virtual void
  SetMaskImage(const MaskImageType * image)
  {
    this->SetDomainImage("MaskImage", 1, image);
  }
  const MaskImageType *
  GetMaskImage() const
  {
    return this->GetDomainMask();
  }

  /** The result at voxels outside the mask. Default: NaN, which stands for their own value. */
  itkSetMacro(OutsideValue, double);
  itkGetConstMacro(OutsideValue, double);

protected:
  RenormalizedBilateralImageFilter()
    : Superclass(3.0)
  {}
  ~RenormalizedBilateralImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.SetReal("RangeSigma", m_RangeSigma);
    if (!std::isnan(m_OutsideValue))
    {
      parameters.Set("OutsideValue", chunkwise::PixelValue(m_OutsideValue));
    }
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "RangeSigma: " << m_RangeSigma << std::endl;
    os << indent << "OutsideValue: " << m_OutsideValue << std::endl;
  }

private:
  double m_RangeSigma{ 50.0 };
  double m_OutsideValue{ std::numeric_limits<double>::quiet_NaN() };
};
} // namespace itk

#endif
