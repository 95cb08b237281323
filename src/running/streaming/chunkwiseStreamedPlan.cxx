/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvertedImage.h"
#include "chunkwiseHostMemory.h"
#include "chunkwiseRegions.h"
#include "chunkwiseStreamedOnDevice.h"
#include "chunkwiseStreamedOutOfCore.h"
#include "chunkwiseStreamedRun.h"
#include "chunkwiseStreamedWindow.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <thread>

namespace chunkwise
{

namespace
{

/** A division of about so many bytes is read and written while others are computed: much larger ones leave more of the
 * run's begin and end without overlap, much smaller ones cost a run each. */
constexpr std::uint64_t BytesForOverlap = std::uint64_t{ 32 } << 20;
/** Planes of the halo are computed with by both divisions that meet; at most one in so many. */
constexpr std::int64_t PlanesPerHalo = 8;
/** The least expected speedup for which a device holds the whole image. */
constexpr double WorthOfHolding = 1.05;

/** Planes of an input's unit along the divided axis. */
std::int64_t
GetUnit(const StreamedInput & input, const StreamedPlan & plan)
{
  return input.source->GetAccess().unit[plan.axis + (input.components > 1 ? 1 : 0)];
}

/** Whether boxes of all sources can be read in any order. */
bool
ReadsInAnyOrder(const StreamedRequest & request)
{
  return std::all_of(request.inputs.begin(), request.inputs.end(), [](const StreamedInput & input) {
    return input.source->GetAccess().anyOrder;
  });
}

/** Whether the sink can have the voxels that sources read, as they are. */
bool
CopiesVoxels(const StreamedRequest & request)
{
  return request.operation && request.copiesVoxels && request.backend != BackendChoice::CUDA && !request.firstPass &&
         request.inputs.size() == 1 && request.inputs.front().kind == request.computedKind &&
         request.inputs.front().components == GetComponents(request) && GetWrittenBox(request) == request.region;
}

/** Finds the number of divisions. */
class DivisionSearch
{
public:
  DivisionSearch(Manager & manager, const StreamedRequest & request, bool cutsAtTiles)
    : m_Manager(manager)
    , m_Request(request)
    , m_Image(GetOutputBox(request))
    , m_CutsAtTiles(cutsAtTiles)
  {
    // All components of a voxel are in one division.
    m_Plan.axis = MaxDimension - (GetComponents(request) > 1 ? 2 : 1);
    while (m_Plan.axis > 0 && m_Image.Extent(m_Plan.axis) <= 1)
    {
      --m_Plan.axis;
    }
    this->KeepPlanesOfInputsTogether();
    m_Plan.budgets = request.budgets;
    m_Plan.copies = CopiesVoxels(request);
    // If the system does not tell, there is no limit.
    const std::uint64_t available = GetAvailableHostMemory();
    m_Room = request.memory ? request.memory : available ? available / 2 : std::uint64_t{ 1 } << 60;
    const bool whole =
      request.operation && (NeedsWholeAxis(*request.operation, m_Plan.axis, m_Image) || this->ReadsBackwards());
    m_Planes = whole ? 1 : std::max<std::int64_t>(1, request.region.Extent(m_Plan.axis));
    std::int64_t step = 1;
    if (GetWrittenBox(request) == request.region)
    {
      const int axisOfSink = m_Plan.axis + (GetComponents(request) > 1 ? 1 : 0);
      step = std::max<std::int64_t>(1, std::min(m_Planes, request.sinkAccess.unit[axisOfSink]));
    }
    if (cutsAtTiles && !whole)
    {
      const std::int64_t tile = request.operation->GetTile(m_Image.Extents())[m_Plan.axis];
      step = std::max<std::int64_t>(1, std::min(m_Planes, std::lcm(step, tile)));
    }
    this->SetStep(step);
    for (const StreamedInput & input : request.inputs)
    {
      m_HasUnits = m_HasUnits || GetUnit(input, m_Plan) > 1;
    }
  }

