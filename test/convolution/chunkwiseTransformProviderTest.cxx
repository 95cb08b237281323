/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvolutionTrial.h"
#include "chunkwiseFftwModule.h"
#include "chunkwiseFilters.h"
#include "chunkwiseSequenceOperation.h"

#include <cstdio>
#include <cstdlib>
#include <future>

#if defined(__linux__)
#  include <dlfcn.h>
#endif

using namespace chunkwise;

namespace
{

struct Where
{
  BackendChoice     backend;
  TransformProvider provider;
};

std::string
NameOf(const testing::TestParamInfo<Where> & info)
{
  std::string name = info.param.backend == BackendChoice::CPU ? "Cpu_" : "Cuda_";
  return name + TransformProviderName(info.param.provider);
}

ExecutionReport
RunSmallConvolution(Manager & manager, BackendChoice backend, TransformProvider provider)
{
  std::mt19937 random(70);
  const auto   operation = std::make_shared<ImageConvolutionOperation>();
  operation->kernel = RandomKernel(random, { { 9, 8, 7, 1, 1 } }, true);
  operation->transforms = provider;
  Trial<double, double> t(random, operation, { { 30, 20, 17, 1, 1 } });
  t.request.backend = backend;
  t.Prepare(t.request.image);
  return manager.Execute(t.request);
}

/** Each provider where it is; skipped where it is not. */
class Transforms : public testing::TestWithParam<Where>
{
protected:
  void
  SetUp() override
  {
    std::string reason;
    if (GetBackend() == BackendChoice::CUDA && !GetCudaBackend(&reason))
    {
      GTEST_SKIP() << "no CUDA device: " << reason;
    }
    try
    {
      (void)RunSmallConvolution(GetManager(), GetBackend(), GetProvider());
    }
    catch (const ParameterError & error)
    {
      GTEST_SKIP() << error.what();
    }
  }
  Manager &
  GetManager() const
  {
    return Manager::GetGlobal();
  }
  BackendChoice
  GetBackend() const
  {
    return GetParam().backend;
  }
  TransformProvider
  GetProvider() const
  {
    return GetParam().provider;
  }
  /** Own transforms of a device need lines that fit its shared memory; Auto takes cuFFT for longer ones. */
  bool
  HasAnyLength() const
  {
    if (GetBackend() == BackendChoice::CPU || GetProvider() == TransformProvider::CuFFT)
    {
      return true;
    }
    try
    {
      return GetProvider() == TransformProvider::Auto &&
             RunSmallConvolution(GetManager(), GetBackend(), TransformProvider::CuFFT).transforms == "cufft";
    }
    catch (const ParameterError &)
    {
      return false;
    }
  }
  template <typename TIn, typename TOut = TIn>
  double
  ErrorOf(std::mt19937 & random, const Coordinates & image, const Coordinates & kernel, BoundaryMode mode,
          unsigned int every = 37) const
  {
    every = Box::FromExtent(image).NumberOfVoxels() < 2000 ? 1 : every;
    return RelativeError<TIn, TOut>(random, GetManager(), GetBackend(), image, kernel, mode, GetProvider(), every);
  }
};

TEST_P(Transforms, GiveWhatTheDefinitionSays)
{
  std::mt19937 random(71);
  for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
  {
    DispatchPixelType(static_cast<PixelType>(kind), [&](auto pixel) {
      using Pixel = decltype(pixel);
      CompareWithOracle<Pixel, Pixel>(random, GetManager(), GetBackend(), ConvolutionMethod::FFT, GetProvider());
      CompareWithOracle<Pixel, float>(random, GetManager(), GetBackend(), ConvolutionMethod::FFT, GetProvider());
      CompareWithOracle<Pixel, double>(random, GetManager(), GetBackend(), ConvolutionMethod::FFT, GetProvider());
    });
  }
}

TEST_P(Transforms, LinesOfAnyLengthKeepTheBound)
{
  std::mt19937 random(72);
  int          trial = 0;
  // Primes, products of 11 and 13, powers of 2 and one more.
  for (const std::int64_t n : { 1, 2, 7, 97, 121, 143, 169, 1009, 1024, 1025, 2431, 4096, 4097, 20000 })
  {
    for (int axis = 0; axis < 3; ++axis)
    {
      Coordinates image = { { 7, 6, 5, 1, 1 } };
      Coordinates kernel = { { 3, 2, 3, 1, 1 } };
      image[axis] = n;
      kernel[axis] = std::min<std::int64_t>(n, trial % 2 ? 31 : 9);
      if (n > 5000)
      {
        image[(axis + 1) % 3] = 1;
        kernel[(axis + 1) % 3] = 1;
      }
      const BoundaryMode mode = AllModes[trial++ % 6];
      EXPECT_LT(ErrorOf<float>(random, image, kernel, mode), 1e-6)
        << BoundaryModeName(mode) << ToString(image) << ToString(kernel);
      EXPECT_LT(ErrorOf<double>(random, image, kernel, mode), 1e-14)
        << BoundaryModeName(mode) << ToString(image) << ToString(kernel);
    }
  }
}

TEST_P(Transforms, LongKernelsKeepTheBound)
{
  if (!HasAnyLength())
  {
    GTEST_SKIP() << "for lines that fit shared memory";
  }
  std::mt19937 random(73);
  for (int axis = 0; axis < 3; ++axis)
  {
    Coordinates image = { { 3, 2, 2, 1, 1 } };
    Coordinates kernel = Coordinates::Filled(1);
    image[axis] = 12000;
    kernel[axis] = 10001;
    kernel[(axis + 1) % 3] = 2;
    EXPECT_LT(ErrorOf<float>(random, image, kernel, BoundaryMode::Renormalized, 997), 1e-6) << axis;
    EXPECT_LT(ErrorOf<double>(random, image, kernel, BoundaryMode::Mirror, 997), 1e-14) << axis;
  }
}

/** A special case: long lines, and the memory that they may take. */
TEST_P(Transforms, ALargePlaneWithALargeKernelStaysWithinItsBudget)
{
  if (!HasAnyLength() || GetBackend() == BackendChoice::CPU)
  {
    GTEST_SKIP() << "the time of the CPU is not worth it";
  }
  std::mt19937 random(74);
  const auto   operation = std::make_shared<ImageConvolutionOperation>();
  operation->kernel = RandomKernel(random, { { 9001, 33, 1, 1, 1 } }, true);
  operation->transforms = GetProvider();
  Trial<float, float> t(random, operation, { { 20000, 512, 1, 1, 1 } });
  t.request.backend = GetBackend();
  for (const std::size_t megabytes : { 0, 300, 150 })
  {
    t.Prepare(t.request.image);
    t.request.budgets.device = megabytes << 20;
    GetManager().ReleaseMemory();
    const ExecutionReport report = GetManager().Execute(t.request);
    EXPECT_EQ(report.transforms, "cufft");
    std::printf("  %zu MiB allowed: %zu chunks, peak %.1f MiB\n",
                megabytes,
                report.plan.chunks.size(),
                static_cast<double>(report.peakDevice) / (1 << 20));
    EXPECT_TRUE(megabytes == 0 || report.peakDevice <= megabytes << 20);
    long double error = 0;
    long double norm = 0;
    for (int sample = 0; sample < 40; ++sample)
    {
      const Coordinates index = {
        { static_cast<std::int64_t>(random() % 20000), static_cast<std::int64_t>(random() % 512), 0, 0, 0 }
      };
      const long double expected = oracle::Convolve<float>(t.image, index, *operation).result;
      error += std::pow(static_cast<long double>(t.Result(index)) - expected, 2);
      norm += expected * expected;
    }
    EXPECT_LT(std::sqrt(static_cast<double>(error / norm)), 1e-6) << megabytes;
  }
}

TEST_P(Transforms, MemoryStaysWithinTheBudgetAndTheResultWithinTheBound)
{
  std::mt19937 random(75);
  const auto   operation = std::make_shared<ImageConvolutionOperation>();
  operation->kernel = RandomKernel(random, { { 9, 15, 7, 1, 1 } }, true);
  operation->method = ConvolutionMethod::FFT;
  operation->transforms = GetProvider();
  Trial<double, double> t(random, operation, { { 90, 80, 70, 2, 1 } });
  t.request.backend = GetBackend();
  std::size_t ran = 0;
  std::size_t chunks = 0;
  for (const std::size_t kilobytes : { 1000, 3000, 6000, 12000, 40000, 200000 })
  {
    t.Prepare(t.request.image);
    t.request.budgets.device = t.request.budgets.host = kilobytes << 10;
    try
    {
      const ExecutionReport report = GetManager().Execute(t.request);
      EXPECT_LE(report.peakDevice, kilobytes << 10);
      EXPECT_LE(report.peakHost, kilobytes << 10);
      chunks = std::max(chunks, report.plan.chunks.size());
    }
    catch (const BudgetError &)
    {
      continue;
    }
    catch (const ParameterError &)
    {
      continue; // so many chunks that it is refused
    }
    ++ran;
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      if (random() % 997 == 0)
      {
        const auto parts = oracle::Convolve<double>(t.image, index, *operation);
        ASSERT_NEAR(t.Result(index), static_cast<double>(parts.result), 1e-12) << ToString(index);
      }
    });
  }
  EXPECT_GE(ran, 3U);
  EXPECT_GT(chunks, 1U);
}

