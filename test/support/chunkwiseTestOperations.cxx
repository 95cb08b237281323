/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseTestOperations.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace chunkwise
{

namespace
{

void
Expect(const std::vector<PixelType> & inputs, PixelType output, PixelType expected)
{
  for (const PixelType kind : inputs)
  {
    if (kind != PixelType::Int32)
    {
      throw ParameterError(std::string("input of kind ") + PixelTypeName(kind));
    }
  }
  if (output != expected)
  {
    throw ParameterError(std::string("output of kind ") + PixelTypeName(output));
  }
}

void
RunWindowSum(const KernelCall & call)
{
  const auto & operation = static_cast<const WindowSumOperation &>(*call.operation);
  const Box    held = call.inputs[0].box;
  ForEachIndex(call.output.box, [&](const Coordinates & index) {
    Box window{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      window.lower[a] = index[a] - operation.radius[a];
      window.upper[a] = index[a] + operation.radius[a] + 1;
    }
    std::int64_t sum = 0;
    ForEachIndex(window, [&](Coordinates tap) {
      for (int a = 0; a < MaxDimension; ++a)
      {
        tap[a] = MapTap(tap[a],
                        held.lower[a],
                        held.upper[a],
                        call.image.Extent(a),
                        operation.wraps ? BoundaryMode::Periodic : BoundaryMode::Renormalized);
        if (tap[a] < 0 && !operation.wraps)
        {
          return;
        }
      }
      sum += At<std::int32_t>(call.inputs[0], tap);
    });
    At<std::int64_t>(call.output, index) = sum;
  });
}

std::size_t
PlaneVoxels(const Box & box, int axis)
{
  return static_cast<std::size_t>(box.NumberOfVoxels() / box.Extent(axis));
}

/** Calls f(index, sum) with the running sum at each voxel of `box`. */
template <typename TFunctor>
void
Accumulate(const KernelCall & call, const Box & box, std::vector<std::int64_t> & sums, TFunctor && f)
{
  const int axis = call.operation->GetSweepAxis(call.image.Extents());
  std::memcpy(sums.data(), call.sideIn, sums.size() * sizeof(std::int64_t));
  std::size_t at = 0;
  ForEachIndex(box, [&](const Coordinates & index) {
    sums[at] += At<std::int32_t>(call.inputs[0], index);
    f(index, sums[at]);
    at = at + 1 == PlaneVoxels(box, axis) ? 0 : at + 1;
  });
}

void
RunRunningSumAdvance(const KernelCall & call)
{
  std::vector<std::int64_t> sums(call.sideInBytes / sizeof(std::int64_t));
  Accumulate(call, call.writable, sums, [](const Coordinates &, std::int64_t) {});
  std::memcpy(call.sideOut, sums.data(), call.sideOutBytes);
}

void
RunRunningSum(const KernelCall & call)
{
  std::vector<std::int64_t> sums(call.sideInBytes / sizeof(std::int64_t));
  Accumulate(call, call.output.box, sums, [&](const Coordinates & index, std::int64_t sum) {
    At<std::int64_t>(call.output, index) = sum;
  });
}

void
RunRunningSumWithCarry(const KernelCall & call)
{
  RunRunningSum(call);
  if (call.sideOut)
  {
    RunRunningSumAdvance(call);
  }
}

void
RunAboveMinimumSummarise(const KernelCall & call)
{
  std::int32_t smallest = INT32_MAX;
  ForEachIndex(call.writable, [&](const Coordinates & index) {
    smallest = std::min(smallest, At<std::int32_t>(call.inputs[0], index));
  });
  std::memcpy(call.sideOut, &smallest, sizeof(smallest));
}

void
RunAboveMinimum(const KernelCall & call)
{
  std::int32_t smallest = 0;
  std::memcpy(&smallest, call.sideIn, sizeof(smallest));
  ForEachIndex(call.output.box, [&](const Coordinates & index) {
    At<std::int64_t>(call.output, index) =
      static_cast<std::int64_t>(At<std::int32_t>(call.inputs[0], index)) - smallest;
  });
}

void
RunFloodBegin(const KernelCall & call)
{
  ForEachIndex(call.writable, [&](const Coordinates & index) {
    At<std::int32_t>(call.output, index) = At<std::int32_t>(call.inputs[0], index);
  });
}

void
RunFlood(const KernelCall & call)
{
  const Box &   own = call.writable;
  std::uint32_t sides = 0;
  for (bool changed = true; changed;)
  {
    changed = false;
    ForEachIndex(own, [&](const Coordinates & index) {
      const std::int32_t before = At<std::int32_t>(call.output, index);
      std::int32_t       value = before;
      for (int a = 0; a < MaxDimension; ++a)
      {
        for (const int step : { -1, 1 })
        {
          Coordinates neighbour = index;
          neighbour[a] += step;
          if (neighbour[a] >= call.output.box.lower[a] && neighbour[a] < call.output.box.upper[a])
          {
            value = std::max(value, At<std::int32_t>(call.output, neighbour));
          }
        }
      }
      value = std::min(value, At<std::int32_t>(call.inputs[1], index));
      if (value > before)
      {
        At<std::int32_t>(call.output, index) = value;
        changed = true;
        for (int a = 0; a < MaxDimension; ++a)
        {
          sides |= index[a] == own.lower[a] ? 1u << (2 * a) : 0u;
          sides |= index[a] == own.upper[a] - 1 ? 2u << (2 * a) : 0u;
        }
      }
    });
  }
  *call.changedSides |= sides;
}

} // namespace

void
WindowSumOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  Expect(inputs, output, PixelType::Int64);
}

