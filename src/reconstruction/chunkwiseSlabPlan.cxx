/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSlabPlan.h"

#include "chunkwiseAxes.h"
#include "chunkwiseError.h"
#include "chunkwiseRoundUp.h"
#include "chunkwiseSlabContraction.h"
#include "chunkwiseSlabFlood.h"
#include "chunkwiseSlabStore.h"

namespace chunkwise
{

SlabGeometry::SlabGeometry(const SlabPlan & plan, const Box & image, bool fullyConnected)
  : m_Plan(plan)
  , m_Image(image)
  , m_FullyConnected(fullyConnected)
{}

std::vector<Box>
SlabGeometry::GetVolumes() const
{
  std::vector<Box> volumes{ m_Image };
  for (int a = m_Plan.axis + 1; a < MaxDimension; ++a)
  {
    std::vector<Box> cut;
    for (std::int64_t i = m_Image.lower[a]; i < m_Image.upper[a]; ++i)
    {
      for (Box volume : volumes)
      {
        volume.lower[a] = i;
        volume.upper[a] = i + 1;
        cut.push_back(volume);
      }
    }
    volumes.swap(cut);
  }
  return volumes;
}

std::int64_t
SlabGeometry::CountSlabs() const
{
  const std::int64_t steps = m_Image.Extent(m_Plan.axis) - 1;
  return (steps + m_Plan.planes - 1) / m_Plan.planes;
}

Box
SlabGeometry::GetSlab(const Box & volume, std::int64_t slab) const
{
  Box box = volume;
  box.lower[m_Plan.axis] = slab * m_Plan.planes;
  box.upper[m_Plan.axis] = std::min((slab + 1) * m_Plan.planes + 1, m_Image.Extent(m_Plan.axis));
  return box;
}

std::vector<Box>
SlabGeometry::GetPieces() const
{
  std::vector<Box> pieces;
  for (Box box : GetVolumes())
  {
    for (std::int64_t plane = 0; plane < m_Image.Extent(m_Plan.axis); plane += m_Plan.planes)
    {
      box.lower[m_Plan.axis] = plane;
      box.upper[m_Plan.axis] = std::min(plane + m_Plan.planes, m_Image.Extent(m_Plan.axis));
      pieces.push_back(box);
    }
  }
  return pieces;
}

SlabGrid
SlabGeometry::GetGrid(std::int64_t planes) const
{
  const std::int64_t width = m_Plan.axis > 0 ? m_Image.Extent(0) : 1;
  const std::int64_t height = m_Plan.axis > 1 ? m_Image.Extent(1) : 1;
  // A plane of one row is one of many rows too, and can be cut into bands.
  return height > 1 ? SlabGrid(width, height, planes, m_FullyConnected) : SlabGrid(1, width, planes, m_FullyConnected);
}

SlabPlanner::SlabPlanner(const Manager & manager, const SlabRequest & request,
                         const ReconstructionOperation & operation, int concurrency)
  : m_Request(request)
  , m_Operation(operation)
  , m_Extent(request.sink->GetExtent())
  , m_Kind(request.sink->GetKind())
  , m_Concurrency(concurrency)
  , m_OnDevices(request.backend == BackendChoice::CUDA ||
                (request.backend == BackendChoice::Auto && !manager.GetDevices().empty()))
  , m_LastAxis(GetLastAxis(m_Extent))
{
  const auto held = [&](const ImageAccess & access) {
    return access.heldBytes * (access.anyOrder ? std::max(request.fileThreads, 1u) : 1);
  };
  for (const auto & source : request.sources)
  {
    m_Held += held(source->GetAccess());
    m_SourcesInAnyOrder = m_SourcesInAnyOrder && source->GetAccess().anyOrder;
  }
  m_Held += held(request.sink->GetAccess());
  m_AnyOrder = m_SourcesInAnyOrder && request.sink->GetAccess().anyOrder;
}

SlabPlan
SlabPlanner::MakePlan() const
{
  std::uint64_t least = UINT64_MAX;
  for (int axis = m_LastAxis; axis >= 0; --axis)
  {
    if (m_Extent[axis] == 1 && axis > 0)
    {
      continue;
    }
    // Files in order have whole planes of the last axis only.
    if (axis != m_LastAxis && !m_AnyOrder)
    {
      break;
    }
    SlabPlan plan;
    if (axis >= m_Operation.spatialDimension)
    {
      if (PlanPieces(plan, axis, least))
      {
        return plan;
      }
      continue;
    }
    if (PlanSlabs(plan, axis, least))
    {
      return plan;
    }
    break;
  }
  throw BudgetError("reconstruction of " + ToString(m_Extent) + " voxels in slabs needs " + std::to_string(least) +
                      " bytes of host memory, more than the budget of " + std::to_string(m_Request.hostBytes) +
                      " bytes",
                    least,
                    m_Request.hostBytes);
}

/** Independent volumes, some at a time. */
bool
SlabPlanner::PlanPieces(SlabPlan & plan, int axis, std::uint64_t & least) const
{
  const bool isForced = m_Request.planesOfSlab > 0 && m_AnyOrder;
  return !isForced && Fit(plan, axis, false, 1, std::max<std::int64_t>(1, (m_Extent[axis] + 3) / 4), least);
}

/** One volume, whole if it fits. */
bool
SlabPlanner::PlanSlabs(SlabPlan & plan, int axis, std::uint64_t & least) const
{
  const std::int64_t wanted = m_Request.planesOfSlab;
  const bool         isForced = wanted > 0 && wanted + 1 < m_Extent[axis];
  if (!isForced && Fit(plan, axis, false, m_Extent[axis], m_Extent[axis], least))
  {
    return true;
  }
  if (m_Extent[axis] <= 2)
  {
    return false;
  }
  const std::int64_t most = std::min(GetMostPlanes(axis), m_Extent[axis] - 2);
  return Fit(plan, axis, true, isForced ? wanted : 1, isForced ? wanted : most, least);
}

/** The most planes that numbers of voxels have room for. */
std::int64_t
SlabPlanner::GetMostPlanes(int axis) const
{
  constexpr std::int64_t most = INT64_C(1) << 31;
  const std::int64_t     plane = CountPlane(axis);
  if (plane > most / 4)
  {
    throw ParameterError("reconstruction: " + std::to_string(plane) +
                         " voxels in a plane of the image are more than slabs can have");
  }
  return std::max<std::int64_t>(most / plane - 2, 1);
}

std::int64_t
SlabPlanner::CountPlane(int axis) const
{
  std::int64_t voxels = 1;
  for (int a = 0; a < axis; ++a)
  {
    voxels *= m_Extent[a];
  }
  return voxels;
}

/** The most planes between two numbers that fit. */
bool
SlabPlanner::Fit(SlabPlan & plan, int axis, bool inSlabs, std::int64_t first, std::int64_t last,
                 std::uint64_t & least) const
{
  // Reading ahead is worth less than slabs of a few planes.
  const bool isAlone = !inSlabs && first == m_Extent[axis] && axis == m_LastAxis;
  for (const bool ahead : { true, false })
  {
    if (ahead && isAlone)
    {
      continue;
    }
    std::int64_t       low = first;
    std::int64_t       high = last;
    const std::int64_t wanted = ahead ? std::min(last, first + 3) : first;
    const auto         fits = [&](std::int64_t planes) {
      plan = Make(axis, inSlabs, planes, ahead);
      return m_Request.hostBytes == 0 || plan.bytes <= m_Request.hostBytes;
    };
    if (!fits(first))
    {
      least = std::min<std::uint64_t>(least, plan.bytes);
      continue;
    }
    while (low < high)
    {
      const std::int64_t middle = low + (high - low + 1) / 2;
      const bool         isEnough = fits(middle);
      low = isEnough ? middle : low;
      high = isEnough ? high : middle - 1;
    }
    if (low >= wanted)
    {
      return fits(low);
    }
  }
  return false;
}

SlabPlan
SlabPlanner::Make(int axis, bool inSlabs, std::int64_t planes, bool ahead) const
{
  SlabPlan plan;
  plan.inSlabs = inSlabs;
  plan.axis = axis;
  plan.planes = planes;
  plan.planeVoxels = CountPlane(axis);
  plan.ahead = ahead;
  plan.onDevices = m_OnDevices;
  plan.pixelBytes = PixelSize(m_Kind);
  plan.inputs = m_Operation.GetNumberOfInputs();
  plan.buffer = RoundUp(static_cast<std::size_t>(plan.GetPlanesOfPiece() * plan.planeVoxels) * plan.pixelBytes);
  Box piece = Box::FromExtent(m_Extent);
  for (int a = axis; a < MaxDimension; ++a)
  {
    piece.upper[a] = a == axis ? std::min(plan.GetPlanesOfPiece(), m_Extent[a]) : 1;
  }
  plan.scratch = GetFloodScratch(piece);
  if (inSlabs)
  {
    AddForests(plan);
  }
  plan.scratch = RoundUp(plan.scratch);
  // The manager's host has as much, should devices fail.
  plan.bytes = plan.GetBlockBytes() + (plan.onDevices ? plan.scratch : 0) + m_Held;
  if (inSlabs)
  {
    plan.bytes +=
      RoundUp(GetRecordBytes(Box::FromExtent(m_Extent).NumberOfVoxels(), (m_Extent[axis] + planes - 1) / planes));
  }
  return plan;
}

void
SlabPlanner::AddForests(SlabPlan & plan) const
{
  DispatchSize(m_Kind, [&](auto key) {
    using Key = decltype(key);
    const SlabGrid grid = SlabGeometry(plan, Box::FromExtent(m_Extent), m_Operation.fullyConnected).GetGrid(2);
    plan.forest = RoundUp(PlaneForest<Key>::GetBytes(plan.planeVoxels));
    plan.scratch = std::max({ plan.scratch,
                              plan.buffer + RoundUp(PlaneForest<Key>::GetBytes(2 * plan.planeVoxels)),
                              SlabContraction<Key>::GetBytes(grid, 1),
                              SlabFlood<Key>::GetLeastBytes() });
  });
  plan.children = RoundUp(ForestChildren::GetBytes(plan.planeVoxels));
  plan.plane = RoundUp(static_cast<std::size_t>(plan.planeVoxels) * plan.pixelBytes);
}

std::shared_ptr<ReconstructionOperation>
SlabPlanner::MakeFlood(const Box & piece) const
{
  auto flood = std::make_shared<ReconstructionOperation>(m_Operation);
  if (flood->partVoxels == 0)
  {
    std::int64_t voxels = 1;
    for (int a = 0; a < m_Operation.spatialDimension; ++a)
    {
      voxels *= piece.Extent(a);
    }
    flood->partVoxels = std::clamp<std::int64_t>(voxels / (8 * m_Concurrency), 1 << 16, 1 << 24);
  }
  return flood;
}

std::size_t
SlabPlanner::GetFloodScratch(const Box & piece) const
{
  ChunkShape shape;
  const bool swaps = m_Operation.spatialDimension > 2 && IsThin(piece);
  shape.inputBox = shape.outputBox = swaps ? SwapAxes(piece, 1, 2) : piece;
  shape.image = Box::FromExtent(m_Extent);
  shape.image = swaps ? SwapAxes(shape.image, 1, 2) : shape.image;
  shape.numberOfInputs = 1;
  shape.inputKinds[0] = shape.outputKind = m_Kind;
  shape.concurrency = m_Concurrency;
  return GetHostKernels().Get("reconstruction", "slabs").scratchBytes(*MakeFlood(piece), shape);
}

} // namespace chunkwise
