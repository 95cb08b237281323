/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwisePlanner.h"

#include "chunkwiseError.h"
#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <memory>

namespace chunkwise
{

namespace
{

/** The time that a carry takes from one device's kernel to the next device's, beside that of its bytes, in launches. It
 * mostly waits for pieces of images that are on the way to that device. Two H100, tables of 2048 x 2048 x 512 float32,
 * ms with 50, 20 and 10: pinned 161, 144, 160, pageable 199, 179, 175. */
constexpr double HandoverLaunches = 20;

std::int64_t
CeilDivide(std::int64_t a, std::int64_t b)
{
  return (a + b - 1) / b;
}

/** The interval of input that [lower, upper) of the output needs along one axis. */
void
InputInterval(const PlannerRequest & request, int a, std::int64_t & lower, std::int64_t & upper)
{
  if (request.inputBox)
  {
    return;
  }
  const std::int64_t haloLower = std::min(request.halo.lower[a], WholeAxis);
  const std::int64_t haloUpper = std::min(request.halo.upper[a], WholeAxis);
  const std::int64_t tile = request.tile[a];
  if (tile > 1)
  {
    const std::int64_t origin = request.image.lower[a];
    lower = origin + (lower - origin) / tile * tile;
    upper = std::min(origin + CeilDivide(upper - origin, tile) * tile, request.image.upper[a]);
  }
  if (request.wraps && haloLower < WholeAxis && haloUpper < WholeAxis)
  {
    lower -= haloLower;
    upper += haloUpper;
    return;
  }
  lower = std::max(lower - haloLower, request.image.lower[a]);
  upper = std::min(upper + haloUpper, request.image.upper[a]);
}

/** The pieces of one extent into which an axis is cut. */
struct AxisCut
{
  std::int64_t extent{ 1 };       ///< of an output piece
  std::int64_t count{ 1 };        ///< of pieces
  std::int64_t inputExtent{ 1 };  ///< of the largest input piece
  std::int64_t inputSum{ 1 };     ///< of all input pieces
  std::int64_t inputUnion{ 1 };   ///< of the interval that all input pieces cover
  std::int64_t overlap{ 0 };      ///< of neighbouring input pieces, at most
  std::int64_t largestLower{ 0 }; ///< output begin of the piece with the largest input
};

AxisCut
CutAxis(const PlannerRequest & request, int a, std::int64_t extent)
{
  const std::int64_t begin = request.region.lower[a];
  const std::int64_t end = request.region.upper[a];
  AxisCut            cut;
  cut.extent = extent;
  cut.count = CeilDivide(end - begin, extent);
  cut.inputExtent = 0;
  // Interior pieces all have the same input; those whose halo is cut lie at the ends.
  std::int64_t sum = 0;
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  std::int64_t highest = std::numeric_limits<std::int64_t>::min();
  const auto   visit = [&](std::int64_t piece) {
    std::int64_t lower = begin + piece * extent;
    std::int64_t upper = std::min(lower + extent, end);
    const auto   outputLower = lower;
    InputInterval(request, a, lower, upper);
    if (upper - lower > cut.inputExtent)
    {
      cut.inputExtent = upper - lower;
      cut.largestLower = outputLower;
    }
    lowest = std::min(lowest, lower);
    highest = std::max(highest, upper);
    return upper - lower;
  };
  const std::int64_t reach =
    (std::max(std::min(request.halo.lower[a], WholeAxis), std::min(request.halo.upper[a], WholeAxis)) +
     request.tile[a]) /
      extent +
    2;
  // Pieces that cut tiles all have different inputs.
  if (cut.count <= 2 * reach + 1 || (request.tile[a] > 1 && extent % request.tile[a] != 0))
  {
    for (std::int64_t piece = 0; piece < cut.count; ++piece)
    {
      sum += visit(piece);
    }
  }
  else
  {
    for (std::int64_t piece = 0; piece < reach; ++piece)
    {
      sum += visit(piece) + visit(cut.count - 1 - piece);
    }
    sum += (cut.count - 2 * reach) * visit(reach);
  }
  cut.inputSum = sum;
  cut.inputUnion = highest - lowest;
  cut.overlap = cut.count > 1 ? std::max<std::int64_t>(0, (sum - cut.inputUnion) / (cut.count - 1)) : 0;
  return cut;
}

/** The same cuts with the input that pieces of another grid need at most. Which voxels they share is not known. */
void
SetMostInput(const PlannerRequest & request, AxisCut (&cuts)[MaxDimension])
{
  Coordinates extent{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    extent[a] = std::min(cuts[a].extent, request.region.Extent(a));
  }
  const Coordinates most = request.mostInput(extent);
  for (int a = 0; a < MaxDimension; ++a)
  {
    cuts[a].inputExtent = most[a];
    cuts[a].inputSum = cuts[a].inputUnion = cuts[a].count * most[a];
    cuts[a].overlap = 0;
  }
}

/** Extents to try along an axis, the largest first, equalised so that no piece is a sliver. Powers of two are among the
 * numbers of pieces. */
std::vector<std::int64_t>
CandidateExtents(std::int64_t whole, double ratio)
{
  std::vector<std::int64_t> extents;
  const auto                add = [&](std::int64_t pieces) {
    const std::int64_t extent = CeilDivide(whole, std::min(whole, pieces));
    if (extents.empty() || extent != extents.back())
    {
      extents.push_back(extent);
    }
  };
  double       pieces = 1;
  std::int64_t power = 1;
  do
  {
    const auto number = static_cast<std::int64_t>(std::ceil(pieces));
    for (; power < number; power *= 2)
    {
      add(power);
    }
    add(number);
    pieces = std::max(pieces + 1, pieces * ratio);
  } while (extents.back() > 1);
  return extents;
}

/** Bytes that a chunk writes for each voxel. */
std::size_t
OutputPixelSize(const PlannerRequest & request)
{
  return request.hasOutput ? PixelSize(request.outputKind) : 0;
}

struct Candidate
{
  AxisCut      cuts[MaxDimension];
  int          sweepAxis{ 0 };
  int          inputSlots{ 1 };
  int          outputSlots{ 1 };
  std::size_t  inputBytes{ 0 };
  std::size_t  outputBytes{ 0 };
  std::size_t  scratchBytes{ 0 };
  std::size_t  deviceBytes{ 0 };
  double       bytesIn{ 0 };
  double       bytesOut{ 0 };
  double       seconds{ std::numeric_limits<double>::infinity() };
  std::int64_t chunks{ 1 };
};

ChunkShape
ShapeOf(const PlannerRequest & request, const AxisCut (&cuts)[MaxDimension])
{
  ChunkShape shape;
  for (int a = 0; a < MaxDimension; ++a)
  {
    shape.outputBox.lower[a] = cuts[a].largestLower;
    shape.outputBox.upper[a] = std::min(cuts[a].largestLower + cuts[a].extent, request.region.upper[a]);
  }
  shape.inputBox = InputBoxOf(shape.outputBox, request);
  shape.image = request.image;
  shape.numberOfInputs = request.numberOfInputs;
  std::copy(request.inputKinds, request.inputKinds + MaxInputs, shape.inputKinds);
  shape.outputKind = request.outputKind;
  shape.concurrency = request.concurrency;
  return shape;
}

/** The slowest axis along which a chunk's input is more than one voxel: common voxels of neighbours along it are one
 * contiguous block of the buffer. */
int
SlowestAxis(const AxisCut (&cuts)[MaxDimension], const PlannerRequest & request)
{
  for (int a = MaxDimension - (request.keepsComponents ? 2 : 1); a > 0; --a)
  {
    if (cuts[a].inputExtent > 1)
    {
      return a;
    }
  }
  return 0;
}

/** Times as long as the best that a chunk's kernels take whose parts are not tried: more than what tiles save that fit
 * a smaller chunk better. */
constexpr double HopelessFactor = 3;

class Search
{
public:
  explicit Search(const PlannerRequest & request)
    : m_Request(request)
    , m_InputVoxelBytes(0)
    , m_Memory(std::numeric_limits<std::size_t>::max())
    , m_ToDeviceRate(0)
    , m_ToHostRate(0)
    , m_MemoryRate(0)
  {
    for (AxisCut & cut : m_Hopeless)
    {
      cut.extent = 0;
    }
    for (int i = 0; i < request.numberOfInputs; ++i)
    {
      m_InputVoxelBytes += static_cast<double>(PixelSize(request.inputKinds[i]));
    }
    for (const auto & device : request.devices)
    {
      m_Memory = std::min(m_Memory, device.memory);
      m_ToDeviceRate += device.toDeviceRate;
      m_ToHostRate += device.toHostRate;
      m_MemoryRate += device.memoryRate;
      m_LaunchSeconds = std::max(m_LaunchSeconds, device.launchSeconds);
    }
  }

