/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaForest.cuh"
#include "chunkwiseCudaHeapCluster.cuh"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWavefront.cuh"
#include "chunkwiseReconstructionKey.h"

namespace chunkwise
{

namespace
{

constexpr int VoxelThreads = 256;

/** The voxels of a box and where three images hold them. */
template <typename TPixel>
struct VoxelRun
{
  const TPixel * inputs[MaxInputs];
  TPixel *       output;
  Coordinates    inputStride[MaxInputs];
  Coordinates    outputStride;
  Coordinates    extent;
  Coordinates    lower; ///< of the box, in the image
  Coordinates    image;
  std::int64_t   voxels;
  int            numberOfInputs;

  explicit VoxelRun(const KernelCall & call)
    : output(static_cast<TPixel *>(call.output.data) + call.output.Offset(call.writable.lower))
    , outputStride(call.output.stride)
    , extent(call.writable.Extents())
    , lower(call.writable.lower)
    , image(call.image.upper)
    , voxels(call.writable.NumberOfVoxels())
    , numberOfInputs(call.numberOfInputs)
  {
    for (int i = 0; i < call.numberOfInputs; ++i)
    {
      inputs[i] = static_cast<const TPixel *>(call.inputs[i].data) + call.inputs[i].Offset(call.writable.lower);
      inputStride[i] = call.inputs[i].stride;
    }
  }

  __device__ Coordinates
  IndexOf(std::int64_t voxel) const
  {
    Coordinates index{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      // Small images, and all rows, divide in 32 bits.
      if (voxel <= 0xFFFFFFFFll && extent.axis[a] <= 0xFFFFFFFFll)
      {
        const auto v = static_cast<std::uint32_t>(voxel);
        const auto n = static_cast<std::uint32_t>(extent.axis[a]);
        index.axis[a] = v % n;
        voxel = v / n;
      }
      else
      {
        index.axis[a] = voxel % extent.axis[a];
        voxel /= extent.axis[a];
      }
    }
    return index;
  }
  __device__ static std::int64_t
  Offset(const Coordinates & index, const Coordinates & stride)
  {
    std::int64_t offset = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      offset += index.axis[a] * stride.axis[a];
    }
    return offset;
  }
  __device__ TPixel
  Input(int i, const Coordinates & index) const
  {
    return inputs[i][Offset(index, inputStride[i])];
  }
};

template <typename TPixel>
__global__ void
BeginKernel(VoxelRun<TPixel> run, ReconstructionRule<TPixel> rule)
{
  using KeyOf = ReconstructionKey<TPixel>;
  for (std::int64_t voxel = blockIdx.x * std::int64_t{ VoxelThreads } + threadIdx.x; voxel < run.voxels;
       voxel += gridDim.x * std::int64_t{ VoxelThreads })
  {
    const Coordinates index = run.IndexOf(voxel);
    bool              atEdge = false;
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      const std::int64_t i = index.axis[a] + run.lower.axis[a];
      atEdge = atEdge || (rule.edges[a] && (i == 0 || i + 1 == run.image.axis[a]));
    }
    const TPixel first = run.Input(0, index);
    const TPixel second = run.numberOfInputs > 2 ? run.Input(1, index) : first;
    const TPixel mask = run.numberOfInputs > 1 ? run.Input(run.numberOfInputs - 1, index) : first;
    const auto   limit = KeyOf::From(mask, rule.flip);
    const auto   key = rule.MarkerKey(first, second, mask, atEdge);
    run.output[VoxelRun<TPixel>::Offset(index, run.outputStride)] = KeyOf::To(key < limit ? key : limit, rule.flip);
  }
}

