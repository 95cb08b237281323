/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseImageConvolutionOperation.h"

#include "chunkwiseBoundedConvolution.h"
#include "chunkwiseConvolutionTiles.h"
#include "chunkwiseError.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

namespace chunkwise
{

namespace
{

/** Beyond this a boundary mode that maps taps walks too far outside of the image to be meant. */
constexpr std::int64_t LargestMappedReach = 65535;

constexpr const char * ProviderNames[] = { "auto", "own", "cufft", "fftw" };

/** Below this part of the magnitudes' sum, the sum of the weights inside is noise. */
constexpr double SmallestInsidePart = 1e-6;

std::string
Hash(const std::vector<double> & weights)
{
  // Two multiplicative hashes of the bits: equal by chance once in 2^128.
  std::uint64_t a = 0xcbf29ce484222325ULL;
  std::uint64_t b = 0x9e3779b97f4a7c15ULL;
  for (const double weight : weights)
  {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &weight, sizeof(bits));
    a = (a ^ bits) * 0x00000100000001b3ULL;
    a ^= a >> 29;
    b = (b ^ (bits >> 32 | bits << 32)) * 0xbf58476d1ce4e5b9ULL;
    b ^= b >> 31;
  }
  char text[40];
  std::snprintf(
    text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
  return text;
}

/** Whether it is clear without the table that all factors are finite: with weights of one sign, and an image that the
 * kernel fits into, a voxel at one of the image's corners has the least of them inside. */
bool
FactorsAreSurelyFinite(const ImageConvolutionOperation & operation, const Coordinates & image)
{
  const ConvolutionKernel & kernel = *operation.kernel;
  const Coordinates &       k = kernel.GetExtent();
  bool                      isSimple = std::abs(kernel.GetSum()) == kernel.GetSumOfMagnitudes();
  std::vector<int>          axes;
  for (int a = 0; a < MaxDimension; ++a)
  {
    isSimple = isSimple && k[a] <= image[a];
    if (k[a] > 1)
    {
      axes.push_back(a);
    }
  }
  if (!isSimple || axes.empty())
  {
    return false;
  }
  // Bit i: the upper end of the axis, where the weights from the center on are inside; at the lower end those up to it.
  std::vector<double>       inside(std::size_t{ 1 } << axes.size(), 0.0);
  std::vector<std::int64_t> at(axes.size(), 0);
  const std::int64_t        row = k[axes[0]];
  const std::int64_t        center = operation.Above(axes[0]);
  for (auto weight = kernel.GetWeights().begin(); weight != kernel.GetWeights().end(); weight += row)
  {
    const double ofRow[2] = { std::accumulate(weight, weight + center + 1, 0.0),
                              std::accumulate(weight + center, weight + row, 0.0) };
    for (std::size_t corner = 0; corner < inside.size(); ++corner)
    {
      bool is = true;
      for (std::size_t i = 1; i < axes.size(); ++i)
      {
        const std::int64_t beyond = at[i] - operation.Above(axes[i]);
        is = is && (corner >> i & 1 ? beyond >= 0 : beyond <= 0);
      }
      inside[corner] += is ? ofRow[corner & 1] : 0.0;
    }
    for (std::size_t i = 1; i < axes.size() && ++at[i] == k[axes[i]]; ++i)
    {
      at[i] = 0;
    }
  }
  // Twice what the table asks for, whose sums are rounded otherwise.
  const double least = 2 * SmallestInsidePart * kernel.GetSumOfMagnitudes();
  return std::all_of(inside.begin(), inside.end(), [&](double sum) { return std::abs(sum) > least; });
}

struct Radix
{
  int    radix;
  double cost;
};

/** The cost per point of a line beside its passes: the transforms along the other axes, which are longer with it. */
constexpr double OtherCost = 12;
/** Time of a pass per point, in that of a pass of radix 2. */
constexpr Radix PassCosts[] = { { 8, 1.7 }, { 7, 2.2 }, { 5, 1.7 }, { 4, 1.25 }, { 3, 1.25 }, { 2, 1.0 } };

double
TransformCost(std::int64_t n)
{
  double passes = OtherCost;
  for (const int radix : TransformRadices(n))
  {
    for (const Radix & known : PassCosts)
    {
      passes += known.radix == radix ? known.cost : 0;
    }
  }
  return static_cast<double>(n) * passes;
}

bool
IsSmooth(std::int64_t n)
{
  for (const int prime : { 2, 3, 5, 7 })
  {
    while (n % prime == 0)
    {
      n /= prime;
    }
  }
  return n == 1;
}

} // namespace

ConvolutionKernel::ConvolutionKernel(const Coordinates & extent, const Coordinates & center,
                                     std::vector<double> weights)
  : m_Extent(extent)
  , m_Center(center)
  , m_Weights(std::move(weights))
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (extent[a] < 1 || center[a] < 0 || center[a] >= extent[a])
    {
      throw ParameterError("the kernel's extent is " + ToString(extent) + " with its center at " + ToString(center) +
                           "; the center must be inside");
    }
  }
  if (!m_Weights.empty() && static_cast<std::int64_t>(m_Weights.size()) != GetNumberOfTaps())
  {
    throw ParameterError("the kernel's extent is " + ToString(extent) + ", but it has " +
                         std::to_string(m_Weights.size()) + " weights");
  }
  for (const double weight : m_Weights)
  {
    m_Sum += weight;
    m_SumOfMagnitudes += std::abs(weight);
  }
  m_Key = ToString(extent) + " at " + ToString(center) + " " + Hash(m_Weights);
}

