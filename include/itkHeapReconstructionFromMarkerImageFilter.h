/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionFromMarkerImageFilter_h
#define itkHeapReconstructionFromMarkerImageFilter_h

#include "itkHeapReconstructionImageFilter.h"

namespace itk
{
/** \class HeapReconstructionFromMarkerImageFilter
 * \brief Base of the reconstructions of one image under, or over, another.
 *
 * Both images have the same largest possible region and physical space.
 *
 * \par Differences from ITK
 * If the marker is beyond the mask, itk::ReconstructionByDilationImageFilter throws; here it is cut at the mask, unless
 * Strict is on.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapReconstructionFromMarkerImageFilter
  : public HeapReconstructionImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapReconstructionFromMarkerImageFilter);

  using Self = HeapReconstructionFromMarkerImageFilter;
  using Superclass = HeapReconstructionImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(HeapReconstructionFromMarkerImageFilter);

  using MarkerImageType = TInputImage;
  using MaskImageType = TInputImage;

  /** The image to start from: the first input. */
  void
  SetMarkerImage(const MarkerImageType * image)
  {
    this->SetInput(0, image);
  }
  const MarkerImageType *
  GetMarkerImage() const
  {
    return this->GetInput(0);
  }

  /** The image that the result does not leave: the second input. */
  void
  SetMaskImage(const MaskImageType * image)
  {
    this->SetInput(1, image);
  }
  const MaskImageType *
  GetMaskImage() const
  {
    return this->GetInput(1);
  }

  /** On: a marker beyond the mask is an error, which names a voxel. Off, the default: it is cut at the mask. */
  itkSetMacro(Strict, bool);
  itkGetConstMacro(Strict, bool);
  itkBooleanMacro(Strict);

protected:
  explicit HeapReconstructionFromMarkerImageFilter(bool byErosion = false)
    : m_ByErosion(byErosion)
  {
    this->SetNumberOfRequiredInputs(2);
  }
  ~HeapReconstructionFromMarkerImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("Erosion", m_ByErosion);
    return parameters;
  }
  void
  VerifyInputInformation() const override;
  void
  GenerateData() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  const bool m_ByErosion;
  bool       m_Strict{ false };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkHeapReconstructionFromMarkerImageFilter.hxx"
#endif

#endif
