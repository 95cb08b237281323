/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileOutput.h"

#include "fileFormats.h"
#include "fileZarrMetadata.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace chunkwise::files
{

namespace fs = std::filesystem;

namespace
{

/** In each folder: locked as long as the process lives. Once a pair is moved to where it belongs, the names of header
 * and voxels stand in it, each with a zero behind. */
constexpr const char * LockName = ".chunkwise";
/** The files that a pair replaces, until it is complete. */
constexpr const char * OldHeaderName = ".old-header";
constexpr const char * OldDataName = ".old-data";
/** Stands for the voxels' file of a folder, which has none. */
constexpr const char * NoDataName = ".no-data";

/** The paths that RemoveUnfinished removes, in memory that is always there. */
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

/** A store of Zarr may be replaced by another one, but nothing else by it. */
void
CheckFolderMayBeReplaced(const Destination & destination, const OutputOptions & options)
{
  std::error_code  error;
  const fs::path & file = destination.file;
  if (!IsThere(file))
  {
    return;
  }
  if (!IsZarr(file))
  {
    Fail(destination.shown, file.string() + " is there, and is no store of Zarr");
  }
  if (const std::string name = FindBesideImage(file); !name.empty())
  {
    Fail(destination.shown, "would replace a store that has \"" + name + "\" beside its image");
  }
  const fs::path folder = fs::canonical(file, error);
  for (const fs::path & input : options.inputFiles)
  {
    const fs::path within = fs::weakly_canonical(input, error).lexically_relative(folder);
    if (!error && !within.empty() && *within.begin() != "..")
    {
      Fail(destination.shown,
           "would replace the store that has " + input.string() + ", which an input of this run uses");
    }
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

/** Moves `from` to `to`; false, with errno, if that fails. */
bool
Move(const fs::path & from, const fs::path & to)
{
  return ::rename(from.c_str(), to.c_str()) == 0;
}

/** Two names change places at once; false where the file system cannot do that. */
bool
Exchange(const fs::path & one, const fs::path & other)
{
#ifdef RENAME_EXCHANGE
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
#else
  return false;
#endif
}

/** Folders of a store within each other: a group, a level, and one for each axis. */
constexpr int MostDepthOfTree = 12;
constexpr int MostPassesOfTree = 1000;

/** Removes a folder and all that is in it. Takes no memory and no lock. */
void
RemoveTree(int parent, const char * name, int depth) noexcept
{
#ifdef SYS_getdents64
  struct Entry
  {
    std::uint64_t  inode;
    std::int64_t   offset;
    unsigned short length;
    unsigned char  type;
    char           name[1];
  };
  const int folder = depth > 0 ? ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
  if (folder >= 0)
  {
    alignas(Entry) char entries[4096];
    // Other threads may still write: once more as long as there is something new.
    for (int pass = 0; pass < MostPassesOfTree; ++pass)
    {
      ::lseek(folder, 0, SEEK_SET);
      for (long bytes = 0; (bytes = ::syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0;)
      {
        for (long at = 0; at < bytes;)
        {
          const auto * const entry = reinterpret_cast<const Entry *>(entries + at);
          const char * const child = entry->name;
          const bool         isSelf = child[0] == '.' && (child[1] == 0 || (child[1] == '.' && child[2] == 0));
          if (!isSelf && ::unlinkat(folder, child, 0) != 0)
          {
            RemoveTree(folder, child, depth - 1);
          }
          at += entry->length;
        }
      }
      if (::unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno != ENOTEMPTY)
      {
        break;
      }
    }
    ::close(folder);
  }
#else
  static_cast<void>(parent);
  static_cast<void>(name);
  static_cast<void>(depth);
#endif
}

/** The name of a folder for an output. Names have 255 bytes at most; mkdtemp replaces the last six, which must be X. */
std::string
NameFolder(const fs::path & file, const std::string & end)
{
  return "." + file.filename().string().substr(0, 240) + "." + end;
}

constexpr int MostAttempts = 8;

enum class LockResult
{
  IsOurs,
  IsOthers,
  IsGone ///< the file was removed meanwhile
};

/** File systems without locks let everybody have it. */
LockResult
Lock(const Descriptor & file)
{
  const bool  isLocked = ::flock(file.GetNumber(), LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR);
  struct stat status = {};
  if (!isLocked)
  {
    return LockResult::IsOthers;
  }
  return ::fstat(file.GetNumber(), &status) == 0 && status.st_nlink > 0 ? LockResult::IsOurs : LockResult::IsGone;
}

bool
MoveUnlessThere(const fs::path & from, const fs::path & to)
{
  return !IsThere(to) && Move(from, to);
}

/** The names, in the lock of a folder, of a pair that is being moved: empty if none is. */
struct MovedPair
{
  std::string file;
  std::string data;
};

MovedPair
ReadMovedPair(int lock)
{
  char          text[2 * (NAME_MAX + 1)];
  const ssize_t size = ::pread(lock, text, sizeof(text), 0);
  MovedPair     pair;
  if (size > 0 && text[size - 1] == 0)
  {
    pair.file = text;
    pair.data = pair.file.size() + 1 < static_cast<std::size_t>(size) ? text + pair.file.size() + 1 : "";
  }
  const auto isName = [](const std::string & name) {
    return !name.empty() && name[0] != '/' && name.find('/') == std::string::npos && name != "." && name != "..";
  };
  return isName(pair.file) && isName(pair.data) ? pair : MovedPair();
}

/** Removes a folder. The lock goes last: without it nobody would remove what a process that is killed here leaves. */
void
RemoveLocked(const fs::path & folder)
{
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
  {
    if (entry->path().filename() != LockName)
    {
      std::error_code ignored;
      fs::remove_all(entry->path(), ignored);
    }
  }
  fs::remove_all(folder, error);
}

/** Ends what a process that is gone began in OutputFolder::Commit. If the new voxels are in their place already, the
 * new header follows; else the old files come back. Nothing that is there is replaced. False if a file cannot be moved.
 */
bool
EndCommit(const fs::path & folder, const MovedPair & pair)
{
  const fs::path parent = ParentOf(folder);
  if (!IsThere(folder / pair.file))
  {
    return true;
  }
  if (!IsThere(folder / pair.data))
  {
    return MoveUnlessThere(folder / pair.file, parent / pair.file);
  }
  const bool hasData = !IsThere(folder / OldDataName) || MoveUnlessThere(folder / OldDataName, parent / pair.data);
  return hasData && (!IsThere(folder / OldHeaderName) || MoveUnlessThere(folder / OldHeaderName, parent / pair.file));
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

bool
EndLeftovers(const fs::path & parent)
{
  bool            hasEnded = false;
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
      const MovedPair pair = ReadMovedPair(number);
      const bool      isMoved = !pair.file.empty();
      if (!isMoved || EndCommit(entry->path(), pair))
      {
        RemoveLocked(entry->path());
        hasEnded = hasEnded || isMoved;
      }
    }
    ::close(number);
  }
  return hasEnded;
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
  if (!destination.data.empty())
  {
    EndLeftovers(parent);
  }
  if (destination.isFolder)
  {
    return CheckFolderMayBeReplaced(destination, options);
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

OutputFolder::OutputFolder(const Destination & destination, bool canBeKept)
  : m_Destination(destination)
  , m_HasFixedName(canBeKept)
{
  EndLeftovers(ParentOf(destination.file));
  if (canBeKept)
  {
    this->TakeKept();
    return;
  }
  this->MakeFolder();
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

/** A folder that nobody else has. */
void
OutputFolder::MakeFolder()
{
  const fs::path parent = ParentOf(m_Destination.file);
  for (int attempt = 0;; ++attempt)
  {
    std::string name = (parent / NameFolder(m_Destination.file, std::string(6, 'X'))).string();
    if (!::mkdtemp(name.data()))
    {
      FailWithErrno(m_Destination.shown, "cannot write into " + parent.string(), errno);
    }
    m_Folder = name;
    // Another process may take a folder without its lock for a leftover: then this one makes another.
    try
    {
      m_Lock = Descriptor::Create(m_Folder / LockName, m_Destination.shown);
      if (Lock(m_Lock) == LockResult::IsOurs)
      {
        return;
      }
    }
    catch (const FileError &)
    {
      if (attempt > MostAttempts)
      {
        std::error_code ignored;
        fs::remove_all(m_Folder, ignored);
        throw;
      }
    }
    std::error_code ignored;
    fs::remove_all(m_Folder, ignored);
    if (attempt > MostAttempts)
    {
      Fail(m_Destination.shown, "cannot write into " + parent.string() + ": its folder is removed again and again");
    }
  }
}

void
OutputFolder::TakeKept()
{
  m_Folder = ParentOf(m_Destination.file) / NameFolder(m_Destination.file, "unfinished");
  for (int attempt = 0; attempt <= MostAttempts; ++attempt)
  {
    if (::mkdir(m_Folder.c_str(), 0777) != 0 && errno != EEXIST)
    {
      FailWithErrno(m_Destination.shown, "cannot write " + m_Folder.string(), errno);
    }
    // All that is in the folder goes with it: a link would lead to what is somebody else's.
    std::error_code error;
    const auto      status = fs::symlink_status(m_Folder, error);
    if (fs::exists(status) && !fs::is_directory(status))
    {
      Fail(m_Destination.shown, m_Folder.string() + " is there, and is no folder");
    }
    m_Lock = Descriptor::Create(m_Folder / LockName, m_Destination.shown, true);
    const LockResult result = Lock(m_Lock);
    if (result == LockResult::IsOurs)
    {
      // Names of a Commit that was killed before its first move.
      if (::ftruncate(m_Lock.GetNumber(), 0) != 0)
      {
        FailWithErrno(m_Destination.shown, "cannot write " + m_Folder.string(), errno);
      }
      return;
    }
    if (result == LockResult::IsOthers)
    {
      break;
    }
    // Its run has ended since the lock was opened.
  }
  Fail(m_Destination.shown, "another run is writing it, in " + m_Folder.string());
}

/** A folder with a fixed name gets one that no other run takes: it is about to go, and if this process ends before
 * that, EndLeftovers removes it. */
void
OutputFolder::Release()
{
  if (!m_HasFixedName)
  {
    return;
  }
  fs::path name;
  bool     isMoved = false;
  for (int attempt = 0; attempt <= MostAttempts && !isMoved; ++attempt)
  {
    // Six characters, as mkdtemp takes, which would leave an empty folder without a lock if this process ended here.
    const std::string end = std::to_string(100000 + (::getpid() + attempt) % 900000);
    name = ParentOf(m_Destination.file) / NameFolder(m_Destination.file, end);
    isMoved = MoveUnlessThere(m_Folder, name);
  }
  if (!isMoved)
  {
    FailWithErrno(m_Destination.shown, m_Folder.string() + " cannot be renamed", errno);
  }
  m_Folder = name;
  m_HasFixedName = false;
  m_IsKept = false;
}

OutputFolder::~OutputFolder()
{
  try
  {
    if (!m_IsKept)
    {
      this->Release();
      this->RemoveFolder();
    }
  }
  catch (const FileError &)
  {
    // It stays where it is.
  }
  if (m_Slot >= 0)
  {
    slots[m_Slot].isTaken = false;
  }
}

void
OutputFolder::KeepMode(const fs::path & destination) const
{
  struct stat status = {};
  if (!destination.empty() && ::stat(destination.c_str(), &status) == 0 &&
      ::chmod(GetPath(destination).c_str(), status.st_mode & 07777) != 0)
  {
    FailWithErrno(m_Destination.shown, "cannot be given the permissions of the file that it replaces", errno);
  }
}

void
OutputFolder::Commit()
{
  const fs::path & file = m_Destination.file;
  const fs::path & data = m_Destination.data;
  KeepMode(file);
  KeepMode(data);
  if (m_Destination.isFolder && IsThere(file))
  {
    this->Release();
    if (Exchange(GetPath(file), file))
    {
      SyncFolder(ParentOf(file));
      return this->RemoveFolder();
    }
  }
  if (!data.empty() || m_Destination.isFolder)
  {
    // Whoever finds the folder after a crash can end what begins here: see EndCommit.
    std::string names = file.filename().string();
    names += '\0' + (m_Destination.isFolder ? std::string(NoDataName) : data.filename().string()) + '\0';
    m_Lock.WriteAt(names.data(), names.size(), 0);
    m_Lock.Sync();
    SyncFolder(m_Folder);
  }
  this->Release();
  const fs::path oldFile = m_Folder / OldHeaderName;
  const fs::path oldData = m_Folder / OldDataName;
  if (m_Slot >= 0)
  {
    slots[m_Slot].isArmed = false;
  }
  // An old header must not be seen with new voxels: it goes first, and the new one comes last.
  bool good = (data.empty() && !m_Destination.isFolder) || !IsThere(file) || Move(file, oldFile);
  good = good && (data.empty() || !IsThere(data) || Move(data, oldData));
  good = good && (data.empty() || Move(GetPath(data), data));
  good = good && Move(GetPath(file), file);
  if (!good)
  {
    const int error = errno;
    // New voxels go back first, so that EndCommit sees at any time which moves are left.
    if (!data.empty() && !IsThere(GetPath(data)))
    {
      Move(data, GetPath(data));
    }
    if (IsThere(oldData))
    {
      Move(oldData, data);
    }
    if (IsThere(oldFile))
    {
      Move(oldFile, file);
    }
    FailWithErrno(m_Destination.shown, "cannot be given its name", error);
  }
  this->RemoveFolder();
  SyncFolder(ParentOf(file));
}

void
OutputFolder::RemoveFolder()
{
  if (m_Destination.isFolder)
  {
    // It takes a while: a signal that comes meanwhile lets another thread remove what is left, and the process ends.
    RemoveTree(AT_FDCWD, GetPath(m_Destination.file).c_str(), MostDepthOfTree);
  }
  if (m_Slot >= 0)
  {
    slots[m_Slot].isArmed = false;
  }
  RemoveLocked(m_Folder);
}

void
RemoveUnfinished() noexcept
{
  for (Slot & slot : slots)
  {
    if (slot.isArmed.exchange(false))
    {
      // The lock goes last: without it nobody removes what is left.
      for (int i = Slot::NumberOfFiles; i-- > 0;)
      {
        if (slot.files[i][0] && ::unlink(slot.files[i]) != 0)
        {
          RemoveTree(AT_FDCWD, slot.files[i], MostDepthOfTree);
        }
      }
      if (::rmdir(slot.folder) != 0)
      {
        RemoveTree(AT_FDCWD, slot.folder, MostDepthOfTree);
      }
    }
  }
}

} // namespace chunkwise::files
