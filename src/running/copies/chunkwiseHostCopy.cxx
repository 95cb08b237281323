/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseHostCopy.h"

#include "chunkwiseStridedVoxels.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__) || defined(_M_X64)
#  include <emmintrin.h>
#endif

namespace chunkwise
{

namespace
{

/** Copies past the caches: the image is not read again soon, and its lines need not be read before they are written. */
void
StreamingCopy(char * to, const char * from, std::size_t bytes)
{
#if defined(__SSE2__) || defined(_M_X64)
  if (bytes >= 1024)
  {
    const std::size_t head = (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64;
    std::memcpy(to, from, head);
    to += head;
    from += head;
    bytes -= head;
    for (; bytes >= 64; bytes -= 64, to += 64, from += 64)
    {
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from));
      const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + 16));
      const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + 32));
      const __m128i d = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + 48));
      _mm_stream_si128(reinterpret_cast<__m128i *>(to), a);
      _mm_stream_si128(reinterpret_cast<__m128i *>(to + 16), b);
      _mm_stream_si128(reinterpret_cast<__m128i *>(to + 32), c);
      _mm_stream_si128(reinterpret_cast<__m128i *>(to + 48), d);
    }
  }
#endif
  std::memcpy(to, from, bytes);
}

void
FinishStreaming()
{
#if defined(__SSE2__) || defined(_M_X64)
  _mm_sfence();
#endif
}

std::int64_t
Wrap(std::int64_t i, std::int64_t lower, std::int64_t upper)
{
  const std::int64_t n = upper - lower;
  const std::int64_t m = (i - lower) % n;
  return lower + (m < 0 ? m + n : m);
}

} // namespace

DenseSequence::DenseSequence(const BufferView & view, const Box & box, const Box & image)
  : m_View(view)
  , m_Box(box)
  , m_Image(image)
  , m_PixelBytes(PixelSize(view.kind))
  , m_Bytes(static_cast<std::size_t>(box.NumberOfVoxels()) * m_PixelBytes)
  , m_RunAxis(0)
  , m_WrapsWithinRun(box.lower[0] < image.lower[0] || box.upper[0] > image.upper[0])
  , m_IsApart(view.stride[0] != 1 && view.box.Extent(0) > 1)
{
  std::int64_t pixels = box.Extent(0);
  if (!m_WrapsWithinRun && !m_IsApart)
  {
    for (int a = 1; a < MaxDimension; ++a)
    {
      const bool inside = box.lower[a] >= image.lower[a] && box.upper[a] <= image.upper[a];
      if (!inside || (box.Extent(a) > 1 && view.stride[a] != pixels))
      {
        break;
      }
      m_RunAxis = a;
      pixels *= box.Extent(a);
    }
  }
  m_RunPixels = pixels;
  m_RunBytes = static_cast<std::size_t>(pixels) * m_PixelBytes;
}

char *
DenseSequence::AddressOf(std::int64_t run) const
{
  Coordinates index = m_Box.lower;
  for (int a = m_RunAxis + 1; a < MaxDimension; ++a)
  {
    const std::int64_t extent = m_Box.Extent(a);
    index[a] = Wrap(m_Box.lower[a] + run % extent, m_Image.lower[a], m_Image.upper[a]);
    run /= extent;
  }
  if (m_WrapsWithinRun)
  {
    index[0] = m_View.box.lower[0];
  }
  return static_cast<char *>(m_View.data) + m_View.Offset(index) * static_cast<std::int64_t>(m_PixelBytes);
}

template <typename TVisitor>
void
DenseSequence::ForEachPiece(std::size_t begin, std::size_t end, TVisitor && visit) const
{
  std::size_t done = 0;
  while (begin < end)
  {
    const auto        run = static_cast<std::int64_t>(begin / m_RunBytes);
    const std::size_t offset = begin % m_RunBytes;
    const std::size_t bytes = std::min(end - begin, m_RunBytes - offset);
    char *            address = AddressOf(run);
    if (!m_WrapsWithinRun)
    {
      visit(address + offset, done, bytes);
    }
    else
    {
      // The row goes round the image: byte by byte ranges, each up to the image's edge.
      for (std::size_t at = 0; at < bytes;)
      {
        const auto         pixel = static_cast<std::int64_t>((offset + at) / m_PixelBytes);
        const std::size_t  within = (offset + at) % m_PixelBytes;
        const std::int64_t x = Wrap(m_Box.lower[0] + pixel, m_Image.lower[0], m_Image.upper[0]);
        const std::size_t  toEdge = static_cast<std::size_t>(m_Image.upper[0] - x) * m_PixelBytes - within;
        const std::size_t  piece = std::min(bytes - at, toEdge);
        visit(address + static_cast<std::size_t>(x - m_View.box.lower[0]) * m_PixelBytes + within, done + at, piece);
        at += piece;
      }
    }
    begin += bytes;
    done += bytes;
  }
}

