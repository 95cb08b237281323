/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseStagedOperation_h
#define chunkwiseStagedOperation_h

#include "chunkwiseOperation.h"

#include <vector>

namespace chunkwise
{

/** The kind of voxel that a stage gives. */
enum class StageKind
{
  Output, ///< that of the whole operation's output
  Input,  ///< that of its first input
  Real,   ///< what real numbers of the first input's kind are kept in: float for float, 8- and 16-bit integers, else
          ///< double
  Fixed   ///< the kind that the stage names
};

/** One step of an operation that is made of others. */
struct Stage
{
  /** Input `i` of the whole operation, as an entry of `inputs`. */
  static constexpr int
  Input(int i = 0)
  {
    return -1 - i;
  }

  /** nullptr: the whole operation itself, voxel by voxel, by the kernel that `voxelKernel` names. */
  std::shared_ptr<const Operation> operation;
  /** The sources of the inputs: Input(i), or the number of an earlier stage. */
  std::vector<int> inputs{ Input() };
  StageKind        kind{ StageKind::Output };
  std::string      voxelKernel{};
  PixelType        fixed{ PixelType::UInt8 };
  /** So many inputs are seen through windows; the operation reads the others at the output's voxel alone. */
  std::size_t seenThroughWindows{ MaxInputs };
};

/** An operation that is made of others, its stages. Its properties follow from those of its stages. */
class Chunkwise_EXPORT StagedOperation : public Operation
{
public:
  /** In the order to run; the last one gives the result, and each of the others is read by a later one. */
  virtual std::vector<Stage>
  GetStages() const = 0;

  const StagedOperation *
  AsStaged() const override
  {
    return this;
  }
  /** The objection of the first stage that has one. */
  std::string
  GetObjectionToDevices() const override;
  /** The name, with the keys of the stages. */
  std::string
  GetKey() const override;
  /** How far the result reaches through all stages. If the windows of a stage wrap around the result of another stage,
   * the halo is the whole axis. */
  Halo
  GetHalo(const Coordinates & image) const override;
  /** The tiles of the stages that have some. If the tiles of two stages differ, the halo holds one of them. */
  Coordinates
  GetTile(const Coordinates & image) const override;
  /** True if only stages wrap around that read the operation's inputs, and all that read these do. */
  bool
  WrapsAround() const override;
  /** Checks the kinds of each stage in turn. */
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & image) const override;

  /** The box that each stage computes for an output box. Nothing is beyond the image's edge, where each stage's own
   * boundary counts. */
  std::vector<Box>
  GetStageBoxes(const Box & output, const Box & image) const;
  /** The kinds of what the stages give. */
  std::vector<PixelType>
  GetStageKinds(PixelType input, PixelType output) const;
  /** For each stage the last one that reads what it gives; for the last stage its own number. */
  std::vector<std::size_t>
  GetLastReaders() const;

protected:
  /** Why an operation cannot be a stage, as the end of a sentence about it; empty if it can. */
  virtual std::string
  GetObjection(const Operation & stage) const = 0;
};

} // namespace chunkwise

#endif
