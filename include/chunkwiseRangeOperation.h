/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRangeOperation_h
#define chunkwiseRangeOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

/** The maximum minus the minimum over a box: the morphological gradient. Kernel "range".
 *
 * The extrema are those of ExtremumOperation, the difference that of DifferenceOperation: exact for integers, clamped
 * where the output cannot hold it. A window of nothing but NaN gives NaN. */
class Chunkwise_EXPORT RangeOperation : public BoxOperation
{
public:
  std::string
  GetName() const override
  {
    return "range";
  }
};

/** A kernel of a backend that runs the same backend's kernels "extremum" and "difference". */
Chunkwise_EXPORT std::size_t
RangeScratchBytes(const KernelRegistry & kernels, const Operation & operation, const ChunkShape & shape);
Chunkwise_EXPORT double
RangeCost(const KernelRegistry & kernels, const Operation & operation, const ChunkShape & shape);
Chunkwise_EXPORT void
RunRange(const KernelRegistry & kernels, const KernelCall & call);

} // namespace chunkwise

#endif
