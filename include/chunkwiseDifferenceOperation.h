/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDifferenceOperation_h
#define chunkwiseDifferenceOperation_h

#include "chunkwiseInt128.h"
#include "chunkwiseOperations.h"
#include "chunkwiseReducer.h"

namespace chunkwise
{

/** The first image minus the second, voxel by voxel. Kernel "difference".
 *
 * Both have the same kind. Differences of integers are exact; as integers they are clamped. Float and double are
 * subtracted in their own precision, then converted. */
class Chunkwise_EXPORT DifferenceOperation : public Operation
{
public:
  std::string
  GetName() const override
  {
    return "difference";
  }
  std::string
  GetKey() const override
  {
    return GetName();
  }
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  int
  GetNumberOfInputs() const override
  {
    return 2;
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
};

/** The rule of DifferenceOperation for a voxel, for every backend. */
template <typename TOut, typename TPixel>
CHUNKWISE_HOST_DEVICE TOut
DifferenceOf(TPixel a, TPixel b)
{
  constexpr bool fromFloat = static_cast<TPixel>(0.5) != static_cast<TPixel>(0);
  constexpr bool toFloat = static_cast<TOut>(0.5) != static_cast<TOut>(0);
  if constexpr (fromFloat)
  {
    return static_cast<TOut>(a - b);
  }
  else if constexpr (toFloat)
  {
    return static_cast<TOut>(static_cast<Int128>(a) - static_cast<Int128>(b));
  }
  else
  {
    return ClampInteger<TOut>(static_cast<Int128>(a) - static_cast<Int128>(b));
  }
}

} // namespace chunkwise

#endif
