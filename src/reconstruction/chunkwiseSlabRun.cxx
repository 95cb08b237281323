/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSlabRun.h"

#include "chunkwiseError.h"
#include "chunkwiseSlabContraction.h"
#include "chunkwiseSlabFlood.h"

#include <cstring>
#include <stdexcept>

namespace chunkwise
{

namespace
{

/** If more of a plane's voxels than one of so many are raised, the whole slab is swept again. */
constexpr std::int64_t FewOfPlane = 64;

double
CountWork(const SlabPlan & plan, const Box & image)
{
  return static_cast<double>(image.NumberOfVoxels()) *
         (SlabFloodWork + (plan.inSlabs ? SlabContractWork + SlabFinishWork : 0));
}

} // namespace

SlabRun::SlabRun(Manager & manager, const SlabRequest & request, const ReconstructionOperation & operation,
                 const SlabPlanner & planner, const SlabPlan & plan, Executor & executor, SlabReport & report)
  : m_Request(request)
  , m_Operation(operation)
  , m_Planner(planner)
  , m_Plan(plan)
  , m_Executor(executor)
  , m_Report(report)
  , m_Image(Box::FromExtent(request.sink->GetExtent()))
  , m_Kind(request.sink->GetKind())
  , m_Geometry(plan, m_Image, operation.fullyConnected)
  , m_Sources(request.sources)
  , m_Memory(std::make_shared<SlabMemory>(plan))
  , m_Progress(CountWork(plan, m_Image))
  , m_StopMonitor(m_Progress.GetStop())
  , m_Kernels(manager, request, operation, planner, plan, executor, *m_Memory, m_Progress, report)
  , m_Spool(request.spoolFolder)
  , m_ChecksFlat(operation.result == ReconstructionResult::Extrema &&
                 operation.marker == ReconstructionMarker::NextBelow)
{}

SlabRun::~SlabRun() = default;

void
SlabRun::Go()
{
  CopySourcesInOrder();
  StartThreads();
  if (m_Plan.inSlabs)
  {
    for (const Box & volume : m_Geometry.GetVolumes())
    {
      RunVolume(volume);
    }
  }
  else
  {
    RunPieces();
  }
  {
    const Stopwatch watch(m_Report.waiting);
    m_Writer->WaitFor(m_Put, &m_StopMonitor);
  }
  Report();
}

void
SlabRun::Report()
{
  m_Report.planesOfSlab = m_Plan.planes;
  m_Report.passes = m_Plan.inSlabs ? 2 : 1;
  m_Report.reading = m_Reader->GetSeconds();
  m_Report.writing = m_Writer->GetSeconds();
  m_Report.spoolWritten += m_Spool.GetBytesWritten();
  m_Report.spoolRead += m_Spool.GetBytesRead();
  m_Report.bytesRead = m_BytesCopied + m_Reader->GetBytes();
  m_Report.bytesWritten = m_Writer->GetBytes();
  std::uint64_t records = 0;
  for (const SlabRecord & record : m_Records)
  {
    records += record.GetBytes();
  }
  m_Report.peakHost = m_Plan.GetBlockBytes() + m_Planner.GetHeldBytes() + records + m_Report.execution.peakHost;
  m_Report.execution.peakHost = static_cast<std::size_t>(m_Report.peakHost);
}

/** Two passes need sources that can begin again. */
void
SlabRun::CopySourcesInOrder()
{
  for (std::shared_ptr<ImageSource> & source : m_Sources)
  {
    if (!m_Plan.inSlabs || source->GetAccess().anyOrder)
    {
      continue;
    }
    const auto copy = std::make_shared<SpooledImage>(source->GetExtent(), source->GetKind(), m_Request.spoolFolder);
    m_BytesCopied += SpoolCopier::Copy(source, copy, m_Plan.buffer, &m_StopMonitor);
    m_Report.spoolWritten += copy->GetSpool().GetBytesWritten();
    source = copy;
  }
}

/** All pieces in the order in which they are computed. */
std::vector<SlabToRead>
SlabRun::ListReads() const
{
  std::vector<SlabToRead> reads;
  if (!m_Plan.inSlabs)
  {
    for (const Box & piece : m_Geometry.GetPieces())
    {
      reads.push_back({ piece, 0, false });
    }
    return reads;
  }
  const std::int64_t slabs = m_Geometry.CountSlabs();
  const auto         onlyMask = static_cast<std::size_t>(m_Plan.inputs) - 1;
  for (const Box & volume : m_Geometry.GetVolumes())
  {
    for (std::int64_t slab = slabs; slab-- > 0;)
    {
      reads.push_back({ m_Geometry.GetSlab(volume, slab), 0, slab + 1 < slabs });
    }
    for (std::int64_t slab = 0; slab < slabs; ++slab)
    {
      reads.push_back({ m_Geometry.GetSlab(volume, slab), onlyMask, slab > 0 });
    }
  }
  return reads;
}

void
SlabRun::StartThreads()
{
  std::vector<SlabToRead> reads = ListReads();
  const auto              count = static_cast<std::int64_t>(reads.size());
  m_Report.slabs = m_Plan.inSlabs ? count / 2 : count;
  m_Reader = std::make_shared<SlabReader>(m_Request, m_Sources, m_Plan, std::move(reads), m_Memory);
  m_Writer = std::make_shared<SlabWriter>(m_Request, m_Plan, m_Report.slabs, m_Memory);
  m_Reading = std::make_unique<Running>(m_Reader);
  m_Writing = std::make_unique<Running>(m_Writer);
}

std::size_t
SlabRun::WaitForPiece()
{
  const Stopwatch watch(m_Report.waiting);
  m_Reader->WaitFor(++m_Read, &m_StopMonitor);
  m_Progress.CheckStop();
  return static_cast<std::size_t>((m_Read - 1) % m_Plan.GetSlots());
}

void
SlabRun::ReleasePiece()
{
  m_Reader->Admit();
}

char *
SlabRun::WaitForState()
{
  const Stopwatch watch(m_Report.waiting);
  m_Writer->WaitFor(m_Put + 1 - m_Plan.GetSlots(), &m_StopMonitor);
  return m_Memory->state[m_Put % m_Plan.GetSlots()];
}

void
SlabRun::Write(const Box & box)
{
  m_Writer->Put(box);
  ++m_Put;
}

std::vector<BufferView>
SlabRun::GetInputs(std::size_t slot, const Box & box) const
{
  std::vector<BufferView> views;
  for (char * const buffer : m_Memory->slots[slot])
  {
    views.push_back(m_Kernels.ViewOf(buffer, box));
  }
  return views;
}

void
SlabRun::RunPieces()
{
  for (const Box & box : m_Geometry.GetPieces())
  {
    const std::size_t slot = WaitForPiece();
    char * const      state = WaitForState();
    m_Kernels.Compute(GetInputs(slot, box), m_Kernels.ViewOf(state, box));
    ReleasePiece();
    Write(box);
  }
}

void
SlabRun::RunVolume(const Box & volume)
{
  const std::int64_t slabs = m_Geometry.CountSlabs();
  m_Spool.Rewind();
  m_Records.assign(static_cast<std::size_t>(slabs), SlabRecord());
  m_IsFlat = m_ChecksFlat;
  {
    // The states are the scratch of the first pass.
    const Stopwatch watch(m_Report.waiting);
    m_Writer->WaitFor(m_Put, &m_StopMonitor);
  }
  DispatchSize(m_Kind, [&](auto key) {
    using Key = decltype(key);
    Gather<Key>(volume, slabs);
    Finish<Key>(volume, slabs);
  });
}

template <typename TKey>
SlabVoxels<TKey>
SlabRun::VoxelsOf(char * mask, char * state) const
{
  const bool isSigned =
    m_Kind == PixelType::Int8 || m_Kind == PixelType::Int16 || m_Kind == PixelType::Int32 || m_Kind == PixelType::Int64;
  const TKey flip = m_Operation.erosion ? static_cast<TKey>(~TKey{ 0 }) : TKey{ 0 };
  return { reinterpret_cast<const TKey *>(mask),
           reinterpret_cast<TKey *>(state),
           ReconstructionCode<TKey>(IsFloatingPoint(m_Kind), isSigned, flip) };
}

/** From the last slab to the first: what is known without those before it. */
template <typename TKey>
void
SlabRun::Gather(const Box & volume, std::int64_t slabs)
{
  PlaneForest<TKey> forest(m_Memory->forests[0], m_Plan.planeVoxels);
  PlaneForest<TKey> next(m_Memory->forests[1], m_Plan.planeVoxels);
  ForestChildren    children(m_Memory->children);
  forest.Clear();
  for (std::int64_t slab = slabs; slab-- > 0;)
  {
    GatherSlab<TKey>(
      volume, m_Geometry.GetSlab(volume, slab), m_Records[static_cast<std::size_t>(slab)], forest, next, children);
  }
}

/** The forest of the slab's last plane becomes that of its first, if there is a slab before it. */
template <typename TKey>
void
SlabRun::GatherSlab(const Box & volume, const Box & box, SlabRecord & record, PlaneForest<TKey> & forest,
                    PlaneForest<TKey> & next, ForestChildren & children)
{
  const std::size_t      slot = WaitForPiece();
  char * const           state = m_Memory->state[0];
  char * const           mask = m_Memory->slots[slot].back();
  const SlabVoxels<TKey> voxels = VoxelsOf<TKey>(mask, state);
  const SlabGrid         grid = m_Geometry.GetGrid(box.Extent(m_Plan.axis));
  const double           work = static_cast<double>(m_Plan.planes * m_Plan.planeVoxels);
  {
    const Stopwatch watch(m_Report.flooding);
    m_Kernels.Call(&KernelSet::begin, GetInputs(slot, box), m_Kernels.ViewOf(state, box));
  }
  if (box.upper[m_Plan.axis] < volume.upper[m_Plan.axis])
  {
    RaisePlane(voxels, grid);
  }
  m_Progress.BeginFlood();
  m_Kernels.Flood(state, mask, box);
  m_Progress.EndFlood(work);
  {
    const Stopwatch watch(m_Report.flowing);
    children.Find(forest);
    SlabFlood<TKey> flow(
      grid, voxels, forest, children, m_Memory->scratch, SlabFlood<TKey>::GetEntries(m_Plan.scratch), [this] {
        return m_Progress.ShouldStop();
      });
    flow.OfferForest();
    flow.Finish();
    m_Progress.CheckStop();
  }
  m_IsFlat = m_IsFlat && IsFlat(volume, mask, box);
  std::memcpy(m_Memory->planeState, state, static_cast<std::size_t>(grid.planeVoxels) * sizeof(TKey));
  {
    const Stopwatch watch(m_Report.packing);
    PutSlab(m_Spool, record, voxels, grid.GetVoxels(), forest, m_Memory->scratch, m_Executor);
  }
  if (box.lower[m_Plan.axis] > 0)
  {
    const Stopwatch watch(m_Report.contracting);
    Contract<TKey>(voxels, grid.planes, forest, next, children);
  }
  m_Progress.AddWork(SlabContractWork * work);
  ReleasePiece();
}

/** The last plane is at least what the slab after this one has there. */
template <typename TKey>
void
SlabRun::RaisePlane(const SlabVoxels<TKey> & voxels, const SlabGrid & grid) const
{
  const auto * const known = reinterpret_cast<const TKey *>(m_Memory->planeState);
  TKey * const       plane = voxels.state + (grid.planes - 1) * grid.planeVoxels;
  for (std::int64_t i = 0; i < grid.planeVoxels; ++i)
  {
    plane[i] = voxels.code.FromBits(known[i]) > voxels.code.FromBits(plane[i]) ? known[i] : plane[i];
  }
}

/** From the first slab to the last: with what comes from those before it. */
template <typename TKey>
void
SlabRun::Finish(const Box & volume, std::int64_t slabs)
{
  PlaneForest<TKey> forest(m_Memory->forests[0], m_Plan.planeVoxels);
  ForestChildren    children(m_Memory->children);
  for (std::int64_t slab = 0; slab < slabs; ++slab)
  {
    const Box              box = m_Geometry.GetSlab(volume, slab);
    const std::size_t      slot = WaitForPiece();
    char * const           state = WaitForState();
    char * const           mask = m_Memory->slots[slot].back();
    const SlabVoxels<TKey> voxels = VoxelsOf<TKey>(mask, state);
    const SlabGrid         grid = m_Geometry.GetGrid(box.Extent(m_Plan.axis));
    {
      const Stopwatch watch(m_Report.packing);
      GetSlab(m_Spool,
              m_Records[static_cast<std::size_t>(slab)],
              voxels,
              grid.GetVoxels(),
              forest,
              m_Memory->scratch,
              m_Executor);
    }
    if (slab > 0)
    {
      LetIn<TKey>(voxels, grid, forest, children, state, mask, box);
    }
    const Stopwatch watch(m_Report.finishing);
    std::memcpy(m_Memory->planeState,
                voxels.state + (grid.planes - 1) * grid.planeVoxels,
                static_cast<std::size_t>(grid.planeVoxels) * sizeof(TKey));
    const BufferView view = m_Kernels.ViewOf(state, box);
    // Kernels look at the mask alone.
    const std::vector<BufferView> inputs(static_cast<std::size_t>(m_Plan.inputs), m_Kernels.ViewOf(mask, box));
    m_Kernels.Call(&KernelSet::finish, inputs, view);
    if (m_IsFlat)
    {
      m_Kernels.Call(&KernelSet::finalizeRegion, inputs, view);
    }
    ReleasePiece();
    Box written = box;
    written.upper[m_Plan.axis] -= slab + 1 < slabs ? 1 : 0;
    Write(written);
    m_Progress.AddWork(SlabFinishWork * static_cast<double>(m_Plan.planes * m_Plan.planeVoxels));
  }
}

/** The first of the planes up to `last` that can be contracted at once. */
template <typename TKey>
std::int64_t
SlabRun::FindFirstPlane(std::int64_t last, int bands, std::size_t room) const
{
  std::int64_t first = m_Request.planesAtOnce > 0 ? std::max<std::int64_t>(0, last - m_Request.planesAtOnce) : 0;
  while (first + 1 < last && SlabContraction<TKey>::GetBytes(m_Geometry.GetGrid(last - first + 1), bands) > room)
  {
    ++first;
  }
  return first;
}

/** The forest of a slab's last plane becomes that of its first, some planes at a time. */
template <typename TKey>
void
SlabRun::Contract(const SlabVoxels<TKey> & voxels, std::int64_t planes, PlaneForest<TKey> & forest,
                  PlaneForest<TKey> & next, ForestChildren & children)
{
  // Bands take memory too: not where that leaves few planes.
  constexpr std::int64_t fewPlanes = 4;
  const std::size_t      room = m_Plan.scratch + (m_Plan.ahead ? m_Plan.buffer : 0);
  const SlabGrid         plane = m_Geometry.GetGrid(1);
  const int              wanted = m_Request.bandsOfSlab > 0
                                    ? static_cast<int>(std::min<std::int64_t>(m_Request.bandsOfSlab, plane.height))
                                    : SlabContraction<TKey>::GetBands(plane, m_Executor.GetConcurrency());
  for (std::int64_t last = planes - 1; last > 0;)
  {
    int          bands = wanted;
    std::int64_t first = FindFirstPlane<TKey>(last, bands, room);
    const bool   fits = SlabContraction<TKey>::GetBytes(m_Geometry.GetGrid(last - first + 1), bands) <= room;
    if (!fits || (m_Request.bandsOfSlab == 0 && first > 0 && last - first < fewPlanes))
    {
      // The plan has room for two planes in one band.
      bands = 1;
      first = FindFirstPlane<TKey>(last, bands, room);
    }
    const SlabGrid grid = m_Geometry.GetGrid(last - first + 1);
    if (SlabContraction<TKey>::GetBytes(grid, bands) > room)
    {
      throw std::logic_error("reconstruction in slabs: the plan has no room for two planes");
    }
    SlabContraction<TKey>(grid, voxels.From(first * m_Plan.planeVoxels), bands, m_Memory->scratch, [this] {
      return m_Progress.ShouldStop();
    }).Run(m_Executor, forest, children, next);
    m_Progress.CheckStop();
    std::swap(forest, next);
    last = first;
    if (last > 0)
    {
      children.Find(forest);
    }
  }
}

/** Raises the first plane to what it has in the whole image, and all that this leads to. */
template <typename TKey>
void
SlabRun::LetIn(const SlabVoxels<TKey> & voxels, const SlabGrid & grid, const PlaneForest<TKey> & forest,
               ForestChildren & children, char * state, char * mask, const Box & box)
{
  const auto * const known = reinterpret_cast<const TKey *>(m_Memory->planeState);
  std::int64_t       raised = 0;
  for (std::int64_t i = 0; i < grid.planeVoxels; ++i)
  {
    raised += voxels.code.FromBits(known[i]) > voxels.code.FromBits(voxels.state[i]) ? 1 : 0;
  }
  if (raised == 0)
  {
    return;
  }
  const bool sweeps = raised > grid.planeVoxels / FewOfPlane;
  if (sweeps)
  {
    std::memcpy(state, known, static_cast<std::size_t>(grid.planeVoxels) * sizeof(TKey));
    m_Kernels.Flood(state, mask, box);
  }
  const Stopwatch watch(m_Report.flowing);
  children.Find(forest);
  SlabFlood<TKey> flow(
    grid, voxels, forest, children, m_Memory->scratch, SlabFlood<TKey>::GetEntries(m_Plan.scratch), [this] {
      return m_Progress.ShouldStop();
    });
  for (std::int64_t i = 0; i < grid.planeVoxels && !sweeps; ++i)
  {
    while (!flow.Offer(static_cast<std::uint32_t>(i), voxels.code.FromBits(known[i])) && !m_Progress.ShouldStop())
    {
      flow.Drain();
    }
  }
  if (sweeps)
  {
    flow.OfferForest();
  }
  flow.Finish();
  m_Progress.CheckStop();
}

/** Whether the mask has one value up to here. */
bool
SlabRun::IsFlat(const Box & volume, const char * mask, const Box & box)
{
  return DispatchPixelType(m_Kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const auto * const voxels = reinterpret_cast<const Pixel *>(mask);
    if (box.upper[m_Plan.axis] == volume.upper[m_Plan.axis])
    {
      std::memcpy(m_FirstVoxel, voxels, sizeof(Pixel));
    }
    Pixel first = 0;
    std::memcpy(&first, m_FirstVoxel, sizeof(Pixel));
    return std::all_of(voxels, voxels + box.NumberOfVoxels(), [first](Pixel voxel) { return voxel == first; });
  });
}

} // namespace chunkwise
