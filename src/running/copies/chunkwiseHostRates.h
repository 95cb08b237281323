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

/** Threads that copy between pageable and pinned memory for a device. */
struct TransferThreads
{
  unsigned int gathering;  ///< what goes to the device
  unsigned int scattering; ///< what comes from it
};

/** As many as move what a link takes in each direction, in bytes a second, if a thread alone copies `rateOfThread`,
 * with a quarter more since they wait for each other; at least 1 each, and together no more than there are processors.
 * A thread that scatters writes past the caches, reads from them, and so does what two thirds more threads gather. */
Chunkwise_EXPORT TransferThreads
FindTransferThreads(double toDeviceRate, double toHostRate, double rateOfThread, unsigned int processors);

/** The same for this host, as it measures itself, whose processors `sharers` such links share. If half of a share are
 * few, all of these for each direction: no thread of today's hosts is so fast that fewer would do, and nothing is
 * measured. */
Chunkwise_EXPORT TransferThreads
FindTransferThreads(double toDeviceRate, double toHostRate, unsigned int sharers);

} // namespace chunkwise

#endif
