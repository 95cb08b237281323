/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of derivatives, and of what follows from them.
#include "chunkwiseDerivativeOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseFilterRows.h"
#include "chunkwiseHessianContrast.h"
#include "chunkwiseMeasureScaleOperation.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

constexpr const char * DerivativesGroup = "Derivatives";

/** The smoothing window of an operator that is no Gaussian. */
std::vector<double>
WindowOfOperator(const std::string & name)
{
  return name == "sobel"    ? std::vector<double>{ 1, 2, 1 }
         : name == "scharr" ? std::vector<double>{ 3, 10, 3 }
                            : std::vector<double>{ 1, 1, 1 };
}

/** The windows along the spatial axes. `order`: the largest along each. An axis with sigma 0 and order 0 has none. */
DerivativeScale
MakeScale(const CheckedParameters & p, const FilterImage & image, const std::string & parameter,
          const std::vector<double> & sigmas, const DerivativeOrders & order)
{
  DerivativeScale scale;
  // Measures have no choice: they are of Gaussians, and their scales are compared.
  const bool        compares = !p.Has("Operator");
  const bool        isOuter = parameter == "OuterSigma";
  const std::string name = compares || isOuter ? "gaussian" : p.Choice("Operator");
  constexpr double  largest = 65535;
  for (const int axis : p.SpatialAxes())
  {
    const double unit = UnitOf(p, image, axis);
    const int    most = order[static_cast<std::size_t>(axis)];
    scale.factor[axis] = 1.0 / unit;
    if (name != "gaussian")
    {
      if (most > 2)
      {
        ThrowParameterError("Order",
                            std::to_string(most) + CheckedParameters::Along(axis) +
                              " is more than 2, the largest order in a window of three voxels");
      }
      scale.weights[axis] = WindowOfOperator(name);
      scale.smooths = name != "central";
      continue;
    }
    const double given = sigmas[static_cast<std::size_t>(axis)];
    const double sigma = given / unit;
    if (given == 0.0 && most == 0)
    {
      continue;
    }
    if ((compares || isOuter) && !(p.Real("Cutoff") * sigma <= largest))
    {
      ThrowParameterError(parameter,
                          PixelValue(given).ToText() + CheckedParameters::Along(axis) + " with Cutoff " +
                            PixelValue(p.Real("Cutoff")).ToText() +
                            " makes a kernel with a radius of more than 65535 "
                            "voxels");
    }
    const double least = most == 0 ? 0.0 : most == DerivativeOperation::LargestOrder ? 2.0 : 1.0;
    const auto   radius = SampledRadius(p, image, axis, sigma, least, largest);
    if (static_cast<double>(radius) >= least && given > 0.0)
    {
      scale.weights[axis] = SampledGaussianWeights(sigma, radius);
    }
    // exp(-38 * 38 / 2) is about the smallest number of a double.
    if (scale.weights[axis].empty() || !(scale.weights[axis].front() > 0.0))
    {
      ThrowParameterError(parameter,
                          PixelValue(given).ToText() + CheckedParameters::Along(axis) + " with Cutoff " +
                            PixelValue(p.Real("Cutoff")).ToText() +
                            " makes a kernel without a derivative, or one that ends in zeros; at least 0.06 voxels, a "
                            "Cutoff of at most 38, and a radius of at least " +
                            PixelValue(least).ToText());
    }
    if (!isOuter && (compares || p.Flag("NormalizeAcrossScale")))
    {
      scale.factor[axis] = sigma;
    }
    scale.sampled[axis] = !isOuter && p.Has("Kernel") && p.Choice("Kernel") == "sampled" ? sigma : 0.0;
  }
  return scale;
}

std::vector<double>
SigmasOf(const CheckedParameters & p)
{
  if (p.Choice("Operator") != "gaussian")
  {
    return {};
  }
  if (!p.Has("Sigma"))
  {
    ThrowParameterError("Sigma", "it was not set, and has no default");
  }
  return p.RealsOverAxes("Sigma");
}

