/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandKernels_h
#define commandKernels_h

#include "chunkwiseFilters.h"

#include <memory>
#include <string>

namespace command
{

/** The kernels in an image: one of `dimension` axes, or as many as its last axis is long where `isStack`. Axes that the
 * file does not have get the size 1. `option` is named in errors. */
std::shared_ptr<const chunkwise::KernelStack>
ReadKernels(const std::string & file, const std::string & option, int dimension, bool isStack);

} // namespace command

#endif
