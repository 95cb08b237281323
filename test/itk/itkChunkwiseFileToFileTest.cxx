/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseFileToFile.h"

#include "itkChunkwiseSequenceImageFilter.h"
#include "itkChunkwiseTestImages.h"
#include "itkChunkwiseZarrImageIO.h"
#include "itkCommand.h"
#include "itkExtractImageFilter.h"
#include "itkHeapReconstructionByDilationImageFilter.h"
#include "itkHeapRegionalMaximaImageFilter.h"
#include "itkImageFileReader.h"
#include "itkImageFileWriter.h"
#include "itkMetaImageIO.h"
#include "itkNrrdImageIO.h"
#include "itkRenormalizedGaussianImageFilter.h"
#include "itkRenormalizedMedianImageFilter.h"
#include "itkRenormalizedSumImageFilter.h"
#include "itkRenormalizedWienerImageFilter.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <set>

namespace
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using Short3 = itk::Image<short, 3>;
using Byte3 = itk::Image<unsigned char, 3>;
using Float3 = itk::Image<float, 3>;
using Run = itk::ChunkwiseFileToFile;

const auto Region = MakeRegion<Short3>({ 0, 0, 0 }, { 61, 47, 90 });

template <typename TImage>
void
Write(const TImage * image, const std::string & file)
{
  const auto writer = itk::ImageFileWriter<TImage>::New();
  writer->SetImageIO(itk::MetaImageIO::New());
  writer->SetInput(image);
  writer->SetFileName(file);
  writer->Update();
}

template <typename TImage>
typename TImage::Pointer
Read(const std::string & file)
{
  const auto reader = itk::ImageFileReader<TImage>::New();
  if (std::filesystem::path(file).extension() == ".nrrd")
  {
    reader->SetImageIO(itk::NrrdImageIO::New());
  }
  else
  {
    reader->SetImageIO(itk::MetaImageIO::New());
  }
  reader->SetFileName(file);
  reader->Update();
  return reader->GetOutput();
}

std::string
WhatOf(Run * run)
{
  try
  {
    run->Update();
  }
  catch (const itk::ExceptionObject & error)
  {
    // Without ITK's words for where it was thrown.
    const std::string text = error.GetDescription();
    const auto        begin = text.find("): ");
    return begin == std::string::npos ? text : text.substr(begin + 3);
  }
  return "";
}

/** The memory that a refused run asks for. */
itk::SizeValueType
LeastMemoryOf(Run * run)
{
  run->SetMemory(1);
  const std::string text = WhatOf(run);
  const auto        begin = text.find("needs ");
  EXPECT_NE(begin, std::string::npos) << text;
  return begin == std::string::npos ? 0 : std::stoull(text.substr(begin + 6));
}

/** A folder of files, and a run from one of them to another. */
class ChunkwiseFileToFile : public testing::Test
{
protected:
  void
  SetUp() override
  {
    m_Folder = testing::TempDir() + "chunkwise-" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(m_Folder);
    std::filesystem::create_directories(m_Folder);
    m_Image = MakeRandomImage<Short3>(Region, 5, -300, 300);
    Write<Short3>(m_Image, this->Name("in.mha"));
    m_Run = Run::New();
    m_Run->SetInputFileName(this->Name("in.mha"));
    m_Run->SetOutputFileName(this->Name("out.mha"));
  }
  void
  TearDown() override
  {
    std::filesystem::remove_all(m_Folder);
  }
  std::string
  Name(const std::string & file) const
  {
    return m_Folder + "/" + file;
  }
  /** Files that are there but the input. */
  std::size_t
  CountOthers() const
  {
    std::size_t count = 0;
    for (const auto & entry : std::filesystem::directory_iterator(m_Folder))
    {
      count += entry.path().filename() != "in.mha" && entry.path().filename() != "marker.mha" ? 1 : 0;
    }
    return count;
  }
  template <typename TImage>
  void
  ExpectResult(const TImage * expected, const std::string & file)
  {
    const auto written = Read<TImage>(this->Name(file));
    ASSERT_EQ(written->GetLargestPossibleRegion().GetSize(), expected->GetLargestPossibleRegion().GetSize());
    EXPECT_EQ(CountDifferentVoxels<TImage>(written, expected, expected->GetLargestPossibleRegion()), 0u);
    for (unsigned int a = 0; a < 3; ++a)
    {
      EXPECT_NEAR(written->GetSpacing()[a], expected->GetSpacing()[a], 1e-6);
      EXPECT_NEAR(written->GetOrigin()[a], expected->GetOrigin()[a], 1e-6);
      EXPECT_NEAR(written->GetDirection()(a, 0), expected->GetDirection()(a, 0), 1e-6);
    }
  }

