/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionOfMorphologyImageFilter_h
#define itkHeapReconstructionOfMorphologyImageFilter_h

#include "itkHeapReconstructionImageFilter.h"
#include "itkNeighborhood.h"

namespace itk
{
/** \class HeapReconstructionOfMorphologyImageFilter
 * \brief Base of opening and closing by reconstruction: an erosion or dilation with a flat structuring element, then
 * its reconstruction.
 *
 * The first step sees the part of the structuring element inside the image.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage, typename TMorphology>
class ITK_TEMPLATE_EXPORT HeapReconstructionOfMorphologyImageFilter
  : public HeapReconstructionImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapReconstructionOfMorphologyImageFilter);

  using Self = HeapReconstructionOfMorphologyImageFilter;
  using Superclass = HeapReconstructionImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(HeapReconstructionOfMorphologyImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  using RadiusType = typename TMorphology::RadiusType;

  /** A flat structuring element, see ChunkwiseMorphologyImageFilter::SetKernel. */
  template <typename TPixel, typename TAllocator>
  void
  SetKernel(const Neighborhood<TPixel, ImageDimension, TAllocator> & kernel)
  {
    m_Morphology->SetKernel(kernel);
    this->Modified();
  }
  typename TMorphology::KernelType
  GetKernel() const
  {
    return m_Morphology->GetKernel();
  }
  /** A box. */
  void
  SetRadius(const RadiusType & radius)
  {
    m_Morphology->SetRadius(radius);
    this->Modified();
  }
  /** The same radius along every axis. */
  void
  SetRadius(typename TMorphology::RadiusValueType radius)
  {
    m_Morphology->SetRadius(radius);
    this->Modified();
  }
  const RadiusType &
  GetRadius() const
  {
    return m_Morphology->GetRadius();
  }

  /** On: what is kept has its own values again, reconstructed from those of the image where the first reconstruction
   * did not change the marker. Default: off. */
  itkSetMacro(PreserveIntensities, bool);
  itkGetConstMacro(PreserveIntensities, bool);
  itkBooleanMacro(PreserveIntensities);

protected:
  HeapReconstructionOfMorphologyImageFilter();
  ~HeapReconstructionOfMorphologyImageFilter() override = default;

  void
  VerifyInputInformation() const override;
  void
  GenerateData() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  /** The second step. */
  class Reconstruction : public HeapReconstructionImageFilter<TInputImage, TOutputImage>
  {
  public:
    using Self = Reconstruction;
    using Pointer = SmartPointer<Self>;
    itkNewMacro(Self);
    using HeapReconstructionImageFilter<TInputImage, TOutputImage>::SetRule;
  };

  void
  CopySettings(ChunkwiseImageToImageFilter<TInputImage, TOutputImage> & filter) const;

  typename TMorphology::Pointer m_Morphology;
  bool                          m_PreserveIntensities{ false };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkHeapReconstructionOfMorphologyImageFilter.hxx"
#endif

#endif
