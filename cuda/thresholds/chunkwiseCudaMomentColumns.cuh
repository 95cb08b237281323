/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaMomentColumns_cuh
#define chunkwiseCudaMomentColumns_cuh

#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCudaPlanes.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseLocalThreshold.h"
#include "chunkwiseRealOf.h"

// The windows of MomentThresholdOperation with one radius along x, y and z that is known when this is compiled. Sums go
// by groups of K positions that are aligned to the image, for longer windows MeanOperation's blocks. A thread has a
// column and keeps the last group, or its suffix sums, in registers. One kernel passes along x and y, and leaves both
// sums of each voxel side by side; another one passes along z and ends with the results.
namespace chunkwise
{

template <int VRadius>
struct MomentTile
{
  static constexpr int Radius = VRadius;
  static constexpr int K = 2 * VRadius + 1;
  static constexpr int Threads = 128;
  static constexpr int Blocks = Threads / K; ///< of K columns
  static constexpr int Width = Blocks * K;
  /** Blocks of threads that share a multiprocessor, as their registers allow: in planes, and along z. */
  static constexpr int PlanesAtOnce = K <= 15 ? 4 : K <= 17 ? 3 : 2;
  static constexpr int ColumnsAtOnce = K <= 9 ? 4 : K <= 17 ? 3 : 2;
  /** Lanes that pass along x begin an odd number of positions apart, on different banks. */
  static constexpr int Stride = Width + 32;
  static_assert(Width + K - 1 <= Stride, "a row of the stage has what the windows of a strip see");
};

/** Sums of voxels and of their squares. */
__device__ __forceinline__ double2
operator+(const double2 & a, const double2 & b)
{
  return make_double2(a.x + b.x, a.y + b.y);
}

/** The windows of a column as it moves along an axis, group by group. */
template <int VRadius>
class MomentColumn
{
  static constexpr int K = MomentTile<VRadius>::K;

public:
  __device__ __forceinline__
  MomentColumn()
  {
#pragma unroll
    for (int r = 0; r < K; ++r)
    {
      m_Before[r] = make_double2(0, 0);
    }
  }
  /** Takes position r of a group, all of them in their order. Returns the sum of the window that ends there. */
  __device__ __forceinline__ double2
  Add(int r, const double2 & value)
  {
    if constexpr (K > LongestDirectSum)
    {
      m_Prefix = m_Prefix + value;
      const double2 sum = r == K - 1 ? m_Prefix : m_Before[r == K - 1 ? r : r + 1] + m_Prefix;
      m_Before[r] = value;
      return sum;
    }
    else
    {
      m_Before[r] = value;
      double2 sum = make_double2(0, 0);
#pragma unroll
      for (int t = 1; t <= K; ++t)
      {
        sum = sum + m_Before[(r + t) % K];
      }
      return sum;
    }
  }
  /** After the last position of a group. */
  __device__ __forceinline__ void
  EndGroup()
  {
    if constexpr (K > LongestDirectSum)
    {
      m_Prefix = make_double2(0, 0);
#pragma unroll
      for (int r = K - 2; r >= 0; --r)
      {
        m_Before[r] = m_Before[r] + m_Before[r + 1];
      }
    }
  }

private:
  double2 m_Before[K];
  double2 m_Prefix{ 0, 0 };
};

/** Group number 0 begins at the image's edge. */
__device__ __forceinline__ std::int64_t
                           BeginOfGroup(std::int64_t i, int k)
{
  return i - PositionInBlock(i, k);
}

/** Whether MomentThresholdOperation takes voxels of type T. */
template <typename T>
constexpr bool IsSmall = std::is_same<RealOf<T>, float>::value;

template <typename TFunctor>
__device__ __forceinline__ void
DispatchSmallKind(PixelType kind, TFunctor && f)
{
  DispatchKindOnDevice(kind, [&](auto pixel) {
    if constexpr (IsSmall<decltype(pixel)>)
    {
      f(pixel);
    }
  });
}

/** Voxels of a kind, and a dense image of sums of the windows in their planes. */
struct MomentPlanes
{
  Voxels<const char> pixels;
  PixelType          kind;
  double2 *          sums;
  Box                box; ///< of the sums: the output's along x and y, the pixels' along z
};

template <int VRadius>
struct MomentStage
{
  using Tile = MomentTile<VRadius>;
  float   staged[Tile::K * Tile::Stride];
  double2 passed[Tile::K * Tile::Width];
};

/** A thread's share of a strip of windows, of which the first begins at `firstX`, of one plane. */
template <int VRadius>
class MomentStrip
{
  using Tile = MomentTile<VRadius>;
  static constexpr int K = Tile::K;

public:
  __device__ __forceinline__
  MomentStrip(const MomentPlanes & planes, MomentStage<VRadius> & stage, std::int64_t firstX, Coordinates at)
    : m_Planes(planes)
    , m_Stage(stage)
    , m_FirstX(firstX)
    , m_Thread(static_cast<int>(threadIdx.x))
  {
    const Box & box = planes.box;
    const auto  column = firstX + VRadius + m_Thread;
    m_Stores = m_Thread < Tile::Width && column >= box.lower.axis[0] && column < box.upper.axis[0];
    at.axis[0] = planes.pixels.box.lower.axis[0];
    at.axis[1] = planes.pixels.box.lower.axis[1];
    m_Plane = planes.pixels.Offset(at);
    std::int64_t plane = 0;
    for (int a = MaxDimension - 1; a >= 2; --a)
    {
      plane = plane * box.Extent(a) + (at.axis[a] - box.lower.axis[a]);
    }
    m_Out = planes.sums + plane * box.Extent(1) * box.Extent(0) + (column - box.lower.axis[0]);
  }

