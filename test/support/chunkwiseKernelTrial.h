/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseKernelTrial_h
#define chunkwiseKernelTrial_h

#include "chunkwiseDevice.h"
#include "chunkwiseError.h"
#include "chunkwiseFakeDevice.h"
#include "chunkwiseManager.h"
#include "chunkwiseOracle.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

// The common code of tests of kernels: places where they run, random images with poisoned surroundings, comparison of
// bits.
namespace chunkwise
{

const BoundaryMode AllModes[] = {
  BoundaryMode::Renormalized, BoundaryMode::ZeroFluxNeumann, BoundaryMode::Constant,
  BoundaryMode::Mirror,       BoundaryMode::Periodic,        BoundaryMode::MirrorCenter
};

/** The place where the kernels run: the CPU, the real devices (skipped if there are none), or a fake one whose memory
 * is poisoned. */
enum class Place
{
  Cpu,
  Fake,
  Cuda
};

class KernelTest : public testing::TestWithParam<Place>
{
protected:
  void
  SetUp() override
  {
    std::string reason;
    if (GetParam() == Place::Cuda && !GetCudaBackend(&reason))
    {
      GTEST_SKIP() << "no CUDA device: " << reason;
    }
  }
  Manager &
  GetManager()
  {
    if (GetParam() == Place::Cuda)
    {
      return Manager::GetGlobal();
    }
    if (!m_Manager)
    {
      std::vector<std::shared_ptr<Device>> devices;
      if (GetParam() == Place::Fake)
      {
        devices.push_back(std::make_shared<FakeDevice>(FakeDevice::Options()));
        devices.push_back(std::make_shared<FakeDevice>(FakeDevice::Options()));
      }
      m_Manager = std::make_unique<Manager>(devices);
    }
    return *m_Manager;
  }
  BackendChoice
  GetBackend() const
  {
    return GetParam() == Place::Cpu ? BackendChoice::CPU : BackendChoice::CUDA;
  }

private:
  std::unique_ptr<Manager> m_Manager;
};

inline Coordinates
RandomExtent(std::mt19937 & random, int largest)
{
  Coordinates extent = Coordinates::Filled(1);
  const int   dimension = 1 + static_cast<int>(random() % MaxDimension);
  for (int a = 0; a < dimension; ++a)
  {
    extent[a] = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(a < 3 ? largest : 3));
  }
  return extent;
}

/** Up to three axes of a random choice. */
inline std::vector<int>
RandomAxes(std::mt19937 & random)
{
  std::vector<int> axes = { 0, 1, 2, 3, 4 };
  std::shuffle(axes.begin(), axes.end(), random);
  axes.resize(1 + random() % 3);
  if (random() % 2)
  {
    axes = { 0, 1, 2 };
  }
  return axes;
}

inline Box
RandomRegion(std::mt19937 & random, const Coordinates & extent)
{
  Box box = Box::FromExtent(extent);
  for (int a = 0; a < MaxDimension && random() % 3; ++a)
  {
    box.lower[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(extent[a]));
    box.upper[a] =
      box.lower[a] + 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(extent[a] - box.lower[a]));
  }
  return box;
}

template <typename T>
T
RandomPixel(std::mt19937 & random)
{
  if constexpr (std::is_integral<T>::value)
  {
    return static_cast<T>((std::uint64_t{ random() } << 32) | random());
  }
  else
  {
    return static_cast<T>(static_cast<double>(random()) / 4294967296.0 * 200 - 60);
  }
}

template <typename T>
T
PoisonPixel()
{
  return std::is_integral<T>::value ? static_cast<T>(0x5A5A5A5A5A5A5A5AULL) : std::numeric_limits<T>::quiet_NaN();
}

/** An image and a run over a region of it, with buffers that hold just what the operation declares. */
template <typename TIn, typename TOut>
class Trial
{
public:
  std::vector<TIn>  pixels;
  BufferView        image;
  ExecutionRequest  request;
  std::vector<TIn>  held;
  std::vector<TOut> output;

  Trial(std::mt19937 & random, std::shared_ptr<const Operation> operation, const Coordinates & extent)
  {
    const Box box = Box::FromExtent(extent);
    pixels.resize(static_cast<std::size_t>(box.NumberOfVoxels()));
    for (auto & pixel : pixels)
    {
      pixel = RandomPixel<TIn>(random);
    }
    image = DenseView(pixels.data(), PixelTypeOf<TIn>(), box);
    request.operation = operation;
    request.image = request.region = box;
    request.stagingThreads = 1;
  }

