/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileImage_h
#define fileImage_h

#include "chunkwiseError.h"
#include "chunkwiseImageSource.h"

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

/** Images in files: opened as sources and created as sinks of the engine, whatever their format. */
namespace chunkwise::files
{

/** A file that cannot be read or written: one line, which names the file and says why. */
class FileError : public Error
{
public:
  using Error::Error;
};

struct NiftiFields;
struct ZarrOptions;

/** The properties of an image that a file has beside the voxels. */
struct ImageHeader
{
  /** Axes of the file, 2 to 5; those of extent 1 count. */
  int         dimension{ 3 };
  Coordinates extent{ Coordinates::Filled(1) };
  PixelType   kind{ PixelType::UInt8 };
  /** Values of a voxel, in the file side by side. */
  std::int64_t components{ 1 };
  double       spacing[MaxDimension]{ 1, 1, 1, 1, 1 };
  double       origin[MaxDimension]{};
  /** As ITK's matrix in LPS coordinates: column a is the direction of axis a. */
  double direction[MaxDimension][MaxDimension]{ { 1, 0, 0, 0, 0 },
                                                { 0, 1, 0, 0, 0 },
                                                { 0, 0, 1, 0, 0 },
                                                { 0, 0, 0, 1, 0 },
                                                { 0, 0, 0, 0, 1 } };
  /** Text by key, as in ITK's MetaDataDictionary. */
  std::map<std::string, std::string> metadata;
  /** The meaning of the axes, "xyzct" or fewer of these letters, if the file told it; else empty. */
  std::string axes;
  /** The fields that only NIfTI has, of an image that was read from NIfTI. Written again to NIfTI. */
  std::shared_ptr<const NiftiFields> nifti;
};

/** The extent of the values in a file: of voxels with components these are the first axis, and the image's come behind
 * it. */
Coordinates
GetStoredExtent(const ImageHeader & header);

/** An image in a file. */
class FileSource : public ImageSource
{
public:
  const ImageHeader &
  GetHeader() const
  {
    return m_Header;
  }
  Coordinates
  GetExtent() const override
  {
    return GetStoredExtent(m_Header);
  }
  PixelType
  GetKind() const override
  {
    return m_Header.kind;
  }
  /** The header, or the file that was opened, first; then the files of its voxels. */
  const std::vector<std::filesystem::path> &
  GetFiles() const
  {
    return m_Files;
  }
  /** So far, in the file: compressed bytes where it is compressed. */
  std::uint64_t
  GetBytesRead() const
  {
    return m_BytesRead;
  }
  /** Warnings for the user about an image that was read, such as an orientation that was not applied: a sentence each,
   * without the file's name. */
  const std::vector<std::string> &
  GetWarnings() const
  {
    return m_Warnings;
  }
  /** For a source that is read in order: keeps the last `planes` along the last axis with more than one voxel, so that
   * boxes may reach so far back. A box that reaches back further is read from the beginning of the file again. Call it
   * before the first Read; GetAccess then counts the planes. Nothing for other sources. */
  virtual void
  KeepBehind(std::int64_t planes);
  /** For a source that decodes with several threads: uses so few that it holds at most `bytes`, but at least one. Call
   * it before the first Read; GetAccess then counts them. Nothing for other sources. */
  virtual void
  HoldAtMost(std::uint64_t bytes);

protected:
  ImageHeader                        m_Header;
  std::vector<std::filesystem::path> m_Files;
  std::vector<std::string>           m_Warnings;
  std::atomic<std::uint64_t>         m_BytesRead{ 0 };
};

/** An image that is written to a file. */
class FileSink : public ImageSink
{
public:
  Coordinates
  GetExtent() const override
  {
    return GetStoredExtent(m_Header);
  }
  PixelType
  GetKind() const override
  {
    return m_Header.kind;
  }
  /** The parts of the header that the format cannot hold, such as "direction" or "the text of Modality": empty if all
   * is kept. */
  const std::vector<std::string> &
  GetLosses() const
  {
    return m_Losses;
  }
  /** So far, in the file: compressed bytes where it is compressed. */
  std::uint64_t
  GetBytesWritten() const
  {
    return m_BytesWritten;
  }
  /** The part of the image that is to be written: less than all of it if an earlier run wrote the rest
   * (OutputOptions::run). */
  virtual Box
  GetMissing() const
  {
    return Box::FromExtent(this->GetExtent());
  }

protected:
  ImageHeader                m_Header;
  std::vector<std::string>   m_Losses;
  std::atomic<std::uint64_t> m_BytesWritten{ 0 };
};

/** Whether CHUNKWISE_UNTRUSTED is set, to something else than 0: OpenImage then refuses formats whose readers are not
 * fuzzed. */
bool
IsUntrusted();

/** Throws FileError if the file is not there, not complete, or no image that can be read. A folder is a series of DICOM
 * files. */
std::unique_ptr<FileSource>
OpenImage(const std::string & file);

/** The properties that a file of voxels and nothing else, x first, does not have. */
struct RawLayout
{
  ImageHeader   header;
  std::uint64_t offset{ 0 }; ///< bytes before the voxels
  bool          bigEndian{ false };
};

/** Throws FileError unless the voxels are all that follows the offset. */
std::unique_ptr<FileSource>
OpenRawImage(const std::string & file, const RawLayout & layout);

/** How a store of Zarr is made, as parts with commas between them: "0.4" or "0.5" (OME-Zarr), "chunks=XxYxZ",
 * "shards=XxYxZ" or "shards=none", "codec=NAME[:LEVEL]" with zstd, blosc (also blosc-lz4, ...), gzip, zlib, lz4 or
 * none, "pyramid=NAME" with mean, mode, min, max, median or gaussian. Throws FileError, which begins with `name`. */
std::shared_ptr<const ZarrOptions>
ParseZarrOptions(const std::string & name, const std::string & text);

/** The same, without version and pyramid, for CreateImage to add levels to the image of a store that exists, made by
 * `reducer`: its first level is then given to the sink, which does not write it again. Levels that the store has are an
 * error unless it `replaces` them. Throws FileError, which begins with `name`. */
std::shared_ptr<const ZarrOptions>
ParseLevelOptions(const std::string & name, const std::string & text, const std::string & reducer, bool replaces);

struct OutputOptions
{
  /** Compress where the format can; else an error. Names such as x.nii.gz always mean compressed. */
  bool compress{ false };
  /** All files that the inputs of this run use, as GetFiles gives them: never replaced, except a file that holds one
   * whole image and no other, which may be written anew from itself. */
  std::vector<std::filesystem::path> inputFiles;
  /** How a store of Zarr is made; nothing for other formats. */
  std::shared_ptr<const ZarrOptions> zarr;
  /** Memory that a sink with several threads may hold: it uses fewer, but at least one. 0: as it likes. */
  std::uint64_t heldBytes{ 0 };
  /** Only formats whose outputs can be resumed: stores of Zarr. */
  bool resumes{ false };
  /** All that the voxels depend on, by names that users know. Not empty: if the sink is not finished, what it has
   * written stays, and the sink of a later run with the same values has it. One with others throws FileError. Boxes
   * then come in ascending order along the last axis with more than one voxel. */
  std::map<std::string, std::string> run;
};

/** The files that CreateImage writes for an image of this name, there or not: its header, and its voxels if they have a
 * separate file. Symbolic links are followed; throws FileError if one leads to itself. */
std::vector<std::filesystem::path>
GetOutputFiles(const std::string & file, bool compress = false);

/** The checks before any work: throws FileError if the ending is of no format that is written, if the format cannot
 * hold the kind or the dimension, or if the file cannot be put there. */
void
CheckOutput(const std::string & file, const ImageHeader & header, const OutputOptions & options = {});

/** The access of a sink of CreateImage, and the memory that it takes at its end, before there is one. */
ImageAccess
GetOutputAccess(const std::string & file, const ImageHeader & header, const OutputOptions & options = {});

/** Checks as CheckOutput does, reserves the space where the file system can, and opens the file. It is written into a
 * separate folder beside its destination and is moved to it by Finish. */
std::unique_ptr<FileSink>
CreateImage(const std::string & file, const ImageHeader & header, const OutputOptions & options = {});

/** The header of a part of an image: its extent, and as origin the place of its first voxel. */
ImageHeader
GetHeaderOfPart(const ImageHeader & header, const Box & part);

/** The first axis along which two images do not have one spacing, origin and direction, to the tolerance that
 * itk::ImageToImageFilter has, 1e-6 voxels; -1: there is none. */
int
FindAxisThatDiffers(const ImageHeader & first, const ImageHeader & other);

/** Removes what sinks of this process have not finished. Takes no memory and no lock, so that a handler that ends the
 * process can call it. */
void
RemoveUnfinished() noexcept;

/** A file's name without the ending of its format: "scan" of "scan.nii.gz". */
std::string
WithoutEnding(const std::string & file);

/** The endings of formats that are read and written in pieces: ".mha, .mhd and .h5". */
std::string
ListFormatsInPieces();

/** The formats, a line each: what is read and written, in which kinds and dimensions. */
std::string
DescribeFormats();

} // namespace chunkwise::files

#endif
