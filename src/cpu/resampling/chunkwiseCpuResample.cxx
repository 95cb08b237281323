/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvertVoxels.h"
#include "chunkwiseCpuLevels.h"
#include "chunkwiseCpuResampleRows.h"
#include "chunkwiseCpuRowStore.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseRegions.h"
#include "chunkwiseResamplePoints.h"
#include "chunkwiseStridedVoxels.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(ResampleLevel, MakeResampleLevel)

namespace
{

constexpr int ResampleAxes = ResampleOperation::Axes;
/** Numbers of a tile's planes, or of the box that it reads, that the caches of a core hold. */
constexpr std::int64_t NumbersOfTile = 64 * 1024;
/** Columns that are filtered together. */
constexpr std::int64_t SplineColumns = 64;
/** Offsets of voxels are 32-bit numbers. */
constexpr std::int64_t FarthestIndex = std::int64_t{ 1 } << 30;
/** Registers may be stored beyond a row's end. */
constexpr std::int64_t ResampleSlack = 32;

template <typename TReal>
const ResampleFunctions<TReal> &
GetResampleFunctions()
{
  static FunctionsAtLevels<ResampleLevel> levels{ CHUNKWISE_AT_LEVELS(MakeResampleLevel) };
  if constexpr (sizeof(TReal) == sizeof(float))
  {
    return levels.Get().float32;
  }
  else
  {
    return levels.Get().float64;
  }
}

/** Memory of a worker, taken piece by piece. */
class ResamplePieces
{
public:
  explicit ResamplePieces(void * memory)
    : m_Next(static_cast<unsigned char *>(memory))
  {}
  template <typename T>
  T *
  Take(std::int64_t count)
  {
    void * const piece = m_Next;
    m_Next += RoundToLine(count * static_cast<std::int64_t>(sizeof(T)));
    m_Bytes += RoundToLine(count * static_cast<std::int64_t>(sizeof(T)));
    return static_cast<T *>(piece);
  }
  std::int64_t
  GetBytes() const
  {
    return m_Bytes;
  }

private:
  unsigned char * m_Next;
  std::int64_t    m_Bytes{ 0 };
};

/** The parameters that all tiles of an operation share. */
struct ResampleTiles
{
  explicit ResampleTiles(const ResampleOperation & theOperation)
    : operation(theOperation)
    , axes{ theOperation.GetAxis(0), theOperation.GetAxis(1), theOperation.GetAxis(2) }
    , edges{ { axes[0], theOperation.outside }, { axes[1], theOperation.outside }, { axes[2], theOperation.outside } }
    , isDiagonal(theOperation.IsDiagonal())
  {
    isFiltered = axes[0].isFiltered || axes[1].isFiltered || axes[2].isFiltered;
    const bool isFlat = operation.output[operation.axes[2]] == 1;
    extent = isDiagonal               ? Coordinates{ { 256, 16, 16, 1, 1 } }
             : theOperation.points[0] ? Coordinates{ { 4096, 1, 1, 1, 1 } }
                                      : Coordinates{ { isFlat ? 64 : 32, isFlat ? 64 : 32, 16, 1, 1 } };
    for (int o = 0; o < ResampleAxes; ++o)
    {
      extent[o] = std::min(extent[o], operation.output[operation.axes[o]]);
    }
    while (!operation.HasOwnPoints() && this->CountNumbers() > NumbersOfTile)
    {
      int longest = 0;
      for (int o = 1; o < ResampleAxes; ++o)
      {
        // Rows are shortened last.
        longest = extent[o] > (longest == 0 ? extent[0] / 4 : extent[longest]) ? o : longest;
      }
      if (extent[longest] == 1)
      {
        break;
      }
      extent[longest] = (extent[longest] + 1) / 2;
    }
  }

  /** The most voxels of the image along an axis that a tile reads. */
  std::int64_t
  CountRead(int i) const
  {
    double steps = 0;
    for (int o = 0; o < ResampleAxes; ++o)
    {
      steps += std::abs(operation.matrix[i][o]) * static_cast<double>(extent[o] - 1);
    }
    return static_cast<std::int64_t>(std::ceil(steps)) + axes[i].taps + 2;
  }
  std::int64_t
  CountNumbers() const
  {
    return isDiagonal ? this->CountRead(0) + this->CountRead(1) * extent[0] + this->CountRead(2) * extent[0] * extent[1]
                      : this->CountRead(0) * this->CountRead(1) * this->CountRead(2);
  }

  /** The box of the image that voxels of the output read along `axes`: as the first three axes. */
  Box
  GetReadBox(const Box & part) const
  {
    Box box{ {}, Coordinates::Filled(1) };
    for (int i = 0; i < ResampleAxes; ++i)
    {
      Coordinates first{};
      Coordinates last{};
      for (int o = 0; o < ResampleAxes; ++o)
      {
        const bool rises = operation.matrix[i][o] >= 0;
        first[o] = rises ? part.lower[operation.axes[o]] : part.upper[operation.axes[o]] - 1;
        last[o] = rises ? part.upper[operation.axes[o]] - 1 : part.lower[operation.axes[o]];
      }
      box.lower[i] = FirstTap(axes[i], edges[i].Move(PointOf(operation, i, first)));
      box.upper[i] = FirstTap(axes[i], edges[i].Move(PointOf(operation, i, last))) + axes[i].taps;
    }
    return box;
  }

  /** The extent of tiles of the output. */
  Coordinates
  GetTile() const
  {
    Coordinates tile = Coordinates::Filled(1);
    for (int o = 0; o < ResampleAxes; ++o)
    {
      tile[operation.axes[o]] = extent[o];
    }
    return tile;
  }

