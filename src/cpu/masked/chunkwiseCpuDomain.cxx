/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuMaskedRows.h"
#include "chunkwiseCpuStridedRow.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseCpuWideMaskedMean.h"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseError.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseStridedVoxels.h"

#include <atomic>
#include <functional>

namespace chunkwise
{

namespace
{

const DomainOperation &
DomainOf(const KernelCall & call)
{
  return static_cast<const DomainOperation &>(*call.operation);
}

/** Calls f(at, n) for each row of the output. As a template it would be compiled some 280 times. */
void
ForEachOutputRow(const KernelCall & call, const std::function<void(const Coordinates &, std::int64_t)> & f)
{
  // Planes make tasks that are long enough.
  const Coordinates plane = { { 1 << 20, 16, 0, 0, 0 } };
  ForEachTile(call, plane, [&](const Box & tile, unsigned int) {
    ForEachRow(tile, [&](const Coordinates & at) { f(at, tile.Extent(0)); });
  });
}

/** A row of an image between stages, whose voxels lie side by side. Those of the run's own inputs may not. */
template <typename T>
const T *
RowOf(const BufferView & view, const Coordinates & at)
{
  return static_cast<const T *>(view.data) + view.Offset(at);
}

/** Stores a row of results; the loop over voxels that lie side by side can take several at once. Strides of other
 * views are no constants here: each constant would compile all kernels of this file once more. */
template <typename TOut, typename TFunctor>
void
Store(const BufferView & output, const Coordinates & at, std::int64_t n, TFunctor && result)
{
  if (output.stride[0] == 1)
  {
    TOut * const __restrict__ to = static_cast<TOut *>(output.data) + output.Offset(at);
    for (std::int64_t x = 0; x < n; ++x)
    {
      to[x] = result(x);
    }
    return;
  }
  TOut * const to = static_cast<TOut *>(output.data) + output.Offset(at);
  for (std::int64_t x = 0; x < n; ++x)
  {
    to[x * output.stride[0]] = result(x);
  }
}

/** Calls f(T{}) for the kinds that weights are kept in. */
template <typename TFunctor>
void
DispatchWeight(PixelType kind, TFunctor && f)
{
  switch (kind)
  {
    case PixelType::UInt8:
      return f(std::uint8_t{});
    case PixelType::Float32:
      return f(float{});
    default:
      return f(double{});
  }
}

template <typename TFunctor>
void
DispatchReal(PixelType kind, TFunctor && f)
{
  if (kind == PixelType::Float32)
  {
    return f(float{});
  }
  return f(double{});
}

/** Makes 0 of what is given where the image is NaN. */
template <typename TWeight>
void
LeaveOutNan(KernelCall call)
{
  call.control = nullptr; // its voxels are reported already
  const BufferView & image = call.inputs[call.numberOfInputs - 1];
  DispatchReal(image.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
      const StridedRow<const Pixel> voxels(image, at);
      TWeight * const               to = static_cast<TWeight *>(call.output.data) + call.output.Offset(at);
      for (std::int64_t x = 0; x < n; ++x)
      {
        const Pixel voxel = voxels[x];
        to[x * call.output.stride[0]] = voxel == voxel ? to[x * call.output.stride[0]] : TWeight(0);
      }
    });
  });
}

void
RunMask(const KernelCall & call)
{
  DispatchWeight(call.output.kind, [&](auto weight) {
    using Weight = decltype(weight);
    if (DomainOf(call).domain == DomainKind::All)
    {
      ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
        Store<Weight>(call.output, at, n, [](std::int64_t) { return Weight(1); });
      });
    }
    else
    {
      const BufferView & mask = call.inputs[0];
      DispatchPixelType(mask.kind, [&](auto pixel) {
        using Pixel = decltype(pixel);
        ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
          const StridedRow<const Pixel> row(mask, at);
          Store<Weight>(
            call.output, at, n, [&](std::int64_t x) { return static_cast<Weight>(row[x] != Pixel(0) ? 1 : 0); });
        });
      });
    }
    if (DomainOf(call).LeavesOutNan())
    {
      LeaveOutNan<Weight>(call);
    }
  });
}

