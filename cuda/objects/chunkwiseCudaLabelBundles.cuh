/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaLabelBundles_cuh
#define chunkwiseCudaLabelBundles_cuh

#include "chunkwiseCudaLabelChunk.cuh"

// Components of a foreground whose voxels have all voxels around them as neighbors. Two rows along y, or two by two
// along y and z, are a bundle: a voxel of it is a neighbor of all its voxels at the same x and beside. So stretches of
// x where any of the rows has a voxel are connected, and a bundle's runs take the place of its rows': in random voxels
// they are a tenth as many. In the end each run of a row gets the first run of its component as its parent.
namespace chunkwise
{

namespace
{

/** Bundles as rows of a smaller chunk, of which the bit x is 1 where a row of the bundle has a voxel. */
template <typename TId>
struct LabelBundles
{
  /** The most runs of a word: each second voxel begins one. */
  static constexpr int MostRuns = WordBits / 2;

  LabelChunk<TId> runs;
  TId *           leasts; ///< of each root, the first run of a row of the component
  int             shift2; ///< log2 of rows along axis 2

  __device__ std::int64_t
             RowOf(const RowPlace & place) const
  {
    std::int64_t row = 0;
    for (int a = MaxDimension - 1; a > 0; --a)
    {
      const int shift = a == 1 ? 1 : a == 2 ? shift2 : 0;
      row = row * runs.extent[a] + (place.at[a] >> shift);
    }
    return row;
  }
  /** The rows of a bundle. */
  __device__ RowPlace
  FirstRowOf(std::int64_t bundle) const
  {
    RowPlace place = runs.PlaceOf(bundle);
    place.at[1] *= 2;
    place.at[2] <<= shift2;
    return place;
  }
};

/** What rows of a bundle have in a word: those at `y`, from `y` to before `endY`, and the same along z. */
template <typename TId>
struct BundleSide
{
  const LabelChunk<TId> & chunk;
  RowPlace                place;
  std::int64_t            endY;
  std::int64_t            endZ;

