/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseError.h"

#include <cstring>
#include <type_traits>

namespace chunkwise
{

namespace
{

const DomainOperation &
DomainOf(const KernelCall & call)
{
  return static_cast<const DomainOperation &>(*call.operation);
}

/** How many voxels of a row a thread loads before it stores their results: so much is under way at a time. */
constexpr std::uint32_t VoxelsAtOnce = 4;

/** Calls f(row's first index, its first number, its voxels) for each row of the box. */
template <typename TFunctor>
__device__ void
ForEachRow(const Box & box, TFunctor && f)
{
  const auto width = static_cast<std::uint32_t>(box.Extent(0));
  const auto count = box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < count; row += RowStep())
  {
    f(IndexIn(box, row * width), row * width, width);
  }
}

/** The functor's voxel at each voxel of the output, which is dense. No voxel depends on what another one stores. */
template <typename TFunctor>
__global__ void
DomainKernel(Box box, TFunctor functor)
{
  ForEachRow(box, [&](Coordinates index, std::int64_t begin, std::uint32_t width) {
    const std::int64_t first = index.axis[0];
    const auto         voxel = [&](std::uint32_t x) {
      index.axis[0] = first + x;
      return functor(static_cast<const Coordinates &>(index), begin + x);
    };
    std::uint32_t x = threadIdx.x;
    for (; x + (VoxelsAtOnce - 1) * blockDim.x < width; x += VoxelsAtOnce * blockDim.x)
    {
      decltype(voxel(x)) voxels[VoxelsAtOnce];
#pragma unroll
      for (std::uint32_t i = 0; i < VoxelsAtOnce; ++i)
      {
        voxels[i] = voxel(x + i * blockDim.x);
      }
#pragma unroll
      for (std::uint32_t i = 0; i < VoxelsAtOnce; ++i)
      {
        functor.out[begin + x + i * blockDim.x] = voxels[i];
      }
    }
    for (; x < width; x += blockDim.x)
    {
      functor.out[begin + x] = voxel(x);
    }
  });
}

template <typename TFunctor>
void
Launch(const KernelCall & call, const TFunctor & functor)
{
  const Box & box = call.output.box;
  DomainKernel<<<BlocksOfRows(box), ThreadsOfRows(), 0, StreamOf(call)>>>(box, functor);
  CheckLaunch("DomainKernel");
}

/** What says which voxels are inside, of kinds known at run time: memory bounds these kernels. */
struct InsideVoxel
{
  Voxels<const char> given;
  PixelKind          givenKind;
  bool               isMask;
  bool               isWeight;
  Voxels<const char> image;
  PixelKind          imageKind;
  bool               ignoresNan;
  void *             out;
  PixelKind          outKind;
  /** Set where a weight is none. */
  unsigned int * wrong;

  __device__ void
  operator()(const Coordinates & index, std::int64_t i) const
  {
    double weight = 1;
    if (isMask)
    {
      weight = LoadAs<double, false>(given.data, givenKind, given.Offset(index)) != 0 ? 1 : 0;
    }
    else if (isWeight)
    {
      weight = LoadAs<double, false>(given.data, givenKind, given.Offset(index));
      if (!(outKind == PixelKind::Float32 ? IsWeight(static_cast<float>(weight)) : IsWeight(weight)))
      {
        *wrong = 1;
      }
    }
    if (ignoresNan)
    {
      const double voxel = LoadAs<double, false>(image.data, imageKind, image.Offset(index));
      weight = voxel == voxel ? weight : 0;
    }
    StoreAs<double, false>(out, outKind, i, weight);
  }
};

__global__ void
InsideKernel(Box box, InsideVoxel voxel)
{
  ForEachRow(box, [&](Coordinates index, std::int64_t begin, std::uint32_t width) {
    const std::int64_t first = index.axis[0];
    for (std::uint32_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      index.axis[0] = first + x;
      voxel(index, begin + x);
    }
  });
}

void
LaunchInside(const KernelCall & call, const InsideVoxel & voxel)
{
  InsideKernel<<<BlocksOfRows(call.output.box), ThreadsOfRows(), 0, StreamOf(call)>>>(call.output.box, voxel);
  CheckLaunch("InsideKernel");
}

/** Of bytes alone, as most masks are. */
struct MaskVoxel
{
  Voxels<const std::uint8_t> given;
  std::uint8_t *             out;

