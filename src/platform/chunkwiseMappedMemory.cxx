/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseMappedMemory.h"

#include <cstdint>
#include <new>

#if defined(_WIN32)
#  include "chunkwiseWindows.h"
#else
#  include <sys/mman.h>
#endif

namespace chunkwise
{

#if defined(__SANITIZE_ADDRESS__)
// The sanitizer sees only what the C library allocates.
void *
AllocateMapped(std::size_t bytes)
{
  return ::operator new(bytes, std::align_val_t(256));
}

void
FreeMapped(void * memory)
{
  ::operator delete(memory, std::align_val_t(256));
}
#elif defined(_WIN32)
void *
AllocateMapped(std::size_t bytes)
{
  void * const memory = VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (!memory)
  {
    throw std::bad_alloc();
  }
  return memory;
}

void
FreeMapped(void * memory)
{
  (void)VirtualFree(memory, 0, MEM_RELEASE);
}
#else
namespace
{
/** The header before a block, on a separate page: its length. */
constexpr std::size_t MappedHeader = 4096;
} // namespace

void *
AllocateMapped(std::size_t bytes)
{
  const std::size_t length = bytes + MappedHeader;
  void * const      memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
  {
    throw std::bad_alloc();
  }
  *static_cast<std::size_t *>(memory) = length;
  return static_cast<char *>(memory) + MappedHeader;
}

void
FreeMapped(void * memory)
{
  void * const begin = static_cast<char *>(memory) - MappedHeader;
  (void)munmap(begin, *static_cast<std::size_t *>(begin));
}
#endif

void
AdviseLargePages(void * memory, std::size_t bytes)
{
#if defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t page = std::uintptr_t{ 2 } << 20;
  const auto               begin = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
  const auto               end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / page * page;
  if (end >= begin + 16 * page)
  {
    (void)madvise(reinterpret_cast<void *>(begin), end - begin, MADV_HUGEPAGE);
  }
#else
  (void)memory;
  (void)bytes;
#endif
}

} // namespace chunkwise
