/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSpectralDeconvolutionOperation_h
#define chunkwiseSpectralDeconvolutionOperation_h

#include "chunkwiseImageConvolutionOperation.h"

#include <string>
#include <vector>

namespace chunkwise
{

enum class SpectralRule
{
  Inverse,
  Wiener,
  Tikhonov
};

/** Deconvolution by one division of spectra, as ITK's inverse, Wiener and Tikhonov filters define it. Kernel
 * "deconvolution.spectral", on the CPU alone.
 *
 * The image is grown by its nearest voxels, half on either side (below by the kernel's center at least), to the least
 * products of 2, 3 and 5 that are at least the sum of its extents and the kernel's. I is its transform, without a
 * factor, and H that of `kernel`, which is followed by zeros, with its center at position 0. The result is the
 * transform back of
 * - Inverse: I / H, and 0 where |H| is below leastMagnitude;
 * - Wiener: I conj(H) / D with D = |H|^2 + n / (|I|^2 - n), n being noiseVariance, and 0 where |D| is below
 *   leastMagnitude;
 * - Tikhonov: I conj(H) / D with D = |H|^2 + regularization, and 0 where D is below leastMagnitude.
 * Frequencies where H or D is 0 are 0.
 *
 * Computed in double, whatever the images are: division enlarges rounding errors up to 1 / leastMagnitude times. A
 * voxel depends on all of the image, so the image's spectrum must fit the memory; bits depend on image and kernel
 * alone. */
class Chunkwise_EXPORT SpectralDeconvolutionOperation : public ImageConvolutionOperation
{
public:
  SpectralRule rule{ SpectralRule::Inverse };
  double       noiseVariance{ 0 };
  double       regularization{ 0 };
  double       leastMagnitude{ 1e-4 };
  /** The axes that are transformed, if image or kernel has several voxels along them: at most three. */
  bool isSpatial[MaxDimension]{ true, true, true, false, false };

  SpectralDeconvolutionOperation()
  {
    boundary.mode = BoundaryMode::ZeroFluxNeumann;
    transforms = TransformProvider::Own;
  }
  std::string
  GetName() const override
  {
    return "deconvolution.spectral";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  /** The whole image along transformed axes. */
  Coordinates
  GetTile(const Coordinates & image) const override;
  Coordinates
  RoundChunk(const Coordinates & extent) const override
  {
    return extent;
  }
  void
  CheckKinds(const std::vector<PixelType> &, PixelType) const override
  {}
  void
  Validate(const Coordinates & image) const override;
  std::string
  GetObjectionToDevices() const override
  {
    return "devices do not compute inverse, Wiener and Tikhonov deconvolution";
  }

  /** The block of the transforms of `output`, which holds whole tiles. */
  ConvolutionBlock
  MakeBlock(const Coordinates & image, const Box & output) const;
};

} // namespace chunkwise

#endif