std::shared_ptr<DerivativeOperation>
MakeDerivatives(const CheckedParameters & p, const FilterImage & image, std::vector<DerivativeOrders> components)
{
  auto             operation = std::make_shared<DerivativeOperation>();
  DerivativeOrders order{};
  for (const DerivativeOrders & orders : components)
  {
    for (std::size_t a = 0; a < order.size(); ++a)
    {
      order[a] = std::max(order[a], orders[a]);
    }
  }
  operation->scales.front() = MakeScale(p, image, "Sigma", SigmasOf(p), order);
  operation->components = std::move(components);
  operation->boundary = p.Boundary();
  return operation;
}

/** First derivatives along the spatial axes, which ascend. */
std::vector<DerivativeOrders>
GradientOf(const CheckedParameters & p)
{
  std::vector<int> axes = p.SpatialAxes();
  std::sort(axes.begin(), axes.end());
  std::vector<DerivativeOrders> components;
  for (const int axis : axes)
  {
    components.emplace_back();
    components.back().fill(0);
    components.back()[static_cast<std::size_t>(axis)] = 1;
  }
  return components;
}

std::shared_ptr<const Operation>
MakeDerivative(const CheckedParameters & p, const FilterImage & image)
{
  DerivativeOrders  orders{};
  const Coordinates given = p.OverAxes("Order");
  for (int a = 0; a < MaxDimension; ++a)
  {
    orders[static_cast<std::size_t>(a)] = static_cast<int>(given[a]);
  }
  return MakeDerivatives(p, image, { orders });
}

std::shared_ptr<const Operation>
MakeGradient(const CheckedParameters & p, const FilterImage & image)
{
  const auto operation = MakeDerivatives(p, image, GradientOf(p));
  if (p.Flag("OutputComponents"))
  {
    operation->componentAxis = MaxDimension - 1;
  }
  else
  {
    operation->result = DerivativeResult::Magnitude;
  }
  return operation;
}

/** Second derivatives along the spatial axes: the upper triangle of the Hessian, row by row. */
std::vector<DerivativeOrders>
HessianOf(const CheckedParameters & p)
{
  const std::vector<DerivativeOrders> gradient = GradientOf(p);
  std::vector<DerivativeOrders>       components;
  for (std::size_t row = 0; row < gradient.size(); ++row)
  {
    for (std::size_t column = row; column < gradient.size(); ++column)
    {
      components.push_back(gradient[row]);
      for (std::size_t a = 0; a < components.back().size(); ++a)
      {
        components.back()[a] += gradient[column][a];
      }
    }
  }
  return components;
}

std::shared_ptr<const Operation>
MakeCurvature(const CheckedParameters & p, const FilterImage & image)
{
  const std::string & name = p.Choice("Result");
  const auto          axes = p.SpatialAxes().size();
  const bool          isOfSurface = name != "level-set" && name != "mean";
  if (axes < (isOfSurface ? 3U : 2U))
  {
    ThrowParameterError("Result",
                        name + " needs " + (isOfSurface ? "three" : "at least two") + " spatial axes, there " +
                          (axes == 1 ? "is one" : "are two"));
  }
  std::vector<DerivativeOrders>       components = GradientOf(p);
  const std::vector<DerivativeOrders> hessian = HessianOf(p);
  components.insert(components.end(), hessian.begin(), hessian.end());
  const auto operation = MakeDerivatives(p, image, components);
  operation->result = DerivativeResult::Curvature;
  operation->curvature.kind = name == "mean"       ? CurvatureKind::Mean
                              : name == "gaussian" ? CurvatureKind::Gaussian
                              : name == "smallest" ? CurvatureKind::Smallest
                              : name == "largest"  ? CurvatureKind::Largest
                                                   : CurvatureKind::LevelSet;
  operation->curvature.leastGradient = p.Real("LeastGradient");
  return operation;
}

