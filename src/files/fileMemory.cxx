/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileMemory.h"

#include "fileDescriptor.h"

#include <algorithm>
#include <atomic>

namespace chunkwise::files
{

namespace
{

constexpr std::uint64_t Mebibyte = std::uint64_t{ 1 } << 20;

std::atomic<std::uint64_t> memoryOfHeaders{ 1024 * Mebibyte };

/** Host memory that contexts of devices and their kernels take, in bytes; known once they are there. */
std::uint64_t
GetBytesOfContexts(std::size_t devices)
{
  return devices > 0 ? (128 + 64 * devices) * Mebibyte : 0;
}

} // namespace

JobShares
ShareJobMemory(const JobMemory & memory)
{
  JobShares shares;
  shares.ofContexts = GetBytesOfContexts(memory.devices);
  // Beside the process, file formats and threads take a little.
  shares.beside = std::max(memory.own, LeastOwnBytes) + 16 * Mebibyte + memory.heldByFiles;
  // Devices are to have as much again for pinned memory and divisions.
  shares.forgoesDevices =
    memory.devices > 0 && memory.mayForgoDevices && memory.total < shares.beside + 2 * shares.ofContexts;
  const std::size_t devices = shares.forgoesDevices ? 0 : memory.devices;
  shares.beside += devices > 0 ? shares.ofContexts : 0;
  // If the process alone takes more, no division fits, and the error names all that a run needs.
  shares.divisions = memory.total > shares.beside ? memory.total - shares.beside : 1;
  if (devices > 0)
  {
    const std::uint64_t share = std::min<std::uint64_t>(shares.divisions / 4 / devices, 256 * Mebibyte);
    shares.pinned = memory.pinned > 0 ? std::min(memory.pinned, share) : share;
    shares.beside += shares.pinned * devices;
    shares.divisions -= shares.pinned * devices;
  }
  return shares;
}

void
SetMemoryOfHeaders(std::uint64_t run)
{
  // Half of what the program itself leaves; small headers are always read, and the plan counts them.
  const std::uint64_t left = run > LeastOwnBytes ? run - LeastOwnBytes : 0;
  memoryOfHeaders = std::max(left / 2, 4 * Mebibyte);
}

void
CheckMemoryOfHeader(const std::string & file, const std::string & what, std::uint64_t bytes)
{
  const auto text = [](std::uint64_t of) { return std::to_string((of + Mebibyte - 1) / Mebibyte) + " MiB"; };
  if (bytes > memoryOfHeaders)
  {
    Fail(file,
         "its " + what + " would take " + text(bytes) + " of memory; the memory of this run leaves " +
           text(memoryOfHeaders) + " for headers");
  }
}

} // namespace chunkwise::files
