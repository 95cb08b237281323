/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuFft.h"

#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseCpuLevels.h"
#include "chunkwiseError.h"
#include "chunkwiseFftwModule.h"
#include "chunkwiseFork.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(FftFunctions<float>, MakeFftFunctionsFloat)
CHUNKWISE_DECLARE_AT_LEVELS(FftFunctions<double>, MakeFftFunctionsDouble)

namespace
{

/** The module, whose absence was found before work started. */
const FftwInterface &
GetOpenedFftw()
{
  std::string                 reason;
  const FftwInterface * const fftw = GetFftw(&reason);
  if (!fftw)
  {
    throw ParameterError("TransformProvider: fftw is asked for, but the module ChunkwiseFftw cannot be opened: " +
                         reason);
  }
  return *fftw;
}

/** FftFunctions::transform by FFTW: what is not live, or not kept, is its, too. Cells become complex numbers one after
 * the other, which FFTW takes two and a half times as fast as parts that lie apart. */
template <typename T>
void
TransformByFftw(const FftPlan<T> & plan, FftLine<T> in, std::int64_t live, FftLine<T> out, std::int64_t from,
                std::int64_t to, bool inverse, T * work)
{
  static const FftwInterface & fftw = GetOpenedFftw();
  constexpr std::int64_t       cell = FftCell<T>;
  constexpr std::int64_t       lanes = FftLanes<T>;
  T * const                    target = work + plan.length * cell;
  for (std::int64_t i = 0; i < live; ++i)
  {
    const T * const parts = in.cells + i * in.stride * cell;
    T * const       numbers = work + i * cell;
    for (std::int64_t lane = 0; lane < lanes; ++lane)
    {
      numbers[2 * lane] = parts[lane];
      numbers[2 * lane + 1] = parts[lanes + lane];
    }
  }
  std::fill(work + live * cell, work + plan.length * cell, T(0));
  fftw.run(plan.ofFftw[inverse ? 1 : 0], sizeof(T) == 8, work, target);
  for (std::int64_t i = from; i < to; ++i)
  {
    const T * const numbers = target + i * cell;
    T * const       parts = out.cells + (i - from) * out.stride * cell;
    for (std::int64_t lane = 0; lane < lanes; ++lane)
    {
      parts[lane] = numbers[2 * lane];
      parts[lanes + lane] = numbers[2 * lane + 1];
    }
  }
}

} // namespace

template <typename T>
const FftFunctions<T> &
GetFftFunctions(TransformProvider provider)
{
  if (provider == TransformProvider::FFTW)
  {
    static const FftFunctions<T> functions = [] {
      FftFunctions<T> own = GetFftFunctions<T>();
      own.transform = TransformByFftw<T>;
      return own;
    }();
    return functions;
  }
  if constexpr (std::is_same<T, float>::value)
  {
    static FunctionsAtLevels<FftFunctions<T>> functions{ CHUNKWISE_AT_LEVELS(MakeFftFunctionsFloat) };
    return functions.Get();
  }
  else
  {
    static FunctionsAtLevels<FftFunctions<T>> functions{ CHUNKWISE_AT_LEVELS(MakeFftFunctionsDouble) };
    return functions.Get();
  }
}

template <typename T>
const FftPlan<T> &
GetFftPlan(std::int64_t length, TransformProvider provider)
{
  struct Plan
  {
    std::vector<int> radices;
    std::vector<T>   twiddles;
    FftPlan<T>       plan;
  };
  struct Known
  {
    const unsigned int                                             forks{ GetForkCount() };
    std::mutex                                                     mutex;
    std::map<std::pair<bool, std::int64_t>, std::unique_ptr<Plan>> plans;
  };
  // Plans are small and few, and runs may outlive static destruction: they are kept. So are those of a process that was
  // forked while one of its threads had the lock.
  static SpinFlag flag;
  static Known *  known = nullptr;
  Known *         now = nullptr;
  {
    const SpinLock lock(flag);
    if (!known || known->forks != GetForkCount())
    {
      known = new Known;
    }
    now = known;
  }
  const std::lock_guard<std::mutex> lock(now->mutex);
  const bool                        byFftw = provider == TransformProvider::FFTW;
  std::unique_ptr<Plan> &           entry = now->plans[{ byFftw, length }];
  if (!entry && byFftw)
  {
    auto                  made = std::make_unique<Plan>();
    const FftwInterface & fftw = GetOpenedFftw();
    made->plan = { length, nullptr, 0, nullptr, { nullptr, nullptr } };
    for (const bool inverse : { false, true })
    {
      const void * const plan = fftw.plan(length, sizeof(T) == 8, inverse);
      if (!plan)
      {
        throw Error("FFTW has no plan for " + std::to_string(length) + " points");
      }
      made->plan.ofFftw[inverse ? 1 : 0] = plan;
    }
    entry = std::move(made);
  }
  if (!entry)
  {
    auto made = std::make_unique<Plan>();
    made->radices = TransformRadices(length);
    const std::vector<double> exact = TransformTwiddles(length);
    made->twiddles.assign(exact.begin(), exact.end());
    made->plan = {
      length, made->radices.data(), static_cast<int>(made->radices.size()), made->twiddles.data(), { nullptr, nullptr }
    };
    entry = std::move(made);
  }
  return entry->plan;
}

template const FftFunctions<float> &
GetFftFunctions<float>(TransformProvider provider);
template const FftFunctions<double> &
GetFftFunctions<double>(TransformProvider provider);
template const FftPlan<float> &
GetFftPlan<float>(std::int64_t length, TransformProvider provider);
template const FftPlan<double> &
GetFftPlan<double>(std::int64_t length, TransformProvider provider);

} // namespace chunkwise
