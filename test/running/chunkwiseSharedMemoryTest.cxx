/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Views that share memory: told as counting bytes tells it, and refused by a manager.
#include "chunkwiseSharedMemory.h"

#include "chunkwiseError.h"
#include "chunkwiseFilters.h"
#include "chunkwiseManager.h"
#include "chunkwiseOracle.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace chunkwise;

namespace
{

/** Every byte of a view. */
std::set<std::intptr_t>
BytesOf(const BufferView & view)
{
  std::set<std::intptr_t> bytes;
  const auto              pixel = static_cast<std::intptr_t>(PixelSize(view.kind));
  ForEachIndex(view.box, [&](const Coordinates & index) {
    const auto begin = reinterpret_cast<std::intptr_t>(view.data) + view.Offset(index) * pixel;
    for (std::intptr_t i = 0; i < pixel; ++i)
    {
      bytes.insert(begin + i);
    }
  });
  return bytes;
}

TEST(SharedMemory, IsWhatBytesSay)
{
  std::mt19937      random(61);
  std::vector<char> memory(1 << 16);
  const auto        below = [&random](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  int               shared = 0;
  int               woven = 0;
  for (int trial = 0; trial < 4000; ++trial)
  {
    BufferView views[2];
    for (BufferView & view : views)
    {
      view.kind = random() % 2 ? PixelType::UInt8 : PixelType::Int16;
      Coordinates extent = Coordinates::Filled(1);
      view.stride = Coordinates::Filled(1);
      for (int a = 0; a < 4; ++a)
      {
        extent[a] = 1 + below(4);
        // Any steps, also none and backwards: views of people need not be nested.
        view.stride[a] = a == 0 ? 1 : below(30) - 10;
      }
      view.box = Box::FromExtent(extent);
      view.data = memory.data() + 30000 + 2 * below(100);
    }
    const auto first = BytesOf(views[0]);
    const auto second = BytesOf(views[1]);
    const bool expected = std::any_of(first.begin(), first.end(), [&](auto byte) { return second.count(byte) != 0; });
    EXPECT_EQ(ShareMemory(views[0], views[1]), expected) << trial;
    EXPECT_EQ(ShareMemory(views[1], views[0]), expected) << trial;
    shared += expected ? 1 : 0;
    woven += !expected && *first.begin() <= *second.rbegin() && *second.begin() <= *first.rbegin() ? 1 : 0;
  }
  EXPECT_GT(shared, 500);
  EXPECT_GT(woven, 50);
}

TEST(SharedMemory, IsRefusedForInputAndOutput)
{
  FilterImage image;
  image.extent = { { 8, 6, 4, 1, 1 } };
  image.inputKind = image.outputKind = PixelType::Int16;
  FilterParameters parameters;
  parameters.SetInteger("Radius", 1);
  std::vector<std::int16_t> memory(4 * 8 * 6 * 4, 5);
  ExecutionRequest          request;
  request.operation = MakeFilterOperation("mean", parameters, image);
  request.image = request.region = Box::FromExtent(image.extent);
  request.inputs = { DenseView(memory.data(), PixelType::Int16, request.image) };
  request.output = request.inputs[0];
  request.backend = BackendChoice::CPU;
  Manager    manager({});
  const auto refusal = [&]() -> std::string {
    try
    {
      manager.Execute(request);
      return std::string();
    }
    catch (const ParameterError & error)
    {
      return error.what();
    }
  };
  EXPECT_NE(refusal().find("in the memory of input 0"), std::string::npos);
  request.output.data = memory.data() + 8 * 6 * 4 - 1;
  EXPECT_NE(refusal().find("in the memory of input 0"), std::string::npos) << "by the last voxel";
  request.output.data = memory.data() + 8 * 6 * 4;
  EXPECT_EQ(refusal(), "");
  // Every second row is the output's.
  for (BufferView * const view : { &request.inputs[0], &request.output })
  {
    view->stride = { { 1, 16, 96, 1, 1 } };
  }
  request.output.data = memory.data() + 8;
  EXPECT_EQ(refusal(), "");
  request.output.data = memory.data() + 7;
  EXPECT_NE(refusal(), "");
  // Voxels that the region does not need may lie anywhere.
  request.inputs = { DenseView(memory.data(), PixelType::Int16, request.image) };
  request.region.lower[2] = 3;
  request.output = DenseView(memory.data(), PixelType::Int16, request.region);
  EXPECT_EQ(refusal(), "");
  request.region.lower[2] = 1;
  request.output = DenseView(memory.data(), PixelType::Int16, request.region);
  EXPECT_NE(refusal(), "");
}

} // namespace
