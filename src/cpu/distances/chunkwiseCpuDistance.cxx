/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuDistanceEnvelope.h"
#include "chunkwiseCpuDistanceRows.h"
#include "chunkwiseCpuLevels.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseHostKernelList.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(DistanceLevel, MakeDistanceLevel)

const DistanceLevel &
GetDistanceLevel()
{
  static FunctionsAtLevels<DistanceLevel> levels{ CHUNKWISE_AT_LEVELS(MakeDistanceLevel) };
  return levels.Get();
}

namespace
{

template <typename T>
const DistanceFunctions<T> &
DistanceFunctionsOf(const DistanceLevel & level)
{
  if constexpr (sizeof(T) == 4)
  {
    return level.int32;
  }
  else if constexpr (static_cast<T>(0.5) != T{ 0 })
  {
    return level.float64;
  }
  else
  {
    return level.int64;
  }
}

/** Voxels of a volume up to which each worker takes one. */
constexpr std::int64_t SmallDistanceVolume = std::int64_t{ 1 } << 16;
/** Voxels of the slices that are computed together, and columns that a worker scans at a time. */
constexpr std::int64_t DistanceVoxelsTogether = std::int64_t{ 1 } << 18;
constexpr std::int64_t DistancePiece = 4096;

/** Memory for some volumes at a time, in slabs of some slices. */
class DistanceScratch
{
public:
  DistanceScratch(const DistanceOperation & operation, const Box & box, int concurrency, std::size_t numberBytes)
  {
    const int scan = operation.GetScanAxis();
    const int x = operation.GetSliceAxis(0);
    const int y = operation.GetSliceAxis(1);
    workers = concurrency;
    columns = x < 0 ? 1 : operation.image[x];
    rows = y < 0 ? 1 : operation.image[y];
    plane = columns * rows;
    const std::int64_t wanted = std::max<std::int64_t>(
      std::max<std::int64_t>(DistanceOperation::LeastSlices, 2 * concurrency), DistanceVoxelsTogether / plane);
    slices = std::min(box.Extent(scan), wanted);
    slabs = (box.Extent(scan) + slices - 1) / slices;
    takesVolumes = plane * operation.image[scan] <= SmallDistanceVolume;
    states = takesVolumes ? concurrency : 1;
    const bool         keepsNearest = operation.KeepsNearest();
    const std::int64_t longest = std::max(columns, rows);
    const auto         take = [this](std::size_t count, std::size_t size) {
      const std::size_t at = bytes;
      bytes += (count * size + 255) / 256 * 256;
      return at;
    };
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    next = take(size(states * slabs * plane), sizeof(std::int32_t));
    last = take(size(states * plane), sizeof(std::int32_t));
    buffer = take(size(states * slices * plane), numberBytes);
    nearest = take(keepsNearest ? size(states * slices * plane) : 0, sizeof(std::int64_t));
    weightsOfRows = take(size(std::max(columns, DistancePad) + 8), numberBytes);
    weightsOfColumns = take(size(std::max(rows, DistancePad) + 8), numberBytes);
    const std::size_t begin = bytes;
    features = take(size(slices * std::min(columns, DistancePiece)), 1);
    marks = take(size(4 * columns), 1);
    nextOfPiece = take(size(std::min(columns, DistancePiece)), sizeof(std::int32_t));
    tile = take(size(rows + 2 * DistancePad) * static_cast<std::size_t>(DistanceTileBytes), 1);
    line = take(size(columns + 2 * DistancePad) * numberBytes + static_cast<std::size_t>(DistanceTileBytes), 1);
    parabolas = take(size(longest), sizeof(DistanceParabola<double>));
    values = take(size(longest), numberBytes);
    indices = take(keepsNearest ? size(longest) : 0, sizeof(std::int64_t));
    workerBytes = bytes - begin;
    workerBegin = begin;
    bytes = begin + workerBytes * size(concurrency);
  }

