/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkEuclideanDistanceImageFilter_h
#define itkEuclideanDistanceImageFilter_h

#include "itkDistanceImageFilterBase.h"
#include "itkEuclideanDistanceEnums.h"

#include <limits>

namespace itk
{
/** \class EuclideanDistanceImageFilter
 * \brief The exact Euclidean distance of each voxel to the nearest feature.
 *
 * By default the distance of each object's voxel to the nearest voxel of the background, as SciPy's
 * distance_transform_edt; by Features also that of each voxel to the nearest object, that to the contour of objects
 * with the sign of SignedMaurerDistanceMapImageFilter, or that to the nearest voxel of another label. Without a feature
 * distances are infinite.
 *
 * \sa SignedMaurerDistanceMapImageFilter
 *
 * \par Boundary
 * There is nothing beyond the image's edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double.
 *
 * \par Memory
 * Beside input and output 4 bytes for each column along the slowest axis for every 16 slices or more, and 4 or 8 bytes
 * a voxel of the slices that are computed together.
 *
 * \par Streaming
 * Requests the whole input and computes the whole output. ChunkwiseFileToFile and the program read the image in pieces,
 * twice, and write it once.
 *
 * \par Determinism
 * The same bits for every division into chunks, number of threads and instruction set.
 *
 * \par Source
 * T. Saito, J. Toriwaki, "New algorithms for Euclidean distance transformation of an n-dimensional digitized picture",
 * Pattern Recognition 27(11), 1994; P. Felzenszwalb, D. Huttenlocher, "Distance transforms of sampled functions",
 * Theory of Computing 8, 2012.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = Image<float, TInputImage::ImageDimension>>
class ITK_TEMPLATE_EXPORT EuclideanDistanceImageFilter : public DistanceImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(EuclideanDistanceImageFilter);

  using Self = EuclideanDistanceImageFilter;
  using Superclass = DistanceImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(EuclideanDistanceImageFilter);

  static_assert(std::is_floating_point<typename Superclass::Superclass::OutputPixelType>::value ||
                  std::is_integral<typename Superclass::Superclass::OutputPixelType>::value,
                "distances, labels and indices are numbers");

  const char *
  GetFilterName() const override
  {
    return "distance";
  }

  using FeaturesEnum = EuclideanDistanceEnums::Features;
  /** The voxels that distances lead to. Default: Background. */
  itkSetEnumMacro(Features, FeaturesEnum);
  itkGetEnumMacro(Features, FeaturesEnum);

  /** Whether squares of distances are written. Default: off. */
  itkSetMacro(SquaredDistance, bool);
  itkGetConstMacro(SquaredDistance, bool);
  itkBooleanMacro(SquaredDistance);

  /** Voxels that are farther away have this distance, 0 or more. Default: infinite. */
  itkSetMacro(MaximumDistance, double);
  itkGetConstMacro(MaximumDistance, double);

  /** Whether distances to the contour are positive inside of objects. Default: off. */
  itkSetMacro(InsideIsPositive, bool);
  itkGetConstMacro(InsideIsPositive, bool);
  itkBooleanMacro(InsideIsPositive);

protected:
  EuclideanDistanceImageFilter() = default;
  ~EuclideanDistanceImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("Features", ToWord(m_Features));
    parameters.Set("SquaredDistance", m_SquaredDistance);
    if (m_MaximumDistance != std::numeric_limits<double>::infinity())
    {
      parameters.SetReal("MaximumDistance", m_MaximumDistance);
    }
    parameters.Set("InsideIsPositive", m_InsideIsPositive);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Features: " << m_Features << std::endl;
    os << indent << "SquaredDistance: " << (m_SquaredDistance ? "On" : "Off") << std::endl;
    os << indent << "MaximumDistance: " << m_MaximumDistance << std::endl;
    os << indent << "InsideIsPositive: " << (m_InsideIsPositive ? "On" : "Off") << std::endl;
  }

private:
  FeaturesEnum m_Features{ FeaturesEnum::Background };
  bool         m_SquaredDistance{ false };
  double       m_MaximumDistance{ std::numeric_limits<double>::infinity() };
  bool         m_InsideIsPositive{ false };
};
} // namespace itk

#endif
