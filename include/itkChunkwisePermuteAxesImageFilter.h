/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwisePermuteAxesImageFilter_h
#define itkChunkwisePermuteAxesImageFilter_h

#include "itkChunkwiseGridImageFilterBase.h"

namespace itk
{
/** \class ChunkwisePermuteAxesImageFilter
 * \brief Puts the axes of an image in another order.
 *
 * Size, spacing and the columns of the direction change with the axes; the origin stays, so that pixels keep their
 * places in space.
 *
 * \par Boundary
 * None.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type. Pixels keep their bits.
 *
 * \par Memory
 * None. CPU only.
 *
 * \par Streaming
 * Requests the pixels of the output's requested region.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions and every number of threads.
 *
 * \par Source
 * None.
 *
 * \sa PermuteAxesImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ChunkwisePermuteAxesImageFilter
  : public ChunkwiseGridImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwisePermuteAxesImageFilter);

  using Self = ChunkwisePermuteAxesImageFilter;
  using Superclass = ChunkwiseGridImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ChunkwisePermuteAxesImageFilter);

  static_assert(Superclass::GivesSameType, "the output has the input's type");

  const char *
  GetFilterName() const override
  {
    return "permute-axes";
  }

  /** The axis of the input for each axis of the output. Default: reversed. */
  using AxisOrderType = FixedArray<unsigned int, TOutputImage::ImageDimension>;
  itkSetMacro(AxisOrder, AxisOrderType);
  itkGetConstReferenceMacro(AxisOrder, AxisOrderType);

protected:
  ChunkwisePermuteAxesImageFilter()
  {
    for (unsigned int a = 0; a < Superclass::ImageDimension; ++a)
    {
      m_AxisOrder[a] = Superclass::ImageDimension - 1 - a;
    }
  }
  ~ChunkwisePermuteAxesImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("AxisOrder", std::vector<std::int64_t>(m_AxisOrder.Begin(), m_AxisOrder.End()));
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "AxisOrder: " << m_AxisOrder << std::endl;
  }

private:
  AxisOrderType m_AxisOrder;
};
} // namespace itk

#endif