std::shared_ptr<const Operation>
MakeDivergence(const CheckedParameters & p, const FilterImage & image)
{
  std::vector<DerivativeOrders>    components = GradientOf(p);
  const std::size_t                axes = components.size();
  const std::vector<std::string> & others = image.additionalInputs;
  const auto                       isGiven = [&](const char * name) {
    return static_cast<std::size_t>(std::count(others.begin(), others.end(), name) > 0);
  };
  const std::size_t given = 1 + isGiven("Input2") + isGiven("Input3");
  const bool        isOfGradient = p.Flag("OfGradient");
  if (isOfGradient ? given > 1 : given != axes)
  {
    ThrowParameterError(isOfGradient                 ? "OfGradient"
                        : axes > given && given == 1 ? "Input2"
                                                     : "Input3",
                        isOfGradient ? "a gradient is that of one image, " + std::to_string(given) + " are given"
                                     : "vectors along " + std::to_string(axes) + " spatial axes are as many images, " +
                                         std::to_string(given) + (given == 1 ? " is given" : " are given"));
  }
  if (isOfGradient)
  {
    for (DerivativeOrders & orders : components)
    {
      std::transform(orders.begin(), orders.end(), orders.begin(), [](int order) { return 2 * order; });
    }
  }
  const auto operation = MakeDerivatives(p, image, components);
  operation->result = DerivativeResult::Sum;
  operation->ofVectors = !isOfGradient && axes > 1;
  return operation;
}

/** The result with a number, or all as components. */
void
ChooseResult(const CheckedParameters & p, DerivativeOperation & operation)
{
  if (p.Flag("OutputComponents"))
  {
    operation.componentAxis = MaxDimension - 1;
    return;
  }
  operation.chosen = static_cast<int>(p.Integer("Number"));
  if (operation.chosen >= operation.GetNumberOfResults())
  {
    ThrowParameterError("Number",
                        std::to_string(operation.chosen) + " is not below " +
                          std::to_string(operation.GetNumberOfResults()) + ", the number of results of a voxel");
  }
}

std::shared_ptr<const Operation>
MakeHessian(const CheckedParameters & p, const FilterImage & image)
{
  const auto          operation = MakeDerivatives(p, image, HessianOf(p));
  const std::string & result = p.Choice("Result");
  operation->result = result == "elements"       ? DerivativeResult::Components
                      : result == "by-magnitude" ? DerivativeResult::ByMagnitude
                      : result == "direction"    ? DerivativeResult::Direction
                      : result == "eigenvectors" ? DerivativeResult::Eigenvectors
                                                 : DerivativeResult::Eigenvalues;
  ChooseResult(p, *operation);
  return operation;
}

std::shared_ptr<const Operation>
MakeStructureTensor(const CheckedParameters & p, const FilterImage & image)
{
  const auto gradient = MakeDerivatives(p, image, GradientOf(p));
  auto       operation = std::make_shared<DerivativeOperation>();
  operation->scales.front() = MakeScale(p, image, "OuterSigma", p.RealsOverAxes("OuterSigma"), {});
  operation->components.resize(HessianOf(p).size());
  operation->boundary = p.Boundary();
  operation->gradient = gradient;
  const std::string & result = p.Choice("Result");
  operation->result = result == "elements"       ? DerivativeResult::Components
                      : result == "orientation"  ? DerivativeResult::Direction
                      : result == "eigenvectors" ? DerivativeResult::Eigenvectors
                      : result == "coherence"    ? DerivativeResult::Coherence
                      : result == "cornerness"   ? DerivativeResult::Cornerness
                                                 : DerivativeResult::Eigenvalues;
  operation->tensor.harris = p.Real("Harris");
  ChooseResult(p, *operation);
  return operation;
}

std::int64_t
ComponentsOfHessian(const CheckedParameters & p, const FilterImage & image)
{
  if (!p.Flag("OutputComponents") || p.Choice("Result") == "coherence" || p.Choice("Result") == "cornerness")
  {
    return 0;
  }
  if (image.dimension == MaxDimension)
  {
    ThrowParameterError("OutputComponents",
                        "an image of " + std::to_string(MaxDimension) + " dimensions has no room for components");
  }
  const auto n = static_cast<std::int64_t>(p.SpatialAxes().size());
  return p.Choice("Result") == "elements" ? n * (n + 1) / 2 : p.Choice("Result") == "eigenvectors" ? n * n : n;
}

HessianMeasure
MeasureOf(const std::string & name)
{
  return name == "sato"        ? HessianMeasure::Sato
         : name == "meijering" ? HessianMeasure::Meijering
         : name == "jerman"    ? HessianMeasure::Jerman
                               : HessianMeasure::Objectness;
}

