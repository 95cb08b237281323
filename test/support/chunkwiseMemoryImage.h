/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseMemoryImage_h
#define chunkwiseMemoryImage_h

#include "chunkwiseImageSource.h"
#include "chunkwiseTestOperations.h"

#include <cstring>

namespace chunkwise
{

/** An image in memory behind the interfaces of files. */
class MemoryImage
  : public ImageSource
  , public ImageSink
{
public:
  explicit MemoryImage(const BufferView & view)
    : m_View(view)
  {}
  Coordinates
  GetExtent() const override
  {
    return m_View.box.Extents();
  }
  PixelType
  GetKind() const override
  {
    return m_View.kind;
  }
  ImageAccess
  GetAccess() const override
  {
    return ImageAccess();
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    Copy(box, m_View, view);
  }
  void
  Write(const Box & box, const BufferView & view) override
  {
    Copy(box, view, m_View);
  }
  void
  Finish() override
  {}

private:
  static void
  Copy(const Box & box, const BufferView & from, const BufferView & to)
  {
    const auto size = static_cast<std::int64_t>(PixelSize(from.kind));
    ForEachIndex(box, [&](const Coordinates & index) {
      std::memcpy(static_cast<char *>(to.data) + to.Offset(index) * size,
                  static_cast<const char *>(from.data) + from.Offset(index) * size,
                  static_cast<std::size_t>(size));
    });
  }

  const BufferView m_View;
};

} // namespace chunkwise

#endif
