/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Buffers of more than 2^31 voxels, in one chunk. They take 5 GB of memory (27 GB on a device) and half a minute, so
// the tests run only where the environment has CHUNKWISE_TEST_LARGE.
#include "chunkwiseBoxStatisticOperation.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseKernelTrial.h"

#include <cmath>
#include <cstdlib>
#include <thread>

using namespace chunkwise;

namespace
{

constexpr Coordinates Extent{ { 1300, 1300, 1280, 1, 1 } };

std::uint8_t
PixelAt(const Coordinates & index)
{
  auto hash = static_cast<std::uint32_t>(index[0] * 73856093 ^ index[1] * 19349663 ^ index[2] * 83492791);
  hash ^= hash >> 13;
  return static_cast<std::uint8_t>(hash * 2654435761u >> 24);
}

/** The voxels of the part of a 3 x 3 x 3 window inside the image. */
std::vector<std::uint8_t>
WindowAt(const Coordinates & index)
{
  std::vector<std::uint8_t> values;
  Box                       window = Box::FromExtent(Extent);
  for (int a = 0; a < 3; ++a)
  {
    window.lower[a] = std::max<std::int64_t>(index[a] - 1, 0);
    window.upper[a] = std::min(index[a] + 2, Extent[a]);
  }
  ForEachIndex(window, [&](const Coordinates & at) { values.push_back(PixelAt(at)); });
  return values;
}

double
MeanAt(const Coordinates & index)
{
  double     sum = 0;
  const auto values = WindowAt(index);
  for (const std::uint8_t value : values)
  {
    sum += value;
  }
  return std::nearbyint(sum / static_cast<double>(values.size()));
}

double
MaximumAt(const Coordinates & index)
{
  const auto values = WindowAt(index);
  return *std::max_element(values.begin(), values.end());
}

struct Tables : DeviceTables
{
  const void *
  Get(const std::string & key, const void * data, std::size_t bytes) override
  {
    void *& table = tables[key];
    if (!table)
    {
      table = device.Allocate(bytes);
      device.CopyToDevice(table, data, bytes, stream);
      device.Synchronize(stream);
    }
    return table;
  }
  Tables(Device & d, StreamHandle s)
    : device(d)
    , stream(s)
  {}
  ~Tables() override
  {
    for (const auto & table : tables)
    {
      device.Free(table.second);
    }
  }

  Device &                      device;
  StreamHandle                  stream;
  std::map<std::string, void *> tables;
};

/** One call of the device's kernel over the whole image. */
void
RunOnDevice(Device & device, const Operation & operation, const std::vector<std::uint8_t> & in,
            std::vector<std::uint8_t> & out)
{
  const Box          box = Box::FromExtent(Extent);
  const Kernel &     kernel = *device.GetKernels().Find(operation.GetName());
  const StreamHandle stream = device.CreateStream();
  ChunkShape         shape;
  shape.inputBox = shape.outputBox = shape.image = box;
  shape.inputKinds[0] = shape.outputKind = PixelType::UInt8;
  shape.numberOfInputs = 1;
  shape.kernels = &device.GetKernels();
  KernelCall call;
  call.operation = &operation;
  call.inputs[0] = DenseView(device.Allocate(in.size()), PixelType::UInt8, box);
  call.numberOfInputs = 1;
  call.output = DenseView(device.Allocate(out.size()), PixelType::UInt8, box);
  call.writable = call.image = box;
  call.scratchBytes = kernel.scratchBytes ? kernel.scratchBytes(operation, shape) : 0;
  call.scratch = device.Allocate(std::max<std::size_t>(call.scratchBytes, 1));
  {
    Tables tables(device, stream);
    call.tables = &tables;
    device.CopyToDevice(call.inputs[0].data, in.data(), in.size(), stream);
    device.Launch(kernel, call, stream);
    device.CopyToHost(out.data(), call.output.data, out.size(), stream);
    device.Synchronize(stream);
  }
  device.Free(call.inputs[0].data);
  device.Free(call.output.data);
  device.Free(call.scratch);
  device.DestroyStream(stream);
}

class LargeBuffer : public KernelTest
{};

} // namespace

TEST_P(LargeBuffer, VoxelsOnBothSidesOf2To31AreRight)
{
  if (!std::getenv("CHUNKWISE_TEST_LARGE"))
  {
    GTEST_SKIP() << "CHUNKWISE_TEST_LARGE is not set";
  }
  const Box                 box = Box::FromExtent(Extent);
  const std::int64_t        count = box.NumberOfVoxels();
  std::vector<std::uint8_t> in(static_cast<std::size_t>(count));
  std::vector<std::uint8_t> out(in.size());
  const auto                indexOf = [](std::int64_t i) {
    return Coordinates{ { i % Extent[0], i / Extent[0] % Extent[1], i / Extent[0] / Extent[1], 0, 0 } };
  };
  std::vector<std::thread> pool;
  for (std::int64_t t = 0; t < 8; ++t)
  {
    pool.emplace_back([&, t] {
      for (std::int64_t i = count * t / 8; i < count * (t + 1) / 8; ++i)
      {
        in[static_cast<std::size_t>(i)] = PixelAt(indexOf(i));
      }
    });
  }
  for (auto & thread : pool)
  {
    thread.join();
  }
  std::vector<std::int64_t> samples = { 0, count - 1, INT32_MAX, std::int64_t{ INT32_MAX } + 1, INT32_MAX - 1300 };
  std::mt19937              random(8);
  for (int i = 0; i < 2000; ++i)
  {
    samples.push_back(
      static_cast<std::int64_t>(((std::uint64_t{ random() } << 32) | random()) % static_cast<std::uint64_t>(count)));
    samples.push_back(INT32_MAX + static_cast<std::int64_t>(random() % 10000000));
  }
  MeanOperation         mean;
  BoxStatisticOperation boxMean;
  ExtremumOperation     maximum;
  mean.radius = boxMean.radius = maximum.radius = { { 1, 1, 1, 0, 0 } };
  boxMean.anchored = false;
  const std::vector<std::pair<const Operation *, double (*)(const Coordinates &)>> cases = { { &mean, MeanAt },
                                                                                             { &boxMean, MeanAt },
                                                                                             { &maximum, MaximumAt } };
  for (const auto & [operation, expected] : cases)
  {
    std::fill(out.begin(), out.end(), std::uint8_t{ 0 });
    if (GetParam() == Place::Cpu)
    {
      ExecutionRequest request;
      request.operation = std::shared_ptr<const Operation>(std::shared_ptr<void>(), operation);
      request.image = request.region = box;
      request.inputs.push_back(DenseView(in.data(), PixelType::UInt8, box));
      request.output = DenseView(out.data(), PixelType::UInt8, box);
      request.backend = BackendChoice::CPU;
      GetManager().Execute(request);
    }
    else
    {
      RunOnDevice(*GetManager().GetDevices().at(0), *operation, in, out);
    }
    for (const std::int64_t i : samples)
    {
      ASSERT_EQ(static_cast<double>(out[static_cast<std::size_t>(i)]), expected(indexOf(i)))
        << operation->GetName() << " at voxel number " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, LargeBuffer, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Cuda, LargeBuffer, testing::Values(Place::Cuda));