  const ResampleOperation & operation;
  ResampleOperation::Axis   axes[ResampleAxes];
  ResampleEdge              edges[ResampleAxes];
  Coordinates               extent{}; ///< of a tile of the output, along `axes`
  bool                      isDiagonal;
  bool                      isFiltered{ false };
};

/** Taps of all voxels of a tile along an axis. */
template <typename TReal>
struct ResampleTable
{
  std::int32_t * first{ nullptr };
  bool *         hasValue{ nullptr };
  TReal *        weights{ nullptr };
};

/** The memory of a worker. Without memory it says how much it takes. */
template <typename TReal>
struct ResampleWorker
{
  ResampleWorker(void * memory, const ResampleTiles & tiles, const Coordinates & read)
  {
    ResamplePieces pieces(memory);
    if (tiles.isFiltered)
    {
      constexpr std::int64_t both = 2 * ResampleOperation::SplineRadius;
      const std::int64_t     longest = std::max(read[1], read[2]) + both;
      line = pieces.Take<TReal>(std::max(read[0] + both, longest * SplineColumns) + ResampleSlack);
      // Filtering is done when tiles begin.
      pieces = ResamplePieces(memory);
      filterBytes = RoundToLine((std::max(read[0] + both, longest * SplineColumns) + ResampleSlack) *
                                static_cast<std::int64_t>(sizeof(TReal)));
    }
    const Coordinates & t = tiles.extent;
    result = pieces.Take<TReal>(std::max(t[0], ResampleRow) + ResampleSlack);
    if (tiles.operation.HasOwnPoints())
    {
      row = pieces.Take<TReal>(tiles.axes[0].taps);
      index = pieces.Take<std::int32_t>(ResampleRow);
      for (int i = 0; i < ResampleAxes; ++i)
      {
        tables[i].weights = pieces.Take<TReal>(tiles.axes[i].taps);
        together[i] = pieces.Take<TReal>(tiles.axes[i].taps * ResampleRow);
      }
    }
    else if (tiles.isDiagonal)
    {
      row = pieces.Take<TReal>(tiles.CountRead(0) + ResampleSlack);
      plane = pieces.Take<TReal>(tiles.CountRead(1) * t[0] + ResampleSlack);
      planes = pieces.Take<TReal>(tiles.CountRead(2) * t[0] * t[1] + ResampleSlack);
      rows = pieces.Take<const TReal *>(std::max(tiles.axes[1].taps, tiles.axes[2].taps));
      for (int i = 0; i < ResampleAxes; ++i)
      {
        tables[i].first = pieces.Take<std::int32_t>(t[i] + ResampleSlack);
        tables[i].hasValue = pieces.Take<bool>(t[i]);
        tables[i].weights = pieces.Take<TReal>(t[i] * tiles.axes[i].taps);
      }
    }
    else
    {
      planes = pieces.Take<TReal>(tiles.CountRead(0) * tiles.CountRead(1) * tiles.CountRead(2) + ResampleSlack);
      index = pieces.Take<std::int32_t>(ResampleRow);
      for (int i = 0; i < ResampleAxes; ++i)
      {
        tables[i].weights = pieces.Take<TReal>(tiles.axes[i].taps * ResampleRow);
      }
    }
    bytes = std::max(pieces.GetBytes(), filterBytes);
  }

  TReal *              line{ nullptr };
  TReal *              result{ nullptr };
  TReal *              row{ nullptr };
  TReal *              plane{ nullptr };
  TReal *              planes{ nullptr };
  const TReal **       rows{ nullptr };
  std::int32_t *       index{ nullptr };
  ResampleTable<TReal> tables[ResampleAxes];
  TReal *              together[ResampleAxes]{}; ///< weights of points that a field moves
  std::int64_t         filterBytes{ 0 };
  std::int64_t         bytes{ 0 };
};

template <typename TReal>
using LoadResampleRow = void (*)(TReal * to, const void * from, std::int64_t offset, std::int64_t stride,
                                 std::int64_t n);

template <typename TReal>
LoadResampleRow<TReal>
LoadResampleRowOf(PixelType kind)
{
  return DispatchPixelType(kind, [](auto pixel) -> LoadResampleRow<TReal> {
    return [](TReal * to, const void * from, std::int64_t offset, std::int64_t stride, std::int64_t n) {
      const auto * const voxels = static_cast<const decltype(pixel) *>(from) + offset;
      WithStride(stride, [&](auto step) {
        for (std::int64_t x = 0; x < n; ++x)
        {
          to[x] = static_cast<TReal>(voxels[x * step]);
        }
      });
    };
  });
}

/** Rows of an image that goes on beyond its edge. */
template <typename TReal>
class ResampleSource
{
public:
  ResampleSource(const BufferView & view, const ResampleTiles & tiles)
    : m_View(view)
    , m_Tiles(tiles)
    , m_Load(LoadResampleRowOf<TReal>(view.kind))
    , m_Beyond(tiles.operation.value.As<TReal>())
  {}

  /** Voxels [begin, end) of the row at index `at` of all axes, of which y and z may be beyond the image. */
  void
  Load(TReal * to, std::int64_t begin, std::int64_t end, std::int64_t y, std::int64_t z, Coordinates at) const
  {
    at[m_Tiles.operation.axes[1]] = this->Map(1, y);
    at[m_Tiles.operation.axes[2]] = this->Map(2, z);
    if (at[m_Tiles.operation.axes[1]] < 0 || at[m_Tiles.operation.axes[2]] < 0)
    {
      std::fill(to, to + (end - begin), m_Beyond);
      return;
    }
    at[0] = m_View.box.lower[0];
    const std::int64_t offset = m_View.Offset(at);
    const std::int64_t stride = m_View.stride[0];
    const std::int64_t first = std::min(std::max(begin, m_View.box.lower[0]), end);
    const std::int64_t last = std::max(std::min(end, m_View.box.upper[0]), first);
    for (std::int64_t x = begin; x < end; x = x + 1 == first ? last : x + 1)
    {
      if (x >= first && x < last)
      {
        x = last;
      }
      if (x >= end)
      {
        break;
      }
      const std::int64_t voxel = this->Map(0, x);
      to[x - begin] = m_Beyond;
      if (voxel >= 0)
      {
        m_Load(to + (x - begin), m_View.data, offset + (voxel - m_View.box.lower[0]) * stride, stride, 1);
      }
    }
    m_Load(to + (first - begin), m_View.data, offset + (first - m_View.box.lower[0]) * stride, stride, last - first);
  }