  __device__ std::uint8_t
             operator()(const Coordinates & index, std::int64_t) const
  {
    return given[index] != 0 ? 1 : 0;
  }
};

template <bool VWeighs>
void
RunInside(const KernelCall & call)
{
  const DomainOperation & operation = DomainOf(call);
  const BufferView &      given = call.inputs[0];
  const BufferView &      image = call.inputs[call.numberOfInputs - 1];
  InsideVoxel             voxel;
  voxel.given = VoxelsOf<const char>(given);
  voxel.givenKind = given.kind;
  voxel.isMask = operation.domain != DomainKind::All && !VWeighs;
  voxel.isWeight = VWeighs;
  voxel.image = VoxelsOf<const char>(image);
  voxel.imageKind = image.kind;
  voxel.ignoresNan = operation.LeavesOutNan();
  voxel.out = call.output.data;
  voxel.outKind = call.output.kind;
  voxel.wrong = static_cast<unsigned int *>(call.scratch);
  if (voxel.isMask && !voxel.ignoresNan && given.kind == PixelKind::UInt8 && voxel.outKind == PixelKind::UInt8)
  {
    Launch(call, MaskVoxel{ VoxelsOf<const std::uint8_t>(given), static_cast<std::uint8_t *>(call.output.data) });
    return;
  }
  if (!voxel.isWeight)
  {
    LaunchInside(call, voxel);
    return;
  }
  CheckCuda(cudaMemsetAsync(voxel.wrong, 0, sizeof(unsigned int), StreamOf(call)), "cudaMemsetAsync");
  LaunchInside(call, voxel);
  unsigned int wrong = 0;
  CheckCuda(cudaMemcpyAsync(&wrong, voxel.wrong, sizeof(wrong), cudaMemcpyDeviceToHost, StreamOf(call)),
            "cudaMemcpyAsync");
  CheckCuda(cudaStreamSynchronize(StreamOf(call)), "cudaStreamSynchronize");
  if (wrong != 0)
  {
    throw ParameterError(WrongWeight);
  }
}

std::size_t
ScratchOfWeights(const Operation &, const ChunkShape &)
{
  return 256;
}

template <typename TPixel, typename TWeight, typename TOut, bool VSquares>
struct ProductVoxel
{
  Voxels<const TPixel>  in;
  Voxels<const TWeight> weights;
  TOut *                out;

  __device__ auto
  operator()(const Coordinates & index, std::int64_t i) const
  {
    if constexpr (VSquares)
    {
      return WeighedSquare<TOut>(in[index], weights[index]);
    }
    else
    {
      return WeighedVoxel<TOut>(in[index], weights[index]);
    }
  }
};

template <typename TPixel, typename TWeight, typename TOut, bool VSquares>
void
LaunchProducts(const KernelCall & call)
{
  Launch(call,
         ProductVoxel<TPixel, TWeight, TOut, VSquares>{ VoxelsOf<const TPixel>(call.inputs[0]),
                                                        VoxelsOf<const TWeight>(call.inputs[1]),
                                                        static_cast<TOut *>(call.output.data) });
}

template <bool VSquares>
void
RunProducts(const KernelCall & call)
{
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    switch (call.inputs[1].kind)
    {
      case PixelKind::Float32:
        return LaunchProducts<Pixel, float, float, VSquares>(call);
      case PixelKind::Float64:
        return LaunchProducts<Pixel, double, double, VSquares>(call);
      default:
        if constexpr (VSquares)
        {
          return LaunchProducts<Pixel, std::uint8_t, std::uint32_t, true>(call);
        }
        else
        {
          return LaunchProducts<Pixel, std::uint8_t, Pixel, false>(call);
        }
    }
  });
}

