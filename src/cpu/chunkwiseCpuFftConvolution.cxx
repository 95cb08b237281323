/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuConvolutionRows.h"
#include "chunkwiseCpuFftBlock.h"
#include "chunkwiseHostKernelList.h"

namespace chunkwise
{

namespace
{

template <typename T>
void
Run(const KernelCall & call)
{
  const auto &             operation = static_cast<const ImageConvolutionOperation &>(*call.operation);
  const ConvolutionRows<T> rows(call, call.output.box);
  const Coordinates        most = LargestBlock<T>(operation, call.image.Extents());
  for (const Box & block : CutIntoBlocks(call.output.box, most))
  {
    RunBlock<T>(call, rows, block);
  }
}

void
RunConvolution(const KernelCall & call)
{
  if (ConvolvesInDouble(call.inputs[0].kind))
  {
    Run<double>(call);
  }
  else
  {
    Run<float>(call);
  }
}

/** Of the largest block of a chunk, wherever in the image it lies. */
template <typename T>
std::size_t
ScratchOf(const ImageConvolutionOperation & operation, const ChunkShape & chunk)
{
  const Coordinates image = chunk.image.Extents();
  Coordinates       extent = LargestBlock<T>(operation, image);
  for (int a = 0; a < MaxDimension; ++a)
  {
    extent[a] = std::min(extent[a], chunk.outputBox.Extent(a));
  }
  const CellShape<T> shape(ConvolutionBlock::Largest(operation, extent, image));
  return static_cast<std::size_t>(shape.Spectrum() + shape.Worker() * chunk.concurrency) * sizeof(T);
}

std::size_t
ScratchOfConvolution(const Operation & operation, const ChunkShape & chunk)
{
  const auto & convolution = static_cast<const ImageConvolutionOperation &>(operation);
  return ConvolvesInDouble(chunk.inputKinds[0]) ? ScratchOf<double>(convolution, chunk)
                                                : ScratchOf<float>(convolution, chunk);
}

} // namespace

void
RegisterHostFftConvolution(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunConvolution;
  kernel.scratchBytes = ScratchOfConvolution;
  registry.Register("convolution.fft", kernel);
}

} // namespace chunkwise
