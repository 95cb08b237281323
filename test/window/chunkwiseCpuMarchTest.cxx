/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Variances and Laplacians have the bits of their prescribed arithmetic in images of several tiles, on every level.
#include "chunkwiseCpuLevel.h"
#include "chunkwiseLaplacianOperation.h"
#include "chunkwiseManager.h"
#include "chunkwiseOracle.h"
#include "chunkwiseVarianceOperation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

/** Numbers of a box, x fastest. */
template <typename T>
struct Numbers
{
  Box            box;
  std::vector<T> values;

  explicit Numbers(const Box & theBox)
    : box(theBox)
    , values(static_cast<std::size_t>(theBox.NumberOfVoxels()))
  {}
  T &
  operator[](const Coordinates & at)
  {
    std::int64_t offset = 0;
    for (int a = MaxDimension - 1; a >= 0; --a)
    {
      offset = offset * box.Extent(a) + at[a] - box.lower[a];
    }
    return values[static_cast<std::size_t>(offset)];
  }
};

/** The image, in every mode but Renormalized continued beyond its edge. */
template <typename T>
Numbers<T>
Continue(Numbers<T> & image, const Coordinates & radius, const WindowBoundary & boundary)
{
  Box box = image.box;
  for (int a = 0; a < MaxDimension && boundary.mode != BoundaryMode::Renormalized; ++a)
  {
    box.lower[a] -= radius[a];
    box.upper[a] += radius[a];
  }
  Numbers<T> continued(box);
  ForEachIndex(box, [&](Coordinates at) {
    T & value = continued[at];
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (!oracle::Look(at[a], image.box.upper[a], boundary.mode))
      {
        value = static_cast<T>(boundary.constant.ToDouble());
        return;
      }
    }
    value = image[at];
  });
  return continued;
}

/** Calls pass(axis, position, [first, last) of its taps) for every pass; the box shrinks to the image's on the way. */
template <typename TPass>
void
ForEachPass(Box before, const Box & image, const Coordinates & radius, TPass && pass)
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (radius[a] > 0)
    {
      Box after = before;
      after.lower[a] = image.lower[a];
      after.upper[a] = image.upper[a];
      pass(a, after, [&, a](const Coordinates & at, auto && tap) {
        const std::int64_t last = std::min(at[a] + radius[a] + 1, before.upper[a]);
        Coordinates        from = at;
        for (from[a] = std::max(at[a] - radius[a], before.lower[a]); from[a] < last; ++from[a])
        {
          tap(from);
        }
      });
      before = after;
    }
  }
}

template <typename T>
std::vector<T>
Prescribed(const VarianceOperation & operation, Numbers<T> & image)
{
  const Coordinates radius = operation.EffectiveRadius(image.box.Extents());
  Numbers<T>        x = Continue(image, radius, operation.boundary);
  Numbers<T>        d(x.box);
  Numbers<T>        v(x.box);
  ForEachPass(x.box, image.box, radius, [&](int, const Box & after, auto && forEachTap) {
    Numbers<T> means(after);
    Numbers<T> variances(after);
    ForEachIndex(after, [&](const Coordinates & at) {
      T   sum = 0;
      T   squares = 0;
      T   within = 0;
      int n = 0;
      forEachTap(at, [&](const Coordinates & from) {
        const T e = (x[from] - x[at]) + d[from];
        sum += e;
        squares += e * e;
        within += v[from];
        ++n;
      });
      const T m = T{ 1 } / static_cast<T>(n);
      const T between = squares - sum * (sum * m);
      means[at] = sum * m;
      variances[at] = (within + (between < 0 ? T{ 0 } : between)) * m;
    });
    d = means;
    v = variances;
  });
  for (T & value : v.values)
  {
    value = operation.takesRoot ? std::sqrt(value) : value;
  }
  return v.values;
}

template <typename T>
std::vector<T>
Prescribed(const LaplacianOperation & operation, Numbers<T> & image)
{
  const Coordinates radius = operation.GetRadius();
  Numbers<T>        s = Continue(image, radius, operation.boundary);
  Numbers<T>        l(s.box);
  bool              isFirst = true;
  ForEachPass(s.box, image.box, radius, [&](int a, const Box & after, auto && forEachTap) {
    const std::int64_t        n = image.box.Extent(a);
    const std::int64_t        rows = operation.GetNumberOfRows(a, n);
    const std::vector<double> tables = operation.GetTables(a, n);
    Numbers<T>                smooth(after);
    Numbers<T>                laplacian(after);
    ForEachIndex(after, [&](const Coordinates & at) {
      const std::int64_t begin = WeightRow(at[a], n, radius[a], rows) * (2 * radius[a] + 1) + radius[a] - at[a];
      T                  sum = 0;
      T                  second = 0;
      forEachTap(at, [&](const Coordinates & from) {
        const auto weight = static_cast<std::size_t>(begin + from[a]);
        const auto g = static_cast<T>(tables[weight]);
        const auto h = static_cast<T>(tables[tables.size() / 2 + weight]);
        sum = std::fma(g, s[from], sum);
        second = isFirst ? second : std::fma(g, l[from], second);
        second = std::fma(h, s[from] - s[at], second);
      });
      smooth[at] = sum;
      laplacian[at] = second;
    });
    s = smooth;
    l = laplacian;
    isFirst = false;
  });
  return l.values;
}

