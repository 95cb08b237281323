/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseVaryingConvolutionOperation_h
#define chunkwiseVaryingConvolutionOperation_h

#include "chunkwiseImageConvolutionOperation.h"

namespace chunkwise
{

enum class VaryingOrder
{
  ConvolveThenWeight, ///< a filter that varies: out = sum over nodes of w * (kernel * in)
  WeightThenConvolve  ///< a point-spread function that varies: out = sum over nodes of kernel * (w in)
};

/** Convolution with kernels that vary over the image, multilinear between the nodes of a grid. Kernel
 * "convolution.varying".
 *
 * The weight of a node is the product over the axes of a hat that is 1 at the node and 0 at its neighbors; beyond the
 * first and the last node it stays what it is there. So the weights of all nodes sum to 1 everywhere, and with equal
 * kernels the result is that of ImageConvolutionOperation.
 *
 * In Renormalized mode the factors of ImageConvolutionOperation are each kernel's own. ConvolveThenWeight multiplies
 * the results of each kernel by them. WeightThenConvolve multiplies its input: what a voxel spreads beyond the edge is
 * given to its targets inside, so that every voxel's contribution keeps its sum; of the other modes it has Constant
 * with 0. With the kernels flipped the two orders are each other's adjoint.
 *
 * Computed through transforms in tiles of the image's grid, so that bits do not depend on chunks; in
 * ImageConvolutionOperation's accumulator and with its bound: over an image the relative L2 error stays below 1e-6 in
 * float and 1e-14 in double for kernels of one sign, in both orders. */
class Chunkwise_EXPORT VaryingConvolutionOperation : public WindowedOperation
{
public:
  /** Planes of at most so many voxels are one tile. */
  static constexpr std::int64_t MostVoxelsOfPlane = std::int64_t{ 1 } << 26;

  /** Nodes of the grid, per axis; 1 along axes that are not spatial. */
  Coordinates nodes{ Coordinates::Filled(1) };
  /** Image positions of the nodes: first + node * spacing. */
  double first[MaxDimension]{};
  double spacing[MaxDimension]{ 1, 1, 1, 1, 1 };
  /** One for each node, x fastest, of one extent and center. */
  std::vector<std::shared_ptr<const ConvolutionKernel>> kernels;
  VaryingOrder                                          order{ VaryingOrder::ConvolveThenWeight };

  std::string
  GetName() const override
  {
    return "convolution.varying";
  }
  /** Kernels belong to places in the image. */
  bool
  IsOfImageAlone() const override
  {
    return false;
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  Coordinates
  GetTile(const Coordinates & image) const override;
  void
  Validate(const Coordinates & image) const override;

  /** Whether a tile is the whole plane along the two axes of the kernels, see MostVoxelsOfPlane. */
  bool
  HasPlanesAsTiles(const Coordinates & image) const;
  /** The convolution with one node's kernel. `flipped`: with that kernel mirrored. */
  ImageConvolutionOperation
  GetNodeOperation(std::int64_t node, bool flipped = false) const;
  /** The node's coordinates in the grid. */
  Coordinates
  GetNodePosition(std::int64_t node) const;
  /** The weight along an axis, of the node there at image position i. */
  double
  GetWeight(int a, std::int64_t node, std::int64_t i) const;
  /** The box in which the weight may be above 0. */
  Box
  GetSupport(const Coordinates & position, const Coordinates & image) const;
  /** The part of `output` that a node with this support contributes to. */
  Box
  GetReach(const Box & support, const Box & output) const;
  /** The extent that no such part exceeds. */
  Coordinates
  GetLargestReach(const Box & output, const Coordinates & image) const;
};

} // namespace chunkwise

#endif
