/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaMaskedMedians.h"

#include "chunkwiseCudaMaskedWindow.h"
#include "chunkwiseCudaMedianNetworks.cuh"
#include "chunkwiseCudaPasses.cuh"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseMaskedStages.h"

#include <cstring>

// Medians of small cubes in a mask, by the networks of whole windows. Along its line a thread gives voxels that are not
// seen, those beyond the image's edge too, the lowest and the highest key in turn. So of those in a window as many are
// low as high, or one more or one less: the median of the others is that of all, or the key one rank below it. Nothing
// is counted, and nothing lies between stages.
namespace chunkwise
{

namespace
{

/** The voxels that a thread goes through, a byte for each of them, and the bits of the result of an empty window. */
template <typename TKey>
struct MaskedVoxels
{
  const TKey *         voxels;
  const std::uint8_t * inside;
  std::int64_t         span; ///< from the first one to beyond the last
  std::uint64_t        empty;
};

/** The keys that stand for voxels that are not seen: the lowest, and what makes the highest of it. */
template <typename TKeys>
struct HiddenKeys
{
  using Word = typename TKeys::Word;
  static constexpr Word Low = 0;
  static constexpr Word Flip = static_cast<Word>(~Word{ 0 });
};
template <>
struct HiddenKeys<RealKeys>
{
  static constexpr std::uint32_t Low = 0xFF800000u;
  static constexpr std::uint32_t Flip = 0x80000000u;
};

/** A bit for each of a thread's lines. */
template <typename TKeys>
inline constexpr std::uint32_t LineBits = TKeys::Lines > 1 ? 0x10001u : 1u;

/** Whether the next key is the highest, for each line. */
template <typename TKeys>
__device__ __forceinline__ std::uint32_t
                           IsHigh(typename TKeys::Word next)
{
  using Hidden = HiddenKeys<TKeys>;
  constexpr int shift = Hidden::Flip == 0x80000000u ? 31 : 0;
  return static_cast<std::uint32_t>((next ^ Hidden::Low) >> shift) & LineBits<TKeys>;
}

/** All bits of the keys of those lines that have one. */
template <typename TKeys>
__device__ __forceinline__ typename TKeys::Word
           SpreadLines(std::uint32_t bits)
{
  using Word = typename TKeys::Word;
  if constexpr (TKeys::Lines > 1)
  {
    return bits * 0xFFFFu;
  }
  else
  {
    return static_cast<Word>(Word{ 0 } - bits);
  }
}

template <typename TKeys>
__device__ __forceinline__ TKeys
Choose(typename TKeys::Word bits, TKeys where, TKeys elsewhere)
{
  return { (where.bits & bits) | (elsewhere.bits & ~bits) };
}

/** All bits of the lines whose number is negative. */
template <typename TKeys>
__device__ __forceinline__ typename TKeys::Word
           SpreadSigns(int first, int second)
{
  if constexpr (TKeys::Lines > 1)
  {
    // The sign of the highest byte of each, twice.
    std::uint32_t bits;
    asm("prmt.b32 %0, %1, %2, 0xFFBB;" : "=r"(bits) : "r"(first), "r"(second));
    return bits;
  }
  else
  {
    return first < 0 ? static_cast<typename TKeys::Word>(~typename TKeys::Word{ 0 }) : typename TKeys::Word{ 0 };
  }
}

/** The voxels of a thread's planes. If there are none, it reads others, and does not see them. */
template <typename TKeys, int VRadius>
struct MaskedPlane
{
  using Key = typename TKeys::Key;
  using Word = typename TKeys::Word;
  using Hidden = HiddenKeys<TKeys>;
  static constexpr int Side = 2 * VRadius + 1;
  static constexpr int Taps = Side * Side;
  static constexpr int Columns = Side + TKeys::Lines - 1;

  std::int64_t rows[Side]; ///< where they begin, those beyond the edge at the edge
  std::int64_t beside;
  int          unseenColumns[Columns]; ///< -1, and what is below all bytes where there are none
  int          unseenRows[Side];       ///< 0, and the same
  /** The key that the next voxel gets that is not seen. */
  Word next{ Hidden::Low };
  /** Bit 0 and, of a second line, bit 16 are those of the newest plane, the bits above those of planes before it:
   * whether its first voxel that is not seen got the highest key, and whether it sees none. */
  std::uint32_t began{ 0 };
  std::uint32_t blank{ 0 };

