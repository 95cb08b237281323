/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaVariance_cuh
#define chunkwiseCudaVariance_cuh

#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseSidedBoxes.h"

// The ways of the CUDA backend to compute VarianceOperation, each compiled in separate files.
namespace chunkwise
{

/** The same voxels as numbers of another type. */
template <typename TTo, typename TFrom>
Voxels<TTo>
CastVoxels(const Voxels<TFrom> & voxels)
{
  return { reinterpret_cast<TTo *>(voxels.data), voxels.box, voxels.stride };
}

/** Variances of float with a small radius, the same along x, y and z. Returns false without launching if this variant
 * does not support the request. */
bool
RunVarianceColumns(const Voxels<const float> & pixels, const BufferView & output, const Coordinates & radius,
                   bool takesRoot, cudaStream_t stream);

/** Stands in an image of variances for those of windows that are wholly inside: a NaN that no computation gives. */
constexpr std::uint32_t VarianceToCome = 0x7FC5A5A5u;

/** The same in the place of these alone. */
bool
FillVarianceColumns(const Voxels<const float> & pixels, const BufferView & output, const Coordinates & radius,
                    bool takesRoot, cudaStream_t stream);

/** Wiener's filter of float with such a radius, from the windows' means. Returns false without launching if this
 * variant does not support the request. */
bool
RunWienerColumns(const Voxels<const float> & pixels, const Voxels<const float> & means, const BufferView & output,
                 const Coordinates & radius, float noise, cudaStream_t stream);

/** Variances of float with larger ones. Returns false without launching if this variant does not support the
 * request. */
bool
RunVarianceMarch(const Voxels<const float> & pixels, const BufferView & output, const Coordinates & radius,
                 bool takesRoot, cudaStream_t stream);

/** Standard deviations of integers of 8 and 16 bits, as their own kind, with a small radius, the same along x, y and z.
 * Returns false without launching if this variant does not support the request. */
template <typename TPixel>
bool
RunVarianceSums(const Voxels<const TPixel> & pixels, const BufferView & output, const Coordinates & radius,
                bool takesRoot, cudaStream_t stream);

/** With small radii, of pixels of any kind. Returns false without launching if this variant does not support the
 * request. */
bool
RunVarianceTiles(PixelKind kind, const Voxels<const char> & pixels, const BufferView & output,
                 const Coordinates & radius, bool takesRoot, cudaStream_t stream);

/** With any reaches, pass by pass. */
void
RunVariancePasses(PixelKind kind, const SidedBoxes & boxes, const Voxels<const char> & pixels,
                  const BufferView & output, bool takesRoot, char * scratch, cudaStream_t stream);

/** Bytes of scratch that the passes take, all together. */
std::size_t
VariancePassesBytes(PixelKind kind, const SidedBoxes & boxes);

} // namespace chunkwise

#endif
