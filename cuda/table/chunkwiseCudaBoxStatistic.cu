/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaBoxStatistic.cuh"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseKernelChoice.h"

namespace chunkwise
{

namespace
{

constexpr std::int64_t RowMultiple = 4;

template <bool VInRows>
void
RunBoxStatistic(const KernelCall & call)
{
  const auto &   operation = static_cast<const BoxStatisticOperation &>(*call.operation);
  const BoxTable table = MakeBoxTable(operation, call.output.box, call.image, RowMultiple);
  MakeBoxEntries(call, table);
  VInRows ? QueryBoxRows(call, table) : QueryBoxVoxels(call, table);
}

std::size_t
BoxStatisticScratch(const Operation & anyOperation, const ChunkShape & shape)
{
  const auto &      operation = static_cast<const BoxStatisticOperation &>(anyOperation);
  const Coordinates image = shape.image.Extents();
  std::size_t       bytes = 0;
  DispatchBoxTypes(operation, image, shape.inputKinds[0], [&](auto, auto entry) {
    bytes = static_cast<std::size_t>(MostBoxEntries(operation, shape.outputBox.Extents(), image, RowMultiple)) *
            sizeof(entry);
  });
  return bytes;
}

/** Input, output, and the table written and read. */
double
BoxStatisticCost(const Operation & operation, const ChunkShape & shape)
{
  const double input = static_cast<double>(shape.inputBox.NumberOfVoxels()) * PixelSize(shape.inputKinds[0]);
  const double output = static_cast<double>(shape.outputBox.NumberOfVoxels()) * PixelSize(shape.outputKind);
  return input + output + 2.0 * static_cast<double>(BoxStatisticScratch(operation, shape));
}

KernelChoice
ChooseBoxStatistic(const Operation & anyOperation, const ChunkShape & shape)
{
  const auto &      operation = static_cast<const BoxStatisticOperation &>(anyOperation);
  const BoxTable    table = MakeBoxTable(operation, shape.outputBox, shape.image, RowMultiple);
  const std::size_t scratch = BoxStatisticScratch(operation, shape);
  const double      cost = BoxStatisticCost(operation, shape);
  return SupportsBoxRows(operation, table, shape.outputBox, shape.image, shape.inputKinds[0])
           ? KernelChoice{ "rows", RunBoxStatistic<true>, scratch, cost }
           : KernelChoice{ "voxels", RunBoxStatistic<false>, scratch, cost };
}

} // namespace

void
RegisterCudaBoxStatistic(KernelRegistry & registry)
{
  registry.Register("boxstatistic", { MakeChoosingKernel<ChooseBoxStatistic>(true) });
}

} // namespace chunkwise
