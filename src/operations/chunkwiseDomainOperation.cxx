/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDomainOperation.h"

#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseDifferenceOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseRangeOperation.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseWindow.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

constexpr double CountableInDouble = 9007199254740992.0;
constexpr double CountableInFloat = 16777216.0;

const VarianceOperation *
AsVariance(const std::shared_ptr<const Operation> & window)
{
  return dynamic_cast<const VarianceOperation *>(window.get());
}

const MeanOperation *
AsMean(const std::shared_ptr<const Operation> & window)
{
  return dynamic_cast<const MeanOperation *>(window.get());
}

/** The convolutions through transforms, one after the other. */
const SequenceOperation *
AsTransforms(const std::shared_ptr<const Operation> & window)
{
  const auto * const sequence = dynamic_cast<const SequenceOperation *>(window.get());
  return sequence && dynamic_cast<const ImageConvolutionOperation *>(sequence->stages.at(0).get()) ? sequence : nullptr;
}

const RangeOperation *
AsRange(const std::shared_ptr<const Operation> & window)
{
  return dynamic_cast<const RangeOperation *>(window.get());
}

/** Maxima and minima, one after the other; empty if it is something else. */
std::vector<std::shared_ptr<const Operation>>
AsExtrema(const std::shared_ptr<const Operation> & window)
{
  const auto * const                            sequence = dynamic_cast<const SequenceOperation *>(window.get());
  std::vector<std::shared_ptr<const Operation>> extrema;
  if (sequence)
  {
    extrema = sequence->stages;
  }
  else
  {
    extrema.push_back(window);
  }
  const bool areExtrema = std::all_of(extrema.begin(), extrema.end(), [](const auto & stage) {
    return dynamic_cast<const ExtremumOperation *>(stage.get()) ||
           dynamic_cast<const FlatExtremumOperation *>(stage.get());
  });
  return areExtrema ? extrema : std::vector<std::shared_ptr<const Operation>>();
}

bool
IsMinimum(const Operation & extremum)
{
  const auto * const box = dynamic_cast<const ExtremumOperation *>(&extremum);
  return box ? box->minimum : dynamic_cast<const FlatExtremumOperation &>(extremum).minimum;
}

/** An extremum's window over a mask: 1 where it sees a voxel. */
std::shared_ptr<const Operation>
SeesAny(const Operation & extremum)
{
  const auto ofMask = [](auto copy) {
    copy->minimum = false;
    copy->boundary.constant = 1.0;
    return copy;
  };
  if (const auto * const box = dynamic_cast<const ExtremumOperation *>(&extremum))
  {
    return ofMask(std::make_shared<ExtremumOperation>(*box));
  }
  return ofMask(std::make_shared<FlatExtremumOperation>(dynamic_cast<const FlatExtremumOperation &>(extremum)));
}

double
VoxelsOf(const BoxOperation & box)
{
  double voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxels *= 2.0 * static_cast<double>(box.radius[a]) + 1.0;
  }
  return voxels;
}

/** No voxel of the kind has a larger magnitude. */
double
LargestOf(PixelKind kind)
{
  return std::ldexp(1.0, 8 * static_cast<int>(PixelSize(kind)));
}

WindowBoundary
BoundaryOf(const std::shared_ptr<const Operation> & window)
{
  if (const SequenceOperation * const transforms = AsTransforms(window))
  {
    return BoundaryOf(transforms->stages.at(0));
  }
  return dynamic_cast<const WindowedOperation &>(*window).boundary;
}

template <typename TOperation>
std::shared_ptr<const Operation>
WithConstant(const TOperation & operation, const PixelValue & constant)
{
  const auto copy = std::make_shared<TOperation>(operation);
  copy->boundary.constant = constant;
  return copy;
}

/** What weights of 1 give along one axis after the other: the least and the largest anywhere. Every step is monotonic,
 * rounding too, so what it gives at the ends of a range bounds what it gives within. */