template <typename TPixel>
__global__ void
FinishKernel(VoxelRun<TPixel> run, ReconstructionRule<TPixel> rule)
{
  for (std::int64_t voxel = blockIdx.x * std::int64_t{ VoxelThreads } + threadIdx.x; voxel < run.voxels;
       voxel += gridDim.x * std::int64_t{ VoxelThreads })
  {
    const Coordinates index = run.IndexOf(voxel);
    TPixel &          pixel = run.output[VoxelRun<TPixel>::Offset(index, run.outputStride)];
    pixel = rule.Finish(run.Input(run.numberOfInputs - 1, index), ReconstructionKey<TPixel>::From(pixel, rule.flip));
  }
}

template <typename TPixel, typename TKernel>
void
LaunchVoxels(const KernelCall & call, TKernel * kernel, const char * name)
{
  const VoxelRun<TPixel>           run(call);
  const ReconstructionRule<TPixel> rule(static_cast<const ReconstructionOperation &>(*call.operation), call.image);
  if (run.voxels == 0)
  {
    return;
  }
  const auto blocks =
    static_cast<unsigned int>(std::min<std::int64_t>((run.voxels + VoxelThreads - 1) / VoxelThreads, 1 << 16));
  kernel<<<blocks, VoxelThreads, 0, static_cast<cudaStream_t>(call.stream)>>>(run, rule);
  CheckLaunch(name);
}

/** By Auto, the voxels of the parts of a chunk that forests are made of, so that little of the device's memory goes to
 * them and chunks remain large. */
constexpr std::int64_t ForestPartVoxels = std::int64_t{ 1 } << 24;

/** The voxels that a chunk has room for a forest of; 0: it takes none. */
std::int64_t
ForestVoxels(const ReconstructionOperation & operation, const Box & own, const Box & image, std::size_t keyBytes)
{
  const bool isAuto = operation.method == ReconstructionMethod::Auto;
  if (keyBytes > 4 || !(isAuto || operation.method == ReconstructionMethod::SpanningForest))
  {
    return 0;
  }
  bool whole = true;
  for (int a = 0; a < operation.spatialDimension; ++a)
  {
    whole = whole && own.Extent(a) == image.Extent(a);
  }
  const std::int64_t voxels = own.NumberOfVoxels();
  const std::int64_t part = operation.partVoxels > 0 ? operation.partVoxels : ForestPartVoxels;
  return (whole || !isAuto) && voxels <= MostForestVoxels ? voxels : std::min(voxels, part);
}

/** Reconstructs parts of a chunk one after the other, each from what those before have brought to it. False if they
 * make up the chunk, and nothing is left to do. */
template <typename TKey>
bool
RunForests(const KernelCall & call, const ReconstructionCode<TKey> & code, std::int64_t mostVoxels, void * scratch)
{
  const auto & operation = static_cast<const ReconstructionOperation &>(*call.operation);
  const Box &  own = call.writable;
  int          axis = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    axis = own.Extent(a) > 1 ? a : axis;
  }
  const std::int64_t layers = mostVoxels / (own.NumberOfVoxels() / own.Extent(axis));
  const bool         hasRest = layers < own.Extent(axis);
  for (std::int64_t from = own.lower[axis]; layers > 0 && from < own.upper[axis]; from += layers)
  {
    KernelCall part = call;
    part.writable.lower[axis] = from;
    part.writable.upper[axis] = std::min(from + layers, own.upper[axis]);
    const WavefrontShape shape(operation, part.writable, call.image, sizeof(TKey));
    WavefrontImage<TKey> image = MakeWavefrontImage<TKey>(part, operation, shape);
    image.ownSides &= from > own.lower[axis] ? ~(1u << (2 * axis)) : ~0u;
    image.ownSides &= part.writable.upper[axis] < own.upper[axis] ? ~(2u << (2 * axis)) : ~0u;
    RunForest(image, shape, operation, code, scratch, static_cast<cudaStream_t>(call.stream));
  }
  return hasRest;
}

/** After how long a wavefront that goes on is asked whether it is still wanted. */
constexpr std::uint64_t NanosecondsBetweenLooks = 100000000;

/** How long Auto waits for the wavefront, in nanoseconds: one that goes well takes 0.07 ns a voxel in planes, 0.13 to
 * 0.2 in volumes. */
