/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseBenchmarkReport_h
#define chunkwiseBenchmarkReport_h

#include "chunkwiseDevice.h"
#include "chunkwiseExecutor.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

// Functions that benchmarks share: how they take times, call a kernel for a whole image, and report their figures.
namespace chunkwise
{

inline double
Now()
{
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/** Seconds of each of several runs. */
template <typename TBody>
std::vector<double>
SortedSeconds(int repeats, TBody && body)
{
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i)
  {
    const double begin = Now();
    body();
    times.push_back(Now() - begin);
  }
  std::sort(times.begin(), times.end());
  return times;
}

/** The median of several runs, of two the longer. */
template <typename TBody>
double
MedianSeconds(int repeats, TBody && body)
{
  const std::vector<double> times = SortedSeconds(repeats, body);
  return times[times.size() / 2];
}

/** The same after a run for caches and memory; what takes long is run only that once. */
template <typename TBody>
double
WarmMedianSeconds(int repeats, TBody && body)
{
  const double first = MedianSeconds(1, body);
  return first > 0.5 ? first : MedianSeconds(repeats, body);
}

/** The best of several runs: what others do on the machine only adds. */
template <typename TBody>
double
BestSeconds(int repeats, TBody && body)
{
  return SortedSeconds(repeats, body)[0];
}

/** Seconds of one of the launches that `body` enqueues on `stream`: ten between two synchronizations, one of what takes
 * long. */
template <typename TBody>
double
LaunchSeconds(Device & device, StreamHandle stream, TBody && body)
{
  const auto launch = [&](int times) {
    for (int i = 0; i < times; ++i)
    {
      body();
    }
    device.Synchronize(stream);
  };
  const bool isLong = WarmMedianSeconds(1, [&] { launch(1); }) > 0.02;
  const int  times = isLong ? 1 : 10;
  return WarmMedianSeconds(isLong ? 3 : 7, [&] { launch(times); }) / times;
}

/** Calls body(begin, end, part) for as many equal parts of [0, count) as the executor has threads. */
template <typename TBody>
void
InParts(Executor & executor, std::size_t count, TBody && body)
{
  const std::size_t parts = executor.GetConcurrency();
  executor.ParallelFor(static_cast<std::int64_t>(parts), [&](std::int64_t i, unsigned int) {
    const auto part = static_cast<std::size_t>(i);
    body(count * part / parts, count * (part + 1) / parts, part);
  });
}

/** Copies within the host's memory by all threads: what reading and writing so many bytes costs at least. */
inline void
CopyInParts(Executor & executor, void * to, const void * from, std::size_t bytes)
{
  InParts(executor, bytes, [=](std::size_t begin, std::size_t end, std::size_t) {
    std::memcpy(static_cast<char *>(to) + begin, static_cast<const char *>(from) + begin, end - begin);
  });
}

/** A kernel of the registry and its call for the whole image that `output` holds. The caller adds scratch, of
 * call.scratchBytes, and where it runs. */
class WholeImageCall
{
public:
  WholeImageCall(const KernelRegistry & kernels, const Operation & operation, const std::vector<BufferView> & inputs,
                 const BufferView & output, unsigned int concurrency = 1, KernelRole role = &KernelSet::compute)
    : kernel(kernels.Get(operation.GetName(), "a benchmark", role))
  {
    ChunkShape shape;
    shape.inputBox = shape.outputBox = shape.image = output.box;
    shape.outputKind = output.kind;
    shape.concurrency = static_cast<int>(concurrency);
    shape.kernels = &kernels;
    call.kernels = &kernels;
    for (const BufferView & input : inputs)
    {
      shape.inputKinds[shape.numberOfInputs++] = input.kind;
      call.inputs[call.numberOfInputs++] = input;
    }
    call.operation = &operation;
    call.output = output;
    call.writable = call.image = output.box;
    call.scratchBytes = kernel.scratchBytes ? kernel.scratchBytes(operation, shape) : 0;
  }
  const Kernel & kernel;
  KernelCall     call;
};

/** The same on the host, ready to run. */
class HostRun : public WholeImageCall
{
public:
  HostRun(const Operation & operation, const std::vector<BufferView> & inputs, const BufferView & output,
          Executor & executor)
    : WholeImageCall(GetHostKernels(), operation, inputs, output, executor.GetConcurrency())
    , m_Scratch(call.scratchBytes + Alignment)
  {
    call.scratch = m_Scratch.data() + (Alignment - reinterpret_cast<std::uintptr_t>(m_Scratch.data()) % Alignment);
    call.executor = &executor;
  }
  HostRun(const HostRun &) = delete;
  HostRun &
  operator=(const HostRun &) = delete;

  void
  operator()() const
  {
    kernel.run(call);
  }

private:
  static constexpr std::size_t Alignment = 256;
  std::vector<char>            m_Scratch;
};

/** "512^3", "2048 x 1024" */
inline std::string
SizeName(const Coordinates & extent)
{
  std::string all;
  int         axes = 0;
  bool        isCube = true;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (extent[a] > 1 || a == 0)
    {
      all += (a > 0 ? " x " : "") + std::to_string(extent[a]);
      isCube = isCube && extent[a] == extent[0];
      ++axes;
    }
  }
  return isCube && axes > 1 ? std::to_string(extent[0]) + "^" + std::to_string(axes) : all;
}

/** "what; sizes", where `what` may end with a part of the sizes. */
inline std::string
RowName(const std::string & what, const std::string & sizes)
{
  return what + (what.find("; ") == std::string::npos ? "; " : ", ") + sizes;
}

/** "ch2" of "/some/where/ch2.nii.gz" */
inline std::string
StemOf(const std::string & path)
{
  const std::string name = path.substr(path.find_last_of('/') + 1);
  return name.substr(0, name.find('.'));
}