  __device__ __forceinline__
  MaskedPlane(const RankGeometry & g, const Coordinates & index)
  {
    const auto at = [&](int k, int tap) { return index.axis[g.planeAxes[k]] + tap - VRadius; };
    const auto isBeyond = [&](int k, std::int64_t i) {
      return i < g.in.lower.axis[g.planeAxes[k]] || i >= g.in.upper.axis[g.planeAxes[k]];
    };
    beside = g.inStride.axis[g.planeAxes[0]];
#pragma unroll
    for (int p = 0; p < Columns; ++p)
    {
      unseenColumns[p] = isBeyond(0, at(0, p)) ? -257 : -1;
    }
    const std::int64_t lower = g.in.lower.axis[g.planeAxes[1]];
    const std::int64_t last = g.in.upper.axis[g.planeAxes[1]] - 1;
#pragma unroll
    for (int q = 0; q < Side; ++q)
    {
      unseenRows[q] = isBeyond(1, at(1, q)) ? -256 : 0;
      rows[q] = (min(max(at(1, q), lower), last) - lower) * g.inStride.axis[g.planeAxes[1]] +
                (at(0, 0) - g.in.lower.axis[g.planeAxes[0]]) * beside;
    }
  }

  /** Sorts the plane that begins at `first`, if it is there. */
  __device__ __forceinline__ void
  SortNext(TKeys (&keys)[Taps], const MaskedVoxels<Key> & in, std::int64_t first, bool isThere, KeyForm form)
  {
    constexpr std::uint32_t kept = LineBits<TKeys> * 0x1Eu;
    int                     signs[Side][Columns];
    Word                    unseen = ~Word{ 0 };
    began = (began << 1 & kept) | IsHigh<TKeys>(next);
    // Rows are read beyond their ends too, where there is memory.
    const bool isDense = beside == 1 && first + rows[0] >= 0 && first + rows[Side - 1] + Columns <= in.span;
    if (isThere)
    {
      Load(in.inside, in.span, first, isDense, [&](int q, int p, std::uint8_t inside) {
        signs[q][p] = inside + (unseenColumns[p] + unseenRows[q]);
      });
      unseen = this->Unseen(signs);
    }
    if (unseen != ~Word{ 0 })
    {
      unseen = this->LoadSorted(keys, in, first, isDense, signs, unseen, form);
    }
    else
    {
      // An odd number of keys in turn.
#pragma unroll
      for (int t = 0; t < Taps; ++t)
      {
        keys[t].bits = t < Taps / 2 ? Hidden::Low : t > Taps / 2 ? static_cast<Word>(Hidden::Low ^ Hidden::Flip) : next;
      }
      next ^= Hidden::Flip;
    }
    blank = (blank << 1 & kept) | (static_cast<std::uint32_t>(unseen) & LineBits<TKeys>);
  }

  /** Whether the median of the voxels that are seen in the last VPlanes planes is one rank below that of all, in all
   * bits: their number is even, and one more of the others got the highest key. */
  template <int VPlanes>
  __device__ __forceinline__ Word
  IsBelow() const
  {
    return SpreadLines<TKeys>(began >> (VPlanes - 1) & ~IsHigh<TKeys>(next) & LineBits<TKeys>);
  }
  template <int VPlanes>
  __device__ __forceinline__ bool
  IsEmpty(int line) const
  {
    constexpr std::uint32_t all = (1u << VPlanes) - 1;
    return (blank >> 16 * line & all) == all;
  }

private:
  /** Calls take(q, p, number) for those of a plane. */
  template <typename T, typename TTake>
  __device__ __forceinline__ void
  Load(const T * __restrict__ from, std::int64_t span, std::int64_t first, bool isDense, TTake && take) const
  {
    if (isDense)
    {
#pragma unroll
      for (int q = 0; q < Side; ++q)
      {
        const T * const row = from + (first + rows[q]);
#pragma unroll
        for (int p = 0; p < Columns; ++p)
        {
          take(q, p, __ldg(row + p));
        }
      }
      return;
    }
#pragma unroll
    for (int q = 0; q < Side; ++q)
    {
#pragma unroll
      for (int p = 0; p < Columns; ++p)
      {
        take(q, p, __ldg(from + min(max(first + rows[q] + p * beside, std::int64_t{ 0 }), span - 1)));
      }
    }
  }

