/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseMeasurements.h"

#include "chunkwiseError.h"
#include "chunkwiseMeasureTable.h"
#include "chunkwiseStatisticsSummary.h"

#include <algorithm>
#include <mutex>

namespace chunkwise
{

namespace
{

/** Voxels of one label along x, from the beginning of a part's row. */
struct LabelRun
{
  std::int64_t  begin;
  std::int64_t  end;
  std::uint32_t slot;
};

/** A bit for each voxel of a row: whether it differs from the one before. The first bit is set. */
template <typename TLabel>
void
MarkChanges(const TLabel * row, std::int64_t n, std::uint64_t * bits)
{
  constexpr std::int64_t block = 64;
  for (std::int64_t begin = 0; begin < n; begin += block)
  {
    const std::int64_t count = std::min(block, n - begin);
    // The first voxel of a row is compared with itself.
    const std::int64_t skip = begin == 0 ? 1 : 0;
    std::uint64_t      word = 0;
    if (std::memcmp(
          row + begin + skip - 1, row + begin + skip, static_cast<std::size_t>(count - skip) * sizeof(TLabel)) != 0)
    {
      unsigned char differs[block]{};
      for (std::int64_t i = skip; i < count; ++i)
      {
        differs[i] = row[begin + i] != row[begin + i - 1] ? 1 : 0;
      }
      for (int byte = 0; byte < 8; ++byte)
      {
        // The product has the eight bytes, 0 or 1, as bits of its highest byte.
        std::uint64_t eight = 0;
        for (int i = 0; i < 8; ++i)
        {
          eight |= static_cast<std::uint64_t>(differs[8 * byte + i]) << (8 * i);
        }
        word |= ((eight * 0x0102040810204080u) >> 56) << (8 * byte);
      }
    }
    bits[begin / block] = word | static_cast<std::uint64_t>(skip);
  }
}

/** The destination of VoxelStatistics' sums of a run: the row of its label, and, times the coordinates that the run
 * has, the weighted sums. */
struct RowDigits
{
  MeasureRows &        rows;
  const std::uint32_t  slot;
  const std::int64_t * at; ///< nullptr: no weighted sums

