/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileZarrLevels.h"

#include "fileDescriptor.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace chunkwise::files
{

namespace fs = std::filesystem;

/** The metadata of the group, and the paths of its levels. */
struct ZarrLevels::Group
{
  using Json = nlohmann::ordered_json;

  fs::path              file;
  Json                  text;
  fs::path              consolidatedFile; ///< version 2; empty: there is none
  Json                  consolidated;
  std::vector<fs::path> levels;

  /** The object with "multiscales". */
  static Json &
  FindOme(Json & text, int version)
  {
    return version == 3 ? text["attributes"]["ome"] : text;
  }
};

namespace
{

using LevelJson = nlohmann::ordered_json;

void
MoveLevel(const fs::path & from, const fs::path & to, const std::string & shown)
{
  if (::rename(from.c_str(), to.c_str()) != 0)
  {
    FailWithErrno(shown, "cannot be given a level at " + to.string(), errno);
  }
}

LevelJson
MultiplyScale(const LevelJson & scale, const std::vector<std::int64_t> & factor)
{
  LevelJson result = LevelJson::array();
  for (std::size_t i = 0; i < scale.size(); ++i)
  {
    result.push_back(factor[i] == 1 ? scale[i] : LevelJson(scale[i].get<double>() * static_cast<double>(factor[i])));
  }
  return result;
}

} // namespace

LevelJson
ReadZarrText(const fs::path & file)
{
  const Descriptor descriptor = Descriptor::OpenToRead(file);
  std::string      text(static_cast<std::size_t>(descriptor.GetSize()), '\0');
  descriptor.ReadAt(text.data(), text.size(), 0);
  ParseZarrJson(file.string(), text); // checks it
  return LevelJson::parse(text);
}

void
ReplaceZarrText(const fs::path & file, const LevelJson & json, const fs::path & made, const std::string & shown)
{
  const std::string text = json.dump(2, ' ', false, LevelJson::error_handler_t::replace) + "\n";
  const fs::path    fresh = made / ".metadata";
  std::error_code   ignored;
  fs::remove(fresh, ignored);
  Descriptor descriptor = Descriptor::Create(fresh, shown);
  descriptor.WriteAt(text.data(), text.size(), 0);
  descriptor.Sync();
  descriptor.Close();
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0 || ::chmod(fresh.c_str(), status.st_mode & 07777) != 0 ||
      ::rename(fresh.c_str(), file.c_str()) != 0)
  {
    FailWithErrno(shown, file.string() + " cannot be replaced", errno);
  }
  SyncFolder(file.parent_path());
}

void
EraseConsolidated(LevelJson & consolidated, const std::string & path)
{
  LevelJson others = LevelJson::object();
  for (const auto & field : consolidated.items())
  {
    if (field.key() != path && field.key().compare(0, path.size() + 1, path + "/") != 0)
    {
      others[field.key()] = field.value();
    }
  }
  consolidated = others;
}

