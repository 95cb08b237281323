/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaEnhancement.h"

#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseDerivativeOperation.h"
#include "chunkwiseDiffusionOperation.h"
#include "chunkwiseDiffusionRules.h"
#include "chunkwiseRealOf.h"

#include <algorithm>
#include <cmath>
#include <limits>

// Each iteration goes through the images of a box in the scratch, which has the voxels that the output depends on: one
// kernel, of TotalVariation two. A warp has a row.
namespace chunkwise
{

namespace
{

__device__ __forceinline__ float
RootOf(float square)
{
  return __fsqrt_rn(square);
}
__device__ __forceinline__ double
RootOf(double square)
{
  return __dsqrt_rn(square);
}
__device__ __forceinline__ float
DecayOf(float t)
{
  return FloatDecayOf<float, std::uint32_t>(t);
}
__device__ __forceinline__ double
DecayOf(double t)
{
  return ExponentialOfMinus<double, std::uint64_t>(t);
}

/** A neighbor, or the voxel itself in place of one that is NaN and takes no part. */
template <bool VSkipsNan, typename TAcc>
__device__ __forceinline__ TAcc
Beside(TAcc neighbor, TAcc here)
{
  return VSkipsNan && neighbor != neighbor ? here : neighbor;
}

/** A number, or 0 if it is NaN because of a voxel that takes no part. */
template <bool VSkipsNan, typename TAcc>
__device__ __forceinline__ TAcc
NumberOrZero(TAcc x)
{
  return VSkipsNan && x != x ? TAcc(0) : x;
}

int
CountImages(const DiffusionOperation & operation)
{
  // The tensor, which has three elements or six, and for each axis a sum, some in the place of elements.
  return operation.method == DiffusionMethod::Coherence ? 2 + 2 * static_cast<int>(operation.GetAxes().size())
                                                        : operation.CountImages();
}

/** Bytes of all images of a box of so many voxels. */
std::size_t
BytesOfImages(const DiffusionOperation & operation, std::int64_t voxels, std::size_t bytes)
{
  return RoundUp(static_cast<std::size_t>(CountImages(operation)) * static_cast<std::size_t>(voxels) * bytes);
}

/** The images of a box, all dense, and the axes that take part. */
template <typename TAcc>
struct DiffusionImages
{
  Box         box;
  Box         image;
  Coordinates stride;
  int         axes;
  int         axis[MaxDimension];
  TAcc        scale[MaxDimension];

