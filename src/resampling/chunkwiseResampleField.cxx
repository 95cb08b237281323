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

/** Interpolated vectors may be so much longer than those around them, in parts of their length. */
constexpr double RoundingOfMoves = 1e-12;

} // namespace

void
ResampleField::Prepare()
{
  m_Moves = ResampleMoves();
  m_Moves.isOnOutput = true;
  std::int64_t stride = 1;
  for (int i = 0; i < Axes; ++i)
  {
    m_Moves.extent[i] = extent[i];
    m_Moves.stride[i] = stride;
    m_Moves.start[i] = start[i];
    std::copy(step[i], step[i] + Axes, m_Moves.step[i]);
    std::copy(toImage[i], toImage[i] + Axes, m_Moves.toImage[i]);
    stride *= extent[i];
    m_Parts[i] = (extent[i] + PartLength - 1) / PartLength;
    // Along an axis of one voxel the place is 0, whatever the step.
    m_Moves.isOnOutput = m_Moves.isOnOutput && extent[i] == output[i] && start[i] == 0 &&
                         (step[i][i] == 1 || extent[i] == 1) && step[i][(i + 1) % Axes] == 0 &&
                         step[i][(i + 2) % Axes] == 0;
  }
  for (const std::vector<double> & component : vectors->kernels)
  {
    m_Moves.vectors[m_Moves.components++] = component.data();
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
        for (std::size_t k = 0; k < components; ++k)
        {
          vector[k] = vectors->kernels[k][at];
          std::uint64_t bits = 0;
          std::memcpy(&bits, &vector[k], sizeof(bits));
          digest = (digest ^ bits) * 1099511628211u;
          digest ^= digest >> 32;
        }
        Bounds & bounds = m_Bounds[static_cast<std::size_t>(
          ((z / PartLength) * m_Parts[1] + y / PartLength) * m_Parts[0] + x / PartLength)];
        for (int i = 0; i < Axes; ++i)
        {
          const double move = m_Moves.Transform(i, vector);
          // NaN is refused too.
          if (!(std::abs(move) < FarthestPoint))
          {
            throw ParameterError("Displacements", "a vector", "finite, and of fewer than 2^52 voxels", " has ");
          }
          bounds.least[i] = std::min(bounds.least[i], move);
          bounds.most[i] = std::max(bounds.most[i], move);
        }
      }
    }
  }
  m_Digest = digest;
}

void
ResampleField::Move(const Coordinates & voxel, double (&move)[Axes]) const
{
  double vector[Axes];
  m_Moves.FindVector(voxel, vector);
  for (int i = 0; i < Axes; ++i)
  {
    move[i] = m_Moves.Transform(i, vector);
  }
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
ResampleField::GetPlaces(int i, const Coordinates & lower, const Coordinates & upper, double & low, double & high) const
{
  Coordinates begin{};
  Coordinates end{};
  for (int o = 0; o < Axes; ++o)
  {
    const bool rises = step[i][o] >= 0;
    begin[o] = rises ? lower[o] : upper[o] - 1;
    end[o] = rises ? upper[o] - 1 : lower[o];
  }
  low = m_Moves.PlaceOf(i, begin);
  high = m_Moves.PlaceOf(i, end);
}

void
ResampleField::GetPart(const Coordinates & lower, const Coordinates & upper, std::int64_t (&first)[Axes],
                       std::int64_t (&last)[Axes]) const
{
  for (int i = 0; i < Axes; ++i)
  {
    double low = 0;
    double high = 0;
    this->GetPlaces(i, lower, upper, low, high);
    const auto end = static_cast<double>(extent[i] - 1);
    first[i] = static_cast<std::int64_t>(std::min(std::max(std::floor(low), 0.0), end));
    last[i] = static_cast<std::int64_t>(std::min(std::max(std::floor(high) + 1, 0.0), end));
  }
}

std::int64_t
ResampleField::CountMostOfPart(int i, const Coordinates & box) const
{
  // Both ends, and what rounding adds.
  double count = 3;
  for (int o = 0; o < Axes; ++o)
  {
    count += std::abs(step[i][o]) * static_cast<double>(box[o]);
  }
  return count < static_cast<double>(extent[i]) ? static_cast<std::int64_t>(std::ceil(count)) : extent[i];
}

void
ResampleField::GetBounds(const Coordinates & lower, const Coordinates & upper, double (&least)[Axes],
                         double (&most)[Axes]) const
{
  std::int64_t first[Axes];
  std::int64_t last[Axes];
  bool         isInside = true;
  bool         isApart = false;
  this->GetPart(lower, upper, first, last);
  for (int i = 0; i < Axes; ++i)
  {
    double low = 0;
    double high = 0;
    this->GetPlaces(i, lower, upper, low, high);
    const auto end = static_cast<double>(extent[i] - 1);
    isInside = isInside && low >= -0.5 && high <= end + 0.5;
    isApart = isApart || high < -0.5 || low > end + 0.5;
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
