/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaCenteredMarch.cuh"
#include "chunkwiseCudaVariance.cuh"
#include "chunkwiseMoments.h"

// VarianceOperation of float with the same radius along x, y and z, as a march.
namespace chunkwise
{

namespace
{

/** The sums of VarianceOperation. Passes hand on the pixel, the difference of the window's mean from it, and the
 * window's variance.
 *
 * The tap in a window's center differs from itself by 0, or by NaN if it is not finite; then the other taps have made
 * the variance NaN already, so that its difference need not be computed. Windows must have another tap along x. */
template <int VRadius>
struct VarianceRule
{
  static constexpr int   Radius = VRadius;
  static constexpr int   Fields = 3;
  static constexpr int   Taps = 2 * VRadius + 1;
  static constexpr float Inverse = 1.0F / static_cast<float>(Taps);
  template <bool VFirst>
  using Sums = MergedMoments<float>;

  struct Weight
  {};
  struct Shared
  {
    float inverses[Taps + 1]; ///< of numbers of taps
  };
  struct Row
  {
    __device__ __forceinline__ Weight
    operator[](int) const
    {
      return {};
    }
  };

  bool takesRoot;

  __device__ __forceinline__ void
  Fill(Shared & shared) const
  {
    if (threadIdx.x <= Taps)
    {
      shared.inverses[threadIdx.x] = 1.0F / static_cast<float>(threadIdx.x);
    }
  }
  __device__ __forceinline__ Weight
  Whole(int, int) const
  {
    return {};
  }
  __device__ __forceinline__ Row
  Cut(const Shared &, int, int, int) const
  {
    return {};
  }
  template <bool VFirst>
  __device__ __forceinline__ void
  Add(Sums<VFirst> & sums, const Weight &, const float (&tap)[Fields], float center, int t, bool isThere) const
  {
    if (VFirst && t == Radius)
    {
      return;
    }
    const float difference = VFirst ? tap[0] - center : t == Radius ? tap[1] : (tap[0] - center) + tap[1];
    const float variance = VFirst ? 0.0F : tap[2];
    if (t == 0)
    {
      // 0 + e can differ from e in the sign of a zero only: of a sum, where it does not reach any result.
      sums = { difference, difference * difference, variance };
      return;
    }
    // -0 changes no sum.
    sums.Add(isThere ? difference : -0.0F, isThere ? variance : -0.0F);
  }
  template <bool VFirst>
  __device__ __forceinline__ void
  HandOn(const Shared & shared, const Sums<VFirst> & sums, float center, int count, float (&fields)[Fields]) const
  {
    const float inverse = InverseOf(shared, count);
    fields[0] = center;
    fields[1] = sums.Mean(inverse);
    fields[2] = sums.Variance(inverse);
  }
  __device__ __forceinline__ float
  Result(const Shared & shared, const Sums<false> & sums, int count) const
  {
    return FinishVariance<float>(sums.Variance(InverseOf(shared, count)), takesRoot);
  }

private:
  /** Windows that are not stored may have none. */
  __device__ __forceinline__ static float
  InverseOf(const Shared & shared, int count)
  {
    return count == Taps ? Inverse : shared.inverses[max(count, 0)];
  }
};

/** Calls f(rule) for radii that have a kernel; otherwise false. */
template <typename TFunctor>
bool
DispatchMarch(std::int64_t radius, bool takesRoot, TFunctor && f)
{
  switch (radius)
  {
    case 3:
      return f(VarianceRule<3>{ takesRoot });
    case 4:
      return f(VarianceRule<4>{ takesRoot });
    case 5:
      return f(VarianceRule<5>{ takesRoot });
    default:
      return false;
  }
}

} // namespace

bool
SupportsVarianceMarch(const VarianceShape & shape)
{
  return shape.kind == PixelType::Float32 && shape.outputKind == PixelType::Float32 && shape.AreCubes() &&
         shape.padded.Extent(0) >= 2 &&
         DispatchMarch(shape.radius[0], false, [](auto rule) { return CanMarchCentered<decltype(rule)>(); });
}

void
RunVarianceMarch(const Voxels<const float> & pixels, const BufferView & output, const Coordinates & radius,
                 bool takesRoot, cudaStream_t stream)
{
  DispatchMarch(radius[0], takesRoot, [&](const auto & rule) {
    LaunchCenteredMarch(rule, pixels, VoxelsOf<float>(output), stream);
    return true;
  });
}

} // namespace chunkwise
