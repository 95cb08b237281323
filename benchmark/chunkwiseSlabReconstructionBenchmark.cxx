/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times reconstructions from file to file under a budget of host memory, beside reading the file twice and writing it
// once, and a copy by all threads. Arguments, all optional: folder for the files (.), extent of a plane (1024), planes
// (2048), bytes of a voxel (1 or 2), MiB of memory (512), passes that smooth the noise (6), backend (cpu, auto), 1 to
// compare with a run in memory (0), the only filter to time (all), threads (as many as there are).
#include "chunkwiseError.h"
#include "chunkwiseFilters.h"
#include "chunkwiseHostMemory.h"
#include "chunkwiseReconstructionImages.h"
#include "chunkwiseReconstructionOperation.h"
#include "chunkwiseSlabReconstruction.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace chunkwise;

namespace
{

double
Now()
{
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/** A file of voxels and nothing else. Boxes are whole planes. */
class RawFile
  : public ImageSource
  , public ImageSink
{
public:
  RawFile(const std::string & name, const Coordinates & extent, PixelType kind, bool isNew)
    : m_Extent(extent)
    , m_Kind(kind)
    , m_File(::open(name.c_str(), isNew ? O_RDWR | O_CREAT | O_TRUNC : O_RDWR, 0600))
  {
    if (m_File < 0)
    {
      throw Error(name + ": " + std::strerror(errno));
    }
  }
  ~RawFile() override { ::close(m_File); }
  Coordinates
  GetExtent() const override
  {
    return m_Extent;
  }
  PixelType
  GetKind() const override
  {
    return m_Kind;
  }
  ImageAccess
  GetAccess() const override
  {
    return ImageAccess();
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    Move(box, view, [this](char * data, std::size_t bytes, off_t at) { return ::pread(m_File, data, bytes, at); });
  }
  void
  Write(const Box & box, const BufferView & view) override
  {
    Move(box, view, [this](char * data, std::size_t bytes, off_t at) { return ::pwrite(m_File, data, bytes, at); });
  }
  void
  Finish() override
  {}

private:
  template <typename TCall>
  void
  Move(const Box & box, const BufferView & view, TCall && call) const
  {
    const std::size_t plane = static_cast<std::size_t>(m_Extent[0] * m_Extent[1]) * PixelSize(m_Kind);
    auto              at = static_cast<off_t>(static_cast<std::size_t>(box.lower[2]) * plane);
    char *            data = static_cast<char *>(view.data) + view.Offset(box.lower) * PixelSize(m_Kind);
    for (std::size_t left = static_cast<std::size_t>(box.Extent(2)) * plane; left > 0;)
    {
      const ssize_t count = call(data, std::min<std::size_t>(left, 1 << 30), at);
      if (count <= 0)
      {
        throw Error(std::string("file: ") + std::strerror(count < 0 ? errno : ENOSPC));
      }
      data += count;
      at += count;
      left -= static_cast<std::size_t>(count);
    }
  }

  const Coordinates m_Extent;
  const PixelType   m_Kind;
  const int         m_File;
};

Box
Planes(const Coordinates & extent, std::int64_t first, std::int64_t count)
{
  Box box = Box::FromExtent(extent);
  box.lower[2] = first;
  box.upper[2] = std::min(first + count, extent[2]);
  return box;
}

/** Copies of a block of noise, each brighter or darker than the others, so that no two slabs are alike. */
template <typename T>
void
WriteImage(RawFile & file, const Coordinates & extent, int passes, Executor & executor)
{
  const std::int64_t   n = 128;
  const std::vector<T> block = Noise<T>(Box::FromExtent({ { n, n, n, 1, 1 } }), passes, sizeof(T) == 1 ? 200 : 50000);
  executor.ParallelFor(extent[2], [&](std::int64_t z, unsigned int) {
    std::vector<T> planes(static_cast<std::size_t>(extent[0] * extent[1]));
    const auto     mirror = [n](std::int64_t i) { return i / n % 2 ? n - 1 - i % n : i % n; };
    for (std::int64_t y = 0; y < extent[1]; ++y)
    {
      for (std::int64_t x = 0; x < extent[0]; ++x)
      {
        const auto shift = (x / n * 7 + y / n * 13 + z / n * 5) % 40;
        planes[static_cast<std::size_t>(y * extent[0] + x)] =
          static_cast<T>(block[static_cast<std::size_t>((mirror(z) * n + mirror(y)) * n + mirror(x))] + shift);
      }
    }
    const Box box = Planes(extent, z, 1);
    file.Write(box, DenseView(planes.data(), file.GetKind(), box));
  });
}

/** Seconds of copying a file, some planes at a time. */
template <typename T>
double
TimeCopy(RawFile & source, const std::string & to, Executor & executor)
{
  const std::int64_t planes = 4;
  const Coordinates  extent = source.GetExtent();
  const double       begin = Now();
  RawFile            sink(to, extent, source.GetKind(), true);
  executor.ParallelFor((extent[2] + planes - 1) / planes, [&](std::int64_t i, unsigned int) {
    std::vector<T>   voxels(static_cast<std::size_t>(extent[0] * extent[1] * planes));
    const Box        box = Planes(extent, i * planes, planes);
    const BufferView view = DenseView(voxels.data(), source.GetKind(), box);
    source.Read(box, view);
    sink.Write(box, view);
  });
  return Now() - begin;
}

template <typename T>
int
RunAll(int argc, char ** argv)
{
  const auto         text = [&](int i, const char * otherwise) { return std::string(argc > i ? argv[i] : otherwise); };
  const auto         number = [&](int i, const char * otherwise) { return std::atoll(text(i, otherwise).c_str()); };
  const std::string  folder = text(1, ".");
  const std::int64_t n = number(2, "1024");
  const Coordinates  extent = { { n, n, number(3, "2048"), 1, 1 } };
  const PixelType    kind = PixelTypeOf<T>();
  const double       gibibytes = static_cast<double>(n * n * extent[2]) * sizeof(T) / (1 << 30);
  const std::string  from = folder + "/slabs-in.raw";
  const std::string  to = folder + "/slabs-out.raw";
  const std::int64_t mebibytes = number(5, "512");
  const bool         compares = number(8, "0") != 0;
  const auto         threads = MakeThreadExecutor(static_cast<unsigned int>(number(10, "0")));
  {
    RawFile file(from, extent, kind, true);
    WriteImage<T>(file, extent, static_cast<int>(number(6, "6")), *threads);
  }
  std::printf("%s of %s, %.2f GiB, budget %lld MiB, noise smoothed %lld times\n",
              ToString(extent).c_str(),
              PixelTypeName(kind),
              gibibytes,
              static_cast<long long>(mebibytes),
              static_cast<long long>(number(6, "6")));
  RawFile source(from, extent, kind, false);
  // Twice there, once back, by one thread each, at the same time as far as it goes.
  double limit = 0;
  {
    std::vector<T> planes(static_cast<std::size_t>(n * n * 16));
    const double   begin = Now();
    RawFile        sink(to, extent, kind, true);
    for (int pass = 0; pass < 2; ++pass)
    {
      for (std::int64_t z = 0; z < extent[2]; z += 16)
      {
        const Box        box = Planes(extent, z, 16);
        const BufferView view = DenseView(planes.data(), kind, box);
        source.Read(box, view);
        if (pass == 1)
        {
          sink.Write(box, view);
        }
      }
    }
    limit = Now() - begin;
  }
  const double copy = TimeCopy<T>(source, to, *threads);
  std::printf("read twice and written once by one thread: %.2f s; a copy by %u threads: %.2f s\n",
              limit,
              threads->GetConcurrency(),
              copy);
  for (const char * name : { "h-maxima", "fill-holes", "regional-maxima" })
  {
    if (argc > 9 && text(9, "") != name)
    {
      continue;
    }
    FilterParameters parameters;
    if (std::strcmp(name, "h-maxima") == 0)
    {
      parameters.Set("Height", PixelValue(sizeof(T) == 1 ? 10 : 2500));
    }
    FilterImage image;
    image.extent = extent;
    image.inputKind = image.outputKind = kind;
    SlabRequest request;
    request.operation = MakeFilterOperation(name, parameters, image);
    RawFile sink(to, extent, kind, true);
    request.sources = { std::shared_ptr<ImageSource>(std::shared_ptr<void>(), &source) };
    request.sink = std::shared_ptr<ImageSink>(std::shared_ptr<void>(), &sink);
    request.hostBytes = static_cast<std::uint64_t>(mebibytes) << 20;
    request.spoolFolder = folder;
    request.executor = threads.get();
    request.fileThreads = std::clamp(threads->GetConcurrency() / 2, 1u, 8u);
    request.backend = text(7, "cpu") == "cpu" ? BackendChoice::CPU : BackendChoice::Auto;
    const double     begin = Now();
    const SlabReport report = ReconstructInSlabs(Manager::GetGlobal(), request);
    const double     seconds = Now() - begin;
    std::printf("%s on %s: %.2f s, %.2f times, %.2f times the copy; %lld slabs of %lld planes; flooding %.2f, letting "
                "in %.2f, contracting "
                "%.2f, packing %.2f, finishing %.2f, waiting %.2f s; reading %.2f, writing %.2f s; read %.2f, written "
                "%.2f, spool %.3f times the "
                "image; peak %.0f MiB, "
                "resident %.0f MiB\n",
                name,
                report.execution.backend.c_str(),
                seconds,
                seconds / limit,
                seconds / copy,
                static_cast<long long>(report.slabs),
                static_cast<long long>(report.planesOfSlab),
                report.flooding,
                report.flowing,
                report.contracting,
                report.packing,
                report.finishing,
                report.waiting,
                report.reading,
                report.writing,
                static_cast<double>(report.bytesRead) / (gibibytes * (1 << 30)),
                static_cast<double>(report.bytesWritten) / (gibibytes * (1 << 30)),
                static_cast<double>(report.spoolWritten) / (gibibytes * (1 << 30)),
                static_cast<double>(report.peakHost) / (1 << 20),
                static_cast<double>(GetPeakHostMemory()) / (1 << 20));
    std::fflush(stdout);
    if (compares)
    {
      const Box        box = Box::FromExtent(extent);
      const auto       voxels = static_cast<std::size_t>(box.NumberOfVoxels());
      std::vector<T>   mask(voxels);
      std::vector<T>   expected(voxels);
      ExecutionRequest whole;
      source.Read(box, DenseView(mask.data(), kind, box));
      whole.operation = request.operation;
      whole.image = whole.region = box;
      whole.inputs = { DenseView(mask.data(), kind, box) };
      whole.output = DenseView(expected.data(), kind, box);
      whole.backend = BackendChoice::CPU;
      const double start = Now();
      Manager::GetGlobal().Execute(whole);
      std::printf("  in memory, without reading and writing: %.2f s", Now() - start);
      Manager::GetGlobal().ReleaseMemory();
      sink.Read(box, DenseView(mask.data(), kind, box));
      const bool same = std::memcmp(mask.data(), expected.data(), voxels * sizeof(T)) == 0;
      std::printf("; the same bits: %s\n", same ? "yes" : "NO");
      std::fflush(stdout);
      if (!same)
      {
        return EXIT_FAILURE;
      }
    }
  }
  ::unlink(from.c_str());
  ::unlink(to.c_str());
  return EXIT_SUCCESS;
}

} // namespace

int
main(int argc, char ** argv)
{
  try
  {
    return argc > 4 && std::atoi(argv[4]) == 2 ? RunAll<std::uint16_t>(argc, argv) : RunAll<std::uint8_t>(argc, argv);
  }
  catch (const std::exception & error)
  {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}
