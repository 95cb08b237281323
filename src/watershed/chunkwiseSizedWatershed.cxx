/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseAreaMarkers.h"
#include "chunkwiseError.h"
#include "chunkwiseRunnerRun.h"
#include "chunkwiseSizedWatershed.h"
#include "chunkwiseStreamedOnDevice.h"
#include "chunkwiseWatershedBasins.h"

#include <algorithm>
#include <chrono>

// Watersheds of minima by the size of their basins: by a device that holds the image (chunkwiseWatershedBasins.h), or
// markers first, by the CPU, and then the watershed of these.
namespace chunkwise
{

namespace
{

/** One part in so many of the memory is for markers. */
constexpr std::uint64_t PartForMarkers = 16;
/** One part in so many is for basins that a device has found. */
constexpr std::uint64_t PartForBasins = 2;

/** The bytes that leave so many for all else. */
std::uint64_t
WithMarkers(std::uint64_t bytes)
{
  return bytes + bytes / (PartForMarkers - 1) + 1;
}

/** An image with the labels 1, 2, ... at given places, in ascending order. */
class MarkerImage : public ImageSource
{
public:
  MarkerImage(const WatershedOperation & operation, const std::vector<std::uint64_t> & places)
    : m_Operation(operation)
    , m_Places(places)
  {}
  Coordinates
  GetExtent() const override
  {
    return m_Operation.image;
  }
  PixelType
  GetKind() const override
  {
    return m_Places.size() > UINT32_MAX ? PixelType::UInt64 : PixelType::UInt32;
  }
  ImageAccess
  GetAccess() const override
  {
    return ImageAccess();
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    DispatchPixelType(view.kind, [&](auto pixel) {
      auto * const voxels = static_cast<decltype(pixel) *>(view.data);
      auto         place = m_Places.begin();
      Coordinates  at = box.lower;
      for (std::int64_t row = box.NumberOfVoxels() / std::max<std::int64_t>(1, box.Extent(0)); row > 0; --row)
      {
        const auto first = static_cast<std::uint64_t>(m_Operation.RasterIndex(at));
        auto *     to = voxels + view.Offset(at);
        for (std::int64_t x = 0; x < box.Extent(0); ++x)
        {
          to[x * view.stride[0]] = 0;
        }
        place = std::lower_bound(place, m_Places.end(), first);
        for (; place != m_Places.end() && *place - first < static_cast<std::uint64_t>(box.Extent(0)); ++place)
        {
          to[static_cast<std::int64_t>(*place - first) * view.stride[0]] =
            static_cast<decltype(pixel)>(place - m_Places.begin() + 1);
        }
        for (int a = 1; a < MaxDimension && ++at[a] == box.upper[a]; ++a)
        {
          at[a] = box.lower[a];
        }
      }
    });
  }

private:
  const WatershedOperation &         m_Operation;
  const std::vector<std::uint64_t> & m_Places;
};

/** The watershed of an image that a device holds. */
class SizedWatershedOnDevice : public WatershedOperation
{
public:
  explicit SizedWatershedOnDevice(const SizedWatershedOperation & operation)
    : WatershedOperation(operation.watershed)
  {
    sizes = std::make_shared<WatershedSizes>();
    sizes->size = operation.size;
    sizes->byVolume = operation.byVolume;
    sizes->unit = operation.unit;
  }
  Coordinates
  RoundChunk(const Coordinates &) const override
  {
    return image;
  }
  std::size_t
  GetSummaryBytes(const Box &, const std::vector<PixelType> &, PixelType) const override
  {
    return 0;
  }
};

class SizedWatershedRun
{
public:
  SizedWatershedRun(Manager & manager, const OutOfCoreRequest & request)
    : m_Manager(manager)
    , m_Request(request)
    , m_Operation(dynamic_cast<const SizedWatershedOperation &>(*request.operation))
    , m_OfMarkers(request)
    , m_OfWatershed(request)
    , m_Watershed(std::make_shared<WatershedOperation>(m_Operation.watershed))
  {
    m_OfMarkers.operation = m_Operation.MakeMarkerOperation();
    m_Watershed->hasMarkers = true;
    m_OfWatershed.operation = m_Watershed;
    m_OfWatershed.sources.insert(m_OfWatershed.sources.begin() + 1,
                                 std::make_shared<MarkerImage>(m_Operation.watershed, m_Markers.places));
  }

