/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeconvolutionOnDevices_h
#define chunkwiseDeconvolutionOnDevices_h

#include "chunkwiseDeconvolutionOperation.h"
#include "chunkwiseDeconvolutionStepper.h"
#include "chunkwiseDividedImages.h"
#include "chunkwiseError.h"
#include "chunkwiseRegions.h"

#include <algorithm>
#include <array>
#include <cstring>
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
    Ratio, ///< and the next estimate, which is made from it
    Last,
    Norm,
    Blurred,  ///< H y, or H^T of the ratio
    Measured, ///< NaN where its weight is 0
    Weights,  ///< missing if they are 0 and 1
    Step,
    NumberOfImages
  };
  using Sums = DeconvolutionSums;
  /** Adds the report of a run of the manager. Called by one thread at a time. */
  using Reporter = std::function<void(const ExecutionReport & report)>;

  /** Whether Make is expected to give one. */
  static bool
  HasRoom(Manager & manager, const std::vector<int> & devices, const Budgets & budgets,
          const DeconvolutionOperation & operation, PixelType kind, bool hasWeights);
  /** Takes as many of the devices as save time; nullptr if they have not the room, or not all kernels. */
  static std::unique_ptr<DeconvolutionOnDevices>
  Make(Manager & manager, const std::vector<int> & devices, const Budgets & budgets,
       const DeconvolutionOperation & operation, PixelType kind, bool hasWeights, Reporter report);

  /** Planes of an image from a dense view of the host, and into one. Measured and Weights are loaded before Weigh, and
   * Blurred with a start image before Start, unless Point is loaded, and Last and Step. */
  void
  LoadPlanes(Image image, const BufferView & host)
  {
    m_Images.LoadPlanes(m_Numbers[image], host, host.box);
  }
  void
  StorePlanes(const BufferView & host, Image image)
  {
    this->Synchronize();
    m_Images.StorePlanes(host, m_Numbers[image], host.box);
  }
  bool
  HasWeights() const
  {
    return m_HasWeights;
  }
  /** Norm is H^T w. */
  void
  Weigh(Monitor * monitor);
  /** Point, and Last, are the first estimate where enough is seen: the start image, or else `mean`. */
  void
  Start(bool hasImage, double mean);
  /** H y, and of it the ratio. TakeBlurSums gives the divergence and the misfit: at once, or after Correct, which waits
   * for nothing more. */
  void
  Blur(Monitor * monitor);
  Sums
  TakeBlurSums(bool isAfterCorrect)
  {
    if (!isAfterCorrect)
    {
      this->Synchronize();
    }
    return this->Take(DeconvolutionStepper::OfBlur);
  }
  /** H^T, and the next estimate. Returns the sums of the change, if `sums`, and of the steps, with acceleration. */
  Sums
  Correct(bool isFirst, bool sums, Monitor * monitor);
  /** y = u + a (u - last u), and the last u becomes u. */
  void
  Extrapolate(double acceleration);