  /** The bytes that a plan without overlap of transfer and compute, its one input and one output buffer as large as the
   * memory allows and with a chunk for each device, would load: where the link is what takes longest, a faster plan
   * must not pay for its buffers with more traffic. */
  void
  BoundBytes(const AxisCut (&cuts)[MaxDimension])
  {
    double bytes = m_InputVoxelBytes;
    double inputVoxels = 1;
    double outputVoxels = 1;
    double chunks = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      chunks *= static_cast<double>(cuts[a].count);
      bytes *= static_cast<double>(cuts[a].inputSum);
      inputVoxels *= static_cast<double>(cuts[a].inputExtent);
      outputVoxels *= static_cast<double>(cuts[a].extent);
    }
    const double buffers = m_Request.inPlace ? 0
                                             : inputVoxels * m_InputVoxelBytes +
                                                 outputVoxels * static_cast<double>(OutputPixelSize(m_Request));
    if (!m_Request.oneAtATime && chunks < static_cast<double>(m_Request.devices.size()))
    {
      return;
    }
    if (bytes >= m_MostBytes || buffers + static_cast<double>(m_Request.fixedBytes) > static_cast<double>(m_Memory))
    {
      return;
    }
    const std::size_t scratch = m_Request.scratchBytes ? m_Request.scratchBytes(ShapeOf(m_Request, cuts)) : 0;
    if (buffers + static_cast<double>(m_Request.fixedBytes + scratch + 1024 * MaxInputs) <=
        static_cast<double>(m_Memory))
    {
      m_MostBytes = bytes;
    }
  }

