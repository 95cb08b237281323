/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaDerivative.h"
#include "chunkwiseCudaDerivativePlanes.cuh"
#include "chunkwiseCudaMarchGrid.cuh"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseResourceCache.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace chunkwise
{

namespace
{

/** The output without the axis of components, of which a voxel has all. */
Box
SpatialBox(const DerivativeOperation & operation, Box output)
{
  if (const int axis = operation.componentAxis; axis >= 0)
  {
    output.upper[axis] = std::min(output.lower[axis] + 1, output.upper[axis]);
  }
  return output;
}

/** The voxels whose gradients the structure tensors of an output need. */
Box
GradientBox(const DerivativeOperation & operation, Box output, const Box & image)
{
  const Coordinates radius = operation.GetRadius(0);
  for (int a = 0; a < MaxDimension; ++a)
  {
    output.lower[a] -= radius[a];
    output.upper[a] += radius[a];
  }
  return operation.boundary.mode == BoundaryMode::Periodic ? output : Intersect(output, image);
}

/** Calls body(the least length of taps for which there are kernels and that holds a radius). */
template <typename TBody>
void
WithReach(std::int64_t radius, TBody && body)
{
  radius <= 4    ? body(std::integral_constant<int, 4>{})
  : radius <= 8  ? body(std::integral_constant<int, 8>{})
  : radius <= 12 ? body(std::integral_constant<int, 12>{})
                 : body(std::integral_constant<int, DerivativeReach>{});
}

/** The passes of an operation at one scale, over a box without the axis of components. */
struct DerivativeStage
{
  WindowBoxes boxes;
  /** The fields that each pass makes, and the fields or products that the first one reads. */
  std::vector<std::vector<DerivativeField>> fields;
  std::vector<DerivativeFactors>            factors;
  /** The first two passes are one kernel. */
  bool                planes{ false };
  DerivativePlaneJobs jobs{};
  std::size_t         planeBytes{ 0 }; ///< of shared memory

  DerivativeStage(const DerivativeOperation & operation, std::size_t scale, const Box & output, const Box & image,
                  std::size_t accumulatorBytes)
    : boxes(output, image, operation.GetRadius(scale), operation.boundary.mode)
  {
    const bool isOne = operation.result == DerivativeResult::Components && operation.componentAxis < 0;
    if (operation.gradient)
    {
      const auto size = static_cast<int>(operation.gradient->components.size());
      for (int row = 0; row < size; ++row)
      {
        for (int column = row; column < size; ++column)
        {
          factors.push_back({ row, column });
        }
      }
      if (isOne)
      {
        factors = { factors[static_cast<std::size_t>(operation.chosen)] };
      }
      std::vector<DerivativeField> each;
      for (std::size_t f = 0; f < factors.size(); ++f)
      {
        each.push_back({ static_cast<int>(f), 0 });
      }
      fields.assign(static_cast<std::size_t>(boxes.count), each);
    }
    else
    {
      for (int input = 0; input < operation.GetNumberOfInputs(); ++input)
      {
        factors.push_back({ input, -1 });
      }
      const auto chosen = static_cast<std::size_t>(operation.chosen);
      fields = MakeDerivativeFields(isOne ? std::vector<DerivativeOrders>{ operation.components[chosen] }
                                          : operation.components,
                                    { boxes.axes, boxes.axes + boxes.count },
                                    operation.ofVectors);
    }
    const bool isSurface = operation.result == DerivativeResult::Curvature;
    planes = accumulatorBytes == sizeof(float) && !operation.skipsNan && boxes.count == 3 && boxes.axes[2] == 2 &&
             (operation.TakesMatrix() ? fields.back().size() == 6 : !isSurface || fields.back().size() == MostStaged);
    for (int a = 0; a < 3; ++a)
    {
      planes = planes && boxes.radius[a] <= DerivativeReach;
    }
    planes = planes && MakePlaneJobs(fields, factors, jobs);
    if (planes)
    {
      int rings = 0;
      for (int j = 0; j < jobs.count; ++j)
      {
        rings = std::max(rings, jobs.jobs[j].count);
      }
      WithReach(std::max(boxes.radius[0], boxes.radius[1]),
                [&](auto reach) { planeBytes = DerivativePlaneStage<decltype(reach)::value>::Bytes(rings); });
      // Rows and planes are steps of 32 bits.
      planes = planeBytes <= SharedMemoryOfDevices() &&
               boxes.after[1].Extent(0) * boxes.after[1].Extent(1) <= std::numeric_limits<std::uint32_t>::max();
    }
  }

  /** Numbers from one field of a pass to the next. */
  std::int64_t
  Gap(int pass) const
  {
    return boxes.after[pass].NumberOfVoxels();
  }
  /** Bytes of the fields of all passes that are even, or odd. */
  std::size_t
  BytesOfFields(int parity, std::size_t accumulatorBytes) const
  {
    std::size_t most = 0;
    for (int pass = parity; pass + 1 < boxes.count; pass += 2)
    {
      const std::size_t numbers = fields[static_cast<std::size_t>(pass)].size() * static_cast<std::size_t>(Gap(pass));
      most = std::max(most, planes && pass == 0 ? 0 : RoundUp(numbers * accumulatorBytes));
    }
    return most;
  }
  std::size_t
  BytesOfFields(std::size_t accumulatorBytes) const
  {
    return BytesOfFields(0, accumulatorBytes) + BytesOfFields(1, accumulatorBytes);
  }
};

/** Whether the passes read the voxels of the image where they lie. */
bool
ReadsImage(PixelType kind, BoundaryMode mode, int inputs)
{
  return inputs == 1 && mode == BoundaryMode::Renormalized &&
         (kind == PixelType::Float32 || kind == PixelType::Float64);
}

/** Bytes of the voxels that the passes read otherwise. */
std::size_t
LoadedBytes(const DerivativeStage & stage, const DerivativeOperation & operation, PixelType kind,
            std::size_t accumulatorBytes)
{
  const int inputs = operation.GetNumberOfInputs();
  return ReadsImage(kind, operation.boundary.mode, inputs)
           ? 0
           : RoundUp(static_cast<std::size_t>(inputs * stage.boxes.padded.NumberOfVoxels()) * accumulatorBytes);
}

/** Whether the gradients of a structure tensor are continued beyond the image's edge. */
bool
ContinuesGradient(BoundaryMode mode)
{
  return mode != BoundaryMode::Renormalized && mode != BoundaryMode::Periodic;
}

std::size_t
BytesOfGradient(const DerivativeOperation & gradient, const Box & box, std::size_t accumulatorBytes)
{
  return RoundUp(gradient.components.size() * static_cast<std::size_t>(box.NumberOfVoxels()) * accumulatorBytes);
}

/** The gradient as an operation whose results are all stored. */
DerivativeOperation
WithComponents(const DerivativeOperation & gradient)
{
  DerivativeOperation all = gradient;
  // A number of no axis: all components lie one after the other.
  all.componentAxis = MaxDimension;
  return all;
}

/** The weights of an operation at one scale, here and on the device. */
template <typename TAcc>
class DerivativeTables
{
public:
  DerivativeTables(const KernelCall & call, const DerivativeOperation & operation, std::size_t scale)
    : m_Call(call)
    , m_Operation(operation)
    , m_Scale(scale)
    , m_Key(operation.GetKey() + (sizeof(TAcc) == 4 ? " f32 " : " f64 ") + std::to_string(scale) + " ")
  {}

  /** Those along axis `a`; `whole` gets those of windows that have all taps. */
  DerivativeAxis<TAcc>
  Along(int a, DerivativeWeights * whole = nullptr) const
  {
    // Never destroyed: runs may outlive static destruction in other threads.
    static auto &      cache = *new ResourceCache;
    const std::int64_t extent = m_Call.image.Extent(a);
    const std::string  key = m_Key + std::to_string(a) + " " + std::to_string(extent);
    const auto         held = cache.GetOrMake(key, [&] {
      auto table = std::make_shared<Table>(Make(a, extent));
      return ResourceCache::Entry{ table, table->weights.size() * sizeof(TAcc) };
    });
    const Table &      table = *static_cast<const Table *>(held.get());
    const auto * const weights =
      static_cast<const TAcc *>(Upload(key, table.weights.data(), table.weights.size() * sizeof(TAcc)));
    DerivativeAxis<TAcc> axis{ {},
                               m_Operation.GetNumberOfRows(m_Scale, a, extent),
                               extent,
                               m_Operation.GetRadius(m_Scale)[a],
                               m_Operation.scales[m_Scale].factor[a],
                               m_Operation.skipsNan };
    for (int order = 0; order <= DerivativeOperation::LargestOrder; ++order)
    {
      axis.weights[order] = table.begin[order] < 0 ? nullptr : weights + table.begin[order];
    }
    if (whole)
    {
      *whole = table.whole;
    }
    return axis;
  }
  /** Copies the last pass' components to the device. */
  const DerivativeComponent *
  Upload(const std::vector<DerivativeComponent> & components) const
  {
    return static_cast<const DerivativeComponent *>(
      Upload(m_Key + "components", components.data(), components.size() * sizeof(DerivativeComponent)));
  }

private:
  struct Table
  {
    std::vector<TAcc> weights;
    std::int64_t      begin[DerivativeOperation::LargestOrder + 1];
    DerivativeWeights whole;
  };

  const void *
  Upload(const std::string & key, const void * data, std::size_t bytes) const
  {
    return m_Call.tables->Get(key, data, bytes);
  }

  Table
  Make(int a, std::int64_t extent) const
  {
    Table              table{};
    const std::int64_t radius = m_Operation.GetRadius(m_Scale)[a];
    const std::int64_t rows = m_Operation.GetNumberOfRows(m_Scale, a, extent);
    const std::int64_t middle = (rows > 1 ? std::min(radius, rows - 1) : 0) * (2 * radius + 1) + radius;
    table.whole.radius = static_cast<int>(radius);
    for (int order = 0; order <= DerivativeOperation::LargestOrder; ++order)
    {
      table.begin[order] = -1;
      if (std::none_of(m_Operation.components.begin(), m_Operation.components.end(), [&](const auto & orders) {
            return orders[static_cast<std::size_t>(a)] == order;
          }))
      {
        continue;
      }
      const std::vector<double> exact = m_Operation.GetTable(m_Scale, a, order, extent);
      table.begin[order] = static_cast<std::int64_t>(table.weights.size());
      table.weights.insert(table.weights.end(), exact.begin(), exact.end());
      for (std::int64_t t = 0; t <= std::min<std::int64_t>(radius, DerivativeReach); ++t)
      {
        table.whole.w[order][t] = static_cast<float>(exact[static_cast<std::size_t>(middle + t)]);
      }
    }
    return table;
  }

  const KernelCall &          m_Call;
  const DerivativeOperation & m_Operation;
  const std::size_t           m_Scale;
  const std::string           m_Key;
};

/** The fields that the first pass of a stage reads: the images as the accumulator holds them. `scratch` moves past what
 * is taken of it. */
template <typename TAcc>
DerivativeFields<TAcc>
LoadImage(const KernelCall & call, const DerivativeStage & stage, const DerivativeOperation & operation,
          char *& scratch)
{
  const BufferView &     input = call.inputs[0];
  const Box &            padded = stage.boxes.padded;
  const WindowBoundary & boundary = operation.boundary;
  const int              inputs = operation.GetNumberOfInputs();
  if (ReadsImage(input.kind, boundary.mode, inputs))
  {
    return { static_cast<const TAcc *>(input.data) + input.Offset(padded.lower), 0, padded, input.stride };
  }
  const std::int64_t gap = padded.NumberOfVoxels();
  TAcc * const       loaded = reinterpret_cast<TAcc *>(scratch);
  scratch += RoundUp(static_cast<std::size_t>(inputs * gap) * sizeof(TAcc));
  DispatchPixelType(input.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    if constexpr (std::is_same<RealOf<Pixel>, TAcc>::value)
    {
      for (int i = 0; i < inputs; ++i)
      {
        ContinueKernel<Pixel, TAcc><<<BlocksOfRows(padded), ThreadsOfRows(), 0, StreamOf(call)>>>(
          VoxelsOf<const Pixel>(call.inputs[i]),
          call.image,
          boundary.mode,
          static_cast<TAcc>(ConstantPixel<Pixel>(boundary.constant)),
          DenseVoxels(loaded + i * gap, padded));
        CheckLaunch("ContinueKernel");
      }
    }
  });
  return { loaded, gap, padded, StridesOf(padded) };
}

/** Gradients that lie dense in a box, one component after the other, as the first pass of a tensor's stage reads them.
 */
template <typename TAcc>
DerivativeFields<TAcc>
LoadGradient(const KernelCall & call, const DerivativeStage & stage, BoundaryMode mode, const TAcc * gradients,
             const Box & box, int components, char *& scratch)
{
  if (!ContinuesGradient(mode))
  {
    return { gradients, box.NumberOfVoxels(), box, StridesOf(box) };
  }
  const Box &        padded = stage.boxes.padded;
  const std::int64_t gap = padded.NumberOfVoxels();
  TAcc * const       continued = reinterpret_cast<TAcc *>(scratch);
  scratch += RoundUp(static_cast<std::size_t>(gap * components) * sizeof(TAcc));
  for (int c = 0; c < components; ++c)
  {
    ContinueKernel<TAcc, TAcc><<<BlocksOfRows(padded), ThreadsOfRows(), 0, StreamOf(call)>>>(
      DenseVoxels(gradients + c * box.NumberOfVoxels(), box),
      call.image,
      mode,
      TAcc(0),
      DenseVoxels(continued + c * gap, padded));
    CheckLaunch("ContinueKernel");
  }
  return { continued, gap, padded, StridesOf(padded) };
}

/** The passes along x, y and z in two kernels. */
void
RunPlanes(const KernelCall & call, const DerivativeOperation & operation, std::size_t scale,
          const DerivativeStage & stage, const DerivativeFields<float> & in, const DerivativeFinish & finish,
          char * scratch)
{
  const DerivativeTables<float> tables(call, operation, scale);
  DerivativePlaneJobs           jobs = stage.jobs;
  DerivativeColumnJobs          columns{};
  const auto                    x = tables.Along(0, &jobs.x);
  const auto                    y = tables.Along(1, &jobs.y);
  const auto                    z = tables.Along(2, &columns.z);
  const Box &                   between = stage.boxes.after[1];
  const Box &                   out = stage.boxes.after[2];
  float * const                 fields = reinterpret_cast<float *>(scratch);
  const std::int64_t            planes = between.NumberOfVoxels() / (between.Extent(0) * between.Extent(1));
  const std::int64_t            strips = (between.Extent(0) + StripWidth - 1) / StripWidth * planes * jobs.count;
  const std::int64_t            segment = PlaneSegment(strips, between.Extent(1), y.radius);
  WithReach(std::max(x.radius, y.radius), [&](auto reach) {
    const auto kernel = DerivativePlaneKernel<decltype(reach)::value>;
    AllowSharedMemory(kernel, stage.planeBytes);
    kernel<<<BlocksFor(strips * ((between.Extent(1) + segment - 1) / segment), 1),
             StripWidth,
             stage.planeBytes,
             StreamOf(call)>>>(x, y, jobs, in, between, fields, stage.Gap(1), segment);
  });
  CheckLaunch("DerivativePlaneKernel");
  for (const DerivativeField & component : stage.fields[2])
  {
    columns.fields[columns.count] = component.source;
    columns.orders[columns.count++] = component.order;
  }
  const DerivativeFields<float> made{ fields, stage.Gap(1), between, StridesOf(between) };
  const std::int64_t            columnBlocks =
    (out.NumberOfVoxels() / std::max<std::int64_t>(1, out.Extent(2)) + DerivativeColumns - 1) / DerivativeColumns;
  const auto run = [&](auto staged, auto reach) {
    constexpr int          count = decltype(staged)::value;
    constexpr std::int64_t length = DerivativeSegment<count>;
    constexpr std::size_t  bytes = count == 0 ? 0 : sizeof(DerivativeMatrixStage<std::max(count, 1)>);
    const std::int64_t     blocks = columnBlocks * ((out.Extent(2) + length - 1) / length);
    const auto             kernel = DerivativeColumnKernel<count, decltype(reach)::value>;
    kernel<<<BlocksFor(blocks, 1), DerivativeColumns, bytes, StreamOf(call)>>>(z, columns, made, out, finish);
  };
  WithReach(z.radius, [&](auto reach) {
    operation.TakesMatrix()                           ? run(std::integral_constant<int, 6>{}, reach)
    : operation.result == DerivativeResult::Curvature ? run(std::integral_constant<int, MostStaged>{}, reach)
                                                      : run(std::integral_constant<int, 0>{}, reach);
  });
  CheckLaunch("DerivativeColumnKernel");
}

/** The passes one after the other, and what is made of the last one's components. */
template <typename TAcc>
void
RunPasses(const KernelCall & call, const DerivativeOperation & operation, std::size_t scale,
          const DerivativeStage & stage, const DerivativeFields<TAcc> & image, const DerivativeFinish & finish,
          char * scratch)
{
  if constexpr (sizeof(TAcc) == 4)
  {
    if (stage.planes)
    {
      return RunPlanes(call, operation, scale, stage, image, finish, scratch);
    }
  }
  constexpr int                threads = 128;
  const DerivativeTables<TAcc> tables(call, operation, scale);
  const WindowBoxes &          boxes = stage.boxes;
  TAcc * const                 places[2]{ reinterpret_cast<TAcc *>(scratch),
                                          reinterpret_cast<TAcc *>(scratch + stage.BytesOfFields(0, sizeof(TAcc))) };
  DerivativeFields<TAcc>       in = image;
  const auto                   factorsOf = [&](int pass, const DerivativeField & field) {
    return pass == 0 ? stage.factors[static_cast<std::size_t>(field.source)] : DerivativeFactors{ field.source, -1 };
  };
  for (int pass = 0; pass < boxes.count; ++pass)
  {
    const int                  a = boxes.axes[pass];
    const Box &                box = boxes.after[pass];
    const DerivativeAxis<TAcc> axis = tables.Along(a);
    const auto &               fields = stage.fields[static_cast<std::size_t>(pass)];
    const unsigned int         blocks = BlocksFor(box.NumberOfVoxels(), threads);
    if (pass + 1 < boxes.count)
    {
      TAcc * const to = places[pass % 2];
      for (std::size_t f = 0; f < fields.size(); ++f)
      {
        DerivativePassKernel<TAcc>
          <<<blocks, threads, 0, StreamOf(call)>>>(axis,
                                                   in,
                                                   factorsOf(pass, fields[f]),
                                                   fields[f].order,
                                                   a,
                                                   box,
                                                   to + static_cast<std::int64_t>(f) * stage.Gap(pass));
        CheckLaunch("DerivativePassKernel");
      }
      in = { to, stage.Gap(pass), box, StridesOf(box) };
      continue;
    }
    std::vector<DerivativeComponent> components;
    for (const DerivativeField & field : fields)
    {
      components.push_back({ factorsOf(pass, field), field.order });
    }
    DerivativeFinishKernel<TAcc><<<blocks, threads, 0, StreamOf(call)>>>(
      axis, in, tables.Upload(components), static_cast<int>(components.size()), a, box, finish);
    CheckLaunch("DerivativeFinishKernel");
  }
}

/** The results that a call stores in its output. */
DerivativeFinish
FinishOf(const KernelCall & call, const DerivativeOperation & operation)
{
  DerivativeFinish finish{};
  finish.result = operation.result;
  finish.measure = operation.measure;
  finish.measure.contrast = operation.scales.front().contrast;
  finish.tensor = operation.tensor;
  finish.curvature = operation.curvature;
  finish.hasZeros = operation.result == DerivativeResult::Measure &&
                    operation.measure.measure == HessianMeasure::Objectness && operation.measure.objectDimension < 2;
  finish.out = call.output.data;
  finish.kind = call.output.kind;
  finish.stride = call.output.stride;
  if (const int axis = operation.componentAxis; axis >= 0)
  {
    finish.first = static_cast<int>(call.output.box.lower[axis]);
    finish.last = static_cast<int>(call.output.box.upper[axis]);
    finish.gap = call.output.stride[axis];
    return finish;
  }
  finish.first = operation.result == DerivativeResult::Components ? 0 : operation.chosen;
  finish.last = finish.first + 1;
  return finish;
}

/** The gradients of the voxels of `box`, one component after the other. */
template <typename TAcc>
void
RunGradient(const KernelCall & call, const DerivativeOperation & gradient, const Box & box, TAcc * to, char * scratch)
{
  const DerivativeStage        stage(gradient, 0, box, call.image, sizeof(TAcc));
  const DerivativeFields<TAcc> image = LoadImage<TAcc>(call, stage, gradient, scratch);
  DerivativeFinish             finish{};
  finish.result = DerivativeResult::Components;
  finish.last = static_cast<int>(gradient.components.size());
  finish.out = to;
  finish.kind = PixelTypeOf<TAcc>();
  finish.stride = StridesOf(box);
  finish.gap = box.NumberOfVoxels();
  RunPasses<TAcc>(call, gradient, 0, stage, image, finish, scratch);
}

template <typename TAcc>
void
RunDerivativeIn(const KernelCall & call)
{
  const auto &     operation = static_cast<const DerivativeOperation &>(*call.operation);
  const Box        output = SpatialBox(operation, call.output.box);
  DerivativeFinish finish = FinishOf(call, operation);
  char *           scratch = static_cast<char *>(call.scratch);
  if (operation.gradient)
  {
    const DerivativeOperation gradient = WithComponents(*operation.gradient);
    const DerivativeStage     stage(operation, 0, output, call.image, sizeof(TAcc));
    const Box                 box = GradientBox(operation, output, call.image);
    TAcc * const              gradients = reinterpret_cast<TAcc *>(scratch);
    scratch += BytesOfGradient(gradient, box, sizeof(TAcc));
    RunGradient(call, gradient, box, gradients, scratch);
    const DerivativeFields<TAcc> in = LoadGradient(
      call, stage, operation.boundary.mode, gradients, box, static_cast<int>(gradient.components.size()), scratch);
    return RunPasses<TAcc>(call, operation, 0, stage, in, finish, scratch);
  }
  for (std::size_t scale = 0; scale < operation.scales.size(); ++scale)
  {
    const DerivativeStage        stage(operation, scale, output, call.image, sizeof(TAcc));
    char *                       rest = scratch;
    const DerivativeFields<TAcc> image = LoadImage<TAcc>(call, stage, operation, rest);
    finish.measure.contrast = operation.scales[scale].contrast;
    RunPasses<TAcc>(call, operation, scale, stage, image, finish, rest);
    finish.keepsLargest = true;
  }
}

void
RunDerivative(const KernelCall & call)
{
  UsesDouble(call.inputs[0].kind) ? RunDerivativeIn<double>(call) : RunDerivativeIn<float>(call);
}

/** Bytes that the passes of a stage move, four taps counting as one. */
double
CostOf(const DerivativeStage & stage, std::size_t accumulatorBytes)
{
  double bytes = 0;
  for (int pass = 0; pass < stage.boxes.count; ++pass)
  {
    const double taps = static_cast<double>(2 * stage.boxes.radius[stage.boxes.axes[pass]] + 1);
    const double moved = stage.planes && pass == 0 ? 0 : 2 * static_cast<double>(accumulatorBytes);
    bytes += (moved + taps / 4) * static_cast<double>(stage.fields[static_cast<std::size_t>(pass)].size()) *
             static_cast<double>(stage.boxes.Before(pass).NumberOfVoxels());
  }
  return bytes;
}

KernelChoice
ChooseDerivative(const Operation & operation, const ChunkShape & shape)
{
  const auto &      derivative = static_cast<const DerivativeOperation &>(operation);
  const Box         output = SpatialBox(derivative, shape.outputBox);
  const PixelType   kind = shape.inputKinds[0];
  const std::size_t accumulatorBytes = UsesDouble(kind) ? 8 : 4;
  bool              planes = true;
  std::size_t       bytes = 0;
  double            cost = 0;
  for (std::size_t scale = 0; scale < derivative.scales.size(); ++scale)
  {
    const DerivativeStage stage(derivative, scale, output, shape.image, accumulatorBytes);
    planes = planes && stage.planes;
    cost += CostOf(stage, accumulatorBytes);
    std::size_t read = LoadedBytes(stage, derivative, kind, accumulatorBytes);
    if (derivative.gradient)
    {
      read = ContinuesGradient(derivative.boundary.mode)
               ? BytesOfGradient(*derivative.gradient, stage.boxes.padded, accumulatorBytes)
               : 0;
    }
    bytes = std::max(bytes, read + stage.BytesOfFields(accumulatorBytes));
  }
  if (derivative.gradient)
  {
    const DerivativeOperation gradient = WithComponents(*derivative.gradient);
    const Box                 box = GradientBox(derivative, output, shape.image);
    const DerivativeStage     stage(gradient, 0, box, shape.image, accumulatorBytes);
    cost += CostOf(stage, accumulatorBytes);
    bytes =
      BytesOfGradient(gradient, box, accumulatorBytes) +
      std::max(bytes, LoadedBytes(stage, gradient, kind, accumulatorBytes) + stage.BytesOfFields(accumulatorBytes));
  }
  return { planes ? "planes" : "passes", RunDerivative, bytes, cost };
}

} // namespace

void
RegisterCudaDerivative(KernelRegistry & registry)
{
  registry.Register("derivative", { MakeChoosingKernel<ChooseDerivative>(true) });
}

} // namespace chunkwise
