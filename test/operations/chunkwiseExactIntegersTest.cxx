/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Sums, means, ranges and differences of integers as any other integers, against integers of 128 bits.
#include "chunkwiseConvertVoxels.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"

using namespace chunkwise;

namespace
{

__extension__ using Wide = __int128;

class ExactIntegers : public KernelTest
{};

/** Around the ends of what a double, and integers of each sign, hold. */
template <typename T>
T
EdgeValue(std::mt19937 & random)
{
  const std::uint64_t edges[] = {
    0, std::uint64_t{ 1 } << 31, std::uint64_t{ 1 } << 32, std::uint64_t{ 1 } << 53, std::uint64_t{ 1 } << 63,
  };
  const std::uint64_t near = edges[random() % 5] + random() % 5 - 2;
  return static_cast<T>(random() % 4 == 0 ? (std::uint64_t{ random() } << 32 | random())
                        : random() % 2    ? near
                                          : ~near + 1);
}

struct Case
{
  std::string  filter;
  std::string  statistic{};
  BoundaryMode mode{ BoundaryMode::Renormalized };
  std::string  further{};
  bool         isMean{ false };
};

template <typename TIn>
class ExactTrial
{
public:
  Box                       box{};
  Coordinates               radius{};
  std::vector<TIn>          voxels;
  std::vector<TIn>          others;
  std::vector<std::uint8_t> mask;
  TIn                       constant{};

  explicit ExactTrial(std::mt19937 & random)
  {
    Coordinates extent = Coordinates::Filled(1);
    for (int a = 0; a < 3; ++a)
    {
      extent[a] = 1 + static_cast<std::int64_t>(random() % 6);
      radius[a] = static_cast<std::int64_t>(random() % 3);
    }
    box = Box::FromExtent(extent);
    for (std::int64_t i = 0; i < box.NumberOfVoxels(); ++i)
    {
      voxels.push_back(EdgeValue<TIn>(random));
      others.push_back(EdgeValue<TIn>(random));
      mask.push_back(random() % 3 != 0 ? 1 : 0);
    }
    constant = EdgeValue<TIn>(random);
  }

  Wide
  Define(const Case & what, const Coordinates & index) const
  {
    const auto number = [&](const Coordinates & at) {
      return static_cast<std::size_t>(at[0] + box.upper[0] * (at[1] + box.upper[1] * at[2]));
    };
    if (what.filter == "difference")
    {
      return static_cast<Wide>(voxels[number(index)]) - static_cast<Wide>(others[number(index)]);
    }
    Wide         sum = 0;
    Wide         least = 0;
    Wide         most = 0;
    std::int64_t count = 0;
    Box          window{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      window.lower[a] = index[a] - radius[a];
      window.upper[a] = index[a] + radius[a] + 1;
    }
    ForEachIndex(window, [&](const Coordinates & tap) {
      Coordinates at = tap;
      bool        there = true;
      for (int a = 0; a < MaxDimension; ++a)
      {
        there = oracle::Look(at[a], box.upper[a], what.mode) && there;
      }
      if (there ? !what.further.empty() && mask[number(at)] == 0 : what.mode == BoundaryMode::Renormalized)
      {
        return;
      }
      const auto value = static_cast<Wide>(there ? voxels[number(at)] : constant);
      least = count == 0 ? value : std::min(least, value);
      most = count == 0 ? value : std::max(most, value);
      sum += value;
      ++count;
    });
    return what.filter == "range" ? most - least : what.isMean ? oracle::RoundedQuotient(sum, count) : sum;
  }

