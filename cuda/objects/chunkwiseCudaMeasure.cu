/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Measurements of labels: a table in the device's memory with a row for each label.
//
// A thread goes along one axis and adds up a run of voxels of one label in registers. Runs go to rows in shared memory,
// which a block has for the first labels that it meets, in 32 bits and relative to the block's corner; at its end the
// block adds them to the table. Labels that find no row there go to the table run by run. All is integers that are
// added up or of which the largest one counts, so the order does not matter.
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaMeasure.h"
#include "chunkwiseCudaPasses.cuh"
#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseMeasureOperation.h"
#include "chunkwiseStatisticsSummary.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

constexpr int           Warps = 8;
constexpr int           Threads = 32 * Warps;
constexpr int           Steps = 32; ///< of a thread
constexpr unsigned int  AllLanes = 0xFFFFFFFF;
constexpr std::uint32_t NoRow = 0xFFFFFFFF;
/** Lanes that end runs of one label together, so that one adds for all. */
constexpr int FewTogether = 6;
/** So that indices have 31 bits, and digits and sums of all runs fit 63. */
constexpr std::int64_t MostVoxels = std::int64_t{ 1 } << 30;
constexpr std::size_t  SharedBytes = 48 * 1024;
constexpr int          MostSlots = 128;
constexpr int          Probes = 8;

using Word = unsigned long long;

/** A row of a block: words of 32 bits. Coordinates are relative to the block's corner. A least value
 * is kept as the largest complement. */
struct BlockRow
{
  static constexpr int count = 0;
  static constexpr int first = 1; ///< complement
  static constexpr int lower = 2; ///< complements
  static constexpr int upper = 5;
  static constexpr int sums = 8;
  static constexpr int products = 11;
  static constexpr int faces = 17;
  static constexpr int euler = 20;
  static constexpr int minimum = 22; ///< 64 bits: complement of ordinal and index
  static constexpr int maximum = 24; ///< 64 bits: ordinal and complement of index
  static constexpr int specials = 26;
  static constexpr int firstNaN = 29; ///< complement
  static constexpr int digits = 30;   ///< 64 bits each
};

struct MeasureTask
{
  explicit MeasureTask(const MeasureOperation & operation)
    : layout(operation.GetLayout())
    , numberOfDigits(layout.high - layout.low)
  {}

  BufferView    labels{};
  BufferView    intensity{};
  int           labelSize{ 1 };
  std::uint64_t firstLabel{ 0 };
  std::uint32_t rows{ 0 };
  MeasureLayout layout;
  int           numberOfDigits;
  /** Voxels of this box are added, and what lies around corners up to `end`: one further at the image's end. */
  Box          box{};
  std::int64_t end[3]{};
  std::int64_t extent[3]{};
  /** Threads go along one axis, y or z; `across` is z or y. A block's corner is that of a box of `height` rows. */
  int            march{ 2 };
  int            across{ 1 };
  int            height{ Warps }; ///< along y
  std::int64_t   blocks[3]{};
  int            blockWords{ BlockRow::minimum };
  int            slots{ MostSlots };
  std::int64_t * table{ nullptr };

  __device__ int
  Digits(int axis) const // of a row of a block: -2 the sum, -1 squares, 0 to 2 weighted
  {
    return BlockRow::digits + 2 * (axis == -2   ? 0
                                   : axis == -1 ? numberOfDigits
                                                : 3 * numberOfDigits + axis * (numberOfDigits + 2));
  }
};

__device__ std::uint32_t
           AddOverWarp(std::uint32_t value)
{
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(AllLanes, value);
#else
  for (int step = 16; step > 0; step /= 2)
  {
    value += __shfl_xor_sync(AllLanes, value, step);
  }
  return value;
#endif
}

__device__ std::uint32_t
           LargestOfWarp(std::uint32_t value)
{
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(AllLanes, value);
#else
  for (int step = 16; step > 0; step /= 2)
  {
    value = max(value, __shfl_xor_sync(AllLanes, value, step));
  }
  return value;
#endif
}

/** Adds to a row in shared memory that other threads add to, or to one of the thread alone. */
template <bool VShared>
struct RowSink
{
  std::uint32_t * row;

  __device__ void
  Add(int word, std::uint32_t value) const
  {
    if constexpr (VShared)
    {
      if (value != 0)
      {
        atomicAdd(row + word, value);
      }
    }
    else
    {
      row[word] += value;
    }
  }
  __device__ void
  Max(int word, std::uint32_t value) const
  {
    if (*static_cast<volatile std::uint32_t *>(row + word) < value)
    {
      if constexpr (VShared)
      {
        atomicMax(row + word, value);
      }
      else
      {
        row[word] = value;
      }
    }
  }
  __device__ void
  MaxWide(int word, Word value) const
  {
    Word * const place = reinterpret_cast<Word *>(row + word);
    if (*static_cast<volatile Word *>(place) < value)
    {
      if constexpr (VShared)
      {
        atomicMax(place, value);
      }
      else
      {
        *place = value;
      }
    }
  }
  __device__ void
  AddDigit(int word, std::int64_t part) const
  {
    if constexpr (VShared)
    {
      // In halves: devices have no additions of 64 bits there.
      const auto          low = static_cast<std::uint32_t>(part);
      const std::uint32_t before = atomicAdd(row + word, low);
      const auto          high = static_cast<std::uint32_t>(part >> 32) + (before + low < before ? 1 : 0);
      if (high != 0)
      {
        atomicAdd(row + word + 1, high);
      }
    }
    else
    {
      *reinterpret_cast<Word *>(row + word) += static_cast<Word>(part);
    }
  }
  /** value 2^(32 first) */
  __device__ void
  AddDigits(int word, int first, Int128 value) const
  {
    AddSignedParts(first, value, [&](int i, std::int64_t part) { this->AddDigit(word + 2 * i, part); });
  }
};

/** All lanes of a warp call these; one lane adds what some of them have. */
struct GroupSink
{
  RowSink<true> to;
  bool          isIn;
  bool          leads;

