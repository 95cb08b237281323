/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFramedOperation_h
#define chunkwiseFramedOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

/** An operation over windows whose boundary condition differs from axis to axis. Kernel "framed".
 *
 * The image is continued beyond its edge along every axis that windows extend along, by as many voxels as they reach:
 * along axis 0 first, then what that gives along axis 1, and so on. The result is that of the inner operation over this
 * larger image, whose index 0 is the first voxel of the frame. Only chunks with their surroundings are ever made, by
 * the backend's kernel "rearrange". */
class Chunkwise_EXPORT FramedOperation : public Operation
{
public:
  /** Independent, with one input, and of the image alone (WindowedOperation::IsOfImageAlone); its own boundary
   * condition is never met. */
  std::shared_ptr<const Operation> inner;
  /** Along each axis: any but Renormalized. */
  BoundaryMode modes[MaxDimension]{};
  PixelValue   constant{ 0.0 };

  std::string
  GetName() const override
  {
    return "framed";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  bool
  WrapsAround() const override;
  void
  CheckKinds(const std::vector<PixelKind> & inputs, PixelKind output) const override
  {
    inner->CheckKinds(inputs, output);
  }
  void
  Validate(const Coordinates & image) const override;
  Coordinates
  RoundChunk(const Coordinates & extent) const override
  {
    return inner->RoundChunk(extent);
  }
  std::string
  GetObjectionToDevices() const override
  {
    return inner->GetObjectionToDevices();
  }

  /** The extent of the image with its frame, which is as wide as the inner operation's halo. */
  Coordinates
  GetFramed(const Coordinates & image) const;
};

/** An operation with these boundary conditions along each axis: a FramedOperation, or a sequence of them. nullptr if
 * the operation cannot have several. */
Chunkwise_EXPORT std::shared_ptr<const Operation>
MakeFramed(const std::shared_ptr<const Operation> & operation, const BoundaryMode (&modes)[MaxDimension],
           const PixelValue &                       constant);

/** Every backend has the same kernel. */
Chunkwise_EXPORT void
RegisterFramedKernel(KernelRegistry & registry);

} // namespace chunkwise

#endif
