/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileFormats_h
#define fileFormats_h

#include "fileVoxelFile.h"

#include <limits>

namespace chunkwise::files
{

/** The fields of a header that a format keeps. */
enum Keeps : unsigned
{
  KeepsNothing = 0,
  KeepsSpacing = 1,
  KeepsOrigin = 2,
  KeepsDirection = 4,
  KeepsText = 8,
  KeepsAll = 15,
  /** Voxels change by what is done to make the file small. */
  LosesVoxels = 16
};

/** ASCII letters in lower case. */
std::string
Lower(std::string text);

constexpr unsigned
KindBit(PixelType kind)
{
  return 1u << static_cast<unsigned>(kind);
}

constexpr unsigned AllKinds = (1u << NumberOfPixelTypes) - 1;

/** One row of the table of formats. */
struct Format
{
  const char * name;
  /** With their dots, in lower case. */
  std::vector<std::string> endings;
  /** Returns the place of the voxels from the header; null if a separate reader opens the file. */
  VoxelPlace (*locate)(const std::string & file);
  std::unique_ptr<FileSource> (*open)(const std::string & file);
  /** Makes the layout of a file, if this library writes the format itself; null where ITK does, or nobody. `data` names
   * the voxels' own file. */
  VoxelLayout (*layout)(const ImageHeader & header, const std::string & file, const std::string & data, bool compress);
  /** Written by this class of ITK. */
  bool isWrittenByItk;
  /** The pixel types that can be written: none if no type can. */
  unsigned kinds;
  int      minDimension;
  int      maxDimension;
  unsigned keeps;
  /** Ending of the voxels' own file, empty where there is none; and compressed, empty where it cannot be. */
  std::string  dataEnding;
  std::string  compressedDataEnding;
  bool         canCompress;
  const char * remark;
  /** Numbers of components that it can be written with beside one: bit n for n of them, up to 31 for this many and
   * more.
   */
  unsigned components{ 0 };
  /** fuzz/ has a target for the reader, so that files of unknown origin may be given to it. */
  bool isFuzzed{ false };
  /** Makes the sink, if the image is a folder of files that this library writes. */
  std::unique_ptr<FileSink> (*create)(const ImageHeader & header, const struct Destination & destination,
                                      const OutputOptions & options, std::vector<std::string> losses){ nullptr };
};

constexpr unsigned AnyComponents = ~0u;
/** RGB, and with alpha. */
constexpr unsigned Colors = 1u << 3 | 1u << 4;

const std::vector<Format> &
GetFormats();

/** The format of a file's ending, in upper or lower case; null if there is none. */
const Format *
FindFormat(const std::string & file);

/** The one format of ITK's that is read and written in pieces. */
bool
IsHdf5(const Format & format);

bool
HasEnding(const std::string & file, const std::string & ending);

// The readers and writers of the rows, each in a separate file.
VoxelPlace
LocateMetaImage(const std::string & file);
VoxelLayout
LayOutMetaImage(const ImageHeader & header, const std::string & file, const std::string & data, bool compress);
VoxelPlace
LocateNrrd(const std::string & file);
VoxelLayout
LayOutNrrd(const ImageHeader & header, const std::string & file, const std::string & data, bool compress);
VoxelPlace
LocateNifti(const std::string & file);
VoxelLayout
LayOutNifti(const ImageHeader & header, const std::string & file, const std::string & data, bool compress);
VoxelPlace
LocateMrc(const std::string & file);
VoxelLayout
LayOutMrc(const ImageHeader & header, const std::string & file, const std::string & data, bool compress);
VoxelPlace
LocateVtk(const std::string & file);
VoxelLayout
LayOutVtk(const ImageHeader & header, const std::string & file, const std::string & data, bool compress);
VoxelPlace
LocateGipl(const std::string & file);
std::unique_ptr<FileSource>
OpenTiff(const std::string & file);
VoxelLayout
LayOutTiff(const ImageHeader & header, const std::string & file, const std::string & data, bool compress);
std::unique_ptr<FileSource>
OpenHdf5(const std::string & file);
std::unique_ptr<FileSource>
OpenPng(const std::string & file);
std::unique_ptr<FileSource>
OpenJpeg(const std::string & file);
std::unique_ptr<FileSource>
OpenBmp(const std::string & file);
std::unique_ptr<FileSource>
OpenDicom(const std::string & file);
std::unique_ptr<FileSink>
CreateWithItk(const Format & format, const ImageHeader & header, const struct Destination & destination, bool compress,
              std::vector<std::string> losses);

/** Writes plain voxels at positions, or a compressed stream in order. */
std::unique_ptr<FileSink>
CreateVoxels(const ImageHeader & header, const struct Destination & destination, VoxelLayout layout);

/** Appends text, or the bytes of a number in the machine's order. */
template <typename T>
void
Append(std::string & bytes, T value)
{
  bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

/** As few digits as give the same double again. */
std::string
Shortest(double value);

/** A header of text, line by line. */
class LineReader
{
public:
  /** The most bytes of a line, and of a header: texts of other programs are some kilobytes. */
  static constexpr std::uint64_t MostBytesOfLine = std::uint64_t{ 1 } << 20;
  static constexpr std::uint64_t MostBytes = std::uint64_t{ 4 } << 20;

  explicit LineReader(const Descriptor & file, std::uint64_t offset = 0, std::uint64_t mostBytes = MostBytes)
    : m_File(file)
    , m_Offset(offset)
    , m_MostBytes(mostBytes)
    , m_BlockAt(offset)
  {}
  /** False at the end of the file. Without the end of the line. */
  bool
  Next(std::string & line);
  /** The place in the file after the last line. */
  std::uint64_t
  GetOffset() const
  {
    return m_Offset;
  }
  /** From here to the end of the file. */
  std::uint64_t
  GetBytesLeft() const;
  /** Goes on behind so many bytes, which are no header's, or at the end of the file. */
  void
  Skip(std::uint64_t bytes);
  /** Goes on behind so many words between white space. Throws FileError if there are fewer. */
  void
  SkipWords(std::int64_t count);
  /** The next bytes, without going on: fewer at the end of the file. */
  std::size_t
  Peek(void * bytes, std::size_t count) const
  {
    return m_File.ReadSome(bytes, count, m_Offset);
  }

private:
  const Descriptor & m_File;
  std::uint64_t      m_Offset;
  std::uint64_t      m_MostBytes;
  /** Bytes of lines so far. */
  std::uint64_t m_Read{ 0 };
  /** The part of the file that begins at m_BlockAt. */
  std::string   m_Block;
  std::uint64_t m_BlockAt;
};

/** Without white space at both ends. */
std::string
Trim(const std::string & text);

/** The numbers of a header's field. They throw FileError unless `text` begins with `count` numbers that are finite, or
 * integers from `least` to `most`. */
std::vector<double>
ParseNumbers(const std::string & file, const std::string & field, const std::string & text, std::size_t count);
std::vector<std::int64_t>
ParseIntegers(const std::string & file, const std::string & field, const std::string & text, std::size_t count,
              std::int64_t least = std::numeric_limits<std::int64_t>::min(),
              std::int64_t most = std::numeric_limits<std::int64_t>::max());
std::int64_t
ParseInteger(const std::string & file, const std::string & field, const std::string & text,
             std::int64_t least = std::numeric_limits<std::int64_t>::min(),
             std::int64_t most = std::numeric_limits<std::int64_t>::max());

/** The one file that a header names for its voxels, beside the header. Throws FileError where the name stands for
 * several: "LIST", or a pattern and the numbers that it takes, such as "slice%03d.raw 1 20 1". */
std::filesystem::path
FindDataFile(const std::string & header, const std::string & name);

/** The name of a voxels' file for a text header: readers take a name that begins with a space or "LIST", or that has a
 * colon, for something else. Throws FileError if no header can hold it. */
std::string
NameOfDataFile(const std::string & shown, const std::string & name);

/** Spacings become positive, and axes with a negative one run the other way, as itk::ImageFileReader has it. Throws
 * FileError if a number of the geometry is not finite, or too large for products, or if an axis has no direction. */
void
NormalizeGeometry(const std::string & file, ImageHeader & header);

} // namespace chunkwise::files

#endif
