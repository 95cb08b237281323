/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The CPU's transformed convolutions and poolings, with tensors of every layout, against their definition in double.
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuNetworkTiles.h"
#include "chunkwiseCpuNetworkTransform.h"
#include "chunkwiseNetworkTileGrid.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>

using namespace chunkwise;

namespace
{

using network::Step;
using network::Tensor;

/** Memory of an alignment that kernels ask for, with a value that spoils what it meets where nothing was written. */
class Memory
{
public:
  explicit Memory(std::size_t bytes)
    : m_Data(std::aligned_alloc(256, (bytes + 255) / 256 * 256), std::free)
  {
    std::fill(Get(), Get() + bytes / sizeof(float), std::nanf(""));
  }
  float *
  Get() const
  {
    return static_cast<float *>(m_Data.get());
  }

private:
  std::shared_ptr<void> m_Data;
};

struct LevelGuard
{
  std::string name{ GetCpuLevel().name };
  ~LevelGuard() { SetCpuLevel(name.c_str()); }
};

/** The place of voxel (x, y, z) of a channel, by the definition of fragments. */
float &
At(const Tensor & tensor, std::int64_t c, const std::int64_t (&index)[3])
{
  std::int64_t place = 0;
  for (int a = 2; a >= 0; --a)
  {
    place = place * tensor.fragments[a] + (index[a] - tensor.lower[a]) % tensor.fragments[a];
  }
  for (int a = 2; a >= 0; --a)
  {
    const std::int64_t room = a == 2 ? tensor.room / tensor.fragments[2] : tensor.FragmentExtent(a);
    place = place * room + (index[a] - tensor.lower[a]) / tensor.fragments[a];
  }
  return tensor.data[c * tensor.ChannelLength() + place];
}

template <typename TBody>
void
ForEachVoxel(const Tensor & tensor, TBody && body)
{
  for (std::int64_t z = tensor.lower[2]; z < tensor.lower[2] + tensor.extent[2]; ++z)
  {
    for (std::int64_t y = tensor.lower[1]; y < tensor.lower[1] + tensor.extent[1]; ++y)
    {
      for (std::int64_t x = tensor.lower[0]; x < tensor.lower[0] + tensor.extent[0]; ++x)
      {
        const std::int64_t index[3] = { x, y, z };
        body(index);
      }
    }
  }
}

/** A layer on a part of an image, with tensors of any layout. */
class Layer
{
public:
  explicit Layer(std::mt19937 & random, int largest, int channels)
    : m_Random(random)
  {
    step.groups = 1;
    step.in[0].channels = 1 + Below(channels);
    step.out.channels = 1 + Below(channels);
    for (int a = 0; a < 3; ++a)
    {
      step.kernel[a] = 1 + Below(5);
      step.stride[a] = 1;
      step.dilation[a] = 1 + Below(3);
      step.padLower[a] = Below(3);
      Tensor &           in = step.in[0];
      Tensor &           out = step.out;
      const std::int64_t reach = step.dilation[a] * (step.kernel[a] - 1);
      in.whole[a] = reach + 1 + Below(largest);
      out.whole[a] = in.whole[a] + step.padLower[a] - reach;
      out.lower[a] = Below(static_cast<int>(out.whole[a]));
      out.extent[a] = 1 + Below(static_cast<int>(out.whole[a] - out.lower[a]));
      in.lower[a] = std::max<std::int64_t>(0, out.lower[a] - step.padLower[a]);
      const std::int64_t end = out.lower[a] + out.extent[a] - 1 - step.padLower[a] + reach + 1;
      in.extent[a] = std::min(in.whole[a], std::max(end, in.lower[a] + 1)) - in.lower[a];
    }
  }
  int
  Below(int n)
  {
    return static_cast<int>(m_Random() % static_cast<unsigned int>(n));
  }
  float
  Value()
  {
    return static_cast<float>(Below(2001) - 1000) * 0.001f;
  }
  void
  Fill(bool inFragments, bool outFragments)
  {
    for (int a = 0; a < 3; ++a)
    {
      step.in[0].fragments[a] = inFragments ? step.dilation[a] : 1;
      step.out.fragments[a] = outFragments ? step.dilation[a] : 1;
    }
    for (Tensor * const tensor : { &step.in[0], &step.out })
    {
      tensor->room = (tensor->FragmentExtent(2) + Below(3)) * tensor->fragments[2];
      m_Memory.emplace_back(static_cast<std::size_t>(tensor->channels * tensor->ChannelLength()) * sizeof(float));
      tensor->data = m_Memory.back().Get();
    }
    for (int c = 0; c < step.in[0].channels; ++c)
    {
      ForEachVoxel(step.in[0], [&](const std::int64_t(&index)[3]) { At(step.in[0], c, index) = this->Value(); });
    }
  }
  float
  InputAt(std::int64_t c, const std::int64_t (&at)[3], const std::int64_t (&tap)[3], bool & isInside) const
  {
    std::int64_t index[3];
    isInside = true;
    for (int a = 0; a < 3; ++a)
    {
      index[a] = at[a] * step.stride[a] - step.padLower[a] + tap[a] * step.dilation[a];
      isInside = isInside && index[a] >= 0 && index[a] < step.in[0].whole[a];
    }
    return isInside ? At(step.in[0], c, index) : 0.0f;
  }