/** Runs the whole image and a part of it, which has other tiles, on every level. */
template <typename T, typename TOperation>
void
CompareWithPrescribed(std::mt19937 & random, const std::shared_ptr<TOperation> & operation, const Coordinates & extent)
{
  Numbers<T> image(Box::FromExtent(extent));
  for (T & pixel : image.values)
  {
    pixel = static_cast<T>(static_cast<double>(random() % 20000) / 100 - 60);
  }
  const std::vector<T> expected = Prescribed(*operation, image);
  for (const char * const level : { "baseline", "avx2", "avx512" })
  {
    if (!SetCpuLevel(level))
    {
      continue;
    }
    for (const bool isPart : { false, true })
    {
      ExecutionRequest request;
      request.operation = operation;
      request.backend = BackendChoice::CPU;
      request.image = request.region = image.box;
      for (int a = 0; isPart && a < MaxDimension; ++a)
      {
        request.region.lower[a] = std::min<std::int64_t>(3 + a, extent[a] / 2);
      }
      Numbers<T> output(request.region);
      std::fill(output.values.begin(), output.values.end(), std::numeric_limits<T>::max());
      request.inputs = { DenseView(image.values.data(), PixelTypeOf<T>(), image.box) };
      request.output = DenseView(output.values.data(), PixelTypeOf<T>(), request.region);
      Manager::GetGlobal().Execute(request);
      Numbers<T> wanted(image.box);
      wanted.values = expected;
      std::int64_t differing = 0;
      Coordinates  first{};
      ForEachIndex(request.region, [&](const Coordinates & at) {
        if (std::memcmp(&output[at], &wanted[at], sizeof(T)) != 0)
        {
          first = differing++ == 0 ? at : first;
        }
      });
      ASSERT_EQ(differing, 0) << level << " " << operation->GetKey() << " " << ToString(image.box) << ", first at "
                              << ToString(first);
    }
  }
}

/** Restores the level. */
class LevelGuard
{
public:
  ~LevelGuard() { SetCpuLevel(m_Before); }

private:
  const char * m_Before{ GetCpuLevel().name };
};

const BoundaryMode AllModes[] = {
  BoundaryMode::Renormalized, BoundaryMode::ZeroFluxNeumann, BoundaryMode::Constant,
  BoundaryMode::Mirror,       BoundaryMode::Periodic,        BoundaryMode::MirrorCenter
};

/** Several tiles along each of x, y, z; then axes that take no part, two and four that do, and images smaller than the
 * window. */
struct Shape
{
  Coordinates extent;
  Coordinates radius;
};
const Shape Shapes[] = {
  { { { 133, 70, 71, 1, 1 } }, { { 2, 2, 2, 0, 0 } } }, { { { 70, 131, 30, 1, 1 } }, { { 3, 4, 5, 0, 0 } } },
  { { { 1100, 9, 1, 1, 1 } }, { { 2, 3, 0, 0, 0 } } },  { { { 35, 90, 6, 1, 1 } }, { { 0, 2, 3, 0, 0 } } },
  { { { 67, 5, 150, 1, 1 } }, { { 2, 0, 2, 0, 0 } } },  { { { 40, 70, 3, 2, 1 } }, { { 5, 0, 0, 0, 0 } } },
  { { { 21, 19, 18, 17, 1 } }, { { 2, 2, 2, 2, 0 } } }, { { { 3, 4, 2, 1, 1 } }, { { 4, 3, 5, 0, 0 } } },
  { { { 37, 6, 7, 1, 2 } }, { { 20, 3, 3, 0, 0 } } },   { { { 230, 9, 8, 1, 1 } }, { { 1, 1, 1, 0, 0 } } },
};

TEST(CpuMarch, VariancesHaveThePrescribedBits)
{
  const LevelGuard guard;
  std::mt19937     random(91);
  int              trial = 0;
  for (const Shape & shape : Shapes)
  {
    for (const BoundaryMode mode : AllModes)
    {
      const auto operation = std::make_shared<VarianceOperation>();
      operation->radius = shape.radius;
      operation->boundary.mode = mode;
      operation->boundary.constant = 7.25;
      operation->takesRoot = ++trial % 2 == 0;
      trial % 3 == 0 ? CompareWithPrescribed<double>(random, operation, shape.extent)
                     : CompareWithPrescribed<float>(random, operation, shape.extent);
    }
  }
}

TEST(CpuMarch, LaplaciansHaveThePrescribedBits)
{
  const LevelGuard guard;
  std::mt19937     random(92);
  int              trial = 0;
  for (const Shape & shape : Shapes)
  {
    for (const BoundaryMode mode : AllModes)
    {
      const auto operation = std::make_shared<LaplacianOperation>();
      for (int a = 0; a < MaxDimension; ++a)
      {
        const std::int64_t radius = shape.radius[a] == 1 ? 2 : shape.radius[a];
        for (std::int64_t t = -radius; radius > 0 && t <= radius; ++t)
        {
          operation->weights[a].push_back(
            std::exp(-2.0 * static_cast<double>(t * t) / static_cast<double>(radius * radius)));
        }
        operation->scale[a] = 1 + a;
      }
      operation->boundary.mode = mode;
      operation->boundary.constant = 7.25;
      ++trial % 3 == 0 ? CompareWithPrescribed<double>(random, operation, shape.extent)
                       : CompareWithPrescribed<float>(random, operation, shape.extent);
    }
  }
}

} // namespace
