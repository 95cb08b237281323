/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWholeSummary_h
#define chunkwiseWholeSummary_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

/** An operation without an output: the summary of a region that is one chunk is the total as it is. */
class WholeSummary
{
public:
  virtual ~WholeSummary() = default;
  /** False: summaries do not add up, so a region is one chunk (RoundChunk), which is never cut. */
  virtual bool
  MayBeCut() const
  {
    return false;
  }
  /** Memory that the summary takes the place of, so that repeated runs need not allocate it; empty: there is none. */
  virtual SideData
  TakeMemory() const
  {
    return {};
  }
};

} // namespace chunkwise

#endif
