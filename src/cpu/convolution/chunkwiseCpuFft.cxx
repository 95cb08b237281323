/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuFft.h"

#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseFork.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

namespace chunkwise
{

FftFunctions<float>
MakeFftFunctionsFloatBaseline();
FftFunctions<double>
MakeFftFunctionsDoubleBaseline();
#if defined(CHUNKWISE_HAS_X86_LEVELS)
FftFunctions<float>
MakeFftFunctionsFloatAvx2();
FftFunctions<double>
MakeFftFunctionsDoubleAvx2();
FftFunctions<float>
MakeFftFunctionsFloatAvx512();
FftFunctions<double>
MakeFftFunctionsDoubleAvx512();
#endif

namespace
{

template <typename T>
FftFunctions<T>
Make(FftFunctions<float> (*makeFloat)(), FftFunctions<double> (*makeDouble)())
{
  if constexpr (std::is_same<T, float>::value)
  {
    (void)makeDouble;
    return makeFloat();
  }
  else
  {
    (void)makeFloat;
    return makeDouble();
  }
}

} // namespace

template <typename T>
const FftFunctions<T> &
GetFftFunctions()
{
#if defined(CHUNKWISE_HAS_X86_LEVELS)
  const std::string level = GetCpuLevel().name;
  if (level == "avx512")
  {
    static const FftFunctions<T> functions = Make<T>(MakeFftFunctionsFloatAvx512, MakeFftFunctionsDoubleAvx512);
    return functions;
  }
  if (level == "avx2")
  {
    static const FftFunctions<T> functions = Make<T>(MakeFftFunctionsFloatAvx2, MakeFftFunctionsDoubleAvx2);
    return functions;
  }
#endif
  static const FftFunctions<T> functions = Make<T>(MakeFftFunctionsFloatBaseline, MakeFftFunctionsDoubleBaseline);
  return functions;
}

template <typename T>
const FftPlan<T> &
GetFftPlan(std::int64_t length)
{
  struct Plan
  {
    std::vector<int> radices;
    std::vector<T>   twiddles;
    FftPlan<T>       plan;
  };
  struct Known
  {
    const unsigned int                            forks{ GetForkCount() };
    std::mutex                                    mutex;
    std::map<std::int64_t, std::unique_ptr<Plan>> plans;
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
  std::unique_ptr<Plan> &           entry = now->plans[length];
  if (!entry)
  {
    auto made = std::make_unique<Plan>();
    made->radices = TransformRadices(length);
    const std::vector<double> exact = TransformTwiddles(length);
    made->twiddles.assign(exact.begin(), exact.end());
    made->plan = { length, made->radices.data(), static_cast<int>(made->radices.size()), made->twiddles.data() };
    entry = std::move(made);
  }
  return entry->plan;
}

template const FftFunctions<float> &
GetFftFunctions<float>();
template const FftFunctions<double> &
GetFftFunctions<double>();
template const FftPlan<float> &
GetFftPlan<float>(std::int64_t length);
template const FftPlan<double> &
GetFftPlan<double>(std::int64_t length);

} // namespace chunkwise