  /** `mayHold`: also on a device as a whole. */
  StreamedPlan
  Find(bool mayHold)
  {
    // Images that are held have one grid.
    mayHold = mayHold && !m_Plan.copies &&
              !(m_Request.operation && m_Request.operation->GetOutputGrid() && !(m_Image == GetImageBox(m_Request)));
    if (m_Request.divisions > 0)
    {
      return this->TakeGiven();
    }
    if (m_Request.keepsStates && this->GoesOutOfCore())
    {
      return this->PlanOutOfCore();
    }
    StreamedPlan held;
    std::int64_t high = this->FindFewest();
    if (high > 0 && m_Planes / high < 2 * this->GetPlanesOfHalo())
    {
      // Thin divisions would mostly compute halos: thicker ones that take turns with reading and writing are faster.
      m_MostBuffers = 1;
      high = this->FindFewest();
      if (mayHold && high > 1 && this->IsWhole() &&
          PlanOnDevice(m_Manager, m_Request, this->GetSeconds(high) / WorthOfHolding, held))
      {
        return held;
      }
    }
    if (high == 0)
    {
      const bool goesOutOfCore = m_Request.operation && this->GoesOutOfCore();
      const bool isIndependent = m_Request.operation && m_Request.operation->GetSchedule() == Schedule::Independent;
      if (mayHold && (goesOutOfCore || (isIndependent && this->IsWhole())) &&
          PlanOnDevice(m_Manager, m_Request, std::numeric_limits<double>::infinity(), held))
      {
        return held;
      }
      if (goesOutOfCore)
      {
        return this->PlanOutOfCore();
      }
      high = this->FindFewestOfParts();
      if (high == 0)
      {
        this->Refuse(m_Most);
      }
    }
    if (high == 1 && this->GoesOutOfCore() && this->HasTooLittleBesideImages() && this->GetLeastOutOfCore() <= m_Room)
    {
      return this->PlanOutOfCore();
    }
    const std::int64_t overlapping = this->GetDivisionsForOverlap();
    if (overlapping <= high || !this->Fits(overlapping, m_Room))
    {
      this->Fits(high, m_Room);
    }
    return this->Finish();
  }

private:
  OutOfCoreRequest
  MakeRequestOfSlabs() const
  {
    OutOfCoreRequest outOfCore = MakeOutOfCoreRequest(m_Request, m_Plan);
    outOfCore.sink = std::make_shared<ConvertedSink>(
      nullptr, m_Image.Extents(), m_Request.writtenKind, m_Request.computedKind, m_Request.sinkAccess);
    return outOfCore;
  }
  /** Whether a run out of core has the room that a run in memory lacks. */
  bool
  HasTooLittleBesideImages()
  {
    const std::uint64_t wanted =
      m_Request.operation->GetOutOfCoreRunner()->GetBytesInMemory(this->MakeRequestOfSlabs());
    return wanted > 0 && this->Fits(1, m_Room) && m_Plan.budgets.host < wanted;
  }

  std::uint64_t
  GetLeastOutOfCore() const
  {
    return m_Request.operation->GetOutOfCoreRunner()->GetLeastHostBytes(m_Manager, this->MakeRequestOfSlabs());
  }

  /** Throws DivisionsError if the run out of core does not fit either. */
  StreamedPlan
  PlanOutOfCore()
  {
    const OutOfCoreRunner & runner = *m_Request.operation->GetOutOfCoreRunner();
    const std::uint64_t     least = this->GetLeastOutOfCore();
    if (least > m_Room)
    {
      // An image of few planes can take less in memory.
      this->Refuse(1, least);
    }
    m_Plan.divisions = 1;
    m_Plan.buffers = 1;
    m_Plan.inSlabs = true;
    m_Plan.budgets = m_Request.budgets;
    m_Plan.bytesAtOnce = m_Room;
    m_Plan.bytesWritten = BytesOf(m_Request.region, m_Request.writtenKind);
    m_Plan.bytesRead = static_cast<std::uint64_t>(runner.GetNumberOfPasses()) *
                       BytesOf(m_Image, m_Request.inputs.front().source->GetKind());
    return m_Plan;
  }

