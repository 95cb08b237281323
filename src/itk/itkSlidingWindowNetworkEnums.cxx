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

std::ostream &
operator<<(std::ostream & os, SlidingWindowNetworkEnums::Precision value)
{
  switch (value)
  {
    case SlidingWindowNetworkEnums::Precision::Float32:
      return os << "itk::SlidingWindowNetworkEnums::Precision::Float32";
    case SlidingWindowNetworkEnums::Precision::Reproducible:
      return os << "itk::SlidingWindowNetworkEnums::Precision::Reproducible";
    case SlidingWindowNetworkEnums::Precision::TensorFloat32:
      return os << "itk::SlidingWindowNetworkEnums::Precision::TensorFloat32";
    case SlidingWindowNetworkEnums::Precision::Half:
      return os << "itk::SlidingWindowNetworkEnums::Precision::Half";
  }
  return os << "INVALID VALUE FOR itk::SlidingWindowNetworkEnums::Precision";
}

std::ostream &
operator<<(std::ostream & os, SlidingWindowNetworkEnums::InferenceMode value)
{
  switch (value)
  {
    case SlidingWindowNetworkEnums::InferenceMode::Dense:
      return os << "itk::SlidingWindowNetworkEnums::InferenceMode::Dense";
    case SlidingWindowNetworkEnums::InferenceMode::Patches:
      return os << "itk::SlidingWindowNetworkEnums::InferenceMode::Patches";
  }
  return os << "INVALID VALUE FOR itk::SlidingWindowNetworkEnums::InferenceMode";
}

std::ostream &
operator<<(std::ostream & os, SlidingWindowNetworkEnums::PatchWeighting value)
{
  switch (value)
  {
    case SlidingWindowNetworkEnums::PatchWeighting::Constant:
      return os << "itk::SlidingWindowNetworkEnums::PatchWeighting::Constant";
    case SlidingWindowNetworkEnums::PatchWeighting::Gaussian:
      return os << "itk::SlidingWindowNetworkEnums::PatchWeighting::Gaussian";
  }
  return os << "INVALID VALUE FOR itk::SlidingWindowNetworkEnums::PatchWeighting";
}

} // namespace itk
