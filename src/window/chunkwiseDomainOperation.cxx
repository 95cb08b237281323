/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDomainOperation.h"

#include "chunkwiseBoxStatisticOperation.h"
#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseDifferenceOperation.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseFootprintOperation.h"
#include "chunkwiseHighPassOperation.h"
#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseMaskCountOperation.h"
#include "chunkwiseRangeOperation.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseVaryingConvolutionOperation.h"
#include "chunkwiseWienerOperation.h"
#include "chunkwiseWindow.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

constexpr double CountableInDouble = 9007199254740992.0;
constexpr double CountableInFloat = 16777216.0;

template <typename TOperation>
const TOperation *
As(const std::shared_ptr<const Operation> & window)
{
  return dynamic_cast<const TOperation *>(window.get());
}

/** The convolutions through transforms, one after the other. */
const SequenceOperation *
AsTransforms(const std::shared_ptr<const Operation> & window)
{
  const auto * const sequence = dynamic_cast<const SequenceOperation *>(window.get());
  return sequence && dynamic_cast<const ImageConvolutionOperation *>(sequence->stages.at(0).get()) ? sequence : nullptr;
}

/** Whether rounding depends on chunks. */
bool
IsThroughTransforms(const std::shared_ptr<const Operation> & window)
{
  const auto * const image = As<ImageConvolutionOperation>(window);
  return AsTransforms(window) || As<VaryingConvolutionOperation>(window) ||
         (image && image->GetName() == "convolution.fft");
}

/** The box of a window that has one, as another operation. */
template <typename TBox, typename TWindow>
std::shared_ptr<TBox>
MakeBoxOf(const TWindow & window)
{
  const auto box = std::make_shared<TBox>();
  box->radius = window.radius;
  box->boundary = window.boundary;
  return box;
}

void
CheckKernel(const char * name, const std::vector<double> & weights, double sum)
{
  for (const double weight : weights)
  {
    if (!(weight >= 0.0))
    {
      throw ParameterError(std::string(name) + ": " + PixelValue(weight).ToText() +
                           " is negative; with a mask, weights or IgnoreNaN none may be, since what is missing of "
                           "such a kernel cannot be made up for");
    }
  }
  if (!weights.empty() && !(sum > 0))
  {
    throw ParameterError(std::string(name) + ": its voxels sum to 0");
  }
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

/** Whether the window is a mean or a sum, over a box or a footprint. */
bool
IsMean(const std::shared_ptr<const Operation> & window)
{
  return As<MeanOperation>(window) || As<FootprintOperation>(window);
}

double
VoxelsOf(const Operation & window)
{
  if (const auto * const footprint = dynamic_cast<const FootprintOperation *>(&window))
  {
    return static_cast<double>(std::count(footprint->element.begin(), footprint->element.end(), 1));
  }
  const auto & box = dynamic_cast<const BoxOperation &>(window);
  double       voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxels *= 2.0 * static_cast<double>(box.radius[a]) + 1.0;
  }
  return voxels;
}

/** No voxel of the kind has a larger magnitude. */
double
LargestOf(PixelType kind)
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

