/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCheckedParameters_h
#define chunkwiseCheckedParameters_h

#include "chunkwiseFilters.h"
#include "chunkwiseOperations.h"

namespace chunkwise
{

/** The rows of the table of filters make their operations from it, see AddFilters.
 *
 * A filter's parameters as its row sees them: of the types that the table says, in their ranges, with defaults where
 * the caller set none. */
class Chunkwise_EXPORT CheckedParameters
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
  /** The same for an operation that keeps it. */
  std::shared_ptr<const KernelStack>
  SharedKernel(const std::string & name) const;
  std::shared_ptr<const NetworkGraph>
  Network(const std::string & name) const;

  /** A list with a number for each spatial axis, spread over all axes; axes that are not spatial get `other`. */
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
  /** The boundary of a filter with windows; if it differs from axis to axis, one that maps, see MakeFilterOperation. */
  WindowBoundary
  Boundary() const;
  /** Whether the boundary differs from axis to axis. */
  bool
  HasBoundaryPerAxis() const;
  /** With HasBoundaryPerAxis: the modes, and the constant if one of them needs it. */
  void
  GetBoundaryPerAxis(BoundaryMode (&modes)[MaxDimension], PixelValue & constant) const;
  /** "along axis 2" */
  static std::string
  Along(int axis);

private:
  void
  CheckAxes(const FilterImage & image);
  void
  CheckBoundary(const FilterImage & image);
  const ParameterValue &
  Get(const std::string & name) const;

  std::map<std::string, ParameterValue> m_Values;
  std::vector<int>                      m_Axes;
};

/** The words of a text, between commas. */
Chunkwise_EXPORT std::vector<std::string>
                 SplitWords(const std::string & text);
/** Throws ParameterError with a text that begins with the parameter's name. */
[[noreturn]] Chunkwise_EXPORT void
ThrowParameterError(const std::string & parameter, const std::string & text);

/** A parameter as most are. */
Chunkwise_EXPORT ParameterDescription
MakeParameter(const std::string & name, const std::string & option, ParameterType type, const std::string & help,
              const std::string & defaultText = "");
/** A number that is at least 0. */
Chunkwise_EXPORT ParameterDescription
MakeNonNegative(const std::string & name, const std::string & option, const std::string & help,
                const std::string & defaultText = "");
/** One of several words; without a default text the first. */
Chunkwise_EXPORT ParameterDescription
MakeChoice(const std::string & name, const std::string & option, const std::string & help,
           const std::vector<std::string> & choices, const std::string & defaultText = "");
/** Makes `parameter` one that has an effect only where that named `name` has one of `values`, with bars between them.
 */
Chunkwise_EXPORT ParameterDescription
OnlyWith(ParameterDescription parameter, const std::string & name, const std::string & values);
/** The parameters that many rows share. */
Chunkwise_EXPORT ParameterDescription
                 RadiusParameter();
Chunkwise_EXPORT std::vector<ParameterDescription>
                 BoundaryParameters();
Chunkwise_EXPORT ParameterDescription
                 SpatialAxesParameter();
Chunkwise_EXPORT std::vector<ParameterDescription>
                 Join(std::vector<ParameterDescription> first, const std::vector<ParameterDescription> & second);
} // namespace chunkwise

#endif
