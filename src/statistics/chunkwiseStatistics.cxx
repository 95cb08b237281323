/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseStatistics.h"

#include "chunkwiseDomainOperation.h"
#include "chunkwisePartMonitor.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseSerialExecutor.h"
#include "chunkwiseStatisticsOperation.h"
#include "chunkwiseStatisticsSummary.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseWienerOperation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace chunkwise
{

namespace
{

constexpr double Infinity = std::numeric_limits<double>::infinity();
constexpr double NotANumber = std::numeric_limits<double>::quiet_NaN();

PixelValue
ValueOfOrdinal(PixelType kind, std::uint64_t ordinal)
{
  return DispatchPixelType(kind, [&](auto pixel) { return PixelValue(FromOrdinal<decltype(pixel)>(ordinal)); });
}

PixelValue
InfinityOf(PixelType kind, double sign)
{
  return kind == PixelType::Float32 ? PixelValue(static_cast<float>(sign * Infinity)) : PixelValue(sign * Infinity);
}

PixelType
KindOfInput(const ExecutionRequest & request)
{
  if (request.inputs.empty())
  {
    throw ParameterError("the request has no input");
  }
  return request.inputs.front().kind;
}

/** The kind of what the request's operation makes, or else of its input. */
PixelType
KindOfStatistics(const ExecutionRequest & request)
{
  const PixelType input = KindOfInput(request);
  return request.operation ? request.output.kind : input;
}

std::vector<std::int64_t>
CountsOf(const ChunkState & summary)
{
  std::vector<std::int64_t> counts(summary.size() / sizeof(std::int64_t));
  std::memcpy(counts.data(), summary.data(), counts.size() * sizeof(std::int64_t));
  return counts;
}

/** Finds the voxels at some ranks by their ordinals, the highest bits first. */
class RankSearch
{
public:
  RankSearch(const SummaryRun & run, PixelType kind, Monitor * monitor)
    : m_Run(run)
    , m_Monitor(monitor)
    , m_Kind(kind)
    , m_Bits(std::min(8 * static_cast<int>(PixelSize(m_Kind)), 16))
    , m_Passes(8 * static_cast<int>(PixelSize(m_Kind)) / m_Bits)
  {
    Run({ 0 }, 1, 0, 1);
  }

  /** Voxels that are numbers. */
  std::int64_t
  CountNumbers() const
  {
    std::int64_t numbers = 0;
    for (const std::int64_t count : m_Counts.at(0))
    {
      numbers += count;
    }
    return numbers;
  }

  /** The values at these ranks. */
  std::map<std::int64_t, PixelValue>
  Find(const std::set<std::int64_t> & ranks)
  {
    std::vector<Search> searches;
    for (const std::int64_t rank : ranks)
    {
      searches.push_back({ rank, rank, 0 });
    }
    for (int pass = 1;; ++pass)
    {
      for (Search & search : searches)
      {
        Narrow(search);
      }
      if (pass == m_Passes)
      {
        break;
      }
      RunPass(searches, pass);
    }
    std::map<std::int64_t, PixelValue> values;
    for (const Search & search : searches)
    {
      values[search.rank] = ValueOfOrdinal(m_Kind, search.prefix);
    }
    return values;
  }

private:
  struct Search
  {
    std::int64_t  rank;
    std::int64_t  rankInPrefix;
    std::uint64_t prefix; ///< of the ordinal
  };

  /** One more digit of the ordinal. */
  void
  Narrow(Search & search) const
  {
    const std::vector<std::int64_t> & counts = m_Counts.at(search.prefix);
    std::size_t                       digit = 0;
    while (search.rankInPrefix >= counts[digit])
    {
      search.rankInPrefix -= counts[digit++];
    }
    search.prefix = search.prefix << m_Bits | digit;
  }

  /** The histograms of all prefixes, in as many runs as it takes. */
  void
  RunPass(const std::vector<Search> & searches, int pass)
  {
    std::set<std::uint64_t> open;
    for (const Search & search : searches)
    {
      open.insert(search.prefix);
    }
    const std::vector<std::uint64_t> prefixes(open.begin(), open.end());
    m_Counts.clear();
    constexpr std::size_t most = OrdinalsOperation::MostPrefixes;
    const std::size_t     runs = (prefixes.size() + most - 1) / most;
    for (std::size_t run = 0; run < runs; ++run)
    {
      const auto begin = prefixes.begin() + static_cast<std::ptrdiff_t>(run * most);
      const auto end = prefixes.begin() + static_cast<std::ptrdiff_t>(std::min((run + 1) * most, prefixes.size()));
      const auto part = [&](std::size_t r) { return pass + static_cast<double>(r) / static_cast<double>(runs); };
      Run(std::vector<std::uint64_t>(begin, end), pass + 1, part(run), part(run + 1));
    }
  }

  /** Pass number `pass`, from 1 on, for some prefixes; progress in passes. */
  void
  Run(const std::vector<std::uint64_t> & prefixes, int pass, double begin, double end)
  {
    const auto operation = std::make_shared<OrdinalsOperation>();
    operation->bits = m_Bits;
    operation->shift = (m_Passes - pass) * m_Bits;
    operation->prefixes = prefixes;
    PartMonitor                     monitor(m_Monitor, begin / m_Passes, end / m_Passes);
    const std::vector<std::int64_t> counts = CountsOf(m_Run(operation, &monitor));
    const std::ptrdiff_t            digits = std::ptrdiff_t{ 1 } << m_Bits;
    for (std::size_t i = 0; i < prefixes.size(); ++i)
    {
      const auto first = counts.begin() + static_cast<std::ptrdiff_t>(i) * digits;
      m_Counts[prefixes[i]].assign(first, first + digits);
    }
  }

  const SummaryRun & m_Run;
  Monitor * const    m_Monitor;
  const PixelType    m_Kind;
  const int          m_Bits;
  const int          m_Passes;
  /** From the last pass: how many voxels that begin with a prefix have each next digit. */
  std::map<std::uint64_t, std::vector<std::int64_t>> m_Counts;
};

} // namespace

ImageStatistics::ImageStatistics(PixelType kind)
  : ImageStatistics(kind, ChunkState(sizeof(StatisticsSummary), 0))
{}

ImageStatistics::ImageStatistics(PixelType kind, const ChunkState & summary)
{
  StatisticsSummary s;
  if (summary.size() != sizeof(s))
  {
    throw ParameterError("a summary of " + std::to_string(summary.size()) +
                         " bytes is not one of statistics, which has " + std::to_string(sizeof(s)));
  }
  std::memcpy(&s, summary.data(), sizeof(s));
  m_Finite = s.finite;
  m_Count = s.finite + s.positiveInfinities + s.negativeInfinities;
  m_NumberOfNaNs = s.nans;
  m_Sum = RoundDigits(s.sum, StatisticsSummary::SumDigits, StatisticsSummary::SumBias);
  if (m_Finite > 0)
  {
    m_Variance = RoundVariance(s.sum,
                               StatisticsSummary::SumDigits,
                               s.squares,
                               StatisticsSummary::SquareDigits,
                               StatisticsSummary::SumBias,
                               m_Finite);
    m_Minimum = m_FiniteMinimum = ValueOfOrdinal(kind, s.minimum);
    m_Maximum = m_FiniteMaximum = ValueOfOrdinal(kind, s.maximum);
  }
  if (m_Count == m_Finite)
  {
    return;
  }
  m_Variance = NotANumber;
  m_Sum = s.negativeInfinities == 0 ? Infinity : s.positiveInfinities == 0 ? -Infinity : NotANumber;
  m_Minimum = s.negativeInfinities > 0 ? InfinityOf(kind, -1) : m_Finite > 0 ? m_Minimum : InfinityOf(kind, 1);
  m_Maximum = s.positiveInfinities > 0 ? InfinityOf(kind, 1) : m_Finite > 0 ? m_Maximum : InfinityOf(kind, -1);
}

void
ImageStatistics::CheckThatThereAre(std::int64_t voxels, const char * what) const
{
  if (voxels == 0)
  {
    throw Error(m_Count > 0 ? "the image has infinities alone: it has no finite " + std::string(what)
                : m_NumberOfNaNs > 0
                  ? "the image has nothing but NaN (" + std::to_string(m_NumberOfNaNs) + " voxels): it has no " + what
                  : "the image has no voxels: it has no " + std::string(what));
  }
}

double
ImageStatistics::GetMean() const
{
  CheckThatThereAre(m_Count, "mean");
  return m_Sum / static_cast<double>(m_Count);
}

double
ImageStatistics::GetVariance() const
{
  CheckThatThereAre(m_Count, "variance");
  return m_Variance;
}

double
ImageStatistics::GetStandardDeviation() const
{
  CheckThatThereAre(m_Count, "standard deviation");
  return std::sqrt(m_Variance);
}

PixelValue
ImageStatistics::GetMinimum() const
{
  CheckThatThereAre(m_Count, "minimum");
  return m_Minimum;
}

PixelValue
ImageStatistics::GetMaximum() const
{
  CheckThatThereAre(m_Count, "maximum");
  return m_Maximum;
}

PixelValue
ImageStatistics::GetFiniteMinimum() const
{
  CheckThatThereAre(m_Finite, "minimum");
  return m_FiniteMinimum;
}

PixelValue
ImageStatistics::GetFiniteMaximum() const
{
  CheckThatThereAre(m_Finite, "maximum");
  return m_FiniteMaximum;
}

StatisticsAccumulator::StatisticsAccumulator(PixelType kind)
  : m_Kind(kind)
  , m_Total(sizeof(StatisticsSummary), 0)
{}

void
StatisticsAccumulator::Reset()
{
  m_Total.assign(sizeof(StatisticsSummary), 0);
}

void
StatisticsAccumulator::CheckKind(PixelType kind) const
{
  if (kind != m_Kind)
  {
    throw ParameterError(std::string("statistics of ") + PixelTypeName(m_Kind) + " are given " + PixelTypeName(kind));
  }
}

void
StatisticsAccumulator::Add(const BufferView & view, const Box & box, Executor * executor, RunControl * control)
{
  if (box.IsEmpty())
  {
    return;
  }
  CheckKind(view.kind);
  if (!view.box.Contains(box))
  {
    throw ParameterError("the view holds " + ToString(view.box) + ", but " + ToString(box) + " is needed");
  }
  const StatisticsOperation operation;
  SerialExecutor            serial;
  ChunkState                summary(sizeof(StatisticsSummary), 0);
  KernelCall                call;
  call.operation = &operation;
  call.inputs[0] = view;
  call.numberOfInputs = 1;
  call.image = view.box;
  call.writable = box;
  call.executor = executor ? executor : &serial;
  call.control = control;
  call.sideOut = summary.data();
  call.sideOutBytes = summary.size();
  ChunkShape shape;
  shape.inputBox = shape.outputBox = box;
  shape.concurrency = static_cast<int>(call.executor->GetConcurrency());
  const std::string             name = operation.GetName();
  const Kernel &                kernel = GetHostKernels().Get(name, name, &KernelSet::summarize);
  std::vector<std::max_align_t> scratch(kernel.scratchBytes(operation, shape) / sizeof(std::max_align_t) + 1);
  call.scratch = scratch.data();
  call.scratchBytes = scratch.size() * sizeof(std::max_align_t);
  kernel.run(call);
  if (control && control->ShouldStop())
  {
    throw Aborted();
  }
  operation.MergeSummary(m_Total, summary);
}

void
StatisticsAccumulator::Add(const StatisticsAccumulator & other)
{
  CheckKind(other.m_Kind);
  StatisticsOperation().MergeSummary(m_Total, other.m_Total);
}

void
StatisticsAccumulator::Add(Manager & manager, ExecutionRequest request, Monitor * monitor, ExecutionReport * report)
{
  CheckKind(KindOfStatistics(request));
  request = MakeStatisticsRequest(std::move(request));
  request.operation->MergeSummary(m_Total, manager.Summarise(request, monitor, report));
}

ExecutionRequest
MakeStatisticsRequest(ExecutionRequest request)
{
  const auto operation = std::make_shared<StatisticsOperation>();
  if (request.operation)
  {
    operation->stage = request.operation;
    operation->stageKind = request.output.kind;
  }
  request.operation = operation;
  // Statistics of the image alone take no mask.
  request.inputs.resize(std::min(request.inputs.size(), static_cast<std::size_t>(operation->GetNumberOfInputs())));
  return request;
}

ImageStatistics
ComputeStatistics(Manager & manager, ExecutionRequest request, Monitor * monitor, ExecutionReport * report)
{
  StatisticsAccumulator accumulator(KindOfStatistics(request));
  accumulator.Add(manager, std::move(request), monitor, report);
  return accumulator.Get();
}

ImageHistogram
ComputeHistogram(Manager & manager, ExecutionRequest request, int bins, const ValueRange & range, Monitor * monitor,
                 ExecutionReport * report)
{
  const SummaryRun run = [&](const std::shared_ptr<const Operation> & operation, Monitor * ofRun) {
    request.operation = operation;
    return manager.Summarise(request, ofRun, report);
  };
  return ComputeHistogram(run, bins, range, monitor);
}

ImageHistogram
ComputeHistogram(const SummaryRun & run, int bins, const ValueRange & range, Monitor * monitor)
{
  const auto operation = std::make_shared<HistogramOperation>();
  operation->bins = bins;
  operation->lower = range.lower;
  operation->upper = range.upper;
  PartMonitor    whole(monitor, 0, 1);
  ImageHistogram histogram{ range.lower, range.upper, CountsOf(run(operation, &whole)), 0 };
  histogram.numberOfNaNs = histogram.counts.back();
  histogram.counts.pop_back();
  return histogram;
}

std::vector<ImageQuantile>
ComputeQuantiles(Manager & manager, ExecutionRequest request, const std::vector<double> & fractions, Monitor * monitor)
{
  const PixelType  kind = KindOfInput(request);
  const SummaryRun run = [&](const std::shared_ptr<const Operation> & operation, Monitor * ofRun) {
    request.operation = operation;
    return manager.Summarise(request, ofRun);
  };
  return ComputeQuantiles(run, kind, fractions, monitor);
}

std::vector<ImageQuantile>
ComputeQuantiles(const SummaryRun & run, PixelType kind, const std::vector<double> & fractions, Monitor * monitor)
{
  for (const double fraction : fractions)
  {
    if (!(fraction >= 0 && fraction <= 1))
    {
      throw ParameterError("a quantile is " + std::to_string(fraction) + "; it must be from 0 to 1");
    }
  }
  RankSearch         search(run, kind, monitor);
  const std::int64_t last = search.CountNumbers() - 1;
  if (last < 0)
  {
    throw Error("the image has no voxel that is a number: it has no quantiles");
  }
  const auto positionOf = [last](double fraction) { return static_cast<double>(last) * fraction; };
  const auto rankOf = [&](double fraction) {
    return std::min(static_cast<std::int64_t>(std::floor(positionOf(fraction))), last);
  };
  std::set<std::int64_t> ranks;
  for (const double fraction : fractions)
  {
    ranks.insert(rankOf(fraction));
    ranks.insert(std::min(rankOf(fraction) + 1, last));
  }
  const std::map<std::int64_t, PixelValue> values = search.Find(ranks);
  std::vector<ImageQuantile>               quantiles;
  for (const double fraction : fractions)
  {
    const std::int64_t rank = rankOf(fraction);
    ImageQuantile      quantile;
    quantile.lower = values.at(rank);
    quantile.next = values.at(std::min(rank + 1, last));
    const double a = quantile.lower.As<double>();
    const double b = quantile.next.As<double>();
    const double t = positionOf(fraction) - static_cast<double>(rank);
    // Exact at both ends, beside infinities too, and between equal infinities.
    quantile.linear = a == b || t == 0 ? a : t < 0.5 ? a + (b - a) * t : b - (b - a) * (1 - t);
    quantiles.push_back(quantile);
  }
  return quantiles;
}

bool
HasEntropyRange(PixelType kind)
{
  return !IsFloatingPoint(kind) && PixelSize(kind) <= 2;
}

ValueRange
ComputeEntropyRange(Manager & manager, ExecutionRequest request, int bins, Monitor * monitor)
{
  const PixelType kind = KindOfInput(request);
  request.operation = nullptr;
  return GetEntropyRange(kind,
                         HasEntropyRange(kind) ? ImageStatistics(kind)
                                               : ComputeStatistics(manager, std::move(request), monitor),
                         bins);
}

ValueRange
GetEntropyRange(PixelType kind, const ImageStatistics & statistics, int bins)
{
  if (HasEntropyRange(kind))
  {
    return { ValueOfOrdinal(kind, 0).As<double>(), ValueOfOrdinal(kind, ~std::uint64_t{ 0 }).As<double>() + 1.0 };
  }
  if (statistics.GetCount() == statistics.GetNumberOfInfinities())
  {
    throw ParameterError("the image has no finite voxel, from which the range of an entropy could be taken");
  }
  ValueRange range{ statistics.GetFiniteMinimum().As<double>(), statistics.GetFiniteMaximum().As<double>() };
  if (range.lower == range.upper)
  {
    range.upper = std::max(range.lower + 1.0, std::nextafter(range.lower, Infinity));
  }
  // Bins that are too narrow for the quotient would be wider than the values are apart.
  range.upper = std::max(range.upper, range.lower + bins * std::numeric_limits<double>::min());
  if (!(std::isfinite(range.upper - range.lower)))
  {
    throw ParameterError("the values are from " + std::to_string(range.lower) + " to " + std::to_string(range.upper) +
                         ", too far apart for the range of an entropy");
  }
  return range;
}

ExecutionRequest
MakeLocalVarianceRequest(ExecutionRequest request)
{
  const WienerOperation * const wiener = request.operation ? FindWiener(*request.operation) : nullptr;
  if (!wiener)
  {
    throw ParameterError("noise is estimated for a WienerOperation, which the request has not");
  }
  const auto variance = std::make_shared<VarianceOperation>();
  variance->radius = wiener->radius;
  variance->boundary = wiener->boundary;
  // The kind that its first stages, mean and variance, have.
  const PixelType input = KindOfInput(request);
  request.output.kind = wiener->GetStageKinds(input, input).front();
  const bool isSided = !wiener->windows.empty();
  if (const auto * const domain = dynamic_cast<const DomainOperation *>(request.operation.get()))
  {
    const auto inside = std::make_shared<DomainOperation>(*domain);
    inside->window = isSided ? inside->window : variance;
    inside->insideAlone = true;
    inside->emptyValue = std::numeric_limits<double>::quiet_NaN();
    request.operation = inside;
    return request;
  }
  request.operation = isSided ? wiener->windows.at(1) : variance;
  return request;
}

double
ComputeWienerNoise(Manager & manager, ExecutionRequest request, Monitor * monitor)
{
  return GetWienerNoise(ComputeStatistics(manager, MakeLocalVarianceRequest(std::move(request)), monitor));
}

double
GetWienerNoise(const ImageStatistics & localVariances)
{
  if (localVariances.GetCount() == 0 || !std::isfinite(localVariances.GetMean()))
  {
    throw ParameterError("noise cannot be estimated: of the local variances " +
                         std::to_string(localVariances.GetNumberOfNaNs()) + " are NaN and " +
                         std::to_string(localVariances.GetNumberOfInfinities()) + " are infinite");
  }
  return localVariances.GetMean();
}

namespace
{

/** The request of the statistics of local variances, for an operation and a kind of image alone. */
ExecutionRequest
MakeRequestOfVariances(const Operation & operation, PixelType input)
{
  ExecutionRequest request;
  request.operation = std::shared_ptr<const Operation>(std::shared_ptr<const Operation>(), &operation);
  request.inputs.resize(1);
  request.inputs.front().kind = input;
  return MakeLocalVarianceRequest(std::move(request));
}

std::vector<double>
EstimateNoise(const Operation & operation, PixelType input, const SummaryRun & run, Monitor * monitor)
{
  const ExecutionRequest variances = MakeRequestOfVariances(operation, input);
  PartMonitor            whole(monitor, 0, 1);
  const ChunkState       summary = run(MakeStatisticsRequest(variances).operation, &whole);
  return { GetWienerNoise(ImageStatistics(variances.output.kind, summary)) };
}

std::vector<double>
EstimateRange(const Operation & operation, PixelType input, const SummaryRun & run, Monitor * monitor)
{
  ImageStatistics statistics(input);
  if (!HasEntropyRange(input))
  {
    PartMonitor whole(monitor, 0, 1);
    statistics = ImageStatistics(input, run(std::make_shared<StatisticsOperation>(), &whole));
  }
  const ValueRange range = GetEntropyRange(input, statistics, FindEntropy(operation)->bins);
  return { range.lower, range.upper };
}

} // namespace

ParameterEstimate
GetWienerNoiseEstimate()
{
  return { EstimateNoise, [](const Operation & operation, PixelType input) {
            return MakeStatisticsRequest(MakeRequestOfVariances(operation, input)).operation;
          } };
}

ParameterEstimate
GetEntropyRangeEstimate()
{
  return { EstimateRange, [](const Operation &, PixelType input) -> std::shared_ptr<const Operation> {
            return HasEntropyRange(input) ? nullptr : std::make_shared<StatisticsOperation>();
          } };
}

ExecutionRequest
MakeSummaryRequest(ExecutionRequest request, std::shared_ptr<const Operation> summary)
{
  request.inputs.resize(std::min(request.inputs.size(), static_cast<std::size_t>(summary->GetNumberOfInputs())));
  request.operation = std::move(summary);
  return request;
}

std::vector<double>
EstimateParameter(Manager & manager, ExecutionRequest request, const ParameterDescription & parameter,
                  Monitor * monitor)
{
  if (!parameter.estimate.take || !request.operation)
  {
    throw ParameterError(parameter.name + ": it does not follow from an image");
  }
  const SummaryRun run = [&](const std::shared_ptr<const Operation> & operation, Monitor * ofRun) {
    return manager.Summarise(MakeSummaryRequest(request, operation), ofRun);
  };
  return parameter.estimate.take(*request.operation, KindOfInput(request), run, monitor);
}

} // namespace chunkwise
