/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseDefinitionTrial.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFilters.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseFramedOperation.h"
#include "chunkwiseRangeOperation.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseVarianceOperation.h"

using namespace chunkwise;

namespace
{

class Framed : public KernelTest
{};

template <typename TOperation>
std::shared_ptr<TOperation>
BoxOf(const Coordinates & radius)
{
  auto operation = std::make_shared<TOperation>();
  operation->radius = radius;
  operation->boundary.mode = BoundaryMode::ZeroFluxNeumann;
  return operation;
}

/** Operations of each kind that windows have, one after the other. */
std::shared_ptr<const Operation>
RandomInner(std::mt19937 & random, int trial)
{
  Coordinates radius{};
  const auto  axes = RandomAxes(random);
  for (const int a : axes)
  {
    radius[a] = random() % 4;
  }
  switch (trial % 8)
  {
    case 0:
      return BoxOf<MeanOperation>(radius);
    case 1:
      return BoxOf<VarianceOperation>(radius);
    case 2:
      return BoxOf<RankOperation>(radius);
    case 3:
      return BoxOf<ExtremumOperation>(radius);
    case 4:
      return BoxOf<RangeOperation>(radius);
    case 5:
    {
      const auto flat = BoxOf<FlatExtremumOperation>(radius);
      flat->element.assign(1, 1);
      for (int a = 0; a < MaxDimension; ++a)
      {
        flat->element.resize(flat->element.size() * static_cast<std::size_t>(2 * radius[a] + 1), 0);
      }
      for (auto & tap : flat->element)
      {
        tap = tap || random() % 2 ? 1 : 0;
      }
      return flat;
    }
    case 6:
    {
      const auto gaussian = std::make_shared<SeparableOperation>();
      gaussian->boundary.mode = BoundaryMode::ZeroFluxNeumann;
      for (int a = 0; a < MaxDimension; ++a)
      {
        gaussian->weights[a] = SampledGaussianWeights(1.5, radius[a]);
      }
      return gaussian;
    }
    default:
    {
      const auto sums = BoxOf<MeanOperation>(radius);
      sums->radius[axes.front()] = 11; // beyond most images
      return sums;
    }
  }
}

std::shared_ptr<FramedOperation>
RandomFramed(std::mt19937 & random, int trial)
{
  auto framed = std::make_shared<FramedOperation>();
  framed->inner = RandomInner(random, trial);
  for (BoundaryMode & mode : framed->modes)
  {
    mode = AllModes[1 + random() % 5];
  }
  framed->constant = PixelValue(7);
  return framed;
}

/** The whole result by the definition: the image with its frame, voxel by voxel, and the inner operation over it. */
template <typename TIn, typename TOut>
std::vector<TOut>
Define(const FramedOperation & operation, const BufferView & image)
{
  const Coordinates extent = image.box.Extents();
  const Coordinates before = operation.inner->GetHalo(extent).lower;
  const Box         box = Box::FromExtent(operation.GetFramed(extent));
  std::vector<TIn>  voxels(static_cast<std::size_t>(box.NumberOfVoxels()));
  const BufferView  framed = DenseView(voxels.data(), PixelTypeOf<TIn>(), box);
  ForEachIndex(box, [&](const Coordinates & index) {
    Coordinates tap = index;
    bool        isThere = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      tap[a] -= before[a];
      isThere = oracle::Look(tap[a], extent[a], operation.modes[a]) && isThere;
    }
    At<TIn>(framed, index) = isThere ? At<TIn>(image, tap) : TIn(7);
  });
  std::vector<TOut> results(voxels.size());
  ExecutionRequest  request;
  request.operation = operation.inner;
  request.image = request.region = box;
  request.inputs = { framed };
  request.output = DenseView(results.data(), PixelTypeOf<TOut>(), box);
  request.backend = BackendChoice::CPU;
  Manager({}).Execute(request);
  std::vector<TOut> inside;
  ForEachIndex(image.box, [&](Coordinates index) {
    for (int a = 0; a < MaxDimension; ++a)
    {
      index[a] += before[a];
    }
    inside.push_back(At<TOut>(request.output, index));
  });
  return inside;
}

TEST_P(Framed, IsTheInnerOperationOverTheImageWithItsFrame)
{
  std::mt19937 random(501);
  const auto   compare = [&](auto in, auto out) {
    using In = decltype(in);
    using Out = decltype(out);
    for (int trial = 0; trial < 48; ++trial)
    {
      const auto     operation = RandomFramed(random, trial);
      Trial<In, Out> t(random, operation, RandomExtent(random, 9));
      t.request.backend = GetBackend();
      t.Prepare(RandomRegion(random, t.request.image.Extents()));
      GetManager().Execute(t.request);
      ASSERT_TRUE(t.IsContained());
      std::vector<Out> expected = Define<In, Out>(*operation, t.image);
      const BufferView view = DenseView(expected.data(), PixelTypeOf<Out>(), t.request.image);
      ForEachIndex(t.request.region, [&](const Coordinates & index) {
        ASSERT_TRUE(IsSame(t.Result(index), At<Out>(view, index)))
          << operation->GetKey() << " " << ToString(t.request.image) << " at " << ToString(index);
      });
    }
  };
  compare(float{}, float{});
  compare(std::uint8_t{}, std::uint8_t{});
  compare(std::int16_t{}, float{});
  compare(double{}, double{});
}

