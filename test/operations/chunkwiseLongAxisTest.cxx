/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseRegions.h"
#include "chunkwiseRequiredParameters.h"

#include <algorithm>
#include <cstring>

// Both ends of images of which an axis has more voxels than any memory has bytes: a table with a number for each voxel
// of an axis fails, and results are those at the ends of a short axis.

using namespace chunkwise;

namespace
{

using LongAxis = KernelTest;

constexpr std::int64_t ShortAxis = 300;
/** A multiple of the width of many windows, in blocks of which sums are made. */
constexpr std::int64_t FurtherVoxels = std::int64_t{ 720720 } << 22;
constexpr std::int64_t VoxelsAlongEnd = 40;
/** Voxels of an input beyond which an operation is not tried: it needs much of the axis. */
constexpr std::int64_t MostVoxels = 1 << 22;

/** An end of an axis. */
struct AxisEnd
{
  int  axis{ 0 };
  bool isUpper{ false };
};

FilterImage
ImageOf(const FilterDescription & filter, int axis, std::int64_t length, const std::string & domain)
{
  FilterImage image;
  image.dimension = 3;
  image.extent = { { 7, 6, 5, 1, 1 } };
  image.extent[axis] = length;
  image.outputKind = GetDefaultOutputKind(filter, image.inputKind);
  for (const InputDescription & input : filter.additionalInputs)
  {
    if (input.required || input.name == domain)
    {
      image.additionalInputs.push_back(input.name);
    }
  }
  return image;
}

/** Fills an image with numbers that depend on the distance from the end. */
void
FillFromEnd(const BufferView & view, std::size_t input, const AxisEnd & end, std::int64_t length)
{
  ForEachIndex(view.box, [&](Coordinates index) {
    const Coordinates place = index;
    index[end.axis] = end.isUpper ? length - 1 - index[end.axis] : index[end.axis];
    std::uint64_t hash = input + 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      hash = (hash + static_cast<std::uint64_t>(index[a])) * 0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 29;
    }
    At<std::uint8_t>(view, place) = static_cast<std::uint8_t>(hash % 120);
  });
}

/** The bytes of the output's voxels at an end, or none if the operation needs much of the axis. */
std::vector<char>
RunAtEnd(Manager & manager, BackendChoice backend, std::shared_ptr<const Operation> operation,
         const FilterImage & image, const AxisEnd & end)
{
  ExecutionRequest request;
  request.operation = operation;
  request.backend = backend;
  request.image = request.region = Box::FromExtent(image.extent);
  const OutputGrid * const grid = operation->GetOutputGrid();
  if (grid)
  {
    request.region = Box::FromExtent(grid->GetExtent(image.extent));
  }
  Box & region = request.region;
  if (operation->GetSchedule() == Schedule::Sweep || NeedsWholeAxis(*operation, end.axis, request.image) ||
      region.Extent(end.axis) < VoxelsAlongEnd)
  {
    return {};
  }
  (end.isUpper ? region.lower : region.upper)[end.axis] =
    end.isUpper ? region.upper[end.axis] - VoxelsAlongEnd : VoxelsAlongEnd;
  const Box tiles = grid ? region : AlignToTiles(region, operation->GetTile(image.extent), request.image);
  const Box needed = GetInputBox(*operation, tiles, request.image);
  double    voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxels *= static_cast<double>(needed.Extent(a));
  }
  if (voxels > static_cast<double>(MostVoxels))
  {
    return {};
  }
  std::vector<std::vector<char>> memory;
  for (int i = 0; i < operation->GetNumberOfInputs(); ++i)
  {
    memory.emplace_back(static_cast<std::size_t>(needed.NumberOfVoxels()));
    request.inputs.push_back(DenseView(memory.back().data(), PixelType::UInt8, needed));
    FillFromEnd(request.inputs.back(), static_cast<std::size_t>(i), end, image.extent[end.axis]);
  }
  std::vector<char> output(static_cast<std::size_t>(region.NumberOfVoxels()) * PixelSize(image.outputKind));
  request.output = DenseView(output.data(), image.outputKind, region);
  manager.Execute(request);
  return output;
}

TEST_P(LongAxis, HasTheResultsOfAShortOneAtItsEnds)
{
  int compared = 0;
  for (const FilterDescription & filter : GetFilters())
  {
    for (const char * const domain : { "", "MaskImage" })
    {
      const bool hasDomain = std::any_of(filter.additionalInputs.begin(),
                                         filter.additionalInputs.end(),
                                         [&](const InputDescription & input) { return input.name == domain; });
      for (int a = 0; a < 3 && (hasDomain || !*domain); ++a)
      {
        SCOPED_TRACE(filter.name + " " + domain + " along axis " + std::to_string(a));
        const FilterImage                image = ImageOf(filter, a, ShortAxis, domain);
        const FilterImage                longImage = ImageOf(filter, a, ShortAxis + FurtherVoxels, domain);
        std::shared_ptr<const Operation> operation;
        std::shared_ptr<const Operation> longOperation;
        try
        {
          FilterParameters parameters = RequiredParameters(filter);
          if (filter.name == "resample")
          {
            parameters.SetReal("Scale", 1.5);
          }
          if (filter.FindAutomatic(parameters))
          {
            continue; // the whole image gives a value
          }
          operation = MakeFilterOperation(filter.name, parameters, image);
          longOperation = MakeFilterOperation(filter.name, parameters, longImage);
        }
        catch (const ParameterError &)
        {
          continue; // openings by area take no such planes
        }
        // Plans count what weights of nodes take on devices along a whole axis.
        const bool hasNodes = GetParam() == Place::Cuda && filter.FindParameter("GridSize");
        if (GetParam() != Place::Cpu && (hasNodes || !operation->GetObjectionToDevices().empty()))
        {
          continue;
        }
        for (const bool isUpper : { false, true })
        {
          const AxisEnd     end{ a, isUpper };
          std::vector<char> result;
          ASSERT_NO_THROW(result = RunAtEnd(GetManager(), GetBackend(), longOperation, longImage, end));
          // Transforms are cut where the image begins, and a grid has points with other fractions far from it.
          const bool isComparable = (filter.promisesBits || filter.name == "gaussian") && !operation->GetOutputGrid();
          if (!result.empty() && isComparable)
          {
            const std::vector<char> expected = RunAtEnd(GetManager(), GetBackend(), operation, image, end);
            EXPECT_TRUE(result == expected) << (isUpper ? "upper" : "lower") << " end";
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 200);
}

INSTANTIATE_TEST_SUITE_P(Cpu, LongAxis, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, LongAxis, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, LongAxis, testing::Values(Place::Cuda));

} // namespace
