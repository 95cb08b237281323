/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseReconstructionKey_h
#define chunkwiseReconstructionKey_h

#include "chunkwiseReconstructionOperation.h"

#include <cstring>
#include <type_traits>

namespace chunkwise
{

/** Voxels as unsigned integers of the same size and order, so that a reconstruction by erosion (`flip` all ones; 0: by
 * dilation) is one by dilation of keys. -0 has the key of +0. A NaN has key 0, below every number's. */
template <typename TPixel>
struct ReconstructionKey
{
  static constexpr bool IsReal = static_cast<TPixel>(0.5) != static_cast<TPixel>(0);
  static constexpr bool IsSigned = static_cast<TPixel>(-1) < static_cast<TPixel>(0);
  using Type =
    std::conditional_t<sizeof(TPixel) == 1, std::uint8_t,
                       std::conditional_t<sizeof(TPixel) == 2, std::uint16_t,
                                          std::conditional_t<sizeof(TPixel) == 4, std::uint32_t, std::uint64_t>>>;
  static constexpr Type SignBit = static_cast<Type>(Type{ 1 } << (8 * sizeof(Type) - 1));

  CHUNKWISE_HOST_DEVICE static CHUNKWISE_ALWAYS_INLINE Type
  From(TPixel pixel, Type flip)
  {
    if constexpr (IsReal)
    {
      const TPixel number = pixel + TPixel(0); // -0 becomes +0
      Type         bits = 0;
      memcpy(&bits, &number, sizeof(bits));
      const Type key = (bits & SignBit) ? static_cast<Type>(~bits) : static_cast<Type>(bits | SignBit);
      return pixel == pixel ? static_cast<Type>(key ^ flip) : Type{ 0 };
    }
    else
    {
      return static_cast<Type>(static_cast<Type>(pixel) ^ (IsSigned ? SignBit : Type{ 0 }) ^ flip);
    }
  }

  CHUNKWISE_HOST_DEVICE static CHUNKWISE_ALWAYS_INLINE TPixel
  To(Type key, Type flip)
  {
    if constexpr (IsReal)
    {
      // The key of no number, flipped or not.
      const Type ordered = key == 0 ? key : static_cast<Type>(key ^ flip);
      const Type bits = (ordered & SignBit) ? static_cast<Type>(ordered ^ SignBit) : static_cast<Type>(~ordered);
      TPixel     pixel = 0;
      memcpy(&pixel, &bits, sizeof(pixel));
      return pixel;
    }
    else
    {
      return static_cast<TPixel>(static_cast<Type>(key ^ flip ^ (IsSigned ? SignBit : Type{ 0 })));
    }
  }
};

/** The lowest key of a number: of floats that of an infinity. */
template <typename TPixel>
CHUNKWISE_HOST_DEVICE constexpr typename ReconstructionKey<TPixel>::Type
LowestReconstructionKey()
{
  using KeyOf = ReconstructionKey<TPixel>;
  using Key = typename KeyOf::Type;
  if constexpr (KeyOf::IsReal)
  {
    // All bits of the exponent.
    constexpr Key infinity = static_cast<Key>(sizeof(TPixel) == 4 ? 0x7F800000u : 0x7FF0000000000000u);
    return static_cast<Key>(~(infinity | KeyOf::SignBit));
  }
  else
  {
    return 0;
  }
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
  /** Of Border: per axis, whether its ends are an edge. */
  bool edges[MaxDimension];

  ReconstructionRule(const ReconstructionOperation & operation, const Box & image)
    : flip(operation.erosion ? static_cast<Key>(~Key{ 0 }) : Key{ 0 })
    , marker(operation.marker)
    , result(operation.result)
    , height(Convert(operation.height))
    , extremum(Convert(operation.extremum))
    , elsewhere(Convert(operation.elsewhere))
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      // An axis of one voxel has no inside.
      edges[a] = a < operation.spatialDimension && image.Extent(a) > 1;
    }
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

  /** What the run gives where the mask has `mask` and the reconstruction key `key`. */
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
  static TPixel
  Convert(double value)
  {
    if constexpr (!KeyOf::IsReal)
    {
      const double lowest = static_cast<double>(KeyOf::To(0, 0));
      const double highest = static_cast<double>(KeyOf::To(static_cast<Key>(~Key{ 0 }), 0));
      // The highest of 64 bits is none that a double has.
      return value <= lowest    ? KeyOf::To(0, 0)
             : value >= highest ? KeyOf::To(static_cast<Key>(~Key{ 0 }), 0)
                                : static_cast<TPixel>(value);
    }
    else
    {
      return static_cast<TPixel>(value);
    }
  }

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
      const Key most = static_cast<Key>(KeyOf::IsSigned ? KeyOf::SignBit - 1 : ~Key{ 0 });
      return static_cast<TPixel>(difference < most ? difference : most);
    }
  }
};

} // namespace chunkwise

#endif
