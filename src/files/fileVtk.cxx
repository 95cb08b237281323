/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"
#include "fileItk.h"

#include "itkVTKImageIO.h"

#include <algorithm>
#include <sstream>

namespace chunkwise::files
{

namespace
{

const char *
VtkTypeName(PixelKind kind)
{
  static const char * const names[NumberOfPixelKinds] = { "unsigned_char", "char",  "unsigned_short", "short",
                                                          "unsigned_int",  "int",   "unsigned_long",  "long",
                                                          "float",         "double" };
  return names[static_cast<int>(kind)];
}

} // namespace

VoxelPlace
LocateVtk(const std::string & file)
{
  VoxelPlace       place;
  const Descriptor descriptor = Descriptor::OpenToRead(file);
  LineReader       reader(descriptor);
  std::string      line;
  if (!reader.Next(line) || Lower(line).find("vtk datafile") == std::string::npos)
  {
    Fail(file, "is no legacy VTK file");
  }
  reader.Next(line); // A title: any text.
  bool isText = false;
  bool isPoints = false;
  bool hasType = false;
  for (int count = 0; !hasType; ++count)
  {
    if (count == 100 || !reader.Next(line))
    {
      Fail(file, "its header is not complete: it has no SCALARS");
    }
    std::istringstream words(Lower(line));
    std::string        key;
    words >> key;
    isText = isText || key == "ascii";
    if (key == "dataset")
    {
      std::string set;
      words >> set;
      isPoints = set == "structured_points";
    }
    if (key == "vectors" || key == "tensors" || key == "color_scalars")
    {
      Fail(file, "has vectors or colors, only images of one component a voxel can be used");
    }
    if (key == "scalars")
    {
      std::string name;
      std::string type;
      words >> name >> type;
      int components = 1;
      if (!(words >> components))
      {
        components = 1;
      }
      if (components != 1)
      {
        Fail(file, "has " + std::to_string(components) + " components a voxel, only images of one can be used");
      }
      type = type == "vtktypeint64"    ? "long"
             : type == "vtktypeuint64" ? "unsigned_long"
             : type == "signed_char"   ? "char"
                                       : type;
      for (int i = 0; i < NumberOfPixelKinds; ++i)
      {
        if (type == VtkTypeName(static_cast<PixelKind>(i)))
        {
          place.coding.kind = static_cast<PixelKind>(i);
          hasType = true;
        }
      }
      if (!hasType)
      {
        Fail(file, "has voxels of " + type + ", which is no type that can be used");
      }
    }
  }
  if (!isPoints)
  {
    Fail(file, "is no image: its DATASET is not STRUCTURED_POINTS");
  }
  place.offset = reader.GetOffset();
  if (reader.Next(line) && Lower(line).compare(0, 12, "lookup_table") == 0)
  {
    place.offset = reader.GetOffset();
  }
  const auto io = itk::VTKImageIO::New();
  place.header = ReadHeaderWithItk(*io, file);
  place.header.kind = place.coding.kind;
  place.header.metadata.clear();
  place.coding.swaps = !isText && !IsBigEndianMachine();
  place.codec = isText ? Codec::Text : Codec::Raw;
  // Other attributes may follow.
  place.mayGoOn = true;
  place.files.emplace_back(file);
  place.data = file;
  return place;
}

VoxelLayout
LayOutVtk(const ImageHeader & header, const std::string &, const std::string &, bool)
{
  std::string  size;
  std::string  spacing;
  std::string  origin;
  std::int64_t voxels = 1;
  for (int a = 0; a < 3; ++a)
  {
    size += " " + std::to_string(header.extent[a]);
    spacing += " " + Shortest(header.spacing[a]);
    origin += " " + Shortest(header.origin[a]);
    voxels *= header.extent[a];
  }
  VoxelLayout layout;
  layout.bigEndian = true;
  layout.header = "# vtk DataFile Version 3.0\nAn image\nBINARY\nDATASET STRUCTURED_POINTS\nDIMENSIONS" + size +
                  "\nSPACING" + spacing + "\nORIGIN" + origin + "\nPOINT_DATA " + std::to_string(voxels) +
                  "\nSCALARS scalars " + VtkTypeName(header.kind) + " 1\nLOOKUP_TABLE default\n";
  return layout;
}

} // namespace chunkwise::files
