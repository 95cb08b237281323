/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSpatialAxesImageFilterBase_h
#define itkSpatialAxesImageFilterBase_h

#include "itkChunkwiseImageToImageFilter.h"

#include <algorithm>
#include <vector>

namespace itk
{
/** \class SpatialAxesImageFilterBase
 * \brief Base of the filters whose voxels depend on each other along axes that one can choose, and that have no
 * windows.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT SpatialAxesImageFilterBase : public ChunkwiseImageToImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(SpatialAxesImageFilterBase);

  using Self = SpatialAxesImageFilterBase;
  using Superclass = ChunkwiseImageToImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(SpatialAxesImageFilterBase);

  /** Axes along which voxels depend on each other: one to three, 0 is x. Default: the first three. */
  using AxesType = std::vector<unsigned int>;
  void
  SetSpatialAxes(const AxesType & axes)
  {
    if (m_SpatialAxes != axes)
    {
      m_SpatialAxes = axes;
      this->Modified();
    }
  }
  const AxesType &
  GetSpatialAxes() const
  {
    return m_SpatialAxes;
  }

protected:
  SpatialAxesImageFilterBase()
  {
    const unsigned int axes = std::min<unsigned int>(Superclass::ImageDimension, chunkwise::MaxSpatialAxes);
    for (unsigned int axis = 0; axis < axes; ++axis)
    {
      m_SpatialAxes.push_back(axis);
    }
  }
  ~SpatialAxesImageFilterBase() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("SpatialAxes", std::vector<std::int64_t>(m_SpatialAxes.begin(), m_SpatialAxes.end()));
    return parameters;
  }
  /** Whether any voxel may depend on all others, so that the output is always whole. */
  virtual bool
  GivesWholeOutput() const
  {
    return false;
  }
  void
  EnlargeOutputRequestedRegion(DataObject * data) override
  {
    Superclass::EnlargeOutputRequestedRegion(data);
    auto * const output = dynamic_cast<TOutputImage *>(data);
    if (output && this->GivesWholeOutput())
    {
      output->SetRequestedRegion(output->GetLargestPossibleRegion());
    }
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    PrintAxes(os, indent, "SpatialAxes", m_SpatialAxes);
  }
  static void
  PrintAxes(std::ostream & os, Indent indent, const char * name, const AxesType & axes)
  {
    os << indent << name << ":";
    for (const unsigned int axis : axes)
    {
      os << " " << axis;
    }
    os << std::endl;
  }

private:
  AxesType m_SpatialAxes;
};
} // namespace itk

#endif
