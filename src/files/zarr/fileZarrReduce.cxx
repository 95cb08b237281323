/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileZarrReduce.h"

#include "chunkwiseBinOperation.h"
#include "chunkwiseDevice.h"
#include "chunkwiseExecutor.h"

namespace chunkwise::files
{

namespace
{

BinMethod
MethodOf(ZarrReducer reducer)
{
  switch (reducer)
  {
    case ZarrReducer::Mode:
      return BinMethod::Mode;
    case ZarrReducer::Minimum:
      return BinMethod::Minimum;
    case ZarrReducer::Maximum:
      return BinMethod::Maximum;
    case ZarrReducer::Median:
      return BinMethod::Median;
    case ZarrReducer::Gaussian:
      return BinMethod::Gaussian;
    default:
      return BinMethod::Mean;
  }
}

} // namespace

Box
GetReducedBox(const Box & box, const Coordinates & factor)
{
  Box reduced = box;
  for (int a = 0; a < MaxDimension; ++a)
  {
    reduced.lower[a] = box.lower[a] / factor[a];
    reduced.upper[a] = (box.upper[a] + factor[a] - 1) / factor[a];
  }
  return reduced;
}

void
ReduceLevel(ZarrReducer reducer, const Coordinates & extent, const BufferView & from, const Coordinates & factor,
            const BufferView & to, Executor & executor)
{
  BinOperation operation;
  operation.image = extent;
  operation.factor = factor;
  operation.method = MethodOf(reducer);
  const Kernel & kernel = GetHostKernels().Get(operation.GetName(), "a level");
  ChunkShape     shape;
  shape.inputBox = from.box;
  shape.outputBox = to.box;
  shape.inputKinds[0] = from.kind;
  shape.outputKind = to.kind;
  shape.concurrency = static_cast<int>(executor.GetConcurrency());
  std::vector<unsigned char> scratch(kernel.scratchBytes(operation, shape));
  KernelCall                 call;
  call.operation = &operation;
  call.inputs[0] = from;
  call.numberOfInputs = 1;
  call.output = to;
  call.image = Box::FromExtent(extent);
  call.scratch = scratch.data();
  call.executor = &executor;
  kernel.run(call);
}

} // namespace chunkwise::files
