/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaCellFft_h
#define chunkwiseCudaCellFft_h

#include "chunkwiseCudaFixedFft.h"

// Transforms of many cells of an image in a launch, in float: a cell is a rectangle that the same kernels, on nodes of
// a grid, contribute to. All cells have transforms of one length; those at an edge are smaller.
namespace chunkwise
{

/** What a cell is along one of its two axes. */
struct CellInterval
{
  std::int64_t inLower; ///< image index of the first input position, perhaps beyond the edge
  std::int64_t outLower;
  int          input;
  int          output;
  int          crop; ///< position of the first output in the transform
  int          node; ///< the first that contributes
  int          nodes;
  int          cut; ///< some window reaches beyond the edge
};

/** The cells of a launch: those numbered from `first` on, [y][x]. */
struct CellGrid
{
  const CellInterval * axis[2];
  int                  along; ///< cells along the first axis
  int                  first;
  int                  nodes[2];
  std::int64_t         n[2]; ///< of the image
  /** What a node weighs along the axis, [node][image index]. */
  const float * weights[2];
  bool          renormalizes;
  int           rows;     ///< that a cell's spectrum has room for
  int           terms;    ///< spectra on the way back that a cell has room for
  int           termRows; ///< rows that each of them has room for
};

struct CellSource
{
  const void * data;
  PixelKind    kind;
  BoundaryMode mode;
  float        constant; ///< is subtracted
  std::int64_t boxLower[2];
  std::int64_t boxUpper[2];
  std::int64_t stride[2];
};

struct CellTarget
{
  void *       data;
  PixelKind    kind;
  std::int64_t boxLower[2];
  std::int64_t stride[2];
  /** Of each node, to be added; nullptr: 0. */
  const float * constants;
  /** Of each node, [y][x] of ConvolutionFactors; nullptr: 1. */
  const float * factors;
  std::int64_t  states[2];
  std::int64_t  kernel[2];
  std::int64_t  below[2];
};

struct CellRows
{
  const FixedRows * fixed;

  void (*forward)(cudaStream_t stream, int cells, const CellGrid & grid, const CellSource & source, float2 * out,
                  const float2 * there);
  /** The terms, weighted along the first axis, and added. */
  void (*inverse)(cudaStream_t stream, int cells, const CellGrid & grid, const CellTarget & target, const float2 * in,
                  const float2 * back);
};

struct CellColumns
{
  const FixedColumns * fixed;

  /** Columns of the kernels' rows, [kernel][kernelRows][columns], to their spectra, in the order that `product` reads
   * them in, times `scale`. */
  void (*spectra)(cudaStream_t stream, int kernels, int kernelRows, int columns, float scale, const float2 * in,
                  float2 * out, const float2 * there);
  /** There, times each node's spectrum, and back: a term for each node along the first axis, those along the second
   * weighted and added; for each node where they have factors to come. */
  void (*product)(cudaStream_t stream, int cells, const CellGrid & grid, int columns, const float2 * in, float2 * out,
                  const float2 * there, const float2 * back, const float2 * spectra);
};

/** All that there are, the shortest first. */
const std::vector<CellRows> &
GetCellRows();
const std::vector<CellColumns> &
GetCellColumns();

} // namespace chunkwise

#endif
