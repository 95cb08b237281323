/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times morphological reconstruction of images of uint8 that are larger than what may be used of a device's memory,
// host to host, beside a copy, which moves the image in once and out once. Arguments, all optional: extent of the plane
// (51200), MiB of memory on each device (2048), extent of the spiral (4096; 0: none), MiB for it (4), repetitions (3),
// 0 to leave the CPU out, which gives the results to compare with, and whether devices hold the image together (0: as
// planned, 1: never, 2: always). And --csv FILE.
#include "chunkwiseBenchmarkReport.h"
#include "chunkwiseManager.h"
#include "chunkwiseOperations.h"
#include "chunkwiseReconstructionImages.h"
#include "chunkwiseReconstructionOperation.h"

#include <cstdio>
#include <cstdlib>

using namespace chunkwise;

namespace
{

/** Notes when chunks have come to their fixed points. */
class Clock : public Monitor
{
public:
  void
  UpdateProgress(double fraction) override
  {
    if (fraction < 1 && fraction > 0.9985)
    {
      parts = Now() - begin;
    }
  }
  bool
  ShouldAbort() override
  {
    return false;
  }
  const double begin{ Now() };
  double       parts{ 0 };
};

/** Runs of one image on the CPU, if that is asked for, and on one device and two. */
class Runs
{
public:
  Runs(Report & report, std::vector<std::uint8_t> & mask, const Box & box, std::int64_t deviceMebibytes,
       int repetitions, ImageDivision division)
    : m_Report(report)
    , m_Budget(", host to host, " +
               (deviceMebibytes % 1024 == 0 ? std::to_string(deviceMebibytes / 1024) + " GiB"
                                            : std::to_string(deviceMebibytes) + " MiB") +
               " a device")
    , m_Case("; " + SizeName(box.Extents()) + " uint8")
    , m_Executor(MakeThreadExecutor())
    , m_Result(mask.size())
    , m_Repetitions(repetitions)
  {
    m_Request.image = m_Request.region = box;
    m_Request.inputs.push_back(DenseView(mask.data(), PixelType::UInt8, box));
    m_Request.output = DenseView(m_Result.data(), PixelType::UInt8, box);
    m_Request.executor = m_Executor.get();
    m_Request.budgets.device = static_cast<std::size_t>(deviceMebibytes) << 20;
    m_Request.division = division;
  }
  void
  SetMarker(std::vector<std::uint8_t> & marker)
  {
    m_Request.inputs.insert(m_Request.inputs.begin(), DenseView(marker.data(), PixelType::UInt8, m_Request.image));
  }
  /** Returns the milliseconds of one device. */
  double
  Run(const std::string & name, std::shared_ptr<const Operation> operation, bool onHost, const Reference & limit = {})
  {
    m_Request.operation = std::move(operation);
    bool      isKnown = false;
    Reference cpu;
    if (onHost)
    {
      m_Request.backend = BackendChoice::CPU;
      cpu.value = 1e3 * MedianSeconds(1, [&] { Manager::GetGlobal().Execute(m_Request); });
      cpu.name = "ours on the CPU, " + std::to_string(m_Executor->GetConcurrency()) + " threads";
      m_Expected = m_Result;
      isKnown = true;
    }
    m_Request.backend = BackendChoice::CUDA;
    const auto devices = Manager::GetGlobal().GetDevices();
    double     one = 0;
    for (int used = 1; used <= static_cast<int>(std::min<std::size_t>(devices.size(), 2)); ++used)
    {
      m_Request.devices.assign(1, 0);
      if (used > 1)
      {
        m_Request.devices.push_back(1);
      }
      double          seconds = 0;
      double          parts = 0;
      ExecutionReport report;
      bool            differs = false;
      for (int i = 0; i < m_Repetitions; ++i)
      {
        Clock clock;
        report = Manager::GetGlobal().Execute(m_Request, &clock);
        const double now = Now() - clock.begin;
        parts = i == 0 || now < seconds ? clock.parts : parts;
        seconds = i == 0 ? now : std::min(seconds, now);
        differs = differs || (isKnown && m_Result != m_Expected);
        if (seconds > 5)
        {
          break;
        }
      }
      const std::string note =
        std::to_string(report.plan.chunks.size()) + " chunks, at most " + std::to_string(report.peakDevice >> 20) +
        " MiB of a device, " + std::to_string(report.revisits) + " visits, expected " +
        std::to_string(report.plan.seconds * 1e3) + " ms" + (differs ? "  DIFFERS FROM THE CPU" : "");
      const std::string device = devices[0]->GetDescription().name;
      if (used == 1)
      {
        one = 1e3 * seconds;
        m_Report.SetDevice(device);
        Add(name, "", one, "ms", { cpu }, limit, note);
        Add(name, ", until the chunks' own fixed points", 1e3 * parts, "ms");
        Add(name, ", visits", static_cast<double>(report.revisits), "1");
        Add(name,
            ", voxels visited",
            100.0 * static_cast<double>(report.revisitedVoxels) / static_cast<double>(m_Request.image.NumberOfVoxels()),
            "%");
        Add(name, ", into the device", report.bytesToDevice * 1e-9, "GB");
        Add(name, ", out of the device", report.bytesToHost * 1e-9, "GB");
      }
      else
      {
        m_Report.SetDevice("2 x " + device);
        m_Report.Add("reconstruction",
                     "two devices; " + name + ", " + m_Case.substr(2) + m_Budget,
                     1e3 * seconds,
                     "ms",
                     { { one, "one device" } },
                     {},
                     note);
      }
    }
    return one;
  }

private:
  void
  Add(const std::string & name, const std::string & part, double value, const char * unit,
      const std::vector<Reference> & peers = {}, const Reference & limit = {}, const std::string & note = {})
  {
    if (value > 0)
    {
      m_Report.Add("reconstruction", name + m_Budget + part + m_Case, value, unit, peers, limit, note);
    }
  }