  __device__ void
  Add(int word, std::uint32_t value) const
  {
    const std::uint32_t sum = AddOverWarp(isIn ? value : 0);
    if (leads)
    {
      to.Add(word, sum);
    }
  }
  __device__ void
  Max(int word, std::uint32_t value) const
  {
    const std::uint32_t most = LargestOfWarp(isIn ? value : 0);
    if (leads)
    {
      to.Max(word, most);
    }
  }
  __device__ void
  MaxWide(int word, Word value) const
  {
    value = isIn ? value : 0;
    const std::uint32_t high = LargestOfWarp(static_cast<std::uint32_t>(value >> 32));
    const std::uint32_t low =
      LargestOfWarp(static_cast<std::uint32_t>(value >> 32) == high ? static_cast<std::uint32_t>(value) : 0);
    if (leads)
    {
      to.MaxWide(word, static_cast<Word>(high) << 32 | low);
    }
  }
  __device__ void
  AddDigits(int word, int first, Int128 value) const
  {
    value = isIn ? value : 0;
    const unsigned int some = __ballot_sync(AllLanes, value != 0);
    if (some == 0)
    {
      return;
    }
    const int begin = __shfl_sync(AllLanes, first, __ffs(static_cast<int>(some)) - 1);
    if (__any_sync(AllLanes, value != 0 && first != begin) != 0)
    {
      if (value != 0)
      {
        to.AddDigits(word, first, value);
      }
      return;
    }
    const bool isNegative = value < 0;
    UInt128    rest = isNegative ? UInt128{ 0 } - static_cast<UInt128>(value) : static_cast<UInt128>(value);
    for (int i = 0; __any_sync(AllLanes, rest != 0) != 0; ++i, rest >>= DigitBits)
    {
      auto part = static_cast<std::int64_t>(rest & 0xFFFFFFFF);
      part = isNegative ? -part : part;
      const std::uint32_t low = AddOverWarp(static_cast<std::uint32_t>(part & 0xFFFF));
      const auto          high = static_cast<std::int32_t>(AddOverWarp(static_cast<std::uint32_t>(part >> 16)));
      if (leads && (low != 0 || high != 0))
      {
        to.AddDigit(word + 2 * (begin + i), static_cast<std::int64_t>(high) * 65536 + low);
      }
    }
  }
};

/** A run of one label along a thread's axis, up to 32 voxels. */
struct LabelRun
{
  std::uint32_t row{ NoRow };
  int           begin{ 0 };
  int           count{ 0 };
  int           faces[3]{}; ///< along x, the axis across, the thread's
  int           euler{ 0 };
};

struct NoIntensities
{
  static constexpr bool Exists = false;
  static constexpr bool Details = true;
  struct Value
  {};
  __device__ static Value
  Load(const MeasureTask &, const void *, std::int64_t)
  {
    return {};
  }
  __device__ bool
  Takes(Value) const
  {
    return true;
  }
  template <typename TSpecial>
  __device__ void
  Add(const MeasureTask &, Value, int, TSpecial &&)
  {}
  template <typename TSink, typename TIndex>
  __device__ void
  Give(const MeasureTask &, const TSink &, const int *, TIndex &&) const
  {}
};

/** The least and the largest voxel of a run, and where they are first. */
struct RunExtrema
{
  std::uint32_t least{ 0xFFFFFFFF };
  std::uint32_t most{ 0 };
  int           leastAt{ -1 };
  int           mostAt{ -1 };

  __device__ void
  Add(std::uint32_t ordinal, int at)
  {
    if (ordinal < least || leastAt < 0)
    {
      least = ordinal;
      leastAt = at;
    }
    if (ordinal > most || mostAt < 0)
    {
      most = ordinal;
      mostAt = at;
    }
  }
  template <typename TSink, typename TIndex>
  __device__ void
  Give(const TSink & sink, TIndex && indexAt) const
  {
    const bool has = leastAt >= 0;
    const auto pack = [](std::uint32_t ordinal, std::uint32_t index) {
      return static_cast<Word>(ordinal) << 32 | index;
    };
    sink.MaxWide(BlockRow::minimum, has ? ~pack(least, indexAt(leastAt)) : 0);
    sink.MaxWide(BlockRow::maximum, has ? pack(most, ~indexAt(mostAt)) : 0);
  }
};

/** Sums of a run times its coordinates; along the thread's axis they are summed up before. */
template <typename TSink>
__device__ void
GiveWeighted(const MeasureTask & task, const TSink & sink, const int * at, int first, Int128 sum, Int128 along)
{
  if (task.layout.weighted)
  {
    sink.AddDigits(task.Digits(0), first, sum * at[0]);
    if (task.layout.dimension > task.across)
    {
      sink.AddDigits(task.Digits(task.across), first, sum * at[1]);
    }
    if (task.layout.dimension > task.march)
    {
      sink.AddDigits(task.Digits(task.march), first, along);
    }
  }
}

/** Integers of up to 32 bits. Without VDetails there are their sums alone. */
template <bool VDetails>
class IntegerIntensities
{
public:
  static constexpr bool Exists = true;
  static constexpr bool Details = VDetails;
  struct Value
  {
    std::int64_t  number{ 0 };
    std::uint32_t ordinal{ 0 };
  };
  __device__ static Value
  Load(const MeasureTask & task, const void * voxels, std::int64_t at)
  {
    Value value;
    switch (task.intensity.kind)
    {
      case PixelType::UInt8:
        value = Of<std::uint8_t>(voxels, at);
        break;
      case PixelType::Int8:
        value = Of<std::int8_t>(voxels, at);
        break;
      case PixelType::UInt16:
        value = Of<std::uint16_t>(voxels, at);
        break;
      case PixelType::Int16:
        value = Of<std::int16_t>(voxels, at);
        break;
      case PixelType::UInt32:
        value = Of<std::uint32_t>(voxels, at);
        break;
      default:
        value = Of<std::int32_t>(voxels, at);
        break;
    }
    return value;
  }
  __device__ bool
  Takes(const Value &) const
  {
    return true;
  }
  template <typename TSpecial>
  __device__ void
  Add(const MeasureTask &, const Value & value, int at, TSpecial &&)
  {
    m_Sum += value.number;
    if constexpr (VDetails)
    {
      m_Along += value.number * at;
      const auto magnitude = static_cast<std::uint64_t>(value.number < 0 ? -value.number : value.number);
      m_Squares += static_cast<UInt128>(magnitude * magnitude);
      m_Extrema.Add(value.ordinal, at);
    }
  }
  template <typename TSink, typename TIndex>
  __device__ void
  Give(const MeasureTask & task, const TSink & sink, const int * at, TIndex && indexAt) const
  {
    sink.AddDigits(task.Digits(-2), 0, m_Sum);
    if constexpr (VDetails)
    {
      m_Extrema.Give(sink, indexAt);
      sink.AddDigits(task.Digits(-1), 0, static_cast<Int128>(m_Squares));
      GiveWeighted(task, sink, at, 0, m_Sum, m_Along);
    }
  }

private:
  template <typename TPixel>
  __device__ static Value
  Of(const void * voxels, std::int64_t at)
  {
    const TPixel pixel = static_cast<const TPixel *>(voxels)[at];
    return { static_cast<std::int64_t>(pixel), static_cast<std::uint32_t>(OrdinalOf(pixel)) };
  }

