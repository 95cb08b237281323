/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuMaskedWindow_h
#define chunkwiseCpuMaskedWindow_h

#include "chunkwiseDomainOperation.h"

#include <initializer_list>

// Windows in a mask that have a kernel of their own in the place of the stages of DomainOperation, each of which goes
// through memory once. The results have the bits of the stages.
namespace chunkwise
{

/** One of these kernels. */
struct MaskedWindow
{
  bool (*takes)(const DomainOperation & operation, const Box & image, PixelKind kind);
  void (*run)(const KernelCall & call);
  std::size_t (*scratchBytes)(const Operation & operation, const ChunkShape & shape);
};

MaskedWindow
GetMaskedMean();
MaskedWindow
GetMaskedExtrema();
MaskedWindow
GetMaskedGaussian();
MaskedWindow
GetMaskedRanks();
MaskedWindow
GetMaskedVariance();

inline const DomainOperation &
MaskedDomainOf(const Operation & operation)
{
  return static_cast<const DomainOperation &>(operation);
}

/** An image of a chunk that begins at `offset` of the scratch, and goes before what follows. */
BufferView
TakeImage(char * scratch, std::size_t & offset, PixelKind kind, const Box & box);

/** Runs the kernel of a stage, which reports nothing. Its own memory begins at `bytes` of the scratch. */
void
RunMaskedStage(const KernelCall & call, const char * name, const Operation & operation,
               std::initializer_list<BufferView> from, const BufferView & to, std::size_t bytes);

/** Makes bytes of 0 and 1 of what says which voxels are inside. */
void
MakeMask(const KernelCall & call, const BufferView & mask, std::size_t bytes);

/** A mask of bytes that are 0 outside, along x side by side: the run's own, if it is one, or `made` from it. */
BufferView
GetByteMask(const KernelCall & call, const BufferView & made, std::size_t bytes);

} // namespace chunkwise

#endif
