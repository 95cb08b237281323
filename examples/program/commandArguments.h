/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandArguments_h
#define commandArguments_h

#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseManager.h"
#include "chunkwiseTypes.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace command
{

/** The command line is wrong: exit status 2. The message names the argument. */
class ArgumentError : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

/** The work failed: exit status 1. */
class WorkError : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

/** A help or version text was asked for. */
struct TextRequested
{
  std::string text;
};

enum class Filter
{
  None,
  Identity,
  Mean,
  Sum,
  Variance,
  StandardDeviation,
  Maximum,
  Median,
  Percentile,
  Range,
  Wiener,
  NonLocalMeans,
  Minimum,
  Opening,
  Closing,
  Gaussian,
  LaplacianOfGaussian,
  HighPass,
  Entropy,
  Convolution,
  ImageConvolution,
  VaryingConvolution,
  Statistics,
  Difference,
  Sequence,
  BoxStatistic,
  Reconstruction,
  HMaxima,
  HMinima,
  HConvex,
  HConcave,
  FillHoles,
  GrindPeaks,
  ClearBorder,
  OpeningByReconstruction,
  ClosingByReconstruction,
  RegionalMaxima,
  RegionalMinima,
  SummedAreaTable
};

/** What the command line says. */
struct Arguments
{
  Filter      filter{ Filter::None };
  std::string filterName;
  /** List the devices; run nothing. */
  bool devicesOnly{ false };
  /** Print what would run; run nothing. */
  bool planOnly{ false };

  std::string input;
  std::string output;
  std::string subtrahend;  ///< the second image of a difference
  std::string marker;      ///< of a reconstruction; IN is its mask
  std::string radiusImage; ///< of a box's statistic; empty: one radius for all

  std::vector<std::int64_t>    radius;
  std::vector<double>          sigma;
  bool                         voxels{ false };
  double                       cutoff{ 4.0 };
  std::vector<double>          weights; ///< of a convolution, x fastest
  chunkwise::ConvolutionMethod method{ chunkwise::ConvolutionMethod::Auto };
  std::string                  kernelFile;  ///< of a convolution with an image
  std::string                  kernelsFile; ///< of one that varies, one after the other along its last axis
  std::vector<std::int64_t>    grid;        ///< of their nodes
  std::vector<double>          gridOrigin;  ///< empty, as is the next: the nodes are the centers of cells
  std::vector<double>          gridSpacing;
  bool                         weightsFirst{ false };
  bool                         normalize{ false };
  bool                         correlate{ false };
  bool                         valid{ false }; ///< only voxels whose window is inside the image
  int                          bins{ 256 };
  double                       percentile{ 50.0 };
  std::vector<std::int64_t>    patch{ 1 };
  double                       strength{ 0.0 };
  double                       noise{ 0.0 };        ///< its variance
  std::string                  element{ "box" };    ///< of flat morphology: box, ball or cross
  std::string                  statistic{ "mean" }; ///< of a box: sum, mean, variance or std
  std::vector<double>          range;               ///< empty: the filter's own

  double       height{ 0.0 };
  bool         erosion{ false };
  bool         fullyConnected{ false };
  bool         preserveIntensities{ false };
  unsigned int spatialDimension{ 0 }; ///< 0: the filter's own
  unsigned int summedAxes{ 0 };       ///< of a summed-area table; 0: the filter's default
  bool         squares{ false };
  bool         modular{ false };

  std::vector<std::string> stepTexts;
  std::vector<Arguments>   steps; ///< of a sequence

  chunkwise::BoundaryMode   boundary{ chunkwise::BoundaryMode::Renormalized };
  double                    constant{ 0.0 };
  std::vector<unsigned int> axes; ///< empty: the first three

  chunkwise::BackendChoice backend{ chunkwise::BackendChoice::Auto };
  std::vector<int>         devices;           ///< empty: all
  std::uint64_t            memory{ 0 };       ///< bytes; 0: half of what the machine has available
  std::uint64_t            deviceMemory{ 0 }; ///< bytes; 0: the manager's budget
  unsigned int             divisions{ 0 };    ///< 0: as many as the memory needs
  unsigned int             threads{ 0 };      ///< 0: all
  std::string              outputType;        ///< empty: the input's
  bool                     quiet{ false };
  bool                     verbose{ false };
};

/** Throws ArgumentError, or TextRequested for --help and --version. */
Arguments
ParseArguments(int argc, char ** argv);

} // namespace command

#endif
