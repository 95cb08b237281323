/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaRankChoice.h"

#include "chunkwiseCudaRank.cuh"

namespace chunkwise
{

namespace
{

/** The axes of windows, those without a radius last; the line is never along x, on which neighbouring threads lie.
 * Small windows along two axes are planes: the line has no radius. */
void
ChooseAxes(RankGeometry & g, const FootprintOperation::Sides & sides)
{
  const Coordinates radius = sides.Farthest();
  const auto        wide = std::count_if(radius.axis, radius.axis + MaxDimension, [](std::int64_t r) { return r > 0; });
  const bool        isPlane = wide <= 2 && *std::max_element(radius.axis, radius.axis + MaxDimension) <= 3;
  g.lineAxis = MaxDimension - 1;
  while (g.lineAxis > 1 && (radius[g.lineAxis] > 0) == isPlane)
  {
    --g.lineAxis;
  }
  g.lineRadius = static_cast<int>(sides.lower[g.lineAxis]);
  g.lineUpper = static_cast<int>(sides.upper[g.lineAxis]);
  int found = 0;
  for (const bool wide : { true, false })
  {
    for (int a = 0; a < MaxDimension && found < 2; ++a)
    {
      if (a != g.lineAxis && (radius[a] > 0) == wide)
      {
        g.planeAxes[found] = a;
        g.planeRadii[found] = static_cast<int>(sides.lower[a]);
        g.planeUppers[found++] = static_cast<int>(sides.upper[a]);
      }
    }
  }
}

/** Calls take(part, isWhole) for the parts of the output that have all voxels of their windows, and of the others. */
template <typename TTake>
void
ForEachPart(const RankGeometry & g, TTake && take)
{
  Box        left = g.out;
  const auto takePart = [&](int axis, bool isLower, std::int64_t bound) {
    RankGeometry part = g;
    part.out = left;
    const std::int64_t cut = std::clamp(bound, left.lower[axis], left.upper[axis]);
    (isLower ? part.out.upper : part.out.lower)[axis] = cut;
    (isLower ? left.lower : left.upper)[axis] = cut;
    if (!part.out.IsEmpty())
    {
      take(part, false);
    }
  };
  const std::pair<int, int> axes[] = { { g.lineAxis, g.lineRadius },
                                       { g.planeAxes[1], g.planeRadii[1] },
                                       { g.planeAxes[0], g.planeRadii[0] } };
  for (const auto & [axis, radius] : axes)
  {
    takePart(axis, true, g.in.lower[axis] + radius);
    takePart(axis, false, g.in.upper[axis] - radius);
  }
  if (!left.IsEmpty())
  {
    RankGeometry part = g;
    part.out = left;
    take(part, true);
  }
}

enum class RankWay
{
  Networks, ///< and lists where windows are cut
  Lists,
  Tiles,
  Bits
};

template <typename TPixel>
void
Run(const KernelCall & call, RankWay way)
{
  using Key = typename RankKey<TPixel>::Type;
  const RankWindows windows(*call.operation, call.image.Extents());
  const SidedBoxes  boxes(call.output.box, call.image, windows.sides, windows.boundary.mode);
  char *            scratch = static_cast<char *>(call.scratch);
  const auto        pixels = PadImage<TPixel>(call, boxes, windows.boundary, scratch);
  RankGeometry      g = RankGeometryOf(call.output.box, windows.sides);
  g.in = pixels.box;
  g.inStride = pixels.stride;
  g.outStride = call.output.stride;
  g.fraction = windows.fraction;
  g.form = FormOfKeys<TPixel>();
  g.inputKind = call.inputs[0].kind;
  g.outputKind = call.output.kind;
  if (windows.isCounted)
  {
    g.counts = call.inputs[1].data;
    g.countsAreDouble = call.inputs[1].kind == PixelType::Float64;
    g.countBox = call.inputs[1].box;
    g.countStride = call.inputs[1].stride;
  }
  switch (way)
  {
    case RankWay::Networks:
      ForEachPart(g, [&](const RankGeometry & part, bool isWhole) {
        const bool isTaken = isWhole && RankMediansTake(part, sizeof(Key), windows.isCounted);
        const auto launch = isTaken ? LaunchRankMedians<Key> : LaunchRankLists<Key>;
        launch(part, pixels.data, call.output.data, StreamOf(call));
      });
      break;
    case RankWay::Lists:
      LaunchRankLists<Key>(g, pixels.data, call.output.data, StreamOf(call));
      break;
    case RankWay::Tiles:
      LaunchRankTiles<Key>(g, pixels.data, call.output.data, scratch, StreamOf(call));
      break;
    case RankWay::Bits:
      LaunchRankBits<Key>(g, pixels.data, call.output.data, StreamOf(call));
      break;
  }
}

template <RankWay VWay>
void
RunRank(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) { Run<decltype(pixel)>(call, VWay); });
}

} // namespace

/** Costs in bytes that take as long (measured on an H200): 2 a tap by networks, 1.2 of two voxels together; 3 a tap
 * from lists, and where voxels are counted; 210 a voxel in tiles, and for each voxel that is sorted 30 and 45 a byte of
 * it; 11 a tap and byte of a voxel bit by bit. */
KernelChoice
ChooseRank(const Operation & operation, const ChunkShape & shape)
{
  const RankWindows rank(operation, shape.image.Extents());
  const SidedBoxes  boxes(shape.outputBox, shape.image, rank.sides, rank.boundary.mode);
  const std::size_t pixel = PixelSize(shape.inputKinds[0]);
  const bool        isCentered = rank.sides.lower == rank.sides.upper;
  RankGeometry      g = RankGeometryOf(shape.outputBox, rank.sides);
  g.fraction = rank.fraction;
  const auto voxels = static_cast<double>(shape.outputBox.NumberOfVoxels());
  double     taps = 1;
  double     sorted = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    taps *= static_cast<double>(boxes.Taps(a));
    sorted *= 1 + static_cast<double>(boxes.Taps(a) - 1) / 16;
  }
  const std::size_t continued = ContinuedBytes(boxes, rank.boundary.mode, pixel);
  if (isCentered && RankMediansTake(g, pixel, rank.isCounted))
  {
    const double bytes = rank.isCounted ? 3 : pixel <= 2 ? 1.2 : 2;
    return { "networks", RunRank<RankWay::Networks>, continued, bytes * taps * voxels };
  }
  if (isCentered && RankListsTake(g))
  {
    return { "lists", RunRank<RankWay::Lists>, continued, 3 * taps * voxels };
  }
  const double inTiles = 210 + sorted * static_cast<double>(30 + 45 * pixel);
  const double byBits = 11 * taps * static_cast<double>(pixel);
  if (RankTilesTake(g) && (isCentered || inTiles < byBits))
  {
    const std::size_t tiles = DispatchPixelType(
      shape.inputKinds[0], [&](auto key) { return RankTilesBytes<typename RankKey<decltype(key)>::Type>(g); });
    return { "tiles", RunRank<RankWay::Tiles>, continued + tiles, inTiles * voxels };
  }
  return { "bits", RunRank<RankWay::Bits>, continued, byBits * voxels };
}

RankGeometry
RankGeometryOf(const Box & output, const FootprintOperation::Sides & sides)
{
  RankGeometry g{};
  g.out = g.outBuffer = output;
  ChooseAxes(g, sides);
  return g;
}

void
RegisterCudaRank(KernelRegistry & registry)
{
  registry.Register("rank", { MakeChoosingKernel<ChooseRank>(true) });
}

} // namespace chunkwise
