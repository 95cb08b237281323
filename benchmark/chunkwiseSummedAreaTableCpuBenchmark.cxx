/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times summed-area tables on the CPU beside a copy of the same bytes, a plain loop and, where it is installed,
// OpenCV's integral. Argument: threads (2).
#include "chunkwiseBenchmarkTime.h"
#include "chunkwiseDevice.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseSummedAreaTableOperation.h"

#if defined(CHUNKWISE_HAS_OPENCV)
#  include <opencv2/imgproc.hpp>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace chunkwise;

namespace
{

/** Rows, then columns, in parallel. */
template <typename TIn, typename TOut>
void
PlainTable(Executor & executor, const TIn * in, TOut * out, std::int64_t x, std::int64_t y)
{
  executor.ParallelFor(y, [&](std::int64_t row, unsigned int) {
    TOut sum = 0;
    for (std::int64_t i = row * x; i < (row + 1) * x; ++i)
    {
      sum += static_cast<TOut>(in[i]);
      out[i] = sum;
    }
  });
  const std::int64_t stripe = 512;
  executor.ParallelFor((x + stripe - 1) / stripe, [&](std::int64_t task, unsigned int) {
    const std::int64_t end = std::min(x, (task + 1) * stripe);
    for (std::int64_t row = 1; row < y; ++row)
    {
      for (std::int64_t i = row * x + task * stripe; i < row * x + end; ++i)
      {
        out[i] += out[i - x];
      }
    }
  });
}

#if defined(CHUNKWISE_HAS_OPENCV)
template <typename TIn, typename TOut>
double
TimeOpenCv(std::vector<TIn> & in, std::int64_t x, std::int64_t y)
{
  const cv::Mat image(static_cast<int>(y), static_cast<int>(x), cv::DataType<TIn>::type, in.data());
  const int     depth = std::is_same<TOut, float>::value ? CV_32F : std::is_same<TOut, double>::value ? CV_64F : CV_32S;
  cv::Mat       table;
  return 1e3 * BestSeconds(9, [&] { cv::integral(image, table, depth); });
}
#else
template <typename TIn, typename TOut>
double
TimeOpenCv(std::vector<TIn> &, std::int64_t, std::int64_t)
{
  return 0;
}
#endif

template <typename TIn, typename TOut>
void
Measure(Executor & executor, std::int64_t x, std::int64_t y, std::int64_t z)
{
  const Box         box = Box::FromExtent({ { x, y, z, 1, 1 } });
  const auto        n = static_cast<std::size_t>(box.NumberOfVoxels());
  std::vector<TIn>  in(n);
  std::vector<TOut> out(n);
  for (std::size_t i = 0; i < n; ++i)
  {
    in[i] = static_cast<TIn>(i * 2654435761u >> 7 & 127);
  }
  const std::size_t bytes = n * (sizeof(TIn) + sizeof(TOut)) / 2;
  std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  const double      copy =
    1e3 * BestSeconds(9, [&] {
      const auto workers = static_cast<std::int64_t>(executor.GetConcurrency());
      executor.ParallelFor(workers, [&](std::int64_t i, unsigned int) {
        const std::size_t begin = bytes * static_cast<std::size_t>(i) / static_cast<std::size_t>(workers);
        const std::size_t end = bytes * static_cast<std::size_t>(i + 1) / static_cast<std::size_t>(workers);
        std::memcpy(to.data() + begin, from.data() + begin, end - begin);
      });
    });

  SummedAreaTableOperation operation;
  operation.image = box.upper;
  operation.summedAxes = z > 1 ? 3 : 2;
  operation.modular = true;
  ChunkShape shape;
  shape.inputBox = shape.outputBox = shape.image = box;
  shape.inputKinds[0] = PixelKindOf<TIn>();
  shape.numberOfInputs = 1;
  shape.outputKind = PixelKindOf<TOut>();
  shape.concurrency = static_cast<int>(executor.GetConcurrency());
  const Kernel &             kernel = *GetHostKernels().Find("sat");
  const SideData             carry(operation.GetCarryBytes(box, { shape.inputKinds[0] }, shape.outputKind), 0);
  constexpr std::size_t      Line = 64;
  std::vector<unsigned char> scratch(kernel.scratchBytes(operation, shape) + Line);
  KernelCall                 call;
  call.operation = &operation;
  call.inputs[0] = DenseView(in.data(), shape.inputKinds[0], box);
  call.numberOfInputs = 1;
  call.output = DenseView(out.data(), shape.outputKind, box);
  call.writable = call.image = box;
  call.scratch = scratch.data() + (Line - reinterpret_cast<std::uintptr_t>(scratch.data()) % Line);
  call.scratchBytes = scratch.size() - Line;
  call.sideIn = carry.data();
  call.sideInBytes = carry.size();
  call.executor = &executor;
  const double   ours = 1e3 * BestSeconds(9, [&] { kernel.run(call); });
  const double   plain = z > 1 ? 0 : 1e3 * BestSeconds(9, [&] { PlainTable(executor, in.data(), out.data(), x, y); });
  constexpr bool hasPeer = !std::is_same<TIn, std::uint16_t>::value; // OpenCV has no such table
  double         openCv = 0;
  if constexpr (hasPeer)
  {
    openCv = z > 1 ? 0 : TimeOpenCv<TIn, TOut>(in, x, y);
  }
  std::printf(
    "%-8s %-8s %5lld x %5lld x %4lld: copy %7.2f ms, ours %7.2f (%.2f), plain loop %7.2f (%.2f of ours), OpenCV "
    "%7.2f (%.2f of ours)\n",
    PixelKindName(shape.inputKinds[0]),
    PixelKindName(shape.outputKind),
    static_cast<long long>(x),
    static_cast<long long>(y),
    static_cast<long long>(z),
    copy,
    ours,
    ours / copy,
    plain,
    plain / ours,
    openCv,
    openCv / ours);
  std::fflush(stdout);
}

} // namespace

int
main(int argc, char ** argv)
{
  const auto executor = MakeThreadExecutor(static_cast<unsigned int>(argc > 1 ? std::atoi(argv[1]) : 2));
  Measure<float, float>(*executor, 4096, 4096, 1);
  Measure<float, double>(*executor, 4096, 4096, 1);
  Measure<double, double>(*executor, 4096, 4096, 1);
  Measure<std::uint8_t, std::int32_t>(*executor, 4096, 4096, 1);
  Measure<std::uint16_t, std::uint64_t>(*executor, 4096, 4096, 1);
  Measure<float, float>(*executor, 256, 256, 256);
  return 0;
}
