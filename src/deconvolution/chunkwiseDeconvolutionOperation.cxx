/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDeconvolutionOperation.h"

#include "chunkwiseBoundedConvolution.h"
#include "chunkwiseError.h"

#include <cmath>

namespace chunkwise
{

namespace
{

void
RequireNumber(const char * name, double value, bool mayBeZero)
{
  if (!std::isfinite(value) || value < 0 || (value == 0 && !mayBeZero))
  {
    throw ParameterError(name, PixelValue(value).ToText(), mayBeZero ? "a number from 0" : "a number above 0");
  }
}

WindowBoundary
NothingBeyond()
{
  WindowBoundary boundary;
  boundary.mode = BoundaryMode::Constant;
  boundary.constant = 0.0;
  return boundary;
}

std::shared_ptr<const Operation>
MakeOneConvolution(const std::shared_ptr<const ConvolutionKernel> & kernel, const Box & known, const Box & asked)
{
  const auto operation = std::make_shared<BoundedConvolution>();
  operation->kernel = kernel;
  operation->known = known;
  operation->asked = asked;
  operation->boundary = NothingBeyond();
  // The lengths of cuFFT's transforms depend on chunks.
  operation->transforms = operation->IsForCufft() ? TransformProvider::Own : TransformProvider::Auto;
  return operation;
}

/** The operation's kernels on the grid of the estimate. */
std::shared_ptr<VaryingConvolutionOperation>
MakeVaryingOnEstimate(const DeconvolutionOperation & operation, VaryingOrder order)
{
  const auto varying = std::make_shared<VaryingConvolutionOperation>(*operation.varying);
  varying->boundary = NothingBeyond();
  varying->order = order;
  for (int a = 0; a < MaxDimension; ++a)
  {
    varying->first[a] += static_cast<double>(operation.GetMeasuredBox().lower[a]);
  }
  return varying;
}

} // namespace

std::string
DeconvolutionOperation::GetKey() const
{
  std::string key = GetName() + " " + std::to_string(static_cast<int>(method)) + " ";
  key += varying ? varying->GetKey() : kernel->GetKey();
  key += backProjector ? " back " + backProjector->GetKey() : std::string();
  for (const double number : { static_cast<double>(iterations),
                               background,
                               leastExpected,
                               totalVariation,
                               relaxation,
                               relativeChange,
                               discrepancy,
                               saturation })
  {
    key += " " + PixelValue(number).ToText();
  }
  return key + (accelerates ? " accelerated" : "") + (hasWeights ? " weights" : "") + (hasStart ? " start" : "");
}

Halo
DeconvolutionOperation::GetHalo(const Coordinates &) const
{
  // Sums over all of the image say when a run stops.
  Halo halo = Halo::None();
  for (int a = 0; a < MaxDimension; ++a)
  {
    halo.lower[a] = halo.upper[a] = image[a] > 1 ? WholeAxis : 0;
  }
  return halo;
}

void
DeconvolutionOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  if (inputs.at(0) != inputKind || output != outputKind)
  {
    throw ParameterError(std::string("the operation was made for ") + PixelTypeName(inputKind) + " and " +
                         PixelTypeName(outputKind) + ", but the images are of " + PixelTypeName(inputs.at(0)) +
                         " and " + PixelTypeName(output));
  }
}

void
DeconvolutionOperation::Validate(const Coordinates & extent) const
{
  if (extent != image)
  {
    throw ParameterError("the operation was made for an image of " + ToString(image) + ", but this one has " +
                         ToString(extent));
  }
  if (!kernel == !varying)
  {
    throw ParameterError("KernelImage: either one kernel or kernels of a grid are needed");
  }
  if (varying && backProjector)
  {
    throw ParameterError("BackProjector: kernels that vary have none of their own");
  }
  if (iterations < 1)
  {
    throw ParameterError("Iterations", std::to_string(iterations), "a number from 1");
  }
  RequireNumber("Background", background, true);
  RequireNumber("LeastExpected", leastExpected, true);
  RequireNumber("TotalVariation", totalVariation, true);
  RequireNumber("Relaxation", relaxation, false);
  RequireNumber("RelativeChange", relativeChange, true);
  RequireNumber("Discrepancy", discrepancy, true);
  if (std::isnan(saturation))
  {
    throw ParameterError("Saturation", "nan", "a number");
  }
  if (totalVariation > 0 && method != DeconvolutionMethod::RichardsonLucy)
  {
    throw ParameterError("TotalVariation", PixelValue(totalVariation).ToText(), "0 for this method");
  }
  const std::size_t count = varying ? varying->kernels.size() : 1;
  for (std::size_t i = 0; i < count; ++i)
  {
    const ConvolutionKernel & one = varying ? *varying->kernels[i] : *kernel;
    const char * const        name = varying ? "KernelImages" : "KernelImage";
    for (const double weight : one.GetWeights())
    {
      if (!std::isfinite(weight) || (weight < 0 && method == DeconvolutionMethod::RichardsonLucy))
      {
        throw ParameterError(name,
                             PixelValue(weight).ToText(),
                             method == DeconvolutionMethod::RichardsonLucy ? "a weight from 0" : "a finite weight");
      }
    }
    if (!one.GetWeights().empty() && one.GetSumOfMagnitudes() == 0)
    {
      throw ParameterError(name, "0", "a sum of weights above 0");
    }
  }
  if (backProjector && backProjector->GetExtent() != kernel->GetExtent())
  {
    throw ParameterError(
      "BackProjector", ToString(backProjector->GetExtent()), "of the kernel's size, " + ToString(kernel->GetExtent()));
  }
  MakeForward()->Validate(GetEstimateExtent());
  MakeBackward()->Validate(GetEstimateExtent());
}

Box
DeconvolutionOperation::GetMeasuredBox() const
{
  Box box = Box::FromExtent(image);
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t below = GetAnyKernel().GetExtent()[a] - 1 - GetAnyKernel().GetCenter()[a];
    box.lower[a] += below;
    box.upper[a] += below;
  }
  return box;
}

Coordinates
DeconvolutionOperation::GetEstimateExtent() const
{
  Coordinates extent = image;
  for (int a = 0; a < MaxDimension; ++a)
  {
    extent[a] += GetAnyKernel().GetExtent()[a] - 1;
  }
  return extent;
}

std::shared_ptr<const Operation>
DeconvolutionOperation::MakeForward() const
{
  return varying ? std::shared_ptr<const Operation>(MakeVaryingOnEstimate(*this, VaryingOrder::WeightThenConvolve))
                 : MakeOneConvolution(kernel, Box::FromExtent(GetEstimateExtent()), GetMeasuredBox());
}

std::shared_ptr<const Operation>
DeconvolutionOperation::MakeBackward() const
{
  if (!varying)
  {
    // Ratios are 0 beyond the measured image.
    return MakeOneConvolution(
      backProjector ? backProjector : kernel->Flipped(), GetMeasuredBox(), Box::FromExtent(GetEstimateExtent()));
  }
  const auto backward = MakeVaryingOnEstimate(*this, VaryingOrder::ConvolveThenWeight);
  for (auto & one : backward->kernels)
  {
    one = one->Flipped();
  }
  return backward;
}

} // namespace chunkwise