  /** Planes of a window lie one after the other. If an output has fewer axes than what it needs, these are not divided.
   */
  void
  KeepPlanesOfInputsTogether()
  {
    if (!m_Request.operation || !m_Request.operation->GetOutputGrid() || m_Request.region.IsEmpty())
    {
      return;
    }
    const Box needed = GetInputBox(*m_Request.operation, m_Request.region, GetImageBox(m_Request));
    for (int a = MaxDimension - (GetComponents(m_Request) > 1 ? 2 : 1); a > m_Plan.axis; --a)
    {
      if (needed.Extent(a) > 1)
      {
        m_Plan.axis = a;
        return;
      }
    }
  }

  /** Whether divisions would read a source from its end to its begin that is read from its begin on alone. */
  bool
  ReadsBackwards() const
  {
    if (!m_Request.operation->GetOutputGrid() || m_Request.region.IsEmpty() || ReadsInAnyOrder(m_Request))
    {
      return false;
    }
    Box first = m_Request.region;
    Box last = m_Request.region;
    first.upper[m_Plan.axis] = first.lower[m_Plan.axis] + 1;
    last.lower[m_Plan.axis] = last.upper[m_Plan.axis] - 1;
    const Box image = GetImageBox(m_Request);
    return GetInputBox(*m_Request.operation, last, image).lower[m_Plan.axis] <
           GetInputBox(*m_Request.operation, first, image).lower[m_Plan.axis];
  }

  /** All of the image is computed and written, in one pass. */
  bool
  IsWhole() const
  {
    return GetComponents(m_Request) == 1 && m_Request.region == m_Image && !m_Request.firstPass &&
           GetWrittenBox(m_Request) == m_Request.region;
  }

  /** Whether the operation can run out of core, and the request is for the whole image. */
  bool
  GoesOutOfCore() const
  {
    const OutOfCoreRunner * const runner =
      m_Most == 1 && m_Request.operation && this->IsWhole() ? m_Request.operation->GetOutOfCoreRunner() : nullptr;
    return runner && !(runner->NeedsSpool() && m_Request.spoolFolder.empty());
  }

  /** The seconds of computing for so many divisions. */
  double
  GetSeconds(std::int64_t divisions)
  {
    this->Fits(divisions, m_Room);
    return this->PlanOfDivision() * static_cast<double>(divisions);
  }

  /** The fewest divisions that fit; 0 if none do. To plan the run of a division takes long, to add up its bytes does
   * not. */
  std::int64_t
  FindFewest()
  {
    const std::int64_t ofImages = this->FindFewest(1, false);
    return ofImages > 0 ? this->FindFewest(ofImages, true) : 0;
  }

  /** The same with parts of the sink's units, the thickest that fit. */
  std::int64_t
  FindFewestOfParts()
  {
    std::int64_t fewest = 0;
    while (fewest == 0 && m_Plan.step > 1 && m_Request.sinkAccess.partsOfUnits && !m_CutsAtTiles)
    {
      this->SetStep((m_Plan.step + 1) / 2);
      fewest = this->FindFewest();
    }
    return fewest;
  }

  void
  SetStep(std::int64_t step)
  {
    m_Plan.step = step;
    m_Most = (m_Planes + step - 1) / step;
  }

  /** The same of `first` and more, by the bytes of images alone or by what the run needs beside them too. */
  std::int64_t
  FindFewest(std::int64_t first, bool withRun)
  {
    std::int64_t low = first - 1;
    std::int64_t high = first;
    while (!this->Fits(high, m_Room, withRun))
    {
      if (high == m_Most)
      {
        return 0;
      }
      low = high;
      high = std::min(2 * high, m_Most);
    }
    while (low + 1 < high)
    {
      const std::int64_t middle = low + (high - low) / 2;
      (this->Fits(middle, m_Room, withRun) ? high : low) = middle;
    }
    return high;
  }

  /** Planes beside a division that it needs of others. */
  std::int64_t
  GetPlanesOfHalo() const
  {
    if (!m_Request.operation || m_Request.operation->GetOutputGrid())
    {
      return 0;
    }
    const Halo         halo = m_Request.operation->GetHalo(m_Image.Extents());
    const std::int64_t tile = m_Request.operation->GetTile(m_Image.Extents())[m_Plan.axis];
    const std::int64_t ofTiles = m_Plan.step % tile == 0 ? 0 : 2 * (tile - 1);
    return std::min(m_Planes, halo.lower[m_Plan.axis]) + std::min(m_Planes, halo.upper[m_Plan.axis]) +
           std::min(m_Planes, ofTiles);
  }

