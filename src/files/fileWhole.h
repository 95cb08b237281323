/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileWhole_h
#define fileWhole_h

#include "fileVoxels.h"

#include <mutex>

namespace chunkwise::files
{

/** An image that a decoder can only give whole: the first Read decodes it. */
class WholeSource : public FileSource
{
public:
  ImageAccess
  GetAccess() const override;
  void
  Read(const Box & box, const BufferView & view) override;

protected:
  explicit WholeSource(const std::string & file);
  /** Decodes all voxels, dense in the order of the image. */
  virtual void
  Decode(char * voxels) = 0;
  std::uint64_t
  GetImageBytes() const;

  std::string m_File;
  /** Memory that the decoder takes beside the voxels. */
  std::uint64_t m_DecoderBytes{ 0 };

private:
  std::mutex        m_Mutex;
  std::vector<char> m_Whole;
};

} // namespace chunkwise::files

#endif
