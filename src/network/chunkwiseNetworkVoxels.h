/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNetworkVoxels_h
#define chunkwiseNetworkVoxels_h

#include "chunkwiseNetworkGraph.h"

#include <cmath>
#include <cstring>
#include <type_traits>

// The value of each voxel of each kind of layer, for both backends: one source, the same bits.

namespace chunkwise
{
namespace network
{

/** A part of a layer's result: [channel][z][y][x], dense.
 *
 * Or as fragments, which transforms and poolings alone know: the voxels whose index, from `lower` on, is r modulo
 * `fragments` lie together, [channel][rz][ry][rx][z][y][x], with room for as many in each fragment. */
struct Tensor
{
  float *      data;
  int          channels;
  std::int64_t lower[MaxSpatialAxes];
  std::int64_t extent[MaxSpatialAxes];
  /** The extent of the layer's whole result. */
  std::int64_t whole[MaxSpatialAxes];
  std::int64_t fragments[MaxSpatialAxes]; ///< 1: dense
  /** Planes along z that memory has room for, a multiple of the fragments: a tensor may be a part of a longer one. */
  std::int64_t room;

  CHUNKWISE_HOST_DEVICE std::int64_t
                        VoxelsPerChannel() const
  {
    return extent[0] * extent[1] * extent[2];
  }
  CHUNKWISE_HOST_DEVICE std::int64_t
                        FragmentExtent(int a) const
  {
    return (extent[a] + fragments[a] - 1) / fragments[a];
  }
  /** From a channel to the next one in memory. */
  CHUNKWISE_HOST_DEVICE std::int64_t
                        ChannelLength() const
  {
    return FragmentExtent(0) * fragments[0] * FragmentExtent(1) * fragments[1] * room;
  }
  /** From a fragment to the next one in memory. */
  CHUNKWISE_HOST_DEVICE std::int64_t
                        FragmentLength() const
  {
    return FragmentExtent(0) * FragmentExtent(1) * (room / fragments[2]);
  }
  /** Planes [begin, end), where they lie. `begin` - `lower` is a multiple of the fragments. */
  CHUNKWISE_HOST_DEVICE Tensor
  Planes(std::int64_t begin, std::int64_t end) const
  {
    Tensor part = *this;
    part.data += (begin - lower[2]) / fragments[2] * FragmentExtent(1) * FragmentExtent(0);
    part.lower[2] = begin;
    part.extent[2] = end - begin;
    return part;
  }
  CHUNKWISE_HOST_DEVICE float *
  Row(std::int64_t c, std::int64_t y, std::int64_t z) const
  {
    return data + ((c * room + (z - lower[2])) * extent[1] + (y - lower[1])) * extent[0];
  }
  CHUNKWISE_HOST_DEVICE float &
  At(std::int64_t c, std::int64_t x, std::int64_t y, std::int64_t z) const
  {
    return Row(c, y, z)[x - lower[0]];
  }
  CHUNKWISE_HOST_DEVICE bool
  IsInside(int a, std::int64_t i) const
  {
    return i >= 0 && i < whole[a];
  }
};

/** One layer's work on a chunk. Pointers are to memory of the backend. */
struct Step
{
  LayerKind      kind;
  int            layer; ///< its number
  Tensor         in[2];
  Tensor         out;
  std::int64_t   kernel[MaxSpatialAxes];
  std::int64_t   stride[MaxSpatialAxes];
  std::int64_t   dilation[MaxSpatialAxes];
  std::int64_t   padLower[MaxSpatialAxes];
  int            groups;
  int            firstChannel; ///< ChannelSlice: of the input that output channel 0 is
  bool           countsPadding;
  ActivationKind activation;
  float          alpha;
  float          beta;
  float          epsilon; ///< InstanceNormalization
  const float *  weights;
  const float *  packed; ///< Convolution: the same weights as PackWeights orders them
  const float *  bias;   ///< nullptr: 0
  const float *  slopes; ///< PRelu
};

CHUNKWISE_HOST_DEVICE inline double
TimesPowerOfTwo(double value, int exponent)
{
  const std::int64_t bits = static_cast<std::int64_t>(exponent + 1023) << 52;
  double             power;
  memcpy(&power, &bits, sizeof(power));
  return value * power;
}

/** e^x to a few units of the last place of a double. */
CHUNKWISE_HOST_DEVICE inline double
ExponentialOf(double x)
{
  if (!(x > -700.0))
  {
    return x != x ? x : 0.0;
  }
  if (x > 700.0)
  {
    return HUGE_VAL;
  }
  // x = k log 2 + r, |r| < 0.35, log 2 in two parts.
  const double k = rint(x * 1.4426950408889634074);
  const double r = fma(-k, 1.90821492927058770002e-10, fma(-k, 6.93147180369123816490e-01, x));
  double       sum = 1.0 / 6227020800.0;
  sum = fma(sum, r, 1.0 / 479001600.0);
  sum = fma(sum, r, 1.0 / 39916800.0);
  sum = fma(sum, r, 1.0 / 3628800.0);
  sum = fma(sum, r, 1.0 / 362880.0);
  sum = fma(sum, r, 1.0 / 40320.0);
  sum = fma(sum, r, 1.0 / 5040.0);
  sum = fma(sum, r, 1.0 / 720.0);
  sum = fma(sum, r, 1.0 / 120.0);
  sum = fma(sum, r, 1.0 / 24.0);
  sum = fma(sum, r, 1.0 / 6.0);
  sum = fma(sum, r, 0.5);
  sum = fma(sum, r, 1.0);
  sum = fma(sum, r, 1.0);
  const int half = static_cast<int>(k) / 2;
  return TimesPowerOfTwo(TimesPowerOfTwo(sum, half), static_cast<int>(k) - half);
}

/** log(x) to a few units of the last place of a double. */
CHUNKWISE_HOST_DEVICE inline double
LogarithmOf(double x)
{
  if (!(x > 0.0))
  {
    return x == 0.0 ? -HUGE_VAL : x != x ? x : HUGE_VAL - HUGE_VAL;
  }
  if (x > 1.7976931348623157e308)
  {
    return x;
  }
  int shift = 0;
  if (x < 2.2250738585072014e-308)
  {
    x *= 18014398509481984.0;
    shift = -54;
  }
  std::int64_t bits;
  memcpy(&bits, &x, sizeof(bits));
  int exponent = static_cast<int>(bits >> 52) - 1023;
  bits = (bits & 0xfffffffffffffLL) | 0x3ff0000000000000LL;
  double m;
  memcpy(&m, &bits, sizeof(m));
  if (m > 1.4142135623730951)
  {
    m *= 0.5;
    ++exponent;
  }
  // 2 artanh(s), |s| < 0.172
  const double s = (m - 1.0) / (m + 1.0);
  const double q = s * s;
  double       sum = 1.0 / 23.0;
  for (int k = 21; k >= 3; k -= 2)
  {
    sum = fma(sum, q, 1.0 / k);
  }
  const double fraction = fma(2.0 * s * q, sum, 2.0 * s);
  return fma(static_cast<double>(exponent + shift), 6.931471805599453094e-01, fraction);
}

/** log(1 + e^x) */
CHUNKWISE_HOST_DEVICE inline double
SoftplusOf(double x)
{
  const double e = ExponentialOf(x > 0.0 ? -x : x);
  const double log = e < 1e-5 ? e * fma(e, fma(e, 1.0 / 3.0, -0.5), 1.0) : LogarithmOf(1.0 + e);
  return x > 0.0 ? x + log : log;
}

/** e^x - 1 for x <= 0, with the digits of small x. */
CHUNKWISE_HOST_DEVICE inline double
ExponentialMinusOne(double x)
{
  return x > -1e-5 ? x * fma(x, fma(x, 1.0 / 6.0, 0.5), 1.0) : ExponentialOf(x) - 1.0;
}

CHUNKWISE_HOST_DEVICE inline double
TangentOf(double x)
{
  const double size = x < 0.0 ? -x : x;
  if (size < 1e-4)
  {
    return x * fma(x * x, -1.0 / 3.0, 1.0);
  }
  const double result = 1.0 - 2.0 / (ExponentialOf(2.0 * size) + 1.0);
  return x < 0.0 ? -result : result;
}

// A separate function: it would else be in every kernel as often as that stores a voxel.
#if defined(__CUDACC__)
#  define CHUNKWISE_NOT_INLINE __noinline__
#else
#  define CHUNKWISE_NOT_INLINE
#endif

CHUNKWISE_HOST_DEVICE CHUNKWISE_NOT_INLINE inline float
ActivateByKind(ActivationKind kind, float alpha, float beta, float slope, float x)
{
  const auto wide = static_cast<double>(x);
  switch (kind)
  {
    case ActivationKind::None:
      return x;
    case ActivationKind::Relu:
      return x < 0.0f ? 0.0f : x;
    case ActivationKind::LeakyRelu:
      return x < 0.0f ? alpha * x : x;
    case ActivationKind::PRelu:
      return x < 0.0f ? slope * x : x;
    case ActivationKind::Elu:
      return x < 0.0f ? static_cast<float>(static_cast<double>(alpha) * ExponentialMinusOne(wide)) : x;
    case ActivationKind::Selu:
      return static_cast<float>(static_cast<double>(beta) *
                                (wide > 0.0 ? wide : static_cast<double>(alpha) * ExponentialMinusOne(wide)));
    case ActivationKind::Clip:
    {
      const float above = x < alpha ? alpha : x;
      return above > beta ? beta : above;
    }
    case ActivationKind::Sigmoid:
      return static_cast<float>(1.0 / (1.0 + ExponentialOf(-wide)));
    case ActivationKind::HardSigmoid:
    {
      const float value = static_cast<float>(fma(static_cast<double>(alpha), wide, static_cast<double>(beta)));
      return value < 0.0f ? 0.0f : value > 1.0f ? 1.0f : value;
    }
    case ActivationKind::HardSwish:
    {
      const double part = wide / 6.0 + 0.5;
      return static_cast<float>(wide * (part < 0.0 ? 0.0 : part > 1.0 ? 1.0 : part));
    }
    case ActivationKind::Swish:
      return static_cast<float>(wide / (1.0 + ExponentialOf(-wide)));
    case ActivationKind::Tanh:
      return static_cast<float>(TangentOf(wide));
    case ActivationKind::Softplus:
      return static_cast<float>(SoftplusOf(wide));
    case ActivationKind::Exp:
      return static_cast<float>(ExponentialOf(wide));
    case ActivationKind::Log:
      return static_cast<float>(LogarithmOf(wide));
    case ActivationKind::Sqrt:
      return static_cast<float>(sqrt(wide));
    case ActivationKind::Absolute:
      return x < 0.0f ? -x : x + 0.0f;
    case ActivationKind::Negative:
      return -x;
  }
  return x;
}

/** A layer's value after its activation. */
CHUNKWISE_HOST_DEVICE inline float
Activate(const Step & step, std::int64_t channel, float x)
{
  return step.activation == ActivationKind::None ? x
         : step.activation == ActivationKind::Relu
           ? (x < 0.0f ? 0.0f : x)
           : ActivateByKind(step.activation, step.alpha, step.beta, step.slopes ? step.slopes[channel] : 0.0f, x);
}

CHUNKWISE_HOST_DEVICE inline float
TransposedConvolutionAt(const Step & s, std::int64_t c, std::int64_t x, std::int64_t y, std::int64_t z)
{
  const Tensor &     in = s.in[0];
  const std::int64_t inputs = in.channels / s.groups;
  const std::int64_t outputs = s.out.channels / s.groups;
  const std::int64_t first = c / outputs * inputs;
  const std::int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const std::int64_t at[MaxSpatialAxes] = { x, y, z };
  float              sum = s.bias ? s.bias[c] : 0.0f;
  for (std::int64_t t = 0; t < taps; ++t)
  {
    const std::int64_t tap[MaxSpatialAxes] = { t % s.kernel[0],
                                               t / s.kernel[0] % s.kernel[1],
                                               t / s.kernel[0] / s.kernel[1] };
    std::int64_t       index[MaxSpatialAxes];
    bool               meets = true;
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      const std::int64_t position = at[a] + s.padLower[a] - tap[a] * s.dilation[a];
      index[a] = position / s.stride[a];
      meets = meets && position >= 0 && position % s.stride[a] == 0 && in.IsInside(a, index[a]);
    }
    if (meets)
    {
      const float * const from = &in.At(first, index[0], index[1], index[2]);
      const float * const w = s.weights + (first * outputs + c % outputs) * taps + t;
      const std::int64_t  step = in.ChannelLength();
      for (std::int64_t i = 0; i < inputs; ++i)
      {
        sum = fmaf(w[i * outputs * taps], from[i * step], sum);
      }
    }
  }
  return sum;
}

template <bool VMaximum>
CHUNKWISE_HOST_DEVICE inline float
PoolingAt(const Step & s, std::int64_t c, std::int64_t x, std::int64_t y, std::int64_t z)
{
  const Tensor & in = s.in[0];
  float          result = VMaximum ? -HUGE_VALF : 0.0f;
  std::int64_t   count = 0;
  for (std::int64_t kz = 0; kz < s.kernel[2]; ++kz)
  {
    const std::int64_t iz = z * s.stride[2] - s.padLower[2] + kz * s.dilation[2];
    for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky)
    {
      const std::int64_t iy = y * s.stride[1] - s.padLower[1] + ky * s.dilation[1];
      for (std::int64_t kx = 0; kx < s.kernel[0]; ++kx)
      {
        const std::int64_t ix = x * s.stride[0] - s.padLower[0] + kx * s.dilation[0];
        if (in.IsInside(0, ix) && in.IsInside(1, iy) && in.IsInside(2, iz))
        {
          const float value = in.At(c, ix, iy, iz);
          // NaN stays.
          result = !VMaximum ? result + value : value > result || value != value ? value : result;
          ++count;
        }
      }
    }
  }
  if (VMaximum)
  {
    return result;
  }
  return result / static_cast<float>(s.countsPadding ? s.kernel[0] * s.kernel[1] * s.kernel[2] : count);
}