  StreamedPlan
  TakeGiven()
  {
    const std::int64_t count = std::min(m_Request.divisions, m_Most);
    if (!m_Request.memory)
    {
      m_Plan.buffers = count > 1 ? 2 : 1;
      m_Plan.readsWholeUnits = m_HasUnits;
      this->SetDivisions(count);
    }
    else if (!this->Fits(count, m_Room))
    {
      this->Refuse(count);
    }
    return this->Finish();
  }

  /** The memory of the divisions, if there are so many. */
  void
  SetDivisions(std::int64_t count)
  {
    m_Plan.divisions = count;
    m_Plan.bytesAtOnce = 0;
    const auto add = [this](std::int64_t i) {
      m_Plan.bytesAtOnce = std::max(m_Plan.bytesAtOnce, this->GetBytes(GetDivision(m_Request.region, m_Plan, i)));
    };
    if (m_Request.operation && m_Request.operation->GetOutputGrid())
    {
      // The parts of the image that equal divisions need differ.
      for (std::int64_t i = 0; i < count; ++i)
      {
        add(i);
      }
      return;
    }
    // The first piece is as large as any, the second begins and ends within the image.
    for (const std::int64_t i : { std::int64_t{ 0 }, std::min<std::int64_t>(1, count - 1), count / 2, count - 1 })
    {
      add(i);
    }
  }

  /** With the number of buffers of m_Plan. */
  std::uint64_t
  GetBytes(const Box & output) const
  {
    const std::uint64_t read = this->GetBytesOfInputs(output);
    const std::uint64_t written = m_Request.operation ? this->GetBytesOfOutput(output) : 0;
    return m_Request.readsBeforeWriting ? std::max(read, written) : read + written;
  }
  std::uint64_t
  GetBytesOfInputs(const Box & output) const
  {
    std::uint64_t bytes = 0;
    const Box input = m_Request.operation ? MakeDivisionRequest(m_Request, m_Plan, output).inputs.front().box : output;
    for (const StreamedInput & from : m_Request.inputs)
    {
      const Box part = this->PartOf(GetReadBox(m_Request, m_Plan, from, input), from);
      bytes += static_cast<std::uint64_t>(m_Plan.buffers) * BytesOf(part, from.kind);
      bytes += from.kind == from.source->GetKind()
                 ? 0
                 : this->GetStagingBytes(part, from.source->GetKind(), from.kind, from.source->GetAccess());
    }
    return bytes;
  }
  std::uint64_t
  GetBytesOfOutput(const Box & output) const
  {
    const std::uint64_t ofOutput = BytesOf(output, m_Request.computedKind);
    // The part that is written is copied, wherever it lies.
    return (m_Plan.copies ? 0 : static_cast<std::uint64_t>(m_Plan.buffers) * ofOutput) +
           (GetWrittenBox(m_Request) == m_Request.region ? 0 : ofOutput) +
           (m_Request.computedKind == m_Request.writtenKind
              ? 0
              : this->GetStagingBytes(output, m_Request.writtenKind, m_Request.computedKind, m_Request.sinkAccess));
  }

  /** The part of a box that an input has: its own components. */
  Box
  PartOf(Box box, const StreamedInput & input) const
  {
    if (GetComponents(m_Request) > 1)
    {
      box.upper[MaxDimension - 1] = input.components;
    }
    return box;
  }

  std::uint64_t
  GetStagingBytes(const Box & box, PixelType kind, PixelType other, const ImageAccess & access) const
  {
    if (box.IsEmpty())
    {
      return 0;
    }
    const std::size_t   size = std::max(PixelSize(kind), PixelSize(other));
    const std::uint64_t bytes = static_cast<std::uint64_t>(box.NumberOfVoxels()) * size;
    if (access.wholeBoxes)
    {
      return bytes;
    }
    const std::uint64_t piece =
      GetPieceBytes(bytes, bytes / static_cast<std::uint64_t>(box.Extent(m_Plan.axis)), !access.anyOrder);
    return std::min(bytes, piece * (access.anyOrder ? GetFileThreads(m_Request) : 1));
  }

