/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseImageConvolutionOperation_h
#define chunkwiseImageConvolutionOperation_h

#include "chunkwiseOperations.h"
#include "chunkwiseTransformProvider.h"

#include <memory>
#include <string>
#include <vector>

namespace chunkwise
{

/** A kernel on a grid, with extent 1 along the axes that take no part. */
class Chunkwise_EXPORT ConvolutionKernel
{
public:
  /** `weights` dense, x fastest; `center` is the weight that meets the voxel itself. Without weights only the shape is
   * known: enough for halos, not for a run. */
  ConvolutionKernel(const Coordinates & extent, const Coordinates & center, std::vector<double> weights);

  /** This kernel mirrored: a convolution with it is the correlation with this one. */
  std::shared_ptr<const ConvolutionKernel>
  Flipped() const;

  const Coordinates &
  GetExtent() const
  {
    return m_Extent;
  }
  const Coordinates &
  GetCenter() const
  {
    return m_Center;
  }
  const std::vector<double> &
  GetWeights() const
  {
    return m_Weights;
  }
  double
  GetSum() const
  {
    return m_Sum;
  }
  double
  GetSumOfMagnitudes() const
  {
    return m_SumOfMagnitudes;
  }
  std::int64_t
  GetNumberOfTaps() const;
  /** A key of shape and contents. */
  const std::string &
  GetKey() const
  {
    return m_Key;
  }

private:
  Coordinates         m_Extent{};
  Coordinates         m_Center{};
  std::vector<double> m_Weights;
  double              m_Sum{ 0 };
  double              m_SumOfMagnitudes{ 0 };
  std::string         m_Key;
};

enum class ConvolutionMethod
{
  Auto, ///< Direct for kernels of few weights, else FFT
  FFT,
  Direct
};

/** "auto", "own", "cufft", "fftw". */
Chunkwise_EXPORT const char *
TransformProviderName(TransformProvider provider);
/** The inverse; throws ParameterError. */
Chunkwise_EXPORT TransformProvider
TransformProviderFromName(const std::string & name);

/** out[i] = sum over t of weight[t] * in[i + center - t], t over the kernel: a convolution along up to three axes.
 * Kernels "convolution.fft" and "convolution.direct".
 *
 * Arithmetic:
 * - Accumulator: float for float, 8- and 16-bit integers; double for the others.
 * - Direct: acc = +0, then acc = fma(weight[t], tap, acc) from the highest t to the lowest, x fastest, that is over the
 *   taps from the lowest index to the highest: the same bits on every backend and for every chunk. In Renormalized
 *   mode taps beyond the edge are 0.
 * - FFT: computed in tiles of a grid that begins at the image's origin, with lengths that follow from the extents of
 *   image and kernel alone: bits do not depend on chunks, threads, streams, or the number of devices of one kind. The
 *   CPU and devices have different tiles; cuFFT's lengths depend on the chunk. The error at a voxel is bounded in
 *   proportion to the largest magnitude in its tile's input; over an image the relative L2 error stays below 1e-6 in
 *   float and 1e-14 in double for kernels of one sign. A NaN or an infinity spreads over its tile.
 * - In Renormalized mode the result is multiplied by GetFactor: the sum of all weights by that of those inside the
 *   image. The factor is 1 if the window is not cut. Kernels for which an inside sum vanishes are refused by Validate.
 * - Integer results are rounded to nearest, ties to even, and clamped to the kind's range. */
class Chunkwise_EXPORT ImageConvolutionOperation : public WindowedOperation
{
public:
  std::shared_ptr<const ConvolutionKernel> kernel;
  ConvolutionMethod                        method{ ConvolutionMethod::Auto };
  /** If a library is named, Auto uses transforms for kernels of few weights, too. A backend that cannot serve it throws
   * ParameterError before work starts; see IsForCufft for what Auto takes. */
  TransformProvider transforms{ TransformProvider::Auto };

  /** Kernels of up to this many weights are convolved directly with Auto. */
  static constexpr std::int64_t MostDirectTaps = 50;

  std::string
  GetName() const override;
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  /** Whole tiles of the CPU, and of devices. */
  Coordinates
  GetTile(const Coordinates & image) const override;
  void
  Validate(const Coordinates & image) const override;
  Coordinates
  RoundChunk(const Coordinates & extent) const override;
  /** FFTW's transforms are those of the CPU. */
  std::string
  GetObjectionToDevices() const override;

  /** Taps below an output voxel along an axis, and above it. */
  std::int64_t
  Below(int a) const
  {
    return kernel->GetExtent()[a] - 1 - kernel->GetCenter()[a];
  }
  std::int64_t
  Above(int a) const
  {
    return kernel->GetCenter()[a];
  }
  /** Whether cuFFT is faster than own transforms on a device, or alone has the lengths. */
  bool
  IsForCufft() const;
  bool
  Renormalizes() const
  {
    return boundary.mode == BoundaryMode::Renormalized;
  }
};

/** How the window is cut at the edges, as a table: the positions of an axis fall into at most as many states as the
 * kernel is long, and a voxel's factor depends on its states alone. */
class Chunkwise_EXPORT ConvolutionFactors
{
public:
  ConvolutionFactors(const ImageConvolutionOperation & operation, const Coordinates & image);

