/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileVoxelFile_h
#define fileVoxelFile_h

#include "fileStream.h"

namespace chunkwise::files
{

/** The place of the voxels that a reader of a header found: one dense image. */
struct VoxelPlace
{
  ImageHeader                        header;
  std::vector<std::filesystem::path> files;
  /** The one of `files` with the voxels, and where they begin in it. */
  std::filesystem::path data;
  std::uint64_t         offset{ 0 };
  /** Bytes of a compressed stream before the voxels. */
  std::uint64_t skipped{ 0 };
  Codec         codec{ Codec::Raw };
  VoxelCoding   coding;
  /** The compressed stream, or text, may go on after the voxels. */
  bool mayGoOn{ false };
  /** Components lie apart, an image of each after the other. */
  bool isPlanar{ false };
};

/** Collects stretches that follow each other in a file and reads them by few calls, straight to where they belong. */
class PieceReader
{
public:
  PieceReader(const Descriptor & file, std::size_t voxelSize, bool swaps, std::atomic<std::uint64_t> & bytesRead)
    : m_File(file)
    , m_VoxelSize(voxelSize)
    , m_Swaps(swaps)
    , m_BytesRead(bytesRead)
  {}
  void
  Add(std::uint64_t offset, char * data, std::size_t bytes);
  /** Call it at the end. */
  void
  Flush();

private:
  const Descriptor &           m_File;
  std::size_t                  m_VoxelSize;
  bool                         m_Swaps;
  std::atomic<std::uint64_t> & m_BytesRead;
  std::vector<iovec>           m_Pieces;
  std::uint64_t                m_Begin{ 0 };
  std::uint64_t                m_End{ 0 };
};

/** Positioned reads of plain voxels, or a stream in order. Throws unless all voxels of a plain file are there. */
std::unique_ptr<FileSource>
OpenVoxels(VoxelPlace place);

/** The layout that a format makes of a header: the bytes before the voxels, and how these are coded. */
struct VoxelLayout
{
  std::string header;
  /** The voxels are in a separate file. */
  bool  detached{ false };
  Codec codec{ Codec::Raw };
  /** Whether compressed voxels are gzip; the header is compressed with them where it is not detached and
   * `compressesHeader`. */
  bool gzip{ true };
  bool compressesHeader{ false };
  bool bigEndian{ false };
  /** The place of the number of compressed bytes in the header, and the number of digits: none if 0. */
  std::size_t              sizeAt{ 0 };
  int                      sizeDigits{ 0 };
  std::vector<std::string> losses;
  /** As VoxelPlace has it. */
  bool isPlanar{ false };
};

} // namespace chunkwise::files

#endif
