/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaMaskedWindow.h"

#include "chunkwiseCompositeOperation.h"
#include "chunkwiseCudaMarch.cuh"
#include "chunkwiseCudaMaskedMedians.h"
#include "chunkwiseCudaVariance.cuh"
#include "chunkwiseCudaWideMeans.cuh"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseError.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseMaskedStages.h"
#include "chunkwiseMoments.h"
#include "chunkwiseOperations.h"
#include "chunkwiseOrderedKey.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseWideMaskedMean.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

// Short windows in a mask: voxel and mask go through one march, in the place of the stages of DomainOperation, each of
// which goes through memory once. The accumulator has the window's sums, so that the march itself ends with the
// quotient, or with the value of an empty window. The results have the bits of the stages.
namespace chunkwise
{

namespace
{

/** The longest windows whose passes are made at once. */
constexpr int LongestMarch = 7;

/** The sum of integers of up to 16 bits and the number of them, in one: a voxel inside is its value and 1 << Shift, so
 * that a sum of either sign is less than half of that. */
template <typename TIn>
struct PackedSums : PlainSums
{
  static constexpr int Shift = sizeof(TIn) == 1 ? 20 : 24;
  /** The most voxels that 32 bits count. */
  static constexpr std::int64_t MostVoxels = sizeof(TIn) == 1 ? 2047 : 127;

  __host__ __device__ static std::int32_t
           Pack(TIn voxel)
  {
    return static_cast<std::int32_t>(voxel) + (1 << Shift);
  }
  template <typename TPass>
  __device__ static std::int32_t
  Load(const TPass &, const MaskedVoxel<TIn> & in)
  {
    return in.inside != 0 ? Pack(in.voxel) : 0;
  }
  __device__ static std::int32_t
  CountOf(std::int32_t packed)
  {
    return (packed + (1 << (Shift - 1))) >> Shift;
  }
  __device__ static float
  SumOf(std::int32_t packed)
  {
    return static_cast<float>(packed - (CountOf(packed) << Shift));
  }
};

/** The same of real numbers. */
struct CountedSum
{
  float        sum;
  std::int32_t count;
};
struct CountedSums
{
  static constexpr bool         Weighted = false;
  static constexpr std::int64_t MostVoxels = INT32_MAX;

  static CountedSum
  Pack(float voxel)
  {
    return { voxel, 1 };
  }
  template <typename TPass>
  __device__ static CountedSum
  Load(const TPass &, const MaskedVoxel<float> & in)
  {
    return in.inside != 0 ? CountedSum{ in.voxel, 1 } : CountedSum{ 0.0f, 0 };
  }
  __device__ static CountedSum
  Add(const CountedSum & sum, const CountedSum &, const CountedSum & value)
  {
    return { sum.sum + value.sum, sum.count + value.count };
  }
  __device__ static std::int32_t
  CountOf(const CountedSum & sum)
  {
    return sum.count;
  }
  __device__ static float
  SumOf(const CountedSum & sum)
  {
    return sum.sum;
  }
};

template <typename TIn>
using MeanRule = std::conditional_t<std::is_same<TIn, float>::value, CountedSums, PackedSums<TIn>>;

/** Divides sums by counts and stores the voxel. Both are below 2^24 where voxels are integers: their quotient in float,
 * rounded to a voxel, has the bits of that in double, and so serves all kinds. */
template <typename TIn>
struct FinishMaskedMean
{
  TIn *   out;
  float * real; ///< in its place where results are real numbers
  bool    truncates;
  TIn     empty;
  float   emptyReal;
  /** Not 0 after a sum of floats that is not finite. */
  std::uint32_t * note;

  template <typename TAcc>
  __device__ __forceinline__ void
  Store(std::int64_t offset, std::int32_t, const TAcc & sum) const
  {
    using Rule = MeanRule<TIn>;
    if constexpr (std::is_same<TIn, float>::value)
    {
      if (!IsFiniteFloat(Rule::SumOf(sum)))
      {
        *note = 1;
      }
    }
    const std::int32_t count = Rule::CountOf(sum);
    // A division by 0 would take several times as long.
    const float quotient = Rule::SumOf(sum) / static_cast<float>(max(count, 1));
    if (real)
    {
      real[offset] = count > 0 ? quotient : emptyReal;
    }
    else if constexpr (std::is_integral<TIn>::value)
    {
      out[offset] = count > 0 ? RoundedMean<TIn>(quotient, truncates) : empty;
    }
  }
};

/** The same of bytes with their squares. */
struct SquaredSum
{
  std::int32_t  packed;
  std::uint32_t squares;
};
struct SquaredSums
{
  using Sums = PackedSums<std::uint8_t>;
  static constexpr bool Weighted = false;

