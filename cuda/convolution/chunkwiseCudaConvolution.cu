/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaTables.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseRealOf.h"

#include <string>
#include <type_traits>
#include <vector>

// Windows times weights, tap by tap: ConvolutionOperation, and ImageConvolutionOperation where it is direct.
namespace chunkwise
{

namespace
{

/** The factors of the taps of a window. */
template <typename TAcc>
struct WindowWeights
{
  const TAcc * weights; ///< from the lowest tap to the highest, x fastest
  const TAcc * factors; ///< of the results, by ConvolutionFactors::State; nullptr: none
  Coordinates  factorStride;
  Coordinates  image;
  Coordinates  extent;
  Coordinates  below;
  /** The value of taps that the box does not have, if they are not left out. */
  TAcc beyond;
  bool leavesOut;
};

/** Outputs of a thread: along x, 32 apart, and along y. They share weights and voxels. */
constexpr int OutputsAlongX = 4;
constexpr int OutputsAlongY = 4;

template <bool VZeroSum, typename TPixel, typename TAcc, typename TOut>
class WindowTile
{
public:
  static constexpr int X = OutputsAlongX;
  static constexpr int Y = OutputsAlongY;

  /** Tile number `tile` of the output, for one of a warp's lanes. */
  __device__
  WindowTile(const Voxels<const TPixel> & in, const WindowWeights<TAcc> & windows, const Voxels<TOut> & out,
             std::int64_t tile, int lane)
    : m_In(in)
    , m_Windows(windows)
    , m_Out(out)
  {
    std::int64_t rest = tile;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t size = a == 0 ? 32 * X : (a == 1 ? Y : 1);
      const std::int64_t tiles = (out.box.Extent(a) + size - 1) / size;
      m_At.axis[a] = out.box.lower.axis[a] + rest % tiles * size;
      rest /= tiles;
      const std::int64_t first = m_At.axis[a] - windows.below.axis[a];
      m_Inside =
        m_Inside && first >= in.box.lower.axis[a] && first + size - 1 + windows.extent.axis[a] <= in.box.upper.axis[a];
    }
    m_Rows = static_cast<int>(min(static_cast<std::int64_t>(Y), out.box.upper.axis[1] - m_At.axis[1]));
    m_At.axis[0] += lane;
  }

  __device__ void
  Run()
  {
#pragma unroll
    for (int v = 0; v < Y; ++v)
    {
#pragma unroll
      for (int u = 0; u < X; ++u)
      {
        m_Sums[v][u] = m_Centers[v][u] = TAcc(0);
        if (VZeroSum && v < m_Rows && m_At.axis[0] + 32 * u < m_Out.box.upper.axis[0])
        {
          m_Centers[v][u] = static_cast<TAcc>((&m_In[RowOf(v)])[32 * u]);
        }
      }
    }
    if (!m_Inside)
    {
      AddTaps<false, 0>();
    }
    else if (m_Windows.extent.axis[0] == 3)
    {
      AddTaps<true, 3>();
    }
    else if (m_Windows.extent.axis[0] == 5)
    {
      AddTaps<true, 5>();
    }
    else if (m_Windows.extent.axis[0] == 7)
    {
      AddTaps<true, 7>();
    }
    else
    {
      AddTaps<true, 0>();
    }
#pragma unroll
    for (int v = 0; v < Y; ++v)
    {
      if (v < m_Rows)
      {
        Store(v);
      }
    }
  }

private:
  __device__ Coordinates
  RowOf(int v) const
  {
    Coordinates at = m_At;
    at.axis[1] += v;
    return at;
  }

  /** Planes of taps, and in each the rows that the outputs' windows have together; of `VExtent` taps if it is not 0. */
  template <bool VInside, int VExtent>
  __device__ void
  AddTaps()
  {
    const Coordinates & k = m_Windows.extent;
    const TAcc *        weights = m_Windows.weights;
    for (std::int64_t w = 0; w < k.axis[4]; ++w)
    {
      for (std::int64_t t = 0; t < k.axis[3]; ++t)
      {
        for (std::int64_t z = 0; z < k.axis[2]; ++z, weights += k.axis[1] * k.axis[0])
        {
          Coordinates first = m_At;
          first.axis[4] += w;
          first.axis[3] += t;
          first.axis[2] += z;
          bool there = true;
          for (int a = 0; a < MaxDimension; ++a)
          {
            first.axis[a] -= m_Windows.below.axis[a];
            there =
              there && (a < 2 || (first.axis[a] >= m_In.box.lower.axis[a] && first.axis[a] < m_In.box.upper.axis[a]));
          }
          AddRows<VInside, VExtent>(first, VInside || there, weights);
        }
      }
    }
  }

