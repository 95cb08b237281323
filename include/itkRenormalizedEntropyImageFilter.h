/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedEntropyImageFilter_h
#define itkRenormalizedEntropyImageFilter_h

#include "itkChunkwiseBoxImageFilter.h"

namespace itk
{
/** \class RenormalizedEntropyImageFilter
 * \brief The entropy of the histogram of a box, in bits, at the image's edge over the part of the box inside the image.
 *
 * The histogram has NumberOfBins bins of equal width over the range; voxels outside the range count in its first or
 * last bin. The range is the same for the whole image: by default that of the pixel type for 8- and 16-bit integers;
 * for other types it must be set.
 *
 * \par Boundary
 * Renormalized (the default): of the voxels that are both in the window and in the image. In every other boundary
 * condition the image is continued beyond its edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double; take float or double as output. Counts
 * are exact, results are within 1e-6 bits of the definition. NaN are not seen, as if IgnoreNaN
 * were set; an infinity counts in the bin at its end of the range.
 *
 * \par Memory
 * A chunk needs its input, its output and an image of one byte (two with more than 256 bins); of float and double
 * another four. Windows of more than 255
 * voxels, or more than 256 bins, take up to 128 MiB on a device beside it.
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * C. E. Shannon, "A mathematical theory of communication", 1948. Sliding histograms: T. S. Huang, G. J. Yang, G. Y.
 * Tang, "A fast two-dimensional median filtering algorithm", 1979.
 *
 * \sa RenormalizedStandardDeviationImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedEntropyImageFilter : public ChunkwiseBoxImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedEntropyImageFilter);

  using Self = RenormalizedEntropyImageFilter;
  using Superclass = ChunkwiseBoxImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedEntropyImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "entropy";
  }

  /** Windows over a part of the image: SetMaskImage, SetIgnoreNaN, SetEmptyValue; see itkChunkwiseDomainMacro. The
   * range of AutomaticRange is that of the whole image, inside and outside. */
  itkChunkwiseMaskMacro();
  itkChunkwiseIgnoreNaNMacro();
  itkSetMacro(EmptyValue, double);
  itkGetConstMacro(EmptyValue, double);

  /** Bins of the histogram, 2 to 4096. Default: 256. */
  itkSetMacro(NumberOfBins, int);
  itkGetConstMacro(NumberOfBins, int);

  /** The values where the first bin begins and the last one ends. Without it 8- and 16-bit integers have those of their
   * type, others none. */
  void
  SetRange(double minimum, double maximum);
  /** The range of SetRange. */
  itkGetConstMacro(RangeMinimum, double);
  itkGetConstMacro(RangeMaximum, double);

  /** Whether an update takes the range from the whole input: from its least finite value to its largest, which so falls
   * into the last bin; of 8- and 16-bit integers that of the pixel type. RangeMinimum and RangeMaximum are then those
   * of the last update. Default: off. */
  itkSetMacro(AutomaticRange, bool);
  itkGetConstMacro(AutomaticRange, bool);
  itkBooleanMacro(AutomaticRange);

  std::shared_ptr<const chunkwise::Operation>
  GetOperation(const chunkwise::FilterImage & image) const override;

protected:
  RenormalizedEntropyImageFilter() = default;
  ~RenormalizedEntropyImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  void
  GenerateInputRequestedRegion() override;
  void
  GenerateData() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  int    m_NumberOfBins{ 256 };
  double m_RangeMinimum{ 0.0 };
  double m_RangeMaximum{ 0.0 };
  bool   m_RangeIsSet{ false };
  bool   m_AutomaticRange{ false };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkRenormalizedEntropyImageFilter.hxx"
#endif

#endif
