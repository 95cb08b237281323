/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Functions of scipy.ndimage over arrays in memory that are no filters of the engine.
#include "pythonCore.h"

#include "chunkwiseError.h"
#include "chunkwiseFilters.h"
#include "chunkwiseHostMemory.h"

#include <nanobind/stl/optional.h>

#include <optional>

namespace chunkwise::python
{

namespace
{

using Dense = nb::ndarray<nb::device::cpu, nb::c_contig>;
using DenseInput = nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>;

/** Voxels for which no thread is woken. */
constexpr std::int64_t FewVoxels = 32 * 1024;
/** Numbers that are computed together. */
constexpr std::int64_t Together = 64;

/** Calls work(begin, end, worker) for parts of [0, count), by one thread where there are few voxels. */
template <typename TWork>
void
InParts(std::int64_t count, std::int64_t voxels, unsigned int threads, TWork && work)
{
  Executor &         executor = GetExecutorFor(voxels < FewVoxels ? 1 : threads);
  const std::int64_t parts = std::min<std::int64_t>(count, voxels < FewVoxels ? 1 : 8 * executor.GetConcurrency());
  Unlocked([&] {
    executor.ParallelFor(
      parts, [&](std::int64_t i, unsigned int worker) { work(count * i / parts, count * (i + 1) / parts, worker); });
  });
}

/** The rows along the last axis of a dense array. */
class Rows
{
public:
  explicit Rows(Integers extents)
    : length(extents.back())
    , outer(std::move(extents))
  {
    outer.pop_back();
    for (const std::int64_t extent : outer)
    {
      count *= extent;
    }
  }
  template <typename TArray>
  static Integers
  ExtentsOf(const TArray & array)
  {
    Integers extents;
    for (std::size_t a = 0; a < array.ndim(); ++a)
    {
      extents.push_back(static_cast<std::int64_t>(array.shape(a)));
    }
    return extents;
  }
  /** The indices of a row along the other axes. */
  Integers
  At(std::int64_t row) const
  {
    Integers at(outer.size());
    for (std::size_t a = outer.size(); a-- > 0; row /= outer[a])
    {
      at[a] = row % outer[a];
    }
    return at;
  }
  void
  Advance(Integers & at) const
  {
    for (std::size_t a = outer.size(); a-- > 0;)
    {
      if (++at[a] < outer[a])
      {
        return;
      }
      at[a] = 0;
    }
  }

