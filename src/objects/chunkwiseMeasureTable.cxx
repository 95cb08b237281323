/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseMeasureTable.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <limits>

namespace chunkwise
{

namespace
{

constexpr std::int64_t Nowhere = std::numeric_limits<std::int64_t>::max();

/** Labels below are found in an array from the beginning on. */
constexpr std::uint64_t AlwaysDense = 4096;

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
    const std::size_t size = std::max<std::size_t>(AlwaysDense, 16 * m_Count);
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

MeasureLayout::MeasureLayout(const MeasurementSettings & settings)
  : dimension(settings.dimension)
  , moments(settings.moments)
  , surfaces(settings.surfaces)
  , contacts(settings.contacts)
  , intensity(settings.hasIntensity)
  , isReal(settings.hasIntensity && IsFloatingPoint(settings.intensityKind))
  , weighted(settings.hasIntensity && settings.weighted)
{
  upper = lower + dimension;
  sums = upper + dimension;
  products = sums + 2 * dimension;
  faces = products + (moments ? dimension * (dimension + 1) : 0);
  euler = faces + (surfaces ? dimension : 0);
  minimum = euler + (surfaces ? 1 : 0);
  maximum = minimum + (intensity ? 2 : 0);
  specials = maximum + (intensity ? 2 : 0);
  digits = specials + (isReal ? 4 : 0);
  words = this->GetWords();
}

void
MeasureLayout::SetDigits(int newLow, int newHigh)
{
  low = newLow;
  high = newHigh;
  words = this->GetWords();
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
  std::fill_n(row, words, std::int64_t{ 0 });
  row[MeasureLayout::label] = static_cast<std::int64_t>(label);
  row[MeasureLayout::first] = Nowhere;
  for (int a = 0; a < m_Layout.dimension; ++a)
  {
    row[MeasureLayout::lower + a] = Nowhere;
  }
  if (m_Layout.intensity)
  {
    row[m_Layout.minimum] = -1; // the largest ordinal
    row[m_Layout.minimum + 1] = row[m_Layout.maximum + 1] = Nowhere;
  }
  if (m_Layout.isReal)
  {
    row[m_Layout.specials + 3] = Nowhere;
  }
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
    std::copy_n(from + m_Layout.GetSquares(), 2 * digits, to + wide.GetSquares() + 2 * shift);
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
    Carry(row + m_Layout.GetSquares(), 2 * digits);
    for (int a = 0; m_Layout.weighted && a < m_Layout.dimension; ++a)
    {
      Carry(row + m_Layout.GetWeighted(a), digits + 2);
    }
  }
}

void
MeasureRows::Merge(const MeasureRows & other)
{
  const MeasureLayout & from = other.m_Layout;
  if (from.low < from.high && (m_Layout.low == m_Layout.high || from.low < m_Layout.low || from.high > m_Layout.high))
  {
    this->Widen(from.low, from.high);
  }
  for (std::size_t i = 0; i < other.m_Labels.size(); ++i)
  {
    const std::int64_t * const theirs = other.GetRow(static_cast<std::uint32_t>(i));
    std::int64_t * const       ours = this->GetRow(this->FindOrAdd(other.m_Labels[i]));
    ours[MeasureLayout::count] += theirs[MeasureLayout::count];
    ours[MeasureLayout::first] = std::min(ours[MeasureLayout::first], theirs[MeasureLayout::first]);
    for (int a = 0; a < m_Layout.dimension; ++a)
    {
      const int lower = MeasureLayout::lower + a;
      ours[lower] = std::min(ours[lower], theirs[lower]);
      ours[m_Layout.upper + a] = std::max(ours[m_Layout.upper + a], theirs[m_Layout.upper + a]);
    }
    for (int word = m_Layout.sums; word < m_Layout.faces; word += 2)
    {
      AddWide(ours + word, LoadWide(theirs + word));
    }
    for (int word = m_Layout.faces; word < m_Layout.minimum; ++word)
    {
      ours[word] += theirs[word];
    }
    if (!m_Layout.intensity)
    {
      continue;
    }
    const auto takeExtremum = [&](int word, bool isLess, bool isEqual) {
      if (isLess || (isEqual && theirs[word + 1] < ours[word + 1]))
      {
        ours[word] = theirs[word];
        ours[word + 1] = theirs[word + 1];
      }
    };
    const auto ordinal = [](const std::int64_t * row, int word) { return static_cast<std::uint64_t>(row[word]); };
    takeExtremum(m_Layout.minimum,
                 ordinal(theirs, m_Layout.minimum) < ordinal(ours, m_Layout.minimum),
                 theirs[m_Layout.minimum] == ours[m_Layout.minimum]);
    takeExtremum(m_Layout.maximum,
                 ordinal(theirs, m_Layout.maximum) > ordinal(ours, m_Layout.maximum),
                 theirs[m_Layout.maximum] == ours[m_Layout.maximum]);
    if (m_Layout.isReal)
    {
      for (int word = m_Layout.specials; word < m_Layout.specials + 3; ++word)
      {
        ours[word] += theirs[word];
      }
      ours[m_Layout.specials + 3] = std::min(ours[m_Layout.specials + 3], theirs[m_Layout.specials + 3]);
    }
    const int digits = from.high - from.low;
    if (digits == 0)
    {
      continue;
    }
    const int  shift = from.low - m_Layout.low;
    const auto add = [&](int ourWord, int ourDigits, int theirWord, int theirDigits, int offset) {
      for (int d = 0; d < theirDigits; ++d)
      {
        ours[ourWord + offset + d] += theirs[theirWord + d];
      }
      Carry(ours + ourWord, ourDigits);
    };
    const int ourDigits = m_Layout.high - m_Layout.low;
    add(m_Layout.GetSum(), ourDigits, from.GetSum(), digits, shift);
    add(m_Layout.GetSquares(), 2 * ourDigits, from.GetSquares(), 2 * digits, 2 * shift);
    for (int a = 0; m_Layout.weighted && a < m_Layout.dimension; ++a)
    {
      add(m_Layout.GetWeighted(a), ourDigits + 2, from.GetWeighted(a), digits + 2, shift);
    }
  }
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
  constexpr std::int64_t longest = 65536;
  constexpr std::int64_t most = std::int64_t{ 1 } << 20;
  constexpr std::int64_t rows = 64;
  // Small enough that every worker has some.
  const std::int64_t voxels =
    std::min(most, std::max<std::int64_t>(box.NumberOfVoxels() / (4 * std::int64_t{ concurrency }), 4096));
  const std::int64_t width = std::min(box.Extent(0), longest);
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
CheckMeasuredView(const char * what, const BufferView & view, PixelKind kind, const Box & box)
{
  if (view.kind != kind)
  {
    throw ParameterError(std::string(what) + " are " + PixelKindName(view.kind) + ", the measurements have " +
                         PixelKindName(kind));
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

} // namespace chunkwise
