/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaTableRun_cuh
#define chunkwiseCudaTableRun_cuh

#include "chunkwiseCudaTableLauncher.cuh"

namespace chunkwise
{
namespace sat
{

template <typename TIn, typename TOut, typename TLocal, typename TCarry, bool VDeep>
void
RunTiles(const KernelCall & call, const SummedAreaTableOperation & operation)
{
  Launcher<TIn, TOut, TLocal, TCarry, VDeep>(call, operation).Run();
}

} // namespace sat
} // namespace chunkwise

#endif
