/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeconvolutionOnDevices_h
#define chunkwiseDeconvolutionOnDevices_h

#include "chunkwiseDeconvolutionOperation.h"
#include "chunkwiseDeconvolutionSteps.h"
#include "chunkwiseDevice.h"
#include "chunkwiseDeviceMemory.h"
#include "chunkwiseError.h"
#include "chunkwiseManager.h"
#include "chunkwiseRegions.h"
#include "chunkwiseThreads.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace chunkwise
{

/** A deconvolution whose images stay on devices between its iterations. All have the estimate's grid. Each device has
 * planes of them along the grid's slowest axis, whole tiles of the convolutions. Images that convolutions read have the
 * planes around, too, which come from the neighboring devices whenever they have changed. */
class DeconvolutionOnDevices
{
public:
  enum Image
  {
    Point,
    Next,
    Last,
    Ratio,
    Norm,
    Correction,
    Measured, ///< NaN where its weight is 0
    Weights,  ///< missing if they are 0 and 1
    Step,
    NumberOfImages
  };
  using Sums = DeconvolutionSumsOperation::Summary;
  /** Adds the report of a run of the manager. Called by one thread at a time. */
  using Reporter = std::function<void(const ExecutionReport & report)>;

  /** Takes as many of the devices as save time; nullptr if they have not the room, or not all kernels. */
  static std::unique_ptr<DeconvolutionOnDevices>
  Make(Manager & manager, const std::vector<int> & devices, const Budgets & budgets,
       const DeconvolutionOperation & operation, PixelKind kind, bool hasWeights, Reporter report);

  void
  Load(Image image, void * host);
  void
  Store(void * host, Image image);
  /** H y, and of it the ratio. Returns the divergence and the misfit. */
  Sums
  Blur(Monitor * monitor);
  /** H^T, and the next estimate. Returns what DeconvolutionSumsOperation says, if `sums`. */
  Sums
  Correct(bool isFirst, bool sums, Monitor * monitor);
  /** y = u + a (u - last u), and the last u becomes u. */
  void
  Extrapolate(double acceleration);

private:
  /** One device's planes. */
  struct Part
  {
    int                           device{ 0 };
    Box                           planes; ///< that it computes
    Box                           around; ///< that its convolutions read
    std::shared_ptr<DeviceMemory> images[NumberOfImages];
  };

  DeconvolutionOnDevices(Manager & manager, const Budgets & budgets, const DeconvolutionOperation & operation,
                         PixelKind kind, Reporter report);
  /** Divides the grid among the first `count` devices; false if it has not so many tiles, or the time that this saves
   * is not worth the work of handing planes on. */
  bool
  Divide(const std::vector<int> & devices, std::size_t count);
  /** False if a device has not the room. Throws Error, too, if it has not, or was lost. */
  bool
  Allocate(bool hasWeights);
  bool
  Has(Image image) const
  {
    return m_Parts.front().images[image] != nullptr;
  }
  const Box &
  BoxOf(const Part & part, Image image) const
  {
    return image < Norm ? part.around : part.planes;
  }
  BufferView
  ViewOf(const Part & part, Image image) const;
  static BufferView
  PartOf(BufferView view, const Box & box)
  {
    view.data =
      static_cast<char *>(view.data) + view.Offset(box.lower) * static_cast<std::int64_t>(PixelSize(view.kind));
    view.box = box;
    return view;
  }
  /** Calls body(part) for all parts at the same time. */
  template <typename TBody>
  void
  ForEachPart(TBody && body);
  /** `image` has changed: each device gets the planes around its part from the devices that computed them. */
  void
  HandOn(Image image);
  void
  Run(Part & part, std::shared_ptr<const Operation> operation, const std::vector<Image> & inputs, Image output,
      Monitor * monitor);
  void
  RunStep(Part & part, DeconvolutionStep step, const std::vector<Image> & inputs, Image output);
  /** Adds what the part has to `total`. */
  void
  SumUp(Part & part, DeconvolutionStep step, const std::vector<Image> & inputs, SideData & total);
  /** Adds the report of a run on the part's device. */
  void
  AddReport(const Part & part, ExecutionReport report)
  {
    const auto index = static_cast<std::size_t>(&part - m_Parts.data());
    if (report.deviceNames.size() == 1 && report.chunksPerDevice.size() == 1)
    {
      const std::int64_t chunks = report.chunksPerDevice[0];
      report.chunksPerDevice.assign(m_Parts.size(), 0);
      report.chunksPerDevice[index] = chunks;
      report.deviceNames.clear();
      for (const Part & one : m_Parts)
      {
        report.deviceNames.push_back(
          m_Manager.GetDevices()[static_cast<std::size_t>(one.device)]->GetDescription().name);
      }
    }
    const std::lock_guard<std::mutex> lock(m_Mutex);
    m_Report(report);
  }
  static Sums
  SumsOf(const SideData & total)
  {
    Sums sums{};
    if (!total.empty())
    {
      std::memcpy(&sums, total.data(), sizeof(sums));
    }
    return sums;
  }

  Manager &                        m_Manager;
  const Budgets                    m_Budgets;
  const bool                       m_Accelerates;
  const Box                        m_Grid;
  int                              m_Axis{ MaxDimension - 1 }; ///< along which devices divide the grid
  const PixelKind                  m_Kind;
  const Reporter                   m_Report;
  std::mutex                       m_Mutex;
  std::shared_ptr<const Operation> m_Forward;
  std::shared_ptr<const Operation> m_Backward;
  DeconvolutionParameters          m_Parameters;
  std::vector<Part>                m_Parts;
};

inline DeconvolutionOnDevices::DeconvolutionOnDevices(Manager & manager, const Budgets & budgets,
                                                      const DeconvolutionOperation & operation, PixelKind kind,
                                                      Reporter report)
  : m_Manager(manager)
  , m_Budgets(budgets)
  , m_Accelerates(operation.accelerates)
  , m_Grid(Box::FromExtent(operation.GetEstimateExtent()))
  , m_Kind(kind)
  , m_Report(std::move(report))
  , m_Forward(operation.MakeForward())
  , m_Backward(operation.MakeBackward())
{
  while (m_Axis > 0 && m_Grid.Extent(m_Axis) <= 1)
  {
    --m_Axis;
  }
  m_Parameters.isRatio = operation.method == DeconvolutionMethod::RichardsonLucy;
  m_Parameters.isProjected = operation.method == DeconvolutionMethod::ProjectedLandweber;
  m_Parameters.mayBeNegative = operation.method == DeconvolutionMethod::Landweber;
  m_Parameters.background = operation.background;
  m_Parameters.least = operation.leastExpected;
  m_Parameters.leastSeen = operation.GetLeastSeen();
  m_Parameters.relaxation = operation.relaxation;
}

inline std::unique_ptr<DeconvolutionOnDevices>
DeconvolutionOnDevices::Make(Manager & manager, const std::vector<int> & devices, const Budgets & budgets,
                             const DeconvolutionOperation & operation, PixelKind kind, bool hasWeights, Reporter report)
{
  std::unique_ptr<DeconvolutionOnDevices> made(
    new DeconvolutionOnDevices(manager, budgets, operation, kind, std::move(report)));
  for (const int device : devices)
  {
    const KernelRegistry & kernels = manager.GetDevices().at(static_cast<std::size_t>(device))->GetKernels();
    if (!kernels.Find("deconvolution.step") || !kernels.Find("deconvolution.sums", &KernelSet::summarize))
    {
      return nullptr;
    }
  }
  for (std::size_t count = devices.size(); count > 0; --count)
  {
    try
    {
      if (made->Divide(devices, count) && made->Allocate(hasWeights))
      {
        return made;
      }
    }
    catch (const Error &)
    {
      // Others have taken the memory meanwhile, or a device was lost: fewer may do.
    }
  }
  return nullptr;
}

inline bool
DeconvolutionOnDevices::Divide(const std::vector<int> & devices, std::size_t count)
{
  const Coordinates  extent = m_Grid.Extents();
  const std::int64_t all = extent[m_Axis];
  const std::int64_t tile = std::max(m_Forward->GetTile(extent)[m_Axis], m_Backward->GetTile(extent)[m_Axis]);
  const std::int64_t tiles = (all + tile - 1) / tile;
  const auto         parts = static_cast<std::int64_t>(count);
  if (tiles < parts)
  {
    return false;
  }
  if (count > 1)
  {
    // An iteration moves each image's bytes some 40 times; planes are handed on twice, by all devices.
    const DeviceDescription & device =
      m_Manager.GetDevices()[static_cast<std::size_t>(devices.front())]->GetDescription();
    const double bytes = static_cast<double>(m_Grid.NumberOfVoxels()) * static_cast<double>(PixelSize(m_Kind));
    const double seconds = 40 * bytes / device.memoryRate;
    if (seconds * static_cast<double>(tiles - (tiles + parts - 1) / parts) / static_cast<double>(tiles) <
        20 * device.launchSeconds)
    {
      return false;
    }
  }
  m_Parts.assign(count, Part());
  for (std::int64_t i = 0; i < parts; ++i)
  {
    Part & part = m_Parts[static_cast<std::size_t>(i)];
    part.device = devices[static_cast<std::size_t>(i)];
    part.planes = part.around = m_Grid;
    part.planes.lower[m_Axis] = i * tiles / parts * tile;
    part.planes.upper[m_Axis] = std::min(all, (i + 1) * tiles / parts * tile);
    const Box forward = GetInputBox(*m_Forward, part.planes, m_Grid);
    const Box backward = GetInputBox(*m_Backward, part.planes, m_Grid);
    part.around.lower[m_Axis] = std::min(forward.lower[m_Axis], backward.lower[m_Axis]);
    part.around.upper[m_Axis] = std::max(forward.upper[m_Axis], backward.upper[m_Axis]);
  }
  return true;
}

inline bool
DeconvolutionOnDevices::Allocate(bool hasWeights)
{
  const auto has = [&](int image) {
    return (image != Weights || hasWeights) && ((image != Last && image != Step) || m_Accelerates);
  };
  for (Part & part : m_Parts)
  {
    const KernelRegistry & kernels = m_Manager.GetDevices()[static_cast<std::size_t>(part.device)]->GetKernels();
    ChunkShape             shape;
    shape.image = m_Grid;
    shape.inputBox = part.around;
    shape.outputBox = part.planes;
    shape.inputKinds[0] = shape.outputKind = m_Kind;
    shape.numberOfInputs = 1;
    shape.kernels = &kernels;
    std::size_t scratch = 0;
    for (const auto & convolution : { m_Forward, m_Backward })
    {
      const Kernel * const kernel = kernels.Find(convolution->GetName());
      scratch = std::max(scratch, kernel && kernel->scratchBytes ? kernel->scratchBytes(*convolution, shape) : 0);
    }
    const auto bytesOf = [&](int image) {
      return DenseView(nullptr, m_Kind, this->BoxOf(part, static_cast<Image>(image))).NumberOfBytes();
    };
    // Beside the images a run has its scratch, or what is copied from the host; and tables.
    std::size_t needed = std::max(scratch, bytesOf(Point));
    for (int image = 0; image < NumberOfImages; ++image)
    {
      needed += has(image) ? bytesOf(image) : 0;
    }
    if (needed + needed / 16 > m_Manager.GetRoomOnDevice(part.device, m_Budgets))
    {
      return false;
    }
  }
  for (Part & part : m_Parts)
  {
    for (int image = 0; image < NumberOfImages; ++image)
    {
      if (has(image))
      {
        const Box & box = this->BoxOf(part, static_cast<Image>(image));
        part.images[image] =
          m_Manager.AllocateOnDevice(part.device, DenseView(nullptr, m_Kind, box).NumberOfBytes(), m_Budgets.device);
      }
    }
  }
  return true;
}

inline BufferView
DeconvolutionOnDevices::ViewOf(const Part & part, Image image) const
{
  return DenseView(part.images[image]->Get(), m_Kind, this->BoxOf(part, image));
}

template <typename TBody>
void
DeconvolutionOnDevices::ForEachPart(TBody && body)
{
  std::vector<std::exception_ptr> errors(m_Parts.size());
  RunTogether(m_Parts.size(), [&](std::size_t i) {
    try
    {
      body(m_Parts[i]);
    }
    catch (...)
    {
      errors[i] = std::current_exception();
    }
  });
  for (const std::exception_ptr & error : errors)
  {
    if (error)
    {
      std::rethrow_exception(error);
    }
  }
}

inline void
DeconvolutionOnDevices::HandOn(Image image)
{
  ForEachPart([&](Part & to) {
    Device &     device = *m_Manager.GetDevices()[static_cast<std::size_t>(to.device)];
    StreamHandle stream = nullptr;
    for (const Part & from : m_Parts)
    {
      const Box planes = Intersect(to.around, from.planes);
      if (&from == &to || planes.IsEmpty())
      {
        continue;
      }
      stream = stream ? stream : device.CreateStream();
      const BufferView target = PartOf(this->ViewOf(to, image), planes);
      device.CopyOnDevice(target.data,
                          PartOf(this->ViewOf(from, image), planes).data,
                          DenseView(nullptr, m_Kind, planes).NumberOfBytes(),
                          stream);
    }
    if (stream)
    {
      try
      {
        device.Synchronize(stream);
      }
      catch (...)
      {
        device.DestroyStream(stream);
        throw;
      }
      device.DestroyStream(stream);
    }
  });
}

inline void
DeconvolutionOnDevices::Load(Image image, void * host)
{
  ForEachPart([&](Part & part) {
    const Box &      box = this->BoxOf(part, image);
    ExecutionRequest request;
    request.operation = std::make_shared<IdentityOperation>();
    request.inputs = { PartOf(DenseView(host, m_Kind, m_Grid), box) };
    request.output = this->ViewOf(part, image);
    request.image = m_Grid;
    request.region = box;
    request.budgets = m_Budgets;
    request.copiesHostImages = true;
    this->AddReport(part, m_Manager.ExecuteOnDevice(request, part.device, nullptr));
  });
}

inline void
DeconvolutionOnDevices::Store(void * host, Image image)
{
  ForEachPart([&](Part & part) {
    ExecutionRequest request;
    request.operation = std::make_shared<IdentityOperation>();
    request.inputs = { this->ViewOf(part, image) };
    request.output = PartOf(DenseView(host, m_Kind, m_Grid), part.planes);
    request.image = m_Grid;
    request.region = part.planes;
    request.budgets = m_Budgets;
    request.copiesHostImages = true;
    this->AddReport(part, m_Manager.ExecuteOnDevice(request, part.device, nullptr));
  });
}

inline void
DeconvolutionOnDevices::Run(Part & part, std::shared_ptr<const Operation> operation, const std::vector<Image> & inputs,
                            Image output, Monitor * monitor)
{
  ExecutionRequest request;
  request.operation = std::move(operation);
  for (const Image input : inputs)
  {
    request.inputs.push_back(this->ViewOf(part, input));
  }
  request.output = this->ViewOf(part, output);
  request.image = m_Grid;
  request.region = part.planes;
  request.budgets = m_Budgets;
  this->AddReport(part, m_Manager.ExecuteOnDevice(request, part.device, nullptr, monitor));
}

inline void
DeconvolutionOnDevices::RunStep(Part & part, DeconvolutionStep step, const std::vector<Image> & inputs, Image output)
{
  const auto operation = std::make_shared<DeconvolutionStepOperation>();
  operation->step = step;
  operation->inputs = static_cast<int>(inputs.size());
  operation->parameters = m_Parameters;
  this->Run(part, operation, inputs, output, nullptr);
}

inline void
DeconvolutionOnDevices::SumUp(Part & part, DeconvolutionStep step, const std::vector<Image> & inputs, SideData & total)
{
  const auto operation = std::make_shared<DeconvolutionSumsOperation>();
  operation->step = step;
  operation->inputs = static_cast<int>(inputs.size());
  operation->parameters = m_Parameters;
  ExecutionRequest request;
  for (const Image input : inputs)
  {
    request.inputs.push_back(PartOf(this->ViewOf(part, input), part.planes));
  }
  request.operation = operation;
  request.image = m_Grid;
  request.region = part.planes;
  request.budgets = m_Budgets;
  request.imageDevice = part.device;
  ExecutionReport report;
  const SideData  summary = m_Manager.Summarise(request, nullptr, &report);
  this->AddReport(part, std::move(report));
  const std::lock_guard<std::mutex> lock(m_Mutex);
  if (total.empty())
  {
    total = summary;
  }
  else
  {
    operation->MergeSummary(total, summary);
  }
}

inline DeconvolutionOnDevices::Sums
DeconvolutionOnDevices::Blur(Monitor * monitor)
{
  SideData total;
  ForEachPart([&](Part & part) {
    this->Run(part, m_Forward, { Point }, Correction, &part == &m_Parts.front() ? monitor : nullptr);
    std::vector<Image> inputs = { Correction, Measured };
    if (part.images[Weights])
    {
      inputs.push_back(Weights);
    }
    this->SumUp(part, DeconvolutionStep::Ratio, inputs, total);
    this->RunStep(part, DeconvolutionStep::Ratio, inputs, Ratio);
  });
  this->HandOn(Ratio);
  return SumsOf(total);
}

inline DeconvolutionOnDevices::Sums
DeconvolutionOnDevices::Correct(bool isFirst, bool sums, Monitor * monitor)
{
  SideData   total;
  const bool hasLastStep = m_Accelerates && !isFirst;
  ForEachPart([&](Part & part) {
    this->Run(part, m_Backward, { Ratio }, Correction, &part == &m_Parts.front() ? monitor : nullptr);
    this->RunStep(part, DeconvolutionStep::Update, { Correction, Point, Norm }, Next);
    if (sums || hasLastStep)
    {
      std::vector<Image> inputs = { Next, Point };
      if (hasLastStep)
      {
        inputs.push_back(Step);
      }
      this->SumUp(part, DeconvolutionStep::Difference, inputs, total);
    }
    if (m_Accelerates)
    {
      this->RunStep(part, DeconvolutionStep::Difference, { Next, Point }, Step);
    }
    std::swap(part.images[Next], part.images[Point]);
  });
  this->HandOn(Point);
  return SumsOf(total);
}

inline void
DeconvolutionOnDevices::Extrapolate(double acceleration)
{
  m_Parameters.acceleration = acceleration;
  ForEachPart([&](Part & part) {
    this->RunStep(part, DeconvolutionStep::Point, { Point, Last }, Next);
    std::swap(part.images[Last], part.images[Point]);
    std::swap(part.images[Point], part.images[Next]);
  });
  this->HandOn(Point);
}

} // namespace chunkwise

#endif
