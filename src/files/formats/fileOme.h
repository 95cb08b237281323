/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileOme_h
#define fileOme_h

#include "fileImage.h"

#include <vector>

namespace chunkwise::files
{

/** How the planes of an image of up to five axes lie in the directories of a TIFF file. */
struct PlaneOrder
{
  /** Slices, channels and points in time: the axes behind x and y. */
  std::int64_t slices{ 1 };
  std::int64_t channels{ 1 };
  std::int64_t times{ 1 };
  /** The directory of each plane: slices first, then channels, then points in time. */
  std::vector<std::int64_t> directories;
  /** Along x, y and z in mm; 0: not said. */
  double spacing[3]{};
  /** The parts of the description that cannot be used. */
  std::vector<std::string> warnings;
};

/** Whether a TIFF file's description is OME-XML, or wants to be. */
bool
IsOme(const std::string & description);

/** The order of planes that OME-XML gives for the file with these pages: `page` has extent, kind and components of one
 * of them. Throws FileError if it cannot be read, if it does not give the place of each plane, if planes lie in other
 * files, or if it contradicts the file, which has so many directories: pixels at the wrong place are worse than
 * none. */
PlaneOrder
ReadOme(const std::string & file, const std::string & description, const ImageHeader & page, std::int64_t directories);

/** A unit of length in mm, whether OME-XML or ImageJ names it; 0: it is none. */
double
GetUnitInMm(const std::string & unit);

/** The value of a line "key=value" of ImageJ's description; empty if there is none. */
std::string
GetValueOfImageJ(const std::string & description, const std::string & key);

/** Such a value as a number of at least 1, which it also is where there is none. */
std::int64_t
GetNumberOfImageJ(const std::string & description, const std::string & key);

/** The order of a stack of ImageJ with at least two of channels, slices and points in time; without directories for any
 * other. Throws FileError if they are not as many as the file has directories. */
PlaneOrder
ReadImageJ(const std::string & file, const std::string & description, std::int64_t directories);

} // namespace chunkwise::files

#endif
