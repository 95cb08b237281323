/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaMaskedMedians_h
#define chunkwiseCudaMaskedMedians_h

#include "chunkwiseDomainOperation.h"

namespace chunkwise
{

/** Medians of small cubes in a mask, for requests that MaskedMediansTake accepts. */
bool
MaskedMediansTake(const DomainOperation & domain, const ChunkShape & shape);
void
RunMaskedMedians(const KernelCall & call);
std::size_t
ScratchOfMaskedMedians(const DomainOperation & domain, const ChunkShape & shape);
/** In bytes that take as long, see the cost of ranks. */
double
CostOfMaskedMedians(const DomainOperation & domain, const ChunkShape & shape);

} // namespace chunkwise

#endif
