/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times morphological reconstruction on images of several kinds: on the CPU beside ITK's filter, on a CUDA device
// against the device's own copy of the image. Arguments, all optional: threads, extent of the 2-D images, of the 3-D
// images, 0 to leave ITK out, a file with a volume of 8 bits to take instead or "-", and any number of pairs: heaps and
// voxels of a node to compare for heap clusters. And --csv FILE.
#include "chunkwiseBenchmarkReport.h"
#include "chunkwiseManager.h"
#include "chunkwiseOperations.h"
#include "chunkwiseReconstructionImages.h"
#include "chunkwiseReconstructionOperation.h"

#include "itkImage.h"
#include "itkImageFileReader.h"
#include "itkReconstructionByDilationImageFilter.h"
#include "itkReconstructionByErosionImageFilter.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace chunkwise;

namespace
{

struct HeapChoice
{
  int heaps;
  int nodeItems;
};
/** Given by the arguments: to be compared with the ones that are chosen otherwise. */
std::vector<HeapChoice> Choices;

template <typename T, unsigned int VDimension>
struct Case
{
  std::string                              name;
  std::string                              texture; ///< of the image
  std::shared_ptr<ReconstructionOperation> operation{ std::make_shared<ReconstructionOperation>() };
  Box                                      box{};
  std::vector<T>                           marker;
  std::vector<T>                           mask;
};

template <typename T, unsigned int VDimension>
double
TimeItk(Case<T, VDimension> & c, const std::vector<T> & expected)
{
  using Image = itk::Image<T, VDimension>;
  const auto make = [&](std::vector<T> & pixels) {
    const auto               image = Image::New();
    typename Image::SizeType size;
    for (unsigned int a = 0; a < VDimension; ++a)
    {
      size[a] = static_cast<itk::SizeValueType>(c.box.Extent(static_cast<int>(a)));
    }
    image->SetRegions(size);
    image->GetPixelContainer()->SetImportPointer(pixels.data(), pixels.size(), false);
    return image;
  };
  // ITK takes the marker that ours makes by itself.
  std::vector<T> marker = c.marker;
  if (marker.empty())
  {
    marker = c.mask;
    const T     h = c.operation->height.template As<T>();
    std::size_t i = 0;
    for (T & value : marker)
    {
      if (c.operation->marker == ReconstructionMarker::Shifted)
      {
        value = value > h ? static_cast<T>(value - h) : T{ 0 };
      }
      else
      {
        std::size_t rest = i++;
        bool        edge = false;
        for (unsigned int a = 0; a < VDimension; ++a)
        {
          const auto n = static_cast<std::size_t>(c.box.Extent(static_cast<int>(a)));
          edge = edge || rest % n == 0 || rest % n == n - 1;
          rest /= n;
        }
        value = edge ? value : std::numeric_limits<T>::max();
      }
    }
  }
  const auto run = [&](auto filter) {
    const auto markerImage = make(marker);
    const auto maskImage = make(c.mask);
    filter->SetMarkerImage(markerImage);
    filter->SetMaskImage(maskImage);
    filter->SetFullyConnected(c.operation->fullyConnected);
    const double begin = Now();
    filter->Update();
    const double seconds = Now() - begin;
    if (std::memcmp(filter->GetOutput()->GetBufferPointer(), expected.data(), expected.size() * sizeof(T)) != 0)
    {
      std::printf("  (ITK's result differs)\n");
    }
    return seconds;
  };
  return c.operation->erosion ? run(itk::ReconstructionByErosionImageFilter<Image, Image>::New())
                              : run(itk::ReconstructionByDilationImageFilter<Image, Image>::New());
}

template <typename T>
double
TimeDevice(Device & device, const ReconstructionOperation & operation, const Box & box, const std::vector<T> & marker,
           const std::vector<T> & mask, std::vector<T> & result, double & copySeconds)
{
  const StreamHandle  stream = device.CreateStream();
  const std::size_t   bytes = mask.size() * sizeof(T);
  std::vector<void *> memory;
  const auto          allocate = [&](std::size_t size) {
    memory.push_back(device.Allocate(std::max<std::size_t>(size, 256)));
    return memory.back();
  };
  KernelCall call;
  call.operation = &operation;
  call.image = call.writable = box;
  for (const std::vector<T> * image : { &marker, &mask })
  {
    if (!image->empty())
    {
      void * const to = allocate(bytes);
      device.CopyToDevice(to, image->data(), bytes, stream);
      call.inputs[call.numberOfInputs++] = DenseView(to, PixelTypeOf<T>(), box);
    }
  }
  call.output = DenseView(allocate(bytes), PixelTypeOf<T>(), box);
  call.changedSides = static_cast<std::uint32_t *>(allocate(sizeof(std::uint32_t)));
  device.SetToZero(call.changedSides, sizeof(std::uint32_t), stream);
  ChunkShape shape;
  shape.inputBox = shape.outputBox = shape.image = box;
  shape.outputKind = PixelTypeOf<T>();
  const Kernel & kernel = *device.GetKernels().Find("reconstruction");
  call.scratchBytes = kernel.scratchBytes(operation, shape);
  call.scratch = allocate(call.scratchBytes);
  const double seconds = WarmMedianSeconds(7, [&] {
    device.Launch(*device.GetKernels().Find("reconstruction", &KernelSet::begin), call, stream);
    device.Launch(kernel, call, stream);
    device.Launch(*device.GetKernels().Find("reconstruction", &KernelSet::finish), call, stream);
    device.Synchronize(stream);
  });
  result.resize(mask.size());
  device.CopyToHost(result.data(), call.output.data, bytes, stream);
  device.Synchronize(stream);
  void * const to = allocate(bytes);
  copySeconds = WarmMedianSeconds(7, [&] {
    device.CopyOnDevice(to, call.output.data, bytes, stream);
    device.Synchronize(stream);
  });
  for (void * const block : memory)
  {
    device.Free(block);
  }
  device.DestroyStream(stream);
  return seconds;
}

template <typename T, unsigned int VDimension>
void
Run(Report & report, Case<T, VDimension> c, unsigned int threads, bool withPeer)
{
  Manager          host({});
  std::vector<T>   result(c.mask.size());
  const auto       executor = MakeThreadExecutor(threads);
  ExecutionRequest request;
  request.operation = c.operation;
  request.image = request.region = c.box;
  if (!c.marker.empty())
  {
    request.inputs.push_back(DenseView(c.marker.data(), PixelTypeOf<T>(), c.box));
  }
  request.inputs.push_back(DenseView(c.mask.data(), PixelTypeOf<T>(), c.box));
  request.output = DenseView(result.data(), PixelTypeOf<T>(), c.box);
  request.executor = executor.get();
  const double      cpu = 1e3 * WarmMedianSeconds(3, [&] { host.Execute(request); });
  const Reference   itk{ withPeer ? 1e3 * TimeItk(c, result) : 0, "ITK" };
  const std::string image = SizeName(c.box.Extents()) + " " + PixelTypeName(PixelTypeOf<T>()) + c.texture;
  report.SetHost(threads);
  report.Add("cpu", c.name + "; " + image, cpu, "ms", { itk });
  const auto devices = Manager::GetGlobal().GetDevices();
  if (devices.empty())
  {
    return;
  }
  std::string note;
  double      copy = 0;
  const auto  time = [&](ReconstructionMethod method) {
    std::vector<T> onDevice;
    c.operation->method = method;
    const double seconds = TimeDevice(*devices[0], *c.operation, c.box, c.marker, c.mask, onDevice, copy);
    note = onDevice == result ? "" : "DIFFERS FROM THE CPU";
    return 1e3 * seconds;
  };
  const std::string onHost = "ours on the CPU, " + std::to_string(threads) + " threads";
  const Reference   wavefront{ time(ReconstructionMethod::TileWavefront), "tile wavefront" };
  const std::string wavefrontNote = note;
  const Reference   forest{ time(ReconstructionMethod::SpanningForest), "forest of basins" };
  const std::string forestNote = note;
  const double      ours = time(ReconstructionMethod::Auto);
  report.SetDevice(devices[0]->GetDescription().name);
  report.Add("reconstruction",
             c.name + "; " + image,
             ours,
             "ms",
             { itk, { cpu, onHost }, wavefront, forest },
             { 1e3 * copy, "device copy" },
             note + wavefrontNote + forestNote);
  std::vector<HeapChoice> choices = Choices;
  choices.insert(choices.begin(), HeapChoice{ 0, 0 });
  for (const HeapChoice & choice : choices)
  {
    c.operation->heaps = choice.heaps;
    c.operation->nodeItems = choice.nodeItems;
    const double      heaps = time(ReconstructionMethod::ParallelHeapCluster);
    const std::string which =
      choice.heaps > 0 ? ", " + std::to_string(choice.heaps) + " heaps of " + std::to_string(choice.nodeItems) : "";
    report.Add("reconstruction",
               "heap cluster" + which + "; " + c.name + ", " + image,
               heaps,
               "ms",
               { itk, wavefront, forest },
               { 1e3 * copy, "device copy" },
               note);
  }
  c.operation->heaps = c.operation->nodeItems = 0;
  c.operation->method = ReconstructionMethod::Auto;
}

} // namespace

