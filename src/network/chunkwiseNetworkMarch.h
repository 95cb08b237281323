/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNetworkMarch_h
#define chunkwiseNetworkMarch_h

#include "chunkwiseNetworkGraph.h"

// How a chunk is computed in slabs along z, so that its length takes no memory.

namespace chunkwise
{

/** The work of one step of a march for one layer. Planes are indices of the layer along z. */
struct NetworkSlabLayer
{
  std::int64_t lower{ 0 }; ///< planes that are computed; none where it is `upper`
  std::int64_t upper{ 0 };
  std::int64_t held{ 0 };       ///< the first plane in memory; the last one is upper - 1
  std::int64_t kept{ 0 };       ///< planes that steps before have computed and this one needs
  std::int64_t keptUpper{ 0 };  ///< no more than `kept`: none
  std::int64_t next{ 0 };       ///< the first plane that steps after this one need of those up to `upper`
  bool         isUsed{ false }; ///< computed or needed

  bool
  IsComputed() const
  {
    return lower < upper;
  }
  /** The end of the planes from `kept` on that come from steps before: some of theirs may be computed again. */
  std::int64_t
  GetFetchedUpper() const
  {
    return keptUpper < lower ? keptUpper : lower;
  }
};

/** All layers. */
using NetworkSlab = std::vector<NetworkSlabLayer>;

/** The steps of a chunk whose output has planes [range.lower, range.upper) and which needs `ranges` of all layers, as
 * GetRanges gives them. A step computes so much of each layer that the output has `slab` planes more, or as much of the
 * layers before it as these planes will need: each plane of a layer once, as planes that later steps need are kept.
 * `slab` 0: one step.
 *
 * Planes that are computed, and those in memory, begin at multiples of `fragments` from the range's first plane on, so
 * that some are computed twice. If `isBound`, they begin as much lower as that can take for any chunk. */
std::vector<NetworkSlab>
MakeNetworkMarch(const NetworkGraph & graph, const std::vector<NetworkGraph::Range> & ranges, std::int64_t slab,
                 const std::vector<std::int64_t> & fragments, bool isBound);

/** The most planes of a layer that a step computes, that lie in memory, and that are kept for the next step. */
struct NetworkSlabBound
{
  std::int64_t computed{ 0 };
  std::int64_t held{ 0 };
  std::int64_t kept{ 0 };
};
std::vector<NetworkSlabBound>
FindSlabBounds(const std::vector<NetworkSlab> & march);
void
TakeLargest(std::vector<NetworkSlabBound> & most, const std::vector<NetworkSlabBound> & bounds);

/** Bounds for any chunk of any image, whatever fragments a plan may choose. */
std::vector<NetworkSlabBound>
FindSlabBounds(const NetworkGraph & graph, std::int64_t slab);

} // namespace chunkwise

#endif
