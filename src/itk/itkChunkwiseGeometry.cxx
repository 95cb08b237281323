/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseGeometry.h"

namespace itk
{

chunkwise::Box
ChunkwiseInputBox(const chunkwise::Operation & operation, const chunkwise::Box & output, const chunkwise::Box & image)
{
  if (output.IsEmpty())
  {
    return output;
  }
  const chunkwise::Halo halo = operation.GetHalo(image.Extents());
  chunkwise::Box        input = chunkwise::PadAndCrop(output, halo, image);
  if (operation.WrapsAround())
  {
    for (int a = 0; a < chunkwise::MaxDimension; ++a)
    {
      if (output.lower[a] - halo.lower[a] < image.lower[a] || output.upper[a] + halo.upper[a] > image.upper[a])
      {
        input.lower[a] = image.lower[a];
        input.upper[a] = image.upper[a];
      }
    }
  }
  return input;
}

} // namespace itk
