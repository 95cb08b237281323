/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaMaskedWindow.h"
#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseError.h"
#include "chunkwiseWideMaskedMean.h"

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

/** Calls f(index, its number) for each voxel of the box, row by row. */
template <typename TFunctor>
__device__ void
ForEachVoxel(const Box & box, TFunctor && f)
{
  const auto width = static_cast<std::uint32_t>(box.Extent(0));
  const auto count = box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < count; row += RowStep())
  {
    Coordinates        index = IndexIn(box, row * width);
    const std::int64_t first = index.axis[0];
    for (std::uint32_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      index.axis[0] = first + x;
      f(static_cast<const Coordinates &>(index), row * width + x);
    }
  }
}

/** The functor's voxel at each voxel of the output, which is dense. */
template <typename TOut, typename TFunctor>
__global__ void
DomainKernel(Box box, TOut * out, TFunctor functor)
{
  ForEachVoxel(box, [&](const Coordinates & index, std::int64_t i) { out[i] = functor(index, i); });
}

template <typename TOut, typename TFunctor>
void
Launch(const KernelCall & call, TOut * out, const TFunctor & functor)
{
  const Box & box = call.output.box;
  DomainKernel<<<BlocksOfRows(box), ThreadsOfRows(), 0, StreamOf(call)>>>(box, out, functor);
  CheckLaunch("DomainKernel");
}

/** The rule of the inputs' voxels, wherever they lie. */
template <typename TOut, typename TRule, typename... TIn>
__global__ void
MapKernel(Box box, TOut * out, TRule rule, Voxels<const TIn>... in)
{
  ForEachVoxel(box, [&](const Coordinates & index, std::int64_t i) { out[i] = rule(in[index]...); });
}

/** Voxels that a thread loads, and stores, at once: one by one, bytes take as long as numbers of 32 bits. */
constexpr int VoxelsOfPack = 8;

template <typename T>
struct alignas(sizeof(T) * VoxelsOfPack < 16 ? sizeof(T) * VoxelsOfPack : 16) Pack
{
  T voxels[VoxelsOfPack];
};

/** The same where all lie as the output does. */
template <typename TOut, typename TRule, typename... TIn>
__device__ Pack<TOut>
           MapPack(const TRule & rule, const Pack<TIn> &... in)
{
  Pack<TOut> out;
#pragma unroll
  for (int i = 0; i < VoxelsOfPack; ++i)
  {
    out.voxels[i] = rule(in.voxels[i]...);
  }
  return out;
}

template <typename TOut, typename TRule, typename... TIn>
__global__ void
DenseMapKernel(std::int64_t count, TOut * out, TRule rule, const TIn *... in)
{
  const std::int64_t packs = count / VoxelsOfPack;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = first; i < packs; i += step)
  {
    reinterpret_cast<Pack<TOut> *>(out)[i] = MapPack<TOut>(rule, reinterpret_cast<const Pack<TIn> *>(in)[i]...);
  }
  for (std::int64_t i = packs * VoxelsOfPack + first; i < count; i += step)
  {
    out[i] = rule(in[i]...);
  }
}

/** Whether the voxels lie as those of the output do, and so that packs of them may be loaded. */
template <typename TIn>
bool
AreAlike(const Voxels<const TIn> & in, const Box & box)
{
  const Coordinates dense = StridesOf(box);
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (in.box.lower[a] != box.lower[a] || in.box.upper[a] != box.upper[a] ||
        (box.Extent(a) > 1 && in.stride[a] != dense[a]))
    {
      return false;
    }
  }
  return reinterpret_cast<std::uintptr_t>(in.data) % alignof(Pack<TIn>) == 0;
}

