/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedLocalNormalizationImageFilter_h
#define itkRenormalizedLocalNormalizationImageFilter_h

#include "itkChunkwiseBoxImageFilter.h"

namespace itk
{
/** \class RenormalizedLocalNormalizationImageFilter
 * \brief The deviation of each voxel from the mean of a box around it, in units of the standard deviation there.
 *
 * Illumination and contrast that change slowly over the image no longer show. Voxels of a box without any deviation are
 * 0.
 *
 * \par Boundary
 * Those of RenormalizedMeanImageFilter. Renormalized (the default): boxes end at the image's edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Results are negative as well: take
 * float or double as output of integers. Computed in float for float and 8- and 16-bit integers, in double for the
 * others; integer outputs are rounded to nearest, ties to even, and clamped.
 *
 * \par Memory
 * A chunk needs two images of the accumulator's type beside its input and output.
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and instruction set.
 *
 * \par Source
 * Mean and standard deviation are those of RenormalizedMeanImageFilter and RenormalizedStandardDeviationImageFilter.
 *
 * \sa NormalizeImageFilter, RenormalizedMeanImageFilter, RenormalizedStandardDeviationImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedLocalNormalizationImageFilter
  : public ChunkwiseBoxImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedLocalNormalizationImageFilter);

  using Self = RenormalizedLocalNormalizationImageFilter;
  using Superclass = ChunkwiseBoxImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedLocalNormalizationImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "normalize";
  }

  /** Smaller standard deviations count as this one, at least 0. Default: 0. */
  itkSetMacro(LeastDeviation, double);
  itkGetConstMacro(LeastDeviation, double);

protected:
  RenormalizedLocalNormalizationImageFilter() = default;
  ~RenormalizedLocalNormalizationImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.SetReal("LeastDeviation", m_LeastDeviation);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "LeastDeviation: " << m_LeastDeviation << std::endl;
  }

private:
  double m_LeastDeviation{ 0.0 };
};
} // namespace itk

#endif
