/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaVaryingCells_h
#define chunkwiseCudaVaryingCells_h

#include "chunkwiseCudaTables.h"
#include "chunkwiseVaryingConvolutionOperation.h"

#include <cstdio>
#include <string>
#include <vector>

// A convolution that varies along two axes, in float, all cells of a plane together: each cell is transformed once,
// multiplied by the spectra of the nodes around it, which are kept, and each product is transformed back and weighted;
// in the other order each weighted input is transformed, and the sum of the products once back.
namespace chunkwise
{

/** Consecutive voxels of an axis, and the nodes that contribute to them. */
struct VaryingInterval
{
  std::int64_t lower;
  std::int64_t upper;
  int          node;
  int          nodes;
};

/** Intervals of at most `most` voxels along an axis of the image, each made of at most `merged` intervals between
 * nodes.
 */
std::vector<VaryingInterval>
CutVaryingAxis(const VaryingConvolutionOperation & operation, int a, std::int64_t n, std::int64_t most, int merged);

/** A key of what the cut of an image depends on: its extent, the nodes, the kernels' shape, whether it is renormalized,
 * and the order. */
std::string
KeyOfVaryingLayout(const char * what, const VaryingConvolutionOperation & operation, const Coordinates & image);

/** Whether an image is computed so, by image and kernels alone. The rest of this file is for such images alone, and
 * for chunks of whole planes. */
bool
HasVaryingCells(const VaryingConvolutionOperation & operation, const Coordinates & image, PixelType kind);

/** The bytes of a chunk's scratch. */
std::size_t
ScratchOfVaryingCells(const VaryingConvolutionOperation & operation, const ChunkShape & chunk);

/** The bytes of all tables: those of the kernels' spectra, and what must stay free beside them, too. */
std::size_t
TableBytesOfVaryingCells(const VaryingConvolutionOperation & operation, const Coordinates & image);

/** Device memory traffic of a chunk in bytes. */
double
CostOfVaryingCells(const VaryingConvolutionOperation & operation, const ChunkShape & chunk);

/** With VaryingOrder::WeightThenConvolve the output's voxels are added to, and must be numbers. */
void
RunVaryingCells(const KernelCall & call);

/** All nodes' weights along an axis, [node][image index]. */
template <typename T>
const T *
GetNodeWeights(const KernelCall & call, int a)
{
  const auto &       operation = static_cast<const VaryingConvolutionOperation &>(*call.operation);
  const std::int64_t extent = call.image.Extent(a);
  char               text[160];
  std::snprintf(text,
                sizeof(text),
                "varying weights %lld %lld %a %a f%d",
                static_cast<long long>(operation.nodes[a]),
                static_cast<long long>(extent),
                operation.first[a],
                operation.spacing[a],
                static_cast<int>(8 * sizeof(T)));
  return GetTable<T>(call, text, [&] {
    std::vector<T> weights;
    for (std::int64_t node = 0; node < operation.nodes[a]; ++node)
    {
      for (std::int64_t i = 0; i < extent; ++i)
      {
        weights.push_back(static_cast<T>(operation.GetWeight(a, node, i)));
      }
    }
    return weights;
  });
}

} // namespace chunkwise

#endif