  std::int64_t m_Sum{ 0 };
  std::int64_t m_Along{ 0 };
  UInt128      m_Squares{ 0 };
  RunExtrema   m_Extrema;
};

/** float: sums are multiples of powers of two that the run's first number sets. A number too far from it ends the run.
 */
template <bool VDetails>
class RealIntensities
{
public:
  static constexpr bool Exists = true;
  static constexpr bool Details = VDetails;
  using Value = float;

  __device__ static Value
  Load(const MeasureTask &, const void * voxels, std::int64_t at)
  {
    return static_cast<const float *>(voxels)[at];
  }
  __device__ bool
  Takes(Value value) const
  {
    const Parts parts(value);
    return m_SumBegin < 0 || parts.mantissa == 0 || parts.isSpecial ||
           (static_cast<unsigned int>(parts.position - m_SumBegin) <= SumReach &&
            (!VDetails || static_cast<unsigned int>(2 * parts.position - m_SquaresBegin) <= SquaresReach));
  }
  template <typename TSpecial>
  __device__ void
  Add(const MeasureTask & task, Value value, int at, TSpecial && special)
  {
    const Parts parts(value);
    if (parts.isSpecial)
    {
      special(parts.mantissa != 0 ? 0 : parts.isNegative ? 2 : 1);
      if (parts.mantissa != 0)
      {
        return;
      }
    }
    if constexpr (VDetails)
    {
      m_Extrema.Add(static_cast<std::uint32_t>(OrdinalOf(value)), at);
    }
    if (parts.isSpecial || parts.mantissa == 0)
    {
      return;
    }
    if (m_SumBegin < 0)
    {
      m_SumBegin = max(parts.position - SumBelow, task.layout.low * DigitBits) / DigitBits * DigitBits;
      m_SquaresBegin = max(2 * parts.position - SquaresBelow, 2 * task.layout.low * DigitBits) / DigitBits * DigitBits;
    }
    const auto shifted = [&](std::uint64_t number) {
      const auto term = static_cast<Int128>(static_cast<UInt128>(number) << (parts.position - m_SumBegin));
      return parts.isNegative ? -term : term;
    };
    m_Sum += shifted(parts.mantissa);
    if constexpr (VDetails)
    {
      m_Along += shifted(parts.mantissa * static_cast<std::uint64_t>(at));
      m_Squares += static_cast<UInt128>(parts.mantissa * parts.mantissa) << (2 * parts.position - m_SquaresBegin);
    }
  }
  template <typename TSink, typename TIndex>
  __device__ void
  Give(const MeasureTask & task, const TSink & sink, const int * at, TIndex && indexAt) const
  {
    const int first = max(m_SumBegin / DigitBits, task.layout.low) - task.layout.low;
    sink.AddDigits(task.Digits(-2), first, m_Sum);
    if constexpr (VDetails)
    {
      m_Extrema.Give(sink, indexAt);
      sink.AddDigits(task.Digits(-1),
                     max(m_SquaresBegin / DigitBits, 2 * task.layout.low) - 2 * task.layout.low,
                     static_cast<Int128>(m_Squares));
      GiveWeighted(task, sink, at, first, m_Sum, m_Along);
    }
  }

private:
  // Bits of 32 terms: of 24 bits times a coordinate below 256; and of 48.
  static constexpr unsigned int SumReach = 126 - 5 - 32;
  static constexpr unsigned int SquaresReach = 126 - 5 - 48;
  // How far below the first number others may lie, at least.
  static constexpr int SumBelow = 32;
  static constexpr int SquaresBelow = 20;

  struct Parts
  {
    __device__ explicit Parts(float value)
    {
      const std::uint32_t bits = __float_as_uint(value);
      const std::uint32_t field = bits >> 23 & 0xFF;
      isNegative = bits >> 31 != 0;
      isSpecial = field == 0xFF;
      mantissa = (bits & 0x7FFFFF) | (field != 0 && !isSpecial ? 0x800000 : 0);
      // The position among the digits of a sum; twice as much is that of the square.
      position = static_cast<int>(field != 0 ? field - 1 : 0) - 149 + StatisticsSummary::SumBias;
    }
    std::uint64_t mantissa;
    int           position;
    bool          isNegative;
    bool          isSpecial;
  };

  Int128     m_Sum{ 0 };
  Int128     m_Along{ 0 };
  UInt128    m_Squares{ 0 };
  int        m_SumBegin{ -1 };
  int        m_SquaresBegin{ -1 };
  RunExtrema m_Extrema;
};

/** The voxel from which on the block's coordinates count. */
__device__ void
CornerOf(const MeasureTask & task, std::int64_t * corner)
{
  std::int64_t rest = blockIdx.x;
  corner[0] = task.box.lower.axis[0] + rest % task.blocks[0] * 32;
  rest /= task.blocks[0];
  corner[1] = task.box.lower.axis[1] + rest % task.blocks[1] * task.height;
  corner[2] = task.box.lower.axis[2] + rest / task.blocks[1] * (task.march == 2 ? Steps : 1);
}