template <typename TReal>
void
RangeOfOnes(const SeparableOperation & operation, const Coordinates & image, double & least, double & most)
{
  TReal lower = 1;
  TReal upper = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t radius = operation.Radius(a);
    if (operation.weights[a].empty())
    {
      continue;
    }
    const bool          renormalized = operation.boundary.mode == BoundaryMode::Renormalized && radius > 0;
    const std::int64_t  n = renormalized ? image[a] : 1;
    std::vector<double> norms(1, 1.0);
    if (renormalized)
    {
      norms = operation.GetNorms(a, n);
    }
    TReal nextLower = std::numeric_limits<TReal>::max();
    TReal nextUpper = 0;
    for (std::int64_t i = 0; i < n; ++i)
    {
      if (renormalized && i > radius && i + radius < n - 1)
      {
        i = n - 1 - radius; // the window is whole from the radius on
      }
      const std::int64_t begin = renormalized ? std::max<std::int64_t>(0, radius - i) : 0;
      const std::int64_t end = renormalized ? std::min(2 * radius, n - 1 - i + radius) : 2 * radius;
      TReal              below = 0;
      TReal              above = 0;
      for (std::int64_t t = begin; t <= end; ++t)
      {
        const auto weight = static_cast<TReal>(operation.weights[a][static_cast<std::size_t>(t)]);
        below = std::fma(weight, lower, below);
        above = std::fma(weight, upper, above);
      }
      const auto norm = static_cast<TReal>(norms[static_cast<std::size_t>(i)]);
      nextLower = std::min(nextLower, below * norm);
      nextUpper = std::max(nextUpper, above * norm);
    }
    lower = nextLower;
    upper = nextUpper;
  }
  least = lower;
  most = upper;
}

/** The same for a small kernel, at each combination of cuts. */
template <typename TReal>
void
RangeOfOnes(const ConvolutionOperation & operation, const Coordinates & image, double & least, double & most)
{
  const bool          renormalized = operation.boundary.mode == BoundaryMode::Renormalized;
  Coordinates         rows = Coordinates::Filled(1);
  std::vector<double> norms(1, 1.0);
  if (renormalized)
  {
    norms = operation.GetNorms(image);
    for (int a = 0; a < MaxDimension; ++a)
    {
      rows[a] = operation.GetNormRows(a, image[a]);
    }
  }
  TReal lower = std::numeric_limits<TReal>::max();
  TReal upper = 0;
  for (std::size_t entry = 0; entry < norms.size(); ++entry)
  {
    Coordinates first{};
    Coordinates last{};
    auto        rest = static_cast<std::int64_t>(entry);
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t radius = operation.radius[a];
      const std::int64_t row = rest % rows[a];
      rest /= rows[a];
      const std::int64_t i = rows[a] == image[a] || row <= radius ? row : image[a] - (rows[a] - row);
      first[a] = renormalized ? std::max<std::int64_t>(0, radius - i) : 0;
      last[a] = renormalized ? std::min(2 * radius, image[a] - 1 - i + radius) : 2 * radius;
    }
    TReal sum = 0;
    for (std::size_t tap = 0; tap < operation.weights.size(); ++tap)
    {
      auto at = static_cast<std::int64_t>(tap);
      bool inside = true;
      for (int a = 0; a < MaxDimension; ++a)
      {
        const std::int64_t t = at % (2 * operation.radius[a] + 1);
        at /= 2 * operation.radius[a] + 1;
        inside = inside && t >= first[a] && t <= last[a];
      }
      sum = inside ? std::fma(static_cast<TReal>(operation.weights[tap]), TReal(1), sum) : sum;
    }
    sum *= static_cast<TReal>(norms[entry]);
    lower = std::min(lower, sum);
    upper = std::max(upper, sum);
  }
  least = lower;
  most = upper;
}

} // namespace

std::string
DomainOperation::GetKey() const
{
  const char * const kinds[] = { "all", "mask", "weights" };
  return CompositeOperation::GetKey() + " " + window->GetKey() + " " + kinds[static_cast<int>(domain)] +
         (ignoresNan ? " nan" : "") + " " + PixelKindName(imageKind) + " " + ExactText(emptyValue);
}

