/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileOme.h"

#include "fileFormats.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <expat.h>

namespace chunkwise::files
{

namespace
{

using Attributes = std::map<std::string, std::string>;

/** Planes that follow each other, in an element TiffData. */
struct TiffData
{
  Attributes  attributes;
  bool        hasUuid{ false };
  std::string uuid;
  std::string fileName;
};

/** The elements that matter. */
struct OmeXml
{
  std::string           uuid;
  bool                  isOme{ false };
  std::string           otherFile; ///< that has all of the description
  std::string           modulo;    ///< an element that puts two axes into one
  int                   images{ 0 };
  int                   pixels{ 0 };
  Attributes            ofPixels;
  std::vector<TiffData> data;
  /** The samples per pixel of each channel, as text. */
  std::vector<std::string> samplesPerPixel;
};

/** Drives expat, which calls back from C: nothing may be thrown there. */
class OmeParser
{
public:
  OmeParser()
    : m_Parser(XML_ParserCreate(nullptr))
  {
    if (!m_Parser)
    {
      throw std::bad_alloc();
    }
    XML_SetUserData(m_Parser, this);
    XML_SetElementHandler(m_Parser, Begin, End);
    XML_SetCharacterDataHandler(m_Parser, Text);
    XML_SetStartDoctypeDeclHandler(m_Parser, Doctype);
  }
  OmeParser(const OmeParser &) = delete;
  OmeParser &
  operator=(const OmeParser &) = delete;
  ~OmeParser() { XML_ParserFree(m_Parser); }

  /** Why the text cannot be used; empty if it can. */
  std::string
  Parse(const std::string & text)
  {
    constexpr std::size_t most = std::size_t{ 1 } << 24;
    for (std::size_t at = 0;; at += most)
    {
      const std::size_t bytes = std::min(most, text.size() - at);
      const bool        isLast = at + bytes == text.size();
      if (XML_Parse(m_Parser, text.data() + at, static_cast<int>(bytes), isLast) != XML_STATUS_OK)
      {
        return m_Why.empty() ? std::string(XML_ErrorString(XML_GetErrorCode(m_Parser))) + " in line " +
                                 std::to_string(XML_GetCurrentLineNumber(m_Parser))
                             : m_Why;
      }
      if (isLast)
      {
        return std::string();
      }
    }
  }
  OmeXml xml;

private:
  /** Without the prefix of a namespace. */
  static std::string
  LocalName(const char * name)
  {
    const char * const colon = std::strrchr(name, ':');
    return colon ? colon + 1 : name;
  }
  template <typename TBody>
  void
  Guard(TBody && body) noexcept
  {
    try
    {
      body();
    }
    catch (...)
    {
      Stop("there is not enough memory");
    }
  }
  void
  Stop(const char * why) noexcept
  {
    try
    {
      m_Why = why;
    }
    catch (...)
    {
      // The parser's own error says enough.
    }
    XML_StopParser(m_Parser, XML_FALSE);
  }
  bool
  IsIn(std::initializer_list<const char *> path) const
  {
    return m_Path.size() == path.size() && std::equal(path.begin(), path.end(), m_Path.begin());
  }

  static void XMLCALL
  Begin(void * self, const char * name, const char ** attributes)
  {
    auto & parser = *static_cast<OmeParser *>(self);
    parser.Guard([&] { parser.BeginElement(LocalName(name), attributes); });
  }
  static void XMLCALL
  End(void * self, const char *)
  {
    static_cast<OmeParser *>(self)->m_Path.pop_back();
  }
  static void XMLCALL
  Text(void * self, const char * text, int length)
  {
    auto & parser = *static_cast<OmeParser *>(self);
    parser.Guard([&] {
      if (parser.IsIn({ "OME", "Image", "Pixels", "TiffData", "UUID" }))
      {
        parser.xml.data.back().uuid.append(text, static_cast<std::size_t>(length));
      }
    });
  }
  static void XMLCALL
  Doctype(void * self, const char *, const char *, const char *, int)
  {
    // OME-XML has none; entities could make it endless.
    static_cast<OmeParser *>(self)->Stop("it has a document type");
  }

