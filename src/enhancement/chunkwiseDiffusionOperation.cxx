/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDiffusionOperation.h"

#include "chunkwiseDerivativeOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseRealOf.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

std::string
DiffusionOperation::GetKey() const
{
  std::string key = GetName() + " " + std::to_string(static_cast<int>(method)) + " " + std::to_string(iterations) +
                    " " + ExactText(timeStep) + " " + ExactText(contrast) + " " + ExactText(weight) +
                    (skipsNan ? " skips" : "");
  for (const double each : scale)
  {
    key += " " + ExactText(each);
  }
  if (method == DiffusionMethod::Coherence)
  {
    key += " {" + tensor->GetKey() + "}";
  }
  return key;
}

std::vector<int>
DiffusionOperation::GetAxes() const
{
  std::vector<int> axes;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (scale[a] > 0)
    {
      axes.push_back(a);
    }
  }
  return axes;
}

int
DiffusionOperation::CountImages() const
{
  switch (method)
  {
    case DiffusionMethod::TotalVariation:
      return 3 + static_cast<int>(this->GetAxes().size());
    case DiffusionMethod::Coherence:
      return 2 + tensor->GetNumberOfResults();
    default:
      return 2;
  }
}

Coordinates
DiffusionOperation::GetReach() const
{
  Coordinates reach{};
  for (const int axis : this->GetAxes())
  {
    reach[axis] = 1 + (method == DiffusionMethod::Coherence ? tensor->GetHalo({}).lower[axis] : 0);
  }
  return reach;
}

Box
DiffusionOperation::GetSource(Box output, const Box & image, std::int64_t steps) const
{
  const Coordinates reach = this->GetReach();
  for (int a = 0; a < MaxDimension; ++a)
  {
    output.lower[a] = std::max(output.lower[a] - steps * reach[a], image.lower[a]);
    output.upper[a] = std::min(output.upper[a] + steps * reach[a], image.upper[a]);
  }
  return output;
}

double
DiffusionOperation::GetTraffic(const Box & output, const Box & image, PixelType input) const
{
  // Values of the type that computes, read or written in the time that an iteration takes for a voxel (H200).
  const double values = method == DiffusionMethod::TotalVariation    ? 18
                        : method == DiffusionMethod::Coherence       ? 140
                        : method == DiffusionMethod::SquaredGradient ? 2
                                                                     : 30;
  double       voxels = 0;
  for (std::int64_t left = 0; left < iterations; ++left)
  {
    const Box source = this->GetSource(output, image, left);
    if (source.Extents() == image.Extents())
    {
      // All before it, too.
      voxels += static_cast<double>(iterations - left) * static_cast<double>(source.NumberOfVoxels());
      break;
    }
    voxels += static_cast<double>(source.NumberOfVoxels());
  }
  return voxels * values * static_cast<double>(UsesDouble(input) ? sizeof(double) : sizeof(float));
}

Halo
DiffusionOperation::GetHalo(const Coordinates &) const
{
  Coordinates reach = this->GetReach();
  for (int a = 0; a < MaxDimension; ++a)
  {
    reach[a] *= iterations;
  }
  return { reach, reach };
}

std::vector<std::shared_ptr<const Operation>>
DiffusionOperation::AsSteps(PixelType input, PixelType output) const
{
  // Between two steps planes are handed on, which takes about as long as an iteration; a step computes as many planes
  // twice as it has iterations.
  constexpr std::int64_t                        IterationsOfStep = 8;
  std::vector<std::shared_ptr<const Operation>> steps;
  if (method == DiffusionMethod::TotalVariation || method == DiffusionMethod::SquaredGradient ||
      output != (UsesDouble(input) ? PixelType::Float64 : PixelType::Float32))
  {
    return steps;
  }
  const auto make = [&](std::int64_t count) {
    auto step = std::make_shared<DiffusionOperation>(*this);
    step->iterations = count;
    return step;
  };
  steps.assign(static_cast<std::size_t>(iterations / IterationsOfStep), make(IterationsOfStep));
  if (iterations % IterationsOfStep > 0)
  {
    steps.push_back(make(iterations % IterationsOfStep));
  }
  return steps;
}

void
DiffusionOperation::Validate(const Coordinates & image) const
{
  if (method == DiffusionMethod::Coherence)
  {
    Coordinates ofTensors = image;
    ofTensors[MaxDimension - 1] = tensor ? tensor->GetNumberOfResults() : 0;
    if (!tensor || tensor->result != DerivativeResult::Diffusivity || tensor->componentAxis != MaxDimension - 1 ||
        scale[MaxDimension - 1] > 0 || tensor->GetMatrixSize() != static_cast<int>(this->GetAxes().size()))
    {
      throw ParameterError("coherence-enhancing diffusion needs a diffusion tensor over its axes, of which axis " +
                           std::to_string(MaxDimension - 1) + " is none");
    }
    tensor->Validate(ofTensors);
    if (tensor->skipsNan != skipsNan)
    {
      throw ParameterError("the diffusion tensor leaves NaN out, or the diffusion does; both must, or none");
    }
  }
  if (iterations < 1 || iterations > MostIterations)
  {
    throw ParameterError("there are " + std::to_string(iterations) + " iterations; the number must be from 1 to " +
                         std::to_string(MostIterations));
  }
  if (!(timeStep >= 0 && std::isfinite(timeStep) && contrast >= 0 && std::isfinite(contrast) && weight >= 0 &&
        std::isfinite(weight)))
  {
    throw ParameterError("the time step is " + std::to_string(timeStep) + ", the contrast " + std::to_string(contrast) +
                         " and the weight " + std::to_string(weight) + "; they must be finite and at least 0");
  }
  for (const double each : scale)
  {
    if (!(each >= 0 && std::isfinite(each)))
    {
      throw ParameterError("the scale of an axis is " + std::to_string(each) + "; it must be finite and at least 0");
    }
  }
}

} // namespace chunkwise
