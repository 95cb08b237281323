/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseMeasureScaleOperation_h
#define chunkwiseMeasureScaleOperation_h

#include "chunkwiseCompositeOperation.h"
#include "chunkwiseDerivativeOperation.h"

namespace chunkwise
{

/** One step of the search for the scale of the largest measure. Kernel "scalestep.voxels" (measure, largest measure of
 * the scales before, its scale -> output), voxel by voxel: `scale` where the measure is larger than the largest one,
 * else the scale before; without `givesScale` the larger of both measures. The first scale has no inputs but the
 * measure, which is compared with 0. */
class Chunkwise_EXPORT ScaleStepOperation : public Operation
{
public:
  double scale{ 1 };
  bool   givesScale{ true };
  bool   isFirst{ false };

  std::string
  GetName() const override
  {
    return "scalestep.voxels";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  int
  GetNumberOfInputs() const override
  {
    return isFirst ? 1 : givesScale ? 3 : 2;
  }
  /** Float or double to any kind. */
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
};

/** The scale at which a measure is the largest: the first of equal ones, and 0 where none is above 0. Kernel
 * "measurescale".
 *
 * Measures are compared in float for float, 8- and 16-bit integers, in double for the others. */
class Chunkwise_EXPORT MeasureScaleOperation : public CompositeOperation
{
public:
  /** The measure over all scales, and the number that the output has for each of them. */
  DerivativeOperation measure;
  std::vector<double> scales;

  std::string
  GetName() const override
  {
    return "measurescale";
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override
  {
    CheckSameOrFloatingOutput(GetName(), inputs.at(0), output);
  }
  std::vector<Stage>
  GetStages() const override;
};

/** The rule of ScaleStepOperation for a voxel. */
template <typename TReal>
CHUNKWISE_HOST_DEVICE TReal
ScaleStep(TReal measure, TReal largest, TReal otherwise, TReal scale)
{
  return measure > largest ? scale : otherwise;
}

} // namespace chunkwise

#endif