std::shared_ptr<const ConvolutionKernel>
ConvolutionKernel::Flipped() const
{
  Coordinates center{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    center[a] = m_Extent[a] - 1 - m_Center[a];
  }
  return std::make_shared<ConvolutionKernel>(
    m_Extent, center, std::vector<double>(m_Weights.rbegin(), m_Weights.rend()));
}

std::int64_t
ConvolutionKernel::GetNumberOfTaps() const
{
  std::int64_t taps = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    taps *= m_Extent[a];
  }
  return taps;
}

const char *
TransformProviderName(TransformProvider provider)
{
  return ProviderNames[static_cast<std::size_t>(provider)];
}

TransformProvider
TransformProviderFromName(const std::string & name)
{
  for (std::size_t i = 0; i < std::size(ProviderNames); ++i)
  {
    if (name == ProviderNames[i])
    {
      return static_cast<TransformProvider>(i);
    }
  }
  throw ParameterError("\"" + name + "\" provides no transforms; auto, own, cufft and fftw do");
}

std::string
ImageConvolutionOperation::GetName() const
{
  const std::int64_t taps = kernel->GetNumberOfTaps();
  const bool         direct =
    method == ConvolutionMethod::Direct || taps == 1 ||
    (method == ConvolutionMethod::Auto && taps <= MostDirectTaps && transforms == TransformProvider::Auto);
  return direct ? "convolution.direct" : "convolution.fft";
}

std::string
ImageConvolutionOperation::GetObjectionToDevices() const
{
  return transforms == TransformProvider::FFTW && GetName() == "convolution.fft"
           ? "TransformProvider is fftw, whose transforms are those of the CPU"
           : std::string();
}

bool
ImageConvolutionOperation::IsForCufft() const
{
  // Fixed lengths of own transforms end at 1024: with kernels of more than half of it blocks would be overlap for the
  // most part. Lines of a few thousand voxels more do not fit shared memory.
  constexpr std::int64_t longestForFixed = 512;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (kernel->GetExtent()[a] > longestForFixed)
    {
      return true;
    }
  }
  return false;
}

std::string
ImageConvolutionOperation::GetKey() const
{
  const bool isNamed = transforms != TransformProvider::Auto;
  return GetName() + (isNamed ? std::string(" by ") + TransformProviderName(transforms) + " " : " ") +
         kernel->GetKey() + " " + BoundaryKey(boundary);
}

Halo
ImageConvolutionOperation::GetHalo(const Coordinates &) const
{
  Halo halo = Halo::None();
  for (int a = 0; a < MaxDimension; ++a)
  {
    // Taps beyond an edge that mirrors are found as far on its other side.
    const std::int64_t mirrored = IsMirror(boundary.mode) ? std::max(Below(a), Above(a)) : 0;
    halo.lower[a] = std::max(Below(a), mirrored);
    halo.upper[a] = std::max(Above(a), mirrored);
  }
  return halo;
}

void
ImageConvolutionOperation::Validate(const Coordinates & image) const
{
  int axes = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    axes += kernel->GetExtent()[a] > 1 ? 1 : 0;
    if (boundary.mode != BoundaryMode::Renormalized && std::max(Below(a), Above(a)) > LargestMappedReach)
    {
      throw ParameterError("the kernel's extent is " + std::to_string(kernel->GetExtent()[a]) + " along axis " +
                           std::to_string(a) + "; with this boundary mode it must not reach farther than " +
                           std::to_string(LargestMappedReach));
    }
  }
  if (axes > MaxSpatialAxes)
  {
    throw ParameterError("the kernel's extent is " + ToString(kernel->GetExtent()) + "; at most " +
                         std::to_string(MaxSpatialAxes) + " axes may be longer than 1");
  }
  if (boundary.mode == BoundaryMode::Constant && !boundary.constant.IsFinite())
  {
    throw ParameterError("Constant: it is " + std::to_string(boundary.constant.ToDouble()) + "; it must be finite");
  }
  if (method == ConvolutionMethod::Direct && transforms != TransformProvider::Auto)
  {
    throw ParameterError(std::string("TransformProvider: ") + TransformProviderName(transforms) +
                         " is asked for, but the method is direct, which takes no transforms");
  }
  // The sum is not finite if a weight is not. Runs ask often.
  if (!std::isfinite(kernel->GetSumOfMagnitudes()))
  {
    for (const double weight : kernel->GetWeights())
    {
      if (!std::isfinite(weight))
      {
        throw ParameterError("KernelImage: a weight is " + std::to_string(weight) + "; it must be finite");
      }
    }
  }
  if (boundary.mode == BoundaryMode::Renormalized && !kernel->GetWeights().empty() &&
      !FactorsAreSurelyFinite(*this, image))
  {
    const ConvolutionFactors factors(*this, image);
    for (const double factor : factors.factors)
    {
      if (!std::isfinite(factor))
      {
        throw ParameterError("the kernel's weights sum to zero, or those inside the image do at its edge, so it cannot "
                             "be renormalized; another boundary condition can be used");
      }
    }
  }
}

