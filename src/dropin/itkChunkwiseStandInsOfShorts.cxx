/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseStandIns.hxx"

template void
itk::AddChunkwiseStandInsOf<short>(ChunkwiseOverrides & overrides);
