/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwisePixel_h
#define itkChunkwisePixel_h

#include "itkFixedArray.h"
#include "itkVectorImage.h"

#include <complex>
#include <cstdint>
#include <type_traits>

namespace itk
{
/** \class ChunkwisePixel
 * \brief The components of a pixel: ComponentType, their number (NumberOfComponents), and whether they are the parts of
 * a complex number (IsComplex).
 *
 * Pixels with components are those derived from itk::FixedArray (Vector, CovariantVector, Point, RGBPixel, RGBAPixel,
 * SymmetricSecondRankTensor) and std::complex.
 * \ingroup Chunkwise
 */
template <typename TPixel>
struct ChunkwisePixel
{
private:
  template <typename TValue, unsigned int VLength>
  static FixedArray<TValue, VLength>
  AsArray(const FixedArray<TValue, VLength> *);
  template <typename TValue>
  static std::complex<TValue>
  AsArray(const std::complex<TValue> *);
  static TPixel
  AsArray(const void *);

  template <typename TOther>
  struct Parts
  {
    using Type = TOther;
    static constexpr unsigned int number = 1;
    static constexpr bool         isComplex = false;
  };
  template <typename TValue, unsigned int VLength>
  struct Parts<FixedArray<TValue, VLength>>
  {
    using Type = TValue;
    static constexpr unsigned int number = VLength;
    static constexpr bool         isComplex = false;
  };
  template <typename TValue>
  struct Parts<std::complex<TValue>>
  {
    using Type = TValue;
    static constexpr unsigned int number = 2;
    static constexpr bool         isComplex = true;
  };
  using PartsOfPixel = Parts<decltype(AsArray(static_cast<TPixel *>(nullptr)))>;

public:
  using ComponentType = typename PartsOfPixel::Type;
  static constexpr unsigned int NumberOfComponents = PartsOfPixel::number;
  static constexpr bool         IsComplex = PartsOfPixel::isComplex;

  static_assert(sizeof(TPixel) == NumberOfComponents * sizeof(ComponentType), "components lie side by side");
};

/** \class ChunkwiseImagePixel
 * \brief The ChunkwisePixel of an image's pixels; of an itk::VectorImage NumberOfComponents is 0: the image says it.
 * \ingroup Chunkwise
 */
template <typename TImage>
struct ChunkwiseImagePixel : public ChunkwisePixel<typename TImage::InternalPixelType>
{
  using Superclass = ChunkwisePixel<typename TImage::InternalPixelType>;
  static constexpr bool IsVectorImage =
    std::is_base_of<VectorImage<typename TImage::InternalPixelType, TImage::ImageDimension>, TImage>::value;
  static constexpr unsigned int NumberOfComponents = IsVectorImage ? 0 : Superclass::NumberOfComponents;

  /** As the image has them. */
  static std::int64_t
  CountComponents(const TImage & image)
  {
    return IsVectorImage ? static_cast<std::int64_t>(image.GetNumberOfComponentsPerPixel()) : NumberOfComponents;
  }
};
} // namespace itk

#endif
