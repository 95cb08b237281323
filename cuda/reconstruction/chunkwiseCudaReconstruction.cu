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

/** The volume that a voxel is of: its index along the axes after the spatial ones. */
template <typename TPixel>
__device__ std::int64_t
           VolumeOf(const VoxelRun<TPixel> & run, const Coordinates & index, int spatialDimension)
{
  std::int64_t volume = 0;
  for (int a = MaxDimension - 1; a >= spatialDimension; --a)
  {
    volume = volume * run.extent.axis[a] + index.axis[a];
  }
  return volume;
}

/** Marks the volumes whose mask has more than one value. */
template <typename TPixel>
__global__ void
DiffersKernel(VoxelRun<TPixel> run, int spatialDimension, std::uint32_t * differs)
{
  for (std::int64_t voxel = blockIdx.x * std::int64_t{ VoxelThreads } + threadIdx.x; voxel < run.voxels;
       voxel += gridDim.x * std::int64_t{ VoxelThreads })
  {
    const Coordinates  index = run.IndexOf(voxel);
    const std::int64_t volume = VolumeOf(run, index, spatialDimension);
    Coordinates        first = index;
    for (int a = 0; a < spatialDimension; ++a)
    {
      first.axis[a] = 0;
    }
    const int mask = run.numberOfInputs - 1;
    if (!differs[volume] && !(run.Input(mask, index) == run.Input(mask, first)))
    {
      differs[volume] = 1;
    }
  }
}

/** Gives the volumes that are not marked one value. */
template <typename TPixel>
__global__ void
AmendKernel(VoxelRun<TPixel> run, int spatialDimension, const std::uint32_t * differs, TPixel value)
{
  for (std::int64_t voxel = blockIdx.x * std::int64_t{ VoxelThreads } + threadIdx.x; voxel < run.voxels;
       voxel += gridDim.x * std::int64_t{ VoxelThreads })
  {
    const Coordinates index = run.IndexOf(voxel);
    if (!differs[VolumeOf(run, index, spatialDimension)])
    {
      run.output[VoxelRun<TPixel>::Offset(index, run.outputStride)] = value;
    }
  }
}

bool
NeedsAmendment(const ReconstructionOperation & operation)
{
  return operation.result == ReconstructionResult::Extrema && operation.marker == ReconstructionMarker::NextBelow;
}

std::size_t
ScratchOfFinalization(const Operation & operation, const ChunkShape & shape)
{
  const auto & reconstruction = static_cast<const ReconstructionOperation &>(operation);
  std::size_t  volumes = NeedsAmendment(reconstruction) ? 1 : 0;
  for (int a = reconstruction.spatialDimension; a < MaxDimension; ++a)
  {
    volumes *= static_cast<std::size_t>(shape.outputBox.Extent(a));
  }
  return volumes * sizeof(std::uint32_t);
}

/** Whether a flat volume is an extremum is a matter of choice, and none of neighbours. */
template <typename TPixel>
void
FinalizeRegion(const KernelCall & call)
{
  const auto &                     operation = static_cast<const ReconstructionOperation &>(*call.operation);
  const VoxelRun<TPixel>           run(call);
  const ReconstructionRule<TPixel> rule(operation, call.image);
  if (run.voxels == 0 || !NeedsAmendment(operation))
  {
    return;
  }
  auto * const differs = static_cast<std::uint32_t *>(call.scratch);
  const auto   stream = static_cast<cudaStream_t>(call.stream);
  const auto   blocks =
    static_cast<unsigned int>(std::min<std::int64_t>((run.voxels + VoxelThreads - 1) / VoxelThreads, 1 << 16));
  ChunkShape shape;
  shape.outputBox = call.writable;
  CheckCuda(cudaMemsetAsync(differs, 0, ScratchOfFinalization(operation, shape), stream), "cudaMemsetAsync");
  DiffersKernel<<<blocks, VoxelThreads, 0, stream>>>(run, operation.spatialDimension, differs);
  AmendKernel<<<blocks, VoxelThreads, 0, stream>>>(
    run, operation.spatialDimension, differs, operation.flatIsExtremum ? rule.extremum : rule.elsewhere);
  CheckLaunch("reconstruction.finalizeRegion");
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

/** After how long a wavefront that goes on is asked whether it is still wanted. */
constexpr std::uint64_t NanosecondsBetweenLooks = 100000000;

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
  const PixelType                kind = call.output.kind;
  const ReconstructionCode<TKey> code(IsFloatingPoint(kind),
                                      kind == PixelType::Int8 || kind == PixelType::Int16 || kind == PixelType::Int32 ||
                                        kind == PixelType::Int64,
                                      operation.erosion ? static_cast<TKey>(~TKey{ 0 }) : TKey{ 0 });
  char * const                   scratch =
    static_cast<char *>(call.scratch) + WavefrontScratchBytes(operation, own, call.image, sizeof(TKey));
  if (operation.method == ReconstructionMethod::ParallelHeapCluster)
  {
    return RunHeapCluster(image, shape, operation, code, scratch, stream);
  }
  if constexpr (sizeof(TKey) <= 4)
  {
    if (HasRoomForForest(operation, own, call.image, sizeof(TKey)) && ForestFits(shape, own.NumberOfVoxels()))
    {
      return RunForest(image, shape, operation, code, scratch, stream);
    }
  }
  image.patience = NanosecondsBetweenLooks;
  RunWavefront(image, shape, operation, code, stream, [&] { return call.control && call.control->ShouldStop(); });
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
  return wavefront + ForestScratchBytes(reconstruction, shape.outputBox, shape.image, keyBytes);
}

} // namespace

void
RegisterCudaReconstruction(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.compute.run = RunReconstruction;
  kernels.compute.scratchBytes = ScratchOfReconstruction;
  kernels.begin.run = [](const KernelCall & call) {
    DispatchPixelType(call.output.kind, [&](auto pixel) {
      LaunchVoxels<decltype(pixel)>(call, BeginKernel<decltype(pixel)>, "reconstruction.begin");
    });
  };
  kernels.finish.run = [](const KernelCall & call) {
    if (static_cast<const ReconstructionOperation &>(*call.operation).result == ReconstructionResult::Reconstruction)
    {
      return;
    }
    DispatchPixelType(call.output.kind, [&](auto pixel) {
      LaunchVoxels<decltype(pixel)>(call, FinishKernel<decltype(pixel)>, "reconstruction.finish");
    });
  };
  kernels.finalizeRegion.run = [](const KernelCall & call) {
    DispatchPixelType(call.output.kind, [&](auto pixel) { FinalizeRegion<decltype(pixel)>(call); });
  };
  kernels.finalizeRegion.scratchBytes = ScratchOfFinalization;
  registry.Register("reconstruction", kernels);
}

// Runs of images that do not fit a memory are the library's; this module has its own copy of the operation.
const OutOfCoreRunner *
ReconstructionOperation::GetOutOfCoreRunner() const
{
  return nullptr;
}

} // namespace chunkwise
