/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseResampleField_h
#define chunkwiseResampleField_h

#include "chunkwiseFilters.h"
#include "chunkwiseResampleOperation.h"

namespace chunkwise
{

/** Vectors that move the points of a ResampleOperation.
 *
 * Voxel o of the output lies at q of the field's grid, in its voxels: q[i] = step[i][0] o[0] + (step[i][1] o[1] +
 * (step[i][2] o[2] + start[i])), where i and o count the operation's axes. There the vectors are interpolated linearly
 * in double, along the first axis, then the second, then the third. Points beyond the outer edges of the grid's voxels
 * are not moved. */
class Chunkwise_EXPORT ResampleField
{
public:
  static constexpr int Axes = ResampleOperation::Axes;

  /** The image of one component for each row of `vectors`. */
  std::shared_ptr<const KernelStack> vectors;
  /** Voxels of the grid along the operation's axes. */
  std::int64_t extent[Axes]{ 1, 1, 1 };
  /** The extent of the output along the operation's axes. */
  std::int64_t output[Axes]{ 1, 1, 1 };
  double       step[Axes][Axes]{ { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };
  double       start[Axes]{};
  /** Column k: what component k of a vector adds to a point along each axis, in voxels of the image. */
  double toImage[Axes][Axes]{};

  /** Finds the bounds of parts of the field. Throws ParameterError for vectors that are not finite or too long. */
  void
  Prepare();
  /** By what the point of a voxel is moved along each axis. */
  void
  Move(const Coordinates & voxel, double (&move)[Axes]) const;
  /** The least and the most that voxels of a box of the output are moved, or a little more. `lower`, `upper`: the box
   * along the operation's axes. */
  void
  GetBounds(const Coordinates & lower, const Coordinates & upper, double (&least)[Axes], double (&most)[Axes]) const;
  /** The same of any box. */
  void
  GetBounds(double (&least)[Axes], double (&most)[Axes]) const;
  std::string
  GetKey() const;

private:
  /** Voxels of a part along each axis. */
  static constexpr std::int64_t PartLength = 8;
  struct Bounds
  {
    double least[Axes];
    double most[Axes];
  };

  double
  PlaceOf(int i, const Coordinates & voxel) const
  {
    return step[i][0] * static_cast<double>(voxel[0]) +
           (step[i][1] * static_cast<double>(voxel[1]) + (step[i][2] * static_cast<double>(voxel[2]) + start[i]));
  }
  void
  Transform(const double (&vector)[Axes], double (&move)[Axes]) const
  {
    for (int i = 0; i < Axes; ++i)
    {
      move[i] = toImage[i][0] * vector[0] + (toImage[i][1] * vector[1] + toImage[i][2] * vector[2]);
    }
  }
  void
  Extend(const std::int64_t (&first)[Axes], const std::int64_t (&last)[Axes], double (&least)[Axes],
         double (&most)[Axes]) const;

  std::vector<Bounds> m_Bounds;
  std::int64_t        m_Parts[Axes]{ 1, 1, 1 };
  std::uint64_t       m_Digest{ 0 };
  bool                m_IsOnOutput{ false }; ///< voxels of the output are those of the grid
};

} // namespace chunkwise

#endif
