/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of diffusion and total variation.
#include "chunkwiseDiffusionOperation.h"
#include "chunkwiseEnhancementRows.h"
#include "chunkwiseError.h"
#include "chunkwiseFilterRows.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

FilterDescription
DiffusionRow(const std::string & name, const std::string & title, std::vector<ParameterDescription> parameters,
             const std::string & iterations)
{
  ParameterDescription count;
  count.name = "Iterations";
  count.option = "iterations";
  count.type = ParameterType::Integer;
  count.help = "Number of iterations; a chunk needs as many voxels around it";
  count.defaultText = iterations;
  count.minimum = 1;
  count.maximum = static_cast<double>(DiffusionOperation::MostIterations);
  ParameterDescription spacing = GaussianParameters().at(1);
  spacing.help = "Differences are those of voxels, not divided by the image's spacing";
  parameters.insert(parameters.begin(), count);
  parameters.push_back(spacing);
  for (const ParameterDescription & each : BoundaryParameters())
  {
    if (each.name == "SpatialAxes")
    {
      parameters.push_back(each);
    }
  }
  FilterDescription row;
  row.name = name;
  row.group = "Enhancement";
  row.title = title;
  row.parameters = parameters;
  row.output = DefaultOutput::Real;
  AddSmoothingMask(row);
  return row;
}

std::shared_ptr<DiffusionOperation>
MakeDiffusion(const CheckedParameters & p, const FilterImage & image)
{
  auto operation = std::make_shared<DiffusionOperation>();
  operation->iterations = p.Integer("Iterations");
  operation->skipsNan = HasSmoothingMask(image);
  for (const int axis : p.SpatialAxes())
  {
    operation->scale[axis] = 1.0 / UnitOf(p, image, axis);
  }
  return operation;
}

/** Half of the largest stable time step, or the one that is given. */
double
CoherenceTimeStep(const CheckedParameters & p, const DiffusionOperation & operation)
{
  double squares = 0;
  for (const double scale : operation.scale)
  {
    squares += scale * scale;
  }
  const double step = p.Has("TimeStep") ? p.Real("TimeStep") : 0.25 / squares;
  if (step * 2 * squares > 1)
  {
    ThrowParameterError("TimeStep",
                        PixelValue(step).ToText() + " is more than " + PixelValue(0.5 / squares).ToText() +
                          ", above which it is not stable");
  }
  return step;
}

FilterDescription
CoherenceRow()
{
  std::vector<ParameterDescription> gaussian = GaussianParameters();
  ParameterDescription              sigma = gaussian.at(0);
  sigma.defaultText = "1";
  sigma.aboveMinimum = true;
  ParameterDescription outer = gaussian.at(0);
  outer.name = "OuterSigma";
  outer.option = "outer-sigma";
  outer.help =
    "Standard deviation of the Gaussian that smooths the structure tensor, in the image's physical unit, one "
    "number or one for each spatial axis";
  outer.defaultText = "3";
  ParameterDescription cutoff = gaussian.at(2);
  cutoff.defaultText = "3";
  ParameterDescription alpha =
    MakeNonNegative("Alpha", "alpha", "Diffusion across structures, where that along them is at most 1", "0.001");
  alpha.aboveMinimum = true;
  alpha.maximum = 1;
  ParameterDescription contrast = MakeNonNegative(
    "Contrast", "contrast", "The length of a gradient from which on structures count as such, smoothed", "1");
  ParameterDescription step =
    MakeNonNegative("TimeStep", "time-step", "Time of an iteration; by default half of the largest stable one", "");
  step.aboveMinimum = true;
  step.exampleText = "0.05";
  FilterDescription row = DiffusionRow("coherence-diffusion",
                                       "Coherence-enhancing diffusion: smooths along structures, and closes their gaps",
                                       { sigma, outer, alpha, contrast, step, cutoff },
                                       "10");
  row.parameters.front().help =
    "Number of iterations; for each a chunk needs the radii of both Gaussians and one voxel more around it";
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> std::shared_ptr<const Operation> {
    const std::size_t axes = p.SpatialAxes().size();
    for (const int axis : p.SpatialAxes())
    {
      if (axes < 2 || axis == MaxDimension - 1)
      {
        ThrowParameterError("SpatialAxes",
                            axes < 2 ? "structures have directions along two or three axes"
                                     : std::to_string(axis) + " is none; this filter takes the first four axes");
      }
    }
    const auto operation = MakeDiffusion(p, image);
    operation->method = DiffusionMethod::Coherence;
    operation->timeStep = CoherenceTimeStep(p, *operation);
    const double square = p.Real("Contrast") * p.Real("Contrast");
    operation->tensor = MakeDiffusivity(p, image, p.Real("Alpha"), square * square, operation->skipsNan);
    return InsideMask(p, image, operation);
  };
  return row;
}

} // namespace

