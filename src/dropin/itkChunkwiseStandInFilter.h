/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseStandInFilter_h
#define itkChunkwiseStandInFilter_h

#include "itkChunkwiseGeometry.h"
#include "itkChunkwiseStandInRun.h"
#include "itkCreateObjectFunction.h"
#include "itkImage.h"

#include <typeinfo>

namespace itk
{

/** Calls that a filter needs before its own code runs; an overload for each class that needs it. */
inline void
PrepareItk(ProcessObject &)
{}

/** Values of setters that the program's own filter has when it is made; an overload for each class that needs it. */
inline void
InitializeStandIn(ProcessObject &)
{}

/** Results of a filter beside its image; a specialization for each class that has any. */
template <typename TFilter>
class ChunkwiseStandInResults : public TFilter
{
protected:
  ChunkwiseStandInResults() = default;
  ~ChunkwiseStandInResults() override = default;

  /** Called when the filter has finished. */
  void
  TakeResults(bool itkNotUsed(isServed))
  {}
};

/** \class ChunkwiseStandInFilter
 * \brief Takes the place of an ITK filter, as an object of exactly that class.
 *
 * ITK's factories replace one instantiation of a template by a class derived from it. All parameters, and how ITK asks
 * for its inputs, are the superclass'; GenerateData asks DescribeChunkwiseTask, an overload for each class, what that
 * is in the engine's table of filters.
 *
 * \ingroup Chunkwise
 */
template <typename TFilter>
class ChunkwiseStandInFilter
  : public ChunkwiseStandInResults<TFilter>
  , public ChunkwiseStandIn
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseStandInFilter);

  using Self = ChunkwiseStandInFilter;
  using Superclass = TFilter;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;
  using InputType = typename TFilter::InputImageType;
  using OutputType = typename TFilter::OutputImageType;

  // With the factory it would make itself without end.
  itkFactorylessNewMacro(Self);

protected:
  ChunkwiseStandInFilter() { InitializeStandIn(static_cast<TFilter &>(*this)); }
  ~ChunkwiseStandInFilter() override = default;

  void
  GenerateInputRequestedRegion() override
  {
    Superclass::GenerateInputRequestedRegion();
    // ITK's openings and closings ask for what one of their two steps needs.
    auto * const input = const_cast<InputType *>(this->GetInput());
    if (!input)
    {
      return;
    }
    const auto                   task = this->Describe();
    typename InputType::SizeType margin;
    bool                         any = false;
    for (unsigned int a = 0; a < InputType::ImageDimension; ++a)
    {
      margin[a] = static_cast<SizeValueType>(2 * task.padding[static_cast<int>(a)]);
      any = any || margin[a] > 0;
    }
    auto region = this->GetOutput()->GetRequestedRegion();
    region.PadByRadius(margin);
    if (any && region.Crop(input->GetLargestPossibleRegion()))
    {
      input->SetRequestedRegion(region);
    }
  }

  void
  GenerateData() override
  {
    ChunkwiseStandInRun run(*this);
    const bool          isReady = this->Prepare(run);
    if (isReady)
    {
      this->AllocateOutputs();
    }
    const bool isServed = isReady && run.Execute(this->ViewOf(*this->GetOutput()));
    if (!isServed)
    {
      PrepareItk(static_cast<TFilter &>(*this));
      Superclass::GenerateData();
    }
    this->TakeResults(isServed);
    m_BackendUsed = run.GetBackendUsed();
    m_ReasonNotServed = run.GetReasonNotServed();
    run.Report();
  }

  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "BackendUsed: " << m_BackendUsed << std::endl;
    os << indent << "ReasonNotServed: " << m_ReasonNotServed << std::endl;
  }

