/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFailingThreads.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>

namespace failing_threads
{

namespace
{

std::atomic<int> asked{ 0 };
std::atomic<int> firstToFail{ INT_MAX };
std::atomic<int> endOfFailing{ INT_MAX };

/** Reads a number from the environment of a program that does not know of this. */
int
ReadEnvironment(const char * name, int otherwise)
{
  const char * const text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

const bool isRead = [] {
  FailBetween(ReadEnvironment("CHUNKWISE_TEST_FIRST_FAILING_THREAD", INT_MAX),
              ReadEnvironment("CHUNKWISE_TEST_END_OF_FAILING_THREADS", INT_MAX));
  return true;
}();

} // namespace

bool (*isExempt)() = nullptr;

void
FailBetween(int first, int end)
{
  asked = 0;
  firstToFail = first;
  endOfFailing = end;
}

int
CountAsked()
{
  return asked;
}

} // namespace failing_threads

extern "C" int
pthread_create(pthread_t * thread, const pthread_attr_t * attributes, void * (*start)(void *), void * argument)
{
  using Create = int (*)(pthread_t *, const pthread_attr_t *, void * (*)(void *), void *);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (!failing_threads::isExempt || !failing_threads::isExempt())
  {
    const int number = failing_threads::asked++;
    if (number >= failing_threads::firstToFail && number < failing_threads::endOfFailing)
    {
      return EAGAIN;
    }
  }
  return create(thread, attributes, start, argument);
}