  std::uint64_t
  GetLeastBytes()
  {
    return WithMarkers(std::max(GetLeastBytesOfMarkers(m_OfMarkers), this->GetLeastBytesOfWatershed()));
  }

  OutOfCoreReport
  Run(Monitor * monitor)
  {
    OutOfCoreReport   report;
    const std::string failure = this->RunOnDevice(monitor, report);
    if (failure.empty())
    {
      return report;
    }
    report = this->RunOnHost(monitor);
    if (m_Request.backend == BackendChoice::CUDA)
    {
      report.execution.warnings.insert(report.execution.warnings.begin(), "the CPU finds the minima: " + failure);
    }
    return report;
  }

private:
  /** A device holds the image. Empty, or why it does not. */
  std::string
  RunOnDevice(Monitor * monitor, OutOfCoreReport & report)
  {
    const auto      onDevice = std::make_shared<SizedWatershedOnDevice>(m_Operation);
    StreamedRequest request;
    for (const std::shared_ptr<ImageSource> & source : m_Request.sources)
    {
      request.inputs.push_back({ source, source->GetKind() });
    }
    request.region = Box::FromExtent(m_Watershed->image);
    request.computedKind = request.writtenKind = m_Watershed->outputKind;
    request.sinkAccess = m_Request.sink->GetAccess();
    request.operation = onDevice;
    request.backend = m_Request.backend;
    request.devices = m_Request.devices;
    request.budgets = m_Request.budgets;
    request.budgets.host = 0;
    request.executor = m_Request.executor;
    request.fileThreads = m_Request.fileThreads;
    const std::uint64_t forBasins = m_Request.hostBytes / PartForBasins;
    request.memory = m_Request.hostBytes - forBasins;
    onDevice->sizes->mostMinima = m_Request.hostBytes ? forBasins / WatershedBasinTree::BytesOfBasin : UINT64_MAX;
    // Sums of 32 bits for each voxel.
    if (request.region.NumberOfVoxels() >= std::int64_t{ 1 } << 32)
    {
      return "the image has 2^32 voxels or more";
    }
    const std::vector<int> devices = FindHoldingDevices(m_Manager, request);
    if (devices.empty() && request.backend == BackendChoice::CUDA)
    {
      throw Error("Backend: CUDA is asked for, but no device can be used: " + m_Manager.GetReasonForNoDevices());
    }
    std::string failure = "no device can be used";
    for (const int device : devices)
    {
      bool         mayBeWritten = false;
      StreamedPlan plan;
      if (!PlanPartOnDevice(m_Manager, request, device, plan))
      {
        failure = "no device, or not the host beside it, has the memory for the image";
        continue;
      }
      try
      {
        HeldImages images(m_Manager, request, plan, monitor);
        report.reading = images.Load();
        report.execution = images.Compute();
        if (onDevice->sizes->hasTooManyMinima)
        {
          return "the image has more minima than there is memory for";
        }
        mayBeWritten = true;
        report.writing = images.Store(m_Request.sink).writing;
        return std::string();
      }
      catch (const BudgetError & error)
      {
        failure = error.what();
      }
      catch (const DeviceError & error)
      {
        if (mayBeWritten)
        {
          throw;
        }
        failure = error.what();
      }
    }
    return failure;
  }

