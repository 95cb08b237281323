/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaDerivativePlanes_cuh
#define chunkwiseCudaDerivativePlanes_cuh

#include "chunkwiseCudaDerivativePasses.cuh"
#include "chunkwiseCudaPlanes.cuh"

#include <algorithm>
#include <vector>

// Derivatives along x, y and z in float with windows of radii up to 16, in two kernels: the passes along x and y of
// planes, and the pass along z with what is made of its components. So the image is read once, and each field of the
// pass along y is written and read once. Threads make eight outputs from the taps of all their windows, which they hold
// in registers: VReach to each side, the least of four lengths that holds the radii. Taps reach each window in the
// order of the passes one by one, so the bits are theirs.
namespace chunkwise
{

/** The largest radius. */
constexpr int DerivativeReach = 16;

/** The values that the windows of Together outputs read. */
template <int VReach>
constexpr int DerivativeTaps = Together + 2 * VReach;

/** Weights of windows that have all taps, of each order from the middle tap on. */
struct DerivativeWeights
{
  float w[DerivativeOperation::LargestOrder + 1][DerivativeReach + 1];
  int   radius;
};

/** Fields that the passes along x and y make of one field or product. */
struct DerivativePlaneJob
{
  static constexpr int Most = DerivativeOperation::LargestOrder + 1;
  static constexpr int MostRows = 3;

  /** A field that the pass along x makes, and the fields that the pass along y makes of it. */
  struct Row
  {
    int order;
    int count;
    int orders[Most];
    int fields[Most];
  };

  DerivativeFactors factors;
  int               count;
  Row               rows[MostRows];
};

/** The work of DerivativePlaneKernel. */
struct DerivativePlaneJobs
{
  static constexpr int Most = 6;

  DerivativePlaneJob jobs[Most];
  int                count;
  DerivativeWeights  x;
  DerivativeWeights  y;
};

/** The components that DerivativeColumnKernel makes. */
struct DerivativeColumnJobs
{
  static constexpr int Most = 16;

