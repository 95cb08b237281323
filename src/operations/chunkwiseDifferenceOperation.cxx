/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDifferenceOperation.h"

#include "chunkwiseError.h"

namespace chunkwise
{

void
DifferenceOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  if (inputs.at(0) != inputs.at(1))
  {
    throw ParameterError(std::string("a difference of ") + PixelTypeName(inputs[0]) + " and " +
                         PixelTypeName(inputs[1]) + ": both inputs must have the same kind");
  }
  CheckExactOutput(GetName(), inputs[0], output);
}

} // namespace chunkwise
