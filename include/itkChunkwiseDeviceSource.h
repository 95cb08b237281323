/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseDeviceSource_h
#define itkChunkwiseDeviceSource_h

#include "chunkwiseManager.h"
#include "itkDataObject.h"
#include "itkImageRegion.h"

#include <memory>

namespace itk
{
/** \class ChunkwiseDeviceSource
 * \brief The interface of a filter whose output can stay on a device for the filters after it.
 *
 * ChunkwiseImageToImageFilter is one, and asks its inputs' sources.
 * \ingroup Chunkwise
 */
template <unsigned int VDimension>
class ChunkwiseDeviceSource
{
public:
  /** An output in a device's memory: dense, x first, components last. */
  struct Image
  {
    std::shared_ptr<chunkwise::DeviceMemory> memory;
    chunkwise::Manager *                     manager{ nullptr };
    ImageRegion<VDimension>                  region;
  };

  virtual ~ChunkwiseDeviceSource() = default;

  /** Brings the requested region of the output up to date. The image if it is on a device then, and has no voxels on
   * the host; nullptr if it must be asked for on the host, in ITK's way. */
  virtual std::shared_ptr<const Image>
  UpdateOutputOnDevice(DataObject * output) = 0;

  /** While this is so, an update leaves the output where it is. */
  virtual void
  SetOutputIsRead(bool isRead) = 0;

  /** Forgets what is on the device: the output must be computed anew. */
  virtual void
  ReleaseOutputOnDevice() = 0;
};
} // namespace itk

#endif