void
RunWeights(const KernelCall & call)
{
  const BufferView & weights = call.inputs[0];
  std::atomic<bool>  isWrong{ false };
  DispatchReal(call.output.kind, [&](auto weight) {
    using Weight = decltype(weight);
    DispatchReal(weights.kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
        const StridedRow<const Pixel> row(weights, at);
        bool                          isRight = true;
        Store<Weight>(call.output, at, n, [&](std::int64_t x) {
          const auto value = static_cast<Weight>(row[x]);
          isRight = isRight && IsWeight(value);
          return value;
        });
        if (!isRight)
        {
          isWrong = true;
        }
      });
    });
    if (!isWrong && DomainOf(call).ignoresNan)
    {
      LeaveOutNan<Weight>(call);
    }
  });
  if (isWrong)
  {
    throw ParameterError(WrongWeight);
  }
}

/** Voxels times weights, by `rule`. */
template <typename TRule>
void
RunProducts(const KernelCall & call, TRule && rule)
{
  const BufferView & in = call.inputs[0];
  const BufferView & weights = call.inputs[1];
  const auto         run = [&](auto pixel, auto weight, auto out) {
    using Pixel = decltype(pixel);
    using Weight = decltype(weight);
    using Out = decltype(out);
    ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
      const StridedRow<const Pixel> voxels(in, at);
      const Weight * const          weighs = RowOf<Weight>(weights, at);
      Store<Out>(call.output, at, n, [&](std::int64_t x) { return rule(voxels[x], weighs[x], Out{}); });
    });
  };
  DispatchPixelType(in.kind, [&](auto pixel) {
    DispatchWeight(weights.kind, [&](auto weight) {
      using Weight = decltype(weight);
      if constexpr (!std::is_same<Weight, std::uint8_t>::value)
      {
        run(pixel, weight, weight);
      }
      else if (call.output.kind == PixelType::UInt32 && PixelSize(in.kind) <= 2)
      {
        run(pixel, weight, std::uint32_t{});
      }
      else
      {
        run(pixel, weight, pixel);
      }
    });
  });
}

void
RunValues(const KernelCall & call)
{
  RunProducts(call, [](auto voxel, auto weight, auto out) { return WeighedVoxel<decltype(out)>(voxel, weight); });
}

void
RunSquares(const KernelCall & call)
{
  RunProducts(call, [](auto voxel, auto weight, auto out) { return WeighedSquare<decltype(out)>(voxel, weight); });
}

template <bool VHighest>
void
RunHidden(const KernelCall & call)
{
  const BufferView & in = call.inputs[0];
  const BufferView & mask = call.inputs[1];
  DispatchPixelType(in.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
      const StridedRow<const Pixel> voxels(in, at);
      const std::uint8_t * const    inside = RowOf<std::uint8_t>(mask, at);
      Store<Pixel>(call.output, at, n, [&](std::int64_t x) { return SeenVoxel<VHighest>(voxels[x], inside[x]); });
    });
  });
}

void
RunLeast(const KernelCall & call)
{
  const BufferView & in = call.inputs[0];
  DispatchPixelType(in.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
      const StridedRow<const Pixel> voxels(in, at);
      const std::uint8_t * const    inside = RowOf<std::uint8_t>(call.inputs[1], at);
      Store<Pixel>(call.output, at, n, [&](std::int64_t x) { return VoxelOrLeast(voxels[x], inside[x] != 0); });
    });
  });
}

/** The bins of voxels; a further one is of those outside. */
void
RunBins(const KernelCall & call)
{
  const DomainBins   bins(DomainOf(call));
  const BufferView & in = call.inputs[0];
  DispatchPixelType(in.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
      const StridedRow<const Pixel> voxels(in, at);
      const std::uint8_t * const    inside = RowOf<std::uint8_t>(call.inputs[1], at);
      Store<std::uint16_t>(call.output, at, n, [&](std::int64_t x) { return bins(voxels[x], inside[x] != 0); });
    });
  });
}

