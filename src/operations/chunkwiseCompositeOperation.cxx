/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCompositeOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseFramedOperation.h"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseRunControls.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

/** The work of a composite for a chunk: the boxes that its stages read and write, and their places in scratch
 * memory. */
class CompositeLayout
{
public:
  CompositeLayout(const CompositeOperation & composite, const ChunkShape & shape)
    : stages(composite.GetStages())
    , m_Composite(composite)
    , m_Shape(shape)
    , m_Boxes(composite.GetStageBoxes(shape.outputBox, shape.image))
    , m_Kinds(composite.GetStageKinds(shape.inputKinds[0], shape.outputKind))
  {
    // A stage writes where nothing lies that is still to be read. Which stages share memory depends on no size, so that
    // the memory does not shrink when the chunk grows.
    const std::vector<std::size_t> readers = composite.GetLastReaders();
    std::vector<std::size_t>       busyUntil;
    std::vector<std::size_t>       bytes;
    for (const Stage & stage : stages)
    {
      m_HasVoxelKernels = m_HasVoxelKernels || !stage.operation;
    }
    for (std::size_t i = 0; i + 1 < stages.size(); ++i)
    {
      std::size_t slot = 0;
      while (slot < busyUntil.size() && busyUntil[slot] >= i)
      {
        ++slot;
      }
      busyUntil.resize(std::max(busyUntil.size(), slot + 1));
      bytes.resize(busyUntil.size());
      busyUntil[slot] = readers[i];
      const auto voxels = static_cast<std::size_t>(std::max<std::int64_t>(m_Boxes[i].NumberOfVoxels(), 0));
      bytes[slot] = std::max(bytes[slot], (voxels * PixelSize(m_Kinds[i]) + 255) / 256 * 256);
      m_Slots.push_back(slot);
    }
    for (const std::size_t size : bytes)
    {
      m_Offsets.push_back(imageBytes);
      imageBytes += size;
    }
  }

  const Operation &
  OperationOf(std::size_t i) const
  {
    return stages[i].operation ? *stages[i].operation : m_Composite;
  }

  const Kernel &
  KernelOf(std::size_t i) const
  {
    const std::string name = m_Composite.GetName();
    if (!m_Shape.kernels)
    {
      throw Error("\"" + name + "\" is to be run without the kernels that it is made of");
    }
    return m_Shape.kernels->Get(stages[i].operation ? stages[i].operation->GetName() : stages[i].voxelKernel, name);
  }

  /** The image that a stage makes; the last one's is the output. If the run's own images are interleaved, so are those
   * between stages, unless voxel-wise kernels use these, which take dense rows. */
  BufferView
  ViewOf(std::size_t i, const KernelCall & call) const
  {
    constexpr int last = MaxDimension - 1;
    if (IsFilledInPlace(i, call))
    {
      return call.output;
    }
    BufferView view = DenseView(static_cast<char *>(call.scratch) + m_Offsets[m_Slots[i]], m_Kinds[i], m_Boxes[i]);
    const std::int64_t components = view.box.Extent(last);
    const auto         areTogether = [&](const BufferView & other) {
      return other.stride[last] == 1 && other.stride[0] == components;
    };
    if (components > 1 && !m_HasVoxelKernels && areTogether(call.inputs[0]) && areTogether(call.output))
    {
      for (int a = 0; a < last; ++a)
      {
        view.stride[a] *= components;
      }
      view.stride[last] = 1;
    }
    return view;
  }

  /** Whether a stage writes to the output, where the last one then replaces what comes from empty windows: on the host,
   * where another pass through memory takes about as long as a window. */
  bool
  IsFilledInPlace(std::size_t i, const KernelCall & call) const
  {
    const Stage & filled = stages.back();
    return call.executor && filled.voxelKernel == "domain.filled.voxels" && filled.inputs[0] == static_cast<int>(i) &&
           m_Kinds[i] == call.output.kind && std::none_of(stages.begin(), stages.end() - 1, [&](const Stage & stage) {
             return std::count(stage.inputs.begin(), stage.inputs.end(), static_cast<int>(i)) > 0;
           });
  }

