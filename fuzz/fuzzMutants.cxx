/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fuzzTarget.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <sanitizer/common_interface_defs.h>
#include <sys/time.h>
#include <unistd.h>

// chunkwise_fuzz_mutants TARGET FOLDER COUNT: runs the target's seeds, FOLDER/seeds/TARGET, and COUNT mutants of them,
// the same ones with each start. An input that ends the process is written to the working directory. TARGET FILE...:
// runs these files alone.

namespace
{

namespace fs = std::filesystem;
using namespace chunkwise::fuzz;
using Random = std::mt19937_64;

/** An input that takes longer hangs: seconds of the processor, or of a process that waits. */
constexpr unsigned    MostSeconds = 20;
constexpr unsigned    MostWaited = 600;
constexpr std::size_t MostBytes = 1 << 16;

std::string theName;
std::string theBytes;

void
WriteReproducer()
{
  const std::string file = "crash-" + theName;
  std::ofstream(file, std::ios::binary).write(theBytes.data(), static_cast<std::streamsize>(theBytes.size()));
  std::cerr << "The input is in " << file << std::endl;
}

bool
Run(const Target & target, const std::string & name, const std::string & bytes)
{
  theName = name;
  theBytes = bytes;
  itimerval limit{};
  limit.it_value.tv_sec = MostSeconds;
  ::setitimer(ITIMER_PROF, &limit, nullptr);
  ::alarm(MostWaited);
  const bool isAccepted = target.run(target, bytes);
  ::alarm(0);
  limit = {};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
  return isAccepted;
}

std::string
ReadFile(const fs::path & file)
{
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
  {
    std::cerr << file << " cannot be read" << std::endl;
    std::exit(2);
  }
  return { std::istreambuf_iterator<char>(stream), {} };
}

/** The words of a dictionary of libFuzzer: a word in quotes in each line, with \xNN for bytes. */
std::vector<std::string>
ReadWords(const fs::path & file)
{
  std::vector<std::string> words;
  std::ifstream            stream(file);
  for (std::string line; std::getline(stream, line);)
  {
    const std::size_t begin = line.find('"');
    const std::size_t end = line.rfind('"');
    if (line.empty() || line[0] == '#' || begin == end)
    {
      continue;
    }
    std::string word;
    for (std::size_t i = begin + 1; i < end; ++i)
    {
      if (line[i] != '\\')
      {
        word += line[i];
      }
      else if (line[++i] == 'x')
      {
        word += static_cast<char>(std::stoi(line.substr(i + 1, 2), nullptr, 16));
        i += 2;
      }
      else
      {
        word += line[i];
      }
    }
    words.push_back(word);
  }
  return words;
}

/** Numbers at which arithmetic goes wrong. */
constexpr std::uint64_t EdgeNumbers[] = {
  0,          1,          2,          0x7f,       0x80,       0xff,       0x100,           0x7fff,         0x8000,
  0xffff,     0x10000,    0x7fffffff, 0x80000000, 0xffffffff, 0x3fffffff, 0x40000000,      0x100000000,    ~0ull,
  ~0ull >> 1, 1ull << 63, ~0ull - 1,  0x7fc00000, 0x7f800000, 0xff800000, 0x7ff0ull << 48, 0x7ff8ull << 48
};
constexpr const char * EdgeTexts[] = { "0",
                                       "-1",
                                       "1",
                                       "2147483647",
                                       "2147483648",
                                       "4294967296",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "18446744073709551616",
                                       "1e400",
                                       "nan",
                                       "inf",
                                       "-0",
                                       "0.5",
                                       "" };

class Mutator
{
public:
  Mutator(const std::vector<std::string> & seeds, std::vector<std::string> words)
    : m_Seeds(seeds)
    , m_Words(std::move(words))
    , m_Random(20260101)
  {}

  std::string
  Make(const Target & target)
  {
    std::string bytes = m_Seeds[this->Draw(m_Seeds.size())];
    // Mostly one or two changes: many make a file that the first check refuses.
    const std::size_t changes = std::size_t{ 1 } << this->Draw(4);
    for (std::size_t i = 0; i < changes; ++i)
    {
      this->Change(bytes);
    }
    bytes.resize(std::min(bytes.size(), MostBytes));
    if (target.mend && this->Draw(8) != 0)
    {
      target.mend(bytes);
    }
    return bytes;
  }

private:
  /** From 0 to `count` - 1, the same with every standard library. */
  std::size_t
  Draw(std::size_t count)
  {
    return count == 0 ? 0 : static_cast<std::size_t>(m_Random() % count);
  }