/** Results as double, NaN where nothing is seen. */
void
RunConverted(const KernelCall & call)
{
  DispatchPixelType(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    const auto empty = EmptyPixel<Out>(DomainOf(call).emptyValue);
    ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
      const double * const results = RowOf<double>(call.inputs[0], at);
      Store<Out>(call.output, at, n, [&](std::int64_t x) {
        return results[x] == results[x] ? ConvertResult<Out>(results[x]) : empty;
      });
    });
  });
}

/** Results become `empty` where nothing is seen; most rows see something everywhere. */
template <typename TWeight, typename TOut>
void
FillEmpty(const TWeight * __restrict__ seen, std::int64_t n, TOut empty, TOut * __restrict__ results,
          std::int64_t stride)
{
  int any = 0;
  for (std::int64_t x = 0; x < n; ++x)
  {
    any |= seen[x] > TWeight(0) ? 0 : 1;
  }
  if (any != 0)
  {
    WithStride(stride, [&](auto step) {
      for (std::int64_t x = 0; x < n; ++x)
      {
        TOut & result = results[x * step];
        result = seen[x] > TWeight(0) ? result : empty;
      }
    });
  }
}

/** Results, and what stands where nothing is seen. */
void
RunFilled(const KernelCall & call)
{
  DispatchPixelType(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    const auto empty = EmptyPixel<Out>(DomainOf(call).emptyValue);
    DispatchWeight(call.inputs[1].kind, [&](auto weight) {
      using Weight = decltype(weight);
      ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
        const Weight * const seen = RowOf<Weight>(call.inputs[1], at);
        if (call.inputs[0].data == call.output.data)
        {
          FillEmpty(
            seen, n, empty, static_cast<Out *>(call.output.data) + call.output.Offset(at), call.output.stride[0]);
          return;
        }
        const Out * const results = RowOf<Out>(call.inputs[0], at);
        Store<Out>(call.output, at, n, [&](std::int64_t x) { return seen[x] > Weight(0) ? results[x] : empty; });
      });
    });
  });
}

/** 1 where something is seen, else 0. */
void
RunSeen(const KernelCall & call)
{
  const auto   quotient = DomainOf(call).GetQuotient(call.image.Extents());
  const double nothing = quotient.nothing * quotient.whole;
  DispatchPixelType(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    DispatchWeight(call.inputs[0].kind, [&](auto weight) {
      using Weight = decltype(weight);
      ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
        const Weight * const seen = RowOf<Weight>(call.inputs[0], at);
        Store<Out>(call.output, at, n, [&](std::int64_t x) {
          return static_cast<Out>(seen[x] > static_cast<Weight>(nothing) ? 1 : 0);
        });
      });
    });
  });
}

void
RunQuotient(const KernelCall & call)
{
  const DomainOperation &         operation = DomainOf(call);
  const DomainOperation::Quotient quotient = operation.GetQuotient(call.image.Extents());
  const BufferView &              numerators = call.inputs[0];
  const BufferView &              denominators = call.inputs[1];
  const bool                      mayOverflow = WideMaskedMean::IsNeededBy(operation);
  const auto                      areFinite = GetMaskedRowLevel().areFinite;
  std::atomic<bool>               isNotFinite{ false };
  DispatchReal(numerators.kind, [&](auto part) {
    using Part = decltype(part);
    const auto run = [&](auto real, auto out) {
      using Real = decltype(real);
      using Out = decltype(out);
      const QuotientRule<Out, Real> rule(operation, quotient);
      ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
        const Part * const numerator = RowOf<Part>(numerators, at);
        const Part * const denominator = RowOf<Part>(denominators, at);
        Store<Out>(call.output, at, n, [&](std::int64_t x) {
          return rule(static_cast<Real>(numerator[x]), static_cast<Real>(denominator[x]));
        });
        if constexpr (std::is_same<Part, float>::value)
        {
          if (mayOverflow && !(areFinite(numerator, n) && areFinite(denominator, n)))
          {
            isNotFinite = true;
          }
        }
      });
    };
    DispatchPixelType(call.output.kind, [&](auto out) {
      // A float quotient of sums and counts below 2^24 has the bits of one in double that is rounded to float.
      constexpr bool floatServes = std::is_same<Part, float>::value && !std::is_same<decltype(out), double>::value;
      quotient.inDouble && !floatServes ? run(double{}, out) : run(Part{}, out);
    });
  });
  if (isNotFinite)
  {
    *WideMaskedMean::GetNote(call) = 1;
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
    const DomainVarianceRule<Out> rule(DomainOf(call));
    ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
      const double * const sum = RowOf<double>(call.inputs[0], at);
      const double * const squares = RowOf<double>(call.inputs[1], at);
      const double * const count = RowOf<double>(call.inputs[2], at);
      Store<Out>(call.output, at, n, [&](std::int64_t x) { return rule(sum[x], squares[x], count[x]); });
    });
  });
}