/** Stands for all kinds of its size: what only chooses among voxels is compiled once for each size. */
template <typename TPixel>
using BitsOf =
  std::conditional_t<sizeof(TPixel) == 1, std::uint8_t,
                     std::conditional_t<sizeof(TPixel) == 2, std::uint16_t,
                                        std::conditional_t<sizeof(TPixel) == 4, std::uint32_t, std::uint64_t>>>;

template <typename TPixel>
BitsOf<TPixel>
ToBits(TPixel pixel)
{
  BitsOf<TPixel> bits;
  std::memcpy(&bits, &pixel, sizeof(bits));
  return bits;
}

/** Voxels where something is seen, elsewhere a constant. */
template <typename TBits, typename TSeen>
struct ChosenVoxel
{
  Voxels<const TBits> in;
  Voxels<const TSeen> seen;
  TBits *             out;
  TBits               other;

  __device__ auto
  operator()(const Coordinates & index, std::int64_t i) const
  {
    return seen[index] > TSeen(0) ? in[index] : other;
  }
};

/** `other`, called with any pixel, gives the constant. */
template <typename TSeen, typename TOther>
void
LaunchChosen(const KernelCall & call, TOther && other)
{
  DispatchPixelKind(call.output.kind, [&](auto pixel) {
    using Bits = BitsOf<decltype(pixel)>;
    Launch(call,
           ChosenVoxel<Bits, TSeen>{ VoxelsOf<const Bits>(call.inputs[0]),
                                     VoxelsOf<const TSeen>(call.inputs[1]),
                                     static_cast<Bits *>(call.output.data),
                                     ToBits(other(pixel)) });
  });
}

template <bool VHighest>
void
RunSeen(const KernelCall & call)
{
  LaunchChosen<std::uint8_t>(call, [](auto pixel) { return SeenVoxel<VHighest>(pixel, 0); });
}

void
RunLeast(const KernelCall & call)
{
  LaunchChosen<std::uint8_t>(call, [](auto pixel) { return VoxelOrLeast(pixel, false); });
}

/** The bins of voxels; a further one is of those outside. */
template <typename TPixel>
struct BinVoxel
{
  Voxels<const TPixel>       in;
  Voxels<const std::uint8_t> mask;
  std::uint16_t *            out;
  DomainBins                 bins;

  __device__ auto
  operator()(const Coordinates & index, std::int64_t i) const
  {
    return bins(in[index], mask[index] != 0);
  }
};

void
RunBins(const KernelCall & call)
{
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    Launch(call,
           BinVoxel<Pixel>{ VoxelsOf<const Pixel>(call.inputs[0]),
                            VoxelsOf<const std::uint8_t>(call.inputs[1]),
                            static_cast<std::uint16_t *>(call.output.data),
                            DomainBins(DomainOf(call)) });
  });
}

/** Results as double, NaN where nothing is seen. */
template <typename TOut>
struct ConvertedVoxel
{
  Voxels<const double> results;
  TOut *               out;
  TOut                 empty;

  __device__ auto
  operator()(const Coordinates & index, std::int64_t i) const
  {
    const double result = results[index];
    return result == result ? ConvertResult<TOut>(result) : empty;
  }
};

void
RunConverted(const KernelCall & call)
{
  DispatchPixelKind(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    Launch(call,
           ConvertedVoxel<Out>{ VoxelsOf<const double>(call.inputs[0]),
                                static_cast<Out *>(call.output.data),
                                EmptyPixel<Out>(DomainOf(call).emptyValue) });
  });
}

/** Results, and what stands where nothing is seen. */
void
RunFilled(const KernelCall & call)
{
  const auto empty = [&](auto pixel) { return EmptyPixel<decltype(pixel)>(DomainOf(call).emptyValue); };
  switch (call.inputs[1].kind)
  {
    case PixelKind::Float32:
      return LaunchChosen<float>(call, empty);
    case PixelKind::Float64:
      return LaunchChosen<double>(call, empty);
    default:
      return LaunchChosen<std::uint8_t>(call, empty);
  }
}

