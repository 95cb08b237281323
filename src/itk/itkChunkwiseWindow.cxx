/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseWindow.h"

#include <cmath>
#include <ostream>

namespace itk
{

void
SetChunkwiseWindowParameters(chunkwise::FilterParameters & parameters, ChunkwiseEnums::BoundaryCondition boundary,
                             double constant, const std::vector<unsigned int> & axes, bool ignoreNaN, bool outputMask,
                             double emptyValue)
{
  parameters.Set("BoundaryCondition", GetChunkwiseWord(boundary));
  parameters.Set("Constant", chunkwise::PixelValue(constant));
  parameters.Set("SpatialAxes", std::vector<std::int64_t>(axes.begin(), axes.end()));
  if (ignoreNaN)
  {
    parameters.Set("IgnoreNaN", true);
  }
  if (outputMask)
  {
    parameters.Set("OutputMask", true);
  }
  if (!std::isnan(emptyValue))
  {
    parameters.Set("EmptyValue", chunkwise::PixelValue(emptyValue));
  }
}

void
SetChunkwiseBoundaries(chunkwise::FilterParameters &                          parameters,
                       const std::vector<ChunkwiseEnums::BoundaryCondition> & boundaries)
{
  std::string words;
  for (const ChunkwiseEnums::BoundaryCondition boundary : boundaries)
  {
    words += (words.empty() ? "" : ",") + std::string(GetChunkwiseWord(boundary));
  }
  parameters.Set("BoundaryCondition", words);
}

void
PrintChunkwiseWindow(std::ostream & os, Indent indent, ChunkwiseEnums::BoundaryCondition boundary, double constant,
                     const std::vector<unsigned int> & axes, bool ignoreNaN, bool outputMask, double emptyValue)
{
  os << indent << "BoundaryCondition: " << boundary << std::endl;
  os << indent << "Constant: " << constant << std::endl;
  os << indent << "SpatialAxes:";
  for (const unsigned int axis : axes)
  {
    os << ' ' << axis;
  }
  os << std::endl;
  os << indent << "IgnoreNaN: " << (ignoreNaN ? "On" : "Off") << std::endl;
  os << indent << "OutputMask: " << (outputMask ? "On" : "Off") << std::endl;
  os << indent << "EmptyValue: " << emptyValue << std::endl;
}

} // namespace itk
