/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCompositeOperation_h
#define chunkwiseCompositeOperation_h

#include "chunkwiseOperations.h"
#include "chunkwiseStagedOperation.h"

namespace chunkwise
{

/** An operation whose stages run one after the other on each chunk: what is between them never leaves the device.
 *
 * The result has the bits that the stages give when each is run over the whole image. Every backend has the same kernel
 * for all of them (RegisterCompositeKernels), which finds the stages' kernels in the registry of the call. The stages
 * have schedule Independent. */
class Chunkwise_EXPORT CompositeOperation : public StagedOperation
{
protected:
  std::string
  GetObjection(const Operation & stage) const override;
};

/** Base of composites whose stages see one box: (2 radius[a] + 1) voxels per axis, see BoxOperation. */
class Chunkwise_EXPORT BoxCompositeOperation : public CompositeOperation
{
public:
  Coordinates    radius{};
  WindowBoundary boundary{};
  /** Run in the place of the first stages, in their order, over windows that are no box around their voxel; empty: the
   * stages see the box. */
  std::vector<std::shared_ptr<const Operation>> windows;

  /** T to T, T to float, T to double. */
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;

protected:
  /** An operation over the box. */
  template <typename TOperation>
  std::shared_ptr<TOperation>
  MakeBoxOperation() const
  {
    auto operation = std::make_shared<TOperation>();
    operation->radius = radius;
    operation->boundary = boundary;
    return operation;
  }
  /** The stages over the box, with `windows` in place of the first ones. */
  std::vector<Stage>
  WithWindows(std::vector<Stage> stages) const;
};

/** The kernel of all composites, of every backend. */
Chunkwise_EXPORT Kernel
MakeCompositeKernel();
/** Registers the kernels of all composites; the kernels of their stages are the backend's own. */
Chunkwise_EXPORT void
RegisterCompositeKernels(KernelRegistry & registry);

} // namespace chunkwise

#endif