  template <typename TOut>
  void
  Compare(const Case & what, Manager & manager, BackendChoice backend)
  {
    FilterParameters parameters;
    if (what.filter != "difference")
    {
      parameters.Set("Radius", std::vector<std::int64_t>{ radius[0], radius[1], radius[2] });
    }
    if (!what.statistic.empty())
    {
      parameters.Set("Statistic", what.statistic);
    }
    if (what.mode != BoundaryMode::Renormalized)
    {
      parameters.Set("BoundaryCondition", BoundaryModeName(what.mode));
    }
    if (what.mode == BoundaryMode::Constant)
    {
      parameters.Set("Constant", PixelValue::FromText(std::to_string(constant)));
    }
    FilterImage image;
    image.dimension = 3;
    image.extent = box.Extents();
    image.inputKind = PixelTypeOf<TIn>();
    std::vector<BufferView> inputs{ DenseView(voxels.data(), image.inputKind, box) };
    if (what.filter == "difference")
    {
      image.additionalInputs = { "Input2" };
      inputs.push_back(DenseView(others.data(), image.inputKind, box));
    }
    else if (!what.further.empty())
    {
      image.additionalInputs = { what.further };
      inputs.push_back(DenseView(mask.data(), PixelType::UInt8, box));
    }
    constexpr PixelType wanted = PixelTypeOf<TOut>();
    const auto &        filter = GetFilter(what.filter);
    image.outputKind = GetConvertedKind(filter, parameters, image.additionalInputs, image.inputKind, wanted);
    std::vector<std::uint64_t> computed(voxels.size());
    ExecutionRequest           request;
    request.operation = MakeFilterOperation(what.filter, parameters, image);
    request.image = request.region = box;
    request.inputs = inputs;
    request.output = DenseView(computed.data(), image.outputKind, box);
    request.backend = backend;
    request.stagingThreads = 1;
    manager.Execute(request);
    std::vector<TOut> results(voxels.size());
    ConvertVoxels(computed.data(), image.outputKind, results.data(), wanted, box.NumberOfVoxels());
    std::size_t i = 0;
    ForEachIndex(box, [&](const Coordinates & index) {
      const Wide exact = this->Define(what, index);
      const auto lowest = static_cast<Wide>(std::numeric_limits<TOut>::lowest());
      const auto largest = static_cast<Wide>(std::numeric_limits<TOut>::max());
      ASSERT_EQ(results[i++], static_cast<TOut>(std::max(lowest, std::min(largest, exact))))
        << what.filter << " " << what.statistic << " " << what.further << " " << BoundaryModeName(what.mode) << " of "
        << PixelTypeName(image.inputKind) << " to " << PixelTypeName(wanted) << " through "
        << PixelTypeName(image.outputKind) << " radius " << ToString(radius) << " at " << ToString(index);
    });
  }
};

template <typename TIn>
void
CompareAll(std::mt19937 & random, int trials, Manager & manager, BackendChoice backend)
{
  for (int trial = 0; trial < trials; ++trial)
  {
    ExactTrial<TIn> t(random);
    const auto      mode = AllModes[random() % 6];
    const Case      cases[] = { { "sum", "", mode, "", false },
                                { "sum", "", mode, "MaskImage", false },
                                { "mean", "", mode, "", true },
                                { "box", "sum", BoundaryMode::Renormalized, "", false },
                                { "box", "sum", BoundaryMode::Renormalized, "MaskImage", false },
                                { "box", "mean", BoundaryMode::Renormalized, "", true },
                                { "range", "", mode, "", false },
                                { "range", "", mode, "MaskImage", false },
                                { "difference", "", BoundaryMode::Renormalized, "", false } };
    for (const Case & what : cases)
    {
      for (int kind = 0; kind < 8 && !testing::Test::HasFatalFailure(); ++kind)
      {
        DispatchPixelType(static_cast<PixelType>(kind), [&](auto out) {
          if constexpr (std::is_integral<decltype(out)>::value)
          {
            t.template Compare<decltype(out)>(what, manager, backend);
          }
        });
      }
    }
  }
}

TEST_P(ExactIntegers, OfAnyTypeAreExactAsAnyOther)
{
  std::mt19937      random(39);
  const std::string before = GetCpuLevel().name;
  for (const char * const level : { "baseline", "avx2", "avx512" })
  {
    if (GetParam() == Place::Cpu && !SetCpuLevel(level))
    {
      continue;
    }
    for (int kind = 0; kind < 8 && !HasFatalFailure(); ++kind)
    {
      DispatchPixelType(static_cast<PixelType>(kind), [&](auto pixel) {
        if constexpr (std::is_integral<decltype(pixel)>::value)
        {
          CompareAll<decltype(pixel)>(random, 6, GetManager(), GetBackend());
        }
      });
    }
    if (GetParam() != Place::Cpu)
    {
      break;
    }
  }
  ASSERT_TRUE(SetCpuLevel(before.c_str()));
}

INSTANTIATE_TEST_SUITE_P(Cpu, ExactIntegers, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, ExactIntegers, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, ExactIntegers, testing::Values(Place::Cuda));

} // namespace