  std::int64_t length;
  Integers     outer;
  std::int64_t count{ 1 };
};

//
// Boxes of labels
//

/** Calls f(label, begin, end) for runs of labels above 0 in a row. */
template <typename T, typename TFunctor>
void
ForEachRun(const T * row, std::int64_t n, TFunctor && f)
{
  for (std::int64_t x = 0; x < n;)
  {
    const T            label = row[x];
    const std::int64_t begin = x;
    while (x < n && row[x] == label)
    {
      ++x;
    }
    if (label > T(0))
    {
      f(static_cast<std::uint64_t>(label), begin, x);
    }
  }
}

/** For each label from 1 to `most` (0: the largest one) its box as a tuple of slices, or None. */
nb::list
FindBoxes(const DenseInput & labels, const std::string & kindName, std::uint64_t most, const RunOptions & options)
{
  const unsigned int threads = options.threads;
  const PixelType    kind = PixelTypeFromName(kindName);
  const Rows         rows(Rows::ExtentsOf(labels));
  const std::size_t  dimension = labels.ndim();
  const std::int64_t voxels = rows.count * rows.length;
  const auto         workers = GetExecutorFor(threads).GetConcurrency();
  if (most == 0)
  {
    std::vector<std::uint64_t> largest(workers, 0);
    InParts(rows.count, voxels, threads, [&](std::int64_t begin, std::int64_t end, unsigned int worker) {
      DispatchPixelType(kind, [&](auto pixel) {
        const auto * const from = static_cast<const decltype(pixel) *>(labels.data());
        for (std::int64_t i = begin * rows.length; i < end * rows.length; ++i)
        {
          pixel = std::max(pixel, from[i]);
        }
        largest[worker] = std::max(largest[worker], static_cast<std::uint64_t>(pixel));
      });
    });
    most = *std::max_element(largest.begin(), largest.end());
  }
  // Lower corners, and upper ones times -1: less is further out.
  const std::size_t numbers = 2 * dimension;
  const bool        isWide =
    static_cast<double>(most) * static_cast<double>(numbers) > static_cast<double>(std::max(voxels, FewVoxels));
  const double needed = static_cast<double>(most) * static_cast<double>(numbers * sizeof(std::int64_t)) *
                        (isWide || voxels < FewVoxels ? 1 : workers);
  // Few bytes need no look at the system's.
  constexpr double    few = 1 << 26;
  constexpr double    largest = 9e18;
  const std::uint64_t limit = options.budgets.host > 0 ? options.budgets.host
                              : needed <= few          ? static_cast<std::uint64_t>(few)
                                                       : GetAvailableHostMemory();
  if (needed > static_cast<double>(limit))
  {
    const auto bytes = static_cast<std::uint64_t>(std::min(needed, largest));
    throw BudgetError("boxes of labels up to " + std::to_string(most) + " need " + std::to_string(bytes) +
                        " bytes, and " + std::to_string(limit) + " may be used",
                      bytes,
                      limit);
  }
  std::vector<Integers>  boxes(workers);
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  const auto             scan = [&](std::int64_t begin, std::int64_t end, unsigned int worker) {
    boxes[worker].resize(most * numbers, none);
    Integers at = rows.At(begin);
    DispatchPixelType(kind, [&](auto pixel) {
      const auto * row = static_cast<const decltype(pixel) *>(labels.data()) + begin * rows.length;
      for (std::int64_t r = begin; r < end; ++r, row += rows.length, rows.Advance(at))
      {
        ForEachRun(row, rows.length, [&](std::uint64_t label, std::int64_t first, std::int64_t last) {
          if (label > most)
          {
            return;
          }
          std::int64_t * const box = boxes[worker].data() + (label - 1) * numbers;
          for (std::size_t a = 0; a + 1 < dimension; ++a)
          {
            box[2 * a] = std::min(box[2 * a], at[a]);
            box[2 * a + 1] = std::min(box[2 * a + 1], -at[a] - 1);
          }
          box[numbers - 2] = std::min(box[numbers - 2], first);
          box[numbers - 1] = std::min(box[numbers - 1], -last);
        });
      }
    });
  };
  InParts(rows.count, isWide ? 0 : voxels, threads, scan);
  boxes[0].resize(most * numbers, none);
  for (std::size_t w = 1; w < boxes.size(); ++w)
  {
    for (std::size_t i = 0; i < boxes[w].size(); ++i)
    {
      boxes[0][i] = std::min(boxes[0][i], boxes[w][i]);
    }
  }
  nb::list found;
  for (std::uint64_t label = 0; label < most; ++label)
  {
    const std::int64_t * const box = boxes[0].data() + label * numbers;
    if (box[0] == none)
    {
      found.append(nb::none());
      continue;
    }
    nb::list sides;
    for (std::size_t a = 0; a < dimension; ++a)
    {
      sides.append(nb::slice(nb::int_(box[2 * a]), nb::int_(-box[2 * a + 1]), nb::none()));
    }
    found.append(nb::tuple(sides));
  }
  return found;
}

//
// Distances in steps
//

/** Chamfer distances: a pass over all rows in their order, and one in the opposite order, each of which takes in what
 * the rows before and the voxels before in the row have. Exact for steps across faces, and for steps to all neighbors.
 *
 * Source: A. Rosenfeld, J. L. Pfaltz, "Distance functions on digital pictures", Pattern Recognition 1(1), 1968. */
class StepSweep
{
public:
  /** `places`: nullptr, or the place of each voxel, which becomes that of the nearest one outside the objects. */
  StepSweep(Rows rows, std::int32_t * distances, std::int64_t * places, bool isChessboard)
    : m_Rows(std::move(rows))
    , m_Distances(distances)
    , m_Places(places)
    , m_Reach(isChessboard ? 1 : 0)
    , m_Nearest(static_cast<std::size_t>(m_Rows.length) + 2, Far)
  {
    // Neighbors of a row that come before it.
    const std::size_t n = m_Rows.outer.size();
    Integers          offset(n, -1);
    while (true)
    {
      const auto isStep = [](std::int64_t each) { return each != 0; };
      const auto first = std::find_if(offset.begin(), offset.end(), isStep);
      const auto steps = std::count_if(offset.begin(), offset.end(), isStep);
      if (first == offset.end())
      {
        break;
      }
      if (*first < 0 && (isChessboard || steps == 1))
      {
        m_Neighbors.push_back(offset);
      }
      std::size_t a = n;
      while (a-- > 0 && ++offset[a] > 1)
      {
        offset[a] = -1;
      }
    }
  }
  void
  Run()
  {
    this->Pass(1);
    this->Pass(-1);
  }
  static constexpr std::int32_t Far = std::numeric_limits<std::int32_t>::max() / 2;

private:
  void
  Pass(int direction)
  {
    for (std::int64_t r = 0; r < m_Rows.count; ++r)
    {
      const std::int64_t row = direction > 0 ? r : m_Rows.count - 1 - r;
      const Integers     at = m_Rows.At(row);
      m_Before.clear();
      for (const Integers & offset : m_Neighbors)
      {
        std::int64_t neighbor = 0;
        bool         isThere = true;
        for (std::size_t a = 0; a < at.size(); ++a)
        {
          const std::int64_t index = at[a] + direction * offset[a];
          isThere = isThere && index >= 0 && index < m_Rows.outer[a];
          neighbor = neighbor * m_Rows.outer[a] + index;
        }
        if (isThere)
        {
          m_Before.push_back(neighbor * m_Rows.length);
        }
      }
      m_Places ? this->PassPlaces(row * m_Rows.length, direction) : this->PassRow(row * m_Rows.length, direction);
    }
  }
  void
  PassRow(std::int64_t begin, int direction)
  {
    const std::int64_t   n = m_Rows.length;
    std::int32_t * const to = m_Distances + begin;
    if (!m_Before.empty())
    {
      std::int32_t * const nearest = m_Nearest.data() + 1;
      std::copy_n(m_Distances + m_Before[0], n, nearest);
      for (std::size_t k = 1; k < m_Before.size(); ++k)
      {
        const std::int32_t * const from = m_Distances + m_Before[k];
        for (std::int64_t x = 0; x < n; ++x)
        {
          nearest[x] = std::min(nearest[x], from[x]);
        }
      }
      for (std::int64_t x = 0; x < n; ++x)
      {
        const std::int32_t beside = m_Reach ? std::min(nearest[x - 1], nearest[x + 1]) : Far;
        to[x] = std::min(to[x], std::min(nearest[x], beside) + 1);
      }
    }
    for (std::int64_t i = 1; i < n; ++i)
    {
      const std::int64_t x = direction > 0 ? i : n - 1 - i;
      to[x] = std::min(to[x], to[x - direction] + 1);
    }
  }
  void
  PassPlaces(std::int64_t begin, int direction)
  {
    const std::int64_t n = m_Rows.length;
    for (std::int64_t i = 0; i < n; ++i)
    {
      const std::int64_t x = direction > 0 ? i : n - 1 - i;
      std::int32_t &     to = m_Distances[begin + x];
      const auto         take = [&](std::int64_t from) {
        if (m_Distances[from] + 1 < to)
        {
          to = m_Distances[from] + 1;
          m_Places[begin + x] = m_Places[from];
        }
      };
      for (const std::int64_t from : m_Before)
      {
        for (std::int64_t k = std::max<std::int64_t>(x - m_Reach, 0); k <= std::min(x + m_Reach, n - 1); ++k)
        {
          take(from + k);
        }
      }
      if (i > 0)
      {
        take(begin + x - direction);
      }
    }
  }

