/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaTableLauncher.cuh"

namespace chunkwise
{

namespace
{

using namespace sat;

/** Calls f with types that stand for the kernel: of a sum within a tile, of one between tiles. Where the output has 32
 * bits so may the sums, modulo 2^32; small integers do not fill 32 bits within a tile. */
template <typename TIn, typename TOut, bool VDeep, typename TFunctor>
void
DispatchSums(bool squares, TFunctor && f)
{
  if constexpr (IsReal<TIn>)
  {
    f(std::conditional_t < sizeof(TIn) == 4 && sizeof(TOut) == 4, float, double > {}, double{});
  }
  else if constexpr (!IsReal<TOut> && sizeof(TOut) == 4)
  {
    f(std::uint32_t{}, std::uint32_t{});
  }
  else if constexpr (!VDeep && sizeof(TIn) <= 2)
  {
    if (sizeof(TIn) == 1 || !squares)
    {
      return f(std::uint32_t{}, std::uint64_t{});
    }
    if constexpr (sizeof(TIn) == 2)
    {
      f(std::uint64_t{}, std::uint64_t{});
    }
  }
  else
  {
    f(std::uint64_t{}, std::uint64_t{});
  }
}

/** Calls f with the launcher's class, as a null pointer. */
template <typename TFunctor>
void
DispatchLauncher(const SummedAreaTableOperation & operation, PixelKind inKind, PixelKind outKind, TFunctor && f)
{
  DispatchPixelKind(inKind, [&](auto pixel) {
    using In = decltype(pixel);
    const auto withOutput = [&](auto voxel) {
      using Out = decltype(voxel);
      const auto withDepth = [&](auto deep) {
        constexpr bool VDeep = decltype(deep)::value;
        DispatchSums<In, Out, VDeep>(operation.squares, [&](auto local, auto carry) {
          f(static_cast<Launcher<In, Out, decltype(local), decltype(carry), VDeep> *>(nullptr));
        });
      };
      operation.summedAxes == 3 ? withDepth(std::true_type{}) : withDepth(std::false_type{});
    };
    switch (outKind)
    {
      case PixelKind::Float32:
        return withOutput(float{});
      case PixelKind::Float64:
        return withOutput(double{});
      default:
        if constexpr (!IsReal<In>)
        {
          // Modulo their size, signed and unsigned integers have the same bits.
          PixelSize(outKind) == 4 ? withOutput(std::uint32_t{}) : withOutput(std::uint64_t{});
        }
    }
  });
}

void
RunTable(const KernelCall & call)
{
  const auto & operation = static_cast<const SummedAreaTableOperation &>(*call.operation);
  DispatchLauncher(operation, call.inputs[0].kind, call.output.kind, [&](auto * type) {
    std::remove_pointer_t<decltype(type)>(call, operation).Run();
  });
}

void
RunAdvance(const KernelCall & call)
{
  const auto & operation = static_cast<const SummedAreaTableOperation &>(*call.operation);
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using In = decltype(pixel);
    using Acc = AccumulatorOf<In>;
    const Box &        box = call.writable;
    const auto * const in = static_cast<const In *>(call.inputs[0].data);
    const auto * const before = static_cast<const Acc *>(call.sideIn);
    auto * const       behind = static_cast<Acc *>(call.sideOut);
    if (operation.summedAxes == 2)
    {
      const auto withLocal = [&](auto local) {
        AdvanceRowsKernel<In, decltype(local), Acc><<<BlocksFor(box.upper[0], 64), 64, 0, StreamOf(call)>>>(
          in, box.upper[0], box.lower[1], box.upper[1], before, behind, operation.squares);
      };
      if constexpr (std::is_same<In, float>::value)
      {
        call.output.kind == PixelKind::Float32 ? withLocal(float{}) : withLocal(double{});
      }
      else
      {
        withLocal(Acc{});
      }
    }
    else
    {
      const std::int64_t plane = box.upper[0] * box.upper[1];
      AdvancePlaneKernel<In, Acc><<<BlocksFor(plane, 256), 256, 0, StreamOf(call)>>>(
        in, plane, box.Extent(2), before, behind, operation.squares);
    }
    CheckLaunch("advance of a summed-area table");
  });
}

std::size_t
ScratchOfTable(const Operation & operation, const ChunkShape & shape)
{
  const auto & table = static_cast<const SummedAreaTableOperation &>(operation);
  std::size_t  bytes = 0;
  DispatchLauncher(table, shape.inputKinds[0], shape.outputKind, [&](auto * type) {
    bytes = std::remove_pointer_t<decltype(type)>::ScratchBytes(table, shape);
  });
  return bytes;
}

double
CostOfTable(const Operation &, const ChunkShape & shape)
{
  // Sums handed from tile to tile add about an eighth.
  return 1.125 * static_cast<double>(shape.inputBox.NumberOfVoxels()) *
         static_cast<double>(PixelSize(shape.inputKinds[0]) + PixelSize(shape.outputKind));
}

} // namespace

void
RegisterCudaSummedAreaTable(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunTable;
  kernel.scratchBytes = ScratchOfTable;
  kernel.cost = CostOfTable;
  registry.Register("sat", kernel);
  Kernel advance;
  advance.run = RunAdvance;
  registry.Register("sat.advance", advance);
}

} // namespace chunkwise
