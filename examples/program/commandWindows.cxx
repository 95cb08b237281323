/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandWindows.h"

#include "commandSignals.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace command
{

using chunkwise::BufferView;
using chunkwise::Box;
using chunkwise::Coordinates;
using chunkwise::DenseView;
using chunkwise::DispatchPixelKind;
using chunkwise::PixelKind;

namespace
{

/** Adds 1 to `cut` where the value has no place in TTo. */
template <typename TTo, typename TFrom>
TTo
Convert(TFrom value, std::int64_t & cut)
{
  using To = std::numeric_limits<TTo>;
  if constexpr (!To::is_integer)
  {
    return static_cast<TTo>(value);
  }
  else if constexpr (std::numeric_limits<TFrom>::is_integer)
  {
    // Compared with their signs: a negative value is below every unsigned one.
    const bool below =
      value < 0 && (!To::is_signed || static_cast<std::int64_t>(value) < static_cast<std::int64_t>(To::lowest()));
    const bool above = value > 0 && static_cast<std::uint64_t>(value) > static_cast<std::uint64_t>(To::max());
    cut += below || above ? 1 : 0;
    return below ? To::lowest() : above ? To::max() : static_cast<TTo>(value);
  }
  else
  {
    // The first number above those of TTo is a power of two, which every float has.
    const TFrom beyond = static_cast<TFrom>(std::ldexp(1.0, To::digits));
    const TFrom rounded = std::nearbyint(value);
    const bool  inside = rounded >= static_cast<TFrom>(To::lowest()) && rounded < beyond;
    cut += inside ? 0 : 1;
    return inside ? static_cast<TTo>(rounded) : rounded >= beyond ? To::max() : rounded < 0 ? To::lowest() : TTo{ 0 };
  }
}

std::size_t
Voxels(const BufferView & view)
{
  return static_cast<std::size_t>(view.box.NumberOfVoxels());
}

} // namespace

Box
Moved(Box box, const Coordinates & offset)
{
  for (int a = 0; a < chunkwise::MaxDimension; ++a)
  {
    box.lower[a] += offset[a];
    box.upper[a] += offset[a];
  }
  return box;
}

std::int64_t
PlanesOfAPiece(const Box & box, int axis, PixelKind kind)
{
  Box plane = box;
  plane.upper[axis] = plane.lower[axis] + 1;
  const std::uint64_t bytes = static_cast<std::uint64_t>(plane.NumberOfVoxels()) * PixelSize(kind);
  return static_cast<std::int64_t>(std::max<std::uint64_t>(1, PieceBytes / std::max<std::uint64_t>(bytes, 1)));
}

std::int64_t
ConvertVoxels(const BufferView & from, const BufferView & to)
{
  return DispatchPixelKind(from.kind, [&](auto source) {
    return DispatchPixelKind(to.kind, [&](auto target) {
      using From = decltype(source);
      using To = decltype(target);
      const From *      in = static_cast<const From *>(from.data);
      To *              out = static_cast<To *>(to.data);
      const std::size_t count = Voxels(from);
      std::int64_t      cut = 0;
      for (std::size_t i = 0; i < count; ++i)
      {
        out[i] = Convert<To>(in[i], cut);
      }
      return cut;
    });
  });
}

std::int64_t
CountVoxelsAtLimits(const BufferView & view)
{
  return DispatchPixelKind(view.kind, [&](auto voxel) -> std::int64_t {
    using Limits = std::numeric_limits<decltype(voxel)>;
    if constexpr (Limits::is_integer)
    {
      const auto * const data = static_cast<const decltype(voxel) *>(view.data);
      return std::count_if(
        data, data + Voxels(view), [](auto value) { return value == Limits::max() || value == Limits::lowest(); });
    }
    return 0;
  });
}

InputWindow::InputWindow(chunkwise::ImageSource & source, PixelKind kind, int axis)
  : m_Source(&source)
  , m_Kind(kind)
  , m_Axis(axis)
{}

std::uint64_t
InputWindow::GetBytes(const Box & box) const
{
  const auto          voxels = static_cast<std::uint64_t>(box.NumberOfVoxels());
  const std::uint64_t bytes = voxels * PixelSize(m_Kind);
  // A piece is read in the file's kind before it is converted.
  const bool converts = m_Source->GetKind() != m_Kind;
  Box        plane = box;
  plane.upper[m_Axis] =
    std::min(plane.upper[m_Axis], plane.lower[m_Axis] + PlanesOfAPiece(box, m_Axis, m_Source->GetKind()));
  return bytes + (converts ? static_cast<std::uint64_t>(plane.NumberOfVoxels()) * PixelSize(m_Source->GetKind()) : 0);
}

void
InputWindow::Allocate(std::uint64_t bytes)
{
  m_Memory.reset(new unsigned char[bytes]);
}

BufferView
InputWindow::Load(const Box & box)
{
  const BufferView next = DenseView(m_Memory.get(), m_Kind, box);
  Box              missing = box;
  bool             sameOthers = m_View.data != nullptr;
  for (int a = 0; a < chunkwise::MaxDimension; ++a)
  {
    sameOthers =
      sameOthers && (a == m_Axis || (box.lower[a] == m_View.box.lower[a] && box.upper[a] == m_View.box.upper[a]));
  }
  if (sameOthers && box.lower[m_Axis] >= m_View.box.lower[m_Axis] && box.lower[m_Axis] < m_View.box.upper[m_Axis])
  {
    // Planes along the slowest axis lie one after the other: those that both boxes have move to the front.
    Box common = m_View.box;
    common.lower[m_Axis] = box.lower[m_Axis];
    common.upper[m_Axis] = std::min(common.upper[m_Axis], box.upper[m_Axis]);
    unsigned char * const first =
      m_Memory.get() + static_cast<std::size_t>(m_View.Offset(common.lower)) * PixelSize(m_Kind);
    std::memmove(m_Memory.get(), first, static_cast<std::size_t>(common.NumberOfVoxels()) * PixelSize(m_Kind));
    missing.lower[m_Axis] = common.upper[m_Axis];
  }
  m_View = next;
  if (!missing.IsEmpty())
  {
    this->Read(missing);
  }
  return m_View;
}

void
InputWindow::Read(const Box & box)
{
  const PixelKind                  kind = m_Source->GetKind();
  const std::int64_t               planes = PlanesOfAPiece(box, m_Axis, kind);
  std::unique_ptr<unsigned char[]> staging;
  for (std::int64_t first = box.lower[m_Axis]; first < box.upper[m_Axis]; first += planes)
  {
    ThrowIfInterrupted();
    Box piece = box;
    piece.lower[m_Axis] = first;
    piece.upper[m_Axis] = std::min(first + planes, box.upper[m_Axis]);
    unsigned char * const place =
      m_Memory.get() + static_cast<std::size_t>(m_View.Offset(piece.lower)) * PixelSize(m_Kind);
    const BufferView target = DenseView(place, m_Kind, piece);
    if (kind == m_Kind)
    {
      m_Source->Read(piece, target);
      continue;
    }
    if (!staging)
    {
      staging.reset(new unsigned char[static_cast<std::size_t>(piece.NumberOfVoxels()) * PixelSize(kind)]);
    }
    const BufferView read = DenseView(staging.get(), kind, piece);
    m_Source->Read(piece, read);
    ConvertVoxels(read, target);
  }
}

std::int64_t
WriteVoxels(chunkwise::ImageSink & sink, const BufferView & view, const Coordinates & offset, int axis)
{
  const PixelKind    kind = sink.GetKind();
  const Box &        box = view.box;
  const std::int64_t planes = PlanesOfAPiece(
    box, axis, std::max(view.kind, kind, [](PixelKind a, PixelKind b) { return PixelSize(a) < PixelSize(b); }));
  std::unique_ptr<unsigned char[]> staging;
  std::int64_t                     cut = 0;
  for (std::int64_t first = box.lower[axis]; first < box.upper[axis]; first += planes)
  {
    ThrowIfInterrupted();
    Box piece = box;
    piece.lower[axis] = first;
    piece.upper[axis] = std::min(first + planes, box.upper[axis]);
    unsigned char * const place = static_cast<unsigned char *>(view.data) +
                                  static_cast<std::size_t>(view.Offset(piece.lower)) * PixelSize(view.kind);
    BufferView source = DenseView(place, view.kind, piece);
    if (view.kind != kind)
    {
      if (!staging)
      {
        staging.reset(new unsigned char[static_cast<std::size_t>(piece.NumberOfVoxels()) * PixelSize(kind)]);
      }
      const BufferView target = DenseView(staging.get(), kind, piece);
      cut += ConvertVoxels(source, target);
      source = target;
    }
    source.box = Moved(piece, offset);
    sink.Write(source.box, source);
  }
  return cut;
}

} // namespace command
