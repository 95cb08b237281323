/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRoundUp_h
#define chunkwiseRoundUp_h

#include "chunkwiseTypes.h"

#include <cstddef>

namespace chunkwise
{

/** The least multiple of `alignment` that is not below `bytes`. */
CHUNKWISE_HOST_DEVICE constexpr std::size_t
RoundUp(std::size_t bytes, std::size_t alignment = 256)
{
  return (bytes + alignment - 1) / alignment * alignment;
}

} // namespace chunkwise

#endif
