/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDeconvolutionSteps.h"
#include "chunkwiseDevice.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseCpuDeconvolution.h"
#include "chunkwiseCpuDeconvolutionRows.h"
#include "chunkwiseCpuLevels.h"

#include <algorithm>
#include <mutex>

namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(DeconvolutionRowLevel, MakeDeconvolutionRowLevel)

const DeconvolutionRowLevel &
GetDeconvolutionRowLevel()
{
  static FunctionsAtLevels<DeconvolutionRowLevel> levels{ CHUNKWISE_AT_LEVELS(MakeDeconvolutionRowLevel) };
  return levels.Get();
}

namespace
{

/** Calls body(task's rows) in parallel; a task calls row(at, n) for each of its rows along x. */
template <typename TBody>
void
ForTasksOfRows(const KernelCall & call, const Box & box, TBody && body)
{
  const std::int64_t n = box.Extent(0);
  const std::int64_t rows = n > 0 ? box.NumberOfVoxels() / n : 0;
  const std::int64_t perTask = std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(n, 1));
  call.executor->ParallelFor((rows + perTask - 1) / perTask, [&](std::int64_t task, unsigned int) {
    if (call.control && call.control->ShouldStop())
    {
      return;
    }
    const std::int64_t begin = task * perTask;
    const std::int64_t end = std::min(rows, begin + perTask);
    body([&](auto && row) {
      for (std::int64_t r = begin; r < end; ++r)
      {
        Coordinates  at = box.lower;
        std::int64_t rest = r;
        for (int a = 1; a < MaxDimension; ++a)
        {
          at[a] += rest % box.Extent(a);
          rest /= box.Extent(a);
        }
        row(at, n);
      }
    });
    if (call.control)
    {
      call.control->AddFinishedVoxels((end - begin) * n);
    }
  });
}

/** Voxels of an input along x; one where there is no such input. */
template <typename T>
struct InputRow
{
  const T *    data{ nullptr };
  std::int64_t stride{ 0 };

  InputRow(const KernelCall & call, int input, int inputs, const Coordinates & at)
  {
    if (input < inputs)
    {
      data = static_cast<const T *>(call.inputs[input].data) + call.inputs[input].Offset(at);
      stride = call.inputs[input].stride[0];
    }
  }
  T
  At(std::int64_t i) const
  {
    return data ? data[i * stride] : T(1);
  }
};

template <typename T>
void
RunStep(const KernelCall & call)
{
  const auto &                    operation = static_cast<const DeconvolutionStepOperation &>(*call.operation);
  const DeconvolutionStep         step = operation.step;
  const DeconvolutionParameters & parameters = operation.parameters;
  auto * const                    total = static_cast<DeconvolutionSums *>(call.sideOut);
  const int                       count = total ? DeconvolutionSums::Count(step) : 0;
  std::mutex                      mutex;
  ForTasksOfRows(call, call.output.box, [&](auto && forRows) {
    DeconvolutionSums own{};
    ExactWindow<53>   windows[DeconvolutionSums::Most];
    RowSum            sums[DeconvolutionSums::Most];
    const auto        add = [&own](int s) {
      return [&own, s](int digit, std::int64_t part) { own.digits[s][digit] += part; };
    };
    forRows([&](const Coordinates & at, std::int64_t n) {
      const InputRow<T>  first(call, 0, operation.inputs, at);
      const InputRow<T>  second(call, 1, operation.inputs, at);
      const InputRow<T>  third(call, 2, operation.inputs, at);
      T * const          out = static_cast<T *>(call.output.data) + call.output.Offset(at);
      const std::int64_t stride = call.output.stride[0];
      for (std::int64_t i = 0; i < n; ++i)
      {
        const T a = first.At(i);
        const T b = second.At(i);
        const T c = third.At(i);
        const T result = DeconvolutionVoxel(step, parameters, a, b, c);
        out[i * stride] = result;
        if (count > 0)
        {
          const DeconvolutionTerms terms = DeconvolutionTermsOf(step, parameters, a, b, c, result);
          for (int s = 0; s < count; ++s)
          {
            sums[s].Add(at[0] + i, terms.value[s]);
          }
        }
      }
      for (int s = 0; s < count; ++s)
      {
        AddExactly(windows[s], own.special[s], sums[s].Take(), add(s));
      }
    });
    for (int s = 0; s < count; ++s)
    {
      windows[s].End([&](int first, Int128 value) { AddParts(first, value, add(s)); });
      Carry(own.digits[s], StatisticsSummary::SumDigits);
    }
    if (count > 0)
    {
      const std::lock_guard<std::mutex> lock(mutex);
      total->Merge(own);
    }
  });
}

void
Run(const KernelCall & call)
{
  const auto run = call.inputs[0].kind == PixelType::Float64 ? RunStep<double> : RunStep<float>;
  run(call);
}

} // namespace

void
RegisterHostDeconvolution(KernelRegistry & registry)
{
  KernelSet step;
  step.compute.run = Run;
  registry.Register("deconvolution.step", step);
}

} // namespace chunkwise
