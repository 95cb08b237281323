/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDefinitionTrial_h
#define chunkwiseDefinitionTrial_h

#include "chunkwiseError.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseSpecialValues.h"

// The common code of tests of operations against their definitions.
namespace chunkwise
{

/** Calls f(in, out) for pixels of each kind: to the same kind, to float and to double. */
template <typename F>
void
ForEachPairOfKinds(F && f)
{
  for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
  {
    DispatchPixelType(static_cast<PixelType>(kind), [&](auto pixel) {
      f(pixel, pixel);
      f(pixel, float{});
      f(pixel, double{});
    });
  }
}

/** Leaves the random pixels as they are. */
struct KeepPixels
{
  template <typename T>
  void
  operator()(int, std::vector<T> &) const
  {}
};

/** Random regions of random images, every voxel of theirs against a definition: make(trial) gives the operation,
 * fill(trial, pixels) may change the image's pixels, verdict(t, operation, index) says whether a voxel is right. */
template <typename TIn, typename TOut, typename TMake, typename TFill, typename TVerdict>
void
CompareWithDefinition(std::mt19937 & random, Manager & manager, BackendChoice backend, int trials, TMake && make,
                      TFill && fill, TVerdict && verdict)
{
  for (int trial = 0; trial < trials; ++trial)
  {
    const auto       operation = make(trial);
    Trial<TIn, TOut> t(random, operation, RandomExtent(random, 9));
    fill(trial, t.pixels);
    t.request.backend = backend;
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    manager.Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      ASSERT_TRUE(verdict(t, *operation, index))
        << PixelTypeName(PixelTypeOf<TIn>()) << " to " << PixelTypeName(PixelTypeOf<TOut>()) << " "
        << operation->GetKey() << " " << ToString(t.request.image) << " at " << ToString(index);
    });
  }
}

/** The same bits, or both not a number. */
template <typename T>
testing::AssertionResult
IsSame(T result, T expected)
{
  if (std::memcmp(&result, &expected, sizeof(result)) == 0 || (result != result && expected != expected))
  {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << +result << ", not " << +expected;
}

/** `expected`, a real number as the definition gives it, clamped to the type of the result where that is an integer
 * and rounded to nearest: half a unit more than `bound` may lie between. */
template <typename T>
testing::AssertionResult
IsRounded(T result, long double expected, long double bound)
{
  if (std::is_integral<T>::value)
  {
    expected = std::max(expected, static_cast<long double>(std::numeric_limits<T>::lowest()));
    expected = std::min(expected, static_cast<long double>(std::numeric_limits<T>::max()));
    bound += 0.5L;
  }
  if (IsNear(static_cast<long double>(result), expected, bound))
  {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << +result << ", not " << expected << " within " << bound;
}

/** CompareWithDefinition for sums in floating point, of all pairs of kinds: define(In{}, image, index, operation) gives
 * what a voxel is and the sum of its terms' magnitudes, of which the error is at most `roundings` roundings. */
template <typename TMake, typename TDefine>
void
CompareSumsWithDefinition(std::mt19937 & random, Manager & manager, BackendChoice backend, int roundings, TMake && make,
                          TDefine && define)
{
  ForEachPairOfKinds([&](auto in, auto out) {
    using In = decltype(in);
    using Out = decltype(out);
    CompareWithDefinition<In, Out>(
      random,
      manager,
      backend,
      8,
      make,
      KeepPixels(),
      [&](const auto & t, const auto & operation, const Coordinates & index) {
        const auto [result, magnitude] = define(In{}, t.image, index, operation);
        const bool inFloat = std::is_same<Out, float>::value || std::is_same<In, float>::value || sizeof(In) <= 2;
        return IsRounded(t.Result(index), result, magnitude * (inFloat ? 6e-8L : 1.2e-16L) * roundings);
      });
  });
}

/** An image wider than the tiles that a device cuts it into, so that windows lie within tiles, across them and at the
 * image's edge: its bits on a backend are those of the CPU. NaN has no bits to compare. */
template <typename TIn, typename TOut, typename TFill>
void
CompareTilesWithCpu(std::mt19937 & random, Manager & manager, BackendChoice backend,
                    const std::shared_ptr<Operation> & operation, int trial, TFill && fill)
{
  Manager           host({});
  const auto        atMost = [&](std::uint32_t n) { return static_cast<std::int64_t>(1 + random() % n); };
  const Coordinates extent{
    { 128 + atMost(40), 30 + atMost(trial % 3 ? 20 : 70), trial % 4 ? atMost(30) : atMost(4), atMost(2), 1 }
  };
  Trial<TIn, TOut> t(random, operation, extent);
  fill(t.pixels);
  const Box region = trial % 2 ? t.request.image : RandomRegion(random, extent);
  t.request.backend = BackendChoice::CPU;
  t.Prepare(region);
  host.Execute(t.request);
  const std::vector<TOut> expected = t.output;
  t.request.backend = backend;
  t.Prepare(region);
  manager.Execute(t.request);
  ASSERT_TRUE(t.IsContained());
  const BufferView view = DenseView(const_cast<TOut *>(expected.data()), PixelTypeOf<TOut>(), t.request.output.box);
  ForEachIndex(region, [&](const Coordinates & index) {
    ASSERT_TRUE(IsSame(t.Result(index), At<TOut>(view, index)))
      << operation->GetKey() << " " << ToString(t.request.image) << " region " << ToString(region) << " at "
      << ToString(index);
  });
}

/** The operation's objection to itself or to images of that size; empty if none. */
inline std::string
ValidationMessage(const Operation & operation, const Coordinates & image)
{
  try
  {
    operation.Validate(image);
  }
  catch (const ParameterError & error)
  {
    return error.what();
  }
  return "";
}

} // namespace chunkwise

#endif
