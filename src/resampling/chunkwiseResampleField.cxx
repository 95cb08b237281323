/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseResampleField.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace chunkwise
{

namespace
{

/** Voxels of the image beyond which points would not be exact. */
constexpr double LongestMove = 4503599627370496.0;
/** Interpolated vectors may be so much longer than those around them, in parts of their length. */
constexpr double RoundingOfMoves = 1e-12;

} // namespace

void
ResampleField::Prepare()
{
  m_IsOnOutput = true;
  for (int i = 0; i < Axes; ++i)
  {
    m_Parts[i] = (extent[i] + PartLength - 1) / PartLength;
    // Along an axis of one voxel the place is 0, whatever the step.
    m_IsOnOutput = m_IsOnOutput && extent[i] == output[i] && start[i] == 0 && (step[i][i] == 1 || extent[i] == 1) &&
                   step[i][(i + 1) % Axes] == 0 && step[i][(i + 2) % Axes] == 0;
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  m_Bounds.assign(static_cast<std::size_t>(m_Parts[0] * m_Parts[1] * m_Parts[2]),
                  { { infinity, infinity, infinity }, { -infinity, -infinity, -infinity } });
  const std::size_t components = vectors->kernels.size();
  std::size_t       at = 0;
  std::uint64_t     digest = 14695981039346656037u;
  for (std::int64_t z = 0; z < extent[2]; ++z)
  {
    for (std::int64_t y = 0; y < extent[1]; ++y)
    {
      for (std::int64_t x = 0; x < extent[0]; ++x, ++at)
      {
        double vector[Axes]{};
        double move[Axes];
        for (std::size_t k = 0; k < components; ++k)
        {
          vector[k] = vectors->kernels[k][at];
          std::uint64_t bits = 0;
          std::memcpy(&bits, &vector[k], sizeof(bits));
          digest = (digest ^ bits) * 1099511628211u;
          digest ^= digest >> 32;
        }
        this->Transform(vector, move);
        Bounds & bounds = m_Bounds[static_cast<std::size_t>(
          ((z / PartLength) * m_Parts[1] + y / PartLength) * m_Parts[0] + x / PartLength)];
        for (int i = 0; i < Axes; ++i)
        {
          // NaN is refused too.
          if (!(std::abs(move[i]) < LongestMove))
          {
            throw ParameterError("Displacements", "a vector", "finite, and of fewer than 2^52 voxels", " has ");
          }
          bounds.least[i] = std::min(bounds.least[i], move[i]);
          bounds.most[i] = std::max(bounds.most[i], move[i]);
        }
      }
    }
  }
  m_Digest = digest;
}

void
ResampleField::Move(const Coordinates & voxel, double (&move)[Axes]) const
{
  if (m_IsOnOutput)
  {
    const std::int64_t at = (voxel[2] * extent[1] + voxel[1]) * extent[0] + voxel[0];
    double             vector[Axes]{};
    for (std::size_t k = 0; k < vectors->kernels.size(); ++k)
    {
      vector[k] = vectors->kernels[k][static_cast<std::size_t>(at)];
    }
    return this->Transform(vector, move);
  }
  std::int64_t base = 0;
  std::int64_t next[Axes];
  double       part[Axes];
  std::int64_t stride = 1;
  for (int i = 0; i < Axes; ++i)
  {
    const auto last = static_cast<double>(extent[i] - 1);
    double     place = this->PlaceOf(i, voxel);
    if (!(place >= -0.5 && place <= last + 0.5))
    {
      std::fill(move, move + Axes, 0.0);
      return;
    }
    place = std::min(std::max(place, 0.0), last);
    const auto first = static_cast<std::int64_t>(place);
    part[i] = place - static_cast<double>(first);
    base += first * stride;
    next[i] = part[i] > 0 ? stride : 0;
    stride *= extent[i];
  }
  double vector[Axes]{};
  for (std::size_t k = 0; k < vectors->kernels.size(); ++k)
  {
    const double * const from = vectors->kernels[k].data() + base;
    const auto           along = [&](std::int64_t offset) {
      const double value = from[offset];
      return next[0] ? value + part[0] * (from[offset + next[0]] - value) : value;
    };
    const auto across = [&](std::int64_t offset) {
      const double value = along(offset);
      return next[1] ? value + part[1] * (along(offset + next[1]) - value) : value;
    };
    const double value = across(0);
    vector[k] = next[2] ? value + part[2] * (across(next[2]) - value) : value;
  }
  this->Transform(vector, move);
}

void
ResampleField::Extend(const std::int64_t (&first)[Axes], const std::int64_t (&last)[Axes], double (&least)[Axes],
                      double (&most)[Axes]) const
{
  for (std::int64_t z = first[2] / PartLength; z <= last[2] / PartLength; ++z)
  {
    for (std::int64_t y = first[1] / PartLength; y <= last[1] / PartLength; ++y)
    {
      for (std::int64_t x = first[0] / PartLength; x <= last[0] / PartLength; ++x)
      {
        const Bounds & bounds = m_Bounds[static_cast<std::size_t>((z * m_Parts[1] + y) * m_Parts[0] + x)];
        for (int i = 0; i < Axes; ++i)
        {
          least[i] = std::min(least[i], bounds.least[i]);
          most[i] = std::max(most[i], bounds.most[i]);
        }
      }
    }
  }
  for (int i = 0; i < Axes; ++i)
  {
    const double rounding = RoundingOfMoves * (std::abs(least[i]) + std::abs(most[i]));
    least[i] -= rounding;
    most[i] += rounding;
  }
}

void
ResampleField::GetBounds(const Coordinates & lower, const Coordinates & upper, double (&least)[Axes],
                         double (&most)[Axes]) const
{
  std::int64_t first[Axes];
  std::int64_t last[Axes];
  bool         isInside = true;
  bool         isApart = false;
  for (int i = 0; i < Axes; ++i)
  {
    Coordinates begin{};
    Coordinates end{};
    for (int o = 0; o < Axes; ++o)
    {
      const bool rises = step[i][o] >= 0;
      begin[o] = rises ? lower[o] : upper[o] - 1;
      end[o] = rises ? upper[o] - 1 : lower[o];
    }
    const double low = this->PlaceOf(i, begin);
    const double high = this->PlaceOf(i, end);
    const auto   most_ = static_cast<double>(extent[i] - 1);
    isInside = isInside && low >= -0.5 && high <= most_ + 0.5;
    isApart = isApart || high < -0.5 || low > most_ + 0.5;
    first[i] = static_cast<std::int64_t>(std::min(std::max(std::floor(low), 0.0), most_));
    last[i] = static_cast<std::int64_t>(std::min(std::max(std::floor(high) + 1, 0.0), most_));
  }
  // Voxels beyond the field are not moved.
  const double none = isInside ? std::numeric_limits<double>::infinity() : 0;
  std::fill(least, least + Axes, none);
  std::fill(most, most + Axes, -none);
  if (!isApart)
  {
    this->Extend(first, last, least, most);
  }
}

void
ResampleField::GetBounds(double (&least)[Axes], double (&most)[Axes]) const
{
  const std::int64_t first[Axes] = { 0, 0, 0 };
  const std::int64_t last[Axes] = { extent[0] - 1, extent[1] - 1, extent[2] - 1 };
  std::fill(least, least + Axes, 0.0);
  std::fill(most, most + Axes, 0.0);
  this->Extend(first, last, least, most);
}

std::string
ResampleField::GetKey() const
{
  std::string key = " field " + std::to_string(m_Digest);
  for (int i = 0; i < Axes; ++i)
  {
    key += " " + std::to_string(extent[i]);
    for (const double number :
         { step[i][0], step[i][1], step[i][2], start[i], toImage[i][0], toImage[i][1], toImage[i][2] })
    {
      char text[40];
      std::snprintf(text, sizeof(text), " %a", number);
      key += text;
    }
  }
  return key;
}

} // namespace chunkwise
