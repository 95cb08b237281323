/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkRenormalizedDerivativeEnums.h"

namespace itk
{

const char *
ToWord(RenormalizedDerivativeEnums::Operator value)
{
  constexpr const char * words[] = { "gaussian", "sobel", "prewitt", "scharr", "central" };
  return value > RenormalizedDerivativeEnums::Operator::Central ? "invalid" : words[static_cast<int>(value)];
}

const char *
ToWord(RenormalizedDerivativeEnums::Kernel value)
{
  constexpr const char * words[] = { "exact", "sampled" };
  return value > RenormalizedDerivativeEnums::Kernel::Sampled ? "invalid" : words[static_cast<int>(value)];
}

std::ostream &
operator<<(std::ostream & os, RenormalizedDerivativeEnums::Operator value)
{
  constexpr const char * names[] = { "Gaussian", "Sobel", "Prewitt", "Scharr", "Central" };
  if (value > RenormalizedDerivativeEnums::Operator::Central)
  {
    return os << "INVALID VALUE FOR itk::RenormalizedDerivativeEnums::Operator";
  }
  return os << "itk::RenormalizedDerivativeEnums::Operator::" << names[static_cast<int>(value)];
}

std::ostream &
operator<<(std::ostream & os, RenormalizedDerivativeEnums::Kernel value)
{
  constexpr const char * names[] = { "Exact", "Sampled" };
  if (value > RenormalizedDerivativeEnums::Kernel::Sampled)
  {
    return os << "INVALID VALUE FOR itk::RenormalizedDerivativeEnums::Kernel";
  }
  return os << "itk::RenormalizedDerivativeEnums::Kernel::" << names[static_cast<int>(value)];
}

const char *
ToWord(RenormalizedDerivativeEnums::Result value)
{
  constexpr const char * words[] = { "eigenvalues", "by-magnitude", "direction", "elements", "eigenvectors" };
  return value > RenormalizedDerivativeEnums::Result::Eigenvectors ? "invalid" : words[static_cast<int>(value)];
}

std::ostream &
operator<<(std::ostream & os, RenormalizedDerivativeEnums::Result value)
{
  constexpr const char * names[] = { "Eigenvalues", "ByMagnitude", "Direction", "Elements", "Eigenvectors" };
  if (value > RenormalizedDerivativeEnums::Result::Eigenvectors)
  {
    return os << "INVALID VALUE FOR itk::RenormalizedDerivativeEnums::Result";
  }
  return os << "itk::RenormalizedDerivativeEnums::Result::" << names[static_cast<int>(value)];
}

const char *
ToWord(RenormalizedDerivativeEnums::TensorResult value)
{
  constexpr const char * words[] = {
    "eigenvalues", "orientation", "coherence", "cornerness", "elements", "eigenvectors"
  };
  return value > RenormalizedDerivativeEnums::TensorResult::Eigenvectors ? "invalid" : words[static_cast<int>(value)];
}

std::ostream &
operator<<(std::ostream & os, RenormalizedDerivativeEnums::TensorResult value)
{
  constexpr const char * names[] = {
    "Eigenvalues", "Orientation", "Coherence", "Cornerness", "Elements", "Eigenvectors"
  };
  if (value > RenormalizedDerivativeEnums::TensorResult::Eigenvectors)
  {
    return os << "INVALID VALUE FOR itk::RenormalizedDerivativeEnums::TensorResult";
  }
  return os << "itk::RenormalizedDerivativeEnums::TensorResult::" << names[static_cast<int>(value)];
}

const char *
ToWord(RenormalizedDerivativeEnums::CurvatureResult value)
{
  constexpr const char * words[] = { "level-set", "mean", "gaussian", "smallest", "largest" };
  return value > RenormalizedDerivativeEnums::CurvatureResult::Largest ? "invalid" : words[static_cast<int>(value)];
}

std::ostream &
operator<<(std::ostream & os, RenormalizedDerivativeEnums::CurvatureResult value)
{
  constexpr const char * names[] = { "LevelSet", "Mean", "Gaussian", "Smallest", "Largest" };
  if (value > RenormalizedDerivativeEnums::CurvatureResult::Largest)
  {
    return os << "INVALID VALUE FOR itk::RenormalizedDerivativeEnums::CurvatureResult";
  }
  return os << "itk::RenormalizedDerivativeEnums::CurvatureResult::" << names[static_cast<int>(value)];
}

const char *
ToWord(RenormalizedDerivativeEnums::Measure value)
{
  constexpr const char * words[] = { "frangi", "blobness", "sheetness", "sato", "meijering", "jerman" };
  return value > RenormalizedDerivativeEnums::Measure::Jerman ? "invalid" : words[static_cast<int>(value)];
}

std::ostream &
operator<<(std::ostream & os, RenormalizedDerivativeEnums::Measure value)
{
  constexpr const char * names[] = { "Frangi", "Blobness", "Sheetness", "Sato", "Meijering", "Jerman" };
  if (value > RenormalizedDerivativeEnums::Measure::Jerman)
  {
    return os << "INVALID VALUE FOR itk::RenormalizedDerivativeEnums::Measure";
  }
  return os << "itk::RenormalizedDerivativeEnums::Measure::" << names[static_cast<int>(value)];
}

} // namespace itk
