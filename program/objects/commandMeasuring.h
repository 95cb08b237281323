/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandMeasuring_h
#define commandMeasuring_h

#include "commandLine.h"
#include "commandProgress.h"

#include "chunkwiseMeasurements.h"
#include "fileJob.h"

#include <functional>

// Common parts of all subcommands that measure labels.
namespace command
{

chunkwise::files::JobNames
MakeNamesOfLabels(const CommandLine & line);

/** Opens LABELS, and sets what it says of itself. */
void
OpenLabels(const CommandLine & line, chunkwise::files::FileJob & job, chunkwise::MeasurementSettings & settings);

chunkwise::MeasurementSpace
MakeSpaceOf(const chunkwise::files::ImageHeader & header);

/** Plans the run. Tables may take half of what the program leaves; or little, where divisions need more. */
void
ShareMemoryOfTables(const CommandLine & line, chunkwise::files::FileJob & job, const chunkwise::Executor & executor,
                    chunkwise::MeasurementSettings & settings);

void
PrintPlanOfLabels(const CommandLine & line, const chunkwise::files::FileJob & job,
                  const chunkwise::MeasurementSettings & settings, int reads);

/** A division at a time, in ascending order. */
void
ReadLabels(chunkwise::files::FileJob & job, Progress & progress,
           const std::function<void(const chunkwise::ExecutionRequest &)> & add);

void
PrintWarnings(const CommandLine & line, chunkwise::files::FileJob & job);

/** The error of tables that are too large. */
[[noreturn]] void
RefuseTables(const CommandLine & line, const chunkwise::MeasurementSettings & settings, std::int64_t labels);

} // namespace command

#endif