/** The least and the largest result that weights of 1 give along one axis after the other. Every step is monotonic,
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
    std::vector<double> norms(1, 1.0);
    if (renormalized)
    {
      norms = operation.GetNorms(a, image[a]);
    }
    const auto n = static_cast<std::int64_t>(norms.size());
    TReal      nextLower = std::numeric_limits<TReal>::max();
    TReal      nextUpper = 0;
    for (std::int64_t i = 0; i < n; ++i)
    {
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
         (ignoresNan ? " nan" : "") + (insideAlone ? " inside" : "") + (marksSeen ? " seen" : "") + " " +
         PixelTypeName(imageKind) + " " + ExactText(emptyValue);
}

PixelValue
DomainOperation::GetConstant(bool squared) const
{
  const WindowBoundary boundary = BoundaryOf(this->GetAverage());
  if (boundary.mode != BoundaryMode::Constant)
  {
    return 0.0;
  }
  if (!squared)
  {
    return boundary.constant;
  }
  return DispatchPixelType(imageKind, [&](auto pixel) -> PixelValue {
    const auto value = static_cast<double>(ConstantPixel<decltype(pixel)>(boundary.constant));
    // Integers are squared exactly; they fit a double where their sums do.
    return IsFloatingPoint(imageKind) || !this->IsExact() ? PixelValue(value * value)
                                                          : PixelValue(static_cast<std::int64_t>(value * value));
  });
}

std::shared_ptr<const Operation>
DomainOperation::GetAverage() const
{
  if (const auto * const variance = As<VarianceOperation>(window))
  {
    return MakeBoxOf<MeanOperation>(*variance);
  }
  if (const auto * const wiener = As<WienerOperation>(window))
  {
    return MakeBoxOf<MeanOperation>(*wiener);
  }
  const auto * const footprint = As<FootprintOperation>(window);
  if (footprint && footprint->TakesVariance())
  {
    const auto mean = std::make_shared<FootprintOperation>(*footprint);
    mean->statistic = FootprintStatistic::Mean;
    return mean;
  }
  const auto * const highPass = As<HighPassOperation>(window);
  return highPass ? highPass->smoothing : window;
}

std::shared_ptr<const Operation>
DomainOperation::WindowOf(const PixelValue & constant, PixelType kind) const
{
  const auto average = this->GetAverage();
  if (const auto * const table = As<BoxStatisticOperation>(average))
  {
    const auto sum = std::make_shared<BoxStatisticOperation>(*table);
    sum->statistic = BoxStatistic::Sum;
    sum->anchored = !SumsAreExact(kind, false);
    return sum;
  }
  if (const auto * const mean = As<MeanOperation>(average))
  {
    const auto sum = MakeBoxOf<MeanOperation>(*mean);
    sum->boundary.constant = constant;
    sum->sums = true;
    return sum;
  }
  if (const auto * const footprint = As<FootprintOperation>(average))
  {
    const auto sum = std::make_shared<FootprintOperation>(*footprint);
    sum->boundary.constant = constant;
    sum->statistic = FootprintStatistic::Sum;
    return sum;
  }
  if (const auto * const separable = As<SeparableOperation>(average))
  {
    return WithConstant(*separable, constant);
  }
  if (const auto * const convolution = As<ConvolutionOperation>(average))
  {
    return WithConstant(*convolution, constant);
  }
  if (const auto * const image = As<ImageConvolutionOperation>(average))
  {
    return WithConstant(*image, constant);
  }
  if (const auto * const varying = As<VaryingConvolutionOperation>(average))
  {
    return WithConstant(*varying, constant);
  }
  const auto copy = std::make_shared<SequenceOperation>();
  for (const auto & stage : AsTransforms(average)->stages)
  {
    copy->stages.push_back(WithConstant(dynamic_cast<const ImageConvolutionOperation &>(*stage), constant));
  }
  return copy;
}

bool
DomainOperation::TakesVariance() const
{
  const auto * const table = As<BoxStatisticOperation>(window);
  const auto * const footprint = As<FootprintOperation>(window);
  return As<VarianceOperation>(window) || As<WienerOperation>(window) || (table && table->TakesSquares()) ||
         (footprint && footprint->TakesVariance());
}

bool
DomainOperation::TakesRoot() const
{
  const auto * const variance = As<VarianceOperation>(window);
  const auto * const table = As<BoxStatisticOperation>(window);
  const auto * const footprint = As<FootprintOperation>(window);
  return (variance && variance->takesRoot) ||
         (footprint && footprint->statistic == FootprintStatistic::StandardDeviation) ||
         (table && table->statistic == BoxStatistic::StandardDeviation);
}

bool
DomainOperation::IsExact() const
{
  return this->TakesVariance() && !this->HasWeights() && !IsFloatingPoint(imageKind) && PixelSize(imageKind) <= 2 &&
         VoxelsOf(*this->GetAverage()) * LargestOf(imageKind) * LargestOf(imageKind) <= CountableInDouble;
}

PixelType
DomainOperation::SumKind() const
{
  if (IsFloatingPoint(imageKind))
  {
    return imageKind;
  }
  const double largest = VoxelsOf(*this->GetAverage()) * LargestOf(imageKind);
  // The sums of a Wiener filter serve the variance too.
  return !this->HasWeights() && !this->TakesVariance() && largest <= CountableInFloat ? PixelType::Float32
                                                                                      : PixelType::Float64;
}

/** The stages of a domain as they are put together. */
class DomainOperation::StageList
{
public:
  explicit StageList(const DomainOperation & operation)
    : m_Operation(operation)
    , m_Average(operation.GetAverage())
  {}