  bool
  Fits(std::int64_t count, std::uint64_t room, bool withRun = true)
  {
    // Overlap takes twice the memory. If even the finest divisions do not fit so, they take turns.
    m_Plan.buffers = count > 1 ? m_MostBuffers : 1;
    m_Plan.readsWholeUnits = m_HasUnits;
    if (this->FitsAsItIs(count, room, withRun))
    {
      return true;
    }
    if (m_HasUnits && this->IsFinest(count))
    {
      // Units are decoded twice before there is no overlap.
      m_Plan.readsWholeUnits = false;
      if (this->FitsAsItIs(count, room, withRun))
      {
        return true;
      }
    }
    m_Plan.buffers = 1;
    m_Plan.readsWholeUnits = m_HasUnits;
    if (!this->IsFinest(count) || this->FitsAsItIs(count, room, withRun))
    {
      return this->IsFinest(count);
    }
    m_Plan.readsWholeUnits = false;
    return m_HasUnits && this->FitsAsItIs(count, room, withRun);
  }

  /** There is no finer cut that leaves more. */
  bool
  IsFinest(std::int64_t count) const
  {
    return count == m_Most || m_Request.divisions > 0;
  }

  bool
  FitsAsItIs(std::int64_t count, std::uint64_t room, bool withRun)
  {
    this->SetDivisions(count);
    // The room beside a division is for scratch: a quarter of the room, less only for the finest divisions.
    if (m_Plan.bytesAtOnce >= room || (!this->IsFinest(count) && m_Plan.bytesAtOnce > room - room / 4))
    {
      return false;
    }
    m_Plan.budgets.host = room - m_Plan.bytesAtOnce;
    if (!withRun)
    {
      return true;
    }
    try
    {
      this->PlanOfDivision();
      return true;
    }
    catch (const BudgetError &)
    {
      return false;
    }
  }

  /** The seconds that one in the middle takes. Throws BudgetError where it has too little memory. */
  double
  PlanOfDivision() const
  {
    double seconds = 0;
    if (m_Request.operation && !m_Request.region.IsEmpty() && !m_Plan.copies)
    {
      const auto plan = [this](const Box & division) {
        const ExecutionRequest request = MakeDivisionRequest(m_Request, m_Plan, division);
        if (m_Request.firstPass)
        {
          m_Manager.MakePlanFor(m_Request.firstPass(request));
        }
        return m_Manager.MakePlanFor(request).seconds;
      };
      const Box division = GetDivision(m_Request.region, m_Plan, m_Plan.divisions / 2);
      seconds = plan(division);
      // The first one may be a plane thicker, and must fit too.
      const Box first = GetDivision(m_Request.region, m_Plan, 0);
      if (first.Extent(m_Plan.axis) > division.Extent(m_Plan.axis))
      {
        plan(first);
      }
    }
    return seconds;
  }

  /** Throws what says how much memory would do: `otherwise`, or less. */
  [[noreturn]] void
  Refuse(std::int64_t count, std::uint64_t otherwise = std::numeric_limits<std::uint64_t>::max())
  {
    std::uint64_t tooLittle = m_Room;
    std::uint64_t enough = std::max<std::uint64_t>(m_Room, 1);
    while (!this->Fits(count, enough))
    {
      if (enough == otherwise)
      {
        throw DivisionsError(count, otherwise, m_Room);
      }
      if (enough >> 60)
      {
        // No memory of the host is enough: the device's is too little, and its message says so.
        this->PlanOfDivision();
        throw DivisionsError(count, enough, m_Room);
      }
      tooLittle = enough;
      enough = std::min(2 * enough, otherwise);
    }
    constexpr std::uint64_t step = std::uint64_t{ 1 } << 18;
    while (tooLittle + step < enough)
    {
      const std::uint64_t middle = tooLittle + (enough - tooLittle) / 2;
      (this->Fits(count, middle) ? enough : tooLittle) = middle;
    }
    throw DivisionsError(count, enough, m_Room);
  }

