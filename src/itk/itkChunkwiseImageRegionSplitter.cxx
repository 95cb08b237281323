/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseImageRegionSplitter.h"

#include <algorithm>

namespace itk
{

ChunkwiseImageRegionSplitter::ChunkwiseImageRegionSplitter() = default;

ChunkwiseImageRegionSplitter::~ChunkwiseImageRegionSplitter() = default;

void
ChunkwiseImageRegionSplitter::SetPlan(const chunkwise::Plan & plan, const std::vector<IndexValueType> & largestIndex)
{
  m_Axis = std::min(static_cast<unsigned int>(std::max(plan.sweepAxis, 0)),
                    static_cast<unsigned int>(largestIndex.size()) - 1);
  const int axis = static_cast<int>(m_Axis);

  std::vector<IndexValueType> begins;
  for (const chunkwise::Chunk & chunk : plan.chunks)
  {
    begins.push_back(chunk.outputBox.lower[axis] + largestIndex[m_Axis]);
  }
  std::sort(begins.begin(), begins.end());
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  m_LayerBegins = std::move(begins);
  this->Modified();
}

std::vector<IndexValueType>
ChunkwiseImageRegionSplitter::LayersOf(IndexValueType index, SizeValueType size) const
{
  std::vector<IndexValueType> layers{ index };
  const IndexValueType        end = index + static_cast<IndexValueType>(size);
  for (const IndexValueType begin : m_LayerBegins)
  {
    if (begin > index && begin < end)
    {
      layers.push_back(begin);
    }
  }
  return layers;
}

unsigned int
ChunkwiseImageRegionSplitter::GetNumberOfSplitsInternal(unsigned int dim, const IndexValueType regionIndex[],
                                                        const SizeValueType regionSize[],
                                                        unsigned int        requestedNumber) const
{
  if (m_Axis >= dim)
  {
    return 1;
  }
  const auto layers = this->LayersOf(regionIndex[m_Axis], regionSize[m_Axis]).size();
  return static_cast<unsigned int>(std::min<std::size_t>(std::max(requestedNumber, 1u), layers));
}

unsigned int
ChunkwiseImageRegionSplitter::GetSplitInternal(unsigned int dim, unsigned int i, unsigned int numberOfPieces,
                                               IndexValueType regionIndex[], SizeValueType regionSize[]) const
{
  const unsigned int pieces = this->GetNumberOfSplitsInternal(dim, regionIndex, regionSize, numberOfPieces);
  if (i >= pieces || pieces == 1)
  {
    return pieces;
  }
  std::vector<IndexValueType> layers = this->LayersOf(regionIndex[m_Axis], regionSize[m_Axis]);
  const std::size_t           count = layers.size();
  layers.push_back(regionIndex[m_Axis] + static_cast<IndexValueType>(regionSize[m_Axis]));
  const IndexValueType begin = layers[count * i / pieces];
  const IndexValueType end = layers[count * (i + 1) / pieces];
  regionIndex[m_Axis] = begin;
  regionSize[m_Axis] = static_cast<SizeValueType>(end - begin);
  return pieces;
}

void
ChunkwiseImageRegionSplitter::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Axis: " << m_Axis << std::endl;
  os << indent << "LayerBegins:";
  for (const IndexValueType begin : m_LayerBegins)
  {
    os << ' ' << begin;
  }
  os << std::endl;
}

} // namespace itk