std::shared_ptr<const Operation>
MakeHessianMeasure(const CheckedParameters & p, const FilterImage & image)
{
  auto operation = std::make_shared<DerivativeOperation>();
  operation->components = HessianOf(p);
  operation->result = DerivativeResult::Measure;
  operation->boundary = p.Boundary();
  const std::string &        name = p.Choice("Measure");
  HessianMeasureParameters & measure = operation->measure;
  measure.measure = MeasureOf(name);
  measure.objectDimension = name == "blobness" ? 0 : name == "sheetness" ? 2 : 1;
  if (measure.measure != HessianMeasure::Objectness)
  {
    measure.objectDimension = 0;
  }
  else if (measure.objectDimension >= operation->GetMatrixSize())
  {
    ThrowParameterError("Measure",
                        name + " needs more than " + std::to_string(operation->GetMatrixSize()) + " spatial axes");
  }
  measure.alpha = p.Real("Alpha");
  measure.beta = p.Real("Beta");
  measure.tau = p.Real("Tau");
  measure.dark = p.Flag("Dark");
  measure.scales = p.Flag("ScaleByLargest");
  DerivativeOrders order{};
  for (const int axis : p.SpatialAxes())
  {
    order[static_cast<std::size_t>(axis)] = 2;
  }
  const std::vector<double> & scales = p.Reals("Scales");
  // Measures without a contrast leave it at "auto".
  const std::vector<double> contrasts = p.Has("Contrast") ? p.Reals("Contrast") : std::vector<double>{ 0.0 };
  if (scales.empty())
  {
    ThrowParameterError("Scales", "there is none");
  }
  if (contrasts.size() != 1 && contrasts.size() != scales.size())
  {
    ThrowParameterError("Contrast",
                        std::to_string(contrasts.size()) + " numbers for " + std::to_string(scales.size()) + " scales");
  }
  operation->scales.clear();
  for (std::size_t i = 0; i < scales.size(); ++i)
  {
    operation->scales.push_back(MakeScale(p, image, "Scales", std::vector<double>(MaxDimension, scales[i]), order));
    operation->scales.back().contrast = measure.measure == HessianMeasure::Sato ? 0.0
                                        : contrasts.size() == 1                 ? contrasts.front()
                                                                                : contrasts[i];
  }
  if (p.Choice("Result") == "scale")
  {
    const auto found = std::make_shared<MeasureScaleOperation>();
    found->measure = *operation;
    found->scales = scales;
    return found;
  }
  return operation;
}

/** The windows of derivatives. */
std::vector<ParameterDescription>
WindowParameters()
{
  ParameterDescription operatorName =
    MakeChoice("Operator",
               "operator",
               "Derivatives of a Gaussian, or differences of neighbours that a window of three voxels smooths "
               "across: 1, 2, 1 (sobel), 1, 1, 1 (prewitt), 3, 10, 3 (scharr), or nothing (central)",
               { "gaussian", "sobel", "prewitt", "scharr", "central" });
  ParameterDescription kernel =
    MakeChoice("Kernel",
               "kernel",
               "Weights that are exact for polynomials of the derivative's order, or the Gaussian's derivative at the "
               "voxels, as SciPy has it",
               { "exact", "sampled" });
  ParameterDescription normalize =
    MakeParameter("NormalizeAcrossScale",
                  "normalize-across-scale",
                  ParameterType::Flag,
                  "Multiply by sigma for each order, so that structures of all sizes answer alike");
  ParameterDescription reach = RadiusParameter();
  reach.name = "KernelRadius";
  reach.option.clear();
  reach.help = "Voxels of the Gaussian to either side, instead of Cutoff";
  reach.required = false;
  std::vector<ParameterDescription> gaussian = GaussianParameters();
  ParameterDescription              spacing = gaussian.at(1);
  spacing.help = "Sigma and derivatives are in voxels, not in the image's physical unit";
  std::vector<ParameterDescription> ofGaussian{ gaussian.at(0), gaussian.at(2), kernel, normalize, reach };
  for (ParameterDescription & each : ofGaussian)
  {
    each.onlyWithName = operatorName.name;
    each.onlyWithValue = "gaussian";
  }
  return Join({ ofGaussian.front(), spacing, operatorName }, { ofGaussian.begin() + 1, ofGaussian.end() });
}