/** The output's voxels are what the rule makes of the inputs'. */
template <typename TOut, typename TRule, typename... TIn>
void
Map(const KernelCall & call, const TRule & rule, const Voxels<const TIn> &... in)
{
  const Box &        box = call.output.box;
  auto * const       out = static_cast<TOut *>(call.output.data);
  const std::int64_t count = box.NumberOfVoxels();
  if ((AreAlike(in, box) && ...) && reinterpret_cast<std::uintptr_t>(out) % alignof(Pack<TOut>) == 0)
  {
    constexpr int threads = 256;
    DenseMapKernel<TOut, TRule, TIn...>
      <<<BlocksFor((count + VoxelsOfPack - 1) / VoxelsOfPack, threads), threads, 0, StreamOf(call)>>>(
        count, out, rule, in.data...);
    CheckLaunch("DenseMapKernel");
    return;
  }
  MapKernel<TOut, TRule, TIn...><<<BlocksOfRows(box), ThreadsOfRows(), 0, StreamOf(call)>>>(box, out, rule, in...);
  CheckLaunch("MapKernel");
}

/** Calls f(a number of the kind of masks and weights). */
template <typename TFunctor>
void
DispatchSeen(PixelType kind, TFunctor && f)
{
  switch (kind)
  {
    case PixelType::Float32:
      return f(float());
    case PixelType::Float64:
      return f(double());
    default:
      return f(std::uint8_t());
  }
}

/** The rule that decides which voxels are inside, for kinds known at run time: memory bounds these kernels. */
struct InsideVoxel
{
  Voxels<const char> given;
  PixelType          givenKind;
  bool               isMask;
  bool               isWeight;
  Voxels<const char> image;
  PixelType          imageKind;
  bool               ignoresNan;
  PixelType          outKind;
  /** Set where a weight is none. */
  unsigned int * wrong;

  __device__ double
  operator()(const Coordinates & index, std::int64_t) const
  {
    double weight = 1;
    if (isMask)
    {
      weight = LoadAs<double, false>(given.data, givenKind, given.Offset(index)) != 0 ? 1 : 0;
    }
    else if (isWeight)
    {
      weight = LoadAs<double, false>(given.data, givenKind, given.Offset(index));
      if (!(outKind == PixelType::Float32 ? IsWeight(static_cast<float>(weight)) : IsWeight(weight)))
      {
        *wrong = 1;
      }
    }
    if (ignoresNan)
    {
      const double voxel = LoadAs<double, false>(image.data, imageKind, image.Offset(index));
      weight = voxel == voxel ? weight : 0;
    }
    return weight;
  }
};