  std::string     m_Folder;
  Short3::Pointer m_Image;
  Run::Pointer    m_Run;
};

TEST_F(ChunkwiseFileToFile, GivesWhatTheFilterGivesInMemory)
{
  const auto median = itk::RenormalizedMedianImageFilter<Short3>::New();
  median->SetRadius(2);
  m_Run->SetFilter(median.GetPointer());
  for (const itk::SizeValueType memory : { itk::SizeValueType{ 0 }, LeastMemoryOf(m_Run) })
  {
    m_Run->SetMemory(memory);
    ASSERT_EQ(WhatOf(m_Run), "");
    EXPECT_EQ(m_Run->GetBytesRead(), Region.GetNumberOfPixels() * sizeof(short)) << "each voxel once";
    EXPECT_GT(m_Run->GetBytesWritten(), Region.GetNumberOfPixels() * sizeof(short));
    EXPECT_FALSE(m_Run->GetReport().execution.backend.empty());
    EXPECT_EQ(median->GetInput(), nullptr);
    const auto other = itk::RenormalizedMedianImageFilter<Short3>::New();
    other->SetRadius(2);
    other->SetInput(m_Image);
    other->Update();
    this->ExpectResult<Short3>(other->GetOutput(), "out.mha");
  }
}

#if defined(CHUNKWISE_TEST_PROGRAM)
/** The plan that the program prints for the run, as JSON. */
std::string
PlanOfProgram(const std::string & words)
{
  FILE * const pipe = ::popen((std::string(CHUNKWISE_TEST_PROGRAM) + " plan " + words + " --json 2>&1").c_str(), "r");
  std::string  text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe))
  {
    text += static_cast<char>(c);
  }
  EXPECT_EQ(::pclose(pipe), 0) << text;
  return text;
}

/** A number of an object: "count" of "divisions". */
std::int64_t
NumberOf(const std::string & json, const std::string & object, const std::string & name)
{
  const std::size_t of = object.empty() ? 0 : json.find("\"" + object + "\": {");
  const std::size_t at = json.find("\"" + name + "\": ", of);
  EXPECT_NE(at, std::string::npos) << name << " in " << json;
  return at == std::string::npos ? -1 : std::stoll(json.substr(at + name.size() + 4));
}

TEST_F(ChunkwiseFileToFile, PlansAsTheProgramDoes)
{
  const auto large = MakeRandomImage<Short3>(MakeRegion<Short3>({ 0, 0, 0 }, { 160, 150, 190 }), 5, -300, 300);
  Write<Short3>(large, this->Name("in.mha"));
  const auto median = itk::RenormalizedMedianImageFilter<Short3>::New();
  median->SetRadius(2);
  m_Run->SetFilter(median.GetPointer());
  m_Run->SetNumberOfWorkUnits(2);
  const std::string words =
    "median " + this->Name("in.mha") + " " + this->Name("program.mha") + " --radius 2 --threads 2 --memory ";
  std::set<std::int64_t> counts;
  const auto             least = LeastMemoryOf(m_Run);
  for (const itk::SizeValueType more : { 0, 1 << 20, 5 << 20, 300 << 20 })
  {
    const itk::SizeValueType memory = least + more;
    m_Run->SetMemory(memory);
    ASSERT_EQ(WhatOf(m_Run), "");
    const chunkwise::StreamedPlan & plan = m_Run->GetPlan();
    const std::string               json = PlanOfProgram(words + std::to_string(memory));
    EXPECT_EQ(NumberOf(json, "divisions", "count"), plan.divisions) << memory;
    EXPECT_EQ(NumberOf(json, "divisions", "axis"), plan.axis) << memory;
    EXPECT_EQ(NumberOf(json, "divisions", "bytesAtOnce"), static_cast<std::int64_t>(plan.bytesAtOnce)) << memory;
    counts.insert(plan.divisions);
  }
  EXPECT_GT(counts.size(), 2u) << "the memory makes no difference";
  // The program and the filter ask for the same memory.
  m_Run->SetMemory(1);
  const std::string refused = WhatOf(m_Run);
  EXPECT_NE(refused.find("needs " + std::to_string(least) + " bytes"), std::string::npos) << refused;
  PlanOfProgram(words + std::to_string(least));
}
#endif

