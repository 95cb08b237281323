/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvolutionTiles.h"
#include "chunkwiseConvolutionTrial.h"
#include "chunkwiseCutTrial.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseMemoryImage.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseStreamedRun.h"

#include <cmath>
#include <complex>

using namespace chunkwise;

namespace
{

class Convolution : public KernelTest
{};

TEST_P(Convolution, IsWhatItsDefinitionSays)
{
  std::mt19937 random(61);
  for (const ConvolutionMethod method : { ConvolutionMethod::FFT, ConvolutionMethod::Direct })
  {
    for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
    {
      DispatchPixelType(static_cast<PixelType>(kind), [&](auto pixel) {
        using Pixel = decltype(pixel);
        CompareWithOracle<Pixel, Pixel>(random, GetManager(), GetBackend(), method);
        CompareWithOracle<Pixel, float>(random, GetManager(), GetBackend(), method);
        CompareWithOracle<Pixel, double>(random, GetManager(), GetBackend(), method);
      });
    }
  }
}

TEST_P(Convolution, DirectChunksOnAnyDeviceGiveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(62);
  const auto   make = [&](int trial) {
    return RandomConvolution(random, trial % 3 == 0 ? 9 : 4, ConvolutionMethod::Direct);
  };
  CompareBits<float, float>(random, GetManager(), GetBackend(), 60, make);
  CompareBits<double, double>(random, GetManager(), GetBackend(), 20, make);
  CompareBits<std::uint8_t, std::uint8_t>(random, GetManager(), GetBackend(), 20, make);
  CompareBits<std::int32_t, float>(random, GetManager(), GetBackend(), 20, make);
}

/** The stated accuracy, at an image of some size with lengths of every radix. */
template <typename T>
void
CompareRelativeError(Manager & manager, BackendChoice backend, double bound)
{
  std::mt19937 random(63);
  for (const Coordinates & image : { Coordinates{ { 61, 40, 37, 1, 1 } }, Coordinates{ { 150, 101, 1, 1, 1 } } })
  {
    for (const BoundaryMode mode : AllModes)
    {
      const Coordinates extent = { { 15, 14, std::min<std::int64_t>(13, image[2]), 1, 1 } };
      EXPECT_LT(RelativeError<T>(random, manager, backend, image, extent, mode), bound)
        << BoundaryModeName(mode) << ToString(image);
    }
  }
}

TEST_P(Convolution, RelativeErrorIsBelowTheStatedBound)
{
  CompareRelativeError<float>(GetManager(), GetBackend(), 1e-6);
  CompareRelativeError<double>(GetManager(), GetBackend(), 1e-14);
}

TEST_P(Convolution, LongLinesAlongAnyAxisKeepTheBound)
{
  // Up to twice the longest transform, so that lines are cut; kernels that fill little and much of a line.
  std::mt19937 random(65);
  int          trial = 0;
  for (const std::int64_t n :
       { 110, 135, 150, 180, 230, 250, 280, 310, 350, 375, 420, 470, 500, 560, 620, 750, 1000, 1900 })
  {
    for (int axis = 0; axis < 3; ++axis)
    {
      Coordinates image = { { 7, 6, 5, 1, 1 } };
      Coordinates extent = { { 3, 2, 3, 1, 1 } };
      image[axis] = n;
      extent[axis] = trial % 3 == 0 ? n / 3 : 9;
      const BoundaryMode mode = AllModes[trial++ % 6];
      EXPECT_LT(RelativeError<float>(random, GetManager(), GetBackend(), image, extent, mode), 1e-6)
        << BoundaryModeName(mode) << ToString(image) << ToString(extent);
      const double ofShorts =
        RelativeError<std::uint16_t, double>(random, GetManager(), GetBackend(), image, extent, mode);
      EXPECT_LT(ofShorts, 1e-6) << BoundaryModeName(mode) << ToString(image) << ToString(extent);
    }
  }
  // Kernels as long as the image, and longer.
  for (const std::int64_t n : { 200, 201, 330 })
  {
    const Coordinates image = { { 200, 6, 5, 1, 1 } };
    const Coordinates extent = { { n, 2, 3, 1, 1 } };
    EXPECT_LT(RelativeError<float>(random, GetManager(), GetBackend(), image, extent, BoundaryMode::Renormalized), 1e-6)
      << n;
  }
}

TEST_P(Convolution, PlanesOfSeveralBlocksKeepTheBound)
{
  std::mt19937 random(66);
  int          trial = 0;
  for (const Coordinates & image : { Coordinates{ { 1100, 70, 1, 1, 1 } }, Coordinates{ { 70, 1100, 2, 1, 1 } } })
  {
    for (const Coordinates & extent :
         { Coordinates{ { 15, 9, 1, 1, 1 } }, Coordinates{ { 31, 1, 1, 1, 1 } }, Coordinates{ { 1, 31, 1, 1, 1 } } })
    {
      const BoundaryMode mode = AllModes[trial++ % 6];
      EXPECT_LT(RelativeError<float>(random, GetManager(), GetBackend(), image, extent, mode), 1e-6)
        << BoundaryModeName(mode) << ToString(image) << ToString(extent);
    }
  }
}

TEST_P(Convolution, TransformsGiveTheBitsOfTheWholeHoweverItIsCut)
{
  std::mt19937 random(68);
  int          trial = 0;
  for (const auto & [image, extent] : std::vector<std::pair<Coordinates, Coordinates>>{
         { { { 14, 12, 210, 1, 1 } }, { { 5, 4, 7, 1, 1 } } },
         { { { 20, 30, 2, 120, 1 } }, { { 3, 6, 1, 5, 1 } } },
         { { { 540, 70, 2, 1, 1 } }, { { 9, 5, 1, 1, 1 } } },
         { { { 530, 70, 1, 1, 1 } }, { { 13, 1, 1, 1, 1 } } },
         { { { 70, 2, 530, 1, 1 } }, { { 1, 1, 19, 1, 1 } } },
         { { { 12, 660, 17, 1, 1 } }, { { 8, 9, 1, 1, 1 } } },
         // Lengths for which devices have fast transforms, along all axes, and several of their tiles.
         { { { 101, 97, 200, 1, 1 } }, { { 8, 7, 9, 1, 1 } } },
         { { { 1100, 21, 5, 1, 1 } }, { { 9, 4, 2, 1, 1 } } },
         { { { 1200, 1050, 1, 1, 1 } }, { { 6, 13, 1, 1, 1 } } },
         { { { 1100, 600, 1, 1, 1 } }, { { 7, 12, 1, 1, 1 } } },
         { { { 3, 1, 1300, 1, 1 } }, { { 1, 1, 250, 1, 1 } } },
       })
  {
    const auto operation = std::make_shared<ImageConvolutionOperation>();
    operation->kernel = RandomKernel(random, extent, true);
    operation->method = ConvolutionMethod::FFT;
    operation->boundary.mode = AllModes[trial++ % 6];
    operation->boundary.constant = 3.0;
    trial % 2 ? CompareCuts<float>(random, GetManager(), GetBackend(), operation, image)
              : CompareCuts<double>(random, GetManager(), GetBackend(), operation, image);
  }
  if (GetParam() != Place::Cuda)
  {
    CompareBits<float, float>(random, GetManager(), GetBackend(), 30, [&](int) {
      return RandomConvolution(random, 9, ConvolutionMethod::FFT);
    });
  }
}

TEST_P(Convolution, SequencesOfTransformsGiveTheBitsOfTheWholeHoweverTheyAreCut)
{
  std::mt19937 random(69);
  const auto   sequence = std::make_shared<SequenceOperation>();
  for (int axis = 0; axis < 3; ++axis)
  {
    auto extent = Coordinates::Filled(1);
    extent[axis] = 15;
    const auto stage = std::make_shared<ImageConvolutionOperation>();
    stage->kernel = RandomKernel(random, extent, true);
    stage->method = ConvolutionMethod::FFT;
    sequence->stages.push_back(stage);
  }
  CompareCuts<float>(random, GetManager(), GetBackend(), sequence, { { 12, 70, 530, 1, 1 } });
  CompareCuts<float>(random, GetManager(), GetBackend(), sequence, { { 530, 66, 3, 1, 1 } });
}

TEST(ConvolutionOperations, StreamsOfTilesAndOfPartsOfTilesGiveTheBitsOfTheWhole)
{
  std::mt19937 random(70);
  Manager      host({});
  const auto   operation = std::make_shared<ImageConvolutionOperation>();
  operation->kernel = RandomKernel(random, { { 5, 4, 7, 1, 1 } }, true);
  operation->method = ConvolutionMethod::FFT;
  Trial<float, float> t(random, operation, { { 16, 14, 300, 1, 1 } });
  const std::int64_t  tile = operation->GetTile(t.request.image.Extents())[2];
  ASSERT_GT(tile, 1);
  ASSERT_LT(tile, 300);
  t.request.backend = BackendChoice::CPU;
  t.Prepare(t.request.image);
  host.Execute(t.request);
  std::vector<float> whole;
  ForEachIndex(t.request.image, [&](const Coordinates & index) { whole.push_back(t.Result(index)); });
  StreamedRequest request;
  request.operation = operation;
  request.inputs = { { std::make_shared<MemoryImage>(t.image), PixelType::Float32 } };
  request.region = t.request.image;
  request.computedKind = request.writtenKind = PixelType::Float32;
  request.backend = BackendChoice::CPU;
  const auto stream = [&] {
    std::vector<float> output(whole.size(), 0.0f);
    const auto         plan = MakeStreamedPlan(host, request);
    ExecuteStreamed(host,
                    request,
                    plan,
                    std::make_shared<MemoryImage>(DenseView(output.data(), PixelType::Float32, t.request.image)));
    EXPECT_EQ(output, whole) << plan.divisions << " divisions";
    return plan;
  };
  request.divisions = 7;
  EXPECT_EQ(stream().divisions, 7);
  // As little memory as can be, then as little as divisions of whole tiles need.
  request.divisions = 0;
  request.memory = 1;
  try
  {
    stream();
    ADD_FAILURE() << "one byte is enough";
  }
  catch (const BudgetError & error)
  {
    request.memory = error.needed;
  }
  EXPECT_GT(stream().divisions, 1);
  request.memory *= 3;
  EXPECT_EQ(stream().step, tile);
}

TEST(ConvolutionOperations, ThreadsDoNotChangeTheBits)
{
  std::mt19937 random(67);
  Manager      host({});
  for (const Coordinates & extent : { Coordinates{ { 15, 9, 1, 1, 1 } }, Coordinates{ { 1, 12, 1, 1, 1 } } })
  {
    const auto operation = std::make_shared<ImageConvolutionOperation>();
    operation->kernel = RandomKernel(random, extent, true);
    operation->method = ConvolutionMethod::FFT;
    Trial<float, float> t(random, operation, { { 700, 600, 3, 1, 1 } });
    t.request.backend = BackendChoice::CPU;
    std::vector<float> one;
    for (const unsigned int threads : { 1u, 2u, 7u })
    {
      const auto executor = MakeThreadExecutor(threads);
      t.request.executor = executor.get();
      t.Prepare(t.request.image);
      host.Execute(t.request);
      one = threads == 1 ? t.output : one;
      EXPECT_EQ(one, t.output) << threads << " threads, " << ToString(extent);
    }
  }
}

TEST_P(Convolution, RenormalizedConstantsStayConstant)
{
  std::mt19937 random(64);
  for (const ConvolutionMethod method : { ConvolutionMethod::FFT, ConvolutionMethod::Direct })
  {
    const auto operation = std::make_shared<ImageConvolutionOperation>();
    operation->kernel = RandomKernel(random, { { 9, 12, 30, 1, 1 } }, true);
    operation->method = method;
    Trial<double, double> t(random, operation, { { 30, 20, 17, 2, 1 } });
    std::fill(t.pixels.begin(), t.pixels.end(), 7.0);
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      ASSERT_NEAR(t.Result(index), 7.0 * operation->kernel->GetSum(), 1e-13) << ToString(index);
    });
  }
}