/** `one` where something is seen, else 0. */
template <typename TBits, typename TSeen>
struct MarkedVoxel
{
  Voxels<const TSeen> seen;
  TBits *             out;
  TSeen               nothing;
  TBits               one;

  __device__ auto
  operator()(const Coordinates & index, std::int64_t i) const
  {
    return seen[index] > nothing ? one : TBits(0);
  }
};

template <typename TSeen>
void
LaunchMarked(const KernelCall & call)
{
  const auto quotient = DomainOf(call).GetQuotient(call.image.Extents());
  const auto nothing = static_cast<TSeen>(quotient.nothing * quotient.whole);
  DispatchPixelKind(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    using Bits = BitsOf<Out>;
    Launch(call,
           MarkedVoxel<Bits, TSeen>{
             VoxelsOf<const TSeen>(call.inputs[0]), static_cast<Bits *>(call.output.data), nothing, ToBits(Out(1)) });
  });
}

void
RunMarked(const KernelCall & call)
{
  switch (call.inputs[0].kind)
  {
    case PixelKind::Float32:
      return LaunchMarked<float>(call);
    case PixelKind::Float64:
      return LaunchMarked<double>(call);
    default:
      return LaunchMarked<std::uint8_t>(call);
  }
}

template <typename TPart, typename TReal, typename TOut>
struct QuotientVoxel
{
  const TPart *             numerators;
  const TPart *             denominators;
  TOut *                    out;
  QuotientRule<TOut, TReal> rule;

  /** The stages before it have its box. */
  __device__ auto
  operator()(const Coordinates &, std::int64_t i) const
  {
    return rule(static_cast<TReal>(numerators[i]), static_cast<TReal>(denominators[i]));
  }
};

template <typename TPart, typename TReal>
void
LaunchQuotient(const KernelCall & call, const DomainOperation::Quotient & quotient)
{
  DispatchPixelKind(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    Launch(call,
           QuotientVoxel<TPart, TReal, Out>{ static_cast<const TPart *>(call.inputs[0].data),
                                             static_cast<const TPart *>(call.inputs[1].data),
                                             static_cast<Out *>(call.output.data),
                                             QuotientRule<Out, TReal>(DomainOf(call), quotient) });
  });
}

void
RunQuotient(const KernelCall & call)
{
  const DomainOperation::Quotient quotient = DomainOf(call).GetQuotient(call.image.Extents());
  if (call.inputs[0].kind == PixelKind::Float64)
  {
    LaunchQuotient<double, double>(call, quotient);
  }
  else if (quotient.inDouble)
  {
    LaunchQuotient<float, double>(call, quotient);
  }
  else
  {
    LaunchQuotient<float, float>(call, quotient);
  }
}

template <typename TOut>
struct VarianceVoxel
{
  const double *           sums;
  const double *           squares;
  const double *           counts;
  TOut *                   out;
  DomainVarianceRule<TOut> rule;

  __device__ auto
  operator()(const Coordinates &, std::int64_t i) const
  {
    return rule(sums[i], squares[i], counts[i]);
  }
};

void
RunVariance(const KernelCall & call)
{
  DispatchPixelKind(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    Launch(call,
           VarianceVoxel<Out>{ static_cast<const double *>(call.inputs[0].data),
                               static_cast<const double *>(call.inputs[1].data),
                               static_cast<const double *>(call.inputs[2].data),
                               static_cast<Out *>(call.output.data),
                               DomainVarianceRule<Out>(DomainOf(call)) });
  });
}

/** The first input where the window is cut, the second where all of it is inside. */
template <typename TBits>
struct WholeVoxel
{
  const TBits *  ofCut;
  const TBits *  ofWhole;
  const double * counts;
  TBits *        out;
  WindowCount    whole;

