/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseWatershedOperation.h"

namespace chunkwise
{

const OutOfCoreRunner *
WatershedOperation::GetOutOfCoreRunner() const
{
  return nullptr;
}

} // namespace chunkwise
