/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSpatiallyVaryingConvolutionImageFilter_hxx
#define itkSpatiallyVaryingConvolutionImageFilter_hxx

#include "itkChunkwiseKernelStack.h"
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
  if (!stack || !ChunkwiseHasAllVoxels(stack))
  {
    itkExceptionMacro("KernelStack: " << (stack ? "it has no voxels, or not all of them" : "it is a null pointer"));
  }
  const auto                         region = stack->GetLargestPossibleRegion();
  typename KernelImageType::SizeType size;
  std::copy_n(region.GetSize().begin(), ImageDimension, size.begin());
  KernelImagesType kernels;
  const auto *     voxels = stack->GetBufferPointer() + stack->ComputeOffset(region.GetIndex());
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
typename SpatiallyVaryingConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::KernelStackType::Pointer
SpatiallyVaryingConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::GetKernelStack() const
{
  typename KernelStackType::RegionType region;
  region.SetSize(ImageDimension, m_KernelImages.size());
  for (std::size_t node = 0; node < m_KernelImages.size(); ++node)
  {
    const auto & kernel = m_KernelImages[node];
    for (unsigned int axis = 0; axis < ImageDimension; ++axis)
    {
      const SizeValueType size = kernel ? kernel->GetLargestPossibleRegion().GetSize(axis) : 0;
      if (size == 0 || (node > 0 && size != region.GetSize(axis)))
      {
        return nullptr;
      }
      region.SetSize(axis, size);
    }
  }
  if (m_KernelImages.empty())
  {
    return nullptr;
  }
  const auto stack = KernelStackType::New();
  stack->SetRegions(region);
  stack->Allocate();
  auto * to = stack->GetBufferPointer();
  for (const auto & kernel : m_KernelImages)
  {
    for (ImageRegionConstIterator<KernelImageType> it(kernel, kernel->GetLargestPossibleRegion()); !it.IsAtEnd(); ++it)
    {
      *to++ = it.Get();
    }
  }
  return stack;
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
chunkwise::FilterParameters
SpatiallyVaryingConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  for (unsigned int axis = 0; axis < ImageDimension; ++axis)
  {
    if (m_GridSize[axis] != 1 && !this->IsSpatialAxis(axis))
    {
      itkExceptionMacro("GridSize: " << m_GridSize << ", but axis " << axis << " is not spatial");
    }
  }
  auto stack = std::make_shared<chunkwise::KernelStack>();
  for (const auto & kernel : m_KernelImages)
  {
    if (!kernel || !ChunkwiseHasAllVoxels(kernel.GetPointer()))
    {
      itkExceptionMacro("KernelImages: one has no voxels; kernels must be up to date");
    }
    const auto & size = kernel->GetLargestPossibleRegion().GetSize();
    if (size != m_KernelImages.front()->GetLargestPossibleRegion().GetSize())
    {
      itkExceptionMacro("KernelImages: one has the size "
                        << size << ", the first one " << m_KernelImages.front()->GetLargestPossibleRegion().GetSize());
    }
    for (unsigned int axis = 0; axis < ImageDimension; ++axis)
    {
      stack->extent[static_cast<int>(axis)] = static_cast<std::int64_t>(size[axis]);
    }
    stack->kernels.push_back(ChunkwiseReadVoxels(kernel.GetPointer()));
  }
  parameters.Set("KernelImages", std::shared_ptr<const chunkwise::KernelStack>(stack));
  parameters.Set("GridSize", this->SizesOverSpatialAxes("GridSize", m_GridSize));
  if (m_GridIsGiven)
  {
    parameters.Set("GridOrigin", std::vector<double>(m_GridOrigin.Begin(), m_GridOrigin.End()));
    parameters.Set("GridSpacing", std::vector<double>(m_GridSpacing.Begin(), m_GridSpacing.End()));
  }
  parameters.Set("WeightThenConvolve", m_Order == OrderEnum::WeightThenConvolve);
  parameters.Set("Normalize", m_Normalize);
  return parameters;
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