  OutOfCoreReport
  RunOnHost(Monitor * monitor)
  {
    using Clock = std::chrono::steady_clock;
    const auto          start = Clock::now();
    const std::uint64_t forMarkers = m_Request.hostBytes / PartForMarkers;
    this->CheckMemory();
    m_OfMarkers.hostBytes = m_OfWatershed.hostBytes = m_Request.hostBytes - forMarkers;
    m_Markers.most = forMarkers / sizeof(std::uint64_t);
    m_Markers.places.reserve(static_cast<std::size_t>(m_Markers.most));
    DivisionMonitor first(monitor, 0, 2);
    FindAreaMarkers(m_OfMarkers, m_Markers, &first);
    CheckNumberOfBasins(m_Markers.count, m_Watershed->outputKind);
    if (m_Request.hostBytes && m_Markers.count > m_Markers.most)
    {
      const std::uint64_t bytes = m_Markers.count * sizeof(std::uint64_t);
      throw BudgetError(std::to_string(m_Markers.count) + " minima need " + std::to_string(bytes) +
                          " bytes of the host's memory, " + std::to_string(forMarkers) + " are there for them",
                        (bytes + 1) * PartForMarkers,
                        m_Request.hostBytes);
    }
    std::sort(m_Markers.places.begin(), m_Markers.places.end());
    const double    seconds = std::chrono::duration<double>(Clock::now() - start).count();
    DivisionMonitor second(monitor, 1, 2);
    OutOfCoreReport report;
    if (m_Request.inMemory)
    {
      report.execution = this->RunInMemory(&second);
    }
    else
    {
      report = m_Watershed->GetOutOfCoreRunner()->Run(m_Manager, m_OfWatershed, &second);
    }
    report.steps.emplace(report.steps.begin(), "finding minima", seconds);
    if (monitor)
    {
      monitor->UpdateProgress(1.0);
    }
    return report;
  }

  void
  CheckMemory()
  {
    const std::uint64_t least = m_Request.hostBytes ? this->GetLeastBytes() : 0;
    if (least > m_Request.hostBytes)
    {
      throw BudgetError(m_Operation.GetName() + " needs " + std::to_string(least) +
                          " bytes of host memory, more than the budget of " + std::to_string(m_Request.hostBytes) +
                          " bytes",
                        least,
                        m_Request.hostBytes);
    }
  }

  /** The watershed of an image in memory: its markers are one, too. `markers`, and `output` if a part of the labels is
   * wanted, get the room, unless it is for a plan. */
  ExecutionRequest
  MakeRequestInMemory(std::vector<unsigned char> * markers, std::vector<unsigned char> * output) const
  {
    const ImageSource & source = *m_OfWatershed.sources[1];
    ExecutionRequest    result = *m_Request.inMemory;
    result.operation = m_Watershed;
    result.region = result.image;
    const auto take = [&](std::vector<unsigned char> * room, PixelType kind) {
      room->resize(static_cast<std::size_t>(result.image.NumberOfVoxels()) * PixelSize(kind));
      return DenseView(room->data(), kind, result.image);
    };
    result.inputs.insert(result.inputs.begin() + 1,
                         markers ? take(markers, source.GetKind())
                                 : DenseView(result.inputs.front().data, source.GetKind(), result.image));
    if (!(m_Request.inMemory->region == result.image))
    {
      result.output =
        output ? take(output, result.output.kind) : DenseView(result.output.data, result.output.kind, result.image);
    }
    return result;
  }
  /** The bytes of the images that MakeRequestInMemory adds. */
  std::uint64_t
  GetBytesOfImages() const
  {
    const ExecutionRequest & request = *m_Request.inMemory;
    return static_cast<std::uint64_t>(request.image.NumberOfVoxels()) *
           (PixelSize(m_OfWatershed.sources[1]->GetKind()) +
            (request.region == request.image ? 0 : PixelSize(request.output.kind)));
  }
  std::uint64_t
  GetLeastBytesOfWatershed()
  {
    if (!m_Request.inMemory)
    {
      return m_Watershed->GetOutOfCoreRunner()->GetLeastHostBytes(m_Manager, m_OfWatershed);
    }
    ExecutionRequest request = this->MakeRequestInMemory(nullptr, nullptr);
    request.budgets.host = 1;
    try
    {
      m_Manager.MakePlanFor(request);
      return this->GetBytesOfImages() + 1;
    }
    catch (const BudgetError & error)
    {
      return this->GetBytesOfImages() + error.needed;
    }
  }
  ExecutionReport
  RunInMemory(Monitor * monitor)
  {
    std::vector<unsigned char> markers;
    std::vector<unsigned char> output;
    ExecutionRequest           request = this->MakeRequestInMemory(&markers, &output);
    request.budgets.host = m_OfWatershed.hostBytes ? m_OfWatershed.hostBytes - this->GetBytesOfImages() : 0;
    m_OfWatershed.sources[1]->Read(request.image, request.inputs[1]);
    const ExecutionReport report = m_Manager.Execute(request, monitor);
    if (!output.empty())
    {
      m_Request.sink->Write(request.image, request.output);
    }
    return report;
  }

