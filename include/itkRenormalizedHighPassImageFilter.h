/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedHighPassImageFilter_h
#define itkRenormalizedHighPassImageFilter_h

#include "itkRenormalizedGaussianImageFilter.h"

namespace itk
{
/** \class RenormalizedHighPassImageFilter
 * \brief The image minus itself smoothed by a Gaussian, in one pass.
 *
 * The result of RenormalizedGaussianImageFilter with the same parameters, before it is rounded, is subtracted from the
 * image. Results are negative as well.
 *
 * \par Boundary
 * The boundary conditions are those of the Gaussian. Renormalized (the default): a constant image gives 0 up to
 * rounding, up to its edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double; negative results of an unsigned type
 * are clamped to 0: take float or double. Computed in float for float and 8- and 16-bit integers, in double for the
 * others; integer outputs are rounded to nearest, ties to even. A NaN makes NaN the windows that have it and no others;
 * so does an infinity in its own place, and elsewhere it makes them the opposite one.
 *
 * \par Memory
 * The filter needs the memory of RenormalizedGaussianImageFilter, and an image of the accumulator's type.
 *
 * \par Streaming
 * Requests the output's requested region padded by the kernel's radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * The filter is that of the Hydra Image Processor, without its clamp of floats at 0: E. Wait, M. Winter, A. R. Cohen,
 * "Hydra image processor: 5-D GPU image analysis library with MATLAB and Python wrappers", Bioinformatics 35(24), 2019.
 *
 * \sa RenormalizedGaussianImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedHighPassImageFilter
  : public RenormalizedGaussianImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedHighPassImageFilter);

  using Self = RenormalizedHighPassImageFilter;
  using Superclass = RenormalizedGaussianImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedHighPassImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "highpass";
  }

protected:
  RenormalizedHighPassImageFilter() = default;
  ~RenormalizedHighPassImageFilter() override = default;
};
} // namespace itk

#endif