void
AddDiffusionFilters(std::vector<FilterDescription> & filters)
{
  ParameterDescription method =
    MakeChoice("Method",
               "method",
               "Diffusion of Perona and Malik, or curvature diffusion, which also keeps thin structures",
               { "gradient", "curvature" });
  ParameterDescription gradient = MakeNonNegative(
    "GradientMagnitude",
    "gradient-magnitude",
    "The length of a gradient that conductance is measured in; auto: the root of the image's mean squared gradient",
    "auto");
  gradient.provisionalText = "0";
  gradient.estimate = GetDiffusionGradientEstimate();
  ParameterDescription step =
    MakeNonNegative("TimeStep",
                    "time-step",
                    "Time of an iteration; by default half of the smallest spacing over 2 to the power of the axes",
                    "");
  step.aboveMinimum = true;
  step.exampleText = "0.05";
  FilterDescription row = DiffusionRow(
    "diffusion",
    "Anisotropic diffusion: smooths, and stops at edges",
    { method,
      MakeNonNegative(
        "Conductance", "conductance", "Gradients that are so many times the gradient magnitude are edges", "1"),
      gradient,
      step },
    "5");
  row.canBeStage = false;
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> std::shared_ptr<const Operation> {
    const auto operation = MakeDiffusion(p, image);
    operation->method = p.Choice("Method") == "curvature" ? DiffusionMethod::Curvature : DiffusionMethod::Gradient;
    operation->contrast = p.Real("Conductance") * p.Real("GradientMagnitude");
    double sum = 0;
    double largest = 0;
    double power = 1;
    for (const double scale : operation->scale)
    {
      sum += scale;
      largest = std::max(largest, scale);
      power *= scale > 0 ? 2 : 1;
    }
    operation->timeStep = p.Has("TimeStep") ? p.Real("TimeStep") : 0.5 / (std::max(largest, 1e-300) * power);
    if (operation->timeStep * 2 * sum > 1)
    {
      ThrowParameterError("TimeStep",
                          PixelValue(operation->timeStep).ToText() + " is more than " + PixelValue(0.5 / sum).ToText() +
                            ", above which voxels leave the range of their neighbors");
    }
    return InsideMask(p, image, operation);
  };
  filters.push_back(row);

  ParameterDescription weight =
    MakeNonNegative("Weight", "weight", "The weight of the total variation: larger ones smooth more", "");
  weight.required = true;
  weight.exampleText = "10";
  row = DiffusionRow("total-variation",
                     "The image that is nearest to this one and has little total variation: smooths, and keeps edges",
                     { weight },
                     "50");
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> std::shared_ptr<const Operation> {
    const auto operation = MakeDiffusion(p, image);
    operation->method = DiffusionMethod::TotalVariation;
    operation->weight = p.Real("Weight");
    return InsideMask(p, image, operation);
  };
  filters.push_back(row);
  filters.push_back(CoherenceRow());
}

} // namespace chunkwise
