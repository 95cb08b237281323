/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times convolutions on the CPU without ITK. Arguments: any of
//   varying    kernels of 100 x 100 on a grid of M / 128 nodes an axis, with 1, 2, 4 ... threads
//   pruned     transforms there and back with and without those of lines of zeros or of what is not kept
//   methods    direct beside transforms for kernels of few weights
// and then the most threads (as many as the machine has).
#include "chunkwiseBenchmarkTime.h"
#include "chunkwiseCpuFftBlock.h"
#include "chunkwiseDevice.h"
#include "chunkwiseVaryingConvolutionOperation.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace chunkwise;

namespace
{

std::shared_ptr<const ConvolutionKernel>
MakeKernel(const Coordinates & extent, std::size_t seed)
{
  std::vector<double> weights(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  Coordinates         center{};
  for (std::size_t i = 0; i < weights.size(); ++i)
  {
    weights[i] = 1 + static_cast<double>((i + seed) % 1031);
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    center[a] = extent[a] / 2;
  }
  return std::make_shared<ConvolutionKernel>(extent, center, weights);
}

std::vector<float>
MakeImage(const Coordinates & extent)
{
  std::vector<float> pixels(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  std::uint32_t      state = 1234567u;
  for (float & pixel : pixels)
  {
    state = state * 1664525u + 1013904223u;
    pixel = static_cast<float>(state >> 8) * 1e-4f;
  }
  return pixels;
}

class HostTables : public DeviceTables
{
public:
  const void *
  Get(const std::string &, const void * data, std::size_t) override
  {
    return data;
  }
};

/** Seconds of the host's kernel over a whole image. */
double
TimeOperation(const Operation & operation, const Coordinates & extent, Executor & executor, int repeats)
{
  std::vector<float> in = MakeImage(extent);
  std::vector<float> out(in.size());
  HostTables         tables;
  const Kernel &     kernel = *GetHostKernels().Find(operation.GetName());
  ChunkShape         shape;
  shape.inputBox = shape.outputBox = shape.image = Box::FromExtent(extent);
  shape.inputKinds[0] = shape.outputKind = PixelKind::Float32;
  shape.numberOfInputs = 1;
  shape.concurrency = static_cast<int>(executor.GetConcurrency());
  std::vector<char> scratch(kernel.scratchBytes(operation, shape) + 256);
  KernelCall        call;
  call.operation = &operation;
  call.inputs[0] = DenseView(in.data(), PixelKind::Float32, shape.image);
  call.numberOfInputs = 1;
  call.output = DenseView(out.data(), PixelKind::Float32, shape.image);
  call.writable = call.image = shape.image;
  call.scratch = scratch.data() + (256 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 256);
  call.scratchBytes = scratch.size() - 256;
  call.executor = &executor;
  call.tables = &tables;
  return BestSeconds(repeats, [&] { kernel.run(call); });
}

/** Table 2 of Kepner's "A multi-threaded fast convolver for dynamically parallel image filtering". */
void
Varying(unsigned int most)
{
  std::printf("Kernels of 100 x 100 that vary over the image, float\n");
  std::printf("%6s %6s %8s %10s %8s %12s\n", "M", "grid", "threads", "seconds", "speedup", "efficiency");
  for (const std::int64_t size : { 1024, 2048, 4096 })
  {
    VaryingConvolutionOperation operation;
    for (int a = 0; a < 2; ++a)
    {
      operation.nodes[a] = size / 128;
      operation.spacing[a] = 128;
      operation.first[a] = 63.5;
    }
    for (std::int64_t node = 0; node < operation.nodes[0] * operation.nodes[1]; ++node)
    {
      operation.kernels.push_back(MakeKernel({ { 100, 100, 1, 1, 1 } }, static_cast<std::size_t>(node)));
    }
    double one = 0;
    for (unsigned int threads = 1; threads <= most; threads *= 2)
    {
      const auto   executor = MakeThreadExecutor(threads);
      const double seconds = TimeOperation(operation, { { size, size, 1, 1, 1 } }, *executor, size > 2000 ? 3 : 5);
      one = threads == 1 ? seconds : one;
      std::printf("%6lld %6lld %8u %10.4f %8.2f %11.0f%%\n",
                  static_cast<long long>(size),
                  static_cast<long long>(size / 128),
                  threads,
                  seconds,
                  one / seconds,
                  100 * one / seconds / threads);
    }
  }
}

/** Transforms of a block along all three axes and back: those of RunBlock. */
double
TimeTransforms(const ConvolutionBlock & block, Executor & executor)
{
  constexpr std::int64_t      Cell = FftCell<float>;
  const CellShape<float>      shape(block);
  const PlaneTransform<float> planes(block);
  const auto &                functions = GetFftFunctions<float>();
  const auto &                z = block.role[2];
  const auto &                planZ = GetFftPlan<float>(z.length);
  const std::int64_t          columns = shape.rows * shape.rowCells;
  std::vector<float>          memory(
    static_cast<std::size_t>(shape.Spectrum() + shape.Worker() * executor.GetConcurrency() + 64), 0.0f);
  float * const spectrum = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) / sizeof(float);
  const auto    spaceOf = [&](unsigned int worker) {
    return WorkSpace<float>(spectrum + shape.Spectrum() + worker * shape.Worker(), shape);
  };
  return BestSeconds(5, [&] {
    executor.ParallelFor(z.input, [&](std::int64_t plane, unsigned int worker) {
      planes.Forward(
        block.role[1].input,
        block.role[0].input,
        spectrum + plane * columns * Cell,
        spaceOf(worker),
        [&](std::int64_t row, float * out) { std::fill(out, out + block.role[0].input, static_cast<float>(row)); });
    });
    executor.ParallelFor(shape.rows, [&](std::int64_t row, unsigned int worker) {
      const WorkSpace<float> space = spaceOf(worker);
      for (std::int64_t c = row * shape.rowCells; c < (row + 1) * shape.rowCells; ++c)
      {
        float * const column = spectrum + c * Cell;
        functions.transform(
          planZ, { column, columns }, z.input, { space.first, 1 }, 0, planZ.length, false, space.work);
        functions.transform(
          planZ, { space.first, 1 }, planZ.length, { column, columns }, z.crop, z.crop + z.output, true, space.work);
      }
    });
    executor.ParallelFor(z.output, [&](std::int64_t plane, unsigned int worker) {
      planes.Inverse(spectrum + plane * columns * Cell, spaceOf(worker), [](std::int64_t, float *) {});
    });
  });
}

void
Pruned(unsigned int threads)
{
  const auto executor = MakeThreadExecutor(threads);
  std::printf("\nTransforms there and back, float, %u threads, milliseconds\n", threads);
  std::printf("%-28s %8s %10s %10s %8s\n", "", "length", "pruned", "unpruned", "ratio");
  const auto row = [&](const char * name, std::int64_t n, std::int64_t k, bool same) {
    ImageConvolutionOperation operation;
    operation.kernel = MakeKernel({ { k, k, k, 1, 1 } }, 1);
    const Coordinates image{ { n, n, n, 1, 1 } };
    Box               output = Box::FromExtent(image);
    for (int a = 0; a < 3 && !same; ++a)
    {
      output.lower[a] = k / 2;
      output.upper[a] = n - k / 2;
    }
    ConvolutionBlock block(operation, output, image);
    const double     pruned = TimeTransforms(block, *executor);
    for (int a = 0; a < 3; ++a)
    {
      block.role[a].input = block.role[a].output = block.role[a].length;
      block.role[a].crop = 0;
    }
    const double unpruned = TimeTransforms(block, *executor);
    std::printf("%-28s %8lld %10.1f %10.1f %8.2f\n",
                name,
                static_cast<long long>(block.role[0].length),
                pruned * 1e3,
                unpruned * 1e3,
                unpruned / pruned);
  };
  row("same, 192^3 with 31^3", 192, 31, true);
  row("same, 192^3 with 65^3", 192, 65, true);
  row("same, 192^3 with 129^3", 192, 129, true);
  row("valid, 192^3 with 65^3", 192, 65, false);
}

void
Methods(unsigned int threads)
{
  const auto executor = MakeThreadExecutor(threads);
  std::printf("\nKernels of few weights, float, %u threads, milliseconds\n", threads);
  std::printf("%-28s %10s %10s\n", "", "direct", "transforms");
  const auto row = [&](const Coordinates & image, const Coordinates & extent) {
    double seconds[2];
    for (const ConvolutionMethod method : { ConvolutionMethod::Direct, ConvolutionMethod::FFT })
    {
      ImageConvolutionOperation operation;
      operation.kernel = MakeKernel(extent, 1);
      operation.method = method;
      seconds[method == ConvolutionMethod::FFT ? 1 : 0] = TimeOperation(operation, image, *executor, 3);
    }
    std::printf("%-16s %-12s %9.1f %10.1f\n",
                ToString(image).c_str(),
                ToString(extent).c_str(),
                seconds[0] * 1e3,
                seconds[1] * 1e3);
  };
  for (const std::int64_t k : { 3, 4, 5, 6, 7 })
  {
    row({ { 192, 192, 192, 1, 1 } }, { { k, k, k, 1, 1 } });
  }
  for (const std::int64_t k : { 5, 7, 9, 11, 13, 15 })
  {
    row({ { 2048, 2048, 1, 1, 1 } }, { { k, k, 1, 1, 1 } });
  }
  for (const std::int64_t k : { 15, 31, 63, 127 })
  {
    row({ { 192, 192, 192, 1, 1 } }, { { k, 1, 1, 1, 1 } });
  }
}

} // namespace

int
main(int argc, char * argv[])
{
  std::setvbuf(stdout, nullptr, _IOLBF, 1024);
  unsigned int threads = MakeThreadExecutor()->GetConcurrency();
  bool         any = false;
  for (int i = 1; i < argc; ++i)
  {
    threads = std::atoi(argv[i]) > 0 ? static_cast<unsigned int>(std::atoi(argv[i])) : threads;
    any = any || std::atoi(argv[i]) <= 0;
  }
  const auto wants = [&](const char * part) {
    bool wanted = !any;
    for (int i = 1; i < argc; ++i)
    {
      wanted = wanted || std::strcmp(argv[i], part) == 0;
    }
    return wanted;
  };
  if (wants("varying"))
  {
    Varying(threads);
  }
  if (wants("pruned"))
  {
    Pruned(threads);
  }
  if (wants("methods"))
  {
    Methods(threads);
  }
  return 0;
}
