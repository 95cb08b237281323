/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedGaussianImageFilter_h
#define itkRenormalizedGaussianImageFilter_h

#include "itkChunkwiseWindowImageFilter.h"
#include "itkFixedArray.h"

namespace itk
{
/** \class RenormalizedGaussianImageFilter
 * \brief Convolution with a Gaussian, at the image's edge with the weights inside the image alone.
 *
 * The convolution is done along one spatial axis after the other, in ascending order. Sigma (or Variance, its square)
 * is in units of the image's spacing if UseImageSpacing is on, else in voxels. An axis whose sigma is 0 is left as it
 * is.
 *
 * Two kernels: Sampled (the default) has the weights exp(-x^2 / (2 sigma^2)) at the voxels x with
 * |x| <= ceil(Cutoff * sigma), sigma in voxels. Discrete has those of itk::GaussianOperator with MaximumError and
 * MaximumKernelWidth. Both sum to 1.
 *
 * \par Boundary
 * Renormalized (the default): along each axis the result is divided by the sum of the weights inside the image, which
 * is exact for a box-shaped image: a constant image stays constant up to its edge. In the boundary condition
 * ZeroFluxNeumann the filter with the Discrete kernel has the weights and the boundary of
 * itk::DiscreteGaussianImageFilter.
 *
 * \par Differences from ITK
 * itk::DiscreteGaussianImageFilter cuts the fraction off integer results; here they are rounded to nearest, ties to
 * even. Its kernels of a variance of some 700 square voxels and more are no numbers; here they have the weights of
 * their definition. Up to there the Discrete kernel is ITK's to the last bit, whose variance is up to 3% too large.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Computed in float for float and 8- and
 * 16-bit integers, in double for the others; integer outputs are rounded to nearest, ties to even, and clamped.
 *
 * \par Memory
 * A chunk needs its input, its output and one to two intermediate images of the accumulator's type.
 *
 * \par Streaming
 * Requests the output's requested region padded by the kernel's radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * The renormalized boundary follows the Hydra Image Processor (E. Wait, M. Winter, A. R. Cohen, "Hydra image processor:
 * 5-D GPU image analysis library with MATLAB and Python wrappers", Bioinformatics 35(24), 2019). The Discrete kernel is
 * T. Lindeberg's, see itk::GaussianOperator.
 *
 * \sa DiscreteGaussianImageFilter GaussianOperator
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedGaussianImageFilter : public ChunkwiseWindowImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedGaussianImageFilter);

  using Self = RenormalizedGaussianImageFilter;
  using Superclass = ChunkwiseWindowImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedGaussianImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "gaussian";
  }

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  using ArrayType = FixedArray<double, Superclass::ImageDimension>;
  using SigmaArrayType = ArrayType;
  using KernelEnum = ChunkwiseEnums::GaussianKernel;

  /** The variance per axis; entries of axes that are not spatial are not used. The last of SetVariance and SetSigma
   * counts. Default: 0. */
  void
  SetVariance(const ArrayType & variance);
  void
  SetVariance(double variance);
  void
  SetVariance(const double * variance);
  itkGetConstReferenceMacro(Variance, ArrayType);

  /** The standard deviation per axis. */
  void
  SetSigmaArray(const ArrayType & sigma);
  void
  SetSigma(double sigma);
  const ArrayType &
  GetSigmaArray() const
  {
    return m_Sigma;
  }
  /** The standard deviation along x. */
  double
  GetSigma() const
  {
    return m_Sigma[0];
  }

  /** Whether sigma is in units of the image's spacing, or in voxels. Default: on. */
  itkSetMacro(UseImageSpacing, bool);
  itkGetConstMacro(UseImageSpacing, bool);
  itkBooleanMacro(UseImageSpacing);

  /** Default: Sampled. */
  itkSetEnumMacro(Kernel, KernelEnum);
  itkGetEnumMacro(Kernel, KernelEnum);

  /** The radius of the Sampled kernel, in sigmas; above 0. Default: 4. */
  itkSetMacro(Cutoff, double);
  itkGetConstMacro(Cutoff, double);

  /** How much the sum of the Discrete kernel's weights may miss 1 before they are normalized; between 0 and 1.
   * Default: 0.01. */
  itkSetMacro(MaximumError, ArrayType);
  itkGetConstReferenceMacro(MaximumError, ArrayType);
  void
  SetMaximumError(double maximumError);

  /** The largest width of the Discrete kernel's half, in voxels, as in itk::DiscreteGaussianImageFilter; a wider kernel
   * is cut there with a warning. Default: 32. */
  itkSetMacro(MaximumKernelWidth, unsigned int);
  itkGetConstMacro(MaximumKernelWidth, unsigned int);

  /** Windows over a part of the image: SetMaskImage, SetWeightImage, SetIgnoreNaN, SetEmptyValue. */
  itkChunkwiseDomainMacro();
  itkSetMacro(EmptyValue, double);
  itkGetConstMacro(EmptyValue, double);

protected:
  RenormalizedGaussianImageFilter();
  ~RenormalizedGaussianImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  void
  VerifyInputInformation() const override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  // Both are kept as given, so that messages name what the user set and no bit of a variance is lost in a square root.
  ArrayType    m_Variance;
  ArrayType    m_Sigma;
  bool         m_VarianceIsGiven{ true };
  bool         m_UseImageSpacing{ true };
  KernelEnum   m_Kernel{ KernelEnum::Sampled };
  double       m_Cutoff{ 4.0 };
  ArrayType    m_MaximumError;
  unsigned int m_MaximumKernelWidth{ 32 };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkRenormalizedGaussianImageFilter.hxx"
#endif

#endif
