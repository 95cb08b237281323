/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseReservedTables_h
#define chunkwiseReservedTables_h

#include <cstddef>

namespace chunkwise
{

/** Tables that kernels make on a device leave so much of its budget, or less, free for others. A kernel that cannot do
 * without such a table counts both in KernelSet::tableBytes. */
constexpr std::size_t BytesReservedForTables = std::size_t{ 4 } << 20;

} // namespace chunkwise

#endif
