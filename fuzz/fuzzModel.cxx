/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseNetworkModel.h"
#include "fuzzTarget.h"

namespace chunkwise::fuzz
{

bool
RunModel(const Target &, const std::string & bytes)
{
  try
  {
    const auto graph = ParseNetworkModel(bytes.data(), bytes.size(), "x.onnx");
    Check(graph != nullptr, "no graph, and no error");
    return true;
  }
  catch (const ParameterError & error)
  {
    Check(*error.what() != '\0', "a refusal without a reason");
    return false;
  }
}

} // namespace chunkwise::fuzz
