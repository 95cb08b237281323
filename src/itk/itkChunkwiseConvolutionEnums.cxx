/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseConvolutionEnums.h"

namespace itk
{

std::ostream &
operator<<(std::ostream & os, ChunkwiseConvolutionEnums::Method value)
{
  switch (value)
  {
    case ChunkwiseConvolutionEnums::Method::Auto:
      return os << "itk::ChunkwiseConvolutionEnums::Method::Auto";
    case ChunkwiseConvolutionEnums::Method::FFT:
      return os << "itk::ChunkwiseConvolutionEnums::Method::FFT";
    case ChunkwiseConvolutionEnums::Method::Direct:
      return os << "itk::ChunkwiseConvolutionEnums::Method::Direct";
  }
  return os << "INVALID VALUE FOR itk::ChunkwiseConvolutionEnums::Method";
}

std::ostream &
operator<<(std::ostream & os, ChunkwiseConvolutionEnums::TransformProvider value)
{
  switch (value)
  {
    case ChunkwiseConvolutionEnums::TransformProvider::Auto:
      return os << "itk::ChunkwiseConvolutionEnums::TransformProvider::Auto";
    case ChunkwiseConvolutionEnums::TransformProvider::Own:
      return os << "itk::ChunkwiseConvolutionEnums::TransformProvider::Own";
    case ChunkwiseConvolutionEnums::TransformProvider::CuFFT:
      return os << "itk::ChunkwiseConvolutionEnums::TransformProvider::CuFFT";
    case ChunkwiseConvolutionEnums::TransformProvider::FFTW:
      return os << "itk::ChunkwiseConvolutionEnums::TransformProvider::FFTW";
  }
  return os << "INVALID VALUE FOR itk::ChunkwiseConvolutionEnums::TransformProvider";
}

std::ostream &
operator<<(std::ostream & os, ChunkwiseConvolutionEnums::Order value)
{
  switch (value)
  {
    case ChunkwiseConvolutionEnums::Order::ConvolveThenWeight:
      return os << "itk::ChunkwiseConvolutionEnums::Order::ConvolveThenWeight";
    case ChunkwiseConvolutionEnums::Order::WeightThenConvolve:
      return os << "itk::ChunkwiseConvolutionEnums::Order::WeightThenConvolve";
  }
  return os << "INVALID VALUE FOR itk::ChunkwiseConvolutionEnums::Order";
}

std::ostream &
operator<<(std::ostream & os, ChunkwiseConvolutionEnums::OutputRegion value)
{
  switch (value)
  {
    case ChunkwiseConvolutionEnums::OutputRegion::SAME:
      return os << "itk::ChunkwiseConvolutionEnums::OutputRegion::SAME";
    case ChunkwiseConvolutionEnums::OutputRegion::VALID:
      return os << "itk::ChunkwiseConvolutionEnums::OutputRegion::VALID";
  }
  return os << "INVALID VALUE FOR itk::ChunkwiseConvolutionEnums::OutputRegion";
}

} // namespace itk