  /** Voxel `box.lower` of the axes, if the image has all of the box as it is to be read, and the distances of voxels;
   * else nullptr. */
  const TReal *
  Find(const Box & box, Coordinates at, std::int64_t (&strides)[ResampleAxes]) const
  {
    const int *  axes = m_Tiles.operation.axes;
    bool         isThere = m_View.kind == PixelTypeOf<TReal>() && m_View.stride[0] == 1;
    std::int64_t reach = 0;
    for (int i = 0; i < ResampleAxes; ++i)
    {
      isThere = isThere && box.lower[i] >= m_View.box.lower[axes[i]] && box.upper[i] <= m_View.box.upper[axes[i]];
      reach += std::abs(m_View.stride[axes[i]]) * box.Extent(i);
      at[axes[i]] = box.lower[i];
    }
    if (!isThere || reach > FarthestIndex)
    {
      return nullptr;
    }
    for (int i = 0; i < ResampleAxes; ++i)
    {
      strides[i] = m_View.stride[axes[i]];
    }
    return static_cast<const TReal *>(m_View.data) + m_View.Offset(at);
  }

  /** One more than the offset of voxel `first` of the axes, and the distances of voxels, if all taps from there on are
   * there; else 0. */
  std::int64_t
  FindInside(const std::int64_t (&first)[ResampleAxes], Coordinates at, std::int64_t (&strides)[ResampleAxes]) const
  {
    for (int i = 0; i < ResampleAxes; ++i)
    {
      const int a = m_Tiles.operation.axes[i];
      if (first[i] < m_View.box.lower[a] || first[i] + m_Tiles.axes[i].taps > m_View.box.upper[a])
      {
        return 0;
      }
      at[a] = first[i];
      strides[i] = m_View.stride[a];
    }
    return m_View.Offset(at) + 1;
  }

  /** The voxel from which the taps of points are counted, and which of them are there; nullptr if functions for rows
   * cannot read voxels as they are. `point`: one of the points. */
  const TReal *
  FindOrigin(Coordinates at, const double (&point)[ResampleAxes], ResampleLine<TReal> * lines) const
  {
    if (m_View.kind != PixelTypeOf<TReal>() || m_View.stride[m_Tiles.operation.axes[0]] != 1)
    {
      return nullptr;
    }
    std::int64_t reach = 0;
    for (int i = 0; i < ResampleAxes; ++i)
    {
      const int a = m_Tiles.operation.axes[i];
      reach += std::abs(m_View.stride[a]) * m_View.box.Extent(a);
    }
    for (int i = 0; i < ResampleAxes; ++i)
    {
      const int             a = m_Tiles.operation.axes[i];
      ResampleLine<TReal> & line = lines[i];
      line.stride = m_View.stride[a];
      line.tile = line.from = m_View.box.lower[a];
      line.to = m_View.box.upper[a] - line.taps;
      if (reach > FarthestIndex)
      {
        // Around the point, as far as the offset of a voxel is a 32-bit number.
        const std::int64_t far = FarthestIndex / (4 * std::max<std::int64_t>(std::abs(line.stride), 1));
        const bool isInside = point[i] >= static_cast<double>(line.from) && point[i] <= static_cast<double>(line.to);
        line.tile = isInside ? static_cast<std::int64_t>(point[i]) : line.from;
        line.from = std::max(line.from, line.tile - far);
        line.to = std::min(line.to, line.tile + far);
      }
      at[a] = line.tile;
    }
    return static_cast<const TReal *>(m_View.data) + m_View.Offset(at);
  }

  /** Voxels of a row whose begin FindInside gave. */
  void
  LoadInside(TReal * to, std::int64_t inside, std::int64_t n) const
  {
    m_Load(to, m_View.data, inside - 1, m_View.stride[0], n);
  }

  /** The voxel along one of the axes whose value stands at `i`; -1: none. */
  std::int64_t
  Map(int axis, std::int64_t i) const
  {
    const int          a = m_Tiles.operation.axes[axis];
    const bool         isSpline = m_Tiles.axes[axis].kernel == TapKernel::Spline;
    const std::int64_t voxel = MapVoxel(i, m_Tiles.axes[axis].length, m_Tiles.operation.outside, isSpline);
    return voxel < 0 ? -1 : std::min(std::max(voxel, m_View.box.lower[a]), m_View.box.upper[a] - 1);
  }

private:
  const BufferView &           m_View;
  const ResampleTiles &        m_Tiles;
  const LoadResampleRow<TReal> m_Load;
  const TReal                  m_Beyond;
};

/** The points of voxels of a row of the output, the first at `voxel`. */
void
PointsOfRow(const ResampleOperation & operation, Coordinates voxel, std::int64_t n,
            double (&points)[ResampleAxes][ResampleRow])
{
  for (int i = 0; i < ResampleAxes && !operation.field; ++i)
  {
    const double * const own = operation.points[i];
    const double * const m = operation.matrix[i];
    // As PointOf.
    const double base =
      m[1] * static_cast<double>(voxel[1]) + (m[2] * static_cast<double>(voxel[2]) + operation.offset[i]);
    for (std::int64_t j = 0; j < n; ++j)
    {
      points[i][j] = operation.points[0] ? (own ? own[voxel[0] + j] + operation.offset[i] : 0)
                                         : m[0] * static_cast<double>(voxel[0] + j) + base;
    }
  }
  for (std::int64_t j = 0; operation.field && j < n; ++j, ++voxel[0])
  {
    double point[ResampleAxes];
    PointsOf(operation, voxel, point);
    for (int i = 0; i < ResampleAxes; ++i)
    {
      points[i][j] = point[i];
    }
  }
}

/** Whether a voxel can be found for a coordinate of a point along an axis, which may be moved to one that has the same
 * value. */
bool
HasPlace(const ResampleOperation & operation, int i, double & point)
{
  if (std::abs(point) <= FarthestPoint)
  {
    return true;
  }
  if (operation.outside == ResampleOutside::Nearest || operation.outside == ResampleOutside::Renormalized)
  {
    // NaN stays.
    point = std::max(std::min(point, FarthestPoint), -FarthestPoint);
  }
  else if (operation.outside >= ResampleOutside::Mirror && std::isfinite(point))
  {
    const std::int64_t n = operation.image[operation.axes[i]];
    const std::int64_t period = operation.outside == ResampleOutside::GridWrap  ? n
                                : operation.outside == ResampleOutside::Reflect ? 2 * n
                                                                                : std::max<std::int64_t>(2 * n - 2, 1);
    point = std::fmod(point, static_cast<double>(period));
  }
  return std::abs(point) <= FarthestPoint;
}

bool
HasPlace(const ResampleOperation & operation, double (&point)[ResampleAxes])
{
  return HasPlace(operation, 0, point[0]) && HasPlace(operation, 1, point[1]) && HasPlace(operation, 2, point[2]);
}

bool
ShouldStop(const KernelCall & call)
{
  return call.control && call.control->ShouldStop();
}

/** Coefficients of splines in the place of voxels. */
template <typename TReal>
class SplineFilter
{
public:
  SplineFilter(const KernelCall & call, const ResampleTiles & tiles, const BufferView & coefficients,
               unsigned char * memory, std::int64_t bytes)
    : m_Call(call)
    , m_Tiles(tiles)
    , m_To(coefficients)
    , m_Memory(memory)
    , m_Bytes(bytes)
  {}

