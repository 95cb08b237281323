/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The engine without ITK: a raw array in, a raw array out. Link with Chunkwise::Engine.
#include "chunkwiseManager.h"
#include "chunkwiseOperations.h"

#include <iostream>

int
main()
{
  const chunkwise::Box       image = chunkwise::Box::FromExtent({ { 64, 48, 32, 1, 1 } });
  std::vector<std::uint16_t> input(64 * 48 * 32, 7);
  std::vector<float>         output(input.size());

  auto mean = std::make_shared<chunkwise::MeanOperation>();
  mean->radius = { { 2, 2, 2, 0, 0 } };
  chunkwise::ExecutionRequest request;
  request.operation = mean;
  request.inputs = { chunkwise::DenseView(input.data(), chunkwise::PixelType::UInt16, image) };
  request.output = chunkwise::DenseView(output.data(), chunkwise::PixelType::Float32, image);
  request.image = request.region = image;
  const auto report = chunkwise::Manager::GetGlobal().Execute(request);

  std::cout << "mean at the corner: " << output.front() << ", computed by " << report.backend << std::endl;
  return output.front() == 7.0f ? 0 : 1;
}
