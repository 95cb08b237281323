/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandReport.h"

#include "commandMemory.h"

namespace command
{

void
PrintDivisions(std::ostream & os, const chunkwise::StreamedPlan & plan)
{
  os << "divisions: " << plan.divisions << " along axis " << plan.axis << ", up to "
     << FormatBytes(static_cast<double>(plan.bytesAtOnce)) << " of image at once; "
     << FormatBytes(static_cast<double>(plan.bytesRead)) << " read, "
     << FormatBytes(static_cast<double>(plan.bytesWritten)) << " written\n";
}

void
PrintPlan(std::ostream & os, const chunkwise::Plan & plan, int dimension, bool onDevices)
{
  os << "chunks: " << plan.chunks.size() << " in a division, of up to ";
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
       << FormatBytes(static_cast<double>(plan.deviceBytes)) << " on each; " << FormatBytes(plan.bytesToDevice)
       << " there, " << FormatBytes(plan.bytesToHost) << " back for a division\n";
  }
}

} // namespace command