Coordinates
ImageConvolutionOperation::GetTile(const Coordinates & image) const
{
  return GetName() == "convolution.fft" ? ConvolutionTiles(*this, image).GetShared() : Coordinates::Filled(1);
}

Coordinates
ImageConvolutionOperation::RoundChunk(const Coordinates & extent) const
{
  Coordinates rounded = extent;
  if (GetName() == "convolution.fft")
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t k = kernel->GetExtent()[a];
      rounded[a] = k > 1 ? GoodTransformLength(extent[a] + k - 1, transforms) - (k - 1) : extent[a];
    }
  }
  return rounded;
}

Coordinates
ConvolutionFactors::States(const ImageConvolutionOperation & operation, const Coordinates & image)
{
  Coordinates states{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    states[a] = std::min(operation.kernel->GetExtent()[a], image[a]);
  }
  return states;
}

namespace
{

/** The axes along which a kernel has several weights; at least one. */
std::vector<int>
AxesOfKernel(const ConvolutionKernel & kernel)
{
  std::vector<int> axes;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (kernel.GetExtent()[a] > 1)
    {
      axes.push_back(a);
    }
  }
  if (axes.empty())
  {
    axes.push_back(0);
  }
  return axes;
}

/** The next row of an image of `extent`, whose rows lie along the first of `axes`. */
void
NextRow(const std::vector<int> & axes, const Coordinates & extent, std::vector<std::int64_t> & index)
{
  for (std::size_t i = 1; i < axes.size() && ++index[i] == extent[axes[i]]; ++i)
  {
    index[i] = 0;
  }
}

/** The integral image of a kernel, with a layer of zeros below each axis. */
struct KernelIntegral
{
  KernelIntegral(const ConvolutionKernel & kernel, const std::vector<int> & axes);

  std::vector<std::int64_t> stride;
  std::vector<double>       sums;
};

KernelIntegral::KernelIntegral(const ConvolutionKernel & kernel, const std::vector<int> & axes)
  : stride(axes.size() + 1, 1)
{
  for (std::size_t i = 0; i < axes.size(); ++i)
  {
    stride[i + 1] = stride[i] * (kernel.GetExtent()[axes[i]] + 1);
  }
  sums.resize(static_cast<std::size_t>(stride.back()), 0.0);
  const std::int64_t        row = kernel.GetExtent()[axes[0]];
  std::vector<std::int64_t> index(axes.size(), 0);
  for (auto weight = kernel.GetWeights().begin(); weight != kernel.GetWeights().end(); weight += row)
  {
    std::int64_t at = 1;
    for (std::size_t i = 1; i < axes.size(); ++i)
    {
      at += (index[i] + 1) * stride[i];
    }
    std::copy(weight, weight + row, sums.begin() + at);
    NextRow(axes, kernel.GetExtent(), index);
  }
  for (std::size_t i = 0; i < axes.size(); ++i)
  {
    for (std::int64_t layers = 0; layers < stride.back(); layers += stride[i + 1])
    {
      for (std::int64_t at = layers + stride[i]; at < layers + stride[i + 1]; ++at)
      {
        sums[static_cast<std::size_t>(at)] += sums[static_cast<std::size_t>(at - stride[i])];
      }
    }
  }
}

/** The weights inside the image are those of [first, last) of an axis, by state. */
struct InsideBounds
{
  std::vector<std::int64_t> at[2];
  std::vector<char>         whole;
};

InsideBounds
BoundsAlong(const ImageConvolutionOperation & operation, int a, std::int64_t image, std::int64_t states,
            std::int64_t stride)
{
  const std::int64_t k = operation.kernel->GetExtent()[a];
  InsideBounds       bounds;
  for (std::int64_t state = 0; state < states; ++state)
  {
    // A position of this state.
    const std::int64_t position = image <= k || state <= operation.Below(a) ? state : image - k + state;
    const std::int64_t first = std::max<std::int64_t>(0, position + operation.Above(a) - image + 1);
    const std::int64_t last = std::min(k, position + operation.Above(a) + 1);
    bounds.at[0].push_back(first * stride);
    bounds.at[1].push_back(last * stride);
    bounds.whole.push_back(first == 0 && last == k ? 1 : 0);
  }
  return bounds;
}

} // namespace

