/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileTiffDeflate_h
#define fileTiffDeflate_h

#include "fileInflater.h"

#include <vector>

namespace chunkwise::files
{

/** How the samples of a strip or tile were changed before they were compressed. */
struct TiffPrediction
{
  /** As the tag Predictor has it: 1, 2 or 3. */
  std::uint64_t predictor;
  /** Samples in a row, and how many of them a pixel has. */
  std::size_t rowSamples;
  std::size_t pixelSamples;
  std::size_t sampleBytes;
  bool        swaps;
};

/** Samples of rows in `data`, back to what they were and in the machine's byte order. */
void
UndoPrediction(const TiffPrediction & prediction, char * data, std::size_t rows);

/** Inflates strips and tiles with their checksums, which libtiff does not always check. */
class TiffInflater
{
public:
  /** Throws std::runtime_error unless the stream is whole and has `bytes` bytes, or up to `most`, which are dropped. */
  void
  Inflate(const std::vector<char> & coded, char * data, std::size_t bytes, std::size_t most);

private:
  std::unique_ptr<Inflater> m_Inflater{ MakeInflater() };
};

} // namespace chunkwise::files

#endif