  std::vector<Stage>
  Make()
  {
    const auto extrema = AsExtrema(m_Operation.window);
    if (m_Operation.marksSeen)
    {
      this->AddSeen(extrema);
    }
    else if (const auto * const range = As<RangeOperation>(m_Operation.window))
    {
      this->AddRange(*range);
    }
    else if (!extrema.empty())
    {
      this->AddExtrema(extrema);
    }
    else
    {
      this->AddSums();
    }
    return std::move(m_Stages);
  }

private:
  using Pointer = std::shared_ptr<const Operation>;

  /** A result: an average or a variance, and what is above 0 where its window is not empty. */
  struct Result
  {
    int value;
    int seen;
  };

  /** Gives the number of an equal stage if there is one. */
  int
  Add(Stage stage)
  {
    for (std::size_t i = 0; i < m_Stages.size(); ++i)
    {
      const Stage & other = m_Stages[i];
      if (other.inputs == stage.inputs && other.kind == stage.kind && other.fixed == stage.fixed &&
          other.voxelKernel == stage.voxelKernel && !other.operation == !stage.operation &&
          (!stage.operation || other.operation->GetKey() == stage.operation->GetKey()))
      {
        return static_cast<int>(i);
      }
    }
    m_Stages.push_back(std::move(stage));
    return static_cast<int>(m_Stages.size()) - 1;
  }
  int
  AddWindow(Pointer operation, std::vector<int> from, PixelType kind)
  {
    return this->Add({ std::move(operation), std::move(from), StageKind::Fixed, "", kind });
  }
  int
  AddVoxels(const char * kernel, std::vector<int> from, PixelType kind)
  {
    return this->Add({ nullptr, std::move(from), StageKind::Fixed, kernel, kind });
  }
  int
  AddVoxels(const char * kernel, std::vector<int> from, StageKind kind = StageKind::Output)
  {
    return this->Add({ nullptr, std::move(from), kind, kernel });
  }

  /** The weights as voxels of a kind; as bytes 1 where they are above 0. */
  int
  AddWeights(PixelType kind)
  {
    std::vector<int> inputs;
    if (m_Operation.domain != DomainKind::All)
    {
      inputs.push_back(Stage::Input(m_Operation.window->GetNumberOfInputs()));
    }
    if (m_Operation.ignoresNan)
    {
      inputs.push_back(Stage::Input());
    }
    const bool isWeight = m_Operation.HasWeights() && kind != PixelType::UInt8;
    return this->AddVoxels(isWeight ? "domain.weights.voxels" : "domain.mask.voxels", inputs, kind);
  }
  /** The kind of voxels times weights of a kind. A mask is kept in bytes where kernels take them as numbers of the same
   * precision. */
  PixelType
  KindOfValues(PixelType weights) const
  {
    return weights == PixelType::UInt8 ? m_Operation.imageKind : weights;
  }
  int
  AddValues(PixelType weights)
  {
    return this->AddVoxels(
      "domain.values.voxels", { Stage::Input(), this->AddWeights(weights) }, this->KindOfValues(weights));
  }
  /** The inputs of the window, of which the first is `from`. */
  std::vector<int>
  InputsOf(int from) const
  {
    std::vector<int> inputs{ from };
    for (int i = 1; i < m_Operation.window->GetNumberOfInputs(); ++i)
    {
      inputs.push_back(Stage::Input(i));
    }
    return inputs;
  }
  int
  AddSum(const PixelValue & constant, int from, PixelType fromKind, PixelType kind)
  {
    return this->AddWindow(m_Operation.WindowOf(constant, fromKind), this->InputsOf(from), kind);
  }
  /** The same of weights. */
  int
  AddSumOfWeights(PixelType weights, PixelType kind)
  {
    Pointer            sum = m_Operation.WindowOf(1.0, weights);
    const auto * const mean = As<MeanOperation>(sum);
    if (mean && weights == PixelType::UInt8)
    {
      sum = std::make_shared<MaskCountOperation>(*mean);
    }
    return this->AddWindow(sum, this->InputsOf(this->AddWeights(weights)), kind);
  }
  /** The number of voxels of weight above 0. */
  int
  AddCount()
  {
    return this->AddSumOfWeights(PixelType::UInt8, PixelType::Float64);
  }

