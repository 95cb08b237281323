/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBinOperation.h"
#include "chunkwiseConvertVoxels.h"
#include "chunkwiseCpuBinRows.h"
#include "chunkwiseCpuLevels.h"
#include "chunkwiseCpuGrid.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseStridedVoxels.h"

#include <cmath>
#include <cstring>

namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(BinLevel, MakeBinLevel)

namespace
{

/** Columns that are joined together. */
constexpr std::int64_t BinColumns = 1024;
/** The most voxels of a block of which many have their medians together, and the most of these blocks. */
constexpr std::int64_t BinLines = 64;
constexpr std::int64_t BinLineLength = 64;

const BinLevel &
GetBinLevel()
{
  static FunctionsAtLevels<BinLevel> levels{ CHUNKWISE_AT_LEVELS(MakeBinLevel) };
  return levels.Get();
}

const BinOperation &
BinOf(const Operation & operation)
{
  return dynamic_cast<const BinOperation &>(operation);
}

/** The box of one row of results. */
Box
RowBox(const Coordinates & at, std::int64_t n)
{
  Box box{ at, at };
  for (int a = 0; a < MaxDimension; ++a)
  {
    box.upper[a] += a == 0 ? n : 1;
  }
  return box;
}

const char *
VoxelsAt(const BufferView & view, const Coordinates & at)
{
  return static_cast<const char *>(view.data) + view.Offset(at) * static_cast<std::int64_t>(PixelSize(view.kind));
}

/** Stores results of a row of the output, pixels of `kind`. */
void
StoreBins(const BufferView & output, const Coordinates & at, PixelType kind, const void * results, std::int64_t n)
{
  char * const to = const_cast<char *>(VoxelsAt(output, at));
  if (kind != output.kind)
  {
    ConvertVoxels(results, kind, to, output.kind, n, output.stride[0]);
    return;
  }
  CopyStrided(PixelSize(kind), to, output.stride[0], results, 1, n);
}

/** Sums and extremes: rows are joined to columns, and columns to results. */
class BinJoiner
{
public:
  BinJoiner(const KernelCall & call, const BinOperation & operation)
    : m_Call(call)
    , m_Operation(operation)
    , m_Sums(operation.method <= BinMethod::Sum)
  {
    const auto       kind = static_cast<int>(call.inputs[0].kind);
    const BinLevel & level = GetBinLevel();
    if (!m_Sums)
    {
      const int largest = operation.method == BinMethod::Maximum ? 1 : 0;
      m_Join = level.join[kind][largest];
      m_JoinGroups = level.joinGroups[kind][largest];
      m_Bytes = static_cast<std::int64_t>(PixelSize(call.inputs[0].kind));
      return;
    }
    const auto accumulator = static_cast<int>(this->ChooseAccumulator());
    m_Finish = GetCpuLevel().finishMean[accumulator][static_cast<int>(call.output.kind)];
    m_Join = level.add[kind][m_IsWide ? 1 : 0];
    m_JoinGroups = level.addGroups[accumulator];
  }

  void
  RunRow(const Coordinates & start, std::int64_t n) const
  {
    alignas(64) char   columns[BinColumns * sizeof(Int128)];
    alignas(64) char   results[BinColumns * sizeof(Int128)];
    const std::int64_t factor = m_Operation.factor[0];
    const std::int64_t together = std::max<std::int64_t>(1, BinColumns / factor);
    for (std::int64_t first = 0; first < n; first += together)
    {
      Coordinates at = start;
      at[0] += first;
      const std::int64_t count = std::min(together, n - first);
      const Box          block = m_Operation.GetBlocks(RowBox(at, count));
      const std::int64_t length = block.Extent(0);
      // The last block of a row may have fewer columns.
      const std::int64_t whole = length / factor;
      for (std::int64_t done = 0; done < length; done += BinColumns)
      {
        const std::int64_t part = std::min(BinColumns, length - done);
        this->JoinRows(columns, block, done, part);
        if (together == 1)
        {
          m_JoinGroups(results, columns, part, 1, done == 0);
          continue;
        }
        m_JoinGroups(results, columns, factor, whole, true);
        if (whole < count)
        {
          m_JoinGroups(results + whole * m_Bytes, columns + whole * factor * m_Bytes, length - whole * factor, 1, true);
        }
      }
      const std::int64_t rows = block.NumberOfVoxels() / length;
      this->Finish(at, results, std::min(whole, count), factor * rows);
      if (whole < count)
      {
        at[0] += whole;
        this->Finish(at, results + whole * m_Bytes, 1, (length - whole * factor) * rows);
      }
    }
  }

private:
  Accumulator
  ChooseAccumulator()
  {
    const PixelType kind = m_Call.inputs[0].kind;
    const auto      voxels = static_cast<double>(m_Operation.CountVoxels());
    const auto      bits = static_cast<int>(8 * PixelSize(kind));
    m_Bytes = 8;
    if (IsFloatingPoint(kind))
    {
      return Accumulator::Float64;
    }
    m_IsWide = bits == 64 || voxels * static_cast<double>(std::int64_t{ 1 } << bits) >= (bits == 32 ? 0x1p63 : 0x1p31);
    if (bits <= 16)
    {
      m_Bytes = m_IsWide ? 8 : 4;
      return m_IsWide ? Accumulator::Int64 : Accumulator::Int32;
    }
    m_Bytes = m_IsWide ? 16 : 8;
    return m_IsWide ? Accumulator::Int128 : Accumulator::Int64;
  }