  Step step{};

private:
  std::mt19937 &      m_Random;
  std::vector<Memory> m_Memory;
};

class Workers
{
public:
  Workers()
    : m_Executor(MakeThreadExecutor(2))
    , m_Memory(2 * GetTileWorkerBytes(32))
    , workers{ m_Executor.get(), reinterpret_cast<char *>(m_Memory.Get()), GetTileWorkerBytes(32), [] {
                return false;
              } }
  {}

private:
  std::unique_ptr<Executor> m_Executor;
  Memory                    m_Memory;

public:
  NetworkWorkers workers;
};

TEST(CpuNetworkTiles, ConvolutionsKeepToTheirBound)
{
  const LevelGuard guard;
  std::mt19937     random(2001);
  Workers          workers;
  int              trials = 0;
  for (const char * const level : { "baseline", "avx2", "avx512" })
  {
    if (!SetCpuLevel(level))
    {
      continue;
    }
    for (const int tile : { 16, 24, 32 })
    {
      for (int trial = 0; trial < 12; ++trial)
      {
        Layer  layer(random, trial % 3 == 0 ? 30 : 9, trial % 2 ? 7 : 2);
        Step & step = layer.step;
        layer.Fill(trial % 4 == 1, trial % 4 == 2);
        const std::int64_t inputs = step.in[0].channels;
        const std::int64_t outputs = step.out.channels;
        const std::int64_t taps = step.kernel[0] * step.kernel[1] * step.kernel[2];
        const std::int64_t blocks = (outputs + ChannelsPerBlock - 1) / ChannelsPerBlock;
        std::vector<float> packed(static_cast<std::size_t>(blocks * inputs * taps * ChannelsPerBlock));
        std::generate(packed.begin(), packed.end(), [&] { return layer.Value(); });
        std::vector<float> bias(static_cast<std::size_t>(outputs));
        std::generate(bias.begin(), bias.end(), [&] { return layer.Value(); });
        step.packed = packed.data();
        step.bias = trial % 3 ? bias.data() : nullptr;
        step.activation = trial % 3 == 0   ? ActivationKind::None
                          : trial % 3 == 1 ? ActivationKind::Relu
                                           : ActivationKind::LeakyRelu;
        step.alpha = 0.25f;
        TileChoice choice;
        choice.tile = tile;
        choice.tilesAtOnce = 1 + layer.Below(9);
        const Memory kernels(GetKernelSpectraBytes(step.in[0].channels, step.out.channels, tile));
        const Memory spectra(static_cast<std::size_t>(choice.tilesAtOnce) *
                               GetTileBytes(step.in[0].channels, step.out.channels, tile, GetHostNetworkRates()) +
                             GetTileSlackBytes(tile));
        MakeKernelSpectra(step, tile, kernels.Get(), workers.workers);
        ConvolveTiles(step, choice, kernels.Get(), spectra.Get(), workers.workers);
        std::vector<double> expected;
        double              largest = 0;
        for (std::int64_t o = 0; o < outputs; ++o)
        {
          ForEachVoxel(step.out, [&](const std::int64_t(&at)[3]) {
            double sum = step.bias ? step.bias[o] : 0.0;
            for (std::int64_t i = 0; i < inputs; ++i)
            {
              for (std::int64_t t = 0; t < taps; ++t)
              {
                const std::int64_t tap[3] = { t % step.kernel[0],
                                              t / step.kernel[0] % step.kernel[1],
                                              t / step.kernel[0] / step.kernel[1] };
                bool               isInside;
                const double       value = layer.InputAt(i, at, tap, isInside);
                sum += value *
                       static_cast<double>(packed[static_cast<std::size_t>(
                         ((o / ChannelsPerBlock * inputs + i) * taps + t) * ChannelsPerBlock + o % ChannelsPerBlock)]);
              }
            }
            sum = sum < 0 && step.activation != ActivationKind::None
                    ? (step.activation == ActivationKind::Relu ? 0.0 : 0.25 * sum)
                    : sum;
            largest = std::max(largest, std::fabs(sum));
            expected.push_back(sum);
          });
        }
        std::size_t n = 0;
        for (std::int64_t o = 0; o < outputs; ++o)
        {
          ForEachVoxel(step.out, [&](const std::int64_t(&at)[3]) {
            ASSERT_NEAR(At(step.out, o, at), expected[n], 4e-6 * std::max(largest, 1.0))
              << level << ' ' << tile << ' ' << trial;
            ++n;
          });
        }
        ++trials;
      }
    }
  }
  EXPECT_GE(trials, 36);
}

TEST(CpuNetworkTiles, PoolingsHaveTheirBits)
{
  std::mt19937 random(2002);
  Workers      workers;
  for (int trial = 0; trial < 200; ++trial)
  {
    Layer  layer(random, 11, 3);
    Step & step = layer.step;
    step.out.channels = step.in[0].channels;
    step.kind = trial % 2 ? LayerKind::MaximumPooling : LayerKind::AveragePooling;
    step.countsPadding = trial % 4 == 2;
    step.activation = trial % 5 == 0 ? ActivationKind::Relu : ActivationKind::None;
    layer.Fill(trial % 3 == 1, trial % 5 < 2);
    if (trial % 7 == 0)
    {
      step.in[0].data[0] = std::nanf("");
    }
    PoolFragments(step, workers.workers);
    for (int c = 0; c < step.out.channels; ++c)
    {
      ForEachVoxel(step.out, [&](const std::int64_t(&at)[3]) {
        float result = step.kind == LayerKind::MaximumPooling ? -HUGE_VALF : 0.0f;
        int   count = 0;
        for (std::int64_t z = 0; z < step.kernel[2]; ++z)
        {
          for (std::int64_t y = 0; y < step.kernel[1]; ++y)
          {
            for (std::int64_t x = 0; x < step.kernel[0]; ++x)
            {
              const std::int64_t tap[3] = { x, y, z };
              bool               isInside;
              const float        value = layer.InputAt(c, at, tap, isInside);
              if (!isInside)
              {
                continue;
              }
              ++count;
              result = step.kind != LayerKind::MaximumPooling ? result + value
                       : value > result || value != value     ? value
                                                              : result;
            }
          }
        }
        if (step.kind == LayerKind::AveragePooling)
        {
          result /= static_cast<float>(step.countsPadding ? step.kernel[0] * step.kernel[1] * step.kernel[2] : count);
        }
        result = step.activation == ActivationKind::Relu && result < 0 ? 0.0f : result;
        const float found = At(step.out, c, at);
        ASSERT_TRUE(found == result || (found != found && result != result)) << trial << ' ' << found << ' ' << result;
      });
    }
  }
}

} // namespace
