/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaCellFft.h"
#include "chunkwiseCudaFixedPasses.cuh"
#include "chunkwiseCudaPixels.cuh"

namespace chunkwise
{

namespace
{

constexpr int RowsPerBlock = 16;
constexpr int ColumnsPerBlock = 8;

/** Numbers of a block's columns in shared memory, C side by side: like RowLines. */
template <int A, int B, int C>
struct ColumnLines
{
  static constexpr int there = RowLines<A, B>::pitch * C;
  static constexpr int back = RowLines<B, A>::pitch * C;
  static constexpr int numbers = Larger(A * there, B * back);
};

struct Cell
{
  CellInterval x;
  CellInterval y;

  __device__
  Cell(const CellGrid & grid, int local)
  {
    const int cell = grid.first + local;
    x = grid.axis[0][cell % grid.along];
    y = grid.axis[1][cell / grid.along];
  }
  /** A term is then one node's. */
  __device__ bool
  IsApart(const CellGrid & grid) const
  {
    return grid.renormalizes && (x.cut || y.cut);
  }
};

__device__ __forceinline__ float
WeightOf(const CellGrid & grid, int axis, int node, std::int64_t i)
{
  return __ldg(grid.weights[axis] + node * grid.n[axis] + i);
}

/** With `VGeneral` taps may lie beyond the box, voxels apart, and pixels be of any kind. */
template <int A, int B, int C, bool VGeneral>
__global__ void
__launch_bounds__(C * Larger(A, B), BlocksOf(C * Larger(A, B), Larger(A, B)))
  CellForwardRowsKernel(CellGrid grid, CellSource source, float2 * __restrict__ out,
                        const float2 * __restrict__ twiddles)
{
  constexpr int     M = A * B;
  constexpr int     pitch = RowLines<A, B>::pitch;
  constexpr int     line = RowLines<A, B>::line;
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  __shared__ int                                taps[VGeneral ? 2 * M : 1];
  const int                                     perCell = (grid.rows + C - 1) / C;
  const int                                     local = blockIdx.x / perCell;
  const int                                     firstRow = (blockIdx.x - local * perCell) * C;
  const Cell                                    cell(grid, local);
  const int                                     rows = min(C, cell.y.input - firstRow);
  if (rows <= 0)
  {
    return;
  }
  const int live = cell.x.input;
  if (VGeneral)
  {
    for (int i = threadIdx.x; i < live; i += blockDim.x)
    {
      taps[i] =
        static_cast<int>(MapTap(cell.x.inLower + i, source.boxLower[0], source.boxUpper[0], grid.n[0], source.mode) -
                         source.boxLower[0]);
    }
    __syncthreads();
  }
  {
    const int c = threadIdx.x / B;
    const int t = threadIdx.x % B;
    if (c < rows)
    {
      const std::int64_t at =
        (MapTap(cell.y.inLower + firstRow + c, source.boxLower[1], source.boxUpper[1], grid.n[1], source.mode) -
         source.boxLower[1]) *
        source.stride[1];
      const float * const row = static_cast<const float *>(source.data) + at + cell.x.inLower - source.boxLower[0] + t;
      const auto          load = [&](int n) {
        if constexpr (VGeneral)
        {
          return LoadAs<float, false>(source.data, source.kind, at + taps[t + n] * source.stride[0]) - source.constant;
        }
        else
        {
          return __ldg(row + n) - source.constant;
        }
      };
      float re[A];
      float im[A];
#pragma unroll
      for (int j = 0; j < A; ++j)
      {
        re[j] = t + B * j < live ? load(B * j) : 0.0f;
        im[j] = t + B * j + M < live ? -load(B * j + M) : 0.0f;
      }
      TurnEach<4 * A>(re, im, std::make_integer_sequence<int, A>());
      FirstPass<A, B, false>(
        t,
        twiddles,
        [&](int j, float & x, float & y) {
          x = re[j];
          y = im[j];
        },
        [&](int k, float2 z) { shared[c * line + k * pitch + t] = z; });
    }
  }
  __syncthreads();
  const int c = threadIdx.x / A;
  const int s = threadIdx.x % A;
  if (c < rows)
  {
    float re[B];
    float im[B];
    SecondPass<B>(re, im, [&](int i) { return shared[c * line + s * pitch + i]; });
    float2 * const row = out + (static_cast<std::int64_t>(local) * grid.rows + firstRow + c) * M + s;
#pragma unroll
    for (int q = 0; q < B; ++q)
    {
      row[A * q] = make_float2(re[q], im[q]);
    }
  }
}

template <int A, int B, int C, bool VGeneral>
__global__ void
__launch_bounds__(C * Larger(A, B), BlocksOf(C * Larger(A, B), 2 * Larger(A, B)))
  CellInverseRowsKernel(CellGrid grid, CellTarget target, const float2 * __restrict__ in,
                        const float2 * __restrict__ twiddles)
{
  constexpr int     M = A * B;
  constexpr int     pitch = RowLines<A, B>::pitch;
  constexpr int     line = RowLines<A, B>::line;
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  // Of each position, or each position of each row.
  auto * const weights = reinterpret_cast<float *>(shared + C * line);
  const int    perCell = (grid.termRows + C - 1) / C;
  const int    local = blockIdx.x / perCell;
  const int    firstRow = (blockIdx.x - local * perCell) * C;
  const Cell   cell(grid, local);
  const int    rows = min(C, cell.y.output - firstRow);
  if (rows <= 0)
  {
    return;
  }
  const bool         apart = cell.IsApart(grid);
  const int          perNode = apart ? cell.y.nodes : 1;
  const int          firstC = threadIdx.x / B;
  const int          t = threadIdx.x % B;
  const int          c = threadIdx.x / A;
  const int          s = threadIdx.x % A;
  const int          first = s - cell.x.crop;
  const auto         kept = static_cast<unsigned int>(cell.x.output);
  const std::int64_t x = cell.x.outLower + first;
  const std::int64_t y = cell.y.outLower + firstRow + c;
  const RowStates    states(cell.x.outLower, grid.n[0], target.kernel[0], target.below[0]);
  float              sums[2 * B];
#pragma unroll
  for (int q = 0; q < 2 * B; ++q)
  {
    sums[q] = 0.0f;
  }
  for (int term = 0; term < cell.x.nodes * perNode; ++term)
  {
    const int nodeX = cell.x.node + term / perNode;
    const int nodeY = cell.y.node + (apart ? term % perNode : 0);
    for (int i = threadIdx.x; i < (apart ? rows : 1) * 2 * M; i += blockDim.x)
    {
      const int row = i / (2 * M);
      const int at = i % (2 * M) - cell.x.crop;
      float     weight = 0.0f;
      if (at >= 0 && at < cell.x.output)
      {
        weight = WeightOf(grid, 0, nodeX, cell.x.outLower + at);
        if (apart)
        {
          const std::int64_t rowY = cell.y.outLower + firstRow + row;
          const std::int64_t node = static_cast<std::int64_t>(nodeY) * grid.nodes[0] + nodeX;
          const std::int64_t stateY = ConvolutionFactors::State(rowY, grid.n[1], target.kernel[1], target.below[1]);
          weight *= WeightOf(grid, 1, nodeY, rowY) *
                    __ldg(target.factors + (node * target.states[1] + stateY) * target.states[0] + states.At(at));
        }
      }
      weights[i] = weight;
    }
    if (firstC < rows)
    {
      const float2 * const row =
        in + ((static_cast<std::int64_t>(local) * grid.terms + term) * grid.termRows + firstRow + firstC) * M + t;
      FirstPass<A, B, false>(
        t,
        twiddles,
        [&](int j, float & re, float & im) {
          const float2 z = row[B * j];
          re = z.y;
          im = z.x;
        },
        [&](int k, float2 z) { shared[firstC * line + k * pitch + t] = z; });
    }
    __syncthreads();
    if (c < rows)
    {
      float re[B];
      float im[B];
      SecondPass<B>(re, im, [&](int i) { return shared[c * line + s * pitch + i]; });
      TurnEach<4 * B>(re, im, std::make_integer_sequence<int, B>());
      float constant = 0.0f;
      for (int j = 0; target.constants && j < cell.y.nodes; ++j)
      {
        constant = fmaf(
          WeightOf(grid, 1, nodeY + j, y), __ldg(target.constants + (nodeY + j) * grid.nodes[0] + nodeX), constant);
      }
      const float * const weight = weights + (apart ? c * 2 * M : 0) + s;
#pragma unroll
      for (int q = 0; q < B; ++q)
      {
        sums[q] = fmaf(im[q] + constant, weight[A * q], sums[q]);
        sums[B + q] = fmaf(constant - re[q], weight[A * q + M], sums[B + q]);
      }
    }
    __syncthreads();
  }
  if (c < rows)
  {
    const std::int64_t at = (y - target.boxLower[1]) * target.stride[1] + (x - target.boxLower[0]) * target.stride[0];
    const auto         store = [&](int n, float value) {
      if (static_cast<unsigned int>(first + n) < kept)
      {
        StoreAs<float, !VGeneral>(target.data, target.kind, at + (VGeneral ? n * target.stride[0] : n), value);
      }
    };
#pragma unroll
    for (int q = 0; q < B; ++q)
    {
      store(A * q, sums[q]);
      store(A * q + M, sums[B + q]);
    }
  }
}

/** The kernel's points are few and need no care. */
template <int A, int B, int C>
__global__ void
__launch_bounds__(C * Larger(A, B))
  CellSpectraKernel(int kernelRows, int columns, float scale, const float2 * __restrict__ in, float2 * __restrict__ out,
                    const float2 * __restrict__ there)
{
  constexpr int     pitch = ColumnLines<A, B, C>::there;
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  const int                                     c = threadIdx.x % C;
  const int                                     t = threadIdx.x / C;
  const int                                     perKernel = columns / C;
  const std::int64_t                            kernel = blockIdx.x / perKernel;
  const int                                     column = (blockIdx.x % perKernel) * C;
  if (t < B)
  {
    ColumnReader<B> reader(in + kernel * kernelRows * columns + column + c, columns, t, kernelRows);
    FirstPass<A, B, false>(
      t,
      there,
      [&](int j, float & re, float & im) {
        const float2 z = reader.Next(j);
        re = z.x * scale;
        im = z.y * scale;
      },
      [&](int k, float2 z) { shared[k * pitch + t * C + c] = z; });
  }
  __syncthreads();
  if (t < A)
  {
    float re[B];
    float im[B];
    SecondPass<B>(re, im, [&](int i) { return shared[t * pitch + i * C + c]; });
    float2 * const to = out + static_cast<std::int64_t>(blockIdx.x) * A * B * C + t * C + c;
#pragma unroll
    for (int q = 0; q < B; ++q)
    {
      to[q * A * C] = make_float2(re[q], im[q]);
    }
  }
}

template <int A, int B, int C>
__global__ void
__launch_bounds__(C * Larger(A, B), BlocksOf(C * Larger(A, B), B + 2 * A))
  CellProductKernel(CellGrid grid, int columns, const float2 * __restrict__ in, float2 * __restrict__ out,
                    const float2 * __restrict__ there, const float2 * __restrict__ back,
                    const float2 * __restrict__ spectra)
{
  constexpr int     pitchThere = ColumnLines<A, B, C>::there;
  constexpr int     pitchBack = ColumnLines<A, B, C>::back;
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  const int                                     c = threadIdx.x % C;
  const int                                     t = threadIdx.x / C;
  const int                                     perCell = columns / C;
  const int                                     local = blockIdx.x / perCell;
  const int                                     part = blockIdx.x - local * perCell;
  const Cell                                    cell(grid, local);
  const bool                                    apart = cell.IsApart(grid);
  if (t < B)
  {
    ColumnReader<B> reader(
      in + static_cast<std::int64_t>(local) * grid.rows * columns + part * C + c, columns, t, cell.y.input);
    FirstPass<A, B, false>(
      t,
      there,
      [&](int j, float & re, float & im) {
        const float2 z = reader.Next(j);
        re = z.x;
        im = z.y;
      },
      [&](int k, float2 z) { shared[k * pitchThere + t * C + c] = z; });
  }
  __syncthreads();
  float re[B];
  float im[B];
  if (t < A)
  {
    SecondPass<B>(re, im, [&](int i) { return shared[t * pitchThere + i * C + c]; });
  }
  const int  first = t - cell.y.crop;
  const auto kept = static_cast<unsigned int>(cell.y.output);
  for (int i = 0; i < cell.x.nodes; ++i)
  {
    float sumRe[A];
    float sumIm[A];
#pragma unroll
    for (int q = 0; q < A; ++q)
    {
      sumRe[q] = sumIm[q] = 0.0f;
    }
    for (int j = 0; j < cell.y.nodes; ++j)
    {
      const int node = (cell.y.node + j) * grid.nodes[0] + cell.x.node + i;
      __syncthreads();
      if (t < A)
      {
        const float2 * const spectrum =
          spectra + (static_cast<std::int64_t>(node) * perCell + part) * (A * B * C) + t * C + c;
        // The frequencies t + A i, as the transform back begins with, real and imaginary parts exchanged.
        FirstPass<B, A, false>(
          t,
          back,
          [&](int q, float & outRe, float & outIm) {
            const float2 k = __ldg(spectrum + q * A * C);
            outIm = fmaf(re[q], k.x, -im[q] * k.y);
            outRe = fmaf(re[q], k.y, im[q] * k.x);
          },
          [&](int k, float2 z) { shared[k * pitchBack + t * C + c] = z; });
      }
      __syncthreads();
      if (t < B)
      {
        float x[A];
        float y[A];
        SecondPass<A>(x, y, [&](int q) { return shared[t * pitchBack + q * C + c]; });
#pragma unroll
        for (int q = 0; q < A; ++q)
        {
          const int row = first + B * q;
          // One comparison: below 0 is beyond.
          if (static_cast<unsigned int>(row) < kept)
          {
            const float weight = apart ? 1.0f : WeightOf(grid, 1, cell.y.node + j, cell.y.outLower + row);
            sumRe[q] = fmaf(weight, y[q], sumRe[q]);
            sumIm[q] = fmaf(weight, x[q], sumIm[q]);
          }
        }
      }
      if (t < B && (apart || j + 1 == cell.y.nodes))
      {
        const int      term = apart ? i * cell.y.nodes + j : i;
        float2 * const to =
          out + (static_cast<std::int64_t>(local) * grid.terms + term) * grid.termRows * columns + part * C + c;
#pragma unroll
        for (int q = 0; q < A; ++q)
        {
          const int row = first + B * q;
          if (static_cast<unsigned int>(row) < kept)
          {
            to[static_cast<std::int64_t>(row) * columns] = make_float2(sumRe[q], sumIm[q]);
          }
          sumRe[q] = sumIm[q] = 0.0f;
        }
      }
    }
  }
}

template <int A, int B>
void
RunForwardRows(cudaStream_t stream, int cells, const CellGrid & grid, const CellSource & source, float2 * out,
               const float2 * there)
{
  constexpr int C = RowsPerBlock;
  // The other modes end at the edge, where the box does.
  const bool general = source.kind != PixelKind::Float32 || source.stride[0] != 1 ||
                       (source.mode != BoundaryMode::Renormalized && source.mode != BoundaryMode::Constant);
  LaunchPasses("CellForwardRowsKernel",
               general ? CellForwardRowsKernel<A, B, C, true> : CellForwardRowsKernel<A, B, C, false>,
               stream,
               static_cast<std::int64_t>(cells) * ((grid.rows + C - 1) / C),
               C * Larger(A, B),
               sizeof(float2) * C * RowLines<A, B>::line,
               grid,
               source,
               out,
               there);
}

template <int A, int B>
void
RunInverseRows(cudaStream_t stream, int cells, const CellGrid & grid, const CellTarget & target, const float2 * in,
               const float2 * back)
{
  constexpr int C = RowsPerBlock;
  const bool    general = target.kind != PixelKind::Float32 || target.stride[0] != 1;
  LaunchPasses("CellInverseRowsKernel",
               general ? CellInverseRowsKernel<A, B, C, true> : CellInverseRowsKernel<A, B, C, false>,
               stream,
               static_cast<std::int64_t>(cells) * ((grid.termRows + C - 1) / C),
               C * Larger(A, B),
               (sizeof(float2) * RowLines<A, B>::line + sizeof(float) * 2 * A * B) * C,
               grid,
               target,
               in,
               back);
}

template <int A, int B>
void
RunSpectra(cudaStream_t stream, int kernels, int kernelRows, int columns, float scale, const float2 * in, float2 * out,
           const float2 * there)
{
  constexpr int C = ColumnsPerBlock;
  LaunchPasses("CellSpectraKernel",
               CellSpectraKernel<A, B, C>,
               stream,
               static_cast<std::int64_t>(kernels) * (columns / C),
               C * Larger(A, B),
               sizeof(float2) * ColumnLines<A, B, C>::numbers,
               kernelRows,
               columns,
               scale,
               in,
               out,
               there);
}

template <int A, int B>
void
RunProduct(cudaStream_t stream, int cells, const CellGrid & grid, int columns, const float2 * in, float2 * out,
           const float2 * there, const float2 * back, const float2 * spectra)
{
  constexpr int C = ColumnsPerBlock;
  LaunchPasses("CellProductKernel",
               CellProductKernel<A, B, C>,
               stream,
               static_cast<std::int64_t>(cells) * (columns / C),
               C * Larger(A, B),
               sizeof(float2) * ColumnLines<A, B, C>::numbers,
               grid,
               columns,
               in,
               out,
               there,
               back,
               spectra);
}

/** 2 A B points. */
template <int A, int B>
CellRows
MakeRows()
{
  return { FindFixedRows(2 * A * B), RunForwardRows<A, B>, RunInverseRows<B, A> };
}

template <int A, int B>
CellColumns
MakeColumns()
{
  return { FindFixedColumns(A * B), RunSpectra<A, B>, RunProduct<A, B> };
}

} // namespace

const std::vector<CellRows> &
GetCellRows()
{
  // The factors are those of the fixed transforms of these lengths.
  static const auto & rows =
    *new std::vector<CellRows>{ MakeRows<16, 8>(),  MakeRows<16, 9>(),  MakeRows<16, 10>(), MakeRows<16, 12>(),
                                MakeRows<16, 15>(), MakeRows<16, 16>(), MakeRows<16, 20>() };
  return rows;
}

const std::vector<CellColumns> &
GetCellColumns()
{
  static const auto & columns =
    *new std::vector<CellColumns>{ MakeColumns<16, 8>(),  MakeColumns<16, 12>(), MakeColumns<16, 15>(),
                                   MakeColumns<16, 16>(), MakeColumns<18, 16>(), MakeColumns<20, 16>(),
                                   MakeColumns<20, 18>(), MakeColumns<24, 16>(), MakeColumns<24, 18>(),
                                   MakeColumns<32, 16>(), MakeColumns<32, 20>() };
  return columns;
}

} // namespace chunkwise
