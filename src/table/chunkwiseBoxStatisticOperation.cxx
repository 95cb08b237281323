/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBoxStatisticOperation.h"

#include "chunkwiseError.h"

#include <algorithm>

namespace chunkwise
{

const char *
BoxStatisticName(BoxStatistic statistic)
{
  switch (statistic)
  {
    case BoxStatistic::Sum:
      return "sum";
    case BoxStatistic::Mean:
      return "mean";
    case BoxStatistic::Variance:
      return "variance";
    default:
      return "standard deviation";
  }
}

std::string
BoxStatisticOperation::GetKey() const
{
  return BoxOperation::GetKey() + " " + BoxStatisticName(statistic) + (variable ? " variable" : "") +
         (anchored ? " anchored" : "");
}

std::int64_t
BoxStatisticOperation::BlockLength(int a, const Coordinates & image) const
{
  int parts = 0;
  int last = 0;
  for (int b = 0; b < MaxDimension; ++b)
  {
    const bool takesPart = EffectiveRadius(b, image[b]) > 0;
    parts += takesPart ? 1 : 0;
    last = takesPart ? b : last;
  }
  const bool         isThird = parts == MaxSpatialAxes && a == last;
  const std::int64_t longest = 2 * EffectiveRadius(a, image[a]) + 1;
  std::int64_t       length = a == 0 ? LeastBlockColumns : isThird ? LeastThirdLength : LeastBlockLength;
  while (length < longest)
  {
    length *= 2;
  }
  return length;
}

std::int64_t
BoxStatisticOperation::LargestBox(const Coordinates & image) const
{
  std::int64_t voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxels *= std::min(2 * EffectiveRadius(a, image[a]) + 1, image[a]);
  }
  return voxels;
}

Halo
BoxStatisticOperation::GetHalo(const Coordinates & image) const
{
  Halo halo = BoxOperation::GetHalo(image);
  for (int a = 0; a < MaxDimension && anchored; ++a)
  {
    halo.lower[a] += halo.lower[a] > 0 ? BlockLength(a, image) - 1 : 0;
  }
  return halo;
}

void
BoxStatisticOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  const std::string name = std::string("a box's ") + BoxStatisticName(statistic);
  CheckExactOutput(name, inputs.at(0), output);
  if (!anchored && !SumsAreExact(inputs[0], TakesSquares()))
  {
    throw ParameterError(name + " of " + PixelTypeName(inputs[0]) + " needs tables that are anchored to the image");
  }
  if (variable && IsFloatingPoint(inputs.at(1)))
  {
    throw ParameterError(std::string("RadiusImage: it has pixels of ") + PixelTypeName(inputs[1]) +
                         "; they must be integers");
  }
}

void
BoxStatisticOperation::Validate(const Coordinates & image) const
{
  BoxOperation::Validate(image);
  CheckNumberOfAxes(image);
  if (boundary.mode != BoundaryMode::Renormalized)
  {
    throw ParameterError(std::string("BoundaryCondition: it is ") + BoundaryModeName(boundary.mode) +
                         "; that of a box's statistic must be " + BoundaryModeName(BoundaryMode::Renormalized));
  }
}

} // namespace chunkwise