  __host__ __device__ static SquaredSum
  Pack(std::uint8_t voxel)
  {
    return { Sums::Pack(voxel), static_cast<std::uint32_t>(voxel) * voxel };
  }
  template <typename TPass>
  __device__ static SquaredSum
  Load(const TPass &, const MaskedVoxel<std::uint8_t> & in)
  {
    return in.inside != 0 ? Pack(in.voxel) : SquaredSum{ 0, 0 };
  }
  __device__ static SquaredSum
  Add(const SquaredSum & sum, const SquaredSum &, const SquaredSum & value)
  {
    return { sum.packed + value.packed, sum.squares + value.squares };
  }
};

struct FinishMaskedVariance
{
  std::uint8_t * out;
  float *        real; ///< in its place where results are real numbers
  bool           takesRoot;
  std::uint8_t   empty;
  float          emptyReal;

  __device__ __forceinline__ void
  Store(std::int64_t offset, std::int32_t, const SquaredSum & sum) const
  {
    const std::int64_t count = SquaredSums::Sums::CountOf(sum.packed);
    const std::int64_t voxels = sum.packed - (count << SquaredSums::Sums::Shift);
    const double       variance =
      VarianceOfSums(voxels, static_cast<std::int64_t>(sum.squares), max(count, std::int64_t{ 1 }));
    if (real)
    {
      real[offset] = count > 0 ? FinishVariance<float>(variance, takesRoot) : emptyReal;
    }
    else
    {
      out[offset] = count > 0 ? FinishVariance<std::uint8_t>(variance, takesRoot) : empty;
    }
  }
};

/** The sums of real numbers and of their squares, and how many they are. */
struct RealSquaredSum
{
  double       sum;
  double       squares;
  std::int32_t count;
};
struct RealSquaredSums
{
  static constexpr bool Weighted = false;

  __host__ __device__ static RealSquaredSum
  Pack(float voxel)
  {
    const auto real = static_cast<double>(voxel);
    return { real, real * real, 1 };
  }
  template <typename TPass>
  __device__ static RealSquaredSum
  Load(const TPass &, const MaskedVoxel<float> & in)
  {
    return in.inside != 0 ? Pack(in.voxel) : RealSquaredSum{ 0, 0, 0 };
  }
  __device__ static RealSquaredSum
  Add(const RealSquaredSum & sum, const RealSquaredSum &, const RealSquaredSum & value)
  {
    return { sum.sum + value.sum, sum.squares + value.squares, sum.count + value.count };
  }
};

/** Leaves variances of windows that are wholly inside to FillVarianceColumns. */
struct FinishMaskedRealVariance
{
  DomainVarianceRule<float> rule;
  float *                   out;
  bool                      isCut; ///< windows at the image's edge
  std::int32_t              whole; ///< the voxels of the others

  __device__ __forceinline__ void
  Store(std::int64_t offset, std::int32_t taps, const RealSquaredSum & sum) const
  {
    const float variance = rule(sum.sum, sum.squares, sum.count);
    // No other NaN is that which is to come.
    const float result = variance == variance ? variance : __uint_as_float(0x7FC00000u);
    out[offset] = sum.count == (isCut ? taps : whole) ? __uint_as_float(VarianceToCome) : result;
  }
};

/** The largest key of the voxels inside; Lowest: there is none. A NaN inside is the next above it, which no number
 * is. */
template <typename TIn>
struct MaskedMaxima
{
  using Key = typename OrderedKey<TIn>::Type;
  static constexpr bool Weighted = false;
  static constexpr Key  Nothing = OrderedKey<TIn>::Lowest;

