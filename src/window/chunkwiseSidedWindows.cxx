/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSidedWindows.h"

#include "chunkwiseDomainOperation.h"
#include "chunkwiseEnhancementOperations.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseFootprintOperation.h"
#include "chunkwiseFramedOperation.h"
#include "chunkwiseLocalThresholdOperation.h"
#include "chunkwiseRangeOperation.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseWienerOperation.h"
#include "chunkwiseWindow.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

using Pointer = std::shared_ptr<const Operation>;

template <typename TOperation>
const TOperation *
As(const Pointer & window)
{
  return dynamic_cast<const TOperation *>(window.get());
}

/** The stages of a composite, one for each statistic of a window. */
template <typename TComposite>
std::vector<Stage>
StagesOfStatistics(const TComposite & composite)
{
  return composite.GetStages();
}
std::vector<Stage>
StagesOfStatistics(const LocalThresholdOperation & composite)
{
  return composite.GetStagesOfStatistics();
}

/** Makes operations over one box of one image. */
class SidedWindows
{
public:
  SidedWindows(const WindowSides & sides, PixelType kind)
    : m_Sides(sides)
    , m_Kind(kind)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t reach = sides.lower[a] + sides.upper[a];
      m_Radius[a] = (reach + 1) / 2;
      m_Shorter[a] = reach % 2;
      m_Shift[a] = m_Radius[a] - sides.lower[a];
    }
  }

  Pointer
  Make(const Pointer & window) const
  {
    if (const auto * const mean = As<MeanOperation>(window))
    {
      return this->MakeMean(*mean);
    }
    if (const auto * const variance = As<VarianceOperation>(window))
    {
      return this->MakeVariance(*variance);
    }
    if (const auto * const rank = As<RankOperation>(window))
    {
      return this->MakeRank(*rank);
    }
    if (const auto * const extremum = As<ExtremumOperation>(window))
    {
      return this->MakeExtremum(*extremum);
    }
    if (const auto * const entropy = As<EntropyOperation>(window))
    {
      const auto shorter = this->MakeShorter(*entropy);
      return Cuts(*entropy) ? this->InImage(shorter, entropy->boundary) : this->Frame(shorter, entropy->boundary);
    }
    if (const auto * const domain = As<DomainOperation>(window))
    {
      return this->MakeDomain(*domain);
    }
    for (const Pointer & composite : { this->MakeComposite<RangeOperation>(window),
                                       this->MakeComposite<WienerOperation>(window),
                                       this->MakeComposite<LocalNormalizationOperation>(window),
                                       this->MakeComposite<LocalThresholdOperation>(window) })
    {
      if (composite)
      {
        return composite;
      }
    }
    throw ParameterError("UpperRadius: windows of " + window->GetName() + " reach as far to both sides");
  }

