/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileByteCount.h"

#include "fileDescriptor.h"

namespace chunkwise::files
{

void
RequireInFile(const std::string & file, ByteCount needed, std::uint64_t available, std::int64_t ratio)
{
  if (!needed.IsCountable())
  {
    Fail(file, "its header asks for more bytes of voxels than can be counted");
  }
  const ByteCount most = ByteCount::FromUnsigned(available) * ratio;
  if (needed <= most)
  {
    return;
  }
  if (ratio == RawRatio)
  {
    Fail(file, "has " + std::to_string(available) + " of " + std::to_string(needed.Get()) + " bytes of voxels");
  }
  Fail(file,
       "its " + std::to_string(available) + " bytes of compressed voxels can expand to at most " +
         std::to_string(most.Get()) + " bytes, its header asks for " + std::to_string(needed.Get()));
}

} // namespace chunkwise::files
