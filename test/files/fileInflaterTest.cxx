/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileInflater.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>
#include <zlib.h>

using namespace chunkwise::files;

namespace
{

using Bytes = std::vector<unsigned char>;

Bytes
Compress(const Bytes & data, int level, bool gzip)
{
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, 15 + (gzip ? 16 : 0), 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes packed(deflateBound(&stream, static_cast<uLong>(data.size())) + 64);
  stream.next_in = const_cast<unsigned char *>(data.data());
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/** The output for pieces of a stream, in pieces: both of up to so many bytes. */
struct Outcome
{
  Bytes data;
  bool  ended{ false };
  bool  failed{ false };
};

Outcome
InflateInPieces(Inflater & inflater, const Bytes & packed, std::size_t most, std::mt19937 & random)
{
  Outcome     outcome;
  std::size_t at = 0;
  inflater.Restart();
  for (bool goesOn = true; goesOn;)
  {
    // Each piece has separate memory, as blocks of a file that is read into one buffer have.
    Bytes       piece(packed.begin() + static_cast<std::ptrdiff_t>(at),
                packed.begin() + static_cast<std::ptrdiff_t>(std::min(packed.size(), at + 1 + random() % most)));
    Bytes       to(1 + random() % most);
    auto        next = static_cast<const unsigned char *>(piece.data());
    auto *      end = to.data();
    std::size_t left = piece.size();
    std::size_t room = to.size();
    try
    {
      goesOn = inflater.Inflate(next, left, end, room);
    }
    catch (const std::runtime_error &)
    {
      outcome.failed = true;
      return outcome;
    }
    EXPECT_EQ(next, piece.data() + (piece.size() - left));
    EXPECT_EQ(end, to.data() + (to.size() - room));
    at += piece.size() - left;
    outcome.data.insert(outcome.data.end(), to.data(), end);
    outcome.ended = !goesOn;
    goesOn = goesOn && (at < packed.size() || room < to.size());
  }
  return outcome;
}

Bytes
MakeData(std::mt19937 & random, std::size_t size)
{
  Bytes              data(size);
  const unsigned int values = 1 + random() % 256;
  for (std::size_t i = 0; i < size; ++i)
  {
    data[i] = static_cast<unsigned char>(i > 40 && random() % 3 ? data[i - 1 - random() % 40] : random() % values);
  }
  return data;
}

TEST(Inflater, GivesWhatWasCompressedInAnyPieces)
{
  std::mt19937 random(1);
  const auto   inflater = MakeInflater();
  for (int trial = 0; trial < 400; ++trial)
  {
    const Bytes   data = MakeData(random, random() % (trial % 10 ? 3000 : 200000));
    const Bytes   packed = Compress(data, trial % 10, trial % 2);
    const Outcome outcome = InflateInPieces(*inflater, packed, trial % 3 ? 1 + random() % 20 : 100000, random);
    ASSERT_FALSE(outcome.failed) << trial;
    ASSERT_TRUE(outcome.ended) << trial;
    ASSERT_EQ(outcome.data, data) << trial;
  }
}

TEST(Inflater, AStreamThatIsCutNeverEnds)
{
  std::mt19937 random(2);
  const auto   inflater = MakeInflater();
  for (int trial = 0; trial < 400; ++trial)
  {
    const Bytes data = MakeData(random, 1 + random() % 2000);
    Bytes       packed = Compress(data, trial % 10, trial % 2);
    packed.resize(trial % 4 ? random() % packed.size() : packed.size() - 1 - random() % 4);
    const Outcome outcome = InflateInPieces(*inflater, packed, 1 + random() % 5000, random);
    ASSERT_FALSE(outcome.ended) << trial;
    ASSERT_TRUE(outcome.failed || std::equal(outcome.data.begin(), outcome.data.end(), data.begin())) << trial;
  }
}

/** Every bit counts but those of a header of gzip that say nothing of the data: the time, the system. */
TEST(Inflater, ADamagedStreamDoesNotPass)
{
  std::mt19937 random(3);
  const auto   inflater = MakeInflater();
  for (int trial = 0; trial < 1000; ++trial)
  {
    const bool        gzip = trial % 2;
    const Bytes       data = MakeData(random, 1 + random() % 500);
    Bytes             packed = Compress(data, trial % 10, gzip);
    const std::size_t first = gzip ? 10 : 0;
    const std::size_t at = first + random() % (packed.size() - first);
    packed[at] = static_cast<unsigned char>(packed[at] ^ (1u << (random() % 8)));
    const Outcome outcome = InflateInPieces(*inflater, packed, 1 + random() % 5000, random);
    // Bits that fill up a byte may differ: the data are the same then.
    ASSERT_TRUE(outcome.failed || !outcome.ended || outcome.data == data) << trial;
  }
}

TEST(Inflater, WhatIsNoStreamIsSaid)
{
  std::mt19937 random(4);
  const auto   inflater = MakeInflater();
  for (const std::string text :
       { "these are no voxels", "\x1f\x8c\x08 and so on for a while", "\x78\x9c\xff\xff\xff\xff\xff\xff" })
  {
    const Outcome outcome = InflateInPieces(*inflater, Bytes(text.begin(), text.end()), 100, random);
    EXPECT_TRUE(outcome.failed) << text;
  }
}

} // namespace
