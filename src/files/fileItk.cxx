/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileItk.h"

#include "fileFormats.h"

#include "itkMetaDataObject.h"

#include <fcntl.h>
#include <mutex>
#include <unistd.h>

namespace chunkwise::files
{

namespace
{

/** The standard error leads nowhere while an object of it lives. */
class Quiet
{
public:
  Quiet()
    : m_Kept(::dup(STDERR_FILENO))
  {
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (m_Kept >= 0 && nowhere >= 0)
    {
      std::fflush(stderr);
      ::dup2(nowhere, STDERR_FILENO);
    }
    if (nowhere >= 0)
    {
      ::close(nowhere);
    }
  }
  ~Quiet()
  {
    if (m_Kept >= 0)
    {
      std::fflush(stderr);
      ::dup2(m_Kept, STDERR_FILENO);
      ::close(m_Kept);
    }
  }
  Quiet(const Quiet &) = delete;
  Quiet &
  operator=(const Quiet &) = delete;

private:
  int m_Kept;
};

std::mutex itkMutex;

/** The line of an exception's description that says something. */
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

PixelKind
KindOf(const itk::ImageIOBase & io, const std::string & file)
{
  using Component = itk::IOComponentEnum;
  const auto integer = [](std::size_t size, bool isSigned) {
    const int base = size == 1 ? 0 : size == 2 ? 2 : size == 4 ? 4 : 6;
    return static_cast<PixelKind>(base + (isSigned ? 1 : 0));
  };
  switch (io.GetComponentType())
  {
    case Component::UCHAR:
    case Component::USHORT:
    case Component::UINT:
    case Component::ULONG:
    case Component::ULONGLONG:
      return integer(io.GetComponentSize(), false);
    case Component::CHAR:
    case Component::SHORT:
    case Component::INT:
    case Component::LONG:
    case Component::LONGLONG:
      return integer(io.GetComponentSize(), true);
    case Component::FLOAT:
      return PixelKind::Float32;
    case Component::DOUBLE:
      return PixelKind::Float64;
    default:
      Fail(file,
           "has voxels of " + itk::ImageIOBase::GetComponentTypeAsString(io.GetComponentType()) +
             ", which is no type that can be used");
  }
}

} // namespace

void
CallItk(const std::string & file, const std::string & what, const std::function<void()> & call)
{
  const std::lock_guard<std::mutex> lock(itkMutex);
  std::string                       why;
  try
  {
    const Quiet quiet;
    call();
    return;
  }
  catch (const FileError &)
  {
    throw;
  }
  catch (const itk::ExceptionObject & error)
  {
    why = FirstLine(error.GetDescription());
  }
  catch (const std::bad_alloc &)
  {
    throw;
  }
  catch (const std::exception & error)
  {
    why = FirstLine(error.what());
  }
  catch (...)
  {
    // HDF5's exceptions are of a class of their own.
    why = "its library failed";
  }
  Fail(file, what + (why.empty() ? std::string() : ": " + why));
}

ImageHeader
ReadHeaderWithItk(itk::ImageIOBase & io, const std::string & file)
{
  ImageHeader header;
  CallItk(file, "cannot be read", [&] {
    io.SetFileName(file);
    io.ReadImageInformation();
    using Pixel = itk::IOPixelEnum;
    const unsigned int components = io.GetNumberOfComponents();
    const Pixel        pixel = io.GetPixelType();
    if (pixel == Pixel::COMPLEX)
    {
      Fail(file, "has complex voxels, which cannot be used");
    }
    header.components = components;
    header.kind = KindOf(io, file);
    const auto dimension = static_cast<int>(io.GetNumberOfDimensions());
    // Axes beyond the fifth may be there if they have one voxel.
    for (int a = MaxDimension; a < dimension; ++a)
    {
      if (io.GetDimensions(static_cast<unsigned int>(a)) > 1)
      {
        Fail(file, "has " + std::to_string(dimension) + " dimensions, there may be 2 to 5");
      }
    }
    header.dimension = std::min(dimension, MaxDimension);
    if (header.dimension < 2)
    {
      Fail(file, "has " + std::to_string(dimension) + " dimension, there may be 2 to 5");
    }
    for (int a = 0; a < header.dimension; ++a)
    {
      const auto axis = static_cast<unsigned int>(a);
      header.extent[a] = static_cast<std::int64_t>(io.GetDimensions(axis));
      header.spacing[a] = io.GetSpacing(axis);
      header.origin[a] = io.GetOrigin(axis);
      const std::vector<double> direction = io.GetDirection(axis);
      for (int row = 0; row < header.dimension; ++row)
      {
        header.direction[row][a] = direction[static_cast<std::size_t>(row)];
      }
    }
    const itk::MetaDataDictionary & dictionary = io.GetMetaDataDictionary();
    for (const std::string & key : dictionary.GetKeys())
    {
      std::string text;
      // Keys that ITK sets itself say nothing that the rest of the header does not.
      if (key.compare(0, 4, "ITK_") != 0 && itk::ExposeMetaData<std::string>(dictionary, key, text))
      {
        header.metadata[key] = text;
      }
    }
  });
  CountVoxels(file, header);
  NormalizeGeometry(file, header);
  return header;
}

void
SetHeaderOfItk(itk::ImageIOBase & io, const ImageHeader & header)
{
  const auto dimension = static_cast<unsigned int>(header.dimension);
  io.SetNumberOfDimensions(dimension);
  itk::ImageIORegion region(dimension);
  for (unsigned int a = 0; a < dimension; ++a)
  {
    const auto axis = static_cast<int>(a);
    io.SetDimensions(a, static_cast<itk::SizeValueType>(header.extent[axis]));
    io.SetSpacing(a, header.spacing[axis]);
    io.SetOrigin(a, header.origin[axis]);
    std::vector<double> direction(dimension);
    for (unsigned int row = 0; row < dimension; ++row)
    {
      direction[row] = header.direction[row][a];
    }
    io.SetDirection(a, direction);
    region.SetIndex(a, 0);
    region.SetSize(a, static_cast<itk::SizeValueType>(header.extent[axis]));
  }
  io.SetIORegion(region);
  DispatchPixelKind(header.kind,
                    [&](auto pixel) { io.SetComponentType(itk::ImageIOBase::MapPixelType<decltype(pixel)>::CType); });
  io.SetPixelType(header.components == 1   ? itk::IOPixelEnum::SCALAR
                  : header.components == 3 ? itk::IOPixelEnum::RGB
                  : header.components == 4 ? itk::IOPixelEnum::RGBA
                                           : itk::IOPixelEnum::VECTOR);
  io.SetNumberOfComponents(static_cast<unsigned int>(header.components));
  for (const auto & [key, text] : header.metadata)
  {
    itk::EncapsulateMetaData<std::string>(io.GetMetaDataDictionary(), key, text);
  }
}

} // namespace chunkwise::files
