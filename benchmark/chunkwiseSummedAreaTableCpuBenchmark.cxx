/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times summed-area tables on the CPU beside a copy of the same bytes, a plain loop and, where it is installed,
// OpenCV's integral. Arguments: threads (2), --csv FILE.
#include "chunkwiseBenchmarkReport.h"
#include "chunkwiseCpuLevel.h"
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
Measure(Report & report, Executor & executor, std::int64_t x, std::int64_t y, std::int64_t z)
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
  const double      copy = 1e3 * BestSeconds(9, [&] { CopyInParts(executor, to.data(), from.data(), bytes); });

  SummedAreaTableOperation operation;
  operation.image = box.upper;
  operation.summedAxes = z > 1 ? 3 : 2;
  operation.modular = true;
  const BufferView input = DenseView(in.data(), PixelTypeOf<TIn>(), box);
  const BufferView output = DenseView(out.data(), PixelTypeOf<TOut>(), box);
  const ChunkState carry(operation.GetCarryBytes(box, { input.kind }, output.kind), 0);
  HostRun          run(operation, { input }, output, executor);
  run.call.sideIn = carry.data();
  run.call.sideInBytes = carry.size();
  const double   ours = 1e3 * BestSeconds(9, run);
  const double   plain = z > 1 ? 0 : 1e3 * BestSeconds(9, [&] { PlainTable(executor, in.data(), out.data(), x, y); });
  constexpr bool hasPeer = !std::is_same<TIn, std::uint16_t>::value; // OpenCV has no such table
  double         openCv = 0;
  if constexpr (hasPeer)
  {
    openCv = z > 1 ? 0 : TimeOpenCv<TIn, TOut>(in, x, y);
  }
  const std::string what = std::string("table of ") + PixelTypeName(input.kind) + " to " + PixelTypeName(output.kind) +
                           (z > 1 ? ", 3 axes; " : "; ");
  report.Add("cpu",
             what + SizeName(box.Extents()) + ", " + GetCpuLevel().name,
             ours,
             "ms",
             { { plain, "plain loop" }, { openCv, "OpenCV, one thread" } },
             { copy, "a copy" });
}

} // namespace

int
main(int argc, char ** argv)
{
  Report     report(argc, argv);
  const auto executor = MakeThreadExecutor(static_cast<unsigned int>(argc > 1 ? std::atoi(argv[1]) : 2));
  report.SetHost(executor->GetConcurrency());
  Measure<float, float>(report, *executor, 4096, 4096, 1);
  Measure<float, double>(report, *executor, 4096, 4096, 1);
  Measure<double, double>(report, *executor, 4096, 4096, 1);
  Measure<std::uint8_t, std::int32_t>(report, *executor, 4096, 4096, 1);
  Measure<std::uint16_t, std::uint64_t>(report, *executor, 4096, 4096, 1);
  Measure<float, float>(report, *executor, 256, 256, 256);
  return 0;
}