private:
  DeconvolutionOnDevices(Manager & manager, const Budgets & budgets, const DeconvolutionOperation & operation,
                         PixelType kind, Reporter report);
  /** Divides the grid among the devices; false if it has not so many tiles, or the time that this saves is not worth
   * the work of handing planes on. */
  bool
  Divide(const std::vector<int> & devices);
  bool
  HasImage(int image, bool hasWeights) const
  {
    return (image != Weights || hasWeights) && ((image != Last && image != Step) || m_Accelerates);
  }
  bool
  HasRoom(bool hasWeights) const;
  /** Throws Error if a device has not the room, or was lost. */
  void
  Allocate(bool hasWeights);
  /** Divides the grid among the most of the devices with which that saves time and which have the room, and for which
   * `take` is true. */
  template <typename TTake>
  bool
  DivideAmongMost(const std::vector<int> & devices, bool hasWeights, TTake && take);
  static bool
  HasAround(int image)
  {
    return image < Norm;
  }
  /** Runs the operation over the planes of a part. */
  void
  Run(std::size_t part, std::shared_ptr<const Operation> operation, const std::vector<Image> & inputs, Image output,
      Monitor * monitor);
  using Total = DeconvolutionStepper::Total;
  void
  RunStep(std::size_t part, DeconvolutionStep step, const std::vector<Image> & inputs, Image output,
          Total total = DeconvolutionStepper::None);
  /** The total of all parts, whose step was the last one or one before a convolution. */
  Sums
  Take(Total total);
  /** Steps have ended. */
  void
  Synchronize()
  {
    for (const auto & stepper : m_Steppers)
    {
      stepper->Synchronize();
    }
  }
  /** The parts get planes of the image from each other. */
  void
  HandOn(Image image)
  {
    if (m_Steppers.size() > 1)
    {
      this->Synchronize();
      m_Images.HandOn(m_Numbers[image]);
    }
  }
  /** Adds the report of a run on the part's device. */
  void
  AddReport(std::size_t index, ExecutionReport report)
  {
    const std::vector<DividedImages::Part> & parts = m_Images.GetParts();
    if (report.deviceNames.size() == 1 && report.chunksPerDevice.size() == 1)
    {
      const std::int64_t chunks = report.chunksPerDevice[0];
      report.chunksPerDevice.assign(parts.size(), 0);
      report.chunksPerDevice[index] = chunks;
      report.deviceNames.clear();
      for (const DividedImages::Part & part : parts)
      {
        report.deviceNames.push_back(
          m_Manager.GetDevices()[static_cast<std::size_t>(part.device)]->GetDescription().name);
      }
    }
    const std::lock_guard<std::mutex> lock(m_Mutex);
    m_Report(report);
  }
  Manager &                        m_Manager;
  const Budgets                    m_Budgets;
  const bool                       m_Accelerates;
  const Box                        m_Grid;
  const PixelType                  m_Kind;
  const Reporter                   m_Report;
  std::mutex                       m_Mutex;
  std::shared_ptr<const Operation> m_Forward;
  std::shared_ptr<const Operation> m_Backward;
  DeconvolutionParameters          m_Parameters;
  DividedImages                    m_Images;
  /** The number of each image; missing ones have none. */
  std::array<DividedImages::Image, NumberOfImages> m_Numbers{};
  bool                                             m_HasWeights{ false };
  /** For each part. They end before the images go. */
  std::vector<std::unique_ptr<DeconvolutionStepper>> m_Steppers;
};

inline DeconvolutionOnDevices::DeconvolutionOnDevices(Manager & manager, const Budgets & budgets,
                                                      const DeconvolutionOperation & operation, PixelType kind,
                                                      Reporter report)
  : m_Manager(manager)
  , m_Budgets(budgets)
  , m_Accelerates(operation.accelerates)
  , m_Grid(Box::FromExtent(operation.GetEstimateExtent()))
  , m_Kind(kind)
  , m_Report(std::move(report))
  , m_Forward(operation.MakeForward())
  , m_Backward(operation.MakeBackward())
  , m_Parameters(DeconvolutionParameters::Of(operation))
  , m_Images(manager, budgets, m_Grid)
{}

template <typename TTake>
bool
DeconvolutionOnDevices::DivideAmongMost(const std::vector<int> & devices, bool hasWeights, TTake && take)
{
  for (const int device : devices)
  {
    const KernelRegistry & kernels = m_Manager.GetDevices().at(static_cast<std::size_t>(device))->GetKernels();
    if (!kernels.Find("deconvolution.step"))
    {
      return false;
    }
  }
  for (std::size_t count = devices.size(); count > 0; --count)
  {
    try
    {
      if (this->Divide({ devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(count) }) &&
          this->HasRoom(hasWeights))
      {
        take();
        return true;
      }
    }
    catch (const Error &)
    {
      // Others have taken the memory meanwhile, or a device was lost: fewer may do.
    }
  }
  return false;
}

inline bool
DeconvolutionOnDevices::HasRoom(Manager & manager, const std::vector<int> & devices, const Budgets & budgets,
                                const DeconvolutionOperation & operation, PixelType kind, bool hasWeights)
{
  return DeconvolutionOnDevices(manager, budgets, operation, kind, nullptr).DivideAmongMost(devices, hasWeights, [] {});
}