TEST_F(ChunkwiseFileToFile, KnowsSpacingsAndRunsSequences)
{
  const auto gaussian = itk::RenormalizedGaussianImageFilter<Float3>::New();
  gaussian->SetSigma(1.5);
  const auto median = itk::RenormalizedMedianImageFilter<Float3>::New();
  median->SetRadius(1);
  const auto sequence = itk::ChunkwiseSequenceImageFilter<Short3, Float3>::New();
  sequence->AddFilter(gaussian);
  sequence->AddFilter(median);
  m_Run->SetFilter(sequence.GetPointer());
  m_Run->SetOutputFileName(this->Name("out.nrrd"));
  m_Run->SetUseCompression(true);
  m_Run->SetMemory(LeastMemoryOf(m_Run));
  m_Run->Update();
  EXPECT_LT(m_Run->GetBytesWritten(), Region.GetNumberOfPixels() * sizeof(float));
  sequence->SetInput(m_Image);
  sequence->Update();
  this->ExpectResult<Float3>(sequence->GetOutput(), "out.nrrd");
}

TEST_F(ChunkwiseFileToFile, ConvertsAsFiltersDo)
{
  // Sums that uint8 does not hold are clamped, and said.
  const auto image = MakeRandomImage<Byte3>(Region, 6, 0, 40);
  Write<Byte3>(image, this->Name("in.mha"));
  const auto sum = itk::RenormalizedSumImageFilter<Byte3, Short3>::New();
  sum->SetRadius(1);
  m_Run->SetFilter(sum.GetPointer());
  m_Run->Update();
  EXPECT_EQ(m_Run->GetReport().cut, 0);
  sum->SetInput(image);
  sum->Update();
  this->ExpectResult<Short3>(sum->GetOutput(), "out.mha");
}

TEST_F(ChunkwiseFileToFile, TakesFurtherImages)
{
  const auto marker = MakeRandomImage<Short3>(Region, 7, -900, -250);
  Write<Short3>(marker, this->Name("marker.mha"));
  const auto reconstruction = itk::HeapReconstructionByDilationImageFilter<Short3>::New();
  m_Run->SetFilter(reconstruction.GetPointer());
  EXPECT_NE(WhatOf(m_Run).find("MarkerImage"), std::string::npos) << WhatOf(m_Run);
  m_Run->SetAdditionalInputFileName("MarkerImage", this->Name("marker.mha"));
  reconstruction->SetMaskImage(m_Image);
  reconstruction->SetMarkerImage(marker);
  reconstruction->Update();
  for (const itk::SizeValueType memory : { itk::SizeValueType{ 0 }, LeastMemoryOf(m_Run) })
  {
    m_Run->SetMemory(memory);
    ASSERT_EQ(WhatOf(m_Run), "");
    this->ExpectResult<Short3>(reconstruction->GetOutput(), "out.mha");
  }
  m_Run->SetAdditionalInputFileName("MarkerImage", "");
  m_Run->SetAdditionalInputFileName("Marker", this->Name("marker.mha"));
  EXPECT_NE(WhatOf(m_Run).find("Marker: the filter has no such input"), std::string::npos) << WhatOf(m_Run);
}

