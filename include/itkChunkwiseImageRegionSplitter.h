/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseImageRegionSplitter_h
#define itkChunkwiseImageRegionSplitter_h

#include "ChunkwiseExport.h"
#include "chunkwisePlanner.h"
#include "itkChunkwiseMacro.h"
#include "itkImageRegionSplitterBase.h"
#include "itkObjectFactory.h"

#include <vector>

namespace itk
{
/** \class ChunkwiseImageRegionSplitter
 * \brief Splits a region where the engine's plan has its cuts.
 *
 * For itk::StreamingImageFilter::SetRegionSplitter: the pieces that it asks for are whole layers of chunks of the plan
 * (along its sweep axis), so that streaming cuts no chunk in two. A region is split into at most as many pieces as it
 * has layers; without a plan it is one piece. ChunkwiseImageToImageFilter::MakeRegionSplitter makes one.
 *
 * Pieces do not change results: any split gives the same bits.
 *
 * \ingroup Chunkwise
 */
class Chunkwise_EXPORT ChunkwiseImageRegionSplitter : public ImageRegionSplitterBase
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseImageRegionSplitter);

  using Self = ChunkwiseImageRegionSplitter;
  using Superclass = ImageRegionSplitterBase;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ChunkwiseImageRegionSplitter);

  /** `largestIndex` is the index of the largest possible region's first voxel along each axis of the image. */
  void
  SetPlan(const chunkwise::Plan & plan, const std::vector<IndexValueType> & largestIndex);

  /** The axis along which regions are split. */
  itkGetConstMacro(Axis, unsigned int);

  /** Indices along the axis at which layers of chunks begin, ascending. */
  const std::vector<IndexValueType> &
  GetLayerBegins() const
  {
    return m_LayerBegins;
  }

protected:
  ChunkwiseImageRegionSplitter();
  ~ChunkwiseImageRegionSplitter() override;

  unsigned int
  GetNumberOfSplitsInternal(unsigned int dim, const IndexValueType regionIndex[], const SizeValueType regionSize[],
                            unsigned int requestedNumber) const override;

  unsigned int
  GetSplitInternal(unsigned int dim, unsigned int i, unsigned int numberOfPieces, IndexValueType regionIndex[],
                   SizeValueType regionSize[]) const override;

  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  /** The first indices of the layers inside a region, beginning with the region's own. */
  std::vector<IndexValueType>
  LayersOf(IndexValueType index, SizeValueType size) const;

  unsigned int                m_Axis{ 0 };
  std::vector<IndexValueType> m_LayerBegins;
};
} // namespace itk

#endif
