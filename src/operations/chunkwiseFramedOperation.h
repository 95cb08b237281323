/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFramedOperation_h
#define chunkwiseFramedOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

/** An operation over windows whose boundary condition differs from axis to axis, or whose centers lie beside the voxels
 * of the result. Kernel "framed".
 *
 * The image is continued beyond its edge along every axis that windows extend along, by as many voxels as they reach:
 * along axis 0 first, then what that gives along axis 1, and so on. The result is that of the inner operation over this
 * larger image, whose index 0 is the first voxel of the frame. Only chunks with their surroundings are ever made, by
 * the backend's kernel "rearrange". */
class Chunkwise_EXPORT FramedOperation : public Operation
{
public:
  /** Independent, and of its inputs alone (WindowedOperation::IsOfImageAlone); its own boundary condition is never met.
   * All inputs have a frame. */
  std::shared_ptr<const Operation> inner;
  /** Along each axis: any but Renormalized. */
  BoundaryMode modes[MaxDimension]{};
  PixelValue   constant{ 0.0 };
  /** The result at a voxel is that of the window whose center lies so many voxels above it, no farther than windows
   * reach. */
  Coordinates shift{};
  /** The constant of a second input, such as a mask. */
  PixelValue secondConstant{ 0.0 };
  /** The inner operation's second input is no image of the caller: bytes that are 1 inside the image and 0 in its
   * frame.
   */
  bool marksImage{ false };

  std::string
  GetName() const override
  {
    return "framed";
  }
  std::string
  GetKey() const override;
  int
  GetNumberOfInputs() const override
  {
    return inner->GetNumberOfInputs() - (marksImage ? 1 : 0);
  }
  Halo
  GetHalo(const Coordinates & image) const override;
  bool
  WrapsAround() const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
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

  /** The widths of the frame below and above the image: those of the inner operation's halo, shifted. */
  Halo
  GetFrame(const Coordinates & image) const;
  /** The extent of the image with its frame. */
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