  void
  Run()
  {
    this->Load();
    for (int i = 1; i < ResampleAxes; ++i)
    {
      if (m_Tiles.axes[i].isFiltered)
      {
        this->FilterColumns(i);
      }
    }
  }

private:
  static constexpr std::int64_t Radius = SplineRadiusOf<TReal>;

  TReal *
  GetLine(unsigned int worker) const
  {
    return reinterpret_cast<TReal *>(m_Memory + static_cast<std::int64_t>(worker) * m_Bytes);
  }
  TReal *
  At(const Coordinates & index) const
  {
    return static_cast<TReal *>(m_To.data) + m_To.Offset(index);
  }

  /** Rows, filtered along x. */
  void
  Load() const
  {
    const auto                  load = LoadResampleRowOf<TReal>(m_Call.inputs[0].kind);
    const BufferView &          from = m_Call.inputs[0];
    const ResampleSource<TReal> source(m_To, m_Tiles);
    const std::int64_t          n = m_To.box.Extent(0);
    const Box                   rows = { m_To.box.lower, m_To.box.upper };
    Coordinates                 tile = Coordinates::Filled(1);
    tile[0] = n;
    tile[1] = 16;
    m_Call.executor->ParallelFor(CountTiles(rows, tile), [&](std::int64_t task, unsigned int worker) {
      if (ShouldStop(m_Call))
      {
        return;
      }
      TReal * const line = this->GetLine(worker) + Radius;
      ForEachRow(TileNumber(rows, tile, task), [&](const Coordinates & at) {
        if (!m_Tiles.axes[0].isFiltered)
        {
          load(this->At(at), from.data, from.Offset(at), from.stride[0], n);
          return;
        }
        load(line, from.data, from.Offset(at), from.stride[0], n);
        for (std::int64_t k = 1; k <= Radius; ++k)
        {
          line[-k] = line[source.Map(0, m_To.box.lower[0] - k) - m_To.box.lower[0]];
          line[n - 1 + k] = line[source.Map(0, m_To.box.upper[0] - 1 + k) - m_To.box.lower[0]];
        }
        m_Functions.filter(this->At(at), line, 1, m_Sums, n);
      });
    });
  }

  void
  FilterColumns(int i) const
  {
    const int                   axis = m_Tiles.operation.axes[i];
    const ResampleSource<TReal> source(m_To, m_Tiles);
    const std::int64_t          n = m_To.box.Extent(axis);
    const std::int64_t          stride = m_To.stride[axis];
    Coordinates                 tile = Coordinates::Filled(1);
    tile[0] = SplineColumns;
    tile[axis] = n;
    m_Call.executor->ParallelFor(CountTiles(m_To.box, tile), [&](std::int64_t task, unsigned int worker) {
      if (ShouldStop(m_Call))
      {
        return;
      }
      const Box     box = TileNumber(m_To.box, tile, task);
      const auto    columns = static_cast<std::size_t>(box.Extent(0));
      TReal * const first = this->At(box.lower);
      TReal * const lines = this->GetLine(worker) + Radius * SplineColumns;
      for (std::int64_t k = -Radius; k < n + Radius; ++k)
      {
        const std::int64_t from = k >= 0 && k < n ? k : source.Map(i, box.lower[axis] + k) - box.lower[axis];
        std::memcpy(lines + k * SplineColumns, first + from * stride, columns * sizeof(TReal));
      }
      for (std::int64_t k = 0; k < n; ++k)
      {
        m_Functions.filter(first + k * stride, lines + k * SplineColumns, SplineColumns, m_Sums, box.Extent(0));
      }
    });
  }

  const KernelCall &               m_Call;
  const ResampleTiles &            m_Tiles;
  const BufferView                 m_To;
  unsigned char * const            m_Memory;
  const std::int64_t               m_Bytes;
  const SplineSums<TReal>          m_Sums;
  const ResampleFunctions<TReal> & m_Functions{ GetResampleFunctions<TReal>() };
};

/** Interpolates tiles of the output. */
template <typename TReal>
class TileResampler
{
public:
  TileResampler(const KernelCall & call, const ResampleTiles & tiles, const BufferView & source)
    : m_Call(call)
    , m_Tiles(tiles)
    , m_Operation(tiles.operation)
    , m_Source(source, tiles)
    , m_Store(RowStoreOf<TReal>(call.output.kind))
    , m_Value(tiles.operation.value.As<TReal>())
  {}

