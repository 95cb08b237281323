/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseHostRates_h
#define chunkwiseHostRates_h

#include "ChunkwiseExport.h"

namespace chunkwise
{

/** Bytes a second that one thread of the host copies, as it does for transfers. Measures for some milliseconds at the
 * first call, and remembers. */
Chunkwise_EXPORT double
GetHostCopyRate();

/** Threads that move `rate` bytes a second in one direction if each moves `rateOfThread`, with a quarter more since
 * they wait for each other; at least 1, and at most half the processors: as many move what goes the other way. */
Chunkwise_EXPORT unsigned int
FindTransferThreads(double rate, double rateOfThread, unsigned int processors);

/** The same for this host, as it measures itself. Where half the processors are few, all of these: no thread of today's
 * hosts is so fast that fewer would do, and nothing is measured. */
Chunkwise_EXPORT unsigned int
FindTransferThreads(double rate);

} // namespace chunkwise

#endif
