/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileByteCount.h"
#include "fileFormats.h"

#include <algorithm>
#include <sstream>

namespace chunkwise::files
{

namespace
{

const char *
VtkTypeName(PixelType kind)
{
  static const char * const names[NumberOfPixelTypes] = { "unsigned_char", "char",  "unsigned_short", "short",
                                                          "unsigned_int",  "int",   "unsigned_long",  "long",
                                                          "float",         "double" };
  return names[static_cast<int>(kind)];
}

/** VTK's names of types, and the bits of their values in a binary file. */
std::int64_t
BitsOf(const std::string & file, const std::string & type)
{
  static const std::map<std::string, std::int64_t> bits{
    { "bit", 1 },
    { "unsigned_char", 8 },
    { "char", 8 },
    { "signed_char", 8 },
    { "unsigned_short", 16 },
    { "short", 16 },
    { "unsigned_int", 32 },
    { "int", 32 },
    { "unsigned_long", 64 },
    { "long", 64 },
    { "vtktypeint64", 64 },
    { "vtktypeuint64", 64 },
    { "vtkidtype", 32 },
    { "float", 32 },
    { "double", 64 },
  };
  const auto found = bits.find(type);
  if (found == bits.end())
  {
    Fail(file, "has values of " + type.substr(0, 40) + ", which is no type of VTK");
  }
  return found->second;
}

/** The words of a line in lower case. */
std::vector<std::string>
WordsOf(const std::string & line)
{
  std::istringstream       stream(Lower(line));
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
  {
    words.push_back(word);
  }
  return words;
}

/** A legacy file, key by key: what stands before the voxels is passed over. */
class VtkReader
{
public:
  VtkReader(const std::string & file, const Descriptor & descriptor)
    : m_File(file)
    , m_Reader(descriptor)
  {}

  VoxelPlace
  Locate()
  {
    std::string line;
    if (!m_Reader.Next(line) || Lower(line).find("vtk datafile") == std::string::npos)
    {
      Fail(m_File, "is no legacy VTK file");
    }
    m_Reader.Next(line); // A title: any text.
    while (!m_HasVoxels)
    {
      if (!m_Reader.Next(line))
      {
        FailWithoutVoxels();
      }
      m_Words = WordsOf(line);
      if (!m_Words.empty())
      {
        ReadKey(line);
      }
    }
    FinishHeader();
    m_Place.files.emplace_back(m_File);
    m_Place.data = m_File;
    m_Place.coding.swaps = !m_IsText && !IsBigEndianMachine();
    m_Place.codec = m_IsText ? Codec::Text : Codec::Raw;
    // Other attributes may follow.
    m_Place.mayGoOn = true;
    return m_Place;
  }

private:
  [[noreturn]] void
  FailWithoutVoxels() const
  {
    Fail(m_File,
         m_Others.empty() ? "its header is not complete: it has no SCALARS of points"
                          : "has " + m_Others + " and no SCALARS of points, only images of one component can be used");
  }

  const std::string &
  GetWord(std::size_t i) const
  {
    if (i >= m_Words.size())
    {
      Fail(m_File, "the line " + m_Words[0] + " of its header has too few words");
    }
    return m_Words[i];
  }
  std::int64_t
  GetCount(std::size_t i) const
  {
    return ParseInteger(m_File, m_Words[0], GetWord(i), 0);
  }
  /** The text after the first word. */
  std::string
  GetRest(const std::string & line) const
  {
    const auto begin = line.find_first_not_of(" \t");
    const auto end = line.find_first_of(" \t", begin);
    return end == std::string::npos ? std::string() : line.substr(end);
  }

