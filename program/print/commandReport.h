/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandReport_h
#define commandReport_h

#include "chunkwiseNetworkOperation.h"
#include "chunkwiseStreamedRun.h"

#include <ostream>
#include <string>
#include <vector>

namespace command
{

/** Time and memory of a run. */
struct RunReport
{
  std::string  backend;
  std::string  transforms; ///< whose; empty: none
  unsigned int threads{ 0 };
  std::int64_t voxels{ 0 };
  double       seconds{ 0 };
  double       reading{ 0 };
  double       computing{ 0 };
  double       writing{ 0 };
  bool         overlaps{ false }; ///< these three
  /** For a run in slabs, see StreamedReport. */
  std::vector<std::pair<std::string, double>> steps;
  /** Numbers by which the operation describes its run, see ExecutionReport. */
  std::vector<std::pair<std::string, double>> figures;
  std::uint64_t                               bytesRead{ 0 }; ///< of IN, in its file
  std::uint64_t                               bytesWritten{ 0 };
  std::int64_t                                resumed{ 0 };    ///< voxels that an earlier run had written
  std::int64_t                                stepsDone{ 0 };  ///< iterations that an earlier run had done
  std::uint64_t                               peakMemory{ 0 }; ///< of the host
  std::vector<std::string>                    warnings;
  /** The option that was "auto" and the numbers that the image gave it; empty: there was none. */
  std::pair<std::string, std::vector<double>> estimate;
};

/** Numbers as an option takes them. */
std::string
TextOf(const std::vector<double> & numbers);

/** A line of --returnparameterfile. */
struct ReportRow
{
  std::string name;
  std::string label;
  std::string help;
  bool        isNumber;
  std::string (*getText)(const RunReport & report);
};

const std::vector<ReportRow> &
GetReportRows();

void
PrintReport(std::ostream & os, const RunReport & report);

/** Throws WorkError. */
void
WriteReturnParameters(const std::string & file, const RunReport & report);

void
PrintDivisions(std::ostream & os, const chunkwise::StreamedPlan & plan);

/** The chunks of a division, or of the whole image where a device holds it; what a device holds and moves for them if
 * devices run it. */
void
PrintPlan(std::ostream & os, const chunkwise::Plan & plan, int dimension, bool onDevices, bool isHeld);

/** The layers of a network, one a line. */
void
PrintLayers(std::ostream & os, const std::vector<chunkwise::NetworkLayerDescription> & layers);

} // namespace command

#endif