TEST_P(Framed, ChunksHaveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(502);
  const auto   compare = [&](auto in, auto out) {
    CompareBits<decltype(in), decltype(out)>(
      random, GetManager(), GetBackend(), 64, [&](int trial) { return RandomFramed(random, trial); });
  };
  compare(float{}, float{});
  compare(std::uint8_t{}, std::uint8_t{});
  compare(std::int32_t{}, double{});
}

FilterImage
ImageOf(const Coordinates & extent)
{
  FilterImage image;
  image.extent = extent;
  return image;
}

FilterParameters
With(const char * boundary)
{
  FilterParameters parameters;
  parameters.SetInteger("Radius", 2);
  parameters.Set("BoundaryCondition", boundary);
  parameters.Set("Constant", PixelValue(3));
  return parameters;
}

TEST(FramedFilters, OneWordForEachAxisIsTheSameAsOneForAll)
{
  const FilterImage image = ImageOf({ { 9, 8, 7, 1, 1 } });
  for (const char * const word : { "renormalized", "zero-flux", "constant", "mirror", "mirror-center", "periodic" })
  {
    const std::string three = std::string(word) + "," + word + "," + word;
    EXPECT_EQ(MakeFilterOperation("mean", With(three.c_str()), image)->GetKey(),
              MakeFilterOperation("mean", With(word), image)->GetKey());
  }
}

/** An opening's dilation sees the erosion as it goes on beyond the edge, not the erosion of what goes on there. */
TEST(FramedFilters, StagesOfASequenceAreFramedEach)
{
  const FilterImage image = ImageOf({ { 9, 8, 7, 1, 1 } });
  const auto        opening = std::dynamic_pointer_cast<const SequenceOperation>(
    MakeFilterOperation("opening", With("mirror,constant,periodic"), image));
  ASSERT_TRUE(opening);
  for (const auto & stage : opening->stages)
  {
    const auto framed = std::dynamic_pointer_cast<const FramedOperation>(stage);
    ASSERT_TRUE(framed);
    EXPECT_EQ(framed->modes[0], BoundaryMode::Mirror);
    EXPECT_EQ(framed->modes[1], BoundaryMode::Constant);
    EXPECT_EQ(framed->modes[2], BoundaryMode::Periodic);
    EXPECT_EQ(framed->constant.ToDouble(), 3.0);
  }
}

/** Words follow the order of the spatial axes, as all lists do. */
TEST(FramedFilters, WordsFollowTheSpatialAxes)
{
  FilterParameters parameters = With("mirror,constant");
  parameters.Set("SpatialAxes", std::vector<std::int64_t>{ 2, 0 });
  const auto framed = std::dynamic_pointer_cast<const FramedOperation>(
    MakeFilterOperation("median", parameters, ImageOf({ { 9, 8, 7, 1, 1 } })));
  ASSERT_TRUE(framed);
  EXPECT_EQ(framed->modes[2], BoundaryMode::Mirror);
  EXPECT_EQ(framed->modes[0], BoundaryMode::Constant);
}

std::string
MessageOf(const std::string & filter, const FilterParameters & parameters,
          const std::vector<std::string> & additionalInputs = {})
{
  try
  {
    FilterImage image = ImageOf({ { 9, 8, 7, 1, 1 } });
    image.additionalInputs = additionalInputs;
    MakeFilterOperation(filter, parameters, image);
  }
  catch (const ParameterError & error)
  {
    return error.what();
  }
  return "";
}

TEST(FramedFilters, RefusalsNameTheParameterAndTheValue)
{
  EXPECT_EQ(MessageOf("mean", With("mirror,periodic")), "BoundaryCondition: 2 words for 3 spatial axes");
  EXPECT_EQ(MessageOf("mean", With("mirror,miror,periodic")),
            "BoundaryCondition: 'miror' is none of renormalized, zero-flux, constant, mirror, mirror-center, periodic");
  EXPECT_EQ(MessageOf("mean", With("mirror,mirror,renormalized")),
            "BoundaryCondition: 'mirror,mirror,renormalized': renormalized is for all axes, not for some of them");
  FilterParameters wiener = With("mirror,mirror,periodic");
  wiener.SetReal("NoiseVariance", 1);
  EXPECT_EQ(MessageOf("wiener", wiener),
            "BoundaryCondition: 'mirror,mirror,periodic' differs from axis to axis; wiener has one for all axes");
  EXPECT_EQ(MessageOf("mean", With("mirror,mirror,periodic"), { "MaskImage" }),
            "BoundaryCondition: 'mirror,mirror,periodic' differs from axis to axis; mean of several images has one for "
            "all axes");
  FilterParameters constant = With("constant,mirror,mirror");
  constant.Set("Constant", PixelValue(300));
  EXPECT_EQ(MessageOf("mean", constant), "Constant: 300 is not a value of the input's pixel type, uint8");
}

INSTANTIATE_TEST_SUITE_P(Cpu, Framed, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Framed, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Framed, testing::Values(Place::Cuda));

} // namespace
