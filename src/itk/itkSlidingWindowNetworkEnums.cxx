/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkSlidingWindowNetworkEnums.h"

namespace itk
{

std::ostream &
operator<<(std::ostream & os, SlidingWindowNetworkEnums::OutputMode value)
{
  switch (value)
  {
    case SlidingWindowNetworkEnums::OutputMode::Channel:
      return os << "itk::SlidingWindowNetworkEnums::OutputMode::Channel";
    case SlidingWindowNetworkEnums::OutputMode::ArgMax:
      return os << "itk::SlidingWindowNetworkEnums::OutputMode::ArgMax";
    case SlidingWindowNetworkEnums::OutputMode::Threshold:
      return os << "itk::SlidingWindowNetworkEnums::OutputMode::Threshold";
  }
  return os << "INVALID VALUE FOR itk::SlidingWindowNetworkEnums::OutputMode";
}

} // namespace itk
