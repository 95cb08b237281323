/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseOutOfCoreRunner.h"

namespace chunkwise
{

OutOfCoreRunner::~OutOfCoreRunner() = default;

} // namespace chunkwise