TEST(ConvolutionOperations, BlocksOfDevicesAreTheSameForAnyPartOfTheImage)
{
  std::mt19937 random(71);
  for (int trial = 0; trial < 300; ++trial)
  {
    ImageConvolutionOperation operation;
    Coordinates               extent = Coordinates::Filled(1);
    Coordinates               image = Coordinates::Filled(1);
    for (int a = 0; a < MaxDimension; ++a)
    {
      image[a] = 1 + static_cast<std::int64_t>(random() % (trial % 4 ? 700 : 5000));
    }
    for (const int a : RandomAxes(random))
    {
      extent[a] = 1 + static_cast<std::int64_t>(random() % (trial % 3 ? 40 : 700));
    }
    operation.kernel = std::make_shared<ConvolutionKernel>(extent, Coordinates{}, std::vector<double>());
    operation.boundary.mode = AllModes[trial % 6];
    operation.method = ConvolutionMethod::FFT;
    if (operation.GetName() != "convolution.fft")
    {
      continue;
    }
    ConvolutionTiles chosen(operation, image);
    const bool       sharesPlanes = trial % 2 == 0;
    chosen.SharePlanes(sharesPlanes);
    const Coordinates device = chosen.GetDevice();
    const Coordinates host = ConvolutionBlock::Tile(operation, image);
    const Coordinates shared = operation.GetTile(image);
    ASSERT_EQ(shared, chosen.GetShared());
    const Box part = RandomRegion(random, image);
    const Box tiles = AlignToTiles(part, shared, Box::FromExtent(image));
    ASSERT_TRUE(tiles.Contains(AlignToTiles(part, host, Box::FromExtent(image)))) << ToString(image);
    const ConvolutionBlock largest = ConvolutionBlock::Largest(operation, chosen.GetLargest(part), image, device);
    std::int64_t           voxels = 0;
    for (const Box & box : chosen.Cut(part))
    {
      ASSERT_TRUE(tiles.Contains(box)) << ToString(image) << ToString(extent) << ToString(part) << ToString(box);
      const Box needed = Intersect(box, part);
      ASSERT_FALSE(needed.IsEmpty());
      voxels += needed.NumberOfVoxels();
      const ConvolutionBlock block(operation, box, image, device);
      int                    count = 0;
      for (int r = 0; r < MaxDimension; ++r)
      {
        const auto & role = block.role[r];
        ASSERT_LE(role.input, largest.role[r].input);
        ASSERT_LE(role.output, largest.role[r].output);
        ASSERT_EQ(role.length, role.transformed ? largest.role[r].length : role.length);
        ASSERT_LE(role.transformed ? role.length : 0, ConvolutionTiles::LongestLine);
        count += role.transformed ? 1 : 0;
      }
      // The blocks of the whole image have the same tiles.
      for (int r = 0; r < count; ++r)
      {
        const int          a = block.role[r].axis;
        const std::int64_t begin = box.lower[a] / shared[a] * shared[a];
        ASSERT_EQ((box.lower[a] - begin) % device[a], 0);
        ASSERT_TRUE((box.upper[a] - begin) % device[a] == 0 || box.upper[a] == image[a] ||
                    box.upper[a] == begin + shared[a]);
        ASSERT_TRUE(r == 2 || (r == 1 && count == 2 && sharesPlanes) || box.Extent(a) <= device[a]);
      }
      if (count < 3)
      {
        ASSERT_EQ(box.lower[block.role[1].axis] % 2, 0);
      }
    }
    ASSERT_EQ(voxels, part.NumberOfVoxels());
  }
}

