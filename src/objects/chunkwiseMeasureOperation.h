/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseMeasureOperation_h
#define chunkwiseMeasureOperation_h

#include "chunkwiseMeasureLayout.h"
#include "chunkwiseStatisticsOperation.h"

#include <limits>

namespace chunkwise
{

/** Measurements of the labels firstLabel, firstLabel + 1, ... of an image: kernel `summarize` of "measure". The summary
 * has a row (MeasureLayout) for each of them, all zeros if it has no voxel. Labels are bits extended to 64.
 *
 * Rows have as many digits as any intensity needs, and carries are passed on: so a summary has the same bits whoever
 * made it. Labels that touch are not counted (MeasurementSettings::contacts). */
class Chunkwise_EXPORT MeasureOperation : public SummaryOperation
{
public:
  MeasurementSettings settings;
  std::uint64_t       firstLabel{ 1 };
  std::int64_t        rows{ 1 };

  std::string
  GetName() const override
  {
    return "measure";
  }
  std::string
  GetKey() const override;
  int
  GetNumberOfInputs() const override
  {
    return settings.hasIntensity ? 2 : 1;
  }
  /** Labels that touch are compared by the later one. */
  Halo
  GetHalo(const Coordinates & image) const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  std::size_t
  GetSummaryBytes(const Box & box, const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  MergeSummary(ChunkState & total, const ChunkState & summary) const override;

  MeasureLayout
  GetLayout() const;

  /** Why these cannot be measured in this way; empty: they can. */
  static std::string
  GetObjectionTo(const MeasurementSettings & settings);
};

/** The CPU's kernel. */
void
RegisterHostMeasure(KernelRegistry & registry);

} // namespace chunkwise

#endif