__device__ __forceinline__ Word
Complement(std::uint64_t number)
{
  return static_cast<Word>(~number);
}

/** A row of the table, to which a row of a block is added. */
class TableRow
{
public:
  __device__ __forceinline__
  TableRow(const MeasureTask & task, const std::uint32_t * from, std::uint32_t label)
    : m_Task(task)
    , m_From(from)
    , m_Row(task.table + static_cast<std::int64_t>(label) * task.layout.words)
  {
    CornerOf(task, m_Corner);
  }

  /** Adds all numbers that need no intensities. */
  __device__ __forceinline__ void
  AddShape() const
  {
    const MeasureLayout & layout = m_Task.layout;
    const std::int64_t    n = m_From[BlockRow::count];
    if (n != 0)
    {
      this->Add(MeasureLayout::count, n);
    }
    if (n != 0 && layout.details)
    {
      this->ToMost(MeasureLayout::first, Complement(this->IndexOf(~m_From[BlockRow::first], false)));
      std::int64_t sums[3];
      for (int a = 0; a < 3; ++a)
      {
        sums[a] = m_From[BlockRow::sums + a];
        if (a < layout.dimension)
        {
          this->ToMost(MeasureLayout::lower + a,
                       Complement(static_cast<std::uint64_t>(m_Corner[a] +
                                                             static_cast<std::int64_t>(~m_From[BlockRow::lower + a]))));
          this->ToMost(layout.upper + a,
                       static_cast<Word>(m_Corner[a] + static_cast<std::int64_t>(m_From[BlockRow::upper + a])));
          this->AddWide(layout.sums + 2 * a, static_cast<Int128>(n) * m_Corner[a] + sums[a]);
        }
      }
      int product = 0;
      for (int a = 0; layout.moments && a < layout.dimension; ++a)
      {
        for (int b = 0; b <= a; ++b, ++product)
        {
          this->AddWide(layout.products + 2 * product,
                        static_cast<Int128>(m_From[BlockRow::products + product]) +
                          static_cast<Int128>(m_Corner[a]) * sums[b] + static_cast<Int128>(m_Corner[b]) * sums[a] +
                          static_cast<Int128>(n) * m_Corner[a] * m_Corner[b]);
        }
      }
    }
    if (layout.surfaces)
    {
      for (int a = 0; a < layout.dimension; ++a)
      {
        this->Add(layout.faces + a, m_From[BlockRow::faces + a]);
      }
      this->Add(layout.euler, static_cast<std::int32_t>(m_From[BlockRow::euler]));
    }
  }

  __device__ __forceinline__ void
  AddIntensities() const
  {
    const MeasureLayout & layout = m_Task.layout;
    if (layout.details)
    {
      this->AddExtremum(layout.minimum, BlockRow::minimum);
      this->AddExtremum(layout.maximum, BlockRow::maximum);
    }
    if (layout.isReal)
    {
      for (int i = 0; i < 3; ++i)
      {
        this->Add(layout.specials + i, m_From[BlockRow::specials + i]);
      }
      if (m_From[BlockRow::firstNaN] != 0)
      {
        this->ToMost(layout.specials + 3, Complement(this->IndexOf(~m_From[BlockRow::firstNaN], false)));
      }
    }
    for (int i = 0; layout.details && i < 2 * m_Task.numberOfDigits; ++i)
    {
      this->Add(layout.GetSquares() + i, this->Digit(m_Task.Digits(-1), i));
    }
    for (int i = 0; i < m_Task.numberOfDigits; ++i)
    {
      this->Add(layout.GetSum() + i, this->Digit(m_Task.Digits(-2), i));
    }
    for (int a = 0; layout.weighted && a < layout.dimension; ++a)
    {
      for (int i = 0; i < m_Task.numberOfDigits + 2; ++i)
      {
        const std::int64_t sum = i < m_Task.numberOfDigits ? this->Digit(m_Task.Digits(-2), i) : 0;
        AddSignedParts(i,
                       static_cast<Int128>(sum) * m_Corner[a] + this->Digit(m_Task.Digits(a), i),
                       [&](int k, std::int64_t part) { this->Add(layout.GetWeighted(a) + k, part); });
      }
    }
  }

private:
  __device__ __forceinline__ void
  Add(int word, std::int64_t value) const
  {
    if (value != 0)
    {
      atomicAdd(reinterpret_cast<Word *>(m_Row + word), static_cast<Word>(value));
    }
  }
  __device__ __forceinline__ void
  ToMost(int word, Word value) const
  {
    Word * const place = reinterpret_cast<Word *>(m_Row + word);
    if (*static_cast<volatile Word *>(place) < value)
    {
      atomicMax(place, value);
    }
  }
  /** In 32 bits and the rest, which are put together in the end. */
  __device__ __forceinline__ void
  AddWide(int word, Int128 value) const
  {
    this->Add(word, static_cast<std::int64_t>(value & 0xFFFFFFFF));
    this->Add(word + 1, static_cast<std::int64_t>(value >> 32));
  }
  __device__ __forceinline__ std::int64_t
                             At(std::uint32_t local, int axis) const
  {
    return m_Corner[axis] + (axis == 0   ? local % 32
                             : axis == 1 ? local / 32 % static_cast<std::uint32_t>(m_Task.height)
                                         : local / 32 / static_cast<std::uint32_t>(m_Task.height));
  }
  /** The index in the whole image, or in the box. */
  __device__ __forceinline__ std::uint64_t
                             IndexOf(std::uint32_t local, bool ofBox) const
  {
    std::int64_t index = 0;
    for (int a = 2; a >= 0; --a)
    {
      index = index * (ofBox ? m_Task.box.upper.axis[a] - m_Task.box.lower.axis[a] : m_Task.extent[a]) +
              this->At(local, a) - (ofBox ? m_Task.box.lower.axis[a] : 0);
    }
    return static_cast<std::uint64_t>(index);
  }
  __device__ __forceinline__ void
  AddExtremum(int word, int of) const
  {
    const Word value = *reinterpret_cast<const Word *>(m_From + of);
    if (value != 0)
    {
      const auto local = ~static_cast<std::uint32_t>(value);
      const Word index = this->IndexOf(local, true);
      this->ToMost(word, (value & 0xFFFFFFFF00000000u) | (~index & 0xFFFFFFFF));
    }
  }
  __device__ __forceinline__ std::int64_t
                             Digit(int word, int i) const
  {
    return *reinterpret_cast<const std::int64_t *>(m_From + word + 2 * i);
  }

