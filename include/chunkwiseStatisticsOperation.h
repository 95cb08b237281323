/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseStatisticsOperation_h
#define chunkwiseStatisticsOperation_h

#include "chunkwiseOperation.h"

#include <memory>
#include <vector>

namespace chunkwise
{

/** Base of operations that read an image and write none. chunkwiseStatistics.h has the functions that run them. */
class Chunkwise_EXPORT SummaryOperation : public Operation
{
public:
  Schedule
  GetSchedule() const override
  {
    return Schedule::TwoPass;
  }
  bool
  HasOutput() const override
  {
    return false;
  }
  Halo
  GetHalo(const Coordinates & image) const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
};

/** Base of summaries of an image, or of what another operation makes of it. */
class Chunkwise_EXPORT StagedSummaryOperation : public SummaryOperation
{
public:
  /** Independent; nullptr: the image itself. Its output is scratch of each chunk and nothing else. */
  std::shared_ptr<const Operation> stage;
  PixelType                        stageKind{ PixelType::Float64 };

  int
  GetNumberOfInputs() const override
  {
    return stage ? stage->GetNumberOfInputs() : 1;
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  Coordinates
  GetTile(const Coordinates & image) const override;
  bool
  WrapsAround() const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & image) const override;
  Coordinates
  RoundChunk(const Coordinates & extent) const override;
};

/** Count, sum, sum of squares, minimum and maximum of an image, or of what another operation makes of it. Kernel
 * `summarize` of "statistics".
 *
 * The summary is a StatisticsSummary: both sums without rounding, so that its bits depend on neither order, chunks nor
 * backend. NaN is counted and else skipped; infinities are counted by sign and are in no sum. */
class Chunkwise_EXPORT StatisticsOperation : public StagedSummaryOperation
{
public:
  std::string
  GetName() const override
  {
    return "statistics";
  }
  std::size_t
  GetSummaryBytes(const Box & box, const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  MergeSummary(ChunkState & total, const ChunkState & summary) const override;
};

/** The stage of a StagedSummaryOperation, for kernels: runs it with the same backend's kernels into the call's scratch,
 * and leaves there what is to be summarised. Without a stage that is the chunk's own part of the input. */
Chunkwise_EXPORT BufferView
RunStatisticsStage(const KernelCall & call);
/** Bytes that the stage takes at the beginning of scratch. */
Chunkwise_EXPORT std::size_t
                 StatisticsStageBytes(const Operation & operation, const ChunkShape & shape);
Chunkwise_EXPORT double
StatisticsCost(const Operation & operation, const ChunkShape & shape);

/** The histogram of an image, or of what another operation makes of it. Kernel `summarize` of "histogram". The summary
 * has a 64-bit count for each bin and, last, the number of NaN. Bins are those of BinOf, see EntropyOperation, but NaN
 * is in none. */
class Chunkwise_EXPORT HistogramOperation : public StagedSummaryOperation
{
public:
  static constexpr int LargestBins = 65536;

  int    bins{ 256 };
  double lower{ 0 };
  double upper{ 256 };

  std::string
  GetName() const override
  {
    return "histogram";
  }
  std::string
  GetKey() const override;
  void
  Validate(const Coordinates & image) const override;
  std::size_t
  GetSummaryBytes(const Box & box, const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  MergeSummary(ChunkState & total, const ChunkState & summary) const override;

  double
  GetScale() const
  {
    return bins / (upper - lower);
  }
};

/** Histograms of some bits of the voxels' ordinals (chunkwiseOrdinal.h), one of the voxels that begin with each prefix:
 * step by step they find the k-th smallest voxel. Kernel `summarize` of "ordinals". The summary has a 64-bit count for
 * each prefix and value of the bits. NaN is in none. */
class Chunkwise_EXPORT OrdinalsOperation : public SummaryOperation
{
public:
  static constexpr int MostPrefixes = 8;

  /** The bits that are counted: `bits` of them above the `shift` lowest; the prefix is what is above. */
  int                        bits{ 16 };
  int                        shift{ 0 };
  std::vector<std::uint64_t> prefixes{ 0 };

  std::string
  GetName() const override
  {
    return "ordinals";
  }
  std::string
  GetKey() const override;
  void
  Validate(const Coordinates & image) const override;
  std::size_t
  GetSummaryBytes(const Box & box, const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  MergeSummary(ChunkState & total, const ChunkState & summary) const override;
};

} // namespace chunkwise

#endif
