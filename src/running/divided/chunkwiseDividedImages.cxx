/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDividedImages.h"

#include "chunkwiseDeviceHandles.h"
#include "chunkwiseRegions.h"
#include "chunkwiseThreads.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace chunkwise
{

std::vector<std::shared_ptr<const Operation>>
FindSteps(const std::shared_ptr<const Operation> & operation, PixelType input, PixelType output)
{
  const Schedule schedule = operation->GetSchedule();
  if (schedule == Schedule::Fixpoint)
  {
    return operation->AsSteps(input, output);
  }
  std::vector<std::shared_ptr<const Operation>> steps;
  if (schedule == Schedule::Independent && operation->GetNumberOfInputs() == 1)
  {
    steps = operation->AsSteps(input, output);
    if (steps.empty())
    {
      steps.push_back(operation);
    }
  }
  for (const auto & step : steps)
  {
    if (step->WrapsAround() || step->GetOutputGrid() || !step->HasOutput())
    {
      return {};
    }
  }
  return steps;
}

DividedImages::DividedImages(Manager & manager, const Budgets & budgets, const Box & grid)
  : m_Manager(manager)
  , m_Budgets(budgets)
  , m_Grid(grid)
  , m_Axis(MaxDimension - 1)
{
  while (m_Axis > 0 && grid.Extent(m_Axis) <= 1)
  {
    --m_Axis;
  }
}

bool
DividedImages::Divide(const std::vector<int> & devices, std::int64_t tile, const InputBoxFunction & inputBox)
{
  m_Images.clear();
  m_Parts.clear();
  const std::int64_t all = m_Grid.Extent(m_Axis);
  const std::int64_t tiles = (all + tile - 1) / tile;
  const auto         parts = static_cast<std::int64_t>(devices.size());
  if (tiles < parts)
  {
    return false;
  }
  for (std::int64_t i = 0; i < parts; ++i)
  {
    Part part;
    part.device = devices[static_cast<std::size_t>(i)];
    part.planes = m_Grid;
    part.planes.lower[m_Axis] = m_Grid.lower[m_Axis] + i * tiles / parts * tile;
    part.planes.upper[m_Axis] = m_Grid.lower[m_Axis] + std::min(all, (i + 1) * tiles / parts * tile);
    part.around = Intersect(inputBox(part.planes), m_Grid);
    m_Parts.push_back(part);
  }
  return true;
}

bool
DividedImages::Divide(const std::vector<int> & devices, const std::vector<std::shared_ptr<const Operation>> & steps)
{
  std::int64_t tile = 1;
  for (const auto & step : steps)
  {
    const std::int64_t ofStep = step->GetTile(m_Grid.Extents())[m_Axis];
    if (tile > 1 && ofStep > 1 && tile != ofStep)
    {
      return false;
    }
    tile = std::max(tile, ofStep);
  }
  return this->Divide(devices, tile, [&](const Box & planes) {
    Box around = planes;
    for (const auto & step : steps)
    {
      const Box needed = GetInputBox(*step, planes, m_Grid);
      for (int a = 0; a < MaxDimension; ++a)
      {
        around.lower[a] = std::min(around.lower[a], needed.lower[a]);
        around.upper[a] = std::max(around.upper[a], needed.upper[a]);
      }
    }
    return around;
  });
}

std::size_t
DividedImages::CountBytes(const Part & part, PixelType kind, bool hasAround)
{
  return DenseView(nullptr, kind, hasAround ? part.around : part.planes).NumberOfBytes();
}

DividedImages::Image
DividedImages::Add(PixelType kind, bool hasAround, Monitor * monitor)
{
  Held held;
  held.kind = kind;
  held.hasAround = hasAround;
  for (const Part & part : m_Parts)
  {
    held.memory.push_back(
      m_Manager.AllocateOnDevice(part.device, CountBytes(part, kind, hasAround), m_Budgets.device, monitor));
  }
  m_Images.push_back(std::move(held));
  return m_Images.size() - 1;
}

Device &
DividedImages::GetDevice(std::size_t part) const
{
  // The manager has it for as long as it lives.
  return *m_Manager.GetDevices()[static_cast<std::size_t>(m_Parts[part].device)];
}

BufferView
DividedImages::GetView(std::size_t part, Image image) const
{
  const Held & held = m_Images[image];
  return DenseView(held.memory[part]->Get(), held.kind, held.hasAround ? m_Parts[part].around : m_Parts[part].planes);
}

BufferView
DividedImages::GetPart(std::size_t part, Image image, const Box & box) const
{
  BufferView view = this->GetView(part, image);
  view.data = static_cast<char *>(view.data) + view.Offset(box.lower) * static_cast<std::int64_t>(PixelSize(view.kind));
  view.box = box;
  return view;
}

BufferView
DividedImages::GetPlanes(std::size_t part, Image image) const
{
  return this->GetPart(part, image, m_Parts[part].planes);
}

ExecutionRequest
DividedImages::MakeRequest(std::size_t part, std::shared_ptr<const Operation> operation,
                           const std::vector<Image> & inputs, Image output) const
{
  ExecutionRequest request;
  request.operation = std::move(operation);
  for (const Image input : inputs)
  {
    request.inputs.push_back(this->GetView(part, input));
  }
  request.output = this->GetView(part, output);
  request.image = m_Grid;
  request.region = m_Parts[part].planes;
  request.budgets = m_Budgets;
  return request;
}

void
DividedImages::ForEachPart(const std::function<void(std::size_t part)> & body) const
{
  RunTogether(m_Parts.size(), body);
}

void
DividedImages::Load(Image image, const BufferView & host, Monitor * monitor)
{
  ForEachPart([&](std::size_t part) {
    const Box & box = this->GetView(part, image).box;
    m_Manager.CopyToDevice(
      *m_Images[image].memory[part], 0, host, box, m_Grid, m_Budgets, part == 0 ? monitor : nullptr);
  });
}

void
DividedImages::Store(const BufferView & host, Image image, Monitor * monitor)
{
  ForEachPart([&](std::size_t part) {
    const Box & planes = m_Parts[part].planes;
    m_Manager.CopyToHost(host,
                         *m_Images[image].memory[part],
                         this->FindBegin(part, image, planes),
                         planes,
                         m_Grid,
                         m_Budgets,
                         part == 0 ? monitor : nullptr);
  });
}

void
DividedImages::LoadPlanes(Image image, const BufferView & host, const Box & box)
{
  for (std::size_t part = 0; part < m_Parts.size(); ++part)
  {
    const Box planes = Intersect(box, this->GetView(part, image).box);
    if (!planes.IsEmpty())
    {
      m_Manager.CopyToDevice(
        *m_Images[image].memory[part], this->FindBegin(part, image, planes), host, planes, m_Grid, m_Budgets);
    }
  }
}

void
DividedImages::StorePlanes(const BufferView & host, Image image, const Box & box)
{
  for (std::size_t part = 0; part < m_Parts.size(); ++part)
  {
    const Box planes = Intersect(box, m_Parts[part].planes);
    if (!planes.IsEmpty())
    {
      m_Manager.CopyToHost(
        host, *m_Images[image].memory[part], this->FindBegin(part, image, planes), planes, m_Grid, m_Budgets);
    }
  }
}

void
DividedImages::HandOn(Image image)
{
  ForEachPart([&](std::size_t to) {
    Device &                      device = this->GetDevice(to);
    std::unique_ptr<DeviceStream> stream;
    for (std::size_t from = 0; from < m_Parts.size(); ++from)
    {
      const Box planes = Intersect(m_Parts[to].around, m_Parts[from].planes);
      if (from == to || planes.IsEmpty())
      {
        continue;
      }
      if (!stream)
      {
        stream = std::make_unique<DeviceStream>(device);
      }
      device.CopyOnDevice(this->GetPart(to, image, planes).data,
                          this->GetPart(from, image, planes).data,
                          DenseView(nullptr, m_Images[image].kind, planes).NumberOfBytes(),
                          stream->Get());
    }
    if (stream)
    {
      device.Synchronize(stream->Get());
    }
  });
}

} // namespace chunkwise