  const Rows                m_Rows;
  std::int32_t * const      m_Distances;
  std::int64_t * const      m_Places;
  const std::int64_t        m_Reach; ///< along a row
  std::vector<Integers>     m_Neighbors;
  Integers                  m_Before; ///< where rows before begin
  std::vector<std::int32_t> m_Nearest;
};

/** `distances` (int32) become those to the nearest voxel that is 0 in `objects`, -1 without any; `places` (int64) as
 * well. */
void
FindStepDistances(const DenseInput & objects, const Dense & distances, const std::optional<Dense> & places,
                  bool isChessboard)
{
  auto * const to = static_cast<std::int32_t *>(distances.data());
  auto * const from = static_cast<const std::uint8_t *>(objects.data());
  auto * const origins = places ? static_cast<std::int64_t *>(places->data()) : nullptr;
  const auto   count = static_cast<std::int64_t>(distances.size());
  Rows         rows(Rows::ExtentsOf(distances));
  Unlocked([&] {
    for (std::int64_t i = 0; i < count; ++i)
    {
      to[i] = from[i] ? StepSweep::Far : 0;
    }
    for (std::int64_t i = 0; origins && i < count; ++i)
    {
      origins[i] = from[i] ? -1 : i;
    }
    StepSweep(std::move(rows), to, origins, isChessboard).Run();
    std::replace_if(to, to + count, [](std::int32_t steps) { return steps >= StepSweep::Far; }, -1);
  });
}

//
// Connected components of any number of dimensions
//

/** Fills `labels` (int64) with 1, 2, ... in the order of the components' first voxels, and returns how many there are.
 * `offsets` lead to the neighbors that come before a voxel, along each axis. */
std::int64_t
LabelVoxels(const DenseInput & objects, const std::vector<Integers> & offsets, const Dense & labels)
{
  const auto * const from = static_cast<const std::uint8_t *>(objects.data());
  auto * const       to = static_cast<std::int64_t *>(labels.data());
  const Rows         rows(Rows::ExtentsOf(labels));
  return Unlocked([&] {
    // The lowest label that is known to be the same.
    Integers   lower{ 0 };
    const auto rootOf = [&lower](std::int64_t label) {
      while (lower[static_cast<std::size_t>(label)] != label)
      {
        label = lower[static_cast<std::size_t>(label)] =
          lower[static_cast<std::size_t>(lower[static_cast<std::size_t>(label)])];
      }
      return label;
    };
    Integers                                           at = rows.At(0);
    std::vector<std::pair<std::int64_t, std::int64_t>> neighbors; // their rows' first voxels, and steps along the row
    for (std::int64_t r = 0; r < rows.count; ++r, rows.Advance(at))
    {
      neighbors.clear();
      for (const Integers & offset : offsets)
      {
        std::int64_t row = 0;
        bool         isThere = true;
        for (std::size_t a = 0; a < at.size(); ++a)
        {
          isThere = isThere && at[a] + offset[a] >= 0 && at[a] + offset[a] < rows.outer[a];
          row = row * rows.outer[a] + at[a] + offset[a];
        }
        if (isThere)
        {
          neighbors.emplace_back(row * rows.length, offset.back());
        }
      }
      for (std::int64_t x = 0; x < rows.length; ++x)
      {
        std::int64_t & label = to[r * rows.length + x];
        label = 0;
        for (const auto & [row, step] : neighbors)
        {
          if (from[r * rows.length + x] == 0 || x + step < 0 || x + step >= rows.length || to[row + x + step] == 0)
          {
            continue;
          }
          const std::int64_t other = rootOf(to[row + x + step]);
          const std::int64_t own = label == 0 ? other : rootOf(label);
          label = std::min(own, other);
          lower[static_cast<std::size_t>(std::max(own, other))] = label;
        }
        if (from[r * rows.length + x] != 0 && label == 0)
        {
          label = static_cast<std::int64_t>(lower.size());
          lower.push_back(label);
        }
      }
    }
    // A component's lowest label is that of its first voxel.
    std::int64_t count = 0;
    for (std::size_t label = 1; label < lower.size(); ++label)
    {
      const std::int64_t below = lower[label];
      lower[label] = below == static_cast<std::int64_t>(label) ? ++count : lower[static_cast<std::size_t>(below)];
    }
    for (std::int64_t i = 0; i < rows.count * rows.length; ++i)
    {
      to[i] = lower[static_cast<std::size_t>(to[i])];
    }
    return count;
  });
}

//
// Coefficients of splines
//

enum class SplineEdge
{
  Mirror,
  Reflect,
  Wrap
};

/** Rows of columns that are filtered together; voxel i of a column is first[i * stride]. */
class SplineColumns
{
public:
  SplineColumns(std::int64_t n, SplineEdge edge, const std::vector<double> & poles)
    : m_N(n)
    , m_Edge(edge)
    , m_Poles(poles)
  {
    for (const double z : poles)
    {
      m_Gain *= (1 - z) * (1 - 1 / z);
    }
  }