  CHUNKWISE_HOST_DEVICE static Key
  KeyOf(TIn voxel, Key flip)
  {
    const Key key = OrderedKey<TIn>::From(voxel, flip);
    return voxel == voxel ? key : Nothing + 1;
  }
  template <typename TPass>
  __device__ static Key
  Load(const TPass & pass, const MaskedVoxel<TIn> & in)
  {
    return in.inside != 0 ? KeyOf(in.voxel, pass.flip) : Nothing;
  }
  __device__ static Key
  Add(Key largest, Key, Key value)
  {
    return largest > value ? largest : value;
  }
};

template <typename TIn>
struct FinishMaskedExtremum
{
  using Rule = MaskedMaxima<TIn>;
  TIn *              out;
  typename Rule::Key flip;
  TIn                empty;

  __device__ __forceinline__ void
  Store(std::int64_t offset, std::int32_t, typename Rule::Key key) const
  {
    TIn voxel = OrderedKey<TIn>::To(key, flip);
    if constexpr (OrderedKey<TIn>::IsReal)
    {
      voxel = key == Rule::Nothing + 1 ? OrderedKey<TIn>::To(Rule::Nothing, 0) : voxel;
    }
    out[offset] = key == Rule::Nothing ? empty : voxel;
  }
};

WindowBoxes
BoxesOf(const BoxOperation & window, const Box & output, const Box & image)
{
  return WindowBoxes(output, image, window.EffectiveRadius(image.Extents()), window.boundary.mode);
}

/** The passes of a window from `input` to `output`. */
PassPlan
PlanOf(const BoxOperation & window, const Box & input, const Box & output, const Box & image)
{
  std::int64_t radius[MaxDimension];
  for (int a = 0; a < MaxDimension; ++a)
  {
    radius[a] = window.EffectiveRadius(a, image.Extent(a));
  }
  PassPlan plan(input, output, radius);
  plan.FuseVolumes(true, radius, LongestMarch);
  return plan;
}

/** Windows begin with `absent`, and `constant` lies beyond the edge of Constant. */
template <typename TAcc>
std::vector<Pass<TAcc>>
MakePasses(const KernelCall & call, const BoxOperation & window, const TAcc & absent, const TAcc & constant)
{
  const PassPlan          plan = PlanOf(window, call.inputs[0].box, call.output.box, call.image);
  std::vector<Pass<TAcc>> passes;
  for (int i = 0; i < plan.count; ++i)
  {
    const int a = plan.axes[i];
    passes.push_back(
      plan.MakePass<TAcc>(i, call.image, window.EffectiveRadius(a, call.image.Extent(a)), window.boundary.mode));
    passes.back().absent = absent;
    passes.back().constant = constant;
  }
  return passes;
}

template <typename TRule, typename TIn, typename TAcc, typename TFinish>
void
RunMaskedMarch(const KernelCall & call, const std::vector<Pass<TAcc>> & passes, const TFinish & finish)
{
  const MaskedImage<TIn> image{ static_cast<const TIn *>(call.inputs[0].data),
                                static_cast<const std::uint8_t *>(call.inputs[1].data) };
  RunMarch<TRule, 3, 5, LongestMarch>(passes, image, finish, StreamOf(call), [](int, int) { return TAcc(); }, 1);
}

/** Variances of real numbers, those of windows wholly inside by their own arithmetic. `scratch` has room for the image
 * as it goes on beyond its edge. */
void
RunRealVariance(const KernelCall & call, const DomainOperation & domain, const VarianceOperation & window,
                float constant, char * scratch)
{
  const WindowBoxes boxes = BoxesOf(window, call.output.box, call.image);
  std::int32_t      whole = 1;
  for (int a = 0; a < 3; ++a)
  {
    whole *= static_cast<std::int32_t>(2 * boxes.radius[a] + 1);
  }
  RunMaskedMarch<RealSquaredSums, float>(call,
                                         MakePasses(call, window, RealSquaredSum(), RealSquaredSums::Pack(constant)),
                                         FinishMaskedRealVariance{ DomainVarianceRule<float>(domain),
                                                                   static_cast<float *>(call.output.data),
                                                                   window.boundary.mode == BoundaryMode::Renormalized,
                                                                   whole });
  const auto pixels = PadImage<float>(call, boxes, window.boundary, scratch);
  if (!FillVarianceColumns(pixels, call.output, boxes.radius, window.takesRoot, StreamOf(call)))
  {
    throw Error("variances in a mask: windows of a radius that has no kernel");
  }
}

/** Calls f(pixel) for the kinds that are marched. */
template <typename TFunctor>
void
DispatchMarched(PixelType kind, TFunctor && f)
{
  switch (kind)
  {
    case PixelType::UInt8:
      return f(std::uint8_t());
    case PixelType::UInt16:
      return f(std::uint16_t());
    case PixelType::Int16:
      return f(std::int16_t());
    default:
      return f(float());
  }
}

/** A box of the voxels of the first input where the second, of bytes, is not 0. */
void
RunBox(const KernelCall & call, const DomainOperation & domain, const BoxOperation & window, char * scratch)
{
  DispatchMarched(call.inputs[0].kind, [&](auto pixel) {
    using In = decltype(pixel);
    const auto         constant = ConstantPixel<In>(window.boundary.constant);
    const auto         empty = EmptyPixel<In>(domain.emptyValue);
    const auto * const extremum = dynamic_cast<const ExtremumOperation *>(&window);
    if (extremum)
    {
      using Rule = MaskedMaxima<In>;
      const typename Rule::Key flip = extremum->minimum ? -1 : 0;
      auto                     passes = MakePasses(call, window, Rule::Nothing, Rule::KeyOf(constant, flip));
      passes[0].flip = flip;
      RunMaskedMarch<Rule, In>(
        call, passes, FinishMaskedExtremum<In>{ static_cast<In *>(call.output.data), flip, empty });
      return;
    }
    float * const real = call.output.kind == PixelType::Float32 ? static_cast<float *>(call.output.data) : nullptr;
    if constexpr (std::is_same<In, std::uint8_t>::value)
    {
      if (dynamic_cast<const VarianceOperation *>(&window))
      {
        return RunMaskedMarch<SquaredSums, In>(call,
                                               MakePasses(call, window, SquaredSum(), SquaredSums::Pack(constant)),
                                               FinishMaskedVariance{ static_cast<In *>(call.output.data),
                                                                     real,
                                                                     domain.TakesRoot(),
                                                                     empty,
                                                                     EmptyPixel<float>(domain.emptyValue) });
      }
    }
    if constexpr (std::is_same<In, float>::value)
    {
      if (const auto * const variance = dynamic_cast<const VarianceOperation *>(&window))
      {
        return RunRealVariance(call, domain, *variance, constant, scratch);
      }
    }
    using Rule = MeanRule<In>;
    using Acc = decltype(Rule::Pack(constant));
    RunMaskedMarch<Rule, In>(
      call,
      MakePasses(call, window, Acc(), Rule::Pack(constant)),
      FinishMaskedMean<In>{ static_cast<In *>(call.output.data),
                            real,
                            static_cast<const MeanOperation &>(window).truncates,
                            empty,
                            EmptyPixel<float>(domain.emptyValue),
                            std::is_same<In, float>::value ? WideMaskedMean::GetNote(call) : nullptr });
  });
}

/** The windows of a domain, if all of them are marched: a mean, a variance of bytes or floats, or maxima and minima one
 * after the other.
 */
struct MarchedWindows
{
  std::vector<std::shared_ptr<const BoxOperation>> windows;
  std::vector<Box>                                 outputs;
  /** Voxels that are read and written. */
  double moved{ 0 };
  /** The bytes of the image continued beyond its edge, if a window needs that. */
  std::size_t continued{ 0 };

