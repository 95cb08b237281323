/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseMeasureTable_h
#define chunkwiseMeasureTable_h

#include "chunkwiseMeasureLayout.h"

#include <atomic>
#include <memory>
#include <vector>

// Each label has a row of words of 64 bits, so that rows of parts of an image, whoever made them, add up.
namespace chunkwise
{

/** Counts the bytes of all tables of a run. */
class MeasureMeter
{
public:
  explicit MeasureMeter(std::uint64_t limit)
    : m_Limit(limit)
  {}
  /** Throws BudgetError. */
  void
  Take(std::uint64_t bytes);
  void
  GiveBack(std::uint64_t bytes)
  {
    m_Used -= bytes;
  }
  std::uint64_t
  GetUsed() const
  {
    return m_Used;
  }
  std::uint64_t
  GetLimit() const
  {
    return m_Limit;
  }

private:
  const std::uint64_t        m_Limit;
  std::atomic<std::uint64_t> m_Used{ 0 };
};

/** Bytes that a table has taken of a meter. */
class CountedBytes
{
public:
  explicit CountedBytes(MeasureMeter & meter)
    : m_Meter(meter)
  {}
  ~CountedBytes() { m_Meter.GiveBack(m_Bytes); }
  CountedBytes(const CountedBytes &) = delete;
  CountedBytes &
  operator=(const CountedBytes &) = delete;
  void
  Take(std::uint64_t bytes)
  {
    m_Meter.Take(bytes);
    m_Bytes += bytes;
  }
  void
  GiveBack(std::uint64_t bytes)
  {
    m_Meter.GiveBack(bytes);
    m_Bytes -= bytes;
  }

private:
  MeasureMeter & m_Meter;
  std::uint64_t  m_Bytes{ 0 };
};

/** Labels, as their bits extended to 64, to numbers 0, 1, ...: an array for small labels, hashes for others. */
class LabelSlots
{
public:
  static constexpr std::uint32_t None = ~std::uint32_t{ 0 };

  explicit LabelSlots(MeasureMeter & meter)
    : m_Bytes(meter)
  {}
  std::uint32_t
  Find(std::uint64_t label) const
  {
    if (label < m_Dense.size() && m_Dense[label] != None)
    {
      return m_Dense[label];
    }
    return m_Hashed == 0 ? None : m_Hashes[this->PlaceOf(label)].slot;
  }
  /** A label that is not there. */
  void
  Add(std::uint64_t label, std::uint32_t slot);
  /** `labels`: all that are there. */
  void
  Clear(const std::vector<std::uint64_t> & labels);

private:
  struct Entry
  {
    std::uint64_t label;
    std::uint32_t slot;
  };

public:
  static constexpr std::size_t BytesOfHash = sizeof(Entry);

private:
  std::size_t
  PlaceOf(std::uint64_t label) const
  {
    // The multiplier of Knuth's multiplicative hashing, 2^64 divided by the golden ratio.
    std::size_t place = static_cast<std::size_t>((label * 0x9E3779B97F4A7C15u) >> m_Shift);
    while (m_Hashes[place].slot != None && m_Hashes[place].label != label)
    {
      place = (place + 1) & (m_Hashes.size() - 1);
    }
    return place;
  }

  std::vector<std::uint32_t> m_Dense;
  std::vector<Entry>         m_Hashes;
  std::size_t                m_Hashed{ 0 };
  std::size_t                m_Count{ 0 };
  int                        m_Shift{ 64 };
  CountedBytes               m_Bytes;
};

/** Rows by label. */
class MeasureRows
{
public:
  MeasureRows(const MeasurementSettings & settings, MeasureMeter & meter);

