/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileItkHeader.h"

#ifdef CHUNKWISE_HAS_ITK
#  include "itkMetaDataObject.h"
#endif

namespace chunkwise::files
{

#ifdef CHUNKWISE_HAS_ITK
ItkHeader
DescribeItkHeader(const itk::ImageIOBase & io)
{
  using Component = itk::IOComponentEnum;
  ItkHeader header;
  header.componentName = itk::ImageIOBase::GetComponentTypeAsString(io.GetComponentType());
  switch (io.GetComponentType())
  {
    case Component::CHAR:
    case Component::SHORT:
    case Component::INT:
    case Component::LONG:
    case Component::LONGLONG:
      header.isSigned = true;
      [[fallthrough]];
    case Component::UCHAR:
    case Component::USHORT:
    case Component::UINT:
    case Component::ULONG:
    case Component::ULONGLONG:
      header.componentBytes = static_cast<std::uint32_t>(io.GetComponentSize());
      break;
    case Component::FLOAT:
    case Component::DOUBLE:
      header.isFloat = true;
      header.componentBytes = static_cast<std::uint32_t>(io.GetComponentSize());
      break;
    default:
      break;
  }
  header.isComplex = io.GetPixelType() == itk::IOPixelEnum::COMPLEX;
  header.components = io.GetNumberOfComponents();
  const unsigned int dimension = io.GetNumberOfDimensions();
  for (unsigned int a = 0; a < dimension; ++a)
  {
    header.size.push_back(static_cast<std::int64_t>(io.GetDimensions(a)));
    header.spacing.push_back(io.GetSpacing(a));
    header.origin.push_back(io.GetOrigin(a));
    std::vector<double> column = io.GetDirection(a);
    column.resize(dimension);
    header.direction.insert(header.direction.end(), column.begin(), column.end());
  }
  const itk::MetaDataDictionary & dictionary = io.GetMetaDataDictionary();
  for (const std::string & key : dictionary.GetKeys())
  {
    std::string text;
    // Keys that ITK sets itself say nothing that the rest of the header does not.
    if (key.compare(0, 4, "ITK_") != 0 && itk::ExposeMetaData<std::string>(dictionary, key, text))
    {
      header.text.emplace_back(key, text);
    }
  }
  return header;
}

void
ApplyItkHeader(const ItkHeader & header, itk::ImageIOBase & io)
{
  using Component = itk::IOComponentEnum;
  const auto dimension = static_cast<unsigned int>(header.size.size());
  io.SetNumberOfDimensions(dimension);
  itk::ImageIORegion region(dimension);
  for (unsigned int a = 0; a < dimension; ++a)
  {
    io.SetDimensions(a, static_cast<itk::SizeValueType>(header.size[a]));
    io.SetSpacing(a, header.spacing.at(a));
    io.SetOrigin(a, header.origin.at(a));
    std::vector<double> column(dimension);
    for (unsigned int row = 0; row < dimension; ++row)
    {
      column[row] = header.direction.at(a * dimension + row);
    }
    io.SetDirection(a, column);
    region.SetIndex(a, 0);
    region.SetSize(a, static_cast<itk::SizeValueType>(header.size[a]));
  }
  io.SetIORegion(region);
  const bool isLong = sizeof(long) == 8;
  switch (header.componentBytes)
  {
    case 1:
      io.SetComponentType(header.isSigned ? Component::CHAR : Component::UCHAR);
      break;
    case 2:
      io.SetComponentType(header.isSigned ? Component::SHORT : Component::USHORT);
      break;
    case 4:
      io.SetComponentType(header.isFloat ? Component::FLOAT : header.isSigned ? Component::INT : Component::UINT);
      break;
    default:
      io.SetComponentType(header.isFloat    ? Component::DOUBLE
                          : header.isSigned ? (isLong ? Component::LONG : Component::LONGLONG)
                                            : (isLong ? Component::ULONG : Component::ULONGLONG));
  }
  io.SetPixelType(header.components == 1   ? itk::IOPixelEnum::SCALAR
                  : header.components == 3 ? itk::IOPixelEnum::RGB
                  : header.components == 4 ? itk::IOPixelEnum::RGBA
                                           : itk::IOPixelEnum::VECTOR);
  io.SetNumberOfComponents(static_cast<unsigned int>(header.components));
  for (const auto & [key, text] : header.text)
  {
    itk::EncapsulateMetaData<std::string>(io.GetMetaDataDictionary(), key, text);
  }
}
#endif

void
PutItkHeader(const ItkHeader & header, formats::MessageWriter & message)
{
  message.PutText(header.componentName);
  message.Put(header.componentBytes);
  message.Put<std::uint8_t>(header.isFloat);
  message.Put<std::uint8_t>(header.isSigned);
  message.Put<std::uint8_t>(header.isComplex);
  message.Put(header.components);
  message.PutList(header.size);
  message.PutList(header.spacing);
  message.PutList(header.origin);
  message.PutList(header.direction);
  message.Put<std::uint64_t>(header.text.size());
  for (const auto & [key, text] : header.text)
  {
    message.PutText(key);
    message.PutText(text);
  }
}

ItkHeader
GetItkHeader(formats::MessageReader & message)
{
  ItkHeader header;
  header.componentName = message.GetText();
  header.componentBytes = message.Get<std::uint32_t>();
  header.isFloat = message.GetFlag();
  header.isSigned = message.GetFlag();
  header.isComplex = message.GetFlag();
  header.components = message.Get<std::int64_t>();
  header.size = message.GetList<std::int64_t>();
  header.spacing = message.GetList<double>();
  header.origin = message.GetList<double>();
  header.direction = message.GetList<double>();
  for (auto count = message.Get<std::uint64_t>(); count > 0; --count)
  {
    std::string key = message.GetText();
    header.text.emplace_back(std::move(key), message.GetText());
  }
  return header;
}

std::string
FirstLine(const std::string & text)
{
  std::string line;
  for (const char c : text)
  {
    if (c == '\n' && !line.empty())
    {
      // "ITK ERROR: NiftiImageIO(0x55...): why" begins with what no user needs.
      const auto address = line.find("): ");
      if (line.find("ERROR") == std::string::npos || (address != std::string::npos && address + 3 < line.size()))
      {
        break;
      }
      line.clear();
    }
    else if (c != '\n')
    {
      line += c;
    }
  }
  const auto address = line.find("): ");
  line = address == std::string::npos ? line : line.substr(address + 3);
  // A line that ends so is followed by the reason: NRRD's library has that in its last line, "[nrrd] function: why".
  const auto last = text.find_last_not_of(" \n");
  if (!line.empty() && line.back() == ':' && last != std::string::npos)
  {
    std::string       why = text.substr(0, last + 1);
    const std::size_t begin = why.rfind('\n');
    why = begin == std::string::npos ? why : why.substr(begin + 1);
    const auto name = why.compare(0, 1, "[") == 0 ? why.find(": ") : std::string::npos;
    return name == std::string::npos ? why : why.substr(name + 2);
  }
  return line;
}

} // namespace chunkwise::files
