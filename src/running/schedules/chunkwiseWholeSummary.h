/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWholeSummary_h
#define chunkwiseWholeSummary_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

/** An operation without an output whose summaries do not add up: a region is one chunk (RoundChunk), which is never
 * cut, and its summary is the total. */
class WholeSummary
{
public:
  virtual ~WholeSummary() = default;
  /** Memory that the summary takes the place of, so that repeated runs need not allocate it; empty: there is none. */
  virtual SideData
  TakeMemory() const
  {
    return {};
  }
};

} // namespace chunkwise

#endif
