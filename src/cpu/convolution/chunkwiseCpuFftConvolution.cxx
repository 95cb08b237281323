/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBoundedConvolution.h"
#include "chunkwiseCpuConvolutionRows.h"
#include "chunkwiseCpuFftBlock.h"
#include "chunkwiseCpuTeam.h"
#include "chunkwiseError.h"
#include "chunkwiseFftwModule.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseRealOf.h"

namespace chunkwise
{

namespace
{

/** Chunks of fewer planes are cut into blocks, each the work of one worker, with whom those help who find none. */
constexpr std::int64_t FewPlanes = ConvolutionBlock::FewPlanes;

/** A block of that kind for kernels of one or two axes: one tile, in one plane. */
Coordinates
BlockOfPlane(const ConvolutionBlock & roles, const Coordinates & tile)
{
  Coordinates most = tile;
  for (int r = 2; r < MaxDimension; ++r)
  {
    most[roles.role[r].axis] = 1;
  }
  return most;
}

/** Planes of a chunk, which blocks of that kind are in; no less than FewPlanes: chunks are not cut so. */
std::int64_t
PlanesOf(const ConvolutionBlock & roles, const Coordinates & chunk)
{
  std::int64_t planes = roles.role[2].transformed ? FewPlanes : 1;
  for (int r = 2; r < MaxDimension; ++r)
  {
    planes *= chunk[roles.role[r].axis];
  }
  return planes;
}

/** A block of whole tiles. For a BoundedConvolution it has only what is asked along the axes that are transformed
 * first: along the last one tiles lie as they do in other blocks. */
ConvolutionBlock
MakeBlock(const ImageConvolutionOperation & operation, const Coordinates & image, const Coordinates & tile, Box & box)
{
  const auto * const bounded = dynamic_cast<const BoundedConvolution *>(&operation);
  const auto         all = ConvolutionBlock(operation, box, image, tile);
  const int          last = all.LastRole();
  if (!bounded)
  {
    return all;
  }
  for (int r = 0; r < last; ++r)
  {
    const int a = all.role[r].axis;
    box.lower[a] = std::max(box.lower[a], bounded->asked.lower[a]);
    box.upper[a] = std::max(box.lower[a], std::min(box.upper[a], bounded->asked.upper[a]));
  }
  ConvolutionBlock shorter(operation, box, image, &bounded->known);
  shorter.role[last].length = all.role[last].length;
  shorter.lastTile = all.lastTile;
  const bool reachesAll = std::all_of(
    shorter.role, shorter.role + last + 1, [](const auto & role) { return role.crop >= 0 && role.input > 0; });
  return reachesAll ? shorter : ConvolutionBlock(operation, box, image, tile);
}

/** 0 to all of the output. */
void
ClearOutput(const BufferView & output)
{
  const auto         size = static_cast<std::int64_t>(PixelSize(output.kind));
  const std::int64_t count = output.box.NumberOfVoxels();
  for (std::int64_t i = 0; i < count; ++i)
  {
    std::int64_t rest = i;
    std::int64_t offset = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      offset += rest % output.box.Extent(a) * output.stride[a];
      rest /= output.box.Extent(a);
    }
    std::fill_n(static_cast<char *>(output.data) + offset * size, size, 0);
  }
}

/** `VInPlanes`: blocks of planes, each the work of one worker; else all work on one block after the other. */
template <typename T, bool VInPlanes>
void
Run(const KernelCall & call)
{
  const auto &                   operation = static_cast<const ImageConvolutionOperation &>(*call.operation);
  const Coordinates              image = call.image.Extents();
  T * const                      factors = static_cast<T *>(call.scratch);
  T * const                      scratch = factors + NumbersOfFactors(operation, image);
  const ScaledConvolutionRows<T> rows(call, factors);
  const Coordinates              tile = ConvolutionBlock::Tile(operation, image);
  const Box                      tiles = AlignToTiles(call.output.box, tile, call.image);
  const Coordinates      most = VInPlanes ? BlockOfPlane(ConvolutionBlock::Largest(operation, tile, image), tile)
                                          : LargestBlock<T>(operation, image, tile);
  const std::vector<Box> blocks = CutIntoTiles(tiles, most, tiles);
  const auto * const     bounded = dynamic_cast<const BoundedConvolution *>(&operation);
  if (bounded && !bounded->asked.Contains(call.output.box))
  {
    ClearOutput(call.output);
  }
  const auto run = [&](const KernelCall & part, Box box, const BlockMemory<T> & memory) {
    const ConvolutionBlock block = MakeBlock(operation, image, tile, box);
    const Box              needed = Intersect(box, call.output.box);
    if (!needed.IsEmpty())
    {
      RunBlock<T>(part, rows, block, box, needed, memory);
    }
  };
  if constexpr (VInPlanes)
  {
    const BlockNumbers<T> largest(ConvolutionBlock::Largest(operation, most, image, tile));
    const std::int64_t    numbers = largest.Of(1);
    const unsigned int    workers = call.executor->GetConcurrency();
    SharedIndices         running(static_cast<std::int64_t>(blocks.size()));
    Team                  team(workers);
    call.executor->ParallelFor(workers, [&](std::int64_t, unsigned int worker) {
      Team::Member member(team, worker);
      KernelCall   part = call;
      part.executor = &member;
      running.Take([&](std::int64_t i) {
        T * const            spectrum = scratch + worker * numbers;
        const BlockMemory<T> memory{
          spectrum, scratch + largest.spectrum + largest.kernelRows, numbers, spectrum + largest.spectrum
        };
        run(part, blocks[static_cast<std::size_t>(i)], memory);
      });
      team.Help(worker, running);
    });
  }
  else
  {
    Coordinates extent = tiles.Extents();
    for (int a = 0; a < MaxDimension; ++a)
    {
      extent[a] = std::min(extent[a], most[a]);
    }
    const BlockNumbers<T> largest(ConvolutionBlock::Largest(operation, extent, image, tile));
    T * const             kernelRows = scratch + largest.spectrum;
    for (const Box & box : blocks)
    {
      run(call, box, { scratch, kernelRows + largest.kernelRows, largest.space, kernelRows });
    }
  }
}

/** Scratch is that of the largest block of the chunk's tiles. */
template <typename T>
KernelChoice
Choose(const ImageConvolutionOperation & operation, const ChunkShape & chunk)
{
  const Coordinates image = chunk.image.Extents();
  const Coordinates tile = ConvolutionBlock::Tile(operation, image);
  const Coordinates tiles = AlignToTiles(chunk.outputBox, tile, chunk.image).Extents();
  Coordinates       extent = LargestBlock<T>(operation, image, tile);
  for (int a = 0; a < MaxDimension; ++a)
  {
    extent[a] = std::min(extent[a], tiles[a]);
  }
  const auto         largest = ConvolutionBlock::Largest(operation, extent, image, tile);
  std::int64_t       numbers = BlockNumbers<T>(largest).Of(chunk.concurrency);
  const std::int64_t planes = PlanesOf(largest, chunk.outputBox.Extents());
  if (!largest.role[2].transformed)
  {
    // Chunks with more planes count too: what a chunk needs must not shrink when it grows.
    const BlockNumbers<T> ofPlane(ConvolutionBlock::Largest(operation, BlockOfPlane(largest, tile), image, tile));
    numbers = std::max(numbers, ofPlane.Of(1) * chunk.concurrency);
  }
  const bool   inPlanes = planes < FewPlanes;
  KernelChoice choice;
  choice.name = inPlanes ? "planes" : "blocks";
  choice.run = inPlanes ? Run<T, true> : Run<T, false>;
  choice.scratchBytes = static_cast<std::size_t>(NumbersOfFactors(operation, image) + numbers) * sizeof(T);
  return choice;
}

const char *
GetProvider(const Operation & operation, const std::string & whyNoDevice)
{
  std::string reason;
  switch (static_cast<const ImageConvolutionOperation &>(operation).transforms)
  {
    case TransformProvider::CuFFT:
      throw ParameterError(
        "TransformProvider: cufft is asked for, but libcufft serves CUDA devices alone, and the CPU computes" +
        (whyNoDevice.empty() ? "" : ": " + whyNoDevice));
    case TransformProvider::FFTW:
      if (!GetFftw(&reason))
      {
        throw ParameterError(
          "TransformProvider: fftw is asked for, but the module ChunkwiseFftw, which CHUNKWISE_USE_FFTW builds, "
          "cannot be opened: " +
          reason);
      }
      return "fftw";
    default:
      return "own";
  }
}

KernelChoice
ChooseConvolution(const Operation & operation, const ChunkShape & chunk)
{
  const auto & convolution = static_cast<const ImageConvolutionOperation &>(operation);
  // Wherever a plan is made for the CPU: it throws if the provider that is named is not there.
  (void)GetProvider(convolution, std::string());
  return UsesDouble(chunk.inputKinds[0]) ? Choose<double>(convolution, chunk) : Choose<float>(convolution, chunk);
}

} // namespace

void
RegisterHostFftConvolution(KernelRegistry & registry)
{
  Kernel kernel = MakeChoosingKernel<ChooseConvolution>(false);
  kernel.provider = GetProvider;
  registry.Register("convolution.fft", { kernel });
}

} // namespace chunkwise