  /** Joins `n` columns of a block's rows, from its column `first` on. */
  void
  JoinRows(char * columns, const Box & block, std::int64_t first, std::int64_t n) const
  {
    const BufferView & input = m_Call.inputs[0];
    const std::size_t  size = PixelSize(input.kind);
    alignas(64) char   voxels[BinColumns * sizeof(double)];
    bool               begins = true;
    ForEachRow(block, [&](Coordinates at) {
      at[0] += first;
      const char * from = VoxelsAt(input, at);
      if (input.stride[0] != 1)
      {
        CopyStrided(size, voxels, 1, from, input.stride[0], n);
        from = voxels;
      }
      m_Join(columns, from, n, begins);
      begins = false;
    });
  }

  void
  Finish(const Coordinates & at, const char * results, std::int64_t n, std::int64_t voxels) const
  {
    const BufferView & output = m_Call.output;
    if (!m_Sums)
    {
      StoreBins(output, at, m_Call.inputs[0].kind, results, n);
      return;
    }
    alignas(64) char pixels[BinColumns * sizeof(double)];
    m_Finish(pixels, results, m_Operation.method == BinMethod::Mean ? voxels : 1, n, false);
    StoreBins(output, at, output.kind, pixels, n);
  }

  const KernelCall &   m_Call;
  const BinOperation & m_Operation;
  bool                 m_Sums;
  bool                 m_IsWide{ false };
  BinJoinRow           m_Join{ nullptr };
  BinJoinGroups        m_JoinGroups{ nullptr };
  void (*m_Finish)(void * out, const void * in, std::int64_t count, std::int64_t n, bool truncates){ nullptr };
  std::int64_t m_Bytes{ 0 }; ///< of a column
};

/** The weight that the voxels within the image have along an axis. */
std::int64_t
SumGaussianWeights(const BinOperation & operation, int axis, std::int64_t bin)
{
  const std::int64_t factor = operation.factor[axis];
  std::int64_t       sum = 0;
  for (std::int64_t place = 1 - factor; place < 2 * factor - 1; ++place)
  {
    const std::int64_t at = bin * factor + place;
    sum += at >= 0 && at < operation.image[axis] ? BinOperation::GetGaussianWeight(place, factor) : 0;
  }
  return sum;
}

/** Gaussian means: rows are added to columns with their weights, and columns to results. */
class BinSmoother
{
public:
  BinSmoother(const KernelCall & call, const BinOperation & operation)
    : m_Call(call)
    , m_Operation(operation)
  {
    const auto accumulator = static_cast<int>(this->ChooseAccumulator());
    m_Finish = GetCpuLevel().finishMean[accumulator][static_cast<int>(call.output.kind)];
    m_Weigh = GetBinLevel().weigh[static_cast<int>(call.inputs[0].kind)][accumulator];
    m_WeighGroups = GetBinLevel().weighGroups[accumulator];
    const std::int64_t factor = operation.factor[0];
    for (std::int64_t k = 0; k < 3 * factor - 2; ++k)
    {
      m_Weights[k] = BinOperation::GetGaussianWeight(k + 1 - factor, factor);
    }
  }