/** For a mask of bytes, as most are, without a check for NaN. */
template <typename TOut>
struct MaskRule
{
  __device__ TOut
  operator()(std::uint8_t given) const
  {
    return given != 0 ? TOut(1) : TOut(0);
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
  voxel.outKind = call.output.kind;
  voxel.wrong = static_cast<unsigned int *>(call.scratch);
  if (voxel.isMask && !voxel.ignoresNan && given.kind == PixelType::UInt8)
  {
    DispatchSeen(voxel.outKind, [&](auto out) {
      using Out = decltype(out);
      Map<Out>(call, MaskRule<Out>(), VoxelsOf<const std::uint8_t>(given));
    });
    return;
  }
  const auto launch = [&] {
    DispatchSeen(voxel.outKind, [&](auto out) { Launch(call, static_cast<decltype(out) *>(call.output.data), voxel); });
  };
  if (!voxel.isWeight)
  {
    launch();
    return;
  }
  CheckCuda(cudaMemsetAsync(voxel.wrong, 0, sizeof(unsigned int), StreamOf(call)), "cudaMemsetAsync");
  launch();
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

template <typename TOut, bool VSquares>
struct ProductRule
{
  template <typename TPixel, typename TWeight>
  __device__ TOut
  operator()(TPixel voxel, TWeight weight) const
  {
    if constexpr (VSquares)
    {
      return WeighedSquare<TOut>(voxel, weight);
    }
    else
    {
      return WeighedVoxel<TOut>(voxel, weight);
    }
  }
};

template <typename TPixel, typename TWeight, typename TOut, bool VSquares>
void
LaunchProducts(const KernelCall & call)
{
  Map<TOut>(call,
            ProductRule<TOut, VSquares>(),
            VoxelsOf<const TPixel>(call.inputs[0]),
            VoxelsOf<const TWeight>(call.inputs[1]));
}

template <bool VSquares>
void
RunProducts(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    switch (call.inputs[1].kind)
    {
      case PixelType::Float32:
        return LaunchProducts<Pixel, float, float, VSquares>(call);
      case PixelType::Float64:
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
template <typename TBits>
struct ChosenRule
{
  TBits other;

  template <typename TSeen>
  __device__ TBits
  operator()(TBits voxel, TSeen seen) const
  {
    return seen > TSeen(0) ? voxel : other;
  }
};

/** `other`, called with any pixel, gives the constant. */
template <typename TSeen, typename TOther>
void
RunChosen(const KernelCall & call, TOther && other)
{
  DispatchPixelType(call.output.kind, [&](auto pixel) {
    using Bits = BitsOf<decltype(pixel)>;
    Map<Bits>(call,
              ChosenRule<Bits>{ ToBits(other(pixel)) },
              VoxelsOf<const Bits>(call.inputs[0]),
              VoxelsOf<const TSeen>(call.inputs[1]));
  });
}

template <bool VHighest>
void
RunSeen(const KernelCall & call)
{
  RunChosen<std::uint8_t>(call, [](auto pixel) { return SeenVoxel<VHighest>(pixel, 0); });
}

void
RunLeast(const KernelCall & call)
{
  RunChosen<std::uint8_t>(call, [](auto pixel) { return VoxelOrLeast(pixel, false); });
}

/** The bins of voxels; a further one is of those outside. */
struct BinRule
{
  DomainBins bins;

  template <typename TPixel>
  __device__ std::uint16_t
             operator()(TPixel voxel, std::uint8_t inside) const
  {
    return bins(voxel, inside != 0);
  }
};

void
RunBins(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    Map<std::uint16_t>(call,
                       BinRule{ DomainBins(DomainOf(call)) },
                       VoxelsOf<const Pixel>(call.inputs[0]),
                       VoxelsOf<const std::uint8_t>(call.inputs[1]));
  });
}

/** Results as double, NaN where nothing is seen. */
template <typename TOut>
struct ConvertedRule
{
  TOut empty;

  __device__ TOut
  operator()(double result) const
  {
    return result == result ? ConvertResult<TOut>(result) : empty;
  }
};

void
RunConverted(const KernelCall & call)
{
  DispatchPixelType(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    Map<Out>(
      call, ConvertedRule<Out>{ EmptyPixel<Out>(DomainOf(call).emptyValue) }, VoxelsOf<const double>(call.inputs[0]));
  });
}

/** Results, and what stands where nothing is seen. */
void
RunFilled(const KernelCall & call)
{
  DispatchSeen(call.inputs[1].kind, [&](auto seen) {
    RunChosen<decltype(seen)>(call, [&](auto pixel) { return EmptyPixel<decltype(pixel)>(DomainOf(call).emptyValue); });
  });
}

/** `one` where something is seen, else 0. */
template <typename TBits, typename TSeen>
struct MarkedRule
{
  TSeen nothing;
  TBits one;

  __device__ TBits
  operator()(TSeen seen) const
  {
    return seen > nothing ? one : TBits(0);
  }
};

void
RunMarked(const KernelCall & call)
{
  const auto quotient = DomainOf(call).GetQuotient(call.image.Extents());
  DispatchSeen(call.inputs[0].kind, [&](auto seen) {
    using Seen = decltype(seen);
    DispatchPixelType(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      using Bits = BitsOf<Out>;
      Map<Bits>(call,
                MarkedRule<Bits, Seen>{ static_cast<Seen>(quotient.nothing * quotient.whole), ToBits(Out(1)) },
                VoxelsOf<const Seen>(call.inputs[0]));
    });
  });
}

template <typename TReal, typename TOut>
struct QuotientOfParts
{
  QuotientRule<TOut, TReal> rule;
  std::uint32_t *           note; ///< where sums that are not finite are told, if they are

  template <typename TPart>
  __device__ TOut
  operator()(TPart numerator, TPart denominator) const
  {
    if constexpr (std::is_same<TPart, float>::value)
    {
      if (note && !(IsFiniteFloat(numerator) && IsFiniteFloat(denominator)))
      {
        *note = 1;
      }
    }
    return rule(static_cast<TReal>(numerator), static_cast<TReal>(denominator));
  }
};

