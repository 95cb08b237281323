/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseMeasureTable.h"
#include "chunkwiseOrdinal.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

namespace chunkwise
{

struct LabelQuantiles::State
{
  /** A voxel that is looked for among those of a label, by its rank among them. */
  struct SoughtVoxel
  {
    std::uint32_t slot;
    std::int64_t  rank;        ///< among those whose ordinal begins with the prefix
    std::uint64_t prefix{ 0 }; ///< the digits of its ordinal that are known
    std::size_t   place{ 0 };  ///< of the histogram of the next digit
  };

  /** A label in a pass: the values of all its voxels, or histograms for some prefixes. */
  struct LabelPlace
  {
    std::uint32_t firstSought{ 0 };
    std::uint32_t endSought{ 0 };
    bool          isCollected{ false };
    bool          isSkipped{ false }; ///< has NaN
    std::size_t   values{ 0 };        ///< where the collected ones are
  };

  State(const Measurements & measured, std::vector<double> given, std::uint64_t limit)
    : measurements(*measured.m_State)
    , settings(measured.m_State->settings)
    , rows(measured.m_State->rows)
    , fractions(std::move(given))
    , meter(limit)
    , bytes(meter)
    , bitsOfKind(8 * static_cast<int>(PixelSize(measured.m_State->settings.intensityKind)))
  {}

  std::int64_t
  GetCount(std::uint32_t slot) const
  {
    return rows.GetRow(slot)[MeasureLayout::count];
  }

