/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseMaskedOperation_h
#define chunkwiseMaskedOperation_h

#include "chunkwiseCompositeOperation.h"

namespace chunkwise
{

/** An operation for which NaN is missing, on the voxels inside a mask alone. Kernel "masked", which begins with
 * "masked.inside.voxels" (voxel, mask -> the voxel where the mask is not 0, else NaN) and ends with
 * "masked.kept.voxels" (result, mask, voxel -> output).
 *
 * The operation sees the voxels as float (float, 8- and 16-bit integers) or double. The output has its result at voxels
 * inside, and at those outside their own value, or `outsideValue`. A mask of ones changes no bit of an image without
 * NaN. */
class Chunkwise_EXPORT MaskedOperation : public CompositeOperation
{
public:
  /** DiffusionOperation with skipsNan, or BilateralOperation. */
  std::shared_ptr<const Operation> inside;
  bool                             keepsOutside{ true };
  PixelValue                       outsideValue{ 0.0 };

  std::string
  GetName() const override
  {
    return "masked";
  }
  std::string
  GetKey() const override
  {
    return CompositeOperation::GetKey() + (keepsOutside ? " kept" : " " + ExactText(outsideValue));
  }
  int
  GetNumberOfInputs() const override
  {
    return 2;
  }
  std::vector<Stage>
  GetStages() const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
};

} // namespace chunkwise

#endif
