/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseMaskCountOperation_h
#define chunkwiseMaskCountOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

/** The sum over a box of an image of 0 and 1: how many voxels of a mask it has. Kernel "mean", whose accumulators need
 * hold no more than the number of a window's voxels. */
class MaskCountOperation : public MeanOperation
{
public:
  explicit MaskCountOperation(const MeanOperation & box)
    : MeanOperation(box)
  {
    sums = true;
  }
};

} // namespace chunkwise

#endif