  template <bool VInside, int VExtent>
  __device__ void
  AddRows(Coordinates first, bool planeIsThere, const TAcc * weights)
  {
    const auto kx = static_cast<int>(m_Windows.extent.axis[0]);
    const auto ky = static_cast<int>(m_Windows.extent.axis[1]);
    for (int row = 0; row < ky + m_Rows - 1; ++row, ++first.axis[1])
    {
      const bool there =
        VInside || (planeIsThere && first.axis[1] >= m_In.box.lower.axis[1] && first.axis[1] < m_In.box.upper.axis[1]);
      if (!there && m_Windows.leavesOut)
      {
        continue;
      }
      const TPixel * const line = m_In.data + (there ? m_In.Offset(first) : 0);
      if constexpr (VExtent > 0)
      {
        AddRow<VExtent>(line, row, ky, weights);
      }
      else
      {
        AddRow<VInside>(line, there, first.axis[0], row, kx, ky, weights);
      }
    }
  }

  /** To each output whose window has the row, of which all is inside. */
  template <int VExtent>
  __device__ void
  AddRow(const TPixel * line, int row, int ky, const TAcc * weights)
  {
    TAcc values[VExtent][X];
#pragma unroll
    for (int x = 0; x < VExtent; ++x)
    {
#pragma unroll
      for (int u = 0; u < X; ++u)
      {
        values[x][u] = static_cast<TAcc>(line[x + 32 * u]);
      }
    }
#pragma unroll
    for (int v = 0; v < Y; ++v)
    {
      if (v < m_Rows && row >= v && row - v < ky)
      {
        const TAcc * const weight = weights + (row - v) * VExtent;
#pragma unroll
        for (int x = 0; x < VExtent; ++x)
        {
          const TAcc w = __ldg(weight + x);
#pragma unroll
          for (int u = 0; u < X; ++u)
          {
            AddTap(v, u, w, values[x][u]);
          }
        }
      }
    }
  }

  /** The same of any extent; `first` is the image index of its first tap. */
  template <bool VInside>
  __device__ void
  AddRow(const TPixel * line, bool there, std::int64_t first, int row, int kx, int ky, const TAcc * weights)
  {
    for (int x = 0; x < kx; ++x)
    {
      TAcc values[X];
      bool counts[X];
#pragma unroll
      for (int u = 0; u < X; ++u)
      {
        const std::int64_t i = first + x + 32 * u;
        const bool         has = VInside || (there && i >= m_In.box.lower.axis[0] && i < m_In.box.upper.axis[0]);
        values[u] = has ? static_cast<TAcc>(line[x + 32 * u]) : m_Windows.beyond;
        counts[u] = has || !m_Windows.leavesOut;
      }
#pragma unroll
      for (int v = 0; v < Y; ++v)
      {
        if (v < m_Rows && row >= v && row - v < ky)
        {
          const TAcc w = __ldg(weights + (row - v) * kx + x);
#pragma unroll
          for (int u = 0; u < X; ++u)
          {
            if (VInside || counts[u])
            {
              AddTap(v, u, w, values[u]);
            }
          }
        }
      }
    }
  }

  __device__ void
  AddTap(int v, int u, TAcc weight, TAcc value)
  {
    m_Sums[v][u] = MultiplyAdd(weight, VZeroSum ? value - m_Centers[v][u] : value, m_Sums[v][u]);
  }

  __device__ void
  Store(int v)
  {
    const WindowWeights<TAcc> & windows = m_Windows;
    const Coordinates           at = RowOf(v);
    TOut * const                line = &m_Out[at];
    const auto                  state = [&](int a, std::int64_t i) {
      return windows.factorStride.axis[a] *
             ConvolutionFactors::State(i, windows.image.axis[a], windows.extent.axis[a], windows.below.axis[a]);
    };
    std::int64_t row = 0;
    for (int a = 1; windows.factors && a < MaxDimension; ++a)
    {
      row += state(a, at.axis[a]);
    }
#pragma unroll
    for (int u = 0; u < X; ++u)
    {
      const std::int64_t i = at.axis[0] + 32 * u;
      if (i < m_Out.box.upper.axis[0])
      {
        TAcc value = m_Sums[v][u];
        if (windows.factors)
        {
          value *= __ldg(windows.factors + row + state(0, i));
        }
        line[32 * u] = ConvertResult<TOut>(value);
      }
    }
  }

