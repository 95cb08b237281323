/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNetworkModel_h
#define chunkwiseNetworkModel_h

#include "chunkwiseNetworkGraph.h"

#include <string>
#include <vector>

namespace chunkwise
{

/** The network of an ONNX file, opset 7 to 21, finished. One image goes in, [1][channels][z][y][x] or
 * [1][channels][y][x] with extents of any size, one comes out. Weights are float32, float16 or double; what is stored
 * in other files must lie beside the model. Throws ParameterError, which begins with the file's name, and names the
 * node and the operator that is not supported and what could be done; also if the file is truncated or does not fit
 * together. */
Chunkwise_EXPORT std::shared_ptr<const NetworkGraph>
                 ReadNetworkModel(const std::string & fileName);

/** The files that ReadNetworkModel reads: this one first, then those beside it that have its weights. */
Chunkwise_EXPORT std::vector<std::string>
                 ListNetworkFiles(const std::string & fileName);

/** The same as ReadNetworkModel from memory, without other files; `name` is for messages. */
Chunkwise_EXPORT std::shared_ptr<const NetworkGraph>
                 ParseNetworkModel(const void * data, std::size_t bytes, const std::string & name);

/** Adds networks to what the process can compute: their row in the table of filters, and the kernels of the CPU.
 * Whoever links the library dynamically has them from the start; a program with the library inside it calls this before
 * it asks the table for its rows. It may be called again, and from any thread. */
Chunkwise_EXPORT void
AddNetworks();

} // namespace chunkwise

#endif