  /** A pass along each axis; along x for each row that is read. */
  void
  RunPasses(const Box & tile, ResampleWorker<TReal> & worker) const
  {
    const Box          read = m_Tiles.GetReadBox(tile);
    const std::int64_t n[ResampleAxes] = { tile.Extent(m_Operation.axes[0]),
                                           tile.Extent(m_Operation.axes[1]),
                                           tile.Extent(m_Operation.axes[2]) };
    for (int i = 0; i < ResampleAxes; ++i)
    {
      this->FillTable(i, tile, read.lower[i], n[i], worker.tables[i]);
    }
    const ResampleOperation::Axis & alongX = m_Tiles.axes[0];
    const ResampleOperation::Axis & alongY = m_Tiles.axes[1];
    const ResampleOperation::Axis & alongZ = m_Tiles.axes[2];
    for (std::int64_t z = 0; z < read.Extent(2); ++z)
    {
      for (std::int64_t y = 0; y < read.Extent(1); ++y)
      {
        m_Source.Load(worker.row, read.lower[0], read.upper[0], read.lower[1] + y, read.lower[2] + z, tile.lower);
        m_Functions.along(worker.plane + y * n[0],
                          worker.row,
                          worker.tables[0].first,
                          worker.tables[0].weights,
                          n[0],
                          alongX.taps,
                          alongX.below,
                          n[0]);
      }
      for (std::int64_t y = 0; y < n[1]; ++y)
      {
        for (std::int64_t k = 0; k < alongY.taps; ++k)
        {
          worker.rows[k] = worker.plane + (worker.tables[1].first[y] + k) * n[0];
        }
        m_Functions.across(worker.planes + (z * n[1] + y) * n[0],
                           worker.rows,
                           worker.tables[1].weights + y * alongY.taps,
                           alongY.taps,
                           alongY.below,
                           n[0]);
      }
    }
    Coordinates at = tile.lower;
    for (std::int64_t z = 0; z < n[2]; ++z)
    {
      at[m_Operation.axes[2]] = tile.lower[m_Operation.axes[2]] + z;
      for (std::int64_t y = 0; y < n[1]; ++y)
      {
        at[m_Operation.axes[1]] = tile.lower[m_Operation.axes[1]] + y;
        for (std::int64_t k = 0; k < alongZ.taps; ++k)
        {
          worker.rows[k] = worker.planes + ((worker.tables[2].first[z] + k) * n[1] + y) * n[0];
        }
        m_Functions.across(
          worker.result, worker.rows, worker.tables[2].weights + z * alongZ.taps, alongZ.taps, alongZ.below, n[0]);
        const bool all = worker.tables[1].hasValue[y] || worker.tables[2].hasValue[z];
        for (std::int64_t x = 0; x < n[0]; ++x)
        {
          worker.result[x] = all || worker.tables[0].hasValue[x] ? m_Value : worker.result[x];
        }
        m_Store(m_Call.output, at, n[0], worker.result);
      }
    }
  }

  /** Voxel by voxel. */
  void
  RunGathers(const Box & tile, ResampleWorker<TReal> & worker) const
  {
    const Box          read = m_Tiles.GetReadBox(tile);
    const std::int64_t rowLength = read.Extent(0);
    const std::int64_t planeLength = rowLength * read.Extent(1);
    std::int64_t       strides[ResampleAxes] = { 1, rowLength, planeLength };
    const TReal *      voxels = m_Source.Find(read, tile.lower, strides);
    if (!voxels)
    {
      for (std::int64_t z = read.lower[2]; z < read.upper[2]; ++z)
      {
        for (std::int64_t y = read.lower[1]; y < read.upper[1]; ++y)
        {
          m_Source.Load(worker.planes + (z - read.lower[2]) * planeLength + (y - read.lower[1]) * rowLength,
                        read.lower[0],
                        read.upper[0],
                        y,
                        z,
                        tile.lower);
        }
      }
      voxels = worker.planes;
    }
    ResampleLine<TReal> lines[ResampleAxes];
    for (int i = 0; i < ResampleAxes; ++i)
    {
      lines[i].slope = m_Operation.matrix[i][0];
      lines[i].lowest = m_Tiles.edges[i].lowest;
      lines[i].highest = m_Tiles.edges[i].highest;
      lines[i].tile = read.lower[i];
      lines[i].stride = strides[i];
      lines[i].weights = worker.tables[i].weights;
      lines[i].taps = m_Tiles.axes[i].taps;
      lines[i].below = m_Tiles.axes[i].below;
      std::fill(lines[i].weights, lines[i].weights + lines[i].taps * ResampleRow, TReal(0));
    }
    ForEachRow(tile, [&](const Coordinates & start) {
      for (std::int64_t done = 0; done < tile.Extent(0); done += ResampleRow)
      {
        const std::int64_t n = std::min(ResampleRow, tile.Extent(0) - done);
        Coordinates        at = start;
        at[0] += done;
        std::fill(worker.index, worker.index + ResampleRow, 0);
        for (int i = 0; i < ResampleAxes; ++i)
        {
          this->FindTaps(i, at, n, lines[i], worker.index);
        }
        m_Functions.gather(worker.result, voxels, worker.index, lines, n);
        this->SetValue(lines, n, worker.result);
        m_Store(m_Call.output, at, n, worker.result);
      }
    });
  }

  /** Voxel by voxel, at points that do not lie on a line. */
  void
  RunPoints(const Box & tile, ResampleWorker<TReal> & worker) const
  {
    double              points[ResampleAxes][ResampleRow];
    unsigned char       isAlone[ResampleRow];
    ResampleLine<TReal> lines[ResampleAxes];
    for (int i = 0; i < ResampleAxes; ++i)
    {
      lines[i].points = points[i];
      lines[i].isAlone = isAlone;
      lines[i].valueBelow = m_Tiles.edges[i].valueBelow;
      lines[i].valueFrom = m_Tiles.edges[i].valueFrom;
      lines[i].lowest = m_Tiles.edges[i].lowest;
      lines[i].highest = m_Tiles.edges[i].highest;
      lines[i].weights = worker.together[i];
      lines[i].taps = m_Tiles.axes[i].taps;
      lines[i].below = m_Tiles.axes[i].below;
      std::fill(lines[i].weights, lines[i].weights + lines[i].taps * ResampleRow, TReal(0));
    }
    ForEachRow(tile, [&](const Coordinates & start) {
      for (std::int64_t done = 0; done < tile.Extent(0); done += ResampleRow)
      {
        const std::int64_t n = std::min(ResampleRow, tile.Extent(0) - done);
        Coordinates        first = start;
        first[0] += done;
        PointsOfRow(m_Operation, this->VoxelOf(first), n, points);
        const auto pointAt = [&points](std::int64_t j, double(&point)[ResampleAxes]) {
          for (int i = 0; i < ResampleAxes; ++i)
          {
            point[i] = points[i][j];
          }
        };
        double point[ResampleAxes];
        pointAt(0, point);
        const TReal * const origin = m_Source.FindOrigin(first, point, lines);
        std::fill(isAlone, isAlone + n, origin ? 0 : 1);
        if (origin)
        {
          std::fill(worker.index, worker.index + n, 0);
          for (int i = 0; i < ResampleAxes; ++i)
          {
            this->FindTapsOfPoints(i, n, lines[i], worker.index);
          }
          const auto together = std::find(isAlone, isAlone + n, 0) - isAlone;
          if (together < n)
          {
            // Lanes that do not count read what another one reads.
            for (std::int64_t j = 0; j < ResampleRow; ++j)
            {
              worker.index[j] = j < n && !isAlone[j] ? worker.index[j] : worker.index[together];
            }
            m_Functions.gather(worker.result, origin, worker.index, lines, n);
          }
        }
        for (std::int64_t j = 0; j < n; ++j)
        {
          if (isAlone[j])
          {
            pointAt(j, point);
            worker.result[j] = HasPlace(m_Operation, point) && !this->IsBeyond(point)
                                 ? this->Interpolate(point, first, worker)
                                 : m_Value;
          }
        }
        m_Store(m_Call.output, first, n, worker.result);
      }
    });
  }

private:
  bool
  IsBeyond(const double (&point)[ResampleAxes]) const
  {
    return m_Tiles.edges[0].HasValue(point[0]) || m_Tiles.edges[1].HasValue(point[1]) ||
           m_Tiles.edges[2].HasValue(point[2]);
  }

