/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSlabPacking_h
#define chunkwiseSlabPacking_h

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

// A state as what it has that its mask has not: runs of one value. Most of a reconstruction is the mask.
namespace chunkwise
{

/** The packed bytes, at most voxels * sizeof(TKey); with so many the voxels as they are. 0: there is no difference.
 * `to` has room for the most. */
template <typename TKey>
std::size_t
PackState(const TKey * mask, const TKey * state, std::int64_t voxels, unsigned char * to)
{
  const std::size_t most = static_cast<std::size_t>(voxels) * sizeof(TKey);
  // Two numbers of up to 64 bits and a value.
  constexpr std::size_t mostOfRun = 20 + sizeof(TKey);
  std::size_t           size = 0;
  const auto            put = [&](std::uint64_t number) {
    while (number >= 128)
    {
      to[size++] = static_cast<unsigned char>(number | 128);
      number >>= 7;
    }
    to[size++] = static_cast<unsigned char>(number);
  };
  constexpr std::int64_t several = 8 / sizeof(TKey);
  std::int64_t           last = 0;
  for (std::int64_t i = 0; i < voxels;)
  {
    if (i + several <= voxels)
    {
      std::uint64_t a = 0;
      std::uint64_t b = 0;
      std::memcpy(&a, mask + i, sizeof(a));
      std::memcpy(&b, state + i, sizeof(b));
      if (a == b)
      {
        i += several;
        continue;
      }
    }
    if (mask[i] == state[i])
    {
      ++i;
      continue;
    }
    std::int64_t end = i + 1;
    while (end < voxels && state[end] == state[i])
    {
      ++end;
    }
    if (size + mostOfRun >= most)
    {
      std::memcpy(to, state, most);
      return most;
    }
    put(static_cast<std::uint64_t>(i - last));
    put(static_cast<std::uint64_t>(end - i));
    std::memcpy(to + size, state + i, sizeof(TKey));
    size += sizeof(TKey);
    i = last = end;
  }
  return size;
}

/** The inverse. `from` has the `size` bytes that PackState wrote. */
template <typename TKey>
void
UnpackState(const TKey * mask, const unsigned char * from, std::size_t size, std::int64_t voxels, TKey * state)
{
  const std::size_t most = static_cast<std::size_t>(voxels) * sizeof(TKey);
  if (size == most)
  {
    std::memcpy(state, from, most);
    return;
  }
  std::memcpy(state, mask, most);
  const unsigned char * const end = from + size;
  const auto                  get = [&from] {
    std::uint64_t number = 0;
    for (int shift = 0;; shift += 7)
    {
      const unsigned char byte = *from++;
      number |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (!(byte & 128))
      {
        return number;
      }
    }
  };
  for (std::uint64_t at = 0; from < end;)
  {
    at += get();
    const std::uint64_t count = get();
    TKey                value = 0;
    std::memcpy(&value, from, sizeof(value));
    from += sizeof(value);
    std::fill_n(state + at, count, value);
    at += count;
  }
}

} // namespace chunkwise

#endif