  __device__ std::int64_t
             Offset(const Coordinates & at) const
  {
    return Voxels<const TAcc>{ nullptr, box, stride }.Offset(at);
  }
  /** Whether x is the first axis that takes part. */
  __device__ __forceinline__ bool
  HasX() const
  {
    return axes > 0 && axis[0] == 0;
  }
};

/** Numbers from a voxel to its neighbors along the axes that take part, or to itself at the image's edge. Loops over
 * them are unrolled, so that they lie in registers. */
struct DiffusionNeighbors
{
  std::int64_t after[MaxDimension]{};
  std::int64_t before[MaxDimension]{};
};

/** Calls body(neighbors, offset) for the voxels of a box, or for the first one of each VCount along x: along that axis
 * the neighbors are those before the first one and after the last one. */
template <int VCount = 1, typename TAcc, typename TBody>
__device__ __forceinline__ void
ForEachVoxel(const DiffusionImages<TAcc> & images, const Box & box, TBody && body)
{
  const std::int64_t width = box.Extent(0);
  const std::int64_t rows = box.NumberOfVoxels() / width;
  const bool         hasX = images.HasX();
  for (std::int64_t row = FirstRow(); row < rows; row += RowStep())
  {
    const Coordinates  first = IndexIn(box, row * width);
    const std::int64_t offset = images.Offset(first);
    DiffusionNeighbors neighbors;
#pragma unroll
    for (int k = 0; k < MaxDimension; ++k)
    {
#pragma unroll
      for (int a = 1; a < MaxDimension; ++a)
      {
        if (k < images.axes && images.axis[k] == a)
        {
          neighbors.after[k] = first.axis[a] + 1 < images.image.upper.axis[a] ? images.stride.axis[a] : 0;
          neighbors.before[k] = first.axis[a] > images.image.lower.axis[a] ? -images.stride.axis[a] : 0;
        }
      }
    }
    for (std::int64_t x = VCount * threadIdx.x; x < width; x += VCount * blockDim.x)
    {
      if (hasX)
      {
        neighbors.after[0] = first.axis[0] + x + VCount < images.image.upper.axis[0] ? 1 : 0;
        neighbors.before[0] = first.axis[0] + x > images.image.lower.axis[0] ? -1 : 0;
      }
      body(neighbors, offset + x);
    }
  }
}

/** Reads a box of the image, of which TotalVariation has two more copies at `copies`. */
template <typename TPixel, typename TAcc>
__global__ void
LoadDiffusionKernel(const __grid_constant__ DiffusionImages<TAcc> images, Voxels<const TPixel> in,
                    TAcc * __restrict__ to, TAcc * __restrict__ copies, std::int64_t size)
{
  const std::int64_t width = images.box.Extent(0);
  const std::int64_t rows = images.box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < rows; row += RowStep())
  {
    const TPixel * const line = &in[IndexIn(images.box, row * width)];
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      const std::int64_t i = row * width + x;
      const TAcc         value = static_cast<TAcc>(line[x * in.stride.axis[0]]);
      to[i] = value;
      if (copies)
      {
        copies[i] = copies[size + i] = value;
        for (int k = 0; k < images.axes; ++k)
        {
          copies[(2 + k) * size + i] = 0;
        }
      }
    }
  }
}

template <typename TAcc, typename TOut>
__global__ void
StoreDiffusionKernel(const __grid_constant__ DiffusionImages<TAcc> images, const TAcc * __restrict__ from,
                     Voxels<TOut>                                  out)
{
  const std::int64_t width = out.box.Extent(0);
  const std::int64_t rows = out.box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < rows; row += RowStep())
  {
    const Coordinates  first = IndexIn(out.box, row * width);
    const TAcc * const line = from + images.Offset(first);
    TOut * const       to = &out[first];
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      to[x * out.stride.axis[0]] = ConvertResult<TOut>(line[x]);
    }
  }
}

/** The parameters of an iteration of gradient or curvature diffusion. */
template <typename TAcc>
struct DiffusionStep
{
  TAcc half[MaxDimension];
  TAcc inverse; ///< 1 / (2 contrast^2)
  TAcc timeStep;
  bool isCurvature;
};

/** The flux from a voxel to the next one along the k-th axis, which is itself at the image's edge. */
template <bool VSkipsNan, typename TAcc>
__device__ __forceinline__ TAcc
FluxOf(const DiffusionImages<TAcc> & images, const DiffusionStep<TAcc> & step, const TAcc * from,
       const DiffusionNeighbors & neighbors, std::int64_t i, std::int64_t next, int k)
{
  const TAcc here = from[i];
  const TAcc there = from[next];
  const TAcc d = (there - here) * images.scale[k];
  TAcc       square = d * d;
#pragma unroll
  for (int j = 0; j < MaxDimension; ++j)
  {
    if (j < images.axes && j != k)
    {
      const std::int64_t after = neighbors.after[j];
      const std::int64_t before = neighbors.before[j];
      const TAcc         sum = (Beside<VSkipsNan>(from[i + after], here) - Beside<VSkipsNan>(from[i + before], here)) +
                       (Beside<VSkipsNan>(from[next + after], there) - Beside<VSkipsNan>(from[next + before], there));
      const TAcc mean = sum * step.half[j] * TAcc(0.5);
      square = square + mean * mean;
    }
  }
  const TAcc flux = d * DecayOf(square * step.inverse);
  return NumberOrZero<VSkipsNan>(step.isCurvature ? flux / RootOf(square + TAcc(1e-10)) : flux);
}

