/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseWindowImageFilter_h
#define itkChunkwiseWindowImageFilter_h

#include "itkChunkwiseImageToImageFilter.h"
#include "itkChunkwiseWindow.h"

#include <limits>

/** The setters of filters whose windows may see a part of the image alone, and count its voxels differently.
 *
 * MaskImage: windows see only the voxels where it is not 0. WeightImage: windows count each voxel as much as its
 * weight, a finite number of 0 or more; another one throws when it is met. One of both, of the input's size and place
 * in space. They are streamed as the input is. A voxel that is outside counts as if it were not there, whatever its
 * value. The boundary condition continues them as it continues the image; beyond the edge of Constant the weight is 1.
 * A MaskImage of ones gives the bits that the filter gives without it (PrunedFFTGaussianImageFilter: its bound). With
 * IgnoreNaN (default: off) voxels that are NaN are outside. EmptyValue (default: NaN, of integers 0) is the result
 * where a window sees nothing; of a sum it is 0. With OutputMask (default: off; not of non-local means and varying
 * convolutions) the result is 1 where a window sees something and 0 where it sees nothing, in the place of the
 * statistic: of a second filter with the same parameters and, as it pleases, an output of unsigned char.
 * chunkwise::DomainOperation has the definition and the arithmetic. */
#define itkChunkwiseDomainMacro()                                                                                      \
  itkChunkwiseMaskMacro();                                                                                             \
  using WeightImageType = typename Superclass::WeightImageType;                                                        \
  virtual void SetWeightImage(const WeightImageType * image)                                                           \
  {                                                                                                                    \
    this->SetDomainImage("WeightImage", 2, image);                                                                     \
  }                                                                                                                    \
  const WeightImageType * GetWeightImage() const                                                                       \
  {                                                                                                                    \
    return this->GetDomainWeights();                                                                                   \
  }                                                                                                                    \
  itkChunkwiseIgnoreNaNMacro()

/** For filters whose windows may leave out NaN. */
#define itkChunkwiseIgnoreNaNMacro()                                                                                   \
  itkSetMacro(IgnoreNaN, bool);                                                                                        \
  itkGetConstMacro(IgnoreNaN, bool);                                                                                   \
  itkBooleanMacro(IgnoreNaN)

/** The same of filters that take a mask alone. */
#define itkChunkwiseMaskMacro()                                                                                        \
  using MaskImageType = typename Superclass::MaskImageType;                                                            \
  virtual void SetMaskImage(const MaskImageType * image)                                                               \
  {                                                                                                                    \
    this->SetDomainImage("MaskImage", 1, image);                                                                       \
  }                                                                                                                    \
  const MaskImageType * GetMaskImage() const                                                                           \
  {                                                                                                                    \
    return this->GetDomainMask();                                                                                      \
  }                                                                                                                    \
  itkSetMacro(OutputMask, bool);                                                                                       \
  itkGetConstMacro(OutputMask, bool);                                                                                  \
  itkBooleanMacro(OutputMask)

namespace itk
{
/** \class ChunkwiseWindowImageFilter
 * \brief Base of the Chunkwise filters whose output voxel depends on a window around it.
 *
 * Has what they share: the boundary condition and the choice of spatial axes. Everything else is that of
 * ChunkwiseImageToImageFilter.
 *
 * \par Boundary
 * Renormalized (the default): the statistic of the part of the window inside the image, so that a constant image stays
 * constant up to its edge; ZeroFluxNeumann, Constant, Mirror, MirrorCenter and Periodic: see
 * ChunkwiseEnums::BoundaryCondition.
 *
 * \par Axes
 * Windows extend along up to three spatial axes, by default the first three (both of a 2-D image). The others, such as
 * channel or time, are independent: no value crosses from one of their indices to another, whatever the boundary.
 *
 * \par Types
 * The output's pixels are of the input's type, float or double, or of integers that the user chose, unless the input's
 * have 64 bits. Other output types are computed in the input's type, or, if results from integers are fractions or
 * sums, in double, and then rounded to nearest with ties to even and clamped, NaN to 0: the bits of the program's
 * --output-type. A warning says how many results were clamped.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage,
          typename TSuperclass = ImageToImageFilter<TInputImage, TOutputImage>>
class ITK_TEMPLATE_EXPORT ChunkwiseWindowImageFilter
  : public ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseWindowImageFilter);

  using Self = ChunkwiseWindowImageFilter;
  using Superclass = ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(ChunkwiseWindowImageFilter);

  using BoundaryConditionEnum = ChunkwiseEnums::BoundaryCondition;
  using BoundaryConditionsType = std::vector<BoundaryConditionEnum>;
  using SpatialAxesType = std::vector<unsigned int>;
  using DataObjectPointerArraySizeType = ProcessObject::DataObjectPointerArraySizeType;

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  /** The boundary condition at the image's edge. Default: Renormalized. */
  itkSetEnumMacro(BoundaryCondition, BoundaryConditionEnum);
  itkGetEnumMacro(BoundaryCondition, BoundaryConditionEnum);

