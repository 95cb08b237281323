/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDerivativeOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseLaplacianOperation.h"
#include "chunkwiseMeasureScaleOperation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace chunkwise
{

namespace
{

double
PowerOf(double base, int exponent)
{
  double power = 1;
  for (int i = 0; i < exponent; ++i)
  {
    power *= base;
  }
  return power;
}

double
Factorial(int n)
{
  return n < 2 ? 1.0 : n * Factorial(n - 1);
}

/** h of the taps first to last, see the class comment; zeros if there are too few. */
void
FitDerivative(const double * g, std::int64_t first, std::int64_t last, int order, double * h)
{
  if (last - first < order)
  {
    return;
  }
  // Around the middle of the taps and in units of their reach, which keeps the polynomials well conditioned.
  const double        middle = 0.5 * static_cast<double>(first + last);
  const double        unit = std::max(0.5 * static_cast<double>(last - first), 1.0);
  const auto          taps = static_cast<std::size_t>(last - first + 1);
  std::vector<double> before(taps, 0.0);
  std::vector<double> current(taps, 1.0);
  double              normBefore = 1;
  double              norm = 0;
  const auto u = [&](std::size_t i) { return (static_cast<double>(first) + static_cast<double>(i) - middle) / unit; };
  for (int degree = 0;; ++degree)
  {
    norm = 0;
    double moment = 0;
    for (std::size_t i = 0; i < taps; ++i)
    {
      const double square = g[first + static_cast<std::int64_t>(i)] * current[i] * current[i];
      norm += square;
      moment += u(i) * square;
    }
    if (degree == order)
    {
      break;
    }
    const double shift = moment / norm;
    const double share = degree == 0 ? 0.0 : norm / normBefore;
    for (std::size_t i = 0; i < taps; ++i)
    {
      const double next = (u(i) - shift) * current[i] - share * before[i];
      before[i] = current[i];
      current[i] = next;
    }
    normBefore = norm;
  }
  const double scale = Factorial(order) / (PowerOf(unit, order) * norm);
  for (std::size_t i = 0; i < taps; ++i)
  {
    h[first + static_cast<std::int64_t>(i)] = scale * g[first + static_cast<std::int64_t>(i)] * current[i];
  }
}

/** The derivative of the Gaussian at the taps of a whole window, as a correlation has it. */
void
SampleDerivative(const double * g, std::int64_t radius, int order, double sigma, double * h)
{
  for (std::int64_t t = 0; t <= 2 * radius; ++t)
  {
    const double x = static_cast<double>(t - radius) / sigma;
    const double hermite = order == 1 ? x : order == 2 ? x * x - 1.0 : x * (x * x - 3.0);
    h[t] = g[t] * hermite / PowerOf(sigma, order);
  }
}

} // namespace

std::vector<std::vector<DerivativeField>>
MakeDerivativeFields(const std::vector<DerivativeOrders> & components, const std::vector<int> & axes, bool ofVectors)
{
  std::vector<std::vector<DerivativeField>> passes(axes.size());
  // The field of each component before the pass.
  std::vector<int> at(components.size(), 0);
  if (ofVectors)
  {
    std::iota(at.begin(), at.end(), 0);
  }
  for (std::size_t pass = 0; pass < axes.size(); ++pass)
  {
    std::vector<DerivativeField> & fields = passes[pass];
    for (std::size_t i = 0; i < components.size(); ++i)
    {
      const DerivativeField field{ at[i], components[i][static_cast<std::size_t>(axes[pass])] };
      const auto            found = pass + 1 == axes.size()
                                      ? fields.end()
                                      : std::find_if(fields.begin(), fields.end(), [&](const DerivativeField & other) {
                               return other.source == field.source && other.order == field.order;
                             });
      at[i] = static_cast<int>(found - fields.begin());
      if (found == fields.end())
      {
        fields.push_back(field);
      }
    }
  }
  return passes;
}

std::string
DerivativeOperation::GetKey() const
{
  std::string key = GetName() + " " + BoundaryKey(boundary) + " " + std::to_string(static_cast<int>(result)) +
                    (componentAxis < 0 ? " " + std::to_string(chosen) : " components " + std::to_string(componentAxis));
  if (result == DerivativeResult::Measure)
  {
    key += " measure " + std::to_string(static_cast<int>(measure.measure)) + " " +
           std::to_string(measure.objectDimension) + " " + ExactText(measure.alpha) + " " + ExactText(measure.beta) +
           " " + ExactText(measure.tau) + (measure.dark ? " dark" : "") + (measure.scales ? " scales" : "");
  }
  if (result == DerivativeResult::Cornerness)
  {
    key += " harris " + ExactText(tensor.harris);
  }
  if (result == DerivativeResult::Diffusivity)
  {
    key += " diffusivity " + ExactText(tensor.alpha) + " " + ExactText(tensor.coherence);
  }
  if (result == DerivativeResult::Curvature)
  {
    key += " curvature " + std::to_string(static_cast<int>(curvature.kind)) + " " + ExactText(curvature.leastGradient);
  }
  key += std::string(ofVectors ? " vectors" : "") + (skipsNan ? " skips" : "");
  if (gradient)
  {
    key += " of (" + gradient->GetKey() + ")";
  }
  for (const DerivativeOrders & orders : components)
  {
    key += "/";
    for (const int order : orders)
    {
      key += std::to_string(order);
    }
  }
  for (const DerivativeScale & scale : scales)
  {
    key += "|" + ExactText(scale.contrast) + (scale.keepsSum ? " sums" : "") + (scale.smooths ? "" : " central");
    for (int a = 0; a < MaxDimension; ++a)
    {
      key += "|" + ExactText(scale.factor[a]) + "," + ExactText(scale.sampled[a]) + ":";
      for (const double weight : scale.weights[a])
      {
        key += ExactText(weight) + ",";
      }
    }
  }
  return key;
}

void
DerivativeOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  WindowedOperation::CheckKinds(inputs, output);
  for (const PixelType kind : inputs)
  {
    if (kind != inputs.front())
    {
      throw ParameterError(std::string("components of vectors are ") + PixelTypeName(inputs.front()) + " and " +
                           PixelTypeName(kind) + "; they must be of one pixel type");
    }
  }
}