private:
  bool
  IsOdd() const
  {
    return m_Shorter == Coordinates{};
  }

  static bool
  Cuts(const WindowedOperation & window)
  {
    return window.boundary.mode == BoundaryMode::Renormalized;
  }

  /** The window around the voxel that lies in its middle; it meets no edge. */
  template <typename TWindow>
  std::shared_ptr<TWindow>
  Centered(const TWindow & window) const
  {
    const auto centered = std::make_shared<TWindow>(window);
    centered->radius = m_Radius;
    centered->boundary = { BoundaryMode::ZeroFluxNeumann, PixelValue(0) };
    return centered;
  }

  std::shared_ptr<EntropyOperation>
  MakeShorter(const EntropyOperation & window) const
  {
    const auto entropy = this->Centered(window);
    entropy->shorter = m_Shorter;
    return entropy;
  }

  /** In Renormalized mode a constant of 0 lies beyond the edge, of which a mask sees nothing. */
  std::shared_ptr<FramedOperation>
  Frame(const Pointer & inner, const WindowBoundary & boundary) const
  {
    const bool isConstant = boundary.mode == BoundaryMode::Constant;
    const bool cuts = boundary.mode == BoundaryMode::Renormalized;
    const auto framed = std::make_shared<FramedOperation>();
    framed->inner = inner;
    framed->shift = m_Shift;
    std::fill(std::begin(framed->modes), std::end(framed->modes), cuts ? BoundaryMode::Constant : boundary.mode);
    framed->constant = PixelValue(0);
    framed->secondConstant = PixelValue(isConstant ? 1 : 0);
    if (isConstant)
    {
      framed->constant = DispatchPixelType(
        m_Kind, [&](auto pixel) { return PixelValue(ConstantPixel<decltype(pixel)>(boundary.constant)); });
    }
    return framed;
  }

  /** Windows that end at the image's edge see the voxels in a mask of ones. */
  Pointer
  InImage(const Pointer & window, const WindowBoundary & boundary) const
  {
    const auto domain = std::make_shared<DomainOperation>();
    domain->window = window;
    domain->domain = DomainKind::Mask;
    domain->imageKind = m_Kind;
    const auto framed = this->Frame(domain, boundary);
    framed->marksImage = true;
    return framed;
  }

  std::shared_ptr<FootprintOperation>
  MakeFootprint(FootprintStatistic statistic, const WindowBoundary & boundary) const
  {
    const auto footprint = std::make_shared<FootprintOperation>();
    footprint->element = MakeSidedElement(m_Sides, footprint->radius);
    footprint->boundary = boundary;
    footprint->statistic = statistic;
    return footprint;
  }
  std::shared_ptr<FootprintOperation>
  MakeFootprint(const MeanOperation & mean) const
  {
    const auto footprint =
      this->MakeFootprint(mean.sums ? FootprintStatistic::Sum : FootprintStatistic::Mean, mean.boundary);
    footprint->truncates = mean.truncates;
    return footprint;
  }
  std::shared_ptr<FootprintOperation>
  MakeFootprint(const VarianceOperation & variance) const
  {
    return this->MakeFootprint(
      variance.takesRoot ? FootprintStatistic::StandardDeviation : FootprintStatistic::Variance, variance.boundary);
  }
  std::shared_ptr<FootprintOperation>
  MakeFootprint(const RankOperation & rank) const
  {
    const auto footprint = this->MakeFootprint(FootprintStatistic::Rank, rank.boundary);
    footprint->fraction = rank.fraction;
    return footprint;
  }
  std::shared_ptr<FlatExtremumOperation>
  MakeFlat(const WindowBoundary & boundary, bool minimum) const
  {
    const auto flat = std::make_shared<FlatExtremumOperation>();
    flat->element = MakeSidedElement(m_Sides, flat->radius);
    flat->boundary = boundary;
    flat->minimum = minimum;
    return flat;
  }

  Pointer
  MakeMean(const MeanOperation & mean) const
  {
    // Sums of 0 see nothing beyond the edge.
    const bool isCut = Cuts(mean) && !mean.sums;
    return !this->IsOdd() || isCut ? Pointer(this->MakeFootprint(mean))
                                   : this->Frame(this->Centered(mean), mean.boundary);
  }

  Pointer
  MakeVariance(const VarianceOperation & variance) const
  {
    return !this->IsOdd() || Cuts(variance) ? Pointer(this->MakeFootprint(variance))
                                            : this->Frame(this->Centered(variance), variance.boundary);
  }

  Pointer
  MakeRank(const RankOperation & rank) const
  {
    if (!this->IsOdd())
    {
      return this->MakeFootprint(rank);
    }
    const auto centered = this->Centered(rank);
    if (Cuts(rank) && !IsFloatingPoint(m_Kind))
    {
      return this->InImage(centered, rank.boundary);
    }
    const auto framed = this->Frame(centered, rank.boundary);
    framed->constant = Cuts(rank) ? PixelValue(std::numeric_limits<double>::quiet_NaN()) : framed->constant;
    return framed;
  }

  Pointer
  MakeExtremum(const ExtremumOperation & extremum) const
  {
    const auto box = this->Centered(extremum);
    Pointer    window = box;
    if (!this->IsOdd())
    {
      const auto flat = std::make_shared<FlatExtremumOperation>();
      flat->radius = m_Shorter;
      flat->minimum = extremum.minimum;
      flat->boundary = box->boundary;
      flat->element = MakeSidedElement({ m_Shorter, {} }, flat->radius);
      for (int a = 0; a < MaxDimension; ++a)
      {
        box->radius[a] -= m_Shorter[a];
      }
      const auto sequence = std::make_shared<SequenceOperation>();
      sequence->stages = { box, flat };
      window = sequence;
    }
    const auto framed = this->Frame(window, extremum.boundary);
    if (Cuts(extremum))
    {
      // The constant beyond the edge is no extremum, or is not seen.
      framed->constant = DispatchPixelType(m_Kind, [&](auto pixel) {
        using Limits = std::numeric_limits<decltype(pixel)>;
        return IsFloatingPoint(m_Kind) ? PixelValue(std::numeric_limits<double>::quiet_NaN())
                                       : PixelValue(extremum.minimum ? Limits::max() : Limits::lowest());
      });
    }
    return framed;
  }

  Pointer
  MakeDomain(const DomainOperation & domain) const
  {
    const auto inside = std::make_shared<DomainOperation>(domain);
    if (const auto * const wiener = As<WienerOperation>(domain.window))
    {
      return this->MakeWienerInDomain(*wiener, inside);
    }
    const auto frame = [&](const auto & window, const WindowBoundary & boundary) {
      inside->window = window;
      const auto framed = this->Frame(inside, boundary);
      const bool cutsByNan = domain.domain == DomainKind::All && boundary.mode == BoundaryMode::Renormalized;
      framed->constant = cutsByNan ? PixelValue(std::numeric_limits<double>::quiet_NaN()) : framed->constant;
      return framed;
    };
    if (const auto * const mean = As<MeanOperation>(domain.window))
    {
      return this->FrameOrFootprint(*mean, inside, frame);
    }
    if (const auto * const variance = As<VarianceOperation>(domain.window))
    {
      return this->FrameOrFootprint(*variance, inside, frame);
    }
    if (const auto * const rank = As<RankOperation>(domain.window))
    {
      return this->FrameOrFootprint(*rank, inside, frame);
    }
    if (const auto * const entropy = As<EntropyOperation>(domain.window))
    {
      if (domain.marksSeen && !this->IsOdd())
      {
        inside->window = this->MakeFootprint(FootprintStatistic::Rank, entropy->boundary);
        return inside;
      }
      return frame(this->MakeShorter(*entropy), entropy->boundary);
    }
    if (const auto * const range = As<RangeOperation>(domain.window))
    {
      if (this->IsOdd())
      {
        return frame(this->Centered(*range), range->boundary);
      }
      const auto windows = std::make_shared<RangeOperation>(*range);
      windows->windows = { this->MakeFlat(range->boundary, false), this->MakeFlat(range->boundary, true) };
      inside->window = windows;
      return inside;
    }
    throw ParameterError("UpperRadius: windows of " + domain.window->GetName() +
                         " in a mask reach as far to both sides");
  }

  template <typename TWindow, typename TFrame>
  Pointer
  FrameOrFootprint(const TWindow & window, const std::shared_ptr<DomainOperation> & inside, TFrame && frame) const
  {
    if (this->IsOdd())
    {
      return frame(this->Centered(window), window.boundary);
    }
    inside->window = this->MakeFootprint(window);
    return inside;
  }

  /** The mean, the variance, and where windows see a voxel. */
  Pointer
  MakeWienerInDomain(const WienerOperation & wiener, const std::shared_ptr<DomainOperation> & inside) const
  {
    const auto windows = std::make_shared<WienerOperation>(wiener);
    windows->windows.clear();
    const auto add = [&](const auto & statistic, bool marksSeen) {
      const auto part = std::make_shared<DomainOperation>(*inside);
      statistic->boundary = wiener.boundary;
      part->window = statistic;
      part->marksSeen = marksSeen;
      part->emptyValue = std::numeric_limits<double>::quiet_NaN();
      windows->windows.push_back(this->MakeDomain(*part));
    };
    add(std::make_shared<MeanOperation>(), false);
    add(std::make_shared<VarianceOperation>(), false);
    add(std::make_shared<MeanOperation>(), true);
    inside->window = windows;
    return inside->marksSeen ? windows->windows.back() : Pointer(inside);
  }

  /** A composite whose first stages see other windows; nullptr: `window` is none of the type. */
  template <typename TComposite>
  Pointer
  MakeComposite(const Pointer & window) const
  {
    const auto * const given = As<TComposite>(window);
    if (!given)
    {
      return nullptr;
    }
    const auto composite = std::make_shared<TComposite>(*given);
    composite->windows.clear();
    for (const Stage & stage : StagesOfStatistics(*given))
    {
      if (stage.operation && stage.inputs.front() == Stage::Input())
      {
        composite->windows.push_back(this->Make(stage.operation));
      }
    }
    return composite;
  }

  const WindowSides m_Sides;
  const PixelType   m_Kind;
  /** The box around the middle, from which voxel on its upper side is one shorter where the number is even. */
  Coordinates m_Radius{};
  Coordinates m_Shorter{};
  Coordinates m_Shift{};
};

} // namespace

