/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseExecutor.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseLabelSummary.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace chunkwise
{

namespace
{

using Word = std::uint64_t;
constexpr std::int64_t WordBits = 64;

int
CountBits(Word word)
{
#if defined(__GNUC__)
  return __builtin_popcountll(word);
#else
  int count = 0;
  for (; word != 0; word &= word - 1)
  {
    ++count;
  }
  return count;
#endif
}

int
LowestBit(Word word)
{
#if defined(__GNUC__)
  return __builtin_ctzll(word);
#else
  return CountBits((word & (0 - word)) - 1);
#endif
}

/** The bits up to and with bit `i`. */
Word
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
    , m_Scratch(m_Operation, m_Box)
    , m_Foreground(this->At<Word>(m_Scratch.foreground))
    , m_Links(this->At<Word>(m_Scratch.links))
    , m_FirstRuns(this->At<TId>(m_Scratch.firstRuns))
    , m_Parents(this->At<TId>(m_Scratch.runs))
    , m_Counts(this->At<std::int64_t>(m_Scratch.counts))
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      m_Wraps[a] = m_Operation.periodic[a] && m_Box.Extent(a) == call.image.Extent(a) &&
                   std::find(m_Operation.axes.begin(), m_Operation.axes.end(), a) != m_Operation.axes.end();
    }
  }

  /** Finds the roots of all runs. */
  void
  FindRoots()
  {
    DispatchPixelKind(m_Input.kind, [this](auto pixel) {
      using Pixel = decltype(pixel);
      switch (m_Operation.rule)
      {
        case LabelRule::Foreground:
          this->FindRootsOf<Pixel>([](Pixel, Pixel) { return true; });
          break;
        case LabelRule::Equal:
          this->FindRootsOf<Pixel>(LabelIsEqual<Pixel>());
          break;
        case LabelRule::Within:
          this->FindRootsOf<Pixel>(MakeLabelIsWithin<Pixel>(m_Operation.tolerance));
          break;
      }
    });
  }

  /** Gives each root its label in the chunk. */
  void
  NumberRoots()
  {
    this->ForEachTask([this](std::int64_t task) {
      std::int64_t count = 0;
      for (TId run = this->FirstRunOf(task); run < this->FirstRunOf(task + 1); ++run)
      {
        count += this->Load(run) == run ? 1 : 0;
      }
      m_Counts[task] = count;
    });
    std::int64_t before = 0;
    for (std::int64_t task = 0; task < m_Scratch.CountTasks(); ++task)
    {
      const std::int64_t count = m_Counts[task];
      m_Counts[task] = before;
      before += count;
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
    DispatchPixelKind(m_Call.output.kind, [this](auto pixel) {
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

  template <typename TPixel, typename TAlike>
  void
  FindRootsOf(const TAlike & alike)
  {
    this->MakeWords<TPixel>(alike);
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
        this->JoinWithinRow<TPixel>(row, alike);
        this->JoinRow<TPixel>(row, alike, [&](std::int64_t other) { return other >= begin && other < row; });
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
        this->JoinRow<TPixel>(row, alike, [&](std::int64_t other) { return other < begin || other >= row; });
      }
    }
    this->ForEachTask([this](std::int64_t task) {
      for (TId run = this->FirstRunOf(task); run < this->FirstRunOf(task + 1); ++run)
      {
        TId root = this->Load(run);
        for (TId next = this->Load(root); next != root; next = this->Load(root))
        {
          root = next;
        }
        this->Store(run, root);
      }
    });
  }

  /** The words of the foreground, and of voxels that are alike the one before. */
  template <typename TPixel, typename TAlike>
  void
  MakeWords(const TAlike & alike)
  {
    const std::int64_t stride = m_Input.stride[0];
    const bool         all = m_Operation.labelsBackground;
    const auto         background = m_Operation.background.template As<TPixel>();
    const bool         linksAll = m_Operation.rule == LabelRule::Foreground;
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
      is[i] = voxels[i] != background ? 1 : 0;
    }
    Word word = 0;
    for (std::int64_t i = 0; i < WordBits; i += 8)
    {
      Word bytes;
      std::memcpy(&bytes, is + i, sizeof(bytes));
      if constexpr (IsLittleEndian)
      {
        // Bit 0 of byte j comes to bit 56 + j.
        word |= (bytes * 0x0102040810204080ULL) >> 56 << i;
      }
      else
      {
        for (int j = 0; j < 8; ++j)
        {
          word |= static_cast<Word>(is[i + j]) << (i + j);
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

  /** Makes the numbers of runs those of the chunk, and each run a component. */
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
        const int count = CountBits(this->StartsOf(at));
        for (int i = 0; i < count; ++i)
        {
          m_Parents[m_FirstRuns[at] + static_cast<TId>(i)] = m_FirstRuns[at] + static_cast<TId>(i);
        }
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
    a = this->Find(a);
    b = this->Find(b);
    m_Parents[std::max(a, b)] = std::min(a, b);
  }

  /** Joins runs of words that follow each other, and of the ends of a periodic row. */
  template <typename TPixel, typename TAlike>
  void
  JoinWithinRow(std::int64_t row, const TAlike & alike)
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
      this->JoinVoxels<TPixel>(row, 0, row, m_Box.Extent(0) - 1, alike);
    }
  }

  bool
  IsForeground(std::int64_t row, std::int64_t x) const
  {
    return (m_Foreground[row * m_Scratch.words + x / WordBits] >> (x % WordBits) & 1) != 0;
  }
  template <typename TPixel, typename TAlike>
  void
  JoinVoxels(std::int64_t row, std::int64_t x, std::int64_t otherRow, std::int64_t otherX, const TAlike & alike)
  {
    const auto valueAt = [this](std::int64_t r, std::int64_t i) {
      return static_cast<const TPixel *>(m_Input.data)[m_Input.Offset(this->BeginOf(r)) + i * m_Input.stride[0]];
    };
    if (this->IsForeground(row, x) && this->IsForeground(otherRow, otherX) &&
        alike(valueAt(row, x), valueAt(otherRow, otherX)))
    {
      this->Join(this->RunOf(row * m_Scratch.words + x / WordBits, static_cast<int>(x % WordBits)),
                 this->RunOf(otherRow * m_Scratch.words + otherX / WordBits, static_cast<int>(otherX % WordBits)));
    }
  }

  /** Joins runs of a row with those of the rows beside it that `takes` accepts. */
  template <typename TPixel, typename TAlike, typename TTakes>
  void
  JoinRow(std::int64_t row, const TAlike & alike, TTakes && takes)
  {
    const Coordinates  begin = this->BeginOf(row);
    const std::int64_t center =
      m_Neighbors.center < 0 ? -1 : this->RowBeside(begin, m_Neighbors.rows[m_Neighbors.center]);
    for (int r = 0; r < m_Neighbors.count; ++r)
    {
      const LabelRow &   neighbor = m_Neighbors.rows[r];
      const std::int64_t other = this->RowBeside(begin, neighbor);
      if (other < 0 || !takes(other))
      {
        continue;
      }
      const bool isAround = center >= 0 && (m_Neighbors.aroundCenter >> r & 1) != 0;
      for (std::int64_t w = 0; w < m_Scratch.words; ++w)
      {
        const std::int64_t at = row * m_Scratch.words + w;
        if (m_Foreground[at] == 0)
        {
          continue;
        }
        const Word       leftOut = isAround ? this->PairsOf<TPixel>(row, center, begin, w, 2, alike).same : Word{ 0 };
        LabelPairs<Word> pairs = this->PairsOf<TPixel>(row, other, begin, w, neighbor.shifts, alike);
        RemoveImpliedPairs(pairs, m_Links[at], m_Links[other * m_Scratch.words + w]);
        const std::int64_t otherAt = other * m_Scratch.words + w;
        for (Word bits = pairs.same & ~leftOut; bits != 0; bits &= bits - 1)
        {
          const int i = LowestBit(bits);
          this->Join(this->RunOf(at, i), this->RunOf(otherAt, i));
        }
        for (Word bits = pairs.before & ~leftOut; bits != 0; bits &= bits - 1)
        {
          const int i = LowestBit(bits);
          this->Join(this->RunOf(at, i), i == 0 ? this->RunOf(otherAt - 1, WordBits - 1) : this->RunOf(otherAt, i - 1));
        }
        for (Word bits = pairs.after & ~leftOut; bits != 0; bits &= bits - 1)
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
          this->JoinVoxels<TPixel>(row, 0, other, last, alike);
        }
        if ((neighbor.shifts & 4) != 0)
        {
          this->JoinVoxels<TPixel>(row, last, other, 0, alike);
        }
      }
    }
  }

  /** The pairs of word `w` of a row with voxels of another row, at these shifts. */
  template <typename TPixel, typename TAlike>
  LabelPairs<Word>
  PairsOf(std::int64_t row, std::int64_t otherRow, const Coordinates & begin, std::int64_t w, std::uint8_t shifts,
          const TAlike & alike) const
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
      const std::int64_t   stride = m_Input.stride[0];
      const TPixel * const values =
        static_cast<const TPixel *>(m_Input.data) + m_Input.Offset(begin) + w * WordBits * stride;
      const TPixel * const others =
        static_cast<const TPixel *>(m_Input.data) + m_Input.Offset(this->BeginOf(otherRow)) + w * WordBits * stride;
      const auto keep = [&](Word & bits, std::int64_t shift) {
        for (Word rest = bits; rest != 0; rest &= rest - 1)
        {
          const int i = LowestBit(rest);
          if (!alike(values[i * stride], others[(i + shift) * stride]))
          {
            bits &= ~(Word{ 1 } << i);
          }
        }
      };
      keep(pairs.before, -1);
      keep(pairs.same, 0);
      keep(pairs.after, 1);
    }
    return pairs;
  }

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
    Word       rest = m_Foreground[at];
    const Word starts = this->StartsOf(at);
    if (stride == 1)
    {
      std::fill_n(voxels, n, TPixel{ 0 });
    }
    else
    {
      for (std::int64_t i = 0; i < n; ++i)
      {
        voxels[i * stride] = 0;
      }
    }
    TId run = m_FirstRuns[at];
    while (rest != 0)
    {
      const int  first = LowestBit(rest);
      const auto label = static_cast<TPixel>(this->LabelOfRun(run++));
      // Up to the first voxel that is background, or begins another run.
      const Word         ends = (~m_Foreground[at] | starts) & ~BitsUpTo(first);
      const std::int64_t end = ends != 0 ? LowestBit(ends) : WordBits;
      for (std::int64_t i = first; i < end; ++i)
      {
        voxels[i * stride] = label;
      }
      rest = end == WordBits ? 0 : rest & ~BitsUpTo(static_cast<int>(end) - 1);
    }
  }

  const KernelCall &     m_Call;
  const LabelOperation & m_Operation;
  const Box              m_Box;
  const BufferView       m_Input;
  const LabelNeighbors   m_Neighbors;
  const LabelScratch     m_Scratch;
  Word * const           m_Foreground;
  Word * const           m_Links;
  TId * const            m_FirstRuns;
  TId * const            m_Parents;
  std::int64_t * const   m_Counts;
  bool                   m_Wraps[MaxDimension];
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
