/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSummedAreaTableOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseExecutor.h"

#include <cmath>
#include <cstdio>

namespace chunkwise
{

namespace
{

bool
IsSigned(PixelType kind)
{
  return DispatchPixelType(kind, [](auto pixel) { return static_cast<decltype(pixel)>(-1) < decltype(pixel){ 0 }; });
}

/** Exact powers of two: a comparison with them is right although the sums are rounded. */
double
LargestOf(PixelType kind)
{
  return std::ldexp(1.0, static_cast<int>(8 * PixelSize(kind)) - (IsSigned(kind) ? 1 : 0));
}

} // namespace

std::string
SummedAreaTableOperation::GetKey() const
{
  return "sat " + std::to_string(summedAxes) + " of " + ToString(image) + (squares ? " squares" : "") +
         (modular ? " modular" : "") + (method == TableMethod::Blocks ? " by blocks" : "") + " from " +
         std::to_string(begin);
}

bool
SummedAreaTableOperation::Sweeps() const
{
  for (int a = summedAxes; a < MaxDimension; ++a)
  {
    if (image[a] > 1)
    {
      return false;
    }
  }
  return true;
}

Halo
SummedAreaTableOperation::GetHalo(const Coordinates &) const
{
  Halo      halo = Halo::None();
  const int whole = Sweeps() ? summedAxes - 1 : summedAxes;
  for (int a = 0; a < whole; ++a)
  {
    halo.lower[a] = WholeAxis;
  }
  return halo;
}

void
SummedAreaTableOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  const PixelType   input = inputs.at(0);
  const std::string name = std::string("a summed-area table of ") + PixelTypeName(input);
  if (IsFloatingPoint(input))
  {
    if (!IsFloatingPoint(output))
    {
      throw ParameterError("Output: " + name + " cannot give " + PixelTypeName(output) +
                           ": the output's kind must be float32 or float64");
    }
    return;
  }
  if (!IsFloatingPoint(output) && PixelSize(output) < 4)
  {
    throw ParameterError("Output: " + name + " cannot give " + PixelTypeName(output) +
                         ": the output's kind must have 32 or 64 bits");
  }
  if (modular)
  {
    if (IsFloatingPoint(output))
    {
      throw ParameterError("Modular sums cannot be stored as " + std::string(PixelTypeName(output)));
    }
    return;
  }
  const bool isSigned = IsSigned(input);
  if (!squares && isSigned && !IsFloatingPoint(output) && !IsSigned(output))
  {
    throw ParameterError("Output: " + name + " cannot give " + PixelTypeName(output) + ": sums may be negative");
  }
  double count = 1;
  for (int a = 0; a < summedAxes; ++a)
  {
    count *= static_cast<double>(image[a]);
  }
  const double largest = isSigned ? LargestOf(input) : LargestOf(input) - 1;
  const double sum = count * (squares ? largest * largest : largest);
  // Sums that go to float or double are first taken in 64 bits.
  const PixelType wide = isSigned ? PixelType::Int64 : PixelType::UInt64;
  const PixelType holder = IsFloatingPoint(output) || PixelSize(output) == 8 ? wide : output;
  if (sum >= LargestOf(holder))
  {
    char text[64];
    std::snprintf(text, sizeof(text), "%.0f", sum);
    throw ParameterError(name + " over " + ToString(image) + " voxels may reach " + text + ", more than " +
                         PixelTypeName(holder) + " holds");
  }
}

void
SummedAreaTableOperation::Validate(const Coordinates & extent) const
{
  if (summedAxes != 2 && summedAxes != 3)
  {
    throw ParameterError("SummedAxes is " + std::to_string(summedAxes) + "; it must be 2 or 3");
  }
  if (extent != image)
  {
    throw ParameterError("the summed-area table was set up for an image of " + ToString(image) + " voxels, not of " +
                         ToString(extent));
  }
}

std::size_t
SummedAreaTableOperation::GetCarryBytes(const Box & box, const std::vector<PixelType> &, PixelType) const
{
  const std::int64_t entries = box.upper[0] * (summedAxes == 3 ? box.upper[1] : 3);
  return static_cast<std::size_t>(entries) * sizeof(std::uint64_t);
}

ChunkState
SummedAreaTableOperation::GetInitialCarry(const Box & box, const std::vector<PixelType> & inputs,
                                          PixelType output) const
{
  if (box.lower[summedAxes - 1] != begin || (begin > 0 && carry.size() != GetCarryBytes(box, inputs, output)))
  {
    throw ParameterError("the summed-area table of " + ToString(box) + " needs what the voxels before it sum to");
  }
  return begin > 0 ? carry : ChunkState();
}

ChunkState
SummedAreaTableOperation::Advance(const BufferView & input, PixelType output, const Box & region, Executor & executor,
                                  const KernelRegistry & kernels) const
{
  const std::vector<PixelType> kinds{ input.kind };
  ChunkState                   before = GetInitialCarry(region, kinds, output);
  before.resize(GetCarryBytes(region, kinds, output), 0);
  ChunkState behind(before.size());
  ChunkShape shape;
  shape.inputBox = shape.outputBox = region;
  shape.image = Box::FromExtent(image);
  shape.inputKinds[0] = input.kind;
  shape.outputKind = output;
  shape.numberOfInputs = 1;
  shape.concurrency = static_cast<int>(executor.GetConcurrency());
  const Kernel &             kernel = kernels.Get(GetName(), GetName(), &KernelSet::advance);
  std::vector<std::uint64_t> scratch((kernel.scratchBytes(*this, shape) + 7) / 8);
  KernelCall                 call;
  call.operation = this;
  call.inputs[0] = input;
  call.numberOfInputs = 1;
  call.output.kind = output;
  call.writable = region;
  call.image = shape.image;
  call.scratch = scratch.data();
  call.scratchBytes = scratch.size() * 8;
  call.sideIn = before.data();
  call.sideInBytes = before.size();
  call.sideOut = behind.data();
  call.sideOutBytes = behind.size();
  call.executor = &executor;
  kernel.run(call);
  return behind;
}

std::shared_ptr<const Operation>
SummedAreaTableOperation::MakeForNextBlock(const FinishedBlock & block) const
{
  if (!Sweeps() || GetSweepAxis(block.image.Extents()) != block.axis)
  {
    return nullptr;
  }
  auto next = std::make_shared<SummedAreaTableOperation>(*this);
  next->begin = block.box.upper[block.axis];
  next->carry = Advance(block.inputs[0], block.outputKind, block.box, *block.executor, *block.kernels);
  return next;
}

} // namespace chunkwise
