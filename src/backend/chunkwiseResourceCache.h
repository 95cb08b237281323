/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseResourceCache_h
#define chunkwiseResourceCache_h

#include "ChunkwiseExport.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace chunkwise
{

/** Keeps what survives a streamed call: weights on a device, spectra of kernels, factors.
 *
 * Keyed by contents (an operation's key), never by pointers. The least recently used entries leave when the bytes
 * exceed the capacity; an entry somebody holds stays alive until it is let go. Thread-safe: concurrent requests for one
 * key make it once. */
class Chunkwise_EXPORT ResourceCache
{
public:
  struct Entry
  {
    std::shared_ptr<void> value;
    std::size_t           bytes{ 0 };
  };

  explicit ResourceCache(std::size_t capacity = std::size_t{ 256 } << 20);
  ~ResourceCache();

  std::shared_ptr<void>
  GetOrMake(const std::string & key, const std::function<Entry()> & make);
  std::size_t
  GetCapacity() const;
  /** Drops the least recently used entry that nobody holds; false if there is none. */
  bool
  DropOldest();
  std::size_t
  GetBytes() const;
  /** Drops the entries whose key begins with `prefix`. */
  void
  Clear(const std::string & prefix = std::string());

private:
  struct Impl;
  std::unique_ptr<Impl> m_Impl;
};

} // namespace chunkwise

#endif
