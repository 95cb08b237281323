/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkSelectLabelsImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkCommand.h"
#include "itkFillLabelHolesImageFilter.h"
#include "itkImageAlgorithm.h"
#include "itkStreamingImageFilter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace SelectLabelsImageFilterTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using chunkwisetest::MessageOf;
using chunkwisetest::RandomRegionInside;

using Labels = itk::Image<short, 3>;
using Select = itk::SelectLabelsImageFilter<Labels>;
using Fill = itk::FillLabelHolesImageFilter<Labels>;

const Labels::RegionType Region = MakeRegion<Labels>({ 3, -2, 1 }, { 17, 13, 18 });

/** Objects of many sizes, negative labels too. */
Labels::Pointer
MakeLabels(unsigned int seed)
{
  const auto                       image = MakeRandomImage<Labels>(Region, seed, 0, 20);
  itk::ImageRegionIterator<Labels> voxel(image, Region);
  std::mt19937                     random(seed);
  for (; !voxel.IsAtEnd(); ++voxel)
  {
    const auto number = static_cast<short>(random() % (1 + static_cast<unsigned int>(voxel.Get())));
    voxel.Set(static_cast<short>(number % 5 == 4 ? -number : number));
  }
  return image;
}

struct Object
{
  itk::SizeValueType voxels{ 0 };
  bool               isAtBorder{ false };
  long               lowest{ 1000 };
};

struct Choice
{
  itk::SizeValueType       least{ 0 };
  itk::SizeValueType       most{ 1000000 };
  long                     lowestX{ -1 }; ///< "bbox-0" is above it
  bool                     removesBorder{ false };
  std::size_t              keeps{ 0 };
  bool                     relabels{ false };
  Select::ReplacementsType replacements{};
};

Labels::Pointer
Expected(const Labels * labels, const Choice & choice, std::size_t & kept)
{
  const auto replaced = [&](short label) {
    const auto found = choice.replacements.find(label);
    return found == choice.replacements.end() ? label : found->second;
  };
  std::map<short, Object>                        objects;
  itk::ImageRegionConstIteratorWithIndex<Labels> from(labels, Region);
  for (; !from.IsAtEnd(); ++from)
  {
    Object & object = objects[replaced(from.Get())];
    ++object.voxels;
    for (unsigned int a = 0; a < 3; ++a)
    {
      const long at = from.GetIndex()[a] - Region.GetIndex(a);
      object.isAtBorder = object.isAtBorder || at == 0 || at + 1 == static_cast<long>(Region.GetSize(a));
      object.lowest = a == 0 ? std::min(object.lowest, at) : object.lowest;
    }
  }
  objects.erase(0);
  std::vector<std::pair<itk::SizeValueType, short>> meeting;
  for (const auto & [label, object] : objects)
  {
    if (object.voxels >= choice.least && object.voxels <= choice.most && object.lowest > choice.lowestX &&
        !(choice.removesBorder && object.isAtBorder))
    {
      meeting.emplace_back(object.voxels, label);
    }
  }
  std::stable_sort(meeting.begin(), meeting.end(), [](const auto & a, const auto & b) { return a.first > b.first; });
  if (choice.keeps > 0 && meeting.size() > choice.keeps)
  {
    meeting.resize(choice.keeps);
  }
  std::set<short> keeping;
  for (const auto & each : meeting)
  {
    keeping.insert(each.second);
  }
  kept = keeping.size();
  const auto result = Labels::New();
  result->CopyInformation(labels);
  result->SetRegions(Region);
  result->Allocate();
  itk::ImageRegionIterator<Labels> to(result, Region);
  for (from.GoToBegin(); !from.IsAtEnd(); ++from, ++to)
  {
    const auto found = keeping.find(replaced(from.Get()));
    to.Set(found == keeping.end() ? short{ 0 }
           : choice.relabels      ? static_cast<short>(1 + std::distance(keeping.begin(), found))
                                  : *found);
  }
  return result;
}

void
Configure(Select & filter, const Choice & choice)
{
  filter.SetMinimumSize(choice.least);
  filter.SetMaximumSize(choice.most);
  filter.SetConditions({ "bbox-0 > " + std::to_string(choice.lowestX) });
  filter.SetRemoveBorder(choice.removesBorder);
  filter.SetKeepLargest(choice.keeps);
  filter.SetRelabel(choice.relabels);
  filter.SetReplacements(choice.replacements);
}

