/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvertedImage.h"

#include "chunkwiseAxes.h"
#include "chunkwiseConvertVoxels.h"
#include "chunkwiseStreamedWindow.h"

#include <functional>
#include <vector>

namespace chunkwise
{

namespace
{

std::uint64_t
GetPlaneBytes(const Coordinates & extent, int axis, PixelType kind)
{
  std::uint64_t bytes = PixelSize(kind);
  for (int a = 0; a < axis; ++a)
  {
    bytes *= static_cast<std::uint64_t>(extent[a]);
  }
  return bytes;
}

/** The bytes of a piece while it is converted. */
std::uint64_t
GetHeldBytes(const Coordinates & extent, PixelType kind, bool anyOrder)
{
  return GetPieceBytes(UINT64_MAX, GetPlaneBytes(extent, GetLastAxis(extent), kind), !anyOrder);
}

/** Calls body(piece, dense memory of `kind`) for the pieces of a box. */
void
ForEachPiece(const Box & box, const Coordinates & extent, PixelType kind, bool anyOrder,
             const std::function<void(const Box &, const BufferView &)> & body)
{
  std::vector<unsigned char> memory;
  for (const Box & piece : CutIntoPieces(box, GetLastAxis(extent), PixelSize(kind), !anyOrder))
  {
    memory.resize(std::max(memory.size(), static_cast<std::size_t>(piece.NumberOfVoxels()) * PixelSize(kind)));
    body(piece, DenseView(memory.data(), kind, piece));
  }
}

/** Calls row(first voxel's index) for the rows of a box along x. */
void
ForEachRow(const Box & box, const std::function<void(const Coordinates &)> & row)
{
  Coordinates index = box.lower;
  for (bool more = !box.IsEmpty(); more;)
  {
    row(index);
    int a = 1;
    for (; a < MaxDimension && ++index[a] == box.upper[a]; ++a)
    {
      index[a] = box.lower[a];
    }
    more = a < MaxDimension;
  }
}

void *
At(const BufferView & view, const Coordinates & index)
{
  return static_cast<unsigned char *>(view.data) + view.Offset(index) * static_cast<std::int64_t>(PixelSize(view.kind));
}

} // namespace

ConvertedSource::ConvertedSource(std::shared_ptr<ImageSource> source, PixelType kind)
  : m_Source(std::move(source))
  , m_Kind(kind)
{}

Coordinates
ConvertedSource::GetExtent() const
{
  return m_Source->GetExtent();
}

PixelType
ConvertedSource::GetKind() const
{
  return m_Kind;
}

ImageAccess
ConvertedSource::GetAccess() const
{
  ImageAccess access = m_Source->GetAccess();
  if (m_Kind != m_Source->GetKind())
  {
    access.heldBytes += GetHeldBytes(GetExtent(), m_Source->GetKind(), access.anyOrder);
  }
  return access;
}

void
ConvertedSource::Read(const Box & box, const BufferView & view)
{
  const PixelType kind = m_Source->GetKind();
  if (kind == m_Kind)
  {
    m_Source->Read(box, view);
    return;
  }
  ForEachPiece(
    box, GetExtent(), kind, m_Source->GetAccess().anyOrder, [&](const Box & piece, const BufferView & memory) {
      m_Source->Read(piece, memory);
      ForEachRow(piece, [&](const Coordinates & index) {
        ConvertVoxels(At(memory, index), kind, At(view, index), m_Kind, piece.Extent(0));
      });
    });
}

ConvertedSink::ConvertedSink(std::shared_ptr<ImageSink> sink, const Coordinates & extent, PixelType written,
                             PixelType taken, const ImageAccess & access, bool countsLimits)
  : m_Sink(std::move(sink))
  , m_Extent(extent)
  , m_Written(written)
  , m_Taken(taken)
  , m_Access(access)
  , m_CountsLimits(countsLimits)
{}

Coordinates
ConvertedSink::GetExtent() const
{
  return m_Extent;
}

PixelType
ConvertedSink::GetKind() const
{
  return m_Taken;
}

ImageAccess
ConvertedSink::GetAccess() const
{
  ImageAccess access = m_Access;
  if (m_Taken != m_Written)
  {
    access.heldBytes += GetHeldBytes(m_Extent, m_Written, access.anyOrder);
  }
  return access;
}

void
ConvertedSink::Write(const Box & box, const BufferView & view)
{
  if (m_CountsLimits)
  {
    ForEachRow(box, [&](const Coordinates & index) {
      atLimits += CountVoxelsAtLimits(At(view, index), m_Taken, box.Extent(0));
    });
  }
  if (m_Taken == m_Written)
  {
    m_Sink->Write(box, view);
    return;
  }
  ForEachPiece(box, m_Extent, m_Written, m_Access.anyOrder, [&](const Box & piece, const BufferView & memory) {
    ForEachRow(piece, [&](const Coordinates & index) {
      cut += ConvertVoxels(At(view, index), m_Taken, At(memory, index), m_Written, piece.Extent(0));
    });
    m_Sink->Write(piece, memory);
  });
}

void
ConvertedSink::Finish()
{
  m_Sink->Finish();
}

} // namespace chunkwise
