/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseMeasureLayout_h
#define chunkwiseMeasureLayout_h

#include "chunkwiseExactDigits.h"
#include "chunkwiseMeasurements.h"

#include <cstring>

// A label's row of words of 64 bits, one source for every backend.
namespace chunkwise
{

/** The layout of a row. Sums of intensities are digits (chunkwiseExactDigits.h) from number `low` to `high`,
 * of squares from 2 low to 2 high, weighted ones from low to high + 2: all rows have the same, as many as intensities
 * need.
 */
struct MeasureLayout
{
  explicit MeasureLayout(const MeasurementSettings & settings);
  void
  SetDigits(int newLow, int newHigh);

  int  dimension;
  bool details;
  bool moments;
  bool surfaces;
  bool contacts;
  bool intensity;
  bool isReal;
  bool weighted;

  // First words.
  static constexpr int label = 0;
  static constexpr int count = 1;
  static constexpr int first = 2;
  static constexpr int lower = 3;
  int                  upper;
  int                  sums;     ///< of coordinates, 128 bits
  int                  products; ///< xx, xy, yy, xz, yz, zz, 128 bits
  int                  faces;    ///< toward lower neighbors with another label, for each axis
  int                  euler;
  int                  minimum; ///< ordinal, and where it is first
  int                  maximum;
  int                  specials; ///< NaN, infinities, negative infinities, the first NaN
  int                  digits;
  int                  words;
  int                  low{ 0 };
  int                  high{ 0 };

  /** The word of what has no place yet. */
  static constexpr std::int64_t nowhere = INT64_MAX;

  CHUNKWISE_HOST_DEVICE int
  GetSum() const
  {
    return digits;
  }
  CHUNKWISE_HOST_DEVICE int
  GetSquares() const
  {
    return digits + (high - low);
  }
  CHUNKWISE_HOST_DEVICE int
  GetWeighted(int axis) const
  {
    return digits + 3 * (high - low) + axis * (high - low + 2);
  }
  int
  GetWords() const
  {
    return digits + (intensity ? (details ? 3 : 1) * (high - low) + (weighted ? dimension * (high - low + 2) : 0) : 0);
  }

  /** Whether a row has nothing to add. A label of voxels before a box may have its Euler number changed in the box. */
  CHUNKWISE_HOST_DEVICE bool
  IsEmpty(const std::int64_t * row) const
  {
    return row[count] == 0 && (!surfaces || row[euler] == 0);
  }
  /** The row of a label without voxels. */
  CHUNKWISE_HOST_DEVICE void
  Begin(std::int64_t * row, std::uint64_t ofLabel) const
  {
    for (int word = 0; word < words; ++word)
    {
      row[word] = 0;
    }
    row[label] = static_cast<std::int64_t>(ofLabel);
    for (int word = first; details && word < lower + dimension; ++word)
    {
      row[word] = nowhere;
    }
    if (intensity && details)
    {
      row[minimum] = -1; // the largest ordinal
      row[minimum + 1] = row[maximum + 1] = nowhere;
    }
    if (isReal)
    {
      row[specials + 3] = nowhere;
    }
  }
  /** Adds a row of the same label and parts, whose numbers fit these digits, and passes carries on. */
  CHUNKWISE_HOST_DEVICE void
  Add(std::int64_t * ours, const MeasureLayout & from, const std::int64_t * theirs) const;
};

/** Calls add(first + i, part) with the parts of `value` that are not 0, of 32 bits and its sign: small numbers touch
 * few digits. */
template <typename TAdd>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE void
AddSignedParts(int first, Int128 value, TAdd && add)
{
  const bool isNegative = value < 0;
  UInt128    rest = isNegative ? UInt128{ 0 } - static_cast<UInt128>(value) : static_cast<UInt128>(value);
  for (int i = first; rest != 0; ++i, rest >>= DigitBits)
  {
    const auto part = static_cast<std::int64_t>(rest & 0xFFFFFFFF);
    if (part != 0)
    {
      add(i, isNegative ? -part : part);
    }
  }
}

inline CHUNKWISE_HOST_DEVICE Int128
LoadWide(const std::int64_t * words)
{
  return static_cast<Int128>(static_cast<UInt128>(static_cast<std::uint64_t>(words[1])) << 64 |
                             static_cast<std::uint64_t>(words[0]));
}

inline CHUNKWISE_HOST_DEVICE void
AddWide(std::int64_t * words, Int128 value)
{
  value += LoadWide(words);
  words[0] = static_cast<std::int64_t>(value);
  words[1] = static_cast<std::int64_t>(value >> 64);
}

inline CHUNKWISE_HOST_DEVICE void
MeasureLayout::Add(std::int64_t * ours, const MeasureLayout & from, const std::int64_t * theirs) const
{
  const auto toLeast = [&](int word) { ours[word] = theirs[word] < ours[word] ? theirs[word] : ours[word]; };
  ours[count] += theirs[count];
  for (int a = 0; details && a < dimension; ++a)
  {
    toLeast(first);
    toLeast(lower + a);
    ours[upper + a] = theirs[upper + a] > ours[upper + a] ? theirs[upper + a] : ours[upper + a];
  }
  for (int word = sums; word < faces; word += 2)
  {
    AddWide(ours + word, LoadWide(theirs + word));
  }
  for (int word = faces; word < minimum; ++word)
  {
    ours[word] += theirs[word];
  }
  if (!intensity)
  {
    return;
  }
  for (int word = minimum; word < specials; word += 2)
  {
    const auto our = static_cast<std::uint64_t>(ours[word]);
    const auto their = static_cast<std::uint64_t>(theirs[word]);
    if ((word == minimum ? their < our : their > our) || (their == our && theirs[word + 1] < ours[word + 1]))
    {
      ours[word] = theirs[word];
      ours[word + 1] = theirs[word + 1];
    }
  }
  if (isReal)
  {
    for (int word = specials; word < specials + 3; ++word)
    {
      ours[word] += theirs[word];
    }
    toLeast(specials + 3);
  }
  const int theirDigits = from.high - from.low;
  const int ourDigits = high - low;
  if (theirDigits == 0 || ourDigits == 0)
  {
    return;
  }
  const int  shift = from.low - low;
  const auto add = [&](int ourWord, int ourCount, int theirWord, int theirCount, int offset) {
    for (int d = 0; d < theirCount; ++d)
    {
      // Their digits beyond ours are zeros, or the sign, which our last one takes.
      const int to = offset + d;
      if (to >= 0 && to <= ourCount)
      {
        const auto digit = static_cast<std::uint64_t>(theirs[theirWord + d]);
        ours[ourWord + (to < ourCount ? to : to - 1)] +=
          static_cast<std::int64_t>(to < ourCount ? digit : digit << DigitBits);
      }
    }
    Carry(ours + ourWord, ourCount);
  };
  add(GetSum(), ourDigits, from.GetSum(), theirDigits, shift);
  if (details)
  {
    add(GetSquares(), 2 * ourDigits, from.GetSquares(), 2 * theirDigits, 2 * shift);
  }
  for (int a = 0; weighted && a < dimension; ++a)
  {
    add(GetWeighted(a), ourDigits + 2, from.GetWeighted(a), theirDigits + 2, shift);
  }
}

} // namespace chunkwise

#endif
