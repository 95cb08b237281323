/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"

#include <cstring>

namespace chunkwise::files
{

namespace
{

constexpr std::size_t GiplHeaderBytes = 256;
/** The last number of a header: the usual one, and that of some old programs. */
constexpr std::uint32_t GiplMagics[] = { 0xefffe9b0, 0x2ae389b8 };

constexpr struct
{
  int       code;
  PixelType kind;
} GiplTypes[] = { { 1, PixelType::UInt8 },  { 7, PixelType::Int8 },     { 8, PixelType::UInt8 },
                  { 15, PixelType::Int16 }, { 16, PixelType::UInt16 },  { 31, PixelType::UInt32 },
                  { 32, PixelType::Int32 }, { 64, PixelType::Float32 }, { 65, PixelType::Float64 } };

/** Number `i` of those at `at`: headers are big-endian. */
template <typename T>
T
NumberAt(const char * bytes, std::size_t at, int i = 0)
{
  T value{};
  std::memcpy(&value, bytes + at + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  if (!IsBigEndianMachine())
  {
    SwapBytes(&value, &value, 1, sizeof(T));
  }
  return value;
}

} // namespace

VoxelPlace
LocateGipl(const std::string & file)
{
  const Descriptor descriptor = Descriptor::OpenToRead(file);
  const bool       isGzip = HasEnding(file, ".gz");
  char             bytes[GiplHeaderBytes];
  if (isGzip)
  {
    MakeByteStream(Codec::Deflate, descriptor, 0, PixelType::UInt8, [](std::size_t) {})->Read(bytes, GiplHeaderBytes);
  }
  else
  {
    descriptor.ReadAt(bytes, GiplHeaderBytes, 0);
  }
  const auto magic = NumberAt<std::uint32_t>(bytes, 252);
  if (magic != GiplMagics[0] && magic != GiplMagics[1])
  {
    Fail(file, "is no GIPL file: its header does not end with the mark of one");
  }
  VoxelPlace    place;
  ImageHeader & header = place.header;
  // Axes end where one has no voxels; a fourth counts if it has some.
  header.dimension = 0;
  for (int a = 0; a < 4 && NumberAt<std::uint16_t>(bytes, 0, a) > (a == 3 ? 1 : 0); ++a)
  {
    header.extent[a] = NumberAt<std::uint16_t>(bytes, 0, a);
    header.spacing[a] = static_cast<double>(NumberAt<float>(bytes, 10, a));
    header.origin[a] = NumberAt<double>(bytes, 204, a);
    ++header.dimension;
  }
  if (header.dimension < 2)
  {
    Fail(file, "has " + std::to_string(header.dimension) + " dimensions, there may be 2 to 4");
  }
  const int  type = NumberAt<std::uint16_t>(bytes, 8);
  const auto known =
    std::find_if(std::begin(GiplTypes), std::end(GiplTypes), [&](const auto & t) { return t.code == type; });
  if (known == std::end(GiplTypes))
  {
    Fail(file, "has voxels of GIPL's type " + std::to_string(type) + ", which cannot be used");
  }
  header.kind = place.coding.kind = known->kind;
  CountVoxels(file, header);
  place.coding.swaps = !IsBigEndianMachine();
  place.files.emplace_back(file);
  place.data = file;
  place.codec = isGzip ? Codec::Deflate : Codec::Raw;
  (isGzip ? place.skipped : place.offset) = GiplHeaderBytes;
  return place;
}

} // namespace chunkwise::files
