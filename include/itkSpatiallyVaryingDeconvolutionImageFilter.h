/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSpatiallyVaryingDeconvolutionImageFilter_h
#define itkSpatiallyVaryingDeconvolutionImageFilter_h

#include "itkChunkwiseKernelStack.h"
#include "itkDeconvolutionImageFilterBase.h"

namespace itk
{
/** \class SpatiallyVaryingDeconvolutionImageFilter
 * \brief Iterative deconvolution with kernels that vary over the image, multilinear between the nodes of a grid.
 *
 * RenormalizedDeconvolutionImageFilter with a kernel for each node of a grid. Nodes are the centers of GridSize equal
 * cells of the image. Each voxel of the estimate spreads by the kernels around it. All kernels have one size; their
 * center is at half of it, rounded down.
 *
 * \par Boundary
 * Nothing is known of the image beyond its edge: its weight is 0 there.
 *
 * \par Types
 * Those of RenormalizedDeconvolutionImageFilter.
 *
 * \par Memory
 * The memory of RenormalizedDeconvolutionImageFilter, and the sums of a convolution with varying kernels.
 *
 * \par Streaming
 * A voxel depends on the whole image: the filter computes the largest possible region, whatever is requested.
 *
 * \par Determinism
 * The same bits for every division into chunks and every number of threads. Devices do not compute it.
 *
 * \par Source
 * See RenormalizedDeconvolutionImageFilter.
 *
 * \sa RenormalizedDeconvolutionImageFilter SpatiallyVaryingConvolutionImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT SpatiallyVaryingDeconvolutionImageFilter
  : public DeconvolutionImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(SpatiallyVaryingDeconvolutionImageFilter);

  using Self = SpatiallyVaryingDeconvolutionImageFilter;
  using Superclass = DeconvolutionImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(SpatiallyVaryingDeconvolutionImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(std::is_floating_point<typename Superclass::OutputPixelType>::value ||
                  std::is_integral<typename Superclass::OutputPixelType>::value,
                "estimates are numbers");

  const char *
  GetFilterName() const override
  {
    return "deconvolve-varying";
  }

  /** Kernels one after the other along the last axis: one for each node of the grid, x fastest. */
  using KernelStackType = Image<typename TInputImage::PixelType, ImageDimension + 1>;
  itkSetConstObjectMacro(KernelStack, KernelStackType);
  itkGetConstObjectMacro(KernelStack, KernelStackType);

  /** Nodes per axis. Default: 1. */
  using GridSizeType = typename TInputImage::SizeType;
  itkSetMacro(GridSize, GridSizeType);
  itkGetConstReferenceMacro(GridSize, GridSizeType);

  ModifiedTimeType
  GetMTime() const override
  {
    const ModifiedTimeType time = Superclass::GetMTime();
    return m_KernelStack ? std::max(time, m_KernelStack->GetMTime()) : time;
  }

protected:
  SpatiallyVaryingDeconvolutionImageFilter() { m_GridSize.Fill(1); }
  ~SpatiallyVaryingDeconvolutionImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    if (!m_KernelStack || !ChunkwiseHasAllVoxels(m_KernelStack.GetPointer()))
    {
      itkExceptionMacro("KernelStack: it was not set, or has no voxels; it must be up to date");
    }
    const auto                size = m_KernelStack->GetLargestPossibleRegion().GetSize();
    const std::vector<double> voxels = ChunkwiseReadVoxels(m_KernelStack.GetPointer());
    auto                      stack = std::make_shared<chunkwise::KernelStack>();
    std::size_t               count = 1;
    for (unsigned int axis = 0; axis < ImageDimension; ++axis)
    {
      stack->extent[static_cast<int>(axis)] = static_cast<std::int64_t>(size[axis]);
      count *= size[axis];
    }
    for (std::size_t first = 0; first < voxels.size(); first += count)
    {
      stack->kernels.emplace_back(voxels.begin() + static_cast<std::ptrdiff_t>(first),
                                  voxels.begin() + static_cast<std::ptrdiff_t>(first + count));
    }
    parameters.Set("KernelImages", std::shared_ptr<const chunkwise::KernelStack>(stack));
    std::vector<std::int64_t> nodes;
    for (const unsigned int axis : this->GetSpatialAxes())
    {
      nodes.push_back(axis < ImageDimension ? static_cast<std::int64_t>(m_GridSize[axis]) : 1);
    }
    parameters.Set("GridSize", nodes);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    itkPrintSelfObjectMacro(KernelStack);
    os << indent << "GridSize: " << m_GridSize << std::endl;
  }

private:
  typename KernelStackType::ConstPointer m_KernelStack;
  GridSizeType                           m_GridSize;
};
} // namespace itk

#endif
