/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkLabelBoundaryEnums.h"

namespace itk
{

std::ostream &
operator<<(std::ostream & os, LabelBoundaryEnums::Mode value)
{
  switch (value)
  {
    case LabelBoundaryEnums::Mode::Thick:
      return os << "itk::LabelBoundaryEnums::Mode::Thick";
    case LabelBoundaryEnums::Mode::Inner:
      return os << "itk::LabelBoundaryEnums::Mode::Inner";
    case LabelBoundaryEnums::Mode::Outer:
      return os << "itk::LabelBoundaryEnums::Mode::Outer";
  }
  return os << "INVALID VALUE FOR itk::LabelBoundaryEnums::Mode";
}

} // namespace itk
