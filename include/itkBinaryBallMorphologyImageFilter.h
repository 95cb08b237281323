/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkBinaryBallMorphologyImageFilter_h
#define itkBinaryBallMorphologyImageFilter_h

#include "itkDistanceImageFilterBase.h"
#include "itkEuclideanDistanceEnums.h"

namespace itk
{
/** \class BinaryBallMorphologyImageFilter
 * \brief Dilation, erosion, opening or closing of objects with a Euclidean ball of any radius.
 *
 * Objects are all voxels that do not have the background's value. The ball has all voxels up to the radius. The time
 * hardly depends on it. Beyond the image's edge there is neither object nor background.
 *
 * \sa BinaryDilateImageFilter, BinaryErodeImageFilter
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
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT BinaryBallMorphologyImageFilter : public DistanceImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(BinaryBallMorphologyImageFilter);

  using Self = BinaryBallMorphologyImageFilter;
  using Superclass = DistanceImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(BinaryBallMorphologyImageFilter);

  static_assert(std::is_floating_point<typename Superclass::Superclass::OutputPixelType>::value ||
                  std::is_integral<typename Superclass::Superclass::OutputPixelType>::value,
                "distances, labels and indices are numbers");

  const char *
  GetFilterName() const override
  {
    return "binary-morphology";
  }

  using MorphologyEnum = EuclideanDistanceEnums::Morphology;
  /** The operation on objects. Default: Dilation. */
  itkSetEnumMacro(Morphology, MorphologyEnum);
  itkGetEnumMacro(Morphology, MorphologyEnum);

  /** The radius of the ball, 0 or more. Default: 1. */
  itkSetMacro(Radius, double);
  itkGetConstMacro(Radius, double);

  /** The value of voxels of objects in the result, other than 0; others are 0. Default: 1. */
  using OutputPixelType = typename Superclass::Superclass::OutputPixelType;
  itkSetMacro(ForegroundValue, OutputPixelType);
  itkGetConstMacro(ForegroundValue, OutputPixelType);

protected:
  BinaryBallMorphologyImageFilter() = default;
  ~BinaryBallMorphologyImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("Morphology", ToWord(m_Morphology));
    parameters.SetReal("Radius", m_Radius);
    parameters.Set("ForegroundValue", chunkwise::PixelValue(m_ForegroundValue));
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Morphology: " << m_Morphology << std::endl;
    os << indent << "Radius: " << m_Radius << std::endl;
    os << indent << "ForegroundValue: " << +m_ForegroundValue << std::endl;
  }

private:
  MorphologyEnum  m_Morphology{ MorphologyEnum::Dilation };
  double          m_Radius{ 1.0 };
  OutputPixelType m_ForegroundValue{ 1 };
};
} // namespace itk

#endif
