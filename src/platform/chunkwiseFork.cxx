/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFork.h"

#include <atomic>

#if !defined(_WIN32)
#  include <pthread.h>
#endif

namespace chunkwise
{

namespace
{

std::atomic<unsigned int> forks{ 0 };

#if !defined(_WIN32)
// When the library is loaded, not when somebody first asks: a fork beside that would leave the child waiting for the
// thread that asked.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
#endif

} // namespace

unsigned int
GetForkCount()
{
  return forks;
}

} // namespace chunkwise
