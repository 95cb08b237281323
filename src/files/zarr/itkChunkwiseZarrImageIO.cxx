/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseZarrImageIO.h"

#include "fileFormats.h"
#include "fileItk.h"
#include "fileZarr.h"
#include "fileZarrLabels.h"
#include "fileZarrMetadata.h"

#include "itkCreateObjectFunction.h"
#include "itkObjectFactoryBase.h"
#include "itkVersion.h"

namespace itk
{

namespace
{

using chunkwise::files::FileSource;

class ZarrImageIOFactory : public ObjectFactoryBase
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ZarrImageIOFactory);

  using Self = ZarrImageIOFactory;
  using Superclass = ObjectFactoryBase;
  using Pointer = SmartPointer<Self>;

  itkFactorylessNewMacro(Self);

  const char *
  GetITKSourceVersion() const override
  {
    return ITK_SOURCE_VERSION;
  }
  const char *
  GetDescription() const override
  {
    return "Zarr ImageIO of Chunkwise";
  }

protected:
  ZarrImageIOFactory()
  {
    this->RegisterOverride("itkImageIOBase",
                           "itkChunkwiseZarrImageIO",
                           "Zarr ImageIO of Chunkwise",
                           true,
                           CreateObjectFunction<ChunkwiseZarrImageIO>::New());
  }
};

} // namespace

struct ChunkwiseZarrImageIO::Source
{
  std::string                 file;
  std::unique_ptr<FileSource> image;
};

ChunkwiseZarrImageIO::ChunkwiseZarrImageIO()
  : m_Source(std::make_unique<Source>())
{
  this->AddSupportedReadExtension(".zarr");
  this->AddSupportedWriteExtension(".zarr");
}

ChunkwiseZarrImageIO::~ChunkwiseZarrImageIO() = default;

void
ChunkwiseZarrImageIO::RegisterFactory()
{
  ObjectFactoryBase::RegisterFactory(ZarrImageIOFactory::New(), ObjectFactoryEnums::InsertionPosition::INSERT_AT_FRONT);
}

bool
ChunkwiseZarrImageIO::CanReadFile(const char * name)
{
  try
  {
    return chunkwise::files::IsZarr(name);
  }
  catch (const chunkwise::files::FileError &)
  {
    // A zip archive that is damaged, or none.
    return false;
  }
}

bool
ChunkwiseZarrImageIO::CanWriteFile(const char * name)
{
  const chunkwise::files::Format * const format = chunkwise::files::FindFormat(name);
  return format ? format->create == chunkwise::files::CreateZarr : !chunkwise::files::FindStoreOfLabels(name).empty();
}

void
ChunkwiseZarrImageIO::ReadImageInformation()
{
  try
  {
    m_Source->file = m_FileName;
    m_Source->image = chunkwise::files::OpenImage(m_FileName);
    chunkwise::files::ApplyItkHeader(chunkwise::files::MakeItkHeader(m_Source->image->GetHeader()), *this);
  }
  catch (const chunkwise::Error & error)
  {
    itkExceptionMacro(<< error.what());
  }
}

ImageIORegion
ChunkwiseZarrImageIO::GenerateStreamableReadRegionFromRequestedRegion(const ImageIORegion & requested) const
{
  return this->GetUseStreamedReading() ? requested
                                       : Superclass::GenerateStreamableReadRegionFromRequestedRegion(requested);
}

void
ChunkwiseZarrImageIO::Read(void * buffer)
{
  if (!m_Source->image || m_Source->file != m_FileName)
  {
    this->ReadImageInformation();
  }
  FileSource &          image = *m_Source->image;
  const int             first = image.GetHeader().components > 1 ? 1 : 0;
  chunkwise::Box        box = chunkwise::Box::FromExtent(image.GetExtent());
  const ImageIORegion & region = this->GetIORegion();
  for (int a = 0; a < image.GetHeader().dimension; ++a)
  {
    const auto axis = static_cast<unsigned int>(a);
    // Axes that the caller's image does not have are read at their beginning.
    const bool isThere = axis < region.GetImageDimension();
    box.lower[a + first] = isThere ? static_cast<std::int64_t>(region.GetIndex(axis)) : 0;
    box.upper[a + first] = box.lower[a + first] + (isThere ? static_cast<std::int64_t>(region.GetSize(axis)) : 1);
  }
  try
  {
    image.Read(box, chunkwise::DenseView(buffer, image.GetKind(), box));
  }
  catch (const chunkwise::Error & error)
  {
    itkExceptionMacro(<< error.what());
  }
}

void
ChunkwiseZarrImageIO::Write(const void * buffer)
{
  try
  {
    const auto header = chunkwise::files::MakeImageHeader(chunkwise::files::DescribeItkHeader(*this), m_FileName);
    chunkwise::files::OutputOptions options;
    options.zarr = m_ZarrOptions.empty() ? nullptr : chunkwise::files::ParseZarrOptions("ZarrOptions", m_ZarrOptions);
    const auto           sink = chunkwise::files::CreateImage(m_FileName, header, options);
    const chunkwise::Box box = chunkwise::Box::FromExtent(sink->GetExtent());
    sink->Write(box, chunkwise::DenseView(const_cast<void *>(buffer), header.kind, box));
    sink->Finish();
    std::string losses;
    for (const std::string & loss : sink->GetLosses())
    {
      losses += (losses.empty() ? "" : ", ") + loss;
    }
    if (!losses.empty())
    {
      itkWarningMacro(<< m_FileName << " does not store: " << losses);
    }
  }
  catch (const chunkwise::Error & error)
  {
    itkExceptionMacro(<< error.what());
  }
}

void
ChunkwiseZarrImageIO::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "ZarrOptions: " << m_ZarrOptions << std::endl;
}

} // namespace itk