FilterDescription
DerivativeRow(const std::string & name, const std::string & title, const std::vector<ParameterDescription> & first)
{
  FilterDescription row;
  row.name = name;
  row.group = DerivativesGroup;
  row.title = title;
  row.parameters = Join(Join(first, WindowParameters()), BoundaryParameters());
  row.output = DefaultOutput::Real;
  return row;
}

ParameterDescription
RealParameter(const std::string & name, const std::string & option, const std::string & help,
              const std::string & standard, double minimum, bool aboveMinimum)
{
  ParameterDescription real = MakeParameter(name, option, ParameterType::Real, help, standard);
  real.minimum = minimum;
  real.aboveMinimum = aboveMinimum;
  real.onlyWithName = "Measure";
  return real;
}

/** The filter of tubes, sheets and blobs. */
FilterDescription
HessianMeasureRow()
{
  ParameterDescription scales;
  scales.name = "Scales";
  scales.option = "scales";
  scales.type = ParameterType::Reals;
  scales.count = ParameterCount::Any;
  scales.help = "Standard deviations of the Gaussians in the image's physical unit; each voxel has the largest measure "
                "over all of them";
  scales.required = true;
  scales.minimum = 0;
  scales.aboveMinimum = true;
  scales.exampleText = "1,2,3";
  ParameterDescription measure =
    MakeChoice("Measure",
               "measure",
               "Frangi's vesselness (Antiga's objectness of tubes), objectness of blobs or sheets, or the tubeness of "
               "Sato, Meijering or Jerman",
               { "frangi", "blobness", "sheetness", "sato", "meijering", "jerman" });
  ParameterDescription alpha =
    RealParameter("Alpha", "alpha", "How far tubes must differ from sheets, and blobs from tubes", "0.5", 0, true);
  alpha.onlyWithValue = "frangi|blobness";
  ParameterDescription beta =
    RealParameter("Beta", "beta", "How much tubes may look like blobs, and sheets like tubes", "0.5", 0, true);
  beta.onlyWithValue = "frangi|sheetness";
  ParameterDescription tau =
    RealParameter("Tau", "tau", "Share of the largest eigenvalue above which all tubes count alike", "0.5", 0, false);
  tau.maximum = 1;
  tau.onlyWithValue = "jerman";
  ParameterDescription contrast;
  contrast.name = "Contrast";
  contrast.option = "contrast";
  contrast.type = ParameterType::Reals;
  contrast.count = ParameterCount::Any;
  contrast.help =
    "Norm of the Hessian from which on objectness counts, or the largest value that others are divided by, "
    "one number or one for each scale; 0 leaves it out, auto takes half the largest norm, or the largest "
    "value, of the whole image";
  contrast.defaultText = "auto";
  contrast.provisionalText = "0";
  contrast.minimum = 0;
  contrast.onlyWithName = "Measure";
  contrast.onlyWithValue = "frangi|blobness|sheetness|meijering|jerman";
  contrast.estimate = GetHessianContrastEstimate();
  ParameterDescription dark =
    MakeParameter("Dark", "dark", ParameterType::Flag, "Measure dark structures on a bright background");
  ParameterDescription byLargest =
    OnlyWith(MakeParameter("ScaleByLargest",
                           "scale-by-largest",
                           ParameterType::Flag,
                           "Multiply by the largest magnitude of an eigenvalue, as ITK does"),
             "Measure",
             "frangi|blobness|sheetness");
  FilterDescription row =
    DerivativeRow("vesselness", "Measure of tubes, blobs or sheets by the Hessian's eigenvalues", {});
  std::vector<ParameterDescription> windows = row.parameters;
  ParameterDescription              result =
    MakeChoice("Result",
               "result",
               "The largest measure, or the scale that has it: the first of equal ones, 0 where no measure is above 0",
               { "measure", "scale" });
  row.parameters = { scales, measure, alpha, beta, tau, contrast, dark, byLargest, result };
  for (const ParameterDescription & each : windows)
  {
    // Scales are those of Gaussians.
    if (each.name != "Sigma" && each.name != "Operator" && each.name != "KernelRadius" &&
        each.name != "NormalizeAcrossScale")
    {
      row.parameters.push_back(each);
      if (each.onlyWithName == "Operator")
      {
        row.parameters.back().onlyWithName.clear();
        row.parameters.back().onlyWithValue.clear();
      }
    }
  }
  row.canBeStage = false;
  row.make = MakeHessianMeasure;
  return row;
}

