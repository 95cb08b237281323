/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"
#include "fileItk.h"

#include "itkMRCImageIO.h"

#include <cstring>

namespace chunkwise::files
{

namespace
{

constexpr std::size_t HeaderBytes = 1024;
/** "IMOD", which says in a flag whether bytes have a sign. */
constexpr std::int32_t ImodStamp = 1146047817;

constexpr int ModeInt8 = 0;
constexpr int ModeInt16 = 1;
constexpr int ModeFloat32 = 2;
constexpr int ModeUInt16 = 6;

} // namespace

VoxelPlace
LocateMrc(const std::string & file)
{
  VoxelPlace       place;
  const Descriptor descriptor = Descriptor::OpenToRead(file);
  char             bytes[HeaderBytes];
  const auto       present = descriptor.ReadSome(bytes, HeaderBytes, 0);
  if (present < HeaderBytes)
  {
    Fail(file, "ends after " + std::to_string(present) + " bytes, a header of MRC has " + std::to_string(HeaderBytes));
  }
  const auto number = [&](std::size_t at, bool swaps) {
    std::int32_t value = 0;
    std::memcpy(&value, bytes + at, sizeof(value));
    if (swaps)
    {
      SwapBytes(&value, &value, 1, sizeof(value));
    }
    return value;
  };
  // The mode is a small number in one of the orders.
  const auto mode = [&](bool swaps) { return number(12, swaps); };
  const bool swaps = mode(false) < 0 || mode(false) > 127;
  if (std::memcmp(bytes + 208, "MAP", 3) != 0 || mode(swaps) < 0 || mode(swaps) > 127)
  {
    Fail(file, "is no MRC file");
  }
  const int m = mode(swaps);
  if (m == 3 || m == 4)
  {
    Fail(file, "has complex voxels, which cannot be used");
  }
  if (m == 16)
  {
    Fail(file, "has 3 components a voxel, only images of one can be used");
  }
  if (m != ModeInt8 && m != ModeInt16 && m != ModeFloat32 && m != ModeUInt16)
  {
    Fail(file, "has voxels of MRC's mode " + std::to_string(m) + ", which cannot be used");
  }
  const auto io = itk::MRCImageIO::New();
  place.header = ReadHeaderWithItk(*io, file);
  place.header.metadata.clear();
  // Bytes have no sign in old files, and in IMOD's unless it says so; they have one by the standard of 2014.
  const bool isSigned = number(152, swaps) == ImodStamp ? (number(156, swaps) & 1) != 0 : number(108, swaps) >= 20140;
  place.header.kind = m == ModeInt16     ? PixelKind::Int16
                      : m == ModeUInt16  ? PixelKind::UInt16
                      : m == ModeFloat32 ? PixelKind::Float32
                      : isSigned         ? PixelKind::Int8
                                         : PixelKind::UInt8;
  for (int a = 0; a < 3; ++a)
  {
    place.header.extent[a] = number(4 * static_cast<std::size_t>(a), swaps);
  }
  const std::int32_t extension = number(92, swaps);
  if (extension < 0)
  {
    Fail(file, "its header says that another of " + std::to_string(extension) + " bytes follows");
  }
  place.coding.kind = place.header.kind;
  place.coding.swaps = swaps;
  place.files.emplace_back(file);
  place.data = file;
  place.offset = HeaderBytes + static_cast<std::uint64_t>(extension);
  return place;
}

VoxelLayout
LayOutMrc(const ImageHeader & header, const std::string & file, const std::string &, bool)
{
  VoxelLayout layout;
  layout.header.assign(HeaderBytes, '\0');
  const auto put = [&](std::size_t at, auto value) { std::memcpy(&layout.header[at], &value, sizeof(value)); };
  for (int a = 0; a < 3; ++a)
  {
    const auto at = 4 * static_cast<std::size_t>(a);
    if (header.extent[a] > INT32_MAX)
    {
      Fail(file, "MRC holds at most " + std::to_string(INT32_MAX) + " voxels along an axis");
    }
    const auto extent = static_cast<std::int32_t>(header.extent[a]);
    put(at, extent);
    put(28 + at, extent);
    put(40 + at, static_cast<float>(header.spacing[a] * static_cast<double>(extent)));
    put(52 + at, 90.0f);
    put(64 + at, a + 1);
    put(196 + at, static_cast<float>(header.origin[a]));
  }
  const int mode = header.kind == PixelKind::UInt8    ? ModeInt8
                   : header.kind == PixelKind::Int16  ? ModeInt16
                   : header.kind == PixelKind::UInt16 ? ModeUInt16
                                                      : ModeFloat32;
  put(12, mode);
  // A largest value below the smallest: not known.
  put(76, 0.0f);
  put(80, -1.0f);
  put(84, -2.0f);
  put(216, -1.0f);
  put(88, header.extent[2] > 1 ? 1 : 0);
  if (header.kind == PixelKind::UInt8)
  {
    // The standard of 2014 has no bytes without a sign; IMOD says by its stamp that these have none.
    put(152, ImodStamp);
  }
  else
  {
    put(108, 20141);
  }
  layout.header.replace(208, 4, "MAP ");
  const unsigned char stamp[2][4] = { { 0x44, 0x44, 0, 0 }, { 0x11, 0x11, 0, 0 } };
  std::memcpy(&layout.header[212], stamp[IsBigEndianMachine() ? 1 : 0], 4);
  return layout;
}

} // namespace chunkwise::files