template <typename TVisitor>
void
DenseSequence::ForEachVoxelPiece(std::size_t begin, std::size_t end, TVisitor && visit) const
{
  const auto pixel = static_cast<std::int64_t>(m_PixelBytes);
  const auto first = static_cast<std::int64_t>(begin) / pixel;
  const auto last = static_cast<std::int64_t>(end) / pixel;
  for (std::int64_t voxel = first; voxel < last;)
  {
    const std::int64_t x = voxel % m_RunPixels;
    char *             address = AddressOf(voxel / m_RunPixels);
    std::int64_t       count = std::min(last - voxel, m_RunPixels - x);
    std::int64_t       at = x;
    if (m_WrapsWithinRun)
    {
      const std::int64_t wrapped = Wrap(m_Box.lower[0] + x, m_Image.lower[0], m_Image.upper[0]);
      at = wrapped - m_View.box.lower[0];
      count = std::min(count, m_Image.upper[0] - wrapped);
    }
    visit(address + at * m_View.stride[0] * pixel, voxel, count);
    voxel += count;
  }
}

void
DenseSequence::Gather(std::size_t begin, std::size_t end, void * to) const
{
  char * const dense = static_cast<char *>(to);
  if (m_IsApart)
  {
    const auto pixel = static_cast<std::int64_t>(m_PixelBytes);
    ForEachVoxelPiece(begin, end, [&](const char * first, std::int64_t voxel, std::int64_t count) {
      char * const to = dense + (voxel * pixel - static_cast<std::int64_t>(begin));
      CopyStrided(m_PixelBytes, to, 1, first, m_View.stride[0], count);
    });
    return;
  }
  ForEachPiece(begin, end, [dense](const char * address, std::size_t at, std::size_t bytes) {
    std::memcpy(dense + at, address, bytes);
  });
}

void
DenseSequence::Scatter(std::size_t begin, std::size_t end, const void * from) const
{
  const char * const dense = static_cast<const char *>(from);
  if (m_IsApart)
  {
    const auto pixel = static_cast<std::int64_t>(m_PixelBytes);
    ForEachVoxelPiece(begin, end, [&](char * first, std::int64_t voxel, std::int64_t count) {
      const char * const voxels = dense + (voxel * pixel - static_cast<std::int64_t>(begin));
      CopyStrided(m_PixelBytes, first, m_View.stride[0], voxels, 1, count);
    });
    return;
  }
  ForEachPiece(begin, end, [dense](char * address, std::size_t at, std::size_t bytes) {
    StreamingCopy(address, dense + at, bytes);
  });
  FinishStreaming();
}

std::vector<DenseSequence::Stretch>
DenseSequence::FindStretches(std::size_t begin, std::size_t end, std::size_t least) const
{
  std::vector<Stretch> stretches;
  if (char * const whole = this->FindContiguous(begin, end))
  {
    stretches.push_back({ whole, 0, end - begin });
  }
  else if (!m_WrapsWithinRun && !m_IsApart && m_RunBytes >= least)
  {
    this->ForEachPiece(begin, end, [&stretches](char * address, std::size_t at, std::size_t bytes) {
      stretches.push_back({ address, at, bytes });
    });
  }
  return stretches;
}

char *
DenseSequence::FindContiguous(std::size_t begin, std::size_t end) const
{
  if (m_WrapsWithinRun || m_IsApart || begin >= end || begin / m_RunBytes != (end - 1) / m_RunBytes)
  {
    return nullptr;
  }
  return AddressOf(static_cast<std::int64_t>(begin / m_RunBytes)) + begin % m_RunBytes;
}

} // namespace chunkwise
