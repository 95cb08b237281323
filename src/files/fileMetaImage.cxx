/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"
#include "fileItk.h"

#include "itkMetaImageIO.h"

#include <algorithm>
#include <set>

namespace chunkwise::files
{

namespace
{

bool
IsTrue(const std::string & value)
{
  return !value.empty() && (value[0] == 'T' || value[0] == 't' || value[0] == '1');
}

/** Fields that say what the header says elsewhere, or that MetaIO itself reads: no text of a user's. */
const std::set<std::string> &
GetOwnFields()
{
  static const std::set<std::string> fields{ "objecttype",
                                             "objectsubtype",
                                             "transformtype",
                                             "ndims",
                                             "binarydata",
                                             "binarydatabyteordermsb",
                                             "elementbyteordermsb",
                                             "compresseddata",
                                             "compresseddatasize",
                                             "compressionlevel",
                                             "transformmatrix",
                                             "rotation",
                                             "orientation",
                                             "offset",
                                             "position",
                                             "origin",
                                             "centerofrotation",
                                             "anatomicalorientation",
                                             "elementspacing",
                                             "elementsize",
                                             "elementorigin",
                                             "elementdirection",
                                             "elementnumberofchannels",
                                             "dimsize",
                                             "headersize",
                                             "elementtype",
                                             "elementmin",
                                             "elementmax",
                                             "elementdatafile",
                                             "sequenceid",
                                             "id",
                                             "parentid",
                                             "color" };
  return fields;
}

const char *
MetaTypeName(PixelKind kind)
{
  static const char * const names[NumberOfPixelKinds] = { "MET_UCHAR", "MET_CHAR",  "MET_USHORT",     "MET_SHORT",
                                                          "MET_UINT",  "MET_INT",   "MET_ULONG_LONG", "MET_LONG_LONG",
                                                          "MET_FLOAT", "MET_DOUBLE" };
  return names[static_cast<int>(kind)];
}

/** The kind of MetaIO's type: its long has 4 bytes wherever it is read. */
bool
FindKind(std::string type, PixelKind & kind)
{
  type = type == "MET_LONG" ? "MET_INT" : type == "MET_ULONG" ? "MET_UINT" : type;
  for (int i = 0; i < NumberOfPixelKinds; ++i)
  {
    kind = static_cast<PixelKind>(i);
    if (type == MetaTypeName(kind))
    {
      return true;
    }
  }
  return false;
}

} // namespace

VoxelPlace
LocateMetaImage(const std::string & file)
{
  VoxelPlace                         place;
  const Descriptor                   descriptor = Descriptor::OpenToRead(file);
  LineReader                         reader(descriptor);
  std::string                        line;
  std::string                        type;
  std::string                        dataFile;
  std::map<std::string, std::string> texts;
  bool                               isBinary = true;
  bool                               isMsb = false;
  bool                               isCompressed = false;
  std::int64_t                       headerSize = 0;
  std::int64_t                       channels = 1;
  while (dataFile.empty())
  {
    if (!reader.Next(line))
    {
      Fail(file, "its header is not complete: it has no ElementDataFile");
    }
    const auto equals = line.find('=');
    if (equals == std::string::npos)
    {
      if (Trim(line).empty())
      {
        continue;
      }
      Fail(file, "is no MetaImage: a line of its header is \"" + line.substr(0, 40) + "\"");
    }
    const std::string key = Trim(line.substr(0, equals));
    const std::string value = Trim(line.substr(equals + 1));
    if (key == "BinaryData")
    {
      isBinary = IsTrue(value);
    }
    else if (key == "BinaryDataByteOrderMSB" || key == "ElementByteOrderMSB")
    {
      isMsb = IsTrue(value);
    }
    else if (key == "CompressedData")
    {
      isCompressed = IsTrue(value);
    }
    else if (key == "HeaderSize")
    {
      headerSize = std::strtoll(value.c_str(), nullptr, 10);
    }
    else if (key == "ElementNumberOfChannels")
    {
      channels = std::strtoll(value.c_str(), nullptr, 10);
    }
    else if (key == "ElementType")
    {
      type = value;
    }
    else if (key == "ElementDataFile")
    {
      dataFile = value;
    }
    if (GetOwnFields().count(Lower(key)) == 0)
    {
      texts[key] = value;
    }
  }
  const auto io = itk::MetaImageIO::New();
  place.header = ReadHeaderWithItk(*io, file);
  // The texts are what the file says, not what ITK makes of it.
  place.header.metadata = texts;
  PixelKind kind = PixelKind::UInt8;
  if (!FindKind(type, kind) || PixelSize(kind) != PixelSize(place.header.kind))
  {
    Fail(file, "has voxels of " + type + ", which is no type that can be used");
  }
  place.header.kind = kind;
  if (place.header.components != channels)
  {
    Fail(file,
         "has " + std::to_string(channels) + " channels, and voxels of " + std::to_string(place.header.components));
  }
  if (dataFile.compare(0, 4, "LIST") == 0 || dataFile.find('%') != std::string::npos)
  {
    Fail(file, "has its voxels in several files (" + dataFile + "), only one can be used");
  }
  place.coding.kind = kind;
  place.coding.swaps = isMsb != IsBigEndianMachine();
  place.codec = !isBinary ? Codec::Text : isCompressed ? Codec::Deflate : Codec::Raw;
  place.coding.swaps = place.coding.swaps && isBinary;
  const bool isLocal = Lower(dataFile) == "local";
  place.files.emplace_back(file);
  place.data = isLocal ? std::filesystem::path(file) : std::filesystem::path(file).parent_path() / dataFile;
  place.offset = isLocal ? reader.GetOffset() : 0;
  if (!isLocal)
  {
    place.files.push_back(place.data);
  }
  if (headerSize == -1 && place.codec == Codec::Raw)
  {
    const auto          bytes = static_cast<std::uint64_t>(CountVoxels(file, place.header)) * PixelSize(kind);
    const std::uint64_t size = Descriptor::OpenToRead(place.data).GetSize();
    place.offset = size - std::min(size, bytes);
  }
  else if (headerSize != 0)
  {
    if (headerSize < 0)
    {
      Fail(file, "its HeaderSize is " + std::to_string(headerSize) + ", which is no number of bytes");
    }
    place.offset = static_cast<std::uint64_t>(headerSize);
  }
  return place;
}

VoxelLayout
LayOutMetaImage(const ImageHeader & header, const std::string &, const std::string & data, bool compress)
{
  const int   n = header.dimension;
  std::string matrix;
  std::string origin;
  std::string center;
  std::string spacing;
  std::string size;
  for (int a = 0; a < n; ++a)
  {
    // A row of the file is the direction of an axis.
    for (int row = 0; row < n; ++row)
    {
      matrix += " " + Shortest(header.direction[row][a]);
    }
    origin += " " + Shortest(header.origin[a]);
    center += " 0";
    spacing += " " + Shortest(header.spacing[a]);
    size += " " + std::to_string(header.extent[a]);
  }
  VoxelLayout layout;
  layout.detached = !data.empty();
  layout.codec = compress ? Codec::Deflate : Codec::Raw;
  layout.gzip = false;
  std::string & text = layout.header;
  text = "ObjectType = Image\nNDims = " + std::to_string(n) +
         "\nBinaryData = True\nBinaryDataByteOrderMSB = " + (IsBigEndianMachine() ? "True" : "False") +
         "\nCompressedData = " + (compress ? "True" : "False") + "\n";
  if (compress)
  {
    text += "CompressedDataSize = ";
    layout.sizeAt = text.size();
    layout.sizeDigits = 19;
    text += std::string(19, '0') + "\n";
  }
  text += "TransformMatrix =" + matrix + "\nOffset =" + origin + "\nCenterOfRotation =" + center + "\n";
  text += "ElementSpacing =" + spacing + "\nDimSize =" + size + "\n";
  for (const auto & [key, value] : header.metadata)
  {
    const bool canHold = !key.empty() && key.find_first_of(" \t\r\n=") == std::string::npos && !Trim(value).empty() &&
                         value.find_first_of("\r\n") == std::string::npos && GetOwnFields().count(Lower(key)) == 0;
    if (canHold)
    {
      text += key + " = " + value + "\n";
    }
    else
    {
      layout.losses.push_back("the text of " + key);
    }
  }
  if (header.components > 1)
  {
    text += "ElementNumberOfChannels = " + std::to_string(header.components) + "\n";
  }
  text += std::string("ElementType = ") + MetaTypeName(header.kind) +
          "\nElementDataFile = " + (data.empty() ? "LOCAL" : data) + "\n";
  return layout;
}

} // namespace chunkwise::files
