/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseExecutor.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseLabelSummary.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#  include <emmintrin.h>
#endif

namespace chunkwise
{

namespace
{

using Word = std::uint64_t;
constexpr std::int64_t WordBits = 64;

/** Without an instruction for it the compiler would call a function, which takes twice as long. */
inline int
CountBits(Word word)
{
#if defined(__POPCNT__)
  return __builtin_popcountll(word);
#else
  word -= word >> 1 & 0x5555555555555555ULL;
  word = (word & 0x3333333333333333ULL) + (word >> 2 & 0x3333333333333333ULL);
  word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
  return static_cast<int>(word * 0x0101010101010101ULL >> 56);
#endif
}

inline int
LowestBit(Word word)
{
#if defined(__GNUC__)
  return __builtin_ctzll(word);
#else
  return CountBits((word & (0 - word)) - 1);
#endif
}

/** The bits up to and with bit `i`. */
inline Word
BitsUpTo(int i)
{
  return ~Word{ 0 } >> (WordBits - 1 - i);
}

/** Rows that a task takes: about so many voxels. */
constexpr std::int64_t VoxelsOfTask = std::int64_t{ 1 } << 16;
/** Bands of rows that each worker has, whose runs are joined by one worker; what lies between bands is joined by one
 * worker alone. */
constexpr std::int64_t BandsOfWorker = 4;

/** Offsets of a chunk's arrays in scratch. `TId`: 32 bits, or 64 for images of 2^31 voxels and more. */
struct LabelScratch
{
  LabelScratch(const LabelOperation & operation, const Box & box)
    : words((box.Extent(0) + WordBits - 1) / WordBits)
    , rows(CountRows(box))
  {
    const LabelNeighbors neighbors = operation.GetNeighbors();
    const bool           merges = neighbors.links && operation.rule == LabelRule::Foreground;
    const std::size_t    idBytes = operation.IsWide() ? 8 : 4;
    const auto           take = [this](std::int64_t count, std::size_t size) {
      const std::size_t at = bytes;
      bytes += (static_cast<std::size_t>(count) * size + 63) / 64 * 64;
      return at;
    };
    foreground = take(words * rows, sizeof(Word));
    links = take(words * rows, sizeof(Word));
    firstRuns = take(words * rows + 1, idBytes);
    // Every second voxel begins a run at most, where neighbors are one.
    runs = take(rows * (merges ? words * WordBits / 2 : box.Extent(0)), idBytes);
    counts = take(CountTasks(), sizeof(std::int64_t));
  }

  std::int64_t
  RowsOfTask() const
  {
    return std::max<std::int64_t>(1, VoxelsOfTask / (words * WordBits));
  }
  std::int64_t
  CountTasks() const
  {
    return (rows + RowsOfTask() - 1) / RowsOfTask();
  }

  std::int64_t words; ///< of a row
  std::int64_t rows;
  std::size_t  bytes{ 0 };
  std::size_t  foreground;
  std::size_t  links;
  std::size_t  firstRuns; ///< of each word
  std::size_t  runs;
  std::size_t  counts;
};

/** A neighbor that precedes a voxel: at x + shift of a row of LabelNeighbors. */
struct EarlierNeighbor
{
  int row;
  int shift;
  /** Which neighbors before it in the list are neighbors of it: a voxel that is joined to such a neighbor needs no pair
   * with this one. Bit k: number k. */
  std::uint32_t impliedBy;
  /** The same of neighbors of the voxel before, at x - 1, if that is linked to this one. */
  std::uint32_t impliedByBefore;
};

/** The neighbors that precede a voxel, where two that are joined to a third are joined: a list of those in which a pair
 * with one makes many others needless. Pairs left out follow from pairs of voxels before it, or of neighbors before
 * it in the list; so no two are left out for each other's sake. */
struct EarlierNeighbors
{
  static constexpr int Most = 13;

  EarlierNeighbors(const LabelOperation & operation, const LabelNeighbors & neighbors)
  {
    const std::vector<Coordinates> offsets = operation.GetOffsets();
    const auto                     areNeighbors = [&](const Coordinates & a, const Coordinates & b) {
      Coordinates there;
      Coordinates back;
      for (int axis = 0; axis < MaxDimension; ++axis)
      {
        there[axis] = a[axis] - b[axis];
        back[axis] = b[axis] - a[axis];
      }
      return std::find(offsets.begin(), offsets.end(), there) != offsets.end() ||
             std::find(offsets.begin(), offsets.end(), back) != offsets.end();
    };
    Coordinates at[Most];
    const auto  offsetOf = [&](const EarlierNeighbor & neighbor) {
      Coordinates offset{};
      offset[0] = neighbor.shift;
      for (int axis = 1; axis < MaxDimension; ++axis)
      {
        offset[axis] = neighbors.rows[neighbor.row].offset[axis];
      }
      return offset;
    };
    for (int r = 0; r < neighbors.count; ++r)
    {
      for (int shift = -1; shift <= 1; ++shift)
      {
        if ((neighbors.rows[r].shifts >> (shift + 1) & 1) != 0)
        {
          list[count++] = { r, shift, 0, 0 };
        }
      }
    }
    std::pair<std::ptrdiff_t, EarlierNeighbor> byNeighbors[Most];
    for (int k = 0; k < count; ++k)
    {
      byNeighbors[k] = { std::count_if(list,
                                       list + count,
                                       [&](const EarlierNeighbor & other) {
                                         return areNeighbors(offsetOf(list[k]), offsetOf(other));
                                       }),
                         list[k] };
    }
    std::stable_sort(
      byNeighbors, byNeighbors + count, [](const auto & a, const auto & b) { return a.first > b.first; });
    for (int k = 0; k < count; ++k)
    {
      list[k] = byNeighbors[k].second;
      at[k] = offsetOf(list[k]);
    }
    for (int k = 0; k < count; ++k)
    {
      for (int other = 0; other < count; ++other)
      {
        Coordinates ofVoxelBefore = at[other];
        --ofVoxelBefore[0];
        list[k].impliedBy |= other < k && areNeighbors(at[k], at[other]) ? std::uint32_t{ 1 } << other : 0;
        list[k].impliedByBefore |=
          at[k] == ofVoxelBefore || areNeighbors(at[k], ofVoxelBefore) ? std::uint32_t{ 1 } << other : 0;
      }
    }
    firstImpliesAll =
      count > 0 && std::all_of(list + 1, list + count, [](const EarlierNeighbor & each) { return each.impliedBy & 1; });
    // If the first two are not neighbors, as where neighbors share faces, they lie at two sides of a square.
    if (count >= 2 && list[1].impliedBy == 0 && list[0].shift == 0 && list[1].shift == 0)
    {
      hasSquare = true;
      for (int axis = 1; axis < MaxDimension; ++axis)
      {
        square.offset[axis] = static_cast<std::int8_t>(at[0][axis] + at[1][axis]);
      }
    }
  }