  __device__ auto
  operator()(const Coordinates & index, std::int64_t i) const
  {
    return whole.IsWhole(index, counts[i]) ? ofWhole[i] : ofCut[i];
  }
};

void
RunWhole(const KernelCall & call)
{
  DispatchPixelKind(call.output.kind, [&](auto out) {
    using Bits = BitsOf<decltype(out)>;
    Launch(call,
           WholeVoxel<Bits>{ static_cast<const Bits *>(call.inputs[0].data),
                             static_cast<const Bits *>(call.inputs[1].data),
                             static_cast<const double *>(call.inputs[2].data),
                             static_cast<Bits *>(call.output.data),
                             WindowCount(DomainOf(call), call.image) });
  });
}

template <typename TOut>
struct VaryingVoxel
{
  const double *    numerators;
  const double *    denominators;
  TOut *            out;
  VaryingRule<TOut> rule;

  __device__ auto
  operator()(const Coordinates & index, std::int64_t i) const
  {
    return rule(index, numerators[i], denominators[i]);
  }
};

void
RunVarying(const KernelCall & call)
{
  const std::vector<double> sums =
    VaryingWhole::MakeSums(dynamic_cast<const VaryingConvolutionOperation &>(*DomainOf(call).window));
  const void * const onDevice =
    call.tables->Get("sums " + DomainOf(call).window->GetKey(), sums.data(), sums.size() * sizeof(double));
  DispatchPixelKind(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    VaryingRule<Out> rule(DomainOf(call));
    rule.whole.sums = static_cast<const double *>(onDevice);
    Launch(call,
           VaryingVoxel<Out>{ static_cast<const double *>(call.inputs[0].data),
                              static_cast<const double *>(call.inputs[1].data),
                              static_cast<Out *>(call.output.data),
                              rule });
  });
}

/** 1 where the mask is 0. */
struct OutsideVoxel
{
  Voxels<const std::uint8_t> inside;
  std::uint8_t *             out;

  __device__ auto
  operator()(const Coordinates & index, std::int64_t i) const
  {
    return static_cast<std::uint8_t>(inside[index] == 0 ? 1 : 0);
  }
};

void
RunOutside(const KernelCall & call)
{
  Launch(call,
         OutsideVoxel{ VoxelsOf<const std::uint8_t>(call.inputs[0]), static_cast<std::uint8_t *>(call.output.data) });
}

void
Register(KernelRegistry & registry, const char * name, void (*run)(const KernelCall &),
         std::size_t (*scratchBytes)(const Operation &, const ChunkShape &) = nullptr)
{
  Kernel kernel;
  kernel.run = run;
  kernel.scratchBytes = scratchBytes;
  registry.Register(name, kernel);
}

} // namespace

void
RegisterCudaDomain(KernelRegistry & registry)
{
  Register(registry, "domain.mask.voxels", RunInside<false>);
  Register(registry, "domain.weights.voxels", RunInside<true>, ScratchOfWeights);
  Register(registry, "domain.values.voxels", RunProducts<false>);
  Register(registry, "domain.squares.voxels", RunProducts<true>);
  Register(registry, "domain.lowest.voxels", RunSeen<false>);
  Register(registry, "domain.highest.voxels", RunSeen<true>);
  Register(registry, "domain.least.voxels", RunLeast);
  Register(registry, "domain.bins.voxels", RunBins);
  Register(registry, "domain.converted.voxels", RunConverted);
  Register(registry, "domain.filled.voxels", RunFilled);
  Register(registry, "domain.seen.voxels", RunMarked);
  Register(registry, "domain.quotient.voxels", RunQuotient);
  Register(registry, "domain.variance.voxels", RunVariance);
  Register(registry, "domain.whole.voxels", RunWhole);
  Register(registry, "domain.outside.voxels", RunOutside);
  Register(registry, "domain.varying.voxels", RunVarying);
}

} // namespace chunkwise
