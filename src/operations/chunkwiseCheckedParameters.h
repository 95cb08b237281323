/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCheckedParameters_h
#define chunkwiseCheckedParameters_h

#include "chunkwiseFilters.h"
#include "chunkwiseOperations.h"

namespace chunkwise
{

/** A filter's parameters as its row sees them: of the types that the table says, in their ranges, with defaults where
 * the caller set none. */
class CheckedParameters
{
public:
  /** Throws ParameterError for what the table does not allow. */
  CheckedParameters(const FilterDescription & filter, const FilterParameters & parameters, const FilterImage & image);

  bool
  Has(const std::string & name) const
  {
    return m_Values.count(name) != 0;
  }
  bool
  Flag(const std::string & name) const;
  std::int64_t
  Integer(const std::string & name) const;
  double
  Real(const std::string & name) const;
  PixelValue
  Value(const std::string & name) const;
  const std::string &
  Choice(const std::string & name) const;
  const std::vector<double> &
  Reals(const std::string & name) const;
  const std::vector<std::int64_t> &
  Integers(const std::string & name) const;
  const KernelStack &
  Kernel(const std::string & name) const;
  std::shared_ptr<const NetworkGraph>
  Network(const std::string & name) const;

  /** A list with a number for each spatial axis, spread over all axes; `other` along those that are not spatial. */
  Coordinates
  OverAxes(const std::string & name, std::int64_t other = 0) const;
  std::vector<double>
  RealsOverAxes(const std::string & name, double other = 0.0) const;

  /** In the order that they were given, which that of lists follows. */
  const std::vector<int> &
  SpatialAxes() const
  {
    return m_Axes;
  }
  bool
  IsSpatial(int axis) const;
  /** The boundary of a filter with windows. */
  WindowBoundary
  Boundary() const;
  /** "along axis 2" */
  static std::string
  Along(int axis);

private:
  void
  CheckAxes(const FilterImage & image);
  void
  CheckBoundary(const FilterImage & image) const;
  const ParameterValue &
  Get(const std::string & name) const;

  std::map<std::string, ParameterValue> m_Values;
  std::vector<int>                      m_Axes;
};

/** Throws ParameterError with a text that begins with the parameter's name. */
[[noreturn]] void
ThrowParameterError(const std::string & parameter, const std::string & text);

/** The rows, by capability. */
void
AddWindowFilters(std::vector<FilterDescription> & filters);
void
AddConvolutionFilters(std::vector<FilterDescription> & filters);
void
AddTableFilters(std::vector<FilterDescription> & filters);
void
AddNetworkFilters(std::vector<FilterDescription> & filters);
void
AddReconstructionFilters(std::vector<FilterDescription> & filters);

/** The parameters that many rows share. */
ParameterDescription
RadiusParameter();
std::vector<ParameterDescription>
BoundaryParameters();
ParameterDescription
SpatialAxesParameter();
std::vector<ParameterDescription>
Join(std::vector<ParameterDescription> first, const std::vector<ParameterDescription> & second);
/** Element and Kernel of flat morphology. */
std::vector<ParameterDescription>
ElementParameters();
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

} // namespace chunkwise

#endif