TEST_P(Transforms, TheSameRunGivesTheSameBitsAlsoBesideOthers)
{
  const auto run = [this](int seed) {
    std::mt19937 random(76);
    const auto   operation = std::make_shared<ImageConvolutionOperation>();
    operation->kernel = RandomKernel(random, { { 11, 12, 9, 1, 1 } }, false);
    operation->boundary.mode = BoundaryMode::Mirror;
    operation->method = ConvolutionMethod::FFT;
    operation->transforms = GetProvider();
    Trial<float, float> t(random, operation, { { 50 + seed % 3, 41, 33, 1, 1 } });
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    Manager::GetGlobal().Execute(t.request);
    return t.output;
  };
  std::vector<std::vector<float>> alone;
  for (int seed = 0; seed < 3; ++seed)
  {
    alone.push_back(run(seed));
  }
  std::vector<std::future<std::vector<float>>> together;
  for (int i = 0; i < 12; ++i)
  {
    together.push_back(std::async(std::launch::async, run, i));
  }
  for (std::size_t i = 0; i < together.size(); ++i)
  {
    EXPECT_EQ(together[i].get(), alone[i % 3]) << i;
  }
}

TEST_P(Transforms, TheReportNamesWhoTransformed)
{
  const ExecutionReport report = RunSmallConvolution(GetManager(), GetBackend(), GetProvider());
  EXPECT_EQ(report.transforms, GetProvider() == TransformProvider::Auto ? "own" : TransformProviderName(GetProvider()));
  // As stages of others, too; and what takes no transforms says nothing.
  FilterParameters parameters;
  parameters.SetReal("Sigma", 3);
  parameters.Set("Transforms", true);
  parameters.Set("TransformProvider", TransformProviderName(GetProvider()));
  FilterImage image;
  image.extent = { { 20, 19, 18, 1, 1 } };
  image.inputKind = image.outputKind = PixelType::Float64;
  std::mt19937          random(77);
  Trial<double, double> t(random, MakeFilterOperation("gaussian", parameters, image), image.extent);
  t.request.backend = GetBackend();
  t.Prepare(t.request.image);
  EXPECT_EQ(GetManager().Execute(t.request).transforms, report.transforms);
  parameters.Set("Transforms", false);
  t.request.operation = MakeFilterOperation("gaussian", parameters, image);
  t.Prepare(t.request.image);
  EXPECT_EQ(GetManager().Execute(t.request).transforms, "");
}