  /** A place, more often near the beginning, where headers are. */
  std::size_t
  DrawPlace(const std::string & bytes)
  {
    return this->Draw(this->Draw(3) == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 400));
  }

  void
  Put(std::string & bytes, const std::string & word)
  {
    const std::size_t at = this->DrawPlace(bytes);
    if (this->Draw(2) == 0)
    {
      bytes.insert(at, word);
    }
    else
    {
      bytes.replace(at, word.size(), word);
    }
  }

  void
  Change(std::string & bytes)
  {
    const std::size_t at = this->DrawPlace(bytes);
    switch (bytes.empty() ? 3 : this->Draw(10))
    {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << this->Draw(8));
        return;
      case 1:
        bytes[at] = static_cast<char>(m_Random());
        return;
      case 2:
      {
        const std::uint64_t number = EdgeNumbers[this->Draw(std::size(EdgeNumbers))];
        const std::size_t   size = std::size_t{ 1 } << this->Draw(4);
        const bool          bigEndian = this->Draw(2) == 0;
        for (std::size_t i = 0; i < size && at + i < bytes.size(); ++i)
        {
          bytes[at + i] = static_cast<char>(number >> 8 * (bigEndian ? size - 1 - i : i));
        }
        return;
      }
      case 3:
        if (!m_Words.empty())
        {
          this->Put(bytes, m_Words[this->Draw(m_Words.size())]);
        }
        return;
      case 4:
        bytes.resize(this->Draw(bytes.size()));
        return;
      case 5:
        bytes.erase(at, this->Draw(16) + 1);
        return;
      case 6:
      {
        // The rest of another seed.
        const std::string & other = m_Seeds[this->Draw(m_Seeds.size())];
        bytes = bytes.substr(0, at) + other.substr(this->Draw(other.size()));
        return;
      }
      case 7:
        bytes.insert(this->DrawPlace(bytes), bytes.substr(at, this->Draw(32) + 1));
        return;
      case 8:
      {
        // A number that is written in digits.
        std::size_t begin = bytes.find_first_of("0123456789", at);
        begin = begin == std::string::npos ? at : begin;
        const std::size_t end = std::min(bytes.find_first_not_of("0123456789", begin), bytes.size());
        bytes.replace(begin, end - begin, EdgeTexts[this->Draw(std::size(EdgeTexts))]);
        return;
      }
      default:
        bytes.append(this->Draw(64), static_cast<char>(m_Random()));
    }
  }

  const std::vector<std::string> & m_Seeds;
  std::vector<std::string>         m_Words;
  Random                           m_Random;
};

} // namespace

int
main(int argc, char ** argv)
{
  if (argc < 3)
  {
    std::cerr << "usage: " << argv[0] << " TARGET FOLDER COUNT | TARGET FILE..." << std::endl;
    return 2;
  }
  const Target & target = FindTarget(argv[1]);
  __sanitizer_set_death_callback(WriteReproducer);
  // With the place where it hangs.
  std::signal(SIGALRM, [](int) { std::abort(); });
  std::signal(SIGPROF, [](int) { std::abort(); });
  if (!fs::is_directory(argv[2]))
  {
    for (int i = 2; i < argc; ++i)
    {
      const bool isAccepted = Run(target, fs::path(argv[i]).filename().string(), ReadFile(argv[i]));
      std::cout << argv[i] << ": " << (isAccepted ? "accepted" : "refused") << std::endl;
    }
    return 0;
  }
  const fs::path        folder = argv[2];
  std::vector<fs::path> files;
  for (const auto & entry : fs::directory_iterator(folder / "seeds" / target.name))
  {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> seeds;
  for (const fs::path & file : files)
  {
    seeds.push_back(ReadFile(file));
    Run(target, file.filename().string(), seeds.back());
  }
  if (seeds.empty())
  {
    std::cerr << target.name << " has no seeds" << std::endl;
    return 2;
  }
  const long count = argc > 3 ? std::atol(argv[3]) : 0;
  Mutator    mutator(seeds, ReadWords(folder / "dictionaries" / (std::string(target.name) + ".dict")));
  const auto begin = std::chrono::steady_clock::now();
  long       accepted = 0;
  for (long i = 0; i < count; ++i)
  {
    accepted += Run(target, std::string(target.name) + "-" + std::to_string(i), mutator.Make(target));
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  std::cout << target.name << ": " << seeds.size() << " seeds, " << count << " mutants, of which " << accepted
            << " were accepted, " << taken.count() << " s" << std::endl;
  return 0;
}