  /** Stages the K rows from `y` on, zeros where there is no voxel. */
  __device__ __forceinline__ void
  Stage(std::int64_t y) const
  {
    const Voxels<const char> & pixels = m_Planes.pixels;
    const auto                 low = pixels.box.lower.axis[0] - m_FirstX;
    const auto                 high = pixels.box.upper.axis[0] - m_FirstX;
    DispatchSmallKind(m_Planes.kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      const Pixel * const plane = reinterpret_cast<const Pixel *>(pixels.data) + m_Plane;
#pragma unroll
      for (int i = 0; i < (K + 3) / 4; ++i)
      {
        const int row = m_Thread / 32 + 4 * i;
        if (row >= K)
        {
          break;
        }
        const bool          isThere = y + row >= pixels.box.lower.axis[1] && y + row < pixels.box.upper.axis[1];
        const Pixel * const line = plane + (y + row - pixels.box.lower.axis[1]) * pixels.stride.axis[1];
#pragma unroll
        for (int j = 0; j < (Tile::Width + K - 1 + 31) / 32; ++j)
        {
          const int column = m_Thread % 32 + 32 * j;
          if (column < Tile::Width + K - 1)
          {
            m_Stage.staged[row * Tile::Stride + column] =
              isThere && column >= low && column < high ? static_cast<float>(line[column - low]) : 0.0F;
          }
        }
      }
    });
  }

  /** The windows of a row that begin in one of its blocks, a thread each. */
  __device__ __forceinline__ void
  PassX() const
  {
    if (m_Thread >= K * Tile::Blocks)
    {
      return;
    }
    const float * const from = m_Stage.staged + m_Thread / Tile::Blocks * Tile::Stride + m_Thread % Tile::Blocks * K;
    double2 * const     to = m_Stage.passed + m_Thread * K;
    const auto          sumsOf = [from](int i) {
      const auto voxel = static_cast<double>(from[i]);
      return make_double2(voxel, voxel * voxel);
    };
    if constexpr (K > LongestDirectSum)
    {
      double2 suffix = sumsOf(K - 1);
      to[K - 1] = suffix;
#pragma unroll
      for (int i = K - 2; i > 0; --i)
      {
        suffix = sumsOf(i) + suffix;
        to[i] = suffix;
      }
      double2 prefix = make_double2(0, 0);
#pragma unroll
      for (int i = 0; i < K; ++i)
      {
        prefix = prefix + sumsOf(i);
      }
      to[0] = prefix;
      prefix = make_double2(0, 0);
#pragma unroll
      for (int i = 1; i < K; ++i)
      {
        prefix = prefix + sumsOf(K - 1 + i);
        to[i] = to[i] + prefix;
      }
    }
    else
    {
#pragma unroll
      for (int i = 0; i < K; ++i)
      {
        double2 sum = make_double2(0, 0);
#pragma unroll
        for (int t = 0; t < K; ++t)
        {
          sum = sum + sumsOf(i + t);
        }
        to[i] = sum;
      }
    }
  }