  int               fields[Most];
  int               orders[Most];
  int               count;
  DerivativeWeights z;
};

/** The windows of VOutputs outputs, which have the same number of values to each side. All have all taps, and a radius
 * of at least VLeast. */
template <int VKind, int VLeast, int VTaps, int VOutputs>
__device__ __forceinline__ void
SumDerivatives(const float * weights, int radius, const float (&values)[VTaps], float (&sums)[VOutputs])
{
  constexpr int reach = (VTaps - VOutputs) / 2;
#pragma unroll
  for (int u = 0; u < VOutputs; ++u)
  {
    sums[u] = 0;
  }
#pragma unroll
  for (int t = reach; t > 0; --t)
  {
    if (t <= VLeast || t <= radius)
    {
      const float w = weights[t];
#pragma unroll
      for (int u = 0; u < VOutputs; ++u)
      {
        const float high = values[reach + u + t];
        const float low = values[reach + u - t];
        const float middle = values[reach + u];
        sums[u] = MultiplyAdd(w,
                              VKind == 0   ? high + low
                              : VKind == 1 ? high - low
                                           : (high - middle) + (low - middle),
                              sums[u]);
      }
    }
  }
  if constexpr (VKind != 1)
  {
    const float w = weights[0];
#pragma unroll
    for (int u = 0; u < VOutputs; ++u)
    {
      sums[u] = MultiplyAdd(w, values[reach + u], sums[u]);
    }
  }
}

template <int VLeast, int VTaps, int VOutputs>
__device__ __forceinline__ void
SumDerivatives(int order, const DerivativeWeights & weights, const float (&values)[VTaps], float (&sums)[VOutputs])
{
  switch (order)
  {
    case 0:
      return SumDerivatives<0, VLeast>(weights.w[0], weights.radius, values, sums);
    case 2:
      return SumDerivatives<2, VLeast>(weights.w[2], weights.radius, values, sums);
    default:
      return SumDerivatives<1, VLeast>(weights.w[order], weights.radius, values, sums);
  }
}

/** Forgets what is known of values, so that the compiler makes no sums for all orders ahead of a loop over them, for
 * which there are too few registers. */
template <int VTaps>
__device__ __forceinline__ void
KeepInRegisters(float (&values)[VTaps])
{
#pragma unroll
  for (float & value : values)
  {
    asm volatile("" : "+f"(value));
  }
}

/** A window that the image's edge cuts, from its middle tap on, of which the taps up to `last` exist. Taps that do not
 * exist are 0, and so are the weights of those before the first one: these leave a sum of 0 as it is. */
template <int VReach>
__device__ __forceinline__ float
SumCutDerivative(const float * weights, int order, int radius, int last, const float * taps)
{
  // Without a middle a tap less 0, which is the tap.
  const float middle = order == 0 ? 0.0F : taps[0];
  float       sum = 0;
#pragma unroll
  for (int t = -VReach; t <= VReach; ++t)
  {
    if (t <= 0 ? t >= -radius : t <= last)
    {
      sum = MultiplyAdd(weights[t], taps[t] - middle, sum);
    }
  }
  return sum;
}

/** The same of windows along y or z of which the image's edge may cut some: `count` outputs from image index `i` on.
 * Taps that do not exist are 0 in `values`. */
template <int VTaps, int VOutputs>
__device__ __forceinline__ void
SumCutDerivatives(int order, const DerivativeAxis<float> & axis, std::int64_t i, std::int64_t lower, std::int64_t upper,
                  int count, const float (&values)[VTaps], float (&sums)[VOutputs])
{
  constexpr int reach = (VTaps - VOutputs) / 2;
  // Rows of weights are looked up here, not ahead of loops that hardly ever come here.
  asm volatile("" : "+l"(i));
  const auto radius = static_cast<int>(axis.radius);
  const int  low = InRegister(static_cast<int>(max(lower - i, std::int64_t{ -VTaps })));
  const int  high = InRegister(static_cast<int>(min(upper - i, std::int64_t{ 2 * VTaps })));
#pragma unroll
  for (int u = 0; u < VOutputs; ++u)
  {
    if (u < count && (u - radius < low || u + radius >= high))
    {
      sums[u] = SumCutDerivative<reach>(
        axis.Middle(order, i + u), order, radius, min(high - 1 - u, radius), values + reach + u);
    }
  }
}

/** The shared memory of a block of DerivativePlaneKernel: rows as they are read, and a ring of rows for each field that
 * the pass along x makes, which reads and writes four values at once. */
template <int VReach>
struct DerivativePlaneStage
{
  static constexpr int Width = StripWidth;
  static constexpr int TailWidth = 2 * VReach;
  static constexpr int StagedWidth = Width + TailWidth;
  static constexpr int Lanes = Width / Together;     ///< that pass a row along x
  static constexpr int TailRows = Width / TailWidth; ///< that the threads load at once
  static constexpr int Tails = (Together + TailRows - 1) / TailRows;
  static constexpr int Slots = 1 + TailWidth / Together; ///< of Together rows each
  static constexpr int RingRows = Slots * Together;
  static_assert(StagedWidth % 4 == 0 && TailWidth % Together == 0 && Together * Lanes == Width, "rows fit");

  float staged[Together][StagedWidth];
  float rings[DerivativePlaneJob::MostRows][RingRows][Width];

  static std::size_t
  Bytes(int rings)
  {
    return (static_cast<std::size_t>(Together) * StagedWidth + static_cast<std::size_t>(rings) * RingRows * Width) *
           sizeof(float);
  }
};

/** A number of all threads in a register of each, as addresses take it: the compiler does not see that they are equal,
 * and makes no chain of sums of it. All lanes of a warp at once. */
__device__ __forceinline__ std::uint32_t
                           InEachLane(std::int64_t value)
{
  return __shfl_sync(0xFFFFFFFFU, static_cast<std::uint32_t>(value), static_cast<int>(threadIdx.x % 32));
}

/** An address in a register, of which the compiler knows no more than that it is one of global memory. */
template <typename T>
__device__ __forceinline__ T *
GlobalInRegister(T * address)
{
  address = InRegister(address);
  __builtin_assume(__isGlobal(address));
  return address;
}

/** The number that lies `i` steps after the first one: a product and a sum by one instruction. */
template <typename T>
__device__ __forceinline__ T *
StepsFrom(T * first, std::uint32_t step, int i)
{
  return first + static_cast<std::uint64_t>(step) * static_cast<std::uint32_t>(i);
}

/** Stores the first `count` of a column's values, `step` numbers apart. */
__device__ __forceinline__ void
StoreColumn(float * to, std::uint32_t step, int count, const float (&values)[Together])
{
  to = GlobalInRegister(to);
  if (count == Together)
  {
#pragma unroll
    for (int u = 0; u < Together; ++u)
    {
      *StepsFrom(to, step, u) = values[u];
    }
    return;
  }
#pragma unroll
  for (int u = 0; u < Together; ++u)
  {
    if (u < count)
    {
      *StepsFrom(to, step, u) = values[u];
    }
  }
}

/** One strip of a plane: StripWidth columns from `column` on, and rows from `begin` to before `end`, of the box after
 * the pass along y. All threads of a block at once. */
template <int VReach>
class DerivativeStrip
{
public:
  using Stage = DerivativePlaneStage<VReach>;

