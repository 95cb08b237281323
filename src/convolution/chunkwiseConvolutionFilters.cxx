/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of convolutions: Gaussians and what is made of them, small kernels, images of kernels.
#include "chunkwiseFilterRows.h"
#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseHighPassOperation.h"
#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseLaplacianOperation.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseVaryingConvolutionOperation.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace chunkwise
{

double
UnitOf(const CheckedParameters & parameters, const FilterImage & image, int axis)
{
  const double spacing = parameters.Flag("UseImageSpacing") ? std::abs(image.spacing[axis]) : 1.0;
  if (!(spacing > 0.0 && std::isfinite(spacing)))
  {
    ThrowParameterError("UseImageSpacing",
                        "the input's spacing" + CheckedParameters::Along(axis) + " is " + PixelValue(spacing).ToText());
  }
  return spacing;
}

std::int64_t
SampledRadius(const CheckedParameters & parameters, const FilterImage & image, int axis, double sigma, double least,
              double largest)
{
  const bool isGiven = parameters.Has("KernelRadius");
  double     radius = isGiven ? static_cast<double>(parameters.OverAxes("KernelRadius")[axis])
                              : std::max(least, std::ceil(parameters.Real("Cutoff") * sigma));
  if (!parameters.Has("BoundaryCondition") || parameters.Choice("BoundaryCondition") == "renormalized")
  {
    radius = std::min(radius, std::max(least, static_cast<double>(std::max<std::int64_t>(image.extent[axis], 1) - 1)));
  }
  if (!(radius <= largest))
  {
    if (isGiven)
    {
      ThrowParameterError("KernelRadius",
                          PixelValue(radius).ToText() + CheckedParameters::Along(axis) + " is more than " +
                            PixelValue(largest).ToText());
    }
    const std::string name = parameters.Has("Variance") ? "Variance" : "Sigma";
    const double      given = parameters.RealsOverAxes(name)[static_cast<std::size_t>(axis)];
    ThrowParameterError(name,
                        PixelValue(given).ToText() + CheckedParameters::Along(axis) + " with Cutoff " +
                          PixelValue(parameters.Real("Cutoff")).ToText() + " makes a kernel with a radius of " +
                          PixelValue(radius).ToText() + " voxels, more than " + PixelValue(largest).ToText());
  }
  return static_cast<std::int64_t>(radius);
}

std::vector<ParameterDescription>
GaussianParameters()
{
  ParameterDescription sigma =
    MakeParameter("Sigma",
                  "sigma",
                  ParameterType::Reals,
                  "Standard deviation in the image's physical unit, one number or one for each spatial axis");
  sigma.minimum = 0;
  sigma.exampleText = "1";
  ParameterDescription spacing = MakeParameter(
    "UseImageSpacing", "voxels", ParameterType::Flag, "Sigma is in voxels, not in the image's physical unit", "on");
  ParameterDescription cutoff = MakeNonNegative("Cutoff", "cutoff", "Radius of the kernel, in sigmas", "4");
  cutoff.aboveMinimum = true;
  return { sigma, spacing, cutoff };
}

namespace
{

using Pointer = std::shared_ptr<const Operation>;

std::shared_ptr<SeparableOperation>
MakeGaussian(const CheckedParameters & parameters, const FilterImage & image)
{
  auto       operation = std::make_shared<SeparableOperation>();
  const bool byVariance = parameters.Has("Variance");
  if (!byVariance && !parameters.Has("Sigma"))
  {
    ThrowParameterError("Sigma", "it was not set, and has no default");
  }
  if (byVariance && parameters.Has("Sigma"))
  {
    ThrowParameterError("Variance", "it is given beside Sigma, and one of both is enough");
  }
  const auto widths = parameters.RealsOverAxes(byVariance ? "Variance" : "Sigma");
  for (const int axis : parameters.SpatialAxes())
  {
    const double unit = UnitOf(parameters, image, axis);
    const double width = widths[static_cast<std::size_t>(axis)];
    if (width == 0.0)
    {
      continue;
    }
    if (parameters.Choice("Kernel") == "discrete")
    {
      const double variance = (byVariance ? width : width * width) / (unit * unit);
      const auto & errors = parameters.RealsOverAxes("MaximumError", 0.01);
      operation->weights[axis] = DiscreteGaussianWeights(
        variance, errors[static_cast<std::size_t>(axis)], parameters.Integer("MaximumKernelWidth"));
    }
    else
    {
      constexpr double largest = 1 << 24;
      const double     sigma = (byVariance ? std::sqrt(width) : width) / unit;
      operation->weights[axis] =
        SampledGaussianWeights(sigma, SampledRadius(parameters, image, axis, sigma, 0.0, largest));
    }
  }
  operation->boundary = parameters.Boundary();
  return operation;
}

/** The same axis by axis through transforms. */
Pointer
MakeGaussianByTransforms(const CheckedParameters & parameters, const FilterImage & image)
{
  if (!IsFloatingPoint(image.outputKind))
  {
    ThrowParameterError("Transforms",
                        std::string("the output's pixels are ") + PixelTypeName(image.outputKind) +
                          ", but transforms give float32 or float64");
  }
  const auto direct = MakeGaussian(parameters, image);
  auto       sequence = std::make_shared<SequenceOperation>();
  for (int axis = 0; axis < MaxDimension; ++axis)
  {
    const std::vector<double> & weights = direct->weights[axis];
    if (weights.empty())
    {
      continue;
    }
    auto extent = Coordinates::Filled(1);
    auto center = Coordinates::Filled(0);
    extent[axis] = static_cast<std::int64_t>(weights.size());
    center[axis] = extent[axis] / 2;
    const auto stage = std::make_shared<ImageConvolutionOperation>();
    stage->kernel = std::make_shared<const ConvolutionKernel>(extent, center, weights);
    stage->boundary = direct->boundary;
    stage->method = ConvolutionMethod::FFT;
    stage->transforms = TransformProviderFromName(parameters.Choice("TransformProvider"));
    sequence->stages.push_back(stage);
  }
  if (sequence->stages.empty())
  {
    return direct;
  }
  return sequence;
}

Pointer
MakeLaplacian(const CheckedParameters & parameters, const FilterImage & image)
{
  auto       operation = std::make_shared<LaplacianOperation>();
  const auto sigmas = parameters.RealsOverAxes("Sigma");
  for (const int axis : parameters.SpatialAxes())
  {
    const double     unit = UnitOf(parameters, image, axis);
    const double     sigma = sigmas[static_cast<std::size_t>(axis)] / unit;
    constexpr double largest = 65535;
    operation->weights[axis] =
      SampledGaussianWeights(sigma, SampledRadius(parameters, image, axis, sigma, 2.0, largest));
    // Its window has two voxels to a side at least, and exp(-38 * 38 / 2) is about the smallest number of a double.
    if (!(operation->weights[axis].front() > 0.0))
    {
      ThrowParameterError("Sigma",
                          PixelValue(sigmas[static_cast<std::size_t>(axis)]).ToText() + CheckedParameters::Along(axis) +
                            " with Cutoff " + PixelValue(parameters.Real("Cutoff")).ToText() +
                            " makes a kernel that ends in zeros; at least 0.06 voxels, and a Cutoff of at most 38");
    }
    operation->scale[axis] = parameters.Flag("NormalizeAcrossScale") ? sigma * sigma : 1.0 / (unit * unit);
  }
  operation->boundary = parameters.Boundary();
  return operation;
}

/** The same with the choice of itk::DiscreteGaussianImageFilter's kernel. */
std::vector<ParameterDescription>
GaussianParametersOfBothKernels()
{
  auto sampled = GaussianParameters();
  sampled.back().onlyWithName = "Kernel";
  sampled.back().onlyWithValue = "sampled";
  // As peers have it, whose kernels end elsewhere.
  ParameterDescription reach = RadiusParameter();
  reach.name = "KernelRadius";
  reach.option.clear();
  reach.help = "Voxels of the sampled kernel to either side, instead of Cutoff";
  reach.required = false;
  reach.onlyWithName = "Kernel";
  reach.onlyWithValue = "sampled";
  ParameterDescription variance = MakeParameter("Variance", "", ParameterType::Reals, "The variance, instead of Sigma");
  variance.minimum = 0;
  ParameterDescription kernel =
    MakeChoice("Kernel",
               "kernel",
               "The Gaussian at the voxels, or its discrete analog, as itk::DiscreteGaussianImageFilter has it",
               { "sampled", "discrete" });
  ParameterDescription error = MakeParameter(
    "MaximumError", "maximum-error", ParameterType::Reals, "How much of the discrete kernel may be cut off", "0.01");
  error.minimum = 0;
  error.aboveMinimum = true;
  error.maximum = std::nextafter(1.0, 0.0);
  ParameterDescription width = MakeParameter("MaximumKernelWidth",
                                             "maximum-width",
                                             ParameterType::Integer,
                                             "Weights of the discrete kernel to one side, at most",
                                             "32");
  width.minimum = 1;
  width.maximum = 1 << 24;
  for (ParameterDescription * const ofDiscrete : { &error, &width })
  {
    ofDiscrete->onlyWithName = kernel.name;
    ofDiscrete->onlyWithValue = "discrete";
  }
  return Join(sampled, { reach, variance, kernel, error, width });
}

/** Transforms or sums; a kernel of a few voxels is faster directly. */
ParameterDescription
MethodParameter()
{
  return MakeChoice("Method",
                    "method",
                    "How: through transforms, or directly, which is faster for small kernels",
                    { "auto", "fft", "direct" });
}

ParameterDescription
ProviderParameter()
{
  return MakeChoice("TransformProvider",
                    "transforms",
                    "FFT library: own, cuFFT (CUDA devices), FFTW (CPU), or the fastest available one",
                    { "auto", "own", "cufft", "fftw" });
}

/** One kernel of a stack, its center at half its size, rounded down. */
std::shared_ptr<const ConvolutionKernel>
MakeKernel(const KernelStack & stack, std::size_t index, bool normalize)
{
  Coordinates center{};
  for (int axis = 0; axis < MaxDimension; ++axis)
  {
    center[axis] = stack.extent[axis] / 2;
  }
  std::vector<double> weights = stack.kernels.empty() ? std::vector<double>() : stack.kernels.at(index);
  if (normalize && !weights.empty())
  {
    double sum = 0.0;
    for (const double weight : weights)
    {
      sum += weight;
    }
    if (sum == 0.0)
    {
      ThrowParameterError("Normalize", "the kernel's voxels sum to 0");
    }
    for (double & weight : weights)
    {
      weight /= sum;
    }
  }
  return std::make_shared<const ConvolutionKernel>(stack.extent, center, std::move(weights));
}

void
CheckKernelAxes(const CheckedParameters & parameters, const std::string & name, const KernelStack & stack)
{
  for (int axis = 0; axis < MaxDimension; ++axis)
  {
    if (stack.extent[axis] < 1)
    {
      ThrowParameterError(name, "its size is " + ToString(stack.extent));
    }
    if (stack.extent[axis] > 1 && !parameters.IsSpatial(axis))
    {
      ThrowParameterError(name,
                          "its size is " + ToString(stack.extent) + ", more than 1" + CheckedParameters::Along(axis) +
                            ", which is not spatial");
    }
  }
}

Pointer
MakeSmallConvolution(const CheckedParameters & parameters, const FilterImage &)
{
  auto operation = std::make_shared<ConvolutionOperation>();
  if (parameters.Has("Kernel"))
  {
    const KernelStack & kernel = parameters.Kernel("Kernel");
    CheckKernelAxes(parameters, "Kernel", kernel);
    for (int a = 0; a < MaxDimension; ++a)
    {
      operation->radius[a] = kernel.extent[a] / 2;
    }
    operation->weights = kernel.kernels.at(0);
  }
  else
  {
    if (!parameters.Has("Radius") || !parameters.Has("Weights"))
    {
      ThrowParameterError(parameters.Has("Radius") ? "Weights" : "Radius", "it was not set, and has no default");
    }
    operation->radius = parameters.OverAxes("Radius");
    operation->weights = parameters.Reals("Weights");
  }
  double voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxels *= 2.0 * static_cast<double>(operation->radius[a]) + 1.0;
  }
  if (voxels != static_cast<double>(operation->weights.size()))
  {
    ThrowParameterError("Weights",
                        std::to_string(operation->weights.size()) + " numbers, radius " + ToString(operation->radius) +
                          " needs " + PixelValue(voxels).ToText());
  }
  if (!parameters.Flag("Correlate"))
  {
    // The engine correlates: mirrored along all axes, the weights come in reverse.
    std::reverse(operation->weights.begin(), operation->weights.end());
  }
  operation->boundary = parameters.Boundary();
  return operation;
}

Pointer
MakeImageConvolution(const CheckedParameters & parameters, const FilterImage & image)
{
  const KernelStack & stack = parameters.Kernel("KernelImage");
  CheckKernelAxes(parameters, "KernelImage", stack);
  auto       operation = std::make_shared<ImageConvolutionOperation>();
  const auto kernel = MakeKernel(stack, 0, parameters.Flag("Normalize"));
  operation->kernel = parameters.Flag("Correlate") ? kernel->Flipped() : kernel;
  operation->boundary = parameters.Boundary();
  const std::string & method = parameters.Choice("Method");
  operation->method = method == "fft"      ? ConvolutionMethod::FFT
                      : method == "direct" ? ConvolutionMethod::Direct
                                           : ConvolutionMethod::Auto;
  operation->transforms = TransformProviderFromName(parameters.Choice("TransformProvider"));
  if (parameters.Flag("Valid"))
  {
    for (int axis = 0; axis < MaxDimension; ++axis)
    {
      if (stack.extent[axis] > image.extent[axis])
      {
        ThrowParameterError("OutputRegionMode",
                            "VALID has no voxels, the kernel's size is " + ToString(stack.extent) +
                              " and the image's " + ToString(image.extent));
      }
    }
    if (operation->Renormalizes())
    {
      // No window reaches the edge: any boundary will do, and this one refuses no kernel.
      operation->boundary.mode = BoundaryMode::Constant;
      operation->boundary.constant = 0.0;
    }
  }
  return operation;
}

/** The voxels whose window is inside the image. */
Box
ValidBox(const CheckedParameters & parameters, const FilterImage & image)
{
  Box box = Box::FromExtent(image.extent);
  if (parameters.Flag("Valid"))
  {
    const auto operation =
      std::dynamic_pointer_cast<const ImageConvolutionOperation>(MakeImageConvolution(parameters, image));
    for (int axis = 0; axis < MaxDimension; ++axis)
    {
      box.lower[axis] += operation->Below(axis);
      box.upper[axis] -= operation->Above(axis);
    }
  }
  return box;
}

/** How far a physical point is from voxel 0 along the image's axes, in physical units: the solution d of direction d =
 * point - origin, which need not be orthogonal. */
std::vector<double>
AlongAxes(const FilterImage & image, const std::vector<double> & point)
{
  const int           n = image.dimension;
  double              matrix[MaxDimension][MaxDimension];
  std::vector<double> distance(static_cast<std::size_t>(n));
  for (int row = 0; row < n; ++row)
  {
    std::copy_n(image.direction[row], n, matrix[row]);
    distance[static_cast<std::size_t>(row)] = point[static_cast<std::size_t>(row)] - image.origin[row];
  }
  for (int pivot = 0; pivot < n; ++pivot)
  {
    int largest = pivot;
    for (int row = pivot + 1; row < n; ++row)
    {
      largest = std::abs(matrix[row][pivot]) > std::abs(matrix[largest][pivot]) ? row : largest;
    }
    std::swap(matrix[pivot], matrix[largest]);
    std::swap(distance[static_cast<std::size_t>(pivot)], distance[static_cast<std::size_t>(largest)]);
    for (int row = 0; row < n; ++row)
    {
      if (row == pivot)
      {
        continue;
      }
      const double factor = matrix[row][pivot] / matrix[pivot][pivot];
      for (int column = pivot; column < n; ++column)
      {
        matrix[row][column] -= factor * matrix[pivot][column];
      }
      distance[static_cast<std::size_t>(row)] -= factor * distance[static_cast<std::size_t>(pivot)];
    }
  }
  for (int axis = 0; axis < n; ++axis)
  {
    distance[static_cast<std::size_t>(axis)] /= matrix[axis][axis];
  }
  return distance;
}

Pointer
MakeVaryingConvolution(const CheckedParameters & parameters, const FilterImage & image)
{
  auto operation = std::make_shared<VaryingConvolutionOperation>();
  operation->boundary = parameters.Boundary();
  operation->order =
    parameters.Flag("WeightThenConvolve") ? VaryingOrder::WeightThenConvolve : VaryingOrder::ConvolveThenWeight;
  operation->nodes = parameters.OverAxes("GridSize", 1);
  double count = 1;
  for (int axis = 0; axis < MaxDimension; ++axis)
  {
    count *= static_cast<double>(operation->nodes[axis]);
  }
  const KernelStack & stack = parameters.Kernel("KernelImages");
  if (count != static_cast<double>(stack.kernels.size()))
  {
    ThrowParameterError(
      "KernelImages", std::to_string(stack.kernels.size()) + " for a grid of " + ToString(operation->nodes) + " nodes");
  }
  CheckKernelAxes(parameters, "KernelImages", stack);

  const bool isGiven = parameters.Has("GridOrigin");
  if (isGiven != parameters.Has("GridSpacing"))
  {
    ThrowParameterError(isGiven ? "GridOrigin" : "GridSpacing",
                        std::string("it needs ") + (isGiven ? "GridSpacing" : "GridOrigin") + ", too");
  }
  for (int axis = 0; axis < image.dimension; ++axis)
  {
    const auto i = static_cast<std::size_t>(axis);
    if (isGiven)
    {
      operation->first[axis] = AlongAxes(image, parameters.Reals("GridOrigin"))[i] / image.spacing[axis];
      operation->spacing[axis] = parameters.Reals("GridSpacing")[i] / image.spacing[axis];
    }
    else
    {
      // An image without voxels has a grid, too.
      operation->spacing[axis] = static_cast<double>(std::max<std::int64_t>(image.extent[axis], 1)) /
                                 static_cast<double>(operation->nodes[axis]);
      operation->first[axis] = (operation->spacing[axis] - 1.0) / 2.0;
    }
  }
  for (std::size_t node = 0; node < stack.kernels.size(); ++node)
  {
    operation->kernels.push_back(MakeKernel(stack, node, parameters.Flag("Normalize")));
  }
  return operation;
}

FilterDescription
NamedRow(const std::string & name, const std::string & group, const std::string & title,
         const std::vector<ParameterDescription> & parameters)
{
  FilterDescription row;
  row.name = name;
  row.group = group;
  row.title = title;
  // All of this page are.
  row.isLinear = true;
  row.parameters = Join(parameters, BoundaryParameters());
  return row;
}

void
AddGaussians(std::vector<FilterDescription> & filters)
{
  const std::string          group = "Gaussians";
  const ParameterDescription transforms =
    MakeParameter("Transforms",
                  "fft",
                  ParameterType::Flag,
                  "Use FFTs: faster if sigma exceeds some twenty voxels, and rounded differently");
  ParameterDescription provider = ProviderParameter();
  provider.onlyWithName = transforms.name;
  provider.onlyWithValue = "on";
  FilterDescription row = NamedRow("gaussian",
                                   group,
                                   "Convolution with a Gaussian",
                                   Join(GaussianParametersOfBothKernels(), { transforms, provider }));
  row.promisesBits = false;
  AddDomain(row);
  row.make = [](const CheckedParameters & p, const FilterImage & image) {
    return InDomain(
      p, image, p.Flag("Transforms") ? MakeGaussianByTransforms(p, image) : Pointer(MakeGaussian(p, image)));
  };
  filters.push_back(row);

  row = NamedRow("highpass", group, "The image minus its Gaussian", GaussianParametersOfBothKernels());
  row.output = DefaultOutput::Real;
  AddDomain(row);
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> Pointer {
    auto operation = std::make_shared<HighPassOperation>();
    operation->smoothing = MakeGaussian(p, image);
    return InDomain(p, image, operation);
  };
  filters.push_back(row);

  std::vector<ParameterDescription> parameters = GaussianParameters();
  parameters.front().required = true;
  parameters.front().aboveMinimum = true;
  parameters.push_back(MakeParameter("NormalizeAcrossScale",
                                     "normalize-across-scale",
                                     ParameterType::Flag,
                                     "Multiply by the variance, so that structures of all sizes answer alike"));
  row = NamedRow("log", group, "Laplacian of the image smoothed by a Gaussian", parameters);
  row.output = DefaultOutput::Real;
  row.make = MakeLaplacian;
  filters.push_back(row);
}

constexpr const char * ConvolutionsGroup = "Convolutions";

ParameterDescription
CorrelateParameter()
{
  return MakeParameter(
    "Correlate", "correlate", ParameterType::Flag, "Correlate: the kernel is not mirrored at its center");
}

/** A kernel, or several, from a file. */
ParameterDescription
KernelFileParameter(const std::string & name, const std::string & option, const std::string & help)
{
  ParameterDescription kernel = MakeParameter(name, option, ParameterType::Kernel, help);
  kernel.required = true;
  return kernel;
}

FilterDescription
SmallConvolutionRow()
{
  ParameterDescription radius = RadiusParameter();
  radius.required = false;
  radius.exampleText = "1,0,0";
  ParameterDescription weights =
    MakeParameter("Weights", "weights", ParameterType::Reals, "The kernel's weights, x fastest");
  weights.count = ParameterCount::Any;
  weights.exampleText = "1,2,1";
  ParameterDescription kernel =
    MakeParameter("Kernel", "", ParameterType::Kernel, "The kernel as an image, instead of Radius and Weights");
  FilterDescription row = NamedRow("convolve",
                                   ConvolutionsGroup,
                                   "Convolution with a small kernel of any weights",
                                   { radius, weights, kernel, CorrelateParameter() });
  row.output = DefaultOutput::Real;
  AddDomain(row);
  row.make = [](const CheckedParameters & p, const FilterImage & image) {
    return InDomain(p, image, MakeSmallConvolution(p, image));
  };
  return row;
}

FilterDescription
ImageConvolutionRow()
{
  FilterDescription row = NamedRow(
    "convolve-image",
    ConvolutionsGroup,
    "Convolution with a kernel from a file",
    { KernelFileParameter("KernelImage", "kernel", "Image of the kernel; its center is at half its size, rounded down"),
      MakeParameter("Normalize", "normalize", ParameterType::Flag, "Divide the kernel by its sum"),
      CorrelateParameter(),
      MakeParameter("Valid", "valid", ParameterType::Flag, "Only the voxels whose window is inside the image"),
      MethodParameter(),
      ProviderParameter() });
  row.promisesBits = false;
  row.output = DefaultOutput::Real;
  row.outputBox = ValidBox;
  AddDomain(row);
  row.make = [](const CheckedParameters & p, const FilterImage & image) {
    return InDomain(p, image, MakeImageConvolution(p, image));
  };
  return row;
}

/** The nodes of kernels that vary: how many, and where. */
std::vector<ParameterDescription>
GridParameters()
{
  ParameterDescription grid =
    MakeParameter("GridSize", "grid", ParameterType::Integers, "Nodes, one number or one for each spatial axis");
  grid.required = true;
  grid.exampleText = "1";
  grid.minimum = 1;
  ParameterDescription origin = MakeParameter("GridOrigin",
                                              "grid-origin",
                                              ParameterType::Reals,
                                              "Physical point of the first node (of the first of equal cells)");
  origin.count = ParameterCount::PerAxis;
  ParameterDescription spacing = origin;
  spacing.name = "GridSpacing";
  spacing.option = "grid-spacing";
  spacing.help = "Between nodes, along each axis (the image in equal cells)";
  spacing.minimum = 0;
  spacing.aboveMinimum = true;
  return { grid, origin, spacing };
}

FilterDescription
VaryingConvolutionRow()
{
  std::vector<ParameterDescription> parameters{ KernelFileParameter(
    "KernelImages",
    "kernels",
    "Image of one dimension more: the kernels of the nodes, x fastest; centers are at half their size") };
  parameters.front().isStack = true;
  parameters = Join(parameters, GridParameters());
  parameters =
    Join(parameters,
         { MakeParameter("WeightThenConvolve",
                         "weigh-first",
                         ParameterType::Flag,
                         "Weigh and then convolve: voxels spread by the kernels around them, and the sum is kept"),
           MakeParameter("Normalize", "normalize", ParameterType::Flag, "Divide each kernel by its sum") });
  FilterDescription row =
    NamedRow("convolve-varying", ConvolutionsGroup, "Convolution with kernels that vary over the image", parameters);
  row.promisesBits = false;
  row.output = DefaultOutput::Real;
  AddDomain(row, true, false);
  row.make = [](const CheckedParameters & p, const FilterImage & image) {
    return InDomain(p, image, MakeVaryingConvolution(p, image));
  };
  return row;
}

} // namespace

void
AddConvolutionFilters(std::vector<FilterDescription> & filters)
{
  AddGaussians(filters);
  filters.push_back(SmallConvolutionRow());
  filters.push_back(ImageConvolutionRow());
  filters.push_back(VaryingConvolutionRow());
}

} // namespace chunkwise
