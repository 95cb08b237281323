/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseMeasurements_h
#define chunkwiseMeasurements_h

#include "chunkwiseExecutor.h"
#include "chunkwiseGeometry.h"
#include "chunkwiseOperation.h"
#include "chunkwisePixelValue.h"

#include <memory>
#include <string>
#include <vector>

// Measurements of the objects of an image of labels: a row of a table for each label but 0. They are exact: what is
// counted and summed is kept in integers, and real numbers are made of these at the end. So they do not depend on
// chunks, their order or threads.
namespace chunkwise
{

class Manager;
class MeasureOperation;
class Monitor;
struct ExecutionRequest;

/** Choices of measurements. */
struct MeasurementSettings
{
  /** The size of both images. Up to three axes may have more than one voxel, the first ones. */
  Coordinates extent{ Coordinates::Filled(1) };
  int         dimension{ 3 };
  /** Integers. */
  PixelType labelKind{ PixelType::UInt32 };
  /** There is an image of intensities, of any kind. */
  bool      hasIntensity{ false };
  PixelType intensityKind{ PixelType::UInt8 };
  // Parts that cost time and memory.
  bool details{ true };   ///< all but numbers of voxels and sums and means of intensities; the others below have them
  bool moments{ true };   ///< of second order
  bool surfaces{ true };  ///< exposed faces and Euler numbers
  bool weighted{ true };  ///< centroids weighted by the intensity
  bool contacts{ false }; ///< faces between each two labels
  /** Bytes that tables may take; 0: no limit. */
  std::uint64_t memory{ 0 };
};

/** The places of voxels: the point of index i is origin + direction (spacing i), as ITK has it. */
struct MeasurementSpace
{
  double spacing[MaxDimension]{ 1, 1, 1, 1, 1 };
  double origin[MaxDimension]{};
  double direction[MaxDimension][MaxDimension]{ { 1, 0, 0, 0, 0 },
                                                { 0, 1, 0, 0, 0 },
                                                { 0, 0, 1, 0, 0 },
                                                { 0, 0, 0, 1, 0 },
                                                { 0, 0, 0, 0, 1 } };
  /** Columns number axes as NumPy does, the slowest one first. Else axis 0 is x. */
  bool slowestFirst{ false };
};

/** A column of a table: integers of up to 64 bits, or real numbers. */
struct Chunkwise_EXPORT MeasurementColumn
{
  std::string               name;
  PixelType                 kind{ PixelType::Float64 };
  std::vector<double>       reals;    ///< if the kind is real
  std::vector<std::int64_t> integers; ///< else; of uint64 the same bits

  std::size_t
  GetSize() const
  {
    return IsFloatingPoint(kind) ? reals.size() : integers.size();
  }
  PixelValue
  GetValue(std::size_t row) const;
};

using MeasurementTable = std::vector<MeasurementColumn>;

/** A column or several (bbox: bbox-0, bbox-1, ...) that can be asked for. */
struct MeasurementProperty
{
  const char * name;
  const char * help;
  bool         needsIntensity;
  bool         needsSurfaces;
  bool         needsMoments;
  bool         needsWeighted;
  bool         isDefault;
};

/** All, in the order of a table's columns. */
Chunkwise_EXPORT const std::vector<MeasurementProperty> &
                       GetMeasurementProperties();

/** The default ones that an image of labels alone, or with an intensity, has. */
Chunkwise_EXPORT std::vector<std::string>
                 GetDefaultProperties(bool hasIntensity);

/** Sets the parts that these properties need, and no others. Throws ParameterError that names one that there is not, or
 * that needs an intensity. */
Chunkwise_EXPORT void
SetPartsFor(const std::vector<std::string> & properties, MeasurementSettings & settings);

/** Adds up an image that arrives in boxes, each voxel once. Only one thread may call Add at a time: it starts threads
 * itself.
 */
class Chunkwise_EXPORT Measurements
{
public:
  /** Throws ParameterError. */
  explicit Measurements(const MeasurementSettings & settings);
  ~Measurements();
  Measurements(const Measurements &) = delete;
  Measurements &
  operator=(const Measurements &) = delete;

  const MeasurementSettings &
  GetSettings() const;

