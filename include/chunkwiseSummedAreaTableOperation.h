/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSummedAreaTableOperation_h
#define chunkwiseSummedAreaTableOperation_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

/** How a CUDA device computes a table; the bits are the same.
 *
 * SinglePass reads and writes each voxel once: tiles hand sums on to each other. Blocks is the method of S. W. Ha et
 * al., "Bandwidth efficient summed area table generation for CUDA", Journal of Korea Game Society 12(5), 2012, in three
 * passes: sums of blocks, scans of those with pivots (what the sums of columns add to those of rows), and scans within
 * blocks, which read the voxels a second time. */
enum class TableMethod
{
  SinglePass,
  Blocks
};

/** The inclusive summed-area table: at each voxel the sum of all voxels of the image whose index is not greater along
 * any of the first two or three axes. The other axes are independent (with two summed axes, each slice of a volume has
 * a separate table). Kernels `compute` and `advance` of "sat".
 *
 * Arithmetic, the same on every backend so that results are bit-identical:
 * - Accumulator A: 64-bit integers, modulo 2^64, for integers; double for float and double. Each voxel (or its square)
 *   is converted to A first.
 * - L, of sums within 64 rows and 128 columns: float if voxels and table are float, else A.
 * - The slowest summed axis comes first. z: P(z) = P(z - 1) + f(z), P(-1) = +0.
 * - y, of P (of f with two summed axes), rounded to L: rows lie in sections of SectionRows and these in blocks of
 *   BlockRows, both aligned to index 0. l is the sum of the section's rows up to this one, added one after the other
 *   from +0, and S that of the block's sections before, from +0 in order, both in L; C in A is that of the blocks
 *   before, from +0 in order (C' = C + S, where S is that of the whole block).
 * - x, within blocks of BlockColumns columns, aligned to index 0, of groups of GroupColumns: X(f) of a row f, in the
 *   type of f. s is the sum of the group's columns up to this one, in order, beginning with the first. QuarterGroups
 *   groups are a quarter of the block; their totals t are scanned: for d = 1, 2, 4, ... below QuarterGroups, all at
 *   once, t[g] = t[g - d] + t[g] where g - d is in the quarter. Q is the sum of the quarters before, from +0 in order.
 *   X = (Q + t[g - 1]) + s, where t[g - 1] is that of the group before, +0 for the quarter's first. Columns beyond the
 *   image count as +0.
 * - The result is G + v, both in A, with v = X(C) + X(S + l). G is the sum of the blocks of columns before, from +0, by
 *   G' = G + v[last].
 * - Outputs: integers modulo their size; float and double rounded once, to nearest. */
class Chunkwise_EXPORT SummedAreaTableOperation : public Operation
{
public:
  static constexpr int SectionRows = 8;
  static constexpr int BlockRows = 64;
  static constexpr int GroupColumns = 4;
  static constexpr int QuarterGroups = 8;
  static constexpr int BlockColumns = 128;

  /** The extent of the largest region. */
  Coordinates image{};
  /** 2 or 3: x and y, or x, y and z are summed. */
  int summedAxes{ 2 };
  /** The table of the squares of the voxels. */
  bool squares{ false };
  /** Sums may exceed the output's range: they are kept modulo its size, which leaves differences exact. */
  bool modular{ false };
  /** How the CUDA backend makes it. */
  TableMethod method{ TableMethod::SinglePass };
  /** The carry of the voxels before index `begin` of the swept axis; empty at 0. */
  ChunkState   carry;
  std::int64_t begin{ 0 };

  std::string
  GetName() const override
  {
    return "sat";
  }
  std::string
  GetKey() const override;
  /** Sweep along the last summed axis if nothing is beyond it; else chunks see all that is before them. */
  Schedule
  GetSchedule() const override
  {
    return Sweeps() ? Schedule::Sweep : Schedule::Independent;
  }
  bool
  Sweeps() const;
  int
  GetSweepAxis(const Coordinates &) const override
  {
    return summedAxes - 1;
  }
  Halo
  GetHalo(const Coordinates & image) const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & image) const override;
  /** With three summed axes the plane P; with two the rows C, S and l. A section that is complete is already part of S,
   * a block of C. Entries of A for all columns from 0. */
  std::size_t
  GetCarryBytes(const Box & box, const std::vector<PixelType> & inputs, PixelType output) const override;
  ChunkState
  GetInitialCarry(const Box & box, const std::vector<PixelType> & inputs, PixelType output) const override;
  /** A stream block needs the sums of those before it, and no voxel of them. */
  bool
  HandsOnState() const override
  {
    return true;
  }
  std::shared_ptr<const Operation>
  MakeForNextBlock(const FinishedBlock & block) const override;
  /** The carry of a table of kind `output` behind `region`, which begins where this operation's own carry stands: one
   * read of the region by the kernel `advance` of `kernels`, which are the host's. */
  ChunkState
  Advance(const BufferView & input, PixelType output, const Box & region, Executor & executor,
          const KernelRegistry & kernels) const;
  /** The first index of a chunk's sums along the swept axis, or of the whole image if the schedule is Independent. */
  std::int64_t
  FirstIndex(const Box & chunk) const
  {
    return Sweeps() ? chunk.lower[summedAxes - 1] : 0;
  }
};

} // namespace chunkwise

#endif
