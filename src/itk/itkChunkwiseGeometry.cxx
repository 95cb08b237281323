/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseGeometry.h"

#include "chunkwiseRegions.h"

namespace itk
{

chunkwise::BufferView
ChunkwiseViewOfPixels(void * pixels, chunkwise::PixelType kind, const chunkwise::Box & box, int axis,
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
  return chunkwise::GetInputBox(operation, output, image);
}

} // namespace itk
