/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseBoxTrial_h
#define chunkwiseBoxTrial_h

#include "chunkwiseKernelTrial.h"
#include "chunkwiseOperations.h"

namespace chunkwise
{

template <typename TOperation>
std::shared_ptr<TOperation>
RandomBox(std::mt19937 & random, int largestRadius, bool exactConstant)
{
  const auto operation = std::make_shared<TOperation>();
  for (const int a : RandomAxes(random))
  {
    operation->radius[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(largestRadius + 1));
  }
  operation->boundary.mode = AllModes[random() % 6];
  operation->boundary.constant = static_cast<double>(random() % 100) + (exactConstant ? 0 : 0.1);
  return operation;
}

/** The values of the window around `index`, as the boundary mode's name says. */
template <typename T, typename TOperation>
std::vector<T>
WindowValues(const BufferView & image, const Coordinates & index, const TOperation & operation)
{
  std::vector<T> values;
  Box            window{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    window.lower[a] = index[a] - operation.radius[a];
    window.upper[a] = index[a] + operation.radius[a] + 1;
  }
  ForEachIndex(window, [&](Coordinates tap) {
    bool there = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      there = oracle::Look(tap[a], image.box.upper[a], operation.boundary.mode) && there;
    }
    if (there)
    {
      values.push_back(At<T>(image, tap));
    }
    else if (operation.boundary.mode == BoundaryMode::Constant)
    {
      values.push_back(static_cast<T>(operation.boundary.constant));
    }
  });
  return values;
}

} // namespace chunkwise

#endif