template <typename TAcc, bool VSkipsNan>
__global__ void
FluxKernel(const __grid_constant__ DiffusionImages<TAcc> images, const __grid_constant__ DiffusionStep<TAcc> step,
           const __grid_constant__ Box box, const TAcc * __restrict__ from, TAcc * __restrict__ to)
{
  ForEachVoxel(images, box, [&](const DiffusionNeighbors & neighbors, std::int64_t i) {
    const TAcc here = from[i];
    if (!(step.timeStep > 0) || images.axes == 0)
    {
      to[i] = here;
      return;
    }
    TAcc sum = 0;
#pragma unroll
    for (int k = 0; k < MaxDimension; ++k)
    {
      if (k < images.axes)
      {
        // At the image's edge no flux comes in; along x it is that of a voxel to itself.
        const std::int64_t before = neighbors.before[k];
        const TAcc into = before == 0 ? TAcc(0) : FluxOf<VSkipsNan>(images, step, from, neighbors, i + before, i, k);
        const TAcc difference = FluxOf<VSkipsNan>(images, step, from, neighbors, i, i + neighbors.after[k], k) - into;
        sum = k == 0 ? difference : sum + difference;
      }
    }
    if (!step.isCurvature)
    {
      to[i] = here + sum * step.timeStep;
      return;
    }
    TAcc square = 0;
#pragma unroll
    for (int k = 0; k < MaxDimension; ++k)
    {
      if (k < images.axes)
      {
        const TAcc forward = (Beside<VSkipsNan>(from[i + neighbors.after[k]], here) - here) * images.scale[k];
        const TAcc backward = (here - Beside<VSkipsNan>(from[i + neighbors.before[k]], here)) * images.scale[k];
        square = square + UpwindSquareOf(forward, backward, sum);
      }
    }
    to[i] = here + RootOf(square) * sum * step.timeStep;
  });
}

/** The diffusion tensors of voxels: elements of the diagonal, and those beside it, of axes a and b number a + b - 1.
 * The sums of these times the slopes along other axes, one for each axis, take their place as far as they have one. */
template <typename TAcc>
struct CoherenceImages
{
  const TAcc * own[MaxSpatialAxes];
  const TAcc * beside[MaxSpatialAxes];
  TAcc *       mixed[MaxSpatialAxes];
};

/** The images of tensors whose upper triangles begin at `memory`, `size` numbers an element. */
template <typename TAcc>
CoherenceImages<TAcc>
MakeCoherenceImages(TAcc * memory, std::int64_t size, int axes)
{
  CoherenceImages<TAcc> of{};
  int                   number = 0;
  int                   sums = 0;
  for (int a = 0; a < axes; ++a)
  {
    of.own[a] = memory + number++ * size;
    for (int b = a + 1; b < axes; ++b)
    {
      of.beside[a + b - 1] = of.mixed[sums++] = memory + number++ * size;
    }
  }
  for (; sums < axes; ++sums)
  {
    of.mixed[sums] = memory + number++ * size;
  }
  return of;
}

/** Makes the sums of CoherenceImages. */
template <typename TAcc, bool VSkipsNan>
__global__ void
MixedSlopesKernel(const __grid_constant__ DiffusionImages<TAcc> images, const __grid_constant__ Box box,
                  const TAcc * __restrict__ from, const __grid_constant__ CoherenceImages<TAcc> of)
{
  ForEachVoxel(images, box, [&](const DiffusionNeighbors & neighbors, std::int64_t i) {
    const TAcc here = from[i];
    TAcc       slopes[MaxSpatialAxes]{};
    TAcc       beside[MaxSpatialAxes]{};
#pragma unroll
    for (int k = 0; k < MaxSpatialAxes; ++k)
    {
      if (k < images.axes)
      {
        const TAcc after = Beside<VSkipsNan>(from[i + neighbors.after[k]], here);
        const TAcc before = Beside<VSkipsNan>(from[i + neighbors.before[k]], here);
        slopes[k] = (after - before) * (TAcc(0.5) * images.scale[k]);
      }
      if (of.beside[k])
      {
        beside[k] = of.beside[k][i];
      }
    }
#pragma unroll
    for (int k = 0; k < MaxSpatialAxes; ++k)
    {
      if (k < images.axes)
      {
        TAcc sum = 0;
#pragma unroll
        for (int j = 0; j < MaxSpatialAxes; ++j)
        {
          if (j < images.axes && j != k)
          {
            sum = sum + beside[k + j - 1] * slopes[j];
          }
        }
        of.mixed[k][i] = sum;
      }
    }
  });
}