  const MeasureLayout &
  GetLayout() const
  {
    return m_Layout;
  }
  std::size_t
  GetSize() const
  {
    return m_Labels.size();
  }
  std::size_t
  GetBytesOfRows() const
  {
    return m_Labels.size() * static_cast<std::size_t>(m_Layout.words) * sizeof(std::int64_t);
  }
  const std::vector<std::uint64_t> &
  GetLabels() const
  {
    return m_Labels;
  }
  const LabelSlots &
  GetSlots() const
  {
    return m_Slots;
  }
  /** The number of a label's row, which is made if there is none. */
  std::uint32_t
  FindOrAdd(std::uint64_t label)
  {
    const std::uint32_t slot = m_Slots.Find(label);
    return slot != LabelSlots::None ? slot : this->AddRow(label);
  }
  std::int64_t *
  GetRow(std::uint32_t slot)
  {
    return m_Blocks[slot / RowsOfBlock].get() +
           static_cast<std::size_t>(slot % RowsOfBlock) * static_cast<std::size_t>(m_Layout.words);
  }
  const std::int64_t *
  GetRow(std::uint32_t slot) const
  {
    return const_cast<MeasureRows *>(this)->GetRow(slot);
  }
  // Digits. A row's address changes when they become more.
  void
  AddToSum(std::uint32_t slot, int i, std::int64_t part)
  {
    this->NeedDigit(i);
    this->GetRow(slot)[m_Layout.GetSum() + i - m_Layout.low] += part;
  }
  void
  AddToSquares(std::uint32_t slot, int i, std::int64_t part)
  {
    if (!m_Layout.details)
    {
      return;
    }
    this->NeedDigit(i / 2);
    this->GetRow(slot)[m_Layout.GetSquares() + i - 2 * m_Layout.low] += part;
  }
  void
  AddToWeighted(std::uint32_t slot, int axis, int i, std::int64_t part)
  {
    if (i < m_Layout.low || i > m_Layout.high)
    {
      this->NeedDigit(i);
    }
    this->GetRow(slot)[m_Layout.GetWeighted(axis) + i - m_Layout.low] += part;
  }
  void
  PassCarriesOn();
  /** Rows whose carries have been passed on. */
  void
  Merge(const MeasureRows & other);
  /** Digits from `low` to `high`, and what rows have already. */
  void
  NeedDigits(int low, int high);
  /** A row whose numbers fit the digits that are here. */
  void
  MergeRow(const MeasureLayout & from, const std::int64_t * theirs);
  void
  Clear();

  static constexpr std::size_t RowsOfBlock = 256;

private:
  /** A digit and one more, into which 2^62 numbers carry. */
  void
  NeedDigit(int i)
  {
    if (i < m_Layout.low || i + 2 > m_Layout.high)
    {
      this->Widen(i, i + 2);
    }
  }
  void
  Widen(int low, int high);
  std::uint32_t
  AddRow(std::uint64_t label);

  MeasureLayout                                m_Layout;
  std::vector<std::uint64_t>                   m_Labels;
  LabelSlots                                   m_Slots;
  std::vector<std::unique_ptr<std::int64_t[]>> m_Blocks;
  CountedBytes                                 m_Bytes;
};

/** Faces between two labels, for each axis. */
struct LabelContact
{
  std::uint64_t label; ///< the smaller one, as bits
  std::uint64_t neighbor;
  std::int64_t  faces[MaxSpatialAxes];
};

class LabelContacts
{
public:
  explicit LabelContacts(MeasureMeter & meter)
    : m_Bytes(meter)
  {}
  void
  Add(std::uint64_t a, std::uint64_t b, int axis, std::int64_t faces)
  {
    this->FindOrAdd(a < b ? a : b, a < b ? b : a).faces[axis] += faces;
  }
  void
  Merge(const LabelContacts & other);
  void
  Clear();
  std::size_t
  GetSize() const
  {
    return m_Count;
  }
  std::vector<LabelContact>
  List() const;

private:
  LabelContact &
  FindOrAdd(std::uint64_t a, std::uint64_t b);

