/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The row of deconvolution.
#include "chunkwiseDeconvolutionOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseFilterRows.h"
#include "chunkwiseSpectralDeconvolutionOperation.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

std::shared_ptr<const ConvolutionKernel>
MakeDeconvolutionKernel(const CheckedParameters & p, const std::string & name, std::size_t index, bool normalizes)
{
  const KernelStack & stack = p.Kernel(name);
  Coordinates         center{};
  for (int axis = 0; axis < MaxDimension; ++axis)
  {
    center[axis] = stack.extent[axis] / 2;
    if (stack.extent[axis] < 1 || (stack.extent[axis] > 1 && !p.IsSpatial(axis)))
    {
      throw ParameterError(name, ToString(stack.extent), "a size with extents above 1 along spatial axes alone");
    }
  }
  std::vector<double> weights = stack.kernels.empty() ? std::vector<double>() : stack.kernels.at(index);
  double              sum = 0;
  for (const double weight : weights)
  {
    sum += weight;
  }
  if (normalizes && !weights.empty())
  {
    if (!(sum > 0) || !std::isfinite(sum))
    {
      throw ParameterError(name, PixelValue(sum).ToText(), "a sum of weights above 0");
    }
    for (double & weight : weights)
    {
      weight /= sum;
    }
  }
  return std::make_shared<const ConvolutionKernel>(stack.extent, center, std::move(weights));
}

bool
HasInput(const FilterImage & image, const char * name)
{
  return std::count(image.additionalInputs.begin(), image.additionalInputs.end(), name) > 0;
}

const std::vector<std::string> IterativeMethods = { "richardson-lucy", "landweber", "projected-landweber" };
const std::vector<std::string> SpectralMethods = { "wiener", "tikhonov", "inverse" };

