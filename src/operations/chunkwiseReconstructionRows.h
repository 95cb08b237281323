/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseReconstructionRows_h
#define chunkwiseReconstructionRows_h

#include "chunkwiseCheckedParameters.h"
#include "chunkwiseReconstructionOperation.h"

namespace chunkwise
{

/** The parameters that all reconstructions share: neighbors, axes, and how a device does it. */
std::vector<ParameterDescription>
ReconstructionParameters();
/** A reconstruction with these parameters. */
std::shared_ptr<ReconstructionOperation>
MakeReconstruction(const CheckedParameters & parameters, bool erosion, ReconstructionMarker marker,
                   ReconstructionResult result = ReconstructionResult::Reconstruction);
} // namespace chunkwise

#endif
