/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileZarr_h
#define fileZarr_h

#include "fileOutput.h"

namespace chunkwise::files
{

/** Threads that decode, or encode, chunks at most. */
unsigned int
GetMostThreadsOfZarr();

/** An array of Zarr, or the first level of a group of OME-Zarr. */
std::unique_ptr<FileSource>
OpenZarr(const std::string & file);

/** Throws FileError unless the options can be used for an image. */
void
CheckZarrOutput(const std::string & file, const ImageHeader & header, const OutputOptions & options);

ImageAccess
GetZarrOutputAccess(const std::string & file, const ImageHeader & header, const OutputOptions & options);

/** A group of OME-Zarr with one level. */
std::unique_ptr<FileSink>
CreateZarr(const ImageHeader & header, const Destination & destination, const OutputOptions & options,
           std::vector<std::string> losses);

} // namespace chunkwise::files

#endif