TEST(SelectLabels, KeepsWhatMeetsAllConditionsHoweverTheImageIsRead)
{
  std::mt19937 random(3);
  std::size_t  changed = 0;
  for (int trial = 0; trial < 40; ++trial)
  {
    const auto labels = MakeLabels(random());
    Choice     choice;
    choice.least = random() % 3 ? random() % 60 : 0;
    choice.most = random() % 3 ? choice.least + random() % 200 : 1000000;
    choice.lowestX = random() % 3 ? -1 : 0;
    choice.removesBorder = random() % 5 == 0;
    choice.keeps = random() % 2 ? 1 + random() % 6 : 0;
    choice.relabels = random() % 2;
    if (random() % 2)
    {
      choice.replacements = { { 1, 2 }, { -4, 0 }, { 7, -9 } };
    }
    std::size_t kept = 0;
    const auto  expected = Expected(labels, choice, kept);
    const auto  filter = Select::New();
    filter->SetInput(labels);
    Configure(*filter, choice);
    filter->SetNumberOfStreamDivisions(1 + random() % 20);
    filter->SetNumberOfWorkUnits(1 + random() % 3);
    auto region = Region;
    if (random() % 2)
    {
      filter->UpdateOutputInformation();
      region = RandomRegionInside(Region, random);
      filter->GetOutput()->SetRequestedRegion(region);
    }
    filter->Update();
    EXPECT_EQ(filter->GetOutput()->GetBufferedRegion(), region);
    EXPECT_EQ(CountDifferentVoxels(filter->GetOutput(), expected.GetPointer(), region), 0U) << *filter;
    EXPECT_EQ(filter->GetNumberOfKeptLabels(), kept);
    changed += CountDifferentVoxels(labels.GetPointer(), expected.GetPointer(), Region);
    const auto streaming = itk::StreamingImageFilter<Labels, Labels>::New();
    streaming->SetInput(filter->GetOutput());
    streaming->SetNumberOfStreamDivisions(4);
    streaming->Update();
    EXPECT_EQ(CountDifferentVoxels(streaming->GetOutput(), expected.GetPointer(), Region), 0U);
  }
  EXPECT_GT(changed, 1000U);
}

/** Hands on what it is asked for, and keeps it in mind. */
class Recorder : public itk::ImageToImageFilter<Labels, Labels>
{
public:
  using Self = Recorder;
  using Pointer = itk::SmartPointer<Self>;
  itkFactorylessNewMacro(Self);

  std::vector<Labels::RegionType> regions;

protected:
  void
  GenerateData() override
  {
    this->AllocateOutputs();
    regions.push_back(this->GetOutput()->GetRequestedRegion());
    itk::ImageAlgorithm::Copy(this->GetInput(), this->GetOutput(), regions.back(), regions.back());
  }
};

TEST(SelectLabels, MeasureOnceForAllRegionsAndAnewForAnotherInputOrChoice)
{
  const auto labels = MakeLabels(5);
  const auto recorder = Recorder::New();
  recorder->SetInput(labels);
  recorder->ReleaseDataFlagOn();
  const auto filter = Select::New();
  filter->SetInput(recorder->GetOutput());
  filter->SetNumberOfStreamDivisions(6);
  filter->SetMinimumSize(40);
  const auto streaming = itk::StreamingImageFilter<Labels, Labels>::New();
  streaming->SetInput(filter->GetOutput());
  streaming->SetNumberOfStreamDivisions(3);
  streaming->Update();
  // Six slabs, then three regions; no region is larger than a third of the image.
  EXPECT_EQ(recorder->regions.size(), 9U);
  for (const auto & region : recorder->regions)
  {
    EXPECT_LE(region.GetNumberOfPixels(), Region.GetNumberOfPixels() / 3);
  }
  std::size_t kept = 0;
  Choice      choice;
  choice.least = 40;
  EXPECT_EQ(CountDifferentVoxels(streaming->GetOutput(), Expected(labels, choice, kept).GetPointer(), Region), 0U);

  filter->SetMinimumSize(choice.least = 10);
  recorder->regions.clear();
  streaming->Update();
  EXPECT_EQ(recorder->regions.size(), 9U);
  EXPECT_EQ(CountDifferentVoxels(streaming->GetOutput(), Expected(labels, choice, kept).GetPointer(), Region), 0U);

  labels->FillBuffer(3);
  labels->Modified();
  streaming->Update();
  EXPECT_EQ(CountDifferentVoxels(streaming->GetOutput(), Expected(labels, choice, kept).GetPointer(), Region), 0U);
  EXPECT_EQ(kept, 1U);
}