std::vector<std::string>
Both(std::vector<std::string> words, const std::vector<std::string> & more)
{
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/** The parameter has an effect with these methods alone. */
ParameterDescription
OnlyWith(const ParameterDescription & parameter, const std::vector<std::string> & methods)
{
  std::string values;
  for (const std::string & method : methods)
  {
    values += (values.empty() ? "" : "|") + method;
  }
  return OnlyWith(parameter, "Algorithm", values);
}

std::shared_ptr<const Operation>
MakeSpectralDeconvolution(const CheckedParameters & p, const FilterImage & image)
{
  const std::string & method = p.Choice("Algorithm");
  for (const char * const further : { "WeightImage", "StartImage" })
  {
    if (HasInput(image, further))
    {
      throw ParameterError(further, "it", "an input of Algorithm " + method);
    }
  }
  auto operation = std::make_shared<SpectralDeconvolutionOperation>();
  operation->rule = method == "wiener"     ? SpectralRule::Wiener
                    : method == "tikhonov" ? SpectralRule::Tikhonov
                                           : SpectralRule::Inverse;
  operation->kernel = MakeDeconvolutionKernel(p, "KernelImage", 0, p.Flag("Normalize"));
  operation->noiseVariance = p.Real("NoiseVariance");
  operation->regularization = p.Real("RegularizationConstant");
  operation->leastMagnitude = p.Real("KernelZeroMagnitudeThreshold");
  for (int axis = 0; axis < MaxDimension; ++axis)
  {
    operation->isSpatial[axis] = p.IsSpatial(axis);
  }
  return operation;
}

std::shared_ptr<const Operation>
MakeDeconvolution(const CheckedParameters & p, const FilterImage & image, bool isVarying)
{
  if (std::count(SpectralMethods.begin(), SpectralMethods.end(), p.Choice("Algorithm")) > 0)
  {
    return MakeSpectralDeconvolution(p, image);
  }
  auto operation = std::make_shared<DeconvolutionOperation>();
  operation->image = image.extent;
  operation->inputKind = image.inputKind;
  operation->outputKind = image.outputKind;
  const std::string & method = p.Choice("Algorithm");
  operation->method = method == "landweber"             ? DeconvolutionMethod::Landweber
                      : method == "projected-landweber" ? DeconvolutionMethod::ProjectedLandweber
                                                        : DeconvolutionMethod::RichardsonLucy;
  const bool normalizes = p.Flag("Normalize");
  if (isVarying)
  {
    auto varying = std::make_shared<VaryingConvolutionOperation>();
    varying->nodes = p.OverAxes("GridSize", 1);
    const std::size_t count = p.Kernel("KernelImages").kernels.size();
    double            nodes = 1;
    for (int axis = 0; axis < MaxDimension; ++axis)
    {
      nodes *= static_cast<double>(varying->nodes[axis]);
      // The image in equal cells.
      varying->spacing[axis] =
        static_cast<double>(std::max<std::int64_t>(image.extent[axis], 1)) / static_cast<double>(varying->nodes[axis]);
      varying->first[axis] = (varying->spacing[axis] - 1.0) / 2.0;
    }
    if (nodes != static_cast<double>(count))
    {
      throw ParameterError("KernelImages",
                           std::to_string(count),
                           "as many kernels as the grid of " + ToString(varying->nodes) + " has nodes");
    }
    for (std::size_t i = 0; i < count; ++i)
    {
      varying->kernels.push_back(MakeDeconvolutionKernel(p, "KernelImages", i, normalizes));
    }
    operation->varying = varying;
  }
  else
  {
    operation->kernel = MakeDeconvolutionKernel(p, "KernelImage", 0, normalizes);
  }
  if (!isVarying && p.Has("BackProjector"))
  {
    operation->backProjector = MakeDeconvolutionKernel(p, "BackProjector", 0, normalizes);
  }
  operation->iterations = p.Integer("NumberOfIterations");
  operation->background = p.Real("Background");
  operation->leastExpected = p.Real("LeastExpected");
  operation->totalVariation = p.Real("TotalVariation");
  operation->relaxation = p.Real("Relaxation");
  operation->accelerates = p.Flag("Accelerate");
  operation->relativeChange = p.Real("RelativeChange");
  operation->discrepancy = p.Real("Discrepancy");
  if (p.Has("Saturation"))
  {
    operation->saturation = p.Real("Saturation");
  }
  operation->hasWeights = HasInput(image, "WeightImage");
  operation->hasStart = HasInput(image, "StartImage");
  return operation;
}

/** An image of a kernel; of a stack, with one dimension more. */
ParameterDescription
KernelImageParameter(const std::string & name, const std::string & option, const std::string & help)
{
  ParameterDescription kernel = MakeParameter(name, option, ParameterType::Kernel, help);
  kernel.required = true;
  return kernel;
}

/** The parameters of all methods, which are `choices`. */
std::vector<ParameterDescription>
AlgorithmParameters(const std::string & help, const std::vector<std::string> & choices)
{
  return { MakeChoice("Algorithm", "algorithm", help, choices),
           MakeParameter(
             "Normalize", "keep-sum", ParameterType::Flag, "Use the weights of kernels as they are", "on") };
}

std::vector<ParameterDescription>
IterationParameters()
{
  ParameterDescription iterations =
    MakeParameter("NumberOfIterations", "iterations", ParameterType::Integer, "Iterations at most", "10");
  iterations.minimum = 1;
  const ParameterDescription variation =
    MakeNonNegative("TotalVariation", "total-variation", "Weight of total variation, 0.002 for example", "0");
  ParameterDescription relaxation = MakeNonNegative("Relaxation", "relaxation", "Part of each correction", "1");
  relaxation.aboveMinimum = true;
  const ParameterDescription least = MakeNonNegative(
    "LeastExpected", "least-expected", "Voxels of which no more light is expected have no share in corrections", "0");
  const std::vector<std::string> richardsonLucy = { IterativeMethods[0] };
  return {
    iterations,
    MakeNonNegative("Background", "background", "The image's value without light", "0"),
    OnlyWith(least, richardsonLucy),
    OnlyWith(variation, richardsonLucy),
    OnlyWith(relaxation, { IterativeMethods[1], IterativeMethods[2] }),
    MakeParameter("Accelerate", "accelerate", ParameterType::Flag, "Extrapolate estimates as Biggs and Andrews do"),
    MakeNonNegative(
      "RelativeChange", "relative-change", "Stop once an iteration changes this part of the estimate; 0: never", "0"),
    MakeNonNegative("Discrepancy",
                    "discrepancy",
                    "Stop once the mean squared residual, in units of the expected value, is this; 0: never",
                    "0"),
    MakeNonNegative("Saturation", "saturation", "Voxels of this value and more have the weight 0")
  };
}

std::vector<ParameterDescription>
SpectralParameters()
{
  return { OnlyWith(MakeNonNegative("NoiseVariance",
                                    "noise-variance",
                                    "Squared magnitude of the noise in the image's transform, which has no factor",
                                    "0"),
                    { SpectralMethods[0] }),
           OnlyWith(MakeNonNegative("RegularizationConstant",
                                    "regularization",
                                    "Number that is added to the squared magnitudes of the kernel's transform",
                                    "0"),
                    { SpectralMethods[1] }),
           OnlyWith(MakeNonNegative("KernelZeroMagnitudeThreshold",
                                    "kernel-zero",
                                    "Frequencies with divisors below this magnitude are 0",
                                    "0.0001"),
                    SpectralMethods) };
}

FilterDescription
DeconvolutionRow(const std::string & name, const std::string & title)
{
  FilterDescription row;
  row.name = name;
  row.group = "Deconvolution";
  row.title = title;
  row.canBeStage = false;
  row.takesComponents = false;
  row.output = DefaultOutput::Real;
  InputDescription weights;
  weights.name = "WeightImage";
  weights.option = "weight";
  weights.help = "Weights of voxels, or a mask; where they are 0 the image is not known";
  weights.required = false;
  weights.ownKind = true;
  InputDescription start;
  start.name = "StartImage";
  start.option = "start";
  start.help = "The first estimate (the image's mean)";
  start.required = false;
  start.ownKind = true;
  row.additionalInputs = { weights, start };
  return row;
}

FilterDescription
OneKernelRow()
{
  FilterDescription row = DeconvolutionRow(
    "deconvolve",
    "Deconvolution with a measured kernel: iterative, exact at the edge, with masks and weights, or by spectra");
  row.parameters =
    Join({ KernelImageParameter(
           "KernelImage", "kernel", "Image of the kernel; its center is at half its size, rounded down") },
         AlgorithmParameters(
           "Richardson-Lucy for light that is counted, Landweber for noise of one variance, or one division of "
           "spectra, as ITK's filters do it",
           Both(IterativeMethods, SpectralMethods)));
  for (const ParameterDescription & parameter : IterationParameters())
  {
    row.parameters.push_back(parameter.onlyWithName.empty() ? OnlyWith(parameter, IterativeMethods) : parameter);
  }
  ParameterDescription backProjector = KernelImageParameter(
    "BackProjector", "back-projector", "Kernel with which corrections are convolved (the kernel, mirrored)");
  backProjector.required = false;
  row.parameters = Join(Join(row.parameters, SpectralParameters()),
                        { SpatialAxesParameter(), OnlyWith(backProjector, IterativeMethods) });
  row.make = [](const CheckedParameters & p, const FilterImage & image) { return MakeDeconvolution(p, image, false); };
  return row;
}

FilterDescription
VaryingKernelsRow()
{
  FilterDescription row =
    DeconvolutionRow("deconvolve-varying", "Iterative deconvolution with kernels that vary over the image");
  ParameterDescription kernels = KernelImageParameter(
    "KernelImages",
    "kernels",
    "Image of one dimension more: the kernels of the nodes, x fastest; centers are at half their size");
  kernels.isStack = true;
  ParameterDescription grid =
    MakeParameter("GridSize",
                  "grid",
                  ParameterType::Integers,
                  "Nodes at the centers of equal cells of the image, one number or one for each spatial axis");
  grid.required = true;
  grid.exampleText = "1";
  grid.minimum = 1;
  row.parameters =
    Join(Join({ kernels, grid },
              AlgorithmParameters("Richardson-Lucy for light that is counted, or Landweber for noise of one variance",
                                  IterativeMethods)),
         IterationParameters());
  row.parameters.push_back(SpatialAxesParameter());
  row.make = [](const CheckedParameters & p, const FilterImage & image) { return MakeDeconvolution(p, image, true); };
  return row;
}

} // namespace

void
AddDeconvolutionFilters(std::vector<FilterDescription> & filters)
{
  filters.push_back(OneKernelRow());
  filters.push_back(VaryingKernelsRow());
}

} // namespace chunkwise
