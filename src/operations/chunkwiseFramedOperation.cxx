/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFramedOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseRearrangeOperation.h"
#include "chunkwiseRunControls.h"
#include "chunkwiseSequenceOperation.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

Box
Moved(Box box, const Coordinates & by)
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    box.lower[a] += by[a];
    box.upper[a] += by[a];
  }
  return box;
}

RearrangeOutside
OutsideOf(BoundaryMode mode)
{
  switch (mode)
  {
    case BoundaryMode::Constant:
      return RearrangeOutside::Constant;
    case BoundaryMode::Mirror:
      return RearrangeOutside::Reflect;
    case BoundaryMode::MirrorCenter:
      return RearrangeOutside::Mirror;
    case BoundaryMode::Periodic:
      return RearrangeOutside::Wrap;
    default:
      return RearrangeOutside::Nearest;
  }
}

const FramedOperation &
FramedOf(const Operation & operation)
{
  return static_cast<const FramedOperation &>(operation);
}

/** Voxels of the framed image that are made at a time, where a slab and its halo are not more: hosts without a budget
 * take a whole image as one chunk, and need no other one beside it. */
constexpr std::int64_t MostAtOnce = std::int64_t{ 1 } << 23;

/** The chunk of the inner operation, and how the parts of the framed images that it reads are made. */
struct FramedChunk
{
  ChunkShape         shape;
  RearrangeOperation frame;

  FramedChunk(const FramedOperation & operation, const ChunkShape & whole)
    : shape(whole)
  {
    const Coordinates image = whole.image.Extents();
    const Halo        halo = operation.inner->GetHalo(image);
    const Coordinates before = operation.GetFrame(image).lower;
    frame.image = image;
    frame.output = operation.GetFramed(image);
    for (int a = 0; a < MaxDimension; ++a)
    {
      frame.offset[a] = -before[a];
      frame.outside[a] = OutsideOf(operation.modes[a]);
    }
    if (operation.marksImage)
    {
      shape.inputKinds[shape.numberOfInputs++] = PixelType::UInt8;
    }
    shape.image = Box::FromExtent(frame.output);
    shape.outputBox = Moved(whole.outputBox, halo.lower);
    shape.inputBox = PadAndCrop(shape.outputBox, halo, shape.image);
  }

  /** The axis across which slabs lie. */
  int
  GetAxis() const
  {
    int axis = MaxDimension - 1;
    while (axis > 0 && shape.outputBox.Extent(axis) == 1)
    {
      --axis;
    }
    return axis;
  }
  /** Planes of the output whose input is made at a time: at least as many as the halo has. */
  std::int64_t
  GetPlanesAtOnce() const
  {
    const int          axis = this->GetAxis();
    const std::int64_t read = shape.inputBox.Extent(axis);
    const std::int64_t plane = shape.inputBox.NumberOfVoxels() / read;
    return std::max<std::int64_t>({ MostAtOnce / plane, read - shape.outputBox.Extent(axis), 1 });
  }
  /** Bytes of an input of any slab. They do not shrink when the chunk grows. */
  std::size_t
  BytesOfInput(int input) const
  {
    const int          axis = this->GetAxis();
    const std::int64_t read = shape.inputBox.Extent(axis);
    const std::int64_t plane = shape.inputBox.NumberOfVoxels() / read;
    const std::int64_t halo = read - shape.outputBox.Extent(axis);
    const std::int64_t voxels = std::min(plane * read, MostAtOnce + plane * (2 * halo + 1));
    return (static_cast<std::size_t>(voxels) * PixelSize(shape.inputKinds[input]) + 255) / 256 * 256;
  }
  std::size_t
  BytesOfInputs() const
  {
    std::size_t bytes = 0;
    for (int i = 0; i < shape.numberOfInputs; ++i)
    {
      bytes += this->BytesOfInput(i);
    }
    return bytes;
  }
};

const Kernel &
InnerKernel(const FramedOperation & operation, const KernelRegistry & kernels)
{
  return kernels.Get(operation.inner->GetName(), operation.GetName());
}

/** Bytes of 1, as many as the image has voxels: all are the same one. */
BufferView
ViewOfOnes(const KernelCall & call)
{
  static const std::uint8_t one = 1;
  BufferView                ones;
  const void * const        data = call.executor ? &one : call.tables->Get("one", &one, sizeof(one));
  ones.data = const_cast<void *>(data); // it is only read
  ones.kind = PixelType::UInt8;
  ones.box = call.inputs[0].box;
  return ones;
}

