/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileItkHeader_h
#define fileItkHeader_h

#include "formatMessage.h"

#ifdef CHUNKWISE_HAS_ITK
#  include "itkImageIOBase.h"
#endif

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// The description of an image by an ImageIO of ITK, without ITK's types: compiled into the library of files, and into
// the process ChunkwiseFormats, which knows nothing of the engine.
namespace chunkwise::files
{

struct ItkHeader
{
  /** As ITK calls it: "unsigned_char". */
  std::string componentName;
  /** 0: no type that can be used. */
  std::uint32_t componentBytes{ 0 };
  bool          isFloat{ false };
  bool          isSigned{ false };
  bool          isComplex{ false };
  std::int64_t  components{ 1 };
  /** One value for each axis; of the direction a column for each axis. */
  std::vector<std::int64_t>                        size;
  std::vector<double>                              spacing;
  std::vector<double>                              origin;
  std::vector<double>                              direction;
  std::vector<std::pair<std::string, std::string>> text;
};

#ifdef CHUNKWISE_HAS_ITK
/** After ReadImageInformation. */
ItkHeader
DescribeItkHeader(const itk::ImageIOBase & io);

/** Before WriteImageInformation: the header, and the whole image as region. */
void
ApplyItkHeader(const ItkHeader & header, itk::ImageIOBase & io);
#endif

void
PutItkHeader(const ItkHeader & header, formats::MessageWriter & message);
ItkHeader
GetItkHeader(formats::MessageReader & message);

/** The line of an exception's description that says something to users. */
std::string
FirstLine(const std::string & text);

} // namespace chunkwise::files

#endif
