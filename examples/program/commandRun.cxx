/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandInputFile.h"
#include "commandRun.h"

#include "itkImageIOFactory.h"

#include "chunkwiseGeometry.h"

namespace command
{

namespace
{

chunkwise::PixelKind
KindOf(const itk::ImageIOBase & io, const std::string & file)
{
  using Component = itk::IOComponentEnum;
  switch (io.GetComponentType())
  {
    case Component::UCHAR:
      return chunkwise::PixelKindOf<unsigned char>();
    case Component::CHAR:
      return chunkwise::PixelKindOf<signed char>();
    case Component::USHORT:
      return chunkwise::PixelKindOf<unsigned short>();
    case Component::SHORT:
      return chunkwise::PixelKindOf<short>();
    case Component::UINT:
      return chunkwise::PixelKindOf<unsigned int>();
    case Component::INT:
      return chunkwise::PixelKindOf<int>();
    case Component::ULONG:
      return chunkwise::PixelKindOf<unsigned long>();
    case Component::LONG:
      return chunkwise::PixelKindOf<long>();
    case Component::ULONGLONG:
      return chunkwise::PixelKindOf<unsigned long long>();
    case Component::LONGLONG:
      return chunkwise::PixelKindOf<long long>();
    case Component::FLOAT:
      return chunkwise::PixelKindOf<float>();
    case Component::DOUBLE:
      return chunkwise::PixelKindOf<double>();
    default:
      throw WorkError("IN: " + file + " has voxels of a type that cannot be processed: " +
                      itk::ImageIOBase::GetComponentTypeAsString(io.GetComponentType()));
  }
}

} // namespace

void
Run(const Arguments & arguments)
{
  const auto io =
    itk::ImageIOFactory::CreateImageIO(arguments.input.c_str(), itk::ImageIOFactory::IOFileModeEnum::ReadMode);
  if (!io)
  {
    throw WorkError("IN: " + arguments.input + " is in no format that can be read");
  }
  io->SetFileName(arguments.input);
  io->ReadImageInformation();
  if (io->GetNumberOfComponents() != 1)
  {
    throw WorkError("IN: " + arguments.input + " has " + std::to_string(io->GetNumberOfComponents()) +
                    " components a voxel; only images with one can be processed");
  }
  const chunkwise::PixelKind kind = KindOf(*io, arguments.input);
  CheckThatDataIsComplete(arguments.input, static_cast<std::uint64_t>(io->GetImageSizeInBytes()));
  switch (io->GetNumberOfDimensions())
  {
    case 2:
      return RunOfDimension<2>(arguments, kind);
    case 3:
      return RunOfDimension<3>(arguments, kind);
    case 4:
      return RunOfDimension<4>(arguments, kind);
    case 5:
      return RunOfDimension<5>(arguments, kind);
    default:
      throw WorkError("IN: " + arguments.input + " has " + std::to_string(io->GetNumberOfDimensions()) +
                      " dimensions; two to five can be processed");
  }
}

} // namespace command
