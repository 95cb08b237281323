/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileFormatProcess_h
#define fileFormatProcess_h

#include "fileDescriptor.h"
#include "formatMessage.h"

#include <sys/types.h>

namespace chunkwise::files
{

/** The limits of a request, after which the process is ended. */
struct FormatLimits
{
  /** The seconds of computing. */
  double seconds{ 4 };
  /** Bytes that the process may allocate beside what it begins with. */
  std::uint64_t memory{ 0 };
};

/** The process ChunkwiseFormats, in which the libraries of HDF5 and DICOM run: where they crash, do not end or take
 * more than the limits, a FileError names the file. It ends with this object, and with this process. One thread at a
 * time. */
class FormatProcess
{
public:
  /** Throws FileError for `file` if it cannot be started. CHUNKWISE_FORMATS_MODULE may name the program. */
  explicit FormatProcess(const std::string & file);
  ~FormatProcess();
  FormatProcess(const FormatProcess &) = delete;
  FormatProcess &
  operator=(const FormatProcess &) = delete;

  /** Sends a request and, behind it, `voxels`; returns the reply. The message of an error begins with `file` and `what`
   * was tried with it. */
  std::string
  Ask(const std::string & file, const std::string & what, formats::Request request,
      const formats::MessageWriter & message, const FormatLimits & limits, const void * voxels = nullptr,
      std::size_t voxelBytes = 0);
  /** The same for a reply of so many bytes of voxels. */
  void
  AskForVoxels(const std::string & file, formats::Request request, const formats::MessageWriter & message,
               const FormatLimits & limits, void * voxels, std::size_t bytes);

  /** The process holds so much itself, with the libraries. */
  static constexpr std::uint64_t OwnBytes = std::uint64_t{ 24 } << 20;

private:
  void
  Start(const std::string & file);
  void
  Send(const void * data, std::size_t bytes);
  void
  Receive(void * data, std::size_t bytes);
  void
  SendRequest(formats::Request request, const formats::MessageWriter & message, const FormatLimits & limits,
              const void * voxels, std::size_t voxelBytes);
  std::uint64_t
  ReceiveFrame(const std::string & file, const std::string & what);
  std::string
  End();

  int   m_Channel{ -1 };
  pid_t m_Process{ -1 };
  /** Milliseconds without a byte, after which the process is taken to hang. */
  int m_Patience{ 0 };
};

} // namespace chunkwise::files

#endif
