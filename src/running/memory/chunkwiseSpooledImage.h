/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSpooledImage_h
#define chunkwiseSpooledImage_h

#include "chunkwiseImageSource.h"
#include "chunkwiseSpool.h"

#include <functional>
#include <string>

namespace chunkwise
{

/** An image in a spool: written in ascending order without gaps, then read in any order. Boxes lie in one stretch of
 * the image, and of the view that they are in. */
class SpooledImage
  : public ImageSource
  , public ImageSink
{
public:
  SpooledImage(const Coordinates & extent, PixelType kind, const std::string & folder);

  Coordinates
  GetExtent() const override;
  PixelType
  GetKind() const override;
  ImageAccess
  GetAccess() const override;
  void
  Read(const Box & box, const BufferView & view) override;
  void
  Write(const Box & box, const BufferView & view) override;
  void
  Finish() override;
  const Spool &
  GetSpool() const
  {
    return m_Spool;
  }

private:
  const Coordinates m_Extent;
  const PixelType   m_Kind;
  Spool             m_Spool;
};

/** Copies a source into a spooled image through `buffer`, whole planes of the last axis with more than one voxel at a
 * time. `onBox` is called before each. Throws BudgetError if the buffer has no room for a plane. */
void
CopyToSpool(ImageSource & source, SpooledImage & spool, void * buffer, std::size_t bufferBytes,
            const std::function<void(const Box & box)> & onBox);

} // namespace chunkwise

#endif