  void
  RunRow(const Coordinates & start, std::int64_t n) const
  {
    alignas(64) char   columns[BinColumns * sizeof(Int128)];
    alignas(64) char   results[BinColumns * sizeof(Int128)];
    alignas(64) char   pixels[BinColumns * sizeof(double)];
    const std::int64_t factor = m_Operation.factor[0];
    const std::int64_t together = (BinColumns - 2 * factor + 2) / factor;
    std::int64_t       weightOfRows = 1;
    for (int a = 1; a < MaxDimension; ++a)
    {
      weightOfRows *= SumGaussianWeights(m_Operation, a, start[a]);
    }
    for (std::int64_t first = 0; first < n; first += together)
    {
      Coordinates at = start;
      at[0] += first;
      const std::int64_t count = std::min(together, n - first);
      this->WeighRows(columns, at, count);
      m_WeighGroups(results, columns, factor, m_Weights, count);
      // Results at the image's ends have less weight than those between.
      for (std::int64_t begin = 0, end = 0; begin < count; begin = end)
      {
        const std::int64_t weight = SumGaussianWeights(m_Operation, 0, at[0] + begin);
        end = begin + 1;
        while (end < count && SumGaussianWeights(m_Operation, 0, at[0] + end) == weight)
        {
          ++end;
        }
        m_Finish(pixels, results + begin * m_Bytes, weight * weightOfRows, end - begin, false);
        Coordinates to = at;
        to[0] += begin;
        StoreBins(m_Call.output, to, m_Call.output.kind, pixels, end - begin);
      }
    }
  }

private:
  Accumulator
  ChooseAccumulator()
  {
    const PixelType kind = m_Call.inputs[0].kind;
    const auto      voxels = static_cast<double>(m_Operation.CountVoxels());
    const auto      bits = static_cast<int>(8 * PixelSize(kind));
    const double    most = voxels * voxels * voxels * std::ldexp(1.0, bits);
    m_Bytes = 8;
    if (IsFloatingPoint(kind))
    {
      return Accumulator::Float64;
    }
    m_Bytes = most < 0x1p31 ? 4 : most < 0x1p63 ? 8 : 16;
    return m_Bytes == 4 ? Accumulator::Int32 : m_Bytes == 8 ? Accumulator::Int64 : Accumulator::Int128;
  }

  /** Columns for `count` results; those outside the image are 0. */
  void
  WeighRows(char * columns, const Coordinates & at, std::int64_t count) const
  {
    const BufferView & input = m_Call.inputs[0];
    const std::size_t  size = PixelSize(input.kind);
    const Box          windows = m_Operation.GetWindows(RowBox(at, count));
    const std::int64_t factor = m_Operation.factor[0];
    const std::int64_t columnsOfAll = count * factor + 2 * (factor - 1);
    const std::int64_t before = windows.lower[0] - (at[0] * factor - (factor - 1));
    const std::int64_t n = windows.Extent(0);
    std::memset(columns, 0, static_cast<std::size_t>(before * m_Bytes));
    std::memset(columns + (before + n) * m_Bytes, 0, static_cast<std::size_t>((columnsOfAll - before - n) * m_Bytes));
    alignas(64) char voxels[BinColumns * sizeof(double)];
    bool             begins = true;
    ForEachRow(windows, [&](const Coordinates & row) {
      std::int64_t weight = 1;
      for (int a = 1; a < MaxDimension; ++a)
      {
        weight *= BinOperation::GetGaussianWeight(row[a] - at[a] * m_Operation.factor[a], m_Operation.factor[a]);
      }
      const char * from = VoxelsAt(input, row);
      if (input.stride[0] != 1)
      {
        CopyStrided(size, voxels, 1, from, input.stride[0], n);
        from = voxels;
      }
      m_Weigh(columns + before * m_Bytes, from, n, weight, begins);
      begins = false;
    });
  }