  void
  Prepare(const Box & region)
  {
    request.region = region;
    const Halo halo = request.operation->GetHalo(request.image.Extents());
    const Box  tiles = AlignToTiles(region, request.operation->GetTile(request.image.Extents()), request.image);
    Box        needed = PadAndCrop(tiles, halo, request.image);
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (request.operation->WrapsAround() &&
          (tiles.lower[a] < halo.lower[a] || tiles.upper[a] + halo.upper[a] > request.image.upper[a]))
      {
        needed.lower[a] = 0;
        needed.upper[a] = request.image.upper[a];
      }
    }
    Box room = needed;
    Box outRoom = region;
    for (int a = 0; a < MaxDimension; ++a)
    {
      --room.lower[a];
      ++room.upper[a];
      --outRoom.lower[a];
      ++outRoom.upper[a];
    }
    held.assign(static_cast<std::size_t>(room.NumberOfVoxels()), PoisonPixel<TIn>());
    BufferView input = DenseView(held.data(), PixelTypeOf<TIn>(), room);
    ForEachIndex(needed, [&](const Coordinates & index) { At<TIn>(input, index) = At<TIn>(image, index); });
    input.data = &At<TIn>(input, needed.lower);
    input.box = needed;
    request.inputs.assign(1, input);
    output.assign(static_cast<std::size_t>(outRoom.NumberOfVoxels()), static_cast<TOut>(77));
    request.output = DenseView(output.data(), PixelTypeOf<TOut>(), outRoom);
  }

  TOut
  Result(const Coordinates & index) const
  {
    return At<TOut>(request.output, index);
  }

  /** True if nothing outside of the region was written. */
  bool
  IsContained() const
  {
    bool contained = true;
    ForEachIndex(request.output.box, [&](const Coordinates & index) {
      const Box voxel{ index, { { index[0] + 1, index[1] + 1, index[2] + 1, index[3] + 1, index[4] + 1 } } };
      contained = contained && (request.region.Contains(voxel) || Result(index) == static_cast<TOut>(77));
    });
    return contained;
  }
};

/** Results of a run over any region, chunks and devices have the bits of one call of the CPU's kernel over the whole
 * image; any NaN equals any other. `make` gives the operation of a trial, fill(pixels) may change its image. */
template <typename TIn, typename TOut, typename TMake, typename TFill>
void
CompareBits(std::mt19937 & random, Manager & manager, BackendChoice backend, int trials, TMake && make, TFill && fill)
{
  Manager host({});
  for (int trial = 0; trial < trials; ++trial)
  {
    const std::shared_ptr<const Operation> operation = make(trial);
    Trial<TIn, TOut>                       t(random, operation, RandomExtent(random, trial % 5 == 0 ? 40 : 12));
    fill(t.pixels);
    t.request.backend = BackendChoice::CPU;
    t.Prepare(t.request.image);
    host.Execute(t.request);
    const std::vector<TOut> whole = t.output;
    const BufferView wholeView = DenseView(const_cast<TOut *>(whole.data()), PixelTypeOf<TOut>(), t.request.output.box);
    for (int part = 0; part < 3; ++part)
    {
      t.Prepare(RandomRegion(random, t.request.image.Extents()));
      t.request.backend = backend;
      t.request.budgets.device = 20000 + random() % 300000;
      t.request.budgets.host = random() % 2 ? 0 : 40000 + random() % 100000;
      try
      {
        manager.Execute(t.request);
      }
      catch (const BudgetError &)
      {
        continue; // the smallest chunk of this trial is larger
      }
      ASSERT_TRUE(t.IsContained());
      ForEachIndex(t.request.region, [&](const Coordinates & index) {
        const TOut a = t.Result(index);
        const TOut b = At<TOut>(wholeView, index);
        ASSERT_TRUE((a != a && b != b) || std::memcmp(&a, &b, sizeof(a)) == 0)
          << operation->GetKey() << " " << ToString(t.request.image) << " region " << ToString(t.request.region)
          << " at " << ToString(index) << ": " << +a << " and " << +b;
      });
    }
  }
}

template <typename TIn, typename TOut, typename TMake>
void
CompareBits(std::mt19937 & random, Manager & manager, BackendChoice backend, int trials, TMake && make)
{
  CompareBits<TIn, TOut>(random, manager, backend, trials, make, [](std::vector<TIn> &) {});
}

/** The process' manager keeps memory for the next run; a leak check at the end must not find it. */
class GiveBackMemory : public testing::Environment
{
public:
  void
  TearDown() override
  {
    Manager::GetGlobal().ReleaseMemory();
  }
};
inline testing::Environment * const giveBackMemory = testing::AddGlobalTestEnvironment(new GiveBackMemory);

} // namespace chunkwise

#endif