  /** The recursive filter of M. Unser, "Splines: a perfect fit for signal and image processing", IEEE Signal Processing
   * Magazine 16(6), 1999; its sums begin with as many voxels beyond the edge as change a double. */
  void
  Filter(double * first, std::int64_t stride, std::int64_t columns) const
  {
    const auto forColumns = [columns](auto && f) {
      for (std::int64_t j = 0; j < columns; ++j)
      {
        f(j);
      }
    };
    for (std::int64_t i = 0; i < m_N; ++i)
    {
      forColumns([&, row = first + i * stride](std::int64_t j) { row[j] *= m_Gain; });
    }
    for (const double z : m_Poles)
    {
      double     sum[Together];
      const auto terms = static_cast<std::int64_t>(std::ceil(std::log(1e-18) / std::log(std::abs(z))));
      const auto sumUp = [&](double factor, std::int64_t begin, std::int64_t step) {
        std::fill_n(sum, columns, 0.0);
        for (std::int64_t k = 0; k < terms; ++k, factor *= z)
        {
          forColumns(
            [&, row = first + this->Map(begin + k * step) * stride](std::int64_t j) { sum[j] += factor * row[j]; });
        }
      };
      sumUp(1, 0, -1);
      std::copy_n(sum, columns, first);
      for (std::int64_t i = 1; i < m_N; ++i)
      {
        forColumns([&, row = first + i * stride](std::int64_t j) { row[j] += z * row[j - stride]; });
      }
      double * const last = first + (m_N - 1) * stride;
      if (m_Edge == SplineEdge::Wrap)
      {
        sumUp(-z, m_N - 1, 1);
        std::copy_n(sum, columns, last);
      }
      else if (m_Edge == SplineEdge::Mirror)
      {
        forColumns([&](std::int64_t j) { last[j] = z / (z * z - 1) * (last[j] + z * last[j - stride]); });
      }
      else
      {
        forColumns([&](std::int64_t j) { last[j] = z / (z - 1) * last[j]; });
      }
      for (std::int64_t i = m_N - 2; i >= 0; --i)
      {
        forColumns([&, row = first + i * stride](std::int64_t j) { row[j] = z * (row[j + stride] - row[j]); });
      }
    }
  }

private:
  std::int64_t
  Map(std::int64_t i) const
  {
    const std::int64_t period = m_Edge == SplineEdge::Mirror    ? 2 * m_N - 2
                                : m_Edge == SplineEdge::Reflect ? 2 * m_N
                                                                : m_N;
    i = (i % period + period) % period;
    return i < m_N ? i : m_Edge == SplineEdge::Mirror ? period - i : period - 1 - i;
  }