  /** How many divisions let reading and writing overlap with computing: 1 where they are not to. */
  std::int64_t
  GetDivisionsForOverlap()
  {
    bool inPieces = m_Request.sinkAccess.inPieces && !m_Request.fewestDivisions;
    for (const StreamedInput & input : m_Request.inputs)
    {
      inPieces = inPieces && input.source->GetAccess().inPieces;
    }
    if (!inPieces || m_Request.region.IsEmpty())
    {
      return 1;
    }
    m_Plan.buffers = 1;
    m_Plan.divisions = 1;
    const std::uint64_t all = this->GetBytes(m_Request.region);
    const std::int64_t  planes = m_Planes / std::max<std::int64_t>(1, PlanesPerHalo * this->GetPlanesOfHalo());
    return std::min({ static_cast<std::int64_t>(all / BytesForOverlap), std::max<std::int64_t>(1, planes), m_Most });
  }

  /** The plan of the whole run. */
  StreamedPlan
  Finish()
  {
    // If nobody asked for a limit, scratch has none.
    m_Plan.budgets.host = m_Request.memory ? m_Room - std::min(m_Room, m_Plan.bytesAtOnce) : 0;
    m_Plan.bytesWritten = BytesOf(GetWrittenBox(m_Request), m_Request.writtenKind);
    const Box all = m_Request.operation && !m_Request.region.IsEmpty()
                      ? MakeDivisionRequest(m_Request, m_Plan, m_Request.region).inputs.front().box
                      : m_Request.region;
    m_Plan.bytesRead = BytesOf(this->PartOf(all, m_Request.inputs.front()), m_Request.inputs.front().source->GetKind());
    // One division is still in memory when the second pass begins.
    m_Plan.bytesRead *= m_Request.firstPass && m_Plan.divisions > 1 ? 2 : 1;
    return m_Plan;
  }

