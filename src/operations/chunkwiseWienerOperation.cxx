/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseWienerOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseVarianceOperation.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

template <typename TStatistic>
TStatistic
StatisticOf(const Operation & operation)
{
  const auto & wiener = static_cast<const WienerOperation &>(operation);
  TStatistic   statistic;
  statistic.radius = wiener.radius;
  statistic.boundary = wiener.boundary;
  return statistic;
}

std::size_t
StatisticBytes(const Box & box, PixelKind input)
{
  return (static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(WienerOperation::RealKind(input)) + 255) / 256 *
         256;
}

ChunkShape
StatisticShape(ChunkShape shape)
{
  shape.outputKind = WienerOperation::RealKind(shape.inputKinds[0]);
  return shape;
}

} // namespace

void
WienerOperation::Validate(const Coordinates & image) const
{
  BoxOperation::Validate(image);
  if (!(std::isfinite(noise) && noise >= 0))
  {
    throw ParameterError("NoiseVariance: " + std::to_string(noise) + "; it must be finite and not negative");
  }
  StatisticOf<MeanOperation>(*this).Validate(image);
  StatisticOf<VarianceOperation>(*this).Validate(image);
}

std::size_t
WienerScratchBytes(const KernelRegistry & kernels, const Operation & operation, const ChunkShape & shape)
{
  const ChunkShape  statistic = StatisticShape(shape);
  const std::size_t mean = kernels.Get("mean", "wiener").scratchBytes(StatisticOf<MeanOperation>(operation), statistic);
  const std::size_t variance =
    kernels.Get("variance", "wiener").scratchBytes(StatisticOf<VarianceOperation>(operation), statistic);
  return 2 * StatisticBytes(shape.outputBox, shape.inputKinds[0]) + std::max(mean, variance);
}

double
WienerCost(const KernelRegistry & kernels, const Operation & operation, const ChunkShape & shape)
{
  const ChunkShape statistic = StatisticShape(shape);
  // Both statistics, the input and the output once more.
  return kernels.Get("mean", "wiener").cost(StatisticOf<MeanOperation>(operation), statistic) +
         kernels.Get("variance", "wiener").cost(StatisticOf<VarianceOperation>(operation), statistic) +
         static_cast<double>(2 * PixelSize(statistic.outputKind) + PixelSize(shape.inputKinds[0]) +
                             PixelSize(shape.outputKind)) *
           static_cast<double>(shape.outputBox.NumberOfVoxels());
}

WienerStatistics
RunWienerStatistics(const KernelRegistry & kernels, const KernelCall & call)
{
  const auto        mean = StatisticOf<MeanOperation>(*call.operation);
  const auto        variance = StatisticOf<VarianceOperation>(*call.operation);
  const PixelKind   kind = WienerOperation::RealKind(call.inputs[0].kind);
  const Box         box = call.output.box;
  const std::size_t bytes = StatisticBytes(box, call.inputs[0].kind);
  char * const      memory = static_cast<char *>(call.scratch);
  WienerStatistics  statistics{ DenseView(memory, kind, box), DenseView(memory + bytes, kind, box) };
  const auto        run = [&](const std::string & name, const Operation & operation, const BufferView & output) {
    KernelCall stage = call;
    stage.operation = &operation;
    stage.output = output;
    stage.writable = box;
    stage.scratch = memory + 2 * bytes;
    stage.scratchBytes = call.scratchBytes - 2 * bytes;
    // Progress is that of the last step.
    stage.control = nullptr;
    kernels.Get(name, "wiener").run(stage);
  };
  run("mean", mean, statistics.mean);
  run("variance", variance, statistics.variance);
  return statistics;
}

} // namespace chunkwise
