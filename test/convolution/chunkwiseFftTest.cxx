/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuFft.h"
#include "chunkwiseFftwModule.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseImageConvolutionOperation.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdint>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#if !defined(_WIN32)
#  include <sys/wait.h>
#  include <unistd.h>
#endif

#if defined(CHUNKWISE_HAS_FFTW)
#  include <fftw3.h>
#endif

using namespace chunkwise;

namespace
{

using Complex = std::complex<long double>;

/** The definition. */
std::vector<Complex>
Transform(const std::vector<Complex> & in, bool inverse)
{
  const std::size_t    n = in.size();
  std::vector<Complex> roots;
  for (std::size_t i = 0; i < n; ++i)
  {
    roots.push_back(std::polar(1.0L,
                               (inverse ? 2 : -2) * 3.14159265358979323846264338327950288L *
                                 static_cast<long double>(i) / static_cast<long double>(n)));
  }
  std::vector<Complex> out(n);
  for (std::size_t k = 0; k < n; ++k)
  {
    for (std::size_t i = 0; i < n; ++i)
    {
      out[k] += in[i] * roots[i * k % n];
    }
  }
  return out;
}

#if defined(CHUNKWISE_HAS_FFTW)
std::vector<Complex>
TransformByFftw(const std::vector<Complex> & in, bool inverse)
{
  const auto           n = static_cast<int>(in.size());
  fftw_complex * const memory = fftw_alloc_complex(in.size());
  const fftw_plan plan = fftw_plan_dft_1d(n, memory, memory, inverse ? FFTW_BACKWARD : FFTW_FORWARD, FFTW_ESTIMATE);
  for (std::size_t i = 0; i < in.size(); ++i)
  {
    memory[i][0] = static_cast<double>(in[i].real());
    memory[i][1] = static_cast<double>(in[i].imag());
  }
  fftw_execute(plan);
  std::vector<Complex> out;
  for (std::size_t i = 0; i < in.size(); ++i)
  {
    out.emplace_back(memory[i][0], memory[i][1]);
  }
  fftw_destroy_plan(plan);
  fftw_free(memory);
  return out;
}
#endif

/** The relative L2 error of the part of a transform that is asked for, of an input that ends in zeros. */
template <typename T, typename TOracle>
double
RelativeError(std::mt19937 & random, std::int64_t n, bool inverse, TransformProvider provider, TOracle && oracle)
{
  constexpr std::int64_t Cell = FftCell<T>;
  const auto             below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(limit));
  };
  const std::int64_t   live = random() % 2 ? n : 1 + below(n);
  const std::int64_t   from = random() % 2 ? 0 : below(n);
  const std::int64_t   to = random() % 2 ? n : from + 1 + below(n - from);
  const std::int64_t   lane = below(FftLanes<T>);
  const std::int64_t   inStride = 1 + below(3);
  const std::int64_t   outStride = 1 + below(3);
  std::vector<T>       memory(static_cast<std::size_t>((inStride + outStride + 2) * n * Cell) + 64);
  std::vector<Complex> exact(static_cast<std::size_t>(n));
  T * const            in = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) / sizeof(T);
  T * const            out = in + inStride * n * Cell;
  // Points that are not live must not be read.
  std::fill(memory.begin(), memory.end(), static_cast<T>(1e9));
  for (std::int64_t i = 0; i < live * inStride * Cell; ++i)
  {
    in[i] = static_cast<T>(static_cast<double>(random()) / 4294967296.0 - 0.5);
  }
  for (std::int64_t i = 0; i < live; ++i)
  {
    const T * const cell = in + i * inStride * Cell + lane;
    exact[static_cast<std::size_t>(i)] = { cell[0], cell[FftLanes<T>] };
  }
  exact = oracle(exact, inverse);
  GetFftFunctions<T>(provider).transform(GetFftPlan<T>(n, provider),
                                         { in, inStride },
                                         live,
                                         { out, outStride },
                                         from,
                                         to,
                                         inverse,
                                         out + outStride * n * Cell);
  long double error = 0;
  long double norm = 0;
  for (std::int64_t i = from; i < to; ++i)
  {
    const T * const cell = out + (i - from) * outStride * Cell + lane;
    const Complex   expected = exact[static_cast<std::size_t>(i)];
    error += std::norm(Complex(cell[0], cell[FftLanes<T>]) - expected);
    norm += std::norm(expected);
  }
  return static_cast<double>(std::sqrt(error / norm));
}

