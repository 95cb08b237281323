/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFilterRows_h
#define chunkwiseFilterRows_h

#include "chunkwiseCheckedParameters.h"

namespace chunkwise
{

/** The rows, by capability. */
void
AddWindowFilters(std::vector<FilterDescription> & filters);
void
AddConvolutionFilters(std::vector<FilterDescription> & filters);
void
AddTableFilters(std::vector<FilterDescription> & filters);
void
AddReconstructionFilters(std::vector<FilterDescription> & filters);
void
AddObjectFilters(std::vector<FilterDescription> & filters);

void
AddDeconvolutionFilters(std::vector<FilterDescription> & filters);
void
AddDerivativeFilters(std::vector<FilterDescription> & filters);
void
AddEnhancementFilters(std::vector<FilterDescription> & filters);
void
AddDistanceFilters(std::vector<FilterDescription> & filters);
void
AddResampleFilters(std::vector<FilterDescription> & filters);
void
AddThresholdFilters(std::vector<FilterDescription> & filters);
void
AddAreaFilters(std::vector<FilterDescription> & filters);
void
AddWatershedFilters(std::vector<FilterDescription> & filters);

/** Element and Kernel of flat morphology. */
std::vector<ParameterDescription>
ElementParameters();
/** The same, and UpperRadius of boxes. */
std::vector<ParameterDescription>
WindowElementParameters();
ParameterDescription
UpperRadiusParameter();
/** `window`, a window over the box of Radius, over what UpperRadius makes of it. See MakeSided. */
std::shared_ptr<const Operation>
OverSides(const CheckedParameters & parameters, const FilterImage & image, std::shared_ptr<const Operation> window);
/** A dilation or erosion with the radius and the element of the parameters. */
std::shared_ptr<const Operation>
MakeExtremum(const CheckedParameters & parameters, const FilterImage & image, const WindowBoundary & boundary,
             bool minimum, bool reflected = false);
/** Lets windows of a filter be those of a part of the image: adds MaskImage, WeightImage, IgnoreNaN and, if a window
 * can be empty, EmptyValue. */
void
AddDomain(FilterDescription & row, bool canBeEmpty = true, bool tellsSeen = true);
/** The same of filters that take no weights: adds MaskImage, EmptyValue and, if NaN can be left out, IgnoreNaN. */
void
AddMask(FilterDescription & row, bool canIgnoreNan = false);
/** `window` in the part of the image that is given, or as it is. See DomainOperation. A window that `neverSeesNan`
 * leaves NaN out without being asked to. */
std::shared_ptr<const Operation>
InDomain(const CheckedParameters & parameters, const FilterImage & image, std::shared_ptr<const Operation> window,
         bool neverSeesNan = false);
/** The radius, cut where a renormalized window cannot grow. */
Coordinates
WindowRadius(const CheckedParameters & parameters, const FilterImage & image);
/** The spacing along an axis by which lengths are divided; 1 where they are in voxels. */
double
UnitOf(const CheckedParameters & parameters, const FilterImage & image, int axis);
class DerivativeOperation;
/** The diffusion tensors that follow from the structure tensor of Sigma, OuterSigma and Cutoff; one component after the
 * other along the last axis. */
std::shared_ptr<const DerivativeOperation>
MakeDiffusivity(const CheckedParameters & parameters, const FilterImage & image, double alpha, double coherence,
                bool skipsNan);
/** Sigma, UseImageSpacing and Cutoff. */
std::vector<ParameterDescription>
GaussianParameters();
/** The radius of a sampled Gaussian, cut where a renormalized window cannot grow; KernelRadius of filters that have it.
 */
std::int64_t
SampledRadius(const CheckedParameters & parameters, const FilterImage & image, int axis, double sigma, double least,
              double largest);

} // namespace chunkwise

#endif
