/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkContrastLimitedAdaptiveHistogramEqualizationImageFilter_h
#define itkContrastLimitedAdaptiveHistogramEqualizationImageFilter_h

#include "chunkwiseStatistics.h"
#include "itkSpatialAxesImageFilterBase.h"

namespace itk
{
/** \class ContrastLimitedAdaptiveHistogramEqualizationImageFilter
 * \brief The same contrast everywhere: equalizes the histograms of tiles, clipped, and interpolates between them.
 *
 * The image is cut into tiles on a grid that begins at its first voxel. Each has a histogram, of which no bin may hold
 * more than a part of the voxels; it is cumulated to a mapping. A voxel's mapping is interpolated linearly between the
 * tiles around it. docs/enhancement.md has the definition.
 *
 * \par Boundary
 * Tiles that the image's edge cuts are filled up by reflection.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Computed in float for float and 8- and
 * 16-bit integers, in double for the others; integer outputs are rounded to nearest, ties to even, and clamped.
 *
 * \par Memory
 * A mapping of as many numbers as bins for each tile that a chunk meets.
 *
 * \par Streaming
 * Requests the output's requested region padded by one and a half tiles and cut at the image; the whole image if
 * SetRange was not called.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and instruction set.
 *
 * \par Source
 * K. Zuiderveld, "Contrast limited adaptive histogram equalization", Graphics Gems IV, 1994.
 *
 * \sa AdaptiveHistogramEqualizationImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ContrastLimitedAdaptiveHistogramEqualizationImageFilter
  : public SpatialAxesImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ContrastLimitedAdaptiveHistogramEqualizationImageFilter);

  using Self = ContrastLimitedAdaptiveHistogramEqualizationImageFilter;
  using Superclass = SpatialAxesImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ContrastLimitedAdaptiveHistogramEqualizationImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "clahe";
  }

  using TileSizeType = FixedArray<std::int64_t, TInputImage::ImageDimension>;

  /** The voxels of a tile along each axis; entries of axes that are not spatial are not used. Default: 0, an eighth of
   * the image. */
  itkSetMacro(TileSize, TileSizeType);
  itkGetConstReferenceMacro(TileSize, TileSizeType);

  /** The part of a tile's voxels that a bin holds at most; at least 0, which clips nothing. Default: 0.01. */
  itkSetMacro(ClipLimit, double);
  itkGetConstMacro(ClipLimit, double);

  /** Bins of the histograms, 2 to 4096. Default: 256. */
  itkSetMacro(NumberOfBins, int);
  itkGetConstMacro(NumberOfBins, int);

  /** The values from which and up to which the image is equalized. Default: the least and the largest finite value of
   * the whole input, for which an update reads it. */
  void
  SetRange(double minimum, double maximum)
  {
    m_RangeIsSet = true;
    m_RangeMinimum = minimum;
    m_RangeMaximum = maximum;
    this->Modified();
  }
  /** The range of SetRange, or that of the last update. */
  itkGetConstMacro(RangeMinimum, double);
  itkGetConstMacro(RangeMaximum, double);

protected:
  ContrastLimitedAdaptiveHistogramEqualizationImageFilter() { m_TileSize.Fill(0); }
  ~ContrastLimitedAdaptiveHistogramEqualizationImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    std::vector<std::int64_t>   tile;
    for (const unsigned int axis : this->GetSpatialAxes())
    {
      tile.push_back(axis < ImageDimension ? m_TileSize[axis] : 0);
    }
    if (std::any_of(tile.begin(), tile.end(), [](std::int64_t size) { return size != 0; }))
    {
      parameters.Set("TileSize", tile);
    }
    parameters.SetReal("ClipLimit", m_ClipLimit);
    parameters.SetInteger("NumberOfBins", m_NumberOfBins);
    parameters.Set("Range", std::vector<double>{ m_RangeMinimum, m_RangeMaximum });
    return parameters;
  }
  std::shared_ptr<const chunkwise::Operation>
  GetOperation(const chunkwise::FilterImage & image) const override
  {
    if (!m_RangeIsSet)
    {
      itkExceptionMacro("Range: not set, and as a part of something else the filter has no input to take it from");
    }
    return Superclass::GetOperation(image);
  }
  void
  GenerateInputRequestedRegion() override
  {
    Superclass::GenerateInputRequestedRegion();
    auto * const input = const_cast<TInputImage *>(this->GetInput());
    if (!m_RangeIsSet && input)
    {
      input->SetRequestedRegionToLargestPossibleRegion();
    }
  }
  void
  GenerateData() override
  {
    if (!m_RangeIsSet && this->GetOutput()->GetRequestedRegion().GetNumberOfPixels() > 0)
    {
      this->ComputeFromWholeInput([&](auto & manager, const auto & request, auto & monitor) {
        const std::vector<double> found = chunkwise::EstimateParameter(
          manager, request, *chunkwise::GetFilter("clahe").FindParameter("Range"), &monitor);
        m_RangeMinimum = found.at(0);
        m_RangeMaximum = found.at(1);
      });
    }
    Superclass::GenerateData();
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "TileSize: " << m_TileSize << std::endl;
    os << indent << "ClipLimit: " << m_ClipLimit << std::endl;
    os << indent << "NumberOfBins: " << m_NumberOfBins << std::endl;
    os << indent << "Range: " << m_RangeMinimum << " " << m_RangeMaximum << (m_RangeIsSet ? "" : " (of the input)")
       << std::endl;
  }

private:
  TileSizeType m_TileSize;
  double       m_ClipLimit{ 0.01 };
  int          m_NumberOfBins{ 256 };
  bool         m_RangeIsSet{ false };
  double       m_RangeMinimum{ 0.0 };
  double       m_RangeMaximum{ 0.0 };
};
} // namespace itk

#endif