ConvolutionFactors::ConvolutionFactors(const ImageConvolutionOperation & operation, const Coordinates & image)
  : states(States(operation, image))
{
  const ConvolutionKernel & kernel = *operation.kernel;
  // Along the other axes there is one weight, and it is inside.
  const std::vector<int> axes = AxesOfKernel(kernel);
  const KernelIntegral   integral(kernel, axes);
  // The sum of the weights inside is 2^d values of the integral image.
  std::vector<InsideBounds> bounds;
  std::int64_t              entries = 1;
  for (std::size_t i = 0; i < axes.size(); ++i)
  {
    const int a = axes[i];
    bounds.push_back(BoundsAlong(operation, a, image[a], states[a], integral.stride[i]));
    entries *= states[a];
  }
  const auto                width = static_cast<std::size_t>(states[axes[0]]);
  std::vector<double>       inside(width);
  std::vector<std::int64_t> index(axes.size(), 0);
  const double              least = SmallestInsidePart * kernel.GetSumOfMagnitudes();
  factors.reserve(static_cast<std::size_t>(entries));
  while (static_cast<std::int64_t>(factors.size()) < entries)
  {
    std::fill(inside.begin(), inside.end(), 0.0);
    bool whole = true;
    for (std::size_t corner = 0; corner < std::size_t{ 1 } << axes.size(); ++corner)
    {
      const double * line = integral.sums.data();
      double         sign = corner & 1 ? 1 : -1;
      for (std::size_t i = 1; i < axes.size(); ++i)
      {
        const auto state = static_cast<std::size_t>(index[i]);
        line += bounds[i].at[corner >> i & 1][state];
        sign = corner >> i & 1 ? sign : -sign;
        whole = whole && bounds[i].whole[state];
      }
      const std::int64_t * const at = bounds[0].at[corner & 1].data();
      for (std::size_t x = 0; x < width; ++x)
      {
        inside[x] += sign * line[at[x]];
      }
    }
    for (std::size_t x = 0; x < width; ++x)
    {
      const bool vanishes = !(std::abs(inside[x]) > least) || !(std::abs(kernel.GetSum()) > least);
      factors.push_back(vanishes ? std::numeric_limits<double>::quiet_NaN()
                                 : (whole && bounds[0].whole[x] ? 1.0 : kernel.GetSum() / inside[x]));
    }
    NextRow(axes, states, index);
  }
}

std::vector<int>
TransformRadices(std::int64_t n)
{
  std::vector<int> radices;
  for (const int odd : { 7, 5, 3 })
  {
    for (; n % odd == 0; n /= odd)
    {
      radices.push_back(odd);
    }
  }
  int twos = 0;
  for (; n % 2 == 0; n /= 2)
  {
    ++twos;
  }
  // As many eights as leave no factor of 2 alone where fours can take it.
  while (twos > 0)
  {
    const int bits = twos == 2 || twos == 4 ? 2 : std::min(twos, 3);
    radices.push_back(1 << bits);
    twos -= bits;
  }
  if (n != 1)
  {
    throw ParameterError("a transform's length must be a product of 2, 3, 5 and 7");
  }
  return radices;
}

std::int64_t
GoodTransformLength(std::int64_t n)
{
  // Plans ask for the same lengths a hundred times.
  constexpr std::int64_t           most = 8192;
  static std::atomic<std::int32_t> known[most];
  if (n > 0 && n < most)
  {
    if (const std::int32_t length = known[n].load(std::memory_order_relaxed))
    {
      return length;
    }
  }
  std::int64_t best = 0;
  double       least = 0;
  // There always is one this close, and none that is farther away is faster.
  for (std::int64_t length = n; length <= n + n / 4 + 16; ++length)
  {
    if (IsSmooth(length))
    {
      const double cost = TransformCost(length);
      if (!best || cost < least)
      {
        best = length;
        least = cost;
      }
    }
  }
  if (n > 0 && n < most)
  {
    known[n].store(static_cast<std::int32_t>(best), std::memory_order_relaxed);
  }
  return best;
}

std::int64_t
GoodTransformLength(std::int64_t n, TransformProvider provider)
{
  if (provider != TransformProvider::FFTW)
  {
    return GoodTransformLength(n);
  }
  while (!IsSmooth(n) && !(n % 11 == 0 && IsSmooth(n / 11)) && !(n % 13 == 0 && IsSmooth(n / 13)))
  {
    ++n;
  }
  return n;
}

std::vector<double>
TransformTwiddles(std::int64_t n)
{
  std::vector<double> twiddles;
  std::int64_t        left = n;
  for (const int radix : TransformRadices(n))
  {
    const std::int64_t m = left / radix;
    for (std::int64_t p = 0; m > 1 && p < m; ++p)
    {
      for (int k = 1; k < radix; ++k)
      {
        const double angle = 2 * 3.14159265358979323846 * static_cast<double>(p * k) / static_cast<double>(left);
        twiddles.push_back(std::cos(angle));
        twiddles.push_back(-std::sin(angle));
      }
    }
    left = m;
  }
  return twiddles;
}

