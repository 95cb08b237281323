/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandPlan_h
#define commandPlan_h

#include "commandLine.h"
#include "fileJob.h"

#include <ostream>

namespace command
{

/** The images that are read, computed and written. */
void
PrintImage(std::ostream & os, const CommandLine & line, const chunkwise::files::FileJob & job);

/** How the image is cut, and what the memory costs. */
void
PrintCuts(std::ostream & os, const CommandLine & line, const chunkwise::files::FileJob & job);

/** All that is known of a run before it, on standard output, as text or as JSON. */
void
PrintPlanOfRun(const CommandLine & line, const chunkwise::files::FileJob & job);

} // namespace command

#endif
