/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseGridTrial_h
#define chunkwiseGridTrial_h

#include "chunkwiseCpuLevel.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseMemoryImage.h"
#include "chunkwiseRegions.h"
#include "chunkwiseStreamedRun.h"

namespace chunkwise
{

/** A run of an operation whose output has another grid than its image. */
template <typename TIn, typename TOut, typename TOperation>
struct GridTrial
{
  GridTrial(std::shared_ptr<TOperation> theOperation, std::vector<TIn> theVoxels)
    : operation(std::move(theOperation))
    , voxels(std::move(theVoxels))
  {
    request.operation = operation;
    request.image = Box::FromExtent(operation->image);
    request.region = GetOutputBox(*operation, request.image);
    output.assign(static_cast<std::size_t>(request.region.NumberOfVoxels()), TOut(77));
    request.inputs = { DenseView(voxels.data(), PixelTypeOf<TIn>(), request.image) };
    request.output = DenseView(output.data(), PixelTypeOf<TOut>(), request.region);
    request.backend = BackendChoice::CPU;
  }
  std::vector<TOut>
  Run(Manager & manager)
  {
    std::fill(output.begin(), output.end(), TOut(77));
    report = manager.Execute(request);
    return output;
  }

  std::shared_ptr<TOperation> operation;
  std::vector<TIn>            voxels;
  std::vector<TOut>           output;
  ExecutionRequest            request;
  ExecutionReport             report;
};

/** The bits of the result by one thread or several, with each instruction set, in chunks, in streams, as a part.
 * Returns how often there were several chunks. */
template <typename TPixel, typename TOperation>
int
CompareGridCuts(std::mt19937 & random, Manager & manager, GridTrial<TPixel, TPixel, TOperation> & t,
                const std::string & what)
{
  const auto same = [](const std::vector<TPixel> & a, const std::vector<TPixel> & b) {
    return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(TPixel)) == 0;
  };
  const auto        one = MakeThreadExecutor(1);
  const auto        three = MakeThreadExecutor(3);
  const std::string level = GetCpuLevel().name;
  int               chunked = 0;
  t.request.executor = one.get();
  const std::vector<TPixel> expected = t.Run(manager);
  t.request.executor = three.get();
  EXPECT_TRUE(same(t.Run(manager), expected)) << what;
  for (const char * const other : { "baseline", "avx2", "avx512" })
  {
    if (SetCpuLevel(other))
    {
      EXPECT_TRUE(same(t.Run(manager), expected)) << other << " " << what;
    }
  }
  SetCpuLevel(level.c_str());
  for (std::size_t bytes = 1 << 22; bytes > 10000; bytes -= bytes / 3)
  {
    t.request.budgets.host = bytes;
    try
    {
      EXPECT_TRUE(same(t.Run(manager), expected)) << bytes << " bytes " << what;
      EXPECT_LE(t.report.peakHost, bytes);
      chunked += t.report.plan.chunks.size() > 1 ? 1 : 0;
    }
    catch (const BudgetError &)
    {
      break;
    }
  }
  StreamedRequest stream;
  stream.operation = t.operation;
  stream.inputs = { { std::make_shared<MemoryImage>(t.request.inputs[0]), PixelTypeOf<TPixel>() } };
  stream.region = t.request.region;
  stream.computedKind = stream.writtenKind = PixelTypeOf<TPixel>();
  stream.backend = BackendChoice::CPU;
  stream.divisions = 1 + static_cast<std::int64_t>(random() % 9);
  const StreamedPlan plan = MakeStreamedPlan(manager, stream);
  std::fill(t.output.begin(), t.output.end(), TPixel(77));
  ExecuteStreamed(manager, stream, plan, std::make_shared<MemoryImage>(t.request.output));
  EXPECT_TRUE(same(t.output, expected)) << plan.divisions << " divisions " << what;

  // All that surrounds the box that is said to be needed is poison.
  t.request.budgets.host = 0;
  t.request.region = RandomRegion(random, t.request.region.Extents());
  const Box           needed = GetInputBox(*t.operation, t.request.region, t.request.image);
  std::vector<TPixel> part(static_cast<std::size_t>(needed.NumberOfVoxels()));
  const BufferView    view = DenseView(part.data(), PixelTypeOf<TPixel>(), needed);
  ForEachIndex(needed, [&](const Coordinates & at) { At<TPixel>(view, at) = At<TPixel>(t.request.inputs[0], at); });
  t.request.inputs = { view };
  t.Run(manager);
  int wrong = 0;
  ForEachIndex(t.request.region, [&](const Coordinates & at) {
    const auto i = static_cast<std::size_t>(t.request.output.Offset(at));
    wrong += std::memcmp(&t.output[i], &expected[i], sizeof(TPixel)) == 0 ? 0 : 1;
  });
  EXPECT_EQ(wrong, 0) << "of a part " << what;
  return chunked;
}

} // namespace chunkwise

#endif
