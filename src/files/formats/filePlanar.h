/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef filePlanar_h
#define filePlanar_h

#include "fileVoxels.h"

namespace chunkwise::files
{

// Files with an image for each component, one after the other, as those of pixels whose components lie side by side.

/** The header of the file's own order: components are its fifth axis. */
ImageHeader
GetPlanarHeader(const ImageHeader & header);

/** `inner` has the file's own order, `header` the pixels. Files that are read in order are read whole at first. */
std::unique_ptr<FileSource>
MakePlanarSource(std::unique_ptr<FileSource> inner, const ImageHeader & header);

/** The same for writing; images that are written in order are held whole. */
std::unique_ptr<FileSink>
MakePlanarSink(std::unique_ptr<FileSink> inner, const ImageHeader & header);

/** The access of such a source or sink, from that of the file's own order. */
ImageAccess
GetPlanarAccess(const ImageAccess & inner, const ImageHeader & header);

} // namespace chunkwise::files

#endif
