/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileMemory_h
#define fileMemory_h

#include <cstddef>
#include <cstdint>
#include <string>

namespace chunkwise::files
{

/** Memory of a run from files to a file that is reserved before its image is cut into stream blocks. */
struct JobMemory
{
  std::uint64_t total{ 0 }; ///< what the user allows
  /** The memory that the process that runs it has already. Less than LeastOwnBytes counts as that, so that small
   * differences do not change a plan, and a run has one plan in the program and in an application. */
  std::uint64_t own{ 0 };
  std::uint64_t heldByFiles{ 0 };
  /** The number of devices that may compute. */
  std::size_t devices{ 0 };
  /** Whether the CPU may compute in their place. */
  bool mayForgoDevices{ false };
  /** The limit of pinned memory for each device, in bytes; 0: no limit. */
  std::uint64_t pinned{ 0 };
};

/** The share of each. */
struct JobShares
{
  std::uint64_t beside{ 0 };     ///< all but the divisions, with pinned memory
  std::uint64_t divisions{ 0 };  ///< with scratch and kept planes; 1 if nothing is left
  std::uint64_t pinned{ 0 };     ///< of each device
  std::uint64_t ofContexts{ 0 }; ///< what devices would take of the host's memory
  bool          forgoesDevices{ false };
};

constexpr std::uint64_t LeastOwnBytes = std::uint64_t{ 32 } << 20;

/** The one formula for what a run may use. */
JobShares
ShareJobMemory(const JobMemory & memory);

/** Lets headers, texts and tables of files that this process opens from now on take a part of `run`, the bytes that a
 * run may take in all. Before that they may take 1 GiB for each file. */
void
SetMemoryOfHeaders(std::uint64_t run);

/** Throws FileError if `bytes` of memory for a file's `what` are more than headers may take. */
void
CheckMemoryOfHeader(const std::string & file, const std::string & what, std::uint64_t bytes);

} // namespace chunkwise::files

#endif
