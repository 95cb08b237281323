/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
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
constexpr std::int64_t FewPlanes = 16;

/** The extent of such a block, whatever the number of workers: so long that little of a line is overlap, or so many
 * rows. Along axes with one voxel a block there is one plane. False if the kernel extends along three axes. */
template <typename T>
bool
BlockOfPlane(const ImageConvolutionOperation & operation, const Coordinates & image, Coordinates & most,
             std::int64_t & planes, const Coordinates & chunk)
{
  const auto shape = ConvolutionBlock::Largest(operation, Coordinates::Filled(1), image);
  if (shape.role[2].transformed)
  {
    return false;
  }
  most = LargestBlock<T>(operation, image);
  planes = 1;
  for (int r = 0; r < MaxDimension; ++r)
  {
    const int          a = shape.role[r].axis;
    const std::int64_t k = shape.role[r].kernel;
    most[a] = std::min(most[a],
                       shape.role[r].transformed ? std::max<std::int64_t>(512, 8 * k) - (k - 1)
                                                 : std::int64_t{ r == 1 ? 64 : 1 });
    most[a] = std::min(most[a], chunk[a]);
    planes *= r < 2 ? 1 : chunk[a];
  }
  return true;
}

/** The numbers that a block takes of the scratch, in this order. */
template <typename T>
struct BlockNumbers
{
  std::int64_t spectrum;
  std::int64_t kernelRows;
  std::int64_t space; ///< of a worker

  explicit BlockNumbers(const ConvolutionBlock & block)
    : spectrum(CellShape<T>(block).Spectrum())
    , kernelRows(NumbersOfKernelRows<T>(block))
    , space(CellShape<T>(block).Worker())
  {}
  std::int64_t
  Of(std::int64_t workers) const
  {
    return spectrum + kernelRows + workers * space;
  }
};

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
  if constexpr (VInPlanes)
  {
    Coordinates  most{};
    std::int64_t planes = 0;
    BlockOfPlane<T>(operation, image, most, planes, call.output.box.Extents());
    const std::vector<Box> blocks = CutIntoBlocks(call.output.box, most);
    const BlockNumbers<T>  largest(ConvolutionBlock::Largest(operation, most, image));
    const std::int64_t     numbers = largest.Of(1);
    const unsigned int     workers = call.executor->GetConcurrency();
    SharedIndices          running(static_cast<std::int64_t>(blocks.size()));
    Team                   team(workers);
    call.executor->ParallelFor(workers, [&](std::int64_t, unsigned int worker) {
      Team::Member member(team, worker);
      KernelCall   part = call;
      part.executor = &member;
      running.Take([&](std::int64_t i) {
        T * const            spectrum = scratch + worker * numbers;
        const BlockMemory<T> memory{
          spectrum, scratch + largest.spectrum + largest.kernelRows, numbers, spectrum + largest.spectrum
        };
        RunBlock<T>(part, rows, blocks[static_cast<std::size_t>(i)], memory);
      });
      team.Help(worker, running);
    });
  }
  else
  {
    for (const Box & block : CutIntoBlocks(call.output.box, LargestBlock<T>(operation, image)))
    {
      RunBlock<T>(call, rows, block, scratch);
    }
  }
}

/** Scratch is that of the largest block of a chunk, wherever in the image it lies. */
template <typename T>
KernelChoice
Choose(const ImageConvolutionOperation & operation, const ChunkShape & chunk)
{
  const Coordinates image = chunk.image.Extents();
  Coordinates       extent = LargestBlock<T>(operation, image);
  for (int a = 0; a < MaxDimension; ++a)
  {
    extent[a] = std::min(extent[a], chunk.outputBox.Extent(a));
  }
  std::int64_t numbers = BlockNumbers<T>(ConvolutionBlock::Largest(operation, extent, image)).Of(chunk.concurrency);
  Coordinates  most{};
  std::int64_t planes = 0;
  const bool   hasPlanes = BlockOfPlane<T>(operation, image, most, planes, chunk.outputBox.Extents());
  if (hasPlanes)
  {
    // Chunks with more planes count too: what a chunk needs must not shrink when it grows.
    const BlockNumbers<T> largest(ConvolutionBlock::Largest(operation, most, image));
    numbers = std::max(numbers, largest.Of(1) * chunk.concurrency);
  }
  const bool   inPlanes = hasPlanes && planes < FewPlanes;
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