  PixelType
  KindOfAverageWeights() const
  {
    const PixelType kind = m_Operation.imageKind;
    if (As<BoxStatisticOperation>(m_Average))
    {
      return m_Operation.HasWeights() ? PixelType::Float64 : PixelType::UInt8;
    }
    if (IsThroughTransforms(m_Average))
    {
      return PixelType::Float64;
    }
    if (IsMean(m_Average))
    {
      return !m_Operation.HasWeights() ? PixelType::UInt8 : kind == PixelType::Float32 ? kind : PixelType::Float64;
    }
    return !m_Operation.HasWeights() && !UsesDouble(kind) ? PixelType::UInt8 : RealKind();
  }
  PixelType
  RealKind() const
  {
    return UsesDouble(m_Operation.imageKind) ? PixelType::Float64 : PixelType::Float32;
  }

  bool
  IsDirectImage() const
  {
    return As<ImageConvolutionOperation>(m_Average) && !IsThroughTransforms(m_Average);
  }
  /** The kind of numerators and denominators. */
  PixelType
  KindOfParts() const
  {
    const bool inDouble =
      this->IsDirectImage() || IsThroughTransforms(m_Average) || As<BoxStatisticOperation>(m_Average) != nullptr;
    return IsMean(m_Average) ? m_Operation.SumKind() : inDouble ? PixelType::Float64 : this->RealKind();
  }
  int
  AddDenominator()
  {
    return this->AddSumOfWeights(this->IsDirectImage() ? PixelType::Float64 : this->KindOfAverageWeights(),
                                 this->KindOfParts());
  }

  Result
  AddAverage(StageKind kind)
  {
    const PixelType weight = this->KindOfAverageWeights();
    const PixelType part = this->KindOfParts();
    const int       numerator =
      this->AddSum(m_Operation.GetConstant(false), this->AddValues(weight), this->KindOfValues(weight), part);
    const int          denominator = this->AddDenominator();
    const char * const rule =
      As<VaryingConvolutionOperation>(m_Average) ? "domain.varying.voxels" : "domain.quotient.voxels";
    return { this->AddVoxels(rule, { numerator, denominator }, kind), denominator };
  }

  Result
  AddVariance(StageKind kind)
  {
    const auto * const table = As<BoxStatisticOperation>(m_Operation.window);
    const PixelType    image = m_Operation.imageKind;
    const bool         isExact = m_Operation.IsExact();
    const PixelType    weight = isExact ? PixelType::UInt8 : PixelType::Float64;
    const PixelType    real = PixelType::Float64;
    const PixelType    square = isExact ? PixelType::UInt32 : real;
    const int          weights = this->AddWeights(weight);
    const int          squares = this->AddVoxels("domain.squares.voxels", { Stage::Input(), weights }, square);
    const int          sum =
      this->AddSum(m_Operation.GetConstant(false), this->AddValues(weight), this->KindOfValues(weight), real);
    const int sumOfSquares = this->AddSum(m_Operation.GetConstant(true), squares, square, real);
    const int count = this->AddSumOfWeights(m_Operation.HasWeights() ? weight : PixelType::UInt8, real);
    int       result = this->AddVoxels("domain.variance.voxels", { sum, sumOfSquares, count }, kind);
    // Cases in which the window itself has different arithmetic.
    const bool hasOwn = !table || (!IsFloatingPoint(image) && PixelSize(image) <= 4);
    if (!isExact && !m_Operation.HasWeights() && hasOwn)
    {
      Pointer own = m_Operation.window;
      if (const auto * const wiener = As<WienerOperation>(own))
      {
        own = MakeBoxOf<VarianceOperation>(*wiener);
      }
      const int inside = this->AddWeights(PixelType::UInt8);
      const int whole = this->Add({ own, this->InputsOf(this->AddValues(PixelType::UInt8)), kind });
      int       there = count;
      if (table)
      {
        const int outside = this->AddVoxels("domain.outside.voxels", { inside }, PixelType::UInt8);
        there = this->AddSum(1.0, outside, PixelType::UInt8, real);
      }
      result = this->AddVoxels("domain.whole.voxels", { result, whole, there }, kind);
    }
    return { result, count };
  }

