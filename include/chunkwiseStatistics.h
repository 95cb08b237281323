/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseStatistics_h
#define chunkwiseStatistics_h

#include "chunkwiseFilters.h"
#include "chunkwiseManager.h"
#include "chunkwisePixelValue.h"

#include <functional>
#include <memory>
#include <vector>

// Statistics of whole images of any size, on every device. They are exact: results do not depend on chunks, order,
// threads, devices or backend.
namespace chunkwise
{

/** Statistics of the voxels that are numbers: NaN is counted, and else skipped.
 *
 * With S the exact sum of the n numbers and Q that of their squares, the sum is S rounded once to double (to nearest,
 * ties to even), the mean that double divided by n, and the variance (n Q - S^2) / n^2, which is the mean square
 * deviation from the mean, rounded once: its numerator is exact. So the variance of numbers that differ little from
 * each other is right, however large they are. An infinity makes the sum that infinity, or NaN where there are both,
 * and the variance NaN. */
class Chunkwise_EXPORT ImageStatistics
{
public:
  /** The statistics of no voxel. */
  explicit ImageStatistics(PixelType kind = PixelType::UInt8);
  /** From the summary of a StatisticsOperation. */
  ImageStatistics(PixelType kind, const ChunkState & summary);

  /** Voxels that are numbers, infinities too. */
  std::int64_t
  GetCount() const
  {
    return m_Count;
  }
  std::int64_t
  GetNumberOfNaNs() const
  {
    return m_NumberOfNaNs;
  }
  std::int64_t
  GetNumberOfInfinities() const
  {
    return m_Count - m_Finite;
  }
  /** 0 if there are no numbers. */
  double
  GetSum() const
  {
    return m_Sum;
  }
  // These throw Error if there are no numbers. The least and the largest of -0 and +0 are -0 and +0.
  double
  GetMean() const;
  double
  GetVariance() const;
  double
  GetStandardDeviation() const;
  PixelValue
  GetMinimum() const;
  PixelValue
  GetMaximum() const;
  /** Without infinities. Throw Error if there is nothing else. */
  PixelValue
  GetFiniteMinimum() const;
  PixelValue
  GetFiniteMaximum() const;

private:
  void
  CheckThatThereAre(std::int64_t voxels, const char * what) const;

  std::int64_t m_Count{ 0 };
  std::int64_t m_Finite{ 0 };
  std::int64_t m_NumberOfNaNs{ 0 };
  double       m_Sum{ 0 };
  double       m_Variance{ 0 };
  PixelValue   m_Minimum;
  PixelValue   m_Maximum;
  PixelValue   m_FiniteMinimum;
  PixelValue   m_FiniteMaximum;
};

/** Adds up an image that arrives in pieces. The order of pieces does not matter. Not for several threads at once: each
 * has its own, which are added up at the end. */
class Chunkwise_EXPORT StatisticsAccumulator
{
public:
  explicit StatisticsAccumulator(PixelType kind);

  /** Begins anew. */
  void
  Reset();
  /** The voxels of `box`, which `view` holds, by the threads of `executor` (nullptr: the caller's own). Throws Aborted
   * once control->ShouldStop(). */
  void
  Add(const BufferView & view, const Box & box, Executor * executor = nullptr, RunControl * control = nullptr);
  /** The voxels that ComputeStatistics counts, by a run of the manager. */
  void
  Add(Manager & manager, ExecutionRequest request, Monitor * monitor = nullptr, ExecutionReport * report = nullptr);
  void
  Add(const StatisticsAccumulator & other);
  ImageStatistics
  Get() const
  {
    return ImageStatistics(m_Kind, m_Total);
  }

private:
  void
  CheckKind(PixelType kind) const;

