/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"
#include "fileItk.h"

#ifdef CHUNKWISE_HAS_ITK
#  include "itkNrrdImageIO.h"
#endif

#include <algorithm>
#include <cctype>
#include <sstream>

namespace chunkwise::files
{

namespace
{

/** "data file" and "datafile" are one field. */
std::string
FieldName(const std::string & text)
{
  std::string name;
  for (const char c : text)
  {
    if (c != ' ')
    {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return name;
}

const char *
NrrdTypeName(PixelType kind)
{
  static const char * const names[NumberOfPixelTypes] = { "uint8", "int8",   "uint16", "int16", "uint32",
                                                          "int32", "uint64", "int64",  "float", "double" };
  return names[static_cast<int>(kind)];
}

bool
IsPrintable(const std::string & text)
{
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return (c < ' ' && c != '\t') || c == 127; });
}

/** Keys and values stay on their line. */
std::string
Escaped(const std::string & text)
{
  std::string result;
  for (const char c : text)
  {
    result += c == '\n' ? std::string("\\n") : c == '\\' ? std::string("\\\\") : std::string(1, c);
  }
  return result;
}

std::string
Vector(const double * values, int count, int stride)
{
  std::string text = "(";
  for (int i = 0; i < count; ++i)
  {
    text += (i ? "," : "") + Shortest(values[i * stride]);
  }
  return text + ")";
}

/** Fields that ITK does not read, and that stay true of a filtered image: kept among the texts as "NRRD_" and the name.
 * Those of axes have a value for each axis. */
struct KeptField
{
  const char * name;
  bool         isOfAxes;
  bool         isOfSpace;
};

constexpr KeptField KeptFields[] = { { "measurement frame", false, true },
                                     { "space units", false, true },
                                     { "units", true, false },
                                     { "labels", true, false },
                                     { "thicknesses", true, false },
                                     { "sample units", false, false } };

const KeptField *
FindKeptField(const std::string & key)
{
  for (const KeptField & field : KeptFields)
  {
    if (key == std::string("NRRD_") + field.name)
    {
      return &field;
    }
  }
  return nullptr;
}

/** Values of a field: in parentheses, in quotes, or between white space. */
std::vector<std::string>
SplitField(const std::string & text)
{
  std::vector<std::string> values;
  for (std::size_t at = text.find_first_not_of(" \t"); at != std::string::npos;)
  {
    const char  first = text[at];
    std::size_t end = first == '(' ? text.find(')', at) : first == '"' ? text.find('"', at + 1) : std::string::npos;
    end = first == '(' || first == '"' ? (end == std::string::npos ? text.size() : end + 1)
                                       : std::min(text.size(), text.find_first_of(" \t", at));
    values.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(" \t", end);
  }
  return values;
}

/** ITK turns the space of an image into LPS, so vectors in that space turn with it. */
std::string
ToLps(const std::string & frame, const std::string & space)
{
  const std::string name = FieldName(space);
  const bool        isRas = name.compare(0, 3, "ras") == 0 || name.compare(0, 5, "right") == 0;
  const bool        isLas = name.compare(0, 3, "las") == 0 || name.compare(0, 12, "left-anterio") == 0;
  if (!isRas && !isLas)
  {
    return frame;
  }
  std::string turned;
  for (const std::string & vector : SplitField(frame))
  {
    std::string numbers = vector;
    std::replace_if(numbers.begin(), numbers.end(), [](char c) { return c == '(' || c == ')' || c == ','; }, ' ');
    std::istringstream stream(numbers);
    std::string        text;
    double             number = 0;
    for (int row = 0; stream >> number; ++row)
    {
      text += (row ? "," : "(") + Shortest((row == 0 && isRas) || row == 1 ? -number : number);
    }
    turned += (turned.empty() ? "" : " ") + (text.empty() ? vector : text + ")");
  }
  return turned;
}

/** Drops the texts that ITK makes of NRRD's own fields. */
void
TakeFields(std::map<std::string, std::string> & metadata)
{
  for (auto field = metadata.begin(); field != metadata.end();)
  {
    field = field->first.compare(0, 5, "NRRD_") == 0 && field->first != "NRRD_content" ? metadata.erase(field)
                                                                                       : std::next(field);
  }
}

bool
IsNumber(const std::string & text)
{
  std::istringstream stream(text);
  double             number = 0;
  return (stream >> number) && stream.eof();
}

/** Whether the value of a field is one that other programs read, for an image of `dimension` axes that have directions.
 */
bool
CanWriteField(const KeptField & field, const std::string & value, int dimension, bool isVector)
{
  const std::string name = field.name;
  if (!IsPrintable(value) || value.empty())
  {
    return false;
  }
  if (name == "sample units")
  {
    return true;
  }
  // Axes that have directions have their units in common.
  const std::vector<std::string> parts = SplitField(value);
  const auto wanted = static_cast<std::size_t>(field.isOfAxes ? dimension + (isVector ? 1 : 0) : dimension);
  if (name == "units" || parts.size() != wanted)
  {
    return false;
  }
  return std::all_of(parts.begin(), parts.end(), [&](const std::string & part) {
    if (name == "thicknesses")
    {
      return part == "NaN" || part == "nan" || IsNumber(part);
    }
    if (name == "measurement frame")
    {
      std::size_t count = 0;
      std::string number;
      bool        isGood = part.size() > 2 && part.front() == '(' && part.back() == ')';
      for (std::istringstream stream(isGood ? part.substr(1, part.size() - 2) : std::string());
           std::getline(stream, number, ',');
           ++count)
      {
        isGood = isGood && IsNumber(number);
      }
      return isGood && count == static_cast<std::size_t>(dimension);
    }
    return part.size() >= 2 && part.front() == '"' && part.back() == '"' && part.find('\\') == std::string::npos;
  });
}

/** A header's fields, by FieldName; and where the header ends. */
struct NrrdHeader
{
  std::map<std::string, std::string> fields;
  std::map<std::string, std::string> kept; ///< those of KeptFields, by the names that they have among an image's texts
  std::uint64_t                      end{ 0 };