void
RunVarying(const KernelCall & call)
{
  const std::vector<double> sums =
    VaryingWhole::MakeSums(dynamic_cast<const VaryingConvolutionOperation &>(*DomainOf(call).window));
  DispatchPixelType(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    VaryingRule<Out> rule(DomainOf(call));
    rule.whole.sums = sums.data();
    ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
      const double * const numerator = RowOf<double>(call.inputs[0], at);
      const double * const denominator = RowOf<double>(call.inputs[1], at);
      Coordinates          index = at;
      Store<Out>(call.output, at, n, [&](std::int64_t x) {
        index[0] = at[0] + x;
        return rule(index, numerator[x], denominator[x]);
      });
    });
  });
}

/** 1 where the mask is 0. */
void
RunOutside(const KernelCall & call)
{
  ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
    const std::uint8_t * const inside = RowOf<std::uint8_t>(call.inputs[0], at);
    Store<std::uint8_t>(
      call.output, at, n, [&](std::int64_t x) { return static_cast<std::uint8_t>(inside[x] == 0 ? 1 : 0); });
  });
}

/** The first input where the window is cut, the second where all of it is inside. */
void
RunWhole(const KernelCall & call)
{
  const WindowCount whole(DomainOf(call), call.image);
  DispatchPixelType(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    ForEachOutputRow(call, [&](const Coordinates & at, std::int64_t n) {
      const Out * const    ofCut = RowOf<Out>(call.inputs[0], at);
      const Out * const    ofWhole = RowOf<Out>(call.inputs[1], at);
      const double * const count = RowOf<double>(call.inputs[2], at);
      Coordinates          index = at;
      Store<Out>(call.output, at, n, [&](std::int64_t x) {
        index[0] = at[0] + x;
        return whole.IsWhole(index, count[x]) ? ofWhole[x] : ofCut[x];
      });
    });
  });
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
RegisterHostDomain(KernelRegistry & registry)
{
  Register(registry, "domain.mask.voxels", RunMask);
  Register(registry, "domain.weights.voxels", RunWeights);
  Register(registry, "domain.values.voxels", RunValues);
  Register(registry, "domain.squares.voxels", RunSquares);
  Register(registry, "domain.lowest.voxels", RunHidden<false>);
  Register(registry, "domain.highest.voxels", RunHidden<true>);
  Register(registry, "domain.least.voxels", RunLeast);
  Register(registry, "domain.bins.voxels", RunBins);
  Register(registry, "domain.converted.voxels", RunConverted);
  Register(registry, "domain.filled.voxels", RunFilled);
  Register(registry, "domain.seen.voxels", RunSeen);
  Register(registry, "domain.quotient.voxels", RunQuotient, ScratchOfQuotient);
  Register(registry, "domain.variance.voxels", RunVariance);
  Register(registry, "domain.whole.voxels", RunWhole);
  Register(registry, "domain.outside.voxels", RunOutside);
  Register(registry, "domain.varying.voxels", RunVarying);
}

} // namespace chunkwise