  void
  AddToSum(int i, std::int64_t part)
  {
    this->AddAllToSum(i, part);
  }
  void
  AddToSquares(int i, std::int64_t part)
  {
    this->AddAllToSquares(i, part);
  }
  void
  AddAllToSum(int first, Int128 value)
  {
    AddSignedParts(first, value, [&](int i, std::int64_t part) { rows.AddToSum(slot, i, part); });
    for (int a = 0; at && a < rows.GetLayout().dimension; ++a)
    {
      const auto add = [&](int i, std::int64_t part) { rows.AddToWeighted(slot, a, i, part); };
      // In halves, whose products fit.
      AddSignedParts(first, static_cast<Int128>(static_cast<std::uint64_t>(value)) * at[a], add);
      AddSignedParts(first + 2, (value >> 64) * at[a], add);
    }
  }
  void
  AddAllToSquares(int first, Int128 value)
  {
    AddSignedParts(first, value, [&](int i, std::int64_t part) { rows.AddToSquares(slot, i, part); });
  }
};

/** Runs are handled in pieces of so many voxels, so that i w fits 64 bits where w does 53 and an ExactWindow takes it.
 */
constexpr std::int64_t WeightedPiece = 2048;

/** Sum of i w[i] of up to WeightedPiece voxels. */
template <typename TPixel, typename TAdd>
void
AddWeightsAlong(const TPixel * voxels, std::int64_t n, TAdd && add)
{
  if constexpr (std::is_integral<TPixel>::value)
  {
    using Sum = std::conditional_t<sizeof(TPixel) <= 4, std::int64_t, Int128>;
    Sum sum = 0;
    for (std::int64_t i = 0; i < n; ++i)
    {
      sum += static_cast<Sum>(voxels[i]) * i;
    }
    AddSignedParts(StatisticsSummary::SumBias / DigitBits, sum, add);
  }
  else
  {
    using Bits = std::conditional_t<sizeof(TPixel) == 4, std::uint32_t, std::uint64_t>;
    constexpr int                  mantissaBits = sizeof(TPixel) == 4 ? 24 : 53;
    constexpr Bits                 special = sizeof(TPixel) == 4 ? 0xFF : 0x7FF;
    constexpr int                  lowest = sizeof(TPixel) == 4 ? -149 : -1074;
    ExactWindow<mantissaBits + 11> window;
    const auto                     addPart = [&](int i, std::int64_t part) { AddSignedParts(i, part, add); };
    for (std::int64_t i = 0; i < n; ++i)
    {
      Bits bits = 0;
      std::memcpy(&bits, voxels + i, sizeof(bits));
      const Bits    field = bits >> (mantissaBits - 1) & special;
      std::uint64_t mantissa = bits & ((Bits{ 1 } << (mantissaBits - 1)) - 1);
      mantissa |= field != 0 ? std::uint64_t{ 1 } << (mantissaBits - 1) : 0;
      if (field != special && mantissa != 0 && i != 0)
      {
        const int exponent = static_cast<int>(field != 0 ? field - 1 : 0) + lowest;
        window.Add(mantissa * static_cast<std::uint64_t>(i),
                   exponent + StatisticsSummary::SumBias,
                   bits >> (8 * sizeof(Bits) - 1) != 0,
                   addPart);
      }
    }
    window.End([&](int first, Int128 value) { AddSignedParts(first, value, add); });
  }
}

/** The intensities of a run that begins at `at`, the voxel `linear` of the image. */
template <typename TPixel>
void
AddIntensities(MeasureRows & rows, std::uint32_t slot, const TPixel * run, std::int64_t length, std::int64_t linear,
               const std::int64_t * at)
{
  const bool   weighted = rows.GetLayout().weighted;
  std::int64_t here[MaxSpatialAxes] = { at[0], at[1], at[2] };
  for (std::int64_t begin = 0; begin < length; begin += WeightedPiece)
  {
    const TPixel * const    voxels = run + begin;
    const std::int64_t      n = std::min(WeightedPiece, length - begin);
    VoxelStatistics<TPixel> statistics;
    here[0] = at[0] + begin;
    RowDigits digits{ rows, slot, weighted ? here : nullptr };
    for (std::int64_t i = 0; i < n; ++i)
    {
      statistics.Add(voxels[i], digits);
    }
    statistics.End(digits);
    if (weighted)
    {
      AddWeightsAlong(voxels, n, [&](int i, std::int64_t part) { rows.AddToWeighted(slot, 0, i, part); });
    }
    const MeasureLayout & layout = rows.GetLayout();
    std::int64_t * const  row = rows.GetRow(slot);
    const auto            find = [&](auto && matches) {
      return linear + begin + (std::find_if(voxels, voxels + n, matches) - voxels);
    };
    if (!layout.details && std::is_integral<TPixel>::value)
    {
      continue;
    }
    std::uint64_t least = statistics.GetMinimum();
    std::uint64_t most = statistics.GetMaximum();
    bool          hasNumbers = true;
    if constexpr (!std::is_integral<TPixel>::value)
    {
      if (statistics.nans > 0 && row[layout.specials + 3] == std::numeric_limits<std::int64_t>::max())
      {
        row[layout.specials + 3] = find([](TPixel v) { return v != v; });
      }
      row[layout.specials] += statistics.nans;
      row[layout.specials + 1] += statistics.positiveInfinities;
      row[layout.specials + 2] += statistics.negativeInfinities;
      hasNumbers = statistics.nans < n;
      const std::uint64_t top = OrdinalOf(std::numeric_limits<TPixel>::infinity());
      const std::uint64_t bottom = OrdinalOf(-std::numeric_limits<TPixel>::infinity());
      least = statistics.negativeInfinities > 0 ? bottom : statistics.finite > 0 ? least : top;
      most = statistics.positiveInfinities > 0 ? top : statistics.finite > 0 ? most : bottom;
    }
    if (!layout.details)
    {
      continue;
    }
    const auto isAt = [&](std::uint64_t ordinal) {
      return find([ordinal](TPixel v) { return OrdinalOf(v) == ordinal && v == v; });
    };
    constexpr std::int64_t nowhere = std::numeric_limits<std::int64_t>::max();
    if (hasNumbers && (least < static_cast<std::uint64_t>(row[layout.minimum]) || row[layout.minimum + 1] == nowhere))
    {
      row[layout.minimum] = static_cast<std::int64_t>(least);
      row[layout.minimum + 1] = isAt(least);
    }
    if (hasNumbers && (most > static_cast<std::uint64_t>(row[layout.maximum]) || row[layout.maximum + 1] == nowhere))
    {
      row[layout.maximum] = static_cast<std::int64_t>(most);
      row[layout.maximum + 1] = isAt(most);
    }
  }
}

using RowIntensities = void (*)(MeasureRows &, const std::vector<LabelRun> &, const BufferView &, const Coordinates &,
                                std::int64_t);

/** Adds the runs of a row that begins at `at`, the voxel `linear` of the image. */
template <typename TPixel>
void
AddRowIntensities(MeasureRows & rows, const std::vector<LabelRun> & runs, const BufferView & view,
                  const Coordinates & at, std::int64_t linear)
{
  const TPixel * const row = static_cast<const TPixel *>(view.data) + view.Offset(at);
  for (const LabelRun & run : runs)
  {
    const std::int64_t begin[MaxSpatialAxes] = { at[0] + run.begin, at[1], at[2] };
    AddIntensities(rows, run.slot, row + run.begin, run.end - run.begin, linear + run.begin, begin);
  }
}

/** 0 + 1 + ... + (n - 1) */
Int128
SumBelow(std::int64_t n)
{
  return static_cast<Int128>(n) * (n - 1) / 2;
}

/** 0 + 1 + 4 + ... + (n - 1)^2 */
Int128
SumOfSquaresBelow(std::int64_t n)
{
  return SumBelow(n) * (2 * static_cast<Int128>(n) - 1) / 3;
}

void
AddRun(MeasureRows & rows, const LabelRun & run, const Coordinates & at, std::int64_t linear)
{
  const MeasureLayout & layout = rows.GetLayout();
  std::int64_t * const  row = rows.GetRow(run.slot);
  const std::int64_t    length = run.end - run.begin;
  const std::int64_t    here[MaxSpatialAxes] = { at[0] + run.begin, at[1], at[2] };
  row[MeasureLayout::count] += length;
  if (!layout.details)
  {
    return;
  }
  row[MeasureLayout::first] = std::min(row[MeasureLayout::first], linear + run.begin);
  Int128 sums[MaxSpatialAxes];
  for (int a = 0; a < layout.dimension; ++a)
  {
    row[MeasureLayout::lower + a] = std::min(row[MeasureLayout::lower + a], here[a]);
    row[layout.upper + a] = std::max(row[layout.upper + a], here[a] + (a == 0 ? length : 1));
    sums[a] = static_cast<Int128>(length) * here[a] + (a == 0 ? SumBelow(length) : 0);
    AddWide(row + layout.sums + 2 * a, sums[a]);
  }
  if (!layout.moments)
  {
    return;
  }
  std::int64_t * product = row + layout.products;
  for (int a = 0; a < layout.dimension; ++a)
  {
    for (int b = 0; b <= a; ++b)
    {
      AddWide(product, sums[b] * here[a] + (a == 0 ? SumBelow(length) * here[0] + SumOfSquaresBelow(length) : 0));
      product += 2;
    }
  }
}

/** One worker's table, and the room for the rows of a part. */
struct MeasureWorker
{
  MeasureWorker(const MeasurementSettings & settings, MeasureMeter & meter)
    : rows(settings, meter)
    , contacts(meter)
    , bytes(meter)
  {}
  MeasureRows                rows;
  LabelContacts              contacts;
  CountedBytes               bytes;
  std::vector<LabelRun>      runs;
  std::vector<std::uint64_t> bits;
};

/** The rows of labels of a slab, and of the plane before it. */
template <typename TLabel>
struct LabelRows
{
  const BufferView & view;
  const TLabel *     plane; ///< before the view along the last axis; nullptr: there is none
  std::int64_t       planeIndex;
  Coordinates        extent;
  int                slabAxis; ///< of the plane

