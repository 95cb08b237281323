/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseMeasureOperation.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

/** Measures as Measurements do by themselves; for chunks that a device gave up. */
void
RunMeasure(const KernelCall & call)
{
  const auto & operation = static_cast<const MeasureOperation &>(*call.operation);
  Measurements measured(operation.settings);
  try
  {
    measured.Add(call.inputs[0],
                 operation.settings.hasIntensity ? &call.inputs[1] : nullptr,
                 call.writable,
                 *call.executor,
                 call.control);
    measured.Summarise(operation, static_cast<std::int64_t *>(call.sideOut));
  }
  catch (const Aborted &)
  {
    // Who stopped the run knows.
  }
}

} // namespace

void
RegisterHostMeasure(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.summarize.run = RunMeasure;
  registry.Register("measure", kernels);
}

} // namespace chunkwise
