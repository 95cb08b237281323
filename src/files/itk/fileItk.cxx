/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileItk.h"

#include "fileFormats.h"

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

PixelType
KindOf(const ItkHeader & header, const std::string & file)
{
  const std::uint32_t size = header.componentBytes;
  if (header.isFloat && (size == 4 || size == 8))
  {
    return size == 4 ? PixelType::Float32 : PixelType::Float64;
  }
  if (!header.isFloat && (size == 1 || size == 2 || size == 4 || size == 8))
  {
    const int base = size == 1 ? 0 : size == 2 ? 2 : size == 4 ? 4 : 6;
    return static_cast<PixelType>(base + (header.isSigned ? 1 : 0));
  }
  Fail(file, "has voxels of " + header.componentName + ", which is no type that can be used");
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
#ifdef CHUNKWISE_HAS_ITK
  catch (const itk::ExceptionObject & error)
  {
    why = FirstLine(error.GetDescription());
  }
#endif
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
    // HDF5's exceptions have a separate base class.
    why = "its library failed";
  }
  Fail(file, what + (why.empty() ? std::string() : ": " + why));
}

ImageHeader
MakeImageHeader(const ItkHeader & said, const std::string & file)
{
  ImageHeader header;
  if (said.isComplex)
  {
    Fail(file, "has complex voxels, which cannot be used");
  }
  header.components = said.components;
  header.kind = KindOf(said, file);
  const std::size_t dimension = said.size.size();
  if (said.spacing.size() != dimension || said.origin.size() != dimension ||
      said.direction.size() != dimension * dimension)
  {
    Fail(file, "has a header whose parts do not fit each other");
  }
  // Axes beyond the fifth may be there if they have one voxel.
  for (std::size_t a = MaxDimension; a < dimension; ++a)
  {
    if (said.size[a] > 1)
    {
      Fail(file, "has " + std::to_string(dimension) + " dimensions, there may be 2 to 5");
    }
  }
  header.dimension = static_cast<int>(std::min<std::size_t>(dimension, MaxDimension));
  if (header.dimension < 2)
  {
    Fail(file, "has " + std::to_string(dimension) + " dimension, there may be 2 to 5");
  }
  for (int a = 0; a < header.dimension; ++a)
  {
    const auto axis = static_cast<std::size_t>(a);
    header.extent[a] = said.size[axis];
    header.spacing[a] = said.spacing[axis];
    header.origin[a] = said.origin[axis];
    for (int row = 0; row < header.dimension; ++row)
    {
      header.direction[row][a] = said.direction[axis * dimension + static_cast<std::size_t>(row)];
    }
  }
  header.metadata.insert(said.text.begin(), said.text.end());
  CountVoxels(file, header);
  NormalizeGeometry(file, header);
  return header;
}

#ifdef CHUNKWISE_HAS_ITK
ImageHeader
ReadHeaderWithItk(itk::ImageIOBase & io, const std::string & file)
{
  ItkHeader header;
  CallItk(file, "cannot be read", [&] {
    io.SetFileName(file);
    io.ReadImageInformation();
    header = DescribeItkHeader(io);
  });
  return MakeImageHeader(header, file);
}
#endif

ItkHeader
MakeItkHeader(const ImageHeader & header)
{
  ItkHeader said;
  said.componentBytes = static_cast<std::uint32_t>(PixelSize(header.kind));
  DispatchPixelType(header.kind, [&](auto pixel) {
    said.isFloat = std::is_floating_point_v<decltype(pixel)>;
    said.isSigned = std::is_signed_v<decltype(pixel)>;
  });
  said.components = header.components;
  for (int a = 0; a < header.dimension; ++a)
  {
    said.size.push_back(header.extent[a]);
    said.spacing.push_back(header.spacing[a]);
    said.origin.push_back(header.origin[a]);
    for (int row = 0; row < header.dimension; ++row)
    {
      said.direction.push_back(header.direction[row][a]);
    }
  }
  said.text.assign(header.metadata.begin(), header.metadata.end());
  return said;
}

} // namespace chunkwise::files
