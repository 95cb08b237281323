/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseTestOperations_h
#define chunkwiseTestOperations_h

#include "chunkwiseOperation.h"

#include <cstdint>
#include <vector>

namespace chunkwise
{

/** A small operation for each schedule, on int32 images, as simple as its definition. */

/** Independent: the sum over a box, of the part inside the image (or wrapped around it). int32 to int64. */
class WindowSumOperation : public Operation
{
public:
  Coordinates radius{};
  bool        wraps{ false };

  std::string
  GetName() const override
  {
    return "test.window-sum";
  }
  std::string
  GetKey() const override
  {
    return "test.window-sum " + ToString(radius);
  }
  Halo
  GetHalo(const Coordinates &) const override
  {
    return { radius, radius };
  }
  bool
  WrapsAround() const override
  {
    return wraps;
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
};

/** Sweep: the running sum along the slowest axis. int32 to int64. */
class RunningSumOperation : public Operation
{
public:
  int axis{ 2 };

  int
  GetSweepAxis(const Coordinates &) const override
  {
    return axis;
  }
  std::string
  GetName() const override
  {
    return "test.running-sum";
  }
  std::string
  GetKey() const override
  {
    return "test.running-sum";
  }
  Schedule
  GetSchedule() const override
  {
    return Schedule::Sweep;
  }
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  std::size_t
  GetCarryBytes(const Box & box, const std::vector<PixelType> & inputs, PixelType output) const override;
};

/** TwoPass: each voxel minus the smallest of the image. int32 to int64. */
class AboveMinimumOperation : public Operation
{
public:
  std::string
  GetName() const override
  {
    return "test.above-minimum";
  }
  std::string
  GetKey() const override
  {
    return "test.above-minimum";
  }
  Schedule
  GetSchedule() const override
  {
    return Schedule::TwoPass;
  }
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  std::size_t
  GetSummaryBytes(const Box & box, const std::vector<PixelType> & inputs, PixelType output) const override;
  std::vector<ChunkState>
  Solve(const std::vector<Box> & chunks, const std::vector<ChunkState> & summaries) const override;
};

/** Fixpoint: reconstruction by dilation of input 0 (marker) under input 1 (mask), face neighbours. int32 to int32. */
class FloodOperation : public Operation
{
public:
  std::string
  GetName() const override
  {
    return "test.flood";
  }
  std::string
  GetKey() const override
  {
    return "test.flood";
  }
  Schedule
  GetSchedule() const override
  {
    return Schedule::Fixpoint;
  }
  int
  GetNumberOfInputs() const override
  {
    return 2;
  }
  Halo
  GetHalo(const Coordinates &) const override
  {
    return { Coordinates::Filled(1), Coordinates::Filled(1) };
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
};

/** The kernels of these operations (and nothing else). */
const KernelRegistry &
GetTestKernels();

/** The running sum's kernel alone, which hands its carry on itself. */
const KernelRegistry &
GetKernelsWithoutAdvance();

/** Calls f(index) for every index of a box, x fastest. */
template <typename TFunctor>
void
ForEachIndex(const Box & box, TFunctor && f)
{
  if (box.IsEmpty())
  {
    return;
  }
  Coordinates index = box.lower;
  for (;;)
  {
    f(static_cast<const Coordinates &>(index));
    int a = 0;
    while (a < MaxDimension && ++index[a] == box.upper[a])
    {
      index[a] = box.lower[a];
      ++a;
    }
    if (a == MaxDimension)
    {
      return;
    }
  }
}

template <typename T>
T &
At(const BufferView & view, const Coordinates & index)
{
  return static_cast<T *>(view.data)[view.Offset(index)];
}

} // namespace chunkwise

#endif
