/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuMaskedWindow_h
#define chunkwiseCpuMaskedWindow_h

#include "chunkwiseMaskedStages.h"

// Windows in a mask with separate kernels in the place of the stages of DomainOperation, each of which goes through
// memory once. The results have the bits of the stages.
namespace chunkwise
{

/** A kernel of a window in a mask. */
struct MaskedWindow
{
  const char * name;
  bool (*takes)(const DomainOperation & operation, const Box & image, PixelType kind);
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
GetMaskedMedians();
MaskedWindow
GetMaskedRanks();
MaskedWindow
GetMaskedVariance();

/** A mask of bytes that are 0 outside, along x side by side: the run's own, if it is one, or `made` from it. */
BufferView
GetByteMask(const KernelCall & call, const BufferView & made, std::size_t bytes);

} // namespace chunkwise

#endif
