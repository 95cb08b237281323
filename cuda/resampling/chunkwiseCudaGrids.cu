/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBinOperation.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCudaResample.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseRearrangeOperation.h"
#include "chunkwiseReducer.h"

#include <cstdint>
#include <type_traits>

// Bins, a thread a block of voxels; and copies to other grids.
namespace chunkwise
{

namespace
{

/** The voxels of the blocks of BinOperation. */
template <typename TPixel>
struct BinBlocks
{
  Voxels<const TPixel> in;
  Coordinates          image;
  Coordinates          factor;

  /** Calls body(voxel) for the voxels of the block that `bin` is made of, y fastest, and next() after each position
   * along x. */
  template <typename TBody, typename TNext>
  __device__ __forceinline__ void
  ForEach(const Coordinates & bin, TBody && body, TNext && next) const
  {
    Coordinates  count;
    std::int64_t first = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t lower = bin.axis[a] * factor.axis[a];
      count.axis[a] = min(factor.axis[a], image.axis[a] - lower);
      first += (lower - in.box.lower.axis[a]) * in.stride.axis[a];
    }
    for (std::int64_t x = 0; x < count.axis[0]; ++x)
    {
      for (std::int64_t v = 0; v < count.axis[4]; ++v)
      {
        for (std::int64_t u = 0; u < count.axis[3]; ++u)
        {
          for (std::int64_t z = 0; z < count.axis[2]; ++z)
          {
            const TPixel * from = in.data + first + x * in.stride.axis[0] + z * in.stride.axis[2] +
                                  u * in.stride.axis[3] + v * in.stride.axis[4];
            for (std::int64_t y = 0; y < count.axis[1]; ++y, from += in.stride.axis[1])
            {
              body(*from);
            }
          }
        }
      }
      next();
    }
  }
  template <typename TBody>
  __device__ __forceinline__ void
  ForEach(const Coordinates & bin, TBody && body) const
  {
    ForEach(bin, body, [] {});
  }
  __device__ __forceinline__ std::int64_t
                             Count(const Coordinates & bin) const
  {
    std::int64_t voxels = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      voxels *= min(factor.axis[a], image.axis[a] - bin.axis[a] * factor.axis[a]);
    }
    return voxels;
  }
};

/** Joins the values of a block, the first one first. */
template <typename T, typename TJoin>
struct BinJoined
{
  T    value{};
  bool isEmpty{ true };

  __device__ __forceinline__ void
  Add(T next)
  {
    value = isEmpty ? next : TJoin::Join(value, next);
    isEmpty = false;
  }
};

struct BinPlus
{
  template <typename T>
  static __device__ __forceinline__ T
  Join(T a, T b)
  {
    return static_cast<T>(a + b);
  }
};

/** NaN stays, or is taken. */
template <bool VLargest>
struct BinExtreme
{
  template <typename T>
  static __device__ __forceinline__ T
  Join(T a, T b)
  {
    return (VLargest ? b > a : b < a) || b != b ? b : a;
  }
};

template <typename T, typename TJoin, typename TPixel>
__device__ __forceinline__ T
JoinBlock(const BinBlocks<TPixel> & blocks, const Coordinates & bin)
{
  BinJoined<T, TJoin> all;
  BinJoined<T, TJoin> column;
  blocks.ForEach(
    bin,
    [&](TPixel voxel) { column.Add(static_cast<T>(voxel)); },
    [&] {
      all.Add(column.value);
      column.isEmpty = true;
    });
  return all.value;
}

/** Pixels as keys in ascending order with NaN last, see BinOperation. */
template <typename TPixel>
struct BinKey
{
  using Rank = RankKey<TPixel>;
  using Type = typename Rank::Type;
  static constexpr Type Largest = static_cast<Type>(-1); ///< of real numbers: NaN

  static __device__ __forceinline__ Type
  From(TPixel pixel, bool keepsZero)
  {
    if constexpr (Rank::IsReal)
    {
      return static_cast<Type>(Rank::From(keepsZero ? pixel : pixel + 0) - 1);
    }
    else
    {
      return Rank::From(pixel);
    }
  }
  static __device__ __forceinline__ TPixel
  To(Type key)
  {
    return Rank::To(Rank::IsReal ? static_cast<Type>(key + 1) : key);
  }
};