  int          workers;
  std::int64_t columns;
  std::int64_t rows;
  std::int64_t plane;
  std::int64_t slices;
  std::int64_t slabs;
  std::int64_t states;
  bool         takesVolumes;
  std::size_t  next;
  std::size_t  last;
  std::size_t  buffer;
  std::size_t  nearest;
  std::size_t  weightsOfRows;
  std::size_t  weightsOfColumns;
  std::size_t  workerBegin;
  std::size_t  workerBytes;
  std::size_t  features;
  std::size_t  marks;
  std::size_t  nextOfPiece;
  std::size_t  tile;
  std::size_t  line;
  std::size_t  parabolas;
  std::size_t  values;
  std::size_t  indices;
  std::size_t  bytes{ 0 };
};

/** Computes a chunk. */
template <typename T>
class ChunkDistances
{
public:
  ChunkDistances(const KernelCall & call, const DistanceScratch & scratch)
    : m_Call(call)
    , m_Operation(static_cast<const DistanceOperation &>(*call.operation))
    , m_Functions(DistanceFunctionsOf<T>(GetDistanceLevel()))
    , m_Scratch(scratch)
    , m_Rows(call)
    , m_Planes(m_Operation.GetPlanes(call.writable))
    , m_Scan(m_Operation.GetScanAxis())
    , m_Begin(call.writable.lower[m_Scan])
    , m_End(call.writable.upper[m_Scan])
  {
    if constexpr (IsReal)
    {
      m_Beyond = m_Operation.GetBeyondAsDouble();
    }
    else
    {
      m_Beyond = static_cast<T>(m_Operation.GetBeyond());
    }
    m_OfRows = this->MakeAxis(m_Operation.GetSliceAxis(0), m_Scratch.weightsOfRows);
    m_OfColumns = this->MakeAxis(m_Operation.GetSliceAxis(1), m_Scratch.weightsOfColumns);
    m_OfScan = m_OfRows;
    m_OfScan.spacing = IsReal ? m_Operation.spacing[m_Scan] : 1;
    for (int w = 0; w < m_Scratch.workers; ++w)
    {
      T * const  tile = this->OfWorker<T>(w, m_Scratch.tile);
      T * const  line = this->OfWorker<T>(w, m_Scratch.line);
      const auto lanes = DistanceTileBytes / static_cast<std::int64_t>(sizeof(T));
      std::fill_n(tile, DistancePad * lanes, m_Beyond);
      std::fill_n(tile + (m_Scratch.rows + DistancePad) * lanes, DistancePad * lanes, m_Beyond);
      std::fill_n(line, DistancePad, m_Beyond);
      std::fill_n(line + m_Scratch.columns + DistancePad, DistancePad + lanes, m_Beyond);
    }
  }

  /** `sides`: the nearest features before and after the chunk; nullptr: there are none. */
  void
  Run(const void * sides)
  {
    const std::int64_t volumes = m_Planes.columns / m_Scratch.plane;
    if (m_Scratch.takesVolumes)
    {
      m_Call.executor->ParallelFor(volumes, [&](std::int64_t volume, unsigned int worker) {
        this->RunVolume(volume, sides, worker, [&](std::int64_t count, const Task & task) {
          for (std::int64_t i = 0; i < count; ++i)
          {
            task(i, worker);
          }
        });
      });
      return;
    }
    for (std::int64_t volume = 0; volume < volumes; ++volume)
    {
      this->RunVolume(
        volume, sides, 0, [&](std::int64_t count, const Task & task) { m_Call.executor->ParallelFor(count, task); });
    }
  }

private:
  using Task = std::function<void(std::int64_t, unsigned int)>;
  static constexpr bool IsReal = static_cast<T>(0.5) != T{ 0 };

