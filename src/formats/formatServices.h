/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef formatServices_h
#define formatServices_h

#include "formatMessage.h"

#include "itkImageIOBase.h"

// The work of the process ChunkwiseFormats for each request. Exceptions of any kind become one line of text.
namespace chunkwise::formats
{

/** The voxels of a reply, and its text before them. */
struct Answer
{
  MessageWriter     text;
  std::vector<char> voxels;
};

/** HDF5 files as ITK lays them out: one that is read, or one that is written. */
class Hdf5Service
{
public:
  void
  Open(MessageReader & request, Answer & answer);
  void
  Read(MessageReader & request, Answer & answer);
  void
  Create(MessageReader & request, Answer & answer);
  void
  Write(MessageReader & request, Answer & answer);
  void
  Close(MessageReader & request, Answer & answer);

private:
  itk::ImageIORegion
  GetRegion(MessageReader & request) const;
  std::size_t
  CountBytes(const itk::ImageIORegion & region) const;

  itk::ImageIOBase::Pointer m_Io;
};

class DicomService
{
public:
  void
  Find(MessageReader & request, Answer & answer);
  void
  Check(MessageReader & request, Answer & answer);
  void
  Open(MessageReader & request, Answer & answer);
  void
  Read(MessageReader & request, Answer & answer);
};

/** The findings of a walk over the elements of a DICOM file, without its voxels. */
struct DicomSummary
{
  bool isDicom{ false };
  bool hasVoxels{ false };
  bool isCompressed{ false };
  /** Run-length encoding, which GDCM decodes when it opens a file. */
  bool          isInRuns{ false };
  std::uint64_t voxelBytes{ 0 };
  std::uint64_t rows{ 0 };
  std::uint64_t columns{ 0 };
  std::uint64_t frames{ 1 };
};

/** Throws std::runtime_error where an element, or a voxel, is not there whole: GDCM takes what is missing for zeros. */
DicomSummary
SummarizeDicom(const std::string & file);

} // namespace chunkwise::formats

#endif
