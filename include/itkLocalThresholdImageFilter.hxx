/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkLocalThresholdImageFilter_hxx
#define itkLocalThresholdImageFilter_hxx

#include "itkLocalThresholdImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
LocalThresholdImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  const auto &                row = chunkwise::GetFilter(this->GetFilterName());
  const std::string &         method = row.FindParameter("Method")->choices.at(static_cast<std::size_t>(m_Method));
  parameters.Set("Method", method);
  parameters.Set("Result", row.FindParameter("Result")->choices.at(static_cast<std::size_t>(m_Result)));
  const std::pair<const char *, double> numbers[] = { { "Offset", m_Offset }, { "K", m_K }, { "R", m_R },
                                                      { "P", m_P },           { "Q", m_Q }, { "Contrast", m_Contrast },
                                                      { "Level", m_Level } };
  for (const auto & number : numbers)
  {
    // NaN stands for a default; a parameter of another method has no effect.
    if (number.second == number.second && row.FindParameter(number.first)->HasEffectWith(method))
    {
      parameters.SetReal(number.first, number.second);
    }
  }
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
void
LocalThresholdImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Method: " << m_Method << std::endl;
  os << indent << "Result: " << m_Result << std::endl;
  os << indent << "Offset: " << m_Offset << std::endl;
  os << indent << "K: " << m_K << std::endl;
  os << indent << "R: " << m_R << std::endl;
  os << indent << "P: " << m_P << std::endl;
  os << indent << "Q: " << m_Q << std::endl;
  os << indent << "Contrast: " << m_Contrast << std::endl;
  os << indent << "Level: " << m_Level << std::endl;
}

} // namespace itk

#endif