  void
  FindTapsOfPoints(int i, std::int64_t n, ResampleLine<TReal> & line, std::int32_t * index) const
  {
    const ResampleOperation::Axis & axis = m_Tiles.axes[i];
    if (axis.taps == 2 || axis.kernel == TapKernel::Spline)
    {
      m_Functions.findTaps(line, index, n);
      return;
    }
    for (std::int64_t j = 0; j < n; ++j)
    {
      // False for NaN.
      const double moved = m_Tiles.edges[i].Move(line.points[j]);
      const bool   isNear =
        moved > static_cast<double>(line.from - 2) && moved < static_cast<double>(line.to + axis.taps + 2);
      const std::int64_t first =
        isNear ? FillTaps(axis, m_Tiles.edges[i], moved, line.weights + j, ResampleRow) : line.from - 1;
      const bool isThere = first >= line.from && first <= line.to && !m_Tiles.edges[i].HasValue(line.points[j]);
      line.isAlone[j] |= isThere ? 0 : 1;
      index[j] += isThere ? static_cast<std::int32_t>((first - line.tile) * line.stride) : 0;
    }
  }

  /** The value at one point: the sums of ResampleOperation. */
  TReal
  Interpolate(const double (&point)[ResampleAxes], const Coordinates & at, ResampleWorker<TReal> & worker) const
  {
    std::int64_t first[ResampleAxes];
    for (int i = 0; i < ResampleAxes; ++i)
    {
      first[i] = FillTaps(m_Tiles.axes[i], m_Tiles.edges[i], point[i], worker.tables[i].weights, 1);
    }
    std::int64_t       strides[ResampleAxes];
    const std::int64_t inside = m_Source.FindInside(first, at, strides);
    const auto         sumUp = [this, &worker](int i, auto && valueAt) {
      const TReal * const weights = worker.tables[i].weights;
      return SumOfTaps<TReal>(
        m_Tiles.axes[i].taps, m_Tiles.axes[i].below, [weights](std::int64_t k) { return weights[k]; }, valueAt);
    };
    return sumUp(2, [&](std::int64_t z) {
      return sumUp(1, [&](std::int64_t y) {
        if (inside)
        {
          m_Source.LoadInside(worker.row, inside + y * strides[1] + z * strides[2], m_Tiles.axes[0].taps);
        }
        else
        {
          m_Source.Load(worker.row, first[0], first[0] + m_Tiles.axes[0].taps, first[1] + y, first[2] + z, at);
        }
        return sumUp(0, [&](std::int64_t x) { return worker.row[x]; });
      });
    });
  }

  Coordinates
  VoxelOf(const Coordinates & at) const
  {
    return { { at[m_Operation.axes[0]], at[m_Operation.axes[1]], at[m_Operation.axes[2]], 0, 0 } };
  }

  void
  FillTable(int i, const Box & tile, std::int64_t begin, std::int64_t n, const ResampleTable<TReal> & table) const
  {
    Coordinates voxel = this->VoxelOf(tile.lower);
    for (std::int64_t j = 0; j < n; ++j, ++voxel[i])
    {
      const double point = PointOf(m_Operation, i, voxel);
      const bool   isAlongX = i == 0;
      table.hasValue[j] = m_Tiles.edges[i].HasValue(point);
      table.first[j] = static_cast<std::int32_t>(FillTaps(m_Tiles.axes[i],
                                                          m_Tiles.edges[i],
                                                          point,
                                                          table.weights + (isAlongX ? j : j * m_Tiles.axes[i].taps),
                                                          isAlongX ? n : 1) -
                                                 begin);
    }
  }

  void
  FindTaps(int i, const Coordinates & at, std::int64_t n, ResampleLine<TReal> & line, std::int32_t * index) const
  {
    Coordinates voxel = this->VoxelOf(at);
    voxel[0] = 0;
    line.begin = at[0];
    // PointOf of voxel 0 is 0 + this.
    line.base = m_Operation.matrix[i][1] * static_cast<double>(voxel[1]) +
                (m_Operation.matrix[i][2] * static_cast<double>(voxel[2]) + m_Operation.offset[i]);
    const ResampleOperation::Axis & axis = m_Tiles.axes[i];
    if (axis.taps == 2 || axis.kernel == TapKernel::Spline)
    {
      m_Functions.findTaps(line, index, n);
      return;
    }
    for (std::int64_t j = 0; j < n; ++j)
    {
      const double point = line.slope * static_cast<double>(line.begin + j) + line.base;
      index[j] += static_cast<std::int32_t>(
        (FillTaps(axis, m_Tiles.edges[i], point, line.weights + j, ResampleRow) - line.tile) * line.stride);
    }
  }

  /** Points beyond the edges. */
  void
  SetValue(const ResampleLine<TReal> * lines, std::int64_t n, TReal * result) const
  {
    for (int i = 0; i < ResampleAxes; ++i)
    {
      const auto hasValue = [&](std::int64_t j) {
        return m_Tiles.edges[i].HasValue(lines[i].slope * static_cast<double>(lines[i].begin + j) + lines[i].base);
      };
      // Points of a row lie on a line.
      if (hasValue(0) || hasValue(n - 1))
      {
        for (std::int64_t j = 0; j < n; ++j)
        {
          result[j] = hasValue(j) ? m_Value : result[j];
        }
      }
    }
  }