  ChunkShape
  ShapeOf(std::size_t i) const
  {
    ChunkShape shape = m_Shape;
    shape.outputBox = m_Boxes[i];
    shape.outputKind = m_Kinds[i];
    shape.numberOfInputs = static_cast<int>(stages[i].inputs.size());
    for (std::size_t k = 0; k < stages[i].inputs.size(); ++k)
    {
      const int input = stages[i].inputs[k];
      shape.inputKinds[k] =
        input < 0 ? m_Shape.inputKinds[Stage::Input(input)] : m_Kinds[static_cast<std::size_t>(input)];
    }
    const int first = stages[i].inputs[0];
    if (!stages[i].operation)
    {
      shape.inputBox = shape.outputBox;
    }
    else if (first >= 0)
    {
      shape.inputBox = m_Boxes[static_cast<std::size_t>(first)];
    }
    return shape;
  }

  std::size_t
  ScratchOf(std::size_t i) const
  {
    const Kernel & kernel = KernelOf(i);
    return kernel.scratchBytes ? kernel.scratchBytes(OperationOf(i), ShapeOf(i)) : 0;
  }

  double
  CostOf(std::size_t i) const
  {
    const Kernel &   kernel = KernelOf(i);
    const ChunkShape shape = ShapeOf(i);
    return kernel.cost ? kernel.cost(OperationOf(i), shape) : TrafficOf(shape);
  }

  /** The time of a stage in proportion to that of the others: a kernel that does not say what it costs is taken to go
   * over the chunk once for each axis of its window. */
  double
  WeightOf(std::size_t i) const
  {
    const Kernel &   kernel = KernelOf(i);
    const ChunkShape shape = ShapeOf(i);
    if (kernel.cost)
    {
      return kernel.cost(OperationOf(i), shape);
    }
    const Halo halo = stages[i].operation ? stages[i].operation->GetHalo(shape.image.Extents()) : Halo::None();
    double     passes = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      passes += halo.lower[a] > 0 || halo.upper[a] > 0 ? 1 : 0;
    }
    return passes * TrafficOf(shape);
  }

  const std::vector<Stage> stages;
  /** Bytes of all images between the stages; what a stage has for itself comes after them. */
  std::size_t imageBytes{ 0 };

private:
  static double
  TrafficOf(const ChunkShape & shape)
  {
    double bytes =
      static_cast<double>(shape.outputBox.NumberOfVoxels()) * static_cast<double>(PixelSize(shape.outputKind));
    for (int i = 0; i < shape.numberOfInputs; ++i)
    {
      bytes +=
        static_cast<double>(shape.inputBox.NumberOfVoxels()) * static_cast<double>(PixelSize(shape.inputKinds[i]));
    }
    return bytes;
  }

  const CompositeOperation &   m_Composite;
  const ChunkShape             m_Shape;
  const std::vector<Box>       m_Boxes;
  const std::vector<PixelType> m_Kinds;
  std::vector<std::size_t>     m_Slots;   ///< of each stage but the last
  std::vector<std::size_t>     m_Offsets; ///< of each slot
  bool                         m_HasVoxelKernels{ false };
};

const CompositeOperation &
CompositeOf(const Operation & operation)
{
  return static_cast<const CompositeOperation &>(operation);
}

std::size_t
CompositeScratchBytes(const Operation & operation, const ChunkShape & shape)
{
  const CompositeLayout layout(CompositeOf(operation), shape);
  std::size_t           most = 0;
  for (std::size_t i = 0; i < layout.stages.size(); ++i)
  {
    most = std::max(most, layout.ScratchOf(i));
  }
  return layout.imageBytes + most;
}

double
CompositeCost(const Operation & operation, const ChunkShape & shape)
{
  const CompositeLayout layout(CompositeOf(operation), shape);
  double                cost = 0;
  for (std::size_t i = 0; i < layout.stages.size(); ++i)
  {
    cost += layout.CostOf(i);
  }
  return cost;
}