template <typename TAcc, bool VSkipsNan>
__global__ void
CoherenceKernel(const __grid_constant__ DiffusionImages<TAcc> images, const __grid_constant__ Box box,
                const TAcc * __restrict__ from, const __grid_constant__ CoherenceImages<TAcc> of, TAcc timeStep,
                TAcc * __restrict__ to)
{
  ForEachVoxel(images, box, [&](const DiffusionNeighbors & neighbors, std::int64_t i) {
    const TAcc here = from[i];
    TAcc       sum = 0;
#pragma unroll
    for (int k = 0; k < MaxSpatialAxes; ++k)
    {
      if (k < images.axes)
      {
        const TAcc * const __restrict__ own = of.own[k] + i;
        const TAcc * const __restrict__ mixed = of.mixed[k] + i;
        const std::int64_t after = neighbors.after[k];
        const std::int64_t before = neighbors.before[k];
        const TAcc         ahead = (from[i + after] - here) * images.scale[k];
        const TAcc         behind = (here - from[i + before]) * images.scale[k];
        const TAcc         out = NumberOrZero<VSkipsNan>(
          CoherenceFluxOf((own[0] + own[after]) * ahead, mixed[0] + mixed[after], images.scale[k]));
        const TAcc into = NumberOrZero<VSkipsNan>(
          CoherenceFluxOf((own[before] + own[0]) * behind, mixed[before] + mixed[0], images.scale[k]));
        // No flux crosses the image's edge. All is read without a branch, so that no load waits for another.
        const TAcc difference = (after == 0 ? TAcc(0) : out) - (before == 0 ? TAcc(0) : into);
        sum = k == 0 ? difference : sum + difference;
      }
    }
    to[i] = here + sum * timeStep;
  });
}

template <typename TAcc, bool VSkipsNan>
__global__ void
SquaredGradientKernel(const __grid_constant__ DiffusionImages<TAcc> images, const __grid_constant__ Box box,
                      const TAcc * __restrict__ from, TAcc * __restrict__ to)
{
  ForEachVoxel(images, box, [&](const DiffusionNeighbors & neighbors, std::int64_t i) {
    const TAcc here = from[i];
    TAcc       square = 0;
#pragma unroll
    for (int k = 0; k < MaxDimension; ++k)
    {
      if (k < images.axes)
      {
        const TAcc after = Beside<VSkipsNan>(from[i + neighbors.after[k]], here);
        const TAcc before = Beside<VSkipsNan>(from[i + neighbors.before[k]], here);
        const TAcc d = (after - before) * (images.scale[k] * TAcc(0.5));
        square = square + d * d;
      }
    }
    to[i] = VSkipsNan && here != here ? here : square;
  });
}

/** The images of TotalVariation: x, u', u, and p of each axis, `size` numbers each. */
template <typename TAcc>
struct VariationImages
{
  TAcc *       image;
  TAcc *       overshot;
  TAcc *       state;
  TAcc *       dual;
  std::int64_t size;
  TAcc         step;
  TAcc         weight;
};

/** Numbers that lie one after the other: 16 bytes of them, or one. */
template <typename TAcc, int VCount>
struct alignas(VCount * sizeof(TAcc)) NumberGroup
{
  TAcc at[VCount];
};

