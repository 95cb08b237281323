/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileTiffDeflate.h"

#include "fileVoxels.h"

#include <cstring>
#include <stdexcept>

namespace chunkwise::files
{

namespace
{

template <typename TSample>
void
AddUp(char * row, std::size_t samples, std::size_t pixelSamples)
{
  for (std::size_t i = pixelSamples; i < samples; ++i)
  {
    TSample before;
    TSample value;
    std::memcpy(&before, row + (i - pixelSamples) * sizeof(TSample), sizeof(TSample));
    std::memcpy(&value, row + i * sizeof(TSample), sizeof(TSample));
    value = static_cast<TSample>(value + before);
    std::memcpy(row + i * sizeof(TSample), &value, sizeof(TSample));
  }
}

void
AddUpRow(const TiffPrediction & prediction, char * row)
{
  switch (prediction.sampleBytes)
  {
    case 1:
      return AddUp<std::uint8_t>(row, prediction.rowSamples, prediction.pixelSamples);
    case 2:
      return AddUp<std::uint16_t>(row, prediction.rowSamples, prediction.pixelSamples);
    case 4:
      return AddUp<std::uint32_t>(row, prediction.rowSamples, prediction.pixelSamples);
    default:
      return AddUp<std::uint64_t>(row, prediction.rowSamples, prediction.pixelSamples);
  }
}

/** A row has the first bytes of all its samples, the most significant ones, then the second ones and so on. */
void
JoinBytes(const TiffPrediction & prediction, char * row, std::vector<char> & memory)
{
  const std::size_t size = prediction.sampleBytes;
  AddUp<std::uint8_t>(row, prediction.rowSamples * size, prediction.pixelSamples);
  memory.assign(row, row + prediction.rowSamples * size);
  for (std::size_t i = 0; i < prediction.rowSamples; ++i)
  {
    for (std::size_t byte = 0; byte < size; ++byte)
    {
      row[i * size + byte] = memory[(IsBigEndianMachine() ? byte : size - 1 - byte) * prediction.rowSamples + i];
    }
  }
}

} // namespace

void
UndoPrediction(const TiffPrediction & prediction, char * data, std::size_t rows)
{
  std::vector<char> memory;
  const std::size_t rowBytes = prediction.rowSamples * prediction.sampleBytes;
  for (std::size_t row = 0; row < rows; ++row)
  {
    char * const of = data + row * rowBytes;
    if (prediction.predictor == 3)
    {
      JoinBytes(prediction, of, memory);
      continue;
    }
    if (prediction.swaps)
    {
      SwapBytes(of, of, prediction.rowSamples, prediction.sampleBytes);
    }
    if (prediction.predictor == 2)
    {
      AddUpRow(prediction, of);
    }
  }
}

void
TiffInflater::Inflate(const std::vector<char> & coded, char * data, std::size_t bytes, std::size_t most)
{
  m_Inflater->Restart();
  const auto *  next = reinterpret_cast<const unsigned char *>(coded.data());
  std::size_t   left = coded.size();
  auto *        to = reinterpret_cast<unsigned char *>(data);
  std::size_t   room = bytes;
  unsigned char rest[4096];
  std::size_t   dropped = 0;
  for (bool goesOn = true; goesOn;)
  {
    const bool isRest = room == 0;
    auto *     restTo = rest;
    auto       restRoom = sizeof(rest);
    const auto before = left + room;
    goesOn = m_Inflater->Inflate(next, left, isRest ? restTo : to, isRest ? restRoom : room);
    dropped += sizeof(rest) - restRoom;
    if (dropped > most - bytes)
    {
      throw std::runtime_error("it has more than its " + std::to_string(bytes) + " bytes");
    }
    if (goesOn && left + room == before && restRoom == sizeof(rest))
    {
      break;
    }
    if (!goesOn && room > 0)
    {
      throw std::runtime_error("it has " + std::to_string(bytes - room) + " of its " + std::to_string(bytes) +
                               " bytes");
    }
    if (!goesOn)
    {
      return;
    }
  }
  throw std::runtime_error("its compressed bytes end too early");
}

} // namespace chunkwise::files
