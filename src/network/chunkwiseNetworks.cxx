/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// What the engine gets of networks.
#include "chunkwiseCpuNetwork.h"
#include "chunkwiseDevice.h"
#include "chunkwiseNetworkFilters.h"
#include "chunkwiseNetworkModel.h"

namespace chunkwise
{

namespace
{

/** True once the library is loaded: who links it need not call AddNetworks. */
[[maybe_unused]] const bool isAdded = [] {
  AddNetworks();
  return true;
}();

} // namespace

void
AddNetworks()
{
  AddHostKernels(RegisterHostNetwork);
  AddFilters(AddNetworkFilters);
}

} // namespace chunkwise
