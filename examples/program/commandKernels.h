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

/** The value of a parameter as the program was given it: a text, or a file's name. */
chunkwise::ParameterValue
ReadParameter(const chunkwise::ParameterDescription & parameter, const std::string & text, int dimension);

/** What a network's file holds, for a reader. Throws chunkwise::ParameterError. */
std::string
DescribeNetwork(const std::string & file);

} // namespace command

#endif