  EarlierNeighbor list[Most];
  int             count{ 0 };
  /** All others are neighbors of the first. */
  bool firstImpliesAll{ false };
  /** The row of the voxel that is a neighbor of the first two of the list: where it is foreground these are joined. */
  bool     hasSquare{ false };
  LabelRow square{};
};

/** The type as which values are compared for being equal: for integers it need not have a sign. */
template <typename TPixel, bool VIsInteger = std::is_integral_v<TPixel>>
struct ComparedAs
{
  using Type = TPixel;
};
template <typename TPixel>
struct ComparedAs<TPixel, true>
{
  using Type = std::make_unsigned_t<TPixel>;
};

/** Labels a chunk by itself. Runs of voxels within words are numbered in raster order; each has a parent, which is the
 * run itself or an earlier one, and a component's root is its first run. */
template <typename TId>
class ChunkLabeler
{
public:
  explicit ChunkLabeler(const KernelCall & call)
    : m_Call(call)
    , m_Operation(static_cast<const LabelOperation &>(*call.operation))
    , m_Box(call.writable)
    , m_Input(call.inputs[0])
    , m_Neighbors(m_Operation.GetNeighbors())
    , m_Earlier(m_Operation, m_Neighbors)
    , m_Scratch(m_Operation, m_Box)
    , m_Foreground(this->At<Word>(m_Scratch.foreground))
    , m_Links(this->At<Word>(m_Scratch.links))
    , m_FirstRuns(this->At<TId>(m_Scratch.firstRuns))
    , m_Parents(this->At<TId>(m_Scratch.runs))
    , m_Counts(this->At<std::int64_t>(m_Scratch.counts))
    , m_IsTransitive(m_Operation.rule != LabelRule::Within)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      m_Wraps[a] = m_Operation.periodic[a] && m_Box.Extent(a) == call.image.Extent(a) &&
                   std::find(m_Operation.axes.begin(), m_Operation.axes.end(), a) != m_Operation.axes.end();
      // Around a periodic image each pair may follow from the next.
      m_IsTransitive = m_IsTransitive && !m_Wraps[a];
    }
  }

  /** Finds the roots of all runs. */
  void
  FindRoots()
  {
    DispatchPixelType(m_Input.kind, [this](auto pixel) {
      using Pixel = decltype(pixel);
      using Bits = typename ComparedAs<Pixel>::Type;
      const auto background = m_Operation.background.template As<Pixel>();
      if (m_Operation.rule == LabelRule::Within)
      {
        this->MakeWords(background, MakeLabelIsWithin<Pixel>(m_Operation.tolerance));
      }
      else
      {
        this->MakeWords(static_cast<Bits>(background), LabelIsEqual<Bits>());
      }
    });
    this->JoinRuns();
  }

  /** Gives each root its label in the chunk. */
  void
  NumberRoots()
  {
    m_Count = 0;
    for (std::int64_t task = 0; task < m_Scratch.CountTasks(); ++task)
    {
      const std::int64_t count = m_Counts[task];
      m_Counts[task] = m_Count;
      m_Count += count;
    }
    this->ForEachTask([this](std::int64_t task) {
      auto label = static_cast<TId>(m_Counts[task]);
      for (TId run = this->FirstRunOf(task); run < this->FirstRunOf(task + 1); ++run)
      {
        if (this->Load(run) == run)
        {
          this->Store(run, static_cast<TId>(++label | IsLabel));
        }
      }
    });
  }

  /** Replaces the labels of roots by those of a solution. */
  void
  Solve(const LabelSolution & solution)
  {
    this->ForEachTask([&](std::int64_t task) {
      for (std::int64_t row = this->FirstRow(task); row < this->FirstRow(task + 1); ++row)
      {
        for (TId run = this->FirstRunOfRow(row); run < this->FirstRunOfRow(row + 1); ++run)
        {
          const TId label = this->Load(run);
          if ((label & IsLabel) != 0)
          {
            this->Store(run, static_cast<TId>(solution.GetLabel(row, label & ~IsLabel) | IsLabel));
          }
        }
      }
    });
  }

  /** Throws Error if the output has not so many labels. */
  void
  CheckCount() const
  {
    if (m_Operation.MayHaveTooMany(m_Box))
    {
      CheckNumberOfLabels(static_cast<std::uint64_t>(m_Count), m_Operation.outputKind);
    }
  }

