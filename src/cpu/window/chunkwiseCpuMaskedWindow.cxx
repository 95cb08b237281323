/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuMaskedWindow.h"

#include "chunkwiseCompositeOperation.h"
#include "chunkwiseHostKernelList.h"

#include <algorithm>

namespace chunkwise
{

BufferView
TakeImage(char * scratch, std::size_t & offset, PixelKind kind, const Box & box)
{
  const BufferView view = DenseView(scratch + offset, kind, box);
  offset +=
    (static_cast<std::size_t>(std::max<std::int64_t>(box.NumberOfVoxels(), 0)) * PixelSize(kind) + 255) / 256 * 256;
  return view;
}

void
RunMaskedStage(const KernelCall & call, const char * name, const Operation & operation,
               std::initializer_list<BufferView> from, const BufferView & to, std::size_t bytes)
{
  KernelCall part = call;
  part.operation = &operation;
  part.numberOfInputs = static_cast<int>(from.size());
  std::copy(from.begin(), from.end(), part.inputs);
  part.output = to;
  part.writable = to.box;
  part.scratch = static_cast<char *>(call.scratch) + bytes;
  part.scratchBytes = call.scratchBytes - bytes;
  part.control = nullptr;
  call.kernels->Get(name, "domain").run(part);
}

void
MakeMask(const KernelCall & call, const BufferView & mask, std::size_t bytes)
{
  const DomainOperation & domain = MaskedDomainOf(*call.operation);
  const char * const      name = "domain.mask.voxels";
  if (domain.domain == DomainKind::All)
  {
    RunMaskedStage(call, name, domain, { call.inputs[0] }, mask, bytes);
  }
  else if (domain.LeavesOutNan())
  {
    RunMaskedStage(call, name, domain, { call.inputs[1], call.inputs[0] }, mask, bytes);
  }
  else
  {
    RunMaskedStage(call, name, domain, { call.inputs[1] }, mask, bytes);
  }
}

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
  registry.Register("domain", kernel);
}

} // namespace chunkwise
