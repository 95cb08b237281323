/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseStandInRun.h"

#include "chunkwiseError.h"
#include "chunkwisePartMonitor.h"
#include "chunkwiseStatistics.h"
#include "itkChunkwiseExecutor.h"
#include "itkChunkwiseGeometry.h"
#include "itkChunkwiseMonitor.h"
#include "chunkwiseReconstructionOperation.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

namespace itk
{

namespace
{

/** Calls body(index, count) for the rows of a box along x, on several threads. */
template <typename TBody>
void
ForEachRow(chunkwise::Executor & executor, const chunkwise::Box & box, TBody && body)
{
  const std::int64_t length = box.Extent(0);
  const std::int64_t rows = length > 0 ? box.NumberOfVoxels() / length : 0;
  const std::int64_t rowsTogether = std::max<std::int64_t>(65536 / std::max<std::int64_t>(length, 1), 1);
  executor.ParallelFor((rows + rowsTogether - 1) / rowsTogether, [&](std::int64_t part, unsigned int) {
    for (std::int64_t row = part * rowsTogether; row < std::min((part + 1) * rowsTogether, rows); ++row)
    {
      chunkwise::Coordinates index = box.lower;
      std::int64_t           rest = row;
      for (int a = 1; a < chunkwise::MaxDimension; ++a)
      {
        index[a] += rest % box.Extent(a);
        rest /= box.Extent(a);
      }
      body(index, length);
    }
  });
}

/** `box` of the padded image whose voxel `padding` is voxel 0 of `view`, with `value` outside of `inside`. */
template <typename TPixel>
void
CopyPadded(chunkwise::Executor & executor, const chunkwise::BufferView & view, const chunkwise::Box & inside,
           const chunkwise::Coordinates & padding, TPixel value, const chunkwise::BufferView & padded)
{
  ForEachRow(executor, padded.box, [&](chunkwise::Coordinates index, std::int64_t length) {
    auto * const to = static_cast<TPixel *>(padded.data) + padded.Offset(index);
    bool         isOutside = false;
    for (int a = 0; a < chunkwise::MaxDimension; ++a)
    {
      index[a] -= padding[a];
      isOutside = isOutside || (a > 0 && (index[a] < inside.lower[a] || index[a] >= inside.upper[a]));
    }
    const std::int64_t first = isOutside ? index[0] + length : std::max(index[0], inside.lower[0]);
    const std::int64_t end = isOutside ? first : std::min(index[0] + length, inside.upper[0]);
    std::fill(to, to + (first - index[0]), value);
    if (first < end)
    {
      chunkwise::Coordinates from = index;
      from[0] = first;
      std::memcpy(to + (first - index[0]),
                  static_cast<const TPixel *>(view.data) + view.Offset(from),
                  static_cast<std::size_t>(end - first) * sizeof(TPixel));
      std::fill(to + (end - index[0]), to + length, value);
    }
  });
}

/** Whether a voxel of the region has its type's largest value. */
bool
HasMaximum(chunkwise::Executor & executor, const chunkwise::BufferView & view, const chunkwise::Box & region)
{
  return chunkwise::DispatchPixelType(view.kind, [&](auto pixel) {
    using PixelType = decltype(pixel);
    std::atomic<bool> has{ false };
    ForEachRow(executor, region, [&](const chunkwise::Coordinates & index, std::int64_t length) {
      const auto * const row = static_cast<const PixelType *>(view.data) + view.Offset(index);
      if (*std::max_element(row, row + length) == std::numeric_limits<PixelType>::max())
      {
        has = true;
      }
    });
    return has.load();
  });
}

/** Whether all voxels of a buffer are numbers. */
bool
IsFinite(chunkwise::Executor & executor, const chunkwise::BufferView & view)
{
  return chunkwise::DispatchPixelType(view.kind, [&](auto pixel) {
    using PixelType = decltype(pixel);
    std::atomic<bool> finite{ true };
    if constexpr (!std::is_integral<PixelType>::value)
    {
      ForEachRow(executor, view.box, [&](const chunkwise::Coordinates & index, std::int64_t length) {
        const auto * const row = static_cast<const PixelType *>(view.data) + view.Offset(index);
        if (!std::all_of(row, row + length, [](PixelType voxel) { return std::isfinite(voxel); }))
        {
          finite = false;
        }
      });
    }
    return finite.load();
  });
}

/** Makes standard deviations with the divisor n those with the divisor n - 1. */
template <typename TPixel>
void
DivideByOneLess(chunkwise::Executor & executor, const chunkwise::BufferView & view, const chunkwise::Box & region,
                const chunkwise::Coordinates & radius, const chunkwise::Box & image, bool isCut)
{
  const auto taps = [&](int a, std::int64_t i) {
    return isCut ? std::min(i + radius[a], image.upper[a] - 1) - std::max(i - radius[a], image.lower[a]) + 1
                 : 2 * radius[a] + 1;
  };
  ForEachRow(executor, region, [&](const chunkwise::Coordinates & index, std::int64_t length) {
    auto * const row = static_cast<TPixel *>(view.data) + view.Offset(index);
    std::int64_t others = 1;
    for (int a = 1; a < chunkwise::MaxDimension; ++a)
    {
      others *= taps(a, index[a]);
    }
    for (std::int64_t x = 0; x < length; ++x)
    {
      const auto n = static_cast<double>(others * taps(0, index[0] + x));
      row[x] = static_cast<TPixel>(static_cast<double>(row[x]) * std::sqrt(n / (n - 1)));
    }
  });
}

/** A kernel with an odd number of weights along each axis, the further ones 0, so that its center stays the center when
 * it is mirrored. */
chunkwise::KernelStack
MakeOdd(const chunkwise::KernelStack & stack, bool isMirrored)
{
  chunkwise::KernelStack odd;
  for (int a = 0; a < chunkwise::MaxDimension; ++a)
  {
    odd.extent[a] = stack.extent[a] | 1;
  }
  if (stack.kernels.empty())
  {
    return odd;
  }
  const chunkwise::BufferView to =
    chunkwise::DenseView(nullptr, chunkwise::PixelType::Float64, chunkwise::Box::FromExtent(odd.extent));
  odd.kernels.emplace_back(to.NumberOfBytes() / sizeof(double));
  for (std::size_t i = 0; i < stack.kernels.front().size(); ++i)
  {
    chunkwise::Coordinates at{};
    auto                   rest = static_cast<std::int64_t>(i);
    for (int a = 0; a < chunkwise::MaxDimension; ++a)
    {
      at[a] = rest % stack.extent[a];
      rest /= stack.extent[a];
      at[a] = isMirrored ? odd.extent[a] - 1 - at[a] : at[a];
    }
    odd.kernels.front()[static_cast<std::size_t>(to.Offset(at))] = stack.kernels.front()[i];
  }
  return odd;
}

/** Voxels from which on a run is no slower than ITK's: measured for each class, two to four thousand where ITK is
 * fastest. */
constexpr std::int64_t SmallestServed = 8192;

} // namespace

bool
ChunkwiseStandInRun::Prepare(const ChunkwiseStandInTask & task, const ChunkwiseStandInImages & images)
{
  using Level = ChunkwiseDropInSettings::Level;
  m_Task = task;
  m_Images = images;
  const std::int64_t smallest = m_Settings.smallest >= 0 ? m_Settings.smallest : SmallestServed;
  bool               isThin = false;
  bool               isPart = false;
  for (int a = 0; a < images.image.dimension; ++a)
  {
    isThin = isThin || images.image.extent[a] < 3 || images.region.Extent(a) < 3;
    isPart = isPart || images.region.Extent(a) < images.image.extent[a];
  }
  const std::int64_t voxels = images.region.NumberOfVoxels();
  if (m_Settings.level == Level::Off)
  {
    m_Refusal = "off";
  }
  else if (m_Settings.excluded.count(m_Filter.GetNameOfClass()) > 0)
  {
    m_Refusal = "left out";
  }
  else if (!task.refusal.empty())
  {
    m_Refusal = task.refusal;
  }
  else if (!task.exact && m_Settings.level != Level::Fast)
  {
    m_Refusal = "within a tolerance only, which is level fast";
  }
  else if (images.region.IsEmpty())
  {
    m_Refusal = "no voxels";
  }
  else if (voxels < smallest && !task.servesSmall)
  {
    m_Refusal = "fewer than " + std::to_string(smallest) + " voxels";
  }
  else if (isThin && task.isThinWrong)
  {
    m_Refusal = "fewer than three voxels along an axis";
  }
  else if (isPart && task.isPartWrong)
  {
    m_Refusal = "a part of the image";
  }
  if (!m_Refusal.empty())
  {
    return false;
  }
  if (task.deconvolves)
  {
    return this->PrepareDeconvolution();
  }

  chunkwise::FilterImage & image = m_Images.image;
  for (int a = 0; a < chunkwise::MaxDimension; ++a)
  {
    image.extent[a] += 2 * task.padding[a];
  }
  const chunkwise::Box whole = chunkwise::Box::FromExtent(images.image.extent);
  try
  {
    m_Operation = chunkwise::MakeFilterOperation(task.filter, task.parameters, image);
    std::vector<chunkwise::PixelType> kinds;
    for (const auto & input : images.inputs)
    {
      kinds.push_back(input.kind);
    }
    m_Operation->CheckKinds(kinds, image.outputKind);
    const chunkwise::Box needed = chunkwise::Intersect(
      ChunkwiseInputBox(*m_Operation, images.region, chunkwise::Box::FromExtent(image.extent)), whole);
    for (const auto & input : images.inputs)
    {
      if (!input.data || !input.box.Contains(needed))
      {
        m_Refusal = "an input's buffer has not all voxels";
        return false;
      }
    }
  }
  catch (const chunkwise::Error & error)
  {
    m_Refusal = error.what();
    return false;
  }
  if (task.hasMarker &&
      chunkwise::FindMarkerBeyondMask(task.byErosion, images.inputs[0], images.inputs[1], images.region))
  {
    m_Refusal = "the marker is beyond the mask";
    return false;
  }
  return true;
}

bool
ChunkwiseStandInRun::PrepareDeconvolution()
{
  const chunkwise::BufferView & input = m_Images.inputs.front();
  if (!input.data || !input.box.Contains(chunkwise::Box::FromExtent(m_Images.image.extent)))
  {
    m_Refusal = "an input's buffer has not all voxels";
    return false;
  }
  chunkwise::FilterImage grown = m_Images.image;
  grown.extent = m_Task.grown;
  grown.inputKind = grown.outputKind = chunkwise::PixelType::Float32;
  try
  {
    const auto kernel =
      std::get<std::shared_ptr<const chunkwise::KernelStack>>(m_Task.parameters.GetValues().at("KernelImage"));
    for (const bool isMirrored : { false, true })
    {
      chunkwise::FilterParameters parameters = m_Task.parameters;
      parameters.Set("KernelImage",
                     std::shared_ptr<const chunkwise::KernelStack>(
                       std::make_shared<chunkwise::KernelStack>(MakeOdd(*kernel, isMirrored))));
      (isMirrored ? m_Backward : m_Operation) = chunkwise::MakeFilterOperation(m_Task.filter, parameters, grown);
    }
  }
  catch (const chunkwise::Error & error)
  {
    m_Refusal = error.what();
  }
  return m_Refusal.empty();
}

bool
ChunkwiseStandInRun::Execute(const chunkwise::BufferView & output)
{
  try
  {
    this->Compute(output);
  }
  catch (const chunkwise::Error & error)
  {
    m_Refusal = error.what();
  }
  catch (const std::bad_alloc &)
  {
    m_Refusal = "no memory";
  }
  return m_Refusal.empty();
}

void
ChunkwiseStandInRun::Compute(const chunkwise::BufferView & output)
{
  const chunkwise::Box        whole = chunkwise::Box::FromExtent(m_Images.image.extent);
  const chunkwise::Box &      region = m_Images.region;
  ChunkwiseExecutor           executor(m_Filter.GetMultiThreader(), m_Filter.GetNumberOfWorkUnits());
  ChunkwiseMonitor            monitor(m_Filter);
  chunkwise::ExecutionRequest request;
  request.operation = m_Operation;
  request.inputs = m_Images.inputs;
  request.image = whole;
  request.region = region;
  request.output = output;
  request.backend = m_Settings.backend;
  request.executor = &executor;

  if (m_Task.spreads && !IsFinite(executor, request.inputs[0]))
  {
    m_Refusal = "an image with NaN or infinity";
    return;
  }

  std::unique_ptr<unsigned char[]> padded;
  if (m_Task.padding != chunkwise::Coordinates{})
  {
    chunkwise::Box unpadded = whole;
    for (int a = 0; a < chunkwise::MaxDimension; ++a)
    {
      const std::int64_t padding = m_Task.padding[a];
      unpadded.upper[a] -= 2 * padding;
      for (chunkwise::Box * const box : { &request.region, &request.output.box })
      {
        box->lower[a] += padding;
        box->upper[a] += padding;
      }
    }
    const chunkwise::BufferView input = request.inputs[0];
    chunkwise::BufferView       copy =
      chunkwise::DenseView(nullptr, input.kind, ChunkwiseInputBox(*m_Operation, request.region, request.image));
    padded.reset(new unsigned char[copy.NumberOfBytes()]);
    copy.data = padded.get();
    chunkwise::DispatchPixelType(input.kind, [&](auto pixel) {
      using PixelType = decltype(pixel);
      CopyPadded<PixelType>(executor, input, unpadded, m_Task.padding, m_Task.paddingValue.As<PixelType>(), copy);
    });
    request.inputs[0] = copy;
  }

  try
  {
    if (m_Task.deconvolves)
    {
      this->Deconvolve(output, executor, monitor);
    }
    else if (m_Task.iterationsOfGradient > 0)
    {
      this->Diffuse(request, monitor);
    }
    else
    {
      m_Backend = chunkwise::Manager::GetGlobal().Execute(request, &monitor).backend;
    }
  }
  catch (const chunkwise::Aborted &)
  {
    monitor.RethrowObserverException();
    ProcessAborted aborted(__FILE__, __LINE__);
    aborted.SetLocation(ITK_LOCATION);
    aborted.SetDescription("AbortGenerateData was set");
    throw aborted;
  }
  monitor.RethrowObserverException();

  if (m_Task.overflowsAtMaximum && HasMaximum(executor, output, region))
  {
    m_Refusal = "a result may be beyond its type";
  }
  if (m_Task.mustBeFinite && !IsFinite(executor, output))
  {
    m_Refusal = "a result is not finite";
  }
  if (m_Task.divisorIsLessOne)
  {
    const bool isCut = m_Task.parameters.GetValues().count("BoundaryCondition") == 0;
    output.kind == chunkwise::PixelType::Float32
      ? DivideByOneLess<float>(executor, output, region, m_Task.radius, whole, isCut)
      : DivideByOneLess<double>(executor, output, region, m_Task.radius, whole, isCut);
  }
}

void
ChunkwiseStandInRun::Deconvolve(const chunkwise::BufferView & output, chunkwise::Executor & executor,
                                chunkwise::Monitor & monitor)
{
  // ITK's DivideOrZeroOutImageFilter takes divisors below this for 0.
  constexpr double            leastDivisor = 1e-5;
  const chunkwise::BufferView input = m_Images.inputs.front();
  const chunkwise::Box        grid = chunkwise::Box::FromExtent(m_Task.grown);
  const auto                  count = static_cast<std::size_t>(grid.NumberOfVoxels());
  std::vector<float>          measured(count);
  std::vector<float>          ratio(count);
  std::vector<float>          correction(count);
  const auto                  viewOf = [&](std::vector<float> & voxels) {
    return chunkwise::DenseView(voxels.data(), chunkwise::PixelType::Float32, grid);
  };
  const chunkwise::BufferView view = viewOf(measured);
  chunkwise::DispatchPixelType(input.kind, [&](auto pixel) {
    using PixelType = decltype(pixel);
    ForEachRow(executor, grid, [&](const chunkwise::Coordinates & index, std::int64_t length) {
      chunkwise::Coordinates from{};
      for (int a = 1; a < chunkwise::MaxDimension; ++a)
      {
        from[a] = std::clamp<std::int64_t>(index[a] - m_Task.grownBelow[a], 0, m_Images.image.extent[a] - 1);
      }
      const auto * const row = static_cast<const PixelType *>(input.data) + input.Offset(from);
      float * const      to = measured.data() + view.Offset(index);
      for (std::int64_t x = 0; x < length; ++x)
      {
        to[x] =
          static_cast<float>(row[std::clamp<std::int64_t>(x - m_Task.grownBelow[0], 0, m_Images.image.extent[0] - 1)]);
      }
    });
  });
  std::vector<float> estimate = measured;
  m_Backend = "cpu";
  const double all = 2 * static_cast<double>(std::max<std::int64_t>(m_Task.iterations, 1));
  double       done = 0;
  const auto   convolve = [&](const std::shared_ptr<const chunkwise::Operation> & operation,
                            std::vector<float> &                                from,
                            std::vector<float> &                                to) {
    chunkwise::PartMonitor      part(&monitor, done / all, (done + 1) / all);
    chunkwise::ExecutionRequest request;
    request.operation = operation;
    request.inputs = { viewOf(from) };
    request.output = viewOf(to);
    request.image = request.region = grid;
    request.backend = m_Settings.backend;
    request.executor = &executor;
    m_Backend = chunkwise::Manager::GetGlobal().Execute(request, &part).backend;
    done += 1;
  };
  for (std::int64_t i = 0; i < m_Task.iterations; ++i)
  {
    convolve(m_Operation, estimate, ratio);
    ForEachRow(executor, grid, [&](const chunkwise::Coordinates & index, std::int64_t length) {
      const auto first = static_cast<std::size_t>(view.Offset(index));
      for (std::size_t k = first; k < first + static_cast<std::size_t>(length); ++k)
      {
        ratio[k] = static_cast<double>(ratio[k]) < leastDivisor ? 0.0F : measured[k] / ratio[k];
      }
    });
    convolve(m_Backward, ratio, correction);
    ForEachRow(executor, grid, [&](const chunkwise::Coordinates & index, std::int64_t length) {
      const auto first = static_cast<std::size_t>(view.Offset(index));
      for (std::size_t k = first; k < first + static_cast<std::size_t>(length); ++k)
      {
        estimate[k] *= correction[k];
      }
    });
  }
  ForEachRow(executor, m_Images.region, [&](const chunkwise::Coordinates & index, std::int64_t length) {
    chunkwise::Coordinates from = index;
    for (int a = 0; a < chunkwise::MaxDimension; ++a)
    {
      from[a] += m_Task.grownBelow[a];
    }
    const float * const row = estimate.data() + view.Offset(from);
    std::copy_n(row, length, static_cast<float *>(output.data) + output.Offset(index));
  });
}

void
ChunkwiseStandInRun::Diffuse(chunkwise::ExecutionRequest & request, chunkwise::Monitor & monitor)
{
  auto &                      manager = chunkwise::Manager::GetGlobal();
  const auto &                magnitude = *chunkwise::GetFilter(m_Task.filter).FindParameter("GradientMagnitude");
  const std::int64_t          together = m_Task.iterationsOfGradient;
  std::int64_t                runs = (m_Task.iterations + together - 1) / together;
  const auto                  all = static_cast<double>(2 * runs);
  chunkwise::FilterParameters parameters = m_Task.parameters;
  // The last run writes the output, the one before the other image, and so on.
  const chunkwise::BufferView output = request.output;
  chunkwise::BufferView       other = chunkwise::DenseView(nullptr, output.kind, request.image);
  std::vector<char>           memory(runs > 1 ? other.NumberOfBytes() : 0);
  other.data = memory.data();
  for (std::int64_t left = m_Task.iterations; left > 0; left -= together)
  {
    const auto             done = all - static_cast<double>(2 * runs);
    chunkwise::PartMonitor whole(&monitor, done / all, (done + 1) / all);
    chunkwise::PartMonitor part(&monitor, (done + 1) / all, (done + 2) / all);
    parameters.SetReal("GradientMagnitude", chunkwise::EstimateParameter(manager, request, magnitude, &whole).at(0));
    parameters.SetInteger("Iterations", std::min(left, together));
    request.operation = chunkwise::MakeFilterOperation(m_Task.filter, parameters, m_Images.image);
    request.output = --runs % 2 == 0 ? output : other;
    m_Backend = manager.Execute(request, &part).backend;
    request.inputs[0] = request.output;
  }
}

void
ChunkwiseStandInRun::Report() const
{
  if (m_Settings.reportFile.empty())
  {
    return;
  }
  std::string sizes;
  for (int a = 0; a < m_Images.image.dimension; ++a)
  {
    sizes += (a > 0 ? "x" : "") + std::to_string(m_Images.region.Extent(a));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - m_Begin).count();
  char         time[32];
  std::snprintf(time, sizeof(time), "%.6f", seconds);
  std::string reason = m_Refusal.empty() ? "-" : m_Refusal;
  std::replace(reason.begin(), reason.end(), '\t', ' ');
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  const std::string line = std::string(m_Filter.GetNameOfClass()) + '\t' +
                           (m_Refusal.empty() ? "served" : "not served") + '\t' + this->GetBackendUsed() + '\t' + time +
                           '\t' + sizes + '\t' + chunkwise::PixelTypeName(m_Images.image.inputKind) + '\t' +
                           chunkwise::PixelTypeName(m_Images.image.outputKind) + '\t' + reason + '\n';
  // One write that appends, so that lines of threads and programs do not mix.
  bool written = false;
  if (std::FILE * const file = std::fopen(m_Settings.reportFile.c_str(), "ab"))
  {
    std::setvbuf(file, nullptr, _IOFBF, line.size() + 1);
    written = std::fwrite(line.data(), 1, line.size(), file) == line.size();
    written = std::fclose(file) == 0 && written;
  }
  static std::atomic<bool> warned{ false };
  if (!written && !warned.exchange(true))
  {
    itkGenericOutputMacro(<< "CHUNKWISE_DROP_IN_REPORT: " << m_Settings.reportFile << " cannot be written");
  }
}

} // namespace itk
