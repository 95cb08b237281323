/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFftwModule.h"

#include <fftw3.h>

#include <limits>
#include <map>
#include <mutex>

#if defined(_WIN32)
#  define CHUNKWISE_MODULE_EXPORT __declspec(dllexport)
#else
#  define CHUNKWISE_MODULE_EXPORT __attribute__((visibility("default")))
#endif

namespace
{

constexpr int LaneBytes = 64;

/** FFTW's functions of one precision. */
template <typename T>
struct Fftw;

template <>
struct Fftw<float>
{
  using Plan = fftwf_plan;
  using Dimension = fftwf_iodim64;

  static float *
  Allocate(std::size_t numbers)
  {
    return fftwf_alloc_real(numbers);
  }
  static void
  Free(float * memory)
  {
    fftwf_free(memory);
  }
  static Plan
  Make(const Dimension & points, const Dimension & lanes, float * in, float * out, int half)
  {
    return fftwf_plan_guru64_split_dft(1, &points, 1, &lanes, in, in + half, out, out + half, FFTW_ESTIMATE);
  }
};

template <>
struct Fftw<double>
{
  using Plan = fftw_plan;
  using Dimension = fftw_iodim64;

  static double *
  Allocate(std::size_t numbers)
  {
    return fftw_alloc_real(numbers);
  }
  static void
  Free(double * memory)
  {
    fftw_free(memory);
  }
  static Plan
  Make(const Dimension & points, const Dimension & lanes, double * in, double * out, int half)
  {
    return fftw_plan_guru64_split_dft(1, &points, 1, &lanes, in, in + half, out, out + half, FFTW_ESTIMATE);
  }
};

/** FFTW plans in one thread at a time. Plans are small and few, and runs may outlive static destruction: they are kept.
 */
std::mutex &
GetMutex()
{
  static std::mutex & mutex = *new std::mutex;
  return mutex;
}

template <typename T>
const void *
GetPlan(std::int64_t length)
{
  using Library = Fftw<T>;
  static auto & plans = *new std::map<std::int64_t, typename Library::Plan>;
  const auto    found = plans.find(length);
  if (found != plans.end())
  {
    return found->second;
  }
  constexpr int lanes = LaneBytes / static_cast<int>(sizeof(T));
  const auto    numbers = static_cast<std::size_t>(length) * 2 * lanes;
  // Other memory will be aligned as this is: FFTW aligns to 16 bytes at least, and plans for no more.
  T * const              memory = Library::Allocate(2 * numbers);
  typename Library::Plan plan = nullptr;
  if (memory)
  {
    const typename Library::Dimension ofPoints{ length, 2 * lanes, 2 * lanes };
    const typename Library::Dimension ofLanes{ lanes, 1, 1 };
    plan = Library::Make(ofPoints, ofLanes, memory, memory + numbers, lanes);
    Library::Free(memory);
  }
  if (plan)
  {
    plans[length] = plan;
  }
  return plan;
}

const void *
Plan(std::int64_t length, bool isDouble)
{
  if (length < 1 || length > std::numeric_limits<std::int64_t>::max() / 1024)
  {
    return nullptr;
  }
  const std::lock_guard<std::mutex> lock(GetMutex());
  return isDouble ? GetPlan<double>(length) : GetPlan<float>(length);
}

void
Run(const void * plan, bool isDouble, void * inReal, void * inImaginary, void * outReal, void * outImaginary)
{
  if (isDouble)
  {
    fftw_execute_split_dft(static_cast<fftw_plan>(const_cast<void *>(plan)),
                           static_cast<double *>(inReal),
                           static_cast<double *>(inImaginary),
                           static_cast<double *>(outReal),
                           static_cast<double *>(outImaginary));
  }
  else
  {
    fftwf_execute_split_dft(static_cast<fftwf_plan>(const_cast<void *>(plan)),
                            static_cast<float *>(inReal),
                            static_cast<float *>(inImaginary),
                            static_cast<float *>(outReal),
                            static_cast<float *>(outImaginary));
  }
}

} // namespace

extern "C" CHUNKWISE_MODULE_EXPORT const chunkwise::FftwInterface *
                                         chunkwiseGetFftw(int version)
{
  static const chunkwise::FftwInterface fftw = { fftw_version, Plan, Run };
  return version == chunkwise::FftwInterfaceVersion ? &fftw : nullptr;
}
