/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseResampleImageFilter_h
#define itkChunkwiseResampleImageFilter_h

#include "itkChunkwiseGridImageFilterBase.h"
#include "itkChunkwiseResampleEnums.h"
#include "itkTransform.h"

namespace itk
{
/** \class ChunkwiseResampleImageFilter
 * \brief Samples an image at the pixels of another grid, through a linear transform, a displacement field, or both.
 *
 * A point of the output is taken by the transform to a point of the input, as in ResampleImageFilter, and gets the
 * value that the interpolation has there. If the output's pixels are larger than the input's, the kernels of linear,
 * cubic and Lanczos interpolation grow with them (Antialias), which ResampleImageFilter's do not.
 *
 * The grid of the output is that of the reference image, or follows from what is set of Size, OutputSpacing,
 * OutputOrigin and OutputDirection; what is not set is the input's, but: without a size, the output has so many pixels
 * that the image keeps its edges; without a spacing a size says it, so that the image keeps its edges; without an
 * origin the edge of the first pixel stays where it is. The index of the output's first pixel is that of the input's.
 *
 * \par Boundary
 * A point beyond the edges of the input's pixels has the value of the nearest point of the input, or DefaultPixelValue
 * if UseDefaultPixelValue is on. Inside, kernels are renormalized by their part within the image; splines continue the
 * image by reflection about the centers of its first and last pixels.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double; with the interpolations Nearest and
 * Label to the same type. Pixels with components are interpolated component by component.
 *
 * \par Memory
 * A displacement field is held once more, as numbers of 64 bits. A chunk of cubic interpolation needs its part of the
 * input as float (double for double and for integers of 32 and 64 bits); others need a few hundred kilobytes for each
 * thread. CPU only.
 *
 * \par Streaming
 * Requests the box of the input that the output's requested region depends on. With a displacement field the vectors of
 * that region tell it.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions and every number of threads. Pixels that lie on
 * pixels of the input keep their bits.
 *
 * \par Source
 * M. Unser, A. Aldroubi, M. Eden, "B-spline signal processing", IEEE Transactions on Signal Processing 41(2), 1993.
 *
 * \sa ResampleImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ChunkwiseResampleImageFilter : public ChunkwiseGridImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseResampleImageFilter);

  using Self = ChunkwiseResampleImageFilter;
  using Superclass = ChunkwiseGridImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ChunkwiseResampleImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  static_assert(Superclass::GivesSameTypeOrReal, "the output has the input's type, float or double");

  using TransformType = Transform<double, ImageDimension, ImageDimension>;
  using SizeType = typename TOutputImage::SizeType;
  using SpacingType = typename TOutputImage::SpacingType;
  using PointType = typename TOutputImage::PointType;
  using DirectionType = typename TOutputImage::DirectionType;
  using ReferenceImageType = ImageBase<ImageDimension>;

  const char *
  GetFilterName() const override
  {
    return "resample";
  }

  /** From points of the output to points of the input; nullptr, the default: the identity. Others than linear ones
   * throw.
   */
  itkSetConstObjectMacro(Transform, TransformType);
  itkGetConstObjectMacro(Transform, TransformType);

  using DisplacementFieldType = Image<Vector<double, ImageDimension>, ImageDimension>;

  /** Vectors that are added to points of the output before the transform, as a DisplacementFieldTransform adds them
   * (GetDisplacementField): interpolated linearly, and zero beyond the edges of the field's pixels. Its pixels must be
   * up to date. Default: nullptr. */
  itkSetConstObjectMacro(DisplacementField, DisplacementFieldType);
  itkGetConstObjectMacro(DisplacementField, DisplacementFieldType);

  /** How a point between pixels gets a value. Default: Linear. */
  using InterpolationEnum = ChunkwiseResampleEnums::Interpolation;
  itkSetEnumMacro(Interpolation, InterpolationEnum);
  itkGetEnumMacro(Interpolation, InterpolationEnum);

  /** Pixels of the output; zeros, the default: they follow from the spacing. */
  itkSetMacro(Size, SizeType);
  itkGetConstReferenceMacro(Size, SizeType);

  /** Zeros, the default: it follows from the size. */
  itkSetMacro(OutputSpacing, SpacingType);
  itkGetConstReferenceMacro(OutputSpacing, SpacingType);

  /** The position of the output's first pixel. Until it is set the edge of the first pixel stays where it is. */
  void
  SetOutputOrigin(const PointType & origin);
  itkGetConstReferenceMacro(OutputOrigin, PointType);

  /** Until it is set it is the input's. */
  void
  SetOutputDirection(const DirectionType & direction);
  itkGetConstReferenceMacro(OutputDirection, DirectionType);

  /** The image whose grid the output has, in place of all of these. Its information must be up to date. */
  itkSetConstObjectMacro(ReferenceImage, ReferenceImageType);
  itkGetConstObjectMacro(ReferenceImage, ReferenceImageType);

  /** The value of points beyond the image, if UseDefaultPixelValue is on. Defaults: 0, off. */
  itkSetMacro(DefaultPixelValue, double);
  itkGetConstMacro(DefaultPixelValue, double);
  itkSetMacro(UseDefaultPixelValue, bool);
  itkGetConstMacro(UseDefaultPixelValue, bool);
  itkBooleanMacro(UseDefaultPixelValue);

  /** Whether kernels grow with pixels of the output that are larger than the input's. Default: on. */
  itkSetMacro(Antialias, bool);
  itkGetConstMacro(Antialias, bool);
  itkBooleanMacro(Antialias);

  /** Later than every change of the transform, the displacement field and the reference image. */
  ModifiedTimeType
  GetMTime() const override;

protected:
  ChunkwiseResampleImageFilter()
  {
    m_Size.Fill(0);
    m_OutputSpacing.Fill(0);
    m_OutputOrigin.Fill(0);
    m_OutputDirection.SetIdentity();
  }
  ~ChunkwiseResampleImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  /** The operation gives the output's kind itself. */
  chunkwise::PixelType
  GetOperationKind() const override
  {
    return chunkwise::PixelTypeOf<typename Superclass::OutputPixelType>();
  }
  void
  GenerateData() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  std::vector<double>
  MakeAffine() const;
  std::shared_ptr<const chunkwise::KernelStack>
  GetVectors() const;
  /** Size, spacing, position of the first pixel, and the rows of the direction. */
  static std::vector<double>
  DescribeGrid(const ReferenceImageType & image);

  typename TransformType::ConstPointer m_Transform;

  typename DisplacementFieldType::ConstPointer m_DisplacementField;
  // The field's vectors during an update, which asks for them several times, and the time of the field that had them.
  mutable std::shared_ptr<const chunkwise::KernelStack> m_Vectors;
  mutable ModifiedTimeType                              m_VectorsTime{ 0 };
  InterpolationEnum                                     m_Interpolation{ InterpolationEnum::Linear };
  SizeType                                              m_Size;
  SpacingType                                           m_OutputSpacing;
  PointType                                             m_OutputOrigin;
  DirectionType                                         m_OutputDirection;
  bool                                                  m_HasOrigin{ false };
  bool                                                  m_HasDirection{ false };
  typename ReferenceImageType::ConstPointer             m_ReferenceImage;
  double                                                m_DefaultPixelValue{ 0 };
  bool                                                  m_UseDefaultPixelValue{ false };
  bool                                                  m_Antialias{ true };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkChunkwiseResampleImageFilter.hxx"
#endif

#endif
