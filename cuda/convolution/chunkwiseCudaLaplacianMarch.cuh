/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaLaplacianMarch_cuh
#define chunkwiseCudaLaplacianMarch_cuh

#include "chunkwiseCudaCenteredMarch.cuh"
#include "chunkwiseCudaLaplacianPasses.cuh"

#include <algorithm>
#include <type_traits>
#include <vector>

namespace chunkwise
{

/** What LaplacianOperation sums, for the march: passes hand on S and L. */
template <int VRadius>
struct LaplacianRule
{
  static constexpr int Radius = VRadius;
  static constexpr int Fields = 2;
  template <bool VFirst>
  using Sums = LaplacianSums<VFirst, float>;

  struct Weight
  {
    float g;
    float h;
  };
  struct WeightsOfRow
  {
    const float * g;
    const float * h;

    __device__ __forceinline__ Weight
    operator[](int t) const
    {
      return { __ldg(g + t), __ldg(h + t) };
    }
  };

  float               g[3][2 * VRadius + 1];
  float               h[3][2 * VRadius + 1];
  WeightTables<float> tables[3];

  __device__ __forceinline__ Weight
  Whole(int axis, int t) const
  {
    return { g[axis][t], h[axis][t] };
  }
  __device__ __forceinline__ WeightsOfRow
  Cut(int axis, std::int64_t i) const
  {
    // Of windows that are not stored any row will do.
    const WeightTables<float> & of = tables[axis];
    const std::int64_t          row = of.Row(min(max(i, std::int64_t{ 0 }), of.extent - 1));
    return { of.g + row, of.h + row };
  }
  template <bool VFirst>
  __device__ __forceinline__ void
  Add(Sums<VFirst> & sums, const Weight & weight, const float (&tap)[Fields], float center, int) const
  {
    sums.Add(weight.g, weight.h, tap[0], VFirst ? 0.0F : tap[1], center);
  }
  template <bool VFirst>
  __device__ __forceinline__ void
  HandOn(const Sums<VFirst> & sums, float, int, float (&fields)[Fields]) const
  {
    fields[0] = sums.s;
    fields[1] = sums.l;
  }
  __device__ __forceinline__ float
  Result(const Sums<false> & sums, int) const
  {
    return sums.l;
  }
};

/** Calls run(radius) if a window has a kernel. */
template <typename TRun>
bool
DispatchLaplacianMarch(const Coordinates & radius, TRun && run)
{
  if (radius[1] != radius[0] || radius[2] != radius[0] || radius[3] != 0 || radius[4] != 0)
  {
    return false;
  }
  switch (radius[0])
  {
    case 4:
      return run(std::integral_constant<int, 4>());
    case 8:
      return run(std::integral_constant<int, 8>());
    default:
      return false;
  }
}

/** Whether a window has a kernel that every device has the shared memory for. */
inline bool
IsLaplacianMarched(const Coordinates & radius)
{
  return DispatchLaplacianMarch(radius, [](auto r) { return CanMarchCentered<LaplacianRule<decltype(r)::value>>(); });
}

/** `tables` are those along x, y and z. */
inline void
RunLaplacianMarch(const LaplacianOperation &  operation, const WeightTables<float> (&tables)[3],
                  const Voxels<const float> & in, const Voxels<float> & out, cudaStream_t stream)
{
  DispatchLaplacianMarch(operation.GetRadius(), [&](auto r) {
    constexpr int          radius = decltype(r)::value;
    constexpr std::int64_t taps = 2 * radius + 1;
    LaplacianRule<radius>  rule{};
    for (int a = 0; a < 3; ++a)
    {
      // In an image as long as the window, that in its middle is whole.
      const std::vector<double> exact = operation.GetTables(a, taps);
      const std::int64_t        rows = operation.GetNumberOfRows(a, taps);
      const auto                g = exact.begin() + WeightRow(radius, taps, radius, rows) * taps;
      std::copy_n(g, taps, rule.g[a]);
      std::copy_n(g + rows * taps, taps, rule.h[a]);
      rule.tables[a] = tables[a];
    }
    LaunchCenteredMarch(rule, in, out, stream);
    return true;
  });
}

} // namespace chunkwise

#endif