namespace
{

/** Values that wrap around the transform must not reach the positions that are kept; `before` and `after` are the
 * input's positions beyond the output. */
std::int64_t
LengthOf(const ConvolutionBlock::Axis & r, const ImageConvolutionOperation & operation, std::int64_t before,
         std::int64_t after)
{
  return r.transformed ? GoodTransformLength(std::max({ r.input,
                                                        r.output + after + operation.Below(r.axis),
                                                        r.output + before + operation.Above(r.axis),
                                                        r.kernel }),
                                             operation.transforms)
                       : r.output;
}

/** Beyond the edge there is nothing in these modes: in Constant mode the constant is subtracted first. */
bool
EndsAtTheEdge(const ImageConvolutionOperation & operation)
{
  return operation.Renormalizes() || operation.boundary.mode == BoundaryMode::Constant;
}

} // namespace

int
ConvolutionBlock::LastRole() const
{
  return role[2].transformed ? 2 : role[1].transformed ? 1 : 0;
}

ConvolutionBlock::ConvolutionBlock(const ImageConvolutionOperation & operation)
{
  transforms = operation.transforms;
  const Coordinates & k = operation.kernel->GetExtent();
  // One axis is transformed even if the kernel is a single weight.
  const bool single = operation.kernel->GetNumberOfTaps() == 1;
  int        next = 0;
  for (const bool transformed : { true, false })
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      if ((k[a] > 1 || (single && a == 0)) == transformed)
      {
        role[next].axis = a;
        role[next].transformed = transformed;
        role[next++].kernel = k[a];
      }
    }
  }
}

ConvolutionBlock::ConvolutionBlock(const ImageConvolutionOperation & operation, const Box & output,
                                   const Coordinates & image, const Box * support)
  : ConvolutionBlock(operation)
{
  for (Axis & r : role)
  {
    const int a = r.axis;
    r.output = output.Extent(a);
    r.lower = output.lower[a] - operation.Below(a);
    std::int64_t upper = output.upper[a] + operation.Above(a);
    if (EndsAtTheEdge(operation))
    {
      r.lower = std::max<std::int64_t>(r.lower, 0);
      upper = std::min(upper, image[a]);
    }
    if (support)
    {
      r.lower = std::max(r.lower, support->lower[a]);
      upper = std::min(upper, support->upper[a]);
    }
    r.input = upper - r.lower;
    const std::int64_t before = output.lower[a] - r.lower;
    r.crop = before + operation.Above(a);
    r.length = LengthOf(r, operation, before, upper - output.upper[a]);
  }
}

ConvolutionBlock
ConvolutionBlock::Largest(const ImageConvolutionOperation & operation, const Coordinates & extent,
                          const Coordinates & image)
{
  ConvolutionBlock block(operation);
  for (Axis & r : block.role)
  {
    const int a = r.axis;
    r.output = extent[a];
    std::int64_t before = operation.Below(a);
    std::int64_t after = operation.Above(a);
    r.input = r.output + before + after;
    if (EndsAtTheEdge(operation))
    {
      r.input = std::min(r.input, image[a]);
      before = std::min(before, image[a] - extent[a]);
      after = std::min(after, image[a] - extent[a]);
    }
    r.crop = before + operation.Above(a);
    r.length = LengthOf(r, operation, before, after);
  }
  return block;
}

ConvolutionBlock::ConvolutionBlock(const ImageConvolutionOperation & operation, const Box & output,
                                   const Coordinates & image, const Coordinates & tile)
  : ConvolutionBlock(operation, output, image)
{
  this->TakeLengths(operation, image, tile);
}

ConvolutionBlock
ConvolutionBlock::Largest(const ImageConvolutionOperation & operation, const Coordinates & extent,
                          const Coordinates & image, const Coordinates & tile)
{
  ConvolutionBlock block = Largest(operation, extent, image);
  block.TakeLengths(operation, image, tile);
  return block;
}

void
ConvolutionBlock::TakeLengths(const ImageConvolutionOperation & operation, const Coordinates & image,
                              const Coordinates & tile)
{
  const ConvolutionBlock ofTile = Largest(operation, tile, image);
  for (int r = 0; r < MaxDimension && role[r].transformed; ++r)
  {
    role[r].length = ofTile.role[r].length;
  }
  lastTile = tile[role[this->LastRole()].axis];
}