std::uint64_t
PatienceFor(const WavefrontShape & shape, const Box & own)
{
  return 100000 + static_cast<std::uint64_t>(own.NumberOfVoxels()) / (shape.planar ? 10 : 3);
}

/** Looks at one voxel of each tile: counts those that anything can raise, and those of them that nothing has yet. */
template <typename TKey>
__global__ void
CountUntouched(WavefrontImage<TKey> image, ReconstructionCode<TKey> code, bool planar, std::uint32_t * counts)
{
  const TileShape    shape = TileShapeOf(planar, sizeof(TKey));
  const std::int64_t tile = blockIdx.x * std::int64_t{ VoxelThreads } + threadIdx.x;
  bool               isOpen = false;
  bool               isUntouched = false;
  if (tile < image.numberOfTiles)
  {
    const TilePlace<TKey> place(image, tile);
    const std::int64_t    x = min(place.at[0] * shape.x + shape.x / 2, image.extent[0] - 1);
    const std::int64_t    y = min(place.at[1] * shape.y + shape.y / 2, image.extent[1] - 1);
    const std::int64_t    z = min(place.at[2] * shape.z + shape.z / 2, image.extent[2] - 1);
    const TKey            mask = code.FromBits(place.mask[x + y * image.maskStride[1] + z * image.maskStride[2]]);
    const TKey            state = code.FromBits(place.state[x + y * image.stateStride[1] + z * image.stateStride[2]]);
    isOpen = state < mask;
    // The lowest of floats is an infinity: no state is less but where the mask is none.
    isUntouched = isOpen && state <= code.Lowest();
  }
  const int open = __syncthreads_count(isOpen);
  const int untouched = __syncthreads_count(isUntouched);
  if (threadIdx.x == 0)
  {
    atomicAdd(counts, static_cast<std::uint32_t>(open));
    atomicAdd(counts + 1, static_cast<std::uint32_t>(untouched));
  }
}

