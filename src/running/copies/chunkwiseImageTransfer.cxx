/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseImageTransfer.h"

#include "chunkwiseError.h"
#include "chunkwiseRegions.h"
#include "chunkwiseSharedTurns.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

/** Between two looks whether to stop. */
constexpr std::int64_t SlabBytes = std::int64_t{ 256 } << 20;

} // namespace

ImageTransfer::ImageTransfer(ManagerState & manager, std::size_t device, const ExecutionRequest & request,
                             Monitor * monitor)
  : m_Request(request)
  , m_State(*manager.devices[device])
  , m_Monitor(monitor)
  , m_Context(m_Request, m_PlannerRequest, *manager.hostKernels)
{
  const bool hasOthers = SharedTurns::Get() != nullptr;
  if (!hasOthers)
  {
    m_State.pinned.ResetPeak();
  }
  m_Transfer = std::make_unique<StagedTransfer>(m_State, m_Context, manager.PinnedLimit(m_Request), hasOthers ? 2 : 1);
}

template <typename TCopy>
void
ImageTransfer::InSlabs(const BufferView & view, const Box & box, TCopy && copy)
{
  int slowest = MaxDimension - 1;
  while (slowest > 0 && box.Extent(slowest) <= 1)
  {
    --slowest;
  }
  const std::int64_t layers = box.Extent(slowest);
  const auto         bytes = static_cast<std::int64_t>(DenseView(nullptr, view.kind, box).NumberOfBytes());
  const std::int64_t together = std::max<std::int64_t>(SlabBytes / (bytes / layers), 1);
  for (std::int64_t layer = 0; layer < layers; layer += together)
  {
    if (m_Monitor && m_Monitor->ShouldAbort())
    {
      throw Aborted();
    }
    Box slab = box;
    slab.lower[slowest] = box.lower[slowest] + layer;
    slab.upper[slowest] = std::min(slab.lower[slowest] + together, box.upper[slowest]);
    copy(DenseSequence(view, slab, box), layer * (bytes / layers));
  }
}

void
ImageTransfer::ToDevice(void * to, const BufferView & from, const Box & box)
{
  InSlabs(from, box, [&](const DenseSequence & slab, std::int64_t begin) {
    m_Transfer->ToDevice(static_cast<char *>(to) + begin, slab);
  });
}

void
ImageTransfer::ToHost(const BufferView & to, const void * from, const Box & box)
{
  InSlabs(to, box, [&](const DenseSequence & slab, std::int64_t begin) {
    m_Transfer->ToHost(slab, static_cast<const char *>(from) + begin);
  });
}

StagedImages::StagedImages(ManagerState & manager, std::size_t device, ExecutionRequest & request, Monitor * monitor)
  : m_Manager(manager)
  , m_Device(device)
  , m_Request(request)
  , m_Monitor(monitor)
{
  const Box needed = GetInputBox(*request.operation, request.region, request.image);
  for (BufferView & input : request.inputs)
  {
    Hold(input, needed, m_Inputs);
  }
  if (request.operation->HasOutput())
  {
    Hold(request.output, request.region, m_Outputs);
  }
}

void
StagedImages::Hold(BufferView & view, const Box & box, std::vector<Image> & images)
{
  DeviceState & state = *m_Manager.devices[m_Device];
  if (!view.data || state.device->Owns(view.data, 1))
  {
    return;
  }
  const BufferView dense = DenseView(nullptr, view.kind, box);
  m_Blocks.push_back(state.HoldImage(dense.NumberOfBytes(), m_Manager.DeviceLimit(m_Device, m_Request)));
  images.push_back({ view, dense });
  images.back().onDevice.data = m_Blocks.back().Get();
  view = images.back().onDevice;
}

ImageTransfer &
StagedImages::GetTransfer()
{
  if (!m_Transfer)
  {
    m_Transfer = std::make_unique<ImageTransfer>(m_Manager, m_Device, m_Request, m_Monitor);
  }
  return *m_Transfer;
}

void
StagedImages::Load()
{
  for (const Image & image : m_Inputs)
  {
    GetTransfer().ToDevice(image.onDevice.data, image.onHost, image.onDevice.box);
    m_BytesToDevice += static_cast<double>(image.onDevice.NumberOfBytes());
  }
}

void
StagedImages::Store(ExecutionReport & report)
{
  report.bytesToDevice += m_BytesToDevice;
  for (const Image & image : m_Outputs)
  {
    GetTransfer().ToHost(image.onHost, image.onDevice.data, image.onDevice.box);
    report.bytesToHost += static_cast<double>(image.onDevice.NumberOfBytes());
  }
  report.peakPinned = std::max(report.peakPinned, m_Transfer ? m_Transfer->GetPeak() : 0);
}

} // namespace chunkwise
