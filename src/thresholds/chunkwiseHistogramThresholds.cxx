/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseThresholds.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chunkwise
{

namespace
{

/** A histogram as sums over its bins that are not empty. Bins are numbers from 0 on: no method depends on where values
 * begin or how wide bins are. */
class BinSums
{
public:
  explicit BinSums(const std::vector<std::int64_t> & counts)
  {
    for (std::size_t bin = 0; bin < counts.size(); ++bin)
    {
      if (counts[bin] > 0)
      {
        bins.push_back(static_cast<double>(bin));
        count.push_back(static_cast<double>(counts[bin]));
        below.push_back(total += count.back());
        first.push_back(moment += bins.back() * count.back());
      }
    }
  }
  std::size_t
  Size() const
  {
    return bins.size();
  }
  /** The means of the voxels up to the i-th bin, and of those above. */
  double
  MeanBelow(std::size_t i) const
  {
    return first[i] / below[i];
  }
  double
  MeanAbove(std::size_t i) const
  {
    return (moment - first[i]) / (total - below[i]);
  }

  std::vector<double> bins;  ///< the bins that are not empty
  std::vector<double> count; ///< voxels of each
  std::vector<double> below; ///< voxels up to each, itself too
  std::vector<double> first; ///< the sum of the bins of these
  double              total{ 0 };
  double              moment{ 0 };
};

/** The first of the bins but the last for which `criterion` is largest. */
template <typename TCriterion>
double
FirstLargest(const BinSums & sums, TCriterion && criterion)
{
  std::size_t best = 0;
  double      largest = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i + 1 < sums.Size(); ++i)
  {
    const double value = criterion(i);
    if (value > largest)
    {
      largest = value;
      best = i;
    }
  }
  return sums.bins[best];
}

/** The first of the bins but the last with the largest variance between the classes. Without BinSums: a histogram of 16
 * bits would take longer to write into memory than to add up. */
double
Otsu(const std::vector<std::int64_t> & counts)
{
  double total = 0;
  double moment = 0;
  for (std::size_t bin = 0; bin < counts.size(); ++bin)
  {
    total += static_cast<double>(counts[bin]);
    moment += static_cast<double>(bin) * static_cast<double>(counts[bin]);
  }
  constexpr std::size_t Block = 256;
  double                numbers[Block];
  double                below[Block];
  double                first[Block];
  double                variances[Block];
  double                totalBelow = 0;
  double                firstBelow = 0;
  double                largest = -std::numeric_limits<double>::infinity();
  double                best = -1;
  for (std::size_t begin = 0; begin < counts.size(); begin += Block)
  {
    std::size_t size = 0;
    for (std::size_t bin = begin; bin < std::min(begin + Block, counts.size()); ++bin)
    {
      // An empty bin is overwritten by the next one, and adds nothing.
      numbers[size] = static_cast<double>(bin);
      below[size] = totalBelow += static_cast<double>(counts[bin]);
      first[size] = firstBelow += numbers[size] * static_cast<double>(counts[bin]);
      size += counts[bin] > 0 ? 1 : 0;
    }
    for (std::size_t i = 0; i < size; ++i)
    {
      const double difference = first[i] / below[i] - (moment - first[i]) / (total - below[i]);
      variances[i] = below[i] * (total - below[i]) * (difference * difference);
    }
    for (std::size_t i = 0; i < size; ++i)
    {
      best = best < 0 ? numbers[i] : best;
      // NaN for the last bin, above which there is no voxel.
      if (variances[i] > largest)
      {
        largest = variances[i];
        best = numbers[i];
      }
    }
  }
  return best;
}

double
Li(const BinSums & sums)
{
  double threshold = sums.moment / sums.total;
  // Steps do not change the classes for ever: a class that has been is where the steps end.
  for (std::size_t step = 0; step <= sums.Size(); ++step)
  {
    const auto   above = std::upper_bound(sums.bins.begin(), sums.bins.end(), threshold);
    const auto   i = static_cast<std::size_t>(above - sums.bins.begin()) - 1;
    const double before = threshold;
    const double low = sums.MeanBelow(i);
    if (low == 0)
    {
      break;
    }
    const double high = sums.MeanAbove(i);
    threshold = (low - high) / (std::log(low) - std::log(high));
    if (!(std::abs(threshold - before) > 0.5))
    {
      break;
    }
  }
  return threshold;
}

double
Yen(const BinSums & sums)
{
  std::vector<double> squares;
  double              all = 0;
  for (const double count : sums.count)
  {
    squares.push_back(all += count / sums.total * (count / sums.total));
  }
  // Squares above are added from the end on: a difference would have no digits left where they are few.
  std::vector<double> above(sums.Size(), 0.0);
  for (std::size_t i = sums.Size() - 1; i > 0; --i)
  {
    above[i - 1] = above[i] + sums.count[i] / sums.total * (sums.count[i] / sums.total);
  }
  return FirstLargest(sums, [&](std::size_t i) {
    const double below = sums.below[i] / sums.total;
    const double product = below * (1 - below);
    return product * product / (squares[i] * above[i]);
  });
}

double
Triangle(const std::vector<std::int64_t> & counts)
{
  const auto peak = static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
  const auto last = counts.size() - 1;
  const bool flipped = peak < last - peak;
  const auto width = flipped ? last - peak : peak;
  const auto height = static_cast<double>(counts[peak]);
  const auto wide = static_cast<double>(width);
  const auto norm = std::sqrt(height * height + wide * wide);
  auto       best = std::size_t{ 0 };
  auto       largest = -std::numeric_limits<double>::infinity();
  for (std::size_t x = 0; x < width; ++x)
  {
    const auto count = static_cast<double>(counts[flipped ? last - x : x]);
    const auto distance = height / norm * static_cast<double>(x) - wide / norm * count;
    if (distance > largest)
    {
      largest = distance;
      best = x;
    }
  }
  return static_cast<double>(flipped ? last - best : best);
}

double
IsoData(const BinSums & sums)
{
  for (std::size_t i = 0; i + 1 < sums.Size(); ++i)
  {
    // The mean of both classes is the same for the empty bins behind the i-th one.
    const double mean = (sums.MeanBelow(i) + sums.MeanAbove(i)) / 2;
    const double bin = std::floor(mean);
    if (bin >= sums.bins[i] && bin < sums.bins[i + 1])
    {
      return bin;
    }
  }
  return sums.bins.front();
}

double
Moments(const BinSums & sums)
{
  double m1 = 0;
  double m2 = 0;
  double m3 = 0;
  for (std::size_t i = 0; i < sums.Size(); ++i)
  {
    const double p = sums.count[i] / sums.total;
    const double bin = sums.bins[i];
    m1 += bin * p;
    m2 += bin * bin * p;
    m3 += bin * bin * bin * p;
  }
  // Both values are the roots of z^2 + c1 z + c0.
  const double determinant = m2 - m1 * m1;
  const double c0 = (m1 * m3 - m2 * m2) / determinant;
  const double c1 = (m1 * m2 - m3) / determinant;
  const double root = std::sqrt(c1 * c1 - 4 * c0);
  const double low = (-c1 - root) / 2;
  const double high = (-c1 + root) / 2;
  const double fraction = (high - m1) / (high - low);
  double       sum = 0;
  for (std::size_t i = 0; i < sums.Size(); ++i)
  {
    sum += sums.count[i] / sums.total;
    if (sum > fraction)
    {
      return sums.bins[i];
    }
  }
  return sums.bins.front();
}

double
Huang(const BinSums & sums)
{
  const double        range = sums.bins.back();
  std::vector<double> entropies(static_cast<std::size_t>(range) + 1, 0.0);
  for (std::size_t difference = 1; difference < entropies.size(); ++difference)
  {
    const double mu = 1 / (1 + static_cast<double>(difference) / range);
    entropies[difference] = -mu * std::log(mu) - (1 - mu) * std::log(1 - mu);
  }
  const auto fuzziness = [&](std::size_t begin, std::size_t end, double mean) {
    const double center = std::floor(mean + 0.5);
    double       sum = 0;
    for (std::size_t i = begin; i < end; ++i)
    {
      sum += entropies[static_cast<std::size_t>(std::abs(sums.bins[i] - center))] * sums.count[i];
    }
    return sum;
  };
  return FirstLargest(sums, [&](std::size_t i) {
    return -(fuzziness(0, i + 1, sums.MeanBelow(i)) + fuzziness(i + 1, sums.Size(), sums.MeanAbove(i)));
  });
}

/** Sums of a function of p up to each bin, and of those above. */
struct SplitSums
{
  std::vector<double> below;
  std::vector<double> above;

  template <typename TFunction>
  SplitSums(const BinSums & sums, TFunction && function)
    : below(sums.Size())
    , above(sums.Size(), 0.0)
  {
    double sum = 0;
    for (std::size_t i = 0; i < sums.Size(); ++i)
    {
      below[i] = sum += function(sums.count[i] / sums.total);
    }
    for (std::size_t i = sums.Size() - 1; i > 0; --i)
    {
      above[i - 1] = above[i] + function(sums.count[i] / sums.total);
    }
  }
};

double
PartBelow(const BinSums & sums, std::size_t i)
{
  return sums.below[i] / sums.total;
}

double
PartAbove(const BinSums & sums, std::size_t i)
{
  return (sums.total - sums.below[i]) / sums.total;
}

/** The sum of both classes' entropies for each threshold. With a class's part P, -sum(p/P log(p/P)) is
 * log(P) - sum(p log p) / P. */
std::vector<double>
EntropiesOf(const BinSums & sums)
{
  const SplitSums     parts(sums, [](double p) { return p * std::log(p); });
  std::vector<double> entropies;
  for (std::size_t i = 0; i + 1 < sums.Size(); ++i)
  {
    const double below = PartBelow(sums, i);
    const double above = PartAbove(sums, i);
    entropies.push_back((std::log(below) - parts.below[i] / below) + (std::log(above) - parts.above[i] / above));
  }
  return entropies;
}

double
MaximumEntropy(const BinSums & sums)
{
  constexpr double          tolerance = 1e-5;
  const std::vector<double> entropies = EntropiesOf(sums);
  double                    largest = 0;
  double                    best = 0;
  for (std::size_t i = 0; i < entropies.size(); ++i)
  {
    if (largest < entropies[i] - tolerance)
    {
      largest = entropies[i];
      best = sums.bins[i];
    }
  }
  return best;
}

/** Each of the three is 0 where no entropy is above 0. */
double
RenyiEntropy(const BinSums & sums)
{
  const std::vector<double> shannon = EntropiesOf(sums);
  const SplitSums           roots(sums, [](double p) { return std::sqrt(p); });
  const SplitSums           squares(sums, [](double p) { return p * p; });
  const auto                bestOf = [&](auto && entropy) {
    std::size_t best = 0;
    double      largest = 0;
    for (std::size_t i = 0; i + 1 < sums.Size(); ++i)
    {
      const double value = entropy(i);
      if (value > largest)
      {
        largest = value;
        best = i;
      }
    }
    return best;
  };
  std::size_t order[] = { bestOf([&](std::size_t i) {
                            return 2 * std::log(roots.below[i] / std::sqrt(PartBelow(sums, i)) * roots.above[i] /
                                                std::sqrt(PartAbove(sums, i)));
                          }),
                          bestOf([&](std::size_t i) { return shannon[i]; }),
                          bestOf([&](std::size_t i) {
                            const double below = PartBelow(sums, i);
                            const double above = PartAbove(sums, i);
                            return -std::log(squares.below[i] / (below * below) * squares.above[i] / (above * above));
                          }) };
  std::sort(std::begin(order), std::end(order));
  const double t[] = { sums.bins[order[0]], sums.bins[order[1]], sums.bins[order[2]] };
  const bool   near01 = t[1] - t[0] <= 5;
  const bool   near12 = t[2] - t[1] <= 5;
  const double weights[2][2][3] = { { { 1, 2, 1 }, { 3, 1, 0 } }, { { 0, 1, 3 }, { 1, 2, 1 } } };
  const auto & beta = weights[near01 ? 1 : 0][near12 ? 1 : 0];
  const double omega = (sums.below[order[2]] - sums.below[order[0]]) / sums.total;
  return std::floor(t[0] * (PartBelow(sums, order[0]) + 0.25 * omega * beta[0]) + t[1] * 0.25 * omega * beta[1] +
                    t[2] * (PartAbove(sums, order[2]) + 0.25 * omega * beta[2]));
}

double
Kittler(const BinSums & sums)
{
  constexpr double    epsilon = std::numeric_limits<double>::epsilon();
  std::vector<double> second;
  double              squares = 0;
  for (std::size_t i = 0; i < sums.Size(); ++i)
  {
    second.push_back(squares += sums.bins[i] * sums.bins[i] * sums.count[i]);
  }
  double threshold = std::floor(sums.moment / sums.total + 0.5);
  // It may go round in circles.
  for (int step = 0; step < 1000; ++step)
  {
    const auto   next = std::upper_bound(sums.bins.begin(), sums.bins.end(), threshold);
    const auto   i = static_cast<std::size_t>(next - sums.bins.begin()) - 1;
    const double above = sums.total - sums.below[i];
    if (above == 0)
    {
      break;
    }
    const double mu = sums.MeanBelow(i);
    const double nu = sums.MeanAbove(i);
    const double p = sums.below[i] / sums.total;
    const double q = above / sums.total;
    const double sigma2 = second[i] / sums.below[i] - mu * mu;
    const double tau2 = (squares - second[i]) / above - nu * nu;
    if (!(sigma2 >= epsilon && tau2 >= epsilon))
    {
      break;
    }
    const double w0 = 1 / sigma2 - 1 / tau2;
    const double w1 = mu / sigma2 - nu / tau2;
    const double w2 = mu * mu / sigma2 - nu * nu / tau2 + std::log10(sigma2 * (q * q) / (tau2 * p * p));
    const double root = w1 * w1 - w0 * w2;
    const double moved = std::abs(w0) < epsilon ? -w2 / w1 : (w1 + std::sqrt(root)) / w0;
    // The bin in which that lies.
    const double bin = std::floor(moved + 0.5);
    if (!(root >= epsilon && bin >= 0 && bin <= sums.bins.back()) || bin == threshold)
    {
      break;
    }
    threshold = bin;
  }
  return threshold;
}

double
Shanbhag(const BinSums & sums)
{
  return FirstLargest(sums, [&](std::size_t t) {
    double       below = 0;
    const double half = 0.5 / PartBelow(sums, t);
    for (std::size_t i = 1; i <= t; ++i)
    {
      below -= sums.count[i] / sums.total * std::log(1 - half * PartBelow(sums, i - 1));
    }
    double       above = 0;
    const double other = 0.5 / PartAbove(sums, t);
    for (std::size_t i = t + 1; i < sums.Size(); ++i)
    {
      above -= sums.count[i] / sums.total * std::log(1 - other * PartAbove(sums, i));
    }
    return -std::abs(half * below - other * above);
  });
}

/** The thresholds of the classes with the largest variance between them. This is the largest sum of S^2 / N
 * over the classes, S the sum of a class and N its number. By dynamic programming from the last class on; the first end
 * of a class does not fall as its beginning rises, so that it is looked for between those of two others: O(k L log L).
 */
class ClassSearch
{
public:
  ClassSearch(const BinSums & sums, int classes)
    : m_Sums(sums)
    , m_Size(sums.Size())
    , m_Best(m_Size)
    , m_Ends(static_cast<std::size_t>(classes), std::vector<std::size_t>(m_Size, m_Size))
  {
    for (std::size_t begin = 0; begin < m_Size; ++begin)
    {
      m_Best[begin] = this->Gain(begin, m_Size);
    }
    for (int more = 1; more < classes; ++more)
    {
      m_Rest = m_Best;
      m_Level = static_cast<std::size_t>(more);
      // Positions that leave no bins for the `more` classes behind have no value.
      this->Fill(0, m_Size - m_Level, 1, m_Size - m_Level + 1);
    }
  }
  std::vector<double>
  GetThresholds() const
  {
    std::vector<double> thresholds;
    std::size_t         begin = 0;
    for (std::size_t level = m_Ends.size() - 1; level > 0; --level)
    {
      begin = m_Ends[level][begin];
      thresholds.push_back(m_Sums.bins[begin - 1]);
    }
    return thresholds;
  }

private:
  double
  Gain(std::size_t begin, std::size_t end) const
  {
    const double number = m_Sums.below[end - 1] - (begin > 0 ? m_Sums.below[begin - 1] : 0.0);
    const double sum = m_Sums.first[end - 1] - (begin > 0 ? m_Sums.first[begin - 1] : 0.0);
    return sum / number * sum;
  }
  /** For the beginnings from `low` to before `high`, with ends from `first` to before `last`. */
  void
  Fill(std::size_t low, std::size_t high, std::size_t first, std::size_t last)
  {
    if (low >= high)
    {
      return;
    }
    const std::size_t begin = (low + high) / 2;
    double            largest = -1;
    std::size_t       best = 0;
    for (std::size_t end = std::max(begin + 1, first); end < last; ++end)
    {
      const double value = this->Gain(begin, end) + m_Rest[end];
      if (value > largest)
      {
        largest = value;
        best = end;
      }
    }
    m_Best[begin] = largest;
    m_Ends[m_Level][begin] = best;
    this->Fill(low, begin, first, best + 1);
    this->Fill(begin + 1, high, best, last);
  }

  const BinSums &                       m_Sums;
  const std::size_t                     m_Size;
  std::vector<double>                   m_Best; ///< of the bins from each on, in the classes of this level
  std::vector<double>                   m_Rest; ///< the same of the level before
  std::vector<std::vector<std::size_t>> m_Ends;
  std::size_t                           m_Level{ 0 };
};

double
BinOfThreshold(const BinSums & sums, const std::vector<std::int64_t> & counts, ThresholdMethod method)
{
  switch (method)
  {
    case ThresholdMethod::Li:
      return Li(sums);
    case ThresholdMethod::Yen:
      return Yen(sums);
    case ThresholdMethod::Triangle:
      return Triangle(counts);
    case ThresholdMethod::IsoData:
      return IsoData(sums);
    case ThresholdMethod::Moments:
      return Moments(sums);
    case ThresholdMethod::Huang:
      return Huang(sums);
    case ThresholdMethod::MaximumEntropy:
      return MaximumEntropy(sums);
    case ThresholdMethod::RenyiEntropy:
      return RenyiEntropy(sums);
    case ThresholdMethod::Kittler:
      return Kittler(sums);
    case ThresholdMethod::Shanbhag:
      return Shanbhag(sums);
    default:
      throw ParameterError("Method: it has no threshold that follows from a histogram");
  }
}

} // namespace

