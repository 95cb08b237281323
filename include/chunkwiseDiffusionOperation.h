/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDiffusionOperation_h
#define chunkwiseDiffusionOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

class DerivativeOperation;

enum class DiffusionMethod
{
  Gradient,       ///< P. Perona, J. Malik, IEEE PAMI 12(7), 1990
  Curvature,      ///< R. Whitaker, X. Xue, "Variable-conductance, level-set curvature for image denoising", ICIP 2001
  TotalVariation, ///< L. Rudin, S. Osher, E. Fatemi, Physica D 60, 1992, by A. Chambolle, T. Pock, JMIV 40, 2011
  Coherence,      ///< J. Weickert, "Coherence-enhancing diffusion filtering", IJCV 31, 1999
  SquaredGradient ///< no smoothing: the squared length of the gradient by central differences
};

/** Smoothing that stops at edges, by a fixed number of iterations. Kernel "diffusion".
 *
 * Beyond the image's edge the nearest voxel counts (zero flux). Differences d_a along axis a are those of voxels times
 * scale[a], central ones half of those of the neighbors to both sides. An iteration reaches one voxel, so a chunk with
 * a halo of as many voxels as iterations has the bits of the whole image.
 *
 * Gradient and Curvature, as ITK's GradientNDAnisotropicDiffusionFunction and CurvatureNDAnisotropicDiffusionFunction
 * have them: between two neighbors along axis a, g^2 = d_a^2 + the sum over the other axes of the squared mean of both
 * voxels' central differences, and the flux is f = d_a exp(-g^2 / 2 contrast^2), for Curvature over sqrt(g^2 + 1e-10).
 * S is the sum over the axes of the flux to the next voxel minus that from the voxel before. Gradient: x + timeStep S.
 * Curvature: x + timeStep S sqrt(U), U being the sum of max(d+, 0)^2 + min(d-, 0)^2 if S > 0, else of min(d+, 0)^2 +
 * max(d-, 0)^2, with d+ and d- the differences to the next voxel and from the voxel before. A contrast of 0 leaves the
 * image as it is.
 *
 * TotalVariation: u = u' = x and p = 0 at first, then p <- P(p + s grad u'), v = (u + t div p + t x) / (1 + t), u' = 2
 * v
 * - u, u = v. P divides by max(1, |p| / weight), grad has the differences to the next voxels, -div is its adjoint, and
 * s = t = 1 / (2 sqrt(sum of scale^2)).
 *
 * Coherence: x + timeStep div(D grad x), D being the result of `tensor` for x, made anew for each iteration. With c_b
 * central differences and m_a the sum of D_ab c_b over the axes b other than a, the flux between two neighbors along
 * axis a is the mean of both voxels' D_aa times d_a, plus that of their m_a; S is the sum of its differences times
 * scale[a]. No flux crosses the image's edge. The sum of all voxels stays, and as the eigenvalues of D are at most 1,
 * that of their squares does not grow if timeStep <= 1 / (2 sum of scale^2): with F the forward and B the backward
 * differences, 0 at the edge, the sum of x S is minus that of c D c + sum of D_aa (F_a - B_a)^2 / 4 over all voxels,
 * which lies between 0 and the squares of all differences between neighbors.
 *
 * With `skipsNan` voxels that are NaN take no part, as if the image ended there: beside a voxel they count as that
 * voxel, no flux and no p goes to or from them, and they stay NaN. So they do for the tensor.
 *
 * Arithmetic: float for float, 8- and 16-bit integers, double for the others, each operation rounded, axes ascending,
 * the exponential by a polynomial. Integer results are rounded to nearest, ties to even, and clamped. */
class Chunkwise_EXPORT DiffusionOperation : public Operation
{
public:
  static constexpr std::int64_t MostIterations = 10000;

  DiffusionMethod method{ DiffusionMethod::Gradient };
  std::int64_t    iterations{ 1 };
  /** Above 0 along an axis that takes part. */
  double scale[MaxDimension]{};
  double timeStep{ 0.0625 };
  double contrast{ 1 };
  double weight{ 1 };
  bool   skipsNan{ false };
  /** Coherence alone: its results lie along the last axis, which takes no part. */
  std::shared_ptr<const DerivativeOperation> tensor;

  std::string
  GetName() const override
  {
    return "diffusion";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  void
  Validate(const Coordinates & image) const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override
  {
    CheckSameOrFloatingOutput(GetName(), inputs.at(0), output);
  }
  /** Some iterations each, if the result has the type that computes; none for TotalVariation, whose state is more than
   * its result. */
  std::vector<std::shared_ptr<const Operation>>
  AsSteps(PixelType input, PixelType output) const override;
  /** How far an iteration reaches along each axis. */
  Coordinates
  GetReach() const;
  /** The voxels that `output` depends on, `steps` iterations before the last. */
  Box
  GetSource(Box output, const Box & image, std::int64_t steps) const;
  /** The cost of a chunk, as traffic of memory (Kernel::cost): each iteration computes what those after it need. */
  double
  GetTraffic(const Box & output, const Box & image, PixelType input) const;
  /** Axes that take part, ascending. */
  std::vector<int>
  GetAxes() const;
  /** The images of the type that computes that a chunk takes. */
  int
  CountImages() const;
};

} // namespace chunkwise

#endif