  /** The row at y, z from x on; nullptr outside of the image. */
  const TLabel *
  Get(std::int64_t x, std::int64_t y, std::int64_t z) const
  {
    if (y < 0 || z < 0 || y >= extent[1] || z >= extent[2])
    {
      return nullptr;
    }
    if (plane && slabAxis > 0 && (slabAxis == 1 ? y : z) == planeIndex)
    {
      return plane + (slabAxis == 1 ? 0 : y) * extent[0] + x;
    }
    return static_cast<const TLabel *>(view.data) + view.Offset({ { x, y, z, 0, 0 } });
  }
  /** The label before that of a row at x. */
  TLabel
  GetBefore(const TLabel * row, std::int64_t x) const
  {
    return !row || x == 0 ? TLabel(0) : plane && slabAxis == 0 && x - 1 == planeIndex ? plane[0] : row[-1];
  }
};

/** Measures the parts of a box. */
template <typename TLabel>
class LabelScan
{
public:
  LabelScan(const MeasurementSettings & settings, const LabelRows<TLabel> & labels, const BufferView * intensity)
    : m_Settings(settings)
    , m_Labels(labels)
    , m_Intensity(intensity)
    , m_LooksAround(settings.surfaces || settings.contacts)
  {
    if (intensity)
    {
      m_AddIntensities = DispatchPixelType(
        intensity->kind, [](auto pixel) -> RowIntensities { return AddRowIntensities<decltype(pixel)>; });
    }
  }

