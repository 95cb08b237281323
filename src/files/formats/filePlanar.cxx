/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "filePlanar.h"

#include <mutex>

namespace chunkwise::files
{

namespace
{

constexpr int AxisOfComponents = MaxDimension - 1;
/** A view of pixels in the order of the file, where components come last. */
BufferView
InFileOrder(const BufferView & view)
{
  BufferView turned = view;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const int from = (a + 1) % MaxDimension;
    turned.box.lower[a] = view.box.lower[from];
    turned.box.upper[a] = view.box.upper[from];
    turned.stride[a] = view.stride[from];
  }
  return turned;
}

/** Calls body(part, dense memory) for pieces of the components of a box in the order of the file. */
template <typename TBody>
void
ForEachComponent(const Box & box, PixelType kind, TBody && body)
{
  std::vector<char> memory;
  Box               component = box;
  for (std::int64_t c = box.lower[AxisOfComponents]; c < box.upper[AxisOfComponents]; ++c)
  {
    component.lower[AxisOfComponents] = c;
    component.upper[AxisOfComponents] = c + 1;
    ForEachPiece(component, kind, [&](const Box & part) {
      memory.resize(static_cast<std::size_t>(part.NumberOfVoxels()) * PixelSize(kind));
      body(part, DenseView(memory.data(), kind, part));
    });
  }
}

/** An image that cannot be read, or written, in any order is held whole. */
ImageAccess
GetAccessOf(const ImageAccess & inner, const ImageHeader & header)
{
  ImageAccess access = inner;
  if (inner.anyOrder)
  {
    access.heldBytes += PieceBytes;
    return access;
  }
  access.anyOrder = true;
  access.inPieces = false;
  access.heldBytes += static_cast<std::uint64_t>(Box::FromExtent(GetStoredExtent(header)).NumberOfVoxels()) *
                      static_cast<std::uint64_t>(PixelSize(header.kind));
  return access;
}

/** A box of a view. */
BufferView
PartOf(const BufferView & view, const Box & box)
{
  BufferView part = view;
  part.box = box;
  part.data = static_cast<char *>(view.data) + view.Offset(box.lower) * static_cast<std::int64_t>(PixelSize(view.kind));
  return part;
}

class PlanarSource : public FileSource
{
public:
  PlanarSource(std::unique_ptr<FileSource> inner, const ImageHeader & header)
    : m_Inner(std::move(inner))
  {
    m_Header = header;
    m_Files = m_Inner->GetFiles();
    m_Warnings = m_Inner->GetWarnings();
  }
  ImageAccess
  GetAccess() const override
  {
    return GetAccessOf(m_Inner->GetAccess(), m_Header);
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    CheckBox(GetExtent(), m_Header.kind, box, view);
    if (box.IsEmpty())
    {
      return;
    }
    const BufferView of = InFileOrder(PartOf(view, box));
    if (m_Inner->GetAccess().anyOrder)
    {
      ForEachComponent(of.box, of.kind, [&](const Box & part, const BufferView & memory) {
        m_Inner->Read(part, memory);
        CopyBox(part, memory, of);
      });
    }
    else
    {
      const Box                         image = Box::FromExtent(m_Inner->GetExtent());
      const std::lock_guard<std::mutex> lock(m_Mutex);
      if (m_Whole.empty())
      {
        std::vector<char> whole(static_cast<std::size_t>(image.NumberOfVoxels()) * PixelSize(of.kind));
        m_Inner->Read(image, DenseView(whole.data(), of.kind, image));
        m_Whole = std::move(whole);
      }
      CopyBox(of.box, DenseView(m_Whole.data(), of.kind, image), of);
    }
    m_BytesRead = m_Inner->GetBytesRead();
  }

private:
  std::unique_ptr<FileSource> m_Inner;
  std::mutex                  m_Mutex;
  std::vector<char>           m_Whole;
};

class PlanarSink : public FileSink
{
public:
  PlanarSink(std::unique_ptr<FileSink> inner, const ImageHeader & header)
    : m_Inner(std::move(inner))
    , m_Image(Box::FromExtent(m_Inner->GetExtent()))
  {
    m_Header = header;
    m_Losses = m_Inner->GetLosses();
    if (!m_Inner->GetAccess().anyOrder)
    {
      m_Whole.resize(static_cast<std::size_t>(m_Image.NumberOfVoxels()) * PixelSize(header.kind));
    }
  }
  ImageAccess
  GetAccess() const override
  {
    return GetAccessOf(m_Inner->GetAccess(), m_Header);
  }
  void
  Write(const Box & box, const BufferView & view) override
  {
    CheckBox(GetExtent(), m_Header.kind, box, view);
    if (box.IsEmpty())
    {
      return;
    }
    const BufferView of = InFileOrder(PartOf(view, box));
    if (!m_Whole.empty())
    {
      CopyBox(of.box, of, DenseView(m_Whole.data(), of.kind, m_Image));
      return;
    }
    ForEachComponent(of.box, of.kind, [&](const Box & part, const BufferView & memory) {
      CopyBox(part, of, memory);
      m_Inner->Write(part, memory);
    });
  }
  void
  Finish() override
  {
    if (!m_Whole.empty())
    {
      m_Inner->Write(m_Image, DenseView(m_Whole.data(), m_Header.kind, m_Image));
    }
    m_Inner->Finish();
    m_BytesWritten = m_Inner->GetBytesWritten();
  }

private:
  std::unique_ptr<FileSink> m_Inner;
  Box                       m_Image;
  std::vector<char>         m_Whole;
};

} // namespace

ImageHeader
GetPlanarHeader(const ImageHeader & header)
{
  ImageHeader inner = header;
  inner.extent[AxisOfComponents] = header.components;
  inner.dimension = MaxDimension;
  inner.components = 1;
  return inner;
}

ImageAccess
GetPlanarAccess(const ImageAccess & inner, const ImageHeader & header)
{
  return GetAccessOf(inner, header);
}

std::unique_ptr<FileSource>
MakePlanarSource(std::unique_ptr<FileSource> inner, const ImageHeader & header)
{
  return std::make_unique<PlanarSource>(std::move(inner), header);
}

std::unique_ptr<FileSink>
MakePlanarSink(std::unique_ptr<FileSink> inner, const ImageHeader & header)
{
  return std::make_unique<PlanarSink>(std::move(inner), header);
}

} // namespace chunkwise::files
