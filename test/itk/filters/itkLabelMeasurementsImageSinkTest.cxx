/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkLabelMeasurementsImageSink.h"

#include "itkChunkwiseTestImages.h"
#include "itkCommand.h"
#include "itkStreamingImageFilter.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

namespace LabelMeasurementsImageSinkTest
{

using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using chunkwisetest::MessageOf;

using LabelImage = itk::Image<short, 3>;
using FloatImage = itk::Image<float, 3>;
using Sink = itk::LabelMeasurementsImageSink<LabelImage, FloatImage>;

struct Object
{
  double                          voxels{ 0 };
  double                          sum{ 0 };
  float                           largest{ -1 };
  itk::ContinuousIndex<double, 3> index{};
};

class LabelMeasurements : public ::testing::Test
{
protected:
  const LabelImage::RegionType region = MakeRegion<LabelImage>({ 3, -2, 1 }, { 17, 13, 18 });
  const LabelImage::Pointer    labels = MakeRandomImage<LabelImage>(region, 5, -2.9, 3.9);
  const FloatImage::Pointer    intensity = MakeRandomImage<FloatImage>(region, 6);

  std::map<int, Object>
  Measure() const
  {
    std::map<int, Object> objects;
    for (itk::ImageRegionConstIteratorWithIndex<LabelImage> it(labels, region); !it.IsAtEnd(); ++it)
    {
      if (it.Get() == 0)
      {
        continue;
      }
      Object &    object = objects[it.Get()];
      const float value = intensity->GetPixel(it.GetIndex());
      object.voxels += 1;
      object.sum += static_cast<double>(value);
      object.largest = std::max(object.largest, value);
      for (unsigned int a = 0; a < 3; ++a)
      {
        object.index[a] += static_cast<double>(it.GetIndex()[a]);
      }
    }
    for (auto & [label, object] : objects)
    {
      for (unsigned int a = 0; a < 3; ++a)
      {
        object.index[a] /= object.voxels;
      }
    }
    return objects;
  }
  std::map<std::pair<int, int>, int>
  CountFaces() const
  {
    std::map<std::pair<int, int>, int> faces;
    for (itk::ImageRegionConstIteratorWithIndex<LabelImage> it(labels, region); !it.IsAtEnd(); ++it)
    {
      for (unsigned int a = 0; a < 3; ++a)
      {
        LabelImage::IndexType next = it.GetIndex();
        ++next[a];
        if (region.IsInside(next))
        {
          const int other = labels->GetPixel(next);
          if (it.Get() != 0 && other != 0 && other != it.Get())
          {
            ++faces[std::minmax<int>(it.Get(), other)];
          }
        }
      }
    }
    return faces;
  }
};

TEST_F(LabelMeasurements, AreThoseOfTheDefinitionInAnyDivisions)
{
  const auto          objects = this->Measure();
  const auto          faces = this->CountFaces();
  std::vector<double> first;
  for (const unsigned int divisions : { 1, 2, 5, 18 })
  {
    const auto sink = Sink::New();
    sink->SetInput(labels);
    sink->SetIntensityImage(intensity);
    sink->SetContacts(true);
    sink->SetNumberOfStreamDivisions(divisions);
    sink->Update();
    ASSERT_EQ(sink->GetNumberOfObjects(), objects.size());
    const auto  numbers = sink->GetColumn("label");
    const auto  voxels = sink->GetColumn("num_pixels");
    const auto  area = sink->GetColumn("area");
    const auto  mean = sink->GetColumn("intensity_mean");
    const auto  largest = sink->GetColumn("intensity_max");
    std::size_t row = 0;
    for (const auto & [label, object] : objects)
    {
      EXPECT_EQ(numbers[row], label);
      EXPECT_EQ(voxels[row], object.voxels);
      EXPECT_NEAR(area[row], object.voxels * 0.5 * 1.25 * 2.0, 1e-9);
      EXPECT_NEAR(mean[row], object.sum / object.voxels, 1e-9);
      EXPECT_EQ(largest[row], static_cast<double>(object.largest));
      const auto point = labels->TransformContinuousIndexToPhysicalPoint<double>(object.index);
      for (unsigned int a = 0; a < 3; ++a)
      {
        EXPECT_NEAR(sink->GetColumn("centroid_physical-" + std::to_string(a))[row], point[a], 1e-9);
        // Indices begin at the first voxel of the image.
        EXPECT_NEAR(sink->GetColumn("centroid-" + std::to_string(a))[row],
                    object.index[a] - static_cast<double>(region.GetIndex()[a]),
                    1e-9);
      }
      ++row;
    }
    std::map<std::pair<int, int>, int> counted;
    const auto &                       contacts = sink->GetContactTable();
    for (std::size_t i = 0; i < contacts.at(0).GetSize(); ++i)
    {
      counted[{ contacts[0].GetValue(i).As<int>(), contacts[1].GetValue(i).As<int>() }] =
        contacts[2].GetValue(i).As<int>();
    }
    EXPECT_EQ(counted, faces);
    std::vector<double> all;
    for (const auto & column : sink->GetTable())
    {
      const auto values = sink->GetColumn(column.name);
      all.insert(all.end(), values.begin(), values.end());
    }
    first = divisions == 1 ? all : first;
    EXPECT_EQ(all, first) << divisions;
  }
}

TEST_F(LabelMeasurements, GiveTheColumnsThatWereAskedFor)
{
  const auto sink = Sink::New();
  sink->SetInput(labels);
  sink->SetProperties({ "area" });
  sink->Update();
  ASSERT_EQ(sink->GetTable().size(), 2u);
  EXPECT_EQ(sink->GetTable()[0].name, "label");
  EXPECT_EQ(sink->GetTable()[1].name, "area");
  EXPECT_TRUE(sink->GetContactTable().empty());
  std::ostringstream os;
  sink->Print(os);
  EXPECT_NE(os.str().find("Properties: area"), std::string::npos);
  try
  {
    (void)sink->GetColumn("volume");
    FAIL() << "there is such a column";
  }
  catch (const itk::ExceptionObject & error)
  {
    EXPECT_NE(std::string(error.GetDescription()).find("no column volume; there are label, area"), std::string::npos)
      << error.GetDescription();
  }
}

TEST_F(LabelMeasurements, RefuseBeforeAnythingIsRead)
{
  const auto source = itk::StreamingImageFilter<LabelImage, LabelImage>::New();
  source->SetInput(labels);
  const auto sink = Sink::New();
  sink->SetInput(source->GetOutput());
  sink->SetProperties({ "area", "volume" });
  EXPECT_NE(MessageOf(*sink).find("volume"), std::string::npos) << MessageOf(*sink);
  sink->SetProperties({ "intensity_mean" });
  EXPECT_NE(MessageOf(*sink).find("intensity_mean"), std::string::npos) << MessageOf(*sink);
  EXPECT_EQ(source->GetOutput()->GetBufferedRegion().GetNumberOfPixels(), 0u);
  sink->SetProperties({});
  const auto other = FloatImage::New();
  other->SetRegions(FloatImage::SizeType{ { 17, 13, 17 } });
  other->CopyInformation(labels);
  other->SetRegions(FloatImage::SizeType{ { 17, 13, 17 } });
  other->Allocate();
  sink->SetIntensityImage(other);
  EXPECT_NE(MessageOf(*sink).find("IntensityImage"), std::string::npos) << MessageOf(*sink);
}

TEST_F(LabelMeasurements, KeepTheirBudget)
{
  using Labels = itk::Image<unsigned int, 3>;
  const auto image = MakeRandomImage<Labels>(MakeRegion<Labels>({ 0, 0, 0 }, { 30, 30, 30 }), 5, 1, 1e9);
  const auto sink = itk::LabelMeasurementsImageSink<Labels>::New();
  sink->SetInput(image);
  sink->SetHostMemoryBudget(1 << 20);
  EXPECT_NE(MessageOf(*sink).find("memory"), std::string::npos) << MessageOf(*sink);
  sink->SetHostMemoryBudget(0);
  sink->Update();
  EXPECT_GT(sink->GetNumberOfObjects(), 26000u);
}

TEST_F(LabelMeasurements, AreNoneOfAnImageWithoutObjectsOrVoxels)
{
  for (const bool hasVoxels : { true, false })
  {
    const auto image = LabelImage::New();
    image->SetRegions(LabelImage::SizeType{ { 5, hasVoxels ? 4u : 0u, 3 } });
    image->Allocate(true);
    const auto sink = Sink::New();
    sink->SetInput(image);
    sink->SetNumberOfStreamDivisions(2);
    sink->Update();
    EXPECT_EQ(sink->GetNumberOfObjects(), 0u);
    EXPECT_TRUE(sink->GetColumn("area").empty());
  }
}

TEST_F(LabelMeasurements, CanBeAbortedAndMadeAnew)
{
  const auto sink = Sink::New();
  sink->SetInput(labels);
  sink->SetNumberOfStreamDivisions(18);
  const auto tag = sink->AddObserver(itk::ProgressEvent(), [&sink](const itk::EventObject &) {
    if (sink->GetProgress() > 0.25F)
    {
      sink->AbortGenerateDataOn();
    }
  });
  EXPECT_THROW(sink->Update(), itk::ProcessAborted);
  EXPECT_EQ(sink->GetNumberOfObjects(), 0u);
  sink->RemoveObserver(tag);
  sink->Update();
  EXPECT_EQ(sink->GetNumberOfObjects(), this->Measure().size());
}

} // namespace LabelMeasurementsImageSinkTest
