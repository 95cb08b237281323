/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseAdaptiveEqualizationOperation.h"
#include "chunkwiseCpuEnhancement.h"
#include "chunkwiseCpuEnhancementRows.h"
#include "chunkwiseCpuLevels.h"
#include "chunkwiseCpuRowStore.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseTileMappings.h"

// First the mappings of all tiles that the chunk's voxels lie between. Then rows: for each row the mappings of all
// tiles along x are mixed along the other axes, and a voxel's mapping follows from two of them.
namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(EnhancementLevel, MakeEnhancementLevel)

const EnhancementLevel &
GetEnhancementLevel()
{
  static FunctionsAtLevels<EnhancementLevel> levels{ CHUNKWISE_AT_LEVELS(MakeEnhancementLevel) };
  return levels.Get();
}

namespace
{

/** The layout of the scratch, in bytes. */
struct EqualizationLayout
{
  /** Tiles along each axis whose mappings are made, and numbers of a mapping. */
  Coordinates  tiles{};
  std::int64_t pitch{ 0 };
  std::int64_t mappings{ 0 };
  /** A worker's: a row of voxels, and where its bins, a histogram and mappings mixed along the slower axes begin. */
  std::int64_t bins{ 0 };
  std::int64_t histogram{ 0 };
  std::int64_t mixed{ 0 };
  std::int64_t worker{ 0 };

  EqualizationLayout(const AdaptiveEqualizationOperation & operation, const Box & output, const Box & image)
  {
    tiles = operation.GetTiles(output, image);
    pitch = PaddedRow(operation.bins);
    mappings = pitch * static_cast<std::int64_t>(sizeof(float));
    for (int a = 0; a < MaxDimension; ++a)
    {
      worker += a > 0 ? mappings : 0;
      mappings *= tiles[a];
    }
    const std::int64_t row = PaddedRow(std::max(operation.tile[0], output.Extent(0)));
    bins = row * static_cast<std::int64_t>(sizeof(double));
    histogram = bins + row * static_cast<std::int64_t>(sizeof(std::uint16_t));
    mixed = histogram + pitch * static_cast<std::int64_t>(sizeof(std::uint32_t));
    worker += mixed;
  }
};

template <typename TReal>
class Equalization
{
public:
  explicit Equalization(const KernelCall & call)
    : m_Call(call)
    , m_Operation(static_cast<const AdaptiveEqualizationOperation &>(*call.operation))
    , m_Layout(m_Operation, call.output.box, call.image)
    , m_Memory(static_cast<char *>(call.scratch))
    , m_Lower(static_cast<TReal>(m_Operation.lower))
    , m_Scale(static_cast<TReal>(
        m_Operation.upper > m_Operation.lower ? LargestLevel / (m_Operation.upper - m_Operation.lower) : 0.0))
    , m_Unit(static_cast<TReal>((m_Operation.upper - m_Operation.lower) / LargestLevel))
    , m_Inverse(TReal(1) / static_cast<TReal>(LevelsOfBin(m_Operation.bins)))
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      m_Tiles.lower[a] = this->Place(a, call.output.box.lower[a]).before;
      m_Tiles.upper[a] = this->Place(a, call.output.box.upper[a] - 1).after + 1;
    }
  }

  void
  Run()
  {
    DispatchPixelType(m_Call.inputs[0].kind, [this](auto pixel) { this->m_Load = LoadRow<decltype(pixel)>; });
    m_Call.executor->ParallelFor(m_Tiles.NumberOfVoxels(), [this](std::int64_t i, unsigned int worker) {
      if (!m_Call.control || !m_Call.control->ShouldStop())
      {
        this->MapTile(TileNumber(m_Tiles, Coordinates::Filled(1), i).lower, worker);
      }
    });
    const RowStore<TReal> store = RowStoreOf<TReal>(m_Call.output.kind);
    const Coordinates     plane = { { m_Call.output.box.Extent(0), 16, 4, 1, 1 } };
    ForEachTileOf(plane, m_Call, [&](const Box & part, unsigned int worker) {
      // The positions along each axis that the mixed mappings are of; none yet.
      Coordinates mixedAt = Coordinates::Filled(-1);
      ForEachRow(part, [&](const Coordinates & at) {
        store(m_Call.output, at, part.Extent(0), this->Equalize(at, part.Extent(0), mixedAt, worker));
      });
    });
  }

