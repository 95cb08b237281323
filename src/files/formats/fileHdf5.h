/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileHdf5_h
#define fileHdf5_h

#include "fileFormatProcess.h"
#include "fileVoxels.h"

#include <mutex>

namespace chunkwise::files
{

/** Writes an HDF5 file as ITK lays it out, in pieces. Nobody but its process has the file open. */
class Hdf5Writer
{
public:
  /** Messages name the file `shown`. */
  Hdf5Writer(const std::string & file, const std::string & shown, const ImageHeader & header, bool compresses);
  void
  Write(const Box & box, const BufferView & view);
  /** Errors of earlier writes show here. */
  void
  Close();
  /** Host memory of a writer, in both processes. */
  static std::uint64_t
  GetHeldBytes(const ImageHeader & header);

private:
  void
  Send(formats::Request request, const formats::MessageWriter & message, const void * voxels, std::size_t bytes);

  ImageHeader   m_Header;
  std::string   m_Shown;
  FormatProcess m_Process;
  Coordinates   m_Chunk;
  std::mutex    m_Mutex;
};

} // namespace chunkwise::files

#endif
