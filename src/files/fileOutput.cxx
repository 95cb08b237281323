/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileOutput.h"

#include "fileFormats.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace chunkwise::files
{

namespace fs = std::filesystem;

namespace
{

/** In each folder: locked as long as the process lives. */
constexpr const char * LockName = ".chunkwise";

/** What RemoveUnfinished removes: paths in memory that is always there. */
struct Slot
{
  static constexpr int NumberOfFiles = 3;

  std::atomic<bool> isTaken{ false };
  std::atomic<bool> isArmed{ false };
  char              folder[PATH_MAX]{};
  char              files[NumberOfFiles][PATH_MAX]{};
};

constexpr int NumberOfSlots = 8;
Slot          slots[NumberOfSlots];

void
CopyPath(char * to, const fs::path & from)
{
  std::snprintf(to, PATH_MAX, "%s", from.c_str());
}

fs::path
ParentOf(const fs::path & file)
{
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

bool
IsSameFile(const fs::path & a, const fs::path & b)
{
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

bool
IsThere(const fs::path & file)
{
  std::error_code error;
  return fs::exists(fs::symlink_status(file, error));
}

void
CheckMayBeReplaced(const std::string & shown, const fs::path & file)
{
  std::error_code error;
  const auto      status = fs::status(file, error);
  if (fs::is_directory(status))
  {
    Fail(shown, file.string() + " is a folder");
  }
  if (fs::exists(status) && !fs::is_regular_file(status))
  {
    Fail(shown, file.string() + " is a pipe, socket or device, not a file");
  }
}

/** Whether `header`, a file that is there, says that its voxels are in `data`. */
bool
HasVoxelsIn(const fs::path & header, const std::string & shown, const fs::path & data)
{
  const Format * const format = FindFormat(shown);
  if (!format || !format->locate)
  {
    return false;
  }
  try
  {
    return IsSameFile(format->locate(header.string()).data, data);
  }
  catch (const FileError &)
  {
    return false;
  }
}

/** The name that mkdtemp makes: a dot, NAME, a dot and six letters. */
bool
HasFolderName(const std::string & name)
{
  return name.size() > 8 && name[0] == '.' && name[name.size() - 7] == '.';
}

/** Removes the folders of processes that are gone: their locks can be had. */
void
RemoveLeftovers(const fs::path & parent)
{
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error))
  {
    if (!HasFolderName(entry->path().filename().string()))
    {
      continue;
    }
    const int number = ::open((entry->path() / LockName).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (number < 0)
    {
      continue;
    }
    if (::flock(number, LOCK_EX | LOCK_NB) == 0)
    {
      std::error_code ignored;
      fs::remove_all(entry->path(), ignored);
    }
    ::close(number);
  }
}

/** Moves `from` to `to`; false, with errno, if that fails. */
bool
Move(const fs::path & from, const fs::path & to)
{
  return ::rename(from.c_str(), to.c_str()) == 0;
}

} // namespace

fs::path
FollowLinks(const fs::path & name)
{
  fs::path file = name;
  for (int i = 0; i < 40; ++i)
  {
    std::error_code error;
    const fs::path  target = fs::read_symlink(file, error);
    if (error)
    {
      return file;
    }
    file = target.is_absolute() ? target : file.parent_path() / target;
  }
  Fail(name.string(), "is a symbolic link that leads to itself");
}

void
CheckDestination(const Destination & destination, const OutputOptions & options)
{
  const fs::path  parent = ParentOf(destination.file);
  std::error_code error;
  if (!fs::is_directory(parent, error))
  {
    Fail(destination.shown, "there is no folder " + parent.string());
  }
  if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
  {
    FailWithErrno(destination.shown, "cannot write into " + parent.string(), errno);
  }
  CheckMayBeReplaced(destination.shown, destination.file);
  for (const fs::path & input : options.inputFiles)
  {
    if (!destination.data.empty() && IsSameFile(input, destination.data))
    {
      Fail(destination.shown,
           "its voxels would replace " + destination.data.string() + ", which an input of this run uses");
    }
    if (!IsSameFile(input, destination.file))
    {
      continue;
    }
    bool isWhole = destination.data.empty();
    for (const fs::path & other : options.inputFiles)
    {
      isWhole = isWhole && (IsSameFile(other, input) || !HasVoxelsIn(other, other.string(), input));
    }
    if (!isWhole)
    {
      Fail(destination.shown, "would replace " + input.string() + ", which an input of this run uses");
    }
  }
  if (!destination.data.empty())
  {
    CheckMayBeReplaced(destination.shown, destination.data);
    if (IsThere(destination.data) && !HasVoxelsIn(destination.file, destination.shown, destination.data))
    {
      Fail(destination.shown,
           "its voxels would replace " + destination.data.string() + ", which is not of an image of this name");
    }
  }
}

OutputFolder::OutputFolder(const Destination & destination)
  : m_Destination(destination)
{
  const fs::path parent = ParentOf(destination.file);
  RemoveLeftovers(parent);
  // Names have 255 bytes at most. mkdtemp replaces the last six, which must be these.
  const std::string pattern = "." + destination.file.filename().string().substr(0, 240) + "." + std::string(6, 'X');
  for (int attempt = 0;; ++attempt)
  {
    std::string name = (parent / pattern).string();
    if (!::mkdtemp(name.data()))
    {
      FailWithErrno(destination.shown, "cannot write into " + parent.string(), errno);
    }
    m_Folder = name;
    // Another process may take a folder without its lock for a leftover: then this one makes another.
    try
    {
      m_Lock = Descriptor::Create(m_Folder / LockName, destination.shown);
      const bool isLocked =
        ::flock(m_Lock.GetNumber(), LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR);
      struct stat status = {};
      if (isLocked && ::fstat(m_Lock.GetNumber(), &status) == 0 && status.st_nlink > 0)
      {
        break;
      }
    }
    catch (const FileError &)
    {
      if (attempt > 8)
      {
        std::error_code ignored;
        fs::remove_all(m_Folder, ignored);
        throw;
      }
    }
    std::error_code ignored;
    fs::remove_all(m_Folder, ignored);
    if (attempt > 8)
    {
      Fail(destination.shown, "cannot write into " + parent.string() + ": its folder is removed again and again");
    }
  }
  for (int i = 0; i < NumberOfSlots && m_Slot < 0; ++i)
  {
    m_Slot = slots[i].isTaken.exchange(true) ? -1 : i;
  }
  if (m_Slot >= 0)
  {
    Slot & slot = slots[m_Slot];
    CopyPath(slot.folder, m_Folder);
    CopyPath(slot.files[0], m_Folder / LockName);
    CopyPath(slot.files[1], GetPath(m_Destination.file));
    CopyPath(slot.files[2], m_Destination.data.empty() ? fs::path() : GetPath(m_Destination.data));
    slot.isArmed = true;
  }
}

OutputFolder::~OutputFolder()
{
  if (m_Slot >= 0)
  {
    slots[m_Slot].isArmed = false;
    slots[m_Slot].isTaken = false;
  }
  std::error_code ignored;
  fs::remove_all(m_Folder, ignored);
}

void
OutputFolder::Commit()
{
  const fs::path & file = m_Destination.file;
  const fs::path & data = m_Destination.data;
  const fs::path   oldFile = m_Folder / ".old-header";
  const fs::path   oldData = m_Folder / ".old-data";
  if (m_Slot >= 0)
  {
    slots[m_Slot].isArmed = false;
  }
  // An old header must not be seen with new voxels: it goes first, and the new one comes last.
  const bool hadFile = !data.empty() && IsThere(file);
  const bool hadData = !data.empty() && IsThere(data);
  bool       good = !hadFile || Move(file, oldFile);
  if (good && hadData && !Move(data, oldData))
  {
    good = false;
  }
  if (good && !data.empty() && !Move(GetPath(data), data))
  {
    good = false;
  }
  good = good && Move(GetPath(file), file);
  if (!good)
  {
    const int       error = errno;
    std::error_code ignored;
    if (IsThere(oldData))
    {
      fs::rename(oldData, data, ignored);
    }
    else if (!data.empty() && !hadData)
    {
      // Voxels without a header.
      fs::remove(data, ignored);
    }
    if (IsThere(oldFile))
    {
      fs::rename(oldFile, file, ignored);
    }
    FailWithErrno(m_Destination.shown, "cannot be given its name", error);
  }
  std::error_code ignored;
  fs::remove_all(m_Folder, ignored);
  SyncFolder(ParentOf(file));
}

void
RemoveUnfinished() noexcept
{
  for (Slot & slot : slots)
  {
    if (slot.isArmed.exchange(false))
    {
      for (const auto & file : slot.files)
      {
        if (file[0])
        {
          ::unlink(file);
        }
      }
      ::rmdir(slot.folder);
    }
  }
}

} // namespace chunkwise::files