  /** `flush` is called after each row of voxels: the tables may be given away then. */
  template <typename TFlush>
  void
  Measure(MeasureWorker & worker, const Box & part, TFlush && flush) const
  {
    const std::int64_t width = part.Extent(0);
    const std::int64_t words = (width + 63) / 64;
    // Rows of bits: those of the plane before, then of this one, each with a row before.
    const std::int64_t rowsOfBits = part.Extent(1) + 1;
    const std::size_t  needed = static_cast<std::size_t>(2 * rowsOfBits * words);
    if (worker.bits.size() < needed)
    {
      worker.bytes.Take((needed - worker.bits.size()) * sizeof(std::uint64_t));
      worker.bits.resize(needed);
    }
    if (worker.runs.capacity() < static_cast<std::size_t>(width))
    {
      worker.bytes.Take((static_cast<std::size_t>(width) - worker.runs.capacity()) * sizeof(LabelRun));
      worker.runs.reserve(static_cast<std::size_t>(width));
    }
    const auto bitsOf = [&](std::int64_t y, std::int64_t z) {
      return worker.bits.data() + ((z & 1) * rowsOfBits + (y - part.lower[1] + 1)) * words;
    };
    const auto mark = [&](std::int64_t y, std::int64_t z) {
      if (const TLabel * const row = m_Labels.Get(part.lower[0], y, z))
      {
        MarkChanges(row, width, bitsOf(y, z));
      }
    };
    const bool         isDeep = m_Settings.dimension > 2;
    const std::int64_t yEnd = part.upper[1] + (m_LooksAround && part.upper[1] == m_Labels.extent[1] ? 1 : 0);
    const std::int64_t zEnd = part.upper[2] + (m_LooksAround && isDeep && part.upper[2] == m_Labels.extent[2] ? 1 : 0);
    for (std::int64_t y = part.lower[1] - 1; m_LooksAround && isDeep && y < part.upper[1]; ++y)
    {
      mark(y, part.lower[2] - 1);
    }
    for (std::int64_t z = part.lower[2]; z < zEnd; ++z)
    {
      if (m_LooksAround)
      {
        mark(part.lower[1] - 1, z);
      }
      for (std::int64_t y = part.lower[1]; y < yEnd; ++y)
      {
        if (y < part.upper[1] && z < part.upper[2])
        {
          mark(y, z);
          this->MeasureRow(worker, { { part.lower[0], y, z, 0, 0 } }, width, bitsOf(y, z));
        }
        if (m_LooksAround)
        {
          this->LookAround(worker, part, y, z, bitsOf);
        }
        flush();
      }
    }
  }

private:
  void
  MeasureRow(MeasureWorker & worker, const Coordinates & at, std::int64_t width, const std::uint64_t * bits) const
  {
    const TLabel * const row = m_Labels.Get(at[0], at[1], at[2]);
    worker.runs.clear();
    std::int64_t begin = 0;
    TLabel       label = row[0];
    const auto   end = [&](std::int64_t x) {
      if (label != 0)
      {
        worker.runs.push_back({ begin, x, worker.rows.FindOrAdd(BitsOfLabel(label)) });
      }
    };
    for (std::int64_t word = 0; word * 64 < width; ++word)
    {
      for (std::uint64_t rest = word == 0 ? bits[0] & ~std::uint64_t{ 1 } : bits[word]; rest != 0; rest &= rest - 1)
      {
        const std::int64_t x = word * 64 + __builtin_ctzll(rest);
        end(x);
        begin = x;
        label = row[x];
      }
    }
    end(width);
    const std::int64_t linear = at[0] + m_Labels.extent[0] * (at[1] + m_Labels.extent[1] * at[2]);
    for (const LabelRun & run : worker.runs)
    {
      AddRun(worker.rows, run, at, linear);
    }
    if (m_AddIntensities)
    {
      m_AddIntensities(worker.rows, worker.runs, *m_Intensity, at, linear);
    }
  }