  const KernelCall &   m_Call;
  const BinOperation & m_Operation;
  BinWeighRow          m_Weigh{ nullptr };
  BinWeighGroups       m_WeighGroups{ nullptr };
  void (*m_Finish)(void * out, const void * in, std::int64_t count, std::int64_t n, bool truncates){ nullptr };
  std::int64_t m_Bytes{ 0 }; ///< of a column
  std::int64_t m_Weights[3 * BinOperation::LargestGaussianFactor]{};
};

/** Keys in ascending order, with NaN last: RankKey has NaN as 0, which is below all. `keepsZero`: -0 is below +0, else
 * it is +0. */
template <typename TPixel>
void
ReadKeys(void * keys, const void * voxels, std::int64_t stride, std::int64_t n, bool keepsZero)
{
  using Key = typename RankKey<TPixel>::Type;
  const auto * const from = static_cast<const TPixel *>(voxels);
  Key * const        to = static_cast<Key *>(keys);
  for (std::int64_t i = 0; i < n; ++i)
  {
    if constexpr (RankKey<TPixel>::IsReal)
    {
      to[i] = static_cast<Key>(RankKey<TPixel>::From(keepsZero ? from[i * stride] : from[i * stride] + 0) - 1);
    }
    else
    {
      to[i] = RankKey<TPixel>::From(from[i * stride]);
    }
  }
}

template <typename TPixel>
void
WriteKeys(void * pixels, const void * keys, std::int64_t n)
{
  using Key = typename RankKey<TPixel>::Type;
  const Key * const from = static_cast<const Key *>(keys);
  for (std::int64_t i = 0; i < n; ++i)
  {
    static_cast<TPixel *>(pixels)[i] =
      RankKey<TPixel>::To(RankKey<TPixel>::IsReal ? static_cast<Key>(from[i] + 1) : from[i]);
  }
}

/** Medians and modes: the voxels of each block as keys. */
template <typename Key>
class BinSelector
{
public:
  BinSelector(const KernelCall & call, const BinOperation & operation, void * keys)
    : m_Call(call)
    , m_Operation(operation)
    , m_IsMedian(operation.method == BinMethod::Median)
    , m_IsReal(IsFloatingPoint(call.inputs[0].kind))
    , m_Keys(static_cast<Key *>(keys))
  {
    DispatchPixelType(call.inputs[0].kind, [this](auto pixel) {
      m_Read = &ReadKeys<decltype(pixel)>;
      m_Write = &WriteKeys<decltype(pixel)>;
    });
  }

  void
  RunRow(const Coordinates & start, std::int64_t n) const
  {
    const bool isSmall = m_Operation.CountVoxels() <= (m_IsMedian ? BinLines : BinLines / 2);
    for (std::int64_t done = 0, count = 0; done < n; done += count)
    {
      Coordinates at = start;
      at[0] += done;
      count = std::min(BinLineLength, n - done);
      Key keys[BinLineLength];
      Key pixels[BinLineLength];
      if (isSmall)
      {
        // The last block may have fewer voxels, and comes by itself.
        const Box blocks = m_Operation.GetBlocks(RowBox(at, count));
        count = blocks.Extent(0) < count * m_Operation.factor[0] && count > 1 ? count - 1 : count;
        this->SelectTogether(keys, at, count);
      }
      else
      {
        for (std::int64_t i = 0; i < count; ++i)
        {
          Coordinates voxel = at;
          voxel[0] += i;
          const std::int64_t voxels = this->ReadBlock(voxel);
          keys[i] = m_IsMedian ? this->FindMedian(voxels) : this->FindMode(voxels);
        }
      }
      m_Write(pixels, keys, count);
      StoreBins(m_Call.output, at, m_Call.inputs[0].kind, pixels, count);
    }
  }

private:
  static constexpr Key Largest = static_cast<Key>(-1); ///< of real numbers: NaN

  /** The number of the median of n voxels in ascending order. */
  static std::int64_t
  MedianOf(std::int64_t n)
  {
    return (n - 1) / 2;
  }

  /** The keys of a voxel's block; returns their number. */
  std::int64_t
  ReadBlock(const Coordinates & voxel) const
  {
    const BufferView & input = m_Call.inputs[0];
    const Box          block = m_Operation.GetBlocks(RowBox(voxel, 1));
    Key *              key = m_Keys;
    ForEachRow(block, [&](const Coordinates & at) {
      m_Read(key, VoxelsAt(input, at), input.stride[0], block.Extent(0), m_IsMedian);
      key += block.Extent(0);
    });
    return key - m_Keys;
  }

  Key
  FindMedian(std::int64_t n) const
  {
    std::nth_element(m_Keys, m_Keys + MedianOf(n), m_Keys + n);
    return m_Keys[MedianOf(n)];
  }

  Key
  FindMode(std::int64_t n) const
  {
    std::sort(m_Keys, m_Keys + n);
    Key          best = Largest;
    std::int64_t most = 0;
    for (std::int64_t begin = 0, end = 0; begin < n && !(m_IsReal && m_Keys[begin] == Largest); begin = end)
    {
      end = std::upper_bound(m_Keys + begin, m_Keys + n, m_Keys[begin]) - m_Keys;
      best = end - begin > most ? m_Keys[begin] : best;
      most = std::max(most, end - begin);
    }
    return best;
  }

