/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaDerivativePasses_cuh
#define chunkwiseCudaDerivativePasses_cuh

#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseDerivativeOperation.h"
#include "chunkwiseLaplacianOperation.h"
#include "chunkwiseRunSums.h"

// The passes of DerivativeOperation one by one, a thread a voxel, for windows of any radius along any axes; and the
// results that are made of a voxel's derivatives.
namespace chunkwise
{

/** The weights along an axis, see DerivativeOperation::GetTable. */
template <typename TAcc>
struct DerivativeAxis
{
  const TAcc * weights[DerivativeOperation::LargestOrder + 1]; ///< of orders that no component has: nullptr
  std::int64_t rows;
  std::int64_t extent; ///< of the image along the axis
  std::int64_t radius;
  double       factor;   ///< of an order
  bool         skipsNan; ///< see DerivativeOperation

  /** The weights at image index `i`, from the middle tap on. */
  __device__ const TAcc *
  Middle(int order, std::int64_t i) const
  {
    return weights[order] + WeightRow(i, extent, radius, rows) * (2 * radius + 1) + radius;
  }
};

/** The fields that a pass reads: `gap` numbers from one to the next. */
template <typename TAcc>
struct DerivativeFields
{
  const TAcc * data; ///< of voxel box.lower of the first field
  std::int64_t gap;
  Box          box;
  Coordinates  stride;

