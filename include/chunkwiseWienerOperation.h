/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWienerOperation_h
#define chunkwiseWienerOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

/** The adaptive Wiener filter over a box: the mean where the window varies no more than noise does, the voxel itself
 * where it varies much more. Kernel "wiener".
 *
 * With m the mean and v the variance of the window, as MeanOperation and VarianceOperation give them as float for
 * float, 8- and 16-bit integers, as double for the others, and the noise converted to that kind: m where not v > noise,
 * else m + ((v - noise) / v) * (x - m), each operation rounded. So results are bit-identical on every backend. Integer
 * results are rounded to nearest, ties to even, and clamped. */
class Chunkwise_EXPORT WienerOperation : public BoxOperation
{
public:
  /** The variance of the noise. */
  double noise{ 0 };

  std::string
  GetName() const override
  {
    return "wiener";
  }
  std::string
  GetKey() const override
  {
    return BoxOperation::GetKey() + " " + ExactText(noise);
  }
  void
  Validate(const Coordinates & image) const override;

  /** What the mean and the variance are kept in. */
  static PixelKind
  RealKind(PixelKind input)
  {
    return input == PixelKind::Float32 || PixelSize(input) <= 2 ? PixelKind::Float32 : PixelKind::Float64;
  }
};

/** The rule for a voxel. */
template <typename TReal>
CHUNKWISE_HOST_DEVICE TReal
WienerOf(TReal voxel, TReal mean, TReal variance, TReal noise)
{
  return variance > noise ? mean + ((variance - noise) / variance) * (voxel - mean) : mean;
}

/** A kernel of a backend that makes both statistics by the same backend's kernels "mean" and "variance". */
Chunkwise_EXPORT std::size_t
WienerScratchBytes(const KernelRegistry & kernels, const Operation & operation, const ChunkShape & shape);
Chunkwise_EXPORT double
WienerCost(const KernelRegistry & kernels, const Operation & operation, const ChunkShape & shape);
/** What RunWienerStatistics leaves. */
struct WienerStatistics
{
  BufferView mean;
  BufferView variance;
};
Chunkwise_EXPORT WienerStatistics
RunWienerStatistics(const KernelRegistry & kernels, const KernelCall & call);

} // namespace chunkwise

#endif
