/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkSlidingWindowNetworkImageFilter.h"

#include "chunkwiseSmallNetwork.h"
#include "itkChunkwiseTestImages.h"

#include "itkImageFileReader.h"
#include "itkImageFileWriter.h"
#include "itkMetaImageIOFactory.h"
#include "itkNiftiImageIOFactory.h"
#include "itkStreamingImageFilter.h"
#include "itkVectorImage.h"

#include <cstdio>

#include <gtest/gtest.h>

namespace SlidingWindowNetworkImageFilterTest
{

template <unsigned int VDimension>
void
CompareChannels(std::initializer_list<itk::IndexValueType> index, std::initializer_list<itk::SizeValueType> size,
                unsigned int divisions)
{
  using ImageType = itk::Image<short, VDimension>;
  using VectorType = itk::VectorImage<float, VDimension>;
  using ChannelType = itk::Image<float, VDimension>;
  const auto region = chunkwisetest::MakeRegion<ImageType>(index, size);
  const auto image = chunkwisetest::MakeRandomImage<ImageType>(region, 7);
  const auto graph = chunkwise::MakeSmallNetwork();
  const auto all = itk::SlidingWindowNetworkImageFilter<ImageType, VectorType>::New();
  all->SetInput(image);
  all->SetGraph(graph);
  all->SetPrecision(itk::SlidingWindowNetworkEnums::Precision::Reproducible);
  all->SetBackend(itk::ChunkwiseEnums::Backend::CPU);
  const auto stream = itk::StreamingImageFilter<VectorType, VectorType>::New();
  stream->SetInput(all->GetOutput());
  stream->SetNumberOfStreamDivisions(divisions);
  stream->Update();
  const VectorType * const vectors = stream->GetOutput();
  ASSERT_EQ(vectors->GetNumberOfComponentsPerPixel(), 3u);
  ASSERT_EQ(vectors->GetBufferedRegion(), region);
  EXPECT_EQ(vectors->GetSpacing(), image->GetSpacing());
  for (int c = 0; c < graph->GetNumberOfOutputChannels(); ++c)
  {
    const auto one = itk::SlidingWindowNetworkImageFilter<ImageType, ChannelType>::New();
    one->SetInput(image);
    one->SetGraph(graph);
    one->SetChannel(c);
    one->SetPrecision(itk::SlidingWindowNetworkEnums::Precision::Reproducible);
    one->SetBackend(itk::ChunkwiseEnums::Backend::CPU);
    one->Update();
    itk::ImageRegionConstIteratorWithIndex<ChannelType> it(one->GetOutput(), region);
    for (; !it.IsAtEnd(); ++it)
    {
      ASSERT_EQ(vectors->GetPixel(it.GetIndex())[static_cast<unsigned int>(c)], it.Get()) << it.GetIndex();
    }
  }
}

TEST(SlidingWindowNetworkImageFilter, VectorsHaveAllChannels)
{
  CompareChannels<3>({ 3, -2, 5 }, { 17, 12, 9 }, 1);
  CompareChannels<3>({ 3, -2, 5 }, { 17, 12, 9 }, 4);
  CompareChannels<4>({ 0, 1, -1, 2 }, { 9, 7, 5, 3 }, 3);
}

TEST(SlidingWindowNetworkImageFilter, VectorsAreWrittenAndRead)
{
  using ImageType = itk::Image<unsigned char, 3>;
  using VectorType = itk::VectorImage<float, 3>;
  itk::MetaImageIOFactory::RegisterOneFactory();
  itk::NiftiImageIOFactory::RegisterOneFactory();
  const auto region = chunkwisetest::MakeRegion<ImageType>({ 0, 0, 0 }, { 11, 8, 6 });
  const auto all = itk::SlidingWindowNetworkImageFilter<ImageType, VectorType>::New();
  all->SetInput(chunkwisetest::MakeRandomImage<ImageType>(region, 8));
  all->SetGraph(chunkwise::MakeSmallNetwork());
  all->Update();
  for (const char * const name : { "channels.mha", "channels.nii" })
  {
    itk::WriteImage(all->GetOutput(), name);
    const auto read = itk::ReadImage<VectorType>(name);
    ASSERT_EQ(read->GetNumberOfComponentsPerPixel(), 3u) << name;
    itk::ImageRegionConstIteratorWithIndex<VectorType> it(all->GetOutput(), region);
    for (; !it.IsAtEnd(); ++it)
    {
      ASSERT_EQ(read->GetPixel(it.GetIndex()), it.Get()) << name;
    }
    std::remove(name);
  }
}

TEST(SlidingWindowNetworkImageFilter, VectorsTakeNoOtherMode)
{
  using ImageType = itk::Image<float, 2>;
  using VectorType = itk::VectorImage<float, 2>;
  const auto region = chunkwisetest::MakeRegion<ImageType>({ 0, 0 }, { 8, 8 });
  const auto all = itk::SlidingWindowNetworkImageFilter<ImageType, VectorType>::New();
  all->SetInput(chunkwisetest::MakeRandomImage<ImageType>(region, 9));
  EXPECT_THROW(all->Update(), itk::ExceptionObject); // no network
  all->SetGraph(chunkwise::MakeSmallNetwork());
  all->SetOutputMode(itk::SlidingWindowNetworkEnums::OutputMode::ArgMax);
  EXPECT_THROW(all->Update(), itk::ExceptionObject);
  // Its windows have a third axis.
  all->SetOutputMode(itk::SlidingWindowNetworkEnums::OutputMode::Channel);
  EXPECT_THROW(all->Update(), itk::ExceptionObject);
}

} // namespace SlidingWindowNetworkImageFilterTest
