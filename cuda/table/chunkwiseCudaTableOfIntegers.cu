/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaTableRun.cuh"

namespace chunkwise
{
namespace sat
{

template void
RunTiles<AnyInteger, AnyNumber, std::uint64_t, std::uint64_t, true>(const KernelCall &,
                                                                    const SummedAreaTableOperation &);
template void
RunTiles<AnyInteger, AnyNumber, std::uint64_t, std::uint64_t, false>(const KernelCall &,
                                                                     const SummedAreaTableOperation &);

} // namespace sat
} // namespace chunkwise