  __device__ std::int64_t
             Offset(const Coordinates & index) const
  {
    return Voxels<const TAcc>{ data, box, stride }.Offset(index);
  }
};

/** The field that a window is laid over: one that a pass reads, or the product of two; `second` below 0: no product. */
struct DerivativeFactors
{
  int first;
  int second;
};

/** The window of an order at image index `i`, of which the taps from `lower` to before `upper` exist; tap(t) gives the
 * value t voxels after the middle. */
template <typename TAcc, typename TTap>
__device__ __forceinline__ TAcc
SumAllTaps(const DerivativeAxis<TAcc> & axis, int order, std::int64_t i, std::int64_t lower, std::int64_t upper,
           TTap && tap)
{
  const std::int64_t radius = axis.radius;
  const TAcc * const w = axis.Middle(order, i);
  const TAcc         center = tap(0);
  TAcc               sum = 0;
  if (i - radius < lower || i + radius >= upper)
  {
    const std::int64_t first = max(lower - i, -radius);
    const std::int64_t last = min(upper - 1 - i, radius);
    for (std::int64_t t = first; t <= last; ++t)
    {
      sum = MultiplyAdd(w[t], order == 0 ? tap(t) : tap(t) - center, sum);
    }
    return sum;
  }
  if (order == 0)
  {
    for (std::int64_t t = radius; t > 0; --t)
    {
      sum = MultiplyAdd(w[t], tap(t) + tap(-t), sum);
    }
    return MultiplyAdd(w[0], center, sum);
  }
  if (order == 2)
  {
    for (std::int64_t t = radius; t > 0; --t)
    {
      sum = MultiplyAdd(w[t], (tap(t) - center) + (tap(-t) - center), sum);
    }
    return MultiplyAdd(w[0], center, sum);
  }
  for (std::int64_t t = radius; t > 0; --t)
  {
    sum = MultiplyAdd(w[t], tap(t) - tap(-t), sum);
  }
  return sum;
}

/** The same, or that of the run of numbers around a voxel, where NaN takes no part. */
template <typename TAcc, typename TTap>
__device__ __forceinline__ TAcc
SumDerivative(const DerivativeAxis<TAcc> & axis, int order, std::int64_t i, std::int64_t lower, std::int64_t upper,
              TTap && tap)
{
  const TAcc sum = SumAllTaps(axis, order, i, lower, upper, tap);
  if (!axis.skipsNan)
  {
    return sum;
  }
  const TAcc center = tap(0);
  if (sum == sum && center == center)
  {
    return sum;
  }
  const TAcc * const weights = axis.Middle(0, i);
  return RunSum(
    sum, order, axis.factor, max(lower - i, -axis.radius), min(upper - 1 - i, axis.radius), tap, [&](std::int64_t t) {
      return weights[t];
    });
}

/** The same along axis `a` of fields in memory, at a voxel with this offset. */
template <typename TAcc>
__device__ __forceinline__ TAcc
SumDerivativeOf(const DerivativeAxis<TAcc> & axis, int order, const DerivativeFields<TAcc> & in,
                const DerivativeFactors & factors, int a, std::int64_t i, std::int64_t offset)
{
  const TAcc * const first = in.data + factors.first * in.gap + offset;
  const std::int64_t step = in.stride.axis[a];
  const std::int64_t lower = in.box.lower.axis[a];
  const std::int64_t upper = in.box.upper.axis[a];
  if (factors.second < 0)
  {
    return SumDerivative(axis, order, i, lower, upper, [&](std::int64_t t) { return first[t * step]; });
  }
  const TAcc * const second = in.data + factors.second * in.gap + offset;
  return SumDerivative(
    axis, order, i, lower, upper, [&](std::int64_t t) { return first[t * step] * second[t * step]; });
}

/** Square roots for the measures that both backends share. */
struct DerivativeRoot
{
  CHUNKWISE_HOST_DEVICE double
  operator()(double square) const
  {
    return sqrt(square);
  }
};

/** Whether objectness of blobs or tubes is 0 for certain: it needs two eigenvalues of one sign, of which none is
 * smaller in magnitude than the third. Then the trace has that sign, and is no smaller than the largest eigenvalue,
 * which is at least the norm over the root of 3. A margin stands for roundings. False if something is not a number. */
__device__ __forceinline__ bool
IsNoTube(const float * triangle, bool dark)
{
  const auto   at = [triangle](int c) { return static_cast<double>(triangle[c]); };
  const double sum = at(0) + at(3) + at(5);
  const double trace = dark ? -sum : sum;
  const double beside = at(1) * at(1) + at(2) * at(2) + at(4) * at(4);
  const double squares = at(0) * at(0) + at(3) * at(3) + at(5) * at(5) + 2 * beside;
  return trace >= 0 || 3 * trace * trace < 0.999 * squares;
}

/** Stores a result as another kind. Never part of its callers, of which it would be nearly all of the code. */
template <typename TAcc>
__device__ __noinline__ void
PutConverted(void * out, PixelType kind, std::int64_t offset, bool keepsLargest, TAcc value)
{
  DispatchKindOnDevice(kind, [&](auto pixel) {
    auto * const to = static_cast<decltype(pixel) *>(out) + offset;
    const auto   converted = ConvertResult<decltype(pixel)>(value);
    if (!keepsLargest || converted > *to)
    {
      *to = converted;
    }
  });
}

/** The most derivatives of which one result is made: a gradient and a Hessian. */
constexpr int MostStaged = 9;

/** Makes a voxel's results of its derivatives, and stores them. */
struct DerivativeFinish
{
  DerivativeResult         result;
  HessianMeasureParameters measure;
  TensorParameters         tensor;
  CurvatureParameters      curvature;
  int                      first; ///< the results that are stored, which have numbers up to before `last`
  int                      last;
  void *                   out; ///< of result `first`
  PixelType                kind;
  Coordinates              stride;
  std::int64_t             gap; ///< from one result to the next
  /** Results may be 0 where IsNoTube says so. */
  bool hasZeros;
  /** Results are stored if they are larger than the output's value: they are those of a later scale. */
  bool keepsLargest;