int
main(int argc, char ** argv)
{
  Report             report(argc, argv);
  const auto         threads = static_cast<unsigned int>(argc > 1 ? std::atoi(argv[1]) : 2);
  const std::int64_t planar = argc > 2 ? std::atoll(argv[2]) : 4096;
  const std::int64_t solid = argc > 3 ? std::atoll(argv[3]) : 512;
  const Box          plane = Box::FromExtent({ { planar, planar, 1, 1, 1 } });
  const Box          volume = Box::FromExtent({ { solid, solid, solid, 1, 1 } });
  const bool         withPeer = argc <= 4 || std::atoi(argv[4]) != 0;
  for (int i = 6; i + 1 < argc; i += 2)
  {
    Choices.push_back({ std::atoi(argv[i]), std::atoi(argv[i + 1]) });
  }
  if (argc > 5 && std::strcmp(argv[5], "-") != 0)
  {
    using Image = itk::Image<std::uint8_t, 3>;
    const auto            image = itk::ReadImage<Image>(argv[5]);
    const auto            size = image->GetLargestPossibleRegion().GetSize();
    Case<std::uint8_t, 3> c;
    c.name = "h-maxima of 20, 6 neighbours";
    c.texture = ", " + StemOf(argv[5]);
    c.box = Box::FromExtent({ { static_cast<std::int64_t>(size[0]),
                                static_cast<std::int64_t>(size[1]),
                                static_cast<std::int64_t>(size[2]),
                                1,
                                1 } });
    c.mask.assign(image->GetBufferPointer(), image->GetBufferPointer() + c.box.NumberOfVoxels());
    c.operation->marker = ReconstructionMarker::Shifted;
    c.operation->height = 20;
    Run(report, c, threads, withPeer);
    c.name = "h-maxima of 20, 26 neighbours";
    c.operation->fullyConnected = true;
    Run(report, c, threads, withPeer);
    c.name = "fill holes, 6 neighbours";
    c.operation->fullyConnected = false;
    c.operation->marker = ReconstructionMarker::Border;
    c.operation->erosion = true;
    Run(report, c, threads, withPeer);
    return 0;
  }
  {
    Case<std::uint16_t, 2> c;
    c.name = "h-maxima of 40, 8 neighbours";
    c.texture = ", smoothed noise";
    c.box = plane;
    c.mask = Noise<std::uint16_t>(plane, 4, 1000);
    c.operation->marker = ReconstructionMarker::Shifted;
    c.operation->height = 40;
    c.operation->fullyConnected = true;
    Run(report, c, threads, withPeer);
    c.name = "fill holes, 8 neighbours";
    c.operation->marker = ReconstructionMarker::Border;
    c.operation->erosion = true;
    Run(report, c, threads, withPeer);
    c.name = "fill holes, 4 neighbours";
    c.operation->fullyConnected = false;
    Run(report, c, threads, withPeer);
    c.texture = ", white noise";
    c.mask = Noise<std::uint16_t>(plane, 0, 1000);
    Run(report, c, threads, withPeer);
  }
  {
    Case<std::uint8_t, 2> c;
    c.name = "spiral one voxel wide, 4 neighbours";
    c.box = plane;
    c.mask = Spiral<std::uint8_t>(plane);
    c.marker.assign(c.mask.size(), 0);
    c.marker[0] = 200;
    Run(report, c, threads, withPeer);
    // Many levels that overtake each other along the way.
    c.name = "spiral one voxel wide, stairs of markers";
    for (std::size_t i = 0; i < c.marker.size(); ++i)
    {
      c.marker[i] = std::min<std::uint8_t>(c.mask[i], static_cast<std::uint8_t>(i * 199 / c.marker.size()));
    }
    Run(report, c, threads, withPeer);
  }
  {
    Case<float, 2> c;
    c.name = "h-maxima of 40, 4 neighbours";
    c.texture = ", smoothed noise";
    c.box = plane;
    c.mask = Noise<float>(plane, 4, 1000);
    c.operation->marker = ReconstructionMarker::Shifted;
    c.operation->height = 40;
    Run(report, c, threads, withPeer);
  }
  {
    Case<std::uint8_t, 3> c;
    c.name = "h-maxima of 20, 6 neighbours";
    c.texture = ", smoothed noise";
    c.box = volume;
    c.mask = Noise<std::uint8_t>(volume, 3, 255);
    c.operation->marker = ReconstructionMarker::Shifted;
    c.operation->height = 20;
    Run(report, c, threads, withPeer);
    c.name = "h-maxima of 20, 26 neighbours";
    c.operation->fullyConnected = true;
    Run(report, c, threads, withPeer);
    c.name = "fill holes, 6 neighbours";
    c.operation->fullyConnected = false;
    c.operation->marker = ReconstructionMarker::Border;
    c.operation->erosion = true;
    Run(report, c, threads, withPeer);
  }
  Manager::GetGlobal().ReleaseMemory();
  return 0;
}