namespace
{

/** The lengths of lines that devices transform fast: an estimate for what tiles cost. */
constexpr std::int64_t FastLengths[] = { 128, 144, 160, 192, 240, 256, 288, 320, 384,
                                         432, 480, 512, 576, 640, 768, 864, 1024 };

/** The points that devices transform for so many tiles whose lines have at least so many. */
double
PointsOfDeviceTiles(std::int64_t count, std::int64_t length)
{
  const auto fast = std::lower_bound(std::begin(FastLengths), std::end(FastLengths), length);
  return static_cast<double>(count) *
         static_cast<double>(fast != std::end(FastLengths) ? *fast : 2 * GoodTransformLength(length));
}

/** Along the first two of three axes a device's tiles are no shorter than this if they can be, and no longer than saves
 * so many of the points. */
constexpr std::int64_t LeastDeviceTile = 384;
constexpr double       LeastSaving = 1.05;
/** Deconvolutions of so many voxels, or more, have short tiles: 4 GiB of float. */
constexpr double LeastVoxelsInWindows = 1024.0 * 1024 * 1024;

/** About the extent of a device's tiles along an axis of n voxels, one of the first two of three. */
std::int64_t
UsualDeviceTile(std::int64_t n, std::int64_t k)
{
  double       least = 0;
  std::int64_t usual = n;
  for (const bool chooses : { false, true })
  {
    for (std::int64_t parts = 1;; ++parts)
    {
      const std::int64_t extent = (n + parts - 1) / parts;
      if (parts > 1 && extent < LeastDeviceTile)
      {
        break;
      }
      if (extent + k - 1 <= ConvolutionTiles::LongestFastLine)
      {
        const double points = PointsOfDeviceTiles(parts, extent + k - 1);
        least = !chooses && (least == 0 || points < least) ? points : least;
        usual = chooses && points <= LeastSaving * least ? extent : usual;
      }
    }
  }
  // Tiles are made up of those of the CPU.
  return std::max(usual, std::min<std::int64_t>(n, 512));
}

/** The bytes that a device needs at once for a tile of three axes in float: its input, its spectrum, and the kernel,
 * transformed along the first two axes. `points`: the tile's input along the third one. */
double
BytesOfDeviceTile(const ConvolutionBlock & roles, std::int64_t x, std::int64_t y, std::int64_t points)
{
  constexpr std::int64_t unit = 64; // in which the lengths of long lines grow
  double                 input = sizeof(float);
  double                 spectrum = sizeof(float);
  for (const std::int64_t length : { x + roles.role[0].kernel - 1, y + roles.role[1].kernel - 1 })
  {
    input *= static_cast<double>(length);
    spectrum *= static_cast<double>((length + unit - 1) / unit * unit);
  }
  return input * static_cast<double>(points) + spectrum * static_cast<double>(points + roles.role[2].kernel);
}

/** The extent of tiles along the last of three axes, at most. Longer ones save little: tiles share the transforms along
 * the other axes, and a device must hold a whole one. */
std::int64_t
LongestLastTile(const ConvolutionBlock & roles, const Coordinates & image, bool isForWindows)
{
  const std::int64_t k = roles.role[2].kernel;
  if (isForWindows)
  {
    return std::max(ConvolutionBlock::LeastTile / 2, 2 * (k - 1));
  }
  const std::int64_t x = UsualDeviceTile(image[roles.role[0].axis], roles.role[0].kernel);
  const std::int64_t y = UsualDeviceTile(image[roles.role[1].axis], roles.role[1].kernel);
  const double       ofKernel = BytesOfDeviceTile(roles, x, y, 0);
  const double       ofPoint = BytesOfDeviceTile(roles, x, y, 1) - ofKernel;
  const auto fitting = static_cast<std::int64_t>((ConvolutionTiles::UsualDeviceBytes - ofKernel) / ofPoint) - (k - 1);
  // Shorter ones would be overlap for the most part. A few voxels more are better than one more tile.
  return std::max(ConvolutionBlock::LeastTile,
                  4 * fitting >= 5 * k ? std::min(fitting + fitting / 20, 4 * k) : std::min<std::int64_t>(2 * k, 512));
}

} // namespace