  template <typename TItem>
  TItem *
  At(std::size_t offset) const
  {
    return reinterpret_cast<TItem *>(static_cast<unsigned char *>(m_Call.scratch) + offset);
  }
  template <typename TItem>
  TItem *
  OfWorker(std::size_t worker, std::size_t offset) const
  {
    return this->At<TItem>(offset + worker * m_Scratch.workerBytes);
  }

  DistanceAxis<T>
  MakeAxis(int axis, std::size_t offset) const
  {
    const std::int64_t n = axis < 0 ? 1 : m_Operation.image[axis];
    T * const          weights = this->At<T>(offset);
    DistanceAxis<T>    result{};
    result.spacing = IsReal && axis >= 0 ? m_Operation.spacing[axis] : 1;
    result.square = result.spacing * result.spacing;
    result.weights = weights;
    result.length = n;
    result.beyond = m_Beyond;
    for (std::int64_t k = 0; k < std::max(n, DistancePad) + 8; ++k)
    {
      if constexpr (IsReal)
      {
        const double length = static_cast<double>(k) * result.spacing;
        weights[k] = length * length;
      }
      else
      {
        weights[k] = static_cast<T>(sizeof(T) == 4 ? std::min<std::int64_t>(k * k, DistanceOperation::None32) : k * k);
      }
    }
    return result;
  }

  bool
  ShouldStop() const
  {
    return m_Call.control && m_Call.control->ShouldStop();
  }

  template <typename TLoop>
  void
  RunVolume(std::int64_t volume, const void * sides, std::int64_t state, TLoop && loop)
  {
    const std::int64_t plane = m_Scratch.plane;
    std::int32_t *     next = this->At<std::int32_t>(m_Scratch.next) + state * m_Scratch.slabs * plane;
    std::int32_t *     last = this->At<std::int32_t>(m_Scratch.last) + state * plane;
    const Coordinates  base = m_Rows.BaseOf(volume);
    this->FindFirst(base, volume, sides, next, last, loop);
    T * const            numbers = this->At<T>(m_Scratch.buffer) + state * m_Scratch.slices * plane;
    std::int64_t * const nearest = m_Operation.KeepsNearest()
                                     ? this->At<std::int64_t>(m_Scratch.nearest) + state * m_Scratch.slices * plane
                                     : nullptr;
    const std::int64_t   pieces = this->GetPieces();
    for (std::int64_t slab = 0; slab < m_Scratch.slabs && !this->ShouldStop(); ++slab)
    {
      const std::int64_t begin = m_Begin + slab * m_Scratch.slices;
      const std::int64_t end = std::min(begin + m_Scratch.slices, m_End);
      loop(m_Scratch.rows * pieces, [&](std::int64_t task, unsigned int worker) {
        this->Scan(base, task, begin, end, next + slab * plane, last, numbers, nearest, worker);
      });
      const std::int64_t lanes = DistanceTileBytes / static_cast<std::int64_t>(sizeof(T));
      const std::int64_t tiles = (m_Scratch.columns + lanes - 1) / lanes;
      const auto         slice = [&](std::int64_t z,
                             std::int64_t firstTile,
                             std::int64_t lastTile,
                             std::int64_t firstRow,
                             std::int64_t lastRow,
                             unsigned int worker) {
        if (this->ShouldStop())
        {
          return;
        }
        const std::int64_t at = (z - begin) * plane;
        for (std::int64_t tile = firstTile; tile < lastTile; ++tile)
        {
          this->Columns(base, z, numbers + at, nearest ? nearest + at : nullptr, tile * lanes, lanes, worker);
        }
        for (std::int64_t row = firstRow; row < lastRow; ++row)
        {
          this->Row(base, z, row, numbers + at, nearest ? nearest + at : nullptr, volume, sides, worker);
        }
      };
      const std::int64_t slices = end - begin;
      if (slices >= 2 * m_Scratch.workers || m_Scratch.rows == 1)
      {
        loop(slices,
             [&](std::int64_t i, unsigned int worker) { slice(begin + i, 0, tiles, 0, m_Scratch.rows, worker); });
        continue;
      }
      // Few slices: workers share each of them.
      loop(slices * tiles, [&](std::int64_t i, unsigned int worker) {
        slice(begin + i / tiles, i % tiles, i % tiles + 1, 0, 0, worker);
      });
      loop(slices * m_Scratch.rows, [&](std::int64_t i, unsigned int worker) {
        slice(begin + i / m_Scratch.rows, 0, 0, i % m_Scratch.rows, i % m_Scratch.rows + 1, worker);
      });
    }
  }