  __device__
  BundleSide(const LabelChunk<TId> & theChunk, const RowPlace & bundle, std::int64_t y, int rowsY, std::int64_t z,
             int rowsZ)
    : chunk(theChunk)
    , place(bundle)
    , endY(min(y + rowsY, theChunk.extent[1]))
    , endZ(min(z + rowsZ, theChunk.extent[2]))
  {
    place.at[1] = y;
    place.at[2] = z;
  }
  /** 0 where there is none. */
  __device__ Word
  At(std::int64_t w) const
  {
    Word word = 0;
    if (w < 0 || w >= chunk.words || place.at[1] < 0 || place.at[2] < 0)
    {
      return word;
    }
    std::int64_t volume = 0;
    for (int a = MaxDimension - 1; a > 2; --a)
    {
      volume = volume * chunk.extent[a] + place.at[a];
    }
    for (std::int64_t z = place.at[2]; z < endZ; ++z)
    {
      for (std::int64_t y = place.at[1]; y < endY; ++y)
      {
        word |= chunk.foreground[((volume * chunk.extent[2] + z) * chunk.extent[1] + y) * chunk.words + w];
      }
    }
    return word;
  }
};

/** The words of bundles; their runs become roots. */
template <typename TId>
__global__ void
__launch_bounds__(Threads) MakeBundlesKernel(LabelChunk<TId> chunk, LabelBundles<TId> bundles)
{
  const std::int64_t at = ThreadNumber();
  if (at >= bundles.runs.CountWords())
  {
    return;
  }
  const std::int64_t    bundle = Quotient(at, chunk.words);
  const std::int64_t    w = at - bundle * chunk.words;
  const RowPlace        place = bundles.FirstRowOf(bundle);
  const BundleSide<TId> rows(chunk, place, place.at[1], 2, place.at[2], 1 << bundles.shift2);
  const Word            word = rows.At(w);
  const Word            links = word & ShiftedFromBefore(word, rows.At(w - 1));
  const auto            first = static_cast<TId>(at * LabelBundles<TId>::MostRuns);
  bundles.runs.foreground[at] = word;
  bundles.runs.links[at] = links;
  bundles.runs.firstRuns[at] = first;
  const int count = __popc(word & ~(links & ~Word{ 1 }));
  for (int k = 0; k < count; ++k)
  {
    bundles.runs.parents[first + k] = first + static_cast<TId>(k);
    bundles.leasts[first + k] = static_cast<TId>(~TId{ 0 });
  }
}

/** Joins the runs of a bundle's word with those before it along x, and with those of the bundles before it. */
template <typename TId>
__global__ void
__launch_bounds__(Threads) JoinBundlesKernel(LabelChunk<TId> chunk, LabelBundles<TId> bundles)
{
  const LabelChunk<TId> & runs = bundles.runs;
  const std::int64_t      at = ThreadNumber();
  if (at >= runs.CountWords() || runs.foreground[at] == 0)
  {
    return;
  }
  const std::int64_t bundle = Quotient(at, chunk.words);
  const std::int64_t w = at - bundle * chunk.words;
  const RowPlace     place = bundles.FirstRowOf(bundle);
  const Word         links = runs.links[at];
  if ((links & 1) != 0)
  {
    runs.Join(runs.RunOf(at, 0), runs.RunOf(at - 1, WordBits - 1));
  }
  const std::int64_t y = place.at[1];
  const std::int64_t z = place.at[2];
  const int          depth = 1 << bundles.shift2;
  const auto         joinSides = [&](const BundleSide<TId> & own, const BundleSide<TId> & other) {
    const Word word = own.At(w);
    if (word == 0)
    {
      return;
    }
    const Word middle = other.At(w);
    const Word before = other.At(w - 1);
    const Word after = other.At(w + 1);
    if ((before | middle | after) == 0)
    {
      return;
    }
    const std::int64_t otherAt = bundles.RowOf(other.place) * chunk.words + w;
    LabelPairs<Word>   pairs{ word & ShiftedFromBefore(middle, before),
                            word & middle,
                            word & ShiftedFromAfter(middle, after) };
    RemoveImpliedPairs(pairs, links, runs.links[otherAt]);
    const auto joinAll = [&](Word bits, int shift) {
      for (; bits != 0; bits &= bits - 1)
      {
        const int i = __ffs(static_cast<int>(bits)) - 1;
        const int j = i + shift;
        runs.Join(runs.RunOf(at, i),
                  runs.RunOf(j < 0          ? otherAt - 1
                             : j < WordBits ? otherAt
                                            : otherAt + 1,
                             j & (WordBits - 1)));
      }
    };
    joinAll(pairs.same, 0);
    joinAll(pairs.before, -1);
    joinAll(pairs.after, 1);
  };
  joinSides({ chunk, place, y, 1, z, depth }, { chunk, place, y - 1, 1, z, depth });
  if (bundles.shift2 != 0)
  {
    joinSides({ chunk, place, y, 2, z, 1 }, { chunk, place, y, 2, z - 1, 1 });
    joinSides({ chunk, place, y, 1, z, 1 }, { chunk, place, y - 1, 1, z - 1, 1 });
    joinSides({ chunk, place, y + 1, 1, z, 1 }, { chunk, place, y + 2, 1, z - 1, 1 });
  }
}

/** Each run of a bundle gets its root. A thread writes the entries of its runs alone. */
template <typename TId>
__global__ void
__launch_bounds__(Threads) FindBundleRootsKernel(LabelBundles<TId> bundles)
{
  const LabelChunk<TId> & runs = bundles.runs;
  const std::int64_t      at = ThreadNumber();
  if (at >= runs.CountWords())
  {
    return;
  }
  const int count = __popc(runs.StartsOf(at));
  for (int k = 0; k < count; ++k)
  {
    const TId run = runs.firstRuns[at] + static_cast<TId>(k);
    const TId root = runs.FindRoot(run);
    if (root != run)
    {
      __stcg(runs.parents + run, root);
    }
  }
}

/** Each run of a row gets the root of its bundle's run, and the root the first run of its component. */
template <typename TId>
__global__ void
__launch_bounds__(Threads) FindLeastRunsKernel(LabelChunk<TId> chunk, LabelBundles<TId> bundles)
{
  using Atomic = typename AtomicOf<TId>::Type;
  const std::int64_t at = ThreadNumber();
  if (at >= chunk.CountWords())
  {
    return;
  }
  const std::int64_t row = Quotient(at, chunk.words);
  const std::int64_t bundleAt = bundles.RowOf(chunk.PlaceOf(row)) * chunk.words + (at - row * chunk.words);
  TId                run = chunk.firstRuns[at];
  TId                before = static_cast<TId>(~TId{ 0 });
  for (Word starts = chunk.StartsOf(at); starts != 0; starts &= starts - 1, ++run)
  {
    const TId root = bundles.runs.parents[bundles.runs.RunOf(bundleAt, __ffs(static_cast<int>(starts)) - 1)];
    chunk.parents[run] = root;
    // Most runs belong to a component of which an earlier run has been seen.
    if (root != before && run < __ldcg(bundles.leasts + root))
    {
      atomicMin(reinterpret_cast<Atomic *>(bundles.leasts + root), static_cast<Atomic>(run));
    }
    before = root;
  }
}

template <typename TId>
__global__ void
__launch_bounds__(Threads) TakeLeastRunsKernel(LabelChunk<TId> chunk, LabelBundles<TId> bundles)
{
  const std::int64_t at = ThreadNumber();
  if (at >= chunk.CountWords())
  {
    return;
  }
  for (TId run = chunk.firstRuns[at]; run < chunk.firstRuns[at + 1]; ++run)
  {
    chunk.parents[run] = bundles.leasts[chunk.parents[run]];
  }
}

} // namespace

} // namespace chunkwise

#endif