  /** The row at y, z with those before it along y and z: they are cut where one of the four changes, and each cut, and
   * each piece between two cuts, counts for the labels that lie around.
   *
   * Faces: toward a lower neighbor with another label; a line through a label leaves it as often as it comes in.
   *
   * The Euler number is that of the closed voxels, vertices - edges + faces - voxels. Along a line between four rows,
   * the vertices are more than the edges by the number of intervals of the union of what the label has in the four; in
   * the same way edges - faces between two rows, and faces - voxels in one. An interval is counted where it begins. */
  template <typename TBits>
  void
  LookAround(MeasureWorker & worker, const Box & part, std::int64_t y, std::int64_t z, TBits && bitsOf) const
  {
    const std::int64_t x0 = part.lower[0];
    const std::int64_t width = part.Extent(0);
    // At y, z; before it along y; along z; along both.
    const TLabel * rows[4] = {
      m_Labels.Get(x0, y, z), m_Labels.Get(x0, y - 1, z), m_Labels.Get(x0, y, z - 1), m_Labels.Get(x0, y - 1, z - 1)
    };
    const std::uint64_t * bits[4] = { bitsOf(y, z), bitsOf(y - 1, z), bitsOf(y, z - 1), bitsOf(y - 1, z - 1) };
    TLabel                before[4]{};
    for (int r = 0; r < 4; ++r)
    {
      before[r] = m_Labels.GetBefore(rows[r], x0);
    }
    std::int64_t begin = 0;
    bool         isFirst = true;
    for (std::int64_t word = 0; word * 64 < width; ++word)
    {
      std::uint64_t rest = 0;
      for (int r = 0; r < 4; ++r)
      {
        rest |= rows[r] ? bits[r][word] : 0;
      }
      for (; rest != 0; rest &= rest - 1)
      {
        const std::int64_t x = word * 64 + __builtin_ctzll(rest);
        if (!isFirst)
        {
          this->AddPiece(worker, before, x - begin);
        }
        isFirst = false;
        TLabel now[4];
        for (int r = 0; r < 4; ++r)
        {
          now[r] = rows[r] ? rows[r][x] : TLabel(0);
        }
        this->AddCut(worker, before, now);
        std::copy_n(now, 4, before);
        begin = x;
      }
    }
    this->AddPiece(worker, before, width - begin);
  }

  void
  AddPiece(MeasureWorker & worker, const TLabel * labels, std::int64_t length) const
  {
    for (int a = 1; labels[0] != 0 && a < m_Settings.dimension; ++a)
    {
      this->AddFaces(worker, labels[0], labels[a], a, length);
    }
  }

  void
  AddFaces(MeasureWorker & worker, TLabel label, TLabel other, int axis, std::int64_t faces) const
  {
    if (label == other || label == 0)
    {
      return;
    }
    if (m_Settings.surfaces)
    {
      MeasureRows & rows = worker.rows;
      rows.GetRow(rows.FindOrAdd(BitsOfLabel(label)))[rows.GetLayout().faces + axis] += faces;
    }
    if (m_Settings.contacts && other != 0)
    {
      worker.contacts.Add(BitsOfLabel(label), BitsOfLabel(other), axis, faces);
    }
  }

  void
  AddCut(MeasureWorker & worker, const TLabel * before, const TLabel * now) const
  {
    this->AddFaces(worker, now[0], before[0], 0, 1);
    if (!m_Settings.surfaces)
    {
      return;
    }
    const auto has = [](const TLabel * labels, unsigned int set, TLabel label) {
      return ((set & 1) && labels[0] == label) || ((set & 2) && labels[1] == label) ||
             ((set & 4) && labels[2] == label) || ((set & 8) && labels[3] == label);
    };
    for (int r = 0; r < 4; ++r)
    {
      const TLabel label = now[r];
      // Every set has the first row: what goes on there begins in none.
      if (label == 0 || label == before[0] || has(now, (1u << r) - 1, label))
      {
        continue;
      }
      const auto begins = [&](unsigned int set) { return has(now, set, label) && !has(before, set, label) ? 1 : 0; };
      const int  euler =
        m_Settings.dimension > 2 ? begins(15) - begins(3) - begins(5) + begins(1) : begins(3) - begins(1);
      if (euler != 0)
      {
        worker.rows.GetRow(worker.rows.FindOrAdd(BitsOfLabel(label)))[worker.rows.GetLayout().euler] += euler;
      }
    }
  }