  /** Fills the fields of a candidate that do not depend on its buffers. Whether its chunks can be counted at all. */
  bool
  Describe(const AxisCut (&cuts)[MaxDimension], Candidate & c, double & inputVoxels, double & outputVoxels) const
  {
    std::copy(cuts, cuts + MaxDimension, c.cuts);
    for (int a = 0; a < MaxDimension; ++a)
    {
      inputVoxels *= static_cast<double>(cuts[a].inputExtent);
      outputVoxels *= static_cast<double>(std::min(cuts[a].extent, m_Request.region.Extent(a)));
      c.chunks *= cuts[a].count;
    }
    if (inputVoxels * m_InputVoxelBytes > 9e18 || outputVoxels > 1e18)
    {
      return false;
    }
    c.sweepAxis = m_Request.sweepAxis >= 0 ? m_Request.sweepAxis : SlowestAxis(cuts, m_Request);
    c.inputBytes = 0;
    for (int i = 0; i < m_Request.numberOfInputs; ++i)
    {
      c.inputBytes += RoundUp(static_cast<std::size_t>(inputVoxels) * PixelSize(m_Request.inputKinds[i]));
    }
    c.outputBytes = RoundUp(static_cast<std::size_t>(outputVoxels) * OutputPixelSize(m_Request));
    double regionVoxels = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      regionVoxels *= static_cast<double>(m_Request.region.Extent(a));
    }
    c.bytesOut = regionVoxels * static_cast<double>(OutputPixelSize(m_Request));
    return true;
  }