const std::vector<std::string> &
GetThresholdMethodNames()
{
  static const std::vector<std::string> names{ "otsu",     "li",         "yen",         "triangle", "isodata",
                                               "moments",  "huang",      "max-entropy", "renyi",    "kittler",
                                               "shanbhag", "multi-otsu", "fixed" };
  return names;
}

std::vector<double>
ComputeThresholds(const ThresholdHistogram & histogram, ThresholdMethod method, int classes)
{
  if (method == ThresholdMethod::Otsu)
  {
    const double bin = Otsu(histogram.counts);
    if (bin >= 0)
    {
      return { histogram.first + bin * histogram.width };
    }
  }
  const BinSums sums(histogram.counts);
  if (sums.Size() == 0)
  {
    throw ParameterError("the image has no voxel from which a threshold could be taken");
  }
  std::vector<double> bins;
  if (method == ThresholdMethod::MultiOtsu)
  {
    if (classes < 2 || sums.Size() < static_cast<std::size_t>(classes))
    {
      throw ParameterError("Classes: " + std::to_string(classes) + "; the histogram has voxels in " +
                           std::to_string(sums.Size()) + " bins, and there are from 2 classes to as many");
    }
    bins = ClassSearch(sums, classes).GetThresholds();
  }
  else
  {
    bins.push_back(sums.Size() == 1 ? sums.bins.front() : BinOfThreshold(sums, histogram.counts, method));
  }
  for (double & bin : bins)
  {
    bin = histogram.first + bin * histogram.width;
  }
  return bins;
}

} // namespace chunkwise