  MarchedWindows(const DomainOperation & domain, const ChunkShape & shape)
  {
    const PixelType  kind = shape.inputKinds[0];
    std::vector<Box> boxes;
    if (domain.HasWeights() || domain.marksSeen || domain.insideAlone || !IsMarchedKind(kind, shape.outputKind))
    {
      return;
    }
    if (const auto mean = std::dynamic_pointer_cast<const MeanOperation>(domain.window))
    {
      const bool isCounted = !mean->sums && CountsIn(*mean, shape.image) <= MostVoxelsOf(kind);
      boxes.resize(isCounted ? 1 : 0, shape.outputBox);
      windows.resize(boxes.size(), mean);
    }
    else if (const auto variance = std::dynamic_pointer_cast<const VarianceOperation>(domain.window))
    {
      const bool isReal = kind == PixelType::Float32 && shape.outputKind == kind && AreCubes(*variance, shape.image);
      boxes.resize(kind == PixelType::UInt8 || isReal ? 1 : 0, shape.outputBox);
      windows.resize(boxes.size(), variance);
      continued =
        isReal
          ? ContinuedBytes(BoxesOf(*variance, shape.outputBox, shape.image), variance->boundary.mode, PixelSize(kind))
          : 0;
    }
    else if (kind == shape.outputKind)
    {
      boxes = this->AddExtrema(domain, shape);
    }
    for (std::size_t i = 0; i < windows.size(); ++i)
    {
      const PassPlan plan = PlanOf(*windows[i], i == 0 ? shape.inputBox : boxes[i - 1], boxes[i], shape.image);
      if (!plan.marched)
      {
        return;
      }
      moved += plan.AccumulatorsMoved();
    }
    outputs = boxes;
  }