  void
  WriteSummary()
  {
    const LabelSummaryLayout layout(m_Operation, m_Box);
    auto * const             bytes = static_cast<unsigned char *>(m_Call.sideOut);
    std::memset(bytes, 0, layout.bytes);
    this->ForEachTask([&](std::int64_t task) {
      for (std::int64_t row = this->FirstRow(task); row < this->FirstRow(task + 1); ++row)
      {
        std::uint32_t count = 0;
        for (TId run = this->FirstRunOfRow(row); run < this->FirstRunOfRow(row + 1); ++run)
        {
          count += (this->Load(run) & IsLabel) != 0 ? 1 : 0;
        }
        std::memcpy(bytes + row * static_cast<std::int64_t>(sizeof(count)), &count, sizeof(count));
      }
    });
    for (int f = 0; f < layout.numberOfFaces; ++f)
    {
      const LabelFace & face = layout.faces[f];
      Box               plane = m_Box;
      (face.isUpper ? plane.lower[face.axis] : plane.upper[face.axis]) =
        face.isUpper ? plane.upper[face.axis] - 1 : plane.lower[face.axis] + 1;
      Coordinates at = plane.lower;
      for (std::int64_t i = 0; i < face.voxels; ++i)
      {
        const TId label = this->LabelAt(at);
        std::memcpy(bytes + face.labels + static_cast<std::size_t>(i) * sizeof(TId), &label, sizeof(TId));
        if (m_Operation.rule != LabelRule::Foreground)
        {
          const std::size_t size = PixelSize(m_Input.kind);
          std::memcpy(bytes + face.values + static_cast<std::size_t>(i) * size,
                      static_cast<const char *>(m_Input.data) + m_Input.Offset(at) * static_cast<std::int64_t>(size),
                      size);
        }
        for (int a = 0; a < MaxDimension && ++at[a] == plane.upper[a]; ++a)
        {
          at[a] = plane.lower[a];
        }
      }
    }
  }

  void
  WriteLabels()
  {
    DispatchPixelType(m_Call.output.kind, [this](auto pixel) {
      using Pixel = decltype(pixel);
      const BufferView & output = m_Call.output;
      const std::int64_t stride = output.stride[0];
      this->ForEachTask([&](std::int64_t task) {
        for (std::int64_t row = this->FirstRow(task); row < this->FirstRow(task + 1); ++row)
        {
          Pixel * const voxels = static_cast<Pixel *>(output.data) + output.Offset(this->BeginOf(row));
          for (std::int64_t word = 0; word < m_Scratch.words; ++word)
          {
            const std::int64_t n = std::min(WordBits, m_Box.Extent(0) - word * WordBits);
            this->WriteWord(row * m_Scratch.words + word, voxels + word * WordBits * stride, stride, n);
          }
        }
        if (m_Call.control)
        {
          m_Call.control->AddFinishedVoxels((this->FirstRow(task + 1) - this->FirstRow(task)) * m_Box.Extent(0));
        }
      });
    });
  }

private:
  /** Marks the entry of a root that holds a label in place of a parent. */
  static constexpr TId IsLabel = TId{ 1 } << (8 * sizeof(TId) - 1);

  template <typename T>
  T *
  At(std::size_t offset) const
  {
    return reinterpret_cast<T *>(static_cast<char *>(m_Call.scratch) + offset);
  }

  // Other workers follow parents while one shortens the way.
  TId
  Load(TId run) const
  {
    return reinterpret_cast<const std::atomic<TId> *>(m_Parents + run)->load(std::memory_order_relaxed);
  }
  void
  Store(TId run, TId value)
  {
    reinterpret_cast<std::atomic<TId> *>(m_Parents + run)->store(value, std::memory_order_relaxed);
  }

  template <typename TBody>
  void
  ForEachTask(TBody && body)
  {
    m_Call.executor->ParallelFor(m_Scratch.CountTasks(), [&](std::int64_t task, unsigned int) {
      if (!m_Call.control || !m_Call.control->ShouldStop())
      {
        body(task);
      }
    });
  }
  std::int64_t
  FirstRow(std::int64_t task) const
  {
    return std::min(task * m_Scratch.RowsOfTask(), m_Scratch.rows);
  }
  TId
  FirstRunOfRow(std::int64_t row) const
  {
    return m_FirstRuns[row * m_Scratch.words];
  }
  TId
  FirstRunOf(std::int64_t task) const
  {
    return this->FirstRunOfRow(this->FirstRow(task));
  }

  /** The first voxel of a row. */
  Coordinates
  BeginOf(std::int64_t row) const
  {
    Coordinates at = m_Box.lower;
    for (int a = 1; a < MaxDimension; ++a)
    {
      at[a] += row % m_Box.Extent(a);
      row /= m_Box.Extent(a);
    }
    return at;
  }
  /** The number of a row beside another one; -1: there is none. */
  std::int64_t
  RowBeside(const Coordinates & begin, const LabelRow & neighbor) const
  {
    std::int64_t row = 0;
    for (int a = MaxDimension - 1; a >= 1; --a)
    {
      const std::int64_t extent = m_Box.Extent(a);
      std::int64_t       at = begin[a] - m_Box.lower[a] + neighbor.offset[a];
      if (at < 0 || at >= extent)
      {
        if (!m_Wraps[a])
        {
          return -1;
        }
        at = at < 0 ? at + extent : at - extent;
      }
      row = row * extent + at;
    }
    return row;
  }

