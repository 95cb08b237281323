/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaCalls_h
#define chunkwiseCudaCalls_h

#include "chunkwiseCudaKernels.h"

#include <string>

namespace chunkwise
{

/** As CheckCuda, of a call that was made for a device, about so many bytes. */
void
CheckCuda(cudaError_t error, const char * call, const std::string & device, std::size_t bytes = 0);

} // namespace chunkwise

#endif