TEST_F(ChunkwiseFileToFile, SaysWhatIsWrongBeforeItWrites)
{
  EXPECT_EQ(WhatOf(m_Run), "Filter: none is set");
  const auto median = itk::RenormalizedMedianImageFilter<Short3>::New();
  m_Run->SetFilter(median.GetPointer());
  m_Run->SetMemory(1000);
  EXPECT_NE(WhatOf(m_Run).find("bytes"), std::string::npos) << WhatOf(m_Run);
  m_Run->SetMemory(0);
  m_Run->SetOutputFileName(this->Name("out.xyz"));
  EXPECT_NE(WhatOf(m_Run).find("out.xyz"), std::string::npos) << WhatOf(m_Run);
  m_Run->SetOutputFileName("");
  EXPECT_EQ(WhatOf(m_Run), "OutputFileName: none is set");
  m_Run->SetOutputFileName(this->Name("out.mha"));

  const auto bytes = itk::RenormalizedMedianImageFilter<Byte3>::New();
  m_Run->SetFilter(bytes.GetPointer());
  EXPECT_NE(WhatOf(m_Run).find("its pixels are int16, which uint8"), std::string::npos) << WhatOf(m_Run);
  const auto flat = itk::RenormalizedMedianImageFilter<itk::Image<short, 2>>::New();
  m_Run->SetFilter(flat.GetPointer());
  EXPECT_NE(WhatOf(m_Run).find("it has 3 axes, the filter's images have 2"), std::string::npos) << WhatOf(m_Run);
  // These need more than the operation.
  const auto wiener = itk::RenormalizedWienerImageFilter<Short3, Float3>::New();
  wiener->EstimateNoiseVarianceOn();
  m_Run->SetFilter(wiener.GetPointer());
  EXPECT_NE(WhatOf(m_Run).find("EstimateNoiseVariance"), std::string::npos) << WhatOf(m_Run);
  const auto maxima = itk::HeapRegionalMaximaImageFilter<Short3, Byte3>::New();
  m_Run->SetFilter(maxima.GetPointer());
  EXPECT_NE(WhatOf(m_Run).find("one type"), std::string::npos) << WhatOf(m_Run);

  m_Run->SetFilter(median.GetPointer());
  std::filesystem::resize_file(this->Name("in.mha"), std::filesystem::file_size(this->Name("in.mha")) - 1);
  EXPECT_NE(WhatOf(m_Run).find("in.mha"), std::string::npos) << WhatOf(m_Run);
  m_Run->SetInputFileName(this->Name("none.mha"));
  EXPECT_NE(WhatOf(m_Run).find("none.mha"), std::string::npos) << WhatOf(m_Run);
  EXPECT_EQ(this->CountOthers(), 0u);
}

TEST_F(ChunkwiseFileToFile, ReportsProgressAndAborts)
{
  const auto median = itk::RenormalizedMedianImageFilter<Short3>::New();
  median->SetRadius(2);
  m_Run->SetFilter(median.GetPointer());
  m_Run->SetMemory(LeastMemoryOf(m_Run));
  float       last = -1;
  std::size_t count = 0;
  bool        aborts = false;
  m_Run->AddObserver(itk::ProgressEvent(), [&](const itk::EventObject &) {
    EXPECT_GE(m_Run->GetProgress(), last);
    last = m_Run->GetProgress();
    ++count;
    if (aborts && last > 0.3f)
    {
      m_Run->SetAbortGenerateData(true);
    }
  });
  m_Run->Update();
  EXPECT_EQ(last, 1.0f);
  EXPECT_GT(count, 2u);

  std::filesystem::remove(this->Name("out.mha"));
  last = -1;
  aborts = true;
  EXPECT_THROW(m_Run->Update(), itk::ProcessAborted);
  EXPECT_LT(last, 1.0f);
  EXPECT_EQ(this->CountOthers(), 0u);
  // It can be used again.
  last = -1;
  aborts = false;
  m_Run->Update();
  EXPECT_EQ(this->CountOthers(), 1u);
}