CHUNKWISE_HOST_DEVICE inline float
LinearAt(const Step & s, std::int64_t c, std::int64_t x, std::int64_t y, std::int64_t z)
{
  const Tensor &     in = s.in[0];
  const std::int64_t at[MaxSpatialAxes] = { x, y, z };
  std::int64_t       index[MaxSpatialAxes][2];
  float              part[MaxSpatialAxes];
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    // Twice the factor times the position between the centres of the input's voxels: whole numbers.
    const std::int64_t twice = 2 * s.stride[a];
    const std::int64_t position = 2 * at[a] + 1 - s.stride[a];
    const std::int64_t below = position < 0 ? -1 : position / twice;
    part[a] = static_cast<float>(static_cast<double>(position - below * twice) / static_cast<double>(twice));
    for (int k = 0; k < 2; ++k)
    {
      const std::int64_t i = below + k;
      index[a][k] = i < 0 ? 0 : i >= in.whole[a] ? in.whole[a] - 1 : i;
    }
  }
  float planes[2];
  for (int kz = 0; kz < 2; ++kz)
  {
    float lines[2];
    for (int ky = 0; ky < 2; ++ky)
    {
      const float * const row = in.Row(c, index[1][ky], index[2][kz]);
      const float         first = row[index[0][0] - in.lower[0]];
      lines[ky] = fmaf(part[0], row[index[0][1] - in.lower[0]] - first, first);
    }
    planes[kz] = fmaf(part[1], lines[1] - lines[0], lines[0]);
  }
  return fmaf(part[2], planes[1] - planes[0], planes[0]);
}