/** Bit by bit the largest key of which at most so many keys are below as lie before the median. */
template <typename TPixel>
__device__ __forceinline__ TPixel
MedianOfBlock(const BinBlocks<TPixel> & blocks, const Coordinates & bin)
{
  using Key = BinKey<TPixel>;
  const std::int64_t before = (blocks.Count(bin) - 1) / 2;
  typename Key::Type median = 0;
#pragma unroll 1
  for (int bit = static_cast<int>(8 * sizeof(TPixel)) - 1; bit >= 0; --bit)
  {
    const auto   limit = static_cast<typename Key::Type>(median | (typename Key::Type{ 1 } << bit));
    std::int64_t below = 0;
    blocks.ForEach(bin, [&](TPixel voxel) { below += Key::From(voxel, true) < limit ? 1 : 0; });
    median = below <= before ? limit : median;
  }
  return Key::To(median);
}

template <typename TPixel>
__device__ __forceinline__ TPixel
ModeOfBlock(const BinBlocks<TPixel> & blocks, const Coordinates & bin)
{
  using Key = BinKey<TPixel>;
  typename Key::Type mode = Key::Largest;
  std::int64_t       most = 0;
  blocks.ForEach(bin, [&](TPixel candidate) {
    const typename Key::Type key = Key::From(candidate, false);
    if (Key::Rank::IsReal && key == Key::Largest)
    {
      return;
    }
    std::int64_t times = 0;
    blocks.ForEach(bin, [&](TPixel voxel) { times += Key::From(voxel, false) == key ? 1 : 0; });
    if (times > most || (times == most && key < mode))
    {
      mode = key;
      most = times;
    }
  });
  return Key::To(mode);
}

/** Calls body(index, output offset) for each voxel of a box. */
template <typename TBody>
__device__ __forceinline__ void
ForEachVoxel(const Voxels<char> & out, TBody && body)
{
  const std::int64_t width = out.box.Extent(0);
  const std::int64_t rows = out.box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < rows; row += RowStep())
  {
    Coordinates at = IndexIn(out.box, row * width);
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      at.axis[0] = out.box.lower.axis[0] + x;
      body(at, out.Offset(at));
    }
  }
}

/** Sums and means: exact ones of integers. */
template <typename TPixel, typename TAcc>
__global__ void
BinSumKernel(const __grid_constant__ BinBlocks<TPixel> blocks, const __grid_constant__ Voxels<char> out, PixelType kind,
             bool isMean)
{
  ForEachVoxel(out, [&](const Coordinates & at, std::int64_t offset) {
    const TAcc         sum = JoinBlock<TAcc, BinPlus>(blocks, at);
    const std::int64_t count = isMean ? blocks.Count(at) : 1;
    DispatchKindOnDevice(kind, [&](auto pixel) {
      using Out = decltype(pixel);
      reinterpret_cast<Out *>(out.data)[offset] = MeanOf<Out>(sum, count);
    });
  });
}

/** Gaussian means: exact ones of integers. */
template <typename TPixel, typename TAcc>
__global__ void
BinGaussianKernel(const __grid_constant__ BinBlocks<TPixel> blocks, const __grid_constant__ Voxels<char> out,
                  PixelType kind)
{
  ForEachVoxel(out, [&](const Coordinates & at, std::int64_t offset) {
    const Voxels<const TPixel> & in = blocks.in;
    // Places behind the begin of the block that are within the image.
    Coordinates  begin;
    Coordinates  end;
    std::int64_t first = 0;
    std::int64_t weights = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t lower = at.axis[a] * blocks.factor.axis[a];
      begin.axis[a] = max(1 - blocks.factor.axis[a], -lower);
      end.axis[a] = min(2 * blocks.factor.axis[a] - 1, blocks.image.axis[a] - lower);
      first += (lower - in.box.lower.axis[a]) * in.stride.axis[a];
      std::int64_t sum = 0;
      for (std::int64_t place = begin.axis[a]; place < end.axis[a]; ++place)
      {
        sum += BinOperation::GetGaussianWeight(place, blocks.factor.axis[a]);
      }
      weights *= sum;
    }
    TAcc total{};
    for (std::int64_t x = begin.axis[0]; x < end.axis[0]; ++x)
    {
      TAcc column{};
      for (std::int64_t v = begin.axis[4]; v < end.axis[4]; ++v)
      {
        for (std::int64_t u = begin.axis[3]; u < end.axis[3]; ++u)
        {
          for (std::int64_t z = begin.axis[2]; z < end.axis[2]; ++z)
          {
            const TPixel * const from = in.data + first + x * in.stride.axis[0] + z * in.stride.axis[2] +
                                        u * in.stride.axis[3] + v * in.stride.axis[4];
            const std::int64_t ofPlane = BinOperation::GetGaussianWeight(v, blocks.factor.axis[4]) *
                                         BinOperation::GetGaussianWeight(u, blocks.factor.axis[3]) *
                                         BinOperation::GetGaussianWeight(z, blocks.factor.axis[2]);
            for (std::int64_t y = begin.axis[1]; y < end.axis[1]; ++y)
            {
              column += static_cast<TAcc>(from[y * in.stride.axis[1]]) *
                        static_cast<TAcc>(ofPlane * BinOperation::GetGaussianWeight(y, blocks.factor.axis[1]));
            }
          }
        }
      }
      total += column * static_cast<TAcc>(BinOperation::GetGaussianWeight(x, blocks.factor.axis[0]));
    }
    DispatchKindOnDevice(kind, [&](auto pixel) {
      using Out = decltype(pixel);
      reinterpret_cast<Out *>(out.data)[offset] = MeanOf<Out>(total, weights);
    });
  });
}