  __device__
  DerivativeStrip(const DerivativeAxis<float> & x, const DerivativeAxis<float> & y, const DerivativePlaneJobs & jobs,
                  const DerivativePlaneJob & job, const DerivativeFields<float> & in, const Box & after, Stage & stage)
    : m_X(x)
    , m_Y(y)
    , m_Jobs(jobs)
    , m_Job(job)
    , m_In(in)
    , m_After(after)
    , m_Stage(stage)
    , m_Thread(static_cast<int>(threadIdx.x))
  {}

  /** `plane` is the offset of the plane's voxel in.box.lower; `out` its first output of field 0. */
  __device__ void
  Run(std::int64_t plane, float * out, std::int64_t gap, std::int64_t column, std::int64_t begin, std::int64_t end)
  {
    m_Column = m_After.lower.axis[0] + column;
    constexpr int       ahead = Stage::Slots - 1;
    const auto          blocks = static_cast<int>((end - begin + Together - 1) / Together) + ahead;
    const std::int64_t  width = m_After.Extent(0);
    const std::uint32_t step = InEachLane(width);
    // The thread's first place in a row, and that beyond the strip's width, which other threads have in other rows.
    const std::int64_t c = m_Column - VReach - m_In.box.lower.axis[0] + m_Thread;
    const std::int64_t tail = c - m_Thread + Stage::Width + m_Thread % Stage::TailWidth;
    m_Row = m_After.lower.axis[1] + begin - VReach - m_In.box.lower.axis[1];
    m_IsIn = c >= 0 && c < m_In.box.Extent(0);
    m_HasTail = m_Thread < Stage::TailRows * Stage::TailWidth && tail >= 0 && tail < m_In.box.Extent(0);
    m_Next = m_In.data + m_Job.factors.first * m_In.gap + plane + m_Row * m_In.stride.axis[1];
    m_Tail = m_Next + m_Thread / Stage::TailWidth * m_In.stride.axis[1] + tail * m_In.stride.axis[0];
    m_Next += c * m_In.stride.axis[0];
    m_Second = m_Job.factors.second < 0 ? 0 : (m_Job.factors.second - m_Job.factors.first) * m_In.gap;
    m_IsProduct = m_Job.factors.second >= 0;
    FindCut();
    Rows next;
    Load(next);
    int slot = 0;
#pragma unroll 1
    for (int block = 0; block < blocks; ++block)
    {
      Put(next);
      __syncthreads();
      // On their way while the windows are summed.
      if (block + 1 < blocks)
      {
        Load(next);
      }
      PassX(slot);
      PassCutX(slot);
      __syncthreads();
      // The slot after the newest one is the oldest.
      slot = slot == ahead ? 0 : slot + 1;
      const std::int64_t row = begin + static_cast<std::int64_t>(block - ahead) * Together;
      if (block >= ahead && column + m_Thread < width)
      {
        PassY(slot,
              m_After.lower.axis[1] + row,
              static_cast<int>(min(end - row, std::int64_t{ Together })),
              out + row * width + column + m_Thread,
              step,
              gap);
      }
    }
  }

private:
  /** A thread's share of Together rows: a value of each, and some beyond the strip's width. */
  struct Rows
  {
    float values[Together];
    float tails[Stage::Tails];
  };

