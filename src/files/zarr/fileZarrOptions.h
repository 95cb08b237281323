/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileZarrOptions_h
#define fileZarrOptions_h

#include "fileZarrGrid.h"
#include "fileZarrReduce.h"

namespace chunkwise::files
{

/** How a store is made. */
struct ZarrOptions
{
  /** The version of Zarr: 3 with OME-Zarr 0.5, 2 with OME-Zarr 0.4. */
  int  version{ 3 };
  bool hasVersion{ false }; ///< it was asked for
  /** Voxels of a chunk and of a shard along x, y, z and time; empty: chosen for the image. */
  std::vector<std::int64_t> chunk;
  std::vector<std::int64_t> shard;
  bool                      hasShards{ true };
  bool                      hasCodec{ false };
  std::vector<ZarrCodec>    codecs;
  ZarrReducer               reducer{ ZarrReducer::None };
  /** The output is a store that exists, and gets levels below the first one, which is its image. */
  bool addsLevels{ false };
  /** Levels that it has are replaced. */
  bool replacesLevels{ false };
};

/** The array that an image becomes. */
struct ZarrLayout
{
  ZarrArray        array;
  std::vector<int> fileAxis;
};

/** The levels of an image, the whole one first. */
struct ZarrPyramid
{
  ZarrReducer reducer{ ZarrReducer::None };
  /** Labels in the group "labels" of a store that exists. */
  bool                     isLabels{ false };
  std::vector<ZarrLayout>  levels;
  std::vector<ImageHeader> headers;
  /** 1 or 2 along each of FileSource's axes: from a level to the next. */
  std::vector<Coordinates> factors;
};

/** Throws FileError if the options cannot be used for the image. */
ZarrPyramid
MakeZarrPyramid(const std::string & file, const ImageHeader & header, const ZarrOptions & options);

/** The word for a reducer in options and metadata. */
const char *
NameOfReducer(ZarrReducer reducer);

/** The text of the array's metadata, and of its group's. */
std::string
MakeArrayMetadata(const ZarrLayout & layout);
std::string
MakeGroupMetadata(const ZarrPyramid & pyramid, const std::string & name);

} // namespace chunkwise::files

#endif