template <typename TOracle>
void
Compare(std::mt19937 & random, std::int64_t n, TOracle && oracle, TransformProvider provider = TransformProvider::Own)
{
  // FFTW's ways to primes round more often; some frequencies that are kept are small.
  const bool isOwn = provider == TransformProvider::Own;
  for (const bool inverse : { false, true })
  {
    EXPECT_LT(RelativeError<float>(random, n, inverse, provider, oracle), isOwn ? 4e-7 : 2e-6)
      << n << (inverse ? " inverse" : "");
    EXPECT_LT(RelativeError<double>(random, n, inverse, provider, oracle), isOwn ? 8e-16 : 4e-15)
      << n << (inverse ? " inverse" : "");
  }
}

/** With the instruction sets that this machine has. */
class Fft : public testing::TestWithParam<const char *>
{
protected:
  void
  SetUp() override
  {
    m_Before = GetCpuLevel().name;
    if (!SetCpuLevel(GetParam()))
    {
      GTEST_SKIP() << "this machine does not have " << GetParam();
    }
  }
  void
  TearDown() override
  {
    SetCpuLevel(m_Before.c_str());
  }

private:
  std::string m_Before;
};

TEST_P(Fft, IsWhatItsDefinitionSays)
{
  std::mt19937 random(81);
  std::int64_t last = 0;
  for (std::int64_t n = 1; n <= 400; ++n)
  {
    const std::int64_t length = GoodTransformLength(n);
    if (length > last)
    {
      Compare(random, length, Transform);
      last = length;
    }
  }
  // Each radix alone and next to others that GoodTransformLength does not choose.
  for (const std::int64_t n : { 2, 3, 4, 5, 7, 8, 9, 14, 21, 25, 27, 35, 49, 63, 105, 125, 210, 343, 378 })
  {
    Compare(random, n, Transform);
  }
}

#if defined(CHUNKWISE_HAS_FFTW)
TEST_P(Fft, OfLongLinesAgreesWithFftw)
{
  std::mt19937 random(82);
  for (std::int64_t n = 400; n < 70000; n = n * 4 / 3)
  {
    Compare(random, GoodTransformLength(n), TransformByFftw);
  }
}
#endif

