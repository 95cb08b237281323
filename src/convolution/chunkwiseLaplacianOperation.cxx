/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseLaplacianOperation.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

/** Solves the moment equations for h_t = g_t (a + b t + c t t), t from first to last. */
void
FitSecondDerivative(const double * g, std::int64_t first, std::int64_t last, double scale, double * h)
{
  // Around the middle of the taps and in units of their reach, which keeps the equations well conditioned.
  const double middle = 0.5 * static_cast<double>(first + last);
  const double unit = std::max(0.5 * static_cast<double>(last - first), 1.0);
  const auto   u = [&](std::int64_t t) { return (static_cast<double>(t) - middle) / unit; };
  double       moment[5] = {};
  for (std::int64_t t = first; t <= last; ++t)
  {
    double power = g[t];
    for (double & m : moment)
    {
      m += power;
      power *= u(t);
    }
  }
  // Orthogonal polynomials 1, u - p, u u - q u - r: the second derivative is that of the last one's part.
  const double p = moment[1] / moment[0];
  const double variance = moment[2] - p * moment[1];
  const double q = (moment[3] - p * moment[2]) / variance;
  const double r = (moment[2] - q * moment[1]) / moment[0];
  double       norm = 0;
  for (std::int64_t t = first; t <= last; ++t)
  {
    const double value = u(t) * u(t) - q * u(t) - r;
    norm += g[t] * value * value;
  }
  for (std::int64_t t = first; t <= last; ++t)
  {
    h[t] = scale * 2.0 / (unit * unit) * g[t] * (u(t) * u(t) - q * u(t) - r) / norm;
  }
}

} // namespace

std::string
LaplacianOperation::GetKey() const
{
  std::string key = GetName() + " " + BoundaryKey(boundary);
  for (int a = 0; a < MaxDimension; ++a)
  {
    key += "|" + ExactText(scale[a]) + ":";
    for (const double weight : weights[a])
    {
      key += ExactText(weight) + ",";
    }
  }
  return key;
}

Coordinates
LaplacianOperation::GetRadius() const
{
  Coordinates radius{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    radius[a] = static_cast<std::int64_t>(weights[a].size() / 2);
  }
  return radius;
}

Halo
LaplacianOperation::GetHalo(const Coordinates &) const
{
  return { GetRadius(), GetRadius() };
}

void
LaplacianOperation::Validate(const Coordinates &) const
{
  bool any = false;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::string axis = "along axis " + std::to_string(a);
    if (!std::isfinite(scale[a]))
    {
      throw ParameterError("the scale " + axis + " is " + std::to_string(scale[a]) + "; it must be finite");
    }
    if (weights[a].empty())
    {
      continue;
    }
    any = true;
    if (weights[a].size() < 5 || weights[a].size() % 2 == 0 || weights[a].size() > 131071)
    {
      throw ParameterError("the window has " + std::to_string(weights[a].size()) + " weights " + axis +
                           "; the number must be odd, from 5 to 131071");
    }
    for (const double weight : weights[a])
    {
      if (!(weight > 0 && std::isfinite(weight)))
      {
        throw ParameterError("a weight " + axis + " is " + std::to_string(weight) +
                             "; it must be finite and greater than 0");
      }
    }
  }
  if (!any)
  {
    throw ParameterError("no axis of the Laplacian has weights");
  }
}

std::int64_t
LaplacianOperation::GetNumberOfRows(int a, std::int64_t n) const
{
  return boundary.mode == BoundaryMode::Renormalized
           ? std::min(n, std::max<std::int64_t>(1, static_cast<std::int64_t>(weights[a].size())))
           : 1;
}

std::vector<double>
LaplacianOperation::GetTables(int a, std::int64_t n) const
{
  const std::vector<double> ones{ 1.0 };
  const auto &              window = weights[a].empty() ? ones : weights[a];
  const auto                taps = static_cast<std::int64_t>(window.size());
  const std::int64_t        radius = taps / 2;
  const std::int64_t        rows = GetNumberOfRows(a, n);
  std::vector<double>       tables(static_cast<std::size_t>(2 * rows * taps), 0.0);
  for (std::int64_t row = 0; row < rows; ++row)
  {
    std::int64_t first = 0;
    std::int64_t last = taps - 1;
    if (boundary.mode == BoundaryMode::Renormalized)
    {
      // A position that has this row.
      const std::int64_t i = row <= radius || rows == n ? row : n - (rows - row);
      first = std::max<std::int64_t>(0, radius - i);
      last = std::min(taps - 1, n - 1 - i + radius);
    }
    double * const g = tables.data() + row * taps;
    double         sum = 0;
    for (std::int64_t t = first; t <= last; ++t)
    {
      sum += window[static_cast<std::size_t>(t)];
    }
    for (std::int64_t t = first; t <= last; ++t)
    {
      g[t] = window[static_cast<std::size_t>(t)] / sum;
    }
    if (last - first >= 2)
    {
      FitSecondDerivative(g, first, last, scale[a], g + rows * taps);
    }
  }
  return tables;
}

} // namespace chunkwise