void
RunningSumOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  Expect(inputs, output, PixelType::Int64);
}

std::size_t
RunningSumOperation::GetCarryBytes(const Box & box, const std::vector<PixelType> &, PixelType) const
{
  return PlaneVoxels(box, axis) * sizeof(std::int64_t);
}

void
AboveMinimumOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  Expect(inputs, output, PixelType::Int64);
}

std::size_t
AboveMinimumOperation::GetSummaryBytes(const Box &, const std::vector<PixelType> &, PixelType) const
{
  return sizeof(std::int32_t);
}

std::vector<ChunkState>
AboveMinimumOperation::Solve(const std::vector<Box> & chunks, const std::vector<ChunkState> & summaries) const
{
  for (std::size_t i = 0; i < chunks.size(); ++i)
  {
    for (std::size_t j = 0; j < i; ++j)
    {
      if (!Intersect(chunks[i], chunks[j]).IsEmpty())
      {
        throw Error("chunks " + ToString(chunks[i]) + " and " + ToString(chunks[j]) + " overlap");
      }
    }
  }
  std::int32_t smallest = INT32_MAX;
  for (const ChunkState & summary : summaries)
  {
    std::int32_t value = 0;
    std::memcpy(&value, summary.data(), sizeof(value));
    smallest = std::min(smallest, value);
  }
  ChunkState solution(sizeof(smallest));
  std::memcpy(solution.data(), &smallest, sizeof(smallest));
  return std::vector<ChunkState>(chunks.size(), solution);
}

void
FloodOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  Expect(inputs, output, PixelType::Int32);
}

const KernelRegistry &
GetKernelsWithoutAdvance()
{
  static const KernelRegistry & kernels = []() -> const KernelRegistry & {
    static KernelRegistry registry;
    KernelSet             kernels;
    kernels.compute.run = RunRunningSumWithCarry;
    registry.Register("test.running-sum", kernels);
    return registry;
  }();
  return kernels;
}

const KernelRegistry &
GetTestKernels()
{
  static const KernelRegistry & kernels = [&]() -> const KernelRegistry & {
    static KernelRegistry registry;
    KernelSet             windowSum;
    windowSum.compute.run = RunWindowSum;
    registry.Register("test.window-sum", windowSum);
    KernelSet runningSum;
    runningSum.compute.run = RunRunningSum;
    runningSum.advance.run = [](const KernelCall & call) {
      if (call.output.data || call.output.kind != PixelType::Int64)
      {
        throw std::logic_error("test.running-sum: only the output's kind is to be there where it advances");
      }
      RunRunningSumAdvance(call);
    };
    registry.Register("test.running-sum", runningSum);
    KernelSet aboveMinimum;
    aboveMinimum.compute.run = RunAboveMinimum;
    aboveMinimum.summarize.run = RunAboveMinimumSummarise;
    registry.Register("test.above-minimum", aboveMinimum);
    KernelSet flood;
    flood.compute.run = RunFlood;
    flood.begin.run = RunFloodBegin;
    registry.Register("test.flood", flood);
    return registry;
  }();
  return kernels;
}

} // namespace chunkwise