TEST(ConvolutionOperations, TilesOfLargeImagesFitSmallDevices)
{
  for (const std::int64_t n : { 500, 1024, 1700, 2048 })
  {
    for (const std::int64_t k : { 4, 17, 33, 50, 65, 80, 97, 129, 257 })
    {
      ImageConvolutionOperation operation;
      operation.kernel = std::make_shared<ConvolutionKernel>(
        Coordinates{ { k, k, k, 1, 1 } }, Coordinates{ { k / 2, k / 2, k / 2, 0, 0 } }, std::vector<double>());
      operation.method = ConvolutionMethod::FFT;
      const Coordinates      image{ { n, n - 50, n, 1, 1 } };
      const ConvolutionTiles tiles(operation, image);
      const Box              tile = Box::FromExtent(tiles.GetShared());
      const auto block = ConvolutionBlock::Largest(operation, tiles.GetLargest(tile), image, tiles.GetDevice());
      double     input = sizeof(float);
      for (int r = 0; r < 3; ++r)
      {
        input *= static_cast<double>(block.role[r].input);
      }
      const double spectrum = sizeof(float) * static_cast<double>(block.role[0].length * block.role[1].length) *
                              static_cast<double>(block.role[2].input + k);
      EXPECT_LE(input + spectrum, (k <= 80 ? 0.78 : 2.0) * 1024 * 1024 * 1024) << n << ", " << k;
    }
  }
  // Tiles along one of two axes share blocks: streams of rows need no more rows than the CPU's tiles have.
  ImageConvolutionOperation planes;
  planes.kernel = std::make_shared<ConvolutionKernel>(
    Coordinates{ { 15, 15, 1, 1, 1 } }, Coordinates{ { 7, 7, 0, 0, 0 } }, std::vector<double>());
  planes.method = ConvolutionMethod::FFT;
  const Coordinates image{ { 4096, 4096, 1, 1, 1 } };
  EXPECT_EQ(planes.GetTile(image)[1], ConvolutionBlock::Tile(planes, image)[1]);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Convolution, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Convolution, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Convolution, testing::Values(Place::Cuda));

