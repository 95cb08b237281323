/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandReport.h"

#include "commandLine.h"
#include "commandMemory.h"

#include <algorithm>
#include <fstream>
#include <iomanip>

namespace command
{

namespace
{

std::string
GetLongest(const RunReport & report)
{
  return report.computing >= std::max(report.reading, report.writing) ? "computing"
         : report.reading >= report.writing                           ? "reading"
                                                                      : "writing";
}

} // namespace

std::string
TextOf(const std::vector<double> & numbers)
{
  std::string text;
  for (const double number : numbers)
  {
    text += (text.empty() ? "" : ",") + chunkwise::PixelValue(number).ToText();
  }
  return text;
}

const std::vector<ReportRow> &
GetReportRows()
{
  static const std::vector<ReportRow> rows = {
    { "usedBackend", "Computed by", "cpu, cuda or both", false, [](const RunReport & r) { return r.backend; } },
    { "seconds",
      "Seconds",
      "Time of the run, files included",
      true,
      [](const RunReport & r) { return std::to_string(r.seconds); } },
    { "mebibytesRead",
      "MiB read",
      "Size of the parts of the input's file that were read",
      true,
      [](const RunReport & r) { return std::to_string(static_cast<double>(r.bytesRead) / (1 << 20)); } },
    { "peakMebibytes",
      "MiB of memory",
      "Largest host memory of the run",
      true,
      [](const RunReport & r) { return std::to_string(static_cast<double>(r.peakMemory) / (1 << 20)); } },
    { "estimate",
      "Taken from the image",
      "Values that auto found, such as thresholds",
      false,
      [](const RunReport & r) { return TextOf(r.estimate.second); } }
  };
  return rows;
}

void
PrintReport(std::ostream & os, const RunReport & report)
{
  os << "backend: " << report.backend << ", " << report.threads << " threads of the CPU"
     << (report.transforms.empty() ? "" : "\ntransforms: " + report.transforms) << "\ntime: " << report.seconds
     << " s, " << 1e-6 * static_cast<double>(report.voxels) / report.seconds << " Mvoxel/s; reading " << report.reading
     << " s, computing " << report.computing << " s, writing " << report.writing << " s"
     << (report.overlaps ? " at a time, of which " + GetLongest(report) + " takes longest" : "");
  for (const auto & figure : report.figures)
  {
    os << "\n" << figure.first << ": " << figure.second;
  }
  for (std::size_t i = 0; i < report.steps.size(); ++i)
  {
    os << (i ? ", " : "\nslabs: ") << report.steps[i].first << " " << report.steps[i].second << " s";
  }
  os << "\nfiles: " << FormatBytes(static_cast<double>(report.bytesRead)) << " of IN read, "
     << FormatBytes(static_cast<double>(report.bytesWritten)) << " written"
     << (report.resumed > 0 ? "\nresumed: " + std::to_string(report.resumed) + " voxels were written before" : "")
     << (report.stepsDone > 0 ? "\nresumed: after iteration " + std::to_string(report.stepsDone) : "")
     << "\npeak memory: " << FormatBytes(static_cast<double>(report.peakMemory)) << "\n";
}

void
WriteReturnParameters(const std::string & file, const RunReport & report)
{
  std::ofstream stream(file);
  for (const ReportRow & row : GetReportRows())
  {
    stream << row.name << " = " << row.getText(report) << "\n";
  }
  stream.close();
  if (!stream)
  {
    throw WorkError("--returnparameterfile: " + file + " cannot be written");
  }
}

void
PrintDivisions(std::ostream & os, const chunkwise::StreamedPlan & plan)
{
  if (plan.inSlabs)
  {
    os << "slabs: along axis " << plan.axis << ", within " << FormatBytes(static_cast<double>(plan.bytesAtOnce))
       << ", with a file beside OUT if the filter keeps data between its passes; ";
  }
  else
  {
    if (plan.heldOnDevice >= 0)
    {
      os << (plan.heldOnOthers.empty() ? "device " : "devices ") << plan.heldOnDevice;
      for (const int other : plan.heldOnOthers)
      {
        os << ", " << other;
      }
      os << (plan.heldOnOthers.empty() ? " holds the image; " : " hold the image together; ");
    }
    os << "divisions: " << plan.divisions << " along axis " << plan.axis << ", up to "
       << FormatBytes(static_cast<double>(plan.bytesAtOnce)) << " of image at once; ";
  }
  os << FormatBytes(static_cast<double>(plan.bytesRead)) << " read, "
     << FormatBytes(static_cast<double>(plan.bytesWritten)) << " written\n";
}

void
PrintPlan(std::ostream & os, const chunkwise::Plan & plan, int dimension, bool onDevices, bool isHeld)
{
  os << "chunks: " << plan.chunks.size() << (isHeld ? " in the image" : " in a division") << ", of up to ";
  for (int a = 0; a < dimension; ++a)
  {
    os << (a ? " x " : "") << plan.chunkExtent[a];
  }
  os << " voxels\n";
  if (onDevices)
  {
    os << "device: " << FormatBytes(static_cast<double>(plan.inputBytes)) << " in, "
       << FormatBytes(static_cast<double>(plan.outputBytes)) << " out and "
       << FormatBytes(static_cast<double>(plan.scratchBytes)) << " scratch for a chunk; "
       << FormatBytes(static_cast<double>(plan.deviceBytes)) << " on each";
    if (!isHeld)
    {
      os << "; " << FormatBytes(plan.bytesToDevice) << " there, " << FormatBytes(plan.bytesToHost)
         << " back for a division";
    }
    os << "\n";
  }
  if (plan.spilledBytes > 0)
  {
    os << "host: " << FormatBytes(static_cast<double>(plan.spilledBytes)) << " of pinned memory beside each device for "
       << (plan.piped ? "what the CPU computes of a chunk before the device" : "what a step leaves for the next one")
       << "\n";
  }
}

void
PrintLayers(std::ostream & os, const std::vector<chunkwise::NetworkLayerDescription> & layers)
{
  const auto text = [](const chunkwise::LayerExtent & extent) {
    return std::to_string(extent[0]) + "x" + std::to_string(extent[1]) + "x" + std::to_string(extent[2]);
  };
  const auto flags = os.flags();
  os << "layers of a chunk, where it needs most:\n"
     << std::left << std::setw(25) << "  layer" << std::setw(10) << "channels" << std::setw(16) << "extent"
     << std::setw(10) << "kernel" << std::setw(8) << "stride" << std::setw(10) << "dilation" << std::setw(16)
     << "computed" << std::setw(10) << "memory" << std::setw(10) << "spectra" << std::setw(10) << "kept" << "time\n";
  for (const chunkwise::NetworkLayerDescription & layer : layers)
  {
    const bool convolves = layer.kind == chunkwise::LayerKind::Convolution;
    os << "  " << std::setw(23) << chunkwise::LayerKindName(layer.kind) << std::setw(10) << layer.channels
       << std::setw(16) << text(layer.extent) << std::setw(10) << text(layer.kernel) << std::setw(8)
       << text(layer.stride) << std::setw(10) << text(layer.dilation) << std::setw(16)
       << (layer.tile > 0 ? "tiles of " + std::to_string(layer.tile) + "^3"
           : convolves    ? "directly"
                          : "")
       << std::setw(10) << FormatBytes(static_cast<double>(layer.bytes)) << std::setw(10)
       << (layer.transformBytes > 0 ? FormatBytes(static_cast<double>(layer.transformBytes)) : std::string())
       << std::setw(10) << (layer.keptBytes > 0 ? FormatBytes(static_cast<double>(layer.keptBytes)) : std::string())
       << std::fixed << std::setprecision(1) << 100 * layer.share << " %" << (layer.byCpu ? " of the CPU's" : "")
       << (layer.keptByHost && layer.keptBytes > 0 ? ", kept in the host's memory" : "") << "\n";
  }
  os.flags(flags);
}

} // namespace command
