/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseBinImageFilter_h
#define itkChunkwiseBinImageFilter_h

#include "itkChunkwiseGridEnums.h"
#include "itkChunkwiseGridImageFilterBase.h"

namespace itk
{
/** \class ChunkwiseBinImageFilter
 * \brief Makes one pixel of each block of pixels: their mean, sum, minimum, maximum, median, mode or Gaussian mean.
 *
 * Blocks begin at the first pixel of the largest possible region. A block at the end
 * of the image has the pixels that exist; BinShrinkImageFilter leaves such blocks out. A pixel of the output lies at
 * the center of its block, and the spacing is that of blocks, as BinShrinkImageFilter has them. An axis with fewer
 * pixels than the factor is one block.
 *
 * \par Boundary
 * Blocks have the pixels inside the image.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Sums and means of integers are exact;
 * means are rounded to nearest, ties to even, and sums are clamped at the ends of integer types. A NaN makes the
 * minimum and the maximum of its block NaN; medians have NaN above all numbers, and modes count it last.
 *
 * \par Memory
 * Medians and modes: each thread needs memory for a block. Others: none. CPU only.
 *
 * \par Streaming
 * Requests the blocks of the output's requested region.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions and every number of threads.
 *
 * \par Source
 * The definition is that of the levels of OME-Zarr images (chunkwise pyramid).
 *
 * \sa BinShrinkImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ChunkwiseBinImageFilter : public ChunkwiseGridImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseBinImageFilter);

  using Self = ChunkwiseBinImageFilter;
  using Superclass = ChunkwiseGridImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ChunkwiseBinImageFilter);

  static_assert(Superclass::GivesSameTypeOrReal, "the output has the input's type, float or double");

  const char *
  GetFilterName() const override
  {
    if (m_Method == MethodEnum::Sum)
    {
      return "bin-sum";
    }
    return "bin";
  }

  /** Pixels of a block along each axis, at least 1. At most three factors may be above 1. Default: 2 along the first
   * three axes. */
  using FactorType = typename TOutputImage::SizeType;
  itkSetMacro(Factor, FactorType);
  itkGetConstReferenceMacro(Factor, FactorType);

  /** How the pixels of a block become one. Default: Mean. */
  using MethodEnum = ChunkwiseGridEnums::Method;
  itkSetEnumMacro(Method, MethodEnum);
  itkGetEnumMacro(Method, MethodEnum);

protected:
  ChunkwiseBinImageFilter()
  {
    m_Factor.Fill(1);
    for (unsigned int a = 0; a < Superclass::ImageDimension && a < chunkwise::MaxSpatialAxes; ++a)
    {
      m_Factor[a] = 2;
    }
  }
  ~ChunkwiseBinImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    Superclass::SetLists(parameters, 1, { { "Factor", m_Factor } });
    if (m_Method != MethodEnum::Sum)
    {
      const auto & method = *chunkwise::GetFilter(this->GetFilterName()).FindParameter("Method");
      // Sums have a row in the table, and are no choice.
      const std::size_t choice = m_Method == MethodEnum::Gaussian ? 5 : static_cast<std::size_t>(m_Method);
      parameters.Set("Method", method.choices.at(choice));
    }
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Factor: " << m_Factor << std::endl;
    os << indent << "Method: " << m_Method << std::endl;
  }

private:
  FactorType m_Factor;
  MethodEnum m_Method{ MethodEnum::Mean };
};
} // namespace itk

#endif
