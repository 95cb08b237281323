/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandMemory_h
#define commandMemory_h

#include <cstdint>
#include <string>

namespace command
{

/** "1.5 GiB" */
std::string
FormatBytes(double bytes);

/** "1537 MiB", rounded up, so that it never reads like a budget that is less. */
std::string
FormatNeed(std::uint64_t bytes);

} // namespace command

#endif
