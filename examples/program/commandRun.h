/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandRun_h
#define commandRun_h

#include "commandArguments.h"

namespace command
{

/** Does what the arguments ask for, or prints the plan for it. */
void
Run(const Arguments & arguments);

/** The same for a file of this dimension and pixel kind. One source file for each dimension has its definition. */
template <unsigned int VDimension>
void
RunOfDimension(const Arguments & arguments, chunkwise::PixelKind kind);

extern template void
RunOfDimension<2>(const Arguments & arguments, chunkwise::PixelKind kind);
extern template void
RunOfDimension<3>(const Arguments & arguments, chunkwise::PixelKind kind);
extern template void
RunOfDimension<4>(const Arguments & arguments, chunkwise::PixelKind kind);
extern template void
RunOfDimension<5>(const Arguments & arguments, chunkwise::PixelKind kind);

} // namespace command

#endif