  const KernelCall &               m_Call;
  const ResampleTiles &            m_Tiles;
  const ResampleOperation &        m_Operation;
  const ResampleSource<TReal>      m_Source;
  const RowStore<TReal>            m_Store;
  const TReal                      m_Value;
  const ResampleFunctions<TReal> & m_Functions{ GetResampleFunctions<TReal>() };
};

/** The box of the image that becomes coefficients. */
Box
GetFilteredBox(const ResampleTiles & tiles, const Box & output)
{
  return tiles.isFiltered ? GetInputBox(tiles.operation, output, Box::FromExtent(tiles.operation.image))
                          : Box{ {}, {} };
}

/** A box as large as those of all chunks of this extent. */
Box
GetMostFiltered(const ResampleTiles & tiles, const Box & output)
{
  const ResampleOperation & operation = tiles.operation;
  return tiles.isFiltered ? Box::FromExtent(operation.GetMostInput(output.Extents(), operation.image)) : Box{ {}, {} };
}

template <typename TReal>
std::int64_t
CoefficientBytes(const Box & filtered)
{
  return RoundToLine(filtered.NumberOfVoxels() * static_cast<std::int64_t>(sizeof(TReal)));
}

template <typename TReal>
ResampleWorker<TReal>
MakeResampleWorker(void * memory, const ResampleTiles & tiles, const Box & filtered)
{
  const int * const axes = tiles.operation.axes;
  return ResampleWorker<TReal>(
    memory, tiles, { { filtered.Extent(axes[0]), filtered.Extent(axes[1]), filtered.Extent(axes[2]), 0, 0 } });
}

template <typename TReal>
void
RunInterpolation(const KernelCall & call, const ResampleTiles & tiles)
{
  const Box          filtered = GetFilteredBox(tiles, call.output.box);
  auto * const       scratch = static_cast<unsigned char *>(call.scratch);
  auto * const       memory = scratch + CoefficientBytes<TReal>(filtered);
  const std::int64_t bytes = MakeResampleWorker<TReal>(nullptr, tiles, filtered).bytes;
  BufferView         source = call.inputs[0];
  if (tiles.isFiltered)
  {
    source = DenseView(scratch, sizeof(TReal) == 4 ? PixelType::Float32 : PixelType::Float64, filtered);
    SplineFilter<TReal>(call, tiles, source, memory, bytes).Run();
  }
  const TileResampler<TReal> resampler(call, tiles, source);
  ForEachTileOf(tiles.GetTile(), call, [&](const Box & tile, unsigned int worker) {
    ResampleWorker<TReal> own =
      MakeResampleWorker<TReal>(memory + static_cast<std::int64_t>(worker) * bytes, tiles, filtered);
    if (tiles.operation.HasOwnPoints())
    {
      resampler.RunPoints(tile, own);
      return;
    }
    tiles.isDiagonal ? resampler.RunPasses(tile, own) : resampler.RunGathers(tile, own);
  });
}

/** No voxel, but the value. Offsets of voxels may be below 0, where rows or planes come in descending order. */
constexpr std::int64_t NoVoxel = std::numeric_limits<std::int64_t>::min();

/** Calls f(at, n, offsets) for pieces of rows of a tile, with the offsets of the nearest voxels, or NoVoxel. */
template <typename TFunctor>
void
ForEachNearest(const KernelCall & call, const ResampleTiles & tiles, const Box & tile, TFunctor && f)
{
  const ResampleOperation & operation = tiles.operation;
  const BufferView &        view = call.inputs[0];
  std::int64_t              offsets[ResampleRow];
  double                    points[ResampleAxes][ResampleRow];
  ForEachRow(tile, [&](const Coordinates & start) {
    for (std::int64_t done = 0; done < tile.Extent(0); done += ResampleRow)
    {
      const std::int64_t n = std::min(ResampleRow, tile.Extent(0) - done);
      Coordinates        at = start;
      at[0] += done;
      Coordinates base = at;
      for (int i = 0; i < ResampleAxes; ++i)
      {
        base[operation.axes[i]] = view.box.lower[operation.axes[i]];
      }
      std::fill(offsets, offsets + n, view.Offset(base));
      const Coordinates voxel = { { at[operation.axes[0]], at[operation.axes[1]], at[operation.axes[2]], 0, 0 } };
      PointsOfRow(operation, voxel, n, points);
      for (int i = 0; i < ResampleAxes; ++i)
      {
        const ResampleOperation::Axis & axis = tiles.axes[i];
        const ResampleEdge &            edge = tiles.edges[i];
        const std::int64_t              lower = view.box.lower[operation.axes[i]];
        const std::int64_t              stride = view.stride[operation.axes[i]];
        for (std::int64_t j = 0; j < n; ++j)
        {
          double     point = points[i][j];
          const bool hasValue = !HasPlace(operation, i, point) || edge.HasValue(point);
          const auto from =
            hasValue ? -1 : MapVoxel(FirstTap(axis, edge.Move(point)), axis.length, operation.outside, false);
          offsets[j] = from < 0 || offsets[j] == NoVoxel ? NoVoxel : offsets[j] + (from - lower) * stride;
        }
      }
      f(static_cast<const Coordinates &>(at), n, static_cast<const std::int64_t *>(offsets));
    }
  });
}

/** Voxels are copied. */
void
RunNearest(const KernelCall & call, const ResampleTiles & tiles)
{
  const BufferView & input = call.inputs[0];
  const std::size_t  size = PixelSize(input.kind);
  const std::size_t  outSize = PixelSize(call.output.kind);
  char               value[8];
  DispatchPixelType(input.kind, [&](auto pixel) {
    pixel = tiles.operation.value.As<decltype(pixel)>();
    std::memcpy(value, &pixel, sizeof(pixel));
  });
  const Coordinates tile = { { 4096, 4, 4, 1, 1 } };
  ForEachTileOf(tile, call, [&](const Box & box, unsigned int) {
    ForEachNearest(call, tiles, box, [&](const Coordinates & at, std::int64_t n, const std::int64_t * offsets) {
      alignas(8) char voxels[ResampleRow * 8];
      alignas(8) char results[ResampleRow * 8];
      const auto      copy = [&](auto bytes) {
        constexpr std::size_t pixelBytes = decltype(bytes)::value;
        for (std::int64_t j = 0; j < n; ++j)
        {
          const char * const from = offsets[j] == NoVoxel ? value
                                                               : static_cast<const char *>(input.data) +
                                                              offsets[j] * static_cast<std::int64_t>(pixelBytes);
          std::memcpy(voxels + j * static_cast<std::int64_t>(pixelBytes), from, pixelBytes);
        }
      };
      switch (size)
      {
        case 1:
          copy(std::integral_constant<std::size_t, 1>{});
          break;
        case 2:
          copy(std::integral_constant<std::size_t, 2>{});
          break;
        case 4:
          copy(std::integral_constant<std::size_t, 4>{});
          break;
        default:
          copy(std::integral_constant<std::size_t, 8>{});
      }
      const bool isSame = input.kind == call.output.kind;
      if (!isSame)
      {
        ConvertVoxels(voxels, input.kind, results, call.output.kind, n);
      }
      CopyStrided(outSize,
                  static_cast<char *>(call.output.data) + call.output.Offset(at) * static_cast<std::int64_t>(outSize),
                  call.output.stride[0],
                  isSame ? voxels : results,
                  1,
                  n);
    });
  });
}

/** The memory of a worker for majorities. */
template <typename TPixel>
struct LabelVotes
{
  LabelVotes(void * memory, const ResampleTiles & tiles)
  {
    ResamplePieces pieces(memory);
    std::int64_t   all = 1;
    for (int i = 0; i < ResampleAxes; ++i)
    {
      weights[i] = pieces.Take<double>(tiles.axes[i].taps);
      all *= tiles.axes[i].taps;
    }
    labels = pieces.Take<TPixel>(all);
    sums = pieces.Take<double>(all);
    bytes = pieces.GetBytes();
  }