  /** The rows of the group from `y` on along the thread's column; stores those of the windows whose centers are from
   * `begin` to before `end`. */
  __device__ __forceinline__ void
  PassY(std::int64_t y, std::int64_t begin, std::int64_t end)
  {
    if (!m_Stores)
    {
      return;
    }
    const std::int64_t width = m_Planes.box.Extent(0);
    const std::int64_t first = y - VRadius;
    double2 * const    to = m_Out + (first - m_Planes.box.lower.axis[1]) * width;
#pragma unroll
    for (int r = 0; r < K; ++r)
    {
      const double2 sum = m_Column.Add(r, m_Stage.passed[r * Tile::Width + m_Thread]);
      if (first + r >= begin && first + r < end)
      {
        to[r * width] = sum;
      }
    }
    m_Column.EndGroup();
  }

private:
  const MomentPlanes &   m_Planes;
  MomentStage<VRadius> & m_Stage;
  const std::int64_t     m_FirstX;
  const int              m_Thread;
  bool                   m_Stores;
  std::int64_t           m_Plane; ///< its first pixel
  double2 *              m_Out;   ///< the column's first sum
  MomentColumn<VRadius>  m_Column;
};

/** The strips of all planes, `segment` rows of windows each. */
template <int VRadius>
struct MomentStrips
{
  std::int64_t firstX; ///< where the first window of the first strip begins
  std::int64_t columns;
  std::int64_t segment;
  std::int64_t segments;
  std::int64_t count;

  explicit MomentStrips(const Box & box)
  {
    using Tile = MomentTile<VRadius>;
    const std::int64_t begin = box.lower[0] - VRadius;
    firstX = begin - (begin % Tile::K + Tile::K) % Tile::K;
    columns = (box.upper[0] - VRadius - firstX + Tile::Width - 1) / Tile::Width;
    const std::int64_t planes = box.NumberOfVoxels() / (box.Extent(0) * box.Extent(1));
    // Enough blocks for a large device, but none that reads ahead most of the time.
    const std::int64_t wanted = std::max<std::int64_t>(1, 2048 / (columns * planes));
    const std::int64_t most = std::max<std::int64_t>(1, box.Extent(1) / (4 * Tile::K));
    segment = (box.Extent(1) + std::min(wanted, most) - 1) / std::min(wanted, most);
    segments = (box.Extent(1) + segment - 1) / segment;
    count = columns * segments * planes;
  }
};

template <int VRadius>
__global__ void
__launch_bounds__(MomentTile<VRadius>::Threads, MomentTile<VRadius>::PlanesAtOnce)
  MomentPlanesKernel(const __grid_constant__ MomentPlanes planes, const __grid_constant__ MomentStrips<VRadius> strips)
{
  using Tile = MomentTile<VRadius>;
  extern __shared__ __align__(16) unsigned char memory[];
  auto &                                        stage = *reinterpret_cast<MomentStage<VRadius> *>(memory);
  for (std::int64_t strip = blockIdx.x; strip < strips.count; strip += gridDim.x)
  {
    std::int64_t rest = strip / strips.columns;
    const auto   column = strip - rest * strips.columns;
    const auto   part = rest % strips.segments;
    rest /= strips.segments;
    Coordinates at{};
    for (int a = 2; a < MaxDimension; ++a)
    {
      at.axis[a] = planes.box.lower.axis[a] + rest % planes.box.Extent(a);
      rest /= planes.box.Extent(a);
    }
    const std::int64_t   begin = planes.box.lower.axis[1] + part * strips.segment;
    const std::int64_t   end = min(begin + strips.segment, planes.box.upper.axis[1]);
    MomentStrip<VRadius> own(planes, stage, strips.firstX + column * Tile::Width, at);
    for (std::int64_t y = BeginOfGroup(begin - VRadius, Tile::K); y < end + VRadius; y += Tile::K)
    {
      own.Stage(y);
      __syncthreads();
      own.PassX();
      __syncthreads();
      own.PassY(y, begin, end);
    }
    __syncthreads();
  }
}

/** Makes results of sums. */
struct MomentVerdict
{
  LocalThresholdRule<float> rule;
  Voxels<char>              out;
  PixelType                 kind;
  bool                      givesThresholds;
  bool                      cuts; ///< windows end at the image's edge
  Coordinates               radius;
  Coordinates               image;