/** A voxel of a layer before its activation; not of Convolution, for which backends have separate kernels, nor of
 * Softmax, which makes all channels at once. */
template <LayerKind VKind>
CHUNKWISE_HOST_DEVICE inline float
ValueAt(const Step & s, std::int64_t c, std::int64_t x, std::int64_t y, std::int64_t z)
{
  const Tensor & in = s.in[0];
  switch (VKind)
  {
    case LayerKind::TransposedConvolution:
      return TransposedConvolutionAt(s, c, x, y, z);
    case LayerKind::MaximumPooling:
      return PoolingAt<true>(s, c, x, y, z);
    case LayerKind::AveragePooling:
      return PoolingAt<false>(s, c, x, y, z);
    case LayerKind::NearestUpsampling:
      return in.At(c, x / s.stride[0], y / s.stride[1], z / s.stride[2]);
    case LayerKind::LinearUpsampling:
      return LinearAt(s, c, x, y, z);
    case LayerKind::Scaling:
      return fmaf(s.weights[c], in.At(c, x, y, z), s.bias ? s.bias[c] : 0.0f);
    case LayerKind::Sum:
      return in.At(c, x, y, z) + s.in[1].At(c, x, y, z);
    case LayerKind::Difference:
      return in.At(c, x, y, z) - s.in[1].At(c, x, y, z);
    case LayerKind::Product:
      return in.At(c, x, y, z) * s.in[1].At(c, x, y, z);
    case LayerKind::Quotient:
      return in.At(c, x, y, z) / s.in[1].At(c, x, y, z);
    case LayerKind::Crop:
      return in.At(c, x + s.padLower[0], y + s.padLower[1], z + s.padLower[2]);
    default:
      // Pointwise, ChannelSlice, the parts of a Concatenation
      return in.At(s.firstChannel + c, x, y, z);
  }
}

