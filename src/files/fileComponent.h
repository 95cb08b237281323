/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileComponent_h
#define fileComponent_h

#include "fileImage.h"

namespace chunkwise::files
{

/** One component of an image of voxels with several, as an image of numbers. */
std::unique_ptr<FileSource>
MakeComponentSource(std::unique_ptr<FileSource> source, std::int64_t component);

} // namespace chunkwise::files

#endif