  const std::int64_t          m_N;
  const SplineEdge            m_Edge;
  const std::vector<double> & m_Poles;
  double                      m_Gain{ 1 };
};

/** Doubles of an array of the shape outer x n x inner become coefficients along its second axis. */
void
FilterSplines(const Dense & values, const std::vector<double> & poles, const std::string & edge, unsigned int threads)
{
  auto * const        data = static_cast<double *>(values.data());
  const auto          outer = static_cast<std::int64_t>(values.shape(0));
  const auto          n = static_cast<std::int64_t>(values.shape(1));
  const auto          inner = static_cast<std::int64_t>(values.shape(2));
  const SplineColumns columns(n,
                              edge == "mirror"    ? SplineEdge::Mirror
                              : edge == "reflect" ? SplineEdge::Reflect
                                                  : SplineEdge::Wrap,
                              poles);
  if (inner >= 8)
  {
    const std::int64_t pieces = (inner + Together - 1) / Together;
    InParts(outer * pieces, outer * n * inner, threads, [&](std::int64_t begin, std::int64_t end, unsigned int) {
      for (std::int64_t i = begin; i < end; ++i)
      {
        const std::int64_t j = i % pieces * Together;
        columns.Filter(data + i / pieces * n * inner + j, inner, std::min(Together, inner - j));
      }
    });
    return;
  }
  // Lines lie beside each other in a buffer.
  const std::int64_t     lines = outer * inner;
  constexpr std::int64_t some = 8;
  InParts((lines + some - 1) / some, lines * n, threads, [&](std::int64_t begin, std::int64_t end, unsigned int) {
    std::vector<double> buffer(static_cast<std::size_t>(n * some));
    for (std::int64_t line = some * begin; line < std::min(some * end, lines); line += some)
    {
      const std::int64_t count = std::min(some, lines - line);
      const auto         forAll = [&](auto && f) {
        for (std::int64_t k = 0; k < count; ++k)
        {
          double * const first = data + (line + k) / inner * n * inner + (line + k) % inner;
          for (std::int64_t i = 0; i < n; ++i)
          {
            f(first[i * inner], buffer[static_cast<std::size_t>(i * some + k)]);
          }
        }
      };
      forAll([](double & from, double & to) { to = from; });
      columns.Filter(buffer.data(), some, count);
      forAll([](double & to, double & from) { to = from; });
    }
  });
}

//
// Ranks over footprints
//

/** Ranks of the voxels of a footprint, for up to `Together` voxels of a row. */
template <typename T>
class FootprintRanks
{
public:
  FootprintRanks(Integers offsets, std::int64_t rank)
    : m_Offsets(std::move(offsets))
    , m_Count(static_cast<std::int64_t>(m_Offsets.size()))
    , m_Rank(rank)
    , m_Rows(m_Offsets.size() * Together)
    , m_Voxels(m_Offsets.size())
  {}