  /** A boundary condition for each spatial axis, in their order: any but Renormalized, or all Renormalized. Filters of
   * windows over the image alone have it: not with a mask or weights. Default: none, BoundaryCondition counts. */
  void
  SetBoundaryConditions(const BoundaryConditionsType & conditions);
  const BoundaryConditionsType &
  GetBoundaryConditions() const
  {
    return m_BoundaryConditions;
  }

  /** The value beyond the edge in the boundary condition Constant, in units of the pixel; it must be a value of the
   * input's pixel type. Default: 0. */
  itkSetMacro(Constant, double);
  itkGetConstMacro(Constant, double);

  /** The axes along which windows extend, in any order: one to three different ones, 0 is x. */
  void
  SetSpatialAxes(const SpatialAxesType & axes);
  const SpatialAxesType &
  GetSpatialAxes() const
  {
    return m_SpatialAxes;
  }

  /** The mask or weights of the voxels that windows see, in filters that have them: see itkChunkwiseDomainMacro. */
  using MaskImageType = Image<unsigned char, ImageDimension>;
  using WeightImageType = Image<float, ImageDimension>;

protected:
  ChunkwiseWindowImageFilter();
  ~ChunkwiseWindowImageFilter() override = default;

  bool
  IsSpatialAxis(unsigned int axis) const;

  /** The numbers of `array`, an entry for each axis, that belong to the spatial axes, as the engine takes them. */
  template <typename TArray>
  std::vector<double>
  OverSpatialAxes(const TArray & array) const;
  /** The same of sizes; throws itk::ExceptionObject for one that is beyond signed 64-bit integers. */
  std::vector<std::int64_t>
  SizesOverSpatialAxes(const char * name, const typename TInputImage::SizeType & sizes) const;

  void
  SetDomainImage(const char * name, DataObjectPointerArraySizeType index, const DataObject * image);
  /** Throws itk::ExceptionObject if mask or weights do not lie where the input does: for filters whose other inputs lie
   * in no common space. */
  void
  VerifyDomain() const;
  const MaskImageType *
  GetDomainMask() const
  {
    return dynamic_cast<const MaskImageType *>(this->ProcessObject::GetInput("MaskImage"));
  }
  const WeightImageType *
  GetDomainWeights() const
  {
    return dynamic_cast<const WeightImageType *>(this->ProcessObject::GetInput("WeightImage"));
  }
  chunkwise::BufferView
  GetInputView(unsigned int i) const override;
  chunkwise::PixelType
  GetInputKind(unsigned int i) const override;

  /** BoundaryCondition, Constant and SpatialAxes; IgnoreNaN, EmptyValue and OutputMask of filters that have them. */
  chunkwise::FilterParameters
  MakeParameters() const override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

  // For filters that have them.
  bool   m_IgnoreNaN{ false };
  bool   m_OutputMask{ false };
  double m_EmptyValue{ std::numeric_limits<double>::quiet_NaN() };

private:
  BoundaryConditionEnum  m_BoundaryCondition{ BoundaryConditionEnum::Renormalized };
  BoundaryConditionsType m_BoundaryConditions;
  double                 m_Constant{ 0.0 };
  SpatialAxesType        m_SpatialAxes;
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkChunkwiseWindowImageFilter.hxx"
#endif

#endif