  const MeasureTask &         m_Task;
  const std::uint32_t * const m_From;
  std::int64_t * const        m_Row;
  std::int64_t                m_Corner[3];
};

/** Adds a row of the block to the table. */
__device__ __noinline__ void
AddToTable(const MeasureTask & task, const std::uint32_t * from, std::uint32_t label)
{
  const TableRow row(task, from, label);
  row.AddShape();
  if (task.layout.intensity)
  {
    row.AddIntensities();
  }
}

/** The labels of rows that a block has in shared memory. */
struct BlockTable
{
  std::uint32_t * keys;
  std::uint32_t * rows;

  /** nullptr: there is no room. */
  __device__ std::uint32_t *
             Find(const MeasureTask & task, std::uint32_t label) const
  {
    const auto    mask = static_cast<std::uint32_t>(task.slots - 1);
    std::uint32_t slot = label * 2654435761U >> 16;
    for (int i = 0; i < Probes; ++i, ++slot)
    {
      std::uint32_t key = *static_cast<volatile std::uint32_t *>(keys + (slot & mask));
      if (key == NoRow)
      {
        key = atomicCAS(keys + (slot & mask), NoRow, label);
        key = key == NoRow ? label : key;
      }
      if (key == label)
      {
        return rows + (slot & mask) * static_cast<std::uint32_t>(task.blockWords);
      }
    }
    return nullptr;
  }
  template <typename TGive>
  __device__ __forceinline__ void
  Give(const MeasureTask & task, std::uint32_t label, TGive && give) const
  {
    if (std::uint32_t * const row = this->Find(task, label))
    {
      give(RowSink<true>{ row });
      return;
    }
    constexpr int            most = BlockRow::digits + 2 * (3 * 11 + 3 * 13);
    alignas(8) std::uint32_t own[most];
    for (int word = 0; word < task.blockWords; ++word)
    {
      own[word] = 0;
    }
    give(RowSink<false>{ own });
    AddToTable(task, own, label);
  }
};

__device__ __forceinline__ std::uint64_t
                           LoadLabel(const MeasureTask & task, std::int64_t at)
{
  switch (task.labelSize)
  {
    case 1:
      return static_cast<const std::uint8_t *>(task.labels.data)[at];
    case 2:
      return static_cast<const std::uint16_t *>(task.labels.data)[at];
    case 4:
      return static_cast<const std::uint32_t *>(task.labels.data)[at];
    default:
      return static_cast<const std::uint64_t *>(task.labels.data)[at];
  }
}

/** Gives the place and the shape of a run. `at`: the place along x and across. */
template <typename TSink, typename TIndex>
__device__ __forceinline__ void
GiveShape(const MeasureTask & task, const TSink & sink, const LabelRun & run, const int (&at)[2],
          const TIndex & indexAt, bool looksAround)
{
  const int  n = run.count;
  const int  last = run.begin + n - 1;
  const auto word = [](int number) { return static_cast<std::uint32_t>(number); };
  sink.Max(BlockRow::first, ~indexAt(run.begin));
  sink.Max(BlockRow::lower, ~word(at[0]));
  sink.Max(BlockRow::upper, word(at[0] + 1));
  sink.Max(BlockRow::lower + task.across, ~word(at[1]));
  sink.Max(BlockRow::upper + task.across, word(at[1] + 1));
  sink.Max(BlockRow::lower + task.march, ~word(run.begin));
  sink.Max(BlockRow::upper + task.march, word(last + 1));
  // Sums and squares of the coordinates along the thread's axis.
  const int  below = n * (n - 1) / 2;
  const int  sum = n * run.begin + below;
  const int  squares = n * run.begin * run.begin + 2 * run.begin * below + below * (2 * n - 1) / 3;
  const bool goesAlongZ = task.march == 2;
  const int  sumY = goesAlongZ ? n * at[1] : sum;
  const int  sumZ = goesAlongZ ? sum : n * at[1];
  sink.Add(BlockRow::sums, word(n * at[0]));
  sink.Add(BlockRow::sums + 1, word(sumY));
  sink.Add(BlockRow::sums + 2, word(sumZ));
  if (task.layout.moments)
  {
    const int acrossSquares = n * at[1] * at[1];
    sink.Add(BlockRow::products, word(n * at[0] * at[0]));
    sink.Add(BlockRow::products + 1, word(at[0] * sumY));
    sink.Add(BlockRow::products + 2, word(goesAlongZ ? acrossSquares : squares));
    sink.Add(BlockRow::products + 3, word(at[0] * sumZ));
    sink.Add(BlockRow::products + 4, word(at[1] * sum));
    sink.Add(BlockRow::products + 5, word(goesAlongZ ? squares : acrossSquares));
  }
  if (looksAround)
  {
    sink.Add(BlockRow::faces, word(run.faces[0]));
    sink.Add(BlockRow::faces + task.across, word(run.faces[1]));
    sink.Add(BlockRow::faces + task.march, word(run.faces[2]));
    sink.Add(BlockRow::euler, word(run.euler));
  }
}

/** Adds what the corner of a voxel adds to Euler numbers, of the rows that meet there: `now`, and one voxel earlier
 * along x `before`. As the CPU does, see LookAround in chunkwiseMeasurements.cxx. */
