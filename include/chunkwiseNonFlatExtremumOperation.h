/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNonFlatExtremumOperation_h
#define chunkwiseNonFlatExtremumOperation_h

#include "chunkwiseCompositeOperation.h"

namespace chunkwise
{

/** A structuring function: how far it lies above its apex at an offset o from it, with s the sum of (o_a / R_a)^2 over
 * the semi-axes R_a and H its height. */
enum class StructuringShape
{
  Ball,      ///< H (1 - sqrt(1 - s)) where s is at most 1
  Paraboloid ///< H s / 2, which has the curvature of the ball at the apex, where each offset is at most R_a
};

/** An erosion or a dilation with a structuring function. Kernel "nonflatextremum".
 *
 * Erosion: the least f(p + o) + h(o) over the offsets o that h has and that lie in the image. Dilation: the largest f(p
 * + o) - h(o). NaN counts as if it were not in the image; where nothing is, the result is infinite.
 *
 * Heights are computed in double and rounded to float for float, 8- and 16-bit integers, for which sums are computed in
 * float, else in double. Integer results are rounded to nearest, ties to even, and clamped. */
class Chunkwise_EXPORT NonFlatExtremumOperation : public Operation
{
public:
  static constexpr std::int64_t MostOffsets = std::int64_t{ 1 } << 28;

  StructuringShape shape{ StructuringShape::Ball };
  /** In voxels; 0 along an axis that takes no part. */
  double semiAxes[MaxDimension]{};
  double height{ 1 };
  bool   dilates{ false };

  std::string
  GetName() const override
  {
    return "nonflatextremum";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override
  {
    return { GetRadius(image), GetRadius(image) };
  }
  void
  Validate(const Coordinates & image) const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override
  {
    CheckSameOrFloatingOutput(GetName(), inputs.at(0), output);
  }
  /** The largest offsets that lie in an image. */
  Coordinates
  GetRadius(const Coordinates & image) const;
};

/** The background of an image under which a ball or a paraboloid rolls (S. Sternberg, "Biomedical image processing",
 * Computer 16(1), 1983), or the image minus it. Kernel "rollingball", which may end with "rollingball.voxels" (voxel,
 * background -> output).
 *
 * The background is the opening: the dilation of the erosion, or the erosion alone. Paraboloids erode and dilate along
 * one axis after the other, x first. Results between the stages are numbers, and are rounded to the output's kind at
 * the end. */
class Chunkwise_EXPORT RollingBallOperation : public CompositeOperation
{
public:
  NonFlatExtremumOperation extremum;
  bool                     erodesAlone{ false };
  bool                     subtracts{ false };

  std::string
  GetName() const override
  {
    return "rollingball";
  }
  std::string
  GetKey() const override
  {
    return CompositeOperation::GetKey() + (subtracts ? " subtracts" : "");
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override
  {
    CheckSameOrFloatingOutput(GetName(), inputs.at(0), output);
  }
  std::vector<Stage>
  GetStages() const override;
};

} // namespace chunkwise

#endif