/** Numbers that a thread of TotalVariation takes at a time, where rows let it. */
template <typename TAcc>
constexpr int NumbersTogether = 16 / sizeof(TAcc);

template <int VCount, typename TAcc>
__device__ __forceinline__ NumberGroup<TAcc, VCount> &
                           GroupAt(TAcc * numbers)
{
  return *reinterpret_cast<NumberGroup<TAcc, VCount> *>(numbers);
}

template <typename TAcc, int VCount, bool VSkipsNan>
__global__ void
DualKernel(const __grid_constant__ DiffusionImages<TAcc> images, const __grid_constant__ VariationImages<TAcc> of,
           const __grid_constant__ Box box)
{
  using Group = NumberGroup<TAcc, VCount>;
  const bool hasX = images.HasX();
  ForEachVoxel<VCount>(images, box, [&](const DiffusionNeighbors & neighbors, std::int64_t i) {
    const Group here = GroupAt<VCount>(of.overshot + i);
    Group       p[MaxDimension];
    Group       square{};
#pragma unroll
    for (int k = 0; k < MaxDimension; ++k)
    {
      if (k < images.axes)
      {
        const TAcc scale = images.scale[k] * of.step;
        Group      after;
        p[k] = GroupAt<VCount>(of.dual + k * of.size + i);
        if (k == 0 && hasX)
        {
          after.at[VCount - 1] = of.overshot[i + VCount - 1 + neighbors.after[0]];
#pragma unroll
          for (int n = 0; n + 1 < VCount; ++n)
          {
            after.at[n] = here.at[n + 1];
          }
        }
        else
        {
          after = GroupAt<VCount>(of.overshot + i + neighbors.after[k]);
        }
#pragma unroll
        for (int n = 0; n < VCount; ++n)
        {
          p[k].at[n] = p[k].at[n] + NumberOrZero<VSkipsNan>(after.at[n] - here.at[n]) * scale;
          square.at[n] = square.at[n] + p[k].at[n] * p[k].at[n];
        }
      }
    }
#pragma unroll
    for (int n = 0; n < VCount; ++n)
    {
      square.at[n] = DualFactorOf(RootOf(square.at[n]), of.weight);
    }
#pragma unroll
    for (int k = 0; k < MaxDimension; ++k)
    {
      if (k < images.axes)
      {
#pragma unroll
        for (int n = 0; n < VCount; ++n)
        {
          p[k].at[n] = p[k].at[n] * square.at[n];
        }
        GroupAt<VCount>(of.dual + k * of.size + i) = p[k];
      }
    }
  });
}

template <typename TAcc, int VCount>
__global__ void
PrimalKernel(const __grid_constant__ DiffusionImages<TAcc> images, const __grid_constant__ VariationImages<TAcc> of,
             const __grid_constant__ Box box)
{
  using Group = NumberGroup<TAcc, VCount>;
  const bool hasX = images.HasX();
  const TAcc share = TAcc(1) / (TAcc(1) + of.step);
  ForEachVoxel<VCount>(images, box, [&](const DiffusionNeighbors & neighbors, std::int64_t i) {
    Group divergence{};
#pragma unroll
    for (int k = 0; k < MaxDimension; ++k)
    {
      if (k < images.axes)
      {
        TAcc * const p = of.dual + k * of.size + i;
        const Group  here = GroupAt<VCount>(p);
        Group        before{};
        // No p is before the image's first voxel.
        const std::int64_t step = neighbors.before[k];
        if (k == 0 && hasX)
        {
          before.at[0] = step < 0 ? p[step] : TAcc(0);
#pragma unroll
          for (int n = 1; n < VCount; ++n)
          {
            before.at[n] = here.at[n - 1];
          }
        }
        else if (step < 0)
        {
          before = GroupAt<VCount>(p + step);
        }
#pragma unroll
        for (int n = 0; n < VCount; ++n)
        {
          divergence.at[n] = divergence.at[n] + (here.at[n] - before.at[n]) * images.scale[k];
        }
      }
    }
    const Group old = GroupAt<VCount>(of.state + i);
    const Group image = GroupAt<VCount>(of.image + i);
    Group       next;
    Group       overshot;
#pragma unroll
    for (int n = 0; n < VCount; ++n)
    {
      next.at[n] = NextPrimalOf(old.at[n], divergence.at[n], image.at[n], of.step, share);
      overshot.at[n] = (next.at[n] + next.at[n]) - old.at[n];
    }
    GroupAt<VCount>(of.state + i) = next;
    GroupAt<VCount>(of.overshot + i) = overshot;
  });
}

