/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseWindow_h
#define itkChunkwiseWindow_h

#include "ChunkwiseExport.h"
#include "chunkwiseFilters.h"
#include "itkChunkwiseEnums.h"
#include "itkIndent.h"

#include <iosfwd>
#include <vector>

// The part of ChunkwiseWindowImageFilter that does not depend on pixel types.
namespace itk
{

/** Sets BoundaryCondition, Constant and SpatialAxes; IgnoreNaN, OutputMask and EmptyValue if they are not the defaults.
 * \ingroup Chunkwise */
Chunkwise_EXPORT void
SetChunkwiseWindowParameters(chunkwise::FilterParameters & parameters, ChunkwiseEnums::BoundaryCondition boundary,
                             double constant, const std::vector<unsigned int> & axes, bool ignoreNaN, bool outputMask,
                             double emptyValue);

/** Sets a BoundaryCondition for each spatial axis.
 * \ingroup Chunkwise */
Chunkwise_EXPORT void
SetChunkwiseBoundaries(chunkwise::FilterParameters &                          parameters,
                       const std::vector<ChunkwiseEnums::BoundaryCondition> & boundaries);

/** Prints them all.
 * \ingroup Chunkwise */
Chunkwise_EXPORT void
PrintChunkwiseWindow(std::ostream & os, Indent indent, ChunkwiseEnums::BoundaryCondition boundary, double constant,
                     const std::vector<unsigned int> & axes, bool ignoreNaN, bool outputMask, double emptyValue);

} // namespace itk

#endif
