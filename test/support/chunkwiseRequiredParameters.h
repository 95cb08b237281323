/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRequiredParameters_h
#define chunkwiseRequiredParameters_h

#include "chunkwiseFilters.h"
#ifdef CHUNKWISE_HAS_NETWORKS
#  include "chunkwiseSmallNetwork.h"
#endif
#include "chunkwiseVaryingConvolutionOperation.h"

namespace chunkwise
{

/** Values for what a row requires. */
inline FilterParameters
RequiredParameters(const FilterDescription & filter)
{
  FilterParameters parameters;
  for (const ParameterDescription & parameter : filter.parameters)
  {
    if (parameter.type == ParameterType::Kernel && parameter.required)
    {
      auto stack = std::make_shared<KernelStack>();
      stack->extent = { { 3, 1, 1, 1, 1 } };
      stack->kernels.assign(filter.FindParameter("GridSize") ? 2 : 1, { 1.0, 2.0, 3.0 });
      parameters.Set(parameter.name, stack);
    }
#ifdef CHUNKWISE_HAS_NETWORKS
    else if (parameter.type == ParameterType::Network)
    {
      parameters.Set(parameter.name, MakeSmallNetwork());
    }
#endif
    else if (parameter.required)
    {
      parameters.Set(parameter.name, ParseParameter(parameter, "1"));
    }
  }
  if (filter.name == "hysteresis")
  {
    parameters.SetReal("High", 40);
  }
  if (filter.name == "convolve")
  {
    parameters.Set("Radius", std::vector<std::int64_t>{ 1, 0, 0 });
    parameters.Set("Weights", std::vector<double>{ 1, 2, 3 });
  }
  if (filter.FindParameter("GridSize"))
  {
    parameters.Set("GridSize", std::vector<std::int64_t>{ 2, 1, 1 });
  }
  if (filter.name == "gaussian" || filter.name == "highpass" || filter.name == "log" || filter.name == "derivative" ||
      filter.name == "gradient" || filter.name == "hessian" || filter.name == "structure-tensor" ||
      filter.name == "divergence" || filter.name == "curvature")
  {
    parameters.SetReal("Sigma", 1.5);
  }
  if (filter.name == "divergence")
  {
    parameters.Set("OfGradient", true);
  }
  if (filter.name == "diffusion")
  {
    parameters.SetReal("GradientMagnitude", 20);
  }
  if (filter.name == "area-opening" || filter.name == "area-closing")
  {
    parameters.SetReal("Size", 20);
  }
  if (filter.name == "clahe")
  {
    parameters.Set("Range", std::vector<double>{ 0, 100 });
  }
  return parameters;
}

} // namespace chunkwise

#endif
