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

/** FFTW's functions of one precision. */
template <typename T>
struct Fftw;

template <>
struct Fftw<float>
{
  using Plan = fftwf_plan;
  using Complex = fftwf_complex;
  static constexpr auto Allocate = fftwf_alloc_complex;
  static constexpr auto Free = fftwf_free;
  static constexpr auto MakePlan = fftwf_plan_many_dft;
  static constexpr auto Run = fftwf_execute_dft;
#if defined(CHUNKWISE_FFTW_HAS_THREADS)
  static constexpr auto NumberOfThreads = fftwf_planner_nthreads;
  static constexpr auto SetNumberOfThreads = fftwf_plan_with_nthreads;
  static constexpr auto MakePlannerThreadSafe = fftwf_make_planner_thread_safe;
#endif
};

template <>
struct Fftw<double>
{
  using Plan = fftw_plan;
  using Complex = fftw_complex;
  static constexpr auto Allocate = fftw_alloc_complex;
  static constexpr auto Free = fftw_free;
  static constexpr auto MakePlan = fftw_plan_many_dft;
  static constexpr auto Run = fftw_execute_dft;
#if defined(CHUNKWISE_FFTW_HAS_THREADS)
  static constexpr auto NumberOfThreads = fftw_planner_nthreads;
  static constexpr auto SetNumberOfThreads = fftw_plan_with_nthreads;
  static constexpr auto MakePlannerThreadSafe = fftw_make_planner_thread_safe;
#endif
};

/** FFTW plans in one thread at a time. Plans are small and few, and runs may outlive static destruction: they are kept.
 */
std::mutex &
GetMutex()
{
  static std::mutex & mutex = *new std::mutex;
  return mutex;
}

/** Has FFTW plan for one thread, as our threads have separate lines: the number that it plans for is a state of the
 * whole process, which others set (ITK's filters for all processors). Theirs comes back after. */
template <typename T>
class OneThread
{
public:
#if defined(CHUNKWISE_FFTW_HAS_THREADS)
  OneThread()
    : m_Before(Fftw<T>::NumberOfThreads())
  {
    // If it is one, FFTW may not have its threads yet, and would begin anew: plans that are kept would be lost.
    if (m_Before > 1)
    {
      Fftw<T>::SetNumberOfThreads(1);
    }
  }
  ~OneThread()
  {
    if (m_Before > 1)
    {
      Fftw<T>::SetNumberOfThreads(m_Before);
    }
  }
  OneThread(const OneThread &) = delete;
  OneThread &
  operator=(const OneThread &) = delete;

private:
  const int m_Before;
#else
  OneThread() {}
#endif
};

template <typename T>
const void *
GetPlan(std::int64_t length, bool inverse)
{
  using Library = Fftw<T>;
  static auto &          plans = *new std::map<std::pair<std::int64_t, bool>, typename Library::Plan>;
  const auto             found = plans.find({ length, inverse });
  constexpr int          lanes = static_cast<int>(64 / sizeof(T));
  const auto             numbers = static_cast<std::size_t>(length) * lanes;
  typename Library::Plan plan = nullptr;
  if (found != plans.end())
  {
    return found->second;
  }
  // Other memory will be aligned as this is: FFTW aligns to 16 bytes at least, and plans for no more.
  typename Library::Complex * const memory = Library::Allocate(2 * numbers);
  if (memory)
  {
    const OneThread<T> oneThread;
    const int          n = static_cast<int>(length);
    plan = Library::MakePlan(1,
                             &n,
                             lanes,
                             memory,
                             nullptr,
                             lanes,
                             1,
                             memory + numbers,
                             nullptr,
                             lanes,
                             1,
                             inverse ? FFTW_BACKWARD : FFTW_FORWARD,
                             FFTW_ESTIMATE);
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
  if (length < 1 || length > std::numeric_limits<int>::max())
  {
    return nullptr;
  }
  const std::lock_guard<std::mutex> lock(GetMutex());
#if defined(CHUNKWISE_FFTW_HAS_THREADS)
  // Others of the process may plan meanwhile.
  static const bool isSafe = (Fftw<float>::MakePlannerThreadSafe(), Fftw<double>::MakePlannerThreadSafe(), true);
  static_cast<void>(isSafe);
#endif
  return isDouble ? GetPlan<double>(length, inverse) : GetPlan<float>(length, inverse);
}

template <typename T>
void
RunAs(const void * plan, void * in, void * out)
{
  using Library = Fftw<T>;
  using Complex = typename Library::Complex;
  Library::Run(static_cast<typename Library::Plan>(const_cast<void *>(plan)),
               static_cast<Complex *>(in),
               static_cast<Complex *>(out));
}

void
Run(const void * plan, bool isDouble, void * in, void * out)
{
  (isDouble ? RunAs<double> : RunAs<float>)(plan, in, out);
}

} // namespace

extern "C" CHUNKWISE_MODULE_EXPORT const chunkwise::FftwInterface *
                                         chunkwiseGetFftw(int version)
{
  static const chunkwise::FftwInterface fftw = { fftw_version, Plan, Run };
  return version == chunkwise::FftwInterfaceVersion ? &fftw : nullptr;
}
