/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaCellFft.h"
#include "chunkwiseCudaFixedPasses.cuh"
#include "chunkwiseCudaPixelsOfKind.cuh"

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

/** Which columns a block transforms, C side by side, and what of them a thread does. */
template <int C>
struct ColumnThread
{
  int c; ///< the column
  int t; ///< the first of its points
  int perCell;
  int local; ///< cell of the launch
  int part;  ///< block of the cell
  int column;

  __device__ explicit ColumnThread(int columns)
    : c(threadIdx.x % C)
    , t(threadIdx.x / C)
    , perCell(columns / C)
    , local(blockIdx.x / perCell)
    , part(blockIdx.x - local * perCell)
    , column(part * C + c)
  {}
};

struct Cell
{
  int          atX;
  int          atY;
  CellInterval x;
  CellInterval y;
  /** A term is then one node's. */
  bool apart;

  __device__
  Cell(const CellGrid & grid, int local)
    : atX((grid.first + local) % grid.along)
    , atY((grid.first + local) / grid.along)
    , x(grid.axis[0][atX])
    , y(grid.axis[1][atY])
    , apart(grid.factors.data && (x.cut || y.cut))
  {}
  __device__ int
  Terms() const
  {
    return x.nodes * (apart ? y.nodes : 1);
  }
  __device__ int
  NodeX(int term) const
  {
    return x.node + (apart ? term / y.nodes : term);
  }
  /** The first node that shares the term. */
  __device__ int
  NodeY(int term) const
  {
    return y.node + (apart ? term % y.nodes : 0);
  }
};

__device__ __forceinline__ float
WeightOf(const CellGrid & grid, int axis, int node, std::int64_t i)
{
  return __ldg(grid.weights[axis] + node * grid.n[axis] + i);
}

/** The factors of a term at each of a row's `length` positions, of which `count` from `crop` on are voxels, from `x`
 * on; for each of `rows` rows from `y` on if they differ. */
__device__ __forceinline__ void
FillWeights(const CellGrid & grid, const Cell & cell, int term, int length, int crop, int count, std::int64_t x,
            int rows, std::int64_t y, float * weights)
{
  const CellFactors & factors = grid.factors;
  const int           nodeX = cell.NodeX(term);
  const int           nodeY = cell.NodeY(term);
  const RowStates     states(x, grid.n[0], factors.kernel[0], factors.below[0]);
  for (int i = threadIdx.x; i < (cell.apart ? rows : 1) * length; i += blockDim.x)
  {
    const int row = i / length;
    const int at = i - row * length - crop;
    float     weight = 0.0f;
    if (at >= 0 && at < count)
    {
      weight = WeightOf(grid, 0, nodeX, x + at);
      if (cell.apart)
      {
        const std::int64_t node = static_cast<std::int64_t>(nodeY) * grid.nodes[0] + nodeX;
        const std::int64_t state = ConvolutionFactors::State(y + row, grid.n[1], factors.kernel[1], factors.below[1]);
        weight *= WeightOf(grid, 1, nodeY, y + row) *
                  __ldg(factors.data + (node * factors.states[1] + state) * factors.states[0] + states.At(at));
      }
    }
    weights[i] = weight;
  }
}

/** With `VGeneral` taps may lie beyond the box, voxels apart, and pixels be of any kind. */
template <int A, int B, int C, bool VGeneral, bool VSpread>
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
  const int                                     perCell = ((VSpread ? grid.termRows : grid.rows) + C - 1) / C;
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
  auto * const weights = reinterpret_cast<float *>(shared + C * line);
  const int    terms = VSpread ? cell.Terms() : 1;
  for (int term = 0; term < terms; ++term)
  {
    if (VSpread)
    {
      FillWeights(grid, cell, term, 2 * M, 0, live, cell.x.inLower, rows, cell.y.inLower + firstRow, weights);
      __syncthreads();
    }
    const int firstC = threadIdx.x / B;
    const int t = threadIdx.x % B;
    if (firstC < rows)
    {
      const std::int64_t y =
        MapTap(cell.y.inLower + firstRow + firstC, source.boxLower[1], source.boxUpper[1], grid.n[1], source.mode);
      const std::int64_t  at = (y - source.boxLower[1]) * source.stride[1];
      const float * const row = static_cast<const float *>(source.data) + at + cell.x.inLower - source.boxLower[0] + t;
      const float * const weight = weights + (cell.apart ? firstC * 2 * M : 0) + t;
      const auto          load = [&](int n) {
        float value = 0.0f;
        if constexpr (VGeneral)
        {
          value = LoadOfKind(source.data, source.kind, at + taps[t + n] * source.stride[0]);
        }
        else
        {
          value = __ldg(row + n);
        }
        return VSpread ? value * weight[n] : value - source.constant;
      };
      FirstRowPass<A, B>(t, live, twiddles, load, [&](int k, float2 z) { shared[firstC * line + k * pitch + t] = z; });
    }
    __syncthreads();
    const int c = threadIdx.x / A;
    const int s = threadIdx.x % A;
    if (c < rows)
    {
      float re[B];
      float im[B];
      SecondPass<B>(re, im, [&](int i) { return shared[c * line + s * pitch + i]; });
      const std::int64_t first = VSpread
                                   ? (static_cast<std::int64_t>(local) * grid.terms + term) * grid.termRows + firstRow
                                   : static_cast<std::int64_t>(local) * grid.rows + firstRow;
      float2 * const     row = out + (first + c) * M + s;
#pragma unroll
      for (int q = 0; q < B; ++q)
      {
        row[A * q] = make_float2(re[q], im[q]);
      }
    }
    __syncthreads();
  }
}

