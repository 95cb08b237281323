/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseHostKernelList.h"

#include <vector>

namespace chunkwise
{

namespace
{

using Run = FlatExtremumOperation::Run;

template <typename TKey>
const RowFunctions<TKey> &
LargestOf(const CpuLevel & level)
{
  if constexpr (sizeof(TKey) == 4)
  {
    return level.largest32;
  }
  else
  {
    return level.largest64;
  }
}

/** The parts of a worker's memory. */
template <typename TKey>
struct FlatMemory
{
  TKey * keys{ nullptr };
  TKey * largest{ nullptr };
  TKey * parts[2]{}; ///< maxima of 2, 4, 8 ... neighbours

  std::int64_t
  LayOut(const WindowBoxes & boxes, char * memory)
  {
    std::int64_t bytes = 0;
    const auto   take = [&](TKey *& part, std::int64_t n) {
      part = reinterpret_cast<TKey *>(memory + bytes);
      bytes += RoundToLine(n * static_cast<std::int64_t>(sizeof(TKey)));
    };
    take(keys, boxes.padded.NumberOfVoxels());
    take(largest, boxes.after[boxes.count - 1].Extent(0));
    take(parts[0], boxes.padded.Extent(0));
    take(parts[1], boxes.padded.Extent(0));
    return bytes;
  }
};

/** largest[i] = max(largest[i], line[i], ..., line[i + length - 1]) */
template <typename TKey>
void
JoinRun(const RowFunctions<TKey> & rows, const FlatMemory<TKey> & memory, const TKey * line, std::int64_t length,
        std::int64_t n)
{
  std::int64_t width = 1;
  for (int to = 0; 2 * width <= length; to = 1 - to)
  {
    rows.add(memory.parts[to], line, line + width, n + length - 2 * width);
    line = memory.parts[to];
    width *= 2;
  }
  rows.add(memory.largest, memory.largest, line, n);
  if (width < length)
  {
    rows.add(memory.largest, memory.largest, line + length - width, n);
  }
}

template <typename TKey>
TKey
FlipOf(const FlatExtremumOperation & operation)
{
  return operation.minimum ? TKey{ -1 } : TKey{ 0 };
}

/** The functions for the input's and the output's pixel types, beside those for the keys. */
template <typename TKey>
struct KeyedKinds
{
  TKey lowest;
  /** The keys of a tile with its surroundings. */
  void (*load)(const KernelCall & call, const FlatExtremumOperation & operation, const Box & padded, TKey * keys);
  /** `n` keys as a row of the output, from `at` on. */
  void (*store)(const BufferView & output, const Coordinates & at, std::int64_t n, const TKey * keys, TKey flip);
};

template <typename TPixel>
void
LoadKeys(const KernelCall & call, const FlatExtremumOperation & operation, const Box & padded,
         typename OrderedKey<TPixel>::Type * keys)
{
  using KeyOf = OrderedKey<TPixel>;
  const auto flip = FlipOf<typename KeyOf::Type>(operation);
  const bool cuts = operation.boundary.mode == BoundaryMode::Renormalized;
  LoadTile<TPixel>(call.inputs[0],
                   call.image,
                   padded,
                   cuts ? BoundaryMode::Constant : operation.boundary.mode,
                   cuts ? KeyOf::Lowest : KeyOf::From(ConstantPixel<TPixel>(operation.boundary.constant), flip),
                   keys,
                   [flip](TPixel pixel) { return KeyOf::From(pixel, flip); });
}

template <typename TPixel, typename TOut>
void
StoreKeys(const BufferView & output, const Coordinates & at, std::int64_t n,
          const typename OrderedKey<TPixel>::Type * keys, typename OrderedKey<TPixel>::Type flip)
{
  StoreRow<TOut>(
    output, at, n, [keys, flip](std::int64_t x) { return static_cast<TOut>(FlatResult<TPixel>(keys[x], flip)); });
}

template <typename TKey>
void
RunTile(const KernelCall & call, const FlatExtremumOperation & operation, const std::vector<Run> & runs,
        const WindowBoxes & boxes, const FlatMemory<TKey> & memory, const KeyedKinds<TKey> & kinds)
{
  const RowFunctions<TKey> & rows = LargestOf<TKey>(GetCpuLevel());
  const TKey                 flip = FlipOf<TKey>(operation);
  const Box &                padded = boxes.padded;
  kinds.load(call, operation, padded, memory.keys);
  const Box          output = boxes.after[boxes.count - 1];
  const std::int64_t n = output.Extent(0);
  ForEachRow(output, [&](const Coordinates & at) {
    std::fill(memory.largest, memory.largest + n, kinds.lowest);
    for (const Run & run : runs)
    {
      Coordinates first = at;
      for (int a = 0; a < MaxDimension; ++a)
      {
        first[a] += run.first[a];
      }
      JoinRun(rows, memory, memory.keys + DenseOffset(padded, first), run.length, n);
    }
    kinds.store(call.output, at, n, memory.largest, flip);
  });
}

template <typename TKey>
std::int64_t
BytesOf(const Box & output, const Coordinates & radius)
{
  return TileBytes(output, radius, [](const WindowBoxes & boxes) { return FlatMemory<TKey>().LayOut(boxes, nullptr); });
}

template <typename TKey>
void
RunTiles(const KernelCall & call, const KeyedKinds<TKey> & kinds)
{
  const auto &           operation = static_cast<const FlatExtremumOperation &>(*call.operation);
  const std::vector<Run> runs = operation.GetRuns();
  const std::int64_t     bytes = BytesOf<TKey>(call.output.box, operation.radius);
  ForEachTile(call, operation.radius, [&](const Box & tile, unsigned int worker) {
    // Windows are whole: the keys of what is beyond the image's edge say so.
    const WindowBoxes boxes(tile, call.image, operation.radius, BoundaryMode::Mirror);
    FlatMemory<TKey>  memory;
    memory.LayOut(boxes, static_cast<char *>(call.scratch) + bytes * worker);
    RunTile(call, operation, runs, boxes, memory, kinds);
  });
}

void
RunFlatExtremum(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Key = typename OrderedKey<Pixel>::Type;
    KeyedKinds<Key> kinds{ OrderedKey<Pixel>::Lowest, LoadKeys<Pixel>, nullptr };
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) { kinds.store = StoreKeys<Pixel, decltype(out)>; });
    RunTiles(call, kinds);
  });
}

std::size_t
ScratchOfFlatExtremum(const Operation & operation, const ChunkShape & shape)
{
  const Coordinates & radius = static_cast<const FlatExtremumOperation &>(operation).radius;
  return DispatchPixelType(shape.inputKinds[0], [&](auto pixel) {
    return static_cast<std::size_t>(BytesOf<typename OrderedKey<decltype(pixel)>::Type>(shape.outputBox, radius) *
                                    shape.concurrency);
  });
}

} // namespace

void
RegisterHostFlatExtremum(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunFlatExtremum;
  kernel.scratchBytes = ScratchOfFlatExtremum;
  registry.Register("extremum.flat", { kernel });
}

} // namespace chunkwise