  void
  Find(T * out, const T * in, std::int64_t n)
  {
    bool hasNumbersAlone = true;
    for (std::int64_t k = 0; k < m_Count; ++k)
    {
      T * const row = this->Row(k);
      std::copy_n(in + m_Offsets[static_cast<std::size_t>(k)], n, row);
      if constexpr (!std::is_integral<T>::value)
      {
        bool isNumber = true;
        for (std::int64_t j = 0; j < n; ++j)
        {
          isNumber &= row[j] == row[j];
        }
        hasNumbersAlone = hasNumbersAlone && isNumber;
      }
    }
    // As many passes as voxels are on the nearer side of the rank.
    const bool         isLow = 2 * m_Rank < m_Count;
    const std::int64_t passes = isLow ? m_Rank + 1 : m_Count - m_Rank;
    if (!hasNumbersAlone || passes > MostPasses)
    {
      this->FindAlone(out, n);
      return;
    }
    for (std::int64_t pass = 0; pass < passes; ++pass)
    {
      // The least, or the largest, of the rest goes to the first row of the rest.
      T * const found = this->Row(pass);
      for (std::int64_t k = pass + 1; k < m_Count; ++k)
      {
        T * const row = this->Row(k);
        for (std::int64_t j = 0; j < n; ++j)
        {
          const T least = row[j] < found[j] ? row[j] : found[j];
          const T most = row[j] < found[j] ? found[j] : row[j];
          found[j] = isLow ? least : most;
          row[j] = isLow ? most : least;
        }
      }
    }
    std::copy_n(this->Row(passes - 1), n, out);
  }

private:
  static constexpr std::int64_t MostPasses = 14;