/** Whether each of the stages takes pixels whose components lie side by side. */
bool
CompositeSupportsInterleaved(const Operation & operation, const ChunkShape & shape)
{
  const CompositeLayout layout(CompositeOf(operation), shape);
  for (std::size_t i = 0; i < layout.stages.size(); ++i)
  {
    const Operation * const stage = layout.stages[i].operation.get();
    const KernelSet * const kernels = stage ? shape.kernels->FindSet(stage->GetName()) : nullptr;
    if (!kernels || !kernels->supportsInterleaved || !kernels->supportsInterleaved(*stage, layout.ShapeOf(i)))
    {
      return false;
    }
  }
  return true;
}

/** The call of a stage, all but who is to be told of it. */
KernelCall
CallOf(std::size_t i, const CompositeLayout & layout, const KernelCall & call)
{
  const Stage & stage = layout.stages[i];
  KernelCall    part = call;
  part.operation = &layout.OperationOf(i);
  part.numberOfInputs = static_cast<int>(stage.inputs.size());
  for (std::size_t k = 0; k < stage.inputs.size(); ++k)
  {
    const int input = stage.inputs[k];
    part.inputs[k] =
      input < 0 ? call.inputs[Stage::Input(input)] : layout.ViewOf(static_cast<std::size_t>(input), call);
  }
  if (i + 1 < layout.stages.size())
  {
    part.output = layout.ViewOf(i, call);
  }
  part.writable = part.output.box;
  part.scratch = static_cast<char *>(call.scratch) + layout.imageBytes;
  part.scratchBytes = call.scratchBytes - layout.imageBytes;
  return part;
}

void
RunComposite(const KernelCall & call)
{
  const CompositeLayout layout(CompositeOf(*call.operation), ShapeOf(call));
  std::vector<double>   done(1, 0.0);
  for (std::size_t i = 0; i < layout.stages.size(); ++i)
  {
    done.push_back(done.back() + layout.WeightOf(i));
  }
  const std::int64_t voxels = call.output.box.NumberOfVoxels();
  // All stages together report each voxel of the output once.
  const auto reported = [&](std::size_t stages) {
    return stages == layout.stages.size() || done.back() <= 0
             ? voxels
             : static_cast<std::int64_t>(static_cast<double>(voxels) * (done[stages] / done.back()));
  };
  for (std::size_t i = 0; i < layout.stages.size(); ++i)
  {
    KernelCall   stage = CallOf(i, layout, call);
    ShareControl control(call.control, stage.output.box.NumberOfVoxels(), reported(i + 1) - reported(i));
    if (control.ShouldStop())
    {
      return;
    }
    stage.control = &control;
    layout.KernelOf(i).run(stage);
    if (!control.ShouldStop())
    {
      control.Complete();
    }
  }
}

} // namespace

std::string
CompositeOperation::GetObjection(const Operation & stage) const
{
  return stage.GetSchedule() == Schedule::Independent ? "" : "needs the whole image and cannot be run chunk by chunk";
}

void
BoxCompositeOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  CheckSameOrFloatingOutput(GetName(), inputs.at(0), output);
}

std::vector<Stage>
BoxCompositeOperation::WithWindows(std::vector<Stage> stages) const
{
  for (std::size_t i = 0; i < windows.size() && i < stages.size() && stages[i].operation; ++i)
  {
    stages[i].operation = windows[i];
  }
  return stages;
}

Kernel
MakeCompositeKernel()
{
  Kernel kernel;
  kernel.run = RunComposite;
  kernel.scratchBytes = CompositeScratchBytes;
  kernel.cost = CompositeCost;
  return kernel;
}

void
RegisterCompositeKernels(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.compute = MakeCompositeKernel();
  for (const char * const name : { "domain",
                                   "highpass",
                                   "localnormalization",
                                   "localthreshold",
                                   "masked",
                                   "measurescale",
                                   "range",
                                   "rollingball",
                                   "tophat",
                                   "unsharp",
                                   "wiener" })
  {
    registry.Register(name, kernels);
  }
  kernels.supportsInterleaved = CompositeSupportsInterleaved;
  registry.Register("sequence", kernels);
  RegisterFramedKernel(registry);
}

} // namespace chunkwise
