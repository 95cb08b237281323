/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkFillLabelHolesImageFilter_h
#define itkFillLabelHolesImageFilter_h

#include "chunkwiseLabelHoles.h"
#include "itkChunkwiseMacro.h"
#include "itkImageToImageFilter.h"

namespace itk
{
/** \class FillLabelHolesImageFilter
 * \brief Fills the holes of labelled objects.
 *
 * A hole is a part of the background (0), connected by faces, that does not reach the edge of the image and that one
 * object alone touches: it gets this object's label. A part that two objects enclose together stays.
 *
 * \par Boundary
 * Parts of the background at the image's edge are no holes.
 *
 * \par Types
 * itk::Image of 8- to 64-bit integers, in up to three dimensions.
 *
 * \par Memory
 * Beside input and output 5 bytes a voxel, 9 from 2^32 voxels on, and some 20 bytes for each part of the background.
 * More than HostMemoryBudget is an error.
 *
 * \par Streaming
 * Requests the whole input and computes the whole output. The program and chunkwise.zarr read the image in slabs.
 *
 * \par Determinism
 * The same bits for every number of threads and device.
 *
 * \par Differences from ITK
 * itk::BinaryFillholeImageFilter and itk::GrayscaleFillholeImageFilter fill what all objects enclose together, with one
 * value.
 *
 * \sa BinaryFillholeImageFilter SelectLabelsImageFilter ConnectedComponentLabelImageFilter
 * \ingroup Chunkwise
 */
template <typename TLabelImage>
class ITK_TEMPLATE_EXPORT FillLabelHolesImageFilter : public ImageToImageFilter<TLabelImage, TLabelImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(FillLabelHolesImageFilter);

  using Self = FillLabelHolesImageFilter;
  using Superclass = ImageToImageFilter<TLabelImage, TLabelImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(FillLabelHolesImageFilter);

  static constexpr unsigned int ImageDimension = TLabelImage::ImageDimension;
  static_assert(std::is_integral<typename TLabelImage::PixelType>::value, "labels are integers");

  /** Bytes that the parts of the background may take; 0: no limit. Default: 0. */
  itkSetMacro(HostMemoryBudget, SizeValueType);
  itkGetConstMacro(HostMemoryBudget, SizeValueType);

  /** After an update: holes that were filled. */
  itkGetConstMacro(NumberOfFilledHoles, SizeValueType);

protected:
  FillLabelHolesImageFilter() = default;
  ~FillLabelHolesImageFilter() override = default;

  void
  GenerateInputRequestedRegion() override;
  void
  EnlargeOutputRequestedRegion(DataObject * output) override;
  void
  GenerateData() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  SizeValueType m_HostMemoryBudget{ 0 };
  SizeValueType m_NumberOfFilledHoles{ 0 };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkFillLabelHolesImageFilter.hxx"
#endif

#endif