  /** Sets how many bytes go to devices. Returns what chunks of this size load in all: what devices load twice where
   * their parts meet does not count. */
  double
  SetInput(Candidate & c) const
  {
    const double devices = static_cast<double>(m_Request.devices.size());
    const bool   carry = m_Request.carryHalo && c.inputSlots >= 2 && SlowestAxis(c.cuts, m_Request) == c.sweepAxis;
    double       bytesOfBuffers = m_InputVoxelBytes;
    c.bytesIn = m_InputVoxelBytes;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const AxisCut & cut = c.cuts[a];
      const bool      isCarried = carry && a == c.sweepAxis;
      const double    runs = std::min(devices, static_cast<double>(cut.count));
      const auto      once = static_cast<double>(isCarried ? cut.inputUnion : cut.inputSum);
      c.bytesIn *= once + (isCarried ? (runs - 1) * static_cast<double>(cut.overlap) : 0);
      bytesOfBuffers *= once;
    }
    return bytesOfBuffers;
  }

  /** Seconds of a run whose transfers and kernels take these. */
  double
  Estimate(const Candidate & c, double load, double store, double kernel) const
  {
    const double devices = static_cast<double>(m_Request.devices.size());
    const double chunks = static_cast<double>(c.chunks);
    // Devices run in rounds: in the last round some may have nothing to do.
    const double imbalance = std::ceil(chunks / devices) * devices / chunks;
    // Fixpoint: if the image is cut, each chunk costs visits too.
    const bool   isVisited = chunks > 1 && (m_Request.inPlace || !m_Request.oneAtATime);
    const double launches = chunks / devices * (m_LaunchSeconds + (isVisited ? m_Request.visitSeconds : 0));
    // A sweep's chunks on several devices: each may begin when the one before has handed on its carry, over both
    // links.
    const double handovers =
      m_Request.sweepAxis >= 0 && devices > 1
        ? chunks * (HandoverLaunches * m_LaunchSeconds +
                    static_cast<double>(m_Request.carryBytes) * devices * (1 / m_ToDeviceRate + 1 / m_ToHostRate))
        : 0;
    const double all = load + store + kernel;
    const double longest = std::max({ load, store, kernel });
    const bool   overlap = c.inputSlots > 1 && !m_Request.oneAtATime;
    const double steady = overlap ? longest * (c.inputSlots == 2 ? 1.1 : 1.0) : all;
    // The longest stage works without a pause; of the others the first or the last chunk waits.
    const double ends = overlap ? (all - longest) * devices / chunks : 0;
    return std::max(steady * imbalance, handovers) + ends + launches;
  }

  /** Tries one shape with every number of buffers. */
  void
  Try(const AxisCut (&cuts)[MaxDimension])
  {
    if (this->IsHopeless(cuts))
    {
      return;
    }
    Candidate c;
    double    inputVoxels = 1;
    double    outputVoxels = 1;
    if (!this->Describe(cuts, c, inputVoxels, outputVoxels))
    {
      return;
    }
    const double devices = static_cast<double>(m_Request.devices.size());
    const double chunks = static_cast<double>(c.chunks);
    const double pieces = PiecesPerChunk(cuts) * chunks;

    ChunkShape shape;
    bool       scratchKnown = false;
    bool       costKnown = false;
    double     kernelSeconds = 0;
    const int  slots[3][2] = { { 3, 2 }, { 2, 2 }, { 1, 1 } };
    for (const auto & slot : slots)
    {
      if (m_Request.oneAtATime && slot[0] > 1)
      {
        continue;
      }
      c.inputSlots = slot[0];
      c.outputSlots = slot[1];
      const double bytesOfBuffers = this->SetInput(c);
      c.deviceBytes = RoundUp(m_Request.fixedBytes);
      if (!m_Request.inPlace)
      {
        c.deviceBytes += static_cast<std::size_t>(c.inputSlots) * c.inputBytes +
                         static_cast<std::size_t>(c.outputSlots) * c.outputBytes;
      }
      const double load = c.bytesIn / m_ToDeviceRate + pieces * m_Request.pieceSeconds / devices;
      const double store = c.bytesOut / m_ToHostRate + pieces * m_Request.pieceSeconds / devices;
      const auto   estimate = [&](double kernel) { return this->Estimate(c, load, store, kernel); };
      const bool   loadsMore = bytesOfBuffers > m_MostBytes;
      // A region that is one chunk loads nothing twice. Without a kernel's time known, what the link takes at least.
      if (c.deviceBytes > m_Memory || (loadsMore && (!m_Request.cost || m_IsWhole)) ||
          estimate(kernelSeconds) >= m_Best.seconds)
      {
        continue;
      }
      if (!scratchKnown)
      {
        shape = ShapeOf(m_Request, cuts);
        c.scratchBytes = m_Request.scratchBytes ? RoundUp(m_Request.scratchBytes(shape)) : 0;
        scratchKnown = true;
      }
      c.deviceBytes += c.scratchBytes;
      if (c.deviceBytes > m_Memory)
      {
        continue;
      }
      if (!costKnown)
      {
        const double traffic = m_Request.cost ? m_Request.cost(shape)
                                              : inputVoxels * m_InputVoxelBytes +
                                                  outputVoxels * static_cast<double>(OutputPixelSize(m_Request));
        kernelSeconds = traffic * chunks / m_MemoryRate;
        costKnown = true;
        m_IsWhole = m_IsWhole || c.chunks == 1;
        if (kernelSeconds > HopelessFactor * m_Best.seconds)
        {
          std::copy(cuts, cuts + MaxDimension, m_Hopeless);
          return;
        }
      }
      c.seconds = estimate(kernelSeconds);
      // Loads during longer kernels cost nothing.
      if (c.seconds < m_Best.seconds && !(loadsMore && kernelSeconds < std::max(load, store)))
      {
        m_Best = c;
      }
    }
  }

  const Candidate &
  GetBest() const
  {
    return m_Best;
  }
  /** Whose launches alone take no longer than the best run. */
  double
  GetMostChunks() const
  {
    return m_LaunchSeconds > 0 ? m_Best.seconds * static_cast<double>(m_Request.devices.size()) / m_LaunchSeconds
                               : std::numeric_limits<double>::infinity();
  }
  /** The memory that a shape needs with one buffer of each. */
  std::size_t
  NeedOf(const AxisCut (&cuts)[MaxDimension]) const
  {
    const ChunkShape shape = ShapeOf(m_Request, cuts);
    std::size_t      bytes = m_Request.scratchBytes ? RoundUp(m_Request.scratchBytes(shape)) : 0;
    bytes += RoundUp(m_Request.fixedBytes);
    if (!m_Request.inPlace)
    {
      auto inputVoxels = static_cast<std::size_t>(shape.inputBox.NumberOfVoxels());
      if (m_Request.mostInput)
      {
        inputVoxels =
          static_cast<std::size_t>(Box::FromExtent(m_Request.mostInput(shape.outputBox.Extents())).NumberOfVoxels());
      }
      const auto outputVoxels = static_cast<std::size_t>(shape.outputBox.NumberOfVoxels());
      for (int i = 0; i < m_Request.numberOfInputs; ++i)
      {
        bytes += RoundUp(inputVoxels * PixelSize(m_Request.inputKinds[i]));
      }
      bytes += RoundUp(outputVoxels * PixelSize(m_Request.outputKind));
    }
    return bytes;
  }
  std::size_t
  GetMemory() const
  {
    return m_Memory;
  }