  /** The voxels of `box`. Both views have stride 1 along x; with surfaces or contacts that of labels also holds the
   * voxels before the box, one along each axis, where the image has any. Slabs of the whole image along its last axis
   * that has more than one voxel, in ascending order, need not: the last plane is kept. `intensity` is nullptr if there
   * is none. Throws BudgetError where tables would take more than MeasurementSettings::memory, Aborted once
   * control->ShouldStop(). */
  void
  Add(const BufferView & labels, const BufferView * intensity, const Box & box, Executor & executor,
      RunControl * control = nullptr);
  /** Others of the same image, of other boxes. */
  void
  Add(const Measurements & other);
  /** The voxels of request.region by the devices that the request names, also where they lie (imageDevice). Inputs are
   * the labels, with the voxels before the region if surfaces are measured, and the intensity if there is one. Tables
   * in a device's memory have a row for each number from the least label to the largest. The CPU does what no device
   * can: contacts, intensities of 64 bits, labels that lie too far from each other for the memory; of images on a
   * device that is a ParameterError or BudgetError, and one of images of the host if request.backend is CUDA. */
  void
  Add(Manager & manager, const ExecutionRequest & request, Monitor * monitor = nullptr);
  /** Writes the summary of MeasureOperation, of all that was added. */
  void
  Summarise(const MeasureOperation & operation, std::int64_t * summary) const;

  std::int64_t
  GetNumberOfLabels() const;
  /** The present size of tables. */
  std::uint64_t
  GetBytes() const;

  /** A row for each label in ascending order, or for labels number `begin` to `end` of these: tables of many labels can
   * be made part by part. Throws ParameterError if a property is unknown, or was not measured. The executor's
   * threads, if there is one, make parts of a long table. */
  MeasurementTable
  MakeTable(const MeasurementSpace & space, const std::vector<std::string> & properties, std::int64_t begin = 0,
            std::int64_t end = INT64_MAX, Executor * executor = nullptr) const;
  /** The faces between each two labels that touch: label, label of the neighbor (the larger one), faces, area. */
  MeasurementTable
  MakeContacts(const MeasurementSpace & space) const;

private:
  friend class LabelMap;
  friend class LabelQuantiles;
  friend class MeasurementNeeds;
  struct State;
  std::unique_ptr<State> m_State;
};

/** Finds the memory that is enough for Measurements whose tables did not fit, without tables: in some megabytes. It
 * reads what they read, and no quantity depends on the order of boxes. */
class Chunkwise_EXPORT MeasurementNeeds
{
public:
  explicit MeasurementNeeds(const MeasurementSettings & settings);
  ~MeasurementNeeds();
  /** As Measurements::Add, but `labels` need not hold voxels before the box. */
  void
  Add(const BufferView & labels, const BufferView * intensity, const Box & box, Executor & executor);
  /** The bytes for measurements with so many threads, and for so many quantiles after them. Labels of large numbers are
   * counted in a sample: the result is some percent too large. */
  std::uint64_t
  GetBytes(unsigned int concurrency, std::size_t quantiles = 0) const;

private:
  struct State;
  std::unique_ptr<State> m_State;
};

/** Quantiles of the intensity of each label, in further passes over both images: those of few voxels are collected, of
 * others histograms of digits are narrowed down, as many bits at once as the memory has room for. A quantile is that of
 * numpy.quantile: linear between the two voxels beside it; NaN if a voxel is. */
class Chunkwise_EXPORT LabelQuantiles
{
public:
  /** `memory`: bytes; 0: no limit. Throws ParameterError if a fraction is not from 0 to 1. */
  LabelQuantiles(const Measurements & measurements, std::vector<double> fractions, std::uint64_t memory = 0);
  ~LabelQuantiles();

  /** Whether another pass is needed; begins it. Throws BudgetError. */
  bool
  BeginPass();
  /** Voxels that the measurements had. */
  void
  Add(const BufferView & labels, const BufferView & intensity, const Box & box, Executor & executor,
      RunControl * control = nullptr);
  void
  EndPass();
  /** A column for each fraction: "intensity_quantile-0.25", and "intensity_median" of 0.5. */
  MeasurementTable
  MakeTable(std::int64_t begin = 0, std::int64_t end = INT64_MAX) const;

private:
  struct State;
  std::unique_ptr<State> m_State;
};

} // namespace chunkwise

#endif