TEST(ConvolutionOperations, TransformLengthsAreSmoothAndGrow)
{
  std::int64_t last = 0;
  for (std::int64_t n = 1; n < 3000; ++n)
  {
    const std::int64_t length = GoodTransformLength(n);
    ASSERT_GE(length, n);
    ASSERT_GE(length, last);
    last = length;
    std::int64_t product = 1;
    for (const int radix : TransformRadices(length))
    {
      product *= radix;
    }
    ASSERT_EQ(product, length);
  }
  EXPECT_THROW(TransformRadices(11), ParameterError);
}

TEST(ConvolutionOperations, BadParametersAreNamed)
{
  const auto message = [](const ImageConvolutionOperation & operation) {
    try
    {
      operation.Validate({ { 10, 10, 10, 2, 1 } });
    }
    catch (const ParameterError & error)
    {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto make = [](const Coordinates & extent, double weight) {
    return std::make_shared<ConvolutionKernel>(
      extent,
      Coordinates{},
      std::vector<double>(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()), weight));
  };
  ImageConvolutionOperation operation;
  operation.kernel = make({ { 3, 3, 3, 1, 1 } }, 1);
  EXPECT_EQ(message(operation), "");
  operation.kernel = make({ { 3, 3, 3, 2, 1 } }, 1);
  EXPECT_NE(message(operation).find("3 x 3 x 3 x 2"), std::string::npos);
  operation.kernel = make({ { 3, 3, 3, 1, 1 } }, std::numeric_limits<double>::quiet_NaN());
  EXPECT_NE(message(operation).find("finite"), std::string::npos);
  // A derivative cannot be renormalized, but needs not be.
  operation.kernel = std::make_shared<ConvolutionKernel>(
    Coordinates{ { 3, 1, 1, 1, 1 } }, Coordinates{ { 1, 0, 0, 0, 0 } }, std::vector<double>{ 1, 0, -1 });
  EXPECT_NE(message(operation).find("renormalized"), std::string::npos);
  operation.boundary.mode = BoundaryMode::Mirror;
  EXPECT_EQ(message(operation), "");
  operation.boundary.mode = BoundaryMode::Constant;
  operation.boundary.constant = std::numeric_limits<double>::infinity();
  EXPECT_NE(message(operation).find("inf"), std::string::npos);
  EXPECT_THROW(ConvolutionKernel({ { 3, 1, 1, 1, 1 } }, { { 3, 0, 0, 0, 0 } }, {}), ParameterError);
  EXPECT_THROW(ConvolutionKernel({ { 3, 1, 1, 1, 1 } }, { { 1, 0, 0, 0, 0 } }, { 1, 2 }), ParameterError);
}

TEST(ConvolutionOperations, KernelsWithNothingInsideAtSomeVoxelAreRefused)
{
  // Few weights, most of one sign, in images that are longer than the kernel or not.
  std::mt19937 random(68);
  int          refused = 0;
  for (int trial = 0; trial < 600; ++trial)
  {
    Coordinates extent = Coordinates::Filled(1);
    Coordinates center{};
    Coordinates image = Coordinates::Filled(2);
    for (int a = 0; a < 1 + trial % 3; ++a)
    {
      extent[a] = 1 + static_cast<std::int64_t>(random() % 4);
      center[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(extent[a]));
      image[a] = 1 + static_cast<std::int64_t>(random() % 7);
    }
    std::vector<double> weights(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
    for (double & weight : weights)
    {
      weight = random() % 2 ? (random() % 20 ? 0.5 : -0.5) : 0;
    }
    ImageConvolutionOperation operation;
    operation.kernel = std::make_shared<ConvolutionKernel>(extent, center, weights);
    // One number of the image at a time, straight from the definition.
    bool vanishes = operation.kernel->GetSum() == 0;
    ForEachIndex(Box::FromExtent(image), [&](const Coordinates & index) {
      double      inside = 0;
      std::size_t t = 0;
      ForEachIndex(Box::FromExtent(extent), [&](const Coordinates & tap) {
        bool there = true;
        for (int a = 0; a < MaxDimension; ++a)
        {
          const std::int64_t i = index[a] + center[a] - tap[a];
          there = there && i >= 0 && i < image[a];
        }
        inside += there ? weights[t] : 0;
        ++t;
      });
      vanishes = vanishes || inside == 0;
    });
    refused += vanishes ? 1 : 0;
    bool isRefused = false;
    try
    {
      operation.Validate(image);
    }
    catch (const ParameterError &)
    {
      isRefused = true;
    }
    EXPECT_EQ(isRefused, vanishes) << ToString(extent) << " at " << ToString(center) << " in " << ToString(image);
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(refused, 500);
}

TEST(ConvolutionOperations, KeysTellParametersApart)
{
  const auto make = [](std::vector<double> weights, std::int64_t center) {
    ImageConvolutionOperation operation;
    operation.kernel = std::make_shared<ConvolutionKernel>(
      Coordinates{ { 2, 2, 1, 1, 1 } }, Coordinates{ { center, 0, 0, 0, 0 } }, std::move(weights));
    return operation;
  };
  EXPECT_EQ(make({ 1, 2, 3, 4 }, 0).GetKey(), make({ 1, 2, 3, 4 }, 0).GetKey());
  EXPECT_NE(make({ 1, 2, 3, 4 }, 0).GetKey(), make({ 1, 2, 3, 4 }, 1).GetKey());
  EXPECT_NE(make({ 1, 2, 3, 4 }, 0).GetKey(), make({ 1, 3, 2, 4 }, 0).GetKey());
  EXPECT_NE(make({ 1, 2, 3, 4 }, 0).GetKey(), make({ 2, 1, 4, 3 }, 0).GetKey());
  ImageConvolutionOperation other = make({ 1, 2, 3, 4 }, 0);
  other.method = ConvolutionMethod::FFT;
  EXPECT_NE(make({ 1, 2, 3, 4 }, 0).GetKey(), other.GetKey());
}

TEST(ConvolutionOperations, AutoTakesTheDirectMethodForSmallKernels)
{
  ImageConvolutionOperation operation;
  const auto                make = [](std::int64_t n) {
    const Coordinates extent{ { n, n, n, 1, 1 } };
    return std::make_shared<ConvolutionKernel>(
      extent, Coordinates{}, std::vector<double>(static_cast<std::size_t>(n * n * n), 1.0));
  };
  operation.kernel = make(3);
  EXPECT_EQ(operation.GetName(), "convolution.direct");
  operation.kernel = make(21);
  EXPECT_EQ(operation.GetName(), "convolution.fft");
}

} // namespace
