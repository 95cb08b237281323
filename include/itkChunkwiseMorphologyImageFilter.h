/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseMorphologyImageFilter_h
#define itkChunkwiseMorphologyImageFilter_h

#include "itkChunkwiseBoxImageFilter.h"
#include "itkNeighborhood.h"

#include <vector>

namespace itk
{
/** \class ChunkwiseMorphologyImageFilter
 * \brief Base of the Chunkwise filters of flat morphology: the window is a box, or any structuring element.
 *
 * A box, by SetRadius or as a structuring element, takes a time that does not depend on its size; other elements take
 * one that grows with their rows.
 *
 * \par Differences from ITK
 * itk::GrayscaleMorphologicalOpeningImageFilter and its closing pad the image by a border of the element's size, which
 * SafeBorder asks for; here the renormalized boundary needs none, and gives the same for elements that are symmetric.
 * Others they use as they are in both steps, so that the result is shifted; here the second step uses them reflected.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage>
class ITK_TEMPLATE_EXPORT ChunkwiseMorphologyImageFilter : public ChunkwiseBoxImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseMorphologyImageFilter);

  using Self = ChunkwiseMorphologyImageFilter;
  using Superclass = ChunkwiseBoxImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(ChunkwiseMorphologyImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  using typename Superclass::RadiusType;

  /** Voxels of the structuring element are true. */
  using KernelType = Neighborhood<bool, Superclass::ImageDimension>;

  /** Takes a structuring element, a FlatStructuringElement for example: offsets whose value is greater than 0. It must
   * have no extent along axes that are not spatial. */
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

  /** Back to a box. */
  void
  SetRadius(const RadiusType & radius) override;
  using Superclass::SetRadius;

  /** Windows over a part of the image: SetMaskImage, SetEmptyValue; see itkChunkwiseDomainMacro. */
  itkChunkwiseMaskMacro();
  itkSetMacro(EmptyValue, double);
  itkGetConstMacro(EmptyValue, double);

protected:
  ChunkwiseMorphologyImageFilter() = default;
  ~ChunkwiseMorphologyImageFilter() override = default;

  /** Those of ChunkwiseBoxImageFilter, and Kernel where it is set. */
  chunkwise::FilterParameters
  MakeParameters() const override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  void
  SetElement(const RadiusType & radius, const std::vector<unsigned char> & element);

  /** Empty: a box. */
  std::vector<unsigned char> m_Element;
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkChunkwiseMorphologyImageFilter.hxx"
#endif

#endif
