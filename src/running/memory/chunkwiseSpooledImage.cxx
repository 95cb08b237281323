/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSpooledImage.h"

#include "chunkwiseError.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

std::uint64_t
FindFirst(const Coordinates & extent, const Box & box)
{
  const Coordinates stride = DenseStrides(extent);
  std::uint64_t     voxel = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxel += static_cast<std::uint64_t>(box.lower[a] * stride[a]);
  }
  return voxel;
}

char *
FindData(const Box & box, const BufferView & view)
{
  return static_cast<char *>(view.data) + view.Offset(box.lower) * static_cast<std::int64_t>(PixelSize(view.kind));
}

} // namespace

SpooledImage::SpooledImage(const Coordinates & extent, PixelType kind, const std::string & folder)
  : m_Extent(extent)
  , m_Kind(kind)
  , m_Spool(folder)
{}

Coordinates
SpooledImage::GetExtent() const
{
  return m_Extent;
}

PixelType
SpooledImage::GetKind() const
{
  return m_Kind;
}

ImageAccess
SpooledImage::GetAccess() const
{
  return ImageAccess();
}

void
SpooledImage::Read(const Box & box, const BufferView & view)
{
  const std::size_t size = PixelSize(m_Kind);
  m_Spool.Read(
    FindFirst(m_Extent, box) * size, FindData(box, view), static_cast<std::size_t>(box.NumberOfVoxels()) * size);
}

void
SpooledImage::Write(const Box & box, const BufferView & view)
{
  const std::size_t size = PixelSize(m_Kind);
  if (m_Spool.GetSize() != FindFirst(m_Extent, box) * size)
  {
    throw Error("an image was not spooled in ascending order");
  }
  m_Spool.Append(FindData(box, view), static_cast<std::size_t>(box.NumberOfVoxels()) * size);
}

void
SpooledImage::Finish()
{}

void
CopyToSpool(ImageSource & source, SpooledImage & spool, void * buffer, std::size_t bufferBytes,
            const std::function<void(const Box & box)> & onBox)
{
  const Box image = Box::FromExtent(source.GetExtent());
  int       axis = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    axis = image.Extent(a) > 1 ? a : axis;
  }
  const auto plane =
    static_cast<std::size_t>(image.NumberOfVoxels() / image.Extent(axis)) * PixelSize(source.GetKind());
  const auto planes = static_cast<std::int64_t>(bufferBytes / plane);
  if (planes == 0)
  {
    throw BudgetError("a plane of the image has " + std::to_string(plane) + " bytes, more than the " +
                        std::to_string(bufferBytes) + " bytes that there are to copy it",
                      plane,
                      bufferBytes);
  }
  for (std::int64_t first = 0; first < image.Extent(axis); first += planes)
  {
    Box box = image;
    box.lower[axis] = first;
    box.upper[axis] = std::min(first + planes, image.Extent(axis));
    onBox(box);
    const BufferView view = DenseView(buffer, source.GetKind(), box);
    source.Read(box, view);
    spool.Write(box, view);
  }
}

} // namespace chunkwise
