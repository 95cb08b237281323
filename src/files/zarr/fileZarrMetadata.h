/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileZarrMetadata_h
#define fileZarrMetadata_h

#include "fileImage.h"
#include "fileZarrCodec.h"

#include <nlohmann/json_fwd.hpp>

namespace chunkwise::files
{

/** A grid of chunks: those of the array, then those inside of each shard. */
struct ZarrLevel
{
  /** Voxels of a chunk along each axis of the array. */
  std::vector<std::int64_t> chunk;
  /** The array's axes in the order in which a chunk's voxels follow each other, the fastest last. */
  std::vector<int> order;
  /** The chunk is a shard: it has chunks of the next level, and an index. */
  bool isSharded{ false };
  bool indexIsAtEnd{ true };
  bool indexHasChecksum{ true };
  bool indexIsBigEndian{ false };
  /** The codecs of the innermost level. */
  std::vector<ZarrCodec> codecs;
};

/** The meaning of values before they become those of a PixelType. */
enum class ZarrValue
{
  Plain,
  Bool, ///< read as 0 and 1 of uint8
  Half  ///< float16, read as float32
};

/** An array of Zarr, version 2 or 3: what its metadata says, checked. Axes are in the array's order, x usually last. */
struct ZarrArray
{
  std::filesystem::path     folder;
  int                       version{ 3 };
  std::vector<std::int64_t> shape;
  PixelType                 kind{ PixelType::UInt8 };
  ZarrValue                 value{ ZarrValue::Plain };
  bool                      bigEndian{ false };
  /** The voxel of a chunk that is not there, in the machine's byte order; 8 bytes, of which the kind's size counts. */
  unsigned char fill[8]{};
  /** Between the numbers of a chunk's name; "c" and another one come first where `hasPrefix`. */
  char separator{ '/' };
  bool hasPrefix{ true };
  /** At least one; all but the last are sharded. */
  std::vector<ZarrLevel> levels;
  /** Names of axes that the array itself has; empty if it has none. */
  std::vector<std::string> names;

  /** Bytes of a value as it is stored. */
  std::size_t
  GetStoredSize() const;
  const ZarrLevel &
  GetInnermost() const
  {
    return levels.back();
  }
  /** The file of a chunk of the first level. */
  std::filesystem::path
  GetChunkFile(const std::vector<std::int64_t> & index) const;
  /** "chunk c/0/1" of messages: the file's name below the array. */
  std::string
  GetChunkName(const std::vector<std::int64_t> & index) const;
};

/** The meaning of an axis of an array. */
enum class ZarrAxis
{
  Space,
  Time,
  Channel
};

/** An image in a store: an array, and what OME-Zarr says of it. */
struct ZarrImage
{
  ZarrArray   array;
  ImageHeader header;
  /** The axis of FileSource's coordinates for each axis of the array; -1: it has one voxel and is dropped. */
  std::vector<int> fileAxis;
  /** The files with metadata, below the folder that was opened. */
  std::vector<std::filesystem::path> files;
  std::vector<std::string>           warnings;
};

/** Whether a folder is a group or array of Zarr. */
bool
IsZarr(const std::filesystem::path & folder);

/** The name of something in a store that is no part of its first image, such as "labels"; empty if there is nothing. */
std::string
FindBesideImage(const std::filesystem::path & folder);

/** Reads the metadata of an array, or of the first level of a group of OME-Zarr. Throws FileError. */
ZarrImage
ReadZarrImage(const std::string & file);

/** Parses text of JSON: nested at most 64 deep. Throws FileError with the file's name. */
nlohmann::json
ParseZarrJson(const std::string & file, const std::string & text);

/** A unit of UDUNITS-2, such as "micrometer" or "second", in mm or s; 0: it is none. */
double
GetZarrUnit(const std::string & unit);

} // namespace chunkwise::files

#endif
