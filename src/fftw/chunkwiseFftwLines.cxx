/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFftwModule.h"

#include <fftw3.h>

#include <limits>
#include <map>
#include <mutex>
#include <utility>

#if defined(_WIN32)
#  define CHUNKWISE_MODULE_EXPORT __declspec(dllexport)
#else
#  define CHUNKWISE_MODULE_EXPORT __attribute__((visibility("default")))
#endif

namespace
{

constexpr std::size_t LaneBytes = 64;

/** The parts of a line of cells. FFTW's inverse is its transform with both exchanged; a plan must meet them as far from
 * each other as when it was made, so that each way has its own. */
template <typename T>
struct Parts
{
  T * real;
  T * imaginary;

  Parts(void * cells, bool inverse)
    : real(static_cast<T *>(cells) + (inverse ? LaneBytes / sizeof(T) : 0))
    , imaginary(static_cast<T *>(cells) + (inverse ? 0 : LaneBytes / sizeof(T)))
  {}
};

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
  Make(const Dimension & points, const Dimension & lanes, Parts<float> in, Parts<float> out)
  {
    return fftwf_plan_guru64_split_dft(
      1, &points, 1, &lanes, in.real, in.imaginary, out.real, out.imaginary, FFTW_ESTIMATE);
  }
  static void
  Run(Plan plan, Parts<float> in, Parts<float> out)
  {
    fftwf_execute_split_dft(plan, in.real, in.imaginary, out.real, out.imaginary);
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
  Make(const Dimension & points, const Dimension & lanes, Parts<double> in, Parts<double> out)
  {
    return fftw_plan_guru64_split_dft(
      1, &points, 1, &lanes, in.real, in.imaginary, out.real, out.imaginary, FFTW_ESTIMATE);
  }
  static void
  Run(Plan plan, Parts<double> in, Parts<double> out)
  {
    fftw_execute_split_dft(plan, in.real, in.imaginary, out.real, out.imaginary);
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
GetPlan(std::int64_t length, bool inverse)
{
  using Library = Fftw<T>;
  static auto & plans = *new std::map<std::pair<std::int64_t, bool>, typename Library::Plan>;
  const auto    found = plans.find({ length, inverse });
  if (found != plans.end())
  {
    return found->second;
  }
  constexpr int lanes = static_cast<int>(LaneBytes / sizeof(T));
  const auto    numbers = static_cast<std::size_t>(length) * 2 * lanes;
  // Other memory will be aligned as this is: FFTW aligns to 16 bytes at least, and plans for no more.
  T * const              memory = Library::Allocate(2 * numbers);
  typename Library::Plan plan = nullptr;
  if (memory)
  {
    const typename Library::Dimension ofPoints{ length, 2 * lanes, 2 * lanes };
    const typename Library::Dimension ofLanes{ lanes, 1, 1 };
    plan = Library::Make(ofPoints, ofLanes, Parts<T>(memory, inverse), Parts<T>(memory + numbers, inverse));
    Library::Free(memory);
  }
  if (plan)
  {
    plans[{ length, inverse }] = plan;
  }
  return plan;
}

const void *
Plan(std::int64_t length, bool isDouble, bool inverse)
{
  if (length < 1 || length > std::numeric_limits<std::int64_t>::max() / 1024)
  {
    return nullptr;
  }
  const std::lock_guard<std::mutex> lock(GetMutex());
  return isDouble ? GetPlan<double>(length, inverse) : GetPlan<float>(length, inverse);
}

template <typename T>
void
RunAs(const void * plan, bool inverse, void * in, void * out)
{
  const auto own = static_cast<typename Fftw<T>::Plan>(const_cast<void *>(plan));
  Fftw<T>::Run(own, Parts<T>(in, inverse), Parts<T>(out, inverse));
}

void
Run(const void * plan, bool isDouble, bool inverse, void * in, void * out)
{
  (isDouble ? RunAs<double> : RunAs<float>)(plan, inverse, in, out);
}

} // namespace

extern "C" CHUNKWISE_MODULE_EXPORT const chunkwise::FftwInterface *
                                         chunkwiseGetFftw(int version)
{
  static const chunkwise::FftwInterface fftw = { fftw_version, Plan, Run };
  return version == chunkwise::FftwInterfaceVersion ? &fftw : nullptr;
}
