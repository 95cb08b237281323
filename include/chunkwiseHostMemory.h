/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseHostMemory_h
#define chunkwiseHostMemory_h

#include "ChunkwiseExport.h"

#include <cstddef>
#include <string>

// The memory, in bytes, and the processors that this process may use; the memory is 0 if the system does not tell.
// `root` is put before the paths of the system's files, so that tests can describe another machine in a folder.
namespace chunkwise
{

/** The memory that this process can allocate before the machine swaps, or before a control group stops it: the process'
 * group (of a container or of a batch job, version 1 or 2) or a group around it. Files that a group holds in memory
 * only to read them again do not count as taken. 1 where nothing is left. */
Chunkwise_EXPORT std::size_t
                 GetAvailableHostMemory(const std::string & root = std::string());

/** The most memory that this process has had resident so far. */
Chunkwise_EXPORT std::size_t
                 GetPeakHostMemory(const std::string & root = std::string());

/** The resident memory of this process. */
Chunkwise_EXPORT std::size_t
                 GetResidentHostMemory(const std::string & root = std::string());

/** The processors that the process may use at a time, at least 1: the processors that it is bound to (taskset, a batch
 * system), but no more than the processor time of its control group, or of a group around it (a container's --cpus,
 * rounded up). */
Chunkwise_EXPORT unsigned int
GetNumberOfProcessors(const std::string & root = std::string());

} // namespace chunkwise

#endif
