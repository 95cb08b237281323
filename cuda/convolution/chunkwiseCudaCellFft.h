/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaCellFft_h
#define chunkwiseCudaCellFft_h

#include "chunkwiseCudaFixedFft.h"

// Functions come in pairs: the first is for VaryingOrder::ConvolveThenWeight, the second, "spread", for
// WeightThenConvolve. Transforms of many cells of an image in a launch, in float: a cell is a rectangle that the same
// kernels, on nodes of a grid, contribute to. All cells have transforms of one length; those at an edge are smaller.
namespace chunkwise
{

/** The interval of a cell along one of its two axes. */
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

/** The factors of a node's contribution where its kernel is cut: [node][y][x] of ConvolutionFactors. */
struct CellFactors
{
  const float * data; ///< nullptr: 1
  std::int64_t  states[2];
  std::int64_t  kernel[2];
  std::int64_t  below[2];
};

/** The cells of a launch: those numbered from `first` on, [y][x]. If input is convolved and then weighted, a cell has
 * one spectrum on the way there and several, its terms, on the way back; if it is weighted first, the reverse. A term
 * is for a node along the first axis; or for a node, in cells where the factors differ between nodes. */
struct CellGrid
{
  const CellInterval * axis[2];
  int                  along; ///< cells along the first axis
  int                  first;
  int                  nodes[2];
  std::int64_t         n[2]; ///< of the image
  /** The weights of a node along the axis, [node][image index]. */
  const float * weights[2];
  CellFactors   factors;
  int           rows;     ///< that a cell's one spectrum has room for
  int           terms;    ///< that a cell has room for
  int           termRows; ///< rows that each of them has room for
};

struct CellSource
{
  const void * data;
  PixelType    kind;
  BoundaryMode mode;
  float        constant; ///< is subtracted
  std::int64_t boxLower[2];
  std::int64_t boxUpper[2];
  std::int64_t stride[2];
};

struct CellTarget
{
  void *       data;
  PixelType    kind;
  std::int64_t boxLower[2];
  std::int64_t stride[2];
  /** The constant that each node adds; nullptr: 0. */
  const float * constants;
  /** Only cells of this color along each axis, whose outputs do not meet. */
  int colors[2];
  int color[2];
};

struct CellRows
{
  const FixedRows * fixed;

  /** Spread: the terms, of the input times their weights. */
  void (*forward[2])(cudaStream_t stream, int cells, const CellGrid & grid, const CellSource & source, float2 * out,
                     const float2 * there);
  /** The sum of the terms times their weights. Spread: added to the target, of numbers. */
  void (*inverse[2])(cudaStream_t stream, int cells, const CellGrid & grid, const CellTarget & target,
                     const float2 * in, const float2 * back);
};

struct CellColumns
{
  const FixedColumns * fixed;

  /** Columns of the kernels' rows, [kernel][kernelRows][columns], to their spectra, in the order that `product` reads
   * them in, times `scale`. */
  void (*spectra)(cudaStream_t stream, int kernels, int kernelRows, int columns, float scale, const float2 * in,
                  float2 * out, const float2 * there);
  /** There, times each node's spectrum, and back, to the terms; nodes along the second axis that share a term are
   * weighted and added. Spread: the terms, weighted, there; the sum of the products back. */
  void (*product[2])(cudaStream_t stream, int cells, const CellGrid & grid, int columns, const float2 * in,
                     float2 * out, const float2 * there, const float2 * back, const float2 * spectra);
};

/** All that there are, the shortest first. */
const std::vector<CellRows> &
GetCellRows();
const std::vector<CellColumns> &
GetCellColumns();

} // namespace chunkwise

#endif