  bool
  AreTaken() const
  {
    return !outputs.empty();
  }

private:
  /** Windows that FillVarianceColumns takes. */
  static bool
  AreCubes(const BoxOperation & window, const Box & image)
  {
    const Coordinates radius = window.EffectiveRadius(image.Extents());
    return radius[0] == radius[1] && radius[0] == radius[2] && radius[3] == 0 && radius[4] == 0 && radius[0] <= 3 &&
           image.Extent(0) < (std::int64_t{ 1 } << 31) / (image.Extent(1) + 2 * radius[1]) - 2 * radius[0];
  }
  static std::int64_t
  CountsIn(const BoxOperation & window, const Box & image)
  {
    std::int64_t voxels = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      voxels *= std::min<std::int64_t>(2 * window.EffectiveRadius(a, image.Extent(a)) + 1, INT16_MAX);
    }
    return voxels;
  }
  static std::int64_t
  MostVoxelsOf(PixelType kind)
  {
    std::int64_t most = 0;
    DispatchMarched(kind, [&](auto pixel) { most = MeanRule<decltype(pixel)>::MostVoxels; });
    return most;
  }
  /** Gives what each of them computes. */
  std::vector<Box>
  AddExtrema(const DomainOperation & domain, const ChunkShape & shape)
  {
    const auto * const sequence = dynamic_cast<const SequenceOperation *>(domain.window.get());
    const auto all = sequence ? sequence->stages : std::vector<std::shared_ptr<const Operation>>{ domain.window };
    for (const auto & one : all)
    {
      const auto extremum = std::dynamic_pointer_cast<const ExtremumOperation>(one);
      if (!extremum)
      {
        windows.clear();
        return {};
      }
      windows.push_back(extremum);
    }
    const std::vector<Stage> stages = domain.GetStages();
    const std::vector<Box>   boxes = domain.GetStageBoxes(shape.outputBox, shape.image);
    std::vector<Box>         results;
    for (std::size_t i = 0; i < stages.size(); ++i)
    {
      // This stage reads voxels that were hidden where the mask is 0; other stages are maxima of the mask itself.
      const int from = stages[i].inputs[0];
      if (stages[i].operation && from >= 0 && IsHidden(stages[static_cast<std::size_t>(from)].voxelKernel))
      {
        results.push_back(boxes[i]);
      }
    }
    if (results.size() != windows.size())
    {
      windows.clear();
      results.clear();
    }
    return results;
  }
  static bool
  IsHidden(const std::string & kernel)
  {
    return kernel == "domain.lowest.voxels" || kernel == "domain.highest.voxels";
  }
};

/** Images in the scratch: a mask of bytes, where the run's own does not serve, and what is between windows. */
struct MarchedImages
{
  BufferView              mask;
  std::vector<BufferView> between;
  std::size_t             continued{ 0 };
  std::size_t             bytes{ 0 };