inline std::unique_ptr<DeconvolutionOnDevices>
DeconvolutionOnDevices::Make(Manager & manager, const std::vector<int> & devices, const Budgets & budgets,
                             const DeconvolutionOperation & operation, PixelType kind, bool hasWeights, Reporter report)
{
  std::unique_ptr<DeconvolutionOnDevices> made(
    new DeconvolutionOnDevices(manager, budgets, operation, kind, std::move(report)));
  const bool fits = made->DivideAmongMost(devices, hasWeights, [&] { made->Allocate(hasWeights); });
  return fits ? std::move(made) : nullptr;
}

inline bool
DeconvolutionOnDevices::Divide(const std::vector<int> & devices)
{
  const Coordinates  extent = m_Grid.Extents();
  const int          axis = m_Images.GetAxis();
  const std::int64_t tile = std::max(m_Forward->GetTile(extent)[axis], m_Backward->GetTile(extent)[axis]);
  const std::int64_t tiles = (extent[axis] + tile - 1) / tile;
  const auto         parts = static_cast<std::int64_t>(devices.size());
  if (parts > 1)
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
  return m_Images.Divide(devices, tile, [&](const Box & planes) {
    const Box forward = GetInputBox(*m_Forward, planes, m_Grid);
    const Box backward = GetInputBox(*m_Backward, planes, m_Grid);
    Box       both = planes;
    both.lower[axis] = std::min(forward.lower[axis], backward.lower[axis]);
    both.upper[axis] = std::max(forward.upper[axis], backward.upper[axis]);
    return both;
  });
}

inline bool
DeconvolutionOnDevices::HasRoom(bool hasWeights) const
{
  for (const DividedImages::Part & part : m_Images.GetParts())
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
    // Beside the images a run has its scratch, and tables.
    std::size_t needed = scratch;
    for (int image = 0; image < NumberOfImages; ++image)
    {
      needed += this->HasImage(image, hasWeights) ? DividedImages::CountBytes(part, m_Kind, HasAround(image)) : 0;
    }
    if (needed + needed / 16 > m_Manager.GetRoomOnDevice(part.device, m_Budgets))
    {
      return false;
    }
  }
  return true;
}

inline void
DeconvolutionOnDevices::Allocate(bool hasWeights)
{
  m_HasWeights = hasWeights;
  for (int image = 0; image < NumberOfImages; ++image)
  {
    if (this->HasImage(image, hasWeights))
    {
      m_Numbers[static_cast<std::size_t>(image)] = m_Images.Add(m_Kind, HasAround(image));
    }
  }
  m_Steppers.clear();
  for (const DividedImages::Part & part : m_Images.GetParts())
  {
    m_Steppers.push_back(std::make_unique<DeconvolutionStepper>(m_Manager, part.device, m_Budgets, m_Grid));
  }
}

inline void
DeconvolutionOnDevices::Run(std::size_t part, std::shared_ptr<const Operation> operation,
                            const std::vector<Image> & inputs, Image output, Monitor * monitor)
{
  std::vector<DividedImages::Image> numbers;
  for (const Image input : inputs)
  {
    numbers.push_back(m_Numbers[input]);
  }
  const ExecutionRequest request = m_Images.MakeRequest(part, std::move(operation), numbers, m_Numbers[output]);
  this->AddReport(
    part, m_Manager.ExecuteOnDevice(request, m_Images.GetParts()[part].device, m_Steppers[part]->GetStream(), monitor));
}

inline void
DeconvolutionOnDevices::RunStep(std::size_t part, DeconvolutionStep step, const std::vector<Image> & inputs,
                                Image output, Total total)
{
  std::vector<BufferView> views;
  for (const Image input : inputs)
  {
    views.push_back(m_Images.GetView(part, m_Numbers[input]));
  }
  if (total != DeconvolutionStepper::None)
  {
    m_Steppers[part]->Clear(total);
  }
  m_Steppers[part]->Run(
    step, m_Parameters, views, m_Images.GetView(part, m_Numbers[output]), m_Images.GetParts()[part].planes, total);
}

inline DeconvolutionOnDevices::Sums
DeconvolutionOnDevices::Take(Total total)
{
  Sums sums{};
  for (const auto & stepper : m_Steppers)
  {
    sums.Merge(stepper->Take(total));
  }
  return sums;
}

