/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileItkFormats.h"

#include "fileDescriptor.h"

#if !defined(CHUNKWISE_HAS_ITK_FORMATS)
#  include "chunkwiseModuleFile.h"
#endif

extern "C" const chunkwise::files::ItkFormats *
chunkwiseGetItkFormats(int version);

namespace chunkwise::files
{

namespace
{

using GetFunction = const ItkFormats * (*)(int version);

GetFunction
FindGetFunction([[maybe_unused]] std::string & reason)
{
#if defined(CHUNKWISE_HAS_ITK_FORMATS)
  return &chunkwiseGetItkFormats;
#else
  return reinterpret_cast<GetFunction>(
    FindInModule("ChunkwiseFormats", "formats", "CHUNKWISE_FORMATS_MODULE", "chunkwiseGetItkFormats", reason));
#endif
}

const ItkFormats *
OpenItkFormats(std::string & reason)
{
  const GetFunction get = FindGetFunction(reason);
  if (!get)
  {
    return nullptr;
  }
  const ItkFormats * const formats = get(ItkFormatsVersion);
  reason = formats ? "" : "it is of another version of the library";
  return formats;
}

} // namespace

const ItkFormats &
GetItkFormats(const std::string & file)
{
  static std::string              reason;
  static const ItkFormats * const formats = OpenItkFormats(reason);
  if (!formats)
  {
    Fail(file, "HDF5 and DICOM need the module ChunkwiseFormats, which cannot be opened: " + reason);
  }
  return *formats;
}

} // namespace chunkwise::files
