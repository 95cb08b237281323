/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaBoxStatistic_cuh
#define chunkwiseCudaBoxStatistic_cuh

#include "chunkwiseBoxTable.h"
#include "chunkwiseOperation.h"

// The steps of box statistics on a device, each compiled in a separate file. The table's entries are the call's
// scratch memory.
namespace chunkwise
{

/** Makes the table. */
void
MakeBoxEntries(const KernelCall & call, const BoxTable & table);

/** Whether QueryBoxRows stores the results of an output of these: boxes of one size that are no larger than rows of
 * threads allow. */
bool
SupportsBoxRows(const BoxStatisticOperation & operation, const BoxTable & table, const Box & output, const Box & image,
                PixelType input);
void
QueryBoxRows(const KernelCall & call, const BoxTable & table);

/** The same of any boxes. */
void
QueryBoxVoxels(const KernelCall & call, const BoxTable & table);

/** Calls f(TPixel{}, TEntry{}). */
template <typename TFunctor>
void
DispatchBoxTypes(const BoxStatisticOperation & operation, const Coordinates & image, PixelType input, TFunctor && f)
{
  DispatchPixelType(input, [&](auto pixel) {
    DispatchBoxEntry<decltype(pixel)>(operation, image, [&](auto entry) { f(pixel, entry); });
  });
}

/** The same of a call. */
template <typename TFunctor>
void
DispatchBoxTypes(const KernelCall & call, TFunctor && f)
{
  const auto & operation = static_cast<const BoxStatisticOperation &>(*call.operation);
  DispatchBoxTypes(operation, call.image.Extents(), call.inputs[0].kind, f);
}

} // namespace chunkwise

#endif