  void
  AddSums()
  {
    const auto * const table = As<BoxStatisticOperation>(m_Operation.window);
    const auto * const mean = As<MeanOperation>(m_Operation.window);
    const auto * const footprint = As<FootprintOperation>(m_Operation.window);
    if ((mean && mean->sums) || (footprint && footprint->statistic == FootprintStatistic::Sum) ||
        (table && table->statistic == BoxStatistic::Sum))
    {
      const PixelType weight = this->KindOfAverageWeights();
      const PixelType kind = this->KindOfValues(weight);
      this->Add(
        { m_Operation.WindowOf(m_Operation.GetConstant(false), kind), this->InputsOf(this->AddValues(weight)) });
      return;
    }
    const auto * const wiener = As<WienerOperation>(m_Operation.window);
    if (wiener && !wiener->windows.empty())
    {
      this->AddWindowsOf(*wiener);
      return;
    }
    if (wiener)
    {
      const Result average = this->AddAverage(StageKind::Real);
      const Result variance = this->AddVariance(StageKind::Real);
      const int    result = this->AddVoxels("wiener.voxels", { Stage::Input(), average.value, variance.value });
      this->AddVoxels("domain.filled.voxels", { result, variance.seen });
      return;
    }
    if (As<HighPassOperation>(m_Operation.window))
    {
      const Result average = this->AddAverage(StageKind::Real);
      const int    result = this->AddVoxels("highpass.voxels", { Stage::Input(), average.value });
      this->AddVoxels("domain.filled.voxels", { result, average.seen });
      return;
    }
    const Result result =
      m_Operation.TakesVariance() ? this->AddVariance(StageKind::Output) : this->AddAverage(StageKind::Output);
    if (m_Operation.insideAlone)
    {
      this->AddVoxels("domain.filled.voxels", { result.value, this->AddWeights(PixelType::UInt8) });
    }
    else if (table && m_Operation.HasWeights())
    {
      this->AddVoxels("domain.filled.voxels", { result.value, this->AddCount() });
    }
  }

  /** A Wiener filter of the mean and the variance of windows in the domain, the last of which say where they see a
   * voxel. */
  void
  AddWindowsOf(const WienerOperation & wiener)
  {
    const auto add = [&](std::size_t number, StageKind kind) {
      const Pointer &  window = wiener.windows.at(number);
      std::vector<int> inputs;
      for (int i = 0; i < window->GetNumberOfInputs(); ++i)
      {
        inputs.push_back(Stage::Input(i));
      }
      return this->Add({ window, inputs, kind });
    };
    if (m_Operation.insideAlone)
    {
      const int variance = add(1, StageKind::Output);
      this->AddVoxels("domain.filled.voxels", { variance, this->AddWeights(PixelType::UInt8) });
      return;
    }
    const int mean = add(0, StageKind::Real);
    const int variance = add(1, StageKind::Real);
    const int seen = add(2, StageKind::Real);
    const int result = this->AddVoxels("wiener.voxels", { Stage::Input(), mean, variance });
    this->AddVoxels("domain.filled.voxels", { result, seen });
  }

  void
  AddRange(const RangeOperation & range)
  {
    const int  weights = this->AddWeights(PixelType::UInt8);
    const auto of = [&](bool minimum) {
      Pointer extremum = range.windows.empty() ? nullptr : range.windows.at(minimum ? 1 : 0);
      if (!extremum)
      {
        const auto box = MakeBoxOf<ExtremumOperation>(range);
        box->minimum = minimum;
        extremum = box;
      }
      const char * const outside = minimum ? "domain.highest.voxels" : "domain.lowest.voxels";
      const int          seen = this->AddVoxels(outside, { Stage::Input(), weights }, m_Operation.imageKind);
      return std::make_pair(this->AddWindow(extremum, { seen }, m_Operation.imageKind), SeesAny(*extremum));
    };
    const auto maximum = of(false);
    const auto minimum = of(true);
    const int  result = this->Add({ std::make_shared<DifferenceOperation>(), { maximum.first, minimum.first } });
    const int  any = this->AddWindow(maximum.second, { weights }, PixelType::UInt8);
    this->AddVoxels("domain.filled.voxels", { result, any });
  }

