/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseMappedMemory_h
#define chunkwiseMappedMemory_h

#include "ChunkwiseExport.h"

#include <cstddef>

namespace chunkwise
{

/** Memory that comes from the system and returns to it when it is freed: the C library keeps what short-lived threads
 * have freed, beyond any budget. At least 256-byte aligned. Throws std::bad_alloc. */
Chunkwise_EXPORT void *
AllocateMapped(std::size_t bytes);

Chunkwise_EXPORT void
FreeMapped(void * memory);

/** Asks the system for large pages where it takes such advice: to touch many small pages for the first time takes
 * longer than to fill them. Small ranges stay as they are. */
Chunkwise_EXPORT void
AdviseLargePages(void * memory, std::size_t bytes);

} // namespace chunkwise

#endif
