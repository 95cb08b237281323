/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseConvertedImage_h
#define chunkwiseConvertedImage_h

#include "chunkwiseImageSource.h"

#include <atomic>
#include <memory>

namespace chunkwise
{

/** A source with its voxels converted to another kind. */
class ConvertedSource : public ImageSource
{
public:
  ConvertedSource(std::shared_ptr<ImageSource> source, PixelType kind);

  Coordinates
  GetExtent() const override;
  PixelType
  GetKind() const override;
  ImageAccess
  GetAccess() const override;
  void
  Read(const Box & box, const BufferView & view) override;

private:
  std::shared_ptr<ImageSource> m_Source;
  PixelType                    m_Kind;
};

/** A sink that takes another kind than it writes. */
class ConvertedSink : public ImageSink
{
public:
  /** Without a sink nothing can be written: it stands for one whose access is known. */
  ConvertedSink(std::shared_ptr<ImageSink> sink, const Coordinates & extent, PixelType written, PixelType taken,
                const ImageAccess & access, bool countsLimits = false);

  Coordinates
  GetExtent() const override;
  PixelType
  GetKind() const override;
  ImageAccess
  GetAccess() const override;
  void
  Write(const Box & box, const BufferView & view) override;
  void
  Finish() override;

  std::atomic<std::int64_t> cut{ 0 };
  std::atomic<std::int64_t> atLimits{ 0 };

private:
  std::shared_ptr<ImageSink> m_Sink;
  Coordinates                m_Extent;
  PixelType                  m_Written;
  PixelType                  m_Taken;
  ImageAccess                m_Access;
  bool                       m_CountsLimits;
};

} // namespace chunkwise

#endif
