/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaMaskedWindow.h"

#include "chunkwiseCompositeOperation.h"
#include "chunkwiseCudaMarch.cuh"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseMaskedStages.h"
#include "chunkwiseMoments.h"
#include "chunkwiseOperations.h"
#include "chunkwiseOrderedKey.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseVarianceOperation.h"

#include <type_traits>
#include <utility>
#include <vector>

// Short windows in a mask: voxel and mask go through one march, in the place of the stages of DomainOperation, each of
// which goes through memory once. What a window has seen is in its accumulator, so that the march itself ends with the
// quotient, or with what stands for an empty window. The results have the bits of the stages.
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
  /** What 32 bits count. */
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

  template <typename TAcc>
  __device__ __forceinline__ void
  Store(std::int64_t offset, std::int32_t, const TAcc & sum) const
  {
    using Rule = MeanRule<TIn>;
    const std::int32_t count = Rule::CountOf(sum);
    // A division by 0 would take several times as long.
    const float quotient = Rule::SumOf(sum) / static_cast<float>(max(count, 1));
    if (real)
    {
      real[offset] = count > 0 ? truncates ? truncf(quotient) : quotient : emptyReal;
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

/** Calls f(pixel) for the kinds that are marched. */
template <typename TFunctor>
void
DispatchMarched(PixelKind kind, TFunctor && f)
{
  switch (kind)
  {
    case PixelKind::UInt8:
      return f(std::uint8_t());
    case PixelKind::UInt16:
      return f(std::uint16_t());
    case PixelKind::Int16:
      return f(std::int16_t());
    default:
      return f(float());
  }
}

/** A box of the voxels of the first input where the second, of bytes, is not 0. */
void
RunBox(const KernelCall & call, const DomainOperation & domain, const BoxOperation & window)
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
    float * const real = call.output.kind == PixelKind::Float32 ? static_cast<float *>(call.output.data) : nullptr;
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
    using Rule = MeanRule<In>;
    using Acc = decltype(Rule::Pack(constant));
    RunMaskedMarch<Rule, In>(call,
                             MakePasses(call, window, Acc(), Rule::Pack(constant)),
                             FinishMaskedMean<In>{ static_cast<In *>(call.output.data),
                                                   real,
                                                   static_cast<const MeanOperation &>(window).truncates,
                                                   empty,
                                                   EmptyPixel<float>(domain.emptyValue) });
  });
}

/** The windows of a domain, if all of them are marched: a mean, a variance of bytes, or maxima and minima one after the
 * other.
 */
struct MarchedWindows
{
  std::vector<std::shared_ptr<const BoxOperation>> windows;
  std::vector<Box>                                 outputs;
  /** Voxels that are read and written. */
  double moved{ 0 };

  MarchedWindows(const DomainOperation & domain, const ChunkShape & shape)
  {
    const PixelKind  kind = shape.inputKinds[0];
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
      boxes.resize(kind == PixelKind::UInt8 ? 1 : 0, shape.outputBox);
      windows.resize(boxes.size(), variance);
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
  MostVoxelsOf(PixelKind kind)
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
      // What has been hidden where the mask is 0; the others are maxima of the mask itself.
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
  std::size_t             bytes{ 0 };

  MarchedImages(const MarchedWindows & marched, const ChunkShape & shape, void * scratch)
  {
    char * const to = static_cast<char *>(scratch);
    mask = TakeImage(to, bytes, PixelKind::UInt8, shape.inputBox);
    for (std::size_t i = 0; i + 1 < marched.outputs.size(); ++i)
    {
      between.push_back(TakeImage(to, bytes, shape.inputKinds[0], marched.outputs[i]));
    }
  }
};

/** Whether the run's own mask is bytes that lie as the voxels of the box do. */
bool
IsByteMask(const KernelCall & call, const Box & box)
{
  const DomainOperation & domain = MaskedDomainOf(*call.operation);
  const BufferView &      mask = call.inputs[1];
  return domain.domain == DomainKind::Mask && !domain.LeavesOutNan() && mask.kind == PixelKind::UInt8 &&
         mask.box == box && mask.stride == DenseView(nullptr, mask.kind, box).stride;
}

ChunkShape
ShapeOf(const KernelCall & call)
{
  ChunkShape shape;
  shape.inputBox = call.inputs[0].box;
  shape.outputBox = call.output.box;
  shape.image = call.image;
  shape.inputKinds[0] = call.inputs[0].kind;
  shape.outputKind = call.output.kind;
  return shape;
}

void
RunDomain(const KernelCall & call)
{
  const DomainOperation & domain = MaskedDomainOf(*call.operation);
  const ChunkShape        shape = ShapeOf(call);
  const MarchedWindows    marched(domain, shape);
  if (!marched.AreTaken())
  {
    return MakeCompositeKernel().run(call);
  }
  const MarchedImages images(marched, shape, call.scratch);
  KernelCall          part = call;
  for (std::size_t i = 0; i < marched.windows.size(); ++i)
  {
    const Box box = part.inputs[0].box;
    part.inputs[1] = call.inputs[1];
    if (!IsByteMask(call, box))
    {
      part.inputs[1] = DenseView(images.mask.data, PixelKind::UInt8, box);
      MakeMask(call, part.inputs[1], images.bytes);
    }
    part.output = i < images.between.size() ? images.between[i] : call.output;
    RunBox(part, domain, *marched.windows[i]);
    part.inputs[0] = part.output;
  }
}

std::size_t
ScratchOfDomain(const Operation & operation, const ChunkShape & shape)
{
  const MarchedWindows marched(MaskedDomainOf(operation), shape);
  return marched.AreTaken() ? MarchedImages(marched, shape, nullptr).bytes
                            : MakeCompositeKernel().scratchBytes(operation, shape);
}

/** Accumulators have 32 bits, the mask 8. */
double
CostOfDomain(const Operation & operation, const ChunkShape & shape)
{
  const MarchedWindows marched(MaskedDomainOf(operation), shape);
  return marched.AreTaken() ? 5 * marched.moved : MakeCompositeKernel().cost(operation, shape);
}

} // namespace

void
RegisterCudaMaskedWindows(KernelRegistry & registry)
{
  Kernel kernel = MakeCompositeKernel();
  kernel.run = RunDomain;
  kernel.scratchBytes = ScratchOfDomain;
  kernel.cost = CostOfDomain;
  registry.Register("domain", kernel);
}

} // namespace chunkwise
