/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNetworkOperation_h
#define chunkwiseNetworkOperation_h

#include "chunkwiseNetworkGraph.h"
#include "chunkwiseOperations.h"

namespace chunkwise
{

/** The result of a network at an output voxel. It is decided chunk by chunk: but for AllChannels an image of all
 * channels never exists. */
enum class NetworkResult
{
  Channel,   ///< the value of one channel
  ArgMax,    ///< the number of the largest channel, the first of equal ones
  Threshold, ///< 1 where one channel is larger than a threshold, else 0
  /** The value of each channel, along an axis that is not spatial. The image has the number of channels along that
   * axis, and the inputs show the same voxels for each: their views have a stride of 0 there. */
  AllChannels
};

/** The arithmetic that the network may use. */
enum class NetworkPrecision
{
  /** Convolutions may go through transforms of tiles: errors are some 1e-6 of the largest output, 1.2e-5 in the worst
   * case measured (docs/networks.md), and results differ by as much with the chunks and backends. */
  Float32,
  /** The same bits for any chunking and on every backend. */
  Reproducible,
  /** On devices with tensor cores products of spectra have factors of 11 bits: errors are up to some 5e-3 of the
   * largest output (docs/networks.md). Elsewhere as Float32. */
  TensorFloat32,
  /** As TensorFloat32, and spectra lie in memory in half precision, scaled so that none is too large for it: errors are
   * up to some 1e-2. The products are summed in float32. Without tensor cores, and on the CPU, as Float32. */
  Half
};

/** The part of the image that the network is given at a time. */
enum class NetworkMode
{
  Dense,  ///< the whole image: no seams
  Patches ///< windows of one extent that overlap
};

/** How the results of windows are weighed where they overlap. */
enum class PatchWeighting
{
  Constant, ///< their mean
  Gaussian  ///< by a Gaussian around each window's centre, sigma an eighth of its extent, but at least by 0.001
};

/** How convolutions are computed, for tests and comparisons. */
enum class NetworkMethod
{
  Automatic, ///< what is expected to be faster
  Direct,
  Transforms ///< where there are any, however small the chunk
};

/** The memory for planes that later steps need if a chunk is computed in slabs. */
enum class NetworkPlanes
{
  Automatic, ///< in the host's memory where the device's is so small that it pays
  OnDevice,
  InHostMemory ///< where the host's budgets have room, for tests and comparisons
};

/** A convolutional network over the whole image at once, without seams ("dense"). Kernel "network".
 *
 * Inputs: one image for each of the network's input channels. A voxel v becomes fma(v, scale, shift), in double and
 * then rounded to float.
 *
 * Boundary: layers pad as they were made to, at the true edge alone, so that a chunk computes what the whole image
 * would. If the network needs voxels beyond the image, the image is continued as `boundary` says: half of the field of
 * view to either side for networks whose layers do not pad, and up to the next multiple of the total stride at the
 * upper end for networks whose layers pad. Modes: ZeroFluxNeumann, Constant, Mirror.
 *
 * Arithmetic of Reproducible, the same on every backend so that results are bit-identical for any chunking: float32; a
 * convolution is
 * acc = bias, then acc = fma(weight, value, acc) over the input channels of the group in ascending order, for each over
 * z, y, x of the kernel in ascending order, where a value beyond the edge is 0. A transposed one adds over z, y, x of
 * the kernel, for each over the channels. Exponentials and logarithms are computed in double by
 * chunkwiseNetworkVoxels.h. Integer results are rounded to nearest, ties to even, and clamped.
 *
 * Float32 lets a backend compute convolutions through transforms of tiles, in float32 too. A voxel's error is then
 * relative to the largest values in its tile, some 30 voxels along an axis: what is faint beside something bright loses
 * digits, and a value that is not finite spoils its tile. Results differ by that with the chunks.
 *
 * Patches: the network is given windows of the extent `patch`, each as if it were the whole image, one every
 * int(patch * (1 - overlap)) voxels along each axis from index 0 on, the last one moved back to where the image ends.
 * An output voxel is the weighed mean of what the windows that hold it give, added in ascending order of z, y, x. A
 * window larger than the image lies around it, half of the excess (rounded down) at the lower end, and sees the
 * boundary there. The result equals MONAI's sliding_window_inference, with the boundary Constant 0.
 *
 * Source: A. Zlateski, K. Lee, H. S. Seung, ZNNi: maximizing the inference throughput of 3D convolutional networks on
 * CPUs and GPUs, SC16, sections II and III (the direct primitives). */
class Chunkwise_EXPORT NetworkOperation : public Operation
{
public:
  std::shared_ptr<const NetworkGraph> graph;
  WindowBoundary                      boundary{ BoundaryMode::ZeroFluxNeumann, 0.0 };
  double                              scale{ 1 };
  double                              shift{ 0 };
  NetworkResult                       result{ NetworkResult::Channel };
  int                                 channel{ 0 };
  double                              threshold{ 0.5 };
  int                                 channelAxis{ MaxSpatialAxes }; ///< of AllChannels
  NetworkPrecision                    precision{ NetworkPrecision::Float32 };
  NetworkMethod                       method{ NetworkMethod::Automatic };
  int                                 tile{ 0 }; ///< the only one that transforms may have; 0: any
  /** Output planes that a chunk is computed in at a time, each layer keeping the planes that the next ones need; 0:
   * what is expected to be best. As many as the image has, or more: a chunk is computed at once. */
  std::int64_t  slab{ 0 };
  NetworkPlanes planes{ NetworkPlanes::Automatic };
  /** Layers, the first ones, that the CPU computes of the next slab while a device computes the others of this one; 0:
   * none; -1: what is expected to be fastest, none where Reproducible. Results differ as between backends. */
  int            headLayers{ -1 };
  NetworkMode    mode{ NetworkMode::Dense };
  LayerExtent    patch{ { 1, 1, 1 } }; ///< extent of a window
  double         overlap{ 0.25 };      ///< of neighbouring windows, as a part of their extent
  PatchWeighting weighting{ PatchWeighting::Constant };

