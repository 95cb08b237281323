/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseRankOperation.h"

#include "chunkwiseError.h"

namespace chunkwise
{

void
RankOperation::Validate(const Coordinates & image) const
{
  BoxOperation::Validate(image);
  if (!(fraction >= 0 && fraction <= 1))
  {
    throw ParameterError("Percentile: its fraction is " + std::to_string(fraction) + "; it must be from 0 to 1");
  }
  CheckNumberOfAxes(image);
}

} // namespace chunkwise