/** Something to compare a figure with, in its unit; 0: not measured. */
struct Reference
{
  double      value{ 0 };
  std::string name;
};

/** Prints figures as text, and with the argument "--csv FILE" writes them in the columns of benchmark/results.
 *
 * A row's name is "what is computed; sizes and kind". "--device", "--date" and "--commit", or else the environment's
 * CHUNKWISE_BENCHMARK_DEVICE, _DATE and _COMMIT, say what the program cannot know; the date is otherwise today's. */
class Report
{
public:
  /** Takes its own arguments away. */
  Report(int & argc, char ** argv)
    : m_DeviceOverride(Environment("CHUNKWISE_BENCHMARK_DEVICE"))
    , m_Date(Environment("CHUNKWISE_BENCHMARK_DATE"))
    , m_Commit(Environment("CHUNKWISE_BENCHMARK_COMMIT"))
  {
    std::string path;
    int         kept = 1;
    for (int i = 1; i < argc; ++i)
    {
      const std::string   argument = argv[i];
      std::string * const value = argument == "--csv"      ? &path
                                  : argument == "--device" ? &m_DeviceOverride
                                  : argument == "--date"   ? &m_Date
                                  : argument == "--commit" ? &m_Commit
                                                           : nullptr;
      if (!value)
      {
        argv[kept++] = argv[i];
      }
      else if (i + 1 == argc)
      {
        Fail(argument + " needs a value");
      }
      else
      {
        *value = argv[++i];
      }
    }
    argc = kept;
    argv[argc] = nullptr;
    if (m_Date.empty())
    {
      const std::time_t now = std::time(nullptr);
      char              text[16];
      std::strftime(text, sizeof(text), "%Y-%m-%d", std::gmtime(&now));
      m_Date = text;
    }
    if (!path.empty())
    {
      m_Csv = std::fopen(path.c_str(), "w");
      if (!m_Csv)
      {
        Fail("cannot write " + path);
      }
      std::fputs("device,date,commit,capability,row,ours,unit,peer,peer_name,limit,limit_name,target\n", m_Csv);
      std::fflush(m_Csv);
    }
  }
  ~Report()
  {
    if (m_Csv)
    {
      std::fclose(m_Csv);
    }
  }
  Report(const Report &) = delete;
  Report &
  operator=(const Report &) = delete;

  /** The device of the rows that follow. */
  void
  SetDevice(const std::string & name)
  {
    m_Device = m_DeviceOverride.empty() ? name : m_DeviceOverride;
  }
  /** The CPU with so many threads. */
  void
  SetHost(unsigned int threads)
  {
    SetDevice("CPU, " + std::to_string(threads) + (threads > 1 ? " threads" : " thread"));
  }

  /** A line of text between rows. */
  void
  Print(const std::string & text) const
  {
    std::printf("\n%s: %s\n", m_Device.c_str(), text.c_str());
    std::fflush(stdout);
  }

  /** `note` is for readers alone. */
  void
  Add(const char * capability, const std::string & row, double ours, const char * unit,
      const std::vector<Reference> & peers = {}, const Reference & limit = {}, const std::string & note = {})
  {
    std::printf("%-68s %10.4g %-5s", row.c_str(), ours, unit);
    if (limit.value > 0)
    {
      std::printf("  %7.2f x %s (%.4g)", ours / limit.value, limit.name.c_str(), limit.value);
    }
    bool hasPeer = false;
    for (const Reference & peer : peers)
    {
      if (peer.value > 0)
      {
        std::printf("  peer/ours %.3g: %s (%.4g)", peer.value / ours, peer.name.c_str(), peer.value);
        Write(capability, row, ours, unit, peer, limit);
        hasPeer = true;
      }
    }
    if (!hasPeer)
    {
      Write(capability, row, ours, unit, {}, limit);
    }
    std::printf("%s%s\n", note.empty() ? "" : "  ", note.c_str());
    std::fflush(stdout);
  }

private:
  static std::string
  Environment(const char * name)
  {
    const char * const value = std::getenv(name);
    return value ? value : "";
  }
  [[noreturn]] static void
  Fail(const std::string & message)
  {
    std::fprintf(stderr, "%s\n", message.c_str());
    std::exit(2);
  }
  static std::string
  Quoted(const std::string & text)
  {
    if (text.find_first_of(",\"") == std::string::npos)
    {
      return text;
    }
    std::string quoted = "\"";
    for (const char c : text)
    {
      quoted += c == '"' ? "\"\"" : std::string(1, c);
    }
    return quoted + "\"";
  }
  static std::string
  Number(double value)
  {
    char text[32];
    std::snprintf(text, sizeof(text), value < 1e4 ? "%.4g" : "%.0f", value);
    return value > 0 ? text : "";
  }
  void
  Write(const char * capability, const std::string & row, double ours, const char * unit, const Reference & peer,
        const Reference & limit)
  {
    if (m_Csv)
    {
      const std::string fields[] = { m_Device,
                                     m_Date,
                                     m_Commit,
                                     capability,
                                     row,
                                     Number(ours),
                                     unit,
                                     Number(peer.value),
                                     peer.value > 0 ? peer.name : "",
                                     Number(limit.value),
                                     limit.value > 0 ? limit.name : "" };
      for (const std::string & field : fields)
      {
        std::fprintf(m_Csv, "%s,", Quoted(field).c_str()); // the last column, the target, stays empty
      }
      std::fputs("\n", m_Csv);
      std::fflush(m_Csv);
    }
  }

  std::string m_DeviceOverride;
  std::string m_Date;
  std::string m_Commit;
  std::string m_Device;
  std::FILE * m_Csv{ nullptr };
};

} // namespace chunkwise

#endif
