/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSpatiallyVaryingConvolutionImageFilter_hxx
#define itkSpatiallyVaryingConvolutionImageFilter_hxx

#include "itkChunkwiseConvolutionKernel.h"
#include "itkContinuousIndex.h"
#include "itkSpatiallyVaryingConvolutionImageFilter.h"

#include <algorithm>

namespace itk
{

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
SpatiallyVaryingConvolutionImageFilter<TInputImage, TKernelImage,
                                       TOutputImage>::SpatiallyVaryingConvolutionImageFilter()
{
  m_GridSize.Fill(1);
  m_GridOrigin.Fill(0.0);
  m_GridSpacing.Fill(1.0);
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
void
SpatiallyVaryingConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::SetKernelImages(
  const KernelImagesType & kernels)
{
  if (m_KernelImages != kernels)
  {
    m_KernelImages = kernels;
    this->Modified();
  }
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
void
SpatiallyVaryingConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::SetKernelStack(
  const KernelStackType * stack)
{
  const auto                         region = stack->GetBufferedRegion();
  typename KernelImageType::SizeType size;
  std::copy_n(region.GetSize().begin(), ImageDimension, size.begin());
  KernelImagesType kernels;
  const auto *     voxels = stack->GetBufferPointer();
  for (SizeValueType node = 0; node < region.GetSize(ImageDimension); ++node)
  {
    const auto kernel = KernelImageType::New();
    kernel->SetRegions(size);
    kernel->Allocate();
    const SizeValueType count = kernel->GetBufferedRegion().GetNumberOfPixels();
    std::copy_n(voxels + node * count, count, kernel->GetBufferPointer());
    kernels.emplace_back(kernel);
  }
  this->SetKernelImages(kernels);
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
void
SpatiallyVaryingConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::SetGrid(const PointType &   origin,
                                                                                         const SpacingType & spacing)
{
  if (!m_GridIsGiven || m_GridOrigin != origin || m_GridSpacing != spacing)
  {
    m_GridIsGiven = true;
    m_GridOrigin = origin;
    m_GridSpacing = spacing;
    this->Modified();
  }
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
void
SpatiallyVaryingConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::SetGridToCells()
{
  if (m_GridIsGiven)
  {
    m_GridIsGiven = false;
    this->Modified();
  }
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
ModifiedTimeType
SpatiallyVaryingConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::GetMTime() const
{
  ModifiedTimeType time = Superclass::GetMTime();
  for (const auto & kernel : m_KernelImages)
  {
    time = kernel ? std::max(time, kernel->GetMTime()) : time;
  }
  return time;
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
void
SpatiallyVaryingConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  SizeValueType nodes = 1;
  for (unsigned int axis = 0; axis < ImageDimension; ++axis)
  {
    if (m_GridSize[axis] != 1 && !this->IsSpatialAxis(axis))
    {
      itkExceptionMacro("GridSize: " << m_GridSize << ", but axis " << axis << " is not spatial");
    }
    nodes *= m_GridSize[axis];
  }
  if (m_KernelImages.size() != nodes || nodes == 0)
  {
    itkExceptionMacro("KernelImages: " << m_KernelImages.size() << " for a grid of " << m_GridSize);
  }
  for (const auto & kernel : m_KernelImages)
  {
    if (!kernel || kernel->GetLargestPossibleRegion().GetNumberOfPixels() == 0 ||
        kernel->GetBufferedRegion() != kernel->GetLargestPossibleRegion())
    {
      itkExceptionMacro("KernelImages: one has no voxels; kernels must be up to date");
    }
    for (unsigned int axis = 0; axis < ImageDimension; ++axis)
    {
      if (kernel->GetLargestPossibleRegion().GetSize(axis) > 1 && !this->IsSpatialAxis(axis))
      {
        itkExceptionMacro("KernelImages: one has the size " << kernel->GetLargestPossibleRegion().GetSize()
                                                            << ", but axis " << axis << " is not spatial");
      }
    }
  }
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
SpatiallyVaryingConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::VaryingConvolutionOperation>();
  operation->boundary = this->GetWindowBoundary();
  operation->order = m_Order == OrderEnum::ConvolveThenWeight ? chunkwise::VaryingOrder::ConvolveThenWeight
                                                              : chunkwise::VaryingOrder::WeightThenConvolve;
  const TInputImage * const               input = this->GetInput();
  ContinuousIndex<double, ImageDimension> first;
  if (m_GridIsGiven)
  {
    input->TransformPhysicalPointToContinuousIndex(m_GridOrigin, first);
  }
  for (unsigned int axis = 0; axis < ImageDimension; ++axis)
  {
    const auto a = static_cast<int>(axis);
    operation->nodes[a] = static_cast<std::int64_t>(m_GridSize[axis]);
    if (m_GridIsGiven)
    {
      operation->first[a] = first[axis] - static_cast<double>(input->GetLargestPossibleRegion().GetIndex(axis));
      operation->spacing[a] = m_GridSpacing[axis] / input->GetSpacing()[axis];
    }
    else
    {
      // An image without voxels has a grid, too.
      operation->spacing[a] =
        static_cast<double>(std::max<std::int64_t>(imageExtent[a], 1)) / static_cast<double>(m_GridSize[axis]);
      operation->first[a] = (operation->spacing[a] - 1.0) / 2.0;
    }
  }
  for (const auto & kernel : m_KernelImages)
  {
    operation->kernels.push_back(MakeChunkwiseConvolutionKernel(kernel.GetPointer(), true, m_Normalize));
  }
  return operation;
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
void
SpatiallyVaryingConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::PrintSelf(std::ostream & os,
                                                                                           Indent         indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "KernelImages: " << m_KernelImages.size() << std::endl;
  os << indent << "GridSize: " << m_GridSize << std::endl;
  if (m_GridIsGiven)
  {
    os << indent << "GridOrigin: " << m_GridOrigin << std::endl;
    os << indent << "GridSpacing: " << m_GridSpacing << std::endl;
  }
  else
  {
    os << indent << "Grid: cells of the image" << std::endl;
  }
  os << indent << "Order: " << m_Order << std::endl;
  os << indent << "Normalize: " << (m_Normalize ? "On" : "Off") << std::endl;
}

} // namespace itk

#endif