  void
  BeginElement(const std::string & name, const char ** list)
  {
    Attributes attributes;
    for (; *list; list += 2)
    {
      attributes[LocalName(list[0])] = list[1];
    }
    m_Path.push_back(name);
    if (name.compare(0, 11, "ModuloAlong") == 0)
    {
      xml.modulo = name;
    }
    if (this->IsIn({ "OME" }))
    {
      xml.isOme = true;
      xml.uuid = attributes["UUID"];
    }
    else if (this->IsIn({ "OME", "BinaryOnly" }))
    {
      xml.otherFile = attributes["MetadataFile"].empty() ? "another file" : attributes["MetadataFile"];
    }
    else if (this->IsIn({ "OME", "Image" }))
    {
      ++xml.images;
    }
    else if (this->IsIn({ "OME", "Image", "Pixels" }))
    {
      ++xml.pixels;
      xml.ofPixels = std::move(attributes);
    }
    else if (this->IsIn({ "OME", "Image", "Pixels", "Channel" }))
    {
      xml.samplesPerPixel.push_back(attributes.count("SamplesPerPixel") ? attributes["SamplesPerPixel"] : "1");
    }
    else if (this->IsIn({ "OME", "Image", "Pixels", "TiffData" }))
    {
      xml.data.emplace_back();
      xml.data.back().attributes = std::move(attributes);
    }
    else if (this->IsIn({ "OME", "Image", "Pixels", "TiffData", "UUID" }))
    {
      xml.data.back().hasUuid = true;
      xml.data.back().fileName = attributes["FileName"];
    }
  }

  XML_Parser               m_Parser;
  std::string              m_Why;
  std::vector<std::string> m_Path;
};

/** A number that is no less than `least`; `otherwise` if the attribute is not there. */
std::int64_t
GetNumber(const std::string & file, const Attributes & attributes, const char * name, std::int64_t least,
          std::int64_t otherwise)
{
  const auto found = attributes.find(name);
  if (found == attributes.end())
  {
    return otherwise;
  }
  const std::string text = Trim(found->second);
  std::int64_t      value = 0;
  const auto        end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || value < least)
  {
    Fail(file,
         "its OME-XML has " + std::string(name) + "=\"" + text.substr(0, 40) + "\", which is no number from " +
           std::to_string(least));
  }
  return value;
}

/** In mm; 0: not said, or not of use, which a warning names. */
double
GetLength(const Attributes & attributes, const std::string & name, std::vector<std::string> & warnings)
{
  const auto found = attributes.find(name);
  if (found == attributes.end())
  {
    return 0;
  }
  const std::string text = Trim(found->second);
  double            value = 0;
  const auto        end = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto        unit = attributes.find(name + "Unit");
  const std::string unitName = unit == attributes.end() ? "um" : unit->second;
  const double      length = value * GetUnitInMm(unitName);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || !std::isfinite(length) || length <= 0)
  {
    warnings.push_back("its OME-XML has " + name + "=\"" + text.substr(0, 40) + "\" in \"" + unitName.substr(0, 40) +
                       "\", which is no length: it is not used");
    return 0;
  }
  return length;
}

const char *
NameOfType(PixelType kind)
{
  switch (kind)
  {
    case PixelType::UInt8:
      return "uint8";
    case PixelType::Int8:
      return "int8";
    case PixelType::UInt16:
      return "uint16";
    case PixelType::Int16:
      return "int16";
    case PixelType::UInt32:
      return "uint32";
    case PixelType::Int32:
      return "int32";
    case PixelType::Float32:
      return "float";
    case PixelType::Float64:
      return "double";
    default:
      return ""; // OME has no others.
  }
}

/** The axes behind x and y: 0 for slices, 1 for channels, 2 for points in time, the fastest first. */
std::vector<int>
GetOrder(const std::string & file, const Attributes & pixels)
{
  const auto        found = pixels.find("DimensionOrder");
  const std::string text = found == pixels.end() ? std::string() : found->second;
  std::vector<int>  order;
  const std::string names = "ZCT";
  for (std::size_t i = 2; i < text.size(); ++i)
  {
    const auto axis = names.find(text[i]);
    if (axis != std::string::npos && text.find(text[i], i + 1) == std::string::npos)
    {
      order.push_back(static_cast<int>(axis));
    }
  }
  if (text.size() != 5 || text.compare(0, 2, "XY") != 0 || order.size() != 3)
  {
    Fail(file,
         "its OME-XML has DimensionOrder=\"" + text.substr(0, 40) +
           "\"; it must be XY and then Z, C and T in any order");
  }
  return order;
}

