/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaVariance.cuh"
#include "chunkwiseCudaVarianceBlock.cuh"
#include "chunkwiseMoments.h"
#include "chunkwiseWienerOperation.h"

#include <cstdint>
#include <type_traits>

// VarianceOperation of float with a small radius, the same along x, y and z: all three passes at once, in registers.
namespace chunkwise
{

namespace
{

constexpr int ColumnOutputs = 4;

/** Moments after their first tap. The sum begins at e, not at 0 + e, which can differ in the sign of a zero only: in a
 * sum, where it does not reach any result. */
template <typename TReal>
__device__ __forceinline__ MergedMoments<TReal>
                           BeginMoments(TReal difference, TReal variance)
{
  return { difference, difference * difference, variance };
}

template <int VRadius>
struct ColumnShape : ColumnTile<VRadius>
{
  static constexpr float Inverse = 1.0F / static_cast<float>(2 * VRadius + 1);
  static_assert(ColumnTile<VRadius>::Outputs == ColumnOutputs, "the number that code without a radius has");
};

/** Which taps of a thread's outputs in a plane there are. */
struct ColumnTaps
{
  int         tx;
  int         top; ///< its first row
  int         x0;
  int         x1;
  StagedRange y;
};

/** The values that a thread makes of a plane for its outputs: means, as differences from the pixel, and variances. */
template <int VRadius>
struct ColumnPlane
{
  using Shape = ColumnShape<VRadius>;
  using Moments = MergedMoments<float>;
  static constexpr int K = Shape::K;

  float center[ColumnOutputs];
  float difference[ColumnOutputs];
  float variance[ColumnOutputs];

  __device__ __forceinline__ void
  TakeCenters(const float (*rows)[Shape::StagedWidth], int tx)
  {
#pragma unroll
    for (int u = 0; u < ColumnOutputs; ++u)
    {
      center[u] = rows[u + VRadius][tx + VRadius];
    }
  }

  /** Passes it along x and y, where all windows are whole. */
  __device__ __forceinline__ void
  PassWhole(const float (*rows)[Shape::StagedWidth], int tx)
  {
    Moments moments[ColumnOutputs];
#pragma unroll
    for (int row = 0; row < ColumnOutputs + 2 * VRadius; ++row)
    {
      const float x = rows[row][tx + VRadius];
      Moments     ofRow = BeginMoments(rows[row][tx] - x, 0.0F);
#pragma unroll
      for (int t = 1; t < K; ++t)
      {
        if (t != VRadius)
        {
          ofRow.Add(rows[row][tx + t] - x, 0.0F);
        }
      }
      const float d = ofRow.Mean(Shape::Inverse);
      const float v = ofRow.Between(Shape::Inverse) * Shape::Inverse;
#pragma unroll
      for (int u = 0; u < ColumnOutputs; ++u)
      {
        if (row == u)
        {
          moments[u] = BeginMoments((x - center[u]) + d, v);
        }
        else if (row > u && row < u + K)
        {
          moments[u].Add(row == u + VRadius ? d : (x - center[u]) + d, v);
        }
      }
    }
#pragma unroll
    for (int u = 0; u < ColumnOutputs; ++u)
    {
      difference[u] = moments[u].Mean(Shape::Inverse);
      variance[u] = moments[u].Variance(Shape::Inverse);
    }
  }