/** Calls f(std::integral_constant<LayerKind, kind>) for what ValueAt is compiled for: in loops over voxels the kind is
 * known. */
template <typename TFunctor>
void
DispatchVoxelKind(LayerKind kind, TFunctor && f)
{
  switch (kind)
  {
#define CHUNKWISE_CASE(name)                                                                                           \
  case LayerKind::name:                                                                                                \
    return f(std::integral_constant<LayerKind, LayerKind::name>());
    CHUNKWISE_CASE(TransposedConvolution)
    CHUNKWISE_CASE(MaximumPooling)
    CHUNKWISE_CASE(AveragePooling)
    CHUNKWISE_CASE(NearestUpsampling)
    CHUNKWISE_CASE(LinearUpsampling)
    CHUNKWISE_CASE(Scaling)
    CHUNKWISE_CASE(Sum)
    CHUNKWISE_CASE(Difference)
    CHUNKWISE_CASE(Product)
    CHUNKWISE_CASE(Quotient)
    CHUNKWISE_CASE(Crop)
#undef CHUNKWISE_CASE
    default:
      return f(std::integral_constant<LayerKind, LayerKind::Pointwise>());
  }
}

/** Softmax or LogSoftmax of a voxel, all channels, with the activation. */
CHUNKWISE_HOST_DEVICE inline void
SoftmaxAt(const Step & s, std::int64_t x, std::int64_t y, std::int64_t z)
{
  const std::int64_t  inStep = s.in[0].ChannelLength();
  const std::int64_t  outStep = s.out.ChannelLength();
  const float * const in = &s.in[0].At(0, x, y, z);
  float * const       out = &s.out.At(0, x, y, z);
  float               largest = in[0];
  for (int c = 1; c < s.out.channels; ++c)
  {
    largest = in[c * inStep] > largest ? in[c * inStep] : largest;
  }
  const auto top = static_cast<double>(largest);
  double     sum = 0.0;
  for (int c = 0; c < s.out.channels; ++c)
  {
    sum += ExponentialOf(static_cast<double>(in[c * inStep]) - top);
  }
  const bool   takesLog = s.kind == LayerKind::LogSoftmax;
  const double logSum = takesLog ? LogarithmOf(sum) : 0.0;
  for (int c = 0; c < s.out.channels; ++c)
  {
    const double above = static_cast<double>(in[c * inStep]) - top;
    out[c * outStep] = Activate(s, c, static_cast<float>(takesLog ? above - logSum : ExponentialOf(above) / sum));
  }
}

