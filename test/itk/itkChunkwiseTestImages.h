/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseTestImages_h
#define itkChunkwiseTestImages_h

#include "itkImage.h"
#include "itkImageRegionConstIteratorWithIndex.h"
#include "itkImageRegionIterator.h"

#include <cstring>
#include <random>
#include <string>
#include <type_traits>

namespace chunkwisetest
{

/** An image of uniform random values in [lowest, highest], with spacing, origin and direction that are not the
 * defaults. */
template <typename TImage>
typename TImage::Pointer
MakeRandomImage(const typename TImage::RegionType & region, unsigned int seed, double lowest = 0, double highest = 100)
{
  using PixelType = typename TImage::PixelType;
  constexpr unsigned int dimension = TImage::ImageDimension;
  const auto             image = TImage::New();
  image->SetRegions(region);
  typename TImage::SpacingType   spacing;
  typename TImage::PointType     origin;
  typename TImage::DirectionType direction;
  direction.SetIdentity();
  for (unsigned int a = 0; a < dimension; ++a)
  {
    spacing[a] = 0.5 + 0.75 * a;
    origin[a] = 10.0 * a - 7.0;
  }
  direction(0, 0) = 0.8;
  direction(0, 1) = -0.6;
  direction(1, 0) = 0.6;
  direction(1, 1) = 0.8;
  image->SetSpacing(spacing);
  image->SetOrigin(origin);
  image->SetDirection(direction);
  image->Allocate();

  std::mt19937                           generator(seed);
  std::uniform_real_distribution<double> distribution(lowest, highest);
  itk::ImageRegionIterator<TImage>       it(image, region);
  for (; !it.IsAtEnd(); ++it)
  {
    it.Set(static_cast<PixelType>(distribution(generator)));
  }
  return image;
}

template <typename TImage>
typename TImage::RegionType
MakeRegion(std::initializer_list<itk::IndexValueType> index, std::initializer_list<itk::SizeValueType> size)
{
  typename TImage::RegionType region;
  unsigned int                a = 0;
  for (const auto i : index)
  {
    region.SetIndex(a++, i);
  }
  a = 0;
  for (const auto s : size)
  {
    region.SetSize(a++, s);
  }
  return region;
}

/** The message of an update that fails; "no error" of others. */
template <typename TFilter>
std::string
MessageOf(TFilter & filter)
{
  try
  {
    filter.Update();
  }
  catch (const itk::ExceptionObject & error)
  {
    return error.GetDescription();
  }
  return "no error";
}

/** A region inside `largest`, of at least one voxel. */
template <typename TRegion>
TRegion
RandomRegionInside(const TRegion & largest, std::mt19937 & generator)
{
  TRegion region;
  for (unsigned int a = 0; a < TRegion::ImageDimension; ++a)
  {
    const auto                                         extent = static_cast<itk::IndexValueType>(largest.GetSize(a));
    std::uniform_int_distribution<itk::IndexValueType> first(0, extent - 1);
    const itk::IndexValueType                          begin = first(generator);
    std::uniform_int_distribution<itk::IndexValueType> length(1, extent - begin);
    region.SetIndex(a, largest.GetIndex(a) + begin);
    region.SetSize(a, static_cast<itk::SizeValueType>(length(generator)));
  }
  return region;
}

/** Voxels of `region` whose bits differ. */
template <typename TImage>
std::size_t
CountDifferentVoxels(const TImage * a, const TImage * b, const typename TImage::RegionType & region)
{
  std::size_t                                    different = 0;
  itk::ImageRegionConstIteratorWithIndex<TImage> it(a, region);
  for (; !it.IsAtEnd(); ++it)
  {
    const auto first = it.Get();
    const auto second = b->GetPixel(it.GetIndex());
    different += std::memcmp(&first, &second, sizeof(first)) != 0;
  }
  return different;
}

/** The part of a box around a voxel that is inside the image. */
template <typename TImage>
typename TImage::RegionType
WindowInside(const TImage * image, const typename TImage::IndexType & center, const typename TImage::SizeType & radius)
{
  typename TImage::RegionType window;
  for (unsigned int a = 0; a < TImage::ImageDimension; ++a)
  {
    window.SetIndex(a, center[a] - static_cast<itk::IndexValueType>(radius[a]));
    window.SetSize(a, 2 * radius[a] + 1);
  }
  window.Crop(image->GetLargestPossibleRegion());
  return window;
}

/** The mean over the part of a box inside the image, voxel by voxel: of integers exact, rounded to nearest with ties to
 * even; else in long double. */
template <typename TImage>
typename TImage::PixelType
RenormalizedMeanAt(const TImage * image, const typename TImage::IndexType & center,
                   const typename TImage::SizeType & radius)
{
  using PixelType = typename TImage::PixelType;
  using SumType = std::conditional_t<std::is_integral<PixelType>::value, __int128, long double>;
  const auto                                     window = WindowInside(image, center, radius);
  SumType                                        sum = 0;
  itk::ImageRegionConstIteratorWithIndex<TImage> it(image, window);
  for (; !it.IsAtEnd(); ++it)
  {
    sum += static_cast<SumType>(it.Get());
  }
  const auto count = static_cast<SumType>(window.GetNumberOfPixels());
  if constexpr (std::is_integral<PixelType>::value)
  {
    SumType floor = sum / count;
    floor -= floor * count > sum ? 1 : 0;
    const SumType twice = 2 * (sum - floor * count);
    return static_cast<PixelType>(floor + (twice > count || (twice == count && floor % 2 != 0) ? 1 : 0));
  }
  else
  {
    return static_cast<PixelType>(sum / count);
  }
}

} // namespace chunkwisetest

#endif
