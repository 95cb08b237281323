/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkLabelMeasurementsImageSink_h
#define itkLabelMeasurementsImageSink_h

#include "chunkwiseMeasurements.h"
#include "itkChunkwiseMacro.h"
#include "itkImageSink.h"

#include <memory>
#include <string>
#include <vector>

namespace itk
{
/** \class LabelMeasurementsImageSink
 * \brief Measurements of the objects of an image of labels of any size, read piece by piece: a row for each label but
 * 0.
 *
 * Update() pulls labels, and the intensity if there is one, through the pipeline in NumberOfStreamDivisions pieces and
 * keeps none of them. It runs on the CPU, with NumberOfWorkUnits threads. SetAbortGenerateData ends it within a piece,
 * with itk::ProcessAborted. docs/measurements.md defines the properties, whose names are those of
 * skimage.measure.regionprops_table; axis 0 is x here.
 *
 * \par Boundary
 * Surfaces of objects end at the image's edge.
 *
 * \par Types
 * Labels: itk::Image of 8- to 64-bit integers, in up to three dimensions. Intensity: the same, or float or double.
 *
 * \par Memory
 * A row of some hundred bytes for each label, and the piece that the pipeline makes. More than HostMemoryBudget is an
 * error.
 *
 * \par Streaming
 * Requests slabs one after the other. An image with an empty axis requests nothing.
 *
 * \par Determinism
 * The same bits for every number of divisions and of threads: sums are exact, and rounded once.
 *
 * \par Differences from ITK
 * itk::LabelStatisticsImageFilter and itk::LabelImageToShapeLabelMapFilter hold the whole image, the latter a list of
 * runs of each object, too.
 *
 * \sa LabelStatisticsImageFilter LabelImageToShapeLabelMapFilter
 * \ingroup Chunkwise
 */
template <typename TLabelImage, typename TIntensityImage = TLabelImage>
class ITK_TEMPLATE_EXPORT LabelMeasurementsImageSink : public ImageSink<TLabelImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(LabelMeasurementsImageSink);

  using Self = LabelMeasurementsImageSink;
  using Superclass = ImageSink<TLabelImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(LabelMeasurementsImageSink);

  static constexpr unsigned int ImageDimension = TLabelImage::ImageDimension;
  static_assert(std::is_integral<typename TLabelImage::PixelType>::value, "labels are integers");
  static_assert(std::is_arithmetic<typename TIntensityImage::PixelType>::value, "intensities are numbers");
  static_assert(TIntensityImage::ImageDimension == ImageDimension, "both images have the same dimension");

  /** The image that statistics are of. Default: none, only shapes are measured. */
  itkSetInputMacro(IntensityImage, TIntensityImage);
  itkGetInputMacro(IntensityImage, TIntensityImage);

  /** The names of properties, to which "label" is added; some have several columns: "centroid-0", "centroid-1".
   * Default: none, which takes those of chunkwise::GetDefaultProperties. */
  using PropertiesType = std::vector<std::string>;
  void
  SetProperties(const PropertiesType & properties)
  {
    if (m_Properties != properties)
    {
      m_Properties = properties;
      this->Modified();
    }
  }
  const PropertiesType &
  GetProperties() const
  {
    return m_Properties;
  }

  /** Whether the faces between each two labels that touch are counted. Default: off. */
  itkSetMacro(Contacts, bool);
  itkGetConstMacro(Contacts, bool);
  itkBooleanMacro(Contacts);

  /** Bytes that tables may take; 0: no limit. Default: 0. */
  itkSetMacro(HostMemoryBudget, SizeValueType);
  itkGetConstMacro(HostMemoryBudget, SizeValueType);

  /** Pieces in which the images are read. Default: 1. */
  void
  SetNumberOfStreamDivisions(unsigned int count) override
  {
    Superclass::SetNumberOfStreamDivisions(count);
  }
  unsigned int
  GetNumberOfStreamDivisions() const override
  {
    return Superclass::GetNumberOfStreamDivisions();
  }

  // The measurements of the last update.

  /** Rows of the table: labels but 0 that the image has. */
  SizeValueType
  GetNumberOfObjects() const
  {
    return m_Table.empty() ? 0 : m_Table.front().GetSize();
  }
  /** Rows are in the ascending order of labels. */
  const chunkwise::MeasurementTable &
  GetTable() const
  {
    return m_Table;
  }
  /** Columns label, neighbor, faces and area; a row for each two labels that touch. */
  const chunkwise::MeasurementTable &
  GetContactTable() const
  {
    return m_ContactTable;
  }
  /** A column as real numbers, exact up to 2^53. Throws itk::ExceptionObject if there is none of that name. */
  std::vector<double>
  GetColumn(const std::string & name) const;

protected:
  LabelMeasurementsImageSink() { this->AddOptionalInputName("IntensityImage", 1); }
  ~LabelMeasurementsImageSink() override = default;

  void
  VerifyPreconditions() const override;
  unsigned int
  GetNumberOfInputRequestedRegions() override;
  void
  BeforeStreamedGenerateData() override;
  void
  StreamedGenerateData(unsigned int inputRequestedRegionNumber) override;
  void
  AfterStreamedGenerateData() override;
  void
  ThreadedStreamedGenerateData(const typename TLabelImage::RegionType &) override
  {}
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  chunkwise::MeasurementSettings
  MakeSettings() const;
  PropertiesType
  GetColumnsToMake() const;

  PropertiesType                           m_Properties;
  bool                                     m_Contacts{ false };
  SizeValueType                            m_HostMemoryBudget{ 0 };
  std::unique_ptr<chunkwise::Measurements> m_Measurements;
  std::unique_ptr<chunkwise::Executor>     m_Executor;
  chunkwise::MeasurementTable              m_Table;
  chunkwise::MeasurementTable              m_ContactTable;
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkLabelMeasurementsImageSink.hxx"
#endif

#endif
