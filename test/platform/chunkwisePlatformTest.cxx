/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// What src/platform promises on every system.
#include "chunkwiseError.h"
#include "chunkwiseLibraryFile.h"
#include "chunkwiseMappedMemory.h"
#include "chunkwiseUnnamedFile.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

/** A folder that ends with the test. */
class UnnamedFiles : public testing::Test
{
protected:
  UnnamedFiles() { std::filesystem::create_directories(std::filesystem::u8path(m_Folder)); }
  ~UnnamedFiles() override { std::filesystem::remove_all(std::filesystem::u8path(m_Folder)); }

  const std::string m_Folder = testing::TempDir() + "/chunkwise spool \xC3\xA4";
};

TEST_F(UnnamedFiles, KeepWhatIsWrittenAtAnyPlace)
{
  UnnamedFile file;
  EXPECT_FALSE(file.IsOpen());
  file.Open(m_Folder);
  EXPECT_TRUE(file.IsOpen());
  // Beyond 32 bits: systems without sparse files would need the space for it.
  const std::uint64_t far = (std::uint64_t{ 5 } << 30) + 3;
  const std::uint32_t words[] = { 1, 2, 0xFEDCBA98 };
  file.WriteAt(7, words, sizeof(words));
  file.WriteAt(far, &words[2], sizeof(std::uint32_t));
  file.WriteAt(7 + sizeof(std::uint32_t), &words[0], sizeof(std::uint32_t));
  std::uint32_t read[3] = {};
  file.ReadAt(7, read, sizeof(read));
  EXPECT_EQ(read[0], 1U);
  EXPECT_EQ(read[1], 1U);
  EXPECT_EQ(read[2], 0xFEDCBA98U);
  file.ReadAt(far, read, sizeof(std::uint32_t));
  EXPECT_EQ(read[0], 0xFEDCBA98U);
}

TEST_F(UnnamedFiles, AreWrittenAndReadBySeveralThreads)
{
  UnnamedFile file;
  file.Open(m_Folder);
  constexpr std::size_t    count = 1 << 16;
  std::vector<std::thread> threads;
  std::vector<int>         wrong(4, -1);
  for (std::uint32_t t = 0; t < 4; ++t)
  {
    threads.emplace_back([&, t] {
      std::vector<std::uint32_t> numbers(count, t);
      const std::uint64_t        place = t * count * sizeof(std::uint32_t);
      file.WriteAt(place, numbers.data(), count * sizeof(std::uint32_t));
      std::vector<std::uint32_t> read(count, 99);
      file.ReadAt(place, read.data(), count * sizeof(std::uint32_t));
      wrong[t] = read == numbers ? 0 : 1;
    });
  }
  for (std::thread & thread : threads)
  {
    thread.join();
  }
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST_F(UnnamedFiles, LeaveNothingBehind)
{
  {
    UnnamedFile file;
    file.Open(m_Folder);
    file.WriteAt(0, "abc", 3);
  }
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::u8path(m_Folder)));
}

TEST_F(UnnamedFiles, SayWhatIsWrong)
{
  UnnamedFile file;
  const auto  messageOf = [](auto && f) {
    try
    {
      f();
    }
    catch (const Error & error)
    {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(messageOf([&] { file.Open(m_Folder + "/nowhere"); }).find("nowhere"), std::string::npos);
  EXPECT_FALSE(file.IsOpen());
  file.Open(m_Folder);
  file.WriteAt(0, "abc", 3);
  char              beyond[4];
  const std::string message = messageOf([&] { file.ReadAt(1, beyond, sizeof(beyond)); });
  EXPECT_NE(message.find("cannot be read at byte 3: it ends there"), std::string::npos) << message;
}

TEST(MappedMemory, IsAlignedAndCanBeWritten)
{
  for (const std::size_t bytes : { std::size_t{ 1 }, std::size_t{ 5000 }, std::size_t{ 70 } << 20 })
  {
    auto * const memory = static_cast<unsigned char *>(AllocateMapped(bytes));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0U);
    AdviseLargePages(memory, bytes);
    memory[0] = 1;
    memory[bytes - 1] = 2;
    EXPECT_EQ(memory[bytes - 1], 2);
    FreeMapped(memory);
  }
}

TEST(MappedMemory, ThatIsNotThereIsAnError)
{
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer ends the process";
#endif
  EXPECT_THROW(AllocateMapped(std::numeric_limits<std::size_t>::max() / 4), std::bad_alloc);
}

TEST(LibraryFile, OpensTheEngineItself)
{
  const std::string path = FindFileOfAddress(reinterpret_cast<const void *>(&OpenLibrary));
  ASSERT_TRUE(std::filesystem::exists(std::filesystem::u8path(path))) << path;
  std::string  reason;
  void * const library = OpenLibrary(path, reason);
  // A test that has the engine inside it is a program, which some systems do not open.
  if (path.find("ChunkwiseEngine") != std::string::npos)
  {
    ASSERT_NE(library, nullptr) << reason;
  }
  if (library)
  {
    EXPECT_EQ(FindSymbol(library, "thereIsNoSuchSymbol"), nullptr);
  }
}

TEST(LibraryFile, ThatIsMissingHasAReasonThatNamesIt)
{
  std::string reason;
  EXPECT_EQ(OpenLibrary("/nowhere/" + GetLibraryFileName("absent"), reason), nullptr);
  EXPECT_NE(reason.find("absent"), std::string::npos) << reason;
}

} // namespace