PixelValue
DomainOperation::GetConstant(bool squared) const
{
  const WindowBoundary boundary = BoundaryOf(window);
  if (boundary.mode != BoundaryMode::Constant)
  {
    return 0.0;
  }
  if (!squared)
  {
    return boundary.constant;
  }
  return DispatchPixelKind(imageKind, [&](auto pixel) -> PixelValue {
    const auto value = static_cast<double>(ConstantPixel<decltype(pixel)>(boundary.constant));
    // Integers are squared exactly; they fit a double where their sums do.
    return IsFloatingPoint(imageKind) || !this->IsExact() ? PixelValue(value * value)
                                                          : PixelValue(static_cast<std::int64_t>(value * value));
  });
}

std::shared_ptr<const Operation>
DomainOperation::WindowOf(const PixelValue & constant, bool sums) const
{
  if (sums)
  {
    const auto & box = dynamic_cast<const BoxOperation &>(*window);
    const auto   sum = std::make_shared<MeanOperation>();
    sum->radius = box.radius;
    sum->boundary = box.boundary;
    sum->boundary.constant = constant;
    sum->sums = true;
    return sum;
  }
  if (const auto * const separable = dynamic_cast<const SeparableOperation *>(window.get()))
  {
    return WithConstant(*separable, constant);
  }
  if (const auto * const convolution = dynamic_cast<const ConvolutionOperation *>(window.get()))
  {
    return WithConstant(*convolution, constant);
  }
  const auto copy = std::make_shared<SequenceOperation>();
  for (const auto & stage : AsTransforms(window)->stages)
  {
    copy->stages.push_back(WithConstant(dynamic_cast<const ImageConvolutionOperation &>(*stage), constant));
  }
  return copy;
}

bool
DomainOperation::TakesRoot() const
{
  const VarianceOperation * const variance = AsVariance(window);
  return variance && variance->takesRoot;
}

bool
DomainOperation::IsExact() const
{
  return AsVariance(window) && !this->HasWeights() && !IsFloatingPoint(imageKind) && PixelSize(imageKind) <= 2 &&
         VoxelsOf(*AsVariance(window)) * LargestOf(imageKind) * LargestOf(imageKind) <= CountableInDouble;
}

PixelKind
DomainOperation::SumKind() const
{
  if (IsFloatingPoint(imageKind))
  {
    return imageKind;
  }
  const double largest = VoxelsOf(*AsMean(window)) * LargestOf(imageKind);
  return !this->HasWeights() && largest <= CountableInFloat ? PixelKind::Float32 : PixelKind::Float64;
}

