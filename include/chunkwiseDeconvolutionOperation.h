/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeconvolutionOperation_h
#define chunkwiseDeconvolutionOperation_h

#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseVaryingConvolutionOperation.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace chunkwise
{

enum class DeconvolutionMethod
{
  RichardsonLucy,
  Landweber,
  ProjectedLandweber ///< estimates are 0 or more
};

/** Iterative deconvolution: the estimate whose convolution with the kernel is the measured image.
 *
 * The measured image d has weights w: 0 where nothing is known (dead or saturated pixels, missing slices, NaN). The
 * estimate u is on the grid of d, grown along each axis by the kernel's reach, so that light from beyond the edge has a
 * place; only its part inside is the result. H is the convolution with the kernel, b the background, H^T the
 * convolution with the mirrored kernel, or with `backProjector`. One iteration from the point y is
 * - RichardsonLucy: u = y / (H^T w - lambda div(grad y / |grad y|)) * H^T(w d / (H y + b)), 0 where that is negative,
 *   y where the divisor is not above 0. A ratio whose denominator is not above
 *   leastExpected is 0. Voxels that the measured ones see little of (H^T w is at most LeastShare of the kernel's sum
 *   times the largest weight, treated as 1) are 0.
 * - Landweber: u = y + relaxation * H^T(w (d - b - H y)), cut at 0 by ProjectedLandweber.
 * Without acceleration y is the last u. With it (D. Biggs, M. Andrews, "Acceleration of iterative image restoration
 * algorithms", Applied Optics 36(8), 1997) y = u + a (u - previous u), cut at 0, with a = sum(g g') / sum(g' g') of the
 * last two steps g = u - y, between 0 and 1.
 *
 * The first estimate is the mean of w (d - b) over the mean of w, or a start image, continued beyond the edge by its
 * nearest voxel.
 *
 * Images of 8- and 16-bit integers and float are computed in float, others in double. Convolutions are computed in
 * tiles of the image's own grid, and sums over the image are exact, so the bits of a result, and the iteration at which
 * the run stops, depend on no chunks, threads, budgets or number of devices. All convolutions of a run are those of the
 * CPU, or all those of devices of one kind, whose transforms have other last bits.
 *
 * Source: W. H. Richardson, "Bayesian-based iterative method of image restoration", J. Opt. Soc. Am. 62(1), 1972; L. B.
 * Lucy, "An iterative technique for the rectification of observed distributions", Astron. J. 79, 1974; weights and the
 * grown estimate as in M. Bertero, P. Boccacci, "A simple method for the reduction of boundary effects in the
 * Richardson-Lucy approach", Astron. Astrophys. 437, 2005; total variation: N. Dey et al., "Richardson-Lucy algorithm
 * with total variation regularization", Microsc. Res. Tech. 69(4), 2006. */
class Chunkwise_EXPORT DeconvolutionOperation : public Operation
{
public:
  /** The extent and the kinds of the images. */
  Coordinates         image{ Coordinates::Filled(1) };
  PixelType           inputKind{ PixelType::Float32 };
  PixelType           outputKind{ PixelType::Float32 };
  DeconvolutionMethod method{ DeconvolutionMethod::RichardsonLucy };
  /** The kernel: its weights are used as they are. */
  std::shared_ptr<const ConvolutionKernel> kernel;
  /** Kernels that vary over the image, in place of `kernel`: each voxel spreads by those of the nodes around it. Only
   * its members nodes, first, spacing and kernels count. */
  std::shared_ptr<const VaryingConvolutionOperation> varying;
  /** The kernel of H^T, with which it convolves; nullptr: `kernel`, mirrored. Not with `varying`. */
  std::shared_ptr<const ConvolutionKernel> backProjector;
  std::int64_t                             iterations{ 10 };
  double                                   background{ 0 };
  /** RichardsonLucy: a voxel of which no more light is expected has no share in corrections. */
  double leastExpected{ 0 };
  /** RichardsonLucy: lambda of total variation. */
  double totalVariation{ 0 };
  double relaxation{ 1 };
  bool   accelerates{ false };
  /** Stops once the norm of the change of u is at most this part of the norm of u; 0: never. */
  double relativeChange{ 0 };
  /** Stops once the mean of w (d - H y - b)^2 / (H y + b), over the mean of w, is at most this (RichardsonLucy; without
   * the denominator for Landweber); 0: never. It is 1 where noise of that variance is all that is left. */
  double discrepancy{ 0 };
  /** Values of d from this one on have the weight 0. */
  double saturation{ std::numeric_limits<double>::infinity() };
  /** Whether the second input are weights, and the last one is the first estimate. */
  bool hasWeights{ false };
  bool hasStart{ false };

  static constexpr double LeastShare = 0.01;

  std::string
  GetName() const override
  {
    return "deconvolution";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates &) const override;
  int
  GetNumberOfInputs() const override
  {
    return 1 + (hasWeights ? 1 : 0) + (hasStart ? 1 : 0);
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & extent) const override;
  const OutOfCoreRunner *
  GetOutOfCoreRunner() const override;
  bool
  IsRunByRunner() const override
  {
    return true;
  }
  /** Any of the kernels, for their extent and center. */
  const ConvolutionKernel &
  GetAnyKernel() const
  {
    return varying ? *varying->kernels.at(0) : *kernel;
  }
  /** RichardsonLucy: H^T w of a voxel that is seen is above this. */
  double
  GetLeastSeen() const
  {
    return LeastShare * (backProjector ? *backProjector : GetAnyKernel()).GetSum();
  }
  /** The box of the image in the grid of the estimate, which begins at 0 and has this extent. */
  Box
  GetMeasuredBox() const;
  Coordinates
  GetEstimateExtent() const;
  /** H, and H^T, on that grid, where there is nothing beyond the edge. */
  std::shared_ptr<const Operation>
  MakeForward() const;
  std::shared_ptr<const Operation>
  MakeBackward() const;
};

} // namespace chunkwise

#endif