  const MeasurementSettings & m_Settings;
  const LabelRows<TLabel>     m_Labels;
  const BufferView * const    m_Intensity;
  const bool                  m_LooksAround;
  RowIntensities              m_AddIntensities{ nullptr };
};

} // namespace

std::uint64_t
GetBytesOfMeasureWorker(std::uint64_t memory, unsigned int concurrency)
{
  constexpr std::uint64_t most = std::uint64_t{ 4 } << 20;
  return memory == 0 ? most
                     : std::min(most, std::max<std::uint64_t>(memory / (8 * std::uint64_t{ concurrency }), 1 << 16));
}

std::uint64_t
GetBytesOfMeasureScan(std::uint64_t width)
{
  // Bits of two planes of 64 rows and a row before; a run for each voxel of a row.
  return 2 * 65 * ((width + 63) / 64) * sizeof(std::uint64_t) + width * sizeof(LabelRun);
}

Measurements::Measurements(const MeasurementSettings & settings)
{
  if (IsFloatingPoint(settings.labelKind))
  {
    throw ParameterError(std::string("labels are ") + PixelTypeName(settings.labelKind) + "; they must be integers");
  }
  if (settings.dimension < 1 || settings.dimension > MaxSpatialAxes)
  {
    throw ParameterError("labels have " + std::to_string(settings.dimension) + " dimensions; they must be 1 to 3");
  }
  Int128 voxels = 1;
  Int128 longest = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (settings.extent[a] < 1 || (a >= settings.dimension && settings.extent[a] != 1))
    {
      throw ParameterError("labels have an extent of " + std::to_string(settings.extent[a]) + " along axis " +
                           std::to_string(a));
    }
    voxels *= settings.extent[a];
    longest = std::max<Int128>(longest, settings.extent[a]);
    // So that sums of products of coordinates fit 127 bits.
    if (voxels > std::numeric_limits<std::int64_t>::max() || longest > (LargestInt128 / voxels) / longest / 4)
    {
      throw ParameterError("labels have an extent of " + ToString(settings.extent) +
                           ", too large for sums of their coordinates");
    }
  }
  m_State = std::make_unique<State>(settings);
}

Measurements::~Measurements() = default;

const MeasurementSettings &
Measurements::GetSettings() const
{
  return m_State->settings;
}

void
Measurements::State::CheckGiven(const BufferView & labels, const BufferView * intensity, const Box & box,
                                const Box & needed) const
{
  if (!Box::FromExtent(settings.extent).Contains(box))
  {
    throw ParameterError("the box " + ToString(box) + " is not within the image of " + ToString(settings.extent));
  }
  if ((intensity != nullptr) != settings.hasIntensity)
  {
    throw ParameterError(settings.hasIntensity ? "an intensity is missing" : "an intensity was not asked for");
  }
  CheckMeasuredView("labels", labels, settings.labelKind, needed);
  if (intensity)
  {
    CheckMeasuredView("intensities", *intensity, settings.intensityKind, box);
  }
}

void
Measurements::State::KeepLastPlane(const BufferView & labels, const Box & box, int last)
{
  Box plane = box;
  plane.lower[last] = plane.upper[last] - 1;
  bool isWhole = settings.surfaces || settings.contacts;
  for (int a = 0; a < last; ++a)
  {
    isWhole = isWhole && box.lower[a] == 0 && box.upper[a] == settings.extent[a];
  }
  this->planeIndex = -1;
  isPrepared = false;
  if (!isWhole || plane.upper[last] >= settings.extent[last])
  {
    return;
  }
  const std::size_t pixel = PixelSize(settings.labelKind);
  const std::size_t bytes = static_cast<std::size_t>(plane.NumberOfVoxels()) * pixel;
  if (this->plane.empty())
  {
    meter.Take(bytes);
    this->plane.resize(bytes / sizeof(std::max_align_t) + 1);
  }
  auto *            to = reinterpret_cast<unsigned char *>(this->plane.data());
  const std::size_t row = static_cast<std::size_t>(plane.Extent(0)) * pixel;
  for (std::int64_t y = plane.lower[1]; y < plane.upper[1]; ++y)
  {
    std::memcpy(to,
                static_cast<const unsigned char *>(labels.data) +
                  labels.Offset({ { plane.lower[0], y, plane.lower[2], 0, 0 } }) * static_cast<std::int64_t>(pixel),
                row);
    to += row;
  }
  this->planeIndex = plane.lower[last];
}