std::vector<Stage>
DomainOperation::GetStages() const
{
  if (auto own = this->GetStagesWithoutQuotient(); !own.empty())
  {
    return own;
  }
  const VarianceOperation * const variance = AsVariance(window);
  const MeanOperation * const     mean = AsMean(window);
  const PixelKind                 real = UsesDouble(imageKind) ? PixelKind::Float64 : PixelKind::Float32;
  const auto                      extrema = AsExtrema(window);
  const bool                      isLinear = !mean && !variance && !AsRange(window) && extrema.empty();
  // A mask is kept in bytes where kernels take them as numbers of the same precision.
  PixelKind weight = PixelKind::UInt8;
  if (AsTransforms(window) || (variance && !this->IsExact()))
  {
    weight = PixelKind::Float64;
  }
  else if (mean && this->HasWeights())
  {
    weight = imageKind == PixelKind::Float32 ? PixelKind::Float32 : PixelKind::Float64;
  }
  else if (isLinear && (this->HasWeights() || UsesDouble(imageKind)))
  {
    weight = real;
  }
  const PixelKind value = weight == PixelKind::UInt8 ? imageKind : weight;

  std::vector<int> inputs;
  if (domain != DomainKind::All)
  {
    inputs.push_back(Stage::Input(1));
  }
  if (ignoresNan)
  {
    inputs.push_back(Stage::Input(0));
  }
  std::vector<Stage> stages;
  const auto         add =
    [&](std::shared_ptr<const Operation> operation, std::vector<int> from, PixelKind kind, const char * voxels = "") {
      stages.push_back({ std::move(operation), std::move(from), StageKind::Fixed, voxels, kind });
      return static_cast<int>(stages.size()) - 1;
    };
  const auto finish = [&](std::shared_ptr<const Operation> operation, std::vector<int> from, const char * voxels = "") {
    stages.push_back({ std::move(operation), std::move(from), StageKind::Output, voxels });
    return static_cast<int>(stages.size()) - 1;
  };

  const char * const inside = this->HasWeights() ? "domain.weights.voxels" : "domain.mask.voxels";
  const int          weights = add(nullptr, inputs, weight, inside);
  if (const RangeOperation * const range = AsRange(window))
  {
    const auto of = [&](bool minimum) {
      const auto extremum = std::make_shared<ExtremumOperation>();
      extremum->radius = range->radius;
      extremum->boundary = range->boundary;
      extremum->minimum = minimum;
      const char * const outside = minimum ? "domain.highest.voxels" : "domain.lowest.voxels";
      const int          seen = add(nullptr, { Stage::Input(), weights }, imageKind, outside);
      return std::make_pair(add(extremum, { seen }, imageKind), SeesAny(*extremum));
    };
    const auto maximum = of(false);
    const auto minimum = of(true);
    const int  range0 = finish(std::make_shared<DifferenceOperation>(), { maximum.first, minimum.first });
    const int  any = add(maximum.second, { weights }, PixelKind::UInt8);
    finish(nullptr, { range0, any }, "domain.filled.voxels");
    return stages;
  }
  if (!extrema.empty())
  {
    int from = Stage::Input();
    int seen = weights;
    for (std::size_t i = 0; i < extrema.size(); ++i)
    {
      const bool isLast = i + 1 == extrema.size();
      const int  hidden = add(
        nullptr, { from, seen }, imageKind, IsMinimum(*extrema[i]) ? "domain.highest.voxels" : "domain.lowest.voxels");
      from = isLast ? finish(extrema[i], { hidden }) : add(extrema[i], { hidden }, imageKind);
      const int any = add(SeesAny(*extrema[i]), { seen }, PixelKind::UInt8);
      // The next one sees what is inside and has a result.
      seen = isLast ? any : add(nullptr, { any, weights }, PixelKind::UInt8, "domain.values.voxels");
    }
    finish(nullptr, { from, seen }, "domain.filled.voxels");
    return stages;
  }
  const int values = add(nullptr, { Stage::Input(), weights }, value, "domain.values.voxels");
  if (variance)
  {
    const PixelKind squared = this->IsExact() ? PixelKind::UInt32 : PixelKind::Float64;
    const int       squares = add(nullptr, { Stage::Input(), weights }, squared, "domain.squares.voxels");
    const int       sum = add(this->WindowOf(this->GetConstant(false), true), { values }, PixelKind::Float64);
    const int       sumOfSquares = add(this->WindowOf(this->GetConstant(true), true), { squares }, PixelKind::Float64);
    const int       count = add(this->WindowOf(1.0, true), { weights }, PixelKind::Float64);
    const int       cut = finish(nullptr, { sum, sumOfSquares, count }, "domain.variance.voxels");
    if (!this->IsExact() && !this->HasWeights())
    {
      const int bytes = add(nullptr, inputs, PixelKind::UInt8, inside);
      const int own = add(nullptr, { Stage::Input(), bytes }, imageKind, "domain.values.voxels");
      const int whole = finish(window, { own });
      finish(nullptr, { cut, whole, count }, "domain.whole.voxels");
    }
    return stages;
  }
  if (mean && mean->sums)
  {
    finish(window, { values });
    return stages;
  }
  const PixelKind part = mean ? this->SumKind() : AsTransforms(window) ? PixelKind::Float64 : real;
  const int       numerator = add(this->WindowOf(this->GetConstant(false), mean), { values }, part);
  const int       denominator = add(this->WindowOf(1.0, mean), { weights }, part);
  finish(nullptr, { numerator, denominator }, "domain.quotient.voxels");
  return stages;
}

