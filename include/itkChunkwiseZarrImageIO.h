/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseZarrImageIO_h
#define itkChunkwiseZarrImageIO_h

#include "itkChunkwiseMacro.h"
#include "itkImageIOBase.h"

#include <memory>

namespace itk
{
/** \class ChunkwiseZarrImageIO
 * \brief Lets itk::ImageFileReader and itk::ImageFileWriter read and write stores of OME-Zarr and arrays of Zarr.
 *
 * \code
 * itk::ChunkwiseZarrImageIO::RegisterFactory();
 * const auto image = itk::ReadImage<ImageType>("cells.ome.zarr/1");
 * \endcode
 *
 * It reads versions 2 and 3, shards too, level 0 of OME-Zarr or the level that the path names. Channels are components
 * of pixels, time is the fourth axis. Spacing and origin are in mm and seconds, from the store's scale, translation and
 * units; the direction is the identity. Text is the store's "omero" alone, under this key.
 *
 * \par Streaming
 * A reader with requested regions decodes only the chunks that they touch, with several threads. Writers write an image
 * at once, as OME-Zarr 0.5 unless ZarrOptions says something else; the store appears under its name when it is
 * complete.
 *
 * \par Errors
 * itk::ExceptionObject for damaged stores, with the file of the chunk or metadata.
 *
 * It lies in the library Chunkwise::IO.
 *
 * \sa ChunkwiseFileToFile
 * \ingroup Chunkwise
 */
class ChunkwiseZarrImageIO : public ImageIOBase
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseZarrImageIO);

  using Self = ChunkwiseZarrImageIO;
  using Superclass = ImageIOBase;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ChunkwiseZarrImageIO);

  /** Lets ITK find the class for names of stores. */
  static void
  RegisterFactory();

  /** How a store is written, as the program's --zarr: "0.4,chunks=64x64x64,codec=blosc-lz4". Default: empty. */
  itkSetStringMacro(ZarrOptions);
  itkGetStringMacro(ZarrOptions);

  bool
  CanReadFile(const char * name) override;
  bool
  CanStreamRead() override
  {
    return true;
  }
  void
  ReadImageInformation() override;
  void
  Read(void * buffer) override;
  ImageIORegion
  GenerateStreamableReadRegionFromRequestedRegion(const ImageIORegion & requested) const override;

  bool
  CanWriteFile(const char * name) override;
  void
  WriteImageInformation() override
  {}
  void
  Write(const void * buffer) override;

protected:
  ChunkwiseZarrImageIO();
  ~ChunkwiseZarrImageIO() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  struct Source;
  std::unique_ptr<Source> m_Source;
  std::string             m_ZarrOptions;
};
} // namespace itk

#endif
