/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileZarrLevels_h
#define fileZarrLevels_h

#include "fileZarrOptions.h"

#include <nlohmann/json_fwd.hpp>

namespace chunkwise::files
{

/** The metadata of a file, checked, in its order. */
nlohmann::ordered_json
ReadZarrText(const std::filesystem::path & file);

/** A file of metadata takes the place of another at once, with its permissions. `made`: a folder of the same file
 * system. */
void
ReplaceZarrText(const std::filesystem::path & file, const nlohmann::ordered_json & json,
                const std::filesystem::path & made, const std::string & shown);

/** Removes a node, and the nodes below it, from consolidated metadata. */
void
EraseConsolidated(nlohmann::ordered_json & consolidated, const std::string & path);

/** The image of a store that exists and gets levels below its first one. */
class ZarrLevels
{
public:
  /** Throws FileError unless `store` is a group with one image of OME-Zarr 0.4 or 0.5 whose levels can be added, or
   * replaced if `replaces`. */
  ZarrLevels(const std::string & store, bool replaces);
  ~ZarrLevels();

  /** The first level as it is stored. */
  const ZarrImage &
  GetImage() const
  {
    return m_Image;
  }
  /** Moves the arrays "1", "2", ... of `made` into the store, and adds them to its metadata. Before the last step
   * readers find the store as it was, or with its first level alone if levels are replaced. */
  void
  Place(const std::filesystem::path & made, const ZarrPyramid & pyramid) const;

private:
  struct Group;
  std::string
  GetPath(std::size_t level) const;
  void
  WriteGroup(const std::filesystem::path & made, const ZarrPyramid & pyramid, std::size_t levels) const;

  std::string            m_Shown;
  std::filesystem::path  m_Folder;
  ZarrImage              m_Image;
  std::unique_ptr<Group> m_Group;
};

} // namespace chunkwise::files

#endif