  /** Whether windows are empty, by what decides it where the statistic is computed. */
  void
  AddSeen(const std::vector<Pointer> & extrema)
  {
    int seen = 0;
    if (!extrema.empty())
    {
      const int weights = this->AddWeights(PixelType::UInt8);
      seen = weights;
      for (std::size_t i = 0; i < extrema.size(); ++i)
      {
        seen = this->AddWindow(SeesAny(*extrema[i]), { seen }, PixelType::UInt8);
        if (i + 1 < extrema.size())
        {
          seen = this->AddVoxels("domain.values.voxels", { seen, weights }, PixelType::UInt8);
        }
      }
    }
    else if (const auto * const range = As<RangeOperation>(m_Operation.window))
    {
      const Pointer extremum =
        range->windows.empty() ? Pointer(MakeBoxOf<ExtremumOperation>(*range)) : range->windows[0];
      seen = this->AddWindow(SeesAny(*extremum), { this->AddWeights(PixelType::UInt8) }, PixelType::UInt8);
    }
    else if (IsMean(m_Average) || As<BoxStatisticOperation>(m_Average))
    {
      seen = this->AddCount();
    }
    else
    {
      seen = this->AddDenominator();
    }
    this->AddVoxels("domain.seen.voxels", { seen });
  }

  void
  AddExtrema(const std::vector<Pointer> & extrema)
  {
    const int weights = this->AddWeights(PixelType::UInt8);
    int       from = Stage::Input();
    int       seen = weights;
    for (std::size_t i = 0; i < extrema.size(); ++i)
    {
      const bool         isLast = i + 1 == extrema.size();
      const char * const outside = IsMinimum(*extrema[i]) ? "domain.highest.voxels" : "domain.lowest.voxels";
      const int          hidden = this->AddVoxels(outside, { from, seen }, m_Operation.imageKind);
      from =
        isLast ? this->Add({ extrema[i], { hidden } }) : this->AddWindow(extrema[i], { hidden }, m_Operation.imageKind);
      const int any = this->AddWindow(SeesAny(*extrema[i]), { seen }, PixelType::UInt8);
      // The next one sees what is inside and has a result.
      seen = isLast ? any : this->AddVoxels("domain.values.voxels", { any, weights }, PixelType::UInt8);
    }
    this->AddVoxels("domain.filled.voxels", { from, seen });
  }

  const DomainOperation & m_Operation;
  const Pointer           m_Average;
  std::vector<Stage>      m_Stages;
};

std::vector<Stage>
DomainOperation::GetStages() const
{
  auto own = this->GetStagesWithoutQuotient();
  return own.empty() ? StageList(*this).Make() : own;
}

