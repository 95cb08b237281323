/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseMaskedStages_h
#define chunkwiseMaskedStages_h

#include "chunkwiseDomainOperation.h"

#include <algorithm>
#include <initializer_list>

// The parameters of DomainOperation's stages for kernels that compute windows in a mask in place of these stages.
namespace chunkwise
{

inline const DomainOperation &
MaskedDomainOf(const Operation & operation)
{
  return static_cast<const DomainOperation &>(operation);
}

/** An image of a chunk that begins at `offset` of the scratch, and goes before what follows. */
inline BufferView
TakeImage(char * scratch, std::size_t & offset, PixelType kind, const Box & box)
{
  const BufferView view = DenseView(scratch + offset, kind, box);
  offset +=
    (static_cast<std::size_t>(std::max<std::int64_t>(box.NumberOfVoxels(), 0)) * PixelSize(kind) + 255) / 256 * 256;
  return view;
}

/** Runs the kernel of a stage, which reports nothing. Its own memory begins at `bytes` of the scratch. */
inline void
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

/** Makes bytes of 0 and 1 of what says which voxels are inside. */
inline void
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

} // namespace chunkwise

#endif
