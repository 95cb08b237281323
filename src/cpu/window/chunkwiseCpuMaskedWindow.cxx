/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuMaskedWindow.h"

#include "chunkwiseCompositeOperation.h"
#include "chunkwiseHostKernelList.h"

namespace chunkwise
{

BufferView
GetByteMask(const KernelCall & call, const BufferView & made, std::size_t bytes)
{
  const DomainOperation & domain = MaskedDomainOf(*call.operation);
  const BufferView &      mask = call.inputs[1];
  if (domain.domain == DomainKind::Mask && !domain.LeavesOutNan() && PixelSize(mask.kind) == 1 && mask.stride[0] == 1)
  {
    return mask;
  }
  MakeMask(call, made, bytes);
  return made;
}

namespace
{

/** The kernel of the stages runs where no other does. */
MaskedWindow
WindowOf(const Operation & operation, const Box & image, PixelKind kind)
{
  const Kernel stages = MakeCompositeKernel();
  MaskedWindow window{ nullptr, stages.run, stages.scratchBytes };
  for (const MaskedWindow & own :
       { GetMaskedMean(), GetMaskedExtrema(), GetMaskedGaussian(), GetMaskedRanks(), GetMaskedVariance() })
  {
    window = own.takes(MaskedDomainOf(operation), image, kind) ? own : window;
  }
  return window;
}

void
RunDomain(const KernelCall & call)
{
  WindowOf(*call.operation, call.image, call.inputs[0].kind).run(call);
}

std::size_t
ScratchOfDomain(const Operation & operation, const ChunkShape & shape)
{
  return WindowOf(operation, shape.image, shape.inputKinds[0]).scratchBytes(operation, shape);
}

} // namespace

void
RegisterHostMaskedWindows(KernelRegistry & registry)
{
  Kernel kernel = MakeCompositeKernel();
  kernel.run = RunDomain;
  kernel.scratchBytes = ScratchOfDomain;
  registry.Register("domain", { kernel });
}

} // namespace chunkwise