  void
  ReadKey(const std::string & line)
  {
    const std::string & key = m_Words[0];
    ImageHeader &       header = m_Place.header;
    if (key == "ascii" || key == "binary")
    {
      m_IsText = key == "ascii";
    }
    else if (key == "dataset")
    {
      if (GetWord(1) != "structured_points")
      {
        FailNoImage();
      }
      m_IsImage = true;
    }
    else if (key == "dimensions")
    {
      const auto sizes = ParseIntegers(m_File, "DIMENSIONS", GetRest(line), 3);
      std::copy_n(sizes.begin(), 3, header.extent.axis);
      m_HasDimensions = true;
    }
    else if (key == "spacing" || key == "aspect_ratio")
    {
      const auto spacing = ParseNumbers(m_File, m_Words[0], GetRest(line), 3);
      std::copy_n(spacing.begin(), 3, header.spacing);
    }
    else if (key == "origin")
    {
      const auto origin = ParseNumbers(m_File, "ORIGIN", GetRest(line), 3);
      std::copy_n(origin.begin(), 3, header.origin);
    }
    else if (key == "point_data" || key == "cell_data")
    {
      m_IsOfPoints = key == "point_data";
      m_Tuples = GetCount(1);
    }
    else if (key == "field")
    {
      SkipField(GetCount(2));
    }
    else if (key == "metadata")
    {
      SkipMetadata();
    }
    else
    {
      ReadAttribute();
    }
  }

  [[noreturn]] void
  FailNoImage() const
  {
    Fail(m_File, "is no image: its DATASET is not STRUCTURED_POINTS");
  }

  void
  ReadAttribute()
  {
    const std::string & key = m_Words[0];
    if (key == "scalars")
    {
      ReadScalars();
    }
    else if (key == "lookup_table")
    {
      SkipValues(ByteCount(GetCount(2)) * 4, m_IsText ? "float" : "unsigned_char");
    }
    else if (key == "color_scalars")
    {
      Note("colors");
      SkipValues(ByteCount(m_Tuples) * GetCount(2), m_IsText ? "float" : "unsigned_char");
    }
    else if (key == "vectors" || key == "normals" || key == "tensors" || key == "tensors6")
    {
      Note(key);
      SkipValues(ByteCount(m_Tuples) * (key == "tensors" ? 9 : key == "tensors6" ? 6 : 3), GetWord(2));
    }
    else if (key == "texture_coordinates")
    {
      SkipValues(ByteCount(m_Tuples) * GetCount(2), GetWord(3));
    }
    else if (key == "global_ids" || key == "pedigree_ids")
    {
      SkipValues(ByteCount(m_Tuples), GetWord(2));
    }
    else
    {
      Fail(m_File, "a line of its header is \"" + m_Words[0].substr(0, 40) + "\", which is no key of an image");
    }
  }

  void
  Note(const std::string & attribute)
  {
    if (m_IsOfPoints && m_Others.empty())
    {
      m_Others = attribute;
    }
  }

  void
  ReadScalars()
  {
    const std::string type = GetWord(2);
    std::int64_t      components = m_Words.size() > 3 ? GetCount(3) : 1;
    // The table's name is optional where it is the default. Voxels are no lines.
    std::string next(12, ' ');
    next.resize(m_Reader.Peek(next.data(), next.size()));
    if (Lower(next) == "lookup_table")
    {
      m_Reader.Next(next);
    }
    if (!m_IsOfPoints)
    {
      SkipValues(ByteCount(m_Tuples) * components, type);
      return;
    }
    if (components != 1)
    {
      Fail(m_File, "has " + std::to_string(components) + " components a voxel, only images of one can be used");
    }
    const std::string known = type == "vtktypeint64"    ? "long"
                              : type == "vtktypeuint64" ? "unsigned_long"
                              : type == "signed_char"   ? "char"
                                                        : type;
    for (int i = 0; i < NumberOfPixelTypes; ++i)
    {
      if (known == VtkTypeName(static_cast<PixelType>(i)))
      {
        m_Place.coding.kind = m_Place.header.kind = static_cast<PixelType>(i);
        m_HasVoxels = true;
      }
    }
    if (!m_HasVoxels)
    {
      Fail(m_File, "has voxels of " + type.substr(0, 40) + ", which is no type that can be used");
    }
    m_Place.offset = m_Reader.GetOffset();
  }

