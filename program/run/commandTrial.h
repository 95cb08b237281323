/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandTrial_h
#define commandTrial_h

#include "chunkwiseStreamedRun.h"

namespace command
{

/** Seconds that the CPU would compute for the whole run, from a trial on a part of an image of noise that takes a
 * moment and no more memory than a division. 0 where a part says nothing of the whole. */
double
TimeOnNoise(const chunkwise::StreamedRequest & stream, const chunkwise::StreamedPlan & plan);

} // namespace command

#endif
