/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkLocalThresholdEnums.h"

namespace itk
{

std::ostream &
operator<<(std::ostream & os, LocalThresholdEnums::Method value)
{
  constexpr const char * names[] = { "Mean", "Median", "Gaussian", "Niblack", "Sauvola", "Phansalkar", "Bernsen" };
  if (value > LocalThresholdEnums::Method::Bernsen)
  {
    return os << "INVALID VALUE FOR itk::LocalThresholdEnums::Method";
  }
  return os << "itk::LocalThresholdEnums::Method::" << names[static_cast<int>(value)];
}

std::ostream &
operator<<(std::ostream & os, LocalThresholdEnums::Result value)
{
  constexpr const char * names[] = { "Class", "Threshold" };
  if (value > LocalThresholdEnums::Result::Threshold)
  {
    return os << "INVALID VALUE FOR itk::LocalThresholdEnums::Result";
  }
  return os << "itk::LocalThresholdEnums::Result::" << names[static_cast<int>(value)];
}

} // namespace itk
