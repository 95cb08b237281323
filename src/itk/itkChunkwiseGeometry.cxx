/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseGeometry.h"

#include "chunkwiseRegions.h"

namespace itk
{

chunkwise::BufferView
ChunkwiseViewOfPixels(void * pixels, chunkwise::PixelKind kind, const chunkwise::Box & box, int axis,
                      std::int64_t components)
{
  chunkwise::BufferView view = chunkwise::DenseView(pixels, kind, box);
  if (components > 1)
  {
    for (std::int64_t & stride : view.stride.axis)
    {
      stride *= components;
    }
    view.box.upper[axis] = components;
    view.stride[axis] = 1;
  }
  return view;
}

chunkwise::Box
ChunkwiseInputBox(const chunkwise::Operation & operation, const chunkwise::Box & output, const chunkwise::Box & image)
{
  if (output.IsEmpty())
  {
    return output;
  }
  if (operation.GetOutputGrid())
  {
    return chunkwise::GetInputBox(operation, output, image);
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