  std::int64_t
  GetPieces() const
  {
    return (m_Scratch.columns + DistancePiece - 1) / DistancePiece;
  }

  /** The features after each slab, and those before the first one. */
  template <typename TLoop>
  void
  FindFirst(const Coordinates & base, std::int64_t volume, const void * sides, std::int32_t * next, std::int32_t * last,
            TLoop && loop)
  {
    const std::int64_t plane = m_Scratch.plane;
    const std::int64_t pieces = this->GetPieces();
    const auto * const bytes = static_cast<const unsigned char *>(sides);
    const auto * const before = reinterpret_cast<const std::int32_t *>(bytes) + volume * plane;
    const auto * const behind =
      bytes ? reinterpret_cast<const std::int32_t *>(bytes + m_Planes.SideBytes()) + volume * plane : nullptr;
    loop(m_Scratch.rows * pieces, [&](std::int64_t task, unsigned int worker) {
      const std::int64_t   row = task / pieces;
      const std::int64_t   first = task % pieces * DistancePiece;
      const std::int64_t   n = std::min(DistancePiece, m_Scratch.columns - first);
      const std::int64_t   at = row * m_Scratch.columns + first;
      std::uint8_t * const features = this->OfWorker<std::uint8_t>(worker, m_Scratch.features);
      std::uint8_t * const marks = this->OfWorker<std::uint8_t>(worker, m_Scratch.marks);
      std::int32_t *       found = next + (m_Scratch.slabs - 1) * plane + at;
      for (std::int64_t i = 0; i < n; ++i)
      {
        found[i] = bytes && behind[at + i] >= 0 ? behind[at + i] : NoneBehind;
        last[at + i] = bytes && before[at + i] >= 0 ? before[at + i] : NoneBefore;
      }
      for (std::int64_t slab = m_Scratch.slabs - 1; slab > 0 && !this->ShouldStop(); --slab, found -= plane)
      {
        std::copy_n(found, n, found - plane);
        const std::int64_t begin = m_Begin + slab * m_Scratch.slices;
        for (std::int64_t z = std::min(begin + m_Scratch.slices, m_End) - 1; z >= begin; --z)
        {
          m_Rows.GetFeatures(base, z, row, first, n, features, marks);
          for (std::int64_t i = 0; i < n; ++i)
          {
            (found - plane)[i] = features[i] != 0 ? static_cast<std::int32_t>(z) : (found - plane)[i];
          }
        }
      }
    });
  }

