/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandRun.hxx"

namespace command
{

template void
RunOfDimension<2>(const Arguments & arguments, chunkwise::PixelKind kind);

} // namespace command
