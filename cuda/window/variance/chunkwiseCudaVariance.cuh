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

/** A request for variances. */
struct VarianceShape
{
  PixelType   kind;
  PixelType   outputKind;
  bool        takesRoot;
  Coordinates radius;
  Box         padded; ///< the voxels that windows see
  Box         output;
  /** The most voxels from one row of the input to the next. */
  std::int64_t rowStride;

  /** Whether windows have one radius along x, y and z, and none along other axes. */
  bool
  AreCubes() const
  {
    return radius[1] == radius[0] && radius[2] == radius[0] && radius[3] == 0 && radius[4] == 0;
  }
  /** Whether offsets in a plane have 32 bits. */
  bool
  AreSmallPlanes() const
  {
    return rowStride <= (std::int64_t{ 1 } << 31) / padded.Extent(1);
  }
};

/** Variances of float with a small radius, the same along x, y and z. */
bool
SupportsVarianceColumns(const VarianceShape & shape);
void
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

/** Variances of float with larger ones. */
bool
SupportsVarianceMarch(const VarianceShape & shape);
void
RunVarianceMarch(const Voxels<const float> & pixels, const BufferView & output, const Coordinates & radius,
                 bool takesRoot, cudaStream_t stream);

/** Standard deviations of integers of 8 and 16 bits, as their own kind, with a small radius, the same along x, y and z.
 */
bool
SupportsVarianceSums(const VarianceShape & shape);
template <typename TPixel>
void
RunVarianceSums(const Voxels<const TPixel> & pixels, const BufferView & output, const Coordinates & radius,
                cudaStream_t stream);

/** With small radii, of pixels of any kind. */
bool
SupportsVarianceTiles(const VarianceShape & shape);
void
RunVarianceTiles(PixelType kind, const Voxels<const char> & pixels, const BufferView & output,
                 const Coordinates & radius, bool takesRoot, cudaStream_t stream);

/** With any reaches, pass by pass. */
void
RunVariancePasses(PixelType kind, const SidedBoxes & boxes, const Voxels<const char> & pixels,
                  const BufferView & output, bool takesRoot, char * scratch, cudaStream_t stream);

/** Bytes of scratch that the passes take, all together. */
std::size_t
VariancePassesBytes(PixelType kind, const SidedBoxes & boxes);

} // namespace chunkwise

#endif
