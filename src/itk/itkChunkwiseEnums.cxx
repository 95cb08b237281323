/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseEnums.h"

namespace itk
{

std::ostream &
operator<<(std::ostream & os, ChunkwiseEnums::Backend value)
{
  switch (value)
  {
    case ChunkwiseEnums::Backend::Auto:
      return os << "itk::ChunkwiseEnums::Backend::Auto";
    case ChunkwiseEnums::Backend::CPU:
      return os << "itk::ChunkwiseEnums::Backend::CPU";
    case ChunkwiseEnums::Backend::CUDA:
      return os << "itk::ChunkwiseEnums::Backend::CUDA";
  }
  return os << "INVALID VALUE FOR itk::ChunkwiseEnums::Backend";
}

std::ostream &
operator<<(std::ostream & os, ChunkwiseEnums::BoundaryCondition value)
{
  switch (value)
  {
    case ChunkwiseEnums::BoundaryCondition::Renormalized:
      return os << "itk::ChunkwiseEnums::BoundaryCondition::Renormalized";
    case ChunkwiseEnums::BoundaryCondition::ZeroFluxNeumann:
      return os << "itk::ChunkwiseEnums::BoundaryCondition::ZeroFluxNeumann";
    case ChunkwiseEnums::BoundaryCondition::Constant:
      return os << "itk::ChunkwiseEnums::BoundaryCondition::Constant";
    case ChunkwiseEnums::BoundaryCondition::Mirror:
      return os << "itk::ChunkwiseEnums::BoundaryCondition::Mirror";
    case ChunkwiseEnums::BoundaryCondition::Periodic:
      return os << "itk::ChunkwiseEnums::BoundaryCondition::Periodic";
    case ChunkwiseEnums::BoundaryCondition::MirrorCenter:
      return os << "itk::ChunkwiseEnums::BoundaryCondition::MirrorCenter";
  }
  return os << "INVALID VALUE FOR itk::ChunkwiseEnums::BoundaryCondition";
}

std::ostream &
operator<<(std::ostream & os, ChunkwiseEnums::GaussianKernel value)
{
  switch (value)
  {
    case ChunkwiseEnums::GaussianKernel::Sampled:
      return os << "itk::ChunkwiseEnums::GaussianKernel::Sampled";
    case ChunkwiseEnums::GaussianKernel::Discrete:
      return os << "itk::ChunkwiseEnums::GaussianKernel::Discrete";
  }
  return os << "INVALID VALUE FOR itk::ChunkwiseEnums::GaussianKernel";
}

const char *
GetChunkwiseWord(ChunkwiseEnums::BoundaryCondition value)
{
  switch (value)
  {
    case ChunkwiseEnums::BoundaryCondition::Renormalized:
      return "renormalized";
    case ChunkwiseEnums::BoundaryCondition::ZeroFluxNeumann:
      return "zero-flux";
    case ChunkwiseEnums::BoundaryCondition::Constant:
      return "constant";
    case ChunkwiseEnums::BoundaryCondition::Mirror:
      return "mirror";
    case ChunkwiseEnums::BoundaryCondition::Periodic:
      return "periodic";
    case ChunkwiseEnums::BoundaryCondition::MirrorCenter:
      return "mirror-center";
  }
  // The table refuses it.
  return "";
}

} // namespace itk