  /** Squared distances along the scan axis, of a piece of a row in some slices. */
  void
  Scan(const Coordinates & base, std::int64_t task, std::int64_t begin, std::int64_t end, const std::int32_t * next,
       std::int32_t * last, T * numbers, std::int64_t * nearest, unsigned int worker)
  {
    const std::int64_t   pieces = this->GetPieces();
    const std::int64_t   row = task / pieces;
    const std::int64_t   first = task % pieces * DistancePiece;
    const std::int64_t   n = std::min(DistancePiece, m_Scratch.columns - first);
    const std::int64_t   at = row * m_Scratch.columns + first;
    std::uint8_t * const features = this->OfWorker<std::uint8_t>(worker, m_Scratch.features);
    std::uint8_t * const marks = this->OfWorker<std::uint8_t>(worker, m_Scratch.marks);
    std::int32_t * const behind = this->OfWorker<std::int32_t>(worker, m_Scratch.nextOfPiece);
    const bool           toOthers = m_Operation.to == DistanceTo::Others;
    std::copy_n(next + at, n, behind);
    for (std::int64_t z = end - 1; z >= begin; --z)
    {
      m_Rows.GetFeatures(base, z, row, first, n, features + (z - begin) * n, marks);
      m_Functions.goBack(behind,
                         features + (z - begin) * n,
                         numbers + (z - begin) * m_Scratch.plane + at,
                         n,
                         static_cast<std::int32_t>(z),
                         !toOthers);
    }
    for (std::int64_t z = begin; z < end; ++z)
    {
      T * const out = numbers + (z - begin) * m_Scratch.plane + at;
      if (nearest)
      {
        this->NoteNearest(base,
                          row,
                          first,
                          n,
                          z,
                          features + (z - begin) * n,
                          last + at,
                          out,
                          nearest + (z - begin) * m_Scratch.plane + at);
      }
      m_Functions.goOn(
        last + at, features + (z - begin) * n, out, n, static_cast<std::int32_t>(z), toOthers ? 1 : 0, m_OfScan);
      if (toOthers)
      {
        m_Rows.GetBackground(base, z, row, first, n, features);
        for (std::int64_t i = 0; i < n; ++i)
        {
          out[i] = features[i] != 0 ? T{ 0 } : out[i];
        }
      }
    }
  }

  /** The raster indices of the nearest features along the scan axis; `out` has the distances to the features that
   * follow. */
  void
  NoteNearest(const Coordinates & base, std::int64_t row, std::int64_t first, std::int64_t n, std::int64_t z,
              const std::uint8_t * features, const std::int32_t * last, const T * out, std::int64_t * nearest) const
  {
    const std::int64_t step = m_Rows.GetIndexStep(m_Scan);
    std::int64_t       index = m_Rows.GetIndex(base, 0, row, first);
    for (std::int64_t i = 0; i < n; ++i, index += m_Rows.GetIndexStepOfColumns())
    {
      const std::int64_t before = features[i] != 0 ? 0 : z - last[i];
      const auto         behind = static_cast<std::int64_t>(out[i]);
      const std::int64_t nearer = std::min(before, behind);
      nearest[i] =
        nearer >= -std::int64_t{ NoneBefore } ? -1 : index + (before <= behind ? z - before : z + behind) * step;
    }
  }

  void
  Columns(const Coordinates & base, std::int64_t z, T * numbers, std::int64_t * nearest, std::int64_t first,
          std::int64_t lanes, unsigned int worker)
  {
    if (m_Scratch.rows == 1)
    {
      return;
    }
    const std::int64_t count = std::min(lanes, m_Scratch.columns - first);
    auto * const       parabolas = this->OfWorker<DistanceParabola<T>>(worker, m_Scratch.parabolas);
    if (!nearest && m_Operation.to != DistanceTo::Others)
    {
      m_Functions.columns(
        numbers + first, m_Scratch.columns, count, m_OfColumns, this->OfWorker<T>(worker, m_Scratch.tile), parabolas);
      return;
    }
    for (std::int64_t x = first; x < first + count; ++x)
    {
      this->Line(base, z, x, true, numbers + x, nearest ? nearest + x : nullptr, worker);
    }
  }

