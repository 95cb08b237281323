/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkBoxStatisticImageFilter_h
#define itkBoxStatisticImageFilter_h

#include "itkBoxStatisticEnums.h"
#include "itkChunkwiseBoxImageFilter.h"

#include <type_traits>

namespace itk
{
/** \class BoxStatisticImageFilter
 * \brief Sum, mean, variance or standard deviation over a box around each voxel, whose radius may differ from voxel to
 * voxel.
 *
 * The time does not depend on the boxes: sums come from a few entries of summed-area tables. Without a RadiusImage
 * every box has the filter's Radius. With one, whose value at a voxel is r, the box there has the radius min(max(r, 0),
 * Radius[a]) along axis a: Radius is the largest, and bounds what a piece of the output requests.
 *
 * \par Boundary
 * Renormalized, and no other: the statistic of the part of the box inside the image.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double; of the RadiusImage, any integers. Sums
 * over integers are exact, as are those of squares of integers of up to 32 bits, and the results are those of
 * RenormalizedMeanImageFilter, RenormalizedSumImageFilter, RenormalizedVarianceImageFilter and
 * RenormalizedStandardDeviationImageFilter, bit for bit. Float and double, and variances of 64-bit integers, are
 * computed in double, from tables that begin anew at blocks of up to 4 Radius[a] voxels along an axis, and no fewer
 * than 256 along x, 64 along others (32 along the third). A sum is off by at most about 2^-46, commonly 2^-50, times
 * the sum of the magnitudes in the up to 8 blocks that a box meets (radii up to 32; it grows with the blocks); a
 * variance by as much of the sum of their squares, divided by the box's number of voxels: an offset that is large
 * against the deviations shows in it, which it does not in RenormalizedVarianceImageFilter. A NaN or an infinity gives
 * NaN also to other boxes that meet its block.
 *
 * \par Memory
 * A chunk needs its inputs, its output and a table: an entry for each voxel of its input, of 4 to 16 bytes for sums and
 * 8 to 32 for variances. Tables never leave the device. On the CPU each thread has the table of a tile.
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, where sums are not exact downwards also by a block, and
 * cut at the image; of the RadiusImage too.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too. The last bits of results for float, double, and variances of 64-bit integers depend
 * on Radius, also where the RadiusImage gives a smaller one.
 *
 * \par Source
 * F. C. Crow, "Summed-area tables for texture mapping", SIGGRAPH 1984; boxes of varying size for the depth of field as
 * in J. Hensley, T. Scheuermann, G. Coombe, M. Singh, A. Lastra, "Fast summed-area table generation and its
 * applications", Computer Graphics Forum 24(3), 2005.
 *
 * \sa SummedAreaTableImageFilter RenormalizedMeanImageFilter RenormalizedVarianceImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage,
          typename TRadiusImage = Image<unsigned short, TInputImage::ImageDimension>>
class ITK_TEMPLATE_EXPORT BoxStatisticImageFilter : public ChunkwiseBoxImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(BoxStatisticImageFilter);

  using Self = BoxStatisticImageFilter;
  using Superclass = ChunkwiseBoxImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(BoxStatisticImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "box";
  }

  using InputImageType = TInputImage;
  using OutputImageType = TOutputImage;
  using RadiusImageType = TRadiusImage;
  using StatisticEnum = BoxStatisticEnums::Statistic;

  static_assert(std::is_integral<typename RadiusImageType::PixelType>::value &&
                  !std::is_same<typename RadiusImageType::PixelType, bool>::value,
                "radii are integers");
  static_assert(RadiusImageType::ImageDimension == TInputImage::ImageDimension, "input and radii of one dimension");

  /** The statistic. Default: Mean. */
  itkSetEnumMacro(Statistic, StatisticEnum);
  itkGetEnumMacro(Statistic, StatisticEnum);

  /** The radius of each voxel's box, at the same index; it covers the input's largest possible region. Default: none.
   */
  itkSetInputMacro(RadiusImage, RadiusImageType);
  itkGetInputMacro(RadiusImage, RadiusImageType);

  /** Windows over a part of the image: SetMaskImage, SetWeightImage, SetIgnoreNaN, SetEmptyValue. */
  itkChunkwiseDomainMacro();
  itkSetMacro(EmptyValue, double);
  itkGetConstMacro(EmptyValue, double);

protected:
  BoxStatisticImageFilter() { this->AddOptionalInputName("RadiusImage", 1); }
  ~BoxStatisticImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  chunkwise::BufferView
  GetInputView(unsigned int i) const override;
  chunkwise::PixelType
  GetInputKind(unsigned int i) const override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  StatisticEnum m_Statistic{ StatisticEnum::Mean };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkBoxStatisticImageFilter.hxx"
#endif

#endif
