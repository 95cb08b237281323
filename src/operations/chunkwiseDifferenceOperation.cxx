/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDifferenceOperation.h"

#include "chunkwiseError.h"

namespace chunkwise
{

void
DifferenceOperation::CheckKinds(const std::vector<PixelKind> & inputs, PixelKind output) const
{
  if (inputs.at(0) != inputs.at(1))
  {
    throw ParameterError(std::string("a difference of ") + PixelKindName(inputs[0]) + " and " +
                         PixelKindName(inputs[1]) + ": both inputs must have the same kind");
  }
  CheckExactOutput(GetName(), inputs[0], output);
}

} // namespace chunkwise
