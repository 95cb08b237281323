/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionOfMorphologyImageFilter_h
#define itkHeapReconstructionOfMorphologyImageFilter_h

#include "itkHeapReconstructionImageFilter.h"
#include "itkNeighborhood.h"

#include <vector>

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
template <typename TInputImage, typename TOutputImage = TInputImage>
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
  using RadiusType = typename TInputImage::SizeType;
  using RadiusValueType = typename TInputImage::SizeValueType;
  /** Voxels of the structuring element are true. */
  using KernelType = Neighborhood<bool, ImageDimension>;

  /** A flat structuring element, see ChunkwiseMorphologyImageFilter::SetKernel. */
  template <typename TPixel, typename TAllocator>
  void
  SetKernel(const Neighborhood<TPixel, ImageDimension, TAllocator> & kernel)
  {
    std::vector<unsigned char> element;
    for (SizeValueType i = 0; i < kernel.Size(); ++i)
    {
      element.push_back(kernel[static_cast<unsigned int>(i)] > TPixel{} ? 1 : 0);
    }
    this->SetElement(kernel.GetRadius(), element);
  }
  /** The structuring element, also where it is a box. */
  KernelType
  GetKernel() const;
  /** A box; entries of axes that are not spatial are not used. Default: 1. */
  void
  SetRadius(const RadiusType & radius)
  {
    this->SetElement(radius, {});
  }
  /** The same radius along every axis. */
  void
  SetRadius(const RadiusValueType & radius)
  {
    this->SetRadius(RadiusType::Filled(radius));
  }
  itkGetConstReferenceMacro(Radius, RadiusType);

  /** On: what is kept has its own values again, reconstructed from those of the image where the first reconstruction
   * did not change the marker. Default: off. */
  itkSetMacro(PreserveIntensities, bool);
  itkGetConstMacro(PreserveIntensities, bool);
  itkBooleanMacro(PreserveIntensities);

protected:
  HeapReconstructionOfMorphologyImageFilter() { m_Radius.Fill(1); }
  ~HeapReconstructionOfMorphologyImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  void
  SetElement(const RadiusType & radius, const std::vector<unsigned char> & element);

  RadiusType m_Radius;
  /** Empty: a box. */
  std::vector<unsigned char> m_Element;
  bool                       m_PreserveIntensities{ false };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkHeapReconstructionOfMorphologyImageFilter.hxx"
#endif

#endif
