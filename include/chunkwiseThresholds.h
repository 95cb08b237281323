/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseThresholds_h
#define chunkwiseThresholds_h

#include "chunkwiseStatistics.h"

#include <string>
#include <vector>

// Thresholds from the histogram of a whole image.
namespace chunkwise
{

/** How thresholds follow from a histogram. See ComputeThresholds for the definitions. */
enum class ThresholdMethod
{
  Otsu,
  Li,
  Yen,
  Triangle,
  IsoData,
  Moments,
  Huang,
  MaximumEntropy,
  RenyiEntropy,
  Kittler,
  Shanbhag,
  MultiOtsu,
  Fixed ///< the caller gives the range; no histogram
};

/** "otsu", "li", "yen", "triangle", "isodata", "moments", "huang", "max-entropy", "renyi", "kittler", "shanbhag",
 * "multi-otsu", "fixed", in the order of the enumeration. */
Chunkwise_EXPORT const std::vector<std::string> &
                       GetThresholdMethodNames();

/** Counts of voxels in bins of equal width. The first bin and the last one are not empty. */
struct ThresholdHistogram
{
  double                    first{ 0 }; ///< the center of the first bin
  double                    width{ 1 };
  std::vector<std::int64_t> counts;

  double
  GetCenter(std::size_t bin) const
  {
    return first + static_cast<double>(bin) * width;
  }
};

/** The thresholds of a histogram in ascending order: one, of MultiOtsu `classes` - 1. Each is the center of a bin, but
 * of Li, whose threshold lies between values. Voxels above a threshold are in the class above it. The threshold of a
 * histogram with one bin is that bin's center. Computed in double, on the host.
 *
 * With p(i) the fraction of the voxels in bin i, P(t) and Q(t) the fractions of those up to bin t and above it, and
 * m(t) and n(t) their means:
 * - Otsu: the least t for which P Q (m - n)^2 is largest. N. Otsu, "A threshold selection method from gray-level
 *   histograms", IEEE Transactions on Systems, Man, and Cybernetics 9(1), 1979.
 * - Li: from the mean on, t = (m - n) / (log m - log n) with values above the least one, until a step is no more than
 *   half a bin. C. H. Li, P. K. S. Tam, "An iterative algorithm for minimum cross entropy thresholding", Pattern
 *   Recognition Letters 18(8), 1998.
 * - Yen: the least t for which (P Q)^2 / (sum of p^2 up to t, times that above) is largest. J. C. Yen, F. J. Chang,
 *   S. Chang, "A new criterion for automatic multilevel thresholding", IEEE Transactions on Image Processing 4(3),
 * 1995.
 * - Triangle: the bin that lies furthest below the line from the peak to the end of the longer tail. G. W. Zack,
 *   W. E. Rogers, S. A. Latt, "Automatic measurement of sister chromatid exchange frequency", Journal of Histochemistry
 *   and Cytochemistry 25(7), 1977.
 * - IsoData: the least t that is (m + n) / 2, rounded down to a bin. T. W. Ridler, S. Calvard, "Picture thresholding
 *   using an iterative selection method", IEEE Transactions on Systems, Man, and Cybernetics 8(8), 1978.
 * - Moments: the image of two values has the first three moments of the image. W. Tsai, "Moment-preserving
 *   thresholding: a new approach", Computer Vision, Graphics, and Image Processing 29, 1985.
 * - Huang: the least fuzziness, measured by Shannon's entropy; means are rounded to bins. L.-K. Huang, M.-J. J. Wang,
 *   "Image thresholding by minimizing the measures of fuzziness", Pattern Recognition 28(1), 1995.
 * - MaximumEntropy: the largest sum of the entropies of both classes, which counts as larger by more than 1e-5.
 *   J. N. Kapur, P. K. Sahoo, A. K. C. Wong, "A new method for gray-level picture thresholding using the entropy of the
 *   histogram", Computer Vision, Graphics, and Image Processing 29(3), 1985.
 * - RenyiEntropy: a mean of the best thresholds by entropies of order 1/2, 1 and 2. The same paper.
 * - Kittler: the least error where both classes are Gaussian, by steps from the bin of the mean on, with log10 as ITK
 *   has it. The threshold stays if a step is not possible. J. Kittler, J. Illingworth, "Minimum error thresholding",
 * Pattern Recognition 19(1), 1986.
 * - Shanbhag: both classes give the same information. A. G. Shanbhag, "Utilization of information measure as a means of
 *   image thresholding", CVGIP: Graphical Models and Image Processing 56(5), 1994.
 * - MultiOtsu: the largest variance between the classes, by dynamic programming; of several the least thresholds.
 *   P.-S. Liao, T.-S. Chen, P.-C. Chung, "A fast algorithm for multilevel thresholding", Journal of Information Science
 *   and Engineering 17(5), 2001.
 *
 * Those up to IsoData and MultiOtsu are defined as scikit-image has them, the others as ITK's calculators. Throws
 * ParameterError for a histogram without voxels, one with fewer values than classes, and for Fixed. */
Chunkwise_EXPORT std::vector<double>
                 ComputeThresholds(const ThresholdHistogram & histogram, ThresholdMethod method, int classes = 2);

/** The histogram from which thresholds of an image are taken, without NaN. Integers have a bin for each value where
 * there are up to 65536 between the least voxel and the largest and `bins` is 0. Else there are `bins` bins, or 256,
 * between the least finite voxel and the largest; infinities are in the bin at their end. With `masked` the image has a
 * mask as its second input, and voxels count where that is not 0. Throws ParameterError if no voxel counts. */
Chunkwise_EXPORT ThresholdHistogram
ComputeThresholdHistogram(const SummaryRun & run, PixelType kind, int bins = 0, bool masked = false,
                          Monitor * monitor = nullptr);

} // namespace chunkwise

#endif
