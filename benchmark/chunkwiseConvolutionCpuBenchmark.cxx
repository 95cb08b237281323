/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times convolutions on the CPU without ITK. Arguments: any of
//   machine    what work that shares nothing loses with 1, 2, 4 ... threads
//   varying    kernels of 100 x 100 on a grid of M / 128 nodes an axis, with 1, 2, 4 ... threads
//   pruned     transforms there and back with and without those of lines of zeros or of what is not kept
//   fftw       the same, all lines, and whole convolutions, beside FFTW with 1, 2, 4 ... threads; where this was built
//              with it
//   methods    direct beside transforms for kernels of few weights
// and then the most threads (as many as the machine has); and --csv FILE.
#include "chunkwiseBenchmarkReport.h"
#include "chunkwiseCpuFftBlock.h"
#include "chunkwiseError.h"
#include "chunkwiseFftwModule.h"
#include "chunkwiseVaryingConvolutionOperation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#if defined(CHUNKWISE_HAS_FFTW)
#  include <fftw3.h>
#endif

using namespace chunkwise;

namespace
{

std::shared_ptr<const ConvolutionKernel>
MakeKernel(const Coordinates & extent, std::size_t seed)
{
  std::vector<double> weights(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  Coordinates         center{};
  for (std::size_t i = 0; i < weights.size(); ++i)
  {
    weights[i] = 1 + static_cast<double>((i + seed) % 1031);
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    center[a] = extent[a] / 2;
  }
  return std::make_shared<ConvolutionKernel>(extent, center, weights);
}

template <typename T = float>
std::vector<T>
MakeImage(const Coordinates & extent)
{
  std::vector<T> pixels(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  std::uint32_t  state = 1234567u;
  for (T & pixel : pixels)
  {
    state = state * 1664525u + 1013904223u;
    pixel = static_cast<T>(static_cast<float>(state >> 8) * 1e-4f);
  }
  return pixels;
}

/** Keeps what kernels make, as a manager does for the next run. */
class HostTables : public DeviceTables
{
public:
  const void *
  Get(const std::string &, const void * data, std::size_t) override
  {
    return data;
  }
  const void *
  GetMade(const std::string & key, std::size_t bytes, const std::function<void(void *)> & fill) override
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    std::vector<char> &               table = m_Made[key];
    if (table.empty())
    {
      table.resize(bytes + 64);
      fill(Aligned(table));
    }
    return Aligned(table);
  }

private:
  static void *
  Aligned(std::vector<char> & table)
  {
    return table.data() + (64 - reinterpret_cast<std::uintptr_t>(table.data()) % 64);
  }

  std::mutex                               m_Mutex;
  std::map<std::string, std::vector<char>> m_Made;
};

/** The host's kernel over a separate whole image. */
template <typename T = float>
class OperationRun
{
public:
  OperationRun(const Operation & operation, const Coordinates & extent, Executor & executor)
    : m_In(MakeImage<T>(extent))
    , m_Out(m_In.size())
    , m_Run(operation, { DenseView(m_In.data(), PixelTypeOf<T>(), Box::FromExtent(extent)) },
            DenseView(m_Out.data(), PixelTypeOf<T>(), Box::FromExtent(extent)), executor)
  {
    m_Run.call.tables = &m_Tables;
  }

  void
  operator()() const
  {
    m_Run();
  }

private:
  std::vector<T> m_In;
  std::vector<T> m_Out;
  HostTables     m_Tables;
  HostRun        m_Run;
};

double
TimeOperation(const Operation & operation, const Coordinates & extent, Executor & executor, int repeats)
{
  const OperationRun<> run(operation, extent, executor);
  return BestSeconds(repeats, run);
}

/** A convolution like that of a node of Varying, as many for each thread, with separate memory: whatever the time
 * grows by with more threads is the machine's. */
class MachineRun
{
public:
  explicit MachineRun(Executor & executor)
    : m_Executor(executor)
    , m_Alone(executor.GetConcurrency())
    , m_Runs(executor.GetConcurrency())
  {
    m_Operation.kernel = MakeKernel({ { 100, 100, 1, 1, 1 } }, 1);
    m_Executor.ParallelFor(m_Executor.GetConcurrency(), [&](std::int64_t i, unsigned int) {
      const auto thread = static_cast<std::size_t>(i);
      m_Alone[thread] = MakeThreadExecutor(1);
      m_Runs[thread] =
        std::make_unique<OperationRun<>>(m_Operation, Coordinates{ { 310, 310, 1, 1, 1 } }, *m_Alone[thread]);
    });
  }

  void
  operator()(int repeats) const
  {
    m_Executor.ParallelFor(m_Executor.GetConcurrency(), [&](std::int64_t i, unsigned int) {
      for (int repeat = 0; repeat < repeats; ++repeat)
      {
        (*m_Runs[static_cast<std::size_t>(i)])();
      }
    });
  }

private:
  Executor &                                   m_Executor;
  ImageConvolutionOperation                    m_Operation;
  std::vector<std::unique_ptr<Executor>>       m_Alone;
  std::vector<std::unique_ptr<OperationRun<>>> m_Runs;
};

/** The loss of other work that shares nothing. */
void
Machine(Report & report, unsigned int most)
{
  report.Print("work that shares nothing, as much for each thread");
  constexpr std::int64_t Points = 40;
  const std::size_t      copied = std::size_t{ 64 } << 20;
  double                 one[2]{};
  for (unsigned int threads = 1; threads <= most; threads *= 2)
  {
    const auto                      executor = MakeThreadExecutor(threads);
    std::vector<std::vector<float>> lines(threads);
    std::vector<std::vector<char>>  memory(threads);
    executor->ParallelFor(threads, [&](std::int64_t i, unsigned int) {
      lines[static_cast<std::size_t>(i)].resize(3 * Points * FftCell<float> + 16);
      memory[static_cast<std::size_t>(i)].resize(2 * copied);
    });
    const std::function<void(std::size_t)> work[] = {
      [&](std::size_t thread) {
        float * const line =
          lines[thread].data() + (64 - reinterpret_cast<std::uintptr_t>(lines[thread].data()) % 64) / sizeof(float);
        float * const space = line + Points * FftCell<float>;
        const auto &  functions = GetFftFunctions<float>();
        const auto &  plan = GetFftPlan<float>(Points);
        for (int repeat = 0; repeat < 30000; ++repeat)
        {
          functions.transform(plan, { line, 1 }, Points, { line, 1 }, 0, Points, repeat % 2 != 0, space);
        }
      },
      [&](std::size_t thread) { std::memcpy(memory[thread].data(), memory[thread].data() + copied, copied); }
    };
    const char * const names[] = { "transforms in cache L1", "copies of 64 MiB" };
    for (int kind = 0; kind < 2; ++kind)
    {
      const double seconds = BestSeconds(7, [&] {
        executor->ParallelFor(threads, [&](std::int64_t i, unsigned int) { work[kind](static_cast<std::size_t>(i)); });
      });
      one[kind] = threads == 1 ? seconds : one[kind];
      report.Add("cpu",
                 std::string(names[kind]) + " that share nothing; " + std::to_string(threads) + " threads",
                 seconds * 1e3,
                 "ms",
                 {},
                 { one[kind] * 1e3, "one thread" });
    }
  }
}

/** Table 2 of Kepner's "A multi-threaded fast convolver for dynamically parallel image filtering". */
void
Varying(Report & report, unsigned int most)
{
  report.Print("kernels of 100 x 100 that vary over the image, float; in the same moments each thread by itself");
  for (const std::int64_t size : { 1024, 2048, 4096 })
  {
    VaryingConvolutionOperation operation;
    for (int a = 0; a < 2; ++a)
    {
      operation.nodes[a] = size / 128;
      operation.spacing[a] = 128;
      operation.first[a] = 63.5;
    }
    for (std::int64_t node = 0; node < operation.nodes[0] * operation.nodes[1]; ++node)
    {
      operation.kernels.push_back(MakeKernel({ { 100, 100, 1, 1, 1 } }, static_cast<std::size_t>(node)));
    }
    double one = 0;
    double oneByItself = 0;
    for (unsigned int threads = 1; threads <= most; threads *= 2)
    {
      const auto           executor = MakeThreadExecutor(threads);
      const MachineRun     machine(*executor);
      const OperationRun<> run(operation, { { size, size, 1, 1, 1 } }, *executor);
      double               seconds = BestSeconds(1, run);
      double               byItself = BestSeconds(1, [&] { machine(1); });
      // In turns, for as long: other work on the machine comes and goes.
      const int repeats = std::max(1, static_cast<int>(seconds / byItself));
      byItself *= repeats;
      for (int turn = 0; turn < (size > 2000 ? 6 : 20); ++turn)
      {
        seconds = std::min(seconds, BestSeconds(1, run));
        byItself = std::min(byItself, BestSeconds(1, [&] { machine(repeats); }));
      }
      byItself /= repeats;
      one = threads == 1 ? seconds : one;
      oneByItself = threads == 1 ? byItself : oneByItself;
      const std::string nodes = std::to_string(size / 128);
      const std::string grid = nodes + " x " + nodes;
      const std::string image = SizeName({ { size, size, 1, 1, 1 } }) + " float32, " + std::to_string(threads) +
                                (threads > 1 ? " threads" : " thread");
      report.Add("cpu", "varying kernels of 100^2, " + grid + "; " + image, seconds, "s");
      report.Add("cpu",
                 "varying kernels of 100^2, efficiency; " + grid + ", " + image,
                 100 * one / seconds / threads,
                 "%",
                 {},
                 { 100 * oneByItself / byItself, "threads that share nothing" });
    }
  }
}

/** Transforms of a block along all three axes and back: those of RunBlock. */
template <typename T = float>
double
TimeTransforms(const ConvolutionBlock & block, Executor & executor)
{
  constexpr std::int64_t  Cell = FftCell<T>;
  const CellShape<T>      shape(block);
  const PlaneTransform<T> planes(block);
  const auto &            functions = GetFftFunctions<T>(block.transforms);
  const auto &            z = block.role[2];
  const auto &            planZ = GetFftPlan<T>(z.length, block.transforms);
  const std::int64_t      columns = shape.rows * shape.rowCells;
  std::vector<T> memory(static_cast<std::size_t>(shape.Spectrum() + shape.Worker() * executor.GetConcurrency() + 64),
                        T(0));
  std::vector<T> pixels(static_cast<std::size_t>(block.role[0].length * block.role[1].length * block.role[2].length),
                        T(1));
  const auto     rowOf = [&](std::int64_t row, std::int64_t plane) {
    return pixels.data() + (plane * block.role[1].length + row) * block.role[0].length;
  };
  T * const  spectrum = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) / sizeof(T);
  const auto spaceOf = [&](unsigned int worker) {
    return WorkSpace<T>(spectrum + shape.Spectrum() + worker * shape.Worker(), shape);
  };
  return BestSeconds(5, [&] {
    executor.ParallelFor(z.input, [&](std::int64_t plane, unsigned int worker) {
      planes.Forward(0,
                     block.role[1].input,
                     block.role[0].input,
                     spectrum + plane * columns * Cell,
                     spaceOf(worker),
                     [&](std::int64_t row, T * out) { std::copy_n(rowOf(row, plane), block.role[0].input, out); });
    });
    executor.ParallelFor(shape.rows, [&](std::int64_t row, unsigned int worker) {
      const WorkSpace<T> space = spaceOf(worker);
      for (std::int64_t c = row * shape.rowCells; c < (row + 1) * shape.rowCells; ++c)
      {
        T * const column = spectrum + c * Cell;
        functions.transform(
          planZ, { column, columns }, z.input, { space.first, 1 }, 0, planZ.length, false, space.work);
        functions.transform(
          planZ, { space.first, 1 }, planZ.length, { column, columns }, z.crop, z.crop + z.output, true, space.work);
      }
    });
    executor.ParallelFor(z.output, [&](std::int64_t plane, unsigned int worker) {
      planes.Inverse(0,
                     0,
                     block.role[1].output,
                     spectrum + plane * columns * Cell,
                     spaceOf(worker),
                     [&](std::int64_t row, const T * in) { std::copy_n(in, block.role[0].output, rowOf(row, plane)); });
    });
  });
}

/** Leaves nothing out. */
void
Fill(ConvolutionBlock & block)
{
  for (int r = 0; r < 3; ++r)
  {
    block.role[r].input = block.role[r].output = block.role[r].length;
    block.role[r].crop = 0;
  }
}

/** The points of all lines that are transformed, times the logarithm of their length; of real lines half. */
double
LineWork(const ConvolutionBlock & block)
{
  const auto & x = block.role[0];
  const auto & y = block.role[1];
  const auto & z = block.role[2];
  const auto   half = static_cast<double>(block.HalfRow());
  const auto   line = [](const ConvolutionBlock::Axis & r) {
    return static_cast<double>(r.length) * std::log2(static_cast<double>(r.length));
  };
  const auto rows = static_cast<double>(z.input * y.input + z.output * y.output);
  return rows / 2 * line(x) + half * static_cast<double>(z.input + z.output) * line(y) +
         2 * half * static_cast<double>(y.length) * line(z);
}

void
Pruned(Report & report, unsigned int threads)
{
  const auto executor = MakeThreadExecutor(threads);
  report.Print("transforms there and back, float; of the same length, and of that which the whole convolution takes");
  const auto row = [&](const Coordinates & image, std::int64_t k, bool same) {
    ImageConvolutionOperation operation;
    operation.kernel = MakeKernel({ { k, k, k, 1, 1 } }, 1);
    Box output = Box::FromExtent(image);
    for (int a = 0; a < 3 && !same; ++a)
    {
      output.lower[a] = k / 2;
      output.upper[a] = image[a] - k / 2;
    }
    ConvolutionBlock block(operation, output, image);
    Coordinates      lengths = Coordinates::Filled(1);
    const double     pruned = TimeTransforms(block, *executor);
    double           lines = 1 / LineWork(block);
    Fill(block);
    const double unpruned = TimeTransforms(block, *executor);
    lines *= LineWork(block);
    for (int r = 0; r < 3; ++r)
    {
      lengths[r] = block.role[r].length;
      block.role[r].length = GoodTransformLength(image[block.role[r].axis] + k - 1);
    }
    Fill(block);
    const double      whole = TimeTransforms(block, *executor);
    const std::string kernel = std::to_string(k) + "^3";
    char              note[96];
    std::snprintf(note, sizeof(note), "%s; lines promise %.2f", ToString(lengths).c_str(), lines);
    report.Add("cpu",
               std::string("pruned transforms there and back; ") + (same ? "same, " : "valid, ") + SizeName(image) +
                 " with " + kernel,
               pruned * 1e3,
               "ms",
               { { unpruned * 1e3, "unpruned, same length" }, { whole * 1e3, "of image and kernel together" } },
               {},
               note);
  };
  const Coordinates cube{ { 192, 192, 192, 1, 1 } };
  row(cube, 31, true);
  row({ { 301, 370, 316, 1, 1 } }, 31, true);
  row(cube, 65, true);
  row(cube, 129, true);
  row(cube, 65, false);
}

#if defined(CHUNKWISE_HAS_FFTW)
template <typename T>
struct FftwOf;
template <>
struct FftwOf<float>
{
  static constexpr auto Allocate = fftwf_alloc_real;
  static constexpr auto AllocateComplex = fftwf_alloc_complex;
  static constexpr auto Free = fftwf_free;
  static constexpr auto PlanThere = fftwf_plan_dft_r2c_3d;
  static constexpr auto PlanBack = fftwf_plan_dft_c2r_3d;
  static constexpr auto Run = fftwf_execute;
  static constexpr auto Destroy = fftwf_destroy_plan;
};
template <>
struct FftwOf<double>
{
  static constexpr auto Allocate = fftw_alloc_real;
  static constexpr auto AllocateComplex = fftw_alloc_complex;
  static constexpr auto Free = fftw_free;
  static constexpr auto PlanThere = fftw_plan_dft_r2c_3d;
  static constexpr auto PlanBack = fftw_plan_dft_c2r_3d;
  static constexpr auto Run = fftw_execute;
  static constexpr auto Destroy = fftw_destroy_plan;
};

/** FFTW's own real transforms there and back, by its own threads. Planned by measuring, for 8 seconds each at most. */
template <typename T>
double
TimeFftw(const Coordinates & n)
{
  using Fftw = FftwOf<T>;
  const auto   numbers = static_cast<std::size_t>(n[0] * n[1] * n[2]);
  const auto   frequencies = static_cast<std::size_t>((n[0] / 2 + 1) * n[1] * n[2]);
  T * const    pixels = Fftw::Allocate(numbers);
  auto * const spectrum = Fftw::AllocateComplex(frequencies);
  const auto   extent = [&](int a) { return static_cast<int>(n[a]); };
  const auto   there = Fftw::PlanThere(extent(2), extent(1), extent(0), pixels, spectrum, FFTW_MEASURE);
  const auto   back = Fftw::PlanBack(extent(2), extent(1), extent(0), spectrum, pixels, FFTW_MEASURE);
  std::fill(pixels, pixels + numbers, T(1));
  const double seconds = BestSeconds(5, [&] {
    Fftw::Run(there);
    Fftw::Run(back);
  });
  Fftw::Destroy(there);
  Fftw::Destroy(back);
  Fftw::Free(pixels);
  Fftw::Free(spectrum);
  return seconds;
}

/** Seconds of a whole convolution by a provider's transforms; 0 if it is not there. */
template <typename T>
double
TimeConvolution(const Coordinates & n, TransformProvider provider, Executor & executor)
{
  ImageConvolutionOperation operation;
  operation.kernel = MakeKernel({ { 31, 31, 31, 1, 1 } }, 1);
  operation.method = ConvolutionMethod::FFT;
  operation.transforms = provider;
  try
  {
    const OperationRun<T> run(operation, n, executor);
    run();
    return BestSeconds(5, [&] { run(); });
  }
  catch (const Error &)
  {
    return 0;
  }
}

/** Own transforms beside FFTW's own of all axes, and beside lines of FFTW that our threads run. */
template <typename T>
void
CompareWithFftw(Report & report, unsigned int threads)
{
  const auto        executor = MakeThreadExecutor(threads);
  const std::string library = std::string(fftw_version) + ", " + (threads == 1 ? "1 thread" : "as many threads");
  const std::string end = std::string(" ") + PixelTypeName(PixelTypeOf<T>()) + ", " + std::to_string(threads) +
                          (threads == 1 ? " thread" : " threads");
  for (const Coordinates & n : { Coordinates{ { 216, 216, 216, 1, 1 } },
                                 Coordinates{ { 224, 224, 224, 1, 1 } },
                                 Coordinates{ { 256, 256, 256, 1, 1 } },
                                 Coordinates{ { 360, 400, 360, 1, 1 } } })
  {
    ImageConvolutionOperation operation;
    operation.kernel = MakeKernel({ { 3, 3, 3, 1, 1 } }, 1);
    ConvolutionBlock block(operation, Box::FromExtent(n), n);
    for (int r = 0; r < 3; ++r)
    {
      block.role[r].length = n[r];
    }
    Fill(block);
    const double                                ours = TimeTransforms<T>(block, *executor);
    std::vector<std::pair<double, std::string>> peers = { { TimeFftw<T>(n) * 1e3, library } };
    if (GetFftw())
    {
      block.transforms = TransformProvider::FFTW;
      peers.emplace_back(TimeTransforms<T>(block, *executor) * 1e3, "lines of FFTW, own threads");
    }
    for (const auto & peer : peers)
    {
      report.Add(
        "cpu", "transforms there and back; " + SizeName(n) + end, ours * 1e3, "ms", { { peer.first, peer.second } });
    }
  }
  for (const std::int64_t extent : { 192, 191, 230 })
  {
    const Coordinates n{ { extent, extent, extent, 1, 1 } };
    const double      ours = TimeConvolution<T>(n, TransformProvider::Own, *executor);
    const double      peer = TimeConvolution<T>(n, TransformProvider::FFTW, *executor);
    if (peer > 0)
    {
      report.Add("cpu",
                 "31^3 through transforms; " + SizeName(n) + end,
                 ours * 1e3,
                 "ms",
                 { { peer * 1e3, "lines of FFTW, own threads" } });
    }
  }
}

void
Fftw(Report & report, unsigned int threads)
{
  fftwf_init_threads();
  fftw_init_threads();
  fftwf_set_timelimit(8);
  fftw_set_timelimit(8);
  report.Print(std::string("all transforms there and back, beside ") + fftw_version);
  for (unsigned int count = 1; count <= threads; count *= 2)
  {
    fftwf_plan_with_nthreads(static_cast<int>(count));
    fftw_plan_with_nthreads(static_cast<int>(count));
    CompareWithFftw<float>(report, count);
    CompareWithFftw<double>(report, count);
  }
}
#endif

void
Methods(Report & report, unsigned int threads)
{
  const auto executor = MakeThreadExecutor(threads);
  report.Print("kernels of few weights, float");
  const auto row = [&](const Coordinates & image, const Coordinates & extent) {
    double seconds[2];
    for (const ConvolutionMethod method : { ConvolutionMethod::Direct, ConvolutionMethod::FFT })
    {
      ImageConvolutionOperation operation;
      operation.kernel = MakeKernel(extent, 1);
      operation.method = method;
      seconds[method == ConvolutionMethod::FFT ? 1 : 0] = TimeOperation(operation, image, *executor, 3);
    }
    report.Add("cpu",
               "few weights directly; " + SizeName(extent) + ", " + SizeName(image) + " float32",
               seconds[0] * 1e3,
               "ms",
               { { seconds[1] * 1e3, "through transforms" } });
  };
  for (const std::int64_t k : { 3, 4, 5, 6, 7 })
  {
    row({ { 192, 192, 192, 1, 1 } }, { { k, k, k, 1, 1 } });
  }
  for (const std::int64_t k : { 5, 7, 9, 11, 13, 15 })
  {
    row({ { 2048, 2048, 1, 1, 1 } }, { { k, k, 1, 1, 1 } });
  }
  for (const std::int64_t k : { 15, 31, 63, 127 })
  {
    row({ { 192, 192, 192, 1, 1 } }, { { k, 1, 1, 1, 1 } });
  }
}

} // namespace

int
main(int argc, char * argv[])
{
  Report       report(argc, argv);
  unsigned int threads = MakeThreadExecutor()->GetConcurrency();
  bool         any = false;
  for (int i = 1; i < argc; ++i)
  {
    threads = std::atoi(argv[i]) > 0 ? static_cast<unsigned int>(std::atoi(argv[i])) : threads;
    any = any || std::atoi(argv[i]) <= 0;
  }
  report.SetHost(threads);
  const auto wants = [&](const char * part) {
    bool wanted = !any;
    for (int i = 1; i < argc; ++i)
    {
      wanted = wanted || std::strcmp(argv[i], part) == 0;
    }
    return wanted;
  };
  if (wants("machine"))
  {
    Machine(report, threads);
  }
  if (wants("varying"))
  {
    Varying(report, threads);
  }
  if (wants("pruned"))
  {
    Pruned(report, threads);
  }
#if defined(CHUNKWISE_HAS_FFTW)
  if (wants("fftw"))
  {
    Fftw(report, threads);
  }
#endif
  if (wants("methods"))
  {
    Methods(report, threads);
  }
  return 0;
}
