/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseGridImageFilterBase_h
#define itkChunkwiseGridImageFilterBase_h

#include "chunkwiseError.h"
#include "itkChunkwiseImageToImageFilter.h"

#include <initializer_list>
#include <utility>
#include <vector>

namespace itk
{
/** \class ChunkwiseGridImageFilterBase
 * \brief Base of the filters whose output has another grid than their input: the one that the table of filters says.
 *
 * The index of the output's first pixel is that of the input's.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ChunkwiseGridImageFilterBase : public ChunkwiseImageToImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseGridImageFilterBase);

  using Self = ChunkwiseGridImageFilterBase;
  using Superclass = ChunkwiseImageToImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(ChunkwiseGridImageFilterBase);

protected:
  ChunkwiseGridImageFilterBase() = default;
  ~ChunkwiseGridImageFilterBase() override = default;

  void
  GenerateOutputInformation() override;

  using SizeType = typename TOutputImage::SizeType;
  /** Sets the lists, of a number for each axis, along the axes where one of them is not `neutral`: these are the
   * spatial axes. */
  static void
  SetLists(chunkwise::FilterParameters & parameters, SizeValueType neutral,
           std::initializer_list<std::pair<const char *, const SizeType &>> lists)
  {
    std::vector<std::int64_t> axes;
    for (unsigned int a = 0; a < Superclass::ImageDimension; ++a)
    {
      bool isNeutral = true;
      for (const auto & list : lists)
      {
        isNeutral = isNeutral && list.second[a] == neutral;
      }
      if (!isNeutral)
      {
        axes.push_back(a);
      }
    }
    axes.resize(std::max<std::size_t>(axes.size(), 1));
    parameters.Set("SpatialAxes", axes);
    for (const auto & list : lists)
    {
      std::vector<std::int64_t> numbers;
      for (const std::int64_t a : axes)
      {
        numbers.push_back(static_cast<std::int64_t>(list.second[static_cast<unsigned int>(a)]));
      }
      parameters.Set(list.first, numbers);
    }
  }
};

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseGridImageFilterBase<TInputImage, TOutputImage>::GenerateOutputInformation()
{
  Superclass::GenerateOutputInformation();
  chunkwise::FilterImage grid;
  try
  {
    grid = chunkwise::GetFilterOutputImage(this->GetFilterName(), this->MakeParameters(), this->MakeFilterImage());
  }
  catch (const chunkwise::Error & error)
  {
    itkExceptionMacro(<< error.what());
  }
  typename TOutputImage::RegionType    region;
  typename TOutputImage::SpacingType   spacing;
  typename TOutputImage::PointType     origin;
  typename TOutputImage::DirectionType direction;
  region.SetIndex(this->GetInput()->GetLargestPossibleRegion().GetIndex());
  for (unsigned int row = 0; row < Superclass::ImageDimension; ++row)
  {
    region.SetSize(row, static_cast<SizeValueType>(grid.extent[static_cast<int>(row)]));
    spacing[row] = grid.spacing[row];
    // The origin of the grid is that of index 0.
    origin[row] = grid.origin[row];
    for (unsigned int column = 0; column < Superclass::ImageDimension; ++column)
    {
      direction(row, column) = grid.direction[row][column];
      origin[row] -= direction(row, column) * grid.spacing[column] * static_cast<double>(region.GetIndex(column));
    }
  }
  TOutputImage * const output = this->GetOutput();
  output->SetLargestPossibleRegion(region);
  output->SetSpacing(spacing);
  output->SetOrigin(origin);
  output->SetDirection(direction);
}

} // namespace itk

#endif