__device__ __forceinline__ void
AddEuler(const MeasureTask & task, const BlockTable & table, const std::uint32_t (&now)[4],
         const std::uint32_t (&before)[4], LabelRun & run)
{
  const auto has = [](const std::uint32_t * labels, unsigned int set, std::uint32_t label) {
    return ((set & 1) && labels[0] == label) || ((set & 2) && labels[1] == label) ||
           ((set & 4) && labels[2] == label) || ((set & 8) && labels[3] == label);
  };
#pragma unroll
  for (int r = 0; r < 4; ++r)
  {
    const std::uint32_t label = now[r];
    if (label == NoRow || label == before[0] || has(now, (1U << r) - 1, label))
    {
      continue;
    }
    const auto begins = [&](unsigned int set) { return has(now, set, label) && !has(before, set, label) ? 1 : 0; };
    // In a plane the only rows are those along y.
    const int euler =
      task.layout.dimension > 2 ? begins(15) - begins(3) - begins(5) + begins(1) : begins(5) - begins(1);
    if (r == 0)
    {
      run.euler += euler;
    }
    else if (euler != 0)
    {
      table.Give(task, label, [&](const auto & sink) { sink.Add(BlockRow::euler, static_cast<std::uint32_t>(euler)); });
    }
  }
}

template <typename TIntensities>
__global__ void
__launch_bounds__(Threads, TIntensities::Details ? 2 : 4) MeasureKernel(const __grid_constant__ MeasureTask task)
{
  extern __shared__ Word shared[];
  const BlockTable       table{ reinterpret_cast<std::uint32_t *>(shared) + task.slots * task.blockWords,
                          reinterpret_cast<std::uint32_t *>(shared) };
  for (int i = static_cast<int>(threadIdx.x); i < task.slots * task.blockWords / 2; i += Threads)
  {
    shared[i] = 0;
  }
  for (int i = static_cast<int>(threadIdx.x); i < task.slots; i += Threads)
  {
    table.keys[i] = NoRow;
  }
  __syncthreads();

  const int    lane = static_cast<int>(threadIdx.x % 32);
  const int    warp = static_cast<int>(threadIdx.x / 32);
  const bool   goesAlongZ = task.march == 2;
  std::int64_t corner[3];
  CornerOf(task, corner);
  // The thread's place along x, across, and where it begins, relative to the corner.
  const int          ownAcross = goesAlongZ ? warp : 0;
  const int          begin = goesAlongZ ? 0 : warp * Steps;
  const std::int64_t x = corner[0] + lane;
  const std::int64_t across = corner[task.across] + ownAcross;
  const std::int64_t origin = corner[task.march];
  const auto         steps = static_cast<int>(
    across < task.end[task.across] ? min(std::int64_t{ Steps }, task.end[task.march] - origin - begin) : 0);
  const bool          looksAround = TIntensities::Details && task.layout.surfaces;
  const std::int64_t  stride[2] = { task.labels.stride.axis[task.across], task.labels.stride.axis[task.march] };
  const std::uint32_t mask = task.labelSize == 1 ? 0xFF : task.labelSize == 2 ? 0xFFFF : 0xFFFFFFFF;
  const std::int64_t  labelAt = x - task.labels.box.lower.axis[0] +
                               (across - task.labels.box.lower.axis[task.across]) * stride[0] +
                               (origin + begin - task.labels.box.lower.axis[task.march]) * stride[1];
  const std::int64_t valueAt =
    TIntensities::Exists
      ? x - task.intensity.box.lower.axis[0] +
          (across - task.intensity.box.lower.axis[task.across]) * task.intensity.stride.axis[task.across] +
          (origin + begin - task.intensity.box.lower.axis[task.march]) * task.intensity.stride.axis[task.march]
      : 0;
  const std::int64_t valueStride = TIntensities::Exists ? task.intensity.stride.axis[task.march] : 0;
  const bool         isInside = x < task.box.upper.axis[0];
  const bool         isOwn = isInside && across < task.extent[task.across];
  const bool         hasOther = isInside && across > 0;

  // Labels as in memory; 0 outside of the image.
  const auto load = [&](bool isThere, int step, int dx, int dAcross) {
    std::uint64_t      label = 0;
    const std::int64_t along = origin + begin + step;
    if (isThere && along >= 0 && along < task.extent[task.march])
    {
      const std::int64_t at = labelAt + step * stride[1] - dAcross * stride[0] - dx;
      label = LoadLabel(task, at);
    }
    return label;
  };
  const auto rowOf = [&](std::uint64_t label) {
    const auto row = static_cast<std::uint32_t>(label - task.firstLabel) & mask;
    return label == 0 || row >= task.rows ? NoRow : row;
  };
  const bool isLeft = lane == 0 && x > 0;

  LabelRun     run;
  TIntensities values;
  const int    at[2] = { lane, ownAcross };
  const auto   indexAt = [&](int along) {
    const int y = goesAlongZ ? ownAcross : along;
    const int z = goesAlongZ ? along : ownAcross;
    return static_cast<std::uint32_t>((z * task.height + y) * 32 + lane);
  };
  const auto give = [&](const auto & sink) {
    sink.Add(BlockRow::count, static_cast<std::uint32_t>(run.count));
    values.Give(task, sink, at, indexAt);
    if constexpr (TIntensities::Details)
    {
      GiveShape(task, sink, run, at, indexAt, looksAround);
    }
  };
  // All lanes call it; `ends`: the lane has a run to give.
  const auto flush = [&](bool ends) {
    const unsigned int all = __ballot_sync(AllLanes, ends);
    if (all == 0)
    {
      return;
    }
    const int           leader = __ffs(static_cast<int>(all)) - 1;
    const std::uint32_t row = __shfl_sync(AllLanes, run.row, leader);
    const bool          isIn = ends && run.row == row;
    const unsigned int  group = __ballot_sync(AllLanes, isIn);
    if (__popc(group) >= FewTogether)
    {
      const std::uint32_t * const found = lane == leader ? table.Find(task, row) : nullptr;
      const int place = __shfl_sync(AllLanes, found != nullptr ? static_cast<int>(found - table.rows) : -1, leader);
      if (place >= 0)
      {
        give(GroupSink{ { table.rows + place }, isIn, lane == leader });
        ends = ends && !isIn;
      }
    }
    if (ends)
    {
      table.Give(task, run.row, give);
    }
    __syncwarp();
  };

  // The four rows that meet at a corner: of the voxel, before it across, before it along, before it along both; and
  // one voxel earlier along x.
  std::uint32_t now[4] = { NoRow, NoRow, NoRow, NoRow };
  std::uint32_t before[4] = { NoRow, NoRow, NoRow, NoRow };
  if (looksAround && steps > 0)
  {
    now[2] = rowOf(load(isOwn, -1, 0, 0));
    now[3] = rowOf(load(hasOther, -1, 0, 1));
    before[2] = rowOf(load(isLeft && isOwn, -1, 1, 0));
    before[3] = rowOf(load(isLeft && hasOther, -1, 1, 1));
    const std::uint32_t own = __shfl_up_sync(AllLanes, now[2], 1);
    const std::uint32_t other = __shfl_up_sync(AllLanes, now[3], 1);
    before[2] = lane > 0 ? own : before[2];
    before[3] = lane > 0 ? other : before[3];
  }
  const auto loadValue = [&](int step) {
    return isOwn && origin + begin + step < task.extent[task.march]
             ? TIntensities::Load(task, task.intensity.data, valueAt + step * valueStride)
             : typename TIntensities::Value{};
  };
  std::uint64_t ownLabel = steps > 0 ? load(isOwn, 0, 0, 0) : 0;
  std::uint64_t otherLabel = steps > 0 && looksAround ? load(hasOther, 0, 0, 1) : 0;
  auto          value = steps > 0 ? loadValue(0) : typename TIntensities::Value{};
  for (int step = 0; step < steps; ++step)
  {
    now[0] = rowOf(ownLabel);
    now[1] = rowOf(otherLabel);
    const auto voxel = value;
    if (looksAround)
    {
      before[0] = rowOf(load(isLeft && isOwn, step, 1, 0));
      before[1] = rowOf(load(isLeft && hasOther, step, 1, 1));
    }
    if (step + 1 < steps)
    {
      ownLabel = load(isOwn, step + 1, 0, 0);
      otherLabel = looksAround ? load(hasOther, step + 1, 0, 1) : 0;
      value = loadValue(step + 1);
    }
    const int along = begin + step;
    bool      ends = run.row != NoRow && now[0] != run.row;
    if constexpr (TIntensities::Exists)
    {
      ends = ends || (run.row != NoRow && !values.Takes(voxel));
    }
    flush(ends);
    if (ends || run.row != now[0])
    {
      run = LabelRun();
      values = TIntensities();
      run.row = now[0];
      run.begin = along;
    }
    if (now[0] != NoRow)
    {
      ++run.count;
      values.Add(task, voxel, along, [&](int which) {
        table.Give(task, run.row, [&](const auto & sink) {
          sink.Add(BlockRow::specials + which, 1);
          if (which == 0)
          {
            sink.Max(BlockRow::firstNaN, ~indexAt(along));
          }
        });
      });
    }
    if (!looksAround)
    {
      continue;
    }
    const std::uint32_t own = __shfl_up_sync(AllLanes, now[0], 1);
    const std::uint32_t other = __shfl_up_sync(AllLanes, now[1], 1);
    before[0] = lane > 0 ? own : before[0];
    before[1] = lane > 0 ? other : before[1];
    if (isInside && (now[0] != before[0] || now[1] != before[1] || now[2] != before[2] || now[3] != before[3] ||
                     now[0] != now[1] || now[0] != now[2]))
    {
      if (now[0] != NoRow)
      {
        run.faces[0] += now[0] != before[0] ? 1 : 0;
        run.faces[1] += now[0] != now[1] ? 1 : 0;
        run.faces[2] += now[0] != now[2] ? 1 : 0;
      }
      AddEuler(task, table, now, before, run);
    }
    now[2] = now[0];
    now[3] = now[1];
    before[2] = before[0];
    before[3] = before[1];
  }
  flush(run.row != NoRow);
  __syncthreads();
  for (int slot = static_cast<int>(threadIdx.x); slot < task.slots; slot += Threads)
  {
    if (table.keys[slot] != NoRow)
    {
      AddToTable(task, table.rows + slot * task.blockWords, table.keys[slot]);
    }
  }
}