FilterDescription
StructureTensorRow(ParameterDescription result, ParameterDescription number, ParameterDescription components)
{
  ParameterDescription outer = MakeParameter(
    "OuterSigma",
    "outer-sigma",
    ParameterType::Reals,
    "Standard deviation of the Gaussian that smooths the products of derivatives, in the image's physical unit, "
    "one number or one for each spatial axis");
  outer.required = true;
  outer.minimum = 0;
  outer.exampleText = "2";
  result.help =
    "Eigenvalues in ascending order, the unit vector of the smallest one, along which the image changes least, "
    "coherence from 0 to 1, Harris' cornerness, the elements of the tensor's upper triangle, row by row, or the unit "
    "vectors of all eigenvalues";
  result.choices = { "eigenvalues", "orientation", "coherence", "cornerness", "elements", "eigenvectors" };
  ParameterDescription harris = RealParameter(
    "Harris", "harris", "Cornerness is the determinant minus so much of the trace's power", "0.05", 0, false);
  harris.onlyWithName = result.name;
  harris.onlyWithValue = "cornerness";
  for (ParameterDescription * const each : { &number, &components })
  {
    each->onlyWithName = result.name;
    each->onlyWithValue = "eigenvalues|orientation|elements|eigenvectors";
  }
  FilterDescription row = DerivativeRow("structure-tensor",
                                        "Eigenvalues, orientation, coherence or cornerness of the structure tensor",
                                        { outer, result, number, harris });
  for (ParameterDescription & each : row.parameters)
  {
    if (each.name == "Cutoff")
    {
      // The outer window is a Gaussian in any case.
      each.onlyWithName.clear();
      each.onlyWithValue.clear();
    }
  }
  row.parameters.erase(std::remove_if(row.parameters.begin(),
                                      row.parameters.end(),
                                      [](const auto & each) { return each.name == "KernelRadius"; }),
                       row.parameters.end());
  row.parameters.push_back(components);
  row.canBeStage = false;
  row.takesComponents = false;
  row.outputComponents = ComponentsOfHessian;
  row.make = MakeStructureTensor;
  return row;
}

FilterDescription
DivergenceRow()
{
  FilterDescription row =
    DerivativeRow("divergence",
                  "Divergence of vectors, an image for each of their components, or of the gradient of an image",
                  { MakeParameter("OfGradient",
                                  "of-gradient",
                                  ParameterType::Flag,
                                  "Divergence of IN's gradient: the sum of the second derivatives along all spatial "
                                  "axes, its Laplacian") });
  row.additionalInputs = {
    { "Input2",
      "second",
      "The vectors' components along y, the second spatial axis: an image of IN's size, which has those along x",
      false },
    { "Input3", "third", "The vectors' components along z, the third spatial axis, an image of IN's size", false }
  };
  row.canBeStage = false;
  row.takesComponents = false;
  row.splitsComponents = true;
  row.make = MakeDivergence;
  return row;
}

FilterDescription
CurvatureRow()
{
  ParameterDescription least = MakeNonNegative(
    "LeastGradient", "least-gradient", "Curvature is 0 where the gradient is not longer than this", "0");
  FilterDescription row = DerivativeRow(
    "curvature",
    "Curvature of the isosurfaces of the image smoothed by a Gaussian, or of its isocontours",
    { MakeChoice("Result",
                 "result",
                 "The divergence of the unit gradient, which is the sum of both principal curvatures, their mean, "
                 "their product, or one of them",
                 { "level-set", "mean", "gaussian", "smallest", "largest" }),
      least });
  row.make = MakeCurvature;
  return row;
}

} // namespace

