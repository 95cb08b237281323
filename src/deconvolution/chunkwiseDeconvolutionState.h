/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeconvolutionState_h
#define chunkwiseDeconvolutionState_h

#include "chunkwiseDeconvolutionRules.h"
#include "chunkwiseGeometry.h"
#include "chunkwiseSpool.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// The state that a deconvolution keeps between its passes: images in memory or in spools, and sums without rounding.
namespace chunkwise
{

/** A sum of doubles that is rounded once, when it is asked for: the same in whatever order they are added. */
class ExactSum
{
public:
  void
  Add(double value)
  {
    AddExactly(m_Window, m_Special, value, [this](int i, std::int64_t part) { m_Digits[i] += part; });
  }
  /** A sum of these digits and special terms. */
  void
  Set(const std::int64_t * digits, double special)
  {
    std::copy_n(digits, Digits, m_Digits);
    m_Special = special;
  }
  /** Adds what another has; after at most 2^29 additions to it. */
  void
  Merge(ExactSum & other)
  {
    other.Finish();
    for (int i = 0; i < Digits; ++i)
    {
      m_Digits[i] += other.m_Digits[i];
    }
    m_Special += other.m_Special;
    Carry(m_Digits, Digits);
  }
  double
  Round()
  {
    this->Finish();
    return m_Special != 0 || std::isnan(m_Special) ? m_Special
                                                   : RoundDigits(m_Digits, Digits, StatisticsSummary::SumBias);
  }

private:
  static constexpr int Digits = StatisticsSummary::SumDigits;

  void
  Finish()
  {
    m_Window.End([this](int first, Int128 value) {
      AddParts(first, value, [this](int i, std::int64_t part) { m_Digits[i] += part; });
    });
    Carry(m_Digits, Digits);
  }

  ExactWindow<53> m_Window;
  std::int64_t    m_Digits[Digits]{};
  double          m_Special{ 0 }; ///< infinities and NaN
};

/** Memory whose bytes are those of its last use: to write zeros into that of a large image takes seconds. */
class DeconvolutionRoom
{
public:
  void
  Take(std::size_t bytes)
  {
    // The old memory goes first.
    m_Data.reset();
    m_Data.reset(new unsigned char[bytes]);
    m_Bytes = bytes;
  }
  void *
  Get() const
  {
    return m_Data.get();
  }
  std::size_t
  GetSize() const
  {
    return m_Bytes;
  }

private:
  std::unique_ptr<unsigned char[]> m_Data;
  std::size_t                      m_Bytes{ 0 };
};

/** An image of the estimate's grid, dense in memory or in a spool. Spooled images are read and written in boxes of
 * whole planes. */
class DeconvolutionImage
{
public:
  /** Calls body(part) for parts of a box, in several threads at once; each is dense where the box is. */
  using Threads = std::function<void(const Box & box, const std::function<void(const Box & part)> & body)>;

  DeconvolutionImage(const Box & box, PixelType kind, bool isInMemory, const std::string & folder, Threads threads)
    : m_Box(box)
    , m_Kind(kind)
    , m_Threads(std::move(threads))
  {
    const BufferView view = DenseView(nullptr, kind, box);
    if (isInMemory)
    {
      m_Memory.reset(new unsigned char[view.NumberOfBytes()]);
    }
    else
    {
      m_Spool = std::make_unique<Spool>(folder);
      m_Spool->Reserve(view.NumberOfBytes());
    }
  }

  bool
  IsInMemory() const
  {
    return m_Memory != nullptr;
  }
  /** The voxels of whole planes: where they are, or read into `room`. */
  BufferView
  Read(const Box & planes, void * room) const
  {
    if (m_Memory)
    {
      return DenseView(m_Memory.get(), m_Kind, m_Box);
    }
    const BufferView view = DenseView(room, m_Kind, planes);
    m_Threads(planes,
              [&](const Box & part) { m_Spool->Read(this->OffsetOf(part.lower), At(view, part), BytesOf(part)); });
    return view;
  }
  /** The view in which whole planes are made: in the image, or in `room`. */
  BufferView
  Place(const Box & planes, void * room) const
  {
    return m_Memory ? DenseView(m_Memory.get(), m_Kind, m_Box) : DenseView(room, m_Kind, planes);
  }
  /** Keeps planes that were made in their place. */
  void
  Write(const BufferView & view)
  {
    if (!m_Memory)
    {
      m_Threads(view.box,
                [&](const Box & part) { m_Spool->WriteAt(this->OffsetOf(part.lower), At(view, part), BytesOf(part)); });
    }
  }
  std::uint64_t
  GetBytesSpooled() const
  {
    return m_Spool ? m_Spool->GetBytesWritten() : 0;
  }

private:
  std::uint64_t
  OffsetOf(const Coordinates & at) const
  {
    const BufferView whole = DenseView(nullptr, m_Kind, m_Box);
    return static_cast<std::uint64_t>(whole.Offset(at)) * PixelSize(m_Kind);
  }
  std::size_t
  BytesOf(const Box & part) const
  {
    return static_cast<std::size_t>(part.NumberOfVoxels()) * PixelSize(m_Kind);
  }
  static void *
  At(const BufferView & view, const Box & part)
  {
    return static_cast<char *>(view.data) + view.Offset(part.lower) * static_cast<std::int64_t>(PixelSize(view.kind));
  }

  const Box                        m_Box;
  const PixelType                  m_Kind;
  const Threads                    m_Threads;
  std::unique_ptr<unsigned char[]> m_Memory;
  std::unique_ptr<Spool>           m_Spool;
};

} // namespace chunkwise

#endif
