/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaConvolutionRows_h
#define chunkwiseCudaConvolutionRows_h

#include "chunkwiseCudaFftLines.cuh"
#include "chunkwiseCudaTables.h"

#include <string>
#include <vector>

// The images that the transforms of a block read and write, whoever provides them.
namespace chunkwise
{

/** The rows of the call's first input. */
inline RowSource
MakeImageSource(const KernelCall & call, const ImageConvolutionOperation & operation, const ConvolutionBlock & block)
{
  const BufferView & input = call.inputs[0];
  RowSource          source{};
  source.data = input.data;
  source.kind = input.kind;
  source.mode = operation.boundary.mode;
  source.constant = source.mode == BoundaryMode::Constant ? operation.boundary.constant.ToDouble() : 0.0;
  for (int r = 0; r < MaxDimension; ++r)
  {
    const auto & role = block.role[r];
    source.lower[r] = role.lower;
    source.count[r] = role.input;
    source.boxLower[r] = input.box.lower[role.axis];
    source.boxUpper[r] = input.box.upper[role.axis];
    source.stride[r] = input.stride[role.axis];
    source.n[r] = call.image.Extent(role.axis);
  }
  return source;
}

/** The rows of a kernel's weights. */
template <typename T>
RowSource
MakeKernelSource(const KernelCall & call, const ConvolutionKernel & kernel, const ConvolutionBlock & block)
{
  const Coordinates strides = DenseStrides(kernel.GetExtent());
  RowSource         source{};
  source.data = GetTable<T>(call, kernel.GetKey() + (sizeof(T) == 4 ? " weights f32" : " weights f64"), [&kernel] {
    return std::vector<T>(kernel.GetWeights().begin(), kernel.GetWeights().end());
  });
  source.kind = PixelTypeOf<T>();
  source.mode = BoundaryMode::ZeroFluxNeumann;
  for (int r = 0; r < MaxDimension; ++r)
  {
    const auto & role = block.role[r];
    source.count[r] = source.n[r] = source.boxUpper[r] = role.kernel;
    source.stride[r] = strides[role.axis];
  }
  return source;
}

/** The destination of the rows of a part of a block's output, scaled by 1 over the product of the transforms' lengths.
 */
template <typename T>
RowTarget
MakeTarget(const KernelCall & call, const ImageConvolutionOperation & operation, const ConvolutionBlock & block,
           const Box & box)
{
  const BufferView & output = call.output;
  RowTarget          target{};
  target.data =
    static_cast<char *>(output.data) + output.Offset(box.lower) * static_cast<std::int64_t>(PixelSize(output.kind));
  target.kind = output.kind;
  target.scale = 1.0;
  target.crop = block.role[0].crop;
  target.keptTo = box.Extent(block.role[1].axis);
  if (operation.boundary.mode == BoundaryMode::Constant)
  {
    target.constant = operation.boundary.constant.ToDouble() * operation.kernel->GetSum();
  }
  Coordinates factorStrides{};
  if (operation.Renormalizes())
  {
    const Coordinates image = call.image.Extents();
    factorStrides = DenseStrides(ConvolutionFactors::States(operation, image));
    target.factors = GetFactors<T>(call, operation, image);
  }
  for (int r = 0; r < MaxDimension; ++r)
  {
    const auto & role = block.role[r];
    target.scale /= role.transformed ? static_cast<double>(role.length) : 1.0;
    target.count[r] = box.Extent(role.axis);
    target.lower[r] = box.lower[role.axis];
    target.stride[r] = output.stride[role.axis];
    target.n[r] = call.image.Extent(role.axis);
    target.kernel[r] = role.kernel;
    target.below[r] = operation.Below(role.axis);
    target.factorStride[r] = factorStrides[role.axis];
  }
  return target;
}

} // namespace chunkwise

#endif
