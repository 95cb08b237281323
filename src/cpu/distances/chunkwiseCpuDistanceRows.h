/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuDistanceRows_h
#define chunkwiseCpuDistanceRows_h

#include "chunkwiseCpuDistanceEnvelope.h"
#include "chunkwiseDistanceOperation.h"

namespace chunkwise
{

/** The images of a chunk, by volumes, which have the axes of distances: slices along the scan axis, and rows and
 * columns in these. Coordinates are those of the image. */
class DistanceRows
{
public:
  explicit DistanceRows(const KernelCall & call);

  /** The first voxel of volume number `volume` of the chunk: 0 along the axes of distances. */
  Coordinates
  BaseOf(std::int64_t volume) const;
  /** Ones where there are features, for n columns of a row. To others: where the voxel differs from the one before it
   * along the scan axis. `marks` has 4 bytes for each column of a slice. */
  void
  GetFeatures(const Coordinates & base, std::int64_t z, std::int64_t row, std::int64_t first, std::int64_t n,
              std::uint8_t * features, std::uint8_t * marks) const;
  /** Ones where voxels have the background's value. */
  void
  GetBackground(const Coordinates & base, std::int64_t z, std::int64_t row, std::int64_t first, std::int64_t n,
                std::uint8_t * ones) const;
  /** The first voxel after `begin` of another value, along a column or a row. */
  std::int64_t
  EndOfRun(const Coordinates & base, std::int64_t z, std::int64_t number, bool isColumn, std::int64_t begin) const;
  /** The bits of a voxel. */
  std::uint64_t
  GetBits(const Coordinates & base, std::int64_t z, std::int64_t row, std::int64_t column) const;
  /** Raster indices in the image. */
  std::int64_t
  GetIndex(const Coordinates & base, std::int64_t z, std::int64_t row, std::int64_t column) const;
  std::int64_t
  GetIndexStep(int axis) const
  {
    return m_Dense[axis];
  }
  std::int64_t
  GetIndexStepOfColumns() const
  {
    return m_X < 0 ? 0 : m_Dense[m_X];
  }
  /** Writes what the output has of a row. `sides` are those of the chunk, `ones` has a byte for each column. */
  template <typename T>
  void
  Store(const Coordinates & base, std::int64_t z, std::int64_t row, const T * numbers, const std::int64_t * nearest,
        T beyond, const void * sides, std::int64_t volume, std::uint8_t * ones) const;

private:
  Coordinates
  Place(const Coordinates & base, std::int64_t z, std::int64_t row, std::int64_t column) const;
  std::int64_t
  LengthOf(int axis) const
  {
    return axis < 0 ? 1 : m_Operation.image[axis];
  }
  const void *
  InputAt(const Coordinates & place) const;
  template <typename TOut, typename T>
  void
  StoreNumbers(TOut * to, std::int64_t step, std::int64_t n, const T * numbers, T beyond,
               const std::uint8_t * background) const;
  template <typename TOut, typename T>
  void
  StoreLabels(TOut * to, std::int64_t step, std::int64_t n, const T * numbers, const std::int64_t * nearest, T beyond,
              const void * sides, std::int64_t volume) const;

  const KernelCall &        m_Call;
  const DistanceOperation & m_Operation;
  const int                 m_Scan;
  const int                 m_X;
  const int                 m_Y;
  const Coordinates         m_Dense;
};

/** Minima along a line with the nearest feature: of those at the same distance the one with the lowest index. */
template <typename T>
void
MinimizeNearest(const T * values, const std::int64_t * indices, const DistanceAxis<T> & axis, T * out,
                std::int64_t * nearest, std::int64_t stride, DistanceParabola<T> * parabolas);

/** Minima within a run of equal voxels, from `begin` to `end` of a line. The voxels beside it have the distance 0. */
template <typename T>
void
MinimizeRun(const T * values, std::int64_t begin, std::int64_t end, const DistanceAxis<T> & axis, T * out,
            std::int64_t stride, DistanceParabola<T> * parabolas);

} // namespace chunkwise

#endif
