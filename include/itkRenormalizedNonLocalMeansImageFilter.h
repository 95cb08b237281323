/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedNonLocalMeansImageFilter_h
#define itkRenormalizedNonLocalMeansImageFilter_h

#include "itkChunkwiseBoxImageFilter.h"

namespace itk
{
/** \class RenormalizedNonLocalMeansImageFilter
 * \brief Non-local means: a voxel becomes the mean of those around it, weighted by how much their surroundings resemble
 * its own; windows are cut at the image's edge.
 *
 * Radius is that of the search window. The weight of one of its voxels is exp(-max(D - 2 NoiseVariance, 0) /
 * Strength^2), D the mean square difference of the patches of PatchRadius around it and around the window's center. The
 * time grows with the search window's volume, and hardly with the patches'.
 *
 * \par Boundary
 * Renormalized (the default): of the voxels inside the image; patches are compared over the offsets at which both are
 * inside. In every other boundary condition the image is continued beyond its edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double; computed as float for float, 8- and
 * 16-bit integers, as double for the others, with weights within 3e-7; the squares of a patch are summed along one axis
 * after the other, the slowest first. Integer results are rounded to nearest, ties to
 * even. A NaN makes the voxels NaN whose search window or patches have it, an infinity those whose search window or own
 * patch has it; voxels with an infinity in their patches elsewhere weigh nothing.
 *
 * \par Memory
 * A chunk needs its input and its output; another input where the image is continued beyond its edge on a device.
 *
 * \par Streaming
 * Requests the output's requested region padded by both radii, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * A. Buades, B. Coll, J.-M. Morel, "A non-local algorithm for image denoising", CVPR 2005; the subtracted noise is that
 * of their "Non-local means denoising", Image Processing On Line 1, 2011.
 *
 * \sa PatchBasedDenoisingImageFilter, RenormalizedWienerImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedNonLocalMeansImageFilter
  : public ChunkwiseBoxImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedNonLocalMeansImageFilter);

  using Self = RenormalizedNonLocalMeansImageFilter;
  using Superclass = ChunkwiseBoxImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedNonLocalMeansImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "nlm";
  }

  /** Means over a part of the image: SetMaskImage, SetWeightImage, SetIgnoreNaN, SetEmptyValue. Patches are compared
   * where both have voxels inside; chunkwise::NonLocalMeansOperation has the definition. */
  itkChunkwiseDomainMacro();
  itkSetMacro(EmptyValue, double);
  itkGetConstMacro(EmptyValue, double);

  using typename Superclass::RadiusType;
  using typename Superclass::RadiusValueType;

  /** Voxels to either side of a patch's center, per axis; entries of axes that are not spatial are not used. Default:
   * 1. */
  itkSetMacro(PatchRadius, RadiusType);
  itkGetConstReferenceMacro(PatchRadius, RadiusType);
  /** The same radius along every axis. */
  void
  SetPatchRadius(const RadiusValueType & radius);

  /** The difference of patches, in units of the voxels' values, at which a weight has fallen to exp(-1). It must be
   * set. */
  itkSetMacro(Strength, double);
  itkGetConstMacro(Strength, double);

  /** The variance of the noise, twice of which does not count as a difference. Default: 0. */
  itkSetMacro(NoiseVariance, double);
  itkGetConstMacro(NoiseVariance, double);

protected:
  RenormalizedNonLocalMeansImageFilter();
  ~RenormalizedNonLocalMeansImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  RadiusType m_PatchRadius;
  double     m_Strength{ 0.0 }; ///< 0: not set
  double     m_NoiseVariance{ 0.0 };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkRenormalizedNonLocalMeansImageFilter.hxx"
#endif

#endif