  void
  JoinRuns()
  {
    this->NumberRuns();
    const std::int64_t tasks = m_Scratch.CountTasks();
    const std::int64_t bands =
      std::min<std::int64_t>(tasks, BandsOfWorker * static_cast<std::int64_t>(m_Call.executor->GetConcurrency()));
    const auto beginOf = [&](std::int64_t band) {
      return bands == 0 ? 0 : this->FirstRow(tasks / bands * band + std::min(band, tasks % bands));
    };
    m_Call.executor->ParallelFor(bands, [&](std::int64_t band, unsigned int) {
      const std::int64_t begin = beginOf(band);
      const std::int64_t end = band + 1 == bands ? m_Scratch.rows : beginOf(band + 1);
      for (std::int64_t row = begin; row < end && !(m_Call.control && m_Call.control->ShouldStop()); ++row)
      {
        for (TId run = this->FirstRunOfRow(row); run < this->FirstRunOfRow(row + 1); ++run)
        {
          m_Parents[run] = run;
        }
        this->JoinWithinRow(row);
        this->JoinRow(row, { begin, row, true });
      }
    });
    // The rows that reach beyond their band: some at its begin, or any across a periodic edge.
    std::int64_t reach = 1;
    std::int64_t plane = 1;
    bool         wraps = m_Wraps[0];
    for (int a = 1; a < MaxDimension; ++a)
    {
      reach = std::find(m_Operation.axes.begin(), m_Operation.axes.end(), a) != m_Operation.axes.end()
                ? std::max(reach, plane)
                : reach;
      wraps = wraps || m_Wraps[a];
      plane *= m_Box.Extent(a);
    }
    reach *= 3;
    for (std::int64_t band = 0; band < bands; ++band)
    {
      const std::int64_t begin = beginOf(band);
      const std::int64_t end = band + 1 == bands ? m_Scratch.rows : beginOf(band + 1);
      const std::int64_t last = wraps ? end : band == 0 ? begin : std::min(end, begin + reach);
      for (std::int64_t row = begin; row < last; ++row)
      {
        this->JoinRow(row, { begin, row, false });
      }
    }
    this->ForEachTask([this](std::int64_t task) {
      std::int64_t roots = 0;
      for (TId run = this->FirstRunOf(task); run < this->FirstRunOf(task + 1); ++run)
      {
        TId root = this->Load(run);
        if (root == run)
        {
          ++roots;
          continue;
        }
        for (TId next = this->Load(root); next != root; next = this->Load(root))
        {
          root = next;
        }
        this->Store(run, root);
      }
      m_Counts[task] = roots;
    });
  }

  /** The words of the foreground, and of voxels that are alike the one before. */
  template <typename TPixel, typename TAlike>
  void
  MakeWords(TPixel background, const TAlike & alike)
  {
    const std::int64_t stride = m_Input.stride[0];
    m_KeepAlike = &ChunkLabeler::KeepAlike<TPixel, TAlike>;
    m_AreAlike = &ChunkLabeler::AreAlike<TPixel, TAlike>;
    const bool all = m_Operation.labelsBackground;
    const bool linksAll = m_Operation.rule == LabelRule::Foreground;
    this->ForEachTask([&](std::int64_t task) {
      std::int64_t runs = 0;
      for (std::int64_t row = this->FirstRow(task); row < this->FirstRow(task + 1); ++row)
      {
        const TPixel * const voxels = static_cast<const TPixel *>(m_Input.data) + m_Input.Offset(this->BeginOf(row));
        Word                 before = 0;
        for (std::int64_t w = 0; w < m_Scratch.words; ++w)
        {
          const std::int64_t   n = std::min(WordBits, m_Box.Extent(0) - w * WordBits);
          const TPixel * const first = voxels + w * WordBits * stride;
          const Word           word = all                            ? BitsUpTo(static_cast<int>(n) - 1)
                                      : stride == 1 && n == WordBits ? WholeWord(first, background)
                                                                     : PartOfWord(first, stride, n, background);
          Word                 links = m_Neighbors.links ? word & ShiftedFromBefore(word, before) : 0;
          if (!linksAll && links != 0)
          {
            Word same = 0;
            for (std::int64_t i = w == 0 ? 1 : 0; i < n; ++i)
            {
              same |= static_cast<Word>(alike(first[i * stride], first[(i - 1) * stride]) ? 1 : 0) << i;
            }
            links &= same;
          }
          const std::int64_t at = row * m_Scratch.words + w;
          m_Foreground[at] = word;
          m_Links[at] = links;
          m_FirstRuns[at] = static_cast<TId>(runs);
          runs += CountBits(this->StartsOf(at));
          before = word;
        }
      }
      m_Counts[task] = runs;
    });
  }

  template <typename TPixel>
  static Word
  PartOfWord(const TPixel * voxels, std::int64_t stride, std::int64_t n, TPixel background)
  {
    Word word = 0;
    for (std::int64_t i = 0; i < n; ++i)
    {
      word |= static_cast<Word>(voxels[i * stride] != background ? 1 : 0) << i;
    }
    return word;
  }
  /** In bytes first, which the compiler compares many at a time. */
  template <typename TPixel>
  static Word
  WholeWord(const TPixel * voxels, TPixel background)
  {
    unsigned char is[WordBits];
    for (std::int64_t i = 0; i < WordBits; ++i)
    {
      is[i] = voxels[i] != background ? 0xff : 0;
    }
    Word word = 0;
#if defined(__SSE2__)
    for (std::int64_t i = 0; i < WordBits; i += 16)
    {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i *>(is + i));
      word |= static_cast<Word>(_mm_movemask_epi8(bytes)) << i;
    }
    return word;
#endif
    for (std::int64_t i = 0; i < WordBits; i += 8)
    {
      Word bytes;
      std::memcpy(&bytes, is + i, sizeof(bytes));
      if constexpr (IsLittleEndian)
      {
        // Bit 0 of byte j comes to bit 56 + j.
        word |= ((bytes & 0x0101010101010101ULL) * 0x0102040810204080ULL) >> 56 << i;
      }
      else
      {
        for (int j = 0; j < 8; ++j)
        {
          word |= static_cast<Word>(is[i + j] & 1) << (i + j);
        }
      }
    }
    return word;
  }
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  static constexpr bool IsLittleEndian = false;
#else
  static constexpr bool IsLittleEndian = true;