  /** Minima along a line, the slow way: with the nearest feature, or within runs of equal voxels. */
  void
  Line(const Coordinates & base, std::int64_t z, std::int64_t number, bool isColumn, T * numbers,
       std::int64_t * nearest, unsigned int worker)
  {
    const DistanceAxis<T> & axis = isColumn ? m_OfColumns : m_OfRows;
    const std::int64_t      stride = isColumn ? m_Scratch.columns : 1;
    auto * const            parabolas = this->OfWorker<DistanceParabola<T>>(worker, m_Scratch.parabolas);
    T * const               values = this->OfWorker<T>(worker, m_Scratch.values);
    for (std::int64_t i = 0; i < axis.length; ++i)
    {
      values[i] = numbers[i * stride];
    }
    if (nearest)
    {
      std::int64_t * const indices = this->OfWorker<std::int64_t>(worker, m_Scratch.indices);
      for (std::int64_t i = 0; i < axis.length; ++i)
      {
        indices[i] = nearest[i * stride];
      }
      MinimizeNearest(values, indices, axis, numbers, nearest, stride, parabolas);
      return;
    }
    std::int64_t begin = 0;
    while (begin < axis.length)
    {
      const std::int64_t end = m_Rows.EndOfRun(base, z, number, isColumn, begin);
      MinimizeRun(values, begin, end, axis, numbers, stride, parabolas);
      begin = end;
    }
  }

  void
  Row(const Coordinates & base, std::int64_t z, std::int64_t row, T * slice, std::int64_t * nearest,
      std::int64_t volume, const void * sides, unsigned int worker)
  {
    T * const            numbers = slice + row * m_Scratch.columns;
    std::int64_t * const indices = nearest ? nearest + row * m_Scratch.columns : nullptr;
    if (m_Scratch.columns > 1)
    {
      if (!nearest && m_Operation.to != DistanceTo::Others)
      {
        m_Functions.row(numbers,
                        m_OfRows,
                        this->OfWorker<T>(worker, m_Scratch.line),
                        this->OfWorker<DistanceParabola<T>>(worker, m_Scratch.parabolas));
      }
      else
      {
        this->Line(base, z, row, false, numbers, indices, worker);
      }
    }
    m_Rows.Store(
      base, z, row, numbers, indices, m_Beyond, sides, volume, this->OfWorker<std::uint8_t>(worker, m_Scratch.marks));
  }

