/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFilters.h"
#include "chunkwiseNetworkModel.h"

#include <iostream>

/** Linking the library is enough; to call this again does nothing. */
int
main()
{
  chunkwise::AddNetworks();
  std::cout << chunkwise::GetFilter("network").title << std::endl;
  return 0;
}