/** One of a block's voxels, as it is or as a floating-point number. */
template <typename TPixel>
__global__ void
BinChoiceKernel(const __grid_constant__ BinBlocks<TPixel> blocks, const __grid_constant__ Voxels<char> out,
                PixelType kind, BinMethod method)
{
  ForEachVoxel(out, [&](const Coordinates & at, std::int64_t offset) {
    const TPixel chosen = method == BinMethod::Minimum   ? JoinBlock<TPixel, BinExtreme<false>>(blocks, at)
                          : method == BinMethod::Maximum ? JoinBlock<TPixel, BinExtreme<true>>(blocks, at)
                          : method == BinMethod::Median  ? MedianOfBlock(blocks, at)
                                                         : ModeOfBlock(blocks, at);
    if (kind == PixelType::Float32)
    {
      reinterpret_cast<float *>(out.data)[offset] = static_cast<float>(chosen);
    }
    else if (kind == PixelType::Float64)
    {
      reinterpret_cast<double *>(out.data)[offset] = static_cast<double>(chosen);
    }
    else
    {
      reinterpret_cast<TPixel *>(out.data)[offset] = chosen;
    }
  });
}

void
RunBin(const KernelCall & call)
{
  const auto &       operation = static_cast<const BinOperation &>(*call.operation);
  const Voxels<char> out = VoxelsOf<char>(call.output);
  const unsigned int blocks = BlocksOfRows(out.box);
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const BinBlocks<Pixel> source{ VoxelsOf<const Pixel>(call.inputs[0]), operation.image, operation.factor };
    if (operation.method == BinMethod::Gaussian)
    {
      const auto smooth = [&](auto accumulator) {
        BinGaussianKernel<Pixel, decltype(accumulator)>
          <<<blocks, ThreadsOfRows(), 0, StreamOf(call)>>>(source, out, call.output.kind);
        CheckLaunch("BinGaussianKernel");
      };
      // The weights of a block of 2^v voxels add up to 2^(3 v).
      constexpr std::int64_t mostBits = 63 - 8 * static_cast<std::int64_t>(sizeof(Pixel));
      const std::int64_t     voxels = Box::FromExtent(operation.factor).NumberOfVoxels();
      if constexpr (RankKey<Pixel>::IsReal)
      {
        smooth(double{});
      }
      else if constexpr (mostBits > 0)
      {
        voxels <= std::int64_t{ 1 } << mostBits / 3 ? smooth(std::int64_t{}) : smooth(Int128{});
      }
      else
      {
        smooth(Int128{});
      }
      return;
    }
    if (operation.method > BinMethod::Sum)
    {
      BinChoiceKernel<Pixel>
        <<<blocks, ThreadsOfRows(), 0, StreamOf(call)>>>(source, out, call.output.kind, operation.method);
      return CheckLaunch("BinChoiceKernel");
    }
    const auto sum = [&](auto accumulator) {
      BinSumKernel<Pixel, decltype(accumulator)><<<blocks, ThreadsOfRows(), 0, StreamOf(call)>>>(
        source, out, call.output.kind, operation.method == BinMethod::Mean);
      CheckLaunch("BinSumKernel");
    };
    if constexpr (RankKey<Pixel>::IsReal)
    {
      sum(double{});
    }
    else if constexpr (sizeof(Pixel) == 8)
    {
      sum(Int128{});
    }
    else if constexpr (sizeof(Pixel) == 4)
    {
      Box::FromExtent(operation.factor).NumberOfVoxels() < std::int64_t{ 1 } << 31 ? sum(std::int64_t{})
                                                                                   : sum(Int128{});
    }
    else
    {
      sum(std::int64_t{});
    }
  });
}

