/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseHostMemory_h
#define chunkwiseHostMemory_h

#include "ChunkwiseExport.h"

#include <cstddef>
#include <string>

// What of the machine this process has: memory, in bytes, 0 where the system does not tell, and processors. `root` is
// put before the paths of the system's files: another folder lets tests be a machine of their own.
namespace chunkwise
{

/** What this process can take before the machine swaps, or before a control group stops it: its own (of a container or
 * of a batch job, version 1 or 2) or one around that. Files that a group holds in memory only
 * to read them again do not count as taken. 1 where nothing is left. */
Chunkwise_EXPORT std::size_t
                 GetAvailableHostMemory(const std::string & root = std::string());

/** The most memory that this process has had resident so far. */
Chunkwise_EXPORT std::size_t
                 GetPeakHostMemory(const std::string & root = std::string());

/** What this process has resident now. */
Chunkwise_EXPORT std::size_t
                 GetResidentHostMemory(const std::string & root = std::string());

/** The processors that the process may use at a time, at least 1: those that it is bound to (taskset, a batch system),
 * and no more than its control group, or one around that, has the time of (a container's --cpus, rounded up). */
Chunkwise_EXPORT unsigned int
GetNumberOfProcessors(const std::string & root = std::string());

} // namespace chunkwise

#endif
