/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSlidingWindowNetworkImageFilter_hxx
#define itkSlidingWindowNetworkImageFilter_hxx

#include "chunkwiseError.h"
#include "chunkwiseNetworkModel.h"
#include "chunkwiseNetworkOperation.h"
#include "itkSlidingWindowNetworkImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
SlidingWindowNetworkImageFilter<TInputImage, TOutputImage>::SlidingWindowNetworkImageFilter()
{
  // In a static build nothing else registers the networks.
  chunkwise::AddNetworks();
}

template <typename TInputImage, typename TOutputImage>
void
SlidingWindowNetworkImageFilter<TInputImage, TOutputImage>::SetModelFileName(const std::string & fileName)
{
  if (m_ModelFileName != fileName)
  {
    m_ModelFileName = fileName;
    m_Graph = nullptr;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
void
SlidingWindowNetworkImageFilter<TInputImage, TOutputImage>::SetGraph(const GraphPointer & graph)
{
  if (m_Graph != graph || !m_ModelFileName.empty())
  {
    m_ModelFileName.clear();
    m_Graph = graph;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
typename SlidingWindowNetworkImageFilter<TInputImage, TOutputImage>::GraphPointer
SlidingWindowNetworkImageFilter<TInputImage, TOutputImage>::GetGraph() const
{
  if (!m_Graph && !m_ModelFileName.empty())
  {
    try
    {
      m_Graph = chunkwise::ReadNetworkModel(m_ModelFileName);
    }
    catch (const chunkwise::Error & error)
    {
      itkExceptionMacro(<< "ModelFileName: " << error.what());
    }
  }
  return m_Graph;
}

template <typename TInputImage, typename TOutputImage>
void
SlidingWindowNetworkImageFilter<TInputImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  const GraphPointer graph = this->GetGraph();
  if (!graph)
  {
    itkExceptionMacro("Model: neither ModelFileName nor Graph is set");
  }
  if (HasAllChannels && (m_OutputMode != OutputModeEnum::Channel || m_Channel != 0))
  {
    itkExceptionMacro(<< "OutputMode: " << m_OutputMode << " of channel " << m_Channel
                      << " has one value, and the output is an itk::VectorImage, which has all channels");
  }
  for (int i = 0; i < graph->GetNumberOfInputChannels(); ++i)
  {
    if (!this->ProcessObject::GetInput(static_cast<ProcessObject::DataObjectPointerArraySizeType>(i)))
    {
      itkExceptionMacro(<< "Input" << i + 1 << ": it is not set; the network has " << graph->GetNumberOfInputChannels()
                        << " input channels, an image for each");
    }
  }
  if (this->ProcessObject::GetInput(
        static_cast<ProcessObject::DataObjectPointerArraySizeType>(graph->GetNumberOfInputChannels())))
  {
    itkExceptionMacro(<< "Input" << graph->GetNumberOfInputChannels() + 1 << ": it is set; the network has "
                      << graph->GetNumberOfInputChannels() << " input channels");
  }
}

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
SlidingWindowNetworkImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  parameters.Set("Model", this->GetGraph());
  switch (m_OutputMode)
  {
    case OutputModeEnum::Channel:
      parameters.Set("OutputMode", "channel");
      break;
    case OutputModeEnum::ArgMax:
      parameters.Set("OutputMode", "argmax");
      break;
    case OutputModeEnum::Threshold:
      parameters.Set("OutputMode", "threshold");
      break;
  }
  parameters.SetInteger("Channel", m_Channel);
  parameters.SetReal("Threshold", m_Threshold);
  parameters.SetReal("InputScale", m_InputScale);
  parameters.SetReal("InputShift", m_InputShift);
  switch (m_Precision)
  {
    case PrecisionEnum::Float32:
      parameters.Set("Precision", "float32");
      break;
    case PrecisionEnum::Reproducible:
      parameters.Set("Precision", "reproducible");
      break;
    case PrecisionEnum::TensorFloat32:
      parameters.Set("Precision", "tensorfloat32");
      break;
    case PrecisionEnum::Half:
      parameters.Set("Precision", "half");
      break;
  }
  parameters.Set("InferenceMode", m_InferenceMode == InferenceModeEnum::Patches ? "patches" : "dense");
  std::vector<std::int64_t> patch;
  for (unsigned int a = 0; a < TInputImage::ImageDimension && a < static_cast<unsigned int>(chunkwise::MaxSpatialAxes);
       ++a)
  {
    patch.push_back(static_cast<std::int64_t>(m_PatchSize[a]));
  }
  parameters.Set("PatchSize", patch);
  parameters.SetReal("Overlap", m_Overlap);
  parameters.Set("PatchWeighting", m_PatchWeighting == PatchWeightingEnum::Gaussian ? "gaussian" : "constant");
  parameters.Set("BoundaryCondition", GetChunkwiseWord(m_BoundaryCondition));
  parameters.Set("Constant", chunkwise::PixelValue(m_Constant));
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
SlidingWindowNetworkImageFilter<TInputImage, TOutputImage>::MakeOperation(const chunkwise::FilterImage & image) const
{
  const auto made = Superclass::MakeOperation(image);
  if constexpr (HasAllChannels)
  {
    const auto operation =
      std::make_shared<chunkwise::NetworkOperation>(static_cast<const chunkwise::NetworkOperation &>(*made));
    operation->result = chunkwise::NetworkResult::AllChannels;
    operation->channelAxis = this->GetComponents().axis;
    return operation;
  }
  else
  {
    return made;
  }
}

template <typename TInputImage, typename TOutputImage>
typename SlidingWindowNetworkImageFilter<TInputImage, TOutputImage>::Components
SlidingWindowNetworkImageFilter<TInputImage, TOutputImage>::GetComponents() const
{
  if (!HasAllChannels)
  {
    return { 0, 0 };
  }
  // Without a network there is no run either.
  const GraphPointer graph = this->GetGraph();
  return { std::max(chunkwise::MaxSpatialAxes, static_cast<int>(TOutputImage::ImageDimension)),
           graph ? graph->GetNumberOfOutputChannels() : 1 };
}

template <typename TInputImage, typename TOutputImage>
void
SlidingWindowNetworkImageFilter<TInputImage, TOutputImage>::GenerateOutputInformation()
{
  Superclass::GenerateOutputInformation();
  if constexpr (HasAllChannels)
  {
    if (const GraphPointer graph = this->GetGraph())
    {
      this->GetOutput()->SetNumberOfComponentsPerPixel(static_cast<unsigned int>(graph->GetNumberOfOutputChannels()));
    }
  }
}

template <typename TInputImage, typename TOutputImage>
void
SlidingWindowNetworkImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "ModelFileName: " << m_ModelFileName << std::endl;
  os << indent << "Graph: " << (m_Graph ? m_Graph->GetKey() : std::string("none")) << std::endl;
  os << indent << "OutputMode: " << m_OutputMode << std::endl;
  os << indent << "Channel: " << m_Channel << std::endl;
  os << indent << "Threshold: " << m_Threshold << std::endl;
  os << indent << "InputScale: " << m_InputScale << std::endl;
  os << indent << "InputShift: " << m_InputShift << std::endl;
  os << indent << "Precision: " << m_Precision << std::endl;
  os << indent << "InferenceMode: " << m_InferenceMode << std::endl;
  os << indent << "PatchSize: " << m_PatchSize << std::endl;
  os << indent << "Overlap: " << m_Overlap << std::endl;
  os << indent << "PatchWeighting: " << m_PatchWeighting << std::endl;
  os << indent << "BoundaryCondition: " << m_BoundaryCondition << std::endl;
  os << indent << "Constant: " << m_Constant << std::endl;
}

} // namespace itk

#endif
