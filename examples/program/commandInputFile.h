/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandInputFile_h
#define commandInputFile_h

#include <cstdint>
#include <string>

namespace command
{

/** Throws WorkError if an uncompressed MetaImage has fewer than `voxelBytes` bytes of voxels: ITK takes what is missing
 * for whatever was in memory, with a message but no error. Other formats throw by themselves. */
void
CheckThatDataIsComplete(const std::string & file, std::uint64_t voxelBytes);

} // namespace command

#endif
