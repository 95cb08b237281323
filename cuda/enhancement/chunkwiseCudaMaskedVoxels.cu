/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaEnhancement.h"
#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseMaskedOperation.h"

#include <cstring>

// The voxels of MaskedOperation, of kinds that are known at run time: memory bounds these kernels.
namespace chunkwise
{

namespace
{

/** Voxels of a kind. */
struct AnyVoxels
{
  Voxels<char> voxels;
  PixelType    kind;

  explicit AnyVoxels(const BufferView & view)
    : voxels(VoxelsOf<char>(view))
    , kind(view.kind)
  {}
  __device__ double
  operator[](const Coordinates & at) const
  {
    return LoadAs<double, false>(voxels.data, kind, voxels.Offset(at));
  }
};

/** Calls body(index) for the voxels of a box. */
template <typename TBody>
__device__ __forceinline__ void
ForEachMaskedVoxel(const Box & box, TBody && body)
{
  const std::int64_t width = box.Extent(0);
  const std::int64_t rows = box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < rows; row += RowStep())
  {
    Coordinates at = IndexIn(box, row * width);
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      at.axis[0] = box.lower.axis[0] + x;
      body(at);
    }
  }
}

__global__ void
InsideVoxelsKernel(const __grid_constant__ AnyVoxels in, const __grid_constant__ AnyVoxels mask,
                   const __grid_constant__ AnyVoxels out)
{
  ForEachMaskedVoxel(out.voxels.box, [&](const Coordinates & at) {
    const double value = mask[at] != 0 ? in[at] : __longlong_as_double(0x7ff8000000000000LL);
    StoreAs<double, false>(out.voxels.data, out.kind, out.voxels.Offset(at), value);
  });
}

/** `constant` has the bits of a voxel of the output; voxels outside keep theirs if `keeps`. */
__global__ void
KeptVoxelsKernel(const __grid_constant__ AnyVoxels results, const __grid_constant__ AnyVoxels mask,
                 const __grid_constant__ AnyVoxels image, const __grid_constant__ AnyVoxels out, std::uint64_t constant,
                 bool keeps)
{
  ForEachMaskedVoxel(out.voxels.box, [&](const Coordinates & at) {
    const bool isInside = mask[at] != 0;
    DispatchKindOnDevice(out.kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      Pixel & to = reinterpret_cast<Pixel *>(out.voxels.data)[out.voxels.Offset(at)];
      if (isInside || (keeps && image.kind != out.kind))
      {
        to = ConvertResult<Pixel>(isInside ? results[at] : image[at]);
      }
      else
      {
        to = keeps ? reinterpret_cast<const Pixel *>(image.voxels.data)[image.voxels.Offset(at)]
                   : *reinterpret_cast<const Pixel *>(&constant);
      }
    });
  });
}

void
RunInside(const KernelCall & call)
{
  InsideVoxelsKernel<<<BlocksOfRows(call.output.box), ThreadsOfRows(), 0, StreamOf(call)>>>(
    AnyVoxels(call.inputs[0]), AnyVoxels(call.inputs[1]), AnyVoxels(call.output));
  CheckLaunch("InsideVoxelsKernel");
}

void
RunKept(const KernelCall & call)
{
  const auto &  operation = static_cast<const MaskedOperation &>(*call.operation);
  std::uint64_t constant = 0;
  if (!operation.keepsOutside)
  {
    DispatchPixelType(call.output.kind, [&](auto out) {
      const auto value = EmptyPixel<decltype(out)>(operation.outsideValue);
      std::memcpy(&constant, &value, sizeof(value));
    });
  }
  KeptVoxelsKernel<<<BlocksOfRows(call.output.box), ThreadsOfRows(), 0, StreamOf(call)>>>(AnyVoxels(call.inputs[0]),
                                                                                          AnyVoxels(call.inputs[1]),
                                                                                          AnyVoxels(call.inputs[2]),
                                                                                          AnyVoxels(call.output),
                                                                                          constant,
                                                                                          operation.keepsOutside);
  CheckLaunch("KeptVoxelsKernel");
}

} // namespace

void
RegisterCudaMaskedVoxels(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunInside;
  registry.Register("masked.inside.voxels", { kernel });
  kernel.run = RunKept;
  registry.Register("masked.kept.voxels", { kernel });
}

} // namespace chunkwise