  Manager &               m_Manager;
  const StreamedRequest & m_Request;
  Box                     m_Image;
  bool                    m_CutsAtTiles;
  std::uint64_t           m_Room{ 0 };
  std::int64_t            m_Planes{ 1 }; ///< that can be divided
  std::int64_t            m_Most{ 1 };
  bool                    m_HasUnits{ false }; ///< a source has
  int                     m_MostBuffers{ 2 };
  StreamedPlan            m_Plan;
};

} // namespace

Box
GetReadBox(const StreamedRequest & request, const StreamedPlan & plan, const StreamedInput & input, Box box)
{
  const std::int64_t unit = plan.readsWholeUnits ? GetUnit(input, plan) : 1;
  if (unit > 1 && !box.IsEmpty())
  {
    std::int64_t & end = box.upper[plan.axis];
    end = std::max(end, std::min(GetImageBox(request).upper[plan.axis], (end + unit - 1) / unit * unit));
  }
  return box;
}

OutOfCoreRequest
MakeOutOfCoreRequest(const StreamedRequest & request, const StreamedPlan & plan)
{
  OutOfCoreRequest outOfCore;
  outOfCore.operation = request.operation;
  outOfCore.spoolFolder = request.spoolFolder;
  outOfCore.backend = request.backend;
  outOfCore.devices = request.devices;
  outOfCore.budgets = plan.budgets;
  outOfCore.executor = request.executor;
  outOfCore.fileThreads = GetFileThreads(request);
  outOfCore.states = request.states;
  for (const StreamedInput & input : request.inputs)
  {
    outOfCore.sources.push_back(std::make_shared<ConvertedSource>(input.source, input.kind));
  }
  return outOfCore;
}

DivisionsError::DivisionsError(std::int64_t count, std::size_t neededBytes, std::size_t budgetBytes)
  : BudgetError("one of " + std::to_string(count) + (count == 1 ? " division" : " divisions") + " of the image needs " +
                  std::to_string(neededBytes) + " bytes of the host's memory, " + std::to_string(budgetBytes) +
                  " are there",
                neededBytes, budgetBytes)
  , divisions(count)
{}

unsigned int
GetFileThreads(const StreamedRequest & request)
{
  return request.fileThreads ? request.fileThreads : std::max(1u, std::min(8u, GetNumberOfProcessors() / 2));
}

std::int64_t
GetComponents(const StreamedRequest & request)
{
  std::int64_t components = request.outputComponents;
  for (const StreamedInput & input : request.inputs)
  {
    components = std::max(components, input.components);
  }
  return components;
}

Box
GetImageBox(const StreamedRequest & request)
{
  const StreamedInput & first = request.inputs.front();
  Box                   image = FromFileAxes(Box::FromExtent(first.source->GetExtent()), first.components > 1);
  if (GetComponents(request) > 1)
  {
    image.upper[MaxDimension - 1] = GetComponents(request);
  }
  return image;
}

Box
GetOutputBox(const StreamedRequest & request)
{
  const Box image = GetImageBox(request);
  return request.operation ? GetOutputBox(*request.operation, image) : image;
}

Box
GetWrittenBox(const StreamedRequest & request)
{
  return request.written.IsEmpty() ? request.region : request.written;
}

Box
GetDivision(const Box & region, const StreamedPlan & plan, std::int64_t i)
{
  Box                division = region;
  const std::int64_t steps = (region.Extent(plan.axis) + plan.step - 1) / plan.step;
  // Without a product that could be too large.
  const std::int64_t each = steps / plan.divisions;
  const std::int64_t rest = steps % plan.divisions;
  const std::int64_t first = i * each + std::min(i, rest);
  division.lower[plan.axis] = region.lower[plan.axis] + first * plan.step;
  division.upper[plan.axis] =
    std::min(region.upper[plan.axis], division.lower[plan.axis] + (each + (i < rest ? 1 : 0)) * plan.step);
  return division;
}

ExecutionRequest
MakeDivisionRequest(const StreamedRequest & request, const StreamedPlan & plan, const Box & division)
{
  ExecutionRequest result;
  result.operation = request.operation;
  result.image = GetImageBox(request);
  result.region = division;
  result.backend = request.backend;
  result.devices = request.devices;
  result.budgets = plan.budgets;
  result.executor = request.executor;
  Box input = division;
  if (request.operation)
  {
    const Box needed = GetInputBox(*request.operation, division, result.image);
    input.lower[plan.axis] = needed.lower[plan.axis];
    input.upper[plan.axis] = needed.upper[plan.axis];
    input = request.operation->HandsOnState() ? input : needed;
    if (request.operation->GetOutputGrid() && !division.IsEmpty() && !ReadsInAnyOrder(request))
    {
      // Divisions that follow each other have the same rows, so that no plane is read again.
      const Box all = GetInputBox(*request.operation, request.region, result.image);
      for (int a = 0; a < MaxDimension; ++a)
      {
        input.lower[a] = a == plan.axis ? input.lower[a] : all.lower[a];
        input.upper[a] = a == plan.axis ? input.upper[a] : all.upper[a];
      }
    }
  }
  for (const StreamedInput & from : request.inputs)
  {
    result.inputs.push_back(DenseView(nullptr, from.kind, input));
  }
  result.output = DenseView(nullptr, request.computedKind, division);
  return result;
}

namespace
{

/** Divisions that begin where tiles do, if such divisions fit: others compute the tiles that they cut twice. */
StreamedPlan
FindDivisions(Manager & manager, const StreamedRequest & request, bool mayHold)
{
  const Box   image = GetImageBox(request);
  Coordinates tile = request.operation ? request.operation->GetTile(image.Extents()) : Coordinates::Filled(1);
  bool        hasTiles = false;
  for (int a = 0; a < MaxDimension; ++a)
  {
    hasTiles = hasTiles || (tile[a] > 1 && tile[a] < image.Extent(a) && request.region.lower[a] % tile[a] == 0);
  }
  if (hasTiles && request.divisions == 0)
  {
    try
    {
      return DivisionSearch(manager, request, true).Find(mayHold);
    }
    catch (const DivisionsError &)
    {}
  }
  return DivisionSearch(manager, request, false).Find(mayHold);
}

} // namespace

StreamedPlan
MakePlanWithoutHolding(Manager & manager, const StreamedRequest & request)
{
  return FindDivisions(manager, request, false);
}

StreamedPlan
MakeStreamedPlan(Manager & manager, const StreamedRequest & request)
{
  return FindDivisions(manager, request, true);
}

} // namespace chunkwise
