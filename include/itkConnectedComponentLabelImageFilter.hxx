/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkConnectedComponentLabelImageFilter_hxx
#define itkConnectedComponentLabelImageFilter_hxx

#include "itkConnectedComponentLabelImageFilter.h"
#include "itkImageRegionConstIterator.h"

#include <algorithm>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
void
ConnectedComponentLabelImageFilter<TInputImage, TOutputImage>::SetStructure(const StructureType & structure)
{
  if (m_Structure != structure)
  {
    m_Structure = structure;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
void
ConnectedComponentLabelImageFilter<TInputImage, TOutputImage>::SetPeriodicAxes(const AxesType & axes)
{
  if (m_PeriodicAxes != axes)
  {
    m_PeriodicAxes = axes;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
SizeValueType
ConnectedComponentLabelImageFilter<TInputImage, TOutputImage>::GetObjectCount() const
{
  const TOutputImage * const             output = this->GetOutput();
  typename TOutputImage::PixelType       largest{};
  ImageRegionConstIterator<TOutputImage> voxel(output, output->GetBufferedRegion());
  for (; !voxel.IsAtEnd(); ++voxel)
  {
    largest = std::max(largest, voxel.Get());
  }
  return static_cast<SizeValueType>(largest);
}

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
ConnectedComponentLabelImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  constexpr const char *      rules[] = { "foreground", "equal", "within" };
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  parameters.SetInteger("Connectivity", m_Connectivity);
  if (!m_Structure.empty())
  {
    parameters.Set("Structure", std::vector<std::int64_t>(m_Structure.begin(), m_Structure.end()));
  }
  parameters.Set("Rule", rules[static_cast<int>(m_Rule)]);
  if (m_Rule == RuleEnum::Within)
  {
    // Integers differ by whole numbers.
    parameters.Set("Tolerance",
                   std::is_integral<InputPixelType>::value && m_Tolerance >= 0 && m_Tolerance < 9e18
                     ? chunkwise::PixelValue(static_cast<std::int64_t>(m_Tolerance))
                     : chunkwise::PixelValue(m_Tolerance));
  }
  parameters.Set("Background", chunkwise::PixelValue(m_Background));
  parameters.Set("LabelBackground", m_LabelBackground);
  if (!m_PeriodicAxes.empty())
  {
    parameters.Set("PeriodicAxes", std::vector<std::int64_t>(m_PeriodicAxes.begin(), m_PeriodicAxes.end()));
  }
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
void
ConnectedComponentLabelImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  const auto print = [&](const char * name, const auto & numbers) {
    os << indent << name << ":";
    for (const auto number : numbers)
    {
      os << " " << number;
    }
    os << std::endl;
  };
  os << indent << "Connectivity: " << m_Connectivity << std::endl;
  print("Structure", m_Structure);
  os << indent << "Rule: " << m_Rule << std::endl;
  os << indent << "Tolerance: " << m_Tolerance << std::endl;
  os << indent << "Background: " << +m_Background << std::endl;
  os << indent << "LabelBackground: " << (m_LabelBackground ? "On" : "Off") << std::endl;
  print("PeriodicAxes", m_PeriodicAxes);
}

} // namespace itk

#endif