OmeXml
ParseOme(const std::string & file, const std::string & description)
{
  OmeParser         parser;
  const std::string why = parser.Parse(description);
  const OmeXml &    xml = parser.xml;
  if (!why.empty())
  {
    Fail(file, "its OME-XML cannot be read: " + why);
  }
  if (!xml.otherFile.empty())
  {
    Fail(file,
         "is a part of an OME-TIFF, which " + xml.otherFile + " describes; images in several files cannot be used");
  }
  if (!xml.isOme || xml.pixels != 1 || xml.images != 1)
  {
    Fail(file, "its OME-XML describes " + std::to_string(xml.pixels) + " images, there must be one");
  }
  if (!xml.modulo.empty())
  {
    Fail(file, "its OME-XML has two axes in one (" + xml.modulo + "), which cannot be used");
  }
  return xml;
}

/** The XML must describe the pages that the file has. */
void
RequirePage(const std::string & file, const OmeXml & xml, const ImageHeader & page)
{
  const std::int64_t x = GetNumber(file, xml.ofPixels, "SizeX", 1, 0);
  const std::int64_t y = GetNumber(file, xml.ofPixels, "SizeY", 1, 0);
  if (x != page.extent[0] || y != page.extent[1])
  {
    Fail(file,
         "its OME-XML describes " + std::to_string(x) + " x " + std::to_string(y) + " pixels, its pages have " +
           std::to_string(page.extent[0]) + " x " + std::to_string(page.extent[1]));
  }
  const auto type = xml.ofPixels.find("Type");
  if (type != xml.ofPixels.end() && type->second != NameOfType(page.kind))
  {
    Fail(file,
         "its OME-XML says Type=\"" + type->second.substr(0, 40) + "\", its pages have " +
           std::string(PixelTypeName(page.kind)));
  }
  for (const std::string & samples : xml.samplesPerPixel)
  {
    if (samples != std::to_string(page.components))
    {
      Fail(file,
           "its OME-XML says SamplesPerPixel=\"" + samples.substr(0, 40) + "\", its pages have " +
             std::to_string(page.components));
    }
  }
}

/** The planes that the XML describes, whose pages are not known yet. */
PlaneOrder
CountPlanes(const std::string & file, const OmeXml & xml, const ImageHeader & page, std::int64_t directories)
{
  PlaneOrder order;
  order.slices = GetNumber(file, xml.ofPixels, "SizeZ", 1, 1);
  const std::int64_t samples = GetNumber(file, xml.ofPixels, "SizeC", 1, 1);
  order.times = GetNumber(file, xml.ofPixels, "SizeT", 1, 1);
  if (samples % page.components != 0)
  {
    Fail(file,
         "its OME-XML says SizeC=\"" + std::to_string(samples) + "\", its pages have " +
           std::to_string(page.components) + " components each");
  }
  order.channels = samples / page.components;
  std::int64_t planes = 1;
  for (const std::int64_t n : { order.slices, order.channels, order.times })
  {
    // Each is no more than the directories before they are multiplied.
    if (n > directories || planes * n > directories)
    {
      Fail(file,
           "its OME-XML describes " + std::to_string(order.slices) + " slices, " + std::to_string(order.channels) +
             " channels and " + std::to_string(order.times) + " points in time, it has " + std::to_string(directories) +
             (directories == 1 ? " page" : " pages"));
    }
    planes *= n;
  }
  order.directories.assign(static_cast<std::size_t>(planes), -1);
  return order;
}

/** Planes that lie in consecutive pages. */
struct PlaneRun
{
  std::int64_t page{ 0 };
  std::int64_t count{ 0 };
  std::int64_t begin{ 0 }; ///< planes before the first, in the file's order
};

