/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkEuclideanDistanceEnums.h"

namespace itk
{

const char *
ToWord(EuclideanDistanceEnums::Features value)
{
  constexpr const char * words[] = { "background", "objects", "contour", "others" };
  return words[static_cast<int>(value)];
}

const char *
ToWord(EuclideanDistanceEnums::Morphology value)
{
  constexpr const char * words[] = { "dilation", "erosion", "opening", "closing" };
  return words[static_cast<int>(value)];
}

std::ostream &
operator<<(std::ostream & out, EuclideanDistanceEnums::Features value)
{
  return out << "itk::EuclideanDistanceEnums::Features::" << ToWord(value);
}

std::ostream &
operator<<(std::ostream & out, EuclideanDistanceEnums::Morphology value)
{
  return out << "itk::EuclideanDistanceEnums::Morphology::" << ToWord(value);
}

} // namespace itk
