/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaRank.cuh"

#include <cmath>

namespace chunkwise
{

namespace
{

template <typename TKey>
void
Launch(const RankGeometry & g, const void * in, void * out, cudaStream_t stream)
{
  if (!LaunchRankLists<TKey>(g, in, out, stream) && !LaunchRankTiles<TKey>(g, in, out, stream))
  {
    LaunchRankBits<TKey>(g, in, out, stream);
  }
}

/** The axes of windows, those without a radius last; the line is never along x, on which neighbouring threads lie. */
void
ChooseAxes(RankGeometry & g, const Coordinates & radius)
{
  g.lineAxis = MaxDimension - 1;
  while (g.lineAxis > 1 && radius[g.lineAxis] == 0)
  {
    --g.lineAxis;
  }
  g.lineRadius = static_cast<int>(radius[g.lineAxis]);
  int found = 0;
  for (const bool wide : { true, false })
  {
    for (int a = 0; a < MaxDimension && found < 2; ++a)
    {
      if (a != g.lineAxis && (radius[a] > 0) == wide)
      {
        g.planeAxes[found] = a;
        g.planeRadii[found++] = static_cast<int>(radius[a]);
      }
    }
  }
}

template <typename TPixel>
void
Run(const KernelCall & call)
{
  const auto &      operation = static_cast<const RankOperation &>(*call.operation);
  const Coordinates radius = operation.EffectiveRadius(call.image.Extents());
  const WindowBoxes boxes(call.output.box, call.image, radius, operation.boundary.mode);
  char *            scratch = static_cast<char *>(call.scratch);
  const auto        pixels = ContinueImage<TPixel>(call, boxes, operation.boundary, scratch);
  RankGeometry      g{};
  g.in = pixels.box;
  g.inStride = pixels.stride;
  g.out = g.outBuffer = call.output.box;
  g.outStride = call.output.stride;
  ChooseAxes(g, radius);
  g.fraction = operation.fraction;
  g.form = RankKey<TPixel>::IsReal                            ? KeyForm::Real
           : static_cast<TPixel>(-1) < static_cast<TPixel>(0) ? KeyForm::Signed
                                                              : KeyForm::Unsigned;
  g.inputKind = call.inputs[0].kind;
  g.outputKind = call.output.kind;
  Launch<typename RankKey<TPixel>::Type>(g, pixels.data, call.output.data, StreamOf(call));
}

void
RunRank(const KernelCall & call)
{
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) { Run<decltype(pixel)>(call); });
}

WindowBoxes
BoxesOf(const Operation & operation, const ChunkShape & shape)
{
  const auto & rank = static_cast<const RankOperation &>(operation);
  return WindowBoxes(shape.outputBox, shape.image, rank.EffectiveRadius(shape.image.Extents()), rank.boundary.mode);
}

std::size_t
ScratchOfRank(const Operation & operation, const ChunkShape & shape)
{
  return ContinuedBytes(BoxesOf(operation, shape),
                        static_cast<const RankOperation &>(operation).boundary.mode,
                        PixelSize(shape.inputKinds[0]));
}

/** In bytes that take as long (measured on an H200): 3 a tap from lists, 17 a voxel of the planes that come and go in
 * tiles, 11 a tap and byte of a voxel bit by bit. */
double
CostOfRank(const Operation & operation, const ChunkShape & shape)
{
  const WindowBoxes boxes = BoxesOf(operation, shape);
  double            taps = 1;
  std::int64_t      largest = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    taps *= static_cast<double>(2 * boxes.radius[a] + 1);
    largest = std::max(largest, boxes.radius[a]);
  }
  const std::size_t pixel = PixelSize(shape.inputKinds[0]);
  const double      bytes = largest <= 3                 ? 3 * taps
                            : largest <= 5 && pixel <= 4 ? 17 * std::pow(taps, 2.0 / 3)
                                                         : 11 * taps * static_cast<double>(pixel);
  return bytes * static_cast<double>(shape.outputBox.NumberOfVoxels());
}

} // namespace

void
RegisterCudaRank(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunRank;
  kernel.scratchBytes = ScratchOfRank;
  kernel.cost = CostOfRank;
  registry.Register("rank", kernel);
}

} // namespace chunkwise