INSTANTIATE_TEST_SUITE_P(All, Transforms,
                         testing::Values(Where{ BackendChoice::CPU, TransformProvider::Auto },
                                         Where{ BackendChoice::CPU, TransformProvider::FFTW },
                                         Where{ BackendChoice::CUDA, TransformProvider::Auto },
                                         Where{ BackendChoice::CUDA, TransformProvider::Own },
                                         Where{ BackendChoice::CUDA, TransformProvider::CuFFT }),
                         NameOf);

TEST(TransformProviders, AreToldApartByKeys)
{
  std::mt19937              random(78);
  ImageConvolutionOperation operation;
  operation.kernel = RandomKernel(random, { { 3, 3, 1, 1, 1 } }, true);
  std::set<std::string> keys;
  for (const auto provider :
       { TransformProvider::Auto, TransformProvider::Own, TransformProvider::CuFFT, TransformProvider::FFTW })
  {
    operation.transforms = provider;
    keys.insert(operation.GetKey());
    EXPECT_EQ(TransformProviderFromName(TransformProviderName(provider)), provider);
    // A provider is asked for: transforms, however few the weights.
    EXPECT_EQ(operation.GetName(), provider == TransformProvider::Auto ? "convolution.direct" : "convolution.fft");
  }
  EXPECT_EQ(keys.size(), 4U);
  EXPECT_THROW(TransformProviderFromName("mkl"), ParameterError);
  operation.method = ConvolutionMethod::Direct;
  EXPECT_THROW(operation.Validate({ { 9, 9, 1, 1, 1 } }), ParameterError);
}

