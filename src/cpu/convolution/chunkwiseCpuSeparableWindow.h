/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuSeparableWindow_h
#define chunkwiseCpuSeparableWindow_h

#include "chunkwiseCpuWindow.h"
#include "chunkwiseOperations.h"

namespace chunkwise
{

/** The windows of a SeparableOperation, in an image. */
template <typename TAcc>
struct SeparableWindow
{
  AxisWindow<TAcc> axes[MaxDimension];

  SeparableWindow(const SeparableOperation & operation, const Box & image)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      const auto & weights = operation.weights[a];
      axes[a].radius = operation.Radius(a);
      axes[a].weights.assign(weights.begin(), weights.end());
      if (operation.boundary.mode == BoundaryMode::Renormalized && axes[a].radius > 0)
      {
        const std::vector<double> norms = operation.GetNorms(a, image.Extent(a));
        axes[a].norms.assign(norms.begin(), norms.end());
        axes[a].extent = image.Extent(a);
      }
    }
  }
};

inline void
RadiiOf(const SeparableOperation & operation, std::int64_t (&radius)[MaxDimension])
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    radius[a] = operation.Radius(a);
  }
}

/** The tiles of such windows, of values of so many bytes. */
inline WindowTiling
MakeSeparableTiling(const SeparableOperation & operation, const Box & output, const Box & image, std::int64_t bytes,
                    std::int64_t components)
{
  std::int64_t radius[MaxDimension];
  RadiiOf(operation, radius);
  return { output, image, radius, bytes, operation.boundary.mode == BoundaryMode::Renormalized, components };
}

} // namespace chunkwise

#endif