/** A slab of the output. The beginning of the scratch is for its inputs, as large as those of `chunk`. */
void
RunSlab(const KernelCall & call, const FramedChunk & chunk)
{
  const auto &      operation = FramedOf(*call.operation);
  const FramedChunk slab(operation, ShapeOf(call));
  StopControl       stop(call.control);
  KernelCall        inner = call;
  std::size_t       bytes = 0;
  inner.operation = operation.inner.get();
  inner.numberOfInputs = slab.shape.numberOfInputs;
  for (int i = 0; i < inner.numberOfInputs; ++i)
  {
    RearrangeOperation arrange = slab.frame;
    KernelCall         frame = call;
    arrange.value = i == 0 ? operation.constant : operation.secondConstant;
    frame.operation = &arrange;
    frame.inputs[0] = i < call.numberOfInputs ? call.inputs[i] : ViewOfOnes(call);
    frame.numberOfInputs = 1;
    frame.output = DenseView(static_cast<char *>(call.scratch) + bytes, slab.shape.inputKinds[i], slab.shape.inputBox);
    frame.writable = frame.output.box;
    frame.control = &stop;
    frame.chosen = nullptr;
    call.kernels->Get("rearrange", operation.GetName()).run(frame);
    if (stop.ShouldStop())
    {
      return;
    }
    inner.inputs[i] = frame.output;
    bytes += chunk.BytesOfInput(i);
  }
  inner.output.box = slab.shape.outputBox;
  inner.writable = inner.output.box;
  inner.image = slab.shape.image;
  inner.scratch = static_cast<char *>(call.scratch) + bytes;
  inner.scratchBytes = call.scratchBytes - bytes;
  InnerKernel(operation, *call.kernels).run(inner);
}

void
RunFramed(const KernelCall & call)
{
  const FramedChunk  chunk(FramedOf(*call.operation), ShapeOf(call));
  const int          axis = chunk.GetAxis();
  const std::int64_t planes = chunk.GetPlanesAtOnce();
  const Box &        whole = call.output.box;
  for (std::int64_t begin = whole.lower[axis]; begin < whole.upper[axis]; begin += planes)
  {
    KernelCall slab = call;
    slab.output.box.lower[axis] = begin;
    slab.output.box.upper[axis] = std::min(begin + planes, whole.upper[axis]);
    slab.output.data = static_cast<char *>(call.output.data) + call.output.Offset(slab.output.box.lower) *
                                                                 static_cast<std::int64_t>(PixelSize(call.output.kind));
    slab.writable = slab.output.box;
    RunSlab(slab, chunk);
  }
}

std::size_t
ScratchOfFramed(const Operation & operation, const ChunkShape & shape)
{
  const FramedOperation & framed = FramedOf(operation);
  const FramedChunk       chunk(framed, shape);
  const Kernel &          kernel = InnerKernel(framed, *shape.kernels);
  return chunk.BytesOfInputs() + (kernel.scratchBytes ? kernel.scratchBytes(*framed.inner, chunk.shape) : 0);
}

double
CostOfFramed(const Operation & operation, const ChunkShape & shape)
{
  const FramedOperation & framed = FramedOf(operation);
  const FramedChunk       chunk(framed, shape);
  const Kernel &          kernel = InnerKernel(framed, *shape.kernels);
  double                  read = 0;
  for (int i = 0; i < chunk.shape.numberOfInputs; ++i)
  {
    read += static_cast<double>(chunk.shape.inputBox.NumberOfVoxels()) *
            static_cast<double>(PixelSize(chunk.shape.inputKinds[i]));
  }
  const auto written =
    static_cast<double>(shape.outputBox.NumberOfVoxels()) * static_cast<double>(PixelSize(shape.outputKind));
  return 2 * read + (kernel.cost ? kernel.cost(*framed.inner, chunk.shape) : read + written);
}

bool
HasHalo(const Operation & operation)
{
  const Halo halo = operation.GetHalo(Coordinates::Filled(std::int64_t{ 1 } << 30));
  return halo.lower != Coordinates{} || halo.upper != Coordinates{};
}