TEST(TransformProviders, LengthsForFftwAreTheNextWithFewFactors)
{
  for (std::int64_t n = 1; n < 3000; ++n)
  {
    const std::int64_t length = GoodTransformLength(n, TransformProvider::FFTW);
    std::int64_t       left = length;
    for (const int prime : { 2, 3, 5, 7 })
    {
      while (left % prime == 0)
      {
        left /= prime;
      }
    }
    ASSERT_TRUE(left == 1 || left == 11 || left == 13) << n;
    ASSERT_GE(length, n);
    ASSERT_LE(length, GoodTransformLength(n));
    ASSERT_GE(GoodTransformLength(n + 1, TransformProvider::FFTW), length);
  }
}

/** Whether an error names the setting and the library. */
void
ExpectItIsNamed(Manager & manager, BackendChoice backend, TransformProvider provider, const std::string & library)
{
  try
  {
    (void)RunSmallConvolution(manager, backend, provider);
    FAIL() << "it ran";
  }
  catch (const ParameterError & error)
  {
    EXPECT_NE(std::string(error.what()).find("TransformProvider"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(library), std::string::npos) << error.what();
  }
}

TEST(TransformProviders, CufftOnTheCpuIsRefused)
{
  Manager host({}, "none was given");
  ExpectItIsNamed(host, BackendChoice::CPU, TransformProvider::CuFFT, "libcufft");
  ExpectItIsNamed(host, BackendChoice::Auto, TransformProvider::CuFFT, "libcufft");
  ExpectItIsNamed(host, BackendChoice::Auto, TransformProvider::CuFFT, "none was given");
}

// A library is opened once for each process: that it is missing is tried in another one.
class AbsentProvidersDeathTest : public testing::Test
{
protected:
  void
  SetUp() override
  {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
  }
  /** Ends the process: 0 if all is well. */
  template <typename TFunctor>
  [[noreturn]] static void
  Try(const char * variable, const char * file, TFunctor && f)
  {
#if defined(_WIN32)
    _putenv_s(variable, file);
#else
    setenv(variable, file, 1);
#endif
    f();
    std::_Exit(testing::Test::HasFailure() ? 1 : 0);
  }
};

TEST_F(AbsentProvidersDeathTest, FftwIsRefusedAndAutoGoesOn)
{
  for (const char * const file : { "/nowhere/libChunkwiseFftw.so", "/dev/null" })
  {
    EXPECT_EXIT(Try("CHUNKWISE_FFTW_MODULE",
                    file,
                    [] {
                      Manager host({});
                      ExpectItIsNamed(host, BackendChoice::Auto, TransformProvider::FFTW, "ChunkwiseFftw");
                      EXPECT_EQ(RunSmallConvolution(host, BackendChoice::CPU, TransformProvider::Auto).transforms,
                                "own");
                    }),
                testing::ExitedWithCode(0),
                "");
  }
}

TEST_F(AbsentProvidersDeathTest, CufftIsRefusedAndAutoGoesOn)
{
  if (!GetCudaBackend())
  {
    GTEST_SKIP() << "no CUDA device";
  }
  for (const char * const file : { "/nowhere/libcufft.so", "/lib/x86_64-linux-gnu/libm.so.6" })
  {
    EXPECT_EXIT(Try("CHUNKWISE_CUFFT",
                    file,
                    [] {
                      Manager & manager = Manager::GetGlobal();
                      ExpectItIsNamed(manager, BackendChoice::Auto, TransformProvider::CuFFT, "libcufft");
                      ExpectItIsNamed(manager, BackendChoice::CUDA, TransformProvider::CuFFT, "libcufft");
                      const auto report = RunSmallConvolution(manager, BackendChoice::CUDA, TransformProvider::Auto);
                      EXPECT_EQ(report.transforms, "own");
                      EXPECT_EQ(report.backend, "cuda");
                    }),
                testing::ExitedWithCode(0),
                "");
  }
}

TEST(TransformProviders, DoNotTakeEachOthersSpectra)
{
  if (!GetFftw())
  {
    GTEST_SKIP() << "the module is not built";
  }
  const auto run = [](Manager & manager, TransformProvider provider) {
    std::mt19937 random(80);
    const auto   operation = std::make_shared<ImageConvolutionOperation>();
    operation->kernel = RandomKernel(random, { { 9, 9, 9, 1, 1 } }, true);
    operation->boundary.mode = BoundaryMode::Constant;
    operation->transforms = provider;
    Trial<float, float> t(random, operation, { { 24, 24, 24, 1, 1 } });
    t.request.backend = BackendChoice::CPU;
    t.Prepare(t.request.image);
    manager.Execute(t.request);
    return t.output;
  };
  Manager    first({});
  Manager    second({});
  const auto alone = run(first, TransformProvider::FFTW);
  EXPECT_NE(run(second, TransformProvider::Own), alone) << "both round alike, so that this says nothing";
  EXPECT_EQ(run(second, TransformProvider::FFTW), alone);
}

#if defined(__linux__)
int g_ParallelLoops = 0;

/** Others of the process may have FFTW plan for many threads, as ITK's filters do. Lines are run by our own threads,
 * one each, and what the others set is left to them. */
TEST(TransformProviders, LinesOfFftwTakeNoThreadsOfItsOwn)
{
  if (!GetFftw())
  {
    GTEST_SKIP() << "the module is not built";
  }
  void * const library = dlopen("libfftw3f_threads.so.3", RTLD_LAZY | RTLD_LOCAL);
  const auto   find = [&](const char * name) { return library ? dlsym(library, name) : nullptr; };
  using Loop = void (*)(void * (*work)(char *), char * data, std::size_t size, int count, void *);
  const auto initialize = reinterpret_cast<int (*)()>(find("fftwf_init_threads"));
  const auto setThreads = reinterpret_cast<void (*)(int)>(find("fftwf_plan_with_nthreads"));
  const auto getThreads = reinterpret_cast<int (*)()>(find("fftwf_planner_nthreads"));
  const auto setLoop = reinterpret_cast<void (*)(Loop, void *)>(find("fftwf_threads_set_callback"));
  if (!initialize || !setThreads || !getThreads || !setLoop)
  {
    GTEST_SKIP() << "FFTW is older than 3.3.9";
  }
  ASSERT_NE(initialize(), 0);
  setLoop(
    [](void * (*work)(char *), char * data, std::size_t size, int count, void *) {
      ++g_ParallelLoops;
      for (int i = 0; i < count; ++i)
      {
        work(data + size * i);
      }
    },
    nullptr);
  setThreads(4);
  std::mt19937 random(83);
  // Lengths that no other test here has had planned.
  EXPECT_LT((RelativeError<float, float>(random,
                                         Manager::GetGlobal(),
                                         BackendChoice::CPU,
                                         { { 700, 650, 3, 1, 1 } },
                                         { { 31, 27, 2, 1, 1 } },
                                         BoundaryMode::Constant,
                                         TransformProvider::FFTW,
                                         3001)),
            1e-6);
  EXPECT_EQ(g_ParallelLoops, 0);
  EXPECT_EQ(getThreads(), 4);
  setThreads(1);
  setLoop(nullptr, nullptr);
}
#endif

TEST(TransformProviders, CufftIsRefusedWhereTheCpuTakesChunksOrWouldPlan)
{
  std::mt19937 random(79);
  const auto   operation = std::make_shared<ImageConvolutionOperation>();
  operation->kernel = RandomKernel(random, { { 9, 8, 7, 1, 1 } }, true);
  operation->transforms = TransformProvider::CuFFT;
  Trial<float, float> t(random, operation, { { 30, 20, 17, 1, 1 } });
  t.Prepare(t.request.image);
  t.request.hostTakesChunks = true;
  EXPECT_THROW(Manager::GetGlobal().Execute(t.request), ParameterError);
  EXPECT_TRUE(std::all_of(t.output.begin(), t.output.end(), [](float value) { return value == 77.0F; }));
  t.request.hostTakesChunks = false;
  t.request.backend = BackendChoice::CPU;
  t.request.budgets.host = 1 << 20;
  EXPECT_THROW(Manager::GetGlobal().GetCostOfBudget(t.request), ParameterError);
}

TEST(TransformProviders, FftwIsOfTheCpuWhereThereAreDevices)
{
  if (!GetFftw())
  {
    GTEST_SKIP() << "the module is not built";
  }
  const auto report = RunSmallConvolution(Manager::GetGlobal(), BackendChoice::Auto, TransformProvider::FFTW);
  EXPECT_EQ(report.backend, "cpu");
  EXPECT_EQ(report.transforms, "fftw");
  EXPECT_TRUE(report.warnings.empty()) << report.warnings.front();
}

} // namespace
