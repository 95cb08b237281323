/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuMaskedWindow.h"

#include "chunkwiseCompositeOperation.h"
#include "chunkwiseCpuWideMaskedMean.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseKernelChoice.h"

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

/** Stages of means, of which those whose sums overflow are taken in double afterwards. */
void
RunStagesOfMeans(const KernelCall & call)
{
  std::uint32_t & isNotFinite = *WideMaskedMean::GetNote(call);
  isNotFinite = 0;
  MakeCompositeKernel().run(call);
  if (isNotFinite != 0)
  {
    const WideMaskedMean mean(
      MaskedDomainOf(*call.operation), call.inputs[0], call.inputs[call.numberOfInputs - 1], call.image);
    call.output.kind == PixelType::Float32 ? AmendMaskedMeans<float>(call, mean) : AmendMaskedMeans<double>(call, mean);
  }
}

/** The stages run where no kernel of a window does. */
KernelChoice
ChooseDomain(const Operation & operation, const ChunkShape & shape)
{
  const Kernel stages = MakeCompositeKernel();
  const auto   run = WideMaskedMean::IsNeededBy(MaskedDomainOf(operation)) ? RunStagesOfMeans : stages.run;
  MaskedWindow window{ "stages", nullptr, run, stages.scratchBytes };
  for (const MaskedWindow & own : { GetMaskedMean(),
                                    GetMaskedExtrema(),
                                    GetMaskedGaussian(),
                                    GetMaskedMedians(),
                                    GetMaskedRanks(),
                                    GetMaskedVariance() })
  {
    window = own.takes(MaskedDomainOf(operation), shape.image, shape.inputKinds[0]) ? own : window;
  }
  return { window.name, window.run, window.scratchBytes(operation, shape), stages.cost(operation, shape) };
}

} // namespace

void
RegisterHostMaskedWindows(KernelRegistry & registry)
{
  registry.Register("domain", { MakeChoosingKernel<ChooseDomain>(true) });
}

} // namespace chunkwise