private:
  /** Whether a chunk that holds one of this shape was far from the best: what surrounds chunks costs small ones more.
   */
  bool
  IsHopeless(const AxisCut (&cuts)[MaxDimension]) const
  {
    bool isWithin = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      isWithin = isWithin && cuts[a].extent <= m_Hopeless[a].extent;
    }
    return isWithin;
  }

  /** Contiguous pieces of the host's image that a chunk's input consists of. */
  double
  PiecesPerChunk(const AxisCut (&cuts)[MaxDimension]) const
  {
    double pieces = 1;
    bool   whole = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (!whole)
      {
        pieces *= static_cast<double>(cuts[a].inputExtent);
      }
      whole = whole && cuts[a].inputExtent == m_Request.image.Extent(a);
    }
    return pieces;
  }

  const PlannerRequest & m_Request;
  double                 m_InputVoxelBytes;
  std::size_t            m_Memory;
  double                 m_ToDeviceRate;
  double                 m_ToHostRate;
  double                 m_MemoryRate;
  double                 m_LaunchSeconds{ 0 };
  double                 m_MostBytes{ std::numeric_limits<double>::infinity() };
  Candidate              m_Best;
  AxisCut                m_Hopeless[MaxDimension]; ///< at first of no voxel
  bool                   m_IsWhole{ false };       ///< the region fits as one chunk
};

} // namespace

Box
InputBoxOf(const Box & outputBox, const PlannerRequest & request)
{
  if (request.inputBox && !outputBox.IsEmpty())
  {
    return request.inputBox(outputBox);
  }
  Box box = outputBox;
  for (int a = 0; a < MaxDimension; ++a)
  {
    InputInterval(request, a, box.lower[a], box.upper[a]);
  }
  return box;
}

double
BytesWithoutCarry(const PlannerRequest & request, const Coordinates & chunkExtent)
{
  double bytes = 0;
  for (int i = 0; i < request.numberOfInputs; ++i)
  {
    bytes += static_cast<double>(PixelSize(request.inputKinds[i]));
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    bytes *= static_cast<double>(CutAxis(request, a, chunkExtent[a]).inputSum);
  }
  return bytes;
}

std::vector<Chunk>
HalveChunk(const Chunk & chunk, int sweepAxis, const PlannerRequest & request)
{
  // A sweep's carry belongs to whole planes.
  int axis = request.sweepAxis >= 0 ? request.sweepAxis : sweepAxis;
  if (chunk.outputBox.Extent(axis) < 2 && request.sweepAxis < 0)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      axis = chunk.outputBox.Extent(a) > chunk.outputBox.Extent(axis) ? a : axis;
    }
  }
  const std::int64_t extent = chunk.outputBox.Extent(axis);
  if (extent < 2)
  {
    return {};
  }
  std::vector<Chunk> halves(2, chunk);
  halves[0].outputBox.upper[axis] = halves[1].outputBox.lower[axis] = chunk.outputBox.lower[axis] + (extent + 1) / 2;
  for (auto & half : halves)
  {
    half.inputBox = InputBoxOf(half.outputBox, request);
  }
  return halves;
}

std::vector<Chunk>
HalveChunks(const std::vector<Chunk> & chunks, int sweepAxis, const PlannerRequest & request)
{
  std::vector<Chunk> smaller;
  for (const Chunk & chunk : chunks)
  {
    const std::vector<Chunk> halves = HalveChunk(chunk, sweepAxis, request);
    if (halves.empty())
    {
      smaller.push_back(chunk);
    }
    smaller.insert(smaller.end(), halves.begin(), halves.end());
  }
  return smaller;
}

std::vector<Chunk>
SplitChunk(const Chunk & chunk, int splits, int sweepAxis, const PlannerRequest & request)
{
  std::vector<Chunk> parts(1, chunk);
  for (int i = 0; i < splits; ++i)
  {
    parts = HalveChunks(parts, sweepAxis, request);
  }
  return parts;
}

namespace
{

/** Chunks of this extent, or a little less, that are parts of one tile each: one in two tiles would need both. It is
 * the extent itself if no number from half of it on divides the tile. */
std::int64_t
PartOfTile(std::int64_t extent, std::int64_t tile)
{
  for (std::int64_t part = extent; extent < tile && 2 * part >= extent; --part)
  {
    if (tile % part == 0)
    {
      return part;
    }
  }
  return extent;
}

/** Ways to cut a region along each axis, from the largest extent on. */
struct AxisCuts
{
  AxisCuts(const PlannerRequest & request, bool cutsTiles);

  /** Calls visitCuts with a cut of each axis; not for shapes of more chunks than mostChunks() says when they come. */
  template <typename TVisit, typename TMost>
  void
  ForEachShape(const PlannerRequest & request, TVisit && visitCuts, TMost && mostChunks) const;
  template <typename TVisit>
  void
  ForEachShape(const PlannerRequest & request, TVisit && visitCuts) const
  {
    ForEachShape(request, visitCuts, [] { return std::numeric_limits<double>::infinity(); });
  }