  __device__ __forceinline__ static Word
  HiddenAt(const int (&signs)[Side][Columns], int t)
  {
    return SpreadSigns<TKeys>(signs[t / Side][t % Side], signs[t / Side][t % Side + TKeys::Lines - 1]);
  }
  /** The bits of windows whose voxels are all hidden. */
  __device__ __forceinline__ static Word
  Unseen(const int (&signs)[Side][Columns])
  {
    if constexpr (TKeys::Lines == 1)
    {
      int all = -1;
#pragma unroll
      for (int t = 0; t < Taps; ++t)
      {
        all &= signs[t / Side][t % Side];
      }
      return SpreadSigns<TKeys>(all, all);
    }
    else
    {
      Word all = ~Word{ 0 };
#pragma unroll
      for (int t = 0; t < Taps; ++t)
      {
        all &= HiddenAt(signs, t);
      }
      return all;
    }
  }

  /** Hides NaN. Gives where all is hidden then. */
  __device__ __forceinline__ static Word
  HideNaN(const TKeys (&taps)[Taps], int (&signs)[Side][Columns], Word unseen, KeyForm form)
  {
    if constexpr (sizeof(Key) >= 4)
    {
      NaNWatch nans;
#pragma unroll
      for (int t = 0; t < Taps; ++t)
      {
        nans.See(taps[t], form);
      }
      if (nans.MayBe())
      {
#pragma unroll
        for (int t = 0; t < Taps; ++t)
        {
          signs[t / Side][t % Side] |= IsNaNOf(taps[t], form) ? -1 : 0;
        }
        return Unseen(signs);
      }
    }
    return unseen;
  }

  /** Gives where all is hidden. */
  __device__ __forceinline__ Word
  LoadSorted(TKeys (&keys)[Taps], const MaskedVoxels<Key> & in, std::int64_t first, bool isDense,
             int (&signs)[Side][Columns], Word unseen, KeyForm form)
  {
    Word raw[Side][Columns];
    Load(in.voxels, in.span, first, isDense, [&](int q, int p, Key voxel) { raw[q][p] = voxel; });
    TKeys taps[Taps];
#pragma unroll
    for (int t = 0; t < Taps; ++t)
    {
      taps[t] = TKeys::From(raw[t / Side][t % Side], raw[t / Side][t % Side + TKeys::Lines - 1]);
    }
    unseen = HideNaN(taps, signs, unseen, form);
#pragma unroll
    for (int t = 0; t < Taps; ++t)
    {
      const TKeys key = ToOrdered(taps[t], form);
      if constexpr (TKeys::Lines == 1)
      {
        const bool isHidden = signs[t / Side][t % Side] < 0;
        taps[t].bits = isHidden ? next : key.bits;
        next = isHidden ? next ^ Hidden::Flip : next;
      }
      else
      {
        const Word bits = HiddenAt(signs, t);
        taps[t] = Choose<TKeys>(bits, { next }, key);
        next ^= bits;
      }
    }
    FindKeys<SortingNetwork<Taps>, 0>(keys, [&](int wire) { return taps[wire]; });
    return unseen;
  }
};

/** Merges what of three sorted lists of nine, put side by side, may have the ranks 12 and 13. */
template <int VWires>
struct MergingEnds
{
  static constexpr int Wires = VWires;