Coordinates
DerivativeOperation::GetRadius(std::size_t scale) const
{
  Coordinates radius{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    radius[a] = static_cast<std::int64_t>(scales[scale].weights[a].size() / 2);
  }
  return radius;
}

Halo
DerivativeOperation::GetHalo(const Coordinates &) const
{
  Coordinates radius{};
  for (std::size_t scale = 0; scale < scales.size(); ++scale)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      radius[a] = std::max(radius[a], this->GetRadius(scale)[a]);
    }
  }
  for (int a = 0; gradient && a < MaxDimension; ++a)
  {
    radius[a] += gradient->GetRadius(0)[a];
  }
  return { radius, radius };
}

Coordinates
DerivativeOperation::RoundChunk(const Coordinates & extent) const
{
  Coordinates rounded = extent;
  if (componentAxis >= 0)
  {
    // One component takes as long as all.
    rounded[componentAxis] = this->GetNumberOfResults();
  }
  return rounded;
}

void
DerivativeOperation::Validate(const Coordinates & image) const
{
  if (components.empty() || scales.empty())
  {
    throw ParameterError("a derivative needs at least one component and one scale");
  }
  if (gradient)
  {
    gradient->Validate(image);
    const std::size_t n = gradient->components.size();
    if (gradient->result != DerivativeResult::Components || gradient->componentAxis >= 0 || gradient->gradient ||
        gradient->boundary.mode != boundary.mode || components.size() != n * (n + 1) / 2 || scales.size() != 1)
    {
      throw ParameterError("a structure tensor has one scale, the products of " + std::to_string(n) +
                           " derivatives as its components, and their boundary");
    }
  }
  if (this->TakesMatrix())
  {
    const int size = this->GetMatrixSize();
    if (static_cast<int>(components.size()) != size * (size + 1) / 2)
    {
      throw ParameterError(std::to_string(components.size()) + " derivatives are no triangle of a symmetric matrix");
    }
    if (result == DerivativeResult::Measure && (!(measure.alpha > 0 && measure.beta > 0 && measure.tau >= 0) ||
                                                measure.objectDimension < 0 || measure.objectDimension >= size))
    {
      throw ParameterError("objects of " + std::to_string(measure.objectDimension) + " dimensions are measured in " +
                           std::to_string(size) + ", with alpha " + std::to_string(measure.alpha) + ", beta " +
                           std::to_string(measure.beta) + " and tau " + std::to_string(measure.tau) +
                           "; they must have fewer dimensions, and alpha and beta be above 0");
    }
  }
  this->ValidateCurvature();
  this->ValidateSkipping();
  if (ofVectors && (result != DerivativeResult::Sum || components.size() > static_cast<std::size_t>(MaxInputs)))
  {
    throw ParameterError(std::to_string(components.size()) +
                         " inputs have a sum of derivatives alone, and are at most " + std::to_string(MaxInputs));
  }
  if (scales.size() > 1 && result != DerivativeResult::Measure)
  {
    throw ParameterError("measures alone have several scales");
  }
  if (chosen < 0 || chosen >= this->GetNumberOfResults())
  {
    throw ParameterError("number " + std::to_string(chosen) + " is none of " +
                         std::to_string(this->GetNumberOfResults()) + " results, which have numbers from 0 on");
  }
  if (componentAxis >= 0 && image[componentAxis] != this->GetNumberOfResults())
  {
    throw ParameterError("the image has " + std::to_string(image[componentAxis]) + " voxels along axis " +
                         std::to_string(componentAxis) + ", which is that of " +
                         std::to_string(this->GetNumberOfResults()) + " components");
  }
  for (const DerivativeScale & scale : scales)
  {
    this->ValidateScale(scale);
  }
}

