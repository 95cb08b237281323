/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseDropIn.h"

#include "itkMacro.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>

namespace itk
{

namespace
{

std::string
Variable(const char * name)
{
  const char * const value = std::getenv(name);
  return value ? value : "";
}

[[noreturn]] void
ThrowBadVariable(const std::string & name, const std::string & value, const std::string & expected)
{
  itkGenericExceptionMacro(<< name << ": \"" << value << "\" is not " << expected);
}

std::mutex &
SettingsMutex()
{
  static std::mutex mutex;
  return mutex;
}

ChunkwiseDropInSettings &
SettingsInForce()
{
  static ChunkwiseDropInSettings settings;
  return settings;
}

} // namespace

ChunkwiseStandIn::ChunkwiseStandIn() = default;
ChunkwiseStandIn::~ChunkwiseStandIn() = default;

ChunkwiseDropInSettings
ChunkwiseDropInSettings::FromEnvironment()
{
  ChunkwiseDropInSettings settings;

  const std::string level = Variable("CHUNKWISE_DROP_IN");
  if (level == "off")
  {
    settings.level = Level::Off;
  }
  else if (level == "fast")
  {
    settings.level = Level::Fast;
  }
  else if (!level.empty() && level != "exact")
  {
    ThrowBadVariable("CHUNKWISE_DROP_IN", level, "exact, fast or off");
  }

  std::istringstream except(Variable("CHUNKWISE_DROP_IN_EXCEPT"));
  for (std::string name; std::getline(except, name, ',');)
  {
    if (!name.empty())
    {
      settings.excluded.insert(name);
    }
  }

  const std::string backend = Variable("CHUNKWISE_DROP_IN_BACKEND");
  if (backend == "cpu")
  {
    settings.backend = chunkwise::BackendChoice::CPU;
  }
  else if (backend == "cuda")
  {
    settings.backend = chunkwise::BackendChoice::CUDA;
  }
  else if (!backend.empty() && backend != "auto")
  {
    ThrowBadVariable("CHUNKWISE_DROP_IN_BACKEND", backend, "auto, cpu or cuda");
  }

  const std::string smallest = Variable("CHUNKWISE_DROP_IN_SMALLEST");
  if (!smallest.empty())
  {
    if (smallest.find_first_not_of("0123456789") != std::string::npos || smallest.size() > 18)
    {
      ThrowBadVariable("CHUNKWISE_DROP_IN_SMALLEST", smallest, "a number of voxels, 0 to 10^18");
    }
    settings.smallest = std::stoll(smallest);
  }

  settings.reportFile = Variable("CHUNKWISE_DROP_IN_REPORT");
  if (!settings.reportFile.empty() && settings.level != Level::Off)
  {
    std::FILE * const file = std::fopen(settings.reportFile.c_str(), "ab");
    if (!file)
    {
      ThrowBadVariable("CHUNKWISE_DROP_IN_REPORT", settings.reportFile, "a file that can be written");
    }
    std::fclose(file);
  }
  return settings;
}

ChunkwiseDropInSettings
ChunkwiseDropInSettings::Get()
{
  const std::lock_guard<std::mutex> lock(SettingsMutex());
  return SettingsInForce();
}

void
ChunkwiseDropInSettings::Set(const ChunkwiseDropInSettings & settings)
{
  const std::lock_guard<std::mutex> lock(SettingsMutex());
  SettingsInForce() = settings;
}

} // namespace itk
