/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkDeconvolutionEnums.h"

namespace itk
{

std::ostream &
operator<<(std::ostream & os, DeconvolutionEnums::Algorithm value)
{
  switch (value)
  {
    case DeconvolutionEnums::Algorithm::RichardsonLucy:
      return os << "itk::DeconvolutionEnums::Algorithm::RichardsonLucy";
    case DeconvolutionEnums::Algorithm::Landweber:
      return os << "itk::DeconvolutionEnums::Algorithm::Landweber";
    case DeconvolutionEnums::Algorithm::ProjectedLandweber:
      return os << "itk::DeconvolutionEnums::Algorithm::ProjectedLandweber";
  }
  return os << "INVALID VALUE FOR itk::DeconvolutionEnums::Algorithm";
}

} // namespace itk