  std::string
  GetName() const override
  {
    return "network";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  int
  GetNumberOfInputs() const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & image) const override;
  /** Up to multiples of the total stride. */
  Coordinates
  RoundChunk(const Coordinates & extent) const override;
  /** The operation with each number of head layers that is possible, or with the one it asks for; none where it wants
   * none. */
  std::vector<std::shared_ptr<const Operation>>
  GetPipedVariants() const override;

  /** The first indices of the windows along an axis of an image, in ascending order; the first may lie below 0. */
  std::vector<std::int64_t>
  GetPatchStarts(int axis, std::int64_t image) const;

  /** Multiply-adds of an output box of this extent, border and all. */
  double
  GetMultiplyAdds(const LayerExtent & extent, const Coordinates & image) const;

private:
  void
  ValidatePatches() const;
};

struct Plan;

/** How a layer of a network is computed on a chunk. */
struct NetworkLayerDescription
{
  std::string   name;
  LayerKind     kind;
  int           channels;
  LayerExtent   extent; ///< of its result, in voxels; of a chunk in slabs, what lies in memory at a time
  LayerExtent   kernel;
  LayerExtent   stride;
  LayerExtent   dilation;
  int           tile;  ///< voxels along each axis of the tiles that are transformed; 0: it is computed directly
  std::uint64_t bytes; ///< of that
  std::uint64_t transformBytes; ///< set aside for spectra while it is computed
  double        share;          ///< of the chunk's time, as the plan expects it: 0 to 1
  std::uint64_t keptBytes;      ///< planes of it that a step of slabs leaves for the next one
  bool          keptByHost;     ///< these lie in the host's memory, though a device computes it
  bool          byCpu;          ///< the CPU computes it, a device the others; shares are of the time of either
};

/** Describes how a run by this plan would compute a chunk, layer by layer, on devices or on the CPU. */
Chunkwise_EXPORT std::vector<NetworkLayerDescription>
DescribeNetworkPlan(const NetworkOperation & operation, const Plan & plan, const Box & image, bool onDevices);

} // namespace chunkwise

#endif
