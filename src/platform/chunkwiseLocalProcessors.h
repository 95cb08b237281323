/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseLocalProcessors_h
#define chunkwiseLocalProcessors_h

#include "ChunkwiseExport.h"

#include <string>
#include <vector>

namespace chunkwise
{

/** The processors of the host that lie beside a device, of those on which this thread may run. Empty where that is not
 * known, where all lie there, or where fewer than `least` do: then it does not matter, or would do harm.
 *
 * busAddress is the device's on the PCI bus, such as "0000:3B:00.0". Linux only. */
Chunkwise_EXPORT std::vector<int>
                 FindLocalProcessors(const std::string & busAddress, std::size_t least);

/** The folder in which the system describes itself: "/sys", but for tests. */
Chunkwise_EXPORT std::string &
                 GetSystemFolder();

/** Binds this thread to some processors, and so the memory that it touches first to their node, until the end of the
 * scope. Nothing if there are none, or if the system refuses. */
class Chunkwise_EXPORT ThreadBinding
{
public:
  explicit ThreadBinding(const std::vector<int> & processors);
  ~ThreadBinding();
  ThreadBinding(const ThreadBinding &) = delete;
  ThreadBinding &
  operator=(const ThreadBinding &) = delete;

private:
  /** The processors that it had; empty: it was not bound. */
  std::vector<int> m_Before;
};

} // namespace chunkwise

#endif
