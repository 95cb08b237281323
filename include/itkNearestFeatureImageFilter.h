/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkNearestFeatureImageFilter_h
#define itkNearestFeatureImageFilter_h

#include "itkDistanceImageFilterBase.h"
#include "itkEuclideanDistanceEnums.h"

namespace itk
{
/** \class NearestFeatureImageFilter
 * \brief The raster index of the nearest feature of each voxel, x fastest.
 *
 * If several features have the same distance, the one with the lowest index is the nearest. Without a feature the index
 * is -1, or the largest number of an unsigned type.
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
template <typename TInputImage, typename TOutputImage = Image<unsigned int, TInputImage::ImageDimension>>
class ITK_TEMPLATE_EXPORT NearestFeatureImageFilter : public DistanceImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(NearestFeatureImageFilter);

  using Self = NearestFeatureImageFilter;
  using Superclass = DistanceImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(NearestFeatureImageFilter);

  static_assert(std::is_floating_point<typename Superclass::Superclass::OutputPixelType>::value ||
                  std::is_integral<typename Superclass::Superclass::OutputPixelType>::value,
                "distances, labels and indices are numbers");

  const char *
  GetFilterName() const override
  {
    return "nearest";
  }

  using FeaturesEnum = EuclideanDistanceEnums::Features;
  /** The voxels that distances lead to. Default: Objects; Contour and Others are refused. */
  itkSetEnumMacro(Features, FeaturesEnum);
  itkGetEnumMacro(Features, FeaturesEnum);

protected:
  NearestFeatureImageFilter() = default;
  ~NearestFeatureImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("Features", ToWord(m_Features));
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Features: " << m_Features << std::endl;
  }

private:
  FeaturesEnum m_Features{ FeaturesEnum::Objects };
};
} // namespace itk

#endif
