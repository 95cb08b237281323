/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseHighPassOperation_h
#define chunkwiseHighPassOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

/** The image minus itself smoothed. Kernel "highpass".
 *
 * The smoothed value has the bits that the separable operation gives in its accumulator's kind: float for float, 8- and
 * 16-bit integers, double for the others. It is subtracted from the voxel converted to that kind; integer results are
 * rounded to nearest, ties to even, and clamped. */
class Chunkwise_EXPORT HighPassOperation : public Operation
{
public:
  std::shared_ptr<const SeparableOperation> smoothing;

  std::string
  GetName() const override
  {
    return "highpass";
  }
  std::string
  GetKey() const override
  {
    return GetName() + " {" + smoothing->GetKey() + "}";
  }
  Halo
  GetHalo(const Coordinates & image) const override
  {
    return smoothing->GetHalo(image);
  }
  bool
  WrapsAround() const override
  {
    return smoothing->WrapsAround();
  }
  void
  CheckKinds(const std::vector<PixelKind> & inputs, PixelKind output) const override
  {
    CheckSameOrFloatingOutput(GetName(), inputs.at(0), output);
  }
  void
  Validate(const Coordinates & image) const override
  {
    smoothing->Validate(image);
  }

  /** What the smoothed image is kept in. */
  static PixelKind
  SmoothedKind(PixelKind input)
  {
    return input == PixelKind::Float32 || PixelSize(input) <= 2 ? PixelKind::Float32 : PixelKind::Float64;
  }
};

/** A kernel of a backend that smooths by the same backend's kernel "separable" into the begin of its scratch. */
Chunkwise_EXPORT std::size_t
HighPassScratchBytes(const KernelRegistry & kernels, const Operation & operation, const ChunkShape & shape);
/** Smooths; gives a view of the result. */
Chunkwise_EXPORT BufferView
SmoothForHighPass(const KernelRegistry & kernels, const KernelCall & call);

} // namespace chunkwise

#endif