  /** Loads the thread's share of the next rows: zeros where there is no voxel. */
  __device__ __forceinline__ void
  Load(Rows & rows)
  {
    // The rows that exist.
    const std::int64_t height = m_In.box.Extent(1) - m_Row;
    const int          begin = static_cast<int>(min(max(-m_Row, std::int64_t{ 0 }), std::int64_t{ Together }));
    const int          end = static_cast<int>(min(max(height, std::int64_t{ 0 }), std::int64_t{ Together }));
    Load(m_Next, m_Tail, begin, end, rows);
    if (m_IsProduct)
    {
      Rows factors;
      Load(m_Next + m_Second, m_Tail + m_Second, begin, end, factors);
#pragma unroll
      for (int k = 0; k < Together; ++k)
      {
        rows.values[k] *= factors.values[k];
      }
#pragma unroll
      for (int k = 0; k < Stage::Tails; ++k)
      {
        rows.tails[k] *= factors.tails[k];
      }
    }
    m_Row += Together;
    m_Next += Together * m_In.stride.axis[1];
    m_Tail += Together * m_In.stride.axis[1];
  }
  __device__ __forceinline__ void
  Load(const float * from, const float * tail, int begin, int end, Rows & rows) const
  {
    const std::int64_t step = m_In.stride.axis[1];
#pragma unroll
    for (int k = 0; k < Stage::Tails; ++k, tail += Stage::TailRows * step)
    {
      const int row = m_Thread / Stage::TailWidth + k * Stage::TailRows;
      rows.tails[k] = m_HasTail && row >= begin && row < end ? *tail : 0.0F;
    }
    if (begin == 0 && end == Together)
    {
#pragma unroll
      for (int k = 0; k < Together; ++k, from += step)
      {
        rows.values[k] = m_IsIn ? *from : 0.0F;
      }
      return;
    }
#pragma unroll
    for (int k = 0; k < Together; ++k, from += step)
    {
      rows.values[k] = m_IsIn && k >= begin && k < end ? *from : 0.0F;
    }
  }
  __device__ __forceinline__ void
  Put(const Rows & rows) const
  {
#pragma unroll
    for (int k = 0; k < Together; ++k)
    {
      m_Stage.staged[k][m_Thread] = rows.values[k];
    }
#pragma unroll
    for (int k = 0; k < Stage::Tails; ++k)
    {
      const int row = m_Thread / Stage::TailWidth + k * Stage::TailRows;
      if (row < Together && m_Thread < Stage::TailRows * Stage::TailWidth)
      {
        m_Stage.staged[row][Stage::Width + m_Thread % Stage::TailWidth] = rows.tails[k];
      }
    }
  }

  /** A thread passes Together outputs of a row. Those whose windows the edge cuts are made anew below. */
  __device__ __forceinline__ void
  PassX(int slot) const
  {
    const int          row = m_Thread / Stage::Lanes;
    const int          lane = m_Thread % Stage::Lanes;
    const auto * const from = reinterpret_cast<const float4 *>(m_Stage.staged[row] + lane * Together);
    float              values[DerivativeTaps<VReach>];
#pragma unroll
    for (int i = 0; i < DerivativeTaps<VReach>; i += 4)
    {
      const float4 four = from[i / 4];
      values[i] = four.x;
      values[i + 1] = four.y;
      values[i + 2] = four.z;
      values[i + 3] = four.w;
    }
#pragma unroll 1
    for (int ring = 0; ring < m_Job.count; ++ring)
    {
      float sums[Together];
      KeepInRegisters(values);
      SumDerivatives<0>(m_Job.rows[ring].order, m_Jobs.x, values, sums);
      auto * const to = reinterpret_cast<float4 *>(m_Stage.rings[ring][slot * Together + row] + lane * Together);
#pragma unroll
      for (int u = 0; u < Together; u += 4)
      {
        to[u / 4] = make_float4(sums[u], sums[u + 1], sums[u + 2], sums[u + 3]);
      }
    }
  }

  /** Finds the strip's outputs whose windows the image's edge cuts along x. */
  __device__ __forceinline__ void
  FindCut()
  {
    const std::int64_t upper = m_In.box.upper.axis[0] - m_Column;
    const int          outputs = static_cast<int>(min(m_After.upper.axis[0] - m_Column, std::int64_t{ Stage::Width }));
    const auto         limit = [outputs](std::int64_t n) {
      return static_cast<int>(n < 0 ? 0 : n < outputs ? n : static_cast<std::int64_t>(outputs));
    };
    m_CutLeft = limit(m_In.box.lower.axis[0] + m_X.radius - m_Column);
    m_CutRight = limit(upper - m_X.radius);
    if (m_CutRight < m_CutLeft)
    {
      m_CutLeft = m_CutRight = outputs;
    }
    m_Cut = m_CutLeft + outputs - m_CutRight;
    // As WeightRow has them: those of the last positions are the last rows.
    m_RowLeft = static_cast<int>(m_Column);
    m_RowRight = static_cast<int>(m_Column - (m_X.extent - m_X.rows));
    m_LastTap = static_cast<int>(min(upper, std::int64_t{ 2 * Stage::StagedWidth })) - 1;
  }