/** Whether nothing has come yet to most of what can be raised, so that values have far to go. */
template <typename TKey>
bool
IsUntouched(const WavefrontImage<TKey> & image, const WavefrontShape & shape, const ReconstructionCode<TKey> & code,
            cudaStream_t stream)
{
  std::uint32_t   counts[2] = {};
  std::uint32_t * onDevice = image.open + 40;
  CheckCuda(cudaMemsetAsync(onDevice, 0, sizeof(counts), stream), "cudaMemsetAsync");
  CountUntouched<<<static_cast<unsigned int>((image.numberOfTiles + VoxelThreads - 1) / VoxelThreads),
                   VoxelThreads,
                   0,
                   stream>>>(image, code, shape.planar, onDevice);
  CheckLaunch("reconstruction");
  // Who runs a step of Fixpoint waits for it anyway.
  CheckCuda(cudaMemcpyAsync(counts, onDevice, sizeof(counts), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  CheckCuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return 2 * counts[1] > counts[0];
}

template <typename TKey>
void
Reconstruct(const KernelCall & call)
{
  const auto &         operation = static_cast<const ReconstructionOperation &>(*call.operation);
  const Box &          own = call.writable;
  const auto           stream = static_cast<cudaStream_t>(call.stream);
  const WavefrontShape shape(operation, own, call.image, sizeof(TKey));
  if (shape.numberOfTiles == 0)
  {
    return;
  }
  WavefrontImage<TKey>           image = MakeWavefrontImage<TKey>(call, operation, shape);
  const PixelKind                kind = call.output.kind;
  const ReconstructionCode<TKey> code(IsFloatingPoint(kind),
                                      kind == PixelKind::Int8 || kind == PixelKind::Int16 || kind == PixelKind::Int32 ||
                                        kind == PixelKind::Int64,
                                      operation.erosion ? static_cast<TKey>(~TKey{ 0 }) : TKey{ 0 });
  char * const                   scratch =
    static_cast<char *>(call.scratch) + WavefrontScratchBytes(operation, own, call.image, sizeof(TKey));
  if (operation.method == ReconstructionMethod::ParallelHeapCluster)
  {
    return RunHeapCluster(image, shape, operation, code, scratch, stream);
  }
  std::int64_t forestVoxels = 0;
  if constexpr (sizeof(TKey) <= 4)
  {
    // Of single voxels each would be a basin.
    const bool hasSteps = shape.extent[0] * shape.extent[1] * shape.extent[2] > 1;
    forestVoxels = hasSteps ? ForestVoxels(operation, own, call.image, sizeof(TKey)) : 0;
    if (forestVoxels > 0 &&
        (operation.method == ReconstructionMethod::SpanningForest ||
         (shape.planar && forestVoxels == own.NumberOfVoxels()) || IsUntouched(image, shape, code, stream)) &&
        !RunForests(call, code, forestVoxels, scratch))
    {
      return;
    }
  }
  const bool isWhole = forestVoxels == own.NumberOfVoxels();
  image.patience = isWhole ? PatienceFor(shape, own) : NanosecondsBetweenLooks;
  for (;;)
  {
    RunWavefront(image, shape, operation, code, stream);
    std::uint32_t givenUp = 0;
    CheckCuda(cudaMemcpyAsync(&givenUp, image.givenUp, sizeof(givenUp), cudaMemcpyDeviceToHost, stream),
              "cudaMemcpyAsync");
    CheckCuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (!givenUp || (call.control && call.control->ShouldStop()))
    {
      return;
    }
    if constexpr (sizeof(TKey) <= 4)
    {
      if (isWhole)
      {
        RunForests(call, code, forestVoxels, scratch);
        return;
      }
    }
  }
}

void
RunReconstruction(const KernelCall & call)
{
  switch (PixelSize(call.output.kind))
  {
    case 1:
      return Reconstruct<std::uint8_t>(call);
    case 2:
      return Reconstruct<std::uint16_t>(call);
    case 4:
      return Reconstruct<std::uint32_t>(call);
    default:
      return Reconstruct<std::uint64_t>(call);
  }
}

std::size_t
ScratchOfReconstruction(const Operation & operation, const ChunkShape & shape)
{
  const auto &      reconstruction = static_cast<const ReconstructionOperation &>(operation);
  const std::size_t keyBytes = PixelSize(shape.outputKind);
  const std::size_t wavefront = WavefrontScratchBytes(reconstruction, shape.outputBox, shape.image, keyBytes);
  if (reconstruction.method == ReconstructionMethod::ParallelHeapCluster)
  {
    return wavefront + HeapClusterScratchBytes(reconstruction, shape.outputBox, shape.image, keyBytes);
  }
  return wavefront + ForestScratchBytes(ForestVoxels(reconstruction, shape.outputBox, shape.image, keyBytes));
}

} // namespace

void
RegisterCudaReconstruction(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunReconstruction;
  kernel.scratchBytes = ScratchOfReconstruction;
  registry.Register("reconstruction", kernel);
  Kernel voxelwise;
  voxelwise.run = [](const KernelCall & call) {
    DispatchPixelKind(call.output.kind, [&](auto pixel) {
      LaunchVoxels<decltype(pixel)>(call, BeginKernel<decltype(pixel)>, "reconstruction.begin");
    });
  };
  registry.Register("reconstruction.begin", voxelwise);
  voxelwise.run = [](const KernelCall & call) {
    if (static_cast<const ReconstructionOperation &>(*call.operation).result == ReconstructionResult::Reconstruction)
    {
      return;
    }
    DispatchPixelKind(call.output.kind, [&](auto pixel) {
      LaunchVoxels<decltype(pixel)>(call, FinishKernel<decltype(pixel)>, "reconstruction.finish");
    });
  };
  registry.Register("reconstruction.finish", voxelwise);
}

} // namespace chunkwise
