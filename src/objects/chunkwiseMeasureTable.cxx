/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseMeasureTable.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chunkwise
{

namespace
{

/** Labels below are found in an array from the beginning on. */
constexpr std::uint64_t AlwaysDense = 4096;

} // namespace

/** Counts different numbers, those of a sample of hashes once there are many. */
class DistinctNumbers
{
public:
  void
  Add(std::uint64_t number)
  {
    number ^= number >> 30;
    number *= 0xBF58476D1CE4E5B9u;
    number ^= number >> 27;
    number *= 0x94D049BB133111EBu;
    this->AddHash(std::max<std::uint64_t>(number ^ (number >> 31), 1));
  }
  /** Some percent above the number with next to certainty; exact if it is small. */
  std::uint64_t
  GetUpperBound() const
  {
    const double sampled = std::ldexp(static_cast<double>(m_Count), m_Halvings);
    return static_cast<std::uint64_t>(m_Halvings > 0 ? 1.05 * sampled : sampled);
  }

private:
  static constexpr std::size_t Most = std::size_t{ 1 } << 16;

  void
  AddHash(std::uint64_t hash)
  {
    if (m_Halvings > 0 && hash >> (64 - m_Halvings) != 0)
    {
      return;
    }
    std::size_t place = static_cast<std::size_t>(hash) & (m_Hashes.size() - 1);
    while (m_Hashes[place] != 0 && m_Hashes[place] != hash)
    {
      place = (place + 1) & (m_Hashes.size() - 1);
    }
    if (m_Hashes[place] == hash)
    {
      return;
    }
    m_Hashes[place] = hash;
    if (++m_Count > Most)
    {
      ++m_Halvings;
      m_Count = 0;
      std::vector<std::uint64_t> old(m_Hashes.size(), 0);
      old.swap(m_Hashes);
      std::for_each(old.begin(), old.end(), [&](std::uint64_t each) {
        if (each != 0)
        {
          this->AddHash(each);
        }
      });
    }
  }

  std::vector<std::uint64_t> m_Hashes = std::vector<std::uint64_t>(2 * Most, 0);
  std::size_t                m_Count{ 0 };
  int                        m_Halvings{ 0 };
};

namespace
{

/** Entries of a table of hashes that is half full at most and grows by doubling: the new ones and the old ones. */
std::uint64_t
MostHashes(std::uint64_t count)
{
  std::uint64_t size = 64;
  while (size < 2 * (count + 1))
  {
    size *= 2;
  }
  return size + size / 2;
}

std::uint64_t
BytesOfSlots(std::uint64_t labels, std::uint64_t largest)
{
  const std::uint64_t dense = std::min(largest < ~std::uint64_t{ 0 } ? largest + 1 : largest, 8 * labels);
  return sizeof(std::uint32_t) * (AlwaysDense + 3 * dense) + LabelSlots::BytesOfHash * MostHashes(labels);
}

std::uint64_t
BytesOfContacts(std::uint64_t contacts)
{
  return sizeof(LabelContact) * MostHashes(contacts);
}

} // namespace

void
MeasureMeter::Take(std::uint64_t bytes)
{
  const std::uint64_t used = m_Used += bytes;
  if (m_Limit > 0 && used > m_Limit)
  {
    m_Used -= bytes;
    throw BudgetError("the tables of labels need " + std::to_string(used) + " bytes or more, the memory for them is " +
                        std::to_string(m_Limit),
                      used,
                      m_Limit);
  }
}

void
LabelSlots::Add(std::uint64_t label, std::uint32_t slot)
{
  ++m_Count;
  // An array as long as it is not emptier than hashes are.
  if (label >= m_Dense.size() && label < std::max<std::uint64_t>(AlwaysDense, 8 * std::uint64_t{ m_Count }))
  {
    const std::size_t size = std::max<std::size_t>(AlwaysDense, 2 * (static_cast<std::size_t>(label) + 1));
    m_Bytes.Take(size * sizeof(std::uint32_t));
    const std::size_t before = m_Dense.capacity();
    m_Dense.reserve(size);
    m_Bytes.GiveBack(before * sizeof(std::uint32_t));
    m_Dense.resize(size, None);
  }
  if (label < m_Dense.size())
  {
    m_Dense[label] = slot;
    return;
  }
  if (2 * (m_Hashed + 1) > m_Hashes.size())
  {
    const std::size_t size = std::max<std::size_t>(64, 2 * m_Hashes.size());
    m_Bytes.Take(size * sizeof(Entry));
    std::vector<Entry> old(size, Entry{ 0, None });
    old.swap(m_Hashes);
    m_Shift = 64;
    for (std::size_t s = size; s > 1; s /= 2)
    {
      --m_Shift;
    }
    for (const Entry & entry : old)
    {
      if (entry.slot != None)
      {
        m_Hashes[this->PlaceOf(entry.label)] = entry;
      }
    }
    m_Bytes.GiveBack(old.size() * sizeof(Entry));
  }
  m_Hashes[this->PlaceOf(label)] = { label, slot };
  ++m_Hashed;
}

void
LabelSlots::Clear(const std::vector<std::uint64_t> & labels)
{
  for (const std::uint64_t label : labels)
  {
    if (label < m_Dense.size())
    {
      m_Dense[label] = None;
    }
  }
  if (m_Hashed > 0)
  {
    std::fill(m_Hashes.begin(), m_Hashes.end(), Entry{ 0, None });
    m_Hashed = 0;
  }
  m_Count = 0;
}

MeasureRows::MeasureRows(const MeasurementSettings & settings, MeasureMeter & meter)
  : m_Layout(settings)
  , m_Slots(meter)
  , m_Bytes(meter)
{}

std::uint32_t
MeasureRows::AddRow(std::uint64_t label)
{
  if (m_Labels.size() >= LabelSlots::None)
  {
    throw Error("there are more than " + std::to_string(LabelSlots::None) + " labels");
  }
  const auto        slot = static_cast<std::uint32_t>(m_Labels.size());
  const std::size_t words = static_cast<std::size_t>(m_Layout.words);
  if (m_Labels.size() == m_Labels.capacity())
  {
    const std::size_t more = std::max<std::size_t>(64, m_Labels.capacity() / 2);
    m_Bytes.Take(more * sizeof(std::uint64_t));
    m_Labels.reserve(m_Labels.capacity() + more);
  }
  if (slot / RowsOfBlock == m_Blocks.size())
  {
    m_Bytes.Take(RowsOfBlock * words * sizeof(std::int64_t));
    m_Blocks.push_back(std::make_unique<std::int64_t[]>(RowsOfBlock * words));
  }
  m_Slots.Add(label, slot);
  m_Labels.push_back(label);
  std::int64_t * const row = this->GetRow(slot);
  m_Layout.Begin(row, label);
  return slot;
}

void
MeasureRows::Widen(int low, int high)
{
  MeasureLayout wide = m_Layout;
  if (wide.low < wide.high)
  {
    low = std::min(low, wide.low);
    high = std::max(high, wide.high);
  }
  wide.SetDigits(low, high);
  const auto move = [&](const std::int64_t * from, std::int64_t * to) {
    const int digits = m_Layout.high - m_Layout.low;
    std::copy_n(from, m_Layout.digits, to);
    if (digits == 0)
    {
      return;
    }
    const int shift = m_Layout.low - low;
    std::copy_n(from + m_Layout.GetSum(), digits, to + wide.GetSum() + shift);
    std::copy_n(from + m_Layout.GetSquares(), m_Layout.details ? 2 * digits : 0, to + wide.GetSquares() + 2 * shift);
    for (int a = 0; m_Layout.weighted && a < m_Layout.dimension; ++a)
    {
      std::copy_n(from + m_Layout.GetWeighted(a), digits + 2, to + wide.GetWeighted(a) + shift);
    }
  };
  // A table whose rows differ, should memory end, is not used again.
  for (std::size_t b = 0; b < m_Blocks.size(); ++b)
  {
    const std::size_t bytes = RowsOfBlock * static_cast<std::size_t>(wide.words) * sizeof(std::int64_t);
    m_Bytes.Take(bytes);
    auto block = std::make_unique<std::int64_t[]>(RowsOfBlock * static_cast<std::size_t>(wide.words));
    for (std::size_t i = 0; i < RowsOfBlock && b * RowsOfBlock + i < m_Labels.size(); ++i)
    {
      move(m_Blocks[b].get() + i * static_cast<std::size_t>(m_Layout.words),
           block.get() + i * static_cast<std::size_t>(wide.words));
    }
    m_Blocks[b] = std::move(block);
    m_Bytes.GiveBack(RowsOfBlock * static_cast<std::size_t>(m_Layout.words) * sizeof(std::int64_t));
  }
  m_Layout = wide;
}

void
MeasureRows::PassCarriesOn()
{
  const int digits = m_Layout.high - m_Layout.low;
  if (digits == 0)
  {
    return;
  }
  for (std::size_t slot = 0; slot < m_Labels.size(); ++slot)
  {
    std::int64_t * const row = this->GetRow(static_cast<std::uint32_t>(slot));
    Carry(row + m_Layout.GetSum(), digits);
    if (m_Layout.details)
    {
      Carry(row + m_Layout.GetSquares(), 2 * digits);
    }
    for (int a = 0; m_Layout.weighted && a < m_Layout.dimension; ++a)
    {
      Carry(row + m_Layout.GetWeighted(a), digits + 2);
    }
  }
}

void
MeasureRows::Merge(const MeasureRows & other)
{
  this->NeedDigits(other.m_Layout.low, other.m_Layout.high);
  for (std::size_t i = 0; i < other.m_Labels.size(); ++i)
  {
    this->MergeRow(other.m_Layout, other.GetRow(static_cast<std::uint32_t>(i)));
  }
}

void
MeasureRows::NeedDigits(int low, int high)
{
  if (low < high && (m_Layout.low == m_Layout.high || low < m_Layout.low || high > m_Layout.high))
  {
    this->Widen(low, high);
  }
}

void
MeasureRows::MergeRow(const MeasureLayout & from, const std::int64_t * theirs)
{
  const std::uint32_t slot = this->FindOrAdd(static_cast<std::uint64_t>(theirs[MeasureLayout::label]));
  m_Layout.Add(this->GetRow(slot), from, theirs);
}

void
MeasureRows::Clear()
{
  m_Slots.Clear(m_Labels);
  m_Labels.clear();
}

LabelContact &
LabelContacts::FindOrAdd(std::uint64_t a, std::uint64_t b)
{
  if (2 * (m_Count + 1) > m_Entries.size())
  {
    const std::size_t size = std::max<std::size_t>(64, 2 * m_Entries.size());
    m_Bytes.Take(size * sizeof(LabelContact));
    std::vector<LabelContact> old(size, LabelContact{});
    old.swap(m_Entries);
    m_Count = 0;
    for (const LabelContact & entry : old)
    {
      if (entry.label != 0)
      {
        this->FindOrAdd(entry.label, entry.neighbor) = entry;
      }
    }
    m_Bytes.GiveBack(old.size() * sizeof(LabelContact));
  }
  const std::uint64_t mixed = (a * 0x9E3779B97F4A7C15u) ^ ((b << 32 | b >> 32) * 0xC2B2AE3D27D4EB4Fu);
  std::size_t         place = static_cast<std::size_t>(mixed >> 17) & (m_Entries.size() - 1);
  while (m_Entries[place].label != 0 && (m_Entries[place].label != a || m_Entries[place].neighbor != b))
  {
    place = (place + 1) & (m_Entries.size() - 1);
  }
  if (m_Entries[place].label == 0)
  {
    m_Entries[place].label = a;
    m_Entries[place].neighbor = b;
    ++m_Count;
  }
  return m_Entries[place];
}

void
LabelContacts::Merge(const LabelContacts & other)
{
  for (const LabelContact & entry : other.m_Entries)
  {
    if (entry.label != 0)
    {
      LabelContact & ours = this->FindOrAdd(entry.label, entry.neighbor);
      for (int a = 0; a < MaxSpatialAxes; ++a)
      {
        ours.faces[a] += entry.faces[a];
      }
    }
  }
}

void
LabelContacts::Clear()
{
  if (m_Count > 0)
  {
    std::fill(m_Entries.begin(), m_Entries.end(), LabelContact{});
    m_Count = 0;
  }
}

std::vector<LabelContact>
LabelContacts::List() const
{
  std::vector<LabelContact> list;
  std::copy_if(m_Entries.begin(), m_Entries.end(), std::back_inserter(list), [](const LabelContact & entry) {
    return entry.label != 0;
  });
  return list;
}

std::vector<Box>
CutIntoParts(const Box & box, unsigned int concurrency)
{
  constexpr std::int64_t most = std::int64_t{ 1 } << 20;
  constexpr std::int64_t rows = 64;
  // Small enough that every worker has some.
  const std::int64_t voxels =
    std::min(most, std::max<std::int64_t>(box.NumberOfVoxels() / (4 * std::int64_t{ concurrency }), 4096));
  const std::int64_t width = std::min(box.Extent(0), LongestMeasuredRow);
  const std::int64_t height = std::min({ box.Extent(1), rows, std::max<std::int64_t>(voxels / width, 1) });
  const std::int64_t depth = std::min(box.Extent(2), std::max<std::int64_t>(voxels / (width * height), 1));
  std::vector<Box>   parts;
  for (std::int64_t z = box.lower[2]; z < box.upper[2]; z += depth)
  {
    for (std::int64_t y = box.lower[1]; y < box.upper[1]; y += height)
    {
      for (std::int64_t x = box.lower[0]; x < box.upper[0]; x += width)
      {
        Box part = box;
        part.lower[0] = x;
        part.lower[1] = y;
        part.lower[2] = z;
        part.upper[0] = std::min(x + width, box.upper[0]);
        part.upper[1] = std::min(y + height, box.upper[1]);
        part.upper[2] = std::min(z + depth, box.upper[2]);
        parts.push_back(part);
      }
    }
  }
  return parts;
}

void
CheckMeasuredView(const char * what, const BufferView & view, PixelType kind, const Box & box)
{
  if (view.kind != kind)
  {
    throw ParameterError(std::string(what) + " are " + PixelTypeName(view.kind) + ", the measurements have " +
                         PixelTypeName(kind));
  }
  if (!view.box.Contains(box))
  {
    throw ParameterError(std::string(what) + ": the view holds " + ToString(view.box) + ", but " + ToString(box) +
                         " is needed");
  }
  if (view.stride[0] != 1)
  {
    throw ParameterError(std::string(what) + " have a stride of " + std::to_string(view.stride[0]) +
                         " along x, it should be 1");
  }
}

struct MeasurementNeeds::State
{
  explicit State(const MeasurementSettings & given)
    : settings(given)
  {}

  template <typename TLabel>
  void
  Count(const BufferView & labels, const Box & box)
  {
    const auto * const data = static_cast<const TLabel *>(labels.data);
    for (std::int64_t z = box.lower[2]; z < box.upper[2]; ++z)
    {
      for (std::int64_t y = box.lower[1]; y < box.upper[1]; ++y)
      {
        const TLabel * const row = data + labels.Offset({ { box.lower[0], y, z, 0, 0 } });
        TLabel               before = 0;
        std::uint64_t        runs = 0;
        std::uint64_t        pairs = 0;
        for (std::int64_t x = 0; x < box.Extent(0); ++x)
        {
          if (x % LongestMeasuredRow == 0)
          {
            this->mostRuns = std::max(this->mostRuns, runs);
            runs = 0;
          }
          if (row[x] != before && row[x] != 0)
          {
            ++runs;
            this->labels.Add(BitsOfLabel(row[x]));
            this->largest = std::max(this->largest, BitsOfLabel(row[x]));
          }
          before = row[x];
        }
        for (int a = 0; settings.contacts && a < settings.dimension; ++a)
        {
          Coordinates at{ { box.lower[0], y, z, 0, 0 } };
          const bool  hasBefore = --at[a] >= labels.box.lower[a];
          if (a > 0 && !hasBefore)
          {
            this->missedRows += (a == 1 ? y : z) > 0 ? 1 : 0;
            continue;
          }
          ++this->seenRows;
          const TLabel * const other = data + labels.Offset(at);
          std::uint64_t        last = 0;
          for (std::int64_t x = a == 0 && !hasBefore ? 1 : 0; x < box.Extent(0); ++x)
          {
            if (row[x] == other[x] || row[x] == 0 || other[x] == 0)
            {
              continue;
            }
            const std::uint64_t lower = std::min(BitsOfLabel(row[x]), BitsOfLabel(other[x]));
            const std::uint64_t upper = std::max(BitsOfLabel(row[x]), BitsOfLabel(other[x]));
            const std::uint64_t pair = lower * 0x9E3779B97F4A7C15u ^ (upper * 0xC2B2AE3D27D4EB4Fu + (upper >> 32));
            if (pair != last)
            {
              contacts.Add(pair);
              ++pairs;
            }
            last = pair;
          }
        }
        this->mostRuns = std::max(this->mostRuns, runs);
        this->mostPairs = std::max(this->mostPairs, pairs);
      }
    }
  }

  std::uint64_t
  BytesOfRows(std::uint64_t rows, std::uint64_t words) const
  {
    // Whole blocks, and one that is replaced by a wider one; their list grows by half.
    const std::uint64_t blocks = rows / MeasureRows::RowsOfBlock + 2;
    return blocks * MeasureRows::RowsOfBlock * words * sizeof(std::int64_t) + rows * 12 + 1024 +
           BytesOfSlots(rows, largest);
  }

  const MeasurementSettings settings;
  DistinctNumbers           labels;
  DistinctNumbers           contacts;
  std::uint64_t             largest{ 0 };
  /** A row of a part has so many at most: a worker's tables grow by them beyond its share. */
  std::uint64_t                 mostRuns{ 0 };
  std::uint64_t                 mostPairs{ 0 };
  std::int64_t                  seenRows{ 0 };
  std::int64_t                  missedRows{ 0 };
  std::unique_ptr<Measurements> one;
};

MeasurementNeeds::MeasurementNeeds(const MeasurementSettings & settings)
  : m_State(std::make_unique<State>(settings))
{
  MeasurementSettings single = settings;
  single.labelKind = PixelType::UInt8;
  single.contacts = single.surfaces = false;
  single.memory = 0;
  m_State->one = std::make_unique<Measurements>(single);
}

MeasurementNeeds::~MeasurementNeeds() = default;

void
MeasurementNeeds::Add(const BufferView & labels, const BufferView * intensity, const Box & box, Executor & executor)
{
  DispatchPixelType(m_State->settings.labelKind, [&](auto pixel) {
    if constexpr (std::is_integral<decltype(pixel)>::value)
    {
      m_State->Count<decltype(pixel)>(labels, box);
    }
  });
  if (intensity != nullptr)
  {
    // Sums of intensities take as many digits as those of one label that is everywhere.
    const std::vector<std::uint8_t> ones(static_cast<std::size_t>(box.Extent(0)), std::uint8_t{ 1 });
    BufferView                      everywhere = labels;
    everywhere.data = const_cast<std::uint8_t *>(ones.data());
    everywhere.kind = PixelType::UInt8;
    everywhere.box = box;
    everywhere.stride = Coordinates::Filled(0);
    everywhere.stride[0] = 1;
    m_State->one->Add(everywhere, intensity, box, executor);
  }
}

std::uint64_t
MeasurementNeeds::GetBytes(unsigned int concurrency, std::size_t quantiles) const
{
  const State &               state = *m_State;
  const MeasurementSettings & settings = state.settings;
  MeasureLayout               layout(settings);
  const MeasureLayout &       digits = state.one->m_State->rows.GetLayout();
  layout.SetDigits(digits.low, digits.high);
  const auto          words = static_cast<std::uint64_t>(layout.words);
  const std::uint64_t labels = state.labels.GetUpperBound();
  const double        missed =
    state.seenRows > 0 ? static_cast<double>(state.missedRows) / static_cast<double>(state.seenRows) : 0.0;
  const auto contacts =
    static_cast<std::uint64_t>(static_cast<double>(state.contacts.GetUpperBound()) * (1.0 + 2.0 * missed));
  std::uint64_t plane = 0;
  if (settings.surfaces || settings.contacts)
  {
    int last = settings.dimension - 1;
    while (last > 0 && settings.extent[last] == 1)
    {
      --last;
    }
    plane = PixelSize(settings.labelKind);
    for (int a = 0; a < last; ++a)
    {
      plane *= static_cast<std::uint64_t>(settings.extent[a]);
    }
  }
  const std::uint64_t tables =
    state.BytesOfRows(labels, words) + (settings.contacts ? BytesOfContacts(contacts) : 0) + plane + 1024;
  const auto    width = static_cast<std::uint64_t>(std::min<std::int64_t>(settings.extent[0], LongestMeasuredRow));
  std::uint64_t bytes = tables;
  // Small images have fewer parts than there are threads.
  const Box whole = Box::FromExtent(settings.extent);
  if (whole.NumberOfVoxels() < std::int64_t{ 1 } << 22)
  {
    concurrency = std::min(concurrency, static_cast<unsigned int>(CutIntoParts(whole, concurrency).size()));
  }
  // Workers take what they may of the memory.
  for (int i = 0; i < 64; ++i)
  {
    const std::uint64_t ofWorker = GetBytesOfMeasureWorker(bytes, concurrency);
    const std::uint64_t rows = std::min(labels, ofWorker / (8 * words) + state.mostRuns + 1);
    const std::uint64_t pairs = std::min(contacts, ofWorker / 80 + 2 * (state.mostPairs + 1));
    const std::uint64_t worker =
      state.BytesOfRows(rows, words) + (settings.contacts ? BytesOfContacts(pairs) : 0) + GetBytesOfMeasureScan(width);
    const std::uint64_t more = tables + concurrency * worker;
    if (more <= bytes)
    {
      break;
    }
    bytes = more;
  }
  // Places of quantiles, and values or histograms of one bit.
  return bytes + (quantiles > 0 ? labels * (48 + quantiles * 128) : 0);
}

} // namespace chunkwise