std::vector<unsigned char>
MakeSidedElement(const WindowSides & sides, Coordinates & radius)
{
  std::vector<unsigned char> element{ 1 };
  double                     voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    radius[a] = std::max(sides.lower[a], sides.upper[a]);
    voxels *= 2.0 * static_cast<double>(radius[a]) + 1.0;
  }
  if (voxels > static_cast<double>(ElementOperation::LargestElement))
  {
    throw ParameterError("UpperRadius: " + ToString(sides.upper) + " and Radius " + ToString(sides.lower) +
                         " make a box of more than " + std::to_string(ElementOperation::LargestElement) +
                         " voxels around the center");
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::vector<unsigned char> inner = element;
    element.clear();
    for (std::int64_t i = -radius[a]; i <= radius[a]; ++i)
    {
      const bool isTap = i >= -sides.lower[a] && i <= sides.upper[a];
      element.insert(element.end(), inner.begin(), inner.end());
      std::fill(element.end() - static_cast<std::ptrdiff_t>(isTap ? 0 : inner.size()), element.end(), 0);
    }
  }
  return element;
}

std::shared_ptr<const Operation>
MakeSided(const std::shared_ptr<const Operation> & window, const WindowSides & sides, PixelType kind)
{
  return SidedWindows(sides, kind).Make(window);
}

} // namespace chunkwise