  Report &                  m_Report;
  const std::string         m_Budget;
  const std::string         m_Case;
  std::unique_ptr<Executor> m_Executor;
  std::vector<std::uint8_t> m_Result;
  std::vector<std::uint8_t> m_Expected;
  ExecutionRequest          m_Request;
  const int                 m_Repetitions;
};

/** Mirrored copies of smoothed noise. */
std::vector<std::uint8_t>
LargeNoise(std::int64_t extent)
{
  const std::int64_t              n = std::min<std::int64_t>(extent, 6400);
  const std::vector<std::uint8_t> part = Noise<std::uint8_t>(Box::FromExtent({ { n, n, 1, 1, 1 } }), 4, 255);
  std::vector<std::uint8_t>       image(static_cast<std::size_t>(extent * extent));
  const auto                      mirrored = [n](std::int64_t i) { return i / n % 2 ? n - 1 - i % n : i % n; };
  MakeThreadExecutor()->ParallelFor(extent, [&](std::int64_t y, unsigned int) {
    for (std::int64_t x = 0; x < extent; ++x)
    {
      image[static_cast<std::size_t>(y * extent + x)] = part[static_cast<std::size_t>(mirrored(y) * n + mirrored(x))];
    }
  });
  return image;
}

} // namespace

int
main(int argc, char ** argv)
{
  Report     report(argc, argv);
  const auto argument = [&](int i, long long otherwise) {
    return static_cast<std::int64_t>(argc > i ? std::atoll(argv[i]) : otherwise);
  };
  const std::int64_t extent = argument(1, 51200);
  const std::int64_t spiral = argument(3, 4096);
  const int          repetitions = static_cast<int>(argument(5, 3));
  const bool         onHost = argument(6, 1) != 0;
  const auto         division = static_cast<ImageDivision>(argument(7, 0));
  if (extent > 0)
  {
    const Box                 box = Box::FromExtent({ { extent, extent, 1, 1, 1 } });
    std::vector<std::uint8_t> mask = LargeNoise(extent);
    Runs                      runs(report, mask, box, argument(2, 2048), repetitions, division);
    const Reference copy{ runs.Run("a copy", std::make_shared<IdentityOperation>(), false), "a copy, host to host" };
    const auto      operation = std::make_shared<ReconstructionOperation>();
    operation->marker = ReconstructionMarker::Shifted;
    operation->height = 20;
    runs.Run("h-maxima of 20, 4 neighbours", operation, onHost, copy);
    operation->result = ReconstructionResult::Residue;
    runs.Run("h-convex of 20, 4 neighbours", operation, false, copy);
    operation->result = ReconstructionResult::Reconstruction;
    operation->marker = ReconstructionMarker::Border;
    operation->erosion = true;
    runs.Run("fill holes, 4 neighbours", operation, onHost, copy);
  }
  if (spiral > 0)
  {
    const Box                 box = Box::FromExtent({ { spiral, spiral, 1, 1, 1 } });
    std::vector<std::uint8_t> mask = Spiral<std::uint8_t>(box);
    std::vector<std::uint8_t> marker(mask.size(), 0);
    marker[0] = 200;
    Runs runs(report, mask, box, argument(4, 4), repetitions, division);
    runs.SetMarker(marker);
    runs.Run("spiral one voxel wide", std::make_shared<ReconstructionOperation>(), onHost);
  }
  Manager::GetGlobal().ReleaseMemory();
  return 0;
}