  const KernelCall &           m_Call;
  const DistanceOperation &    m_Operation;
  const DistanceFunctions<T> & m_Functions;
  const DistanceScratch        m_Scratch;
  const DistanceRows           m_Rows;
  const DistancePlanes         m_Planes;
  const int                    m_Scan;
  const std::int64_t           m_Begin;
  const std::int64_t           m_End;
  T                            m_Beyond;
  DistanceAxis<T>              m_OfRows;
  DistanceAxis<T>              m_OfColumns;
  DistanceAxis<T>              m_OfScan;
};

std::size_t
NumberBytesOf(const DistanceOperation & operation)
{
  return operation.GetNumber() == DistanceNumber::Int32 ? 4 : 8;
}

std::size_t
DistanceScratchBytes(const Operation & operation, const ChunkShape & shape)
{
  const auto & distance = static_cast<const DistanceOperation &>(operation);
  return DistanceScratch(distance, shape.outputBox, shape.concurrency, NumberBytesOf(distance)).bytes;
}

/** The cost in bytes of memory traffic. */
double
DistanceCost(const Operation & operation, const ChunkShape & shape)
{
  const bool isSlow = static_cast<const DistanceOperation &>(operation).KeepsNearest();
  return static_cast<double>(shape.outputBox.NumberOfVoxels()) *
         (static_cast<double>(2 * PixelSize(shape.inputKinds[0]) + PixelSize(shape.outputKind)) +
          (isSlow ? 160.0 : 40.0));
}

void
RunDistance(const KernelCall & call, const void * sides)
{
  const auto & operation = static_cast<const DistanceOperation &>(*call.operation);
  if (call.writable.IsEmpty())
  {
    return;
  }
  const DistanceScratch scratch(
    operation, call.writable, static_cast<int>(call.executor->GetConcurrency()), NumberBytesOf(operation));
  switch (operation.GetNumber())
  {
    case DistanceNumber::Int32:
      ChunkDistances<std::int32_t>(call, scratch).Run(sides);
      break;
    case DistanceNumber::Int64:
      ChunkDistances<std::int64_t>(call, scratch).Run(sides);
      break;
    default:
      ChunkDistances<double>(call, scratch).Run(sides);
  }
}

/** The first and the last feature of each column of a chunk. */
void
SummarizeDistance(const KernelCall & call)
{
  const auto &          operation = static_cast<const DistanceOperation &>(*call.operation);
  const DistanceRows    rows(call);
  const DistancePlanes  planes = operation.GetPlanes(call.writable);
  const DistanceScratch scratch(
    operation, call.writable, static_cast<int>(call.executor->GetConcurrency()), NumberBytesOf(operation));
  auto * const       out = static_cast<unsigned char *>(call.sideOut);
  const int          scan = operation.GetScanAxis();
  const std::int64_t pieces = (scratch.columns + DistancePiece - 1) / DistancePiece;
  call.executor->ParallelFor(
    planes.columns / scratch.plane * scratch.rows * pieces, [&](std::int64_t task, unsigned int worker) {
      const std::int64_t    lineNumber = task / pieces;
      const std::int64_t    first = task % pieces * DistancePiece;
      const std::int64_t    n = std::min(DistancePiece, scratch.columns - first);
      const Coordinates     base = rows.BaseOf(lineNumber / scratch.rows);
      const std::int64_t    row = lineNumber % scratch.rows;
      unsigned char * const memory =
        static_cast<unsigned char *>(call.scratch) + static_cast<std::size_t>(worker) * scratch.workerBytes;
      std::uint8_t * const features = memory + scratch.features;
      auto * const         firstOnes = reinterpret_cast<std::int32_t *>(out) + lineNumber * scratch.columns + first;
      auto * const         lastOnes =
        reinterpret_cast<std::int32_t *>(out + planes.SideBytes()) + lineNumber * scratch.columns + first;
      std::fill_n(firstOnes, n, -1);
      std::fill_n(lastOnes, n, -1);
      for (std::int64_t z = call.writable.lower[scan];
           z < call.writable.upper[scan] && !(call.control && call.control->ShouldStop());
           ++z)
      {
        rows.GetFeatures(base, z, row, first, n, features, memory + scratch.marks);
        for (std::int64_t i = 0; i < n; ++i)
        {
          const auto position = static_cast<std::int32_t>(z);
          firstOnes[i] = features[i] != 0 && firstOnes[i] < 0 ? position : firstOnes[i];
          lastOnes[i] = features[i] != 0 ? position : lastOnes[i];
        }
      }
      for (int side = 0; side < 2 && planes.hasValues; ++side)
      {
        auto * const values = reinterpret_cast<std::uint64_t *>(
                                out + static_cast<std::size_t>(side) * planes.SideBytes() + planes.ValuesOffset()) +
                              lineNumber * scratch.columns + first;
        const std::int32_t * const positions = side == 0 ? firstOnes : lastOnes;
        for (std::int64_t i = 0; i < n; ++i)
        {
          values[i] = positions[i] < 0 ? 0 : rows.GetBits(base, positions[i], row, first + i);
        }
      }
    });
}

} // namespace

void
RegisterHostDistance(KernelRegistry & registry)
{
  KernelSet kernels;
  Kernel    kernel;
  kernel.scratchBytes = DistanceScratchBytes;
  kernel.cost = DistanceCost;
  kernel.run = SummarizeDistance;
  kernels.summarize = kernel;
  kernel.run = [](const KernelCall & call) {
    const auto & outside = static_cast<const DistanceOperation &>(*call.operation).outside;
    RunDistance(call, outside ? outside->data() : nullptr);
  };
  kernels.alone = kernel;
  kernel.run = [](const KernelCall & call) { RunDistance(call, call.sideIn); };
  kernels.compute = kernel;
  registry.Register("distance", kernels);
}

} // namespace chunkwise