#endif

  /** The first voxels of runs, which lie within a word. */
  Word
  StartsOf(std::int64_t at) const
  {
    return m_Foreground[at] & ~(m_Links[at] & ~Word{ 1 });
  }
  /** The run of bit `i` of a word. */
  TId
  RunOf(std::int64_t at, int i) const
  {
    return static_cast<TId>(m_FirstRuns[at] + static_cast<TId>(CountBits(this->StartsOf(at) & BitsUpTo(i)) - 1));
  }

  /** Makes the numbers of runs those of the chunk. */
  void
  NumberRuns()
  {
    std::int64_t before = 0;
    for (std::int64_t task = 0; task < m_Scratch.CountTasks(); ++task)
    {
      const std::int64_t count = m_Counts[task];
      m_Counts[task] = before;
      before += count;
    }
    m_FirstRuns[m_Scratch.words * m_Scratch.rows] = static_cast<TId>(before);
    this->ForEachTask([&](std::int64_t task) {
      const std::int64_t begin = this->FirstRow(task) * m_Scratch.words;
      const std::int64_t end = this->FirstRow(task + 1) * m_Scratch.words;
      for (std::int64_t at = begin; at < end; ++at)
      {
        m_FirstRuns[at] += static_cast<TId>(m_Counts[task]);
      }
    });
  }

  TId
  Find(TId run)
  {
    while (m_Parents[run] != run)
    {
      m_Parents[run] = m_Parents[m_Parents[run]];
      run = m_Parents[run];
    }
    return run;
  }
  void
  Join(TId a, TId b)
  {
    if (m_Parents[a] == m_Parents[b])
    {
      return;
    }
    a = this->Find(a);
    b = this->Find(b);
    m_Parents[std::max(a, b)] = std::min(a, b);
  }

  /** Joins runs of words that follow each other, and of the ends of a periodic row. */
  void
  JoinWithinRow(std::int64_t row)
  {
    const std::int64_t first = row * m_Scratch.words;
    for (std::int64_t at = first + 1; at < first + m_Scratch.words; ++at)
    {
      if ((m_Links[at] & 1) != 0)
      {
        this->Join(this->RunOf(at, 0), this->RunOf(at - 1, WordBits - 1));
      }
    }
    if (m_Wraps[0] && m_Neighbors.links)
    {
      this->JoinVoxels(row, 0, row, m_Box.Extent(0) - 1);
    }
  }

  bool
  IsForeground(std::int64_t row, std::int64_t x) const
  {
    return (m_Foreground[row * m_Scratch.words + x / WordBits] >> (x % WordBits) & 1) != 0;
  }
  void
  JoinVoxels(std::int64_t row, std::int64_t x, std::int64_t otherRow, std::int64_t otherX)
  {
    if (this->IsForeground(row, x) && this->IsForeground(otherRow, otherX) &&
        (m_Operation.rule == LabelRule::Foreground || (this->*m_AreAlike)(row, x, otherRow, otherX)))
    {
      this->Join(this->RunOf(row * m_Scratch.words + x / WordBits, static_cast<int>(x % WordBits)),
                 this->RunOf(otherRow * m_Scratch.words + otherX / WordBits, static_cast<int>(otherX % WordBits)));
    }
  }

  /** The rows from `begin` to `end`, or all others. */
  struct RowRange
  {
    std::int64_t begin;
    std::int64_t end;
    bool         isInside;

    bool
    Has(std::int64_t row) const
    {
      return (row >= begin && row < end) == isInside;
    }
  };

  /** Joins runs of a row with those of the rows beside it that are in `range`. */
  void
  JoinRow(std::int64_t row, const RowRange & range)
  {
    if (m_IsTransitive)
    {
      this->JoinRowByFewPairs(row, range);
      return;
    }
    const Coordinates begin = this->BeginOf(row);
    for (int r = 0; r < m_Neighbors.count; ++r)
    {
      const LabelRow &   neighbor = m_Neighbors.rows[r];
      const std::int64_t other = this->RowBeside(begin, neighbor);
      if (other < 0 || !range.Has(other))
      {
        continue;
      }
      for (std::int64_t w = 0; w < m_Scratch.words; ++w)
      {
        const std::int64_t at = row * m_Scratch.words + w;
        if (m_Foreground[at] == 0)
        {
          continue;
        }
        LabelPairs<Word> pairs = this->PairsOf(row, other, begin, w, neighbor.shifts);
        RemoveImpliedPairs(pairs, m_Links[at], m_Links[other * m_Scratch.words + w]);
        const std::int64_t otherAt = other * m_Scratch.words + w;
        for (Word bits = pairs.same; bits != 0; bits &= bits - 1)
        {
          const int i = LowestBit(bits);
          this->Join(this->RunOf(at, i), this->RunOf(otherAt, i));
        }
        for (Word bits = pairs.before; bits != 0; bits &= bits - 1)
        {
          const int i = LowestBit(bits);
          this->Join(this->RunOf(at, i), i == 0 ? this->RunOf(otherAt - 1, WordBits - 1) : this->RunOf(otherAt, i - 1));
        }
        for (Word bits = pairs.after; bits != 0; bits &= bits - 1)
        {
          const int i = LowestBit(bits);
          this->Join(this->RunOf(at, i), i == WordBits - 1 ? this->RunOf(otherAt + 1, 0) : this->RunOf(otherAt, i + 1));
        }
      }
      if (m_Wraps[0])
      {
        const std::int64_t last = m_Box.Extent(0) - 1;
        if ((neighbor.shifts & 1) != 0)
        {
          this->JoinVoxels(row, 0, other, last);
        }
        if ((neighbor.shifts & 4) != 0)
        {
          this->JoinVoxels(row, last, other, 0);
        }
      }
    }
  }

  /** A word of a row whose pairs with earlier rows are sought. */
  struct WordPairs
  {
    std::int64_t beside[LabelNeighbors::MostRows];  ///< the other rows; below 0: there is none
    bool         isTaken[LabelNeighbors::MostRows]; ///< whether a row's pairs are joined
    Coordinates  begin;                             ///< of the row
    std::int64_t w;
    std::int64_t at;
    Word         own;
    Word         links;
    Word         pairs[EarlierNeighbors::Most]{};
    Word         shifted[EarlierNeighbors::Most]{}; ///< those of voxels at x - 1
  };

  /** The voxels that other pairs join to neighbor `k`. */
  CHUNKWISE_ALWAYS_INLINE Word
  FindNeedless(const WordPairs & word, int k) const
  {
    Word all = 0;
    for (std::uint32_t rest = m_Earlier.list[k].impliedBy; rest != 0; rest &= rest - 1)
    {
      all |= word.pairs[LowestBit(rest)];
    }
    Word linked = 0;
    for (std::uint32_t rest = word.links != 0 ? m_Earlier.list[k].impliedByBefore : 0; rest != 0; rest &= rest - 1)
    {
      linked |= word.shifted[LowestBit(rest)];
    }
    return all | (linked & word.links);
  }

  /** The voxels whose neighbor `k` is foreground. */
  CHUNKWISE_ALWAYS_INLINE Word
  FindPairs(const WordPairs & word, int k) const
  {
    const EarlierNeighbor & neighbor = m_Earlier.list[k];
    if (word.beside[neighbor.row] < 0)
    {
      return Word{ 0 };
    }
    const std::int64_t words = m_Scratch.words;
    const std::int64_t w = word.w;
    const Word * const other = m_Foreground + word.beside[neighbor.row] * words + w;
    return word.own & (neighbor.shift == 0  ? *other
                       : neighbor.shift < 0 ? ShiftedFromBefore(*other, w > 0 ? other[-1] : Word{ 0 })
                                            : ShiftedFromAfter(*other, w + 1 < words ? other[1] : Word{ 0 }));
  }

  CHUNKWISE_ALWAYS_INLINE void
  JoinPairs(const WordPairs & word, int k, Word bits)
  {
    const EarlierNeighbor & neighbor = m_Earlier.list[k];
    if (!word.isTaken[neighbor.row])
    {
      return;
    }
    const std::int64_t otherAt = word.beside[neighbor.row] * m_Scratch.words + word.w;
    const Word         starts = this->StartsOf(word.at);
    const Word         otherStarts = this->StartsOf(otherAt);
    const TId          first = m_FirstRuns[word.at] - 1;
    const TId          otherFirst = m_FirstRuns[otherAt] - 1;
    for (; bits != 0; bits &= bits - 1)
    {
      const int i = LowestBit(bits);
      const int x = i + neighbor.shift;
      const TId run = first + static_cast<TId>(CountBits(starts & BitsUpTo(i)));
      this->Join(run,
                 x < 0           ? this->RunOf(otherAt - 1, WordBits - 1)
                 : x == WordBits ? this->RunOf(otherAt + 1, 0)
                                 : otherFirst + static_cast<TId>(CountBits(otherStarts & BitsUpTo(x))));
    }
  }

  /** Joins the pairs of equal or similar values of a word; values are compared only where it matters. */
  CHUNKWISE_ALWAYS_INLINE void
  JoinAlikePairs(WordPairs & word)
  {
    std::fill_n(word.pairs, m_Earlier.count, Word{ 0 });
    for (int k = 0; k < m_Earlier.count; ++k)
    {
      const EarlierNeighbor & neighbor = m_Earlier.list[k];
      const Word              bits = this->FindPairs(word, k) & ~this->FindNeedless(word, k);
      word.pairs[k] =
        bits == 0 ? bits : (this->*m_KeepAlike)(bits, word.begin, word.beside[neighbor.row], word.w, neighbor.shift);
      word.shifted[k] |= word.pairs[k] << 1;
      this->JoinPairs(word, k, word.pairs[k] & ~this->FindNeedless(word, k));
    }
  }

  /** Joins the pairs of foreground of a word. `square`: the row that closes squares of four voxels, or below 0. */
  CHUNKWISE_ALWAYS_INLINE void
  JoinForegroundPairs(WordPairs & word, std::int64_t square)
  {
    const int count = m_Earlier.count;
    // Most voxels within objects have all that they need of the first neighbor.
    Word rest = word.own;
    for (int k = 0; k < count; ++k)
    {
      word.pairs[k] = rest != 0 ? this->FindPairs(word, k) & rest : Word{ 0 };
      word.shifted[k] |= word.pairs[k] << 1;
      rest = k == 0 && m_Earlier.firstImpliesAll ? word.own & ~word.pairs[0] : rest;
    }
    for (int k = 0; k < (rest != 0 ? count : 1); ++k)
    {
      if (word.pairs[k] != 0)
      {
        Word bits = word.pairs[k] & ~this->FindNeedless(word, k);
        if (k == 1 && square >= 0)
        {
          bits &= ~(word.pairs[0] & m_Foreground[square * m_Scratch.words + word.w]);
        }
        this->JoinPairs(word, k, bits);
      }
    }
  }

  /** The same where two that are joined to a third are joined. */
  void
  JoinRowByFewPairs(std::int64_t row, const RowRange & range)
  {
    const bool hasValues = m_Operation.rule != LabelRule::Foreground;
    WordPairs  word;
    word.begin = this->BeginOf(row);
    for (int r = 0; r < m_Neighbors.count; ++r)
    {
      word.beside[r] = this->RowBeside(word.begin, m_Neighbors.rows[r]);
      word.isTaken[r] = word.beside[r] >= 0 && range.Has(word.beside[r]);
    }
    if (std::none_of(word.isTaken, word.isTaken + m_Neighbors.count, [](bool is) { return is; }))
    {
      return;
    }
    const std::int64_t square = m_Earlier.hasSquare && !hasValues ? this->RowBeside(word.begin, m_Earlier.square) : -1;
    for (word.w = 0; word.w < m_Scratch.words; ++word.w)
    {
      word.at = row * m_Scratch.words + word.w;
      word.own = m_Foreground[word.at];
      if (word.own == 0)
      {
        continue;
      }
      // From the word before, until this word has its pairs.
      for (int k = 0; k < m_Earlier.count; ++k)
      {
        word.shifted[k] = word.pairs[k] >> (WordBits - 1);
      }
      word.links = m_Links[word.at];
      hasValues ? this->JoinAlikePairs(word) : this->JoinForegroundPairs(word, square);
    }
  }

  /** Those of a word's voxels whose values are alike the ones at a shift in another row. */
  template <typename TPixel, typename TAlike>
  Word
  KeepAlike(Word bits, const Coordinates & begin, std::int64_t otherRow, std::int64_t w, std::int64_t shift) const
  {
    const auto           alike = this->MakeAlike(static_cast<TAlike *>(nullptr));
    const std::int64_t   stride = m_Input.stride[0];
    const TPixel * const values =
      static_cast<const TPixel *>(m_Input.data) + m_Input.Offset(begin) + w * WordBits * stride;
    const TPixel * const others =
      static_cast<const TPixel *>(m_Input.data) + m_Input.Offset(this->BeginOf(otherRow)) + w * WordBits * stride;
    for (Word rest = bits; rest != 0; rest &= rest - 1)
    {
      const int i = LowestBit(rest);
      if (!alike(values[i * stride], others[(i + shift) * stride]))
      {
        bits &= ~(Word{ 1 } << i);
      }
    }
    return bits;
  }

  template <typename TPixel, typename TAlike>
  bool
  AreAlike(std::int64_t row, std::int64_t x, std::int64_t otherRow, std::int64_t otherX) const
  {
    const auto valueAt = [this](std::int64_t r, std::int64_t i) {
      return static_cast<const TPixel *>(m_Input.data)[m_Input.Offset(this->BeginOf(r)) + i * m_Input.stride[0]];
    };
    return this->MakeAlike(static_cast<TAlike *>(nullptr))(valueAt(row, x), valueAt(otherRow, otherX));
  }
  template <typename TPixel>
  LabelIsEqual<TPixel>
  MakeAlike(LabelIsEqual<TPixel> *) const
  {
    return {};
  }
  template <typename TPixel>
  LabelIsWithin<TPixel>
  MakeAlike(LabelIsWithin<TPixel> *) const
  {
    return MakeLabelIsWithin<TPixel>(m_Operation.tolerance);
  }

  /** The pairs of word `w` of a row with voxels of another row, at these shifts. */
  LabelPairs<Word>
  PairsOf(std::int64_t row, std::int64_t otherRow, const Coordinates & begin, std::int64_t w, std::uint8_t shifts) const
  {
    const std::int64_t at = otherRow * m_Scratch.words + w;
    const Word         own = m_Foreground[row * m_Scratch.words + w];
    const Word         other = m_Foreground[at];
    LabelPairs<Word>   pairs{ 0, 0, 0 };
    if ((shifts & 1) != 0)
    {
      pairs.before = own & ShiftedFromBefore(other, w > 0 ? m_Foreground[at - 1] : Word{ 0 });
    }
    if ((shifts & 2) != 0)
    {
      pairs.same = own & other;
    }
    if ((shifts & 4) != 0)
    {
      pairs.after = own & ShiftedFromAfter(other, w + 1 < m_Scratch.words ? m_Foreground[at + 1] : Word{ 0 });
    }
    if (m_Operation.rule != LabelRule::Foreground && (pairs.before | pairs.same | pairs.after) != 0)
    {
      pairs.before = (this->*m_KeepAlike)(pairs.before, begin, otherRow, w, -1);
      pairs.same = (this->*m_KeepAlike)(pairs.same, begin, otherRow, w, 0);
      pairs.after = (this->*m_KeepAlike)(pairs.after, begin, otherRow, w, 1);
    }
    return pairs;
  }

  /** Words with more runs are written voxel by voxel. */
  static constexpr int FewRuns = 6;

  /** The label of a run, when roots have theirs. */
  TId
  LabelOfRun(TId run) const
  {
    const TId parent = this->Load(run);
    return ((parent & IsLabel) != 0 ? parent : this->Load(parent)) & ~IsLabel;
  }
  TId
  LabelAt(const Coordinates & index) const
  {
    std::int64_t row = 0;
    for (int a = MaxDimension - 1; a >= 1; --a)
    {
      row = row * m_Box.Extent(a) + index[a] - m_Box.lower[a];
    }
    const std::int64_t x = index[0] - m_Box.lower[0];
    return this->IsForeground(row, x)
             ? this->LabelOfRun(this->RunOf(row * m_Scratch.words + x / WordBits, static_cast<int>(x % WordBits)))
             : 0;
  }

  template <typename TPixel>
  void
  WriteWord(std::int64_t at, TPixel * voxels, std::int64_t stride, std::int64_t n) const
  {
    const Word foreground = m_Foreground[at];
    if (stride == 1 && n == WordBits && (foreground == 0 || foreground == ~Word{ 0 }) &&
        (this->StartsOf(at) & ~Word{ 1 }) == 0)
    {
      std::fill_n(
        voxels, WordBits, foreground == 0 ? TPixel{ 0 } : static_cast<TPixel>(this->LabelOfRun(m_FirstRuns[at])));
      return;
    }
    Word      starts = this->StartsOf(at);
    const int runs = CountBits(starts);
    if (stride == 1 && runs <= FewRuns)
    {
      std::fill_n(voxels, n, TPixel{ 0 });
      const Word ends = ~foreground | starts;
      for (TId run = m_FirstRuns[at]; starts != 0; starts &= starts - 1, ++run)
      {
        const int  first = LowestBit(starts);
        const Word later = ends & ~BitsUpTo(first);
        std::fill(voxels + first,
                  voxels + (later != 0 ? std::min<std::int64_t>(n, LowestBit(later)) : n),
                  static_cast<TPixel>(this->LabelOfRun(run)));
      }
      return;
    }
    // Labels of the word's runs, after that of the background.
    TPixel labels[WordBits + 1];
    labels[0] = 0;
    for (int i = 0; i < runs; ++i)
    {
      labels[i + 1] = static_cast<TPixel>(this->LabelOfRun(m_FirstRuns[at] + static_cast<TId>(i)));
    }
    std::int64_t run = 0;
    Word         rest = foreground;
    for (std::int64_t i = 0; i < n; ++i, starts >>= 1, rest >>= 1)
    {
      run += static_cast<std::int64_t>(starts & 1);
      voxels[i * stride] = labels[run & -static_cast<std::int64_t>(rest & 1)];
    }
  }

  const KernelCall &     m_Call;
  const LabelOperation & m_Operation;
  const Box              m_Box;
  const BufferView       m_Input;
  const LabelNeighbors   m_Neighbors;
  const EarlierNeighbors m_Earlier;
  const LabelScratch     m_Scratch;
  Word * const           m_Foreground;
  Word * const           m_Links;
  TId * const            m_FirstRuns;
  TId * const            m_Parents;
  std::int64_t * const   m_Counts;
  std::int64_t           m_Count{ 0 }; ///< of components
  bool                   m_Wraps[MaxDimension];
  bool                   m_IsTransitive;
  // Pixel types matter to what compares values, and to nothing else: all else is compiled once.
  Word (ChunkLabeler::*m_KeepAlike)(Word, const Coordinates &, std::int64_t, std::int64_t,
                                    std::int64_t) const { nullptr };
  bool (ChunkLabeler::*m_AreAlike)(std::int64_t, std::int64_t, std::int64_t, std::int64_t) const { nullptr };
};