  Manager &                                 m_Manager;
  const OutOfCoreRequest &                  m_Request;
  const SizedWatershedOperation &           m_Operation;
  OutOfCoreRequest                          m_OfMarkers;
  OutOfCoreRequest                          m_OfWatershed;
  const std::shared_ptr<WatershedOperation> m_Watershed;
  AreaMarkers                               m_Markers;
};

class SizedWatershedRunner : public OutOfCoreRunner
{
public:
  int
  GetNumberOfPasses() const override
  {
    return 3;
  }
  std::uint64_t
  GetLeastHostBytes(Manager & manager, const OutOfCoreRequest & request) const override
  {
    CheckDevices(manager, request.backend != BackendChoice::CPU ? request.devices : std::vector<int>());
    return SizedWatershedRun(manager, request).GetLeastBytes();
  }
  std::uint64_t
  GetBytesInMemory(const OutOfCoreRequest & request) const override
  {
    OutOfCoreRequest ofMarkers = request;
    ofMarkers.operation = dynamic_cast<const SizedWatershedOperation &>(*request.operation).MakeMarkerOperation();
    return WithMarkers(GetBytesOfMarkersInMemory(ofMarkers));
  }
  OutOfCoreReport
  Run(Manager & manager, const OutOfCoreRequest & request, Monitor * monitor) const override
  {
    CheckDevices(manager, request.backend != BackendChoice::CPU ? request.devices : std::vector<int>());
    return SizedWatershedRun(manager, request).Run(monitor);
  }
};

} // namespace

std::shared_ptr<AreaOperation>
SizedWatershedOperation::MakeMarkerOperation() const
{
  auto operation = std::make_shared<AreaOperation>();
  operation->image = watershed.image;
  operation->inputKind = operation->outputKind = watershed.inputKind;
  operation->axes = watershed.axes;
  operation->connectivity = watershed.connectivity;
  operation->size = size;
  operation->closing = true;
  operation->findsMarkers = true;
  operation->hasMask = watershed.hasMask;
  operation->attribute = byVolume ? AreaAttribute::Volume : AreaAttribute::Area;
  operation->unit = unit;
  operation->tileVoxels = tileVoxels;
  operation->blockVoxels = blockVoxels;
  return operation;
}

std::string
SizedWatershedOperation::GetKey() const
{
  return watershed.GetKey() + (byVolume ? " volume " : " area ") + std::to_string(size) + " of " +
         PixelValue(unit).ToText();
}

Halo
SizedWatershedOperation::GetHalo(const Coordinates & extent) const
{
  return this->MakeMarkerOperation()->GetHalo(extent);
}

void
SizedWatershedOperation::Validate(const Coordinates & extent) const
{
  watershed.Validate(extent);
  this->MakeMarkerOperation()->Validate(extent);
}

const OutOfCoreRunner *
SizedWatershedOperation::GetOutOfCoreRunner() const
{
  static const SizedWatershedRunner runner;
  return &runner;
}

} // namespace chunkwise
