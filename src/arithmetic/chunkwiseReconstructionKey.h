/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseReconstructionKey_h
#define chunkwiseReconstructionKey_h

#include "chunkwiseReconstructionOperation.h"

#include <cstring>
#include <type_traits>

namespace chunkwise
{

/** An unsigned integer of 1, 2, 4 or 8 bytes. */
template <std::size_t VBytes>
using UnsignedOfBytes = std::conditional_t<
  VBytes == 1, std::uint8_t,
  std::conditional_t<VBytes == 2, std::uint16_t, std::conditional_t<VBytes == 4, std::uint32_t, std::uint64_t>>>;

/** Voxels as unsigned integers of the same size and order, so that a reconstruction by erosion is one by dilation of
 * keys. -0 has the key of +0. A NaN has key 0, below every number's. Works on a voxel's bits: one code for all kinds of
 * a size. */
template <typename TKey>
struct ReconstructionCode
{
  static constexpr TKey SignBit = static_cast<TKey>(TKey{ 1 } << (8 * sizeof(TKey) - 1));
  /** All bits of the exponent of a float of this size. */
  static constexpr TKey Infinity = static_cast<TKey>(sizeof(TKey) <= 4 ? 0x7F800000u : 0x7FF0000000000000u);

  bool isReal;
  TKey turn; ///< of integers what makes them keys, of reals all ones by erosion

  CHUNKWISE_HOST_DEVICE
  ReconstructionCode(bool theIsReal, bool isSigned, TKey flip)
    : isReal(theIsReal)
    , turn(static_cast<TKey>(flip ^ (!theIsReal && isSigned ? SignBit : TKey{ 0 })))
  {}

  CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TKey
  FromBits(TKey bits) const
  {
    if (!isReal)
    {
      return static_cast<TKey>(bits ^ turn);
    }
    const TKey magnitude = static_cast<TKey>(bits & ~SignBit);
    // The larger a negative number's bits, the less it is.
    const TKey ordered = bits > SignBit ? static_cast<TKey>(~bits) : static_cast<TKey>(bits | SignBit);
    return magnitude > Infinity ? TKey{ 0 } : static_cast<TKey>(ordered ^ turn);
  }

  CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TKey
  ToBits(TKey key) const
  {
    if (!isReal)
    {
      return static_cast<TKey>(key ^ turn);
    }
    // The key of no number, flipped or not, becomes a NaN.
    const TKey ordered = key == 0 ? key : static_cast<TKey>(key ^ turn);
    return (ordered & SignBit) ? static_cast<TKey>(ordered ^ SignBit) : static_cast<TKey>(~ordered);
  }
};

/** The same for the voxels of a type. `flip`: all ones by erosion, 0 by dilation. */
template <typename TPixel>
struct ReconstructionKey
{
  static constexpr bool IsReal = static_cast<TPixel>(0.5) != static_cast<TPixel>(0);
  static constexpr bool IsSigned = static_cast<TPixel>(-1) < static_cast<TPixel>(0);
  using Type = UnsignedOfBytes<sizeof(TPixel)>;

  CHUNKWISE_HOST_DEVICE static CHUNKWISE_ALWAYS_INLINE Type
  From(TPixel pixel, Type flip)
  {
    Type bits = 0;
    memcpy(&bits, &pixel, sizeof(bits));
    return ReconstructionCode<Type>(IsReal, IsSigned, flip).FromBits(bits);
  }

  CHUNKWISE_HOST_DEVICE static CHUNKWISE_ALWAYS_INLINE TPixel
  To(Type key, Type flip)
  {
    const Type bits = ReconstructionCode<Type>(IsReal, IsSigned, flip).ToBits(key);
    TPixel     pixel = 0;
    memcpy(&pixel, &bits, sizeof(pixel));
    return pixel;
  }
};

/** The lowest key of a number: of floats that of an infinity. */
template <typename TPixel>
CHUNKWISE_HOST_DEVICE constexpr typename ReconstructionKey<TPixel>::Type
LowestReconstructionKey()
{
  using Key = typename ReconstructionKey<TPixel>::Type;
  using Code = ReconstructionCode<Key>;
  return ReconstructionKey<TPixel>::IsReal ? static_cast<Key>(~(Code::Infinity | Code::SignBit)) : Key{ 0 };
}

/** The parameters of a reconstruction as device code takes them. */
template <typename TPixel>
struct ReconstructionRule
{
  using KeyOf = ReconstructionKey<TPixel>;
  using Key = typename KeyOf::Type;