  std::vector<AxisCut> axes[MaxDimension];
};

AxisCuts::AxisCuts(const PlannerRequest & request, bool cutsTiles)
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t whole = request.region.Extent(a);
    const bool         isKept = request.keepsComponents && a == MaxDimension - 1;
    const bool         mayCut = request.sweepAxis < 0 ? !isKept : request.sweepAxis == a;
    // Cuts across x cost the most (short rows), so few are tried there.
    const double ratio = a == 0 ? 1.5 : (a == 1 ? 1.3 : 1.2);
    for (const std::int64_t extent : mayCut ? CandidateExtents(whole, ratio) : std::vector<std::int64_t>{ whole })
    {
      std::int64_t rounded = extent;
      if (request.roundChunk)
      {
        Coordinates all = request.region.Extents();
        all[a] = extent;
        rounded = std::min(request.roundChunk(all)[a], whole);
      }
      if (request.tile[a] > 1 && (rounded > request.tile[a] || !cutsTiles))
      {
        rounded = std::min(CeilDivide(rounded, request.tile[a]) * request.tile[a], whole);
      }
      rounded = request.tile[a] < whole ? PartOfTile(rounded, request.tile[a]) : rounded;
      const AxisCut cut = CutAxis(request, a, rounded);
      if (axes[a].empty() || axes[a].back().extent != cut.extent)
      {
        axes[a].push_back(cut);
      }
    }
  }
}

template <typename TVisit, typename TMost>
void
AxisCuts::ForEachShape(const PlannerRequest & request, TVisit && visitCuts, TMost && mostChunks) const
{
  const auto visit = [&](const AxisCut(&cuts)[MaxDimension]) {
    if (!request.mostInput || request.inPlace)
    {
      return visitCuts(cuts);
    }
    AxisCut ofGrid[MaxDimension];
    std::copy(cuts, cuts + MaxDimension, ofGrid);
    SetMostInput(request, ofGrid);
    visitCuts(ofGrid);
  };
  // Along each axis the number of pieces grows.
  AxisCut    cuts[MaxDimension];
  const auto isTooMany = [&](double chunks) { return chunks > mostChunks(); };
  const auto countOf = [](const AxisCut & cut) { return static_cast<double>(cut.count); };
  for (const AxisCut & x : axes[0])
  {
    const double ofX = countOf(x);
    if (isTooMany(ofX))
    {
      break;
    }
    cuts[0] = x;
    for (const AxisCut & y : axes[1])
    {
      const double ofXY = ofX * countOf(y);
      if (isTooMany(ofXY))
      {
        break;
      }
      cuts[1] = y;
      for (const AxisCut & z : axes[2])
      {
        const double ofXYZ = ofXY * countOf(z);
        if (isTooMany(ofXYZ))
        {
          break;
        }
        cuts[2] = z;
        for (const AxisCut & c : axes[3])
        {
          cuts[3] = c;
          for (const AxisCut & t : axes[4])
          {
            if (isTooMany(ofXYZ * countOf(c) * countOf(t)))
            {
              break;
            }
            cuts[4] = t;
            visit(cuts);
          }
        }
      }
    }
  }
}

/** Throws BudgetError with the bytes that are enough. */
[[noreturn]] void
ThrowTooLittleMemory(const PlannerRequest & request, const AxisCuts & all, const Search & search)
{
  // The memory of a chunk does not shrink when it grows, but joining many small chunks may take more than joining a
  // few large ones.
  AxisCut smallest[MaxDimension];
  AxisCut largest[MaxDimension];
  for (int a = 0; a < MaxDimension; ++a)
  {
    smallest[a] = all.axes[a].back();
    largest[a] = all.axes[a].front();
  }
  std::size_t       needed = search.NeedOf(smallest);
  const std::size_t ofSmallest = needed;
  if (search.NeedOf(largest) < needed)
  {
    all.ForEachShape(request, [&](const auto & cuts) { needed = std::min(needed, search.NeedOf(cuts)); });
    // A run rounds up each of the many parts that it takes.
    needed = std::min(needed + needed / 32 + 512, ofSmallest);
  }
  throw BudgetError((needed < ofSmallest ? "the cheapest chunk needs " : "the smallest chunk needs ") +
                      std::to_string(needed) + " bytes of " + request.memoryName + " memory, more than the " +
                      request.memoryName + " budget of " + std::to_string(search.GetMemory()) + " bytes",
                    needed,
                    search.GetMemory());
}

/** The best way to cut; of a region with voxels. `cutsTiles`: chunks may be parts of tiles. */
Candidate
FindBestOf(const PlannerRequest & request, bool cutsTiles)
{
  if (request.devices.empty())
  {
    throw ParameterError("a plan needs at least one device");
  }
  const AxisCuts all(request, cutsTiles);
  Search         search(request);
  all.ForEachShape(request, [&search](const auto & cuts) { search.BoundBytes(cuts); });
  all.ForEachShape(
    request, [&search](const auto & cuts) { search.Try(cuts); }, [&search] { return search.GetMostChunks(); });
  const Candidate & best = search.GetBest();
  if (!std::isfinite(best.seconds))
  {
    ThrowTooLittleMemory(request, all, search);
  }
  return best;
}

