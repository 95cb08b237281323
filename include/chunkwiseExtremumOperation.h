/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseExtremumOperation_h
#define chunkwiseExtremumOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

/** The maximum or minimum over a box: dilation or erosion with a flat box. Kernel "extremum".
 *
 * The result is one of the voxels of the window, so that it is exact on every backend and in whatever order the window
 * is seen (chunkwiseOrderedKey.h). -0 is less than +0. NaN are not seen; a window of nothing but NaN gives NaN. In
 * Constant mode the constant is converted to the input's kind and takes part. The output is the voxel, converted. */
class Chunkwise_EXPORT ExtremumOperation : public BoxOperation
{
public:
  bool minimum{ false };

  std::string
  GetName() const override
  {
    return "extremum";
  }
  std::string
  GetKey() const override
  {
    return BoxOperation::GetKey() + (minimum ? " minimum" : " maximum");
  }
};

} // namespace chunkwise

#endif