  /** The results of `n` blocks beside each other with equally many voxels: the voxels at one place of each block are a
   * line. */
  void
  SelectTogether(Key * results, const Coordinates & at, std::int64_t n) const
  {
    const Box          blocks = m_Operation.GetBlocks(RowBox(at, n));
    const std::int64_t columns = n == 1 ? blocks.Extent(0) : m_Operation.factor[0];
    alignas(64) Key    keys[BinLines * BinLineLength];
    const Key *        lines[BinLines];
    std::int64_t       count = 0;
    const BufferView & input = m_Call.inputs[0];
    ForEachRow(blocks, [&](Coordinates start) {
      for (std::int64_t k = 0; k < columns; ++k, ++count, ++start[0])
      {
        Key * const to = keys + count * BinLineLength;
        lines[count] = to;
        m_Read(to, VoxelsAt(input, start), input.stride[0] * columns, n, m_IsMedian);
      }
    });
    if (m_IsMedian)
    {
      std::int32_t ranks[BinLineLength];
      std::fill(ranks, ranks + n, static_cast<std::int32_t>(MedianOf(count)));
      RankFunctionsOf<Key>(GetCpuLevel()).find(results, lines, count, 1, ranks, n);
      return;
    }
    Key most[BinLineLength]{};
    std::fill(results, results + n, Largest);
    for (std::int64_t l = 0; l < count; ++l)
    {
      Key times[BinLineLength]{};
      for (std::int64_t m = 0; m < count; ++m)
      {
        const Key * const a = lines[m];
        const Key * const b = lines[l];
        for (std::int64_t i = 0; i < n; ++i)
        {
          times[i] = static_cast<Key>(times[i] + (a[i] == b[i] ? 1 : 0));
        }
      }
      for (std::int64_t i = 0; i < n; ++i)
      {
        const Key  key = lines[l][i];
        const bool isLower = (times[i] == most[i]) & (key < results[i]);
        const bool isBetter = ((times[i] > most[i]) | isLower) & !(m_IsReal & (key == Largest));
        results[i] = isBetter ? key : results[i];
        most[i] = isBetter ? times[i] : most[i];
      }
    }
  }

  const KernelCall &   m_Call;
  const BinOperation & m_Operation;
  const bool           m_IsMedian;
  const bool           m_IsReal;
  Key *                m_Keys;
  void (*m_Read)(void * keys, const void * voxels, std::int64_t stride, std::int64_t n, bool keepsZero){ nullptr };
  void (*m_Write)(void * pixels, const void * keys, std::int64_t n){ nullptr };
};

/** The bytes of a block's keys for a worker; 0: blocks are joined. */
std::int64_t
KeyBytes(const BinOperation & operation, PixelType kind)
{
  return operation.method != BinMethod::Median && operation.method != BinMethod::Mode
           ? 0
           : RoundToLine(operation.CountVoxels() * static_cast<std::int64_t>(PixelSize(kind)));
}

void
RunBin(const KernelCall & call)
{
  const BinOperation & operation = BinOf(*call.operation);
  const std::int64_t   bytes = KeyBytes(operation, call.inputs[0].kind);
  const Coordinates    tile = { { std::max<std::int64_t>(1, 16384 / operation.factor[0]), 8, 1, 1, 1 } };
  if (operation.method == BinMethod::Gaussian)
  {
    const BinSmoother smoother(call, operation);
    return ForEachTileOf(tile, call, [&](const Box & box, unsigned int) {
      ForEachRow(box, [&](const Coordinates & at) { smoother.RunRow(at, box.Extent(0)); });
    });
  }
  const BinJoiner joiner(call, operation);
  ForEachTileOf(tile, call, [&](const Box & box, unsigned int worker) {
    const auto forRows = [&](const auto & reducer) {
      ForEachRow(box, [&](const Coordinates & at) { reducer.RunRow(at, box.Extent(0)); });
    };
    if (bytes == 0)
    {
      forRows(joiner);
      return;
    }
    void * const keys = static_cast<char *>(call.scratch) + static_cast<std::int64_t>(worker) * bytes;
    switch (PixelSize(call.inputs[0].kind))
    {
      case 1:
        return forRows(BinSelector<std::uint8_t>(call, operation, keys));
      case 2:
        return forRows(BinSelector<std::uint16_t>(call, operation, keys));
      case 4:
        return forRows(BinSelector<std::uint32_t>(call, operation, keys));
      default:
        return forRows(BinSelector<std::uint64_t>(call, operation, keys));
    }
  });
}

std::size_t
BinScratch(const Operation & operation, const ChunkShape & shape)
{
  return static_cast<std::size_t>(shape.concurrency * KeyBytes(BinOf(operation), shape.inputKinds[0]));
}

} // namespace

void
RegisterHostBin(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunBin;
  kernel.scratchBytes = BinScratch;
  registry.Register("bin", { kernel });
}

} // namespace chunkwise