void
DerivativeOperation::ValidateCurvature() const
{
  if (result != DerivativeResult::Curvature)
  {
    return;
  }
  if (components.size() != 9 && components.size() != 5)
  {
    throw ParameterError(std::to_string(components.size()) + " derivatives are no gradient and Hessian along two or " +
                         "three axes");
  }
  if (components.size() == 5 && curvature.kind != CurvatureKind::LevelSet && curvature.kind != CurvatureKind::Mean)
  {
    throw ParameterError("isocontours along two axes have one curvature alone");
  }
  if (!(curvature.leastGradient >= 0 && std::isfinite(curvature.leastGradient)))
  {
    throw ParameterError("the least gradient is " + std::to_string(curvature.leastGradient) +
                         "; it must be finite and at least 0");
  }
}

void
DerivativeOperation::ValidateSkipping() const
{
  if (gradient && gradient->skipsNan != skipsNan)
  {
    throw ParameterError("a structure tensor and its gradient both leave NaN out, or none does");
  }
  bool canSkip = boundary.mode == BoundaryMode::Renormalized;
  for (const DerivativeScale & scale : scales)
  {
    canSkip = canSkip && scale.smooths && !scale.keepsSum &&
              std::all_of(std::begin(scale.sampled), std::end(scale.sampled), [](double sigma) { return sigma == 0; });
  }
  for (const DerivativeOrders & orders : components)
  {
    canSkip = canSkip && std::all_of(orders.begin(), orders.end(), [](int order) { return order <= 1; });
  }
  if (skipsNan && !canSkip)
  {
    throw ParameterError("derivatives that leave NaN out have fitted weights, orders of 0 and 1, and windows that end "
                         "at the image's edge");
  }
}

void
DerivativeOperation::ValidateScale(const DerivativeScale & scale) const
{
  if (!(scale.contrast >= 0 && std::isfinite(scale.contrast)))
  {
    throw ParameterError("the contrast is " + std::to_string(scale.contrast) + "; it must be finite and at least 0");
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::string           axis = "along axis " + std::to_string(a);
    const std::vector<double> & window = scale.weights[a];
    if (!std::isfinite(scale.factor[a]) || !(scale.sampled[a] >= 0 && std::isfinite(scale.sampled[a])))
    {
      throw ParameterError("the factor " + axis + " is " + std::to_string(scale.factor[a]) + " and sigma " +
                           std::to_string(scale.sampled[a]) + "; both must be finite, and sigma at least 0");
    }
    for (const DerivativeOrders & orders : components)
    {
      const int order = orders[static_cast<std::size_t>(a)];
      if (order < 0 || order > LargestOrder || (order > 0 && window.size() < 2))
      {
        throw ParameterError("the order of a derivative " + axis + " is " + std::to_string(order) +
                             "; it must be from 0 to 3, and 0 where no window is");
      }
    }
    if (window.empty())
    {
      continue;
    }
    if (a == componentAxis)
    {
      throw ParameterError("there is a window " + axis + ", which is that of components");
    }
    if (window.size() % 2 == 0 || window.size() > 131071)
    {
      throw ParameterError("the window has " + std::to_string(window.size()) + " weights " + axis +
                           "; the number must be odd, up to 131071");
    }
    for (std::size_t i = 0; i < window.size(); ++i)
    {
      if (!(window[i] > 0 && std::isfinite(window[i])) || window[i] != window[window.size() - 1 - i])
      {
        throw ParameterError("a weight " + axis + " is " + std::to_string(window[i]) +
                             "; weights must be finite, greater than 0 and symmetric");
      }
    }
  }
}

std::int64_t
DerivativeOperation::GetNumberOfRows(std::size_t scale, int a, std::int64_t n) const
{
  return boundary.mode == BoundaryMode::Renormalized
           ? std::min(n, std::max<std::int64_t>(1, static_cast<std::int64_t>(scales[scale].weights[a].size())))
           : 1;
}

