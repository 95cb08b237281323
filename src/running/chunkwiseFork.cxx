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

} // namespace

unsigned int
GetForkCount()
{
#if !defined(_WIN32)
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  (void)registered;
#endif
  return forks;
}

} // namespace chunkwise
