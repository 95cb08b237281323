/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandReport_h
#define commandReport_h

#include "chunkwisePlanner.h"

#include <ostream>

namespace command
{

/** How a file is streamed. */
struct Divisions
{
  std::int64_t  count{ 1 };
  unsigned int  axis{ 0 };      ///< that is divided
  std::uint64_t bytesRead{ 0 }; ///< by the whole run, halos included
  std::uint64_t bytesWritten{ 0 };
  std::uint64_t bytesAtOnce{ 0 }; ///< input and output of the largest division
};

void
PrintDivisions(std::ostream & os, const Divisions & divisions);

/** The chunks of a division; what a device holds and moves for them if devices run it. */
void
PrintPlan(std::ostream & os, const chunkwise::Plan & plan, int dimension, bool onDevices);

} // namespace command

#endif