  static constexpr Network<Wires>
  Make()
  {
    Network<Wires> network;
    const int      wires[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    network.Merge(wires, 5, wires + 5, 4, network.order);
    network.Prune(1, 7);
    return network;
  }
  static constexpr Network<Wires> Value = Make();
};

/** The key of rank 13 of three sorted lists of nine, or where the bits are set that of rank 12. Put side by side and
 * their rows sorted, 6 keys are surely below and 7 above; the others form three sorted chains. */
template <typename TKeys>
__device__ __forceinline__ TKeys
MedianOf27(const TKeys (&a)[9], const TKeys (&b)[9], const TKeys (&c)[9], typename TKeys::Word isBelow)
{
  TKeys chains[9];
#pragma unroll
  for (int i = 0; i < 5; ++i)
  {
    chains[i] = Least(Least(a[i + 4], b[i + 4]), c[i + 4]);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
  {
    chains[i + 5] = Greatest(Greatest(a[i], b[i]), c[i]);
  }
  TKeys ends[7];
  FindKeys<MergingEnds<9>, 1>(ends, [&](int wire) { return chains[wire]; });
  // The seventh or eighth of 9 and 5: some of the nine and the rest of the five.
  TKeys result = Choose<TKeys>(isBelow, ends[5], ends[6]);
#pragma unroll
  for (int i = 0; i < 5; ++i)
  {
    const TKeys low = Least(a[i + 2], b[i + 2]);
    const TKeys high = Greatest(a[i + 2], b[i + 2]);
    const TKeys middle = Greatest(low, Least(high, c[i + 2]));
    result = Least(result, Greatest(Choose<TKeys>(isBelow, ends[4 - i], ends[5 - i]), middle));
  }
  return result;
}

/** Stores bits in a voxel of a kind that is known when the kernel runs. */
__device__ __forceinline__ void
StoreBits(std::uint64_t bits, PixelType kind, void * out, std::int64_t offset)
{
  switch (kind)
  {
    case PixelType::UInt8:
    case PixelType::Int8:
      static_cast<std::uint8_t *>(out)[offset] = static_cast<std::uint8_t>(bits);
      return;
    case PixelType::UInt16:
    case PixelType::Int16:
      static_cast<std::uint16_t *>(out)[offset] = static_cast<std::uint16_t>(bits);
      return;
    case PixelType::UInt32:
    case PixelType::Int32:
    case PixelType::Float32:
      static_cast<std::uint32_t *>(out)[offset] = static_cast<std::uint32_t>(bits);
      return;
    default:
      static_cast<std::uint64_t *>(out)[offset] = bits;
  }
}

/** The planes of a line, one after the other, and its outputs. */
template <typename TKeys, int VRadius>
struct MaskedLine
{
  using Key = typename TKeys::Key;

  MaskedPlane<TKeys, VRadius> plane;
  std::int64_t                at;    ///< the next plane
  std::int64_t                first; ///< where it begins
  std::int64_t                to;    ///< the next output
  bool                        isPair;

  __device__ __forceinline__
  MaskedLine(const RankGeometry & g, const RankLine & line)
    : plane(g, line.index)
    , at(line.begin - VRadius)
    , first(0)
    , to(RankLine::Offset(line.index, g.outBuffer, g.outStride))
    , isPair(line.index.axis[g.planeAxes[0]] + 1 < g.out.upper.axis[g.planeAxes[0]])
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      const bool isPlane = a == g.planeAxes[0] || a == g.planeAxes[1];
      first += isPlane ? 0 : ((a == g.lineAxis ? at : line.index.axis[a]) - g.in.lower.axis[a]) * g.inStride.axis[a];
    }
  }
  __device__ __forceinline__ void
  SortNext(TKeys (&keys)[MaskedPlane<TKeys, VRadius>::Taps], const RankGeometry & g, const MaskedVoxels<Key> & in)
  {
    const bool isThere = at >= g.in.lower.axis[g.lineAxis] && at < g.in.upper.axis[g.lineAxis];
    plane.SortNext(keys, in, first, isThere, g.form);
    ++at;
    first += g.inStride.axis[g.lineAxis];
  }
  /** Stores the output of each of the thread's lines that there is. */
  __device__ __forceinline__ void
  Store(TKeys medians, const RankGeometry & g, std::uint64_t empty, void * out)
  {
#pragma unroll
    for (int line = 0; line < TKeys::Lines; ++line)
    {
      const std::int64_t offset = to + line * g.outStride.axis[g.planeAxes[0]];
      if (line == 0 || isPair)
      {
        plane.template IsEmpty<2 * VRadius + 1>(line) ? StoreBits(empty, g.outputKind, out, offset)
                                                      : StoreKey(medians.Get(line), g, out, offset);
      }
    }
    to += g.outStride.axis[g.lineAxis];
  }
};

/** Medians of 3 x 3 x 3 voxels. */
template <typename TKeys>
__global__ void __launch_bounds__(128)
  MaskedMedianOf27Kernel(const __grid_constant__ RankGeometry g,
                         const __grid_constant__ MaskedVoxels<typename TKeys::Key> in, void * __restrict__ out)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; number < g.lines;
       number += step)
  {
    const RankLine       whole(g, number, TKeys::Lines);
    MaskedLine<TKeys, 1> line(g, whole);
    TKeys                lists[3][9];
    int                  left = static_cast<int>(whole.end - whole.begin);
    line.SortNext(lists[0], g, in);
    line.SortNext(lists[1], g, in);
    while (left > 0)
    {
      // The lists are in no order: the newest takes the place of the oldest.
#pragma unroll
      for (int i = 0; i < 3; ++i)
      {
        if (left > 0)
        {
          line.SortNext(lists[(i + 2) % 3], g, in);
          line.Store(MedianOf27(lists[0], lists[1], lists[2], line.plane.template IsBelow<3>()), g, in.empty, out);
          --left;
        }
      }
    }
  }
}

