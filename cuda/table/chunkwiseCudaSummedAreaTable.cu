/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaTableLauncher.cuh"

namespace chunkwise
{

namespace
{

using namespace sat;

/** The types of a table's kernels: of voxels, of entries, of sums within a tile and of sums between tiles. */
template <typename TIn, typename TOut, typename TLocal, typename TCarry>
struct Types
{
  template <bool VDeep>
  using LauncherOf = Launcher<TIn, TOut, TLocal, TCarry, VDeep>;

  static void
  Run(const KernelCall & call, const SummedAreaTableOperation & operation)
  {
    operation.summedAxes == 3 ? RunTiles<TIn, TOut, TLocal, TCarry, true>(call, operation)
                              : RunTiles<TIn, TOut, TLocal, TCarry, false>(call, operation);
  }
  static std::size_t
  ScratchBytes(const SummedAreaTableOperation & operation, const ChunkShape & shape)
  {
    return operation.summedAxes == 3 ? LauncherOf<true>::ScratchBytes(operation, shape)
                                     : LauncherOf<false>::ScratchBytes(operation, shape);
  }
};

/** Small integers to 64 bits: within a tile their sums do not fill 32 bits. With three summed axes a tile's sums are
 * those of all slices before, too. */
template <typename TIn>
struct WideTypes
{
  using Deep = Types<TIn, std::uint64_t, std::uint64_t, std::uint64_t>;
  using Flat = Types<TIn, std::uint64_t, std::uint32_t, std::uint64_t>;

  static void
  Run(const KernelCall & call, const SummedAreaTableOperation & operation)
  {
    operation.summedAxes == 3 ? RunTiles<TIn, std::uint64_t, std::uint64_t, std::uint64_t, true>(call, operation)
                              : RunTiles<TIn, std::uint64_t, std::uint32_t, std::uint64_t, false>(call, operation);
  }
  static std::size_t
  ScratchBytes(const SummedAreaTableOperation & operation, const ChunkShape & shape)
  {
    return operation.summedAxes == 3 ? Deep::template LauncherOf<true>::ScratchBytes(operation, shape)
                                     : Flat::template LauncherOf<false>::ScratchBytes(operation, shape);
  }
};

/** Calls f with Types, or WideTypes. Common tables have separate kernels, the others share kernels that take any
 * integer. Modulo their size, signed and unsigned entries have the same bits. */
template <typename TFunctor>
void
DispatchTypes(const SummedAreaTableOperation & operation, PixelType in, PixelType out, TFunctor && f)
{
  const bool isFlatSquares = operation.squares && operation.summedAxes == 2;
  const bool isWide = out == PixelType::UInt64 || out == PixelType::Int64;
  if (in == PixelType::Float32 && out == PixelType::Float32)
  {
    f(Types<float, float, float, double>());
  }
  else if (in == PixelType::Float32)
  {
    f(Types<float, double, double, double>());
  }
  else if (in == PixelType::Float64 && out == PixelType::Float32)
  {
    f(Types<double, float, double, double>());
  }
  else if (in == PixelType::Float64)
  {
    f(Types<double, double, double, double>());
  }
  else if (in == PixelType::UInt8 && (out == PixelType::UInt32 || out == PixelType::Int32))
  {
    // Modulo 2^32, as the entries.
    f(Types<std::uint8_t, std::uint32_t, std::uint32_t, std::uint32_t>());
  }
  else if (in == PixelType::UInt8 && isWide)
  {
    f(WideTypes<std::uint8_t>());
  }
  else if (in == PixelType::UInt16 && isWide && !isFlatSquares)
  {
    f(WideTypes<std::uint16_t>());
  }
  else if (in == PixelType::Int16 && isWide && !isFlatSquares)
  {
    f(WideTypes<std::int16_t>());
  }
  else
  {
    f(Types<AnyInteger, AnyNumber, std::uint64_t, std::uint64_t>());
  }
}

void
RunTable(const KernelCall & call)
{
  const auto & operation = static_cast<const SummedAreaTableOperation &>(*call.operation);
  DispatchTypes(
    operation, call.inputs[0].kind, call.output.kind, [&](auto types) { decltype(types)::Run(call, operation); });
}

void
RunAdvance(const KernelCall & call)
{
  const auto & operation = static_cast<const SummedAreaTableOperation &>(*call.operation);
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
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
        call.output.kind == PixelType::Float32 ? withLocal(float{}) : withLocal(double{});
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
  DispatchTypes(table, shape.inputKinds[0], shape.outputKind, [&](auto types) {
    bytes = decltype(types)::ScratchBytes(table, shape);
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
  KernelSet kernels;
  kernels.compute = { RunTable, ScratchOfTable, CostOfTable };
  kernels.advance.run = RunAdvance;
  registry.Register("sat", kernels);
}

} // namespace chunkwise