/** Makes rows of what the blocks have left, and adds them to those of `all` unless that is the same table. */
__global__ void
FinishRowsKernel(const __grid_constant__ MeasureTask task, std::int64_t * all)
{
  const MeasureLayout & layout = task.layout;
  const auto            step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t label = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; label < task.rows;
       label += step)
  {
    std::int64_t * const row = task.table + label * layout.words;
    if (layout.IsEmpty(row))
    {
      continue;
    }
    const auto          placeOf = [](std::int64_t word) { return word == 0 ? MeasureLayout::nowhere : ~word; };
    const std::uint64_t bits = task.firstLabel + static_cast<std::uint64_t>(label);
    row[MeasureLayout::label] = static_cast<std::int64_t>(bits);
    for (int word = MeasureLayout::first; layout.details && word < MeasureLayout::lower + layout.dimension; ++word)
    {
      row[word] = placeOf(row[word]);
    }
    for (int word = layout.sums; word < layout.faces; word += 2)
    {
      const auto sum = static_cast<Int128>(static_cast<UInt128>(static_cast<std::uint64_t>(row[word + 1])) << 32) +
                       static_cast<std::uint64_t>(row[word]);
      row[word] = row[word + 1] = 0;
      AddWide(row + word, sum);
    }
    if (layout.intensity)
    {
      for (int word = layout.minimum; word < layout.specials; word += 2)
      {
        const auto packed = static_cast<std::uint64_t>(row[word]);
        const auto high = static_cast<std::uint32_t>(packed >> 32);
        const bool isLeast = word == layout.minimum;
        const bool has = packed != 0;
        // The index in the box.
        std::int64_t rest = static_cast<std::uint32_t>(~packed);
        std::int64_t place = 0;
        std::int64_t area = 1;
        for (int a = 0; a < 3; ++a)
        {
          const std::int64_t extent = task.box.upper.axis[a] - task.box.lower.axis[a];
          place += area * (task.box.lower.axis[a] + rest % extent);
          area *= task.extent[a];
          rest /= extent;
        }
        row[word] = has       ? static_cast<std::int64_t>(isLeast ? static_cast<std::uint32_t>(~high) : high)
                    : isLeast ? -1
                              : 0;
        row[word + 1] = has ? place : MeasureLayout::nowhere;
      }
      if (layout.isReal)
      {
        row[layout.specials + 3] = placeOf(row[layout.specials + 3]);
      }
      Carry(row + layout.GetSum(), task.numberOfDigits);
      if (layout.details)
      {
        Carry(row + layout.GetSquares(), 2 * task.numberOfDigits);
      }
      for (int a = 0; layout.weighted && a < layout.dimension; ++a)
      {
        Carry(row + layout.GetWeighted(a), task.numberOfDigits + 2);
      }
    }
    if (all != task.table)
    {
      std::int64_t * const to = all + label * layout.words;
      if (layout.IsEmpty(to))
      {
        layout.Begin(to, bits);
      }
      layout.Add(to, layout, row);
    }
  }
}

