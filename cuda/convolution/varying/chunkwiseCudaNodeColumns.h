/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaNodeColumns_h
#define chunkwiseCudaNodeColumns_h

#include "chunkwiseCudaFixedFft.h"

#include <vector>

// Columns of a block of an image that the kernels of several nodes contribute to, in float. Functions come in pairs:
// the first is for VaryingOrder::ConvolveThenWeight, the second for WeightThenConvolve. A term is the block's spectrum
// of a node along the second axis.
namespace chunkwise
{

/** The most nodes that contribute to a voxel along an axis. */
constexpr int MostNodes = 2;

/** Nodes along an axis, and the weight of each at the first point that is read, or kept. */
struct NodeWeights
{
  int           nodes;
  const float * weights[MostNodes];
};

/** Terms follow each other by `stride`. */
struct NodeTerms
{
  NodeWeights  nodes;
  std::int64_t stride;
};

/** The products along the last axis: columns of the block, whose points are as far apart as there are columns, and
 * those of the kernels' transforms along the axes before, or along all. */
struct NodeProduct
{
  std::int64_t   columns;
  int            live; ///< points of the input
  int            crop; ///< the first point that is kept
  int            kept;
  int            kernelLive; ///< points of the kernels; 0: they are transformed along the last axis, too
  NodeTerms      terms;
  NodeWeights    last;
  const float2 * kernels[MostNodes][MostNodes]; ///< [term][node along the last axis]
};

struct NodeColumns
{
  const FixedColumns * fixed;

  /** Along the second axis: the terms back, and the sum of them times their weights; or the input times the weights of
   * each term there. */
  void (*terms[2])(cudaStream_t stream, std::int64_t planes, const ColumnSet & set, const NodeTerms & terms,
                   const float2 * in, float2 * out, const float2 * twiddles);
  /** Along the last axis: there, times each node's kernel, and back, nodes of a term weighted and added; or the terms
   * times the weights of each node there, and the sum of all products back. */
  void (*product[2])(cudaStream_t stream, const NodeProduct & product, const float2 * in, float2 * out,
                     const float2 * there, const float2 * back);
};

/** All that there are, the shortest first. */
const std::vector<NodeColumns> &
GetNodeColumns();

} // namespace chunkwise

#endif
