/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkConnectedComponentLabelEnums.h"

namespace itk
{

std::ostream &
operator<<(std::ostream & os, ConnectedComponentLabelEnums::Rule value)
{
  switch (value)
  {
    case ConnectedComponentLabelEnums::Rule::Foreground:
      return os << "itk::ConnectedComponentLabelEnums::Rule::Foreground";
    case ConnectedComponentLabelEnums::Rule::Equal:
      return os << "itk::ConnectedComponentLabelEnums::Rule::Equal";
    case ConnectedComponentLabelEnums::Rule::Within:
      return os << "itk::ConnectedComponentLabelEnums::Rule::Within";
  }
  return os << "INVALID VALUE FOR itk::ConnectedComponentLabelEnums::Rule";
}

} // namespace itk
