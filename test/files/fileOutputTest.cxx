/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileImage.h"

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

/** The process is killed before it moves one more file; negative: never. */
int movesLeft = -1;

} // namespace

/** In place of the C library's, for this program and the libraries that it uses. */
extern "C" int
rename(const char * from, const char * to) noexcept
{
  if (movesLeft == 0)
  {
    ::kill(::getpid(), SIGKILL);
  }
  movesLeft -= movesLeft > 0 ? 1 : 0;
  return ::renameat(AT_FDCWD, from, AT_FDCWD, to);
}

namespace
{

namespace fs = std::filesystem;
using namespace chunkwise;
using namespace chunkwise::files;

class Outputs : public ::testing::Test
{
protected:
  void
  SetUp() override
  {
    std::string name = (fs::temp_directory_path() / "chunkwise-outputs-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    m_Folder = name;
  }
  void
  TearDown() override
  {
    fs::remove_all(m_Folder);
  }
  std::string
  Path(const std::string & name) const
  {
    return (m_Folder / name).string();
  }
  /** An image of `extent`, all voxels `value`. */
  void
  Write(const std::string & name, unsigned char value, std::int64_t size) const
  {
    ImageHeader header;
    header.dimension = 2;
    header.extent = { { size, size, 1, 1, 1 } };
    const auto                 sink = CreateImage(Path(name), header);
    std::vector<unsigned char> voxels(static_cast<std::size_t>(size * size), value);
    const Box                  box = Box::FromExtent(header.extent);
    sink->Write(box, DenseView(voxels.data(), header.kind, box));
    sink->Finish();
  }
  /** Writes in a process that is killed before its move number `moves`; whether it was. */
  bool
  WriteAndDie(const std::string & name, unsigned char value, std::int64_t size, int moves) const
  {
    const pid_t child = ::fork();
    if (child == 0)
    {
      movesLeft = moves;
      Write(name, value, size);
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
  }
  /** The value of an image whose size is `size` too, -1: it is not whole. */
  int
  ValueOf(const std::string & name) const
  {
    const auto                 source = OpenImage(Path(name));
    const Box                  box = Box::FromExtent(source->GetExtent());
    std::vector<unsigned char> voxels(static_cast<std::size_t>(box.NumberOfVoxels()));
    source->Read(box, DenseView(voxels.data(), source->GetKind(), box));
    const bool isWhole =
      std::all_of(voxels.begin(), voxels.end(), [&](unsigned char v) { return v == voxels.front(); }) &&
      box.Extent(0) == voxels.front();
    return isWhole ? voxels.front() : -1;
  }
  std::vector<std::string>
  List() const
  {
    std::vector<std::string> names;
    for (const auto & entry : fs::directory_iterator(m_Folder))
    {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  fs::path m_Folder;
};

/** The action after the crash: a reader, another run in the folder, or the same run once more. */
enum class Next
{
  Read,
  WriteElsewhere,
  WriteAgain
};

TEST_F(Outputs, APairIsOldOrNewAtWhateverMomentItsProcessIsKilled)
{
  for (const auto & [header, data] : { std::pair<std::string, std::string>{ "x.mhd", "x.raw" },
                                       { "x.nhdr", "x.raw" },
                                       { "x.hdr", "x.img" },
                                       { "x.img", "x.img" } })
  {
    for (const bool hasOld : { false, true })
    {
      for (const Next next : { Next::Read, Next::WriteElsewhere, Next::WriteAgain })
      {
        int killed = 0;
        for (int moves = 0;; ++moves)
        {
          SCOPED_TRACE(header + (hasOld ? " replaces, " : " is new, ") + std::to_string(moves) + " moves, next " +
                       std::to_string(static_cast<int>(next)));
          for (const auto & entry : fs::directory_iterator(m_Folder))
          {
            fs::remove_all(entry.path());
          }
          if (hasOld)
          {
            Write(header, 10, 10);
          }
          if (!WriteAndDie(header, 20, 20, moves))
          {
            EXPECT_EQ(ValueOf(header), 20);
            break;
          }
          ++killed;
          if (next == Next::WriteAgain)
          {
            Write(header, 30, 30);
            EXPECT_EQ(ValueOf(header), 30);
          }
          else
          {
            if (next == Next::WriteElsewhere)
            {
              Write("other.mha", 40, 40);
            }
            try
            {
              const int value = ValueOf(header);
              EXPECT_TRUE(value == 20 || (hasOld && value == 10)) << value;
            }
            catch (const FileError & error)
            {
              EXPECT_FALSE(hasOld) << error.what();
              EXPECT_FALSE(fs::exists(Path(data)));
            }
            // A run that was killed leaves its folder to the next one that writes.
            Write("other.mha", 40, 40);
          }
          for (const std::string & name : List())
          {
            EXPECT_NE(name[0], '.') << name;
          }
          if (HasFailure())
          {
            return;
          }
        }
        EXPECT_EQ(killed, hasOld ? 4 : 2);
      }
    }
  }
}

TEST_F(Outputs, WhatSomebodyElsePutThereIsNotReplacedAfterACrash)
{
  Write("x.mhd", 10, 10);
  // Both old files were moved away.
  ASSERT_TRUE(WriteAndDie("x.mhd", 20, 20, 2));
  std::ofstream(Path("x.raw")) << "mine";
  EXPECT_THROW(OpenImage(Path("x.mhd")), FileError);
  EXPECT_EQ(fs::file_size(Path("x.raw")), 4u);
  // The old image is not lost either.
  fs::remove(Path("x.raw"));
  EXPECT_EQ(ValueOf("x.mhd"), 10);
}

TEST_F(Outputs, AFileThatIsReplacedKeepsItsPermissions)
{
  const auto modeOf = [&](const std::string & name) {
    struct stat status = {};
    EXPECT_EQ(::stat(Path(name).c_str(), &status), 0);
    return status.st_mode & 07777;
  };
  const mode_t mask = ::umask(022);
  for (const std::string name : { "x.mha", "x.mhd", "x.nii", "x.nii.gz", "x.tif", "x.png", "x.h5" })
  {
    SCOPED_TRACE(name);
    Write(name, 10, 10);
    EXPECT_EQ(modeOf(name), 0644u);
    ASSERT_EQ(::chmod(Path(name).c_str(), 0600), 0);
    Write(name, 20, 20);
    EXPECT_EQ(modeOf(name), 0600u);
  }
  ::umask(mask);
  ASSERT_EQ(::chmod(Path("x.raw").c_str(), 0640), 0);
  Write("x.mhd", 30, 30);
  EXPECT_EQ(modeOf("x.raw"), 0640u);
}

} // namespace