  const Voxels<const TPixel> & m_In;
  const WindowWeights<TAcc> &  m_Windows;
  const Voxels<TOut> &         m_Out;
  Coordinates                  m_At{};
  int                          m_Rows{ 0 };
  bool                         m_Inside{ true };
  TAcc                         m_Sums[Y][X];
  TAcc                         m_Centers[Y][X];
};

template <bool VZeroSum, typename TPixel, typename TAcc, typename TOut>
__global__ void __launch_bounds__(128)
  WeighWindowsKernel(Voxels<const TPixel> in, WindowWeights<TAcc> windows, Voxels<TOut> out, std::int64_t tiles)
{
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * 4 + threadIdx.x / 32; tile < tiles;
       tile += static_cast<std::int64_t>(gridDim.x) * 4)
  {
    WindowTile<VZeroSum, TPixel, TAcc, TOut>(in, windows, out, tile, lane).Run();
  }
}

/** The voxels of all windows. In these modes windows end at the edge, in the others the image is continued. */
bool
EndsAtTheEdge(BoundaryMode mode)
{
  return mode == BoundaryMode::Renormalized || mode == BoundaryMode::Constant;
}

WindowBoxes
BoxesOf(const Box & output, const Box & image, const Coordinates & extent, const Coordinates & below, BoundaryMode mode)
{
  WindowBoxes boxes(output, image, Coordinates{}, mode);
  for (int a = 0; a < MaxDimension; ++a)
  {
    boxes.padded.lower[a] = output.lower[a] - below[a];
    boxes.padded.upper[a] = output.upper[a] + extent[a] - 1 - below[a];
  }
  if (EndsAtTheEdge(mode))
  {
    boxes.padded = Intersect(boxes.padded, image);
  }
  return boxes;
}

template <bool VZeroSum, typename TPixel, typename TOut, typename TAcc>
void
Weigh(const KernelCall & call, const WindowBoundary & boundary, const WindowWeights<TAcc> & windows)
{
  const WindowBoxes boxes = BoxesOf(call.output.box, call.image, windows.extent, windows.below, boundary.mode);
  char *            scratch = static_cast<char *>(call.scratch);
  // Pixels that are not to be continued are taken unchanged.
  const auto pixels = PadImage<TPixel>(
    call, boxes, EndsAtTheEdge(boundary.mode) ? WindowBoundary{ BoundaryMode::Renormalized, 0.0 } : boundary, scratch);
  const Box &  box = call.output.box;
  std::int64_t tiles = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t size = a == 0 ? 32 * OutputsAlongX : (a == 1 ? OutputsAlongY : 1);
    tiles *= (box.Extent(a) + size - 1) / size;
  }
  WeighWindowsKernel<VZeroSum>
    <<<BlocksFor(tiles, 4), 128, 0, StreamOf(call)>>>(pixels, windows, VoxelsOf<TOut>(call.output), tiles);
  CheckLaunch("WeighWindowsKernel");
}

template <typename TPixel, typename TAcc, typename TOut>
void
RunOdd(const KernelCall & call)
{
  const auto &      operation = static_cast<const ConvolutionOperation &>(*call.operation);
  const Coordinates image = call.image.Extents();
  const std::string key = operation.GetKey() + (sizeof(TAcc) == 4 ? " f32" : " f64");
  const bool        zeroSum = operation.IsZeroSum();
  const bool        renormalizes = operation.boundary.mode == BoundaryMode::Renormalized;
  const auto convert = [](const std::vector<double> & exact) { return std::vector<TAcc>(exact.begin(), exact.end()); };
  WindowWeights<TAcc> windows{};
  windows.weights = GetTable<TAcc>(call, key + " weights", [&] { return convert(operation.weights); });
  windows.image = image;
  windows.below = operation.radius;
  windows.beyond = renormalizes ? TAcc(0) : static_cast<TAcc>(ConstantPixel<TPixel>(operation.boundary.constant));
  windows.leavesOut = renormalizes && zeroSum;
  Coordinates states{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    windows.extent[a] = 2 * operation.radius[a] + 1;
    states[a] = operation.GetNormRows(a, image[a]);
  }
  if (renormalizes && !zeroSum)
  {
    windows.factorStride = DenseStrides(states);
    windows.factors =
      GetTable<TAcc>(call, key + " norms " + ToString(image), [&] { return convert(operation.GetNorms(image)); });
  }
  zeroSum ? Weigh<true, TPixel, TOut>(call, operation.boundary, windows)
          : Weigh<false, TPixel, TOut>(call, operation.boundary, windows);
}

