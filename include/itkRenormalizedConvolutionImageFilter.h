/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedConvolutionImageFilter_h
#define itkRenormalizedConvolutionImageFilter_h

#include "itkChunkwiseWindowImageFilter.h"
#include "itkNeighborhood.h"

namespace itk
{
/** \class RenormalizedConvolutionImageFilter
 * \brief Convolution with a small kernel of any weights, at the image's edge with those inside the image.
 *
 * The kernel is a neighborhood of up to 4096 weights, mirrored as a convolution does: out(p) = sum over t of kernel(t)
 * in(p - t). It must have no extent along axes that are not spatial.
 *
 * \par Differences from ITK
 * itk::NeighborhoodOperatorImageFilter does not mirror its operator: it is Correlate. itk::ConvolutionImageFilter takes
 * a kernel image, mirrors it too, and by default continues the image by its edge voxels.
 *
 * \par Boundary
 * Renormalized (the default): the sum over the taps inside the image is multiplied by the sum of all weights over that
 * of the taps inside; a kernel for which that is not possible throws. A kernel whose weights sum to 0, a derivative, is
 * applied to the differences from the voxel in its center: a constant gives exactly 0 up to the edge. In every other
 * boundary condition the image is continued beyond its edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Computed in float for float and 8- and
 * 16-bit integers, in double for the others; integer outputs are rounded to nearest, ties to even, and clamped.
 *
 * \par Memory
 * A chunk needs its input and its output; with a boundary condition other than Renormalized, a copy of its input.
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * MultiplySum of the Hydra Image Processor, which always divides by the sum of the weights: E. Wait, M. Winter, A. R.
 * Cohen, "Hydra image processor: 5-D GPU image analysis library with MATLAB and Python wrappers", Bioinformatics
 * 35(24), 2019.
 *
 * \sa ConvolutionImageFilter NeighborhoodOperatorImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedConvolutionImageFilter
  : public ChunkwiseWindowImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedConvolutionImageFilter);

  using Self = RenormalizedConvolutionImageFilter;
  using Superclass = ChunkwiseWindowImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedConvolutionImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "convolve";
  }

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  using KernelType = Neighborhood<double, Superclass::ImageDimension>;

  /** The weights, x fastest. Default: a single 1. */
  void
  SetKernel(const KernelType & kernel);
  /** The same of any neighborhood of numbers, such as the operators that NeighborhoodOperatorImageFilter takes; with
   * CorrelateOn it gives what that filter does inside the image. */
  template <typename TPixel, typename TAllocator>
  void
  SetKernel(const Neighborhood<TPixel, Superclass::ImageDimension, TAllocator> & kernel)
  {
    KernelType converted;
    converted.SetRadius(kernel.GetRadius());
    for (unsigned int i = 0; i < kernel.Size(); ++i)
    {
      converted[i] = static_cast<double>(kernel[i]);
    }
    this->SetKernel(converted);
  }
  const KernelType &
  GetKernel() const
  {
    return m_Kernel;
  }

  /** On: the sum over t of kernel(t) in(p + t), the kernel as it is. Off, the default: the convolution, the kernel
   * mirrored at its center. */
  itkSetMacro(Correlate, bool);
  itkGetConstMacro(Correlate, bool);
  itkBooleanMacro(Correlate);

  /** Windows over a part of the image: SetMaskImage, SetWeightImage, SetIgnoreNaN, SetEmptyValue. */
  itkChunkwiseDomainMacro();
  itkSetMacro(EmptyValue, double);
  itkGetConstMacro(EmptyValue, double);

protected:
  RenormalizedConvolutionImageFilter();
  ~RenormalizedConvolutionImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  KernelType m_Kernel;
  bool       m_Correlate{ false };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkRenormalizedConvolutionImageFilter.hxx"
#endif

#endif
