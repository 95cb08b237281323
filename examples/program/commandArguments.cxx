/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandArguments.h"

#include "commandWarnings.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

namespace command
{

namespace
{

/** The options of filters with windows. */
void
AddWindowOptions(CLI::App & app, Arguments & arguments)
{
  using chunkwise::BoundaryMode;
  const std::map<std::string, BoundaryMode> boundaries{ { "renormalized", BoundaryMode::Renormalized },
                                                        { "zero-flux", BoundaryMode::ZeroFluxNeumann },
                                                        { "constant", BoundaryMode::Constant },
                                                        { "mirror", BoundaryMode::Mirror },
                                                        { "periodic", BoundaryMode::Periodic } };
  auto *                                    boundary =
    app.add_option("--boundary", arguments.boundary, "What windows see beyond the image's edge (renormalized)")
      ->transform(CLI::CheckedTransformer(boundaries, CLI::ignore_case).description(""))
      ->type_name("renormalized|zero-flux|constant|mirror|periodic");
  app.add_option("--constant", arguments.constant, "The value beyond the edge with --boundary constant (0)")
    ->needs(boundary);
  app.add_option("--axes", arguments.axes, "The axes along which windows extend, x is 0 (the first three)")
    ->delimiter(',')
    ->allow_extra_args(false);
}

/** The options that every filter has. */
void
AddCommonOptions(CLI::App & app, Arguments & arguments)
{
  using chunkwise::BackendChoice;
  const std::map<std::string, BackendChoice> backends{ { "auto", BackendChoice::Auto },
                                                       { "cpu", BackendChoice::CPU },
                                                       { "cuda", BackendChoice::CUDA } };

  app.add_option("IN", arguments.input, "Image to read, in any format of ITK")->required()->check(CLI::ExistingFile);
  app.add_option("OUT", arguments.output, "Image to write; its ending says the format")->required();
  app.add_option("--backend", arguments.backend, "Where to compute (auto)")
    ->transform(CLI::CheckedTransformer(backends, CLI::ignore_case).description(""))
    ->type_name("auto|cpu|cuda");
  app.add_option("--devices", arguments.devices, "Ordinals of the CUDA devices to use (all)")
    ->delimiter(',')
    ->allow_extra_args(false)
    ->check(CLI::NonNegativeNumber);
  app.add_option("--memory", arguments.memory, "Host memory for the run, as 512M or 2G (half of what is available)")
    ->transform(CLI::AsSizeValue(false))
    ->type_name("SIZE");
  app.add_option("--device-memory", arguments.deviceMemory, "Memory of each device (80% of what is free)")
    ->transform(CLI::AsSizeValue(false))
    ->type_name("SIZE");
  app.add_option("--divisions", arguments.divisions, "Stream in this many divisions, whatever the memory")
    ->check(CLI::PositiveNumber);
  app.add_option("--threads", arguments.threads, "Threads of the CPU (all)")->check(CLI::PositiveNumber);
  app.add_option("--output-type", arguments.outputType, "The input's type, float32 or float64 (the input's)")
    ->type_name("TYPE");
  app.add_flag("--quiet", arguments.quiet, "No progress and no warnings");
  app.add_flag("--verbose", arguments.verbose, "Print plan, backend, time and peak memory");
}

void
AddFilters(CLI::App & app, Arguments & arguments)
{
  const auto addPlain = [&](const std::string & name, Filter filter, const std::string & description) {
    CLI::App * sub = app.add_subcommand(name, description);
    AddCommonOptions(*sub, arguments);
    sub->callback([&arguments, filter, name] {
      arguments.filter = filter;
      arguments.filterName = name;
    });
    return sub;
  };
  const auto add = [&](const std::string & name, Filter filter, const std::string & description) {
    CLI::App * sub = addPlain(name, filter, description);
    AddWindowOptions(*sub, arguments);
    return sub;
  };

  add("identity", Filter::Identity, "Copy an image");

  const auto addRadius = [&](CLI::App & sub) {
    sub.add_option("--radius", arguments.radius, "Voxels to either side, one number or one per spatial axis")
      ->required()
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::NonNegativeNumber)
      ->type_name("R[,R,R]");
  };
  const auto addElement = [&](CLI::App & sub) {
    sub.add_option("--element", arguments.element, "The structuring element: box, ball or cross (box)")
      ->check(CLI::IsMember({ "box", "ball", "cross" }));
  };
  const auto addBox = [&](const std::string & name, Filter filter, const std::string & description) {
    CLI::App * sub = add(name, filter, description);
    addRadius(*sub);
    return sub;
  };
  addBox("mean", Filter::Mean, "Mean over a box");
  addBox("sum", Filter::Sum, "Sum over a box");
  addBox("variance", Filter::Variance, "Variance over a box");
  addBox("std", Filter::StandardDeviation, "Standard deviation over a box");
  CLI::App * box = addBox("box", Filter::BoxStatistic, "A statistic over boxes that may have a radius for each voxel");
  box->add_option("--statistic", arguments.statistic, "What of the box: sum, mean, variance or std (mean)")
    ->check(CLI::IsMember({ "sum", "mean", "variance", "std" }));
  box
    ->add_option(
      "--radius-image", arguments.radiusImage, "The radius of each voxel's box, an image of IN's size; no more than R")
    ->check(CLI::ExistingFile)
    ->type_name("FILE");
  const auto addMorphology = [&](const std::string & name, Filter filter, const std::string & description) {
    addElement(*addBox(name, filter, description));
  };
  addMorphology("maximum", Filter::Maximum, "Maximum over a structuring element (dilation)");
  addMorphology("minimum", Filter::Minimum, "Minimum over a structuring element (erosion)");
  addMorphology("opening", Filter::Opening, "Opening with a structuring element");
  addMorphology("closing", Filter::Closing, "Closing with a structuring element");
  addBox("wiener", Filter::Wiener, "Adaptive Wiener filter over a box")
    ->add_option("--noise", arguments.noise, "The variance of the noise")
    ->required()
    ->check(CLI::NonNegativeNumber);
  CLI::App * nonLocal = addBox("nlm", Filter::NonLocalMeans, "Non-local means; the radius is that of the search");
  nonLocal->add_option("--patch", arguments.patch, "Radius of the patches, one number or one per spatial axis (1)")
    ->delimiter(',')
    ->allow_extra_args(false)
    ->check(CLI::NonNegativeNumber)
    ->type_name("R[,R,R]");
  nonLocal->add_option("--strength", arguments.strength, "The difference of patches that weighs exp(-1)")
    ->required()
    ->check(CLI::PositiveNumber);
  nonLocal->add_option("--noise", arguments.noise, "The variance of the noise (0)")->check(CLI::NonNegativeNumber);
  addBox("range", Filter::Range, "Maximum minus minimum over a box (morphological gradient)");
  addBox("median", Filter::Median, "Median over a box");
  addBox("percentile", Filter::Percentile, "Percentile over a box")
    ->add_option("--percentile", arguments.percentile, "0, the minimum, to 100, the maximum")
    ->required()
    ->check(CLI::Range(0.0, 100.0));
  addBox("convolve", Filter::Convolution, "Convolution with a small kernel of any weights")
    ->add_option("--weights", arguments.weights, "The kernel, x fastest: 2 radius + 1 numbers along each spatial axis")
    ->required()
    ->delimiter(',')
    ->allow_extra_args(false)
    ->type_name("W,W,...");
  CLI::App * convolution = add("convolve-image", Filter::ImageConvolution, "Convolution with an image of any size");
  convolution->add_option("--kernel", arguments.kernelFile, "The image of the kernel; its center is at half its size")
    ->required()
    ->check(CLI::ExistingFile)
    ->type_name("FILE");
  convolution->add_flag("--normalize", arguments.normalize, "Divide the kernel by its sum");
  convolution->add_flag("--correlate", arguments.correlate, "Mirror the kernel at its center");
  convolution->add_flag("--valid", arguments.valid, "Only the voxels whose window is inside the image");
  using chunkwise::ConvolutionMethod;
  const std::map<std::string, ConvolutionMethod> methods{ { "auto", ConvolutionMethod::Auto },
                                                          { "fft", ConvolutionMethod::FFT },
                                                          { "direct", ConvolutionMethod::Direct } };
  convolution->add_option("--method", arguments.method, "How: fft, or direct for small kernels (auto)")
    ->transform(CLI::CheckedTransformer(methods, CLI::ignore_case).description(""))
    ->type_name("auto|fft|direct");
  CLI::App * varying =
    add("convolve-varying", Filter::VaryingConvolution, "Convolution with kernels that vary over the image");
  varying
    ->add_option("--kernels",
                 arguments.kernelsFile,
                 "Image of one dimension more: the kernels of the nodes, x fastest; centers are at half their size")
    ->required()
    ->check(CLI::ExistingFile)
    ->type_name("FILE");
  varying->add_option("--grid", arguments.grid, "Nodes, one number or one per spatial axis")
    ->required()
    ->delimiter(',')
    ->allow_extra_args(false)
    ->check(CLI::PositiveNumber)
    ->type_name("N[,N,N]");
  CLI::Option * origin =
    varying->add_option("--grid-origin", arguments.gridOrigin, "Physical point of the first node (of the first cell)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("X,Y[,Z]");
  CLI::Option * spacing =
    varying->add_option("--grid-spacing", arguments.gridSpacing, "Between nodes (the image in equal cells)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::PositiveNumber)
      ->type_name("S,S[,S]");
  origin->needs(spacing);
  spacing->needs(origin);
  varying->add_flag("--weigh-first",
                    arguments.weightsFirst,
                    "Weigh and then convolve: voxels spread by the kernels around them, and the sum is kept");
  varying->add_flag("--normalize", arguments.normalize, "Divide each kernel by its sum");
  CLI::App * entropy = addBox("entropy", Filter::Entropy, "Entropy of the histogram of a box, in bits");
  entropy->add_option("--bins", arguments.bins, "Bins of the histogram (256)")->check(CLI::Range(2, 4096));
  entropy
    ->add_option("--range", arguments.range, "Where the first bin begins and the last one ends (the type's, if small)")
    ->delimiter(',')
    ->expected(2)
    ->type_name("LOW,HIGH");

  const auto addGaussian = [&](const std::string & name, Filter filter, const std::string & description) {
    CLI::App * sub = add(name, filter, description);
    sub->add_option("--sigma", arguments.sigma, "Standard deviation, one number or one per spatial axis")
      ->required()
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("S[,S,S]");
    sub->add_flag("--voxels", arguments.voxels, "Sigma is in voxels, not in the image's physical unit");
    sub->add_option("--cutoff", arguments.cutoff, "Where the kernel ends, in sigmas (4)");
    return sub;
  };
  addGaussian("gaussian", Filter::Gaussian, "Convolution with a Gaussian")
    ->add_flag_callback(
      "--fft",
      [&arguments] { arguments.method = ConvolutionMethod::FFT; },
      "Through Fourier transforms: faster where sigma is more than some twenty voxels, rounded differently");
  addGaussian("highpass", Filter::HighPass, "The image minus its Gaussian");
  addGaussian("log", Filter::LaplacianOfGaussian, "Laplacian of the image smoothed by a Gaussian");

  CLI::App * statistics = app.add_subcommand("statistics", "Print the sum, mean, minimum and maximum of an image");
  statistics->add_option("IN", arguments.input, "Image to read, in any format of ITK")
    ->required()
    ->check(CLI::ExistingFile);
  statistics->add_option("--divisions", arguments.divisions, "Read in this many divisions (of 64 MiB)")
    ->check(CLI::PositiveNumber);
  statistics->add_option("--threads", arguments.threads, "Threads of the CPU (all)")->check(CLI::PositiveNumber);
  statistics->callback([&arguments] {
    arguments.filter = Filter::Statistics;
    arguments.filterName = "statistics";
  });

  add("difference", Filter::Difference, "The image minus another one")
    ->add_option("--minus", arguments.subtrahend, "The image to subtract, of the same size and type")
    ->required()
    ->check(CLI::ExistingFile)
    ->type_name("FILE");

  CLI::App * table = add("sat", Filter::SummedAreaTable, "Summed-area table, by default of 64-bit integers or doubles");
  table->add_option("--summed-axes", arguments.summedAxes, "How many of the first axes are summed (3, in 2-D 2)")
    ->check(CLI::Range(2, 3));
  table->add_flag("--squares", arguments.squares, "Sum the squares of the voxels");
  table->add_flag("--modular", arguments.modular, "Let integer sums wrap around");

  const auto addReconstruction = [&](const std::string & name, Filter filter, const std::string & description) {
    CLI::App * sub = addPlain(name, filter, description);
    sub->add_flag("--full", arguments.fullyConnected, "Neighbours share a face, an edge or a corner, not only a face");
    sub
      ->add_option("--spatial-dimension",
                   arguments.spatialDimension,
                   "Neighbours lie along the first axes, this many (all of up to three)")
      ->check(CLI::Range(1, 3));
    return sub;
  };
  CLI::App * reconstruct = addReconstruction(
    "reconstruct", Filter::Reconstruction, "Morphological reconstruction of a marker under a mask, IN");
  reconstruct->add_option("--marker", arguments.marker, "The image to start from, of the same size and type")
    ->required()
    ->check(CLI::ExistingFile)
    ->type_name("FILE");
  reconstruct->add_flag("--erosion", arguments.erosion, "By erosion, over the mask; else by dilation");
  const auto addHeight = [&](const std::string & name, Filter filter, const std::string & description) {
    addReconstruction(name, filter, description)
      ->add_option("--height", arguments.height, "In the image's own unit")
      ->required()
      ->check(CLI::NonNegativeNumber);
  };
  addHeight("h-maxima", Filter::HMaxima, "Suppress maxima that rise by no more than a height");
  addHeight("h-minima", Filter::HMinima, "Suppress minima that are no deeper than a height");
  addHeight("h-convex", Filter::HConvex, "The image minus its h-maxima: domes");
  addHeight("h-concave", Filter::HConcave, "The h-minima minus the image: basins");
  addReconstruction("fill-holes", Filter::FillHoles, "Fill minima that are not connected to the image's edge");
  addReconstruction("grind-peaks", Filter::GrindPeaks, "Remove maxima that are not connected to the image's edge");
  addReconstruction("clear-border", Filter::ClearBorder, "Remove what is bright and connected to the image's edge");
  const auto addOfMorphology = [&](const std::string & name, Filter filter, const std::string & description) {
    CLI::App * sub = addReconstruction(name, filter, description);
    addRadius(*sub);
    addElement(*sub);
    sub->add_flag("--preserve-intensities", arguments.preserveIntensities, "What is kept has its own values again");
  };
  addOfMorphology("opening-by-reconstruction",
                  Filter::OpeningByReconstruction,
                  "Remove what is bright and the structuring element does not fit into; keep the rest whole");
  addOfMorphology("closing-by-reconstruction",
                  Filter::ClosingByReconstruction,
                  "Remove what is dark and the structuring element does not fit into; keep the rest whole");
  addReconstruction("regional-maxima", Filter::RegionalMaxima, "Mark plateaus without a higher neighbour");
  addReconstruction("regional-minima", Filter::RegionalMinima, "Mark plateaus without a lower neighbour");

  add("sequence", Filter::Sequence, "Several filters in one pass over the image")
    ->add_option("--step", arguments.stepTexts, "A filter with its options, as \"mean --radius 2\"; once for each")
    ->required()
    ->allow_extra_args(false)
    ->type_name("\"FILTER OPTIONS\"");
}

/** What single options cannot check. */
void
Check(const Arguments & arguments, const CLI::App & app)
{
  for (const double sigma : arguments.sigma)
  {
    if (!(sigma >= 0.0 && std::isfinite(sigma)))
    {
      throw ArgumentError("--sigma: " + std::to_string(sigma) + " is not a finite number of at least 0");
    }
  }
  if (!(arguments.cutoff > 0.0 && std::isfinite(arguments.cutoff)))
  {
    throw ArgumentError("--cutoff: " + std::to_string(arguments.cutoff) + " is not a finite number above 0");
  }
  const auto * parent = arguments.planOnly ? app.get_subcommand("plan") : &app;
  const auto * sub = arguments.filter == Filter::None || arguments.filter == Filter::Statistics
                       ? nullptr
                       : parent->get_subcommand(arguments.filterName);
  if (sub && sub->get_option_no_throw("--constant") && sub->count("--constant") &&
      arguments.boundary != chunkwise::BoundaryMode::Constant)
  {
    throw ArgumentError("--constant: only --boundary constant has a value beyond the edge");
  }
  std::vector<unsigned int> axes = arguments.axes;
  std::sort(axes.begin(), axes.end());
  if (axes.size() > static_cast<std::size_t>(chunkwise::MaxSpatialAxes) ||
      std::adjacent_find(axes.begin(), axes.end()) != axes.end())
  {
    throw ArgumentError("--axes: up to " + std::to_string(chunkwise::MaxSpatialAxes) + " different axes");
  }
  if (arguments.quiet && arguments.verbose)
  {
    throw ArgumentError("--quiet: contradicts --verbose");
  }
}

/** The steps of a sequence, each parsed as a command line of its own. */
void
ParseSteps(Arguments & arguments)
{
  for (const std::string & text : arguments.stepTexts)
  {
    std::istringstream       stream(text);
    std::vector<std::string> words{ "chunkwise" };
    for (std::string word; stream >> word;)
    {
      words.push_back(word);
      if (words.size() == 2)
      {
        words.push_back(arguments.input);
        words.push_back(arguments.output);
      }
    }
    std::vector<char *> argv;
    for (std::string & word : words)
    {
      argv.push_back(&word[0]);
      for (const char * const whole : { "--backend",
                                        "--devices",
                                        "--memory",
                                        "--device-memory",
                                        "--divisions",
                                        "--threads",
                                        "--output-type",
                                        "--quiet",
                                        "--verbose" })
      {
        if (word.rfind(whole, 0) == 0)
        {
          throw ArgumentError("--step: " + word + " is for the whole sequence, not for \"" + text + "\"");
        }
      }
    }
    Arguments step;
    try
    {
      step = ParseArguments(static_cast<int>(argv.size()), argv.data());
    }
    catch (const ArgumentError & error)
    {
      throw ArgumentError("--step: " + text + ": " + error.what());
    }
    if (step.filter == Filter::None || step.filter == Filter::Sequence || step.filter == Filter::Difference ||
        step.filter == Filter::Statistics || step.filter >= Filter::Reconstruction || step.planOnly ||
        !step.radiusImage.empty())
    {
      throw ArgumentError("--step: \"" + text + "\" is not a filter");
    }
    if (step.valid)
    {
      throw ArgumentError("--step: --valid changes the image's size, which no step can: \"" + text + "\"");
    }
    arguments.steps.push_back(step);
  }
}

} // namespace

Arguments
ParseArguments(int argc, char ** argv)
{
  Arguments arguments;
  CLI::App  app("Boundary-exact image filters for images of any size.", "chunkwise");
  app.set_version_flag("--version", std::string("chunkwise ") + CHUNKWISE_VERSION);
  app.require_subcommand(1);
  AddFilters(app, arguments);
  app.add_subcommand("devices", "List the devices that can compute")->callback([&] { arguments.devicesOnly = true; });
  CLI::App * plan = app.add_subcommand("plan", "Print what a subcommand would do, without doing it");
  plan->require_subcommand(1);
  AddFilters(*plan, arguments);
  plan->callback([&] { arguments.planOnly = true; });

  try
  {
    app.parse(argc, argv);
  }
  catch (const CLI::CallForHelp &)
  {
    const CLI::App * asked = &app;
    while (!asked->get_subcommands().empty())
    {
      asked = asked->get_subcommands().front();
    }
    throw TextRequested{ asked->help() };
  }
  catch (const CLI::CallForVersion & version)
  {
    throw TextRequested{ std::string(version.what()) + "\n" };
  }
  catch (const CLI::ParseError & error)
  {
    throw ArgumentError(JoinLines(error.what()));
  }
  Check(arguments, app);
  ParseSteps(arguments);
  return arguments;
}

} // namespace command