private:
  ChunkwiseStandInTask
  Describe() const
  {
    ChunkwiseStandInTask task;
    DescribeChunkwiseTask(static_cast<const TFilter &>(*this), task);
    return task;
  }

  bool
  Prepare(ChunkwiseStandInRun & run) const
  {
    ChunkwiseStandInImages  images;
    const InputType * const first = this->GetInput();
    if (!first)
    {
      run.Refuse("no input");
      return false;
    }
    const auto & largest = first->GetLargestPossibleRegion();
    const auto   task = this->Describe();
    for (unsigned int i = 0; i < (task.hasMarker ? 2U : 1U); ++i)
    {
      const InputType * const input = this->GetInput(i);
      if (!input || input->GetLargestPossibleRegion() != largest)
      {
        run.Refuse("images of different regions");
        return false;
      }
      images.inputs.push_back(this->ViewOf(*input));
    }
    images.image.dimension = InputType::ImageDimension;
    images.image.extent = ChunkwiseBoxFromRegion(largest, largest.GetIndex()).Extents();
    images.image.inputKind = chunkwise::PixelTypeOf<typename InputType::PixelType>();
    images.image.outputKind = chunkwise::PixelTypeOf<typename OutputType::PixelType>();
    for (unsigned int a = 0; a < InputType::ImageDimension; ++a)
    {
      images.image.spacing[a] = first->GetSpacing()[a];
    }
    images.region = ChunkwiseBoxFromRegion(this->GetOutput()->GetRequestedRegion(), largest.GetIndex());
    return run.Prepare(task, images);
  }

  template <typename TImage>
  chunkwise::BufferView
  ViewOf(const TImage & image) const
  {
    using PixelType = typename TImage::PixelType;
    return chunkwise::DenseView(
      const_cast<PixelType *>(image.GetBufferPointer()),
      chunkwise::PixelTypeOf<PixelType>(),
      ChunkwiseBoxFromRegion(image.GetBufferedRegion(), this->GetInput()->GetLargestPossibleRegion().GetIndex()));
  }
};

/** A class that a stand-in is made for. */
struct ChunkwiseOverride
{
  std::string                       itkClass;
  std::string                       replaced; ///< as typeid has it
  std::string                       replacement;
  CreateObjectFunctionBase::Pointer create;
};
using ChunkwiseOverrides = std::vector<ChunkwiseOverride>;

template <typename TFilter>
void
AddChunkwiseStandIn(ChunkwiseOverrides & overrides, const char * itkClass)
{
  using StandIn = ChunkwiseStandInFilter<TFilter>;
  overrides.push_back(
    { itkClass, typeid(TFilter).name(), typeid(StandIn).name(), CreateObjectFunction<StandIn>::New().GetPointer() });
}

/** The voxels to either side of a box's center. */
template <typename TSize>
std::vector<std::int64_t>
ChunkwiseSizes(const TSize & size)
{
  std::vector<std::int64_t> sizes;
  for (unsigned int a = 0; a < TSize::Dimension; ++a)
  {
    sizes.push_back(static_cast<std::int64_t>(size[a]));
  }
  return sizes;
}

/** Those of filters whose input has this type of pixel: a source for each, so that they are compiled at the same time
 * and what ITK's filters have in common is compiled once. */
template <typename TPixel>
void
AddChunkwiseStandInsOf(ChunkwiseOverrides & overrides);

/** Those of double that programs use most. */
void
AddChunkwiseStandInsOfDoubles(ChunkwiseOverrides & overrides);

/** Convolutions with an image, which are within a tolerance only. */
void
AddChunkwiseStandInsOfConvolutions(ChunkwiseOverrides & overrides);

extern template void
AddChunkwiseStandInsOf<unsigned char>(ChunkwiseOverrides & overrides);
extern template void
AddChunkwiseStandInsOf<short>(ChunkwiseOverrides & overrides);
extern template void
AddChunkwiseStandInsOf<unsigned short>(ChunkwiseOverrides & overrides);
extern template void
AddChunkwiseStandInsOf<float>(ChunkwiseOverrides & overrides);

} // namespace itk

#endif
