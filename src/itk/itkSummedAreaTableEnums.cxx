/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkSummedAreaTableEnums.h"

namespace itk
{

std::ostream &
operator<<(std::ostream & os, SummedAreaTableEnums::Method value)
{
  switch (value)
  {
    case SummedAreaTableEnums::Method::SinglePass:
      return os << "itk::SummedAreaTableEnums::Method::SinglePass";
    case SummedAreaTableEnums::Method::Blocks:
      return os << "itk::SummedAreaTableEnums::Method::Blocks";
  }
  return os << "INVALID VALUE FOR itk::SummedAreaTableEnums::Method";
}

} // namespace itk
