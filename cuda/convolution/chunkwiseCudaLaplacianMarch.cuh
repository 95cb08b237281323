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

/** The sums of LaplacianOperation, for the march: passes hand on S and L. */
template <int VRadius>
struct LaplacianRule
{
  static constexpr int Radius = VRadius;
  static constexpr int Fields = 2;
  static constexpr int Taps = 2 * VRadius + 1;
  template <bool VFirst>
  using Sums = LaplacianSums<VFirst, float>;

  struct alignas(8) Weight
  {
    float g;
    float h;
  };
  /** The tables' rows: at most as many as a window has taps. */
  struct Shared
  {
    Weight rows[3][Taps * Taps];
  };
  using Row = const Weight *;

  float               g[3][Taps];
  float               h[3][Taps];
  WeightTables<float> tables[3];

  /** Taps that are missing weigh -0: a product of -0 and 0 changes no sum. */
  __device__ __forceinline__ void
  Fill(Shared & shared) const
  {
    for (int axis = 0; axis < 3; ++axis)
    {
      const WeightTables<float> & of = tables[axis];
      const auto                  rows = static_cast<int>(of.rows);
      for (int i = static_cast<int>(threadIdx.x); i < rows * Taps; i += static_cast<int>(blockDim.x))
      {
        const int  row = i / Taps;
        const int  t = i % Taps;
        const bool isThere = rows == 1 || (t >= Radius - row && t < Radius + rows - row);
        shared.rows[axis][i] = isThere ? Weight{ of.g[i], of.h[i] } : Weight{ -0.0F, -0.0F };
      }
    }
  }
  __device__ __forceinline__ Weight
  Whole(int axis, int t) const
  {
    return { g[axis][t], h[axis][t] };
  }
  __device__ __forceinline__ Row
  Cut(const Shared & shared, int axis, int begin, int end) const
  {
    // At the image's lower edge a window's row is its position, at the upper one they are counted from the last.
    // Windows that are not stored may use any row.
    const auto rows = static_cast<int>(tables[axis].rows);
    const int  row = begin > 0 ? Radius - begin : rows - 1 - Radius + (Taps - end);
    return shared.rows[axis] + min(max(row, 0), rows - 1) * Taps;
  }
  template <bool VFirst>
  __device__ __forceinline__ void
  Add(Sums<VFirst> & sums, const Weight & weight, const float (&tap)[Fields], float center, int, bool isThere) const
  {
    sums.s = MultiplyAdd(weight.g, isThere ? tap[0] : 0.0F, sums.s);
    if constexpr (!VFirst)
    {
      sums.l = MultiplyAdd(weight.g, isThere ? tap[1] : 0.0F, sums.l);
    }
    sums.l = MultiplyAdd(weight.h, isThere ? tap[0] - center : 0.0F, sums.l);
  }
  template <bool VFirst>
  __device__ __forceinline__ void
  HandOn(const Shared &, const Sums<VFirst> & sums, float, int, float (&fields)[Fields]) const
  {
    fields[0] = sums.s;
    fields[1] = sums.l;
  }
  __device__ __forceinline__ float
  Result(const Shared &, const Sums<false> & sums, int) const
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
    case 5:
      return run(std::integral_constant<int, 5>());
    case 6:
      return run(std::integral_constant<int, 6>());
    case 7:
      return run(std::integral_constant<int, 7>());
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
