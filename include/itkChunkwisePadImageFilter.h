/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwisePadImageFilter_h
#define itkChunkwisePadImageFilter_h

#include "itkChunkwiseGridEnums.h"
#include "itkChunkwiseGridImageFilterBase.h"

namespace itk
{
/** \class ChunkwisePadImageFilter
 * \brief Adds pixels at the edges of an image.
 *
 * The input's pixels keep their places in space; the index of the first pixel is that of the input's first one.
 *
 * \par Boundary
 * Pixels beyond the image have a value, that of the nearest pixel, or repeat the image (Outside).
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type. Pixels keep their bits.
 *
 * \par Memory
 * None. CPU only.
 *
 * \par Streaming
 * Requests the pixels that the output's requested region has. If it has any that Wrap repeats, these are all along the
 * axis.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions and every number of threads.
 *
 * \par Source
 * None.
 *
 * \sa ConstantPadImageFilter, MirrorPadImageFilter, WrapPadImageFilter, ChunkwiseCropImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ChunkwisePadImageFilter : public ChunkwiseGridImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwisePadImageFilter);

  using Self = ChunkwisePadImageFilter;
  using Superclass = ChunkwiseGridImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ChunkwisePadImageFilter);

  static_assert(Superclass::GivesSameType, "the output has the input's type");

  const char *
  GetFilterName() const override
  {
    return "pad";
  }

  /** Pixels that come before the first pixel and after the last pixel of each axis. Along at most three axes any may
   * come. Default: 0. */
  using SizeType = typename TOutputImage::SizeType;
  itkSetMacro(Lower, SizeType);
  itkGetConstReferenceMacro(Lower, SizeType);
  itkSetMacro(Upper, SizeType);
  itkGetConstReferenceMacro(Upper, SizeType);

  /** The pixels beyond the image. Default: Constant. */
  using OutsideEnum = ChunkwiseGridEnums::Outside;
  itkSetEnumMacro(Outside, OutsideEnum);
  itkGetEnumMacro(Outside, OutsideEnum);

  /** The value of pixels beyond the image if Outside is Constant, of each component. Default: 0. */
  using ValueType = typename Superclass::InputPixelType;
  itkSetMacro(OutsideValue, ValueType);
  itkGetConstMacro(OutsideValue, ValueType);

protected:
  ChunkwisePadImageFilter()
  {
    m_Lower.Fill(0);
    m_Upper.Fill(0);
  }
  ~ChunkwisePadImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    Superclass::SetLists(parameters, 0, { { "Lower", m_Lower }, { "Upper", m_Upper } });
    const auto & outside = *chunkwise::GetFilter(this->GetFilterName()).FindParameter("Outside");
    parameters.Set("Outside", outside.choices.at(static_cast<std::size_t>(m_Outside)));
    parameters.Set("OutsideValue", chunkwise::PixelValue(m_OutsideValue));
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Lower: " << m_Lower << std::endl;
    os << indent << "Upper: " << m_Upper << std::endl;
    os << indent << "Outside: " << m_Outside << std::endl;
    os << indent << "OutsideValue: " << +m_OutsideValue << std::endl;
  }

private:
  SizeType    m_Lower;
  SizeType    m_Upper;
  OutsideEnum m_Outside{ OutsideEnum::Constant };
  ValueType   m_OutsideValue{ 0 };
};
} // namespace itk

#endif