class Measurer
{
public:
  explicit Measurer(const KernelCall & call)
    : m_Call(call)
    , m_Operation(static_cast<const MeasureOperation &>(*call.operation))
    , m_Task(m_Operation)
  {
    m_Task.labels = call.inputs[0];
    m_Task.intensity = m_Operation.settings.hasIntensity ? call.inputs[1] : BufferView();
    m_Task.labelSize = static_cast<int>(PixelSize(call.inputs[0].kind));
    m_Task.firstLabel = m_Operation.firstLabel;
    m_Task.rows = static_cast<std::uint32_t>(m_Operation.rows);
    const int digits = m_Task.numberOfDigits;
    if (m_Task.layout.intensity)
    {
      m_Task.blockWords = BlockRow::digits + 2 * ((m_Task.layout.details ? 3 : 1) * digits +
                                                  (m_Task.layout.weighted ? 3 * (digits + 2) : 0));
    }
    const auto bytes = static_cast<std::size_t>(m_Task.blockWords + 1) * sizeof(std::uint32_t);
    while (static_cast<std::size_t>(m_Task.slots) * bytes > SharedBytes)
    {
      m_Task.slots /= 2;
    }
    m_Shared = static_cast<std::size_t>(m_Task.slots) * bytes;
    std::copy_n(call.image.upper.axis, 3, m_Task.extent);
    // Images without depth are taken along y.
    m_Task.march = call.image.upper[2] > 1 ? 2 : 1;
    m_Task.across = 3 - m_Task.march;
    m_Task.height = m_Task.march == 2 ? Warps : Threads;
  }

  void
  Run()
  {
    const std::size_t bytes =
      static_cast<std::size_t>(m_Task.rows) * static_cast<std::size_t>(m_Task.layout.words) * sizeof(std::int64_t);
    auto * const all = static_cast<std::int64_t *>(m_Call.sideOut);
    const bool   isOne = m_Call.writable.NumberOfVoxels() <= MostVoxels;
    m_Task.table = isOne ? all : static_cast<std::int64_t *>(m_Call.scratch);
    CheckCuda(cudaMemsetAsync(all, 0, bytes, StreamOf(m_Call)), "cudaMemsetAsync");
    this->Measure(m_Call.writable, [&](const Box & box) {
      if (!isOne)
      {
        CheckCuda(cudaMemsetAsync(m_Task.table, 0, bytes, StreamOf(m_Call)), "cudaMemsetAsync");
      }
      this->Launch(box);
      FinishRowsKernel<<<BlocksFor(m_Task.rows, 64), 64, 0, StreamOf(m_Call)>>>(m_Task, all);
      CheckLaunch("FinishRowsKernel");
    });
  }

private:
  /** The box, or halves of it. */
  template <typename TVisit>
  void
  Measure(const Box & box, TVisit && visit)
  {
    if (box.NumberOfVoxels() <= MostVoxels)
    {
      visit(box);
      return;
    }
    int axis = 2;
    while (box.Extent(axis) == 1)
    {
      --axis;
    }
    Box parts[2] = { box, box };
    parts[0].upper[axis] = parts[1].lower[axis] = box.lower[axis] + box.Extent(axis) / 2;
    this->Measure(parts[0], visit);
    this->Measure(parts[1], visit);
  }

  void
  Launch(const Box & box)
  {
    m_Task.box = box;
    std::int64_t blocks = 1;
    for (int a = 0; a < 3; ++a)
    {
      const bool isFurther = m_Task.layout.surfaces && (a == 1 || (a == 2 && m_Task.layout.dimension > 2)) &&
                             box.upper[a] == m_Task.extent[a];
      m_Task.end[a] = box.upper[a] + (isFurther ? 1 : 0);
      const std::int64_t edge = a == 0 ? 32 : a == 1 ? m_Task.height : m_Task.march == 2 ? Steps : 1;
      m_Task.blocks[a] = (m_Task.end[a] - box.lower[a] + edge - 1) / edge;
      blocks *= m_Task.blocks[a];
    }
    const auto launch = [&](auto values) {
      MeasureKernel<decltype(values)>
        <<<static_cast<unsigned int>(blocks), Threads, m_Shared, StreamOf(m_Call)>>>(m_Task);
      CheckLaunch("MeasureKernel");
    };
    if (!m_Task.layout.intensity)
    {
      launch(NoIntensities());
    }
    else if (m_Task.layout.isReal)
    {
      m_Task.layout.details ? launch(RealIntensities<true>()) : launch(RealIntensities<false>());
    }
    else
    {
      m_Task.layout.details ? launch(IntegerIntensities<true>()) : launch(IntegerIntensities<false>());
    }
  }

  const KernelCall &       m_Call;
  const MeasureOperation & m_Operation;
  MeasureTask              m_Task;
  std::size_t              m_Shared{ 0 };
};

void
RunMeasure(const KernelCall & call)
{
  Measurer(call).Run();
}

/** Parts of large chunks have a table each, which are added up. */
std::size_t
MeasureScratch(const Operation & operation, const ChunkShape & shape)
{
  return shape.outputBox.NumberOfVoxels() > MostVoxels
           ? operation.GetSummaryBytes(shape.outputBox, {}, shape.outputKind)
           : 0;
}

} // namespace

void
RegisterCudaMeasure(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.summarize = { RunMeasure, MeasureScratch };
  registry.Register("measure", kernels);
}

} // namespace chunkwise
