/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseMeasureOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseStatisticsSummary.h"

#include <cmath>

namespace chunkwise
{

MeasureLayout::MeasureLayout(const MeasurementSettings & settings)
  : dimension(settings.dimension)
  , details(settings.details || settings.moments || settings.surfaces || settings.weighted)
  , moments(settings.moments)
  , surfaces(settings.surfaces)
  , contacts(settings.contacts)
  , intensity(settings.hasIntensity)
  , isReal(settings.hasIntensity && IsFloatingPoint(settings.intensityKind))
  , weighted(settings.hasIntensity && settings.weighted)
{
  upper = lower + dimension;
  sums = upper + dimension;
  sums = details ? sums : +first;
  products = sums + (details ? 2 * dimension : 0);
  faces = products + (moments ? dimension * (dimension + 1) : 0);
  euler = faces + (surfaces ? dimension : 0);
  minimum = euler + (surfaces ? 1 : 0);
  maximum = minimum + (intensity && details ? 2 : 0);
  specials = maximum + (intensity && details ? 2 : 0);
  digits = specials + (isReal ? 4 : 0);
  words = this->GetWords();
}

void
MeasureLayout::SetDigits(int newLow, int newHigh)
{
  low = newLow;
  high = newHigh;
  words = this->GetWords();
}

std::string
MeasureOperation::GetKey() const
{
  std::string key = GetName() + " " + PixelTypeName(settings.labelKind) + " " + std::to_string(firstLabel) + " " +
                    std::to_string(rows) + " " + std::to_string(settings.dimension);
  for (const bool part : { settings.details, settings.moments, settings.surfaces, settings.weighted })
  {
    key += part ? " 1" : " 0";
  }
  return key + (settings.hasIntensity ? std::string(" ") + PixelTypeName(settings.intensityKind) : "");
}

Halo
MeasureOperation::GetHalo(const Coordinates &) const
{
  Halo halo = Halo::None();
  for (int a = 0; settings.surfaces && a < settings.dimension; ++a)
  {
    halo.lower[a] = 1;
  }
  return halo;
}

void
MeasureOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType) const
{
  const std::string objection = GetObjectionTo(settings);
  if (!objection.empty())
  {
    throw ParameterError(objection);
  }
  if (inputs.size() != static_cast<std::size_t>(this->GetNumberOfInputs()) || inputs[0] != settings.labelKind ||
      (settings.hasIntensity && inputs[1] != settings.intensityKind))
  {
    throw ParameterError("the images have other types than the measurements");
  }
}

std::size_t
MeasureOperation::GetSummaryBytes(const Box &, const std::vector<PixelType> &, PixelType) const
{
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(this->GetLayout().words) * sizeof(std::int64_t);
}

void
MeasureOperation::MergeSummary(ChunkState & total, const ChunkState & summary) const
{
  const MeasureLayout layout = this->GetLayout();
  const auto          words = static_cast<std::size_t>(layout.words);
  auto *              ours = reinterpret_cast<std::int64_t *>(total.data());
  const auto *        theirs = reinterpret_cast<const std::int64_t *>(summary.data());
  for (std::int64_t row = 0; row < rows; ++row, ours += words, theirs += words)
  {
    if (layout.IsEmpty(theirs))
    {
      continue;
    }
    if (layout.IsEmpty(ours))
    {
      std::copy_n(theirs, words, ours);
      continue;
    }
    layout.Add(ours, layout, theirs);
  }
}

MeasureLayout
MeasureOperation::GetLayout() const
{
  // The digits of a sum of 2^40 numbers of up to 32 bits: of float from its least number to 2^128.
  constexpr int one = StatisticsSummary::SumBias / DigitBits;
  constexpr int least = (StatisticsSummary::SumBias - 149) / DigitBits;
  constexpr int most = (StatisticsSummary::SumBias + 128) / DigitBits;
  MeasureLayout layout(settings);
  if (layout.intensity)
  {
    layout.SetDigits(layout.isReal ? least : one, layout.isReal ? most + 2 : one + 2);
  }
  return layout;
}

std::string
MeasureOperation::GetObjectionTo(const MeasurementSettings & settings)
{
  if (settings.contacts)
  {
    return "faces between labels are counted by the CPU alone";
  }
  if (settings.hasIntensity && PixelSize(settings.intensityKind) > 4)
  {
    return std::string("intensities of ") + PixelTypeName(settings.intensityKind) +
           " are measured by the CPU alone, those of up to 32 bits by devices too";
  }
  double longest = 1;
  for (int a = 0; a < settings.dimension; ++a)
  {
    longest = std::max(longest, static_cast<double>(settings.extent[a]));
  }
  // Sums of products of coordinates have 32 bits and 62 beyond.
  if (static_cast<double>(Box::FromExtent(settings.extent).NumberOfVoxels()) * longest * longest >= std::ldexp(1.0, 94))
  {
    return "images of " + ToString(settings.extent) + " are measured by the CPU alone";
  }
  return {};
}

} // namespace chunkwise
