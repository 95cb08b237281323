/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileByteCount.h"
#include "fileFormats.h"

#include <cmath>
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

template <typename T>
T
WordAt(const char * bytes, std::size_t at, bool swaps)
{
  T value{};
  std::memcpy(&value, bytes + at, sizeof(value));
  if (swaps)
  {
    SwapBytes(&value, &value, 1, sizeof(value));
  }
  return value;
}

/** Sizes, and where the axes lie: the header says which of x, y and z the columns, rows and sections of the file are.
 * The voxels stay as they are stored; the direction of an axis is that of its name. */
void
ReadGeometry(const std::string & file, const char * bytes, bool swaps, ImageHeader & header)
{
  const auto integer = [&](std::size_t at, int i) {
    return WordAt<std::int32_t>(bytes, at + 4 * static_cast<std::size_t>(i), swaps);
  };
  const auto real = [&](std::size_t at, int i) {
    return static_cast<double>(WordAt<float>(bytes, at + 4 * static_cast<std::size_t>(i), swaps));
  };
  int  names[3];
  bool isUsed[4] = {};
  bool isMap = true;
  for (int a = 0; a < 3; ++a)
  {
    names[a] = integer(64, a);
    isMap = isMap && names[a] >= 1 && names[a] <= 3 && !isUsed[names[a]];
    isUsed[isMap ? names[a] : 0] = true;
    header.extent[a] = integer(0, a);
  }
  if (!isMap && (names[0] != 0 || names[1] != 0 || names[2] != 0))
  {
    Fail(file,
         "its columns, rows and sections are the axes " + std::to_string(names[0]) + ", " + std::to_string(names[1]) +
           " and " + std::to_string(names[2]) + ", not 1, 2 and 3 in any order");
  }
  header.dimension = 3;
  for (int a = 0; a < 3; ++a)
  {
    const int    axis = isMap ? names[a] - 1 : a;
    const double length = real(40, axis);
    const int    intervals = integer(28, axis);
    const double step = length / intervals;
    // Zeros say nothing.
    header.spacing[a] = intervals > 0 && step > 0 && std::isfinite(step) ? step : 1;
    header.origin[a] = real(196, a);
    for (int row = 0; row < 3; ++row)
    {
      header.direction[row][a] = row == axis ? 1 : 0;
    }
  }
}

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
  // The order is what the machine stamp says. Old files have none, and some a wrong one: then it is that in which mode
  // and sizes are such numbers, or smaller ones.
  const auto inOrder = [&](std::size_t at, bool reverses) { return WordAt<std::int32_t>(bytes, at, reverses); };
  const auto sizeIn = [&](bool reverses) {
    const std::int32_t mode = inOrder(12, reverses);
    ByteCount          size(mode >= 0 && mode <= 127 ? 1 : -1);
    for (std::size_t a = 0; a < 3; ++a)
    {
      const std::int32_t extent = inOrder(4 * a, reverses);
      size = size * (extent > 0 ? extent : -1);
    }
    return size;
  };
  const auto first = static_cast<unsigned char>(bytes[212]);
  const bool hasStamp = first == 0x11 || first == 0x44;
  bool       swaps = hasStamp && (first == 0x11) != IsBigEndianMachine();
  if (!hasStamp || !sizeIn(swaps).IsCountable())
  {
    swaps = !(sizeIn(false) <= sizeIn(true));
  }
  if (std::memcmp(bytes + 208, "MAP", 3) != 0 || inOrder(12, swaps) < 0 || inOrder(12, swaps) > 127)
  {
    Fail(file, "is no MRC file");
  }
  const auto number = [&](std::size_t at) { return inOrder(at, swaps); };
  const int  m = number(12);
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
  // Bytes have no sign in old files, and in IMOD's unless it says so; they have one by the standard of 2014.
  const bool isSigned = number(152) == ImodStamp ? (number(156) & 1) != 0 : number(108) >= 20140;
  place.header.kind = m == ModeInt16     ? PixelType::Int16
                      : m == ModeUInt16  ? PixelType::UInt16
                      : m == ModeFloat32 ? PixelType::Float32
                      : isSigned         ? PixelType::Int8
                                         : PixelType::UInt8;
  ReadGeometry(file, bytes, swaps, place.header);
  CountVoxels(file, place.header);
  const std::int32_t extension = number(92);
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
  const int mode = header.kind == PixelType::UInt8    ? ModeInt8
                   : header.kind == PixelType::Int16  ? ModeInt16
                   : header.kind == PixelType::UInt16 ? ModeUInt16
                                                      : ModeFloat32;
  put(12, mode);
  // A largest value below the smallest: not known.
  put(76, 0.0f);
  put(80, -1.0f);
  put(84, -2.0f);
  put(216, -1.0f);
  put(88, header.extent[2] > 1 ? 1 : 0);
  if (header.kind == PixelType::UInt8)
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
