/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileNifti_h
#define fileNifti_h

#include "fileImage.h"

namespace chunkwise::files
{

/** The fields of a NIfTI file that no other format has. */
struct NiftiFields
{
  /** 1 or 2. */
  int version{ 1 };
  int qformCode{ 0 };
  int sformCode{ 0 };
  /** b, c, d, and the x, y, z of the offset; of the file's own (RAS) space. */
  double qform[6]{};
  double qfac{ 1 };
  double srow[3][4]{};
  /** These fields are as the file says. Windows of display and such belong to its voxels, and are left out. */
  int          dimInfo{ 0 };
  int          intentCode{ 0 };
  double       intent[3]{};
  std::int64_t sliceStart{ 0 };
  std::int64_t sliceEnd{ 0 };
  int          sliceCode{ 0 };
  double       sliceDuration{ 0 };
  double       toffset{ 0 };
  double       pixdim[8]{};
  int          units{ 0 };
  std::string  extensions;
  /** The geometry as it was read: as long as an image has it, both transforms above are its own. */
  double spacing[MaxDimension]{};
  double origin[MaxDimension]{};
  double direction[MaxDimension][MaxDimension]{};
};

/** Vectors are an image for each component; colors of uint8 are not. */
bool
IsPlanarNifti(const ImageHeader & header);

} // namespace chunkwise::files

#endif