/** A run to a store, and readers and writers of ITK: all, or a region. */
TEST_F(ChunkwiseFileToFile, StoresOfZarrAreReadAndWritten)
{
  const auto median = itk::RenormalizedMedianImageFilter<Short3>::New();
  median->SetRadius(1);
  m_Run->SetFilter(median.GetPointer());
  m_Run->Update();
  const auto expected = Read<Short3>(this->Name("out.mha"));
  m_Run->SetOutputFileName(this->Name("out.ome.zarr"));
  m_Run->SetZarrOptions("0.4,chunks=16x16x16,codec=gzip");
  m_Run->Update();

  const auto read = [](const std::string & file) {
    const auto reader = itk::ImageFileReader<Short3>::New();
    reader->SetImageIO(itk::ChunkwiseZarrImageIO::New());
    reader->SetFileName(file);
    return reader;
  };
  const auto whole = read(this->Name("out.ome.zarr"));
  whole->Update();
  EXPECT_EQ(CountDifferentVoxels(expected.GetPointer(), whole->GetOutput(), Region), 0u);
  EXPECT_EQ(expected->GetSpacing(), whole->GetOutput()->GetSpacing());

  const auto part = read(this->Name("out.ome.zarr/0"));
  const auto extract = itk::ExtractImageFilter<Short3, Short3>::New();
  const auto region = MakeRegion<Short3>({ 20, 3, 40 }, { 17, 30, 9 });
  extract->SetInput(part->GetOutput());
  extract->SetExtractionRegion(region);
  extract->Update();
  EXPECT_EQ(part->GetOutput()->GetBufferedRegion(), region);
  EXPECT_EQ(CountDifferentVoxels(expected.GetPointer(), extract->GetOutput(), region), 0u);

  const auto io = itk::ChunkwiseZarrImageIO::New();
  io->SetZarrOptions("chunks=20x20x20,shards=40x40x40");
  const auto writer = itk::ImageFileWriter<Short3>::New();
  writer->SetImageIO(io);
  writer->SetInput(expected);
  writer->SetFileName(this->Name("again.zarr"));
  writer->Update();
  const auto again = read(this->Name("again.zarr"));
  again->Update();
  EXPECT_EQ(CountDifferentVoxels(expected.GetPointer(), again->GetOutput(), Region), 0u);

  // Labels come into the store, from ITK's writer and from file to file.
  writer->SetFileName(this->Name("again.zarr/labels/a"));
  io->SetZarrOptions("");
  writer->Update();
  m_Run->SetOutputFileName(this->Name("again.zarr/labels/b"));
  m_Run->SetZarrOptions("pyramid=mode");
  m_Run->Update();
  for (const char * const name : { "again.zarr/labels/a", "again.zarr/labels/b" })
  {
    const auto labels = read(this->Name(name));
    labels->Update();
    EXPECT_EQ(CountDifferentVoxels(expected.GetPointer(), labels->GetOutput(), Region), 0u);
  }

  std::filesystem::resize_file(this->Name("again.zarr/0/c/0/0/0"), 100);
  EXPECT_THROW(read(this->Name("again.zarr"))->Update(), itk::ExceptionObject);
  io->SetZarrOptions("codec=none,chunks=0");
  writer->Modified();
  EXPECT_THROW(writer->Update(), itk::ExceptionObject);
}

/** The same bits as without the end; another run throws. */
TEST_F(ChunkwiseFileToFile, RunsThatEndEarlyAreResumed)
{
  // More than memory has room for beside the least.
  const auto region = MakeRegion<Short3>({ 0, 0, 0 }, { 128, 128, 200 });
  Write<Short3>(MakeRandomImage<Short3>(region, 6, -300, 300), this->Name("in.mha"));
  const auto median = itk::RenormalizedMedianImageFilter<Short3>::New();
  median->SetRadius(1);
  m_Run->SetFilter(median.GetPointer());
  m_Run->Update();
  const auto expected = Read<Short3>(this->Name("out.mha"));
  m_Run->SetResume(true);
  EXPECT_NE(WhatOf(m_Run).find("cannot be resumed"), std::string::npos) << WhatOf(m_Run);
  m_Run->SetOutputFileName(this->Name("out.ome.zarr"));
  m_Run->SetZarrOptions("chunks=64x64x2,shards=128x128x2");
  m_Run->SetMemory(LeastMemoryOf(m_Run));
  bool aborts = true;
  m_Run->AddObserver(itk::ProgressEvent(), [&](const itk::EventObject &) {
    if (aborts && m_Run->GetProgress() > 0.5f)
    {
      m_Run->SetAbortGenerateData(true);
    }
  });
  EXPECT_THROW(m_Run->Update(), itk::ProcessAborted);
  EXPECT_EQ(this->CountOthers(), 2u);
  aborts = false;
  median->SetRadius(2);
  EXPECT_NE(WhatOf(m_Run).find("parameters"), std::string::npos) << WhatOf(m_Run);
  median->SetRadius(1);
  m_Run->Update();
  EXPECT_GT(m_Run->GetResumedVoxels(), region.GetNumberOfPixels() / 4);
  EXPECT_EQ(this->CountOthers(), 2u);
  const auto reader = itk::ImageFileReader<Short3>::New();
  reader->SetImageIO(itk::ChunkwiseZarrImageIO::New());
  reader->SetFileName(this->Name("out.ome.zarr"));
  reader->Update();
  EXPECT_EQ(CountDifferentVoxels(expected.GetPointer(), reader->GetOutput(), region), 0u);
  m_Run->Update();
  EXPECT_EQ(m_Run->GetResumedVoxels(), 0u);
}

} // namespace