Coordinates
ConvolutionBlock::Tile(const ImageConvolutionOperation & operation, const Coordinates & image)
{
  const ConvolutionBlock roles(operation);
  Coordinates            tile = Coordinates::Filled(1);
  std::int64_t           planes = 1;
  double                 voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxels *= static_cast<double>(image[a]);
  }
  // A deconvolution of such an image goes in windows through many a device, and needs several tiles at once.
  const bool isForWindows =
    voxels >= LeastVoxelsInWindows && dynamic_cast<const BoundedConvolution *>(&operation) != nullptr;
  int transformed = 0;
  for (const Axis & r : roles.role)
  {
    transformed += r.transformed ? 1 : 0;
    // More are not counted: extents that stand for any may be 2^60.
    planes = std::min(FewPlanes, planes * (r.transformed ? 1 : std::min(FewPlanes, image[r.axis])));
  }
  if (transformed < 2)
  {
    tile[roles.role[1].axis] = std::min(image[roles.role[1].axis], RowsOfTile);
  }
  const auto cut = [&](const Axis & r, std::int64_t most) {
    const std::int64_t count = (image[r.axis] + most - 1) / most;
    tile[r.axis] = (image[r.axis] + count - 1) / count;
  };
  for (int r = 0; r < transformed; ++r)
  {
    const Axis &       axis = roles.role[r];
    const std::int64_t k = axis.kernel;
    if (transformed == 3)
    {
      // Along the last axis tiles share the transforms along the others, and only these overlap.
      cut(axis, r == 2 ? LongestLastTile(roles, image, isForWindows) : std::max(LongestTile, 8 * k));
      // Parts of tiles, where whole ones do not fit a device, have extents that divide the tile's.
      tile[axis.axis] = r == 2 ? std::min((tile[axis.axis] + 7) / 8 * 8, image[axis.axis]) : tile[axis.axis];
    }
    else
    {
      cut(axis,
          transformed == 2 && planes >= FewPlanes ? std::max(LongestTile, 8 * k) : std::max(512 - (k - 1), 6 * k));
      // Rows are transformed in pairs.
      tile[axis.axis] = std::min(tile[axis.axis] + tile[axis.axis] % 2, image[axis.axis]);
    }
  }
  while (transformed == 3)
  {
    const ConvolutionBlock block = Largest(operation, tile, image);
    double                 bytes = sizeof(float);
    for (int r = 0; r < 3; ++r)
    {
      bytes *= static_cast<double>(block.role[r].length);
    }
    const Axis & x = roles.role[0];
    const Axis & y = roles.role[1];
    const Axis & longer = tile[x.axis] * y.kernel > tile[y.axis] * x.kernel ? x : y;
    if (bytes <= LargestTileBytes || tile[longer.axis] < longer.kernel)
    {
      break;
    }
    cut(longer, (tile[longer.axis] + 1) / 2);
  }
  return tile;
}

ConvolutionTiles::ConvolutionTiles(const ImageConvolutionOperation & operation, const Coordinates & image)
  : m_Image(image)
  , m_Roles(ConvolutionBlock::Largest(operation, Coordinates::Filled(1), image))
  , m_Shared(ConvolutionBlock::Tile(operation, image))
  , m_Device(m_Shared)
{
  const Coordinates host = m_Shared;
  while (m_Transformed < MaxSpatialAxes && m_Roles.role[m_Transformed].transformed)
  {
    ++m_Transformed;
  }
  for (int r = 0; r < m_Transformed; ++r)
  {
    this->Choose(r, host, LongestLine);
  }
  if (m_Transformed < 3)
  {
    return;
  }
  const int          x = m_Roles.role[0].axis;
  const int          y = m_Roles.role[1].axis;
  const std::int64_t points = m_Shared[m_Roles.role[2].axis] + m_Roles.role[2].kernel - 1;
  // Shorter along the first two axes until the tile is small enough, or the CPU's.
  while ((m_Device[x] > host[x] || m_Device[y] > host[y]) &&
         BytesOfDeviceTile(m_Roles, m_Shared[x], m_Shared[y], points) > MostDeviceBytes)
  {
    const std::int64_t longest =
      std::max(m_Device[x] > host[x] ? m_Device[x] : 0, m_Device[y] > host[y] ? m_Device[y] : 0);
    this->Choose(0, host, longest - 1);
    this->Choose(1, host, longest - 1);
  }
}

/** A device's tiles are at most so long as lines allow, and at most `limit`, in shared tiles of one or more of the
 * CPU's: the choice that costs the least. */
void
ConvolutionTiles::Choose(int role, const Coordinates & host, std::int64_t limit)
{
  const auto &       axis = m_Roles.role[role];
  const int          a = axis.axis;
  const std::int64_t k = axis.kernel;
  const std::int64_t n = m_Image[a];
  const std::int64_t longest = k <= LongestFastLine / 2 ? LongestFastLine : LongestLine;
  std::int64_t       most = std::min(longest - std::min(k - 1, longest / 2), limit);
  // Tiles that share a block cost no more if there are many. Those of fewer than three axes are little memory.
  const bool         isLast = role > 0 && role + 1 == m_Transformed;
  const std::int64_t mostShared = isLast ? 0 : m_Transformed < 3 ? 3 * most : most;
  const std::int64_t count = (n + host[a] - 1) / host[a];
  // Rows are transformed in pairs.
  const std::int64_t unit = isLast && role == 1 ? 2 : 1;
  most -= most % unit;
  // Tiles of three axes are large. Each other one takes so much beside its points, in points: kernels are launched for
  // it.
  const bool   isSpace = m_Transformed == 3 && role < 2;
  const double each = isSpace ? 0 : 256;
  struct Option
  {
    std::int64_t shared;
    std::int64_t device;
    double       cost;
  };
  std::vector<Option> options;
  for (std::int64_t together = 1; together <= count; ++together)
  {
    const std::int64_t shared = std::min(together * host[a], n);
    if (together > 1 && shared > mostShared)
    {
      break;
    }
    const std::int64_t parts = (shared + most - 1) / most;
    const std::int64_t device = ((shared + parts - 1) / parts + unit - 1) / unit * unit;
    const std::int64_t tiles = (n + shared - 1) / shared * parts;
    options.push_back(
      { shared, device, PointsOfDeviceTiles(tiles, device + k - 1) + each * static_cast<double>(tiles) });
  }
  const auto least = std::min_element(
    options.begin(), options.end(), [](const Option & one, const Option & other) { return one.cost < other.cost; });
  const auto     small = std::find_if(options.begin(), options.end(), [&](const Option & option) {
    return isSpace && option.shared >= LeastDeviceTile && option.cost <= LeastSaving * least->cost;
  });
  const Option & chosen = small != options.end() ? *small : *least;
  m_Shared[a] = chosen.shared;
  m_Device[a] = chosen.device;
}