  double *     weights[ResampleAxes];
  TPixel *     labels{ nullptr };
  double *     sums{ nullptr };
  std::int64_t bytes{ 0 };
};

/** The value with most of the weights of a voxel of the output. */
template <typename TPixel>
TPixel
FindMajority(const BufferView & view, const ResampleTiles & tiles, const Coordinates & at, LabelVotes<TPixel> & votes)
{
  const ResampleOperation & operation = tiles.operation;
  const auto                beyond = operation.value.As<TPixel>();
  const Coordinates         voxel = { { at[operation.axes[0]], at[operation.axes[1]], at[operation.axes[2]], 0, 0 } };
  std::int64_t              first[ResampleAxes];
  double                    point[ResampleAxes];
  PointsOf(operation, voxel, point);
  for (int i = 0; i < ResampleAxes; ++i)
  {
    if (tiles.edges[i].HasValue(point[i]))
    {
      return beyond;
    }
    first[i] = FillTaps(tiles.axes[i], tiles.edges[i], point[i], votes.weights[i], 1);
  }
  LabelVote<TPixel> vote(votes.labels, votes.sums, 1);
  AddVotes(
    vote,
    tiles.axes,
    [&](int i, std::int64_t k) { return MapVoxel(first[i] + k, tiles.axes[i].length, operation.outside, false); },
    [&](int i, std::int64_t k) { return votes.weights[i][k]; },
    [&](const std::int64_t(&voxels)[ResampleAxes]) {
      Coordinates from = at;
      bool        isInside = true;
      for (int i = 0; i < ResampleAxes; ++i)
      {
        from[operation.axes[i]] = voxels[i];
        isInside = isInside && voxels[i] >= 0;
      }
      return isInside ? static_cast<const TPixel *>(view.data)[view.Offset(from)] : beyond;
    });
  return vote.Winner();
}

void
RunMajority(const KernelCall & call, const ResampleTiles & tiles)
{
  DispatchPixelType(call.output.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const std::int64_t bytes = LabelVotes<std::uint64_t>(nullptr, tiles).bytes;
    const Coordinates  tile = { { 64, 8, 8, 1, 1 } };
    ForEachTileOf(tile, call, [&](const Box & box, unsigned int worker) {
      LabelVotes<Pixel> votes(static_cast<unsigned char *>(call.scratch) + static_cast<std::int64_t>(worker) * bytes,
                              tiles);
      ForEachRow(box, [&](Coordinates at) {
        const StridedRow<Pixel> row(call.output, at);
        for (std::int64_t x = 0; x < box.Extent(0); ++x, ++at[0])
        {
          row[x] = FindMajority<Pixel>(call.inputs[0], tiles, at, votes);
        }
      });
    });
  });
}

bool
TakesMajority(const ResampleTiles & tiles)
{
  return tiles.operation.interpolation == Interpolation::Label;
}

void
RunResample(const KernelCall & call)
{
  const ResampleTiles tiles(dynamic_cast<const ResampleOperation &>(*call.operation));
  if (tiles.operation.IsOnVoxels())
  {
    RunNearest(call, tiles);
  }
  else if (TakesMajority(tiles))
  {
    RunMajority(call, tiles);
  }
  else if (ResampleOperation::UsesDoubles(call.inputs[0].kind, call.output.kind))
  {
    RunInterpolation<double>(call, tiles);
  }
  else
  {
    RunInterpolation<float>(call, tiles);
  }
}

template <typename TReal>
std::size_t
InterpolationBytes(const ResampleTiles & tiles, const ChunkShape & shape)
{
  const Box filtered = GetMostFiltered(tiles, shape.outputBox);
  return static_cast<std::size_t>(CoefficientBytes<TReal>(filtered) +
                                  shape.concurrency * MakeResampleWorker<TReal>(nullptr, tiles, filtered).bytes);
}

std::size_t
ResampleScratch(const Operation & operation, const ChunkShape & shape)
{
  const ResampleTiles tiles(dynamic_cast<const ResampleOperation &>(operation));
  if (tiles.operation.IsOnVoxels())
  {
    return 0;
  }
  if (TakesMajority(tiles))
  {
    return static_cast<std::size_t>(shape.concurrency * LabelVotes<std::uint64_t>(nullptr, tiles).bytes);
  }
  return ResampleOperation::UsesDoubles(shape.inputKinds[0], shape.outputKind)
           ? InterpolationBytes<double>(tiles, shape)
           : InterpolationBytes<float>(tiles, shape);
}

} // namespace

void
RegisterHostResample(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunResample;
  kernel.scratchBytes = ResampleScratch;
  registry.Register("resample", { kernel });
}

} // namespace chunkwise