void
Measurements::Add(const BufferView & labels, const BufferView * intensity, const Box & box, Executor & executor,
                  RunControl * control)
{
  if (box.IsEmpty())
  {
    return;
  }
  State &                     state = *m_State;
  const MeasurementSettings & settings = state.settings;
  int                         last = settings.dimension - 1;
  while (last > 0 && settings.extent[last] == 1)
  {
    --last;
  }
  const bool looksAround = settings.surfaces || settings.contacts;
  const bool usesPlane = looksAround && state.planeIndex >= 0 && state.planeIndex == box.lower[last] - 1 &&
                         labels.box.lower[last] == box.lower[last];
  Box needed = box;
  for (int a = 0; looksAround && a < settings.dimension; ++a)
  {
    needed.lower[a] -= box.lower[a] > 0 && !(a == last && usesPlane) ? 1 : 0;
  }
  state.CheckGiven(labels, intensity, box, needed);
  const std::vector<Box>                      parts = CutIntoParts(box, executor.GetConcurrency());
  std::vector<std::unique_ptr<MeasureWorker>> workers(executor.GetConcurrency());
  std::mutex                                  mutex;
  // A worker keeps this for itself before it adds to the common table.
  const std::uint64_t ofWorker = GetBytesOfMeasureWorker(settings.memory, executor.GetConcurrency());
  DispatchPixelType(settings.labelKind, [&](auto pixel) {
    using Label = decltype(pixel);
    if constexpr (std::is_integral<Label>::value)
    {
      LabelRows<Label>       rows{ labels,
                             usesPlane ? reinterpret_cast<const Label *>(state.plane.data()) : nullptr,
                             state.planeIndex,
                             settings.extent,
                             last };
      const LabelScan<Label> scan(settings, rows, intensity);
      executor.ParallelFor(static_cast<std::int64_t>(parts.size()), [&](std::int64_t i, unsigned int w) {
        if (control && control->ShouldStop())
        {
          return;
        }
        if (!workers[w])
        {
          workers[w] = std::make_unique<MeasureWorker>(settings, state.meter);
        }
        MeasureWorker & worker = *workers[w];
        const auto      give = [&] {
          worker.rows.PassCarriesOn();
          const std::lock_guard<std::mutex> lock(mutex);
          state.rows.Merge(worker.rows);
          state.contacts.Merge(worker.contacts);
          worker.rows.Clear();
          worker.contacts.Clear();
        };
        const Box & part = parts[static_cast<std::size_t>(i)];
        scan.Measure(worker, part, [&] {
          if (worker.rows.GetBytesOfRows() > ofWorker || worker.contacts.GetSize() * 80 > ofWorker)
          {
            give();
          }
        });
        give();
        if (control)
        {
          control->AddFinishedVoxels(part.NumberOfVoxels());
        }
      });
    }
  });
  if (control && control->ShouldStop())
  {
    throw Aborted();
  }
  state.KeepLastPlane(labels, box, last);
}

void
Measurements::Add(const Measurements & other)
{
  const MeasurementSettings & a = m_State->settings;
  const MeasurementSettings & b = other.m_State->settings;
  if (a.extent != b.extent || a.labelKind != b.labelKind || a.hasIntensity != b.hasIntensity ||
      a.intensityKind != b.intensityKind || a.details != b.details || a.moments != b.moments ||
      a.surfaces != b.surfaces || a.weighted != b.weighted || a.contacts != b.contacts || a.dimension != b.dimension)
  {
    throw ParameterError("measurements of different settings do not add up");
  }
  m_State->isPrepared = false;
  m_State->rows.Merge(other.m_State->rows);
  m_State->contacts.Merge(other.m_State->contacts);
}

std::int64_t
Measurements::GetNumberOfLabels() const
{
  return static_cast<std::int64_t>(m_State->rows.GetSize());
}

std::uint64_t
Measurements::GetBytes() const
{
  return m_State->meter.GetUsed();
}

} // namespace chunkwise
