/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwisePartOfSink_h
#define chunkwisePartOfSink_h

#include "chunkwiseImageSource.h"

#include <memory>
#include <utility>

namespace chunkwise
{

/** A box of a sink's image as a sink. Its coordinates begin at 0. */
class PartOfSink : public ImageSink
{
public:
  /** `isLast`: the image is complete with this part, so that Finish finishes the sink. */
  PartOfSink(std::shared_ptr<ImageSink> sink, const Box & part, bool isLast)
    : m_Sink(std::move(sink))
    , m_Part(part)
    , m_IsLast(isLast)
  {}
  Coordinates
  GetExtent() const override
  {
    return m_Part.Extents();
  }
  PixelType
  GetKind() const override
  {
    return m_Sink->GetKind();
  }
  ImageAccess
  GetAccess() const override
  {
    return m_Sink->GetAccess();
  }
  void
  Write(const Box & box, const BufferView & view) override
  {
    BufferView moved = view;
    moved.box = this->Move(view.box);
    m_Sink->Write(this->Move(box), moved);
  }
  void
  Finish() override
  {
    if (m_IsLast)
    {
      m_Sink->Finish();
    }
  }

private:
  Box
  Move(Box box) const
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      box.lower[a] += m_Part.lower[a];
      box.upper[a] += m_Part.lower[a];
    }
    return box;
  }

  std::shared_ptr<ImageSink> m_Sink;
  Box                        m_Part;
  bool                       m_IsLast;
};

} // namespace chunkwise

#endif
