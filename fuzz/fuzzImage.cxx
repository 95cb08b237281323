/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"
#include "fileItk.h"
#include "fileItkHeader.h"
#include "fileTestBoxes.h"
#include "fuzzTarget.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <zlib.h>

namespace chunkwise::fuzz
{

using namespace chunkwise::files;

namespace
{

/** Larger images are opened, and a voxel at each end is read. */
constexpr std::int64_t MostBytes = std::int64_t{ 16 } << 20;
/** Images up to this size are written and read again. */
constexpr std::size_t MostBytesToWrite = 1 << 14;

enum class Outcome
{
  Refused,
  TooLarge,
  Complete
};

struct Result
{
  Outcome           outcome{ Outcome::Refused };
  ImageHeader       header;
  std::vector<char> voxels;
  std::string       message;
};

/** The number of bytes of an image, or MostBytes + 1 if they are more. */
std::int64_t
CountBytes(const Coordinates & extent, PixelType kind)
{
  auto bytes = static_cast<std::int64_t>(PixelSize(kind));
  for (int a = 0; a < MaxDimension; ++a)
  {
    Check(extent[a] >= 1, "an extent of " + std::to_string(extent[a]));
    if (extent[a] > MostBytes / bytes)
    {
      return MostBytes + 1;
    }
    bytes *= extent[a];
  }
  return bytes;
}

void
CheckHeader(const ImageHeader & header)
{
  Check(header.dimension >= 2 && header.dimension <= MaxDimension,
        "a dimension of " + std::to_string(header.dimension));
  Check(header.components >= 1, std::to_string(header.components) + " components");
  for (int a = header.dimension; a < MaxDimension; ++a)
  {
    Check(header.extent[a] == 1, "an axis behind the last has more than one voxel");
  }
}

char *
At(const BufferView & view, const Coordinates & index)
{
  return static_cast<char *>(view.data) + view.Offset(index) * static_cast<std::int64_t>(PixelSize(view.kind));
}

/** Reads all voxels: at once, or in boxes by chance. */
Result
ReadImage(const std::string & file, test::Random * random)
{
  Result result;
  try
  {
    const auto source = OpenImage(file);
    result.header = source->GetHeader();
    CheckHeader(result.header);
    const PixelType    kind = source->GetKind();
    const Box          image = Box::FromExtent(source->GetExtent());
    const std::int64_t bytes = CountBytes(source->GetExtent(), kind);
    const ImageAccess  access = source->GetAccess();
    if (bytes > MostBytes)
    {
      result.outcome = Outcome::TooLarge;
      if (access.anyOrder && access.inPieces)
      {
        for (const bool isLast : { false, true })
        {
          Box box = image;
          for (int a = 0; a < MaxDimension; ++a)
          {
            box.lower[a] = isLast ? image.upper[a] - 1 : image.lower[a];
            box.upper[a] = box.lower[a] + 1;
          }
          char voxel[16] = {};
          source->Read(box, DenseView(voxel, kind, box));
        }
      }
      return result;
    }
    result.voxels.assign(static_cast<std::size_t>(bytes), '\x5a');
    const BufferView all = DenseView(result.voxels.data(), kind, image);
    if (!random)
    {
      source->Read(image, all);
    }
    else
    {
      for (const Box & box : test::CutInBoxes(source->GetExtent(), access.anyOrder, *random))
      {
        test::PaddedBuffer buffer(box, kind, *random);
        source->Read(box, buffer.view);
        // Row by row to its place.
        const std::size_t row = static_cast<std::size_t>(box.Extent(0)) * PixelSize(kind);
        Coordinates       at = box.lower;
        for (bool isDone = false; !isDone;)
        {
          std::memcpy(At(all, at), At(buffer.view, at), row);
          int a = 1;
          while (a < MaxDimension && ++at[a] == box.upper[a])
          {
            at[a] = box.lower[a];
            ++a;
          }
          isDone = a == MaxDimension;
        }
      }
    }
    result.outcome = Outcome::Complete;
  }
  catch (const Error & error)
  {
    result.message = error.what();
    Check(!result.message.empty(), "a refusal without a reason");
  }
  return result;
}

bool
HaveSameShape(const ImageHeader & a, const ImageHeader & b)
{
  return a.dimension == b.dimension && a.extent == b.extent && a.kind == b.kind && a.components == b.components;
}

/** An image that was read can be written, unless the format refuses it, and is read again as it was. */
void
CheckWriting(const Result & result, const char * ending)
{
  const std::string file = GetFolder() + "/out" + ending;
  try
  {
    CheckOutput(file, result.header);
  }
  catch (const FileError &)
  {
    return;
  }
  const auto        sink = CreateImage(file, result.header);
  std::vector<char> voxels = result.voxels;
  const Box         image = Box::FromExtent(sink->GetExtent());
  sink->Write(image, DenseView(voxels.data(), result.header.kind, image));
  sink->Finish();
  const Result again = ReadImage(file, nullptr);
  Check(again.outcome == Outcome::Complete, "own " + std::string(ending) + " is refused: " + again.message);
  Check(HaveSameShape(again.header, result.header), "own " + std::string(ending) + " has another shape");
  Check(again.voxels == result.voxels, "own " + std::string(ending) + " has other voxels");
}

/** The voxel file that a header without voxels may name. */
void
WriteNeighbours()
{
  static const bool isDone = [] {
    std::string voxels(4096, '\0');
    for (std::size_t i = 0; i < voxels.size(); ++i)
    {
      voxels[i] = static_cast<char>(i * 7 + i / 256);
    }
    std::string packed(compressBound(voxels.size()), '\0');
    uLongf      size = packed.size();
    compress(reinterpret_cast<Bytef *>(packed.data()),
             &size,
             reinterpret_cast<const Bytef *>(voxels.data()),
             static_cast<uLong>(voxels.size()));
    packed.resize(size);
    for (const char * const name : { "/x.raw", "/x.img", "/x1.raw", "/x2.raw" })
    {
      WriteFile(GetFolder() + name, voxels);
    }
    WriteFile(GetFolder() + "/x.zraw", packed);
    return true;
  }();
  static_cast<void>(isDone);
}

} // namespace

namespace
{

bool
CheckReading(const std::string & file, const std::string & bytes)
{
  const auto   hash = std::hash<std::string>()(bytes);
  test::Random random(static_cast<test::Random::result_type>(hash));
  const Result whole = ReadImage(file, nullptr);
  const Result parts = ReadImage(file, &random);
  Check(whole.outcome == parts.outcome, "at once: '" + whole.message + "'; in parts: '" + parts.message + "'");
  if (whole.outcome == Outcome::Refused)
  {
    return false;
  }
  Check(HaveSameShape(whole.header, parts.header), "another shape when it is opened again");
  if (whole.outcome == Outcome::Complete)
  {
    Check(whole.voxels == parts.voxels, "other voxels when it is read in parts");
    if (whole.voxels.size() <= MostBytesToWrite && hash % 4 == 0)
    {
      CheckWriting(whole, hash % 8 == 0 ? ".mha" : hash % 16 == 4 ? ".nrrd" : ".nii");
    }
  }
  return true;
}

} // namespace

bool
RunImage(const Target & target, const std::string & bytes)
{
  WriteNeighbours();
  const std::string file = GetFolder() + "/x" + target.ending;
  WriteFile(file, bytes);
  return CheckReading(file, bytes);
}

bool
RunStore(const Target & target, const std::string & bytes)
{
  const std::string file = GetFolder() + "/x" + target.ending;
  std::error_code   ignored;
  std::filesystem::remove_all(file, ignored);
  std::filesystem::create_directory(file);
  std::size_t at = 0;
  for (int count = 0; count < 32 && at < bytes.size(); ++count)
  {
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    const std::string line = bytes.substr(at, end - at);
    const std::size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    std::size_t       length = 0;
    if (space == std::string::npos || name.size() > 60 || name.find("..") != std::string::npos || name[0] == '/' ||
        std::from_chars(line.data() + space + 1, line.data() + line.size(), length).ec != std::errc())
    {
      return false;
    }
    at = std::min(end + 1, bytes.size());
    length = std::min(length, bytes.size() - at);
    const std::filesystem::path path = file + "/" + name;
    std::filesystem::create_directories(path.parent_path(), ignored);
    if (ignored || std::filesystem::exists(path, ignored))
    {
      return false;
    }
    WriteFile(path.string(), bytes.substr(at, length));
    at += length;
  }
  return CheckReading(file, bytes);
}

bool
RunReply(const Target &, const std::string & bytes)
{
  formats::MessageReader reader(bytes);
  try
  {
    CheckHeader(MakeImageHeader(GetItkHeader(reader), "x.h5"));
    return true;
  }
  catch (const std::runtime_error & error)
  {
    Check(*error.what() != '\0', "a refusal without a reason");
  }
  return false;
}

void
MendChecksumsOfPng(std::string & bytes)
{
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
    {
      value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    }
    return value;
  };
  for (std::size_t at = 8; at + 12 <= bytes.size();)
  {
    const std::size_t length = number(at);
    if (length > bytes.size() - at - 12)
    {
      return;
    }
    const auto checksum =
      static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef *>(bytes.data() + at + 4), 4 + length));
    for (std::size_t i = 0; i < 4; ++i)
    {
      bytes[at + 8 + length + i] = static_cast<char>(checksum >> (24 - 8 * i));
    }
    at += length + 12;
  }
}

} // namespace chunkwise::fuzz
