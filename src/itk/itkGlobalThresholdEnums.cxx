/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkGlobalThresholdEnums.h"

namespace itk
{

std::ostream &
operator<<(std::ostream & os, GlobalThresholdEnums::Method value)
{
  constexpr const char * names[] = { "Otsu",         "Li",      "Yen",      "Triangle",
                                     "IsoData",      "Moments", "Huang",    "MaximumEntropy",
                                     "RenyiEntropy", "Kittler", "Shanbhag", "MultiOtsu",
                                     "Fixed" };
  if (value > GlobalThresholdEnums::Method::Fixed)
  {
    return os << "INVALID VALUE FOR itk::GlobalThresholdEnums::Method";
  }
  return os << "itk::GlobalThresholdEnums::Method::" << names[static_cast<int>(value)];
}

} // namespace itk