std::shared_ptr<const DerivativeOperation>
MakeDiffusivity(const CheckedParameters & p, const FilterImage & image, double alpha, double coherence, bool skipsNan)
{
  const auto       gradient = std::make_shared<DerivativeOperation>();
  const auto       operation = std::make_shared<DerivativeOperation>();
  DerivativeOrders first{};
  for (const int axis : p.SpatialAxes())
  {
    first[static_cast<std::size_t>(axis)] = 1;
  }
  gradient->components = GradientOf(p);
  gradient->scales.front() = MakeScale(p, image, "Sigma", p.RealsOverAxes("Sigma"), first);
  for (const int axis : p.SpatialAxes())
  {
    gradient->scales.front().factor[axis] = 1.0 / UnitOf(p, image, axis);
  }
  gradient->skipsNan = operation->skipsNan = skipsNan;
  operation->gradient = gradient;
  operation->scales.front() = MakeScale(p, image, "OuterSigma", p.RealsOverAxes("OuterSigma"), {});
  operation->components.resize(HessianOf(p).size());
  operation->result = DerivativeResult::Diffusivity;
  operation->tensor.alpha = alpha;
  operation->tensor.coherence = coherence;
  operation->componentAxis = MaxDimension - 1;
  return operation;
}

void
AddDerivativeFilters(std::vector<FilterDescription> & filters)
{
  ParameterDescription order =
    MakeParameter("Order",
                  "order",
                  ParameterType::Integers,
                  "Order of the derivative, one number or one for each spatial axis, 0 to 3");
  order.required = true;
  order.exampleText = "1,0,0";
  order.minimum = 0;
  order.maximum = DerivativeOperation::LargestOrder;
  FilterDescription row = DerivativeRow("derivative", "Derivative of the image smoothed by a Gaussian", { order });
  row.isLinear = true;
  row.make = MakeDerivative;
  filters.push_back(row);

  ParameterDescription components =
    MakeParameter("OutputComponents",
                  "output-components",
                  ParameterType::Flag,
                  "A voxel has the derivatives along all axes, x first, as its components");
  row = DerivativeRow("gradient", "Length of the gradient of the image smoothed by a Gaussian, or its components", {});
  row.parameters.push_back(components);
  row.canBeStage = false;
  row.takesComponents = false;
  row.outputComponents = [](const CheckedParameters & p, const FilterImage & image) -> std::int64_t {
    if (!p.Flag("OutputComponents"))
    {
      return 0;
    }
    if (image.dimension == MaxDimension)
    {
      ThrowParameterError("OutputComponents",
                          "an image of " + std::to_string(MaxDimension) + " dimensions has no room for components");
    }
    return static_cast<std::int64_t>(p.SpatialAxes().size());
  };
  row.make = MakeGradient;
  filters.push_back(row);

  ParameterDescription result =
    MakeChoice("Result",
               "result",
               "Eigenvalues in ascending order, eigenvalues in the order of their magnitudes, the unit vector of the "
               "eigenvalue with the smallest magnitude, the elements of the Hessian's upper triangle, row by row, or "
               "the unit vectors of the ascending eigenvalues, one after the other",
               { "eigenvalues", "by-magnitude", "direction", "elements", "eigenvectors" });
  ParameterDescription number =
    MakeParameter("Number", "number", ParameterType::Integer, "The number of the result, from 0 on", "0");
  number.minimum = 0;
  number.maximum = 8;
  components.help = "A voxel has all results, as its components; elements along x come first";
  row = DerivativeRow(
    "hessian", "Second derivatives of the smoothed image, or their matrix' eigenvalues", { result, number });
  row.parameters.push_back(components);
  row.canBeStage = false;
  row.takesComponents = false;
  row.outputComponents = ComponentsOfHessian;
  row.make = MakeHessian;
  filters.push_back(row);

  filters.push_back(DivergenceRow());
  filters.push_back(CurvatureRow());

  filters.push_back(StructureTensorRow(result, number, components));

  filters.push_back(HessianMeasureRow());
}

} // namespace chunkwise