  /** Stores result `number` of the first `count` of a line of voxels, which are `step` apart; `offset` is the first
   * one's. */
  template <typename TAcc, int VMost>
  __device__ __forceinline__ void
  StoreLine(int number, std::int64_t offset, std::int64_t step, int count, const TAcc (&values)[VMost]) const
  {
    if (number < first || number >= last)
    {
      return;
    }
    offset += (number - first) * gap;
#pragma unroll
    for (int u = 0; u < VMost; ++u, offset += step)
    {
      if (u < count)
      {
        Put(offset, values[u]);
      }
    }
  }
  /** Stores results 0 to before VCount of a voxel. */
  template <typename TAcc, int VCount>
  __device__ __forceinline__ void
  StoreResults(std::int64_t offset, const TAcc (&values)[VCount]) const
  {
    offset -= first * gap;
#pragma unroll
    for (int v = 0; v < VCount; ++v, offset += gap)
    {
      if (v >= first && v < last)
      {
        Put(offset, values[v]);
      }
    }
  }
  /** Stores result `number` of a voxel. */
  template <typename TAcc>
  __device__ __forceinline__ void
  Store(int number, std::int64_t offset, TAcc value) const
  {
    const TAcc values[1]{ value };
    StoreLine(number, offset, 0, 1, values);
  }
  template <typename TAcc>
  __device__ __forceinline__ void
  Put(std::int64_t offset, TAcc value) const
  {
    if (kind != PixelTypeOf<TAcc>())
    {
      return PutConverted(out, kind, offset, keepsLargest, value);
    }
    TAcc * const to = static_cast<TAcc *>(out) + offset;
    if (!keepsLargest || value > *to)
    {
      *to = value;
    }
  }

  /** The curvature in VSize dimensions: `derivatives` are the gradient and the upper triangle of the
   * Hessian. */
  template <int VSize, typename TAcc>
  __device__ __forceinline__ void
  StoreCurvature(const TAcc * derivatives, std::int64_t offset) const
  {
    constexpr int count = VSize + VSize * (VSize + 1) / 2;
    double        d[count];
#pragma unroll
    for (int c = 0; c < count; ++c)
    {
      d[c] = static_cast<double>(derivatives[c]);
    }
    Store(0, offset, static_cast<TAcc>(CurvatureOf(d, VSize, curvature, DerivativeRoot())));
  }

  /** The results of a matrix of VSize rows. */
  template <int VSize, typename TAcc>
  __device__ __forceinline__ void
  StoreMatrix(const TAcc * triangle, std::int64_t offset) const
  {
    const DerivativeRoot root;
    double               h[VSize * (VSize + 1) / 2];
    double               values[3]{};
#pragma unroll
    for (int c = 0; c < VSize * (VSize + 1) / 2; ++c)
    {
      h[c] = static_cast<double>(triangle[c]);
    }
    EigenvaluesOf(h, VSize, values, root);
    switch (result)
    {
      case DerivativeResult::Measure:
        return Store(
          0, offset, static_cast<TAcc>(HessianMeasureOf<double, std::uint64_t>(values, VSize, measure, root)));
      case DerivativeResult::Coherence:
        return Store(0, offset, static_cast<TAcc>(CoherenceOf(values, VSize)));
      case DerivativeResult::Cornerness:
        return Store(0, offset, static_cast<TAcc>(CornernessOf(values, VSize, tensor.harris)));
      case DerivativeResult::Direction:
      {
        double direction[3]{};
        DirectionOf(h, values, VSize, direction, root);
#pragma unroll
        for (int v = 0; v < VSize; ++v)
        {
          Store(v, offset, static_cast<TAcc>(direction[v]));
        }
        return;
      }
      case DerivativeResult::Eigenvectors:
      {
        double vectors[VSize * VSize];
        EigenvectorsOf(h, values, VSize, vectors, root);
#pragma unroll
        for (int v = 0; v < VSize * VSize; ++v)
        {
          Store(v, offset, static_cast<TAcc>(vectors[v]));
        }
        return;
      }
      case DerivativeResult::Diffusivity:
      {
        double diffusion[VSize * (VSize + 1) / 2];
        DiffusionTensorOf<double, std::uint64_t>(h, values, VSize, tensor, diffusion, root);
#pragma unroll
        for (int c = 0; c < VSize * (VSize + 1) / 2; ++c)
        {
          Store(c, offset, static_cast<TAcc>(diffusion[c]));
        }
        return;
      }
      case DerivativeResult::ByMagnitude:
#pragma unroll
        for (int step = 0; step < 3; ++step)
        {
          if (step % 2 + 1 < VSize)
          {
            OrderByMagnitude(values[step % 2], values[step % 2 + 1]);
          }
        }
        break;
      default:
        break;
    }
    TAcc results[VSize];
#pragma unroll
    for (int v = 0; v < VSize; ++v)
    {
      results[v] = static_cast<TAcc>(values[v]);
    }
    StoreResults(offset, results);
  }
};

/** A field that a pass makes; it lies dense in a box. */
template <typename TAcc>
__global__ void
DerivativePassKernel(const __grid_constant__ DerivativeAxis<TAcc> axis,
                     const __grid_constant__ DerivativeFields<TAcc> in, DerivativeFactors factors, int order, int a,
                     const __grid_constant__ Box box, TAcc * __restrict__ out)
{
  const std::int64_t count = box.NumberOfVoxels();
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; n < count; n += step)
  {
    const Coordinates index = IndexIn(box, n);
    out[n] = SumDerivativeOf(axis, order, in, factors, a, index.axis[a], in.Offset(index));
  }
}