template <int A, int B, int C, bool VGeneral, bool VSpread>
__global__ void
__launch_bounds__(C * Larger(A, B), BlocksOf(C * Larger(A, B), Larger(A, B) + B / 2))
  CellInverseRowsKernel(CellGrid grid, CellTarget target, const float2 * __restrict__ in,
                        const float2 * __restrict__ twiddles)
{
  constexpr int     M = A * B;
  constexpr int     pitch = RowLines<A, B>::pitch;
  constexpr int     line = RowLines<A, B>::line;
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  // The weights of each position, or of each position of each row.
  auto * const weights = reinterpret_cast<float *>(shared + C * line);
  const int    perCell = ((VSpread ? grid.rows : grid.termRows) + C - 1) / C;
  const int    local = blockIdx.x / perCell;
  const int    firstRow = (blockIdx.x - local * perCell) * C;
  const Cell   cell(grid, local);
  const int    rows = min(C, cell.y.output - firstRow);
  if (rows <= 0 ||
      (VSpread && (cell.atX % target.colors[0] != target.color[0] || cell.atY % target.colors[1] != target.color[1])))
  {
    return;
  }
  const int          firstC = threadIdx.x / B;
  const int          t = threadIdx.x % B;
  const int          c = threadIdx.x / A;
  const int          s = threadIdx.x % A;
  const int          first = s - cell.x.crop;
  const auto         kept = static_cast<unsigned int>(cell.x.output);
  const std::int64_t x = cell.x.outLower + first;
  const std::int64_t y = cell.y.outLower + firstRow + c;
  float              sums[2 * B];
#pragma unroll
  for (int q = 0; q < 2 * B; ++q)
  {
    sums[q] = 0.0f;
  }
  const int terms = VSpread ? 1 : cell.Terms();
  for (int term = 0; term < terms; ++term)
  {
    if (!VSpread)
    {
      FillWeights(grid,
                  cell,
                  term,
                  2 * M,
                  cell.x.crop,
                  cell.x.output,
                  cell.x.outLower,
                  rows,
                  cell.y.outLower + firstRow,
                  weights);
    }
    if (firstC < rows)
    {
      const std::int64_t   begin = VSpread
                                     ? static_cast<std::int64_t>(local) * grid.rows + firstRow
                                     : (static_cast<std::int64_t>(local) * grid.terms + term) * grid.termRows + firstRow;
      const float2 * const row = in + (begin + firstC) * M + t;
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
      for (int j = 0; !VSpread && target.constants && j < cell.y.nodes; ++j)
      {
        const int nodeY = cell.y.node + j;
        constant = fmaf(
          WeightOf(grid, 1, nodeY, y), __ldg(target.constants + nodeY * grid.nodes[0] + cell.NodeX(term)), constant);
      }
      const float * const weight = weights + (cell.apart ? c * 2 * M : 0) + s;
#pragma unroll
      for (int q = 0; q < B; ++q)
      {
        sums[q] = VSpread ? im[q] : fmaf(im[q] + constant, weight[A * q], sums[q]);
        sums[B + q] = VSpread ? -re[q] : fmaf(constant - re[q], weight[A * q + M], sums[B + q]);
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
        const std::int64_t to = at + (VGeneral ? n * target.stride[0] : n);
        if constexpr (VSpread)
        {
          static_cast<float *>(target.data)[to] += value;
        }
        else if constexpr (VGeneral)
        {
          StoreOfKind(target.data, target.kind, to, value);
        }
        else
        {
          static_cast<float *>(target.data)[to] = value;
        }
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
  const ColumnThread<C>                         own(columns);
  const int                                     c = own.c;
  const int                                     t = own.t;
  if (t < B)
  {
    ColumnReader<B> reader(
      in + static_cast<std::int64_t>(own.local) * kernelRows * columns + own.column, columns, t, kernelRows);
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
__launch_bounds__(C * Larger(A, B), BlocksOf(C * Larger(A, B), A + B))
  CellProductKernel(CellGrid grid, int columns, const float2 * __restrict__ in, float2 * __restrict__ out,
                    const float2 * __restrict__ there, const float2 * __restrict__ back,
                    const float2 * __restrict__ spectra)
{
  constexpr int     pitchThere = ColumnLines<A, B, C>::there;
  constexpr int     pitchBack = ColumnLines<A, B, C>::back;
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  const ColumnThread<C>                         own(columns);
  const int                                     c = own.c;
  const int                                     t = own.t;
  const Cell                                    cell(grid, own.local);
  const bool                                    apart = cell.apart;
  if (t < B)
  {
    ColumnReader<B> reader(
      in + static_cast<std::int64_t>(own.local) * grid.rows * columns + own.column, columns, t, cell.y.input);
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
  // A thread's own: registers are for what is transformed.
  float2 * const frequencies = shared + ColumnLines<A, B, C>::numbers + t * C + c;
  if (t < A)
  {
    float re[B];
    float im[B];
    SecondPass<B>(re, im, [&](int i) { return shared[t * pitchThere + i * C + c]; });
#pragma unroll
    for (int q = 0; q < B; ++q)
    {
      frequencies[q * A * C] = make_float2(re[q], im[q]);
    }
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
          spectra + (static_cast<std::int64_t>(node) * own.perCell + own.part) * (A * B * C) + t * C + c;
        // The frequencies t + A i, as the transform back begins with, real and imaginary parts exchanged.
        FirstPass<B, A, false>(
          t,
          back,
          [&](int q, float & outRe, float & outIm) {
            const float2 z = frequencies[q * A * C];
            const float2 k = __ldg(spectrum + q * A * C);
            outIm = fmaf(z.x, k.x, -z.y * k.y);
            outRe = fmaf(z.x, k.y, z.y * k.x);
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
          out + (static_cast<std::int64_t>(own.local) * grid.terms + term) * grid.termRows * columns + own.column;
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

template <int A, int B, int C>
__global__ void
__launch_bounds__(C * Larger(A, B), BlocksOf(C * Larger(A, B), 2 * B + A))
  CellSpreadProductKernel(CellGrid grid, int columns, const float2 * __restrict__ in, float2 * __restrict__ out,
                          const float2 * __restrict__ there, const float2 * __restrict__ back,
                          const float2 * __restrict__ spectra)
{
  constexpr int     pitchThere = ColumnLines<A, B, C>::there;
  constexpr int     pitchBack = ColumnLines<A, B, C>::back;
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  const ColumnThread<C>                         own(columns);
  const int                                     c = own.c;
  const int                                     t = own.t;
  const Cell                                    cell(grid, own.local);
  float                                         sumRe[B];
  float                                         sumIm[B];
#pragma unroll
  for (int q = 0; q < B; ++q)
  {
    sumRe[q] = sumIm[q] = 0.0f;
  }
  for (int i = 0; i < cell.x.nodes; ++i)
  {
    for (int j = 0; j < cell.y.nodes; ++j)
    {
      if (t < B)
      {
        const int       term = cell.apart ? i * cell.y.nodes + j : i;
        const float *   weight = grid.weights[1] + (cell.y.node + j) * grid.n[1] + cell.y.inLower + t;
        ColumnReader<B> reader(
          in + (static_cast<std::int64_t>(own.local) * grid.terms + term) * grid.termRows * columns + own.column,
          columns,
          t,
          cell.y.input);
        FirstPass<A, B, false>(
          t,
          there,
          [&](int q, float & re, float & im) {
            const float2 z = reader.Next(q);
            const float  w = !cell.apart && t + B * q < cell.y.input ? __ldg(weight + B * q) : 1.0f;
            re = z.x * w;
            im = z.y * w;
          },
          [&](int k, float2 z) { shared[k * pitchThere + t * C + c] = z; });
      }
      __syncthreads();
      if (t < A)
      {
        const std::int64_t   node = (cell.y.node + j) * grid.nodes[0] + cell.x.node + i;
        const float2 * const spectrum = spectra + (node * own.perCell + own.part) * (A * B * C) + t * C + c;
        float                re[B];
        float                im[B];
        SecondPass<B>(re, im, [&](int q) { return shared[t * pitchThere + q * C + c]; });
#pragma unroll
        for (int q = 0; q < B; ++q)
        {
          const float2 k = __ldg(spectrum + q * A * C);
          sumRe[q] = fmaf(re[q], k.x, fmaf(-im[q], k.y, sumRe[q]));
          sumIm[q] = fmaf(re[q], k.y, fmaf(im[q], k.x, sumIm[q]));
        }
      }
      __syncthreads();
    }
  }
  if (t < A)
  {
    FirstPass<B, A, false>(
      t,
      back,
      [&](int q, float & re, float & im) {
        re = sumIm[q];
        im = sumRe[q];
      },
      [&](int k, float2 z) { shared[k * pitchBack + t * C + c] = z; });
  }
  __syncthreads();
  if (t < B)
  {
    float x[A];
    float y[A];
    SecondPass<A>(x, y, [&](int q) { return shared[t * pitchBack + q * C + c]; });
    const int      first = t - cell.y.crop;
    float2 * const to = out + static_cast<std::int64_t>(own.local) * grid.rows * columns + own.column;
#pragma unroll
    for (int q = 0; q < A; ++q)
    {
      const int row = first + B * q;
      if (static_cast<unsigned int>(row) < static_cast<unsigned int>(cell.y.output))
      {
        to[static_cast<std::int64_t>(row) * columns] = make_float2(y[q], x[q]);
      }
    }
  }
}

/** Rows in shared memory, and weights of each position, or of each position of each row. */
template <int A, int B>
constexpr std::size_t RowBytes = (sizeof(float2) * RowLines<A, B>::line + sizeof(float) * 2 * A * B) * RowsPerBlock;

template <int A, int B, bool VSpread>
void
RunForwardRows(cudaStream_t stream, int cells, const CellGrid & grid, const CellSource & source, float2 * out,
               const float2 * there)
{
  constexpr int C = RowsPerBlock;
  // The other modes end at the edge, where the box does.
  const bool general = source.kind != PixelType::Float32 || source.stride[0] != 1 ||
                       (source.mode != BoundaryMode::Renormalized && source.mode != BoundaryMode::Constant);
  LaunchPasses("CellForwardRowsKernel",
               general ? CellForwardRowsKernel<A, B, C, true, VSpread> : CellForwardRowsKernel<A, B, C, false, VSpread>,
               stream,
               static_cast<std::int64_t>(cells) * (((VSpread ? grid.termRows : grid.rows) + C - 1) / C),
               C * Larger(A, B),
               VSpread ? RowBytes<A, B> : sizeof(float2) * C * RowLines<A, B>::line,
               grid,
               source,
               out,
               there);
}

template <int A, int B, bool VSpread>
void
RunInverseRows(cudaStream_t stream, int cells, const CellGrid & grid, const CellTarget & target, const float2 * in,
               const float2 * back)
{
  constexpr int C = RowsPerBlock;
  const bool    general = target.kind != PixelType::Float32 || target.stride[0] != 1;
  LaunchPasses("CellInverseRowsKernel",
               general ? CellInverseRowsKernel<A, B, C, true, VSpread> : CellInverseRowsKernel<A, B, C, false, VSpread>,
               stream,
               static_cast<std::int64_t>(cells) * (((VSpread ? grid.rows : grid.termRows) + C - 1) / C),
               C * Larger(A, B),
               VSpread ? sizeof(float2) * C * RowLines<A, B>::line : RowBytes<A, B>,
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

template <int A, int B, bool VSpread>
void
RunProduct(cudaStream_t stream, int cells, const CellGrid & grid, int columns, const float2 * in, float2 * out,
           const float2 * there, const float2 * back, const float2 * spectra)
{
  constexpr int C = ColumnsPerBlock;
  LaunchPasses("CellProductKernel",
               VSpread ? CellSpreadProductKernel<A, B, C> : CellProductKernel<A, B, C>,
               stream,
               static_cast<std::int64_t>(cells) * (columns / C),
               C * Larger(A, B),
               sizeof(float2) * (ColumnLines<A, B, C>::numbers + (VSpread ? 0 : A * B * C)),
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
  return { FindFixedRows(2 * A * B),
           { RunForwardRows<A, B, false>, RunForwardRows<A, B, true> },
           { RunInverseRows<B, A, false>, RunInverseRows<B, A, true> } };
}

template <int A, int B>
CellColumns
MakeColumns()
{
  return { FindFixedColumns(A * B), RunSpectra<A, B>, { RunProduct<A, B, false>, RunProduct<A, B, true> } };
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
