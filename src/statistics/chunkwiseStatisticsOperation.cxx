/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseStatisticsOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseOperations.h"
#include "chunkwiseStatisticsSummary.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace chunkwise
{

namespace
{

constexpr std::size_t Alignment = 256;

/** The part of the chunk that a stage of another operation sees. */
ChunkShape
StageShape(ChunkShape shape, const StagedSummaryOperation & operation)
{
  shape.outputKind = operation.stageKind;
  return shape;
}

std::size_t
StageOutputBytes(const Box & box, PixelType kind)
{
  return (static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(kind) + Alignment - 1) / Alignment * Alignment;
}

void
AddCounts(ChunkState & total, const ChunkState & summary)
{
  unsigned char * const       to = total.data();
  const unsigned char * const from = summary.data();
  const std::size_t           bytes = total.size();
  std::int64_t                a = 0;
  std::int64_t                b = 0;
  for (std::size_t at = 0; at < bytes; at += sizeof(a))
  {
    std::memcpy(&a, to + at, sizeof(a));
    std::memcpy(&b, from + at, sizeof(b));
    a += b;
    std::memcpy(to + at, &a, sizeof(a));
  }
}

} // namespace

Halo
SummaryOperation::GetHalo(const Coordinates &) const
{
  return Halo::None();
}

void
SummaryOperation::CheckKinds(const std::vector<PixelType> &, PixelType) const
{}

std::string
StagedSummaryOperation::GetKey() const
{
  return GetName() + (stage ? std::string(" ") + PixelTypeName(stageKind) + " " + stage->GetKey() : "");
}

Halo
StagedSummaryOperation::GetHalo(const Coordinates & image) const
{
  return stage ? stage->GetHalo(image) : Halo::None();
}

Coordinates
StagedSummaryOperation::GetTile(const Coordinates & image) const
{
  return stage ? stage->GetTile(image) : Coordinates::Filled(1);
}

bool
StagedSummaryOperation::WrapsAround() const
{
  return stage && stage->WrapsAround();
}

void
StagedSummaryOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType) const
{
  if (stage)
  {
    stage->CheckKinds(inputs, stageKind);
  }
}

void
StagedSummaryOperation::Validate(const Coordinates & image) const
{
  if (!stage)
  {
    return;
  }
  if (stage->GetSchedule() != Schedule::Independent)
  {
    throw ParameterError("statistics are taken of operations with independent chunks, which \"" + stage->GetName() +
                         "\" has not");
  }
  stage->Validate(image);
}

Coordinates
StagedSummaryOperation::RoundChunk(const Coordinates & extent) const
{
  return stage ? stage->RoundChunk(extent) : extent;
}

std::size_t
StatisticsOperation::GetSummaryBytes(const Box &, const std::vector<PixelType> &, PixelType) const
{
  return sizeof(StatisticsSummary);
}

void
StatisticsOperation::MergeSummary(ChunkState & total, const ChunkState & summary) const
{
  StatisticsSummary a;
  StatisticsSummary b;
  std::memcpy(&a, total.data(), sizeof(a));
  std::memcpy(&b, summary.data(), sizeof(b));
  a.Merge(b);
  std::memcpy(total.data(), &a, sizeof(a));
}

BufferView
RunStatisticsStage(const KernelCall & call)
{
  const auto & operation = static_cast<const StagedSummaryOperation &>(*call.operation);
  if (!operation.stage)
  {
    return call.inputs[0];
  }
  KernelCall stage = call;
  stage.operation = operation.stage.get();
  stage.output = DenseView(call.scratch, operation.stageKind, call.writable);
  stage.sideOut = nullptr;
  stage.sideOutBytes = 0;
  const std::size_t bytes = StageOutputBytes(call.writable, operation.stageKind);
  stage.scratch = static_cast<char *>(call.scratch) + bytes;
  stage.scratchBytes = call.scratchBytes - bytes;
  call.kernels->Get(operation.stage->GetName(), operation.GetName()).run(stage);
  return stage.output;
}

std::size_t
StatisticsStageBytes(const Operation & operation, const ChunkShape & shape)
{
  const auto & statistics = static_cast<const StagedSummaryOperation &>(operation);
  if (!statistics.stage)
  {
    return 0;
  }
  const Kernel & stage = shape.kernels->Get(statistics.stage->GetName(), statistics.GetName());
  return StageOutputBytes(shape.outputBox, statistics.stageKind) +
         (stage.scratchBytes ? stage.scratchBytes(*statistics.stage, StageShape(shape, statistics)) : 0);
}

double
StatisticsCost(const Operation & operation, const ChunkShape & shape)
{
  const auto & statistics = static_cast<const StagedSummaryOperation &>(operation);
  const auto   input =
    static_cast<double>(shape.inputBox.NumberOfVoxels()) * static_cast<double>(PixelSize(shape.inputKinds[0]));
  if (!statistics.stage)
  {
    return input;
  }
  const double output =
    static_cast<double>(shape.outputBox.NumberOfVoxels()) * static_cast<double>(PixelSize(statistics.stageKind));
  const Kernel & stage = shape.kernels->Get(statistics.stage->GetName(), statistics.GetName());
  return output + (stage.cost ? stage.cost(*statistics.stage, StageShape(shape, statistics)) : input + output);
}

std::string
HistogramOperation::GetKey() const
{
  return StagedSummaryOperation::GetKey() + " " + std::to_string(bins) + " " + ExactText(lower) + " " +
         ExactText(upper);
}

void
HistogramOperation::Validate(const Coordinates & image) const
{
  StagedSummaryOperation::Validate(image);
  if (bins < 1 || bins > LargestBins)
  {
    throw ParameterError("Bins is " + std::to_string(bins) + "; it must be from 1 to " + std::to_string(LargestBins));
  }
  if (!(std::isfinite(lower) && std::isfinite(upper) && lower < upper && std::isfinite(GetScale())))
  {
    throw ParameterError("Range is from " + std::to_string(lower) + " to " + std::to_string(upper) +
                         "; both must be finite, the first below the second");
  }
}

std::size_t
HistogramOperation::GetSummaryBytes(const Box &, const std::vector<PixelType> &, PixelType) const
{
  return (static_cast<std::size_t>(bins) + 1) * sizeof(std::int64_t);
}

void
HistogramOperation::MergeSummary(ChunkState & total, const ChunkState & summary) const
{
  AddCounts(total, summary);
}

std::string
OrdinalsOperation::GetKey() const
{
  std::string key = "ordinals " + std::to_string(bits) + " " + std::to_string(shift);
  for (const std::uint64_t prefix : prefixes)
  {
    key += " " + std::to_string(prefix);
  }
  return key;
}

void
OrdinalsOperation::Validate(const Coordinates &) const
{
  if (bits < 1 || bits > 16 || shift < 0 || bits + shift > 64)
  {
    throw ParameterError("Bits is " + std::to_string(bits) + " above " + std::to_string(shift) +
                         "; it must be from 1 to 16, with at most 64 in all");
  }
  if (prefixes.empty() || prefixes.size() > MostPrefixes)
  {
    throw ParameterError("there are " + std::to_string(prefixes.size()) + " prefixes; there must be from 1 to " +
                         std::to_string(MostPrefixes));
  }
}

std::size_t
OrdinalsOperation::GetSummaryBytes(const Box &, const std::vector<PixelType> &, PixelType) const
{
  return (prefixes.size() << bits) * sizeof(std::int64_t);
}

void
OrdinalsOperation::MergeSummary(ChunkState & total, const ChunkState & summary) const
{
  AddCounts(total, summary);
}

} // namespace chunkwise