  std::string
  Get(const std::string & name, const std::string & otherwise = {}) const
  {
    const auto found = fields.find(name);
    return found == fields.end() ? otherwise : found->second;
  }
};

NrrdHeader
ReadNrrdHeader(const std::string & file)
{
  NrrdHeader       header;
  const Descriptor descriptor = Descriptor::OpenToRead(file);
  LineReader       reader(descriptor);
  std::string      line;
  if (!reader.Next(line) || line.compare(0, 4, "NRRD") != 0)
  {
    Fail(file, "is no NRRD file");
  }
  bool isComplete = false;
  while (!isComplete && reader.Next(line))
  {
    if (!line.empty() && line.back() == '\r')
    {
      line.pop_back();
    }
    const auto colon = line.find(':');
    isComplete = line.empty();
    if (line.empty() || line[0] == '#' || colon == std::string::npos || line.compare(colon, 2, ":=") == 0)
    {
      continue;
    }
    const std::string field = FieldName(line.substr(0, colon));
    const std::string value = Trim(line.substr(colon + 1));
    header.fields[field] = value;
    for (const KeptField & one : KeptFields)
    {
      if (field == FieldName(one.name) && !value.empty())
      {
        header.kept[std::string("NRRD_") + one.name] = value;
      }
    }
  }
  if (!isComplete && header.Get("datafile").empty())
  {
    Fail(file, "its header is not complete: no empty line ends it");
  }
  header.end = reader.GetOffset();
  return header;
}

Codec
GetNrrdCodec(const std::string & file, const std::string & encoding)
{
  if (encoding == "ascii" || encoding == "text" || encoding == "txt")
  {
    return Codec::Text;
  }
  if (encoding == "gzip" || encoding == "gz")
  {
    return Codec::Deflate;
  }
  if (encoding != "raw")
  {
    Fail(file, "has the encoding " + encoding + "; raw, gzip and ascii can be read");
  }
  return Codec::Raw;
}

/** Puts the fields that ITK does not read among the image's texts. */
void
KeepFields(const NrrdHeader & nrrd, std::size_t axes, ImageHeader & header)
{
  std::map<std::string, std::string> kept = nrrd.kept;
  const std::string                  units = nrrd.Get("units");
  if (!units.empty() && kept.count("NRRD_space units") == 0)
  {
    // Axes that have directions have their units in common: those of components are not among them.
    std::vector<std::string> ofAxes = SplitField(units);
    ofAxes.erase(ofAxes.begin(), ofAxes.begin() + (header.components > 1 && ofAxes.size() == axes ? 1 : 0));
    std::string & text = kept["NRRD_space units"];
    for (const std::string & unit : ofAxes)
    {
      text += (text.empty() ? "" : " ") + unit;
    }
  }
  const auto frame = kept.find("NRRD_measurement frame");
  if (frame != kept.end())
  {
    frame->second = ToLps(frame->second, nrrd.Get("space"));
  }
  header.metadata.insert(kept.begin(), kept.end());
}

/** Components must be interleaved: ITK would reorder them, or leave some out. */
void
RequireInterleaved(const std::string & file, const NrrdHeader & nrrd, std::int64_t components)
{
  const std::string sizes = nrrd.Get("sizes");
  const std::string kinds = nrrd.Get("kinds");
  const std::string first = sizes.substr(0, sizes.find(' '));
  const std::string kind = kinds.substr(0, kinds.find(' '));
  const bool        isImage = kind.empty() || kind == "domain" || kind == "space" || kind == "time" || kind == "???";
  if (isImage || kind.find("masked") != std::string::npos || first != std::to_string(components))
  {
    Fail(file,
         "has " + std::to_string(components) +
           " components a voxel that do not lie side by side along its first axis, which cannot be used");
  }
}

/** Skips as many lines of place.data. */
void
SkipLines(VoxelPlace & place, std::int64_t lines)
{
  const Descriptor data = Descriptor::OpenToRead(place.data);
  LineReader       skipped(data, place.offset, data.GetSize());
  std::string      line;
  for (std::int64_t i = 0; i < lines; ++i)
  {
    if (!skipped.Next(line))
    {
      Fail(place.data.string(), "has fewer lines than the line skip of its header");
    }
  }
  place.offset = skipped.GetOffset();
}

/** Skips as many bytes of the voxels, compressed or not; -1: the voxels are the end of the file. */
void
SkipBytes(const std::string & file, VoxelPlace & place, std::int64_t count, const std::string & encoding)
{
  if (count == -1 && place.codec == Codec::Raw)
  {
    const auto bytes = static_cast<std::uint64_t>(CountVoxels(file, place.header)) * PixelSize(place.coding.kind);
    const std::uint64_t size = Descriptor::OpenToRead(place.data).GetSize();
    place.offset = std::max(place.offset, size - std::min(size, bytes));
  }
  else if (count < 0)
  {
    Fail(file, "its byte skip of -1 cannot be used with the encoding " + encoding);
  }
  else if (place.codec == Codec::Deflate)
  {
    place.skipped = static_cast<std::uint64_t>(count);
  }
  else
  {
    place.offset += static_cast<std::uint64_t>(count);
  }
}

} // namespace

VoxelPlace
LocateNrrd(const std::string & file)
{
  const NrrdHeader   nrrd = ReadNrrdHeader(file);
  const std::int64_t lineSkip =
    nrrd.fields.count("lineskip") ? ParseInteger(file, "line skip", nrrd.Get("lineskip"), 0) : 0;
  const std::int64_t byteSkip =
    nrrd.fields.count("byteskip") ? ParseInteger(file, "byte skip", nrrd.Get("byteskip"), -1) : 0;
  VoxelPlace place;
  place.data = file;
  place.offset = nrrd.end;
  place.files.emplace_back(file);
  const std::string dataFile = nrrd.Get("datafile");
  if (!dataFile.empty())
  {
    place.data = FindDataFile(file, dataFile);
    place.offset = 0;
    place.files.push_back(place.data);
  }
  const std::string encoding = FieldName(nrrd.Get("encoding", "raw"));
  place.codec = GetNrrdCodec(file, encoding);
  // NRRD itself has at most 16 axes.
  const auto axes = static_cast<std::size_t>(ParseInteger(file, "dimension", nrrd.Get("dimension"), 1, 16));
  ParseIntegers(file, "sizes", nrrd.Get("sizes"), axes, 1);
#ifdef CHUNKWISE_HAS_ITK
  const auto io = itk::NrrdImageIO::New();
  place.header = ReadHeaderWithItk(*io, file);
#else
  Fail(file, "is in the format NRRD, which a build without ITK cannot read");
#endif
  TakeFields(place.header.metadata);
  KeepFields(nrrd, axes, place.header);
  if (place.header.components > 1)
  {
    RequireInterleaved(file, nrrd, place.header.components);
  }
  place.coding.kind = place.header.kind;
  place.coding.swaps = place.codec != Codec::Text && PixelSize(place.coding.kind) > 1 &&
                       (FieldName(nrrd.Get("endian")) == "big") != IsBigEndianMachine();
  if (lineSkip > 0)
  {
    SkipLines(place, lineSkip);
  }
  SkipBytes(file, place, byteSkip, encoding);
  return place;
}

VoxelLayout
LayOutNrrd(const ImageHeader & header, const std::string & file, const std::string & data, bool compress)
{
  const int          n = header.dimension;
  const std::int64_t components = header.components;
  const bool         isVector = components > 1;
  std::string        sizes = isVector ? " " + std::to_string(components) : std::string();
  std::string kinds = !isVector ? "" : components == 3 ? " RGB-color" : components == 4 ? " RGBA-color" : " vector";
  std::string directions = isVector ? " none" : "";
  for (int a = 0; a < n; ++a)
  {
    sizes += " " + std::to_string(header.extent[a]);
    kinds += " domain";
    double axis[MaxDimension];
    for (int row = 0; row < n; ++row)
    {
      axis[row] = header.direction[row][a] * header.spacing[a];
    }
    directions += " " + Vector(axis, n, 1);
  }
  VoxelLayout layout;
  layout.detached = !data.empty();
  layout.codec = compress ? Codec::Deflate : Codec::Raw;
  std::string & text = layout.header;
  text = std::string("NRRD000") + (data.empty() ? "4" : "5") + "\n";
  const auto content = header.metadata.find("NRRD_content");
  if (content != header.metadata.end() && content->second.find_first_of("\r\n") == std::string::npos &&
      !content->second.empty())
  {
    text += "content: " + content->second + "\n";
  }
  text +=
    std::string("type: ") + NrrdTypeName(header.kind) + "\ndimension: " + std::to_string(n + (isVector ? 1 : 0)) + "\n";
  text += n == 3 ? "space: left-posterior-superior\n" : "space dimension: " + std::to_string(n) + "\n";
  text += "sizes:" + sizes + "\nspace directions:" + directions + "\nkinds:" + kinds + "\n";
  text += std::string("endian: ") + (IsBigEndianMachine() ? "big" : "little") +
          "\nencoding: " + (compress ? "gzip" : "raw") + "\nspace origin: " + Vector(header.origin, n, 1) + "\n";
  if (!data.empty())
  {
    text += "data file: " + NameOfDataFile(file, data) + "\n";
  }
  for (const auto & [key, value] : header.metadata)
  {
    if (key == "NRRD_content")
    {
      continue;
    }
    if (const KeptField * const field = FindKeptField(key))
    {
      // The reader has made units of the axes those of the space, which are written in their place.
      if (key == "NRRD_units" && header.metadata.count("NRRD_space units") != 0)
      {
        continue;
      }
      if (CanWriteField(*field, value, n, isVector))
      {
        text += std::string(field->name) + ": " + value + "\n";
      }
      else
      {
        layout.losses.push_back("the text of " + key);
      }
      continue;
    }
    const bool canHold = !key.empty() && key.find(":=") == std::string::npos && key.find(':') == std::string::npos &&
                         key[0] != '#' && key.find('\r') == std::string::npos &&
                         value.find('\r') == std::string::npos && key.find('\0') == std::string::npos &&
                         value.find('\0') == std::string::npos;
    if (canHold)
    {
      text += Escaped(key) + ":=" + Escaped(value) + "\n";
    }
    else
    {
      layout.losses.push_back("the text of " + key);
    }
  }
  if (data.empty())
  {
    text += "\n";
  }
  return layout;
}

} // namespace chunkwise::files