/** The same. Chunks that are parts of tiles compute these several times, and load all of a tile for the first part, so
 * that transfers wait for kernels: they are the way out where whole tiles do not fit. */
Candidate
FindBestOnce(const PlannerRequest & request)
{
  if (request.tile != Coordinates::Filled(1))
  {
    try
    {
      return FindBestOf(request, false);
    }
    catch (const BudgetError &)
    {}
  }
  return FindBestOf(request, true);
}

/** The region as one chunk of the device with the least memory; false: it does not fit. */
bool
FindWhole(const PlannerRequest & request, Candidate & whole)
{
  PlannerRequest one = request;
  one.devices.assign(
    1,
    *std::min_element(request.devices.begin(),
                      request.devices.end(),
                      [](const PlannerDevice & a, const PlannerDevice & b) { return a.memory < b.memory; }));
  one.oneAtATime = true;
  try
  {
    whole = FindBestOnce(one);
    return whole.chunks == 1;
  }
  catch (const BudgetError &)
  {
    return false;
  }
}

Candidate
FindBest(const PlannerRequest & request)
{
  Candidate best;
  if (request.wholeIfItFits && !request.inPlace && FindWhole(request, best))
  {
    return best;
  }
  try
  {
    best = FindBestOnce(request);
  }
  catch (const BudgetError &)
  {
    if (!request.keepsComponents)
    {
      throw;
    }
    PlannerRequest apart = request;
    apart.keepsComponents = false;
    return FindBest(apart);
  }
  if (request.oneAtATime && !request.inPlace && best.chunks > 1)
  {
    // As it is cut anyway, chunks leave room for others that are loaded and stored meanwhile.
    PlannerRequest several = request;
    several.oneAtATime = false;
    best = FindBestOnce(several);
  }
  return best;
}

Plan
CutAs(const Candidate & best, const PlannerRequest & request)
{
  Plan plan;
  plan.sweepAxis = best.sweepAxis;
  plan.inputSlots = best.inputSlots;
  plan.outputSlots = best.outputSlots;
  plan.inputBytes = best.inputBytes;
  plan.outputBytes = best.outputBytes;
  plan.scratchBytes = best.scratchBytes;
  plan.deviceBytes = best.deviceBytes;
  plan.bytesToDevice = best.bytesIn;
  plan.bytesToHost = best.bytesOut;
  plan.seconds = best.seconds;
  plan.chunks.reserve(static_cast<std::size_t>(best.chunks));

  // Along the sweep axis first, then x to the slowest.
  int order[MaxDimension] = { best.sweepAxis };
  for (int a = 0, next = 1; a < MaxDimension; ++a)
  {
    plan.chunkExtent[a] = std::min(best.cuts[a].extent, request.region.Extent(a));
    if (a != best.sweepAxis)
    {
      order[next++] = a;
    }
  }
  Coordinates piece{};
  for (std::int64_t i = 0; i < best.chunks; ++i)
  {
    Chunk chunk;
    for (int a = 0; a < MaxDimension; ++a)
    {
      chunk.outputBox.lower[a] = request.region.lower[a] + piece[a] * best.cuts[a].extent;
      chunk.outputBox.upper[a] = std::min(chunk.outputBox.lower[a] + best.cuts[a].extent, request.region.upper[a]);
    }
    chunk.inputBox = InputBoxOf(chunk.outputBox, request);
    plan.chunks.push_back(chunk);
    for (const int a : order)
    {
      if (++piece[a] < best.cuts[a].count)
      {
        break;
      }
      piece[a] = 0;
    }
  }
  return plan;
}

/** Times as long as without limit from which a user is told, and from which a run is refused. */
constexpr double FactorToTell = 8;
constexpr double FactorToRefuse = 1000;
/** The time that nobody minds waiting. */
constexpr double SecondsOfNoMatter = 0.1;
/** Times as long as without limit that a user is advised to accept. */
constexpr double FactorToAdvise = 1.25;

std::size_t
MemoryOf(const PlannerRequest & request)
{
  std::size_t memory = std::numeric_limits<std::size_t>::max();
  for (const PlannerDevice & device : request.devices)
  {
    memory = std::min(memory, device.memory);
  }
  return memory;
}

PlannerRequest
WithMemory(PlannerRequest request, std::size_t bytes)
{
  for (PlannerDevice & device : request.devices)
  {
    device.memory = bytes;
  }
  return request;
}

/** Expected seconds; infinite if there is no plan. */
double
SecondsOf(const PlannerRequest & request)
{
  try
  {
    return FindBest(request).seconds;
  }
  catch (const BudgetError &)
  {
    return std::numeric_limits<double>::infinity();
  }
}

/** The memory from which on `isEnough`, which `most` is and 0 is not, to `part` of itself. */
template <typename TIsEnough>
std::size_t
FindLeast(std::size_t most, double part, TIsEnough && isEnough)
{
  std::size_t least = 0;
  while (most - least > std::max<std::size_t>(1, static_cast<std::size_t>(part * static_cast<double>(most))))
  {
    const std::size_t middle = least + (most - least) / 2;
    (isEnough(middle) ? most : least) = middle;
  }
  return most;
}