template <typename TAcc>
class Diffusion
{
public:
  explicit Diffusion(const KernelCall & call)
    : m_Call(call)
    , m_Operation(static_cast<const DiffusionOperation &>(*call.operation))
    , m_Memory(static_cast<TAcc *>(call.scratch))
  {
    m_Images.box = m_Operation.GetSource(call.output.box, call.image, m_Operation.iterations);
    m_Images.image = call.image;
    m_Images.stride = StridesOf(m_Images.box);
    m_Size = m_Images.box.NumberOfVoxels();
    for (const int a : m_Operation.GetAxes())
    {
      m_Images.axis[m_Images.axes] = a;
      m_Images.scale[m_Images.axes++] = static_cast<TAcc>(m_Operation.scale[a]);
    }
  }

  void
  Run() const
  {
    const bool isVariation = m_Operation.method == DiffusionMethod::TotalVariation;
    DispatchPixelType(m_Call.inputs[0].kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      if constexpr (std::is_same<RealOf<Pixel>, TAcc>::value)
      {
        LoadDiffusionKernel<Pixel, TAcc><<<BlocksOfRows(m_Images.box), ThreadsOfRows(), 0, StreamOf(m_Call)>>>(
          m_Images,
          VoxelsOf<const Pixel>(m_Call.inputs[0]),
          m_Memory,
          isVariation ? m_Memory + m_Size : nullptr,
          m_Size);
        CheckLaunch("LoadDiffusionKernel");
      }
    });
    for (std::int64_t i = 1; i <= m_Operation.iterations; ++i)
    {
      const Box box = m_Operation.GetSource(m_Call.output.box, m_Call.image, m_Operation.iterations - i);
      isVariation ? this->IterateVariation(box) : this->Iterate(box, (i - 1) % 2);
    }
    const std::int64_t result = isVariation ? 2 : m_Operation.iterations % 2;
    DispatchPixelType(m_Call.output.kind, [&](auto out) {
      using Out = decltype(out);
      StoreDiffusionKernel<TAcc, Out><<<BlocksOfRows(m_Call.output.box), ThreadsOfRows(), 0, StreamOf(m_Call)>>>(
        m_Images, m_Memory + result * m_Size, VoxelsOf<Out>(m_Call.output));
      CheckLaunch("StoreDiffusionKernel");
    });
  }

