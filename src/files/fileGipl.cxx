/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"
#include "fileItk.h"

#include "itkGiplImageIO.h"

namespace chunkwise::files
{

VoxelPlace
LocateGipl(const std::string & file)
{
  constexpr std::uint64_t headerBytes = 256;
  const auto              io = itk::GiplImageIO::New();
  const Descriptor        descriptor = Descriptor::OpenToRead(file);
  VoxelPlace              place;
  const bool              isGzip = HasEnding(file, ".gz");
  // ITK reads past the end of a short header.
  char bytes[headerBytes];
  if (isGzip)
  {
    MakeByteStream(Codec::Deflate, descriptor, 0, PixelKind::UInt8, [](std::size_t) {})->Read(bytes, headerBytes);
  }
  else
  {
    descriptor.ReadAt(bytes, headerBytes, 0);
  }
  place.header = ReadHeaderWithItk(*io, file);
  place.header.metadata.clear();
  place.coding.kind = place.header.kind;
  place.coding.swaps = !IsBigEndianMachine();
  place.files.emplace_back(file);
  place.data = file;
  place.codec = isGzip ? Codec::Deflate : Codec::Raw;
  (isGzip ? place.skipped : place.offset) = headerBytes;
  return place;
}

} // namespace chunkwise::files