/** Medians of 5 x 5 x 5 voxels: see MedianOf125Kernel. */
template <typename TKeys>
__global__ void
__launch_bounds__(MedianThreads, 3)
  MaskedMedianOf125Kernel(const __grid_constant__ RankGeometry g,
                          const __grid_constant__ MaskedVoxels<typename TKeys::Key> in, void * __restrict__ out)
{
  extern __shared__ std::uint32_t kept[];
  std::uint32_t * const           mine = kept + threadIdx.x / 32 * (KeptKeys * 32) + threadIdx.x % 32;
  const auto                      listAt = [mine](int key) { return KeptList<TKeys>{ mine + key * 32 }; };
  const std::int64_t              step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; number < g.lines;
       number += step)
  {
    const RankLine       whole(g, number, TKeys::Lines);
    MaskedLine<TKeys, 2> line(g, whole);
    KeptList<TKeys>      before = listAt(0);
    KeptList<TKeys>      middle = listAt(50);
    KeptList<TKeys>      oldest = listAt(100);
    KeptList<TKeys>      older = listAt(125);
    TKeys                even[25];
    TKeys                odd[25];
    const auto           pick = [&](TKeys below, TKeys median) {
      return Choose<TKeys>(line.plane.template IsBelow<5>(), below, median);
    };
#pragma unroll 1
    for (int pair = 0; pair < 2; ++pair)
    {
      line.SortNext(even, g, in);
      line.SortNext(odd, g, in);
      Keep<TKeys>(odd, pair == 0 ? oldest : older);
      MergePlanes<TKeys>(even, odd, pair == 0 ? before : middle);
    }
    for (std::int64_t left = whole.end - whole.begin; left > 0; left -= 2)
    {
      line.SortNext(even, g, in);
      line.Store(MedianOf125<TKeys>(before, middle, even, pick), g, in.empty, out);
      if (left == 1)
      {
        break;
      }
      line.SortNext(odd, g, in);
      MergePlanes<TKeys>(even, odd, before);
      line.Store(MedianOf125<TKeys>(middle, before, oldest, pick), g, in.empty, out);
      // Nothing needs the oldest any more.
      Keep<TKeys>(odd, oldest);
      const KeptList<TKeys> pair = before;
      before = middle;
      middle = pair;
      const KeptList<TKeys> newest = oldest;
      oldest = older;
      older = newest;
    }
  }
}

template <typename TKeys>
void
Launch(RankGeometry g, const MaskedVoxels<typename TKeys::Key> & in, void * out, cudaStream_t stream)
{
  DivideLines(g, TKeys::Lines);
  if (g.lineRadius == 1)
  {
    MaskedMedianOf27Kernel<TKeys><<<BlocksFor(g.lines, 128), 128, 0, stream>>>(g, in, out);
    CheckLaunch("MaskedMedianOf27Kernel");
    return;
  }
  if constexpr (sizeof(typename TKeys::Key) <= 4)
  {
    const int         threads = ThreadsOfKeptLists();
    const std::size_t bytes = KeptBytes(threads);
    AllowSharedMemory(MaskedMedianOf125Kernel<TKeys>, bytes);
    MaskedMedianOf125Kernel<TKeys><<<BlocksFor(g.lines, threads), threads, bytes, stream>>>(g, in, out);
    CheckLaunch("MaskedMedianOf125Kernel");
  }
}

const RankOperation &
RankOf(const DomainOperation & domain)
{
  return static_cast<const RankOperation &>(*domain.window);
}

/** The mask as bytes that lie as the voxels do, where the run's own does not serve, and both continued beyond the
 * image's edge. */
struct MaskedMedianMemory
{
  WindowBoxes boxes;
  std::size_t bytes{ 0 };
  BufferView  made;