  PixelType  m_Kind;
  ChunkState m_Total;
};

/** A histogram of bins of equal width over a range. Bins are those of EntropyOperation: what lies outside the range is
 * in the first or the last one. NaN is in none. */
struct ImageHistogram
{
  double                    lower{ 0 };
  double                    upper{ 0 };
  std::vector<std::int64_t> counts;
  std::int64_t              numberOfNaNs{ 0 };
};

/** A quantile f of the n voxels that are numbers, in ascending order and counted from 0: with i = f (n - 1), number
 * floor(i) and the next one (or that one again, if it is the last), and what is linear between them. These are the
 * methods "lower" and "linear" of numpy.quantile, and its rounding. */
struct ImageQuantile
{
  PixelValue lower;
  PixelValue next;
  double     linear{ 0 };
};

/** The ends of a histogram's range. */
struct ValueRange
{
  double lower{ 0 };
  double upper{ 0 };
};

// The functions below take from a request its inputs, image, region, backend, devices, budgets and threads. They
// are runs of a Manager and throw what these do. An empty region has no voxels.

/** Statistics of request.region. If the request has an operation: of its result there, in request.output.kind, without
 * an image to hold it. */
Chunkwise_EXPORT ImageStatistics
ComputeStatistics(Manager & manager, ExecutionRequest request, Monitor * monitor = nullptr,
                  ExecutionReport * report = nullptr);

/** The run that ComputeStatistics does, for Manager::MakePlanFor. */
Chunkwise_EXPORT ExecutionRequest
MakeStatisticsRequest(ExecutionRequest request);

/** With 1 to 65536 bins. */
Chunkwise_EXPORT ImageHistogram
ComputeHistogram(Manager & manager, ExecutionRequest request, int bins, const ValueRange & range,
                 Monitor * monitor = nullptr, ExecutionReport * report = nullptr);

/** The same of an image that arrives in pieces. */
Chunkwise_EXPORT ImageHistogram
ComputeHistogram(const SummaryRun & run, int bins, const ValueRange & range, Monitor * monitor = nullptr);

/** For each of `fractions`, from 0 to 1. Exact; the image is read once for 8- and 16-bit integers, twice for other
 * kinds of 32 bits, four times for those of 64 (for more than 8 fractions some of these times once for each 8). Throws
 * Error if there are no numbers. */
Chunkwise_EXPORT std::vector<ImageQuantile>
                 ComputeQuantiles(Manager & manager, ExecutionRequest request, const std::vector<double> & fractions,
                                  Monitor * monitor = nullptr);
/** The same of an image of this kind that arrives in pieces; `run` is called once for each time that it is read. */
Chunkwise_EXPORT std::vector<ImageQuantile>
                 ComputeQuantiles(const SummaryRun & run, PixelType kind, const std::vector<double> & fractions,
                                  Monitor * monitor = nullptr);

/** The range of an EntropyOperation with this many bins that the image itself gives. 8- and 16-bit integers: the whole
 * range of the kind. The others: from the least finite value to the largest, which so falls into the last bin; one
 * more, or the next double, where both are equal. Throws ParameterError if no voxel is finite, or if the values are too
 * far apart. */
Chunkwise_EXPORT ValueRange
ComputeEntropyRange(Manager & manager, ExecutionRequest request, int bins, Monitor * monitor = nullptr);
/** Whether that is the whole range of the kind, for which the image need not be read. */
Chunkwise_EXPORT bool
HasEntropyRange(PixelType kind);
/** The same range from the statistics of an image of this kind, which may have been added up piece by piece. */
Chunkwise_EXPORT ValueRange
GetEntropyRange(PixelType kind, const ImageStatistics & statistics, int bins);

/** The variance of the noise that a WienerOperation is given where it is not known: the mean of the local variances
 * over request.region, as scipy.signal.wiener estimates it; in a domain over the voxels inside, with a weight above 0.
 * request.operation is that WienerOperation, or a DomainOperation of it, and its own noise does not matter. Local
 * variances are computed as in the operation itself: by VarianceOperation in StageKind::Real. They are summed up
 * exactly; NaN is skipped. Throws ParameterError if the mean is not finite or there are none. */
Chunkwise_EXPORT double
ComputeWienerNoise(Manager & manager, ExecutionRequest request, Monitor * monitor = nullptr);
/** The same from the statistics of the local variances, which may have been added up piece by piece. */
Chunkwise_EXPORT double
GetWienerNoise(const ImageStatistics & localVariances);
/** The request of a WienerOperation, or of a DomainOperation of it, with the operation and the kind of its local
 * variances instead. */
Chunkwise_EXPORT ExecutionRequest
MakeLocalVarianceRequest(ExecutionRequest request);

/** The request of a filter with a summary of its first inputs in the place of its operation. */
Chunkwise_EXPORT ExecutionRequest
MakeSummaryRequest(ExecutionRequest request, std::shared_ptr<const Operation> summary);

/** The numbers that stand for "auto" in a parameter of a filter, see ParameterEstimate. request.operation is the
 * filter's, made with the parameter's provisional value; its inputs are the filter's, whole. */
Chunkwise_EXPORT std::vector<double>
                 EstimateParameter(Manager & manager, ExecutionRequest request, const ParameterDescription & parameter,
                                   Monitor * monitor = nullptr);

/** The estimates of WienerOperation's noise and EntropyOperation's range. */
Chunkwise_EXPORT ParameterEstimate
GetWienerNoiseEstimate();
Chunkwise_EXPORT ParameterEstimate
GetEntropyRangeEstimate();

} // namespace chunkwise

#endif