/** Whether an operation sees the image through its windows, and nothing that is computed of it. */
bool
IsOfImageAlone(const Operation & operation)
{
  if (operation.GetNumberOfInputs() != 1 || operation.GetSchedule() != Schedule::Independent ||
      operation.GetOutputGrid())
  {
    return false;
  }
  if (dynamic_cast<const FramedOperation *>(&operation))
  {
    return true;
  }
  if (const StagedOperation * const staged = operation.AsStaged())
  {
    const auto stages = staged->GetStages();
    return std::all_of(stages.begin(), stages.end(), [](const Stage & stage) {
      const bool readsStage =
        std::any_of(stage.inputs.begin(), stage.inputs.end(), [](int input) { return input >= 0; });
      return !stage.operation || !HasHalo(*stage.operation) || (!readsStage && IsOfImageAlone(*stage.operation));
    });
  }
  const auto * const windowed = dynamic_cast<const WindowedOperation *>(&operation);
  return windowed && windowed->IsOfImageAlone();
}

} // namespace

std::string
FramedOperation::GetKey() const
{
  std::string key = "framed";
  for (const BoundaryMode mode : modes)
  {
    key += std::string(" ") + BoundaryModeName(mode);
  }
  return key + " " + ExactText(constant) + " " + ToString(shift) + " " + ExactText(secondConstant) +
         (marksImage ? " marks {" : " {") + inner->GetKey() + "}";
}

void
FramedOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  std::vector<PixelType> kinds = inputs;
  if (marksImage)
  {
    kinds.push_back(PixelType::UInt8);
  }
  inner->CheckKinds(kinds, output);
}

Halo
FramedOperation::GetFrame(const Coordinates & image) const
{
  Halo frame = inner->GetHalo(image);
  for (int a = 0; a < MaxDimension; ++a)
  {
    frame.lower[a] -= shift[a];
    frame.upper[a] += shift[a];
  }
  return frame;
}

Halo
FramedOperation::GetHalo(const Coordinates & image) const
{
  Halo halo = this->GetFrame(image);
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (IsMirror(modes[a]))
    {
      halo.lower[a] = halo.upper[a] = std::max(halo.lower[a], halo.upper[a]);
    }
  }
  return halo;
}

bool
FramedOperation::WrapsAround() const
{
  const Halo halo = this->GetFrame(Coordinates::Filled(std::int64_t{ 1 } << 30));
  bool       wraps = false;
  for (int a = 0; a < MaxDimension; ++a)
  {
    wraps = wraps || (modes[a] == BoundaryMode::Periodic && (halo.lower[a] > 0 || halo.upper[a] > 0));
  }
  return wraps;
}

void
FramedOperation::Validate(const Coordinates & image) const
{
  const Coordinates framed = this->GetFramed(image);
  inner->Validate(framed);
  // They would lie elsewhere in the framed image.
  if (inner->GetTile(framed) != Coordinates::Filled(1))
  {
    throw ParameterError("BoundaryCondition: it differs from axis to axis, which convolution through transforms cannot "
                         "do; Method direct can");
  }
}

Coordinates
FramedOperation::GetFramed(const Coordinates & image) const
{
  const Halo  frame = this->GetFrame(image);
  Coordinates framed = image;
  for (int a = 0; a < MaxDimension; ++a)
  {
    framed[a] += frame.lower[a] + frame.upper[a];
  }
  return framed;
}

std::shared_ptr<const Operation>
MakeFramed(const std::shared_ptr<const Operation> & operation, const BoundaryMode (&modes)[MaxDimension],
           const PixelValue &                       constant)
{
  if (const auto * const sequence = dynamic_cast<const SequenceOperation *>(operation.get()))
  {
    auto framed = std::make_shared<SequenceOperation>(*sequence);
    for (auto & stage : framed->stages)
    {
      stage = MakeFramed(stage, modes, constant);
      if (!stage)
      {
        return nullptr;
      }
    }
    return framed;
  }
  if (!IsOfImageAlone(*operation))
  {
    return nullptr;
  }
  const auto * const shifted = dynamic_cast<const FramedOperation *>(operation.get());
  auto framed = shifted ? std::make_shared<FramedOperation>(*shifted) : std::make_shared<FramedOperation>();
  framed->inner = shifted ? shifted->inner : operation;
  std::copy(std::begin(modes), std::end(modes), framed->modes);
  framed->constant = constant;
  return framed;
}

void
RegisterFramedKernel(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunFramed;
  kernel.scratchBytes = ScratchOfFramed;
  kernel.cost = CostOfFramed;
  registry.Register("framed", { kernel });
}

} // namespace chunkwise
