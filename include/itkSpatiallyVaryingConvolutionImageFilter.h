/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSpatiallyVaryingConvolutionImageFilter_h
#define itkSpatiallyVaryingConvolutionImageFilter_h

#include "itkChunkwiseConvolutionEnums.h"
#include "itkChunkwiseWindowImageFilter.h"

namespace itk
{
/** \class SpatiallyVaryingConvolutionImageFilter
 * \brief Convolution with kernels that vary over the image, multilinear between the nodes of a grid.
 *
 * The grid has GridSize nodes along the image's axes (1 along axes that are not spatial), the first at the physical
 * point GridOrigin, GridSpacing apart in physical units. By default the nodes are the centers of GridSize equal cells
 * of the image. Each node has a kernel; all kernels have one size, and their center is at half of it, rounded down.
 *
 * Order ConvolveThenWeight (the default) is a filter that varies: the output is the sum over the nodes of weight times
 * the image's convolution with the node's kernel. WeightThenConvolve is a point-spread function that varies: each
 * voxel spreads by the kernels around it. With the kernels mirrored, the two are each other's adjoint.
 *
 * Kernels are not inputs of the pipeline: they are read as they are when the filter runs.
 *
 * \par Boundary
 * Renormalized (the default): every kernel by itself, see PrunedFFTConvolutionImageFilter; with WeightThenConvolve what
 * a voxel would spread beyond the edge is given to its targets inside, so that the sum of the image is kept.
 * WeightThenConvolve has Constant with the value 0 beside; ConvolveThenWeight has all boundary conditions.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Computed in float for float and 8- and
 * 16-bit integers, in double for the others; integer outputs are rounded to nearest, ties to even, and clamped.
 *
 * \par Memory
 * Beside the output's sums, the spectrum of a node's part: on the CPU one for each thread in two dimensions, one in
 * three; and up to 256 MiB of spectra of kernels that are kept between calls, in two dimensions none if all of them
 * take more. On CUDA one, with the part's result and with WeightThenConvolve its input. On CUDA kernels along two axes
 * that are convolved in float have all their spectra kept in the device's budget, up to 1 GiB, and up to 512 MiB of
 * spectra of the cells between nodes at once; where there is no room for the former it is node by node.
 *
 * \par Streaming
 * Requests the tiles of the image's grid that the output's requested region meets, padded by the kernels' extent to
 * either side of their center, and cut at the image.
 *
 * \par Determinism
 * The CPU gives the same bits for every division, requested region and number of threads. Devices give the same bits
 * for the same chunks, see PrunedFFTConvolutionImageFilter: for kernels of one sign their relative L2 error against
 * exact sums is below 1e-6 in float and 1e-14 in double, in both orders.
 *
 * \par Source
 * J. Kepner, "A multi-threaded fast convolver for dynamically parallel image filtering", Journal of Parallel and
 * Distributed Computing 63(3), 2003.
 *
 * \sa PrunedFFTConvolutionImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TKernelImage = TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT SpatiallyVaryingConvolutionImageFilter
  : public ChunkwiseWindowImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(SpatiallyVaryingConvolutionImageFilter);

  using Self = SpatiallyVaryingConvolutionImageFilter;
  using Superclass = ChunkwiseWindowImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(SpatiallyVaryingConvolutionImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "convolve-varying";
  }

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(TKernelImage::ImageDimension == Superclass::ImageDimension, "image and kernels of one dimension");

  using KernelImageType = TKernelImage;
  using KernelImagesType = std::vector<typename KernelImageType::ConstPointer>;
  /** Kernels one after the other along the last axis. */
  using KernelStackType = Image<typename KernelImageType::PixelType, ImageDimension + 1>;
  using GridSizeType = typename TInputImage::SizeType;
  using PointType = typename TInputImage::PointType;
  using SpacingType = typename TInputImage::SpacingType;
  using OrderEnum = ChunkwiseConvolutionEnums::Order;

  /** One for each node of the grid, x fastest. */
  void
  SetKernelImages(const KernelImagesType & kernels);
  const KernelImagesType &
  GetKernelImages() const
  {
    return m_KernelImages;
  }
  /** The same from an image of one dimension more; it is copied. */
  void
  SetKernelStack(const KernelStackType * stack);
  /** A copy of the kernels as one image; nullptr if they have not all the same size. */
  typename KernelStackType::Pointer
  GetKernelStack() const;

  /** Nodes per axis. Default: 1. */
  itkSetMacro(GridSize, GridSizeType);
  itkGetConstReferenceMacro(GridSize, GridSizeType);

  /** The position of the first node, and the spacing of the nodes along the image's axes. Without both the nodes are
   * the centers of equal cells. */
  void
  SetGrid(const PointType & origin, const SpacingType & spacing);
  void
  SetGridToCells();
  itkGetConstReferenceMacro(GridOrigin, PointType);
  itkGetConstReferenceMacro(GridSpacing, SpacingType);

  /** Default: ConvolveThenWeight. */
  itkSetEnumMacro(Order, OrderEnum);
  itkGetEnumMacro(Order, OrderEnum);

  /** Whether each kernel is divided by its sum. Default: off. */
  itkSetMacro(Normalize, bool);
  itkGetConstMacro(Normalize, bool);
  itkBooleanMacro(Normalize);

  ModifiedTimeType
  GetMTime() const override;

  /** Windows over a part of the image: SetMaskImage, SetWeightImage, SetIgnoreNaN, SetEmptyValue. */
  itkChunkwiseDomainMacro();
  itkSetMacro(EmptyValue, double);
  itkGetConstMacro(EmptyValue, double);

protected:
  SpatiallyVaryingConvolutionImageFilter();
  ~SpatiallyVaryingConvolutionImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  KernelImagesType m_KernelImages;
  GridSizeType     m_GridSize;
  bool             m_GridIsGiven{ false };
  PointType        m_GridOrigin;
  SpacingType      m_GridSpacing;
  OrderEnum        m_Order{ OrderEnum::ConvolveThenWeight };
  bool             m_Normalize{ false };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkSpatiallyVaryingConvolutionImageFilter.hxx"
#endif

#endif
