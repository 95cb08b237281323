/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSummedAreaTableImageFilter_hxx
#define itkSummedAreaTableImageFilter_hxx

#include "chunkwiseSummedAreaTableCarry.h"
#include "itkChunkwiseExecutor.h"
#include "itkChunkwiseGeometry.h"
#include "itkSummedAreaTableImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
SummedAreaTableImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  parameters.SetInteger("SummedAxes", m_SummedAxes);
  parameters.Set("Squares", m_Squares);
  parameters.Set("Modular", m_Modular);
  parameters.Set("Method", m_Method == MethodEnum::Blocks ? "blocks" : "single-pass");
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<chunkwise::SummedAreaTableOperation>
SummedAreaTableImageFilter<TInputImage, TOutputImage>::MakeTable(const chunkwise::FilterImage & image) const
{
  return std::make_shared<chunkwise::SummedAreaTableOperation>(
    dynamic_cast<const chunkwise::SummedAreaTableOperation &>(*Superclass::MakeOperation(image)));
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
SummedAreaTableImageFilter<TInputImage, TOutputImage>::MakeOperation(const chunkwise::FilterImage & image) const
{
  auto operation = this->MakeTable(image);
  // Without an input it is asked for as a part of something else.
  const chunkwise::Box region = this->GetInput() ? this->GetRegion() : chunkwise::Box();
  if (operation->Sweeps() && !region.IsEmpty())
  {
    operation->begin = region.lower[operation->GetSweepAxis(image.extent)];
    if (this->FitsCarry(region))
    {
      operation->carry = m_Carry.data;
    }
  }
  return operation;
}

template <typename TInputImage, typename TOutputImage>
chunkwise::Box
SummedAreaTableImageFilter<TInputImage, TOutputImage>::GetRegion() const
{
  return this->GetBox(this->GetOutput()->GetRequestedRegion());
}

template <typename TInputImage, typename TOutputImage>
ModifiedTimeType
SummedAreaTableImageFilter<TInputImage, TOutputImage>::GetInputTime() const
{
  // A filter's output is marked as modified with each piece; an image without a filter only by its user.
  const TInputImage * input = this->GetInput();
  return input->GetSource() ? input->GetPipelineMTime() : input->GetMTime();
}

template <typename TInputImage, typename TOutputImage>
bool
SummedAreaTableImageFilter<TInputImage, TOutputImage>::FitsCarry(const chunkwise::Box & region) const
{
  const auto axis = static_cast<int>(m_SummedAxes) - 1;
  if (m_Carry.data.empty() || m_Carry.begin != region.lower[axis] || m_Carry.input != this->GetInput() ||
      m_Carry.inputTime != this->GetInputTime() || m_Carry.filterTime != this->GetMTime())
  {
    return false;
  }
  for (int a = 0; a < axis; ++a)
  {
    if (m_Carry.upper[a] != region.upper[a])
    {
      return false;
    }
  }
  return true;
}

template <typename TInputImage, typename TOutputImage>
void
SummedAreaTableImageFilter<TInputImage, TOutputImage>::GenerateInputRequestedRegion()
{
  Superclass::GenerateInputRequestedRegion();

  const chunkwise::Box region = this->GetRegion();
  auto *               input = const_cast<TInputImage *>(this->GetInput());
  const auto           origin = input->GetLargestPossibleRegion().GetIndex();
  const auto           axis = static_cast<int>(m_SummedAxes) - 1;
  if (region.IsEmpty() || !this->MakeTable(this->MakeFilterImage())->Sweeps() || this->FitsCarry(region))
  {
    return;
  }
  chunkwise::Box all = ChunkwiseBoxFromRegion(input->GetRequestedRegion(), origin);
  all.lower[axis] = 0;
  input->SetRequestedRegion(ChunkwiseRegionFromBox<TInputImage::ImageDimension>(all, origin));
}

template <typename TInputImage, typename TOutputImage>
void
SummedAreaTableImageFilter<TInputImage, TOutputImage>::GenerateData()
{
  const TInputImage *  input = this->GetInput();
  const auto           origin = input->GetLargestPossibleRegion().GetIndex();
  const auto           extent = ChunkwiseBoxFromRegion(input->GetLargestPossibleRegion(), origin).Extents();
  const chunkwise::Box region = this->GetRegion();
  const auto           table = this->MakeTable(this->MakeFilterImage());
  const auto           axis = static_cast<int>(m_SummedAxes) - 1;
  if (region.IsEmpty() || !table->Sweeps())
  {
    Superclass::GenerateData();
    return;
  }
  const chunkwise::BufferView pixels = this->GetInputView(0);
  // Keeps what the rows or slices from `lower` to `upper` leave behind.
  const auto advance = [&](std::int64_t lower, std::int64_t upper) {
    chunkwise::Box part = region;
    for (int a = 0; a < axis; ++a)
    {
      part.lower[a] = 0;
    }
    part.lower[axis] = lower;
    part.upper[axis] = upper;
    table->begin = lower;
    table->carry = lower > 0 ? m_Carry.data : chunkwise::ChunkState();
    ChunkwiseExecutor executor(this->GetMultiThreader(), this->GetNumberOfWorkUnits());
    m_Carry.data = chunkwise::AdvanceCarry(
      *table, pixels, chunkwise::PixelTypeOf<typename Superclass::OutputPixelType>(), part, executor);
    m_Carry.begin = upper;
    m_Carry.upper = region.upper;
    m_Carry.input = input;
    m_Carry.inputTime = this->GetInputTime();
    m_Carry.filterTime = this->GetMTime();
  };
  if (region.lower[axis] > 0 && !this->FitsCarry(region))
  {
    advance(0, region.lower[axis]);
  }
  Superclass::GenerateData();
  if (region.upper[axis] < extent[axis])
  {
    advance(region.lower[axis], region.upper[axis]);
  }
  else
  {
    m_Carry = Carry();
  }
}

template <typename TInputImage, typename TOutputImage>
void
SummedAreaTableImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "SummedAxes: " << m_SummedAxes << std::endl;
  os << indent << "Squares: " << (m_Squares ? "On" : "Off") << std::endl;
  os << indent << "Modular: " << (m_Modular ? "On" : "Off") << std::endl;
  os << indent << "Method: " << m_Method << std::endl;
  os << indent << "KeptCarry: " << m_Carry.data.size() << " bytes at " << m_Carry.begin << std::endl;
}

} // namespace itk

#endif