/** The intervals in which a part of an axis is computed. */
std::vector<std::pair<std::int64_t, std::int64_t>>
ConvolutionTiles::CutAxis(int role, std::int64_t lower, std::int64_t upper) const
{
  const int          a = m_Roles.role[role].axis;
  const std::int64_t n = m_Image[a];
  if (!m_Roles.role[role].transformed)
  {
    // Rows are transformed in pairs.
    return { { lower - (role == 1 ? lower % 2 : 0), std::min(upper + (role == 1 ? upper % 2 : 0), n) } };
  }
  const std::int64_t                                 shared = m_Shared[a];
  const std::int64_t                                 device = m_Device[a];
  std::vector<std::pair<std::int64_t, std::int64_t>> intervals;
  for (std::int64_t begin = lower / shared * shared; begin < upper; begin += shared)
  {
    const std::int64_t end = std::min(begin + shared, n);
    const std::int64_t first = begin + (std::max(lower, begin) - begin) / device * device;
    const std::int64_t last = std::min(begin + (std::min(upper, end) - begin + device - 1) / device * device, end);
    if (!this->IsTogether(role))
    {
      for (std::int64_t at = first; at < last; at += device)
      {
        intervals.emplace_back(at, std::min(at + device, last));
      }
    }
    else if (!intervals.empty() && shared % device == 0)
    {
      intervals.back().second = last;
    }
    else
    {
      intervals.emplace_back(first, last);
    }
  }
  return intervals;
}

std::vector<Box>
ConvolutionTiles::Cut(const Box & part) const
{
  std::vector<Box> boxes(1, part);
  for (int r = 0; r < MaxDimension; ++r)
  {
    const int        a = m_Roles.role[r].axis;
    std::vector<Box> cut;
    for (const auto & [lower, upper] : this->CutAxis(r, part.lower[a], part.upper[a]))
    {
      for (Box box : boxes)
      {
        box.lower[a] = lower;
        box.upper[a] = upper;
        cut.push_back(box);
      }
    }
    boxes.swap(cut);
  }
  return boxes;
}

Coordinates
ConvolutionTiles::GetLargest(const Box & part) const
{
  Coordinates extent = part.Extents();
  for (int r = 0; r < MaxDimension; ++r)
  {
    const int a = m_Roles.role[r].axis;
    if (!m_Roles.role[r].transformed)
    {
      extent[a] += r == 1 ? 2 : 0;
    }
    else if (!this->IsTogether(r))
    {
      extent[a] = m_Device[a];
    }
    else
    {
      extent[a] =
        m_Shared[a] % m_Device[a] == 0 ? AlignToTiles(part, m_Device, Box::FromExtent(m_Image)).Extent(a) : m_Shared[a];
    }
    extent[a] = std::min(extent[a], m_Image[a]);
  }
  return extent;
}

std::vector<Box>
CutIntoTiles(const Box & box, const Coordinates & tile, const Box & image)
{
  const Box        all = AlignToTiles(box, tile, image);
  std::vector<Box> tiles(1, all);
  for (int a = 0; a < MaxDimension; ++a)
  {
    std::vector<Box> cut;
    for (const Box & whole : tiles)
    {
      for (std::int64_t lower = all.lower[a]; lower < all.upper[a]; lower += tile[a])
      {
        Box part = whole;
        part.lower[a] = lower;
        part.upper[a] = std::min(lower + tile[a], all.upper[a]);
        cut.push_back(part);
      }
    }
    tiles.swap(cut);
  }
  return tiles;
}

std::vector<Box>
CutIntoBlocks(const Box & box, const Coordinates & most)
{
  std::vector<Box> blocks(1, box);
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t extent = box.Extent(a);
    const std::int64_t count = (extent + most[a] - 1) / most[a];
    std::vector<Box>   cut;
    for (const Box & whole : blocks)
    {
      for (std::int64_t i = 0; i < count; ++i)
      {
        Box part = whole;
        part.lower[a] = box.lower[a] + extent * i / count;
        part.upper[a] = box.lower[a] + extent * (i + 1) / count;
        cut.push_back(part);
      }
    }
    blocks.swap(cut);
  }
  return blocks;
}

} // namespace chunkwise
