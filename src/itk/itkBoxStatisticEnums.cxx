/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkBoxStatisticEnums.h"

namespace itk
{

std::ostream &
operator<<(std::ostream & os, BoxStatisticEnums::Statistic value)
{
  switch (value)
  {
    case BoxStatisticEnums::Statistic::Sum:
      return os << "itk::BoxStatisticEnums::Statistic::Sum";
    case BoxStatisticEnums::Statistic::Mean:
      return os << "itk::BoxStatisticEnums::Statistic::Mean";
    case BoxStatisticEnums::Statistic::Variance:
      return os << "itk::BoxStatisticEnums::Statistic::Variance";
    case BoxStatisticEnums::Statistic::StandardDeviation:
      return os << "itk::BoxStatisticEnums::Statistic::StandardDeviation";
  }
  return os << "INVALID VALUE FOR itk::BoxStatisticEnums::Statistic";
}

} // namespace itk