  /** The same where taps may be missing. */
  __device__ __forceinline__ void
  PassPart(const float (*rows)[Shape::StagedWidth], const ColumnTaps & taps)
  {
    const float inverseX = 1.0F / static_cast<float>(taps.x1 - taps.x0);
    Moments     moments[ColumnOutputs];
#pragma unroll
    for (int row = 0; row < ColumnOutputs + 2 * VRadius; ++row)
    {
      if (taps.top + row >= taps.y.low && taps.top + row < taps.y.high)
      {
        const float x = rows[row][taps.tx + VRadius];
        Moments     ofRow;
#pragma unroll
        for (int t = 0; t < K; ++t)
        {
          if (t != VRadius && taps.tx + t >= taps.x0 && taps.tx + t < taps.x1)
          {
            ofRow.Add(rows[row][taps.tx + t] - x, 0.0F);
          }
        }
        const float d = ofRow.Mean(inverseX);
        const float v = ofRow.Variance(inverseX);
#pragma unroll
        for (int u = 0; u < ColumnOutputs; ++u)
        {
          if (row >= u && row < u + K)
          {
            moments[u].Add((x - center[u]) + d, v);
          }
        }
      }
    }
#pragma unroll
    for (int u = 0; u < ColumnOutputs; ++u)
    {
      const int   n = min(taps.top + u + K, taps.y.high) - max(taps.top + u, taps.y.low);
      const float inverse = 1.0F / static_cast<float>(n);
      difference[u] = moments[u].Mean(inverse);
      variance[u] = moments[u].Variance(inverse);
    }
  }
};

/** The values that a thread keeps along z: the values that earlier planes handed on, and the moments of outputs that
 * still lack planes. Number 0 is of the plane before this one, number 1 of that before it. */
template <int VRadius>
class ColumnHistory
{
  using Moments = MergedMoments<float>;
  using Plane = ColumnPlane<VRadius>;

public:
  /** The plane is a tap of outputs before it. */
  __device__ __forceinline__ void
  AddTap(const Plane & plane)
  {
#pragma unroll
    for (int j = VRadius - 1; j >= 0; --j)
    {
#pragma unroll
      for (int u = 0; u < ColumnOutputs; ++u)
      {
        m_Pending[j][u].Add((plane.center[u] - m_Centers[j][u]) + plane.difference[u], plane.variance[u]);
      }
    }
  }
  /** The variance of the output that lacks nothing any more. */
  __device__ __forceinline__ float
  Variance(int u, float inverse) const
  {
    return m_Pending[VRadius - 1][u].Variance(inverse);
  }
  /** The pixel of that output. */
  __device__ __forceinline__ float
  Center(int u) const
  {
    return m_Centers[VRadius - 1][u];
  }
  /** Begins the plane's own outputs, with the planes before it, of which there are those from `lowerZ` on, and itself.
   */
  __device__ __forceinline__ void
  Push(const Plane & plane, std::int64_t z, std::int64_t lowerZ)
  {
    const bool isDeep = z - VRadius >= lowerZ;
#pragma unroll
    for (int u = 0; u < ColumnOutputs; ++u)
    {
      Moments moments;
      if (isDeep)
      {
        moments = BeginMoments((m_Centers[VRadius - 1][u] - plane.center[u]) + m_Differences[VRadius - 1][u],
                               m_Variances[VRadius - 1][u]);
      }
#pragma unroll
      for (int j = VRadius - 2; j >= 0; --j)
      {
        if (isDeep || z - 1 - j >= lowerZ)
        {
          moments.Add((m_Centers[j][u] - plane.center[u]) + m_Differences[j][u], m_Variances[j][u]);
        }
      }
      moments.Add(plane.difference[u], plane.variance[u]);
#pragma unroll
      for (int j = VRadius - 1; j > 0; --j)
      {
        m_Pending[j][u] = m_Pending[j - 1][u];
        m_Centers[j][u] = m_Centers[j - 1][u];
        m_Differences[j][u] = m_Differences[j - 1][u];
        m_Variances[j][u] = m_Variances[j - 1][u];
      }
      m_Pending[0][u] = moments;
      m_Centers[0][u] = plane.center[u];
      m_Differences[0][u] = plane.difference[u];
      m_Variances[0][u] = plane.variance[u];
    }
  }

private:
  float   m_Centers[VRadius][ColumnOutputs] = {};
  float   m_Differences[VRadius][ColumnOutputs] = {};
  float   m_Variances[VRadius][ColumnOutputs] = {};
  Moments m_Pending[VRadius][ColumnOutputs] = {};
};

/** The result made of variances: they, or their roots. */
template <typename TOut>
struct VarianceResult
{
  using Out = TOut;
  static constexpr bool ReadsMeans = false;
  static constexpr bool Fills = false;
  bool                  takesRoot;