  Key                  flip;
  ReconstructionMarker marker;
  ReconstructionResult result;
  TPixel               height;
  TPixel               extremum;
  TPixel               elsewhere;
  /** For Border: per axis, whether its ends are an edge. */
  bool edges[MaxDimension];

  ReconstructionRule(const ReconstructionOperation & operation, const Box & image)
    : flip(operation.erosion ? static_cast<Key>(~Key{ 0 }) : Key{ 0 })
    , marker(operation.marker)
    , result(operation.result)
    , height(operation.height.template As<TPixel>())
    , extremum(operation.extremum.template As<TPixel>())
    , elsewhere(operation.elsewhere.template As<TPixel>())
  {
    bool alone = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      // An axis of one voxel has no inside.
      edges[a] = a < operation.spatialDimension && image.Extent(a) > 1;
      alone = alone && !edges[a];
    }
    // A voxel without neighbours is at the edge all the same.
    edges[0] = edges[0] || alone;
  }

  /** The key of the marker, not cut at the mask. `first` and `second` are the inputs'; where there are fewer, any. */
  CHUNKWISE_HOST_DEVICE Key
  MarkerKey(TPixel first, TPixel second, TPixel mask, bool atEdge) const
  {
    const Key key = KeyOf::From(mask, flip);
    switch (marker)
    {
      case ReconstructionMarker::Shifted:
        return Shift(mask, key);
      case ReconstructionMarker::Border:
        return atEdge ? key : LowestReconstructionKey<TPixel>();
      case ReconstructionMarker::NextBelow:
        return NextBelow(key);
      case ReconstructionMarker::Agreeing:
        return KeyOf::From(first, flip) == KeyOf::From(second, flip) ? key : LowestReconstructionKey<TPixel>();
      default:
        return KeyOf::From(first, flip);
    }
  }

  /** The result of the run if the mask has `mask` and the reconstruction has the key `key`. */
  CHUNKWISE_HOST_DEVICE TPixel
  Finish(TPixel mask, Key key) const
  {
    switch (result)
    {
      case ReconstructionResult::Residue:
      {
        const TPixel reconstruction = KeyOf::To(key, flip);
        return flip ? Difference(reconstruction, mask) : Difference(mask, reconstruction);
      }
      case ReconstructionResult::Extrema:
        return key < KeyOf::From(mask, flip) ? extremum : elsewhere;
      default:
        return KeyOf::To(key, flip);
    }
  }

private:
  CHUNKWISE_HOST_DEVICE Key
  Shift(TPixel mask, Key key) const
  {
    if constexpr (KeyOf::IsReal)
    {
      return KeyOf::From(flip ? mask + height : mask - height, flip);
    }
    else
    {
      // A height is not negative, so that it is itself as a key's difference.
      const Key down = static_cast<Key>(height);
      return key > down ? static_cast<Key>(key - down) : Key{ 0 };
    }
  }

  CHUNKWISE_HOST_DEVICE Key
  NextBelow(Key key) const
  {
    if (key == 0)
    {
      return 0;
    }
    // The key of -0 is nobody's.
    const Key below = KeyOf::From(KeyOf::To(static_cast<Key>(key - 1), flip), flip);
    return below < key ? below : static_cast<Key>(key - 2);
  }

  CHUNKWISE_HOST_DEVICE static TPixel
  Difference(TPixel large, TPixel small)
  {
    if constexpr (KeyOf::IsReal)
    {
      return large == small ? TPixel(0) : large - small; // infinities too
    }
    else
    {
      const Key difference = static_cast<Key>(KeyOf::From(large, 0) - KeyOf::From(small, 0));
      const Key most = static_cast<Key>(KeyOf::IsSigned ? ReconstructionCode<Key>::SignBit - 1 : ~Key{ 0 });
      return static_cast<TPixel>(difference < most ? difference : most);
    }
  }
};

} // namespace chunkwise

#endif