  Measurements::State &                  measurements;
  const MeasurementSettings &            settings;
  const MeasureRows &                    rows;
  std::vector<double>                    fractions;
  MeasureMeter                           meter;
  CountedBytes                           bytes;
  const int                              bitsOfKind;
  int                                    knownBits{ 0 };
  int                                    bits{ 0 }; ///< of the next digit
  bool                                   isFirst{ true };
  std::vector<LabelPlace>                places;
  std::vector<SoughtVoxel>               sought; ///< of each label, two for each fraction
  std::vector<std::uint64_t>             values;
  std::vector<std::atomic<std::int64_t>> ends;   ///< of collected values, by slot
  std::vector<std::atomic<std::int64_t>> counts; ///< of histograms
  std::uint64_t                          bytesOfCounts{ 0 };
};

LabelQuantiles::LabelQuantiles(const Measurements & measurements, std::vector<double> fractions, std::uint64_t memory)
{
  for (const double fraction : fractions)
  {
    if (!(fraction >= 0 && fraction <= 1))
    {
      throw ParameterError("Quantiles", PixelValue(fraction).ToText(), "from 0 to 1");
    }
  }
  if (!measurements.GetSettings().hasIntensity)
  {
    throw ParameterError("Quantiles: there is no image of intensities");
  }
  m_State = std::make_unique<State>(measurements, std::move(fractions), memory);
  State &           state = *m_State;
  const std::size_t labels = state.rows.GetSize();
  state.bytes.Take(labels * (sizeof(State::LabelPlace) + sizeof(std::int64_t) +
                             2 * state.fractions.size() * sizeof(State::SoughtVoxel)));
  state.places.resize(labels);
  for (std::uint32_t slot = 0; slot < labels; ++slot)
  {
    State::LabelPlace & place = state.places[slot];
    place.firstSought = static_cast<std::uint32_t>(state.sought.size());
    const std::int64_t last = state.GetCount(slot) - 1;
    place.isSkipped =
      last < 0 || (state.rows.GetLayout().isReal && state.rows.GetRow(slot)[state.rows.GetLayout().specials] > 0);
    for (const double fraction : state.fractions)
    {
      const auto rank = std::min(static_cast<std::int64_t>(std::floor(static_cast<double>(last) * fraction)), last);
      state.sought.push_back({ slot, rank });
      state.sought.push_back({ slot, std::min(rank + 1, last) });
    }
    place.endSought = static_cast<std::uint32_t>(state.sought.size());
  }
  state.ends = std::vector<std::atomic<std::int64_t>>(labels);
}

LabelQuantiles::~LabelQuantiles() = default;

bool
LabelQuantiles::BeginPass()
{
  State & state = *m_State;
  if (state.fractions.empty() || state.knownBits == state.bitsOfKind)
  {
    return false;
  }
  // As many bits as the memory has room for: 16, 8, 4, 2 or 1.
  for (state.bits = std::min(16, state.bitsOfKind - state.knownBits);; state.bits /= 2)
  {
    const std::size_t histogram = std::size_t{ 1 } << state.bits;
    std::size_t       counts = 0;
    std::size_t       values = 0;
    for (std::uint32_t slot = 0; slot < state.places.size(); ++slot)
    {
      State::LabelPlace & place = state.places[slot];
      if (place.isSkipped || (place.isCollected && !state.isFirst))
      {
        continue;
      }
      const auto voxels = static_cast<std::size_t>(state.GetCount(slot));
      if (state.isFirst)
      {
        // Values take no more room than a histogram.
        place.isCollected = voxels <= histogram;
        if (place.isCollected)
        {
          place.values = values;
          values += voxels;
          continue;
        }
      }
      for (std::uint32_t i = place.firstSought; i < place.endSought; ++i)
      {
        State::SoughtVoxel & sought = state.sought[i];
        const auto           begin = state.sought.begin() + place.firstSought;
        const auto same = std::find_if(begin, state.sought.begin() + i, [&](const State::SoughtVoxel & other) {
          return other.prefix == sought.prefix;
        });
        sought.place = same < state.sought.begin() + i ? same->place : counts;
        counts += same < state.sought.begin() + i ? 0 : histogram;
      }
    }
    if (counts == 0 && values == 0)
    {
      return false;
    }
    const std::uint64_t needed = (counts + values) * sizeof(std::int64_t);
    const std::uint64_t limit = state.meter.GetLimit();
    if (limit > 0 && state.meter.GetUsed() - state.bytesOfCounts + needed > limit && state.bits > 1)
    {
      continue;
    }
    state.bytes.GiveBack(state.bytesOfCounts);
    state.bytesOfCounts = 0;
    state.bytes.Take(needed);
    state.bytesOfCounts = counts * sizeof(std::int64_t);
    state.counts = std::vector<std::atomic<std::int64_t>>(counts);
    if (state.isFirst)
    {
      state.values.resize(values);
    }
    return true;
  }
}

void
LabelQuantiles::Add(const BufferView & labels, const BufferView & intensity, const Box & box, Executor & executor,
                    RunControl * control)
{
  if (box.IsEmpty())
  {
    return;
  }
  State & state = *m_State;
  CheckMeasuredView("labels", labels, state.settings.labelKind, box);
  CheckMeasuredView("intensities", intensity, state.settings.intensityKind, box);
  const int              shift = state.bitsOfKind - state.knownBits - state.bits;
  const std::uint64_t    mask = (std::uint64_t{ 1 } << state.bits) - 1;
  const std::vector<Box> parts = CutIntoParts(box, executor.GetConcurrency());
  const auto             addRun = [&](std::uint32_t slot, const auto * voxels, std::int64_t n) {
    const State::LabelPlace & place = state.places[slot];
    if (place.isSkipped || (place.isCollected && !state.isFirst))
    {
      return;
    }
    if (place.isCollected)
    {
      const std::int64_t first = state.ends[slot].fetch_add(n, std::memory_order_relaxed);
      for (std::int64_t i = 0; i < n; ++i)
      {
        state.values[place.values + static_cast<std::size_t>(first + i)] = OrdinalOf(voxels[i]);
      }
      return;
    }
    for (std::int64_t i = 0; i < n;)
    {
      const std::uint64_t head = OrdinalOf(voxels[i]) >> shift;
      std::int64_t        same = 1;
      while (i + same < n && (OrdinalOf(voxels[i + same]) >> shift) == head)
      {
        ++same;
      }
      i += same;
      for (std::uint32_t s = place.firstSought; s < place.endSought; ++s)
      {
        const State::SoughtVoxel & sought = state.sought[s];
        // Those with one prefix share a histogram.
        if (sought.prefix == head >> state.bits)
        {
          state.counts[sought.place + static_cast<std::size_t>(head & mask)].fetch_add(same, std::memory_order_relaxed);
          break;
        }
      }
    }
  };
  DispatchPixelType(state.settings.labelKind, [&](auto labelPixel) {
    using Label = decltype(labelPixel);
    DispatchPixelType(state.settings.intensityKind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      executor.ParallelFor(static_cast<std::int64_t>(parts.size()), [&](std::int64_t p, unsigned int) {
        if (control && control->ShouldStop())
        {
          return;
        }
        const Box & part = parts[static_cast<std::size_t>(p)];
        for (std::int64_t z = part.lower[2]; z < part.upper[2]; ++z)
        {
          for (std::int64_t y = part.lower[1]; y < part.upper[1]; ++y)
          {
            const Coordinates  at{ { part.lower[0], y, z, 0, 0 } };
            const auto * const label = static_cast<const Label *>(labels.data) + labels.Offset(at);
            const auto * const voxel = static_cast<const Pixel *>(intensity.data) + intensity.Offset(at);
            const std::int64_t n = part.Extent(0);
            for (std::int64_t begin = 0, end = 0; begin < n; begin = end)
            {
              const Label value = label[begin];
              for (end = begin + 1; end < n && label[end] == value; ++end)
              {
              }
              if (value != Label(0))
              {
                const std::uint32_t slot = state.rows.GetSlots().Find(BitsOfLabel(value));
                if (slot == LabelSlots::None)
                {
                  throw Error("the label " + PixelValue(value).ToText() + " was not measured");
                }
                addRun(slot, voxel + begin, end - begin);
              }
            }
          }
        }
        if (control)
        {
          control->AddFinishedVoxels(part.NumberOfVoxels());
        }
      });
    });
  });
  if (control && control->ShouldStop())
  {
    throw Aborted();
  }
}

