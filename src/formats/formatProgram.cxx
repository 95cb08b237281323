/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileItkHeader.h"
#include "formatServices.h"

#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <functional>
#include <malloc.h>
#include <map>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

// The process that opens what others have made with libraries that were not made for hostile input. The library of
// files starts it (fileFormatProcess.h); nobody else needs it. Its standard input is a socket.
namespace chunkwise::formats
{

namespace
{

int channel = -1;

/** OpenJPEG starts a thread for each processor. Their stacks count for the limit, though hardly any of it is used. */
constexpr std::uint64_t StackBytes = std::uint64_t{ 512 } << 10;

void
Receive(void * data, std::size_t bytes)
{
  auto * to = static_cast<char *>(data);
  while (bytes > 0)
  {
    const ssize_t count = ::read(channel, to, bytes);
    if (count == 0 || (count < 0 && errno != EINTR))
    {
      // Nobody is there any more.
      ::_exit(0);
    }
    to += std::max<ssize_t>(count, 0);
    bytes -= static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
}

void
Send(const void * data, std::size_t bytes)
{
  const auto * from = static_cast<const char *>(data);
  while (bytes > 0)
  {
    const ssize_t count = ::write(channel, from, bytes);
    if (count < 0 && errno != EINTR)
    {
      ::_exit(0);
    }
    from += std::max<ssize_t>(count, 0);
    bytes -= static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
}

/** Keeps the socket, and nothing else of what the caller has open. The output of libraries is dropped. */
void
TakeChannel()
{
  channel = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  if (channel < 0)
  {
    ::_exit(1);
  }
  if (DIR * const folder = ::opendir("/dev/fd"))
  {
    std::vector<int> others;
    while (const dirent * const entry = ::readdir(folder))
    {
      const int number = std::atoi(entry->d_name);
      if (number > STDERR_FILENO && number != channel && number != ::dirfd(folder))
      {
        others.push_back(number);
      }
    }
    ::closedir(folder);
    for (const int number : others)
    {
      ::close(number);
    }
  }
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int number = STDIN_FILENO; number <= STDERR_FILENO && nowhere >= 0; ++number)
  {
    ::dup2(nowhere, number);
  }
}

/** Ends the process with its caller, even where a library never returns. */
void *
Watch(void *)
{
  pollfd end{ channel, POLLRDHUP, 0 };
  while (::poll(&end, 1, -1) <= 0 || (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0)
  {
  }
  ::_exit(0);
}

/** The bytes that are allocated now, which the system's limit is about. */
[[maybe_unused]] std::uint64_t
GetDataBytes()
{
  unsigned long data = 0;
  if (FILE * const file = std::fopen("/proc/self/statm", "re"))
  {
    if (std::fscanf(file, "%*u %*u %*u %*u %*u %lu", &data) != 1)
    {
      data = 0;
    }
    std::fclose(file);
  }
  return static_cast<std::uint64_t>(data) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void
SetSoftLimit(int which, std::uint64_t value)
{
  rlimit limit{};
  if (::getrlimit(which, &limit) == 0)
  {
    limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? static_cast<rlim_t>(value)
                                                     : std::min(limit.rlim_max, static_cast<rlim_t>(value));
    ::setrlimit(which, &limit);
  }
}

void
SetLimits(const RequestFrame & frame, std::uint64_t ownBytes)
{
  if (ownBytes > 0)
  {
    // Those of one file may be kept while the next one begins.
    static const auto stacks =
      2 * StackBytes * static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
    SetSoftLimit(RLIMIT_DATA, ownBytes + stacks + frame.memory);
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  SetSoftLimit(RLIMIT_CPU,
               static_cast<std::uint64_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + 1 + frame.seconds);
}

void
SendReply(Reply reply, const std::string & text, const std::vector<char> & voxels)
{
  const ReplyFrame frame{ reply, 0, text.size() + voxels.size() };
  Send(&frame, sizeof(frame));
  Send(text.data(), text.size());
  Send(voxels.data(), voxels.size());
}

[[noreturn]] void
Serve()
{
  Hdf5Service                                                                     hdf5;
  DicomService                                                                    dicom;
  const std::map<Request, std::function<void(MessageReader & request, Answer &)>> services{
    { Request::Greet, [](MessageReader &, Answer & answer) { answer.text.Put(Version); } },
    { Request::OpenHdf5, [&](MessageReader & request, Answer & answer) { hdf5.Open(request, answer); } },
    { Request::ReadHdf5, [&](MessageReader & request, Answer & answer) { hdf5.Read(request, answer); } },
    { Request::CreateHdf5, [&](MessageReader & request, Answer & answer) { hdf5.Create(request, answer); } },
    { Request::WriteHdf5, [&](MessageReader & request, Answer & answer) { hdf5.Write(request, answer); } },
    { Request::CloseHdf5, [&](MessageReader & request, Answer & answer) { hdf5.Close(request, answer); } },
    { Request::FindDicom, [&](MessageReader & request, Answer & answer) { dicom.Find(request, answer); } },
    { Request::CheckDicom, [&](MessageReader & request, Answer & answer) { dicom.Check(request, answer); } },
    { Request::OpenDicom, [&](MessageReader & request, Answer & answer) { dicom.Open(request, answer); } },
    { Request::ReadDicom, [&](MessageReader & request, Answer & answer) { dicom.Read(request, answer); } },
  };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // No limit: sanitizers keep memory that was freed, and more.
  const std::uint64_t ownBytes = 0;
#else
  const std::uint64_t ownBytes = GetDataBytes();
#endif
  for (;;)
  {
    RequestFrame frame{};
    Receive(&frame, sizeof(frame));
    SetLimits(frame, ownBytes);
    std::string why;
    try
    {
      std::string bytes(frame.bytes, '\0');
      Receive(bytes.data(), bytes.size());
      MessageReader request(bytes);
      Answer        answer;
      services.at(frame.request)(request, answer);
      SendReply(Reply::Done, answer.text.Get(), answer.voxels);
      continue;
    }
    catch (const itk::ExceptionObject & error)
    {
      why = files::FirstLine(error.GetDescription());
    }
    catch (const std::bad_alloc &)
    {
      why = "its library asks for more memory than the file explains";
    }
    catch (const std::exception & error)
    {
      why = files::FirstLine(error.what());
    }
    catch (...)
    {
      // HDF5's exceptions have a separate base class.
      why = "its library failed";
    }
    SendReply(Reply::Refused, why.empty() ? "its library failed" : why, {});
  }
}

} // namespace

} // namespace chunkwise::formats

int
main()
{
  using namespace chunkwise::formats;
  TakeChannel();
  SetSoftLimit(RLIMIT_CORE, 0);
  // One arena of memory: those of threads would each keep what is free in them.
  ::mallopt(M_ARENA_MAX, 1);
  pthread_attr_t attributes;
  pthread_t      watch;
  if (::pthread_attr_init(&attributes) != 0 || ::pthread_attr_setstacksize(&attributes, StackBytes) != 0 ||
      ::pthread_setattr_default_np(&attributes) != 0 || ::pthread_create(&watch, nullptr, &Watch, nullptr) != 0)
  {
    return 1;
  }
  itk::Object::SetGlobalWarningDisplay(false);
  Serve();
}
