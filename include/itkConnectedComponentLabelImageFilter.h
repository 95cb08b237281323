/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkConnectedComponentLabelImageFilter_h
#define itkConnectedComponentLabelImageFilter_h

#include "itkSpatialAxesImageFilterBase.h"
#include "itkConnectedComponentLabelEnums.h"

namespace itk
{
/** \class ConnectedComponentLabelImageFilter
 * \brief Connected components, numbered 1, 2, ..., N in the raster order of their first voxels; the background is 0.
 *
 * A component is a largest set of voxels that are no background and that a chain of neighbors connects; by the rules
 * Equal and Within neighbors in the chain also have equal values, or values that differ by Tolerance at most.
 *
 * \par Boundary
 * Voxels at the edge have no neighbors beyond it, but along PeriodicAxes, where the first voxel and the last are
 * neighbors.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to any of them; by default to unsigned integers of 32 bits. An output
 * type without a label for each component throws, and names the number of components, before the output is written. NaN
 * are foreground, and equal to nothing.
 *
 * \par Memory
 * 2.3 bytes a voxel beside input and output for the rule Foreground, 4.3 bytes for the others
 * (twice as much for images of 2^31 voxels and more). An image in chunks takes 8 bytes more for each voxel on the faces
 * of chunks, on the host.
 *
 * \par Streaming
 * A label depends on the whole image: the filter computes the largest possible region, whatever is requested. From file
 * to file (ChunkwiseFileToFile) an image of any size goes in blocks, which are read twice.
 *
 * \par Determinism
 * The same labels for every division into chunks, number of threads, and backend.
 *
 * \par Source
 * Union-find over runs of voxels: L. He, Y. Chao, K. Suzuki, "A run-based two-scan labeling algorithm", IEEE Trans.
 * Image Processing 17(5), 2008. On CUDA parents are joined as J. Jaiganesh and M. Burtscher do, "A high-performance
 * connected components implementation for GPUs", HPDC 2018.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = Image<std::uint32_t, TInputImage::ImageDimension>>
class ITK_TEMPLATE_EXPORT ConnectedComponentLabelImageFilter
  : public SpatialAxesImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ConnectedComponentLabelImageFilter);

  using Self = ConnectedComponentLabelImageFilter;
  using Superclass = SpatialAxesImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;
  using InputPixelType = typename Superclass::InputPixelType;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ConnectedComponentLabelImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(std::is_floating_point<typename Superclass::OutputPixelType>::value ||
                  std::is_integral<typename Superclass::OutputPixelType>::value,
                "labels are numbers");

  const char *
  GetFilterName() const override
  {
    return "label";
  }

  /** Neighbors share a face (1), a face or an edge (2), or also a corner (3). Default: 1. */
  itkSetMacro(Connectivity, unsigned int);
  itkGetConstMacro(Connectivity, unsigned int);

  /** Neighbors as ones in a cube of three voxels along each spatial axis, x fastest, symmetric about its center; it
   * takes the place of Connectivity. Default: empty. */
  using StructureType = std::vector<int>;
  void
  SetStructure(const StructureType & structure);
  const StructureType &
  GetStructure() const
  {
    return m_Structure;
  }

  /** Which neighbors are of one component. Default: Foreground. */
  using RuleEnum = ConnectedComponentLabelEnums::Rule;
  itkSetEnumMacro(Rule, RuleEnum);
  itkGetEnumMacro(Rule, RuleEnum);

  /** By how much values of neighbors differ at most, by the rule Within: 0 or more. Default: 0. */
  itkSetMacro(Tolerance, double);
  itkGetConstMacro(Tolerance, double);

  /** The value of voxels that are no object. Default: 0. */
  itkSetMacro(Background, InputPixelType);
  itkGetConstMacro(Background, InputPixelType);

  /** Whether every voxel has a label. Default: off. */
  itkSetMacro(LabelBackground, bool);
  itkGetConstMacro(LabelBackground, bool);
  itkBooleanMacro(LabelBackground);

  using AxesType = typename Superclass::AxesType;
  /** Spatial axes along which the first voxel and the last are neighbors. Default: none. */
  void
  SetPeriodicAxes(const AxesType & axes);
  const AxesType &
  GetPeriodicAxes() const
  {
    return m_PeriodicAxes;
  }

  /** After an update: the number of components, which is the largest label. Looks at all voxels of the output. */
  SizeValueType
  GetObjectCount() const;

protected:
  ConnectedComponentLabelImageFilter() = default;
  ~ConnectedComponentLabelImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  /** The operation gives the output's kind itself. */
  chunkwise::PixelType
  GetOperationKind() const override
  {
    return chunkwise::PixelTypeOf<typename Superclass::OutputPixelType>();
  }
  /** Along other axes components are numbered one after the other. */
  bool
  GivesWholeOutput() const override
  {
    return true;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  unsigned int   m_Connectivity{ 1 };
  StructureType  m_Structure;
  RuleEnum       m_Rule{ RuleEnum::Foreground };
  double         m_Tolerance{ 0.0 };
  InputPixelType m_Background{};
  bool           m_LabelBackground{ false };
  AxesType       m_PeriodicAxes;
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkConnectedComponentLabelImageFilter.hxx"
#endif

#endif
