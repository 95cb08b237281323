/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFloodTrial_h
#define chunkwiseFloodTrial_h

#include "chunkwiseKernelTrial.h"
#include "chunkwiseReconstructionOracle.h"
#include "chunkwiseSpecialValues.h"

#include <cmath>
#include <cstring>
#include <limits>

// Random reconstructions for tests.
namespace chunkwise
{

/** Images of one kind and a run over them. The output lies in a larger buffer that must not change around it. */
template <typename T>
struct FloodTrial
{
  std::shared_ptr<ReconstructionOperation> operation{ std::make_shared<ReconstructionOperation>() };
  Box                                      box{};
  std::vector<T>                           marker;
  std::vector<T>                           second;
  std::vector<T>                           mask;

  std::vector<T>
  Run(Manager & manager, BackendChoice backend, const Budgets & budgets, ExecutionReport * report = nullptr)
  {
    ExecutionRequest request;
    request.operation = operation;
    request.image = request.region = box;
    request.backend = backend;
    request.budgets = budgets;
    const auto threads = MakeThreadExecutor(3);
    request.executor = threads.get();
    if (operation->GetNumberOfInputs() > 1)
    {
      request.inputs.push_back(DenseView(marker.data(), PixelTypeOf<T>(), box));
    }
    if (operation->GetNumberOfInputs() > 2)
    {
      request.inputs.push_back(DenseView(second.data(), PixelTypeOf<T>(), box));
    }
    request.inputs.push_back(DenseView(mask.data(), PixelTypeOf<T>(), box));
    Box room = box;
    for (int a = 0; a < MaxDimension; ++a)
    {
      --room.lower[a];
      ++room.upper[a];
    }
    std::vector<T> output(static_cast<std::size_t>(room.NumberOfVoxels()), static_cast<T>(77));
    request.output = DenseView(output.data(), PixelTypeOf<T>(), room);
    const ExecutionReport done = manager.Execute(request);
    if (report)
    {
      *report = done;
    }
    std::vector<T> result;
    ForEachIndex(room, [&](const Coordinates & index) {
      const Box voxel{ index, { { index[0] + 1, index[1] + 1, index[2] + 1, index[3] + 1, index[4] + 1 } } };
      if (box.Contains(voxel))
      {
        result.push_back(At<T>(request.output, index));
      }
      else
      {
        EXPECT_EQ(At<T>(request.output, index), static_cast<T>(77)) << "written outside of the image";
      }
    });
    return result;
  }

  void
  ExpectOracle(const std::vector<T> & result) const
  {
    const std::vector<T> expected = oracle::Run(*operation, box, marker, second, mask);
    ASSERT_EQ(result.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
    {
      const bool bothNaN = expected[i] != expected[i] && result[i] != result[i];
      ASSERT_TRUE(bothNaN || std::memcmp(&expected[i], &result[i], sizeof(T)) == 0)
        << operation->GetKey() << ", parts of " << operation->partVoxels << ", " << ToString(box) << " voxel " << i
        << ": " << +result[i] << " not " << +expected[i];
    }
  }
};

/** Few levels, so that there are plateaus, or many; of floats also some that are a few ulp apart, and special ones. */
template <typename T>
void
FillRandomly(std::mt19937 & random, std::vector<T> & image, int style)
{
  for (T & value : image)
  {
    switch (style)
    {
      case 0:
        value = static_cast<T>(random() % 4);
        break;
      case 1:
        value = RandomPixel<T>(random);
        break;
      case 2:
        // Walls with narrow ways between them.
        value = static_cast<T>(random() % 3 ? 100 + random() % 3 : 1);
        break;
      default:
        if constexpr (std::is_floating_point<T>::value)
        {
          value = T(1);
          for (auto steps = random() % 4; steps > 0; --steps)
          {
            value = std::nextafter(value, T(2));
          }
        }
        else
        {
          value = random() % 4 ? static_cast<T>(random() % 9) : RandomPixel<T>(random);
        }
    }
  }
}

template <typename T>
FloodTrial<T>
RandomTrial(std::mt19937 & random, int largest)
{
  FloodTrial<T> t;
  t.box = Box::FromExtent(RandomExtent(random, largest));
  auto & operation = *t.operation;
  operation.erosion = random() % 2;
  operation.fullyConnected = random() % 2;
  operation.spatialDimension = 1 + static_cast<int>(random() % 3);
  operation.partVoxels = random() % 2 ? 0 : 1 + static_cast<std::int64_t>(random() % 300);
  operation.patience = random() % 2 ? 1e9 : 0;
  operation.method = static_cast<ReconstructionMethod>(random() % 4);
  const std::int64_t nodeItems[] = { 0, 1, 2, 5, 16, 64, ReconstructionOperation::MaxNodeItems };
  operation.nodeItems = nodeItems[random() % 7];
  operation.heaps = random() % 6;
  const ReconstructionMarker markers[] = { ReconstructionMarker::Image,     ReconstructionMarker::Image,
                                           ReconstructionMarker::Shifted,   ReconstructionMarker::Border,
                                           ReconstructionMarker::NextBelow, ReconstructionMarker::Agreeing };
  operation.marker = markers[random() % 6];
  operation.height = static_cast<double>(random() % 100);
  operation.result = static_cast<ReconstructionResult>(random() % 2);
  operation.extremum = 5;
  operation.elsewhere = 3;
  operation.flatIsExtremum = random() % 2;
  if (operation.marker == ReconstructionMarker::NextBelow)
  {
    operation.result = ReconstructionResult::Extrema;
  }
  t.mask.resize(static_cast<std::size_t>(t.box.NumberOfVoxels()));
  t.marker.resize(t.mask.size());
  const int style = static_cast<int>(random() % 4);
  FillRandomly(random, t.mask, style);
  FillRandomly(random, t.marker, random() % 2 ? style : static_cast<int>(random() % 4));
  if (random() % 2)
  {
    // A few sources: what they send has far to go.
    for (std::size_t i = 0; i < t.marker.size(); ++i)
    {
      if (random() % 20)
      {
        t.marker[i] = operation.erosion ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
      }
    }
  }
  t.second = t.marker;
  for (T & value : t.second)
  {
    value = random() % 4 ? value : static_cast<T>(random() % 4);
  }
  if constexpr (std::is_floating_point<T>::value)
  {
    if (random() % 3 == 0)
    {
      AddSpecials(random, t.mask);
      AddSpecials(random, t.marker);
    }
  }
  return t;
}

} // namespace chunkwise

#endif
