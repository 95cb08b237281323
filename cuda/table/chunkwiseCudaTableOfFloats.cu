/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaTableRun.cuh"

namespace chunkwise
{
namespace sat
{

template void
RunTiles<float, float, float, double, true>(const KernelCall &, const SummedAreaTableOperation &);
template void
RunTiles<float, float, float, double, false>(const KernelCall &, const SummedAreaTableOperation &);
template void
RunTiles<float, double, double, double, true>(const KernelCall &, const SummedAreaTableOperation &);
template void
RunTiles<float, double, double, double, false>(const KernelCall &, const SummedAreaTableOperation &);

} // namespace sat
} // namespace chunkwise