  T *
  Row(std::int64_t k)
  {
    return m_Rows.data() + k * Together;
  }
  /** Voxel by voxel. NaN has no rank: among m of n voxels that are numbers it is floor((rank + 1/2) (m - 1) / (n - 1)).
   */
  void
  FindAlone(T * out, std::int64_t n)
  {
    for (std::int64_t j = 0; j < n; ++j)
    {
      for (std::int64_t k = 0; k < m_Count; ++k)
      {
        m_Voxels[static_cast<std::size_t>(k)] = this->Row(k)[j];
      }
      const auto end = std::partition(m_Voxels.begin(), m_Voxels.end(), [](T v) { return v == v; });
      const auto numbers = static_cast<std::int64_t>(end - m_Voxels.begin());
      const auto rank =
        numbers == m_Count ? m_Rank : (2 * m_Rank + 1) * (numbers - 1) / std::max<std::int64_t>(2 * m_Count - 2, 1);
      const auto at = m_Voxels.begin() + std::max<std::int64_t>(rank, 0);
      std::nth_element(m_Voxels.begin(), at, numbers > 0 ? end : m_Voxels.begin());
      out[j] = *at;
    }
  }

  const Integers     m_Offsets;
  const std::int64_t m_Count;
  const std::int64_t m_Rank;
  std::vector<T>     m_Rows;
  std::vector<T>     m_Voxels;
};

/** `result` gets the voxel of a rank among those of `whole` at the offsets from each voxel: `whole` is larger than it.
 */
void
FindRanks(const DenseInput & whole, const std::string & kind, const Integers & offsets, const Dense & result,
          std::int64_t rank, unsigned int threads)
{
  const Rows rows(Rows::ExtentsOf(result));
  DispatchPixelType(PixelTypeFromName(kind), [&](auto pixel) {
    using Pixel = decltype(pixel);
    const auto * const in = static_cast<const Pixel *>(whole.data());
    auto * const       out = static_cast<Pixel *>(result.data());
    InParts(rows.count, rows.count * rows.length, threads, [&](std::int64_t begin, std::int64_t end, unsigned int) {
      FootprintRanks<Pixel> ranks(offsets, rank);
      Integers              at = rows.At(begin);
      for (std::int64_t r = begin; r < end; ++r, rows.Advance(at))
      {
        std::int64_t from = 0;
        for (std::size_t a = 0; a < whole.ndim(); ++a)
        {
          from = from * static_cast<std::int64_t>(whole.shape(a)) + (a < at.size() ? at[a] : 0);
        }
        for (std::int64_t x = 0; x < rows.length; x += Together)
        {
          ranks.Find(out + r * rows.length + x, in + from + x, std::min(Together, rows.length - x));
        }
      }
    });
  });
}

} // namespace

void
AddArrays(nb::module_ & module)
{
  module.def("find_boxes", &FindBoxes);
  module.def("find_step_distances",
             &FindStepDistances,
             nb::arg("objects"),
             nb::arg("distances"),
             nb::arg("places").none(),
             nb::arg("is_chessboard"));
  module.def("label_voxels", &LabelVoxels);
  module.def("filter_splines", &FilterSplines);
  module.def("find_ranks", &FindRanks);
}

} // namespace chunkwise::python