inline void
DeconvolutionOnDevices::Weigh(Monitor * monitor)
{
  m_Images.ForEachPart([&](std::size_t part) {
    this->RunStep(part,
                  DeconvolutionStep::Known,
                  m_HasWeights ? std::vector<Image>{ Measured, Weights } : std::vector<Image>{ Measured },
                  Ratio);
    // Later steps look at what H y is not asked for, too.
    this->RunStep(part, DeconvolutionStep::Known, { Measured }, Blurred);
  });
  this->HandOn(Ratio);
  m_Images.ForEachPart(
    [&](std::size_t part) { this->Run(part, m_Backward, { Ratio }, Norm, part == 0 ? monitor : nullptr); });
}

inline void
DeconvolutionOnDevices::Start(bool hasImage, double mean)
{
  const DeconvolutionParameters parameters = m_Parameters;
  // A correction by H^T w of itself, which is 1; Landweber adds none of it.
  m_Parameters.relaxation = 0;
  m_Parameters.start = mean;
  const std::vector<Image> inputs = hasImage ? std::vector<Image>{ Norm, Blurred, Norm } : std::vector<Image>{ Norm };
  const DeconvolutionStep  step = hasImage ? DeconvolutionStep::Update : DeconvolutionStep::Start;
  m_Images.ForEachPart([&](std::size_t part) {
    this->RunStep(part, step, inputs, Point);
    if (m_Accelerates)
    {
      this->RunStep(part, step, inputs, Last);
    }
  });
  m_Parameters = parameters;
  this->HandOn(Point);
}

inline void
DeconvolutionOnDevices::Blur(Monitor * monitor)
{
  std::vector<Image> inputs = { Blurred, Measured };
  if (m_HasWeights)
  {
    inputs.push_back(Weights);
  }
  m_Images.ForEachPart([&](std::size_t part) {
    this->Run(part, m_Forward, { Point }, Blurred, part == 0 ? monitor : nullptr);
    this->RunStep(part, DeconvolutionStep::Ratio, inputs, Ratio, DeconvolutionStepper::OfBlur);
  });
  this->HandOn(Ratio);
}

inline DeconvolutionOnDevices::Sums
DeconvolutionOnDevices::Correct(bool isFirst, bool sums, Monitor * monitor)
{
  const Total ofUpdate = sums && !m_Accelerates ? DeconvolutionStepper::OfChange : DeconvolutionStepper::None;
  // Without a step before only the sums of the change count.
  const std::vector<Image> steps =
    isFirst ? std::vector<Image>{ Ratio, Point } : std::vector<Image>{ Ratio, Point, Step };
  const bool sumsSteps = m_Accelerates && (sums || !isFirst);
  m_Images.ForEachPart([&](std::size_t part) {
    this->Run(part, m_Backward, { Ratio }, Blurred, part == 0 ? monitor : nullptr);
    this->RunStep(part, DeconvolutionStep::Update, { Blurred, Point, Norm }, Ratio, ofUpdate);
    if (m_Accelerates)
    {
      this->RunStep(part,
                    DeconvolutionStep::Difference,
                    steps,
                    Step,
                    sumsSteps ? DeconvolutionStepper::OfChange : DeconvolutionStepper::None);
    }
  });
  std::swap(m_Numbers[Ratio], m_Numbers[Point]);
  this->HandOn(Point);
  if (ofUpdate == DeconvolutionStepper::None && !sumsSteps)
  {
    return Sums{};
  }
  this->Synchronize();
  return this->Take(DeconvolutionStepper::OfChange);
}

inline void
DeconvolutionOnDevices::Extrapolate(double acceleration)
{
  m_Parameters.acceleration = acceleration;
  m_Images.ForEachPart(
    [&](std::size_t part) { this->RunStep(part, DeconvolutionStep::Point, { Point, Last }, Ratio); });
  std::swap(m_Numbers[Last], m_Numbers[Point]);
  std::swap(m_Numbers[Point], m_Numbers[Ratio]);
  this->HandOn(Point);
}

} // namespace chunkwise

#endif