TEST(SelectLabels, SayWhatIsWrongBeforeAnythingIsRead)
{
  const auto filter = Select::New();
  filter->SetInput(MakeLabels(6));
  for (const char * const wrong : { "area", "colour > 1", "bbox-9 > 1", "intensity_mean > 1" })
  {
    filter->SetConditions({ wrong });
    EXPECT_NE(MessageOf(*filter).find(std::string(wrong).substr(0, 4)), std::string::npos)
      << wrong << ": " << MessageOf(*filter);
  }
  filter->SetConditions({});
  filter->AddReplacement(0, 4);
  EXPECT_NE(MessageOf(*filter).find("Replace"), std::string::npos) << MessageOf(*filter);
  filter->SetReplacements({});
  filter->SetHostMemoryBudget(10);
  filter->SetMinimumSize(2);
  EXPECT_NE(MessageOf(*filter), "no error");
  filter->SetHostMemoryBudget(0);
  EXPECT_EQ(MessageOf(*filter), "no error");
  std::ostringstream printed;
  filter->AddReplacement(1, 4);
  filter->Print(printed);
  EXPECT_NE(printed.str().find("Replacements: 1"), std::string::npos);
  EXPECT_NE(printed.str().find("MinimumSize: 2"), std::string::npos);
}

TEST(SelectLabels, StopOnRequest)
{
  const auto filter = Select::New();
  filter->SetInput(MakeLabels(7));
  const auto command = itk::CStyleCommand::New();
  command->SetCallback([](itk::Object * caller, const itk::EventObject &, void *) {
    dynamic_cast<Select &>(*caller).SetAbortGenerateData(true);
  });
  const auto observer = filter->AddObserver(itk::ProgressEvent(), command);
  EXPECT_THROW(filter->Update(), itk::ProcessAborted);
  filter->RemoveObserver(observer);
  EXPECT_NO_THROW(filter->Update());
}

/** The definition: a flood of each part of the background. */
Labels::Pointer
Filled(const Labels * labels, std::size_t & holes)
{
  const auto result = Labels::New();
  result->CopyInformation(labels);
  result->SetRegions(Region);
  result->Allocate();
  itk::ImageRegionConstIteratorWithIndex<Labels> voxel(labels, Region);
  for (; !voxel.IsAtEnd(); ++voxel)
  {
    result->SetPixel(voxel.GetIndex(), voxel.Get());
  }
  std::set<std::vector<long>> seen;
  const auto key = [](const Labels::IndexType & at) { return std::vector<long>{ at[0], at[1], at[2] }; };
  for (voxel.GoToBegin(); !voxel.IsAtEnd(); ++voxel)
  {
    if (voxel.Get() != 0 || !seen.insert(key(voxel.GetIndex())).second)
    {
      continue;
    }
    std::vector<Labels::IndexType> part{ voxel.GetIndex() };
    std::set<short>                touched;
    bool                           isActive = false;
    for (std::size_t i = 0; i < part.size(); ++i)
    {
      for (unsigned int a = 0; a < 3; ++a)
      {
        for (const int step : { -1, 1 })
        {
          Labels::IndexType next = part[i];
          next[a] += step;
          if (!Region.IsInside(next))
          {
            isActive = true;
          }
          else if (labels->GetPixel(next) != 0)
          {
            touched.insert(labels->GetPixel(next));
          }
          else if (seen.insert(key(next)).second)
          {
            part.push_back(next);
          }
        }
      }
    }
    if (!isActive && touched.size() == 1)
    {
      ++holes;
      for (const auto & at : part)
      {
        result->SetPixel(at, *touched.begin());
      }
    }
  }
  return result;
}

