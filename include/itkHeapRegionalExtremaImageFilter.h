/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapRegionalExtremaImageFilter_h
#define itkHeapRegionalExtremaImageFilter_h

#include "itkHeapReconstructionImageFilter.h"

namespace itk
{
/** \class HeapRegionalExtremaImageFilter
 * \brief Base of the filters that mark plateaus without a neighbour beyond them.
 *
 * An extremum is where the image exceeds the reconstruction of the next values that its type has below it.
 * FlatIsExtremum decides whether a flat image, or a flat slice of it along axes without neighbours, is an extremum.
 *
 * \par Types
 * Those of the base class, to any of them. If the output's type differs from the input's, the run needs one more image
 * of the input's type, of the size of the output's requested region, which no budget counts.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapRegionalExtremaImageFilter
  : public HeapReconstructionImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapRegionalExtremaImageFilter);

  using Self = HeapRegionalExtremaImageFilter;
  using Superclass = HeapReconstructionImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(HeapRegionalExtremaImageFilter);

  using typename Superclass::OutputPixelType;

  /** The value of extrema. Default: the largest value of the type. */
  void
  SetForegroundValue(OutputPixelType value)
  {
    this->SetValue(m_ForegroundValue, value);
  }
  itkGetConstMacro(ForegroundValue, OutputPixelType);

  /** The value of all other voxels. Default: the lowest value of the type. */
  void
  SetBackgroundValue(OutputPixelType value)
  {
    this->SetValue(m_BackgroundValue, value);
  }
  itkGetConstMacro(BackgroundValue, OutputPixelType);

  /** The other pixel type gets ForegroundValue and BackgroundValue when the filter itself writes them. */
  std::shared_ptr<const chunkwise::Operation>
  GetOperation(const chunkwise::FilterImage & image) const override;

protected:
  HeapRegionalExtremaImageFilter() = default;
  ~HeapRegionalExtremaImageFilter() override = default;

  void
  SetFlatIsExtremum(bool is)
  {
    if (m_FlatIsExtremum != is)
    {
      m_FlatIsExtremum = is;
      this->Modified();
    }
  }
  bool
  GetFlatIsExtremum() const
  {
    return m_FlatIsExtremum;
  }

  chunkwise::FilterParameters
  MakeParameters() const override;
  chunkwise::PixelType
  GetOperationKind() const override
  {
    return chunkwise::PixelTypeOf<typename Superclass::InputPixelType>();
  }
  void
  WriteOutput(const chunkwise::BufferView & result) override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  void
  SetValue(OutputPixelType & member, OutputPixelType value)
  {
    if (member != value)
    {
      member = value;
      this->Modified();
    }
  }

  OutputPixelType m_ForegroundValue{ NumericTraits<OutputPixelType>::max() };
  OutputPixelType m_BackgroundValue{ NumericTraits<OutputPixelType>::NonpositiveMin() };
  bool            m_FlatIsExtremum{ true };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkHeapRegionalExtremaImageFilter.hxx"
#endif

#endif
