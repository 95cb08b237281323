/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandDevices_h
#define commandDevices_h

namespace command
{

/** Prints the CUDA devices, or why there are none, and the CPU. */
void
PrintDevices(bool asJson);

} // namespace command

#endif