  std::vector<LabelContact> m_Entries; ///< label 0: none
  std::size_t               m_Count{ 0 };
  CountedBytes              m_Bytes;
};

/** The state of Measurements. */
struct Measurements::State
{
  explicit State(const MeasurementSettings & given)
    : settings(given)
    , meter(given.memory)
    , rows(given, meter)
    , contacts(meter)
  {}
  /** Before a table is made. */
  void
  Prepare();
  /** Row numbers in the order of labels. */
  std::pair<std::size_t, std::size_t>
  GetRange(std::int64_t begin, std::int64_t end) const;
  /** Throws if these cannot be added: a box of the image, labels that cover what is needed, intensities of the box. */
  void
  CheckGiven(const BufferView & labels, const BufferView * intensity, const Box & box, const Box & needed) const;
  /** Keeps the box's last plane along an axis for the box after it, where the box has all of that plane. */
  void
  KeepLastPlane(const BufferView & labels, const Box & box, int last);

  const MeasurementSettings settings;
  MeasureMeter              meter;
  MeasureRows               rows;
  LabelContacts             contacts;
  /** Numbers of rows by their labels, ascending, and whether all sums of integers fit 64 bits. */
  std::vector<std::uint32_t> order;
  bool                       sumsFit{ false };
  bool                       isPrepared{ false };
  /** The last plane of the last slab, and which one it is. */
  std::vector<std::max_align_t> plane;
  std::int64_t                  planeIndex{ -1 };
};

/** A label's bits, extended with its sign. */
template <typename TLabel>
std::uint64_t
BitsOfLabel(TLabel label)
{
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(label));
}

/** Voxels of the longest rows of parts. */
constexpr std::int64_t LongestMeasuredRow = 65536;

/** The bytes of rows, and of contacts, with which a worker adds its tables to the common ones. */
std::uint64_t
GetBytesOfMeasureWorker(std::uint64_t memory, unsigned int concurrency);

/** The bytes that a worker needs beside its tables, for parts of such a width at most. */
std::uint64_t
GetBytesOfMeasureScan(std::uint64_t width);

/** Calls visit(begin, n) for parts of a box of a view: whole rows of up to 65536 voxels, some of which follow each
 * other along y and z, so that parts of similar sizes keep `concurrency` workers busy. */
std::vector<Box>
CutIntoParts(const Box & box, unsigned int concurrency);

/** Throws ParameterError unless the view is of this kind, holds the box and has rows. */
void
CheckMeasuredView(const char * what, const BufferView & view, PixelType kind, const Box & box);

/** Writes replaced(label) for the labels of a box, once for each run of a label; 0 stays 0. */
template <typename TReplaced>
void
ReplaceLabels(const BufferView & labels, const BufferView & output, PixelType kind, const Box & box,
              Executor & executor, const TReplaced & replaced)
{
  if (box.IsEmpty())
  {
    return;
  }
  CheckMeasuredView("labels", labels, kind, box);
  CheckMeasuredView("new labels", output, kind, box);
  const std::vector<Box> parts = CutIntoParts(box, executor.GetConcurrency());
  DispatchPixelType(kind, [&](auto pixel) {
    using Label = decltype(pixel);
    executor.ParallelFor(static_cast<std::int64_t>(parts.size()), [&](std::int64_t p, unsigned int) {
      const Box & part = parts[static_cast<std::size_t>(p)];
      for (std::int64_t z = part.lower[2]; z < part.upper[2]; ++z)
      {
        for (std::int64_t y = part.lower[1]; y < part.upper[1]; ++y)
        {
          const Coordinates   at{ { part.lower[0], y, z, 0, 0 } };
          const Label * const from = static_cast<const Label *>(labels.data) + labels.Offset(at);
          Label * const       to = static_cast<Label *>(output.data) + output.Offset(at);
          Label               last = 0;
          Label               becomes = 0;
          for (std::int64_t x = 0; x < part.Extent(0); ++x)
          {
            if (from[x] != last)
            {
              last = from[x];
              becomes = last == Label(0) ? Label(0) : replaced(last);
            }
            to[x] = becomes;
          }
        }
      }
    });
  });
}

} // namespace chunkwise

#endif