  /** Outputs along x whose windows the image's edge cuts: a thread one output of a row of a ring. */
  __device__ void
  PassCutX(int slot) const
  {
    if (m_Cut == 0)
    {
      return;
    }
    const auto radius = static_cast<int>(m_X.radius);
    // The outputs that are overwritten must be complete.
    __syncthreads();
#pragma unroll 1
    for (int work = m_Thread; work < m_Cut * Together * m_Job.count; work += Stage::Width)
    {
      const int           line = work / m_Cut;
      const int           rest = work - line * m_Cut;
      const int           row = line % Together;
      const int           ring = line / Together;
      const bool          isLeft = rest < m_CutLeft;
      const int           output = isLeft ? rest : m_CutRight + rest - m_CutLeft;
      const int           order = m_Job.rows[ring].order;
      const float * const weights =
        m_X.weights[order] + (((isLeft ? m_RowLeft : m_RowRight) + output) * (2 * radius + 1) + radius);
      m_Stage.rings[ring][slot * Together + row][output] = SumCutDerivative<VReach>(
        weights, order, radius, min(m_LastTap - output, radius), m_Stage.staged[row] + output + VReach);
    }
  }

  /** A thread has its column: `count` outputs from image index `y` on, of which the taps begin in slot `oldest`. */
  __device__ __forceinline__ void
  PassY(int oldest, std::int64_t y, int count, float * out, std::uint32_t width, std::int64_t gap) const
  {
    const std::int64_t lower = m_In.box.lower.axis[1];
    const std::int64_t upper = m_In.box.upper.axis[1];
    const bool         areWhole = y - m_Y.radius >= lower && y + Together - 1 + m_Y.radius < upper;
    int                slots[Stage::Slots] = { oldest };
#pragma unroll
    for (int i = 1; i < Stage::Slots; ++i)
    {
      slots[i] = slots[i - 1] == Stage::Slots - 1 ? 0 : slots[i - 1] + 1;
    }
#pragma unroll 1
    for (int ring = 0; ring < m_Job.count; ++ring)
    {
      const DerivativePlaneJob::Row & made = m_Job.rows[ring];
      float                           values[DerivativeTaps<VReach>];
#pragma unroll
      for (int i = 0; i < DerivativeTaps<VReach>; ++i)
      {
        values[i] = m_Stage.rings[ring][slots[i / Together] * Together + i % Together][m_Thread];
      }
#pragma unroll 1
      for (int f = 0; f < made.count; ++f)
      {
        float sums[Together];
        KeepInRegisters(values);
        SumDerivatives<0>(made.orders[f], m_Jobs.y, values, sums);
        if (!areWhole)
        {
          SumCutDerivatives(made.orders[f], m_Y, y, lower, upper, count, values, sums);
        }
        StoreColumn(out + made.fields[f] * gap, width, count, sums);
      }
    }
  }