private:
  void
  Iterate(const Box & box, std::int64_t from) const
  {
    const TAcc * const source = m_Memory + from * m_Size;
    TAcc * const       target = m_Memory + (1 - from) * m_Size;
    if (m_Operation.method == DiffusionMethod::SquaredGradient)
    {
      const auto kernel = m_Operation.skipsNan ? SquaredGradientKernel<TAcc, true> : SquaredGradientKernel<TAcc, false>;
      kernel<<<BlocksOfRows(box), ThreadsOfRows(), 0, StreamOf(m_Call)>>>(m_Images, box, source, target);
      CheckLaunch("SquaredGradientKernel");
      return;
    }
    if (m_Operation.method == DiffusionMethod::Coherence)
    {
      const Box  around = this->WithNeighbors(box);
      const auto of = MakeCoherenceImages(m_Memory + 2 * m_Size, m_Size, m_Images.axes);
      this->MakeTensors(around, from);
      // Sums for which neighbors lie beyond the box are those of no flux.
      DiffusionImages<TAcc> within = m_Images;
      within.image = Intersect(within.image, within.box);
      const auto slopes = m_Operation.skipsNan ? MixedSlopesKernel<TAcc, true> : MixedSlopesKernel<TAcc, false>;
      slopes<<<BlocksOfRows(around), ThreadsOfRows(), 0, StreamOf(m_Call)>>>(within, around, source, of);
      CheckLaunch("MixedSlopesKernel");
      const auto kernel = m_Operation.skipsNan ? CoherenceKernel<TAcc, true> : CoherenceKernel<TAcc, false>;
      kernel<<<BlocksOfRows(box), ThreadsOfRows(), 0, StreamOf(m_Call)>>>(
        m_Images, box, source, of, static_cast<TAcc>(m_Operation.timeStep), target);
      CheckLaunch("CoherenceKernel");
      return;
    }
    DiffusionStep<TAcc> step{};
    for (int k = 0; k < m_Images.axes; ++k)
    {
      step.half[k] = static_cast<TAcc>(0.5 * m_Operation.scale[m_Images.axis[k]]);
    }
    // Finite, so that voxels without a gradient have no NaN.
    step.inverse = static_cast<TAcc>(std::min(0.5 / (m_Operation.contrast * m_Operation.contrast),
                                              static_cast<double>(std::numeric_limits<TAcc>::max())));
    // Without a contrast there is no flux.
    step.timeStep = static_cast<TAcc>(m_Operation.contrast > 0 ? m_Operation.timeStep : 0.0);
    step.isCurvature = m_Operation.method == DiffusionMethod::Curvature;
    const auto kernel = m_Operation.skipsNan ? FluxKernel<TAcc, true> : FluxKernel<TAcc, false>;
    kernel<<<BlocksOfRows(box), ThreadsOfRows(), 0, StreamOf(m_Call)>>>(m_Images, step, box, source, target);
    CheckLaunch("FluxKernel");
  }

  /** A box with the voxels beside it. */
  Box
  WithNeighbors(Box box) const
  {
    for (const int a : m_Operation.GetAxes())
    {
      box.lower[a] = std::max(box.lower[a] - 1, m_Call.image.lower[a]);
      box.upper[a] = std::min(box.upper[a] + 1, m_Call.image.upper[a]);
    }
    return box;
  }

  /** Makes the tensors of the voxels of a box, from image number 2 on. */
  void
  MakeTensors(const Box & box, std::int64_t from) const
  {
    constexpr int     last = MaxDimension - 1;
    const std::size_t used = BytesOfImages(m_Operation, m_Size, sizeof(TAcc));
    KernelCall        inner = m_Call;
    inner.operation = m_Operation.tensor.get();
    inner.control = nullptr;
    inner.scratch = static_cast<char *>(m_Call.scratch) + used;
    inner.scratchBytes = m_Call.scratchBytes - used;
    inner.image.lower[last] = 0;
    inner.image.upper[last] = 1;
    for (std::int64_t i = box.lower[last]; i < box.upper[last]; ++i)
    {
      const auto view = [&](std::int64_t number, const Box & part, std::int64_t components) {
        BufferView  of = DenseView(m_Memory + number * m_Size, PixelTypeOf<TAcc>(), m_Images.box);
        Coordinates at = part.lower;
        at[last] = i;
        of.data = m_Memory + number * m_Size + of.Offset(at);
        of.box = part;
        of.box.lower[last] = 0;
        of.box.upper[last] = components;
        of.stride[last] = m_Size;
        return of;
      };
      inner.inputs[0] = view(from, m_Images.box, 1);
      inner.output = view(2, box, m_Operation.tensor->GetNumberOfResults());
      inner.writable = inner.output.box;
      m_Call.kernels->Get("derivative", "diffusion").run(inner);
    }
  }

  void
  IterateVariation(const Box & box) const
  {
    double squares = 0;
    Box    dual = box;
    for (const int a : m_Operation.GetAxes())
    {
      squares += m_Operation.scale[a] * m_Operation.scale[a];
      dual.lower[a] = std::max(dual.lower[a] - 1, m_Call.image.lower[a]);
    }
    const VariationImages<TAcc> of{ m_Memory,
                                    m_Memory + m_Size,
                                    m_Memory + 2 * m_Size,
                                    m_Memory + 3 * m_Size,
                                    m_Size,
                                    static_cast<TAcc>(squares > 0 ? 0.5 / std::sqrt(squares) : 0.0),
                                    static_cast<TAcc>(m_Operation.weight) };
    // All rows begin and end where a group of numbers does.
    const auto isTogether = [this](const Box & some) {
      constexpr std::int64_t count = NumbersTogether<TAcc>;
      return m_Images.box.Extent(0) % count == 0 && some.Extent(0) % count == 0 &&
             (some.lower[0] - m_Images.box.lower[0]) % count == 0;
    };
    if (isTogether(dual) && isTogether(box))
    {
      this->IterateVariation<NumbersTogether<TAcc>>(of, dual, box);
    }
    else
    {
      this->IterateVariation<1>(of, dual, box);
    }
  }

  template <int VCount>
  void
  IterateVariation(const VariationImages<TAcc> & of, const Box & dual, const Box & box) const
  {
    const auto kernel = m_Operation.skipsNan ? DualKernel<TAcc, VCount, true> : DualKernel<TAcc, VCount, false>;
    kernel<<<BlocksOfRows(dual), ThreadsOfRows(), 0, StreamOf(m_Call)>>>(m_Images, of, dual);
    CheckLaunch("DualKernel");
    PrimalKernel<TAcc, VCount><<<BlocksOfRows(box), ThreadsOfRows(), 0, StreamOf(m_Call)>>>(m_Images, of, box);
    CheckLaunch("PrimalKernel");
  }

  const KernelCall &         m_Call;
  const DiffusionOperation & m_Operation;
  TAcc * const               m_Memory;
  DiffusionImages<TAcc>      m_Images{};
  std::int64_t               m_Size{ 0 };
};

