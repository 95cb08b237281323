/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBenchmarkReport.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

using namespace chunkwise;

namespace
{

/** Arguments of a program, which a report may change. */
class Arguments
{
public:
  explicit Arguments(std::vector<std::string> texts)
    : m_Texts(std::move(texts))
  {
    for (std::string & text : m_Texts)
    {
      argv.push_back(&text[0]);
    }
    argc = static_cast<int>(argv.size());
    argv.push_back(nullptr);
  }
  int                 argc;
  std::vector<char *> argv;

private:
  std::vector<std::string> m_Texts;
};

std::string
Contents(const std::string & path)
{
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

const std::string Header = "device,date,commit,capability,row,ours,unit,peer,peer_name,limit,limit_name,target\n";

TEST(BenchmarkReport, TakesItsOwnArgumentsAndLeavesTheOthers)
{
  const std::string path = testing::TempDir() + "chunkwiseBenchmarkReport1.csv";
  Arguments         arguments({ "program", "cpu", "--csv", path, "16", "--date", "2026-01-02" });
  const Report      report(arguments.argc, arguments.argv.data());
  ASSERT_EQ(arguments.argc, 3);
  EXPECT_STREQ(arguments.argv[1], "cpu");
  EXPECT_STREQ(arguments.argv[2], "16");
  EXPECT_EQ(arguments.argv[3], nullptr);
  EXPECT_EQ(Contents(path), Header);
}

TEST(BenchmarkReport, WritesARowForEachPeerThatWasMeasured)
{
  const std::string path = testing::TempDir() + "chunkwiseBenchmarkReport2.csv";
  Arguments         arguments({ "program", "--csv", path, "--date", "2026-01-02", "--commit", "0123abc" });
  {
    Report report(arguments.argc, arguments.argv.data());
    report.SetDevice("A \"GPU\"");
    report.Add("window",
               "mean, radius 2; 512^3",
               0.5,
               "ms",
               { { 4, "one" }, { 0, "not measured" }, { 12345, "two" } },
               { 0.25, "copy" },
               "a note");
    report.Add("rank", "median; 8^3", 0.123456, "s");
  }
  const std::string begin = "\"A \"\"GPU\"\"\",2026-01-02,0123abc,";
  EXPECT_EQ(Contents(path),
            Header + begin + "window,\"mean, radius 2; 512^3\",0.5,ms,4,one,0.25,copy,\n" + begin +
              "window,\"mean, radius 2; 512^3\",0.5,ms,12345,two,0.25,copy,\n" + begin +
              "rank,median; 8^3,0.1235,s,,,,,\n");
}

TEST(BenchmarkReport, TakesTheNameOfTheDeviceFromTheArgumentsFirst)
{
  const std::string path = testing::TempDir() + "chunkwiseBenchmarkReport3.csv";
  Arguments         arguments({ "program", "--csv", path, "--date", "2026-01-02", "--device", "Xeon" });
  {
    Report report(arguments.argc, arguments.argv.data());
    report.SetHost(2);
    report.Add("cpu", "a; b", 1, "s");
  }
  EXPECT_EQ(Contents(path), Header + "Xeon,2026-01-02,,cpu,a; b,1,s,,,,,\n");
}

TEST(BenchmarkReport, EndsWithStatus2ForAFileThatCannotBeWritten)
{
  Arguments without({ "program", "--csv" });
  EXPECT_EXIT(Report(without.argc, without.argv.data()), testing::ExitedWithCode(2), "--csv needs a value");
  Arguments unwritable({ "program", "--csv", "/not/there/at/all.csv" });
  EXPECT_EXIT(Report(unwritable.argc, unwritable.argv.data()), testing::ExitedWithCode(2), "/not/there/at/all.csv");
}

TEST(BenchmarkReport, NamesSizesAndRows)
{
  EXPECT_EQ(SizeName({ { 512, 512, 512, 1, 1 } }), "512^3");
  EXPECT_EQ(SizeName({ { 2048, 2048, 1024, 1, 1 } }), "2048 x 2048 x 1024");
  EXPECT_EQ(SizeName({ { 31, 1, 1, 1, 1 } }), "31");
  EXPECT_EQ(RowName("median, radius 2", "8^3"), "median, radius 2; 8^3");
  EXPECT_EQ(RowName("weights; 3^3", "8^3"), "weights; 3^3, 8^3");
  EXPECT_EQ(StemOf("/a.b/ch2.nii.gz"), "ch2");
}

TEST(BenchmarkReport, PartsCoverEverythingOnce)
{
  const auto       executor = MakeThreadExecutor(3);
  std::vector<int> visits(17, 0);
  InParts(*executor, visits.size(), [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i)
    {
      ++visits[i];
    }
  });
  EXPECT_EQ(visits, std::vector<int>(17, 1));
}

} // namespace