std::vector<double>
DerivativeOperation::GetTable(std::size_t number, int a, int order, std::int64_t n) const
{
  const DerivativeScale &   scale = scales[number];
  const std::vector<double> ones{ 1.0 };
  const auto &              window = scale.weights[a].empty() ? ones : scale.weights[a];
  const auto                taps = static_cast<std::int64_t>(window.size());
  const std::int64_t        radius = taps / 2;
  const std::int64_t        rows = GetNumberOfRows(number, a, n);
  double                    whole = 0;
  for (const double weight : window)
  {
    whole += weight;
  }
  const double        power = PowerOf(scale.factor[a], order) * (scale.keepsSum ? whole : 1.0);
  std::vector<double> table(static_cast<std::size_t>(rows * taps), 0.0);
  std::vector<double> g(static_cast<std::size_t>(taps));
  for (std::int64_t row = 0; row < rows; ++row)
  {
    std::int64_t first = 0;
    std::int64_t last = taps - 1;
    if (boundary.mode == BoundaryMode::Renormalized)
    {
      // A position that has this row.
      const std::int64_t i = row <= radius || rows == n ? row : n - (rows - row);
      first = std::max<std::int64_t>(0, radius - i);
      last = std::min(taps - 1, n - 1 - i + radius);
    }
    const bool isWhole = last - first == taps - 1;
    double     sum = 0;
    std::fill(g.begin(), g.end(), 0.0);
    for (std::int64_t t = first; t <= last; ++t)
    {
      sum += window[static_cast<std::size_t>(t)];
    }
    for (std::int64_t t = first; t <= last; ++t)
    {
      g[static_cast<std::size_t>(t)] = window[static_cast<std::size_t>(t)] / sum;
    }
    double * const h = table.data() + row * taps;
    if (order == 0 && !scale.smooths)
    {
      h[radius] = 1.0;
    }
    else if (order == 0)
    {
      std::copy(g.begin(), g.end(), h);
    }
    else if (isWhole && scale.sampled[a] > 0)
    {
      SampleDerivative(g.data(), radius, order, scale.sampled[a], h);
    }
    else
    {
      FitDerivative(g.data(), first, last, order, h);
    }
    if (isWhole)
    {
      // Exactly symmetric, as the arithmetic takes it.
      const double sign = order % 2 == 1 ? -1 : 1;
      double       rest = 0;
      for (std::int64_t t = 0; t < radius; ++t)
      {
        const double mean = 0.5 * (h[t] + sign * h[taps - 1 - t]);
        h[t] = mean;
        h[taps - 1 - t] = sign * mean;
        rest += 2.0 * mean;
      }
      if (order > 0)
      {
        h[radius] = order == 2 && scale.sampled[a] > 0 ? h[radius] + rest : 0.0;
      }
    }
    for (std::int64_t t = 0; t < taps; ++t)
    {
      h[t] *= power;
    }
  }
  return table;
}

std::string
ScaleStepOperation::GetKey() const
{
  return GetName() + (givesScale ? " " + ExactText(scale) : std::string(" largest")) + (isFirst ? " first" : "");
}

void
ScaleStepOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType) const
{
  if (!IsFloatingPoint(inputs.at(0)) || inputs.back() != inputs.front())
  {
    throw ParameterError("measures are float32 or float64, and all of one kind");
  }
}

std::vector<Stage>
MeasureScaleOperation::GetStages() const
{
  std::vector<Stage> stages;
  int                largest = -1;
  int                found = -1;
  const auto         add = [&](std::shared_ptr<const Operation> operation, const std::vector<int> & inputs) {
    stages.push_back({ std::move(operation), inputs, StageKind::Real });
    return static_cast<int>(stages.size()) - 1;
  };
  for (std::size_t i = 0; i < measure.scales.size(); ++i)
  {
    const auto one = std::make_shared<DerivativeOperation>(measure);
    one->scales = { measure.scales[i] };
    const int  here = add(one, { Stage::Input() });
    const auto step = std::make_shared<ScaleStepOperation>();
    step->scale = scales[i];
    step->isFirst = i == 0;
    found = add(step, i == 0 ? std::vector<int>{ here } : std::vector<int>{ here, largest, found });
    if (i == 0)
    {
      largest = here;
    }
    else if (i + 1 < measure.scales.size())
    {
      const auto larger = std::make_shared<ScaleStepOperation>();
      larger->givesScale = false;
      largest = add(larger, { here, largest });
    }
  }
  stages.back().kind = StageKind::Output;
  return stages;
}

} // namespace chunkwise