/** Calls f(labeler) with roots numbered in the chunk, unless the run is to stop. */
template <typename TFunctor>
void
LabelChunk(const KernelCall & call, TFunctor && f)
{
  if (call.writable.IsEmpty())
  {
    return;
  }
  const auto label = [&](auto labeler) {
    labeler.FindRoots();
    if (!(call.control && call.control->ShouldStop()))
    {
      labeler.NumberRoots();
      f(labeler);
    }
  };
  if (static_cast<const LabelOperation &>(*call.operation).IsWide())
  {
    label(ChunkLabeler<std::uint64_t>(call));
  }
  else
  {
    label(ChunkLabeler<std::uint32_t>(call));
  }
}

std::size_t
LabelScratchBytes(const Operation & operation, const ChunkShape & shape)
{
  return LabelScratch(static_cast<const LabelOperation &>(operation), shape.outputBox).bytes;
}

/** The cost in bytes of memory traffic: words and runs are read and written several times beside voxels and labels. */
double
LabelCost(const Operation & operation, const ChunkShape & shape)
{
  const double voxels = static_cast<double>(shape.outputBox.NumberOfVoxels());
  const bool   readsValues = static_cast<const LabelOperation &>(operation).rule != LabelRule::Foreground;
  return voxels * (static_cast<double>(PixelSize(shape.inputKinds[0]) + PixelSize(shape.outputKind)) +
                   (readsValues ? 64.0 : 8.0));
}

} // namespace

void
RegisterHostLabel(KernelRegistry & registry)
{
  KernelSet kernels;
  Kernel    kernel;
  kernel.scratchBytes = LabelScratchBytes;
  kernel.cost = LabelCost;
  kernel.run = [](const KernelCall & call) { LabelChunk(call, [](auto & labeler) { labeler.WriteSummary(); }); };
  kernels.summarize = kernel;
  kernel.run = [](const KernelCall & call) {
    LabelChunk(call, [&](auto & labeler) {
      if (const auto * const numbering = static_cast<const LabelOperation &>(*call.operation).numbering.get())
      {
        labeler.Solve(LabelSolution(*numbering, numbering->parts.data()));
      }
      labeler.CheckCount();
      labeler.WriteLabels();
    });
  };
  kernels.alone = kernel;
  kernel.run = [](const KernelCall & call) {
    LabelChunk(call, [&](auto & labeler) {
      labeler.Solve(LabelSolution(call.sideIn, call.sideInBytes, CountRows(call.writable)));
      labeler.WriteLabels();
    });
  };
  kernels.compute = kernel;
  registry.Register("label", kernels);
}

} // namespace chunkwise