  const DerivativeAxis<float> &   m_X;
  const DerivativeAxis<float> &   m_Y;
  const DerivativePlaneJobs &     m_Jobs;
  const DerivativePlaneJob &      m_Job;
  const DerivativeFields<float> & m_In;
  const Box &                     m_After;
  Stage &                         m_Stage;
  const int                       m_Thread;
  const float *                   m_Next{ nullptr }; ///< where the thread loads from
  const float *                   m_Tail{ nullptr };
  std::int64_t                    m_Second{ 0 }; ///< from the first factor of a product to the second
  std::int64_t                    m_Row{ 0 };    ///< of the input's box, which is loaded next
  bool                            m_IsIn{ false };
  bool                            m_HasTail{ false };
  bool                            m_IsProduct{ false };
  std::int64_t                    m_Column{ 0 }; ///< image index of the strip's first output
  /** The outputs along x that the image's edge cuts are those before m_CutLeft and from m_CutRight on. */
  int m_CutLeft{ 0 };
  int m_CutRight{ 0 };
  int m_Cut{ 0 };      ///< their number
  int m_RowLeft{ 0 };  ///< of the strip's first output among the weights; from the left edge
  int m_RowRight{ 0 }; ///< and from the right one
  int m_LastTap{ 0 };  ///< that exists, from the strip's first output
};

/** The passes along x and y: fields of `in` to fields of `after`, which lie dense, `gap` numbers apart. */
template <int VReach>
__global__ void
__launch_bounds__(StripWidth, VReach > 8    ? 4
                              : VReach == 8 ? 5
                                            : 6)
  DerivativePlaneKernel(const __grid_constant__ DerivativeAxis<float> x,
                        const __grid_constant__ DerivativeAxis<float> y,
                        const __grid_constant__ DerivativePlaneJobs   jobs,
                        const __grid_constant__ DerivativeFields<float> in, const __grid_constant__ Box after,
                        float * __restrict__ out, std::int64_t gap, std::int64_t segment)
{
  extern __shared__ __align__(16) unsigned char memory[];
  auto &                                        stage = *reinterpret_cast<DerivativePlaneStage<VReach> *>(memory);
  const std::int64_t                            plane = after.Extent(0) * after.Extent(1);
  const std::int64_t                            columns = (after.Extent(0) + StripWidth - 1) / StripWidth;
  const std::int64_t                            segments = (after.Extent(1) + segment - 1) / segment;
  const std::int64_t                            planes = after.Extent(2) * after.Extent(3) * after.Extent(4);
  const std::int64_t                            tiles = columns * segments * planes * jobs.count;
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
  {
    std::int64_t       rest = tile / jobs.count;
    const auto         job = static_cast<int>(tile - rest * jobs.count);
    const std::int64_t column = rest % columns;
    rest /= columns;
    const std::int64_t      begin = rest % segments * segment;
    const std::int64_t      number = rest / segments;
    const std::int64_t      z = number % after.Extent(2);
    const std::int64_t      u = number / after.Extent(2) % after.Extent(3);
    const std::int64_t      v = number / after.Extent(2) / after.Extent(3);
    DerivativeStrip<VReach> strip(x, y, jobs, jobs.jobs[job], in, after, stage);
    // Later passes have not cut their axes yet: plane 0 of both boxes is the same.
    strip.Run(z * in.stride.axis[2] + u * in.stride.axis[3] + v * in.stride.axis[4],
              out + number * plane,
              gap,
              column * StripWidth,
              begin,
              min(begin + segment, after.Extent(1)));
    __syncthreads();
  }
}

/** The outputs of a column that a thread of DerivativeColumnKernel makes at once: more of them share more taps. VStaged
 * derivatives of each lie in shared memory: 6 are a matrix, 9 a gradient and a matrix. */
template <int VStaged>
constexpr int DerivativeOutputs = VStaged ? Together : 2 * Together;

/** Threads of a block of DerivativeColumnKernel. */
constexpr int DerivativeColumns = 128;

/** The outputs of a column that are a block's: few, so that the last blocks of a device are no long wait for it. */
template <int VStaged>
constexpr int DerivativeSegment = 2 * DerivativeOutputs<VStaged>;

/** The shared memory of a block that stages derivatives: those of the threads' outputs, where their columns are stored,
 * and for each warp the numbers of the outputs that may differ from 0. */
template <int VStaged>
struct DerivativeMatrixStage
{
  float         triangles[VStaged][Together][DerivativeColumns];
  std::int64_t  columns[DerivativeColumns];
  unsigned char wanted[Together * DerivativeColumns];
};

/** The results of matrix `u` of a thread's. */
template <int VStaged>
__device__ __forceinline__ void
StoreStagedMatrix(const DerivativeMatrixStage<VStaged> & stage, const DerivativeFinish & finish, int u, int thread,
                  std::int64_t offset)
{
  float triangle[VStaged];
#pragma unroll
  for (int c = 0; c < VStaged; ++c)
  {
    triangle[c] = stage.triangles[c][u][thread];
  }
  if constexpr (VStaged == 6)
  {
    finish.template StoreMatrix<3>(triangle, offset);
  }
  else
  {
    finish.template StoreCurvature<3>(triangle, offset);
  }
}

/** The results of a thread's matrices: `count` outputs of its column from position `o` on. The warp shares those whose
 * result may differ from 0, so that no lane waits for others. All lanes of a warp at once. */
template <int VStaged>
__device__ __forceinline__ void
FinishMatrices(DerivativeMatrixStage<VStaged> & stage, const DerivativeFinish & finish, std::int64_t column,
               std::int64_t o, int count)
{
  const int             thread = static_cast<int>(threadIdx.x);
  const int             lane = thread % 32;
  const int             first = thread - lane;
  unsigned char * const wanted = stage.wanted + first * Together;
  int                   number = 0;
  if (VStaged != 6 || !finish.hasZeros)
  {
#pragma unroll 1
    for (int u = 0; u < count; ++u)
    {
      StoreStagedMatrix(stage, finish, u, thread, column + (o + u) * finish.stride.axis[2]);
    }
    return;
  }
  stage.columns[thread] = column;
#pragma unroll 1
  for (int u = 0; u < Together; ++u)
  {
    bool isWanted = u < count;
    if (isWanted)
    {
      float triangle[6];
#pragma unroll
      for (int c = 0; c < 6; ++c)
      {
        triangle[c] = stage.triangles[c][u][thread];
      }
      isWanted = !IsNoTube(triangle, finish.measure.dark);
      if (!isWanted)
      {
        finish.Store(0, column + (o + u) * finish.stride.axis[2], 0.0F);
      }
    }
    const unsigned int lanes = __ballot_sync(0xFFFFFFFFU, isWanted);
    if (isWanted)
    {
      wanted[number + __popc(lanes & ((1U << lane) - 1U))] = static_cast<unsigned char>(u * 32 + lane);
    }
    number += __popc(lanes);
  }
  __syncwarp();
#pragma unroll 1
  for (int i = lane; i < number; i += 32)
  {
    const int u = wanted[i] / 32;
    const int from = first + wanted[i] % 32;
    StoreStagedMatrix(stage, finish, u, from, stage.columns[from] + (o + u) * finish.stride.axis[2]);
  }
  __syncwarp();
}

/** The pass along z of windows with radii above VReach - 4, or 0, a thread a column, and what is made of its
 * components. */
template <int VStaged, int VReach>
__global__ void
__launch_bounds__(DerivativeColumns, VStaged ? (VReach > 8 ? 5 : 6) : (VReach > 8 ? 4 : 5))
  DerivativeColumnKernel(const __grid_constant__ DerivativeAxis<float> z,
                         const __grid_constant__ DerivativeColumnJobs  jobs,
                         const __grid_constant__ DerivativeFields<float> in, const __grid_constant__ Box box,
                         const __grid_constant__ DerivativeFinish finish)
{
  constexpr int Outputs = DerivativeOutputs<VStaged>;
  constexpr int Taps = Outputs + 2 * VReach;
  constexpr int segment = DerivativeSegment<VStaged>;
  static_assert(Taps % Together == 0, "taps are groups");
  extern __shared__ __align__(16) unsigned char memory[];
  // Nothing of it is there if none is staged.
  auto &              stage = *reinterpret_cast<DerivativeMatrixStage<VStaged ? VStaged : 1> *>(memory);
  const std::int64_t  width = box.Extent(0);
  const std::int64_t  plane = width * box.Extent(1);
  const std::int64_t  columns = plane * box.Extent(3) * box.Extent(4);
  const std::int64_t  segments = (box.Extent(2) + segment - 1) / segment;
  const std::int64_t  tiles = (columns + DerivativeColumns - 1) / DerivativeColumns * segments;
  const std::int64_t  lower = in.box.lower.axis[2];
  const std::int64_t  upper = in.box.upper.axis[2];
  const std::uint32_t step = InEachLane(plane);
  // Segments of the same columns come one after the other, so that what they both read is still in the cache.
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
  {
    const std::int64_t block = Quotient(tile, segments) * DerivativeColumns;
    const std::int64_t begin = (tile - block / DerivativeColumns * segments) * segment;
    const std::int64_t end = min(begin + segment, box.Extent(2));
    // Threads beyond the last column go with the others, and store nothing.
    const std::int64_t q = min(block + threadIdx.x, columns - 1);
    const bool         isThere = q == block + threadIdx.x;
    const std::int64_t volume = Quotient(q, plane);
    const std::int64_t place = q - volume * plane;
    const std::int64_t y = Quotient(place, width);
    const std::int64_t v = Quotient(volume, box.Extent(3));
    const std::int64_t offset = (place - y * width) * finish.stride.axis[0] + y * finish.stride.axis[1] +
                                (volume - v * box.Extent(3)) * finish.stride.axis[3] + v * finish.stride.axis[4];
    const float * const column = in.data + volume * plane * in.box.Extent(2) + place;
#pragma unroll 1
    for (std::int64_t o = begin; o < end; o += Outputs)
    {
      const int          count = isThere ? static_cast<int>(min(end - o, std::int64_t{ Outputs })) : 0;
      const std::int64_t i = box.lower.axis[2] + o;
      const bool         areWhole = i - z.radius >= lower && i + Outputs - 1 + z.radius < upper;
      const bool         haveAllTaps = i - VReach >= lower && i + Outputs - 1 + VReach < upper;
      float              totals[Outputs]{};
#pragma unroll 1
      for (int c = 0; c < jobs.count; ++c)
      {
        // The place of the first value of the windows.
        const float * next = column + jobs.fields[c] * in.gap + (i - VReach - lower) * plane;
        float         values[Taps];
        float         sums[Outputs];
        if (haveAllTaps)
        {
          // Addresses in several chains of sums.
#pragma unroll
          for (int s = 0; s < Taps; s += Together)
          {
            const float * const group = GlobalInRegister(StepsFrom(next, step, s));
#pragma unroll
            for (int t = 0; t < Together; ++t)
            {
              values[s + t] = *StepsFrom(group, step, t);
            }
          }
        }
        else
        {
          // The first and the last value of the windows that exist.
          const int first = InRegister(static_cast<int>(max(lower - i, std::int64_t{ -jobs.z.radius })));
          const int end = InRegister(static_cast<int>(min(upper - i, std::int64_t{ Outputs + jobs.z.radius })));
#pragma unroll
          for (int s = 0; s < Taps; ++s, next += plane)
          {
            values[s] = s - VReach >= first && s - VReach < end ? *next : 0.0F;
          }
        }
        SumDerivatives<VReach - 4>(jobs.orders[c], jobs.z, values, sums);
        if (!areWhole)
        {
          SumCutDerivatives(jobs.orders[c], z, i, lower, upper, count, values, sums);
        }
        if constexpr (VStaged > 0)
        {
#pragma unroll
          for (int u = 0; u < Outputs; ++u)
          {
            stage.triangles[c][u][threadIdx.x] = sums[u];
          }
        }
        else if (finish.result == DerivativeResult::Magnitude)
        {
#pragma unroll
          for (int u = 0; u < Outputs; ++u)
          {
            totals[u] = MultiplyAdd(sums[u], sums[u], totals[u]);
          }
        }
        else if (finish.result == DerivativeResult::Sum)
        {
#pragma unroll
          for (int u = 0; u < Outputs; ++u)
          {
            totals[u] = totals[u] + sums[u];
          }
        }
        else
        {
          finish.StoreLine(c, offset + o * finish.stride.axis[2], finish.stride.axis[2], count, sums);
        }
      }
      if constexpr (VStaged > 0)
      {
        FinishMatrices(stage, finish, offset, o, count);
      }
      else if (finish.result == DerivativeResult::Magnitude || finish.result == DerivativeResult::Sum)
      {
        if (finish.result == DerivativeResult::Magnitude)
        {
#pragma unroll
          for (float & square : totals)
          {
            square = __fsqrt_rn(square);
          }
        }
        finish.StoreLine(0, offset + o * finish.stride.axis[2], finish.stride.axis[2], count, totals);
      }
    }
  }
}

/** The jobs of DerivativePlaneKernel for the first two of three passes, see MakeDerivativeFields. `factors` has the
 * fields or products that the first pass reads. Returns whether it can make them. */
inline bool
MakePlaneJobs(const std::vector<std::vector<DerivativeField>> & fields, const std::vector<DerivativeFactors> & factors,
              DerivativePlaneJobs & jobs)
{
  jobs = DerivativePlaneJobs{};
  if (fields.size() != 3 || fields[2].size() > DerivativeColumnJobs::Most || factors.size() > DerivativePlaneJobs::Most)
  {
    return false;
  }
  for (std::size_t input = 0; input < factors.size(); ++input)
  {
    DerivativePlaneJob & job = jobs.jobs[jobs.count++];
    job.factors = factors[input];
    for (std::size_t row = 0; row < fields[0].size(); ++row)
    {
      if (fields[0][row].source != static_cast<int>(input))
      {
        continue;
      }
      if (job.count == DerivativePlaneJob::MostRows)
      {
        return false;
      }
      DerivativePlaneJob::Row & made = job.rows[job.count++];
      made.order = fields[0][row].order;
      for (std::size_t f = 0; f < fields[1].size(); ++f)
      {
        if (fields[1][f].source == static_cast<int>(row))
        {
          made.orders[made.count] = fields[1][f].order;
          made.fields[made.count++] = static_cast<int>(f);
        }
      }
    }
  }
  return true;
}

} // namespace chunkwise

#endif
