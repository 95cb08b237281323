/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileItkFormats_h
#define fileItkFormats_h

#include "itkImageIOBase.h"

#include <string>
#include <vector>

// ITK's classes for HDF5 and DICOM bring some forty libraries with them, which take half of the program's start. Where
// ITK's libraries are shared these classes are in a module of their own, ChunkwiseFormats (src/formats), that is opened
// for the first file that needs it.
namespace chunkwise::files
{

/** Changes whenever ItkFormats does. */
constexpr int ItkFormatsVersion = 1;

/** What the module has. */
struct ItkFormats
{
  itk::ImageIOBase::Pointer (*makeHdf5)();
  itk::ImageIOBase::Pointer (*makeDicom)();
  /** The number of series in a folder of DICOM files; if it is one, the files of its slices in their order. */
  std::size_t (*findSeries)(const std::string & folder, std::vector<std::string> & slices);
};

/** The module, opened once. Throws FileError for `file` if it cannot be. CHUNKWISE_FORMATS_MODULE may name the module's
 * file. */
const ItkFormats &
GetItkFormats(const std::string & file);

} // namespace chunkwise::files

#endif