ZarrLevels::ZarrLevels(const std::string & store, bool replaces)
  : m_Shown(store)
  , m_Image(ReadZarrImage(store))
  , m_Group(std::make_unique<Group>())
{
  std::error_code error;
  m_Folder = fs::canonical(store, error);
  const int version = m_Image.array.version;
  m_Group->file = m_Folder / (version == 3 ? "zarr.json" : ".zattrs");
  if (fs::canonical(m_Image.array.folder, error) == m_Folder || !fs::exists(m_Group->file, error))
  {
    Fail(store, "is an array; levels are added to the group of an image of OME-Zarr");
  }
  if (::faccessat(AT_FDCWD, m_Folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
  {
    FailWithErrno(store, "cannot write into it", errno);
  }
  m_Group->text = ReadZarrText(m_Group->file);
  LevelJson & text = m_Group->text;
  if (version == 3 && !(text.contains("attributes") && text["attributes"].contains("ome")))
  {
    Fail(store, "has no \"ome\" of OME-Zarr 0.5 in its attributes");
  }
  LevelJson & scales = Group::FindOme(text, version)["multiscales"];
  if (scales.size() != 1)
  {
    Fail(store, "has " + std::to_string(scales.size()) + " images (\"multiscales\"); levels are added to one");
  }
  LevelJson & datasets = scales[0]["datasets"];
  const auto  transforms = datasets[0].find("coordinateTransformations");
  if (transforms == datasets[0].end() || transforms->empty() || (*transforms)[0].value("type", "") != "scale" ||
      !(*transforms)[0].contains("scale"))
  {
    Fail(store, "has no scale for its first level, as OME-Zarr 0.4 and 0.5 ask for: it may be older");
  }
  if (m_Image.array.value != ZarrValue::Plain)
  {
    Fail(store, "has voxels of bool or float16, which are not written");
  }
  FindBesideImage(m_Folder); // checks the paths
  for (const LevelJson & dataset : datasets)
  {
    m_Group->levels.push_back(fs::path(dataset["path"].get<std::string>()).lexically_normal());
    if (m_Group->levels.size() > 1 && *m_Group->levels.back().begin() == *m_Group->levels.front().begin())
    {
      Fail(store, "has levels in the folder of the first one, which cannot be replaced");
    }
  }
  if (datasets.size() > 1 && !replaces)
  {
    Fail(store, "has " + std::to_string(datasets.size()) + " levels already; only --overwrite replaces them");
  }
  m_Group->consolidatedFile = m_Folder / ".zmetadata";
  if (version == 3 || !fs::exists(m_Group->consolidatedFile, error))
  {
    m_Group->consolidatedFile.clear();
  }
  else
  {
    m_Group->consolidated = ReadZarrText(m_Group->consolidatedFile);
  }
  // As many as an image of 2^62 voxels could have.
  for (std::size_t i = 1; i < 62 && !replaces; ++i)
  {
    if (fs::exists(fs::symlink_status(m_Folder / this->GetPath(i), error)))
    {
      Fail(store, "has \"" + this->GetPath(i) + "\", which is no level of its image; only --overwrite replaces it");
    }
  }
}

ZarrLevels::~ZarrLevels() = default;

/** "s1" after "s0"; after a number that is not 0 the numbers behind it, so that no level has the first one's place. */
std::string
ZarrLevels::GetPath(std::size_t level) const
{
  const std::string first = m_Group->levels.front().string();
  const std::string folder = m_Group->levels.front().begin()->string();
  std::size_t       number = 0;
  const auto        parsed = std::from_chars(folder.data(), folder.data() + folder.size(), number);
  const bool        isNumber = parsed.ec == std::errc() && parsed.ptr == folder.data() + folder.size();
  const std::size_t zero = first.rfind('0');
  const auto        isDigit = [&](std::size_t at) { return at < first.size() && first[at] >= '0' && first[at] <= '9'; };
  if (zero == std::string::npos || first.find('/') != std::string::npos || isDigit(zero + 1) ||
      (zero > 0 && isDigit(zero - 1)))
  {
    return std::to_string((isNumber && number < INT32_MAX ? number : 0) + level);
  }
  return first.substr(0, zero) + std::to_string(level) + first.substr(zero + 1);
}

/** The group with its first `levels`. */
void
ZarrLevels::WriteGroup(const fs::path & made, const ZarrPyramid & pyramid, std::size_t levels) const
{
  const int   version = m_Image.array.version;
  LevelJson   text = m_Group->text;
  LevelJson & image = Group::FindOme(text, version)["multiscales"][0];
  LevelJson & datasets = image["datasets"];
  LevelJson   all = m_Group->consolidated;
  LevelJson * consolidated = nullptr;
  for (LevelJson * const of : { &all, text.contains("consolidated_metadata") ? &text["consolidated_metadata"] : &all })
  {
    consolidated = of->is_object() && of->contains("metadata") ? &(*of)["metadata"] : consolidated;
  }
  if (datasets.size() > 1)
  {
    image.erase("metadata"); // tells how the levels were made that are replaced
  }
  for (std::size_t i = 1; i < m_Group->levels.size() && consolidated; ++i)
  {
    EraseConsolidated(*consolidated, m_Group->levels[i].string());
  }
  const LevelJson first = datasets[0];
  datasets = LevelJson::array({ first });
  // The first level has its scale first, then perhaps a translation.
  std::vector<std::int64_t> factor(m_Image.fileAxis.size(), 1);
  for (std::size_t i = 1; i < levels; ++i)
  {
    for (std::size_t a = 0; a < factor.size(); ++a)
    {
      factor[a] *= m_Image.fileAxis[a] < 0 ? 1 : pyramid.factors[i - 1][m_Image.fileAxis[a]];
    }
    LevelJson level = first;
    level["path"] = this->GetPath(i);
    LevelJson &     list = level["coordinateTransformations"];
    const LevelJson scale = list[0]["scale"];
    list[0]["scale"] = MultiplyScale(scale, factor);
    LevelJson moved = LevelJson::array();
    for (std::size_t a = 0; a < factor.size(); ++a)
    {
      moved.push_back(scale[a].get<double>() * static_cast<double>(factor[a] - 1) / 2);
    }
    if (list.size() > 1 && list[1].value("type", "") == "translation" && list[1].contains("translation"))
    {
      for (std::size_t a = 0; a < factor.size(); ++a)
      {
        list[1]["translation"][a] = list[1]["translation"][a].get<double>() + moved[a].get<double>();
      }
    }
    else
    {
      LevelJson translation = LevelJson::object();
      translation["type"] = "translation";
      translation["translation"] = moved;
      list.insert(list.begin() + 1, translation);
    }
    datasets.push_back(level);
    if (consolidated)
    {
      const LevelJson array = LevelJson::parse(MakeArrayMetadata(pyramid.levels[i]));
      (*consolidated)[this->GetPath(i) + (version == 2 ? "/.zarray" : "")] = array;
    }
  }
  if (levels > 1)
  {
    image["type"] = NameOfReducer(pyramid.reducer);
  }
  ReplaceZarrText(m_Group->file, text, made, m_Shown);
  if (!m_Group->consolidatedFile.empty() && consolidated)
  {
    (*consolidated)[".zattrs"] = text;
    ReplaceZarrText(m_Group->consolidatedFile, all, made, m_Shown);
  }
}

void
ZarrLevels::Place(const fs::path & made, const ZarrPyramid & pyramid) const
{
  std::vector<fs::path> old(m_Group->levels.begin() + 1, m_Group->levels.end());
  std::error_code       error;
  for (std::size_t i = 1; i < pyramid.levels.size(); ++i)
  {
    if (std::find(old.begin(), old.end(), this->GetPath(i)) == old.end())
    {
      old.emplace_back(this->GetPath(i));
    }
  }
  if (m_Group->levels.size() > 1)
  {
    this->WriteGroup(made, pyramid, 1);
  }
  for (std::size_t i = 0; i < old.size(); ++i)
  {
    if (fs::exists(fs::symlink_status(m_Folder / old[i], error)))
    {
      MoveLevel(m_Folder / old[i], made / (".old" + std::to_string(i)), m_Shown);
    }
  }
  for (std::size_t i = 1; i < pyramid.levels.size(); ++i)
  {
    MoveLevel(made / std::to_string(i), m_Folder / this->GetPath(i), m_Shown);
  }
  SyncFolder(m_Folder);
  this->WriteGroup(made, pyramid, pyramid.levels.size());
}

} // namespace chunkwise::files
