/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseTransformsOf_h
#define chunkwiseTransformsOf_h

#include "chunkwiseDevice.h"
#include "chunkwiseImageConvolutionOperation.h"

#include <set>
#include <string>

namespace chunkwise
{

/** Whether a convolution that the operation is, or is made of, names this provider. */
bool
NamesProvider(const Operation & operation, TransformProvider provider);

/** The providers of the transforms of all convolutions that the operation is, or is made of; `device` nullptr: on the
 * CPU, `whyNone` says why there is no device, if that is known. Throws ParameterError, which names the library, if one
 * is named that is not there. */
std::set<std::string>
TransformsOf(const Operation & operation, const Device * device, const std::string & whyNone = std::string());

} // namespace chunkwise

#endif
