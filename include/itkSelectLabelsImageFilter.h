/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSelectLabelsImageFilter_h
#define itkSelectLabelsImageFilter_h

#include "chunkwiseLabelSelection.h"
#include "chunkwiseLabelTable.h"
#include "itkChunkwiseMacro.h"
#include "itkImageToImageFilter.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace itk
{
/** \class SelectLabelsImageFilter
 * \brief Keeps the labels of objects that meet conditions on what is measured of them; other labels become 0.
 *
 * Objects are all voxels of one label. Replacements merge or remove them first. Then each is compared: its size,
 * whether it touches the image's edge, and any column of LabelMeasurementsImageSink by Conditions such as "area > 100".
 * KeepLargest may keep only the largest objects that meet all, and Relabel numbers the kept labels. The filter runs on
 * the CPU, with NumberOfWorkUnits threads.
 *
 * \par Boundary
 * Surfaces of objects end at the image's edge.
 *
 * \par Types
 * itk::Image of 8- to 64-bit integers, in up to three dimensions.
 *
 * \par Memory
 * A row of some hundred bytes for each label. More than HostMemoryBudget is an error.
 *
 * \par Streaming
 * Objects are measured before the first output is made: the whole input is pulled through the pipeline in
 * NumberOfStreamDivisions slabs, none of which is kept. A region of the output then needs the same region of the input.
 *
 * \par Determinism
 * The same bits for every number of divisions, requested region and number of threads.
 *
 * \par Differences from ITK
 * itk::RelabelComponentImageFilter knows sizes alone, and itk::ShapeOpeningLabelMapFilter works on lists of runs of all
 * objects.
 *
 * \sa RelabelComponentImageFilter LabelMeasurementsImageSink ConnectedComponentLabelImageFilter
 * \ingroup Chunkwise
 */
template <typename TLabelImage>
class ITK_TEMPLATE_EXPORT SelectLabelsImageFilter : public ImageToImageFilter<TLabelImage, TLabelImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(SelectLabelsImageFilter);

  using Self = SelectLabelsImageFilter;
  using Superclass = ImageToImageFilter<TLabelImage, TLabelImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(SelectLabelsImageFilter);

  static constexpr unsigned int ImageDimension = TLabelImage::ImageDimension;
  using LabelType = typename TLabelImage::PixelType;
  static_assert(std::is_integral<LabelType>::value, "labels are integers");

  /** Voxels that an object has at least. Default: 0. */
  itkSetMacro(MinimumSize, SizeValueType);
  itkGetConstMacro(MinimumSize, SizeValueType);

  /** Voxels that an object has at most. Default: as many as there may be. */
  itkSetMacro(MaximumSize, SizeValueType);
  itkGetConstMacro(MaximumSize, SizeValueType);

  /** Comparisons of columns of measurements with a number, "extent > 0.3"; axis 0 is x: "bbox-0 > 5". Default: none. */
  using ConditionsType = std::vector<std::string>;
  void
  SetConditions(const ConditionsType & conditions);
  const ConditionsType &
  GetConditions() const
  {
    return m_Conditions;
  }

  /** Whether objects at the image's edge are removed. Default: off. */
  itkSetMacro(RemoveBorder, bool);
  itkGetConstMacro(RemoveBorder, bool);
  itkBooleanMacro(RemoveBorder);

  /** How many of the largest objects are kept, of equal ones those of lower labels; 0: all. Default: 0. */
  itkSetMacro(KeepLargest, SizeValueType);
  itkGetConstMacro(KeepLargest, SizeValueType);

  /** Whether kept labels become 1, 2, ... in the order of their labels. Default: off. */
  itkSetMacro(Relabel, bool);
  itkGetConstMacro(Relabel, bool);
  itkBooleanMacro(Relabel);

  /** New labels by old ones, before all else: objects of one new label are one, and 0 removes an object. Default: none.
   */
  using ReplacementsType = std::map<LabelType, LabelType>;
  void
  SetReplacements(const ReplacementsType & replacements);
  const ReplacementsType &
  GetReplacements() const
  {
    return m_Replacements;
  }
  void
  AddReplacement(LabelType oldLabel, LabelType newLabel);

  /** Bytes that tables may take; 0: no limit. Default: 0. */
  itkSetMacro(HostMemoryBudget, SizeValueType);
  itkGetConstMacro(HostMemoryBudget, SizeValueType);

  /** Slabs in which the input is measured. Default: 1. */
  itkSetClampMacro(NumberOfStreamDivisions, unsigned int, 1, NumericTraits<unsigned int>::max());
  itkGetConstMacro(NumberOfStreamDivisions, unsigned int);

  /** After an update: labels that are kept. */
  SizeValueType
  GetNumberOfKeptLabels() const;

  void
  UpdateOutputData(DataObject * output) override;

protected:
  SelectLabelsImageFilter() = default;
  ~SelectLabelsImageFilter() override = default;

  void
  VerifyPreconditions() const override;
  void
  GenerateData() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  chunkwise::LabelSelection
  MakeSelection() const;
  chunkwise::MeasurementSettings
  MakeSettings() const;
  chunkwise::LabelTable
  MakeTable() const;
  void
  Measure();

  SizeValueType    m_MinimumSize{ 0 };
  SizeValueType    m_MaximumSize{ NumericTraits<SizeValueType>::max() };
  ConditionsType   m_Conditions;
  bool             m_RemoveBorder{ false };
  SizeValueType    m_KeepLargest{ 0 };
  bool             m_Relabel{ false };
  ReplacementsType m_Replacements;
  SizeValueType    m_HostMemoryBudget{ 0 };
  unsigned int     m_NumberOfStreamDivisions{ 1 };
  /** The map refers to the measurements. */
  std::unique_ptr<chunkwise::Measurements> m_Measurements;
  std::unique_ptr<chunkwise::LabelMap>     m_Map;
  /** When the input was measured. */
  TimeStamp m_MeasureTime;
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkSelectLabelsImageFilter.hxx"
#endif

#endif
