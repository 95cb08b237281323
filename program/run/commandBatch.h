/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandBatch_h
#define commandBatch_h

#include "commandLine.h"

namespace command
{

/** Filters several images, one after the other. One that fails is reported, and the others go on; then this throws
 * WorkError. Results of an earlier run are left as they are: see commandRecord.h. */
void
RunBatch(const CommandLine & line);

} // namespace command

#endif
