/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseRunnerRun.h"

#include "chunkwiseError.h"
#include "chunkwiseStridedVoxels.h"

#include <cstring>

namespace chunkwise
{

namespace
{

/** An image of the host's memory behind the interfaces of files; of what is written it takes its own box. */
class ViewedImage
  : public ImageSource
  , public ImageSink
{
public:
  ViewedImage(const BufferView & view, const Coordinates & extent, const Box & region)
    : m_View(view)
    , m_Extent(extent)
    , m_Region(region)
  {}
  Coordinates
  GetExtent() const override
  {
    return m_Extent;
  }
  PixelType
  GetKind() const override
  {
    return m_View.kind;
  }
  ImageAccess
  GetAccess() const override
  {
    return ImageAccess();
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    Copy(box, m_View, view);
  }
  void
  Write(const Box & box, const BufferView & view) override
  {
    Copy(Intersect(box, m_Region), view, m_View);
  }
  void
  Finish() override
  {}

private:
  static void
  Copy(const Box & box, const BufferView & from, const BufferView & to)
  {
    if (box.IsEmpty())
    {
      return;
    }
    const auto size = static_cast<std::int64_t>(PixelSize(from.kind));
    const auto n = box.Extent(0);
    const auto rows = box.NumberOfVoxels() / n;
    for (std::int64_t row = 0; row < rows; ++row)
    {
      Coordinates  at = box.lower;
      std::int64_t rest = row;
      for (int a = 1; a < MaxDimension; ++a)
      {
        at[a] += rest % box.Extent(a);
        rest /= box.Extent(a);
      }
      const char * const source = static_cast<const char *>(from.data) + from.Offset(at) * size;
      char * const       target = static_cast<char *>(to.data) + to.Offset(at) * size;
      if (from.stride[0] == 1 && to.stride[0] == 1)
      {
        std::memcpy(target, source, static_cast<std::size_t>(n * size));
        continue;
      }
      CopyStrided(static_cast<std::size_t>(size), target, to.stride[0], source, from.stride[0], n);
    }
  }

  const BufferView  m_View;
  const Coordinates m_Extent;
  const Box         m_Region;
};

OutOfCoreRequest
MakeRunnerRequest(const ExecutionRequest & request, std::size_t limit)
{
  std::vector<PixelType> kinds;
  for (const BufferView & input : request.inputs)
  {
    kinds.push_back(input.kind);
  }
  request.operation->CheckKinds(kinds, request.output.kind);
  request.operation->Validate(request.image.Extents());
  CheckBackend(request.backend, *request.operation);
  OutOfCoreRequest result;
  result.operation = request.operation;
  for (const BufferView & input : request.inputs)
  {
    result.sources.push_back(std::make_shared<ViewedImage>(input, request.image.Extents(), request.image));
  }
  result.sink = std::make_shared<ViewedImage>(request.output, request.image.Extents(), request.region);
  result.hostBytes = limit;
  result.backend = request.backend;
  result.devices = request.devices;
  result.budgets = request.budgets;
  result.executor = request.executor;
  result.inMemory = &request;
  return result;
}

} // namespace

void
CheckDevices(const Manager & manager, const std::vector<int> & devices)
{
  const std::size_t count = manager.GetDevices().size();
  for (const int index : devices)
  {
    if (index < 0 || static_cast<std::size_t>(index) >= count)
    {
      throw ParameterError("Devices: there is no device " + std::to_string(index) + ", there are " +
                           std::to_string(count));
    }
  }
}

void
CheckBackend(BackendChoice backend, const Operation & operation)
{
  const std::string objection = backend == BackendChoice::CUDA ? operation.GetObjectionToDevices() : std::string();
  if (!objection.empty())
  {
    throw Error("Backend: CUDA is asked for, but no device can be used: " + objection);
  }
}

ExecutionReport
ExecuteByRunner(Manager & manager, const ExecutionRequest & request, std::size_t limit, Monitor * monitor)
{
  const OutOfCoreRequest ofRunner = MakeRunnerRequest(request, limit);
  if (request.region.IsEmpty())
  {
    ExecutionReport report;
    report.backend = "cpu";
    if (monitor)
    {
      monitor->UpdateProgress(1.0);
    }
    return report;
  }
  ExecutionReport report = request.operation->GetOutOfCoreRunner()->Run(manager, ofRunner, monitor).execution;
  report.plan.chunks = { { request.region, request.image } };
  report.plan.chunkExtent = request.region.Extents();
  report.chunksOnHost = report.backend == "cpu" ? 1 : 0;
  return report;
}

Plan
MakePlanOfRunner(Manager & manager, const ExecutionRequest & request, std::size_t limit)
{
  Plan plan;
  if (request.region.IsEmpty())
  {
    return plan;
  }
  const std::uint64_t bytes =
    request.operation->GetOutOfCoreRunner()->GetLeastHostBytes(manager, MakeRunnerRequest(request, limit));
  if (limit && bytes > limit)
  {
    throw BudgetError(request.operation->GetName() + " needs " + std::to_string(bytes) +
                        " bytes of host memory, more than the budget of " + std::to_string(limit) + " bytes",
                      bytes,
                      limit);
  }
  plan.chunks = { { request.region, request.image } };
  plan.chunkExtent = request.region.Extents();
  plan.deviceBytes = bytes;
  return plan;
}

} // namespace chunkwise
