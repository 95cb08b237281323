/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseThreads.h"

#include <algorithm>
#include <exception>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

namespace chunkwise
{

bool
StartThread(std::thread & thread, std::function<void()> work)
{
  try
  {
    thread = std::thread(std::move(work));
    return true;
  }
  catch (const std::system_error &)
  {
    return false;
  }
  catch (const std::bad_alloc &)
  {
    return false;
  }
}

bool
JoinedThreads::Start(std::function<void()> work)
{
  std::thread thread;
  try
  {
    m_Threads.reserve(m_Threads.size() + 1);
  }
  catch (const std::bad_alloc &)
  {
    return false;
  }
  if (!StartThread(thread, std::move(work)))
  {
    return false;
  }
  m_Threads.push_back(std::move(thread));
  return true;
}

void
JoinedThreads::Join()
{
  for (std::thread & thread : m_Threads)
  {
    thread.join();
  }
  m_Threads.clear();
}

void
RunTogether(std::size_t count, const std::function<void(std::size_t)> & body)
{
  std::vector<std::exception_ptr> errors(count);
  std::vector<std::size_t>        left;
  const auto                      call = [&](std::size_t i) {
    try
    {
      body(i);
    }
    catch (...)
    {
      errors[i] = std::current_exception();
    }
  };
  {
    JoinedThreads threads;
    for (std::size_t i = 1; i < count; ++i)
    {
      if (!threads.Start([&call, i] { call(i); }))
      {
        left.push_back(i);
      }
    }
    if (count > 0)
    {
      call(0);
    }
    std::for_each(left.begin(), left.end(), call);
  }
  for (const std::exception_ptr & error : errors)
  {
    if (error)
    {
      std::rethrow_exception(error);
    }
  }
}

} // namespace chunkwise