template <typename TPixel, typename TAcc, typename TOut>
void
RunDirect(const KernelCall & call)
{
  const auto &              operation = static_cast<const ImageConvolutionOperation &>(*call.operation);
  const ConvolutionKernel & kernel = *operation.kernel;
  WindowWeights<TAcc>       windows{};
  windows.weights = GetTable<TAcc>(call, kernel.GetKey() + " reversed" + (sizeof(TAcc) == 4 ? " f32" : " f64"), [&] {
    return std::vector<TAcc>(kernel.GetWeights().rbegin(), kernel.GetWeights().rend());
  });
  windows.image = call.image.Extents();
  windows.extent = kernel.GetExtent();
  windows.beyond = operation.Renormalizes() ? TAcc(0) : static_cast<TAcc>(operation.boundary.constant);
  for (int a = 0; a < MaxDimension; ++a)
  {
    windows.below[a] = operation.Below(a);
  }
  if (operation.Renormalizes())
  {
    windows.factorStride = DenseStrides(ConvolutionFactors::States(operation, windows.image));
    windows.factors = GetFactors<TAcc>(call, operation, windows.image);
  }
  Weigh<false, TPixel, TOut>(call, operation.boundary, windows);
}

void
RunConvolution(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) { RunOdd<Pixel, RealOf<Pixel>, decltype(out)>(call); });
  });
}

void
RunDirectConvolution(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) { RunDirect<Pixel, RealOf<Pixel>, decltype(out)>(call); });
  });
}

std::size_t
ScratchOf(const ChunkShape & shape, const Coordinates & extent, const Coordinates & below, BoundaryMode mode)
{
  return EndsAtTheEdge(mode) ? 0
                             : ContinuedBytes(BoxesOf(shape.outputBox, shape.image, extent, below, mode),
                                              mode,
                                              PixelSize(shape.inputKinds[0]));
}

std::size_t
ScratchOfConvolution(const Operation & operation, const ChunkShape & shape)
{
  const auto & convolution = static_cast<const ConvolutionOperation &>(operation);
  Coordinates  extent{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    extent[a] = 2 * convolution.radius[a] + 1;
  }
  return ScratchOf(shape, extent, convolution.radius, convolution.boundary.mode);
}

std::size_t
ScratchOfDirectConvolution(const Operation & operation, const ChunkShape & shape)
{
  const auto & convolution = static_cast<const ImageConvolutionOperation &>(operation);
  Coordinates  below{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    below[a] = convolution.Below(a);
  }
  return ScratchOf(shape, convolution.kernel->GetExtent(), below, convolution.boundary.mode);
}

/** Input and output, and the taps' arithmetic, worth about a byte each. */
double
CostOf(const ChunkShape & shape, double taps)
{
  return static_cast<double>(PixelSize(shape.inputKinds[0])) * static_cast<double>(shape.inputBox.NumberOfVoxels()) +
         (static_cast<double>(PixelSize(shape.outputKind)) + taps) *
           static_cast<double>(shape.outputBox.NumberOfVoxels());
}

double
CostOfConvolution(const Operation & operation, const ChunkShape & shape)
{
  return CostOf(shape, static_cast<double>(static_cast<const ConvolutionOperation &>(operation).weights.size()));
}

double
CostOfDirectConvolution(const Operation & operation, const ChunkShape & shape)
{
  const auto & kernel = *static_cast<const ImageConvolutionOperation &>(operation).kernel;
  return CostOf(shape, static_cast<double>(kernel.GetNumberOfTaps()));
}

} // namespace

void
RegisterCudaConvolution(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunConvolution;
  kernel.scratchBytes = ScratchOfConvolution;
  kernel.cost = CostOfConvolution;
  registry.Register("convolution", { kernel });
  kernel.run = RunDirectConvolution;
  kernel.scratchBytes = ScratchOfDirectConvolution;
  kernel.cost = CostOfDirectConvolution;
  registry.Register("convolution.direct", { kernel });
}

} // namespace chunkwise