  __device__ __forceinline__ TOut
  operator()(float variance, float, float) const
  {
    return FinishVariance<TOut>(variance, takesRoot);
  }
};

/** Only for outputs that hold VarianceToCome. */
struct FilledVariance : VarianceResult<float>
{
  static constexpr bool Fills = true;
};

/** Wiener's filter, which has the windows' means besides. */
struct WienerResult
{
  using Out = float;
  static constexpr bool ReadsMeans = true;
  static constexpr bool Fills = false;
  float                 noise;

  __device__ __forceinline__ float
  operator()(float variance, float center, float mean) const
  {
    return WienerOf(center, mean, variance, noise);
  }
};

/** Leaves of a thread's outputs along z the planes between which some thread of the block has one to fill. */
__device__ __forceinline__ void
CutToFilled(MarchingBlock & block, const float * to, const Voxels<float> & out, int outputs)
{
  __shared__ int planes[2];
  const int      count = static_cast<int>(block.zEnd - block.z0);
  int            first = count;
  int            last = -1;
  // Several planes at a time, so that their reads do not wait for each other.
#pragma unroll 8
  for (int z = 0; z < count; ++z)
  {
    std::uint32_t found[ColumnOutputs];
#pragma unroll
    for (int u = 0; u < ColumnOutputs; ++u)
    {
      found[u] = u < outputs ? __float_as_uint(to[z * out.stride.axis[2] + u * out.stride.axis[1]]) : 0;
    }
    bool is = false;
#pragma unroll
    for (int u = 0; u < ColumnOutputs; ++u)
    {
      is |= found[u] == VarianceToCome;
    }
    first = is ? min(first, z) : first;
    last = is ? z : last;
  }
  if (threadIdx.x == 0)
  {
    planes[0] = count;
    planes[1] = -1;
  }
  __syncthreads();
  if (last >= 0)
  {
    atomicMin(&planes[0], first);
    atomicMax(&planes[1], last);
  }
  __syncthreads();
  block.zEnd = block.z0 + planes[1] + 1;
  block.z0 += planes[0];
}

__device__ __forceinline__ void
LoadMeans(const float * mean, std::int64_t stride, int outputs, float (&meanOf)[ColumnOutputs])
{
#pragma unroll
  for (int u = 0; u < ColumnOutputs; ++u)
  {
    if (u < outputs)
    {
      meanOf[u] = mean[u * stride];
    }
  }
}

/** Stores the results of a thread's outputs in a plane, of whose windows `n` planes are in the image. */
template <int VRadius, typename TResult, typename TOut>
__device__ __forceinline__ void
StoreColumns(const ColumnHistory<VRadius> & history, const TResult & resultOf, const float (&meanOf)[ColumnOutputs],
             int n, int outputs, std::int64_t stride, TOut * to)
{
  using Shape = ColumnShape<VRadius>;
  const float inverse = n == Shape::K ? Shape::Inverse : 1.0F / static_cast<float>(n);
#pragma unroll
  for (int u = 0; u < ColumnOutputs; ++u)
  {
    bool stores = u < outputs;
    if constexpr (TResult::Fills)
    {
      stores = stores && __float_as_uint(to[u * stride]) == VarianceToCome;
    }
    if (stores)
    {
      to[u * stride] = resultOf(history.Variance(u, inverse), history.Center(u), meanOf[u]);
    }
  }
}

/** A block takes a tile in x and y and moves along z. Planes are staged in shared memory, the next while this one is
 * computed. A thread passes the rows around its outputs along x (those of neighbouring threads are computed twice:
 * cheaper than handing them over) and its outputs along y.
 *
 * The tap in a window's centre differs from itself by 0, or by NaN if it is not finite; then the other taps have made
 * the variance NaN already, so that its difference need not be computed. Windows must have another tap along x. */
template <int VRadius, typename TResult, typename TOut = typename TResult::Out>
__global__ void
__launch_bounds__(ColumnShape<VRadius>::Threads, (VRadius <= 2 ? 512 : 256) / ColumnShape<VRadius>::Threads)
  VarianceColumnsKernel(Voxels<const float> pixels, Voxels<const float> means, Voxels<TOut> out, std::int64_t segment,
                        TResult resultOf)
{
  using Shape = ColumnShape<VRadius>;
  __shared__ float staged[2][Shape::StagedRows][Shape::StagedWidth];

  MarchingBlock        block(ColumnTile<VRadius>(), out.box, segment);
  const ColumnOfThread own(ColumnTile<VRadius>(), block, out.box);
  const int            tx = own.tx;
  const int            top = own.top;
  const int            outputs = own.outputs;
  if constexpr (TResult::Fills)
  {
    const Coordinates corner{ { own.x, block.y0 + top, block.z0, block.c, block.w } };
    CutToFilled(block, out.data + out.Offset(corner), out, outputs);
    if (block.z0 >= block.zEnd)
    {
      return;
    }
  }
  const StagedRange  rangeX(pixels.box, 0, block.x0 - VRadius, Shape::StagedWidth);
  const StagedRange  rangeY(pixels.box, 1, block.y0 - VRadius, Shape::StagedRows);
  const ColumnTaps   taps{ tx, top, max(tx, rangeX.low), min(tx + Shape::K, rangeX.high), rangeY };
  const std::int64_t lowerZ = pixels.box.lower.axis[2];
  const std::int64_t upperZ = pixels.box.upper.axis[2];
  const bool         isWholeHere = block.x0 + tx >= out.box.upper.axis[0] || taps.x1 - taps.x0 == Shape::K;
  const bool         isWhole =
    __all_sync(0xFFFFFFFFU, isWholeHere) && rangeY.low <= top && top + ColumnOutputs + 2 * VRadius <= rangeY.high;

  // Missing pixels are never taps.
  ColumnLoads<VRadius, float, float, false> loads(pixels, block, rangeX, rangeY);
  ColumnHistory<VRadius>                    history;
  std::int64_t                              z = max(lowerZ, block.z0 - VRadius);
  const float *                             plane =
    &pixels[Coordinates{ { pixels.box.lower.axis[0], pixels.box.lower.axis[1], z, block.c, block.w } }];
  const Coordinates first{ { own.x, block.y0 + top, z - VRadius, block.c, block.w } };
  TOut *            to = out.data + out.Offset(first);
  const float *     mean = nullptr;
  if constexpr (TResult::ReadsMeans)
  {
    mean = means.data + means.Offset(first);
  }
  loads.Load(plane);
  loads.Stage(staged[0]);
  for (int buffer = 0; z < block.zEnd + VRadius; ++z, buffer ^= 1, to += out.stride.axis[2])
  {
    ColumnPlane<VRadius> now{};
    float                meanOf[ColumnOutputs] = {};
    if constexpr (TResult::ReadsMeans)
    {
      // On their way while the plane is passed.
      LoadMeans(mean, means.stride.axis[1], z - VRadius >= block.z0 ? outputs : 0, meanOf);
      mean += means.stride.axis[2];
    }
    if (z < upperZ)
    {
      __syncthreads();
      const bool more = z + 1 < upperZ && z + 1 < block.zEnd + VRadius;
      if (more)
      {
        plane += pixels.stride.axis[2];
        loads.Load(plane);
      }
      const float(*const rows)[Shape::StagedWidth] = &staged[buffer][top];
      now.TakeCenters(rows, tx);
      if (isWhole)
      {
        now.PassWhole(rows, tx);
      }
      else
      {
        now.PassPart(rows, taps);
      }
      if (more)
      {
        loads.Stage(staged[buffer ^ 1]);
      }
      history.AddTap(now);
    }
    const std::int64_t at = z - VRadius;
    if (at >= block.z0)
    {
      StoreColumns(history,
                   resultOf,
                   meanOf,
                   static_cast<int>(min(z + 1, upperZ) - max(at - VRadius, lowerZ)),
                   outputs,
                   out.stride.axis[1],
                   to);
    }
    history.Push(now, z, lowerZ);
  }
}

template <int VRadius, typename TResult>
void
LaunchVarianceColumns(const Voxels<const float> & pixels, const Voxels<const float> & means, const BufferView & output,
                      const TResult & resultOf, cudaStream_t stream)
{
  using Tile = ColumnTile<VRadius>;
  const auto         kernel = VarianceColumnsKernel<VRadius, TResult>;
  const MarchingGrid grid(Tile(), kernel, 0, output.box);
  kernel<<<grid.blocks, Tile::Threads, 0, stream>>>(
    pixels, means, VoxelsOf<typename TResult::Out>(output), grid.segment, resultOf);
  CheckLaunch("VarianceColumnsKernel");
}

/** Calls launch(radius) for radii that have a kernel: the registers of a thread hold no more. */
template <typename TLaunch>
void
DispatchColumns(std::int64_t radius, TLaunch && launch)
{
  switch (radius)
  {
    case 1:
      return launch(std::integral_constant<int, 1>());
    case 2:
      return launch(std::integral_constant<int, 2>());
    default:
      return launch(std::integral_constant<int, 3>());
  }
}

/** Whether these are windows of columns, of a radius of at most `most`. */
bool
AreColumns(const Voxels<const float> & pixels, const BufferView & output, const Coordinates & radius, int most)
{
  const VarianceShape shape{ PixelType::Float32, output.kind, false, radius, pixels.box, output.box, pixels.stride[1] };
  return pixels.stride[0] == 1 && radius[0] <= most && SupportsVarianceColumns(shape);
}

} // namespace

bool
SupportsVarianceColumns(const VarianceShape & shape)
{
  return shape.kind == PixelType::Float32 && shape.AreCubes() && shape.radius[0] >= 1 && shape.radius[0] <= 3 &&
         shape.padded.Extent(0) >= 2 && shape.AreSmallPlanes() && AreFewBlocks<ColumnTile<3>>(shape.output);
}

void
RunVarianceColumns(const Voxels<const float> & pixels, const BufferView & out, const Coordinates & radius,
                   bool takesRoot, cudaStream_t stream)
{
  DispatchColumns(radius[0], [&](auto r) {
    constexpr int value = decltype(r)::value;
    out.kind == PixelType::Float32
      ? LaunchVarianceColumns<value>(pixels, {}, out, VarianceResult<float>{ takesRoot }, stream)
      : LaunchVarianceColumns<value>(pixels, {}, out, VarianceResult<double>{ takesRoot }, stream);
  });
}

bool
FillVarianceColumns(const Voxels<const float> & pixels, const BufferView & out, const Coordinates & radius,
                    bool takesRoot, cudaStream_t stream)
{
  if (!AreColumns(pixels, out, radius, 3))
  {
    return false;
  }
  DispatchColumns(radius[0], [&](auto r) {
    LaunchVarianceColumns<decltype(r)::value>(pixels, {}, out, FilledVariance{ { takesRoot } }, stream);
  });
  return true;
}

bool
RunWienerColumns(const Voxels<const float> & pixels, const Voxels<const float> & means, const BufferView & output,
                 const Coordinates & radius, float noise, cudaStream_t stream)
{
  if (!AreColumns(pixels, output, radius, 2))
  {
    return false;
  }
  radius[0] == 1 ? LaunchVarianceColumns<1>(pixels, means, output, WienerResult{ noise }, stream)
                 : LaunchVarianceColumns<2>(pixels, means, output, WienerResult{ noise }, stream);
  return true;
}

} // namespace chunkwise
