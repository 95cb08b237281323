/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseResampleOperation_h
#define chunkwiseResampleOperation_h

#include "chunkwiseBoundedGrid.h"
#include "chunkwisePixelValue.h"

#include <memory>
#include <vector>

namespace chunkwise
{

/** How a point between voxels gets a value. */
enum class Interpolation
{
  Nearest, ///< the value of the nearest voxel, of two at the same distance that of the higher index
  Linear,
  Cubic,   ///< cubic B-splines that go through the voxels' values
  Lanczos, ///< the sinc windowed by its lobe of three times the width
  Label    ///< the value that has most of the linear weights, of several that have the same the lowest
};

/** The values beyond the image. The edge of an axis with n voxels is at -0.5 and n - 0.5. */
enum class ResampleOutside
{
  Renormalized, ///< points move to the nearest point of the image, whose kernel is the part inside the image
  Value,        ///< the same inside the edges, `value` beyond them
  // As scipy.ndimage defines them.
  Constant,     ///< `value` beyond the centers of the first and the last voxel
  GridConstant, ///< voxels beyond have `value`
  Nearest,      ///< voxels beyond have the value of the nearest one
  Mirror,       ///< reflection about the centers of the first and the last voxel
  Reflect,      ///< reflection about the edges
  GridWrap      ///< repetition
};

/** The weights of the voxels around a point along an axis. */
enum class TapKernel
{
  None,   ///< points lie on voxels, or take the nearest
  Linear, ///< max(0, 1 - |x|)
  Spline, ///< the cubic B-spline, of coefficients
  Keys,   ///< cubic convolution with a = -1/2
  Lanczos
};

class ResampleField;

/** Samples an image at the voxels of another grid.
 *
 * Voxel `o` of the output lies at the point c of the image, in voxels:
 * c[i] = matrix[i][0] o[0] + (matrix[i][1] o[1] + (matrix[i][2] o[2] + offset[i])), each product and sum rounded to
 * double, where i and o count `axes`. Along all other axes both grids are the same.
 *
 * A field moves these points, each by the vector that it has for the voxel (ResampleField).
 *
 * The value is interpolated along the first axis, then the second, then the third. Along an axis with taps k of weights
 * w and values f it is f[b] + sum over k of w[k] (f[k] - f[b]), where b is the tap at or below the point: constants
 * stay constants. Weights and sums are float for float, 8- and 16-bit integers, double for others and for
 * outputs of double. If points lie on voxels
 * along all axes, voxels are copied, and keep their bits.
 *
 * Coefficients of splines are sums over the voxels that are at most SplineRadius away (the recursive filter's
 * truncated response), so that no chunk changes a bit. Results have the same bits for all chunks and threads.
 *
 * Source: M. Unser, A. Aldroubi, M. Eden, "B-spline signal processing", IEEE Transactions on Signal Processing 41(2),
 * 1993; P. Thevenaz, T. Blu, M. Unser, "Interpolation revisited", IEEE Transactions on Medical Imaging 19(7), 2000. */
class Chunkwise_EXPORT ResampleOperation
  : public Operation
  , private BoundedGrid
{
public:
  static constexpr int Axes = 3;

  /** The extents of both images. */
  Coordinates image{};
  Coordinates output{};
  /** The axes along which the grids differ; the first is 0. Others fill the places of missing axes. */
  int             axes[Axes]{ 0, 1, 2 };
  bool            areThere[Axes]{ true, true, true };
  double          matrix[Axes][Axes]{ { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };
  double          offset[Axes]{};
  Interpolation   interpolation{ Interpolation::Linear };
  ResampleOutside outside{ ResampleOutside::Renormalized };
  PixelValue      value{ 0 };
  /** Kernels are as much wider as the output's voxels are larger than the image's. */
  bool antialias{ true };
  /** Cubic: voxels are values, not coefficients. */
  bool prefilter{ true };
  /** nullptr: points are not moved. */
  std::shared_ptr<const ResampleField> field;
  /** Not nullptr: the output is a line along axis 0, whose voxel o lies at points[i][o] + offset[i]. `value` stands
   * where a point has no place, as at NaN. */
  const double * points[Axes]{};

  /** The kernel along one of `axes`. */
  struct Axis
  {
    TapKernel kernel{ TapKernel::None };
    /** Times that the kernel is wider, at least 1. */
    double scale{ 1 };
    /** Voxels from `below` ones before the point on. */
    std::int64_t taps{ 1 };
    std::int64_t below{ 0 };
    /** Voxels become coefficients first. */
    bool         isFiltered{ false };
    std::int64_t length{ 1 }; ///< of the image
  };
  Axis
  GetAxis(int i) const;
  /** Whether points follow neither from the matrix nor from each other. */
  bool
  HasOwnPoints() const
  {
    return field || points[0];
  }
  /** Whether voxels are copied. */
  bool
  IsOnVoxels() const;
  /** Whether points along each axis depend on that axis of the output alone. */
  bool
  IsDiagonal() const;
  Coordinates
  GetMostInput(const Coordinates & box, const Coordinates & extent) const override;
  /** Whether sums are double. */
  static bool
  UsesDoubles(PixelType input, PixelType output);
  /** Voxels that a coefficient depends on, to either side: the rest of the response is below the number's precision. */
  static constexpr std::int64_t SplineRadiusOfFloats = 16;
  static constexpr std::int64_t SplineRadius = 28;

  std::string
  GetName() const override
  {
    return "resample";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  const OutputGrid *
  GetOutputGrid() const override
  {
    return this;
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & extent) const override;
  std::string
  GetObjectionToDevices() const override;

private:
  Coordinates
  GetExtent(const Coordinates & extent) const override;
  Box
  GetInputBox(const Box & box, const Coordinates & extent) const override;
  /** Voxels beside those of its kernel that a box needs along an axis, to either side. */
  static std::int64_t
  CountBeside(const Axis & axis);
};

} // namespace chunkwise

#endif