void
RunDiffusion(const KernelCall & call)
{
  UsesDouble(call.inputs[0].kind) ? Diffusion<double>(call).Run() : Diffusion<float>(call).Run();
}

std::size_t
ScratchOfDiffusion(const Operation & operation, const ChunkShape & shape)
{
  const auto & diffusion = static_cast<const DiffusionOperation &>(operation);
  Coordinates  extent{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t reach = 2 * diffusion.iterations * diffusion.GetReach()[a];
    extent[a] = std::min(shape.outputBox.Extent(a) + reach, std::max<std::int64_t>(1, shape.image.Extent(a)));
  }
  const Box         box = Box::FromExtent(extent);
  const bool        isDouble = UsesDouble(shape.inputKinds[0]);
  const std::size_t images = BytesOfImages(diffusion, box.NumberOfVoxels(), isDouble ? sizeof(double) : sizeof(float));
  if (diffusion.method != DiffusionMethod::Coherence)
  {
    return images;
  }
  constexpr int last = MaxDimension - 1;
  ChunkShape    inner = shape;
  inner.outputBox = inner.inputBox = box;
  inner.outputBox.upper[last] = inner.outputBox.lower[last] + diffusion.tensor->GetNumberOfResults();
  inner.image.upper[last] = inner.image.lower[last] + 1;
  inner.inputKinds[0] = inner.outputKind = isDouble ? PixelType::Float64 : PixelType::Float32;
  return images + shape.kernels->Get("derivative", "diffusion").scratchBytes(*diffusion.tensor, inner);
}

} // namespace

void
RegisterCudaDiffusion(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunDiffusion;
  kernel.scratchBytes = ScratchOfDiffusion;
  kernel.cost = [](const Operation & operation, const ChunkShape & shape) {
    return static_cast<const DiffusionOperation &>(operation).GetTraffic(
      shape.outputBox, shape.image, shape.inputKinds[0]);
  };
  registry.Register("diffusion", { kernel });
}

} // namespace chunkwise