/** A derivative of which the last pass makes a component. */
struct DerivativeComponent
{
  DerivativeFactors factors;
  int               order;
};

/** The last pass, and what is made of its components: those of a voxel by one thread. */
template <typename TAcc>
__global__ void
DerivativeFinishKernel(const __grid_constant__ DerivativeAxis<TAcc> axis,
                       const __grid_constant__ DerivativeFields<TAcc> in,
                       const DerivativeComponent * __restrict__ components, int count, int a,
                       const __grid_constant__ Box box, const __grid_constant__ DerivativeFinish finish)
{
  const std::int64_t voxels = box.NumberOfVoxels();
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; n < voxels; n += step)
  {
    const Coordinates  index = IndexIn(box, n);
    const std::int64_t from = in.Offset(index);
    const auto         componentOf = [&](int c) {
      return SumDerivativeOf(axis, components[c].order, in, components[c].factors, a, index.axis[a], from);
    };
    std::int64_t offset = 0;
    for (int b = 0; b < MaxDimension; ++b)
    {
      offset += (index.axis[b] - box.lower.axis[b]) * finish.stride.axis[b];
    }
    if (finish.result == DerivativeResult::Components)
    {
      for (int c = finish.first; c < finish.last; ++c)
      {
        finish.Store(c, offset, componentOf(c));
      }
      continue;
    }
    if (finish.result == DerivativeResult::Magnitude)
    {
      TAcc sum = 0;
      for (int c = 0; c < count; ++c)
      {
        const TAcc d = componentOf(c);
        sum = MultiplyAdd(d, d, sum);
      }
      finish.Store(0, offset, static_cast<TAcc>(sqrt(sum)));
      continue;
    }
    if (finish.result == DerivativeResult::Sum)
    {
      TAcc sum = 0;
      for (int c = 0; c < count; ++c)
      {
        sum = sum + componentOf(c);
      }
      finish.Store(0, offset, sum);
      continue;
    }
    TAcc triangle[MostStaged]{};
#pragma unroll 1
    for (int c = 0; c < count; ++c)
    {
      triangle[c] = componentOf(c);
    }
    switch (count)
    {
      case 5:
        finish.template StoreCurvature<2>(triangle, offset);
        break;
      case 9:
        finish.template StoreCurvature<3>(triangle, offset);
        break;
      case 1:
        finish.template StoreMatrix<1>(triangle, offset);
        break;
      case 3:
        finish.template StoreMatrix<2>(triangle, offset);
        break;
      default:
        finish.template StoreMatrix<3>(triangle, offset);
    }
  }
}

} // namespace chunkwise

#endif
