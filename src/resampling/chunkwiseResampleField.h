/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseResampleField_h
#define chunkwiseResampleField_h

#include "chunkwiseFilters.h"
#include "chunkwiseResampleOperation.h"

namespace chunkwise
{

/** Coordinates beyond are no whole numbers any more, and vectors of such lengths no exact ones. */
constexpr double FarthestPoint = 4503599627370496.0;

/** How vectors move points: all of a ResampleField that a voxel needs. Kernels of devices have it of the part of the
 * vectors that lies in their memory. */
struct ResampleMoves
{
  static constexpr int Axes = ResampleOperation::Axes;

  /** Linear, along an axis whose next vector is `next` numbers on; 0: the place is on a vector. */
  template <typename TValueAt>
  CHUNKWISE_HOST_DEVICE static double
  Between(std::int64_t at, std::int64_t next, double part, TValueAt && valueAt)
  {
    const double value = valueAt(at);
    return next ? value + part * (valueAt(at + next) - value) : value;
  }
  CHUNKWISE_HOST_DEVICE double
  PlaceOf(int i, const Coordinates & voxel) const
  {
    return step[i][0] * static_cast<double>(voxel[0]) +
           (step[i][1] * static_cast<double>(voxel[1]) + (step[i][2] * static_cast<double>(voxel[2]) + start[i]));
  }
  /** By how much a vector moves a point along axis `i`. */
  CHUNKWISE_HOST_DEVICE double
  Transform(int i, const double (&vector)[Axes]) const
  {
    return toImage[i][0] * vector[0] + (toImage[i][1] * vector[1] + toImage[i][2] * vector[2]);
  }
  /** The vector at a voxel of the output. */
  CHUNKWISE_HOST_DEVICE void
  FindVector(const Coordinates & voxel, double (&vector)[Axes]) const
  {
    for (int i = 0; i < Axes; ++i)
    {
      vector[i] = 0;
    }
    if (isOnOutput)
    {
      const std::int64_t at =
        (voxel[0] - lower[0]) * stride[0] + (voxel[1] - lower[1]) * stride[1] + (voxel[2] - lower[2]) * stride[2];
      for (int k = 0; k < components; ++k)
      {
        vector[k] = vectors[k][at];
      }
      return;
    }
    std::int64_t base = 0;
    std::int64_t next[Axes];
    double       part[Axes];
    for (int i = 0; i < Axes; ++i)
    {
      const auto last = static_cast<double>(extent[i] - 1);
      double     place = this->PlaceOf(i, voxel);
      if (!(place >= -0.5 && place <= last + 0.5))
      {
        return;
      }
      place = place < 0 ? 0 : place > last ? last : place;
      const auto first = static_cast<std::int64_t>(place);
      part[i] = place - static_cast<double>(first);
      base += (first - lower[i]) * stride[i];
      next[i] = part[i] > 0 ? stride[i] : 0;
    }
    for (int k = 0; k < components; ++k)
    {
      const double * const from = vectors[k];
      const auto           along = [&](std::int64_t at) {
        return Between(at, next[0], part[0], [&](std::int64_t x) { return from[x]; });
      };
      const auto across = [&](std::int64_t at) { return Between(at, next[1], part[1], along); };
      vector[k] = Between(base, next[2], part[2], across);
    }
  }

  /** One component of the vectors each, of a box of the grid that begins at `lower`. */
  const double * vectors[Axes]{};
  int            components{ 0 };
  std::int64_t   lower[Axes]{};
  std::int64_t   stride[Axes]{};
  std::int64_t   extent[Axes]{ 1, 1, 1 }; ///< of the whole grid
  double         step[Axes][Axes]{};
  double         start[Axes]{};
  double         toImage[Axes][Axes]{};
  bool           isOnOutput{ false }; ///< voxels of the output are those of the grid
};

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
  /** The voxels of the grid that voxels of a box of the output need, both ends included. 0: one that lies beside it. */
  void
  GetPart(const Coordinates & lower, const Coordinates & upper, std::int64_t (&first)[Axes],
          std::int64_t (&last)[Axes]) const;
  /** The most such voxels along an axis, of boxes of this extent. */
  std::int64_t
  CountMostOfPart(int i, const Coordinates & box) const;
  const ResampleMoves &
  GetMoves() const
  {
    return m_Moves;
  }
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

  /** The least and the greatest place along an axis of the voxels of a box. */
  void
  GetPlaces(int i, const Coordinates & lower, const Coordinates & upper, double & low, double & high) const;
  void
  Extend(const std::int64_t (&first)[Axes], const std::int64_t (&last)[Axes], double (&least)[Axes],
         double (&most)[Axes]) const;

  std::vector<Bounds> m_Bounds;
  std::int64_t        m_Parts[Axes]{ 1, 1, 1 };
  std::uint64_t       m_Digest{ 0 };
  ResampleMoves       m_Moves;
};

} // namespace chunkwise

#endif
