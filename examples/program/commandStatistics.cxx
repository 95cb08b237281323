/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandStatistics.h"

#include "chunkwiseStatistics.h"
#include "commandInputs.h"
#include "commandReport.h"
#include "commandSignals.h"
#include "commandWindows.h"

#include <iostream>
#include <sstream>

namespace command
{

namespace
{

class SignalControl : public chunkwise::RunControl
{
public:
  bool
  ShouldStop() const override
  {
    return WasInterrupted();
  }
  void
  AddFinishedVoxels(std::int64_t) override
  {}
};

} // namespace

void
PrintStatistics(const CommandLine & line)
{
  const auto source = OpenInput(line.input, "IN");
  const auto image = chunkwise::Box::FromExtent(source->GetExtent());
  const auto kind = source->GetKind();
  int        axis = chunkwise::MaxDimension - 1;
  while (axis > 0 && image.Extent(axis) <= 1)
  {
    --axis;
  }
  // Pieces of a few MiB, or those that were asked for.
  const std::int64_t extent = image.Extent(axis);
  const std::int64_t ofPiece = line.divisions
                                 ? std::max<std::int64_t>(1, (extent + line.divisions - 1) / line.divisions)
                                 : PlanesOfAPiece(image, axis, kind);
  const std::int64_t planes = std::min(ofPiece, std::max<std::int64_t>(extent, 1));
  const auto         boxAt = [&](std::int64_t first) {
    chunkwise::Box box = image;
    box.lower[axis] = first;
    box.upper[axis] = std::min(first + planes, extent);
    return box;
  };
  InputWindow window(*source, kind, axis);
  if (line.planOnly)
  {
    Divisions divisions;
    divisions.count = (extent + planes - 1) / planes;
    divisions.axis = static_cast<unsigned int>(axis);
    divisions.bytesRead = static_cast<std::uint64_t>(image.NumberOfVoxels()) * PixelSize(kind);
    divisions.bytesAtOnce = window.GetBytes(boxAt(0));
    std::ostringstream os;
    os << "image: " << line.input << ", " << ToString(source->GetExtent()) << " voxels of "
       << chunkwise::PixelKindName(kind) << ", statistics\n";
    PrintDivisions(os, divisions);
    std::cout << os.str();
    return;
  }

  SignalControl                    control;
  const auto                       executor = chunkwise::MakeThreadExecutor(line.threads);
  chunkwise::StatisticsAccumulator accumulator(kind);
  if (!image.IsEmpty())
  {
    window.Allocate(window.GetBytes(boxAt(0)));
  }
  for (std::int64_t first = 0; first < extent && !image.IsEmpty(); first += planes)
  {
    const chunkwise::Box        box = boxAt(first);
    const chunkwise::BufferView view = window.Load(box);
    accumulator.Add(view, box, executor.get(), &control);
  }
  ThrowIfInterrupted();

  const chunkwise::ImageStatistics statistics = accumulator.Get();
  if (statistics.GetCount() == 0)
  {
    throw WorkError("IN: " + line.input + " has no voxel that is a number" +
                    (statistics.GetNumberOfNaNs() > 0
                       ? ", all " + std::to_string(statistics.GetNumberOfNaNs()) + " are NaN"
                       : std::string()));
  }
  const auto text = [](double value) { return chunkwise::PixelValue(value).ToText(); };
  const auto extremum = [&](const chunkwise::PixelValue & value) { return value.ToText(); };
  std::cout << "sum: " << text(statistics.GetSum()) << "\nmean: " << text(statistics.GetMean())
            << "\nminimum: " << extremum(statistics.GetMinimum()) << "\nmaximum: " << extremum(statistics.GetMaximum())
            << "\nstandard deviation: " << text(statistics.GetStandardDeviation()) << "\n";
  if (statistics.GetNumberOfNaNs() > 0)
  {
    std::cout << "voxels that are NaN, and left out: " << statistics.GetNumberOfNaNs() << "\n";
  }
}

} // namespace command
