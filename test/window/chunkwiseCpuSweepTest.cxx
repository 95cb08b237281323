/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Outputs that no cache holds are stored past the caches: they have the bits of their parts, which are not, and nothing
// beside their rows is touched.
#include "chunkwiseCpuLevel.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseManager.h"
#include "chunkwiseOperations.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

constexpr std::int64_t  Parts = 5;
constexpr unsigned char Untouched = 0xa5;

/** An image of rows that begin anywhere in a line of the cache and have room between them. */
struct Image
{
  Image(PixelType kind, const Box & box, std::int64_t components)
    : bytes(static_cast<std::size_t>((box.Extent(0) + Gap) * components * box.Extent(1) * box.Extent(2)) *
                PixelSize(kind) +
              PixelSize(kind),
            Untouched)
  {
    view.data = bytes.data() + PixelSize(kind);
    view.kind = kind;
    view.box = box;
    view.box.upper[MaxDimension - 1] = components;
    view.stride = {
      { components, (box.Extent(0) + Gap) * components, (box.Extent(0) + Gap) * components * box.Extent(1), 0, 1 }
    };
  }

  static constexpr std::int64_t Gap = 3;
  std::vector<unsigned char>    bytes;
  BufferView                    view;
};

void
Run(const std::shared_ptr<const Operation> & operation, const Image & input, const BufferView & output)
{
  ExecutionRequest request;
  request.operation = operation;
  request.backend = BackendChoice::CPU;
  request.image = input.view.box;
  request.inputs = { input.view };
  request.region = output.box;
  request.output = output;
  Manager::GetGlobal().Execute(request);
}

/** The whole image at once, and slab by slab. */
void
Compare(const std::shared_ptr<const Operation> & operation, PixelType kind, const Coordinates & extent,
        std::int64_t components)
{
  Image              input(kind, Box::FromExtent(extent), components);
  const std::int64_t bytes = input.view.box.NumberOfVoxels() * static_cast<std::int64_t>(PixelSize(kind));
  ASSERT_GE(bytes, LeastStreamed);
  ASSERT_LT(bytes, (Parts - 1) * LeastStreamed);
  std::mt19937 random(5);
  for (std::size_t i = 0; i + 4 <= input.bytes.size() - PixelSize(kind); i += 4)
  {
    const auto bits = static_cast<std::uint32_t>(random());
    const auto real = static_cast<float>(bits >> 8);
    std::memcpy(static_cast<unsigned char *>(input.view.data) + i,
                kind == PixelType::Float32 ? static_cast<const void *>(&real) : &bits,
                4);
  }
  Image whole(kind, Box::FromExtent(extent), components);
  Image parts(kind, Box::FromExtent(extent), components);
  Run(operation, input, whole.view);
  for (std::int64_t part = 0; part < Parts; ++part)
  {
    BufferView slab = parts.view;
    const int  axis = extent[2] > 1 ? 2 : 1;
    slab.box.lower[axis] = extent[axis] * part / Parts;
    slab.box.upper[axis] = extent[axis] * (part + 1) / Parts;
    slab.data =
      static_cast<char *>(slab.data) + parts.view.Offset(slab.box.lower) * static_cast<std::int64_t>(PixelSize(kind));
    Run(operation, input, slab);
  }
  const auto first = std::mismatch(whole.bytes.begin(), whole.bytes.end(), parts.bytes.begin()).first;
  ASSERT_EQ(first, whole.bytes.end()) << GetCpuLevel().name << " " << operation->GetKey() << ", byte "
                                      << first - whole.bytes.begin();
  for (std::size_t row = 0; row < whole.bytes.size() - PixelSize(kind);)
  {
    row += static_cast<std::size_t>(extent[0] * components) * PixelSize(kind);
    for (std::size_t i = 0; i < static_cast<std::size_t>(Image::Gap * components) * PixelSize(kind); ++i, ++row)
    {
      ASSERT_EQ(whole.bytes[PixelSize(kind) + row], Untouched) << "after a row, byte " << row;
    }
  }
}

class CpuSweep : public testing::TestWithParam<const char *>
{
protected:
  void
  SetUp() override
  {
    if (!SetCpuLevel(GetParam()))
    {
      GTEST_SKIP() << "this processor has no " << GetParam();
    }
  }
  void
  TearDown() override
  {
    SetCpuLevel(m_Before);
  }

private:
  const char * m_Before{ GetCpuLevel().name };
};

TEST_P(CpuSweep, LargeOutputsHaveTheBitsOfTheirParts)
{
  const auto gaussian = std::make_shared<SeparableOperation>();
  for (int a = 0; a < 3; ++a)
  {
    for (std::int64_t t = -3; t <= 3; ++t)
    {
      gaussian->weights[a].push_back(std::exp(-0.5 * static_cast<double>(t * t)));
    }
  }
  Compare(gaussian, PixelType::Float32, { { 331, 171, 151, 1, 1 } }, 1);
  Compare(gaussian, PixelType::Float32, { { 157, 171, 111, 1, 1 } }, 3);
  const auto largest = std::make_shared<ExtremumOperation>();
  largest->radius = { { 2, 1, 1, 0, 0 } };
  Compare(largest, PixelType::Float32, { { 331, 171, 151, 1, 1 } }, 1);
  Compare(largest, PixelType::UInt8, { { 5117, 6601, 1, 1, 1 } }, 1);
}

INSTANTIATE_TEST_SUITE_P(Levels, CpuSweep, testing::Values("baseline", "avx2", "avx512"));

} // namespace
