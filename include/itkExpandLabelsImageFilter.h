/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkExpandLabelsImageFilter_h
#define itkExpandLabelsImageFilter_h

#include "itkDistanceImageFilterBase.h"

namespace itk
{
/** \class ExpandLabelsImageFilter
 * \brief Objects of an image of labels grow into the background, up to a distance and to where they meet others.
 *
 * A voxel of the background gets the label of the nearest object, if that is no farther than Distance; of several
 * the one whose voxel has the lowest index.
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
class ITK_TEMPLATE_EXPORT ExpandLabelsImageFilter : public DistanceImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ExpandLabelsImageFilter);

  using Self = ExpandLabelsImageFilter;
  using Superclass = DistanceImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ExpandLabelsImageFilter);

  static_assert(std::is_floating_point<typename Superclass::Superclass::OutputPixelType>::value ||
                  std::is_integral<typename Superclass::Superclass::OutputPixelType>::value,
                "distances, labels and indices are numbers");

  const char *
  GetFilterName() const override
  {
    return "expand-labels";
  }

  /** How far objects grow, 0 or more. Default: 1. */
  itkSetMacro(Distance, double);
  itkGetConstMacro(Distance, double);

protected:
  ExpandLabelsImageFilter() = default;
  ~ExpandLabelsImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.SetReal("Distance", m_Distance);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Distance: " << m_Distance << std::endl;
  }

private:
  double m_Distance{ 1.0 };
};
} // namespace itk

#endif