  MarchedImages(const MarchedWindows & marched, const ChunkShape & shape, void * scratch)
  {
    char * const to = static_cast<char *>(scratch);
    mask = TakeImage(to, bytes, PixelType::UInt8, shape.inputBox);
    for (std::size_t i = 0; i + 1 < marched.outputs.size(); ++i)
    {
      between.push_back(TakeImage(to, bytes, shape.inputKinds[0], marched.outputs[i]));
    }
    continued = bytes;
    bytes += marched.continued;
  }
};

/** Whether the run's own mask is bytes that lie as the voxels of the box do. */
bool
IsByteMask(const KernelCall & call, const Box & box)
{
  const DomainOperation & domain = MaskedDomainOf(*call.operation);
  const BufferView &      mask = call.inputs[1];
  return domain.domain == DomainKind::Mask && !domain.LeavesOutNan() && mask.kind == PixelType::UInt8 &&
         mask.box == box && mask.stride == DenseView(nullptr, mask.kind, box).stride;
}

void
RunMarched(const KernelCall & call)
{
  const DomainOperation & domain = MaskedDomainOf(*call.operation);
  const ChunkShape        shape = ShapeOfMasked(call);
  const MarchedWindows    marched(domain, shape);
  const MarchedImages     images(marched, shape, call.scratch);
  KernelCall              part = call;
  for (std::size_t i = 0; i < marched.windows.size(); ++i)
  {
    const Box box = part.inputs[0].box;
    part.inputs[1] = call.inputs[1];
    if (!IsByteMask(call, box))
    {
      part.inputs[1] = DenseView(images.mask.data, PixelType::UInt8, box);
      MakeMask(call, part.inputs[1], images.bytes);
    }
    part.output = i < images.between.size() ? images.between[i] : call.output;
    RunBox(part, domain, *marched.windows[i], static_cast<char *>(call.scratch) + images.continued);
    part.inputs[0] = part.output;
  }
}

/** Means, of which those whose sums overflow are taken in double afterwards. */
void
RunMeans(const KernelCall & call, void (*run)(const KernelCall &))
{
  auto * const flags = reinterpret_cast<WideFlags *>(WideMaskedMean::GetNote(call));
  CheckCuda(cudaMemsetAsync(flags, 0, sizeof(*flags), StreamOf(call)), "cudaMemsetAsync");
  run(call);
  const WideMaskedMean mean(
    MaskedDomainOf(*call.operation), call.inputs[0], call.inputs[call.numberOfInputs - 1], call.image);
  call.output.kind == PixelType::Float32 ? ReplaceOverflows<float>(call, flags, mean, mean.window)
                                         : ReplaceOverflows<double>(call, flags, mean, mean.window);
}

void
RunMarchedMeans(const KernelCall & call)
{
  RunMeans(call, RunMarched);
}
void
RunStagesOfMeans(const KernelCall & call)
{
  RunMeans(call, MakeCompositeKernel().run);
}

/** The march reads and writes accumulators of 32 bits and the mask of 8. */
KernelChoice
ChooseDomain(const Operation & operation, const ChunkShape & shape)
{
  const DomainOperation & domain = MaskedDomainOf(operation);
  if (MaskedMediansTake(domain, shape))
  {
    return { "medians", RunMaskedMedians, ScratchOfMaskedMedians(domain, shape), CostOfMaskedMedians(domain, shape) };
  }
  const bool           areMeans = WideMaskedMean::IsNeededBy(domain);
  const MarchedWindows marched(domain, shape);
  if (marched.AreTaken())
  {
    const std::size_t bytes = MarchedImages(marched, shape, nullptr).bytes;
    return areMeans ? KernelChoice{ "march", RunMarchedMeans, bytes + WideMaskedMean::NoteBytes, 5 * marched.moved }
                    : KernelChoice{ "march", RunMarched, bytes, 5 * marched.moved };
  }
  const Kernel stages = MakeCompositeKernel();
  return { "stages",
           areMeans ? RunStagesOfMeans : stages.run,
           stages.scratchBytes(operation, shape),
           stages.cost(operation, shape) };
}

} // namespace

void
RegisterCudaMaskedWindows(KernelRegistry & registry)
{
  registry.Register("domain", { MakeChoosingKernel<ChooseDomain>(true) });
}

} // namespace chunkwise