  MaskedMedianMemory(const DomainOperation & domain, const ChunkShape & shape, void * scratch)
    : boxes(shape.outputBox, shape.image, RankOf(domain).EffectiveRadius(shape.image.Extents()),
            RankOf(domain).boundary.mode)
    , made(TakeImage(static_cast<char *>(scratch), bytes, PixelType::UInt8, shape.inputBox))
  {}
};

bool
LiesAsVoxels(const BufferView & mask, const BufferView & voxels)
{
  return mask.kind == PixelType::UInt8 && mask.box == voxels.box && mask.stride == voxels.stride;
}

template <typename TPixel>
void
Run(const KernelCall & call)
{
  using Key = typename RankKey<TPixel>::Type;
  const DomainOperation &  domain = MaskedDomainOf(*call.operation);
  const RankOperation &    rank = RankOf(domain);
  const MaskedMedianMemory memory(domain, ShapeOfMasked(call), call.scratch);
  KernelCall               ofMask = call;
  // NaN is left out as it is loaded.
  ofMask.inputs[0] = call.inputs[1];
  if (domain.domain != DomainKind::Mask || !LiesAsVoxels(call.inputs[1], call.inputs[0]))
  {
    ofMask.inputs[0] = memory.made;
    MakeMask(call, memory.made, memory.bytes);
  }
  char *         scratch = static_cast<char *>(call.scratch) + memory.bytes;
  const auto     voxels = PadImage<TPixel>(call, memory.boxes, rank.boundary, scratch);
  WindowBoundary ofOnes = rank.boundary;
  ofOnes.constant = 1.0;
  const auto   inside = PadImage<std::uint8_t>(ofMask, memory.boxes, ofOnes, scratch);
  RankGeometry g = RankGeometryOf(call.output.box, memory.boxes.radius);
  g.in = voxels.box;
  g.inStride = voxels.stride;
  g.outStride = call.output.stride;
  g.form = FormOfKeys<TPixel>();
  g.inputKind = call.inputs[0].kind;
  g.outputKind = call.output.kind;
  MaskedVoxels<Key> in{ reinterpret_cast<const Key *>(voxels.data), inside.data, 1, 0 };
  for (int a = 0; a < MaxDimension; ++a)
  {
    in.span += (g.in.Extent(a) - 1) * g.inStride[a];
  }
  DispatchPixelType(call.output.kind, [&](auto pixel) {
    const auto empty = EmptyPixel<decltype(pixel)>(domain.emptyValue);
    std::memcpy(&in.empty, &empty, sizeof(empty));
  });
  using Keys = std::conditional_t<std::is_same<TPixel, float>::value, RealKeys, MedianKeys<Key>>;
  Launch<Keys>(g, in, call.output.data, StreamOf(call));
}

} // namespace

bool
MaskedMediansTake(const DomainOperation & domain, const ChunkShape & shape)
{
  const auto * const rank = dynamic_cast<const RankOperation *>(domain.window.get());
  if (!rank || domain.marksSeen || rank->fraction != 0.5)
  {
    return false;
  }
  const RankGeometry g = RankGeometryOf(shape.outputBox, rank->EffectiveRadius(shape.image.Extents()));
  const int          largest = PixelSize(shape.inputKinds[0]) <= 4 ? 2 : 1;
  return g.lineRadius > 0 && g.lineRadius <= largest && g.planeRadii[0] == g.lineRadius &&
         g.planeRadii[1] == g.lineRadius;
}

void
RunMaskedMedians(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) { Run<decltype(pixel)>(call); });
}

std::size_t
ScratchOfMaskedMedians(const DomainOperation & domain, const ChunkShape & shape)
{
  const MaskedMedianMemory memory(domain, shape, nullptr);
  const BoundaryMode       mode = RankOf(domain).boundary.mode;
  return memory.bytes + ContinuedBytes(memory.boxes, mode, PixelSize(shape.inputKinds[0])) +
         ContinuedBytes(memory.boxes, mode, 1);
}

double
CostOfMaskedMedians(const DomainOperation & domain, const ChunkShape & shape)
{
  const double side = 2.0 * static_cast<double>(RankOf(domain).EffectiveRadius(shape.image.Extents())[0]) + 1.0;
  const double bytes = (PixelSize(shape.inputKinds[0]) <= 2 ? 2.0 : 3.0) * side * side * side;
  return bytes * static_cast<double>(shape.outputBox.NumberOfVoxels());
}

} // namespace chunkwise