/** The places of the voxels of RearrangeOperation. */
struct ArrangedVoxels
{
  int              source[MaxDimension];
  bool             flips[MaxDimension];
  Coordinates      offset;
  Coordinates      image;
  RearrangeOutside outside[MaxDimension];
  Box              box; ///< of the input
  Coordinates      stride;

  /** The part of the input offset that voxel `o` along axis `a` has; below 0: it has the value. */
  __device__ __forceinline__ std::int64_t
                             At(int a, std::int64_t o) const
  {
    const int          s = source[a];
    const std::int64_t index = flips[a] ? offset.axis[a] - o : offset.axis[a] + o;
    const std::int64_t place = MapBeyond(index, image.axis[s], outside[a], box.lower.axis[s], box.upper.axis[s]);
    return place < 0 ? -1 : place * stride.axis[s];
  }
};

/** The longest side of a tile that is turned. */
constexpr int TurnedTile = 32;

template <typename T>
__global__ void
RearrangeKernel(const T * __restrict__ in, const __grid_constant__ ArrangedVoxels map,
                const __grid_constant__ Voxels<T> out, T value)
{
  const std::int64_t width = out.box.Extent(0);
  const std::int64_t rows = out.box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < rows; row += RowStep())
  {
    const Coordinates at = IndexIn(out.box, row * width);
    std::int64_t      from = 0;
    bool              isThere = true;
    for (int a = 1; a < MaxDimension; ++a)
    {
      const std::int64_t part = map.At(a, at.axis[a]);
      isThere = isThere && part >= 0;
      from += part;
    }
    T * const to = &out[at];
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      const std::int64_t part = map.At(0, at.axis[0] + x);
      to[x * out.stride.axis[0]] = isThere && part >= 0 ? in[from + part] : value;
    }
  }
}

/** The same where the image's rows lie along axis `turned` of the output: tiles of both go through shared memory. */
template <typename T>
__global__ void
RearrangeTurnedKernel(const T * __restrict__ in, const __grid_constant__ ArrangedVoxels map,
                      const __grid_constant__ Voxels<T> out, int turned, T value)
{
  __shared__ T       tile[TurnedTile][TurnedTile + 1];
  const std::int64_t width = out.box.Extent(0);
  const std::int64_t height = out.box.Extent(turned);
  const std::int64_t across = (width + TurnedTile - 1) / TurnedTile;
  const std::int64_t along = (height + TurnedTile - 1) / TurnedTile;
  Box                planes = out.box;
  planes.upper.axis[0] = planes.lower.axis[0] + 1;
  planes.upper.axis[turned] = planes.lower.axis[turned] + 1;
  const std::int64_t tiles = across * along * planes.NumberOfVoxels();
  for (std::int64_t number = blockIdx.x; number < tiles; number += gridDim.x)
  {
    const std::int64_t plane = number / (across * along);
    const std::int64_t place = number - plane * across * along;
    const std::int64_t y = place / across * TurnedTile;
    const std::int64_t x = place % across * TurnedTile;
    const Coordinates  at = IndexIn(planes, plane);
    std::int64_t       from = 0;
    bool               isThere = true;
    for (int a = 1; a < MaxDimension; ++a)
    {
      const std::int64_t part = a == turned ? 0 : map.At(a, at.axis[a]);
      isThere = isThere && part >= 0;
      from += part;
    }
    for (int k = static_cast<int>(threadIdx.y); k < TurnedTile; k += RowsOfBlock)
    {
      if (x + k < width && y + threadIdx.x < height)
      {
        const std::int64_t row = map.At(0, at.axis[0] + x + k);
        const std::int64_t column = map.At(turned, at.axis[turned] + y + threadIdx.x);
        tile[k][threadIdx.x] = isThere && row >= 0 && column >= 0 ? in[from + row + column] : value;
      }
    }
    __syncthreads();
    T * const to = &out[at];
    for (int k = static_cast<int>(threadIdx.y); k < TurnedTile; k += RowsOfBlock)
    {
      if (x + threadIdx.x < width && y + k < height)
      {
        to[(x + threadIdx.x) * out.stride.axis[0] + (y + k) * out.stride.axis[turned]] = tile[threadIdx.x][k];
      }
    }
    __syncthreads();
  }
}

