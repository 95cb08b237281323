/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRegions_h
#define chunkwiseRegions_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

/** The output of an operation: the image, but for one with an OutputGrid. */
Chunkwise_EXPORT Box
GetOutputBox(const Operation & operation, const Box & image);

/** The box around the image and the output: voxels beyond it come from the opposite side. */
Chunkwise_EXPORT Box
GetCopiedBox(const Operation & operation, const Box & image);

/** The part of its inputs that an operation needs for a part of the output: that part, padded by the halo and cut at
 * the image; the whole axis where windows that wrap around leave the image. An OutputGrid says it itself. */
Chunkwise_EXPORT Box
GetInputBox(const Operation & operation, const Box & output, const Box & image);

/** Whether a run must have the whole of an axis in its region: voxels depend on all others along it. */
Chunkwise_EXPORT bool
NeedsWholeAxis(const Operation & operation, int axis, const Box & image);

} // namespace chunkwise

#endif
