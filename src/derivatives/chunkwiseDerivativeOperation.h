/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDerivativeOperation_h
#define chunkwiseDerivativeOperation_h

#include "chunkwiseCurvature.h"
#include "chunkwiseOperations.h"
#include "chunkwiseTensorMeasure.h"

#include <array>
#include <vector>

namespace chunkwise
{

/** The order of a derivative along each axis of the image. */
using DerivativeOrders = std::array<int, MaxDimension>;

/** The windows of derivatives at one scale. */
struct DerivativeScale
{
  /** Positive smoothing weights, symmetric and of an odd number; empty along an axis that takes no part. */
  std::vector<double> weights[MaxDimension];
  /** Weights of order k are multiplied by its k-th power: 1 over the spacing, or sigma in voxels for normalised scales.
   */
  double factor[MaxDimension]{ 1, 1, 1, 1, 1 };
  /** Above 0: whole windows have the derivative of a Gaussian of this sigma, in voxels, at the taps, times the
   * smoothing weight there; 0: fitted weights. */
  double sampled[MaxDimension]{};
  /** Windows of the smoothing weights as they are, not divided by their sum; derivatives are multiplied alike. */
  bool keepsSum{ false };
  /** Orders of 0 smooth; otherwise they leave the image as it is, so derivatives see voxels along their axes alone. */
  bool smooths{ true };
  /** HessianMeasureParameters::contrast at this scale. */
  double contrast{ 0 };
};

/** Derivatives of an image smoothed by windows, Gaussians as a rule, and what follows from them. Kernel "derivative".
 *
 * Structure tensors: with `gradient` the components are the products of the gradient's components, the upper triangle
 * row by row, smoothed by the windows of the one scale; their orders are 0.
 *
 * Divergence of vectors: with `ofVectors` component i is a derivative of input i; else all are of the one input.
 *
 * Along an axis the window has smoothing weights g, which sum to 1 over the taps there are. Derivative weights of order
 * k are h_t = k! g_t p(t) / sum g_t p(t)^2, where p is the monic polynomial of degree k that is orthogonal, with the
 * weights g, to those of lower degrees: the k-th derivative of the polynomial of degree k that fits the taps best. So
 * sum h_t t^j = 0 for j < k and k! for j = k: a derivative of order k is exact for polynomials of degree k, up to the
 * image's edge. An axis with k or fewer taps has no derivative of order k: h = 0 there.
 *
 * Arithmetic, the same on every backend so that results are bit-identical:
 * - Accumulator: float for float, 8- and 16-bit integers; double for the others. Weights are found in double,
 * multiplied by the power of `factor`, then converted.
 * - Axes in ascending order. A pass has for each voxel the fields that the passes before made, at first the image.
 * - Where the window is whole, acc = +0, then taps at distances t = radius, ..., 1: order 0: acc = fma(g_t, S(+t) +
 *   S(-t), acc); odd orders: fma(h_t, S(+t) - S(-t), acc); order 2: fma(h_t, (S(+t) - S(0)) + (S(-t) - S(0)), acc);
 * then fma(w, S(0), acc), w being g_0, nothing for odd orders, and the sum of all h for order 2, 0 if they are fitted.
 * - Where the image's edge cuts the window (Renormalized), acc = +0, then taps ascending: fma(g_t, S_t, acc), or
 *   fma(h_t, S_t - S(0), acc) for orders from 1 on.
 * - Eigenvalues and measures: in double, see chunkwiseHessianMeasure.h, and converted to the accumulator.
 * - Structure tensors: components of the gradient and their products are in the accumulator. Outside the image the
 *   gradient is continued as the boundary mode says; in the mode Constant it is 0.
 * - Magnitude: acc = +0, fma(d, d, acc) for the components in their order, and the root.
 * - Sum: acc = +0, acc + d for the components in their order.
 * - Curvature: the components are the gradient and the upper triangle of the Hessian; in double, see
 *   chunkwiseCurvature.h, and converted to the accumulator.
 * - With `skipsNan` (orders 0 and 1, Renormalized) a voxel that is NaN stays NaN, and each pass sees the run of other
 *   voxels that a voxel lies in, as if the image ended at both its ends: where that cuts the taps there are, RunSums
 * has the rule.
 * - In every mode but Renormalized the image is first continued beyond its edge.
 * - Integer results are rounded to nearest, ties to even, and clamped. */
class Chunkwise_EXPORT DerivativeOperation : public WindowedOperation
{
public:
  static constexpr int LargestOrder = 3;

