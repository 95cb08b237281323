/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaTables_h
#define chunkwiseCudaTables_h

#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseResourceCache.h"

#include <memory>
#include <string>
#include <vector>

namespace chunkwise
{

/** A table that is made once and then found, here and on the device, by its key. */
template <typename TValue, typename TMake>
const TValue *
GetTable(const KernelCall & call, const std::string & key, TMake && make)
{
  using Table = std::vector<TValue>;
  // Never destroyed: runs may outlive static destruction in other threads.
  static auto & cache = *new ResourceCache;
  const auto    held = cache.GetOrMake(key, [&] {
    auto              table = std::make_shared<Table>(make());
    const std::size_t bytes = table->size() * sizeof(TValue);
    return ResourceCache::Entry{ table, bytes };
  });
  const Table & table = *static_cast<const Table *>(held.get());
  return static_cast<const TValue *>(call.tables->Get(key, table.data(), table.size() * sizeof(TValue)));
}

/** The factors of a convolution that is renormalized, as T. */
template <typename T>
const T *
GetFactors(const KernelCall & call, const ImageConvolutionOperation & operation, const Coordinates & image)
{
  return GetTable<T>(
    call, operation.GetKey() + " factors " + ToString(image) + (sizeof(T) == 4 ? " f32" : " f64"), [&] {
      const ConvolutionFactors exact(operation, image);
      return std::vector<T>(exact.factors.begin(), exact.factors.end());
    });
}

} // namespace chunkwise

#endif