/** Rows to lanes of cells, these to two half spectra, and all the way back, in memory that ends where it must. */
template <typename T>
void
CompareRowsThereAndBack(std::mt19937 & random, std::int64_t n)
{
  constexpr std::int64_t Cell = FftCell<T>;
  constexpr std::int64_t Lanes = FftLanes<T>;
  const auto &           functions = GetFftFunctions<T>();
  const auto             allocate = [](std::int64_t numbers) {
    constexpr std::align_val_t alignment{ 64 };
    const auto                 bytes = static_cast<std::size_t>(numbers) * sizeof(T);
    return std::shared_ptr<T>(static_cast<T *>(::operator new(bytes, alignment)),
                              [alignment](T * memory) { ::operator delete(memory, alignment); });
  };
  std::vector<std::unique_ptr<T[]>> held;
  std::vector<std::shared_ptr<T>>   spectra;
  std::vector<T *>                  rows;
  std::vector<T *>                  back;
  std::vector<T *>                  spectraOfRows;
  for (std::int64_t l = 0; l < 2 * Lanes; ++l)
  {
    const bool exists = random() % 5 != 0;
    for (std::vector<T *> * const to : { &rows, &back })
    {
      held.emplace_back(exists ? new T[static_cast<std::size_t>(n)] : nullptr);
      to->push_back(held.back().get());
    }
    spectra.push_back(exists ? allocate((n / 2 + Lanes) / Lanes * Cell) : nullptr);
    spectraOfRows.push_back(spectra.back().get());
    for (std::int64_t i = 0; exists && i < n; ++i)
    {
      rows.back()[i] = static_cast<T>(1 + random() % 100);
    }
  }
  const auto cells = allocate(n * Cell);
  functions.spread(cells.get(), 0, rows.data(), n);
  functions.spread(cells.get(), 1, rows.data() + Lanes, n);
  functions.collect(cells.get(), 0, back.data(), n);
  functions.collect(cells.get(), 1, back.data() + Lanes, n);
  const auto spectrum = allocate(n * Cell);
  functions.separate(cells.get(), n, spectraOfRows.data(), spectraOfRows.data() + Lanes);
  functions.combine(spectrum.get(), n, spectraOfRows.data(), spectraOfRows.data() + Lanes);
  for (std::int64_t l = 0; l < 2 * Lanes; ++l)
  {
    const auto row = static_cast<std::size_t>(l);
    const bool both = rows[row] && rows[static_cast<std::size_t>((l + Lanes) % (2 * Lanes))];
    for (std::int64_t i = 0; i < n; ++i)
    {
      ASSERT_EQ(cells.get()[i * Cell + l], rows[row] ? rows[row][i] : T(0)) << n;
      ASSERT_TRUE(!rows[row] || back[row][i] == rows[row][i]) << n;
      ASSERT_TRUE(!both || spectrum.get()[i * Cell + l] == 2 * cells.get()[i * Cell + l]) << n;
    }
  }
}

TEST_P(Fft, RowsGoThereAndBack)
{
  std::mt19937 random(83);
  for (std::int64_t n = 1; n < 70; ++n)
  {
    CompareRowsThereAndBack<float>(random, n);
    CompareRowsThereAndBack<double>(random, n);
  }
}

TEST(FftwLines, OfAnyLengthAreWhatTheDefinitionSays)
{
  std::string reason;
  if (!GetFftw(&reason))
  {
    GTEST_SKIP() << reason;
  }
  std::printf("  %s\n", GetFftw()->version);
  std::mt19937 random(83);
  for (std::int64_t n = 1; n <= 200; ++n)
  {
    Compare(random, n, Transform, TransformProvider::FFTW);
  }
  for (const std::int64_t n : { 509, 1009, 1024, 1025, 2431 })
  {
    Compare(random, n, Transform, TransformProvider::FFTW);
  }
}

TEST(FftwLines, ArePlannedAndRunByManyThreadsAtOnce)
{
  if (!GetFftw())
  {
    GTEST_SKIP() << "the module is not built";
  }
  std::vector<std::thread> threads;
  for (unsigned int t = 0; t < 8; ++t)
  {
    threads.emplace_back([t] {
      std::mt19937 random(84 + t % 2);
      for (std::int64_t n = 211; n < 300; n += 11)
      {
        Compare(random, n, Transform, TransformProvider::FFTW);
      }
    });
  }
  for (std::thread & thread : threads)
  {
    thread.join();
  }
}

#if !defined(_WIN32)
/** A thread of the parent makes plans all the time, and holds their lock when it forks. */
TEST(FftPlans, AForkedChildMakesItsOwn)
{
  std::atomic<bool> ends{ false };
  std::thread       planner([&] {
    for (std::int64_t odd : { 1, 3, 5, 9, 15, 25, 27, 45 })
    {
      for (int power = 14; power < 19 && !ends; ++power)
      {
        GetFftPlan<double>(odd << power);
      }
    }
  });
  for (int i = 0; i < 40; ++i)
  {
    const pid_t child = fork();
    if (child == 0)
    {
      alarm(10);
      const FftPlan<double> & plan = GetFftPlan<double>(64);
      _exit(plan.length == 64 && &plan == &GetFftPlan<double>(64) ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << i;
  }
  ends = true;
  planner.join();
}
#endif

INSTANTIATE_TEST_SUITE_P(Levels, Fft, testing::Values("baseline", "avx2", "avx512"));

} // namespace
