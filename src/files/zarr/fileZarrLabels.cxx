/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileZarrLabels.h"

#include "fileDescriptor.h"
#include "fileZarrLevels.h"
#include "fileZarrZip.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace chunkwise::files
{

namespace fs = std::filesystem;

namespace
{

using LabelsJson = nlohmann::ordered_json;

fs::path
WithoutEmptyName(const fs::path & file)
{
  return file.has_filename() ? file : file.parent_path();
}

/** The object that has "labels", of the group's metadata. */
LabelsJson &
FindLabels(LabelsJson & text, int version)
{
  return version == 3 ? text["attributes"]["ome"] : text;
}

const char *
NameOfMetadata(int version)
{
  return version == 3 ? "zarr.json" : ".zattrs";
}

/** Metadata of all groups and arrays below a folder, by their names in consolidated metadata. */
void
AddConsolidated(const fs::path & folder, const std::string & name, int version, LabelsJson & all)
{
  const std::vector<const char *> files = version == 3 ? std::vector<const char *>{ "zarr.json" }
                                                       : std::vector<const char *>{ ".zgroup", ".zattrs", ".zarray" };
  std::error_code                 error;
  bool                            isArray = false;
  for (const char * const file : files)
  {
    if (fs::exists(folder / file, error))
    {
      LabelsJson text = ReadZarrText(folder / file);
      isArray = isArray || std::string(file) == ".zarray" || text.value("node_type", "") == "array";
      text.erase("consolidated_metadata");
      all[version == 3 ? name : name + "/" + file] = text;
    }
  }
  for (fs::directory_iterator entry(folder, error), end; !isArray && !error && entry != end; entry.increment(error))
  {
    const std::string child = entry->path().filename().string();
    if (entry->is_directory(error) && child.front() != '.')
    {
      AddConsolidated(entry->path(), name + "/" + child, version, all);
    }
  }
}

} // namespace

fs::path
FindStoreOfLabels(const fs::path & file)
{
  const fs::path name = WithoutEmptyName(file);
  const fs::path labels = name.parent_path();
  if (labels.filename() != "labels")
  {
    return {};
  }
  const fs::path  store = labels.has_parent_path() ? labels.parent_path() : fs::path(".");
  std::error_code error;
  return fs::is_directory(store, error) && IsZarr(store) ? store : fs::path();
}

int
CheckStoreOfLabels(const std::string & file)
{
  const fs::path    store = FindStoreOfLabels(file);
  const std::string name = WithoutEmptyName(file).filename().string();
  const ZarrImage   image = ReadZarrImage(store.string());
  const int         version = image.array.version;
  std::error_code   error;
  if (fs::equivalent(image.array.folder, store, error))
  {
    Fail(file, "needs a store with an image of OME-Zarr 0.4 or 0.5; " + store.string() + " is an array");
  }
  if (name.front() == '.' || name.compare(0, 2, "__") == 0)
  {
    Fail(file, "labels cannot be named \"" + name + "\": names that begin with . or __ are not for nodes of Zarr");
  }
  const fs::path folder = store / "labels";
  const fs::path metadata = folder / NameOfMetadata(version);
  const bool     isThere = fs::exists(fs::symlink_status(folder, error));
  if (isThere && !IsZarr(folder))
  {
    Fail(file, folder.string() + " is there, and is no group of Zarr of version " + std::to_string(version));
  }
  if (::faccessat(AT_FDCWD, (isThere ? folder : store).c_str(), W_OK | X_OK, AT_EACCESS) != 0)
  {
    FailWithErrno(file, "cannot write into " + (isThere ? folder : store).string(), errno);
  }
  if (fs::exists(metadata, error))
  {
    LabelsJson         text = ReadZarrText(metadata);
    const LabelsJson & about = FindLabels(text, version);
    if (about.contains("labels") && !about["labels"].is_array())
    {
      Fail(metadata.string(), "its \"labels\" is no list of names");
    }
  }
  return version;
}

ZarrLabels::ZarrLabels(const std::string & file)
  : m_Shown(file)
  , m_Store(FindStoreOfLabels(file))
  , m_Folder(m_Store / "labels")
  , m_Name(WithoutEmptyName(file).filename().string())
  , m_Version(CheckStoreOfLabels(file))
{
  if (::mkdir(m_Folder.c_str(), 0777) != 0)
  {
    if (errno != EEXIST)
    {
      FailWithErrno(m_Shown, "cannot write into " + m_Store.string(), errno);
    }
    return;
  }
  m_IsMade = true;
  const auto write = [&](const char * name, const LabelsJson & json) {
    const std::string text = json.dump(2) + "\n";
    Descriptor        descriptor = Descriptor::Create(m_Folder / name, m_Shown);
    descriptor.WriteAt(text.data(), text.size(), 0);
    descriptor.Close();
  };
  LabelsJson group{ { "zarr_format", m_Version } };
  if (m_Version == 2)
  {
    write(".zattrs", { { "labels", LabelsJson::array() } });
    write(".zgroup", group);
    return;
  }
  group["node_type"] = "group";
  group["attributes"]["ome"] = { { "version", "0.5" }, { "labels", LabelsJson::array() } };
  write("zarr.json", group);
}

ZarrLabels::~ZarrLabels()
{
  std::error_code error;
  for (fs::directory_iterator entry(m_Folder, error), end; m_IsMade && !error && entry != end; entry.increment(error))
  {
    m_IsMade = entry->is_regular_file(error);
  }
  if (m_IsMade && !error)
  {
    fs::remove_all(m_Folder, error);
  }
}

void
ZarrLabels::List() const
{
  // Runs that write other labels of the store wait.
  const int  folder = ::open(m_Folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const auto close = [](const int * number) {
    *number >= 0 ? static_cast<void>(::close(*number)) : static_cast<void>(0);
  };
  const std::unique_ptr<const int, decltype(close)> closes(&folder, close);
  if (folder >= 0)
  {
    ::flock(folder, LOCK_EX);
  }
  const fs::path  file = m_Folder / NameOfMetadata(m_Version);
  std::error_code error;
  LabelsJson      text = fs::exists(file, error) ? ReadZarrText(file) : LabelsJson::object();
  LabelsJson &    about = FindLabels(text, m_Version);
  LabelsJson &    names = about["labels"];
  names = names.is_array() ? names : LabelsJson::array();
  if (std::find(names.begin(), names.end(), LabelsJson(m_Name)) == names.end())
  {
    names.push_back(m_Name);
  }
  if (m_Version == 3 && !about.contains("version"))
  {
    about["version"] = "0.5";
  }
  const auto consolidate = [&](LabelsJson & metadata, const fs::path & within, const std::string & name) {
    if (metadata.is_object() && metadata.contains("metadata") && metadata["metadata"].is_object())
    {
      EraseConsolidated(metadata["metadata"], name);
      AddConsolidated(within / name, name, m_Version, metadata["metadata"]);
      return true;
    }
    return false;
  };
  if (m_Version == 3 && text.contains("consolidated_metadata"))
  {
    consolidate(text["consolidated_metadata"], m_Folder, m_Name);
  }
  ReplaceZarrText(file, text, m_Folder, m_Shown);
  for (const fs::path & consolidated : { m_Store / ".zmetadata", m_Store / "zarr.json" })
  {
    if ((consolidated.filename() == "zarr.json") == (m_Version == 3) && fs::exists(consolidated, error))
    {
      LabelsJson all = ReadZarrText(consolidated);
      if (m_Version == 2
            ? consolidate(all, m_Store, "labels")
            : all.contains("consolidated_metadata") && consolidate(all["consolidated_metadata"], m_Store, "labels"))
      {
        ReplaceZarrText(consolidated, all, m_Folder, m_Shown);
      }
    }
  }
}

} // namespace chunkwise::files
