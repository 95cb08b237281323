/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapRegionalMaximaImageFilter_h
#define itkHeapRegionalMaximaImageFilter_h

#include "itkHeapRegionalExtremaImageFilter.h"

namespace itk
{
/** \class HeapRegionalMaximaImageFilter
 * \brief Marks the regional maxima: plateaus without a higher neighbour.
 *
 * Values are compared as they are, floats too. A NaN is neither an extremum nor a neighbour that prevents one.
 *
 * Boundary, types, memory, streaming, determinism and source are those of the base class.
 *
 * \sa RegionalMaximaImageFilter, HeapRegionalMinimaImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapRegionalMaximaImageFilter
  : public HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapRegionalMaximaImageFilter);

  using Self = HeapRegionalMaximaImageFilter;
  using Superclass = HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(HeapRegionalMaximaImageFilter);

  const char *
  GetFilterName() const override
  {
    return "regional-maxima";
  }

  /** Whether an image of one value is an extremum. Default: on. */
  void
  SetFlatIsMaxima(bool is)
  {
    this->SetFlatIsExtremum(is);
  }
  bool
  GetFlatIsMaxima() const
  {
    return this->GetFlatIsExtremum();
  }
  itkBooleanMacro(FlatIsMaxima);

protected:
  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("FlatIsMaxima", this->GetFlatIsExtremum());
    return parameters;
  }

  HeapRegionalMaximaImageFilter() = default;
  ~HeapRegionalMaximaImageFilter() override = default;
};
} // namespace itk

#endif