  /** The state of position `i` of an axis with `n` voxels: a kernel of extent `k` with `below` taps below. Positions
   * where nothing is cut share the state `below` if the kernel fits the axis. */
  static CHUNKWISE_HOST_DEVICE std::int64_t
                               State(std::int64_t i, std::int64_t n, std::int64_t k, std::int64_t below)
  {
    if (n <= k)
    {
      return i;
    }
    const std::int64_t fromEnd = n - i;
    return i < below ? i : (fromEnd < k - below ? k - fromEnd : below);
  }

  /** States per axis. */
  static Coordinates
  States(const ImageConvolutionOperation & operation, const Coordinates & image);

  /** The same, and the factors, dense with x fastest. */
  Coordinates         states{};
  std::vector<double> factors;
};

/** The length, a product of 2, 3, 5 and 7, whose transform is the fastest of those with at least n points. Grows with
 * n. */
Chunkwise_EXPORT std::int64_t
                 GoodTransformLength(std::int64_t n);

/** The same for a provider's transforms: those of FFTW have a factor of 11 or 13 beside, once. */
Chunkwise_EXPORT std::int64_t
                 GoodTransformLength(std::int64_t n, TransformProvider provider);

/** The radices of a transform of this length, in the order of the passes; empty for 1. */
Chunkwise_EXPORT std::vector<int>
                 TransformRadices(std::int64_t n);

/** cos and -sin (2 pi j / n) of the passes' twiddles: for each pass but the last, with m the points left after it, for
 * p in [0, m), k in [1, radix): w(m * radix)^(p k). */
Chunkwise_EXPORT std::vector<double>
                 TransformTwiddles(std::int64_t n);

/** The transforms of one chunk, or of a block of a chunk. Roles: 0 is the axis of the real transform, 1 and 2 follow; 3
 * and 4 are not transformed. Along a transformed axis the block's input, beginning with its first voxel at position 0,
 * is followed by zeros up to the length; the output's first voxel is at position `crop`. */
class Chunkwise_EXPORT ConvolutionBlock
{
public:
  /** `support`: where alone the input is not 0; it must reach the output through the kernel. nullptr: anywhere. */
  ConvolutionBlock(const ImageConvolutionOperation & operation, const Box & output, const Coordinates & image,
                   const Box * support = nullptr);

  /** At least as large as every block whose output has at most this extent, wherever it lies. It has no place. */
  static ConvolutionBlock
  Largest(const ImageConvolutionOperation & operation, const Coordinates & extent, const Coordinates & image);

  /** The extents of the CPU's tiles. Each is a block, whose rounding depends on the image's extent and the kernel
   * alone. */
  static Coordinates
  Tile(const ImageConvolutionOperation & operation, const Coordinates & image);
  /** Rows of a tile along role 1 if it is not transformed: lines are transformed in pairs, whose other line they know
   * by rounding. */
  static constexpr std::int64_t RowsOfTile = 64;
  /** Extents of tiles: at least, where tiles share transforms, and at most, unless the kernel is large. */
  static constexpr std::int64_t LeastTile = 96;
  static constexpr std::int64_t LongestTile = 640;
  /** The size of a tile's spectrum in float, for kernels along three axes: the least that a budget must hold. */
  static constexpr double LargestTileBytes = 64.0 * 1024 * 1024;
  /** Images of fewer planes have small tiles, so that each is the work of one thread. */
  static constexpr std::int64_t FewPlanes = 16;

  /** The same for tiles: with the lengths of the largest tile, and with the last axis in tiles that share the
   * transforms along the others. `output` and `extent` hold whole tiles. */
  ConvolutionBlock(const ImageConvolutionOperation & operation, const Box & output, const Coordinates & image,
                   const Coordinates & tile);
  static ConvolutionBlock
  Largest(const ImageConvolutionOperation & operation, const Coordinates & extent, const Coordinates & image,
          const Coordinates & tile);

  struct Axis
  {
    int          axis{ 0 };
    bool         transformed{ false };
    std::int64_t lower{ 0 };  ///< image index of the first input position, perhaps beyond the edge
    std::int64_t input{ 1 };  ///< positions that are not all zero
    std::int64_t output{ 1 }; ///< positions that are kept
    std::int64_t crop{ 0 };
    std::int64_t length{ 1 }; ///< of the transform; the extent if not transformed
    std::int64_t kernel{ 1 };
  };
  Axis              role[MaxDimension];
  TransformProvider transforms{ TransformProvider::Auto };
  /** Positions of a tile along the axis that is transformed last; 0: the block is one tile. */
  std::int64_t lastTile{ 0 };

  /** The role of the axis that is transformed last. */
  int
  LastRole() const;

  /** Complex values of a row's half spectrum. */
  std::int64_t
  HalfRow() const
  {
    return role[0].transformed ? role[0].length / 2 + 1 : role[0].length;
  }

private:
  explicit ConvolutionBlock(const ImageConvolutionOperation & operation);
  void
  TakeLengths(const ImageConvolutionOperation & operation, const Coordinates & image, const Coordinates & tile);
};

/** The tiles that `box` meets, whole, of a grid that begins at the image's lower corner. */
Chunkwise_EXPORT std::vector<Box>
                 CutIntoTiles(const Box & box, const Coordinates & tile, const Box & image);

/** `box` cut into parts of about one extent, at most `most`. */
Chunkwise_EXPORT std::vector<Box>
                 CutIntoBlocks(const Box & box, const Coordinates & most);

} // namespace chunkwise

#endif