DomainOperation::Quotient
DomainOperation::GetQuotient(const Coordinates & image) const
{
  Quotient quotient;
  if (const MeanOperation * const mean = AsMean(window))
  {
    quotient.inDouble = !IsFloatingPoint(imageKind);
    quotient.truncates = mean->truncates;
  }
  else if (AsTransforms(window))
  {
    quotient.least = 1 - 1e-12;
    quotient.most = 1 + 1e-12;
    quotient.nothing = 1e-6;
  }
  else if (const auto * const separable = dynamic_cast<const SeparableOperation *>(window.get()))
  {
    UsesDouble(imageKind) ? RangeOfOnes<double>(*separable, image, quotient.least, quotient.most)
                          : RangeOfOnes<float>(*separable, image, quotient.least, quotient.most);
  }
  else if (const auto * const convolution = dynamic_cast<const ConvolutionOperation *>(window.get()))
  {
    UsesDouble(imageKind) ? RangeOfOnes<double>(*convolution, image, quotient.least, quotient.most)
                          : RangeOfOnes<float>(*convolution, image, quotient.least, quotient.most);
    quotient.whole = 0;
    for (const double weight : convolution->weights)
    {
      quotient.whole += weight;
    }
  }
  return quotient;
}

void
DomainOperation::CheckKinds(const std::vector<PixelKind> & inputs, PixelKind output) const
{
  if (inputs.at(0) != imageKind)
  {
    throw ParameterError(std::string("domain: made for voxels of ") + PixelKindName(imageKind) + ", the image has " +
                         PixelKindName(inputs[0]));
  }
  if (domain == DomainKind::All && !ignoresNan)
  {
    throw ParameterError("domain: nothing says which voxels are inside");
  }
  if (ignoresNan && !IsFloatingPoint(imageKind))
  {
    throw ParameterError(std::string("IgnoreNaN: the image's voxels are ") + PixelKindName(imageKind) +
                         ", of which none is NaN");
  }
  if (domain == DomainKind::Mask && IsFloatingPoint(inputs.at(1)))
  {
    throw ParameterError(std::string("MaskImage: its voxels are ") + PixelKindName(inputs[1]) +
                         "; a mask has integers, and real numbers are a WeightImage");
  }
  if (this->HasWeights() && !IsFloatingPoint(inputs.at(1)))
  {
    throw ParameterError(std::string("WeightImage: its voxels are ") + PixelKindName(inputs[1]) +
                         "; weights are float32 or float64, and integers are a MaskImage");
  }
  window->CheckKinds({ imageKind }, output);
  if (this->HasWeights() && this->IsCounted())
  {
    throw ParameterError(window->GetName() + ": its windows take a mask, but no weights");
  }
  if ((this->HasWeights() || ignoresNan) && (AsRange(window) || !AsExtrema(window).empty()))
  {
    throw ParameterError(window->GetName() + ": its windows take a mask alone; they never see NaN");
  }
  if (const MeanOperation * const mean = AsMean(window); mean && !IsFloatingPoint(output))
  {
    if (mean->sums && this->HasWeights())
    {
      throw ParameterError(std::string("WeightImage: weighted sums are real numbers, and the output's voxels are ") +
                           PixelKindName(output) + "; float32 and float64 serve");
    }
    if (!mean->sums && !this->HasWeights() && VoxelsOf(*mean) * LargestOf(imageKind) > CountableInDouble)
    {
      throw ParameterError("MaskImage: sums of " + PixelValue(VoxelsOf(*mean)).ToText() + " voxels of " +
                           PixelKindName(imageKind) + " may be beyond 2^53, which an exact mean in a mask is not; " +
                           "float32 and float64 serve as the output's voxels");
    }
  }
  CompositeOperation::CheckKinds(inputs, output);
}

void
DomainOperation::Validate(const Coordinates & image) const
{
  if (const auto * const convolution = dynamic_cast<const ConvolutionOperation *>(window.get()))
  {
    for (const double weight : convolution->weights)
    {
      if (!(weight >= 0.0))
      {
        throw ParameterError("Weights: " + PixelValue(weight).ToText() +
                             " is negative; with a mask, weights or IgnoreNaN none may be, since what is missing of "
                             "such a kernel cannot be made up for");
      }
    }
    if (convolution->IsZeroSum())
    {
      throw ParameterError("Weights: they sum to 0");
    }
  }
  CompositeOperation::Validate(image);
}

} // namespace chunkwise
