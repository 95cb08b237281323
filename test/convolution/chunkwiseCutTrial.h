/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCutTrial_h
#define chunkwiseCutTrial_h

#include "chunkwiseExecutor.h"
#include "chunkwiseKernelTrial.h"

// Convolutions through transforms however they are cut, beside the whole image.
namespace chunkwise
{

/** Regions, budgets and numbers of threads of random images with several tiles along their axes, beside the whole
 * image: that of the CPU, or of the devices of CUDA, which have other tiles. */
template <typename T>
void
CompareCuts(std::mt19937 & random, Manager & manager, BackendChoice backend, std::shared_ptr<const Operation> operation,
            const Coordinates & image)
{
  Manager     host({});
  const bool  isCuda = &manager == &Manager::GetGlobal();
  Trial<T, T> t(random, operation, image);
  t.request.backend = isCuda ? backend : BackendChoice::CPU;
  t.Prepare(t.request.image);
  (isCuda ? manager : host).Execute(t.request);
  const std::vector<T> whole = t.output;
  const BufferView     view = DenseView(const_cast<T *>(whole.data()), PixelTypeOf<T>(), t.request.output.box);
  for (int cut = 0; cut < 4; ++cut)
  {
    const auto executor = MakeThreadExecutor(1 + random() % 3);
    t.request.executor = executor.get();
    t.request.backend = backend;
    t.Prepare(cut == 0 ? t.request.image : RandomRegion(random, image));
    // The least memory, so that there are as many chunks as can be.
    t.request.budgets.host = t.request.budgets.device = 1;
    try
    {
      manager.Execute(t.request);
    }
    catch (const BudgetError & error)
    {
      t.request.budgets.host = t.request.budgets.device = error.needed + random() % error.needed;
      manager.Execute(t.request);
    }
    ASSERT_TRUE(t.IsContained());
    std::int64_t different = 0;
    Coordinates  last{};
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const T a = t.Result(index);
      const T b = At<T>(view, index);
      if (std::memcmp(&a, &b, sizeof(a)) != 0)
      {
        ++different;
        last = index;
      }
    });
    ASSERT_EQ(different, 0) << operation->GetKey() << " " << ToString(t.request.image) << " region "
                            << ToString(t.request.region) << ", the last at " << ToString(last);
  }
}

} // namespace chunkwise

#endif
