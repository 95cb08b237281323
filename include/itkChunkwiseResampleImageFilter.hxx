/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseResampleImageFilter_hxx
#define itkChunkwiseResampleImageFilter_hxx

#include "chunkwiseError.h"
#include "itkChunkwiseResampleImageFilter.h"
#include "itkMatrixOffsetTransformBase.h"

#include <algorithm>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseResampleImageFilter<TInputImage, TOutputImage>::SetOutputOrigin(const PointType & origin)
{
  if (!m_HasOrigin || m_OutputOrigin != origin)
  {
    m_HasOrigin = true;
    m_OutputOrigin = origin;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseResampleImageFilter<TInputImage, TOutputImage>::SetOutputDirection(const DirectionType & direction)
{
  if (!m_HasDirection || m_OutputDirection != direction)
  {
    m_HasDirection = true;
    m_OutputDirection = direction;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
std::vector<double>
ChunkwiseResampleImageFilter<TInputImage, TOutputImage>::MakeAffine() const
{
  if (!m_Transform->IsLinear())
  {
    itkExceptionMacro(<< "Transform: " << m_Transform->GetNameOfClass()
                      << " is not linear; the image of a displacement field can be given to SetDisplacementField");
  }
  using LinearType = MatrixOffsetTransformBase<double, ImageDimension, ImageDimension>;
  const auto * const  linear = dynamic_cast<const LinearType *>(m_Transform.GetPointer());
  std::vector<double> affine(ImageDimension * (ImageDimension + 1));
  PointType           zero;
  zero.Fill(0);
  const PointType start = m_Transform->TransformPoint(zero);
  for (unsigned int column = 0; column < ImageDimension; ++column)
  {
    PointType one = zero;
    one[column] = 1;
    const PointType end = m_Transform->TransformPoint(one);
    for (unsigned int row = 0; row < ImageDimension; ++row)
    {
      affine[row * (ImageDimension + 1) + column] = linear ? linear->GetMatrix()(row, column) : end[row] - start[row];
    }
  }
  for (unsigned int row = 0; row < ImageDimension; ++row)
  {
    affine[row * (ImageDimension + 1) + ImageDimension] = linear ? linear->GetOffset()[row] : start[row];
  }
  return affine;
}

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
ChunkwiseResampleImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  std::vector<std::int64_t>   axes(ImageDimension);
  for (unsigned int a = 0; a < ImageDimension; ++a)
  {
    axes[a] = a;
  }
  parameters.Set("SpatialAxes", axes);
  const auto add = [](std::vector<double> & list, const auto & values) {
    for (unsigned int a = 0; a < ImageDimension; ++a)
    {
      list.push_back(static_cast<double>(values[a]));
    }
  };
  const auto addRows = [](std::vector<double> & list, const DirectionType & direction) {
    for (unsigned int row = 0; row < ImageDimension; ++row)
    {
      for (unsigned int column = 0; column < ImageDimension; ++column)
      {
        list.push_back(direction(row, column));
      }
    }
  };
  std::vector<double> list;
  if (m_ReferenceImage)
  {
    parameters.Set("Reference", DescribeGrid(*m_ReferenceImage));
  }
  else
  {
    SizeType none;
    none.Fill(0);
    if (m_Size != none)
    {
      std::vector<std::int64_t> size;
      for (unsigned int a = 0; a < ImageDimension; ++a)
      {
        size.push_back(static_cast<std::int64_t>(m_Size[a]));
      }
      parameters.Set("Size", size);
    }
    SpacingType noSpacing;
    noSpacing.Fill(0);
    if (m_OutputSpacing != noSpacing)
    {
      add(list, m_OutputSpacing);
      parameters.Set("OutputSpacing", list);
    }
    if (m_HasOrigin)
    {
      list.clear();
      add(list, m_OutputOrigin);
      parameters.Set("OutputOrigin", list);
    }
    if (m_HasDirection)
    {
      list.clear();
      addRows(list, m_OutputDirection);
      parameters.Set("OutputDirection", list);
    }
  }
  if (m_Transform)
  {
    parameters.Set("Affine", this->MakeAffine());
  }
  if (m_DisplacementField)
  {
    parameters.Set("Displacements", this->GetVectors());
    parameters.Set("DisplacementGrid", DescribeGrid(*m_DisplacementField));
  }
  const auto & interpolation = *chunkwise::GetFilter(this->GetFilterName()).FindParameter("Interpolation");
  parameters.Set("Interpolation", interpolation.choices.at(static_cast<std::size_t>(m_Interpolation)));
  if (m_UseDefaultPixelValue)
  {
    parameters.Set("Outside", "value");
    parameters.Set("OutsideValue", chunkwise::PixelValue(m_DefaultPixelValue));
  }
  parameters.Set("Antialias", m_Antialias);
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
ModifiedTimeType
ChunkwiseResampleImageFilter<TInputImage, TOutputImage>::GetMTime() const
{
  ModifiedTimeType time = Superclass::GetMTime();
  time = m_Transform ? std::max(time, m_Transform->GetMTime()) : time;
  time = m_DisplacementField ? std::max(time, m_DisplacementField->GetMTime()) : time;
  return m_ReferenceImage ? std::max(time, m_ReferenceImage->GetMTime()) : time;
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::KernelStack>
ChunkwiseResampleImageFilter<TInputImage, TOutputImage>::GetVectors() const
{
  const auto & region = m_DisplacementField->GetLargestPossibleRegion();
  if (m_DisplacementField->GetBufferedRegion() != region || region.GetNumberOfPixels() == 0)
  {
    itkExceptionMacro("DisplacementField: it has no pixels, or not all of them");
  }
  if (!m_Vectors || m_VectorsTime != m_DisplacementField->GetMTime())
  {
    const auto stack = std::make_shared<chunkwise::KernelStack>();
    const auto pixels = static_cast<std::size_t>(region.GetNumberOfPixels());
    for (unsigned int k = 0; k < ImageDimension; ++k)
    {
      stack->extent[static_cast<int>(k)] = static_cast<std::int64_t>(region.GetSize(k));
      stack->kernels.emplace_back(pixels);
      for (std::size_t i = 0; i < pixels; ++i)
      {
        stack->kernels[k][i] = m_DisplacementField->GetBufferPointer()[i][k];
      }
    }
    m_Vectors = stack;
    m_VectorsTime = m_DisplacementField->GetMTime();
  }
  return m_Vectors;
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseResampleImageFilter<TInputImage, TOutputImage>::GenerateData()
{
  Superclass::GenerateData();
  m_Vectors = nullptr;
}

template <typename TInputImage, typename TOutputImage>
std::vector<double>
ChunkwiseResampleImageFilter<TInputImage, TOutputImage>::DescribeGrid(const ReferenceImageType & image)
{
  const auto &        region = image.GetLargestPossibleRegion();
  std::vector<double> numbers;
  PointType           first;
  image.TransformIndexToPhysicalPoint(region.GetIndex(), first);
  for (unsigned int a = 0; a < ImageDimension; ++a)
  {
    numbers.push_back(static_cast<double>(region.GetSize(a)));
  }
  numbers.insert(numbers.end(), image.GetSpacing().Begin(), image.GetSpacing().End());
  numbers.insert(numbers.end(), first.Begin(), first.End());
  for (unsigned int row = 0; row < ImageDimension; ++row)
  {
    for (unsigned int column = 0; column < ImageDimension; ++column)
    {
      numbers.push_back(image.GetDirection()(row, column));
    }
  }
  return numbers;
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseResampleImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Transform: " << m_Transform.GetPointer() << std::endl;
  os << indent << "DisplacementField: " << m_DisplacementField.GetPointer() << std::endl;
  os << indent << "Interpolation: " << m_Interpolation << std::endl;
  os << indent << "Size: " << m_Size << std::endl;
  os << indent << "OutputSpacing: " << m_OutputSpacing << std::endl;
  os << indent << "OutputOrigin: " << m_OutputOrigin << std::endl;
  os << indent << "OutputDirection: " << m_OutputDirection << std::endl;
  os << indent << "ReferenceImage: " << m_ReferenceImage.GetPointer() << std::endl;
  os << indent << "DefaultPixelValue: " << m_DefaultPixelValue << std::endl;
  os << indent << "UseDefaultPixelValue: " << (m_UseDefaultPixelValue ? "On" : "Off") << std::endl;
  os << indent << "Antialias: " << (m_Antialias ? "On" : "Off") << std::endl;
}

} // namespace itk

#endif
