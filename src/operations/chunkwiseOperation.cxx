/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseOperation.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace chunkwise
{

OutputGrid::~OutputGrid() = default;
Operation::~Operation() = default;
RunControl::~RunControl() = default;
DeviceTables::~DeviceTables() = default;

const void *
DeviceTables::GetMade(const std::string &, std::size_t, const std::function<void(void *)> &)
{
  return nullptr;
}

void
Operation::Validate(const Coordinates &) const
{}

const OutputGrid *
Operation::GetOutputGrid() const
{
  return nullptr;
}

int
Operation::GetSweepAxis(const Coordinates & image) const
{
  int a = MaxDimension - 1;
  while (a > 0 && image[a] == 1)
  {
    --a;
  }
  return a;
}

std::size_t
Operation::GetCarryBytes(const Box &, const std::vector<PixelType> &, PixelType) const
{
  return 0;
}

ChunkState
Operation::GetInitialCarry(const Box &, const std::vector<PixelType> &, PixelType) const
{
  return ChunkState();
}

bool
Operation::RunsAlone(const Box &, PixelType) const
{
  return false;
}

std::size_t
Operation::GetSummaryBytes(const Box &, const std::vector<PixelType> &, PixelType) const
{
  return 0;
}

std::vector<ChunkState>
Operation::Solve(const std::vector<Box> &, const std::vector<ChunkState> & summaries) const
{
  return summaries;
}

void
Operation::MergeSummary(ChunkState &, const ChunkState &) const
{
  throw Error("operation " + GetName() + " cannot add up its summaries");
}

double
Operation::GetPatience() const
{
  return 1;
}

const StagedOperation *
Operation::AsStaged() const
{
  return nullptr;
}

std::vector<std::shared_ptr<const Operation>>
Operation::AsSteps(PixelType, PixelType) const
{
  return {};
}

bool
Operation::HandsOnState() const
{
  return false;
}

std::shared_ptr<const Operation>
Operation::MakeForNextBlock(const FinishedBlock &) const
{
  return nullptr;
}

const OutOfCoreRunner *
Operation::GetOutOfCoreRunner() const
{
  return nullptr;
}

bool
Operation::IsRunByRunner() const
{
  return false;
}

Coordinates
Operation::GetTile(const Coordinates &) const
{
  return Coordinates::Filled(1);
}

std::vector<std::shared_ptr<const Operation>>
Operation::GetPipedVariants() const
{
  return {};
}

std::string
Operation::GetObjectionToDevices() const
{
  return std::string();
}

const std::vector<std::pair<KernelRole, std::string>> &
GetKernelRoles()
{
  static const std::vector<std::pair<KernelRole, std::string>> roles = {
    { &KernelSet::compute, "compute" },
    { &KernelSet::advance, "advance" },
    { &KernelSet::summarize, "summarize" },
    { &KernelSet::alone, "alone" },
    { &KernelSet::begin, "begin" },
    { &KernelSet::finish, "finish" },
    { &KernelSet::isActive, "isActive" },
    { &KernelSet::solveGlobally, "solveGlobally" },
    { &KernelSet::finalizeRegion, "finalizeRegion" },
    { &KernelSet::spilled, "spilled" },
    { &KernelSet::piped, "piped" },
    { &KernelSet::head, "head" },
  };
  return roles;
}

struct KernelRegistry::Impl
{
  mutable std::shared_mutex        mutex;
  std::map<std::string, KernelSet> kernels;
};

KernelRegistry::KernelRegistry()
  : m_Impl(new Impl)
{}

KernelRegistry::~KernelRegistry() = default;

void
KernelRegistry::Register(const std::string & name, const KernelSet & kernels)
{
  const std::unique_lock<std::shared_mutex> lock(m_Impl->mutex);
  m_Impl->kernels[name] = kernels;
}

const KernelSet *
KernelRegistry::FindSet(const std::string & name) const
{
  const std::shared_lock<std::shared_mutex> lock(m_Impl->mutex);
  const auto                                found = m_Impl->kernels.find(name);
  return found == m_Impl->kernels.end() ? nullptr : &found->second;
}

const Kernel *
KernelRegistry::Find(const std::string & name, KernelRole role) const
{
  const KernelSet * const kernels = this->FindSet(name);
  return kernels && (kernels->*role).run ? &(kernels->*role) : nullptr;
}

const Kernel &
KernelRegistry::Get(const std::string & name, const std::string & neededBy, KernelRole role) const
{
  const Kernel * const kernel = Find(name, role);
  if (!kernel)
  {
    throw Error("there is no kernel " + Describe(name, role) + ", which \"" + neededBy + "\" needs");
  }
  return *kernel;
}

std::string
KernelRegistry::Describe(const std::string & name, KernelRole role)
{
  const auto & roles = GetKernelRoles();
  const auto   found =
    std::find_if(roles.begin(), roles.end(), [role](const auto & named) { return named.first == role; });
  return '"' + name + '"' + (role == &KernelSet::compute || found == roles.end() ? "" : " (" + found->second + ')');
}

std::vector<std::string>
KernelRegistry::GetNames() const
{
  std::vector<std::string>                  names;
  const std::shared_lock<std::shared_mutex> lock(m_Impl->mutex);
  for (const auto & entry : m_Impl->kernels)
  {
    names.push_back(entry.first);
  }
  return names;
}

} // namespace chunkwise
