/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseLabelSelection_h
#define chunkwiseLabelSelection_h

#include "chunkwiseMeasurements.h"

namespace chunkwise
{

/** A comparison of a column of measurements with a number, as "area > 100" or "bbox-0 == 0". */
struct Chunkwise_EXPORT LabelCondition
{
  enum class Comparison
  {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual
  };

  std::string column;
  Comparison  comparison{ Comparison::GreaterOrEqual };
  PixelValue  value{ 0 };

  /** Throws ParameterError if `text` is none. */
  static LabelCondition
  FromText(const std::string & text);
  /** The property that has the column: "bbox" of "bbox-0". Throws ParameterError if there is none. */
  std::string
  GetProperty() const;
  /** Exactly, 64-bit integers too; NaN is unequal to all and meets nothing else. */
  bool
  IsMet(const PixelValue & measured) const;
};

/** Which labels of an image are kept: labels that meet all conditions, and of these the largest ones. Others become 0.
 */
struct LabelSelection
{
  std::vector<LabelCondition> conditions;
  /** By their voxels; of equal ones the lower labels. 0: all. */
  std::int64_t keepLargest{ 0 };
  /** The labels that are kept become 1, 2, ... in the order of their labels. */
  bool relabel{ false };
};

/** The properties of a selection that SetPartsFor needs. */
Chunkwise_EXPORT std::vector<std::string>
                 GetPropertiesOf(const LabelSelection & selection);

/** Gives the voxels of an image of labels their labels after a selection. */
class Chunkwise_EXPORT LabelMap
{
public:
  /** The measurements of the whole image, with all properties of the selection. Throws ParameterError, and Error if the
   * new labels do not fit the labels' kind. */
  LabelMap(const Measurements & measurements, const MeasurementSpace & space, const LabelSelection & selection);
  ~LabelMap();

  /** Labels that are kept. */
  std::int64_t
  GetCount() const;
  /** Writes the voxels of `box` from one view to another, or in place; both have the labels' kind and stride 1 along x.
   */
  void
  Apply(const BufferView & labels, const BufferView & output, const Box & box, Executor & executor) const;

private:
  struct State;
  std::unique_ptr<State> m_State;
};

} // namespace chunkwise

#endif