DomainOperation::Quotient
DomainOperation::GetQuotient(const Coordinates & image) const
{
  const auto average = this->GetAverage();
  Quotient   quotient;
  if (const auto * const mean = As<MeanOperation>(average))
  {
    quotient.inDouble = !IsFloatingPoint(imageKind);
    quotient.truncates = mean->truncates;
  }
  else if (const auto * const footprint = As<FootprintOperation>(average))
  {
    quotient.inDouble = !IsFloatingPoint(imageKind);
    quotient.truncates = footprint->truncates;
  }
  else if (const auto * const convolved = As<ImageConvolutionOperation>(average))
  {
    const bool   isDirect = !IsThroughTransforms(average);
    const double taps = isDirect ? static_cast<double>(convolved->kernel->GetNumberOfTaps()) : 0;
    const double off = TransformRounding + taps * std::numeric_limits<double>::epsilon();
    quotient.whole = convolved->kernel->GetSum();
    quotient.least = quotient.whole * (1 - off);
    quotient.most = quotient.whole * (1 + off);
    quotient.nothing = isDirect ? 0 : TransformNoise;
  }
  else if (AsTransforms(average))
  {
    quotient.least = 1 - TransformRounding;
    quotient.most = 1 + TransformRounding;
    quotient.nothing = TransformNoise;
  }
  else if (const auto * const separable = As<SeparableOperation>(average))
  {
    UsesDouble(imageKind) ? RangeOfOnes<double>(*separable, image, quotient.least, quotient.most)
                          : RangeOfOnes<float>(*separable, image, quotient.least, quotient.most);
  }
  else if (const auto * const convolution = As<ConvolutionOperation>(average))
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
DomainOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  if (inputs.at(0) != imageKind)
  {
    throw ParameterError(std::string("domain: made for voxels of ") + PixelTypeName(imageKind) + ", the image has " +
                         PixelTypeName(inputs[0]));
  }
  if (domain == DomainKind::All && !ignoresNan)
  {
    throw ParameterError("domain: nothing says which voxels are inside");
  }
  if (ignoresNan && !IsFloatingPoint(imageKind))
  {
    throw ParameterError(std::string("IgnoreNaN: the image's voxels are ") + PixelTypeName(imageKind) +
                         ", of which none is NaN");
  }
  const PixelType inside = inputs.at(static_cast<std::size_t>(this->GetNumberOfInputs()) - 1);
  if (domain == DomainKind::Mask && IsFloatingPoint(inside))
  {
    throw ParameterError(std::string("MaskImage: its voxels are ") + PixelTypeName(inside) +
                         "; a mask has integers, and real numbers are weights");
  }
  if (this->HasWeights() && !IsFloatingPoint(inside))
  {
    throw ParameterError(std::string("WeightImage: its voxels are ") + PixelTypeName(inside) +
                         "; weights are float32 or float64, and integers are a MaskImage");
  }
  window->CheckKinds({ inputs.begin(), inputs.begin() + window->GetNumberOfInputs() }, output);
  if (this->HasWeights() && this->IsCounted())
  {
    throw ParameterError(window->GetName() + ": its windows take a mask, but no weights");
  }
  if ((this->HasWeights() || ignoresNan) && (As<RangeOperation>(window) || !AsExtrema(window).empty()))
  {
    throw ParameterError(window->GetName() + ": its windows take a mask alone; they never see NaN");
  }
  const auto * const mean = As<MeanOperation>(window);
  const auto * const table = As<BoxStatisticOperation>(window);
  const auto * const footprint = As<FootprintOperation>(window);
  const bool         isSummed = mean || table || (footprint && footprint->statistic != FootprintStatistic::Rank);
  if (isSummed && !IsFloatingPoint(output))
  {
    const bool sums = mean    ? mean->sums
                      : table ? table->statistic == BoxStatistic::Sum
                              : footprint->statistic == FootprintStatistic::Sum;
    if (sums && this->HasWeights())
    {
      throw ParameterError(std::string("WeightImage: weighted sums are real numbers, and the output's voxels are ") +
                           PixelTypeName(output) + "; float32 and float64 serve");
    }
    const double voxels = VoxelsOf(*window);
    if (!sums && !this->TakesVariance() && !this->HasWeights() && voxels * LargestOf(imageKind) > CountableInDouble)
    {
      throw ParameterError("MaskImage: sums of " + PixelValue(voxels).ToText() + " voxels of " +
                           PixelTypeName(imageKind) + " may be beyond 2^53, which an exact mean in a mask is not; " +
                           "float32 and float64 serve as the output's voxels");
    }
  }
  CompositeOperation::CheckKinds(inputs, output);
}

void
DomainOperation::Validate(const Coordinates & image) const
{
  window->Validate(image);
  if (const auto * const convolution = As<ConvolutionOperation>(window))
  {
    CheckKernel("Weights", convolution->weights, convolution->IsZeroSum() ? 0.0 : 1.0);
  }
  if (const auto * const convolved = As<ImageConvolutionOperation>(window))
  {
    CheckKernel("KernelImage", convolved->kernel->GetWeights(), convolved->kernel->GetSum());
  }
  if (const auto * const varying = As<VaryingConvolutionOperation>(window))
  {
    if (varying->order == VaryingOrder::WeightThenConvolve)
    {
      throw ParameterError(
        "WeightThenConvolve: its results are no averages of what is around a voxel, of which a mask, "
        "weights or IgnoreNaN could leave out some; set to 0 what is not to spread");
    }
    for (const auto & kernel : varying->kernels)
    {
      CheckKernel("KernelImages", kernel->GetWeights(), kernel->GetSum());
    }
  }
  CompositeOperation::Validate(image);
}

const WienerOperation *
FindWiener(const Operation & operation)
{
  const auto * const domain = dynamic_cast<const DomainOperation *>(&operation);
  return dynamic_cast<const WienerOperation *>(domain ? domain->window.get() : &operation);
}

const EntropyOperation *
FindEntropy(const Operation & operation)
{
  const auto * const domain = dynamic_cast<const DomainOperation *>(&operation);
  return dynamic_cast<const EntropyOperation *>(domain ? domain->window.get() : &operation);
}

} // namespace chunkwise
