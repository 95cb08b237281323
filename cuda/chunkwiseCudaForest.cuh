/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaForest_cuh
#define chunkwiseCudaForest_cuh

#include "chunkwiseCudaChunkBorder.cuh"

#include <cooperative_groups.h>

// Morphological reconstruction by a spanning forest, in a few rounds whatever way the values have to go.
//
// A voxel's result is the largest capacity of a path to a source, where an edge between neighbours has the smaller of
// their masks as its capacity and one from a voxel to the source the voxel's state. In each round every component of
// voxels joins the one that its best edge leads to (Boruvka), ties going to the larger number of the edge. What leaves
// a component can be no better than what is within it, so that a voxel's capacity is the smallest on its way along
// these edges. Components that the source is in are done; the others at least halve in number.
namespace chunkwise
{

/** A voxel's component, named by one of its voxels, and the capacity of the way there: halves of one word, which is
 * read and written as one. The last component is the source's. */
struct ForestLink
{
  static constexpr std::uint32_t Source = 0x7FFFFFFFu;
  /** Of a voxel that was a component's name when the round began. */
  static constexpr std::uint32_t Joined = 0x80000000u;

  __device__ static std::uint64_t
  Make(std::uint32_t component, std::uint32_t capacity)
  {
    return (static_cast<std::uint64_t>(component) << 32) | capacity;
  }
  __device__ static std::uint32_t
  Component(std::uint64_t link)
  {
    return static_cast<std::uint32_t>(link >> 32) & ~Joined;
  }
  __device__ static std::uint32_t
  Capacity(std::uint64_t link)
  {
    return static_cast<std::uint32_t>(link);
  }
  /** The component of voxel `at` when the round began. */
  __device__ static std::uint32_t
  ComponentAtBegin(std::uint64_t link, std::uint32_t at)
  {
    return (static_cast<std::uint32_t>(link >> 32) & Joined) ? at : static_cast<std::uint32_t>(link >> 32);
  }
};

template <typename TKey>
struct ForestImage
{
  WavefrontImage<TKey> image;
  std::uint64_t *      links;
  /** Of the voxel that names a component: its best edge, 0: none yet. */
  std::uint64_t * edges;
  std::uint32_t   voxels;
  std::uint32_t   volumeVoxels;
  std::uint32_t   extent[3];
  bool            neighbours[3];
  bool            fullyConnected;
  /** Steps to later neighbours, and after them the step to the source. */
  int           steps;
  signed char   step[13][3];
  std::uint32_t shift[13];
  /** Voxels that a round has not brought to the source, by the parity of the round, and whether links changed. */
  std::uint32_t * open;
};

/** The edges of a voxel that fit into a word beside its capacity: capacity above, number below. */
template <typename TKey>
__host__ __device__ constexpr int
ForestEdgeBits()
{
  return sizeof(TKey) <= 2 ? 48 : 32;
}

inline bool
ForestFits(std::int64_t voxels, std::size_t keyBytes, bool fullyConnected, int spatialAxes)
{
  const int steps = !fullyConnected ? spatialAxes : spatialAxes == 1 ? 1 : spatialAxes == 2 ? 4 : 13;
  return keyBytes <= 4 && voxels < ForestLink::Source && (keyBytes <= 2 || voxels * (steps + 1) <= 0xFFFFFFFFll);
}

inline std::size_t
ForestScratchBytes(std::int64_t voxels)
{
  return 2 * sizeof(std::uint64_t) * static_cast<std::size_t>(voxels) + 256;
}

template <typename TKey>
struct ForestVoxel
{
  std::uint32_t x;
  std::uint32_t y;
  std::uint32_t z;
  const TKey *  mask;
  TKey *        state;

  __device__
  ForestVoxel(const ForestImage<TKey> & forest, std::uint32_t voxel)
  {
    const WavefrontImage<TKey> & image = forest.image;
    const std::uint32_t          rest = voxel / forest.volumeVoxels;
    const std::uint32_t          own = voxel % forest.volumeVoxels;
    x = own % forest.extent[0];
    y = own / forest.extent[0] % forest.extent[1];
    z = own / forest.extent[0] / forest.extent[1];
    mask = image.mask + x + y * image.maskStride[1] + z * image.maskStride[2];
    state = image.state + x + y * image.stateStride[1] + z * image.stateStride[2];
    MoveToVolume(image, rest, mask, state);
  }