void
LabelQuantiles::EndPass()
{
  State & state = *m_State;
  for (std::uint32_t slot = 0; slot < state.places.size(); ++slot)
  {
    const State::LabelPlace & place = state.places[slot];
    if (place.isSkipped || (place.isCollected && !state.isFirst))
    {
      continue;
    }
    if (place.isCollected)
    {
      const auto first = state.values.begin() + static_cast<std::ptrdiff_t>(place.values);
      const auto end = first + state.GetCount(slot);
      const auto begin = state.sought.begin() + place.firstSought;
      // Selected values stay in their places: later ranks lie behind.
      std::vector<std::uint32_t> byRank(place.endSought - place.firstSought);
      std::iota(byRank.begin(), byRank.end(), std::uint32_t{ 0 });
      std::sort(
        byRank.begin(), byRank.end(), [&](std::uint32_t a, std::uint32_t b) { return begin[a].rank < begin[b].rank; });
      auto from = first;
      for (const std::uint32_t i : byRank)
      {
        const auto wanted = first + begin[i].rank;
        std::nth_element(from, wanted, end);
        begin[i].prefix = *wanted;
        from = wanted;
      }
      continue;
    }
    for (std::uint32_t i = place.firstSought; i < place.endSought; ++i)
    {
      State::SoughtVoxel & sought = state.sought[i];
      std::uint64_t        digit = 0;
      while (sought.rank >= state.counts[sought.place + digit])
      {
        sought.rank -= state.counts[sought.place + digit++];
      }
      sought.prefix = sought.prefix << state.bits | digit;
    }
  }
  state.knownBits += state.bits;
  state.isFirst = false;
}

MeasurementTable
LabelQuantiles::MakeTable(std::int64_t begin, std::int64_t end) const
{
  const State & state = *m_State;
  state.measurements.Prepare();
  const auto       range = state.measurements.GetRange(begin, end);
  MeasurementTable table;
  for (std::size_t f = 0; f < state.fractions.size(); ++f)
  {
    const double      fraction = state.fractions[f];
    MeasurementColumn column;
    column.name =
      fraction == 0.5 ? std::string("intensity_median") : "intensity_quantile-" + PixelValue(fraction).ToText();
    for (std::size_t i = range.first; i < range.second; ++i)
    {
      const std::uint32_t       slot = state.measurements.order[i];
      const State::LabelPlace & place = state.places[slot];
      const auto                valueOf = [&](std::size_t which) {
        return DispatchPixelType(state.settings.intensityKind, [&](auto pixel) {
          return static_cast<double>(FromOrdinal<decltype(pixel)>(state.sought[place.firstSought + which].prefix));
        });
      };
      const double position = static_cast<double>(state.GetCount(slot) - 1) * fraction;
      const double t = position - std::floor(position);
      const double a = valueOf(2 * f);
      const double b = valueOf(2 * f + 1);
      // Exact at both ends, and between equal infinities.
      column.reals.push_back(place.isSkipped    ? std::numeric_limits<double>::quiet_NaN()
                             : a == b || t == 0 ? a
                             : t < 0.5          ? a + (b - a) * t
                                                : b - (b - a) * (1 - t));
    }
    table.push_back(std::move(column));
  }
  return table;
}

} // namespace chunkwise