  /** One, but of measures, of which the largest value over all scales counts. */
  std::vector<DerivativeScale>  scales{ 1 };
  std::vector<DerivativeOrders> components;
  DerivativeResult              result{ DerivativeResult::Components };
  /** The axis of the image along which the results of a voxel lie; below 0: a voxel has one result. */
  int componentAxis{ -1 };
  /** The number of that result among all. */
  int chosen{ 0 };
  /** The measure of the eigenvalues; `contrast` is that of each scale. */
  HessianMeasureParameters measure;
  /** Structure tensors: the first derivatives, of as many axes as the matrix has rows; nullptr: no structure tensor. */
  std::shared_ptr<const DerivativeOperation> gradient;
  TensorParameters                           tensor;
  CurvatureParameters                        curvature;
  /** Sum alone: there are as many inputs as components, of one pixel type. */
  bool ofVectors{ false };
  /** Voxels that are NaN take no part. Structure tensors: the gradient's says the same. */
  bool skipsNan{ false };

  std::string
  GetName() const override
  {
    return "derivative";
  }
  int
  GetNumberOfInputs() const override
  {
    return ofVectors ? static_cast<int>(components.size()) : 1;
  }
  /** The gradient of a structure tensor goes on beyond the edge itself; components lie along an axis of the output. */
  bool
  IsOfImageAlone() const override
  {
    return !gradient && !ofVectors && componentAxis < 0;
  }
  std::string
  GetKey() const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  void
  Validate(const Coordinates & image) const override;
  Coordinates
  RoundChunk(const Coordinates & extent) const override;

  /** Numbers that a voxel of the output has. */
  int
  GetNumberOfResults() const
  {
    switch (result)
    {
      case DerivativeResult::Components:
      case DerivativeResult::Diffusivity:
        return static_cast<int>(components.size());
      case DerivativeResult::Eigenvalues:
      case DerivativeResult::ByMagnitude:
      case DerivativeResult::Direction:
        return this->GetMatrixSize();
      case DerivativeResult::Eigenvectors:
        return this->GetMatrixSize() * this->GetMatrixSize();
      default:
        return 1;
    }
  }
  /** Whether the components are the upper triangle of a symmetric matrix, of which the result is made. */
  bool
  TakesMatrix() const
  {
    return result != DerivativeResult::Components && result != DerivativeResult::Magnitude &&
           result != DerivativeResult::Sum && result != DerivativeResult::Curvature;
  }
  /** Rows of the matrix whose upper triangle the components are, of Curvature the last of them. */
  int
  GetMatrixSize() const
  {
    if (result == DerivativeResult::Curvature)
    {
      return components.size() == 9 ? 3 : 2;
    }
    return components.size() == 6 ? 3 : components.size() == 3 ? 2 : 1;
  }
  Coordinates
  GetRadius(std::size_t scale) const;

  /** The weights of an order at a scale along axis `a` of an image with `n` voxels there: rows of 2 radius + 1 weights.
   * Position i has row WeightRow(i, n, radius, GetNumberOfRows(scale, a, n)) of chunkwiseLaplacianOperation.h. */
  std::vector<double>
  GetTable(std::size_t scale, int a, int order, std::int64_t n) const;
  std::int64_t
  GetNumberOfRows(std::size_t scale, int a, std::int64_t n) const;

private:
  void
  ValidateCurvature() const;
  void
  ValidateSkipping() const;
  void
  ValidateScale(const DerivativeScale & scale) const;
};

/** One field that a pass makes: the order of its derivative, of a field of the pass before. */
struct DerivativeField
{
  int source{ 0 };
  int order{ 0 };
};

/** The fields of each pass, for axes in their order. The last pass makes the components. With `ofVectors` component i
 * comes of field i of the image, else each of field 0. */
std::vector<std::vector<DerivativeField>>
MakeDerivativeFields(const std::vector<DerivativeOrders> & components, const std::vector<int> & axes, bool ofVectors);

} // namespace chunkwise

#endif
