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
    case DeconvolutionEnums::Algorithm::Wiener:
      return os << "itk::DeconvolutionEnums::Algorithm::Wiener";
    case DeconvolutionEnums::Algorithm::Tikhonov:
      return os << "itk::DeconvolutionEnums::Algorithm::Tikhonov";
    case DeconvolutionEnums::Algorithm::Inverse:
      return os << "itk::DeconvolutionEnums::Algorithm::Inverse";
  }
  return os << "INVALID VALUE FOR itk::DeconvolutionEnums::Algorithm";
}

} // namespace itk