/** The planes that a TiffData element describes; `axes` as GetOrder gives them. */
PlaneRun
ReadPlaneRun(const std::string & file, const Attributes & of, const std::vector<int> & axes, const PlaneOrder & order,
             std::int64_t components, std::int64_t directories)
{
  const auto number = [&](const char * name, std::int64_t otherwise) {
    return GetNumber(file, of, name, 0, otherwise);
  };
  const std::int64_t extent[] = { order.slices, order.channels, order.times };
  const auto         planes = static_cast<std::int64_t>(order.directories.size());
  PlaneRun           run;
  run.page = number("IFD", 0);
  const std::int64_t otherwise = of.count("IFD") ? 1 : std::min(directories, planes);
  run.count = number("PlaneCount", number("NumPlanes", otherwise));
  const std::int64_t first[] = { number("FirstZ", 0), number("FirstC", 0), number("FirstT", 0) };
  bool               isInside = first[1] == 0 || components == 1; // OME does not say what FirstC counts for colors.
  for (int i = 2; i >= 0; --i)
  {
    const int axis = axes[static_cast<std::size_t>(i)];
    isInside = isInside && first[axis] < extent[axis];
    run.begin = isInside ? run.begin * extent[axis] + first[axis] : 0;
  }
  if (!isInside || run.count > planes - run.begin || run.page >= directories || run.count > directories - run.page)
  {
    Fail(file,
         "its OME-XML describes " + std::to_string(run.count) + " planes from Z " + std::to_string(first[0]) + ", C " +
           std::to_string(first[1]) + ", T " + std::to_string(first[2]) + " and page " + std::to_string(run.page) +
           " on, which are not in its image or its " + std::to_string(directories) + " pages");
  }
  return run;
}

/** Gives the planes of a run their pages, which no plane may have yet. */
void
PlaceRun(const std::string & file, const PlaneRun & run, const std::vector<int> & axes, PlaneOrder & order,
         std::vector<bool> & isTaken)
{
  const std::int64_t extent[] = { order.slices, order.channels, order.times };
  for (std::int64_t i = 0; i < run.count; ++i)
  {
    std::int64_t rest = run.begin + i;
    std::int64_t at[3]{};
    for (const int axis : axes)
    {
      at[axis] = rest % extent[axis];
      rest /= extent[axis];
    }
    auto & directory = order.directories[static_cast<std::size_t>(at[0] + extent[0] * (at[1] + extent[1] * at[2]))];
    if (directory >= 0 || isTaken[static_cast<std::size_t>(run.page + i)])
    {
      Fail(file,
           "its OME-XML describes a plane twice: page " + std::to_string(run.page + i) + ", Z " +
             std::to_string(at[0]) + ", C " + std::to_string(at[1]) + ", T " + std::to_string(at[2]));
    }
    directory = run.page + i;
    isTaken[static_cast<std::size_t>(run.page + i)] = true;
  }
}

/** Whether the element describes pages of this file. */
bool
IsOfThisFile(const std::string & file, const OmeXml & xml, const TiffData & data)
{
  return !data.hasUuid ||
         (xml.uuid.empty() ? std::filesystem::path(data.fileName).filename() == std::filesystem::path(file).filename()
                           : Trim(data.uuid) == xml.uuid);
}

} // namespace

bool
IsOme(const std::string & description)
{
  // A file that names the schema wants to be OME-TIFF, however its text begins.
  if (description.find("openmicroscopy.org/Schemas/OME") != std::string::npos)
  {
    return true;
  }
  const std::size_t first = description.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string::npos || description[first] != '<')
  {
    return false;
  }
  // The element's own name, whatever its namespace is called; comments may come first.
  return description.find("<OME", first) != std::string::npos || description.find(":OME", first) != std::string::npos;
}

