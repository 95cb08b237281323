/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileZarrLabels_h
#define fileZarrLabels_h

#include "fileZarrMetadata.h"

namespace chunkwise::files
{

/** The store whose group of labels an image named STORE/labels/NAME belongs to; empty: the name is no such one, or
 * there is no store. */
std::filesystem::path
FindStoreOfLabels(const std::filesystem::path & file);

/** The version of Zarr of a store that labels are written into. Throws FileError unless it is a group of OME-Zarr 0.4
 * or 0.5 with an image, in which a group of labels is or can be made, and `file` can be the name of labels. */
int
CheckStoreOfLabels(const std::string & file);

/** The group "labels" of a store, which gets the labels of a run. */
class ZarrLabels
{
public:
  /** Makes the group, without labels, unless it is there. */
  explicit ZarrLabels(const std::string & file);
  /** Removes the group again if it was made and nothing is in it. */
  ~ZarrLabels();
  ZarrLabels(const ZarrLabels &) = delete;
  ZarrLabels &
  operator=(const ZarrLabels &) = delete;

  /** Names the labels, which are in their place, in the group's metadata, and in metadata that is consolidated.
   * `made`: a folder of the same file system. */
  void
  List() const;

private:
  std::string           m_Shown;
  std::filesystem::path m_Store;
  std::filesystem::path m_Folder;
  std::string           m_Name;
  int                   m_Version;
  bool                  m_IsMade{ false };
};

} // namespace chunkwise::files

#endif
