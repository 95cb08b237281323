/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapRegionalMinimaImageFilter_h
#define itkHeapRegionalMinimaImageFilter_h

#include "itkHeapRegionalExtremaImageFilter.h"

namespace itk
{
/** \class HeapRegionalMinimaImageFilter
 * \brief Marks the regional minima: plateaus without a lower neighbour.
 *
 * Values are compared as they are, floats too. A NaN is neither an extremum nor a neighbour that prevents one.
 *
 * Boundary, types, memory, streaming, determinism and source are those of the base class.
 *
 * \sa RegionalMinimaImageFilter, HeapRegionalMaximaImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapRegionalMinimaImageFilter
  : public HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapRegionalMinimaImageFilter);

  using Self = HeapRegionalMinimaImageFilter;
  using Superclass = HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(HeapRegionalMinimaImageFilter);

  const char *
  GetFilterName() const override
  {
    return "regional-minima";
  }

  /** Whether an image of one value is an extremum. Default: on. */
  void
  SetFlatIsMinima(bool is)
  {
    this->SetFlatIsExtremum(is);
  }
  bool
  GetFlatIsMinima() const
  {
    return this->GetFlatIsExtremum();
  }
  itkBooleanMacro(FlatIsMinima);

protected:
  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("FlatIsMinima", this->GetFlatIsExtremum());
    return parameters;
  }

  HeapRegionalMinimaImageFilter() = default;
  ~HeapRegionalMinimaImageFilter() override = default;
};
} // namespace itk

#endif