bool
IsHopeless(double seconds, double unlimited)
{
  return !std::isfinite(seconds) || (seconds > FactorToRefuse * unlimited && seconds - unlimited > SecondsOfNoMatter);
}

std::size_t
FindSufficient(const PlannerRequest & request, const Candidate & unlimited)
{
  return FindLeast(unlimited.deviceBytes, 0.01, [&](std::size_t bytes) {
    return SecondsOf(WithMemory(request, bytes)) <= FactorToAdvise * unlimited.seconds;
  });
}

/** The same function, which computes nothing twice. */
template <typename TResult>
std::function<TResult(const ChunkShape &)>
Remember(const std::function<TResult(const ChunkShape &)> & function)
{
  using Key = std::array<std::int64_t, 4 * MaxDimension>;
  if (!function)
  {
    return function;
  }
  return [function, known = std::make_shared<std::map<Key, TResult>>()](const ChunkShape & shape) {
    Key key{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t bounds[] = {
        shape.outputBox.lower[a], shape.outputBox.upper[a], shape.inputBox.lower[a], shape.inputBox.upper[a]
      };
      std::copy(std::begin(bounds), std::end(bounds), key.begin() + 4 * a);
    }
    const auto at = known->find(key);
    return at != known->end() ? at->second : known->emplace(key, function(shape)).first->second;
  };
}

/** For several plans of one request that differ in memory: many of their chunks are the same, and kernels may take long
 * to say what one costs. */
PlannerRequest
WithMemoryOfCosts(PlannerRequest request)
{
  request.scratchBytes = Remember(request.scratchBytes);
  request.cost = Remember(request.cost);
  return request;
}

/** "12", "3.4" */
std::string
FactorText(double factor)
{
  const auto tenths = static_cast<std::int64_t>(factor * 10 + 0.5);
  return std::to_string(tenths / 10) + (tenths < 100 ? "." + std::to_string(tenths % 10) : std::string());
}

} // namespace

Plan
MakePlan(const PlannerRequest & request)
{
  return request.region.IsEmpty() ? Plan() : CutAs(FindBest(request), request);
}

BudgetCost
FindBudgetCost(const PlannerRequest & asked)
{
  const PlannerRequest request = WithMemoryOfCosts(asked);
  BudgetCost           cost;
  if (request.region.IsEmpty())
  {
    return cost;
  }
  const Candidate unlimited = FindBest(WithMemory(request, std::numeric_limits<std::size_t>::max()));
  cost.factor = SecondsOf(request) / unlimited.seconds;
  cost.sufficient = FindSufficient(request, unlimited);
  return cost;
}

Plan
MakeReasonablePlan(const PlannerRequest & asked, std::vector<std::string> & warnings)
{
  if (asked.region.IsEmpty())
  {
    return Plan();
  }
  Candidate   best;
  std::string why;
  std::size_t least = 0;
  try
  {
    best = FindBest(asked);
    if (best.chunks < 2 || best.seconds <= SecondsOfNoMatter)
    {
      return CutAs(best, asked);
    }
  }
  catch (const BudgetError & error)
  {
    why = error.what();
    least = error.needed;
  }
  const PlannerRequest request = WithMemoryOfCosts(asked);
  const Candidate      unlimited = FindBest(WithMemory(request, std::numeric_limits<std::size_t>::max()));
  const auto           isHopeless = [&](double seconds) { return IsHopeless(seconds, unlimited.seconds); };
  const std::string    ofMemory = " bytes of " + request.memoryName + " memory";
  const std::string budget = "the " + request.memoryName + " budget of " + std::to_string(MemoryOf(request)) + " bytes";
  if (!why.empty() && !isHopeless(SecondsOf(WithMemory(request, least))))
  {
    throw BudgetError(why, least, MemoryOf(request));
  }
  if (!why.empty() || isHopeless(best.seconds))
  {
    least = FindLeast(
      unlimited.deviceBytes, 0, [&](std::size_t bytes) { return !isHopeless(SecondsOf(WithMemory(request, bytes))); });
    throw BudgetError(budget + " would cut the work into so many chunks that it took more than " +
                        FactorText(FactorToRefuse) + " times as long; " + std::to_string(least) + ofMemory +
                        " are needed, and " + std::to_string(FindSufficient(request, unlimited)) + " cost little time",
                      least,
                      MemoryOf(request));
  }
  const double factor = best.seconds / unlimited.seconds;
  if (factor > FactorToTell && best.seconds - unlimited.seconds > SecondsOfNoMatter)
  {
    warnings.push_back(budget + " makes the work about " + FactorText(factor) + " times as long; " +
                       std::to_string(FindSufficient(request, unlimited)) + ofMemory + " would avoid that");
  }
  return CutAs(best, request);
}

} // namespace chunkwise
