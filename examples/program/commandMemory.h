/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandMemory_h
#define commandMemory_h

#include <cstdint>
#include <string>

namespace command
{

/** The most memory that this process has had resident so far, in bytes; 0 where the system does not tell. */
std::uint64_t
GetPeakMemory();

/** Bytes that programs can take before the machine swaps; 0 where the system does not tell. */
std::uint64_t
GetAvailableMemory();

/** "1.5 GiB" */
std::string
FormatBytes(double bytes);

/** "1537 MiB", rounded up, so that it never reads like a budget that is less. */
std::string
FormatNeed(std::uint64_t bytes);

} // namespace command

#endif
