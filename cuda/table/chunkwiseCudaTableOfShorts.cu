/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaTableRun.cuh"

namespace chunkwise
{
namespace sat
{

template void
RunTiles<std::uint16_t, std::uint64_t, std::uint64_t, std::uint64_t, true>(const KernelCall &,
                                                                           const SummedAreaTableOperation &);
template void
RunTiles<std::uint16_t, std::uint64_t, std::uint32_t, std::uint64_t, false>(const KernelCall &,
                                                                            const SummedAreaTableOperation &);
template void
RunTiles<std::int16_t, std::uint64_t, std::uint64_t, std::uint64_t, true>(const KernelCall &,
                                                                          const SummedAreaTableOperation &);
template void
RunTiles<std::int16_t, std::uint64_t, std::uint32_t, std::uint64_t, false>(const KernelCall &,
                                                                           const SummedAreaTableOperation &);

} // namespace sat
} // namespace chunkwise