TEST(FillLabelHoles, FillsWhatOneObjectAloneEncloses)
{
  std::size_t all = 0;
  for (unsigned int seed = 1; seed < 12; ++seed)
  {
    const auto   labels = MakeLabels(seed);
    std::mt19937 random(seed);
    for (itk::ImageRegionIterator<Labels> voxel(labels, Region); !voxel.IsAtEnd(); ++voxel)
    {
      voxel.Set(static_cast<short>(random() % 12 == 0 ? 0 : random() % 40 == 0 ? -3 : 5));
    }
    std::size_t holes = 0;
    const auto  expected = Filled(labels, holes);
    all += holes;
    const auto filter = Fill::New();
    filter->SetInput(labels);
    filter->SetNumberOfWorkUnits(1 + seed % 3);
    filter->UpdateOutputInformation();
    filter->GetOutput()->SetRequestedRegion(RandomRegionInside(Region, random));
    filter->Update();
    EXPECT_EQ(filter->GetOutput()->GetBufferedRegion(), Region);
    EXPECT_EQ(CountDifferentVoxels(filter->GetOutput(), expected.GetPointer(), Region), 0U);
    EXPECT_EQ(filter->GetNumberOfFilledHoles(), holes);
  }
  EXPECT_GT(all, 100U);
}

TEST(FillLabelHoles, KeepToTheBudgetAndStopOnRequest)
{
  const auto labels = MakeLabels(9);
  const auto filter = Fill::New();
  filter->SetInput(labels);
  filter->Update();
  const Labels::Pointer expected = filter->GetOutput();
  expected->DisconnectPipeline();
  filter->SetHostMemoryBudget(1000);
  for (int step = 0; step < 4 && MessageOf(*filter) != "no error"; ++step)
  {
    // The last number of the message is the budget or what is enough: the largest of all.
    std::istringstream words(MessageOf(*filter));
    itk::SizeValueType most = 0;
    for (std::string word; words >> word;)
    {
      const auto number = static_cast<itk::SizeValueType>(std::atoll(word.c_str()));
      most = std::max(most, number);
    }
    EXPECT_GT(most, filter->GetHostMemoryBudget());
    filter->SetHostMemoryBudget(most);
  }
  filter->Update();
  EXPECT_EQ(CountDifferentVoxels(filter->GetOutput(), expected.GetPointer(), Region), 0U);

  const auto command = itk::CStyleCommand::New();
  command->SetCallback([](itk::Object * caller, const itk::EventObject &, void *) {
    dynamic_cast<Fill &>(*caller).SetAbortGenerateData(true);
  });
  filter->AddObserver(itk::ProgressEvent(), command);
  filter->Modified();
  EXPECT_THROW(filter->Update(), itk::ProcessAborted);
}

TEST(FillLabelHoles, TakesImagesOfTwoDimensionsAndOfNoVoxels)
{
  using Slice = itk::Image<unsigned long, 2>;
  const auto slice = MakeRandomImage<Slice>(MakeRegion<Slice>({ -1, 4 }, { 5, 5 }), 1, 7, 7);
  slice->SetPixel({ { 1, 6 } }, 0);
  slice->SetPixel({ { -1, 6 } }, 0);
  const auto filter = itk::FillLabelHolesImageFilter<Slice>::New();
  filter->SetInput(slice);
  filter->Update();
  EXPECT_EQ(filter->GetNumberOfFilledHoles(), 1U);
  EXPECT_EQ(filter->GetOutput()->GetPixel({ { 1, 6 } }), 7U);
  EXPECT_EQ(filter->GetOutput()->GetPixel({ { -1, 6 } }), 0U);
  const auto empty = Slice::New();
  empty->SetRegions(MakeRegion<Slice>({ 0, 0 }, { 0, 5 }));
  empty->Allocate();
  const auto select = itk::SelectLabelsImageFilter<Slice>::New();
  select->SetInput(empty);
  select->SetMinimumSize(3);
  EXPECT_EQ(MessageOf(*select), "no error");
  filter->SetInput(empty);
  EXPECT_EQ(MessageOf(*filter), "no error");
}

} // namespace SelectLabelsImageFilterTest
