/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseLabelBoundary_h
#define chunkwiseLabelBoundary_h

#include "chunkwiseEqualKinds.h"
#include "chunkwiseLabelBoundaryOperation.h"

#include <cstdlib>

namespace chunkwise
{

/** The part of a LabelBoundaryOperation that the kernels of every backend take. */
struct LabelBoundaryRule
{
  /** The voxels around one: its neighbors, and in the mode Outer then all others. */
  static constexpr int Most = 26;
  std::int8_t          offset[Most][MaxDimension];
  int                  neighbors{ 0 };
  int                  count{ 0 };
  LabelBoundaryMode    mode;

  explicit LabelBoundaryRule(const LabelBoundaryOperation & operation)
    : offset{}
    , mode(operation.mode)
  {
    const int axes = static_cast<int>(operation.axes.size());
    for (const bool others : { false, true })
    {
      for (int bit = 0; bit < 27 && !(others && mode != LabelBoundaryMode::Outer); ++bit)
      {
        const int step[] = { bit % 3 - 1, bit / 3 % 3 - 1, bit / 9 - 1 };
        const int distance = std::abs(step[0]) + std::abs(step[1]) + std::abs(step[2]);
        bool      isThere = distance > 0 && (distance > operation.connectivity) == others;
        for (int a = axes; a < 3; ++a)
        {
          isThere = isThere && step[a] == 0;
        }
        if (isThere)
        {
          for (int a = 0; a < axes; ++a)
          {
            offset[count][operation.axes[static_cast<std::size_t>(a)]] = static_cast<std::int8_t>(step[a]);
          }
          ++count;
        }
      }
      neighbors = others ? neighbors : count;
    }
  }

  /** Whether a voxel is marked: a neighbor has another value; a voxel around it belongs to another object. */
  CHUNKWISE_HOST_DEVICE bool
  operator()(bool isObject, bool differs, bool touches) const
  {
    return differs &&
           (mode == LabelBoundaryMode::Thick || (mode == LabelBoundaryMode::Inner ? isObject : !isObject || touches));
  }
};

} // namespace chunkwise

#endif