template <typename TPart, typename TReal>
void
LaunchQuotient(const KernelCall & call, const DomainOperation::Quotient & quotient)
{
  std::uint32_t * const note = WideMaskedMean::IsNeededBy(DomainOf(call)) ? WideMaskedMean::GetNote(call) : nullptr;
  DispatchPixelType(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    Map<Out>(call,
             QuotientOfParts<TReal, Out>{ QuotientRule<Out, TReal>(DomainOf(call), quotient), note },
             VoxelsOf<const TPart>(call.inputs[0]),
             VoxelsOf<const TPart>(call.inputs[1]));
  });
}

void
RunQuotient(const KernelCall & call)
{
  const DomainOperation::Quotient quotient = DomainOf(call).GetQuotient(call.image.Extents());
  if (call.inputs[0].kind == PixelType::Float64)
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

std::size_t
ScratchOfQuotient(const Operation & operation, const ChunkShape &)
{
  return WideMaskedMean::IsNeededBy(static_cast<const DomainOperation &>(operation)) ? WideMaskedMean::NoteBytes : 0;
}

void
RunVariance(const KernelCall & call)
{
  DispatchPixelType(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    Map<Out>(call,
             DomainVarianceRule<Out>(DomainOf(call)),
             VoxelsOf<const double>(call.inputs[0]),
             VoxelsOf<const double>(call.inputs[1]),
             VoxelsOf<const double>(call.inputs[2]));
  });
}

/** The first input where the window is cut, the second where all of it is inside. */
template <typename TBits>
struct WholeVoxel
{
  const TBits *  ofCut;
  const TBits *  ofWhole;
  const double * counts;
  WindowCount    whole;

  __device__ TBits
  operator()(const Coordinates & index, std::int64_t i) const
  {
    return whole.IsWhole(index, counts[i]) ? ofWhole[i] : ofCut[i];
  }
};

void
RunWhole(const KernelCall & call)
{
  DispatchPixelType(call.output.kind, [&](auto out) {
    using Bits = BitsOf<decltype(out)>;
    Launch(call,
           static_cast<Bits *>(call.output.data),
           WholeVoxel<Bits>{ static_cast<const Bits *>(call.inputs[0].data),
                             static_cast<const Bits *>(call.inputs[1].data),
                             static_cast<const double *>(call.inputs[2].data),
                             WindowCount(DomainOf(call), call.image) });
  });
}

template <typename TOut>
struct VaryingVoxel
{
  const double *    numerators;
  const double *    denominators;
  VaryingRule<TOut> rule;

  __device__ TOut
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
  DispatchPixelType(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    VaryingRule<Out> rule(DomainOf(call));
    rule.whole.sums = static_cast<const double *>(onDevice);
    Launch(call,
           static_cast<Out *>(call.output.data),
           VaryingVoxel<Out>{ static_cast<const double *>(call.inputs[0].data),
                              static_cast<const double *>(call.inputs[1].data),
                              rule });
  });
}

/** 1 where the mask is 0. */
struct OutsideRule
{
  __device__ std::uint8_t
             operator()(std::uint8_t inside) const
  {
    return inside == 0 ? 1 : 0;
  }
};

void
RunOutside(const KernelCall & call)
{
  Map<std::uint8_t>(call, OutsideRule(), VoxelsOf<const std::uint8_t>(call.inputs[0]));
}

void
Register(KernelRegistry & registry, const char * name, void (*run)(const KernelCall &),
         std::size_t (*scratchBytes)(const Operation &, const ChunkShape &) = nullptr)
{
  Kernel kernel;
  kernel.run = run;
  kernel.scratchBytes = scratchBytes;
  registry.Register(name, { kernel });
}

} // namespace

void
RegisterCudaDomain(KernelRegistry & registry)
{
  RegisterCudaMaskedWindows(registry);
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
  Register(registry, "domain.quotient.voxels", RunQuotient, ScratchOfQuotient);
  Register(registry, "domain.variance.voxels", RunVariance);
  Register(registry, "domain.whole.voxels", RunWhole);
  Register(registry, "domain.outside.voxels", RunOutside);
  Register(registry, "domain.varying.voxels", RunVarying);
}

} // namespace chunkwise