  /** Taps of the windows at `index` along all axes but one. */
  __device__ __forceinline__ std::int64_t
                             CountTaps(const Coordinates & index, int without) const
  {
    std::int64_t taps = 1;
#pragma unroll
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (a != without)
      {
        taps *= cuts ? TapsOfWindow(index.axis[a], radius.axis[a], image.axis[a]) : 2 * radius.axis[a] + 1;
      }
    }
    return taps;
  }

  __device__ __forceinline__ void
  Store(std::int64_t offset, float voxel, const double2 & sums, double inverse) const
  {
    const float threshold = ThresholdOfSums(rule, sums.x, sums.y, inverse);
    const bool  isAbove = rule.IsAbove(voxel, threshold);
    if (kind == PixelType::UInt8 && !givesThresholds)
    {
      out.data[offset] = isAbove ? 1 : 0;
      return;
    }
    StoreOther(offset, givesThresholds ? threshold : isAbove ? 1.0F : 0.0F);
  }

private:
  __device__ __noinline__ void
  StoreOther(std::int64_t offset, float value) const
  {
    DispatchKindOnDevice(kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      reinterpret_cast<Pixel *>(out.data)[offset] = ConvertResult<Pixel>(value);
    });
  }
};

/** Along z, a thread a column of the output; `segment` planes of it. */
template <int VRadius>
__global__ void
__launch_bounds__(MomentTile<VRadius>::Threads, MomentTile<VRadius>::ColumnsAtOnce)
  MomentColumnsKernel(const __grid_constant__ MomentPlanes planes, const __grid_constant__ MomentVerdict verdict,
                      std::int64_t segment)
{
  constexpr int      K = MomentTile<VRadius>::K;
  const Box &        out = verdict.out.box;
  const std::int64_t begin = out.lower.axis[2] + static_cast<std::int64_t>(blockIdx.y) * segment;
  const std::int64_t end = min(begin + segment, out.upper.axis[2]);
  const std::int64_t lower = planes.box.lower.axis[2];
  const std::int64_t upper = planes.box.upper.axis[2];
  const std::int64_t plane = planes.box.Extent(0) * planes.box.Extent(1);
  Box                columns = out;
  columns.upper.axis[2] = columns.lower.axis[2] + 1;
  const std::int64_t count = columns.NumberOfVoxels();
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
  {
    const Coordinates  index = IndexIn(columns, i);
    const std::int64_t volume = Quotient(i, plane);
    const double2 *    from = planes.sums + volume * (upper - lower) * plane + (i - volume * plane);
    const std::int64_t others = verdict.CountTaps(index, 2);
    const double       inner = 1.0 / static_cast<double>(others * K);
    Coordinates        first = index;
    first.axis[2] = planes.pixels.box.lower.axis[2];
    const std::int64_t    pixels = planes.pixels.Offset(first);
    const std::int64_t    results = verdict.out.Offset(index);
    MomentColumn<VRadius> column;
    for (std::int64_t z = BeginOfGroup(begin - VRadius, K); z < end + VRadius; z += K)
    {
      double2 values[K];
      float   voxels[K];
#pragma unroll
      for (int r = 0; r < K; ++r)
      {
        values[r] = make_double2(0, 0);
        if (z + r >= lower && z + r < upper && z + r < end + VRadius)
        {
          values[r] = from[(z + r - lower) * plane];
        }
      }
      DispatchSmallKind(planes.kind, [&](auto pixel) {
        const auto * const line = reinterpret_cast<const decltype(pixel) *>(planes.pixels.data) + pixels;
#pragma unroll
        for (int r = 0; r < K; ++r)
        {
          const std::int64_t at = z + r - VRadius;
          voxels[r] = 0;
          if (at >= begin && at < end)
          {
            voxels[r] = static_cast<float>(line[(at - lower) * planes.pixels.stride.axis[2]]);
          }
        }
      });
#pragma unroll
      for (int r = 0; r < K; ++r)
      {
        const double2      sums = column.Add(r, values[r]);
        const std::int64_t at = z + r - VRadius;
        if (at >= begin && at < end)
        {
          const bool isWhole = !verdict.cuts || (at >= VRadius && at + VRadius < verdict.image.axis[2]);
          verdict.Store(results + (at - out.lower.axis[2]) * verdict.out.stride.axis[2],
                        voxels[r],
                        sums,
                        isWhole ? inner
                                : 1.0 / static_cast<double>(others * TapsOfWindow(at, VRadius, verdict.image.axis[2])));
        }
      }
      column.EndGroup();
    }
  }
}

} // namespace chunkwise

#endif
