/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// What a mask costs: filters of the table over a whole image with a mask and without. Arguments: the edge of the cube
// (256), the threads (all), the repeats (7), the backend (cpu; cuda: host to host); and --csv FILE.
#include "chunkwiseBenchmarkReport.h"
#include "chunkwiseFilters.h"
#include "chunkwiseManager.h"

using namespace chunkwise;

namespace
{

struct Filter
{
  const char * name;
  const char * text;
  const char * parameter;
  const char * value;
  const char * further{ nullptr };
  const char * furtherValue{ nullptr };
};

/** The least time of a filter with a mask and without, each in turn: what others do on the machine only adds. */
template <typename TPixel>
void
Compare(Report & report, Executor & executor, std::int64_t edge, int repeats, bool onDevice, const Filter & filter,
        const char * kind)
{
  FilterImage image;
  image.extent = { { edge, edge, edge, 1, 1 } };
  image.inputKind = PixelKindOf<TPixel>();
  const PixelKind natural = GetDefaultOutputKind(GetFilter(filter.name), image.inputKind);
  image.outputKind = natural;
  const Box                 box = Box::FromExtent(image.extent);
  std::vector<TPixel>       voxels(static_cast<std::size_t>(box.NumberOfVoxels()));
  std::vector<std::uint8_t> mask(voxels.size());
  std::vector<char>         output(voxels.size() * PixelSize(natural));
  std::uint32_t             state = 5;
  for (std::size_t i = 0; i < voxels.size(); ++i)
  {
    state = state * 1664525U + 1013904223U;
    voxels[i] = static_cast<TPixel>(state >> 24);
    // A ball, as an organ fills its volume.
    std::int64_t rest = static_cast<std::int64_t>(i);
    std::int64_t distance = 0;
    for (int a = 0; a < 3; ++a)
    {
      const std::int64_t d = 2 * (rest % edge) - edge;
      distance += d * d;
      rest /= edge;
    }
    mask[i] = distance < edge * edge * 2 / 3 ? 1 : 0;
  }
  Manager          host({});
  Manager &        manager = onDevice ? Manager::GetGlobal() : host;
  ExecutionRequest request;
  request.backend = onDevice ? BackendChoice::CUDA : BackendChoice::CPU;
  request.image = request.region = box;
  request.executor = &executor;
  request.output = DenseView(output.data(), natural, box);
  FilterParameters parameters;
  parameters.Set(filter.parameter,
                 ParseParameter(*GetFilter(filter.name).FindParameter(filter.parameter), filter.value));
  if (filter.further)
  {
    parameters.Set(filter.further,
                   ParseParameter(*GetFilter(filter.name).FindParameter(filter.further), filter.furtherValue));
  }
  double seconds[2] = { 1e9, 1e9 };
  for (int i = 0; i < 2 * repeats + 2; ++i)
  {
    const bool masks = i % 2 != 0;
    request.inputs = { DenseView(voxels.data(), image.inputKind, box) };
    image.furtherInputs.clear();
    if (masks)
    {
      request.inputs.push_back(DenseView(mask.data(), PixelKind::UInt8, box));
      image.furtherInputs = { "MaskImage" };
    }
    request.operation = MakeFilterOperation(filter.name, parameters, image);
    const double time = BestSeconds(1, [&] { manager.Execute(request); });
    seconds[masks ? 1 : 0] = i < 2 ? seconds[masks ? 1 : 0] : std::min(seconds[masks ? 1 : 0], time);
  }
  report.Add(onDevice ? "host-to-host" : "cpu",
             std::string(filter.text) + " in a mask; " + SizeName(image.extent) + " " + kind,
             seconds[1] * 1e3,
             "ms",
             {},
             { seconds[0] * 1e3, "without a mask" });
}

} // namespace

int
main(int argc, char * argv[])
{
  Report     report(argc, argv);
  const auto number = [&](int i, int other) { return argc > i ? std::atoi(argv[i]) : other; };
  const int  edge = number(1, 256);
  const auto executor = MakeThreadExecutor(static_cast<unsigned int>(number(2, 0)));
  const int  repeats = number(3, 7);
  const bool onDevice = argc > 4 && argv[4] == std::string("cuda");
  report.SetHost(executor->GetConcurrency());
  for (const Filter & filter : { Filter{ "mean", "mean, radius 2", "Radius", "2" },
                                 Filter{ "variance", "variance, radius 2", "Radius", "2" },
                                 Filter{ "gaussian", "Gaussian, sigma 2", "Sigma", "2" },
                                 Filter{ "maximum", "maximum, radius 2", "Radius", "2" },
                                 Filter{ "opening", "opening, radius 2", "Radius", "2" },
                                 Filter{ "median", "median, radius 1", "Radius", "1" },
                                 Filter{ "median", "median, radius 2", "Radius", "2" },
                                 Filter{ "median", "median, radius 5", "Radius", "5" },
                                 Filter{ "entropy", "entropy, radius 2", "Radius", "2", "Range", "0,256" },
                                 Filter{ "nlm", "non-local means, radius 2", "Radius", "2", "Strength", "40" } })
  {
    Compare<std::uint8_t>(report, *executor, edge, repeats, onDevice, filter, "uint8");
    Compare<float>(report, *executor, edge, repeats, onDevice, filter, "float32");
  }
  return 0;
}