PlaneOrder
ReadOme(const std::string & file, const std::string & description, const ImageHeader & page, std::int64_t directories)
{
  const OmeXml xml = ParseOme(file, description);
  RequirePage(file, xml, page);
  PlaneOrder             order = CountPlanes(file, xml, page, directories);
  const std::vector<int> axes = GetOrder(file, xml.ofPixels);
  std::vector<bool>      isTaken(static_cast<std::size_t>(directories), false);
  // Without any the directories are the planes.
  for (const TiffData & data : xml.data.empty() ? std::vector<TiffData>(1) : xml.data)
  {
    if (!IsOfThisFile(file, xml, data))
    {
      Fail(file,
           "its OME-XML describes pixels of another file" + (data.fileName.empty() ? "" : ", " + data.fileName) +
             "; images in several files cannot be used");
    }
    PlaceRun(
      file, ReadPlaneRun(file, data.attributes, axes, order, page.components, directories), axes, order, isTaken);
  }
  for (std::size_t plane = 0; plane < order.directories.size(); ++plane)
  {
    if (order.directories[plane] < 0)
    {
      Fail(file,
           "its OME-XML does not say where plane " + std::to_string(plane) + " of " +
             std::to_string(order.directories.size()) + " lies");
    }
  }
  const char * const names[] = { "PhysicalSizeX", "PhysicalSizeY", "PhysicalSizeZ" };
  for (int a = 0; a < 3; ++a)
  {
    order.spacing[a] = GetLength(xml.ofPixels, names[a], order.warnings);
  }
  return order;
}

double
GetUnitInMm(const std::string & unit)
{
  struct Unit
  {
    const char * name;
    double       mm;
  };
  // The micro sign, the Greek letter, and as ImageJ writes it.
  static const Unit units[] = {
    { "\xC2\xB5m", 1e-3 }, { "\xCE\xBCm", 1e-3 }, { "um", 1e-3 },         { "\xB5m", 1e-3 }, { "\\u00B5m", 1e-3 },
    { "micron", 1e-3 },    { "microns", 1e-3 },   { "micrometer", 1e-3 }, { "nm", 1e-6 },    { "nanometer", 1e-6 },
    { "pm", 1e-9 },        { "mm", 1 },           { "millimeter", 1 },    { "cm", 10 },      { "centimeter", 10 },
    { "dm", 100 },         { "m", 1e3 },          { "meter", 1e3 },       { "km", 1e6 },     { "\xC3\x85", 1e-7 },
    { "in", 25.4 },        { "inch", 25.4 },      { "inches", 25.4 },     { "ft", 304.8 },   { "thou", 0.0254 }
  };
  for (const Unit & known : units)
  {
    if (unit == known.name)
    {
      return known.mm;
    }
  }
  return 0;
}

std::string
GetValueOfImageJ(const std::string & description, const std::string & key)
{
  const std::size_t at = description.find("\n" + key + "=");
  if (at == std::string::npos)
  {
    return std::string();
  }
  const std::size_t begin = at + key.size() + 2;
  return Trim(description.substr(begin, description.find('\n', begin) - begin));
}

std::int64_t
GetNumberOfImageJ(const std::string & description, const std::string & key)
{
  const std::string text = GetValueOfImageJ(description, key);
  std::int64_t      value = 1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::max<std::int64_t>(value, 1);
}

PlaneOrder
ReadImageJ(const std::string & file, const std::string & description, std::int64_t directories)
{
  PlaneOrder order;
  order.slices = GetNumberOfImageJ(description, "slices");
  order.channels = GetNumberOfImageJ(description, "channels");
  order.times = GetNumberOfImageJ(description, "frames");
  const int several = (order.slices > 1 ? 1 : 0) + (order.channels > 1 ? 1 : 0) + (order.times > 1 ? 1 : 0);
  if (several < 2)
  {
    // Some call the slices of a stack channels, or points in time.
    return PlaneOrder();
  }
  if (order.slices > directories || order.channels > directories / order.slices ||
      order.times > directories / (order.slices * order.channels) ||
      order.slices * order.channels * order.times != directories)
  {
    Fail(file,
         "its description says " + std::to_string(order.slices) + " slices, " + std::to_string(order.channels) +
           " channels and " + std::to_string(order.times) + " points in time, it has " + std::to_string(directories) +
           " pages");
  }
  for (std::int64_t t = 0; t < order.times; ++t)
  {
    for (std::int64_t c = 0; c < order.channels; ++c)
    {
      for (std::int64_t z = 0; z < order.slices; ++z)
      {
        order.directories.push_back(c + order.channels * (z + order.slices * t));
      }
    }
  }
  return order;
}

} // namespace chunkwise::files
