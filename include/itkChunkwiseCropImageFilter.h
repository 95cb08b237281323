/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseCropImageFilter_h
#define itkChunkwiseCropImageFilter_h

#include "itkChunkwiseGridImageFilterBase.h"

namespace itk
{
/** \class ChunkwiseCropImageFilter
 * \brief Leaves out pixels at the edges of an image.
 *
 * The pixels that are left keep their places in space; the index of the first one is that of the input's first pixel.
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
 * Requests the output's requested region.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions and every number of threads.
 *
 * \par Source
 * None.
 *
 * \sa CropImageFilter, ChunkwisePadImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ChunkwiseCropImageFilter : public ChunkwiseGridImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseCropImageFilter);

  using Self = ChunkwiseCropImageFilter;
  using Superclass = ChunkwiseGridImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ChunkwiseCropImageFilter);

  static_assert(Superclass::GivesSameType, "the output has the input's type");

  const char *
  GetFilterName() const override
  {
    return "crop";
  }

  /** Pixels that are left out at the first edge and at the last edge of each axis. Along at most three axes any may be.
   * Default: 0. */
  using SizeType = typename TOutputImage::SizeType;
  itkSetMacro(Lower, SizeType);
  itkGetConstReferenceMacro(Lower, SizeType);
  itkSetMacro(Upper, SizeType);
  itkGetConstReferenceMacro(Upper, SizeType);

protected:
  ChunkwiseCropImageFilter()
  {
    m_Lower.Fill(0);
    m_Upper.Fill(0);
  }
  ~ChunkwiseCropImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    Superclass::SetLists(parameters, 0, { { "Lower", m_Lower }, { "Upper", m_Upper } });
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Lower: " << m_Lower << std::endl;
    os << indent << "Upper: " << m_Upper << std::endl;
  }

private:
  SizeType m_Lower;
  SizeType m_Upper;
};
} // namespace itk

#endif