  /** Up to an empty line. */
  void
  SkipMetadata()
  {
    std::string line;
    while (m_Reader.Next(line) && !Trim(line).empty())
    {
    }
  }

  void
  SkipField(std::int64_t arrays)
  {
    std::string line;
    for (std::int64_t i = 0; i < arrays; ++i)
    {
      do
      {
        if (!m_Reader.Next(line))
        {
          FailWithoutVoxels();
        }
        m_Words = WordsOf(line);
      } while (m_Words.empty());
      if (m_Words[0] == "metadata")
      {
        SkipMetadata();
        --i;
        continue;
      }
      // Name, components, tuples, type.
      SkipValues(ByteCount(GetCount(1)) * GetCount(2), GetWord(3));
    }
  }

  /** So many values: bytes of a binary file, or words of text, which end a line. */
  void
  SkipValues(ByteCount values, const std::string & type)
  {
    if (!m_IsText)
    {
      const ByteCount bits = type == "string" ? ByteCount(-1) : values * BitsOf(m_File, type) + ByteCount(7);
      if (type == "string")
      {
        return SkipStrings(values.Get());
      }
      RequireInFile(m_File, ByteCount(bits.IsCountable() ? bits.Get() / 8 : -1), m_Reader.GetBytesLeft());
      m_Reader.Skip(static_cast<std::uint64_t>(bits.Get() / 8));
      return;
    }
    m_Reader.SkipWords(values.Get());
  }

  /** Each has its length before it, in one to eight bytes: the first two bits say in how many. */
  void
  SkipStrings(std::int64_t count)
  {
    for (std::int64_t i = 0; i < count; ++i)
    {
      unsigned char bytes[8] = {};
      if (m_Reader.Peek(bytes, sizeof(bytes)) == 0)
      {
        FailWithoutVoxels();
      }
      const int     size = 1 << (3 - (bytes[0] >> 6));
      std::uint64_t length = bytes[0] & 63u;
      for (int b = 1; b < size; ++b)
      {
        length = length << 8 | bytes[b];
      }
      m_Reader.Skip(static_cast<std::uint64_t>(size));
      m_Reader.Skip(length);
    }
  }

  void
  FinishHeader()
  {
    ImageHeader & header = m_Place.header;
    if (!m_IsImage)
    {
      FailNoImage();
    }
    if (!m_HasDimensions)
    {
      Fail(m_File, "its header is not complete: it has no DIMENSIONS");
    }
    // As ITK has it.
    header.dimension = header.extent[2] > 1 ? 3 : 2;
    const std::int64_t voxels = CountVoxels(m_File, header);
    if (voxels != m_Tuples)
    {
      Fail(m_File,
           "has values of " + std::to_string(m_Tuples) + " points, its DIMENSIONS are those of " +
             std::to_string(voxels));
    }
    if (header.dimension == 2)
    {
      header.spacing[2] = 1;
      header.origin[2] = 0;
    }
  }

  const std::string &      m_File;
  LineReader               m_Reader;
  VoxelPlace               m_Place;
  std::vector<std::string> m_Words;
  bool                     m_IsText{ false };
  bool                     m_IsImage{ false };
  bool                     m_HasDimensions{ false };
  bool                     m_HasVoxels{ false };
  /** Attributes are of points, not of cells, and of so many. */
  bool         m_IsOfPoints{ false };
  std::int64_t m_Tuples{ 0 };
  /** The first attribute of points that is no image of one component. */
  std::string m_Others;
};

} // namespace

VoxelPlace
LocateVtk(const std::string & file)
{
  const Descriptor descriptor = Descriptor::OpenToRead(file);
  return VtkReader(file, descriptor).Locate();
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