private:
  using Load = void (*)(const BufferView & input, const Coordinates & at, std::int64_t n, std::int64_t end,
                        TReal * row);

  TilePlace
  Place(int axis, std::int64_t i) const
  {
    return TilePlace(i, m_Operation.tile[axis], m_Call.image.Extent(axis));
  }
  template <typename T>
  T *
  Worker(unsigned int worker, std::int64_t offset) const
  {
    return reinterpret_cast<T *>(m_Memory + m_Layout.mappings + worker * m_Layout.worker + offset);
  }
  float *
  Mapping(const Coordinates & tile) const
  {
    return reinterpret_cast<float *>(m_Memory) + DenseOffset(m_Tiles, tile) * m_Layout.pitch;
  }

  /** `n` voxels of an image that has `end` along x, continued by reflection. */
  template <typename TPixel>
  static void
  LoadRow(const BufferView & input, const Coordinates & at, std::int64_t n, std::int64_t end, TReal * row)
  {
    Coordinates first = at;
    first[0] = input.box.lower[0];
    const StridedRow<const TPixel> voxels(input, first);
    const std::int64_t             begin = at[0] - first[0];
    const std::int64_t             inside = std::min(n, end - at[0]);
    for (std::int64_t x = 0; x < inside; ++x)
    {
      row[x] = static_cast<TReal>(voxels[begin + x]);
    }
    for (std::int64_t x = inside; x < n; ++x)
    {
      row[x] = static_cast<TReal>(voxels[ReflectAtEnd(at[0] + x, end) - first[0]]);
    }
  }

  void
  MapTile(const Coordinates & tile, unsigned int worker)
  {
    TReal * const         row = this->template Worker<TReal>(worker, 0);
    std::uint16_t * const bins = this->template Worker<std::uint16_t>(worker, m_Layout.bins);
    auto * const          counts = this->template Worker<std::uint32_t>(worker, m_Layout.histogram);
    std::fill(counts, counts + m_Operation.bins, 0U);
    Box voxels;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t size = std::max<std::int64_t>(m_Operation.tile[a], 1);
      voxels.lower[a] = tile[a] * size;
      voxels.upper[a] = voxels.lower[a] + size;
    }
    ForEachRow(voxels, [&](const Coordinates & at) {
      Coordinates there = at;
      for (int a = 1; a < MaxDimension; ++a)
      {
        there[a] = ReflectAtEnd(at[a], m_Call.image.Extent(a));
      }
      m_Load(m_Call.inputs[0], there, voxels.Extent(0), m_Call.image.Extent(0), row);
      GetEnhancementFunctions<TReal>().findBins(bins, row, m_Lower, m_Scale, m_Inverse, voxels.Extent(0));
      for (std::int64_t x = 0; x < voxels.Extent(0); ++x)
      {
        ++counts[bins[x]];
      }
    });
    ClipHistogram(counts, m_Operation.bins, m_Operation.GetLimit());
    const double  unit = LargestLevel / static_cast<double>(m_Operation.GetTileVoxels());
    float * const mapping = this->Mapping(tile);
    std::int64_t  sum = 0;
    for (int b = 0; b < m_Operation.bins; ++b)
    {
      sum += counts[b];
      mapping[b] = MappingOf(sum, unit);
    }
  }

  /** The mappings of the tiles along x for the row of `at`. `mixedAt`: the position along each axis that the worker's
   * mixed mappings are of. */
  const float *
  MixRows(const Coordinates & at, Coordinates & mixedAt, unsigned int worker) const
  {
    std::int64_t  numbers = m_Tiles.NumberOfVoxels() * m_Layout.pitch;
    const float * from = reinterpret_cast<const float *>(m_Memory);
    auto *        to = this->template Worker<float>(worker, m_Layout.mixed);
    bool          isThere = true;
    for (int a = MaxDimension - 1; a > 0; --a)
    {
      const TilePlace place = this->Place(a, at[a]);
      numbers /= m_Tiles.Extent(a);
      const float * const before = from + (place.before - m_Tiles.lower[a]) * numbers;
      from = before;
      isThere = isThere && mixedAt[a] == at[a];
      mixedAt[a] = at[a];
      if (place.after > place.before)
      {
        if (!isThere)
        {
          GetEnhancementLevel().mix(to, before, before + numbers, place.part, numbers);
        }
        from = to;
      }
      to += numbers;
    }
    return from;
  }

  const TReal *
  Equalize(const Coordinates & at, std::int64_t n, Coordinates & mixedAt, unsigned int worker)
  {
    TReal * const         row = this->template Worker<TReal>(worker, 0);
    std::uint16_t * const bins = this->template Worker<std::uint16_t>(worker, m_Layout.bins);
    const float * const   mappings = this->MixRows(at, mixedAt, worker);
    m_Load(m_Call.inputs[0], at, n, m_Call.image.Extent(0), row);
    GetEnhancementFunctions<TReal>().findBins(bins, row, m_Lower, m_Scale, m_Inverse, n);
    for (std::int64_t x = 0; x < n; ++x)
    {
      const TilePlace     place = this->Place(0, at[0] + x);
      const float * const before = mappings + (place.before - m_Tiles.lower[0]) * m_Layout.pitch;
      const float * const after = mappings + (place.after - m_Tiles.lower[0]) * m_Layout.pitch;
      row[x] = m_Lower + static_cast<TReal>(MixOf(before[bins[x]], after[bins[x]], place.part)) * m_Unit;
    }
    return row;
  }

  const KernelCall &                    m_Call;
  const AdaptiveEqualizationOperation & m_Operation;
  const EqualizationLayout              m_Layout;
  char * const                          m_Memory;
  const TReal                           m_Lower;
  const TReal                           m_Scale;
  const TReal                           m_Unit;
  const TReal                           m_Inverse;
  Box                                   m_Tiles;
  Load                                  m_Load{ nullptr };
};

void
RunEqualization(const KernelCall & call)
{
  if (call.output.box.NumberOfVoxels() > 0)
  {
    UsesDouble(call.inputs[0].kind) ? Equalization<double>(call).Run() : Equalization<float>(call).Run();
  }
}

std::size_t
ScratchOfEqualization(const Operation & operation, const ChunkShape & shape)
{
  const EqualizationLayout layout(
    static_cast<const AdaptiveEqualizationOperation &>(operation), shape.outputBox, shape.image);
  return static_cast<std::size_t>(layout.mappings + shape.concurrency * layout.worker);
}

} // namespace

void
RegisterHostAdaptiveEqualization(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunEqualization;
  kernel.scratchBytes = ScratchOfEqualization;
  registry.Register("adaptiveequalization", { kernel });
}

} // namespace chunkwise