/** Statistics of whole channels are sums of so many parts: number i belongs to part i modulo this, numbers of a part
 * are added in ascending order, and then halves of the parts, so that every backend has the same bits. */
constexpr int StatisticParts = 256;

/** A voxel of InstanceNormalization. */
CHUNKWISE_HOST_DEVICE inline float
NormalizedAt(const Step & s, std::int64_t c, float value, double mean, double factor)
{
  const auto normal = static_cast<float>((static_cast<double>(value) - mean) * factor);
  return Activate(s, c, fmaf(s.weights[c], normal, s.bias ? s.bias[c] : 0.0f));
}

/** The least weight of a voxel in a window. */
constexpr float LeastWindowWeight = 1e-3f;

/** The weight of a voxel in a window, from those along its axes. */
CHUNKWISE_HOST_DEVICE inline float
WindowWeight(float x, float y, float z)
{
  const float weight = z * y * x;
  return weight > LeastWindowWeight ? weight : LeastWindowWeight;
}

/** The number of the largest channel; what is not a number is not larger. */
CHUNKWISE_HOST_DEVICE inline int
LargestChannelAt(const Tensor & tensor, std::int64_t x, std::int64_t y, std::int64_t z)
{
  const std::int64_t  step = tensor.ChannelLength();
  const float * const in = &tensor.At(0, x, y, z);
  int                 best = 0;
  for (int c = 1; c < tensor.channels; ++c)
  {
    best =
      in[c * step] > in[best * step] || (in[best * step] != in[best * step] && in[c * step] == in[c * step]) ? c : best;
  }
  return best;
}

} // namespace network
} // namespace chunkwise

#endif
