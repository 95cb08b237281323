/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwisePassesOperation_h
#define chunkwisePassesOperation_h

#include "chunkwiseReconstructionOperation.h"
#include "chunkwiseStagedOperation.h"

namespace chunkwise
{

/** Several runs over the whole region, one after the other: for stages of which one needs the whole result of another.
 *
 * No backend has a kernel for it: the manager runs each stage as a separate run. Images between stages are in memory of
 * the host, count in the host's budget, and are given back once no later stage reads them. The region must hold the
 * whole of each axis along which a stage has schedule Fixpoint. */
class Chunkwise_EXPORT PassesOperation : public StagedOperation
{
public:
  /** For messages and keys. */
  std::string        name{ "passes" };
  std::vector<Stage> stages;
  int                numberOfInputs{ 1 };

  std::string
  GetName() const override
  {
    return name;
  }
  Schedule
  GetSchedule() const override
  {
    return Schedule::Passes;
  }
  int
  GetNumberOfInputs() const override
  {
    return numberOfInputs;
  }
  std::vector<Stage>
  GetStages() const override
  {
    return stages;
  }
  /** The runner of the last stage. */
  const OutOfCoreRunner *
  GetOutOfCoreRunner() const override;
  /** Each run loads what its windows wrap around to from the whole axis. */
  bool
  WrapsAround() const override
  {
    return false;
  }

protected:
  std::string
  GetObjection(const Operation & stage) const override;
};

/** Opening by reconstruction if `extremum` is an erosion; closing if it is a dilation and `reconstruction.erosion` is
 * set. The image is the mask. `preservesIntensities`: what is kept has its own values again, reconstructed from those
 * of the image where the first reconstruction did not change the marker. Markers and results of `reconstruction` are
 * not used.
 */
Chunkwise_EXPORT std::shared_ptr<PassesOperation>
MakeReconstructionOfExtremum(std::shared_ptr<const Operation> extremum, const ReconstructionOperation & reconstruction,
                             bool preservesIntensities);

} // namespace chunkwise

#endif
