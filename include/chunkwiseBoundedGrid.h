/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseBoundedGrid_h
#define chunkwiseBoundedGrid_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

/** An OutputGrid that devices can compute: plans know the memory of its chunks before they cut them. */
class Chunkwise_EXPORT BoundedGrid : public OutputGrid
{
public:
  /** An extent that no box of GetInputBox exceeds for a box of the output of this extent. */
  virtual Coordinates
  GetMostInput(const Coordinates & output, const Coordinates & image) const = 0;
};

/** The grid of an operation's output if it is bounded, else nullptr. */
inline const BoundedGrid *
GetBoundedGrid(const Operation & operation)
{
  return dynamic_cast<const BoundedGrid *>(operation.GetOutputGrid());
}

} // namespace chunkwise

#endif
