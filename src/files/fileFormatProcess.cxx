/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormatProcess.h"

#include "chunkwiseModuleFile.h"

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char ** environ;

namespace chunkwise::files
{

namespace
{

constexpr const char * ProgramName = "ChunkwiseFormats";
/** Headers, names and metadata. */
constexpr std::uint64_t MostBytesOfText = std::uint64_t{ 64 } << 20;
/** Disks and networks may wait long, which is no computing. */
constexpr double PatienceSeconds = 120;

/** The process is not there any more, or does not answer. */
struct Ended
{
  bool hung{ false };
};

std::vector<std::string>
ListPrograms()
{
  if (const char * const given = std::getenv("CHUNKWISE_FORMATS_MODULE"))
  {
    return { given };
  }
  std::vector<std::string> programs;
  const std::string        library = GetLibraryFolder();
  // The folder of a program that has the library inside it may be unknown; the current folder is never searched, since
  // nobody chose it.
  for (const char * const folder : { "", "../formats/", "../libexec/chunkwise/", "../../libexec/chunkwise/" })
  {
    if (!library.empty())
    {
      programs.push_back(library + folder + ProgramName);
    }
  }
#if defined(CHUNKWISE_INSTALLED_FORMATS_FOLDER)
  programs.push_back(std::string(CHUNKWISE_INSTALLED_FORMATS_FOLDER "/") + ProgramName);
#endif
  return programs;
}

/** Starts `program` with `channel` as its standard input; an error number if it cannot be started. */
int
Spawn(const std::string & program, int channel, pid_t & process)
{
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t          attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, channel, STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Signals of the terminal are for this process, which ends that one.
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  char * const arguments[] = { const_cast<char *>(ProgramName), nullptr };
  const int    error = ::posix_spawn(&process, program.c_str(), &actions, &attributes, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

} // namespace

FormatProcess::FormatProcess(const std::string & file)
{
  this->Start(file);
  formats::MessageWriter nothing;
  const std::string      reply = this->Ask(
    file, "HDF5 and DICOM need the program ChunkwiseFormats, which does not run", formats::Request::Greet, nothing, {});
  if (reply.size() != sizeof(formats::Version) || std::memcmp(reply.data(), &formats::Version, reply.size()) != 0)
  {
    this->End();
    Fail(file, "HDF5 and DICOM need the program ChunkwiseFormats, which is of another version of the library");
  }
}

FormatProcess::~FormatProcess()
{
  this->End();
}

void
FormatProcess::Start(const std::string & file)
{
  int sockets[2] = { -1, -1 };
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
  {
    FailWithErrno(file, "HDF5 and DICOM need the program ChunkwiseFormats, which cannot be started", errno);
  }
  std::string reasons;
  for (const std::string & program : ListPrograms())
  {
    const int error = Spawn(program, sockets[1], m_Process);
    if (error == 0)
    {
      break;
    }
    m_Process = -1;
    reasons += (reasons.empty() ? "" : "; ") + program + ": " + std::strerror(error);
    if (error != ENOENT && error != ENOTDIR)
    {
      // The program is there. Another one would not start either.
      reasons = program + ": " + std::strerror(error);
      break;
    }
  }
  ::close(sockets[1]);
  if (m_Process < 0)
  {
    ::close(sockets[0]);
    Fail(file, "HDF5 and DICOM need the program ChunkwiseFormats, which cannot be started: " + reasons);
  }
  m_Channel = sockets[0];
}

/** Ends the process; how it came to its end, if by itself. */
std::string
FormatProcess::End()
{
  if (m_Channel >= 0)
  {
    ::close(m_Channel);
    m_Channel = -1;
  }
  if (m_Process <= 0)
  {
    return std::string();
  }
  int         status = 0;
  const pid_t process = m_Process;
  m_Process = -1;
  // It ends where its socket is closed; what does not, as within a system call, is killed.
  for (int attempt = 0;; ++attempt)
  {
    const pid_t ended = ::waitpid(process, &status, attempt < 100 ? WNOHANG : 0);
    if (ended == process)
    {
      break;
    }
    if (ended < 0 && errno != EINTR)
    {
      // The program that this library is in does not let it see how its children end.
      return std::string();
    }
    if (attempt == 99)
    {
      ::kill(process, SIGKILL);
    }
    if (ended == 0)
    {
      ::usleep(attempt < 20 ? 200 : 5000);
    }
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
  {
    return "its library does not come to an end";
  }
  if (WIFSIGNALED(status))
  {
    return std::string("its library crashed (") + ::strsignal(WTERMSIG(status)) + ")";
  }
  return std::string();
}

void
FormatProcess::Send(const void * data, std::size_t bytes)
{
  const auto * from = static_cast<const char *>(data);
  while (bytes > 0)
  {
    const ssize_t count = ::send(m_Channel, from, bytes, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR)
    {
      throw Ended{};
    }
    from += std::max<ssize_t>(count, 0);
    bytes -= static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
}

void
FormatProcess::Receive(void * data, std::size_t bytes)
{
  auto * to = static_cast<char *>(data);
  while (bytes > 0)
  {
    pollfd    ready{ m_Channel, POLLIN, 0 };
    const int polled = ::poll(&ready, 1, m_Patience);
    if (polled == 0)
    {
      throw Ended{ true };
    }
    const ssize_t count = polled > 0 ? ::recv(m_Channel, to, bytes, 0) : -1;
    if (count == 0 || (count < 0 && errno != EINTR))
    {
      throw Ended{};
    }
    to += std::max<ssize_t>(count, 0);
    bytes -= static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
}

void
FormatProcess::SendRequest(formats::Request request, const formats::MessageWriter & message,
                           const FormatLimits & limits, const void * voxels, std::size_t voxelBytes)
{
  if (m_Channel < 0)
  {
    throw Ended{};
  }
  m_Patience = static_cast<int>(std::min(1e3 * (PatienceSeconds + 10 * limits.seconds), 1e9));
  formats::RequestFrame frame{};
  frame.request = request;
  frame.seconds = static_cast<std::uint32_t>(std::min(std::ceil(limits.seconds), 1e9));
  frame.memory = limits.memory + message.Get().size() + voxelBytes + (std::uint64_t{ 1 } << 20);
  frame.bytes = message.Get().size() + voxelBytes;
  this->Send(&frame, sizeof(frame));
  this->Send(message.Get().data(), message.Get().size());
  this->Send(voxels, voxelBytes);
}

/** The size of a reply; throws FileError if the request was refused. */
std::uint64_t
FormatProcess::ReceiveFrame(const std::string & file, const std::string & what)
{
  formats::ReplyFrame frame{};
  this->Receive(&frame, sizeof(frame));
  if (frame.reply == formats::Reply::Done)
  {
    return frame.bytes;
  }
  std::string why(std::min<std::uint64_t>(frame.bytes, 1000), '\0');
  this->Receive(why.data(), why.size());
  for (char & c : why)
  {
    c = static_cast<unsigned char>(c) < ' ' || c == 127 ? '?' : c;
  }
  // Libraries are in no state to go on.
  this->End();
  Fail(file, why.compare(0, 3, "is ") == 0 || why.compare(0, 4, "has ") == 0 ? why : what + ": " + why);
}

std::string
FormatProcess::Ask(const std::string & file, const std::string & what, formats::Request request,
                   const formats::MessageWriter & message, const FormatLimits & limits, const void * voxels,
                   std::size_t voxelBytes)
{
  try
  {
    this->SendRequest(request, message, limits, voxels, voxelBytes);
    const std::uint64_t bytes = this->ReceiveFrame(file, what);
    if (bytes > MostBytesOfText)
    {
      throw Ended{ true };
    }
    std::string reply(bytes, '\0');
    this->Receive(reply.data(), reply.size());
    return reply;
  }
  catch (const Ended & ended)
  {
    const std::string why = this->End();
    Fail(file, what + ": " + (ended.hung || why.empty() ? "its library does not answer" : why));
  }
}

void
FormatProcess::AskForVoxels(const std::string & file, formats::Request request, const formats::MessageWriter & message,
                            const FormatLimits & limits, void * voxels, std::size_t bytes)
{
  const std::string what = "cannot be read";
  try
  {
    this->SendRequest(request, message, limits, nullptr, 0);
    if (this->ReceiveFrame(file, what) != bytes)
    {
      this->End();
      Fail(file, what + ": its library gives another number of voxels than its header says");
    }
    this->Receive(voxels, bytes);
  }
  catch (const Ended & ended)
  {
    const std::string why = this->End();
    Fail(file, what + ": " + (ended.hung || why.empty() ? "its library does not answer" : why));
  }
}

} // namespace chunkwise::files
