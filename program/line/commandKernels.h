/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandKernels_h
#define commandKernels_h

#include "chunkwiseFilters.h"

#include <memory>
#include <cstdint>
#include <string>

namespace command
{

/** Throws WorkError if `bytes`, which are held beside the image for the file of an option, do not fit into `memory`,
 * bytes for the whole run; 0: half of the available memory. `held` names their form in the message. */
void
CheckRoom(const std::string & file, const std::string & option, double bytes, std::uint64_t memory,
          const char * held = "numbers of 64 bits");

/** The kernels in an image: one of `dimension` axes, or as many as its last axis is long where `isStack`. Axes that the
 * file does not have get the size 1. `option` is named in errors. Throws WorkError before the voxels are read if they
 * do not fit into `memory`, bytes for the whole run; 0: half of the available memory. */
std::shared_ptr<const chunkwise::KernelStack>
ReadKernels(const std::string & file, const std::string & option, int dimension, bool isStack, std::uint64_t memory);

/** The value of a parameter as the program was given it: a text, or a file's name. `memory` as of ReadKernels. */
chunkwise::ParameterValue
ReadParameter(const chunkwise::ParameterDescription & parameter, const std::string & text, int dimension,
              std::uint64_t memory);

/** The contents of a network's file, for a reader. Throws chunkwise::ParameterError. */
std::string
DescribeNetwork(const std::string & file);

} // namespace command

#endif