/** The axis of the result along which the image's rows lie. */
int
TurnedAxisOf(const RearrangeOperation & operation)
{
  int turned = 0;
  while (operation.source[turned] != 0)
  {
    ++turned;
  }
  return turned;
}

template <typename T, bool VTurns>
void
RunRearrangeAs(const KernelCall & call, const RearrangeOperation & operation, const ArrangedVoxels & map)
{
  T value{};
  DispatchPixelType(call.output.kind, [&](auto pixel) {
    pixel = operation.value.As<decltype(pixel)>();
    std::memcpy(&value, &pixel, std::min(sizeof(value), sizeof(pixel)));
  });
  const auto * const in = static_cast<const T *>(call.inputs[0].data);
  const Voxels<T>    out = VoxelsOf<T>(call.output);
  if constexpr (!VTurns)
  {
    RearrangeKernel<T><<<BlocksOfRows(out.box), ThreadsOfRows(), 0, StreamOf(call)>>>(in, map, out, value);
    CheckLaunch("RearrangeKernel");
  }
  else
  {
    const int          turned = TurnedAxisOf(operation);
    const auto         tiles = [&](int a) { return (out.box.Extent(a) + TurnedTile - 1) / TurnedTile; };
    const std::int64_t blocks =
      out.box.NumberOfVoxels() / (out.box.Extent(0) * out.box.Extent(turned)) * tiles(0) * tiles(turned);
    RearrangeTurnedKernel<T><<<BlocksFor(blocks, 1), ThreadsOfRows(), 0, StreamOf(call)>>>(in, map, out, turned, value);
    CheckLaunch("RearrangeTurnedKernel");
  }
}

template <bool VTurns>
void
RunRearrange(const KernelCall & call)
{
  const auto &   operation = static_cast<const RearrangeOperation &>(*call.operation);
  ArrangedVoxels map{};
  std::copy_n(operation.source, MaxDimension, map.source);
  std::copy_n(operation.flips, MaxDimension, map.flips);
  map.offset = operation.offset;
  map.image = operation.image;
  std::copy_n(operation.outside, MaxDimension, map.outside);
  map.box = call.inputs[0].box;
  map.stride = call.inputs[0].stride;
  switch (PixelSize(call.output.kind))
  {
    case 1:
      return RunRearrangeAs<std::uint8_t, VTurns>(call, operation, map);
    case 2:
      return RunRearrangeAs<std::uint16_t, VTurns>(call, operation, map);
    case 4:
      return RunRearrangeAs<std::uint32_t, VTurns>(call, operation, map);
    default:
      return RunRearrangeAs<std::uint64_t, VTurns>(call, operation, map);
  }
}

KernelChoice
ChooseRearrange(const Operation & operation, const ChunkShape &)
{
  return TurnedAxisOf(static_cast<const RearrangeOperation &>(operation)) == 0
           ? KernelChoice{ "rows", RunRearrange<false> }
           : KernelChoice{ "turned tiles", RunRearrange<true> };
}

/** Medians and modes look at each voxel more than once. */
double
CostOfBin(const Operation & operation, const ChunkShape & shape)
{
  const auto & bin = static_cast<const BinOperation &>(operation);
  auto         voxels = static_cast<double>(Box::FromExtent(bin.factor).NumberOfVoxels());
  for (int a = 0; a < MaxDimension && bin.method == BinMethod::Gaussian; ++a)
  {
    voxels *= 3 - 2 / static_cast<double>(bin.factor[a]);
  }
  const double looks = bin.method == BinMethod::Median ? 8 * static_cast<double>(PixelSize(shape.inputKinds[0]))
                       : bin.method == BinMethod::Mode ? voxels
                                                       : 1;
  return voxels * static_cast<double>(shape.outputBox.NumberOfVoxels()) *
         (static_cast<double>(PixelSize(shape.inputKinds[0])) + looks);
}

} // namespace

void
RegisterCudaGrids(KernelRegistry & registry)
{
  Kernel bin;
  bin.run = RunBin;
  bin.cost = CostOfBin;
  registry.Register("bin", { bin });
  registry.Register("rearrange", { MakeChoosingKernel<ChooseRearrange>(false) });
}

} // namespace chunkwise