  /** Whether a step stays within the own voxels. */
  __device__ bool
  IsInside(const ForestImage<TKey> & forest, int dx, int dy, int dz) const
  {
    return x + dx < forest.extent[0] && y + dy < forest.extent[1] && z + dz < forest.extent[2];
  }
};

/** Every voxel by itself, but those that have reached their mask: no way leads further up from them. */
template <typename TKey>
__device__ void
BeginForest(const ForestImage<TKey> & forest, const ReconstructionCode<TKey> & code, std::uint32_t voxel)
{
  const ForestVoxel<TKey> at(forest, voxel);
  const std::int64_t      index[3] = { at.x, at.y, at.z };
  const TKey              mask = code.FromBits(*at.mask);
  const TKey              state = StateFromBeyond(forest.image, code, forest.fullyConnected, index, at.mask, at.state);
  if (state != code.FromBits(*at.state))
  {
    *at.state = code.ToBits(state);
  }
  forest.links[voxel] =
    state == mask ? ForestLink::Make(ForestLink::Source, state) : ForestLink::Make(voxel, 0xFFFFFFFFu);
  forest.edges[voxel] = 0;
}

/** The best edge of a voxel that leaves its component. */
template <typename TKey>
__device__ bool
OfferEdge(const ForestImage<TKey> & forest, const ReconstructionCode<TKey> & code, std::uint32_t voxel)
{
  const std::uint32_t component = ForestLink::Component(forest.links[voxel]);
  if (component == ForestLink::Source)
  {
    return false;
  }
  constexpr int           bits = ForestEdgeBits<TKey>();
  const ForestVoxel<TKey> at(forest, voxel);
  const TKey              mask = code.FromBits(*at.mask);
  const std::uint64_t     degree = static_cast<std::uint64_t>(forest.steps) + 1;
  std::uint64_t           best = (static_cast<std::uint64_t>(code.FromBits(*at.state)) << bits) |
                       (voxel * degree + static_cast<std::uint64_t>(forest.steps));
  for (int s = 0; s < forest.steps; ++s)
  {
    for (int sign = -1; sign <= 1; sign += 2)
    {
      const int dx = sign * forest.step[s][0];
      const int dy = sign * forest.step[s][1];
      const int dz = sign * forest.step[s][2];
      if (!at.IsInside(forest, dx, dy, dz))
      {
        continue;
      }
      const std::uint32_t other = sign > 0 ? voxel + forest.shift[s] : voxel - forest.shift[s];
      if (ForestLink::Component(forest.links[other]) == component)
      {
        continue;
      }
      const TKey through =
        min(mask, code.FromBits(at.mask[dx + dy * forest.image.maskStride[1] + dz * forest.image.maskStride[2]]));
      const std::uint64_t edge = (static_cast<std::uint64_t>(through) << bits) |
                                 ((sign > 0 ? voxel : other) * degree + static_cast<std::uint64_t>(s));
      best = edge > best ? edge : best;
    }
  }
  // Most of a large component's voxels have nothing better than what is there.
  if (best > __ldcg(forest.edges + component))
  {
    atomicMax(reinterpret_cast<unsigned long long *>(forest.edges + component), static_cast<unsigned long long>(best));
  }
  return true;
}

/** A component joins the one that its best edge leads to. */
template <typename TKey>
__device__ void
JoinComponent(const ForestImage<TKey> & forest, std::uint32_t voxel)
{
  if (ForestLink::ComponentAtBegin(__ldcg(forest.links + voxel), voxel) != voxel)
  {
    return;
  }
  constexpr int       bits = ForestEdgeBits<TKey>();
  const std::uint64_t edge = forest.edges[voxel];
  const std::uint64_t number = edge & ((std::uint64_t{ 1 } << bits) - 1);
  const auto          capacity = static_cast<std::uint32_t>(edge >> bits);
  const auto          degree = static_cast<std::uint64_t>(forest.steps) + 1;
  const auto          first = static_cast<std::uint32_t>(number / degree);
  const auto          s = static_cast<int>(number % degree);
  std::uint32_t       to = ForestLink::Source;
  if (s != forest.steps)
  {
    const std::uint32_t second = first + forest.shift[s];
    const std::uint32_t ofFirst = ForestLink::ComponentAtBegin(__ldcg(forest.links + first), first);
    const std::uint32_t ofSecond = ForestLink::ComponentAtBegin(__ldcg(forest.links + second), second);
    to = ofFirst == voxel ? ofSecond : ofFirst;
    if (to != ForestLink::Source && voxel < to && forest.edges[to] == edge)
    {
      return; // each is the other's best: one of them stays
    }
  }
  __stcg(forest.links + voxel, ForestLink::Make(to | ForestLink::Joined, capacity));
}

/** A voxel's link leads further along the links. True if there may be more. */
template <typename TKey>
__device__ bool
FollowLink(const ForestImage<TKey> & forest, std::uint32_t voxel)
{
  std::uint64_t link = __ldcg(forest.links + voxel);
  bool          more = false;
  std::uint32_t component = ForestLink::Component(link);
  std::uint32_t capacity = ForestLink::Capacity(link);
  if (component == voxel)
  {
    forest.edges[voxel] = 0; // for the next round
    return false;
  }
  for (int hop = 0; hop < 8 && component != ForestLink::Source; ++hop)
  {
    const std::uint64_t next = __ldcg(forest.links + component);
    const std::uint32_t further = ForestLink::Component(next);
    if (further == component)
    {
      more = false;
      break;
    }
    capacity = min(capacity, ForestLink::Capacity(next));
    component = further;
    more = component != ForestLink::Source;
  }
  const std::uint64_t followed = ForestLink::Make(component, capacity);
  if (followed != link)
  {
    __stcg(forest.links + voxel, followed);
  }
  return more;
}

template <typename TKey>
__global__ void __launch_bounds__(256) ForestKernel(ForestImage<TKey> forest, ReconstructionCode<TKey> code)
{
  const auto          grid = cooperative_groups::this_grid();
  const std::uint32_t threads = gridDim.x * blockDim.x;
  const std::uint32_t begin = blockIdx.x * blockDim.x + threadIdx.x;
  const auto          forEach = [&](auto && body) {
    // 64 bits: the sum may exceed 32.
    for (std::uint64_t voxel = begin; voxel < forest.voxels; voxel += threads)
    {
      body(static_cast<std::uint32_t>(voxel));
    }
  };
  // Counters of phases in turn, each cleared two phases before it is used.
  int        phase = 0;
  const auto anyInGrid = [&](bool any) {
    if (__syncthreads_or(any) && threadIdx.x == 0)
    {
      atomicOr(forest.open + phase % 3, 1u);
    }
    if (grid.thread_rank() == 0)
    {
      forest.open[(phase + 1) % 3] = 0;
    }
    grid.sync();
    const bool result = __ldcg(forest.open + phase % 3) != 0;
    ++phase;
    return result;
  };
  forEach([&](std::uint32_t voxel) { BeginForest(forest, code, voxel); });
  grid.sync();
  for (;;)
  {
    bool open = false;
    forEach([&](std::uint32_t voxel) { open |= OfferEdge(forest, code, voxel); });
    if (!anyInGrid(open))
    {
      break;
    }
    forEach([&](std::uint32_t voxel) { JoinComponent(forest, voxel); });
    grid.sync();
    bool more = true;
    while (more)
    {
      more = false;
      forEach([&](std::uint32_t voxel) { more |= FollowLink(forest, voxel); });
      more = anyInGrid(more);
    }
  }
  forEach([&](std::uint32_t voxel) {
    const ForestVoxel<TKey> at(forest, voxel);
    const auto              key = static_cast<TKey>(ForestLink::Capacity(__ldcg(forest.links + voxel)));
    const std::int64_t      index[3] = { at.x, at.y, at.z };
    StoreAndTell(forest.image, code, forest.fullyConnected, index, at.mask, at.state, key);
  });
}

/** `scratch` has ForestScratchBytes. */
template <typename TKey>
void
RunForest(const WavefrontImage<TKey> & image, const WavefrontShape & shape, const ReconstructionOperation & operation,
          const ReconstructionCode<TKey> & code, void * scratch, cudaStream_t stream)
{
  ForestImage<TKey> forest{};
  forest.image = image;
  forest.fullyConnected = operation.fullyConnected;
  std::int64_t voxels = 1;
  for (int a = 0; a < 3; ++a)
  {
    forest.extent[a] = static_cast<std::uint32_t>(shape.extent[a]);
    voxels *= shape.extent[a];
  }
  forest.volumeVoxels = static_cast<std::uint32_t>(voxels);
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxels *= shape.positions[a];
  }
  forest.voxels = static_cast<std::uint32_t>(voxels);
  for (int dz = 0; dz <= 1; ++dz)
  {
    for (int dy = -1; dy <= 1; ++dy)
    {
      for (int dx = -1; dx <= 1; ++dx)
      {
        const int  d[3] = { dx, dy, dz };
        const int  moved = (dx != 0) + (dy != 0) + (dz != 0);
        const bool isLater = dz > 0 || (dz == 0 && (dy > 0 || (dy == 0 && dx > 0)));
        bool       spatial = true;
        for (int a = 0; a < 3; ++a)
        {
          spatial = spatial && (d[a] == 0 || a < operation.spatialDimension);
        }
        if (isLater && spatial && (moved == 1 || operation.fullyConnected))
        {
          for (int a = 0; a < 3; ++a)
          {
            forest.step[forest.steps][a] = static_cast<signed char>(d[a]);
          }
          forest.shift[forest.steps] =
            static_cast<std::uint32_t>(dx + dy * shape.extent[0] + dz * shape.extent[0] * shape.extent[1]);
          ++forest.steps;
        }
      }
    }
  }
  forest.links = static_cast<std::uint64_t *>(scratch);
  forest.edges = forest.links + voxels;
  forest.open = reinterpret_cast<std::uint32_t *>(forest.edges + voxels);
  CheckCuda(cudaMemsetAsync(forest.open, 0, 3 * sizeof(std::uint32_t), stream), "cudaMemsetAsync");
  LaunchTogether(ForestKernel<TKey>, 256, 0, (voxels + 255) / 256, stream, forest, code);
}

} // namespace chunkwise

#endif
