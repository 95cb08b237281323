/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseSequenceImageFilter_h
#define itkChunkwiseSequenceImageFilter_h

#include "itkChunkwiseImageToImageFilter.h"

namespace itk
{
/** \class ChunkwiseSequenceImageFilter
 * \brief Several filters, one after the other, in one pass over the image.
 *
 * Each chunk goes through all filters before the next one begins: it is loaded to a device once and stored once, and
 * what is between the filters never leaves the device.
 *
 * Add filters in the order they run in. They are filters from the output's image type to itself, with their parameters
 * set. Their inputs do not count, nor do their backend, devices and budgets: those of the sequence do.
 *
 * \par Boundary
 * Each filter's own boundary condition counts, at the image's edge; each computes what the next one needs around a
 * chunk.
 *
 * \par Types
 * The input is converted by the first filter, from the input's to the output's type; between the filters voxels have
 * the output's type, as when they are run one after the other.
 *
 * \par Memory
 * A chunk needs its input, its output, up to two intermediate images of the output's type, and what the hungriest of
 * its filters needs. If a filter's windows wrap around (Periodic), a chunk holds the axis whole.
 *
 * \par Streaming
 * Requests the output's requested region padded by the sum of what the filters would, and cut at the image.
 *
 * \par Determinism
 * The same bits as the filters one after the other, each over the whole image; and so for every division into chunks
 * and requested regions, number of threads and device.
 *
 * \par Source
 * Fused pipelines that keep data on the device are common in array libraries; the halo of a chunk as the sum of those
 * of its stages makes them exact at every seam.
 *
 * \sa ChunkwiseImageToImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ChunkwiseSequenceImageFilter : public ChunkwiseImageToImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseSequenceImageFilter);

  using Self = ChunkwiseSequenceImageFilter;
  using Superclass = ChunkwiseImageToImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ChunkwiseSequenceImageFilter);

  static_assert(Superclass::GivesSameTypeOrReal, "the output's pixels are of the input's type, float or double");

  /** A stage can be any filter of this module that needs no more than a chunk at a time. */
  using StageType = ChunkwiseImageToImageFilter<TOutputImage, TOutputImage>;

  /** Appends a filter, which keeps its parameters and inputs, so that it can be a stage of several sequences. It must
   * not be this sequence, nor one that has it as a stage. */
  void
  AddFilter(StageType * filter);
  void
  ClearFilters();
  itk::SizeValueType
  GetNumberOfFilters() const
  {
    return m_Filters.size();
  }
  StageType *
  GetFilter(SizeValueType i) const
  {
    return m_Filters.at(i).GetPointer();
  }

  /** Changes when a stage does. */
  ModifiedTimeType
  GetMTime() const override;

protected:
  ChunkwiseSequenceImageFilter() = default;
  ~ChunkwiseSequenceImageFilter() override = default;

  std::shared_ptr<const chunkwise::Operation>
  MakeOperation(const chunkwise::FilterImage & image) const override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  /** Whether `filter` is this sequence or, stage by stage, has it. */
  bool
  IsPartOf(const StageType * filter) const;

  std::vector<typename StageType::Pointer> m_Filters;
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkChunkwiseSequenceImageFilter.hxx"
#endif

#endif
