/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileWhole.h"

namespace chunkwise::files
{

WholeSource::WholeSource(const std::string & file)
  : m_File(file)
{
  m_Files.emplace_back(file);
}

ImageAccess
WholeSource::GetAccess() const
{
  ImageAccess access;
  access.inPieces = false;
  access.heldBytes = GetImageBytes() + m_DecoderBytes;
  return access;
}

std::uint64_t
WholeSource::GetImageBytes() const
{
  return static_cast<std::uint64_t>(CountVoxels(m_File, m_Header)) * PixelSize(m_Header.kind);
}

void
WholeSource::Read(const Box & box, const BufferView & view)
{
  CheckBox(GetExtent(), m_Header.kind, box, view);
  if (box.IsEmpty())
  {
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    if (m_Whole.empty())
    {
      std::vector<char> whole(GetImageBytes());
      Decode(whole.data());
      m_BytesRead += Descriptor::OpenToRead(m_File).GetSize();
      m_Whole = std::move(whole);
    }
  }
  CopyBox(box, DenseView(m_Whole.data(), m_Header.kind, Box::FromExtent(GetExtent())), view);
}

} // namespace chunkwise::files
