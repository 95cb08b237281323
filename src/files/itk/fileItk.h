/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileItk_h
#define fileItk_h

#include "fileImage.h"
#include "fileItkHeader.h"

#include <functional>

namespace chunkwise::files
{

/** Runs `call` without what libraries print on the standard error, one thread at a time: HDF5 is not made for more.
 * Exceptions of ITK and of the standard library become a FileError of one line, "file: what: why". */
void
CallItk(const std::string & file, const std::string & what, const std::function<void()> & call);

#ifdef CHUNKWISE_HAS_ITK
/** The header as ITK reads it. Throws FileError for voxels of no kind of ours. */
ImageHeader
ReadHeaderWithItk(itk::ImageIOBase & io, const std::string & file);
#endif

/** ITK's description of an image, checked. Throws FileError for voxels of no kind of ours. */
ImageHeader
MakeImageHeader(const ItkHeader & said, const std::string & file);

/** The description of an image that is written, for ITK. */
ItkHeader
MakeItkHeader(const ImageHeader & header);

} // namespace chunkwise::files

#endif
